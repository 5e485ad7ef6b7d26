#pragma once
/* The inside of a store, shared by store.c (life, session, watches) and call*.c (calls). */

#include "base/map.h"
#include "base/random.h"
#include "state/state.h"
#include "state/value_codec.h"

struct sl_state_store {
    struct sl_state_backend *backend;
    const struct sl_state_executor *executor;
    char *name;
    uint64_t timeout_ms;
    struct sl_random random;
    uint8_t writer[SL_STATE_WRITER_BYTES];
    uint64_t last_attempt;

    bool is_up;
    bool is_closing;
    /* Why there is no connection, as far as the backend knows, or NULL. */
    char *down_reason;
    /* Why the backend gave up, or NULL. */
    char *failure;
    uint64_t session;
    /* The last event told was SUSPENDED or EXPIRED. */
    bool is_suspended;
    struct sl_list listeners;

    /* When the last request was sent that has been answered. */
    uint64_t contact_ms;
    uint32_t lease_refs;
    uint64_t lease_timer;
    bool is_pinging;

    /* Every call that is not over, in order of their start; those that wait for a connection are
     * marked. */
    struct sl_list calls;
    struct sl_map_u64 calls_by_ticket;
    uint64_t last_ticket;

    /* Watch id -> struct sl__state_watch. */
    struct sl_map_u64 watches;
    uint64_t last_watch;

    sl_state_task_fn closed_fn;
    void *closed_arg;
};

struct sl__state_watch {
    sl_state_watch_fn fn;
    void *ctx;
};

enum sl__state_stage {
    /* A call that is wrong in itself and ends in its first timer. */
    SL__STAGE_REFUSED,
    /* The pieces of large values, then the call itself. */
    SL__STAGE_PIECES,
    SL__STAGE_SEND,
    SL__STAGE_PARENTS,
    /* Learning the outcome of a write whose answer was lost. */
    SL__STAGE_LOOK_SYNC,
    SL__STAGE_LOOK_READ,
    /* Reading the pieces of a large value. */
    SL__STAGE_ASSEMBLE,
};

struct sl__state_call {
    struct sl_list_node node;
    struct sl_state_store *store;
    uint64_t ticket;
    enum sl_state_op_kind kind;
    /* The caller's, copied: paths (with a mark when sequential) and plain values. */
    struct sl_state_op *ops;
    size_t op_count;
    /* One for each op; count 0 where the value fits into its node. */
    struct sl_state_manifest *manifests;
    char guid[SL_STATE_GUID_TEXT + 1];
    uint64_t watch_id;
    sl_state_done_fn done;
    void *ctx;

    uint64_t timer;
    enum sl__state_stage stage;
    bool is_parked;
    /* In the backend's hands. */
    struct sl_state_request *request;
    bool was_sent;
    /* Of a call that is wrong in itself. */
    int refused_status;
    uint64_t attempt;
    int parent_rounds;
    /* Which parent or piece is next. */
    size_t step;
    size_t step_op;
    char *detail;

    /* A large value while it is read. */
    struct sl_state_manifest manifest;
    struct sl_state_stat stat;
    struct sl_buf assembled;
    int assemble_rounds;
};

/* call.c */
void sl__state_call_step(struct sl__state_call *call);
void sl__state_call_complete(struct sl__state_call *call, struct sl_state_request *request);
/* Ends a call without an answer. */
void sl__state_call_fail(struct sl__state_call *call, int status, const char *detail);
/* Frees a call without its callback. */
void sl__state_call_free(struct sl__state_call *call);

struct sl_state_request *sl__state_request_new(enum sl_state_op_kind kind, size_t op_count);
void sl__state_request_free(struct sl_state_request *request);
void sl__state_store_submit(struct sl_state_store *self, struct sl_state_request *request);
