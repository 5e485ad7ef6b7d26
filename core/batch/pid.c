#include "batch/pid.h"

#include "base/err.h"

int
sl_pid_create(struct sl_pid *self, int64_t batch_ms, double proportional, double integral,
              double derived, double min_rate)
{
    if (batch_ms <= 0) {
        return sl_err_set(SL_EINVAL, "a rate estimator needs a batch interval above 0, not %lld",
                          (long long)batch_ms);
    }
    if (!(proportional >= 0 && integral >= 0 && derived >= 0)) {
        return sl_err_set(SL_EINVAL,
                          "the gains of a rate estimator must be 0 or more, not %g, %g "
                          "and %g",
                          proportional, integral, derived);
    }
    if (!(min_rate > 0)) {
        return sl_err_set(SL_EINVAL, "the least rate of a rate estimator must be above 0, not %g",
                          min_rate);
    }
    *self = (struct sl_pid){
        .batch_ms = (double)batch_ms,
        .proportional = proportional,
        .integral = integral,
        .derived = derived,
        .min_rate = min_rate,
        .latest_time = -1,
    };
    return 0;
}

bool
sl_pid_compute(struct sl_pid *self, int64_t time, int64_t records, int64_t processing_ms,
               int64_t scheduling_ms, double *rate)
{
    if (time <= self->latest_time || records <= 0 || processing_ms <= 0) {
        return false;
    }
    double since_s = (double)(time - self->latest_time) / 1000;
    double processing_rate = (double)records / (double)processing_ms * 1000;
    double error = self->latest_rate - processing_rate;
    /* What waited, as the rate that would work it off within one batch. */
    double historical = (double)scheduling_ms * processing_rate / self->batch_ms;
    double change = (error - self->latest_error) / since_s;
    bool is_first = !self->is_started;
    self->is_started = true;
    self->latest_time = time;
    if (is_first) {
        self->latest_rate = processing_rate;
        self->latest_error = 0;
        return false;
    }
    double next = self->latest_rate - self->proportional * error - self->integral * historical -
                  self->derived * change;
    self->latest_rate = next > self->min_rate ? next : self->min_rate;
    self->latest_error = error;
    *rate = self->latest_rate;
    return true;
}
