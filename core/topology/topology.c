#include "topology/topology.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

/*
 * Room for one more item in an array that doubles: it is full exactly when its count is a power of
 * two (or 0), so no capacity needs to be kept beside it.
 */
static void *
array_grow(void *items, uint32_t count, size_t item_size)
{
    if ((count & (count - 1)) != 0) {
        return items;
    }
    size_t capacity = count == 0 ? 1 : 2 * (size_t)count;
    return sl_realloc(items, capacity * item_size);
}

/*
 * Copies a text. A NUL inside becomes C0 80, the usual stand-in for it, so that no name with a NUL
 * passes for the shorter one before it; validation refuses the bytes and prints them as \0.
 */
static char *
text_dup(struct sl_topology_text text)
{
    size_t nuls = 0;
    for (size_t i = 0; i < text.len; i++) {
        nuls += text.data[i] == '\0';
    }
    char *copy = sl_alloc(text.len + nuls + 1);
    size_t used = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '\0') {
            copy[used++] = (char)0xC0;
            copy[used++] = (char)0x80;
        } else {
            copy[used++] = text.data[i];
        }
    }
    copy[used] = '\0';
    return copy;
}

static uint8_t *
bytes_dup(const void *data, size_t len)
{
    uint8_t *copy = sl_alloc(len + 1);
    if (len > 0) {
        memcpy(copy, data, len);
    }
    copy[len] = 0;
    return copy;
}

static char **
fields_dup(const struct sl_topology_text *fields, uint32_t count)
{
    if (count == 0) {
        return NULL;
    }
    char **copies = sl_calloc(count, sizeof(*copies));
    for (uint32_t i = 0; i < count; i++) {
        copies[i] = text_dup(fields[i]);
    }
    return copies;
}

static void
fields_free(char **fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        sl_free(fields[i]);
    }
    sl_free(fields);
}

static void
component_destroy(struct sl_topology_component *component)
{
    for (uint32_t i = 0; i < component->stream_count; i++) {
        sl_free(component->streams[i].name);
        fields_free(component->streams[i].fields, component->streams[i].field_count);
    }
    for (uint32_t i = 0; i < component->input_count; i++) {
        struct sl_topology_input *input = &component->inputs[i];
        sl_free(input->source);
        sl_free(input->stream);
        sl_free(input->custom_ref);
        fields_free(input->fields, input->field_count);
    }
    sl_free(component->streams);
    sl_free(component->inputs);
    sl_free(component->name);
    sl_free(component->script);
    sl_free(component->code_name);
    sl_free(component->config);
}

/* The declared number when it can be a number of tasks, else 0. */
static uint32_t
parallelism_of(double declared)
{
    if (!(declared >= 1 && declared <= SL_PARALLELISM_MAX) || declared != floor(declared)) {
        return 0;
    }
    return (uint32_t)declared;
}

struct sl_topology_text
sl_topology_text(const char *text)
{
    return (struct sl_topology_text){text, strlen(text)};
}

struct sl_topology *
sl_topology_new(struct sl_topology_text name)
{
    struct sl_topology *topology = sl_calloc(1, sizeof(*topology));
    topology->name = text_dup(name);
    return topology;
}

void
sl_topology_free(struct sl_topology *topology)
{
    if (topology == NULL) {
        return;
    }
    for (uint32_t i = 0; i < topology->component_count; i++) {
        component_destroy(&topology->components[i]);
    }
    for (uint32_t i = 0; i < topology->setting_count; i++) {
        sl_free(topology->settings[i].key);
        sl_free(topology->settings[i].value);
    }
    sl_free(topology->components);
    sl_free(topology->settings);
    sl_free(topology->name);
    sl_free(topology);
}

uint32_t
sl_topology_add(struct sl_topology *topology, const struct sl_topology_component_spec *spec)
{
    uint32_t index = topology->component_count;
    topology->components = array_grow(topology->components, index, sizeof(*topology->components));
    topology->components[index] = (struct sl_topology_component){
        .kind = spec->kind,
        .name = text_dup(spec->name),
        .script = text_dup(spec->script),
        .code_name = text_dup(spec->code_name),
        .parallelism_declared = spec->parallelism,
        .parallelism = parallelism_of(spec->parallelism),
        .resources = spec->resources,
        .config = bytes_dup(spec->config.data, spec->config.len),
        .config_len = spec->config.len,
    };
    topology->component_count++;
    return index;
}

uint32_t
sl_topology_add_stream(struct sl_topology *topology, uint32_t component,
                       const struct sl_topology_stream_spec *spec)
{
    sl_assert_lt(component, topology->component_count);
    struct sl_topology_component *owner = &topology->components[component];
    uint32_t index = owner->stream_count;
    owner->streams = array_grow(owner->streams, index, sizeof(*owner->streams));
    owner->streams[index] = (struct sl_topology_stream){
        .name = text_dup(spec->name),
        .is_direct = spec->is_direct,
        .field_count = spec->field_count,
        .fields = fields_dup(spec->fields, spec->field_count),
    };
    owner->stream_count++;
    return index;
}

uint32_t
sl_topology_add_input(struct sl_topology *topology, uint32_t component,
                      const struct sl_topology_input_spec *spec)
{
    sl_assert_lt(component, topology->component_count);
    struct sl_topology_component *owner = &topology->components[component];
    uint32_t index = owner->input_count;
    owner->inputs = array_grow(owner->inputs, index, sizeof(*owner->inputs));
    owner->inputs[index] = (struct sl_topology_input){
        .source = text_dup(spec->source),
        .stream = text_dup(spec->stream),
        .grouping = spec->grouping,
        .field_count = spec->field_count,
        .fields = fields_dup(spec->fields, spec->field_count),
        .custom_ref = text_dup(spec->custom_ref),
    };
    owner->input_count++;
    return index;
}

/* Index of the first setting whose key is not below `key`. */
static uint32_t
setting_lower_bound(const struct sl_topology *topology, const char *key)
{
    uint32_t low = 0;
    uint32_t high = topology->setting_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(topology->settings[middle].key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void
sl_topology_set(struct sl_topology *topology, struct sl_topology_text key,
                struct sl_topology_text value)
{
    char *name = text_dup(key);
    uint8_t *bytes = bytes_dup(value.data, value.len);
    uint32_t count = topology->setting_count;
    uint32_t at = setting_lower_bound(topology, name);
    if (at < count && strcmp(topology->settings[at].key, name) == 0) {
        sl_free(topology->settings[at].value);
        sl_free(name);
        topology->settings[at].value = bytes;
        topology->settings[at].value_len = value.len;
        return;
    }
    topology->settings = array_grow(topology->settings, count, sizeof(*topology->settings));
    memmove(&topology->settings[at + 1], &topology->settings[at],
            (count - at) * sizeof(*topology->settings));
    topology->settings[at] = (struct sl_topology_setting){name, bytes, value.len};
    topology->setting_count++;
}

const struct sl_topology_setting *
sl_topology_setting(const struct sl_topology *topology, const char *key)
{
    uint32_t at = setting_lower_bound(topology, key);
    if (at < topology->setting_count && strcmp(topology->settings[at].key, key) == 0) {
        return &topology->settings[at];
    }
    return NULL;
}

bool
sl_topology_setting_number(const struct sl_topology *topology, const char *key, double *value)
{
    const struct sl_topology_setting *setting = sl_topology_setting(topology, key);
    if (setting == NULL) {
        return false;
    }
    const char *text = (const char *)setting->value;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *value = text[0] == 't';
        return true;
    }
    char *end = NULL;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || end != text + setting->value_len) {
        return false;
    }
    *value = number;
    return true;
}

const struct sl_topology_component *
sl_topology_find(const struct sl_topology *topology, const char *name)
{
    for (uint32_t i = 0; i < topology->component_count; i++) {
        if (strcmp(topology->components[i].name, name) == 0) {
            return &topology->components[i];
        }
    }
    return NULL;
}

const struct sl_topology_stream *
sl_topology_find_stream(const struct sl_topology_component *component, const char *name)
{
    for (uint32_t i = 0; i < component->stream_count; i++) {
        if (strcmp(component->streams[i].name, name) == 0) {
            return &component->streams[i];
        }
    }
    return NULL;
}

int32_t
sl_topology_find_field(const struct sl_topology_stream *stream, const char *field)
{
    for (uint32_t i = 0; i < stream->field_count; i++) {
        if (strcmp(stream->fields[i], field) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

struct sl_topology *
sl_topology_dup(const struct sl_topology *topology)
{
    struct sl_topology *copy = sl_topology_new(sl_topology_text(topology->name));
    copy->is_system = topology->is_system;
    for (uint32_t i = 0; i < topology->component_count; i++) {
        sl_topology_copy_component(copy, &topology->components[i]);
    }
    for (uint32_t i = 0; i < topology->setting_count; i++) {
        const struct sl_topology_setting *setting = &topology->settings[i];
        sl_topology_set(
            copy, sl_topology_text(setting->key),
            (struct sl_topology_text){(const char *)setting->value, setting->value_len});
    }
    return copy;
}

/* The fields of a stream or an input as texts; free the array with sl_free. */
static struct sl_topology_text *
field_texts_new(char *const *fields, uint32_t count)
{
    struct sl_topology_text *texts = sl_calloc(count == 0 ? 1 : count, sizeof(*texts));
    for (uint32_t i = 0; i < count; i++) {
        texts[i] = sl_topology_text(fields[i]);
    }
    return texts;
}

uint32_t
sl_topology_copy_component(struct sl_topology *topology, const struct sl_topology_component *source)
{
    uint32_t index =
        sl_topology_add(topology, &(struct sl_topology_component_spec){
                                      .kind = source->kind,
                                      .name = sl_topology_text(source->name),
                                      .script = sl_topology_text(source->script),
                                      .code_name = sl_topology_text(source->code_name),
                                      .parallelism = source->parallelism_declared,
                                      .resources = source->resources,
                                      .config = {(const char *)source->config, source->config_len},
                                  });
    for (uint32_t i = 0; i < source->stream_count; i++) {
        const struct sl_topology_stream *stream = &source->streams[i];
        struct sl_topology_text *fields = field_texts_new(stream->fields, stream->field_count);
        sl_topology_add_stream(topology, index,
                               &(struct sl_topology_stream_spec){
                                   .name = sl_topology_text(stream->name),
                                   .is_direct = stream->is_direct,
                                   .fields = fields,
                                   .field_count = stream->field_count,
                               });
        sl_free(fields);
    }
    for (uint32_t i = 0; i < source->input_count; i++) {
        const struct sl_topology_input *input = &source->inputs[i];
        struct sl_topology_text *fields = field_texts_new(input->fields, input->field_count);
        sl_topology_add_input(topology, index,
                              &(struct sl_topology_input_spec){
                                  .source = sl_topology_text(input->source),
                                  .stream = sl_topology_text(input->stream),
                                  .grouping = input->grouping,
                                  .fields = fields,
                                  .field_count = input->field_count,
                                  .custom_ref = sl_topology_text(input->custom_ref),
                              });
        sl_free(fields);
    }
    return index;
}

static bool
number_equal(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool
fields_equal(char *const *a, uint32_t a_count, char *const *b, uint32_t b_count)
{
    if (a_count != b_count) {
        return false;
    }
    for (uint32_t i = 0; i < a_count; i++) {
        if (strcmp(a[i], b[i]) != 0) {
            return false;
        }
    }
    return true;
}

static bool
stream_equal(const struct sl_topology_stream *a, const struct sl_topology_stream *b)
{
    return strcmp(a->name, b->name) == 0 && a->is_direct == b->is_direct &&
           fields_equal(a->fields, a->field_count, b->fields, b->field_count);
}

static bool
input_equal(const struct sl_topology_input *a, const struct sl_topology_input *b)
{
    return strcmp(a->source, b->source) == 0 && strcmp(a->stream, b->stream) == 0 &&
           a->grouping == b->grouping && strcmp(a->custom_ref, b->custom_ref) == 0 &&
           fields_equal(a->fields, a->field_count, b->fields, b->field_count);
}

static bool
resources_equal(const struct sl_topology_resources *a, const struct sl_topology_resources *b)
{
    return number_equal(a->cpu_cores, b->cpu_cores) && number_equal(a->ram_bytes, b->ram_bytes) &&
           number_equal(a->disk_bytes, b->disk_bytes);
}

static bool
component_equal(const struct sl_topology_component *a, const struct sl_topology_component *b)
{
    if (a->kind != b->kind || strcmp(a->name, b->name) != 0 || strcmp(a->script, b->script) != 0 ||
        strcmp(a->code_name, b->code_name) != 0 || a->parallelism != b->parallelism ||
        !resources_equal(&a->resources, &b->resources) || a->config_len != b->config_len ||
        memcmp(a->config, b->config, a->config_len) != 0 || a->stream_count != b->stream_count ||
        a->input_count != b->input_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->stream_count; i++) {
        if (!stream_equal(&a->streams[i], &b->streams[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < a->input_count; i++) {
        if (!input_equal(&a->inputs[i], &b->inputs[i])) {
            return false;
        }
    }
    return true;
}

bool
sl_topology_equal(const struct sl_topology *a, const struct sl_topology *b)
{
    if (strcmp(a->name, b->name) != 0 || a->is_system != b->is_system ||
        a->component_count != b->component_count || a->setting_count != b->setting_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->component_count; i++) {
        if (!component_equal(&a->components[i], &b->components[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < a->setting_count; i++) {
        const struct sl_topology_setting *x = &a->settings[i];
        const struct sl_topology_setting *y = &b->settings[i];
        if (strcmp(x->key, y->key) != 0 || x->value_len != y->value_len ||
            memcmp(x->value, y->value, x->value_len) != 0) {
            return false;
        }
    }
    return true;
}

const char *
sl_component_kind_name(int32_t kind)
{
    switch (kind) {
    case SL_COMPONENT_SPOUT:
        return "spout";
    case SL_COMPONENT_BOLT:
        return "bolt";
    case SL_COMPONENT_STATE_SPOUT:
        return "state_spout";
    case SL_COMPONENT_SYSTEM:
        return "system";
    default:
        return NULL;
    }
}

const char *
sl_grouping_kind_name(int32_t grouping)
{
    switch (grouping) {
    case SL_GROUPING_SHUFFLE:
        return "shuffle";
    case SL_GROUPING_FIELDS:
        return "fields";
    case SL_GROUPING_ALL:
        return "all";
    case SL_GROUPING_GLOBAL:
        return "global";
    case SL_GROUPING_DIRECT:
        return "direct";
    case SL_GROUPING_NONE:
        return "none";
    case SL_GROUPING_LOCAL_OR_SHUFFLE:
        return "local_or_shuffle";
    case SL_GROUPING_PARTIAL_KEY:
        return "partial_key";
    case SL_GROUPING_CUSTOM:
        return "custom";
    default:
        return NULL;
    }
}
