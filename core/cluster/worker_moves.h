#pragma once
/*
 * Keyed state that moves from worker to worker in an update.  The topology master orders it and
 * compares what both sides say; the entries go directly:
 *
 *     topology master --move--> source --export--> owner of its tasks
 *                                 |  ^ pieces
 *                          letter |  | taken
 *                                 v  |
 *                               target: tables aside --plan--> owner of its tasks
 *
 * A source sends letters of some hundred KiB, of which only a few may be under way, all its moves
 * taken together.  The target puts the entries of each into tables of their own at once, so that
 * the plan finds them made.  Letters are counted: those that come twice are passed over, and when a
 * session is lost those that were not taken are sent again, so a connection that breaks costs time.
 * Each table (a state and a group) comes with its number of entries, their bytes and a checksum,
 * which both sides compute from the entries themselves.
 *
 * The source changes nothing, and any plan ends its moves.  The target gives what has come to the
 * plan of the version it was sent for, if the topology master has asked what that was; any other
 * plan drops it.
 *
 * Everything belongs to the thread of the loop but for sl_worker_moves_take.
 */

#include <stdbool.h>

#include "cluster/worker_messages.h"
#include "loop/loop.h"
#include "rpc/rpc.h"
#include "stream/remote.h"
#include "stream/state_table.h"

struct sl_worker_moves;

enum {
    /* Letters that a source may have under way. */
    SL_WORKER_MOVES_LETTERS = 8,
    /* After so long without a sign of the other worker a move has failed. */
    SL_WORKER_MOVES_STALL_MS = 30000,
};

struct sl_worker_moves_options {
    struct sl_loop *loop;
    /* Of this worker. */
    int32_t container;
    /* Sends a letter to another worker's moves, in order; SL_E... when it never can. */
    int (*send)(void *ctx, int32_t peer, const void *bytes, size_t size);
    /*
     * Asks for pieces of state, from a cursor on ("": from the beginning); one question is open at
     * a time, and sl_worker_moves_exported answers it in a later turn.  A plan takes it back.
     */
    void (*ask)(void *ctx, const struct sl_worker_state_of *what, const char *cursor);
    void *ctx;
};

/* An answer to a question: pieces without a task, or why there are none. */
struct sl_worker_export {
    int code;
    const char *reason;
    /* Where the next pieces begin; "": that was all. */
    const char *cursor;
    uint32_t key_groups;
    const struct sl_worker_piece *pieces;
    size_t count;
};

/* A state of a task that has come. */
struct sl_worker_table {
    char *component;
    char *state;
    int32_t task;
    /* To be ended by sl_keyed_destroy and sl_free. */
    struct sl_keyed *entries;
};

struct sl_worker_moves *sl_worker_moves_new(const struct sl_worker_moves_options *options);
/* Refuses the requests that wait. NULL is fine. */
void sl_worker_moves_free(struct sl_worker_moves *self);

/* A request to move state, which is answered when the other worker has it. */
void sl_worker_moves_order(struct sl_worker_moves *self, const struct sl_worker_move *move,
                           struct sl_rpc_request *request);
/* A request to say what has come of a move, which from here on belongs to its plan. */
void sl_worker_moves_settle(struct sl_worker_moves *self, uint64_t id,
                            struct sl_rpc_request *request);
void sl_worker_moves_exported(struct sl_worker_moves *self, const struct sl_worker_export *answer);
/* A letter of another worker, and what becomes of the session with it. */
void sl_worker_moves_heard(struct sl_worker_moves *self, int32_t peer, const uint8_t *bytes,
                           size_t size);
void sl_worker_moves_changed(struct sl_worker_moves *self, int32_t peer,
                             enum sl_remote_change change);
/* A plan has come: moves from here end, and what has come for another version is dropped. */
void sl_worker_moves_plan(struct sl_worker_moves *self, uint64_t version);
/*
 * Any thread: gives a table that has come for the plan of a version, and true; false when there is
 * none any more.  The receiver owns it.
 */
bool sl_worker_moves_take(struct sl_worker_moves *self, uint64_t version,
                          struct sl_worker_table *table);
/* How many moves are known, from here or to here. */
size_t sl_worker_moves_count(const struct sl_worker_moves *self);
