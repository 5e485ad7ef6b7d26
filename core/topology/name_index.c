#include "topology/name_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Orders component indexes by (name, index); context is the array of components. */
static int
compare_by_name(const void *a, const void *b, void *context)
{
    const struct sl_topology_component *components = context;
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    int order = strcmp(components[x].name, components[y].name);
    if (order != 0) {
        return order;
    }
    return x < y ? -1 : x > y;
}

void
sl__name_index_create(struct sl__name_index *self, const struct sl_topology *topology)
{
    uint32_t count = topology->component_count;
    self->topology = topology;
    self->by_name = sl_calloc((size_t)count + 1, sizeof(*self->by_name));
    for (uint32_t i = 0; i < count; i++) {
        self->by_name[i] = i;
    }
    if (count > 1) {
        qsort_r(self->by_name, count, sizeof(*self->by_name), compare_by_name,
                topology->components);
    }
}

void
sl__name_index_destroy(struct sl__name_index *self)
{
    sl_free(self->by_name);
    self->by_name = NULL;
}

int64_t
sl__name_index_find(const struct sl__name_index *self, const char *name)
{
    const struct sl_topology_component *components = self->topology->components;
    uint32_t count = self->topology->component_count;
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(components[self->by_name[middle]].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < count && strcmp(components[self->by_name[low]].name, name) == 0) {
        return self->by_name[low];
    }
    return -1;
}
