/*
 * The documents of scheduling as flat arrays: what a scheduler is asked and what it answers.
 * Nothing here owns memory except struct sl_sched_result. Texts are NUL-terminated and borrowed.
 * Lists are given as a first index into one array of the request and a count.
 */

enum sl_sched_mode {
    /* All tasks are assigned; what ran before counts only with use_old_assignment. */
    SL_SCHED_NEW,
    /* Rescale and move nothing that need not move; sizes may become uneven. */
    SL_SCHED_KEEP,
    /* Rescale with a full plan from nothing. */
    SL_SCHED_REASSIGN,
    /* Sizes within one, all workers used, as few moved tasks as possible. */
    SL_SCHED_MINIMAL,
    /* Place dead tasks anew and leave everything else alone. */
    SL_SCHED_MONITOR,
    SL_SCHED_MODE_COUNT,
};

enum sl_sched_scheduler {
    SL_SCHED_BALANCED,
    SL_SCHED_EVEN,
    SL_SCHED_ROUND_ROBIN,
    SL_SCHED_PACKED,
    SL_SCHED_SCHEDULER_COUNT,
};

enum sl_sched_kind {
    SL_SCHED_SPOUT,
    SL_SCHED_BOLT,
    /* A task of the engine, like an acker: assigned last, without regard to who reads whom. */
    SL_SCHED_SYSTEM,
    /* The topology master: a system component with exactly one task. */
    SL_SCHED_MASTER,
};

enum sl_sched_tristate {
    SL_SCHED_NO = 0,
    SL_SCHED_YES = 1,
    SL_SCHED_AUTO = 2,
};

/* A node of the cluster and its slots. */
struct sl_sched_supervisor {
    const char *id;
    const char *host;
    /* Range in request.ports. */
    uint32_t first_port;
    uint32_t port_count;
    /* Range in request.used: ports that others hold; a port that is not the node's is ignored. */
    uint32_t first_used;
    uint32_t used_count;
    /* Cores and bytes that workers of this topology may take; negative = not stated, no limit. */
    double cpu;
    double ram;
};

struct sl_sched_component {
    const char *name;
    /* enum sl_sched_kind. */
    int32_t kind;
    /* Range in request.inputs: indexes of the components it reads. */
    uint32_t first_input;
    uint32_t input_count;
    /* Range in request.tasks: ids, at least 1, unique in the request. */
    uint32_t first_task;
    uint32_t task_count;
};

/* `count` tasks of one component. */
struct sl_sched_share {
    uint32_t component;
    uint32_t count;
};

/* A worker whose place or content the user fixed. */
struct sl_sched_user_worker {
    /* NULL = any host. */
    const char *host;
    /* -1 = any port. */
    int32_t port;
    /* Range in request.shares. */
    uint32_t first_share;
    uint32_t share_count;
    /* Negative = the request's worker_cpu and worker_ram. */
    double cpu;
    double ram;
};

/* A worker of the previous assignment; its supervisor need not exist any more. */
struct sl_sched_previous {
    const char *supervisor;
    const char *host;
    uint32_t port;
    /* Range in request.previous_tasks; ids that no component has any more are ignored. */
    uint32_t first_task;
    uint32_t task_count;
    /* Negative = the request's worker_cpu and worker_ram. */
    double cpu;
    double ram;
};

/* A container of a packing plan, for the scheduler `packed`. */
struct sl_sched_container {
    uint32_t id;
    /* The slot a stored plan names, or NULL and -1. */
    const char *supervisor;
    int32_t port;
    /* Range in request.container_tasks. */
    uint32_t first_task;
    uint32_t task_count;
    /* Negative = not stated. */
    double cpu;
    double ram;
};

struct sl_sched_request {
    /* enum sl_sched_mode. */
    int32_t mode;
    /* enum sl_sched_tristate: the topology master has a worker of its own. */
    int32_t master_alone;
    /* Workers asked for; 0 = one per task. */
    uint32_t workers;
    /* Free slots that must remain. */
    uint32_t reserve_workers;
    /* 0 or 1: workers of `previous` are taken over whole where they can be. */
    int32_t use_old_assignment;
    /* 0 or 1: there is a packing plan. */
    int32_t has_plan;
    /* What a worker takes unless the user said so; negative = unknown, takes nothing. */
    double worker_cpu;
    double worker_ram;

    const struct sl_sched_component *components;
    const uint32_t *inputs;
    const uint32_t *tasks;
    const struct sl_sched_supervisor *supervisors;
    const uint32_t *ports;
    const uint32_t *used;
    /* Hosts that may be used; none = all. */
    const char *const *isolation;
    const struct sl_sched_user_worker *user_workers;
    const struct sl_sched_share *shares;
    /* Components whose tasks must run on different supervisors. */
    const uint32_t *on_different_nodes;
    const struct sl_sched_previous *previous;
    const uint32_t *previous_tasks;
    const uint32_t *dead_tasks;
    const uint32_t *unstopped_tasks;
    const struct sl_sched_container *containers;
    const uint32_t *container_tasks;

    uint32_t component_count;
    uint32_t input_count;
    uint32_t task_count;
    uint32_t supervisor_count;
    uint32_t port_count;
    uint32_t used_count;
    uint32_t isolation_count;
    uint32_t user_worker_count;
    uint32_t share_count;
    uint32_t on_different_nodes_count;
    uint32_t previous_count;
    uint32_t previous_task_count;
    uint32_t dead_task_count;
    uint32_t unstopped_task_count;
    uint32_t container_count;
    uint32_t container_task_count;
};

/* A worker of the answer. The texts are those of the request and live as long as they do. */
struct sl_sched_worker {
    const char *supervisor;
    const char *host;
    uint32_t port;
    /* Range in result.tasks, ascending. */
    uint32_t first_task;
    uint32_t task_count;
    /* Negative = unknown. */
    double cpu;
    double ram;
};

/* An assignment: workers by (supervisor, port), each task exactly once. */
struct sl_sched_result {
    struct sl_sched_worker *workers;
    uint32_t *tasks;
    uint32_t worker_count;
    uint32_t task_count;
    /* Tasks of `previous` that exist and have another slot now. */
    uint32_t moved;
};
