#pragma once
/*
 * An assignment in the making: slots and which of them each task has.
 *
 *   slots: [ kept .. | allocated: user workers, old ones, blank ones .. ]
 *            0         kept_count                                      count
 *
 * Kept slots (surviving workers) take no part in any count of the task scheduler.
 */

#include "scheduling/model.h"

struct sl_sched_slot {
    const char *supervisor;
    const char *host;
    /* Rank of the supervisor; SL_SCHED_NONE when it is not placed yet or its supervisor is gone. */
    uint32_t sup;
    uint32_t port;
    double cpu;
    double ram;
    uint32_t task_count;
    /* The index of the user worker it stands for, or SL_SCHED_NONE. */
    uint32_t user;
    /* The rank of the previous worker it goes on from, or SL_SCHED_NONE. */
    uint32_t old;
    /* The topology master has it alone. */
    bool is_lone;
};

struct sl_sched_plan {
    struct sl_sched_model *model;
    struct sl_sched_slot *slots;
    uint32_t kept_count;
    uint32_t count;
    /* Slot of each task, or SL_SCHED_NONE. */
    uint32_t *task_slot;
};

/* An empty plan with room for `capacity` slots; its memory is the model's. */
void sl_sched_plan_create(struct sl_sched_plan *plan, struct sl_sched_model *model,
                          uint32_t capacity);

/* Adds an unplaced slot without tasks and returns its index. */
uint32_t sl_sched_plan_add(struct sl_sched_plan *plan, double cpu, double ram);

/* Puts a slot on a free port of a supervisor. */
void sl_sched_plan_put(struct sl_sched_plan *plan, uint32_t slot, uint32_t sup, uint32_t port);

/* Puts a slot on the first free port of a supervisor. */
void sl_sched_plan_put_first(struct sl_sched_plan *plan, uint32_t slot, uint32_t sup);

/* Gives a task, which must have no slot, to a slot. */
void sl_sched_plan_give(struct sl_sched_plan *plan, uint32_t slot, uint32_t task);

/*
 * Checks what every scheduler owes (each task has one slot, no slot twice, isolation, components
 * on different nodes) and writes the sorted answer without empty slots. Returns 0 or
 * SL_EUNSATISFIABLE.
 */
int sl_sched_plan_finish(const struct sl_sched_plan *plan, struct sl_sched_result *result);
