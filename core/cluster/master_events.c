/*
 * The assignment thread: events wait in a queue and are assigned one after the other.
 *
 *     queue -> snapshot of cluster and topology -> sl_master_assign on a thread -> by kind:
 *         NEW      all nodes in one transaction, topology master started
 *         CHANGE   the topology master carries it out; meanwhile others go on
 *         MONITOR  plan by compare-and-set, topology master told
 *
 * What fails writes nothing, and its request gets that event's own error.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/master_priv.h"

enum {
    /* Before supervisors that are about to register are looked at again. */
    READY_MS = 50,
};

static void
event_late(void *ctx, uint64_t ticket)
{
    struct sl__master_event *event = ctx;
    (void)ticket;
    struct sl_rpc_request *request = event->request;
    bool is_waiting = event->is_queued;
    event->request = NULL;
    event->is_dropped = true;
    if (request != NULL) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_ETIMEOUT,
                      is_waiting ? "the master has not come to it yet; nothing was done"
                                 : "the master is not done yet; it goes on");
    }
    if (is_waiting) {
        sl_list_remove(&event->node);
        if (event->kind == SL__MASTER_NEW) {
            sl__master_new_failed(event);
        }
        sl__master_event_free(event);
    }
}

struct sl__master_event *
sl__master_event_new(struct sl_master *self, enum sl__master_event_kind kind, const char *topology,
                     struct sl_rpc_request *request, uint64_t limit_ms)
{
    struct sl__master_event *event = sl_calloc(1, sizeof(*event));
    event->master = self;
    event->kind = kind;
    event->topology = sl_strdup(topology);
    event->request = request;
    sl_arena_create(&event->arena, 0, 0);
    sl__master_event_limit(event, limit_ms);
    return event;
}

void
sl__master_event_limit(struct sl__master_event *event, uint64_t limit_ms)
{
    if (limit_ms > 0) {
        sl_timer_start(event->master->loop, &event->timer, limit_ms, event_late, event);
    }
}

void
sl__master_event_free(struct sl__master_event *event)
{
    sl_timer_stop(&event->timer);
    if (event->request != NULL) {
        sl_rpc_refuse(event->request, SL_RPC_FAILURE, SL_EAGAIN,
                      "the master does not lead any more");
    }
    sl_vec_destroy(&event->dead);
    sl_vec_destroy(&event->unstopped);
    sl_arena_destroy(&event->arena);
    sl_buf_destroy(&event->bytes);
    sl_buf_destroy(&event->plan_bytes);
    sl_buf_destroy(&event->result);
    sl_free(event->topology_id);
    sl_free(event->topology);
    sl_free(event);
}

void
sl__master_event_push(struct sl__master_event *event)
{
    event->is_queued = true;
    sl_list_push_back(&event->master->events, &event->node);
    sl__master_events_run(event->master);
}

/* The term is over. What a thread has goes when that is done. */
static void
abandon(struct sl__master_event *event)
{
    if (!event->is_working) {
        sl__master_event_free(event);
        return;
    }
    event->master = NULL;
    sl_timer_stop(&event->timer);
    if (event->request != NULL) {
        sl_rpc_refuse(event->request, SL_RPC_FAILURE, SL_EAGAIN,
                      "the master does not lead any more");
        event->request = NULL;
    }
}

void
sl__master_events_clear(struct sl_master *self)
{
    while (!sl_list_is_empty(&self->events)) {
        sl__master_event_free(
            sl_container_of(sl_list_pop_front(&self->events), struct sl__master_event, node));
    }
    while (!sl_list_is_empty(&self->storing)) {
        abandon(sl_container_of(sl_list_pop_front(&self->storing), struct sl__master_event, node));
    }
    struct sl__master_event *running = self->running;
    self->running = NULL;
    if (running != NULL) {
        abandon(running);
    }
    while (!sl_list_is_empty(&self->changing)) {
        abandon(sl_container_of(sl_list_pop_front(&self->changing), struct sl__master_event, node));
    }
}

bool
sl__master_events_has(const struct sl_master *self, const char *topology)
{
    if (self->running != NULL && strcmp(self->running->topology, topology) == 0) {
        return true;
    }
    sl_list_each(&self->events, it)
    {
        if (strcmp(sl_container_of(it, struct sl__master_event, node)->topology, topology) == 0) {
            return true;
        }
    }
    return false;
}

static void
run_later(void *ctx, uint64_t ticket)
{
    (void)ticket;
    sl__master_events_run(ctx);
}

void
sl__master_event_release(struct sl__master_event *event)
{
    struct sl_master *self = event->master;
    if (self->running == event) {
        self->running = NULL;
        sl_timer_start(self->loop, &self->wait_timer, 0, run_later, self);
    }
}

void
sl__master_event_fail(struct sl__master_event *event, int code, const char *reason)
{
    sl__master_event_release(event);
    sl_log_info("cluster", "event of %s failed: %s", event->topology, reason);
    if (event->kind == SL__MASTER_NEW) {
        sl__master_new_failed(event);
    }
    if (event->request != NULL) {
        sl_rpc_refuse(event->request, SL_RPC_FAILURE, code, "%s", reason);
        event->request = NULL;
    }
    sl__master_event_free(event);
}

void
sl__master_event_done(struct sl__master_event *event, const struct sl_buf *answer)
{
    sl__master_event_release(event);
    if (event->request != NULL) {
        sl_rpc_reply(event->request, answer != NULL ? answer->data : NULL,
                     answer != NULL ? answer->size : 0);
        event->request = NULL;
    }
    sl__master_event_free(event);
}

/* The snapshot. */

/* A container that runs in the slot keeps it. */
static bool
is_held(const struct sl__master_event *event, const char *supervisor, uint32_t port)
{
    const struct sl_stored_plan *plan = &event->current;
    for (int32_t i = 0; event->wish.current != NULL && i < plan->plan.container_count; i++) {
        bool is_dead = false;
        for (size_t k = 0; k < event->dead.count; k++) {
            is_dead = is_dead || event->dead.items[k] == plan->plan.containers[i].id;
        }
        if (!is_dead && plan->slots[i].port == port &&
            strcmp(plan->slots[i].supervisor, supervisor) == 0) {
            return true;
        }
    }
    return false;
}

static bool
is_for_others(const struct sl__master_event *event, const char *supervisor, uint32_t port)
{
    const struct sl__master_topology *topology =
        sl__master_topology_find(event->master, event->topology);
    const struct sl__master_topology *owner =
        sl__master_slot_owner(event->master, supervisor, port);
    if (owner != NULL && owner != topology) {
        return true;
    }
    return topology != NULL && sl__master_topology_is_barred(topology, supervisor, port) &&
           !is_held(event, supervisor, port);
}

static void
add_nodes(struct sl__master_event *event)
{
    struct sl_master *self = event->master;
    struct sl_map_bytes_entry *entry;
    struct sl_master_node *nodes =
        sl_arena_calloc(&event->arena, self->nodes.count + 1, sizeof(*nodes));
    size_t count = 0;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->nodes, &at)) != NULL;) {
        const struct sl__master_node *node = entry->value;
        if (!node->has_info || node->info.is_drained ||
            !sl__master_node_is_registered(self, node->id)) {
            continue;
        }
        size_t ports = node->info.port_count;
        uint32_t *list = sl_arena_calloc(&event->arena, ports + 1, sizeof(*list));
        uint32_t *used = sl_arena_calloc(&event->arena, ports + 1, sizeof(*used));
        size_t used_count = 0;
        for (size_t i = 0; i < ports; i++) {
            list[i] = node->info.ports[i];
            if (is_for_others(event, node->id, list[i])) {
                used[used_count++] = list[i];
            }
        }
        nodes[count++] = (struct sl_master_node){
            .id = sl_arena_strdup(&event->arena, node->id),
            .host = sl_arena_strdup(&event->arena, node->info.host),
            .ports = list,
            .port_count = ports,
            .used = used,
            .used_count = used_count,
            .cpu_cores = node->info.cpu_cores,
            .ram_bytes = (double)node->info.ram_bytes,
        };
    }
    event->wish.nodes = nodes;
    event->wish.node_count = count;
}

/* Containers in slots of supervisors that are gone, but which run on. */
static void
add_unstopped(struct sl__master_event *event, const struct sl_stored_plan *plan)
{
    struct sl_master *self = event->master;
    sl_vec_clear(&event->unstopped);
    for (int32_t i = 0; i < plan->plan.container_count; i++) {
        int32_t id = plan->plan.containers[i].id;
        bool is_dead = false;
        for (size_t k = 0; k < event->dead.count; k++) {
            is_dead = is_dead || event->dead.items[k] == id;
        }
        if (!is_dead && plan->slots[i].supervisor[0] != '\0' &&
            !sl__master_node_is_registered(self, plan->slots[i].supervisor)) {
            sl_vec_push(&event->unstopped, id);
        }
    }
}

static int
decode_copy(struct sl__master_event *event, const uint8_t *data, size_t size,
            struct sl_stored_plan *plan)
{
    const uint8_t *copy = sl_arena_memdup(&event->arena, data, size);
    return sl_stored_plan_decode(copy, size, &event->arena, plan);
}

static int
take_current(struct sl__master_event *event, struct sl__master_topology *topology)
{
    const struct sl_buf *bytes = &topology->plan_bytes;
    if (topology->status == SL_MASTER_KILLED) {
        return sl_err_set(SL_ECONFLICT, "the topology is being killed");
    }
    if (!topology->has_plan) {
        return sl_err_set(SL_EAGAIN, "the plan is not read yet");
    }
    if (event->plan_version != 0 && event->plan_version != topology->plan.version) {
        return sl_err_set(SL_ECONFLICT, "its plan has version %llu, not %llu",
                          (unsigned long long)topology->plan.version,
                          (unsigned long long)event->plan_version);
    }
    int rc = decode_copy(event, bytes->data, bytes->size, &event->current);
    if (rc == 0) {
        event->wish.current = &event->current;
        event->old_master = event->current.master;
        add_unstopped(event, &event->current);
        event->wish.dead = event->dead.items;
        event->wish.dead_count = event->dead.count;
        event->wish.unstopped = event->unstopped.items;
        event->wish.unstopped_count = event->unstopped.count;
        event->wish.is_master_dead = event->is_master_dead;
    }
    return rc;
}

/* All that the assignment looks at, in memory of the event's own. */
static int
take_snapshot(struct sl__master_event *event)
{
    struct sl_master *self = event->master;
    struct sl__master_topology *topology = sl__master_topology_find(self, event->topology);
    const uint8_t *schedule = NULL;
    size_t size = 0;
    int rc = 0;
    if (event->kind == SL__MASTER_NEW) {
        schedule = event->submit.schedule;
        size = event->submit.schedule_size;
        event->wish.mode = SL_SCHED_NEW;
        rc = topology != NULL ? sl_err_set(SL_EEXIST, "it is running already") : 0;
    } else if (topology == NULL) {
        return sl_err_set(SL_ENOTFOUND, "no topology of that name is running");
    } else {
        rc = take_current(event, topology);
        schedule = topology->schedule.data;
        size = topology->schedule.size;
        event->wish.mode = SL_SCHED_MONITOR;
        event->proposed = event->current;
        if (event->kind == SL__MASTER_CHANGE) {
            event->wish.mode = event->update.mode;
            schedule = event->update.schedule_size > 0 ? event->update.schedule : schedule;
            size = event->update.schedule_size > 0 ? event->update.schedule_size : size;
        }
    }
    if (rc == 0 && event->kind != SL__MASTER_MONITOR) {
        const uint8_t *plan =
            event->kind == SL__MASTER_NEW ? event->submit.plan : event->update.proposed;
        size_t plan_size =
            event->kind == SL__MASTER_NEW ? event->submit.plan_size : event->update.proposed_size;
        rc = sl_stored_plan_decode(plan, plan_size, &event->arena, &event->proposed);
    }
    if (rc == 0 && strcmp(event->proposed.topology, event->topology) != 0) {
        rc = sl_err_set(SL_EINVAL, "its plan is that of %s", event->proposed.topology);
    }
    if (rc == 0) {
        const uint8_t *copy = sl_arena_memdup(&event->arena, schedule, size);
        rc = sl_schedule_template_decode(copy, size, &event->arena, &event->schedule);
    }
    if (rc == 0) {
        event->wish.schedule = &event->schedule;
        event->wish.proposed = &event->proposed;
        add_nodes(event);
    }
    return rc;
}

/* The work. */

static void
event_work(void *ctx)
{
    struct sl__master_event *event = ctx;
    int rc = sl_master_assign(&event->wish, &event->arena, &event->plan);
    if (rc == 0) {
        rc = sl_stored_plan_encode(&event->plan, &event->plan_bytes);
    }
    event->code = rc;
    if (rc != 0) {
        snprintf(event->reason, sizeof(event->reason), "%s", sl_err_last()->msg);
    }
}

static void
event_worked(void *ctx)
{
    struct sl__master_event *event = ctx;
    event->is_working = false;
    if (event->master == NULL) {
        sl__master_event_free(event);
        return;
    }
    if (event->code != 0) {
        sl__master_event_fail(event, event->code, event->reason);
        return;
    }
    if (event->is_dropped) {
        sl__master_event_fail(event, SL_ETIMEOUT, "its time is over");
        return;
    }
    switch (event->kind) {
    case SL__MASTER_NEW:
        sl__master_new_assigned(event);
        break;
    case SL__MASTER_CHANGE:
        sl__master_change_assigned(event);
        break;
    case SL__MASTER_MONITOR:
        sl__master_monitor_assigned(event);
        break;
    }
}

static void
begin_work(struct sl__master_event *event)
{
    int rc = take_snapshot(event);
    if (rc != 0) {
        char reason[SL_REASON_SIZE];
        snprintf(reason, sizeof(reason), "%s", sl_err_last()->msg);
        sl__master_event_fail(event, rc, reason);
        return;
    }
    event->is_working = true;
    sl_loop_work(event->master->loop, event_work, event_worked, event);
}

/* A topology that comes back is put where it was, if it asks for that. */
static void
backup_read(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__master_event *event = ctx;
    const uint8_t *plan;
    size_t size;
    if (status == 0) {
        const uint8_t *copy = sl_arena_memdup(&event->arena, result->value, result->size);
        if (sl_assignment_backup_decode(copy, result->size, &event->arena, &plan, &size) == 0 &&
            sl_stored_plan_decode(plan, size, &event->arena, &event->backup) == 0) {
            event->wish.backup = &event->backup;
        }
    } else if (status != SL_ENOTFOUND) {
        char reason[SL_REASON_SIZE];
        snprintf(reason, sizeof(reason), "%s", sl_err_last()->msg);
        sl__master_event_fail(event, status, reason);
        return;
    }
    begin_work(event);
}

void
sl__master_events_run(struct sl_master *self)
{
    char path[SL_STATE_PATH_MAX + 1];
    if (self->phase != SL__MASTER_LEADING || self->running != NULL || self->is_suspended ||
        sl_list_is_empty(&self->events)) {
        return;
    }
    if (!sl__master_nodes_are_ready(self)) {
        sl_timer_start(self->loop, &self->wait_timer, READY_MS, run_later, self);
        return;
    }
    struct sl__master_event *event =
        sl_container_of(sl_list_pop_front(&self->events), struct sl__master_event, node);
    self->running = event;
    event->is_queued = false;
    if (event->kind == SL__MASTER_NEW) {
        sl_state_get(self->options.store, sl_layout_path(path, SL_LAYOUT_BACKUP, event->topology),
                     sl__master_stored, sl__master_call_new(self, backup_read, NULL, event));
    } else {
        begin_work(event);
    }
}

/* Backups. */

struct backup {
    struct sl_state_store *store;
    char *topology;
    struct sl_buf value;
};

static void
backup_end(struct backup *backup, int status)
{
    if (status != 0) {
        sl_log_warn("cluster", "the assignment of %s is not kept: %s", backup->topology,
                    sl_err_last()->msg);
    }
    sl_free(backup->topology);
    sl_buf_destroy(&backup->value);
    sl_free(backup);
}

static void
backup_made(void *ctx, int status, const struct sl_state_result *result)
{
    (void)result;
    backup_end(ctx, status);
}

static void
backup_set(void *ctx, int status, const struct sl_state_result *result)
{
    struct backup *backup = ctx;
    char path[SL_STATE_PATH_MAX + 1];
    (void)result;
    if (status != SL_ENOTFOUND) {
        backup_end(backup, status);
        return;
    }
    sl_state_create(backup->store, sl_layout_path(path, SL_LAYOUT_BACKUP, backup->topology),
                    backup->value.data, backup->value.size, SL_STATE_PARENTS, backup_made, backup);
}

void
sl__master_backup(struct sl_master *self, const char *topology, const struct sl_buf *plan)
{
    char path[SL_STATE_PATH_MAX + 1];
    struct backup *backup = sl_calloc(1, sizeof(*backup));
    backup->store = self->options.store;
    backup->topology = sl_strdup(topology);
    sl_assignment_backup_encode(plan->data, plan->size, &backup->value);
    sl_state_set(self->options.store, sl_layout_path(path, SL_LAYOUT_BACKUP, topology),
                 backup->value.data, backup->value.size, SL_STATE_ANY_VERSION, backup_set, backup);
}
