#pragma once
/* The simulated loop: what its files share. */

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "loop/loop_priv.h"
#include "loop/sim.h"

enum sim_event_kind {
    /* fn(ctx) on the loop. */
    SIM_POST,
    /* work(ctx), then fn(ctx). */
    SIM_WORK,
    /* The head of the stream's inbound queue arrives. */
    SIM_ARRIVAL,
    /* A connection attempt reaches the host of the listener. */
    SIM_CONNECT,
    /* The listener's owner learns of the connection. */
    SIM_ACCEPT,
    /* Its answer comes back. */
    SIM_CONNECTED,
    SIM_REFUSED,
    /* on_close of the stream is due. */
    SIM_CLOSED,
    /* What came in while reading was paused. */
    SIM_RESUMED,
    /* There is room in a queue that was full. */
    SIM_DRAINED,
    SIM_EXIT,
    SIM_SIGNAL,
};

struct sim_event {
    struct sl_heap_node node;
    enum sim_event_kind kind;
    struct sim_loop *loop;
    uint64_t stream_id;
    sl_loop_fn work;
    sl_loop_fn fn;
    void *ctx;
    /* Process id and exit, or number of a signal. */
    int64_t pid;
    struct sl_process_exit exit;
};

/* Bytes under way; len 0 is the end of the stream. */
struct sim_chunk {
    struct sim_chunk *next;
    size_t len;
    uint8_t data[];
};

struct sim_event_list SL_VEC_BODY(struct sim_event *);

struct sim_loop {
    struct sl_loop loop;
    struct sl_sim *sim;
    /* In sim->timers, keyed by the first timer. */
    struct sl_heap_node timer_node;
    struct sl_list_node node;
    uint32_t id;
    char host[SL_ADDRESS_HOST_SIZE];
    int64_t wall_offset_ms;
    bool is_stopped;
    bool is_paused;
    bool is_crashed;
    struct sim_event_list held;
    struct sl_list signals;
};

struct sl_sim {
    struct sl_sim_options options;
    uint64_t now_ns;
    struct sl_random random;
    uint64_t trace_hash;
    struct sl_heap events;
    struct sl_heap timers;
    struct sl_list loops;
    uint32_t next_loop_id;
    uint64_t next_stream_id;
    int64_t next_pid;
    uint16_t next_port;
    /* id -> struct sim_stream. */
    struct sl_map_u64 streams;
    /* "host:port" or "host unix:path" -> struct sim_listener. */
    struct sl_map_bytes listeners;
    /* "from>to" -> anything: the cut directions. */
    struct sl_map_bytes cuts;
    /* Arrivals and connection attempts that met a cut. */
    struct sim_event_list stalled;
    /* pid -> struct sl_process. */
    struct sl_map_u64 processes;
    struct sl_sim_spawner spawner;
};

struct sim_stream {
    struct sl_stream base;
    uint64_t id;
    /* The other end, or 0 when it is gone or not there yet. */
    uint64_t other_id;
    /* Hosts of both ends. */
    char host[SL_ADDRESS_HOST_SIZE];
    char other_host[SL_ADDRESS_HOST_SIZE];
    /* Key of the listener that is asked for. */
    char target[SL_ADDRESS_TEXT_SIZE + SL_ADDRESS_HOST_SIZE];
    /* On their way to this end. */
    struct sim_chunk *inbound;
    struct sim_chunk **inbound_tail;
    uint64_t last_arrival_ns;
    /* Written before the connection stands. */
    struct sl_buf early;
    /* Arrived while reading was paused. */
    struct sl_buf held;
    bool has_held_end;
    /* Bytes on their way to the other end. */
    size_t queued;
    /* Nothing more goes to the other end. */
    bool is_end_sent;
};

struct sim_listener {
    struct sl_listener base;
    struct sim_loop *owner;
    char key[SL_ADDRESS_TEXT_SIZE + SL_ADDRESS_HOST_SIZE];
};

static inline struct sim_loop *
sim_loop_of(struct sl_loop *loop)
{
    return (struct sim_loop *)loop;
}

static inline struct sim_stream *
sim_stream_of(struct sl_stream *stream)
{
    return (struct sim_stream *)stream;
}

/* Schedules an event of the loop at an absolute time and gives it for filling. */
struct sim_event *sl__sim_schedule(struct sim_loop *loop, enum sim_event_kind kind, uint64_t at_ns);

/* Draws a latency. */
uint64_t sl__sim_latency_ns(struct sl_sim *sim);

bool sl__sim_is_cut(const struct sl_sim *sim, const char *from, const char *to);

struct sim_stream *sl__sim_stream(const struct sl_sim *sim, uint64_t id);

/* Puts what happened into the hash of the run. */
void sl__sim_trace(struct sl_sim *sim, uint64_t a, uint64_t b);

/* Handle the events of streams. */
void sl__sim_stream_event(struct sl_sim *sim, struct sim_event *event);

/* True when the event can not pass a cut link now. */
bool sl__sim_event_is_stalled(struct sl_sim *sim, const struct sim_event *event);

/* The node ends: its peers learn it, unless silent. */
void sl__sim_streams_crash(struct sim_loop *loop, bool is_silent);

/* Operations. */
int sl__sim_connect(struct sl_loop *loop, const struct sl_address *address, struct sl_stream **out);
void sl__sim_accept(struct sl_stream *stream);
int sl__sim_write(struct sl_stream *stream, const void *data, size_t len);
size_t sl__sim_queued(const struct sl_stream *stream);
void sl__sim_set_reading(struct sl_stream *stream, bool is_reading);
void sl__sim_stream_close(struct sl_stream *stream);
void sl__sim_stream_finish(struct sl_stream *stream);
int sl__sim_listen(struct sl_loop *loop, const struct sl_address *address,
                   struct sl_listener **listener);
void sl__sim_listener_close(struct sl_listener *listener);
