#pragma once
/*
 * A plan under construction: containers and instances that can be added, removed and moved, the
 * ids that new ones get, and the constraints on additions.
 *
 * Containers lie in slots ascending by id; a container's instances form a list through the items:
 *
 *     slots:  [ id 1 | id 3 | id 4 ]
 *                |head
 *     items:  [ #1 ] -> [ #2 ] -> ...        removed items stay as holes with slot -1
 *
 * A new task is the highest task + 1 (1 when there is none), a new index the highest index of its
 * component + 1 (0 when there is none): ids freed at the top are used again, gaps below are not.
 * Instances that are there already are never checked again: limits that changed since bind only
 * what is added.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "packing/limits.h"
#include "packing/packing.h"
#include "packing/resource.h"

struct sl_packing_item {
    struct sl_packing_instance instance;
    struct sl_resource need;
    /* Position of its container, or -1 when it was removed. */
    int32_t slot;
    /* Neighbours in the list of the container, -1 at the ends. */
    int32_t next;
    int32_t prev;
};

struct sl_packing_slot {
    int32_t id;
    int32_t count;
    int32_t head;
    struct sl_resource used;
    /* Position in the plan that was loaded, or -1. Such a container keeps the resources that the
     * plan states as long as nothing in it changes. */
    int32_t origin;
    bool is_touched;
};

struct sl_packing_builder {
    const struct sl_packing_component *components;
    int32_t component_count;
    struct sl_packing_limits limits;
    const struct sl_packing_plan *loaded;
    SL_VEC(struct sl_packing_item) items;
    SL_VEC(struct sl_packing_slot) slots;
    /* Items that are not removed. */
    int32_t live;
    /* Highest task, and highest index of each component (-1: none); void while stale. */
    int32_t max_task;
    int32_t *max_index;
    bool maxima_are_stale;
};

/* Components are borrowed until destroy. */
void sl_packing_builder_create(struct sl_packing_builder *self,
                               const struct sl_packing_component *components,
                               int32_t component_count, const struct sl_packing_limits *limits);
void sl_packing_builder_destroy(struct sl_packing_builder *self);

/* Starts from a plan that passed sl_packing_plan_check; it is borrowed until destroy. */
void sl_packing_builder_load(struct sl_packing_builder *self, const struct sl_packing_plan *plan);

/* Position of the container with this id, or -1. */
int32_t sl_packing_builder_find(const struct sl_packing_builder *self, int32_t id);

/* Highest container id + 1. */
int32_t sl_packing_builder_next_id(const struct sl_packing_builder *self);

/* Opens an empty container with an id that is not there; returns its position. */
int32_t sl_packing_builder_open(struct sl_packing_builder *self, int32_t id);

/* Adds a new instance to the container at this position, without a check. Returns the item. */
int32_t sl_packing_builder_put(struct sl_packing_builder *self, int32_t position,
                               int32_t component);

/* Takes an item out of its container. */
void sl_packing_builder_drop(struct sl_packing_builder *self, int32_t item);

/* Puts an item into another container, without a check; its ids stay. */
void sl_packing_builder_move(struct sl_packing_builder *self, int32_t item, int32_t position);

/* Removes the containers without instances; positions change. */
void sl_packing_builder_prune(struct sl_packing_builder *self);

/*
 * Adds an instance to the container with this id, which is made when it is not there. 0, or
 * SL_EUNSATISFIABLE when a constraint would be violated.
 */
int sl_packing_builder_add(struct sl_packing_builder *self, int32_t container_id,
                           int32_t component);

/* Removes the instance with the highest index from the container; SL_EUNSATISFIABLE if there is
 * none. */
int sl_packing_builder_remove(struct sl_packing_builder *self, int32_t container_id,
                              int32_t component);

/* The container's item of this component with the highest index, or -1. */
int32_t sl_packing_builder_highest(const struct sl_packing_builder *self, int32_t position,
                                   int32_t component);

/* Instances of the component in the whole plan. */
int32_t sl_packing_builder_count(const struct sl_packing_builder *self, int32_t component);

/*
 * The plan: empty containers left out; a container needs the sum of its instances and the padding,
 * its CPU rounded to whole cores. SL_EUNSATISFIABLE when nothing is left.
 */
int sl_packing_builder_build(const struct sl_packing_builder *self, struct sl_packing_plan **plan);
