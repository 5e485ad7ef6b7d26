/*
 * Anchors: where the edges of an emitted tuple hang, and the ack of the tuple that was executed.
 *
 * A tuple with one root, emitted by a bolt that acks automatically, takes the short way: one edge
 * per copy, noted in task->io.pending.  Everything else collects its anchors in task->anchors
 * first, and every copy gets an edge of its own for each.  Edges of one copy that hang on the same
 * root are merged, which the XOR makes equivalent; a tuple given twice as anchor counts twice.
 *
 * Bolts with manual acks hold each tracked tuple in a slot with a generation until it is acked,
 * failed, or so old that its trees have timed out.
 */

#include "base/alloc.h"
#include "stream/executor.h"
#include "stream/root_priv.h"

enum {
    HANDLE_SLOT_BITS = 28,
    HANDLE_SLOT_MASK = (1 << HANDLE_SLOT_BITS) - 1,
    HANDLE_GENERATION_MASK = (1 << 24) - 1,
};

static struct sl_pair *
record_more(struct sl_record *record)
{
    return (struct sl_pair *)((uint8_t *)record + record->len) - (record->anchors - 1);
}

void
sl_task_anchor(struct sl_task *io, struct sl_record *record)
{
    struct sl__task *task = sl__task_of(io);
    uint64_t edge = sl__edge_new(task->executor);
    record->anchors = 1;
    record->root = io->record->root;
    record->edge = edge;
    io->pending ^= edge;
}

/* Accumulators for the roots beyond the first of the record being executed. */
static uint64_t *
more_pending(struct sl__task *task, int32_t count)
{
    while ((int32_t)task->more_pending.count < count) {
        sl_vec_push(&task->more_pending, 0);
    }
    return task->more_pending.items;
}

/* An ack whose root is tracked on this executor needs no message. */
static inline void
ack_one(struct sl_executor *executor, uint64_t id, uint64_t value)
{
    struct sl_worker *worker = executor->worker;
    uint32_t spout = (uint32_t)(id >> SL__ROOT_SPOUT_SHIFT);
    struct sl__task *home = NULL;
    if (worker->acker_count == 0 && spout < (uint32_t)worker->spout_capacity) {
        home = executor->spout_of[spout];
    }
    if (home == NULL) {
        sl__ack_send(executor, id, SL__ACK, value);
        return;
    }
    struct sl__root *root = sl__root_find(home, id);
    if (root != NULL) {
        root->value ^= value;
        sl__root_settle(home, root);
    }
}

void
sl_task_ack(struct sl_task *io)
{
    struct sl__task *task = sl__task_of(io);
    struct sl_record *record = io->record;
    ack_one(task->executor, record->root, record->edge ^ io->pending);
    io->pending = 0;
    if (record->anchors > 1) {
        struct sl_pair *more = record_more(record);
        uint64_t *pending = more_pending(task, record->anchors - 1);
        for (int32_t i = 0; i < record->anchors - 1; i++) {
            sl__ack_send(task->executor, more[i].root, SL__ACK, more[i].edge ^ pending[i]);
            pending[i] = 0;
        }
    }
}

void
sl_task_fail(struct sl_task *io)
{
    struct sl__task *task = sl__task_of(io);
    struct sl_record *record = io->record;
    if (record->anchors > 0) {
        sl__ack_send(task->executor, record->root, SL__FAIL, 0);
        struct sl_pair *more = record_more(record);
        for (int32_t i = 0; i < record->anchors - 1; i++) {
            sl__ack_send(task->executor, more[i].root, SL__FAIL, 0);
        }
    }
    io->pending = 0;
    sl_vec_clear(&task->more_pending);
}

void
sl_task_reset(struct sl_task *io)
{
    struct sl__task *task = sl__task_of(io);
    struct sl_record *record = io->record;
    if (record->anchors > 0) {
        sl__ack_send(task->executor, record->root, SL__RESET, 0);
        struct sl_pair *more = record_more(record);
        for (int32_t i = 0; i < record->anchors - 1; i++) {
            sl__ack_send(task->executor, more[i].root, SL__RESET, 0);
        }
    }
}

static struct sl__held *
held_get(struct sl__task *task, double handle)
{
    if (!(handle >= 0 && handle < 0x1p53)) {
        return NULL;
    }
    uint64_t bits = (uint64_t)handle;
    uint64_t slot = bits & HANDLE_SLOT_MASK;
    if (slot >= task->held.count) {
        return NULL;
    }
    struct sl__held *held = &task->held.items[slot];
    bool is_same = held->is_used && held->generation == bits >> HANDLE_SLOT_BITS;
    return is_same ? held : NULL;
}

static void
held_give(struct sl__task *task, struct sl__held *held)
{
    sl_free(held->more);
    held->more = NULL;
    held->more_count = 0;
    held->is_used = 0;
    task->held_in_use--;
    held->generation = (held->generation + 1) & HANDLE_GENERATION_MASK;
    sl_vec_push(&task->held_free, (int32_t)(held - task->held.items));
}

double
sl_task_hold(struct sl_task *io)
{
    struct sl__task *task = sl__task_of(io);
    struct sl_record *record = io->record;
    if (record->anchors == 0) {
        return -1;
    }
    int32_t slot;
    if (task->held_free.count > 0) {
        slot = sl_vec_pop(&task->held_free);
    } else {
        slot = (int32_t)task->held.count;
        struct sl__held empty = {0};
        sl_vec_push(&task->held, empty);
    }
    struct sl__held *held = &task->held.items[slot];
    held->is_used = 1;
    task->held_in_use++;
    held->round = task->executor->round;
    held->pair = (struct sl_pair){record->root, record->edge};
    if (record->anchors > 1) {
        held->more_count = record->anchors - 1;
        held->more = sl_alloc((size_t)held->more_count * sizeof(*held->more));
        memcpy(held->more, record_more(record), (size_t)held->more_count * sizeof(*held->more));
    }
    return (double)((uint64_t)held->generation << HANDLE_SLOT_BITS | (uint64_t)slot);
}

static void
held_send(struct sl__task *task, struct sl__held *held, enum sl__ack_op op)
{
    sl__ack_send(task->executor, held->pair.root, op, op == SL__ACK ? held->pair.edge : 0);
    for (int32_t i = 0; i < held->more_count; i++) {
        sl__ack_send(task->executor, held->more[i].root, op,
                     op == SL__ACK ? held->more[i].edge : 0);
    }
}

int
sl_held_settle(struct sl_task *io, double handle, int32_t has_failed)
{
    struct sl__task *task = sl__task_of(io);
    struct sl__held *held = held_get(task, handle);
    if (held == NULL) {
        return SL_ENOTFOUND;
    }
    held_send(task, held, has_failed ? SL__FAIL : SL__ACK);
    held_give(task, held);
    return 0;
}

int
sl_held_reset(struct sl_task *io, double handle)
{
    struct sl__task *task = sl__task_of(io);
    struct sl__held *held = held_get(task, handle);
    if (held == NULL) {
        return SL_ENOTFOUND;
    }
    held->round = task->executor->round;
    held_send(task, held, SL__RESET);
    return 0;
}

void
sl__held_expire(struct sl__task *task)
{
    uint32_t now = task->executor->round;
    for (size_t i = 0; i < task->held.count; i++) {
        struct sl__held *held = &task->held.items[i];
        if (held->is_used && now - held->round > SL__ROUNDS) {
            held_give(task, held);
        }
    }
}

void
sl__held_destroy(struct sl__task *task)
{
    for (size_t i = 0; i < task->held.count; i++) {
        sl_free(task->held.items[i].more);
    }
    sl_vec_destroy(&task->held);
    sl_vec_destroy(&task->held_free);
    sl_vec_destroy(&task->anchors);
    sl_vec_destroy(&task->more_pending);
}

void
sl_anchors_clear(struct sl_task *io)
{
    sl_vec_clear(&sl__task_of(io)->anchors);
}

void
sl_anchors_add_current(struct sl_task *io)
{
    struct sl__task *task = sl__task_of(io);
    struct sl_record *record = io->record;
    if (record->anchors == 0) {
        return;
    }
    struct sl__anchor anchor = {record->root, &io->pending};
    sl_vec_push(&task->anchors, anchor);
    struct sl_pair *more = record_more(record);
    uint64_t *pending = more_pending(task, record->anchors - 1);
    for (int32_t i = 0; i < record->anchors - 1; i++) {
        anchor = (struct sl__anchor){more[i].root, &pending[i]};
        sl_vec_push(&task->anchors, anchor);
    }
}

void
sl_anchors_add_held(struct sl_task *io, double handle)
{
    struct sl__task *task = sl__task_of(io);
    struct sl__held *held = held_get(task, handle);
    if (held == NULL) {
        return;
    }
    struct sl__anchor anchor = {held->pair.root, &held->pair.edge};
    sl_vec_push(&task->anchors, anchor);
    for (int32_t i = 0; i < held->more_count; i++) {
        anchor = (struct sl__anchor){held->more[i].root, &held->more[i].edge};
        sl_vec_push(&task->anchors, anchor);
    }
}

/* Gives a copy that has room for its pairs an edge for every anchor. */
static void
record_stamp(struct sl__task *task, struct sl_record *record, int32_t bytes)
{
    size_t count = task->anchors.count;
    struct sl_pair *pairs = (struct sl_pair *)((uint8_t *)record + bytes);
    int32_t used = 0;
    for (size_t i = 0; i < count; i++) {
        struct sl__anchor *anchor = &task->anchors.items[i];
        uint64_t edge = sl__edge_new(task->executor);
        *anchor->value ^= edge;
        struct sl_pair *same = NULL;
        if (used > 0 && record->root == anchor->root) {
            record->edge ^= edge;
            continue;
        }
        for (int32_t k = 0; k < used - 1 && same == NULL; k++) {
            same = pairs[k].root == anchor->root ? &pairs[k] : NULL;
        }
        if (same != NULL) {
            same->edge ^= edge;
        } else if (used == 0) {
            record->root = anchor->root;
            record->edge = edge;
            used = 1;
        } else {
            pairs[used - 1] = (struct sl_pair){anchor->root, edge};
            used++;
        }
    }
    record->anchors = used;
    record->len = bytes + (used > 1 ? (used - 1) * (int32_t)sizeof(struct sl_pair) : 0);
}

struct sl_record *
sl_task_scratch(struct sl_task *io, int32_t bytes)
{
    struct sl__task *task = sl__task_of(io);
    if (bytes < (int32_t)sizeof(struct sl_record)) {
        sl_err_set(SL_EINVAL, "a record of %d bytes", bytes);
        return NULL;
    }
    if (task->scratch_bytes < (size_t)bytes) {
        uint8_t *scratch = sl_try_alloc((size_t)bytes);
        if (scratch == NULL) {
            sl_err_set(SL_ENOMEM, "out of memory for a record of %d bytes", bytes);
            return NULL;
        }
        sl_free(task->scratch);
        task->scratch = scratch;
        task->scratch_bytes = (size_t)bytes;
    }
    return (struct sl_record *)task->scratch;
}

int
sl_emitter_copy(struct sl_task *io, struct sl_emitter *emitter, int32_t at, int32_t bytes)
{
    struct sl__task *task = sl__task_of(io);
    if (at < 0 || at >= emitter->target_count || bytes < (int32_t)sizeof(struct sl_record) ||
        (size_t)bytes > task->scratch_bytes) {
        return sl_err_set(SL_EINVAL, "copy %d of a record of %d bytes", at, bytes);
    }
    struct sl_outbox *outbox = emitter->targets[at];
    size_t pairs = task->anchors.count > 1 ? task->anchors.count - 1 : 0;
    size_t need = (size_t)bytes + pairs * sizeof(struct sl_pair);
    if (outbox->pos == NULL || (size_t)(outbox->limit - outbox->pos) < need) {
        return need > INT32_MAX ? SL_ELIMIT : (int)need;
    }
    struct sl_record *record = (struct sl_record *)outbox->pos;
    memcpy(record, task->scratch, (size_t)bytes);
    record_stamp(task, record, bytes);
    outbox->pos += record->len;
    outbox->count++;
    return 0;
}
