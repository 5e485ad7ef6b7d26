/*
 * The monitor: in every round it looks at every topology, whatever it finds at the others.
 *
 *     nobody leads it, its supervisor lives     the supervisor is asked to start one
 *     nobody leads it, its supervisor is dead   the topology master is placed anew, first of all
 *     slots on dead supervisors                 its topology master is asked what runs there still:
 *                                               what does not is placed anew
 *
 * When too many supervisors are silent at once nothing is placed anew: then the way to them is
 * broken rather than they.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/control_messages.h"
#include "cluster/master_priv.h"

static bool
has_dead_slot(struct sl__master_topology *topology)
{
    for (int32_t i = 0; i < topology->plan.plan.container_count; i++) {
        if (topology->plan.slots[i].supervisor[0] != '\0' &&
            sl__master_node_is_dead(topology->master, topology->plan.slots[i].supervisor)) {
            return true;
        }
    }
    return false;
}

/* Puts what died on the queue; nothing dead: nothing. */
static void
push_dead(struct sl__master_event *event)
{
    if (event->dead.count > 0 || event->is_master_dead) {
        sl__master_event_push(event);
    } else {
        sl__master_event_free(event);
    }
}

static bool
is_running(const struct sl_control_status *status, int32_t id)
{
    for (size_t i = 0; i < status->container_count; i++) {
        if (status->containers[i].id == id) {
            return strcmp(status->containers[i].state, "RUNNING") == 0;
        }
    }
    return false;
}

static void
status_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct sl__master_topology *topology = ctx;
    struct sl_master *self = topology->master;
    struct sl_control_status status;
    struct sl_arena arena;
    topology->is_checking = false;
    if (result->status != SL_RPC_SUCCESS || sl__master_events_has(self, topology->name)) {
        return;
    }
    sl_arena_create(&arena, 0, 8 * 1024 * 1024);
    if (sl_control_status_decode(result->body, result->size, &arena, &status) == 0 &&
        status.plan_version == topology->plan.version) {
        struct sl__master_event *event =
            sl__master_event_new(self, SL__MASTER_MONITOR, topology->name, NULL, 0);
        event->plan_version = topology->plan.version;
        for (int32_t i = 0; i < topology->plan.plan.container_count; i++) {
            int32_t id = topology->plan.plan.containers[i].id;
            if (sl__master_node_is_dead(self, topology->plan.slots[i].supervisor) &&
                !is_running(&status, id)) {
                sl_vec_push(&event->dead, id);
            }
        }
        push_dead(event);
    }
    sl_arena_destroy(&arena);
}

/* Its topology master has the word on what runs, and what leads it is looked at first. */
static void
check_led(struct sl__master_topology *topology)
{
    if (has_dead_slot(topology)) {
        topology->is_checking =
            sl__master_ask_topology(topology, SL_TM_STATUS, NULL, SL__MASTER_CALL_MS,
                                    status_answered, NULL, topology) == 0;
    }
}

static void
check_alone(struct sl__master_topology *topology)
{
    struct sl_master *self = topology->master;
    const char *supervisor = topology->plan.master.supervisor;
    uint64_t alone = sl_loop_now_ms(self->loop) - topology->alone_ms;
    if (sl__master_node_is_dead(self, supervisor)) {
        struct sl__master_event *event =
            sl__master_event_new(self, SL__MASTER_MONITOR, topology->name, NULL, 0);
        event->plan_version = topology->plan.version;
        event->is_master_dead = true;
        sl_log_info("cluster", "the topology master of %s is gone with supervisor %s",
                    topology->name, supervisor);
        push_dead(event);
    } else if (alone > SL_MASTER_START_MS && sl__master_node_is_registered(self, supervisor)) {
        sl__master_start_topology(topology);
    }
}

static void
check_topology(struct sl__master_topology *topology)
{
    enum sl_master_effect effect;
    sl__master_topology_act(topology, SL_MASTER_DO_MONITOR, &effect);
    if (effect != SL_MASTER_REASSIGN_DEAD || !topology->has_plan || topology->is_checking ||
        sl__master_events_has(topology->master, topology->name)) {
        return;
    }
    if (topology->leader_token != 0) {
        check_led(topology);
    } else {
        check_alone(topology);
    }
}

void
sl_master_check(struct sl_master *self)
{
    struct sl_map_bytes_entry *entry;
    if (self->phase != SL__MASTER_LEADING || self->is_suspended || !self->has_nodes) {
        return;
    }
    sl__master_nodes_look(self);
    bool is_silent = sl__master_nodes_are_silent(self);
    if (is_silent != self->is_frozen) {
        self->is_frozen = is_silent;
        sl_log_warn("cluster", is_silent ? "too many supervisors are silent: nothing is moved"
                                         : "enough supervisors are heard again");
    }
    if (is_silent) {
        return;
    }
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->topologies, &at)) != NULL;) {
        check_topology(entry->value);
    }
}

static void
monitor_round(void *ctx, uint64_t ticket)
{
    struct sl_master *self = ctx;
    (void)ticket;
    sl_master_check(self);
    sl_timer_start(self->loop, &self->monitor_timer, self->options.monitor_interval_ms,
                   monitor_round, self);
}

void
sl__master_monitor_start(struct sl_master *self)
{
    sl_timer_start(self->loop, &self->monitor_timer, self->options.monitor_interval_ms,
                   monitor_round, self);
}
