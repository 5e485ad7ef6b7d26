/* Buffers of an executor: blocks of one size, made on demand up to a limit, then reused for ever.
 */

#include "base/alloc.h"
#include "stream/stream_priv.h"

static struct sl__batch *
batch_new(size_t bytes, struct sl__pool *pool)
{
    struct sl__batch *batch = sl_try_alloc(sizeof(*batch) + bytes);
    if (batch != NULL) {
        batch->limit = batch->data + bytes;
        batch->pool = pool;
        batch->texts = 0;
    }
    return batch;
}

/* Takes all blocks that other threads gave back; the last one given is the first reused. */
static void
pool_collect(struct sl__pool *pool)
{
    pool->local = __atomic_exchange_n(&pool->returned, NULL, __ATOMIC_ACQUIRE);
}

static struct sl__batch *
pool_make(struct sl__pool *pool)
{
    struct sl__batch *batch = batch_new(pool->block_bytes, pool);
    pool->made += batch != NULL;
    if (batch != NULL && pool->made <= SL__TEXT_LISTS) {
        batch->texts = pool->made;
    }
    pool->has_failed = batch == NULL;
    return batch;
}

static size_t
batch_bytes(const struct sl__batch *batch)
{
    return (size_t)(batch->limit - batch->data);
}

/* A buffer of its own for one record that is larger than a block. */
static struct sl__batch *
large_make(struct sl__pool *pool, size_t bytes)
{
    struct sl__batch *batch = batch_new(bytes, pool);
    pool->has_failed = batch == NULL;
    if (batch != NULL) {
        __atomic_add_fetch(&pool->large_bytes, bytes, __ATOMIC_RELAXED);
    }
    return batch;
}

bool
sl__pool_has_room(const struct sl__pool *pool, int32_t need)
{
    if ((size_t)need > pool->block_bytes) {
        return __atomic_load_n(&pool->large_bytes, __ATOMIC_ACQUIRE) + (size_t)need <=
               (size_t)pool->limit * pool->block_bytes;
    }
    return pool->local != NULL || pool->made < pool->limit ||
           __atomic_load_n(&pool->returned, __ATOMIC_ACQUIRE) != NULL;
}

struct sl__batch *
sl__batch_take(struct sl_executor *executor, int32_t need, bool may_exceed)
{
    struct sl__pool *pool = &executor->pool;
    struct sl__batch *batch;
    pool->has_failed = false;
    if ((size_t)need > pool->block_bytes) {
        bool is_allowed = may_exceed || sl__pool_has_room(pool, need);
        batch = is_allowed ? large_make(pool, (size_t)need) : NULL;
    } else {
        if (pool->local == NULL) {
            pool_collect(pool);
        }
        batch = pool->local;
        if (batch != NULL) {
            pool->local = batch->next;
        } else if (pool->made < pool->limit || may_exceed) {
            batch = pool_make(pool);
        }
    }
    if (batch != NULL) {
        batch->next = NULL;
        batch->mark = 0;
        batch->known = NULL;
    }
    return batch;
}

/* Gives a buffer back to the pool it came from; `executor` is the calling one. */
void
sl__batch_give(struct sl_executor *executor, struct sl__batch *batch)
{
    struct sl__pool *pool = batch->pool;
    sl__known_drop(batch->known);
    if (batch_bytes(batch) > pool->block_bytes) {
        size_t bytes = batch_bytes(batch);
        sl_free(batch);
        __atomic_sub_fetch(&pool->large_bytes, bytes, __ATOMIC_RELEASE);
    } else if (executor != NULL && pool == &executor->pool) {
        batch->next = pool->local;
        pool->local = batch;
    } else {
        struct sl__batch *head = __atomic_load_n(&pool->returned, __ATOMIC_RELAXED);
        do {
            batch->next = head;
        } while (!__atomic_compare_exchange_n(&pool->returned, &head, batch, true, __ATOMIC_RELEASE,
                                              __ATOMIC_RELAXED));
    }
}

static void
free_list(struct sl__batch *batch)
{
    while (batch != NULL) {
        struct sl__batch *next = batch->next;
        sl_free(batch);
        batch = next;
    }
}

void
sl__pool_destroy(struct sl__pool *pool)
{
    free_list(pool->local);
    pool_collect(pool);
    free_list(pool->local);
    pool->local = NULL;
}
