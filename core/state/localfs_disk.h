#pragma once
/*
 * A state directory as one thread sees it: the tree in memory, followed from and written to a log.
 *
 *     DIR/state.log     "streamlua state\n", then frames: [u32 size][u32 ~size][u64 hash][payload]
 *     DIR/state.lock    locked by whoever writes, for the time of one write
 *     DIR/sessions/ID   locked by the process that has this session, for as long as it lives
 *
 * A transaction is one record; a frame is written and synchronised before anybody is told of it.
 * Only the last frame can be incomplete, after a crash, and the next writer cuts it off. A log that
 * is mostly history is replaced, by a rename, by one that starts with a snapshot. All locks are
 * those of open descriptions, so the kernel frees them when their process dies, however it does.
 * Whatever else lies in the directory is none of ours and is left alone.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "state/tree.h"

struct sl_disk {
    char *dir;
    int dir_fd;
    int sessions_fd;
    int lock_fd;
    int log_fd;
    ino_t log_inode;
    /* Bytes of the log that are in the tree. */
    off_t offset;
    /* Size from which on the log is replaced. */
    off_t compact_at;
    struct sl_tree tree;
    /* Open sessions; values mean nothing. */
    struct sl_map_u64 sessions;
    bool is_locked;
    /* What the present write adds to the log. */
    struct sl_buf payload;
    /* Told of every change, whoever made it; may be NULL. */
    sl_tree_change_fn on_change;
    void *ctx;
};

/* Opens DIR, which is made when missing, and reads the state. SL_ESYS (no rights, no space, no
 * directory) or SL_EPROTO (a damaged log, or no log of ours), in words. */
int sl_disk_open(struct sl_disk *self, const char *dir, sl_tree_change_fn on_change, void *ctx);
void sl_disk_close(struct sl_disk *self);

/* Brings the tree up to what others have written. Without the lock, SL_EPROTO may only mean that
 * somebody writes at this moment: with it, the log is damaged. */
int sl_disk_catch_up(struct sl_disk *self);

/*
 * Takes the writers' lock and catches up. SL_EUNAVAIL when another process has it for all of
 * timeout_ms, with its id.
 */
int sl_disk_lock(struct sl_disk *self, uint64_t timeout_ms);
void sl_disk_unlock(struct sl_disk *self);

/*
 * Makes changes, with the lock: in the tree at once, in the log by sl_disk_commit. Effects are as
 * sl_tree_plan gives them.
 */
int sl_disk_apply(struct sl_disk *self, const struct sl_tree_effect *effects, size_t count);

/* Bytes that the next commit writes. */
size_t sl_disk_pending_bytes(const struct sl_disk *self);

/* Writes and synchronises what was applied. When that fails nothing of it is in the log, the tree
 * is as before, and SL_ESYS says why (no space left). */
int sl_disk_commit(struct sl_disk *self);

/* Opens a session, with the lock; *fd holds its own lock and is the caller's. To be committed. */
int sl_disk_session_open(struct sl_disk *self, uint64_t *session, int *fd);

/* Ends a session and deletes its nodes, with the lock. To be committed, and its file removed then.
 */
int sl_disk_session_close(struct sl_disk *self, uint64_t session);
void sl_disk_session_unlink(struct sl_disk *self, uint64_t session);

/* True when the session's process is gone (or its file is). Needs no lock, but without it the
 * answer may be old. */
bool sl_disk_session_is_dead(const struct sl_disk *self, uint64_t session);
