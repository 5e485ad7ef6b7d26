#include "wire/frame.h"

#include <string.h>

#include "base/assert.h"
#include "base/err.h"

static void
write_u16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static void
write_u32(uint8_t *at, uint32_t value)
{
    write_u16(at, (uint16_t)value);
    write_u16(at + 2, (uint16_t)(value >> 16));
}

static uint16_t
read_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t
read_u32(const uint8_t *at)
{
    return read_u16(at) | (uint32_t)read_u16(at + 2) << 16;
}

/* One table for a nibble: small, and frames carry checksums only where the link has none. */
uint32_t
sl_crc32c(uint32_t crc, const void *data, size_t size)
{
    static const uint32_t NIBBLES[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                         0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                         0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                         0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    const uint8_t *at = data;
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= at[i];
        crc = (crc >> 4) ^ NIBBLES[crc & 15];
        crc = (crc >> 4) ^ NIBBLES[crc & 15];
    }
    return ~crc;
}

static void
write_header(uint8_t *at, const struct sl_frame_header *header, const void *payload)
{
    write_u32(at, header->size);
    write_u16(at + 4, header->type);
    write_u16(at + 6, header->flags);
    write_u32(at + 8, header->count);
    uint32_t check = SL_FRAME_MAGIC;
    if (header->flags & SL_FRAME_HAS_CRC) {
        check = sl_crc32c(sl_crc32c(0, at, 12), payload, header->size);
    }
    write_u32(at + 12, check);
}

void
sl_frame_append_header(struct sl_buf *out, const struct sl_frame_header *header,
                       const void *payload)
{
    sl_assert_ne(header->size, 0);
    write_header(sl_buf_reserve(out, SL_FRAME_HEADER_SIZE), header, payload);
    sl_buf_commit(out, SL_FRAME_HEADER_SIZE);
}

void
sl_frame_append(struct sl_buf *out, const struct sl_frame_header *header, const void *payload)
{
    sl_frame_append_header(out, header, payload);
    sl_buf_append(out, payload, header->size);
}

size_t
sl_frame_begin(struct sl_buf *out)
{
    size_t start = out->size;
    sl_buf_reserve(out, SL_FRAME_HEADER_SIZE);
    sl_buf_commit(out, SL_FRAME_HEADER_SIZE);
    return start;
}

void
sl_frame_end(struct sl_buf *out, size_t start, uint16_t type, uint32_t count)
{
    size_t size = out->size - start - SL_FRAME_HEADER_SIZE;
    sl_assert_ne(size, 0);
    sl_assert_le(size, UINT32_MAX);
    struct sl_frame_header header = {(uint32_t)size, type, 0, count};
    write_header(out->data + start, &header, NULL);
}

void
sl_frame_decoder_create(struct sl_frame_decoder *self, uint32_t control_max, uint32_t data_max)
{
    memset(self, 0, sizeof(*self));
    sl_frame_decoder_set_caps(self, control_max, data_max);
}

void
sl_frame_decoder_destroy(struct sl_frame_decoder *self)
{
    sl_buf_destroy(&self->payload);
}

void
sl_frame_decoder_set_caps(struct sl_frame_decoder *self, uint32_t control_max, uint32_t data_max)
{
    self->control_max = control_max;
    self->data_max = data_max;
}

bool
sl_frame_decoder_is_partial(const struct sl_frame_decoder *self)
{
    return self->head_size > 0;
}

/* Reads the header; refuses what can not be the start of a frame of ours. */
static int
read_header(struct sl_frame_decoder *self, const uint8_t *at)
{
    struct sl_frame_header *header = &self->header;
    header->size = read_u32(at);
    header->type = read_u16(at + 4);
    header->flags = read_u16(at + 6);
    header->count = read_u32(at + 8);
    self->check = read_u32(at + 12);
    /* What is no frame at all (an HTTP request) is told from a bad frame of ours. */
    if (header->flags == 0 && self->check != SL_FRAME_MAGIC) {
        return sl_err_set(SL_EPROTO, "wrong magic: these bytes are no frame of ours");
    }
    if ((header->flags & ~SL_FRAME_HAS_CRC) != 0) {
        return sl_err_set(SL_EPROTO, "frame with unknown flags 0x%x", header->flags);
    }
    if (header->size == 0) {
        return sl_err_set(SL_EPROTO, "frame of length 0");
    }
    uint32_t cap = header->type < SL_FRAME_FIRST_DATA ? self->control_max : self->data_max;
    if (header->size > cap) {
        return sl_err_set(SL_ELIMIT, "frame of %u bytes; the limit is %u", header->size, cap);
    }
    return 0;
}

static int
deliver(struct sl_frame_decoder *self, const uint8_t *head, const uint8_t *payload, sl_frame_fn fn,
        void *ctx)
{
    const struct sl_frame_header header = self->header;
    if (header.flags & SL_FRAME_HAS_CRC) {
        uint32_t crc = sl_crc32c(sl_crc32c(0, head, 12), payload, header.size);
        if (crc != self->check) {
            return sl_err_set(SL_EPROTO, "frame with a wrong checksum");
        }
    }
    return fn(ctx, &header, payload);
}

/* Frames that lie whole in the bytes are given out in place; *taken says how many bytes they were.
 */
static int
feed_whole(struct sl_frame_decoder *self, const uint8_t *data, size_t size, size_t *taken,
           sl_frame_fn fn, void *ctx)
{
    size_t at = 0;
    int rc = 0;
    while (rc == 0 && size - at >= SL_FRAME_HEADER_SIZE) {
        rc = read_header(self, data + at);
        if (rc != 0 || size - at - SL_FRAME_HEADER_SIZE < self->header.size) {
            break;
        }
        const uint8_t *head = data + at;
        at += SL_FRAME_HEADER_SIZE + self->header.size;
        rc = deliver(self, head, head + SL_FRAME_HEADER_SIZE, fn, ctx);
    }
    *taken = at;
    return rc;
}

/* Goes on with a frame that came in pieces. */
static int
feed_partial(struct sl_frame_decoder *self, const uint8_t *data, size_t size, size_t *taken,
             sl_frame_fn fn, void *ctx)
{
    size_t at = 0;
    if (self->head_size < SL_FRAME_HEADER_SIZE) {
        size_t part = SL_FRAME_HEADER_SIZE - self->head_size;
        part = part < size ? part : size;
        memcpy(self->head + self->head_size, data, part);
        self->head_size += part;
        at = part;
        if (self->head_size == SL_FRAME_HEADER_SIZE) {
            int rc = read_header(self, self->head);
            if (rc != 0) {
                return rc;
            }
        }
    }
    if (self->head_size == SL_FRAME_HEADER_SIZE) {
        size_t part = self->header.size - self->payload.size;
        part = part < size - at ? part : size - at;
        sl_buf_append(&self->payload, data + at, part);
        at += part;
    }
    *taken = at;
    if (self->head_size < SL_FRAME_HEADER_SIZE || self->payload.size < self->header.size) {
        return 0;
    }
    /* The callback may feed or reset nothing, but it may look whether a frame is partial. */
    struct sl_buf payload = self->payload;
    sl_buf_create(&self->payload);
    self->head_size = 0;
    int rc = deliver(self, self->head, payload.data, fn, ctx);
    sl_buf_destroy(&payload);
    return rc;
}

int
sl_frame_decoder_feed(struct sl_frame_decoder *self, const uint8_t *data, size_t size,
                      sl_frame_fn fn, void *ctx)
{
    int rc = 0;
    if (self->is_broken) {
        return sl_err_set(SL_EPROTO, "the stream of frames is broken");
    }
    while (rc == 0 && size > 0) {
        size_t taken = 0;
        if (self->head_size == 0) {
            rc = feed_whole(self, data, size, &taken, fn, ctx);
            data += taken;
            size -= taken;
        }
        if (rc == 0 && size > 0) {
            rc = feed_partial(self, data, size, &taken, fn, ctx);
            data += taken;
            size -= taken;
        }
    }
    self->is_broken = rc != 0;
    return rc;
}
