#pragma once
/*
 * Containers by the room they have, for the searches in which their order does not help: room for
 * the RAM in some, for the CPU in others, and in none for both. A k-d tree over the rooms: each box
 * holds containers of similar room, so that the most of a box says much about each of them.
 *
 *       ram  |  x x |   x        cut in halves, along the dimension in which the rooms of the box
 *            |--x---|  x         differ most, down to buckets of a few containers
 *            | xx x | x  x
 *            +------------ cpu
 *
 * The tree is made once and not kept up: it holds as long as rooms only shrink, because then the
 * most of a box stays an upper bound. A search lowers the bounds of the boxes it looks into.
 */

#include <stdint.h>

#include "packing/fit_node.h"

struct sl_fit_box {
    struct sl_resource most;
    /* Lowest and highest position in the box. */
    int32_t lowest;
    int32_t highest;
};

struct sl_fit_cloud {
    /* Positions of the containers, those of a box side by side. */
    int32_t *points;
    /* Box 1 is all, box n is cut into 2n and 2n + 1. */
    struct sl_fit_box *boxes;
    int32_t count;
};

/* Makes the tree of leaves[0 .. count - 1]. */
void sl_fit_cloud_create(struct sl_fit_cloud *self, const struct sl_fit_node *leaves,
                         int32_t count);
void sl_fit_cloud_destroy(struct sl_fit_cloud *self);

/*
 * The lowest position >= from of a container that now has room for the need, or -1. The leaves may
 * have less room than they had when the tree was made, never more.
 */
int32_t sl_fit_cloud_find(struct sl_fit_cloud *self, const struct sl_fit_node *leaves, int32_t from,
                          struct sl_resource need);
