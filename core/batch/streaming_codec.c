#include "batch/streaming_codec.h"

#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "streaming.pb-c.h"
#include "wire/message.h"

static const struct sl_pb_limits event_limits = {
    .max_size = 1024 * 1024 * 1024,
    .max_fields = 64 * 1024 * 1024,
};

static const struct sl_pb_limits checkpoint_limits = {
    .max_size = SL_CHECKPOINT_BYTES_MAX,
    .max_fields = 4 * 1024 * 1024,
};

static ProtobufCBinaryData
bytes_of(const char *text)
{
    return (ProtobufCBinaryData){text != NULL ? strlen(text) : 0, SL_PB_MUTABLE(text)};
}

/* The bytes with a NUL behind them. */
static const char *
text_of(struct sl_arena *arena, ProtobufCBinaryData bytes)
{
    return sl_arena_strndup(arena, bytes.len > 0 ? (const char *)bytes.data : "", bytes.len);
}

static void
encode_allocated(const struct sl_block_event *event, struct sl_buf *out)
{
    Streamlua__BlocksAllocated allocated = STREAMLUA__BLOCKS_ALLOCATED__INIT;
    Streamlua__AllocatedInput *inputs = sl_calloc(event->input_count, sizeof(*inputs));
    Streamlua__AllocatedInput **pointers = sl_calloc(event->input_count, sizeof(*pointers));
    for (size_t i = 0; i < event->input_count; i++) {
        streamlua__allocated_input__init(&inputs[i]);
        inputs[i].input = bytes_of(event->inputs[i].name);
        inputs[i].n_ids = event->inputs[i].id_count;
        inputs[i].ids = SL_PB_MUTABLE(event->inputs[i].ids);
        pointers[i] = &inputs[i];
    }
    allocated.time = event->time;
    allocated.n_inputs = event->input_count;
    allocated.inputs = pointers;
    Streamlua__BlockEvent message = STREAMLUA__BLOCK_EVENT__INIT;
    message.event_case = STREAMLUA__BLOCK_EVENT__EVENT_ALLOCATED;
    message.allocated = &allocated;
    sl_message_pack(&message.base, out);
    sl_free(inputs);
    sl_free(pointers);
}

static void
encode_added(const struct sl_block_event *event, struct sl_buf *out)
{
    Streamlua__BlockAdded added = STREAMLUA__BLOCK_ADDED__INIT;
    added.input = bytes_of(event->input);
    added.id = event->block.id;
    added.records = event->block.records;
    added.worker = bytes_of(event->block.worker);
    added.wal_path = bytes_of(event->block.wal_path);
    added.wal_offset = event->block.wal_offset;
    added.wal_length = event->block.wal_length;
    added.logged_at = event->time;
    Streamlua__BlockEvent message = STREAMLUA__BLOCK_EVENT__INIT;
    message.event_case = STREAMLUA__BLOCK_EVENT__EVENT_ADDED;
    message.added = &added;
    sl_message_pack(&message.base, out);
}

static void
encode_cleaned(const struct sl_block_event *event, struct sl_buf *out)
{
    Streamlua__BatchesCleaned cleaned = STREAMLUA__BATCHES_CLEANED__INIT;
    cleaned.n_times = event->time_count;
    cleaned.times = SL_PB_MUTABLE(event->times);
    Streamlua__BlockEvent message = STREAMLUA__BLOCK_EVENT__INIT;
    message.event_case = STREAMLUA__BLOCK_EVENT__EVENT_CLEANED;
    message.cleaned = &cleaned;
    sl_message_pack(&message.base, out);
}

void
sl_block_event_encode(const struct sl_block_event *event, struct sl_buf *out)
{
    switch (event->kind) {
    case SL_BLOCK_EVENT_ADDED:
        encode_added(event, out);
        break;
    case SL_BLOCK_EVENT_ALLOCATED:
        encode_allocated(event, out);
        break;
    case SL_BLOCK_EVENT_CLEANED:
        encode_cleaned(event, out);
        break;
    }
}

static void
read_added(const Streamlua__BlockAdded *added, struct sl_arena *arena, struct sl_block_event *event)
{
    event->kind = SL_BLOCK_EVENT_ADDED;
    event->input = text_of(arena, added->input);
    event->time = added->logged_at;
    event->block = (struct sl_streaming_block){
        .id = added->id,
        .records = added->records,
        .worker = text_of(arena, added->worker),
        .wal_path = text_of(arena, added->wal_path),
        .wal_offset = added->wal_offset,
        .wal_length = added->wal_length,
    };
}

static void
read_allocated(const Streamlua__BlocksAllocated *allocated, struct sl_arena *arena,
               struct sl_block_event *event)
{
    struct sl_block_event_input *inputs =
        sl_arena_calloc(arena, allocated->n_inputs, sizeof(*inputs));
    for (size_t i = 0; i < allocated->n_inputs; i++) {
        const Streamlua__AllocatedInput *input = allocated->inputs[i];
        inputs[i] =
            (struct sl_block_event_input){text_of(arena, input->input), input->ids, input->n_ids};
    }
    event->kind = SL_BLOCK_EVENT_ALLOCATED;
    event->time = allocated->time;
    event->inputs = inputs;
    event->input_count = allocated->n_inputs;
}

int
sl_block_event_decode(const uint8_t *bytes, size_t len,
                      int (*each)(void *ctx, const struct sl_block_event *event), void *ctx)
{
    struct sl_arena arena;
    ProtobufCMessage *base = NULL;
    sl_arena_create(&arena, 0, 0);
    int rc = sl_message_unpack(&streamlua__block_event__descriptor, bytes, len, &event_limits,
                               &arena, &base);
    if (rc != 0) {
        goto out;
    }
    const Streamlua__BlockEvent *message = (const Streamlua__BlockEvent *)base;
    struct sl_block_event event = {0};
    switch (message->event_case) {
    case STREAMLUA__BLOCK_EVENT__EVENT_ADDED:
        read_added(message->added, &arena, &event);
        break;
    case STREAMLUA__BLOCK_EVENT__EVENT_ALLOCATED:
        read_allocated(message->allocated, &arena, &event);
        break;
    case STREAMLUA__BLOCK_EVENT__EVENT_CLEANED:
        event.kind = SL_BLOCK_EVENT_CLEANED;
        event.times = message->cleaned->times;
        event.time_count = message->cleaned->n_times;
        break;
    default:
        rc = sl_err_set(SL_EPROTO, "the block log has an event of an unknown kind");
        goto out;
    }
    rc = each(ctx, &event);
out:
    sl_arena_destroy(&arena);
    return rc;
}

static Streamlua__StreamingNode *
node_to_message(struct sl_arena *arena, const struct sl_checkpoint_stream *stream)
{
    Streamlua__StreamingNode *node = sl_arena_alloc(arena, sizeof(*node));
    streamlua__streaming_node__init(node);
    node->name = bytes_of(stream->name);
    node->flags = stream->flags;
    node->n_saved = stream->saved_count;
    node->saved = sl_arena_calloc(arena, stream->saved_count, sizeof(void *));
    for (size_t i = 0; i < stream->saved_count; i++) {
        Streamlua__SavedDataset *saved = sl_arena_alloc(arena, sizeof(*saved));
        streamlua__saved_dataset__init(saved);
        saved->time = stream->saved[i].time;
        saved->text = bytes_of(stream->saved[i].text);
        node->saved[i] = saved;
    }
    return node;
}

static void
checkpoint_to_message(struct sl_arena *arena, const struct sl_checkpoint *checkpoint,
                      Streamlua__StreamingCheckpoint *message)
{
    streamlua__streaming_checkpoint__init(message);
    message->format = SL_CHECKPOINT_FORMAT;
    message->name = bytes_of(checkpoint->name);
    message->script = bytes_of(checkpoint->script);
    message->script_hash = bytes_of(checkpoint->script_hash);
    message->time = checkpoint->time;
    message->zero_time = checkpoint->zero_time;
    message->batch_ms = checkpoint->batch_ms;
    message->n_pending = checkpoint->pending_count;
    message->pending = checkpoint->pending;
    message->extra = (ProtobufCBinaryData){checkpoint->extra_len, SL_PB_MUTABLE(checkpoint->extra)};
    message->n_nodes = checkpoint->stream_count;
    message->nodes = sl_arena_calloc(arena, checkpoint->stream_count, sizeof(void *));
    for (size_t i = 0; i < checkpoint->stream_count; i++) {
        message->nodes[i] = node_to_message(arena, &checkpoint->streams[i]);
    }
}

int
sl_checkpoint_encode(const struct sl_checkpoint *checkpoint, struct sl_buf *out)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    Streamlua__StreamingCheckpoint message;
    checkpoint_to_message(&arena, checkpoint, &message);
    size_t start = out->size;
    sl_message_pack(&message.base, out);
    sl_arena_destroy(&arena);
    /* Whatever is written can be read again: the reader's own check is the judge. */
    int rc = sl_pb_check(&streamlua__streaming_checkpoint__descriptor, out->data + start,
                         out->size - start, &checkpoint_limits);
    if (rc != 0) {
        out->size = start;
        rc = sl_err_wrap("encode the checkpoint");
    }
    return rc;
}

static void
read_node(struct sl_arena *arena, const Streamlua__StreamingNode *node,
          struct sl_checkpoint_stream *stream)
{
    *stream = (struct sl_checkpoint_stream){
        .name = text_of(arena, node->name),
        .flags = node->flags,
        .saved = sl_arena_calloc(arena, node->n_saved, sizeof(stream->saved[0])),
        .saved_count = node->n_saved,
    };
    for (size_t i = 0; i < node->n_saved; i++) {
        stream->saved[i] =
            (struct sl_streaming_saved){node->saved[i]->time, text_of(arena, node->saved[i]->text)};
    }
}

int
sl_checkpoint_decode(const uint8_t *bytes, size_t len, struct sl_checkpoint *out)
{
    ProtobufCMessage *base = NULL;
    struct sl_arena *arena = &out->arena;
    int rc = sl_message_unpack(&streamlua__streaming_checkpoint__descriptor, bytes, len,
                               &checkpoint_limits, arena, &base);
    if (rc != 0) {
        return rc;
    }
    const Streamlua__StreamingCheckpoint *message = (const Streamlua__StreamingCheckpoint *)base;
    if (message->format != SL_CHECKPOINT_FORMAT) {
        return sl_err_set(SL_EPROTO, "it is of format %u; this version reads format %d",
                          message->format, SL_CHECKPOINT_FORMAT);
    }
    if (message->batch_ms <= 0) {
        return sl_err_set(SL_EPROTO, "its batch interval is %lld ms", (long long)message->batch_ms);
    }
    out->name = text_of(arena, message->name);
    out->script = text_of(arena, message->script);
    out->script_hash = text_of(arena, message->script_hash);
    out->time = message->time;
    out->zero_time = message->zero_time;
    out->batch_ms = message->batch_ms;
    out->pending = message->pending;
    out->pending_count = message->n_pending;
    out->extra = message->extra.data;
    out->extra_len = message->extra.len;
    out->stream_count = message->n_nodes;
    out->streams = sl_arena_calloc(arena, message->n_nodes, sizeof(out->streams[0]));
    for (size_t i = 0; i < message->n_nodes; i++) {
        read_node(arena, message->nodes[i], &out->streams[i]);
    }
    return 0;
}
