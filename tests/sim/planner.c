#include "sim.h"

/*
 * What `update` does with a plan: take the lock, read the plan, wait a while, write the next one in
 * a transaction that checks the lock and the version, give the lock back. The plan counts, so a
 * write that happened twice, or was told to have failed and did not, is seen.
 */

struct planner {
    struct proc *proc;
    int topology;
    char plan[24];
    struct sl_state_lock *lock;
    uint64_t timer;
    /* The read under way, and the operation whose write is under way; else 0. */
    uint64_t read;
    uint64_t operation;
    uint64_t count;
    int32_t version;
};

/* A write under way, which outlives its planner. */
struct commit {
    struct world *world;
    /* The process and its planner, while it lives. */
    uint64_t serial;
    int topology;
    uint64_t operation;
};

static void plan_later(struct planner *self);

uint64_t
operation_new(struct proc *proc)
{
    struct world *world = proc->world;
    uint64_t operation = world->next_operation++;
    sl_map_u64_put(&world->outcomes, operation, OUTCOME_OPEN);
    sl_map_u64_put(&world->open, operation, proc->serial << 32 | world_now(world));
    return operation;
}

void
operation_end(struct world *world, uint64_t operation, int status)
{
    bool is_applied = sl_map_u64_get(&world->applied, operation, NULL);
    enum outcome outcome = OUTCOME_REFUSED;
    world->is_changed = true;
    if (status == 0) {
        outcome = OUTCOME_DONE;
        world->stats.commits++;
        if (!is_applied) {
            world_fail(world, "operation %llu was told to be done and is not in the store",
                       (unsigned long long)operation);
        }
    } else if (status == SL_ETIMEOUT || status == SL_ECLOSED) {
        outcome = OUTCOME_UNKNOWN;
    } else {
        world->stats.fenced += status == SL_EFENCED;
        if (is_applied) {
            world_fail(world, "operation %llu was told to be refused (%s) and was carried out",
                       (unsigned long long)operation, sl_err_name(status));
        }
    }
    sl_map_u64_put(&world->outcomes, operation, outcome);
    sl_map_u64_remove(&world->open, operation, NULL);
}

static void
put_u64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof(value));
}

void
operation_encode(uint8_t *value, uint64_t operation, uint64_t token, uint64_t count)
{
    put_u64(value, operation);
    put_u64(value + 8, token);
    put_u64(value + 16, count);
}

bool
operation_decode(const uint8_t *value, size_t size, uint64_t *operation, uint64_t *token,
                 uint64_t *count)
{
    if (size != OPERATION_BYTES) {
        return false;
    }
    memcpy(operation, value, 8);
    memcpy(token, value + 8, 8);
    memcpy(count, value + 16, 8);
    return true;
}

static struct planner *
planner_of(const struct commit *commit)
{
    struct proc *proc = proc_by_serial(commit->world, commit->serial);
    if (proc == NULL || proc->role == NULL) {
        return NULL;
    }
    return (struct planner *)(uintptr_t)(proc->kind == CLIENT
                                             ? client_planner(proc, commit->topology)
                                             : topology_planner(proc));
}

static void
finish(struct planner *self)
{
    if (sl_state_lock_is_held(self->lock)) {
        sl_state_lock_release(self->lock, NULL, NULL);
    }
    plan_later(self);
}

static void
on_committed(void *ctx, int status, const struct sl_state_result *result)
{
    struct commit *commit = ctx;
    struct planner *self = planner_of(commit);
    (void)result;
    operation_end(commit->world, commit->operation, status);
    world_trace(commit->world, "operation %llu on t%d ended: %s",
                (unsigned long long)commit->operation, commit->topology, sl_err_name(status));
    if (status == 0) {
        commit->world->commits[commit->topology]++;
    }
    if (self != NULL && self->operation == commit->operation) {
        self->operation = 0;
        finish(self);
    }
    sl_free(commit);
}

static void
write_plan(void *arg)
{
    struct planner *self = arg;
    uint8_t value[OPERATION_BYTES];
    self->timer = 0;
    struct commit *commit = sl_calloc(1, sizeof(*commit));
    commit->world = self->proc->world;
    commit->serial = self->proc->serial;
    commit->topology = self->topology;
    commit->operation = operation_new(self->proc);
    self->operation = commit->operation;
    operation_encode(value, commit->operation, sl_state_lock_token(self->lock), self->count + 1);
    struct sl_state_op op = sl_state_op_set(self->plan, value, sizeof(value), self->version);
    sl_state_lock_commit(self->lock, &op, 1, on_committed, commit);
}

static uint64_t
later(struct planner *self, uint64_t delay_ms, sl_state_task_fn fn)
{
    return sl_state_executor_timer_start(&self->proc->executor.base, delay_ms, fn, self);
}

static void
on_read(void *ctx, int status, const struct sl_state_result *result)
{
    struct planner *self = ctx;
    uint64_t operation;
    uint64_t token;
    self->read = 0;
    if (status != 0 ||
        !operation_decode(result->value, result->size, &operation, &token, &self->count)) {
        if (status != SL_ECLOSED) {
            finish(self);
        }
        return;
    }
    self->version = result->stat.version;
    /* Sometimes so long that the lock is lost meanwhile. */
    struct sl_random *random = sl_loop_random(self->proc->loop);
    uint64_t pause = sl_random_below(random, 20) == 0 ? 1500 : 20;
    self->timer = later(self, sl_random_below(random, pause), write_plan);
}

static void
on_locked(void *ctx, int status)
{
    struct planner *self = ctx;
    self->proc->world->is_changed = true;
    if (status == 0) {
        proc_trace(self->proc, "has the lock of t%d with token %llu", self->topology,
                   (unsigned long long)sl_state_lock_token(self->lock));
        self->read = sl_state_get(self->proc->store, self->plan, on_read, self);
    } else if (status != SL_ECLOSED) {
        plan_later(self);
    }
}

static void
acquire(void *arg)
{
    static const int64_t limits[] = {0, 300, 3000, SL_STATE_FOREVER};
    struct planner *self = arg;
    self->timer = 0;
    sl_state_lock_acquire(self->lock, limits[sl_random_below(sl_loop_random(self->proc->loop), 4)],
                          on_locked, self);
}

static void
plan_later(struct planner *self)
{
    sl_state_executor_timer_stop(&self->proc->executor.base, &self->timer);
    self->timer =
        later(self, 100 + sl_random_below(sl_loop_random(self->proc->loop), 1500), acquire);
}

static void
on_lock_event(void *ctx, enum sl_state_lock_event event)
{
    struct planner *self = ctx;
    self->proc->world->is_changed = true;
    if (event == SL_STATE_LOCK_LOST) {
        proc_trace(self->proc, "loses the lock of t%d", self->topology);
        /* A write that is under way or comes now is fenced, and goes on from there. */
    }
}

struct planner *
planner_new(struct proc *proc, int topology)
{
    struct planner *self = sl_calloc(1, sizeof(*self));
    char path[24];
    self->proc = proc;
    self->topology = topology;
    snprintf(self->plan, sizeof(self->plan), "/plans/t%d", topology);
    snprintf(path, sizeof(path), "/locks/t%d", topology);
    self->lock = sl_state_lock_new(proc->store, path, proc->name, on_lock_event, self);
    plan_later(self);
    return self;
}

void
planner_free(struct planner *self)
{
    if (self != NULL) {
        sl_state_executor_timer_stop(&self->proc->executor.base, &self->timer);
        sl_state_lock_free(self->lock);
        /* A read under way has this planner as its context; a write has a commit of its own. */
        sl_state_cancel(self->proc->store, self->read);
        sl_free(self);
    }
}

const struct sl_state_lock *
planner_lock(const struct planner *planner)
{
    return planner != NULL ? planner->lock : NULL;
}

/* A client: one planner for each topology. */
struct client {
    struct planner *planners[TOPOLOGIES];
};

static void *
start(struct proc *proc)
{
    struct client *client = sl_calloc(1, sizeof(*client));
    for (int i = 0; i < TOPOLOGIES; i++) {
        client->planners[i] = planner_new(proc, i);
    }
    return client;
}

static void
stop(void *role)
{
    struct client *client = role;
    for (int i = 0; i < TOPOLOGIES; i++) {
        planner_free(client->planners[i]);
    }
    sl_free(client);
}

static void
check(void *role)
{
    (void)role;
}

const struct role client_role = {"client", start, stop, check};

const struct planner *
client_planner(const struct proc *proc, int topology)
{
    return ((const struct client *)proc->role)->planners[topology];
}
