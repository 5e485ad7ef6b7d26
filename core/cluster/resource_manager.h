#pragma once
/*
 * The resource manager: the part of the leading master that knows supervisors, topology masters and
 * slots. It is one fenced endpoint, whose token is the master's term.
 *
 * A supervisor's registration: connect back to its address; the very process that registers must
 * answer there; a name that another living process has is refused; then a new instance id. Its
 * slots are unknown until its slot report. A topology master's: the term that it claims must be the
 * one that the state manager shows, and its endpoint must answer to it.
 */

#include "cluster/peer.h"
#include "cluster/slot_manager.h"

struct sl_resource_manager;

/* Defaults of the settings topology_timeout and slot_start_up_time. */
enum { SL_TOPOLOGY_TIMEOUT_MS = 300000, SL_SLOT_START_UP_MS = 300000 };

struct sl_resource_manager_options {
    struct sl_rpc *rpc;
    /* Name of the master. Borrowed. */
    const char *resource;
    struct sl_heartbeat_config heartbeat;
    struct sl_slot_manager_config slots;
    /* A topology without a leader is forgotten after this. */
    uint64_t topology_timeout_ms;
    /* How long what nothing can serve waits for supervisors after a term began. */
    uint64_t start_up_ms;
    /* Reports back through sl_resource_manager_topology_leader. */
    struct sl_leader_watch watch;
    /* Where supervisors can be started and stopped; NULL where they can not. */
    int (*start_supervisor)(void *ctx);
    void (*release_supervisor)(void *ctx, const char *resource, const char *cause);
    /* All is prepared: now the address may be published for this term. May be NULL. */
    void (*on_ready)(void *ctx, uint64_t token);
    /* A topology was without a leader for too long and is forgotten. May be NULL. */
    void (*on_topology_timeout)(void *ctx, const char *topology);
    /* The process can not go on. */
    void (*on_fatal)(void *ctx, const char *reason);
    void *ctx;
};

/* Makes one that does not lead. SL_EINVAL for bad settings, SL_EEXIST when the service has one. */
int sl_resource_manager_new(const struct sl_resource_manager_options *options,
                            struct sl_resource_manager **manager);
void sl_resource_manager_free(struct sl_resource_manager *manager);

/* A term begins: old state is cleared, the token set, heartbeats and slots started, on_ready. */
void sl_resource_manager_grant(struct sl_resource_manager *manager, uint64_t token);

/* The term ends: everything is forgotten. Nobody is told: they learn it from the leader node. */
void sl_resource_manager_revoke(struct sl_resource_manager *manager);

/* The leader of a watched topology: its token, 0 for none. */
void sl_resource_manager_topology_leader(struct sl_resource_manager *manager, const char *topology,
                                         uint64_t token);

/* The topology ended for good: its master is let go and its slots that are not in use are freed. */
void sl_resource_manager_topology_ended(struct sl_resource_manager *manager, const char *topology);

size_t sl_resource_manager_supervisor_count(const struct sl_resource_manager *manager);
size_t sl_resource_manager_topology_count(const struct sl_resource_manager *manager);

/* 0 when it is not registered. */
uint64_t sl_resource_manager_instance(const struct sl_resource_manager *manager,
                                      const char *supervisor);
bool sl_resource_manager_has_master(const struct sl_resource_manager *manager,
                                    const char *topology);
const struct sl_slot_manager *sl_resource_manager_slots(const struct sl_resource_manager *manager);
