#pragma once
/*
 * What is kept of a submitted topology (node /executionstates/NAME), and what clients say to its
 * topology master (proto/control.proto), as plain structs.
 *
 *     method (rpc/messages.h)   body                  answer
 *     SL_TM_STATUS              none                  sl_control_status
 *     SL_TM_AWAIT               sl_control_request    sl_control_status, when the topology is
 *                                                     settled or can not start, when something
 *                                                     happened (wants_event), or the time is over
 *     SL_TM_SET_STATE           sl_control_request    sl_control_status, when it is so
 *     SL_TM_RESTART             sl_control_request    sl_control_status, when it runs again
 *     SL_TM_UPDATE              sl_update_request     sl_update_result
 *     SL_TM_KILL                sl_control_request    sl_control_status; the process ends then
 *     SL_TM_PLAN_CHANGED        none                  empty; from the master: the stored plan has
 *                                                     other slots for some containers, read it
 */

#include "cluster/physical_plan.h"
#include "cluster/worker_messages.h"

enum {
    SL_EXECUTION_STATE_FORMAT = 1,
    SL_CONTROL_EVENTS_MAX = 64,
};

struct sl_control_request {
    uint64_t time_limit_ms;
    bool is_active;
    int32_t container;
    uint64_t seen_events;
    bool wants_event;
};

struct sl_update_request {
    /* Bytes of stored plans. */
    const uint8_t *current;
    size_t current_size;
    const uint8_t *proposed;
    size_t proposed_size;
    uint64_t lock_timeout_ms;
    uint64_t drain_timeout_ms;
    /* How long new containers may take to run. */
    uint64_t start_timeout_ms;
    /* Only say what would move: groups and bytes of the result. */
    bool is_dry_run;
};

void sl_execution_state_encode(const struct sl_execution_state *message, struct sl_buf *out);
void sl_control_request_encode(const struct sl_control_request *message, struct sl_buf *out);
void sl_control_status_encode(const struct sl_control_status *message, struct sl_buf *out);
void sl_update_request_encode(const struct sl_update_request *message, struct sl_buf *out);
void sl_update_result_encode(const struct sl_update_result *message, struct sl_buf *out);

/* Decoders: 0, SL_EPROTO or SL_ELIMIT; everything lies in the arena. */
int sl_execution_state_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                              struct sl_execution_state *message);
int sl_control_request_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                              struct sl_control_request *message);
int sl_control_status_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                             struct sl_control_status *message);
int sl_update_request_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                             struct sl_update_request *message);
int sl_update_result_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                            struct sl_update_result *message);
