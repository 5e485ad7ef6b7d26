/*
 * The schedulers `balanced` and `round_robin`, which differ in where blank workers go and in how
 * tasks are dealt. `balanced` deviates from JStorm 2.4 where that is flawed: dead wins over
 * unstopped; user-defined workers count once and hold in every mode; a pin that can not be honoured
 * and more user workers than workers are refused; an old worker whose slot is gone makes room for
 * the next; full workers are discounted round by round; ties end at (supervisor id, port); the
 * topology master is alone in mode keep too when it should be; and mode minimal is new.
 */
#include "scheduling/balanced.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "scheduling/deal.h"
#include "scheduling/place.h"
#include "scheduling/steps.h"

struct attempt {
    struct sl_sched_model model;
    struct sl_sched_plan plan;
    int mode;
    int spread;
    /* Tasks go to workers in turn instead of by the selectors. */
    bool is_in_turn;
    struct sl_sched_worker_count workers;
    uint32_t alloc;
    bool *need;
    /* Mode minimal: others stay in a lone master's old worker, so the master leaves it. */
    bool is_master_away;
    /* The failure was about components on different nodes, so another spread may help. */
    bool is_spread_failure;
};

/* ---- which old workers go on ------------------------------------------------------------------
 */

static bool
is_master_to_place(const struct attempt *a)
{
    uint32_t master = a->model.master;
    return a->workers.is_master_alone && a->need[master] &&
           a->plan.task_slot[master] == SL_SCHED_NONE;
}

/* Flags the old workers that slots of the plan go on from. */
static bool *
flag_resumed(struct attempt *a)
{
    bool *flags = sl_arena_calloc(&a->model.arena, a->model.old_count + 1, sizeof(bool));
    for (uint32_t i = 0; i < a->plan.count; i++) {
        if (a->plan.slots[i].old != SL_SCHED_NONE) {
            flags[a->plan.slots[i].old] = true;
        }
    }
    return flags;
}

static uint32_t
slots_left(const struct attempt *a)
{
    return a->alloc - (a->plan.count - a->plan.kept_count);
}

/*
 * Mode keep: the first old workers by (supervisor id, port) go on, empty for now. A lone master's
 * old worker comes before all; when it can not go on, one slot stays blank for the master.
 */
static void
resume_first(struct attempt *a)
{
    struct sl_sched_model *m = &a->model;
    bool *is_resumed = flag_resumed(a);
    uint32_t blank = 0;
    if (is_master_to_place(a) && slots_left(a) > 0) {
        uint32_t old = m->task_old[m->master];
        if (old != SL_SCHED_NONE && !is_resumed[old] && sl_sched_place_can_resume(&a->plan, old)) {
            sl_sched_place_resume(&a->plan, old);
            is_resumed[old] = true;
        } else {
            blank = 1;
        }
    }
    for (uint32_t i = 0; i < m->old_count && slots_left(a) > blank; i++) {
        if (!is_resumed[i] && sl_sched_place_can_resume(&a->plan, i)) {
            sl_sched_place_resume(&a->plan, i);
        }
    }
}

/*
 * use_old_assignment: old workers of which every task needs a place and is free go on with all of
 * them. When there are more of those than slots, none does. The master stays out of it unless it
 * may have company or had none.
 */
static void
resume_whole(struct attempt *a)
{
    struct sl_sched_model *m = &a->model;
    bool *is_resumed = flag_resumed(a);
    bool *is_right = sl_arena_calloc(&m->arena, m->old_count + 1, sizeof(bool));
    bool is_master_placed = !is_master_to_place(a);
    uint32_t right = 0;
    for (uint32_t i = 0; i < m->old_count; i++) {
        const struct sl_sched_old *old = &m->olds[i];
        is_right[i] = !is_resumed[i] && sl_sched_place_can_resume(&a->plan, i);
        for (uint32_t k = 0; is_right[i] && k < old->task_count; k++) {
            uint32_t t = m->old_tasks[old->first_task + k];
            is_right[i] = a->need[t] && a->plan.task_slot[t] == SL_SCHED_NONE;
        }
        right += is_right[i];
        if (is_right[i] && old->task_count == 1 && m->old_tasks[old->first_task] == m->master) {
            is_master_placed = true;
        }
    }
    if (right + !is_master_placed > slots_left(a)) {
        return;
    }
    bool is_alone = a->workers.is_master_alone;
    for (uint32_t i = 0; i < m->old_count; i++) {
        const struct sl_sched_old *old = &m->olds[i];
        if (!is_right[i] || !sl_sched_place_can_resume(&a->plan, i)) {
            continue;
        }
        uint32_t slot = sl_sched_place_resume(&a->plan, i);
        for (uint32_t k = 0; k < old->task_count; k++) {
            uint32_t t = m->old_tasks[old->first_task + k];
            if (t != m->master || !is_alone || old->task_count == 1) {
                sl_sched_plan_give(&a->plan, slot, t);
            }
        }
    }
}

/* An old worker that may go on in mode minimal. */
struct candidate {
    uint32_t old;
    uint32_t size;
    bool is_chosen;
};

static int
compare_candidate(const void *a, const void *b)
{
    const struct candidate *left = a;
    const struct candidate *right = b;
    if (left->size != right->size) {
        return left->size > right->size ? -1 : 1;
    }
    return (left->old > right->old) - (left->old < right->old);
}

/*
 * Chooses at most `limit` candidates, the largest first, as many on a supervisor as it has room
 * for, and returns how many tasks can then stay when `tasks` are spread over `workers` within one.
 * Sorting by size makes the number of chosen candidates above every size the largest possible, so
 * the sum is too. `barred` is left out; `room` is scratch.
 */
static uint64_t
choose_largest(const struct attempt *a, struct candidate *list, uint32_t count, uint32_t limit,
               uint32_t tasks, uint32_t workers, uint32_t barred, uint32_t *room)
{
    const struct sl_sched_model *m = &a->model;
    const struct sl_sched_request *r = m->request;
    for (uint32_t i = 0; i < m->sup_count; i++) {
        room[i] = sl_sched_sup_room(&m->sups[i], r->worker_cpu, r->worker_ram);
    }
    if (barred != SL_SCHED_NONE) {
        room[m->olds[barred].sup]--;
    }
    uint32_t avg = workers > 0 ? tasks / workers : 0;
    uint32_t extra = workers > 0 ? tasks % workers : 0;
    uint64_t staying = 0;
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t sup = m->olds[list[i].old].sup;
        list[i].is_chosen =
            chosen < limit && list[i].size > 0 && list[i].old != barred && room[sup] > 0;
        if (!list[i].is_chosen) {
            continue;
        }
        chosen++;
        room[sup]--;
        staying += list[i].size < avg ? list[i].size : avg;
        if (list[i].size > avg && extra > 0) {
            extra--;
            staying++;
        }
    }
    return staying;
}

/* Mode minimal: the old workers that let most tasks stay go on, empty for now. */
static void
resume_largest(struct attempt *a)
{
    struct sl_sched_model *m = &a->model;
    bool *is_resumed = flag_resumed(a);
    uint32_t *room = sl_arena_calloc(&m->arena, m->sup_count + 1, sizeof(uint32_t));
    struct candidate *list = sl_arena_calloc(&m->arena, m->old_count + 1, sizeof(*list));
    bool is_alone = is_master_to_place(a);
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->old_count; i++) {
        const struct sl_sched_old *old = &m->olds[i];
        if (is_resumed[i] || !sl_sched_place_can_resume(&a->plan, i)) {
            continue;
        }
        list[count] = (struct candidate){.old = i};
        for (uint32_t k = 0; k < old->task_count; k++) {
            uint32_t t = m->old_tasks[old->first_task + k];
            list[count].size += a->need[t] && a->plan.task_slot[t] == SL_SCHED_NONE &&
                                !(is_alone && t == m->master);
        }
        count++;
    }
    qsort(list, count, sizeof(*list), compare_candidate);
    uint32_t tasks = 0;
    for (uint32_t t = 0; t < m->task_count; t++) {
        tasks += a->need[t] && !(is_alone && t == m->master);
    }
    uint32_t limit = slots_left(a);
    uint32_t home = is_alone ? m->task_old[m->master] : SL_SCHED_NONE;
    bool is_home_free = home != SL_SCHED_NONE && !is_resumed[home] && limit > 0 &&
                        sl_sched_place_can_resume(&a->plan, home);
    if (is_alone && limit > 0) {
        limit--;
    }
    uint32_t workers = a->alloc - is_alone;
    /* A lone master either stays, and its old worker is its own, or goes elsewhere. */
    if (is_home_free) {
        uint64_t away = choose_largest(a, list, count, limit, tasks, workers, SL_SCHED_NONE, room);
        uint64_t at_home = choose_largest(a, list, count, limit, tasks, workers, home, room) + 1;
        if (away > at_home) {
            is_home_free = false;
            a->is_master_away = true;
        } else {
            sl_sched_place_resume(&a->plan, home);
        }
    }
    if (!is_home_free) {
        choose_largest(a, list, count, limit, tasks, workers, SL_SCHED_NONE, room);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].is_chosen) {
            sl_sched_place_resume(&a->plan, list[i].old);
        }
    }
}

/* ---- one attempt ------------------------------------------------------------------------------
 */

static int
place_workers(struct attempt *a)
{
    int mode = a->mode;
    int rc = sl_sched_place_check_free(&a->plan, a->alloc);
    if (rc != 0) {
        return rc;
    }
    const struct sl_sched_place_users users = {
        .need = a->need,
        .is_sticky = mode == SL_SCHED_KEEP || mode == SL_SCHED_MINIMAL,
    };
    rc = sl_sched_place_users(&a->plan, a->alloc, &users);
    if (rc != 0) {
        return rc;
    }
    if (mode == SL_SCHED_MINIMAL) {
        resume_largest(a);
    } else if (a->model.request->use_old_assignment) {
        resume_whole(a);
    } else if (mode == SL_SCHED_KEEP) {
        resume_first(a);
    }
    sl_sched_place_pad(&a->plan, a->alloc);
    return sl_sched_place_blanks(&a->plan, a->spread);
}

static int
deal_tasks(struct attempt *a)
{
    struct sl_sched_deal deal;
    bool is_alone = a->workers.is_master_alone && a->need[a->model.master];
    bool is_keeping = a->mode == SL_SCHED_KEEP || a->mode == SL_SCHED_MINIMAL;
    sl_sched_deal_create(&deal, &a->plan, a->need);
    bool may_stay = is_keeping && !a->is_master_away;
    if (is_alone && !(may_stay && sl_sched_deal_keep_master(&deal))) {
        int rc = sl_sched_deal_lone_master(&deal);
        if (rc != 0) {
            return rc;
        }
    }
    sl_sched_deal_open(&deal);
    if (a->mode == SL_SCHED_KEEP) {
        sl_sched_deal_keep(&deal, a->need);
    } else if (a->mode == SL_SCHED_MINIMAL) {
        sl_sched_deal_keep_within(&deal, a->need);
    }
    return a->is_in_turn ? sl_sched_deal_in_turn(&deal, a->need)
                         : sl_sched_deal_assign(&deal, a->need);
}

static int
attempt_run(struct attempt *a, const struct sl_sched_request *request,
            struct sl_sched_result *result)
{
    int rc = sl_sched_model_create(&a->model, request);
    if (rc != 0) {
        return rc;
    }
    struct sl_sched_model *m = &a->model;
    sl_sched_refine_dead(m);
    a->workers = sl_sched_count_workers(m);
    if (a->mode != SL_SCHED_MONITOR && request->user_worker_count > a->workers.total) {
        return sl_err_set(SL_EUNSATISFIABLE, "%u user workers, but only %u workers in all",
                          request->user_worker_count, a->workers.total);
    }
    a->need = sl_arena_calloc(&m->arena, m->task_count + 1, sizeof(bool));
    sl_sched_need(m, a->mode, a->need);
    sl_sched_mark_ports(m, a->mode);
    sl_sched_plan_create(&a->plan, m,
                         m->old_count + a->workers.total + request->user_worker_count + 2);
    sl_sched_keep(&a->plan, a->mode, a->need);
    rc = sl_sched_alloc(&a->plan, a->workers, a->need, &a->alloc);
    if (rc == 0) {
        rc = place_workers(a);
    }
    if (rc == 0) {
        rc = deal_tasks(a);
        if (rc == 0) {
            rc = sl_sched_plan_finish(&a->plan, result);
        }
        a->is_spread_failure = rc == SL_EUNSATISFIABLE && m->has_spread;
    }
    return rc;
}

/* One mode; when components on different nodes do not fit the usual places, wider ones are tried.
 */
static int
balanced_in_mode(const struct sl_sched_request *request, int mode, struct sl_sched_result *result)
{
    struct attempt attempt = {.mode = mode, .spread = SL_SCHED_SPREAD_THEORY};
    int rc = attempt_run(&attempt, request, result);
    sl_sched_model_destroy(&attempt.model);
    if (rc != 0 && attempt.is_spread_failure) {
        struct sl_err first;
        sl_err_move(&first);
        struct attempt wide = {.mode = mode, .spread = SL_SCHED_SPREAD_WIDE};
        rc = attempt_run(&wide, request, result);
        sl_sched_model_destroy(&wide.model);
        if (rc != 0) {
            rc = sl_err_restore(&first);
        }
    }
    return rc;
}

/*
 * Without pins and the like mode minimal is optimal by construction. With them the full re-plan may
 * happen to move less, and then it is the answer.
 */
static int
balanced_minimal(const struct sl_sched_request *request, struct sl_sched_result *result)
{
    int rc = balanced_in_mode(request, SL_SCHED_MINIMAL, result);
    bool is_free = request->user_worker_count == 0 && request->isolation_count == 0 &&
                   request->on_different_nodes_count == 0 && request->unstopped_task_count == 0;
    if (is_free || rc == SL_EINVAL || rc == SL_ECONFLICT || (rc == 0 && result->moved == 0)) {
        return rc;
    }
    struct sl_err first;
    sl_err_move(&first);
    struct sl_sched_result other = {0};
    int other_rc = balanced_in_mode(request, SL_SCHED_REASSIGN, &other);
    if (other_rc == 0 && (rc != 0 || other.moved < result->moved)) {
        sl_sched_result_destroy(result);
        *result = other;
        return 0;
    }
    sl_sched_result_destroy(&other);
    if (rc != 0) {
        rc = sl_err_restore(&first);
    }
    return rc;
}

int
sl_sched_balanced(const struct sl_sched_request *request, struct sl_sched_result *result)
{
    return request->mode == SL_SCHED_MINIMAL ? balanced_minimal(request, result)
                                             : balanced_in_mode(request, request->mode, result);
}

int
sl_sched_round_robin(const struct sl_sched_request *request, struct sl_sched_result *result)
{
    const struct sl_sched_request plain = sl_sched_without_auto(request);
    if (plain.mode == SL_SCHED_MINIMAL) {
        return balanced_minimal(&plain, result);
    }
    struct attempt attempt = {
        .mode = plain.mode,
        .spread = SL_SCHED_SPREAD_TURNS,
        .is_in_turn = true,
    };
    int rc = attempt_run(&attempt, &plain, result);
    sl_sched_model_destroy(&attempt.model);
    return rc;
}

struct sl_sched_request
sl_sched_without_auto(const struct sl_sched_request *request)
{
    struct sl_sched_request plain = *request;
    if (plain.master_alone == SL_SCHED_AUTO) {
        plain.master_alone = SL_SCHED_NO;
    }
    return plain;
}
