#pragma once
/*
 * The graph of a topology: an edge leads from the component that emits a stream to each bolt that
 * reads it. Sources that are no component of the topology have no edges.
 */
#include "topology/topology.h"

struct sl_topology_graph;

/* Works out the places of all components in O(components + inputs). Borrows the topology. */
struct sl_topology_graph *sl_topology_graph_new(const struct sl_topology *topology);

/* NULL is allowed. */
void sl_topology_graph_free(struct sl_topology_graph *graph);

/* One place a component, in order of declaration. */
const struct sl_topology_place *sl_topology_graph_places(const struct sl_topology_graph *graph);

/*
 * A shortest cycle through a component, which must be a cyclic one: writes the first `limit`
 * members, in the order of the edges and starting with the component itself. Returns the length of
 * the cycle.
 */
uint32_t sl_topology_graph_cycle(struct sl_topology_graph *graph, uint32_t component,
                                 uint32_t *members, uint32_t limit);
