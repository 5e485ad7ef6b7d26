#include "base/pool.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"

enum { POOL_ALIGNMENT = 16 };

int
sl_pool_create(struct sl_pool *self, size_t block_bytes, size_t capacity)
{
    memset(self, 0, sizeof(*self));
    if (block_bytes == 0 || capacity == 0) {
        return sl_err_set(SL_EINVAL, "a pool needs a block size and a capacity above 0");
    }
    size_t total;
    if (block_bytes > SIZE_MAX / 2) {
        return sl_err_set(SL_ENOMEM, "a pool of blocks of %zu bytes does not fit", block_bytes);
    }
    size_t rounded = (block_bytes + POOL_ALIGNMENT - 1) & ~(size_t)(POOL_ALIGNMENT - 1);
    if (__builtin_mul_overflow(rounded, capacity, &total) ||
        (self->memory = sl_try_alloc(total)) == NULL) {
        return sl_err_set(SL_ENOMEM, "a pool of %zu blocks of %zu bytes does not fit", capacity,
                          block_bytes);
    }
    self->block_bytes = rounded;
    self->capacity = capacity;
    for (size_t i = capacity; i > 0; i--) {
        void *block = self->memory + (i - 1) * rounded;
        memcpy(block, &self->free_list, sizeof(void *));
        self->free_list = block;
    }
    return 0;
}

void
sl_pool_destroy(struct sl_pool *self)
{
    sl_free(self->memory);
    memset(self, 0, sizeof(*self));
}

void *
sl_pool_take(struct sl_pool *self)
{
    void *block = self->free_list;
    if (block != NULL) {
        memcpy(&self->free_list, block, sizeof(void *));
        self->used++;
    }
    return block;
}

bool
sl_pool_owns(const struct sl_pool *self, const void *block)
{
    uintptr_t start = (uintptr_t)self->memory;
    uintptr_t at = (uintptr_t)block;
    return self->memory != NULL && at >= start && at < start + self->block_bytes * self->capacity &&
           (at - start) % self->block_bytes == 0;
}

#ifdef SL_DEBUG
static bool
block_is_free(const struct sl_pool *self, const void *block)
{
    void *it = self->free_list;
    while (it != NULL && it != block) {
        memcpy(&it, it, sizeof(void *));
    }
    return it == block;
}
#endif

void
sl_pool_give(struct sl_pool *self, void *block)
{
    if (block == NULL) {
        return;
    }
    sl_assert_lt(0, self->used);
    sl_assert(sl_pool_owns(self, block));
#ifdef SL_DEBUG
    sl_assert(!block_is_free(self, block));
#endif
    memcpy(block, &self->free_list, sizeof(void *));
    self->free_list = block;
    self->used--;
}
