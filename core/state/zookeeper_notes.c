/* What comes from the library's threads is copied into a note and posted to the owner. */
#include <errno.h>
#include <linux/close_range.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/log.h"
#include "state/zookeeper_priv.h"

_Thread_local bool sl__zk_is_in_callback;

static struct sl__zk_note *
note_new(struct sl__zk_handle *handle, enum sl__zk_note_kind kind)
{
    struct sl__zk_note *note = sl_calloc(1, sizeof(*note));
    note->handle = handle;
    note->kind = kind;
    return note;
}

struct sl__zk_note *
sl__zk_request_note_new(struct sl__zk_handle *handle, enum sl__zk_note_kind kind)
{
    struct sl__zk_note *note = note_new(handle, kind);
    sl_list_push_back(&handle->notes, &note->node);
    return note;
}

void
sl__zk_note_free(struct sl__zk_note *note)
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

void
sl__zk_note_post(struct sl__zk_note *note)
{
    sl_state_executor_post(note->handle->zk->executor, sl__zk_on_note, note);
}

/* The library opens its sockets and pipes without close-on-exec, at any reconnect. Nothing that a
 * child should inherit is inherited by chance, so every descriptor can be marked. */
void
sl__zk_mark_descriptors(void)
{
    if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
        sl_log_warn("state.zookeeper", "close-on-exec: %s", strerror(errno));
    }
}

void
sl__zk_on_watcher(zhandle_t *zh, int type, int state, const char *path, void *watch_ctx)
{
    (void)path;
    struct sl__zk_handle *handle = (struct sl__zk_handle *)(uintptr_t)zoo_get_context(zh);
    sl__zk_is_in_callback = true;
    if (type == ZOO_SESSION_EVENT) {
        if (watch_ctx != handle) {
            /* The same news for each watch. */
            return;
        }
        sl__zk_mark_descriptors();
        struct sl__zk_note *note = note_new(handle, SL__ZK_NOTE_SESSION);
        note->state = state;
        note->session = zoo_client_id(zh)->client_id;
        note->timeout_ms = zoo_recv_timeout(zh);
        sl__zk_note_post(note);
        return;
    }
    if (watch_ctx == handle) {
        return;
    }
    struct sl__zk_note *note = note_new(handle, SL__ZK_NOTE_WATCH);
    note->watch_id = (uint64_t)(uintptr_t)watch_ctx;
    sl__zk_note_post(note);
}

void
sl__zk_copy_stat(const struct Stat *from, struct sl_state_stat *to)
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
char *
sl__zk_path_below_root_dup(const struct sl__zk *self, const char *full)
{
    size_t len = strlen(self->root);
    sl_assert(strncmp(full, self->root, len) == 0);
    return sl_strdup(full[len] == '\0' ? "/" : full + len);
}

void
sl__zk_on_void(int rc, const void *data)
{
    struct sl__zk_note *note = (struct sl__zk_note *)(uintptr_t)data;
    sl__zk_is_in_callback = true;
    note->rc = rc;
    sl__zk_note_post(note);
}

void
sl__zk_on_string(int rc, const char *value, const void *data)
{
    struct sl__zk_note *note = (struct sl__zk_note *)(uintptr_t)data;
    sl__zk_is_in_callback = true;
    note->rc = rc;
    if (rc == ZOK && note->request != NULL && note->request->kind == SL_STATE_CREATE) {
        sl_state_request_set_results(note->request, 0, 0);
        note->request->results[0].path = sl__zk_path_below_root_dup(note->handle->zk, value);
    }
    sl__zk_note_post(note);
}

void
sl__zk_on_stat(int rc, const struct Stat *stat, const void *data)
{
    struct sl__zk_note *note = (struct sl__zk_note *)(uintptr_t)data;
    sl__zk_is_in_callback = true;
    note->rc = rc;
    if (rc == ZOK && note->request != NULL && note->request->kind == SL_STATE_SET) {
        sl_state_request_set_results(note->request, 0, 0);
        sl__zk_copy_stat(stat, &note->request->results[0].stat);
    }
    sl__zk_note_post(note);
}

void
sl__zk_on_data(int rc, const char *value, int value_len, const struct Stat *stat, const void *data)
{
    struct sl__zk_note *note = (struct sl__zk_note *)(uintptr_t)data;
    sl__zk_is_in_callback = true;
    note->rc = rc;
    if (rc == ZOK && note->request != NULL) {
        sl__zk_copy_stat(stat, &note->request->stat);
        /* The length of a node without data is -1. */
        if (value != NULL && value_len > 0) {
            sl_buf_append(&note->request->data, value, (size_t)value_len);
        }
    }
    sl__zk_note_post(note);
}

void
sl__zk_on_strings(int rc, const struct String_vector *strings, const struct Stat *stat,
                  const void *data)
{
    struct sl__zk_note *note = (struct sl__zk_note *)(uintptr_t)data;
    struct sl_state_request *request = note->request;
    sl__zk_is_in_callback = true;
    note->rc = rc;
    if (rc == ZOK) {
        sl__zk_copy_stat(stat, &request->stat);
        bool is_root = request->ops[0].path[1] == '\0';
        for (int32_t i = 0; i < strings->count; i++) {
            if (is_root && strcmp(strings->data[i], SL__ZK_MARKER) == 0) {
                /* Ours, and none of the store's. */
                request->stat.child_count--;
                continue;
            }
            sl_vec_push(&request->children, sl_strdup(strings->data[i]));
        }
    }
    sl__zk_note_post(note);
}

/* Whether anybody but the creator may change the node. */
void
sl__zk_on_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *data)
{
    struct sl__zk_note *note = (struct sl__zk_note *)(uintptr_t)data;
    (void)stat;
    sl__zk_is_in_callback = true;
    note->rc = rc;
    for (int32_t i = 0; rc == ZOK && i < acl->count; i++) {
        const struct ACL *entry = &acl->data[i];
        note->is_open_to_all |=
            strcmp(entry->id.scheme, "world") == 0 && (entry->perms & ~ZOO_PERM_READ) != 0;
    }
    sl__zk_note_post(note);
}
