#pragma once
/* What the files of the topology master share. */

#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "cluster/peer.h"
#include "cluster/topology_master.h"
#include "state/election.h"
#include "state/layout.h"
#include "state/lock.h"

enum sl__tm_phase {
    SL__TM_STANDING,
    SL__TM_LOADING,
    SL__TM_LEADING,
    SL__TM_ENDING,
};

enum {
    /* Between the last word to clients and the end of the role. */
    SL__TM_END_MS = 20,
    /* Before a worker that could not be reached is told again. */
    SL__TM_NUDGE_MS = 200,
};

/* A version of the plan with what belongs to it. */
struct sl__tm_plan {
    struct sl_arena arena;
    struct sl_stored_plan stored;
    struct sl_physical_plan physical;
    /* As they are, or will be, in the state manager. */
    struct sl_buf bytes;
};

/* A container and the worker that is registered for it. */
struct sl__tm_worker {
    struct sl_topology_master *master;
    int32_t id;
    bool is_registered;
    struct sl_peer peer;
    uint8_t identity[SL_IDENTITY_SIZE];
    char host[SL_ADDRESS_HOST_SIZE];
    uint16_t data_port;
    uint64_t pid;
    /* Epochs of the plan that was sent last and of the one it runs. */
    uint64_t sent_epoch;
    uint64_t ready_epoch;
    /* The call with the plan, while it is under way. */
    uint64_t plan_call;
    /* The plan did not reach it. */
    bool must_resend;
    /* Its spouts are called, or SL_WORKER_SPOUTS with that was sent. */
    bool is_active;
    /* Its bolts do not tick, and tasks that were opened wait. */
    bool is_held;
    /* They were before what is under way, if it is. */
    bool is_switching;
    bool was_active;
    bool was_held;
    /* A client asked for a restart and the new process has not registered yet. */
    bool is_restarting;
    /* How often it has ended before the topology ran. */
    uint32_t early_ends;
    /* The last report, as bytes. */
    struct sl_buf report;
};

/* A registration that came before the plan was there. */
struct sl__tm_early {
    struct sl_rpc_request *request;
    struct sl_buf body;
};

/* A client that waits. */
struct sl__tm_waiter {
    struct sl_topology_master *master;
    struct sl_list_node node;
    struct sl_rpc_request *request;
    uint32_t method;
    struct sl_control_request wanted;
    struct sl_timer timer;
};

struct sl__tm_event {
    int64_t time_ms;
    char *text;
};

/* What has to be over. */
enum sl__tm_drain_until {
    SL__DRAIN_ROOTS,
    SL__DRAIN_ALL,
    /* Only what is not made of tuples: the batch of a stream program. */
    SL__DRAIN_OWNERS,
};

/* Asks all workers until nothing is in flight. */
struct sl__tm_drain {
    struct sl_topology_master *master;
    bool is_running;
    uint64_t until_ms;
    enum sl__tm_drain_until until;
    size_t open;
    bool is_quiet;
    uint64_t sent;
    uint64_t received;
    uint64_t left;
    /* Of the round before, and how many rounds in a row were alike. */
    uint64_t last_sent;
    uint64_t last_received;
    uint32_t alike;
    struct sl_timer timer;
    /* status 0: quiet; SL_ETIMEOUT: `left` were in flight. */
    void (*done)(void *ctx, int status);
    void *ctx;
};

struct sl__tm_update;

struct sl_topology_master {
    struct sl_topology_master_options options;
    struct sl_loop *loop;
    char *topology;
    char endpoint_name[SL_RPC_NAME_MAX + 1];
    enum sl__tm_phase phase;
    struct sl_state_election *election;
    struct sl_rpc_endpoint endpoint;
    struct sl_heartbeats heartbeats;
    bool has_heartbeats;
    uint64_t token;
    uint64_t epoch;
    /* The one that is in force. */
    struct sl__tm_plan *plan;
    int32_t plan_node_version;
    struct sl_arena execution_arena;
    struct sl_execution_state execution;
    int32_t execution_node_version;
    bool has_execution;
    /* Is what is in the store what `execution` says, or is it being written? */
    bool is_execution_dirty;
    bool is_execution_writing;
    /* id -> struct sl__tm_worker. */
    struct sl_map_u64 workers;
    /* A worker changed since the last epoch. */
    bool is_dirty;
    bool is_settled;
    bool was_settled;
    /* All workers have run this version of the plan, or need not before spouts are called. */
    uint64_t run_version;
    /* Publishing of the physical plan. */
    bool is_published;
    bool is_publishing;
    uint64_t published_epoch;
    /* The last write failed, which has been told. */
    bool is_store_failing;
    /* The one that events told last. */
    uint64_t told_epoch;
    struct sl_list waiters;
    /* Registrations that came before the plan was loaded. */
    SL_VEC(struct sl__tm_early) early;
    SL_VEC(struct sl__tm_event) events;
    uint64_t event_count;
    /* Why it never settled. */
    char *failure;
    struct sl__tm_drain drain;
    struct sl__tm_update *update;
    /* Dry runs that are being answered. */
    struct sl_list measures;
    /* Of a kill; the timer runs while it waits until the topology runs again. */
    struct sl_rpc_request *kill_request;
    struct sl_timer kill_timer;
    uint64_t kill_until_ms;
    /* What could not be sent is sent again. */
    struct sl_timer nudge_timer;
    struct sl_timer end_timer;
    int end_code;
    char end_reason[SL_REASON_SIZE];
    uint64_t retry_timer;
    /* A master's word of another plan, while that is read. */
    struct sl_rpc_request *plan_request;
    uint64_t plan_ticket;
    /* Calls of the store that are under way. */
    uint64_t load_ticket;
    uint64_t save_ticket;
    uint64_t publish_ticket;
    uint64_t location_ticket;
};

/* topology_master.c */
/* Every state change ends in a call of this: it does what is next. */
void sl__tm_advance(struct sl_topology_master *self);
void sl__tm_event(struct sl_topology_master *self, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
struct sl__tm_plan *sl__tm_plan_new(const struct sl_topology_master *self, const uint8_t *data,
                                    size_t size);
void sl__tm_plan_free(struct sl__tm_plan *plan);
/* Puts the registered workers into a physical plan. */
void sl__tm_plan_fill(const struct sl_topology_master *self, struct sl_physical_plan *plan);
/* Soon sends again what did not arrive. */
void sl__tm_nudge_later(struct sl_topology_master *self);
/* Stores the execution state as it is now. */
void sl__tm_save_execution(struct sl_topology_master *self);
void sl__tm_end(struct sl_topology_master *self, int code, const char *reason);

/* topology_master_workers.c */
struct sl__tm_worker *sl__tm_worker_of(const struct sl_topology_master *self, int32_t id);
struct sl__tm_worker *sl__tm_worker_add(struct sl_topology_master *self, int32_t id);
void sl__tm_worker_remove(struct sl_topology_master *self, struct sl__tm_worker *worker);
/* The worker can not be counted on any more. */
void sl__tm_worker_lost(struct sl__tm_worker *worker, const char *why);
/* Sends a plan to one worker; its answer is handled. */
void sl__tm_send_plan(struct sl__tm_worker *worker, const struct sl_physical_plan *plan);
void sl__tm_send_spouts(struct sl__tm_worker *worker, enum sl_worker_spouts spouts);
void sl__tm_send_shutdown(struct sl__tm_worker *worker, const char *cause);
/* A registration, also one that came before the plan was read. */
void sl__tm_register_with(struct sl_topology_master *self, struct sl_rpc_request *request,
                          const uint8_t *body, size_t size);
void sl__tm_handle_register(void *ctx, struct sl_rpc_request *request);
void sl__tm_handle_event(void *ctx, struct sl_rpc_request *request);
/* Heartbeats: the id is the name of the worker, "container-3". */
void sl__tm_heartbeat_lost(void *ctx, const char *id);
void sl__tm_heartbeat_payload(void *ctx, const char *id, const uint8_t *payload, size_t size);

/* topology_master_clients.c */
void sl__tm_handle_status(void *ctx, struct sl_rpc_request *request);
void sl__tm_handle_waiting(void *ctx, struct sl_rpc_request *request);
void sl__tm_handle_kill(void *ctx, struct sl_rpc_request *request);
void sl__tm_waiters_check(struct sl_topology_master *self);
void sl__tm_waiters_fail(struct sl_topology_master *self, const char *reason);
void sl__tm_kill_stopped(struct sl_topology_master *self);
void sl__tm_kill_start(struct sl_topology_master *self);
/* The topology runs again: a kill that waited for that goes on. */
void sl__tm_kill_settled(struct sl_topology_master *self);

/* topology_master_location.c */
/* Publishes where clients in service mode find this process; goes with the session. */
void sl__tm_publish_location(struct sl_topology_master *self);

/* topology_master_plan.c */
void sl__tm_handle_plan_changed(void *ctx, struct sl_rpc_request *request);
/* Does the plan have the topology master in another slot than this process'? */
bool sl__tm_is_elsewhere(const struct sl_topology_master *self, const struct sl_stored_plan *plan);

/* topology_master_drain.c */
void sl__tm_drain_start(struct sl_topology_master *self, uint64_t limit_ms,
                        enum sl__tm_drain_until until, void (*done)(void *ctx, int status),
                        void *ctx);
void sl__tm_drain_stop(struct sl_topology_master *self);

/* topology_master_update.c */
void sl__tm_handle_update(void *ctx, struct sl_rpc_request *request);
/* A worker is registered, runs a plan, or its spouts are as asked: the update goes on. */
void sl__tm_update_advance(struct sl_topology_master *self);
/* A worker is lost, or refused the plan. */
void sl__tm_update_worker_lost(struct sl_topology_master *self, int32_t id, const char *why);
/* A worker that runs could not make new tasks ready: the update fails, and the worker runs on. */
bool sl__tm_update_refused(struct sl_topology_master *self, int32_t id,
                           const struct sl_rpc_result *result);
/* The plan that a container that is new in an update belongs to, or NULL. */
struct sl__tm_plan *sl__tm_update_plan_of(const struct sl_topology_master *self, int32_t id);
/* Workers are not sent plans by sl__tm_advance while this is so. */
bool sl__tm_update_holds_plans(const struct sl_topology_master *self);
void sl__tm_update_abandon(struct sl_topology_master *self);
/* The launcher has an answer to what it was asked for. */
void sl__tm_update_launcher_progressed(struct sl_topology_master *self);

/* topology_master_measure.c */
/* Answers what would move from the plan in force to the next one, which it takes. */
void sl__tm_measure_start(struct sl_topology_master *self, struct sl_rpc_request *request,
                          struct sl__tm_plan *take_next);
void sl__tm_measures_abandon(struct sl_topology_master *self);
