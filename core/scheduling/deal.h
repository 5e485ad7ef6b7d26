#pragma once
/*
 * Task assignment after JStorm's TaskScheduler: how many tasks a worker should have, which workers
 * are full, what stays where it was, and in which order the rest is dealt.
 *
 * avg and left say what is still to be reached: of the open workers `left` get avg + 1 tasks and
 * the others avg. A worker that has its share leaves the pool.
 */

#include "scheduling/pool.h"

struct sl_sched_deal {
    struct sl_sched_plan *plan;
    struct sl_sched_pool pool;
    /* Tasks to come and on open workers; open workers that count. */
    uint32_t task_num;
    uint32_t worker_num;
    uint32_t avg;
    /* May fall below 0 when a worker had more than its share from the start. */
    int64_t left;
};

/* Starts on the allocated slots of the plan, which have their places; `need` as in sl_sched_need.
 */
void sl_sched_deal_create(struct sl_sched_deal *deal, struct sl_sched_plan *plan, const bool *need);

/*
 * Gives the topology master, which has no slot yet, an empty worker of its own on the supervisor
 * with the most workers. SL_EUNSATISFIABLE when none is empty.
 */
int sl_sched_deal_lone_master(struct sl_sched_deal *deal);

/*
 * Mode keep: the master, if it is to be alone and its old worker is there, stays alone in it. False
 * when it does not.
 */
bool sl_sched_deal_keep_master(struct sl_sched_deal *deal);

/* Computes avg and left, and closes workers that had their share before anything was dealt. */
void sl_sched_deal_open(struct sl_sched_deal *deal);

/*
 * Mode keep: every task whose old slot is a worker stays there, then full workers leave round by
 * round. The master's worker never counts as full.
 */
void sl_sched_deal_keep(struct sl_sched_deal *deal, const bool *need);

/* Mode minimal: as many tasks stay as sizes within one allow; full workers leave. */
void sl_sched_deal_keep_within(struct sl_sched_deal *deal, const bool *need);

/*
 * Deals what has no slot yet: components on different nodes, then the others by id, system ones
 * last. SL_EUNSATISFIABLE when different nodes run out.
 */
int sl_sched_deal_assign(struct sl_sched_deal *deal, const bool *need);

/*
 * Deals what has no slot yet by id, each to the worker with the fewest tasks, first slots first: in
 * turn when all start empty. Lone workers get none.
 */
int sl_sched_deal_in_turn(struct sl_sched_deal *deal, const bool *need);
