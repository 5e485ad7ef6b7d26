#include "batch/streaming.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "batch/files.h"
#include "batch/grid.h"
#include "batch/streaming_priv.h"

void
sl_streaming_options_default(struct sl_streaming_options *options)
{
    *options = (struct sl_streaming_options){
        .batch_ms = 1000,
        .graceful_timeout_ms = SL_STREAMING_UNKNOWN,
        .final_timeout_ms = 3600000,
        .block_interval_ms = 200,
        .receiver_restart_ms = 2000,
        .wal_rolling_ms = 60000,
        .concurrent_jobs = 1,
        .catch_up_max = 10,
        .retained_batches = 1000,
        .checkpoint_keep = 10,
        .proportional = 1,
        .integral = 0.2,
        .min_rate = 100,
    };
}

static int
check_options(const struct sl_streaming_options *options)
{
    const struct {
        const char *name;
        int64_t value;
        int64_t least;
    } numbers[] = {
        {"batch interval", options->batch_ms, 1},
        {"phase", options->phase_ms, 0},
        {"graceful time-out", options->graceful_timeout_ms, SL_STREAMING_UNKNOWN},
        {"final time-out", options->final_timeout_ms, 0},
        {"block interval", options->block_interval_ms, 1},
        {"receiver restart delay", options->receiver_restart_ms, 0},
        {"log interval", options->wal_rolling_ms, 1},
        {"number of concurrent jobs", options->concurrent_jobs, 1},
        {"number of batches made up", options->catch_up_max, 0},
        {"number of retained batches", options->retained_batches, 1},
        {"number of checkpoints kept", options->checkpoint_keep, 2},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (numbers[i].value < numbers[i].least) {
            return sl_err_set(SL_EINVAL, "the %s must be %lld or more, not %lld", numbers[i].name,
                              (long long)numbers[i].least, (long long)numbers[i].value);
        }
    }
    if (options->phase_ms >= options->batch_ms) {
        return sl_err_set(SL_EINVAL, "the phase must be below the batch interval of %lld ms",
                          (long long)options->batch_ms);
    }
    struct sl_pid pid;
    return sl_pid_create(&pid, options->batch_ms, options->proportional, options->integral,
                         options->derived, options->min_rate);
}

static char *
text_dup(const char *text)
{
    return text != NULL ? sl_strdup(text) : NULL;
}

static void
free_const(const void *ptr)
{
    sl_free((void *)(uintptr_t)ptr);
}

static void
create_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct sl_streaming *
sl_streaming_new(const struct sl_streaming_options *options, const struct sl_clock *clock,
                 bool is_manual)
{
    if (check_options(options) != 0 ||
        (options->checkpoint_dir != NULL && sl_files_make_dirs(options->checkpoint_dir) != 0)) {
        return NULL;
    }
    struct sl_streaming *self = sl_calloc(1, sizeof(*self));
    self->options = *options;
    self->options.name = sl_strdup(options->name != NULL ? options->name : "");
    self->options.checkpoint_dir = text_dup(options->checkpoint_dir);
    self->options.script = text_dup(options->script);
    self->options.script_hash = text_dup(options->script_hash);
    self->clock = clock;
    self->is_manual = is_manual;
    self->last_generated = SL_STREAMING_UNKNOWN;
    self->stop_deadline = SL_STREAMING_UNKNOWN;
    self->progress.started_at = SL_STREAMING_UNKNOWN;
    self->progress.last_completed = SL_STREAMING_UNKNOWN;
    self->progress.last_processing_delay_ms = SL_STREAMING_UNKNOWN;
    self->progress.last_total_delay_ms = SL_STREAMING_UNKNOWN;
    pthread_mutex_init(&self->lock, NULL);
    create_condition(&self->changed);
    sl_graph_create(&self->graph, options->batch_ms);
    sl_recurring_timer_create(&self->timer, clock, is_manual, options->batch_ms, options->phase_ms,
                              options->catch_up_max);
    sl_job_queue_create(&self->jobs, options->concurrent_jobs);
    sl_block_tracker_create(&self->tracker);
    sl_list_create(&self->reports);
    return self;
}

static void
free_receivers(struct sl_streaming *self)
{
    for (size_t i = 0; i < self->receivers.count; i++) {
        sl_free(self->receivers.items[i].last_error);
        free_const(self->placement.items[i].preferred_host);
        sl_vec_destroy(&self->placement.items[i].places);
    }
    for (size_t i = 0; i < self->workers.count; i++) {
        sl_free(self->workers.items[i].name);
        sl_free(self->workers.items[i].host);
    }
    sl_vec_destroy(&self->receivers);
    sl_vec_destroy(&self->placement);
    sl_vec_destroy(&self->workers);
    sl_vec_destroy(&self->worker_hosts);
}

static void
free_reports(struct sl_streaming *self)
{
    struct sl_list_node *node = NULL;
    while ((node = sl_list_pop_front(&self->reports)) != NULL) {
        sl_report_free(sl_container_of(node, struct sl_report, node));
    }
    for (size_t i = 0; i < self->completed.count; i++) {
        sl_report_free(self->completed.items[i]);
    }
    sl_report_free(self->report);
    sl_vec_destroy(&self->completed);
}

void
sl_streaming_free(struct sl_streaming *self)
{
    if (self == NULL) {
        return;
    }
    if (self->writer != NULL) {
        sl_checkpoint_writer_destroy(self->writer);
        sl_free(self->writer);
    }
    free_receivers(self);
    free_reports(self);
    sl_job_set_free(self->generating);
    sl_job_queue_destroy(&self->jobs);
    sl_input_info_destroy(&self->input_info);
    sl_block_tracker_destroy(&self->tracker);
    sl_graph_destroy(&self->graph);
    sl_vec_destroy(&self->loop);
    sl_vec_destroy(&self->reruns);
    sl_vec_destroy(&self->failed);
    sl_vec_destroy(&self->works);
    sl_vec_destroy(&self->job_works);
    sl_vec_destroy(&self->restored_pending);
    free_const(self->options.name);
    free_const(self->options.checkpoint_dir);
    free_const(self->options.script);
    free_const(self->options.script_hash);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    sl_free(self);
}

static void
lock(struct sl_streaming *self)
{
    pthread_mutex_lock(&self->lock);
}

static void
unlock(struct sl_streaming *self)
{
    pthread_mutex_unlock(&self->lock);
}

int64_t
sl__streaming_now(struct sl_streaming *self)
{
    return sl_recurring_timer_now(&self->timer);
}

void
sl__streaming_notify(struct sl_streaming *self)
{
    self->is_woken = true;
    pthread_cond_broadcast(&self->changed);
}

void
sl__streaming_work(struct sl_streaming *self, const struct sl_streaming_work *work)
{
    sl_vec_push(&self->works, *work);
}

void
sl__streaming_tell(struct sl_streaming *self, struct sl_report *take_report)
{
    sl_list_push_back(&self->reports, &take_report->node);
}

/* SL_ECONFLICT unless the context can still be changed. */
int
sl__streaming_open(struct sl_streaming *self, const char *what)
{
    if (self->state == SL_STREAMING_INITIALIZED && !self->is_restored) {
        return 0;
    }
    const char *why = "the context was restored from a checkpoint: define it in the function that "
                      "creates the context";
    if (self->state != SL_STREAMING_INITIALIZED) {
        why = self->state == SL_STREAMING_ACTIVE ? "the context has been started"
                                                 : "the context has been stopped";
    }
    return sl_err_set(SL_ECONFLICT, "%s is refused: %s", what, why);
}

int
sl_streaming_state(struct sl_streaming *self)
{
    lock(self);
    int state = self->state;
    unlock(self);
    return state;
}

int
sl_streaming_checkpoint_dir(struct sl_streaming *self, const char *dir)
{
    lock(self);
    int rc = sl__streaming_open(self, "a checkpoint directory");
    if (rc == 0 && dir != NULL) {
        rc = sl_files_make_dirs(dir);
    }
    if (rc == 0) {
        free_const(self->options.checkpoint_dir);
        self->options.checkpoint_dir = text_dup(dir);
    }
    unlock(self);
    return rc;
}

int
sl_streaming_remember(struct sl_streaming *self, int64_t remember_ms)
{
    lock(self);
    int rc = sl__streaming_open(self, "a remember duration");
    if (rc == 0 && self->graph.remember_ms != 0) {
        rc = sl_err_set(SL_ECONFLICT, "the remember duration is set to %lld ms already",
                        (long long)self->graph.remember_ms);
    }
    if (rc == 0 && remember_ms <= 0) {
        rc = sl_err_set(SL_EINVAL, "a remember duration must be above 0");
    }
    if (rc == 0) {
        self->graph.remember_ms = remember_ms;
    }
    unlock(self);
    return rc;
}

static void
add_receiver(struct sl_streaming *self, int32_t node)
{
    struct sl__receiver receiver = {
        .node = node,
        .input_id = self->graph.nodes.items[node]->input_id,
        .last_error_time = SL_STREAMING_UNKNOWN,
        .restart_at = SL_STREAMING_UNKNOWN,
    };
    struct sl_placement_receiver placement = {.worker = -1};
    sl_vec_push(&self->receivers, receiver);
    sl_vec_push(&self->placement, placement);
}

int32_t
sl_streaming_node_add(struct sl_streaming *self, const struct sl_streaming_node *node)
{
    lock(self);
    int32_t number = sl__streaming_open(self, node->name != NULL ? node->name : "a stream");
    if (number == 0) {
        number = sl_graph_add(&self->graph, node);
    }
    if (number >= 0 && (node->flags & SL_STREAMING_RECEIVER) != 0) {
        add_receiver(self, number);
    }
    unlock(self);
    return number;
}

int
sl_streaming_node_name(struct sl_streaming *self, int32_t node, const char *name)
{
    lock(self);
    int rc = sl__streaming_open(self, "a name");
    rc = rc == 0 ? sl_graph_rename(&self->graph, node, name) : rc;
    unlock(self);
    return rc;
}

int
sl_streaming_node_remember(struct sl_streaming *self, int32_t number, int64_t ms)
{
    lock(self);
    struct sl_graph_node *node = sl_graph_node(&self->graph, number);
    int rc = node == NULL ? SL_EINVAL : sl__streaming_open(self, "a remember duration");
    if (rc == 0 && ms > node->remember_ms) {
        node->remember_ms = ms;
    }
    unlock(self);
    return rc;
}

int
sl_streaming_node_checkpoint(struct sl_streaming *self, int32_t number, int64_t ms)
{
    lock(self);
    struct sl_graph_node *node = sl_graph_node(&self->graph, number);
    int rc = node == NULL ? SL_EINVAL : sl__streaming_open(self, "a checkpoint interval");
    if (rc == 0 && ms <= 0) {
        rc = sl_err_set(SL_EINVAL, "%s: a checkpoint interval must be above 0", node->name);
    }
    if (rc == 0) {
        node->checkpoint_ms = ms;
        node->flags |= SL_STREAMING_PERSIST;
    }
    unlock(self);
    return rc;
}

int
sl_streaming_node_persist(struct sl_streaming *self, int32_t number, bool is_on)
{
    lock(self);
    struct sl_graph_node *node = sl_graph_node(&self->graph, number);
    int rc = node == NULL ? SL_EINVAL : sl__streaming_open(self, "a storage level");
    if (rc == 0) {
        node->flags &= ~(uint32_t)SL_STREAMING_PERSIST;
        node->flags |= is_on ? SL_STREAMING_PERSIST : 0;
    }
    unlock(self);
    return rc;
}

int
sl_streaming_node_get(struct sl_streaming *self, int32_t number, struct sl_streaming_node *out)
{
    lock(self);
    const struct sl_graph_node *node = sl_graph_node(&self->graph, number);
    if (node != NULL) {
        *out = (struct sl_streaming_node){
            .name = node->name,
            .call_site = node->call_site,
            .slide_ms = node->slide_ms,
            .window_ms = node->window_ms,
            .remember_ms = node->remember_ms,
            .checkpoint_ms = node->checkpoint_ms,
            .parents = node->parents.items,
            .parent_count = (int32_t)node->parents.count,
            .flags = node->flags,
            .input_id = node->input_id,
            .is_initialized = node->is_initialized,
        };
    }
    unlock(self);
    return node != NULL ? 0 : SL_EINVAL;
}

int32_t
sl_streaming_node_count(struct sl_streaming *self)
{
    lock(self);
    int32_t count = (int32_t)self->graph.nodes.count;
    unlock(self);
    return count;
}

/* SL_ECONFLICT names the first stateful stream of the checkpoint that the graph has not. */
static int
check_streams(struct sl_streaming *self, const struct sl_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->stream_count; i++) {
        const struct sl_checkpoint_stream *stream = &checkpoint->streams[i];
        if ((stream->flags & SL_STREAMING_STATEFUL) != 0 &&
            sl_graph_find_name(&self->graph, stream->name) < 0) {
            return sl_err_set(SL_ECONFLICT,
                              "the checkpoint has the state of stream %s, which the program has no "
                              "more",
                              stream->name);
        }
    }
    return 0;
}

int
sl_streaming_restore(struct sl_streaming *self, const struct sl_checkpoint *checkpoint,
                     bool drop_missing)
{
    lock(self);
    int rc = sl__streaming_open(self, "a checkpoint");
    if (rc == 0 && checkpoint->batch_ms != self->graph.batch_ms) {
        rc = sl_err_set(SL_ECONFLICT,
                        "the checkpoint has a batch interval of %lld ms, the program one of "
                        "%lld ms",
                        (long long)checkpoint->batch_ms, (long long)self->graph.batch_ms);
    }
    if (rc == 0 && !drop_missing) {
        rc = check_streams(self, checkpoint);
    }
    if (rc != 0) {
        goto out;
    }
    for (size_t i = 0; i < checkpoint->stream_count; i++) {
        const struct sl_checkpoint_stream *stream = &checkpoint->streams[i];
        int32_t number = sl_graph_find_name(&self->graph, stream->name);
        for (size_t j = 0; number >= 0 && j < stream->saved_count; j++) {
            struct sl_graph_node *node = self->graph.nodes.items[number];
            sl_graph_saved_add(node, stream->saved[j].time, stream->saved[j].text);
            sl_vec_push(&node->current, stream->saved[j].time);
        }
    }
    for (size_t i = 0; i < checkpoint->pending_count; i++) {
        sl_vec_push(&self->restored_pending, checkpoint->pending[i]);
    }
    self->is_restored = true;
    self->restored_time = checkpoint->time;
    self->restored_zero_time = checkpoint->zero_time;
out:
    unlock(self);
    return rc;
}

static int
compare_times(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/*
 * Puts the batches to run again before the first tick into the loop: those that were pending, the
 * one of the checkpoint, and those that the down-time has missed.
 */
static void
post_reruns(struct sl_streaming *self, int64_t first_tick)
{
    SL_VEC(int64_t) times = SL_VEC_INIT;
    for (size_t i = 0; i < self->restored_pending.count; i++) {
        if (self->restored_pending.items[i] < first_tick) {
            sl_vec_push(&times, self->restored_pending.items[i]);
        }
    }
    int64_t batch_ms = self->graph.batch_ms;
    int64_t end = self->options.skip_down_time != 0 ? self->restored_time + 1 : first_tick;
    for (int64_t time = self->restored_time; time < end; time += batch_ms) {
        sl_vec_push(&times, time);
    }
    qsort(times.items, times.count, sizeof(times.items[0]), compare_times);
    for (size_t i = 0; i < times.count; i++) {
        bool is_batch = times.items[i] > self->graph.zero_time;
        if (is_batch && (i == 0 || times.items[i] != times.items[i - 1])) {
            sl_vec_push(&self->reruns, times.items[i]);
            sl__streaming_post(self, SL__LOOP_GENERATE, times.items[i], false);
        }
    }
    sl_log_info("batch.streaming", "restarts from the checkpoint of %lld ms batches_to_run=%zu",
                (long long)self->restored_time, self->reruns.count);
    sl_vec_destroy(&times);
}

static int
open_tracker(struct sl_streaming *self)
{
    for (size_t i = 0; i < self->receivers.count; i++) {
        int32_t node = self->receivers.items[i].node;
        sl_block_tracker_input(&self->tracker, self->graph.nodes.items[node]->name);
    }
    if (self->options.checkpoint_dir == NULL || self->receivers.count == 0) {
        return 0;
    }
    char *dir = sl_asprintf("%s/receivedBlockMetadata", self->options.checkpoint_dir);
    int rc =
        sl_block_tracker_open(&self->tracker, dir, self->options.wal_rolling_ms, self->is_restored);
    sl_free(dir);
    return rc;
}

static void
writer_wakes(void *ctx)
{
    sl_streaming_wake(ctx);
}

static void
start_writer(struct sl_streaming *self)
{
    if (self->options.checkpoint_dir != NULL) {
        self->writer = sl_alloc(sizeof(*self->writer));
        sl_checkpoint_writer_create(self->writer, self->options.checkpoint_dir,
                                    self->options.checkpoint_keep, writer_wakes, self);
        if (self->is_restored) {
            /* What is written from now on is newer than the file that was read. */
            self->writer->latest_time = self->restored_time;
        }
    }
}

/* When the first tick comes, and with a checkpoint never again a time that has been. */
static int64_t
first_tick(struct sl_streaming *self)
{
    if (!self->is_restored) {
        return sl_recurring_timer_start_time(&self->timer);
    }
    sl_recurring_timer_not_before(&self->timer, self->restored_time);
    int64_t tick = sl_recurring_timer_restart_time(&self->timer, self->restored_zero_time);
    int64_t next = self->restored_time + self->graph.batch_ms;
    return tick > next ? tick : next;
}

static int
start_locked(struct sl_streaming *self)
{
    int64_t tick = first_tick(self);
    int64_t zero = self->is_restored ? self->restored_zero_time : tick - self->graph.batch_ms;
    int rc = sl_graph_start(&self->graph, zero, self->options.checkpoint_dir != NULL);
    if (rc == 0) {
        rc = open_tracker(self);
    }
    if (rc == 0) {
        rc = sl__streaming_receivers_start(self);
    }
    if (rc != 0) {
        self->graph.zero_time = SL_STREAMING_UNKNOWN;
        self->state = SL_STREAMING_STOPPED;
        self->stop = SL__STOP_DONE;
        return rc;
    }
    start_writer(self);
    self->state = SL_STREAMING_ACTIVE;
    self->progress.started_at = sl__streaming_now(self);
    sl__streaming_tell(self,
                       sl_report_time_new(SL_STREAMING_EVENT_STARTED, self->progress.started_at));
    struct sl_streaming_work inputs = {
        .kind = SL_STREAMING_WORK_START_INPUTS, .time = zero, .node = -1, .output = -1};
    sl__streaming_work(self, &inputs);
    if (self->is_restored) {
        post_reruns(self, tick);
    }
    return sl_recurring_timer_start(&self->timer, tick);
}

int
sl_streaming_start(struct sl_streaming *self)
{
    lock(self);
    int rc = 0;
    if (self->state == SL_STREAMING_ACTIVE) {
        rc = 1;
    } else if (self->state == SL_STREAMING_STOPPED) {
        rc = sl_err_set(SL_ECONFLICT, "a context that was stopped can not be started again");
    } else {
        rc = start_locked(self);
    }
    sl__streaming_notify(self);
    unlock(self);
    return rc;
}

int
sl_streaming_stop(struct sl_streaming *self, bool is_graceful)
{
    lock(self);
    int rc = 0;
    if (self->state == SL_STREAMING_STOPPED) {
        rc = 1;
    } else if (self->state == SL_STREAMING_INITIALIZED) {
        self->state = SL_STREAMING_STOPPED;
        self->stop = SL__STOP_DONE;
    } else if (self->stop == SL__STOP_NONE) {
        self->stop = SL__STOP_RECEIVERS;
        self->is_graceful = is_graceful;
        self->has_phase_begun = false;
    } else if (self->is_graceful && !is_graceful) {
        self->is_graceful = false;
        self->has_phase_begun = false;
    }
    sl__streaming_notify(self);
    unlock(self);
    return rc;
}

static bool
take_work(struct sl_streaming *self, struct sl_streaming_work *work)
{
    if (self->works.count == 0) {
        return false;
    }
    *work = self->works.items[0];
    sl_vec_remove(&self->works, 0);
    return true;
}

static bool
take_report(struct sl_streaming *self, struct sl_streaming_work *work)
{
    struct sl_list_node *node = sl_list_pop_front(&self->reports);
    if (node == NULL) {
        return false;
    }
    self->report = sl_container_of(node, struct sl_report, node);
    *work = (struct sl_streaming_work){
        .kind = SL_STREAMING_WORK_EVENT,
        .event = self->report->event,
        .time = self->report->body.time,
        .node = -1,
        .output = -1,
    };
    return true;
}

/* Starts what may run now; its events come before it. */
static void
start_jobs(struct sl_streaming *self)
{
    bool is_ending = self->stop != SL__STOP_NONE && !self->is_graceful;
    struct sl_job *job = NULL;
    int64_t now = sl__streaming_now(self);
    while (!is_ending && (job = sl_job_queue_start(&self->jobs, now)) != NULL) {
        struct sl_job_set *set = sl_job_queue_head(&self->jobs);
        if (set->started == 1) {
            for (size_t i = 0; i < set->inputs.count; i++) {
                self->progress.received_records += set->inputs.items[i].records;
            }
            sl__streaming_tell(
                self, sl_report_batch_new(SL_STREAMING_EVENT_BATCH_STARTED, &self->graph, set, -1));
        }
        sl__streaming_tell(self, sl_report_batch_new(SL_STREAMING_EVENT_OPERATION_STARTED,
                                                     &self->graph, set, job->output));
        struct sl_streaming_work work = {
            .kind = SL_STREAMING_WORK_RUN_JOB,
            .time = set->time,
            .id = job->id,
            .node = job->node,
            .output = job->output,
        };
        sl_vec_push(&self->job_works, work);
    }
}

static bool
take_job(struct sl_streaming *self, struct sl_streaming_work *work)
{
    if (self->job_works.count == 0) {
        return false;
    }
    *work = self->job_works.items[0];
    sl_vec_remove(&self->job_works, 0);
    return true;
}

/* Looks at clock and writer: what is due becomes events. */
static void
poll(struct sl_streaming *self)
{
    int64_t tick = 0;
    /* One tick a turn: with a clock far ahead there would be no end. */
    if (self->state == SL_STREAMING_ACTIVE && self->loop.count == 0 &&
        sl_recurring_timer_fire(&self->timer, &tick)) {
        sl__streaming_post(self, SL__LOOP_GENERATE, tick, false);
    }
    self->progress.skipped_batches = (int64_t)self->timer.skipped;
    struct sl_checkpoint_done done;
    if (self->writer != NULL && sl_checkpoint_writer_poll(self->writer, &done) &&
        done.clear_time != SL_STREAMING_UNKNOWN) {
        sl__streaming_post(self, SL__LOOP_CLEAR_CHECKPOINT_DATA, done.clear_time, false);
    }
    sl__streaming_receivers_poll(self);
}

static int64_t
earlier(int64_t a, int64_t b)
{
    if (a == SL_STREAMING_UNKNOWN || b == SL_STREAMING_UNKNOWN) {
        return a == SL_STREAMING_UNKNOWN ? b : a;
    }
    return a < b ? a : b;
}

static int64_t
next_due(struct sl_streaming *self)
{
    int64_t due = sl_recurring_timer_due(&self->timer);
    due = earlier(due, sl__streaming_receivers_due(self));
    return earlier(due, sl__streaming_stop_due(self));
}

/* Nothing that the loop could do now. */
static bool
is_settled(struct sl_streaming *self)
{
    if (sl__streaming_is_loop_busy(self) || self->stop == SL__STOP_DONE) {
        return true;
    }
    int64_t tick = sl_recurring_timer_due(&self->timer);
    bool is_due = tick != SL_STREAMING_UNKNOWN && tick <= sl__streaming_now(self);
    return self->loop.count == 0 && !is_due;
}

/* Finds the next work, or makes one step and returns false. */
static bool
find_work(struct sl_streaming *self, struct sl_streaming_work *work)
{
    poll(self);
    while (sl__streaming_stop_step(self)) {
    }
    if (take_work(self, work) || sl__streaming_loop(self, work) || take_work(self, work) ||
        take_report(self, work)) {
        return true;
    }
    start_jobs(self);
    if (take_report(self, work) || take_job(self, work)) {
        return true;
    }
    /* What was done just now may be what a stop waits for. */
    if (sl__streaming_stop_step(self)) {
        return false;
    }
    *work = (struct sl_streaming_work){.node = -1, .output = -1};
    work->kind = self->stop == SL__STOP_DONE ? SL_STREAMING_WORK_STOPPED : SL_STREAMING_WORK_NONE;
    work->time = next_due(self);
    return is_settled(self);
}

int
sl_streaming_next(struct sl_streaming *self, struct sl_streaming_work *work)
{
    lock(self);
    sl_report_free(self->report);
    self->report = NULL;
    while (!find_work(self, work)) {
    }
    unlock(self);
    return (int)work->kind;
}

void
sl_streaming_wait(struct sl_streaming *self, int64_t max_ms)
{
    lock(self);
    int64_t wait_ms = max_ms > 0 ? max_ms : 0;
    int64_t due = next_due(self);
    if (!self->is_manual && due != SL_STREAMING_UNKNOWN) {
        int64_t left = due - sl__streaming_now(self);
        wait_ms = left < wait_ms ? (left > 0 ? left : 0) : wait_ms;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += wait_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    int rc = 0;
    while (!self->is_woken && rc == 0) {
        rc = pthread_cond_timedwait(&self->changed, &self->lock, &until);
    }
    self->is_woken = false;
    unlock(self);
}

void
sl_streaming_wake(struct sl_streaming *self)
{
    lock(self);
    bool is_first = !self->is_woken;
    self->is_woken = true;
    unlock(self);
    /* After the lock, which the driver would run into otherwise. */
    if (is_first) {
        pthread_cond_broadcast(&self->changed);
    }
}

const struct sl_streaming_report *
sl_streaming_report(struct sl_streaming *self)
{
    lock(self);
    const struct sl_streaming_report *report = self->report != NULL ? &self->report->body : NULL;
    unlock(self);
    return report;
}

int64_t
sl_streaming_zero_time(struct sl_streaming *self)
{
    lock(self);
    int64_t zero = self->graph.zero_time;
    unlock(self);
    return zero;
}

int64_t
sl_streaming_next_tick(struct sl_streaming *self)
{
    lock(self);
    int64_t due = sl_recurring_timer_due(&self->timer);
    unlock(self);
    return due;
}

bool
sl_streaming_is_idle(struct sl_streaming *self)
{
    lock(self);
    bool is_idle = self->loop.count == 0 && !sl__streaming_is_loop_busy(self) &&
                   self->jobs.sets.count == 0 && self->works.count == 0 &&
                   sl_list_is_empty(&self->reports) &&
                   (self->writer == NULL || sl_checkpoint_writer_is_idle(self->writer));
    unlock(self);
    return is_idle;
}

int
sl_streaming_find(struct sl_streaming *self, int32_t node, int64_t time,
                  struct sl_streaming_dataset *out)
{
    lock(self);
    int found = sl_graph_find(&self->graph, node, time, out);
    unlock(self);
    return found;
}

int
sl_streaming_put(struct sl_streaming *self, int32_t node, int64_t time, uint64_t handle)
{
    lock(self);
    int rc = sl_graph_put(&self->graph, node, time, handle);
    unlock(self);
    return rc;
}

int32_t
sl_streaming_datasets(struct sl_streaming *self, int32_t number, struct sl_streaming_dataset *out,
                      int32_t max)
{
    lock(self);
    const struct sl_graph_node *node = sl_graph_node(&self->graph, number);
    int32_t count = node != NULL ? (int32_t)node->datasets.count : SL_EINVAL;
    for (int32_t i = 0; i < count && i < max; i++) {
        out[i] = node->datasets.items[i];
    }
    unlock(self);
    return count;
}

void
sl_streaming_progress(struct sl_streaming *self, struct sl_streaming_progress *out)
{
    lock(self);
    *out = self->progress;
    out->retained_batches = (int64_t)self->completed.count;
    for (size_t i = 0; i < self->jobs.sets.count; i++) {
        const struct sl_job_set *set = self->jobs.sets.items[i];
        out->running_batches += set->started > 0;
        out->waiting_batches += set->started == 0 && set->jobs.count > 0;
    }
    out->receivers = (int32_t)self->receivers.count;
    for (size_t i = 0; i < self->placement.count; i++) {
        out->active_receivers += self->placement.items[i].state == SL_RECEIVER_ACTIVE;
    }
    unlock(self);
}

const struct sl_streaming_report *
sl_streaming_completed(struct sl_streaming *self, int32_t index)
{
    lock(self);
    const struct sl_streaming_report *report = NULL;
    size_t count = self->completed.count;
    if (index >= 0 && (size_t)index < count) {
        size_t at = (self->completed_next + count - 1 - (size_t)index) % count;
        report = &self->completed.items[at]->body;
    }
    unlock(self);
    return report;
}
