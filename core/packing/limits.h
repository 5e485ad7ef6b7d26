#pragma once
/*
 * What a container can hold: its capacity, the padding that stays free in it, and the constraints
 * on an added instance.
 */

#include <stdbool.h>
#include <stdint.h>

#include "packing/packing.h"
#include "packing/resource.h"

/* The default instance: 1 core, 1 GiB of RAM, 1 GiB of disk. */
#define SL_PACKING_INSTANCE_CPU_NANO SL_CPU_NANO
#define SL_PACKING_INSTANCE_BYTES SL_GIB

enum {
    SL_PACKING_DEFAULT_MAX_INSTANCES = 10,
    SL_PACKING_DEFAULT_CONTAINERS = 1,
};

struct sl_packing_limits {
    struct sl_resource capacity;
    struct sl_resource padding;
    /* Most instances of a container; INT32_MAX when the packer has no such rule. */
    int32_t max_instances;
    /* Least an added instance must ask for. */
    int64_t min_ram_bytes;
    int64_t min_cpu_nano;
};

/* Capacity and padding of first fit decreasing and resource compliant round robin. */
struct sl_packing_limits sl_packing_limits_of(const struct sl_packing_config *config, int packer);

/* What one instance of the component needs, defaults filled in. */
struct sl_resource sl_packing_need(const struct sl_packing_component *component);

/* What is left of the capacity of a container that uses `used`, below zero when it is overfull. */
struct sl_resource sl_packing_room(const struct sl_packing_limits *limits, struct sl_resource used);

/*
 * Refusals: each sets SL_EUNSATISFIABLE with component, resource, need and room and returns it.
 * `where` completes "component 'x' does not fit ...", like "into an empty container".
 */
int sl_packing_refuse(const char *component, const char *where, int dimension, int64_t need,
                      int64_t room);

/* Checks the least RAM and CPU of an instance; 0 or the refusal. */
int sl_packing_limits_check_least(const struct sl_packing_limits *limits, const char *component,
                                  struct sl_resource need);

/* The least, and that one instance fits into an empty container; 0 or the refusal. */
int sl_packing_limits_check_empty(const struct sl_packing_limits *limits, const char *component,
                                  struct sl_resource need);

/* The first dimension in which need exceeds room, or -1. */
int sl_packing_exceeded(struct sl_resource need, struct sl_resource room);

/* The amount of a dimension. */
int64_t sl_packing_amount(struct sl_resource resource, int dimension);
