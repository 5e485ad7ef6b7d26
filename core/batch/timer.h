#pragma once
/*
 * A recurring timer that is asked, not a thread: it gives the nominal times of ticks that are due,
 * each once and in order.
 *
 * On a manual clock no tick is ever left out. On a real clock time is the wall time of the last
 * look plus what the monotonic clock counted since. When the wall clock turns out to have jumped
 * forward, at most catch_up_max of the ticks that the jump made due are given (the latest ones),
 * the others are counted in `skipped`. When it has jumped back by a period or more, ticks go on by
 * the monotonic clock: nominal times never repeat. Upstream falls silent there, or fires a burst.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

enum sl_recurring_timer_state {
    SL_RECURRING_TIMER_NEW,
    SL_RECURRING_TIMER_RUNNING,
    /* A stop without interruption: `ticks_left` more are to come. */
    SL_RECURRING_TIMER_STOPPING,
    SL_RECURRING_TIMER_STOPPED,
};

enum {
    /*
     * What still fires after a stop without interruption: the tick being waited for, and one after
     * it, so that one falls after all that happened before the stop (SPARK-10224).
     */
    SL_RECURRING_TIMER_LAST_TICKS = 2,
};

struct sl_recurring_timer {
    const struct sl_clock *clock;
    bool is_manual;
    enum sl_recurring_timer_state state;
    int64_t period_ms;
    /* Shift of the grid against the epoch. */
    int64_t phase_ms;
    int64_t next;
    /* Nominal time of the last tick, SL_STREAMING_UNKNOWN before the first. */
    int64_t last;
    int32_t ticks_left;
    int32_t catch_up_max;
    uint64_t skipped;
    /* Wall time and monotonic time of the last look at a real clock. */
    int64_t anchor_ms;
    uint64_t anchor_ns;
};

/* The clock is borrowed. Nothing to destroy. */
void sl_recurring_timer_create(struct sl_recurring_timer *self, const struct sl_clock *clock,
                               bool is_manual, int64_t period_ms, int64_t phase_ms,
                               int32_t catch_up_max);

/* Time as the timer sees it. */
int64_t sl_recurring_timer_now(struct sl_recurring_timer *self);

/* On a real clock that is behind `time`: goes on from there, as after a step back of the clock. */
void sl_recurring_timer_not_before(struct sl_recurring_timer *self, int64_t time);

/* The first grid point after now. */
int64_t sl_recurring_timer_start_time(struct sl_recurring_timer *self);

/* The first point after now of the grid through `original`. */
int64_t sl_recurring_timer_restart_time(struct sl_recurring_timer *self, int64_t original);

/* SL_ECONFLICT when it was started before. */
int sl_recurring_timer_start(struct sl_recurring_timer *self, int64_t start);

/* True when a tick is due; its nominal time is stored and it counts as fired. */
bool sl_recurring_timer_fire(struct sl_recurring_timer *self, int64_t *time);

/* Nominal time of the next tick, SL_STREAMING_UNKNOWN when there will be none. */
int64_t sl_recurring_timer_due(const struct sl_recurring_timer *self);

/* Stops at once, or after the last ticks. Stopping twice is fine; the firmer stop counts. */
void sl_recurring_timer_stop(struct sl_recurring_timer *self, bool is_interrupt);

static inline bool
sl_recurring_timer_is_stopped(const struct sl_recurring_timer *self)
{
    return self->state == SL_RECURRING_TIMER_STOPPED;
}
