#pragma once
/*
 * Byte streams (TCP, Unix sockets) and listeners of a loop.
 *
 * A stream is freed by the loop right after its on_close, which comes exactly once for every
 * stream, however it ends: a connection that can not be made has on_close without on_open. Writes
 * are gathered and handed to the system at the end of the turn, so many small messages of a turn
 * are one system call.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "loop/address.h"
#include "loop/loop.h"

struct sl_stream;
struct sl_listener;

enum {
    /* Most bytes that one on_data gets. */
    SL_STREAM_READ_MAX = 64 * 1024,
    /* Most bytes that wait to be sent, unless the options say otherwise. */
    SL_STREAM_WRITE_MAX = 32 * 1024 * 1024,
    /* How long a connection attempt may take, unless the options say otherwise. */
    SL_STREAM_CONNECT_MS = 10000,
    /* How long sl_stream_finish waits for the peer to read and close. */
    SL_STREAM_LINGER_MS = 2000,
};

struct sl_stream_handler {
    /* The connection stands; only for streams that were made by sl_stream_connect. May be NULL. */
    void (*on_open)(void *ctx);
    /* Some bytes, 1..SL_STREAM_READ_MAX; borrowed for the call. */
    void (*on_data)(void *ctx, const uint8_t *data, size_t len);
    /* Less than half of the write limit waits again, after a write was refused. May be NULL. */
    void (*on_drain)(void *ctx);
    /*
     * The end. why->code is 0 after sl_stream_close, SL_ECLOSED when the peer closed, SL_ETIMEOUT,
     * SL_EUNAVAIL (could not connect), SL_EIO, or SL_ECANCELED (the loop is freed). The stream is
     * gone when this returns.
     */
    void (*on_close)(void *ctx, const struct sl_err *why);
};

struct sl_stream_options {
    /* 0 picks the default of the enum above. */
    size_t write_max_bytes;
    uint64_t connect_timeout_ms;
};

/*
 * Starts to connect; options may be NULL. Host names are resolved without blocking the loop. What
 * goes wrong later comes as on_close.
 */
int sl_stream_connect(struct sl_loop *loop, const struct sl_address *address,
                      const struct sl_stream_options *options,
                      const struct sl_stream_handler *handler, void *ctx,
                      struct sl_stream **stream);

/* Gives an accepted stream its callbacks and starts reading. Must be called in on_accept. */
void sl_stream_accept(struct sl_stream *stream, const struct sl_stream_options *options,
                      const struct sl_stream_handler *handler, void *ctx);

/*
 * Copies the bytes into the queue of the stream. SL_ELIMIT when the queue is full (nothing is taken
 * then; on_drain tells when there is room), SL_ECLOSED after a close. Allowed before on_open.
 */
int sl_stream_write(struct sl_stream *stream, const void *data, size_t len);

/* Bytes that were written and not yet handed to the system. */
size_t sl_stream_queued_bytes(const struct sl_stream *stream);

/* Stops and resumes the calls of on_data: the peer feels back pressure. */
void sl_stream_pause(struct sl_stream *stream);
void sl_stream_resume(struct sl_stream *stream);

/* Closes at once; what is queued is dropped. No callback but on_close comes after. Again: nothing.
 */
void sl_stream_close(struct sl_stream *stream);

/* Sends what is queued, then closes: for a last word to the peer. on_data is not called any more.
 */
void sl_stream_finish(struct sl_stream *stream);

/* The peer as text ("127.0.0.1:40312", "unix:"); lives as long as the stream. */
const char *sl_stream_peer(const struct sl_stream *stream);

struct sl_listener_handler {
    /* A new connection. Call sl_stream_accept, or sl_stream_close to refuse it. */
    void (*on_accept)(void *ctx, struct sl_stream *stream);
};

/*
 * Binds and listens. A Unix socket gets mode 0600, and a socket file that nobody listens on is
 * replaced. SL_EEXIST when the address is in use, SL_EIO for anything else. The listener is freed
 * by sl_listener_close.
 */
int sl_listener_open(struct sl_loop *loop, const struct sl_address *address,
                     const struct sl_listener_handler *handler, void *ctx,
                     struct sl_listener **listener);

/* The address with the port that the system chose. */
const struct sl_address *sl_listener_address(const struct sl_listener *listener);

/* Stops listening at once; streams that were accepted stay. Removes the file of a Unix socket. */
void sl_listener_close(struct sl_listener *listener);
