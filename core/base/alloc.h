#pragma once
/*
 * Heap memory. The plain functions log and abort when memory runs out, so that ordinary code has no
 * branches for it; sl_try_* return NULL and are for sizes that come from the network or from user
 * code.
 */

#include <stddef.h>
#include <stdint.h>

/* size bytes, uninitialised; size 0 gives a unique pointer. Never NULL. */
void *sl_alloc(size_t size) __attribute__((malloc, returns_nonnull, alloc_size(1)));

/* count * size zeroed bytes; an overflowing product aborts. Never NULL. */
void *sl_calloc(size_t count, size_t size)
    __attribute__((malloc, returns_nonnull, alloc_size(1, 2)));

/* Grows or shrinks a block (NULL: a new one). Never NULL; the old pointer is dead. */
void *sl_realloc(void *ptr, size_t size) __attribute__((returns_nonnull, alloc_size(2)));

/* As sl_alloc, sl_calloc and sl_realloc, but NULL when there is no memory (the old block of realloc
 * stays). */
void *sl_try_alloc(size_t size) __attribute__((malloc, alloc_size(1)));
void *sl_try_calloc(size_t count, size_t size) __attribute__((malloc, alloc_size(1, 2)));
void *sl_try_realloc(void *ptr, size_t size) __attribute__((alloc_size(2)));

/* Releases a block of any function above; NULL is fine. */
void sl_free(void *ptr);

/* A copy of a NUL-terminated text, or of length bytes with a NUL added. Owned by the caller. */
char *sl_strdup(const char *text) __attribute__((malloc, returns_nonnull));
char *sl_strndup(const char *text, size_t length) __attribute__((malloc, returns_nonnull));

/* printf into a new text owned by the caller. */
char *sl_asprintf(const char *fmt, ...)
    __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

/*
 * Test seam, per thread: after `successes` more calls of sl_try_* every following one fails; a
 * negative number ends the mode. Only sl_try_* are concerned.
 */
void sl_alloc_fail_after(int64_t successes);
