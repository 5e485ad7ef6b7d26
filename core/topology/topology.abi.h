/*
 * What C and Lua share about logical topologies: the topology itself, problems and task ranges. Lua
 * reads the structs and never writes them; the functions are in abi/topology.abi.h.
 * This is a bare header: no preprocessor lines, only what both gcc and LuaJIT's parser accept.
 */

/* What a component is. State spouts are reserved: they can be written down but never validate. */
enum sl_component_kind {
    SL_COMPONENT_SPOUT = 1,
    SL_COMPONENT_BOLT = 2,
    SL_COMPONENT_STATE_SPOUT = 3,
    /* Added by the engine (__acker and so on); never part of what a user declares. */
    SL_COMPONENT_SYSTEM = 4,
};

/* How the tuples of a stream are spread over the tasks of a bolt that reads it. */
enum sl_grouping_kind {
    SL_GROUPING_SHUFFLE = 1,
    SL_GROUPING_FIELDS = 2,
    SL_GROUPING_ALL = 3,
    SL_GROUPING_GLOBAL = 4,
    SL_GROUPING_DIRECT = 5,
    SL_GROUPING_NONE = 6,
    SL_GROUPING_LOCAL_OR_SHUFFLE = 7,
    SL_GROUPING_PARTIAL_KEY = 8,
    SL_GROUPING_CUSTOM = 9,
};

/* Bytes given to the builder, borrowed for the call. */
struct sl_topology_text {
    const char *data;
    size_t len;
};

/* A stream a component emits. */
struct sl_topology_stream {
    char *name;
    /* True when the emitter names the receiving task itself. */
    bool is_direct;
    uint32_t field_count;
    char **fields;
};

/* A stream a component reads. */
struct sl_topology_input {
    /* Component that emits it, by name; it may be declared later, or not at all (a problem). */
    char *source;
    char *stream;
    enum sl_grouping_kind grouping;
    /* Fields of SL_GROUPING_FIELDS and SL_GROUPING_PARTIAL_KEY, in the order given. */
    uint32_t field_count;
    char **fields;
    /* SL_GROUPING_CUSTOM: where the function is found in the code, "" for other groupings. */
    char *custom_ref;
};

/* What one task of a component needs. NaN = unset: the packing's default applies. */
struct sl_topology_resources {
    double cpu_cores;
    double ram_bytes;
    double disk_bytes;
};

/* One key of the topology's config. */
struct sl_topology_setting {
    char *key;
    /* Canonical text of the value (docs in lua/streamlua/topology/canonical.lua), NUL after it. */
    uint8_t *value;
    size_t value_len;
};

struct sl_topology_component {
    enum sl_component_kind kind;
    char *name;
    /* The code: path of the script, and the component's name in it. "" for system components. */
    char *script;
    char *code_name;
    /* As declared: any number, so that validation can say what is wrong with it. */
    double parallelism_declared;
    /* The number of tasks; 0 when the declared number is no integer of 1 .. SL_PARALLELISM_MAX. */
    uint32_t parallelism;
    struct sl_topology_resources resources;
    /* Canonical text of the component's own config, or empty. */
    uint8_t *config;
    size_t config_len;
    uint32_t stream_count;
    struct sl_topology_stream *streams;
    uint32_t input_count;
    struct sl_topology_input *inputs;
};

struct sl_topology {
    char *name;
    /* True for the result of sl_system_topology_new. */
    bool is_system;
    uint32_t component_count;
    /* In order of declaration; the order decides task ids. */
    struct sl_topology_component *components;
    uint32_t setting_count;
    /* Sorted by key, bytewise. */
    struct sl_topology_setting *settings;
};

/* A component to be added, without its streams and inputs. */
struct sl_topology_component_spec {
    enum sl_component_kind kind;
    struct sl_topology_text name;
    struct sl_topology_text script;
    struct sl_topology_text code_name;
    double parallelism;
    struct sl_topology_resources resources;
    struct sl_topology_text config;
};

/* A stream to be added. fields may be NULL when field_count is 0. */
struct sl_topology_stream_spec {
    struct sl_topology_text name;
    bool is_direct;
    const struct sl_topology_text *fields;
    uint32_t field_count;
};

/* An input to be added. field_count may be 0, custom_ref empty. */
struct sl_topology_input_spec {
    struct sl_topology_text source;
    struct sl_topology_text stream;
    enum sl_grouping_kind grouping;
    const struct sl_topology_text *fields;
    uint32_t field_count;
    struct sl_topology_text custom_ref;
};

enum sl_topology_severity {
    /* The topology can not be run. */
    SL_TOPOLOGY_ERROR = 1,
    /* It can be run, and probably is not what was meant. */
    SL_TOPOLOGY_WARNING = 2,
};

/* What is wrong. sl_topology_problem_name() gives the word that messages and JSON carry. */
enum sl_topology_problem_code {
    SL_TOPOLOGY_BAD_NAME = 1,
    SL_TOPOLOGY_BAD_FIELD_NAME = 2,
    SL_TOPOLOGY_DUPLICATE_COMPONENT = 3,
    SL_TOPOLOGY_DUPLICATE_STREAM = 4,
    SL_TOPOLOGY_DUPLICATE_FIELD = 5,
    SL_TOPOLOGY_DUPLICATE_INPUT = 6,
    SL_TOPOLOGY_UNKNOWN_COMPONENT = 7,
    SL_TOPOLOGY_UNKNOWN_STREAM = 8,
    SL_TOPOLOGY_UNKNOWN_FIELD = 9,
    SL_TOPOLOGY_NO_SPOUT = 10,
    SL_TOPOLOGY_SPOUT_WITH_INPUTS = 11,
    SL_TOPOLOGY_BOLT_WITHOUT_INPUTS = 12,
    SL_TOPOLOGY_NO_FIELDS = 13,
    SL_TOPOLOGY_DIRECT_MISMATCH = 14,
    SL_TOPOLOGY_BAD_PARALLELISM = 15,
    SL_TOPOLOGY_BAD_KEY_GROUPS = 16,
    SL_TOPOLOGY_BAD_RESOURCE = 17,
    SL_TOPOLOGY_STATE_SPOUT = 18,
    SL_TOPOLOGY_BAD_KIND = 19,
    SL_TOPOLOGY_BAD_GROUPING = 20,
    SL_TOPOLOGY_TOO_LARGE = 21,
    SL_TOPOLOGY_CYCLE = 22,
    SL_TOPOLOGY_UNREACHABLE = 23,
};

/* One finding of validation. */
struct sl_topology_problem {
    /* enum sl_topology_problem_code. */
    int32_t code;
    /* enum sl_topology_severity. */
    int32_t severity;
    /* Index of the component it is about, from 0 in order of declaration; -1 = the whole topology.
     */
    int32_t component;
    /* Index of the input of that component it is about; -1 = none. */
    int32_t input;
    /* Name of the component, "" for the whole topology. Lives as long as the list. */
    const char *component_name;
    /* Name of the stream it is about, "" when it is about none. Lives as long as the list. */
    const char *stream;
    /* One sentence without a place, for people. Lives as long as the list. */
    const char *message;
};

/* Where a component stands in the graph of who reads whom. */
struct sl_topology_place {
    /*
     * 0 for components that read nobody, else 1 + the highest rank among those it reads; members of
     * one cycle share a rank.
     */
    int32_t rank;
    /* Number of its strongly connected component, from 0, every edge leads to an equal or higher
     * one. */
    int32_t scc;
    /* True when it is on a cycle: in one with others, or reading itself. */
    bool is_cyclic;
    /* True for spouts and for what a spout's tuples can get to. */
    bool is_reachable;
};

/* The tasks of a component: ids first .. first + count - 1. */
struct sl_task_range {
    int32_t first;
    /* 0 for __metrics and __system, which every worker carries and which have no task. */
    int32_t count;
};

enum {
    SL_PARALLELISM_MAX = 1000000,
    SL_KEY_GROUPS_MIN = 128,
    SL_KEY_GROUPS_MAX = 32768,
    /* Longest field name, in bytes. */
    SL_TOPOLOGY_FIELD_MAX = 256,
    /* Limits that keep a hostile or runaway definition bounded; validation and decoding share them.
     */
    SL_TOPOLOGY_COMPONENTS_MAX = 65536,
    SL_TOPOLOGY_STREAMS_MAX = 4096,
    SL_TOPOLOGY_FIELDS_MAX = 4096,
    SL_TOPOLOGY_INPUTS_MAX = 65536,
    /* Fields that a grouping names. */
    SL_TOPOLOGY_KEYS_MAX = 64,
    SL_TOPOLOGY_CONFIG_MAX = 65536,
};
