#pragma once
/*
 * The short steps of a root's life, inline because every acked tuple takes them; see root.c for the
 * rules.  Root id: spout index (16 bits) | generation (24) | slot (24).
 */

#include "stream/stream_priv.h"

enum {
    SL__ROOT_SPOUT_SHIFT = 48,
    /* Ids that spout tasks may have when other processes name roots by them. */
    SL__SPOUT_IDS = 65536,
    SL__ROOT_SLOT_BITS = 24,
    SL__ROOT_SLOT_MASK = (1 << SL__ROOT_SLOT_BITS) - 1,
    SL__ROOT_GENERATION_MASK = (1 << 24) - 1,
};

enum {
    SL__ROOT_FLAGS = 0x0f,
    SL__ROOT_ROUND = 0xf0,
    SL__ROOT_ROUND_SHIFT = 4,
    SL__ROOT_GENERATION_SHIFT = 8,
    /* Latencies are kept in units of 1024 ns. */
    SL__ROOT_TIME_SHIFT = 10,
};

static inline uint64_t
sl__root_id(const struct sl__task *task, const struct sl__root *root)
{
    uint64_t generation = root->bits >> SL__ROOT_GENERATION_SHIFT;
    return (uint64_t)(uint32_t)task->spout_index << SL__ROOT_SPOUT_SHIFT |
           generation << SL__ROOT_SLOT_BITS | (uint64_t)(root - task->roots);
}

/* The root that an id names, while it is pending; NULL when it ended: the ack is late. */
static inline struct sl__root *
sl__root_find(struct sl__task *task, uint64_t id)
{
    uint32_t slot = (uint32_t)id & SL__ROOT_SLOT_MASK;
    if (slot >= (uint32_t)task->root_count) {
        return NULL;
    }
    struct sl__root *root = &task->roots[slot];
    uint32_t generation = (uint32_t)(id >> SL__ROOT_SLOT_BITS) & SL__ROOT_GENERATION_MASK;
    uint32_t ignored = SL__ROOT_ROUND | SL__ROOT_COMPLETE | SL__ROOT_FAILED;
    bool is_same =
        (root->bits & ~ignored) == (generation << SL__ROOT_GENERATION_SHIFT | SL__ROOT_OPEN);
    return is_same ? root : NULL;
}

/* The rounds that have begun since the root began or was reset. */
static inline uint32_t
sl__root_age(const struct sl__task *task, const struct sl__root *root)
{
    uint32_t round = (root->bits & SL__ROOT_ROUND) >> SL__ROOT_ROUND_SHIFT;
    return (task->executor->round - round) & 0x0f;
}

static inline void
sl__root_renew(struct sl__task *task, struct sl__root *root)
{
    root->bits = (root->bits & ~(uint32_t)SL__ROOT_ROUND) | (task->executor->round & 0x0f)
                                                                << SL__ROOT_ROUND_SHIFT;
}

/* A free slot, made pending; the task must have one. */
static inline struct sl__root *
sl__root_take(struct sl__task *task)
{
    struct sl__root *root;
    if (task->free_slot_count > 0) {
        sl__publish(&task->free_slot_count, task->free_slot_count - 1);
        root = &task->roots[task->free_slots[task->free_slot_count]];
    } else {
        root = &task->roots[task->root_count];
        sl__publish(&task->root_count, task->root_count + 1);
        root->bits = task->first_generation << SL__ROOT_GENERATION_SHIFT;
    }
    int32_t in_use = sl__roots_in_use(task);
    task->io.is_full = in_use == task->root_capacity;
    if (in_use >= task->root_most) {
        /* This call of next_tuple may go on; another one may not begin. */
        task->io.yield = 1;
    }
    root->value = 0;
    root->start = (uint32_t)(task->executor->now_ns >> SL__ROOT_TIME_SHIFT);
    uint32_t generation = root->bits >> SL__ROOT_GENERATION_SHIFT;
    root->bits = generation << SL__ROOT_GENERATION_SHIFT |
                 (task->executor->round & 0x0f) << SL__ROOT_ROUND_SHIFT | SL__ROOT_OPEN;
    return root;
}

static inline void
sl__root_give(struct sl__task *task, struct sl__root *root)
{
    uint32_t next = ((root->bits >> SL__ROOT_GENERATION_SHIFT) + 1) & SL__ROOT_GENERATION_MASK;
    root->bits = (next + (next == 0)) << SL__ROOT_GENERATION_SHIFT;
    task->free_slots[task->free_slot_count] = (int32_t)(root - task->roots);
    sl__publish(&task->free_slot_count, task->free_slot_count + 1);
    task->io.is_full = 0;
}

static inline void
sl__root_finish(struct sl__task *task, struct sl__root *root, bool has_failed)
{
    root->bits |= SL__ROOT_DONE;
    if (has_failed) {
        sl__count(&task->io.failed, 1);
    } else {
        uint32_t latency = (uint32_t)(task->executor->now_ns >> SL__ROOT_TIME_SHIFT) - root->start;
        if (latency != task->latency_value) {
            sl__latency_settle(task);
            sl__publish(&task->latency_value, latency);
        }
        sl__publish(&task->latency_count, task->latency_count + 1);
    }
    if (task->io.wants_acks) {
        int32_t slot = (int32_t)(root - task->roots);
        task->io.done[task->io.done_count++] = slot * 2 + has_failed;
    } else {
        sl__root_give(task, root);
    }
}

/* Ends a root that has failed or whose edges are all gone, once its emit is complete. */
static inline void
sl__root_settle(struct sl__task *task, struct sl__root *root)
{
    bool has_failed = (root->bits & SL__ROOT_FAILED) != 0;
    if ((root->bits & SL__ROOT_COMPLETE) != 0 && (has_failed || root->value == 0)) {
        sl__root_finish(task, root, has_failed);
    }
}
