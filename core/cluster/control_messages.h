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
 */

#include "cluster/physical_plan.h"
#include "cluster/worker_messages.h"

enum {
    SL_EXECUTION_STATE_FORMAT = 1,
    SL_CONTROL_EVENTS_MAX = 64,
};

struct sl_execution_state {
    const char *topology;
    const char *topology_id;
    int64_t submitted_ms;
    const char *user;
    const char *host;
    const char *cwd;
    const char *package_hash;
    const char *scheduler;
    enum sl_topology_state state;
    bool is_active;
};

struct sl_control_request {
    uint64_t time_limit_ms;
    bool is_active;
    int32_t container;
    uint64_t seen_events;
    bool wants_event;
};

struct sl_control_container {
    int32_t id;
    uint64_t pid;
    const char *host;
    uint32_t port;
    const char *state;
    uint32_t restarts;
};

struct sl_control_event {
    int64_t time_ms;
    const char *text;
};

struct sl_control_status {
    const char *topology;
    enum sl_topology_state state;
    uint64_t plan_version;
    /* Every worker runs the plan. */
    bool is_settled;
    /* "" unless the topology can not start. */
    const char *failure;
    uint64_t event_count;
    const struct sl_control_event *events;
    size_t shown_events;
    const struct sl_control_container *containers;
    size_t container_count;
    const struct sl_worker_counters *counters;
    size_t counter_count;
    uint64_t pid;
    uint64_t guardian_pid;
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
};

enum sl_update_outcome {
    SL_UPDATE_DONE,
    SL_UPDATE_ROLLED_BACK,
    SL_UPDATE_NOT_ROLLED_BACK,
};

struct sl_update_result {
    enum sl_update_outcome outcome;
    /* SL_E code and words of a failure. */
    int code;
    const char *reason;
    uint64_t from_version;
    uint64_t to_version;
    uint64_t paused_ms;
    uint64_t total_ms;
    uint64_t groups_moved;
    uint64_t bytes_moved;
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
