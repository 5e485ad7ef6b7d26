#pragma once
/* Leader retrieval: who leads at PATH, now and after every change (see state/election.h). */

#include "state/state.h"
#include "state/value_codec.h"

struct sl_state_leader_listener;

/* info: the leader, or NULL when there is none. Called for the first state too, and whenever the
 * leader's id, address or token changed. Borrowed for the call, in which the listener may be freed.
 * While the store has no contact the last leader stands. */
typedef void (*sl_state_leader_fn)(void *ctx, const struct sl_state_leader_info *info);

struct sl_state_leader_listener *sl_state_leader_listener_new(struct sl_state_store *store,
                                                              const char *path,
                                                              sl_state_leader_fn fn, void *ctx);
void sl_state_leader_listener_free(struct sl_state_leader_listener *self);
