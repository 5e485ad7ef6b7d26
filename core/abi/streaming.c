#include "batch/streaming.h"

#include <stddef.h>
#include <string.h>

#include "abi/abi.h"
#include "base/alloc.h"
#include "base/err.h"
#include "batch/block_generator.h"
#include "batch/checkpoint.h"
#include "batch/clock.h"
#include "batch/grid.h"
#include "batch/pid.h"
#include "batch/timer.h"
#include "batch/wal.h"

/* SL_EINVAL unless the condition holds. */
static int
need(bool condition, const char *what)
{
    return condition ? 0 : sl_err_set(SL_EINVAL, "streaming needs %s", what);
}

static const struct sl_clock *
clock_of(struct sl_streaming_clock *clock)
{
    return clock != NULL ? &clock->clock : sl_clock_system();
}

double
sl_abi_time_floor(int64_t time, int64_t duration, int64_t zero)
{
    return duration > 0 ? (double)sl_grid_floor(time, duration, zero) : (double)time;
}

int32_t
sl_abi_time_is_multiple(int64_t time, int64_t duration)
{
    return duration > 0 && sl_grid_is_multiple(time, duration);
}

struct sl_streaming_clock *
sl_abi_streaming_clock_new(int64_t start_ms)
{
    struct sl_streaming_clock *clock = sl_alloc(sizeof(*clock));
    sl_streaming_clock_create(clock, start_ms);
    return clock;
}

void
sl_abi_streaming_clock_free(struct sl_streaming_clock *clock)
{
    sl_free(clock);
}

double
sl_abi_streaming_clock_now(const struct sl_streaming_clock *clock)
{
    return (double)sl_clock_wall_ms(clock != NULL ? &clock->clock : sl_clock_system());
}

void
sl_abi_streaming_clock_set(struct sl_streaming_clock *clock, int64_t time)
{
    if (clock != NULL) {
        sl_streaming_clock_set(clock, time);
    }
}

enum {
    /* Ticks of a timer on the system's clock that are made up after a jump of the clock. */
    TIMER_CATCH_UP_MAX = 10,
};

struct sl_recurring_timer *
sl_abi_recurring_timer_new(struct sl_streaming_clock *clock, int64_t period_ms)
{
    if (need(period_ms > 0, "a period above 0") != 0) {
        return NULL;
    }
    struct sl_recurring_timer *timer = sl_alloc(sizeof(*timer));
    sl_recurring_timer_create(timer, clock_of(clock), clock != NULL, period_ms, 0,
                              TIMER_CATCH_UP_MAX);
    return timer;
}

void
sl_abi_recurring_timer_free(struct sl_recurring_timer *timer)
{
    sl_free(timer);
}

double
sl_abi_recurring_timer_start_time(struct sl_recurring_timer *timer)
{
    return timer != NULL ? (double)sl_recurring_timer_start_time(timer) : SL_STREAMING_UNKNOWN;
}

double
sl_abi_recurring_timer_restart_time(struct sl_recurring_timer *timer, int64_t original)
{
    return timer != NULL ? (double)sl_recurring_timer_restart_time(timer, original)
                         : SL_STREAMING_UNKNOWN;
}

int32_t
sl_abi_recurring_timer_start(struct sl_recurring_timer *timer, int64_t start)
{
    int rc = need(timer != NULL, "a timer");
    return rc == 0 ? sl_recurring_timer_start(timer, start) : rc;
}

double
sl_abi_recurring_timer_next(struct sl_recurring_timer *timer)
{
    int64_t time = SL_STREAMING_UNKNOWN;
    bool has_fired = timer != NULL && sl_recurring_timer_fire(timer, &time);
    return has_fired ? (double)time : SL_STREAMING_UNKNOWN;
}

double
sl_abi_recurring_timer_due(struct sl_recurring_timer *timer)
{
    return timer != NULL ? (double)sl_recurring_timer_due(timer) : SL_STREAMING_UNKNOWN;
}

double
sl_abi_recurring_timer_stop(struct sl_recurring_timer *timer, int32_t interrupt)
{
    if (timer != NULL) {
        sl_recurring_timer_stop(timer, interrupt != 0);
    }
    return sl_abi_recurring_timer_stopped(timer);
}

double
sl_abi_recurring_timer_stopped(struct sl_recurring_timer *timer)
{
    bool is_stopped = timer != NULL && sl_recurring_timer_is_stopped(timer);
    return is_stopped ? (double)timer->last : SL_STREAMING_UNKNOWN;
}

struct sl_pid *
sl_abi_pid_new(int64_t batch_ms, double proportional, double integral, double derived,
               double min_rate)
{
    struct sl_pid *pid = sl_alloc(sizeof(*pid));
    if (sl_pid_create(pid, batch_ms, proportional, integral, derived, min_rate) != 0) {
        sl_free(pid);
        return NULL;
    }
    return pid;
}

void
sl_abi_pid_free(struct sl_pid *pid)
{
    sl_free(pid);
}

double
sl_abi_pid_compute(struct sl_pid *pid, int64_t time, int64_t records, int64_t processing_ms,
                   int64_t scheduling_ms)
{
    double rate = 0;
    bool has_rate =
        pid != NULL && sl_pid_compute(pid, time, records, processing_ms, scheduling_ms, &rate);
    return has_rate ? rate : SL_STREAMING_UNKNOWN;
}

void
sl_abi_streaming_options_default(struct sl_streaming_options *options)
{
    if (options != NULL) {
        sl_streaming_options_default(options);
    }
}

struct sl_streaming *
sl_abi_streaming_new(const struct sl_streaming_options *options, struct sl_streaming_clock *clock)
{
    if (need(options != NULL, "options") != 0) {
        return NULL;
    }
    return sl_streaming_new(options, clock_of(clock), clock != NULL);
}

void
sl_abi_streaming_free(struct sl_streaming *context)
{
    sl_streaming_free(context);
}

void
sl_abi_streaming_wait(struct sl_streaming *context, int64_t max_ms)
{
    if (context != NULL) {
        sl_streaming_wait(context, max_ms);
    }
}

void
sl_abi_streaming_wake(struct sl_streaming *context)
{
    if (context != NULL) {
        sl_streaming_wake(context);
    }
}

const struct sl_streaming_report *
sl_abi_streaming_report(struct sl_streaming *context)
{
    return context != NULL ? sl_streaming_report(context) : NULL;
}

double
sl_abi_streaming_zero_time(struct sl_streaming *context)
{
    return context != NULL ? (double)sl_streaming_zero_time(context) : SL_STREAMING_UNKNOWN;
}

int32_t
sl_abi_streaming_is_idle(struct sl_streaming *context)
{
    return context != NULL && sl_streaming_is_idle(context);
}

void
sl_abi_streaming_progress(struct sl_streaming *context, struct sl_streaming_progress *out)
{
    if (context != NULL && out != NULL) {
        sl_streaming_progress(context, out);
    }
}

const struct sl_streaming_report *
sl_abi_streaming_completed(struct sl_streaming *context, int32_t index)
{
    return context != NULL ? sl_streaming_completed(context, index) : NULL;
}

int32_t
sl_abi_streaming_state(struct sl_streaming *context)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_state(context) : rc;
}

int32_t
sl_abi_streaming_checkpoint_dir(struct sl_streaming *context, const char *dir)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_checkpoint_dir(context, dir) : rc;
}

int32_t
sl_abi_streaming_remember(struct sl_streaming *context, int64_t remember_ms)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_remember(context, remember_ms) : rc;
}

int32_t
sl_abi_streaming_node_add(struct sl_streaming *context, const struct sl_streaming_node *node)
{
    int rc = need(context != NULL && node != NULL, "a context and a node");
    return rc == 0 ? sl_streaming_node_add(context, node) : rc;
}

int32_t
sl_abi_streaming_node_name(struct sl_streaming *context, int32_t node, const char *name)
{
    int rc = need(context != NULL && name != NULL, "a context and a name");
    return rc == 0 ? sl_streaming_node_name(context, node, name) : rc;
}

int32_t
sl_abi_streaming_node_remember(struct sl_streaming *context, int32_t node, int64_t ms)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_node_remember(context, node, ms) : rc;
}

int32_t
sl_abi_streaming_node_checkpoint(struct sl_streaming *context, int32_t node, int64_t ms)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_node_checkpoint(context, node, ms) : rc;
}

int32_t
sl_abi_streaming_node_persist(struct sl_streaming *context, int32_t node, int32_t is_on)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_node_persist(context, node, is_on != 0) : rc;
}

int32_t
sl_abi_streaming_node_get(struct sl_streaming *context, int32_t node, struct sl_streaming_node *out)
{
    int rc = need(context != NULL && out != NULL, "a context and a place for the node");
    return rc == 0 ? sl_streaming_node_get(context, node, out) : rc;
}

int32_t
sl_abi_streaming_node_count(struct sl_streaming *context)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_node_count(context) : rc;
}

int32_t
sl_abi_streaming_worker_add(struct sl_streaming *context, const char *name, const char *host,
                            int32_t slots)
{
    int rc = need(context != NULL && name != NULL && host != NULL && slots >= 0,
                  "a context and a name, a host and slots of a worker");
    return rc == 0 ? sl_streaming_worker_add(context, name, host, slots) : rc;
}

int32_t
sl_abi_streaming_worker_remove(struct sl_streaming *context, int32_t worker)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_worker_remove(context, worker) : rc;
}

int32_t
sl_abi_streaming_preferred_host(struct sl_streaming *context, int32_t node, const char *host)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_preferred_host(context, node, host) : rc;
}

int32_t
sl_abi_streaming_restore(struct sl_streaming *context, const struct sl_checkpoint *checkpoint,
                         int32_t drop_missing)
{
    int rc = need(context != NULL && checkpoint != NULL, "a context and a checkpoint");
    return rc == 0 ? sl_streaming_restore(context, checkpoint, drop_missing != 0) : rc;
}

int32_t
sl_abi_streaming_start(struct sl_streaming *context)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_start(context) : rc;
}

int32_t
sl_abi_streaming_stop(struct sl_streaming *context, int32_t graceful)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_stop(context, graceful != 0) : rc;
}

int32_t
sl_abi_streaming_next(struct sl_streaming *context, struct sl_streaming_work *work)
{
    int rc = need(context != NULL && work != NULL, "a context and a place for the work");
    return rc == 0 ? sl_streaming_next(context, work) : rc;
}

int32_t
sl_abi_streaming_find(struct sl_streaming *context, int32_t node, int64_t time,
                      struct sl_streaming_dataset *out)
{
    int rc = need(context != NULL && out != NULL, "a context and a place for the dataset");
    return rc == 0 ? sl_streaming_find(context, node, time, out) : rc;
}

int32_t
sl_abi_streaming_put(struct sl_streaming *context, int32_t node, int64_t time, uint64_t handle)
{
    int rc = need(context != NULL && handle > 0, "a context and a handle above 0");
    return rc == 0 ? sl_streaming_put(context, node, time, handle) : rc;
}

int32_t
sl_abi_streaming_datasets(struct sl_streaming *context, int32_t node,
                          struct sl_streaming_dataset *out, int32_t max)
{
    int rc =
        need(context != NULL && (out != NULL || max <= 0), "a context and a place for datasets");
    return rc == 0 ? sl_streaming_datasets(context, node, out, max) : rc;
}

int32_t
sl_abi_streaming_input_report(struct sl_streaming *context, int32_t node, int64_t time,
                              int64_t records, const char *metadata)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_input_report(context, node, time, records, metadata) : rc;
}

int32_t
sl_abi_streaming_job_add(struct sl_streaming *context, int64_t time, int32_t node)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_job_add(context, time, node) : rc;
}

int32_t
sl_abi_streaming_generated(struct sl_streaming *context, int64_t time, const char *error)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_generated(context, time, error) : rc;
}

int32_t
sl_abi_streaming_job_end(struct sl_streaming *context, uint64_t job, const char *error)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_job_end(context, job, error) : rc;
}

int32_t
sl_abi_streaming_saved(struct sl_streaming *context, int32_t node, int64_t time, const char *text)
{
    int rc = need(context != NULL && text != NULL, "a context and a text");
    return rc == 0 ? sl_streaming_saved(context, node, time, text) : rc;
}

int32_t
sl_abi_streaming_saved_get(struct sl_streaming *context, int32_t node, int32_t index,
                           struct sl_streaming_saved *out)
{
    int rc = need(context != NULL && out != NULL, "a context and a place for the dataset");
    return rc == 0 ? sl_streaming_saved_get(context, node, index, out) : rc;
}

int32_t
sl_abi_streaming_state_saved(struct sl_streaming *context)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_state_saved(context) : rc;
}

int32_t
sl_abi_streaming_checkpoint_write(struct sl_streaming *context, const uint8_t *extra, size_t len)
{
    int rc = need(context != NULL && (extra != NULL || len == 0),
                  "a context and the bytes of the driver");
    return rc == 0 ? sl_streaming_checkpoint_write(context, extra, len) : rc;
}

int32_t
sl_abi_streaming_receiver_started(struct sl_streaming *context, int32_t node, int32_t worker)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_receiver_started(context, node, worker) : rc;
}

int32_t
sl_abi_streaming_receiver_error(struct sl_streaming *context, int32_t node, const char *message)
{
    int rc = need(context != NULL && message != NULL, "a context and a message");
    return rc == 0 ? sl_streaming_receiver_error(context, node, message) : rc;
}

int32_t
sl_abi_streaming_receiver_ended(struct sl_streaming *context, int32_t node, const char *message,
                                int64_t delay_ms)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_receiver_ended(context, node, message, delay_ms) : rc;
}

int32_t
sl_abi_streaming_block_add(struct sl_streaming *context, int32_t node,
                           const struct sl_streaming_block *block)
{
    int rc = need(context != NULL && block != NULL, "a context and a block");
    return rc == 0 ? sl_streaming_block_add(context, node, block) : rc;
}

int32_t
sl_abi_streaming_block_count(struct sl_streaming *context, int32_t node, int64_t time)
{
    int rc = need(context != NULL, "a context");
    return rc == 0 ? sl_streaming_block_count(context, node, time) : rc;
}

int32_t
sl_abi_streaming_block_get(struct sl_streaming *context, int32_t node, int64_t time, int32_t index,
                           struct sl_streaming_block *out)
{
    int rc = need(context != NULL && out != NULL, "a context and a place for the block");
    return rc == 0 ? sl_streaming_block_get(context, node, time, index, out) : rc;
}

struct sl_block_generator *
sl_abi_block_generator_new(struct sl_streaming_clock *clock, int64_t interval_ms, int32_t queue_max,
                           double max_rate, double initial_rate)
{
    struct sl_block_generator *generator = sl_alloc(sizeof(*generator));
    if (sl_block_generator_create(generator, clock_of(clock), clock != NULL, interval_ms, queue_max,
                                  max_rate, initial_rate) != 0) {
        sl_free(generator);
        return NULL;
    }
    return generator;
}

void
sl_abi_block_generator_free(struct sl_block_generator *generator)
{
    if (generator != NULL) {
        sl_block_generator_destroy(generator);
        sl_free(generator);
    }
}

int32_t
sl_abi_block_generator_start(struct sl_block_generator *generator)
{
    int rc = need(generator != NULL, "a block generator");
    return rc == 0 ? sl_block_generator_start(generator) : rc;
}

int32_t
sl_abi_block_generator_add(struct sl_block_generator *generator, const uint8_t *bytes, size_t len,
                           int64_t records)
{
    int rc = need(generator != NULL && (bytes != NULL || len == 0) && records > 0,
                  "a block generator and records");
    return rc == 0 ? sl_block_generator_add(generator, bytes, len, records) : rc;
}

double
sl_abi_block_generator_retry(struct sl_block_generator *generator)
{
    return generator != NULL ? (double)sl_block_generator_retry(generator) : 0;
}

int32_t
sl_abi_block_generator_pull(struct sl_block_generator *generator, struct sl_block_data *out)
{
    int rc = need(generator != NULL && out != NULL, "a block generator and a place for the block");
    return rc == 0 ? sl_block_generator_pull(generator, out) : rc;
}

double
sl_abi_block_generator_due(struct sl_block_generator *generator)
{
    return generator != NULL ? (double)sl_block_generator_due(generator) : SL_STREAMING_UNKNOWN;
}

void
sl_abi_block_generator_cut(struct sl_block_generator *generator)
{
    if (generator != NULL) {
        sl_block_generator_cut(generator);
    }
}

void
sl_abi_block_generator_stop(struct sl_block_generator *generator)
{
    if (generator != NULL) {
        sl_block_generator_stop(generator);
    }
}

void
sl_abi_block_generator_rate(struct sl_block_generator *generator, double rate)
{
    if (generator != NULL) {
        sl_block_generator_rate(generator, rate);
    }
}

struct sl_wal *
sl_abi_wal_new(const char *dir, int64_t rolling_ms)
{
    if (need(dir != NULL, "a directory") != 0) {
        return NULL;
    }
    struct sl_wal *wal = sl_alloc(sizeof(*wal));
    if (sl_wal_create(wal, dir, rolling_ms) != 0) {
        sl_free(wal);
        return NULL;
    }
    return wal;
}

void
sl_abi_wal_free(struct sl_wal *wal)
{
    if (wal != NULL) {
        sl_wal_destroy(wal);
        sl_free(wal);
    }
}

int32_t
sl_abi_wal_write(struct sl_wal *wal, const uint8_t *bytes, size_t len, int64_t time,
                 struct sl_wal_segment *out)
{
    int rc = need(wal != NULL && (bytes != NULL || len == 0) && out != NULL,
                  "a log, a record and a place for its segment");
    return rc == 0 ? sl_wal_write(wal, bytes, len, time, out) : rc;
}

const uint8_t *
sl_abi_wal_read(struct sl_wal *wal, const struct sl_wal_segment *segment, size_t *len)
{
    bool is_whole = wal != NULL && segment != NULL && segment->path != NULL && len != NULL &&
                    segment->offset >= 0 && segment->length >= 0;
    return need(is_whole, "a log, a segment and a place for the length") == 0
               ? sl_wal_read(wal, segment, len)
               : NULL;
}

int32_t
sl_abi_wal_clean(struct sl_wal *wal, int64_t threshold)
{
    int rc = need(wal != NULL, "a log");
    return rc == 0 ? sl_wal_clean(wal, threshold) : rc;
}

struct sl_checkpoint *
sl_abi_checkpoint_read(const char *dir)
{
    if (need(dir != NULL, "a directory") != 0) {
        return NULL;
    }
    struct sl_checkpoint *checkpoint = sl_alloc(sizeof(*checkpoint));
    if (sl_checkpoint_read(dir, checkpoint) != 0) {
        sl_free(checkpoint);
        return NULL;
    }
    return checkpoint;
}

void
sl_abi_checkpoint_free(struct sl_checkpoint *checkpoint)
{
    if (checkpoint != NULL) {
        sl_checkpoint_destroy(checkpoint);
        sl_free(checkpoint);
    }
}

void
sl_abi_checkpoint_get(const struct sl_checkpoint *checkpoint, struct sl_checkpoint_info *out)
{
    if (checkpoint == NULL || out == NULL) {
        return;
    }
    *out = (struct sl_checkpoint_info){
        .time = checkpoint->time,
        .zero_time = checkpoint->zero_time,
        .batch_ms = checkpoint->batch_ms,
        .path = checkpoint->path,
        .name = checkpoint->name,
        .script = checkpoint->script,
        .script_hash = checkpoint->script_hash,
        .extra = checkpoint->extra,
        .extra_len = (int64_t)checkpoint->extra_len,
        .pending_count = (int32_t)checkpoint->pending_count,
    };
}

int32_t
sl_abi_checkpoint_pending(const struct sl_checkpoint *checkpoint, int32_t index, int64_t *time)
{
    int rc = need(checkpoint != NULL && time != NULL && index >= 0 &&
                      (size_t)index < checkpoint->pending_count,
                  "a checkpoint, the index of a pending batch and a place for it");
    if (rc == 0) {
        *time = checkpoint->pending[index];
    }
    return rc;
}
