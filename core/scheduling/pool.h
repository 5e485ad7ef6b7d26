#pragma once
/*
 * The workers among which tasks are dealt, and the three selectors that pick one.
 *
 * A task of component c goes to the worker that is first in this order, where each measure of a
 * worker is followed by the same measure summed over its supervisor's allocated workers:
 *   fewest tasks of c; fewest tasks; most tasks of components related to c (not for system ones);
 *   lowest (supervisor id, port).
 *
 * Within a supervisor the sums are equal, so its best worker is the least by (tasks of c, tasks,
 * -related, port), and the answer is the best supervisor by the full order of its best worker. Two
 * layers of winner trees keep that, so choosing and adding cost O(log n). Where no task of c or of
 * a component related to c is, both counts are 0 whatever c is, so changing the component touches
 * only the supervisors that have one.
 *
 *   members: [ s1:6800 s1:6801 | s2:6800 | s3:6800 s3:6801 .. ]   by (supervisor, port)
 *   groups:      0               1         2                      one a supervisor
 */

#include "scheduling/plan.h"

struct sl_sched_pool {
    struct sl_sched_plan *plan;
    uint32_t count;
    uint32_t group_count;
    /* Members that still take tasks. */
    uint32_t open_count;

    /* A member: its slot, group, whether it is open, its counts. */
    uint32_t *slot;
    uint32_t *group;
    bool *is_open;
    uint32_t *size;
    uint32_t *same;
    uint32_t *related;
    /* Slot index less kept_count -> member. */
    uint32_t *member_of_slot;

    /* A group: its members [first[g], first[g + 1]), supervisor, sums, and whether it is barred for
     * the component (it must run on different nodes and a kept worker there has it). */
    uint32_t *first;
    uint32_t *sup;
    uint32_t *group_size;
    uint32_t *group_same;
    uint32_t *group_related;
    bool *is_barred;
    uint32_t *group_of_sup;

    /* Winner trees: leaves at [n, 2n), the winner at [1]. */
    uint32_t *member_tree;
    uint32_t *group_tree;

    /* Members and groups whose counts are not all 0, so that the next component can clear them. */
    uint32_t *touched_members;
    uint32_t touched_member_count;
    uint32_t *touched_groups;
    uint32_t touched_group_count;
    bool *is_touched;

    /* The component the trees are made for, or SL_SCHED_NONE when they must be built anew. */
    uint32_t component;
    bool is_self_related;
};

/*
 * Takes the allocated slots of the plan, which all have a place, as members; tasks they have
 * already count. The memory is the model's.
 */
void sl_sched_pool_create(struct sl_sched_pool *pool, struct sl_sched_plan *plan);

/* Makes the pool ready to choose for tasks of a component; cheap when it is already. */
void sl_sched_pool_begin(struct sl_sched_pool *pool, uint32_t component);

/* The best open member for a task of the component begun, or SL_SCHED_NONE. */
uint32_t sl_sched_pool_choose(const struct sl_sched_pool *pool);

/* The best member whatever is open, but not lone ones, whose supervisor has no task of the
 * component; or SL_SCHED_NONE. O(n). */
uint32_t sl_sched_pool_choose_elsewhere(const struct sl_sched_pool *pool);

/* True when the member's supervisor has a task of the component begun. */
bool sl_sched_pool_has_component(const struct sl_sched_pool *pool, uint32_t member);

/* Gives a task of the component begun to a member. */
void sl_sched_pool_add(struct sl_sched_pool *pool, uint32_t member, uint32_t task);

/* Gives a task without regard to the component begun, which ends: for tasks that stay. */
void sl_sched_pool_keep(struct sl_sched_pool *pool, uint32_t member, uint32_t task);

/* Closes a member: it takes no more tasks but still counts for its supervisor. */
void sl_sched_pool_leave(struct sl_sched_pool *pool, uint32_t member);

/* The open, empty member whose supervisor has the most members; first in order wins; or NONE. One
 * that goes on from a previous worker, whose tasks will stay, comes after all others. */
uint32_t sl_sched_pool_choose_lone(const struct sl_sched_pool *pool);
