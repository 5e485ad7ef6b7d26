/*
 * What Lua sees of plans and running topologies: plain structs, read-only for Lua but for a stored
 * plan, which it fills. Texts are NUL-terminated, never NULL. This is a bare header.
 */

/* A component of a plan. */
struct sl_plan_component {
    const char *name;
    /* The owner (a task) of each key group; NULL and 0 when nothing reads it by key. */
    int32_t *key_groups;
    uint32_t key_group_count;
};

/* Where a container runs; "" and 0 where there are no slots. */
struct sl_plan_slot {
    const char *supervisor;
    const char *host;
    uint32_t port;
};

/* The packing plan as the state manager keeps it. */
struct sl_stored_plan {
    const char *topology;
    uint64_t version;
    const char *packing;
    struct sl_plan_component *components;
    int32_t component_count;
    /* Instances name components by their position above. */
    struct sl_packing_plan plan;
    /* One for each container of the plan. */
    struct sl_plan_slot *slots;
    /* Where the topology master runs, and its task, which is in no container; 0: there are no
     * slots. */
    struct sl_plan_slot master;
    int32_t master_task;
};

enum sl_topology_state {
    SL_TOPOLOGY_STARTING = 1,
    SL_TOPOLOGY_RUNNING = 2,
    SL_TOPOLOGY_PAUSED = 3,
    SL_TOPOLOGY_KILLED = 4,
};

/* What is kept of a submission. */
struct sl_execution_state {
    const char *topology;
    /* Of this submission. */
    const char *topology_id;
    int64_t submitted_ms;
    const char *user;
    const char *host;
    /* Working directory of the submission. */
    const char *cwd;
    /* SHA-256 of the code package without its config, in hexadecimal digits. */
    const char *package_hash;
    const char *scheduler;
    enum sl_topology_state state;
    /* Spouts are to be called. */
    bool is_active;
};

struct sl_control_container {
    int32_t id;
    /* 0: none. */
    uint64_t pid;
    const char *host;
    uint32_t port;
    const char *state;
    uint32_t restarts;
};

struct sl_control_event {
    int64_t time_ms;
    const char *text;
};

/* Sums over the workers of a component. */
struct sl_worker_counters {
    const char *component;
    uint64_t executed;
    uint64_t emitted;
    uint64_t acked;
    uint64_t failed;
    uint64_t pending;
    uint64_t errors;
};

/* How a topology is, as its topology master says. */
struct sl_control_status {
    const char *topology;
    enum sl_topology_state state;
    uint64_t plan_version;
    /* Every worker runs the plan. */
    bool is_settled;
    /* "" unless the topology can not start. */
    const char *failure;
    uint64_t event_count;
    const struct sl_control_event *events;
    size_t shown_events;
    const struct sl_control_container *containers;
    size_t container_count;
    const struct sl_worker_counters *counters;
    size_t counter_count;
    uint64_t pid;
    uint64_t guardian_pid;
};

/* A question for the log of a container, which its supervisor has, and the answer. */
struct sl_log_question {
    const char *supervisor;
    int32_t container;
    /* Where to read on, and then where the data begins. */
    uint64_t position;
    /* Only the end of what is there. */
    bool is_end;
    /* 0, SL_ENOTFOUND for no such log, SL_EUNAVAIL, and the words to it. */
    int32_t code;
    const char *reason;
    const uint8_t *data;
    size_t size;
};

enum sl_update_outcome {
    SL_UPDATE_DONE = 0,
    SL_UPDATE_ROLLED_BACK = 1,
    SL_UPDATE_NOT_ROLLED_BACK = 2,
};

struct sl_update_result {
    enum sl_update_outcome outcome;
    /* SL_E code and words of a failure. */
    int32_t code;
    const char *reason;
    uint64_t from_version;
    uint64_t to_version;
    uint64_t paused_ms;
    uint64_t total_ms;
    uint64_t groups_moved;
    uint64_t bytes_moved;
};

/* A file of a code package; its path is relative, with '/', without empty, "." or ".." parts. */
struct sl_package_file {
    const char *path;
    const uint8_t *content;
    size_t size;
};

/* The code of a topology as it is shipped. */
struct sl_package {
    /* Path of the script among the files. */
    const char *script;
    /* Sorted by path, each path once. */
    const struct sl_package_file *files;
    size_t file_count;
    /* Canonical text of the config over the script's own and of the one below it. */
    const char *overrides;
    size_t overrides_size;
    const char *defaults;
    size_t defaults_size;
};

/* A topology as `load` of a client finds it. What is not there is NULL. */
struct sl_topology_view {
    const struct sl_execution_state *execution;
    const struct sl_stored_plan *plan;
    /* The definition (sl_abi_topology_decode reads it). */
    const uint8_t *definition;
    size_t definition_size;
    /* Some process leads it. */
    bool is_led;
};
