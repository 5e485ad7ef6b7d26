/* Checks a request and hands it to its packer. */
#include "packing/packing.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "packing/packer.h"
#include "packing/removal.h"

const char *
sl_packing_packer_name(int packer)
{
    switch (packer) {
    case SL_PACKING_ROUND_ROBIN:
        return "round_robin";
    case SL_PACKING_FIRST_FIT_DECREASING:
        return "first_fit_decreasing";
    case SL_PACKING_RESOURCE_COMPLIANT_RR:
        return "resource_compliant_rr";
    default:
        return NULL;
    }
}

void
sl_packing_changes_split(const int32_t *changes, int32_t count, int32_t *up, int32_t *down)
{
    for (int32_t c = 0; c < count; c++) {
        up[c] = changes[c] > 0 ? changes[c] : 0;
        down[c] = changes[c] < 0 ? -changes[c] : 0;
    }
}

static bool
cpu_is_sound(double cores)
{
    return isfinite(cores) && cores <= SL_PACKING_CPU_MAX;
}

static bool
bytes_are_sound(int64_t bytes)
{
    return bytes <= INT64_C(1) << 53;
}

static int
check_component(const struct sl_packing_component *component)
{
    if (component->name == NULL) {
        return sl_err_set(SL_EINVAL, "a component has no name");
    }
    if (component->parallelism < 1) {
        return sl_err_set(SL_EUNSATISFIABLE,
                          "component '%.64s': instances: need at least 1, room given %d",
                          component->name, component->parallelism);
    }
    if (!cpu_is_sound(component->cpu) || !bytes_are_sound(component->ram_bytes) ||
        !bytes_are_sound(component->disk_bytes)) {
        return sl_err_set(SL_ERANGE, "component '%.64s': resources out of range", component->name);
    }
    return 0;
}

static int
check_config(const struct sl_packing_config *config)
{
    if (!cpu_is_sound(config->container_cpu) || !cpu_is_sound(config->cpu_padding) ||
        !isfinite(config->padding_percentage) || !bytes_are_sound(config->container_ram_bytes) ||
        !bytes_are_sound(config->container_disk_bytes) ||
        !bytes_are_sound(config->ram_padding_bytes)) {
        return sl_err_set(SL_ERANGE, "a setting of the containers is out of range");
    }
    if (config->max_instances == 0) {
        return sl_err_set(SL_EUNSATISFIABLE,
                          "container_max_instances: need at least 1, room given 0");
    }
    return 0;
}

static int
check_request(int packer, const struct sl_packing_request *request)
{
    if (sl_packing_packer_name(packer) == NULL) {
        return sl_err_set(SL_EINVAL, "unknown packer number %d", packer);
    }
    if (request->component_count < 1 || request->components == NULL) {
        return sl_err_set(SL_EINVAL, "the request has no components");
    }
    for (int32_t c = 0; c < request->component_count; c++) {
        int rc = check_component(&request->components[c]);
        if (rc != 0) {
            return rc;
        }
    }
    int rc = check_config(&request->config);
    if (rc != 0) {
        return rc;
    }
    if (request->current == NULL) {
        return 0;
    }
    for (int32_t c = 0; request->changes != NULL && c < request->component_count; c++) {
        if (request->changes[c] < -SL_PACKING_INSTANCES_MAX ||
            request->changes[c] > SL_PACKING_INSTANCES_MAX) {
            return sl_err_set(SL_ELIMIT, "component '%.64s': change of %d instances",
                              request->components[c].name, request->changes[c]);
        }
    }
    rc = sl_packing_plan_check(request->current, request->component_count);
    return rc == 0 ? 0 : sl_err_wrap("the current plan");
}

static int
refuse_shrink(const struct sl_packing_component *component, int32_t removed, int32_t there)
{
    return sl_err_set(SL_EUNSATISFIABLE,
                      "component '%.64s' can not shrink: instances: need %d to remove, there are "
                      "%d",
                      component->name, removed, there);
}

/* Counts what is there, what comes and what goes. */
static int
job_count(struct sl_packing_job *job)
{
    const struct sl_packing_request *request = job->request;
    int32_t components = request->component_count;
    if (request->current == NULL) {
        for (int32_t c = 0; c < components; c++) {
            job->wanted[c] = job->up[c] = request->components[c].parallelism;
        }
    } else {
        for (int32_t i = 0; i < request->current->instance_count; i++) {
            job->wanted[request->current->instances[i].component]++;
        }
        if (request->changes != NULL) {
            sl_packing_changes_split(request->changes, components, job->up, job->down);
        }
    }
    int64_t total = 0;
    for (int32_t c = 0; c < components; c++) {
        int64_t wanted = job->wanted[c];
        if (request->current != NULL) {
            if (job->down[c] > wanted) {
                return refuse_shrink(&request->components[c], job->down[c], job->wanted[c]);
            }
            wanted += (int64_t)job->up[c] - job->down[c];
        }
        total += wanted;
        if (total > SL_PACKING_INSTANCES_MAX) {
            return sl_err_set(SL_ELIMIT, "more than %d instances", SL_PACKING_INSTANCES_MAX);
        }
        job->wanted[c] = (int32_t)wanted;
    }
    job->total = (int32_t)total;
    return 0;
}

/* RAM or CPU, as the order wants it; needs are compared, then kind and declaration. */
struct ranked {
    int64_t first;
    int64_t second;
    int32_t is_no_spout;
    int32_t component;
};

static int
compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    if (a->first != b->first) {
        return a->first > b->first ? -1 : 1;
    }
    if (a->second != b->second) {
        return a->second > b->second ? -1 : 1;
    }
    if (a->is_no_spout != b->is_no_spout) {
        return a->is_no_spout < b->is_no_spout ? -1 : 1;
    }
    return (a->component > b->component) - (a->component < b->component);
}

enum order { BY_CONFIGURED_RAM, BY_NEED, BY_DECLARATION };

static void
order_components(struct sl_packing_job *job, enum order order)
{
    int32_t components = job->request->component_count;
    bool is_cpu_first = job->request->config.sorting == SL_PACKING_CPU_FIRST;
    struct ranked *ranked = sl_calloc((size_t)components, sizeof(*ranked));
    for (int32_t c = 0; c < components; c++) {
        const struct sl_packing_component *component = &job->request->components[c];
        struct sl_resource need = job->needs[c];
        ranked[c].component = c;
        ranked[c].is_no_spout = component->kind != SL_PACKING_SPOUT;
        if (order == BY_NEED) {
            ranked[c].first = is_cpu_first ? need.cpu_nano : need.ram_bytes;
            ranked[c].second = is_cpu_first ? need.ram_bytes : need.cpu_nano;
        } else if (order == BY_CONFIGURED_RAM) {
            ranked[c].first = component->ram_bytes < 0 ? 0 : component->ram_bytes;
        }
    }
    qsort(ranked, (size_t)components, sizeof(*ranked), compare_ranked);
    for (int32_t c = 0; c < components; c++) {
        job->order[c] = ranked[c].component;
    }
    sl_free(ranked);
}

void
sl_packing_order_by_configured_ram(struct sl_packing_job *job)
{
    order_components(job, BY_CONFIGURED_RAM);
}

void
sl_packing_order_by_need(struct sl_packing_job *job)
{
    order_components(job, BY_NEED);
}

void
sl_packing_order_by_declaration(struct sl_packing_job *job)
{
    order_components(job, BY_DECLARATION);
}

void
sl_packing_index_builder(const struct sl_packing_builder *builder, struct sl_fit_index *index)
{
    int32_t containers = (int32_t)builder->slots.count;
    sl_fit_index_create(index, containers);
    for (int32_t p = 0; p < containers; p++) {
        const struct sl_packing_slot *slot = &builder->slots.items[p];
        sl_fit_index_load(index, p, sl_fit_node_of(&builder->limits, slot->used, slot->count));
    }
    sl_fit_index_refresh(index);
}

/* What is added must fit into an empty container, else no number of containers helps. */
static int
check_additions(const struct sl_packing_job *job)
{
    for (int32_t i = 0; i < job->request->component_count; i++) {
        int32_t c = job->order[i];
        if (job->up[c] == 0) {
            continue;
        }
        const struct sl_packing_component *component = &job->request->components[c];
        int rc = sl_packing_limits_check_empty(&job->limits, component->name, job->needs[c]);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int
run_removals(const struct sl_packing_job *job, struct sl_packing_builder *builder)
{
    int rc = 0;
    struct sl_packing_removal removal;
    sl_packing_removal_create(&removal, builder);
    for (int32_t i = 0; i < job->request->component_count && rc == 0; i++) {
        int32_t c = job->order[i];
        if (job->down[c] > 0) {
            rc = job->request->shrink == SL_PACKING_SHRINK_TASKS
                     ? sl_packing_removal_run_highest(&removal, c, job->down[c])
                     : sl_packing_removal_run(&removal, c, job->down[c]);
        }
    }
    sl_packing_removal_destroy(&removal);
    return rc;
}

static int
run_rule(const struct sl_packing_job *job, struct sl_packing_builder *builder)
{
    if (job->packer == SL_PACKING_FIRST_FIT_DECREASING) {
        return sl_packing_first_fit(job, builder);
    }
    if (job->request->current == NULL) {
        return sl_packing_compliant_pack(job, builder);
    }
    return sl_packing_compliant_repack(job, builder);
}

/* First fit decreasing and resource compliant round robin: removals, additions, container count. */
static int
run_sticky(struct sl_packing_job *job, struct sl_packing_plan **plan)
{
    const struct sl_packing_request *request = job->request;
    if (job->packer == SL_PACKING_FIRST_FIT_DECREASING) {
        sl_packing_order_by_need(job);
    } else {
        sl_packing_order_by_declaration(job);
    }
    int rc = check_additions(job);
    if (rc != 0) {
        return rc;
    }
    struct sl_packing_builder builder;
    sl_packing_builder_create(&builder, request->components, request->component_count,
                              &job->limits);
    if (request->current != NULL) {
        sl_packing_builder_load(&builder, request->current);
    }
    rc = run_removals(job, &builder);
    if (rc == 0) {
        rc = run_rule(job, &builder);
    }
    if (rc == 0 && request->containers != SL_PACKING_UNSET) {
        rc = sl_packing_container_count_hold(job, &builder, request->containers);
    }
    if (rc == 0) {
        rc = sl_packing_builder_build(&builder, plan);
    }
    sl_packing_builder_destroy(&builder);
    return rc;
}

static int
run_round_robin(struct sl_packing_job *job, struct sl_packing_plan **plan)
{
    int64_t containers;
    sl_packing_order_by_configured_ram(job);
    int rc = sl_packing_round_robin_containers(job, &containers);
    return rc == 0 ? sl_packing_round_robin(job, containers, plan) : rc;
}

int
sl_packing_pack(int packer, const struct sl_packing_request *request, struct sl_packing_plan **plan)
{
    *plan = NULL;
    int rc = check_request(packer, request);
    if (rc != 0) {
        return rc;
    }
    size_t components = (size_t)request->component_count;
    struct sl_packing_job job = {
        .request = request,
        .packer = packer,
        .limits = sl_packing_limits_of(&request->config, packer),
        .needs = sl_calloc(components, sizeof(struct sl_resource)),
        .order = sl_calloc(components, sizeof(int32_t)),
        .up = sl_calloc(components, sizeof(int32_t)),
        .down = sl_calloc(components, sizeof(int32_t)),
        .wanted = sl_calloc(components, sizeof(int32_t)),
    };
    for (int32_t c = 0; c < request->component_count; c++) {
        job.needs[c] = sl_packing_need(&request->components[c]);
    }
    rc = job_count(&job);
    if (rc == 0) {
        rc =
            packer == SL_PACKING_ROUND_ROBIN ? run_round_robin(&job, plan) : run_sticky(&job, plan);
    }
    sl_free(job.needs);
    sl_free(job.order);
    sl_free(job.up);
    sl_free(job.down);
    sl_free(job.wanted);
    return rc;
}
