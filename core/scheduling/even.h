#pragma once
/* Storm's EvenScheduler, with its DefaultScheduler for mode keep. */

#include "scheduling/plan.h"

/* A free slot of the cluster. */
struct sl_sched_free_slot {
    uint32_t sup;
    uint32_t port;
};

/*
 * The free slots in Storm's order: per supervisor ports ascending, supervisors by free slots
 * descending and then by id, interleaved (all first ones, all second ones ..). Supervisors that
 * state cpu or ram give no more slots than they have room for. Writes at most `capacity` and
 * returns how many there are.
 */
uint32_t sl_sched_even_sort_slots(const struct sl_sched_model *model,
                                  struct sl_sched_free_slot *slots, uint32_t capacity);

/* `total` cut into `pieces` nearly equal parts: large_count of size + 1 and small_count of size. */
struct sl_sched_division {
    uint32_t size;
    uint32_t small_count;
    uint32_t large_count;
};

/* Storm's integerDivided; no pieces give zeros. */
struct sl_sched_division sl_sched_even_divide(uint32_t total, uint32_t pieces);

/* True when a task has no worker or fewer than `workers` are assigned. */
bool sl_sched_even_needs_scheduling(const struct sl_sched_model *model, uint32_t workers);

/*
 * As sl_sched_assign for SL_SCHED_EVEN. Fewer slots than workers asked for are no failure, none
 * are. The topology master is an ordinary task unless it is to be alone explicitly. User-defined
 * workers are refused. Mode minimal is that of `balanced`.
 */
int sl_sched_even(const struct sl_sched_request *request, struct sl_sched_result *result);
