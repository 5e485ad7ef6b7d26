#include <string.h>

#include "abi/abi.h"
#include "base/err.h"
#include "topology/graph.h"
#include "topology/key_groups.h"
#include "topology/system.h"
#include "topology/topology_codec.h"
#include "topology/validate.h"

static int32_t
refuse(const char *what)
{
    return sl_err_set(SL_EINVAL, "%s", what);
}

static bool
is_text(struct sl_topology_text text)
{
    return text.data != NULL || text.len == 0;
}

static bool
are_texts(const struct sl_topology_text *texts, uint32_t count)
{
    if (texts == NULL) {
        return count == 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!is_text(texts[i])) {
            return false;
        }
    }
    return true;
}

static bool
has_component(const struct sl_topology *topology, int32_t component)
{
    return topology != NULL && component >= 0 && (uint32_t)component < topology->component_count;
}

struct sl_topology *
sl_abi_topology_new(const char *name, size_t name_len)
{
    if (name == NULL) {
        refuse("a topology needs a name");
        return NULL;
    }
    return sl_topology_new((struct sl_topology_text){name, name_len});
}

void
sl_abi_topology_free(struct sl_topology *topology)
{
    sl_topology_free(topology);
}

int32_t
sl_abi_topology_add(struct sl_topology *topology, const struct sl_topology_component_spec *spec)
{
    if (topology == NULL || spec == NULL || !is_text(spec->name) || !is_text(spec->script) ||
        !is_text(spec->code_name) || !is_text(spec->config)) {
        return refuse("incomplete component");
    }
    return (int32_t)sl_topology_add(topology, spec);
}

int32_t
sl_abi_topology_add_stream(struct sl_topology *topology, int32_t component,
                           const struct sl_topology_stream_spec *spec)
{
    if (!has_component(topology, component) || spec == NULL || !is_text(spec->name) ||
        !are_texts(spec->fields, spec->field_count)) {
        return refuse("no such component, or incomplete stream");
    }
    return (int32_t)sl_topology_add_stream(topology, (uint32_t)component, spec);
}

int32_t
sl_abi_topology_add_input(struct sl_topology *topology, int32_t component,
                          const struct sl_topology_input_spec *spec)
{
    if (!has_component(topology, component) || spec == NULL || !is_text(spec->source) ||
        !is_text(spec->stream) || !is_text(spec->custom_ref) ||
        !are_texts(spec->fields, spec->field_count)) {
        return refuse("no such component, or incomplete input");
    }
    return (int32_t)sl_topology_add_input(topology, (uint32_t)component, spec);
}

int32_t
sl_abi_topology_set(struct sl_topology *topology, struct sl_topology_text key,
                    struct sl_topology_text value)
{
    if (topology == NULL || !is_text(key) || !is_text(value)) {
        return refuse("incomplete config key");
    }
    sl_topology_set(topology, key, value);
    return 0;
}

struct sl_topology_problems *
sl_abi_topology_validate(const struct sl_topology *topology)
{
    if (topology == NULL) {
        refuse("no topology");
        return NULL;
    }
    return sl_topology_validate_new(topology);
}

void
sl_abi_topology_problems_free(struct sl_topology_problems *problems)
{
    sl_topology_problems_free(problems);
}

int32_t
sl_abi_topology_problem_count(const struct sl_topology_problems *problems)
{
    return problems != NULL ? (int32_t)problems->count : refuse("no list of problems");
}

const struct sl_topology_problem *
sl_abi_topology_problem(const struct sl_topology_problems *problems, int32_t index)
{
    if (problems == NULL || index < 0 || (uint32_t)index >= problems->count) {
        refuse("no such problem");
        return NULL;
    }
    return &problems->items[index];
}

const char *
sl_abi_topology_problem_name(int32_t code)
{
    return sl_topology_problem_name(code);
}

const char *
sl_abi_component_kind_name(int32_t kind)
{
    return sl_component_kind_name(kind);
}

int32_t
sl_abi_topology_places(const struct sl_topology *topology, struct sl_topology_place *places,
                       int32_t count)
{
    if (topology == NULL || places == NULL || count < 0 ||
        (uint32_t)count != topology->component_count) {
        return refuse("one place a component is needed");
    }
    struct sl_topology_graph *graph = sl_topology_graph_new(topology);
    memcpy(places, sl_topology_graph_places(graph), (size_t)count * sizeof(*places));
    sl_topology_graph_free(graph);
    return 0;
}

struct sl_topology *
sl_abi_topology_system(const struct sl_topology *topology, int32_t ackers)
{
    struct sl_system_config config = {0};
    if (topology == NULL || ackers < -1 || ackers > SL_PARALLELISM_MAX) {
        refuse("a topology and a possible number of ackers are needed");
        return NULL;
    }
    if (ackers >= 0) {
        config.ackers = (uint32_t)ackers;
    } else if (sl_system_config_read(topology, &config) != 0) {
        return NULL;
    }
    return sl_system_topology_new(topology, &config);
}

int32_t
sl_abi_topology_task_ranges(const struct sl_topology *topology, struct sl_task_range *ranges,
                            int32_t count)
{
    if (topology == NULL || ranges == NULL || count < 0 ||
        (uint32_t)count != topology->component_count) {
        return refuse("one range a component is needed");
    }
    return sl_topology_task_ranges(topology, ranges);
}

int32_t
sl_abi_topology_key_groups(const struct sl_topology *topology)
{
    uint32_t groups = topology != NULL ? sl_topology_key_groups(topology) : 0;
    return groups != 0 ? (int32_t)groups : refuse("config key_groups is no number of key groups");
}

int32_t
sl_abi_key_groups_assign(const int32_t *tasks, int32_t task_count, int32_t *owners,
                         int32_t group_count)
{
    if (tasks == NULL || owners == NULL || task_count < 0 || group_count < 0) {
        return refuse("tasks and room for the owners are needed");
    }
    return sl_key_groups_assign(tasks, (uint32_t)task_count, owners, (uint32_t)group_count);
}

int32_t
sl_abi_key_groups_rebalance(const int32_t *old_owners, int32_t group_count, const int32_t *tasks,
                            int32_t task_count, int32_t *new_owners)
{
    if (old_owners == NULL || tasks == NULL || new_owners == NULL || task_count < 0 ||
        group_count < 0) {
        return refuse("owners, tasks and room for the new owners are needed");
    }
    return sl_key_groups_rebalance(old_owners, (uint32_t)group_count, tasks, (uint32_t)task_count,
                                   new_owners);
}

int32_t
sl_abi_topology_encode(const struct sl_topology *topology, uint8_t *data, size_t capacity)
{
    if (topology == NULL || (data == NULL && capacity > 0)) {
        return refuse("a topology and room for its bytes are needed");
    }
    struct sl_buf out;
    sl_buf_create(&out);
    int32_t rc = sl_topology_encode(topology, &out);
    if (rc == 0) {
        rc = (int32_t)out.size;
        if (out.size > 0 && out.size <= capacity) {
            memcpy(data, out.data, out.size);
        }
    }
    sl_buf_destroy(&out);
    return rc;
}

struct sl_topology *
sl_abi_topology_decode(const uint8_t *data, size_t size)
{
    if (data == NULL) {
        refuse("no bytes");
        return NULL;
    }
    return sl_topology_decode_new(data, size);
}

int32_t
sl_abi_topology_equal(const struct sl_topology *a, const struct sl_topology *b)
{
    if (a == NULL || b == NULL) {
        return refuse("two topologies are needed");
    }
    return sl_topology_equal(a, b);
}
