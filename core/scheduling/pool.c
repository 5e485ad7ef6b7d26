#include "scheduling/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

struct member_ref {
    uint32_t sup;
    uint32_t port;
    uint32_t slot;
};

static int
compare_ref(const void *a, const void *b)
{
    const struct member_ref *left = a;
    const struct member_ref *right = b;
    if (left->sup != right->sup) {
        return left->sup > right->sup ? 1 : -1;
    }
    return (left->port > right->port) - (left->port < right->port);
}

static uint32_t *
numbers(struct sl_sched_pool *pool, uint32_t count)
{
    return sl_arena_calloc(&pool->plan->model->arena, (size_t)count + 1, sizeof(uint32_t));
}

static void
create_groups(struct sl_sched_pool *pool)
{
    struct sl_sched_model *m = pool->plan->model;
    pool->first = numbers(pool, pool->count + 1);
    pool->sup = numbers(pool, pool->count);
    pool->group_of_sup = numbers(pool, m->sup_count);
    memset(pool->group_of_sup, 0xff, m->sup_count * sizeof(uint32_t));
    uint32_t groups = 0;
    for (uint32_t i = 0; i < pool->count; i++) {
        uint32_t sup = pool->plan->slots[pool->slot[i]].sup;
        if (groups == 0 || pool->sup[groups - 1] != sup) {
            pool->first[groups] = i;
            pool->sup[groups] = sup;
            pool->group_of_sup[sup] = groups++;
        }
        pool->group[i] = groups - 1;
    }
    pool->first[groups] = pool->count;
    pool->group_count = groups;
    pool->group_size = numbers(pool, groups);
    pool->group_same = numbers(pool, groups);
    pool->group_related = numbers(pool, groups);
    pool->is_barred = sl_arena_calloc(&m->arena, groups + 1, sizeof(bool));
    pool->is_touched = sl_arena_calloc(&m->arena, groups + 1, sizeof(bool));
    pool->touched_groups = numbers(pool, groups);
    pool->touched_members = numbers(pool, 2 * pool->count);
    pool->group_tree = numbers(pool, 2 * groups + 2);
}

void
sl_sched_pool_create(struct sl_sched_pool *pool, struct sl_sched_plan *plan)
{
    struct sl_arena *arena = &plan->model->arena;
    memset(pool, 0, sizeof(*pool));
    pool->plan = plan;
    pool->count = plan->count - plan->kept_count;
    pool->open_count = pool->count;
    pool->component = SL_SCHED_NONE;
    pool->slot = numbers(pool, pool->count);
    pool->group = numbers(pool, pool->count);
    pool->size = numbers(pool, pool->count);
    pool->same = numbers(pool, pool->count);
    pool->related = numbers(pool, pool->count);
    pool->member_of_slot = numbers(pool, pool->count);
    pool->member_tree = numbers(pool, 2 * pool->count + 2);
    pool->is_open = sl_arena_calloc(arena, pool->count + 1, sizeof(bool));
    struct member_ref *refs = sl_arena_calloc(arena, pool->count + 1, sizeof(*refs));
    for (uint32_t i = 0; i < pool->count; i++) {
        const struct sl_sched_slot *slot = &plan->slots[plan->kept_count + i];
        refs[i] = (struct member_ref){slot->sup, slot->port, plan->kept_count + i};
    }
    qsort(refs, pool->count, sizeof(*refs), compare_ref);
    for (uint32_t i = 0; i < pool->count; i++) {
        pool->slot[i] = refs[i].slot;
        pool->member_of_slot[refs[i].slot - plan->kept_count] = i;
        pool->is_open[i] = true;
    }
    create_groups(pool);
    for (uint32_t i = 0; i < pool->count; i++) {
        pool->size[i] = plan->slots[pool->slot[i]].task_count;
        pool->group_size[pool->group[i]] += pool->size[i];
    }
}

/* ---- the order --------------------------------------------------------------------------------
 */

/* -1, 0, 1 as a is better than, as good as, worse than b; fewer is better. */
static int
fewer(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

/* The better of two members of one group; either may be NONE. */
static uint32_t
better_member(const struct sl_sched_pool *pool, uint32_t a, uint32_t b)
{
    if (a == SL_SCHED_NONE || b == SL_SCHED_NONE) {
        return a == SL_SCHED_NONE ? b : a;
    }
    int order = fewer(pool->same[a], pool->same[b]);
    if (order == 0) {
        order = fewer(pool->size[a], pool->size[b]);
    }
    if (order == 0) {
        order = fewer(pool->related[b], pool->related[a]);
    }
    if (order == 0) {
        order = fewer(a, b);
    }
    return order < 0 ? a : b;
}

/* The better of two members of any groups by the full order; either may be NONE. */
static uint32_t
better_overall(const struct sl_sched_pool *pool, uint32_t a, uint32_t b)
{
    if (a == SL_SCHED_NONE || b == SL_SCHED_NONE) {
        return a == SL_SCHED_NONE ? b : a;
    }
    uint32_t ga = pool->group[a];
    uint32_t gb = pool->group[b];
    int order = fewer(pool->same[a], pool->same[b]);
    if (order == 0) {
        order = fewer(pool->group_same[ga], pool->group_same[gb]);
    }
    if (order == 0) {
        order = fewer(pool->size[a], pool->size[b]);
    }
    if (order == 0) {
        order = fewer(pool->group_size[ga], pool->group_size[gb]);
    }
    if (order == 0) {
        order = fewer(pool->related[b], pool->related[a]);
    }
    if (order == 0) {
        order = fewer(pool->group_related[gb], pool->group_related[ga]);
    }
    if (order == 0) {
        order = fewer(a, b);
    }
    return order < 0 ? a : b;
}

/* ---- the trees --------------------------------------------------------------------------------
 */

/* The tree of a group lies where its members do, twice as wide. */
static uint32_t *
tree_of(const struct sl_sched_pool *pool, uint32_t group, uint32_t *count)
{
    *count = pool->first[group + 1] - pool->first[group];
    return &pool->member_tree[2 * pool->first[group]];
}

static uint32_t
group_winner(const struct sl_sched_pool *pool, uint32_t group)
{
    uint32_t count;
    const uint32_t *tree = tree_of(pool, group, &count);
    return pool->is_barred[group] ? SL_SCHED_NONE : tree[1];
}

static void
build_group(struct sl_sched_pool *pool, uint32_t group)
{
    uint32_t count;
    uint32_t *tree = tree_of(pool, group, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t member = pool->first[group] + i;
        tree[count + i] = pool->is_open[member] ? member : SL_SCHED_NONE;
    }
    for (uint32_t i = count - 1; i > 0; i--) {
        tree[i] = better_member(pool, tree[2 * i], tree[2 * i + 1]);
    }
}

/* All of the upper tree from its leaves. */
static void
build_group_tree(struct sl_sched_pool *pool)
{
    for (uint32_t i = pool->group_count > 0 ? pool->group_count - 1 : 0; i > 0; i--) {
        pool->group_tree[i] =
            better_overall(pool, pool->group_tree[2 * i], pool->group_tree[2 * i + 1]);
    }
}

/* The path of one group to the root. */
static void
update_group_tree(struct sl_sched_pool *pool, uint32_t group)
{
    uint32_t at = pool->group_count + group;
    pool->group_tree[at] = group_winner(pool, group);
    for (at /= 2; at > 0; at /= 2) {
        pool->group_tree[at] =
            better_overall(pool, pool->group_tree[2 * at], pool->group_tree[2 * at + 1]);
    }
}

/* Puts the trees right after a member, and with it its group, has changed. */
static void
update_trees(struct sl_sched_pool *pool, uint32_t member)
{
    uint32_t group = pool->group[member];
    uint32_t count;
    uint32_t *tree = tree_of(pool, group, &count);
    uint32_t at = count + member - pool->first[group];
    tree[at] = pool->is_open[member] ? member : SL_SCHED_NONE;
    for (at /= 2; at > 0; at /= 2) {
        tree[at] = better_member(pool, tree[2 * at], tree[2 * at + 1]);
    }
    update_group_tree(pool, group);
}

/* ---- counters ---------------------------------------------------------------------------------
 */

static void
touch_group(struct sl_sched_pool *pool, uint32_t group)
{
    if (!pool->is_touched[group]) {
        pool->is_touched[group] = true;
        pool->touched_groups[pool->touched_group_count++] = group;
    }
}

/* A member is listed when its first task of either kind is counted, so at most twice. */
static void
count_one(struct sl_sched_pool *pool, uint32_t member, uint32_t *members, uint32_t *groups)
{
    if (members[member]++ == 0) {
        pool->touched_members[pool->touched_member_count++] = member;
    }
    groups[pool->group[member]]++;
    touch_group(pool, pool->group[member]);
}

/* Counts the tasks of a component that members have. */
static void
count_component(struct sl_sched_pool *pool, uint32_t component, uint32_t *members, uint32_t *groups)
{
    const struct sl_sched_plan *plan = pool->plan;
    const struct sl_sched_model *m = plan->model;
    for (uint32_t i = m->comp_first[component]; i < m->comp_first[component + 1]; i++) {
        uint32_t slot = plan->task_slot[m->comp_tasks[i]];
        if (slot != SL_SCHED_NONE && slot >= plan->kept_count) {
            count_one(pool, pool->member_of_slot[slot - plan->kept_count], members, groups);
        }
    }
}

/* Bars supervisors where a kept worker has a task of a component on different nodes. */
static void
bar_kept(struct sl_sched_pool *pool, uint32_t component)
{
    const struct sl_sched_plan *plan = pool->plan;
    const struct sl_sched_model *m = plan->model;
    for (uint32_t i = m->comp_first[component];
         m->is_spread[component] && i < m->comp_first[component + 1]; i++) {
        uint32_t slot = plan->task_slot[m->comp_tasks[i]];
        if (slot != SL_SCHED_NONE && slot < plan->kept_count) {
            uint32_t sup = plan->slots[slot].sup;
            if (sup != SL_SCHED_NONE && pool->group_of_sup[sup] != SL_SCHED_NONE) {
                pool->is_barred[pool->group_of_sup[sup]] = true;
                touch_group(pool, pool->group_of_sup[sup]);
            }
        }
    }
}

static void
clear_counts(struct sl_sched_pool *pool)
{
    for (uint32_t i = 0; i < pool->touched_member_count; i++) {
        pool->same[pool->touched_members[i]] = 0;
        pool->related[pool->touched_members[i]] = 0;
    }
    pool->touched_member_count = 0;
    for (uint32_t i = 0; i < pool->touched_group_count; i++) {
        uint32_t group = pool->touched_groups[i];
        pool->group_same[group] = 0;
        pool->group_related[group] = 0;
        pool->is_barred[group] = false;
    }
}

/* Makes the trees right for the groups that are touched, or for all. */
static void
rebuild(struct sl_sched_pool *pool, bool is_all)
{
    uint32_t count = is_all ? pool->group_count : pool->touched_group_count;
    /* Paths of more than an eighth of the leaves meet so often that building all is cheaper. */
    bool is_many = is_all || count > pool->group_count / 8;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t group = is_all ? i : pool->touched_groups[i];
        build_group(pool, group);
        pool->group_tree[pool->group_count + group] = group_winner(pool, group);
    }
    if (is_many) {
        build_group_tree(pool);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        update_group_tree(pool, pool->touched_groups[i]);
    }
}

void
sl_sched_pool_begin(struct sl_sched_pool *pool, uint32_t component)
{
    if (pool->component == component) {
        return;
    }
    const struct sl_sched_model *m = pool->plan->model;
    bool is_stale = pool->component == SL_SCHED_NONE;
    clear_counts(pool);
    /* The groups of before stay in the list: their trees change, too. */
    uint32_t before = pool->touched_group_count;
    count_component(pool, component, pool->same, pool->group_same);
    pool->is_self_related = false;
    for (uint32_t i = m->rel_first[component];
         !sl_sched_model_is_system(m, component) && i < m->rel_first[component + 1]; i++) {
        count_component(pool, m->rel[i], pool->related, pool->group_related);
        pool->is_self_related |= m->rel[i] == component;
    }
    bar_kept(pool, component);
    pool->component = component;
    rebuild(pool, is_stale);
    /* What only the component before had touched is clean now. */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pool->touched_group_count; i++) {
        uint32_t group = pool->touched_groups[i];
        bool is_clean = i < before && pool->group_same[group] == 0 &&
                        pool->group_related[group] == 0 && !pool->is_barred[group];
        if (is_clean) {
            pool->is_touched[group] = false;
        } else {
            pool->touched_groups[kept++] = group;
        }
    }
    pool->touched_group_count = kept;
}

uint32_t
sl_sched_pool_choose(const struct sl_sched_pool *pool)
{
    return pool->group_count > 0 ? pool->group_tree[1] : SL_SCHED_NONE;
}

uint32_t
sl_sched_pool_choose_elsewhere(const struct sl_sched_pool *pool)
{
    uint32_t best = SL_SCHED_NONE;
    for (uint32_t i = 0; i < pool->count; i++) {
        uint32_t g = pool->group[i];
        if (!pool->is_barred[g] && pool->group_same[g] == 0 &&
            !pool->plan->slots[pool->slot[i]].is_lone) {
            best = better_overall(pool, best, i);
        }
    }
    return best;
}

bool
sl_sched_pool_has_component(const struct sl_sched_pool *pool, uint32_t member)
{
    return pool->group_same[pool->group[member]] > 0;
}

static void
give(struct sl_sched_pool *pool, uint32_t member, uint32_t task)
{
    sl_sched_plan_give(pool->plan, pool->slot[member], task);
    pool->size[member]++;
    pool->group_size[pool->group[member]]++;
}

void
sl_sched_pool_add(struct sl_sched_pool *pool, uint32_t member, uint32_t task)
{
    sl_assert_eq(pool->plan->model->task_component[task], pool->component);
    give(pool, member, task);
    count_one(pool, member, pool->same, pool->group_same);
    if (pool->is_self_related) {
        count_one(pool, member, pool->related, pool->group_related);
    }
    update_trees(pool, member);
}

void
sl_sched_pool_keep(struct sl_sched_pool *pool, uint32_t member, uint32_t task)
{
    pool->component = SL_SCHED_NONE;
    give(pool, member, task);
}

void
sl_sched_pool_leave(struct sl_sched_pool *pool, uint32_t member)
{
    sl_assert(pool->is_open[member]);
    pool->is_open[member] = false;
    pool->open_count--;
    if (pool->component != SL_SCHED_NONE) {
        update_trees(pool, member);
    }
}

/* The first such member; `is_blank`: it must not go on from a previous worker. */
static uint32_t
choose_empty(const struct sl_sched_pool *pool, bool is_blank)
{
    uint32_t best = SL_SCHED_NONE;
    uint32_t best_members = 0;
    for (uint32_t i = 0; i < pool->count; i++) {
        uint32_t g = pool->group[i];
        uint32_t members = pool->first[g + 1] - pool->first[g];
        if (pool->is_open[i] && pool->size[i] == 0 && members > best_members &&
            !(is_blank && pool->plan->slots[pool->slot[i]].old != SL_SCHED_NONE)) {
            best = i;
            best_members = members;
        }
    }
    return best;
}

uint32_t
sl_sched_pool_choose_lone(const struct sl_sched_pool *pool)
{
    uint32_t blank = choose_empty(pool, true);
    return blank != SL_SCHED_NONE ? blank : choose_empty(pool, false);
}
