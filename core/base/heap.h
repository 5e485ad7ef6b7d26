#pragma once
/*
 * A binary min-heap of nodes that live in their items. Equal keys come out in the order in which
 * they went in (a counter breaks ties), so that what happens at one time happens in a fixed order.
 * Any node can be taken out in O(log n), which is what timers need.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_heap_node {
    int64_t key;
    /* Order of insertion. */
    uint64_t order;
    /* Position in the heap plus 1; 0 when in none, so zeroed memory is a valid node. */
    size_t position;
};

/* Zeroed memory is a valid empty heap. */
struct sl_heap {
    struct sl_heap_node **nodes;
    size_t count;
    size_t capacity;
    uint64_t next_order;
};

void sl_heap_create(struct sl_heap *self);

/* Frees the array; the nodes belong to the caller and are left as they are. */
void sl_heap_destroy(struct sl_heap *self);

/* Adds a node that is in no heap; smaller keys come first. */
void sl_heap_insert(struct sl_heap *self, struct sl_heap_node *node, int64_t key);

/* The node with the smallest key, or NULL. */
struct sl_heap_node *sl_heap_peek(const struct sl_heap *self);

/* Takes out the node with the smallest key, or gives NULL. */
struct sl_heap_node *sl_heap_pop(struct sl_heap *self);

/* Takes a node out; one that is in no heap stays so. */
void sl_heap_remove(struct sl_heap *self, struct sl_heap_node *node);

/* Gives a node another key; it goes behind the nodes that have that key already. */
void sl_heap_update(struct sl_heap *self, struct sl_heap_node *node, int64_t key);

static inline bool
sl_heap_is_linked(const struct sl_heap_node *node)
{
    return node->position != 0;
}
