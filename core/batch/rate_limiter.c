#include "batch/rate_limiter.h"

#include <math.h>

void
sl_rate_limiter_create(struct sl_rate_limiter *self, int64_t interval_ms, double max_rate,
                       double initial_rate)
{
    *self = (struct sl_rate_limiter){
        .interval_ms = interval_ms,
        .max_rate = max_rate > 0 ? max_rate : 0,
        .rate = max_rate > 0 ? max_rate : 0,
    };
    sl_rate_limiter_update(self, initial_rate);
}

static double
window_rate(const struct sl_rate_limiter *self)
{
    return self->rate * (double)self->interval_ms / 1000;
}

/* Works out what the present window allows, `windows` after the one before. */
static void
allow(struct sl_rate_limiter *self, int64_t windows)
{
    double share = window_rate(self);
    double credit = self->carry + share;
    if (share < 1) {
        /* Windows that nobody asked in add up to one record, not to a burst. */
        credit = fmax(credit, fmin(self->carry + share * (double)windows, 1));
    }
    /* A product like 0.2 * 10 / 1000 * 200 must not lose a record to its last bit. */
    self->allowed = credit < 9e15 ? (int64_t)floor(credit + 1e-9) : INT64_MAX;
    self->carry = fmax(credit - (double)self->allowed, 0);
}

static void
enter_window(struct sl_rate_limiter *self, int64_t now)
{
    int64_t window = now / self->interval_ms - (now % self->interval_ms < 0);
    if (self->is_started && window <= self->window) {
        return;
    }
    int64_t windows = self->is_started ? window - self->window : 1;
    /* What was taken in advance is paid back by every window that has passed. */
    double debt = (double)(self->used - self->allowed) - window_rate(self) * (double)(windows - 1);
    self->used = debt > 0 ? (int64_t)debt : 0;
    self->window = window;
    self->is_started = true;
    allow(self, windows);
}

void
sl_rate_limiter_update(struct sl_rate_limiter *self, double rate)
{
    if (!(rate > 0)) {
        return;
    }
    self->rate = self->max_rate > 0 ? fmin(rate, self->max_rate) : rate;
    if (self->is_started) {
        allow(self, 1);
    }
}

bool
sl_rate_limiter_take(struct sl_rate_limiter *self, int64_t now, int64_t records)
{
    if (self->rate <= 0) {
        return true;
    }
    enter_window(self, now);
    if (self->used > 0 && self->used + records > self->allowed) {
        return false;
    }
    if (self->used == 0 && self->allowed < 1) {
        return false;
    }
    self->used += records;
    return true;
}

int64_t
sl_rate_limiter_ready(struct sl_rate_limiter *self, int64_t now)
{
    if (self->rate <= 0) {
        return now;
    }
    enter_window(self, now);
    if (self->used < self->allowed) {
        return now;
    }
    double share = window_rate(self);
    double owed = (double)(self->used + 1 - self->allowed) - self->carry;
    double windows = fmax(ceil(owed / share - 1e-9), 1);
    double ready = ((double)self->window + windows) * (double)self->interval_ms;
    return ready < 9e18 ? (int64_t)ready : INT64_MAX;
}
