#include "packing/limits.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/err.h"

/* Least RAM of an instance, and least CPU for first fit decreasing: 192 MiB and a tenth of a core.
 */
static const int64_t MIN_RAM_BYTES = 192 * SL_MIB;
static const int64_t MIN_CPU_NANO = SL_CPU_NANO / 10;

static const double DEFAULT_PADDING_PERCENTAGE = 10.0;

static int64_t
setting(int64_t value, int64_t otherwise)
{
    return value < 0 ? otherwise : value;
}

static int64_t
cpu_setting(double cores, int64_t otherwise)
{
    return cores < 0 ? otherwise : sl_cpu_nano(cores);
}

static int64_t
greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

struct sl_packing_limits
sl_packing_limits_of(const struct sl_packing_config *config, int packer)
{
    bool is_ffd = packer == SL_PACKING_FIRST_FIT_DECREASING;
    int32_t max = (int32_t)setting(config->max_instances, SL_PACKING_DEFAULT_MAX_INSTANCES);
    double percentage =
        config->padding_percentage < 0 ? DEFAULT_PADDING_PERCENTAGE : config->padding_percentage;
    struct sl_packing_limits limits = {
        .capacity =
            {
                .cpu_nano = cpu_setting(config->container_cpu, max * SL_PACKING_INSTANCE_CPU_NANO),
                .ram_bytes = setting(config->container_ram_bytes, max * SL_PACKING_INSTANCE_BYTES),
                .disk_bytes =
                    setting(config->container_disk_bytes, max * SL_PACKING_INSTANCE_BYTES),
            },
        .max_instances = is_ffd ? max : INT32_MAX,
        .min_ram_bytes = MIN_RAM_BYTES,
        .min_cpu_nano = is_ffd ? MIN_CPU_NANO : 0,
    };
    struct sl_resource *capacity = &limits.capacity;
    limits.padding = (struct sl_resource){
        .cpu_nano = greater(cpu_setting(config->cpu_padding, SL_CPU_NANO),
                            sl_percentage_of_bytes(capacity->cpu_nano, percentage)),
        .ram_bytes = greater(setting(config->ram_padding_bytes, SL_GIB),
                             sl_percentage_of_bytes(capacity->ram_bytes, percentage)),
        .disk_bytes = greater(SL_GIB, sl_percentage_of_bytes(capacity->disk_bytes, percentage)),
    };
    return limits;
}

struct sl_resource
sl_packing_need(const struct sl_packing_component *component)
{
    return (struct sl_resource){
        .cpu_nano = cpu_setting(component->cpu, SL_PACKING_INSTANCE_CPU_NANO),
        .ram_bytes = setting(component->ram_bytes, SL_PACKING_INSTANCE_BYTES),
        .disk_bytes = setting(component->disk_bytes, SL_PACKING_INSTANCE_BYTES),
    };
}

struct sl_resource
sl_packing_room(const struct sl_packing_limits *limits, struct sl_resource used)
{
    return sl_resource_difference(sl_resource_difference(limits->capacity, limits->padding), used);
}

int64_t
sl_packing_amount(struct sl_resource resource, int dimension)
{
    switch (dimension) {
    case SL_PACKING_CPU:
        return resource.cpu_nano;
    case SL_PACKING_RAM:
        return resource.ram_bytes;
    default:
        return resource.disk_bytes;
    }
}

int
sl_packing_exceeded(struct sl_resource need, struct sl_resource room)
{
    for (int dimension = SL_PACKING_CPU; dimension <= SL_PACKING_DISK; dimension++) {
        if (sl_packing_amount(need, dimension) > sl_packing_amount(room, dimension)) {
            return dimension;
        }
    }
    return -1;
}

int
sl_packing_refuse(const char *component, const char *where, int dimension, int64_t need,
                  int64_t room)
{
    /* Padding that is more than the container leaves nothing, not less. */
    room = greater(room, 0);
    if (dimension == SL_PACKING_CPU) {
        return sl_err_set(SL_EUNSATISFIABLE,
                          "component '%.64s' does not fit %s: cpu: need %.10g cores, room %.10g",
                          component, where, (double)need / (double)SL_CPU_NANO,
                          (double)room / (double)SL_CPU_NANO);
    }
    if (dimension == SL_PACKING_DENSITY) {
        return sl_err_set(SL_EUNSATISFIABLE,
                          "component '%.64s' does not fit %s: instances: need %" PRId64
                          ", room %" PRId64,
                          component, where, need, room);
    }
    return sl_err_set(SL_EUNSATISFIABLE,
                      "component '%.64s' does not fit %s: %s: need %" PRId64
                      " bytes, room %" PRId64,
                      component, where, dimension == SL_PACKING_RAM ? "ram" : "disk", need, room);
}

int
sl_packing_limits_check_least(const struct sl_packing_limits *limits, const char *component,
                              struct sl_resource need)
{
    if (need.ram_bytes < limits->min_ram_bytes) {
        return sl_err_set(SL_EUNSATISFIABLE,
                          "component '%.64s' asks for too little: ram: an instance needs at least "
                          "%" PRId64 " bytes, room given %" PRId64,
                          component, limits->min_ram_bytes, need.ram_bytes);
    }
    if (need.cpu_nano < limits->min_cpu_nano) {
        return sl_err_set(SL_EUNSATISFIABLE,
                          "component '%.64s' asks for too little: cpu: an instance needs at least "
                          "%.10g cores, room given %.10g",
                          component, (double)limits->min_cpu_nano / (double)SL_CPU_NANO,
                          (double)need.cpu_nano / (double)SL_CPU_NANO);
    }
    return 0;
}

int
sl_packing_limits_check_empty(const struct sl_packing_limits *limits, const char *component,
                              struct sl_resource need)
{
    int rc = sl_packing_limits_check_least(limits, component, need);
    if (rc != 0) {
        return rc;
    }
    struct sl_resource room = sl_packing_room(limits, (struct sl_resource){0, 0, 0});
    int dimension = sl_packing_exceeded(need, room);
    if (dimension >= 0) {
        return sl_packing_refuse(component, "into an empty container", dimension,
                                 sl_packing_amount(need, dimension),
                                 sl_packing_amount(room, dimension));
    }
    if (limits->max_instances < 1) {
        return sl_packing_refuse(component, "into an empty container", SL_PACKING_DENSITY, 1,
                                 limits->max_instances);
    }
    return 0;
}
