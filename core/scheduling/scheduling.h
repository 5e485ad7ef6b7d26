#pragma once
/*
 * Scheduling: a request (plain data) in, an assignment (plain data) out. No clock, no randomness,
 * no log; the same request gives the same answer whatever the order of its lists.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduling/scheduling.abi.h"

/*
 * Assigns the tasks of *request with a built-in scheduler (enum sl_sched_scheduler) and fills
 * *result, which sl_sched_result_destroy frees. Returns 0 or
 *   SL_EINVAL         the request contradicts itself: an index out of range, an id given twice ..
 *   SL_EUNSATISFIABLE no assignment keeps what is asked; the message has the names and numbers
 *   SL_ECONFLICT      nothing needs assigning (mode monitor with nothing dead)
 * *result is empty after an error.
 */
int sl_sched_assign(const struct sl_sched_request *request, int scheduler,
                    struct sl_sched_result *result);

/* Frees the arrays of a result; the struct itself is the caller's. */
void sl_sched_result_destroy(struct sl_sched_result *result);
