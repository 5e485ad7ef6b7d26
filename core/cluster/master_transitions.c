#include "cluster/master_transitions.h"

const char *
sl_master_status_name(enum sl_master_topology_status status)
{
    static const char *const names[] = {"ACTIVE", "INACTIVE", "REBALANCING", "KILLED"};
    return names[status];
}

/* What active and inactive ones have in common. */
static struct sl_master_transition
of_running(enum sl_master_topology_status status, enum sl_master_action action)
{
    switch (action) {
    case SL_MASTER_DO_MONITOR:
        return (struct sl_master_transition){status, SL_MASTER_REASSIGN_DEAD};
    case SL_MASTER_DO_KILL:
        return (struct sl_master_transition){SL_MASTER_KILLED, SL_MASTER_ARM_KILL};
    case SL_MASTER_DO_REBALANCE:
        return (struct sl_master_transition){SL_MASTER_REBALANCING, SL_MASTER_START_REBALANCE};
    case SL_MASTER_DO_ACTIVATE:
        return (struct sl_master_transition){
            SL_MASTER_ACTIVE, status == SL_MASTER_ACTIVE ? SL_MASTER_NOTHING : SL_MASTER_ENTER};
    case SL_MASTER_DO_DEACTIVATE:
        return (struct sl_master_transition){
            SL_MASTER_INACTIVE, status == SL_MASTER_INACTIVE ? SL_MASTER_NOTHING : SL_MASTER_ENTER};
    default:
        return (struct sl_master_transition){status, SL_MASTER_NOTHING};
    }
}

struct sl_master_transition
sl_master_transition(enum sl_master_topology_status status, enum sl_master_topology_status before,
                     enum sl_master_action action)
{
    struct sl_master_transition nothing = {status, SL_MASTER_NOTHING};
    switch (status) {
    case SL_MASTER_ACTIVE:
    case SL_MASTER_INACTIVE:
        return of_running(status, action);
    case SL_MASTER_REBALANCING:
        if (action == SL_MASTER_DO_KILL) {
            return (struct sl_master_transition){SL_MASTER_KILLED, SL_MASTER_ARM_KILL};
        }
        return action == SL_MASTER_DO_END_REBALANCE
                   ? (struct sl_master_transition){before, SL_MASTER_ENTER}
                   : nothing;
    default:
        if (action == SL_MASTER_DO_STARTUP || action == SL_MASTER_DO_KILL) {
            return (struct sl_master_transition){SL_MASTER_KILLED, SL_MASTER_ARM_KILL};
        }
        return action == SL_MASTER_DO_REMOVE
                   ? (struct sl_master_transition){SL_MASTER_KILLED, SL_MASTER_REMOVE_ALL}
                   : nothing;
    }
}

int64_t
sl_master_kill_due(int64_t stored_ms, int64_t now_ms, uint64_t wait_ms)
{
    static const uint64_t longest_ms = 1000ull * 365 * 24 * 3600 * 1000;
    int64_t due = now_ms + (int64_t)(wait_ms < longest_ms ? wait_ms : longest_ms);
    /* 0 says "none". */
    due = due != 0 ? due : 1;
    return stored_ms != 0 && stored_ms < due ? stored_ms : due;
}
