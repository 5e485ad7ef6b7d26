/*
 * Peers, their sessions, and the way of batches and acks between rings and frames.  The lane is the
 * last "executor" of the worker: rings lead to it and from it as to any other, batches received
 * belong to its pool, and whoever has executed one gives it back there; that is how credit returns.
 */

#include "stream/remote.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/map.h"
#include "stream/remote_priv.h"
#include "stream/stream_priv.h"

/* ---- life ----------------------------------------------------------------------------------- */

struct sl_remote *
sl__remote_new(struct sl_worker *worker, const struct sl_worker_options *options)
{
    struct sl_remote *self = sl_calloc(1, sizeof(*self));
    self->worker = worker;
    self->lane = worker->executors[worker->executor_count];
    self->window = (uint32_t)options->remote_window;
    /* Every block goes back by the list of returned ones, however large it is. */
    self->lane->pool.block_bytes = SIZE_MAX;
    self->retained_most = (uint64_t)(options->pool_bytes * options->executors / 2);
    self->block_bytes = (size_t)options->batch_bytes;
    self->inbox.executor = self->lane;
    self->cyclic_inbox.executor = self->lane;
    self->cyclic_inbox.is_cyclic = true;
    self->pending = sl_calloc((size_t)worker->executor_count, sizeof(*self->pending));
    pthread_mutex_init(&self->letters_lock, NULL);
    return self;
}

static void
queue_give(struct sl__queue *queue)
{
    while (queue->first != NULL) {
        struct sl__batch *batch = queue->first;
        queue->first = batch->next;
        sl__batch_give(NULL, batch);
    }
    queue->last = NULL;
}

static void
dests_free(struct sl__peer *peer)
{
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&peer->dests, &at)) != NULL;) {
        struct sl__dest *dest = (struct sl__dest *)(uintptr_t)entry->value;
        queue_give(&dest->queue);
        sl_free(dest);
    }
    sl_map_u64_destroy(&peer->dests);
}

static void
sources_free(struct sl__peer *peer)
{
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&peer->sources, &at)) != NULL;) {
        sl_free((void *)(uintptr_t)entry->value);
    }
    sl_map_u64_clear(&peer->sources);
    peer->dirty = NULL;
}

static void
letters_push(struct sl__letters *list, struct sl__letter *letter)
{
    letter->next = NULL;
    if (list->last != NULL) {
        list->last->next = letter;
    } else {
        list->first = letter;
    }
    list->last = letter;
}

static struct sl__letter *
letters_pop(struct sl__letters *list)
{
    struct sl__letter *letter = list->first;
    list->first = letter->next;
    if (list->first == NULL) {
        list->last = NULL;
    }
    return letter;
}

static void
letters_free(struct sl__letters *list)
{
    while (list->first != NULL) {
        sl_free(letters_pop(list));
    }
}

static void
frame_free(struct sl__sent *frame)
{
    if (frame->batch != NULL) {
        sl__batch_give(NULL, frame->batch);
    }
    sl_free(frame->letter);
    sl_free(frame->acks);
}

static void
peer_free(struct sl__peer *peer)
{
    for (size_t i = peer->sent_first; i < peer->sent.count; i++) {
        frame_free(&peer->sent.items[i]);
    }
    sl_vec_destroy(&peer->sent);
    dests_free(peer);
    sources_free(peer);
    sl_map_u64_destroy(&peer->sources);
    sl_vec_destroy(&peer->marks);
    sl_buf_destroy(&peer->acks);
    sl_buf_destroy(&peer->message);
    sl_buf_destroy(&peer->credit);
    letters_free(&peer->letters);
    sl_free(peer->reader.batch);
    sl_free(peer->reader.letter);
    sl_free(peer);
}

void
sl__remote_free(struct sl_remote *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->peers.count; i++) {
        if (self->peers.items[i] != NULL) {
            peer_free(self->peers.items[i]);
        }
    }
    sl_vec_destroy(&self->peers);
    for (int32_t i = 0; i < self->worker->executor_count; i++) {
        queue_give(&self->pending[i]);
    }
    sl_free(self->pending);
    while (self->free_blocks != NULL) {
        struct sl__batch *batch = self->free_blocks;
        self->free_blocks = batch->next;
        sl_free(batch);
    }
    letters_free(&self->letters);
    pthread_mutex_destroy(&self->letters_lock);
    sl_free(self);
}

struct sl_remote *
sl_worker_remote(struct sl_worker *worker)
{
    return worker->remote;
}

void
sl_remote_set_wake(struct sl_remote *self, void (*wake)(void *ctx), void *ctx)
{
    self->lane->wake_ctx = ctx;
    self->lane->wake = wake;
}

/* ---- peers ---------------------------------------------------------------------------------- */

struct sl__peer *
sl__peer_find(const struct sl_remote *self, int32_t id)
{
    return id >= 0 && (size_t)id < self->peers.count ? self->peers.items[id] : NULL;
}

static struct sl__peer *
peer_get(struct sl_remote *self, int32_t id)
{
    sl_assert(id >= 0 && id <= SL_REMOTE_PEER_MAX);
    while (self->peers.count <= (size_t)id) {
        sl_vec_push(&self->peers, NULL);
    }
    if (self->peers.items[id] == NULL) {
        struct sl__peer *peer = sl_calloc(1, sizeof(*peer));
        peer->id = id;
        sl_map_u64_create(&peer->dests);
        sl_map_u64_create(&peer->sources);
        self->peers.items[id] = peer;
        self->peer_count++;
    }
    return self->peers.items[id];
}

static struct sl__dest *
dest_get(struct sl__peer *peer, int32_t task)
{
    struct sl__dest *dest = sl_map_u64_get_ptr(&peer->dests, (uint64_t)task);
    if (dest == NULL) {
        dest = sl_calloc(1, sizeof(*dest));
        dest->task = task;
        dest->granted = peer->window;
        sl_map_u64_put_ptr(&peer->dests, (uint64_t)task, dest);
    }
    return dest;
}

/* A task that has something queued is looked at again. */
static void
dest_ready(struct sl__peer *peer, struct sl__dest *dest)
{
    if (dest->is_ready || dest->queue.first == NULL) {
        return;
    }
    dest->is_ready = true;
    dest->next = NULL;
    if (peer->ready_last != NULL) {
        peer->ready_last->next = dest;
    } else {
        peer->ready_first = dest;
    }
    peer->ready_last = dest;
}

struct sl__source *
sl__source_get(struct sl_remote *self, struct sl__peer *peer, int32_t task)
{
    struct sl__source *source = sl_map_u64_get_ptr(&peer->sources, (uint64_t)task);
    if (source == NULL) {
        source = sl_calloc(1, sizeof(*source));
        source->task = task;
        source->told = self->window;
        sl_map_u64_put_ptr(&peer->sources, (uint64_t)task, source);
    }
    return source;
}

void
sl__source_consumed(struct sl__peer *peer, struct sl__source *source, uint32_t charge)
{
    source->consumed += charge;
    if (!source->is_dirty) {
        source->is_dirty = true;
        source->next = peer->dirty;
        peer->dirty = source;
    }
}

/* ---- what executors have for others --------------------------------------------------------- */

static void
queue_push(struct sl__queue *queue, struct sl__batch *batch)
{
    batch->next = NULL;
    if (queue->last != NULL) {
        queue->last->next = batch;
    } else {
        queue->first = batch;
    }
    queue->last = batch;
}

static struct sl__batch *
queue_pop(struct sl__queue *queue)
{
    struct sl__batch *batch = queue->first;
    queue->first = batch->next;
    if (queue->first == NULL) {
        queue->last = NULL;
    }
    batch->next = NULL;
    return batch;
}

/* Hands a batch to an executor here, now or when its ring has room. */
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
        queue_push(&self->pending[executor], batch);
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
            struct sl__batch *batch = queue_pop(&self->pending[i]);
            sl_ring_push(ring, &batch);
            sl__executor_ring_bell(worker->executors[i]);
        }
    }
}

/* Where a task is: an executor here, the lane, or -1. */
static int32_t
task_home(struct sl_worker *worker, int32_t task)
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
    struct sl__peer *peer = peer_get(self, task_peer(self->worker, task));
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

/* The tuples of a batch are lost: their trees fail. */
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

/* A batch has left its outbox for good. */
static void
batch_release(struct sl_remote *self, struct sl__batch *batch)
{
    struct sl__outbox *outbox = batch->outbox;
    batch->outbox = NULL;
    sl__outbox_released(self->lane, outbox);
}

static void
batch_out(struct sl_remote *self, struct sl__batch *batch)
{
    int32_t home = task_home(self->worker, batch->io.dest);
    if (home == self->lane->index) {
        struct sl__peer *peer = peer_get(self, task_peer(self->worker, batch->io.dest));
        struct sl__dest *dest = dest_get(peer, batch->io.dest);
        queue_push(&dest->queue, batch);
        self->stats.queued++;
        dest_ready(peer, dest);
    } else if (home >= 0) {
        /* It has moved here since. */
        sl__remote_hand_in(self, home, batch);
    } else {
        self->stats.strays++;
        sl__remote_fail_batch(self, batch);
        batch_release(self, batch);
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

/* ---- messages ------------------------------------------------------------------------------- */

void
sl_remote_listen(struct sl_remote *self, const struct sl_remote_listener *listener)
{
    self->listener = listener != NULL ? *listener : (struct sl_remote_listener){0};
}

int
sl_remote_send(struct sl_remote *self, int32_t peer, const void *bytes, size_t size)
{
    if (peer < 0 || peer > SL_REMOTE_PEER_MAX || size == 0) {
        return sl_err_set(SL_EINVAL, "a message of %zu bytes to process %d", size, peer);
    }
    if (size > SL_REMOTE_FRAME_MAX) {
        return sl_err_set(SL_ELIMIT, "a message of %zu bytes, %d are the most", size,
                          SL_REMOTE_FRAME_MAX);
    }
    struct sl__letter *letter = sl_alloc(sizeof(*letter) + size);
    letter->peer = peer;
    letter->size = size;
    memcpy(letter->bytes, bytes, size);
    pthread_mutex_lock(&self->letters_lock);
    letters_push(&self->letters, letter);
    pthread_mutex_unlock(&self->letters_lock);
    sl__executor_ring_bell(self->lane);
    return 0;
}

static void
letters_take(struct sl_remote *self)
{
    pthread_mutex_lock(&self->letters_lock);
    struct sl__letters taken = self->letters;
    self->letters = (struct sl__letters){0};
    pthread_mutex_unlock(&self->letters_lock);
    while (taken.first != NULL) {
        struct sl__letter *letter = letters_pop(&taken);
        letters_push(&peer_get(self, letter->peer)->letters, letter);
        self->stats.queued++;
    }
}

static bool
has_letters(struct sl_remote *self)
{
    pthread_mutex_lock(&self->letters_lock);
    bool has_some = self->letters.first != NULL;
    pthread_mutex_unlock(&self->letters_lock);
    return has_some;
}

static void
tell(struct sl_remote *self, const struct sl__peer *peer, enum sl_remote_change change)
{
    if (self->listener.on_change != NULL) {
        self->listener.on_change(self->listener.ctx, peer->id, change);
    }
}

void
sl_remote_pump(struct sl_remote *self)
{
    __atomic_store_n(&self->lane->is_asleep, 0, __ATOMIC_RELAXED);
    letters_take(self);
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
    bool is_idle =
        __atomic_load_n(&self->lane->pool.returned, __ATOMIC_RELAXED) == NULL && !has_letters(self);
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

/* ---- sessions ------------------------------------------------------------------------------- */

const uint8_t *
sl_remote_identity(const struct sl_remote *self, int32_t id)
{
    const struct sl__peer *peer = sl__peer_find(self, id);
    return peer != NULL && peer->is_known ? peer->identity : NULL;
}

uint64_t
sl_remote_received(const struct sl_remote *self, int32_t id)
{
    const struct sl__peer *peer = sl__peer_find(self, id);
    return peer != NULL ? peer->received : 0;
}

uint32_t
sl_remote_window(const struct sl_remote *self)
{
    return self->window;
}

static uint64_t
unconfirmed(const struct sl__peer *peer)
{
    return peer->sent.count - peer->sent_first;
}

bool
sl_remote_can_resume(const struct sl_remote *self, int32_t id, uint64_t received)
{
    const struct sl__peer *peer = sl__peer_find(self, id);
    return peer != NULL && peer->is_known && received >= peer->confirmed &&
           received - peer->confirmed <= unconfirmed(peer);
}

/* What the peer has need not be kept. */
static void
confirm(struct sl_remote *self, struct sl__peer *peer, uint64_t received)
{
    while (peer->confirmed < received) {
        struct sl__sent *frame = &peer->sent.items[peer->sent_first++];
        peer->retained_bytes -= frame->size;
        frame_free(frame);
        peer->confirmed++;
        peer->written -= peer->written > 0;
        self->stats.unconfirmed--;
    }
    if (peer->sent_first > 64 && peer->sent_first * 2 > peer->sent.count) {
        peer->sent.count -= peer->sent_first;
        memmove(peer->sent.items, peer->sent.items + peer->sent_first,
                peer->sent.count * sizeof(*peer->sent.items));
        peer->sent_first = 0;
    }
}

/* An end of input that the peer told of is taken back: its tasks are gone. */
static void
mark_undo(struct sl_remote *self, const struct sl__mark *mark)
{
    int32_t home = task_home(self->worker, mark->dest);
    struct sl__batch *batch =
        home >= 0 && home != self->lane->index ? sl__remote_block(self, 0) : NULL;
    if (batch != NULL) {
        batch->io = (struct sl_batch){.head = batch->data,
                                      .tail = batch->data,
                                      .source = mark->source,
                                      .dest = mark->dest,
                                      .stream = mark->stream};
        batch->mark = -1;
        batch->outbox = mark->is_cyclic ? &self->cyclic_inbox : &self->inbox;
        batch->peer = -1;
        batch->charge = 0;
        self->stats.held++;
        __atomic_add_fetch(&batch->outbox->in_flight, 1, __ATOMIC_RELAXED);
        sl__remote_hand_in(self, home, batch);
    }
}

/* Those of tasks that are in the plan no more, or elsewhere, go on counting. */
static void
marks_undo(struct sl_remote *self, struct sl__peer *peer)
{
    struct sl_worker *worker = self->worker;
    size_t count = 0;
    pthread_mutex_lock(&worker->plan_lock);
    for (size_t i = 0; i < peer->marks.count; i++) {
        struct sl__mark mark = peer->marks.items[i];
        if (worker->task_placed[mark.source] == mark.placed) {
            __atomic_store_n(&worker->task_has_ended[mark.source], 0, __ATOMIC_RELEASE);
            peer->marks.items[count++] = mark;
        }
    }
    pthread_mutex_unlock(&worker->plan_lock);
    for (size_t i = 0; i < count; i++) {
        mark_undo(self, &peer->marks.items[i]);
    }
    sl_vec_clear(&peer->marks);
}

/* The acks of what a peer had will not come: the executors' spouts do not wait for them. */
static void
losses_tell(struct sl_worker *worker)
{
    __atomic_add_fetch(&worker->losses, 1, __ATOMIC_RELEASE);
    for (int32_t i = 0; i < worker->executor_count; i++) {
        sl__executor_ring_bell(worker->executors[i]);
    }
}

/*
 * What was under way to the peer is lost, and what it has sent is void.  Acks are kept for the
 * process that follows: others may have heard of it earlier, and roots that it has emitted since,
 * or whose ackers it has, may have ended here.  Acks of roots of before find nothing there.
 */
static void
session_end(struct sl_remote *self, struct sl__peer *peer)
{
    struct sl_buf acks = {0};
    for (size_t i = peer->sent_first; i < peer->sent.count; i++) {
        const struct sl__sent *frame = &peer->sent.items[i];
        if (frame->batch != NULL) {
            sl__remote_fail_batch(self, frame->batch);
        } else if (frame->acks != NULL) {
            sl_buf_append(&acks, frame->acks, frame->count * sizeof(struct sl__ack));
        }
    }
    confirm(self, peer, peer->confirmed + unconfirmed(peer));
    if (peer->is_known) {
        losses_tell(self->worker);
        sl_buf_append(&acks, peer->acks.data, peer->acks.size);
        sl_buf_destroy(&peer->acks);
        peer->acks = acks;
    }
    peer->confirmed = 0;
    peer->written = 0;
    peer->received = 0;
    peer->session++;
    peer->is_known = false;
    peer->is_confirm_due = false;
    sources_free(peer);
    marks_undo(self, peer);
}

static void
session_begin(struct sl__peer *peer)
{
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&peer->dests, &at)) != NULL;) {
        struct sl__dest *dest = (struct sl__dest *)(uintptr_t)entry->value;
        dest->sent = 0;
        dest->granted = peer->window;
    }
}

void
sl_remote_open(struct sl_remote *self, int32_t id, const uint8_t *identity, uint32_t window,
               bool resumes, uint64_t received)
{
    struct sl__peer *peer = peer_get(self, id);
    sl__reader_reset(self, &peer->reader);
    if (resumes) {
        confirm(self, peer, received);
    } else {
        session_end(self, peer);
        peer->is_known = true;
        memcpy(peer->identity, identity, sizeof(peer->identity));
        peer->window = window;
        session_begin(peer);
    }
    peer->is_open = true;
    peer->is_pinned = false;
    peer->written = 0;
    /* Grants that were under way may be lost. */
    sl_remote_refresh(self, id);
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&peer->dests, &at)) != NULL;) {
        dest_ready(peer, (struct sl__dest *)(uintptr_t)entry->value);
    }
    tell(self, peer, resumes ? SL_REMOTE_RESUMED : SL_REMOTE_BEGAN);
}

void
sl_remote_close(struct sl_remote *self, int32_t id)
{
    struct sl__peer *peer = sl__peer_find(self, id);
    if (peer != NULL) {
        bool was_open = peer->is_open;
        peer->is_open = false;
        peer->is_pinned = false;
        sl__reader_reset(self, &peer->reader);
        if (was_open) {
            tell(self, peer, SL_REMOTE_BROKE);
        }
    }
}

void
sl_remote_forget(struct sl_remote *self, int32_t id)
{
    struct sl__peer *peer = sl__peer_find(self, id);
    if (peer == NULL) {
        return;
    }
    sl_remote_close(self, id);
    session_end(self, peer);
    for (; peer->letters.first != NULL; self->stats.queued--) {
        sl_free(letters_pop(&peer->letters));
    }
    tell(self, peer, SL_REMOTE_ENDED);
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&peer->dests, &at)) != NULL;) {
        struct sl__dest *dest = (struct sl__dest *)(uintptr_t)entry->value;
        while (dest->queue.first != NULL) {
            struct sl__batch *batch = queue_pop(&dest->queue);
            self->stats.queued--;
            sl__remote_fail_batch(self, batch);
            batch_release(self, batch);
            sl__batch_give(NULL, batch);
        }
    }
    dests_free(peer);
    sl_map_u64_create(&peer->dests);
    peer->ready_first = NULL;
    peer->ready_last = NULL;
    sl__acks_flush(self->lane);
}

/* ---- frames to write ------------------------------------------------------------------------ */

static void
put_header(struct sl_remote_frame *out, uint16_t type, uint32_t count, size_t size)
{
    struct sl__frame_head head = {
        .size = (uint32_t)size, .type = type, .flags = 0, .count = count, .check = SL_FRAME_MAGIC};
    memcpy(out->head, &head, sizeof(head));
    out->head_size = sizeof(head);
}

static void
put_sent(const struct sl__sent *frame, struct sl_remote_frame *out)
{
    const struct sl__batch *batch = frame->batch;
    if (frame->letter != NULL) {
        put_header(out, SL_REMOTE_MESSAGE, 1, frame->letter->size);
        out->body = frame->letter->bytes;
        out->body_size = frame->letter->size;
        return;
    }
    if (batch == NULL) {
        put_header(out, SL_REMOTE_ACKS, frame->count, frame->count * sizeof(struct sl__ack));
        out->body = frame->acks;
        out->body_size = frame->count * sizeof(struct sl__ack);
        return;
    }
    size_t bytes = (size_t)(batch->io.tail - batch->io.head);
    struct sl__data_head data = {.source = (uint32_t)batch->io.source,
                                 .dest = (uint32_t)batch->io.dest,
                                 .stream = (uint32_t)batch->io.stream,
                                 .mark = batch->mark};
    put_header(out, SL_REMOTE_DATA, (uint32_t)batch->io.count, sizeof(data) + bytes);
    memcpy(out->head + out->head_size, &data, sizeof(data));
    out->head_size += sizeof(data);
    out->body = batch->io.head;
    out->body_size = bytes;
}

void
sl_remote_refresh(struct sl_remote *self, int32_t id)
{
    struct sl__peer *peer = sl__peer_find(self, id);
    if (peer == NULL) {
        return;
    }
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&peer->sources, &at)) != NULL;) {
        sl__source_consumed(peer, (struct sl__source *)(uintptr_t)entry->value, 0);
    }
    peer->is_confirm_due = true;
}

static bool
next_credit(struct sl_remote *self, struct sl__peer *peer, struct sl_remote_frame *out)
{
    if (peer->dirty == NULL && !peer->is_confirm_due) {
        return false;
    }
    peer->is_confirm_due = false;
    sl_buf_clear(&peer->credit);
    sl_buf_append_u64(&peer->credit, peer->received);
    uint32_t count = 1;
    while (peer->dirty != NULL && count < SL__REMOTE_GRANTS) {
        struct sl__source *source = peer->dirty;
        peer->dirty = source->next;
        source->is_dirty = false;
        source->told = source->consumed + self->window;
        sl_buf_append_u64(&peer->credit, (uint64_t)source->task);
        sl_buf_append_u64(&peer->credit, source->told);
        count++;
    }
    put_header(out, SL_REMOTE_CREDIT, count, peer->credit.size);
    out->body = peer->credit.data;
    out->body_size = peer->credit.size;
    return true;
}

/* A frame that is written for the first time is kept until the peer has it. */
static void
keep(struct sl_remote *self, struct sl__peer *peer, const struct sl__sent *frame,
     struct sl_remote_frame *out)
{
    sl_vec_push(&peer->sent, *frame);
    peer->retained_bytes += frame->size;
    peer->written++;
    peer->is_pinned = true;
    self->stats.sent++;
    self->stats.unconfirmed++;
    put_sent(frame, out);
}

static bool
next_acks(struct sl_remote *self, struct sl__peer *peer, struct sl_remote_frame *out)
{
    size_t bytes = peer->acks.size;
    if (bytes == 0) {
        return false;
    }
    if (bytes > SL__REMOTE_ACKS_FRAME * sizeof(struct sl__ack)) {
        bytes = SL__REMOTE_ACKS_FRAME * sizeof(struct sl__ack);
    }
    struct sl__sent frame = {.acks = sl_alloc(bytes),
                             .count = (uint32_t)(bytes / sizeof(struct sl__ack)),
                             .size = bytes};
    memcpy(frame.acks, peer->acks.data, bytes);
    sl_buf_consume(&peer->acks, bytes);
    keep(self, peer, &frame, out);
    return true;
}

static bool
next_letter(struct sl_remote *self, struct sl__peer *peer, struct sl_remote_frame *out)
{
    if (peer->letters.first == NULL) {
        return false;
    }
    struct sl__letter *letter = letters_pop(&peer->letters);
    struct sl__sent frame = {.letter = letter, .count = 1, .size = letter->size};
    self->stats.queued--;
    keep(self, peer, &frame, out);
    return true;
}

static bool
next_data(struct sl_remote *self, struct sl__peer *peer, struct sl_remote_frame *out)
{
    uint64_t share = self->retained_most / (self->peer_count > 0 ? self->peer_count : 1);
    while (peer->ready_first != NULL && (peer->retained_bytes < share || unconfirmed(peer) == 0)) {
        struct sl__dest *dest = peer->ready_first;
        peer->ready_first = dest->next;
        if (peer->ready_first == NULL) {
            peer->ready_last = NULL;
        }
        dest->is_ready = false;
        size_t bytes = (size_t)(dest->queue.first->io.tail - dest->queue.first->io.head);
        uint32_t charge = sl__remote_charge(bytes, peer->window);
        if (dest->granted - dest->sent < charge) {
            /* Looked at again when a grant comes. */
            continue;
        }
        dest->sent += charge;
        struct sl__batch *batch = queue_pop(&dest->queue);
        self->stats.queued--;
        batch_release(self, batch);
        /* Tasks take turns. */
        dest_ready(peer, dest);
        struct sl__sent frame = {.batch = batch, .size = (size_t)(batch->limit - batch->data)};
        keep(self, peer, &frame, out);
        return true;
    }
    return false;
}

bool
sl_remote_next(struct sl_remote *self, int32_t id, struct sl_remote_frame *out)
{
    struct sl__peer *peer = sl__peer_find(self, id);
    if (peer == NULL || !peer->is_open) {
        return false;
    }
    peer->is_pinned = false;
    if (peer->written < unconfirmed(peer)) {
        put_sent(&peer->sent.items[peer->sent_first + peer->written++], out);
        peer->is_pinned = true;
        return true;
    }
    return next_credit(self, peer, out) || next_acks(self, peer, out) ||
           next_letter(self, peer, out) || next_data(self, peer, out);
}

/* ---- what a peer says of our frames --------------------------------------------------------- */

int
sl__remote_take_credit(struct sl_remote *self, struct sl__peer *peer, const uint8_t *data,
                       uint32_t count)
{
    uint64_t pair[2];
    memcpy(pair, data, sizeof(uint64_t));
    data += sizeof(uint64_t);
    /* A frame that is being written can not have arrived. */
    uint64_t most = peer->confirmed + peer->written - peer->is_pinned;
    if (pair[0] < peer->confirmed || pair[0] > most) {
        return sl_err_set(SL_EPROTO, "process %d has %llu frames of %llu", peer->id,
                          (unsigned long long)pair[0], (unsigned long long)most);
    }
    confirm(self, peer, pair[0]);
    for (uint32_t i = 1; i < count; i++, data += sizeof(pair)) {
        memcpy(pair, data, sizeof(pair));
        if (pair[0] >= (uint64_t)self->worker->task_capacity) {
            return sl_err_set(SL_EPROTO, "a grant for task %llu", (unsigned long long)pair[0]);
        }
        struct sl__dest *dest = dest_get(peer, (int32_t)pair[0]);
        if (pair[1] > dest->granted) {
            if (pair[1] > dest->sent + peer->window) {
                return sl_err_set(SL_EPROTO,
                                  "a grant of %llu bytes for task %llu, of which %llu %s",
                                  (unsigned long long)pair[1], (unsigned long long)pair[0],
                                  (unsigned long long)dest->sent, "were sent");
            }
            dest->granted = pair[1];
        }
        dest_ready(peer, dest);
    }
    return 0;
}

void
sl_remote_stats(const struct sl_remote *self, struct sl_remote_stats *out)
{
    *out = self->stats;
}
