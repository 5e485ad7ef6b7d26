#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sha256.h"
#include "base/text.h"
#include "rpc/rpc_priv.h"

/*
 * The opening of a connection:
 *
 *     accepting side                        connecting side
 *     CHALLENGE {versions, nonce a}   -->
 *                                     <--   HELLO: HMAC(a, hello) | hello {versions, nonce b, who}
 *     WELCOME: HMAC(b, a, welcome) | welcome {version, who}  -->
 *
 * or REFUSED {reason} instead of WELCOME. The nonce is made for this connection, so an old HELLO
 * has a wrong HMAC; the opening is over within its time limit, and with it the nonce.
 */

static const char hello_purpose[] = "streamlua hello";
static const char welcome_purpose[] = "streamlua welcome";

/* The proof of one side: over a purpose, both nonces (the other may be missing) and a message. */
static void
compute_mac(const struct sl_rpc *rpc, const char *purpose, const uint8_t *nonce,
            const uint8_t *other_nonce, const void *body, size_t size, uint8_t *mac)
{
    struct sl_hmac hmac;
    memset(mac, 0, SL__RPC_MAC_SIZE);
    if (rpc->options.secret_size == 0) {
        return;
    }
    sl_hmac_create(&hmac, rpc->secret, rpc->options.secret_size);
    sl_hmac_update(&hmac, purpose, strlen(purpose));
    sl_hmac_update(&hmac, nonce, SL__RPC_NONCE_SIZE);
    if (other_nonce != NULL) {
        sl_hmac_update(&hmac, other_nonce, SL__RPC_NONCE_SIZE);
    }
    sl_hmac_update(&hmac, body, size);
    sl_hmac_finish(&hmac, mac);
}

static void
die(struct sl__rpc_conn *conn)
{
    conn->state = SL__RPC_DEAD;
    sl_timer_stop(&conn->timer);
    sl__rpc_requests_orphan(conn);
}

/* The connection can not go on: the reason is in the thread's error record. */
static void
fail(struct sl__rpc_conn *conn)
{
    struct sl_rpc_gateway *gateway = conn->gateway;
    if (conn->state == SL__RPC_DEAD) {
        return;
    }
    die(conn);
    conn->gateway = NULL;
    sl_stream_close(conn->stream);
    if (gateway != NULL) {
        sl__rpc_gateway_broken(gateway);
    } else if (conn->rpc != NULL && conn->is_server) {
        uint64_t suppressed;
        if (sl_log_is_enabled("rpc", SL_LOG_WARN) &&
            sl_log_limit_pass(&conn->rpc->refused_log, 1000, &suppressed)) {
            sl_log_write("rpc", SL_LOG_WARN, "connection closed peer=%s reason=%s", conn->peer,
                         sl_err_last()->msg);
        }
    }
}

void
sl__rpc_conn_drop(struct sl__rpc_conn *conn)
{
    conn->gateway = NULL;
    if (conn->state != SL__RPC_DEAD) {
        die(conn);
        sl_stream_close(conn->stream);
    }
}

void
sl__rpc_conn_finish(struct sl__rpc_conn *conn)
{
    conn->gateway = NULL;
    if (conn->state == SL__RPC_READY) {
        die(conn);
        sl_stream_finish(conn->stream);
    } else {
        sl__rpc_conn_drop(conn);
    }
}

int
sl__rpc_conn_send(struct sl__rpc_conn *conn, const void *frame, size_t size)
{
    return sl_stream_write(conn->stream, frame, size);
}

/* Frames what `encode` appends behind an optional HMAC. */
static void
send_opening(struct sl__rpc_conn *conn, uint16_t type, const struct sl__rpc_hello *hello,
             void (*encode)(const struct sl__rpc_hello *hello, struct sl_buf *out),
             const char *purpose, const uint8_t *other_nonce)
{
    struct sl_buf *out = &conn->rpc->scratch;
    sl_buf_clear(out);
    size_t start = sl_frame_begin(out);
    size_t mac_at = out->size;
    if (purpose != NULL) {
        sl_buf_reserve(out, SL__RPC_MAC_SIZE);
        sl_buf_commit(out, SL__RPC_MAC_SIZE);
    }
    encode(hello, out);
    if (purpose != NULL) {
        const uint8_t *body = out->data + mac_at + SL__RPC_MAC_SIZE;
        uint8_t mac[SL__RPC_MAC_SIZE];
        compute_mac(conn->rpc, purpose, conn->peer_nonce, other_nonce, body,
                    out->size - mac_at - SL__RPC_MAC_SIZE, mac);
        memcpy(out->data + mac_at, mac, sizeof(mac));
    }
    sl_frame_end(out, start, type, 1);
    sl__rpc_conn_send(conn, out->data, out->size);
}

static struct sl__rpc_hello
own_hello(const struct sl__rpc_conn *conn)
{
    const struct sl_rpc_options *options = &conn->rpc->options;
    struct sl__rpc_hello hello = {.version = options->version,
                                  .min_version = options->min_version,
                                  .role = options->role,
                                  .name = options->name,
                                  .cluster = options->cluster};
    memcpy(hello.nonce, conn->nonce, sizeof(hello.nonce));
    return hello;
}

/* Says why, then closes. Nothing more that the peer sends is read. */
static int
refuse(struct sl__rpc_conn *conn)
{
    struct sl_rpc *rpc = conn->rpc;
    struct sl_buf *out = &rpc->scratch;
    struct sl_err why = *sl_err_last();
    uint64_t suppressed;
    rpc->stats.refused++;
    sl_buf_clear(out);
    size_t start = sl_frame_begin(out);
    sl__rpc_encode_refused(why.msg, out);
    sl_frame_end(out, start, SL_FRAME_REFUSED, 1);
    sl__rpc_conn_send(conn, out->data, out->size);
    die(conn);
    sl_stream_finish(conn->stream);
    if (sl_log_is_enabled("rpc", SL_LOG_WARN) &&
        sl_log_limit_pass(&rpc->refused_log, 1000, &suppressed)) {
        sl_log_write("rpc", SL_LOG_WARN, "connection refused peer=%s reason=%s suppressed=%llu",
                     conn->peer, why.msg, (unsigned long long)suppressed);
    }
    return sl_err_restore(&why);
}

static int
check_mac(const struct sl__rpc_conn *conn, const char *purpose, const uint8_t *nonce,
          const uint8_t *other_nonce, const uint8_t *payload, size_t size)
{
    uint8_t mac[SL__RPC_MAC_SIZE];
    if (size < SL__RPC_MAC_SIZE) {
        return sl_err_set(SL_EPROTO, "opening message without a proof");
    }
    if (conn->rpc->options.secret_size == 0) {
        return 0;
    }
    compute_mac(conn->rpc, purpose, nonce, other_nonce, payload + SL__RPC_MAC_SIZE,
                size - SL__RPC_MAC_SIZE, mac);
    return sl_bytes_equal_secret(mac, payload, sizeof(mac))
               ? 0
               : sl_err_set(SL_EFENCED, "wrong secret");
}

static int
check_versions(const struct sl__rpc_conn *conn, const struct sl__rpc_hello *peer)
{
    const struct sl_rpc_options *own = &conn->rpc->options;
    if (peer->version < own->min_version || peer->min_version > own->version) {
        return sl_err_set(SL_EPROTO,
                          "protocol version: %s speaks %u to %u, %s %u to %u; upgrade the older",
                          conn->is_server ? "the caller" : "the peer", peer->min_version,
                          peer->version, "this side", own->min_version, own->version);
    }
    return 0;
}

/* Adds who the peer says it is to its address. */
static void
name_peer(struct sl__rpc_conn *conn, const struct sl__rpc_hello *peer)
{
    char role[SL_RPC_NAME_MAX];
    char name[SL_RPC_NAME_MAX];
    sl_text_quote(role, sizeof(role), peer->role, strlen(peer->role));
    sl_text_quote(name, sizeof(name), peer->name, strlen(peer->name));
    snprintf(conn->peer, sizeof(conn->peer), "%s%s%s at %s", role, peer->name[0] != '\0' ? " " : "",
             peer->name[0] != '\0' ? name : "", sl_stream_peer(conn->stream));
}

static void
become_ready(struct sl__rpc_conn *conn)
{
    conn->state = SL__RPC_READY;
    sl_timer_stop(&conn->timer);
    sl_frame_decoder_set_caps(&conn->decoder, SL_FRAME_CONTROL_MAX, 0);
}

static int
take_hello(struct sl__rpc_conn *conn, const uint8_t *payload, size_t size)
{
    struct sl_rpc *rpc = conn->rpc;
    struct sl__rpc_hello peer;
    int rc = check_mac(conn, hello_purpose, conn->nonce, NULL, payload, size);
    if (rc == 0) {
        rc = sl__rpc_decode_hello(payload + SL__RPC_MAC_SIZE, size - SL__RPC_MAC_SIZE, &rpc->arena,
                                  &peer);
    }
    if (rc == 0) {
        rc = check_versions(conn, &peer);
    }
    if (rc == 0 && rpc->cluster[0] != '\0' && peer.cluster[0] != '\0' &&
        strcmp(rpc->cluster, peer.cluster) != 0) {
        rc = sl_err_set(SL_EFENCED, "wrong cluster: this is %s", rpc->cluster);
    }
    if (rc != 0) {
        return refuse(conn);
    }
    memcpy(conn->peer_nonce, peer.nonce, sizeof(conn->peer_nonce));
    name_peer(conn, &peer);
    struct sl__rpc_hello own = own_hello(conn);
    own.version = own.version < peer.version ? own.version : peer.version;
    send_opening(conn, SL_FRAME_WELCOME, &own, sl__rpc_encode_welcome, welcome_purpose,
                 conn->nonce);
    become_ready(conn);
    return 0;
}

static int
take_challenge(struct sl__rpc_conn *conn, const uint8_t *payload, size_t size)
{
    struct sl__rpc_hello peer;
    int rc = sl__rpc_decode_challenge(payload, size, &conn->rpc->arena, &peer);
    if (rc == 0) {
        rc = check_versions(conn, &peer);
    }
    if (rc != 0) {
        return rc;
    }
    memcpy(conn->peer_nonce, peer.nonce, sizeof(conn->peer_nonce));
    struct sl__rpc_hello own = own_hello(conn);
    send_opening(conn, SL_FRAME_HELLO, &own, sl__rpc_encode_hello, hello_purpose, NULL);
    return 0;
}

static int
take_welcome(struct sl__rpc_conn *conn, const uint8_t *payload, size_t size)
{
    struct sl__rpc_hello peer;
    int rc = check_mac(conn, welcome_purpose, conn->nonce, conn->peer_nonce, payload, size);
    if (rc != 0) {
        return sl_err_set(SL_EFENCED, "%s does not know the secret of the cluster", conn->peer);
    }
    rc = sl__rpc_decode_welcome(payload + SL__RPC_MAC_SIZE, size - SL__RPC_MAC_SIZE,
                                &conn->rpc->arena, &peer);
    if (rc != 0) {
        return rc;
    }
    name_peer(conn, &peer);
    become_ready(conn);
    sl__rpc_gateway_ready(conn->gateway);
    return 0;
}

static int
take_refusal(struct sl__rpc_conn *conn, const uint8_t *payload, size_t size)
{
    const char *reason;
    char quoted[160];
    int rc = sl__rpc_decode_refused(payload, size, &conn->rpc->arena, &reason);
    if (rc != 0) {
        return rc;
    }
    return sl_err_set(SL_EFENCED, "%s refuses the connection: %s", conn->peer,
                      sl_text_quote(quoted, sizeof(quoted), reason, strlen(reason)));
}

static int
take_request(struct sl__rpc_conn *conn, const uint8_t *payload, size_t size, bool is_one_way)
{
    struct sl__rpc_request_message message;
    int rc = sl__rpc_decode_request(payload, size, &conn->rpc->arena, &message);
    return rc != 0 ? rc : sl__rpc_dispatch(conn, &message, is_one_way);
}

static int
take_reply(struct sl__rpc_conn *conn, const uint8_t *payload, size_t size)
{
    struct sl__rpc_reply_message message;
    int rc = sl__rpc_decode_reply(payload, size, &conn->rpc->arena, &message);
    if (rc == 0) {
        sl__rpc_gateway_reply(conn->gateway, &message);
    }
    return rc;
}

static int
unexpected(const struct sl__rpc_conn *conn, uint16_t type)
{
    return sl_err_set(SL_EPROTO, "unexpected frame of type %u %s", type,
                      conn->state == SL__RPC_READY ? "on an open connection"
                                                   : "before the opening is done");
}

/* Which frames may come is decided by side and state: anything else ends the connection unread. */
static int
on_frame(void *ctx, const struct sl_frame_header *header, const uint8_t *payload)
{
    struct sl__rpc_conn *conn = ctx;
    bool is_ready = conn->state == SL__RPC_READY;
    conn->frames++;
    sl_arena_reset(&conn->rpc->arena);
    int rc;
    if (conn->is_server && !is_ready && header->type == SL_FRAME_HELLO) {
        rc = take_hello(conn, payload, header->size);
    } else if (conn->is_server && is_ready && header->type == SL_FRAME_REQUEST) {
        rc = take_request(conn, payload, header->size, false);
    } else if (conn->is_server && is_ready && header->type == SL_FRAME_ONE_WAY) {
        rc = take_request(conn, payload, header->size, true);
    } else if (!conn->is_server && !is_ready && header->type == SL_FRAME_CHALLENGE) {
        rc = take_challenge(conn, payload, header->size);
    } else if (!conn->is_server && !is_ready && header->type == SL_FRAME_WELCOME) {
        rc = take_welcome(conn, payload, header->size);
    } else if (!conn->is_server && !is_ready && header->type == SL_FRAME_REFUSED) {
        rc = take_refusal(conn, payload, header->size);
    } else if (!conn->is_server && is_ready && header->type == SL_FRAME_REPLY) {
        rc = take_reply(conn, payload, header->size);
    } else {
        rc = unexpected(conn, header->type);
    }
    /* A handler may have ended the connection; the frames behind are then nobody's. */
    return rc == 0 && conn->state == SL__RPC_DEAD ? sl_err_set(SL_ECLOSED, "closed") : rc;
}

static void
took_too_long(void *ctx, uint64_t ticket)
{
    struct sl__rpc_conn *conn = ctx;
    (void)ticket;
    sl_err_set(SL_ETIMEOUT, "%s: %s", conn->peer,
               conn->state == SL__RPC_READY ? "a frame did not become complete in time"
                                            : "the opening of the connection took too long");
    fail(conn);
}

/* A frame that came in part has a time limit of its own, however slowly its bytes drip. */
static void
watch_partial(struct sl__rpc_conn *conn, bool is_new_frame)
{
    if (conn->state != SL__RPC_READY) {
        return;
    }
    if (!sl_frame_decoder_is_partial(&conn->decoder)) {
        sl_timer_stop(&conn->timer);
    } else if (is_new_frame || !sl_timer_is_running(&conn->timer)) {
        sl_timer_start(conn->rpc->loop, &conn->timer, conn->rpc->options.frame_timeout_ms,
                       took_too_long, conn);
    }
}

static void
on_data(void *ctx, const uint8_t *data, size_t len)
{
    struct sl__rpc_conn *conn = ctx;
    if (conn->state == SL__RPC_DEAD) {
        return;
    }
    uint64_t frames = conn->frames;
    int rc = sl_frame_decoder_feed(&conn->decoder, data, len, on_frame, conn);
    if (conn->state == SL__RPC_DEAD) {
        return;
    }
    if (rc != 0) {
        fail(conn);
        return;
    }
    watch_partial(conn, conn->frames != frames);
}

static void
on_open(void *ctx)
{
    struct sl__rpc_conn *conn = ctx;
    conn->state = SL__RPC_OPENING;
    sl_timer_start(conn->rpc->loop, &conn->timer, conn->rpc->options.opening_timeout_ms,
                   took_too_long, conn);
}

static void
on_close(void *ctx, const struct sl_err *why)
{
    struct sl__rpc_conn *conn = ctx;
    struct sl_rpc_gateway *gateway = conn->gateway;
    if (conn->state != SL__RPC_DEAD) {
        die(conn);
    }
    if (conn->rpc != NULL) {
        sl_list_remove(&conn->node);
        conn->rpc->server_conns -= conn->is_server;
    }
    if (gateway != NULL) {
        conn->gateway = NULL;
        sl_err_restore(why);
        sl__rpc_gateway_broken(gateway);
    }
    sl_frame_decoder_destroy(&conn->decoder);
    sl_free(conn);
}

static const struct sl_stream_handler handler = {on_open, on_data, NULL, on_close};

static struct sl__rpc_conn *
conn_new(struct sl_rpc *rpc, enum sl__rpc_conn_state state)
{
    struct sl__rpc_conn *conn = sl_calloc(1, sizeof(*conn));
    conn->rpc = rpc;
    conn->state = state;
    sl_list_create(&conn->requests);
    sl_frame_decoder_create(&conn->decoder, SL_FRAME_HELLO_MAX, 0);
    sl_loop_entropy(rpc->loop, conn->nonce, sizeof(conn->nonce));
    sl_list_push_back(&rpc->conns, &conn->node);
    return conn;
}

struct sl__rpc_conn *
sl__rpc_conn_connect(struct sl_rpc *rpc, struct sl_rpc_gateway *gateway,
                     const struct sl_address *address)
{
    struct sl__rpc_conn *conn = conn_new(rpc, SL__RPC_CONNECTING);
    conn->gateway = gateway;
    sl_address_format(address, conn->peer, sizeof(conn->peer));
    int rc = sl_stream_connect(rpc->loop, address, NULL, &handler, conn, &conn->stream);
    if (rc != 0) {
        sl_list_remove(&conn->node);
        sl_free(conn);
        return NULL;
    }
    return conn;
}

void
sl__rpc_conn_accept(struct sl_rpc *rpc, struct sl_stream *stream)
{
    if (rpc->server_conns >= rpc->options.connections_max) {
        rpc->stats.refused++;
        sl_stream_close(stream);
        return;
    }
    struct sl__rpc_conn *conn = conn_new(rpc, SL__RPC_OPENING);
    conn->is_server = true;
    conn->stream = stream;
    rpc->server_conns++;
    rpc->stats.connections++;
    snprintf(conn->peer, sizeof(conn->peer), "%s", sl_stream_peer(stream));
    sl_stream_accept(stream, NULL, &handler, conn);
    sl_timer_start(rpc->loop, &conn->timer, rpc->options.opening_timeout_ms, took_too_long, conn);
    struct sl__rpc_hello own = own_hello(conn);
    send_opening(conn, SL_FRAME_CHALLENGE, &own, sl__rpc_encode_challenge, NULL, NULL);
}
