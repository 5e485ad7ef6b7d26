/*
 * Logical topologies for Lua: build, validate, look at the graph, derive the system topology,
 * number tasks, spread key groups, encode. Structs are in topology/topology.abi.h. Functions that
 * return int32_t give 0 or a count on success and a negative SL_E code on failure; those that
 * return a pointer give NULL on failure. Texts are borrowed for the call. This is a bare header: no
 * preprocessor lines, only what both gcc and LuaJIT's parser accept.
 */

/* A list of problems. */
struct sl_topology_problems;

/* Returns an empty topology, to be freed with sl_abi_topology_free. NULL: no name given. */
struct sl_topology *sl_abi_topology_new(const char *name, size_t name_len);

/* Frees a topology of any function here. NULL is allowed. */
void sl_abi_topology_free(struct sl_topology *topology);

/* Adds a component; nothing is validated yet. Returns its index from 0, or SL_EINVAL. */
int32_t sl_abi_topology_add(struct sl_topology *topology,
                            const struct sl_topology_component_spec *spec);

/* Adds a stream to the component with this index. Returns the index of the stream, or SL_EINVAL. */
int32_t sl_abi_topology_add_stream(struct sl_topology *topology, int32_t component,
                                   const struct sl_topology_stream_spec *spec);

/* Adds an input to the component with this index. Returns the index of the input, or SL_EINVAL. */
int32_t sl_abi_topology_add_input(struct sl_topology *topology, int32_t component,
                                  const struct sl_topology_input_spec *spec);

/* Sets a config key to a canonical value (streamlua.topology.canonical). Returns 0 or SL_EINVAL. */
int32_t sl_abi_topology_set(struct sl_topology *topology, struct sl_topology_text key,
                            struct sl_topology_text value);

/*
 * Returns everything that is wrong with a user's topology, to be freed with
 * sl_abi_topology_problems_free. NULL (SL_EINVAL) for a system topology.
 */
struct sl_topology_problems *sl_abi_topology_validate(const struct sl_topology *topology);

/* Frees a list of problems. NULL is allowed. */
void sl_abi_topology_problems_free(struct sl_topology_problems *problems);

/* Returns the number of problems, or SL_EINVAL. */
int32_t sl_abi_topology_problem_count(const struct sl_topology_problems *problems);

/* Returns a problem by its index from 0, valid as long as the list; NULL out of range. */
const struct sl_topology_problem *
sl_abi_topology_problem(const struct sl_topology_problems *problems, int32_t index);

/* Returns the word for a problem code, "unknown-component" and so on; NULL for other numbers. */
const char *sl_abi_topology_problem_name(int32_t code);

/* Returns "spout", "bolt", "state_spout" or "system"; NULL for other numbers. */
const char *sl_abi_component_kind_name(int32_t kind);

/*
 * Writes the place of every component in the graph; count must be the number of components. Returns
 * 0 or SL_EINVAL.
 */
int32_t sl_abi_topology_places(const struct sl_topology *topology, struct sl_topology_place *places,
                               int32_t count);

/*
 * Returns the system topology of a valid user's topology, a new value. ackers is the number of
 * acker tasks, -1 = as the topology's config says. NULL with SL_EINVAL.
 */
struct sl_topology *sl_abi_topology_system(const struct sl_topology *topology, int32_t ackers);

/*
 * Writes the first task ids of a system topology, a range a component; count must be the number of
 * components. Returns 0, SL_EINVAL or SL_ERANGE.
 */
int32_t sl_abi_topology_task_ranges(const struct sl_topology *topology,
                                    struct sl_task_range *ranges, int32_t count);

/* Returns the number of key groups of a topology: config key_groups or the default; or SL_EINVAL.
 */
int32_t sl_abi_topology_key_groups(const struct sl_topology *topology);

/*
 * Writes the first owner (a task id) of each of group_count groups: contiguous ranges in the order
 * of the task_count tasks, equal within 1. Returns 0 or SL_EINVAL.
 */
int32_t sl_abi_key_groups_assign(const int32_t *tasks, int32_t task_count, int32_t *owners,
                                 int32_t group_count);

/*
 * Writes the owners after a change of the tasks, equal within 1 and with the fewest groups moved;
 * new_owners may be old_owners. Returns the number of groups that moved, or SL_EINVAL.
 */
int32_t sl_abi_key_groups_rebalance(const int32_t *old_owners, int32_t group_count,
                                    const int32_t *tasks, int32_t task_count, int32_t *new_owners);

/*
 * Encodes a topology (proto/topology.proto). Returns the number of bytes, which are written to data
 * when capacity is not less; SL_EINVAL or SL_ELIMIT.
 */
int32_t sl_abi_topology_encode(const struct sl_topology *topology, uint8_t *data, size_t capacity);

/* Returns the topology that bytes encode, a new value. NULL with SL_EPROTO, SL_ELIMIT or SL_EINVAL.
 */
struct sl_topology *sl_abi_topology_decode(const uint8_t *data, size_t size);

/* Returns 1 when two topologies say the same, else 0; SL_EINVAL without two topologies. */
int32_t sl_abi_topology_equal(const struct sl_topology *a, const struct sl_topology *b);
