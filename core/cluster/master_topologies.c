/* The topologies that masters schedule: what is stored of each, kept up to date, and whose every
 * slot of the cluster is. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/master_priv.h"

struct sl__master_topology *
sl__master_topology_find(const struct sl_master *self, const char *name)
{
    return sl_map_bytes_get_str(&self->topologies, name);
}

struct sl__master_topology *
sl__master_topology_add(struct sl_master *self, const char *name, const char *topology_id)
{
    struct sl__master_topology *topology = sl_calloc(1, sizeof(*topology));
    topology->master = self;
    topology->name = sl_strdup(name);
    topology->topology_id = sl_strdup(topology_id);
    topology->alone_ms = sl_loop_now_ms(self->loop);
    sl_arena_create(&topology->plan_arena, 0, 0);
    sl_map_bytes_put_str(&self->topologies, name, topology);
    return topology;
}

/* Slots. */

struct slot_key {
    char text[SL_NAME_MAX + 16];
};

static struct slot_key
slot_key(const char *supervisor, uint32_t port)
{
    struct slot_key key;
    snprintf(key.text, sizeof(key.text), "%.*s:%u", SL_NAME_MAX, supervisor, port);
    return key;
}

struct sl__master_topology *
sl__master_slot_owner(const struct sl_master *self, const char *supervisor, uint32_t port)
{
    return sl_map_bytes_get_str(&self->slots, slot_key(supervisor, port).text);
}

/* Slots of one list, which are this topology's unless another one has them. */
static void
take_slot(struct sl__master_topology *topology, char *key)
{
    if (sl_map_bytes_get_str(&topology->master->slots, key) == NULL) {
        sl_map_bytes_put_str(&topology->master->slots, key, topology);
    }
}

static void
drop_slots(struct sl__master_topology *topology)
{
    struct sl_master *self = topology->master;
    for (size_t i = 0; i < topology->slots.count + topology->reserved.count; i++) {
        const char *key = i < topology->slots.count
                              ? topology->slots.items[i]
                              : topology->reserved.items[i - topology->slots.count];
        if (sl_map_bytes_get_str(&self->slots, key) == topology) {
            sl_map_bytes_remove_str(&self->slots, key);
        }
    }
}

static void
take_slots(struct sl__master_topology *topology)
{
    for (size_t i = 0; i < topology->slots.count; i++) {
        take_slot(topology, topology->slots.items[i]);
    }
    for (size_t i = 0; i < topology->reserved.count; i++) {
        take_slot(topology, topology->reserved.items[i]);
    }
}

static void
clear_keys(struct sl__master_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++) {
        sl_free(keys->items[i]);
    }
    sl_vec_clear(keys);
}

static void
fill_keys(struct sl__master_keys *keys, const struct sl_stored_plan *plan)
{
    for (int32_t i = 0; i < plan->plan.container_count; i++) {
        if (plan->slots[i].supervisor[0] != '\0') {
            sl_vec_push(keys,
                        sl_strdup(slot_key(plan->slots[i].supervisor, plan->slots[i].port).text));
        }
    }
    if (plan->master_task > 0 && plan->master.supervisor[0] != '\0') {
        sl_vec_push(keys, sl_strdup(slot_key(plan->master.supervisor, plan->master.port).text));
    }
}

void
sl__master_topology_reserve(struct sl__master_topology *topology, const struct sl_stored_plan *plan)
{
    drop_slots(topology);
    clear_keys(&topology->reserved);
    if (plan != NULL) {
        fill_keys(&topology->reserved, plan);
    }
    take_slots(topology);
}

/* Bars. */

static void
bar_end(struct sl__master_topology *topology, size_t at)
{
    sl_free(topology->bars.items[at].key);
    sl_vec_remove(&topology->bars, at);
}

void
sl__master_topology_bar(struct sl__master_topology *topology, int32_t container)
{
    uint64_t now = sl_loop_now_ms(topology->master->loop);
    for (size_t i = topology->bars.count; i > 0; i--) {
        if (topology->bars.items[i - 1].until_ms <= now) {
            bar_end(topology, i - 1);
        }
    }
    for (int32_t i = 0; i < topology->plan.plan.container_count; i++) {
        const struct sl_plan_slot *slot = &topology->plan.slots[i];
        if (topology->plan.plan.containers[i].id == container && slot->supervisor[0] != '\0') {
            struct sl__master_bar bar = {sl_strdup(slot_key(slot->supervisor, slot->port).text),
                                         now + SL__MASTER_BAR_MS};
            sl_vec_push(&topology->bars, bar);
        }
    }
}

bool
sl__master_topology_is_barred(const struct sl__master_topology *topology, const char *supervisor,
                              uint32_t port)
{
    struct slot_key key = slot_key(supervisor, port);
    uint64_t now = sl_loop_now_ms(topology->master->loop);
    for (size_t i = 0; i < topology->bars.count; i++) {
        if (topology->bars.items[i].until_ms > now &&
            strcmp(topology->bars.items[i].key, key.text) == 0) {
            return true;
        }
    }
    return false;
}

/* The plan. */

bool
sl__master_topology_set_plan(struct sl__master_topology *topology, const uint8_t *data, size_t size,
                             int32_t node_version)
{
    struct sl_arena arena;
    struct sl_stored_plan plan;
    sl_arena_create(&arena, 0, 0);
    if (sl_stored_plan_decode(data, size, &arena, &plan) != 0) {
        sl_log_error("cluster", "the plan of %s: %s", topology->name, sl_err_last()->msg);
        sl_arena_destroy(&arena);
        return false;
    }
    sl_arena_destroy(&topology->plan_arena);
    topology->plan_arena = arena;
    topology->plan = plan;
    topology->plan_node_version = node_version;
    topology->has_plan = true;
    sl_buf_clear(&topology->plan_bytes);
    sl_buf_append(&topology->plan_bytes, data, size);
    drop_slots(topology);
    clear_keys(&topology->slots);
    fill_keys(&topology->slots, &plan);
    take_slots(topology);
    return true;
}

void
sl__master_topology_set_starts(struct sl__master_topology *topology,
                               const struct sl_stored_plan *plan,
                               const struct sl_stored_plan *before)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    const struct sl_master_start *starts =
        sl_master_start_times(plan, before, topology->starts.items, topology->starts.count,
                              sl_clock_wall_ms(sl_loop_clock(topology->master->loop)), &arena);
    sl_vec_clear(&topology->starts);
    for (int32_t i = 0; i < plan->plan.instance_count; i++) {
        sl_vec_push(&topology->starts, starts[i]);
    }
    sl_arena_destroy(&arena);
}

static void
plan_seen(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__master_topology *topology = ctx;
    if (status == 0 &&
        (!topology->has_plan || result->stat.version > topology->plan_node_version)) {
        sl__master_topology_set_plan(topology, result->value, result->size, result->stat.version);
    }
}

static void
execution_seen(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__master_topology *topology = ctx;
    struct sl_execution_state execution;
    struct sl_arena arena;
    if (status != 0) {
        return;
    }
    sl_arena_create(&arena, 0, 0);
    if (sl_execution_state_decode(result->value, result->size, &arena, &execution) == 0) {
        sl_buf_clear(&topology->execution);
        sl_buf_append(&topology->execution, result->value, result->size);
        sl__master_topology_act(
            topology, execution.is_active ? SL_MASTER_DO_ACTIVATE : SL_MASTER_DO_DEACTIVATE, NULL);
    }
    sl_arena_destroy(&arena);
}

static void
leader_seen(void *ctx, const char *address, uint64_t token)
{
    struct sl__master_topology *topology = ctx;
    bool was_led = topology->leader_token != 0;
    topology->leader_token = token;
    snprintf(topology->leader_address, sizeof(topology->leader_address), "%s",
             address != NULL ? address : "");
    if (token != 0) {
        topology->asked = 0;
    }
    if (was_led && token == 0) {
        topology->alone_ms = sl_loop_now_ms(topology->master->loop);
    }
    if (topology->status == SL_MASTER_KILLED && token != 0) {
        sl__master_kill_run(topology);
    }
}

void
sl__master_topology_watch(struct sl__master_topology *topology)
{
    struct sl_master *self = topology->master;
    char path[SL_STATE_PATH_MAX + 1];
    topology->plan_watch = sl_state_watch_new(self->options.store, SL_STATE_GET,
                                              sl_layout_path(path, SL_LAYOUT_PLAN, topology->name),
                                              plan_seen, topology);
    topology->execution_watch = sl_state_watch_new(
        self->options.store, SL_STATE_GET,
        sl_layout_path(path, SL_LAYOUT_EXECUTION_STATE, topology->name), execution_seen, topology);
    topology->leader = sl_leader_retrieval_new(
        self->options.store, self->loop,
        sl_layout_path(path, SL_LAYOUT_TOPOLOGY_LEADER, topology->name), leader_seen, topology);
}

void
sl__master_topology_remove(struct sl_master *self, struct sl__master_topology *topology)
{
    drop_slots(topology);
    clear_keys(&topology->slots);
    clear_keys(&topology->reserved);
    sl__master_forget(self, topology);
    sl__master_kills_fail(topology, SL_EAGAIN, "the master does not lead any more");
    sl_timer_stop(&topology->kill_timer);
    if (topology->plan_watch != NULL) {
        sl_state_watch_free(topology->plan_watch);
        sl_state_watch_free(topology->execution_watch);
        sl_leader_retrieval_free(topology->leader);
    }
    sl_map_bytes_remove_str(&self->topologies, topology->name);
    sl_vec_destroy(&topology->slots);
    sl_vec_destroy(&topology->reserved);
    while (topology->bars.count > 0) {
        bar_end(topology, topology->bars.count - 1);
    }
    sl_vec_destroy(&topology->bars);
    sl_vec_destroy(&topology->starts);
    sl_vec_destroy(&topology->kills);
    sl_arena_destroy(&topology->plan_arena);
    sl_buf_destroy(&topology->plan_bytes);
    sl_buf_destroy(&topology->schedule);
    sl_buf_destroy(&topology->execution);
    sl_free(topology->topology_id);
    sl_free(topology->name);
    sl_free(topology);
}

void
sl__master_topology_encode(const struct sl__master_topology *topology, struct sl_buf *out)
{
    struct sl_scheduling scheduling = {
        .topology_id = topology->topology_id,
        .schedule = topology->schedule.data,
        .schedule_size = topology->schedule.size,
        .kill_due_ms = topology->kill_due_ms,
        .is_purged = topology->is_purged,
        .starts = topology->starts.items,
        .start_count = topology->starts.count,
        .timeout_ms = topology->master->options.supervisor_timeout_ms,
    };
    sl_scheduling_encode(&scheduling, out);
}

void
sl__master_topology_act(struct sl__master_topology *topology, enum sl_master_action action,
                        enum sl_master_effect *effect)
{
    struct sl_master_transition next =
        sl_master_transition(topology->status, topology->before, action);
    if (next.status == SL_MASTER_REBALANCING && topology->status != SL_MASTER_REBALANCING) {
        topology->before = topology->status;
    }
    topology->status = next.status;
    if (effect != NULL) {
        *effect = next.effect;
    }
}
