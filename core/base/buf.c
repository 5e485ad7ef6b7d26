#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum { BUF_CAPACITY_MIN = 64 };

void
sl_buf_create(struct sl_buf *self)
{
    memset(self, 0, sizeof(*self));
}

void
sl_buf_destroy(struct sl_buf *self)
{
    sl_free(self->data);
    memset(self, 0, sizeof(*self));
}

uint8_t *
sl_buf_reserve(struct sl_buf *self, size_t extra)
{
    sl_assert_le(extra, SIZE_MAX / 2 - self->size);
    size_t needed = self->size + extra;
    if (needed > self->capacity || self->data == NULL) {
        size_t capacity = self->capacity > 0 ? self->capacity : BUF_CAPACITY_MIN;
        while (capacity < needed) {
            capacity *= 2;
        }
        self->data = sl_realloc(self->data, capacity);
        self->capacity = capacity;
    }
    return self->data + self->size;
}

void
sl_buf_append(struct sl_buf *self, const void *ptr, size_t len)
{
    if (len == 0) {
        return;
    }
    memcpy(sl_buf_reserve(self, len), ptr, len);
    self->size += len;
}

void
sl_buf_append_u8(struct sl_buf *self, uint8_t value)
{
    *sl_buf_reserve(self, 1) = value;
    self->size++;
}

static void
buf_append_le(struct sl_buf *self, uint64_t value, size_t width)
{
    uint8_t *out = sl_buf_reserve(self, width);
    for (size_t i = 0; i < width; i++) {
        out[i] = (uint8_t)(value >> (8 * i));
    }
    self->size += width;
}

void
sl_buf_append_u16(struct sl_buf *self, uint16_t value)
{
    buf_append_le(self, value, 2);
}

void
sl_buf_append_u32(struct sl_buf *self, uint32_t value)
{
    buf_append_le(self, value, 4);
}

void
sl_buf_append_u64(struct sl_buf *self, uint64_t value)
{
    buf_append_le(self, value, 8);
}

void
sl_buf_append_str(struct sl_buf *self, const char *text)
{
    sl_buf_append(self, text, strlen(text));
}

void
sl_buf_printf(struct sl_buf *self, const char *fmt, ...)
{
    va_list args;
    va_list again;
    va_start(args, fmt);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    sl_assert_ge(length, 0);
    char *out = (char *)sl_buf_reserve(self, (size_t)length + 1);
    vsnprintf(out, (size_t)length + 1, fmt, again);
    va_end(again);
    self->size += (size_t)length;
}

void
sl_buf_consume(struct sl_buf *self, size_t len)
{
    if (len >= self->size) {
        self->size = 0;
        return;
    }
    self->size -= len;
    memmove(self->data, self->data + len, self->size);
}

const char *
sl_buf_str(struct sl_buf *self)
{
    *sl_buf_reserve(self, 1) = 0;
    return (const char *)self->data;
}

uint8_t *
sl_buf_detach(struct sl_buf *self)
{
    uint8_t *data = self->data;
    memset(self, 0, sizeof(*self));
    return data;
}
