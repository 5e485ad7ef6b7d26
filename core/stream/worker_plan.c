/* The plan of a worker: which components, streams and readers there are, and where each task is. */

#include "base/alloc.h"
#include "stream/remote.h"
#include "stream/root_priv.h"
#include "stream/stream_priv.h"
#include "stream/worker.h"
#include "topology/topology.h"

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

int
sl_worker_stream(struct sl_worker *self, int32_t component, const char *name, int32_t field_count,
                 int32_t is_direct)
{
    if (name == NULL || !sl__has_component(self, component) || field_count < 0) {
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
    if (stream < 0 || (size_t)stream >= self->streams.count ||
        !sl__has_component(self, component) || key_count < 0 ||
        key_count > (int32_t)(sizeof(reader.keys) / sizeof(reader.keys[0]))) {
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
    if (!sl__has_component(self, component) || count < 1 || owners == NULL) {
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

/* Which of the ackers a task is or was, -1 = none. */
static int32_t
acker_at(const struct sl_worker *self, int32_t id)
{
    int32_t at = self->acker_count - 1;
    while (at >= 0 && self->acker_task[at] != id) {
        at--;
    }
    return at;
}

/* What forbids another task of this kind, 0 = nothing. */
static int
check_kind(const struct sl_worker *self, int32_t kind, int32_t id)
{
    if (kind == SL_TASK_SPOUT && self->remote != NULL && id >= self->spout_capacity) {
        return sl_err_set(SL_ELIMIT, "task %d: ids of spout tasks end at %d", id,
                          SL__SPOUT_IDS - 1);
    }
    if (kind == SL_TASK_SPOUT && self->remote == NULL &&
        self->spout_count >= self->spout_capacity) {
        return sl_err_set(SL_ELIMIT, "task %d: more than %d spout tasks", id, self->spout_capacity);
    }
    if (kind != SL_TASK_ACKER || acker_at(self, id) >= 0) {
        return 0;
    }
    if (self->acker_count >= self->acker_capacity) {
        return sl_err_set(SL_ELIMIT, "task %d: more than %d ackers", id, self->acker_capacity);
    }
    if (self->is_live) {
        /* Which acker keeps a tree follows from their number. */
        return sl_err_set(SL_EINVAL, "task %d: ackers can not change while tasks run", id);
    }
    return 0;
}

int
sl_worker_task(struct sl_worker *self, int32_t component, int32_t id, int32_t index,
               int32_t executor)
{
    if (!sl__has_component(self, component) || id < 0 || id >= self->task_capacity || index < 0 ||
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
            int32_t at = acker_at(self, id);
            at = at >= 0 ? at : self->acker_count++;
            self->acker_task[at] = id;
            sl__publish(&self->acker_executor[at], executor);
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
    if (component->kind == SL_TASK_ACKER && self->tasks[id] != NULL) {
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
    } else {
        self->task_executor[id] = self->executor_count;
        sl__publish(&self->task_peer[id], peer);
        sl__publish(&self->task_placed[id], self->task_placed[id] + 1);
        ids_insert(&component->leaving, id);
        if (component->kind == SL_TASK_SPOUT) {
            sl__spout_set_home(self, id, id, self->executor_count);
        } else if (component->kind == SL_TASK_ACKER) {
            sl__publish(&self->acker_executor[acker_at(self, id)], self->executor_count);
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
        sl__has_component(self, component) ? self->components.items[component].group_count : 0;
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

int32_t
sl_worker_component_count(struct sl_worker *self)
{
    return (int32_t)self->components.count;
}

const char *
sl_worker_component_name(struct sl_worker *self, int32_t component)
{
    return sl__has_component(self, component) ? self->components.items[component].name : NULL;
}
