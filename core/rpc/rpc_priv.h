#pragma once
/* Service, connections and gateways of rpc: what their files share. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "loop/stream.h"
#include "rpc/rpc.h"
#include "rpc/rpc_codec.h"
#include "wire/frame.h"

struct sl__rpc_listener {
    struct sl_rpc *rpc;
    struct sl_listener *listener;
    struct sl_list_node node;
};

struct sl_rpc {
    struct sl_loop *loop;
    struct sl_rpc_options options;
    char *role;
    char *name;
    char *cluster;
    uint8_t *secret;
    struct sl_list listeners;
    char address[SL_ADDRESS_TEXT_SIZE];
    struct sl_list conns;
    size_t server_conns;
    struct sl_list gateways;
    /* name -> struct sl_rpc_endpoint. */
    struct sl_map_bytes endpoints;
    /* Of the message being handled or written. */
    struct sl_arena arena;
    struct sl_buf scratch;
    uint64_t next_call;
    struct sl_rpc_stats stats;
    struct sl_log_limit refused_log;
};

enum sl__rpc_conn_state {
    /* Client: no transport yet. */
    SL__RPC_CONNECTING,
    /* Proving who is who. */
    SL__RPC_OPENING,
    SL__RPC_READY,
    /* Only the close callback of the stream is to come. */
    SL__RPC_DEAD,
};

/* One connection, of either side. Freed in the close callback of its stream. */
struct sl__rpc_conn {
    /* NULL when the service is gone. */
    struct sl_rpc *rpc;
    struct sl_list_node node;
    struct sl_stream *stream;
    struct sl_frame_decoder decoder;
    enum sl__rpc_conn_state state;
    bool is_server;
    /* Limits the opening, then every frame that came in part. */
    struct sl_timer timer;
    uint64_t frames;
    uint8_t nonce[SL__RPC_NONCE_SIZE];
    uint8_t peer_nonce[SL__RPC_NONCE_SIZE];
    /* "worker w3 at 127.0.0.1:4000". */
    char peer[2 * SL_RPC_NAME_MAX + SL_ADDRESS_TEXT_SIZE + 8];
    /* Client: whose it is, or NULL. */
    struct sl_rpc_gateway *gateway;
    /* Server: requests that are not answered. */
    struct sl_list requests;
    size_t request_count;
};

/* Starts to connect for a gateway. */
struct sl__rpc_conn *sl__rpc_conn_connect(struct sl_rpc *rpc, struct sl_rpc_gateway *gateway,
                                          const struct sl_address *address);

/* Takes over an accepted stream. */
void sl__rpc_conn_accept(struct sl_rpc *rpc, struct sl_stream *stream);

/* Ends a connection without telling its gateway. */
void sl__rpc_conn_drop(struct sl__rpc_conn *conn);

/* The same, but what was sent before still reaches the peer. */
void sl__rpc_conn_finish(struct sl__rpc_conn *conn);

/* Frames a message that stands in rpc->scratch behind the reserved header, and sends it. */
int sl__rpc_conn_send(struct sl__rpc_conn *conn, const void *frame, size_t size);

/* The gateway's part: the connection is open, it ended (reason in the thread's error record), a
 * reply came. */
void sl__rpc_gateway_ready(struct sl_rpc_gateway *gateway);
void sl__rpc_gateway_broken(struct sl_rpc_gateway *gateway);
void sl__rpc_gateway_reply(struct sl_rpc_gateway *gateway,
                           const struct sl__rpc_reply_message *reply);

/* The endpoint's part: a request came; the connection ended. */
int sl__rpc_dispatch(struct sl__rpc_conn *conn, const struct sl__rpc_request_message *message,
                     bool is_one_way);
void sl__rpc_requests_orphan(struct sl__rpc_conn *conn);
