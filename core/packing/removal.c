/*
 * A removal changes the rank of one container only, so a heap over the containers that hold the
 * component keeps the order: its top is ranked again after each removal.
 */
#include "packing/removal.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"

enum { THOUSANDTHS = 1000 };

/* One container that holds the component. Its items ascend by index; the last one goes first. */
struct holder {
    int32_t position;
    int32_t first;
    int32_t count;
};

struct removal {
    struct sl_packing_builder *builder;
    int32_t *items;
    struct holder *heap;
    int32_t heap_count;
};

/* True when a stands before b in the order of removal. */
static bool
is_before(const struct removal *self, const struct holder *a, const struct holder *b)
{
    const struct sl_packing_slot *slot_a = &self->builder->slots.items[a->position];
    const struct sl_packing_slot *slot_b = &self->builder->slots.items[b->position];
    bool is_only_a = a->count == slot_a->count;
    bool is_only_b = b->count == slot_b->count;
    if (is_only_a != is_only_b) {
        return is_only_a;
    }
    if (slot_a->count != slot_b->count) {
        return slot_a->count < slot_b->count;
    }
    int64_t share_a = (int64_t)THOUSANDTHS * a->count / slot_a->count;
    int64_t share_b = (int64_t)THOUSANDTHS * b->count / slot_b->count;
    if (share_a != share_b) {
        return share_a > share_b;
    }
    return slot_a->id > slot_b->id;
}

static void
sift_down(struct removal *self, int32_t at)
{
    for (;;) {
        int32_t best = at;
        for (int32_t child = 2 * at + 1; child <= 2 * at + 2; child++) {
            if (child < self->heap_count &&
                is_before(self, &self->heap[child], &self->heap[best])) {
                best = child;
            }
        }
        if (best == at) {
            return;
        }
        struct holder moved = self->heap[at];
        self->heap[at] = self->heap[best];
        self->heap[best] = moved;
        at = best;
    }
}

/* An item of the component, as it is sorted. */
struct member {
    int32_t position;
    int32_t index;
    int32_t item;
};

static int
compare_members(const void *left, const void *right)
{
    const struct member *a = left;
    const struct member *b = right;
    if (a->position != b->position) {
        return a->position < b->position ? -1 : 1;
    }
    return (a->index > b->index) - (a->index < b->index);
}

/* Lists the items of the component by container and index, and makes a heap of the containers. */
static void
collect(struct removal *self, int32_t component, int32_t total)
{
    struct sl_packing_builder *builder = self->builder;
    struct member *members = sl_alloc((size_t)total * sizeof(*members));
    int32_t at = 0;
    for (int32_t i = 0; i < (int32_t)builder->items.count; i++) {
        const struct sl_packing_item *item = &builder->items.items[i];
        if (item->slot >= 0 && item->instance.component == component) {
            members[at++] = (struct member){item->slot, item->instance.index, i};
        }
    }
    qsort(members, (size_t)total, sizeof(*members), compare_members);
    self->items = sl_alloc((size_t)total * sizeof(*self->items));
    self->heap = sl_alloc((size_t)total * sizeof(*self->heap));
    self->heap_count = 0;
    for (int32_t i = 0; i < total; i++) {
        self->items[i] = members[i].item;
        if (i == 0 || members[i].position != members[i - 1].position) {
            self->heap[self->heap_count++] = (struct holder){members[i].position, i, 0};
        }
        self->heap[self->heap_count - 1].count++;
    }
    sl_free(members);
    for (int32_t at_node = self->heap_count / 2; at_node >= 0; at_node--) {
        sift_down(self, at_node);
    }
}

int
sl_packing_removal_run(struct sl_packing_builder *builder, int32_t component, int32_t count)
{
    int32_t total = sl_packing_builder_count(builder, component);
    if (count > total) {
        return sl_err_set(SL_EUNSATISFIABLE,
                          "component '%.64s' can not shrink: instances: need %d to remove, there "
                          "are %d",
                          builder->components[component].name, count, total);
    }
    if (count <= 0) {
        return 0;
    }
    struct removal self = {.builder = builder};
    collect(&self, component, total);
    for (int32_t i = 0; i < count; i++) {
        struct holder *top = &self.heap[0];
        sl_packing_builder_drop(builder, self.items[top->first + top->count - 1]);
        top->count--;
        if (top->count == 0) {
            self.heap[0] = self.heap[--self.heap_count];
        }
        sift_down(&self, 0);
    }
    sl_free(self.items);
    sl_free(self.heap);
    return 0;
}
