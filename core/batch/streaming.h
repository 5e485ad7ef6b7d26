#pragma once
/*
 * The context of a stream program: decides what its driver does next (docs/decisions/0015).
 *
 *     timer tick t ---> GENERATE t ---> job set t ---> its jobs ---> CLEAR_METADATA t
 *                           |                                             |
 *                           v                                             v
 *                     DO_CHECKPOINT t                          DO_CHECKPOINT t, later
 *                                                                         | on the disk
 *                                                                         v
 *                                                              CLEAR_CHECKPOINT_DATA t
 *
 * The functions are those of core/abi/streaming.abi.h, which describes them; arguments are checked
 * there as far as they are pointers. Every function takes the context's lock.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/vec.h"
#include "batch/block_tracker.h"
#include "batch/checkpoint.h"
#include "batch/clock.h"
#include "batch/graph.h"
#include "batch/input_info.h"
#include "batch/job_set.h"
#include "batch/pid.h"
#include "batch/placement.h"
#include "batch/report.h"
#include "batch/streaming_types.h"
#include "batch/timer.h"

struct sl_streaming *sl_streaming_new(const struct sl_streaming_options *options,
                                      const struct sl_clock *clock, bool is_manual);
void sl_streaming_free(struct sl_streaming *self);
void sl_streaming_options_default(struct sl_streaming_options *options);
int sl_streaming_state(struct sl_streaming *self);
int sl_streaming_checkpoint_dir(struct sl_streaming *self, const char *dir);
int sl_streaming_remember(struct sl_streaming *self, int64_t remember_ms);
int32_t sl_streaming_node_add(struct sl_streaming *self, const struct sl_streaming_node *node);
int sl_streaming_node_name(struct sl_streaming *self, int32_t node, const char *name);
int sl_streaming_node_remember(struct sl_streaming *self, int32_t node, int64_t ms);
int sl_streaming_node_checkpoint(struct sl_streaming *self, int32_t node, int64_t ms);
int sl_streaming_node_persist(struct sl_streaming *self, int32_t node, bool is_on);
int sl_streaming_node_get(struct sl_streaming *self, int32_t node, struct sl_streaming_node *out);
int32_t sl_streaming_node_count(struct sl_streaming *self);
int32_t sl_streaming_worker_add(struct sl_streaming *self, const char *name, const char *host,
                                int32_t slots);
int sl_streaming_worker_remove(struct sl_streaming *self, int32_t worker);
int sl_streaming_preferred_host(struct sl_streaming *self, int32_t node, const char *host);
int sl_streaming_restore(struct sl_streaming *self, const struct sl_checkpoint *checkpoint,
                         bool drop_missing);
int sl_streaming_start(struct sl_streaming *self);
int sl_streaming_stop(struct sl_streaming *self, bool is_graceful);
int sl_streaming_next(struct sl_streaming *self, struct sl_streaming_work *work);
void sl_streaming_wait(struct sl_streaming *self, int64_t max_ms);
void sl_streaming_wake(struct sl_streaming *self);
const struct sl_streaming_report *sl_streaming_report(struct sl_streaming *self);
int64_t sl_streaming_zero_time(struct sl_streaming *self);
int64_t sl_streaming_next_tick(struct sl_streaming *self);
bool sl_streaming_is_idle(struct sl_streaming *self);
int sl_streaming_find(struct sl_streaming *self, int32_t node, int64_t time,
                      struct sl_streaming_dataset *out);
int sl_streaming_put(struct sl_streaming *self, int32_t node, int64_t time, uint64_t handle);
int32_t sl_streaming_datasets(struct sl_streaming *self, int32_t node,
                              struct sl_streaming_dataset *out, int32_t max);
int sl_streaming_input_report(struct sl_streaming *self, int32_t node, int64_t time,
                              int64_t records, const char *metadata);
int32_t sl_streaming_job_add(struct sl_streaming *self, int64_t time, int32_t node);
int sl_streaming_generated(struct sl_streaming *self, int64_t time, const char *error);
int sl_streaming_job_end(struct sl_streaming *self, uint64_t job, const char *error);
int sl_streaming_saved(struct sl_streaming *self, int32_t node, int64_t time, const char *text);
int sl_streaming_saved_get(struct sl_streaming *self, int32_t node, int32_t index,
                           struct sl_streaming_saved *out);
int sl_streaming_state_saved(struct sl_streaming *self);
int sl_streaming_checkpoint_write(struct sl_streaming *self, const uint8_t *extra, size_t len);
void sl_streaming_progress(struct sl_streaming *self, struct sl_streaming_progress *out);
const struct sl_streaming_report *sl_streaming_completed(struct sl_streaming *self, int32_t index);
int sl_streaming_receiver_started(struct sl_streaming *self, int32_t node, int32_t worker);
int sl_streaming_receiver_error(struct sl_streaming *self, int32_t node, const char *message);
int sl_streaming_receiver_ended(struct sl_streaming *self, int32_t node, const char *message,
                                int64_t delay_ms);
int sl_streaming_block_add(struct sl_streaming *self, int32_t node,
                           const struct sl_streaming_block *block);
int32_t sl_streaming_block_count(struct sl_streaming *self, int32_t node, int64_t time);
int sl_streaming_block_get(struct sl_streaming *self, int32_t node, int64_t time, int32_t index,
                           struct sl_streaming_block *out);
