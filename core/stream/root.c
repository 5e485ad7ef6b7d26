/*
 * Roots: the tuple trees of a spout task, tracked where they were emitted.  A root has a slot with
 * a generation, taken from a free list, so that one slow tree holds up no other; its id is spout
 * index (16 bits) | generation (24) | slot (24).  Every edge is XORed in twice, when its tuple is
 * emitted and when that is acked, so the tree is complete when the value is 0 and the emit has
 * written all its copies.  A fail is remembered when it comes first (Storm; JStorm forgets it), and
 * an ack whose generation is not the slot's is late and ignored.  Time-outs: a root remembers the
 * round it began in and fails when five rounds of T/4 have begun since, which is after more than T
 * and at most 1.25 T (the JVM engines' three rounds of T/2: between T and 1.5 T).
 */

#include "base/alloc.h"
#include "stream/executor.h"
#include "stream/root_priv.h"

int
sl__roots_create(struct sl__task *task)
{
    int32_t most = task->executor->worker->max_pending;
    task->root_most = most;
    /* Twice the allowed number, so that one call of next_tuple may exceed it. */
    task->root_capacity = most < (1 << 22) ? most * 2 : 1 << 23;
    /* Untouched pages of these cost nothing. */
    size_t count = (size_t)task->root_capacity;
    task->roots = sl_try_calloc(count, sizeof(*task->roots));
    task->free_slots = sl_try_calloc(count, sizeof(*task->free_slots));
    task->io.done = sl_try_calloc(count, sizeof(*task->io.done));
    if (task->roots == NULL || task->free_slots == NULL || task->io.done == NULL) {
        return sl_err_set(SL_ENOMEM, "out of memory for %zu pending tuples of task %d", count,
                          task->io.id);
    }
    task->latency = sl_histogram_new();
    uint64_t drawn = sl_random_u64(&task->executor->random);
    bool is_shared = task->executor->worker->remote != NULL;
    task->first_generation = is_shared ? (uint32_t)(drawn >> 40) | 1 : 1;
    return 0;
}

void
sl__roots_destroy(struct sl__task *task)
{
    sl_free(task->roots);
    sl_free(task->free_slots);
    sl_free(task->io.done);
    sl_histogram_free(task->latency);
}

void
sl__latency_settle(struct sl__task *task)
{
    if (task->latency_count > 0) {
        int64_t latency_ns = (int64_t)task->latency_value << SL__ROOT_TIME_SHIFT;
        sl_histogram_record_n(task->latency, latency_ns, task->latency_count);
        sl__count(&task->io.acked, (double)task->latency_count);
        sl__publish(&task->latency_count, 0);
    }
}

void
sl__root_apply(struct sl__task *task, const struct sl__ack *ack)
{
    struct sl__root *root = sl__root_find(task, ack->root);
    if (root == NULL) {
        return;
    }
    switch ((enum sl__ack_op)ack->op) {
    case SL__ACK:
        root->value ^= ack->value;
        sl__root_settle(task, root);
        break;
    case SL__FAIL:
        root->bits |= SL__ROOT_FAILED;
        sl__root_settle(task, root);
        break;
    case SL__RESET:
        sl__root_renew(task, root);
        break;
    case SL__DONE:
    case SL__DONE_FAILED:
        sl__root_finish(task, root, ack->op == SL__DONE_FAILED);
        break;
    case SL__INIT:
        break;
    }
}

/* Fails the pending roots that are older than `age` rounds. */
static void
roots_fail(struct sl__task *task, int32_t age)
{
    if (!task->executor->worker->is_acking) {
        return;
    }
    /* A root whose copies are still being written ends with its emit: see sl_root_end. */
    const uint64_t *emitted = task->anchors.count > 0 ? task->anchors.items[0].value : NULL;
    for (int32_t slot = 0; slot < task->root_count; slot++) {
        struct sl__root *root = &task->roots[slot];
        bool is_pending = (root->bits & (SL__ROOT_OPEN | SL__ROOT_DONE)) == SL__ROOT_OPEN;
        if (!is_pending || (int32_t)sl__root_age(task, root) <= age) {
            continue;
        }
        if (&root->value == emitted) {
            root->bits |= SL__ROOT_FAILED;
        } else {
            sl__root_finish(task, root, true);
        }
    }
}

void
sl__roots_expire(struct sl__task *task)
{
    roots_fail(task, SL__ROUNDS);
}

void
sl__roots_lose(struct sl__task *task)
{
    roots_fail(task, -1);
}

void
sl__roots_restart(struct sl__task *task, uint64_t since_ns)
{
    uint32_t since = (uint32_t)(since_ns >> SL__ROOT_TIME_SHIFT);
    for (int32_t slot = 0; slot < task->root_count; slot++) {
        struct sl__root *root = &task->roots[slot];
        if ((root->bits & SL__ROOT_OPEN) != 0 && (int32_t)(root->start - since) >= 0) {
            sl__root_renew(task, root);
        }
    }
}

/* A task without roots has capacity 0 and is full. */
static int32_t
refuse_root(const struct sl__task *task)
{
    return sl_err_set(SL_EINVAL, "task %d has no free root", task->io.id);
}

int32_t
sl_root_open(struct sl_task *io, struct sl_record *record)
{
    struct sl__task *task = sl__task_of(io);
    if (sl__roots_are_full(task)) {
        return refuse_root(task);
    }
    struct sl_executor *executor = task->executor;
    struct sl_worker *worker = executor->worker;
    struct sl__root *root = sl__root_take(task);
    int32_t slot = (int32_t)(root - task->roots);
    if (!worker->is_acking) {
        record->anchors = 0;
        sl__root_finish(task, root, false);
        return slot;
    }
    uint64_t edge = sl__edge_new(executor);
    record->anchors = 1;
    record->root = sl__root_id(task, root);
    record->edge = edge;
    root->value = edge;
    if (worker->acker_count > 0) {
        sl__ack_send(executor, record->root, SL__INIT, edge);
    } else {
        root->bits |= SL__ROOT_COMPLETE;
    }
    return slot;
}

int32_t
sl_root_begin(struct sl_task *io)
{
    struct sl__task *task = sl__task_of(io);
    if (sl__roots_are_full(task)) {
        return refuse_root(task);
    }
    struct sl__root *root = sl__root_take(task);
    sl_vec_clear(&task->anchors);
    if (task->executor->worker->is_acking) {
        struct sl__anchor anchor = {sl__root_id(task, root), &root->value};
        sl_vec_push(&task->anchors, anchor);
    }
    return (int32_t)(root - task->roots);
}

void
sl_root_end(struct sl_task *io, int32_t slot)
{
    struct sl__task *task = sl__task_of(io);
    sl_vec_clear(&task->anchors);
    if (slot < 0 || slot >= task->root_count ||
        (task->roots[slot].bits & (SL__ROOT_OPEN | SL__ROOT_DONE)) != SL__ROOT_OPEN) {
        sl_err_set(SL_EINVAL, "task %d has no pending root %d", io->id, slot);
        return;
    }
    struct sl__root *root = &task->roots[slot];
    if (!task->executor->worker->is_acking) {
        sl__root_finish(task, root, false);
    } else if (task->executor->worker->acker_count > 0 && (root->bits & SL__ROOT_FAILED) == 0) {
        sl__ack_send(task->executor, sl__root_id(task, root), SL__INIT, root->value);
    } else {
        root->bits |= SL__ROOT_COMPLETE;
        sl__root_settle(task, root);
    }
}

void
sl_roots_release(struct sl_task *io, int32_t count)
{
    struct sl__task *task = sl__task_of(io);
    if (count < 0 || count > io->done_count) {
        sl_err_set(SL_EINVAL, "task %d has %d completed roots, not %d", io->id, io->done_count,
                   count);
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        sl__root_give(task, &task->roots[io->done[i] / 2]);
    }
    io->done_count -= count;
    memmove(io->done, io->done + count, (size_t)io->done_count * sizeof(*io->done));
}
