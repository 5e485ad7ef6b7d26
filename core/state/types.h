#pragma once
/* What the interface, the tree and the backends of the state room have in common. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* As an expected version: any. */
    SL_STATE_ANY_VERSION = -1,
    /* Bytes of one node as it is stored; larger values are kept in pieces. */
    SL_STATE_NODE_BYTES_MAX = 512 * 1024,
    /* Bytes of a whole request, with paths. */
    SL_STATE_REQUEST_BYTES_MAX = 900 * 1024,
    /* Bytes of a value, in however many pieces. */
    SL_STATE_VALUE_BYTES_MAX = 64 * 1024 * 1024,
    /* Operations of one transaction. */
    SL_STATE_OPS_MAX = 1024,
};

enum sl_state_op_kind {
    /* Parts of transactions, and calls of their own. */
    SL_STATE_CREATE,
    SL_STATE_SET,
    SL_STATE_DELETE,
    /* The node exists and has this version. */
    SL_STATE_CHECK,
    /* Calls only. */
    SL_STATE_GET,
    SL_STATE_CHILDREN,
    /* Makes reads that follow see every write that was finished before it. */
    SL_STATE_SYNC,
    SL_STATE_MULTI,
};

enum sl_state_create_flags {
    /* The node goes with the session that made it, and has no children. */
    SL_STATE_EPHEMERAL = 1,
    /* Ten digits that count up are added to the name, and the writer's mark before it. */
    SL_STATE_SEQUENTIAL = 2,
    /* Calls only: missing parents are made first (persistent, empty). */
    SL_STATE_PARENTS = 4,
};

/* What is known of a node beside its value. */
struct sl_state_stat {
    /* Transaction ids, which grow over the whole store: of the node's creation, last change of its
     * value, last change of its list of children. */
    uint64_t created_zxid;
    uint64_t modified_zxid;
    uint64_t children_zxid;
    /* Session of an ephemeral node, else 0. */
    uint64_t owner;
    /* Changes of the value since the creation, 0 at first. */
    int32_t version;
    /* Creations and deletions of children. */
    int32_t children_version;
    uint32_t child_count;
    /* Bytes stored, with what the store adds to a value. */
    uint32_t stored_bytes;
};

/* A part of a transaction. Everything is borrowed for the call. */
struct sl_state_op {
    enum sl_state_op_kind kind;
    const char *path;
    const void *value;
    size_t size;
    /* Expected version of set, delete and check. */
    int32_t version;
    /* sl_state_create_flags. */
    uint32_t flags;
};

struct sl_state_op_result {
    /* 0, the failing operation's code, or SL_ECANCELED for those behind it. */
    int status;
    /* Of a create: the path with its number. */
    char *path;
    /* Of a set, when the outcome was not looked up: the node afterwards. */
    struct sl_state_stat stat;
};
