/* The workers of a topology master: who is registered, what they are sent, what they tell. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/topology_master.h"
#include "cluster/topology_master_priv.h"
#include "rpc/connections.h"

struct sl__tm_worker *
sl__tm_worker_of(const struct sl_topology_master *self, int32_t id)
{
    return sl_map_u64_get_ptr(&self->workers, (uint64_t)id);
}

struct sl__tm_worker *
sl__tm_worker_add(struct sl_topology_master *self, int32_t id)
{
    struct sl__tm_worker *worker = sl__tm_worker_of(self, id);
    if (worker == NULL) {
        worker = sl_calloc(1, sizeof(*worker));
        worker->master = self;
        worker->id = id;
        sl_map_u64_put_ptr(&self->workers, (uint64_t)id, worker);
    }
    return worker;
}

/* The worker is not there any more; its container is. */
static void
worker_unregister(struct sl__tm_worker *worker)
{
    if (worker->is_registered) {
        sl_peer_destroy(&worker->peer);
        worker->is_registered = false;
    }
    worker->sent_epoch = 0;
    worker->ready_epoch = 0;
    worker->plan_call = 0;
    worker->must_resend = false;
    worker->is_active = false;
    worker->is_held = false;
    worker->is_switching = false;
    sl_buf_clear(&worker->report);
}

void
sl__tm_worker_remove(struct sl_topology_master *self, struct sl__tm_worker *worker)
{
    sl_map_u64_remove_ptr(&self->workers, (uint64_t)worker->id);
    worker_unregister(worker);
    sl_buf_destroy(&worker->report);
    sl_free(worker);
}

/* The worker can not be counted on any more. */
void
sl__tm_worker_lost(struct sl__tm_worker *worker, const char *why)
{
    struct sl_topology_master *self = worker->master;
    if (worker->is_registered) {
        self->is_dirty = true;
        self->is_settled = false;
    }
    worker_unregister(worker);
    sl__tm_update_worker_lost(self, worker->id, why);
    sl__tm_advance(self);
}

static void
plan_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct sl__tm_worker *worker = ctx;
    struct sl_topology_master *self = worker->master;
    struct sl_worker_ready ready;
    worker->plan_call = 0;
    if (result->status == SL_RPC_SUCCESS &&
        sl_worker_ready_decode(result->body, result->size, &ready) == 0) {
        worker->ready_epoch = ready.epoch;
        sl__tm_advance(self);
        return;
    }
    if (result->status == SL_RPC_UNREACHABLE) {
        /* It may be gone, which is told in another way, or only the connection is. */
        worker->must_resend = true;
        sl__tm_nudge_later(self);
        return;
    }
    sl__tm_event(self, "container %d does not run the plan: %s", worker->id, result->reason);
    if (sl__tm_update_refused(self, worker->id, result)) {
        return;
    }
    if (!self->was_settled && self->failure == NULL) {
        self->failure = sl_strdup(result->reason);
    }
    self->options.launcher.restart_container(self->options.launcher.self, worker->id);
    sl__tm_worker_lost(worker, result->reason);
}

void
sl__tm_send_plan(struct sl__tm_worker *worker, const struct sl_physical_plan *plan)
{
    struct sl_topology_master *self = worker->master;
    struct sl_buf body = {0};
    if (sl_physical_plan_encode(plan, &body) == 0) {
        worker->sent_epoch = plan->epoch;
        worker->must_resend = false;
        worker->is_active = plan->state == SL_TOPOLOGY_RUNNING;
        worker->is_held = plan->is_held;
        /* The answer to an older one is of no use any more. */
        sl_rpc_cancel(worker->peer.gateway, worker->plan_call);
        worker->plan_call = sl_rpc_call(worker->peer.gateway, SL_WORKER_PLAN, body.data, body.size,
                                        self->options.plan_timeout_ms, plan_answered, worker);
    } else {
        sl__tm_event(self, "%s", sl_err_last()->msg);
    }
    sl_buf_destroy(&body);
}

static void
spouts_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct sl__tm_worker *worker = ctx;
    worker->is_switching = false;
    if (result->status != SL_RPC_SUCCESS) {
        worker->is_active = worker->was_active;
        worker->is_held = worker->was_held;
        sl__tm_nudge_later(worker->master);
        if (result->status != SL_RPC_UNREACHABLE) {
            sl__tm_event(worker->master, "container %d does not switch its spouts: %s", worker->id,
                         result->reason);
        }
        return;
    }
    sl__tm_advance(worker->master);
}

void
sl__tm_send_spouts(struct sl__tm_worker *worker, enum sl_worker_spouts spouts)
{
    struct sl_buf body = {0};
    sl_worker_spouts_encode(spouts, &body);
    worker->was_active = worker->is_active;
    worker->was_held = worker->is_held;
    worker->is_active = spouts == SL_SPOUTS_ACTIVE;
    worker->is_held = spouts >= SL_SPOUTS_HELD;
    worker->is_switching = true;
    sl_rpc_call(worker->peer.gateway, SL_WORKER_SPOUTS, body.data, body.size, 0, spouts_answered,
                worker);
    sl_buf_destroy(&body);
}

void
sl__tm_send_shutdown(struct sl__tm_worker *worker, const char *cause)
{
    struct sl_disconnect message = {"topology-master", worker->master->topology,
                                    worker->master->token, cause};
    if (worker->is_registered) {
        sl_connection_say_goodbye(worker->peer.gateway, SL_WORKER_SHUTDOWN, &message);
    }
}

/* The execution state. */

/* Registrations. */

static int
parse_data_address(struct sl__tm_worker *worker, const char *text)
{
    struct sl_address address;
    int rc = sl_address_parse(text, &address);
    if (rc == 0 && address.kind != SL_ADDRESS_TCP) {
        rc = sl_err_set(SL_EINVAL, "the data address %s is not one of TCP", text);
    }
    if (rc == 0) {
        snprintf(worker->host, sizeof(worker->host), "%s", address.host);
        worker->data_port = address.port;
    }
    return rc;
}

static bool
is_container(const struct sl_topology_master *self, int32_t id)
{
    return (self->plan != NULL && sl_physical_plan_container(&self->plan->physical, id) != NULL) ||
           sl__tm_update_plan_of(self, id) != NULL;
}

/* Where the plan puts a container, or the plan that an update is going to. */
static const struct sl_plan_slot *
slot_of(const struct sl_topology_master *self, int32_t id)
{
    const struct sl__tm_plan *plan = sl__tm_update_plan_of(self, id);
    const struct sl_stored_plan *stored = plan != NULL ? &plan->stored : &self->plan->stored;
    int32_t place = 0;
    while (place < stored->plan.container_count - 1 && stored->plan.containers[place].id != id) {
        place++;
    }
    return &stored->slots[place];
}

static void
monitor(struct sl__tm_worker *worker)
{
    sl_peer_monitor(&worker->peer, &worker->master->heartbeats, "topology-master",
                    SL_WORKER_HEARTBEAT);
}

/* Takes the worker in, in the place of an earlier one. */
static int
worker_register(struct sl_topology_master *self, const struct sl_register_peer *message)
{
    struct sl__tm_worker *worker = sl__tm_worker_add(self, message->container);
    if (worker->is_registered && worker->peer.process == message->process) {
        /* It lost our answer, or its connection. What it runs is told anew. */
        worker->sent_epoch = 0;
        self->is_dirty = true;
        return 0;
    }
    worker_unregister(worker);
    int rc = parse_data_address(worker, message->data_address);
    if (rc == 0) {
        rc = sl_peer_create(&worker->peer, self->options.rpc, message->resource, message->process,
                            message->address, SL_ENDPOINT_WORKER, 0);
    }
    if (rc != 0) {
        return rc;
    }
    worker->is_registered = true;
    worker->is_restarting = false;
    worker->pid = message->pid;
    memcpy(worker->identity, message->identity, SL_IDENTITY_SIZE);
    monitor(worker);
    self->is_dirty = true;
    self->is_settled = false;
    return 0;
}

void
sl__tm_register_with(struct sl_topology_master *self, struct sl_rpc_request *request,
                     const uint8_t *body, size_t size)
{
    struct sl_arena arena;
    struct sl_register_peer message;
    sl_arena_create(&arena, 0, 1024 * 1024);
    if (sl_register_peer_decode(body, size, &arena, &message) != 0) {
        sl_rpc_refuse_last(request);
    } else if (self->phase != SL__TM_LEADING) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EAGAIN, "%s is not led yet", self->topology);
    } else if (!is_container(self, message.container)) {
        sl_rpc_refuse(request, SL_RPC_REJECTION, SL_ENOTFOUND, "the plan has no container %d",
                      message.container);
    } else {
        const struct sl_launcher *launcher = &self->options.launcher;
        if (!launcher->is_worker(launcher->self, slot_of(self, message.container), &message)) {
            sl_rpc_refuse(request, SL_RPC_REJECTION, SL_EEXIST, "another process runs container %d",
                          message.container);
        } else if (worker_register(self, &message) != 0) {
            sl_rpc_refuse_last(request);
        } else {
            struct sl_buf out = {0};
            struct sl_registered answer = {"topology-master", message.process, self->token};
            sl_registered_encode(&answer, &out);
            sl_rpc_reply(request, out.data, out.size);
            sl_buf_destroy(&out);
            sl__tm_advance(self);
        }
    }
    sl_arena_destroy(&arena);
}

/* Workers are quicker than the plan: they are answered when it is there. What they said is kept, as
 * it does not outlive its handler. */
void
sl__tm_handle_register(void *ctx, struct sl_rpc_request *request)
{
    struct sl_topology_master *self = ctx;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    if (self->phase == SL__TM_STANDING || self->phase == SL__TM_LOADING) {
        struct sl__tm_early early = {.request = request};
        sl_buf_append(&early.body, body, size);
        sl_vec_push(&self->early, early);
    } else {
        sl__tm_register_with(self, request, body, size);
    }
}

void
sl__tm_handle_event(void *ctx, struct sl_rpc_request *request)
{
    struct sl_topology_master *self = ctx;
    struct sl_arena arena;
    struct sl_worker_event event;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_create(&arena, 0, 1024 * 1024);
    if (sl_worker_event_decode(body, size, &arena, &event) != 0) {
        sl_rpc_refuse_last(request);
        sl_arena_destroy(&arena);
        return;
    }
    if (event.component[0] != '\0') {
        sl__tm_event(self, "container %d: %s (task %d): %s", event.container, event.component,
                     event.task, event.text);
    } else {
        sl__tm_event(self, "container %d: %s", event.container, event.text);
    }
    if (event.is_fatal && !self->was_settled && self->failure == NULL) {
        self->failure = sl_strdup(event.text);
    }
    sl_rpc_reply(request, NULL, 0);
    sl_arena_destroy(&arena);
    sl__tm_advance(self);
}

/* Heartbeats: the id is the name of the worker, "container-3". */

static struct sl__tm_worker *
worker_by_resource(struct sl_topology_master *self, const char *resource)
{
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->workers, &at)) != NULL;) {
        struct sl__tm_worker *worker = (void *)(uintptr_t)entry->value;
        if (worker->is_registered && strcmp(worker->peer.resource, resource) == 0) {
            return worker;
        }
    }
    return NULL;
}

void
sl__tm_heartbeat_lost(void *ctx, const char *id)
{
    struct sl_topology_master *self = ctx;
    struct sl__tm_worker *worker = worker_by_resource(self, id);
    if (worker == NULL) {
        return;
    }
    if (!sl_state_store_is_safe(self->options.store)) {
        /* Another one may lead by now, to whom the worker went: nobody is judged meanwhile. */
        sl_heartbeats_unmonitor(&self->heartbeats, worker->peer.resource);
        monitor(worker);
        return;
    }
    sl__tm_event(self, "container %d gives no sign of life and is restarted", worker->id);
    self->options.launcher.restart_container(self->options.launcher.self, worker->id);
    sl__tm_worker_lost(worker, "no sign of life");
}

void
sl__tm_heartbeat_payload(void *ctx, const char *id, const uint8_t *payload, size_t size)
{
    struct sl__tm_worker *worker = worker_by_resource(ctx, id);
    if (worker != NULL) {
        sl_buf_clear(&worker->report);
        sl_buf_append(&worker->report, payload, size);
    }
}
