/*
 * The lane and its peers: their life, the tasks that each of them knows, and messages.  The lane is
 * the last "executor" of the worker: rings lead to it and from it as to any other, batches received
 * belong to its pool, and whoever has executed one gives it back there; that is how credit returns.
 * Between rings and peers: remote_queues.c. Sessions: remote_session.c. Frames: remote_writer.c and
 * remote_reader.c.
 */

#include "stream/remote.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "stream/remote_priv.h"

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

void
sl__dests_free(struct sl__peer *peer)
{
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&peer->dests, &at)) != NULL;) {
        struct sl__dest *dest = (struct sl__dest *)(uintptr_t)entry->value;
        queue_give(&dest->queue);
        sl_free(dest);
    }
    sl_map_u64_destroy(&peer->dests);
}

void
sl__sources_free(struct sl__peer *peer)
{
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&peer->sources, &at)) != NULL;) {
        sl_free((void *)(uintptr_t)entry->value);
    }
    sl_map_u64_clear(&peer->sources);
    peer->dirty = NULL;
}

static void
letters_free(struct sl__letters *list)
{
    while (list->first != NULL) {
        sl_free(sl__letters_pop(list));
    }
}

void
sl__sent_free(struct sl__sent *frame)
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
        sl__sent_free(&peer->sent.items[i]);
    }
    sl_vec_destroy(&peer->sent);
    sl__dests_free(peer);
    sl__sources_free(peer);
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

void
sl_remote_stats(const struct sl_remote *self, struct sl_remote_stats *out)
{
    *out = self->stats;
}

/* ---- peers ---------------------------------------------------------------------------------- */

struct sl__peer *
sl__peer_find(const struct sl_remote *self, int32_t id)
{
    return id >= 0 && (size_t)id < self->peers.count ? self->peers.items[id] : NULL;
}

struct sl__peer *
sl__peer_get(struct sl_remote *self, int32_t id)
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

struct sl__dest *
sl__dest_get(struct sl__peer *peer, int32_t task)
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

void
sl__dest_ready(struct sl__peer *peer, struct sl__dest *dest)
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
    sl__letters_push(&self->letters, letter);
    pthread_mutex_unlock(&self->letters_lock);
    sl__executor_ring_bell(self->lane);
    return 0;
}

void
sl__letters_take(struct sl_remote *self)
{
    pthread_mutex_lock(&self->letters_lock);
    struct sl__letters taken = self->letters;
    self->letters = (struct sl__letters){0};
    pthread_mutex_unlock(&self->letters_lock);
    while (taken.first != NULL) {
        struct sl__letter *letter = sl__letters_pop(&taken);
        sl__letters_push(&sl__peer_get(self, letter->peer)->letters, letter);
        self->stats.queued++;
    }
}

bool
sl__remote_has_letters(struct sl_remote *self)
{
    pthread_mutex_lock(&self->letters_lock);
    bool has_some = self->letters.first != NULL;
    pthread_mutex_unlock(&self->letters_lock);
    return has_some;
}
