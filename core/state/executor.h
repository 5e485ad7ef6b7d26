#pragma once
/*
 * Where the state room's code runs: the seam to the owner's thread. A role hands in its loop, a
 * simulation its virtual time, a test or a command line tool the runner of state/runner.h.
 *
 * Everything of a store (its calls, timers, callbacks) happens on one thread, the owner's. Backends
 * have threads of their own and come back by `post`, and by nothing else.
 */

#include <stdint.h>

#include "base/clock.h"

typedef void (*sl_state_task_fn)(void *arg);

struct sl_state_executor {
    /*
     * Runs fn(arg) later on the owner's thread, never inside this call. Any thread may call it.
     * Tasks run in the order in which they were posted.
     */
    void (*post)(void *ctx, sl_state_task_fn fn, void *arg);
    /*
     * Runs fn(arg) once on the owner's thread, delay_ms from now and never inside this call.
     * Returns a ticket that is not 0. Owner's thread only.
     */
    uint64_t (*timer_start)(void *ctx, uint64_t delay_ms, sl_state_task_fn fn, void *arg);
    /* Takes a timer back; a ticket of a timer that has fired, and 0, are ignored. */
    void (*timer_stop)(void *ctx, uint64_t ticket);
    const struct sl_clock *clock;
    void *ctx;
};

static inline void
sl_state_executor_post(const struct sl_state_executor *executor, sl_state_task_fn fn, void *arg)
{
    executor->post(executor->ctx, fn, arg);
}

static inline uint64_t
sl_state_executor_timer_start(const struct sl_state_executor *executor, uint64_t delay_ms,
                              sl_state_task_fn fn, void *arg)
{
    return executor->timer_start(executor->ctx, delay_ms, fn, arg);
}

/* Stops the timer and forgets its ticket. */
static inline void
sl_state_executor_timer_stop(const struct sl_state_executor *executor, uint64_t *ticket)
{
    if (*ticket != 0) {
        executor->timer_stop(executor->ctx, *ticket);
        *ticket = 0;
    }
}

static inline uint64_t
sl_state_executor_now_ms(const struct sl_state_executor *executor)
{
    return sl_clock_mono_ms(executor->clock);
}
