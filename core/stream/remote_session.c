/* Sessions with peers: what they have, how they begin, go on after a break, and end. */

#include "base/alloc.h"
#include "stream/remote_priv.h"

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

bool
sl_remote_can_resume(const struct sl_remote *self, int32_t id, uint64_t received)
{
    const struct sl__peer *peer = sl__peer_find(self, id);
    return peer != NULL && peer->is_known && received >= peer->confirmed &&
           received - peer->confirmed <= sl__peer_unconfirmed(peer);
}

void
sl__peer_confirm(struct sl_remote *self, struct sl__peer *peer, uint64_t received)
{
    while (peer->confirmed < received) {
        struct sl__sent *frame = &peer->sent.items[peer->sent_first++];
        peer->retained_bytes -= frame->size;
        sl__sent_free(frame);
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
    int32_t home = sl__remote_task_home(self->worker, mark->dest);
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
    sl__peer_confirm(self, peer, peer->confirmed + sl__peer_unconfirmed(peer));
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
    sl__sources_free(peer);
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

static void
tell(struct sl_remote *self, const struct sl__peer *peer, enum sl_remote_change change)
{
    if (self->listener.on_change != NULL) {
        self->listener.on_change(self->listener.ctx, peer->id, change);
    }
}

void
sl_remote_open(struct sl_remote *self, int32_t id, const uint8_t *identity, uint32_t window,
               bool resumes, uint64_t received)
{
    struct sl__peer *peer = sl__peer_get(self, id);
    sl__reader_reset(self, &peer->reader);
    if (resumes) {
        sl__peer_confirm(self, peer, received);
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
        sl__dest_ready(peer, (struct sl__dest *)(uintptr_t)entry->value);
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
        sl_free(sl__letters_pop(&peer->letters));
    }
    tell(self, peer, SL_REMOTE_ENDED);
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&peer->dests, &at)) != NULL;) {
        struct sl__dest *dest = (struct sl__dest *)(uintptr_t)entry->value;
        while (dest->queue.first != NULL) {
            struct sl__batch *batch = sl__queue_pop(&dest->queue);
            self->stats.queued--;
            sl__remote_fail_batch(self, batch);
            sl__remote_release(self, batch);
            sl__batch_give(NULL, batch);
        }
    }
    sl__dests_free(peer);
    sl_map_u64_create(&peer->dests);
    peer->ready_first = NULL;
    peer->ready_last = NULL;
    sl__acks_flush(self->lane);
}
