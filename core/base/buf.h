#pragma once
/* A growable buffer of bytes. Zeroed memory is a valid empty buffer. Memory running out aborts (see
 * alloc.h). */

#include <stddef.h>
#include <stdint.h>

struct sl_buf {
    /* NULL until the first byte; bytes [0, size) are the content. */
    uint8_t *data;
    size_t size;
    size_t capacity;
};

void sl_buf_create(struct sl_buf *self);
void sl_buf_destroy(struct sl_buf *self);

/* Drops the content and keeps the memory. */
static inline void
sl_buf_clear(struct sl_buf *self)
{
    self->size = 0;
}

/* Makes room for `extra` more bytes and returns where they go; sl_buf_commit then counts those that
 * were written. */
uint8_t *sl_buf_reserve(struct sl_buf *self, size_t extra);

static inline void
sl_buf_commit(struct sl_buf *self, size_t written)
{
    self->size += written;
}

/* Appends len bytes, which must not lie inside the buffer. */
void sl_buf_append(struct sl_buf *self, const void *ptr, size_t len);

/* Appends one byte, or an integer in little-endian order. */
void sl_buf_append_u8(struct sl_buf *self, uint8_t value);
void sl_buf_append_u16(struct sl_buf *self, uint16_t value);
void sl_buf_append_u32(struct sl_buf *self, uint32_t value);
void sl_buf_append_u64(struct sl_buf *self, uint64_t value);

/* Appends a NUL-terminated text without its NUL. */
void sl_buf_append_str(struct sl_buf *self, const char *text);

/* Appends formatted text without a NUL. */
void sl_buf_printf(struct sl_buf *self, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Removes the first len bytes (at most the size); the rest moves to the front. */
void sl_buf_consume(struct sl_buf *self, size_t len);

/* The content as a NUL-terminated text, valid until the next change; the NUL is not counted in
 * size. */
const char *sl_buf_str(struct sl_buf *self);

/* Hands the memory over to the caller, who frees it with sl_free; the buffer is empty afterwards.
 * May be NULL. */
uint8_t *sl_buf_detach(struct sl_buf *self);
