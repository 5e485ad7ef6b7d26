// labels: short
/* What a driver may get wrong between generation and checkpoint, and what is kept of batches. */
#include "rig.h"

/* Runs until a work of this kind is there, and gives it without doing it. */
static struct sl_streaming_work
until(struct rig *rig, uint32_t kind)
{
    struct sl_streaming_work work;
    while ((uint32_t)sl_streaming_next(rig->context, &work) != kind) {
        assert_int_not_equal(work.kind, SL_STREAMING_WORK_NONE);
        rig_do(rig, &work);
    }
    return work;
}

static void
test_generation_is_for_the_batch_that_was_asked(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    assert_int_equal(sl_streaming_generated(rig.context, 1000, NULL), SL_ECONFLICT);
    assert_int_equal(sl_streaming_job_add(rig.context, 1000, 1), SL_ECONFLICT);
    sl_streaming_clock_set(&rig.clock, 1000);
    assert_int_equal(until(&rig, SL_STREAMING_WORK_GENERATE).time, 1000);
    assert_int_equal(sl_streaming_generated(rig.context, 2000, NULL), SL_ECONFLICT);
    assert_int_equal(sl_streaming_job_add(rig.context, 2000, 1), SL_ECONFLICT);
    assert_int_equal(sl_streaming_job_add(rig.context, 1000, 0), SL_EINVAL);
    assert_int_equal(sl_streaming_job_add(rig.context, 1000, 7), SL_EINVAL);
    assert_int_equal(sl_streaming_job_add(rig.context, 1000, 1), 0);
    assert_int_equal(sl_streaming_generated(rig.context, 1000, NULL), 0);
    assert_int_equal(sl_streaming_generated(rig.context, 1000, NULL), SL_ECONFLICT);
    rig_run(&rig);
    rig_expect(&rig.log, "I+0 J1000.0 ");
    rig_destroy(&rig);
}

static void
test_input_report_is_for_inputs(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_input_report(rig.context, 1, 1000, 1, ""), SL_EINVAL);
    assert_int_equal(sl_streaming_input_report(rig.context, -1, 1000, 1, ""), SL_EINVAL);
    assert_int_equal(sl_streaming_input_report(rig.context, 2, 1000, 1, ""), SL_EINVAL);
    assert_int_equal(sl_streaming_input_report(rig.context, 0, 1000, 1, "a.txt"), 0);
    rig_destroy(&rig);
}

static void
test_a_batch_without_jobs_is_told_to_nobody(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig.records = -1;
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 2000);
    rig_expect(&rig.log, "I+0 G1000 G2000 ");
    rig_expect(&rig.events, "started0 ");
    struct sl_streaming_progress progress;
    sl_streaming_progress(rig.context, &progress);
    assert_int_equal(progress.completed_batches, 0);
    assert_null(sl_streaming_completed(rig.context, 0));
    rig_destroy(&rig);
}

static void
test_saved_is_kept_by_stream_and_index(void **state)
{
    (void)state;
    struct rig rig;
    struct sl_streaming_saved saved;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_saved(rig.context, 7, 1000, "file"), SL_EINVAL);
    assert_int_equal(sl_streaming_saved_get(rig.context, 7, 0, &saved), SL_EINVAL);
    assert_int_equal(sl_streaming_saved_get(rig.context, 0, 0, &saved), SL_ENOTFOUND);
    assert_int_equal(sl_streaming_saved(rig.context, 0, 1000, "file"), 0);
    assert_int_equal(sl_streaming_saved_get(rig.context, 0, -1, &saved), SL_ENOTFOUND);
    assert_int_equal(sl_streaming_saved_get(rig.context, 0, 1, &saved), SL_ENOTFOUND);
    assert_int_equal(sl_streaming_saved_get(rig.context, 1, 0, &saved), SL_ENOTFOUND);
    assert_int_equal(sl_streaming_saved_get(rig.context, 0, 0, &saved), 0);
    assert_int_equal(saved.time, 1000);
    assert_string_equal(saved.text, "file");
    rig_destroy(&rig);
}

static void
test_checkpoint_write_and_state_saved_answer_a_question(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    rig_create(&rig, 0);
    rig.options.checkpoint_dir = dir;
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_checkpoint_write(rig.context, NULL, 0), SL_ECONFLICT);
    assert_int_equal(sl_streaming_state_saved(rig.context), SL_ECONFLICT);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    sl_streaming_clock_set(&rig.clock, 1000);
    assert_int_equal(until(&rig, SL_STREAMING_WORK_CHECKPOINT).time, 1000);
    /* Nothing else is generated before it is written. */
    sl_streaming_clock_set(&rig.clock, 2000);
    struct sl_streaming_work work;
    while (sl_streaming_next(rig.context, &work) != SL_STREAMING_WORK_NONE) {
        assert_int_not_equal(work.kind, SL_STREAMING_WORK_GENERATE);
        rig_do(&rig, &work);
    }
    assert_int_equal(sl_streaming_checkpoint_write(rig.context, (const uint8_t *)"own", 3), 0);
    assert_int_equal(sl_streaming_checkpoint_write(rig.context, NULL, 0), SL_ECONFLICT);
    assert_int_equal(until(&rig, SL_STREAMING_WORK_GENERATE).time, 2000);
    rig_generate(&rig, 2000);
    rig_run(&rig);
    rig_stop(&rig, false);
    struct sl_checkpoint checkpoint;
    assert_int_equal(sl_checkpoint_read(dir, &checkpoint), 0);
    assert_int_equal(checkpoint.batch_ms, 1000);
    assert_int_equal(checkpoint.stream_count, 2);
    sl_checkpoint_destroy(&checkpoint);
    rig_destroy(&rig);
    rig_dir_remove(dir);
}

static void
test_slow_batches_are_counted_in_a_row(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    struct sl_streaming_progress progress;
    for (int64_t time = 1000; time <= 2000; time += 1000) {
        rig.held_batch = time;
        rig.held_count = 0;
        rig_advance_to(&rig, time);
        /* 1.5 intervals, with its end before the next tick but one. */
        sl_streaming_clock_set(&rig.clock, time + 1500);
        rig_job_end(&rig, rig.held[0], 0, time);
        sl_streaming_progress(rig.context, &progress);
        assert_int_equal(progress.slow_batches, time / 1000);
        assert_int_equal(progress.last_processing_delay_ms, 1500);
        sl_streaming_clock_set(&rig.clock, time);
    }
    rig.held_batch = RIG_NO_TIME;
    rig_advance_to(&rig, 3000);
    sl_streaming_progress(rig.context, &progress);
    assert_int_equal(progress.slow_batches, 0);
    assert_int_equal(progress.completed_batches, 3);
    rig_destroy(&rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_generation_is_for_the_batch_that_was_asked),
    cmocka_unit_test(test_input_report_is_for_inputs),
    cmocka_unit_test(test_a_batch_without_jobs_is_told_to_nobody),
    cmocka_unit_test(test_saved_is_kept_by_stream_and_index),
    cmocka_unit_test(test_checkpoint_write_and_state_saved_answer_a_question),
    cmocka_unit_test(test_slow_batches_are_counted_in_a_row),
};

UNIT_MAIN(tests)
