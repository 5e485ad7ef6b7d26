#include "cluster/supervisor_slots.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/log.h"

struct sl_supervisor_slots {
    struct sl_supervisor_slots_options options;
    struct sl_loop *loop;
    struct sl_rpc_endpoint endpoint;
    struct sl_slot_table table;
    struct sl_named_connection rm;
    /* Of the registration: 0 while there is none. */
    uint64_t instance;
    char rm_resource[SL_NAME_MAX + 1];
    struct sl_timer registration_timer;
    struct sl_heartbeats rm_heartbeats;
    struct sl_heartbeats tm_heartbeats;
    /* name -> struct topology. */
    struct sl_map_bytes topologies;
    struct sl_arena arena;
    bool is_freeing;
};

/* A topology that has a slot here. */
struct topology {
    struct sl_supervisor_slots *owner;
    char name[SL_NAME_MAX + 1];
    struct sl_register_peer identity;
    struct sl_named_connection connection;
    bool has_leader;
    uint64_t token;
    /* Name of the topology master, while the link stands. */
    char master[SL_NAME_MAX + 1];
    /* Counts offers: only the answer to the newest one counts. */
    uint64_t offers;
    /* The newest one of this link, 0 for none. */
    uint64_t last_offer;
    /* Offers that are not answered; they end, untold, with the link. */
    struct sl_list open_offers;
};

struct offer {
    struct sl_supervisor_slots *owner;
    struct sl_list_node node;
    struct topology *topology;
    uint64_t number;
    uint64_t token;
    size_t count;
    uint64_t allocations[];
};

static struct topology *
find_topology(const struct sl_supervisor_slots *self, const char *name)
{
    return sl_map_bytes_get_str(&self->topologies, name);
}

static struct sl_rpc_gateway *
rm_gateway(const struct sl_supervisor_slots *self)
{
    return sl_leader_link_gateway(&self->rm.link);
}

static struct sl_rpc_gateway *
tm_gateway(const struct topology *topology)
{
    return sl_leader_link_gateway(&topology->connection.link);
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

/* Topologies: the leader of each, and the link to it. */
static void
forget_topology(struct sl_supervisor_slots *self, struct topology *topology, const char *cause)
{
    sl_map_bytes_remove_str(&self->topologies, topology->name);
    sl_leader_link_close(&topology->connection.link, cause);
    sl_connection_destroy(&topology->connection);
    self->options.watch.stop(self->options.watch.ctx, topology->name);
    sl_free(topology);
}

static void
lose_topology(struct sl_supervisor_slots *self, struct topology *topology, const char *cause)
{
    sl_slot_table_deactivate(&self->table, topology->name);
    if (self->options.on_topology_lost != NULL) {
        self->options.on_topology_lost(self->options.ctx, topology->name, cause);
    }
}

/* A topology without a slot is not followed any more. */
static void
drop_if_empty(struct sl_supervisor_slots *self, const char *name)
{
    struct topology *topology = find_topology(self, name);
    if (topology != NULL && !self->is_freeing && sl_slot_table_count(&self->table, name, -1) == 0) {
        forget_topology(self, topology, "the topology has no slot here any more");
    }
}

static void
slot_freed(void *ctx, const char *topology, uint64_t allocation, uint32_t port, const char *cause)
{
    struct sl_supervisor_slots *self = ctx;
    tell_available(self, topology, allocation, port, cause);
    drop_if_empty(self, topology);
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

static void
tell_failed(struct sl_supervisor_slots *self, struct topology *topology, uint64_t allocation,
            const char *cause)
{
    struct sl_slot_notice notice = {.resource = self->options.identity->resource,
                                    .topology = topology->name,
                                    .allocation = allocation,
                                    .cause = cause};
    if (tm_gateway(topology) != NULL) {
        sl_peer_send_notice(tm_gateway(topology), SL_TM_FAIL_SLOT, &notice);
    }
}

static void offer_slots(struct sl_supervisor_slots *self, struct topology *topology);

static bool
is_accepted(const struct sl_slots_accepted *accepted, uint64_t allocation)
{
    for (size_t i = 0; i < accepted->count; i++) {
        if (accepted->allocations[i] == allocation) {
            return true;
        }
    }
    return false;
}

/* The topology master took some of the slots; the others go back to the resource manager. */
static void
settle_offer(struct sl_supervisor_slots *self, const struct offer *offer, const char *name,
             const struct sl_slots_accepted *accepted)
{
    for (size_t i = 0; i < offer->count; i++) {
        uint64_t allocation = offer->allocations[i];
        if (!is_accepted(accepted, allocation)) {
            sl_slot_table_free(&self->table, allocation, "the topology master refused the slot");
            continue;
        }
        const struct sl_held_slot *slot = sl_slot_table_find(&self->table, allocation);
        bool was_active = slot != NULL && slot->state == SL_HELD_ACTIVE;
        struct topology *topology = find_topology(self, name);
        if (!sl_slot_table_activate(&self->table, allocation)) {
            if (topology != NULL) {
                tell_failed(self, topology, allocation, "the slot is not there any more");
            }
        } else if (!was_active && self->options.on_slot_active != NULL) {
            self->options.on_slot_active(self->options.ctx, name, slot->port, allocation);
        }
    }
}

static void
offer_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct offer *offer = ctx;
    struct sl_supervisor_slots *self = offer->owner;
    struct topology *topology = offer->topology;
    struct sl_slots_accepted accepted = {0};
    struct sl_arena arena;
    char name[SL_NAME_MAX + 1];
    memcpy(name, topology->name, sizeof(name));
    sl_list_remove(&offer->node);
    sl_arena_create(&arena, 0, 1024 * 1024);
    /* Neither an old offer nor an old leader's answer frees or activates anything. */
    if (offer->number != topology->offers || offer->token != topology->token) {
        goto out;
    }
    if (result->status == SL_RPC_TIMEOUT) {
        offer_slots(self, topology);
    } else if (result->status == SL_RPC_UNREACHABLE || result->status == SL_RPC_STALE_TOKEN) {
        /* The link is broken or old; the slots keep their time limit until it stands again. */
        sl_leader_link_reconnect(&topology->connection.link, result->reason);
    } else if (result->status == SL_RPC_SUCCESS &&
               sl_slots_accepted_decode(result->body, result->size, &arena, &accepted) == 0) {
        settle_offer(self, offer, name, &accepted);
    } else {
        accepted.count = 0;
        settle_offer(self, offer, name, &accepted);
    }
out:
    sl_arena_destroy(&arena);
    sl_free(offer);
}

/* Offers all slots that are reserved for the topology. */
static void
offer_slots(struct sl_supervisor_slots *self, struct topology *topology)
{
    struct sl_slot_status slots[SL_SLOT_TABLE_MAX];
    struct sl_slot_list list = {
        .resource = self->options.identity->resource, .topology = topology->name, .slots = slots};
    struct sl_buf body = {0};
    list.count = sl_slot_table_list(&self->table, topology->name, SL_HELD_ALLOCATED, slots,
                                    SL_SLOT_TABLE_MAX);
    if (list.count == 0 || tm_gateway(topology) == NULL) {
        return;
    }
    struct offer *offer = sl_calloc(1, sizeof(*offer) + list.count * sizeof(uint64_t));
    offer->owner = self;
    offer->topology = topology;
    offer->number = ++topology->offers;
    topology->last_offer = offer->number;
    list.offer = offer->number;
    offer->token = topology->token;
    offer->count = list.count;
    sl_list_push_back(&topology->open_offers, &offer->node);
    for (size_t i = 0; i < list.count; i++) {
        offer->allocations[i] = slots[i].allocation;
    }
    sl_slot_offers_encode(&list, &body);
    sl_rpc_call(tm_gateway(topology), SL_TM_OFFER_SLOTS, body.data, body.size, 0, offer_answered,
                offer);
    sl_buf_destroy(&body);
}

static void
tm_registered(void *ctx, struct sl_leader_link *link, const struct sl_registered *answer)
{
    struct topology *topology = ctx;
    struct sl_supervisor_slots *self = topology->owner;
    (void)link;
    snprintf(topology->master, sizeof(topology->master), "%s", answer->resource);
    sl_heartbeats_unmonitor(&self->tm_heartbeats, topology->master);
    sl_heartbeats_monitor(&self->tm_heartbeats, topology->master, NULL);
    if (self->options.on_topology_gained != NULL) {
        self->options.on_topology_gained(self->options.ctx, topology->name);
    }
    offer_slots(self, topology);
}

static void
tm_closing(void *ctx, struct sl_leader_link *link, const char *cause)
{
    struct topology *topology = ctx;
    struct sl_supervisor_slots *self = topology->owner;
    struct sl_disconnect message = {.resource = self->options.identity->resource,
                                    .topology = topology->name,
                                    .token = self->options.identity->process,
                                    .cause = cause};
    sl_heartbeats_unmonitor(&self->tm_heartbeats, topology->master);
    topology->master[0] = '\0';
    topology->offers++;
    topology->last_offer = 0;
    sl_list_each(&topology->open_offers, it)
    {
        sl_list_remove(it);
        sl_free(sl_container_of(it, struct offer, node));
    }
    sl_connection_say_goodbye(sl_leader_link_gateway(link), SL_TM_DISCONNECT_SUPERVISOR, &message);
    if (!self->is_freeing) {
        lose_topology(self, topology, cause);
    }
}

/* Frees every slot of a topology; the topology goes with the last one. */
static void
free_slots_of(struct sl_supervisor_slots *self, const char *name, int state, const char *cause)
{
    struct sl_slot_status slots[SL_SLOT_TABLE_MAX];
    size_t count = sl_slot_table_list(&self->table, name, state, slots, SL_SLOT_TABLE_MAX);
    for (size_t i = 0; i < count; i++) {
        sl_slot_table_free(&self->table, slots[i].allocation, cause);
    }
}

static void
tm_failed(void *ctx, struct sl_leader_link *link, enum sl_registration_end kind, int code,
          const char *reason)
{
    struct topology *topology = ctx;
    struct sl_supervisor_slots *self = topology->owner;
    char name[SL_NAME_MAX + 1];
    char text[SL_REASON_SIZE];
    (void)link;
    (void)code;
    memcpy(name, topology->name, sizeof(name));
    snprintf(text, sizeof(text), "%s", reason);
    if (kind == SL_REGISTRATION_REJECTED) {
        free_slots_of(self, name, -1, text);
    } else if (kind == SL_REGISTRATION_STALE) {
        topology->has_leader = false;
        if (self->options.on_stale_leader != NULL) {
            self->options.on_stale_leader(self->options.ctx, name);
        }
    } else {
        self->options.on_fatal(self->options.ctx, text);
    }
}

/* NULL when its leader can not be watched. */
static struct topology *
add_topology(struct sl_supervisor_slots *self, const char *name)
{
    const struct sl_register_supervisor *identity = self->options.identity;
    struct topology *topology = sl_calloc(1, sizeof(*topology));
    struct sl_connection_listener listener = {tm_registered, tm_closing, tm_failed, topology};
    topology->owner = self;
    sl_list_create(&topology->open_offers);
    snprintf(topology->name, sizeof(topology->name), "%s", name);
    topology->identity = (struct sl_register_peer){.topology = topology->name,
                                                   .address = identity->address,
                                                   .resource = identity->resource,
                                                   .process = identity->process};
    int rc = sl_connection_supervisor_to_master(&topology->connection, self->options.rpc,
                                                &self->options.registration, &topology->identity,
                                                &listener);
    sl_assert_eq(rc, 0);
    sl_map_bytes_put_str(&self->topologies, name, topology);
    if (self->options.watch.start(self->options.watch.ctx, name) != 0) {
        sl_map_bytes_remove_str(&self->topologies, name);
        sl_free(topology);
        return NULL;
    }
    return topology;
}

void
sl_supervisor_slots_topology_leader(struct sl_supervisor_slots *self, const char *name,
                                    const char *address, uint64_t token)
{
    struct topology *topology = find_topology(self, name);
    if (topology == NULL) {
        return;
    }
    bool is_known = address != NULL && topology->has_leader && topology->token == token &&
                    strcmp(topology->connection.link.address, address) == 0;
    if (is_known || (address == NULL && !topology->has_leader)) {
        return;
    }
    topology->has_leader = address != NULL;
    topology->token = token;
    sl_leader_link_notify_new_leader(&topology->connection.link, address, token);
}

void
sl_supervisor_slots_reconnect(struct sl_supervisor_slots *self, const char *name, const char *cause)
{
    struct topology *topology = find_topology(self, name);
    if (topology != NULL && topology->connection.link.connection != NULL) {
        sl_leader_link_reconnect(&topology->connection.link, cause);
    }
}

static struct topology *
find_by_master(const struct sl_supervisor_slots *self, const char *resource)
{
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->topologies, &at)) != NULL;) {
        struct topology *topology = entry->value;
        if (topology->master[0] != '\0' && strcmp(topology->master, resource) == 0) {
            return topology;
        }
    }
    return NULL;
}

static void
tm_heartbeat_lost(void *ctx, const char *id)
{
    struct sl_supervisor_slots *self = ctx;
    const struct topology *topology = find_by_master(self, id);
    if (topology != NULL) {
        sl_supervisor_slots_reconnect(self, topology->name,
                                      "the heartbeat of the topology master was lost");
    }
}

static bool
is_in_list(const struct sl_slot_list *list, uint64_t allocation)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->slots[i].allocation == allocation) {
            return true;
        }
    }
    return false;
}

/* The slots that the topology master believes to hold here, against those that it does. */
static void
tm_heartbeat_payload(void *ctx, const char *id, const uint8_t *payload, size_t size)
{
    struct sl_supervisor_slots *self = ctx;
    struct topology *topology = find_by_master(self, id);
    struct sl_slot_status slots[SL_SLOT_TABLE_MAX];
    struct sl_slot_list list;
    struct sl_arena arena;
    if (topology == NULL || tm_gateway(topology) == NULL) {
        return;
    }
    sl_arena_create(&arena, 0, 8 * 1024 * 1024);
    if (sl_allocated_slots_decode(payload, size, &arena, &list) == 0 &&
        strcmp(list.topology, topology->name) == 0) {
        for (size_t i = 0; i < list.count; i++) {
            if (sl_slot_table_find(&self->table, list.slots[i].allocation) == NULL) {
                tell_failed(self, topology, list.slots[i].allocation, "no such slot here");
            }
        }
        /* A list from before the newest offer was answered says nothing of what that offer gave:
         * it came another way than the answer, which may have overtaken it. */
        bool is_recent = list.offer >= topology->last_offer;
        size_t count = is_recent ? sl_slot_table_list(&self->table, topology->name, SL_HELD_ACTIVE,
                                                      slots, SL_SLOT_TABLE_MAX)
                                 : 0;
        for (size_t i = 0; i < count; i++) {
            if (!is_in_list(&list, slots[i].allocation)) {
                sl_slot_table_free(&self->table, slots[i].allocation,
                                   "the topology master does not hold the slot");
            }
        }
    }
    sl_arena_destroy(&arena);
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
    struct topology *topology = find_topology(self, message.topology);
    if (topology == NULL) {
        topology = add_topology(self, message.topology);
    }
    if (topology == NULL) {
        sl_slot_table_free(&self->table, message.allocation, "its leader can not be watched");
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EUNAVAIL,
                      "the leader of topology %s can not be watched", message.topology);
        return;
    }
    sl_rpc_reply(request, NULL, 0);
    offer_slots(self, topology);
}

static void
handle_free_slot(void *ctx, struct sl_rpc_request *request)
{
    struct sl_supervisor_slots *self = ctx;
    struct sl_slot_notice notice;
    if (!sl_peer_read_notice(request, &self->arena, &notice)) {
        return;
    }
    const struct topology *topology = find_topology(self, notice.topology);
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
        free_slots_of(self, notice.topology, SL_HELD_ALLOCATED, notice.cause);
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
        const struct topology *topology = find_topology(self, message.topology);
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
    struct sl_heartbeat_listener tm_beats = {
        .on_timeout = tm_heartbeat_lost, .on_payload = tm_heartbeat_payload, .ctx = self};
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
        forget_topology(self, entry->value, "the supervisor stops");
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
    struct topology *topology = slot != NULL ? find_topology(self, slot->topology) : NULL;
    if (topology != NULL) {
        tell_failed(self, topology, allocation, cause);
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
    return find_topology(self, name) != NULL;
}

bool
sl_supervisor_slots_is_linked(const struct sl_supervisor_slots *self, const char *name)
{
    const struct topology *topology = find_topology(self, name);
    return topology != NULL && tm_gateway(topology) != NULL;
}
