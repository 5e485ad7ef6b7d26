#pragma once
/*
 * The state manager: a tree of small nodes that survives processes and is the same for all of them.
 * It holds what must never be wrong: definitions, plans, who leads, who holds a lock. One
 * interface, three backends (memory, localfs, ZooKeeper).
 *
 * Every call is asynchronous: it returns at once, and its callback runs exactly once on the owner's
 * thread, never inside the call, at the latest when the time limit is over. During the callback the
 * thread's error record describes a status that is not 0.
 *
 * What a status means:
 *   SL_ENOTFOUND   no such node (of a create or a set in a transaction too)
 *   SL_EEXIST      the node is there already; of a delete: it has children
 *   SL_ECONFLICT   the node has another version than the expected one
 *   SL_EUNAVAIL    not connected within the time limit; nothing was sent
 *   SL_ETIMEOUT    sent, and no answer within the time limit; a write may have been carried out
 *   SL_EFENCED     (transactions of a lock) the lock is no longer ours; nothing was changed
 *   SL_ELIMIT      too large; nothing was sent
 *   SL_EPROTO      the node's content was not written by a store
 *   SL_ECLOSED     the store is being closed
 *   SL_ESYS        the backend's own trouble (disk full, missing rights), in words
 *
 * A lost answer is looked up, never guessed: every value carries its writer's mark, and when a
 * connection breaks with a write under way, the store reads the node to learn the outcome and only
 * then sends again or reports. Values larger than a node are kept in pieces below /chunks; the
 * caller sees none of it.
 */

#include "base/list.h"
#include "state/backend.h"
#include "state/executor.h"
#include "state/path.h"
#include "state/types.h"

struct sl_state_store;

/* What a call found. Everything is borrowed for the callback. */
struct sl_state_result {
    /* Of get: the value. */
    const uint8_t *value;
    size_t size;
    /* Of get and set, and of children (the parent's). */
    struct sl_state_stat stat;
    /* Of create: the path, with its mark and number when it is sequential. */
    const char *path;
    /* Of children: sorted names. */
    const char *const *children;
    size_t child_count;
    /* Of multi: one for each operation, also when one of them failed. */
    const struct sl_state_op_result *ops;
    size_t op_count;
    /* Of multi: the index of the operation that failed. */
    size_t failed;
    /* Of get: the name below /chunks of the pieces that the value is kept in, or NULL. */
    const char *pieces;
};

typedef void (*sl_state_done_fn)(void *ctx, int status, const struct sl_state_result *result);

enum sl_state_session_event {
    /* Connected with a session, the first or a new one. */
    SL_STATE_SESSION_CONNECTED,
    /* No contact for so long that the session may be over: hold back, but nothing is lost yet. */
    SL_STATE_SESSION_SUSPENDED,
    /* Contact again, with the same session. */
    SL_STATE_SESSION_RESUMED,
    /* The session is over: its ephemeral nodes and locks are gone. CONNECTED follows some time. */
    SL_STATE_SESSION_EXPIRED,
    /* The store can not work: wrong address, missing rights. Only closing is left. */
    SL_STATE_SESSION_FAILED,
};

/* Told of the session's life; lives in its owner. A failure's reason is in the error record. */
struct sl_state_listener {
    struct sl_list_node node;
    void (*fn)(void *ctx, enum sl_state_session_event event, uint64_t session);
    void *ctx;
};

struct sl_state_options {
    /* Time limit of a call, in milliseconds; 0 is SL_STATE_TIMEOUT_MS. */
    uint64_t timeout_ms;
    /* Seed of ids; 0 takes one from the operating system. A simulation gives one. */
    uint64_t seed;
};

enum {
    /* Default of the setting state_timeout. */
    SL_STATE_TIMEOUT_MS = 5000,
};

/*
 * A store on a backend, which it takes over. Calls may be made at once; they wait for the first
 * connection. The executor must outlive the store.
 */
struct sl_state_store *sl_state_store_new(struct sl_state_backend *take_backend,
                                          const struct sl_state_executor *executor,
                                          const struct sl_state_options *options);

/*
 * Ends the session and the store: open calls end with SL_ECLOSED, then fn(arg) is called and the
 * store is gone. Locks, watches and listeners on it must have been freed or must not be used any
 * more, except to free them before fn is called.
 */
void sl_state_store_close(struct sl_state_store *self, sl_state_task_fn fn, void *arg);

/* Where the store is, for messages. */
const char *sl_state_store_name(const struct sl_state_store *self);
const struct sl_state_executor *sl_state_store_executor(const struct sl_state_store *self);

/* Why the store can not work and never will, or NULL. Valid as long as the store. */
const char *sl_state_store_failure(const struct sl_state_store *self);

/* The present session; 0 while there is none. */
uint64_t sl_state_store_session(const struct sl_state_store *self);

/*
 * True while the session is certainly alive: connected, and the last contact is not older than two
 * thirds of the session's time-out less a margin. Looks at the clock, so it is right also in a
 * process that was stopped and resumed. Correctness rests on fenced transactions, not on this.
 */
bool sl_state_store_is_safe(const struct sl_state_store *self);

void sl_state_store_listen(struct sl_state_store *self, struct sl_state_listener *listener);
void sl_state_store_unlisten(struct sl_state_listener *listener);

/*
 * While any holder of a lock counts on the session, the store keeps in contact often enough to
 * notice in time that it lost it.
 */
void sl_state_store_lease_ref(struct sl_state_store *self);
void sl_state_store_lease_unref(struct sl_state_store *self);

/* A new GUID as text; buffer of SL_STATE_GUID_TEXT + 1 bytes. */
void sl_state_store_guid(struct sl_state_store *self, char *text);

/*
 * Calls. They return a ticket for sl_state_cancel. Arguments are copied. done may be NULL.
 */

/* Makes a node; see sl_state_create_flags. */
uint64_t sl_state_create(struct sl_state_store *self, const char *path, const void *value,
                         size_t size, uint32_t flags, sl_state_done_fn done, void *ctx);

/* As sl_state_create of a sequential node, under a GUID of the caller's, by which it can find and
 * delete the node even when it gives up waiting for the answer. */
uint64_t sl_state_create_guid(struct sl_state_store *self, const char *path, const char *guid,
                              const void *value, size_t size, uint32_t flags, sl_state_done_fn done,
                              void *ctx);

uint64_t sl_state_get(struct sl_state_store *self, const char *path, sl_state_done_fn done,
                      void *ctx);

/* Replaces the value if the node has this version (or SL_STATE_ANY_VERSION, in which case a lost
 * answer can end in SL_ETIMEOUT). */
uint64_t sl_state_set(struct sl_state_store *self, const char *path, const void *value, size_t size,
                      int32_t version, sl_state_done_fn done, void *ctx);
uint64_t sl_state_delete(struct sl_state_store *self, const char *path, int32_t version,
                         sl_state_done_fn done, void *ctx);
uint64_t sl_state_children(struct sl_state_store *self, const char *path, sl_state_done_fn done,
                           void *ctx);

/* Reads that follow see every write that had ended, anywhere, before this call. */
uint64_t sl_state_sync(struct sl_state_store *self, sl_state_done_fn done, void *ctx);

/* All of it or nothing. SL_STATE_PARENTS is not for transactions. */
uint64_t sl_state_multi(struct sl_state_store *self, const struct sl_state_op *ops, size_t count,
                        sl_state_done_fn done, void *ctx);

/*
 * Forgets a call: its callback is not called. A write may be carried out all the same. Tickets of
 * calls that are over are ignored.
 */
void sl_state_cancel(struct sl_state_store *self, uint64_t ticket);

/* Reads with a one-shot watch, the parts of state/watch.h: fn(ctx) is called once, some time after
 * the read, unless the watch is dropped first. */
typedef void (*sl_state_watch_fn)(void *ctx);
uint64_t sl_state_read_watched(struct sl_state_store *self, enum sl_state_op_kind kind,
                               const char *path, uint64_t *watch_id, sl_state_watch_fn fn,
                               void *watch_ctx, sl_state_done_fn done, void *ctx);
void sl_state_watch_drop(struct sl_state_store *self, uint64_t watch_id);

static inline struct sl_state_op
sl_state_op_create(const char *path, const void *value, size_t size, uint32_t flags)
{
    return (struct sl_state_op){SL_STATE_CREATE, path, value, size, 0, flags};
}

static inline struct sl_state_op
sl_state_op_set(const char *path, const void *value, size_t size, int32_t version)
{
    return (struct sl_state_op){SL_STATE_SET, path, value, size, version, 0};
}

static inline struct sl_state_op
sl_state_op_delete(const char *path, int32_t version)
{
    return (struct sl_state_op){SL_STATE_DELETE, path, NULL, 0, version, 0};
}

static inline struct sl_state_op
sl_state_op_check(const char *path, int32_t version)
{
    return (struct sl_state_op){SL_STATE_CHECK, path, NULL, 0, version, 0};
}
