#include "scheduling/steps.h"

#include "base/err.h"

/* From that many workers on the topology master gets one of its own unless the user decides. */
enum { MASTER_ALONE_FROM = 10 };

struct sl_sched_worker_count
sl_sched_count_workers(const struct sl_sched_model *model)
{
    const struct sl_sched_request *r = model->request;
    bool has_master = model->master != SL_SCHED_NONE;
    uint32_t tasks = model->task_count - has_master;
    struct sl_sched_worker_count count = {.total = tasks};
    if (r->workers != 0 && r->workers < tasks) {
        count.total = r->workers;
    }
    if (has_master && tasks > 0) {
        count.is_master_alone = r->master_alone == SL_SCHED_AUTO ? count.total >= MASTER_ALONE_FROM
                                                                 : r->master_alone != SL_SCHED_NO;
    }
    count.total += count.is_master_alone;
    if (count.total == 0 && model->task_count > 0) {
        count.total = 1;
    }
    return count;
}

void
sl_sched_refine_dead(struct sl_sched_model *model)
{
    const struct sl_sched_request *r = model->request;
    for (uint32_t i = 0; i < r->dead_task_count; i++) {
        uint32_t t = sl_sched_model_task(model, r->dead_tasks[i]);
        if (t != SL_SCHED_NONE) {
            model->is_dead[t] = true;
            if (model->task_old[t] != SL_SCHED_NONE) {
                model->olds[model->task_old[t]].is_dead = true;
            }
        }
    }
    for (uint32_t i = 0; i < model->old_count; i++) {
        const struct sl_sched_old *old = &model->olds[i];
        for (uint32_t k = 0; old->is_dead && k < old->task_count; k++) {
            model->is_dead[model->old_tasks[old->first_task + k]] = true;
        }
    }
    for (uint32_t i = 0; i < r->unstopped_task_count; i++) {
        uint32_t t = sl_sched_model_task(model, r->unstopped_tasks[i]);
        if (t != SL_SCHED_NONE && !model->is_dead[t] && model->task_old[t] != SL_SCHED_NONE) {
            model->is_unstopped[t] = true;
            model->olds[model->task_old[t]].is_unstopped = true;
        }
    }
}

void
sl_sched_mark_ports(struct sl_sched_model *model, int mode)
{
    for (uint32_t i = 0; mode != SL_SCHED_NEW && i < model->old_count; i++) {
        const struct sl_sched_old *old = &model->olds[i];
        if (old->sup != SL_SCHED_NONE &&
            (mode == SL_SCHED_MONITOR || old->is_dead || old->is_unstopped)) {
            sl_sched_sup_mark(&model->sups[old->sup], old->port);
        }
    }
}

uint32_t
sl_sched_need(const struct sl_sched_model *model, int mode, bool *need)
{
    uint32_t count = 0;
    for (uint32_t t = 0; t < model->task_count; t++) {
        if (mode == SL_SCHED_NEW) {
            need[t] = true;
        } else if (mode == SL_SCHED_MONITOR) {
            need[t] = model->is_dead[t] || model->task_old[t] == SL_SCHED_NONE;
        } else {
            need[t] = !model->is_unstopped[t];
        }
        count += need[t];
    }
    return count;
}

void
sl_sched_keep(struct sl_sched_plan *plan, int mode, const bool *need)
{
    struct sl_sched_model *model = plan->model;
    const struct sl_sched_request *r = model->request;
    for (uint32_t i = 0; mode != SL_SCHED_NEW && i < model->old_count; i++) {
        const struct sl_sched_old *old = &model->olds[i];
        uint32_t staying = 0;
        for (uint32_t k = 0; k < old->task_count; k++) {
            staying += !need[model->old_tasks[old->first_task + k]];
        }
        if (staying == 0 || (staying < old->task_count && !old->is_unstopped)) {
            continue;
        }
        double cpu = old->cpu >= 0 ? old->cpu : r->worker_cpu;
        double ram = old->ram >= 0 ? old->ram : r->worker_ram;
        uint32_t slot = sl_sched_plan_add(plan, cpu, ram);
        struct sl_sched_slot *s = &plan->slots[slot];
        s->supervisor = old->supervisor;
        s->host = old->sup != SL_SCHED_NONE ? model->sups[old->sup].host : old->host;
        s->port = old->port;
        s->sup = old->sup;
        s->old = i;
        if (old->sup != SL_SCHED_NONE) {
            sl_sched_sup_charge(&model->sups[old->sup], cpu, ram);
        }
        for (uint32_t k = 0; k < old->task_count; k++) {
            uint32_t t = model->old_tasks[old->first_task + k];
            if (!need[t]) {
                sl_sched_plan_give(plan, slot, t);
            }
        }
    }
    plan->kept_count = plan->count;
}

int
sl_sched_alloc(const struct sl_sched_plan *plan, struct sl_sched_worker_count workers,
               const bool *need, uint32_t *alloc)
{
    const struct sl_sched_model *model = plan->model;
    uint32_t need_count = 0;
    for (uint32_t t = 0; t < model->task_count; t++) {
        need_count += need[t];
    }
    if (need_count == 0) {
        return sl_err_set(SL_ECONFLICT, "nothing needs assigning: %u workers run all %u tasks",
                          plan->kept_count, model->task_count);
    }
    bool is_master_extra = workers.is_master_alone && need[model->master] && need_count > 1;
    uint32_t least = 1 + is_master_extra;
    *alloc = workers.total > plan->kept_count ? workers.total - plan->kept_count : 0;
    *alloc = *alloc > least ? *alloc : least;
    return 0;
}
