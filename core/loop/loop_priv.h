#pragma once
/* What the two kinds of loop share: the head of every object, the timers, and the table of what
 * they do differently. */

#include <pthread.h>

#include "base/list.h"
#include "loop/loop.h"
#include "loop/process.h"
#include "loop/stream.h"

struct sl_loop_ops {
    void (*free)(struct sl_loop *loop);
    void (*run)(struct sl_loop *loop);
    void (*run_once)(struct sl_loop *loop, int timeout_ms);
    void (*stop)(struct sl_loop *loop);
    void (*post)(struct sl_loop *loop, sl_loop_fn fn, void *ctx);
    void (*work)(struct sl_loop *loop, sl_loop_fn work, sl_loop_fn done, void *ctx);
    void (*entropy)(struct sl_loop *loop, void *bytes, size_t size);
    /* The earliest timer may have changed. */
    void (*timers_changed)(struct sl_loop *loop);
    int (*fd_open)(struct sl_loop *loop, int fd, struct sl_fd_watch **watch);
    void (*fd_close)(struct sl_fd_watch *watch);
    int (*connect)(struct sl_loop *loop, const struct sl_address *address, struct sl_stream **out);
    void (*accept)(struct sl_stream *stream);
    int (*write)(struct sl_stream *stream, const void *data, size_t len);
    size_t (*queued)(const struct sl_stream *stream);
    void (*set_reading)(struct sl_stream *stream, bool is_reading);
    /* Both are called once, with close_reason set for stream_close. */
    void (*stream_close)(struct sl_stream *stream);
    void (*stream_finish)(struct sl_stream *stream);
    int (*listen)(struct sl_loop *loop, const struct sl_address *address,
                  struct sl_listener **listener);
    void (*listener_close)(struct sl_listener *listener);
    int (*spawn)(struct sl_loop *loop, const struct sl_process_options *options,
                 struct sl_process **process);
    int (*kill)(struct sl_process *process, int number);
    void (*process_free)(struct sl_process *process);
    int (*signal_open)(struct sl_loop *loop, int number, struct sl_signal **watch);
    void (*signal_close)(struct sl_signal *watch);
};

struct sl_loop {
    const struct sl_loop_ops *ops;
    struct sl_clock clock;
    struct sl_random random;
    struct sl_heap timers;
    uint64_t next_ticket;
    /* Everything that is open, for sl_loop_free. */
    struct sl_list streams;
    struct sl_list listeners;
    struct sl_list processes;
    pthread_t owner;
    bool has_owner;
    bool is_freeing;
};

enum sl_stream_state {
    SL_STREAM_CONNECTING,
    SL_STREAM_OPEN,
    /* Flushes its queue, then closes. */
    SL_STREAM_FINISHING,
    /* Only on_close is still to come. */
    SL_STREAM_CLOSING,
};

struct sl_stream {
    struct sl_loop *loop;
    struct sl_list_node node;
    const struct sl_stream_handler *handler;
    void *ctx;
    enum sl_stream_state state;
    size_t write_max_bytes;
    /* A write was refused, so on_drain is owed. */
    bool is_starved;
    bool is_paused;
    /* Connect time-out, then the linger of sl_stream_finish. */
    struct sl_timer timer;
    uint64_t connect_timeout_ms;
    struct sl_err why;
    char peer[SL_ADDRESS_TEXT_SIZE];
};

struct sl_listener {
    struct sl_loop *loop;
    struct sl_list_node node;
    const struct sl_listener_handler *handler;
    void *ctx;
    struct sl_address address;
};

struct sl_fd_watch {
    struct sl_loop *loop;
    sl_loop_fn on_ready;
    void *ctx;
};

struct sl_process {
    struct sl_loop *loop;
    void (*on_exit)(void *ctx, const struct sl_process_exit *exit);
    void *ctx;
    struct sl_list_node node;
    int64_t pid;
    bool is_running;
};

struct sl_signal {
    struct sl_loop *loop;
    void (*fn)(void *ctx, int number);
    void *ctx;
    int number;
};

/* Fills the common part; the random generator is seeded by the caller. */
void sl__loop_create(struct sl_loop *loop, const struct sl_loop_ops *ops);

/* Fires the timers that are due at now_ns and were started before this call. */
void sl__loop_fire_timers(struct sl_loop *loop, uint64_t now_ns);

/* True when a timer runs; *due_ns is when the first one is due. */
bool sl__loop_next_timer(const struct sl_loop *loop, uint64_t *due_ns);

/* Fills the common part of a stream and lists it. */
void sl__stream_create(struct sl_stream *stream, struct sl_loop *loop, enum sl_stream_state state);

/* Begins the end of a stream with the reason in the error record of the thread (SL_ECLOSED when
 * that is empty). Nothing when it is closing already. */
void sl__stream_fail(struct sl_stream *stream);

/* The connection stands. */
void sl__stream_opened(struct sl_stream *stream);

/* Tells on_drain when that is owed and there is room. */
void sl__stream_drained(struct sl_stream *stream);

/* Last step: takes the stream off the list and calls on_close. The caller frees the memory. */
void sl__stream_closed(struct sl_stream *stream);
