/* What clients ask of a topology master: how it is, to wait until it is settled, to pause or go on,
 * to restart containers, to end. */
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "cluster/topology_master_priv.h"

/* The sums of all reports, in the order of the plan's components. */
static size_t
sum_counters(const struct sl_topology_master *self, struct sl_arena *arena,
             struct sl_worker_counters **out)
{
    int32_t count = self->plan->stored.component_count;
    struct sl_worker_counters *sums = sl_arena_calloc(arena, (size_t)count + 1, sizeof(*sums));
    for (int32_t i = 0; i < count; i++) {
        sums[i].component = self->plan->stored.components[i].name;
    }
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->workers, &at)) != NULL;) {
        const struct sl__tm_worker *worker = (void *)(uintptr_t)entry->value;
        struct sl_worker_report report;
        if (sl_worker_report_decode(worker->report.data, worker->report.size, arena, &report) !=
            0) {
            continue;
        }
        for (size_t i = 0; i < report.count; i++) {
            const struct sl_worker_counters *from = &report.components[i];
            int32_t place = sl_stored_plan_component(&self->plan->stored, from->component);
            if (place >= 0) {
                struct sl_worker_counters *to = &sums[place];
                to->executed += from->executed;
                to->emitted += from->emitted;
                to->acked += from->acked;
                to->failed += from->failed;
                to->pending += from->pending;
                to->errors += from->errors;
            }
        }
    }
    *out = sums;
    return (size_t)count;
}

static const char *
container_state(const struct sl_topology_master *self, const struct sl__tm_worker *worker)
{
    if (worker == NULL || !worker->is_registered || worker->ready_epoch == 0) {
        return "STARTING";
    }
    if (worker->ready_epoch != self->epoch) {
        return "CHANGING";
    }
    return worker->is_active ? "RUNNING" : "PAUSED";
}

/* Replies with the state of everything. */
static void
reply_status(struct sl_topology_master *self, struct sl_rpc_request *request)
{
    struct sl_arena arena;
    struct sl_buf out = {0};
    sl_arena_create(&arena, 0, 0);
    const struct sl_physical_plan *plan = &self->plan->physical;
    const struct sl_launcher *launcher = &self->options.launcher;
    size_t count = (size_t)plan->container_count;
    struct sl_control_container *containers =
        sl_arena_calloc(&arena, count + 1, sizeof(*containers));
    for (size_t i = 0; i < count; i++) {
        int32_t id = plan->containers[i].id;
        const struct sl__tm_worker *worker = sl__tm_worker_of(self, id);
        bool is_there = worker != NULL && worker->is_registered;
        containers[i] = (struct sl_control_container){
            .id = id,
            .pid = is_there ? worker->pid : launcher->pid(launcher->self, id),
            .host = is_there ? worker->host : "",
            .port = is_there ? worker->data_port : 0,
            .state = container_state(self, worker),
            .restarts = launcher->restarts(launcher->self, id),
        };
    }
    struct sl_control_event *events =
        sl_arena_calloc(&arena, self->events.count + 1, sizeof(*events));
    for (size_t i = 0; i < self->events.count; i++) {
        events[i] =
            (struct sl_control_event){self->events.items[i].time_ms, self->events.items[i].text};
    }
    struct sl_worker_counters *counters;
    size_t counter_count = sum_counters(self, &arena, &counters);
    struct sl_control_status status = {
        .topology = self->topology,
        .state = self->execution.state,
        .plan_version = self->plan->stored.version,
        .is_settled = self->is_settled,
        .failure = self->failure,
        .event_count = self->event_count,
        .events = events,
        .shown_events = self->events.count,
        .containers = containers,
        .container_count = count,
        .counters = counters,
        .counter_count = counter_count,
        .pid = self->options.pid,
        .guardian_pid = self->options.guardian_pid,
    };
    sl_control_status_encode(&status, &out);
    sl_rpc_reply(request, out.data, out.size);
    sl_buf_destroy(&out);
    sl_arena_destroy(&arena);
}

void
sl__tm_handle_status(void *ctx, struct sl_rpc_request *request)
{
    struct sl_topology_master *self = ctx;
    if (self->plan == NULL) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EAGAIN, "%s is not led yet", self->topology);
    } else {
        reply_status(self, request);
    }
}

static void
waiter_free(struct sl__tm_waiter *waiter)
{
    sl_timer_stop(&waiter->timer);
    sl_list_remove(&waiter->node);
    sl_free(waiter);
}

static bool
is_restarting(const struct sl_topology_master *self, int32_t id)
{
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->workers, &at)) != NULL;) {
        const struct sl__tm_worker *worker = (void *)(uintptr_t)entry->value;
        if (worker->is_restarting && (id == 0 || worker->id == id)) {
            return true;
        }
    }
    return false;
}

static bool
waiter_is_served(const struct sl__tm_waiter *waiter)
{
    const struct sl_topology_master *self = waiter->master;
    switch (waiter->method) {
    case SL_TM_AWAIT:
        return (waiter->wanted.wants_event ? self->event_count > waiter->wanted.seen_events
                                           : self->is_settled) ||
               self->failure != NULL;
    case SL_TM_RESTART:
        return self->is_settled && !is_restarting(self, waiter->wanted.container);
    default:
        return self->is_settled && !self->is_execution_writing &&
               self->execution.state ==
                   (waiter->wanted.is_active ? SL_TOPOLOGY_RUNNING : SL_TOPOLOGY_PAUSED);
    }
}

void
sl__tm_waiters_check(struct sl_topology_master *self)
{
    sl_list_each(&self->waiters, it)
    {
        struct sl__tm_waiter *waiter = sl_container_of(it, struct sl__tm_waiter, node);
        if (waiter_is_served(waiter)) {
            reply_status(self, waiter->request);
            waiter_free(waiter);
        }
    }
}

void
sl__tm_waiters_fail(struct sl_topology_master *self, const char *reason)
{
    sl_list_each(&self->waiters, it)
    {
        struct sl__tm_waiter *waiter = sl_container_of(it, struct sl__tm_waiter, node);
        sl_rpc_refuse(waiter->request, SL_RPC_FAILURE, SL_ECANCELED, "%s", reason);
        waiter_free(waiter);
    }
}

static void
waiter_is_late(void *ctx, uint64_t ticket)
{
    struct sl__tm_waiter *waiter = ctx;
    struct sl_topology_master *self = waiter->master;
    (void)ticket;
    if (waiter->method == SL_TM_AWAIT) {
        reply_status(self, waiter->request);
    } else {
        sl_rpc_refuse(waiter->request, SL_RPC_FAILURE, SL_ETIMEOUT,
                      "not done within %llu ms; the topology master goes on with it",
                      (unsigned long long)waiter->wanted.time_limit_ms);
    }
    waiter_free(waiter);
}

/* Starts what the request asks for. */
static int
begin_restart(struct sl_topology_master *self, int32_t id)
{
    const struct sl_launcher *launcher = &self->options.launcher;
    if (id != 0 && sl_physical_plan_container(&self->plan->physical, id) == NULL) {
        return sl_err_set(SL_ENOTFOUND, "%s has no container %d", self->topology, id);
    }
    for (int32_t i = 0; i < self->plan->physical.container_count; i++) {
        int32_t each = self->plan->physical.containers[i].id;
        if (id != 0 && each != id) {
            continue;
        }
        int rc = launcher->restart_container(launcher->self, each);
        if (rc != 0) {
            return rc;
        }
        sl__tm_worker_add(self, each)->is_restarting = true;
        self->is_settled = false;
        sl__tm_event(self, "container %d is restarted as asked", each);
    }
    return 0;
}

static int
begin(struct sl_topology_master *self, uint32_t method, const struct sl_control_request *wanted)
{
    if (method == SL_TM_AWAIT) {
        return 0;
    }
    if (self->update != NULL) {
        return sl_err_set(SL_ECONFLICT, "%s is being updated", self->topology);
    }
    if (method == SL_TM_RESTART) {
        return begin_restart(self, wanted->container);
    }
    if (self->execution.is_active != wanted->is_active) {
        self->execution.is_active = wanted->is_active;
        self->is_settled = false;
        sl__tm_save_execution(self);
        sl__tm_event(self, wanted->is_active ? "spouts are activated" : "spouts are deactivated");
        /* The published plan says so too. */
        self->published_epoch = 0;
    }
    return 0;
}

void
sl__tm_handle_waiting(void *ctx, struct sl_rpc_request *request)
{
    struct sl_topology_master *self = ctx;
    struct sl_arena arena;
    struct sl_control_request wanted;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    uint32_t method = sl_rpc_request_method(request);
    sl_arena_create(&arena, 0, 64 * 1024);
    int rc = sl_control_request_decode(body, size, &arena, &wanted);
    sl_arena_destroy(&arena);
    if (rc == 0 && self->phase != SL__TM_LEADING) {
        rc = sl_err_set(SL_EAGAIN, "%s is not led yet, or ends", self->topology);
    }
    if (rc == 0) {
        rc = begin(self, method, &wanted);
    }
    if (rc != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    struct sl__tm_waiter *waiter = sl_calloc(1, sizeof(*waiter));
    waiter->master = self;
    waiter->request = request;
    waiter->method = method;
    waiter->wanted = wanted;
    sl_list_push_back(&self->waiters, &waiter->node);
    sl_timer_start(self->loop, &waiter->timer, wanted.time_limit_ms, waiter_is_late, waiter);
    sl__tm_advance(self);
}

/*
 * Killing: pause, drain for as long as was asked, stop every container.  When a worker is just
 * being replaced, what is in flight can end only when it is there again: that is waited for, too.
 */

void
sl__tm_kill_stopped(struct sl_topology_master *self)
{
    sl__tm_event(self, "all containers have ended");
    if (self->kill_request != NULL) {
        reply_status(self, self->kill_request);
        self->kill_request = NULL;
    }
    sl__tm_end(self, 0, "killed");
}

static void
kill_containers(struct sl_topology_master *self)
{
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->workers, &at)) != NULL;) {
        sl__tm_send_shutdown((void *)(uintptr_t)entry->value, "killed");
    }
    self->options.launcher.stop_all(self->options.launcher.self);
}

static void
kill_drained(void *ctx, int status)
{
    struct sl_topology_master *self = ctx;
    if (status != 0) {
        sl__tm_event(self, "%llu roots and tuples are in flight and given up",
                     (unsigned long long)self->drain.left);
    }
    kill_containers(self);
}

static void
kill_begin(struct sl_topology_master *self)
{
    sl_timer_stop(&self->kill_timer);
    sl__tm_update_abandon(self);
    sl__tm_drain_stop(self);
    self->execution.state = SL_TOPOLOGY_KILLED;
    sl__tm_save_execution(self);
}

void
sl__tm_kill_start(struct sl_topology_master *self)
{
    self->phase = SL__TM_ENDING;
    sl__tm_waiters_fail(self, "the topology is killed");
    sl__tm_event(self, "is killed");
    kill_containers(self);
}

static void
kill_drain(struct sl_topology_master *self)
{
    uint64_t now = sl_loop_now_ms(self->loop);
    uint64_t left = self->kill_until_ms > now ? self->kill_until_ms - now : 0;
    kill_begin(self);
    self->phase = SL__TM_ENDING;
    sl__tm_waiters_fail(self, "the topology is killed");
    sl__tm_event(self, "is killed when nothing is in flight, or in %llu ms",
                 (unsigned long long)left);
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->workers, &at)) != NULL;) {
        struct sl__tm_worker *worker = (void *)(uintptr_t)entry->value;
        if (worker->is_registered) {
            sl__tm_send_spouts(worker, SL_SPOUTS_PAUSED);
        }
    }
    sl__tm_drain_start(self, left, SL__DRAIN_ALL, kill_drained, self);
}

static void
kill_is_late(void *ctx, uint64_t ticket)
{
    struct sl_topology_master *self = ctx;
    (void)ticket;
    if (self->phase == SL__TM_LEADING) {
        sl__tm_event(self, "does not run again in time");
        kill_begin(self);
        sl__tm_kill_start(self);
    }
}

/* In a turn of its own: whoever tells is in the middle of something. */
static void
kill_in_turn(void *ctx, uint64_t ticket)
{
    struct sl_topology_master *self = ctx;
    (void)ticket;
    if (self->phase == SL__TM_LEADING) {
        kill_drain(self);
    }
}

void
sl__tm_kill_settled(struct sl_topology_master *self)
{
    if (sl_timer_is_running(&self->kill_timer)) {
        sl_timer_start(self->loop, &self->kill_timer, 0, kill_in_turn, self);
    }
}

void
sl__tm_handle_kill(void *ctx, struct sl_rpc_request *request)
{
    struct sl_topology_master *self = ctx;
    struct sl_arena arena;
    struct sl_control_request wanted;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_create(&arena, 0, 64 * 1024);
    int rc = sl_control_request_decode(body, size, &arena, &wanted);
    sl_arena_destroy(&arena);
    if (rc == 0 && self->kill_request != NULL) {
        rc = sl_err_set(SL_ECONFLICT, "%s is being killed already", self->topology);
    } else if (rc == 0 && self->phase != SL__TM_LEADING) {
        rc = sl_err_set(SL_EAGAIN, "%s is not led yet, or ends", self->topology);
    }
    if (rc != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    self->kill_request = request;
    self->kill_until_ms = sl_loop_now_ms(self->loop) + wanted.time_limit_ms;
    if (wanted.time_limit_ms == 0 || !self->execution.is_active || !self->was_settled) {
        kill_begin(self);
        sl__tm_kill_start(self);
    } else if (!self->is_settled) {
        sl__tm_event(self, "is killed when it runs again and nothing is in flight, or in %llu ms",
                     (unsigned long long)wanted.time_limit_ms);
        sl_timer_start(self->loop, &self->kill_timer, wanted.time_limit_ms, kill_is_late, self);
    } else {
        kill_drain(self);
    }
}
