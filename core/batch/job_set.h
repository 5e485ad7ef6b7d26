#pragma once
/*
 * Job sets: the output operations of one batch. Batches run in the order in which they were
 * submitted, one at a time; up to `concurrent_jobs` operations of the batch whose turn it is run at
 * once, started in order of output.
 *
 *     submit -> [ set t+2 | set t+1 | set t ] -> its jobs -> done -> t+1 is next
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "batch/streaming_types.h"

enum sl_job_state {
    SL_JOB_WAITING,
    SL_JOB_RUNNING,
    SL_JOB_SUCCEEDED,
    SL_JOB_FAILED,
};

struct sl_job {
    uint64_t id;
    int32_t node;
    /* Number in its set. */
    int32_t output;
    enum sl_job_state state;
    int64_t start;
    int64_t end;
    /* Why it failed, else NULL. */
    char *failure;
};

struct sl_job_set {
    int64_t time;
    int64_t submission;
    int64_t start;
    int64_t end;
    SL_VEC(struct sl_job) jobs;
    /* Metadata texts are owned. */
    SL_VEC(struct sl_streaming_input) inputs;
    size_t started;
    size_t ended;
    size_t failed;
};

/* A set without jobs; `now` is its submission time. */
struct sl_job_set *sl_job_set_new(int64_t time, int64_t now);
void sl_job_set_free(struct sl_job_set *set);

/* Adds the records of an input; the text is copied. */
void sl_job_set_input(struct sl_job_set *set, const struct sl_streaming_input *input);

static inline bool
sl_job_set_is_done(const struct sl_job_set *set)
{
    return set->ended == set->jobs.count;
}

struct sl_job_queue {
    /* In order of submission; the first one's turn it is. */
    SL_VEC(struct sl_job_set *) sets;
    int32_t concurrent_jobs;
    uint64_t next_id;
};

void sl_job_queue_create(struct sl_job_queue *self, int32_t concurrent_jobs);
void sl_job_queue_destroy(struct sl_job_queue *self);

/* Adds a job for an output to a set that is not submitted yet; returns its number in the set. */
int32_t sl_job_queue_add(struct sl_job_queue *self, struct sl_job_set *set, int32_t node);

/* The set is the queue's from now on. */
void sl_job_queue_submit(struct sl_job_queue *self, struct sl_job_set *take_set);

/* The set whose turn it is, or NULL. */
struct sl_job_set *sl_job_queue_head(const struct sl_job_queue *self);

/* Starts the next job that may run now, or gives NULL. */
struct sl_job *sl_job_queue_start(struct sl_job_queue *self, int64_t now);

/* Ends a running job of the head set; failure NULL when it went well. SL_ENOTFOUND for any other.
 */
int sl_job_queue_end(struct sl_job_queue *self, uint64_t id, const char *failure, int64_t now,
                     struct sl_job **job);

/* Takes the head set, whose jobs have all ended, out of the queue; the caller frees it. */
struct sl_job_set *sl_job_queue_take_head(struct sl_job_queue *self);
