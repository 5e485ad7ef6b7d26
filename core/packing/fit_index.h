#pragma once
/*
 * Finds the first container, in the order of the containers, that an instance fits into, in about
 * log(containers) steps: a tree whose inner nodes hold the most room, per dimension, of the
 * containers below them.
 *
 *              [max of all]
 *          [max 0-1]   [max 2-3]
 *         [0]  [1]     [2]  [-]      a leaf that is not used has no room at all
 *
 * A subtree whose maximum does not suffice holds no fit; where it does, the leaves decide. So the
 * answer is the one of a scan from the left, ties included.
 */

#include <stdint.h>

#include "packing/limits.h"
#include "packing/resource.h"

struct sl_fit_node {
    struct sl_resource room;
    int64_t instances;
};

struct sl_fit_index {
    /* nodes[1] is the root, the children of n are 2n and 2n + 1, leaf i is size + i. */
    struct sl_fit_node *nodes;
    int32_t size;
    int32_t count;
};

/* Starts with `count` containers without room; sl_fit_index_set gives it to them. */
void sl_fit_index_create(struct sl_fit_index *self, int32_t count);
void sl_fit_index_destroy(struct sl_fit_index *self);

/* Sets the room of a leaf and leaves the inner nodes alone, until sl_fit_index_refresh. */
void sl_fit_index_load(struct sl_fit_index *self, int32_t position, struct sl_fit_node leaf);
void sl_fit_index_refresh(struct sl_fit_index *self);

/* Sets the room of a container that is there. */
void sl_fit_index_set(struct sl_fit_index *self, int32_t position, struct sl_fit_node leaf);

/* Takes a container out of the search. */
void sl_fit_index_close(struct sl_fit_index *self, int32_t position);

/* Adds a container behind the last one. */
void sl_fit_index_append(struct sl_fit_index *self, struct sl_fit_node leaf);

/* The lowest position >= from with room for the need, or -1. */
int32_t sl_fit_index_find(const struct sl_fit_index *self, int32_t from, struct sl_resource need);

/* The first one from `from` on, then from the start; -1 when nothing fits. */
int32_t sl_fit_index_find_cyclic(const struct sl_fit_index *self, int32_t from,
                                 struct sl_resource need);

/* The most room of any container, per dimension. */
struct sl_fit_node sl_fit_index_most(const struct sl_fit_index *self);

/* Room of a container with these limits that uses `used` for `count` instances. */
struct sl_fit_node sl_fit_node_of(const struct sl_packing_limits *limits, struct sl_resource used,
                                  int32_t count);

/* The leaf after one more instance of this need. */
struct sl_fit_node sl_fit_node_less(struct sl_fit_node node, struct sl_resource need);

static inline bool
sl_fit_node_holds(const struct sl_fit_node *node, struct sl_resource need)
{
    return node->instances >= 1 && sl_resource_fits(need, node->room);
}
