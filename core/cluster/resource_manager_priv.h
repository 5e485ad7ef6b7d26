#pragma once
/* What resource_manager.c (terms, slots, heartbeats) and resource_manager_register.c (who may
 * register) share. */

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "cluster/resource_manager.h"
#include "rpc/connections.h"

struct sl_resource_manager {
    struct sl_resource_manager_options options;
    struct sl_loop *loop;
    struct sl_rpc_endpoint endpoint;
    bool is_leading;
    /* Of supervisors and of topology masters: a name of one kind may be that of the other. */
    struct sl_heartbeats heartbeats;
    struct sl_heartbeats master_heartbeats;
    struct sl_slot_manager slots;
    /* name -> struct sl__rm_supervisor; instance -> the same. */
    struct sl_map_bytes supervisors;
    struct sl_map_u64 by_instance;
    /* name -> struct sl__rm_topology. */
    struct sl_map_bytes topologies;
    /* Registrations that are being checked. */
    struct sl_list checks;
    struct sl_arena arena;
    struct sl_timer grace;
};

struct sl__rm_supervisor {
    struct sl_resource_manager *manager;
    struct sl_peer peer;
    /* Attempt of its process by which it is registered. */
    uint64_t attempt;
    uint64_t instance;
    /* Slot requests that it has not answered. */
    struct sl_list calls;
};

/* A call to a supervisor's slot table. */
struct slot_call {
    struct sl_resource_manager *manager;
    struct sl_list_node node;
    uint64_t call;
};

struct sl__rm_topology {
    struct sl_resource_manager *manager;
    char name[SL_NAME_MAX + 1];
    /* Term of the leader as the state manager shows it; 0 for none. */
    uint64_t leader;
    struct sl_timer timer;
    bool is_watched;
    /* The registered topology master. */
    bool has_master;
    uint64_t token;
    struct sl_peer master;
};

struct sl__rm_supervisor *sl__rm_find_supervisor(const struct sl_resource_manager *self,
                                                 const char *name);
struct sl__rm_topology *sl__rm_find_topology(const struct sl_resource_manager *self,
                                             const char *name);

/* Forgets a supervisor; what was allocated there has failed. */
void sl__rm_remove_supervisor(struct sl_resource_manager *self,
                              struct sl__rm_supervisor *supervisor, const char *cause);

/* Lets the registered topology master go, if there is one. */
void sl__rm_disconnect_master(struct sl_resource_manager *self, struct sl__rm_topology *topology,
                              const char *cause);

/* NULL when the topology can not be watched. */
struct sl__rm_topology *sl__rm_add_topology(struct sl_resource_manager *self, const char *name);

/* resource_manager_register.c: the handlers of the two registrations. */
void sl__rm_register_supervisor(void *ctx, struct sl_rpc_request *request);
void sl__rm_register_master(void *ctx, struct sl_rpc_request *request);

/* Ends checks of a name (topology "" for supervisors) in favour of a newer attempt. */
void sl__rm_outdate_checks(struct sl_resource_manager *self, const char *resource,
                           const char *topology);

/* The state manager has shown who leads a topology: masters that wait for that are judged. */
void sl__rm_judge_masters(struct sl_resource_manager *self, const char *topology);

/* The term ended. */
void sl__rm_end_checks(struct sl_resource_manager *self);
