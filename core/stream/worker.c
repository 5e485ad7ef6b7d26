/*
 * The worker: its life, its threads and what they are told, its clock.  Its plan is in
 * worker_plan.c, the events of its owner in worker_events.c, what it knows of itself in
 * worker_stats.c.
 */

#include "stream/worker.h"

#include <errno.h>

#include "base/alloc.h"
#include "stream/executor.h"
#include "stream/remote.h"
#include "stream/root_priv.h"
#include "stream/stream_priv.h"
#include "topology/topology.h"

/* ---- life ----------------------------------------------------------------------------------- */

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
    int32_t ids = options->task_capacity < SL__SPOUT_IDS ? options->task_capacity : SL__SPOUT_IDS;
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

/* ---- clock ---------------------------------------------------------------------------------- */

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
