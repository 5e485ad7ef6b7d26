/*
 * A removal changes the rank of one container only, so a heap over the containers that hold the
 * component keeps the order: its top is ranked again after each removal.
 */
#include "packing/removal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"

enum { THOUSANDTHS = 1000 };

/* One container that holds the component. Its items ascend by index; the last one goes first. */
struct holder {
    int32_t position;
    int32_t first;
    int32_t count;
};

struct ranks {
    const struct sl_packing_builder *builder;
    struct holder *heap;
    int32_t heap_count;
};

/* True when a stands before b in the order of removal. */
static bool
is_before(const struct ranks *self, const struct holder *a, const struct holder *b)
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
sift_down(struct ranks *self, int32_t at)
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
    int32_t task;
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

static int
compare_tasks(const void *left, const void *right)
{
    const struct member *a = left;
    const struct member *b = right;
    return (a->task > b->task) - (a->task < b->task);
}

void
sl_packing_removal_create(struct sl_packing_removal *self, struct sl_packing_builder *builder)
{
    size_t components = (size_t)builder->component_count;
    self->builder = builder;
    self->starts = sl_calloc(components + 1, sizeof(*self->starts));
    self->items = sl_alloc(builder->items.count * sizeof(*self->items));
    for (size_t i = 0; i < builder->items.count; i++) {
        self->starts[builder->items.items[i].instance.component + 1]++;
    }
    for (size_t c = 0; c < components; c++) {
        self->starts[c + 1] += self->starts[c];
    }
    int32_t *next = sl_alloc(components * sizeof(*next));
    memcpy(next, self->starts, components * sizeof(*next));
    for (int32_t i = 0; i < (int32_t)builder->items.count; i++) {
        self->items[next[builder->items.items[i].instance.component]++] = i;
    }
    sl_free(next);
}

void
sl_packing_removal_destroy(struct sl_packing_removal *self)
{
    sl_free(self->items);
    sl_free(self->starts);
}

/* Lists the items of the component; returns how many there are. */
static int32_t
collect_members(const struct sl_packing_removal *self, int32_t component, struct member *members)
{
    int32_t count = 0;
    for (int32_t i = self->starts[component]; i < self->starts[component + 1]; i++) {
        const struct sl_packing_item *item = &self->builder->items.items[self->items[i]];
        if (item->slot >= 0) {
            members[count++] = (struct member){item->slot, item->instance.index,
                                               item->instance.task, self->items[i]};
        }
    }
    return count;
}

/* Makes a heap of the containers that hold the members. */
static void
rank_holders(struct ranks *self, const struct member *members, int32_t count)
{
    self->heap_count = 0;
    for (int32_t i = 0; i < count; i++) {
        if (i == 0 || members[i].position != members[i - 1].position) {
            self->heap[self->heap_count++] = (struct holder){members[i].position, i, 0};
        }
        self->heap[self->heap_count - 1].count++;
    }
    for (int32_t at = self->heap_count / 2; at >= 0; at--) {
        sift_down(self, at);
    }
}

static int
refuse(const struct sl_packing_builder *builder, int32_t component, int32_t count, int32_t total)
{
    return sl_err_set(SL_EUNSATISFIABLE,
                      "component '%.64s' can not shrink: instances: need %d to remove, there are "
                      "%d",
                      builder->components[component].name, count, total);
}

int
sl_packing_removal_run(struct sl_packing_removal *self, int32_t component, int32_t count)
{
    struct sl_packing_builder *builder = self->builder;
    size_t most = (size_t)(self->starts[component + 1] - self->starts[component]);
    struct member *members = sl_alloc(most * sizeof(*members));
    struct ranks ranks = {.builder = builder, .heap = sl_alloc(most * sizeof(*ranks.heap))};
    int rc = 0;
    int32_t total = collect_members(self, component, members);
    if (count > total) {
        rc = refuse(builder, component, count, total);
        goto out;
    }
    qsort(members, (size_t)total, sizeof(*members), compare_members);
    rank_holders(&ranks, members, total);
    for (int32_t i = 0; i < count; i++) {
        struct holder *top = &ranks.heap[0];
        sl_packing_builder_drop(builder, members[top->first + top->count - 1].item);
        top->count--;
        if (top->count == 0) {
            ranks.heap[0] = ranks.heap[--ranks.heap_count];
        }
        sift_down(&ranks, 0);
    }
out:
    sl_free(members);
    sl_free(ranks.heap);
    return rc;
}

int
sl_packing_removal_run_highest(struct sl_packing_removal *self, int32_t component, int32_t count)
{
    size_t most = (size_t)(self->starts[component + 1] - self->starts[component]);
    struct member *members = sl_alloc(most * sizeof(*members));
    int rc = 0;
    int32_t total = collect_members(self, component, members);
    if (count > total) {
        rc = refuse(self->builder, component, count, total);
    } else {
        qsort(members, (size_t)total, sizeof(*members), compare_tasks);
        for (int32_t i = total - count; i < total; i++) {
            sl_packing_builder_drop(self->builder, members[i].item);
        }
    }
    sl_free(members);
    return rc;
}
