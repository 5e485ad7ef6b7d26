#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum { ARENA_ALIGNMENT = 16, ARENA_CHUNK_BYTES_DEFAULT = 4096 };

struct sl_arena_chunk {
    struct sl_arena_chunk *next;
    /* Bytes behind the header, and how many of them are given out. */
    size_t size;
    size_t used;
    size_t padding;
    uint8_t bytes[];
};

_Static_assert(offsetof(struct sl_arena_chunk, bytes) % ARENA_ALIGNMENT == 0, "pieces are aligned");

void
sl_arena_create(struct sl_arena *self, size_t chunk_bytes, size_t limit_bytes)
{
    self->chunk = NULL;
    self->chunk_bytes = chunk_bytes > 0 ? chunk_bytes : ARENA_CHUNK_BYTES_DEFAULT;
    self->limit_bytes = limit_bytes;
    self->used_bytes = 0;
}

static void
chunks_free(struct sl_arena_chunk *chunk)
{
    while (chunk != NULL) {
        struct sl_arena_chunk *next = chunk->next;
        sl_free(chunk);
        chunk = next;
    }
}

void
sl_arena_destroy(struct sl_arena *self)
{
    chunks_free(self->chunk);
    self->chunk = NULL;
    self->used_bytes = 0;
}

void
sl_arena_reset(struct sl_arena *self)
{
    self->used_bytes = 0;
    struct sl_arena_chunk *kept = self->chunk;
    if (kept == NULL) {
        return;
    }
    chunks_free(kept->next);
    kept->next = NULL;
    kept->used = 0;
    if (kept->size > self->chunk_bytes) {
        /* One huge message must not pin its memory for ever. */
        sl_free(kept);
        self->chunk = NULL;
    }
}

/* Adds a chunk with room for size bytes. An oversized one goes behind the chunk being filled. */
static struct sl_arena_chunk *
arena_add_chunk(struct sl_arena *self, size_t size)
{
    size_t chunk_size = size > self->chunk_bytes ? size : self->chunk_bytes;
    size_t total = sizeof(struct sl_arena_chunk) + chunk_size;
    struct sl_arena_chunk *chunk = self->limit_bytes > 0 ? sl_try_alloc(total) : sl_alloc(total);
    if (chunk == NULL) {
        return NULL;
    }
    chunk->size = chunk_size;
    chunk->used = 0;
    if (self->chunk != NULL && size > self->chunk_bytes) {
        chunk->next = self->chunk->next;
        self->chunk->next = chunk;
    } else {
        chunk->next = self->chunk;
        self->chunk = chunk;
    }
    return chunk;
}

void *
sl_arena_alloc(struct sl_arena *self, size_t size)
{
    if (size > SIZE_MAX / 4) {
        sl_assert_ne(self->limit_bytes, 0);
        return NULL;
    }
    size_t rounded = (size + ARENA_ALIGNMENT - 1) & ~(size_t)(ARENA_ALIGNMENT - 1);
    if (rounded == 0) {
        rounded = ARENA_ALIGNMENT;
    }
    if (self->limit_bytes > 0 &&
        (rounded > self->limit_bytes || self->used_bytes > self->limit_bytes - rounded)) {
        return NULL;
    }
    struct sl_arena_chunk *chunk = self->chunk;
    if (chunk == NULL || chunk->size - chunk->used < rounded) {
        chunk = arena_add_chunk(self, rounded);
        if (chunk == NULL) {
            return NULL;
        }
    }
    void *piece = chunk->bytes + chunk->used;
    chunk->used += rounded;
    self->used_bytes += rounded;
    return piece;
}

void *
sl_arena_calloc(struct sl_arena *self, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        total = SIZE_MAX;
    }
    void *piece = sl_arena_alloc(self, total);
    if (piece != NULL) {
        memset(piece, 0, total);
    }
    return piece;
}

void *
sl_arena_memdup(struct sl_arena *self, const void *ptr, size_t len)
{
    void *piece = sl_arena_alloc(self, len);
    if (piece != NULL && len > 0) {
        memcpy(piece, ptr, len);
    }
    return piece;
}

char *
sl_arena_strndup(struct sl_arena *self, const char *text, size_t len)
{
    char *copy = sl_arena_alloc(self, len < SIZE_MAX ? len + 1 : len);
    if (copy != NULL) {
        memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

char *
sl_arena_strdup(struct sl_arena *self, const char *text)
{
    return sl_arena_strndup(self, text, strlen(text));
}

char *
sl_arena_printf(struct sl_arena *self, const char *fmt, ...)
{
    va_list args;
    va_list again;
    va_start(args, fmt);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    sl_assert_ge(length, 0);
    char *text = sl_arena_alloc(self, (size_t)length + 1);
    if (text != NULL) {
        vsnprintf(text, (size_t)length + 1, fmt, again);
    }
    va_end(again);
    return text;
}
