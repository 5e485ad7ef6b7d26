#pragma once
/*
 * Key groups: a key belongs to group hash(key) mod M, and a table says which task of a component
 * owns which group. The table is part of the plan, so that a change of parallelism moves as few
 * groups as possible instead of what a formula would move.
 */

#include <stdint.h>

#include "topology/topology.h"

/*
 * The number of groups when the config names none:
 * min(max(nextpow2(p + p div 2), 128), 32768) of the largest parallelism p at submission.
 */
uint32_t sl_key_groups_default(uint32_t largest_parallelism);

/*
 * The first table: contiguous ranges in the order of the tasks, equal within 1. Writes the task of
 * group g to owners[g]. SL_EINVAL without groups or tasks or with more tasks than groups.
 */
int sl_key_groups_assign(const int32_t *tasks, uint32_t task_count, int32_t *owners,
                         uint32_t group_count);

/*
 * The table after a change of the tasks: groups are again equal within 1, and no table that is has
 * fewer groups on another task than before. Writes new_owners, which may be old_owners. A group
 * whose owner is not among the tasks is always moved. Returns the number of groups that changed
 * their task, or SL_EINVAL as above and for a task id that occurs twice.
 *
 * How: each task keeps what it has up to its share; shares of one more go to the tasks that would
 * otherwise have to give that group away. The highest groups are given away, and given in ascending
 * order to the tasks in their order, which keeps ranges together.
 */
int sl_key_groups_rebalance(const int32_t *old_owners, uint32_t group_count, const int32_t *tasks,
                            uint32_t task_count, int32_t *new_owners);
