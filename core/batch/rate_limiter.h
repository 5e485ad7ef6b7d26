#pragma once
/*
 * How many records a receiver may take. Time is cut into windows of the block interval; each window
 * allows rate * interval records and unused ones are lost, so that a batch made of whole windows
 * never gets more than rate * batch. Fractions are carried over. A list that is larger than what a
 * window allows is let in by an untouched window, and later windows pay for it.
 */

#include <stdbool.h>
#include <stdint.h>

struct sl_rate_limiter {
    int64_t interval_ms;
    /* Records per second; 0 = unlimited. */
    double max_rate;
    double rate;
    /* Number of the present window, what it allows and what was taken of it. */
    int64_t window;
    bool is_started;
    double carry;
    int64_t allowed;
    int64_t used;
};

/* Rates <= 0 mean unlimited; the smaller one counts at first. Nothing to destroy. */
void sl_rate_limiter_create(struct sl_rate_limiter *self, int64_t interval_ms, double max_rate,
                            double initial_rate);

/* A new rate, never above the maximum; rate <= 0 is ignored. */
void sl_rate_limiter_update(struct sl_rate_limiter *self, double rate);

/* True when `records` may be taken at time now; they count as taken then. */
bool sl_rate_limiter_take(struct sl_rate_limiter *self, int64_t now, int64_t records);

/* When a record may be taken: now or the start of a later window. */
int64_t sl_rate_limiter_ready(struct sl_rate_limiter *self, int64_t now);
