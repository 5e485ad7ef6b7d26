#include "topology/system.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"

enum { FIELDS_MAX = 4 };

/* A stream of the engine, with its fields up to the first NULL. */
struct system_stream {
    const char *name;
    bool is_direct;
    const char *fields[FIELDS_MAX];
};

/*
 * id is the root; value the xor of edge ids; task the spout's task. The answers are direct, because
 * the acker knows which spout task the root belongs to.
 */
static const struct system_stream ack_init = {SL_ACK_INIT, false, {"id", "value", "task"}};
static const struct system_stream ack_ack = {SL_ACK_ACK, false, {"id", "value"}};
static const struct system_stream ack_fail = {SL_ACK_FAIL, false, {"id"}};
static const struct system_stream ack_reset = {SL_ACK_RESET_TIMEOUT, false, {"id"}};
static const struct system_stream answer_ack = {SL_ACK_ACK, true, {"id", "elapsed_ms"}};
static const struct system_stream answer_fail = {SL_ACK_FAIL, true, {"id", "elapsed_ms"}};
static const struct system_stream answer_reset = {SL_ACK_RESET_TIMEOUT, true, {"id"}};
static const struct system_stream task_metrics = {SL_STREAM_METRICS, false, {"task", "points"}};
static const struct system_stream worker_metrics = {SL_STREAM_METRICS, true, {"worker", "points"}};
static const struct system_stream metrics_tick = {SL_STREAM_METRICS_TICK, true, {"interval_ms"}};
static const struct system_stream tick = {SL_STREAM_TICK, true, {"now_ms"}};
static const struct system_stream heartbeat = {SL_STREAM_HEARTBEAT, true, {"worker", "tasks"}};
static const struct system_stream control = {SL_STREAM_CONTROL, true, {"command", "arguments"}};

static void
add_stream(struct sl_topology *topology, uint32_t component, const struct system_stream *stream)
{
    struct sl_topology_text fields[FIELDS_MAX];
    uint32_t count = 0;
    while (count < FIELDS_MAX && stream->fields[count] != NULL) {
        fields[count] = sl_topology_text(stream->fields[count]);
        count++;
    }
    struct sl_topology_stream_spec spec = {
        .name = sl_topology_text(stream->name),
        .is_direct = stream->is_direct,
        .fields = fields,
        .field_count = count,
    };
    sl_topology_add_stream(topology, component, &spec);
}

static void
add_input(struct sl_topology *topology, uint32_t component, const char *source, const char *stream,
          enum sl_grouping_kind grouping)
{
    /* The acker's inputs meet in the task that the root id names. */
    struct sl_topology_text id = sl_topology_text("id");
    struct sl_topology_input_spec spec = {
        .source = sl_topology_text(source),
        .stream = sl_topology_text(stream),
        .grouping = grouping,
        .fields = &id,
        .field_count = grouping == SL_GROUPING_FIELDS ? 1 : 0,
        .custom_ref = sl_topology_text(""),
    };
    sl_topology_add_input(topology, component, &spec);
}

static uint32_t
add_component(struct sl_topology *topology, const char *name, uint32_t parallelism)
{
    struct sl_topology_component_spec spec = {
        .kind = SL_COMPONENT_SYSTEM,
        .name = sl_topology_text(name),
        .script = sl_topology_text(""),
        .code_name = sl_topology_text(""),
        .parallelism = parallelism,
        .resources = {NAN, NAN, NAN},
        .config = sl_topology_text(""),
    };
    return sl_topology_add(topology, &spec);
}

/* Adds __acker and links it with the first user_count components. */
static void
add_acker(struct sl_topology *topology, uint32_t user_count, uint32_t ackers)
{
    uint32_t acker = add_component(topology, SL_ACKER, ackers);
    add_stream(topology, acker, &answer_ack);
    add_stream(topology, acker, &answer_fail);
    add_stream(topology, acker, &answer_reset);
    for (uint32_t i = 0; i < user_count; i++) {
        /* Adding streams and inputs moves no component, so the name stays where it is. */
        const char *name = topology->components[i].name;
        if (topology->components[i].kind == SL_COMPONENT_SPOUT) {
            add_stream(topology, i, &ack_init);
            add_input(topology, acker, name, SL_ACK_INIT, SL_GROUPING_FIELDS);
            add_input(topology, i, SL_ACKER, SL_ACK_ACK, SL_GROUPING_DIRECT);
            add_input(topology, i, SL_ACKER, SL_ACK_FAIL, SL_GROUPING_DIRECT);
            add_input(topology, i, SL_ACKER, SL_ACK_RESET_TIMEOUT, SL_GROUPING_DIRECT);
        } else {
            add_stream(topology, i, &ack_ack);
            add_stream(topology, i, &ack_fail);
            add_stream(topology, i, &ack_reset);
            add_input(topology, acker, name, SL_ACK_ACK, SL_GROUPING_FIELDS);
            add_input(topology, acker, name, SL_ACK_FAIL, SL_GROUPING_FIELDS);
            add_input(topology, acker, name, SL_ACK_RESET_TIMEOUT, SL_GROUPING_FIELDS);
        }
    }
}

/* Adds the worker's own pair, __metrics and __system, and links everything with it. */
static void
add_worker_components(struct sl_topology *topology, uint32_t master)
{
    uint32_t sender_count = topology->component_count;
    uint32_t metrics = add_component(topology, SL_METRICS, 0);
    uint32_t system = add_component(topology, SL_SYSTEM, 0);
    add_stream(topology, metrics, &worker_metrics);
    add_stream(topology, system, &tick);
    add_stream(topology, system, &metrics_tick);
    add_stream(topology, system, &heartbeat);
    for (uint32_t i = 0; i < sender_count; i++) {
        add_stream(topology, i, &task_metrics);
        add_input(topology, metrics, topology->components[i].name, SL_STREAM_METRICS,
                  SL_GROUPING_LOCAL_OR_SHUFFLE);
        if (i != master && topology->components[i].kind != SL_COMPONENT_SPOUT) {
            add_input(topology, i, SL_SYSTEM, SL_STREAM_TICK, SL_GROUPING_DIRECT);
        }
    }
    add_input(topology, metrics, SL_SYSTEM, SL_STREAM_METRICS_TICK, SL_GROUPING_DIRECT);
    add_input(topology, master, SL_METRICS, SL_STREAM_METRICS, SL_GROUPING_DIRECT);
    add_input(topology, master, SL_SYSTEM, SL_STREAM_HEARTBEAT, SL_GROUPING_DIRECT);
    add_input(topology, system, SL_TOPOLOGY_MASTER, SL_STREAM_CONTROL, SL_GROUPING_DIRECT);
}

int
sl_system_config_read(const struct sl_topology *topology, struct sl_system_config *config)
{
    double acking = 1;
    double ackers = 0;
    *config = (struct sl_system_config){0};
    sl_topology_setting_number(topology, "acking", &acking);
    if (acking == 0 || sl_topology_setting(topology, "ackers") == NULL) {
        return 0;
    }
    if (!sl_topology_setting_number(topology, "ackers", &ackers) ||
        !(ackers >= 0 && ackers <= SL_PARALLELISM_MAX) || ackers != floor(ackers)) {
        return sl_err_set(SL_EINVAL, "ackers must be a whole number from 0 to %d",
                          SL_PARALLELISM_MAX);
    }
    config->ackers = (uint32_t)ackers;
    return 0;
}

struct sl_topology *
sl_system_topology_new(const struct sl_topology *user, const struct sl_system_config *config)
{
    if (user->is_system) {
        sl_err_set(SL_EINVAL, "%s is a system topology already", user->name);
        return NULL;
    }
    struct sl_topology *topology = sl_topology_dup(user);
    topology->is_system = true;
    if (config->ackers >= 1) {
        add_acker(topology, user->component_count, config->ackers);
    }
    uint32_t master = add_component(topology, SL_TOPOLOGY_MASTER, 1);
    add_stream(topology, master, &control);
    add_worker_components(topology, master);
    return topology;
}

/* Gives the next ids to a component; false when they run out. */
static bool
take_ids(int64_t *next, uint32_t count, struct sl_task_range *range)
{
    if (*next + count - 1 > INT32_MAX) {
        return false;
    }
    *range = (struct sl_task_range){(int32_t)*next, (int32_t)count};
    *next += count;
    return true;
}

int
sl_topology_task_ranges(const struct sl_topology *system, struct sl_task_range *ranges)
{
    static const enum sl_component_kind order[] = {SL_COMPONENT_BOLT, SL_COMPONENT_SYSTEM,
                                                   SL_COMPONENT_SPOUT};
    if (!system->is_system) {
        return sl_err_set(SL_EINVAL, "task ids are those of a system topology; %s is none",
                          system->name);
    }
    int64_t next = 1;
    for (size_t pass = 0; pass < sizeof(order) / sizeof(order[0]); pass++) {
        for (uint32_t i = 0; i < system->component_count; i++) {
            const struct sl_topology_component *component = &system->components[i];
            if (component->kind == order[pass] &&
                !take_ids(&next, component->parallelism, &ranges[i])) {
                return sl_err_set(SL_ERANGE, "%s has more tasks than there are task ids",
                                  system->name);
            }
        }
    }
    return 0;
}
