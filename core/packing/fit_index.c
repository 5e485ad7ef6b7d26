#include "packing/fit_index.h"

#include "base/alloc.h"
#include "base/assert.h"

static const struct sl_fit_node CLOSED = {{INT64_MIN, INT64_MIN, INT64_MIN}, INT64_MIN};

static int32_t
leaves_for(int32_t count)
{
    int32_t size = 1;
    while (size < count) {
        size *= 2;
    }
    return size;
}

void
sl_fit_index_create(struct sl_fit_index *self, int32_t count)
{
    self->size = leaves_for(count);
    self->count = count;
    self->nodes = sl_alloc(2 * (size_t)self->size * sizeof(*self->nodes));
    for (int32_t i = 0; i < 2 * self->size; i++) {
        self->nodes[i] = CLOSED;
    }
}

void
sl_fit_index_destroy(struct sl_fit_index *self)
{
    sl_free(self->nodes);
    self->nodes = NULL;
}

static int64_t
greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void
node_join(struct sl_fit_index *self, int32_t node)
{
    const struct sl_fit_node *left = &self->nodes[2 * node];
    const struct sl_fit_node *right = &self->nodes[2 * node + 1];
    self->nodes[node] = (struct sl_fit_node){
        .room =
            {
                .cpu_nano = greater(left->room.cpu_nano, right->room.cpu_nano),
                .ram_bytes = greater(left->room.ram_bytes, right->room.ram_bytes),
                .disk_bytes = greater(left->room.disk_bytes, right->room.disk_bytes),
            },
        .instances = greater(left->instances, right->instances),
    };
}

void
sl_fit_index_load(struct sl_fit_index *self, int32_t position, struct sl_fit_node leaf)
{
    sl_assert_lt(position, self->count);
    self->nodes[self->size + position] = leaf;
}

void
sl_fit_index_refresh(struct sl_fit_index *self)
{
    for (int32_t node = self->size - 1; node >= 1; node--) {
        node_join(self, node);
    }
}

void
sl_fit_index_set(struct sl_fit_index *self, int32_t position, struct sl_fit_node leaf)
{
    sl_fit_index_load(self, position, leaf);
    for (int32_t node = (self->size + position) / 2; node >= 1; node /= 2) {
        node_join(self, node);
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
    if (self->count == self->size) {
        struct sl_fit_index grown;
        sl_fit_index_create(&grown, self->size * 2);
        for (int32_t i = 0; i < self->count; i++) {
            sl_fit_index_load(&grown, i, self->nodes[self->size + i]);
        }
        sl_fit_index_refresh(&grown);
        grown.count = self->count;
        sl_fit_index_destroy(self);
        *self = grown;
    }
    self->count++;
    sl_fit_index_set(self, self->count - 1, leaf);
}

/* The first fit at or behind `from` among the `width` leaves from `low` on, which `node` covers. */
static int32_t
find_below(const struct sl_fit_index *self, int32_t node, int32_t low, int32_t width, int32_t from,
           const struct sl_resource *need)
{
    if (low + width <= from || !sl_fit_node_holds(&self->nodes[node], *need)) {
        return -1;
    }
    if (width == 1) {
        return low;
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
