#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "rpc/rpc_priv.h"

struct sl_rpc_request {
    struct sl_rpc *rpc;
    /* NULL when the connection is gone: the answer is then dropped. */
    struct sl__rpc_conn *conn;
    struct sl_list_node conn_node;
    /* NULL when the endpoint was stopped: it was answered then. */
    struct sl_rpc_endpoint *endpoint;
    struct sl_list_node endpoint_node;
    uint64_t id;
    uint32_t method;
    uint64_t token;
    bool is_one_way;
    const uint8_t *body;
    size_t size;
};

/* Something that an endpoint does later, in the same term only. */
struct action {
    struct sl_rpc_endpoint *endpoint;
    struct sl_list_node node;
    struct sl_timer timer;
    uint64_t token;
    sl_loop_fn fn;
    void *ctx;
};

static void
start_endpoint(void *ctx, uint64_t ticket)
{
    struct sl_rpc_endpoint *endpoint = ctx;
    (void)ticket;
    endpoint->is_started = true;
    if (endpoint->options.on_start != NULL) {
        endpoint->options.on_start(endpoint->options.ctx);
    }
}

int
sl_rpc_endpoint_start(struct sl_rpc *rpc, struct sl_rpc_endpoint *endpoint,
                      const struct sl_rpc_endpoint_options *options)
{
    size_t len = options->name != NULL ? strlen(options->name) : 0;
    sl_assert(endpoint->rpc == NULL);
    if (len == 0 || len > SL_RPC_NAME_MAX) {
        return sl_err_set(SL_EINVAL, "the name of an endpoint has 1 to %d bytes", SL_RPC_NAME_MAX);
    }
    if (sl_map_bytes_get_str(&rpc->endpoints, options->name) != NULL) {
        return sl_err_set(SL_EEXIST, "endpoint %s is there already", options->name);
    }
    memset(endpoint, 0, sizeof(*endpoint));
    endpoint->rpc = rpc;
    endpoint->options = *options;
    sl_list_create(&endpoint->requests);
    sl_list_create(&endpoint->actions);
    sl_map_bytes_put_str(&rpc->endpoints, options->name, endpoint);
    sl_timer_start(rpc->loop, &endpoint->start_timer, 0, start_endpoint, endpoint);
    return 0;
}

static void
action_free(struct action *action)
{
    sl_timer_stop(&action->timer);
    sl_list_remove(&action->node);
    sl_free(action);
}

static void answer(struct sl_rpc_request *request, struct sl__rpc_reply_message *reply);

void
sl_rpc_endpoint_stop(struct sl_rpc_endpoint *endpoint)
{
    if (endpoint->rpc == NULL) {
        return;
    }
    bool was_started = endpoint->is_started;
    sl_timer_stop(&endpoint->start_timer);
    endpoint->is_started = false;
    if (was_started && endpoint->options.on_stop != NULL) {
        endpoint->options.on_stop(endpoint->options.ctx);
    }
    sl_list_each(&endpoint->actions, it)
    {
        action_free(sl_container_of(it, struct action, node));
    }
    sl_list_each(&endpoint->requests, it)
    {
        struct sl_rpc_request *request = sl_container_of(it, struct sl_rpc_request, endpoint_node);
        struct sl__rpc_reply_message reply = {
            .status = SL_RPC_FAILURE, .code = SL_EUNAVAIL, .reason = "the endpoint was stopped"};
        answer(request, &reply);
        sl_list_remove(&request->endpoint_node);
        request->endpoint = NULL;
    }
    sl_map_bytes_remove_str(&endpoint->rpc->endpoints, endpoint->options.name);
    endpoint->rpc = NULL;
    endpoint->token = 0;
}

void
sl_rpc_endpoint_set_token(struct sl_rpc_endpoint *endpoint, uint64_t token)
{
    sl_assert(endpoint->options.is_fenced);
    endpoint->token = token;
}

static void
run_action(void *ctx, uint64_t ticket)
{
    struct action *action = ctx;
    bool is_same_term = action->token == action->endpoint->token;
    sl_loop_fn fn = action->fn;
    void *fn_ctx = action->ctx;
    (void)ticket;
    action_free(action);
    if (is_same_term) {
        fn(fn_ctx);
    }
}

void
sl_rpc_endpoint_later(struct sl_rpc_endpoint *endpoint, uint64_t delay_ms, sl_loop_fn fn, void *ctx)
{
    struct action *action = sl_calloc(1, sizeof(*action));
    sl_assert(endpoint->rpc != NULL);
    action->endpoint = endpoint;
    action->token = endpoint->token;
    action->fn = fn;
    action->ctx = ctx;
    sl_list_push_back(&endpoint->actions, &action->node);
    sl_timer_start(endpoint->rpc->loop, &action->timer, delay_ms, run_action, action);
}

static void
send_reply(struct sl__rpc_conn *conn, struct sl__rpc_reply_message *reply)
{
    struct sl_buf *out = &conn->rpc->scratch;
    sl_buf_clear(out);
    size_t start = sl_frame_begin(out);
    sl__rpc_encode_reply(reply, out);
    if (out->size - SL_FRAME_HEADER_SIZE > SL_FRAME_CONTROL_MAX) {
        *reply = (struct sl__rpc_reply_message){.id = reply->id,
                                                .status = SL_RPC_ERROR,
                                                .code = SL_ELIMIT,
                                                .reason = "the answer is too large"};
        sl_buf_clear(out);
        start = sl_frame_begin(out);
        sl__rpc_encode_reply(reply, out);
    }
    sl_frame_end(out, start, SL_FRAME_REPLY, 1);
    if (sl__rpc_conn_send(conn, out->data, out->size) != 0) {
        /* The peer does not read what it asked for; it will see its calls time out. */
        sl_err_clear();
    }
}

/* Answers without freeing; a second answer is nothing. */
static void
answer(struct sl_rpc_request *request, struct sl__rpc_reply_message *reply)
{
    struct sl__rpc_conn *conn = request->conn;
    if (conn == NULL) {
        return;
    }
    sl_list_remove(&request->conn_node);
    conn->request_count--;
    request->conn = NULL;
    if (!request->is_one_way && conn->state == SL__RPC_READY) {
        reply->id = request->id;
        send_reply(conn, reply);
    }
}

static void
request_end(struct sl_rpc_request *request, struct sl__rpc_reply_message *reply)
{
    answer(request, reply);
    if (request->endpoint != NULL) {
        sl_list_remove(&request->endpoint_node);
    }
    sl_free(request);
}

void
sl_rpc_reply(struct sl_rpc_request *request, const void *body, size_t size)
{
    struct sl__rpc_reply_message reply = {.status = SL_RPC_SUCCESS, .body = body, .size = size};
    request_end(request, &reply);
}

void
sl_rpc_refuse(struct sl_rpc_request *request, enum sl_rpc_status status, int code, const char *fmt,
              ...)
{
    char reason[512];
    va_list args;
    sl_assert(status == SL_RPC_FAILURE || status == SL_RPC_REJECTION || status == SL_RPC_ERROR ||
              status == SL_RPC_STALE_TOKEN);
    va_start(args, fmt);
    vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);
    struct sl__rpc_reply_message reply = {.status = status, .code = code, .reason = reason};
    request_end(request, &reply);
}

void
sl_rpc_refuse_last(struct sl_rpc_request *request)
{
    struct sl_err why;
    char reason[512];
    sl_err_move(&why);
    bool is_error = why.code == SL_EPROTO || why.code == SL_ELIMIT;
    sl_rpc_refuse(request, is_error ? SL_RPC_ERROR : SL_RPC_FAILURE, why.code, "%s",
                  sl_err_format(&why, reason, sizeof(reason)));
}

const uint8_t *
sl_rpc_request_body(const struct sl_rpc_request *request, size_t *size)
{
    *size = request->size;
    return request->body;
}

uint32_t
sl_rpc_request_method(const struct sl_rpc_request *request)
{
    return request->method;
}

uint64_t
sl_rpc_request_token(const struct sl_rpc_request *request)
{
    return request->token;
}

const char *
sl_rpc_request_peer(const struct sl_rpc_request *request)
{
    return request->conn != NULL ? request->conn->peer : "a peer that is gone";
}

/* What the endpoint says before its handler is asked: NULL for go on. */
static const char *
check_token(const struct sl_rpc_endpoint *endpoint, uint64_t token)
{
    if (!endpoint->options.is_fenced) {
        /* A supervisor or worker has no term; a token tells it who calls, which its handler may
         * want to see. */
        return NULL;
    }
    if (endpoint->token == 0) {
        return "token not set: not the leader now";
    }
    return token == endpoint->token ? NULL : "stale token: another term is served here";
}

static const struct sl_rpc_method *
find_method(const struct sl_rpc_endpoint *endpoint, uint32_t id)
{
    for (size_t i = 0; i < endpoint->options.method_count; i++) {
        if (endpoint->options.methods[i].id == id) {
            return &endpoint->options.methods[i];
        }
    }
    return NULL;
}

static void
refuse_at_once(struct sl__rpc_conn *conn, const struct sl__rpc_request_message *message,
               bool is_one_way, enum sl_rpc_status status, int code, const char *reason)
{
    struct sl__rpc_reply_message reply = {
        .id = message->id, .status = status, .code = code, .reason = reason};
    if (!is_one_way) {
        send_reply(conn, &reply);
    }
}

int
sl__rpc_dispatch(struct sl__rpc_conn *conn, const struct sl__rpc_request_message *message,
                 bool is_one_way)
{
    struct sl_rpc *rpc = conn->rpc;
    struct sl_rpc_endpoint *endpoint = sl_map_bytes_get_str(&rpc->endpoints, message->endpoint);
    rpc->stats.requests++;
    if (endpoint == NULL || !endpoint->is_started) {
        refuse_at_once(conn, message, is_one_way, SL_RPC_ERROR, SL_ENOTFOUND,
                       "no such endpoint runs here");
        return 0;
    }
    const char *stale = check_token(endpoint, message->token);
    if (stale != NULL) {
        rpc->stats.stale++;
        refuse_at_once(conn, message, is_one_way, SL_RPC_STALE_TOKEN, SL_EFENCED, stale);
        return 0;
    }
    const struct sl_rpc_method *method = find_method(endpoint, message->method);
    if (method == NULL) {
        refuse_at_once(conn, message, is_one_way, SL_RPC_ERROR, SL_EPROTO, "unknown message");
        return 0;
    }
    if (conn->request_count >= SL_RPC_OPEN_REQUESTS_MAX) {
        refuse_at_once(conn, message, is_one_way, SL_RPC_FAILURE, SL_ELIMIT,
                       "too many requests are open");
        return 0;
    }
    struct sl_rpc_request *request = sl_alloc(sizeof(*request));
    *request = (struct sl_rpc_request){
        .rpc = rpc,
        .conn = conn,
        .endpoint = endpoint,
        .id = message->id,
        .method = message->method,
        .token = message->token,
        .is_one_way = is_one_way,
        .body = message->body,
        .size = message->size,
    };
    sl_list_push_back(&conn->requests, &request->conn_node);
    sl_list_push_back(&endpoint->requests, &request->endpoint_node);
    conn->request_count++;
    method->handle(endpoint->options.ctx, request);
    return 0;
}

void
sl__rpc_requests_orphan(struct sl__rpc_conn *conn)
{
    sl_list_each(&conn->requests, it)
    {
        struct sl_rpc_request *request = sl_container_of(it, struct sl_rpc_request, conn_node);
        sl_list_remove(it);
        request->conn = NULL;
    }
    conn->request_count = 0;
}
