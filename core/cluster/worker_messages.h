#pragma once
/*
 * What a topology master and its workers say to each other (proto/worker.proto), as plain structs.
 *
 *     method (rpc/messages.h)   body                      answer
 *     SL_TM_REGISTER_WORKER     sl_register_peer          sl_registered
 *     SL_TM_WORKER_EVENT        sl_worker_event           none
 *     SL_WORKER_HEARTBEAT       sl_heartbeat              sl_heartbeat with a sl_worker_report
 *     SL_WORKER_PLAN            sl_physical_plan          sl_worker_ready: the tasks run, the peers
 *                                                         are connected; or a refusal with the
 *                                                         reason, and the plan of before stays
 *     SL_WORKER_SPOUTS          sl_worker_spouts          none, when it is so
 *     SL_WORKER_DRAIN           sl_worker_drain           sl_worker_drained
 *     SL_WORKER_EXPORT          sl_worker_export          sl_worker_exported
 *     SL_WORKER_STAGE           sl_worker_stage           sl_worker_staged
 *     SL_WORKER_SHUTDOWN        sl_disconnect             one-way
 *
 * A plan arrives with its spouts paused or not as its state says (RUNNING: they are called); a
 * change of a running topology sends the new plan as PAUSED and then SL_WORKER_SPOUTS.
 */

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cluster/control.h"
#include "rpc/messages.h"

enum {
    /* Bytes of entries in one message: what a control frame has room for with the rest. */
    SL_WORKER_STATE_BYTES_MAX = 512 * 1024,
};

struct sl_worker_drained {
    uint64_t roots;
    uint64_t waiting;
    uint64_t sent;
    uint64_t received;
};

struct sl_worker_ready {
    uint64_t plan_version;
    uint64_t epoch;
};

struct sl_worker_export {
    const char *component;
    const uint32_t *groups;
    size_t group_count;
    /* Where the last answer ended; "" at first. */
    const char *cursor;
    /* Not 0: all state of this task, whose component has no key groups in the plan. */
    int32_t task;
};

struct sl_worker_state_piece {
    const char *component;
    const char *state;
    const uint8_t *entries;
    size_t size;
    uint64_t count;
    /* sl_hash_bytes of the entries. */
    uint64_t hash;
    /* All entries are of this group; they go to the task, or when it is 0 to the group's owner. */
    uint32_t group;
    int32_t task;
};

/* An answer to an export (cursor) or what is to be staged (plan_version). */
struct sl_worker_state {
    const struct sl_worker_state_piece *pieces;
    size_t count;
    const char *cursor;
    uint64_t plan_version;
};

struct sl_worker_report {
    uint64_t plan_version;
    bool is_active;
    const struct sl_worker_counters *components;
    size_t count;
};

struct sl_worker_event {
    int32_t container;
    /* "" and 0 when it is of no task. */
    const char *component;
    int32_t task;
    const char *text;
    bool is_fatal;
};

void sl_worker_spouts_encode(bool is_active, struct sl_buf *out);
/* is_last: the topology is going to be killed. */
void sl_worker_drain_encode(uint64_t time_limit_ms, bool is_last, struct sl_buf *out);
void sl_worker_drained_encode(const struct sl_worker_drained *message, struct sl_buf *out);
void sl_worker_ready_encode(const struct sl_worker_ready *message, struct sl_buf *out);
void sl_worker_export_encode(const struct sl_worker_export *message, struct sl_buf *out);
void sl_worker_exported_encode(const struct sl_worker_state *message, struct sl_buf *out);
void sl_worker_stage_encode(const struct sl_worker_state *message, struct sl_buf *out);
void sl_worker_staged_encode(uint64_t count, struct sl_buf *out);
void sl_worker_report_encode(const struct sl_worker_report *message, struct sl_buf *out);
void sl_worker_event_encode(const struct sl_worker_event *message, struct sl_buf *out);

/* Decoders: 0, SL_EPROTO or SL_ELIMIT. Components are names; the hash of a piece was compared. */
int sl_worker_spouts_decode(const uint8_t *data, size_t size, bool *is_active);
int sl_worker_drain_decode(const uint8_t *data, size_t size, uint64_t *time_limit_ms,
                           bool *is_last);
int sl_worker_drained_decode(const uint8_t *data, size_t size, struct sl_worker_drained *message);
int sl_worker_ready_decode(const uint8_t *data, size_t size, struct sl_worker_ready *message);
int sl_worker_export_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                            struct sl_worker_export *message);
int sl_worker_exported_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                              struct sl_worker_state *message);
int sl_worker_stage_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                           struct sl_worker_state *message);
int sl_worker_staged_decode(const uint8_t *data, size_t size, uint64_t *count);
int sl_worker_report_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                            struct sl_worker_report *message);
int sl_worker_event_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                           struct sl_worker_event *message);
