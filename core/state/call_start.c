#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/hash.h"
#include "state/call_priv.h"
#include "state/remove.h"

/* What a request's operation takes beside its path and value. */
enum { OP_OVERHEAD_BYTES = 64 };

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
    manifest->count = (uint32_t)((op->size + SL__STATE_PIECE_BYTES - 1) / SL__STATE_PIECE_BYTES);
    manifest->size_bytes = op->size;
    manifest->hash = sl_hash_bytes(op->value, op->size);
}

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
    if (op->size > SL__STATE_PIECE_BYTES &&
        (op->flags & (SL_STATE_EPHEMERAL | SL_STATE_SEQUENTIAL)) != 0) {
        return sl_err_set(SL_ELIMIT,
                          "value of %zu bytes; that of an ephemeral or sequential node "
                          "can have %d",
                          op->size, SL__STATE_PIECE_BYTES);
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
        if (sl__state_has_value(&call->ops[i])) {
            total += SL_STATE_ENVELOPE_BYTES_MAX + (is_apart ? 0 : call->ops[i].size);
        }
        total +=
            is_apart ? sizeof(SL_STATE_PIECES_PATH) + SL_STATE_GUID_TEXT + OP_OVERHEAD_BYTES : 0;
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
            bool may_be = sl__state_has_value(op) && !is_apart &&
                          op->size > SL_STATE_ENVELOPE_BYTES_MAX &&
                          (op->flags & (SL_STATE_EPHEMERAL | SL_STATE_SEQUENTIAL)) == 0;
            if (may_be && (largest == call->op_count || op->size > call->ops[largest].size)) {
                largest = i;
            }
        }
        bool is_node_too_large =
            largest < call->op_count && call->ops[largest].size > SL__STATE_PIECE_BYTES;
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
        if (sl__state_has_value(op) && op->size > 0) {
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
    call->timer = sl_state_executor_timer_start(self->executor, delay, sl__state_call_due, call);
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
