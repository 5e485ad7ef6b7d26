#pragma once
/*
 * The lane between the tasks of this process and those of others: what executors have for other
 * processes is queued here, becomes frames, and comes back into rings on the other side.  There is
 * no socket and no clock; whoever has the connections (core/cluster/data_link.c) asks for frames to
 * write and feeds the bytes that it has read.
 *
 *     executor --ring--> queue of a task --credit--> frame ... bytes ... batch --ring--> executor
 *
 * All functions belong to one thread, that of the connections, except where it says otherwise.
 *
 * Credit.  A sender may have `window` bytes under way to one task of a peer, from the frame that is
 * written until the receiving executor has executed all of it.  Grants are sums since the session
 * began, so one that is lost or comes twice does no harm.  Records stay where the sender wrote them
 * until the peer has them, so a sender's memory is bounded by its pools and a receiver's by the
 * windows.  Acks need no credit and go before data; what the receiver has of them is bounded by its
 * own pending roots, and it stops reading when its executors do not take them.
 *
 * Sessions.  Two processes that know each other's identity (16 bytes, drawn anew at every start)
 * have a session: frames are counted, and after a break of the connection those that the other one
 * does not have are written again.  So a session loses nothing and doubles nothing.  When it ends,
 * since one of the two was replaced or forgotten, what was under way fails at once, what it sent is
 * void, and what was not sent yet goes to the new one.  Which roots the tuples belong to that the
 * peer had confirmed is known to nobody, so all roots of the spouts here fail and are replayed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "stream/types.h"

struct sl_remote;
struct sl_worker;

enum {
    SL_REMOTE_IDENTITY_SIZE = 16,
    /* Numbers of peers: 0 .. this. */
    SL_REMOTE_PEER_MAX = 65535,
    /* Bytes of the records of one frame. */
    SL_REMOTE_FRAME_MAX = (1 << 30) + (1 << 20),
};

/* Types of frames (core/wire/frame.h). All numbers are little-endian. */
enum sl_remote_frame_type {
    /* u32 source, u32 dest, u32 stream, i32 mark, then the records; the count is theirs. */
    SL_REMOTE_DATA = 32,
    /* Of 24 bytes each: u64 root, u64 value, i32 acker, i32 operation. */
    SL_REMOTE_ACKS = 33,
    /* u64 frames received other than these, then `count` - 1 grants: u64 task, u64 bytes. */
    SL_REMOTE_CREDIT = 34,
    /* Bytes that one process's owner has for another's. */
    SL_REMOTE_MESSAGE = 35,
};

/* The lane of a worker; NULL when all its tasks are in one process. Any thread. */
struct sl_remote *sl_worker_remote(struct sl_worker *worker);

/* Calls wake(ctx) from any thread when there is work for sl_remote_pump after sl_remote_rest. */
void sl_remote_set_wake(struct sl_remote *self, void (*wake)(void *ctx), void *ctx);

/* Takes what executors have for others, gives them what came for them, and returns credit. */
void sl_remote_pump(struct sl_remote *self);
/* Before sleeping: true when nothing has come since and the next thing that comes wakes. */
bool sl_remote_rest(struct sl_remote *self);
/* True when something waits for room in a ring, which nobody tells of: pump again within 1 ms. */
bool sl_remote_is_waiting(const struct sl_remote *self);
/* True while executors do not take the acks that have come: nothing more should be read. */
bool sl_remote_is_jammed(const struct sl_remote *self);

/* ---- Messages ----------------------------------------------------------------------------- */

/* What becomes of the session with a peer. */
enum sl_remote_change {
    /* It began: what was sent in the one before and did not arrive is lost. */
    SL_REMOTE_BEGAN,
    /* Its connection broke, and stands again. */
    SL_REMOTE_BROKE,
    SL_REMOTE_RESUMED,
    /* It ended for good. */
    SL_REMOTE_ENDED,
};

/* Who hears messages; called on the thread of the connections. */
struct sl_remote_listener {
    /* The bytes are valid for the call. */
    void (*on_message)(void *ctx, int32_t peer, const uint8_t *bytes, size_t size);
    void (*on_change)(void *ctx, int32_t peer, enum sl_remote_change change);
    void *ctx;
};

/* Before there are connections, and when there are none any more; NULL = messages are dropped. */
void sl_remote_listen(struct sl_remote *self, const struct sl_remote_listener *listener);

/*
 * Any thread: sends a message, in order, by the session that stands when its turn comes; a session
 * that is lost takes along what was written to it.  Messages need no credit: who sends them limits
 * what is under way.  SL_EINVAL for a peer that can not be or a size of 0, SL_ELIMIT.
 */
int sl_remote_send(struct sl_remote *self, int32_t peer, const void *bytes, size_t size);

/* ---- Sessions ----------------------------------------------------------------------------- */

/* The identity of a peer with which there is a session; NULL = there is none. */
const uint8_t *sl_remote_identity(const struct sl_remote *self, int32_t peer);
/* How many frames of data and acks the peer has sent us in this session. */
uint64_t sl_remote_received(const struct sl_remote *self, int32_t peer);
/* Bytes that one task here takes from each peer. */
uint32_t sl_remote_window(const struct sl_remote *self);
/* True when the frames that a peer says to have fit a session that goes on. */
bool sl_remote_can_resume(const struct sl_remote *self, int32_t peer, uint64_t received);
/*
 * A connection stands.  The session goes on when `resumes` (the identity is that of the session,
 * and sl_remote_can_resume is true of `received`), else a new one begins.  `window` is the peer's.
 */
void sl_remote_open(struct sl_remote *self, int32_t peer, const uint8_t *identity, uint32_t window,
                    bool resumes, uint64_t received);
/* The connection is gone; the session waits for the next one. */
void sl_remote_close(struct sl_remote *self, int32_t peer);
/* The peer will not come back: ends the session and fails all that was meant for it. */
void sl_remote_forget(struct sl_remote *self, int32_t peer);

/* ---- Bytes -------------------------------------------------------------------------------- */

/* Bytes to write: `head`, then `body`. */
struct sl_remote_frame {
    uint8_t head[32];
    uint32_t head_size;
    const uint8_t *body;
    size_t body_size;
};

/*
 * The next frame for a peer whose connection stands: false when there is none, or no credit.  It is
 * valid until the next call for this peer, sl_remote_close or sl_remote_forget; the caller writes
 * it whole before it asks again.
 */
bool sl_remote_next(struct sl_remote *self, int32_t peer, struct sl_remote_frame *out);
/* Has the next credit message carry all grants, whether or not they were told before. */
void sl_remote_refresh(struct sl_remote *self, int32_t peer);

/*
 * Takes bytes of the peer's connection in any pieces.  SL_EPROTO for what no peer of ours sends
 * (the connection has to be closed then, and the session to be forgotten), SL_ENOMEM.
 */
int sl_remote_feed(struct sl_remote *self, int32_t peer, const uint8_t *data, size_t size);

/* ---- Looking in --------------------------------------------------------------------------- */

struct sl_remote_stats {
    /* Frames of data and acks since the start, of all peers. */
    uint64_t sent;
    uint64_t received;
    /* Batches that wait for credit or a connection, and frames that the peer does not have yet. */
    uint64_t queued;
    uint64_t unconfirmed;
    /* Batches for tasks here that are not executed yet, and their credit. */
    uint64_t held;
    uint64_t held_bytes;
    /* Acks that nobody could be given: their trees time out. */
    uint64_t dropped_acks;
    /* Batches for tasks that are not here. */
    uint64_t strays;
};

void sl_remote_stats(const struct sl_remote *self, struct sl_remote_stats *out);
