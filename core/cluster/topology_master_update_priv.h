#pragma once
/* What the files of an update share. */

#include "cluster/topology_master_priv.h"

enum sl__update_step {
    SL__STEP_LOCK,
    SL__STEP_CHECK,
    SL__STEP_START,
    SL__STEP_PAUSE,
    SL__STEP_ROOTS,
    SL__STEP_HOLD,
    SL__STEP_DRAIN,
    SL__STEP_MOVE,
    SL__STEP_COMMIT,
    SL__STEP_SWITCH,
    SL__STEP_ROLLBACK,
};

struct sl__groups SL_VEC_BODY(uint32_t);
struct sl__tasks SL_VEC_BODY(int32_t);

struct sl__tm_measure;

/* State that goes from one worker to another: the first is asked to send it, the second what came.
 */
struct sl__transfer {
    struct sl_topology_master *master;
    /* It is only measured, for this; NULL: it belongs to the update. */
    struct sl__tm_measure *measure;
    uint64_t id;
    int32_t component;
    /* Not 0: all state of this task. */
    int32_t task;
    int32_t from;
    int32_t to;
    /* The groups, and the tasks that are going to own them. */
    struct sl__groups groups;
    struct sl__tasks owners;
    struct sl_worker_moved sent;
    /* The call under way, of a worker that was this process then. */
    struct sl__tm_worker *callee;
    uint64_t callee_process;
    uint64_t call;
};

/* What moves between two plans. */
struct sl__moves {
    SL_VEC(struct sl__transfer *) transfers;
    uint64_t groups;
};

/* What a call of the store comes back to; the update may be gone by then. */
struct sl__update_call {
    struct sl__tm_update *update;
};

struct sl__tm_update {
    struct sl_topology_master *master;
    /* The call of the store that is under way, or NULL. */
    struct sl__update_call *call;
    /* Answered once; NULL afterwards. */
    struct sl_rpc_request *request;
    enum sl__update_step step;
    struct sl__tm_plan *next;
    struct sl_buf current;
    struct sl_state_lock *lock;
    uint64_t drain_ms;
    uint64_t start_ms;
    uint64_t began_ms;
    uint64_t drain_until_ms;
    uint64_t paused_at_ms;
    uint64_t resumed_at_ms;
    int32_t node_version;
    SL_VEC(int32_t) added;
    SL_VEC(int32_t) removed;
    /* Tasks leave, or key groups change their owner: nothing may be in flight then. */
    bool needs_quiet;
    bool is_start_sent;
    bool has_bridge;
    /* The plan in force with the new containers, which have no tasks in it, and the new tasks of
     * the others. */
    struct sl_physical_plan bridge;
    /* The next plan with the containers that are going to end, which have no tasks in it. */
    struct sl_physical_plan arrival;
    struct sl__moves moves;
    size_t open_transfers;
    struct sl_timer timer;
    struct sl_update_result result;
    char reason[SL_REASON_SIZE];
    /* The launcher has agreed, and has started the new containers. */
    bool is_agreed;
    bool is_added;
};

/* topology_master_update.c */
void sl__update_enter(struct sl__tm_update *update, enum sl__update_step step);
/* Before the commit: takes it back. Later there is nothing to take back. */
void sl__update_fail(struct sl__tm_update *update, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* topology_master_start.c */
void sl__update_start_containers(struct sl__tm_update *update);
/* A worker has registered, or runs a plan: the step START goes on. */
void sl__update_advance_start(struct sl__tm_update *update);

/* topology_master_move.c */
void sl__update_start_moving(struct sl__tm_update *update);
/* What moves from the plan in force to the next one. */
void sl__moves_plan(struct sl__moves *moves, struct sl_topology_master *master,
                    const struct sl__tm_plan *next);
/* Stops it. */
void sl__moves_clear(struct sl__moves *moves);
void sl__moves_destroy(struct sl__moves *moves);
/* Is there a tuple or an ack, wherever it may be, that means another task after the switch? */
bool sl__moves_need_quiet(const struct sl_topology_master *master, const struct sl__tm_plan *next);
/* Asks where it is how many bytes it has. */
void sl__transfer_measure(struct sl__transfer *transfer, sl_rpc_done_fn done);

/* topology_master_commit.c */
void sl__update_commit(struct sl__tm_update *update);
struct sl__update_call *sl__update_call_new(struct sl__tm_update *update);
/* The update that the call belongs to, or NULL when it is gone; the call is gone, too. */
struct sl__tm_update *sl__update_call_end(struct sl__update_call *call);
