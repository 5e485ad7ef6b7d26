/* Plans as values: making, checking and ordering them. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "packing/packing.h"

struct sl_packing_plan *
sl_packing_plan_new(int32_t container_count, int32_t instance_count, int32_t warning_count)
{
    struct sl_packing_plan *plan = sl_calloc(1, sizeof(*plan));
    plan->containers = sl_calloc((size_t)container_count, sizeof(*plan->containers));
    plan->instances = sl_calloc((size_t)instance_count, sizeof(*plan->instances));
    plan->warnings = sl_calloc((size_t)warning_count, sizeof(*plan->warnings));
    plan->container_count = container_count;
    plan->instance_count = instance_count;
    plan->warning_count = warning_count;
    return plan;
}

void
sl_packing_plan_free(struct sl_packing_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    sl_free(plan->containers);
    sl_free(plan->instances);
    sl_free(plan->warnings);
    sl_free(plan);
}

static bool
resources_are_sound(double cpu, int64_t ram_bytes, int64_t disk_bytes)
{
    return isfinite(cpu) && cpu >= 0 && cpu <= SL_PACKING_CPU_MAX && ram_bytes >= 0 &&
           disk_bytes >= 0;
}

static int
compare_u64(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Bits that find values which stand twice when the values are dense enough for it. */
enum { BITS_PER_VALUE = 64 };

/*
 * Returns the position of a value that stands twice, or -1. The values are below `bound` and may be
 * put into another order. Dense values take one pass over a bit set, sparse ones are sorted.
 */
static int32_t
find_twin(uint64_t *values, int32_t count, uint64_t bound)
{
    if (bound > (uint64_t)count * BITS_PER_VALUE) {
        qsort(values, (size_t)count, sizeof(*values), compare_u64);
        for (int32_t i = 1; i < count; i++) {
            if (values[i] == values[i - 1]) {
                return i;
            }
        }
        return -1;
    }
    int32_t twin = -1;
    uint64_t *seen = sl_calloc((size_t)(bound / 64 + 1), sizeof(*seen));
    for (int32_t i = 0; i < count && twin < 0; i++) {
        uint64_t bit = UINT64_C(1) << (values[i] % 64);
        if (seen[values[i] / 64] & bit) {
            twin = i;
        }
        seen[values[i] / 64] |= bit;
    }
    sl_free(seen);
    return twin;
}

static int
check_containers(const struct sl_packing_plan *plan)
{
    int32_t count = plan->container_count;
    for (int32_t i = 0; i < count; i++) {
        const struct sl_packing_container *container = &plan->containers[i];
        if (container->id < 1 || container->id > SL_PACKING_ID_MAX) {
            return sl_err_set(SL_EINVAL, "container %d: the id must be in 1..%d", container->id,
                              SL_PACKING_ID_MAX);
        }
        if (container->count < 1 || container->first < 0 ||
            container->first > plan->instance_count - container->count) {
            return sl_err_set(SL_EINVAL, "container %d: no instances", container->id);
        }
        if (!resources_are_sound(container->cpu, container->ram_bytes, container->disk_bytes)) {
            return sl_err_set(SL_EINVAL, "container %d: resources out of range", container->id);
        }
    }
    uint64_t *values = sl_alloc((size_t)count * sizeof(*values));
    uint64_t bound = 0;
    for (int32_t i = 0; i < count; i++) {
        values[i] = (uint64_t)plan->containers[i].id;
        bound = values[i] >= bound ? values[i] + 1 : bound;
    }
    int rc = 0;
    int32_t twin = find_twin(values, count, bound);
    if (twin >= 0) {
        rc = sl_err_set(SL_EINVAL, "container %d: the id is used twice", (int)values[twin]);
    }
    sl_free(values);
    return rc;
}

/* Every instance belongs to exactly one container: the ranges, sorted, follow one another. */
static int
check_ranges(const struct sl_packing_plan *plan)
{
    int rc = 0;
    uint64_t *ranges = sl_alloc((size_t)plan->container_count * sizeof(*ranges));
    for (int32_t i = 0; i < plan->container_count; i++) {
        ranges[i] = (uint64_t)plan->containers[i].first << 32 | (uint32_t)plan->containers[i].count;
    }
    qsort(ranges, (size_t)plan->container_count, sizeof(*ranges), compare_u64);
    int64_t next = 0;
    for (int32_t i = 0; i < plan->container_count; i++) {
        if ((int64_t)(ranges[i] >> 32) != next) {
            rc = sl_err_set(SL_EINVAL, "the containers share instances or leave some out");
            goto out;
        }
        next += (int64_t)(uint32_t)ranges[i];
    }
    if (next != plan->instance_count) {
        rc = sl_err_set(SL_EINVAL, "the containers leave instances out");
    }
out:
    sl_free(ranges);
    return rc;
}

static int
check_instance(const struct sl_packing_instance *instance, int32_t component_count)
{
    if (instance->component < 0 || instance->component >= component_count) {
        return sl_err_set(SL_EINVAL, "task %d: unknown component", instance->task);
    }
    if (instance->task < 1 || instance->task > SL_PACKING_ID_MAX) {
        return sl_err_set(SL_EINVAL, "task %d: the task must be in 1..%d", instance->task,
                          SL_PACKING_ID_MAX);
    }
    if (instance->index < 0 || instance->index > SL_PACKING_ID_MAX) {
        return sl_err_set(SL_EINVAL, "task %d: the index %d must be in 0..%d", instance->task,
                          instance->index, SL_PACKING_ID_MAX);
    }
    if (!resources_are_sound(instance->cpu, instance->ram_bytes, instance->disk_bytes)) {
        return sl_err_set(SL_EINVAL, "task %d: resources out of range", instance->task);
    }
    return 0;
}

static int
check_tasks(const struct sl_packing_plan *plan)
{
    int32_t count = plan->instance_count;
    uint64_t *tasks = sl_alloc((size_t)count * sizeof(*tasks));
    uint64_t bound = 0;
    for (int32_t i = 0; i < count; i++) {
        tasks[i] = (uint64_t)plan->instances[i].task;
        bound = tasks[i] >= bound ? tasks[i] + 1 : bound;
    }
    int rc = 0;
    int32_t twin = find_twin(tasks, count, bound);
    if (twin >= 0) {
        rc = sl_err_set(SL_EINVAL, "task %d is there twice", (int)tasks[twin]);
    }
    sl_free(tasks);
    return rc;
}

/* The indexes of component c are counted from the sum of the highest ones of the components before
 * it, which keeps them apart and dense. */
static int
check_indexes(const struct sl_packing_plan *plan, int32_t component_count)
{
    int32_t count = plan->instance_count;
    uint64_t *starts = sl_calloc((size_t)component_count + 1, sizeof(*starts));
    uint64_t *indexes = sl_alloc((size_t)count * sizeof(*indexes));
    for (int32_t i = 0; i < count; i++) {
        const struct sl_packing_instance *instance = &plan->instances[i];
        uint64_t *size = &starts[instance->component + 1];
        uint64_t wanted = (uint64_t)instance->index + 1;
        *size = wanted > *size ? wanted : *size;
    }
    for (int32_t c = 0; c < component_count; c++) {
        starts[c + 1] += starts[c];
    }
    for (int32_t i = 0; i < count; i++) {
        const struct sl_packing_instance *instance = &plan->instances[i];
        indexes[i] = starts[instance->component] + (uint64_t)instance->index;
    }
    int rc = 0;
    int32_t twin = find_twin(indexes, count, starts[component_count]);
    if (twin >= 0) {
        int32_t c = 0;
        while (indexes[twin] >= starts[c + 1]) {
            c++;
        }
        rc = sl_err_set(SL_EINVAL, "component number %d: index %d is there twice", c,
                        (int)(indexes[twin] - starts[c]));
    }
    sl_free(starts);
    sl_free(indexes);
    return rc;
}

static int
check_instances(const struct sl_packing_plan *plan, int32_t component_count)
{
    int32_t count = plan->instance_count;
    for (int32_t i = 0; i < count; i++) {
        int rc = check_instance(&plan->instances[i], component_count);
        if (rc != 0) {
            return rc;
        }
    }
    int rc = check_tasks(plan);
    if (rc == 0) {
        rc = check_indexes(plan, component_count);
    }
    return rc;
}

int
sl_packing_plan_check(const struct sl_packing_plan *plan, int32_t component_count)
{
    if (plan->container_count < 1 || plan->instance_count < 1 || plan->containers == NULL ||
        plan->instances == NULL) {
        return sl_err_set(SL_EINVAL, "the plan has no containers");
    }
    if (plan->instance_count > SL_PACKING_INSTANCES_MAX) {
        return sl_err_set(SL_ELIMIT, "the plan has %d instances, the limit is %d",
                          plan->instance_count, SL_PACKING_INSTANCES_MAX);
    }
    int rc = check_containers(plan);
    if (rc == 0) {
        rc = check_ranges(plan);
    }
    if (rc == 0) {
        rc = check_instances(plan, component_count);
    }
    return rc;
}

static int
compare_containers(const void *left, const void *right)
{
    const struct sl_packing_container *a = left;
    const struct sl_packing_container *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

static int
compare_instances(const void *left, const void *right)
{
    const struct sl_packing_instance *a = left;
    const struct sl_packing_instance *b = right;
    return (a->task > b->task) - (a->task < b->task);
}

static bool
instances_ascend(const struct sl_packing_instance *instances, int32_t count)
{
    for (int32_t i = 1; i < count; i++) {
        if (instances[i].task < instances[i - 1].task) {
            return false;
        }
    }
    return true;
}

void
sl_packing_plan_sort(struct sl_packing_plan *plan)
{
    qsort(plan->containers, (size_t)plan->container_count, sizeof(*plan->containers),
          compare_containers);
    for (int32_t i = 0; i < plan->container_count; i++) {
        struct sl_packing_container *container = &plan->containers[i];
        struct sl_packing_instance *instances = &plan->instances[container->first];
        if (!instances_ascend(instances, container->count)) {
            qsort(instances, (size_t)container->count, sizeof(*instances), compare_instances);
        }
    }
}
