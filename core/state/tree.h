#pragma once
/*
 * The tree of nodes with ZooKeeper's rules: versions, ephemeral and sequential nodes, transactions.
 * Pure: it knows no files, sessions' clocks or networks. The memory server and localfs are made of
 * it, so that both follow the same rules by construction.
 *
 * A transaction has two steps. Planning checks the operations against the tree, each one seeing
 * those before it, and gives the effects: what changes, with final paths. Applying effects can not
 * fail. Effects are what localfs logs.
 */

#include "base/map.h"
#include "base/vec.h"
#include "state/types.h"

struct sl_tree_node {
    char *path;
    uint8_t *data;
    uint32_t size;
    int32_t version;
    /* Children ever created; the next sequential child gets this number. */
    uint32_t creates;
    uint64_t owner;
    uint64_t created_zxid;
    uint64_t modified_zxid;
    uint64_t children_zxid;
    /* Name -> node. */
    struct sl_map_bytes children;
};

enum sl_tree_change {
    SL_TREE_CREATED,
    SL_TREE_DELETED,
    SL_TREE_CHANGED,
    /* The node's list of children. */
    SL_TREE_CHILDREN,
};

typedef void (*sl_tree_change_fn)(void *ctx, const char *path, enum sl_tree_change change);

struct sl_tree {
    /* Path -> node; "/" is always there. */
    struct sl_map_bytes nodes;
    /* Of the last applied transaction. */
    uint64_t zxid;
    /* Told of every change after it was made; may be NULL. */
    sl_tree_change_fn on_change;
    void *ctx;
};

/* One change. Paths and data are borrowed from the operations, except those that planning made. */
struct sl_tree_effect {
    enum sl_state_op_kind kind;
    const char *path;
    /* The path when planning made it (a sequential create), to be freed. */
    char *owned_path;
    const void *data;
    size_t size;
    /* Session of an ephemeral create, else 0. */
    uint64_t owner;
};

struct sl_tree_effects SL_VEC_BODY(struct sl_tree_effect);

void sl_tree_create(struct sl_tree *self);
void sl_tree_destroy(struct sl_tree *self);

/* The node, or NULL. */
struct sl_tree_node *sl_tree_find(const struct sl_tree *self, const char *path);

void sl_tree_stat(const struct sl_tree_node *node, struct sl_state_stat *stat);

/*
 * Checks ops against the tree for a session (owner of ephemeral creates). Returns 0 and appends to
 * effects; or the code of the first operation that fails, with its index in *failed and no effects.
 * The error record is not set.
 */
int sl_tree_plan(const struct sl_tree *self, const struct sl_state_op *ops, size_t count,
                 uint64_t session, struct sl_tree_effects *effects, size_t *failed);

/* Adds the deletion of every ephemeral node of a session, oldest first. */
void sl_tree_plan_session_end(const struct sl_tree *self, uint64_t session,
                              struct sl_tree_effects *effects);

/* Makes the changes under a transaction id larger than all before. Effects must fit the tree: an
 * effect that does not (a damaged log) is SL_EPROTO and leaves the tree half changed. */
int sl_tree_apply(struct sl_tree *self, uint64_t zxid, const struct sl_tree_effect *effects,
                  size_t count);

/* Frees what planning made and empties the vector, keeping its memory. */
void sl_tree_effects_clear(struct sl_tree_effects *effects);
void sl_tree_effects_destroy(struct sl_tree_effects *effects);

/* Puts a node of a snapshot in; its parent must be there ("/" replaces the root's figures). Takes
 * figures, path and data by copy. SL_EPROTO when there is no parent or the node is there. */
int sl_tree_restore(struct sl_tree *self, const struct sl_tree_node *figures);

/* Names of a node's children, sorted; the texts belong to the tree, the array to the caller. */
const char **sl_tree_children_new(const struct sl_tree_node *node);
