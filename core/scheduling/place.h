#pragma once
/*
 * Where workers go, after JStorm's WorkerScheduler: user-defined workers first, then old ones where
 * the mode asks for them, then blank ones over the supervisors so that those with few used ports
 * come first.
 */

#include "scheduling/plan.h"

/*
 * Refuses with SL_EUNSATISFIABLE when the usable free ports, less the reserve, are fewer than
 * `alloc`.
 */
int sl_sched_place_check_free(const struct sl_sched_plan *plan, uint32_t alloc);

struct sl_sched_place_users {
    /* Tasks that may be taken. */
    const bool *need;
    /* User workers go on from the previous worker that fits them, and keep its tasks. */
    bool is_sticky;
};

/*
 * Adds a slot for each user-defined worker that gets a task: of each component its share of the
 * lowest tasks that are free. Definitions that a kept worker covers already are done. The slots are
 * put on their host and port. SL_EUNSATISFIABLE names a pin that can not be honoured, or the
 * numbers when there are more such workers than `alloc`.
 */
int sl_sched_place_users(struct sl_sched_plan *plan, uint32_t alloc,
                         const struct sl_sched_place_users *how);

/* True when the slot of a previous worker can be had again by a worker of default size. */
bool sl_sched_place_can_resume(const struct sl_sched_plan *plan, uint32_t old);

/* Adds a slot where the previous worker was, which must be possible; no tasks. */
uint32_t sl_sched_place_resume(struct sl_sched_plan *plan, uint32_t old);

/* Adds blank slots until `alloc` are allocated. */
void sl_sched_place_pad(struct sl_sched_plan *plan, uint32_t alloc);

enum sl_sched_spread {
    /* JStorm's theoretical average and overload list. */
    SL_SCHED_SPREAD_THEORY,
    /* First where the fewest workers of this topology are: for components on different nodes. */
    SL_SCHED_SPREAD_WIDE,
    /* Supervisors by free ports descending, one worker each in turn. */
    SL_SCHED_SPREAD_TURNS,
};

/* Puts the slots that have no place yet. SL_EUNSATISFIABLE when there is no room for them. */
int sl_sched_place_blanks(struct sl_sched_plan *plan, int spread);
