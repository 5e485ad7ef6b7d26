/*
 * Packing as plain data: what a packer is given and what it returns. Components are named by their
 * position in the request's array; every array is borrowed for the call, a plan that a packer
 * returned owns its arrays. CPU is in cores, RAM and disk in bytes.
 */

enum sl_packing_packer {
    SL_PACKING_ROUND_ROBIN = 0,
    SL_PACKING_FIRST_FIT_DECREASING = 1,
    SL_PACKING_RESOURCE_COMPLIANT_RR = 2,
};

enum sl_packing_kind {
    SL_PACKING_SPOUT = 0,
    SL_PACKING_BOLT = 1,
    SL_PACKING_SYSTEM = 2,
};

/* What first fit decreasing sorts by first. */
enum sl_packing_sorting {
    SL_PACKING_RAM_FIRST = 0,
    SL_PACKING_CPU_FIRST = 1,
};

/* Which instances of a component that shrinks go. */
enum sl_packing_shrink {
    /* Containers empty: the highest of the one that the scorers put first (removal.h). */
    SL_PACKING_SHRINK_CONTAINERS = 0,
    /* Those with the highest task ids, wherever they are. */
    SL_PACKING_SHRINK_TASKS = 1,
};

/* The dimensions in which a container can be full. */
enum sl_packing_dimension {
    SL_PACKING_CPU = 0,
    SL_PACKING_RAM = 1,
    SL_PACKING_DISK = 2,
    SL_PACKING_DENSITY = 3,
};

enum {
    /* Stands for "not set" in every integer or floating-point setting below. */
    SL_PACKING_UNSET = -1,
    /* Most instances of one plan; more is SL_ELIMIT. */
    SL_PACKING_INSTANCES_MAX = 16777216,
    /* Highest container id, task and index of a plan, which leaves room for what is added. */
    SL_PACKING_ID_MAX = 2000000000,
    /* Most cores of one instance or container; more is SL_ERANGE. */
    SL_PACKING_CPU_MAX = 1000000,
};

struct sl_packing_component {
    /* For messages only: NUL-terminated, never NULL. */
    const char *name;
    /* An sl_packing_kind. */
    int32_t kind;
    /* Instances wanted at submission, >= 1. */
    int32_t parallelism;
    /* What one instance needs; SL_PACKING_UNSET leaves it to the packer. */
    double cpu;
    int64_t ram_bytes;
    int64_t disk_bytes;
};

/* Settings of the packers; SL_PACKING_UNSET takes the default that is named. */
struct sl_packing_config {
    /* Capacity of a container: max_instances times the default instance. */
    double container_cpu;
    int64_t container_ram_bytes;
    int64_t container_disk_bytes;
    /* Kept free in a container: 1 core; 1 GiB (round robin: 2 GiB). */
    double cpu_padding;
    int64_t ram_padding_bytes;
    /* Kept free at least, in percent of the capacity: 10. Not used by round robin. */
    double padding_percentage;
    /* Containers asked for at submission: 1. */
    int32_t containers;
    /* Instances a container is made for: 10. */
    int32_t max_instances;
    /* An sl_packing_sorting. */
    int32_t sorting;
};

struct sl_packing_instance {
    /* Position of the component in the request. */
    int32_t component;
    /* >= 1, unique in the plan. */
    int32_t task;
    /* >= 0, unique in the component. */
    int32_t index;
    double cpu;
    int64_t ram_bytes;
    int64_t disk_bytes;
};

/* instances[first .. first + count - 1] of the plan run in this container. */
struct sl_packing_container {
    /* >= 1, unique in the plan. */
    int32_t id;
    int32_t first;
    int32_t count;
    double cpu;
    int64_t ram_bytes;
    int64_t disk_bytes;
};

/* Round robin dropped the padding of a container because the components need that room. */
struct sl_packing_warning {
    int32_t container;
    /* SL_PACKING_CPU or SL_PACKING_RAM. */
    int32_t dimension;
};

/* Containers ascending by id, the instances of each ascending by task. */
struct sl_packing_plan {
    struct sl_packing_container *containers;
    struct sl_packing_instance *instances;
    struct sl_packing_warning *warnings;
    int32_t container_count;
    int32_t instance_count;
    int32_t warning_count;
};

struct sl_packing_request {
    const struct sl_packing_component *components;
    /* The plan to start from; NULL packs from nothing. Its arrays may be in any order. */
    const struct sl_packing_plan *current;
    /* Signed change of the instances of each component against `current`; NULL means none. */
    const int32_t *changes;
    struct sl_packing_config config;
    int32_t component_count;
    /* The number of containers that the plan must have, or SL_PACKING_UNSET. */
    int32_t containers;
    /* An sl_packing_shrink. */
    int32_t shrink;
};

enum sl_packing_container_state {
    SL_PACKING_UNAFFECTED = 0,
    SL_PACKING_MODIFIED = 1,
    SL_PACKING_NEW = 2,
    SL_PACKING_REMOVED = 3,
};

enum sl_packing_instance_state {
    SL_PACKING_KEPT = 0,
    SL_PACKING_MOVED = 1,
    SL_PACKING_STARTED = 2,
    SL_PACKING_STOPPED = 3,
};

struct sl_packing_container_delta {
    int32_t id;
    /* An sl_packing_container_state. */
    int32_t state;
    /* Position in the old and in the new plan's containers, -1 where there is none. */
    int32_t old_position;
    int32_t new_position;
};

struct sl_packing_instance_delta {
    int32_t component;
    int32_t task;
    /* An sl_packing_instance_state. */
    int32_t state;
    /* Container ids, -1 where the instance does not exist. */
    int32_t old_container;
    int32_t new_container;
};

/*
 * How one plan becomes another. Containers are matched by id and ascend by it; instances are
 * matched by (component, task) and ascend by (task, component).
 */
struct sl_packing_delta {
    struct sl_packing_container_delta *containers;
    struct sl_packing_instance_delta *instances;
    int32_t container_count;
    int32_t instance_count;
    int32_t kept;
    int32_t moved;
    int32_t started;
    int32_t stopped;
};
