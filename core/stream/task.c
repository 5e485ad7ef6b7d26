/* Tasks: creation, input queues, and whether one may run. */

#include "base/alloc.h"
#include "stream/executor.h"
#include "stream/stream_priv.h"

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
        struct sl__batch *batch = queue->first;
        queue->first = batch->next;
        sl__batch_give(self->executor, batch);
    }
    queue->last = NULL;
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
    struct sl__queue *queue = batch->outbox->is_cyclic ? &self->inner : &self->input;
    batch->next = NULL;
    if (queue->last != NULL) {
        queue->last->next = batch;
    } else {
        queue->first = batch;
    }
    queue->last = batch;
    __atomic_store_n(&self->is_quiet, 0, __ATOMIC_SEQ_CST);
    ready_push(self);
}

bool
sl__task_is_gated(const struct sl__task *self)
{
    for (size_t i = 0; i < self->outboxes.count; i++) {
        const struct sl__outbox *outbox = self->outboxes.items[i];
        if (!outbox->is_cyclic &&
            __atomic_load_n(&outbox->in_flight, __ATOMIC_ACQUIRE) >= outbox->credit) {
            return true;
        }
    }
    return false;
}
