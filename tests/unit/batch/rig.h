#pragma once
/*
 * A driver for tests of contexts: it does what the Lua driver does, with numbers for datasets, and
 * writes down what it was asked for. Time is a manual clock.
 */

#include <dirent.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "batch/clock.h"
#include "batch/streaming.h"
#include "batch/streaming_priv.h"
#include "unit.h"

enum { RIG_NODES_MAX = 16, RIG_HELD_MAX = 64, RIG_NO_TIME = -1 };

struct rig {
    struct sl_streaming_clock clock;
    struct sl_streaming_options options;
    struct sl_streaming *context;
    /* What was asked for, one word each: "G1000", "J1000.0", "D2@1000", ... */
    struct sl_buf log;
    /* Events for listeners, one word each. */
    struct sl_buf events;
    /* Output operation whose job fails; -1 = none, -2 = all. */
    int32_t failing_output;
    /* Generation that fails, and batch whose jobs are held back. */
    int64_t failing_generation;
    int64_t held_batch;
    uint64_t held[RIG_HELD_MAX];
    size_t held_count;
    /* Inputs report this many records a batch; a negative number means no dataset. */
    int64_t records;
    /* How often each node was computed. */
    int computed[RIG_NODES_MAX];
    uint64_t next_handle;
    /* The value of each dataset, by handle: the records of an input, the sum of what a stream was
     * made from, the running sum of a state. */
    SL_VEC(int64_t) values;
    /* Told of the dataset of an output when its job ends well; may be NULL. */
    void (*output)(struct rig *rig, int32_t node, int64_t time, int64_t value);
    void *ctx;
    /* Receivers start and end at once when asked. */
    bool has_willing_receivers;
    /* Logs of received data, by input. */
    struct sl_wal *logs[RIG_NODES_MAX];
    /* Where saved datasets go, "" = not saved. */
    const char *data_dir;
};

static inline void
rig_create(struct rig *rig, int64_t now)
{
    memset(rig, 0, sizeof(*rig));
    sl_streaming_clock_create(&rig->clock, now);
    sl_streaming_options_default(&rig->options);
    rig->failing_output = -1;
    rig->failing_generation = RIG_NO_TIME;
    rig->held_batch = RIG_NO_TIME;
    rig->records = 1;
    rig->has_willing_receivers = true;
}

static inline void
rig_open(struct rig *rig)
{
    rig->context = sl_streaming_new(&rig->options, &rig->clock.clock, true);
    assert_non_null(rig->context);
}

static inline void
rig_close(struct rig *rig)
{
    sl_streaming_free(rig->context);
    rig->context = NULL;
}

static inline void
rig_destroy(struct rig *rig)
{
    rig_close(rig);
    sl_buf_destroy(&rig->log);
    sl_buf_destroy(&rig->events);
    sl_vec_destroy(&rig->values);
}

/* A new dataset of this value. */
static inline uint64_t
rig_dataset(struct rig *rig, int64_t value)
{
    uint64_t handle = ++rig->next_handle;
    while (rig->values.count <= handle) {
        sl_vec_push(&rig->values, 0);
    }
    rig->values.items[handle] = value;
    return handle;
}

static inline int64_t
rig_value(const struct rig *rig, uint64_t handle)
{
    return handle != 0 ? rig->values.items[handle] : 0;
}

static inline int32_t
rig_add(struct rig *rig, const char *name, uint32_t flags, int32_t parent, int64_t slide,
        int64_t window)
{
    struct sl_streaming_node node = {
        .name = name,
        .call_site = "script.lua:7",
        .slide_ms = slide,
        .window_ms = window,
        .parents = parent >= 0 ? &parent : NULL,
        .parent_count = parent >= 0,
        .flags = flags,
    };
    return sl_streaming_node_add(rig->context, &node);
}

/* An input, and one output operation on it. */
static inline int32_t
rig_simple_graph(struct rig *rig)
{
    int32_t input = rig_add(rig, "in", SL_STREAMING_INPUT, -1, rig->options.batch_ms, 0);
    int32_t output = rig_add(rig, "out", SL_STREAMING_OUTPUT, input, rig->options.batch_ms, 0);
    assert_int_equal(input, 0);
    assert_int_equal(output, 1);
    return output;
}

static inline uint64_t rig_get(struct rig *rig, int32_t node, int64_t time);

/* Makes a dataset from those of the parents; 0 = the stream has none. */
static inline uint64_t
rig_compute(struct rig *rig, int32_t number, int64_t time)
{
    struct sl_streaming_node node;
    assert_int_equal(sl_streaming_node_get(rig->context, number, &node), 0);
    rig->computed[number]++;
    if ((node.flags & SL_STREAMING_INPUT) != 0) {
        int64_t records = rig->records;
        if ((node.flags & SL_STREAMING_RECEIVER) != 0) {
            records = 0;
            struct sl_streaming_block block;
            for (int32_t i = 0; sl_streaming_block_get(rig->context, number, time, i, &block) == 0;
                 i++) {
                records += block.records;
            }
        }
        if (records < 0) {
            return 0;
        }
        assert_int_equal(sl_streaming_input_report(rig->context, number, time, records, ""), 0);
        return rig_dataset(rig, records);
    }
    struct sl_streaming_node parent;
    assert_int_equal(sl_streaming_node_get(rig->context, node.parents[0], &parent), 0);
    int64_t from = node.window_ms > 0 ? time - node.window_ms + parent.slide_ms : time;
    bool has_any = node.window_ms > 0;
    int64_t sum = 0;
    for (int64_t at = from; at <= time; at += parent.slide_ms) {
        uint64_t handle = rig_get(rig, node.parents[0], at);
        has_any = has_any || handle != 0;
        sum += rig_value(rig, handle);
    }
    if ((node.flags & SL_STREAMING_STATEFUL) != 0) {
        uint64_t handle = rig_get(rig, number, time - node.slide_ms);
        has_any = has_any || handle != 0;
        sum += rig_value(rig, handle);
    }
    return has_any ? rig_dataset(rig, sum) : 0;
}

static inline uint64_t
rig_get(struct rig *rig, int32_t node, int64_t time)
{
    struct sl_streaming_dataset dataset;
    int found = sl_streaming_find(rig->context, node, time, &dataset);
    assert_true(found >= 0);
    if (found == SL_STREAMING_FOUND) {
        return dataset.handle;
    }
    uint64_t handle = found == SL_STREAMING_COMPUTE ? rig_compute(rig, node, time) : 0;
    if (handle != 0) {
        assert_int_equal(sl_streaming_put(rig->context, node, time, handle), 0);
    }
    return handle;
}

static inline void
rig_generate(struct rig *rig, int64_t time)
{
    if (time == rig->failing_generation) {
        assert_int_equal(sl_streaming_generated(rig->context, time, "no dataset"), 0);
        return;
    }
    for (int32_t i = 0; i < sl_streaming_node_count(rig->context); i++) {
        struct sl_streaming_node node;
        assert_int_equal(sl_streaming_node_get(rig->context, i, &node), 0);
        if ((node.flags & SL_STREAMING_OUTPUT) != 0 && rig_get(rig, i, time) != 0) {
            assert_true(sl_streaming_job_add(rig->context, time, i) >= 0);
        }
    }
    assert_int_equal(sl_streaming_generated(rig->context, time, NULL), 0);
}

static inline void
rig_save(struct rig *rig, int32_t node, int64_t time, uint64_t handle)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/data-%d-%lld", rig->data_dir, node, (long long)time);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%lld", (long long)rig_value(rig, handle));
    fclose(file);
    assert_int_equal(sl_streaming_saved(rig->context, node, time, path), 0);
}

/* Saves what is marked for a checkpoint at a time, or every state. */
static inline void
rig_save_marked(struct rig *rig, int64_t time, bool is_forced)
{
    for (int32_t i = 0; rig->data_dir != NULL && i < sl_streaming_node_count(rig->context); i++) {
        struct sl_streaming_node node;
        struct sl_streaming_dataset dataset = {0};
        assert_int_equal(sl_streaming_node_get(rig->context, i, &node), 0);
        int found = sl_streaming_find(rig->context, i, time, &dataset);
        bool is_marked = (dataset.marks & SL_STREAMING_MARK_CHECKPOINT) != 0;
        if (found == SL_STREAMING_FOUND &&
            (is_marked || (is_forced && (node.flags & SL_STREAMING_STATEFUL) != 0))) {
            rig_save(rig, i, time, dataset.handle);
        }
    }
}

static inline void
rig_job_end(struct rig *rig, uint64_t id, int32_t output, int64_t time)
{
    const struct sl_job_set *set = sl_job_queue_head(&rig->context->jobs);
    bool fails = rig->failing_output == output || rig->failing_output == -2;
    if (!fails) {
        rig_save_marked(rig, time, false);
    }
    if (!fails && rig->output != NULL) {
        assert_non_null(set);
        int32_t node = set->jobs.items[output].node;
        struct sl_streaming_dataset dataset;
        assert_int_equal(sl_streaming_find(rig->context, node, time, &dataset), SL_STREAMING_FOUND);
        rig->output(rig, node, time, rig_value(rig, dataset.handle));
    }
    assert_int_equal(sl_streaming_job_end(rig->context, id, fails ? "boom" : NULL), 0);
}

static inline void
rig_event(struct rig *rig, const struct sl_streaming_work *work)
{
    static const char *const names[] = {"started", "submitted", "batch",   "completed", "op",
                                        "op-done", "r-started", "r-error", "r-stopped"};
    const struct sl_streaming_report *report = sl_streaming_report(rig->context);
    assert_non_null(report);
    sl_buf_printf(&rig->events, "%s", names[work->event]);
    if (work->event >= SL_STREAMING_EVENT_RECEIVER_STARTED) {
        sl_buf_printf(&rig->events, "(%d)", report->receiver.input_id);
    } else if (work->event == SL_STREAMING_EVENT_OPERATION_STARTED ||
               work->event == SL_STREAMING_EVENT_OPERATION_COMPLETED) {
        const char *failure = report->operations[0].failure_reason;
        sl_buf_printf(&rig->events, "%lld.%d%s%s", (long long)report->time,
                      report->operations[0].id, failure != NULL ? ":" : "",
                      failure != NULL ? failure : "");
    } else {
        sl_buf_printf(&rig->events, "%lld", (long long)report->time);
    }
    sl_buf_append_str(&rig->events, " ");
}

static inline void
rig_do(struct rig *rig, const struct sl_streaming_work *work)
{
    long long time = (long long)work->time;
    switch (work->kind) {
    case SL_STREAMING_WORK_GENERATE:
        sl_buf_printf(&rig->log, "G%lld ", time);
        rig_generate(rig, work->time);
        break;
    case SL_STREAMING_WORK_RUN_JOB:
        sl_buf_printf(&rig->log, "J%lld.%d ", time, work->output);
        if (work->time == rig->held_batch) {
            assert_true(rig->held_count < RIG_HELD_MAX);
            rig->held[rig->held_count++] = work->id;
        } else {
            rig_job_end(rig, work->id, work->output, work->time);
        }
        break;
    case SL_STREAMING_WORK_DROP:
        sl_buf_printf(&rig->log, "D%d@%lld ", work->node, time);
        break;
    case SL_STREAMING_WORK_DROP_BLOCK:
        sl_buf_printf(&rig->log, "B%lld ", (long long)work->id);
        break;
    case SL_STREAMING_WORK_CLEAN_LOG:
        if (rig->logs[work->node] != NULL) {
            assert_int_equal(sl_wal_clean(rig->logs[work->node], work->time), 0);
        }
        break;
    case SL_STREAMING_WORK_CHECKPOINT:
        sl_buf_printf(&rig->log, "C%lld ", time);
        assert_int_equal(sl_streaming_checkpoint_write(rig->context, (const uint8_t *)"extra", 5),
                         0);
        break;
    case SL_STREAMING_WORK_SAVE_STATE:
        sl_buf_printf(&rig->log, "S%lld ", time);
        rig_save_marked(rig, work->time, true);
        assert_int_equal(sl_streaming_state_saved(rig->context), 0);
        break;
    case SL_STREAMING_WORK_START_RECEIVER:
        sl_buf_printf(&rig->log, "R+%d/%d ", work->node, (int)work->id);
        if (rig->has_willing_receivers) {
            assert_int_equal(
                sl_streaming_receiver_started(rig->context, work->node, (int32_t)work->id), 0);
        }
        break;
    case SL_STREAMING_WORK_STOP_RECEIVER:
        sl_buf_printf(&rig->log, "R-%d ", work->node);
        if (rig->has_willing_receivers) {
            assert_int_equal(
                sl_streaming_receiver_ended(rig->context, work->node, NULL, SL_STREAMING_UNKNOWN),
                0);
        }
        break;
    case SL_STREAMING_WORK_START_INPUTS:
        sl_buf_printf(&rig->log, "I+%lld ", time);
        break;
    case SL_STREAMING_WORK_STOP_INPUTS:
        sl_buf_append_str(&rig->log, "I- ");
        break;
    case SL_STREAMING_WORK_RATE:
        sl_buf_printf(&rig->log, "rate%g ", work->rate);
        break;
    case SL_STREAMING_WORK_EVENT:
        rig_event(rig, work);
        break;
    default:
        fail_msg("work of kind %u", work->kind);
    }
}

/* Works until there is nothing to do now, checkpoint files included; returns what came last. */
static inline struct sl_streaming_work
rig_run(struct rig *rig)
{
    struct sl_streaming_work work;
    for (;;) {
        uint32_t kind = (uint32_t)sl_streaming_next(rig->context, &work);
        assert_int_equal(kind, work.kind);
        if (kind != SL_STREAMING_WORK_NONE && kind != SL_STREAMING_WORK_STOPPED) {
            rig_do(rig, &work);
            continue;
        }
        if (kind == SL_STREAMING_WORK_STOPPED || rig->context->writer == NULL ||
            sl_checkpoint_writer_is_idle(rig->context->writer)) {
            return work;
        }
        sl_streaming_wait(rig->context, 10000);
    }
}

/* Moves the clock on tick by tick, as the public advance does. */
static inline void
rig_advance_to(struct rig *rig, int64_t time)
{
    rig_run(rig);
    for (;;) {
        int64_t tick = sl_streaming_next_tick(rig->context);
        if (tick == SL_STREAMING_UNKNOWN || tick > time) {
            break;
        }
        sl_streaming_clock_set(&rig->clock, tick);
        rig_run(rig);
    }
    sl_streaming_clock_set(&rig->clock, time);
    rig_run(rig);
}

/* Stops and goes on until all is stopped, moving the clock to what the context waits for. Returns
 * how long it took in clock time. */
static inline int64_t
rig_stop(struct rig *rig, bool is_graceful)
{
    int64_t from = sl_clock_wall_ms(&rig->clock.clock);
    assert_true(sl_streaming_stop(rig->context, is_graceful) >= 0);
    for (int turns = 0; turns < 10000; turns++) {
        struct sl_streaming_work work = rig_run(rig);
        if (work.kind == SL_STREAMING_WORK_STOPPED) {
            assert_int_equal(sl_streaming_state(rig->context), SL_STREAMING_STOPPED);
            return sl_clock_wall_ms(&rig->clock.clock) - from;
        }
        assert_int_not_equal(work.time, SL_STREAMING_UNKNOWN);
        if (work.time > sl_clock_wall_ms(&rig->clock.clock)) {
            sl_streaming_clock_set(&rig->clock, work.time);
        }
    }
    fail_msg("the context does not stop");
    return 0;
}

/* Takes over the checkpoint of the directory, with the datasets it names. Returns its time. */
static inline int64_t
rig_restore(struct rig *rig, const char *dir)
{
    struct sl_checkpoint checkpoint;
    assert_int_equal(sl_checkpoint_read(dir, &checkpoint), 0);
    assert_int_equal(sl_streaming_restore(rig->context, &checkpoint, false), 0);
    int64_t time = checkpoint.time;
    sl_checkpoint_destroy(&checkpoint);
    for (int32_t node = 0; node < sl_streaming_node_count(rig->context); node++) {
        struct sl_streaming_saved saved;
        for (int32_t i = 0; sl_streaming_saved_get(rig->context, node, i, &saved) == 0; i++) {
            FILE *file = fopen(saved.text, "r");
            long long value = 0;
            assert_non_null(file);
            assert_int_equal(fscanf(file, "%lld", &value), 1);
            fclose(file);
            assert_int_equal(
                sl_streaming_put(rig->context, node, saved.time, rig_dataset(rig, value)), 0);
        }
    }
    return time;
}

/* What was written down since the last call, and forgets it. */
static inline void
rig_expect(struct sl_buf *written, const char *expected)
{
    assert_string_equal(sl_buf_str(written), expected);
    sl_buf_clear(written);
}

/* A new empty directory, in memory where there is a place for it: these tests sync many files. */
static inline char *
rig_dir_new(void)
{
    bool has_memory = access("/dev/shm", W_OK | X_OK) == 0;
    char *dir = sl_asprintf("%s/sl-batch-XXXXXX", has_memory ? "/dev/shm" : P_tmpdir);
    assert_non_null(mkdtemp(dir));
    return dir;
}

static inline void
rig_dir_remove(char *dir)
{
    char *command = sl_asprintf("rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
    sl_free(command);
    sl_free(dir);
}
