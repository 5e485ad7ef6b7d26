/* Slots of roots: generations, late acks, failures before the emit is complete, limits. */

#include "base/random.h"
#include "stream/root_priv.h"
#include "rig.h"

enum {
    SPOUT = 1,
};

static void
note(struct rig_task *task, int64_t id, bool has_failed)
{
    (void)task;
    (void)id;
    (void)has_failed;
}

/* A spout whose roots are opened by the test; `is_told` = completed roots are listed. */
static struct rig *
rig_spout_only(int32_t pending, bool is_acking, bool is_told)
{
    struct sl_worker_options options = rig_options();
    options.max_spout_pending = pending;
    options.is_acking = is_acking;
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1,
                                  (struct rig_component){.settled = is_told ? note : NULL});
    rig_plan(rig, spout, SPOUT, 0);
    rig_attach_all(rig);
    return rig;
}

static void
apply(struct rig *rig, uint64_t root, enum sl__ack_op op, uint64_t value)
{
    struct sl__ack ack = {.root = root, .value = value, .acker = -1, .op = op};
    sl__root_apply(rig_inner(rig, SPOUT), &ack);
}

/* Opens a root; its record is stored. Returns the slot. */
static int32_t
open_root(struct rig *rig, struct sl_record *record)
{
    *record = (struct sl_record){.len = sizeof(*record)};
    return sl_root_open(rig->tasks[SPOUT].io, record);
}

static double
acked(struct rig *rig)
{
    return rig_stats(rig, SPOUT).acked;
}

static void
test_a_root_completes_when_its_edges_are_gone(void **state)
{
    (void)state;
    struct rig *rig = rig_spout_only(10, true, false);
    struct sl_record record;
    open_root(rig, &record);
    assert_int_equal(record.anchors, 1);
    assert_true(record.edge != 0);
    /* The receiver acks its own edge XOR the edges of two children, then the children are acked. */
    apply(rig, record.root, SL__ACK, record.edge ^ 0x11 ^ 0x22);
    apply(rig, record.root, SL__ACK, 0x22);
    assert_int_equal(acked(rig), 0);
    apply(rig, record.root, SL__ACK, 0x11);
    assert_int_equal(acked(rig), 1);
    assert_int_equal(rig_stats(rig, SPOUT).pending, 0);
    rig_free(rig);
}

static void
test_late_acks_and_fails_do_not_touch_the_next_root_in_the_slot(void **state)
{
    (void)state;
    struct rig *rig = rig_spout_only(10, true, false);
    struct sl_record first;
    struct sl_record second;
    int32_t slot = open_root(rig, &first);
    apply(rig, first.root, SL__FAIL, 0);
    assert_int_equal(rig_stats(rig, SPOUT).failed, 1);
    assert_int_equal(open_root(rig, &second), slot);
    assert_true(first.root != second.root);
    apply(rig, first.root, SL__ACK, second.edge);
    apply(rig, first.root, SL__FAIL, 0);
    apply(rig, first.root, SL__RESET, 0);
    assert_int_equal(rig_stats(rig, SPOUT).pending, 1);
    apply(rig, second.root, SL__ACK, second.edge);
    assert_int_equal(acked(rig), 1);
    assert_int_equal(rig_stats(rig, SPOUT).failed, 1);
    /* Nothing that was never opened. */
    apply(rig, second.root + 1, SL__ACK, 5);
    apply(rig, UINT64_MAX, SL__FAIL, 0);
    apply(rig, 0, SL__ACK, 5);
    assert_int_equal(rig_stats(rig, SPOUT).failed, 1);
    rig_free(rig);
}

static void
test_generations_wrap_without_ever_being_zero(void **state)
{
    (void)state;
    struct rig *rig = rig_spout_only(10, true, false);
    struct sl_record record;
    int32_t slot = open_root(rig, &record);
    apply(rig, record.root, SL__FAIL, 0);
    struct sl__root *root = &rig_inner(rig, SPOUT)->roots[slot];
    root->bits = (uint32_t)SL__ROOT_GENERATION_MASK << SL__ROOT_GENERATION_SHIFT;
    assert_int_equal(open_root(rig, &record), slot);
    assert_int_equal(record.root >> SL__ROOT_SLOT_BITS & SL__ROOT_GENERATION_MASK,
                     SL__ROOT_GENERATION_MASK);
    apply(rig, record.root, SL__ACK, record.edge);
    assert_int_equal(acked(rig), 1);
    assert_int_equal(open_root(rig, &record), slot);
    assert_int_equal(record.root >> SL__ROOT_SLOT_BITS & SL__ROOT_GENERATION_MASK, 1);
    rig_free(rig);
}

static void
test_slots_are_used_again_in_any_order_and_never_twice(void **state)
{
    (void)state;
    enum { PENDING = 50 };
    struct rig *rig = rig_spout_only(PENDING, true, false);
    struct sl_task *io = rig->tasks[SPOUT].io;
    struct sl_random random;
    sl_random_seed(&random, 11);
    struct sl_record live[2 * PENDING];
    bool is_live[2 * PENDING] = {false};
    int count = 0;
    double ended = 0;
    for (int step = 0; step < 20000; step++) {
        assert_int_equal(io->is_full, count == 2 * PENDING);
        assert_int_equal(rig_stats(rig, SPOUT).pending, count);
        if (sl_random_below(&random, 2) == 0) {
            struct sl_record record;
            int32_t slot = open_root(rig, &record);
            if (count == 2 * PENDING) {
                assert_int_equal(slot, SL_EINVAL);
                continue;
            }
            assert_in_range(slot, 0, 2 * PENDING - 1);
            assert_false(is_live[slot]);
            is_live[slot] = true;
            live[slot] = record;
            count++;
        } else if (count > 0) {
            int at = (int)sl_random_below(&random, 2 * PENDING);
            while (!is_live[at]) {
                at = (at + 1) % (2 * PENDING);
            }
            bool fails = sl_random_below(&random, 2) == 0;
            apply(rig, live[at].root, fails ? SL__FAIL : SL__ACK, live[at].edge);
            is_live[at] = false;
            count--;
            ended++;
        }
    }
    assert_true(ended > 5000);
    assert_true(acked(rig) + rig_stats(rig, SPOUT).failed == ended);
    rig_free(rig);
}

static void
test_completed_roots_are_listed_until_they_are_released(void **state)
{
    (void)state;
    struct rig *rig = rig_spout_only(10, true, true);
    struct sl_task *io = rig->tasks[SPOUT].io;
    struct sl_record records[3];
    int32_t slots[3];
    for (int i = 0; i < 3; i++) {
        slots[i] = open_root(rig, &records[i]);
    }
    apply(rig, records[1].root, SL__FAIL, 0);
    apply(rig, records[0].root, SL__ACK, records[0].edge);
    /* Once it is listed, nothing changes its fate. */
    apply(rig, records[0].root, SL__FAIL, 0);
    apply(rig, records[1].root, SL__ACK, records[1].edge);
    assert_int_equal(io->done_count, 2);
    assert_int_equal(io->done[0], slots[1] * 2 + 1);
    assert_int_equal(io->done[1], slots[0] * 2);
    assert_int_equal(rig_stats(rig, SPOUT).pending, 3);
    sl_roots_release(io, 3);
    assert_int_equal(sl_err_last()->code, SL_EINVAL);
    assert_int_equal(io->done_count, 2);
    sl_roots_release(io, 1);
    assert_int_equal(io->done_count, 1);
    assert_int_equal(io->done[0], slots[0] * 2);
    sl_roots_release(io, 1);
    assert_int_equal(rig_stats(rig, SPOUT).pending, 1);
    rig_free(rig);
}

static void
test_a_fail_during_the_emit_ends_the_root_with_it(void **state)
{
    (void)state;
    struct rig *rig = rig_spout_only(10, true, false);
    struct sl_task *io = rig->tasks[SPOUT].io;
    struct sl__task *spout = rig_inner(rig, SPOUT);
    int32_t slot = sl_root_begin(io);
    uint64_t id = spout->anchors.items[0].root;
    apply(rig, id, SL__FAIL, 0);
    assert_int_equal(rig_stats(rig, SPOUT).failed, 0);
    sl_root_end(io, slot);
    assert_int_equal(rig_stats(rig, SPOUT).failed, 1);
    assert_int_equal(rig_stats(rig, SPOUT).pending, 0);
    /* Ending it again is an error and nothing else. */
    sl_root_end(io, slot);
    assert_int_equal(rig_stats(rig, SPOUT).failed, 1);
    sl_root_end(io, -1);
    sl_root_end(io, 1000);
    assert_int_equal(sl_err_last()->code, SL_EINVAL);
    rig_free(rig);
}

static void
test_a_time_out_during_the_emit_ends_the_root_with_it(void **state)
{
    (void)state;
    for (int is_told = 0; is_told < 2; is_told++) {
        struct rig *rig = rig_spout_only(10, true, is_told != 0);
        struct sl_task *io = rig->tasks[SPOUT].io;
        struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
        int32_t slot = sl_root_begin(io);
        executor->round += SL__ROUNDS + 1;
        sl__roots_expire(rig_inner(rig, SPOUT));
        assert_int_equal(rig_stats(rig, SPOUT).pending, 1);
        assert_int_equal(rig_stats(rig, SPOUT).failed, 0);
        sl_root_end(io, slot);
        assert_int_equal(rig_stats(rig, SPOUT).failed, 1);
        assert_int_equal(rig_stats(rig, SPOUT).pending, is_told);
        assert_int_equal(io->done_count, is_told);
        rig_free(rig);
    }
}

static void
test_a_tuple_that_nobody_reads_is_acked(void **state)
{
    (void)state;
    struct rig *rig = rig_spout_only(10, true, false);
    int64_t values[1] = {5};
    assert_int_equal(rig_emit_root(&rig->tasks[SPOUT], values, 5), 0);
    assert_int_equal(acked(rig), 1);
    rig_free(rig);
}

static void
test_without_acking_roots_are_acked_at_once_and_never_expire(void **state)
{
    (void)state;
    struct rig *rig = rig_spout_only(10, false, false);
    struct sl_task *io = rig->tasks[SPOUT].io;
    struct sl_record record;
    open_root(rig, &record);
    assert_int_equal(record.anchors, 0);
    assert_int_equal(acked(rig), 1);
    int32_t slot = sl_root_begin(io);
    assert_int_equal(rig_inner(rig, SPOUT)->anchors.count, 0);
    sl_worker_executor(rig->worker, 0)->round += 9;
    sl__roots_expire(rig_inner(rig, SPOUT));
    sl_root_end(io, slot);
    assert_int_equal(acked(rig), 2);
    assert_int_equal(rig_stats(rig, SPOUT).failed, 0);
    rig_free(rig);
}

static void
test_a_bolt_has_no_roots(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
    rig_plan(rig, bolt, 2, 0);
    rig_attach_all(rig);
    struct sl_record record = {0};
    assert_int_equal(sl_root_open(rig->tasks[2].io, &record), SL_EINVAL);
    assert_int_equal(sl_root_begin(rig->tasks[2].io), SL_EINVAL);
    sl_root_end(rig->tasks[2].io, 0);
    sl_roots_release(rig->tasks[2].io, 1);
    rig_free(rig);
}

static void
test_latencies_are_counted_one_by_one(void **state)
{
    (void)state;
    struct rig *rig = rig_spout_only(100, true, false);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    struct sl_record records[100];
    for (int i = 0; i < 100; i++) {
        open_root(rig, &records[i]);
    }
    for (int i = 0; i < 100; i++) {
        /* Half of them after 10 ms, half after 20. */
        if (i % 50 == 0) {
            executor->now_ns += 10000000;
        }
        apply(rig, records[i].root, SL__ACK, records[i].edge);
        assert_int_equal(acked(rig), i + 1);
    }
    double low = sl_worker_latency_ms(rig->worker, 0.25);
    double high = sl_worker_latency_ms(rig->worker, 0.75);
    assert_true(low > 9.8 && low < 10.2);
    assert_true(high > 19.6 && high < 20.4);
    rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_root_completes_when_its_edges_are_gone),
    cmocka_unit_test(test_late_acks_and_fails_do_not_touch_the_next_root_in_the_slot),
    cmocka_unit_test(test_generations_wrap_without_ever_being_zero),
    cmocka_unit_test(test_slots_are_used_again_in_any_order_and_never_twice),
    cmocka_unit_test(test_completed_roots_are_listed_until_they_are_released),
    cmocka_unit_test(test_a_fail_during_the_emit_ends_the_root_with_it),
    cmocka_unit_test(test_a_time_out_during_the_emit_ends_the_root_with_it),
    cmocka_unit_test(test_a_tuple_that_nobody_reads_is_acked),
    cmocka_unit_test(test_without_acking_roots_are_acked_at_once_and_never_expire),
    cmocka_unit_test(test_a_bolt_has_no_roots),
    cmocka_unit_test(test_latencies_are_counted_one_by_one),
};

UNIT_MAIN(tests)
