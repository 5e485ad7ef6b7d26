#pragma once
/*
 * An arena: memory that is given out piece by piece and taken back whole, for everything whose
 * life is that of one message or one request.
 *
 *     chunk:  [ header | piece | piece | ....free.... ] -> older chunk -> ...
 */

#include <stddef.h>
#include <stdint.h>

struct sl_arena_chunk;

struct sl_arena {
    /* The chunk being filled; older and oversized ones hang behind it. */
    struct sl_arena_chunk *chunk;
    size_t chunk_bytes;
    /* 0 = none, else the most bytes the pieces may take together. */
    size_t limit_bytes;
    /* Bytes of all pieces, with their padding, since the last reset. */
    size_t used_bytes;
};

/* chunk_bytes 0 picks 4096. Nothing is allocated before the first piece. */
void sl_arena_create(struct sl_arena *self, size_t chunk_bytes, size_t limit_bytes);
void sl_arena_destroy(struct sl_arena *self);

/* Takes all pieces back; one chunk is kept so that a loop of messages stops allocating. */
void sl_arena_reset(struct sl_arena *self);

/*
 * A piece of size bytes aligned to 16, uninitialised. NULL when the limit would be passed or memory
 * ran out; an arena without a limit is for sizes of our own, so there it aborts instead.
 */
void *sl_arena_alloc(struct sl_arena *self, size_t size);

/* The same, zeroed; an overflowing product counts as too large. */
void *sl_arena_calloc(struct sl_arena *self, size_t count, size_t size);

/* Copies; NULL as in sl_arena_alloc. The text gets a NUL behind it. */
void *sl_arena_memdup(struct sl_arena *self, const void *ptr, size_t len);
char *sl_arena_strndup(struct sl_arena *self, const char *text, size_t len);
char *sl_arena_strdup(struct sl_arena *self, const char *text);
char *sl_arena_printf(struct sl_arena *self, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
