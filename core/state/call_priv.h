#pragma once
/* What the files of a call share: call.c (its life), call_look.c (the outcome of a write whose
 * answer was lost), call_start.c (checks, copies, and the calls of state.h). */

#include "state/store_priv.h"

enum {
    /* Payload of one piece of a large value. */
    SL__STATE_PIECE_BYTES = SL_STATE_NODE_BYTES_MAX - SL_STATE_ENVELOPE_BYTES_MAX,
};

static inline bool
sl__state_is_write(enum sl_state_op_kind kind)
{
    return kind == SL_STATE_CREATE || kind == SL_STATE_SET || kind == SL_STATE_DELETE ||
           kind == SL_STATE_MULTI;
}

static inline bool
sl__state_has_value(const struct sl_state_op *op)
{
    return op->kind == SL_STATE_CREATE || op->kind == SL_STATE_SET;
}

/* A request that has a path and nothing else. */
struct sl_state_request *sl__state_request_path(enum sl_state_op_kind kind, const char *path);

/* Sends the request of the present stage. */
void sl__state_call_send(struct sl__state_call *call, struct sl_state_request *request);

/* Goes on with another stage. */
void sl__state_call_go(struct sl__state_call *call, enum sl__state_stage stage);

/* Ends the call; detail and result may be NULL. */
void sl__state_call_finish(struct sl__state_call *call, int status, const char *detail,
                           const struct sl_state_result *result);

/* Ends a write that was answered; failed is the index of the operation that failed, or op_count. */
void sl__state_call_finish_write(struct sl__state_call *call, int status, size_t failed,
                                 struct sl_state_request *request);

/* The timer of a call: its time limit, or at once for one that is refused. */
void sl__state_call_due(void *arg);

/* call_look.c: the operation that tells best whether a write was carried out, or NULL when there
 * are only checks. */
const struct sl_state_op *sl__state_call_marker(const struct sl__state_call *call);

/* Reads what the marker left, and judges the answer: done, not done (it is sent again), or doubt.
 */
void sl__state_call_look(struct sl__state_call *call);
void sl__state_call_looked(struct sl__state_call *call, const struct sl_state_request *request);
