/*
 * Ends of input: a spout that is DONE with nothing pending has finished, a bolt when all its
 * senders have, the tasks of a cycle when all of them are quiet at once.
 */

#include "stream/executor.h"
#include "stream/stream_priv.h"
#include "stream/worker.h"

/* A spout that is DONE and has nothing pending has finished. */
static void
spouts_finish(struct sl_executor *self)
{
    for (size_t i = 0; i < self->spouts.count; i++) {
        struct sl__task *task = self->spouts.items[i];
        if (task->is_done && !task->is_finished && sl__roots_in_use(task) == 0) {
            sl__task_finished(task);
        }
    }
}

static bool
is_quiet_now(const struct sl__task *task)
{
    if (task->is_busy || task->input.first != NULL || task->inner.first != NULL ||
        task->last_seen < task->last_expected) {
        return false;
    }
    for (size_t i = 0; i < task->outboxes.count; i++) {
        const struct sl__outbox *outbox = task->outboxes.items[i];
        if (outbox->is_cyclic &&
            (outbox->io.count > 0 || __atomic_load_n(&outbox->in_flight, __ATOMIC_SEQ_CST) > 0)) {
            return false;
        }
    }
    return true;
}

/*
 * A cycle has finished when all its tasks are quiet at once.  Their flags are read twice with the
 * sum of their activity counters between: a task that ran in the meantime changes the sum.
 */
static bool
cycle_is_quiet(struct sl_executor *self, int32_t scc)
{
    struct sl_worker *worker = self->worker;
    uint64_t sums[2] = {0, 0};
    bool is_quiet = true;
    pthread_mutex_lock(&worker->plan_lock);
    for (int pass = 0; pass < 2 && is_quiet; pass++) {
        for (size_t c = 0; c < worker->components.count && is_quiet; c++) {
            const struct sl__component *component = &worker->components.items[c];
            size_t count = component->tasks.count;
            for (size_t i = 0; component->scc == scc && i < count + component->leaving.count; i++) {
                int32_t id =
                    i < count ? component->tasks.items[i] : component->leaving.items[i - count];
                const struct sl__task *task = worker->tasks[id];
                if (task == NULL || !__atomic_load_n(&task->is_quiet, __ATOMIC_SEQ_CST)) {
                    is_quiet = false;
                    break;
                }
                sums[pass] += __atomic_load_n(&task->activity, __ATOMIC_SEQ_CST);
            }
        }
    }
    pthread_mutex_unlock(&worker->plan_lock);
    return is_quiet && sums[0] == sums[1];
}

static bool
has_input_ended(struct sl_executor *self, struct sl__task *task)
{
    if (task->io.kind != SL_TASK_BOLT || !task->is_open || task->is_busy ||
        sl__task_has_records(self, task) || task->last_seen < task->last_expected) {
        return false;
    }
    /* With routes older than the plan, there may be senders that are not counted yet. */
    if (task->plan_version != __atomic_load_n(&self->worker->plan_version, __ATOMIC_RELAXED)) {
        return false;
    }
    if (task->scc < 0) {
        return task->has_readings && !task->is_finished;
    }
    /* Also of a finished one: the others of its cycle wait for it to be quiet. */
    bool was_quiet = task->is_quiet != 0;
    bool is_quiet = is_quiet_now(task);
    __atomic_store_n(&task->is_quiet, is_quiet, __ATOMIC_SEQ_CST);
    if (!is_quiet || !cycle_is_quiet(self, task->scc)) {
        return false;
    }
    if (!was_quiet) {
        /* The last of the cycle to become quiet tells the executors of the others. */
        for (int32_t i = 0; i < self->worker->executor_count; i++) {
            sl__executor_ring_bell(self->worker->executors[i]);
        }
    }
    return !task->is_finished;
}

bool
sl__finish_turn(struct sl_executor *self, struct sl_turn *turn)
{
    spouts_finish(self);
    bool has_all = true;
    for (size_t i = 0; i < self->tasks.count; i++) {
        struct sl__task *task = self->tasks.items[i];
        if (has_input_ended(self, task)) {
            if (task->has_been_told) {
                sl__task_finished(task);
                continue;
            }
            task->has_been_told = true;
            turn->kind = SL_TURN_FINISH;
            turn->task = task->io.id;
            sl__frame_push(self, task, SL_TURN_FINISH);
            return true;
        }
        has_all &= task->is_finished;
    }
    if (has_all && !self->is_finished_reported && self->touched.count == 0 &&
        self->early.first == NULL) {
        self->is_finished_reported = true;
        sl_worker_post(self->worker, SL_EVENT_FINISHED, -1, self->index, NULL, 0);
    }
    return false;
}
