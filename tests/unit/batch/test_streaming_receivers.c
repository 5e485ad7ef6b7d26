// labels: short
/* What callers of a receiver's functions may get wrong, and the blocks and places of receivers.
 * Their life is in test_streaming.c. */
#include "rig.h"

enum { INPUT, OUTPUT, RECEIVER };

/* A context with an input without a receiver, an output and a receiver; workers w0 and w1. */
static void
open_three(struct rig *rig)
{
    rig_create(rig, 0);
    rig_open(rig);
    rig_simple_graph(rig);
    assert_int_equal(rig_add(rig, "received", SL_STREAMING_INPUT | SL_STREAMING_RECEIVER, -1,
                             rig->options.batch_ms, 0),
                     RECEIVER);
    rig_add(rig, "second", SL_STREAMING_OUTPUT, RECEIVER, rig->options.batch_ms, 0);
    assert_int_equal(sl_streaming_worker_add(rig->context, "w0", "h0", 1), 0);
    assert_int_equal(sl_streaming_worker_add(rig->context, "w1", "h1", 1), 1);
}

static int
add_block(struct rig *rig, int32_t node, uint64_t id, int64_t records)
{
    struct sl_streaming_block block = {.id = id, .records = records, .worker = "w0"};
    return sl_streaming_block_add(rig->context, node, &block);
}

static void
test_streams_without_a_receiver_are_refused(void **state)
{
    (void)state;
    struct rig rig;
    struct sl_streaming_block block;
    open_three(&rig);
    static const int32_t others[] = {INPUT, OUTPUT, -1, 99};
    for (size_t i = 0; i < array_size(others); i++) {
        int32_t node = others[i];
        assert_int_equal(sl_streaming_preferred_host(rig.context, node, "h1"), SL_EINVAL);
        assert_int_equal(sl_streaming_receiver_started(rig.context, node, 0), SL_EINVAL);
        assert_int_equal(sl_streaming_receiver_error(rig.context, node, "x"), SL_EINVAL);
        assert_int_equal(sl_streaming_receiver_ended(rig.context, node, "x", 0), SL_EINVAL);
        assert_int_equal(add_block(&rig, node, 1, 1), SL_EINVAL);
        assert_int_equal(sl_streaming_block_count(rig.context, node, 1000), SL_EINVAL);
        assert_int_equal(sl_streaming_block_get(rig.context, node, 1000, 0, &block), SL_EINVAL);
    }
    rig_destroy(&rig);
}

static void
test_receiver_started_is_for_the_worker_that_was_asked(void **state)
{
    (void)state;
    struct rig rig;
    open_three(&rig);
    rig.has_willing_receivers = false;
    assert_int_equal(sl_streaming_receiver_started(rig.context, RECEIVER, 0), SL_ECLOSED);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    rig_expect(&rig.log, "R+2/0 I+0 ");
    assert_int_equal(sl_streaming_receiver_started(rig.context, RECEIVER, 1), SL_EFENCED);
    assert_int_equal(sl_streaming_receiver_started(rig.context, RECEIVER, 0), 0);
    assert_int_equal(sl_streaming_receiver_started(rig.context, RECEIVER, 0), SL_EFENCED);
    rig_destroy(&rig);
}

static void
test_preferred_host_is_kept_and_only_before_the_start(void **state)
{
    (void)state;
    struct rig rig;
    open_three(&rig);
    assert_int_equal(sl_streaming_preferred_host(rig.context, RECEIVER, "h0"), 0);
    assert_int_equal(sl_streaming_preferred_host(rig.context, RECEIVER, "h1"), 0);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    rig_expect(&rig.log, "R+2/1 I+0 ");
    assert_true(sl_streaming_preferred_host(rig.context, RECEIVER, "h0") < 0);
    rig_destroy(&rig);
}

static void
test_worker_remove_knows_its_workers(void **state)
{
    (void)state;
    struct rig rig;
    open_three(&rig);
    assert_int_equal(sl_streaming_worker_remove(rig.context, -1), SL_EINVAL);
    assert_int_equal(sl_streaming_worker_remove(rig.context, 2), SL_EINVAL);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    /* A start that nobody has seen is taken back; the receiver goes elsewhere. */
    assert_int_equal(sl_streaming_worker_remove(rig.context, 0), 0);
    rig_run(&rig);
    rig_expect(&rig.log, "I+0 R+2/1 ");
    /* Without any worker it waits for one. */
    assert_int_equal(sl_streaming_worker_remove(rig.context, 1), 0);
    rig_run(&rig);
    rig_expect(&rig.log, "");
    assert_int_equal(sl_streaming_worker_add(rig.context, "w2", "h2", 1), 2);
    rig_advance_to(&rig, rig.options.receiver_restart_ms);
    assert_non_null(strstr(sl_buf_str(&rig.log), "R+2/2 "));
    rig_destroy(&rig);
}

static void
test_block_add_takes_blocks_from_the_start_to_the_stop(void **state)
{
    (void)state;
    struct rig rig;
    struct sl_streaming_block block;
    open_three(&rig);
    assert_int_equal(add_block(&rig, RECEIVER, 1, 1), SL_ECLOSED);
    assert_int_equal(sl_streaming_block_count(rig.context, RECEIVER, 1000), 0);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_run(&rig);
    assert_int_equal(add_block(&rig, RECEIVER, 1, -1), SL_EINVAL);
    assert_int_equal(add_block(&rig, RECEIVER, 1, 5), 0);
    assert_int_equal(add_block(&rig, RECEIVER, 2, 6), 0);
    /* Told a second time, it counts once. */
    assert_int_equal(add_block(&rig, RECEIVER, 1, 5), 1);
    rig.held_batch = 1000;
    rig_advance_to(&rig, 1000);
    assert_int_equal(sl_streaming_block_count(rig.context, RECEIVER, 1000), 2);
    assert_int_equal(sl_streaming_block_get(rig.context, RECEIVER, 1000, 1, &block), 0);
    assert_int_equal(block.id, 2);
    assert_int_equal(block.records, 6);
    assert_string_equal(block.worker, "w0");
    static const int32_t outside[] = {-1, 2};
    for (size_t i = 0; i < array_size(outside); i++) {
        assert_int_equal(sl_streaming_block_get(rig.context, RECEIVER, 1000, outside[i], &block),
                         SL_ENOTFOUND);
    }
    assert_int_equal(sl_streaming_block_get(rig.context, RECEIVER, 2000, 0, &block), SL_ENOTFOUND);
    assert_true(sl_streaming_stop(rig.context, false) >= 0);
    assert_int_equal(add_block(&rig, RECEIVER, 3, 1), SL_ECLOSED);
    rig_destroy(&rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_streams_without_a_receiver_are_refused),
    cmocka_unit_test(test_receiver_started_is_for_the_worker_that_was_asked),
    cmocka_unit_test(test_preferred_host_is_kept_and_only_before_the_start),
    cmocka_unit_test(test_worker_remove_knows_its_workers),
    cmocka_unit_test(test_block_add_takes_blocks_from_the_start_to_the_stop),
};

UNIT_MAIN(tests)
