/*
 * Routes: which task of a reader gets a tuple.  Targets are in ascending order of task id.
 *   shuffle, none, local or shuffle   a random permutation walked in a circle: exactly even
 *   fields                            the owner of the key's group in the plan
 *   partial key                       of two targets seeded by the key, the one used less by this
 * task global                            the lowest id        all, direct, custom   as named
 * (Storm's groupings; JStorm's abs(hash) % n is replaced by key groups, which keep most keys in
 * place when the parallelism changes.)
 */

#include "base/alloc.h"
#include "stream/executor.h"
#include "stream/stream_priv.h"
#include "topology/topology.h"

static struct sl__route *
route_of(struct sl_route *io)
{
    return (struct sl__route *)io;
}

struct sl_outbox *
sl_route_next(struct sl_route *io)
{
    struct sl__route *self = route_of(io);
    int32_t at = self->next;
    if (io->target_count == 0) {
        return NULL;
    }
    self->next = at + 1 < self->order_count ? at + 1 : 0;
    return io->targets[self->order[at]];
}

struct sl_outbox *
sl_route_key(struct sl_route *io, uint64_t hash)
{
    struct sl__route *self = route_of(io);
    if (io->target_count == 0) {
        return NULL;
    }
    if (self->groups != NULL) {
        return io->targets[self->groups[sl_key_group(hash, (uint32_t)self->group_count)]];
    }
    /* The key group uses the low bits; the two candidates come from a mix of the hash. */
    uint64_t seed = sl_mix64(hash ^ UINT64_C(0x6a09e667f3bcc909));
    uint64_t count = (uint64_t)io->target_count;
    uint64_t first = seed % count;
    uint64_t second = (seed >> 32) % count;
    if (first == second) {
        second = (second + 1) % count;
    }
    uint64_t chosen = self->sent[first] <= self->sent[second] ? first : second;
    self->sent[chosen]++;
    return io->targets[chosen];
}

/* A key group never changes its task while a route lives, so neither does the way of a key. */
int32_t
sl_route_way(struct sl_route *io, const char *key, size_t len, bool is_kept)
{
    struct sl__route *self = route_of(io);
    if (self->groups == NULL) {
        return sl_err_set(SL_EINVAL, "a route by fields is needed");
    }
    uint64_t hash = sl_key_hash_bytes(key, len);
    int32_t at = self->groups[sl_key_group(hash, (uint32_t)self->group_count)];
    struct sl__outbox *outbox = sl__outbox_of(io->targets[at]);
    int32_t way = at << SL_WAY_BITS;
    if (!is_kept || outbox->io.is_remote || len > SL_WAY_KEY_BYTES_MOST ||
        self->key_count == SL_WAY_KEYS_MOST) {
        return way;
    }
    self->key_count++;
    return way + sl__outbox_know(outbox, key, len);
}

void
sl_route_forget(struct sl_route *io)
{
    for (int32_t i = 0; i < io->target_count; i++) {
        sl__outbox_forget_keys(sl__outbox_of(io->targets[i]));
    }
    route_of(io)->key_count = 0;
}

/* The position of a task among the targets, which are sorted; -1 = it is none. */
static int32_t
target_position(const struct sl_route *io, int32_t task)
{
    int32_t low = 0;
    int32_t high = io->target_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (io->targets[middle]->dest < task) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < io->target_count && io->targets[low]->dest == task ? low : -1;
}

static void
emitter_add(struct sl_emitter *io, struct sl_outbox *outbox)
{
    struct sl__emitter *self = (struct sl__emitter *)io;
    if (io->target_count == self->target_capacity) {
        self->target_capacity = self->target_capacity * 2 + 8;
        io->targets = sl_realloc(io->targets, (size_t)self->target_capacity * sizeof(*io->targets));
    }
    io->targets[io->target_count++] = outbox;
}

void
sl_emitter_clear(struct sl_emitter *io)
{
    io->target_count = 0;
}

void
sl_emitter_add(struct sl_emitter *io, int32_t route_index)
{
    struct sl_route *route = sl_emitter_route(io, route_index);
    if (route == NULL || route->target_count == 0) {
        return;
    }
    if (route->grouping == SL_GROUPING_ALL) {
        for (int32_t i = 0; i < route->target_count; i++) {
            emitter_add(io, route->targets[i]);
        }
    } else if (route->grouping == SL_GROUPING_GLOBAL) {
        emitter_add(io, route->targets[0]);
    } else {
        emitter_add(io, sl_route_next(route));
    }
}

void
sl_emitter_add_key(struct sl_emitter *io, int32_t route_index, uint64_t hash)
{
    struct sl_route *route = sl_emitter_route(io, route_index);
    if (route != NULL && route->target_count > 0) {
        emitter_add(io, sl_route_key(route, hash));
    }
}

int
sl_emitter_add_task(struct sl_emitter *io, int32_t route_index, int32_t task)
{
    struct sl_route *route = sl_emitter_route(io, route_index);
    int32_t at = route != NULL ? target_position(route, task) : -1;
    if (at < 0) {
        return SL_ENOTFOUND;
    }
    emitter_add(io, route->targets[at]);
    return 0;
}

struct sl_route *
sl_emitter_route(struct sl_emitter *io, int32_t route_index)
{
    return route_index >= 0 && route_index < io->route_count
               ? &((struct sl__route *)io->routes)[route_index].io
               : NULL;
}

static void
route_destroy(struct sl__route *route)
{
    sl_free(route->io.targets);
    sl_free(route->order);
    sl_free(route->groups);
    sl_free(route->sent);
}

void
sl__emitter_free(struct sl__emitter *self)
{
    struct sl__route *routes = (struct sl__route *)self->io.routes;
    for (int32_t i = 0; i < self->io.route_count; i++) {
        route_destroy(&routes[i]);
    }
    sl_free(routes);
    sl_free(self->io.targets);
    sl_free(self);
}

static int
outbox_compare(const struct sl__outbox *outbox, int32_t stream, int32_t dest)
{
    if (outbox->stream != stream) {
        return outbox->stream < stream ? -1 : 1;
    }
    return outbox->io.dest < dest ? -1 : outbox->io.dest > dest;
}

/*
 * One outbox per (stream, receiver), shared by all routes and kept when the routes change. NULL
 * when there is no memory.
 */
static struct sl__outbox *
task_outbox(struct sl__task *task, int32_t stream, int32_t dest, bool is_cyclic)
{
    size_t low = 0;
    size_t high = task->outboxes.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (outbox_compare(task->outboxes.items[middle], stream, dest) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    /* One to where the receiver was before it moved may be there too, until it is empty. */
    int32_t executor = task->executor->worker->task_executor[dest];
    for (size_t at = low; at < task->outboxes.count; at++) {
        if (outbox_compare(task->outboxes.items[at], stream, dest) != 0) {
            break;
        }
        if (task->outboxes.items[at]->dest_executor == executor) {
            return task->outboxes.items[at];
        }
    }
    struct sl__outbox *outbox = sl__outbox_new(task, stream, dest, is_cyclic);
    if (outbox != NULL) {
        sl_vec_insert(&task->outboxes, low, outbox);
    }
    return outbox;
}

static int
route_groups(struct sl__route *route, const struct sl__component *component)
{
    if (component->groups == NULL) {
        return sl_err_set(SL_EINVAL, "component %s is read by fields but has no key groups",
                          component->name);
    }
    route->group_count = component->group_count;
    route->groups = sl_alloc((size_t)component->group_count * sizeof(*route->groups));
    int32_t last_task = -1;
    int32_t last_index = -1;
    for (int32_t i = 0; i < component->group_count; i++) {
        /* Owners come in runs: look up only where they change. */
        if (component->groups[i] != last_task) {
            last_task = component->groups[i];
            last_index = target_position(&route->io, last_task);
        }
        if (last_index < 0) {
            return sl_err_set(SL_EINVAL, "key group %d of component %s belongs to task %d, %s", i,
                              component->name, last_task, "which does not read the stream");
        }
        route->groups[i] = last_index;
    }
    return 0;
}

/* A shuffle over all targets, or over those in this process when they are preferred. */
static void
route_order(struct sl__task *task, struct sl__route *route)
{
    struct sl_worker *worker = task->executor->worker;
    bool prefers_local = route->io.grouping == SL_GROUPING_LOCAL_OR_SHUFFLE;
    for (int32_t i = 0; i < route->io.target_count && prefers_local; i++) {
        if (!sl__is_remote(worker, sl__outbox_of(route->io.targets[i])->dest_executor)) {
            route->order[route->order_count++] = i;
        }
    }
    if (route->order_count == 0) {
        route->order_count = route->io.target_count;
        for (int32_t i = 0; i < route->order_count; i++) {
            route->order[i] = i;
        }
    }
    sl_random_shuffle(&task->executor->random, route->order, (size_t)route->order_count,
                      sizeof(*route->order));
}

static int
route_build(struct sl__task *task, struct sl__route *route, const struct sl__reader *reader)
{
    struct sl_worker *worker = task->executor->worker;
    const struct sl__component *component = &worker->components.items[reader->component];
    const struct sl__component *own = &worker->components.items[task->io.component];
    bool is_cyclic = own->scc >= 0 && own->scc == component->scc;
    int32_t count = (int32_t)component->tasks.count;
    route->io.grouping = reader->grouping;
    route->io.component = reader->component;
    route->io.target_count = count;
    route->io.key_count = reader->key_count;
    memcpy(route->io.keys, reader->keys, sizeof(reader->keys));
    route->io.targets = sl_calloc((size_t)count + 1, sizeof(*route->io.targets));
    route->order = sl_calloc((size_t)count + 1, sizeof(*route->order));
    route->sent = sl_calloc((size_t)count + 1, sizeof(*route->sent));
    for (int32_t i = 0; i < count; i++) {
        struct sl__outbox *outbox =
            task_outbox(task, reader->stream, component->tasks.items[i], is_cyclic);
        if (outbox == NULL) {
            return sl_err_set(SL_ENOMEM, "out of memory for a queue to task %d",
                              component->tasks.items[i]);
        }
        outbox->is_retired = false;
        route->io.targets[i] = &outbox->io;
    }
    route_order(task, route);
    return reader->grouping == SL_GROUPING_FIELDS && count > 0 ? route_groups(route, component) : 0;
}

static int
emitter_build(struct sl__task *task, struct sl__emitter_list *list, int32_t stream)
{
    struct sl_worker *worker = task->executor->worker;
    struct sl__emitter *emitter = sl_calloc(1, sizeof(*emitter));
    sl_vec_push(list, emitter);
    emitter->io.stream = stream;
    emitter->io.field_count = worker->streams.items[stream].field_count;
    emitter->io.is_direct = worker->streams.items[stream].is_direct;
    struct sl__route *routes = sl_calloc(worker->readers.count + 1, sizeof(*routes));
    emitter->io.routes = &routes->io;
    for (size_t i = 0; i < worker->readers.count; i++) {
        const struct sl__reader *reader = &worker->readers.items[i];
        if (reader->stream == stream) {
            int rc = route_build(task, &routes[emitter->io.route_count++], reader);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

static void
emitters_free(struct sl__emitter_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        sl__emitter_free(list->items[i]);
    }
    sl_vec_destroy(list);
}

/*
 * Ends of input.  A sender that finishes marks the last batch to each receiver; one that gets work
 * again after all marks the next one with -1.  A receiver counts marks, once for each stream of a
 * sender, and its input has ended when they are as many as its senders.  A sender that leaves
 * counts until it is detached, and one that had finished goes on counting then, since its mark was
 * seen; but not for receivers that came later, which never saw it (last_base).
 */
static void
count_senders(struct sl__task *task)
{
    struct sl_worker *worker = task->executor->worker;
    const struct sl__component *own = &worker->components.items[task->io.component];
    int32_t expected = 0;
    int32_t gone = 0;
    task->has_readings = false;
    for (size_t i = 0; i < worker->streams.count; i++) {
        const struct sl__component *source =
            &worker->components.items[worker->streams.items[i].component];
        bool is_read = false;
        for (size_t k = 0; k < worker->readers.count && !is_read; k++) {
            const struct sl__reader *reader = &worker->readers.items[k];
            is_read = reader->stream == (int32_t)i && reader->component == task->io.component;
        }
        if (is_read && !(own->scc >= 0 && own->scc == source->scc)) {
            expected += (int32_t)(source->tasks.count + source->leaving.count);
            gone += source->gone_finished;
            task->has_readings = true;
        }
    }
    if (task->plan_version == 0) {
        task->last_base = gone;
    }
    task->last_expected = expected + gone - task->last_base;
}

/* The new routes are valid: settles what the outboxes of the old ones become. */
static void
outboxes_settle(struct sl__task *task)
{
    struct sl_worker *worker = task->executor->worker;
    for (size_t i = 0; i < task->outboxes.count; i++) {
        struct sl__outbox *outbox = task->outboxes.items[i];
        uint32_t placed = __atomic_load_n(&worker->task_placed[outbox->io.dest], __ATOMIC_RELAXED);
        if (sl__is_remote(worker, outbox->dest_executor) && outbox->placed != placed) {
            /* Whoever was there before is gone with what it was told. */
            outbox->placed = placed;
            outbox->is_last_sent = false;
        }
        outbox->is_last = outbox->is_retired ? outbox->is_last_sent : task->is_finished;
        outbox->is_last_sent |= outbox->is_cyclic && outbox->is_last;
        if (outbox->is_retired || !sl__outbox_is_idle(outbox)) {
            sl__outbox_use(outbox);
            sl__task_touch(task);
        }
    }
}

/* Only the targets of the emitters that the task has are in use. */
static void
outboxes_revert(struct sl__task *task)
{
    for (size_t i = 0; i < task->outboxes.count; i++) {
        task->outboxes.items[i]->is_retired = true;
    }
    for (size_t i = 0; i < task->emitters.count; i++) {
        const struct sl_emitter *emitter = &task->emitters.items[i]->io;
        for (int32_t r = 0; r < emitter->route_count; r++) {
            const struct sl_route *route = &((struct sl__route *)emitter->routes)[r].io;
            for (int32_t t = 0; t < route->target_count; t++) {
                sl__outbox_of(route->targets[t])->is_retired = false;
            }
        }
    }
}

/* Builds the emitters of a task from the plan; keeps the outboxes of targets that stay. On failure
 * the task keeps what it had. */
int
sl__task_route(struct sl__task *task)
{
    struct sl_worker *worker = task->executor->worker;
    struct sl__emitter_list made = SL_VEC_INIT;
    for (size_t i = 0; i < task->outboxes.count; i++) {
        task->outboxes.items[i]->is_retired = true;
    }
    int rc = 0;
    pthread_mutex_lock(&worker->plan_lock);
    for (size_t i = 0; i < worker->streams.count && rc == 0; i++) {
        if (worker->streams.items[i].component == task->io.component) {
            rc = emitter_build(task, &made, (int32_t)i);
        }
    }
    if (rc == 0) {
        count_senders(task);
        task->plan_version = worker->plan_version;
        task->rank = worker->components.items[task->io.component].rank;
        task->scc = worker->components.items[task->io.component].scc;
    }
    pthread_mutex_unlock(&worker->plan_lock);
    if (rc != 0) {
        emitters_free(&made);
        outboxes_revert(task);
        return rc;
    }
    emitters_free(&task->emitters);
    task->emitters = made;
    outboxes_settle(task);
    if (task->io.kind == SL_TASK_BOLT && task->is_finished &&
        task->last_seen < task->last_expected) {
        sl__task_resume(task);
    }
    return 0;
}
