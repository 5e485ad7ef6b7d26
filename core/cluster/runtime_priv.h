#pragma once
/* What the files of the runtime manager and the client-side launchers share. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"
#include "cluster/runtime_manager.h"
#include "cluster/settings.h"
#include "rpc/rpc.h"
#include "state/layout.h"
#include "state/loop_executor.h"
#include "state/state.h"
#include "state/value_codec.h"

struct sl_state_lock;

/* What a call of the store, the lock or a gateway ended with. */
struct sl__rt_outcome {
    bool is_done;
    int status;
    struct sl_buf value;
    /* Of rpc calls. */
    enum sl_rpc_status rpc;
    char reason[SL_REASON_SIZE];
};

/* Which processes of a topology there are on this machine. */
struct sl__rt_presence {
    bool is_any;
    /* One that leads it, or has one started. */
    bool is_led;
};

/* Where the endpoint of a topology's master is read. */
enum sl__rt_place {
    /* /leaders/topology/NAME */
    SL__RT_LEADER,
    /* /schedulers/NAME: that of service mode. */
    SL__RT_SCHEDULER,
    /* /leaders/master: that of the leading master instead. */
    SL__RT_MASTER,
};

struct sl_runtime {
    struct sl_runtime_options options;
    char *state_url;
    char *program;
    char *logs;
    char *launcher;
    char *secret;
    struct sl_settings settings;
    struct sl_loop *loop;
    struct sl_state_loop_executor executor;
    struct sl_state_store *store;
    struct sl_rpc *rpc;
    /* How long a command waits for a topology master that is being started anew, beside the
     * session of a dead one, which ends by itself. */
    uint64_t leader_ms;
    struct sl_timer deadline;
    bool is_late;
    struct sl__rt_outcome outcome;
    SL_VEC(char *) names;
    /* Of load. */
    struct sl_arena view_arena;
    struct sl_topology_view view;
    struct sl_execution_state execution;
    struct sl_stored_plan plan;
    struct sl_package package;
    /* Of the last answer of a topology master. */
    struct sl_arena answer_arena;
    struct sl_control_status status;
    struct sl_update_result result;
    /* What masters planned, of the last update. */
    struct sl_arena planned_arena;
    struct sl_stored_plan planned;
    bool has_planned;
    /* Where a topology master is. */
    enum sl__rt_place place;
    bool is_leader_known;
    char leader_endpoint[SL_RPC_NAME_MAX + 1];
    char leader_address[SL_STATE_OWNER_TEXT_MAX];
    uint64_t leader_token;
    /* Progress of an update. */
    struct sl_rpc_gateway *watched;
    uint64_t seen_events;
};

/* runtime_steps.c */

/* Tells a line of progress. */
void sl__rt_tell(struct sl_runtime *self, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Turns of the loop until *done, or the limit; returns *done. */
bool sl__rt_wait(struct sl_runtime *self, const bool *done, uint64_t limit_ms);
/*
 * A call of the store: begin, the call with sl__rt_store_done and the runtime manager, and the
 * wait, which returns its status and leaves the value in `outcome`. The store has a time limit of
 * its own.
 */
void sl__rt_begin(struct sl_runtime *self);
void sl__rt_store_done(void *ctx, int status, const struct sl_state_result *result);
int sl__rt_end_store_call(struct sl_runtime *self);
int sl__rt_get_part(struct sl_runtime *self, enum sl_layout_part part, const char *topology);
int sl__rt_check_name(const char *topology);
/* The topology is there, by the state manager's word; its definition is in `outcome`. */
int sl__rt_check_running(struct sl_runtime *self, const char *topology);
/* No node of that path is fine; *is_found becomes true when there was one. */
int sl__rt_remove_path(struct sl_runtime *self, const char *path, bool *is_found);
/* Deletes every node of the topology, the one that says that it runs last of all. */
int sl__rt_remove_nodes(struct sl_runtime *self, const char *topology, bool *is_found);
struct sl__rt_presence sl__rt_find_presence(const struct sl_runtime *self, const char *topology);

/* runtime_call.c */

/*
 * Finds the topology master and calls it; the answer is in `outcome`. One that is gone, or not
 * ready yet, is looked for again for some seconds; only what can be asked twice may be lost on the
 * way.
 */
int sl__rt_call(struct sl_runtime *self, const char *topology, uint32_t method,
                const struct sl_buf *body, uint64_t limit_ms);
/* The same for the methods that take a request and give a status, which is then in `status`. */
int sl__rt_ask(struct sl_runtime *self, const char *topology, uint32_t method,
               const struct sl_control_request *request, uint64_t limit_ms);
/* Somebody starts the next topology master at once: a guardian, or a supervisor somewhere. A local
 * topology without a guardian has nobody to wait for. */
bool sl__rt_is_hopeful(const struct sl_runtime *self, const char *topology);
/*
 * Calls the leading master, in the same way. The request goes in pieces where it is_long.
 * SL_EUNAVAIL: no master leads. *is_uncertain: a master may have taken it without our hearing of
 * it.
 */
int sl__rt_call_leading_master(struct sl_runtime *self, uint32_t method, const struct sl_buf *body,
                               bool is_long, uint64_t limit_ms, bool *is_uncertain);
/* A gateway to the one that was called last. */
int sl__rt_connect(struct sl_runtime *self, struct sl_rpc_gateway **gateway);

/* runtime_submit.c */

/* Definition, plan, execution state and package; nothing of it is left when it fails. SL_EEXIST. */
int sl__rt_store_submission(struct sl_runtime *self, const struct sl_runtime_submission *submission,
                            const char *scheduler);
/* Waits until all tasks run: 0, SL_ETIMEOUT (it goes on starting), or why it can not start. */
int sl__rt_await_settled(struct sl_runtime *self, const char *topology, uint64_t timeout_ms);

/* runtime_update.c */

/* Tells what happens at the topology master from now on, until it is told to stop. SL_EUNAVAIL. */
int sl__rt_watch(struct sl_runtime *self, const char *topology);
void sl__rt_unwatch(struct sl_runtime *self);

/* The change, as the topology master carries it out. */
int sl__rt_update(struct sl_runtime *self, const struct sl_runtime_change *change,
                  const struct sl_update_result **result);
