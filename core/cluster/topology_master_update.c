/*
 * The change of a running topology from one plan to the next, as a transaction:
 *
 *     LOCK     take the update lock
 *     CHECK    the stored plan is still the one that was planned from
 *     START    start new containers; their workers register, load the code and get the new plan
 *     PAUSE    spouts are not called any more
 *     ROOTS    wait until no root is left, with a limit: ticks may be what acks them
 *     HOLD     bolts do not tick any more
 *     DRAIN    wait until nothing is in flight, with the same limit
 *              (these three only when tasks leave or key groups change their owner: else what is in
 *              flight stays there)
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
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "cluster/topology_master_update_priv.h"

enum {
    START_MS = 60000,
    SETTLE_MS = 60000,
};

static void
update_free(struct sl__tm_update *update)
{
    if (update->call != NULL) {
        update->call->update = NULL;
    }
    sl_timer_stop(&update->timer);
    sl__moves_destroy(&update->moves);
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
    if (update == NULL || update->step < SL__STEP_START || update->step > SL__STEP_COMMIT ||
        sl_physical_plan_container(&update->next->physical, id) == NULL) {
        return NULL;
    }
    return update->next;
}

bool
sl__tm_update_holds_plans(const struct sl_topology_master *self)
{
    return self->update != NULL && self->update->step < SL__STEP_SWITCH;
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
    if (update->step >= SL__STEP_SWITCH) {
        return;
    }
    snprintf(update->reason, sizeof(update->reason), "%s", reason);
    update->result.code = code;
    sl__tm_event(self, "update: %s", update->reason);
    sl__tm_drain_stop(self);
    sl__moves_clear(&update->moves);
    if (update->step <= SL__STEP_CHECK) {
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
    sl__update_enter(update, SL__STEP_ROLLBACK);
    sl__tm_advance(self);
}

void
sl__update_fail(struct sl__tm_update *update, int code, const char *fmt, ...)
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
    if (update != NULL && update->step > SL__STEP_CHECK && update->step < SL__STEP_COMMIT) {
        sl__update_fail(update, SL_EUNAVAIL, "container %d: %s", id, why);
    }
}

bool
sl__tm_update_refused(struct sl_topology_master *self, int32_t id,
                      const struct sl_rpc_result *result)
{
    struct sl__tm_update *update = self->update;
    if (update == NULL || update->step != SL__STEP_START || result->code != SL_EUSER ||
        sl_physical_plan_container(&self->plan->physical, id) == NULL) {
        return false;
    }
    sl__update_fail(update, result->code, "container %d: %s", id, result->reason);
    return true;
}

/* Step by step. */

static void
lock_event(void *ctx, enum sl_state_lock_event event)
{
    struct sl__tm_update *update = ctx;
    if (event == SL_STATE_LOCK_LOST && update->step < SL__STEP_COMMIT) {
        sl__update_fail(update, SL_EFENCED, "the update lock was lost");
    }
}

static void
checked(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__tm_update *update = sl__update_call_end(ctx);
    if (update == NULL) {
        return;
    }
    if (status != 0) {
        sl__update_fail(update, status, "%s", sl_err_last()->msg);
    } else if (result->size != update->current.size ||
               memcmp(result->value, update->current.data, result->size) != 0) {
        sl__update_fail(update, SL_ECONFLICT,
                        "the plan is not the one that was planned from (version %llu) any more",
                        (unsigned long long)update->result.from_version);
    } else {
        update->node_version = result->stat.version;
        sl__update_enter(update, SL__STEP_START);
    }
}

static void
locked(void *ctx, int status)
{
    struct sl__tm_update *update = ctx;
    if (status != 0) {
        sl__update_fail(update, status, "%s", sl_err_last()->msg);
        return;
    }
    sl__update_enter(update, SL__STEP_CHECK);
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

/* Spouts are paused; ticks are held in the step HOLD, or at once when nothing has to be drained. */
static void
advance_pause(struct sl__tm_update *update)
{
    struct sl_topology_master *self = update->master;
    bool is_held = update->step == SL__STEP_HOLD || !update->needs_quiet;
    enum sl_worker_spouts wanted = !update->needs_quiet ? SL_SPOUTS_HELD_WITH_WAY
                                   : is_held            ? SL_SPOUTS_HELD
                                                        : SL_SPOUTS_PAUSED;
    bool is_paused = true;
    for (int32_t i = 0; i < self->plan->physical.container_count; i++) {
        struct sl__tm_worker *worker =
            sl__tm_worker_of(self, self->plan->physical.containers[i].id);
        bool is_so = !worker->is_active && worker->is_held == is_held;
        if (!is_so && !worker->is_switching) {
            sl__tm_send_spouts(worker, wanted);
        }
        is_paused = is_paused && is_so && !worker->is_switching;
    }
    if (is_paused) {
        sl__update_enter(update, is_held ? SL__STEP_DRAIN : SL__STEP_ROOTS);
    }
}

static void
drained(void *ctx, int status)
{
    struct sl__tm_update *update = ctx;
    if (status != 0) {
        sl__update_fail(
            update, SL_ETIMEOUT, "%llu roots and tuples are still in flight after %llu ms",
            (unsigned long long)update->master->drain.left, (unsigned long long)update->drain_ms);
        return;
    }
    sl__update_enter(update, update->step == SL__STEP_ROOTS ? SL__STEP_HOLD : SL__STEP_MOVE);
}

static void
drain(struct sl__tm_update *update)
{
    uint64_t now = sl_loop_now_ms(update->master->loop);
    enum sl__tm_drain_until until = !update->needs_quiet             ? SL__DRAIN_OWNERS
                                    : update->step == SL__STEP_ROOTS ? SL__DRAIN_ROOTS
                                                                     : SL__DRAIN_ALL;
    if (update->drain_until_ms == 0) {
        update->drain_until_ms = now + update->drain_ms;
    }
    uint64_t left = update->drain_until_ms > now ? update->drain_until_ms - now : 0;
    sl__tm_drain_start(update->master, left, until, drained, update);
}

static void
step_is_late(void *ctx, uint64_t ticket)
{
    struct sl__tm_update *update = ctx;
    (void)ticket;
    switch (update->step) {
    case SL__STEP_START:
        sl__update_fail(update, SL_ETIMEOUT, "the new containers do not run after %llu ms",
                        (unsigned long long)update->start_ms);
        break;
    case SL__STEP_PAUSE:
    case SL__STEP_HOLD:
        sl__update_fail(update, SL_ETIMEOUT, "the spouts are not paused after %d ms", SETTLE_MS);
        break;
    case SL__STEP_SWITCH:
    case SL__STEP_ROLLBACK:
        snprintf(update->reason, sizeof(update->reason), "%s not all containers run plan %llu yet",
                 update->step == SL__STEP_SWITCH ? "committed, but" : "rolled back, but",
                 (unsigned long long)update->master->plan->stored.version);
        update->result.outcome = SL_UPDATE_NOT_ROLLED_BACK;
        update->result.code = SL_ETIMEOUT;
        finish(update);
        break;
    default:
        break;
    }
}

void
sl__update_enter(struct sl__tm_update *update, enum sl__update_step step)
{
    struct sl_topology_master *self = update->master;
    char path[SL_STATE_PATH_MAX + 1];
    update->step = step;
    sl_timer_stop(&update->timer);
    switch (step) {
    case SL__STEP_LOCK:
        break;
    case SL__STEP_CHECK:
        sl_state_get(self->options.store, sl_layout_path(path, SL_LAYOUT_PLAN, self->topology),
                     checked, sl__update_call_new(update));
        break;
    case SL__STEP_START:
        if (!self->is_settled) {
            sl__update_fail(update, SL_EAGAIN, "a worker was lost while the lock was taken");
            break;
        }
        sl_timer_start(self->loop, &update->timer, update->start_ms, step_is_late, update);
        sl__update_start_containers(update);
        sl__tm_advance(self);
        break;
    case SL__STEP_PAUSE:
        update->paused_at_ms = sl_loop_now_ms(self->loop);
        sl__tm_event(self, "update: pausing spouts");
        sl_timer_start(self->loop, &update->timer, SETTLE_MS, step_is_late, update);
        advance_pause(update);
        break;
    case SL__STEP_ROOTS:
        sl__tm_event(self, "update: draining");
        drain(update);
        break;
    case SL__STEP_HOLD:
        sl_timer_start(self->loop, &update->timer, SETTLE_MS, step_is_late, update);
        advance_pause(update);
        break;
    case SL__STEP_DRAIN:
        drain(update);
        break;
    case SL__STEP_MOVE:
        sl__tm_event(self, "update: moving state");
        sl__update_start_moving(update);
        break;
    case SL__STEP_COMMIT:
        sl__moves_clear(&update->moves);
        sl__update_commit(update);
        break;
    case SL__STEP_SWITCH:
    case SL__STEP_ROLLBACK:
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
            worker->is_active != self->execution.is_active || worker->is_held) {
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
    if (update->step == SL__STEP_SWITCH) {
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
    case SL__STEP_START:
        sl__update_advance_start(update);
        break;
    case SL__STEP_PAUSE:
    case SL__STEP_HOLD:
        advance_pause(update);
        break;
    case SL__STEP_SWITCH:
    case SL__STEP_ROLLBACK:
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
        const struct sl_rpc_request *asked = self->update->request;
        return sl_err_set(
            SL_ECONFLICT, "the lock is held by another update of %s, asked by %s", self->topology,
            asked != NULL ? sl_rpc_request_peer(asked) : "who has its answer already");
    }
    if (!self->is_settled) {
        return sl_err_set(SL_EAGAIN, "%s is starting or recovering; try again when it runs",
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

/* A launcher that can not scale keeps the containers that there are. */
static int
check_scaling(const struct sl_topology_master *self, const struct sl__tm_plan *next)
{
    int32_t *ids;
    size_t added;
    size_t removed;
    if (!self->options.launcher.can_not_scale) {
        return 0;
    }
    missing_containers(next, self->plan, &ids, &added);
    sl_free(ids);
    missing_containers(self->plan, next, &ids, &removed);
    sl_free(ids);
    return added + removed == 0
               ? 0
               : sl_err_set(SL_EINVAL,
                            "its launcher can neither add nor remove containers, the plan needs "
                            "%zu more and %zu fewer",
                            added, removed);
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
    int rc = check_scaling(self, next);
    return rc != 0 ? rc : check_tasks(self->plan, next);
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
    update->needs_quiet = sl__moves_need_quiet(self, take_next);
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
    } else if (wanted.is_dry_run) {
        sl__tm_measure_start(self, request, next);
    } else {
        begin(self, request, &wanted, next);
        sl__tm_advance(self);
    }
    sl_arena_destroy(&arena);
}
