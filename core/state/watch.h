#pragma once
/*
 * A look at a node that is kept up to date: the callback gets what is there, at first and after
 * every change. Changes that follow one another quickly may be told as one; the last state is
 * always told. React to what was read, never to how often.
 */

#include "state/state.h"

struct sl_state_watch;

/*
 * status 0 with the value (of a SL_STATE_GET watch) or the sorted children (of a SL_STATE_CHILDREN
 * one), SL_ENOTFOUND when there is no such node, SL_EPROTO when its content is not readable,
 * SL_EUNAVAIL when the store can not work. Other trouble is not told: the watch reads again until
 * it can. Everything is borrowed for the call, in which the watch may be freed.
 */
typedef sl_state_done_fn sl_state_view_fn;

struct sl_state_watch *sl_state_watch_new(struct sl_state_store *store, enum sl_state_op_kind kind,
                                          const char *path, sl_state_view_fn fn, void *ctx);
void sl_state_watch_free(struct sl_state_watch *self);
