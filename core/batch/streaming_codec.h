#pragma once
/* The bytes of what stream programs keep on disk (proto/streaming.proto). */

#include <stdint.h>

#include "base/buf.h"
#include "batch/checkpoint.h"
#include "batch/streaming_types.h"

enum sl_block_event_kind {
    SL_BLOCK_EVENT_ADDED,
    SL_BLOCK_EVENT_ALLOCATED,
    SL_BLOCK_EVENT_CLEANED,
};

/* Blocks of one input that an allocation took. */
struct sl_block_event_input {
    const char *name;
    const uint64_t *ids;
    size_t id_count;
};

/* An event of the block log; what it points to is borrowed. */
struct sl_block_event {
    enum sl_block_event_kind kind;
    /* Added: when; allocated: the batch. */
    int64_t time;
    /* Added. */
    const char *input;
    struct sl_streaming_block block;
    /* Allocated. */
    const struct sl_block_event_input *inputs;
    size_t input_count;
    /* Cleaned. */
    const int64_t *times;
    size_t time_count;
};

/* Appends the bytes of an event. */
void sl_block_event_encode(const struct sl_block_event *event, struct sl_buf *out);

/* Reads an event and hands it to `each`, whose result is returned. SL_EPROTO, SL_ELIMIT. */
int sl_block_event_decode(const uint8_t *bytes, size_t len,
                          int (*each)(void *ctx, const struct sl_block_event *event), void *ctx);

/* Appends the bytes of a checkpoint. SL_ELIMIT when they are too many. */
int sl_checkpoint_encode(const struct sl_checkpoint *checkpoint, struct sl_buf *out);

/* Reads a checkpoint into memory of its own. SL_EPROTO, SL_ELIMIT. */
int sl_checkpoint_decode(const uint8_t *bytes, size_t len, struct sl_checkpoint *checkpoint);
