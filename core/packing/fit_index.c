#include "packing/fit_index.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

static const struct sl_fit_node CLOSED = {{INT64_MIN, INT64_MIN, INT64_MIN}, INT64_MIN};

void
sl_fit_index_create(struct sl_fit_index *self, int32_t count)
{
    self->count = count;
    self->size = 1;
    while ((int64_t)self->size * SL_FIT_BLOCK < count) {
        self->size *= 2;
    }
    int64_t leaves = (int64_t)self->size * SL_FIT_BLOCK;
    self->leaves = sl_alloc((size_t)leaves * sizeof(*self->leaves));
    self->nodes = sl_alloc(2 * (size_t)self->size * sizeof(*self->nodes));
    for (int64_t i = 0; i < leaves; i++) {
        self->leaves[i] = CLOSED;
    }
    for (int32_t i = 0; i < 2 * self->size; i++) {
        self->nodes[i] = CLOSED;
    }
}

void
sl_fit_index_destroy(struct sl_fit_index *self)
{
    sl_free(self->leaves);
    sl_free(self->nodes);
    self->leaves = NULL;
    self->nodes = NULL;
}

static int64_t
greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void
raise_to(struct sl_fit_node *node, const struct sl_fit_node *other)
{
    node->room.cpu_nano = greater(node->room.cpu_nano, other->room.cpu_nano);
    node->room.ram_bytes = greater(node->room.ram_bytes, other->room.ram_bytes);
    node->room.disk_bytes = greater(node->room.disk_bytes, other->room.disk_bytes);
    node->instances = greater(node->instances, other->instances);
}

static void
join_block(struct sl_fit_index *self, int32_t block)
{
    struct sl_fit_node most = CLOSED;
    const struct sl_fit_node *leaves = &self->leaves[(int64_t)block * SL_FIT_BLOCK];
    for (int32_t i = 0; i < SL_FIT_BLOCK; i++) {
        raise_to(&most, &leaves[i]);
    }
    self->nodes[self->size + block] = most;
}

static void
join_node(struct sl_fit_index *self, int32_t node)
{
    struct sl_fit_node most = self->nodes[2 * node];
    raise_to(&most, &self->nodes[2 * node + 1]);
    self->nodes[node] = most;
}

void
sl_fit_index_load(struct sl_fit_index *self, int32_t position, struct sl_fit_node leaf)
{
    sl_assert_lt(position, self->count);
    self->leaves[position] = leaf;
}

void
sl_fit_index_refresh(struct sl_fit_index *self)
{
    for (int32_t block = 0; (int64_t)block * SL_FIT_BLOCK < self->count; block++) {
        join_block(self, block);
    }
    for (int32_t node = self->size - 1; node >= 1; node--) {
        join_node(self, node);
    }
}

void
sl_fit_index_set(struct sl_fit_index *self, int32_t position, struct sl_fit_node leaf)
{
    sl_fit_index_load(self, position, leaf);
    int32_t block = position / SL_FIT_BLOCK;
    join_block(self, block);
    for (int32_t node = (self->size + block) / 2; node >= 1; node /= 2) {
        join_node(self, node);
    }
}

void
sl_fit_index_close(struct sl_fit_index *self, int32_t position)
{
    sl_fit_index_set(self, position, CLOSED);
}

void
sl_fit_index_append(struct sl_fit_index *self, struct sl_fit_node leaf)
{
    if (self->count == self->size * SL_FIT_BLOCK) {
        struct sl_fit_index grown;
        sl_fit_index_create(&grown, self->count * 2);
        memcpy(grown.leaves, self->leaves, (size_t)self->count * sizeof(*self->leaves));
        grown.count = self->count;
        sl_fit_index_refresh(&grown);
        sl_fit_index_destroy(self);
        *self = grown;
    }
    self->count++;
    sl_fit_index_set(self, self->count - 1, leaf);
}

static int32_t
find_in_block(const struct sl_fit_index *self, int32_t block, int32_t from,
              const struct sl_resource *need)
{
    int32_t low = block * SL_FIT_BLOCK;
    for (int32_t i = low > from ? low : from; i < low + SL_FIT_BLOCK; i++) {
        if (sl_fit_node_holds(&self->leaves[i], *need)) {
            return i;
        }
    }
    return -1;
}

/* The first fit at or behind `from` among the `width` blocks from `low` on, which `node` covers. */
static int32_t
find_below(const struct sl_fit_index *self, int32_t node, int32_t low, int32_t width, int32_t from,
           const struct sl_resource *need)
{
    if ((int64_t)(low + width) * SL_FIT_BLOCK <= from ||
        !sl_fit_node_holds(&self->nodes[node], *need)) {
        return -1;
    }
    if (width == 1) {
        return find_in_block(self, low, from, need);
    }
    int32_t half = width / 2;
    int32_t found = find_below(self, 2 * node, low, half, from, need);
    return found >= 0 ? found : find_below(self, 2 * node + 1, low + half, half, from, need);
}

int32_t
sl_fit_index_find(const struct sl_fit_index *self, int32_t from, struct sl_resource need)
{
    return find_below(self, 1, 0, self->size, from, &need);
}

int32_t
sl_fit_index_find_cyclic(const struct sl_fit_index *self, int32_t from, struct sl_resource need)
{
    int32_t found = sl_fit_index_find(self, from, need);
    return found >= 0 ? found : sl_fit_index_find(self, 0, need);
}

struct sl_fit_node
sl_fit_index_most(const struct sl_fit_index *self)
{
    return self->nodes[1];
}

struct sl_fit_node
sl_fit_node_of(const struct sl_packing_limits *limits, struct sl_resource used, int32_t count)
{
    return (struct sl_fit_node){
        .room = sl_packing_room(limits, used),
        .instances = (int64_t)limits->max_instances - count,
    };
}

struct sl_fit_node
sl_fit_node_less(struct sl_fit_node node, struct sl_resource need)
{
    return (struct sl_fit_node){
        .room = sl_resource_difference(node.room, need),
        .instances = node.instances - 1,
    };
}
