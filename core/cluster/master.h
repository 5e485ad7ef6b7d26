#pragma once
/*
 * A master: it stands for election among the masters of a cluster, and while it leads it decides
 * where topologies run. What it holds it can read again: a successor takes over from the state
 * manager, from supervisors, which register anew, and from topology masters, which run on.
 *
 *     STANDING --elected--> LOADING --topologies read--> LEADING --term over--> STANDING
 *
 * In LEADING one event after the other is assigned (master_events.c), always from one snapshot of
 * the cluster, on a thread of the loop:
 *
 *     submission -> local folder -> event ---+
 *     update, reassignment -------> event ---+--> assignment --> plan --> topology master
 *     monitor --------------------> event ---+
 *
 * Every transaction takes place only while it leads.
 */

#include "cluster/resource_manager.h"
#include "rpc/rpc.h"
#include "state/state.h"

struct sl_master;

enum {
    SL_MASTER_MONITOR_MS = 2000,
    SL_MASTER_SUPERVISOR_TIMEOUT_MS = 30000,
    /* How long a topology may be without a topology master before its supervisor is asked again. */
    SL_MASTER_START_MS = 5000,
};

struct sl_master_options {
    /* Listening; its first address is published. */
    struct sl_rpc *rpc;
    struct sl_state_store *store;
    /* Name among the masters. Texts are copied. */
    const char *name;
    /* Folder for definitions and code of topologies that it takes in. */
    const char *folder;
    struct sl_heartbeat_config heartbeat;
    struct sl_slot_manager_config slots;
    uint64_t topology_timeout_ms;
    uint64_t start_up_ms;
    /* 0: the defaults above. */
    uint64_t monitor_interval_ms;
    uint64_t supervisor_timeout_ms;
    /* The process can not go on. */
    void (*on_fatal)(void *ctx, const char *reason);
    void *ctx;
};

/* Stands for election at once. SL_EINVAL, SL_EEXIST (the endpoints). */
int sl_master_new(const struct sl_master_options *options, struct sl_master **master);

/* Ends the term; everything runs on. */
void sl_master_free(struct sl_master *master);

bool sl_master_is_leading(const struct sl_master *master);

/* Supervisors that are registered. */
size_t sl_master_supervisor_count(const struct sl_master *master);

/* One round of the monitor now. */
void sl_master_check(struct sl_master *master);
