#include "topology/key_groups.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"

/* A task while its share is worked out. */
struct holder {
    int32_t task;
    /* Place in the caller's list of tasks, which decides who gets groups first. */
    uint32_t at;
    uint32_t held;
    uint32_t share;
};

uint32_t
sl_key_groups_default(uint32_t largest_parallelism)
{
    uint64_t wanted = (uint64_t)largest_parallelism + largest_parallelism / 2;
    uint32_t groups = SL_KEY_GROUPS_MIN;
    while (groups < wanted && groups < SL_KEY_GROUPS_MAX) {
        groups *= 2;
    }
    return groups;
}

static int
check_counts(uint32_t task_count, uint32_t group_count)
{
    if (task_count == 0) {
        return sl_err_set(SL_EINVAL, "key groups need a task to own them");
    }
    if (group_count == 0 || group_count > SL_KEY_GROUPS_MAX) {
        return sl_err_set(SL_EINVAL, "%u key groups; there can be 1 to %d", group_count,
                          SL_KEY_GROUPS_MAX);
    }
    if (task_count > group_count) {
        return sl_err_set(SL_EINVAL, "%u tasks can not share %u key groups", task_count,
                          group_count);
    }
    return 0;
}

int
sl_key_groups_assign(const int32_t *tasks, uint32_t task_count, int32_t *owners,
                     uint32_t group_count)
{
    int rc = check_counts(task_count, group_count);
    if (rc != 0) {
        return rc;
    }
    for (uint64_t i = 0; i < task_count; i++) {
        uint64_t end = (i + 1) * group_count / task_count;
        for (uint64_t group = i * group_count / task_count; group < end; group++) {
            owners[group] = tasks[i];
        }
    }
    return 0;
}

static int
compare_task(const void *a, const void *b)
{
    const struct holder *x = a;
    const struct holder *y = b;
    return x->task < y->task ? -1 : x->task > y->task;
}

/* The holder of a task in an array sorted by task, or NULL. */
static struct holder *
find_holder(struct holder *holders, uint32_t count, int32_t task)
{
    struct holder key = {.task = task};
    return bsearch(&key, holders, count, sizeof(*holders), compare_task);
}

/*
 * Splits the groups into shares of `least` and least + 1. A share of one more saves a move where a
 * task holds more than `least`; what is left of them goes to the first tasks.
 */
static void
fix_shares(struct holder *const *by_place, uint32_t count, uint32_t group_count)
{
    uint32_t least = group_count / count;
    uint32_t extra = group_count % count;
    for (uint32_t i = 0; i < count; i++) {
        bool saves_a_move = extra > 0 && by_place[i]->held > least;
        by_place[i]->share = least + saves_a_move;
        extra -= saves_a_move;
    }
    for (uint32_t i = 0; i < count && extra > 0; i++) {
        if (by_place[i]->share == least) {
            by_place[i]->share++;
            extra--;
        }
    }
    sl_assert_eq(extra, 0);
}

/* Gives every group its owner; holders are sorted by task. Returns the number of moves. */
static int
hand_over(const int32_t *old_owners, uint32_t group_count, struct holder *holders,
          struct holder *const *by_place, uint32_t count, int32_t *new_owners)
{
    int moved = 0;
    uint32_t receiver = 0;
    for (uint32_t i = 0; i < count; i++) {
        holders[i].held = 0;
    }
    /* First what stays, so that receivers know how much room they have left. */
    bool *stays = sl_calloc(group_count, sizeof(*stays));
    for (uint32_t group = 0; group < group_count; group++) {
        struct holder *owner = find_holder(holders, count, old_owners[group]);
        if (owner != NULL && owner->held < owner->share) {
            owner->held++;
            stays[group] = true;
        }
    }
    for (uint32_t group = 0; group < group_count; group++) {
        if (stays[group]) {
            new_owners[group] = old_owners[group];
            continue;
        }
        while (by_place[receiver]->held == by_place[receiver]->share) {
            receiver++;
            sl_assert_lt(receiver, count);
        }
        by_place[receiver]->held++;
        new_owners[group] = by_place[receiver]->task;
        moved++;
    }
    sl_free(stays);
    return moved;
}

int
sl_key_groups_rebalance(const int32_t *old_owners, uint32_t group_count, const int32_t *tasks,
                        uint32_t task_count, int32_t *new_owners)
{
    int rc = check_counts(task_count, group_count);
    if (rc != 0) {
        return rc;
    }
    struct holder *holders = sl_calloc(task_count, sizeof(*holders));
    struct holder **by_place = sl_calloc(task_count, sizeof(*by_place));
    for (uint32_t i = 0; i < task_count; i++) {
        holders[i] = (struct holder){.task = tasks[i], .at = i};
    }
    qsort(holders, task_count, sizeof(*holders), compare_task);
    for (uint32_t i = 0; i < task_count; i++) {
        if (i > 0 && holders[i].task == holders[i - 1].task) {
            rc = sl_err_set(SL_EINVAL, "task %d occurs twice", holders[i].task);
            goto out;
        }
        by_place[holders[i].at] = &holders[i];
    }
    for (uint32_t group = 0; group < group_count; group++) {
        struct holder *owner = find_holder(holders, task_count, old_owners[group]);
        if (owner != NULL) {
            owner->held++;
        }
    }
    fix_shares(by_place, task_count, group_count);
    rc = hand_over(old_owners, group_count, holders, by_place, task_count, new_owners);
out:
    sl_free(holders);
    sl_free(by_place);
    return rc;
}
