#include "topology/validate.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "topology/graph.h"
#include "topology/key_groups.h"
#include "topology/name_index.h"

enum {
    /* Bytes of a quoted name in a message; longer names are cut and end in "...". */
    QUOTED_SIZE = 96,
    MESSAGE_SIZE = 1024,
};

/* A name or a number made fit for a message. */
struct quoted {
    char text[QUOTED_SIZE];
};

/* State of one validation. */
struct validation {
    const struct sl_topology *topology;
    struct sl__name_index names;
    /* 0 when the config's number is invalid. */
    uint32_t key_groups;
    struct sl_topology_problems *problems;
};

/*
 * Copies at most size bytes of a stored text and turns the stand-in for NUL (C0 80, see topology.c)
 * back into the byte. Returns the length of the copy, which has no NUL after it.
 */
static size_t
restore(const char *text, char *copy, size_t size)
{
    size_t used = 0;
    while (used < size && *text != '\0') {
        bool is_nul = (unsigned char)text[0] == 0xC0 && (unsigned char)text[1] == 0x80;
        copy[used++] = is_nul ? '\0' : text[0];
        text += is_nul ? 2 : 1;
    }
    return used;
}

/* The name in quotes, without control characters, cut to QUOTED_SIZE. */
static struct quoted
quote(const char *name)
{
    struct quoted quoted;
    char copy[2 * QUOTED_SIZE];
    size_t len = restore(name, copy, sizeof(copy));
    sl_text_quote(quoted.text, sizeof(quoted.text), copy, len);
    return quoted;
}

/* A number as people write it: the sign of a NaN says nothing. */
static struct quoted
number_text(double number)
{
    struct quoted text = {"nan"};
    if (!isnan(number)) {
        snprintf(text.text, sizeof(text.text), "%.15g", number);
    }
    return text;
}

static void report(struct validation *v, enum sl_topology_problem_code code, int64_t component,
                   int64_t input, const char *stream, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

/* Adds a problem; component and input are indexes or -1, stream a name or "". */
static void
report(struct validation *v, enum sl_topology_problem_code code, int64_t component, int64_t input,
       const char *stream, const char *fmt, ...)
{
    char message[MESSAGE_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    struct sl_topology_problems *problems = v->problems;
    uint32_t count = problems->count;
    if ((count & (count - 1)) == 0) {
        size_t capacity = count == 0 ? 1 : 2 * (size_t)count;
        problems->items = sl_realloc(problems->items, capacity * sizeof(*problems->items));
    }
    bool is_warning = code == SL_TOPOLOGY_CYCLE || code == SL_TOPOLOGY_UNREACHABLE;
    problems->items[count] = (struct sl_topology_problem){
        .code = (int32_t)code,
        .severity = is_warning ? SL_TOPOLOGY_WARNING : SL_TOPOLOGY_ERROR,
        .component = (int32_t)component,
        .input = (int32_t)input,
        .component_name = sl_strdup(component < 0 ? "" : v->topology->components[component].name),
        .stream = sl_strdup(stream),
        .message = sl_strdup(message),
    };
    problems->count++;
    problems->error_count += !is_warning;
}

/* Reports a name that API's rule refuses; `what` is the noun of the message. */
static void
check_name(struct validation *v, const char *what, const char *name, int64_t component,
           const char *stream)
{
    char *copy = sl_strdup(name);
    size_t len = restore(name, copy, strlen(name));
    if (sl_name_check(what, copy, len) != 0) {
        report(v, SL_TOPOLOGY_BAD_NAME, component, -1, stream, "%s", sl_err_last()->msg);
        sl_err_clear();
    }
    sl_free(copy);
}

/* Why a field name is refused, or NULL. */
static const char *
field_fault(const char *field)
{
    size_t len = strlen(field);
    if (len == 0) {
        return "it is empty";
    }
    if (len > SL_TOPOLOGY_FIELD_MAX) {
        return "it is longer than 256 bytes";
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)field[i];
        if (byte < 0x20 || byte == 0x7F || (byte == 0xC0 && (unsigned char)field[i + 1] == 0x80)) {
            return "it holds a control character";
        }
    }
    return NULL;
}

/* A list of texts in which duplicates are looked for; `at` is its place in the list. */
struct entry {
    const char *a;
    const char *b;
    uint32_t at;
};

static int
compare_entries(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;
    int order = strcmp(x->a, y->a);
    if (order == 0) {
        order = strcmp(x->b, y->b);
    }
    if (order != 0) {
        return order;
    }
    return x->at < y->at ? -1 : x->at > y->at;
}

/*
 * Sorts entries and marks in is_duplicate[at] every one that an earlier one equals, so that the
 * duplicates are reported where they stand and not where the first stands.
 */
static void
find_duplicates(struct entry *entries, uint32_t count, bool *is_duplicate)
{
    if (count < 2) {
        return;
    }
    qsort(entries, count, sizeof(*entries), compare_entries);
    for (uint32_t i = 1; i < count; i++) {
        if (strcmp(entries[i - 1].a, entries[i].a) == 0 &&
            strcmp(entries[i - 1].b, entries[i].b) == 0) {
            is_duplicate[entries[i].at] = true;
        }
    }
}

/* Reports field names that occur twice in a list of a stream or of a grouping. */
static void
check_duplicate_fields(struct validation *v, char *const *fields, uint32_t count,
                       uint32_t component, int64_t input, const char *stream, const char *where)
{
    struct entry *entries = sl_calloc((size_t)count + 1, sizeof(*entries));
    bool *is_duplicate = sl_calloc((size_t)count + 1, sizeof(*is_duplicate));
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = (struct entry){fields[i], "", i};
    }
    find_duplicates(entries, count, is_duplicate);
    for (uint32_t i = 0; i < count; i++) {
        if (is_duplicate[i]) {
            report(v, SL_TOPOLOGY_DUPLICATE_FIELD, component, input, stream,
                   "%s %s names the field %s twice", where, quote(stream).text,
                   quote(fields[i]).text);
        }
    }
    sl_free(entries);
    sl_free(is_duplicate);
}

static void
check_stream(struct validation *v, uint32_t component, const struct sl_topology_stream *stream)
{
    check_name(v, "stream name", stream->name, component, stream->name);
    if (stream->field_count > SL_TOPOLOGY_FIELDS_MAX) {
        report(v, SL_TOPOLOGY_TOO_LARGE, component, -1, stream->name,
               "stream %s has %u fields; the limit is %d", quote(stream->name).text,
               stream->field_count, SL_TOPOLOGY_FIELDS_MAX);
        return;
    }
    for (uint32_t i = 0; i < stream->field_count; i++) {
        const char *fault = field_fault(stream->fields[i]);
        if (fault != NULL) {
            report(v, SL_TOPOLOGY_BAD_FIELD_NAME, component, -1, stream->name,
                   "invalid field name %s in stream %s: %s", quote(stream->fields[i]).text,
                   quote(stream->name).text, fault);
        }
    }
    check_duplicate_fields(v, stream->fields, stream->field_count, component, -1, stream->name,
                           "stream");
}

static void
check_streams(struct validation *v, uint32_t index)
{
    const struct sl_topology_component *component = &v->topology->components[index];
    uint32_t count = component->stream_count;
    if (count > SL_TOPOLOGY_STREAMS_MAX) {
        report(v, SL_TOPOLOGY_TOO_LARGE, index, -1, "", "%s has %u streams; the limit is %d",
               quote(component->name).text, count, SL_TOPOLOGY_STREAMS_MAX);
        return;
    }
    struct entry *entries = sl_calloc((size_t)count + 1, sizeof(*entries));
    bool *is_duplicate = sl_calloc((size_t)count + 1, sizeof(*is_duplicate));
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = (struct entry){component->streams[i].name, "", i};
    }
    find_duplicates(entries, count, is_duplicate);
    for (uint32_t i = 0; i < count; i++) {
        check_stream(v, index, &component->streams[i]);
        if (is_duplicate[i]) {
            report(v, SL_TOPOLOGY_DUPLICATE_STREAM, index, -1, component->streams[i].name,
                   "stream %s is declared twice", quote(component->streams[i].name).text);
        }
    }
    sl_free(entries);
    sl_free(is_duplicate);
}

/* Checks the fields of a fields or partial_key grouping against the stream it reads. */
static void
check_input_fields(struct validation *v, uint32_t index, uint32_t at,
                   const struct sl_topology_stream *stream)
{
    const struct sl_topology_input *input = &v->topology->components[index].inputs[at];
    if (input->grouping != SL_GROUPING_FIELDS && input->grouping != SL_GROUPING_PARTIAL_KEY) {
        return;
    }
    const char *grouping = sl_grouping_kind_name((int32_t)input->grouping);
    if (input->field_count == 0) {
        report(v, SL_TOPOLOGY_NO_FIELDS, index, at, input->stream,
               "the %s grouping on %s names no field", grouping, quote(input->source).text);
        return;
    }
    if (input->field_count > SL_TOPOLOGY_KEYS_MAX) {
        report(v, SL_TOPOLOGY_TOO_LARGE, index, at, input->stream,
               "the %s grouping on %s names %u fields; the limit is %d", grouping,
               quote(input->source).text, input->field_count, SL_TOPOLOGY_KEYS_MAX);
        return;
    }
    check_duplicate_fields(v, input->fields, input->field_count, index, at, input->stream,
                           "the grouping on stream");
    for (uint32_t i = 0; stream != NULL && i < input->field_count; i++) {
        if (sl_topology_find_field(stream, input->fields[i]) < 0) {
            report(v, SL_TOPOLOGY_UNKNOWN_FIELD, index, at, input->stream,
                   "stream %s of %s has no field %s", quote(input->stream).text,
                   quote(input->source).text, quote(input->fields[i]).text);
        }
    }
}

static void
check_input(struct validation *v, uint32_t index, uint32_t at)
{
    const struct sl_topology_input *input = &v->topology->components[index].inputs[at];
    const struct sl_topology_stream *stream = NULL;
    int64_t source = sl__name_index_find(&v->names, input->source);
    if (sl_grouping_kind_name((int32_t)input->grouping) == NULL) {
        report(v, SL_TOPOLOGY_BAD_GROUPING, index, at, input->stream, "grouping %d does not exist",
               (int)input->grouping);
        return;
    }
    if (source < 0) {
        report(v, SL_TOPOLOGY_UNKNOWN_COMPONENT, index, at, input->stream,
               "%s reads from %s, which is no component of the topology",
               quote(v->topology->components[index].name).text, quote(input->source).text);
    } else {
        stream = sl_topology_find_stream(&v->topology->components[source], input->stream);
        if (stream == NULL) {
            report(v, SL_TOPOLOGY_UNKNOWN_STREAM, index, at, input->stream, "%s has no stream %s",
                   quote(input->source).text, quote(input->stream).text);
        }
    }
    check_input_fields(v, index, at, stream);
    if (stream == NULL) {
        return;
    }
    if (stream->is_direct && input->grouping != SL_GROUPING_DIRECT) {
        report(v, SL_TOPOLOGY_DIRECT_MISMATCH, index, at, input->stream,
               "stream %s of %s is direct and takes the direct grouping, not %s",
               quote(input->stream).text, quote(input->source).text,
               sl_grouping_kind_name((int32_t)input->grouping));
    } else if (!stream->is_direct && input->grouping == SL_GROUPING_DIRECT) {
        report(v, SL_TOPOLOGY_DIRECT_MISMATCH, index, at, input->stream,
               "the direct grouping needs a stream declared direct; stream %s of %s is not",
               quote(input->stream).text, quote(input->source).text);
    }
}

static void
check_inputs(struct validation *v, uint32_t index)
{
    const struct sl_topology_component *component = &v->topology->components[index];
    uint32_t count = component->input_count;
    if (component->kind == SL_COMPONENT_SPOUT && count > 0) {
        report(v, SL_TOPOLOGY_SPOUT_WITH_INPUTS, index, 0, component->inputs[0].stream,
               "spout %s has inputs; only bolts read streams", quote(component->name).text);
    }
    if (component->kind == SL_COMPONENT_BOLT && count == 0) {
        report(v, SL_TOPOLOGY_BOLT_WITHOUT_INPUTS, index, -1, "",
               "bolt %s has no inputs; add a grouping such as :shuffle(SOURCE)",
               quote(component->name).text);
    }
    if (count > SL_TOPOLOGY_INPUTS_MAX) {
        report(v, SL_TOPOLOGY_TOO_LARGE, index, -1, "", "%s has %u inputs; the limit is %d",
               quote(component->name).text, count, SL_TOPOLOGY_INPUTS_MAX);
        return;
    }
    struct entry *entries = sl_calloc((size_t)count + 1, sizeof(*entries));
    bool *is_duplicate = sl_calloc((size_t)count + 1, sizeof(*is_duplicate));
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = (struct entry){component->inputs[i].source, component->inputs[i].stream, i};
    }
    find_duplicates(entries, count, is_duplicate);
    for (uint32_t i = 0; i < count; i++) {
        check_input(v, index, i);
        if (is_duplicate[i]) {
            report(v, SL_TOPOLOGY_DUPLICATE_INPUT, index, i, component->inputs[i].stream,
                   "%s reads stream %s of %s twice", quote(component->name).text,
                   quote(component->inputs[i].stream).text,
                   quote(component->inputs[i].source).text);
        }
    }
    sl_free(entries);
    sl_free(is_duplicate);
}

static void
check_resource(struct validation *v, uint32_t index, const char *what, double amount)
{
    if (isnan(amount)) {
        return;
    }
    if (amount < 0 || isinf(amount)) {
        report(v, SL_TOPOLOGY_BAD_RESOURCE, index, -1, "",
               "%s of %s is %s; it must be a finite number and not negative", what,
               quote(v->topology->components[index].name).text, number_text(amount).text);
    }
}

/* True when the component's tasks own key groups: some input is grouped by fields. */
static bool
is_keyed(const struct sl_topology_component *component)
{
    for (uint32_t i = 0; i < component->input_count; i++) {
        if (component->inputs[i].grouping == SL_GROUPING_FIELDS) {
            return true;
        }
    }
    return false;
}

static void
check_parallelism(struct validation *v, uint32_t index)
{
    const struct sl_topology_component *component = &v->topology->components[index];
    if (component->parallelism == 0) {
        report(v, SL_TOPOLOGY_BAD_PARALLELISM, index, -1, "",
               "parallelism of %s is %s; it must be a whole number from 1 to %d",
               quote(component->name).text, number_text(component->parallelism_declared).text,
               SL_PARALLELISM_MAX);
        return;
    }
    if (v->key_groups != 0 && component->parallelism > v->key_groups && is_keyed(component)) {
        report(v, SL_TOPOLOGY_BAD_PARALLELISM, index, -1, "",
               "parallelism of %s is %u, more than the %u key groups its keys are spread over",
               quote(component->name).text, component->parallelism, v->key_groups);
    }
}

static void
check_kind(struct validation *v, uint32_t index)
{
    const struct sl_topology_component *component = &v->topology->components[index];
    switch (component->kind) {
    case SL_COMPONENT_SPOUT:
    case SL_COMPONENT_BOLT:
        return;
    case SL_COMPONENT_STATE_SPOUT:
        report(v, SL_TOPOLOGY_STATE_SPOUT, index, -1, "",
               "%s is a state spout; state spouts are reserved and can not be run",
               quote(component->name).text);
        return;
    case SL_COMPONENT_SYSTEM:
        break;
    }
    report(v, SL_TOPOLOGY_BAD_KIND, index, -1, "", "%s is neither a spout nor a bolt",
           quote(component->name).text);
}

static void
check_component(struct validation *v, uint32_t index)
{
    const struct sl_topology_component *component = &v->topology->components[index];
    check_name(v, "component name", component->name, index, "");
    if (sl__name_index_find(&v->names, component->name) != index) {
        report(v, SL_TOPOLOGY_DUPLICATE_COMPONENT, index, -1, "", "component %s is declared twice",
               quote(component->name).text);
    }
    check_kind(v, index);
    check_parallelism(v, index);
    check_resource(v, index, "cpu", component->resources.cpu_cores);
    check_resource(v, index, "ram", component->resources.ram_bytes);
    check_resource(v, index, "disk", component->resources.disk_bytes);
    check_streams(v, index);
    check_inputs(v, index);
}

static void
check_topology(struct validation *v)
{
    const struct sl_topology *topology = v->topology;
    check_name(v, "topology name", topology->name, -1, "");
    bool has_spout = false;
    for (uint32_t i = 0; i < topology->component_count && !has_spout; i++) {
        has_spout = topology->components[i].kind == SL_COMPONENT_SPOUT;
    }
    if (!has_spout) {
        report(v, SL_TOPOLOGY_NO_SPOUT, -1, -1, "", "topology %s has no spout",
               quote(topology->name).text);
    }
    if (v->key_groups == 0) {
        report(v, SL_TOPOLOGY_BAD_KEY_GROUPS, -1, -1, "",
               "key_groups must be a whole number from 1 to %d", SL_KEY_GROUPS_MAX);
    }
}

/* 'a' -> 'b' -> 'a', for a message. */
static void
report_cycle(struct validation *v, struct sl_topology_graph *graph, uint32_t index)
{
    enum { NAMED = 8 };
    uint32_t members[NAMED];
    uint32_t length = sl_topology_graph_cycle(graph, index, members, NAMED);
    struct sl_buf text;
    sl_buf_create(&text);
    for (uint32_t i = 0; i < length && i < NAMED; i++) {
        const char *name = v->topology->components[members[i]].name;
        sl_buf_printf(&text, "%s -> ", quote(name).text);
    }
    sl_buf_printf(&text, "%s%s", length > NAMED ? "... -> " : "",
                  quote(v->topology->components[index].name).text);
    report(
        v, SL_TOPOLOGY_CYCLE, index, -1, "",
        "bolts read each other in a cycle: %s; if it multiplies tuples it overflows and fails them",
        sl_buf_str(&text));
    sl_buf_destroy(&text);
}

/*
 * Warns of cycles, once a cycle at its first member, and of bolts that no spout's tuples get to.
 * The latter only when there are no errors: a misspelt source is told already.
 */
static void
check_graph(struct validation *v)
{
    const struct sl_topology *topology = v->topology;
    uint32_t count = topology->component_count;
    struct sl_topology_graph *graph = sl_topology_graph_new(topology);
    const struct sl_topology_place *places = sl_topology_graph_places(graph);
    bool *is_told = sl_calloc((size_t)count + 1, sizeof(*is_told));
    bool tells_unreachable = v->problems->error_count == 0;
    for (uint32_t i = 0; i < count; i++) {
        if (places[i].is_cyclic && !is_told[places[i].scc]) {
            is_told[places[i].scc] = true;
            report_cycle(v, graph, i);
        }
        if (tells_unreachable && !places[i].is_reachable) {
            report(v, SL_TOPOLOGY_UNREACHABLE, i, -1, "",
                   "bolt %s never gets a tuple: no spout leads to it",
                   quote(topology->components[i].name).text);
        }
    }
    sl_free(is_told);
    sl_topology_graph_free(graph);
}

struct sl_topology_problems *
sl_topology_validate_new(const struct sl_topology *topology)
{
    if (topology->is_system) {
        sl_err_set(SL_EINVAL, "%s is a system topology, which is derived from a valid one",
                   topology->name);
        return NULL;
    }
    struct validation v = {
        .topology = topology,
        .key_groups = sl_topology_key_groups(topology),
        .problems = sl_calloc(1, sizeof(struct sl_topology_problems)),
    };
    check_topology(&v);
    if (topology->component_count > SL_TOPOLOGY_COMPONENTS_MAX) {
        report(&v, SL_TOPOLOGY_TOO_LARGE, -1, -1, "",
               "the topology has %u components; the limit is %d", topology->component_count,
               SL_TOPOLOGY_COMPONENTS_MAX);
        return v.problems;
    }
    sl__name_index_create(&v.names, topology);
    for (uint32_t i = 0; i < topology->component_count; i++) {
        check_component(&v, i);
    }
    check_graph(&v);
    sl__name_index_destroy(&v.names);
    return v.problems;
}

void
sl_topology_problems_free(struct sl_topology_problems *problems)
{
    if (problems == NULL) {
        return;
    }
    for (uint32_t i = 0; i < problems->count; i++) {
        sl_free((char *)problems->items[i].component_name);
        sl_free((char *)problems->items[i].stream);
        sl_free((char *)problems->items[i].message);
    }
    sl_free(problems->items);
    sl_free(problems);
}

const char *
sl_topology_problem_name(int32_t code)
{
    static const char *const names[] = {
        [SL_TOPOLOGY_BAD_NAME] = "bad-name",
        [SL_TOPOLOGY_BAD_FIELD_NAME] = "bad-field-name",
        [SL_TOPOLOGY_DUPLICATE_COMPONENT] = "duplicate-component",
        [SL_TOPOLOGY_DUPLICATE_STREAM] = "duplicate-stream",
        [SL_TOPOLOGY_DUPLICATE_FIELD] = "duplicate-field",
        [SL_TOPOLOGY_DUPLICATE_INPUT] = "duplicate-input",
        [SL_TOPOLOGY_UNKNOWN_COMPONENT] = "unknown-component",
        [SL_TOPOLOGY_UNKNOWN_STREAM] = "unknown-stream",
        [SL_TOPOLOGY_UNKNOWN_FIELD] = "unknown-field",
        [SL_TOPOLOGY_NO_SPOUT] = "no-spout",
        [SL_TOPOLOGY_SPOUT_WITH_INPUTS] = "spout-with-inputs",
        [SL_TOPOLOGY_BOLT_WITHOUT_INPUTS] = "bolt-without-inputs",
        [SL_TOPOLOGY_NO_FIELDS] = "no-fields",
        [SL_TOPOLOGY_DIRECT_MISMATCH] = "direct-mismatch",
        [SL_TOPOLOGY_BAD_PARALLELISM] = "bad-parallelism",
        [SL_TOPOLOGY_BAD_KEY_GROUPS] = "bad-key-groups",
        [SL_TOPOLOGY_BAD_RESOURCE] = "bad-resource",
        [SL_TOPOLOGY_STATE_SPOUT] = "state-spout",
        [SL_TOPOLOGY_BAD_KIND] = "bad-kind",
        [SL_TOPOLOGY_BAD_GROUPING] = "bad-grouping",
        [SL_TOPOLOGY_TOO_LARGE] = "too-large",
        [SL_TOPOLOGY_CYCLE] = "cycle",
        [SL_TOPOLOGY_UNREACHABLE] = "unreachable",
    };
    if (code <= 0 || code >= (int32_t)(sizeof(names) / sizeof(names[0]))) {
        return NULL;
    }
    return names[code];
}

uint32_t
sl_topology_key_groups(const struct sl_topology *topology)
{
    if (sl_topology_setting(topology, "key_groups") != NULL) {
        double declared = 0;
        if (!sl_topology_setting_number(topology, "key_groups", &declared) ||
            !(declared >= 1 && declared <= SL_KEY_GROUPS_MAX) || declared != floor(declared)) {
            return 0;
        }
        return (uint32_t)declared;
    }
    uint32_t largest = 0;
    for (uint32_t i = 0; i < topology->component_count; i++) {
        if (topology->components[i].parallelism > largest) {
            largest = topology->components[i].parallelism;
        }
    }
    return sl_key_groups_default(largest);
}
