#pragma once
/* The lane to other processes: what remote.c, remote_queues.c, _session.c, _writer.c and _reader.c
 * share. */

#include "base/buf.h"
#include "base/map.h"
#include "stream/remote.h"
#include "stream/stream_priv.h"
#include "wire/frame.h"

enum {
    /* Bytes of acks that wait for a peer before further ones are dropped. */
    SL__REMOTE_ACKS_MOST = 16 * 1024 * 1024,
    /* Acks and grants of one frame. */
    SL__REMOTE_ACKS_FRAME = 1024,
    SL__REMOTE_GRANTS = 4096,
    /* Free blocks that are kept. */
    SL__REMOTE_FREE_BLOCKS = 128,
    /* What a frame counts beside its records. */
    SL__REMOTE_OVERHEAD = 64,
};

/* The header of core/wire/frame.h, and what follows it in a frame of data. */
struct sl__frame_head {
    uint32_t size;
    uint16_t type;
    uint16_t flags;
    uint32_t count;
    uint32_t check;
};

struct sl__data_head {
    uint32_t source;
    uint32_t dest;
    uint32_t stream;
    int32_t mark;
};

/* Batches for one task of a peer. */
struct sl__dest {
    int32_t task;
    bool is_ready;
    /* Bytes that were sent and that may be, since the session began. */
    uint64_t sent;
    uint64_t granted;
    struct sl__queue queue;
    struct sl__dest *next;
};

/* What a peer has sent to one task here. */
struct sl__source {
    int32_t task;
    bool is_dirty;
    uint64_t received;
    uint64_t consumed;
    /* The grant that was sent last. */
    uint64_t told;
    struct sl__source *next;
};

/* A message on its way to a peer. */
struct sl__letter {
    struct sl__letter *next;
    int32_t peer;
    size_t size;
    uint8_t bytes[];
};

struct sl__letters {
    struct sl__letter *first;
    struct sl__letter *last;
};

/* A frame that the peer may not have. */
struct sl__sent {
    /* One of the three. */
    struct sl__batch *batch;
    struct sl__letter *letter;
    uint8_t *acks;
    uint32_t count;
    /* Bytes of memory. */
    size_t size;
};

/* A sender of the peer has finished, as the receiver has been told. */
struct sl__mark {
    int32_t source;
    int32_t dest;
    int32_t stream;
    /* Of its source when it was told: a task that has moved or was removed since takes nothing
     * back. */
    uint32_t placed;
    bool is_cyclic;
};

/* Frames as they come, in pieces. */
struct sl__frame_reader {
    uint8_t head[sizeof(struct sl__frame_head) + sizeof(struct sl__data_head)];
    size_t head_size;
    struct sl__frame_head frame;
    /* The body goes to a batch, to memory for a message, or else into the peer's buffer. */
    struct sl__batch *batch;
    uint8_t *letter;
    uint8_t *body;
    size_t body_size;
    size_t body_done;
};

struct sl__peer {
    int32_t id;
    bool is_known;
    bool is_open;
    uint8_t identity[SL_REMOTE_IDENTITY_SIZE];
    uint32_t session;
    /* Of the peer. */
    uint32_t window;
    struct sl_map_u64 dests;
    /* Tasks with batches that may have credit. */
    struct sl__dest *ready_first;
    struct sl__dest *ready_last;
    /* struct sl__ack that wait. */
    struct sl_buf acks;
    struct sl__letters letters;
    /* Frames from sent_first on are kept: `confirmed` frames came before them, and `written` of
     * them were written to the present connection, the last of which may be under way to it. */
    SL_VEC(struct sl__sent) sent;
    size_t sent_first;
    uint64_t confirmed;
    uint64_t written;
    uint64_t retained_bytes;
    bool is_pinned;
    /* Received. */
    struct sl_map_u64 sources;
    struct sl__source *dirty;
    uint64_t received;
    bool is_confirm_due;
    SL_VEC(struct sl__mark) marks;
    struct sl__frame_reader reader;
    struct sl_buf message;
    struct sl_buf credit;
};

struct sl_remote {
    struct sl_worker *worker;
    struct sl_executor *lane;
    uint32_t window;
    SL_VEC(struct sl__peer *) peers;
    uint64_t peer_count;
    uint64_t retained_most;
    size_t block_bytes;
    struct sl__batch *free_blocks;
    int32_t free_block_count;
    /* The outbox of every batch that was received, by whether it came along an edge of a cycle. */
    struct sl__outbox inbox;
    struct sl__outbox cyclic_inbox;
    /* By executor: batches that found no room in its ring. */
    struct sl__queue *pending;
    struct sl_remote_stats stats;
    struct sl_remote_listener listener;
    /* What other threads have sent since the last pump. */
    pthread_mutex_t letters_lock;
    struct sl__letters letters;
};

/* remote.c */
/* Hands what other threads have sent to the peers it is for. */
void sl__letters_take(struct sl_remote *self);
bool sl__remote_has_letters(struct sl_remote *self);
void sl__sent_free(struct sl__sent *frame);
/* Frees the tasks of a peer, and those here that it sends to. */
void sl__dests_free(struct sl__peer *peer);
void sl__sources_free(struct sl__peer *peer);
struct sl__peer *sl__peer_find(const struct sl_remote *self, int32_t id);
/* The same, made when it is not there. */
struct sl__peer *sl__peer_get(struct sl_remote *self, int32_t id);
struct sl__dest *sl__dest_get(struct sl__peer *peer, int32_t task);
/* A task that has something queued is looked at again. */
void sl__dest_ready(struct sl__peer *peer, struct sl__dest *dest);
struct sl__source *sl__source_get(struct sl_remote *self, struct sl__peer *peer, int32_t task);
void sl__source_consumed(struct sl__peer *peer, struct sl__source *source, uint32_t charge);

/* remote_queues.c */
/* Hands a batch to an executor here, now or when its ring has room. */
void sl__remote_hand_in(struct sl_remote *self, int32_t executor, struct sl__batch *batch);
/* Where a task is: an executor here, the lane, or -1. */
int32_t sl__remote_task_home(struct sl_worker *worker, int32_t task);
/* The tuples of a batch are lost: their trees fail. */
void sl__remote_fail_batch(struct sl_remote *self, struct sl__batch *batch);
/* A batch has left its outbox for good. */
void sl__remote_release(struct sl_remote *self, struct sl__batch *batch);
/* A block for received records; NULL without memory. */
struct sl__batch *sl__remote_block(struct sl_remote *self, size_t bytes);
/* A received batch has been executed, or is not needed. */
void sl__remote_return(struct sl_remote *self, struct sl__batch *batch);

/* remote_session.c */
/* What the peer has need not be kept. */
void sl__peer_confirm(struct sl_remote *self, struct sl__peer *peer, uint64_t received);

/* remote_writer.c */
/* What a peer says of our frames: what it has, and grants. */
int sl__remote_take_credit(struct sl_remote *self, struct sl__peer *peer, const uint8_t *data,
                           uint32_t count);

/* remote_reader.c */
void sl__reader_reset(struct sl_remote *self, struct sl__frame_reader *reader);

/* The credit that records take: no more than there can be, so that any record can be sent. */
static inline uint32_t
sl__remote_charge(size_t bytes, uint32_t window)
{
    size_t charge = bytes + SL__REMOTE_OVERHEAD;
    return charge < window ? (uint32_t)charge : window;
}

static inline void
sl__letters_push(struct sl__letters *list, struct sl__letter *letter)
{
    letter->next = NULL;
    if (list->last != NULL) {
        list->last->next = letter;
    } else {
        list->first = letter;
    }
    list->last = letter;
}

static inline struct sl__letter *
sl__letters_pop(struct sl__letters *list)
{
    struct sl__letter *letter = list->first;
    list->first = letter->next;
    if (list->first == NULL) {
        list->last = NULL;
    }
    return letter;
}

static inline uint64_t
sl__peer_unconfirmed(const struct sl__peer *peer)
{
    return peer->sent.count - peer->sent_first;
}
