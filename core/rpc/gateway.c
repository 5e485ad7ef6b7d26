#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "rpc/rpc_priv.h"

struct call {
    struct sl_rpc_gateway *gateway;
    uint64_t id;
    sl_rpc_done_fn done;
    void *ctx;
    /* Its deadline, or with status set the moment at which it is told its end. */
    struct sl_timer timer;
    uint64_t timeout_ms;
    /* Ends when the connection is open, and is not sent. */
    bool is_open;
    enum sl_rpc_status status;
    int code;
    char *reason;
};

struct sl_rpc_gateway {
    struct sl_rpc *rpc;
    struct sl_list_node node;
    struct sl_address address;
    char text[SL_ADDRESS_TEXT_SIZE];
    char *endpoint;
    uint64_t token;
    struct sl__rpc_conn *conn;
    /* id -> struct call, in the order of sending. */
    struct sl_map_u64 calls;
    /* Frames that wait for the connection. */
    struct sl_buf waiting;
    /* Keeps a broken link from being retried without a pause. */
    struct sl_timer gate;
    uint64_t gate_until_ms;
};

int
sl_rpc_connect(struct sl_rpc *rpc, const char *address, const char *endpoint, uint64_t token,
               struct sl_rpc_gateway **out)
{
    struct sl_address parsed;
    int rc = sl_address_parse(address, &parsed);
    if (rc != 0) {
        return rc;
    }
    if (parsed.kind == SL_ADDRESS_TCP && parsed.port == 0) {
        return sl_err_set(SL_EINVAL, "address %s: nothing can connect to port 0", address);
    }
    struct sl_rpc_gateway *gateway = sl_calloc(1, sizeof(*gateway));
    gateway->rpc = rpc;
    gateway->address = parsed;
    sl_address_format(&parsed, gateway->text, sizeof(gateway->text));
    gateway->endpoint = sl_strdup(endpoint);
    gateway->token = token;
    sl_list_push_back(&rpc->gateways, &gateway->node);
    *out = gateway;
    return 0;
}

static void
call_free(struct call *call)
{
    sl_timer_stop(&call->timer);
    sl_free(call->reason);
    sl_free(call);
}

void
sl_rpc_gateway_free(struct sl_rpc_gateway *gateway)
{
    struct sl_map_u64_entry *entry;
    if (gateway == NULL) {
        return;
    }
    for (size_t at = 0; (entry = sl_map_u64_next(&gateway->calls, &at)) != NULL;) {
        call_free((struct call *)(uintptr_t)entry->value);
    }
    if (gateway->conn != NULL) {
        sl__rpc_conn_finish(gateway->conn);
    }
    sl_timer_stop(&gateway->gate);
    sl_list_remove(&gateway->node);
    sl_map_u64_destroy(&gateway->calls);
    sl_buf_destroy(&gateway->waiting);
    sl_free(gateway->endpoint);
    sl_free(gateway);
}

const char *
sl_rpc_gateway_address(const struct sl_rpc_gateway *gateway)
{
    return gateway->text;
}

uint64_t
sl_rpc_gateway_token(const struct sl_rpc_gateway *gateway)
{
    return gateway->token;
}

size_t
sl_rpc_gateway_open_calls(const struct sl_rpc_gateway *gateway)
{
    return gateway->calls.count;
}

/* The end of a call: its owner may free the gateway here, so nothing is touched afterwards. */
static void
finish(struct call *call, const struct sl_rpc_result *result)
{
    sl_rpc_done_fn done = call->done;
    void *ctx = call->ctx;
    sl_map_u64_remove(&call->gateway->calls, call->id, NULL);
    char *reason = call->reason;
    call->reason = NULL;
    call_free(call);
    done(ctx, result);
    sl_free(reason);
}

static void
call_due(void *ctx, uint64_t ticket)
{
    struct call *call = ctx;
    char text[SL_RPC_NAME_MAX + SL_ADDRESS_TEXT_SIZE + 64];
    (void)ticket;
    struct sl_rpc_result result = {.status = call->status, .code = call->code, .reason = ""};
    if (call->status == 0) {
        snprintf(text, sizeof(text), "%.128s at %s: no answer in %llu ms", call->gateway->endpoint,
                 call->gateway->text, (unsigned long long)call->timeout_ms);
        result = (struct sl_rpc_result){SL_RPC_TIMEOUT, SL_ETIMEOUT, text, NULL, 0};
    } else if (call->reason != NULL) {
        result.reason = call->reason;
    }
    finish(call, &result);
}

/* Tells the call its end in a turn of its own. */
static void
end_later(struct call *call, enum sl_rpc_status status, int code, const char *reason)
{
    if (call->status == 0) {
        call->status = status;
        call->code = code;
        call->reason = reason != NULL ? sl_strdup(reason) : NULL;
        sl_timer_start(call->gateway->rpc->loop, &call->timer, 0, call_due, call);
    }
}

static void start_connecting(struct sl_rpc_gateway *gateway);

void
sl__rpc_gateway_broken(struct sl_rpc_gateway *gateway)
{
    struct sl_map_u64_entry *entry;
    char reason[SL_ERR_MSG_SIZE + SL_ADDRESS_TEXT_SIZE + SL_RPC_NAME_MAX + 16];
    int code = sl_err_last()->code == 0 ? SL_ECLOSED : sl_err_last()->code;
    snprintf(reason, sizeof(reason), "%.128s at %s: %s", gateway->endpoint, gateway->text,
             sl_err_last()->code == 0 ? "connection closed" : sl_err_last()->msg);
    gateway->conn = NULL;
    sl_buf_clear(&gateway->waiting);
    gateway->gate_until_ms =
        sl_loop_now_ms(gateway->rpc->loop) + gateway->rpc->options.retry_gate_ms;
    for (size_t at = 0; (entry = sl_map_u64_next(&gateway->calls, &at)) != NULL;) {
        end_later((struct call *)(uintptr_t)entry->value, SL_RPC_UNREACHABLE, code, reason);
    }
}

static void
gate_opens(void *ctx, uint64_t ticket)
{
    (void)ticket;
    start_connecting(ctx);
}

static void
start_connecting(struct sl_rpc_gateway *gateway)
{
    uint64_t now_ms = sl_loop_now_ms(gateway->rpc->loop);
    if (gateway->conn != NULL || sl_timer_is_running(&gateway->gate)) {
        return;
    }
    if (now_ms < gateway->gate_until_ms) {
        sl_timer_start(gateway->rpc->loop, &gateway->gate, gateway->gate_until_ms - now_ms,
                       gate_opens, gateway);
        return;
    }
    gateway->conn = sl__rpc_conn_connect(gateway->rpc, gateway, &gateway->address);
    if (gateway->conn == NULL) {
        sl__rpc_gateway_broken(gateway);
    }
}

void
sl__rpc_gateway_ready(struct sl_rpc_gateway *gateway)
{
    struct sl_map_u64_entry *entry;
    if (gateway->waiting.size > 0) {
        sl__rpc_conn_send(gateway->conn, gateway->waiting.data, gateway->waiting.size);
        sl_buf_destroy(&gateway->waiting);
    }
    for (size_t at = 0; (entry = sl_map_u64_next(&gateway->calls, &at)) != NULL;) {
        struct call *call = (struct call *)(uintptr_t)entry->value;
        if (call->is_open) {
            end_later(call, SL_RPC_SUCCESS, 0, NULL);
        }
    }
}

void
sl__rpc_gateway_reply(struct sl_rpc_gateway *gateway, const struct sl__rpc_reply_message *reply)
{
    struct call *call = sl_map_u64_get_ptr(&gateway->calls, reply->id);
    /* The answer to a call that was cancelled or timed out. */
    if (call == NULL || call->status != 0 || call->is_open) {
        return;
    }
    struct sl_rpc_result result = {
        .status = (enum sl_rpc_status)reply->status,
        .code = reply->code,
        .reason = reply->reason,
        .body = reply->body,
        .size = reply->size,
    };
    finish(call, &result);
}

static struct call *
call_new(struct sl_rpc_gateway *gateway, uint64_t timeout_ms, sl_rpc_done_fn done, void *ctx)
{
    struct call *call = sl_calloc(1, sizeof(*call));
    call->gateway = gateway;
    call->id = gateway->rpc->next_call++;
    call->done = done;
    call->ctx = ctx;
    call->timeout_ms = timeout_ms != 0 ? timeout_ms : gateway->rpc->options.call_timeout_ms;
    sl_map_u64_put_ptr(&gateway->calls, call->id, call);
    sl_timer_start(gateway->rpc->loop, &call->timer, call->timeout_ms, call_due, call);
    return call;
}

static bool
is_ready(const struct sl_rpc_gateway *gateway)
{
    return gateway->conn != NULL && gateway->conn->state == SL__RPC_READY;
}

uint64_t
sl_rpc_open(struct sl_rpc_gateway *gateway, uint64_t timeout_ms, sl_rpc_done_fn done, void *ctx)
{
    struct call *call = call_new(gateway, timeout_ms, done, ctx);
    call->is_open = true;
    if (is_ready(gateway)) {
        end_later(call, SL_RPC_SUCCESS, 0, NULL);
    } else {
        start_connecting(gateway);
    }
    return call->id;
}

/* Frames a request and sends it, or keeps it until the connection stands. */
static int
send_request(struct sl_rpc_gateway *gateway, uint16_t type, uint64_t id, uint32_t method,
             const void *body, size_t size, uint64_t timeout_ms)
{
    struct sl_buf *out = &gateway->rpc->scratch;
    struct sl__rpc_request_message message = {
        .id = id,
        .endpoint = gateway->endpoint,
        .method = method,
        .token = gateway->token,
        .timeout_ms = timeout_ms < UINT32_MAX ? (uint32_t)timeout_ms : UINT32_MAX,
        .body = body,
        .size = size,
    };
    sl_buf_clear(out);
    size_t start = sl_frame_begin(out);
    sl__rpc_encode_request(&message, out);
    if (out->size - SL_FRAME_HEADER_SIZE > SL_FRAME_CONTROL_MAX) {
        return sl_err_set(SL_ELIMIT, "message of %zu bytes; the limit is %d",
                          out->size - SL_FRAME_HEADER_SIZE, SL_FRAME_CONTROL_MAX);
    }
    sl_frame_end(out, start, type, 1);
    if (is_ready(gateway)) {
        return sl__rpc_conn_send(gateway->conn, out->data, out->size);
    }
    if (gateway->waiting.size + out->size > SL_STREAM_WRITE_MAX) {
        return sl_err_set(SL_ELIMIT, "too many messages wait for a connection to %s",
                          gateway->text);
    }
    sl_buf_append(&gateway->waiting, out->data, out->size);
    start_connecting(gateway);
    return 0;
}

uint64_t
sl_rpc_call(struct sl_rpc_gateway *gateway, uint32_t method, const void *body, size_t size,
            uint64_t timeout_ms, sl_rpc_done_fn done, void *ctx)
{
    struct call *call = call_new(gateway, timeout_ms, done, ctx);
    uint64_t id = call->id;
    int rc = send_request(gateway, SL_FRAME_REQUEST, id, method, body, size, call->timeout_ms);
    if (rc != 0) {
        bool is_ours = rc == SL_ELIMIT;
        end_later(call, is_ours ? SL_RPC_ERROR : SL_RPC_UNREACHABLE, rc, sl_err_last()->msg);
    }
    return id;
}

void
sl_rpc_send(struct sl_rpc_gateway *gateway, uint32_t method, const void *body, size_t size)
{
    /* A message without an answer has nobody to tell that it was lost. */
    if (send_request(gateway, SL_FRAME_ONE_WAY, 0, method, body, size, 0) != 0) {
        sl_err_clear();
    }
}

void
sl_rpc_cancel(struct sl_rpc_gateway *gateway, uint64_t id)
{
    struct call *call = sl_map_u64_remove_ptr(&gateway->calls, id);
    if (call != NULL) {
        call_free(call);
    }
}
