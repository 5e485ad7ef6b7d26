/*
 * labels: short
 * Decodes bytes as a checkpoint (first byte even) or as an event of the block log (odd). What
 * decodes survives a round trip.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "batch/checkpoint.h"
#include "batch/streaming_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
try_checkpoint(const uint8_t *data, size_t size)
{
    struct sl_checkpoint first;
    sl_checkpoint_create(&first);
    if (sl_checkpoint_decode(data, size, &first) == 0) {
        struct sl_buf bytes = {0};
        struct sl_buf again = {0};
        struct sl_checkpoint second;
        sl_assert_eq(sl_checkpoint_encode(&first, &bytes), 0);
        sl_checkpoint_create(&second);
        sl_assert_eq(sl_checkpoint_decode(bytes.data, bytes.size, &second), 0);
        sl_assert_eq(sl_checkpoint_encode(&second, &again), 0);
        sl_assert(bytes.size == again.size && memcmp(bytes.data, again.data, bytes.size) == 0);
        sl_checkpoint_destroy(&second);
        sl_buf_destroy(&bytes);
        sl_buf_destroy(&again);
    }
    sl_checkpoint_destroy(&first);
}

static int
check_event(void *ctx, const struct sl_block_event *event)
{
    struct sl_buf bytes = {0};
    (void)ctx;
    sl_block_event_encode(event, &bytes);
    sl_assert(bytes.size > 0);
    sl_buf_destroy(&bytes);
    return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    if (data[0] % 2 == 0) {
        try_checkpoint(data + 1, size - 1);
    } else {
        sl_block_event_decode(data + 1, size - 1, check_event, NULL);
    }
    return 0;
}
