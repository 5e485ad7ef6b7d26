#pragma once
/*
 * Everything that can be wrong with a user's topology, found in one pass: a list of all problems,
 * not only the first, in order of declaration. Errors come from what the topology says; warnings
 * from the shape of its graph (a cycle of bolts, a bolt that no spout's tuples get to).
 */
#include "topology/topology.h"

struct sl_topology_problems {
    uint32_t count;
    /* How many of them are errors. */
    uint32_t error_count;
    struct sl_topology_problem *items;
};

/*
 * Checks a user's topology. Returns a list to free with sl_topology_problems_free, empty when all
 * is well; NULL with SL_EINVAL for a system topology, which is derived and has nothing to check.
 */
struct sl_topology_problems *sl_topology_validate_new(const struct sl_topology *topology);

/* NULL is allowed. */
void sl_topology_problems_free(struct sl_topology_problems *problems);

/* "unknown-component" and so on; NULL for other numbers. Static text. */
const char *sl_topology_problem_name(int32_t code);

/* The number of key groups of a topology: config key_groups, else the default; 0 when it is
 * invalid. */
uint32_t sl_topology_key_groups(const struct sl_topology *topology);
