#include "scheduling/even.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "scheduling/balanced.h"
#include "scheduling/place.h"
#include "scheduling/steps.h"

struct free_group {
    uint32_t room;
    uint32_t sup;
};

static int
compare_group(const void *a, const void *b)
{
    const struct free_group *left = a;
    const struct free_group *right = b;
    if (left->room != right->room) {
        return left->room > right->room ? -1 : 1;
    }
    return (left->sup > right->sup) - (left->sup < right->sup);
}

uint32_t
sl_sched_even_sort_slots(const struct sl_sched_model *m, struct sl_sched_free_slot *slots,
                         uint32_t capacity)
{
    const struct sl_sched_request *r = m->request;
    struct free_group *groups = sl_calloc(m->sup_count + 1, sizeof(*groups));
    uint32_t *cursor = sl_calloc(m->sup_count + 1, sizeof(uint32_t));
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->sup_count; i++) {
        uint32_t room = sl_sched_sup_room(&m->sups[i], r->worker_cpu, r->worker_ram);
        if (m->sups[i].is_usable && room > 0) {
            groups[count++] = (struct free_group){.room = room, .sup = i};
        }
    }
    qsort(groups, count, sizeof(*groups), compare_group);
    uint32_t total = 0;
    /* Groups are sorted by room, so those with a slot in this round are a prefix. */
    for (uint32_t round = 0; count > 0; round++) {
        while (count > 0 && groups[count - 1].room <= round) {
            count--;
        }
        for (uint32_t g = 0; g < count; g++) {
            const struct sl_sched_sup *sup = &m->sups[groups[g].sup];
            while (sup->taken[cursor[g]]) {
                cursor[g]++;
            }
            if (total < capacity) {
                slots[total] = (struct sl_sched_free_slot){
                    .sup = groups[g].sup,
                    .port = sup->ports[cursor[g]],
                };
            }
            cursor[g]++;
            total++;
        }
    }
    sl_free(groups);
    sl_free(cursor);
    return total;
}

struct sl_sched_division
sl_sched_even_divide(uint32_t total, uint32_t pieces)
{
    struct sl_sched_division d = {0};
    if (pieces > 0) {
        d.size = total / pieces;
        d.large_count = total % pieces;
        d.small_count = pieces - d.large_count;
    }
    return d;
}

bool
sl_sched_even_needs_scheduling(const struct sl_sched_model *m, uint32_t workers)
{
    uint32_t assigned = 0;
    for (uint32_t i = 0; i < m->old_count; i++) {
        assigned += m->olds[i].task_count > 0;
    }
    for (uint32_t t = 0; t < m->task_count; t++) {
        if (m->task_old[t] == SL_SCHED_NONE) {
            return true;
        }
    }
    return assigned < workers;
}

struct even {
    struct sl_sched_model model;
    struct sl_sched_plan plan;
    int mode;
    /* Only when the request says so: Storm knows no topology master. */
    bool is_master_alone;
    uint32_t wanted;
    bool *need;
};

static bool
is_lone(const struct even *e, uint32_t task)
{
    return e->is_master_alone && task == e->model.master;
}

/* Workers with tasks of their own that the plan has, a lone master's left out. */
static uint32_t
count_alive(const struct even *e)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->plan.count; i++) {
        n += e->plan.slots[i].task_count > 0 && !e->plan.slots[i].is_lone;
    }
    return n;
}

static uint32_t
count_unassigned(const struct even *e)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < e->model.task_count; t++) {
        n += e->plan.task_slot[t] == SL_SCHED_NONE && !is_lone(e, t);
    }
    return n;
}

static uint32_t
count_free(const struct even *e)
{
    uint32_t free = sl_sched_even_sort_slots(&e->model, NULL, 0);
    uint32_t reserve = e->model.request->reserve_workers;
    return free > reserve ? free - reserve : 0;
}

static uint32_t
smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* An old worker goes on with all its tasks; a lone master is left out or has it alone. */
static void
keep_old(struct even *e, uint32_t old)
{
    struct sl_sched_model *m = &e->model;
    const struct sl_sched_old *o = &m->olds[old];
    uint32_t slot = sl_sched_place_resume(&e->plan, old);
    for (uint32_t k = 0; k < o->task_count; k++) {
        uint32_t t = m->old_tasks[o->first_task + k];
        if (!is_lone(e, t) || o->task_count == 1) {
            sl_sched_plan_give(&e->plan, slot, t);
            e->plan.slots[slot].is_lone = is_lone(e, t);
        }
    }
}

/*
 * Mode keep, Storm's DefaultScheduler: workers that live stay as they are when nothing changed;
 * else those whose size has a place in the division of all tasks over the slots to use.
 */
static void
keep_alive(struct even *e)
{
    struct sl_sched_model *m = &e->model;
    uint32_t alive = 0;
    uint32_t alive_tasks = 0;
    uint32_t tasks = m->task_count - e->is_master_alone;
    for (uint32_t i = 0; i < m->old_count; i++) {
        if (sl_sched_place_can_resume(&e->plan, i)) {
            alive++;
            alive_tasks += m->olds[i].task_count;
        }
    }
    alive += count_alive(e);
    uint32_t use = smaller(e->wanted, count_free(e));
    bool is_changed = use > alive || alive_tasks < m->task_count;
    struct sl_sched_division quota = sl_sched_even_divide(tasks, use);
    for (uint32_t i = 0; i < m->old_count; i++) {
        const struct sl_sched_old *old = &m->olds[i];
        if (!sl_sched_place_can_resume(&e->plan, i)) {
            continue;
        }
        bool is_master_here = e->is_master_alone && m->task_old[m->master] == i;
        uint32_t size = old->task_count - is_master_here;
        bool is_fitting = !is_changed || size == 0;
        if (!is_fitting && size == quota.size && quota.small_count > 0) {
            quota.small_count--;
            is_fitting = true;
        } else if (!is_fitting && size == quota.size + 1 && quota.large_count > 0) {
            quota.large_count--;
            is_fitting = true;
        }
        if (is_fitting) {
            keep_old(e, i);
        }
    }
}

/* Deals the unassigned tasks by id over the first slots in Storm's order, one each in turn. */
static int
deal_new(struct even *e)
{
    struct sl_sched_model *m = &e->model;
    uint32_t unassigned = count_unassigned(e);
    uint32_t alive = count_alive(e);
    bool is_master_open = e->is_master_alone && e->plan.task_slot[m->master] == SL_SCHED_NONE;
    uint32_t free = count_free(e);
    uint32_t use = smaller(e->wanted, free + alive);
    uint32_t count = use > alive ? use - alive : 0;
    if (unassigned > 0 && count == 0 && free > 0) {
        count = 1;
    }
    count = smaller(count, unassigned);
    if (is_master_open && count == free && count > 1) {
        count--;
    }
    if ((unassigned > 0 && count == 0) || count + is_master_open > free) {
        return sl_err_set(SL_EUNSATISFIABLE,
                          "not enough slots: %u tasks need a worker, free %u, reserved %u",
                          unassigned + is_master_open, free, m->request->reserve_workers);
    }
    struct sl_sched_free_slot *slots =
        sl_arena_calloc(&m->arena, count + is_master_open + 1, sizeof(*slots));
    sl_sched_even_sort_slots(m, slots, count + is_master_open);
    uint32_t first = e->plan.count;
    for (uint32_t i = 0; i < count + is_master_open; i++) {
        uint32_t slot = sl_sched_plan_add(&e->plan, m->request->worker_cpu, m->request->worker_ram);
        sl_sched_plan_put(&e->plan, slot, slots[i].sup, slots[i].port);
    }
    if (is_master_open) {
        sl_sched_plan_give(&e->plan, first + count, m->master);
        e->plan.slots[first + count].is_lone = true;
    }
    uint32_t turn = 0;
    for (uint32_t t = 0; t < m->task_count; t++) {
        if (e->plan.task_slot[t] == SL_SCHED_NONE) {
            sl_sched_plan_give(&e->plan, first + turn, t);
            turn = turn + 1 < count ? turn + 1 : 0;
        }
    }
    return 0;
}

static int
even_run(struct even *e, const struct sl_sched_request *request, struct sl_sched_result *result)
{
    struct sl_sched_model *m = &e->model;
    e->mode = request->mode;
    int rc = sl_sched_model_create(m, request);
    if (rc != 0) {
        return rc;
    }
    sl_sched_refine_dead(m);
    e->is_master_alone =
        request->master_alone == SL_SCHED_YES && m->master != SL_SCHED_NONE && m->task_count > 1;
    uint32_t tasks = m->task_count - e->is_master_alone;
    e->wanted = request->workers != 0 && request->workers < tasks ? request->workers : tasks;
    e->need = sl_arena_calloc(&m->arena, m->task_count + 1, sizeof(bool));
    uint32_t need_count = sl_sched_need(m, e->mode, e->need);
    sl_sched_mark_ports(m, e->mode);
    sl_sched_plan_create(&e->plan, m, m->old_count + m->task_count + 2);
    sl_sched_keep(&e->plan, e->mode, e->need);
    if (need_count == 0) {
        return sl_err_set(SL_ECONFLICT, "nothing needs assigning: %u workers run all %u tasks",
                          e->plan.kept_count, m->task_count);
    }
    if (e->mode == SL_SCHED_KEEP || (e->mode == SL_SCHED_NEW && request->use_old_assignment)) {
        keep_alive(e);
    }
    rc = deal_new(e);
    return rc != 0 ? rc : sl_sched_plan_finish(&e->plan, result);
}

int
sl_sched_even(const struct sl_sched_request *request, struct sl_sched_result *result)
{
    if (request->user_worker_count > 0) {
        return sl_err_set(SL_EUNSATISFIABLE,
                          "the scheduler even knows no user workers, %u are asked for; balanced "
                          "and round_robin do",
                          request->user_worker_count);
    }
    if (request->mode == SL_SCHED_MINIMAL) {
        const struct sl_sched_request plain = sl_sched_without_auto(request);
        return sl_sched_balanced(&plain, result);
    }
    struct even even = {0};
    int rc = even_run(&even, request, result);
    sl_sched_model_destroy(&even.model);
    return rc;
}
