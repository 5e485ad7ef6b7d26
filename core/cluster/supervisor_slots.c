#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/supervisor_slots_priv.h"

static struct sl_rpc_gateway *
rm_gateway(const struct sl_supervisor_slots *self)
{
    return sl_leader_link_gateway(&self->rm.link);
}

/* The full slot report, made in the turn in which it is sent. */
static void
write_report(const struct sl_supervisor_slots *self, struct sl_buf *out)
{
    struct sl_slot_status slots[SL_SLOT_TABLE_MAX];
    struct sl_slot_list list = {
        .resource = self->options.identity->resource, .instance = self->instance, .slots = slots};
    list.count = sl_slot_table_list(&self->table, NULL, -1, slots, SL_SLOT_TABLE_MAX);
    sl_slot_report_encode(&list, out);
}

static void
registration_limit_over(void *ctx, uint64_t ticket)
{
    struct sl_supervisor_slots *self = ctx;
    char reason[SL_REASON_SIZE];
    (void)ticket;
    snprintf(reason, sizeof(reason), "no registration at a resource manager within %llu ms",
             (unsigned long long)self->options.registration_timeout_ms);
    self->options.on_fatal(self->options.ctx, reason);
}

static void
start_registration_limit(struct sl_supervisor_slots *self)
{
    sl_timer_start(self->loop, &self->registration_timer, self->options.registration_timeout_ms,
                   registration_limit_over, self);
}

static void
report_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct sl_supervisor_slots *self = ctx;
    if (result->status != SL_RPC_SUCCESS) {
        char cause[SL_REASON_SIZE];
        snprintf(cause, sizeof(cause), "the slot report failed: %.200s", result->reason);
        sl_leader_link_reconnect(&self->rm.link, cause);
    }
}

static void
rm_registered(void *ctx, struct sl_leader_link *link, const struct sl_registered *answer)
{
    struct sl_supervisor_slots *self = ctx;
    struct sl_buf body = {0};
    self->instance = answer->instance;
    snprintf(self->rm_resource, sizeof(self->rm_resource), "%s", answer->resource);
    sl_timer_stop(&self->registration_timer);
    sl_heartbeats_unmonitor(&self->rm_heartbeats, self->rm_resource);
    sl_heartbeats_monitor(&self->rm_heartbeats, self->rm_resource, NULL);
    write_report(self, &body);
    sl_rpc_call(sl_leader_link_gateway(link), SL_RM_SLOT_REPORT, body.data, body.size, 0,
                report_answered, self);
    sl_buf_destroy(&body);
}

static void
rm_closing(void *ctx, struct sl_leader_link *link, const char *cause)
{
    struct sl_supervisor_slots *self = ctx;
    /* The token of a supervisor's goodbye is the instance that it is about. */
    struct sl_disconnect message = {
        .resource = self->options.identity->resource, .token = self->instance, .cause = cause};
    sl_heartbeats_unmonitor(&self->rm_heartbeats, self->rm_resource);
    sl_connection_say_goodbye(sl_leader_link_gateway(link), SL_RM_DISCONNECT_SUPERVISOR, &message);
    self->instance = 0;
    if (!self->is_freeing) {
        start_registration_limit(self);
    }
}

static void
rm_failed(void *ctx, struct sl_leader_link *link, enum sl_registration_end kind, int code,
          const char *reason)
{
    struct sl_supervisor_slots *self = ctx;
    (void)link;
    (void)code;
    if (kind != SL_REGISTRATION_STALE) {
        self->options.on_fatal(self->options.ctx, reason);
    } else if (self->options.on_stale_leader != NULL) {
        self->options.on_stale_leader(self->options.ctx, NULL);
    }
}

void
sl_supervisor_slots_rm_leader(struct sl_supervisor_slots *self, const char *address, uint64_t token)
{
    start_registration_limit(self);
    sl_leader_link_notify_new_leader(&self->rm.link, address, token);
}

static void
rm_heartbeat_lost(void *ctx, const char *id)
{
    struct sl_supervisor_slots *self = ctx;
    if (rm_gateway(self) != NULL && strcmp(id, self->rm_resource) == 0) {
        sl_leader_link_reconnect(&self->rm.link, "the heartbeat of the resource manager was lost");
    }
}

static void
rm_heartbeat_payload(void *ctx, const char *id, struct sl_buf *out)
{
    (void)id;
    write_report(ctx, out);
}

/* Tells the resource manager that a slot is free. */
static void
tell_available(struct sl_supervisor_slots *self, const char *topology, uint64_t allocation,
               uint32_t port, const char *cause)
{
    struct sl_slot_notice notice = {.resource = self->options.identity->resource,
                                    .instance = self->instance,
                                    .topology = topology,
                                    .port = port,
                                    .allocation = allocation,
                                    .cause = cause};
    if (rm_gateway(self) != NULL) {
        sl_peer_send_notice(rm_gateway(self), SL_RM_SLOT_AVAILABLE, &notice);
    }
}

static void
slot_freed(void *ctx, const char *topology, uint64_t allocation, uint32_t port, const char *cause)
{
    struct sl_supervisor_slots *self = ctx;
    tell_available(self, topology, allocation, port, cause);
    sl__sv_drop_if_empty(self, topology);
}

static void
slot_timed_out(void *ctx, uint64_t allocation, uint64_t ticket)
{
    struct sl_supervisor_slots *self = ctx;
    if (sl_slot_table_is_timeout(&self->table, allocation, ticket)) {
        sl_slot_table_free(&self->table, allocation,
                           "no topology master accepted the slot in time");
    }
}

static void
slot_stop_tasks(void *ctx, uint64_t allocation, uint32_t port, const char *cause)
{
    struct sl_supervisor_slots *self = ctx;
    self->options.stop_tasks(self->options.ctx, allocation, port, cause);
}

/* The endpoint. */
static void
reply_occupied(struct sl_rpc_request *request, const struct sl_held_slot *occupant)
{
    struct sl_slot_notice notice = {
        .topology = occupant->topology, .port = occupant->port, .allocation = occupant->allocation};
    struct sl_buf body = {0};
    sl_slot_notice_encode(&notice, &body);
    sl_rpc_reply(request, body.data, body.size);
    sl_buf_destroy(&body);
}

static void
handle_request_slot(void *ctx, struct sl_rpc_request *request)
{
    struct sl_supervisor_slots *self = ctx;
    const struct sl_held_slot *occupant;
    struct sl_slot_request message;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_reset(&self->arena);
    if (sl_slot_request_decode(body, size, &self->arena, &message) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    if (self->instance == 0 || rm_gateway(self) == NULL ||
        sl_rpc_gateway_token(rm_gateway(self)) != message.token) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EFENCED,
                      "%s is not connected to that resource manager",
                      self->options.identity->resource);
        return;
    }
    int rc = sl_slot_table_allocate(&self->table, message.port, message.topology,
                                    message.allocation, &message.profile, &occupant);
    if (rc == SL_EEXIST) {
        reply_occupied(request, occupant);
        return;
    }
    if (rc != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    struct sl__sv_topology *topology = sl__sv_find_topology(self, message.topology);
    if (topology == NULL) {
        topology = sl__sv_add_topology(self, message.topology);
    }
    if (topology == NULL) {
        sl_slot_table_free(&self->table, message.allocation, "its leader can not be watched");
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EUNAVAIL,
                      "the leader of topology %s can not be watched", message.topology);
        return;
    }
    sl_rpc_reply(request, NULL, 0);
    sl__sv_offer_slots(self, topology);
}

static void
handle_free_slot(void *ctx, struct sl_rpc_request *request)
{
    struct sl_supervisor_slots *self = ctx;
    struct sl_slot_notice notice;
    if (!sl_peer_read_notice(request, &self->arena, &notice)) {
        return;
    }
    const struct sl__sv_topology *topology = sl__sv_find_topology(self, notice.topology);
    if (topology != NULL && topology->token != notice.token) {
        /* An old topology master does not know that its slots are another's now. */
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EFENCED,
                      "the topology master of %s is of another term", notice.topology);
        return;
    }
    if (sl_slot_table_free(&self->table, notice.allocation, notice.cause)) {
        sl_rpc_reply(request, NULL, 0);
    } else {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_ENOTFOUND, "no such allocation here");
    }
}

static void
handle_free_inactive(void *ctx, struct sl_rpc_request *request)
{
    struct sl_supervisor_slots *self = ctx;
    struct sl_slot_notice notice;
    if (sl_peer_read_notice(request, &self->arena, &notice)) {
        sl__sv_free_slots_of(self, notice.topology, SL_HELD_ALLOCATED, notice.cause);
        sl_rpc_reply(request, NULL, 0);
    }
}

static void
handle_disconnect(void *ctx, struct sl_rpc_request *request)
{
    struct sl_supervisor_slots *self = ctx;
    struct sl_disconnect message;
    if (!sl_peer_read_disconnect(request, &self->arena, &message)) {
        return;
    }
    if (sl_rpc_request_method(request) == SL_SV_DISCONNECT_RESOURCE_MANAGER) {
        if (rm_gateway(self) != NULL && sl_rpc_gateway_token(rm_gateway(self)) == message.token) {
            sl_leader_link_reconnect(&self->rm.link, message.cause);
        }
    } else {
        const struct sl__sv_topology *topology = sl__sv_find_topology(self, message.topology);
        if (topology != NULL && topology->token == message.token) {
            sl_supervisor_slots_reconnect(self, topology->name, message.cause);
        }
    }
    sl_rpc_reply(request, NULL, 0);
}

static void
handle_can_be_released(void *ctx, struct sl_rpc_request *request)
{
    struct sl_supervisor_slots *self = ctx;
    if (self->topologies.count == 0) {
        sl_rpc_reply(request, NULL, 0);
    } else {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_ECONFLICT, "topologies have slots here");
    }
}

static void
handle_identify(void *ctx, struct sl_rpc_request *request)
{
    const struct sl_supervisor_slots *self = ctx;
    sl_peer_reply_registered(request, self->options.identity->resource,
                             self->options.identity->process, 0);
}

static void
handle_rm_heartbeat(void *ctx, struct sl_rpc_request *request)
{
    struct sl_supervisor_slots *self = ctx;
    sl_peer_answer_heartbeat(&self->rm_heartbeats, self->options.identity->resource, request);
}

static void
handle_tm_heartbeat(void *ctx, struct sl_rpc_request *request)
{
    struct sl_supervisor_slots *self = ctx;
    sl_peer_answer_heartbeat(&self->tm_heartbeats, self->options.identity->resource, request);
}

static void
handle_process(void *ctx, struct sl_rpc_request *request)
{
    struct sl_supervisor_slots *self = ctx;
    if (self->options.on_request != NULL) {
        self->options.on_request(self->options.ctx, request);
    } else {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EUNAVAIL, "%s starts no processes",
                      self->options.identity->resource);
    }
}

static const struct sl_rpc_method methods[] = {
    {SL_SV_REQUEST_SLOT, handle_request_slot},
    {SL_SV_FREE_SLOT, handle_free_slot},
    {SL_SV_FREE_INACTIVE_SLOTS, handle_free_inactive},
    {SL_SV_CAN_BE_RELEASED, handle_can_be_released},
    {SL_SV_DISCONNECT_TOPOLOGY_MASTER, handle_disconnect},
    {SL_SV_DISCONNECT_RESOURCE_MANAGER, handle_disconnect},
    {SL_SV_HEARTBEAT_OF_RESOURCE_MANAGER, handle_rm_heartbeat},
    {SL_SV_HEARTBEAT_OF_TOPOLOGY_MASTER, handle_tm_heartbeat},
    {SL_SV_IDENTIFY, handle_identify},
    {SL_SV_START_MASTER, handle_process},
    {SL_SV_STOP_MASTER, handle_process},
    {SL_SV_START_WORKER, handle_process},
    {SL_SV_RESTART_WORKER, handle_process},
    {SL_SV_STOP_WORKER, handle_process},
    {SL_SV_RESTART_MASTER, handle_process},
    {SL_SV_READ_LOG, handle_process},
};

int
sl_supervisor_slots_new(const struct sl_supervisor_slots_options *options,
                        struct sl_supervisor_slots **out)
{
    int rc = sl_heartbeat_config_check(&options->heartbeat);
    if (rc != 0) {
        return rc;
    }
    if (options->port_count > SL_SLOT_TABLE_MAX) {
        return sl_err_set(SL_EINVAL, "a supervisor has at most %d slots", SL_SLOT_TABLE_MAX);
    }
    struct sl_supervisor_slots *self = sl_calloc(1, sizeof(*self));
    struct sl_rpc_endpoint_options endpoint = {.name = SL_ENDPOINT_SUPERVISOR,
                                               .methods = methods,
                                               .method_count = sizeof(methods) / sizeof(methods[0]),
                                               .ctx = self};
    struct sl_connection_listener rm = {rm_registered, rm_closing, rm_failed, self};
    struct sl_slot_table_ops table = {slot_timed_out, slot_freed, slot_stop_tasks, self};
    struct sl_heartbeat_listener rm_beats = {
        .on_timeout = rm_heartbeat_lost, .make_payload = rm_heartbeat_payload, .ctx = self};
    struct sl_heartbeat_listener tm_beats = {.on_timeout = sl__sv_tm_heartbeat_lost,
                                             .on_payload = sl__sv_tm_heartbeat_payload,
                                             .ctx = self};
    self->options = *options;
    self->loop = sl_rpc_loop(options->rpc);
    rc = sl_connection_supervisor_to_rm(&self->rm, options->rpc, &options->registration,
                                        options->identity, &rm);
    if (rc == 0) {
        rc = sl_rpc_endpoint_start(options->rpc, &self->endpoint, &endpoint);
    }
    if (rc != 0) {
        sl_free(self);
        return rc;
    }
    sl_arena_create(&self->arena, 0, 1024 * 1024);
    sl_slot_table_create(&self->table, self->loop, options->ports, options->port_count,
                         &options->identity->default_profile, options->slot_timeout_ms, &table);
    if (options->orphan_timeout_ms != 0) {
        self->table.orphan_timeout_ms = options->orphan_timeout_ms;
    }
    sl_heartbeats_create(&self->rm_heartbeats, self->loop, false, &options->heartbeat, &rm_beats);
    sl_heartbeats_create(&self->tm_heartbeats, self->loop, false, &options->heartbeat, &tm_beats);
    start_registration_limit(self);
    *out = self;
    return 0;
}

void
sl_supervisor_slots_free(struct sl_supervisor_slots *self)
{
    struct sl_map_bytes_entry *entry;
    if (self == NULL) {
        return;
    }
    self->is_freeing = true;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->topologies, &at)) != NULL;) {
        sl__sv_forget_topology(self, entry->value, "the supervisor stops");
    }
    sl_leader_link_close(&self->rm.link, "the supervisor stops");
    sl_connection_destroy(&self->rm);
    sl_rpc_endpoint_stop(&self->endpoint);
    sl_heartbeats_destroy(&self->rm_heartbeats);
    sl_heartbeats_destroy(&self->tm_heartbeats);
    sl_slot_table_destroy(&self->table);
    sl_timer_stop(&self->registration_timer);
    sl_map_bytes_destroy(&self->topologies);
    sl_arena_destroy(&self->arena);
    sl_free(self);
}

bool
sl_supervisor_slots_take_over(struct sl_supervisor_slots *self, const char *topology, uint32_t port,
                              uint64_t allocation)
{
    const struct sl_held_slot *occupant;
    struct sl_profile profile = sl_profile_unknown();
    if (sl_slot_table_allocate(&self->table, port, topology, allocation, &profile, &occupant) !=
        0) {
        return false;
    }
    if (sl__sv_find_topology(self, topology) == NULL &&
        sl__sv_add_topology(self, topology) == NULL) {
        sl_slot_table_free(&self->table, allocation, "its leader can not be watched");
        return false;
    }
    sl_slot_table_add_task(&self->table, allocation);
    sl_slot_table_deactivate(&self->table, topology);
    return true;
}

void
sl_supervisor_slots_tell(struct sl_supervisor_slots *self, const char *topology, uint32_t method,
                         const struct sl_buf *body)
{
    const struct sl__sv_topology *known = sl__sv_find_topology(self, topology);
    if (known != NULL && sl__sv_tm_gateway(known) != NULL) {
        sl_rpc_send(sl__sv_tm_gateway(known), method, body->data, body->size);
    }
}

uint64_t
sl_supervisor_slots_topology_token(const struct sl_supervisor_slots *self, const char *topology)
{
    const struct sl__sv_topology *known = sl__sv_find_topology(self, topology);
    return known != NULL && known->has_leader ? known->token : 0;
}

bool
sl_supervisor_slots_task_started(struct sl_supervisor_slots *self, uint64_t allocation)
{
    return sl_slot_table_add_task(&self->table, allocation);
}

void
sl_supervisor_slots_task_ended(struct sl_supervisor_slots *self, uint64_t allocation)
{
    sl_slot_table_remove_task(&self->table, allocation);
}

void
sl_supervisor_slots_fail(struct sl_supervisor_slots *self, uint64_t allocation, const char *cause)
{
    const struct sl_held_slot *slot = sl_slot_table_find(&self->table, allocation);
    struct sl__sv_topology *topology =
        slot != NULL ? sl__sv_find_topology(self, slot->topology) : NULL;
    if (topology != NULL) {
        sl__sv_tell_failed(self, topology, allocation, cause);
    }
    sl_slot_table_free(&self->table, allocation, cause);
}

const struct sl_slot_table *
sl_supervisor_slots_table(const struct sl_supervisor_slots *self)
{
    return &self->table;
}

uint64_t
sl_supervisor_slots_instance(const struct sl_supervisor_slots *self)
{
    return self->instance;
}

bool
sl_supervisor_slots_has_topology(const struct sl_supervisor_slots *self, const char *name)
{
    return sl__sv_find_topology(self, name) != NULL;
}

bool
sl_supervisor_slots_is_linked(const struct sl_supervisor_slots *self, const char *name)
{
    const struct sl__sv_topology *topology = sl__sv_find_topology(self, name);
    return topology != NULL && sl__sv_tm_gateway(topology) != NULL;
}
