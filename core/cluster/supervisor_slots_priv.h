#pragma once
/* What supervisor_slots.c (link to the resource manager, slots, endpoint) and
 * supervisor_topologies.c (links to topology masters, offers) share. */

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "cluster/supervisor_slots.h"

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
    /* name -> struct sl__sv_topology. */
    struct sl_map_bytes topologies;
    struct sl_arena arena;
    bool is_freeing;
};

/* A topology that has a slot here. */
struct sl__sv_topology {
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

struct sl__sv_topology *sl__sv_find_topology(const struct sl_supervisor_slots *self,
                                             const char *name);

/* NULL while the link does not stand. */
struct sl_rpc_gateway *sl__sv_tm_gateway(const struct sl__sv_topology *topology);

/* Follows a topology; NULL when its leader can not be watched. */
struct sl__sv_topology *sl__sv_add_topology(struct sl_supervisor_slots *self, const char *name);
void sl__sv_forget_topology(struct sl_supervisor_slots *self, struct sl__sv_topology *topology,
                            const char *cause);

/* A topology without a slot is not followed any more. */
void sl__sv_drop_if_empty(struct sl_supervisor_slots *self, const char *name);

/* Offers all slots that are reserved for the topology. */
void sl__sv_offer_slots(struct sl_supervisor_slots *self, struct sl__sv_topology *topology);

/* Tells the topology master that an allocation is not here, or can not be used. */
void sl__sv_tell_failed(struct sl_supervisor_slots *self, struct sl__sv_topology *topology,
                        uint64_t allocation, const char *cause);

/* Frees the slots of a topology in a state (-1: in any); the topology goes with the last one. */
void sl__sv_free_slots_of(struct sl_supervisor_slots *self, const char *name, int state,
                          const char *cause);

/* What the heartbeats of topology masters tell: the listener's functions. */
void sl__sv_tm_heartbeat_lost(void *ctx, const char *id);
void sl__sv_tm_heartbeat_payload(void *ctx, const char *id, const uint8_t *payload, size_t size);
