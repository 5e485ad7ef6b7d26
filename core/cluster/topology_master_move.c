/* Keyed state that an update moves: the worker that has it is told to send it to the one that keeps
 * it aside for the new plan, and what both say of it is compared. */
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "cluster/topology_master_update_priv.h"

enum {
    ANSWER_MS = 30000,
    /* A worker notices by itself that nothing moves, and one that is lost is noticed. */
    MOVE_MS = 24 * 3600 * 1000,
};

static void
transfer_free(struct sl__transfer *transfer)
{
    if (transfer->call != 0 && transfer->callee->is_registered &&
        transfer->callee->peer.process == transfer->callee_process) {
        sl_rpc_cancel(transfer->callee->peer.gateway, transfer->call);
    }
    sl_vec_destroy(&transfer->groups);
    sl_vec_destroy(&transfer->owners);
    sl_free(transfer);
}

void
sl__moves_clear(struct sl__moves *moves)
{
    for (size_t i = 0; i < moves->transfers.count; i++) {
        transfer_free(moves->transfers.items[i]);
    }
    sl_vec_clear(&moves->transfers);
}

void
sl__moves_destroy(struct sl__moves *moves)
{
    sl__moves_clear(moves);
    sl_vec_destroy(&moves->transfers);
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

static struct sl__transfer *
transfer_between(struct sl__moves *moves, struct sl_topology_master *master,
                 const struct sl__transfer *wanted)
{
    for (size_t i = 0; i < moves->transfers.count; i++) {
        struct sl__transfer *transfer = moves->transfers.items[i];
        if (transfer->component == wanted->component && transfer->task == wanted->task &&
            transfer->from == wanted->from && transfer->to == wanted->to) {
            return transfer;
        }
    }
    struct sl__transfer *transfer = sl_calloc(1, sizeof(*transfer));
    *transfer = *wanted;
    transfer->master = master;
    transfer->id = sl_random_u64(sl_loop_random(master->loop));
    sl_vec_push(&moves->transfers, transfer);
    return transfer;
}

/* Key groups that change their owner, or whose owner moves. */
static void
plan_group_transfers(struct sl__moves *moves, struct sl_topology_master *master,
                     const struct sl__tm_plan *next, int32_t component)
{
    const struct sl__tm_plan *old = master->plan;
    const struct sl_plan_component *before = &old->stored.components[component];
    int32_t place = sl_stored_plan_component(&next->stored, before->name);
    const struct sl_plan_component *after = place >= 0 ? &next->stored.components[place] : NULL;
    if (after == NULL) {
        return;
    }
    for (uint32_t i = 0; i < before->key_group_count && i < after->key_group_count; i++) {
        int32_t from = container_of_task(old, before->key_groups[i]);
        int32_t to = container_of_task(next, after->key_groups[i]);
        if (before->key_groups[i] != after->key_groups[i] || from != to) {
            struct sl__transfer *transfer = transfer_between(
                moves, master,
                &(struct sl__transfer){.component = component, .from = from, .to = to});
            sl_vec_push(&transfer->groups, i);
            sl_vec_push(&transfer->owners, after->key_groups[i]);
            moves->groups++;
        }
    }
}

/* Tasks of components without key groups that move take what they have along. */
static void
plan_task_transfers(struct sl__moves *moves, struct sl_topology_master *master,
                    const struct sl__tm_plan *next)
{
    const struct sl_physical_plan *old = &master->plan->physical;
    for (int32_t i = 0; i < old->task_count; i++) {
        const struct sl_physical_task *task = &old->tasks[i];
        int32_t to = container_of_task(next, task->task);
        if (to >= 0 && to != task->container &&
            old->components[task->component].key_groups == NULL) {
            transfer_between(moves, master,
                             &(struct sl__transfer){.component = task->component,
                                                    .task = task->task,
                                                    .from = task->container,
                                                    .to = to});
        }
    }
}

void
sl__moves_plan(struct sl__moves *moves, struct sl_topology_master *master,
               const struct sl__tm_plan *next)
{
    for (int32_t i = 0; i < master->plan->stored.component_count; i++) {
        plan_group_transfers(moves, master, next, i);
    }
    plan_task_transfers(moves, master, next);
}

/* Tasks that end, or go elsewhere, with what is on its way to them. */
static bool
do_tasks_leave(const struct sl__tm_plan *old, const struct sl__tm_plan *next)
{
    for (int32_t i = 0; i < old->physical.task_count; i++) {
        const struct sl_physical_task *task = &old->physical.tasks[i];
        if (container_of_task(next, task->task) != task->container) {
            return true;
        }
    }
    return false;
}

static int32_t
task_count(const struct sl__tm_plan *plan, int32_t component)
{
    int32_t count = 0;
    for (int32_t i = 0; i < plan->physical.task_count; i++) {
        count += plan->physical.tasks[i].component == component;
    }
    return count;
}

bool
sl__moves_need_quiet(const struct sl_topology_master *master, const struct sl__tm_plan *next)
{
    const struct sl__tm_plan *old = master->plan;
    if (do_tasks_leave(old, next) || next->stored.component_count != old->stored.component_count) {
        return true;
    }
    for (int32_t i = 0; i < old->stored.component_count; i++) {
        const struct sl_plan_component *before = &old->stored.components[i];
        const struct sl_plan_component *after = &next->stored.components[i];
        /* Nothing is known of what is not the same component: better quiet than wrong. */
        if (strcmp(before->name, after->name) != 0 ||
            before->key_group_count != after->key_group_count) {
            return true;
        }
        for (uint32_t k = 0; k < before->key_group_count; k++) {
            if (before->key_groups[k] != after->key_groups[k]) {
                return true;
            }
        }
        /* Which acker has a root follows from their number. */
        if (strncmp(before->name, "__", 2) == 0 && task_count(old, i) != task_count(next, i)) {
            return true;
        }
    }
    return false;
}

static void
call_worker(struct sl__transfer *transfer, int32_t id, uint32_t method, const struct sl_buf *body,
            uint64_t limit_ms, sl_rpc_done_fn done)
{
    struct sl__tm_worker *worker = sl__tm_worker_of(transfer->master, id);
    transfer->callee = worker;
    transfer->callee_process = worker->peer.process;
    transfer->call =
        sl_rpc_call(worker->peer.gateway, method, body->data, body->size, limit_ms, done, transfer);
}

static struct sl_worker_state_of
what_moves(const struct sl__transfer *transfer)
{
    return (struct sl_worker_state_of){
        .component = transfer->master->plan->stored.components[transfer->component].name,
        .groups = transfer->groups.items,
        .group_count = transfer->groups.count,
        .task = transfer->task};
}

/* What a worker says of a transfer; 0 or the error that the update has failed with. */
static int
read_moved(const struct sl__transfer *transfer, int32_t id, const struct sl_rpc_result *result,
           struct sl_worker_moved *moved)
{
    struct sl__tm_update *update = transfer->master->update;
    if (result->status != SL_RPC_SUCCESS) {
        sl__update_fail(update, result->code, "state that moves from container %d to %d: %s",
                        transfer->from, transfer->to, result->reason);
        return result->code;
    }
    int rc = sl_worker_moved_decode(result->body, result->size, moved);
    if (rc != 0) {
        sl__update_fail(update, rc, "state that moves: container %d: %s", id, sl_err_last()->msg);
    }
    return rc;
}

static void
arrived(void *ctx, const struct sl_rpc_result *result)
{
    struct sl__transfer *transfer = ctx;
    struct sl__tm_update *update = transfer->master->update;
    const struct sl_worker_moved *sent = &transfer->sent;
    struct sl_worker_moved came;
    transfer->call = 0;
    if (read_moved(transfer, transfer->to, result, &came) != 0) {
        return;
    }
    if (came.tables != sent->tables || came.entries != sent->entries || came.bytes != sent->bytes ||
        came.checksum != sent->checksum) {
        sl__update_fail(update, SL_EPROTO,
                        "container %d has sent %llu entries (%llu bytes), container %d has got "
                        "%llu (%llu)",
                        transfer->from, (unsigned long long)sent->entries,
                        (unsigned long long)sent->bytes, transfer->to,
                        (unsigned long long)came.entries, (unsigned long long)came.bytes);
        return;
    }
    update->result.bytes_moved += came.bytes;
    if (--update->open_transfers == 0) {
        sl__update_enter(update, SL__STEP_COMMIT);
    }
}

static void
sent(void *ctx, const struct sl_rpc_result *result)
{
    struct sl__transfer *transfer = ctx;
    struct sl_buf body = {0};
    transfer->call = 0;
    if (read_moved(transfer, transfer->from, result, &transfer->sent) == 0) {
        sl_worker_move_id_encode(transfer->id, &body);
        call_worker(transfer, transfer->to, SL_WORKER_MOVED, &body, ANSWER_MS, arrived);
        sl_buf_destroy(&body);
    }
}

static void
transfer_start(struct sl__transfer *transfer)
{
    struct sl_buf body = {0};
    struct sl_worker_move move = {.id = transfer->id,
                                  .plan_version = transfer->master->update->next->stored.version,
                                  .what = what_moves(transfer),
                                  .owners = transfer->owners.items,
                                  .to = transfer->to};
    sl_worker_move_encode(&move, &body);
    call_worker(transfer, transfer->from, SL_WORKER_MOVE, &body, MOVE_MS, sent);
    sl_buf_destroy(&body);
}

void
sl__transfer_measure(struct sl__transfer *transfer, sl_rpc_done_fn done)
{
    struct sl_buf body = {0};
    struct sl_worker_state_of what = what_moves(transfer);
    sl_worker_measure_encode(&what, &body);
    call_worker(transfer, transfer->from, SL_WORKER_MEASURE, &body, ANSWER_MS, done);
    sl_buf_destroy(&body);
}

void
sl__update_start_moving(struct sl__tm_update *update)
{
    struct sl__moves *moves = &update->moves;
    sl__moves_plan(moves, update->master, update->next);
    update->result.groups_moved = moves->groups;
    update->open_transfers = moves->transfers.count;
    for (size_t i = 0; i < moves->transfers.count; i++) {
        transfer_start(moves->transfers.items[i]);
    }
    if (moves->transfers.count == 0) {
        sl__update_enter(update, SL__STEP_COMMIT);
    }
}
