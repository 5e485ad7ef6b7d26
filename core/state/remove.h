#pragma once
/* Removing whole subtrees, and the pieces of large values that nothing refers to any more. */

#include "state/state.h"

#define SL_STATE_PIECES_PATH "/chunks"

enum {
    /* Characters of a piece folder's name that tell which node it belongs to. */
    SL_STATE_PIECES_PREFIX = 16,
};

/*
 * The start of the names of the folders that pieces of this node's value are kept in: the hash of
 * its path. dst gets SL_STATE_PIECES_PREFIX characters and a NUL.
 */
void sl_state_pieces_prefix(const char *path, char *dst);

/*
 * Deletes the pieces of the node's earlier values, and of all of them when the node is gone. A
 * writer whose pieces are deleted under its hands finds its transaction refused. done may be NULL;
 * SL_ENOTFOUND means that there was nothing.
 */
void sl_state_sweep(struct sl_state_store *store, const char *path, sl_state_done_fn done,
                    void *ctx);

/*
 * Deletes a node with everything below it and their pieces, leaves first; what others make
 * meanwhile goes too. done(SL_ENOTFOUND) when the node was not there. Not atomic: what was deleted
 * before an error stays deleted.
 */
void sl_state_remove(struct sl_state_store *store, const char *path, sl_state_done_fn done,
                     void *ctx);
