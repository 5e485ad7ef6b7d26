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
 * The cuts are made once. Rooms that shrink need no word: the most of a box stays an upper bound,
 * and a search lowers the bounds of the boxes it looks into. Rooms that grow must be told.
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
    /* The bucket of each position. */
    int32_t *bucket_of;
    int32_t count;
};

/* Makes the tree of leaves[0 .. count - 1]. */
void sl_fit_cloud_create(struct sl_fit_cloud *self, const struct sl_fit_node *leaves,
                         int32_t count);
void sl_fit_cloud_destroy(struct sl_fit_cloud *self);

/* A container of the tree has more room than before, in any dimension. */
void sl_fit_cloud_raise(struct sl_fit_cloud *self, int32_t position, struct sl_resource room);

/* The lowest position >= from of a container that now has room for the need, or -1. */
int32_t sl_fit_cloud_find(struct sl_fit_cloud *self, const struct sl_fit_node *leaves, int32_t from,
                          struct sl_resource need);
