/*
 * Both stops of a context, phase by phase, in the order of the reference, which came from
 * dead-locks and losses (SPARK-14701, SPARK-22955): receivers, blocks, timer, batches, inputs,
 * writer, jobs, listeners. A graceful stop waits in each for what is under way, up to its time-out;
 * an immediate one waits a little for what can not be cut off.
 */

#include "base/err.h"
#include "base/log.h"
#include "batch/streaming_priv.h"

static int64_t
after(struct sl_streaming *self, int64_t duration_ms)
{
    int64_t until = 0;
    return __builtin_add_overflow(sl__streaming_now(self), duration_ms, &until) ? INT64_MAX : until;
}

static void
drop_loop(struct sl_streaming *self)
{
    sl_vec_clear(&self->loop);
    self->is_checkpointing = false;
    self->is_saving = false;
}

/* Jobs that the driver has not got yet never run; those that it has are waited for. */
static void
drop_jobs(struct sl_streaming *self)
{
    struct sl_job_set *head = sl_job_queue_head(&self->jobs);
    if (head != NULL) {
        head->started -= self->job_works.count;
        sl_vec_clear(&self->job_works);
    }
    for (size_t i = self->jobs.sets.count; i-- > 0;) {
        struct sl_job_set *set = self->jobs.sets.items[i];
        if (set->started == set->ended) {
            sl_job_set_free(set);
            sl_vec_remove(&self->jobs.sets, i);
        }
    }
}

static bool
has_running_jobs(const struct sl_streaming *self)
{
    const struct sl_job_set *head = sl_job_queue_head(&self->jobs);
    return head != NULL && head->started > head->ended;
}

static bool
has_state(const struct sl_streaming *self)
{
    for (size_t i = 0; i < self->graph.nodes.count; i++) {
        const struct sl_graph_node *node = self->graph.nodes.items[i];
        uint32_t stateful = SL_STREAMING_STATEFUL | SL_STREAMING_MUST_CHECKPOINT;
        if (node->is_initialized && (node->flags & stateful) != 0) {
            return true;
        }
    }
    return false;
}

static void
push_work(struct sl_streaming *self, enum sl_streaming_work_kind kind, int64_t time)
{
    struct sl_streaming_work work = {.kind = kind, .time = time, .node = -1, .output = -1};
    sl__streaming_work(self, &work);
}

static int64_t
graceful_timeout(const struct sl_streaming *self)
{
    int64_t set = self->options.graceful_timeout_ms;
    return set != SL_STREAMING_UNKNOWN ? set : 10 * self->graph.batch_ms;
}

static void
begin_save(struct sl_streaming *self)
{
    if (self->is_graceful && self->writer != NULL && !self->has_timed_out && has_state(self) &&
        self->last_generated != SL_STREAMING_UNKNOWN) {
        self->is_saving = true;
        push_work(self, SL_STREAMING_WORK_SAVE_STATE, self->last_generated);
    }
}

/* Does what a phase does once, and sets how long it may take. */
static void
begin_phase(struct sl_streaming *self)
{
    switch (self->stop) {
    case SL__STOP_RECEIVERS:
        sl__streaming_receivers_stop(self);
        self->stop_deadline =
            self->is_graceful ? SL_STREAMING_UNKNOWN : after(self, SL__STOP_RECEIVERS_MS);
        break;
    case SL__STOP_ALLOCATED:
        self->stop_deadline = self->is_graceful ? after(self, graceful_timeout(self)) : INT64_MIN;
        break;
    case SL__STOP_TIMER:
        sl_recurring_timer_stop(&self->timer, !self->is_graceful || self->has_timed_out);
        break;
    case SL__STOP_BATCHES:
        break;
    case SL__STOP_SAVE:
        begin_save(self);
        break;
    case SL__STOP_INPUTS:
        if (!self->is_graceful || self->has_timed_out) {
            drop_loop(self);
        }
        push_work(self, SL_STREAMING_WORK_STOP_INPUTS, SL_STREAMING_UNKNOWN);
        break;
    case SL__STOP_WRITER:
        self->stop_deadline = after(self, SL__STOP_WRITER_MS);
        break;
    case SL__STOP_JOBS:
        if (!self->is_graceful) {
            drop_jobs(self);
        }
        self->stop_deadline =
            after(self, self->is_graceful ? self->options.final_timeout_ms : SL__STOP_JOBS_MS);
        break;
    case SL__STOP_REPORTS:
        self->stop_deadline = SL_STREAMING_UNKNOWN;
        break;
    case SL__STOP_NONE:
    case SL__STOP_DONE:
        break;
    }
}

/* What a phase waits for has come. */
static bool
is_phase_over(struct sl_streaming *self)
{
    bool is_loop_quiet = self->loop.count == 0 && !sl__streaming_is_loop_busy(self);
    switch (self->stop) {
    case SL__STOP_RECEIVERS:
        return sl__streaming_receivers_are_stopped(self);
    case SL__STOP_ALLOCATED:
        return !self->is_graceful || sl_block_tracker_unallocated(&self->tracker) == 0;
    case SL__STOP_TIMER:
        return sl_recurring_timer_is_stopped(&self->timer);
    case SL__STOP_BATCHES:
        return !self->is_graceful || (is_loop_quiet && self->jobs.sets.count == 0);
    case SL__STOP_SAVE:
        return !self->is_graceful || is_loop_quiet;
    case SL__STOP_WRITER:
        return self->writer == NULL || sl_checkpoint_writer_is_idle(self->writer);
    case SL__STOP_JOBS:
        return self->is_graceful ? self->jobs.sets.count == 0 && is_loop_quiet
                                 : !has_running_jobs(self);
    case SL__STOP_REPORTS:
        return sl_list_is_empty(&self->reports) && self->works.count == 0;
    case SL__STOP_NONE:
    case SL__STOP_INPUTS:
    case SL__STOP_DONE:
        return true;
    }
    sl_unreachable();
}

static void
note_time_out(struct sl_streaming *self)
{
    static const char *const waits[] = {
        [SL__STOP_RECEIVERS] = "receivers to end",
        [SL__STOP_ALLOCATED] = "received blocks to get a batch",
        [SL__STOP_TIMER] = "the last tick",
        [SL__STOP_BATCHES] = "batches to complete",
        [SL__STOP_SAVE] = "state to be saved",
        [SL__STOP_WRITER] = "checkpoint files to be written",
        [SL__STOP_JOBS] = "running jobs",
    };
    sl_log_warn("batch.streaming", "a stop has waited long enough for %s and goes on",
                waits[self->stop]);
    self->has_timed_out = true;
    if (self->stop == SL__STOP_TIMER) {
        sl_recurring_timer_stop(&self->timer, true);
    }
}

int64_t
sl__streaming_stop_due(const struct sl_streaming *self)
{
    bool is_waiting = self->stop != SL__STOP_NONE && self->stop != SL__STOP_DONE;
    bool has_deadline = is_waiting && self->stop_deadline != SL_STREAMING_UNKNOWN &&
                        self->stop_deadline != INT64_MIN;
    return has_deadline ? self->stop_deadline : SL_STREAMING_UNKNOWN;
}

bool
sl__streaming_stop_step(struct sl_streaming *self)
{
    if (self->stop == SL__STOP_NONE || self->stop == SL__STOP_DONE) {
        return false;
    }
    if (!self->has_phase_begun) {
        self->has_phase_begun = true;
        begin_phase(self);
    }
    if (!is_phase_over(self)) {
        int64_t deadline = sl__streaming_stop_due(self);
        if (deadline == SL_STREAMING_UNKNOWN || sl__streaming_now(self) < deadline) {
            return false;
        }
        note_time_out(self);
    }
    self->stop++;
    self->has_phase_begun = false;
    if (self->stop == SL__STOP_DONE) {
        self->state = SL_STREAMING_STOPPED;
    }
    return true;
}
