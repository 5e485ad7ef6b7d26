#include "batch/block_tracker.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "batch/streaming_codec.h"

static void
block_free(struct sl_streaming_block *block)
{
    sl_free((char *)(uintptr_t)block->worker);
    sl_free((char *)(uintptr_t)block->wal_path);
}

static struct sl_tracked_block
block_dup(const struct sl_streaming_block *block, bool is_valid, int64_t logged_at)
{
    struct sl_tracked_block copy = {*block, logged_at};
    copy.block.worker = sl_strdup(block->worker != NULL ? block->worker : "");
    copy.block.wal_path = sl_strdup(block->wal_path != NULL ? block->wal_path : "");
    copy.block.is_valid = is_valid;
    return copy;
}

static void
list_free(struct sl_block_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        block_free(&list->items[i].block);
    }
    sl_vec_destroy(list);
}

void
sl_block_tracker_create(struct sl_block_tracker *self)
{
    *self = (struct sl_block_tracker){.last_allocated = SL_STREAMING_UNKNOWN};
}

static void
batch_free(struct sl_block_tracker *self, struct sl_tracked_batch *batch)
{
    for (size_t i = 0; i < self->inputs.count; i++) {
        list_free(&batch->blocks[i]);
    }
    sl_free(batch->blocks);
    sl_free(batch->is_dropped);
}

void
sl_block_tracker_destroy(struct sl_block_tracker *self)
{
    for (size_t i = 0; i < self->batches.count; i++) {
        batch_free(self, &self->batches.items[i]);
    }
    sl_vec_destroy(&self->batches);
    for (size_t i = 0; i < self->inputs.count; i++) {
        struct sl_tracked_input *input = &self->inputs.items[i];
        list_free(&input->queue);
        sl_map_u64_destroy(&input->known);
        sl_free(input->name);
    }
    sl_vec_destroy(&self->inputs);
    if (self->wal != NULL) {
        sl_wal_destroy(self->wal);
        sl_free(self->wal);
    }
}

int32_t
sl_block_tracker_input(struct sl_block_tracker *self, const char *name)
{
    struct sl_tracked_input input = {.name = sl_strdup(name)};
    sl_vec_push(&self->inputs, input);
    return (int32_t)self->inputs.count - 1;
}

static struct sl_tracked_input *
find_input(struct sl_block_tracker *self, const char *name)
{
    for (size_t i = 0; i < self->inputs.count; i++) {
        if (strcmp(self->inputs.items[i].name, name) == 0) {
            return &self->inputs.items[i];
        }
    }
    return NULL;
}

static void
enqueue(struct sl_tracked_input *input, const struct sl_streaming_block *block, bool is_valid,
        int64_t logged_at)
{
    sl_map_u64_put(&input->known, block->id, 1);
    sl_vec_push(&input->queue, block_dup(block, is_valid, logged_at));
}

/* The batch of a time; a new one gets empty lists. Batches come in order but for replays. */
static struct sl_tracked_batch *
batch_at(struct sl_block_tracker *self, int64_t time)
{
    size_t at = self->batches.count;
    while (at > 0 && self->batches.items[at - 1].time >= time) {
        at--;
    }
    if (at == self->batches.count || self->batches.items[at].time != time) {
        struct sl_tracked_batch batch = {
            .time = time,
            .blocks = sl_calloc(self->inputs.count, sizeof(struct sl_block_list)),
            .is_dropped = sl_calloc(self->inputs.count, sizeof(bool)),
        };
        sl_vec_insert(&self->batches, at, batch);
    }
    return &self->batches.items[at];
}

static void
cleanup(struct sl_block_tracker *self, int64_t time)
{
    for (size_t i = 0; i < self->batches.count; i++) {
        struct sl_tracked_batch *batch = &self->batches.items[i];
        if (batch->time != time) {
            continue;
        }
        for (size_t j = 0; j < self->inputs.count; j++) {
            for (size_t k = 0; k < batch->blocks[j].count; k++) {
                sl_map_u64_remove(&self->inputs.items[j].known, batch->blocks[j].items[k].block.id,
                                  NULL);
            }
        }
        batch_free(self, batch);
        sl_vec_remove(&self->batches, i);
        return;
    }
}

/* Moves the blocks of these ids, and no others, from the queue to the batch (SPARK-23438). */
static void
replay_allocated(struct sl_tracked_input *input, const struct sl_block_event_input *event,
                 struct sl_block_list *blocks)
{
    struct sl_map_u64 ids = {0};
    for (size_t i = 0; i < event->id_count; i++) {
        sl_map_u64_put(&ids, event->ids[i], 1);
    }
    size_t kept = 0;
    for (size_t i = 0; i < input->queue.count; i++) {
        if (sl_map_u64_get(&ids, input->queue.items[i].block.id, NULL)) {
            sl_vec_push(blocks, input->queue.items[i]);
        } else {
            input->queue.items[kept++] = input->queue.items[i];
        }
    }
    input->queue.count = kept;
    sl_map_u64_destroy(&ids);
}

static int
replay(void *ctx, const struct sl_block_event *event)
{
    struct sl_block_tracker *self = ctx;
    if (event->kind == SL_BLOCK_EVENT_ADDED) {
        struct sl_tracked_input *input = find_input(self, event->input);
        if (input != NULL && !sl_map_u64_get(&input->known, event->block.id, NULL)) {
            enqueue(input, &event->block, false, event->time);
        }
    } else if (event->kind == SL_BLOCK_EVENT_ALLOCATED) {
        struct sl_tracked_batch *batch = batch_at(self, event->time);
        for (size_t i = 0; i < event->input_count; i++) {
            struct sl_tracked_input *input = find_input(self, event->inputs[i].name);
            if (input != NULL) {
                replay_allocated(input, &event->inputs[i],
                                 &batch->blocks[input - self->inputs.items]);
            }
        }
        if (event->time > self->last_allocated) {
            self->last_allocated = event->time;
        }
    } else {
        for (size_t i = 0; i < event->time_count; i++) {
            cleanup(self, event->times[i]);
        }
    }
    return 0;
}

static int
replay_record(void *ctx, const uint8_t *bytes, size_t len)
{
    return sl_block_event_decode(bytes, len, replay, ctx);
}

int
sl_block_tracker_open(struct sl_block_tracker *self, const char *dir, int64_t rolling_ms,
                      bool recover)
{
    struct sl_wal *wal = sl_alloc(sizeof(*wal));
    int rc = sl_wal_create(wal, dir, rolling_ms);
    if (rc != 0) {
        sl_free(wal);
        return rc;
    }
    self->wal = wal;
    return recover ? sl_wal_read_all(wal, replay_record, self) : sl_wal_clean(wal, INT64_MAX);
}

static int
log_event(struct sl_block_tracker *self, const struct sl_block_event *event, int64_t now)
{
    if (self->wal == NULL) {
        return 0;
    }
    struct sl_buf bytes = {0};
    struct sl_wal_segment segment;
    sl_block_event_encode(event, &bytes);
    int rc = sl_wal_write(self->wal, bytes.data, bytes.size, now, &segment);
    sl_buf_destroy(&bytes);
    return rc;
}

int
sl_block_tracker_add(struct sl_block_tracker *self, int32_t index,
                     const struct sl_streaming_block *block, int64_t now)
{
    struct sl_tracked_input *input = &self->inputs.items[index];
    if (sl_map_u64_get(&input->known, block->id, NULL)) {
        return 1;
    }
    struct sl_block_event event = {
        .kind = SL_BLOCK_EVENT_ADDED, .time = now, .input = input->name, .block = *block};
    int rc = log_event(self, &event, now);
    if (rc == 0) {
        enqueue(input, block, true, now);
    }
    return rc;
}

/* The event of an allocation of all that is queued; free its memory with allocated_free. */
static struct sl_block_event
allocated_event(const struct sl_block_tracker *self, int64_t time)
{
    struct sl_block_event_input *inputs = sl_calloc(self->inputs.count, sizeof(*inputs));
    for (size_t i = 0; i < self->inputs.count; i++) {
        const struct sl_tracked_input *input = &self->inputs.items[i];
        uint64_t *ids = sl_calloc(input->queue.count, sizeof(*ids));
        for (size_t j = 0; j < input->queue.count; j++) {
            ids[j] = input->queue.items[j].block.id;
        }
        inputs[i] = (struct sl_block_event_input){input->name, ids, input->queue.count};
    }
    return (struct sl_block_event){.kind = SL_BLOCK_EVENT_ALLOCATED,
                                   .time = time,
                                   .inputs = inputs,
                                   .input_count = self->inputs.count};
}

static void
allocated_free(struct sl_block_event *event)
{
    for (size_t i = 0; i < event->input_count; i++) {
        sl_free((void *)(uintptr_t)event->inputs[i].ids);
    }
    sl_free((void *)(uintptr_t)event->inputs);
}

int
sl_block_tracker_allocate(struct sl_block_tracker *self, int64_t time, int64_t now)
{
    if (self->inputs.count == 0) {
        return 0;
    }
    if (self->last_allocated != SL_STREAMING_UNKNOWN && time <= self->last_allocated) {
        sl_log_info("batch.blocks", "a batch keeps its blocks time=%lld", (long long)time);
        return 0;
    }
    struct sl_block_event event = allocated_event(self, time);
    int rc = log_event(self, &event, now);
    allocated_free(&event);
    if (rc != 0) {
        return sl_err_wrap("give blocks to batch %lld ms", (long long)time);
    }
    struct sl_tracked_batch *batch = batch_at(self, time);
    for (size_t i = 0; i < self->inputs.count; i++) {
        batch->blocks[i] = self->inputs.items[i].queue;
        self->inputs.items[i].queue = (struct sl_block_list){0};
    }
    self->last_allocated = time;
    return 0;
}

const struct sl_block_list *
sl_block_tracker_blocks(const struct sl_block_tracker *self, int32_t input, int64_t time)
{
    for (size_t i = self->batches.count; i-- > 0;) {
        if (self->batches.items[i].time == time) {
            return &self->batches.items[i].blocks[input];
        }
    }
    return NULL;
}

size_t
sl_block_tracker_unallocated(const struct sl_block_tracker *self)
{
    size_t count = 0;
    for (size_t i = 0; i < self->inputs.count; i++) {
        count += self->inputs.items[i].queue.count;
    }
    return count;
}

static int64_t
oldest_record(const struct sl_block_list *list, int64_t oldest)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].logged_at < oldest) {
            oldest = list->items[i].logged_at;
        }
    }
    return oldest;
}

/* Deletes log files, but none that holds the record of a block that is still known. */
static int
clean_log(struct sl_block_tracker *self, int64_t threshold)
{
    for (size_t i = 0; i < self->inputs.count; i++) {
        threshold = oldest_record(&self->inputs.items[i].queue, threshold);
        for (size_t j = 0; j < self->batches.count; j++) {
            threshold = oldest_record(&self->batches.items[j].blocks[i], threshold);
        }
    }
    return sl_wal_clean(self->wal, threshold);
}

int
sl_block_tracker_cleanup(struct sl_block_tracker *self, int64_t threshold, int64_t now)
{
    SL_VEC(int64_t) times = SL_VEC_INIT;
    for (size_t i = 0; i < self->batches.count; i++) {
        if (self->batches.items[i].time < threshold) {
            sl_vec_push(&times, self->batches.items[i].time);
        }
    }
    struct sl_block_event event = {
        .kind = SL_BLOCK_EVENT_CLEANED, .times = times.items, .time_count = times.count};
    int rc = times.count > 0 ? log_event(self, &event, now) : 0;
    if (rc == 0) {
        for (size_t i = 0; i < times.count; i++) {
            cleanup(self, times.items[i]);
        }
        rc = self->wal != NULL ? clean_log(self, threshold) : 0;
    }
    sl_vec_destroy(&times);
    return rc;
}
