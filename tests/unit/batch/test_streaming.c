// labels: short
#include "rig.h"

static void
test_T10_the_first_batch_is_one_interval_after_zero(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    rig_expect(&rig.log, "I+0 ");
    assert_int_equal(sl_streaming_zero_time(rig.context), 0);
    struct sl_streaming_dataset dataset;
    assert_int_equal(sl_streaming_find(rig.context, 0, 0, &dataset), SL_STREAMING_NOTHING);
    assert_int_equal(sl_streaming_find(rig.context, 0, 1500, &dataset), SL_STREAMING_NOTHING);
    assert_int_equal(sl_streaming_find(rig.context, 0, 1000, &dataset), SL_STREAMING_COMPUTE);
    assert_int_equal(sl_streaming_next_tick(rig.context), 1000);
    rig_advance_to(&rig, 2500);
    rig_expect(&rig.log, "G1000 J1000.0 G2000 J2000.0 D1@1000 D0@1000 ");
    rig_destroy(&rig);
}

static void
test_T92_four_batches_give_their_events(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 4000);
    rig_expect(&rig.events, "started0 submitted1000 batch1000 op1000.0 op-done1000.0 completed1000 "
                            "submitted2000 batch2000 op2000.0 op-done2000.0 completed2000 "
                            "submitted3000 batch3000 op3000.0 op-done3000.0 completed3000 "
                            "submitted4000 batch4000 op4000.0 op-done4000.0 completed4000 ");
    struct sl_streaming_progress progress;
    sl_streaming_progress(rig.context, &progress);
    assert_int_equal(progress.completed_batches, 4);
    assert_int_equal(progress.processed_records, 4);
    assert_int_equal(progress.received_records, 4);
    int64_t before = INT64_MAX;
    for (int32_t i = 0; i < 4; i++) {
        const struct sl_streaming_report *report = sl_streaming_completed(rig.context, i);
        assert_int_equal(report->records, 1);
        assert_int_equal(report->input_count, 1);
        assert_true(report->submission_time < before);
        assert_true(report->scheduling_delay_ms >= 0 && report->processing_delay_ms >= 0);
        assert_int_equal(report->total_delay_ms,
                         report->scheduling_delay_ms + report->processing_delay_ms);
        before = report->submission_time;
    }
    assert_null(sl_streaming_completed(rig.context, 4));
    rig_destroy(&rig);
}

static void
test_generation_runs_before_jobs_that_are_held_back(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig.held_batch = 1000;
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 4000);
    /* A job that takes 3 s delays no tick, and no later batch overtakes it. */
    rig_expect(&rig.log, "I+0 G1000 J1000.0 G2000 G3000 G4000 ");
    struct sl_streaming_progress progress;
    sl_streaming_progress(rig.context, &progress);
    assert_int_equal(progress.running_batches, 1);
    assert_int_equal(progress.waiting_batches, 3);
    assert_false(sl_streaming_is_idle(rig.context));
    rig_job_end(&rig, rig.held[0], 0, 1000);
    rig_run(&rig);
    rig_expect(&rig.log,
               "J2000.0 D1@1000 D0@1000 J3000.0 D1@2000 D0@2000 J4000.0 D1@3000 D0@3000 ");
    const struct sl_streaming_report *first = sl_streaming_completed(rig.context, 3);
    assert_int_equal(first->scheduling_delay_ms, 0);
    assert_int_equal(first->processing_delay_ms, 3000);
    const struct sl_streaming_report *second = sl_streaming_completed(rig.context, 2);
    assert_int_equal(second->scheduling_delay_ms, 2000);
    assert_int_equal(second->total_delay_ms, 2000);
    assert_true(sl_streaming_is_idle(rig.context));
    rig_destroy(&rig);
}

static void
test_outputs_of_one_batch_run_in_parallel_and_batches_in_order(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig.options.concurrent_jobs = 2;
    rig.held_batch = 1000;
    rig_open(&rig);
    rig_simple_graph(&rig);
    rig_add(&rig, "b", SL_STREAMING_OUTPUT, 0, 1000, 0);
    rig_add(&rig, "c", SL_STREAMING_OUTPUT, 0, 1000, 0);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 2000);
    rig_expect(&rig.log, "I+0 G1000 J1000.0 J1000.1 G2000 ");
    rig_job_end(&rig, rig.held[1], 1, 1000);
    rig_run(&rig);
    rig_expect(&rig.log, "J1000.2 ");
    assert_int_equal(sl_streaming_job_end(rig.context, rig.held[1], NULL), SL_ENOTFOUND);
    rig_job_end(&rig, rig.held[2], 2, 1000);
    rig_run(&rig);
    rig_expect(&rig.log, "");
    rig_job_end(&rig, rig.held[0], 0, 1000);
    rig_run(&rig);
    rig_expect(&rig.log, "J2000.0 J2000.1 J2000.2 D3@1000 D2@1000 D1@1000 D0@1000 ");
    rig_destroy(&rig);
}

static void
test_T94_a_failed_operation_is_told_and_the_batch_stays_pending(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    rig_create(&rig, 0);
    rig.options.checkpoint_dir = dir;
    rig_open(&rig);
    rig_simple_graph(&rig);
    rig_add(&rig, "b", SL_STREAMING_OUTPUT, 0, 1000, 0);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    /* Upstream looks at the job that ends last only: this one hides the failure there. */
    rig.failing_output = 0;
    rig_advance_to(&rig, 1000);
    rig_expect(&rig.events, "started0 submitted1000 batch1000 op1000.0 op-done1000.0:boom "
                            "op1000.1 op-done1000.1 completed1000 ");
    const struct sl_streaming_report *report = sl_streaming_completed(rig.context, 0);
    assert_string_equal(report->operations[0].failure_reason, "boom");
    assert_string_equal(report->operations[0].call_site, "script.lua:7");
    assert_null(report->operations[1].failure_reason);
    rig.failing_output = -2;
    rig_advance_to(&rig, 2000);
    report = sl_streaming_completed(rig.context, 0);
    assert_string_equal(report->operations[0].failure_reason, "boom");
    assert_string_equal(report->operations[1].failure_reason, "boom");
    rig.failing_output = -1;
    rig_advance_to(&rig, 3000);
    struct sl_streaming_progress progress;
    sl_streaming_progress(rig.context, &progress);
    assert_int_equal(progress.completed_batches, 3);
    assert_int_equal(progress.failed_batches, 2);
    struct sl_checkpoint checkpoint;
    assert_int_equal(sl_checkpoint_read(dir, &checkpoint), 0);
    assert_int_equal(checkpoint.time, 3000);
    assert_int_equal(checkpoint.pending_count, 2);
    assert_int_equal(checkpoint.pending[0], 1000);
    assert_int_equal(checkpoint.pending[1], 2000);
    sl_checkpoint_destroy(&checkpoint);
    rig_destroy(&rig);
    rig_dir_remove(dir);
}

static void
test_a_failed_generation_still_posts_its_checkpoint(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    rig_create(&rig, 0);
    rig.options.checkpoint_dir = dir;
    rig.failing_generation = 1000;
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 2000);
    rig_expect(&rig.log, "I+0 G1000 C1000 G2000 C2000 J2000.0 C2000 ");
    rig_destroy(&rig);
    rig_dir_remove(dir);
}

static void
test_T98_states_follow_each_other_and_never_go_back(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_state(rig.context), SL_STREAMING_INITIALIZED);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    assert_int_equal(sl_streaming_state(rig.context), SL_STREAMING_ACTIVE);
    assert_int_equal(sl_streaming_start(rig.context), 1);
    assert_int_equal(rig_add(&rig, "late", SL_STREAMING_OUTPUT, 0, 1000, 0), SL_ECONFLICT);
    assert_non_null(strstr(sl_err_last()->msg, "has been started"));
    rig_stop(&rig, false);
    assert_int_equal(sl_streaming_stop(rig.context, false), 1);
    assert_int_equal(sl_streaming_state(rig.context), SL_STREAMING_STOPPED);
    assert_int_equal(sl_streaming_start(rig.context), SL_ECONFLICT);
    assert_int_equal(rig_add(&rig, "late", SL_STREAMING_OUTPUT, 0, 1000, 0), SL_ECONFLICT);
    assert_non_null(strstr(sl_err_last()->msg, "has been stopped"));
    rig_destroy(&rig);
}

static void
test_T98_a_context_that_never_started_stops_at_once(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(rig_stop(&rig, true), 0);
    assert_int_equal(sl_streaming_start(rig.context), SL_ECONFLICT);
    rig_destroy(&rig);
}

static void
test_T99_a_start_that_fails_never_becomes_active(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_add(&rig, "in", SL_STREAMING_INPUT, -1, 1000, 0);
    assert_int_equal(sl_streaming_start(rig.context), SL_EINVAL);
    assert_int_equal(sl_streaming_state(rig.context), SL_STREAMING_STOPPED);
    struct sl_streaming_work work;
    assert_int_equal(sl_streaming_next(rig.context, &work), SL_STREAMING_WORK_STOPPED);
    rig_destroy(&rig);
}

static void
test_options_are_checked(void **state)
{
    (void)state;
    struct sl_streaming_options options;
    sl_streaming_options_default(&options);
    options.batch_ms = 0;
    assert_null(sl_streaming_new(&options, sl_clock_system(), false));
    assert_non_null(strstr(sl_err_last()->msg, "batch interval"));
    sl_streaming_options_default(&options);
    options.block_interval_ms = 0;
    assert_null(sl_streaming_new(&options, sl_clock_system(), false));
    sl_streaming_options_default(&options);
    options.phase_ms = 1000;
    assert_null(sl_streaming_new(&options, sl_clock_system(), false));
    sl_streaming_options_default(&options);
    options.min_rate = 0;
    assert_null(sl_streaming_new(&options, sl_clock_system(), false));
    sl_streaming_options_default(&options);
    options.checkpoint_dir = "/proc/not/here";
    assert_null(sl_streaming_new(&options, sl_clock_system(), false));
    assert_int_equal(sl_err_last()->code, SL_ESYS);
}

static void
test_T106_the_newest_thousand_batches_are_retained(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    for (int64_t time = 1000; time <= 1010000; time += 1000) {
        rig_advance_to(&rig, time);
        sl_buf_clear(&rig.log);
        sl_buf_clear(&rig.events);
    }
    struct sl_streaming_progress progress;
    sl_streaming_progress(rig.context, &progress);
    assert_int_equal(progress.completed_batches, 1010);
    assert_int_equal(progress.retained_batches, 1000);
    assert_int_equal(sl_streaming_completed(rig.context, 0)->time, 1010000);
    assert_int_equal(sl_streaming_completed(rig.context, 999)->time, 11000);
    assert_null(sl_streaming_completed(rig.context, 1000));
    rig_destroy(&rig);
}

static void
test_nothing_piles_up_over_empty_batches(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig.options.batch_ms = 100;
    rig.options.retained_batches = 10;
    rig.records = -1;
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    for (int64_t time = 100; time <= 100 * 10000; time += 100) {
        rig_advance_to(&rig, time);
        sl_buf_clear(&rig.log);
    }
    assert_int_equal(rig.computed[0], 10000);
    assert_int_equal(sl_streaming_datasets(rig.context, 0, NULL, 0), 0);
    assert_int_equal(rig.context->jobs.sets.count, 0);
    assert_int_equal(rig.context->loop.count, 0);
    assert_int_equal(rig.context->input_info.entries.count, 0);
    assert_true(rig.context->works.capacity < 64 && rig.context->loop.capacity < 64);
    rig_expect(&rig.events, "started0 ");
    rig_destroy(&rig);
}

static void
test_B5_a_failed_job_does_not_hold_up_a_graceful_stop(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig.failing_output = 0;
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 3000);
    assert_true(rig_stop(&rig, true) <= 2000);
    rig_destroy(&rig);
}

static void
test_B5_a_sliding_stream_off_its_slide_does_not_hold_up_a_stop(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_add(&rig, "in", SL_STREAMING_INPUT, -1, 1000, 0);
    rig_add(&rig, "window", SL_STREAMING_OUTPUT, 0, 5000, 5000);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 6000);
    rig_expect(&rig.log, "I+0 G1000 G2000 G3000 G4000 G5000 J5000.0 G6000 ");
    assert_true(rig_stop(&rig, true) <= 2000);
    rig_expect(&rig.log, "G7000 G8000 I- ");
    rig_destroy(&rig);
}

static void
test_a_graceful_stop_finishes_what_was_generated_and_stops_inputs_last(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 1000);
    sl_buf_clear(&rig.log);
    rig_stop(&rig, true);
    rig_expect(&rig.log, "G2000 J2000.0 D1@1000 D0@1000 G3000 J3000.0 D1@2000 D0@2000 I- ");
    rig_destroy(&rig);
}

static void
test_an_immediate_stop_starts_nothing_more(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig.held_batch = 1000;
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 3000);
    sl_buf_clear(&rig.log);
    /* The running job does not end: it is waited for 2 s. */
    assert_int_equal(rig_stop(&rig, false), 2000);
    rig_expect(&rig.log, "I- ");
    rig_destroy(&rig);
}

static void
test_B20_the_last_wait_of_a_graceful_stop_is_a_setting(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig.held_batch = 1000;
    rig.options.graceful_timeout_ms = 5000;
    rig.options.final_timeout_ms = 60000;
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 1000);
    assert_int_equal(rig_stop(&rig, true), 65000);
    rig_destroy(&rig);
}

static void
test_a_graceful_stop_can_be_made_immediate(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig.held_batch = 1000;
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 1000);
    assert_int_equal(sl_streaming_stop(rig.context, true), 0);
    rig_run(&rig);
    assert_int_equal(rig_stop(&rig, false), 2000);
    rig_destroy(&rig);
}

static void
test_T102_a_stop_at_the_end_of_time_generates_in_peace(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 1000);
    assert_int_equal(sl_streaming_stop(rig.context, true), 0);
    sl_streaming_clock_set(&rig.clock, INT64_MAX);
    rig_stop(&rig, true);
    struct sl_streaming_progress progress;
    sl_streaming_progress(rig.context, &progress);
    assert_int_equal(progress.failed_batches, 0);
    rig_destroy(&rig);
}

/* A graph with a receiver, and two slots for it and its jobs. */
static int32_t
receiver_graph(struct rig *rig)
{
    int32_t input = rig_add(rig, "in", SL_STREAMING_INPUT | SL_STREAMING_RECEIVER, -1,
                            rig->options.batch_ms, 0);
    rig_add(rig, "out", SL_STREAMING_OUTPUT, input, rig->options.batch_ms, 0);
    assert_int_equal(sl_streaming_worker_add(rig->context, "w0", "host", 1), 0);
    assert_int_equal(sl_streaming_worker_add(rig->context, "w1", "host", 1), 1);
    return input;
}

static int
add_block(struct rig *rig, int32_t node, uint64_t id, int64_t records)
{
    struct sl_streaming_block block = {.id = id, .records = records, .worker = "w0"};
    return sl_streaming_block_add(rig->context, node, &block);
}

static void
test_T95_the_life_of_a_receiver_is_told(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    int32_t input = receiver_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    assert_int_equal(sl_streaming_receiver_error(rig.context, input, "broken pipe"), 0);
    rig_run(&rig);
    assert_int_equal(sl_streaming_receiver_ended(rig.context, input, "bye", 500), 0);
    rig_run(&rig);
    rig_expect(&rig.events, "started0 r-started(0) r-error(0) r-stopped(0) ");
    rig_expect(&rig.log, "R+0/0 I+0 ");
    struct sl_streaming_progress progress;
    sl_streaming_progress(rig.context, &progress);
    assert_int_equal(progress.receivers, 1);
    assert_int_equal(progress.active_receivers, 0);
    /* T149, T150: it comes back after its delay and is seen to start a second time. */
    sl_streaming_clock_set(&rig.clock, 499);
    rig_run(&rig);
    rig_expect(&rig.log, "");
    sl_streaming_clock_set(&rig.clock, 500);
    rig_run(&rig);
    rig_expect(&rig.log, "R+0/0 ");
    rig_expect(&rig.events, "r-started(0) ");
    rig_destroy(&rig);
}

static void
test_T149_a_receiver_that_ended_by_itself_starts_again(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    int32_t input = receiver_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    assert_int_equal(sl_streaming_receiver_ended(rig.context, input, NULL, SL_STREAMING_UNKNOWN),
                     0);
    rig_run(&rig);
    struct sl_streaming_work work;
    assert_int_equal(sl_streaming_next(rig.context, &work), SL_STREAMING_WORK_NONE);
    assert_int_equal(work.time, 1000);
    sl_streaming_clock_set(&rig.clock, 2000);
    rig_run(&rig);
    assert_non_null(strstr(sl_buf_str(&rig.events), "r-stopped(0)"));
    assert_non_null(strstr(strstr(sl_buf_str(&rig.events), "r-stopped(0)"), "r-started(0)"));
    rig_destroy(&rig);
}

static void
test_B10_a_receiver_moves_when_its_worker_is_gone(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    receiver_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    assert_int_equal(sl_streaming_worker_remove(rig.context, 0), 0);
    assert_int_equal(sl_streaming_worker_remove(rig.context, 5), SL_EINVAL);
    rig_run(&rig);
    rig_expect(&rig.log, "R+0/0 I+0 R+0/1 ");
    rig_expect(&rig.events, "started0 r-started(0) r-stopped(0) r-started(0) ");
    /* The one that was left behind is told to end. */
    assert_int_equal(sl_streaming_receiver_started(rig.context, 0, 0), SL_EFENCED);
    rig_destroy(&rig);
}

static void
test_B11_a_slot_for_each_receiver_is_not_enough(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_add(&rig, "in", SL_STREAMING_INPUT | SL_STREAMING_RECEIVER, -1, 1000, 0);
    rig_add(&rig, "out", SL_STREAMING_OUTPUT, 0, 1000, 0);
    assert_int_equal(sl_streaming_worker_add(rig.context, "w", "host", 1), 0);
    assert_int_equal(sl_streaming_start(rig.context), SL_EUNSATISFIABLE);
    assert_non_null(strstr(sl_err_last()->msg, "slots 1"));
    rig_destroy(&rig);
}

static void
test_T100_a_graceful_stop_waits_for_a_slow_receiver(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig.options.graceful_timeout_ms = 20000000;
    rig_open(&rig);
    int32_t input = receiver_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    rig.has_willing_receivers = false;
    assert_int_equal(sl_streaming_stop(rig.context, true), 0);
    /* One record a second, long after it was asked to stop. */
    for (uint64_t i = 1; i <= 15; i++) {
        assert_int_equal(add_block(&rig, input, i, 1), 0);
        rig_advance_to(&rig, (int64_t)i * 1000 + 500);
    }
    assert_int_equal(sl_streaming_receiver_ended(rig.context, input, NULL, SL_STREAMING_UNKNOWN),
                     0);
    assert_true(rig_stop(&rig, true) <= 3000);
    struct sl_streaming_progress progress;
    sl_streaming_progress(rig.context, &progress);
    assert_int_equal(progress.processed_records, 15);
    assert_int_equal(add_block(&rig, input, 99, 1), SL_ECLOSED);
    rig_destroy(&rig);
}

static void
test_T101_a_stop_right_after_the_start_does_not_hang(void **state)
{
    (void)state;
    for (int is_graceful = 0; is_graceful < 2; is_graceful++) {
        struct rig rig;
        rig_create(&rig, 0);
        rig_open(&rig);
        receiver_graph(&rig);
        assert_int_equal(sl_streaming_start(rig.context), 0);
        assert_true(rig_stop(&rig, is_graceful != 0) <= 30000);
        /* B10: one that comes up during the stop is refused. */
        assert_int_equal(sl_streaming_receiver_started(rig.context, 0, 0), SL_ECLOSED);
        rig_destroy(&rig);
    }
}

static void
test_T101_a_receiver_that_missed_the_stop_is_given_up(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    receiver_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    rig.has_willing_receivers = false;
    assert_int_equal(rig_stop(&rig, false), 10000);
    rig_destroy(&rig);
}

static void
test_T97_blocks_of_a_batch_that_runs_are_kept(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    rig_create(&rig, 0);
    rig.options.checkpoint_dir = dir;
    rig.held_batch = 3000;
    rig_open(&rig);
    int32_t input = receiver_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    for (uint64_t i = 1; i <= 10; i++) {
        assert_int_equal(add_block(&rig, input, i, 5), 0);
        assert_int_equal(add_block(&rig, input, i, 5), 1);
        rig_advance_to(&rig, (int64_t)i * 1000);
    }
    assert_int_equal(sl_streaming_block_count(rig.context, input, 3000), 1);
    assert_null(strstr(sl_buf_str(&rig.log), "B2 "));
    assert_null(strstr(sl_buf_str(&rig.log), "B3 "));
    struct sl_streaming_block block;
    assert_int_equal(sl_streaming_block_get(rig.context, input, 3000, 0, &block), 0);
    assert_int_equal(block.id, 3);
    assert_true(block.is_valid);
    assert_int_equal(sl_streaming_block_get(rig.context, input, 3000, 1, &block), SL_ENOTFOUND);
    rig_job_end(&rig, rig.held[0], 0, 3000);
    rig_run(&rig);
    for (int i = 1; i <= 10; i++) {
        char word[16];
        snprintf(word, sizeof(word), "B%d ", i);
        assert_int_equal(strstr(sl_buf_str(&rig.log), word) != NULL, i <= 9);
    }
    rig_destroy(&rig);
    rig_dir_remove(dir);
}

static void
test_T152_each_input_has_a_log_clean_up_of_its_own(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    rig_create(&rig, 0);
    rig.options.batch_ms = 500;
    rig_open(&rig);
    uint32_t flags = SL_STREAMING_INPUT | SL_STREAMING_RECEIVER;
    rig_add(&rig, "one", flags, -1, 500, 0);
    rig_add(&rig, "two", flags, -1, 500, 0);
    rig_add(&rig, "out", SL_STREAMING_OUTPUT, 0, 500, 0);
    rig_add(&rig, "window", SL_STREAMING_OUTPUT, 1, 500, 6 * 500);
    sl_streaming_worker_add(rig.context, "w", "host", 3);
    struct sl_wal logs[2];
    for (int i = 0; i < 2; i++) {
        char *path = sl_asprintf("%s/%d", dir, i);
        assert_int_equal(sl_wal_create(&logs[i], path, 1000), 0);
        rig.logs[i] = &logs[i];
        sl_free(path);
    }
    assert_int_equal(sl_streaming_start(rig.context), 0);
    for (int64_t time = 500; time <= 6000; time += 500) {
        for (int i = 0; i < 2; i++) {
            struct sl_wal_segment segment;
            assert_int_equal(sl_wal_write(&logs[i], "data", 4, time, &segment), 0);
        }
        rig_advance_to(&rig, time);
    }
    assert_int_equal(logs[0].files.count, 1);
    assert_int_equal(logs[1].files.count, 3);
    for (int i = 0; i < 2; i++) {
        sl_wal_destroy(&logs[i]);
    }
    rig_destroy(&rig);
    rig_dir_remove(dir);
}

static void
test_back_pressure_publishes_whole_rates_below_the_maximum(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig.options.back_pressure = 1;
    rig.options.max_rate = 150;
    rig_open(&rig);
    int32_t input = receiver_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    for (int64_t batch = 1; batch <= 3; batch++) {
        rig.held_batch = batch * 3000;
        rig_advance_to(&rig, batch * 3000 - 500);
        assert_int_equal(add_block(&rig, input, (uint64_t)batch, 1001 - 400 * (batch - 1)), 0);
        rig_advance_to(&rig, batch * 3000);
        sl_streaming_clock_set(&rig.clock, batch * 3000 + 900);
        sl_buf_clear(&rig.log);
        rig_job_end(&rig, rig.held[batch - 1], 0, batch * 3000);
        rig_run(&rig);
    }
    /* 601 and 201 records in 900 ms: 667.8 then 223.3 records/s, above the maximum. */
    assert_non_null(strstr(sl_buf_str(&rig.log), "rate150 "));
    rig_destroy(&rig);
}

static void
test_B9_a_growing_queue_is_seen(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    /* Jobs of 2 s at an interval of 1 s, for 20 s. */
    int64_t next = 1000;
    struct sl_streaming_progress progress;
    for (int64_t now = 1000; now <= 20000; now += 1000) {
        rig.held_batch = next;
        rig_advance_to(&rig, now);
        if (now % 2000 == 1000 && now > 1000) {
            rig_job_end(&rig, rig.held[rig.held_count - 1], 0, next);
            next += 1000;
            rig.held_batch = next;
            rig_run(&rig);
        }
    }
    sl_streaming_progress(rig.context, &progress);
    assert_int_equal(progress.waiting_batches + progress.running_batches, 11);
    assert_int_equal(progress.slow_batches, 9);
    rig_destroy(&rig);
}

static void *
end_job(void *argument)
{
    struct rig *rig = argument;
    return sl_streaming_job_end(rig->context, rig->held[0], NULL) == 0 ? NULL : argument;
}

static void
test_a_job_that_ends_in_another_thread_wakes_the_driver(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig.held_batch = 1000;
    rig_open(&rig);
    rig_simple_graph(&rig);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 1000);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, end_job, &rig), 0);
    while (!sl_streaming_is_idle(rig.context)) {
        sl_streaming_wait(rig.context, 10000);
        rig_run(&rig);
    }
    void *failed = &rig;
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_int_equal(sl_streaming_completed(rig.context, 0)->time, 1000);
    rig_destroy(&rig);
}

static void
test_the_system_clock_ends_a_wait_at_the_tick(void **state)
{
    (void)state;
    struct sl_streaming_options options;
    sl_streaming_options_default(&options);
    options.batch_ms = 20;
    struct sl_streaming *context = sl_streaming_new(&options, sl_clock_system(), false);
    struct sl_streaming_node input = {
        .name = "in", .slide_ms = 20, .flags = SL_STREAMING_INPUT | SL_STREAMING_OUTPUT};
    assert_int_equal(sl_streaming_node_add(context, &input), 0);
    assert_int_equal(sl_streaming_start(context), 0);
    int generated = 0;
    int64_t last = 0;
    while (generated < 3) {
        struct sl_streaming_work work;
        int kind = sl_streaming_next(context, &work);
        if (kind == SL_STREAMING_WORK_GENERATE) {
            assert_true(generated == 0 || work.time == last + 20);
            last = work.time;
            generated++;
            assert_int_equal(sl_streaming_generated(context, work.time, NULL), 0);
        } else if (kind == SL_STREAMING_WORK_NONE) {
            sl_streaming_wait(context, 60000);
        }
    }
    sl_streaming_free(context);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_T10_the_first_batch_is_one_interval_after_zero),
        cmocka_unit_test(test_T92_four_batches_give_their_events),
        cmocka_unit_test(test_generation_runs_before_jobs_that_are_held_back),
        cmocka_unit_test(test_outputs_of_one_batch_run_in_parallel_and_batches_in_order),
        cmocka_unit_test(test_T94_a_failed_operation_is_told_and_the_batch_stays_pending),
        cmocka_unit_test(test_a_failed_generation_still_posts_its_checkpoint),
        cmocka_unit_test(test_T98_states_follow_each_other_and_never_go_back),
        cmocka_unit_test(test_T98_a_context_that_never_started_stops_at_once),
        cmocka_unit_test(test_T99_a_start_that_fails_never_becomes_active),
        cmocka_unit_test(test_options_are_checked),
        cmocka_unit_test(test_T106_the_newest_thousand_batches_are_retained),
        cmocka_unit_test(test_nothing_piles_up_over_empty_batches),
        cmocka_unit_test(test_B5_a_failed_job_does_not_hold_up_a_graceful_stop),
        cmocka_unit_test(test_B5_a_sliding_stream_off_its_slide_does_not_hold_up_a_stop),
        cmocka_unit_test(test_a_graceful_stop_finishes_what_was_generated_and_stops_inputs_last),
        cmocka_unit_test(test_an_immediate_stop_starts_nothing_more),
        cmocka_unit_test(test_B20_the_last_wait_of_a_graceful_stop_is_a_setting),
        cmocka_unit_test(test_a_graceful_stop_can_be_made_immediate),
        cmocka_unit_test(test_T102_a_stop_at_the_end_of_time_generates_in_peace),
        cmocka_unit_test(test_T95_the_life_of_a_receiver_is_told),
        cmocka_unit_test(test_T149_a_receiver_that_ended_by_itself_starts_again),
        cmocka_unit_test(test_B10_a_receiver_moves_when_its_worker_is_gone),
        cmocka_unit_test(test_B11_a_slot_for_each_receiver_is_not_enough),
        cmocka_unit_test(test_T100_a_graceful_stop_waits_for_a_slow_receiver),
        cmocka_unit_test(test_T101_a_stop_right_after_the_start_does_not_hang),
        cmocka_unit_test(test_T101_a_receiver_that_missed_the_stop_is_given_up),
        cmocka_unit_test(test_T97_blocks_of_a_batch_that_runs_are_kept),
        cmocka_unit_test(test_T152_each_input_has_a_log_clean_up_of_its_own),
        cmocka_unit_test(test_back_pressure_publishes_whole_rates_below_the_maximum),
        cmocka_unit_test(test_B9_a_growing_queue_is_seen),
        cmocka_unit_test(test_a_job_that_ends_in_another_thread_wakes_the_driver),
        cmocka_unit_test(test_the_system_clock_ends_a_wait_at_the_tick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
