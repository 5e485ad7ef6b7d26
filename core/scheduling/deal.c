#include "scheduling/deal.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/map.h"

void
sl_sched_deal_create(struct sl_sched_deal *deal, struct sl_sched_plan *plan, const bool *need)
{
    const struct sl_sched_model *m = plan->model;
    deal->plan = plan;
    sl_sched_pool_create(&deal->pool, plan);
    deal->task_num = 0;
    deal->worker_num = deal->pool.count;
    deal->avg = 0;
    deal->left = 0;
    for (uint32_t t = 0; t < m->task_count; t++) {
        bool is_prefilled =
            plan->task_slot[t] != SL_SCHED_NONE && plan->task_slot[t] >= plan->kept_count;
        deal->task_num += is_prefilled || (need[t] && plan->task_slot[t] == SL_SCHED_NONE);
    }
}

static void
set_average(struct sl_sched_deal *deal)
{
    if (deal->worker_num > 0) {
        deal->avg = deal->task_num / deal->worker_num;
        deal->left = deal->task_num % deal->worker_num;
    }
}

/* The member's tasks and the member itself count no more. */
static void
discount(struct sl_sched_deal *deal, uint32_t member)
{
    deal->task_num -= deal->pool.size[member];
    deal->worker_num--;
}

static void
make_lone(struct sl_sched_deal *deal, uint32_t member)
{
    deal->plan->slots[deal->pool.slot[member]].is_lone = true;
    sl_sched_pool_leave(&deal->pool, member);
    discount(deal, member);
}

int
sl_sched_deal_lone_master(struct sl_sched_deal *deal)
{
    struct sl_sched_plan *plan = deal->plan;
    uint32_t master = plan->model->master;
    uint32_t slot = plan->task_slot[master];
    if (slot != SL_SCHED_NONE) {
        /* A user-defined worker has it. */
        if (plan->slots[slot].task_count > 1) {
            return sl_err_set(SL_EUNSATISFIABLE,
                              "the topology master is to be alone, but user worker %u has it with "
                              "other tasks",
                              plan->slots[slot].user + 1);
        }
        make_lone(deal, deal->pool.member_of_slot[slot - plan->kept_count]);
        return 0;
    }
    uint32_t member = sl_sched_pool_choose_lone(&deal->pool);
    if (member == SL_SCHED_NONE) {
        return sl_err_set(SL_EUNSATISFIABLE,
                          "the topology master is to be alone, but none of %u workers is empty",
                          deal->pool.count);
    }
    sl_sched_pool_keep(&deal->pool, member, master);
    make_lone(deal, member);
    return 0;
}

bool
sl_sched_deal_keep_master(struct sl_sched_deal *deal)
{
    struct sl_sched_plan *plan = deal->plan;
    uint32_t master = plan->model->master;
    uint32_t old = plan->model->task_old[master];
    if (plan->task_slot[master] != SL_SCHED_NONE || old == SL_SCHED_NONE) {
        return false;
    }
    for (uint32_t i = 0; i < deal->pool.count; i++) {
        const struct sl_sched_slot *slot = &plan->slots[deal->pool.slot[i]];
        if (slot->old == old && slot->task_count == 0) {
            sl_sched_pool_keep(&deal->pool, i, master);
            make_lone(deal, i);
            return true;
        }
    }
    return false;
}

/*
 * After a member got a task (or had some from the start): it leaves when it has its share. With
 * left > 0 that is avg + 1; when the last of those is taken, all with avg leave too. Members that
 * leave are also discounted when `is_discounting`.
 */
static void
retire(struct sl_sched_deal *deal, uint32_t member, bool is_discounting)
{
    struct sl_sched_pool *pool = &deal->pool;
    uint32_t size = pool->size[member];
    if (deal->left <= 0) {
        if (size >= deal->avg) {
            sl_sched_pool_leave(pool, member);
            if (is_discounting) {
                discount(deal, member);
            }
        }
        return;
    }
    if (size <= deal->avg) {
        return;
    }
    sl_sched_pool_leave(pool, member);
    if (is_discounting) {
        discount(deal, member);
    }
    deal->left -= size - deal->avg;
    for (uint32_t i = 0; deal->left <= 0 && deal->avg != 0 && i < pool->count; i++) {
        if (pool->is_open[i] && pool->size[i] == deal->avg) {
            sl_sched_pool_leave(pool, i);
            if (is_discounting) {
                discount(deal, i);
            }
        }
    }
}

void
sl_sched_deal_open(struct sl_sched_deal *deal)
{
    struct sl_sched_pool *pool = &deal->pool;
    set_average(deal);
    bool is_changed = false;
    for (uint32_t i = 0; i < pool->count; i++) {
        if (pool->is_open[i] && pool->size[i] > 0) {
            retire(deal, i, true);
            is_changed = true;
        }
    }
    if (is_changed) {
        set_average(deal);
    }
}

/* ---- tasks that stay --------------------------------------------------------------------------
 */

/* Which (supervisor, component on different nodes) pairs exist: such a component has at most one
 * task there. */
struct spread_seen {
    struct sl_map_u64 pairs;
};

static uint64_t
pair_key(const struct sl_sched_plan *plan, uint32_t slot, uint32_t task)
{
    return ((uint64_t)plan->slots[slot].sup << 32) | plan->model->task_component[task];
}

static void
seen_create(struct spread_seen *seen, const struct sl_sched_plan *plan)
{
    const struct sl_sched_model *m = plan->model;
    sl_map_u64_create(&seen->pairs);
    for (uint32_t t = 0; m->has_spread && t < m->task_count; t++) {
        if (m->is_spread[m->task_component[t]] && plan->task_slot[t] != SL_SCHED_NONE) {
            sl_map_u64_put(&seen->pairs, pair_key(plan, plan->task_slot[t], t), 1);
        }
    }
}

/* True when the task may stay in the slot; it then counts as there. */
static bool
seen_admit(struct spread_seen *seen, const struct sl_sched_plan *plan, uint32_t slot, uint32_t task)
{
    const struct sl_sched_model *m = plan->model;
    return !m->is_spread[m->task_component[task]] ||
           sl_map_u64_put(&seen->pairs, pair_key(plan, slot, task), 1);
}

/* True when the member goes on from the old worker of the topology master. */
static bool
is_master_worker(const struct sl_sched_deal *deal, uint32_t member)
{
    const struct sl_sched_model *m = deal->plan->model;
    return m->master != SL_SCHED_NONE && m->task_old[m->master] != SL_SCHED_NONE &&
           deal->plan->slots[deal->pool.slot[member]].old == m->task_old[m->master];
}

void
sl_sched_deal_keep(struct sl_sched_deal *deal, const bool *need)
{
    struct sl_sched_plan *plan = deal->plan;
    const struct sl_sched_model *m = plan->model;
    struct sl_sched_pool *pool = &deal->pool;
    struct spread_seen seen;
    seen_create(&seen, plan);
    for (uint32_t i = 0; i < pool->count; i++) {
        const struct sl_sched_slot *slot = &plan->slots[pool->slot[i]];
        if (slot->old == SL_SCHED_NONE || slot->is_lone) {
            continue;
        }
        const struct sl_sched_old *old = &m->olds[slot->old];
        for (uint32_t k = 0; k < old->task_count; k++) {
            uint32_t t = m->old_tasks[old->first_task + k];
            if (need[t] && plan->task_slot[t] == SL_SCHED_NONE &&
                seen_admit(&seen, plan, pool->slot[i], t)) {
                sl_sched_pool_keep(pool, i, t);
            }
        }
    }
    sl_map_u64_destroy(&seen.pairs);
    set_average(deal);
    bool is_changed = true;
    while (is_changed) {
        is_changed = false;
        uint32_t full = deal->left > 0 ? deal->avg + 1 : deal->avg;
        for (uint32_t i = 0; i < pool->count; i++) {
            if (pool->is_open[i] && plan->slots[pool->slot[i]].old != SL_SCHED_NONE &&
                pool->size[i] > 0 && pool->size[i] >= full && !is_master_worker(deal, i)) {
                sl_sched_pool_leave(pool, i);
                discount(deal, i);
                is_changed = true;
            }
        }
        if (is_changed) {
            set_average(deal);
        }
    }
}

/* A task that may stay, and the how-many-th of its component in the worker it is. */
struct stay {
    uint32_t rank;
    uint32_t task;
};

static int
compare_stay(const void *a, const void *b)
{
    const struct stay *left = a;
    const struct stay *right = b;
    if (left->rank != right->rank) {
        return left->rank > right->rank ? 1 : -1;
    }
    return (left->task > right->task) - (left->task < right->task);
}

/*
 * The tasks that may stay in the member, the most useful first: of each component one, then of each
 * a second .. so that what has to leave is of the components that crowd there. `seen_at` and
 * `rank_of` are per component: the member seen last, and its count there.
 */
static uint32_t
list_stays(const struct sl_sched_deal *deal, const bool *need, uint32_t member, uint32_t *seen_at,
           uint32_t *rank_of, struct stay *stays)
{
    const struct sl_sched_plan *plan = deal->plan;
    const struct sl_sched_model *m = plan->model;
    const struct sl_sched_slot *slot = &plan->slots[deal->pool.slot[member]];
    uint32_t n = 0;
    if (slot->old == SL_SCHED_NONE || slot->is_lone || !deal->pool.is_open[member]) {
        return 0;
    }
    const struct sl_sched_old *old = &m->olds[slot->old];
    for (uint32_t k = 0; k < old->task_count; k++) {
        uint32_t t = m->old_tasks[old->first_task + k];
        uint32_t c = m->task_component[t];
        if (!need[t] || plan->task_slot[t] != SL_SCHED_NONE) {
            continue;
        }
        if (seen_at[c] != member + 1) {
            seen_at[c] = member + 1;
            rank_of[c] = 0;
        }
        stays[n++] = (struct stay){.rank = rank_of[c]++, .task = t};
    }
    qsort(stays, n, sizeof(*stays), compare_stay);
    return n;
}

void
sl_sched_deal_keep_within(struct sl_sched_deal *deal, const bool *need)
{
    struct sl_sched_plan *plan = deal->plan;
    const struct sl_sched_model *m = plan->model;
    struct sl_sched_pool *pool = &deal->pool;
    struct sl_arena *arena = &plan->model->arena;
    uint32_t *seen_at = sl_arena_calloc(arena, m->component_count + 1, sizeof(uint32_t));
    uint32_t *rank_of = sl_arena_calloc(arena, m->component_count + 1, sizeof(uint32_t));
    struct stay *stays = sl_arena_calloc(arena, m->task_count + 1, sizeof(*stays));
    struct spread_seen seen;
    seen_create(&seen, plan);
    int64_t extra = deal->left;
    for (uint32_t i = 0; i < pool->count; i++) {
        uint32_t n = list_stays(deal, need, i, seen_at, rank_of, stays);
        for (uint32_t k = 0; k < n; k++) {
            if (pool->size[i] > deal->avg || (pool->size[i] == deal->avg && extra <= 0)) {
                break;
            }
            if (seen_admit(&seen, plan, pool->slot[i], stays[k].task)) {
                extra -= pool->size[i] == deal->avg;
                sl_sched_pool_keep(pool, i, stays[k].task);
            }
        }
    }
    sl_map_u64_destroy(&seen.pairs);
    for (uint32_t i = 0; i < pool->count; i++) {
        if (pool->is_open[i] && pool->size[i] > deal->avg) {
            sl_sched_pool_leave(pool, i);
        }
    }
    deal->left = extra;
    for (uint32_t i = 0; deal->left <= 0 && i < pool->count; i++) {
        if (pool->is_open[i] && pool->size[i] >= deal->avg) {
            sl_sched_pool_leave(pool, i);
        }
    }
}

/* ---- tasks that need a worker -----------------------------------------------------------------
 */

static int
deal_task(struct sl_sched_deal *deal, uint32_t task)
{
    const struct sl_sched_model *m = deal->plan->model;
    struct sl_sched_pool *pool = &deal->pool;
    uint32_t component = m->task_component[task];
    sl_sched_pool_begin(pool, component);
    uint32_t member = sl_sched_pool_choose(pool);
    if (m->is_spread[component] &&
        (member == SL_SCHED_NONE || sl_sched_pool_has_component(pool, member))) {
        /* Balance gives way: a worker that had its share may be the only one elsewhere. */
        member = sl_sched_pool_choose_elsewhere(pool);
        if (member == SL_SCHED_NONE) {
            return sl_err_set(SL_EUNSATISFIABLE,
                              "not enough supervisors: the %u tasks of %s must run on different "
                              "nodes; supervisors with workers: %u",
                              m->comp_first[component + 1] - m->comp_first[component],
                              sl_sched_model_name(m, component), pool->group_count);
        }
    }
    if (member == SL_SCHED_NONE) {
        return sl_err_set(SL_EUNSATISFIABLE, "no worker is left for task %u of %s",
                          m->task_ids[task], sl_sched_model_name(m, component));
    }
    sl_sched_pool_add(pool, member, task);
    if (pool->is_open[member]) {
        retire(deal, member, false);
    }
    return 0;
}

enum task_class {
    CLASS_SPREAD,
    CLASS_USER,
    CLASS_SYSTEM,
    CLASS_COUNT,
};

static int
class_of(const struct sl_sched_model *m, uint32_t component)
{
    return m->is_spread[component]                  ? CLASS_SPREAD
           : sl_sched_model_is_system(m, component) ? CLASS_SYSTEM
                                                    : CLASS_USER;
}

int
sl_sched_deal_assign(struct sl_sched_deal *deal, const bool *need)
{
    const struct sl_sched_model *m = deal->plan->model;
    for (int class = CLASS_SPREAD; class < CLASS_COUNT; class ++) {
        for (uint32_t t = 0; t < m->task_count; t++) {
            if (!need[t] || deal->plan->task_slot[t] != SL_SCHED_NONE ||
                class_of(m, m->task_component[t]) != class) {
                continue;
            }
            int rc = deal_task(deal, t);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* True when slot a comes before slot b: fewer tasks, then made earlier. */
static bool
is_before(const struct sl_sched_plan *plan, uint32_t a, uint32_t b)
{
    uint32_t left = plan->slots[a].task_count;
    uint32_t right = plan->slots[b].task_count;
    return left != right ? left < right : a < b;
}

static void
sift_down(const struct sl_sched_plan *plan, uint32_t *heap, uint32_t count, uint32_t at)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= count) {
            return;
        }
        if (child + 1 < count && is_before(plan, heap[child + 1], heap[child])) {
            child++;
        }
        if (!is_before(plan, heap[child], heap[at])) {
            return;
        }
        uint32_t swapped = heap[at];
        heap[at] = heap[child];
        heap[child] = swapped;
        at = child;
    }
}

int
sl_sched_deal_in_turn(struct sl_sched_deal *deal, const bool *need)
{
    struct sl_sched_plan *plan = deal->plan;
    const struct sl_sched_model *m = plan->model;
    uint32_t *heap = sl_arena_calloc(&plan->model->arena, deal->pool.count + 1, sizeof(uint32_t));
    uint32_t count = 0;
    for (uint32_t i = plan->kept_count; i < plan->count; i++) {
        if (!plan->slots[i].is_lone) {
            heap[count++] = i;
        }
    }
    for (uint32_t i = count / 2; i > 0; i--) {
        sift_down(plan, heap, count, i - 1);
    }
    for (uint32_t t = 0; t < m->task_count; t++) {
        if (need[t] && plan->task_slot[t] == SL_SCHED_NONE) {
            if (count == 0) {
                return sl_err_set(SL_EUNSATISFIABLE, "no worker is left for task %u",
                                  m->task_ids[t]);
            }
            sl_sched_plan_give(plan, heap[0], t);
            sift_down(plan, heap, count, 0);
        }
    }
    return 0;
}
