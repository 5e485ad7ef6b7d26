#pragma once
/*
 * The physical plan (proto/physical_plan.proto): the packing plan that runs, with the process
 * behind each container. The topology master makes it, publishes it in the state manager and sends
 * it to its workers, which act on the newest one they have seen: compare (token, epoch).
 */

#include "cluster/stored_plan.h"
#include "rpc/messages.h"

enum {
    SL_PHYSICAL_PLAN_FORMAT = 1,
    SL_PHYSICAL_PLAN_BYTES_MAX = 64 * 1024 * 1024,
    /* Bytes of a worker's identity. */
    SL_IDENTITY_SIZE = SL_WORKER_IDENTITY_SIZE,
};

struct sl_physical_container {
    int32_t id;
    /* False while no worker is registered for it; what follows is empty then. */
    bool is_registered;
    uint8_t identity[SL_IDENTITY_SIZE];
    const char *host;
    uint32_t data_port;
    const char *address;
    uint64_t pid;
};

struct sl_physical_task {
    int32_t task;
    /* Position in `components`. */
    int32_t component;
    int32_t index;
    /* Id of its container. */
    int32_t container;
    /* It is to be made ready, and gets no tuples yet: it belongs to the next plan. */
    bool is_coming;
};

struct sl_physical_plan {
    const char *topology;
    /* Of this submission. */
    const char *topology_id;
    uint64_t plan_version;
    /* Term of the topology master, and number of the publication in it. */
    uint64_t token;
    uint64_t epoch;
    enum sl_topology_state state;
    /* Not all workers have it: nothing begins by the clock, and tasks that are opened wait. */
    bool is_held;
    struct sl_plan_component *components;
    int32_t component_count;
    /* Ascending by id. */
    struct sl_physical_container *containers;
    int32_t container_count;
    /* Ascending by task. */
    struct sl_physical_task *tasks;
    int32_t task_count;
};

/* "RUNNING" and so on; NULL for other numbers. Static text. */
const char *sl_topology_state_name(int state);

/* Appends the bytes. SL_ELIMIT when they are too many. */
int sl_physical_plan_encode(const struct sl_physical_plan *plan, struct sl_buf *out);

/*
 * Reads a plan; everything lies in the arena. SL_EPROTO or SL_ELIMIT. What it gives has valid
 * names, a known state, containers and tasks in ascending order without twins, and tasks of known
 * components and containers.
 */
int sl_physical_plan_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                            struct sl_physical_plan *plan);

/*
 * Makes the physical plan of a packing plan, without workers and in state STARTING, in the arena.
 * Texts and key groups stay those of the packing plan.
 */
void sl_physical_plan_from_stored(const struct sl_stored_plan *stored, const char *topology_id,
                                  struct sl_arena *arena, struct sl_physical_plan *plan);

/* The container of an id, or NULL. */
struct sl_physical_container *sl_physical_plan_container(const struct sl_physical_plan *plan,
                                                         int32_t id);

/* True when every container has a worker. */
bool sl_physical_plan_is_complete(const struct sl_physical_plan *plan);
