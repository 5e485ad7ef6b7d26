#pragma once
/*
 * Frames: what every byte stream between two of our processes is made of. A header of 16 bytes,
 * little-endian, then the payload:
 *
 *     offset 0   u32  bytes of the payload, 1 .. the cap of the type
 *            4   u16  type
 *            6   u16  flags
 *            8   u32  how many items the payload holds (1 for a message)
 *           12   u32  SL_FRAME_MAGIC, or with SL_FRAME_HAS_CRC the CRC-32C of header and payload
 *
 * A payload of data records is 8-aligned when the frame starts aligned, so a receive buffer can be
 * read in place. The length is checked before anything is allocated, and a payload gets memory as
 * its bytes arrive, not as its header promises.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum {
    SL_FRAME_HEADER_SIZE = 16,
    /* "sL" and a version of the layout. */
    SL_FRAME_MAGIC = 0x4c730001,
    /* Payload bytes of the caps: the cap itself is allowed. */
    SL_FRAME_CONTROL_MAX = 1024 * 1024,
    /* Before a peer has shown who it is. */
    SL_FRAME_HELLO_MAX = 4096,
};

enum sl_frame_type {
    /* Of rpc: opening of a connection, then calls. */
    SL_FRAME_CHALLENGE = 1,
    SL_FRAME_HELLO = 2,
    SL_FRAME_WELCOME = 3,
    SL_FRAME_REFUSED = 4,
    SL_FRAME_REQUEST = 5,
    SL_FRAME_ONE_WAY = 6,
    SL_FRAME_REPLY = 7,
    /* From here on the cap is that of data. */
    SL_FRAME_FIRST_DATA = 32,
};

enum sl_frame_flags {
    SL_FRAME_HAS_CRC = 1,
};

struct sl_frame_header {
    uint32_t size;
    uint16_t type;
    uint16_t flags;
    uint32_t count;
};

/* Appends a header for a payload of header->size bytes and, when has_crc is set in the flags, needs
 * the payload to compute it; else payload may be NULL. The payload itself is not appended. */
void sl_frame_append_header(struct sl_buf *out, const struct sl_frame_header *header,
                            const void *payload);

/* Appends a whole frame. */
void sl_frame_append(struct sl_buf *out, const struct sl_frame_header *header, const void *payload);

/*
 * For a payload that is written straight behind its header: reserves the header, and fills it when
 * the payload stands. `start` is what sl_frame_begin returned.
 */
size_t sl_frame_begin(struct sl_buf *out);
void sl_frame_end(struct sl_buf *out, size_t start, uint16_t type, uint32_t count);

/* Takes frames from bytes that come in any pieces. */
struct sl_frame_decoder {
    uint32_t control_max;
    uint32_t data_max;
    /* The part of a frame that came so far. */
    struct sl_frame_header header;
    uint32_t check;
    size_t head_size;
    uint8_t head[SL_FRAME_HEADER_SIZE];
    struct sl_buf payload;
    bool is_broken;
};

/* A whole frame; borrowed for the call. A result that is not 0 ends the feeding with it. */
typedef int (*sl_frame_fn)(void *ctx, const struct sl_frame_header *header, const uint8_t *payload);

/* The caps are payload bytes. */
void sl_frame_decoder_create(struct sl_frame_decoder *self, uint32_t control_max,
                             uint32_t data_max);
void sl_frame_decoder_destroy(struct sl_frame_decoder *self);

/* Other caps for the frames whose header has not come yet. */
void sl_frame_decoder_set_caps(struct sl_frame_decoder *self, uint32_t control_max,
                               uint32_t data_max);

/*
 * Takes bytes and calls fn for every frame that they complete. Returns 0; SL_EPROTO for a length of
 * 0, a wrong magic, unknown flags or a wrong checksum; SL_ELIMIT for a length above the cap; or
 * what fn returned. After anything but 0 the stream is lost and every later call says SL_EPROTO.
 */
int sl_frame_decoder_feed(struct sl_frame_decoder *self, const uint8_t *data, size_t size,
                          sl_frame_fn fn, void *ctx);

/* True when a frame has begun and is not complete. */
bool sl_frame_decoder_is_partial(const struct sl_frame_decoder *self);

/* CRC-32C (Castagnoli) of bytes, continuing from `crc` (0 at the start). */
uint32_t sl_crc32c(uint32_t crc, const void *data, size_t size);
