#include "loop/stream.h"

#include <string.h>

#include "base/assert.h"
#include "loop/loop_priv.h"

void
sl__stream_create(struct sl_stream *stream, struct sl_loop *loop, enum sl_stream_state state)
{
    stream->loop = loop;
    stream->state = state;
    stream->write_max_bytes = SL_STREAM_WRITE_MAX;
    stream->connect_timeout_ms = SL_STREAM_CONNECT_MS;
    sl_list_push_back(&loop->streams, &stream->node);
}

static void
apply_options(struct sl_stream *stream, const struct sl_stream_options *options,
              const struct sl_stream_handler *handler, void *ctx)
{
    stream->handler = handler;
    stream->ctx = ctx;
    if (options != NULL && options->write_max_bytes != 0) {
        stream->write_max_bytes = options->write_max_bytes;
    }
    if (options != NULL && options->connect_timeout_ms != 0) {
        stream->connect_timeout_ms = options->connect_timeout_ms;
    }
}

static void
connect_timed_out(void *ctx, uint64_t ticket)
{
    struct sl_stream *stream = ctx;
    (void)ticket;
    sl_err_set(SL_ETIMEOUT, "connect to %s: no answer in %llu ms", stream->peer,
               (unsigned long long)stream->connect_timeout_ms);
    sl__stream_fail(stream);
}

int
sl_stream_connect(struct sl_loop *loop, const struct sl_address *address,
                  const struct sl_stream_options *options, const struct sl_stream_handler *handler,
                  void *ctx, struct sl_stream **stream)
{
    sl_debug_assert(sl_loop_is_owner(loop));
    if (address->kind == SL_ADDRESS_TCP && address->port == 0) {
        return sl_err_set(SL_EINVAL, "nothing can connect to port 0 of %s", address->host);
    }
    int rc = loop->ops->connect(loop, address, stream);
    if (rc != 0) {
        return rc;
    }
    apply_options(*stream, options, handler, ctx);
    sl_address_format(address, (*stream)->peer, sizeof((*stream)->peer));
    sl_timer_start(loop, &(*stream)->timer, (*stream)->connect_timeout_ms, connect_timed_out,
                   *stream);
    return 0;
}

void
sl_stream_accept(struct sl_stream *stream, const struct sl_stream_options *options,
                 const struct sl_stream_handler *handler, void *ctx)
{
    sl_assert(stream->handler == NULL);
    apply_options(stream, options, handler, ctx);
    stream->loop->ops->accept(stream);
}

int
sl_stream_write(struct sl_stream *stream, const void *data, size_t len)
{
    if (stream->state > SL_STREAM_OPEN) {
        return sl_err_set(SL_ECLOSED, "stream to %s is closed", stream->peer);
    }
    size_t queued = stream->loop->ops->queued(stream);
    if (len > stream->write_max_bytes || queued > stream->write_max_bytes - len) {
        stream->is_starved = true;
        return sl_err_set(SL_ELIMIT, "%zu bytes wait to be sent to %s; the limit is %zu", queued,
                          stream->peer, stream->write_max_bytes);
    }
    return stream->loop->ops->write(stream, data, len);
}

size_t
sl_stream_queued_bytes(const struct sl_stream *stream)
{
    return stream->loop->ops->queued(stream);
}

void
sl_stream_pause(struct sl_stream *stream)
{
    if (!stream->is_paused) {
        stream->is_paused = true;
        stream->loop->ops->set_reading(stream, false);
    }
}

void
sl_stream_resume(struct sl_stream *stream)
{
    if (stream->is_paused) {
        stream->is_paused = false;
        stream->loop->ops->set_reading(stream, true);
    }
}

void
sl_stream_close(struct sl_stream *stream)
{
    if (stream->state == SL_STREAM_CLOSING) {
        return;
    }
    memset(&stream->why, 0, sizeof(stream->why));
    stream->state = SL_STREAM_CLOSING;
    sl_timer_stop(&stream->timer);
    stream->loop->ops->stream_close(stream);
}

static void
linger_ended(void *ctx, uint64_t ticket)
{
    (void)ticket;
    sl_stream_close(ctx);
}

void
sl_stream_finish(struct sl_stream *stream)
{
    if (stream->state != SL_STREAM_OPEN) {
        sl_stream_close(stream);
        return;
    }
    stream->state = SL_STREAM_FINISHING;
    sl_timer_start(stream->loop, &stream->timer, SL_STREAM_LINGER_MS, linger_ended, stream);
    stream->loop->ops->stream_finish(stream);
}

void
sl__stream_fail(struct sl_stream *stream)
{
    if (stream->state == SL_STREAM_CLOSING) {
        sl_err_clear();
        return;
    }
    if (stream->state == SL_STREAM_FINISHING) {
        /* Our side wanted the end, so its reason is ours. */
        sl_err_clear();
        sl_stream_close(stream);
        return;
    }
    if (sl_err_last()->code == 0) {
        sl_err_set(SL_ECLOSED, "%s closed the connection", stream->peer);
    }
    struct sl_err why;
    sl_err_move(&why);
    sl_stream_close(stream);
    stream->why = why;
}

void
sl__stream_opened(struct sl_stream *stream)
{
    sl_assert_eq(stream->state, SL_STREAM_CONNECTING);
    stream->state = SL_STREAM_OPEN;
    sl_timer_stop(&stream->timer);
    if (stream->handler->on_open != NULL) {
        stream->handler->on_open(stream->ctx);
    }
}

void
sl__stream_drained(struct sl_stream *stream)
{
    if (stream->is_starved && stream->state == SL_STREAM_OPEN &&
        stream->loop->ops->queued(stream) < stream->write_max_bytes / 2) {
        stream->is_starved = false;
        if (stream->handler->on_drain != NULL) {
            stream->handler->on_drain(stream->ctx);
        }
    }
}

void
sl__stream_closed(struct sl_stream *stream)
{
    sl_timer_stop(&stream->timer);
    sl_list_remove(&stream->node);
    /* A stream that was refused in on_accept has no handler. */
    if (stream->handler != NULL) {
        stream->handler->on_close(stream->ctx, &stream->why);
    }
}

const char *
sl_stream_peer(const struct sl_stream *stream)
{
    return stream->peer;
}

int
sl_listener_open(struct sl_loop *loop, const struct sl_address *address,
                 const struct sl_listener_handler *handler, void *ctx,
                 struct sl_listener **listener)
{
    sl_debug_assert(sl_loop_is_owner(loop));
    int rc = loop->ops->listen(loop, address, listener);
    if (rc != 0) {
        return rc;
    }
    (*listener)->handler = handler;
    (*listener)->ctx = ctx;
    sl_list_push_back(&loop->listeners, &(*listener)->node);
    return 0;
}

const struct sl_address *
sl_listener_address(const struct sl_listener *listener)
{
    return &listener->address;
}

void
sl_listener_close(struct sl_listener *listener)
{
    if (listener == NULL) {
        return;
    }
    sl_list_remove(&listener->node);
    listener->loop->ops->listener_close(listener);
}
