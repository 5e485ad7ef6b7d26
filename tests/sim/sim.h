#pragma once
/*
 * A whole control plane in one thread and in virtual time: master candidates, supervisors, topology
 * masters, workers and clients, made of the real state machines and the real calls, over the
 * simulated loop and the simulated ZooKeeper. A seed decides the faults and repeats the run.
 *
 *     world -- one per seed
 *       proc -- one process of the cluster: loop, store, rpc service, and one role
 *
 * A process that dies is a proc that ends; who comes back under its name is a new proc. Violations
 * of an invariant end the run (world_fail).
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/random.h"
#include "base/vec.h"
#include "cluster/resource_manager.h"
#include "cluster/slot_pool.h"
#include "cluster/slot_table.h"
#include "loop/loop.h"
#include "loop/process.h"
#include "loop/sim.h"
#include "rpc/connections.h"
#include "rpc/heartbeat.h"
#include "rpc/messages.h"
#include "rpc/rpc.h"
#include "state/election.h"
#include "state/leader.h"
#include "state/lock.h"
#include "state/memory.h"
#include "state/state.h"

enum {
    MASTERS = 3,
    SUPERVISORS = 5,
    /* Slots of each supervisor. */
    PORTS = 5,
    TOPOLOGIES = 4,
    /* Workers of each topology: 20 of the 25 slots. */
    WORKERS = 5,
    /* The first topologies have a second topology master that stands by. */
    STANDBYS = 2,
    TOPOLOGY_MASTERS = TOPOLOGIES + STANDBYS,
    /* Programs that change plans under the lock, as `update` does. */
    CLIENTS = 2,
    /* Processes that are started again when they end; workers belong to their supervisors. */
    MEMBERS = MASTERS + SUPERVISORS + TOPOLOGY_MASTERS + CLIENTS,

    FIRST_PORT = 7001,
    SESSION_MS = 3000,
    STATE_MS = 2000,
    CALL_MS = 1000,
    HEARTBEAT_MS = 400,
    HEARTBEAT_TIMEOUT_MS = 2000,
    SLOT_TIMEOUT_MS = 3000,
    POOL_REQUEST_MS = 8000,
    POOL_IDLE_MS = 3000,
    REGISTRATION_MS = 30000,
    METHODS_MAX = 16,
    /* Of one virtual second; a cluster of this size needs some thousands. */
    EVENTS_MAX = 50000,
    /* In the store: folders, leaders, and one for each who holds a lock or waits for it. */
    NODES_MAX = 150,
    /* Within this time after the last fault everything must be in order again. */
    HEALING_MS = 60000,
};

enum kind {
    MASTER,
    SUPERVISOR,
    TOPOLOGY_MASTER,
    CLIENT,
    WORKER,
};

enum ending {
    /* Everything is said and closed. */
    END_GRACEFUL,
    /* kill -9: the system closes its connections. */
    END_KILLED,
    /* The machine is gone: nobody is told. */
    END_SILENT,
};

struct world;
struct proc;

/* A loop as the executor of a store. When the loop's process dies, the store's last tasks go to
 * another loop, so that its memory is freed. */
struct executor {
    struct sl_state_executor base;
    struct sl_loop *loop;
    struct sl_list tasks;
    /* ticket -> timer. */
    struct sl_map_u64 timers;
    uint64_t last_ticket;
};

void executor_create(struct executor *self, struct sl_loop *loop);
void executor_move(struct executor *self, struct sl_loop *loop);
void executor_destroy(struct executor *self);

/* What a role is made of. `role` is what start returned. */
struct role {
    const char *name;
    void *(*start)(struct proc *proc);
    /* Frees the role; of a process that was killed, nobody hears its last words. */
    void (*stop)(void *role);
    /* Looks at what must always hold. */
    void (*check)(void *role);
};

extern const struct role master_role;
extern const struct role supervisor_role;
extern const struct role topology_master_role;
extern const struct role worker_role;
extern const struct role client_role;

/* An endpoint whose messages go through the network's hands. */
struct port {
    struct proc *proc;
    struct sl_rpc_endpoint *endpoint;
    /* Its own methods and their context. */
    const struct sl_rpc_method *methods;
    void *ctx;
    /* Those that stand in for them. */
    struct sl_rpc_method meddled[METHODS_MAX];
};

struct proc {
    struct world *world;
    struct sl_list_node node;
    enum kind kind;
    const struct role *ops;
    void *role;
    /* Unlike any other process of the run. */
    uint64_t serial;
    /* Of its kind; of a topology master, the place in world->members. */
    int index;
    char name[32];
    char host[24];
    struct sl_loop *loop;
    struct executor executor;
    struct sl_state_backend *backend;
    struct sl_state_store *store;
    struct sl_rpc *rpc;
    bool is_dead;
    bool is_paused;
    /* The store is closed: nothing comes back any more. */
    bool is_closed;
    /* It ended itself, and is taken away after the turn. */
    bool wants_exit;
    uint64_t resumed_ms;
    struct port endpoint;
    /* Messages that the network has: id -> request without an answer. */
    struct sl_map_u64 held;
    uint64_t next_held;

    /* Of a worker. */
    int topology;
    int64_t pid;
    uint64_t allocation;
    uint32_t port;
    uint64_t supervisor_serial;
};

/* A place for a process that is always started again. */
struct member {
    enum kind kind;
    int index;
    struct proc *proc;
    uint64_t restart_ms;
};

/* What the run's seed decided about faults. */
struct fault_plan {
    uint32_t kinds;
    /* In parts of a million, for each message. */
    uint32_t drop_ppm;
    uint32_t duplicate_ppm;
    uint32_t delay_ppm;
    uint32_t delay_max_ms;
    struct sl_memory_faults store;
    bool has_calm_start;
};

/* A fault that ends at some time. */
struct undo {
    uint64_t at_ms;
    int kind;
    uint64_t serial;
    char from[24];
    char to[24];
};

/* What became of a write to the store, as its writer was told. */
enum outcome {
    OUTCOME_OPEN,
    OUTCOME_DONE,
    OUTCOME_REFUSED,
    OUTCOME_UNKNOWN,
};

struct world {
    uint64_t seed;
    unsigned steps;
    bool is_tracing;
    struct sl_sim *sim;
    /* Decides faults; what the cluster itself draws comes from its loops. */
    struct sl_random random;
    uint64_t trace_hash;
    /* Empty while all is well. */
    char failure[512];
    bool is_over;
    bool is_healing;

    /* ZooKeeper's loop, which also finishes what dead processes leave. */
    struct sl_loop *keeper;
    struct executor keeper_executor;
    struct sl_memory_server *server;

    struct sl_list procs;
    struct member members[MEMBERS];
    struct sl_map_u64 by_serial;
    /* Process id -> worker. */
    struct sl_map_u64 by_pid;
    uint64_t next_serial;

    struct fault_plan faults;
    struct {
        struct undo *items;
        size_t count;
        size_t capacity;
    } undos;

    /* A process of the network, that delivers copies and late messages. */
    struct sl_loop *ghost;
    struct sl_rpc *ghost_rpc;
    struct sl_list ghosts;

    /* What the checks remember. */
    bool is_changed;
    /* A session was ended at will: who counted on it could not know. */
    bool has_expired;
    uint64_t checks;
    uint64_t second;
    uint64_t second_events;
    uint64_t last_zxid;
    /* Token and place -> serial of the master or topology master that was granted it. */
    struct sl_map_u64 terms;
    /* token -> serial of the master that a supervisor was asked by. */
    struct sl_map_u64 acts;
    /* Of the leader nodes and fenced values: the last token seen. */
    uint64_t seen_leader[TOPOLOGIES + 1];
    uint64_t seen_journal;
    uint64_t seen_plan_zxid[TOPOLOGIES];
    uint64_t seen_plan_token[TOPOLOGIES];
    uint64_t seen_plan_count[TOPOLOGIES];
    /* operation -> enum outcome; operations whose value was seen in the store; operation -> process
     * and time of the start, of those that have not ended. */
    struct sl_map_u64 outcomes;
    struct sl_map_u64 applied;
    struct sl_map_u64 open;
    uint64_t next_operation;
    /* Commits that succeeded, by topology. */
    uint64_t commits[TOPOLOGIES];

    struct {
        uint64_t events;
        uint64_t faults;
        uint64_t commits;
        uint64_t fenced;
        uint64_t stale;
        uint64_t copies;
        uint64_t healed_ms;
    } stats;
};

/* world.c: a run. */
struct run_result {
    uint64_t trace_hash;
    uint64_t at_ms;
    char failure[512];
    uint64_t events;
    uint64_t checks;
    uint64_t faults;
    uint64_t healed_ms;
    uint64_t commits;
    uint64_t fenced;
    uint64_t stale;
};

void world_run(uint64_t seed, unsigned steps, bool is_tracing, struct run_result *result);

/* The first failure counts; the run ends after the turn. */
void world_fail(struct world *world, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A line of the run's story: part of its hash, and printed when asked. */
void world_trace(struct world *world, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void proc_trace(struct proc *proc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

uint64_t world_now(const struct world *world);

/* proc.c */
struct proc *proc_new(struct world *world, enum kind kind, int index, const char *name,
                      const char *host);
/* Gives it its role; separate, so that a worker knows its place before. */
void proc_start(struct proc *proc);
void proc_end(struct proc *proc, enum ending ending);
/* Frees what ended and is closed. */
void proc_free(struct proc *proc);
struct proc *proc_by_serial(struct world *world, uint64_t serial);

/* net.c: messages. From now on those of this endpoint of the process can be lost, doubled and late;
 * until the endpoint is stopped. */
void net_meddle(struct proc *proc, const char *endpoint);
/* Frees what the network still has; the endpoint is stopped. */
void held_drop(struct proc *proc);
void ghosts_create(struct world *world);
void ghosts_destroy(struct world *world);
/* Every call of the network's own ended in its time. */
void ghosts_check(struct world *world);

extern const struct sl_registration_config registration_config;
extern const struct sl_heartbeat_config heartbeat_config;

/* planner.c: changes the plan of a topology under its lock, again and again. */
struct planner;
struct planner *planner_new(struct proc *proc, int topology);
void planner_free(struct planner *planner);
const struct sl_state_lock *planner_lock(const struct planner *planner);

/* An operation of a writer, whose outcome the checks compare with the store. */
uint64_t operation_new(struct proc *proc);
void operation_end(struct world *world, uint64_t operation, int status);
/* Bytes of a value that carries it. */
enum { OPERATION_BYTES = 24 };
void operation_encode(uint8_t *value, uint64_t operation, uint64_t token, uint64_t count);
bool operation_decode(const uint8_t *value, size_t size, uint64_t *operation, uint64_t *token,
                      uint64_t *count);

/* faults.c */
void faults_plan(struct world *world);
void faults_step(struct world *world);
void faults_heal(struct world *world);
/* Ends what is due: cuts, pauses, crashes. */
void faults_undo(struct world *world);
void member_end(struct world *world, struct member *member, enum ending ending, uint64_t down_ms);
void member_start(struct world *world, struct member *member);

/* checks.c */
void check_world(struct world *world);
/* NULL when all is in order, else what is missing. */
const char *check_converged(struct world *world);
/* A process was granted a term. */
void check_granted(struct proc *proc, uint64_t token);

/* Looks into roles, for the checks. */
struct master_view {
    uint64_t token;
    const struct sl_resource_manager *manager;
};
bool master_view(const struct proc *proc, struct master_view *view);
const struct sl_state_election *master_election(const struct proc *proc);

const struct sl_slot_table *supervisor_table(const struct proc *proc);
uint64_t supervisor_instance(const struct proc *proc);

struct topology_view {
    uint64_t token;
    const struct sl_slot_pool *pool;
    size_t worker_count;
    /* Slots that were served. */
    size_t count;
    struct {
        char supervisor[32];
        uint32_t port;
        uint64_t allocation;
    } slots[WORKERS];
};
bool topology_view(const struct proc *proc, struct topology_view *view);
/* This process is registered as a worker. */
bool topology_has_worker(const struct proc *proc, const struct proc *worker);
const struct sl_state_election *topology_election(const struct proc *proc);
const struct planner *topology_planner(const struct proc *proc);
const struct planner *client_planner(const struct proc *proc, int topology);

/* Of "t0", "t1", ... */
static inline int
topology_index(const char *name)
{
    int index = name[0] == 't' ? name[1] - '0' : -1;
    sl_assert(index >= 0 && index < TOPOLOGIES);
    return index;
}
