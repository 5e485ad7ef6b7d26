#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "loop/uv_priv.h"

/* A resolution under way; it outlives the stream that asked when that is closed meanwhile. */
struct uv_resolve {
    uv_getaddrinfo_t request;
    struct uv_side_stream *stream;
};

static struct uv_side_stream *
stream_of(struct sl_stream *stream)
{
    return (struct uv_side_stream *)stream;
}

static size_t
queued(const struct uv_side_stream *stream)
{
    return stream->gathered.size + stream->sending.size;
}

size_t
sl__uv_queued(const struct sl_stream *base)
{
    return queued((const struct uv_side_stream *)base);
}

static void
release(struct uv_side_stream *stream)
{
    if (stream->is_dirty) {
        sl_list_remove(&stream->dirty_node);
    }
    sl__stream_closed(&stream->base);
    sl_buf_destroy(&stream->gathered);
    sl_buf_destroy(&stream->sending);
    sl_free(stream);
}

static void
handle_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void
close_without_handle(void *ctx)
{
    release(ctx);
}

void
sl__uv_stream_close(struct sl_stream *base)
{
    struct uv_side_stream *stream = stream_of(base);
    if (stream->resolve != NULL) {
        stream->resolve->stream = NULL;
        uv_cancel((uv_req_t *)&stream->resolve->request);
        stream->resolve = NULL;
    }
    if (stream->has_handle) {
        uv_close(&stream->uv.handle, handle_closed);
    } else {
        sl_loop_post(base->loop, close_without_handle, stream);
    }
}

static void
fail(struct uv_side_stream *stream, int status, const char *what)
{
    if (status != UV_EOF) {
        sl__uv_error(status, what, stream->base.peer);
    } else {
        sl_err_set(SL_ECLOSED, "%s closed the connection", stream->base.peer);
    }
    sl__stream_fail(&stream->base);
}

static void
give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct uv_side_stream *stream = handle->data;
    (void)suggested;
    *buffer = uv_buf_init(uv_side_of(stream->base.loop)->read_buffer, SL_STREAM_READ_MAX);
}

static void
data_read(uv_stream_t *uv, ssize_t count, const uv_buf_t *buffer)
{
    struct uv_side_stream *stream = uv->data;
    if (count < 0) {
        fail(stream, (int)count, "read from");
    } else if (count > 0 && stream->base.state == SL_STREAM_OPEN) {
        stream->base.handler->on_data(stream->base.ctx, (const uint8_t *)buffer->base,
                                      (size_t)count);
    }
}

static void
start_reading(struct uv_side_stream *stream)
{
    if (!stream->is_reading && !stream->base.is_paused) {
        stream->is_reading = true;
        uv_read_start(&stream->uv.stream, give_buffer, data_read);
    }
}

void
sl__uv_set_reading(struct sl_stream *base, bool is_reading)
{
    struct uv_side_stream *stream = stream_of(base);
    if (base->state != SL_STREAM_OPEN) {
        return;
    }
    if (is_reading) {
        start_reading(stream);
    } else if (stream->is_reading) {
        stream->is_reading = false;
        uv_read_stop(&stream->uv.stream);
    }
}

static void
shut(uv_shutdown_t *request, int status)
{
    struct uv_side_stream *stream = request->data;
    if (status != 0 && status != UV_ECANCELED) {
        sl_stream_close(&stream->base);
    }
}

/* The queue is empty in state FINISHING: says so to the peer and waits until it closes, since a
 * close with unread bytes would make the system drop what is still on its way. */
static void
finish_if_flushed(struct uv_side_stream *stream)
{
    if (stream->base.state == SL_STREAM_FINISHING && queued(stream) == 0 && !stream->is_shut) {
        stream->is_shut = true;
        stream->shutdown.data = stream;
        if (uv_shutdown(&stream->shutdown, &stream->uv.stream, shut) != 0) {
            sl_stream_close(&stream->base);
            return;
        }
        stream->base.is_paused = false;
        start_reading(stream);
    }
}

static void
written(uv_write_t *request, int status)
{
    struct uv_side_stream *stream = request->data;
    stream->is_sending = false;
    sl_buf_clear(&stream->sending);
    if (stream->base.state == SL_STREAM_CLOSING) {
        return;
    }
    if (status != 0) {
        fail(stream, status, "write to");
        return;
    }
    sl__uv_flush(&stream->base);
    sl__stream_drained(&stream->base);
}

void
sl__uv_flush(struct sl_stream *base)
{
    struct uv_side_stream *stream = stream_of(base);
    bool is_ready = base->state == SL_STREAM_OPEN || base->state == SL_STREAM_FINISHING;
    if (!is_ready || stream->is_sending) {
        return;
    }
    bool has_written = false;
    if (stream->gathered.size > 0) {
        uv_buf_t buffer =
            uv_buf_init((char *)stream->gathered.data, (unsigned)stream->gathered.size);
        int count = uv_try_write(&stream->uv.stream, &buffer, 1);
        if (count == (int)stream->gathered.size) {
            sl_buf_clear(&stream->gathered);
            has_written = true;
        } else if (count < 0 && count != UV_EAGAIN) {
            fail(stream, count, "write to");
            return;
        } else {
            /* The rest goes as a request; what is written meanwhile gathers in the other buffer. */
            struct sl_buf rest = stream->gathered;
            stream->gathered = stream->sending;
            stream->sending = rest;
            size_t done = count > 0 ? (size_t)count : 0;
            buffer = uv_buf_init((char *)stream->sending.data + done, (unsigned)(rest.size - done));
            stream->is_sending = true;
            stream->write.data = stream;
            int status = uv_write(&stream->write, &stream->uv.stream, &buffer, 1, written);
            if (status != 0) {
                stream->is_sending = false;
                fail(stream, status, "write to");
                return;
            }
        }
    }
    finish_if_flushed(stream);
    if (has_written) {
        sl__stream_drained(base);
    }
}

static void
make_dirty(struct uv_side_stream *stream)
{
    if (!stream->is_dirty) {
        stream->is_dirty = true;
        sl_list_push_back(&uv_side_of(stream->base.loop)->dirty, &stream->dirty_node);
    }
}

int
sl__uv_write(struct sl_stream *base, const void *data, size_t len)
{
    struct uv_side_stream *stream = stream_of(base);
    sl_buf_append(&stream->gathered, data, len);
    /* Sent before the loop waits again, never here: a failure then shows in a turn of its own, and
     * the writer is not closed under its own feet. */
    if (base->state == SL_STREAM_OPEN) {
        make_dirty(stream);
    }
    return 0;
}

void
sl__uv_stream_finish(struct sl_stream *base)
{
    make_dirty(stream_of(base));
}

/* Connected or accepted: small messages must not wait for acknowledgements. */
static void
set_no_delay(struct uv_side_stream *stream)
{
    if (stream->uv.handle.type == UV_TCP) {
        uv_tcp_nodelay(&stream->uv.tcp, 1);
        uv_tcp_keepalive(&stream->uv.tcp, 1, 60);
    }
}

static void
connected(uv_connect_t *request, int status)
{
    struct uv_side_stream *stream = request->data;
    if (stream->base.state == SL_STREAM_CLOSING) {
        return;
    }
    if (status != 0) {
        fail(stream, status, "connect to");
        return;
    }
    set_no_delay(stream);
    sl__stream_opened(&stream->base);
    if (stream->base.state == SL_STREAM_OPEN) {
        start_reading(stream);
        make_dirty(stream);
    }
}

static int
connect_ip(struct uv_side_stream *stream, const struct sockaddr *ip)
{
    uv_tcp_init(&uv_side_of(stream->base.loop)->uv, &stream->uv.tcp);
    stream->uv.handle.data = stream;
    stream->has_handle = true;
    stream->connect.data = stream;
    return uv_tcp_connect(&stream->connect, &stream->uv.tcp, ip, connected);
}

static void
resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    struct uv_resolve *resolve = request->data;
    struct uv_side_stream *stream = resolve->stream;
    sl_free(resolve);
    if (stream != NULL) {
        stream->resolve = NULL;
        if (status == 0) {
            status = connect_ip(stream, list->ai_addr);
        }
        if (status != 0) {
            fail(stream, status, "connect to");
        }
    }
    uv_freeaddrinfo(list);
}

static int
resolve_host(struct uv_side_stream *stream, const struct sl_address *address)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char port[8];
    snprintf(port, sizeof(port), "%u", address->port);
    struct uv_resolve *resolve = sl_calloc(1, sizeof(*resolve));
    resolve->request.data = resolve;
    resolve->stream = stream;
    int status = uv_getaddrinfo(&uv_side_of(stream->base.loop)->uv, &resolve->request, resolved,
                                address->host, port, &hints);
    if (status != 0) {
        sl_free(resolve);
        return status;
    }
    stream->resolve = resolve;
    return 0;
}

/* The IP address of a literal or of "localhost". */
static bool
literal_ip(const struct sl_address *address, struct sockaddr_storage *ip)
{
    const char *host = strcasecmp(address->host, "localhost") == 0 ? "127.0.0.1" : address->host;
    return uv_ip4_addr(host, address->port, (struct sockaddr_in *)ip) == 0 ||
           uv_ip6_addr(host, address->port, (struct sockaddr_in6 *)ip) == 0;
}

int
sl__uv_connect(struct sl_loop *loop, const struct sl_address *address, struct sl_stream **out)
{
    struct uv_side_stream *stream = sl_calloc(1, sizeof(*stream));
    struct sockaddr_storage ip;
    int status = 0;
    sl__stream_create(&stream->base, loop, SL_STREAM_CONNECTING);
    if (address->kind == SL_ADDRESS_UNIX) {
        uv_pipe_init(&uv_side_of(loop)->uv, &stream->uv.pipe, 0);
        stream->uv.handle.data = stream;
        stream->has_handle = true;
        stream->connect.data = stream;
        uv_pipe_connect(&stream->connect, &stream->uv.pipe, address->host, connected);
    } else if (literal_ip(address, &ip)) {
        status = connect_ip(stream, (const struct sockaddr *)&ip);
    } else {
        status = resolve_host(stream, address);
    }
    if (status != 0) {
        /* Like every other failure it shows as on_close. */
        sl__uv_error(status, "connect to", address->host);
        sl__stream_fail(&stream->base);
    }
    *out = &stream->base;
    return 0;
}

void
sl__uv_accept(struct sl_stream *base)
{
    start_reading(stream_of(base));
}

static struct uv_side_listener *
listener_of(struct sl_listener *listener)
{
    return (struct uv_side_listener *)listener;
}

static void
describe_peer(struct uv_side_stream *stream)
{
    struct sockaddr_storage ip;
    int len = sizeof(ip);
    struct sl_address address = {.kind = SL_ADDRESS_UNIX};
    if (stream->uv.handle.type == UV_TCP &&
        uv_tcp_getpeername(&stream->uv.tcp, (struct sockaddr *)&ip, &len) == 0) {
        address.kind = SL_ADDRESS_TCP;
        uv_ip_name((struct sockaddr *)&ip, address.host, sizeof(address.host));
        address.port = ntohs(((struct sockaddr_in *)&ip)->sin_port);
    }
    sl_address_format(&address, stream->base.peer, sizeof(stream->base.peer));
}

static void
connection_waits(uv_stream_t *uv, int status)
{
    struct uv_side_listener *listener = uv->data;
    if (status != 0) {
        return;
    }
    struct uv_side_stream *stream = sl_calloc(1, sizeof(*stream));
    struct sl_loop *loop = listener->base.loop;
    if (uv->type == UV_TCP) {
        uv_tcp_init(&uv_side_of(loop)->uv, &stream->uv.tcp);
    } else {
        uv_pipe_init(&uv_side_of(loop)->uv, &stream->uv.pipe, 0);
    }
    stream->uv.handle.data = stream;
    stream->has_handle = true;
    sl__stream_create(&stream->base, loop, SL_STREAM_OPEN);
    if (uv_accept(uv, &stream->uv.stream) != 0) {
        sl_stream_close(&stream->base);
        return;
    }
    set_no_delay(stream);
    describe_peer(stream);
    listener->base.handler->on_accept(listener->base.ctx, &stream->base);
    sl_assert(stream->base.handler != NULL || stream->base.state == SL_STREAM_CLOSING);
}

/* True when a socket file is left over from a process that is gone. */
static bool
is_stale_socket(const char *path)
{
    struct stat info;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (lstat(path, &info) != 0 || !S_ISSOCK(info.st_mode)) {
        return false;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return false;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int rc = connect(fd, (const struct sockaddr *)&address, sizeof(address));
    bool is_refused = rc != 0 && errno == ECONNREFUSED;
    close(fd);
    return is_refused;
}

static int
bind_unix(struct uv_side_listener *listener, const char *path)
{
    /* No moment in which others could connect. */
    mode_t mask = umask(0177);
    int status = uv_pipe_bind(&listener->uv.pipe, path);
    if (status == UV_EADDRINUSE && is_stale_socket(path) && unlink(path) == 0) {
        status = uv_pipe_bind(&listener->uv.pipe, path);
    }
    umask(mask);
    return status;
}

static int
bind_tcp(struct sl_loop *loop, struct uv_side_listener *listener, const struct sl_address *address)
{
    struct sockaddr_storage ip;
    if (!literal_ip(address, &ip)) {
        struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
        char port[8];
        snprintf(port, sizeof(port), "%u", address->port);
        uv_getaddrinfo_t request;
        int status =
            uv_getaddrinfo(&uv_side_of(loop)->uv, &request, NULL, address->host, port, &hints);
        if (status != 0) {
            return status;
        }
        memcpy(&ip, request.addrinfo->ai_addr, request.addrinfo->ai_addrlen);
        uv_freeaddrinfo(request.addrinfo);
    }
    return uv_tcp_bind(&listener->uv.tcp, (const struct sockaddr *)&ip, 0);
}

static void
listener_closed(uv_handle_t *handle)
{
    sl_free(handle->data);
}

int
sl__uv_listen(struct sl_loop *loop, const struct sl_address *address, struct sl_listener **out)
{
    enum { BACKLOG = 1024 };
    struct uv_side_listener *listener = sl_calloc(1, sizeof(*listener));
    int status;
    listener->base.loop = loop;
    listener->base.address = *address;
    if (address->kind == SL_ADDRESS_UNIX) {
        uv_pipe_init(&uv_side_of(loop)->uv, &listener->uv.pipe, 0);
        listener->uv.handle.data = listener;
        status = bind_unix(listener, address->host);
    } else {
        uv_tcp_init(&uv_side_of(loop)->uv, &listener->uv.tcp);
        listener->uv.handle.data = listener;
        status = bind_tcp(loop, listener, address);
    }
    if (status == 0) {
        status = uv_listen(&listener->uv.stream, BACKLOG, connection_waits);
    }
    if (status != 0) {
        char text[SL_ADDRESS_TEXT_SIZE];
        uv_close(&listener->uv.handle, listener_closed);
        return sl__uv_error(status, "listen on", sl_address_format(address, text, sizeof(text)));
    }
    if (address->kind == SL_ADDRESS_TCP) {
        struct sockaddr_storage ip;
        int len = sizeof(ip);
        uv_tcp_getsockname(&listener->uv.tcp, (struct sockaddr *)&ip, &len);
        listener->base.address.port = ntohs(((struct sockaddr_in *)&ip)->sin_port);
    }
    *out = &listener->base;
    return 0;
}

void
sl__uv_listener_close(struct sl_listener *base)
{
    /* libuv removes the file of a Unix socket. */
    uv_close(&listener_of(base)->uv.handle, listener_closed);
}
