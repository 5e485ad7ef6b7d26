#pragma once
/*
 * Finds the first container, in the order of the containers, that an instance fits into: a tree
 * over blocks of containers, whose nodes hold the most room, per dimension, of what lies below
 * them.
 *
 *                 [most of all]
 *          [most of 0-63]   [most of 64-127]       nodes: 1 is the root, n has 2n and 2n + 1
 *          0 .. 31 | 32 .. 63 | 64 .. 95 | 96 ..   blocks: scanned one container after the other
 *
 * A node whose maximum does not suffice holds no fit; where it does, the containers decide. So the
 * answer is that of a scan from the left, ties included. Where that gets long, because each
 * dimension has room somewhere but seldom all in one container, the search goes on by room
 * (fit_cloud.h).
 */

#include <stdint.h>

#include "packing/fit_cloud.h"
#include "packing/fit_node.h"
#include "packing/limits.h"
#include "packing/resource.h"

enum { SL_FIT_BLOCK = 32 };

struct sl_fit_index {
    /* One a container; those from count up to the end of the blocks are closed. */
    struct sl_fit_node *leaves;
    /* The tree: the node of block b is nodes[size + b]. */
    struct sl_fit_node *nodes;
    /* Blocks there is place for, a power of two. */
    int32_t size;
    int32_t count;
    /* The containers by room, for long searches; it has none (count 0) until the first one, and
     * knows those that were there then. */
    struct sl_fit_cloud cloud;
    /* Blocks that were looked into in vain among the containers that it does not know. */
    int64_t misses;
};

/* Starts with `count` containers without room; sl_fit_index_set gives it to them. */
void sl_fit_index_create(struct sl_fit_index *self, int32_t count);
void sl_fit_index_destroy(struct sl_fit_index *self);

/* Sets the room of a container and leaves the tree alone, until sl_fit_index_refresh. */
void sl_fit_index_load(struct sl_fit_index *self, int32_t position, struct sl_fit_node leaf);
void sl_fit_index_refresh(struct sl_fit_index *self);

/* Sets the room of a container that is there. */
void sl_fit_index_set(struct sl_fit_index *self, int32_t position, struct sl_fit_node leaf);

/* Takes a container out of the search. */
void sl_fit_index_close(struct sl_fit_index *self, int32_t position);

/* Adds a container behind the last one. */
void sl_fit_index_append(struct sl_fit_index *self, struct sl_fit_node leaf);

/* The lowest position >= from with room for the need, or -1. */
int32_t sl_fit_index_find(struct sl_fit_index *self, int32_t from, struct sl_resource need);

/* The first one from `from` on, then from the start; -1 when nothing fits. */
int32_t sl_fit_index_find_cyclic(struct sl_fit_index *self, int32_t from, struct sl_resource need);

/* The most room of any container, per dimension. */
struct sl_fit_node sl_fit_index_most(const struct sl_fit_index *self);

/* Room of a container with these limits that uses `used` for `count` instances. */
struct sl_fit_node sl_fit_node_of(const struct sl_packing_limits *limits, struct sl_resource used,
                                  int32_t count);

/* The leaf after one more instance of this need. */
struct sl_fit_node sl_fit_node_less(struct sl_fit_node node, struct sl_resource need);
