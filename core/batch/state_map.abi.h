/* What C and Lua share of the state of streams. This is a bare header. */

/* The state of one partition of a stateful stream; see batch/state_map.h. */
struct sl_state_map;
