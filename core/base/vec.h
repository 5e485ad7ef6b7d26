#pragma once
/*
 * Typed growable arrays by macros.
 *
 *     SL_VEC(int) ids = SL_VEC_INIT;
 *     sl_vec_push(&ids, 7);
 *     for (size_t i = 0; i < ids.count; i++) use(ids.items[i]);
 *     sl_vec_destroy(&ids);
 *
 * Zeroed memory is a valid empty vector. Arguments named `vec` are evaluated more than once.
 */

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

/* The type; inside a struct it is anonymous, or name it: `struct name_list SL_VEC_BODY(char *);`.
 */
#define SL_VEC(type) struct SL_VEC_BODY(type)
#define SL_VEC_BODY(type)                                                                          \
    {                                                                                              \
        type *items;                                                                               \
        size_t count;                                                                              \
        size_t capacity;                                                                           \
    }
#define SL_VEC_INIT                                                                                \
    {                                                                                              \
        NULL, 0, 0                                                                                 \
    }

#define sl_vec_create(vec) ((void)((vec)->items = NULL, (vec)->count = 0, (vec)->capacity = 0))

/* Frees the array, not what its items point to. */
#define sl_vec_destroy(vec) (sl_free((vec)->items), sl_vec_create(vec))

/* Drops the items and keeps the memory. */
#define sl_vec_clear(vec) ((void)((vec)->count = 0))

/* Makes room for at least `total` items. */
#define sl_vec_reserve(vec, total)                                                                 \
    ((void)((vec)->items =                                                                         \
                sl__vec_grow((vec)->items, &(vec)->capacity, (total), sizeof(*(vec)->items))))

#define sl_vec_push(vec, item)                                                                     \
    (sl_vec_reserve((vec), (vec)->count + 1), (void)((vec)->items[(vec)->count++] = (item)))

/* Adds an uninitialised item and gives its address. */
#define sl_vec_add(vec) (sl_vec_reserve((vec), (vec)->count + 1), &(vec)->items[(vec)->count++])

/* Removes the last item and gives it; the vector must not be empty. */
#define sl_vec_pop(vec) ((vec)->items[sl__vec_last(&(vec)->count, 1)])

/* The last item as an lvalue; the vector must not be empty. */
#define sl_vec_last(vec) ((vec)->items[sl__vec_last(&(vec)->count, 0)])

/* Inserts before `index` (<= count), keeping the order. */
#define sl_vec_insert(vec, index, item)                                                            \
    do {                                                                                           \
        size_t sl_index = (index);                                                                 \
        sl_vec_reserve((vec), (vec)->count + 1);                                                   \
        sl_assert_le(sl_index, (vec)->count);                                                      \
        memmove(&(vec)->items[sl_index + 1], &(vec)->items[sl_index],                              \
                ((vec)->count - sl_index) * sizeof(*(vec)->items));                                \
        (vec)->items[sl_index] = (item);                                                           \
        (vec)->count++;                                                                            \
    } while (0)

/* Removes the item at `index`, keeping the order. */
#define sl_vec_remove(vec, index)                                                                  \
    do {                                                                                           \
        size_t sl_index = (index);                                                                 \
        sl_assert_lt(sl_index, (vec)->count);                                                      \
        (vec)->count--;                                                                            \
        memmove(&(vec)->items[sl_index], &(vec)->items[sl_index + 1],                              \
                ((vec)->count - sl_index) * sizeof(*(vec)->items));                                \
    } while (0)

/* Removes the item at `index` in O(1); the last one takes its place. */
#define sl_vec_remove_swap(vec, index)                                                             \
    do {                                                                                           \
        size_t sl_index = (index);                                                                 \
        sl_assert_lt(sl_index, (vec)->count);                                                      \
        (vec)->items[sl_index] = (vec)->items[--(vec)->count];                                     \
    } while (0)

static inline void *
sl__vec_grow(void *items, size_t *capacity, size_t total, size_t item_size)
{
    if (total <= *capacity) {
        return items;
    }
    size_t grown = *capacity < 8 ? 8 : *capacity + *capacity / 2;
    if (grown < total) {
        grown = total;
    }
    sl_assert_le(grown, (size_t)-1 / 2 / item_size);
    *capacity = grown;
    return sl_realloc(items, grown * item_size);
}

static inline size_t
sl__vec_last(size_t *count, size_t removed)
{
    sl_assert_lt(0, *count);
    *count -= removed;
    return *count - 1 + removed;
}
