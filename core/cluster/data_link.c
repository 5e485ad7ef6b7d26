#include "cluster/data_link.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/vec.h"
#include "cluster/data_codec.h"
#include "loop/stream.h"
#include "wire/frame.h"

enum {
    MAC_SIZE = SL_SHA256_SIZE,
    /* Bytes that may wait in a stream; acks wait behind no more than that. */
    WRITE_MOST = 512 * 1024,
    WRITE_PIECE = 64 * 1024,
    /* Something waits for room in a ring that nobody tells of. */
    POLL_MS = 1,
};

static const char hello_purpose[] = "streamlua data hello";
static const char welcome_purpose[] = "streamlua data welcome";

enum conn_state {
    /* Of the connecting side: before the challenge, and before the welcome. */
    CONN_NEW,
    CONN_HELLO_SENT,
    /* Of the accepting side: before the hello. */
    CONN_CHALLENGED,
    CONN_READY,
    /* Only the close callback is to come. */
    CONN_DEAD,
};

/* A connection. Freed in the close callback of its stream. */
struct conn {
    /* NULL when the links are gone. */
    struct sl_data_link *links;
    struct sl_list_node node;
    struct sl_stream *stream;
    enum conn_state state;
    struct peer *peer;
    uint8_t nonce[SL_DATA_NONCE_SIZE];
    uint8_t peer_nonce[SL_DATA_NONCE_SIZE];
    /* The part of an opening message that came so far; then frames that came before they are
     * admitted. */
    struct sl_buf held;
    /* Limits the opening. */
    struct sl_timer timer;
};

struct peer {
    struct sl_data_link *links;
    int32_t container;
    uint8_t identity[SL_REMOTE_IDENTITY_SIZE];
    struct sl_address address;
    /* The connection that stands or is being made; accepted ones only when they stand. */
    struct conn *conn;
    struct sl_timer timer;
    uint64_t retry_ms;
    uint64_t heard_ms;
    /* The frame that is being written and how much of it is. */
    struct sl_remote_frame frame;
    size_t head_done;
    size_t body_done;
    bool has_frame;
};

struct sl_data_link {
    struct sl_loop *loop;
    struct sl_data_link_options options;
    char *topology_id;
    uint8_t *secret;
    struct sl_listener *listener;
    struct sl_list conns;
    SL_VEC(struct peer *) peers;
    struct sl_timer poll_timer;
    bool is_admitting;
    bool is_paused;
    struct sl_arena arena;
    struct sl_buf scratch;
    struct sl_log_limit closed_log;
};

/* ---- pump ----------------------------------------------------------------------------------- */

static struct peer *
find_peer(const struct sl_data_link *self, int32_t container)
{
    for (size_t i = 0; i < self->peers.count; i++) {
        if (self->peers.items[i]->container == container) {
            return self->peers.items[i];
        }
    }
    return NULL;
}

static bool
is_ready(const struct peer *peer)
{
    return peer->conn != NULL && peer->conn->state == CONN_READY;
}

/* Writes some more bytes; false when the stream takes no more now. */
static bool
write_part(struct sl_stream *stream, const uint8_t *data, size_t size, size_t *done)
{
    while (*done < size) {
        size_t piece = size - *done < WRITE_PIECE ? size - *done : WRITE_PIECE;
        if (sl_stream_write(stream, data + *done, piece) != 0) {
            return false;
        }
        *done += piece;
    }
    return true;
}

static void
peer_write(struct peer *peer)
{
    while (is_ready(peer)) {
        struct sl_remote_frame *frame = &peer->frame;
        if (!peer->has_frame) {
            peer->has_frame = sl_remote_next(peer->links->options.remote, peer->container, frame);
            peer->head_done = 0;
            peer->body_done = 0;
            if (!peer->has_frame) {
                return;
            }
        }
        if (!write_part(peer->conn->stream, frame->head, frame->head_size, &peer->head_done) ||
            !write_part(peer->conn->stream, frame->body, frame->body_size, &peer->body_done)) {
            return;
        }
        peer->has_frame = false;
    }
}

/* While executors do not take acks, or there are no tasks yet, nothing more is read. */
static void
pause_if_jammed(struct sl_data_link *self)
{
    bool must_pause = !self->is_admitting || sl_remote_is_jammed(self->options.remote);
    for (size_t i = 0; i < self->peers.count && must_pause != self->is_paused; i++) {
        struct peer *peer = self->peers.items[i];
        if (is_ready(peer) && must_pause) {
            sl_stream_pause(peer->conn->stream);
        } else if (is_ready(peer)) {
            sl_stream_resume(peer->conn->stream);
        }
    }
    self->is_paused = must_pause;
}

static void woken(void *ctx);

static void
wake(void *ctx)
{
    struct sl_data_bell *bell = ctx;
    sl_loop_post(bell->loop, woken, bell);
}

static void
pump(struct sl_data_link *self)
{
    struct sl_remote *remote = self->options.remote;
    sl_remote_pump(remote);
    for (size_t i = 0; i < self->peers.count; i++) {
        peer_write(self->peers.items[i]);
    }
    pause_if_jammed(self);
    if (!sl_remote_rest(remote)) {
        wake(self->options.bell);
    }
}

static void
poll_due(void *ctx, uint64_t ticket)
{
    struct sl_data_link *self = ctx;
    (void)ticket;
    pump(self);
    if (sl_remote_is_waiting(self->options.remote)) {
        sl_timer_start(self->loop, &self->poll_timer, POLL_MS, poll_due, self);
    }
}

static void
pump_and_poll(struct sl_data_link *self)
{
    pump(self);
    if (sl_remote_is_waiting(self->options.remote) && !sl_timer_is_running(&self->poll_timer)) {
        sl_timer_start(self->loop, &self->poll_timer, POLL_MS, poll_due, self);
    }
}

static void
woken(void *ctx)
{
    struct sl_data_bell *bell = ctx;
    if (bell->links != NULL) {
        pump_and_poll(bell->links);
    }
}

/* ---- ends of connections -------------------------------------------------------------------- */

static void peer_dial(struct peer *peer);

static void
dial_due(void *ctx, uint64_t ticket)
{
    (void)ticket;
    peer_dial(ctx);
}

/* The connecting side tries again after a while, with some chance in it. */
static void
peer_retry(struct peer *peer)
{
    struct sl_data_link *links = peer->links;
    if (peer->container > links->options.container) {
        return;
    }
    uint64_t pause =
        peer->retry_ms / 2 + sl_random_below(sl_loop_random(links->loop), peer->retry_ms / 2 + 1);
    peer->retry_ms =
        peer->retry_ms * 2 < SL_DATA_RETRY_MAX_MS ? peer->retry_ms * 2 : SL_DATA_RETRY_MAX_MS;
    sl_timer_start(links->loop, &peer->timer, pause, dial_due, peer);
}

static void
tell_change(struct sl_data_link *self)
{
    if (self->options.on_change != NULL) {
        self->options.on_change(self->options.ctx);
    }
}

/* The connection of a peer is no longer its own. */
static void
peer_detach(struct peer *peer)
{
    struct conn *conn = peer->conn;
    if (conn == NULL) {
        return;
    }
    bool was_ready = conn->state == CONN_READY;
    conn->peer = NULL;
    peer->conn = NULL;
    peer->has_frame = false;
    sl_timer_stop(&peer->timer);
    if (was_ready) {
        sl_remote_close(peer->links->options.remote, peer->container);
    }
}

/* Nothing more comes of the connection; the reason is in the thread's error record. */
static void
conn_lose(struct conn *conn)
{
    struct peer *peer = conn->peer;
    bool was_ready = conn->state == CONN_READY;
    if (peer != NULL && was_ready && sl_log_is_enabled("cluster.data", SL_LOG_INFO)) {
        sl_log_write("cluster.data", SL_LOG_INFO, "connection to container %d is gone reason=%s",
                     peer->container, sl_err_last()->msg);
    }
    if (peer != NULL) {
        peer_detach(peer);
        peer_retry(peer);
    }
    conn->state = CONN_DEAD;
    sl_timer_stop(&conn->timer);
    if (peer != NULL && was_ready) {
        tell_change(peer->links);
    }
}

static void
conn_kill(struct conn *conn)
{
    if (conn->state != CONN_DEAD) {
        conn->state = CONN_DEAD;
        sl_timer_stop(&conn->timer);
        sl_stream_close(conn->stream);
    }
}

/* The connection can not go on; the reason is in the thread's error record. */
static void
conn_fail(struct conn *conn)
{
    if (conn->state != CONN_DEAD) {
        conn_lose(conn);
        sl_stream_close(conn->stream);
    }
}

static void
opening_timed_out(void *ctx, uint64_t ticket)
{
    (void)ticket;
    sl_err_set(SL_ETIMEOUT, "the peer did not open the connection in time");
    conn_fail(ctx);
}

static void
on_close(void *ctx, const struct sl_err *why)
{
    struct conn *conn = ctx;
    if (conn->state != CONN_DEAD) {
        sl_err_restore(why);
        conn_lose(conn);
    }
    if (conn->links != NULL) {
        sl_list_remove(&conn->node);
    }
    sl_buf_destroy(&conn->held);
    sl_free(conn);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void
compute_mac(const struct sl_data_link *self, const char *purpose, const uint8_t *nonce,
            const uint8_t *other_nonce, const uint8_t *body, size_t size, uint8_t *mac)
{
    struct sl_hmac hmac;
    memset(mac, 0, MAC_SIZE);
    if (self->options.secret_size == 0) {
        return;
    }
    sl_hmac_create(&hmac, self->secret, self->options.secret_size);
    sl_hmac_update(&hmac, purpose, strlen(purpose));
    sl_hmac_update(&hmac, nonce, SL_DATA_NONCE_SIZE);
    if (other_nonce != NULL) {
        sl_hmac_update(&hmac, other_nonce, SL_DATA_NONCE_SIZE);
    }
    sl_hmac_update(&hmac, body, size);
    sl_hmac_finish(&hmac, mac);
}

/* Frames the message that stands in scratch behind header and room for the HMAC. */
static void
opening_send(struct conn *conn, uint16_t type, size_t start, const char *purpose,
             const uint8_t *other_nonce)
{
    struct sl_buf *out = &conn->links->scratch;
    if (purpose != NULL) {
        uint8_t mac[MAC_SIZE];
        const uint8_t *body = out->data + start + SL_FRAME_HEADER_SIZE + MAC_SIZE;
        compute_mac(conn->links, purpose, conn->peer_nonce, other_nonce, body,
                    out->size - start - SL_FRAME_HEADER_SIZE - MAC_SIZE, mac);
        memcpy(out->data + start + SL_FRAME_HEADER_SIZE, mac, sizeof(mac));
    }
    sl_frame_end(out, start, type, 1);
    sl_stream_write(conn->stream, out->data, out->size);
}

static size_t
opening_begin(struct conn *conn, bool has_mac)
{
    static const uint8_t nothing[MAC_SIZE];
    struct sl_buf *out = &conn->links->scratch;
    sl_buf_clear(out);
    size_t start = sl_frame_begin(out);
    if (has_mac) {
        sl_buf_append(out, nothing, sizeof(nothing));
    }
    return start;
}

static int
check_mac(const struct conn *conn, const char *purpose, const uint8_t *other_nonce,
          const uint8_t *payload, size_t size)
{
    uint8_t mac[MAC_SIZE];
    if (size < MAC_SIZE) {
        return sl_err_set(SL_EPROTO, "opening message without a proof");
    }
    if (conn->links->options.secret_size == 0) {
        return 0;
    }
    compute_mac(conn->links, purpose, conn->nonce, other_nonce, payload + MAC_SIZE, size - MAC_SIZE,
                mac);
    return sl_bytes_equal_secret(mac, payload, sizeof(mac))
               ? 0
               : sl_err_set(SL_EFENCED, "wrong secret");
}

static void peer_beat(void *ctx, uint64_t ticket);

static void
conn_ready(struct conn *conn, const uint8_t *identity, uint32_t window, bool resumes,
           uint64_t received)
{
    struct peer *peer = conn->peer;
    struct sl_data_link *links = conn->links;
    conn->state = CONN_READY;
    sl_timer_stop(&conn->timer);
    sl_remote_open(links->options.remote, peer->container, identity, window, resumes, received);
    peer->retry_ms = SL_DATA_RETRY_MS;
    peer->heard_ms = sl_loop_now_ms(links->loop);
    sl_timer_start(links->loop, &peer->timer, links->options.refresh_ms, peer_beat, peer);
    if (links->is_paused) {
        sl_stream_pause(conn->stream);
    }
    tell_change(links);
}

/* Grants are told anew, so a lost one heals; and a peer that says nothing for long is given up. */
static void
peer_beat(void *ctx, uint64_t ticket)
{
    struct peer *peer = ctx;
    struct sl_data_link *links = peer->links;
    (void)ticket;
    if (!is_ready(peer)) {
        return;
    }
    if (!links->is_paused &&
        sl_loop_now_ms(links->loop) - peer->heard_ms >= links->options.silence_ms) {
        sl_err_set(SL_ETIMEOUT, "nothing heard for %llu ms",
                   (unsigned long long)links->options.silence_ms);
        conn_fail(peer->conn);
        return;
    }
    sl_timer_start(links->loop, &peer->timer, links->options.refresh_ms, peer_beat, peer);
    sl_remote_refresh(links->options.remote, peer->container);
    pump_and_poll(links);
}

/* The peer that a hello comes from, or NULL with the reason for refusing it set. */
static struct peer *
hello_peer(struct sl_data_link *self, const struct sl_data_hello *hello)
{
    struct peer *peer = find_peer(self, hello->container);
    if (hello->version != SL_DATA_VERSION) {
        sl_err_set(SL_EPROTO, "version %u of the data protocol, this side speaks %d",
                   hello->version, SL_DATA_VERSION);
    } else if (strcmp(hello->topology_id, self->topology_id) != 0) {
        sl_err_set(SL_EFENCED, "wrong topology");
    } else if (hello->to != self->options.container) {
        sl_err_set(SL_EFENCED, "this is container %d, not %d", self->options.container, hello->to);
    } else if (peer == NULL ||
               memcmp(peer->identity, hello->identity, sizeof(peer->identity)) != 0) {
        sl_err_set(SL_EFENCED, "the plan does not name this process for container %d",
                   hello->container);
    } else if (hello->window < 4096) {
        sl_err_set(SL_EPROTO, "a window of %u bytes", hello->window);
    } else {
        return peer;
    }
    return NULL;
}

static int
hello_refuse(struct conn *conn)
{
    struct sl_err why = *sl_err_last();
    struct sl_data_welcome welcome = {.refused = why.msg};
    memcpy(welcome.identity, conn->links->options.identity, sizeof(welcome.identity));
    size_t start = opening_begin(conn, true);
    sl_data_encode_welcome(&welcome, &conn->links->scratch);
    opening_send(conn, SL_FRAME_WELCOME, start, welcome_purpose, conn->nonce);
    conn->state = CONN_DEAD;
    sl_timer_stop(&conn->timer);
    sl_stream_finish(conn->stream);
    return sl_err_restore(&why);
}

static int
take_hello(struct conn *conn, const uint8_t *payload, size_t size)
{
    struct sl_data_link *links = conn->links;
    struct sl_remote *remote = links->options.remote;
    struct sl_data_hello hello;
    int rc = check_mac(conn, hello_purpose, NULL, payload, size);
    if (rc == 0) {
        rc = sl_data_decode_hello(payload + MAC_SIZE, size - MAC_SIZE, &links->arena, &hello);
    }
    if (rc != 0) {
        return rc;
    }
    memcpy(conn->peer_nonce, hello.nonce, sizeof(conn->peer_nonce));
    struct peer *peer = hello_peer(links, &hello);
    if (peer == NULL) {
        return hello_refuse(conn);
    }
    struct conn *old = peer->conn;
    if (old != NULL) {
        /* The peer has seen the end of it before we did. */
        peer_detach(peer);
        conn_kill(old);
    }
    const uint8_t *known = sl_remote_identity(remote, peer->container);
    struct sl_data_welcome welcome = {.window = sl_remote_window(remote)};
    memcpy(welcome.identity, links->options.identity, sizeof(welcome.identity));
    welcome.resumes = known != NULL && hello.has_known &&
                      memcmp(known, hello.identity, SL_REMOTE_IDENTITY_SIZE) == 0 &&
                      memcmp(hello.known, links->options.identity, SL_REMOTE_IDENTITY_SIZE) == 0 &&
                      sl_remote_can_resume(remote, peer->container, hello.received);
    welcome.received = welcome.resumes ? sl_remote_received(remote, peer->container) : 0;
    size_t start = opening_begin(conn, true);
    sl_data_encode_welcome(&welcome, &links->scratch);
    opening_send(conn, SL_FRAME_WELCOME, start, welcome_purpose, conn->nonce);
    conn->peer = peer;
    peer->conn = conn;
    conn_ready(conn, hello.identity, hello.window, welcome.resumes, hello.received);
    return 0;
}

static int
take_challenge(struct conn *conn, const uint8_t *payload, size_t size)
{
    struct sl_data_link *links = conn->links;
    struct peer *peer = conn->peer;
    struct sl_data_challenge challenge;
    int rc = sl_data_decode_challenge(payload, size, &links->arena, &challenge);
    if (rc != 0) {
        return rc;
    }
    memcpy(conn->peer_nonce, challenge.nonce, sizeof(conn->peer_nonce));
    const uint8_t *known = sl_remote_identity(links->options.remote, peer->container);
    struct sl_data_hello hello = {.version = SL_DATA_VERSION,
                                  .topology_id = links->topology_id,
                                  .container = links->options.container,
                                  .to = peer->container,
                                  .has_known = known != NULL,
                                  .received =
                                      sl_remote_received(links->options.remote, peer->container),
                                  .window = sl_remote_window(links->options.remote)};
    memcpy(hello.nonce, conn->nonce, sizeof(hello.nonce));
    memcpy(hello.identity, links->options.identity, sizeof(hello.identity));
    if (known != NULL) {
        memcpy(hello.known, known, sizeof(hello.known));
    }
    size_t start = opening_begin(conn, true);
    sl_data_encode_hello(&hello, &links->scratch);
    opening_send(conn, SL_FRAME_HELLO, start, hello_purpose, NULL);
    conn->state = CONN_HELLO_SENT;
    return 0;
}

static int
take_welcome(struct conn *conn, const uint8_t *payload, size_t size)
{
    struct sl_data_link *links = conn->links;
    struct peer *peer = conn->peer;
    struct sl_data_welcome welcome;
    int rc = check_mac(conn, welcome_purpose, conn->peer_nonce, payload, size);
    if (rc == 0) {
        rc = sl_data_decode_welcome(payload + MAC_SIZE, size - MAC_SIZE, &links->arena, &welcome);
    }
    if (rc != 0) {
        return rc;
    }
    if (welcome.refused != NULL) {
        return sl_err_set(SL_EFENCED, "container %d refuses: %s", peer->container, welcome.refused);
    }
    if (memcmp(welcome.identity, peer->identity, sizeof(peer->identity)) != 0) {
        return sl_err_set(SL_EFENCED, "the plan does not name this process for container %d",
                          peer->container);
    }
    if (welcome.window < 4096) {
        return sl_err_set(SL_EPROTO, "a window of %u bytes", welcome.window);
    }
    if (welcome.resumes &&
        !sl_remote_can_resume(links->options.remote, peer->container, welcome.received)) {
        sl_remote_forget(links->options.remote, peer->container);
        return sl_err_set(SL_EPROTO, "container %d has frames that were not sent", peer->container);
    }
    conn_ready(conn, welcome.identity, welcome.window, welcome.resumes, welcome.received);
    return 0;
}

static int
take_opening(struct conn *conn, uint16_t type, const uint8_t *payload, size_t size)
{
    sl_arena_reset(&conn->links->arena);
    if (conn->state == CONN_CHALLENGED && type == SL_FRAME_HELLO) {
        return take_hello(conn, payload, size);
    } else if (conn->state == CONN_NEW && type == SL_FRAME_CHALLENGE) {
        return take_challenge(conn, payload, size);
    } else if (conn->state == CONN_HELLO_SENT && type == SL_FRAME_WELCOME) {
        return take_welcome(conn, payload, size);
    }
    return sl_err_set(SL_EPROTO, "frame of type %u while the connection is being opened", type);
}

/* Takes an opening message as soon as it is complete; the bytes behind it stay in data and size. */
static int
feed_opening(struct conn *conn, const uint8_t **data, size_t *size)
{
    struct sl_buf *held = &conn->held;
    uint32_t payload = 0;
    for (;;) {
        size_t wanted = SL_FRAME_HEADER_SIZE;
        uint32_t magic = SL_FRAME_MAGIC;
        uint16_t type = 0;
        if (held->size >= SL_FRAME_HEADER_SIZE) {
            memcpy(&payload, held->data, sizeof(payload));
            memcpy(&type, held->data + 4, sizeof(type));
            memcpy(&magic, held->data + 12, sizeof(magic));
            if (magic != SL_FRAME_MAGIC || payload == 0 || payload > SL_FRAME_HELLO_MAX) {
                return sl_err_set(SL_EPROTO, "this is no opening of a connection");
            }
            wanted += payload;
        }
        if (held->size == wanted && payload > 0) {
            int rc = take_opening(conn, type, held->data + SL_FRAME_HEADER_SIZE, payload);
            sl_buf_clear(held);
            return rc;
        }
        if (*size == 0) {
            return 0;
        }
        size_t piece = wanted - held->size < *size ? wanted - held->size : *size;
        sl_buf_append(held, *data, piece);
        *data += piece;
        *size -= piece;
    }
}

/* Takes bytes of frames; the connection is ready. */
static int
feed_frames(struct conn *conn, const uint8_t *data, size_t size)
{
    struct sl_data_link *links = conn->links;
    struct peer *peer = conn->peer;
    peer->heard_ms = sl_loop_now_ms(links->loop);
    if (!links->is_admitting) {
        sl_buf_append(&conn->held, data, size);
        return 0;
    }
    int rc = sl_remote_feed(links->options.remote, peer->container, data, size);
    if (rc == SL_EPROTO) {
        sl_remote_forget(links->options.remote, peer->container);
    }
    return rc;
}

/* The reason is in the thread's error record. */
static void
conn_reject(struct conn *conn, int rc)
{
    uint64_t suppressed;
    /* Peers may have the plan a little earlier or later than this side. */
    enum sl_log_level level = rc == SL_EFENCED ? SL_LOG_INFO : SL_LOG_WARN;
    if (sl_log_is_enabled("cluster.data", level) &&
        sl_log_limit_pass(&conn->links->closed_log, 1000, &suppressed)) {
        sl_log_write("cluster.data", level, "connection closed peer=%s reason=%s",
                     sl_stream_peer(conn->stream), sl_err_last()->msg);
    }
    conn_fail(conn);
}

static void
on_data(void *ctx, const uint8_t *data, size_t size)
{
    struct conn *conn = ctx;
    int rc = 0;
    while (rc == 0 && size > 0 && conn->state != CONN_READY && conn->state != CONN_DEAD) {
        rc = feed_opening(conn, &data, &size);
    }
    if (rc == 0 && size > 0 && conn->state == CONN_READY) {
        rc = feed_frames(conn, data, size);
    }
    if (rc != 0 && conn->state != CONN_DEAD) {
        conn_reject(conn, rc);
    }
    pump_and_poll(conn->links);
}

static void
on_drain(void *ctx)
{
    struct conn *conn = ctx;
    if (conn->state == CONN_READY) {
        pump_and_poll(conn->links);
    }
}

static const struct sl_stream_handler handler = {
    .on_data = on_data, .on_drain = on_drain, .on_close = on_close};
static const struct sl_stream_options stream_options = {.write_max_bytes = WRITE_MOST};

static struct conn *
conn_new(struct sl_data_link *self, enum conn_state state)
{
    struct conn *conn = sl_calloc(1, sizeof(*conn));
    conn->links = self;
    conn->state = state;
    sl_loop_entropy(self->loop, conn->nonce, sizeof(conn->nonce));
    sl_list_push_back(&self->conns, &conn->node);
    sl_timer_start(self->loop, &conn->timer, self->options.opening_ms, opening_timed_out, conn);
    return conn;
}

static void
on_accept(void *ctx, struct sl_stream *stream)
{
    struct sl_data_link *self = ctx;
    struct conn *conn = conn_new(self, CONN_CHALLENGED);
    conn->stream = stream;
    sl_stream_accept(stream, &stream_options, &handler, conn);
    struct sl_data_challenge challenge = {.version = SL_DATA_VERSION};
    memcpy(challenge.nonce, conn->nonce, sizeof(challenge.nonce));
    size_t start = opening_begin(conn, false);
    sl_data_encode_challenge(&challenge, &self->scratch);
    opening_send(conn, SL_FRAME_CHALLENGE, start, NULL, NULL);
}

static void
peer_dial(struct peer *peer)
{
    struct sl_data_link *links = peer->links;
    if (peer->conn != NULL || peer->container > links->options.container) {
        return;
    }
    struct conn *conn = conn_new(links, CONN_NEW);
    if (sl_stream_connect(links->loop, &peer->address, &stream_options, &handler, conn,
                          &conn->stream) != 0) {
        sl_timer_stop(&conn->timer);
        sl_list_remove(&conn->node);
        sl_free(conn);
        peer_retry(peer);
        return;
    }
    conn->peer = peer;
    peer->conn = conn;
}

/* ---- life ----------------------------------------------------------------------------------- */

struct sl_data_link *
sl_data_link_new(struct sl_loop *loop, const struct sl_data_link_options *options)
{
    struct sl_data_link *self = sl_calloc(1, sizeof(*self));
    self->loop = loop;
    self->options = *options;
    self->topology_id = sl_strdup("");
    if (options->secret_size > 0) {
        self->secret = sl_alloc(options->secret_size);
        memcpy(self->secret, options->secret, options->secret_size);
    }
    self->options.refresh_ms = options->refresh_ms != 0 ? options->refresh_ms : SL_DATA_REFRESH_MS;
    self->options.silence_ms = options->silence_ms != 0 ? options->silence_ms : SL_DATA_SILENCE_MS;
    self->options.opening_ms = options->opening_ms != 0 ? options->opening_ms : SL_DATA_OPENING_MS;
    self->is_paused = true;
    sl_list_create(&self->conns);
    sl_arena_create(&self->arena, 4096, 64 * 1024);
    *options->bell = (struct sl_data_bell){loop, self};
    sl_remote_set_wake(options->remote, wake, options->bell);
    /* What came before is taken in the first turn. */
    wake(options->bell);
    return self;
}

static void
peer_free(struct peer *peer)
{
    struct conn *conn = peer->conn;
    peer_detach(peer);
    if (conn != NULL) {
        conn_kill(conn);
    }
    sl_timer_stop(&peer->timer);
    sl_free(peer);
}

void
sl_data_link_free(struct sl_data_link *self)
{
    if (self == NULL) {
        return;
    }
    sl_remote_set_wake(self->options.remote, NULL, NULL);
    if (self->listener != NULL) {
        sl_listener_close(self->listener);
    }
    for (size_t i = 0; i < self->peers.count; i++) {
        peer_free(self->peers.items[i]);
    }
    sl_vec_destroy(&self->peers);
    while (!sl_list_is_empty(&self->conns)) {
        struct conn *conn = sl_container_of(self->conns.head.next, struct conn, node);
        sl_list_remove(&conn->node);
        conn->links = NULL;
        conn_kill(conn);
    }
    sl_timer_stop(&self->poll_timer);
    self->options.bell->links = NULL;
    sl_arena_destroy(&self->arena);
    sl_buf_destroy(&self->scratch);
    sl_free(self->topology_id);
    sl_free(self->secret);
    sl_free(self);
}

void
sl_data_link_set_topology(struct sl_data_link *self, const char *topology_id)
{
    if (strcmp(self->topology_id, topology_id) != 0) {
        sl_free(self->topology_id);
        self->topology_id = sl_strdup(topology_id);
    }
}

int
sl_data_link_listen(struct sl_data_link *self, const char *host, uint16_t port)
{
    static const struct sl_listener_handler listener_handler = {.on_accept = on_accept};
    struct sl_address address = {.kind = SL_ADDRESS_TCP, .port = port};
    if (strlen(host) >= sizeof(address.host)) {
        return sl_err_set(SL_EINVAL, "a host name of %zu bytes", strlen(host));
    }
    snprintf(address.host, sizeof(address.host), "%s", host);
    if (self->options.secret_size == 0 && !sl_address_is_loopback(&address)) {
        return sl_err_set(SL_EFENCED, "listening on %s needs a secret of the cluster", host);
    }
    return sl_listener_open(self->loop, &address, &listener_handler, self, &self->listener);
}

uint16_t
sl_data_link_port(const struct sl_data_link *self)
{
    return self->listener != NULL ? sl_listener_address(self->listener)->port : 0;
}

int
sl_data_link_peer(struct sl_data_link *self, int32_t container, const uint8_t *identity,
                  const char *host, uint16_t port)
{
    struct sl_address address = {.kind = SL_ADDRESS_TCP, .port = port};
    if (container == self->options.container) {
        return 0;
    }
    if (container < 0 || container > SL_REMOTE_PEER_MAX || port == 0 || host[0] == '\0' ||
        strlen(host) >= sizeof(address.host)) {
        return sl_err_set(SL_EINVAL, "container %d at port %u of '%s'", container, port, host);
    }
    snprintf(address.host, sizeof(address.host), "%s", host);
    struct peer *peer = find_peer(self, container);
    if (peer == NULL) {
        peer = sl_calloc(1, sizeof(*peer));
        peer->links = self;
        peer->container = container;
        sl_vec_push(&self->peers, peer);
    } else if (memcmp(peer->identity, identity, sizeof(peer->identity)) == 0 &&
               strcmp(peer->address.host, address.host) == 0 && peer->address.port == port) {
        /* Perhaps it knows us only now. */
        if (peer->conn == NULL) {
            peer->retry_ms = SL_DATA_RETRY_MS;
            peer_dial(peer);
        }
        return 0;
    }
    struct conn *conn = peer->conn;
    peer_detach(peer);
    if (conn != NULL) {
        conn_kill(conn);
    }
    memcpy(peer->identity, identity, sizeof(peer->identity));
    peer->address = address;
    peer->retry_ms = SL_DATA_RETRY_MS;
    peer_dial(peer);
    return 0;
}

void
sl_data_link_remove(struct sl_data_link *self, int32_t container)
{
    for (size_t i = 0; i < self->peers.count; i++) {
        if (self->peers.items[i]->container == container) {
            peer_free(self->peers.items[i]);
            sl_vec_remove(&self->peers, i);
            break;
        }
    }
    sl_remote_forget(self->options.remote, container);
    pump_and_poll(self);
}

void
sl_data_link_keep(struct sl_data_link *self, bool (*is_wanted)(void *ctx, int32_t container),
                  void *ctx)
{
    for (size_t i = self->peers.count; i > 0; i--) {
        int32_t container = self->peers.items[i - 1]->container;
        if (!is_wanted(ctx, container)) {
            sl_data_link_remove(self, container);
        }
    }
}

void
sl_data_link_admit(struct sl_data_link *self)
{
    if (self->is_admitting) {
        return;
    }
    self->is_admitting = true;
    for (size_t i = 0; i < self->peers.count; i++) {
        struct conn *conn = self->peers.items[i]->conn;
        if (is_ready(self->peers.items[i]) && conn->held.size > 0) {
            int rc = feed_frames(conn, conn->held.data, conn->held.size);
            sl_buf_destroy(&conn->held);
            if (rc != 0) {
                conn_reject(conn, rc);
            }
        }
    }
    pump_and_poll(self);
}

int32_t
sl_data_link_peers(const struct sl_data_link *self, int32_t *connected)
{
    *connected = 0;
    for (size_t i = 0; i < self->peers.count; i++) {
        *connected += is_ready(self->peers.items[i]);
    }
    return (int32_t)self->peers.count;
}
