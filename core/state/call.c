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
#include "state/call_priv.h"
#include "state/remove.h"

enum {
    PARENT_ROUNDS_MAX = 5,
    ASSEMBLE_ROUNDS_MAX = 20,
};

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
        snprintf(dst, size, "%s/%s", SL_STATE_PIECES_PATH, id);
    } else {
        snprintf(dst, size, "%s/%s/%lld", SL_STATE_PIECES_PATH, id, (long long)piece);
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
    if (status == SL_EUNAVAIL && detail != NULL) {
        /* Which node was wanted says nothing of a store that can not be reached. */
        sl_err_set(status, "state manager: %s", detail);
        return;
    }
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
void
sl__state_call_finish(struct sl__state_call *call, int status, const char *detail,
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
    sl__state_call_finish(call, status, detail, NULL);
}

void
sl__state_call_due(void *arg)
{
    struct sl__state_call *call = arg;
    call->timer = 0;
    if (call->stage == SL__STAGE_REFUSED) {
        sl__state_call_finish(call, call->refused_status, call->detail, NULL);
        return;
    }
    char detail[SL_ERR_MSG_SIZE];
    if (!call->was_sent) {
        const char *reason = call->store->down_reason;
        snprintf(detail, sizeof(detail), "%s: no connection within %llu ms",
                 reason != NULL ? reason : call->store->name,
                 (unsigned long long)call->store->timeout_ms);
        sl__state_call_finish(call, SL_EUNAVAIL, detail, NULL);
        return;
    }
    snprintf(detail, sizeof(detail), "%s: no answer within %llu ms%s", call->store->name,
             (unsigned long long)call->store->timeout_ms,
             sl__state_is_write(call->kind) ? "; it may have been carried out" : "");
    sl__state_call_finish(call, SL_ETIMEOUT, detail, NULL);
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
    if (sl__state_has_value(src)) {
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

void
sl__state_call_send(struct sl__state_call *call, struct sl_state_request *request)
{
    request->call = call;
    call->request = request;
    call->was_sent = true;
    sl__state_store_submit(call->store, request);
}

struct sl_state_request *
sl__state_request_path(enum sl_state_op_kind kind, const char *path)
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
    sl__state_call_send(call, request);
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
    sl__state_call_send(call, request);
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
    size_t offset = (call->step - 1) * SL__STATE_PIECE_BYTES;
    size_t left = op->size - offset;
    manifest_path(path, sizeof(path), manifest->id, (int64_t)call->step - 1);
    send_create(call, path, (const uint8_t *)op->value + offset,
                left < SL__STATE_PIECE_BYTES ? left : SL__STATE_PIECE_BYTES);
}

static void
step_assemble(struct sl__state_call *call)
{
    char path[SL_STATE_PATH_MAX + 1];
    manifest_path(path, sizeof(path), call->manifest.id, (int64_t)call->step);
    sl__state_call_send(call, sl__state_request_path(SL_STATE_GET, path));
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
        sl__state_call_send(call, sl__state_request_path(SL_STATE_SYNC, "/"));
        break;
    case SL__STAGE_LOOK_READ:
        sl__state_call_look(call);
        break;
    case SL__STAGE_ASSEMBLE:
        step_assemble(call);
        break;
    }
}

void
sl__state_call_go(struct sl__state_call *call, enum sl__state_stage stage)
{
    call->stage = stage;
    sl__state_call_step(call);
}

/*
 * Answers
 */

void
sl__state_call_finish_write(struct sl__state_call *call, int status, size_t failed,
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
    sl__state_call_finish(call, status, detail, &result);
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
        sl__state_call_go(call, SL__STAGE_PARENTS);
        return;
    }
    sl__state_call_finish_write(call, status, failed_index(request), request);
}

static void
complete_parent(struct sl__state_call *call, const struct sl_state_request *request)
{
    if (request->status == 0 || request->status == SL_EEXIST) {
        call->step++;
        sl__state_call_go(call, SL__STAGE_PARENTS);
    } else if (request->status == SL_ENOTFOUND && call->parent_rounds < PARENT_ROUNDS_MAX) {
        /* Somebody deletes what we make: from the top again. */
        call->parent_rounds++;
        call->step = 0;
        sl__state_call_go(call, SL__STAGE_PARENTS);
    } else {
        sl__state_call_finish(call, request->status, request->detail, NULL);
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
        struct sl_state_op op = sl_state_op_create(SL_STATE_PIECES_PATH, NULL, 0, 0);
        fill_op(call, &root->ops[0], &op, NULL);
        sl__state_store_submit(call->store, root);
        sl__state_call_go(call, SL__STAGE_PIECES);
        return;
    }
    if (request->status != 0 && request->status != SL_EEXIST) {
        sl__state_call_finish(call, request->status, request->detail, NULL);
        return;
    }
    if (call->step == call->manifests[call->step_op].count) {
        call->step = 0;
        call->step_op++;
    } else {
        call->step++;
    }
    sl__state_call_go(call, SL__STAGE_PIECES);
}

static void
finish_get(struct sl__state_call *call, const uint8_t *value, size_t size,
           const struct sl_state_stat *stat)
{
    struct sl_state_result result = {.value = value, .size = size, .stat = *stat};
    result.pieces = call->manifest.count > 0 ? call->manifest.id : NULL;
    sl__state_call_finish(call, 0, NULL, &result);
}

static void
complete_get(struct sl__state_call *call, const struct sl_state_request *request)
{
    if (request->status != 0) {
        sl__state_call_finish(call, request->status, request->detail, NULL);
        return;
    }
    struct sl_arena arena;
    struct sl_state_envelope envelope;
    sl_arena_create(&arena, 0, 0);
    int rc = sl_state_envelope_decode(request->data.data, request->data.size, &arena, &envelope);
    if (rc != 0) {
        char why[SL_ERR_MSG_SIZE];
        sl__state_call_finish(call, SL_EPROTO, sl_err_format(sl_err_last(), why, sizeof(why)),
                              NULL);
    } else if (envelope.manifest.count > 0) {
        call->manifest = envelope.manifest;
        call->stat = request->stat;
        call->step = 0;
        sl_buf_clear(&call->assembled);
        sl__state_call_go(call, SL__STAGE_ASSEMBLE);
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
        sl__state_call_finish(call, SL_EPROTO, "pieces of the value are missing or damaged", NULL);
        return;
    }
    sl__state_call_go(call, SL__STAGE_SEND);
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
        sl__state_call_finish(call, request->status, request->detail, NULL);
    } else if (!is_good) {
        assemble_again(call);
    } else if (++call->step < call->manifest.count) {
        sl__state_call_go(call, SL__STAGE_ASSEMBLE);
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
        sl__state_call_finish(call, request->status, request->detail, &result);
        return;
    }
    default:
        sl__state_call_finish(call, request->status, request->detail, NULL);
        return;
    }
}

/* The answer was lost. Reads are repeated; of a write the outcome is looked up. */
static void
complete_unknown(struct sl__state_call *call)
{
    if (call->stage == SL__STAGE_SEND && sl__state_is_write(call->kind) &&
        sl__state_call_marker(call) != NULL) {
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
        if (sl__state_is_write(call->kind)) {
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
            sl__state_call_finish(call, SL_ETIMEOUT, request->detail, NULL);
        } else {
            sl__state_call_go(call, SL__STAGE_LOOK_READ);
        }
        break;
    case SL__STAGE_LOOK_READ:
        sl__state_call_looked(call, request);
        break;
    case SL__STAGE_ASSEMBLE:
        complete_assemble(call, request);
        break;
    }
}
