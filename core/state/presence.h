#pragma once
/*
 * An ephemeral node that is kept in place for as long as its owner wants it: made again with every
 * new session. It says "I am here" (a supervisor, a topology master's address).
 */

#include "state/state.h"

struct sl_state_presence;

/*
 * status 0: the node is in place (also after a change of its value). SL_EEXIST: another session has
 * it; the presence goes on waiting until that one is gone. SL_ECLOSED with the session's end: the
 * node is gone and will be made again. Others: the store's trouble, tried again.
 */
typedef void (*sl_state_presence_fn)(void *ctx, int status);

struct sl_state_presence *sl_state_presence_new(struct sl_state_store *store, const char *path,
                                                const void *value, size_t size,
                                                sl_state_presence_fn fn, void *ctx);

/* Deletes the node in the background if it is ours. */
void sl_state_presence_free(struct sl_state_presence *self);

/* Replaces the value. */
void sl_state_presence_set(struct sl_state_presence *self, const void *value, size_t size);
