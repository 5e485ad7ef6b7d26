#pragma once
/* The real loop on libuv: what its files share. */

#include <uv.h>

#include "base/buf.h"
#include "base/vec.h"
#include "loop/loop_priv.h"

struct uv_post {
    sl_loop_fn fn;
    void *ctx;
};

struct uv_post_list SL_VEC_BODY(struct uv_post);

struct uv_side {
    struct sl_loop loop;
    uv_loop_t uv;
    /* Fires for the earliest of loop.timers. */
    uv_timer_t timer;
    /* When it fires, 0 when it is not set. It may be earlier than the first timer: stopping the
     * first one, as every call that is answered does, then costs nothing. */
    uint64_t armed_ns;
    /* In run_once: a timer that fires before the wait ends the turn, the wait included. */
    bool is_single_turn;
    /* Bounds the wait of run_once. */
    uv_timer_t wait;
    uv_async_t async;
    /* Flushes the streams that were written to in this turn, right before the loop waits. */
    uv_prepare_t prepare;
    pthread_mutex_t lock;
    /* Under the lock: what other threads and the owner posted. */
    struct uv_post_list posts;
    /* Being run; swapped with posts. */
    struct uv_post_list running;
    struct sl_list dirty;
    bool is_stopped;
    /* Every read of the loop goes here; on_data borrows it. */
    char read_buffer[SL_STREAM_READ_MAX];
};

struct uv_side_stream {
    struct sl_stream base;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    uv_connect_t connect;
    uv_write_t write;
    uv_shutdown_t shutdown;
    /* Resolves a host name; alive on its own, since libuv may not cancel it. */
    struct uv_resolve *resolve;
    /* Gathered since the last flush, and what libuv is sending. */
    struct sl_buf gathered;
    struct sl_buf sending;
    struct sl_list_node dirty_node;
    bool is_dirty;
    bool is_sending;
    bool is_reading;
    bool is_shut;
    bool has_handle;
};

struct uv_side_listener {
    struct sl_listener base;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    bool is_closed;
};

static inline struct uv_side *
uv_side_of(struct sl_loop *loop)
{
    return (struct uv_side *)loop;
}

/* Sets SL_EIO, or a more exact code, from a libuv error. */
int sl__uv_error(int status, const char *what, const char *subject);

int sl__uv_connect(struct sl_loop *loop, const struct sl_address *address, struct sl_stream **out);
void sl__uv_accept(struct sl_stream *stream);
int sl__uv_write(struct sl_stream *stream, const void *data, size_t len);
size_t sl__uv_queued(const struct sl_stream *stream);
void sl__uv_set_reading(struct sl_stream *stream, bool is_reading);
void sl__uv_stream_close(struct sl_stream *stream);
void sl__uv_stream_finish(struct sl_stream *stream);
void sl__uv_flush(struct sl_stream *stream);
int sl__uv_listen(struct sl_loop *loop, const struct sl_address *address,
                  struct sl_listener **listener);
void sl__uv_listener_close(struct sl_listener *listener);
int sl__uv_spawn(struct sl_loop *loop, const struct sl_process_options *options,
                 struct sl_process **process);
int sl__uv_kill(struct sl_process *process, int number);
void sl__uv_process_free(struct sl_process *process);
/* Forgets the children that still run, when the loop is freed. */
void sl__uv_processes_close(struct sl_loop *loop);
int sl__uv_signal_open(struct sl_loop *loop, int number, struct sl_signal **watch);
void sl__uv_signal_close(struct sl_signal *watch);
int sl__uv_fd_open(struct sl_loop *loop, int fd, struct sl_fd_watch **watch);
void sl__uv_fd_close(struct sl_fd_watch *watch);
