#pragma once
/* Private to the room: components by name in O(log n), for topologies of thousands of components.
 */
#include "topology/topology.h"

struct sl__name_index {
    const struct sl_topology *topology;
    /* Component indexes sorted by (name, index). */
    uint32_t *by_name;
};

/* The topology is borrowed and must not change while the index lives. */
void sl__name_index_create(struct sl__name_index *self, const struct sl_topology *topology);

void sl__name_index_destroy(struct sl__name_index *self);

/* Index of the first component with this name, or -1. */
int64_t sl__name_index_find(const struct sl__name_index *self, const char *name);
