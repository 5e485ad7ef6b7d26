/* The root: it and a permanent child are made, with our rights, and what others may do is looked
 * at. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "state/value_codec.h"
#include "state/zookeeper_priv.h"

static void
fail(struct sl__zk *self, const char *reason)
{
    if (!self->has_failed && !self->is_closing) {
        self->has_failed = true;
        self->events.link(self->events.ctx, SL_STATE_LINK_FAILED, 0, reason);
    }
}

static void
setup_send(struct sl__zk_handle *handle, enum sl__zk_setup setup)
{
    const struct sl__zk *self = handle->zk;
    struct sl__zk_note *note = sl__zk_request_note_new(handle, SL__ZK_NOTE_SETUP);
    handle->setup = setup;
    char *marker = sl_asprintf("%s/%s", self->root, SL__ZK_MARKER);
    char *part = sl_strndup(self->root, handle->setup_length);
    struct sl_buf value = {0};
    struct sl_state_envelope envelope = {0};
    sl_state_envelope_encode(&envelope, &value);
    int rc = ZOK;
    switch (setup) {
    case SL__ZK_SETUP_LOOK:
        rc = zoo_aexists(handle->zh, marker, 0, sl__zk_on_stat, note);
        break;
    case SL__ZK_SETUP_MAKE:
        rc = zoo_acreate(handle->zh, part, "", 0, sl__zk_acl_of(self), ZOO_PERSISTENT,
                         sl__zk_on_string, note);
        break;
    case SL__ZK_SETUP_MARK:
        rc = zoo_acreate(handle->zh, marker, (const char *)value.data, (int)value.size,
                         sl__zk_acl_of(self), ZOO_PERSISTENT, sl__zk_on_string, note);
        break;
    case SL__ZK_SETUP_READ:
        rc = zoo_aget(handle->zh, marker, 0, sl__zk_on_data, note);
        break;
    case SL__ZK_SETUP_ACL:
        rc = zoo_aget_acl(handle->zh, self->root, sl__zk_on_acl, note);
        break;
    default:
        sl_unreachable();
    }
    sl_buf_destroy(&value);
    sl_free(marker);
    sl_free(part);
    if (rc != ZOK) {
        sl__zk_post_refused(note, rc);
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

void
sl__zk_root_done(struct sl__zk_handle *handle)
{
    struct sl__zk *self = handle->zk;
    handle->setup = SL__ZK_SETUP_DONE;
    self->events.link(self->events.ctx, SL_STATE_LINK_UP, (uint64_t)handle->session, NULL);
}

/* From the start, at every connection until it is done. */
void
sl__zk_root_start(struct sl__zk_handle *handle)
{
    handle->setup_length = 0;
    setup_send(handle, SL__ZK_SETUP_LOOK);
}

void
sl__zk_root_refused(struct sl__zk_handle *handle, int rc)
{
    struct sl__zk *self = handle->zk;
    char *reason =
        rc == ZNOAUTH ? sl_asprintf("%s: access to %s denied: the digest is missing or wrong",
                                    self->name, self->root)
                      : sl_asprintf("%s: root %s: %s (%d)", self->name, self->root, zerror(rc), rc);
    fail(self, reason);
    sl_free(reason);
}

static void
setup_make_next(struct sl__zk_handle *handle)
{
    handle->setup_length = next_part(handle->zk->root, handle->setup_length);
    setup_send(handle, handle->setup_length != 0 ? SL__ZK_SETUP_MAKE : SL__ZK_SETUP_MARK);
}

void
sl__zk_on_root(struct sl__zk_note *note)
{
    struct sl__zk_handle *handle = note->handle;
    struct sl__zk *self = handle->zk;
    int rc = note->rc;
    bool is_no_answer = rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZSESSIONMOVED ||
                        rc == ZCLOSING || rc == ZSESSIONEXPIRED || rc == ZINVALIDSTATE;
    if (handle->is_retired || self->has_failed || is_no_answer) {
        /* The next connection starts again. */
        return;
    }
    switch (handle->setup) {
    case SL__ZK_SETUP_LOOK:
        if (rc == ZOK) {
            setup_send(handle, SL__ZK_SETUP_READ);
        } else if (rc == ZNONODE) {
            setup_make_next(handle);
        } else {
            sl__zk_root_refused(handle, rc);
        }
        return;
    case SL__ZK_SETUP_MAKE:
        /* A parent that is not ours to change may be there all the same. */
        if (rc == ZOK || rc == ZNODEEXISTS || rc == ZNOAUTH) {
            setup_make_next(handle);
        } else {
            sl__zk_root_refused(handle, rc);
        }
        return;
    case SL__ZK_SETUP_MARK:
        if (rc == ZOK || rc == ZNODEEXISTS) {
            setup_send(handle, SL__ZK_SETUP_READ);
        } else {
            sl__zk_root_refused(handle, rc);
        }
        return;
    case SL__ZK_SETUP_READ:
        if (rc != ZOK) {
            sl__zk_root_refused(handle, rc);
        } else if (self->digest != NULL) {
            setup_send(handle, SL__ZK_SETUP_ACL);
        } else {
            sl__zk_root_done(handle);
        }
        return;
    case SL__ZK_SETUP_ACL:
        if (rc != ZOK) {
            sl__zk_root_refused(handle, rc);
        } else if (note->is_open_to_all) {
            char *reason = sl_asprintf("%s: root %s may be changed by everybody; give it rights or "
                                       "use another root",
                                       self->name, self->root);
            fail(self, reason);
            sl_free(reason);
        } else {
            sl__zk_root_done(handle);
        }
        return;
    default:
        return;
    }
}
