/*
 * The life of one call:
 *
 *   PIECES -> SEND -> (answer) -> over
 *              |  `-> PARENTS -> SEND          a create that lacks its parents
 *              |  `-> ASSEMBLE -> over         a get of a value in pieces
 *              `----> LOOK_SYNC -> LOOK_READ   the answer was lost
 *                        |            |-> over   the mark is ours: it was carried out
 *                        `<- link     `-> SEND   it was not, and sending again can not do harm
 *
 * Whatever the stage, a call without a connection is parked until there is one, and the timer ends
 * it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/hash.h"
#include "state/remove.h"
#include "state/store_priv.h"

enum {
    /* Payload of one piece of a large value. */
    PIECE_BYTES = SL_STATE_NODE_BYTES_MAX - SL_STATE_ENVELOPE_BYTES_MAX,
    /* What a request's operation takes beside its path and value. */
    OP_OVERHEAD_BYTES = 64,
    PARENT_ROUNDS_MAX = 5,
    ASSEMBLE_ROUNDS_MAX = 20,
};

static const char chunks_root[] = SL_STATE_PIECES_PATH;

static bool
is_write(enum sl_state_op_kind kind)
{
    return kind == SL_STATE_CREATE || kind == SL_STATE_SET || kind == SL_STATE_DELETE ||
           kind == SL_STATE_MULTI;
}

static bool
has_value(const struct sl_state_op *op)
{
    return op->kind == SL_STATE_CREATE || op->kind == SL_STATE_SET;
}

static const char *
verb(enum sl_state_op_kind kind)
{
    static const char *const verbs[] = {"create", "set",      "delete", "check",
                                        "get",    "children", "sync",   "transaction"};
    return verbs[kind];
}

static void
manifest_path(char *dst, size_t size, const char *id, int64_t piece)
{
    if (piece < 0) {
        snprintf(dst, size, "%s/%s", chunks_root, id);
    } else {
        snprintf(dst, size, "%s/%s/%lld", chunks_root, id, (long long)piece);
    }
}

/* Takes a call out of the store, which then no longer knows it. */
static void
call_unlink(struct sl__state_call *call)
{
    sl_state_executor_timer_stop(call->store->executor, &call->timer);
    sl_list_remove(&call->node);
    sl_map_u64_remove(&call->store->calls_by_ticket, call->ticket, NULL);
    if (call->request != NULL) {
        call->request->call = NULL;
    }
}

static void
call_destroy(struct sl__state_call *call)
{
    for (size_t i = 0; i < call->op_count; i++) {
        sl_free((void *)(uintptr_t)call->ops[i].path);
        sl_free((void *)(uintptr_t)call->ops[i].value);
    }
    sl_buf_destroy(&call->assembled);
    sl_free(call->manifests);
    sl_free(call->detail);
    sl_free(call->ops);
    sl_free(call);
}

void
sl__state_call_free(struct sl__state_call *call)
{
    call_unlink(call);
    call_destroy(call);
}

static void
set_error(const struct sl__state_call *call, int status, const char *detail,
          const struct sl_state_result *result)
{
    const struct sl_state_op *op = call->op_count > 0 ? &call->ops[0] : NULL;
    if (call->kind == SL_STATE_MULTI && result != NULL && result->failed < call->op_count) {
        op = &call->ops[result->failed];
    }
    enum sl_state_op_kind kind = op != NULL ? op->kind : call->kind;
    const char *text = sl_err_text(status);
    if (detail != NULL) {
        text = detail;
    } else if (status == SL_ECONFLICT) {
        text = "the node has another version";
    } else if (status == SL_EEXIST && kind == SL_STATE_DELETE) {
        text = "the node has children";
    } else if (status == SL_ENOTFOUND) {
        text = "no such node";
    }
    sl_err_set(status, "%s %s: %s", verb(kind), op != NULL ? op->path : "", text);
}

/* Ends the call; the last thing that is done with it. Detail and result may lie inside it. */
static void
finish(struct sl__state_call *call, int status, const char *detail,
       const struct sl_state_result *result)
{
    static const struct sl_state_result empty;
    call_unlink(call);
    if (call->done != NULL) {
        if (status != 0) {
            set_error(call, status, detail, result);
        } else {
            sl_err_clear();
        }
        call->done(call->ctx, status, result != NULL ? result : &empty);
    }
    call_destroy(call);
}

void
sl__state_call_fail(struct sl__state_call *call, int status, const char *detail)
{
    finish(call, status, detail, NULL);
}

static void
on_call_timer(void *arg)
{
    struct sl__state_call *call = arg;
    call->timer = 0;
    if (call->stage == SL__STAGE_REFUSED) {
        finish(call, call->refused_status, call->detail, NULL);
        return;
    }
    char detail[SL_ERR_MSG_SIZE];
    if (!call->was_sent) {
        const char *reason = call->store->down_reason;
        snprintf(detail, sizeof(detail), "%s: no connection within %llu ms",
                 reason != NULL ? reason : call->store->name,
                 (unsigned long long)call->store->timeout_ms);
        finish(call, SL_EUNAVAIL, detail, NULL);
        return;
    }
    snprintf(detail, sizeof(detail), "%s: no answer within %llu ms%s", call->store->name,
             (unsigned long long)call->store->timeout_ms,
             is_write(call->kind) ? "; it may have been carried out" : "");
    finish(call, SL_ETIMEOUT, detail, NULL);
}

/*
 * Requests
 */

/* Copies an operation into a request, its value in an envelope with the call's mark. */
static void
fill_op(const struct sl__state_call *call, struct sl_state_op *dst, const struct sl_state_op *src,
        const struct sl_state_manifest *manifest)
{
    *dst = *src;
    dst->path = sl_strdup(src->path);
    dst->value = NULL;
    dst->size = 0;
    if (has_value(src)) {
        struct sl_state_envelope envelope = {
            .attempt = call->attempt, .value = src->value, .size = src->size};
        memcpy(envelope.writer, call->store->writer, SL_STATE_WRITER_BYTES);
        if (manifest != NULL && manifest->count > 0) {
            envelope.manifest = *manifest;
        }
        struct sl_buf buf = {0};
        sl_state_envelope_encode(&envelope, &buf);
        dst->size = buf.size;
        dst->value = sl_buf_detach(&buf);
    }
}

static void
send(struct sl__state_call *call, struct sl_state_request *request)
{
    request->call = call;
    call->request = request;
    call->was_sent = true;
    sl__state_store_submit(call->store, request);
}

static struct sl_state_request *
request_path(enum sl_state_op_kind kind, const char *path)
{
    struct sl_state_request *request = sl__state_request_new(kind, 1);
    request->ops[0].kind = kind;
    request->ops[0].path = sl_strdup(path);
    return request;
}

static void
send_create(struct sl__state_call *call, const char *path, const void *value, size_t size)
{
    struct sl_state_request *request = sl__state_request_new(SL_STATE_CREATE, 1);
    struct sl_state_op op = sl_state_op_create(path, value, size, 0);
    fill_op(call, &request->ops[0], &op, NULL);
    send(call, request);
}

static size_t
manifest_count(const struct sl__state_call *call)
{
    size_t count = 0;
    for (size_t i = 0; i < call->op_count; i++) {
        count += call->manifests != NULL && call->manifests[i].count > 0;
    }
    return count;
}

static void
send_call(struct sl__state_call *call)
{
    size_t manifests = manifest_count(call);
    /* The pieces must still be there when the list of them is put in place. */
    enum sl_state_op_kind kind = manifests > 0 ? SL_STATE_MULTI : call->kind;
    struct sl_state_request *request = sl__state_request_new(kind, call->op_count + manifests);
    size_t at = call->op_count;
    for (size_t i = 0; i < call->op_count; i++) {
        const struct sl_state_manifest *manifest =
            call->manifests != NULL ? &call->manifests[i] : NULL;
        fill_op(call, &request->ops[i], &call->ops[i], manifest);
        if (manifest != NULL && manifest->count > 0) {
            char path[SL_STATE_PATH_MAX + 1];
            manifest_path(path, sizeof(path), manifest->id, -1);
            struct sl_state_op check = sl_state_op_check(path, SL_STATE_ANY_VERSION);
            fill_op(call, &request->ops[at++], &check, NULL);
        }
    }
    request->watch_id = call->watch_id;
    send(call, request);
}

/* Parent number `step` of the create's path, "" past the last. */
static void
parent_at(const struct sl__state_call *call, char *dst)
{
    const char *path = call->ops[0].path;
    const char *slash = path;
    for (size_t i = 0; slash != NULL && i <= call->step; i++) {
        slash = strchr(slash + 1, '/');
    }
    size_t len = slash != NULL ? (size_t)(slash - path) : 0;
    memcpy(dst, path, len);
    dst[len] = '\0';
}

static void
step_parents(struct sl__state_call *call)
{
    char path[SL_STATE_PATH_MAX + SL_STATE_GUID_TEXT + 8];
    parent_at(call, path);
    if (path[0] == '\0') {
        call->stage = SL__STAGE_SEND;
        send_call(call);
        return;
    }
    send_create(call, path, NULL, 0);
}

/* Sends the next piece: step 0 is their folder, of the value of operation step_op. */
static void
step_pieces(struct sl__state_call *call)
{
    while (call->step_op < call->op_count && call->manifests[call->step_op].count == 0) {
        call->step_op++;
    }
    if (call->step_op == call->op_count) {
        call->stage = SL__STAGE_SEND;
        send_call(call);
        return;
    }
    const struct sl_state_op *op = &call->ops[call->step_op];
    const struct sl_state_manifest *manifest = &call->manifests[call->step_op];
    char path[SL_STATE_PATH_MAX + 1];
    if (call->step == 0) {
        manifest_path(path, sizeof(path), manifest->id, -1);
        send_create(call, path, op->path, strlen(op->path));
        return;
    }
    size_t offset = (call->step - 1) * PIECE_BYTES;
    size_t left = op->size - offset;
    manifest_path(path, sizeof(path), manifest->id, (int64_t)call->step - 1);
    send_create(call, path, (const uint8_t *)op->value + offset,
                left < PIECE_BYTES ? left : PIECE_BYTES);
}

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
    if (!has_value(op)) {
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
static const struct sl_state_op *
look_marker(const struct sl__state_call *call)
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

static void
step_look_read(struct sl__state_call *call)
{
    const struct sl_state_op *marker = look_marker(call);
    struct sl_state_request *request;
    if (marker->kind == SL_STATE_CREATE && (marker->flags & SL_STATE_SEQUENTIAL) != 0) {
        char *parent = sl_state_path_parent_dup(marker->path);
        request = request_path(SL_STATE_CHILDREN, parent);
        sl_free(parent);
    } else {
        request = request_path(SL_STATE_GET, marker->path);
    }
    send(call, request);
}

static void
step_assemble(struct sl__state_call *call)
{
    char path[SL_STATE_PATH_MAX + 1];
    manifest_path(path, sizeof(path), call->manifest.id, (int64_t)call->step);
    send(call, request_path(SL_STATE_GET, path));
}

void
sl__state_call_step(struct sl__state_call *call)
{
    if (!call->store->is_up || call->store->is_closing) {
        call->is_parked = true;
        return;
    }
    call->is_parked = false;
    switch (call->stage) {
    case SL__STAGE_REFUSED:
        break;
    case SL__STAGE_PIECES:
        step_pieces(call);
        break;
    case SL__STAGE_SEND:
        send_call(call);
        break;
    case SL__STAGE_PARENTS:
        step_parents(call);
        break;
    case SL__STAGE_LOOK_SYNC:
        send(call, request_path(SL_STATE_SYNC, "/"));
        break;
    case SL__STAGE_LOOK_READ:
        step_look_read(call);
        break;
    case SL__STAGE_ASSEMBLE:
        step_assemble(call);
        break;
    }
}

static void
go(struct sl__state_call *call, enum sl__state_stage stage)
{
    call->stage = stage;
    sl__state_call_step(call);
}

/*
 * Answers
 */

static void
manifest_start(struct sl__state_call *call, size_t index)
{
    struct sl_state_manifest *manifest = &call->manifests[index];
    const struct sl_state_op *op = &call->ops[index];
    char random[SL_STATE_GUID_TEXT + 1];
    sl_state_store_guid(call->store, random);
    sl_state_pieces_prefix(op->path, manifest->id);
    memcpy(manifest->id + SL_STATE_PIECES_PREFIX, random + SL_STATE_PIECES_PREFIX,
           sizeof(random) - SL_STATE_PIECES_PREFIX);
    manifest->count = (uint32_t)((op->size + PIECE_BYTES - 1) / PIECE_BYTES);
    manifest->size_bytes = op->size;
    manifest->hash = sl_hash_bytes(op->value, op->size);
}

static void
finish_write(struct sl__state_call *call, int status, size_t failed,
             struct sl_state_request *request)
{
    struct sl_state_result result = {.failed = failed};
    if (request->results != NULL) {
        result.ops = request->results;
        result.op_count = call->op_count;
        result.path = request->results[0].path;
        result.stat = request->results[0].stat;
    }
    if (status == 0 && call->manifests != NULL) {
        for (size_t i = 0; i < call->op_count; i++) {
            if (call->manifests[i].count > 0) {
                sl_state_sweep(call->store, call->ops[i].path, NULL, NULL);
            }
        }
    }
    const char *detail = request->detail;
    if (status != 0 && failed >= call->op_count && request->results != NULL) {
        status = SL_ECONFLICT;
        detail = "another writer replaced the value meanwhile";
    }
    finish(call, status, detail, &result);
}

/* The write was carried out, as a look shows; `seen` is the marker as it was found. */
static void
finish_found(struct sl__state_call *call, const char *path, const struct sl_state_stat *stat)
{
    const struct sl_state_op *marker = look_marker(call);
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
    finish_write(call, 0, call->op_count, made);
    sl__state_request_free(made);
}

/*
 * The write was not carried out and, since requests of a session are carried out in order and the
 * look came after it, never will be.
 */
static void
send_again(struct sl__state_call *call)
{
    go(call, SL__STAGE_SEND);
}

/* It may have been carried out, but what it left has been replaced since. */
static void
finish_doubtful(struct sl__state_call *call)
{
    finish(call, SL_ETIMEOUT,
           "the connection broke; it may have been carried out and replaced since", NULL);
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

static void
complete_look(struct sl__state_call *call, const struct sl_state_request *request)
{
    const struct sl_state_op *marker = look_marker(call);
    if (request->status != 0 && request->status != SL_ENOTFOUND) {
        finish(call, SL_ETIMEOUT, request->detail, NULL);
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

/* Index of the first result that failed. */
static size_t
failed_index(const struct sl_state_request *request)
{
    size_t i = 0;
    while (request->results != NULL && i < request->op_count && request->results[i].status == 0) {
        i++;
    }
    return i;
}

static void
complete_write(struct sl__state_call *call, struct sl_state_request *request)
{
    int status = request->status;
    bool lacks_parent = status == SL_ENOTFOUND && call->kind == SL_STATE_CREATE &&
                        (call->ops[0].flags & SL_STATE_PARENTS) != 0;
    if (lacks_parent && call->parent_rounds < PARENT_ROUNDS_MAX) {
        call->parent_rounds++;
        call->step = 0;
        go(call, SL__STAGE_PARENTS);
        return;
    }
    finish_write(call, status, failed_index(request), request);
}

static void
complete_parent(struct sl__state_call *call, const struct sl_state_request *request)
{
    if (request->status == 0 || request->status == SL_EEXIST) {
        call->step++;
        go(call, SL__STAGE_PARENTS);
    } else if (request->status == SL_ENOTFOUND && call->parent_rounds < PARENT_ROUNDS_MAX) {
        /* Somebody deletes what we make: from the top again. */
        call->parent_rounds++;
        call->step = 0;
        go(call, SL__STAGE_PARENTS);
    } else {
        finish(call, request->status, request->detail, NULL);
    }
}

static void
complete_piece(struct sl__state_call *call, const struct sl_state_request *request)
{
    if (request->status == SL_ENOTFOUND && call->step == 0 &&
        call->parent_rounds < PARENT_ROUNDS_MAX) {
        /* The first large value of this store. The answer does not matter. */
        call->parent_rounds++;
        struct sl_state_request *root = sl__state_request_new(SL_STATE_CREATE, 1);
        struct sl_state_op op = sl_state_op_create(chunks_root, NULL, 0, 0);
        fill_op(call, &root->ops[0], &op, NULL);
        sl__state_store_submit(call->store, root);
        go(call, SL__STAGE_PIECES);
        return;
    }
    if (request->status != 0 && request->status != SL_EEXIST) {
        finish(call, request->status, request->detail, NULL);
        return;
    }
    if (call->step == call->manifests[call->step_op].count) {
        call->step = 0;
        call->step_op++;
    } else {
        call->step++;
    }
    go(call, SL__STAGE_PIECES);
}

static void
finish_get(struct sl__state_call *call, const uint8_t *value, size_t size,
           const struct sl_state_stat *stat)
{
    struct sl_state_result result = {.value = value, .size = size, .stat = *stat};
    result.pieces = call->manifest.count > 0 ? call->manifest.id : NULL;
    finish(call, 0, NULL, &result);
}

static void
complete_get(struct sl__state_call *call, const struct sl_state_request *request)
{
    if (request->status != 0) {
        finish(call, request->status, request->detail, NULL);
        return;
    }
    struct sl_arena arena;
    struct sl_state_envelope envelope;
    sl_arena_create(&arena, 0, 0);
    int rc = sl_state_envelope_decode(request->data.data, request->data.size, &arena, &envelope);
    if (rc != 0) {
        char why[SL_ERR_MSG_SIZE];
        finish(call, SL_EPROTO, sl_err_format(sl_err_last(), why, sizeof(why)), NULL);
    } else if (envelope.manifest.count > 0) {
        call->manifest = envelope.manifest;
        call->stat = request->stat;
        call->step = 0;
        sl_buf_clear(&call->assembled);
        go(call, SL__STAGE_ASSEMBLE);
    } else {
        call->manifest.count = 0;
        finish_get(call, envelope.value, envelope.size, &request->stat);
    }
    sl_arena_destroy(&arena);
}

/* The pieces are not what the list says: the value was replaced while it was read. */
static void
assemble_again(struct sl__state_call *call)
{
    if (++call->assemble_rounds > ASSEMBLE_ROUNDS_MAX) {
        finish(call, SL_EPROTO, "pieces of the value are missing or damaged", NULL);
        return;
    }
    go(call, SL__STAGE_SEND);
}

static void
complete_assemble(struct sl__state_call *call, const struct sl_state_request *request)
{
    struct sl_arena arena;
    struct sl_state_envelope envelope;
    sl_arena_create(&arena, 0, 0);
    bool is_good =
        request->status == 0 &&
        sl_state_envelope_decode(request->data.data, request->data.size, &arena, &envelope) == 0 &&
        envelope.size <= call->manifest.size_bytes - call->assembled.size;
    if (is_good) {
        sl_buf_append(&call->assembled, envelope.value, envelope.size);
    }
    sl_arena_destroy(&arena);
    if (request->status != 0 && request->status != SL_ENOTFOUND) {
        finish(call, request->status, request->detail, NULL);
    } else if (!is_good) {
        assemble_again(call);
    } else if (++call->step < call->manifest.count) {
        go(call, SL__STAGE_ASSEMBLE);
    } else if (call->assembled.size != call->manifest.size_bytes ||
               sl_hash_bytes(call->assembled.data, call->assembled.size) != call->manifest.hash) {
        assemble_again(call);
    } else {
        struct sl_state_stat stat = call->stat;
        finish_get(call, call->assembled.data, call->assembled.size, &stat);
    }
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
complete_read(struct sl__state_call *call, struct sl_state_request *request)
{
    switch (call->kind) {
    case SL_STATE_GET:
        complete_get(call, request);
        return;
    case SL_STATE_CHILDREN: {
        if (request->children.count > 0) {
            qsort(request->children.items, request->children.count, sizeof(char *), compare_names);
        }
        struct sl_state_result result = {
            .children = (const char *const *)request->children.items,
            .child_count = request->children.count,
            .stat = request->stat,
        };
        finish(call, request->status, request->detail, &result);
        return;
    }
    default:
        finish(call, request->status, request->detail, NULL);
        return;
    }
}

/* The answer was lost. Reads are repeated; of a write the outcome is looked up. */
static void
complete_unknown(struct sl__state_call *call)
{
    if (call->stage == SL__STAGE_SEND && is_write(call->kind) && look_marker(call) != NULL) {
        call->stage = SL__STAGE_LOOK_SYNC;
    } else if (call->stage == SL__STAGE_LOOK_READ) {
        call->stage = SL__STAGE_LOOK_SYNC;
    }
    sl__state_call_step(call);
}

void
sl__state_call_complete(struct sl__state_call *call, struct sl_state_request *request)
{
    if (request->is_unknown) {
        complete_unknown(call);
        return;
    }
    if (request->status == SL_ECLOSED) {
        /* The session is over, and the request was refused: the next session gets it, but not
         * before everybody has heard of the end of this one. */
        if (request->session == call->store->session) {
            call->store->is_up = false;
        }
        sl__state_call_step(call);
        return;
    }
    switch (call->stage) {
    case SL__STAGE_REFUSED:
        break;
    case SL__STAGE_PIECES:
        complete_piece(call, request);
        break;
    case SL__STAGE_SEND:
        if (is_write(call->kind)) {
            complete_write(call, request);
        } else {
            complete_read(call, request);
        }
        break;
    case SL__STAGE_PARENTS:
        complete_parent(call, request);
        break;
    case SL__STAGE_LOOK_SYNC:
        if (request->status != 0) {
            finish(call, SL_ETIMEOUT, request->detail, NULL);
        } else {
            go(call, SL__STAGE_LOOK_READ);
        }
        break;
    case SL__STAGE_LOOK_READ:
        complete_look(call, request);
        break;
    case SL__STAGE_ASSEMBLE:
        complete_assemble(call, request);
        break;
    }
}

/*
 * Starting
 */

static int
check_op(const struct sl_state_op *op)
{
    int rc = sl_state_path_check(op->path);
    if (rc != 0) {
        return rc;
    }
    if (op->size > SL_STATE_VALUE_BYTES_MAX) {
        return sl_err_set(SL_ELIMIT, "value of %zu bytes; the limit is %d", op->size,
                          SL_STATE_VALUE_BYTES_MAX);
    }
    if (op->size > PIECE_BYTES && (op->flags & (SL_STATE_EPHEMERAL | SL_STATE_SEQUENTIAL)) != 0) {
        return sl_err_set(SL_ELIMIT,
                          "value of %zu bytes; that of an ephemeral or sequential node "
                          "can have %d",
                          op->size, PIECE_BYTES);
    }
    return 0;
}

static size_t
stored_bytes(const struct sl__state_call *call)
{
    size_t total = 0;
    for (size_t i = 0; i < call->op_count; i++) {
        bool is_apart = call->manifests != NULL && call->manifests[i].count > 0;
        total += strlen(call->ops[i].path) + OP_OVERHEAD_BYTES;
        if (has_value(&call->ops[i])) {
            total += SL_STATE_ENVELOPE_BYTES_MAX + (is_apart ? 0 : call->ops[i].size);
        }
        total += is_apart ? sizeof(chunks_root) + SL_STATE_GUID_TEXT + OP_OVERHEAD_BYTES : 0;
    }
    return total;
}

/* Puts values aside until the request is small enough: the largest first. */
static int
set_values_aside(struct sl__state_call *call)
{
    for (;;) {
        size_t largest = call->op_count;
        for (size_t i = 0; i < call->op_count; i++) {
            const struct sl_state_op *op = &call->ops[i];
            bool is_apart = call->manifests != NULL && call->manifests[i].count > 0;
            bool may_be = has_value(op) && !is_apart && op->size > SL_STATE_ENVELOPE_BYTES_MAX &&
                          (op->flags & (SL_STATE_EPHEMERAL | SL_STATE_SEQUENTIAL)) == 0;
            if (may_be && (largest == call->op_count || op->size > call->ops[largest].size)) {
                largest = i;
            }
        }
        bool is_node_too_large = largest < call->op_count && call->ops[largest].size > PIECE_BYTES;
        size_t total = stored_bytes(call);
        if (!is_node_too_large && total <= SL_STATE_REQUEST_BYTES_MAX) {
            return 0;
        }
        if (largest == call->op_count) {
            return sl_err_set(SL_ELIMIT, "request of %zu bytes; the limit is %d", total,
                              SL_STATE_REQUEST_BYTES_MAX);
        }
        if (call->manifests == NULL) {
            call->manifests = sl_calloc(call->op_count, sizeof(*call->manifests));
        }
        manifest_start(call, largest);
        call->stage = SL__STAGE_PIECES;
    }
}

static int
check_call(struct sl__state_call *call, const struct sl_state_op *ops)
{
    if (call->op_count > SL_STATE_OPS_MAX || call->op_count == 0) {
        return sl_err_set(SL_EINVAL, "transaction of %zu operations; 1 to %d are allowed",
                          call->op_count, SL_STATE_OPS_MAX);
    }
    for (size_t i = 0; i < call->op_count; i++) {
        if (call->kind == SL_STATE_MULTI &&
            (ops[i].kind > SL_STATE_CHECK || (ops[i].flags & SL_STATE_PARENTS) != 0)) {
            return sl_err_set(SL_EINVAL, "operation %zu is not for transactions", i);
        }
        int rc = check_op(&ops[i]);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static void
copy_ops(struct sl__state_call *call, const struct sl_state_op *ops)
{
    for (size_t i = 0; i < call->op_count; i++) {
        struct sl_state_op *op = &call->ops[i];
        *op = ops[i];
        bool is_marked = op->kind == SL_STATE_CREATE && (op->flags & SL_STATE_SEQUENTIAL) != 0;
        op->path =
            is_marked ? sl_state_path_protect_dup(ops[i].path, call->guid) : sl_strdup(ops[i].path);
        op->value = NULL;
        if (has_value(op) && op->size > 0) {
            void *copy = sl_alloc(op->size);
            memcpy(copy, ops[i].value, op->size);
            op->value = copy;
        } else {
            op->size = 0;
        }
    }
}

static void
refuse(struct sl__state_call *call, int status, const char *detail)
{
    call->stage = SL__STAGE_REFUSED;
    call->refused_status = status;
    call->detail = sl_strdup(detail);
}

/* kind with ops, which are copied; guid and watch_id may be NULL and 0. */
static uint64_t
call_start(struct sl_state_store *self, enum sl_state_op_kind kind, const struct sl_state_op *ops,
           size_t op_count, const char *guid, uint64_t watch_id, sl_state_done_fn done, void *ctx)
{
    struct sl__state_call *call = sl_calloc(1, sizeof(*call));
    call->store = self;
    call->ticket = ++self->last_ticket;
    call->kind = kind;
    call->op_count = op_count;
    call->watch_id = watch_id;
    call->done = done;
    call->ctx = ctx;
    call->stage = SL__STAGE_SEND;
    call->attempt = ++self->last_attempt;
    if (guid != NULL) {
        memcpy(call->guid, guid, SL_STATE_GUID_TEXT);
    } else {
        sl_state_store_guid(self, call->guid);
    }
    sl_list_push_back(&self->calls, &call->node);
    sl_map_u64_put_ptr(&self->calls_by_ticket, call->ticket, call);
    int rc = check_call(call, ops);
    if (rc == 0) {
        call->ops = sl_calloc(op_count, sizeof(*call->ops));
        copy_ops(call, ops);
        rc = set_values_aside(call);
    } else {
        call->op_count = 0;
    }
    uint64_t delay = self->timeout_ms;
    if (rc != 0) {
        refuse(call, rc, sl_err_last()->msg);
        delay = 0;
    } else if (self->failure != NULL) {
        refuse(call, SL_EUNAVAIL, self->failure);
        delay = 0;
    }
    uint64_t ticket = call->ticket;
    call->timer = sl_state_executor_timer_start(self->executor, delay, on_call_timer, call);
    if (call->stage != SL__STAGE_REFUSED) {
        sl__state_call_step(call);
    }
    return ticket;
}

uint64_t
sl_state_create(struct sl_state_store *self, const char *path, const void *value, size_t size,
                uint32_t flags, sl_state_done_fn done, void *ctx)
{
    return sl_state_create_guid(self, path, NULL, value, size, flags, done, ctx);
}

uint64_t
sl_state_create_guid(struct sl_state_store *self, const char *path, const char *guid,
                     const void *value, size_t size, uint32_t flags, sl_state_done_fn done,
                     void *ctx)
{
    struct sl_state_op op = sl_state_op_create(path, value, size, flags);
    return call_start(self, SL_STATE_CREATE, &op, 1, guid, 0, done, ctx);
}

uint64_t
sl_state_get(struct sl_state_store *self, const char *path, sl_state_done_fn done, void *ctx)
{
    struct sl_state_op op = {.kind = SL_STATE_GET, .path = path};
    return call_start(self, SL_STATE_GET, &op, 1, NULL, 0, done, ctx);
}

uint64_t
sl_state_set(struct sl_state_store *self, const char *path, const void *value, size_t size,
             int32_t version, sl_state_done_fn done, void *ctx)
{
    struct sl_state_op op = sl_state_op_set(path, value, size, version);
    return call_start(self, SL_STATE_SET, &op, 1, NULL, 0, done, ctx);
}

uint64_t
sl_state_delete(struct sl_state_store *self, const char *path, int32_t version,
                sl_state_done_fn done, void *ctx)
{
    struct sl_state_op op = sl_state_op_delete(path, version);
    return call_start(self, SL_STATE_DELETE, &op, 1, NULL, 0, done, ctx);
}

uint64_t
sl_state_children(struct sl_state_store *self, const char *path, sl_state_done_fn done, void *ctx)
{
    struct sl_state_op op = {.kind = SL_STATE_CHILDREN, .path = path};
    return call_start(self, SL_STATE_CHILDREN, &op, 1, NULL, 0, done, ctx);
}

uint64_t
sl_state_sync(struct sl_state_store *self, sl_state_done_fn done, void *ctx)
{
    struct sl_state_op op = {.kind = SL_STATE_SYNC, .path = "/"};
    return call_start(self, SL_STATE_SYNC, &op, 1, NULL, 0, done, ctx);
}

uint64_t
sl_state_multi(struct sl_state_store *self, const struct sl_state_op *ops, size_t count,
               sl_state_done_fn done, void *ctx)
{
    return call_start(self, SL_STATE_MULTI, ops, count, NULL, 0, done, ctx);
}

uint64_t
sl_state_read_watched(struct sl_state_store *self, enum sl_state_op_kind kind, const char *path,
                      uint64_t *watch_id, sl_state_watch_fn fn, void *watch_ctx,
                      sl_state_done_fn done, void *ctx)
{
    sl_assert(kind == SL_STATE_GET || kind == SL_STATE_CHILDREN);
    struct sl__state_watch *watch = sl_calloc(1, sizeof(*watch));
    watch->fn = fn;
    watch->ctx = watch_ctx;
    *watch_id = ++self->last_watch;
    sl_map_u64_put_ptr(&self->watches, *watch_id, watch);
    struct sl_state_op op = {.kind = kind, .path = path};
    return call_start(self, kind, &op, 1, NULL, *watch_id, done, ctx);
}

void
sl_state_cancel(struct sl_state_store *self, uint64_t ticket)
{
    struct sl__state_call *call = sl_map_u64_get_ptr(&self->calls_by_ticket, ticket);
    if (call != NULL) {
        sl__state_call_free(call);
    }
}
