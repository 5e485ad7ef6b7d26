#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "cluster/supervisor_slots_priv.h"

/*
 * The topologies that have a slot of a supervisor: the leader of each, the link to it, and the
 * slots that are offered to it.
 */

struct offer {
    struct sl_supervisor_slots *owner;
    struct sl_list_node node;
    struct sl__sv_topology *topology;
    uint64_t number;
    uint64_t token;
    size_t count;
    uint64_t allocations[];
};

struct sl__sv_topology *
sl__sv_find_topology(const struct sl_supervisor_slots *self, const char *name)
{
    return sl_map_bytes_get_str(&self->topologies, name);
}

struct sl_rpc_gateway *
sl__sv_tm_gateway(const struct sl__sv_topology *topology)
{
    return sl_leader_link_gateway(&topology->connection.link);
}

void
sl__sv_forget_topology(struct sl_supervisor_slots *self, struct sl__sv_topology *topology,
                       const char *cause)
{
    sl_map_bytes_remove_str(&self->topologies, topology->name);
    sl_leader_link_close(&topology->connection.link, cause);
    sl_connection_destroy(&topology->connection);
    self->options.watch.stop(self->options.watch.ctx, topology->name);
    sl_free(topology);
}

static void
lose_topology(struct sl_supervisor_slots *self, struct sl__sv_topology *topology, const char *cause)
{
    sl_slot_table_deactivate(&self->table, topology->name);
    if (self->options.on_topology_lost != NULL) {
        self->options.on_topology_lost(self->options.ctx, topology->name, cause);
    }
}

/* A topology without a slot is not followed any more. */
void
sl__sv_drop_if_empty(struct sl_supervisor_slots *self, const char *name)
{
    struct sl__sv_topology *topology = sl__sv_find_topology(self, name);
    if (topology != NULL && !self->is_freeing && sl_slot_table_count(&self->table, name, -1) == 0) {
        sl__sv_forget_topology(self, topology, "the topology has no slot here any more");
    }
}

void
sl__sv_tell_failed(struct sl_supervisor_slots *self, struct sl__sv_topology *topology,
                   uint64_t allocation, const char *cause)
{
    struct sl_slot_notice notice = {.resource = self->options.identity->resource,
                                    .topology = topology->name,
                                    .allocation = allocation,
                                    .cause = cause};
    if (sl__sv_tm_gateway(topology) != NULL) {
        sl_peer_send_notice(sl__sv_tm_gateway(topology), SL_TM_FAIL_SLOT, &notice);
    }
}

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
        struct sl__sv_topology *topology = sl__sv_find_topology(self, name);
        if (!sl_slot_table_activate(&self->table, allocation)) {
            if (topology != NULL) {
                sl__sv_tell_failed(self, topology, allocation, "the slot is not there any more");
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
    struct sl__sv_topology *topology = offer->topology;
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
        sl__sv_offer_slots(self, topology);
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
void
sl__sv_offer_slots(struct sl_supervisor_slots *self, struct sl__sv_topology *topology)
{
    struct sl_slot_status slots[SL_SLOT_TABLE_MAX];
    struct sl_slot_list list = {
        .resource = self->options.identity->resource, .topology = topology->name, .slots = slots};
    struct sl_buf body = {0};
    list.count = sl_slot_table_list(&self->table, topology->name, SL_HELD_ALLOCATED, slots,
                                    SL_SLOT_TABLE_MAX);
    if (list.count == 0 || sl__sv_tm_gateway(topology) == NULL) {
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
    sl_rpc_call(sl__sv_tm_gateway(topology), SL_TM_OFFER_SLOTS, body.data, body.size, 0,
                offer_answered, offer);
    sl_buf_destroy(&body);
}

static void
tm_registered(void *ctx, struct sl_leader_link *link, const struct sl_registered *answer)
{
    struct sl__sv_topology *topology = ctx;
    struct sl_supervisor_slots *self = topology->owner;
    (void)link;
    snprintf(topology->master, sizeof(topology->master), "%s", answer->resource);
    sl_heartbeats_unmonitor(&self->tm_heartbeats, topology->master);
    sl_heartbeats_monitor(&self->tm_heartbeats, topology->master, NULL);
    if (self->options.on_topology_gained != NULL) {
        self->options.on_topology_gained(self->options.ctx, topology->name);
    }
    sl__sv_offer_slots(self, topology);
}

static void
tm_closing(void *ctx, struct sl_leader_link *link, const char *cause)
{
    struct sl__sv_topology *topology = ctx;
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
void
sl__sv_free_slots_of(struct sl_supervisor_slots *self, const char *name, int state,
                     const char *cause)
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
    struct sl__sv_topology *topology = ctx;
    struct sl_supervisor_slots *self = topology->owner;
    char name[SL_NAME_MAX + 1];
    char text[SL_REASON_SIZE];
    (void)link;
    (void)code;
    memcpy(name, topology->name, sizeof(name));
    snprintf(text, sizeof(text), "%s", reason);
    if (kind == SL_REGISTRATION_REJECTED) {
        sl__sv_free_slots_of(self, name, -1, text);
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
struct sl__sv_topology *
sl__sv_add_topology(struct sl_supervisor_slots *self, const char *name)
{
    const struct sl_register_supervisor *identity = self->options.identity;
    struct sl__sv_topology *topology = sl_calloc(1, sizeof(*topology));
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
    struct sl__sv_topology *topology = sl__sv_find_topology(self, name);
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
    struct sl__sv_topology *topology = sl__sv_find_topology(self, name);
    if (topology != NULL && topology->connection.link.connection != NULL) {
        sl_leader_link_reconnect(&topology->connection.link, cause);
    }
}

static struct sl__sv_topology *
find_by_master(const struct sl_supervisor_slots *self, const char *resource)
{
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->topologies, &at)) != NULL;) {
        struct sl__sv_topology *topology = entry->value;
        if (topology->master[0] != '\0' && strcmp(topology->master, resource) == 0) {
            return topology;
        }
    }
    return NULL;
}

void
sl__sv_tm_heartbeat_lost(void *ctx, const char *id)
{
    struct sl_supervisor_slots *self = ctx;
    const struct sl__sv_topology *topology = find_by_master(self, id);
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
void
sl__sv_tm_heartbeat_payload(void *ctx, const char *id, const uint8_t *payload, size_t size)
{
    struct sl_supervisor_slots *self = ctx;
    struct sl__sv_topology *topology = find_by_master(self, id);
    struct sl_slot_status slots[SL_SLOT_TABLE_MAX];
    struct sl_slot_list list;
    struct sl_arena arena;
    if (topology == NULL || sl__sv_tm_gateway(topology) == NULL) {
        return;
    }
    sl_arena_create(&arena, 0, 8 * 1024 * 1024);
    if (sl_allocated_slots_decode(payload, size, &arena, &list) == 0 &&
        strcmp(list.topology, topology->name) == 0) {
        for (size_t i = 0; i < list.count; i++) {
            if (sl_slot_table_find(&self->table, list.slots[i].allocation) == NULL) {
                sl__sv_tell_failed(self, topology, list.slots[i].allocation, "no such slot here");
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
