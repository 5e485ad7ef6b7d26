#pragma once
/* What may be done with a topology in each state, after JStorm's table, repaired. Pure. */

#include <stdbool.h>
#include <stdint.h>

enum sl_master_topology_status {
    SL_MASTER_ACTIVE,
    SL_MASTER_INACTIVE,
    SL_MASTER_REBALANCING,
    SL_MASTER_KILLED,
    SL_MASTER_STATUS_COUNT,
};

enum sl_master_action {
    SL_MASTER_DO_MONITOR,
    SL_MASTER_DO_ACTIVATE,
    SL_MASTER_DO_DEACTIVATE,
    /* A master begins to lead. */
    SL_MASTER_DO_STARTUP,
    SL_MASTER_DO_KILL,
    SL_MASTER_DO_REMOVE,
    SL_MASTER_DO_REBALANCE,
    /* A change is over, whatever came of it. */
    SL_MASTER_DO_END_REBALANCE,
    SL_MASTER_ACTION_COUNT,
};

/* What follows from an action beside the new state. */
enum sl_master_effect {
    /* There is no such transition. */
    SL_MASTER_NOTHING,
    SL_MASTER_ENTER,
    SL_MASTER_REASSIGN_DEAD,
    SL_MASTER_ARM_KILL,
    SL_MASTER_REMOVE_ALL,
    SL_MASTER_START_REBALANCE,
};

struct sl_master_transition {
    enum sl_master_topology_status status;
    enum sl_master_effect effect;
};

/* before: the state from before a change, which returns when the change ends. */
struct sl_master_transition sl_master_transition(enum sl_master_topology_status status,
                                                 enum sl_master_topology_status before,
                                                 enum sl_master_action action);

/* "ACTIVE", ... Static text. */
const char *sl_master_status_name(enum sl_master_topology_status status);

/*
 * When a kill ends: what is stored stands, so that neither a second kill nor another master puts it
 * off; but a second one may bring it forward.
 */
int64_t sl_master_kill_due(int64_t stored_ms, int64_t now_ms, uint64_t wait_ms);
