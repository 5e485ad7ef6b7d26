#pragma once
/*
 * What a store needs of the place where nodes are kept: a struct of functions given to the store at
 * its creation. A backend moves bytes and tells the truth about what it does not know; envelopes,
 * time limits, lost answers, large values and level-triggered watches are the store's business and
 * the same for every backend.
 *
 * Everything here happens on the owner's thread: the store calls the backend there, and the backend
 * comes back there, later (through the executor), never inside a call of the store's.
 */

#include "base/buf.h"
#include "base/vec.h"
#include "state/executor.h"
#include "state/types.h"

struct sl_state_backend;

struct sl_state_names SL_VEC_BODY(char *);

/*
 * One request to the backend. The store owns it and keeps it until complete(); it may have been
 * given up by its caller long before.
 */
struct sl_state_request {
    enum sl_state_op_kind kind;
    /* One, or the parts of a SL_STATE_MULTI. Owned by the request. */
    struct sl_state_op *ops;
    size_t op_count;
    /* The session that the store had when it sent this. A write of a session that is over is
     * refused with SL_ECLOSED, whatever session the backend has by now. */
    uint64_t session;
    /* Of GET and CHILDREN: not 0 asks for one sl_state_backend_events.watch call with this id. */
    uint64_t watch_id;

    /*
     * Filled in by the backend. 0; SL_ENOTFOUND, SL_EEXIST (exists, or has children when it is to
     * be deleted), SL_ECONFLICT (version), SL_EINVAL (a child of an ephemeral node) as in a tree;
     * SL_ECLOSED for a session that is over; anything else with a detail.
     */
    int status;
    /* The request may or may not have been carried out; status is then of no meaning. */
    bool is_unknown;
    /* Why, in words, when the code says too little; or NULL. */
    char *detail;
    /* Of GET. */
    struct sl_buf data;
    struct sl_state_stat stat;
    /* Of CHILDREN, in any order. */
    struct sl_state_names children;
    /* Of writes and CHECK, one for each op. */
    struct sl_state_op_result *results;

    /* The store's. */
    void *call;
    uint64_t sent_ms;
    /* For the backend's own use. */
    void *next;
};

enum sl_state_link {
    /* Requests can be sent; `session` is ours. */
    SL_STATE_LINK_UP,
    /* Not connected; `reason` may say why. The session may live on at the server. */
    SL_STATE_LINK_DOWN,
    /*
     * The session is over and its ephemeral nodes are gone. Watches were or will be called. The
     * backend goes on by itself and comes UP with a new session.
     */
    SL_STATE_LINK_EXPIRED,
    /* The backend gave up for good; `reason` says why. Nothing but closing is left. */
    SL_STATE_LINK_FAILED,
};

struct sl_state_backend_events {
    void (*link)(void *ctx, enum sl_state_link link, uint64_t session, const char *reason);
    void (*complete)(void *ctx, struct sl_state_request *request);
    /*
     * Once for each armed watch: the node (GET: its existence and value; CHILDREN: its existence
     * and list) changed, or the backend no longer watches. A missing node is watched as well.
     */
    void (*watch)(void *ctx, uint64_t watch_id);
    void *ctx;
};

struct sl_state_backend {
    /* Where it is, for messages: "localfs:DIR", "zookeeper at 127.0.0.1:2181". */
    const char *name;
    /* Starts; link() follows. Called once. */
    void (*open)(struct sl_state_backend *self, const struct sl_state_backend_events *events);
    /* Only while the link is up; complete() follows, also when it breaks. */
    void (*submit)(struct sl_state_backend *self, struct sl_state_request *request);
    /*
     * Ends the session. Every request is completed, then fn(arg) is called, last of all, after
     * which the backend is gone. Called once.
     */
    void (*close)(struct sl_state_backend *self, sl_state_task_fn fn, void *arg);
    /* How long the session lives without contact, in milliseconds; 0: as long as the process. */
    uint64_t (*session_timeout_ms)(const struct sl_state_backend *self);
};

/* Gives every op of a write its result: failed < op_count is the one that failed with status. */
void sl_state_request_set_results(struct sl_state_request *request, int status, size_t failed);
