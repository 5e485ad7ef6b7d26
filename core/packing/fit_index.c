#include "packing/fit_index.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

static const struct sl_fit_node CLOSED = {{INT64_MIN, INT64_MIN, INT64_MIN}, INT64_MIN};

void
sl_fit_index_create(struct sl_fit_index *self, int32_t count)
{
    *self = (struct sl_fit_index){.count = count, .size = 1};
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
    sl_fit_cloud_destroy(&self->cloud);
}

static int64_t
greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void
sl_fit_node_raise(struct sl_fit_node *node, const struct sl_fit_node *other)
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
        sl_fit_node_raise(&most, &leaves[i]);
    }
    self->nodes[self->size + block] = most;
}

static void
join_node(struct sl_fit_index *self, int32_t node)
{
    struct sl_fit_node most = self->nodes[2 * node];
    sl_fit_node_raise(&most, &self->nodes[2 * node + 1]);
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
    const struct sl_fit_node *before = &self->leaves[position];
    if (position < self->cloud.count &&
        (leaf.instances > before->instances || !sl_resource_fits(leaf.room, before->room))) {
        sl_fit_cloud_raise(&self->cloud, position, leaf.room);
    }
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
        grown.cloud = self->cloud;
        grown.misses = self->misses;
        self->cloud = (struct sl_fit_cloud){0};
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

/* A search for the first fit at or behind `from`. */
struct search {
    const struct sl_fit_index *index;
    struct sl_resource need;
    int32_t from;
    /* Blocks that may still be looked into; where they are used up `from` is where it stopped. */
    int64_t blocks;
};

/* Searches the `width` blocks from `low` on, which `node` covers. */
static int32_t
find_below(struct search *search, int32_t node, int32_t low, int32_t width)
{
    const struct sl_fit_index *index = search->index;
    if ((int64_t)(low + width) * SL_FIT_BLOCK <= search->from || search->blocks == 0 ||
        !sl_fit_node_holds(&index->nodes[node], search->need)) {
        return -1;
    }
    if (width == 1) {
        int32_t found = find_in_block(index, low, search->from, &search->need);
        if (found < 0 && --search->blocks == 0) {
            search->from = (low + 1) * SL_FIT_BLOCK;
        }
        return found;
    }
    int32_t half = width / 2;
    int32_t found = find_below(search, 2 * node, low, half);
    return found >= 0 ? found : find_below(search, 2 * node + 1, low + half, half);
}

/* Blocks that a search looks into before it goes on by room. */
enum { BLOCKS_IN_ORDER = 8 };

/* What making the cloud costs, in containers that are looked at in vain, for each container. */
enum { CLOUD_COST = 16 };

/* The rest of a long search: by room as far as the cloud knows, then in order again. */
static int32_t
find_by_room(struct sl_fit_index *self, struct search *search)
{
    if (self->cloud.count == 0 || self->misses * SL_FIT_BLOCK > (int64_t)self->count * CLOUD_COST) {
        sl_fit_cloud_destroy(&self->cloud);
        sl_fit_cloud_create(&self->cloud, self->leaves, self->count);
        self->misses = 0;
    }
    if (search->from < self->cloud.count) {
        int32_t found = sl_fit_cloud_find(&self->cloud, self->leaves, search->from, search->need);
        if (found >= 0) {
            return found;
        }
        search->from = self->cloud.count;
    }
    search->blocks = INT64_MAX;
    int32_t found = find_below(search, 1, 0, self->size);
    self->misses += INT64_MAX - search->blocks;
    return found;
}

int32_t
sl_fit_index_find(struct sl_fit_index *self, int32_t from, struct sl_resource need)
{
    struct search search = {.index = self, .need = need, .from = from, .blocks = BLOCKS_IN_ORDER};
    int32_t found = find_below(&search, 1, 0, self->size);
    if (found >= 0 || search.blocks > 0 || search.from >= self->count) {
        return found;
    }
    return find_by_room(self, &search);
}

int32_t
sl_fit_index_find_cyclic(struct sl_fit_index *self, int32_t from, struct sl_resource need)
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
