#pragma once
/* Inside of the context. Functions sl__streaming_* are called with its lock held. */

#include "batch/streaming.h"

/* An event of the loop; handled one after the other. */
enum sl__loop_event_kind {
    SL__LOOP_GENERATE,
    SL__LOOP_CLEAR_METADATA,
    SL__LOOP_DO_CHECKPOINT,
    SL__LOOP_CLEAR_CHECKPOINT_DATA,
};

struct sl__loop_event {
    enum sl__loop_event_kind kind;
    int64_t time;
    /* DO_CHECKPOINT: the batch has completed, so what it needed may go once this is written. */
    bool is_later;
};

/* Phases of a stop, in the order of the reference: receivers, generator, jobs, listeners. */
enum sl__stop_phase {
    SL__STOP_NONE,
    SL__STOP_RECEIVERS,
    SL__STOP_ALLOCATED,
    SL__STOP_TIMER,
    SL__STOP_BATCHES,
    SL__STOP_SAVE,
    SL__STOP_INPUTS,
    SL__STOP_WRITER,
    SL__STOP_JOBS,
    SL__STOP_REPORTS,
    SL__STOP_DONE,
};

enum {
    /* How long an immediate stop waits for receivers and for running jobs. */
    SL__STOP_RECEIVERS_MS = 10000,
    SL__STOP_JOBS_MS = 2000,
    /* How long any stop waits for checkpoint files. */
    SL__STOP_WRITER_MS = 10000,
    /* Slow batches in a row that are worth a warning. */
    SL__SLOW_BATCHES = 3,
};

struct sl__receiver {
    int32_t node;
    int32_t input_id;
    char *last_error;
    int64_t last_error_time;
    /* When it is to be started again, SL_STREAMING_UNKNOWN if not. */
    int64_t restart_at;
    struct sl_pid pid;
};

struct sl__worker {
    char *name;
    char *host;
    int32_t slots;
};

struct sl_streaming {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Something happened since the last sl_streaming_wait. */
    bool is_woken;
    /* Texts are owned. */
    struct sl_streaming_options options;
    const struct sl_clock *clock;
    bool is_manual;
    enum sl_streaming_state state;

    struct sl_graph graph;
    struct sl_recurring_timer timer;

    /* The loop: what it has to handle, and what the driver is doing for it. */
    SL_VEC(struct sl__loop_event) loop;
    struct sl_job_set *generating;
    bool is_checkpointing;
    struct sl__loop_event checkpointing;
    bool is_saving;
    /* Batches to run again after a restart that were not generated yet. */
    SL_VEC(int64_t) reruns;
    int64_t last_generated;

    struct sl_job_queue jobs;
    struct sl_input_info input_info;
    /* Batches of which a job failed: they stay pending in checkpoints. */
    SL_VEC(int64_t) failed;

    /* Work that waits for the driver, and events for listeners. */
    SL_VEC(struct sl_streaming_work) works;
    /* Jobs that have started and were not handed out yet; the events of their start come first. */
    SL_VEC(struct sl_streaming_work) job_works;
    struct sl_list reports;
    struct sl_report *report;
    /* A ring of the newest completed batches. */
    SL_VEC(struct sl_report *) completed;
    size_t completed_next;
    struct sl_streaming_progress progress;

    /* Receivers, by number of receiver; placement[i] is where receivers[i] is. */
    SL_VEC(struct sl__receiver) receivers;
    SL_VEC(struct sl_placement_receiver) placement;
    SL_VEC(struct sl__worker) workers;
    SL_VEC(struct sl_placement_worker) worker_hosts;
    struct sl_block_tracker tracker;

    struct sl_checkpoint_writer *writer;
    /* What was restored. */
    bool is_restored;
    int64_t restored_time;
    int64_t restored_zero_time;
    SL_VEC(int64_t) restored_pending;

    enum sl__stop_phase stop;
    bool is_graceful;
    /* A phase of a graceful stop ran out of time. */
    bool has_timed_out;
    bool has_phase_begun;
    int64_t stop_deadline;
};

/* streaming.c */
int64_t sl__streaming_now(struct sl_streaming *self);
void sl__streaming_notify(struct sl_streaming *self);
void sl__streaming_work(struct sl_streaming *self, const struct sl_streaming_work *work);
void sl__streaming_tell(struct sl_streaming *self, struct sl_report *take_report);
int sl__streaming_open(struct sl_streaming *self, const char *what);

/* streaming_loop.c */
void sl__streaming_post(struct sl_streaming *self, enum sl__loop_event_kind kind, int64_t time,
                        bool is_later);
/* Handles loop events until one needs the driver; true when *work is filled in. */
bool sl__streaming_loop(struct sl_streaming *self, struct sl_streaming_work *work);
bool sl__streaming_is_loop_busy(const struct sl_streaming *self);
/* The head set has no job left: the batch is over. */
void sl__streaming_finish_batches(struct sl_streaming *self);

/* streaming_receivers.c */
int sl__streaming_receivers_start(struct sl_streaming *self);
/* Starts those whose pause is over. */
void sl__streaming_receivers_poll(struct sl_streaming *self);
/* When the next one is to be started again, or SL_STREAMING_UNKNOWN. */
int64_t sl__streaming_receivers_due(const struct sl_streaming *self);
void sl__streaming_receivers_stop(struct sl_streaming *self);
bool sl__streaming_receivers_are_stopped(const struct sl_streaming *self);
struct sl__receiver *sl__streaming_receiver(struct sl_streaming *self, int32_t node);
/* Publishes new rates after a batch. */
void sl__streaming_rates(struct sl_streaming *self, const struct sl_job_set *set);

/* streaming_stop.c */
/* Goes on with a stop; true when something changed. */
bool sl__streaming_stop_step(struct sl_streaming *self);
/* When the present phase runs out of time, or SL_STREAMING_UNKNOWN. */
int64_t sl__streaming_stop_due(const struct sl_streaming *self);
