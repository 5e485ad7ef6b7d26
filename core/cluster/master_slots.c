#include "cluster/master_slots.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/log.h"

struct sl_master_slots {
    struct sl_master_slots_options options;
    struct sl_loop *loop;
    /* For supervisors and the resource manager, and for workers. */
    struct sl_rpc_endpoint endpoint;
    struct sl_rpc_endpoint worker_endpoint;
    char endpoint_name[SL_RPC_NAME_MAX + 1];
    char worker_endpoint_name[SL_RPC_NAME_MAX + 1];
    struct sl_slot_pool pool;
    struct sl_register_topology_master identity;
    struct sl_named_connection rm;
    char rm_resource[SL_NAME_MAX + 1];
    struct sl_heartbeats rm_heartbeats;
    struct sl_heartbeats supervisor_heartbeats;
    struct sl_heartbeats worker_heartbeats;
    /* name -> struct sl_peer. */
    struct sl_map_bytes supervisors;
    struct sl_map_bytes workers;
    /* Requests to the resource manager that are not answered. */
    struct sl_list slot_calls;
    struct sl_arena arena;
    bool is_ended;
};

struct slot_call {
    struct sl_master_slots *master;
    struct sl_list_node node;
    uint64_t allocation;
};

static struct sl_rpc_gateway *
rm_gateway(const struct sl_master_slots *self)
{
    return sl_leader_link_gateway(&self->rm.link);
}

static void
forget_slot_calls(struct sl_master_slots *self)
{
    sl_list_each(&self->slot_calls, it)
    {
        sl_list_remove(it);
        sl_free(sl_container_of(it, struct slot_call, node));
    }
}

/* The pool's ops. */
static void
slot_call_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct slot_call *call = ctx;
    struct sl_master_slots *self = call->master;
    uint64_t allocation = call->allocation;
    sl_list_remove(&call->node);
    sl_free(call);
    /* A link that broke is not a refusal: the request is sent again when it stands. */
    if (result->status != SL_RPC_SUCCESS && result->status != SL_RPC_UNREACHABLE &&
        result->status != SL_RPC_STALE_TOKEN) {
        sl_slot_pool_request_refused(&self->pool, allocation, result->code == SL_EUNSATISFIABLE,
                                     result->reason);
    }
}

static void
op_request_slot(void *ctx, const struct sl_slot_request *request)
{
    struct sl_master_slots *self = ctx;
    struct sl_buf body = {0};
    struct slot_call *call = sl_calloc(1, sizeof(*call));
    call->master = self;
    call->allocation = request->allocation;
    sl_list_push_back(&self->slot_calls, &call->node);
    sl_slot_request_encode(request, &body);
    sl_rpc_call(rm_gateway(self), SL_RM_REQUEST_SLOT, body.data, body.size, 0, slot_call_answered,
                call);
    sl_buf_destroy(&body);
}

static void
op_cancel_slot(void *ctx, uint64_t allocation)
{
    struct sl_master_slots *self = ctx;
    struct sl_slot_notice notice = {
        .topology = self->options.topology, .allocation = allocation, .token = self->options.token};
    sl_peer_send_notice(rm_gateway(self), SL_RM_CANCEL_SLOT, &notice);
}

static void
op_free_slot(void *ctx, const char *supervisor, uint64_t allocation, const char *cause)
{
    struct sl_master_slots *self = ctx;
    const struct sl_peer *peer = sl_map_bytes_get_str(&self->supervisors, supervisor);
    struct sl_slot_notice notice = {.topology = self->options.topology,
                                    .allocation = allocation,
                                    .cause = cause,
                                    .token = self->options.token};
    if (peer != NULL) {
        sl_peer_send_notice(peer->gateway, SL_SV_FREE_SLOT, &notice);
    }
}

static void
op_served(void *ctx, uint64_t request, uint64_t allocation, const char *supervisor, uint32_t port)
{
    struct sl_master_slots *self = ctx;
    self->options.on_slot(self->options.ctx, request, allocation, supervisor, port);
}

static void
op_failed(void *ctx, uint64_t request, enum sl_slot_failure kind, const char *reason)
{
    struct sl_master_slots *self = ctx;
    self->options.on_slot_failed(self->options.ctx, request, kind, reason);
}

static void
op_lost(void *ctx, uint64_t request, uint64_t allocation, const char *cause)
{
    struct sl_master_slots *self = ctx;
    self->options.on_slot_lost(self->options.ctx, request, allocation, cause);
}

/* Peers. */
static void
peer_free(struct sl_peer *peer)
{
    sl_peer_destroy(peer);
    sl_free(peer);
}

static void
send_disconnect(struct sl_master_slots *self, const struct sl_peer *peer, uint32_t method,
                const char *cause)
{
    struct sl_disconnect message = {.resource = self->options.resource,
                                    .topology = self->options.topology,
                                    .token = self->options.token,
                                    .cause = cause};
    sl_connection_say_goodbye(peer->gateway, method, &message);
}

static void
lose_supervisor(struct sl_master_slots *self, const char *name, const char *cause, bool is_told)
{
    struct sl_peer *peer = sl_map_bytes_get_str(&self->supervisors, name);
    if (peer == NULL) {
        return;
    }
    /* Off the map first: its slots are not freed there, because what runs in them goes on. When it
     * comes back it offers them; what nobody wants any more ends then, or when it never does. */
    sl_map_bytes_remove_str(&self->supervisors, peer->resource);
    sl_slot_pool_release_supervisor(&self->pool, peer->resource, cause);
    if (is_told) {
        send_disconnect(self, peer, SL_SV_DISCONNECT_TOPOLOGY_MASTER, cause);
    }
    peer_free(peer);
}

static void
lose_worker(struct sl_master_slots *self, const char *name, const char *cause)
{
    struct sl_peer *peer = sl_map_bytes_remove_str(&self->workers, name);
    if (peer == NULL) {
        return;
    }
    send_disconnect(self, peer, SL_WORKER_DISCONNECT, cause);
    if (self->options.on_worker_lost != NULL && !self->is_ended) {
        self->options.on_worker_lost(self->options.ctx, peer->resource, cause);
    }
    peer_free(peer);
}

static void
supervisor_heartbeat_lost(void *ctx, const char *id)
{
    lose_supervisor(ctx, id, "its heartbeat was lost", true);
}

static void
worker_heartbeat_lost(void *ctx, const char *id)
{
    lose_worker(ctx, id, "its heartbeat was lost");
}

/* What a supervisor is asked with: the slots that are held there. */
static void
supervisor_payload(void *ctx, const char *id, struct sl_buf *out)
{
    struct sl_master_slots *self = ctx;
    size_t count = sl_slot_pool_report(&self->pool, id, NULL, 0);
    struct sl_slot_status *slots = sl_calloc(count + 1, sizeof(*slots));
    struct sl_slot_list list = {.topology = self->options.topology, .slots = slots};
    const struct sl_peer *peer = sl_map_bytes_get_str(&self->supervisors, id);
    list.offer = peer != NULL ? peer->offer : 0;
    list.count = sl_slot_pool_report(&self->pool, id, slots, count);
    sl_allocated_slots_encode(&list, out);
    sl_free(slots);
}

static void
reply_registered(struct sl_master_slots *self, struct sl_rpc_request *request)
{
    sl_peer_reply_registered(request, self->options.resource, self->options.process,
                             self->options.token);
}

/*
 * Registers a peer in `peers`. True when it is new there; false when it was known already (same
 * process) or refused. The request is answered only in the second case.
 */
static struct sl_peer *
register_peer(struct sl_master_slots *self, struct sl_rpc_request *request,
              struct sl_map_bytes *peers, const char *endpoint, struct sl_register_peer *message,
              void (*lose)(struct sl_master_slots *self, const char *name))
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_reset(&self->arena);
    if (sl_register_peer_decode(body, size, &self->arena, message) != 0) {
        sl_rpc_refuse_last(request);
        return NULL;
    }
    if (strcmp(message->topology, self->options.topology) != 0) {
        sl_rpc_refuse(request, SL_RPC_REJECTION, SL_EINVAL, "this is the master of %s, not of %s",
                      self->options.topology, message->topology);
        return NULL;
    }
    struct sl_peer *known = sl_map_bytes_get_str(peers, message->resource);
    if (known != NULL && known->process == message->process &&
        strcmp(known->address, message->address) == 0) {
        /* Its link is a new one. */
        known->offer = 0;
        reply_registered(self, request);
        return NULL;
    }
    if (known != NULL) {
        lose(self, message->resource);
    }
    struct sl_peer *peer = sl_calloc(1, sizeof(*peer));
    if (sl_peer_create(peer, self->options.rpc, message->resource, message->process,
                       message->address, endpoint, 0) != 0) {
        sl_free(peer);
        sl_rpc_refuse_last(request);
        return NULL;
    }
    sl_map_bytes_put_str(peers, peer->resource, peer);
    return peer;
}

static void
supervisor_restarted(struct sl_master_slots *self, const char *name)
{
    lose_supervisor(self, name, "the supervisor was restarted", false);
}

static void
worker_restarted(struct sl_master_slots *self, const char *name)
{
    lose_worker(self, name, "another process of that name registered");
}

static void
handle_register_supervisor(void *ctx, struct sl_rpc_request *request)
{
    struct sl_master_slots *self = ctx;
    struct sl_register_peer message;
    struct sl_peer *peer = register_peer(self, request, &self->supervisors, SL_ENDPOINT_SUPERVISOR,
                                         &message, supervisor_restarted);
    if (peer == NULL) {
        return;
    }
    sl_slot_pool_register_supervisor(&self->pool, peer->resource);
    sl_peer_monitor(peer, &self->supervisor_heartbeats, self->options.resource,
                    SL_SV_HEARTBEAT_OF_TOPOLOGY_MASTER);
    reply_registered(self, request);
}

static void
handle_register_worker(void *ctx, struct sl_rpc_request *request)
{
    struct sl_master_slots *self = ctx;
    struct sl_register_peer message;
    struct sl_peer *peer = register_peer(self, request, &self->workers, SL_ENDPOINT_WORKER,
                                         &message, worker_restarted);
    if (peer == NULL) {
        return;
    }
    sl_peer_monitor(peer, &self->worker_heartbeats, self->options.resource, SL_WORKER_HEARTBEAT);
    reply_registered(self, request);
    if (self->options.on_worker != NULL) {
        self->options.on_worker(self->options.ctx, &message);
    }
}

/* A supervisor gives each slot once: when it offers one under another allocation, the earlier one
 * is over, and two requests must not share the slot until a heartbeat tells. */
static void
fail_earlier(struct sl_master_slots *self, const struct sl_slot_list *offers)
{
    size_t count = sl_slot_pool_report(&self->pool, offers->resource, NULL, 0);
    struct sl_slot_status *held = sl_calloc(count + 1, sizeof(*held));
    sl_slot_pool_report(&self->pool, offers->resource, held, count);
    for (size_t i = 0; i < count; i++) {
        bool is_over = false;
        for (size_t j = 0; j < offers->count; j++) {
            is_over |= offers->slots[j].port == held[i].port &&
                       offers->slots[j].allocation != held[i].allocation;
        }
        if (is_over) {
            sl_slot_pool_fail_allocation(&self->pool, held[i].allocation, false,
                                         "the supervisor gave the slot to another allocation");
        }
    }
    sl_free(held);
}

static bool
is_wanted(const struct sl_master_slots *self, const char *supervisor, uint32_t port)
{
    return self->options.is_wanted == NULL ||
           self->options.is_wanted(self->options.ctx, supervisor, port);
}

static void
handle_offer_slots(void *ctx, struct sl_rpc_request *request)
{
    struct sl_master_slots *self = ctx;
    struct sl_slots_accepted accepted = {0};
    struct sl_slot_list offers;
    struct sl_buf out = {0};
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    /* An arena of its own: what an accepted slot sets off may decode something. */
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 8 * 1024 * 1024);
    if (sl_slot_offers_decode(body, size, &arena, &offers) != 0) {
        sl_rpc_refuse_last(request);
        goto out;
    }
    struct sl_peer *peer = sl_map_bytes_get_str(&self->supervisors, offers.resource);
    if (strcmp(offers.topology, self->options.topology) != 0 || peer == NULL) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_ENOTFOUND, "%s is not registered here",
                      offers.resource);
        goto out;
    }
    peer->offer = offers.offer > peer->offer ? offers.offer : peer->offer;
    uint64_t *allocations = sl_calloc(offers.count + 1, sizeof(*allocations));
    fail_earlier(self, &offers);
    for (size_t i = 0; i < offers.count; i++) {
        const struct sl_slot_status *slot = &offers.slots[i];
        if (is_wanted(self, offers.resource, slot->port) &&
            sl_slot_pool_offer(&self->pool, offers.resource, slot->port, slot->allocation,
                               &slot->profile)) {
            allocations[accepted.count++] = slot->allocation;
        }
    }
    accepted.allocations = allocations;
    sl_slots_accepted_encode(&accepted, &out);
    sl_rpc_reply(request, out.data, out.size);
    sl_free(allocations);
out:
    sl_buf_destroy(&out);
    sl_arena_destroy(&arena);
}

static void
handle_slot_failed(void *ctx, struct sl_rpc_request *request)
{
    struct sl_master_slots *self = ctx;
    struct sl_slot_notice notice;
    struct sl_arena arena;
    bool is_of_supervisor = sl_rpc_request_method(request) == SL_TM_FAIL_SLOT;
    sl_arena_create(&arena, 0, 64 * 1024);
    if (!sl_peer_read_notice(request, &arena, &notice)) {
        sl_arena_destroy(&arena);
        return;
    }
    if (!is_of_supervisor && sl_slot_pool_holds(&self->pool, notice.allocation)) {
        /* The resource manager lost the supervisor, or sees it come back. Whether the slot is there
         * is between the supervisor and us: heartbeats, offers and its own word tell. */
        sl_log_info("cluster", "the resource manager lost allocation %llx: %s",
                    (unsigned long long)notice.allocation, notice.cause);
        sl_rpc_reply(request, NULL, 0);
    } else if (is_of_supervisor &&
               sl_map_bytes_get_str(&self->supervisors, notice.resource) == NULL) {
        sl_log_warn("cluster", "slot failed at an unknown supervisor name=%s", notice.resource);
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_ENOTFOUND, "%s is not registered here",
                      notice.resource);
    } else {
        const char *empty = sl_slot_pool_fail_allocation(&self->pool, notice.allocation,
                                                         notice.is_unfulfillable, notice.cause);
        if (empty != NULL) {
            lose_supervisor(self, empty, "it has no slot of the topology any more", true);
        }
        sl_rpc_reply(request, NULL, 0);
    }
    sl_arena_destroy(&arena);
}

static void
handle_disconnect(void *ctx, struct sl_rpc_request *request)
{
    struct sl_master_slots *self = ctx;
    struct sl_disconnect message;
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 64 * 1024);
    if (!sl_peer_read_disconnect(request, &arena, &message)) {
        sl_arena_destroy(&arena);
        return;
    }
    if (sl_rpc_request_method(request) == SL_TM_DISCONNECT_SUPERVISOR) {
        const struct sl_peer *peer = sl_map_bytes_get_str(&self->supervisors, message.resource);
        /* Its token is the process that says goodbye. */
        if (peer != NULL && peer->process == message.token) {
            lose_supervisor(self, message.resource, message.cause, false);
        }
    } else if (rm_gateway(self) != NULL &&
               sl_rpc_gateway_token(rm_gateway(self)) == message.token) {
        sl_leader_link_reconnect(&self->rm.link, message.cause);
    }
    sl_rpc_reply(request, NULL, 0);
    sl_arena_destroy(&arena);
}

static void
handle_worker_state(void *ctx, struct sl_rpc_request *request)
{
    struct sl_master_slots *self = ctx;
    struct sl_slot_worker state;
    struct sl_arena arena;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_create(&arena, 0, 64 * 1024);
    if (sl_slot_worker_decode(body, size, &arena, &state) != 0) {
        sl_rpc_refuse_last(request);
    } else {
        if (self->options.on_worker_state != NULL) {
            self->options.on_worker_state(self->options.ctx, &state);
        }
        sl_rpc_reply(request, NULL, 0);
    }
    sl_arena_destroy(&arena);
}

static void
handle_heartbeat(void *ctx, struct sl_rpc_request *request)
{
    struct sl_master_slots *self = ctx;
    sl_peer_answer_heartbeat(&self->rm_heartbeats, self->options.resource, request);
}

static void
handle_identify(void *ctx, struct sl_rpc_request *request)
{
    reply_registered(ctx, request);
}

static const struct sl_rpc_method methods[] = {
    {SL_TM_REGISTER_SUPERVISOR, handle_register_supervisor},
    {SL_TM_OFFER_SLOTS, handle_offer_slots},
    {SL_TM_WORKER_STATE, handle_worker_state},
    {SL_TM_FAIL_SLOT, handle_slot_failed},
    {SL_TM_ALLOCATION_FAILED, handle_slot_failed},
    {SL_TM_DISCONNECT_SUPERVISOR, handle_disconnect},
    {SL_TM_DISCONNECT_RESOURCE_MANAGER, handle_disconnect},
    {SL_TM_HEARTBEAT, handle_heartbeat},
    {SL_TM_IDENTIFY, handle_identify},
};

static const struct sl_rpc_method worker_methods[] = {
    {SL_TM_REGISTER_WORKER, handle_register_worker},
};

/* The link to the resource manager. */
static void
rm_registered(void *ctx, struct sl_leader_link *link, const struct sl_registered *answer)
{
    struct sl_master_slots *self = ctx;
    (void)link;
    snprintf(self->rm_resource, sizeof(self->rm_resource), "%s", answer->resource);
    sl_heartbeats_unmonitor(&self->rm_heartbeats, self->rm_resource);
    sl_heartbeats_monitor(&self->rm_heartbeats, self->rm_resource, NULL);
    sl_slot_pool_connect(&self->pool);
}

static void
rm_closing(void *ctx, struct sl_leader_link *link, const char *cause)
{
    struct sl_master_slots *self = ctx;
    struct sl_disconnect message = {.resource = self->options.resource,
                                    .topology = self->options.topology,
                                    .token = self->options.token,
                                    .cause = cause};
    sl_heartbeats_unmonitor(&self->rm_heartbeats, self->rm_resource);
    sl_slot_pool_disconnect(&self->pool);
    forget_slot_calls(self);
    sl_connection_say_goodbye(sl_leader_link_gateway(link), SL_RM_DISCONNECT_TOPOLOGY_MASTER,
                              &message);
}

static void
rm_failed(void *ctx, struct sl_leader_link *link, enum sl_registration_end kind, int code,
          const char *reason)
{
    struct sl_master_slots *self = ctx;
    (void)link;
    (void)code;
    if (kind != SL_REGISTRATION_STALE) {
        self->options.on_fatal(self->options.ctx, reason);
    } else if (self->options.on_stale_leader != NULL) {
        self->options.on_stale_leader(self->options.ctx);
    }
}

static void
rm_heartbeat_lost(void *ctx, const char *id)
{
    struct sl_master_slots *self = ctx;
    if (rm_gateway(self) != NULL && strcmp(id, self->rm_resource) == 0) {
        sl_leader_link_reconnect(&self->rm.link, "the heartbeat of the resource manager was lost");
    }
}

void
sl_master_slots_rm_leader(struct sl_master_slots *self, const char *address, uint64_t token)
{
    sl_leader_link_notify_new_leader(&self->rm.link, address, token);
}

static int
start_endpoint(struct sl_master_slots *self, struct sl_rpc_endpoint *endpoint, const char *name,
               const struct sl_rpc_method *table, size_t count)
{
    struct sl_rpc_endpoint_options options = {
        .name = name, .is_fenced = true, .methods = table, .method_count = count, .ctx = self};
    int rc = sl_rpc_endpoint_start(self->options.rpc, endpoint, &options);
    if (rc == 0) {
        sl_rpc_endpoint_set_token(endpoint, self->options.token);
    }
    return rc;
}

/* Workers register here only when somebody wants to know. */
static int
start_endpoints(struct sl_master_slots *self)
{
    snprintf(self->endpoint_name, sizeof(self->endpoint_name), SL_ENDPOINT_TOPOLOGY_SLOTS "%.64s",
             self->options.topology);
    snprintf(self->worker_endpoint_name, sizeof(self->worker_endpoint_name),
             SL_ENDPOINT_TOPOLOGY_MASTER "%.64s", self->options.topology);
    int rc = start_endpoint(self, &self->endpoint, self->endpoint_name, methods,
                            sizeof(methods) / sizeof(methods[0]));
    if (rc == 0 && self->options.on_worker != NULL) {
        rc = start_endpoint(self, &self->worker_endpoint, self->worker_endpoint_name,
                            worker_methods, sizeof(worker_methods) / sizeof(worker_methods[0]));
        if (rc != 0) {
            sl_rpc_endpoint_stop(&self->endpoint);
        }
    }
    return rc;
}

int
sl_master_slots_new(const struct sl_master_slots_options *options, struct sl_master_slots **out)
{
    int rc = sl_heartbeat_config_check(&options->heartbeat);
    if (rc != 0) {
        return rc;
    }
    struct sl_master_slots *self = sl_calloc(1, sizeof(*self));
    struct sl_connection_listener rm = {rm_registered, rm_closing, rm_failed, self};
    struct sl_slot_pool_config pool = {options->topology, options->address, options->token,
                                       options->slot_request_timeout_ms,
                                       options->slot_idle_timeout_ms};
    struct sl_slot_pool_ops ops = {op_request_slot, op_cancel_slot, op_free_slot, op_served,
                                   op_failed,       op_lost,        self};
    struct sl_heartbeat_listener rm_beats = {.on_timeout = rm_heartbeat_lost, .ctx = self};
    struct sl_heartbeat_listener supervisor_beats = {
        .on_timeout = supervisor_heartbeat_lost, .make_payload = supervisor_payload, .ctx = self};
    struct sl_heartbeat_listener worker_beats = {.on_timeout = worker_heartbeat_lost, .ctx = self};
    sl_assert_ne(options->token, 0);
    self->options = *options;
    self->loop = sl_rpc_loop(options->rpc);
    self->identity = (struct sl_register_topology_master){.topology = options->topology,
                                                          .address = options->address,
                                                          .resource = options->resource,
                                                          .process = options->process,
                                                          .token = options->token};
    rc = sl_connection_master_to_rm(&self->rm, options->rpc, &options->registration,
                                    &self->identity, &rm);
    if (rc == 0) {
        rc = start_endpoints(self);
    }
    if (rc != 0) {
        sl_free(self);
        return rc;
    }
    sl_list_create(&self->slot_calls);
    sl_arena_create(&self->arena, 0, 1024 * 1024);
    sl_slot_pool_create(&self->pool, self->loop, &pool, &ops);
    sl_heartbeats_create(&self->rm_heartbeats, self->loop, false, &options->heartbeat, &rm_beats);
    sl_heartbeats_create(&self->supervisor_heartbeats, self->loop, true, &options->heartbeat,
                         &supervisor_beats);
    sl_heartbeats_create(&self->worker_heartbeats, self->loop, true, &options->heartbeat,
                         &worker_beats);
    *out = self;
    return 0;
}

void
sl_master_slots_close(struct sl_master_slots *self, const char *cause)
{
    sl_slot_pool_close(&self->pool, cause);
}

void
sl_master_slots_free(struct sl_master_slots *self)
{
    struct sl_map_bytes_entry *entry;
    if (self == NULL) {
        return;
    }
    self->is_ended = true;
    sl_rpc_endpoint_set_token(&self->endpoint, 0);
    if (self->options.on_worker != NULL) {
        sl_rpc_endpoint_set_token(&self->worker_endpoint, 0);
    }
    sl_slot_pool_suspend(&self->pool);
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->supervisors, &at)) != NULL;) {
        send_disconnect(self, entry->value, SL_SV_DISCONNECT_TOPOLOGY_MASTER, "its term ended");
        peer_free(entry->value);
    }
    /* Workers keep running; they register with the next term. */
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->workers, &at)) != NULL;) {
        send_disconnect(self, entry->value, SL_WORKER_DISCONNECT, "its term ended");
        peer_free(entry->value);
    }
    sl_leader_link_close(&self->rm.link, "the term of the topology master ended");
    sl_connection_destroy(&self->rm);
    sl_rpc_endpoint_stop(&self->endpoint);
    sl_rpc_endpoint_stop(&self->worker_endpoint);
    sl_heartbeats_destroy(&self->rm_heartbeats);
    sl_heartbeats_destroy(&self->supervisor_heartbeats);
    sl_heartbeats_destroy(&self->worker_heartbeats);
    sl_slot_pool_destroy(&self->pool);
    sl_map_bytes_destroy(&self->supervisors);
    sl_map_bytes_destroy(&self->workers);
    sl_arena_destroy(&self->arena);
    sl_free(self);
}

void
sl_master_slots_request(struct sl_master_slots *self, uint64_t request,
                        const struct sl_slot_wish *wish)
{
    sl_slot_pool_request(&self->pool, request, wish);
}

void
sl_master_slots_release(struct sl_master_slots *self, uint64_t request, const char *cause)
{
    sl_slot_pool_release(&self->pool, request, cause);
}

void
sl_master_slots_give_back(struct sl_master_slots *self, uint64_t request, const char *cause)
{
    sl_slot_pool_give_back(&self->pool, request, cause);
}

struct sl_rpc_gateway *
sl_master_slots_supervisor(const struct sl_master_slots *self, const char *supervisor)
{
    const struct sl_peer *peer = sl_map_bytes_get_str(&self->supervisors, supervisor);
    return peer != NULL ? peer->gateway : NULL;
}

struct sl_slot_pool *
sl_master_slots_pool(struct sl_master_slots *self)
{
    return &self->pool;
}

size_t
sl_master_slots_supervisor_count(const struct sl_master_slots *self)
{
    return self->supervisors.count;
}

size_t
sl_master_slots_worker_count(const struct sl_master_slots *self)
{
    return self->workers.count;
}

bool
sl_master_slots_is_registered(const struct sl_master_slots *self)
{
    return rm_gateway(self) != NULL;
}
