#pragma once
/*
 * Leader election: a lock at PATH/lock, and the leader's name and address at PATH/leader, written
 * in a transaction that checks the lock. Who leads acts with its token, which everybody it talks to
 * compares. A leader whose name was deleted or overwritten by others writes it again.
 */

#include "state/state.h"

struct sl_state_election;

enum sl_state_election_event {
    /* We lead, and it is published. */
    SL_STATE_ELECTION_GRANTED,
    /* No contact: decide nothing new, but keep everything running. */
    SL_STATE_ELECTION_SUSPENDED,
    SL_STATE_ELECTION_RESUMED,
    /* Somebody else leads or will. The candidate stands again by itself. */
    SL_STATE_ELECTION_REVOKED,
};

/* token: of the leadership that is granted or over. */
typedef void (*sl_state_election_fn)(void *ctx, enum sl_state_election_event event, uint64_t token);

/* Stands for election at once. id and address (each at most 255 bytes of UTF-8) are what others
 * read. */
struct sl_state_election *sl_state_election_new(struct sl_state_store *store, const char *path,
                                                const char *id, const char *address,
                                                sl_state_election_fn fn, void *ctx);

/* Withdraws: a leader takes its name out and frees the lock, in the background. */
void sl_state_election_free(struct sl_state_election *self);

/* The token while we lead, else 0. */
uint64_t sl_state_election_token(const struct sl_state_election *self);

/* A transaction that takes place only while we lead; see sl_state_lock_commit. */
void sl_state_election_commit(struct sl_state_election *self, const struct sl_state_op *ops,
                              size_t count, sl_state_done_fn done, void *ctx);
