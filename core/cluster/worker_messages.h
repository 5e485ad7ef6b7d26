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
 *     SL_WORKER_MEASURE         sl_worker_state_of        bytes of its entries
 *     SL_WORKER_MOVE            sl_worker_move            sl_worker_moved, when the other worker
 *                                                         has all of it
 *     SL_WORKER_MOVED           id of a move              sl_worker_moved: what has come
 *     SL_WORKER_SHUTDOWN        sl_disconnect             one-way
 *
 * Workers send each other sl_worker_pieces and sl_worker_taken by their session (worker_moves.h).
 *
 * A plan arrives with its spouts paused or not as its state says (RUNNING: they are called); a
 * change of a running topology sends the new plan as PAUSED and then SL_WORKER_SPOUTS.  While a
 * worker is held, bolts do not tick, and tasks that are opened wait until it is not.
 */

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cluster/control.h"
#include "rpc/messages.h"

enum sl_worker_spouts {
    SL_SPOUTS_PAUSED,
    SL_SPOUTS_ACTIVE,
    /* Paused, and bolts do not tick, and tasks that are opened wait. */
    SL_SPOUTS_HELD,
    /* And a bolt begins with a tuple only when nothing that it has emitted is under way: so it does
     * not have to wait in an emit, and does soon what it is told. */
    SL_SPOUTS_HELD_WITH_WAY,
};

struct sl_worker_drain {
    uint64_t time_limit_ms;
    /* The topology is going to be killed. */
    bool is_last;
    /* Whatever waits, no roots are to be left. */
    bool only_roots;
    /* Tuples and roots may stay in flight: no task loses what they are meant for. */
    bool may_stay;
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

/* State of groups, or of a task. */
struct sl_worker_state_of {
    const char *component;
    const uint32_t *groups;
    size_t group_count;
    /* Not 0: all state of this task, whose component has no key groups in the plan. */
    int32_t task;
};

struct sl_worker_move {
    uint64_t id;
    uint64_t plan_version;
    struct sl_worker_state_of what;
    /* The tasks that are going to own the groups, one for each. */
    const int32_t *owners;
    /* The container that gets it. */
    int32_t to;
};

/* What has moved; of both sides equal when nothing is missing. */
struct sl_worker_moved {
    /* Pairs of a state and a group. */
    uint64_t tables;
    uint64_t entries;
    uint64_t bytes;
    /* Sum of a hash of each entry. */
    uint64_t checksum;
};

struct sl_worker_piece {
    const char *state;
    const uint8_t *entries;
    size_t size;
    /* 0: a part of an entry that is not its last one. */
    uint64_t count;
    /* sl_hash_bytes of the entries. */
    uint64_t hash;
    uint32_t group;
    int32_t task;
    /* In the first piece of a state and group, else all 0: what all of its pieces have. */
    struct sl_worker_moved whole;
};

struct sl_worker_pieces {
    uint64_t move;
    uint64_t plan_version;
    const char *component;
    uint32_t key_groups;
    uint64_t number;
    const struct sl_worker_piece *pieces;
    size_t count;
    bool is_last;
    /* In the last one: what was sent in all. */
    struct sl_worker_moved whole;
};

struct sl_worker_taken {
    uint64_t move;
    uint64_t count;
    /* Not 0: why it can not be. */
    int code;
    const char *reason;
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

void sl_worker_spouts_encode(enum sl_worker_spouts spouts, struct sl_buf *out);
void sl_worker_drain_encode(const struct sl_worker_drain *message, struct sl_buf *out);
void sl_worker_drained_encode(const struct sl_worker_drained *message, struct sl_buf *out);
void sl_worker_ready_encode(const struct sl_worker_ready *message, struct sl_buf *out);
void sl_worker_measure_encode(const struct sl_worker_state_of *message, struct sl_buf *out);
void sl_worker_measured_encode(uint64_t bytes, struct sl_buf *out);
void sl_worker_move_encode(const struct sl_worker_move *message, struct sl_buf *out);
void sl_worker_move_id_encode(uint64_t id, struct sl_buf *out);
void sl_worker_moved_encode(const struct sl_worker_moved *message, struct sl_buf *out);
/* A letter of one worker to another. */
void sl_worker_pieces_encode(const struct sl_worker_pieces *message, struct sl_buf *out);
void sl_worker_taken_encode(const struct sl_worker_taken *message, struct sl_buf *out);
void sl_worker_report_encode(const struct sl_worker_report *message, struct sl_buf *out);
void sl_worker_event_encode(const struct sl_worker_event *message, struct sl_buf *out);

/* Decoders: 0, SL_EPROTO or SL_ELIMIT. Components are names; groups of a move are in order. */
int sl_worker_spouts_decode(const uint8_t *data, size_t size, enum sl_worker_spouts *spouts);
int sl_worker_drain_decode(const uint8_t *data, size_t size, struct sl_worker_drain *message);
int sl_worker_drained_decode(const uint8_t *data, size_t size, struct sl_worker_drained *message);
int sl_worker_ready_decode(const uint8_t *data, size_t size, struct sl_worker_ready *message);
int sl_worker_measure_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                             struct sl_worker_state_of *message);
int sl_worker_measured_decode(const uint8_t *data, size_t size, uint64_t *bytes);
int sl_worker_move_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                          struct sl_worker_move *message);
int sl_worker_move_id_decode(const uint8_t *data, size_t size, uint64_t *id);
int sl_worker_moved_decode(const uint8_t *data, size_t size, struct sl_worker_moved *message);
/* A letter is the one or the other: is_taken says which. */
int sl_worker_letter_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                            bool *is_taken, struct sl_worker_pieces *pieces,
                            struct sl_worker_taken *taken);
int sl_worker_report_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                            struct sl_worker_report *message);
int sl_worker_event_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                           struct sl_worker_event *message);
