#pragma once
/*
 * What the files of the ZooKeeper backend share.
 *
 *     owner's thread ------- zoo_a*() ------> library's threads
 *                    <-- executor.post ------ completions and watchers copy and post, nothing else
 *     helper threads: host names (may block), zookeeper_close (may block)
 *
 * A handle lives as long as a session. When the session is over the handle is retired, whatever
 * still comes from it names it and is dropped, and a new one is made. The
 * library is never called, and no handle closed, from one of its own callbacks. All requests are
 * made by the owner's thread (its lists of completions are not safe for more).
 */

#include <zookeeper/zookeeper.h>

#include "base/list.h"
#include "state/zookeeper.h"

enum {
    SL__ZK_PATH_BYTES = 1024,
};

/* A permanent child of the root, so that nobody can delete the root, whose parent is open. */
#define SL__ZK_MARKER "_streamlua"

struct sl__zk_handle;

struct sl__zk {
    struct sl_state_backend backend;
    const struct sl_state_executor *executor;
    struct sl_state_backend_events events;
    char *name;
    char *root;
    char *digest;
    struct sl_state_url url;
    uint64_t session_timeout_ms;

    /* The handle in use, or NULL. */
    struct sl__zk_handle *handle;
    /* Helper threads and retired handles that are still to come back. */
    int helpers;
    uint64_t retry_timer;
    bool is_closing;
    bool has_failed;
    sl_state_task_fn closed_fn;
    void *closed_arg;
};

enum sl__zk_setup {
    /* Waiting for the first connection. */
    SL__ZK_SETUP_CONNECT,
    SL__ZK_SETUP_LOOK,
    SL__ZK_SETUP_MAKE,
    SL__ZK_SETUP_MARK,
    SL__ZK_SETUP_READ,
    SL__ZK_SETUP_ACL,
    SL__ZK_SETUP_DONE,
};

struct sl__zk_handle {
    struct sl__zk *zk;
    zhandle_t *zh;
    bool is_connected;
    bool is_retired;
    enum sl__zk_setup setup;
    /* How much of the root's path is made. */
    size_t setup_length;
    /* Written by the completion thread before it posts CONNECTED. */
    int64_t session;
    int timeout_ms;
    /* Requests that the library has; the owner's. */
    struct sl_list notes;
};

/*
 * What comes from the library's threads: each a heap object that is posted to the owner.
 */

enum sl__zk_note_kind {
    SL__ZK_NOTE_SESSION,
    SL__ZK_NOTE_WATCH,
    SL__ZK_NOTE_REQUEST,
    SL__ZK_NOTE_SETUP,
};

struct sl__zk_note {
    enum sl__zk_note_kind kind;
    struct sl__zk_handle *handle;
    /* Of requests: in the handle's list until it is answered. */
    struct sl_list_node node;
    int rc;
    /* Of SL__ZK_NOTE_SESSION. */
    int state;
    int64_t session;
    int timeout_ms;
    /* Of SL__ZK_NOTE_WATCH. */
    uint64_t watch_id;
    /* Of SL__ZK_NOTE_REQUEST; its results were filled in by the completion. */
    struct sl_state_request *request;
    /* Looking whether a missing node came into being while its watch was set. */
    bool is_arming;
    /* Full paths, operations and results of a transaction, which the library uses until it ends. */
    char **paths;
    zoo_op_t *ops;
    zoo_op_result_t *results;
    struct Stat *stats;
    char (*buffers)[SL__ZK_PATH_BYTES];
    size_t op_count;
    /* Of SL__ZK_NOTE_SETUP at SL__ZK_SETUP_ACL. */
    bool is_open_to_all;
};

/* Set on the library's threads: nothing may be called from there. */
extern _Thread_local bool sl__zk_is_in_callback;

/* zookeeper_notes.c: the library's threads. */
/* A note that the library gets with a request: by the owner only. */
struct sl__zk_note *sl__zk_request_note_new(struct sl__zk_handle *handle,
                                            enum sl__zk_note_kind kind);
void sl__zk_note_free(struct sl__zk_note *note);
/* Hands it to sl__zk_on_note, in the owner's thread. */
void sl__zk_note_post(struct sl__zk_note *note);
/* The library opens its sockets and pipes without close-on-exec; this marks them. */
void sl__zk_mark_descriptors(void);
void sl__zk_on_watcher(zhandle_t *zh, int type, int state, const char *path, void *watch_ctx);
void sl__zk_copy_stat(const struct Stat *from, struct sl_state_stat *to);
/* The store's path of a path of the server's. */
char *sl__zk_path_below_root_dup(const struct sl__zk *self, const char *full);
/* Completions. */
void sl__zk_on_void(int rc, const void *data);
void sl__zk_on_string(int rc, const char *value, const void *data);
void sl__zk_on_stat(int rc, const struct Stat *stat, const void *data);
void sl__zk_on_data(int rc, const char *value, int value_len, const struct Stat *stat,
                    const void *data);
void sl__zk_on_strings(int rc, const struct String_vector *strings, const struct Stat *stat,
                       const void *data);
void sl__zk_on_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *data);

/* zookeeper_requests.c: requests of the store. */
/* Rights of what this store makes. */
const struct ACL_vector *sl__zk_acl_of(const struct sl__zk *self);
/* Tells the store what became of a request. */
void sl__zk_finish_request(struct sl__zk_note *note);
/* The backend's submit. */
void sl__zk_submit(struct sl_state_backend *backend, struct sl_state_request *request);
/* A request that the library did not take ends like one that was answered, in a turn of its own. */
void sl__zk_post_refused(struct sl__zk_note *note, int rc);
/* Sets the watch of a read that found no node; true when the request goes on. */
bool sl__zk_arm_missing(struct sl__zk_note *note);

/* zookeeper_root.c: the root and who may change it. */
/* The link is up. */
void sl__zk_root_done(struct sl__zk_handle *handle);
/* Makes the root, from the start, at every connection until it is done; sl__zk_root_done then. */
void sl__zk_root_start(struct sl__zk_handle *handle);
/* The server refused what the root needs: the store has failed. */
void sl__zk_root_refused(struct sl__zk_handle *handle, int rc);
/* A step was answered. */
void sl__zk_on_root(struct sl__zk_note *note);

/* zookeeper.c: handles, helper threads and the backend. Takes a note, in the owner's thread. */
void sl__zk_on_note(void *arg);
