/* Requests of the store as calls of the library, and their answers as results. */
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "state/path.h"
#include "state/zookeeper_priv.h"

const struct ACL_vector *
sl__zk_acl_of(const struct sl__zk *self)
{
    return self->digest != NULL ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
}

static char *
full_path_dup(const struct sl__zk *self, const char *path)
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
set_multi_results(struct sl__zk_note *note)
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
            request->results[i].path =
                sl__zk_path_below_root_dup(note->handle->zk, note->buffers[i]);
        } else if (request->ops[i].kind == SL_STATE_SET) {
            sl__zk_copy_stat(&note->stats[i], &request->results[i].stat);
        }
    }
}

void
sl__zk_finish_request(struct sl__zk_note *note)
{
    struct sl_state_request *request = note->request;
    struct sl__zk *self = note->handle->zk;
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
submit_multi(struct sl__zk_handle *handle, struct sl__zk_note *note)
{
    struct sl_state_request *request = note->request;
    size_t count = request->op_count;
    const struct ACL_vector *acl = sl__zk_acl_of(handle->zk);
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
                               note->buffers[i], SL__ZK_PATH_BYTES);
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
    return zoo_amulti(handle->zh, (int)count, note->ops, note->results, sl__zk_on_void, note);
}

static int
submit_read(struct sl__zk_handle *handle, struct sl__zk_note *note, const char *path,
            bool is_watched)
{
    const struct sl_state_request *request = note->request;
    void *watch = (void *)(uintptr_t)request->watch_id;
    watcher_fn watcher = is_watched && request->watch_id != 0 ? sl__zk_on_watcher : NULL;
    if (request->kind == SL_STATE_CHILDREN) {
        return zoo_awget_children2(handle->zh, path, watcher, watcher != NULL ? watch : NULL,
                                   sl__zk_on_strings, note);
    }
    return zoo_awget(handle->zh, path, watcher, watcher != NULL ? watch : NULL, sl__zk_on_data,
                     note);
}

static int
submit_note(struct sl__zk_handle *handle, struct sl__zk_note *note)
{
    struct sl_state_request *request = note->request;
    const struct sl_state_op *op = &request->ops[0];
    char *path = full_path_dup(handle->zk, op->path);
    int rc;
    switch (request->kind) {
    case SL_STATE_CREATE:
        rc = zoo_acreate(handle->zh, path, op->value, (int)op->size, sl__zk_acl_of(handle->zk),
                         create_mode(op->flags), sl__zk_on_string, note);
        break;
    case SL_STATE_SET:
        rc =
            zoo_aset(handle->zh, path, op->value, (int)op->size, op->version, sl__zk_on_stat, note);
        break;
    case SL_STATE_DELETE:
        rc = zoo_adelete(handle->zh, path, op->version, sl__zk_on_void, note);
        break;
    case SL_STATE_SYNC:
        rc = zoo_async(handle->zh, path, sl__zk_on_string, note);
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
void
sl__zk_post_refused(struct sl__zk_note *note, int rc)
{
    note->rc = rc;
    sl__zk_note_post(note);
}

void
sl__zk_submit(struct sl_state_backend *backend, struct sl_state_request *request)
{
    struct sl__zk *self = sl_container_of(backend, struct sl__zk, backend);
    struct sl__zk_handle *handle = self->handle;
    size_t bytes = 0;
    sl_assert(!sl__zk_is_in_callback);
    /* Larger ones the server answers by closing the connection, and again after each retry. The
     * store keeps within the limit. */
    for (size_t i = 0; i < request->op_count; i++) {
        bytes += request->ops[i].size;
    }
    sl_assert_le(bytes, SL_STATE_REQUEST_BYTES_MAX);
    sl_assert(handle != NULL);
    struct sl__zk_note *note = sl__zk_request_note_new(handle, SL__ZK_NOTE_REQUEST);
    note->request = request;
    int rc = submit_note(handle, note);
    if (rc != ZOK) {
        sl__zk_post_refused(note, rc);
    }
}

/*
 * The library sets no watch for a read that finds no node: that takes a second request, and the
 * node may have come into being between them. Returns true when the request goes on.
 */
bool
sl__zk_arm_missing(struct sl__zk_note *note)
{
    struct sl__zk_handle *handle = note->handle;
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
        rc = zoo_awexists(handle->zh, path, sl__zk_on_watcher, (void *)(uintptr_t)request->watch_id,
                          sl__zk_on_stat, note);
    } else {
        sl_free(path);
        return false;
    }
    sl_free(path);
    if (rc != ZOK) {
        note->is_arming = false;
        sl__zk_post_refused(note, rc);
    }
    return true;
}
