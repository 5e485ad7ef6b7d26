#include "base/heap.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

void
sl_heap_create(struct sl_heap *self)
{
    memset(self, 0, sizeof(*self));
}

void
sl_heap_destroy(struct sl_heap *self)
{
    sl_free(self->nodes);
    sl_heap_create(self);
}

static bool
node_is_before(const struct sl_heap_node *a, const struct sl_heap_node *b)
{
    return a->key < b->key || (a->key == b->key && a->order < b->order);
}

static void
heap_place(struct sl_heap *self, size_t at, struct sl_heap_node *node)
{
    self->nodes[at] = node;
    node->position = at + 1;
}

/* Moves the node up from the hole at `at` to where its parent is not after it. */
static void
heap_sift_up(struct sl_heap *self, size_t at, struct sl_heap_node *node)
{
    while (at > 0 && node_is_before(node, self->nodes[(at - 1) / 2])) {
        heap_place(self, at, self->nodes[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_place(self, at, node);
}

/* Moves the node down from the hole at `at` to where no child is before it. */
static void
heap_sift_down(struct sl_heap *self, size_t at, struct sl_heap_node *node)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= self->count) {
            break;
        }
        if (child + 1 < self->count && node_is_before(self->nodes[child + 1], self->nodes[child])) {
            child++;
        }
        if (!node_is_before(self->nodes[child], node)) {
            break;
        }
        heap_place(self, at, self->nodes[child]);
        at = child;
    }
    heap_place(self, at, node);
}

void
sl_heap_insert(struct sl_heap *self, struct sl_heap_node *node, int64_t key)
{
    sl_assert_eq(node->position, 0);
    if (self->count == self->capacity) {
        self->capacity = self->capacity > 0 ? self->capacity * 2 : 16;
        self->nodes = sl_realloc(self->nodes, self->capacity * sizeof(struct sl_heap_node *));
    }
    node->key = key;
    node->order = self->next_order++;
    heap_sift_up(self, self->count++, node);
}

struct sl_heap_node *
sl_heap_peek(const struct sl_heap *self)
{
    return self->count > 0 ? self->nodes[0] : NULL;
}

struct sl_heap_node *
sl_heap_pop(struct sl_heap *self)
{
    struct sl_heap_node *first = sl_heap_peek(self);
    if (first != NULL) {
        sl_heap_remove(self, first);
    }
    return first;
}

void
sl_heap_remove(struct sl_heap *self, struct sl_heap_node *node)
{
    if (node->position == 0) {
        return;
    }
    size_t at = node->position - 1;
    sl_assert_lt(at, self->count);
    sl_assert(self->nodes[at] == node);
    node->position = 0;
    struct sl_heap_node *last = self->nodes[--self->count];
    if (last == node) {
        return;
    }
    if (at > 0 && node_is_before(last, self->nodes[(at - 1) / 2])) {
        heap_sift_up(self, at, last);
    } else {
        heap_sift_down(self, at, last);
    }
}

void
sl_heap_update(struct sl_heap *self, struct sl_heap_node *node, int64_t key)
{
    sl_heap_remove(self, node);
    sl_heap_insert(self, node, key);
}
