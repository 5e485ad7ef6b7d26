#pragma once
/*
 * A pool of blocks of one size, all allocated at creation: the hot path takes and returns blocks in
 * O(1) and never reaches the heap. An empty pool means back pressure, not growth. One thread owns
 * a pool.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_pool {
    uint8_t *memory;
    /* The first free block; a free block starts with the address of the next one. */
    void *free_list;
    /* Distance between blocks: the asked size rounded up to 16. */
    size_t block_bytes;
    size_t capacity;
    /* Blocks that are out. */
    size_t used;
};

/* SL_EINVAL for a zero size or capacity, SL_ENOMEM when the memory is not there. */
int sl_pool_create(struct sl_pool *self, size_t block_bytes, size_t capacity);

/* All blocks die, whether returned or not. */
void sl_pool_destroy(struct sl_pool *self);

/* A block aligned to 16, uninitialised, or NULL when all are out. */
void *sl_pool_take(struct sl_pool *self);

/* Returns a block of this pool; NULL is fine. */
void sl_pool_give(struct sl_pool *self, void *block);

/* True when the address is the start of a block of this pool. */
bool sl_pool_owns(const struct sl_pool *self, const void *block);
