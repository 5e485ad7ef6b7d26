/* The loop of a context: generation, clearing and checkpoints, one event after the other. */

#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "batch/streaming_codec.h"
#include "batch/streaming_priv.h"

void
sl__streaming_post(struct sl_streaming *self, enum sl__loop_event_kind kind, int64_t time,
                   bool is_later)
{
    struct sl__loop_event event = {kind, time, is_later};
    sl_vec_push(&self->loop, event);
}

bool
sl__streaming_is_loop_busy(const struct sl_streaming *self)
{
    return self->generating != NULL || self->is_checkpointing || self->is_saving;
}

static void
log_failure(const char *what, int64_t time)
{
    char text[512];
    sl_log_error("batch.streaming", "%s time=%lld: %s", what, (long long)time,
                 sl_err_format(sl_err_last(), text, sizeof(text)));
}

static void
begin_generation(struct sl_streaming *self, int64_t time, struct sl_streaming_work *work)
{
    int64_t now = sl__streaming_now(self);
    if (sl_block_tracker_allocate(&self->tracker, time, now) != 0) {
        log_failure("received blocks stay for the next batch", time);
    }
    self->generating = sl_job_set_new(time, now);
    *work = (struct sl_streaming_work){
        .kind = SL_STREAMING_WORK_GENERATE, .time = time, .node = -1, .output = -1};
}

/* Works for a dataset that is dropped, and for the blocks it was made of. */
static void
drop_dataset(void *ctx, int32_t number, const struct sl_streaming_dataset *dataset)
{
    struct sl_streaming *self = ctx;
    struct sl_streaming_work work = {
        .kind = SL_STREAMING_WORK_DROP,
        .time = dataset->time,
        .id = dataset->handle,
        .node = number,
        .output = -1,
    };
    sl__streaming_work(self, &work);
}

/* Blocks of batches that their input need not remember any more. */
static void
drop_blocks(struct sl_streaming *self, int64_t time)
{
    for (size_t i = 0; i < self->receivers.count; i++) {
        int32_t number = self->receivers.items[i].node;
        const struct sl_graph_node *node = self->graph.nodes.items[number];
        for (size_t j = 0; j < self->tracker.batches.count; j++) {
            struct sl_tracked_batch *batch = &self->tracker.batches.items[j];
            if (batch->is_dropped[i] || batch->time > time - node->remember_ms) {
                continue;
            }
            batch->is_dropped[i] = true;
            for (size_t k = 0; k < batch->blocks[i].count; k++) {
                struct sl_streaming_work work = {
                    .kind = SL_STREAMING_WORK_DROP_BLOCK,
                    .time = batch->time,
                    .id = batch->blocks[i].items[k].block.id,
                    .node = number,
                    .output = -1,
                };
                sl__streaming_work(self, &work);
            }
        }
    }
}

/* Forgets blocks and input counts that no batch from `time` on can ask for. */
static void
clean_up(struct sl_streaming *self, int64_t time)
{
    int64_t threshold = time - sl_graph_max_input_remember(&self->graph);
    if (sl_block_tracker_cleanup(&self->tracker, threshold, sl__streaming_now(self)) != 0) {
        log_failure("the log of received blocks was not cleaned", time);
    }
    sl_input_info_cleanup(&self->input_info, threshold);
    for (size_t i = 0; i < self->receivers.count; i++) {
        int32_t number = self->receivers.items[i].node;
        struct sl_streaming_work work = {
            .kind = SL_STREAMING_WORK_CLEAN_LOG,
            .time = time - self->graph.nodes.items[number]->remember_ms,
            .node = number,
            .output = -1,
        };
        sl__streaming_work(self, &work);
    }
}

static void
clear_metadata(struct sl_streaming *self, const struct sl__loop_event *event)
{
    sl_graph_clear_metadata(&self->graph, event->time, drop_dataset, self);
    drop_blocks(self, event->time);
    if (!event->is_later) {
        return;
    }
    if (self->writer != NULL) {
        sl__streaming_post(self, SL__LOOP_DO_CHECKPOINT, event->time, true);
    } else {
        clean_up(self, event->time);
    }
}

static void
remove_file(void *ctx, const char *text)
{
    (void)ctx;
    if (unlink(text) != 0) {
        sl_log_info("batch.checkpoint", "%s was gone already", text);
    }
}

/* True when the driver has something to do for the event. */
static bool
handle(struct sl_streaming *self, const struct sl__loop_event *event,
       struct sl_streaming_work *work)
{
    switch (event->kind) {
    case SL__LOOP_GENERATE:
        begin_generation(self, event->time, work);
        return true;
    case SL__LOOP_CLEAR_METADATA:
        clear_metadata(self, event);
        return false;
    case SL__LOOP_DO_CHECKPOINT:
        if (self->writer == NULL) {
            return false;
        }
        sl_graph_update_checkpoint(&self->graph, event->time);
        self->is_checkpointing = true;
        self->checkpointing = *event;
        *work = (struct sl_streaming_work){
            .kind = SL_STREAMING_WORK_CHECKPOINT, .time = event->time, .node = -1, .output = -1};
        return true;
    case SL__LOOP_CLEAR_CHECKPOINT_DATA:
        sl_graph_clear_checkpoint(&self->graph, event->time, remove_file, self);
        clean_up(self, event->time);
        return false;
    }
    sl_unreachable();
}

bool
sl__streaming_loop(struct sl_streaming *self, struct sl_streaming_work *work)
{
    while (self->loop.count > 0 && !sl__streaming_is_loop_busy(self)) {
        struct sl__loop_event event = self->loop.items[0];
        sl_vec_remove(&self->loop, 0);
        if (handle(self, &event, work)) {
            return true;
        }
        if (self->works.count > 0) {
            return false;
        }
    }
    return false;
}

static int
check_generating(struct sl_streaming *self, int64_t time)
{
    if (self->generating == NULL || self->generating->time != time) {
        return sl_err_set(SL_ECONFLICT, "no jobs are being generated for batch %lld ms",
                          (long long)time);
    }
    return 0;
}

int
sl_streaming_input_report(struct sl_streaming *self, int32_t number, int64_t time, int64_t records,
                          const char *metadata)
{
    pthread_mutex_lock(&self->lock);
    const struct sl_graph_node *node = sl_graph_node(&self->graph, number);
    int rc = SL_EINVAL;
    if (node != NULL && node->input_id < 0) {
        sl_err_set(SL_EINVAL, "stream %s is no input", node->name);
    } else if (node != NULL) {
        struct sl_streaming_input input = {records, metadata, node->input_id, number};
        rc = sl_input_info_report(&self->input_info, time, &input);
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

int32_t
sl_streaming_job_add(struct sl_streaming *self, int64_t time, int32_t number)
{
    pthread_mutex_lock(&self->lock);
    const struct sl_graph_node *node = sl_graph_node(&self->graph, number);
    int32_t output = node == NULL ? SL_EINVAL : check_generating(self, time);
    if (output == 0 && (node->flags & SL_STREAMING_OUTPUT) == 0) {
        output = sl_err_set(SL_EINVAL, "stream %s is no output operation", node->name);
    }
    if (output == 0) {
        output = sl_job_queue_add(&self->jobs, self->generating, number);
    }
    pthread_mutex_unlock(&self->lock);
    return output;
}

/* The set enters the queue; one without jobs waits there for its turn to be cleared silently. */
static void
submit(struct sl_streaming *self, struct sl_job_set *set)
{
    sl_input_info_fill(&self->input_info, set);
    set->submission = sl__streaming_now(self);
    if (set->jobs.count == 0) {
        sl_log_verbose("batch.streaming", "a batch has no jobs time=%lld", (long long)set->time);
    } else {
        sl__streaming_tell(
            self, sl_report_batch_new(SL_STREAMING_EVENT_BATCH_SUBMITTED, &self->graph, set, -1));
    }
    sl_job_queue_submit(&self->jobs, set);
    sl__streaming_finish_batches(self);
}

static void
forget_rerun(struct sl_streaming *self, int64_t time)
{
    for (size_t i = 0; i < self->reruns.count; i++) {
        if (self->reruns.items[i] == time) {
            sl_vec_remove(&self->reruns, i);
            return;
        }
    }
}

int
sl_streaming_generated(struct sl_streaming *self, int64_t time, const char *error)
{
    pthread_mutex_lock(&self->lock);
    int rc = check_generating(self, time);
    if (rc != 0) {
        goto out;
    }
    struct sl_job_set *set = self->generating;
    self->generating = NULL;
    self->last_generated = time;
    forget_rerun(self, time);
    /* An immediate stop has ended the loop in the meantime. */
    if (self->stop > SL__STOP_BATCHES) {
        sl_job_set_free(set);
    } else if (error != NULL) {
        sl_log_error("batch.streaming", "a batch is lost, its generation failed time=%lld: %s",
                     (long long)time, error);
        self->progress.failed_batches++;
        sl_job_set_free(set);
        sl__streaming_post(self, SL__LOOP_DO_CHECKPOINT, time, false);
    } else {
        sl__streaming_post(self, SL__LOOP_DO_CHECKPOINT, time, false);
        submit(self, set);
    }
    sl__streaming_notify(self);
out:
    pthread_mutex_unlock(&self->lock);
    return rc;
}

/* Keeps the newest reports in a ring. */
static void
retain(struct sl_streaming *self, struct sl_report *take_report)
{
    if (self->completed.count < (size_t)self->options.retained_batches) {
        sl_vec_push(&self->completed, take_report);
        self->completed_next = self->completed.count % (size_t)self->options.retained_batches;
        return;
    }
    sl_report_free(self->completed.items[self->completed_next]);
    self->completed.items[self->completed_next] = take_report;
    self->completed_next = (self->completed_next + 1) % self->completed.count;
}

static void
count_batch(struct sl_streaming *self, const struct sl_streaming_report *body, bool has_failed)
{
    struct sl_streaming_progress *progress = &self->progress;
    progress->completed_batches++;
    progress->failed_batches += has_failed;
    progress->processed_records += body->records;
    progress->last_completed = body->time;
    progress->last_processing_delay_ms = body->processing_delay_ms;
    progress->last_total_delay_ms = body->total_delay_ms;
    bool is_slow = body->processing_delay_ms > self->graph.batch_ms;
    progress->slow_batches = is_slow ? progress->slow_batches + 1 : 0;
    if (progress->slow_batches >= SL__SLOW_BATCHES &&
        progress->slow_batches % SL__SLOW_BATCHES == 0) {
        sl_log_warn("batch.streaming",
                    "batches take longer than their interval: processing_ms=%lld interval_ms=%lld "
                    "queue=%zu",
                    (long long)body->processing_delay_ms, (long long)self->graph.batch_ms,
                    self->jobs.sets.count);
    }
}

static void
complete(struct sl_streaming *self, const struct sl_job_set *set)
{
    if (set->failed > 0) {
        sl_vec_push(&self->failed, set->time);
    }
    sl__streaming_tell(
        self, sl_report_batch_new(SL_STREAMING_EVENT_BATCH_COMPLETED, &self->graph, set, -1));
    struct sl_report *kept =
        sl_report_batch_new(SL_STREAMING_EVENT_BATCH_COMPLETED, &self->graph, set, -1);
    count_batch(self, &kept->body, set->failed > 0);
    retain(self, kept);
    sl__streaming_rates(self, set);
}

void
sl__streaming_finish_batches(struct sl_streaming *self)
{
    struct sl_job_set *set = NULL;
    while ((set = sl_job_queue_head(&self->jobs)) != NULL && sl_job_set_is_done(set)) {
        set = sl_job_queue_take_head(&self->jobs);
        if (set->jobs.count > 0) {
            complete(self, set);
        }
        sl__streaming_post(self, SL__LOOP_CLEAR_METADATA, set->time, set->failed == 0);
        sl_job_set_free(set);
    }
}

int
sl_streaming_job_end(struct sl_streaming *self, uint64_t id, const char *error)
{
    pthread_mutex_lock(&self->lock);
    struct sl_job *job = NULL;
    int rc = sl_job_queue_end(&self->jobs, id, error, sl__streaming_now(self), &job);
    if (rc == 0) {
        struct sl_job_set *set = sl_job_queue_head(&self->jobs);
        sl__streaming_tell(self, sl_report_batch_new(SL_STREAMING_EVENT_OPERATION_COMPLETED,
                                                     &self->graph, set, job->output));
        sl__streaming_finish_batches(self);
        sl__streaming_notify(self);
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

int
sl_streaming_saved(struct sl_streaming *self, int32_t number, int64_t time, const char *text)
{
    pthread_mutex_lock(&self->lock);
    struct sl_graph_node *node = sl_graph_node(&self->graph, number);
    if (node != NULL) {
        sl_graph_saved_add(node, time, text);
    }
    pthread_mutex_unlock(&self->lock);
    return node != NULL ? 0 : SL_EINVAL;
}

int
sl_streaming_saved_get(struct sl_streaming *self, int32_t number, int32_t index,
                       struct sl_streaming_saved *out)
{
    pthread_mutex_lock(&self->lock);
    const struct sl_graph_node *node = sl_graph_node(&self->graph, number);
    int rc = SL_EINVAL;
    if (node != NULL && index >= 0 && (size_t)index < node->saved.count) {
        *out = (struct sl_streaming_saved){node->saved.items[index].time,
                                           node->saved.items[index].text};
        rc = 0;
    } else if (node != NULL) {
        rc = sl_err_set(SL_ENOTFOUND, "stream %s has %zu saved datasets", node->name,
                        node->saved.count);
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

int
sl_streaming_state_saved(struct sl_streaming *self)
{
    pthread_mutex_lock(&self->lock);
    int rc = self->is_saving ? 0 : sl_err_set(SL_ECONFLICT, "no state was asked for");
    if (rc == 0) {
        self->is_saving = false;
        sl__streaming_post(self, SL__LOOP_DO_CHECKPOINT, self->last_generated, true);
        sl__streaming_notify(self);
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

static void
fill_pending(const struct sl_streaming *self, struct sl_checkpoint *checkpoint)
{
    size_t most = self->failed.count + self->jobs.sets.count + self->reruns.count;
    int64_t *times = sl_arena_calloc(&checkpoint->arena, most, sizeof(*times));
    size_t count = 0;
    for (size_t i = 0; i < self->failed.count; i++) {
        times[count++] = self->failed.items[i];
    }
    for (size_t i = 0; i < self->jobs.sets.count; i++) {
        if (self->jobs.sets.items[i]->jobs.count > 0) {
            times[count++] = self->jobs.sets.items[i]->time;
        }
    }
    for (size_t i = 0; i < self->reruns.count; i++) {
        times[count++] = self->reruns.items[i];
    }
    checkpoint->pending = times;
    checkpoint->pending_count = count;
}

static void
fill_stream(struct sl_arena *arena, const struct sl_graph_node *node,
            struct sl_checkpoint_stream *stream)
{
    stream->name = node->name;
    stream->flags = node->flags;
    stream->saved = sl_arena_calloc(arena, node->current.count, sizeof(stream->saved[0]));
    for (size_t i = 0; i < node->current.count; i++) {
        const struct sl_graph_saved *saved = sl_graph_saved_at(node, node->current.items[i]);
        if (saved != NULL) {
            stream->saved[stream->saved_count++] =
                (struct sl_streaming_saved){saved->time, saved->text};
        }
    }
}

static void
fill_checkpoint(const struct sl_streaming *self, struct sl_checkpoint *checkpoint)
{
    checkpoint->name = self->options.name;
    checkpoint->script = self->options.script;
    checkpoint->script_hash = self->options.script_hash;
    checkpoint->time = self->checkpointing.time;
    checkpoint->zero_time = self->graph.zero_time;
    checkpoint->batch_ms = self->graph.batch_ms;
    fill_pending(self, checkpoint);
    checkpoint->stream_count = self->graph.nodes.count;
    checkpoint->streams = sl_arena_calloc(&checkpoint->arena, checkpoint->stream_count,
                                          sizeof(checkpoint->streams[0]));
    for (size_t i = 0; i < checkpoint->stream_count; i++) {
        fill_stream(&checkpoint->arena, self->graph.nodes.items[i], &checkpoint->streams[i]);
    }
}

int
sl_streaming_checkpoint_write(struct sl_streaming *self, const uint8_t *extra, size_t len)
{
    pthread_mutex_lock(&self->lock);
    int rc = 0;
    if (!self->is_checkpointing) {
        rc = sl_err_set(SL_ECONFLICT, "no checkpoint was asked for");
        goto out;
    }
    struct sl_checkpoint checkpoint;
    struct sl_buf bytes = {0};
    sl_checkpoint_create(&checkpoint);
    fill_checkpoint(self, &checkpoint);
    checkpoint.extra = extra;
    checkpoint.extra_len = len;
    rc = sl_checkpoint_encode(&checkpoint, &bytes);
    sl_checkpoint_destroy(&checkpoint);
    self->is_checkpointing = false;
    if (rc == 0) {
        int64_t clear =
            self->checkpointing.is_later ? self->checkpointing.time : SL_STREAMING_UNKNOWN;
        rc = sl_checkpoint_writer_write(self->writer, &bytes, self->checkpointing.time, clear);
    }
    sl_buf_destroy(&bytes);
    sl__streaming_notify(self);
out:
    pthread_mutex_unlock(&self->lock);
    return rc;
}
