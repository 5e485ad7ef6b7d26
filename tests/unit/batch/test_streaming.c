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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_T10_the_first_batch_is_one_interval_after_zero),
        cmocka_unit_test(test_T92_four_batches_give_their_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
