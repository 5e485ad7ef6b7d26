/* Frames for other processes: grants, acks, messages, then data as far as there is credit. */

#include "base/alloc.h"
#include "stream/remote_priv.h"

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
    struct sl__letter *letter = sl__letters_pop(&peer->letters);
    struct sl__sent frame = {.letter = letter, .count = 1, .size = letter->size};
    self->stats.queued--;
    keep(self, peer, &frame, out);
    return true;
}

static bool
next_data(struct sl_remote *self, struct sl__peer *peer, struct sl_remote_frame *out)
{
    uint64_t share = self->retained_most / (self->peer_count > 0 ? self->peer_count : 1);
    while (peer->ready_first != NULL &&
           (peer->retained_bytes < share || sl__peer_unconfirmed(peer) == 0)) {
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
        struct sl__batch *batch = sl__queue_pop(&dest->queue);
        self->stats.queued--;
        sl__remote_release(self, batch);
        /* Tasks take turns. */
        sl__dest_ready(peer, dest);
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
    if (peer->written < sl__peer_unconfirmed(peer)) {
        put_sent(&peer->sent.items[peer->sent_first + peer->written++], out);
        peer->is_pinned = true;
        return true;
    }
    return next_credit(self, peer, out) || next_acks(self, peer, out) ||
           next_letter(self, peer, out) || next_data(self, peer, out);
}

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
    sl__peer_confirm(self, peer, pair[0]);
    for (uint32_t i = 1; i < count; i++, data += sizeof(pair)) {
        memcpy(pair, data, sizeof(pair));
        if (pair[0] >= (uint64_t)self->worker->task_capacity) {
            return sl_err_set(SL_EPROTO, "a grant for task %llu", (unsigned long long)pair[0]);
        }
        struct sl__dest *dest = sl__dest_get(peer, (int32_t)pair[0]);
        if (pair[1] > dest->granted) {
            if (pair[1] > dest->sent + peer->window) {
                return sl_err_set(SL_EPROTO,
                                  "a grant of %llu bytes for task %llu, of which %llu %s",
                                  (unsigned long long)pair[1], (unsigned long long)pair[0],
                                  (unsigned long long)dest->sent, "were sent");
            }
            dest->granted = pair[1];
        }
        sl__dest_ready(peer, dest);
    }
    return 0;
}
