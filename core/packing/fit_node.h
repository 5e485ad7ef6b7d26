#pragma once
/* The room of one container, or the most room of several, per dimension. */

#include <stdbool.h>
#include <stdint.h>

#include "packing/resource.h"

struct sl_fit_node {
    struct sl_resource room;
    /* Instances that it may take. */
    int64_t instances;
};

static inline bool
sl_fit_node_holds(const struct sl_fit_node *node, struct sl_resource need)
{
    return node->instances >= 1 && sl_resource_fits(need, node->room);
}

/* Raises each dimension to that of the other one where that is more. */
void sl_fit_node_raise(struct sl_fit_node *node, const struct sl_fit_node *other);
