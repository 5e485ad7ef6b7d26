#pragma once
/*
 * The logical topology: which components there are, what they emit, who reads whom and how, how
 * many tasks each wants and which resources. It is a value: built once, then read; a change of a
 * running topology is a new packing plan, never a new topology.
 *
 * The builder takes what it is given, wrong or not, because validation reports every problem at
 * once (validate.h). Nothing here does I/O or reads a clock. All texts are copied.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topology/topology.abi.h"

/* Text of a NUL-terminated string. */
struct sl_topology_text sl_topology_text(const char *text);

/* An empty topology; free it with sl_topology_free. */
struct sl_topology *sl_topology_new(struct sl_topology_text name);

/* An independent copy of everything. */
struct sl_topology *sl_topology_dup(const struct sl_topology *topology);

/* NULL is allowed. */
void sl_topology_free(struct sl_topology *topology);

/* Adds a component at the end. Returns its index from 0; pointers to components move. */
uint32_t sl_topology_add(struct sl_topology *topology,
                         const struct sl_topology_component_spec *spec);

/* Adds a copy of a component of any topology at the end, with its streams and inputs. */
uint32_t sl_topology_copy_component(struct sl_topology *topology,
                                    const struct sl_topology_component *source);

/* Adds a stream to a component that exists. Returns the stream's index. */
uint32_t sl_topology_add_stream(struct sl_topology *topology, uint32_t component,
                                const struct sl_topology_stream_spec *spec);

/* Adds an input to a component that exists. Returns the input's index. */
uint32_t sl_topology_add_input(struct sl_topology *topology, uint32_t component,
                               const struct sl_topology_input_spec *spec);

/* Sets a key of the topology's config to a canonical value, replacing an earlier one. */
void sl_topology_set(struct sl_topology *topology, struct sl_topology_text key,
                     struct sl_topology_text value);

/* The setting with this key, or NULL. */
const struct sl_topology_setting *sl_topology_setting(const struct sl_topology *topology,
                                                      const char *key);

/*
 * The value of a key that holds a number or a boolean (1 or 0). Returns false, and leaves *value
 * alone, when the key is absent or holds anything else.
 */
bool sl_topology_setting_number(const struct sl_topology *topology, const char *key, double *value);

/* The first component with this name, or NULL. */
const struct sl_topology_component *sl_topology_find(const struct sl_topology *topology,
                                                     const char *name);

/* The first stream of the component with this name, or NULL. */
const struct sl_topology_stream *
sl_topology_find_stream(const struct sl_topology_component *component, const char *name);

/* Position of a field in a stream, or -1. */
int32_t sl_topology_find_field(const struct sl_topology_stream *stream, const char *field);

/* True when both say the same, in the same order (NaN equals NaN). */
bool sl_topology_equal(const struct sl_topology *a, const struct sl_topology *b);

/* "spout", "bolt", "state_spout", "system"; NULL for other numbers. Static text. */
const char *sl_component_kind_name(int32_t kind);

/* "shuffle", "fields", "local_or_shuffle" and so on; NULL for other numbers. Static text. */
const char *sl_grouping_kind_name(int32_t grouping);
