#pragma once
/*
 * Calls between the processes of a cluster.
 *
 * A role has one service (struct sl_rpc) on its loop. It listens, holds the role's endpoints and
 * makes gateways to endpoints of other processes:
 *
 *     gateway -- connection --> service -> endpoint -> handler -> reply -> done callback
 *
 * Everything runs on the loop of the role and nothing here is safe from another thread; other
 * threads use sl_loop_post. Messages of one gateway arrive in the order in which they were sent. A
 * gateway survives its connection: the next call after a break connects anew. Every call ends in
 * exactly one done callback, unless it is cancelled or its gateway is freed, and never inside the
 * call that started it.
 *
 * Fencing: an endpoint of a leader has a token, the number of its term. A gateway made with a token
 * puts it into every message, and an endpoint answers any other token with SL_RPC_STALE_TOKEN
 * without calling the handler. Supervisors and workers have plain endpoints, without tokens.
 *
 * Secrets: with a cluster secret both sides prove that they know it before anything else is read;
 * without one a service refuses to listen where other machines can reach it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/heap.h"
#include "base/list.h"
#include "loop/address.h"
#include "loop/loop.h"

struct sl_rpc;
struct sl_rpc_gateway;
struct sl_rpc_request;

enum {
    /* Version of the conversation this program speaks, and the oldest it still understands. */
    SL_RPC_VERSION = 1,
    SL_RPC_MIN_VERSION = 1,
    /* Defaults of the options. */
    SL_RPC_CALL_MS = 10000,
    SL_RPC_FRAME_MS = 10000,
    SL_RPC_OPENING_MS = 10000,
    SL_RPC_RETRY_GATE_MS = 50,
    SL_RPC_CONNECTIONS_MAX = 16384,
    /* Calls of one connection that are not answered yet. */
    SL_RPC_OPEN_REQUESTS_MAX = 65536,
    SL_RPC_NAME_MAX = 128,
};

struct sl_rpc_options {
    /* What this process is ("master") and its name; told to peers. NULL is empty. */
    const char *role;
    const char *name;
    /* Peers of another cluster are refused; NULL or "" is not checked. */
    const char *cluster;
    /* The secret, copied; empty for none. */
    const void *secret;
    size_t secret_size;
    /* Limits; 0 picks the default. The first is that of calls which name none. */
    uint64_t call_timeout_ms;
    uint64_t frame_timeout_ms;
    uint64_t opening_timeout_ms;
    uint64_t retry_gate_ms;
    uint32_t connections_max;
    /* For tests of other versions; 0 picks the real ones. */
    uint32_t version;
    uint32_t min_version;
};

/* Makes the service of a role. */
struct sl_rpc *sl_rpc_new(struct sl_loop *loop, const struct sl_rpc_options *options);

/* Closes listeners and connections. Gateways must be freed and endpoints stopped before. */
void sl_rpc_free(struct sl_rpc *rpc);

struct sl_loop *sl_rpc_loop(const struct sl_rpc *rpc);

/*
 * Listens on an address ("127.0.0.1:0", "unix:PATH"); several calls are fine. SL_EFENCED for an
 * address that other machines can reach when there is no secret, else as sl_listener_open.
 */
int sl_rpc_listen(struct sl_rpc *rpc, const char *address);

/* The first address with its real port as text; "" before sl_rpc_listen. */
const char *sl_rpc_address(const struct sl_rpc *rpc);

/* Counters, for tests and metrics. */
struct sl_rpc_stats {
    uint64_t connections;
    uint64_t refused;
    uint64_t requests;
    uint64_t stale;
};

const struct sl_rpc_stats *sl_rpc_stats(const struct sl_rpc *rpc);

enum sl_rpc_status {
    SL_RPC_SUCCESS = 1,
    /* Not now; the same request may succeed later. */
    SL_RPC_FAILURE = 2,
    /* Never. */
    SL_RPC_REJECTION = 3,
    /* The endpoint serves another term: drop the connection and look up the leader. */
    SL_RPC_STALE_TOKEN = 4,
    /* Not understood: unknown endpoint or message, malformed body, a bug. */
    SL_RPC_ERROR = 5,
    /* No answer within the time limit. */
    SL_RPC_TIMEOUT = 16,
    /* No connection, or it broke before the answer. */
    SL_RPC_UNREACHABLE = 17,
};

/* "SUCCESS", "FAILURE", ... Static text. */
const char *sl_rpc_status_name(enum sl_rpc_status status);

/* How a call ended; borrowed for the callback. */
struct sl_rpc_result {
    enum sl_rpc_status status;
    /* 0 for success, else an SL_E code. */
    int code;
    /* Names the peer and the cause; "" for success. */
    const char *reason;
    const uint8_t *body;
    size_t size;
};

typedef void (*sl_rpc_done_fn)(void *ctx, const struct sl_rpc_result *result);

/*
 * Makes a gateway to an endpoint. token is that of the term meant, 0 for a plain endpoint. Nothing
 * is sent before the first call. SL_EINVAL for a text that is no address. Freed by
 * sl_rpc_gateway_free; its open calls are then forgotten, and what was sent on an open connection
 * still reaches the peer.
 */
int sl_rpc_connect(struct sl_rpc *rpc, const char *address, const char *endpoint, uint64_t token,
                   struct sl_rpc_gateway **gateway);
void sl_rpc_gateway_free(struct sl_rpc_gateway *gateway);

/* Connects now, if it is not done; ends like a call, with an empty body. */
uint64_t sl_rpc_open(struct sl_rpc_gateway *gateway, uint64_t timeout_ms, sl_rpc_done_fn done,
                     void *ctx);

/*
 * Calls a method. The body is copied; timeout_ms 0 is the service's call_timeout_ms. Returns the
 * number of the call, for sl_rpc_cancel.
 */
uint64_t sl_rpc_call(struct sl_rpc_gateway *gateway, uint32_t method, const void *body, size_t size,
                     uint64_t timeout_ms, sl_rpc_done_fn done, void *ctx);

/* Sends a message without an answer: it may be lost when the connection breaks. */
void sl_rpc_send(struct sl_rpc_gateway *gateway, uint32_t method, const void *body, size_t size);

/* Forgets a call: done is not called. A call that has ended is ignored. */
void sl_rpc_cancel(struct sl_rpc_gateway *gateway, uint64_t call);

const char *sl_rpc_gateway_address(const struct sl_rpc_gateway *gateway);
uint64_t sl_rpc_gateway_token(const struct sl_rpc_gateway *gateway);

/* Calls that are not answered yet. */
size_t sl_rpc_gateway_open_calls(const struct sl_rpc_gateway *gateway);

/* A method of an endpoint. The handler answers by sl_rpc_reply or sl_rpc_refuse, exactly once, now
 * or later (also one-way messages: there it only frees the request), and never blocks. */
struct sl_rpc_method {
    uint32_t id;
    void (*handle)(void *ctx, struct sl_rpc_request *request);
};

struct sl_rpc_endpoint_options {
    /* 1..SL_RPC_NAME_MAX bytes, unique in the service. Borrowed until the endpoint is stopped. */
    const char *name;
    bool is_fenced;
    const struct sl_rpc_method *methods;
    size_t method_count;
    /* Called on the loop: when the endpoint starts to answer, and when it is stopped. The services
     * of a role start in on_start. Both may be NULL. */
    void (*on_start)(void *ctx);
    void (*on_stop)(void *ctx);
    void *ctx;
};

/* An endpoint, in the memory of its owner; zeroed memory is a stopped one. */
struct sl_rpc_endpoint {
    struct sl_rpc *rpc;
    struct sl_rpc_endpoint_options options;
    /* Of the present term; 0 while not the leader. */
    uint64_t token;
    bool is_started;
    struct sl_timer start_timer;
    struct sl_list requests;
    struct sl_list actions;
};

/* Starts an endpoint: on_start runs in a later turn, requests are answered from then on. SL_EEXIST
 * when the name is taken, SL_EINVAL for a bad name. */
int sl_rpc_endpoint_start(struct sl_rpc *rpc, struct sl_rpc_endpoint *endpoint,
                          const struct sl_rpc_endpoint_options *options);

/* Stops it: on_stop is called, requests that are not answered fail, actions are dropped. Again:
 * nothing. */
void sl_rpc_endpoint_stop(struct sl_rpc_endpoint *endpoint);

/* Changes the term; 0 refuses every fenced message until the next one. */
void sl_rpc_endpoint_set_token(struct sl_rpc_endpoint *endpoint, uint64_t token);

/*
 * Runs fn(ctx) on the loop after delay_ms, if the endpoint still runs and its token is the one of
 * now: what an old term left behind drops by itself.
 */
void sl_rpc_endpoint_later(struct sl_rpc_endpoint *endpoint, uint64_t delay_ms, sl_loop_fn fn,
                           void *ctx);

/* The body; borrowed until the handler returns or the request is answered. */
const uint8_t *sl_rpc_request_body(const struct sl_rpc_request *request, size_t *size);
uint32_t sl_rpc_request_method(const struct sl_rpc_request *request);
uint64_t sl_rpc_request_token(const struct sl_rpc_request *request);

/* Who asks, for messages: "'worker' 'w3' at 127.0.0.1:40312". Borrowed for the turn. */
const char *sl_rpc_request_peer(const struct sl_rpc_request *request);

/* Answers with success; the request is gone. */
void sl_rpc_reply(struct sl_rpc_request *request, const void *body, size_t size);

/* Answers with FAILURE, REJECTION or ERROR, a code and a reason; the request is gone. */
void sl_rpc_refuse(struct sl_rpc_request *request, enum sl_rpc_status status, int code,
                   const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The same with the error of this thread; SL_EPROTO and SL_ELIMIT are errors, the rest failures. */
void sl_rpc_refuse_last(struct sl_rpc_request *request);
