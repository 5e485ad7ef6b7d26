/*
 * Killing. The state changes now and is stored with the moment at which the topology ends at the
 * latest; whatever master leads then goes on with it:
 *
 *     stored -> topology master drains and ends everything -> its process ends -> nodes deleted
 *
 * A topology master that is not there is waited for until that moment, and a little; then the nodes
 * go without it, which is how workers and supervisors learn of it.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/control_messages.h"
#include "cluster/master_priv.h"
#include "state/remove.h"

/* Nodes. */

struct removal {
    struct sl_master *master;
    char *topology;
    size_t next;
    bool is_purged;
    bool is_found;
    void (*done)(void *ctx, int status, bool is_found);
    void (*drop)(void *ctx);
    void *ctx;
};

/* The one that says that it runs goes after all that it needs to run; that by which masters know
 * of it goes last. */
static const enum sl_layout_part parts[] = {
    SL_LAYOUT_PLAN,          SL_LAYOUT_TOPOLOGY_MASTER, SL_LAYOUT_SCHEDULER,
    SL_LAYOUT_PHYSICAL_PLAN, SL_LAYOUT_EXECUTION_STATE, SL_LAYOUT_PACKAGE,
    SL_LAYOUT_LOCK,          SL_LAYOUT_TOPOLOGY_LEADER, SL_LAYOUT_TOPOLOGY,
    SL_LAYOUT_BACKUP,        SL_LAYOUT_SCHEDULING,
};

static void remove_next(struct removal *removal);

static void
removal_end(struct removal *removal, int status)
{
    removal->done(removal->ctx, status, removal->is_found);
    sl_free(removal->topology);
    sl_free(removal);
}

static void
removal_drop(void *ctx)
{
    struct removal *removal = ctx;
    if (removal->drop != NULL) {
        removal->drop(removal->ctx);
    }
    sl_free(removal->topology);
    sl_free(removal);
}

static void
removed(void *ctx, int status, const struct sl_state_result *result)
{
    struct removal *removal = ctx;
    (void)result;
    if (status != 0 && status != SL_ENOTFOUND) {
        removal_end(removal, status);
        return;
    }
    removal->is_found = removal->is_found || status == 0;
    removal->next++;
    remove_next(removal);
}

static void
remove_next(struct removal *removal)
{
    size_t count = sizeof(parts) / sizeof(parts[0]);
    char path[SL_STATE_PATH_MAX + 1];
    if (removal->next < count && parts[removal->next] == SL_LAYOUT_BACKUP && !removal->is_purged) {
        removal->next++;
    }
    if (removal->next == count) {
        removal_end(removal, 0);
        return;
    }
    sl_state_remove(removal->master->options.store,
                    sl_layout_path(path, parts[removal->next], removal->topology),
                    sl__master_stored,
                    sl__master_call_new(removal->master, removed, removal_drop, removal));
}

void
sl__master_remove_nodes(struct sl_master *self, const char *topology, bool is_purged,
                        void (*done)(void *ctx, int status, bool is_found), void (*drop)(void *ctx),
                        void *ctx)
{
    struct removal *removal = sl_calloc(1, sizeof(*removal));
    removal->master = self;
    removal->topology = sl_strdup(topology);
    removal->is_purged = is_purged;
    removal->done = done;
    removal->drop = drop;
    removal->ctx = ctx;
    remove_next(removal);
}

/* Kills. */

void
sl__master_kills_fail(struct sl__master_topology *topology, int code, const char *reason)
{
    for (size_t i = 0; i < topology->kills.count; i++) {
        sl_rpc_refuse(topology->kills.items[i], SL_RPC_FAILURE, code, "%s", reason);
    }
    sl_vec_clear(&topology->kills);
}

static void
kill_again(void *ctx, uint64_t ticket)
{
    (void)ticket;
    sl__master_kill_run(ctx);
}

/* A supervisor still says that it has a slot of the topology. */
static bool
has_slots(const struct sl__master_topology *topology)
{
    const struct sl_slot_manager *slots = sl_resource_manager_slots(topology->master->resources);
    for (int32_t i = 0; topology->has_plan && i < topology->plan.plan.container_count; i++) {
        if (sl_slot_manager_slot_state(slots, topology->plan.slots[i].supervisor,
                                       topology->plan.slots[i].port, NULL) > SL_SLOT_FREE) {
            return true;
        }
    }
    return false;
}

static void kill_end(struct sl__master_topology *topology);

static void
kill_end_later(void *ctx, uint64_t ticket)
{
    (void)ticket;
    kill_end(ctx);
}

static void
kill_removed(void *ctx, int status, bool is_found)
{
    struct sl__master_topology *topology = ctx;
    struct sl_master *self = topology->master;
    (void)is_found;
    if (status != 0) {
        sl_log_warn("cluster", "what is stored of %s can not be removed yet: %s", topology->name,
                    sl_err_last()->msg);
        topology->is_removing = false;
        sl_timer_start(self->loop, &topology->kill_timer, SL__MASTER_KILL_ALONE_MS, kill_again,
                       topology);
        return;
    }
    sl_log_info("cluster", "%s is killed", topology->name);
    sl_resource_manager_topology_ended(self->resources, topology->name);
    topology->kill_began_ms = sl_loop_now_ms(self->loop);
    kill_end(topology);
}

/* Its slots are free: whoever asked may think so. Without a topology master that takes a while. */
static void
kill_end(struct sl__master_topology *topology)
{
    struct sl_master *self = topology->master;
    if (has_slots(topology) &&
        sl_loop_now_ms(self->loop) - topology->kill_began_ms < SL__MASTER_SLOTS_MS) {
        sl_timer_start(self->loop, &topology->kill_timer, SL__MASTER_SLOTS_LOOK_MS, kill_end_later,
                       topology);
        return;
    }
    for (size_t i = 0; i < topology->kills.count; i++) {
        sl_rpc_reply(topology->kills.items[i], NULL, 0);
    }
    sl_vec_clear(&topology->kills);
    sl__master_folder_remove(self, topology->topology_id);
    sl__master_topology_remove(self, topology);
    sl__master_events_run(self);
}

static void
master_stopped(void *ctx, const struct sl_rpc_result *result)
{
    struct sl__master_topology *topology = ctx;
    (void)result;
    sl__master_remove_nodes(topology->master, topology->name, topology->is_purged, kill_removed,
                            NULL, topology);
}

/* Its topology master has ended everything, or is not there: now its process, then the nodes. */
static void
kill_remove(struct sl__master_topology *topology)
{
    struct sl_master *self = topology->master;
    enum sl_master_effect effect;
    sl__master_topology_act(topology, SL_MASTER_DO_REMOVE, &effect);
    if (topology->is_removing || effect != SL_MASTER_REMOVE_ALL) {
        return;
    }
    topology->is_removing = true;
    sl_timer_stop(&topology->kill_timer);
    const struct sl_plan_slot *slot = &topology->plan.master;
    const struct sl__master_node *node =
        topology->has_plan ? sl__master_node_find(self, slot->supervisor) : NULL;
    struct sl_start_master message = {.topology = topology->name, .port = slot->port};
    struct sl_buf body = {0};
    int rc = SL_ENOTFOUND;
    if (node != NULL && node->has_info && node->is_present) {
        sl_start_master_encode(&message, &body);
        rc = sl__master_ask(self, node->info.address, SL_ENDPOINT_SUPERVISOR, 0, SL_SV_STOP_MASTER,
                            &body, SL__MASTER_CALL_MS, master_stopped, NULL, topology);
        sl_buf_destroy(&body);
    }
    if (rc != 0) {
        sl__master_remove_nodes(self, topology->name, topology->is_purged, kill_removed, NULL,
                                topology);
    }
}

static void
kill_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct sl__master_topology *topology = ctx;
    topology->is_asking_kill = false;
    if (result->status == SL_RPC_SUCCESS) {
        kill_remove(topology);
        return;
    }
    sl_log_info("cluster", "the topology master of %s does not end it: %s", topology->name,
                result->reason);
    sl_timer_start(topology->master->loop, &topology->kill_timer, SL__MASTER_KILL_AGAIN_MS,
                   kill_again, topology);
}

static void
kill_ask(struct sl__master_topology *topology, uint64_t left_ms)
{
    struct sl_buf body = {0};
    sl_control_request_encode(&(struct sl_control_request){.time_limit_ms = left_ms}, &body);
    topology->is_asking_kill =
        sl__master_ask_topology(topology, SL_TM_KILL, &body, left_ms + SL__MASTER_CALL_MS,
                                kill_answered, NULL, topology) == 0;
    sl_buf_destroy(&body);
}

void
sl__master_kill_run(struct sl__master_topology *topology)
{
    struct sl_master *self = topology->master;
    int64_t now = sl_clock_wall_ms(sl_loop_clock(self->loop));
    int64_t left = topology->kill_due_ms - now;
    if (topology->is_removing || topology->is_storing_kill || topology->is_asking_kill ||
        topology->kill_due_ms == 0) {
        return;
    }
    if (topology->kill_began_ms == 0) {
        topology->kill_began_ms = sl_loop_now_ms(self->loop);
    }
    uint64_t waited = sl_loop_now_ms(self->loop) - topology->kill_began_ms;
    bool is_late = left < -2 * SL__MASTER_CALL_MS;
    if (topology->leader_token != 0 && !is_late) {
        kill_ask(topology, left > 0 ? (uint64_t)left : 0);
    }
    if (topology->is_asking_kill) {
        return;
    }
    if (left <= 0 && (is_late || waited >= SL__MASTER_KILL_ALONE_MS)) {
        kill_remove(topology);
    } else {
        sl_timer_start(self->loop, &topology->kill_timer, SL__MASTER_KILL_AGAIN_MS, kill_again,
                       topology);
    }
}

static void
kill_stored(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__master_topology *topology = ctx;
    (void)result;
    topology->is_storing_kill = false;
    if (status != 0) {
        sl__master_kills_fail(topology, status, sl_err_last()->msg);
        topology->kill_due_ms = topology->stored_due_ms;
        topology->status = topology->kill_due_ms != 0 ? SL_MASTER_KILLED : topology->before;
        return;
    }
    topology->stored_due_ms = topology->kill_due_ms;
    sl__master_kill_run(topology);
}

/* Stores that it is killed, and when. */
static void
kill_store(struct sl__master_topology *topology)
{
    struct sl_master *self = topology->master;
    char paths[2][SL_STATE_PATH_MAX + 1];
    struct sl_buf record = {0};
    struct sl_buf execution = {0};
    struct sl_execution_state state;
    struct sl_arena arena;
    struct sl_state_op ops[2];
    size_t count = 0;
    sl_arena_create(&arena, 0, 0);
    sl__master_topology_encode(topology, &record);
    ops[count++] = sl_state_op_set(sl_layout_path(paths[0], SL_LAYOUT_SCHEDULING, topology->name),
                                   record.data, record.size, SL_STATE_ANY_VERSION);
    if (topology->execution.size > 0 &&
        sl_execution_state_decode(topology->execution.data, topology->execution.size, &arena,
                                  &state) == 0) {
        /* A topology master that comes now ends the topology, too. */
        state.state = SL_TOPOLOGY_KILLED;
        sl_execution_state_encode(&state, &execution);
        ops[count++] =
            sl_state_op_set(sl_layout_path(paths[1], SL_LAYOUT_EXECUTION_STATE, topology->name),
                            execution.data, execution.size, SL_STATE_ANY_VERSION);
    }
    topology->is_storing_kill = true;
    sl_state_election_commit(self->election, ops, count, sl__master_stored,
                             sl__master_call_new(self, kill_stored, NULL, topology));
    sl_buf_destroy(&record);
    sl_buf_destroy(&execution);
    sl_arena_destroy(&arena);
}

/* There is no topology, but something may be left of one. */

struct sweep {
    struct sl_rpc_request *request;
};

static void
sweep_drop(void *ctx)
{
    struct sweep *sweep = ctx;
    sl_rpc_refuse(sweep->request, SL_RPC_FAILURE, SL_EAGAIN, "the master does not lead any more");
    sl_free(sweep);
}

static void
swept(void *ctx, int status, bool is_found)
{
    struct sweep *sweep = ctx;
    if (status != 0) {
        sl_rpc_refuse(sweep->request, SL_RPC_FAILURE, status, "%s", sl_err_last()->msg);
    } else if (is_found) {
        sl_rpc_reply(sweep->request, NULL, 0);
    } else {
        sl_rpc_refuse(sweep->request, SL_RPC_FAILURE, SL_ENOTFOUND,
                      "no topology of that name is running");
    }
    sl_free(sweep);
}

void
sl__master_handle_kill(void *ctx, struct sl_rpc_request *request)
{
    struct sl_master *self = ctx;
    struct sl_arena arena;
    struct sl_master_kill message;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_create(&arena, 0, 64 * 1024);
    if (sl_master_kill_decode(body, size, &arena, &message) != 0) {
        sl_rpc_refuse_last(request);
        sl_arena_destroy(&arena);
        return;
    }
    struct sl__master_topology *topology = sl__master_topology_find(self, message.topology);
    if (topology == NULL) {
        struct sweep *sweep = sl_calloc(1, sizeof(*sweep));
        sweep->request = request;
        sl__master_remove_nodes(self, message.topology, message.is_purged, swept, sweep_drop,
                                sweep);
    } else {
        int64_t now = sl_clock_wall_ms(sl_loop_clock(self->loop));
        sl_vec_push(&topology->kills, request);
        if (topology->status != SL_MASTER_KILLED && topology->status != SL_MASTER_REBALANCING) {
            topology->before = topology->status;
        }
        sl__master_topology_act(topology, SL_MASTER_DO_KILL, NULL);
        topology->kill_due_ms = sl_master_kill_due(topology->kill_due_ms, now, message.wait_ms);
        topology->is_purged = topology->is_purged || message.is_purged;
        if (!topology->is_removing && !topology->is_storing_kill) {
            sl_timer_stop(&topology->kill_timer);
            kill_store(topology);
        }
    }
    sl_arena_destroy(&arena);
}
