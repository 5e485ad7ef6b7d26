#include <string.h>

#include "base/alloc.h"
#include "state/call_priv.h"

/*
 * Looking up the outcome of a write whose answer was lost.
 */

/* How well an operation tells whether its transaction was carried out; 0: not at all. A node with
 * our GUID in its name is nobody else's; our mark in a value can be overwritten; a delete leaves
 * none. */
static int
marker_rank(const struct sl__state_call *call, size_t index)
{
    const struct sl_state_op *op = &call->ops[index];
    if (op->kind == SL_STATE_DELETE) {
        return 1;
    }
    if (!sl__state_has_value(op)) {
        return 0;
    }
    for (size_t i = index + 1; i < call->op_count; i++) {
        if (call->ops[i].kind == SL_STATE_DELETE && strcmp(call->ops[i].path, op->path) == 0) {
            return 0;
        }
    }
    if (op->kind == SL_STATE_SET) {
        return op->version == SL_STATE_ANY_VERSION ? 2 : 3;
    }
    return (op->flags & SL_STATE_SEQUENTIAL) != 0 ? 5 : 4;
}

/* The operation that tells best, or NULL when there are only checks. */
const struct sl_state_op *
sl__state_call_marker(const struct sl__state_call *call)
{
    const struct sl_state_op *marker = NULL;
    int best = 0;
    for (size_t i = 0; i < call->op_count; i++) {
        int rank = marker_rank(call, i);
        if (rank > best) {
            best = rank;
            marker = &call->ops[i];
        }
    }
    return marker;
}

void
sl__state_call_look(struct sl__state_call *call)
{
    const struct sl_state_op *marker = sl__state_call_marker(call);
    struct sl_state_request *request;
    if (marker->kind == SL_STATE_CREATE && (marker->flags & SL_STATE_SEQUENTIAL) != 0) {
        char *parent = sl_state_path_parent_dup(marker->path);
        request = sl__state_request_path(SL_STATE_CHILDREN, parent);
        sl_free(parent);
    } else {
        request = sl__state_request_path(SL_STATE_GET, marker->path);
    }
    sl__state_call_send(call, request);
}

/* The write was carried out, as a look shows; `seen` is the marker as it was found. */
static void
finish_found(struct sl__state_call *call, const char *path, const struct sl_state_stat *stat)
{
    const struct sl_state_op *marker = sl__state_call_marker(call);
    struct sl_state_request *made = sl__state_request_new(call->kind, call->op_count);
    sl_state_request_set_results(made, 0, 0);
    for (size_t i = 0; i < call->op_count; i++) {
        const struct sl_state_op *op = &call->ops[i];
        if (op->kind == SL_STATE_CREATE) {
            made->results[i].path = sl_strdup(op == marker && path != NULL ? path : op->path);
        }
        if (op == marker && stat != NULL) {
            made->results[i].stat = *stat;
        }
    }
    sl__state_call_finish_write(call, 0, call->op_count, made);
    sl__state_request_free(made);
}

/*
 * The write was not carried out and, since requests of a session are carried out in order and the
 * look came after it, never will be.
 */
static void
send_again(struct sl__state_call *call)
{
    sl__state_call_go(call, SL__STAGE_SEND);
}

/* It may have been carried out, but what it left has been replaced since. */
static void
finish_doubtful(struct sl__state_call *call)
{
    sl__state_call_finish(call, SL_ETIMEOUT,
                          "the connection broke; it may have been carried out and replaced since",
                          NULL);
}

static bool
is_our_mark(const struct sl__state_call *call, const struct sl_state_request *request,
            const struct sl_state_op *marker)
{
    struct sl_arena arena;
    struct sl_state_envelope envelope;
    sl_arena_create(&arena, 0, 0);
    bool is_ours =
        sl_state_envelope_decode(request->data.data, request->data.size, &arena, &envelope) == 0 &&
        envelope.attempt == call->attempt &&
        memcmp(envelope.writer, call->store->writer, SL_STATE_WRITER_BYTES) == 0;
    sl_arena_destroy(&arena);
    if ((marker->flags & SL_STATE_EPHEMERAL) != 0 && request->stat.owner != call->store->session) {
        /* What a session that is over left behind is as good as gone. */
        is_ours = false;
    }
    return is_ours;
}

static void
complete_look_children(struct sl__state_call *call, const struct sl_state_request *request,
                       const struct sl_state_op *marker)
{
    for (size_t i = 0; request->status == 0 && i < request->children.count; i++) {
        if (sl_state_path_has_guid(request->children.items[i], call->guid)) {
            char *parent = sl_state_path_parent_dup(marker->path);
            char *path = sl_state_path_join_dup(parent, request->children.items[i]);
            sl_free(parent);
            finish_found(call, path, NULL);
            sl_free(path);
            return;
        }
    }
    send_again(call);
}

/* A delete whose node is there was not carried out. One whose node is gone was, or had no need. */
static void
complete_look_delete(struct sl__state_call *call, const struct sl_state_request *request,
                     const struct sl_state_op *marker)
{
    size_t deletes = 0;
    for (size_t i = 0; i < call->op_count; i++) {
        deletes += call->ops[i].kind == SL_STATE_DELETE;
    }
    bool is_own_name = strncmp(sl_state_path_name(marker->path), "_c_", 3) == 0;
    if (request->status == SL_ENOTFOUND && deletes == 1) {
        finish_found(call, NULL, NULL);
    } else if (request->status == 0 && (marker->version != SL_STATE_ANY_VERSION || is_own_name)) {
        send_again(call);
    } else {
        /* One of several may have been deleted by somebody else, or made anew. */
        finish_doubtful(call);
    }
}

static void
complete_look_value(struct sl__state_call *call, const struct sl_state_request *request,
                    const struct sl_state_op *marker)
{
    bool is_there = request->status == 0;
    if (is_there && is_our_mark(call, request, marker)) {
        finish_found(call, NULL, &request->stat);
        return;
    }
    bool is_certain;
    if (marker->kind == SL_STATE_CREATE) {
        /* Ours would be there, or somebody changed it. */
        is_certain = !is_there || request->stat.version == 0;
    } else {
        /* Ours would have made version + 1, and that one is another's. */
        is_certain = is_there && marker->version != SL_STATE_ANY_VERSION &&
                     request->stat.version <= marker->version + 1;
    }
    if (is_certain) {
        send_again(call);
    } else {
        finish_doubtful(call);
    }
}

void
sl__state_call_looked(struct sl__state_call *call, const struct sl_state_request *request)
{
    const struct sl_state_op *marker = sl__state_call_marker(call);
    if (request->status != 0 && request->status != SL_ENOTFOUND) {
        sl__state_call_finish(call, SL_ETIMEOUT, request->detail, NULL);
        return;
    }
    if (request->kind == SL_STATE_CHILDREN) {
        complete_look_children(call, request, marker);
    } else if (marker->kind == SL_STATE_DELETE) {
        complete_look_delete(call, request, marker);
    } else {
        complete_look_value(call, request, marker);
    }
}
