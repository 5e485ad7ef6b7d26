#include "cluster/resource_manager.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/resource_manager_priv.h"

struct sl__rm_supervisor *
sl__rm_find_supervisor(const struct sl_resource_manager *self, const char *name)
{
    return sl_map_bytes_get_str(&self->supervisors, name);
}

struct sl__rm_topology *
sl__rm_find_topology(const struct sl_resource_manager *self, const char *name)
{
    return sl_map_bytes_get_str(&self->topologies, name);
}

void
sl__rm_remove_supervisor(struct sl_resource_manager *self, struct sl__rm_supervisor *supervisor,
                         const char *cause)
{
    uint64_t instance = supervisor->instance;
    sl_map_bytes_remove_str(&self->supervisors, supervisor->peer.resource);
    sl_map_u64_remove(&self->by_instance, instance, NULL);
    sl_slot_manager_unregister(&self->slots, instance, cause);
    /* Its open calls end with the gateway, untold. */
    sl_list_each(&supervisor->calls, it)
    {
        sl_free(sl_container_of(it, struct slot_call, node));
    }
    sl_peer_destroy(&supervisor->peer);
    sl_free(supervisor);
}

/* Tells a supervisor that it is not registered any more, then forgets it. */
static void
disconnect_supervisor(struct sl_resource_manager *self, struct sl__rm_supervisor *supervisor,
                      const char *cause)
{
    struct sl_disconnect message = {.resource = self->options.resource, .cause = cause};
    sl_log_warn("cluster", "supervisor lost name=%s cause=%s", supervisor->peer.resource, cause);
    message.token = self->endpoint.token;
    sl_connection_say_goodbye(supervisor->peer.gateway, SL_SV_DISCONNECT_RESOURCE_MANAGER,
                              &message);
    sl__rm_remove_supervisor(self, supervisor, cause);
}

static void
remove_master(struct sl__rm_topology *topology)
{
    if (topology->has_master) {
        topology->has_master = false;
        sl_peer_destroy(&topology->master);
    }
}

void
sl__rm_disconnect_master(struct sl_resource_manager *self, struct sl__rm_topology *topology,
                         const char *cause)
{
    struct sl_disconnect message = {.resource = self->options.resource,
                                    .topology = topology->name,
                                    .token = self->endpoint.token,
                                    .cause = cause};
    if (!topology->has_master) {
        return;
    }
    sl_connection_say_goodbye(topology->master.gateway, SL_TM_DISCONNECT_RESOURCE_MANAGER,
                              &message);
    remove_master(topology);
}

static void
forget_topology(struct sl_resource_manager *self, struct sl__rm_topology *topology)
{
    sl__rm_outdate_checks(self, topology->name, topology->name);
    remove_master(topology);
    sl_timer_stop(&topology->timer);
    if (topology->is_watched) {
        self->options.watch.stop(self->options.watch.ctx, topology->name);
    }
    sl_map_bytes_remove_str(&self->topologies, topology->name);
    sl_free(topology);
}

static void
free_inactive_slots(struct sl_resource_manager *self, const char *topology)
{
    struct sl_slot_notice notice = {.topology = topology, .cause = "the topology ended"};
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->supervisors, &at)) != NULL;) {
        const struct sl__rm_supervisor *supervisor = entry->value;
        sl_peer_send_notice(supervisor->peer.gateway, SL_SV_FREE_INACTIVE_SLOTS, &notice);
    }
}

void
sl_resource_manager_topology_ended(struct sl_resource_manager *self, const char *name)
{
    struct sl__rm_topology *topology = sl__rm_find_topology(self, name);
    free_inactive_slots(self, name);
    if (topology != NULL) {
        sl__rm_disconnect_master(self, topology, "the topology ended");
        forget_topology(self, topology);
    }
}

static void
topology_timed_out(void *ctx, uint64_t ticket)
{
    struct sl__rm_topology *topology = ctx;
    struct sl_resource_manager *self = topology->manager;
    char name[SL_NAME_MAX + 1];
    (void)ticket;
    memcpy(name, topology->name, sizeof(name));
    sl_resource_manager_topology_ended(self, name);
    if (self->options.on_topology_timeout != NULL) {
        self->options.on_topology_timeout(self->options.ctx, name);
    }
}

static void
arm_topology(struct sl__rm_topology *topology)
{
    sl_timer_start(topology->manager->loop, &topology->timer,
                   topology->manager->options.topology_timeout_ms, topology_timed_out, topology);
}

/* NULL when the topology can not be watched. */
struct sl__rm_topology *
sl__rm_add_topology(struct sl_resource_manager *self, const char *name)
{
    struct sl__rm_topology *topology = sl_calloc(1, sizeof(*topology));
    topology->manager = self;
    snprintf(topology->name, sizeof(topology->name), "%s", name);
    sl_map_bytes_put_str(&self->topologies, name, topology);
    arm_topology(topology);
    if (self->options.watch.start(self->options.watch.ctx, name) != 0) {
        forget_topology(self, topology);
        return NULL;
    }
    topology->is_watched = true;
    return topology;
}

static void
handle_slot_report(void *ctx, struct sl_rpc_request *request)
{
    struct sl_resource_manager *self = ctx;
    struct sl_slot_list report;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_reset(&self->arena);
    if (sl_slot_report_decode(body, size, &self->arena, &report) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    const struct sl__rm_supervisor *supervisor = sl__rm_find_supervisor(self, report.resource);
    if (supervisor == NULL || supervisor->instance != report.instance) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_ENOTFOUND,
                      "%s is not registered under that instance", report.resource);
        return;
    }
    sl_slot_manager_register(&self->slots, report.instance, &report);
    sl_rpc_reply(request, NULL, 0);
}

static void
handle_slot_available(void *ctx, struct sl_rpc_request *request)
{
    struct sl_resource_manager *self = ctx;
    struct sl_slot_notice notice;
    if (sl_peer_read_notice(request, &self->arena, &notice)) {
        /* The notice of an old instance is dropped. */
        if (sl_map_u64_get_ptr(&self->by_instance, notice.instance) != NULL) {
            sl_slot_manager_free_slot(&self->slots, notice.instance, notice.port,
                                      notice.allocation);
        }
        sl_rpc_reply(request, NULL, 0);
    }
}

/* The topology whose registered master sent this token; refuses otherwise. */
static struct sl__rm_topology *
authorize(struct sl_resource_manager *self, struct sl_rpc_request *request, const char *name,
          uint64_t token)
{
    struct sl__rm_topology *topology = sl__rm_find_topology(self, name);
    if (topology == NULL || !topology->has_master) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_ENOTFOUND, "no registered topology master of %s",
                      name);
        return NULL;
    }
    if (topology->token != token) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EFENCED, "leader id does not match for %s", name);
        return NULL;
    }
    return topology;
}

static void
handle_request_slot(void *ctx, struct sl_rpc_request *request)
{
    struct sl_resource_manager *self = ctx;
    struct sl_slot_request message;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_reset(&self->arena);
    if (sl_slot_request_decode(body, size, &self->arena, &message) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    if (authorize(self, request, message.topology, message.token) == NULL) {
        return;
    }
    /* The acknowledgement says that the request is known, not that there is a slot. */
    message.token = self->endpoint.token;
    int rc = sl_slot_manager_request(&self->slots, &message);
    if (rc < 0) {
        sl_rpc_refuse(request, SL_RPC_REJECTION, rc, "%s", sl_err_last()->msg);
    } else {
        sl_rpc_reply(request, NULL, 0);
    }
}

static void
handle_cancel_slot(void *ctx, struct sl_rpc_request *request)
{
    struct sl_resource_manager *self = ctx;
    struct sl_slot_notice notice;
    if (sl_peer_read_notice(request, &self->arena, &notice) &&
        authorize(self, request, notice.topology, notice.token) != NULL) {
        sl_slot_manager_cancel(&self->slots, notice.allocation);
        sl_rpc_reply(request, NULL, 0);
    }
}

static void
handle_disconnect(void *ctx, struct sl_rpc_request *request)
{
    struct sl_resource_manager *self = ctx;
    struct sl_disconnect message;
    if (!sl_peer_read_disconnect(request, &self->arena, &message)) {
        return;
    }
    if (sl_rpc_request_method(request) == SL_RM_DISCONNECT_SUPERVISOR) {
        struct sl__rm_supervisor *supervisor = sl__rm_find_supervisor(self, message.resource);
        /* The goodbye of an old registration is not about the present one. */
        if (supervisor != NULL && supervisor->instance == message.token) {
            sl__rm_remove_supervisor(self, supervisor, message.cause);
        }
    } else {
        struct sl__rm_topology *topology = sl__rm_find_topology(self, message.topology);
        if (topology != NULL && topology->has_master && topology->token == message.token) {
            remove_master(topology);
        }
    }
    sl_rpc_reply(request, NULL, 0);
}

static const struct sl_rpc_method methods[] = {
    {SL_RM_REGISTER_SUPERVISOR, sl__rm_register_supervisor},
    {SL_RM_REGISTER_TOPOLOGY_MASTER, sl__rm_register_master},
    {SL_RM_SLOT_REPORT, handle_slot_report},
    {SL_RM_SLOT_AVAILABLE, handle_slot_available},
    {SL_RM_REQUEST_SLOT, handle_request_slot},
    {SL_RM_CANCEL_SLOT, handle_cancel_slot},
    {SL_RM_DISCONNECT_SUPERVISOR, handle_disconnect},
    {SL_RM_DISCONNECT_TOPOLOGY_MASTER, handle_disconnect},
};

/* Heartbeats: a peer that is lost is told so, in case it can still hear. */
static void
supervisor_lost(void *ctx, const char *id)
{
    struct sl_resource_manager *self = ctx;
    struct sl__rm_supervisor *supervisor = sl__rm_find_supervisor(self, id);
    if (supervisor != NULL) {
        disconnect_supervisor(self, supervisor, "its heartbeat was lost");
    }
}

static void
master_lost(void *ctx, const char *id)
{
    struct sl_resource_manager *self = ctx;
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->topologies, &at)) != NULL;) {
        struct sl__rm_topology *topology = entry->value;
        if (topology->has_master && strcmp(topology->master.resource, id) == 0) {
            sl__rm_disconnect_master(self, topology, "its heartbeat was lost");
            return;
        }
    }
}

static void
heartbeat_payload(void *ctx, const char *id, const uint8_t *payload, size_t size)
{
    struct sl_resource_manager *self = ctx;
    struct sl_slot_list report;
    struct sl_arena arena;
    const struct sl__rm_supervisor *supervisor = sl__rm_find_supervisor(self, id);
    if (supervisor == NULL || size == 0) {
        return;
    }
    sl_arena_create(&arena, 0, 8 * 1024 * 1024);
    if (sl_slot_report_decode(payload, size, &arena, &report) == 0 &&
        report.instance == supervisor->instance) {
        sl_slot_manager_report(&self->slots, report.instance, &report);
    }
    sl_arena_destroy(&arena);
}

static void
slot_call_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct slot_call *call = ctx;
    struct sl_resource_manager *self = call->manager;
    struct sl_slot_notice occupant;
    struct sl_arena arena;
    uint64_t number = call->call;
    sl_list_remove(&call->node);
    sl_free(call);
    if (result->status != SL_RPC_SUCCESS) {
        sl_slot_manager_answered(&self->slots, number, SL_SLOT_ERROR, 0, NULL);
        return;
    }
    if (result->size == 0) {
        sl_slot_manager_answered(&self->slots, number, SL_SLOT_ACK, 0, NULL);
        return;
    }
    sl_arena_create(&arena, 0, 64 * 1024);
    if (sl_slot_notice_decode(result->body, result->size, &arena, &occupant) == 0) {
        sl_slot_manager_answered(&self->slots, number, SL_SLOT_OCCUPIED, occupant.allocation,
                                 occupant.topology);
    } else {
        sl_slot_manager_answered(&self->slots, number, SL_SLOT_ERROR, 0, NULL);
    }
    sl_arena_destroy(&arena);
}

static void
op_request_slot(void *ctx, uint64_t instance, const char *name, uint32_t port, uint64_t number,
                const struct sl_slot_request *request)
{
    struct sl_resource_manager *self = ctx;
    struct sl__rm_supervisor *supervisor = sl_map_u64_get_ptr(&self->by_instance, instance);
    struct sl_slot_request message = *request;
    struct sl_buf body = {0};
    sl_assert(supervisor != NULL);
    message.supervisor = name;
    message.port = port;
    message.token = self->endpoint.token;
    sl_slot_request_encode(&message, &body);
    struct slot_call *call = sl_calloc(1, sizeof(*call));
    call->manager = self;
    call->call = number;
    sl_list_push_back(&supervisor->calls, &call->node);
    sl_rpc_call(supervisor->peer.gateway, SL_SV_REQUEST_SLOT, body.data, body.size, 0,
                slot_call_answered, call);
    sl_buf_destroy(&body);
}

static void
op_allocation_failed(void *ctx, const char *name, uint64_t allocation, bool is_unfulfillable,
                     const char *cause)
{
    struct sl_resource_manager *self = ctx;
    const struct sl__rm_topology *topology = sl__rm_find_topology(self, name);
    struct sl_slot_notice notice = {.topology = name,
                                    .allocation = allocation,
                                    .cause = cause,
                                    .is_unfulfillable = is_unfulfillable};
    if (topology != NULL && topology->has_master) {
        sl_peer_send_notice(topology->master.gateway, SL_TM_ALLOCATION_FAILED, &notice);
    }
}

static int
op_start_supervisor(void *ctx)
{
    struct sl_resource_manager *self = ctx;
    return self->options.start_supervisor(self->options.ctx);
}

static void
op_release_supervisor(void *ctx, uint64_t instance, const char *cause)
{
    struct sl_resource_manager *self = ctx;
    const struct sl__rm_supervisor *supervisor = sl_map_u64_get_ptr(&self->by_instance, instance);
    if (supervisor != NULL) {
        self->options.release_supervisor(self->options.ctx, supervisor->peer.resource, cause);
    }
}

int
sl_resource_manager_new(const struct sl_resource_manager_options *options,
                        struct sl_resource_manager **out)
{
    int rc = sl_heartbeat_config_check(&options->heartbeat);
    if (rc != 0) {
        return rc;
    }
    struct sl_resource_manager *self = sl_calloc(1, sizeof(*self));
    struct sl_rpc_endpoint_options endpoint = {.name = SL_ENDPOINT_RESOURCE_MANAGER,
                                               .is_fenced = true,
                                               .methods = methods,
                                               .method_count = sizeof(methods) / sizeof(methods[0]),
                                               .ctx = self};
    struct sl_slot_manager_ops ops = {
        .request_slot = op_request_slot,
        .allocation_failed = op_allocation_failed,
        .start_supervisor = options->start_supervisor != NULL ? op_start_supervisor : NULL,
        .release_supervisor = options->release_supervisor != NULL ? op_release_supervisor : NULL,
        .ctx = self,
    };
    self->options = *options;
    self->loop = sl_rpc_loop(options->rpc);
    rc = sl_rpc_endpoint_start(options->rpc, &self->endpoint, &endpoint);
    if (rc != 0) {
        sl_free(self);
        return rc;
    }
    sl_list_create(&self->checks);
    sl_arena_create(&self->arena, 0, 8 * 1024 * 1024);
    sl_slot_manager_create(&self->slots, self->loop, &options->slots, &ops);
    sl_slot_manager_suspend(&self->slots);
    *out = self;
    return 0;
}

static void
clear(struct sl_resource_manager *self)
{
    struct sl_map_bytes_entry *entry;
    sl_timer_stop(&self->grace);
    if (!self->slots.is_suspended) {
        sl_slot_manager_suspend(&self->slots);
    }
    sl__rm_end_checks(self);
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->supervisors, &at)) != NULL;) {
        sl__rm_remove_supervisor(self, entry->value, "the term ended");
    }
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->topologies, &at)) != NULL;) {
        forget_topology(self, entry->value);
    }
    sl_heartbeats_destroy(&self->heartbeats);
    sl_heartbeats_destroy(&self->master_heartbeats);
}

void
sl_resource_manager_free(struct sl_resource_manager *self)
{
    if (self == NULL) {
        return;
    }
    sl_resource_manager_revoke(self);
    sl_rpc_endpoint_stop(&self->endpoint);
    sl_slot_manager_destroy(&self->slots);
    sl_map_bytes_destroy(&self->supervisors);
    sl_map_u64_destroy(&self->by_instance);
    sl_map_bytes_destroy(&self->topologies);
    sl_arena_destroy(&self->arena);
    sl_free(self);
}

static void
grace_over(void *ctx, uint64_t ticket)
{
    struct sl_resource_manager *self = ctx;
    (void)ticket;
    sl_slot_manager_fail_unfulfillable(&self->slots, self->options.slots.is_failing_unfulfillable);
}

void
sl_resource_manager_grant(struct sl_resource_manager *self, uint64_t token)
{
    struct sl_heartbeat_listener supervisors = {
        .on_timeout = supervisor_lost, .on_payload = heartbeat_payload, .ctx = self};
    struct sl_heartbeat_listener masters = {.on_timeout = master_lost, .ctx = self};
    sl_assert_ne(token, 0);
    clear(self);
    self->is_leading = true;
    sl_rpc_endpoint_set_token(&self->endpoint, token);
    int rc = sl_heartbeats_create(&self->heartbeats, self->loop, true, &self->options.heartbeat,
                                  &supervisors);
    sl_assert_eq(rc, 0);
    rc = sl_heartbeats_create(&self->master_heartbeats, self->loop, true, &self->options.heartbeat,
                              &masters);
    sl_assert_eq(rc, 0);
    sl_slot_manager_resume(&self->slots);
    sl_slot_manager_fail_unfulfillable(&self->slots,
                                       self->options.start_up_ms == 0 &&
                                           self->options.slots.is_failing_unfulfillable);
    if (self->options.start_up_ms > 0) {
        sl_timer_start(self->loop, &self->grace, self->options.start_up_ms, grace_over, self);
    }
    if (self->options.on_ready != NULL) {
        self->options.on_ready(self->options.ctx, token);
    }
}

void
sl_resource_manager_revoke(struct sl_resource_manager *self)
{
    /* The token goes first: nothing of the old term is answered any more. */
    sl_rpc_endpoint_set_token(&self->endpoint, 0);
    self->is_leading = false;
    clear(self);
}

void
sl_resource_manager_topology_leader(struct sl_resource_manager *self, const char *name,
                                    uint64_t token)
{
    struct sl__rm_topology *topology = sl__rm_find_topology(self, name);
    if (topology == NULL || topology->leader == token) {
        return;
    }
    uint64_t old = topology->leader;
    topology->leader = token;
    if (token != 0) {
        sl_timer_stop(&topology->timer);
    } else {
        arm_topology(topology);
    }
    /* A change from A to B says that A does not lead; only A's registration is concerned. */
    if (topology->has_master && topology->token == old && old != token) {
        sl__rm_disconnect_master(self, topology, "it does not lead any more");
    }
    sl__rm_judge_masters(self, topology->name);
}

size_t
sl_resource_manager_supervisor_count(const struct sl_resource_manager *self)
{
    return self->supervisors.count;
}

size_t
sl_resource_manager_topology_count(const struct sl_resource_manager *self)
{
    return self->topologies.count;
}

uint64_t
sl_resource_manager_instance(const struct sl_resource_manager *self, const char *name)
{
    const struct sl__rm_supervisor *supervisor = sl__rm_find_supervisor(self, name);
    return supervisor != NULL ? supervisor->instance : 0;
}

bool
sl_resource_manager_has_master(const struct sl_resource_manager *self, const char *name)
{
    const struct sl__rm_topology *topology = sl__rm_find_topology(self, name);
    return topology != NULL && topology->has_master;
}

const struct sl_slot_manager *
sl_resource_manager_slots(const struct sl_resource_manager *self)
{
    return &self->slots;
}
