#include "batch/job_set.h"

#include "base/err.h"

struct sl_job_set *
sl_job_set_new(int64_t time, int64_t now)
{
    struct sl_job_set *set = sl_calloc(1, sizeof(*set));
    set->time = time;
    set->submission = now;
    set->start = SL_STREAMING_UNKNOWN;
    set->end = SL_STREAMING_UNKNOWN;
    return set;
}

void
sl_job_set_free(struct sl_job_set *set)
{
    if (set == NULL) {
        return;
    }
    for (size_t i = 0; i < set->jobs.count; i++) {
        sl_free(set->jobs.items[i].failure);
    }
    for (size_t i = 0; i < set->inputs.count; i++) {
        sl_free((char *)(uintptr_t)set->inputs.items[i].metadata);
    }
    sl_vec_destroy(&set->jobs);
    sl_vec_destroy(&set->inputs);
    sl_free(set);
}

void
sl_job_set_input(struct sl_job_set *set, const struct sl_streaming_input *input)
{
    struct sl_streaming_input copy = *input;
    copy.metadata = sl_strdup(input->metadata != NULL ? input->metadata : "");
    sl_vec_push(&set->inputs, copy);
}

void
sl_job_queue_create(struct sl_job_queue *self, int32_t concurrent_jobs)
{
    *self = (struct sl_job_queue){.concurrent_jobs = concurrent_jobs, .next_id = 1};
}

void
sl_job_queue_destroy(struct sl_job_queue *self)
{
    for (size_t i = 0; i < self->sets.count; i++) {
        sl_job_set_free(self->sets.items[i]);
    }
    sl_vec_destroy(&self->sets);
}

int32_t
sl_job_queue_add(struct sl_job_queue *self, struct sl_job_set *set, int32_t node)
{
    struct sl_job job = {
        .id = self->next_id++,
        .node = node,
        .output = (int32_t)set->jobs.count,
        .start = SL_STREAMING_UNKNOWN,
        .end = SL_STREAMING_UNKNOWN,
    };
    sl_vec_push(&set->jobs, job);
    return job.output;
}

void
sl_job_queue_submit(struct sl_job_queue *self, struct sl_job_set *take_set)
{
    sl_vec_push(&self->sets, take_set);
}

struct sl_job_set *
sl_job_queue_head(const struct sl_job_queue *self)
{
    return self->sets.count > 0 ? self->sets.items[0] : NULL;
}

struct sl_job *
sl_job_queue_start(struct sl_job_queue *self, int64_t now)
{
    struct sl_job_set *set = sl_job_queue_head(self);
    if (set == NULL || set->started == set->jobs.count ||
        set->started - set->ended >= (size_t)self->concurrent_jobs) {
        return NULL;
    }
    struct sl_job *job = &set->jobs.items[set->started++];
    job->state = SL_JOB_RUNNING;
    job->start = now;
    if (set->start == SL_STREAMING_UNKNOWN) {
        set->start = now;
    }
    return job;
}

static struct sl_job *
running_job(struct sl_job_set *set, uint64_t id)
{
    for (size_t i = 0; set != NULL && i < set->jobs.count; i++) {
        if (set->jobs.items[i].id == id && set->jobs.items[i].state == SL_JOB_RUNNING) {
            return &set->jobs.items[i];
        }
    }
    return NULL;
}

int
sl_job_queue_end(struct sl_job_queue *self, uint64_t id, const char *failure, int64_t now,
                 struct sl_job **out)
{
    struct sl_job_set *set = sl_job_queue_head(self);
    struct sl_job *job = running_job(set, id);
    if (job == NULL) {
        return sl_err_set(SL_ENOTFOUND, "no job %llu is running", (unsigned long long)id);
    }
    job->state = failure != NULL ? SL_JOB_FAILED : SL_JOB_SUCCEEDED;
    job->failure = failure != NULL ? sl_strdup(failure) : NULL;
    job->end = now;
    set->ended++;
    set->failed += failure != NULL;
    if (sl_job_set_is_done(set)) {
        set->end = now;
    }
    *out = job;
    return 0;
}

struct sl_job_set *
sl_job_queue_take_head(struct sl_job_queue *self)
{
    struct sl_job_set *set = sl_job_queue_head(self);
    sl_assert(set != NULL && sl_job_set_is_done(set));
    sl_vec_remove(&self->sets, 0);
    return set;
}
