#pragma once
/*
 * The topology master: it leads one topology. It reads the stored plan, has its containers started,
 * registers their workers, sends them the physical plan and publishes it when all of them run it.
 * Clients activate, deactivate, restart, update and kill through it. It holds nothing that a
 * successor could not find out: a new one takes over from the state manager and from the workers,
 * which run on and register again.
 *
 *     STANDING --elected--> LOADING --plan, execution state--> LEADING --kill--> ENDING
 *
 * In LEADING it goes after one aim: every container of the plan has a worker, every worker runs the
 * newest epoch of the physical plan, and spouts are called or not as it is wanted. When all of it
 * is so, the topology is settled. An update (topology_master_update.c) replaces the plan.
 */

#include "cluster/control_messages.h"
#include "cluster/launcher.h"
#include "rpc/rpc.h"
#include "state/state.h"

struct sl_topology_master;

struct sl_topology_master_options {
    /* Listening; its first address is published. */
    struct sl_rpc *rpc;
    struct sl_state_store *store;
    const char *topology;
    /* Borrowed objects behind it. */
    struct sl_launcher launcher;
    /* The slot in which a supervisor started it; port 0: it has none. */
    struct sl_plan_slot place;
    /* The process that restarts this one, told to clients; 0 for none. */
    uint64_t guardian_pid;
    uint64_t pid;
    uint64_t heartbeat_interval_ms;
    uint64_t heartbeat_timeout_ms;
    /* How long a worker may take to run a plan. */
    uint64_t plan_timeout_ms;
    /* The role is over: the topology was killed (code 0), or it can not go on. Free it then. */
    void (*on_end)(void *ctx, int code, const char *reason);
    void *ctx;
};

enum {
    SL_TOPOLOGY_MASTER_PLAN_MS = 60000,
};

/* Stands for election at once. SL_EINVAL, SL_EEXIST (the endpoint). */
int sl_topology_master_new(const struct sl_topology_master_options *options,
                           struct sl_topology_master **master);

/* Ends the term; workers and containers run on. */
void sl_topology_master_free(struct sl_topology_master *master);

/* Another process guards this one now. */
void sl_topology_master_set_guardian(struct sl_topology_master *master, uint64_t pid);

/* Has every worker the newest plan, and are spouts as wanted? For tests. */
bool sl_topology_master_is_settled(const struct sl_topology_master *master);
