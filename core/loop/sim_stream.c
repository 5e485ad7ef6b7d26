#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/hash.h"
#include "loop/sim_priv.h"

struct sim_stream *
sl__sim_stream(const struct sl_sim *sim, uint64_t id)
{
    return sl_map_u64_get_ptr(&sim->streams, id);
}

static struct sim_stream *
stream_new(struct sim_loop *loop, enum sl_stream_state state)
{
    struct sim_stream *stream = sl_calloc(1, sizeof(*stream));
    stream->id = loop->sim->next_stream_id++;
    stream->inbound_tail = &stream->inbound;
    memcpy(stream->host, loop->host, sizeof(stream->host));
    sl__stream_create(&stream->base, &loop->loop, state);
    sl_map_u64_put_ptr(&loop->sim->streams, stream->id, stream);
    return stream;
}

static struct sl_sim *
sim_of(const struct sim_stream *stream)
{
    return sim_loop_of(stream->base.loop)->sim;
}

static struct sim_event *
schedule(struct sim_stream *stream, enum sim_event_kind kind, uint64_t at_ns)
{
    struct sim_event *event = sl__sim_schedule(sim_loop_of(stream->base.loop), kind, at_ns);
    event->stream_id = stream->id;
    return event;
}

/* Puts bytes, or with len 0 the end, on the way to a stream. */
static void
send_to(struct sim_stream *to, const void *data, size_t len)
{
    struct sl_sim *sim = sim_of(to);
    if (sim_loop_of(to->base.loop)->is_crashed) {
        return;
    }
    struct sim_chunk *chunk = sl_alloc(sizeof(*chunk) + len);
    chunk->next = NULL;
    chunk->len = len;
    if (len > 0) {
        memcpy(chunk->data, data, len);
    }
    *to->inbound_tail = chunk;
    to->inbound_tail = &chunk->next;
    uint64_t at_ns = sim->now_ns + sl__sim_latency_ns(sim);
    if (at_ns < to->last_arrival_ns) {
        at_ns = to->last_arrival_ns;
    }
    to->last_arrival_ns = at_ns;
    schedule(to, SIM_ARRIVAL, at_ns);
}

static void
send_end(struct sim_stream *stream)
{
    struct sim_stream *other = sl__sim_stream(sim_of(stream), stream->other_id);
    if (!stream->is_end_sent && other != NULL) {
        stream->is_end_sent = true;
        send_to(other, NULL, 0);
    }
}

static void
target_key(const struct sim_loop *loop, const struct sl_address *address, char *key, size_t size,
           char *host)
{
    bool is_own = address->kind == SL_ADDRESS_UNIX || strcmp(address->host, "0.0.0.0") == 0 ||
                  strcmp(address->host, "::") == 0 || strcasecmp(address->host, "localhost") == 0;
    snprintf(host, SL_ADDRESS_HOST_SIZE, "%s", is_own ? loop->host : address->host);
    if (address->kind == SL_ADDRESS_UNIX) {
        snprintf(key, size, "%s unix:%s", host, address->host);
    } else {
        snprintf(key, size, "%s:%u", host, address->port);
    }
}

int
sl__sim_connect(struct sl_loop *base, const struct sl_address *address, struct sl_stream **out)
{
    struct sim_loop *loop = sim_loop_of(base);
    struct sim_stream *stream = stream_new(loop, SL_STREAM_CONNECTING);
    target_key(loop, address, stream->target, sizeof(stream->target), stream->other_host);
    if (!loop->is_crashed) {
        schedule(stream, SIM_CONNECT, loop->sim->now_ns + sl__sim_latency_ns(loop->sim));
    }
    *out = &stream->base;
    return 0;
}

void
sl__sim_accept(struct sl_stream *stream)
{
    /* Arrivals find the handler. */
    (void)stream;
}

size_t
sl__sim_queued(const struct sl_stream *base)
{
    const struct sim_stream *stream = (const struct sim_stream *)base;
    return stream->queued + stream->early.size;
}

int
sl__sim_write(struct sl_stream *base, const void *data, size_t len)
{
    struct sim_stream *stream = sim_stream_of(base);
    if (base->state == SL_STREAM_CONNECTING) {
        sl_buf_append(&stream->early, data, len);
        return 0;
    }
    struct sim_stream *other = sl__sim_stream(sim_of(stream), stream->other_id);
    if (other != NULL && len > 0 && !sim_loop_of(base->loop)->is_crashed) {
        stream->queued += len;
        send_to(other, data, len);
    }
    return 0;
}

static void
deliver(struct sim_stream *stream, const uint8_t *data, size_t len)
{
    struct sl_sim *sim = sim_of(stream);
    uint64_t id = stream->id;
    while (len > 0) {
        size_t part = len > SL_STREAM_READ_MAX ? SL_STREAM_READ_MAX : len;
        if (sim->options.is_splitting_reads && part > 1) {
            part = 1 + (size_t)sl_random_below(&sim->random, part);
        }
        stream = sl__sim_stream(sim, id);
        if (stream == NULL || stream->base.state != SL_STREAM_OPEN) {
            return;
        }
        if (stream->base.is_paused) {
            sl_buf_append(&stream->held, data, len);
            return;
        }
        stream->base.handler->on_data(stream->base.ctx, data, part);
        data += part;
        len -= part;
    }
}

static void
deliver_end(struct sim_stream *stream)
{
    if (stream->base.is_paused && stream->base.state == SL_STREAM_OPEN) {
        stream->has_held_end = true;
        return;
    }
    sl_err_clear();
    sl__stream_fail(&stream->base);
}

static void
arrive(struct sim_stream *stream)
{
    struct sl_sim *sim = sim_of(stream);
    struct sim_chunk *chunk = stream->inbound;
    if (chunk == NULL) {
        return;
    }
    stream->inbound = chunk->next;
    if (stream->inbound == NULL) {
        stream->inbound_tail = &stream->inbound;
    }
    struct sim_stream *other = sl__sim_stream(sim, stream->other_id);
    if (other != NULL) {
        other->queued -= chunk->len;
        if (other->base.is_starved) {
            schedule(other, SIM_DRAINED, sim->now_ns);
        }
    }
    sl__sim_trace(sim, stream->id, sl_hash_bytes(chunk->data, chunk->len));
    if (chunk->len == 0) {
        deliver_end(stream);
    } else {
        deliver(stream, chunk->data, chunk->len);
    }
    sl_free(chunk);
}

static void
resume_held(struct sim_stream *stream)
{
    uint64_t id = stream->id;
    struct sl_sim *sim = sim_of(stream);
    struct sl_buf held = stream->held;
    sl_buf_create(&stream->held);
    deliver(stream, held.data, held.size);
    sl_buf_destroy(&held);
    stream = sl__sim_stream(sim, id);
    if (stream != NULL && stream->has_held_end && !stream->base.is_paused) {
        stream->has_held_end = false;
        deliver_end(stream);
    }
}

void
sl__sim_set_reading(struct sl_stream *base, bool is_reading)
{
    struct sim_stream *stream = sim_stream_of(base);
    if (is_reading && (stream->held.size > 0 || stream->has_held_end) &&
        !sim_loop_of(base->loop)->is_crashed) {
        schedule(stream, SIM_RESUMED, sim_of(stream)->now_ns);
    }
}

void
sl__sim_stream_close(struct sl_stream *base)
{
    struct sim_stream *stream = sim_stream_of(base);
    if (!sim_loop_of(base->loop)->is_crashed) {
        send_end(stream);
        schedule(stream, SIM_CLOSED, sim_of(stream)->now_ns);
    }
}

void
sl__sim_stream_finish(struct sl_stream *base)
{
    send_end(sim_stream_of(base));
}

static void
closed(struct sim_stream *stream)
{
    struct sl_sim *sim = sim_of(stream);
    sl_map_u64_remove(&sim->streams, stream->id, NULL);
    sl__stream_closed(&stream->base);
    for (struct sim_chunk *chunk = stream->inbound; chunk != NULL;) {
        struct sim_chunk *next = chunk->next;
        sl_free(chunk);
        chunk = next;
    }
    sl_buf_destroy(&stream->early);
    sl_buf_destroy(&stream->held);
    sl_free(stream);
}

/* An attempt reaches the other host; its kernel answers, whatever its process does. */
static void
knock(struct sl_sim *sim, struct sim_stream *stream)
{
    struct sim_listener *listener = sl_map_bytes_get_str(&sim->listeners, stream->target);
    uint64_t back_ns = sim->now_ns + sl__sim_latency_ns(sim);
    if (stream->base.state != SL_STREAM_CONNECTING) {
        return;
    }
    if (listener == NULL) {
        schedule(stream, SIM_REFUSED, back_ns);
        return;
    }
    struct sim_stream *accepted = stream_new(listener->owner, SL_STREAM_OPEN);
    memcpy(accepted->other_host, stream->host, sizeof(accepted->other_host));
    memcpy(accepted->target, stream->target, sizeof(accepted->target));
    accepted->other_id = stream->id;
    stream->other_id = accepted->id;
    snprintf(accepted->base.peer, sizeof(accepted->base.peer), "%.200s:%u", stream->host,
             (unsigned)(50000 + stream->id % 10000));
    schedule(accepted, SIM_ACCEPT, sim->now_ns);
    schedule(stream, SIM_CONNECTED, back_ns);
    stream->last_arrival_ns = back_ns;
}

static void
accept_connection(struct sl_sim *sim, struct sim_stream *stream)
{
    struct sim_listener *listener = sl_map_bytes_get_str(&sim->listeners, stream->target);
    if (stream->base.state != SL_STREAM_OPEN) {
        return;
    }
    if (listener == NULL || &listener->owner->loop != stream->base.loop) {
        sl_stream_close(&stream->base);
        return;
    }
    listener->base.handler->on_accept(listener->base.ctx, &stream->base);
    sl_assert(stream->base.handler != NULL || stream->base.state == SL_STREAM_CLOSING);
}

static void
connected(struct sim_stream *stream)
{
    struct sim_stream *other = sl__sim_stream(sim_of(stream), stream->other_id);
    if (stream->base.state != SL_STREAM_CONNECTING) {
        return;
    }
    /* What was written before goes before what on_open writes. */
    if (other != NULL && stream->early.size > 0) {
        stream->queued += stream->early.size;
        send_to(other, stream->early.data, stream->early.size);
    }
    sl_buf_destroy(&stream->early);
    sl__stream_opened(&stream->base);
}

static void
refused(struct sim_stream *stream)
{
    if (stream->base.state == SL_STREAM_CONNECTING) {
        sl_err_set(SL_EUNAVAIL, "connect to %s: connection refused", stream->base.peer);
        sl__stream_fail(&stream->base);
    }
}

void
sl__sim_stream_event(struct sl_sim *sim, struct sim_event *event)
{
    struct sim_stream *stream = sl__sim_stream(sim, event->stream_id);
    if (stream == NULL) {
        return;
    }
    switch (event->kind) {
    case SIM_ARRIVAL:
        if (stream->base.state == SL_STREAM_CONNECTING) {
            /* A healed link may let it overtake the answer that it has to follow. */
            schedule(stream, SIM_ARRIVAL, sim->now_ns + 1000);
        } else {
            arrive(stream);
        }
        break;
    case SIM_CONNECT:
        knock(sim, stream);
        break;
    case SIM_ACCEPT:
        accept_connection(sim, stream);
        break;
    case SIM_CONNECTED:
        connected(stream);
        break;
    case SIM_REFUSED:
        refused(stream);
        break;
    case SIM_CLOSED:
        closed(stream);
        break;
    case SIM_RESUMED:
        resume_held(stream);
        break;
    case SIM_DRAINED:
        sl__stream_drained(&stream->base);
        break;
    default:
        sl_unreachable();
    }
}

bool
sl__sim_event_is_stalled(struct sl_sim *sim, const struct sim_event *event)
{
    const struct sim_stream *stream =
        event->stream_id != 0 ? sl__sim_stream(sim, event->stream_id) : NULL;
    if (stream == NULL || sim->cuts.count == 0) {
        return false;
    }
    switch (event->kind) {
    case SIM_CONNECT:
        return sl__sim_is_cut(sim, stream->host, stream->other_host);
    case SIM_ARRIVAL:
    case SIM_CONNECTED:
    case SIM_REFUSED:
        return sl__sim_is_cut(sim, stream->other_host, stream->host);
    default:
        return false;
    }
}

void
sl__sim_streams_crash(struct sim_loop *loop, bool is_silent)
{
    sl_list_each(&loop->loop.streams, it)
    {
        struct sim_stream *stream = sl_container_of(it, struct sim_stream, base.node);
        if (!is_silent) {
            send_end(stream);
        }
        stream->is_end_sent = true;
    }
    sl_list_each(&loop->loop.listeners, it)
    {
        struct sim_listener *listener = sl_container_of(it, struct sim_listener, base.node);
        sl_map_bytes_remove_str(&loop->sim->listeners, listener->key);
    }
}

void
sl_sim_reset(struct sl_sim *sim, const char *one, const char *other)
{
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&sim->streams, &at)) != NULL;) {
        struct sim_stream *stream = (struct sim_stream *)(uintptr_t)entry->value;
        bool is_between =
            (strcmp(stream->host, one) == 0 && strcmp(stream->other_host, other) == 0) ||
            (strcmp(stream->host, other) == 0 && strcmp(stream->other_host, one) == 0);
        if (!is_between || stream->base.state != SL_STREAM_OPEN ||
            sim_loop_of(stream->base.loop)->is_crashed) {
            continue;
        }
        /* What is under way is lost; the end takes its place. */
        struct sim_stream *peer = sl__sim_stream(sim, stream->other_id);
        for (struct sim_chunk *chunk = stream->inbound; chunk != NULL;) {
            struct sim_chunk *next = chunk->next;
            if (peer != NULL) {
                peer->queued -= chunk->len;
            }
            sl_free(chunk);
            chunk = next;
        }
        stream->inbound = NULL;
        stream->inbound_tail = &stream->inbound;
        send_to(stream, NULL, 0);
    }
}

int
sl__sim_listen(struct sl_loop *base, const struct sl_address *address, struct sl_listener **out)
{
    struct sim_loop *loop = sim_loop_of(base);
    struct sim_listener *listener = sl_calloc(1, sizeof(*listener));
    char host[SL_ADDRESS_HOST_SIZE];
    listener->base.loop = base;
    listener->base.address = *address;
    listener->owner = loop;
    do {
        if (address->kind == SL_ADDRESS_TCP && address->port == 0) {
            listener->base.address.port = loop->sim->next_port++;
        }
        target_key(loop, &listener->base.address, listener->key, sizeof(listener->key), host);
    } while (address->port == 0 && address->kind == SL_ADDRESS_TCP &&
             sl_map_bytes_get_str(&loop->sim->listeners, listener->key) != NULL);
    if (sl_map_bytes_get_str(&loop->sim->listeners, listener->key) != NULL) {
        char text[SL_ADDRESS_TEXT_SIZE];
        sl_free(listener);
        return sl_err_set(SL_EEXIST, "listen on %s: address already in use",
                          sl_address_format(address, text, sizeof(text)));
    }
    sl_map_bytes_put_str(&loop->sim->listeners, listener->key, listener);
    *out = &listener->base;
    return 0;
}

void
sl__sim_listener_close(struct sl_listener *base)
{
    struct sim_listener *listener = (struct sim_listener *)base;
    struct sl_sim *sim = listener->owner->sim;
    /* After a crash another node may listen there. */
    if (sl_map_bytes_get_str(&sim->listeners, listener->key) == listener) {
        sl_map_bytes_remove_str(&sim->listeners, listener->key);
    }
    sl_free(listener);
}
