/* Tasks: creation, input queues, and whether one may run. */

#include "base/alloc.h"
#include "stream/executor.h"
#include "stream/stream_priv.h"
#include "stream/worker.h"

struct sl__task *
sl__task_new(struct sl_executor *executor, int32_t id, int32_t component, int32_t index,
             int32_t kind)
{
    struct sl__task *self = sl_calloc(1, sizeof(*self));
    self->executor = executor;
    self->io.id = id;
    self->io.component = component;
    self->io.index = index;
    self->io.kind = kind;
    self->idle_record = sl_calloc(1, sizeof(*self->idle_record));
    self->io.record = self->idle_record;
    self->spout_index = -1;
    self->scc = -1;
    return self;
}

static void
queue_free(struct sl__task *self, struct sl__queue *queue)
{
    while (queue->first != NULL) {
        sl__batch_give(self->executor, sl__queue_pop(queue));
    }
}

void
sl__task_free(struct sl__task *self)
{
    queue_free(self, &self->inner);
    queue_free(self, &self->input);
    for (size_t i = 0; i < self->emitters.count; i++) {
        sl__emitter_free(self->emitters.items[i]);
    }
    sl_vec_destroy(&self->emitters);
    for (size_t i = 0; i < self->outboxes.count; i++) {
        sl__outbox_free(self->outboxes.items[i]);
    }
    sl_vec_destroy(&self->outboxes);
    sl__held_destroy(self);
    sl__roots_destroy(self);
    sl_free(self->scratch);
    sl_free(self->idle_record);
    sl_free(self);
}

/* From another process for a task that has left this executor meanwhile: its tuples are lost. */
static bool
deliver_is_vain(struct sl_executor *executor, struct sl__batch *batch)
{
    struct sl_worker *worker = executor->worker;
    if (worker->remote == NULL || batch->pool != &worker->executors[worker->executor_count]->pool) {
        return false;
    }
    pthread_mutex_lock(&worker->plan_lock);
    bool is_vain = worker->task_executor[batch->io.dest] != executor->index;
    pthread_mutex_unlock(&worker->plan_lock);
    if (is_vain) {
        struct sl__outbox *outbox = batch->outbox;
        sl__batch_fail_roots(executor, batch);
        sl__batch_give(executor, batch);
        sl__outbox_released(executor, outbox);
    }
    return is_vain;
}

void
sl__executor_deliver(struct sl_executor *executor, struct sl__batch *batch)
{
    struct sl__task *task = executor->worker->tasks[batch->io.dest];
    if (task != NULL && task->executor == executor) {
        sl__task_enqueue(task, batch);
        return;
    }
    if (deliver_is_vain(executor, batch)) {
        return;
    }
    sl__queue_push(&executor->early, batch);
}

static void
ready_push(struct sl__task *self)
{
    struct sl_executor *executor = self->executor;
    if (self->is_ready_queued) {
        return;
    }
    self->is_ready_queued = true;
    self->ready_next = NULL;
    if (executor->ready_last != NULL) {
        executor->ready_last->ready_next = self;
    } else {
        executor->ready_first = self;
    }
    executor->ready_last = self;
}

void
sl__task_enqueue(struct sl__task *self, struct sl__batch *batch)
{
    sl__queue_push(batch->outbox->is_cyclic ? &self->inner : &self->input, batch);
    sl__publish(&self->queued, self->queued + batch->io.count);
    __atomic_store_n(&self->is_quiet, 0, __ATOMIC_SEQ_CST);
    ready_push(self);
}

/* True when something that the task has emitted is not executed yet, cycles apart. */
static bool
has_output_under_way(const struct sl__task *self)
{
    for (size_t i = 0; i < self->outboxes.count; i++) {
        const struct sl__outbox *outbox = self->outboxes.items[i];
        if (!outbox->is_cyclic && __atomic_load_n(&outbox->in_flight, __ATOMIC_ACQUIRE) > 0) {
            return true;
        }
    }
    return false;
}

bool
sl__task_is_gated(struct sl__task *self)
{
    struct sl__outbox **link = &self->full;
    if (self->executor->keeps_way) {
        return has_output_under_way(self);
    }
    while (*link != NULL) {
        struct sl__outbox *outbox = *link;
        if (__atomic_load_n(&outbox->in_flight, __ATOMIC_ACQUIRE) >= outbox->credit) {
            return true;
        }
        outbox->is_full = false;
        *link = outbox->next_full;
    }
    return false;
}

void
sl__task_drop_outbox(struct sl__task *self, struct sl__outbox *outbox)
{
    for (struct sl__outbox **link = &self->full; *link != NULL; link = &(*link)->next_full) {
        if (*link == outbox) {
            *link = outbox->next_full;
            break;
        }
    }
    for (size_t i = 0; i < self->outboxes.count; i++) {
        if (self->outboxes.items[i] == outbox) {
            sl_vec_remove(&self->outboxes, i);
            break;
        }
    }
    sl__outbox_free(outbox);
}

void
sl__task_touch(struct sl__task *self)
{
    if (!self->is_touched) {
        self->is_touched = true;
        sl_vec_push(&self->executor->touched, self);
    }
}

/* ---- ends of input -------------------------------------------------------------------------- */

void
sl__task_finished(struct sl__task *self)
{
    self->is_finished = true;
    for (size_t i = 0; i < self->outboxes.count; i++) {
        /* A receiver that leaves is told nothing new; inside a cycle only a resume is of interest.
         */
        struct sl__outbox *outbox = self->outboxes.items[i];
        outbox->is_last = outbox->is_retired ? outbox->is_last_sent : true;
        outbox->is_last_sent |= outbox->is_cyclic;
        sl__outbox_use(outbox);
    }
    sl__task_touch(self);
}

void
sl__task_resume(struct sl__task *self)
{
    struct sl_executor *executor = self->executor;
    self->is_finished = false;
    for (size_t i = 0; i < self->outboxes.count; i++) {
        struct sl__outbox *outbox = self->outboxes.items[i];
        outbox->is_last = outbox->is_retired ? outbox->is_last_sent : false;
        sl__outbox_use(outbox);
    }
    sl__task_touch(self);
    if (executor->is_finished_reported) {
        executor->is_finished_reported = false;
        sl_worker_post(executor->worker, SL_EVENT_RESUMED, self->io.id, executor->index, NULL, 0);
    }
}

void
sl__task_marked(struct sl__task *self, const struct sl__outbox *outbox, int32_t mark)
{
    /* Ends do not count inside a cycle, where nobody could be the first. */
    if (!outbox->is_cyclic) {
        self->last_seen += mark;
    }
    if (mark < 0 && self->is_finished) {
        sl__task_resume(self);
    }
}

bool
sl__task_is_planned_to_leave(const struct sl__task *self)
{
    struct sl_worker *worker = self->executor->worker;
    bool is_found = false;
    pthread_mutex_lock(&worker->plan_lock);
    const struct sl__component *component = &worker->components.items[self->io.component];
    for (size_t i = 0; i < component->leaving.count && !is_found; i++) {
        is_found = component->leaving.items[i] == self->io.id;
    }
    pthread_mutex_unlock(&worker->plan_lock);
    return is_found;
}

bool
sl__task_is_drained(const struct sl__task *self)
{
    struct sl_worker *worker = self->executor->worker;
    bool is_spout = self->io.kind == SL_TASK_SPOUT;
    if (self->is_busy || self->input.first != NULL || self->inner.first != NULL ||
        self->held_in_use > 0 || sl__roots_in_use(self) > 0 ||
        (is_spout && self->is_open && !self->is_done) ||
        __atomic_load_n(&worker->inbound[self->io.id], __ATOMIC_ACQUIRE) > 0) {
        return false;
    }
    for (size_t i = 0; i < self->outboxes.count; i++) {
        const struct sl__outbox *outbox = self->outboxes.items[i];
        if (!sl__outbox_is_idle(outbox) ||
            __atomic_load_n(&outbox->in_flight, __ATOMIC_ACQUIRE) > 0) {
            return false;
        }
    }
    return true;
}

void
sl_task_count_error(struct sl_task *io)
{
    sl__count(&io->errors, 1);
}
