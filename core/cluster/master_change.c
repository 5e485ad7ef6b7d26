/*
 * Changes of topologies that run. An update is planned here and carried out by the topology master,
 * as a transaction of its own; the slots that it wants are reserved meanwhile, and other events go
 * on. What died is planned and stored here, because whoever would carry it out may be among the
 * dead.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/control_messages.h"
#include "cluster/master_priv.h"

enum {
    /* Beside the time-outs of its steps. */
    MARGIN_MS = 180000,
    /* One that runs and does not lead after being asked for so often hangs. */
    ASKED_MAX = 3,
};

static void
fail_last(struct sl__master_event *event, int code)
{
    char reason[SL_REASON_SIZE];
    snprintf(reason, sizeof(reason), "%s", sl_err_last()->msg);
    sl__master_event_fail(event, code, reason);
}

/* Topology masters. */

static void
topology_started(void *ctx, const struct sl_rpc_result *result)
{
    char *name = ctx;
    if (result->status != SL_RPC_SUCCESS) {
        sl_log_warn("cluster", "the topology master of %s is not started: %s", name,
                    result->reason);
    }
    sl_free(name);
}

/* Tells the supervisor of a slot; what comes of it is seen by the monitor. */
static void
tell_supervisor(struct sl__master_topology *topology, const struct sl_plan_slot *slot,
                uint32_t method)
{
    struct sl_master *self = topology->master;
    const struct sl__master_node *node = sl__master_node_find(self, slot->supervisor);
    struct sl_start_master message = {.topology = topology->name, .port = slot->port};
    struct sl_buf body = {0};
    if (node == NULL || !node->has_info) {
        return;
    }
    char *name = sl_strdup(topology->name);
    sl_start_master_encode(&message, &body);
    if (sl__master_ask(self, node->info.address, SL_ENDPOINT_SUPERVISOR, 0, method, &body,
                       SL__MASTER_CALL_MS, topology_started, sl_free, name) != 0) {
        sl_free(name);
    }
    sl_buf_destroy(&body);
}

void
sl__master_start_topology(struct sl__master_topology *topology)
{
    topology->alone_ms = sl_loop_now_ms(topology->master->loop);
    topology->asked++;
    tell_supervisor(topology, &topology->plan.master,
                    topology->asked % ASKED_MAX == 0 ? SL_SV_RESTART_MASTER : SL_SV_START_MASTER);
}

static bool
is_same_slot(const struct sl_plan_slot *a, const struct sl_plan_slot *b)
{
    return a->port == b->port && strcmp(a->supervisor, b->supervisor) == 0;
}

/* The topology master has another slot now: the old process ends, if there is somebody to end it.
 */
static void
move_master(struct sl__master_topology *topology, const struct sl_plan_slot *old)
{
    if (!is_same_slot(old, &topology->plan.master)) {
        tell_supervisor(topology, old, SL_SV_STOP_MASTER);
        sl__master_start_topology(topology);
    }
}

/* Updates. */

/* Its turn has come: it waits in the queue like any other event. */
static void
change_push(struct sl__master_event *event)
{
    sl__master_event_limit(event, event->update.lock_timeout_ms + event->update.drain_timeout_ms +
                                      MARGIN_MS);
    sl__master_event_push(event);
}

/* Is the change before it over, or has it waited for long enough? */
static void
change_turn(void *ctx, uint64_t ticket)
{
    struct sl__master_event *event = ctx;
    struct sl_master *self = event->master;
    struct sl__master_topology *topology = sl__master_topology_find(self, event->topology);
    (void)ticket;
    if (topology != NULL && topology->status == SL_MASTER_REBALANCING &&
        sl_loop_now_ms(self->loop) < event->wait_until_ms) {
        sl_timer_start(self->loop, &event->timer, SL__MASTER_TURN_MS, change_turn, event);
        return;
    }
    sl_list_remove(&event->node);
    if (topology != NULL && topology->status == SL_MASTER_REBALANCING) {
        char reason[2 * SL_REASON_SIZE];
        snprintf(reason, sizeof(reason), "another update of it is under way, asked by %s",
                 topology->changer);
        sl__master_event_fail(event, SL_ECONFLICT, reason);
    } else {
        change_push(event);
    }
}

void
sl__master_change_start(struct sl_master *self, struct sl_rpc_request *request,
                        struct sl_buf *bytes)
{
    struct sl__master_event *event = sl__master_event_new(self, SL__MASTER_CHANGE, "", request, 0);
    struct sl__master_topology *topology = NULL;
    event->bytes = *bytes;
    int rc = sl_master_update_decode(event->bytes.data, event->bytes.size, &event->arena,
                                     &event->update);
    if (rc == 0) {
        rc = sl_stored_plan_decode(event->update.current, event->update.current_size, &event->arena,
                                   &event->current);
    }
    if (rc == 0) {
        topology = sl__master_topology_find(self, event->update.topology);
        if (topology == NULL) {
            rc = sl_err_set(SL_ENOTFOUND, "no topology of that name is running");
        } else if (topology->status == SL_MASTER_KILLED) {
            rc = sl_err_set(SL_ECONFLICT, "it is being killed");
        }
    }
    if (rc != 0) {
        event->request = NULL;
        sl_rpc_refuse_last(request);
        sl__master_event_free(event);
        return;
    }
    event->plan_version = event->current.version;
    sl_free(event->topology);
    event->topology = sl_strdup(event->update.topology);
    if (topology->status == SL_MASTER_REBALANCING && !event->update.is_dry_run) {
        event->wait_until_ms = sl_loop_now_ms(self->loop) + event->update.lock_timeout_ms;
        sl_list_push_back(&self->changing, &event->node);
        sl_timer_start(self->loop, &event->timer, SL__MASTER_TURN_MS, change_turn, event);
    } else {
        change_push(event);
    }
}

static void
reply_result(struct sl__master_event *event, const uint8_t *result, size_t size)
{
    struct sl_buf out = {0};
    struct sl_master_update_result answer = {result, size, event->plan_bytes.data,
                                             event->plan_bytes.size};
    sl_master_update_result_encode(&answer, &out);
    sl__master_event_done(event, &out);
    sl_buf_destroy(&out);
}

static void
change_end(struct sl__master_event *event)
{
    struct sl__master_topology *topology = sl__master_topology_find(event->master, event->topology);
    if (topology != NULL) {
        sl__master_topology_reserve(topology, NULL);
        sl__master_topology_act(topology, SL_MASTER_DO_END_REBALANCE, NULL);
    }
    sl_list_remove(&event->node);
    if (event->code != 0) {
        sl__master_event_fail(event, event->code, event->reason);
    } else {
        reply_result(event, event->result.data, event->result.size);
    }
}

static void
record_saved(void *ctx, int status, const struct sl_state_result *result)
{
    char *name = ctx;
    (void)result;
    if (status != 0) {
        sl_log_warn("cluster", "how %s is scheduled is not kept: %s", name, sl_err_last()->msg);
    }
    sl_free(name);
}

/* What masters keep of it, in the background. */
static void
save_record(struct sl__master_topology *topology)
{
    struct sl_master *self = topology->master;
    char path[SL_STATE_PATH_MAX + 1];
    struct sl_buf value = {0};
    sl__master_topology_encode(topology, &value);
    struct sl_state_op op =
        sl_state_op_set(sl_layout_path(path, SL_LAYOUT_SCHEDULING, topology->name), value.data,
                        value.size, SL_STATE_ANY_VERSION);
    sl_state_election_commit(
        self->election, &op, 1, sl__master_stored,
        sl__master_call_new(self, record_saved, sl_free, sl_strdup(topology->name)));
    sl_buf_destroy(&value);
}

/* The stored plan tells what came of the change, whatever its topology master said. */
static void
change_looked(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__master_event *event = ctx;
    struct sl__master_topology *topology = sl__master_topology_find(event->master, event->topology);
    if (topology != NULL && status == 0) {
        if (result->stat.version > topology->plan_node_version) {
            sl__master_topology_set_plan(topology, result->value, result->size,
                                         result->stat.version);
        }
        if (topology->plan.version == event->plan.version) {
            if (event->update.schedule_size > 0) {
                sl_buf_clear(&topology->schedule);
                sl_buf_append(&topology->schedule, event->update.schedule,
                              event->update.schedule_size);
            }
            sl__master_topology_set_starts(topology, &topology->plan, &event->current);
            save_record(topology);
            sl__master_backup(event->master, event->topology, &topology->plan_bytes);
            move_master(topology, &event->old_master);
        }
    }
    change_end(event);
}

static void
change_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct sl__master_event *event = ctx;
    struct sl_master *self = event->master;
    char path[SL_STATE_PATH_MAX + 1];
    if (result->status == SL_RPC_SUCCESS) {
        sl_buf_append(&event->result, result->body, result->size);
    } else {
        event->code = result->code;
        snprintf(event->reason, sizeof(event->reason), "%s", result->reason);
    }
    sl_state_get(self->options.store, sl_layout_path(path, SL_LAYOUT_PLAN, event->topology),
                 sl__master_stored, sl__master_call_new(self, change_looked, NULL, event));
}

/* What the workers would have to ship is worth knowing, but not needed. */
static void
dry_run_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct sl__master_event *event = ctx;
    bool is_known = result->status == SL_RPC_SUCCESS;
    sl_list_remove(&event->node);
    reply_result(event, is_known ? result->body : NULL, is_known ? result->size : 0);
}

static int
change_ask(struct sl__master_event *event, struct sl__master_topology *topology)
{
    struct sl_buf body = {0};
    struct sl_update_request request = {
        .current = topology->plan_bytes.data,
        .current_size = topology->plan_bytes.size,
        .proposed = event->plan_bytes.data,
        .proposed_size = event->plan_bytes.size,
        .lock_timeout_ms = event->update.lock_timeout_ms,
        .drain_timeout_ms = event->update.drain_timeout_ms,
        .is_dry_run = event->update.is_dry_run,
    };
    sl_update_request_encode(&request, &body);
    int rc = sl__master_ask_topology(
        topology, SL_TM_UPDATE, &body,
        event->update.lock_timeout_ms + event->update.drain_timeout_ms + MARGIN_MS,
        event->update.is_dry_run ? dry_run_answered : change_answered, NULL, event);
    sl_buf_destroy(&body);
    return rc;
}

/* Every task, and the topology master, stays where it is. */
static bool
is_unchanged(const struct sl_stored_plan *before, const struct sl_stored_plan *after)
{
    if (before->plan.container_count != after->plan.container_count ||
        before->plan.instance_count != after->plan.instance_count ||
        !is_same_slot(&before->master, &after->master)) {
        return false;
    }
    for (int32_t i = 0; i < before->plan.container_count; i++) {
        const struct sl_packing_container *a = &before->plan.containers[i];
        const struct sl_packing_container *b = &after->plan.containers[i];
        if (a->id != b->id || a->count != b->count ||
            !is_same_slot(&before->slots[i], &after->slots[i])) {
            return false;
        }
        for (int32_t k = 0; k < a->count; k++) {
            if (before->plan.instances[a->first + k].task !=
                after->plan.instances[b->first + k].task) {
                return false;
            }
        }
    }
    return true;
}

void
sl__master_change_assigned(struct sl__master_event *event)
{
    struct sl__master_topology *topology = sl__master_topology_find(event->master, event->topology);
    enum sl_master_effect effect = SL_MASTER_NOTHING;
    if (is_unchanged(&event->current, &event->plan)) {
        sl__master_event_fail(event, SL_ECONFLICT,
                              "there is nothing to do: every task stays where it is");
        return;
    }
    if (topology == NULL || topology->plan.version != event->plan_version) {
        sl__master_event_fail(event, SL_ECONFLICT,
                              "its plan is not the one that was planned from any more");
        return;
    }
    if (event->update.is_dry_run) {
        if (change_ask(event, topology) != 0) {
            reply_result(event, NULL, 0);
            return;
        }
        sl__master_event_release(event);
        sl_list_push_back(&event->master->changing, &event->node);
        return;
    }
    sl__master_topology_act(topology, SL_MASTER_DO_REBALANCE, &effect);
    if (effect != SL_MASTER_START_REBALANCE) {
        sl__master_event_fail(event, SL_ECONFLICT, "it is changed or killed already");
        return;
    }
    sl__master_topology_reserve(topology, &event->plan);
    snprintf(topology->changer, sizeof(topology->changer), "%s",
             event->request != NULL ? sl_rpc_request_peer(event->request) : "somebody");
    int rc = change_ask(event, topology);
    if (rc != 0) {
        sl__master_topology_reserve(topology, NULL);
        sl__master_topology_act(topology, SL_MASTER_DO_END_REBALANCE, NULL);
        fail_last(event, rc);
        return;
    }
    /* The others go on: what this one may get is reserved. */
    sl__master_event_release(event);
    sl_list_push_back(&event->master->changing, &event->node);
}

/* What died. */

void
sl__master_handle_reassign(void *ctx, struct sl_rpc_request *request)
{
    struct sl_master *self = ctx;
    struct sl_arena arena;
    struct sl_master_reassign message;
    struct sl__master_topology *topology = NULL;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_create(&arena, 0, 1024 * 1024);
    int rc = sl_master_reassign_decode(body, size, &arena, &message);
    if (rc == 0) {
        enum sl_master_effect effect = SL_MASTER_NOTHING;
        topology = sl__master_topology_find(self, message.topology);
        if (topology != NULL) {
            sl__master_topology_act(topology, SL_MASTER_DO_MONITOR, &effect);
        }
        if (topology == NULL) {
            rc = sl_err_set(SL_ENOTFOUND, "no topology of that name is running");
        } else if (effect != SL_MASTER_REASSIGN_DEAD ||
                   sl__master_events_has(self, topology->name)) {
            rc = sl_err_set(SL_EAGAIN, "it is changed or killed at present");
        } else if (sl__master_nodes_are_silent(self)) {
            rc = sl_err_set(SL_EAGAIN, "too many supervisors are silent at once");
        }
    }
    if (rc != 0) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, rc, "%s", sl_err_last()->msg);
    } else {
        struct sl__master_event *event = sl__master_event_new(
            self, SL__MASTER_MONITOR, message.topology, request, SL__MASTER_CALL_MS);
        event->plan_version = message.plan_version;
        for (size_t i = 0; i < message.count; i++) {
            sl_vec_push(&event->dead, message.containers[i]);
            sl__master_topology_bar(topology, message.containers[i]);
        }
        sl_log_info("cluster", "containers of %s are to run elsewhere: count=%zu cause=%s",
                    message.topology, message.count, message.cause);
        sl__master_event_push(event);
    }
    sl_arena_destroy(&arena);
}

static void
plan_changed(void *ctx, const struct sl_rpc_result *result)
{
    char *name = ctx;
    if (result->status != SL_RPC_SUCCESS) {
        sl_log_info("cluster", "the topology master of %s will read its plan later: %s", name,
                    result->reason);
    }
    sl_free(name);
}

static void
tell_plan_changed(struct sl__master_topology *topology)
{
    char *name = sl_strdup(topology->name);
    if (sl__master_ask_topology(topology, SL_TM_PLAN_CHANGED, NULL, SL__MASTER_CALL_MS,
                                plan_changed, sl_free, name) != 0) {
        sl_free(name);
    }
}

static void
monitor_stored(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__master_event *event = ctx;
    struct sl__master_topology *topology = sl__master_topology_find(event->master, event->topology);
    (void)result;
    if (status != 0) {
        fail_last(event, status);
        return;
    }
    if (topology != NULL) {
        int32_t version = topology->plan_node_version + 1;
        sl_log_info("cluster", "%s has plan %llu: dead=%zu", event->topology,
                    (unsigned long long)event->plan.version, event->dead.count);
        sl__master_topology_set_starts(topology, &event->plan, &event->current);
        sl__master_topology_set_plan(topology, event->plan_bytes.data, event->plan_bytes.size,
                                     version);
        sl__master_backup(event->master, event->topology, &event->plan_bytes);
        if (event->is_master_dead) {
            move_master(topology, &event->old_master);
        } else {
            tell_plan_changed(topology);
        }
    }
    sl__master_event_done(event, NULL);
}

void
sl__master_monitor_assigned(struct sl__master_event *event)
{
    struct sl_master *self = event->master;
    struct sl__master_topology *topology = sl__master_topology_find(self, event->topology);
    enum sl_master_effect effect = SL_MASTER_NOTHING;
    char paths[2][SL_STATE_PATH_MAX + 1];
    struct sl_buf record = {0};
    if (topology != NULL) {
        sl__master_topology_act(topology, SL_MASTER_DO_MONITOR, &effect);
    }
    if (effect != SL_MASTER_REASSIGN_DEAD) {
        sl__master_event_fail(event, SL_ECONFLICT, "it is changed or killed meanwhile");
        return;
    }
    struct sl_scheduling scheduling = {
        .topology_id = topology->topology_id,
        .schedule = topology->schedule.data,
        .schedule_size = topology->schedule.size,
        .starts = sl_master_start_times(&event->plan, &event->current, topology->starts.items,
                                        topology->starts.count,
                                        sl_clock_wall_ms(sl_loop_clock(self->loop)), &event->arena),
        .start_count = (size_t)event->plan.plan.instance_count,
        .timeout_ms = self->options.supervisor_timeout_ms,
    };
    sl_scheduling_encode(&scheduling, &record);
    struct sl_state_op ops[] = {
        sl_state_op_set(sl_layout_path(paths[0], SL_LAYOUT_PLAN, event->topology),
                        event->plan_bytes.data, event->plan_bytes.size,
                        topology->plan_node_version),
        sl_state_op_set(sl_layout_path(paths[1], SL_LAYOUT_SCHEDULING, event->topology),
                        record.data, record.size, SL_STATE_ANY_VERSION),
    };
    sl_state_election_commit(self->election, ops, 2, sl__master_stored,
                             sl__master_call_new(self, monitor_stored, NULL, event));
    sl_buf_destroy(&record);
}
