/* How one plan becomes another, by container and by instance. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "packing/packing.h"

/* An instance of either plan with the container it runs in. */
struct placed {
    const struct sl_packing_instance *instance;
    int32_t container;
};

static int
compare_keys(const struct sl_packing_instance *a, const struct sl_packing_instance *b)
{
    if (a->task != b->task) {
        return a->task < b->task ? -1 : 1;
    }
    return (a->component > b->component) - (a->component < b->component);
}

static int
compare_placed(const void *left, const void *right)
{
    const struct placed *a = left;
    const struct placed *b = right;
    return compare_keys(a->instance, b->instance);
}

/* All instances of a plan, by task. */
static struct placed *
placed_new(const struct sl_packing_plan *plan)
{
    struct placed *placed = sl_alloc((size_t)plan->instance_count * sizeof(*placed));
    int32_t at = 0;
    for (int32_t k = 0; k < plan->container_count; k++) {
        const struct sl_packing_container *container = &plan->containers[k];
        for (int32_t i = 0; i < container->count; i++) {
            placed[at++] = (struct placed){&plan->instances[container->first + i], container->id};
        }
    }
    qsort(placed, (size_t)at, sizeof(*placed), compare_placed);
    return placed;
}

static void
push_instance(struct sl_packing_delta *delta, const struct placed *before,
              const struct placed *after)
{
    const struct sl_packing_instance *instance =
        before != NULL ? before->instance : after->instance;
    struct sl_packing_instance_delta *entry = &delta->instances[delta->instance_count++];
    entry->component = instance->component;
    entry->task = instance->task;
    entry->old_container = before != NULL ? before->container : -1;
    entry->new_container = after != NULL ? after->container : -1;
    if (before == NULL) {
        entry->state = SL_PACKING_STARTED;
        delta->started++;
    } else if (after == NULL) {
        entry->state = SL_PACKING_STOPPED;
        delta->stopped++;
    } else if (before->container != after->container) {
        entry->state = SL_PACKING_MOVED;
        delta->moved++;
    } else {
        entry->state = SL_PACKING_KEPT;
        delta->kept++;
    }
}

static void
compare_instances(const struct sl_packing_plan *old_plan, const struct sl_packing_plan *new_plan,
                  struct sl_packing_delta *delta)
{
    struct placed *before = placed_new(old_plan);
    struct placed *after = placed_new(new_plan);
    int32_t i = 0;
    int32_t j = 0;
    while (i < old_plan->instance_count || j < new_plan->instance_count) {
        int order;
        if (i == old_plan->instance_count) {
            order = 1;
        } else if (j == new_plan->instance_count) {
            order = -1;
        } else {
            order = compare_keys(before[i].instance, after[j].instance);
        }
        push_instance(delta, order <= 0 ? &before[i] : NULL, order >= 0 ? &after[j] : NULL);
        i += order <= 0;
        j += order >= 0;
    }
    sl_free(before);
    sl_free(after);
}

/* A container with its position in its plan. */
struct numbered {
    int32_t id;
    int32_t position;
};

static int
compare_numbered(const void *left, const void *right)
{
    const struct numbered *a = left;
    const struct numbered *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

static struct numbered *
numbered_new(const struct sl_packing_plan *plan)
{
    struct numbered *numbered = sl_alloc((size_t)plan->container_count * sizeof(*numbered));
    for (int32_t k = 0; k < plan->container_count; k++) {
        numbered[k] = (struct numbered){plan->containers[k].id, k};
    }
    qsort(numbered, (size_t)plan->container_count, sizeof(*numbered), compare_numbered);
    return numbered;
}

static bool
instances_are_equal(const struct sl_packing_instance *a, const struct sl_packing_instance *b)
{
    return a->component == b->component && a->task == b->task && a->index == b->index &&
           a->cpu == b->cpu && a->ram_bytes == b->ram_bytes && a->disk_bytes == b->disk_bytes;
}

static const struct sl_packing_instance **
sorted_instances_new(const struct sl_packing_plan *plan,
                     const struct sl_packing_container *container);

/* Equal resources and the same instances, whatever the order they are listed in. */
static bool
containers_are_equal(const struct sl_packing_plan *old_plan, int32_t old_position,
                     const struct sl_packing_plan *new_plan, int32_t new_position)
{
    const struct sl_packing_container *a = &old_plan->containers[old_position];
    const struct sl_packing_container *b = &new_plan->containers[new_position];
    if (a->count != b->count || a->cpu != b->cpu || a->ram_bytes != b->ram_bytes ||
        a->disk_bytes != b->disk_bytes) {
        return false;
    }
    const struct sl_packing_instance **before = sorted_instances_new(old_plan, a);
    const struct sl_packing_instance **after = sorted_instances_new(new_plan, b);
    bool is_equal = true;
    for (int32_t i = 0; i < a->count && is_equal; i++) {
        is_equal = instances_are_equal(before[i], after[i]);
    }
    sl_free(before);
    sl_free(after);
    return is_equal;
}

static int
compare_pointers(const void *left, const void *right)
{
    const struct sl_packing_instance *const *a = left;
    const struct sl_packing_instance *const *b = right;
    return compare_keys(*a, *b);
}

static const struct sl_packing_instance **
sorted_instances_new(const struct sl_packing_plan *plan,
                     const struct sl_packing_container *container)
{
    const struct sl_packing_instance **sorted =
        sl_alloc((size_t)container->count * sizeof(*sorted));
    bool is_sorted = true;
    for (int32_t i = 0; i < container->count; i++) {
        sorted[i] = &plan->instances[container->first + i];
        is_sorted = is_sorted && (i == 0 || compare_keys(sorted[i - 1], sorted[i]) <= 0);
    }
    if (!is_sorted) {
        qsort(sorted, (size_t)container->count, sizeof(*sorted), compare_pointers);
    }
    return sorted;
}

static void
push_container(struct sl_packing_delta *delta, const struct sl_packing_plan *old_plan,
               const struct numbered *before, const struct sl_packing_plan *new_plan,
               const struct numbered *after)
{
    struct sl_packing_container_delta *entry = &delta->containers[delta->container_count++];
    entry->id = before != NULL ? before->id : after->id;
    entry->old_position = before != NULL ? before->position : -1;
    entry->new_position = after != NULL ? after->position : -1;
    if (before == NULL) {
        entry->state = SL_PACKING_NEW;
    } else if (after == NULL) {
        entry->state = SL_PACKING_REMOVED;
    } else if (containers_are_equal(old_plan, before->position, new_plan, after->position)) {
        entry->state = SL_PACKING_UNAFFECTED;
    } else {
        entry->state = SL_PACKING_MODIFIED;
    }
}

static void
compare_containers(const struct sl_packing_plan *old_plan, const struct sl_packing_plan *new_plan,
                   struct sl_packing_delta *delta)
{
    struct numbered *before = numbered_new(old_plan);
    struct numbered *after = numbered_new(new_plan);
    int32_t i = 0;
    int32_t j = 0;
    while (i < old_plan->container_count || j < new_plan->container_count) {
        bool is_old = j == new_plan->container_count ||
                      (i < old_plan->container_count && before[i].id <= after[j].id);
        bool is_new = i == old_plan->container_count ||
                      (j < new_plan->container_count && after[j].id <= before[i].id);
        push_container(delta, old_plan, is_old ? &before[i] : NULL, new_plan,
                       is_new ? &after[j] : NULL);
        i += is_old;
        j += is_new;
    }
    sl_free(before);
    sl_free(after);
}

int
sl_packing_delta_new(const struct sl_packing_plan *old_plan, const struct sl_packing_plan *new_plan,
                     int32_t component_count, struct sl_packing_delta **delta)
{
    *delta = NULL;
    int rc = sl_packing_plan_check(old_plan, component_count);
    if (rc != 0) {
        return sl_err_wrap("the old plan");
    }
    rc = sl_packing_plan_check(new_plan, component_count);
    if (rc != 0) {
        return sl_err_wrap("the new plan");
    }
    struct sl_packing_delta *made = sl_calloc(1, sizeof(*made));
    made->containers =
        sl_calloc((size_t)old_plan->container_count + (size_t)new_plan->container_count,
                  sizeof(*made->containers));
    made->instances = sl_calloc((size_t)old_plan->instance_count + (size_t)new_plan->instance_count,
                                sizeof(*made->instances));
    compare_containers(old_plan, new_plan, made);
    compare_instances(old_plan, new_plan, made);
    *delta = made;
    return 0;
}

void
sl_packing_delta_free(struct sl_packing_delta *delta)
{
    if (delta == NULL) {
        return;
    }
    sl_free(delta->containers);
    sl_free(delta->instances);
    sl_free(delta);
}
