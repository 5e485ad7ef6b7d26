#pragma once
/* The rate estimator "pid": from how fast batches were processed to how many records a second may
 * come in. */

#include <stdbool.h>
#include <stdint.h>

struct sl_pid {
    double batch_ms;
    double proportional;
    double integral;
    double derived;
    double min_rate;
    /* Whether a sample was accepted, and what the latest one gave. */
    bool is_started;
    int64_t latest_time;
    double latest_rate;
    double latest_error;
};

/* SL_EINVAL for batch_ms <= 0, a negative (or NaN) gain or min_rate <= 0. Nothing to destroy. */
int sl_pid_create(struct sl_pid *self, int64_t batch_ms, double proportional, double integral,
                  double derived, double min_rate);

/*
 * Takes a batch: when its processing ended, its records, how long it was processed and had waited.
 * True when there is a new rate. Batches without records, without duration or not after the latest
 * one change nothing; the first one only gives the estimator its footing.
 */
bool sl_pid_compute(struct sl_pid *self, int64_t time, int64_t records, int64_t processing_ms,
                    int64_t scheduling_ms, double *rate);
