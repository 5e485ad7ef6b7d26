#include "packing/builder.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"

void
sl_packing_builder_create(struct sl_packing_builder *self,
                          const struct sl_packing_component *components, int32_t component_count,
                          const struct sl_packing_limits *limits)
{
    *self = (struct sl_packing_builder){
        .components = components,
        .component_count = component_count,
        .limits = *limits,
        .max_index = sl_calloc((size_t)component_count, sizeof(int32_t)),
        .maxima_are_stale = true,
    };
}

void
sl_packing_builder_destroy(struct sl_packing_builder *self)
{
    sl_vec_destroy(&self->items);
    sl_vec_destroy(&self->slots);
    sl_free(self->max_index);
    self->max_index = NULL;
}

/* Puts an item at the front of the list of its new container. */
static void
link_item(struct sl_packing_builder *self, int32_t item, int32_t position)
{
    struct sl_packing_item *node = &self->items.items[item];
    struct sl_packing_slot *slot = &self->slots.items[position];
    node->slot = position;
    node->prev = -1;
    node->next = slot->head;
    if (slot->head >= 0) {
        self->items.items[slot->head].prev = item;
    }
    slot->head = item;
    slot->count++;
    slot->used = sl_resource_sum(slot->used, node->need);
    slot->is_touched = true;
}

static void
unlink_item(struct sl_packing_builder *self, int32_t item)
{
    struct sl_packing_item *node = &self->items.items[item];
    struct sl_packing_slot *slot = &self->slots.items[node->slot];
    if (node->prev >= 0) {
        self->items.items[node->prev].next = node->next;
    } else {
        slot->head = node->next;
    }
    if (node->next >= 0) {
        self->items.items[node->next].prev = node->prev;
    }
    slot->count--;
    slot->used = sl_resource_difference(slot->used, node->need);
    slot->is_touched = true;
    node->slot = -1;
}

static void
load_container(struct sl_packing_builder *self, int32_t origin)
{
    const struct sl_packing_container *container = &self->loaded->containers[origin];
    int32_t position = sl_packing_builder_open(self, container->id);
    for (int32_t i = 0; i < container->count; i++) {
        const struct sl_packing_instance *instance = &self->loaded->instances[container->first + i];
        struct sl_packing_item item = {
            .instance = *instance,
            .need = {sl_cpu_nano(instance->cpu), instance->ram_bytes, instance->disk_bytes},
        };
        sl_vec_push(&self->items, item);
        link_item(self, (int32_t)self->items.count - 1, position);
    }
    self->slots.items[position].origin = origin;
    self->slots.items[position].is_touched = false;
}

void
sl_packing_builder_load(struct sl_packing_builder *self, const struct sl_packing_plan *plan)
{
    sl_assert_eq(self->items.count, 0);
    self->loaded = plan;
    sl_vec_reserve(&self->items, (size_t)plan->instance_count);
    sl_vec_reserve(&self->slots, (size_t)plan->container_count);
    for (int32_t i = 0; i < plan->container_count; i++) {
        load_container(self, i);
    }
    self->live = plan->instance_count;
    self->maxima_are_stale = true;
}

/* The first position whose id is not below this one. */
static int32_t
position_for(const struct sl_packing_builder *self, int32_t id)
{
    int32_t low = 0;
    int32_t high = (int32_t)self->slots.count;
    if (high > 0 && self->slots.items[high - 1].id < id) {
        return high;
    }
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (self->slots.items[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int32_t
sl_packing_builder_find(const struct sl_packing_builder *self, int32_t id)
{
    int32_t position = position_for(self, id);
    bool is_there = position < (int32_t)self->slots.count && self->slots.items[position].id == id;
    return is_there ? position : -1;
}

int32_t
sl_packing_builder_next_id(const struct sl_packing_builder *self)
{
    size_t count = self->slots.count;
    return count == 0 ? 1 : self->slots.items[count - 1].id + 1;
}

int32_t
sl_packing_builder_open(struct sl_packing_builder *self, int32_t id)
{
    int32_t position = position_for(self, id);
    struct sl_packing_slot slot = {.id = id, .head = -1, .origin = -1, .is_touched = true};
    sl_vec_insert(&self->slots, (size_t)position, slot);
    /* Rare: packers open at the end, plans are mostly loaded in order. */
    for (int32_t p = position + 1; p < (int32_t)self->slots.count; p++) {
        for (int32_t i = self->slots.items[p].head; i >= 0; i = self->items.items[i].next) {
            self->items.items[i].slot = p;
        }
    }
    return position;
}

/* Finds the highest ids again after removals. */
static void
refresh_maxima(struct sl_packing_builder *self)
{
    self->max_task = 0;
    for (int32_t c = 0; c < self->component_count; c++) {
        self->max_index[c] = -1;
    }
    for (size_t i = 0; i < self->items.count; i++) {
        const struct sl_packing_item *item = &self->items.items[i];
        if (item->slot < 0) {
            continue;
        }
        int32_t *max_index = &self->max_index[item->instance.component];
        if (item->instance.task > self->max_task) {
            self->max_task = item->instance.task;
        }
        if (item->instance.index > *max_index) {
            *max_index = item->instance.index;
        }
    }
    self->maxima_are_stale = false;
}

int32_t
sl_packing_builder_put(struct sl_packing_builder *self, int32_t position, int32_t component)
{
    if (self->maxima_are_stale) {
        refresh_maxima(self);
    }
    const struct sl_packing_component *kind = &self->components[component];
    struct sl_resource need = sl_packing_need(kind);
    struct sl_packing_item item = {
        .instance =
            {
                .component = component,
                .task = ++self->max_task,
                .index = ++self->max_index[component],
                .cpu = kind->cpu < 0 ? 1.0 : kind->cpu,
                .ram_bytes = need.ram_bytes,
                .disk_bytes = need.disk_bytes,
            },
        .need = need,
    };
    sl_vec_push(&self->items, item);
    int32_t number = (int32_t)self->items.count - 1;
    link_item(self, number, position);
    self->live++;
    return number;
}

void
sl_packing_builder_drop(struct sl_packing_builder *self, int32_t item)
{
    unlink_item(self, item);
    self->live--;
    self->maxima_are_stale = true;
}

void
sl_packing_builder_move(struct sl_packing_builder *self, int32_t item, int32_t position)
{
    unlink_item(self, item);
    link_item(self, item, position);
}

void
sl_packing_builder_prune(struct sl_packing_builder *self)
{
    int32_t kept = 0;
    for (int32_t p = 0; p < (int32_t)self->slots.count; p++) {
        if (self->slots.items[p].count == 0) {
            continue;
        }
        self->slots.items[kept] = self->slots.items[p];
        for (int32_t i = self->slots.items[kept].head; i >= 0; i = self->items.items[i].next) {
            self->items.items[i].slot = kept;
        }
        kept++;
    }
    self->slots.count = (size_t)kept;
}

int
sl_packing_builder_add(struct sl_packing_builder *self, int32_t container_id, int32_t component)
{
    if (component < 0 || component >= self->component_count) {
        return sl_err_set(SL_EUNSATISFIABLE, "component number %d is unknown", component);
    }
    if (container_id < 1) {
        return sl_err_set(SL_EINVAL, "container %d: the id must be at least 1", container_id);
    }
    const char *name = self->components[component].name;
    struct sl_resource need = sl_packing_need(&self->components[component]);
    int rc = sl_packing_limits_check_least(&self->limits, name, need);
    if (rc != 0) {
        return rc;
    }
    int32_t position = sl_packing_builder_find(self, container_id);
    struct sl_resource used = {0, 0, 0};
    int32_t count = 0;
    if (position >= 0) {
        used = self->slots.items[position].used;
        count = self->slots.items[position].count;
    }
    char where[48];
    snprintf(where, sizeof(where), "into container %d", container_id);
    struct sl_resource room = sl_packing_room(&self->limits, used);
    int dimension = sl_packing_exceeded(need, room);
    if (dimension >= 0) {
        return sl_packing_refuse(name, where, dimension, sl_packing_amount(need, dimension),
                                 sl_packing_amount(room, dimension));
    }
    if (count >= self->limits.max_instances) {
        return sl_packing_refuse(name, where, SL_PACKING_DENSITY, 1,
                                 (int64_t)self->limits.max_instances - count);
    }
    if (position < 0) {
        position = sl_packing_builder_open(self, container_id);
    }
    sl_packing_builder_put(self, position, component);
    return 0;
}

int32_t
sl_packing_builder_highest(const struct sl_packing_builder *self, int32_t position,
                           int32_t component)
{
    int32_t highest = -1;
    for (int32_t i = self->slots.items[position].head; i >= 0; i = self->items.items[i].next) {
        const struct sl_packing_instance *instance = &self->items.items[i].instance;
        if (instance->component == component &&
            (highest < 0 || instance->index > self->items.items[highest].instance.index)) {
            highest = i;
        }
    }
    return highest;
}

int
sl_packing_builder_remove(struct sl_packing_builder *self, int32_t container_id, int32_t component)
{
    if (component < 0 || component >= self->component_count) {
        return sl_err_set(SL_EUNSATISFIABLE, "component number %d is unknown", component);
    }
    int32_t position = sl_packing_builder_find(self, container_id);
    if (position < 0) {
        return sl_err_set(SL_EUNSATISFIABLE, "there is no container %d", container_id);
    }
    int32_t item = sl_packing_builder_highest(self, position, component);
    if (item < 0) {
        return sl_err_set(SL_EUNSATISFIABLE, "component '%.64s' has no instance in container %d",
                          self->components[component].name, container_id);
    }
    sl_packing_builder_drop(self, item);
    return 0;
}

int32_t
sl_packing_builder_count(const struct sl_packing_builder *self, int32_t component)
{
    int32_t count = 0;
    for (size_t i = 0; i < self->items.count; i++) {
        const struct sl_packing_item *item = &self->items.items[i];
        count += item->slot >= 0 && item->instance.component == component;
    }
    return count;
}

/* Copies the resources of an unchanged container, or states those of a changed one. */
static void
state_resources(const struct sl_packing_builder *self, const struct sl_packing_slot *slot,
                struct sl_packing_container *container)
{
    if (slot->origin >= 0 && !slot->is_touched) {
        const struct sl_packing_container *origin = &self->loaded->containers[slot->origin];
        container->cpu = origin->cpu;
        container->ram_bytes = origin->ram_bytes;
        container->disk_bytes = origin->disk_bytes;
        return;
    }
    struct sl_resource sum = sl_resource_sum(slot->used, self->limits.padding);
    container->cpu = floor((double)sum.cpu_nano / (double)SL_CPU_NANO + 0.5);
    container->ram_bytes = sum.ram_bytes;
    container->disk_bytes = sum.disk_bytes;
}

int
sl_packing_builder_build(const struct sl_packing_builder *self, struct sl_packing_plan **plan)
{
    *plan = NULL;
    if (self->live == 0) {
        return sl_err_set(SL_EUNSATISFIABLE, "no instances are left to place; a plan needs one");
    }
    int32_t containers = 0;
    for (size_t p = 0; p < self->slots.count; p++) {
        containers += self->slots.items[p].count > 0;
    }
    struct sl_packing_plan *built = sl_packing_plan_new(containers, self->live, 0);
    int32_t at = 0;
    int32_t next = 0;
    for (size_t p = 0; p < self->slots.count; p++) {
        const struct sl_packing_slot *slot = &self->slots.items[p];
        if (slot->count == 0) {
            continue;
        }
        struct sl_packing_container *container = &built->containers[next++];
        container->id = slot->id;
        container->first = at;
        container->count = slot->count;
        state_resources(self, slot, container);
        /* The list has the latest in front; written from behind it mostly ascends already. */
        int32_t last = at + slot->count;
        for (int32_t i = slot->head; i >= 0; i = self->items.items[i].next) {
            built->instances[--last] = self->items.items[i].instance;
        }
        at += slot->count;
    }
    sl_packing_plan_sort(built);
    *plan = built;
    return 0;
}
