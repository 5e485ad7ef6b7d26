#pragma once
/*
 * Cuts the records of a receiver into blocks, one a block interval. It has no thread: adding and
 * pulling look at the clock and cut what is due.
 *
 *     add -> [ buffer ] -- cut at each tick --> [ block | block | .. ] -> pull
 *                                                 at most queue_max
 *
 * A full queue stops the cuts, not the adding. Any thread may add; one thread pulls.
 */

#include <pthread.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "batch/rate_limiter.h"
#include "batch/streaming_types.h"
#include "batch/timer.h"

enum sl_block_generator_state {
    SL_BLOCK_GENERATOR_INITIALIZED,
    SL_BLOCK_GENERATOR_ACTIVE,
    SL_BLOCK_GENERATOR_STOPPED,
};

struct sl_block_generator {
    pthread_mutex_t lock;
    const struct sl_clock *clock;
    enum sl_block_generator_state state;
    struct sl_recurring_timer timer;
    struct sl_rate_limiter limiter;
    struct sl_buf buffer;
    int64_t buffered_records;
    struct sl_list blocks;
    int32_t queued;
    int32_t queue_max;
    /* The block that the last pull gave. */
    struct sl_cut_block *pulled;
};

/* SL_EINVAL for an interval or a queue below 1. Rates as in rate_limiter.h. */
int sl_block_generator_create(struct sl_block_generator *self, const struct sl_clock *clock,
                              bool is_manual, int64_t interval_ms, int32_t queue_max,
                              double max_rate, double initial_rate);
void sl_block_generator_destroy(struct sl_block_generator *self);

/* SL_ECONFLICT when it was started before. */
int sl_block_generator_start(struct sl_block_generator *self);

/* Adds records to one block. SL_EAGAIN when the rate does not allow them now, SL_ECLOSED when not
 * active; nothing was added then. */
int sl_block_generator_add(struct sl_block_generator *self, const void *bytes, size_t len,
                           int64_t records);

/* In how many ms a record may be added. */
int64_t sl_block_generator_retry(struct sl_block_generator *self);

/* True when there is a block; it stays valid until the next pull. */
bool sl_block_generator_pull(struct sl_block_generator *self, struct sl_block_data *out);

/* When the next cut is due, SL_STREAMING_UNKNOWN when there will be none. */
int64_t sl_block_generator_due(struct sl_block_generator *self);

/* Makes a block of what has been added, without waiting for a tick or for room in the queue. */
void sl_block_generator_cut(struct sl_block_generator *self);

/* No more adds; all that was added before comes out by pulling, without waiting for a tick. */
void sl_block_generator_stop(struct sl_block_generator *self);

void sl_block_generator_rate(struct sl_block_generator *self, double rate);

/* Records per second, 0 = unlimited. */
double sl_block_generator_limit(struct sl_block_generator *self);
