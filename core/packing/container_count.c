/*
 * Makes a plan have the number of containers that was asked for, after the packer's own rule.
 *
 * Too few: new containers are opened (highest id + 1), and the one with the fewest instances gets
 * the instance with the highest task of the container with the most, until each new one holds at
 * least one and no less than the average minus one. Too many: the container with the fewest
 * instances is emptied and its instances are placed by the packer's rule. Ties: lowest id gives and
 * takes, highest id is emptied.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "packing/packer.h"

int
sl_packing_container_count_refuse(const struct sl_packing_job *job, int64_t containers)
{
    int32_t first = job->order[0];
    if (containers < 1) {
        return sl_err_set(SL_EUNSATISFIABLE, "containers: need at least 1, asked for %" PRId64,
                          containers);
    }
    return sl_err_set(SL_EUNSATISFIABLE,
                      "containers: %" PRId64 " asked for, but component '%.64s' and the others "
                      "have only %d instances: need %" PRId64 " instances, room for %d containers",
                      containers, job->request->components[first].name, job->total, containers,
                      job->total);
}

/* A heap of container positions ordered by count and id; void entries are skipped when popped. */
struct ranking {
    const struct sl_packing_builder *builder;
    struct ranking_entry {
        int32_t count;
        int32_t position;
    } * entries;
    int32_t entry_count;
    int32_t capacity;
    /* True: most instances, then lowest id. False: fewest instances, then highest id. */
    bool is_most_first;
};

static bool
ranking_before(const struct ranking *self, const struct ranking_entry *a,
               const struct ranking_entry *b)
{
    if (a->count != b->count) {
        return (a->count > b->count) == self->is_most_first;
    }
    return (a->position < b->position) == self->is_most_first;
}

static void
ranking_push(struct ranking *self, int32_t position)
{
    if (self->entry_count == self->capacity) {
        self->capacity = self->capacity * 2 + 16;
        self->entries = sl_realloc(self->entries, (size_t)self->capacity * sizeof(*self->entries));
    }
    struct ranking_entry entry = {self->builder->slots.items[position].count, position};
    int32_t at = self->entry_count++;
    while (at > 0 && ranking_before(self, &entry, &self->entries[(at - 1) / 2])) {
        self->entries[at] = self->entries[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    self->entries[at] = entry;
}

static struct ranking_entry
ranking_take(struct ranking *self)
{
    struct ranking_entry top = self->entries[0];
    struct ranking_entry last = self->entries[--self->entry_count];
    int32_t at = 0;
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= self->entry_count) {
            break;
        }
        if (child + 1 < self->entry_count &&
            ranking_before(self, &self->entries[child + 1], &self->entries[child])) {
            child++;
        }
        if (!ranking_before(self, &self->entries[child], &last)) {
            break;
        }
        self->entries[at] = self->entries[child];
        at = child;
    }
    self->entries[at] = last;
    return top;
}

/* Takes the first container whose entry is still true, or -1. */
static int32_t
ranking_pop(struct ranking *self)
{
    while (self->entry_count > 0) {
        struct ranking_entry entry = ranking_take(self);
        if (self->builder->slots.items[entry.position].count == entry.count) {
            return entry.position;
        }
    }
    return -1;
}

/* The item with the highest task of a container. */
static int32_t
highest_task(const struct sl_packing_builder *builder, int32_t position)
{
    int32_t highest = builder->slots.items[position].head;
    for (int32_t i = highest; i >= 0; i = builder->items.items[i].next) {
        if (builder->items.items[i].instance.task > builder->items.items[highest].instance.task) {
            highest = i;
        }
    }
    return highest;
}

/* Items by container and descending task, so that a container gives them one after the other. */
struct given {
    int32_t position;
    int32_t task;
    int32_t item;
};

static int
compare_given(const void *left, const void *right)
{
    const struct given *a = left;
    const struct given *b = right;
    if (a->position != b->position) {
        return a->position < b->position ? -1 : 1;
    }
    return (a->task < b->task) - (a->task > b->task);
}

struct donors {
    struct given *given;
    /* For each old container, where its next item to give lies. */
    int32_t *next;
    int32_t old_count;
};

static void
donors_create(struct donors *self, const struct sl_packing_builder *builder)
{
    self->old_count = (int32_t)builder->slots.count;
    self->given = sl_alloc((size_t)builder->live * sizeof(*self->given));
    self->next = sl_calloc((size_t)self->old_count, sizeof(*self->next));
    int32_t count = 0;
    for (int32_t i = 0; i < (int32_t)builder->items.count; i++) {
        const struct sl_packing_item *item = &builder->items.items[i];
        if (item->slot >= 0) {
            self->given[count++] = (struct given){item->slot, item->instance.task, i};
        }
    }
    qsort(self->given, (size_t)count, sizeof(*self->given), compare_given);
    for (int32_t i = count - 1; i >= 0; i--) {
        self->next[self->given[i].position] = i;
    }
}

/* The item that the container gives next. An old container never takes one, so its list holds. */
static int32_t
donors_peek(const struct donors *self, const struct sl_packing_builder *builder, int32_t position)
{
    return position < self->old_count ? self->given[self->next[position]].item
                                      : highest_task(builder, position);
}

static void
donors_destroy(struct donors *self)
{
    sl_free(self->given);
    sl_free(self->next);
}

/* The new container takes the next item of the fullest one; false when it has no room for it. */
static bool
take_from_fullest(struct sl_packing_builder *builder, struct donors *donors,
                  struct ranking *fullest, int32_t taker)
{
    int32_t donor = ranking_pop(fullest);
    int32_t item = donors_peek(donors, builder, donor);
    struct sl_packing_slot *slot = &builder->slots.items[taker];
    struct sl_resource need = builder->items.items[item].need;
    struct sl_fit_node room = sl_fit_node_of(&builder->limits, slot->used, slot->count);
    if (donor == taker || !sl_fit_node_holds(&room, need)) {
        ranking_push(fullest, donor);
        return false;
    }
    if (donor < donors->old_count) {
        donors->next[donor]++;
    }
    sl_packing_builder_move(builder, item, taker);
    ranking_push(fullest, donor);
    ranking_push(fullest, taker);
    return true;
}

/* The refusal of an item that does not even fit into an empty container by the present limits. */
static int
refuse_opening(const struct sl_packing_job *job, const struct sl_packing_builder *builder,
               int32_t item)
{
    const struct sl_packing_item *placed = &builder->items.items[item];
    struct sl_resource room = sl_packing_room(&builder->limits, (struct sl_resource){0, 0, 0});
    int dimension = sl_packing_exceeded(placed->need, room);
    const char *name = job->request->components[placed->instance.component].name;
    if (dimension < 0) {
        return sl_packing_refuse(name, "into a new container", SL_PACKING_DENSITY, 1, 0);
    }
    return sl_packing_refuse(name, "into a new container", dimension,
                             sl_packing_amount(placed->need, dimension),
                             sl_packing_amount(room, dimension));
}

static int
open_containers(const struct sl_packing_job *job, struct sl_packing_builder *builder,
                int32_t containers)
{
    int rc = 0;
    struct donors donors;
    donors_create(&donors, builder);
    struct ranking fullest = {.builder = builder, .is_most_first = true};
    for (int32_t p = 0; p < donors.old_count; p++) {
        ranking_push(&fullest, p);
    }
    while ((int32_t)builder->slots.count < containers) {
        sl_packing_builder_open(builder, sl_packing_builder_next_id(builder));
    }

    /* In turn from the lowest id, the takers stay within one of each other: whose turn it is has
     * the fewest. One that is full leaves the turn. */
    int32_t taking = containers - donors.old_count;
    int32_t *takers = sl_alloc((size_t)taking * sizeof(*takers));
    for (int32_t i = 0; i < taking; i++) {
        takers[i] = donors.old_count + i;
    }
    while (taking > 0) {
        int32_t still = 0;
        for (int32_t i = 0; i < taking; i++) {
            int32_t count = builder->slots.items[takers[i]].count;
            if (count >= 1 && (int64_t)containers * (count + 1) >= builder->live) {
                continue;
            }
            bool is_taken = take_from_fullest(builder, &donors, &fullest, takers[i]);
            if (!is_taken && count == 0) {
                rc = refuse_opening(job, builder,
                                    donors_peek(&donors, builder, ranking_pop(&fullest)));
                goto out;
            }
            if (is_taken) {
                takers[still++] = takers[i];
            }
        }
        taking = still;
    }
out:
    sl_free(takers);
    sl_free(fullest.entries);
    donors_destroy(&donors);
    return rc;
}

/* Items of one container in the order in which the packer treats them: component, then task. */
struct ordered {
    int32_t rank;
    int32_t task;
    int32_t item;
};

static int
compare_ordered(const void *left, const void *right)
{
    const struct ordered *a = left;
    const struct ordered *b = right;
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    return (a->task > b->task) - (a->task < b->task);
}

struct emptying {
    const struct sl_packing_job *job;
    struct sl_packing_builder *builder;
    struct sl_fit_index index;
    struct ranking emptiest;
    /* Rank of each component in the packer's order. */
    int32_t *ranks;
    int32_t turn;
    int32_t containers;
};

/* The refusal: what does not fit, and the room that there is most of. */
static int
refuse_emptying(const struct emptying *self, int32_t item)
{
    const struct sl_packing_item *placed = &self->builder->items.items[item];
    const char *name = self->job->request->components[placed->instance.component].name;
    struct sl_fit_node most = sl_fit_index_most(&self->index);
    int dimension = sl_packing_exceeded(placed->need, most.room);
    char where[64];
    snprintf(where, sizeof(where), "into %d containers (each is full)", self->containers);
    if (dimension < 0) {
        /* Each dimension has room somewhere, never all in one container: name the scarcest. */
        dimension = most.instances < 1 ? SL_PACKING_DENSITY : SL_PACKING_CPU;
        int64_t left = INT64_MIN;
        for (int32_t p = 0; p < self->index.count && dimension != SL_PACKING_DENSITY; p++) {
            const struct sl_fit_node *leaf = &self->index.leaves[p];
            int exceeded = sl_packing_exceeded(placed->need, leaf->room);
            if (leaf->instances != INT64_MIN && exceeded >= 0 && leaf->room.ram_bytes > left) {
                left = leaf->room.ram_bytes;
                dimension = exceeded;
                most = *leaf;
            }
        }
    }
    if (dimension == SL_PACKING_DENSITY) {
        return sl_packing_refuse(name, where, dimension, 1, most.instances);
    }
    return sl_packing_refuse(name, where, dimension, sl_packing_amount(placed->need, dimension),
                             sl_packing_amount(most.room, dimension));
}

static int
place_again(struct emptying *self, int32_t item)
{
    struct sl_packing_builder *builder = self->builder;
    struct sl_resource need = builder->items.items[item].need;
    bool is_in_turn = self->job->packer == SL_PACKING_RESOURCE_COMPLIANT_RR;
    int32_t position = sl_fit_index_find_cyclic(&self->index, is_in_turn ? self->turn : 0, need);
    if (position < 0) {
        return refuse_emptying(self, item);
    }
    sl_packing_builder_move(builder, item, position);
    const struct sl_packing_slot *slot = &builder->slots.items[position];
    sl_fit_index_set(&self->index, position,
                     sl_fit_node_of(&builder->limits, slot->used, slot->count));
    ranking_push(&self->emptiest, position);
    self->turn = position + 1 == self->index.count ? 0 : position + 1;
    return 0;
}

static int
empty_one(struct emptying *self)
{
    struct sl_packing_builder *builder = self->builder;
    int32_t victim = ranking_pop(&self->emptiest);
    sl_fit_index_close(&self->index, victim);
    int32_t count = builder->slots.items[victim].count;
    struct ordered *ordered = sl_alloc((size_t)count * sizeof(*ordered));
    int32_t at = 0;
    int32_t i = builder->slots.items[victim].head;
    for (; i >= 0; i = builder->items.items[i].next) {
        const struct sl_packing_instance *instance = &builder->items.items[i].instance;
        ordered[at++] = (struct ordered){self->ranks[instance->component], instance->task, i};
    }
    qsort(ordered, (size_t)count, sizeof(*ordered), compare_ordered);
    int rc = 0;
    for (int32_t k = 0; k < count && rc == 0; k++) {
        rc = place_again(self, ordered[k].item);
    }
    sl_free(ordered);
    return rc;
}

static int
empty_containers(const struct sl_packing_job *job, struct sl_packing_builder *builder,
                 int32_t containers)
{
    struct emptying self = {
        .job = job,
        .builder = builder,
        .emptiest = {.builder = builder, .is_most_first = false},
        .ranks = sl_calloc((size_t)job->request->component_count, sizeof(int32_t)),
        .containers = containers,
    };
    for (int32_t i = 0; i < job->request->component_count; i++) {
        self.ranks[job->order[i]] = i;
    }
    sl_packing_index_builder(builder, &self.index);
    for (int32_t p = 0; p < (int32_t)builder->slots.count; p++) {
        ranking_push(&self.emptiest, p);
    }
    int rc = 0;
    int32_t surplus = (int32_t)builder->slots.count - containers;
    for (int32_t i = 0; i < surplus && rc == 0; i++) {
        rc = empty_one(&self);
    }
    sl_fit_index_destroy(&self.index);
    sl_free(self.emptiest.entries);
    sl_free(self.ranks);
    return rc;
}

int
sl_packing_container_count_hold(const struct sl_packing_job *job,
                                struct sl_packing_builder *builder, int32_t containers)
{
    if (containers < 1 || containers > builder->live) {
        return sl_packing_container_count_refuse(job, containers);
    }
    sl_packing_builder_prune(builder);
    int32_t there = (int32_t)builder->slots.count;
    if (there < containers) {
        return open_containers(job, builder, containers);
    }
    return there > containers ? empty_containers(job, builder, containers) : 0;
}
