/* The worker: plan, threads, events. */

#include "stream/worker.h"

#include <errno.h>
#include <time.h>

#include "base/alloc.h"
#include "stream/executor.h"
#include "stream/remote.h"
#include "stream/root_priv.h"
#include "stream/stream_priv.h"
#include "topology/topology.h"

/* ---- life ----------------------------------------------------------------------------------- */

enum {
    /* Ids that spout tasks may have when others name them by these: see root_priv.h. */
    SPOUT_IDS = 65536,
};

static struct sl_executor *
executor_new(struct sl_worker *worker, int32_t index, const struct sl_worker_options *options)
{
    struct sl_executor *self = NULL;
    if (posix_memalign((void **)&self, 64, sizeof(*self)) != 0) {
        sl_unreachable();
    }
    memset(self, 0, sizeof(*self));
    self->worker = worker;
    self->index = index;
    sl_random_seed(&self->random, sl_mix64(worker->seed + (uint64_t)index));
    self->now_ns = sl_clock_mono_ns(worker->clock);
    self->round_at_ns = self->now_ns + worker->timeout_ns / SL__ROUNDS;
    self->timer_at_ns = self->round_at_ns;
    self->pool.block_bytes = (size_t)options->batch_bytes;
    double blocks = options->pool_bytes / options->batch_bytes;
    self->pool.limit = blocks < 16 ? 16 : blocks > INT32_MAX / 2 ? INT32_MAX / 2 : (int32_t)blocks;
    self->current_task = -1;
    self->ack_out = sl_calloc((size_t)worker->lane_count, sizeof(*self->ack_out));
    self->spout_of = sl_calloc((size_t)worker->spout_capacity + 1, sizeof(*self->spout_of));
    pthread_mutex_init(&self->command_lock, NULL);
    return self;
}

static bool
options_fit(const struct sl_worker_options *options)
{
    return options->executors >= 1 && options->executors <= 1024 &&
           options->message_timeout_ms >= 1 && options->message_timeout_ms <= 1e12 &&
           options->max_spout_pending >= 1 && options->task_capacity >= 1 &&
           options->task_capacity <= 1 << 24 && options->spout_capacity >= 0 &&
           options->spout_capacity <= 65536 && options->acker_capacity >= 0 &&
           options->acker_capacity <= 65536 && options->batch_bytes >= 1024 &&
           options->batch_bytes <= 1 << 28 && options->credit >= 1 && options->credit <= 1 << 20 &&
           options->pool_bytes >= 0 && options->pool_bytes <= 1e15 &&
           (options->remote_window == 0 ||
            (options->remote_window >= 4096 && options->remote_window <= 1 << 30)) &&
           options->manual_start_ms >= -1e15 && options->manual_start_ms <= 1e15;
}

struct sl_worker *
sl_worker_new(const struct sl_worker_options *options)
{
    if (!options_fit(options)) {
        sl_err_set(SL_EINVAL, "options of the worker are out of range");
        return NULL;
    }
    struct sl_worker *self = sl_calloc(1, sizeof(*self));
    self->clock = sl_clock_system();
    if (options->is_manual_clock) {
        self->manual = sl_calloc(1, sizeof(*self->manual));
        sl_manual_clock_create(self->manual, (int64_t)options->manual_start_ms);
        self->clock = &self->manual->clock;
    }
    self->seed = options->seed != 0 ? options->seed : sl_random_entropy();
    self->executor_count = options->executors;
    self->lane_count = options->executors + (options->remote_window > 0);
    self->batch_bytes = (size_t)options->batch_bytes;
    self->credit = options->credit;
    self->is_acking = options->is_acking != 0;
    self->timeout_ns = (uint64_t)(options->message_timeout_ms * 1e6);
    self->max_pending = options->max_spout_pending;
    size_t tasks = (size_t)options->task_capacity;
    self->task_capacity = options->task_capacity;
    self->tasks = sl_calloc(tasks, sizeof(*self->tasks));
    self->task_executor = sl_calloc(tasks, sizeof(*self->task_executor));
    self->task_component = sl_calloc(tasks, sizeof(*self->task_component));
    self->task_index = sl_calloc(tasks, sizeof(*self->task_index));
    self->task_peer = sl_calloc(tasks, sizeof(*self->task_peer));
    self->task_placed = sl_calloc(tasks, sizeof(*self->task_placed));
    self->task_has_ended = sl_calloc(tasks, sizeof(*self->task_has_ended));
    for (size_t i = 0; i < tasks; i++) {
        self->task_executor[i] = -1;
    }
    self->inbound = sl_calloc(tasks, sizeof(*self->inbound));
    self->cycles_full = sl_calloc(SL_TOPOLOGY_COMPONENTS_MAX, sizeof(*self->cycles_full));
    self->plan_version = 1;
    /* Roots that other processes know name their spout by its id. */
    int32_t ids = options->task_capacity < SPOUT_IDS ? options->task_capacity : SPOUT_IDS;
    self->spout_capacity = options->remote_window > 0 ? ids : options->spout_capacity;
    self->acker_capacity = options->acker_capacity;
    self->spouts = sl_calloc((size_t)self->spout_capacity + 1, sizeof(*self->spouts));
    for (int32_t i = 0; i < self->spout_capacity; i++) {
        self->spouts[i] = (struct sl__spout_home){-1, -1};
    }
    size_t ackers = (size_t)options->acker_capacity + 1;
    self->ackers = sl_calloc(ackers, sizeof(*self->ackers));
    self->acker_task = sl_calloc(ackers, sizeof(*self->acker_task));
    self->acker_executor = sl_calloc(ackers, sizeof(*self->acker_executor));
    pthread_mutex_init(&self->plan_lock, NULL);
    pthread_mutex_init(&self->event_lock, NULL);
    sem_init(&self->wake, 0, 0);
    self->executors = sl_calloc((size_t)self->lane_count, sizeof(*self->executors));
    for (int32_t i = 0; i < self->lane_count; i++) {
        self->executors[i] = executor_new(self, i, options);
    }
    if (options->remote_window > 0) {
        self->remote = sl__remote_new(self, options);
    }
    size_t pairs = (size_t)self->lane_count * (size_t)self->lane_count;
    self->data = sl_calloc(pairs, sizeof(*self->data));
    self->acks = sl_calloc(pairs, sizeof(*self->acks));
    return self;
}

/* Batches still in a ring: give them to their pools. */
static void
drain_ring(struct sl_ring *ring)
{
    struct sl__batch *batch;
    while (ring != NULL && sl_ring_pop(ring, &batch)) {
        sl__batch_give(NULL, batch);
    }
    sl_ring_free(ring);
}

static void
executor_empty(struct sl_executor *self)
{
    for (size_t i = 0; i < self->tasks.count; i++) {
        sl__task_free(self->tasks.items[i]);
    }
    for (size_t i = 0; i < self->ackers.count; i++) {
        sl__acker_free(self->ackers.items[i]);
    }
    while (self->early.first != NULL) {
        struct sl__batch *batch = self->early.first;
        self->early.first = batch->next;
        sl__batch_give(NULL, batch);
    }
}

static void
executor_free(struct sl_executor *self)
{
    sl__pool_destroy(&self->pool);
    while (self->commands != NULL) {
        struct sl__command *next = self->commands->next;
        sl_free(self->commands->text);
        sl_free(self->commands);
        self->commands = next;
    }
    for (int32_t i = 0; i < self->worker->lane_count; i++) {
        sl_vec_destroy(&self->ack_out[i].items);
    }
    sl_free(self->ack_out);
    sl_free(self->told);
    sl_free(self->spout_of);
    sl_vec_destroy(&self->tasks);
    sl_vec_destroy(&self->spouts);
    sl_vec_destroy(&self->ackers);
    sl_vec_destroy(&self->early_acks);
    sl_vec_destroy(&self->leaving);
    sl_vec_destroy(&self->touched);
    sl_vec_destroy(&self->stack);
    pthread_mutex_destroy(&self->command_lock);
    free(self);
}

void
sl_worker_free(struct sl_worker *self)
{
    if (self == NULL) {
        return;
    }
    int32_t rings = self->lane_count * self->lane_count;
    sl__remote_free(self->remote);
    for (int32_t i = 0; i < self->lane_count; i++) {
        executor_empty(self->executors[i]);
    }
    for (int32_t i = 0; i < rings; i++) {
        drain_ring(self->data[i]);
        sl_ring_free(self->acks[i]);
    }
    for (int32_t i = 0; i < self->lane_count; i++) {
        executor_free(self->executors[i]);
    }
    for (size_t i = 0; i < self->components.count; i++) {
        sl_free(self->components.items[i].name);
        sl_free(self->components.items[i].groups);
        sl_vec_destroy(&self->components.items[i].tasks);
        sl_vec_destroy(&self->components.items[i].leaving);
    }
    for (size_t i = 0; i < self->streams.count; i++) {
        sl_free(self->streams.items[i].name);
    }
    while (self->events != NULL) {
        struct sl__event *next = self->events->next;
        sl_free(self->events->text);
        sl_free(self->events);
        self->events = next;
    }
    sl_free(self->taken_text);
    sl_vec_destroy(&self->components);
    sl_vec_destroy(&self->streams);
    sl_vec_destroy(&self->readers);
    sl_free(self->data);
    sl_free(self->acks);
    sl_free(self->tasks);
    sl_free(self->task_executor);
    sl_free(self->task_component);
    sl_free(self->task_index);
    sl_free(self->task_peer);
    sl_free(self->task_placed);
    sl_free(self->task_has_ended);
    sl_free(self->inbound);
    sl_free(self->cycles_full);
    sl_histogram_free(self->gone_latency);
    sl_free(self->spouts);
    sl_free(self->ackers);
    sl_free(self->acker_task);
    sl_free(self->acker_executor);
    sl_free(self->executors);
    sl_free(self->manual);
    sl_free(self->boot);
    pthread_mutex_destroy(&self->plan_lock);
    pthread_mutex_destroy(&self->event_lock);
    sem_destroy(&self->wake);
    sl_free(self);
}

/* ---- plan ----------------------------------------------------------------------------------- */

/* Under plan_lock. */
static void
plan_changed(struct sl_worker *self)
{
    __atomic_add_fetch(&self->plan_version, 1, __ATOMIC_RELAXED);
}

int
sl_worker_component(struct sl_worker *self, const char *name, int32_t kind, int32_t rank,
                    int32_t scc)
{
    if (name == NULL || kind < SL_TASK_SPOUT || kind > SL_TASK_ACKER || rank < 0 || scc < -1 ||
        scc >= SL_TOPOLOGY_COMPONENTS_MAX) {
        return sl_err_set(SL_EINVAL, "component %s of kind %d with rank %d, cycle %d",
                          name != NULL ? name : "without a name", kind, rank, scc);
    }
    struct sl__component component = {
        .name = sl_strdup(name), .kind = kind, .rank = rank, .scc = scc};
    pthread_mutex_lock(&self->plan_lock);
    sl_vec_push(&self->components, component);
    int index = (int)self->components.count - 1;
    plan_changed(self);
    pthread_mutex_unlock(&self->plan_lock);
    return index;
}

static bool
has_component(const struct sl_worker *self, int32_t component)
{
    return component >= 0 && (size_t)component < self->components.count;
}

int
sl_worker_stream(struct sl_worker *self, int32_t component, const char *name, int32_t field_count,
                 int32_t is_direct)
{
    if (name == NULL || !has_component(self, component) || field_count < 0) {
        return sl_err_set(SL_EINVAL, "stream %s of component %d with %d fields",
                          name != NULL ? name : "without a name", component, field_count);
    }
    struct sl__stream stream = {.component = component,
                                .name = sl_strdup(name),
                                .field_count = field_count,
                                .is_direct = is_direct != 0};
    pthread_mutex_lock(&self->plan_lock);
    sl_vec_push(&self->streams, stream);
    int index = (int)self->streams.count - 1;
    plan_changed(self);
    pthread_mutex_unlock(&self->plan_lock);
    return index;
}

_Static_assert(sizeof(((struct sl_route *)0)->keys) == SL_TOPOLOGY_KEYS_MAX * sizeof(int32_t),
               "a valid grouping has room in a route");

int
sl_worker_reader(struct sl_worker *self, int32_t stream, int32_t component, int32_t grouping,
                 const int32_t *keys, int32_t key_count)
{
    struct sl__reader reader = {
        .stream = stream, .component = component, .grouping = grouping, .key_count = key_count};
    if (stream < 0 || (size_t)stream >= self->streams.count || !has_component(self, component) ||
        key_count < 0 || key_count > (int32_t)(sizeof(reader.keys) / sizeof(reader.keys[0]))) {
        return sl_err_set(SL_EINVAL, "reader of stream %d in component %d with %d keys", stream,
                          component, key_count);
    }
    bool is_keyed = grouping == SL_GROUPING_FIELDS || grouping == SL_GROUPING_PARTIAL_KEY;
    if (grouping < SL_GROUPING_SHUFFLE || grouping > SL_GROUPING_CUSTOM ||
        (key_count > 0 && keys == NULL) || (is_keyed && key_count == 0)) {
        return sl_err_set(SL_EINVAL, "grouping %d with %d keys", grouping, key_count);
    }
    for (int32_t i = 0; i < key_count; i++) {
        if (keys[i] < 0 || keys[i] >= self->streams.items[stream].field_count) {
            return sl_err_set(SL_EINVAL, "key field %d of stream %s", keys[i],
                              self->streams.items[stream].name);
        }
        reader.keys[i] = keys[i];
    }
    pthread_mutex_lock(&self->plan_lock);
    sl_vec_push(&self->readers, reader);
    int index = (int)self->readers.count - 1;
    plan_changed(self);
    pthread_mutex_unlock(&self->plan_lock);
    return index;
}

int
sl_worker_groups(struct sl_worker *self, int32_t component, const int32_t *owners, int32_t count)
{
    if (!has_component(self, component) || count < 1 || owners == NULL) {
        return sl_err_set(SL_EINVAL, "%d key groups for component %d", count, component);
    }
    struct sl__component *at = &self->components.items[component];
    pthread_mutex_lock(&self->plan_lock);
    at->groups = sl_realloc(at->groups, (size_t)count * sizeof(*at->groups));
    memcpy(at->groups, owners, (size_t)count * sizeof(*at->groups));
    at->group_count = count;
    plan_changed(self);
    pthread_mutex_unlock(&self->plan_lock);
    return 0;
}

static void
ids_insert(struct sl__ids *ids, int32_t id)
{
    size_t at = ids->count;
    while (at > 0 && ids->items[at - 1] > id) {
        at--;
    }
    sl_vec_insert(ids, at, id);
}

static void
ids_remove(struct sl__ids *ids, int32_t id)
{
    for (size_t i = 0; i < ids->count; i++) {
        if (ids->items[i] == id) {
            sl_vec_remove(ids, i);
            return;
        }
    }
}

/* What forbids another task of this kind, 0 = nothing. */
static int
check_kind(const struct sl_worker *self, int32_t kind, int32_t id)
{
    if (kind == SL_TASK_SPOUT && self->remote != NULL && id >= self->spout_capacity) {
        return sl_err_set(SL_ELIMIT, "task %d: ids of spout tasks end at %d", id, SPOUT_IDS - 1);
    }
    if (kind == SL_TASK_SPOUT && self->remote == NULL &&
        self->spout_count >= self->spout_capacity) {
        return sl_err_set(SL_ELIMIT, "task %d: more than %d spout tasks", id, self->spout_capacity);
    }
    if (kind == SL_TASK_ACKER && self->acker_count >= self->acker_capacity) {
        return sl_err_set(SL_ELIMIT, "task %d: more than %d ackers", id, self->acker_capacity);
    }
    if (kind == SL_TASK_ACKER && self->is_live) {
        /* Which acker keeps a tree follows from their number. */
        return sl_err_set(SL_EINVAL, "task %d: ackers can not change while tasks run", id);
    }
    return 0;
}

int
sl_worker_task(struct sl_worker *self, int32_t component, int32_t id, int32_t index,
               int32_t executor)
{
    if (!has_component(self, component) || id < 0 || id >= self->task_capacity || index < 0 ||
        executor < 0 || executor >= self->lane_count) {
        return sl_err_set(SL_EINVAL, "task %d of component %d on executor %d", id, component,
                          executor);
    }
    int32_t kind = self->components.items[component].kind;
    pthread_mutex_lock(&self->plan_lock);
    int rc = self->task_executor[id] >= 0 ? sl_err_set(SL_EEXIST, "there is a task %d already", id)
                                          : check_kind(self, kind, id);
    if (rc == 0) {
        self->task_executor[id] = executor;
        self->task_component[id] = component;
        self->task_index[id] = index;
        ids_insert(&self->components.items[component].tasks, id);
        plan_changed(self);
        if (kind == SL_TASK_SPOUT) {
            int32_t spout = self->remote != NULL ? id : self->spout_count;
            sl__spout_set_home(self, spout, id, executor);
            if (spout >= self->spout_count) {
                sl__publish(&self->spout_count, spout + 1);
            }
        } else if (kind == SL_TASK_ACKER) {
            self->acker_task[self->acker_count] = id;
            self->acker_executor[self->acker_count] = executor;
            self->acker_count++;
        }
    }
    pthread_mutex_unlock(&self->plan_lock);
    return rc == 0 ? id : rc;
}

/*
 * Under plan_lock: a task of another process is none any more, or not in that process. The end of
 * input that it told goes on counting, and so does it: as with a task here that had finished.
 */
static void
count_ended(struct sl_worker *self, int32_t id)
{
    sl__publish(&self->task_placed[id], self->task_placed[id] + 1);
    if (__atomic_exchange_n(&self->task_has_ended[id], 0, __ATOMIC_ACQ_REL) != 0) {
        self->components.items[self->task_component[id]].gone_finished++;
    }
}

/* Under plan_lock: a task that no executor ever took. */
static void
remove_unattached(struct sl_worker *self, int32_t id)
{
    if (self->task_executor[id] == self->executor_count) {
        count_ended(self, id);
    }
    self->task_executor[id] = -1;
    for (int32_t i = 0; i < self->spout_count; i++) {
        if (sl__spout_home(self, (uint32_t)i).task == id) {
            sl__spout_set_home(self, i, -1, -1);
        }
    }
}

int
sl_worker_remove_task(struct sl_worker *self, int32_t id)
{
    if (id < 0 || id >= self->task_capacity || self->task_executor[id] < 0) {
        return sl_err_set(SL_ENOTFOUND, "no task %d", id);
    }
    struct sl__component *component = &self->components.items[self->task_component[id]];
    if (component->kind == SL_TASK_ACKER) {
        return sl_err_set(SL_EINVAL, "task %d: ackers can not change while tasks run", id);
    }
    pthread_mutex_lock(&self->plan_lock);
    size_t before = component->tasks.count;
    ids_remove(&component->tasks, id);
    if (self->tasks[id] == NULL) {
        remove_unattached(self, id);
    } else if (component->tasks.count < before) {
        ids_insert(&component->leaving, id);
    }
    plan_changed(self);
    pthread_mutex_unlock(&self->plan_lock);
    return 0;
}

int
sl_worker_place(struct sl_worker *self, int32_t id, int32_t peer)
{
    if (id < 0 || id >= self->task_capacity || self->remote == NULL || peer < 0 ||
        peer > SL_REMOTE_PEER_MAX) {
        return sl_err_set(SL_EINVAL, "task %d in process %d", id, peer);
    }
    pthread_mutex_lock(&self->plan_lock);
    int rc = 0;
    if (self->task_executor[id] != self->executor_count) {
        rc = sl_err_set(SL_ENOTFOUND, "task %d is not planned for another process", id);
    } else {
        count_ended(self, id);
        sl__publish(&self->task_peer[id], peer);
        plan_changed(self);
    }
    pthread_mutex_unlock(&self->plan_lock);
    return rc;
}

int
sl_worker_move_task(struct sl_worker *self, int32_t id, int32_t peer)
{
    if (id < 0 || id >= self->task_capacity || self->remote == NULL || peer < 0 ||
        peer > SL_REMOTE_PEER_MAX) {
        return sl_err_set(SL_EINVAL, "task %d to process %d", id, peer);
    }
    int rc = 0;
    pthread_mutex_lock(&self->plan_lock);
    struct sl__component *component = &self->components.items[self->task_component[id]];
    if (self->tasks[id] == NULL || self->task_executor[id] != self->tasks[id]->executor->index) {
        rc = sl_err_set(SL_ENOTFOUND, "task %d is not in this process", id);
    } else if (component->kind == SL_TASK_ACKER) {
        rc = sl_err_set(SL_EINVAL, "task %d: ackers can not change while tasks run", id);
    } else {
        self->task_executor[id] = self->executor_count;
        sl__publish(&self->task_peer[id], peer);
        sl__publish(&self->task_placed[id], self->task_placed[id] + 1);
        ids_insert(&component->leaving, id);
        if (component->kind == SL_TASK_SPOUT) {
            sl__spout_set_home(self, id, id, self->executor_count);
        }
        plan_changed(self);
    }
    pthread_mutex_unlock(&self->plan_lock);
    return rc;
}

int32_t
sl_worker_group_count(struct sl_worker *self, int32_t component)
{
    pthread_mutex_lock(&self->plan_lock);
    int32_t count =
        has_component(self, component) ? self->components.items[component].group_count : 0;
    pthread_mutex_unlock(&self->plan_lock);
    return count;
}

int
sl_worker_planned(struct sl_worker *self, int32_t id, struct sl_planned *out)
{
    int rc = SL_ENOTFOUND;
    pthread_mutex_lock(&self->plan_lock);
    if (id >= 0 && id < self->task_capacity && self->task_executor[id] >= 0) {
        *out = (struct sl_planned){id, self->task_component[id], self->task_index[id],
                                   self->task_executor[id]};
        rc = 0;
    }
    pthread_mutex_unlock(&self->plan_lock);
    return rc == 0 ? 0 : sl_err_set(rc, "no task %d", id);
}

int
sl_worker_tasks(struct sl_worker *self, int32_t component, int32_t *ids, int32_t capacity)
{
    int count = SL_EINVAL;
    pthread_mutex_lock(&self->plan_lock);
    if (component >= 0 && (size_t)component < self->components.count) {
        const struct sl__ids *tasks = &self->components.items[component].tasks;
        count = (int)tasks->count;
        for (int i = 0; i < count && i < capacity; i++) {
            ids[i] = tasks->items[i];
        }
    }
    pthread_mutex_unlock(&self->plan_lock);
    return count >= 0 ? count : sl_err_set(SL_EINVAL, "no component %d", component);
}

struct sl_executor *
sl_worker_executor(struct sl_worker *self, int32_t index)
{
    return index >= 0 && index < self->executor_count ? self->executors[index] : NULL;
}

int32_t
sl_worker_executor_count(const struct sl_worker *self)
{
    return self->executor_count;
}

void
sl_worker_set_boot(struct sl_worker *self, const char *text, size_t len)
{
    sl_free(self->boot);
    self->boot = sl_strndup(text, len);
    self->boot_bytes = len;
}

const char *
sl_worker_boot(const struct sl_worker *self, size_t *len)
{
    *len = self->boot_bytes;
    return self->boot;
}

/* ---- threads -------------------------------------------------------------------------------- */

struct thread_start {
    struct sl_worker *worker;
    struct sl_executor *executor;
    sl_executor_main_fn main;
};

static void *
thread_main(void *argument)
{
    struct thread_start start = *(struct thread_start *)argument;
    sl_free(argument);
    start.main(start.worker, start.executor);
    sl_worker_post(start.worker, SL_EVENT_STOPPED, -1, start.executor->index, NULL, 0);
    return NULL;
}

int
sl_worker_start(struct sl_worker *self, sl_executor_main_fn main)
{
    for (int32_t i = 0; i < self->executor_count; i++) {
        struct thread_start *start = sl_alloc(sizeof(*start));
        *start = (struct thread_start){self, self->executors[i], main};
        int rc = sl_thread_start(&self->executors[i]->thread, thread_main, start);
        if (rc != 0) {
            sl_free(start);
            /* Those that run already must not outlive the worker. */
            for (int32_t k = 0; k < i; k++) {
                sl_worker_command(self, k, SL_COMMAND_STOP, -1);
            }
            sl_worker_join(self);
            errno = rc;
            return sl_err_set(SL_ESYS, "start the thread of executor %d", i);
        }
        self->executors[i]->has_thread = true;
    }
    return 0;
}

void
sl_worker_join(struct sl_worker *self)
{
    for (int32_t i = 0; i < self->executor_count; i++) {
        if (self->executors[i]->has_thread) {
            sl_thread_join(&self->executors[i]->thread);
            self->executors[i]->has_thread = false;
        }
    }
}

static int
send_command(struct sl_worker *self, int32_t executor, int32_t command, int32_t argument,
             char *take_text, size_t len)
{
    struct sl_executor *at = sl_worker_executor(self, executor);
    if (at == NULL || command < SL_COMMAND_ACTIVATE || command > SL_COMMAND_TELL) {
        sl_free(take_text);
        return sl_err_set(SL_EINVAL, "command %d to executor %d", command, executor);
    }
    struct sl__command *entry = sl_alloc(sizeof(*entry));
    *entry = (struct sl__command){command, argument, take_text, len, NULL};
    pthread_mutex_lock(&at->command_lock);
    struct sl__command **link = &at->commands;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = entry;
    __atomic_store_n(&at->has_commands, 1, __ATOMIC_RELEASE);
    if (command == SL_COMMAND_STOP) {
        __atomic_store_n(&at->is_stopping, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&at->command_lock);
    sl__executor_ring_bell(at);
    return 0;
}

int
sl_worker_command(struct sl_worker *self, int32_t executor, int32_t command, int32_t argument)
{
    return send_command(self, executor, command, argument, NULL, 0);
}

int
sl_worker_tell(struct sl_worker *self, int32_t executor, int32_t argument, const char *text,
               size_t len)
{
    return send_command(self, executor, SL_COMMAND_TELL, argument, sl_strndup(text, len), len);
}

/* ---- events --------------------------------------------------------------------------------- */

void
sl_worker_post(struct sl_worker *self, int32_t kind, int32_t task, int32_t executor,
               const char *text, size_t len)
{
    pthread_mutex_lock(&self->event_lock);
    if (kind == SL_EVENT_ERROR && self->event_count >= SL__EVENT_MAX) {
        self->events_dropped++;
        pthread_mutex_unlock(&self->event_lock);
        return;
    }
    if (kind == SL_EVENT_ERROR && len > SL__ERROR_TEXT_MOST) {
        len = SL__ERROR_TEXT_MOST;
    }
    struct sl__event *event = sl_alloc(sizeof(*event));
    *event = (struct sl__event){kind, task, executor, NULL, len, NULL};
    event->text = sl_alloc(len + 1);
    if (len > 0) {
        memcpy(event->text, text, len);
    }
    event->text[len] = '\0';
    if (self->events_last != NULL) {
        self->events_last->next = event;
    } else {
        self->events = event;
    }
    self->events_last = event;
    self->event_count++;
    if (self->on_event != NULL) {
        self->on_event(self->on_event_ctx);
    }
    pthread_mutex_unlock(&self->event_lock);
    sem_post(&self->wake);
}

void
sl_worker_set_wake(struct sl_worker *self, void (*wake)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&self->event_lock);
    self->on_event = wake;
    self->on_event_ctx = ctx;
    pthread_mutex_unlock(&self->event_lock);
}

void
sl_worker_signal(struct sl_worker *self, int signal_number)
{
    __atomic_store_n(&self->signal_number, signal_number, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&self->signal_count, 1, __ATOMIC_SEQ_CST);
    sem_post(&self->wake);
}

static bool
take_signal(struct sl_worker *self, struct sl_event *out)
{
    if (__atomic_load_n(&self->signal_count, __ATOMIC_SEQ_CST) == self->signals_taken) {
        return false;
    }
    self->signals_taken++;
    *out = (struct sl_event){.kind = SL_EVENT_SIGNAL,
                             .task = __atomic_load_n(&self->signal_number, __ATOMIC_SEQ_CST),
                             .executor = -1,
                             .text = ""};
    return true;
}

static bool
take_event(struct sl_worker *self, struct sl_event *out)
{
    if (take_signal(self, out)) {
        return true;
    }
    pthread_mutex_lock(&self->event_lock);
    struct sl__event *event = self->events;
    if (event != NULL) {
        self->events = event->next;
        self->event_count--;
        if (self->events == NULL) {
            self->events_last = NULL;
        }
    }
    pthread_mutex_unlock(&self->event_lock);
    if (event == NULL) {
        return false;
    }
    sl_free(self->taken_text);
    self->taken_text = event->text;
    *out = (struct sl_event){event->kind, event->task, event->executor, (int32_t)event->len,
                             event->text};
    sl_free(event);
    return true;
}

int
sl_worker_wait(struct sl_worker *self, double timeout_ms, struct sl_event *out)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    /* A year and "for ever" are the same to sem_clockwait, but for its range. */
    timeout_ms = timeout_ms > 3e10 ? 3e10 : timeout_ms;
    double nanoseconds = (double)until.tv_nsec + (timeout_ms > 0 ? timeout_ms : 0) * 1e6;
    until.tv_sec += (time_t)(nanoseconds / 1e9);
    until.tv_nsec = (long)(nanoseconds - (double)(int64_t)(nanoseconds / 1e9) * 1e9);
    out->kind = 0;
    for (;;) {
        if (take_event(self, out)) {
            return 1;
        }
        int rc = timeout_ms < 0 ? sem_wait(&self->wake)
                                : sem_clockwait(&self->wake, CLOCK_MONOTONIC, &until);
        if (rc != 0 && errno == ETIMEDOUT) {
            return take_event(self, out);
        }
    }
}

/* ---- looking in ----------------------------------------------------------------------------- */

/* Counters are written by one thread; a reader may see them a little late but never torn. */
static double
counter_read(const double *counter)
{
    double value;
    __atomic_load(counter, &value, __ATOMIC_RELAXED);
    return value;
}

int
sl_worker_stats(struct sl_worker *self, int32_t id, struct sl_task_stats *out)
{
    /* Under the lock no task is detached. */
    pthread_mutex_lock(&self->plan_lock);
    struct sl__task *task = id >= 0 && id < self->task_capacity ? self->tasks[id] : NULL;
    if (task != NULL) {
        *out = (struct sl_task_stats){.task = id,
                                      .component = task->io.component,
                                      .index = task->io.index,
                                      .executor = task->executor->index,
                                      .emitted = counter_read(&task->io.emitted),
                                      .executed = counter_read(&task->io.executed),
                                      .failed = counter_read(&task->io.failed),
                                      .errors = counter_read(&task->io.errors)};
        out->acked = counter_read(&task->io.acked) +
                     (double)__atomic_load_n(&task->latency_count, __ATOMIC_RELAXED);
        out->pending = __atomic_load_n(&task->root_count, __ATOMIC_RELAXED) -
                       __atomic_load_n(&task->free_slot_count, __ATOMIC_RELAXED);
        out->queued = (double)__atomic_load_n(&task->queued, __ATOMIC_RELAXED);
        out->latency_ns =
            task->io.kind == SL_TASK_SPOUT
                ? (double)((uint64_t)__atomic_load_n(&task->latency_value, __ATOMIC_RELAXED)
                           << SL__ROOT_TIME_SHIFT)
                : counter_read(&task->cost_ns);
    }
    pthread_mutex_unlock(&self->plan_lock);
    return task != NULL ? 0 : sl_err_set(SL_ENOTFOUND, "task %d is not attached", id);
}

void
sl_worker_load(struct sl_worker *self, struct sl_worker_load *out)
{
    *out = (struct sl_worker_load){0, 0};
    pthread_mutex_lock(&self->plan_lock);
    for (int32_t i = 0; i < self->task_capacity; i++) {
        const struct sl__task *task = self->tasks[i];
        if (task != NULL) {
            out->roots += (uint64_t)(__atomic_load_n(&task->root_count, __ATOMIC_RELAXED) -
                                     __atomic_load_n(&task->free_slot_count, __ATOMIC_RELAXED));
            /* Of a spout that is only paused they wait until it is called again. */
            if (__atomic_load_n(&task->is_draining, __ATOMIC_RELAXED)) {
                out->roots += (uint64_t)__atomic_load_n(&task->io.replaying, __ATOMIC_RELAXED);
            }
            out->waiting += (uint64_t)__atomic_load_n(&task->queued, __ATOMIC_RELAXED);
        }
    }
    pthread_mutex_unlock(&self->plan_lock);
    for (int32_t i = 0; i < self->executor_count; i++) {
        /* It goes to rest only when it has handed over all it can. */
        out->waiting += __atomic_load_n(&self->executors[i]->is_asleep, __ATOMIC_SEQ_CST) == 0;
    }
}

int32_t
sl_worker_component_count(struct sl_worker *self)
{
    return (int32_t)self->components.count;
}

const char *
sl_worker_component_name(struct sl_worker *self, int32_t component)
{
    return has_component(self, component) ? self->components.items[component].name : NULL;
}

int
sl_worker_gone_stats(struct sl_worker *self, int32_t component, struct sl_task_stats *out)
{
    if (!has_component(self, component)) {
        return sl_err_set(SL_EINVAL, "no component %d", component);
    }
    pthread_mutex_lock(&self->plan_lock);
    *out = self->components.items[component].gone;
    pthread_mutex_unlock(&self->plan_lock);
    out->task = -1;
    out->component = component;
    out->index = -1;
    out->executor = -1;
    return 0;
}

void
sl_worker_busy(struct sl_worker *self, int32_t index, struct sl_busy *out)
{
    *out = (struct sl_busy){.task = -1, .executor = index};
    struct sl_executor *executor = sl_worker_executor(self, index);
    if (executor == NULL) {
        return;
    }
    out->task = __atomic_load_n(&executor->current_task, __ATOMIC_RELAXED);
    uint64_t since = __atomic_load_n(&executor->current_since_ns, __ATOMIC_RELAXED);
    uint64_t now = sl_clock_mono_ns(self->clock);
    out->for_ms = out->task >= 0 && now > since ? (double)(now - since) / 1e6 : 0;
}

double
sl_worker_latency_ms(struct sl_worker *self, double quantile)
{
    struct sl_histogram *all = sl_histogram_new();
    if (self->gone_latency != NULL) {
        sl_histogram_merge(all, self->gone_latency);
    }
    for (int32_t e = 0; e < self->executor_count; e++) {
        for (size_t i = 0; i < self->executors[e]->spouts.count; i++) {
            struct sl__task *spout = self->executors[e]->spouts.items[i];
            sl__latency_settle(spout);
            sl_histogram_merge(all, spout->latency);
        }
    }
    double value = -1;
    if (all->count > 0) {
        value = (double)sl_histogram_quantile(all, quantile) / 1e6;
    }
    sl_histogram_free(all);
    return value;
}

int32_t
sl_worker_dropped_in_cycles(const struct sl_worker *self)
{
    return __atomic_load_n(&self->dropped_in_cycles, __ATOMIC_RELAXED);
}

int
sl_worker_advance(struct sl_worker *self, double ms)
{
    if (self->manual == NULL || !(ms >= 0 && ms <= 1e12)) {
        return sl_err_set(SL_EINVAL, "the worker's clock is not manual or would go back");
    }
    /* Rounded: a time of whole nanoseconds that came as milliseconds is that time again. */
    sl_manual_clock_advance_ns(self->manual, (uint64_t)(ms * 1e6 + 0.5));
    return 0;
}

double
sl_worker_now_ms(const struct sl_worker *self)
{
    return (double)sl_clock_wall_ms(self->clock);
}
