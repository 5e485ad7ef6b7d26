#pragma once
/*
 * The steps before anything is placed, after JStorm's mkAssignment: how many workers there are, who
 * is dead, who stays, who needs a place, and how many new workers that takes.
 */

#include "scheduling/plan.h"

struct sl_sched_worker_count {
    /* All workers, the lone master's included. */
    uint32_t total;
    /* The topology master gets a worker of its own. */
    bool is_master_alone;
};

/*
 * Workers of a topology: min(workers, tasks) where tasks leaves the topology master out and workers
 * 0 = one per task; one more when the master is alone, which is automatic from 10 workers on.
 */
struct sl_sched_worker_count sl_sched_count_workers(const struct sl_sched_model *model);

/*
 * Marks dead tasks and widens them to all tasks of their worker; dead wins over unstopped. Then
 * marks the workers that hold a dead or an unstopped task.
 */
void sl_sched_refine_dead(struct sl_sched_model *model);

/*
 * Takes the ports away that nobody may have: in mode monitor all of the previous workers', else
 * those of dead and of unstopped ones (in mode new none).
 */
void sl_sched_mark_ports(struct sl_sched_model *model, int mode);

/*
 * Which tasks need a place (one flag a task): all in mode new, all but unstopped ones when
 * rescaling, dead and unknown ones in mode monitor. Returns how many.
 */
uint32_t sl_sched_need(const struct sl_sched_model *model, int mode, bool *need);

/*
 * Adds the workers that stay as they are to the plan: unstopped ones (what of them needs no place)
 * and those of which no task needs a place. They take cpu and ram of their supervisor.
 */
void sl_sched_keep(struct sl_sched_plan *plan, int mode, const bool *need);

/*
 * New workers: total less the kept ones, but at least one when a task needs a place, and one more
 * when that task is a topology master that is to be alone and others need a place too. SL_ECONFLICT
 * when none does.
 */
int sl_sched_alloc(const struct sl_sched_plan *plan, struct sl_sched_worker_count workers,
                   const bool *need, uint32_t *alloc);
