#include "topology/topology_codec.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/err.h"
#include "topology.pb-c.h"
#include "wire/message.h"

static const struct sl_pb_limit counts[] = {
    {&streamlua__topology__descriptor, 4, SL_TOPOLOGY_COMPONENTS_MAX},
    {&streamlua__topology__descriptor, 5, SL_TOPOLOGY_CONFIG_MAX},
    {&streamlua__topology_component__descriptor, 10, SL_TOPOLOGY_STREAMS_MAX},
    {&streamlua__topology_component__descriptor, 11, SL_TOPOLOGY_INPUTS_MAX},
    {&streamlua__topology_stream__descriptor, 3, SL_TOPOLOGY_FIELDS_MAX},
    {&streamlua__topology_input__descriptor, 4, SL_TOPOLOGY_FIELDS_MAX},
};

static const struct sl_pb_limits limits = {
    .max_size = SL_TOPOLOGY_BYTES_MAX,
    .max_fields = 4 * 1024 * 1024,
    SL_PB_COUNTS(counts),
};

static void
stream_to_message(const struct sl_topology_stream *stream, Streamlua__TopologyStream *message)
{
    streamlua__topology_stream__init(message);
    message->name = stream->name;
    message->is_direct = stream->is_direct;
    message->n_fields = stream->field_count;
    message->fields = stream->fields;
}

static void
input_to_message(const struct sl_topology_input *input, Streamlua__TopologyInput *message)
{
    streamlua__topology_input__init(message);
    message->source = input->source;
    message->stream = input->stream;
    message->grouping = (Streamlua__GroupingKind)input->grouping;
    message->n_fields = input->field_count;
    message->fields = input->fields;
    message->custom_ref = input->custom_ref;
}

static void
component_to_message(struct sl_arena *arena, const struct sl_topology_component *component,
                     Streamlua__TopologyComponent *message)
{
    streamlua__topology_component__init(message);
    message->kind = (Streamlua__ComponentKind)component->kind;
    message->name = component->name;
    message->script = component->script;
    message->code_name = component->code_name;
    message->parallelism = component->parallelism;
    message->cpu_cores = component->resources.cpu_cores;
    message->ram_bytes = component->resources.ram_bytes;
    message->disk_bytes = component->resources.disk_bytes;
    message->config = (ProtobufCBinaryData){component->config_len, component->config};
    message->n_streams = component->stream_count;
    message->streams = sl_arena_calloc(arena, component->stream_count, sizeof(void *));
    Streamlua__TopologyStream *streams =
        sl_arena_calloc(arena, component->stream_count, sizeof(*streams));
    for (uint32_t i = 0; i < component->stream_count; i++) {
        stream_to_message(&component->streams[i], &streams[i]);
        message->streams[i] = &streams[i];
    }
    message->n_inputs = component->input_count;
    message->inputs = sl_arena_calloc(arena, component->input_count, sizeof(void *));
    Streamlua__TopologyInput *inputs =
        sl_arena_calloc(arena, component->input_count, sizeof(*inputs));
    for (uint32_t i = 0; i < component->input_count; i++) {
        input_to_message(&component->inputs[i], &inputs[i]);
        message->inputs[i] = &inputs[i];
    }
}

static void
topology_to_message(struct sl_arena *arena, const struct sl_topology *topology,
                    Streamlua__Topology *message)
{
    streamlua__topology__init(message);
    message->format = SL_TOPOLOGY_FORMAT;
    message->name = topology->name;
    message->is_system = topology->is_system;
    message->n_components = topology->component_count;
    message->components = sl_arena_calloc(arena, topology->component_count, sizeof(void *));
    Streamlua__TopologyComponent *components =
        sl_arena_calloc(arena, topology->component_count, sizeof(*components));
    for (uint32_t i = 0; i < topology->component_count; i++) {
        component_to_message(arena, &topology->components[i], &components[i]);
        message->components[i] = &components[i];
    }
    message->n_settings = topology->setting_count;
    message->settings = sl_arena_calloc(arena, topology->setting_count, sizeof(void *));
    Streamlua__TopologySetting *settings =
        sl_arena_calloc(arena, topology->setting_count, sizeof(*settings));
    for (uint32_t i = 0; i < topology->setting_count; i++) {
        const struct sl_topology_setting *setting = &topology->settings[i];
        streamlua__topology_setting__init(&settings[i]);
        settings[i].key = setting->key;
        settings[i].value = (ProtobufCBinaryData){setting->value_len, setting->value};
        message->settings[i] = &settings[i];
    }
}

int
sl_topology_encode(const struct sl_topology *topology, struct sl_buf *out)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    Streamlua__Topology message;
    topology_to_message(&arena, topology, &message);
    size_t size = protobuf_c_message_get_packed_size(&message.base);
    size_t start = out->size;
    int rc = 0;
    if (size > SL_TOPOLOGY_BYTES_MAX) {
        rc = sl_err_set(SL_ELIMIT, "definition of %s takes %zu bytes; the limit is %d",
                        topology->name, size, SL_TOPOLOGY_BYTES_MAX);
        goto out;
    }
    sl_message_pack(&message.base, out);
    /* Whatever is written can be read again: the reader's own check is the judge. */
    rc = sl_pb_check(&streamlua__topology__descriptor, out->data + start, size, &limits);
    if (rc != 0) {
        out->size = start;
        rc = sl_err_wrap("encode topology %s", topology->name);
        if (rc == SL_EPROTO) {
            rc = sl_err_set(SL_EINVAL,
                            "topology %s holds a text that is no UTF-8 or a number that "
                            "is no kind or grouping",
                            topology->name);
        }
    }
out:
    sl_arena_destroy(&arena);
    return rc;
}

/* Fields as texts, out of the arena. */
static const struct sl_topology_text *
fields_from_message(struct sl_arena *arena, size_t count, char **fields)
{
    struct sl_topology_text *texts = sl_arena_calloc(arena, count, sizeof(*texts));
    for (size_t i = 0; i < count; i++) {
        texts[i] = sl_topology_text(fields[i]);
    }
    return texts;
}

static int
component_from_message(struct sl_arena *arena, struct sl_topology *topology,
                       const Streamlua__TopologyComponent *message)
{
    if (message->kind == STREAMLUA__COMPONENT_KIND__COMPONENT_KIND_UNSET) {
        return sl_err_set(SL_EPROTO, "component %s has no kind", message->name);
    }
    struct sl_topology_component_spec spec = {
        .kind = (enum sl_component_kind)message->kind,
        .name = sl_topology_text(message->name),
        .script = sl_topology_text(message->script),
        .code_name = sl_topology_text(message->code_name),
        .parallelism = message->parallelism,
        .resources = {message->cpu_cores, message->ram_bytes, message->disk_bytes},
        .config = {(const char *)message->config.data, message->config.len},
    };
    uint32_t index = sl_topology_add(topology, &spec);
    for (size_t i = 0; i < message->n_streams; i++) {
        const Streamlua__TopologyStream *stream = message->streams[i];
        struct sl_topology_stream_spec stream_spec = {
            .name = sl_topology_text(stream->name),
            .is_direct = stream->is_direct,
            .fields = fields_from_message(arena, stream->n_fields, stream->fields),
            .field_count = (uint32_t)stream->n_fields,
        };
        sl_topology_add_stream(topology, index, &stream_spec);
    }
    for (size_t i = 0; i < message->n_inputs; i++) {
        const Streamlua__TopologyInput *input = message->inputs[i];
        if (input->grouping == STREAMLUA__GROUPING_KIND__GROUPING_KIND_UNSET) {
            return sl_err_set(SL_EPROTO, "an input of %s has no grouping", message->name);
        }
        struct sl_topology_input_spec input_spec = {
            .source = sl_topology_text(input->source),
            .stream = sl_topology_text(input->stream),
            .grouping = (enum sl_grouping_kind)input->grouping,
            .fields = fields_from_message(arena, input->n_fields, input->fields),
            .field_count = (uint32_t)input->n_fields,
            .custom_ref = sl_topology_text(input->custom_ref),
        };
        sl_topology_add_input(topology, index, &input_spec);
    }
    return 0;
}

static int
settings_from_message(struct sl_topology *topology, const Streamlua__Topology *message)
{
    for (size_t i = 0; i < message->n_settings; i++) {
        const Streamlua__TopologySetting *setting = message->settings[i];
        if (i > 0 && strcmp(message->settings[i - 1]->key, setting->key) >= 0) {
            return sl_err_set(SL_EPROTO, "config key %s is out of order or occurs twice",
                              setting->key);
        }
        sl_topology_set(
            topology, sl_topology_text(setting->key),
            (struct sl_topology_text){(const char *)setting->value.data, setting->value.len});
    }
    return 0;
}

struct sl_topology *
sl_topology_decode_new(const uint8_t *data, size_t size)
{
    struct sl_arena arena;
    struct sl_topology *topology = NULL;
    ProtobufCMessage *base = NULL;
    sl_arena_create(&arena, 0, 0);
    int rc =
        sl_message_unpack(&streamlua__topology__descriptor, data, size, &limits, &arena, &base);
    if (rc != 0) {
        goto out;
    }
    const Streamlua__Topology *message = (const Streamlua__Topology *)base;
    if (message->format != SL_TOPOLOGY_FORMAT) {
        rc = sl_err_set(SL_EPROTO, "topology of format %u; this release reads format %d",
                        message->format, SL_TOPOLOGY_FORMAT);
        goto out;
    }
    topology = sl_topology_new(sl_topology_text(message->name));
    topology->is_system = message->is_system;
    for (size_t i = 0; rc == 0 && i < message->n_components; i++) {
        rc = component_from_message(&arena, topology, message->components[i]);
    }
    if (rc == 0) {
        rc = settings_from_message(topology, message);
    }
out:
    if (rc != 0) {
        sl_topology_free(topology);
        topology = NULL;
    }
    sl_arena_destroy(&arena);
    return topology;
}
