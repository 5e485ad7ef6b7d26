#pragma once
/* JStorm's worker and task assignment, repaired, in all modes; and the plain one. */

#include "scheduling/scheduling.h"

/* As sl_sched_assign for SL_SCHED_BALANCED. */
int sl_sched_balanced(const struct sl_sched_request *request, struct sl_sched_result *result);

/*
 * As sl_sched_assign for SL_SCHED_ROUND_ROBIN: supervisors by free ports descending get one worker
 * each in turn, an exhausted one drops out, a worker that has a node keeps it; tasks go by id to
 * the worker with the fewest. The topology master has company unless the request says otherwise.
 * Mode minimal is that of `balanced`.
 */
int sl_sched_round_robin(const struct sl_sched_request *request, struct sl_sched_result *result);

/*
 * The request for schedulers that know no topology master: it is alone only when the request says
 * so. The copy borrows what the request borrows.
 */
struct sl_sched_request sl_sched_without_auto(const struct sl_sched_request *request);
