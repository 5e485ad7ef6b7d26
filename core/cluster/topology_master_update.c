/*
 * The change of a running topology from one plan to the next, as a transaction:
 *
 *     LOCK     take the update lock
 *     CHECK    the stored plan is still the one that was planned from
 *     START    start new containers; their workers register, load the code and get the new plan
 *     PAUSE    spouts are not called any more
 *     DRAIN    wait until nothing is in flight, with a limit
 *     MOVE     keyed state of groups that change their owner is copied to where it goes, and kept
 *              there aside
 *     COMMIT   the new plan replaces the old one by compare-and-set, guarded by the lock
 *     SWITCH   every worker gets the new plan and puts the state in; spouts go on; what is left
 * over ends
 *
 * What fails before the commit is rolled back: new containers end, and all workers get the old plan
 * again, in a new epoch, which makes them drop what was kept aside. After the commit there is only
 * the way forward: a worker that fails is restarted and gets the new plan like any other.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "cluster/topology_master_priv.h"

enum update_step {
    STEP_LOCK,
    STEP_CHECK,
    STEP_START,
    STEP_PAUSE,
    STEP_DRAIN,
    STEP_MOVE,
    STEP_COMMIT,
    STEP_SWITCH,
    STEP_ROLLBACK,
};

enum {
    START_MS = 60000,
    SETTLE_MS = 60000,
    MOVE_MS = 30000,
};

struct groups SL_VEC_BODY(uint32_t);

/* State on its way from one worker to another: pieces are asked for and handed on in turns. */
struct transfer {
    struct sl_topology_master *master;
    int32_t component;
    /* Not 0: all state of this task. */
    int32_t task;
    int32_t from;
    int32_t to;
    struct groups groups;
    char *cursor;
    /* The call under way, of a worker that was this process then. */
    struct sl__tm_worker *callee;
    uint64_t callee_process;
    uint64_t call;
};

/* What a call of the store comes back to; the update may be gone by then. */
struct update_call {
    struct sl__tm_update *update;
};

struct sl__tm_update {
    struct sl_topology_master *master;
    /* The call of the store that is under way, or NULL. */
    struct update_call *call;
    /* Answered once; NULL afterwards. */
    struct sl_rpc_request *request;
    enum update_step step;
    struct sl__tm_plan *next;
    struct sl_buf current;
    struct sl_state_lock *lock;
    uint64_t drain_ms;
    uint64_t start_ms;
    uint64_t began_ms;
    uint64_t paused_at_ms;
    uint64_t resumed_at_ms;
    int32_t node_version;
    SL_VEC(int32_t) added;
    SL_VEC(int32_t) removed;
    bool is_start_sent;
    /* The plan in force with the new containers, which have no tasks in it. */
    struct sl_physical_plan bridge;
    SL_VEC(struct transfer *) transfers;
    size_t open_transfers;
    struct sl_timer timer;
    struct sl_update_result result;
    char reason[SL_REASON_SIZE];
};

static void fail(struct sl__tm_update *update, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void enter(struct sl__tm_update *update, enum update_step step);

static void
transfer_free(struct transfer *transfer)
{
    if (transfer->call != 0 && transfer->callee->is_registered &&
        transfer->callee->peer.process == transfer->callee_process) {
        sl_rpc_cancel(transfer->callee->peer.gateway, transfer->call);
    }
    sl_vec_destroy(&transfer->groups);
    sl_free(transfer->cursor);
    sl_free(transfer);
}

static struct update_call *
call_new(struct sl__tm_update *update)
{
    struct update_call *call = sl_calloc(1, sizeof(*call));
    call->update = update;
    update->call = call;
    return call;
}

/* The update that the call belongs to, or NULL when it is gone; the call is gone, too. */
static struct sl__tm_update *
call_end(struct update_call *call)
{
    struct sl__tm_update *update = call->update;
    if (update != NULL) {
        update->call = NULL;
    }
    sl_free(call);
    return update;
}

static void
transfers_clear(struct sl__tm_update *update)
{
    for (size_t i = 0; i < update->transfers.count; i++) {
        transfer_free(update->transfers.items[i]);
    }
    sl_vec_clear(&update->transfers);
}

static void
update_free(struct sl__tm_update *update)
{
    if (update->call != NULL) {
        update->call->update = NULL;
    }
    sl_timer_stop(&update->timer);
    transfers_clear(update);
    sl_vec_destroy(&update->transfers);
    sl_vec_destroy(&update->added);
    sl_vec_destroy(&update->removed);
    sl_buf_destroy(&update->current);
    sl__tm_plan_free(update->next);
    if (update->lock != NULL) {
        sl_state_lock_free(update->lock);
    }
    sl_free(update);
}

static void
reply(struct sl__tm_update *update)
{
    struct sl_buf out = {0};
    if (update->request == NULL) {
        return;
    }
    update->result.reason = update->reason;
    update->result.total_ms = sl_loop_now_ms(update->master->loop) - update->began_ms;
    sl_update_result_encode(&update->result, &out);
    sl_rpc_reply(update->request, out.data, out.size);
    update->request = NULL;
    sl_buf_destroy(&out);
}

/* Ends the update, whatever came of it. */
static void
finish(struct sl__tm_update *update)
{
    struct sl_topology_master *self = update->master;
    reply(update);
    self->update = NULL;
    update_free(update);
}

void
sl__tm_update_abandon(struct sl_topology_master *self)
{
    struct sl__tm_update *update = self->update;
    if (update == NULL) {
        return;
    }
    snprintf(update->reason, sizeof(update->reason), "the topology ends");
    update->result.outcome = SL_UPDATE_NOT_ROLLED_BACK;
    update->result.code = SL_ECANCELED;
    finish(update);
}

struct sl__tm_plan *
sl__tm_update_plan_of(const struct sl_topology_master *self, int32_t id)
{
    const struct sl__tm_update *update = self->update;
    if (update == NULL || update->step < STEP_START || update->step > STEP_COMMIT ||
        sl_physical_plan_container(&update->next->physical, id) == NULL) {
        return NULL;
    }
    return update->next;
}

bool
sl__tm_update_holds_plans(const struct sl_topology_master *self)
{
    return self->update != NULL && self->update->step < STEP_SWITCH;
}

bool
sl__tm_update_keeps_pause(const struct sl_topology_master *self)
{
    return self->update != NULL && self->update->step == STEP_SWITCH;
}

/* Ends containers that no plan has any more. */
static void
remove_containers(struct sl_topology_master *self, const int32_t *ids, size_t count,
                  const char *cause)
{
    const struct sl_launcher *launcher = &self->options.launcher;
    for (size_t i = 0; i < count; i++) {
        struct sl__tm_worker *worker = sl__tm_worker_of(self, ids[i]);
        if (worker != NULL) {
            sl__tm_send_shutdown(worker, cause);
            sl__tm_worker_remove(self, worker);
        }
    }
    if (count > 0) {
        launcher->remove_containers(launcher->self, ids, count);
    }
}

static void
fail_v(struct sl__tm_update *update, int code, const char *reason)
{
    struct sl_topology_master *self = update->master;
    if (update->step >= STEP_SWITCH) {
        return;
    }
    snprintf(update->reason, sizeof(update->reason), "%s", reason);
    update->result.code = code;
    sl__tm_event(self, "update: %s", update->reason);
    sl__tm_drain_stop(self);
    transfers_clear(update);
    if (update->step <= STEP_CHECK) {
        /* Nothing was touched. */
        if (update->request != NULL) {
            sl_rpc_refuse(update->request, SL_RPC_FAILURE, code, "%s", update->reason);
            update->request = NULL;
        }
        finish(update);
        return;
    }
    remove_containers(self, update->added.items, update->added.count, "the update failed");
    update->result.outcome = SL_UPDATE_ROLLED_BACK;
    /* The old plan again, in a new epoch: spouts go on, and what was kept aside is dropped. */
    self->is_dirty = true;
    self->is_settled = false;
    enter(update, STEP_ROLLBACK);
    sl__tm_advance(self);
}

static void
fail(struct sl__tm_update *update, int code, const char *fmt, ...)
{
    char reason[SL_REASON_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);
    fail_v(update, code, reason);
}

void
sl__tm_update_worker_lost(struct sl_topology_master *self, int32_t id, const char *why)
{
    struct sl__tm_update *update = self->update;
    /* A commit that is under way decides by itself; a lost worker then gets the plan it gave. */
    if (update != NULL && update->step > STEP_CHECK && update->step < STEP_COMMIT) {
        fail(update, SL_EUNAVAIL, "container %d: %s", id, why);
    }
}

/* Step by step. */

static void
lock_event(void *ctx, enum sl_state_lock_event event)
{
    struct sl__tm_update *update = ctx;
    if (event == SL_STATE_LOCK_LOST && update->step < STEP_COMMIT) {
        fail(update, SL_EFENCED, "the update lock was lost");
    }
}

static void
checked(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__tm_update *update = call_end(ctx);
    if (update == NULL) {
        return;
    }
    if (status != 0) {
        fail(update, status, "%s", sl_err_last()->msg);
    } else if (result->size != update->current.size ||
               memcmp(result->value, update->current.data, result->size) != 0) {
        fail(update, SL_ECONFLICT,
             "the plan is not the one that was planned from (version %llu) any more",
             (unsigned long long)update->result.from_version);
    } else {
        update->node_version = result->stat.version;
        enter(update, STEP_START);
    }
}

static void
locked(void *ctx, int status)
{
    struct sl__tm_update *update = ctx;
    if (status != 0) {
        fail(update, status, "%s", sl_err_last()->msg);
        return;
    }
    enter(update, STEP_CHECK);
}

/* Containers of one plan that another does not have. */
static void
missing_containers(const struct sl__tm_plan *from, const struct sl__tm_plan *other, int32_t **ids,
                   size_t *count)
{
    size_t found = 0;
    *ids = sl_alloc(((size_t)from->physical.container_count + 1) * sizeof(**ids));
    for (int32_t i = 0; i < from->physical.container_count; i++) {
        int32_t id = from->physical.containers[i].id;
        if (sl_physical_plan_container(&other->physical, id) == NULL) {
            (*ids)[found++] = id;
        }
    }
    *count = found;
}

/* The launcher gave other ids: the plan is written anew with them. */
static int
remap(struct sl__tm_update *update, const int32_t *asked)
{
    struct sl_stored_plan *stored = &update->next->stored;
    bool is_changed = false;
    for (size_t i = 0; i < update->added.count; i++) {
        is_changed = is_changed || asked[i] != update->added.items[i];
    }
    if (!is_changed) {
        return 0;
    }
    /* From the asked ids to a number that none has, so that a swap works. */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < update->added.count; i++) {
            for (int32_t k = 0; k < stored->plan.container_count; k++) {
                struct sl_packing_container *container = &stored->plan.containers[k];
                if (pass == 0 && container->id == asked[i]) {
                    container->id = -(int32_t)i - 1;
                } else if (pass == 1 && container->id == -(int32_t)i - 1) {
                    container->id = update->added.items[i];
                }
            }
        }
    }
    int rc = sl_packing_plan_check(&stored->plan, stored->component_count);
    sl_buf_clear(&update->next->bytes);
    if (rc == 0) {
        rc = sl_stored_plan_encode(stored, &update->next->bytes);
    }
    if (rc == 0) {
        sl_physical_plan_from_stored(stored, update->master->execution.topology_id,
                                     &update->next->arena, &update->next->physical);
    }
    return rc;
}

static void
start_containers(struct sl__tm_update *update)
{
    struct sl_topology_master *self = update->master;
    const struct sl_launcher *launcher = &self->options.launcher;
    size_t count = update->added.count;
    int32_t *asked = sl_alloc((count + 1) * sizeof(*asked));
    int rc = 0;
    if (count > 0) {
        memcpy(asked, update->added.items, count * sizeof(*asked));
        sl__tm_event(self, "update: starting %zu containers", count);
        rc = launcher->add_containers(launcher->self, update->added.items, count);
    }
    if (rc == 0) {
        rc = remap(update, asked);
    }
    sl_free(asked);
    for (size_t i = 0; i < count; i++) {
        sl__tm_worker_add(self, update->added.items[i]);
    }
    if (rc != 0) {
        fail(update, rc, "%s", sl_err_last()->msg);
    }
}

static int
compare_containers(const void *left, const void *right)
{
    const struct sl_physical_container *a = left;
    const struct sl_physical_container *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

/* Workers take connections of those only that their plan has: the running ones learn of the new
 * ones before there is anything for them to do. */
static void
make_bridge(struct sl__tm_update *update)
{
    const struct sl_topology_master *self = update->master;
    const struct sl_physical_plan *old = &self->plan->physical;
    struct sl_physical_plan *bridge = &update->bridge;
    size_t count = (size_t)old->container_count;
    size_t total = count + update->added.count;
    *bridge = *old;
    bridge->containers =
        sl_arena_calloc(&update->next->arena, total + 1, sizeof(*bridge->containers));
    memcpy(bridge->containers, old->containers, count * sizeof(*old->containers));
    for (size_t i = 0; i < update->added.count; i++) {
        bridge->containers[count + i].id = update->added.items[i];
    }
    bridge->container_count = (int32_t)total;
    qsort(bridge->containers, total, sizeof(*bridge->containers), compare_containers);
    bridge->state = self->execution.is_active ? SL_TOPOLOGY_RUNNING : SL_TOPOLOGY_PAUSED;
}

/* All new workers are there: they get the new plan, paused, and the others are told of them. */
static void
send_start(struct sl__tm_update *update)
{
    struct sl_topology_master *self = update->master;
    update->is_start_sent = true;
    make_bridge(update);
    update->bridge.epoch = ++self->epoch;
    update->next->physical.epoch = ++self->epoch;
    update->next->physical.state = SL_TOPOLOGY_PAUSED;
    sl__tm_plan_fill(self, &update->bridge);
    sl__tm_plan_fill(self, &update->next->physical);
    for (size_t i = 0; i < update->added.count; i++) {
        sl__tm_send_plan(sl__tm_worker_of(self, update->added.items[i]), &update->next->physical);
    }
    for (int32_t i = 0; i < self->plan->physical.container_count; i++) {
        sl__tm_send_plan(sl__tm_worker_of(self, self->plan->physical.containers[i].id),
                         &update->bridge);
    }
}

static bool
is_start_answered(const struct sl__tm_update *update)
{
    const struct sl_topology_master *self = update->master;
    for (int32_t i = 0; i < update->bridge.container_count; i++) {
        int32_t id = update->bridge.containers[i].id;
        uint64_t epoch = sl_physical_plan_container(&self->plan->physical, id) != NULL
                             ? update->bridge.epoch
                             : update->next->physical.epoch;
        if (sl__tm_worker_of(self, id)->ready_epoch != epoch) {
            return false;
        }
    }
    return true;
}

static void
advance_start(struct sl__tm_update *update)
{
    struct sl_topology_master *self = update->master;
    for (size_t i = 0; i < update->added.count; i++) {
        if (!sl__tm_worker_of(self, update->added.items[i])->is_registered) {
            return;
        }
    }
    if (!update->is_start_sent && update->added.count > 0) {
        send_start(update);
    }
    if (update->added.count == 0 || is_start_answered(update)) {
        enter(update, STEP_PAUSE);
    }
}

static void
advance_pause(struct sl__tm_update *update)
{
    struct sl_topology_master *self = update->master;
    bool is_paused = true;
    for (int32_t i = 0; i < self->plan->physical.container_count; i++) {
        struct sl__tm_worker *worker =
            sl__tm_worker_of(self, self->plan->physical.containers[i].id);
        if (worker->is_active && !worker->is_switching) {
            sl__tm_send_spouts(worker, false);
        }
        is_paused = is_paused && !worker->is_active && !worker->is_switching;
    }
    if (is_paused) {
        enter(update, STEP_DRAIN);
    }
}

static void
drained(void *ctx, int status)
{
    struct sl__tm_update *update = ctx;
    if (status != 0) {
        fail(update, SL_ETIMEOUT, "%llu roots and tuples are still in flight after %llu ms",
             (unsigned long long)update->master->drain.left, (unsigned long long)update->drain_ms);
        return;
    }
    enter(update, STEP_MOVE);
}

/* Where a task runs in a plan; -1: nowhere. */
static int32_t
container_of_task(const struct sl__tm_plan *plan, int32_t task)
{
    int32_t low = 0;
    int32_t high = plan->physical.task_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (plan->physical.tasks[middle].task < task) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < plan->physical.task_count && plan->physical.tasks[low].task == task
               ? plan->physical.tasks[low].container
               : -1;
}

static struct transfer *
transfer_between(struct sl__tm_update *update, int32_t component, int32_t task, int32_t from,
                 int32_t to)
{
    for (size_t i = 0; i < update->transfers.count; i++) {
        struct transfer *transfer = update->transfers.items[i];
        if (transfer->component == component && transfer->task == task && transfer->from == from &&
            transfer->to == to) {
            return transfer;
        }
    }
    struct transfer *transfer = sl_calloc(1, sizeof(*transfer));
    transfer->master = update->master;
    transfer->component = component;
    transfer->task = task;
    transfer->from = from;
    transfer->to = to;
    sl_vec_push(&update->transfers, transfer);
    return transfer;
}

/* Key groups that change their owner, or whose owner moves. */
static void
plan_group_transfers(struct sl__tm_update *update, int32_t component)
{
    const struct sl__tm_plan *old = update->master->plan;
    const struct sl_plan_component *before = &old->stored.components[component];
    int32_t place = sl_stored_plan_component(&update->next->stored, before->name);
    const struct sl_plan_component *after =
        place >= 0 ? &update->next->stored.components[place] : NULL;
    if (after == NULL) {
        return;
    }
    for (uint32_t i = 0; i < before->key_group_count && i < after->key_group_count; i++) {
        int32_t from = container_of_task(old, before->key_groups[i]);
        int32_t to = container_of_task(update->next, after->key_groups[i]);
        if (before->key_groups[i] != after->key_groups[i] || from != to) {
            struct transfer *transfer = transfer_between(update, component, 0, from, to);
            sl_vec_push(&transfer->groups, i);
            update->result.groups_moved++;
        }
    }
}

/* Tasks of components without key groups that move take what they have along. */
static void
plan_task_transfers(struct sl__tm_update *update)
{
    const struct sl_physical_plan *old = &update->master->plan->physical;
    for (int32_t i = 0; i < old->task_count; i++) {
        const struct sl_physical_task *task = &old->tasks[i];
        int32_t to = container_of_task(update->next, task->task);
        if (to >= 0 && to != task->container &&
            old->components[task->component].key_groups == NULL) {
            transfer_between(update, task->component, task->task, task->container, to);
        }
    }
}

static void export_next(struct transfer *transfer);

static void
call_worker(struct transfer *transfer, int32_t id, uint32_t method, const struct sl_buf *body,
            sl_rpc_done_fn done)
{
    struct sl__tm_worker *worker = sl__tm_worker_of(transfer->master, id);
    transfer->callee = worker;
    transfer->callee_process = worker->peer.process;
    transfer->call =
        sl_rpc_call(worker->peer.gateway, method, body->data, body->size, MOVE_MS, done, transfer);
}

static void
staged(void *ctx, const struct sl_rpc_result *result)
{
    struct transfer *transfer = ctx;
    struct sl__tm_update *update = transfer->master->update;
    transfer->call = 0;
    if (result->status != SL_RPC_SUCCESS) {
        fail(update, result->code, "state that moves to container %d: %s", transfer->to,
             result->reason);
    } else if (transfer->cursor[0] != '\0') {
        export_next(transfer);
    } else if (--update->open_transfers == 0) {
        enter(update, STEP_COMMIT);
    }
}

static void
exported(void *ctx, const struct sl_rpc_result *result)
{
    struct transfer *transfer = ctx;
    struct sl__tm_update *update = transfer->master->update;
    struct sl_arena arena;
    struct sl_worker_state state;
    struct sl_buf body = {0};
    transfer->call = 0;
    if (result->status != SL_RPC_SUCCESS) {
        fail(update, result->code, "state that moves from container %d: %s", transfer->from,
             result->reason);
        return;
    }
    sl_arena_create(&arena, 0, 16 * 1024 * 1024);
    if (sl_worker_exported_decode(result->body, result->size, &arena, &state) != 0) {
        fail(update, SL_EPROTO, "state that moves from container %d: %s", transfer->from,
             sl_err_last()->msg);
    } else {
        sl_free(transfer->cursor);
        transfer->cursor = sl_strdup(state.cursor);
        state.plan_version = update->next->stored.version;
        for (size_t i = 0; i < state.count; i++) {
            update->result.bytes_moved += state.pieces[i].size;
        }
        sl_worker_stage_encode(&state, &body);
        call_worker(transfer, transfer->to, SL_WORKER_STAGE, &body, staged);
    }
    sl_buf_destroy(&body);
    sl_arena_destroy(&arena);
}

static void
export_next(struct transfer *transfer)
{
    struct sl_buf body = {0};
    struct sl_worker_export wanted = {
        .component = transfer->master->plan->stored.components[transfer->component].name,
        .groups = transfer->groups.items,
        .group_count = transfer->groups.count,
        .cursor = transfer->cursor != NULL ? transfer->cursor : "",
        .task = transfer->task,
    };
    sl_worker_export_encode(&wanted, &body);
    call_worker(transfer, transfer->from, SL_WORKER_EXPORT, &body, exported);
    sl_buf_destroy(&body);
}

static void
start_moving(struct sl__tm_update *update)
{
    for (int32_t i = 0; i < update->master->plan->stored.component_count; i++) {
        plan_group_transfers(update, i);
    }
    plan_task_transfers(update);
    update->open_transfers = update->transfers.count;
    for (size_t i = 0; i < update->transfers.count; i++) {
        export_next(update->transfers.items[i]);
    }
    if (update->transfers.count == 0) {
        enter(update, STEP_COMMIT);
    }
}

/* The new plan is in force. */
static void
switch_plans(struct sl__tm_update *update)
{
    struct sl_topology_master *self = update->master;
    sl__tm_plan_free(self->plan);
    self->plan = update->next;
    update->next = NULL;
    self->is_dirty = true;
    self->is_settled = false;
    update->result.to_version = self->plan->stored.version;
    sl__tm_event(self, "update: plan %llu is in force",
                 (unsigned long long)self->plan->stored.version);
    enter(update, STEP_SWITCH);
    sl__tm_advance(self);
}

static void look_at_outcome(struct sl__tm_update *update);

static void
looked(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__tm_update *update = call_end(ctx);
    if (update == NULL) {
        return;
    }
    const struct sl_buf *next = &update->next->bytes;
    if (status == SL_ETIMEOUT || status == SL_EUNAVAIL) {
        look_at_outcome(update);
    } else if (status == 0 && result->size == next->size &&
               memcmp(result->value, next->data, next->size) == 0) {
        switch_plans(update);
    } else {
        fail(update, SL_ECONFLICT, "the new plan could not be stored");
    }
}

/* The answer to the commit was lost: what is stored tells. */
static void
look_at_outcome(struct sl__tm_update *update)
{
    char path[SL_STATE_PATH_MAX + 1];
    sl_state_get(update->master->options.store,
                 sl_layout_path(path, SL_LAYOUT_PLAN, update->master->topology), looked,
                 call_new(update));
}

static void
committed(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__tm_update *update = call_end(ctx);
    (void)result;
    if (update == NULL) {
        return;
    }
    if (status == 0) {
        switch_plans(update);
    } else if (status == SL_ETIMEOUT || status == SL_EUNAVAIL) {
        look_at_outcome(update);
    } else {
        fail(update, status, "the new plan could not be stored: %s", sl_err_last()->msg);
    }
}

static void
commit(struct sl__tm_update *update)
{
    char path[SL_STATE_PATH_MAX + 1];
    const struct sl_buf *next = &update->next->bytes;
    struct sl_state_op op =
        sl_state_op_set(sl_layout_path(path, SL_LAYOUT_PLAN, update->master->topology), next->data,
                        next->size, update->node_version);
    sl_state_lock_commit(update->lock, &op, 1, committed, call_new(update));
}

static void
step_is_late(void *ctx, uint64_t ticket)
{
    struct sl__tm_update *update = ctx;
    (void)ticket;
    switch (update->step) {
    case STEP_START:
        fail(update, SL_ETIMEOUT, "the new containers do not run after %llu ms",
             (unsigned long long)update->start_ms);
        break;
    case STEP_PAUSE:
        fail(update, SL_ETIMEOUT, "the spouts are not paused after %d ms", SETTLE_MS);
        break;
    case STEP_SWITCH:
    case STEP_ROLLBACK:
        snprintf(update->reason, sizeof(update->reason), "%s not all containers run plan %llu yet",
                 update->step == STEP_SWITCH ? "committed, but" : "rolled back, but",
                 (unsigned long long)update->master->plan->stored.version);
        update->result.outcome = SL_UPDATE_NOT_ROLLED_BACK;
        update->result.code = SL_ETIMEOUT;
        finish(update);
        break;
    default:
        break;
    }
}

static void
enter(struct sl__tm_update *update, enum update_step step)
{
    struct sl_topology_master *self = update->master;
    char path[SL_STATE_PATH_MAX + 1];
    update->step = step;
    sl_timer_stop(&update->timer);
    switch (step) {
    case STEP_LOCK:
        break;
    case STEP_CHECK:
        sl_state_get(self->options.store, sl_layout_path(path, SL_LAYOUT_PLAN, self->topology),
                     checked, call_new(update));
        break;
    case STEP_START:
        if (!self->is_settled) {
            fail(update, SL_EAGAIN, "a worker was lost while the lock was taken");
            break;
        }
        sl_timer_start(self->loop, &update->timer, update->start_ms, step_is_late, update);
        start_containers(update);
        sl__tm_advance(self);
        break;
    case STEP_PAUSE:
        update->paused_at_ms = sl_loop_now_ms(self->loop);
        sl__tm_event(self, "update: pausing spouts");
        sl_timer_start(self->loop, &update->timer, SETTLE_MS, step_is_late, update);
        advance_pause(update);
        break;
    case STEP_DRAIN:
        sl__tm_event(self, "update: draining");
        sl__tm_drain_start(self, update->drain_ms, drained, update);
        break;
    case STEP_MOVE:
        sl__tm_event(self, "update: moving state");
        start_moving(update);
        break;
    case STEP_COMMIT:
        transfers_clear(update);
        commit(update);
        break;
    case STEP_SWITCH:
    case STEP_ROLLBACK:
        sl_timer_start(self->loop, &update->timer, SETTLE_MS, step_is_late, update);
        break;
    }
}

static bool
are_spouts_as_wanted(const struct sl_topology_master *self)
{
    for (int32_t i = 0; i < self->plan->physical.container_count; i++) {
        const struct sl__tm_worker *worker =
            sl__tm_worker_of(self, self->plan->physical.containers[i].id);
        if (worker == NULL || worker->ready_epoch != self->epoch || worker->is_switching ||
            worker->is_active != self->execution.is_active) {
            return false;
        }
    }
    return true;
}

/* The way back into ordinary life is that of every change; here is only noticed when it is done. */
static void
advance_end(struct sl__tm_update *update)
{
    struct sl_topology_master *self = update->master;
    if (update->resumed_at_ms == 0 && !self->is_dirty && are_spouts_as_wanted(self)) {
        update->resumed_at_ms = sl_loop_now_ms(self->loop);
        if (update->paused_at_ms != 0 && self->execution.is_active) {
            update->result.paused_ms = update->resumed_at_ms - update->paused_at_ms;
        }
    }
    if (!self->is_settled) {
        return;
    }
    if (update->step == STEP_SWITCH) {
        remove_containers(self, update->removed.items, update->removed.count,
                          "not in the plan any more");
        sl__tm_event(self, "update: done, spouts were paused for %llu ms",
                     (unsigned long long)update->result.paused_ms);
    } else {
        sl__tm_event(self, "update: rolled back");
    }
    finish(update);
}

void
sl__tm_update_advance(struct sl_topology_master *self)
{
    struct sl__tm_update *update = self->update;
    if (update == NULL) {
        return;
    }
    switch (update->step) {
    case STEP_START:
        advance_start(update);
        break;
    case STEP_PAUSE:
        advance_pause(update);
        break;
    case STEP_SWITCH:
    case STEP_ROLLBACK:
        advance_end(update);
        break;
    default:
        break;
    }
}

/* The request. */

static int
check_request(const struct sl_topology_master *self, const struct sl_update_request *wanted)
{
    if (self->phase != SL__TM_LEADING) {
        return sl_err_set(SL_EAGAIN, "%s is not led yet, or ends", self->topology);
    }
    if (self->update != NULL) {
        return sl_err_set(SL_ECONFLICT, "the lock is held by another update of %s", self->topology);
    }
    if (!self->is_settled) {
        return sl_err_set(SL_EAGAIN, "%s is starting or recovering; try again when it runs",
                          self->topology);
    }
    if (self->options.launcher.add_containers == NULL ||
        self->options.launcher.remove_containers == NULL) {
        return sl_err_set(SL_EINVAL, "the scheduler of %s can not change its containers",
                          self->topology);
    }
    if (wanted->current_size != self->plan->bytes.size ||
        memcmp(wanted->current, self->plan->bytes.data, wanted->current_size) != 0) {
        return sl_err_set(SL_ECONFLICT, "the plan is at version %llu, not the one planned from",
                          (unsigned long long)self->plan->stored.version);
    }
    return 0;
}

/* A task that there is and will be stays what it is: its state could go nowhere else. */
static int
check_tasks(const struct sl__tm_plan *old, const struct sl__tm_plan *next)
{
    int32_t at = 0;
    for (int32_t i = 0; i < next->physical.task_count; i++) {
        const struct sl_physical_task *task = &next->physical.tasks[i];
        while (at < old->physical.task_count && old->physical.tasks[at].task < task->task) {
            at++;
        }
        const struct sl_physical_task *was = &old->physical.tasks[at];
        if (at < old->physical.task_count && was->task == task->task &&
            (was->component != task->component || was->index != task->index)) {
            return sl_err_set(SL_EINVAL, "the proposed plan makes another task of task %d",
                              task->task);
        }
    }
    return 0;
}

static int
check_proposed(const struct sl_topology_master *self, const struct sl__tm_plan *next)
{
    if (next->stored.version != self->plan->stored.version + 1) {
        return sl_err_set(SL_EINVAL, "the proposed plan has version %llu, it must be %llu",
                          (unsigned long long)next->stored.version,
                          (unsigned long long)self->plan->stored.version + 1);
    }
    for (int32_t i = 0; i < self->plan->stored.component_count; i++) {
        const struct sl_plan_component *before = &self->plan->stored.components[i];
        int32_t place = sl_stored_plan_component(&next->stored, before->name);
        if (place != i || next->stored.components[i].key_group_count != before->key_group_count) {
            return sl_err_set(SL_EINVAL, "the proposed plan does not have component %s as it was",
                              before->name);
        }
    }
    return check_tasks(self->plan, next);
}

static void
begin(struct sl_topology_master *self, struct sl_rpc_request *request,
      const struct sl_update_request *wanted, struct sl__tm_plan *take_next)
{
    struct sl__tm_update *update = sl_calloc(1, sizeof(*update));
    char path[SL_STATE_PATH_MAX + 1];
    char owner[SL_REASON_SIZE];
    int32_t *ids;
    size_t count;
    update->master = self;
    update->request = request;
    update->next = take_next;
    update->began_ms = sl_loop_now_ms(self->loop);
    update->drain_ms = wanted->drain_timeout_ms;
    update->start_ms = wanted->start_timeout_ms != 0 ? wanted->start_timeout_ms : START_MS;
    update->result.from_version = self->plan->stored.version;
    update->result.to_version = update->result.from_version;
    sl_buf_append(&update->current, wanted->current, wanted->current_size);
    missing_containers(take_next, self->plan, &ids, &count);
    update->added.items = ids;
    update->added.count = count;
    update->added.capacity = count + 1;
    missing_containers(self->plan, take_next, &ids, &count);
    update->removed.items = ids;
    update->removed.count = count;
    update->removed.capacity = count + 1;
    self->update = update;
    snprintf(owner, sizeof(owner), "update of %s asked by %s", self->topology,
             sl_rpc_request_peer(request));
    update->lock =
        sl_state_lock_new(self->options.store, sl_layout_path(path, SL_LAYOUT_LOCK, self->topology),
                          owner, lock_event, update);
    sl__tm_event(self, "update: from plan %llu, taking the lock",
                 (unsigned long long)update->result.from_version);
    sl_state_lock_acquire(update->lock, (int64_t)wanted->lock_timeout_ms, locked, update);
}

void
sl__tm_handle_update(void *ctx, struct sl_rpc_request *request)
{
    struct sl_topology_master *self = ctx;
    struct sl_arena arena;
    struct sl_update_request wanted;
    struct sl__tm_plan *next = NULL;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_create(&arena, 0, 64 * 1024 * 1024);
    int rc = sl_update_request_decode(body, size, &arena, &wanted);
    if (rc == 0) {
        rc = check_request(self, &wanted);
    }
    if (rc == 0) {
        next = sl__tm_plan_new(self, wanted.proposed, wanted.proposed_size);
        rc = next != NULL ? check_proposed(self, next) : sl_err_last()->code;
    }
    if (rc != 0) {
        sl__tm_plan_free(next);
        sl_rpc_refuse_last(request);
    } else {
        begin(self, request, &wanted, next);
        sl__tm_advance(self);
    }
    sl_arena_destroy(&arena);
}
