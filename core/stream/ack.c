/*
 * Acks on their way to the owner of their root.  Those of one root that follow each other are
 * combined; what stays on this executor is applied at once, the rest travels in rings of its own,
 * so that data never holds it up.
 */

#include "stream/root_priv.h"

/* Spouts may be added while acks travel; their own acks come after that. */
static uint32_t
spout_count(const struct sl_worker *worker)
{
    return (uint32_t)__atomic_load_n(&worker->spout_count, __ATOMIC_RELAXED);
}

static void
ack_apply(struct sl_executor *executor, const struct sl__ack *ack)
{
    struct sl_worker *worker = executor->worker;
    if (ack->acker >= 0) {
        int32_t home = __atomic_load_n(&worker->acker_executor[ack->acker], __ATOMIC_RELAXED);
        if (home != executor->index) {
            /* It has moved since: the root had ended. */
            return;
        }
        if (worker->ackers[ack->acker] != NULL) {
            sl__acker_apply(worker->ackers[ack->acker], ack);
        } else {
            /* From another process, which began to work first. */
            sl_vec_push(&executor->early_acks, *ack);
        }
        return;
    }
    uint32_t spout = (uint32_t)(ack->root >> SL__ROOT_SPOUT_SHIFT);
    if (spout < spout_count(worker)) {
        /* -1: the spout is gone. */
        int32_t id = sl__spout_home(worker, spout).task;
        struct sl__task *task = id >= 0 ? worker->tasks[id] : NULL;
        if (task != NULL && task->executor == executor) {
            sl__root_apply(task, ack);
        }
    }
}

void
sl__acks_adopt(struct sl_executor *executor)
{
    size_t count = executor->early_acks.count;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct sl__ack *ack = &executor->early_acks.items[i];
        struct sl__acker *acker = executor->worker->ackers[ack->acker];
        if (acker != NULL) {
            sl__acker_apply(acker, ack);
        } else {
            executor->early_acks.items[kept++] = *ack;
        }
    }
    executor->early_acks.count = kept;
}

static void
ack_post(struct sl_executor *executor, int32_t dest, const struct sl__ack *ack)
{
    if (dest == executor->index) {
        ack_apply(executor, ack);
        return;
    }
    struct sl__ack_box *box = &executor->ack_out[dest];
    if (box->items.count > 0) {
        struct sl__ack *last = &sl_vec_last(&box->items);
        if (last->root == ack->root && last->op == SL__ACK && ack->op == SL__ACK) {
            last->value ^= ack->value;
            return;
        }
    }
    sl_vec_push(&box->items, *ack);
}

void
sl__ack_send(struct sl_executor *executor, uint64_t root, enum sl__ack_op op, uint64_t value)
{
    struct sl_worker *worker = executor->worker;
    struct sl__ack ack = {.root = root, .value = value, .acker = -1, .op = (int32_t)op};
    int32_t dest;
    if (worker->acker_count > 0) {
        ack.acker = (int32_t)(sl_mix64(root) % (uint64_t)worker->acker_count);
        dest = __atomic_load_n(&worker->acker_executor[ack.acker], __ATOMIC_RELAXED);
    } else {
        uint32_t spout = (uint32_t)(root >> SL__ROOT_SPOUT_SHIFT);
        if (spout >= spout_count(worker)) {
            return;
        }
        dest = sl__spout_home(worker, spout).executor;
    }
    if (dest >= 0) {
        ack_post(executor, dest, &ack);
    }
}

int32_t
sl__ack_home(const struct sl_worker *worker, const struct sl__ack *ack, int32_t *task)
{
    uint32_t spout = (uint32_t)(ack->root >> SL__ROOT_SPOUT_SHIFT);
    *task = -1;
    if (ack->acker >= 0) {
        if (ack->acker >= worker->acker_count) {
            return -1;
        }
        *task = worker->acker_task[ack->acker];
        return __atomic_load_n(&worker->acker_executor[ack->acker], __ATOMIC_RELAXED);
    }
    if (spout >= spout_count(worker)) {
        return -1;
    }
    struct sl__spout_home home = sl__spout_home(worker, spout);
    *task = home.task;
    return home.task >= 0 ? home.executor : -1;
}

void
sl__ack_hand_in(struct sl_executor *lane, int32_t dest, const struct sl__ack *ack)
{
    ack_post(lane, dest, ack);
}

void
sl__ack_tell_spout(struct sl_executor *executor, uint64_t root, enum sl__ack_op op)
{
    uint32_t spout = (uint32_t)(root >> SL__ROOT_SPOUT_SHIFT);
    if (spout < spout_count(executor->worker)) {
        struct sl__ack ack = {.root = root, .acker = -1, .op = (int32_t)op};
        int32_t dest = sl__spout_home(executor->worker, spout).executor;
        if (dest >= 0) {
            ack_post(executor, dest, &ack);
        }
    }
}

/* Every tuple of the batch is lost: its trees fail. */
void
sl__batch_fail_roots(struct sl_executor *executor, struct sl__batch *batch)
{
    uint8_t *at = batch->io.head;
    for (int32_t i = 0; i < batch->io.count; i++) {
        struct sl_record *record = (struct sl_record *)at;
        at += record->len;
        if (record->anchors > 0) {
            sl__ack_send(executor, record->root, SL__FAIL, 0);
            struct sl_pair *pairs = (struct sl_pair *)at - (record->anchors - 1);
            for (int32_t k = 0; k < record->anchors - 1; k++) {
                sl__ack_send(executor, pairs[k].root, SL__FAIL, 0);
            }
        }
    }
}

/* The ring is made when the first acks need it; without memory they wait. */
static bool
box_make_ring(struct sl_executor *executor, int32_t dest)
{
    struct sl_worker *worker = executor->worker;
    int32_t slots = SL__ACK_RING / worker->lane_count;
    struct sl_ring *ring = sl_ring_new(slots < 256 ? 256 : (uint32_t)slots, sizeof(struct sl__ack));
    executor->ack_out[dest].ring = ring;
    int32_t at = executor->index * worker->lane_count + dest;
    __atomic_store_n(&worker->acks[at], ring, __ATOMIC_RELEASE);
    return ring != NULL;
}

static bool
box_flush(struct sl_executor *executor, int32_t dest)
{
    struct sl__ack_box *box = &executor->ack_out[dest];
    if (box->items.count == 0) {
        return true;
    }
    if (box->ring == NULL && !box_make_ring(executor, dest)) {
        return false;
    }
    uint32_t pushed = sl_ring_push_many(box->ring, box->items.items, (uint32_t)box->items.count);
    if (pushed > 0) {
        box->items.count -= pushed;
        memmove(box->items.items, box->items.items + pushed,
                box->items.count * sizeof(*box->items.items));
        sl__executor_ring_bell(executor->worker->executors[dest]);
    }
    return box->items.count == 0;
}

bool
sl__acks_flush(struct sl_executor *executor)
{
    bool is_empty = true;
    for (int32_t dest = 0; dest < executor->worker->lane_count; dest++) {
        is_empty &= dest == executor->index || box_flush(executor, dest);
    }
    return is_empty;
}

/* How many acks found no room in a ring yet. */
size_t
sl__acks_waiting(const struct sl_executor *executor)
{
    size_t count = 0;
    for (int32_t i = 0; i < executor->worker->lane_count; i++) {
        count += executor->ack_out[i].items.count;
    }
    return count;
}

/* Applies what has arrived; true when anything had. */
bool
sl__acks_intake(struct sl_executor *executor)
{
    struct sl_worker *worker = executor->worker;
    bool has_any = false;
    for (int32_t source = 0; source < worker->lane_count; source++) {
        int32_t at = source * worker->lane_count + executor->index;
        struct sl_ring *ring = __atomic_load_n(&worker->acks[at], __ATOMIC_ACQUIRE);
        struct sl__ack ack;
        while (ring != NULL && sl_ring_pop(ring, &ack)) {
            ack_apply(executor, &ack);
            has_any = true;
        }
    }
    return has_any;
}
