#pragma once
/*
 * The control part of a supervisor: its link to the resource manager, its slot table, and a link to
 * the topology master of every topology that has a slot here. It is one plain endpoint. What runs
 * in the slots is the business of its owner, who is told when a slot becomes active and when what
 * runs there has to end.
 */

#include "cluster/peer.h"
#include "cluster/slot_table.h"
#include "rpc/connections.h"

struct sl_supervisor_slots;

enum {
    SL_SUPERVISOR_REGISTRATION_MS = 300000,
    SL_SUPERVISOR_ORPHAN_MS = 60000,
};

struct sl_supervisor_slots_options {
    struct sl_rpc *rpc;
    /* Address, name, process, hardware and profiles; borrowed. */
    const struct sl_register_supervisor *identity;
    const uint32_t *ports;
    size_t port_count;
    struct sl_registration_config registration;
    struct sl_heartbeat_config heartbeat;
    uint64_t slot_timeout_ms;
    /* How long the tasks in a slot may be without a topology master; 0: as slot_timeout_ms. */
    uint64_t orphan_timeout_ms;
    /* How long it may be without a resource manager. */
    uint64_t registration_timeout_ms;
    /* Leaders of topologies; reports back through sl_supervisor_slots_topology_leader. */
    struct sl_leader_watch watch;
    /* The known leader of the resource manager, or of a topology (not NULL), is of an old term:
     * look it up again. May be NULL. */
    void (*on_stale_leader)(void *ctx, const char *topology);
    /* A link to a topology's master stands, or is lost: tasks of the topology have to end then. May
     * be NULL. */
    void (*on_topology_gained)(void *ctx, const char *topology);
    void (*on_topology_lost)(void *ctx, const char *topology, const char *cause);
    /* The topology master accepted the slot: its worker may start. May be NULL. */
    void (*on_slot_active)(void *ctx, const char *topology, uint32_t port, uint64_t allocation);
    /* The worker in the slot has to end; sl_slot_table_remove_task of the table says when. */
    void (*stop_tasks)(void *ctx, uint64_t allocation, uint32_t port, const char *cause);
    /* Requests about processes (supervisor_messages.h), to be answered. NULL: there are none. */
    void (*on_request)(void *ctx, struct sl_rpc_request *request);
    /* The process can not go on. */
    void (*on_fatal)(void *ctx, const char *reason);
    void *ctx;
};

/* Starts without a resource manager; the registration limit runs. SL_EINVAL, SL_EEXIST. */
int sl_supervisor_slots_new(const struct sl_supervisor_slots_options *options,
                            struct sl_supervisor_slots **supervisor);
void sl_supervisor_slots_free(struct sl_supervisor_slots *supervisor);

/* The leading resource manager, NULL for none. The registration limit starts anew. */
void sl_supervisor_slots_rm_leader(struct sl_supervisor_slots *supervisor, const char *address,
                                   uint64_t token);

/* The leader of a watched topology, NULL for none; the same one again is ignored. */
void sl_supervisor_slots_topology_leader(struct sl_supervisor_slots *supervisor,
                                         const char *topology, const char *address, uint64_t token);

/* Closes the link to the topology's master and registers there anew; without a link: nothing. */
void sl_supervisor_slots_reconnect(struct sl_supervisor_slots *supervisor, const char *topology,
                                   const char *cause);

/* Before a resource manager is known: a slot whose task runs since an earlier process of the
 * supervisor. It is offered when the topology's master is found. False when there is no such slot,
 * or the leader of the topology can not be watched. */
bool sl_supervisor_slots_take_over(struct sl_supervisor_slots *supervisor, const char *topology,
                                   uint32_t port, uint64_t allocation);

/* A worker of the slot started; false when the slot is not active and can not be activated. */
bool sl_supervisor_slots_task_started(struct sl_supervisor_slots *supervisor, uint64_t allocation);
void sl_supervisor_slots_task_ended(struct sl_supervisor_slots *supervisor, uint64_t allocation);

/* What ran in the slot can not run: the topology master is told and the slot is freed. */
void sl_supervisor_slots_fail(struct sl_supervisor_slots *supervisor, uint64_t allocation,
                              const char *cause);

/* Sends a one-way message to the topology's master; nothing while there is no link to it. */
void sl_supervisor_slots_tell(struct sl_supervisor_slots *supervisor, const char *topology,
                              uint32_t method, const struct sl_buf *body);

/* The term of the topology's master, as far as known; 0: none. */
uint64_t sl_supervisor_slots_topology_token(const struct sl_supervisor_slots *supervisor,
                                            const char *topology);

const struct sl_slot_table *sl_supervisor_slots_table(const struct sl_supervisor_slots *supervisor);

/* The instance of the registration, 0 while not registered. */
uint64_t sl_supervisor_slots_instance(const struct sl_supervisor_slots *supervisor);
bool sl_supervisor_slots_has_topology(const struct sl_supervisor_slots *supervisor,
                                      const char *topology);
bool sl_supervisor_slots_is_linked(const struct sl_supervisor_slots *supervisor,
                                   const char *topology);
