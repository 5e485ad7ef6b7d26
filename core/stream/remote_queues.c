/* The way of batches and acks between the rings of executors and the queues of peers. */

#include "base/alloc.h"
#include "stream/remote_priv.h"

/* ---- what executors have for others --------------------------------------------------------- */

void
sl__remote_hand_in(struct sl_remote *self, int32_t executor, struct sl__batch *batch)
{
    struct sl_worker *worker = self->worker;
    struct sl_ring **ring = &worker->data[self->lane->index * worker->lane_count + executor];
    if (*ring == NULL) {
        struct sl_ring *made = sl_ring_new(SL__DATA_RING, sizeof(struct sl__batch *));
        __atomic_store_n(ring, made, __ATOMIC_RELEASE);
    }
    if (*ring == NULL || self->pending[executor].first != NULL || !sl_ring_push(*ring, &batch)) {
        sl__queue_push(&self->pending[executor], batch);
        return;
    }
    sl__executor_ring_bell(worker->executors[executor]);
}

static void
pending_flush(struct sl_remote *self)
{
    struct sl_worker *worker = self->worker;
    for (int32_t i = 0; i < worker->executor_count; i++) {
        struct sl_ring *ring = worker->data[self->lane->index * worker->lane_count + i];
        while (self->pending[i].first != NULL && ring != NULL && sl_ring_has_room(ring)) {
            struct sl__batch *batch = sl__queue_pop(&self->pending[i]);
            sl_ring_push(ring, &batch);
            sl__executor_ring_bell(worker->executors[i]);
        }
    }
}

int32_t
sl__remote_task_home(struct sl_worker *worker, int32_t task)
{
    pthread_mutex_lock(&worker->plan_lock);
    int32_t executor = worker->task_executor[task];
    pthread_mutex_unlock(&worker->plan_lock);
    return executor;
}

static int32_t
task_peer(const struct sl_worker *worker, int32_t task)
{
    return __atomic_load_n(&worker->task_peer[task], __ATOMIC_RELAXED);
}

static void
ack_out(struct sl_remote *self, int32_t task, const struct sl__ack *ack)
{
    struct sl__peer *peer = sl__peer_get(self, task_peer(self->worker, task));
    if (peer->acks.size >= SL__REMOTE_ACKS_MOST) {
        self->stats.dropped_acks++;
        return;
    }
    sl_buf_append(&peer->acks, ack, sizeof(*ack));
}

/* Sends an ack of the lane's own to wherever its root is. */
static void
ack_route(struct sl_remote *self, const struct sl__ack *ack)
{
    int32_t task;
    int32_t home = sl__ack_home(self->worker, ack, &task);
    if (home == self->lane->index) {
        ack_out(self, task, ack);
    } else if (home >= 0) {
        sl__ack_hand_in(self->lane, home, ack);
    }
}

static void
root_fail(struct sl_remote *self, uint64_t root)
{
    struct sl_worker *worker = self->worker;
    struct sl__ack ack = {.root = root, .acker = -1, .op = SL__FAIL};
    if (worker->acker_count > 0) {
        ack.acker = (int32_t)(sl_mix64(root) % (uint64_t)worker->acker_count);
    }
    ack_route(self, &ack);
}

void
sl__remote_fail_batch(struct sl_remote *self, struct sl__batch *batch)
{
    const uint8_t *at = batch->io.head;
    for (int32_t i = 0; i < batch->io.count; i++) {
        const struct sl_record *record = (const struct sl_record *)at;
        at += record->len;
        if (record->anchors > 0) {
            root_fail(self, record->root);
            const struct sl_pair *pairs = (const struct sl_pair *)at - (record->anchors - 1);
            for (int32_t k = 0; k < record->anchors - 1; k++) {
                root_fail(self, pairs[k].root);
            }
        }
    }
}

void
sl__remote_release(struct sl_remote *self, struct sl__batch *batch)
{
    struct sl__outbox *outbox = batch->outbox;
    batch->outbox = NULL;
    sl__outbox_released(self->lane, outbox);
}

static void
batch_out(struct sl_remote *self, struct sl__batch *batch)
{
    int32_t home = sl__remote_task_home(self->worker, batch->io.dest);
    if (home == self->lane->index) {
        struct sl__peer *peer = sl__peer_get(self, task_peer(self->worker, batch->io.dest));
        struct sl__dest *dest = sl__dest_get(peer, batch->io.dest);
        sl__queue_push(&dest->queue, batch);
        self->stats.queued++;
        sl__dest_ready(peer, dest);
    } else if (home >= 0) {
        /* It has moved here since. */
        sl__remote_hand_in(self, home, batch);
    } else {
        self->stats.strays++;
        sl__remote_fail_batch(self, batch);
        sl__remote_release(self, batch);
        sl__batch_give(NULL, batch);
    }
}

static void
rings_drain(struct sl_remote *self)
{
    struct sl_worker *worker = self->worker;
    for (int32_t i = 0; i < worker->executor_count; i++) {
        bool has_some = false;
        int32_t at = i * worker->lane_count + self->lane->index;
        struct sl_ring *ring = __atomic_load_n(&worker->acks[at], __ATOMIC_ACQUIRE);
        struct sl__ack ack;
        while (ring != NULL && sl_ring_pop(ring, &ack)) {
            ack_route(self, &ack);
            has_some = true;
        }
        ring = __atomic_load_n(&worker->data[at], __ATOMIC_ACQUIRE);
        struct sl__batch *batch;
        while (ring != NULL && sl_ring_pop(ring, &batch)) {
            batch_out(self, batch);
            has_some = true;
        }
        if (has_some) {
            /* It may have waited for room. */
            sl__executor_ring_bell(worker->executors[i]);
        }
    }
}

/* ---- what comes back ------------------------------------------------------------------------ */

static void
block_free(struct sl_remote *self, struct sl__batch *batch)
{
    if ((size_t)(batch->limit - batch->data) == self->block_bytes &&
        self->free_block_count < SL__REMOTE_FREE_BLOCKS) {
        batch->next = self->free_blocks;
        self->free_blocks = batch;
        self->free_block_count++;
    } else {
        sl_free(batch);
    }
}

struct sl__batch *
sl__remote_block(struct sl_remote *self, size_t bytes)
{
    struct sl__batch *batch = self->free_blocks;
    if (bytes <= self->block_bytes && batch != NULL) {
        self->free_blocks = batch->next;
        self->free_block_count--;
    } else {
        size_t size = bytes <= self->block_bytes ? self->block_bytes : bytes;
        batch = sl_try_alloc(sizeof(*batch) + size);
        if (batch == NULL) {
            return NULL;
        }
        memset(batch, 0, sizeof(*batch));
        batch->limit = batch->data + size;
        batch->pool = &self->lane->pool;
    }
    batch->next = NULL;
    batch->mark = 0;
    return batch;
}

void
sl__remote_return(struct sl_remote *self, struct sl__batch *batch)
{
    struct sl__peer *peer = sl__peer_find(self, batch->peer);
    self->stats.held--;
    self->stats.held_bytes -= batch->charge;
    if (peer != NULL && peer->session == batch->session) {
        sl__source_consumed(peer, sl__source_get(self, peer, batch->io.dest), batch->charge);
    }
    block_free(self, batch);
}

static void
returned_collect(struct sl_remote *self)
{
    struct sl__batch *batch =
        __atomic_exchange_n(&self->lane->pool.returned, NULL, __ATOMIC_ACQUIRE);
    while (batch != NULL) {
        struct sl__batch *next = batch->next;
        sl__remote_return(self, batch);
        batch = next;
    }
}

/* ---- one round ------------------------------------------------------------------------------ */

void
sl_remote_pump(struct sl_remote *self)
{
    __atomic_store_n(&self->lane->is_asleep, 0, __ATOMIC_RELAXED);
    sl__letters_take(self);
    rings_drain(self);
    returned_collect(self);
    pending_flush(self);
    sl__acks_flush(self->lane);
}

bool
sl_remote_rest(struct sl_remote *self)
{
    struct sl_worker *worker = self->worker;
    __atomic_store_n(&self->lane->is_asleep, 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    bool is_idle = __atomic_load_n(&self->lane->pool.returned, __ATOMIC_RELAXED) == NULL &&
                   !sl__remote_has_letters(self);
    for (int32_t i = 0; i < worker->executor_count && is_idle; i++) {
        int32_t at = i * worker->lane_count + self->lane->index;
        struct sl_ring *acks = __atomic_load_n(&worker->acks[at], __ATOMIC_ACQUIRE);
        struct sl_ring *data = __atomic_load_n(&worker->data[at], __ATOMIC_ACQUIRE);
        is_idle =
            (acks == NULL || sl_ring_is_empty(acks)) && (data == NULL || sl_ring_is_empty(data));
    }
    if (!is_idle) {
        __atomic_store_n(&self->lane->is_asleep, 0, __ATOMIC_RELAXED);
    }
    return is_idle;
}

bool
sl_remote_is_waiting(const struct sl_remote *self)
{
    bool is_waiting = sl__acks_waiting(self->lane) > 0;
    for (int32_t i = 0; i < self->worker->executor_count; i++) {
        is_waiting |= self->pending[i].first != NULL;
    }
    return is_waiting;
}

bool
sl_remote_is_jammed(const struct sl_remote *self)
{
    return sl__acks_waiting(self->lane) > SL__ACK_BACKLOG;
}
