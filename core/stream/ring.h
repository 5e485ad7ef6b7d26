#pragma once
/*
 * A single-producer single-consumer ring of fixed-size items.  Each side keeps a private copy of
 * the other's index and reads the shared one only when the copy says full or empty, so that in
 * steady state the two threads touch each other's cache line once per lap, not once per item.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

struct sl_ring {
    uint8_t *items;
    uint32_t mask;
    uint32_t item_size;
    /* Producer's line. */
    _Alignas(64) uint32_t tail;
    uint32_t head_seen;
    /* Consumer's line. */
    _Alignas(64) uint32_t head;
    uint32_t tail_seen;
};

/* A ring for at least `capacity` (<= 2^31) items; NULL when there is no memory. */
static inline struct sl_ring *
sl_ring_new(uint32_t capacity, uint32_t item_size)
{
    uint32_t size = 2;
    while (size < capacity) {
        size *= 2;
    }
    uint8_t *items = sl_try_alloc((size_t)size * item_size);
    struct sl_ring *self = NULL;
    if (items == NULL || posix_memalign((void **)&self, 64, sizeof(*self)) != 0) {
        sl_free(items);
        return NULL;
    }
    memset(self, 0, sizeof(*self));
    self->items = items;
    self->mask = size - 1;
    self->item_size = item_size;
    return self;
}

static inline void
sl_ring_free(struct sl_ring *self)
{
    if (self != NULL) {
        sl_free(self->items);
        free(self);
    }
}

/* Producer: copies *item in; false when the ring is full. */
static inline bool
sl_ring_push(struct sl_ring *self, const void *item)
{
    uint32_t tail = self->tail;
    if (tail - self->head_seen > self->mask) {
        self->head_seen = __atomic_load_n(&self->head, __ATOMIC_ACQUIRE);
        if (tail - self->head_seen > self->mask) {
            return false;
        }
    }
    memcpy(self->items + (size_t)(tail & self->mask) * self->item_size, item, self->item_size);
    __atomic_store_n(&self->tail, tail + 1, __ATOMIC_RELEASE);
    return true;
}

/* Producer: true when a push would succeed. */
static inline bool
sl_ring_has_room(struct sl_ring *self)
{
    if (self->tail - self->head_seen > self->mask) {
        self->head_seen = __atomic_load_n(&self->head, __ATOMIC_ACQUIRE);
    }
    return self->tail - self->head_seen <= self->mask;
}

/* Producer: copies as many of the items as fit and publishes them at once; how many. */
static inline uint32_t
sl_ring_push_many(struct sl_ring *self, const void *items, uint32_t count)
{
    uint32_t tail = self->tail;
    uint32_t room = self->mask + 1 - (tail - self->head_seen);
    if (room < count) {
        self->head_seen = __atomic_load_n(&self->head, __ATOMIC_ACQUIRE);
        room = self->mask + 1 - (tail - self->head_seen);
    }
    uint32_t taken = count < room ? count : room;
    for (uint32_t i = 0; i < taken; i++) {
        memcpy(self->items + (size_t)((tail + i) & self->mask) * self->item_size,
               (const uint8_t *)items + (size_t)i * self->item_size, self->item_size);
    }
    if (taken > 0) {
        __atomic_store_n(&self->tail, tail + taken, __ATOMIC_RELEASE);
    }
    return taken;
}

/* Consumer: moves the oldest item to *item; false when the ring is empty. */
static inline bool
sl_ring_pop(struct sl_ring *self, void *item)
{
    uint32_t head = self->head;
    if (head == self->tail_seen) {
        self->tail_seen = __atomic_load_n(&self->tail, __ATOMIC_ACQUIRE);
        if (head == self->tail_seen) {
            return false;
        }
    }
    memcpy(item, self->items + (size_t)(head & self->mask) * self->item_size, self->item_size);
    __atomic_store_n(&self->head, head + 1, __ATOMIC_RELEASE);
    return true;
}

/* Consumer: true when nothing is there. */
static inline bool
sl_ring_is_empty(struct sl_ring *self)
{
    return self->head == __atomic_load_n(&self->tail, __ATOMIC_ACQUIRE);
}
