#pragma once
/*
 * A lock that dies with its holder's session. Who wants it makes an ephemeral sequential node below
 * the lock's path; the lowest number holds it, everybody else watches the one before it.
 *
 *     /locks/wordcount/_c_<guid>-lock-0000000007   holder
 *                      _c_<guid>-lock-0000000009   watches ..07
 *
 * The token is the transaction id of the holder's node, which grows over the whole store; the
 * number in the name starts again when the path is made anew, and is not a token.
 *
 * A holder may lose the lock without knowing it yet. So whatever it changes in the store goes
 * through sl_state_lock_commit, which changes nothing once the lock is lost, and whatever it asks
 * of others carries the token.
 */

#include "state/state.h"

struct sl_state_lock;

enum sl_state_lock_event {
    /* The session may be over: start nothing new. */
    SL_STATE_LOCK_SUSPENDED,
    SL_STATE_LOCK_RESUMED,
    /* It is over, and the lock is somebody else's. */
    SL_STATE_LOCK_LOST,
};

typedef void (*sl_state_lock_event_fn)(void *ctx, enum sl_state_lock_event event);
typedef void (*sl_state_lock_done_fn)(void *ctx, int status);

enum {
    /* As a time limit: wait as long as it takes. */
    SL_STATE_FOREVER = -1,
};

/* path: the lock's node, made when missing. owner: who we are, for the others' messages. fn (may be
 * NULL) is told of what happens to a lock that is held. */
struct sl_state_lock *sl_state_lock_new(struct sl_state_store *store, const char *path,
                                        const char *owner, sl_state_lock_event_fn fn, void *ctx);

/* Gives the lock up, in the background; an attempt under way is given up without its callback. */
void sl_state_lock_free(struct sl_state_lock *self);

/*
 * Asks for the lock. done(ctx, 0) when it is held; SL_ECONFLICT when others held it for all of
 * timeout_ms (0: at the first look), with the holder in the error record; SL_EUNAVAIL or
 * SL_ETIMEOUT when the store did not answer. The lock must not be held or asked for.
 */
void sl_state_lock_acquire(struct sl_state_lock *self, int64_t timeout_ms,
                           sl_state_lock_done_fn done, void *ctx);

/* Gives a held lock up; done (may be NULL) when it is free. */
void sl_state_lock_release(struct sl_state_lock *self, sl_state_lock_done_fn done, void *ctx);

bool sl_state_lock_is_held(const struct sl_state_lock *self);

/* The fencing token; 0 while the lock is not held. */
uint64_t sl_state_lock_token(const struct sl_state_lock *self);

/* Path of the holder's node, for the guard of a transaction; NULL while the lock is not held. */
const char *sl_state_lock_node(const struct sl_state_lock *self);

/*
 * A transaction that takes place only while the lock is ours. SL_EFENCED when it is not; nothing
 * was changed then. result->ops and result->failed are those of the caller's operations.
 */
void sl_state_lock_commit(struct sl_state_lock *self, const struct sl_state_op *ops, size_t count,
                          sl_state_done_fn done, void *ctx);
