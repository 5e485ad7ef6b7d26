#include "batch/timer.h"

#include "base/err.h"
#include "base/log.h"
#include "batch/grid.h"
#include "batch/streaming_types.h"

static void
look(struct sl_recurring_timer *self)
{
    self->anchor_ms = sl_clock_wall_ms(self->clock);
    self->anchor_ns = sl_clock_mono_ns(self->clock);
}

void
sl_recurring_timer_create(struct sl_recurring_timer *self, const struct sl_clock *clock,
                          bool is_manual, int64_t period_ms, int64_t phase_ms, int32_t catch_up_max)
{
    *self = (struct sl_recurring_timer){
        .clock = clock,
        .is_manual = is_manual,
        .period_ms = period_ms,
        .phase_ms = phase_ms,
        .catch_up_max = catch_up_max,
        .next = SL_STREAMING_UNKNOWN,
        .last = SL_STREAMING_UNKNOWN,
    };
    look(self);
}

/* Leaves out ticks up to a wall time that was jumped to, but for the latest ones. */
static void
skip_to(struct sl_recurring_timer *self, int64_t before_ms, int64_t wall_ms)
{
    if (self->state != SL_RECURRING_TIMER_RUNNING || wall_ms < self->next) {
        return;
    }
    int64_t due = (wall_ms - self->next) / self->period_ms + 1;
    /* What was due before the jump was late, not skipped. */
    int64_t late = before_ms < self->next ? 0 : (before_ms - self->next) / self->period_ms + 1;
    int64_t kept = late > self->catch_up_max ? late : self->catch_up_max;
    if (due > kept) {
        self->next += (due - kept) * self->period_ms;
        self->skipped += (uint64_t)(due - kept);
        sl_log_warn("batch.timer",
                    "the clock jumped forward: batches are left out skipped=%lld made_up=%lld",
                    (long long)(due - kept), (long long)kept);
    }
}

int64_t
sl_recurring_timer_now(struct sl_recurring_timer *self)
{
    if (self->is_manual) {
        return sl_clock_wall_ms(self->clock);
    }
    int64_t wall_ms = sl_clock_wall_ms(self->clock);
    uint64_t mono_ns = sl_clock_mono_ns(self->clock);
    int64_t counted_ms = self->anchor_ms + (int64_t)((mono_ns - self->anchor_ns) / 1000000u);
    if (wall_ms <= counted_ms - self->period_ms) {
        return counted_ms;
    }
    if (wall_ms > counted_ms) {
        skip_to(self, counted_ms, wall_ms);
    }
    self->anchor_ms = wall_ms;
    self->anchor_ns = mono_ns;
    return wall_ms;
}

void
sl_recurring_timer_not_before(struct sl_recurring_timer *self, int64_t time)
{
    if (!self->is_manual && sl_recurring_timer_now(self) < time) {
        self->anchor_ms = time;
    }
}

int64_t
sl_recurring_timer_start_time(struct sl_recurring_timer *self)
{
    return sl_grid_after(sl_recurring_timer_now(self), self->period_ms, self->phase_ms);
}

int64_t
sl_recurring_timer_restart_time(struct sl_recurring_timer *self, int64_t original)
{
    return sl_grid_after(sl_recurring_timer_now(self), self->period_ms, original);
}

int
sl_recurring_timer_start(struct sl_recurring_timer *self, int64_t start)
{
    if (self->state != SL_RECURRING_TIMER_NEW) {
        return sl_err_set(SL_ECONFLICT, "the timer was started before");
    }
    sl_recurring_timer_now(self);
    self->state = SL_RECURRING_TIMER_RUNNING;
    self->next = start;
    return 0;
}

bool
sl_recurring_timer_fire(struct sl_recurring_timer *self, int64_t *time)
{
    if (self->state != SL_RECURRING_TIMER_RUNNING && self->state != SL_RECURRING_TIMER_STOPPING) {
        return false;
    }
    int64_t now = sl_recurring_timer_now(self);
    if (now < self->next) {
        return false;
    }
    self->last = *time = self->next;
    if (__builtin_add_overflow(self->next, self->period_ms, &self->next) ||
        (self->state == SL_RECURRING_TIMER_STOPPING && --self->ticks_left == 0)) {
        self->state = SL_RECURRING_TIMER_STOPPED;
    }
    return true;
}

int64_t
sl_recurring_timer_due(const struct sl_recurring_timer *self)
{
    bool is_ticking =
        self->state == SL_RECURRING_TIMER_RUNNING || self->state == SL_RECURRING_TIMER_STOPPING;
    return is_ticking ? self->next : SL_STREAMING_UNKNOWN;
}

void
sl_recurring_timer_stop(struct sl_recurring_timer *self, bool is_interrupt)
{
    if (is_interrupt || self->state == SL_RECURRING_TIMER_NEW) {
        self->state = SL_RECURRING_TIMER_STOPPED;
    } else if (self->state == SL_RECURRING_TIMER_RUNNING) {
        self->state = SL_RECURRING_TIMER_STOPPING;
        self->ticks_left = SL_RECURRING_TIMER_LAST_TICKS;
    }
}
