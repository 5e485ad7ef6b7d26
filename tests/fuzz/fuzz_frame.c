/* The frame decoder: whatever the bytes and however they are cut, the frames and the verdict are
 * the same, and memory stays within what came in. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t hash;
    size_t bytes;
};

static int
on_frame(void *ctx, const struct sl_frame_header *header, const uint8_t *payload)
{
    struct seen *seen = ctx;
    seen->hash =
        sl_mix64(seen->hash + header->type + header->count + sl_hash_bytes(payload, header->size));
    seen->bytes += header->size + SL_FRAME_HEADER_SIZE;
    return 0;
}

static int
decode(const uint8_t *data, size_t size, size_t step, struct seen *seen)
{
    struct sl_frame_decoder decoder;
    int rc = 0;
    sl_frame_decoder_create(&decoder, 512, 1024);
    for (size_t at = 0; at < size && rc == 0; at += step) {
        rc = sl_frame_decoder_feed(&decoder, data + at, size - at < step ? size - at : step,
                                   on_frame, seen);
        if (decoder.payload.capacity > 4096) {
            abort();
        }
    }
    sl_frame_decoder_destroy(&decoder);
    return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = {0, 0};
    int rc = decode(data, size, size > 0 ? size : 1, &whole);
    if (whole.bytes > size) {
        abort();
    }
    for (size_t step = 1; step < 40; step += 6) {
        struct seen pieces = {0, 0};
        if (decode(data, size, step, &pieces) != rc || pieces.hash != whole.hash) {
            abort();
        }
    }
    return 0;
}
