#pragma once
/*
 * Checkpoints: what they say, how they lie in their directory, and the thread that writes them.
 *
 *     checkpoint-<ms>      the newest content known when the batch <ms> was the newest
 *     checkpoint-<ms>.bk   what had that name before
 *     temp                 a file being written
 *
 * A file is 8 bytes magic, 8 bytes length and 8 bytes hash of the protobuf document behind them, so
 * half a file is no checkpoint.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"
#include "batch/streaming_types.h"

enum {
    SL_CHECKPOINT_FORMAT = 1,
    SL_CHECKPOINT_BYTES_MAX = 256 * 1024 * 1024,
    /* Attempts of a write. */
    SL_CHECKPOINT_ATTEMPTS = 3,
    /* Checkpoints that wait to be written. */
    SL_CHECKPOINT_QUEUE_MAX = 16,
};

struct sl_checkpoint_stream {
    const char *name;
    uint32_t flags;
    struct sl_streaming_saved *saved;
    size_t saved_count;
};

/* Everything it points to lies in its arena. */
struct sl_checkpoint {
    struct sl_arena arena;
    const char *path;
    const char *name;
    const char *script;
    const char *script_hash;
    int64_t time;
    int64_t zero_time;
    int64_t batch_ms;
    int64_t *pending;
    size_t pending_count;
    struct sl_checkpoint_stream *streams;
    size_t stream_count;
    const uint8_t *extra;
    size_t extra_len;
};

void sl_checkpoint_create(struct sl_checkpoint *self);
void sl_checkpoint_destroy(struct sl_checkpoint *self);

/* The names of the checkpoint files of a directory, best first: newest time, then the plain file
 * before its backup. */
struct sl_checkpoint_names {
    char **items;
    size_t count;
};

/* SL_ENOTFOUND without a directory, SL_ESYS when it can not be read. Free with _names_free. */
int sl_checkpoint_list(const char *dir, struct sl_checkpoint_names *out);
void sl_checkpoint_names_free(struct sl_checkpoint_names *names);

/* Reads the best file that is whole. SL_ENOTFOUND without any file, SL_EPROTO when none is
 * readable (the reasons are logged). */
int sl_checkpoint_read(const char *dir, struct sl_checkpoint *out);

/* Writes bytes as the checkpoint of a time and removes all but `keep` files, as its thread does. */
int sl_checkpoint_store(const char *dir, int64_t time, const void *bytes, size_t len, int32_t keep);

/* Writes that ended. */
struct sl_checkpoint_done {
    /* The newest batch whose completion is on the disk now, SL_STREAMING_UNKNOWN if none. */
    int64_t clear_time;
    /* The result of the last one. */
    int rc;
};

struct sl_checkpoint_job {
    struct sl_buf bytes;
    int64_t time;
    int64_t clear_time;
};

/*
 * The thread that writes. Its queue is bounded: when it is full the newest checkpoint takes the
 * place of the one before it, together with that one's duty to clear.
 */
struct sl_checkpoint_writer {
    char *dir;
    int32_t keep;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_stopping;
    bool is_busy;
    SL_VEC(struct sl_checkpoint_job) queue;
    int64_t latest_time;
    /* What a write that failed should have cleared. */
    int64_t owed_clear;
    /* Writes that ended and were not told of yet. */
    bool has_done;
    struct sl_checkpoint_done done;
    void (*wake)(void *ctx);
    void *ctx;
};

/* `wake` is called from the thread when a write has ended. */
void sl_checkpoint_writer_create(struct sl_checkpoint_writer *self, const char *dir, int32_t keep,
                                 void (*wake)(void *ctx), void *ctx);

/* Ends the thread after all that it has been given was written. */
void sl_checkpoint_writer_destroy(struct sl_checkpoint_writer *self);

/* Hands over the bytes (the buffer is empty afterwards) of the checkpoint of a time; clear_time:
 * the batch whose completion they record, or SL_STREAMING_UNKNOWN. SL_ESYS when there is no thread.
 */
int sl_checkpoint_writer_write(struct sl_checkpoint_writer *self, struct sl_buf *take_bytes,
                               int64_t time, int64_t clear_time);

/* True when writes have ended that were not told of yet. */
bool sl_checkpoint_writer_poll(struct sl_checkpoint_writer *self, struct sl_checkpoint_done *out);

/* True when all that was given is written and told of. */
bool sl_checkpoint_writer_is_idle(struct sl_checkpoint_writer *self);
