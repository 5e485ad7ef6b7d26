/*
 * The only file that knows the ZooKeeper client library (libzookeeper_mt 3.8).
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
#include "state/zookeeper.h"

#include <errno.h>
#include <limits.h>
#include <linux/close_range.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <zookeeper/zookeeper.h>
#include <zookeeper/zookeeper_version.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "state/path.h"
#include "state/value_codec.h"

enum {
    PATH_BYTES = 1024,
    /* Between attempts to get a handle. */
    RETRY_MS = 1000,
};

/* A permanent child of the root, so that nobody can delete the root, whose parent is open. */
static const char marker_name[] = "_streamlua";

struct handle;

struct zookeeper {
    struct sl_state_backend backend;
    const struct sl_state_executor *executor;
    struct sl_state_backend_events events;
    char *name;
    char *root;
    char *digest;
    struct sl_state_url url;
    uint64_t session_timeout_ms;

    /* The handle in use, or NULL. */
    struct handle *handle;
    /* Helper threads and retired handles that are still to come back. */
    int helpers;
    uint64_t retry_timer;
    bool is_closing;
    bool has_failed;
    sl_state_task_fn closed_fn;
    void *closed_arg;
};

enum setup {
    /* Waiting for the first connection. */
    SETUP_CONNECT,
    SETUP_LOOK,
    SETUP_MAKE,
    SETUP_MARK,
    SETUP_READ,
    SETUP_ACL,
    SETUP_DONE,
};

struct handle {
    struct zookeeper *zk;
    zhandle_t *zh;
    bool is_connected;
    bool is_retired;
    enum setup setup;
    /* How much of the root's path is made. */
    size_t setup_length;
    /* Written by the completion thread before it posts CONNECTED. */
    int64_t session;
    int timeout_ms;
    /* Requests that the library has; the owner's. */
    struct sl_list notes;
};

/* Set on the library's threads: nothing may be called from there. */
static _Thread_local bool is_in_callback;

static void handle_start(struct zookeeper *self);
static void setup_step(struct handle *handle);

/*
 * What comes from the library's threads: each a heap object that is posted to the owner.
 */

enum note_kind {
    NOTE_SESSION,
    NOTE_WATCH,
    NOTE_REQUEST,
    NOTE_SETUP,
};

struct note {
    enum note_kind kind;
    struct handle *handle;
    /* Of requests: in the handle's list until it is answered. */
    struct sl_list_node node;
    int rc;
    /* Of NOTE_SESSION. */
    int state;
    int64_t session;
    int timeout_ms;
    /* Of NOTE_WATCH. */
    uint64_t watch_id;
    /* Of NOTE_REQUEST; its results were filled in by the completion. */
    struct sl_state_request *request;
    /* Looking whether a missing node came into being while its watch was set. */
    bool is_arming;
    /* Full paths, operations and results of a transaction, which the library uses until it ends. */
    char **paths;
    zoo_op_t *ops;
    zoo_op_result_t *results;
    struct Stat *stats;
    char (*buffers)[PATH_BYTES];
    size_t op_count;
    /* Of NOTE_SETUP at SETUP_ACL. */
    bool is_open_to_all;
};

static void on_note(void *arg);

static struct note *
note_new(struct handle *handle, enum note_kind kind)
{
    struct note *note = sl_calloc(1, sizeof(*note));
    note->handle = handle;
    note->kind = kind;
    return note;
}

/* A note that the library gets with a request: by the owner only. */
static struct note *
request_note_new(struct handle *handle, enum note_kind kind)
{
    struct note *note = note_new(handle, kind);
    sl_list_push_back(&handle->notes, &note->node);
    return note;
}

static void
note_free(struct note *note)
{
    for (size_t i = 0; note->paths != NULL && i < note->op_count; i++) {
        sl_free(note->paths[i]);
    }
    sl_free(note->paths);
    sl_free(note->ops);
    sl_free(note->results);
    sl_free(note->stats);
    sl_free(note->buffers);
    sl_free(note);
}

static void
note_post(struct note *note)
{
    sl_state_executor_post(note->handle->zk->executor, on_note, note);
}

/* The library opens its sockets and pipes without close-on-exec, at any reconnect. Nothing that a
 * child should inherit is inherited by chance, so every descriptor can be marked. */
static void
mark_descriptors(void)
{
    if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
        sl_log_warn("state.zookeeper", "close-on-exec: %s", strerror(errno));
    }
}

static void
on_library_log(const char *message)
{
    sl_log_verbose("state.zookeeper", "%s", message);
}

static void
on_watcher(zhandle_t *zh, int type, int state, const char *path, void *watch_ctx)
{
    (void)path;
    struct handle *handle = (struct handle *)(uintptr_t)zoo_get_context(zh);
    is_in_callback = true;
    if (type == ZOO_SESSION_EVENT) {
        if (watch_ctx != handle) {
            /* The same news for each watch. */
            return;
        }
        mark_descriptors();
        struct note *note = note_new(handle, NOTE_SESSION);
        note->state = state;
        note->session = zoo_client_id(zh)->client_id;
        note->timeout_ms = zoo_recv_timeout(zh);
        note_post(note);
        return;
    }
    if (watch_ctx == handle) {
        return;
    }
    struct note *note = note_new(handle, NOTE_WATCH);
    note->watch_id = (uint64_t)(uintptr_t)watch_ctx;
    note_post(note);
}

static void
copy_stat(const struct Stat *from, struct sl_state_stat *to)
{
    *to = (struct sl_state_stat){
        .created_zxid = (uint64_t)from->czxid,
        .modified_zxid = (uint64_t)from->mzxid,
        .children_zxid = (uint64_t)from->pzxid,
        .owner = (uint64_t)from->ephemeralOwner,
        .version = from->version,
        .children_version = from->cversion,
        .child_count = (uint32_t)from->numChildren,
        .stored_bytes = (uint32_t)from->dataLength,
    };
}

/* The store's path of a path of the server's. */
static char *
path_below_root_dup(const struct zookeeper *self, const char *full)
{
    size_t len = strlen(self->root);
    sl_assert(strncmp(full, self->root, len) == 0);
    return sl_strdup(full[len] == '\0' ? "/" : full + len);
}

static void
on_void(int rc, const void *data)
{
    struct note *note = (struct note *)(uintptr_t)data;
    is_in_callback = true;
    note->rc = rc;
    note_post(note);
}

static void
on_string(int rc, const char *value, const void *data)
{
    struct note *note = (struct note *)(uintptr_t)data;
    is_in_callback = true;
    note->rc = rc;
    if (rc == ZOK && note->request != NULL && note->request->kind == SL_STATE_CREATE) {
        sl_state_request_set_results(note->request, 0, 0);
        note->request->results[0].path = path_below_root_dup(note->handle->zk, value);
    }
    note_post(note);
}

static void
on_stat(int rc, const struct Stat *stat, const void *data)
{
    struct note *note = (struct note *)(uintptr_t)data;
    is_in_callback = true;
    note->rc = rc;
    if (rc == ZOK && note->request != NULL && note->request->kind == SL_STATE_SET) {
        sl_state_request_set_results(note->request, 0, 0);
        copy_stat(stat, &note->request->results[0].stat);
    }
    note_post(note);
}

static void
on_data(int rc, const char *value, int value_len, const struct Stat *stat, const void *data)
{
    struct note *note = (struct note *)(uintptr_t)data;
    is_in_callback = true;
    note->rc = rc;
    if (rc == ZOK && note->request != NULL) {
        copy_stat(stat, &note->request->stat);
        /* The length of a node without data is -1. */
        if (value != NULL && value_len > 0) {
            sl_buf_append(&note->request->data, value, (size_t)value_len);
        }
    }
    note_post(note);
}

static void
on_strings(int rc, const struct String_vector *strings, const struct Stat *stat, const void *data)
{
    struct note *note = (struct note *)(uintptr_t)data;
    struct sl_state_request *request = note->request;
    is_in_callback = true;
    note->rc = rc;
    if (rc == ZOK) {
        copy_stat(stat, &request->stat);
        bool is_root = request->ops[0].path[1] == '\0';
        for (int32_t i = 0; i < strings->count; i++) {
            if (is_root && strcmp(strings->data[i], marker_name) == 0) {
                /* Ours, and none of the store's. */
                request->stat.child_count--;
                continue;
            }
            sl_vec_push(&request->children, sl_strdup(strings->data[i]));
        }
    }
    note_post(note);
}

/* Whether anybody but the creator may change the node. */
static void
on_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *data)
{
    struct note *note = (struct note *)(uintptr_t)data;
    (void)stat;
    is_in_callback = true;
    note->rc = rc;
    for (int32_t i = 0; rc == ZOK && i < acl->count; i++) {
        const struct ACL *entry = &acl->data[i];
        note->is_open_to_all |=
            strcmp(entry->id.scheme, "world") == 0 && (entry->perms & ~ZOO_PERM_READ) != 0;
    }
    note_post(note);
}

/*
 * Requests
 */

static const struct ACL_vector *
acl_of(const struct zookeeper *self)
{
    return self->digest != NULL ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
}

static char *
full_path_dup(const struct zookeeper *self, const char *path)
{
    return sl_asprintf("%s%s", self->root, path[1] == '\0' ? "" : path);
}

static int
create_mode(uint32_t flags)
{
    bool is_ephemeral = (flags & SL_STATE_EPHEMERAL) != 0;
    if ((flags & SL_STATE_SEQUENTIAL) != 0) {
        return is_ephemeral ? ZOO_EPHEMERAL_SEQUENTIAL : ZOO_PERSISTENT_SEQUENTIAL;
    }
    return is_ephemeral ? ZOO_EPHEMERAL : ZOO_PERSISTENT;
}

/* A code of the library as the request's status; what is no answer makes the outcome unknown. */
static void
set_status(struct sl_state_request *request, int rc)
{
    switch (rc) {
    case ZOK:
        request->status = 0;
        return;
    case ZNONODE:
        request->status = SL_ENOTFOUND;
        return;
    case ZNODEEXISTS:
    case ZNOTEMPTY:
        request->status = SL_EEXIST;
        return;
    case ZBADVERSION:
        request->status = SL_ECONFLICT;
        return;
    case ZNOCHILDRENFOREPHEMERALS:
        request->status = SL_EINVAL;
        request->detail = sl_strdup("an ephemeral node has no children");
        return;
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZCLOSING:
    case ZSESSIONMOVED:
        request->is_unknown = true;
        return;
    case ZSESSIONEXPIRED:
    case ZINVALIDSTATE:
        request->status = SL_ECLOSED;
        return;
    case ZNOAUTH:
    case ZINVALIDACL:
        request->status = SL_EUNAVAIL;
        request->detail = sl_strdup("access denied: the digest is missing or wrong");
        return;
    case ZTHROTTLEDOP:
        request->status = SL_EAGAIN;
        return;
    default:
        request->status = SL_EIO;
        request->detail = sl_asprintf("ZooKeeper: %s (%d)", zerror(rc), rc);
        return;
    }
}

static int
op_status(int rc)
{
    struct sl_state_request probe = {0};
    if (rc == ZRUNTIMEINCONSISTENCY) {
        return SL_ECANCELED;
    }
    set_status(&probe, rc);
    sl_free(probe.detail);
    return probe.status;
}

static bool
is_write(const struct sl_state_request *request)
{
    return request->kind != SL_STATE_GET && request->kind != SL_STATE_CHILDREN &&
           request->kind != SL_STATE_SYNC;
}

/* Results of a transaction that was answered. */
static void
set_multi_results(struct note *note)
{
    struct sl_state_request *request = note->request;
    size_t failed = request->op_count;
    for (size_t i = 0; i < note->op_count && failed == request->op_count; i++) {
        if (note->rc != ZOK && note->results[i].err != ZOK) {
            failed = i;
        }
    }
    sl_state_request_set_results(request, request->status, failed);
    for (size_t i = 0; i < note->op_count; i++) {
        if (note->rc != ZOK) {
            request->results[i].status = op_status(note->results[i].err);
        } else if (request->ops[i].kind == SL_STATE_CREATE) {
            request->results[i].path = path_below_root_dup(note->handle->zk, note->buffers[i]);
        } else if (request->ops[i].kind == SL_STATE_SET) {
            copy_stat(&note->stats[i], &request->results[i].stat);
        }
    }
}

static void
finish_request(struct note *note)
{
    struct sl_state_request *request = note->request;
    struct zookeeper *self = note->handle->zk;
    set_status(request, note->rc);
    if (is_write(request) && !request->is_unknown) {
        if (note->results != NULL) {
            set_multi_results(note);
        } else if (request->status != 0 || request->results == NULL) {
            sl_state_request_set_results(request, request->status, 0);
        }
    }
    self->events.complete(self->events.ctx, request);
}

static int
submit_multi(struct handle *handle, struct note *note)
{
    struct sl_state_request *request = note->request;
    size_t count = request->op_count;
    const struct ACL_vector *acl = acl_of(handle->zk);
    note->op_count = count;
    note->paths = sl_calloc(count, sizeof(*note->paths));
    note->ops = sl_calloc(count, sizeof(*note->ops));
    note->results = sl_calloc(count, sizeof(*note->results));
    note->stats = sl_calloc(count, sizeof(*note->stats));
    note->buffers = sl_calloc(count, sizeof(*note->buffers));
    for (size_t i = 0; i < count; i++) {
        const struct sl_state_op *op = &request->ops[i];
        zoo_op_t *zop = &note->ops[i];
        char *path = full_path_dup(handle->zk, op->path);
        note->paths[i] = path;
        switch (op->kind) {
        case SL_STATE_CREATE:
            zoo_create_op_init(zop, path, op->value, (int)op->size, acl, create_mode(op->flags),
                               note->buffers[i], PATH_BYTES);
            break;
        case SL_STATE_SET:
            zoo_set_op_init(zop, path, op->value, (int)op->size, op->version, &note->stats[i]);
            break;
        case SL_STATE_DELETE:
            zoo_delete_op_init(zop, path, op->version);
            break;
        default:
            zoo_check_op_init(zop, path, op->version);
            break;
        }
    }
    return zoo_amulti(handle->zh, (int)count, note->ops, note->results, on_void, note);
}

static int
submit_read(struct handle *handle, struct note *note, const char *path, bool is_watched)
{
    const struct sl_state_request *request = note->request;
    void *watch = (void *)(uintptr_t)request->watch_id;
    watcher_fn watcher = is_watched && request->watch_id != 0 ? on_watcher : NULL;
    if (request->kind == SL_STATE_CHILDREN) {
        return zoo_awget_children2(handle->zh, path, watcher, watcher != NULL ? watch : NULL,
                                   on_strings, note);
    }
    return zoo_awget(handle->zh, path, watcher, watcher != NULL ? watch : NULL, on_data, note);
}

static int
submit_note(struct handle *handle, struct note *note)
{
    struct sl_state_request *request = note->request;
    const struct sl_state_op *op = &request->ops[0];
    char *path = full_path_dup(handle->zk, op->path);
    int rc;
    switch (request->kind) {
    case SL_STATE_CREATE:
        rc = zoo_acreate(handle->zh, path, op->value, (int)op->size, acl_of(handle->zk),
                         create_mode(op->flags), on_string, note);
        break;
    case SL_STATE_SET:
        rc = zoo_aset(handle->zh, path, op->value, (int)op->size, op->version, on_stat, note);
        break;
    case SL_STATE_DELETE:
        rc = zoo_adelete(handle->zh, path, op->version, on_void, note);
        break;
    case SL_STATE_SYNC:
        rc = zoo_async(handle->zh, path, on_string, note);
        break;
    case SL_STATE_GET:
    case SL_STATE_CHILDREN:
        rc = submit_read(handle, note, path, true);
        break;
    default:
        rc = submit_multi(handle, note);
        break;
    }
    sl_free(path);
    return rc;
}

/* A request that the library did not take ends like one that was answered, in a turn of its own. */
static void
post_refused(struct note *note, int rc)
{
    note->rc = rc;
    note_post(note);
}

static void
zookeeper_submit(struct sl_state_backend *backend, struct sl_state_request *request)
{
    struct zookeeper *self = sl_container_of(backend, struct zookeeper, backend);
    struct handle *handle = self->handle;
    size_t bytes = 0;
    sl_assert(!is_in_callback);
    /* Larger ones the server answers by closing the connection, and again after each retry. The
     * store keeps within the limit. */
    for (size_t i = 0; i < request->op_count; i++) {
        bytes += request->ops[i].size;
    }
    sl_assert_le(bytes, SL_STATE_REQUEST_BYTES_MAX);
    sl_assert(handle != NULL);
    struct note *note = request_note_new(handle, NOTE_REQUEST);
    note->request = request;
    int rc = submit_note(handle, note);
    if (rc != ZOK) {
        post_refused(note, rc);
    }
}

/*
 * The library sets no watch for a read that finds no node: that takes a second request, and the
 * node may have come into being between them. Returns true when the request goes on.
 */
static bool
arm_missing(struct note *note)
{
    struct handle *handle = note->handle;
    struct sl_state_request *request = note->request;
    bool is_watched_read = (request->kind == SL_STATE_GET || request->kind == SL_STATE_CHILDREN) &&
                           request->watch_id != 0;
    if (!is_watched_read || handle->is_retired) {
        return false;
    }
    int rc;
    char *path = full_path_dup(handle->zk, request->ops[0].path);
    if (note->is_arming && note->rc == ZOK) {
        /* It is there now: read it. A value's watch is set already. */
        note->is_arming = false;
        rc = submit_read(handle, note, path, request->kind == SL_STATE_CHILDREN);
    } else if (!note->is_arming && note->rc == ZNONODE) {
        note->is_arming = true;
        rc = zoo_awexists(handle->zh, path, on_watcher, (void *)(uintptr_t)request->watch_id,
                          on_stat, note);
    } else {
        sl_free(path);
        return false;
    }
    sl_free(path);
    if (rc != ZOK) {
        note->is_arming = false;
        post_refused(note, rc);
    }
    return true;
}

/*
 * The root: it and a permanent child are made, with our rights, and what others may do is looked
 * at.
 */

static void
fail(struct zookeeper *self, const char *reason)
{
    if (!self->has_failed && !self->is_closing) {
        self->has_failed = true;
        self->events.link(self->events.ctx, SL_STATE_LINK_FAILED, 0, reason);
    }
}

static void
setup_send(struct handle *handle, enum setup setup)
{
    const struct zookeeper *self = handle->zk;
    struct note *note = request_note_new(handle, NOTE_SETUP);
    handle->setup = setup;
    char *marker = sl_asprintf("%s/%s", self->root, marker_name);
    char *part = sl_strndup(self->root, handle->setup_length);
    struct sl_buf value = {0};
    struct sl_state_envelope envelope = {0};
    sl_state_envelope_encode(&envelope, &value);
    int rc = ZOK;
    switch (setup) {
    case SETUP_LOOK:
        rc = zoo_aexists(handle->zh, marker, 0, on_stat, note);
        break;
    case SETUP_MAKE:
        rc = zoo_acreate(handle->zh, part, "", 0, acl_of(self), ZOO_PERSISTENT, on_string, note);
        break;
    case SETUP_MARK:
        rc = zoo_acreate(handle->zh, marker, (const char *)value.data, (int)value.size,
                         acl_of(self), ZOO_PERSISTENT, on_string, note);
        break;
    case SETUP_READ:
        rc = zoo_aget(handle->zh, marker, 0, on_data, note);
        break;
    case SETUP_ACL:
        rc = zoo_aget_acl(handle->zh, self->root, on_acl, note);
        break;
    default:
        sl_unreachable();
    }
    sl_buf_destroy(&value);
    sl_free(marker);
    sl_free(part);
    if (rc != ZOK) {
        post_refused(note, rc);
    }
}

/* The next part of the root's path, or 0 at its end. */
static size_t
next_part(const char *root, size_t length)
{
    if (root[length] == '\0') {
        return 0;
    }
    return length + 1 + strcspn(root + length + 1, "/");
}

static void
setup_done(struct handle *handle)
{
    struct zookeeper *self = handle->zk;
    handle->setup = SETUP_DONE;
    self->events.link(self->events.ctx, SL_STATE_LINK_UP, (uint64_t)handle->session, NULL);
}

/* From the start, at every connection until it is done. */
static void
setup_step(struct handle *handle)
{
    handle->setup_length = 0;
    setup_send(handle, SETUP_LOOK);
}

static void
setup_refused(struct handle *handle, int rc)
{
    struct zookeeper *self = handle->zk;
    char *reason =
        rc == ZNOAUTH ? sl_asprintf("%s: access to %s denied: the digest is missing or wrong",
                                    self->name, self->root)
                      : sl_asprintf("%s: root %s: %s (%d)", self->name, self->root, zerror(rc), rc);
    fail(self, reason);
    sl_free(reason);
}

static void
setup_make_next(struct handle *handle)
{
    handle->setup_length = next_part(handle->zk->root, handle->setup_length);
    setup_send(handle, handle->setup_length != 0 ? SETUP_MAKE : SETUP_MARK);
}

static void
on_setup(struct note *note)
{
    struct handle *handle = note->handle;
    struct zookeeper *self = handle->zk;
    int rc = note->rc;
    bool is_no_answer = rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZSESSIONMOVED ||
                        rc == ZCLOSING || rc == ZSESSIONEXPIRED || rc == ZINVALIDSTATE;
    if (handle->is_retired || self->has_failed || is_no_answer) {
        /* The next connection starts again. */
        return;
    }
    switch (handle->setup) {
    case SETUP_LOOK:
        if (rc == ZOK) {
            setup_send(handle, SETUP_READ);
        } else if (rc == ZNONODE) {
            setup_make_next(handle);
        } else {
            setup_refused(handle, rc);
        }
        return;
    case SETUP_MAKE:
        /* A parent that is not ours to change may be there all the same. */
        if (rc == ZOK || rc == ZNODEEXISTS || rc == ZNOAUTH) {
            setup_make_next(handle);
        } else {
            setup_refused(handle, rc);
        }
        return;
    case SETUP_MARK:
        if (rc == ZOK || rc == ZNODEEXISTS) {
            setup_send(handle, SETUP_READ);
        } else {
            setup_refused(handle, rc);
        }
        return;
    case SETUP_READ:
        if (rc != ZOK) {
            setup_refused(handle, rc);
        } else if (self->digest != NULL) {
            setup_send(handle, SETUP_ACL);
        } else {
            setup_done(handle);
        }
        return;
    case SETUP_ACL:
        if (rc != ZOK) {
            setup_refused(handle, rc);
        } else if (note->is_open_to_all) {
            char *reason = sl_asprintf("%s: root %s may be changed by everybody; give it rights or "
                                       "use another root",
                                       self->name, self->root);
            fail(self, reason);
            sl_free(reason);
        } else {
            setup_done(handle);
        }
        return;
    default:
        return;
    }
}

/*
 * Helper threads
 */

struct helper {
    struct zookeeper *zk;
    pthread_t thread;
    void (*work)(struct helper *helper);
    void (*done)(struct helper *helper);
    /* Of a close. */
    struct handle *handle;
    /* Of a resolution: "address:port,...", and what did not resolve. */
    char *addresses;
    char *failures;
};

static void zookeeper_finish_close(struct zookeeper *self);

static void
on_helper_done(void *arg)
{
    struct helper *helper = arg;
    struct zookeeper *self = helper->zk;
    pthread_join(helper->thread, NULL);
    self->helpers--;
    helper->done(helper);
    sl_free(helper->addresses);
    sl_free(helper->failures);
    sl_free(helper);
    zookeeper_finish_close(self);
}

static void *
helper_main(void *arg)
{
    struct helper *helper = arg;
    sl_log_set_thread("state-zookeeper");
    helper->work(helper);
    sl_state_executor_post(helper->zk->executor, on_helper_done, helper);
    return NULL;
}

static void
helper_start(struct zookeeper *self, struct handle *handle, void (*work)(struct helper *helper),
             void (*done)(struct helper *helper))
{
    struct helper *helper = sl_calloc(1, sizeof(*helper));
    helper->zk = self;
    helper->handle = handle;
    helper->work = work;
    helper->done = done;
    self->helpers++;
    int rc = pthread_create(&helper->thread, NULL, helper_main, helper);
    /* Without a thread there is no way to go on or to end. */
    sl_assert_eq(rc, 0);
}

static void
close_work(struct helper *helper)
{
    int rc = zookeeper_close(helper->handle->zh);
    if (rc != ZOK) {
        sl_log_verbose("state.zookeeper", "close: %s", zerror(rc));
    }
}

/* Everything that the handle still posted came before this. What was sent right before the close
 * the library forgets at times, without a completion: nobody knows what became of it. */
static void
close_done(struct helper *helper)
{
    struct handle *handle = helper->handle;
    sl_list_each(&handle->notes, it)
    {
        struct note *note = sl_container_of(it, struct note, node);
        sl_list_remove(&note->node);
        note->rc = ZCLOSING;
        if (note->kind == NOTE_REQUEST) {
            finish_request(note);
        }
        note_free(note);
    }
    sl_free(handle);
}

/* Takes a handle out of use; its remaining completions come while it is closed. */
static void
handle_retire(struct handle *handle)
{
    struct zookeeper *self = handle->zk;
    sl_assert(!is_in_callback);
    handle->is_retired = true;
    if (self->handle == handle) {
        self->handle = NULL;
    }
    helper_start(self, handle, close_work, close_done);
}

static void
append_host(struct sl_buf *out, const struct addrinfo *info, uint16_t port)
{
    char address[NI_MAXHOST];
    if (getnameinfo(info->ai_addr, info->ai_addrlen, address, sizeof(address), NULL, 0,
                    NI_NUMERICHOST) == 0) {
        sl_buf_printf(out, "%s%s:%u", out->size > 0 ? "," : "", address, port);
    }
}

/* Host names by us, one by one: the library refuses all of them when one is bad. */
static void
resolve_work(struct helper *helper)
{
    const struct sl_state_url *url = &helper->zk->url;
    struct sl_buf addresses = {0};
    struct sl_buf failures = {0};
    for (size_t i = 0; i < url->host_count; i++) {
        const struct sl_state_host *host = &url->hosts[i];
        struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
        struct addrinfo *found = NULL;
        int rc = getaddrinfo(host->name, NULL, &hints, &found);
        for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
            append_host(&addresses, at, host->port);
        }
        if (rc != 0) {
            sl_buf_printf(&failures, "%s%s: %s", failures.size > 0 ? "; " : "", host->name,
                          gai_strerror(rc));
        } else {
            freeaddrinfo(found);
        }
    }
    if (addresses.size > 0) {
        helper->addresses = sl_strdup(sl_buf_str(&addresses));
    }
    if (failures.size > 0) {
        helper->failures = sl_strdup(sl_buf_str(&failures));
    }
    sl_buf_destroy(&addresses);
    sl_buf_destroy(&failures);
}

/*
 * Handles
 */

static void
on_retry(void *arg)
{
    struct zookeeper *self = arg;
    self->retry_timer = 0;
    handle_start(self);
}

static void
retry_later(struct zookeeper *self, const char *reason)
{
    self->events.link(self->events.ctx, SL_STATE_LINK_DOWN, 0, reason);
    self->retry_timer = sl_state_executor_timer_start(self->executor, RETRY_MS, on_retry, self);
}

static void
on_auth(int rc, const void *data)
{
    (void)data;
    is_in_callback = true;
    if (rc != ZOK) {
        sl_log_warn("state.zookeeper", "digest: %s", zerror(rc));
    }
}

static void
handle_open(struct zookeeper *self, const char *addresses)
{
    struct handle *handle = sl_calloc(1, sizeof(*handle));
    handle->zk = self;
    sl_list_create(&handle->notes);
    handle->timeout_ms = (int)self->session_timeout_ms;
    /* Only where it is read: its threads write the lines into one buffer, unguarded. Never at debug
     * level: they use freed memory there (ZOOKEEPER-4809). */
    bool is_read = sl_log_is_enabled("state.zookeeper", SL_LOG_VERBOSE);
    zoo_set_debug_level(is_read ? ZOO_LOG_LEVEL_WARN : (ZooLogLevel)0);
    self->handle = handle;
    handle->zh = zookeeper_init2(addresses, on_watcher, (int)self->session_timeout_ms, NULL, handle,
                                 ZOO_NO_LOG_CLIENTENV, on_library_log);
    mark_descriptors();
    if (handle->zh == NULL) {
        char *reason = sl_asprintf("%s: %s", self->name, strerror(errno));
        self->handle = NULL;
        sl_free(handle);
        retry_later(self, reason);
        sl_free(reason);
        return;
    }
    if (self->digest != NULL) {
        int rc = zoo_add_auth(handle->zh, "digest", self->digest, (int)strlen(self->digest),
                              on_auth, NULL);
        if (rc != ZOK) {
            sl_log_warn("state.zookeeper", "digest: %s", zerror(rc));
        }
    }
}

static void
resolve_done(struct helper *helper)
{
    struct zookeeper *self = helper->zk;
    if (self->is_closing) {
        return;
    }
    if (helper->failures != NULL) {
        sl_log_warn("state.zookeeper", "%s: %s", self->name, helper->failures);
    }
    if (helper->addresses == NULL) {
        char *reason = sl_asprintf("%s: %s", self->name, helper->failures);
        retry_later(self, reason);
        sl_free(reason);
        return;
    }
    handle_open(self, helper->addresses);
}

static void
handle_start(struct zookeeper *self)
{
    helper_start(self, NULL, resolve_work, resolve_done);
}

static void
on_session(struct note *note)
{
    struct handle *handle = note->handle;
    struct zookeeper *self = handle->zk;
    if (handle->is_retired || self->has_failed) {
        return;
    }
    if (note->state == ZOO_CONNECTED_STATE) {
        handle->is_connected = true;
        handle->session = note->session;
        handle->timeout_ms = note->timeout_ms;
        if (handle->setup == SETUP_DONE) {
            setup_done(handle);
        } else {
            setup_step(handle);
        }
    } else if (note->state == ZOO_EXPIRED_SESSION_STATE) {
        handle_retire(handle);
        self->events.link(self->events.ctx, SL_STATE_LINK_EXPIRED, 0, NULL);
        if (!self->is_closing) {
            handle_start(self);
        }
    } else if (note->state == ZOO_AUTH_FAILED_STATE) {
        setup_refused(handle, ZNOAUTH);
    } else if (handle->is_connected) {
        handle->is_connected = false;
        self->events.link(self->events.ctx, SL_STATE_LINK_DOWN, 0, NULL);
    }
}

static void
on_note(void *arg)
{
    struct note *note = arg;
    struct zookeeper *self = note->handle->zk;
    switch (note->kind) {
    case NOTE_SESSION:
        on_session(note);
        break;
    case NOTE_WATCH:
        if (!note->handle->is_retired) {
            self->events.watch(self->events.ctx, note->watch_id);
        }
        break;
    case NOTE_SETUP:
        on_setup(note);
        break;
    case NOTE_REQUEST:
        if (arm_missing(note)) {
            return;
        }
        finish_request(note);
        break;
    }
    if (note->kind == NOTE_REQUEST || note->kind == NOTE_SETUP) {
        sl_list_remove(&note->node);
    }
    note_free(note);
}

/*
 * The backend
 */

static void
zookeeper_open(struct sl_state_backend *backend, const struct sl_state_backend_events *events)
{
    struct zookeeper *self = sl_container_of(backend, struct zookeeper, backend);
    self->events = *events;
    handle_start(self);
}

/* The end, once no helper is left that could come back. */
static void
zookeeper_finish_close(struct zookeeper *self)
{
    if (!self->is_closing || self->helpers > 0) {
        return;
    }
    sl_state_task_fn fn = self->closed_fn;
    void *arg = self->closed_arg;
    sl_free(self->name);
    sl_free(self->root);
    if (self->digest != NULL) {
        explicit_bzero(self->digest, strlen(self->digest));
        sl_free(self->digest);
    }
    sl_free(self);
    fn(arg);
}

static void
on_close_without_helper(void *arg)
{
    zookeeper_finish_close(arg);
}

static void
zookeeper_backend_close(struct sl_state_backend *backend, sl_state_task_fn fn, void *arg)
{
    struct zookeeper *self = sl_container_of(backend, struct zookeeper, backend);
    self->is_closing = true;
    self->closed_fn = fn;
    self->closed_arg = arg;
    sl_state_executor_timer_stop(self->executor, &self->retry_timer);
    if (self->handle != NULL) {
        handle_retire(self->handle);
    } else if (self->helpers == 0) {
        sl_state_executor_post(self->executor, on_close_without_helper, self);
    }
}

static uint64_t
zookeeper_session_timeout(const struct sl_state_backend *backend)
{
    const struct zookeeper *self = sl_container_of(backend, const struct zookeeper, backend);
    return self->handle != NULL ? (uint64_t)self->handle->timeout_ms : self->session_timeout_ms;
}

static char *
name_dup(const struct sl_state_url *url)
{
    struct sl_buf text = {0};
    sl_buf_append_str(&text, "zookeeper at ");
    for (size_t i = 0; i < url->host_count; i++) {
        sl_buf_printf(&text, "%s%s:%u", i > 0 ? "," : "", url->hosts[i].name, url->hosts[i].port);
    }
    char *name = sl_strdup(sl_buf_str(&text));
    sl_buf_destroy(&text);
    return name;
}

struct sl_state_backend *
sl_zookeeper_backend_new(const struct sl_state_url *url, const struct sl_state_executor *executor,
                         const struct sl_zookeeper_options *options)
{
    struct zookeeper *self = sl_calloc(1, sizeof(*self));
    sl_assert_eq(url->scheme, SL_STATE_ZOOKEEPER);
    self->url = *url;
    self->name = name_dup(url);
    self->root = sl_strdup(url->path);
    self->executor = executor;
    self->session_timeout_ms = options != NULL && options->session_timeout_ms != 0
                                   ? options->session_timeout_ms
                                   : SL_ZOOKEEPER_SESSION_MS;
    if (options != NULL && options->digest != NULL) {
        self->digest = sl_strdup(options->digest);
    }
    self->backend = (struct sl_state_backend){
        .name = self->name,
        .open = zookeeper_open,
        .submit = zookeeper_submit,
        .close = zookeeper_backend_close,
        .session_timeout_ms = zookeeper_session_timeout,
    };
    return &self->backend;
}

int
sl_zookeeper_client_id(const struct sl_state_backend *backend, int64_t *id, char password[16])
{
    const struct zookeeper *self = sl_container_of(backend, const struct zookeeper, backend);
    if (self->handle == NULL || !self->handle->is_connected) {
        return sl_err_set(SL_ECLOSED, "no session");
    }
    const clientid_t *client = zoo_client_id(self->handle->zh);
    *id = client->client_id;
    memcpy(password, client->passwd, sizeof(client->passwd));
    return 0;
}

const char *
sl_zookeeper_client_version(void)
{
    return ZOO_VERSION;
}
