#pragma once
/*
 * Which blocks each receiver has brought and which batch they belong to. It knows where blocks are,
 * never what is in them.
 *
 *     add ----> [ queue of the input ] ---- allocate(t) ---> t: [ blocks ] --- cleanup ---> gone
 *       \ log first                     \ log first                         \ log
 *
 * With a log (wal.h) everything survives: recovery replays its events in order. A block is known by
 * (input, id); adding it again changes nothing. Inputs are known to the log by name.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "batch/streaming_types.h"
#include "batch/wal.h"

/* The texts are owned. */
struct sl_tracked_block {
    struct sl_streaming_block block;
    /* When it was added: the log keeps its record as long as the block is known. */
    int64_t logged_at;
};

struct sl_block_list SL_VEC_BODY(struct sl_tracked_block);

struct sl_tracked_input {
    char *name;
    struct sl_block_list queue;
    /* Ids of all blocks that are queued or allocated. */
    struct sl_map_u64 known;
};

struct sl_tracked_batch {
    int64_t time;
    /* One list an input. */
    struct sl_block_list *blocks;
    /* One an input: the owner was told that the data of the blocks may go. */
    bool *is_dropped;
};

struct sl_block_tracker {
    SL_VEC(struct sl_tracked_input) inputs;
    /* By time. */
    SL_VEC(struct sl_tracked_batch) batches;
    int64_t last_allocated;
    /* NULL = no log. */
    struct sl_wal *wal;
};

/* No log yet; sl_block_tracker_open gives it one. */
void sl_block_tracker_create(struct sl_block_tracker *self);
void sl_block_tracker_destroy(struct sl_block_tracker *self);

/* Adds an input and returns its index. All are added before anything else happens. */
int32_t sl_block_tracker_input(struct sl_block_tracker *self, const char *name);

/* Opens the log in a directory and, with recover, replays it; without, what is there is deleted,
 * for it would come back with a later recovery. Blocks of unknown inputs are passed over. */
int sl_block_tracker_open(struct sl_block_tracker *self, const char *dir, int64_t rolling_ms,
                          bool recover);

/* Log, then memory. 1 when the block is known; an error of the log means it was not taken. `now` is
 * the time of the record. */
int sl_block_tracker_add(struct sl_block_tracker *self, int32_t input,
                         const struct sl_streaming_block *block, int64_t now);

/*
 * Gives all queued blocks to a batch, once: a batch that is not after the last one keeps what it
 * has. When the log can not be written the blocks stay queued and the batch has none.
 */
int sl_block_tracker_allocate(struct sl_block_tracker *self, int64_t time, int64_t now);

/* The blocks of a batch, NULL when none were allocated to it. */
const struct sl_block_list *sl_block_tracker_blocks(const struct sl_block_tracker *self,
                                                    int32_t input, int64_t time);

/* Blocks that belong to no batch yet. */
size_t sl_block_tracker_unallocated(const struct sl_block_tracker *self);

/* Forgets batches before the threshold, and the log files that end before it and before the record
 * of any block that is left. */
int sl_block_tracker_cleanup(struct sl_block_tracker *self, int64_t threshold, int64_t now);
