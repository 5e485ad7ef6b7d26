// labels: short
#include <sys/stat.h>

#include "base/random.h"
#include "rig.h"

enum { BATCH = 500 };

static void
open_rig(struct rig *rig, const char *dir, int64_t now, int64_t batch)
{
    rig_create(rig, now);
    rig->options.batch_ms = batch;
    rig->options.checkpoint_dir = dir;
    rig->data_dir = dir;
    rig_open(rig);
}

static void
add_state(struct rig *rig, const char *name, int32_t parent, int64_t interval)
{
    uint32_t flags = SL_STREAMING_MUST_CHECKPOINT | SL_STREAMING_PERSIST | SL_STREAMING_STATEFUL |
                     SL_STREAMING_OWNS_FILES;
    int32_t node = rig_add(rig, name, flags, parent, rig->options.batch_ms, 0);
    assert_int_equal(sl_streaming_node_checkpoint(rig->context, node, interval), 0);
}

static size_t
count_files(const char *dir, const char *prefix)
{
    size_t count = 0;
    DIR *open_dir = opendir(dir);
    struct dirent *entry = NULL;
    assert_non_null(open_dir);
    while ((entry = readdir(open_dir)) != NULL) {
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    }
    closedir(open_dir);
    return count;
}

static void
test_T107_the_batch_of_the_checkpoint_runs_again(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    open_rig(&rig, dir, 0, BATCH);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 3 * BATCH);
    rig_stop(&rig, false);
    rig_destroy(&rig);

    open_rig(&rig, dir, 3 * BATCH, BATCH);
    rig_simple_graph(&rig);
    assert_int_equal(rig_restore(&rig, dir), 3 * BATCH);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    assert_int_equal(sl_streaming_zero_time(rig.context), 0);
    rig_advance_to(&rig, 5 * BATCH);
    assert_non_null(strstr(sl_buf_str(&rig.log), "I+0 G1500 C1500 J1500.0 C1500 G2000 C2000 "));
    assert_non_null(strstr(sl_buf_str(&rig.log), "J2500.0 "));
    /* B4: a batch that runs again has its counts. */
    assert_int_equal(sl_streaming_completed(rig.context, 2)->time, 3 * BATCH);
    assert_int_equal(sl_streaming_completed(rig.context, 2)->records, 1);
    rig_destroy(&rig);
    rig_dir_remove(dir);
}

static void
note_output(struct rig *rig, int32_t node, int64_t time, int64_t value)
{
    (void)node;
    sl_buf_printf(rig->ctx, "%lld:%lld ", (long long)(time / BATCH), (long long)value);
}

static void
test_T108_a_window_goes_on_where_it_was(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct sl_buf outputs = {0};
    for (int run = 0; run < 2; run++) {
        struct rig rig;
        open_rig(&rig, dir, run == 0 ? 0 : 7 * BATCH, BATCH);
        rig.output = note_output;
        rig.ctx = &outputs;
        rig_add(&rig, "in", SL_STREAMING_INPUT, -1, BATCH, 0);
        int32_t window =
            rig_add(&rig, "window",
                    SL_STREAMING_MUST_CHECKPOINT | SL_STREAMING_PERSIST | SL_STREAMING_OWNS_FILES,
                    0, BATCH, 4 * BATCH);
        rig_add(&rig, "out", SL_STREAMING_OUTPUT, window, BATCH, 0);
        assert_int_equal(sl_streaming_node_checkpoint(rig.context, window, 2 * BATCH), 0);
        if (run == 1) {
            rig_restore(&rig, dir);
        }
        assert_int_equal(sl_streaming_start(rig.context), 0);
        rig_advance_to(&rig, (run == 0 ? 7 : 10) * BATCH);
        rig_destroy(&rig);
    }
    rig_expect(&outputs, "1:1 2:2 3:3 4:4 5:4 6:4 7:4 7:4 8:4 9:4 10:4 ");
    sl_buf_destroy(&outputs);
    rig_dir_remove(dir);
}

static void
test_T110_pending_and_missed_batches_run_at_once(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    open_rig(&rig, dir, 1000, 2000);
    rig_simple_graph(&rig);
    rig.held_batch = 6000;
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 8000);
    assert_int_equal(count_files(dir, "checkpoint-"), 6);
    struct sl_streaming_progress progress;
    sl_streaming_progress(rig.context, &progress);
    assert_int_equal(progress.completed_batches, 2);
    rig_destroy(&rig);

    open_rig(&rig, dir, 15000, 2000);
    rig_simple_graph(&rig);
    assert_int_equal(rig_restore(&rig, dir), 8000);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    sl_streaming_progress(rig.context, &progress);
    assert_int_equal(progress.completed_batches, 5);
    assert_int_equal(sl_streaming_next_tick(rig.context), 16000);
    for (int32_t i = 0; i < 5; i++) {
        assert_int_equal(sl_streaming_completed(rig.context, i)->time, 14000 - i * 2000);
    }
    rig_destroy(&rig);
    rig_dir_remove(dir);
}

static void
test_the_batches_of_the_down_time_can_be_left_out(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    open_rig(&rig, dir, 1000, 2000);
    rig_simple_graph(&rig);
    rig.held_batch = 6000;
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 8000);
    rig_destroy(&rig);

    rig_create(&rig, 15000);
    rig.options.batch_ms = 2000;
    rig.options.checkpoint_dir = dir;
    rig.options.skip_down_time = 1;
    rig_open(&rig);
    rig_simple_graph(&rig);
    rig_restore(&rig, dir);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 16000);
    assert_null(strstr(sl_buf_str(&rig.log), "G10000"));
    assert_non_null(strstr(sl_buf_str(&rig.log), "J6000.0 "));
    assert_non_null(strstr(sl_buf_str(&rig.log), "J8000.0 "));
    assert_non_null(strstr(sl_buf_str(&rig.log), "J16000.0 "));
    rig_destroy(&rig);
    rig_dir_remove(dir);
}

static void
test_a_kill_between_batches_that_run_again_forgets_none(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    open_rig(&rig, dir, 1000, 2000);
    rig_simple_graph(&rig);
    rig.held_batch = 6000;
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 8000);
    rig_destroy(&rig);
    rig_create(&rig, 15000);
    rig.options.batch_ms = 2000;
    rig.options.checkpoint_dir = dir;
    rig.options.skip_down_time = 1;
    rig_open(&rig);
    rig_simple_graph(&rig);
    rig_restore(&rig, dir);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    while (strstr(sl_buf_str(&rig.log), "C6000 ") == NULL) {
        struct sl_streaming_work work;
        sl_streaming_next(rig.context, &work);
        rig_do(&rig, &work);
    }
    rig_destroy(&rig);
    struct sl_checkpoint checkpoint;
    assert_int_equal(sl_checkpoint_read(dir, &checkpoint), 0);
    assert_int_equal(checkpoint.time, 6000);
    assert_int_equal(checkpoint.pending_count, 2);
    assert_int_equal(checkpoint.pending[0], 6000);
    assert_int_equal(checkpoint.pending[1], 8000);
    sl_checkpoint_destroy(&checkpoint);
    rig_dir_remove(dir);
}

static void
test_a_clock_that_was_set_back_meanwhile_does_not_silence_a_restart(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    open_rig(&rig, dir, 100000, BATCH);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 102000);
    rig_destroy(&rig);
    /* As the system's clock: wall time is a minute behind, the monotonic clock goes on. */
    struct sl_manual_clock clock;
    sl_manual_clock_create(&clock, 102000 - 60000);
    rig_create(&rig, 0);
    rig.options.batch_ms = BATCH;
    rig.options.checkpoint_dir = dir;
    rig.context = sl_streaming_new(&rig.options, &clock.clock, false);
    rig_simple_graph(&rig);
    rig_restore(&rig, dir);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    assert_int_equal(sl_streaming_next_tick(rig.context), 102500);
    sl_manual_clock_advance_ms(&clock, 1000);
    rig_run(&rig);
    assert_non_null(strstr(sl_buf_str(&rig.log), "J102500.0 "));
    assert_non_null(strstr(sl_buf_str(&rig.log), "J103000.0 "));
    assert_null(strstr(sl_buf_str(&rig.log), "G103500 "));
    rig_destroy(&rig);
    rig_dir_remove(dir);
}

static void
test_T113_a_completed_batch_has_two_files(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    open_rig(&rig, dir, 0, BATCH);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    for (int64_t time = BATCH; time <= 8 * BATCH; time += BATCH) {
        rig_advance_to(&rig, time);
        char name[64];
        snprintf(name, sizeof(name), "checkpoint-%lld", (long long)time);
        assert_int_equal(count_files(dir, name), 2);
        assert_true(count_files(dir, "checkpoint-") <= 10);
    }
    rig_destroy(&rig);
    rig_dir_remove(dir);
}

static void
state_graph(struct rig *rig)
{
    rig_add(rig, "in", SL_STREAMING_INPUT, -1, BATCH, 0);
    add_state(rig, "state", 0, 2 * BATCH);
    rig_add(rig, "out", SL_STREAMING_OUTPUT, 1, BATCH, 0);
}

static void
test_T115_data_files_come_and_go_and_are_restored(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct sl_buf outputs = {0};
    struct rig rig;
    int64_t until = 4 * BATCH;
    for (int run = 0; run < 3; run++, until += 4 * BATCH) {
        open_rig(&rig, dir, until - 4 * BATCH, BATCH);
        rig.output = note_output;
        rig.ctx = &outputs;
        state_graph(&rig);
        if (run > 0) {
            rig_restore(&rig, dir);
            assert_true(sl_streaming_datasets(rig.context, 1, NULL, 0) > 0);
        }
        assert_int_equal(sl_streaming_start(rig.context), 0);
        rig_advance_to(&rig, until - 2 * BATCH);
        assert_true(count_files(dir, "data-1-") > 0);
        rig_advance_to(&rig, until);
        char name[64];
        snprintf(name, sizeof(name), "%s/data-1-%lld", dir, (long long)(until - 4 * BATCH));
        assert_int_equal(access(name, F_OK) == 0, false);
        assert_true(count_files(dir, "data-1-") <= 3);
        rig_destroy(&rig);
    }
    rig_expect(&outputs, "1:1 2:2 3:3 4:4 4:4 5:5 6:6 7:7 8:8 8:8 9:9 10:10 11:11 12:12 ");
    sl_buf_destroy(&outputs);
    rig_dir_remove(dir);
}

static void
test_T116_two_stateful_stages_are_both_saved(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    open_rig(&rig, dir, 0, BATCH);
    rig_add(&rig, "in", SL_STREAMING_INPUT, -1, BATCH, 0);
    add_state(&rig, "first", 0, BATCH);
    add_state(&rig, "second", 1, BATCH);
    rig_add(&rig, "out", SL_STREAMING_OUTPUT, 2, BATCH, 0);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, BATCH);
    assert_int_equal(count_files(dir, "data-1-"), 1);
    assert_int_equal(count_files(dir, "data-2-"), 1);
    /* B18: nothing grows over a long run. */
    for (int64_t time = 2 * BATCH; time <= 2000 * BATCH; time += BATCH) {
        rig_advance_to(&rig, time);
        sl_buf_clear(&rig.log);
        sl_buf_clear(&rig.events);
    }
    assert_true(count_files(dir, "data-") <= 6);
    for (int i = 1; i <= 2; i++) {
        const struct sl_graph_node *node = rig.context->graph.nodes.items[i];
        assert_true(node->saved.count <= 4 && node->references.count <= 4);
        assert_true(node->datasets.count <= 4);
    }
    rig_destroy(&rig);
    rig_dir_remove(dir);
}

static void
test_a_graceful_stop_saves_the_state_of_its_last_batch(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    open_rig(&rig, dir, 0, BATCH);
    rig_add(&rig, "in", SL_STREAMING_INPUT, -1, BATCH, 0);
    add_state(&rig, "state", 0, 10 * BATCH);
    rig_add(&rig, "out", SL_STREAMING_OUTPUT, 1, BATCH, 0);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 3 * BATCH);
    assert_int_equal(count_files(dir, "data-"), 0);
    rig_stop(&rig, true);
    assert_non_null(strstr(sl_buf_str(&rig.log), "S2500 C2500 I- "));
    rig_destroy(&rig);
    open_rig(&rig, dir, 5 * BATCH, BATCH);
    rig_add(&rig, "in", SL_STREAMING_INPUT, -1, BATCH, 0);
    add_state(&rig, "state", 0, 10 * BATCH);
    rig_add(&rig, "out", SL_STREAMING_OUTPUT, 1, BATCH, 0);
    rig_restore(&rig, dir);
    struct sl_streaming_dataset dataset;
    assert_int_equal(sl_streaming_find(rig.context, 1, 5 * BATCH, &dataset), SL_STREAMING_FOUND);
    assert_int_equal(rig_value(&rig, dataset.handle), 5);
    rig_destroy(&rig);
    rig_dir_remove(dir);
}

static void
test_B1_B2_a_checkpoint_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    open_rig(&rig, dir, 0, BATCH);
    state_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 4 * BATCH);
    rig_destroy(&rig);
    struct sl_checkpoint checkpoint;
    assert_int_equal(sl_checkpoint_read(dir, &checkpoint), 0);

    open_rig(&rig, dir, 4 * BATCH, 2 * BATCH);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_restore(rig.context, &checkpoint, true), SL_ECONFLICT);
    assert_non_null(strstr(sl_err_last()->msg, "batch interval of 500 ms"));
    rig_destroy(&rig);

    open_rig(&rig, dir, 4 * BATCH, BATCH);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_restore(rig.context, &checkpoint, false), SL_ECONFLICT);
    assert_non_null(strstr(sl_err_last()->msg, "state of stream state"));
    assert_int_equal(sl_streaming_restore(rig.context, &checkpoint, true), 0);
    /* SPARK-13316: what is added now was never initialised. */
    assert_int_equal(rig_add(&rig, "more", SL_STREAMING_OUTPUT, 0, BATCH, 0), SL_ECONFLICT);
    assert_non_null(strstr(sl_err_last()->msg, "restored from a checkpoint"));
    rig_destroy(&rig);
    sl_checkpoint_destroy(&checkpoint);
    rig_dir_remove(dir);
}

/*
 * A program with a receiver and a running sum, killed at any step and started again: blocks are
 * given to one batch only, whatever was acknowledged is processed, a batch that runs again gives
 * what it gave before, and every batch gives it at least once.
 */
enum { LAST_BATCH = 12, TIMES = LAST_BATCH + 8 };

struct history {
    /* What each batch gave, -1 = nothing yet. */
    int64_t output[TIMES];
    int64_t acknowledged;
    uint64_t next_block;
};

static void
check_output(struct rig *rig, int32_t node, int64_t time, int64_t value)
{
    (void)node;
    struct history *history = rig->ctx;
    int64_t index = time / BATCH;
    assert_true(index >= 1 && index < TIMES);
    if (history->output[index] >= 0) {
        assert_int_equal(history->output[index], value);
    }
    history->output[index] = value;
}

static void
open_program(struct rig *rig, struct history *history, const char *dir, int64_t now,
             bool is_restart)
{
    open_rig(rig, dir, now, BATCH);
    rig->output = check_output;
    rig->ctx = history;
    rig_add(rig, "in", SL_STREAMING_INPUT | SL_STREAMING_RECEIVER, -1, BATCH, 0);
    add_state(rig, "state", 0, 2 * BATCH);
    rig_add(rig, "out", SL_STREAMING_OUTPUT, 1, BATCH, 0);
    sl_streaming_worker_add(rig->context, "w", "host", 2);
    if (is_restart) {
        rig_restore(rig, dir);
    }
    assert_int_equal(sl_streaming_start(rig->context), 0);
}

/* Ends a program as kill -9 does: files that were not written yet never are. */
static void
kill_program(struct rig *rig, struct sl_random *random)
{
    struct sl_checkpoint_writer *writer = rig->context->writer;
    pthread_mutex_lock(&writer->lock);
    while (writer->queue.count > 0 && sl_random_below(random, 2) == 0) {
        struct sl_checkpoint_job job = sl_vec_pop(&writer->queue);
        sl_buf_destroy(&job.bytes);
    }
    pthread_mutex_unlock(&writer->lock);
    rig_destroy(rig);
}

static void
bring_block(struct rig *rig, struct history *history, struct sl_random *random)
{
    struct sl_streaming_block block = {.id = history->next_block,
                                       .records = 1 + (int64_t)sl_random_below(random, 9),
                                       .worker = "w"};
    if (sl_streaming_block_add(rig->context, 0, &block) == 0) {
        history->acknowledged += block.records;
        history->next_block++;
    }
}

/* One step: a block, a tick, or the next work. */
static void
make_step(struct rig *rig, struct history *history, struct sl_random *random)
{
    uint64_t choice = sl_random_below(random, 10);
    int64_t tick = sl_streaming_next_tick(rig->context);
    struct sl_streaming_work work;
    if (choice < 2) {
        bring_block(rig, history, random);
    } else if (sl_streaming_next(rig->context, &work) != SL_STREAMING_WORK_NONE) {
        rig_do(rig, &work);
    } else if (tick != SL_STREAMING_UNKNOWN && tick <= LAST_BATCH * BATCH) {
        sl_streaming_clock_set(&rig->clock, tick);
    }
}

static void
check_history(const struct history *history, int64_t last)
{
    for (int64_t i = 1; i <= last; i++) {
        assert_true(history->output[i] >= 0);
        assert_true(i == 1 || history->output[i] >= history->output[i - 1]);
    }
    assert_int_equal(history->output[last], history->acknowledged);
}

static void
run_with_kills(uint64_t seed, int steps_to_kill)
{
    struct sl_random random;
    sl_random_seed(&random, seed);
    char *dir = rig_dir_new();
    struct history history = {.next_block = 1};
    for (int i = 0; i < TIMES; i++) {
        history.output[i] = -1;
    }
    struct rig rig;
    open_program(&rig, &history, dir, 0, false);
    rig_advance_to(&rig, BATCH);
    for (int kills = 0; kills < 4; kills++) {
        for (int step = 0; step < steps_to_kill; step++) {
            make_step(&rig, &history, &random);
        }
        int64_t now = sl_clock_wall_ms(&rig.clock.clock);
        kill_program(&rig, &random);
        open_program(&rig, &history, dir, now, true);
    }
    rig_advance_to(&rig, LAST_BATCH * BATCH);
    rig_stop(&rig, true);
    int64_t last = sl_streaming_completed(rig.context, 0)->time / BATCH;
    check_history(&history, last);
    rig_destroy(&rig);
    rig_dir_remove(dir);
}

static void
test_T120_killed_at_any_step_it_goes_on_as_if_nothing_had_happened(void **state)
{
    (void)state;
    for (int steps = 1; steps <= 60; steps++) {
        run_with_kills((uint64_t)steps * 7919, steps);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_T107_the_batch_of_the_checkpoint_runs_again),
        cmocka_unit_test(test_T108_a_window_goes_on_where_it_was),
        cmocka_unit_test(test_T110_pending_and_missed_batches_run_at_once),
        cmocka_unit_test(test_the_batches_of_the_down_time_can_be_left_out),
        cmocka_unit_test(test_a_kill_between_batches_that_run_again_forgets_none),
        cmocka_unit_test(test_a_clock_that_was_set_back_meanwhile_does_not_silence_a_restart),
        cmocka_unit_test(test_T113_a_completed_batch_has_two_files),
        cmocka_unit_test(test_T115_data_files_come_and_go_and_are_restored),
        cmocka_unit_test(test_T116_two_stateful_stages_are_both_saved),
        cmocka_unit_test(test_a_graceful_stop_saves_the_state_of_its_last_batch),
        cmocka_unit_test(test_B1_B2_a_checkpoint_that_does_not_fit_is_refused),
        cmocka_unit_test(test_T120_killed_at_any_step_it_goes_on_as_if_nothing_had_happened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
