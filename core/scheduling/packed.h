#pragma once
/* The containers of a packing plan are the workers; they are placed evenly. */

#include "scheduling/scheduling.h"

/*
 * As sl_sched_assign for SL_SCHED_PACKED. Containers by id go to the supervisor with the fewest
 * workers of this topology, then the most free ports, then the lowest id, where their cpu and ram
 * fit; when that fails, the largest come first. Except in modes new and reassign a container stays
 * in the slot that the plan names, else in that of the previous worker it shares most tasks with.
 * Tasks of the engine that no container has join the container with the fewest tasks, a master
 * that is to be alone gets a slot of its own. SL_EINVAL when the plan and the components do not
 * have the same tasks.
 */
int sl_sched_packed(const struct sl_sched_request *request, struct sl_sched_result *result);
