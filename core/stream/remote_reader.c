/*
 * Frames from other processes.  Records are read straight into the batch that goes to an executor,
 * and everything that its loop over them relies on is checked here once: lengths, offsets, encoded
 * tables, ids.  Nothing that a peer sends makes us read or write outside of a batch.
 */

#include "base/alloc.h"
#include "base/assert.h"
#include "stream/remote_priv.h"
#include "stream/value.h"

void
sl__reader_reset(struct sl_remote *self, struct sl__frame_reader *reader)
{
    (void)self;
    sl_free(reader->batch);
    sl_free(reader->letter);
    *reader = (struct sl__frame_reader){0};
}

static bool
slot_fits(const struct sl_record *record, const struct sl_slot *slot, size_t least, size_t end)
{
    switch (slot->tag) {
    case SL_VALUE_NIL:
    case SL_VALUE_FALSE:
    case SL_VALUE_TRUE:
    case SL_VALUE_NULL:
    case SL_VALUE_NUMBER:
    case SL_VALUE_INT64:
    case SL_VALUE_UINT64:
        return true;
    case SL_VALUE_STRING:
    case SL_VALUE_TABLE:
        break;
    default:
        return false;
    }
    if (slot->len < 0 || slot->offset < (int64_t)least || slot->offset > (int64_t)end ||
        (int64_t)end - slot->offset < slot->len) {
        return false;
    }
    if (slot->tag == SL_VALUE_STRING) {
        return true;
    }
    const uint8_t *bytes = (const uint8_t *)record + slot->offset;
    return slot->len > 0 && sl_value_measure(bytes, (size_t)slot->len) == slot->len;
}

/* True when a record lies within `left` bytes and all its values within the record. */
static bool
record_fits(const struct sl_record *record, size_t left, int32_t field_count)
{
    size_t least = sizeof(*record) + (size_t)field_count * sizeof(struct sl_slot);
    if (left < least || record->len < 0 || (size_t)record->len > left || record->len % 8 != 0 ||
        record->anchors < 0) {
        return false;
    }
    size_t end = (size_t)record->len;
    size_t pairs = record->anchors > 1 ? (size_t)record->anchors - 1 : 0;
    if (end < least || pairs > (end - least) / sizeof(struct sl_pair)) {
        return false;
    }
    end -= pairs * sizeof(struct sl_pair);
    for (int32_t i = 0; i < field_count; i++) {
        if (!slot_fits(record, &record->slots[i], least, end)) {
            return false;
        }
    }
    return true;
}

static bool
records_fit(const struct sl__batch *batch, size_t bytes, uint32_t count, int32_t field_count)
{
    const uint8_t *at = batch->data;
    const uint8_t *end = batch->data + bytes;
    for (uint32_t i = 0; i < count; i++) {
        const struct sl_record *record = (const struct sl_record *)at;
        if (!record_fits(record, (size_t)(end - at), field_count)) {
            return false;
        }
        at += record->len;
    }
    return at == end;
}

/* Keeps what the peer's tasks have told of ends of input, to take it back when they are gone. */
static void
mark_note(struct sl_remote *self, struct sl__peer *peer, const struct sl__batch *batch)
{
    struct sl_worker *worker = self->worker;
    struct sl__mark mark = {
        batch->io.source, batch->io.dest, batch->io.stream,
        __atomic_load_n(&worker->task_placed[batch->io.source], __ATOMIC_RELAXED),
        batch->outbox->is_cyclic};
    if (!mark.is_cyclic) {
        __atomic_store_n(&worker->task_has_ended[mark.source], batch->mark > 0, __ATOMIC_RELEASE);
    }
    for (size_t i = 0; i < peer->marks.count; i++) {
        const struct sl__mark *other = &peer->marks.items[i];
        if (other->source == mark.source && other->dest == mark.dest &&
            other->stream == mark.stream && other->placed == mark.placed) {
            if (batch->mark < 0) {
                sl_vec_remove_swap(&peer->marks, i);
            }
            return;
        }
    }
    if (batch->mark > 0) {
        sl_vec_push(&peer->marks, mark);
    }
}

/* Where the batch goes: an executor here, or -1 when its sender or receiver is not in the plan. */
static int32_t
batch_home(struct sl_remote *self, const struct sl__batch *batch, bool *is_cyclic)
{
    struct sl_worker *worker = self->worker;
    pthread_mutex_lock(&worker->plan_lock);
    int32_t home = worker->task_executor[batch->io.dest];
    if (worker->task_executor[batch->io.source] < 0 || home == self->lane->index) {
        home = -1;
    }
    if (home >= 0) {
        int32_t from = worker->components.items[worker->task_component[batch->io.source]].scc;
        int32_t to = worker->components.items[worker->task_component[batch->io.dest]].scc;
        *is_cyclic = from >= 0 && from == to;
    }
    pthread_mutex_unlock(&worker->plan_lock);
    return home;
}

static int
take_data(struct sl_remote *self, struct sl__peer *peer)
{
    struct sl_worker *worker = self->worker;
    struct sl__frame_reader *reader = &peer->reader;
    struct sl__batch *batch = reader->batch;
    struct sl__data_head head;
    memcpy(&head, reader->head + sizeof(struct sl__frame_head), sizeof(head));
    uint32_t tasks = (uint32_t)worker->task_capacity;
    if (head.source >= tasks || head.dest >= tasks || head.stream >= worker->streams.count ||
        head.mark < -1 || head.mark > 1 ||
        !records_fit(batch, reader->body_size, reader->frame.count,
                     worker->streams.items[head.stream].field_count)) {
        return sl_err_set(SL_EPROTO, "malformed records from process %d", peer->id);
    }
    uint32_t charge = sl__remote_charge(reader->body_size, self->window);
    struct sl__source *source = sl__source_get(self, peer, (int32_t)head.dest);
    if (source->told - source->received < charge) {
        return sl_err_set(SL_EPROTO, "process %d has sent more to task %u than it may", peer->id,
                          head.dest);
    }
    source->received += charge;
    batch->io = (struct sl_batch){.head = batch->data,
                                  .tail = batch->data + reader->body_size,
                                  .count = (int32_t)reader->frame.count,
                                  .source = (int32_t)head.source,
                                  .dest = (int32_t)head.dest,
                                  .stream = (int32_t)head.stream};
    batch->mark = head.mark;
    batch->peer = peer->id;
    batch->session = peer->session;
    batch->charge = charge;
    self->stats.held++;
    self->stats.held_bytes += charge;
    reader->batch = NULL;
    bool is_cyclic = false;
    int32_t home = batch_home(self, batch, &is_cyclic);
    if (home < 0) {
        self->stats.strays++;
        sl__remote_fail_batch(self, batch);
        sl__remote_return(self, batch);
        return 0;
    }
    batch->outbox = is_cyclic ? &self->cyclic_inbox : &self->inbox;
    if (batch->mark != 0) {
        mark_note(self, peer, batch);
    }
    __atomic_add_fetch(&batch->outbox->in_flight, 1, __ATOMIC_RELAXED);
    sl__remote_hand_in(self, home, batch);
    return 0;
}

static int
take_acks(struct sl_remote *self, struct sl__peer *peer)
{
    const uint8_t *at = peer->message.data;
    for (uint32_t i = 0; i < peer->reader.frame.count; i++, at += sizeof(struct sl__ack)) {
        struct sl__ack ack;
        memcpy(&ack, at, sizeof(ack));
        if (ack.op < SL__ACK || ack.op > SL__DONE_FAILED || ack.acker < -1) {
            return sl_err_set(SL_EPROTO, "malformed acks from process %d", peer->id);
        }
        int32_t task;
        int32_t home = sl__ack_home(self->worker, &ack, &task);
        if (home >= 0 && home != self->lane->index) {
            sl__ack_hand_in(self->lane, home, &ack);
        }
    }
    sl__acks_flush(self->lane);
    return 0;
}

static int
take_letter(struct sl_remote *self, struct sl__peer *peer)
{
    if (self->listener.on_message != NULL) {
        self->listener.on_message(self->listener.ctx, peer->id, peer->reader.letter,
                                  peer->reader.body_size);
    }
    return 0;
}

static int
frame_end(struct sl_remote *self, struct sl__peer *peer)
{
    struct sl__frame_reader *reader = &peer->reader;
    int rc;
    if (reader->frame.type == SL_REMOTE_CREDIT) {
        rc = sl__remote_take_credit(self, peer, peer->message.data, reader->frame.count);
    } else {
        rc = reader->frame.type == SL_REMOTE_DATA      ? take_data(self, peer)
             : reader->frame.type == SL_REMOTE_MESSAGE ? take_letter(self, peer)
                                                       : take_acks(self, peer);
        peer->received++;
        peer->is_confirm_due = true;
        self->stats.received++;
    }
    if (rc == 0) {
        sl__reader_reset(self, reader);
    }
    return rc;
}

/* The frame header is there: checks it and makes room for the body. */
static int
frame_begin(struct sl_remote *self, struct sl__peer *peer)
{
    struct sl__frame_reader *reader = &peer->reader;
    const struct sl__frame_head *frame = &reader->frame;
    uint64_t count = frame->count;
    uint64_t size = frame->size;
    bool fits = frame->check == SL_FRAME_MAGIC && frame->flags == 0 && size > 0;
    switch (frame->type) {
    case SL_REMOTE_DATA:
        fits = fits && size >= sizeof(struct sl__data_head) && size <= SL_REMOTE_FRAME_MAX &&
               count <= size / sizeof(struct sl_record);
        size -= sizeof(struct sl__data_head);
        break;
    case SL_REMOTE_ACKS:
        fits = fits && count <= SL__REMOTE_ACKS_FRAME && size == count * sizeof(struct sl__ack);
        break;
    case SL_REMOTE_CREDIT:
        fits = fits && count >= 1 && count <= SL__REMOTE_GRANTS &&
               size == sizeof(uint64_t) + (count - 1) * 2 * sizeof(uint64_t);
        break;
    case SL_REMOTE_MESSAGE:
        fits = fits && count == 1 && size <= SL_REMOTE_FRAME_MAX;
        break;
    default:
        fits = false;
        break;
    }
    if (!fits) {
        return sl_err_set(SL_EPROTO, "malformed frame of type %u from process %d", frame->type,
                          peer->id);
    }
    reader->body_size = size;
    reader->body_done = 0;
    if (frame->type == SL_REMOTE_DATA) {
        reader->batch = sl__remote_block(self, size);
        if (reader->batch == NULL) {
            return sl_err_set(SL_ENOMEM, "out of memory for a frame of %llu bytes",
                              (unsigned long long)size);
        }
        reader->body = reader->batch->data;
    } else if (frame->type == SL_REMOTE_MESSAGE) {
        reader->letter = sl_try_alloc(size);
        if (reader->letter == NULL) {
            return sl_err_set(SL_ENOMEM, "out of memory for a message of %llu bytes",
                              (unsigned long long)size);
        }
        reader->body = reader->letter;
    } else {
        sl_buf_clear(&peer->message);
        reader->body = sl_buf_reserve(&peer->message, size);
    }
    return 0;
}

/* Bytes of the header that this frame has. */
static size_t
head_wanted(const struct sl__frame_reader *reader)
{
    bool has_more =
        reader->head_size >= sizeof(struct sl__frame_head) && reader->frame.type == SL_REMOTE_DATA;
    return sizeof(struct sl__frame_head) + (has_more ? sizeof(struct sl__data_head) : 0);
}

static size_t
copy_piece(uint8_t *to, size_t *done, size_t wanted, const uint8_t *data, size_t size)
{
    size_t piece = wanted - *done < size ? wanted - *done : size;
    memcpy(to + *done, data, piece);
    *done += piece;
    return piece;
}

int
sl_remote_feed(struct sl_remote *self, int32_t id, const uint8_t *data, size_t size)
{
    struct sl__peer *peer = sl__peer_find(self, id);
    sl_assert(peer != NULL && peer->is_open);
    struct sl__frame_reader *reader = &peer->reader;
    while (size > 0) {
        size_t used;
        int rc = 0;
        if (reader->body == NULL) {
            used = copy_piece(reader->head, &reader->head_size, head_wanted(reader), data, size);
            if (reader->head_size == sizeof(reader->frame)) {
                memcpy(&reader->frame, reader->head, sizeof(reader->frame));
            }
            if (reader->head_size >= sizeof(reader->frame) &&
                reader->head_size == head_wanted(reader)) {
                rc = frame_begin(self, peer);
            }
        } else {
            used = copy_piece(reader->body, &reader->body_done, reader->body_size, data, size);
        }
        if (rc == 0 && reader->body != NULL && reader->body_done == reader->body_size) {
            rc = frame_end(self, peer);
        }
        if (rc != 0) {
            return rc;
        }
        data += used;
        size -= used;
    }
    return 0;
}
