#pragma once
/* localfs' log (proto/state.proto): transactions as effects on a tree, and snapshots. */

#include "base/buf.h"
#include "state/tree.h"

enum {
    /* Bytes of a frame's payload that a reader accepts. */
    SL_LOG_FRAME_BYTES_MAX = 16 * 1024 * 1024,
};

enum sl_log_session_change {
    SL_LOG_SESSION_NONE,
    SL_LOG_SESSION_OPEN,
    SL_LOG_SESSION_CLOSE,
};

struct sl_log_record {
    /* 0 in the records of a snapshot but the last. */
    uint64_t zxid;
    const struct sl_tree_effect *effects;
    size_t effect_count;
    enum sl_log_session_change session_change;
    uint64_t session;
    /* Parts of a snapshot. */
    const struct sl_tree_node *const *nodes;
    size_t node_count;
    const uint64_t *sessions;
    size_t session_count;
};

/* Appends a record to the payload of a frame. */
void sl_log_append(struct sl_buf *payload, const struct sl_log_record *record);

/* Gets each record of a frame; everything is borrowed for the call. Not 0 ends the decoding. */
typedef int (*sl_log_record_fn)(void *ctx, const struct sl_log_record *record);

/* Reads a frame. SL_EPROTO or SL_ELIMIT for malformed bytes, else the first code of fn that is not
 * 0. */
int sl_log_decode(const uint8_t *payload, size_t size, sl_log_record_fn fn, void *ctx);
