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
#include "stream/stream_priv.h"

enum {
    SLOT_BITS = 24,
    SLOT_MASK = (1 << SLOT_BITS) - 1,
    GENERATION_MASK = (1 << 24) - 1,
};

void
sl__roots_create(struct sl__task *task)
{
    int32_t most = task->executor->worker->max_pending;
    /* Twice the allowed number, so that one call of next_tuple may exceed it. */
    task->root_capacity = most < (1 << 22) ? most * 2 : 1 << 23;
    /* Untouched pages of these cost nothing. */
    task->roots = sl_calloc((size_t)task->root_capacity, sizeof(*task->roots));
    task->free_roots = sl_calloc((size_t)task->root_capacity, sizeof(*task->free_roots));
    task->io.done = sl_calloc((size_t)task->root_capacity, sizeof(*task->io.done));
    task->io.free_roots = task->root_capacity;
    task->latency = sl_histogram_new();
}

void
sl__roots_destroy(struct sl__task *task)
{
    sl_free(task->roots);
    sl_free(task->free_roots);
    sl_free(task->io.done);
    sl_histogram_free(task->latency);
}

static uint64_t
root_id(const struct sl__task *task, int32_t slot)
{
    return (uint64_t)(uint32_t)task->spout_index << 48 |
           (uint64_t)task->roots[slot].generation << SLOT_BITS | (uint32_t)slot;
}

/* The number of free slots is split: [0, root_count) were used before and are on the free list. */
static int32_t
root_take(struct sl__task *task)
{
    int32_t reusable = task->io.free_roots - (task->root_capacity - task->root_count);
    int32_t slot;
    if (reusable > 0) {
        slot = task->free_roots[reusable - 1];
    } else {
        slot = task->root_count++;
        task->roots[slot].generation = 1;
    }
    task->io.free_roots--;
    task->roots_in_use++;
    struct sl__root *root = &task->roots[slot];
    root->value = 0;
    root->start_ns = task->executor->now_ns;
    root->round = task->executor->round;
    root->is_open = 1;
    root->is_complete = 0;
    root->has_failed = 0;
    root->is_done = 0;
    return slot;
}

static void
root_give(struct sl__task *task, int32_t slot)
{
    struct sl__root *root = &task->roots[slot];
    root->is_open = 0;
    uint32_t next = (root->generation + 1) & GENERATION_MASK;
    root->generation = next != 0 ? next : 1;
    int32_t reusable = task->io.free_roots - (task->root_capacity - task->root_count);
    task->free_roots[reusable] = slot;
    task->io.free_roots++;
    task->roots_in_use--;
}

static void
root_finish(struct sl__task *task, int32_t slot, bool has_failed)
{
    struct sl__root *root = &task->roots[slot];
    if (root->is_done) {
        return;
    }
    root->is_done = 1;
    if (has_failed) {
        task->io.failed += 1;
    } else {
        task->io.acked += 1;
        sl_histogram_record(task->latency, (int64_t)(task->executor->now_ns - root->start_ns));
    }
    if (task->io.wants_acks) {
        task->io.done[task->io.done_count++] = slot * 2 + has_failed;
    } else {
        root_give(task, slot);
    }
}

static void
root_settle(struct sl__task *task, int32_t slot)
{
    struct sl__root *root = &task->roots[slot];
    if (root->is_complete && (root->has_failed || root->value == 0)) {
        root_finish(task, slot, root->has_failed);
    }
}

void
sl__root_apply(struct sl__task *task, const struct sl__ack *ack)
{
    int32_t slot = (int32_t)(ack->root & SLOT_MASK);
    if (slot >= task->root_count) {
        return;
    }
    struct sl__root *root = &task->roots[slot];
    uint32_t generation = (uint32_t)(ack->root >> SLOT_BITS) & GENERATION_MASK;
    if (!root->is_open || root->is_done || root->generation != generation) {
        return;
    }
    switch ((enum sl__ack_op)ack->op) {
    case SL__ACK:
        root->value ^= ack->value;
        root_settle(task, slot);
        break;
    case SL__FAIL:
        root->has_failed = 1;
        root_settle(task, slot);
        break;
    case SL__RESET:
        root->round = task->executor->round;
        break;
    case SL__DONE:
    case SL__DONE_FAILED:
        root_finish(task, slot, ack->op == SL__DONE_FAILED);
        break;
    case SL__INIT:
        break;
    }
}

void
sl__roots_expire(struct sl__task *task)
{
    uint32_t now = task->executor->round;
    for (int32_t slot = 0; slot < task->root_count; slot++) {
        struct sl__root *root = &task->roots[slot];
        if (root->is_open && !root->is_done && now - root->round > SL__ROUNDS) {
            root->has_failed = 1;
            root_finish(task, slot, true);
        }
    }
}

int32_t
sl_root_open(struct sl_task *io, struct sl_record *record)
{
    struct sl__task *task = sl__task_of(io);
    struct sl_executor *executor = task->executor;
    int32_t slot = root_take(task);
    if (!executor->worker->is_acking) {
        record->anchors = 0;
        root_finish(task, slot, false);
        return slot;
    }
    struct sl__root *root = &task->roots[slot];
    uint64_t edge = sl__edge_new(executor);
    record->anchors = 1;
    record->root = root_id(task, slot);
    record->edge = edge;
    root->value = edge;
    root->is_complete = 1;
    if (executor->worker->acker_count > 0) {
        root->is_complete = 0;
        sl__ack_send(executor, record->root, SL__INIT, edge);
    }
    return slot;
}

int32_t
sl_root_begin(struct sl_task *io)
{
    struct sl__task *task = sl__task_of(io);
    int32_t slot = root_take(task);
    sl_vec_clear(&task->anchors);
    if (task->executor->worker->is_acking) {
        struct sl__anchor anchor = {root_id(task, slot), &task->roots[slot].value};
        sl_vec_push(&task->anchors, anchor);
    }
    return slot;
}

void
sl_root_end(struct sl_task *io, int32_t slot)
{
    struct sl__task *task = sl__task_of(io);
    struct sl__root *root = &task->roots[slot];
    sl_vec_clear(&task->anchors);
    if (!task->executor->worker->is_acking) {
        root_finish(task, slot, false);
    } else if (task->executor->worker->acker_count > 0) {
        sl__ack_send(task->executor, root_id(task, slot), SL__INIT, root->value);
    } else {
        root->is_complete = 1;
        root_settle(task, slot);
    }
}

void
sl_roots_release(struct sl_task *io, int32_t count)
{
    struct sl__task *task = sl__task_of(io);
    for (int32_t i = 0; i < count; i++) {
        root_give(task, io->done[i] / 2);
    }
    io->done_count -= count;
    memmove(io->done, io->done + count, (size_t)io->done_count * sizeof(*io->done));
}
