/*
 * Round robin: components by configured RAM, descending; their instances go to containers 1..n in
 * turn. What the components leave open of a container's RAM and CPU is split evenly among its
 * instances without a value of their own. A repack packs from nothing again.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/err.h"
#include "packing/packer.h"

static const int64_t RAM_PADDING = 2 * SL_GIB;
static const int64_t DISK_PADDING = 12 * SL_GIB;
static const int64_t MIN_RAM = 16 * SL_MIB;

/* One dimension of one container while its room is divided. */
struct share {
    int dimension;
    /* Asked-for size of a container, or -1. */
    int64_t hint;
    /* What a container is taken to have when there is no hint. */
    int64_t otherwise;
    int64_t padding;
    /* Sum of the values that components state, and the instances without one. */
    int64_t used;
    int32_t open_count;
    /* A component that states a value, the one with the largest, and one that states none. */
    int32_t stating;
    int64_t largest;
    int32_t open;
    /* Results: what the instances without a value divide, and the size of the container. */
    int64_t divided;
    int64_t size;
    bool is_padding_dropped;
};

static int64_t
stated(const struct sl_packing_component *component, int dimension)
{
    if (dimension == SL_PACKING_RAM) {
        return component->ram_bytes;
    }
    return component->cpu < 0 ? -1 : sl_cpu_nano(component->cpu);
}

/* Sums up what the instances of a container state. */
static void
share_collect(struct share *share, const struct sl_packing_component *components,
              const struct sl_packing_instance *instances, int32_t count)
{
    share->used = 0;
    share->open_count = 0;
    share->stating = share->open = -1;
    share->largest = -1;
    for (int32_t i = 0; i < count; i++) {
        int32_t component = instances[i].component;
        int64_t value = stated(&components[component], share->dimension);
        if (value < 0) {
            share->open_count++;
            share->open = share->open < 0 ? component : share->open;
            continue;
        }
        share->used = sl_sum(share->used, value);
        if (value > share->largest) {
            share->largest = value;
            share->stating = component;
        }
    }
}

/* Any CPU will do for an instance that states none; a refusal names a thousandth of a core. */
static const int64_t CPU_NAMED = SL_CPU_NANO / 1000;

/* Divides the container's room by the rules of the dimension; 0 or a refusal. */
static int
share_divide(struct share *share, const struct sl_packing_component *components,
             int32_t container_id)
{
    char where[64];
    snprintf(where, sizeof(where), "into container %d with the others", container_id);
    int64_t padding = share->padding;
    share->is_padding_dropped = false;
    if (share->hint >= 0 && share->used > share->hint - padding) {
        if (share->used > share->hint) {
            return sl_packing_refuse(components[share->stating].name, where, share->dimension,
                                     share->largest, share->hint - (share->used - share->largest));
        }
        share->is_padding_dropped = true;
        padding = 0;
    }
    share->divided = 0;
    if (share->open_count > 0) {
        int64_t whole = share->hint >= 0 ? share->hint : share->otherwise;
        share->divided = sl_sum(sl_sum(whole, -padding), -share->used);
        if (share->divided <= 0) {
            int64_t least = share->dimension == SL_PACKING_RAM ? MIN_RAM : CPU_NAMED;
            return sl_packing_refuse(components[share->open].name, where, share->dimension,
                                     sl_product(least, share->open_count), share->divided);
        }
    }
    /* The sum before its parts are rounded down: bytes that can not be divided stay here. */
    share->size = sl_sum(sl_sum(share->used, share->divided), share->padding);
    if (share->hint >= 0 && share->size > share->hint) {
        share->size = share->hint;
    }
    return 0;
}

/* Gives the instances of a container their RAM, CPU and disk. */
static int
state_instances(const struct sl_packing_job *job, const struct share *cpu, const struct share *ram,
                struct sl_packing_instance *instances, int32_t count)
{
    const struct sl_packing_component *components = job->request->components;
    int64_t open_ram = ram->open_count > 0 ? ram->divided / ram->open_count : 0;
    double open_cpu =
        cpu->open_count > 0 ? (double)cpu->divided / (double)SL_CPU_NANO / cpu->open_count : 0;
    for (int32_t i = 0; i < count; i++) {
        const struct sl_packing_component *component = &components[instances[i].component];
        instances[i].cpu = component->cpu < 0 ? open_cpu : component->cpu;
        instances[i].ram_bytes = component->ram_bytes < 0 ? open_ram : component->ram_bytes;
        instances[i].disk_bytes =
            component->disk_bytes < 0 ? SL_PACKING_INSTANCE_BYTES : component->disk_bytes;
        if (instances[i].ram_bytes < MIN_RAM) {
            return sl_err_set(SL_EUNSATISFIABLE,
                              "component '%.64s' gets too little: ram: an instance needs at least "
                              "%" PRId64 " bytes, room %" PRId64,
                              component->name, MIN_RAM, instances[i].ram_bytes);
        }
    }
    return 0;
}

/* The disk of a container: as asked for, else for the largest container and its padding. */
static int
state_disk(const struct sl_packing_job *job, struct sl_packing_container *container,
           const struct sl_packing_instance *instances, int64_t largest)
{
    const struct sl_packing_component *components = job->request->components;
    int64_t hint = job->request->config.container_disk_bytes;
    int64_t used = 0;
    int64_t stated_used = 0;
    int32_t stating = -1;
    for (int32_t i = 0; i < container->count; i++) {
        const struct sl_packing_component *component = &components[instances[i].component];
        used = sl_sum(used, instances[i].disk_bytes);
        if (component->disk_bytes >= 0) {
            stated_used = sl_sum(stated_used, component->disk_bytes);
            stating = instances[i].component;
        }
    }
    if (hint < 0) {
        int64_t room = sl_product(SL_PACKING_INSTANCE_BYTES, largest);
        container->disk_bytes = sl_sum(used > room ? used : room, DISK_PADDING);
        return 0;
    }
    if (stated_used > hint) {
        char where[64];
        snprintf(where, sizeof(where), "into container %d with the others", container->id);
        int64_t own = components[stating].disk_bytes;
        return sl_packing_refuse(components[stating].name, where, SL_PACKING_DISK, own,
                                 hint - (stated_used - own));
    }
    container->disk_bytes = hint;
    return 0;
}

static int
state_container(const struct sl_packing_job *job, struct sl_packing_plan *plan, int32_t number,
                struct share *cpu, struct share *ram, int64_t largest)
{
    const struct sl_packing_component *components = job->request->components;
    const struct sl_packing_config *config = &job->request->config;
    struct sl_packing_container *container = &plan->containers[number];
    struct sl_packing_instance *instances = &plan->instances[container->first];
    share_collect(ram, components, instances, container->count);
    share_collect(cpu, components, instances, container->count);
    int rc = share_divide(ram, components, container->id);
    if (rc == 0) {
        rc = share_divide(cpu, components, container->id);
    }
    if (rc == 0) {
        rc = state_instances(job, cpu, ram, instances, container->count);
    }
    if (rc == 0) {
        rc = state_disk(job, container, instances, largest);
    }
    if (rc != 0) {
        return rc;
    }
    container->ram_bytes = ram->size;
    container->cpu = config->container_cpu >= 0 ? config->container_cpu
                                                : (double)cpu->size / (double)SL_CPU_NANO;
    const struct share *shares[] = {cpu, ram};
    for (int i = 0; i < 2; i++) {
        if (shares[i]->is_padding_dropped) {
            plan->warnings[plan->warning_count++] =
                (struct sl_packing_warning){container->id, shares[i]->dimension};
        }
    }
    return 0;
}

/* Deals the instances out. Container k gets those with numbers k, k + n, k + 2n and so on. */
static void
deal(const struct sl_packing_job *job, struct sl_packing_plan *plan)
{
    int32_t n = plan->container_count;
    int32_t first = 0;
    for (int32_t k = 0; k < n; k++) {
        int32_t count = job->total / n + (k < job->total % n);
        plan->containers[k] =
            (struct sl_packing_container){.id = k + 1, .first = first, .count = count};
        first += count;
    }
    int32_t number = 0;
    for (int32_t i = 0; i < job->request->component_count; i++) {
        int32_t component = job->order[i];
        for (int32_t index = 0; index < job->wanted[component]; index++, number++) {
            struct sl_packing_container *container = &plan->containers[number % n];
            plan->instances[container->first + number / n] = (struct sl_packing_instance){
                .component = component, .task = number + 1, .index = index};
        }
    }
}

int
sl_packing_round_robin(const struct sl_packing_job *job, int64_t containers,
                       struct sl_packing_plan **plan)
{
    const struct sl_packing_config *config = &job->request->config;
    if (job->total == 0) {
        return sl_err_set(SL_EUNSATISFIABLE, "no instances are left to place; a plan needs one");
    }
    if (containers < 1 || containers > job->total) {
        return sl_packing_container_count_refuse(job, containers);
    }
    struct sl_packing_plan *packed =
        sl_packing_plan_new((int32_t)containers, job->total, 2 * (int32_t)containers);
    packed->warning_count = 0;
    deal(job, packed);

    int64_t largest = packed->containers[0].count;
    int64_t cpu_padding = config->cpu_padding < 0 ? SL_CPU_NANO : sl_cpu_nano(config->cpu_padding);
    struct share ram = {
        .dimension = SL_PACKING_RAM,
        .hint = config->container_ram_bytes,
        .padding = config->ram_padding_bytes < 0 ? RAM_PADDING : config->ram_padding_bytes,
    };
    ram.otherwise = sl_sum(sl_product(SL_PACKING_INSTANCE_BYTES, largest), ram.padding);
    struct share cpu = {
        .dimension = SL_PACKING_CPU,
        .hint = config->container_cpu < 0 ? -1 : sl_cpu_nano(config->container_cpu),
        .padding = cpu_padding,
        .otherwise = (SL_PACKING_INSTANCE_CPU_NANO * largest + cpu_padding + SL_CPU_NANO / 2) /
                     SL_CPU_NANO * SL_CPU_NANO,
    };
    for (int32_t k = 0; k < packed->container_count; k++) {
        int rc = state_container(job, packed, k, &cpu, &ram, largest);
        if (rc != 0) {
            sl_packing_plan_free(packed);
            return rc;
        }
    }
    *plan = packed;
    return 0;
}

int
sl_packing_round_robin_containers(const struct sl_packing_job *job, int64_t *containers)
{
    const struct sl_packing_request *request = job->request;
    int64_t submitted = request->config.containers == SL_PACKING_UNSET
                            ? SL_PACKING_DEFAULT_CONTAINERS
                            : request->config.containers;
    if (request->containers != SL_PACKING_UNSET) {
        *containers = request->containers;
        return 0;
    }
    *containers = submitted;
    if (request->current == NULL) {
        return 0;
    }
    /* As many instances a container as there were at submission, rounded up. */
    int64_t instances = 0;
    for (int32_t c = 0; c < request->component_count; c++) {
        instances += request->components[c].parallelism;
        if (job->up[c] + job->down[c] > 0 && job->wanted[c] - job->up[c] + job->down[c] == 0) {
            return sl_err_set(SL_EUNSATISFIABLE,
                              "component '%.64s' can not be scaled: instances: the current plan "
                              "has none, need %d",
                              request->components[c].name, job->wanted[c]);
        }
    }
    if (submitted >= 1) {
        *containers = (job->total * submitted + instances - 1) / instances;
    }
    return 0;
}
