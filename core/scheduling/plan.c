#include "scheduling/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"

void
sl_sched_plan_create(struct sl_sched_plan *plan, struct sl_sched_model *model, uint32_t capacity)
{
    plan->model = model;
    plan->slots = sl_arena_calloc(&model->arena, capacity + 1, sizeof(*plan->slots));
    plan->kept_count = 0;
    plan->count = 0;
    plan->task_slot = sl_arena_calloc(&model->arena, model->task_count + 1, sizeof(uint32_t));
    for (uint32_t t = 0; t < model->task_count; t++) {
        plan->task_slot[t] = SL_SCHED_NONE;
    }
}

uint32_t
sl_sched_plan_add(struct sl_sched_plan *plan, double cpu, double ram)
{
    plan->slots[plan->count] = (struct sl_sched_slot){
        .sup = SL_SCHED_NONE,
        .cpu = cpu,
        .ram = ram,
        .user = SL_SCHED_NONE,
        .old = SL_SCHED_NONE,
    };
    return plan->count++;
}

static void
name_slot(struct sl_sched_plan *plan, uint32_t slot, uint32_t sup, uint32_t port)
{
    plan->slots[slot].supervisor = plan->model->sups[sup].id;
    plan->slots[slot].host = plan->model->sups[sup].host;
    plan->slots[slot].sup = sup;
    plan->slots[slot].port = port;
}

void
sl_sched_plan_put(struct sl_sched_plan *plan, uint32_t slot, uint32_t sup, uint32_t port)
{
    struct sl_sched_slot *s = &plan->slots[slot];
    int rc = sl_sched_sup_take(&plan->model->sups[sup], port, s->cpu, s->ram);
    sl_assert_eq(rc, 0);
    name_slot(plan, slot, sup, port);
}

void
sl_sched_plan_put_first(struct sl_sched_plan *plan, uint32_t slot, uint32_t sup)
{
    struct sl_sched_slot *s = &plan->slots[slot];
    name_slot(plan, slot, sup, sl_sched_sup_take_first(&plan->model->sups[sup], s->cpu, s->ram));
}

void
sl_sched_plan_give(struct sl_sched_plan *plan, uint32_t slot, uint32_t task)
{
    sl_assert_eq(plan->task_slot[task], SL_SCHED_NONE);
    plan->task_slot[task] = slot;
    plan->slots[slot].task_count++;
}

struct slot_ref {
    const struct sl_sched_slot *slot;
    uint32_t index;
};

static int
compare_ref(const void *a, const void *b)
{
    const struct sl_sched_slot *left = ((const struct slot_ref *)a)->slot;
    const struct sl_sched_slot *right = ((const struct slot_ref *)b)->slot;
    int order = strcmp(left->supervisor, right->supervisor);
    return order != 0 ? order : (left->port > right->port) - (left->port < right->port);
}

/* No two tasks of such a component on one supervisor. */
static int
finish_check_spread(const struct sl_sched_plan *plan)
{
    const struct sl_sched_model *m = plan->model;
    if (!m->has_spread) {
        return 0;
    }
    uint32_t *seen = sl_calloc(m->sup_count + 1, sizeof(uint32_t));
    int rc = 0;
    for (uint32_t c = 0; rc == 0 && c < m->component_count; c++) {
        for (uint32_t i = m->comp_first[c]; m->is_spread[c] && i < m->comp_first[c + 1]; i++) {
            const struct sl_sched_slot *slot = &plan->slots[plan->task_slot[m->comp_tasks[i]]];
            if (slot->sup == SL_SCHED_NONE) {
                continue;
            }
            if (seen[slot->sup] == c + 1) {
                rc = sl_err_set(SL_EUNSATISFIABLE,
                                "%s must run on different nodes, but two of its tasks fall on %s",
                                sl_sched_model_name(m, c), slot->supervisor);
                break;
            }
            seen[slot->sup] = c + 1;
        }
    }
    sl_free(seen);
    return rc;
}

static int
finish_check(const struct sl_sched_plan *plan)
{
    const struct sl_sched_model *m = plan->model;
    for (uint32_t t = 0; t < m->task_count; t++) {
        if (plan->task_slot[t] == SL_SCHED_NONE) {
            return sl_err_set(SL_EUNSATISFIABLE, "no worker is left for task %u of %s",
                              m->task_ids[t], sl_sched_model_name(m, m->task_component[t]));
        }
    }
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct sl_sched_slot *slot = &plan->slots[i];
        sl_assert(slot->task_count == 0 || slot->supervisor != NULL);
        sl_assert(slot->task_count == 0 || i < plan->kept_count || m->sups[slot->sup].is_usable);
    }
    return finish_check_spread(plan);
}

int
sl_sched_plan_finish(const struct sl_sched_plan *plan, struct sl_sched_result *result)
{
    const struct sl_sched_model *m = plan->model;
    int rc = finish_check(plan);
    if (rc != 0) {
        return rc;
    }
    struct slot_ref *refs = sl_calloc(plan->count + 1, sizeof(*refs));
    uint32_t *at = sl_calloc(plan->count + 1, sizeof(uint32_t));
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        if (plan->slots[i].task_count > 0) {
            refs[n].slot = &plan->slots[i];
            refs[n++].index = i;
        }
    }
    qsort(refs, n, sizeof(*refs), compare_ref);
    result->workers = sl_calloc(n + 1, sizeof(*result->workers));
    result->tasks = sl_calloc(m->task_count + 1, sizeof(uint32_t));
    result->worker_count = n;
    result->task_count = m->task_count;
    uint32_t first = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct sl_sched_slot *slot = refs[i].slot;
        sl_assert(i == 0 || compare_ref(&refs[i - 1], &refs[i]) < 0);
        result->workers[i] = (struct sl_sched_worker){
            .supervisor = slot->supervisor,
            .host = slot->host,
            .port = slot->port,
            .first_task = first,
            .task_count = slot->task_count,
            .cpu = slot->cpu,
            .ram = slot->ram,
        };
        at[refs[i].index] = first;
        first += slot->task_count;
    }
    for (uint32_t t = 0; t < m->task_count; t++) {
        const struct sl_sched_slot *slot = &plan->slots[plan->task_slot[t]];
        result->tasks[at[plan->task_slot[t]]++] = m->task_ids[t];
        if (m->task_old[t] != SL_SCHED_NONE) {
            const struct sl_sched_old *old = &m->olds[m->task_old[t]];
            result->moved +=
                old->port != slot->port || strcmp(old->supervisor, slot->supervisor) != 0;
        }
    }
    sl_free(refs);
    sl_free(at);
    return 0;
}

void
sl_sched_result_destroy(struct sl_sched_result *result)
{
    sl_free(result->workers);
    sl_free(result->tasks);
    memset(result, 0, sizeof(*result));
}
