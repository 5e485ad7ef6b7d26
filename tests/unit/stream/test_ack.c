/* Acks on their way: combined, sent to the right place, and kept when there is no room. */

#include "stream/root_priv.h"
#include "rig.h"

/* Executor 0 sends; spout 0 is on executor 0, spout 1 on executor 1. */
static struct rig *
rig_spouts(int32_t ackers)
{
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){0});
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, spout, 2, 1);
    if (ackers > 0) {
        int32_t acker = rig_component(rig, SL_TASK_ACKER, 0, -1, 0, (struct rig_component){0});
        for (int32_t i = 0; i < ackers; i++) {
            rig_plan(rig, acker, 10 + i, i % 2);
        }
    }
    rig_attach_all(rig);
    return rig;
}

static uint64_t
root_of(uint64_t spout, uint64_t slot)
{
    return spout << SL__ROOT_SPOUT_SHIFT | UINT64_C(1) << SL__ROOT_SLOT_BITS | slot;
}

static void
test_acks_of_one_root_in_a_row_are_combined(void **state)
{
    (void)state;
    struct rig *rig = rig_spouts(0);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    const struct sl__ack_box *box = &executor->ack_out[1];
    for (uint64_t i = 1; i <= 100; i++) {
        sl__ack_send(executor, root_of(1, 5), SL__ACK, i);
    }
    assert_int_equal(box->items.count, 1);
    uint64_t sum = 0;
    for (uint64_t i = 1; i <= 100; i++) {
        sum ^= i;
    }
    assert_int_equal(box->items.items[0].value, sum);
    /* Others are not, and nothing is put before what was sent earlier. */
    sl__ack_send(executor, root_of(1, 6), SL__ACK, 1);
    sl__ack_send(executor, root_of(1, 5), SL__ACK, 1);
    sl__ack_send(executor, root_of(1, 5), SL__FAIL, 0);
    sl__ack_send(executor, root_of(1, 5), SL__RESET, 0);
    sl__ack_send(executor, root_of(1, 5), SL__ACK, 1);
    assert_int_equal(box->items.count, 6);
    assert_int_equal(sl__acks_waiting(executor), 6);
    rig_free(rig);
}

static void
test_roots_of_nobody_are_ignored(void **state)
{
    (void)state;
    struct rig *rig = rig_spouts(0);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    sl__ack_send(executor, root_of(2, 1), SL__ACK, 1);
    sl__ack_send(executor, root_of(65535, 1), SL__FAIL, 0);
    sl__ack_tell_spout(executor, root_of(2, 1), SL__DONE);
    assert_int_equal(sl__acks_waiting(executor), 0);
    /* And one on this executor that was never opened. */
    sl__ack_send(executor, root_of(0, 1), SL__ACK, 1);
    assert_int_equal(sl__acks_waiting(executor), 0);
    rig_free(rig);
}

static void
test_with_ackers_a_root_always_goes_to_the_same_one(void **state)
{
    (void)state;
    struct rig *rig = rig_spouts(4);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    const struct sl__ack_box *box = &executor->ack_out[1];
    size_t here = 0;
    for (uint64_t slot = 0; slot < 1000; slot++) {
        for (int i = 0; i < 2; i++) {
            sl__ack_send(executor, root_of(slot % 2, slot), SL__FAIL, 0);
        }
    }
    for (size_t i = 0; i < box->items.count; i += 2) {
        const struct sl__ack *ack = &box->items.items[i];
        assert_int_equal(ack[0].root, ack[1].root);
        assert_int_equal(ack[0].acker, ack[1].acker);
        assert_int_equal(ack[0].acker % 2, 1);
    }
    for (int i = 0; i < 4; i += 2) {
        here += rig->worker->ackers[i]->count;
        assert_true(rig->worker->ackers[i]->count > 150);
    }
    assert_int_equal(here * 2 + box->items.count, 2000);
    rig_free(rig);
}

/* Another process may begin to work before all ackers of this one are attached. */
static void
test_acks_that_come_before_their_acker_wait_for_it(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    struct sl_worker_options options = rig_options();
    options.executors = 1;
    struct rig *rig = rig_new(&options);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){0});
    int32_t acker = rig_component(rig, SL_TASK_ACKER, 0, -1, 0, (struct rig_component){0});
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, acker, 10, 0);
    rig_plan(rig, acker, 11, 0);
    assert_int_equal(rig_attach(rig, executor, 1, true), 0);
    for (uint64_t slot = 0; slot < COUNT; slot++) {
        sl__ack_send(executor, root_of(0, slot), SL__INIT, slot + 1);
    }
    assert_int_equal(executor->early_acks.count, COUNT);
    assert_int_equal(rig_attach(rig, executor, 11, true), 0);
    uint32_t count = rig->worker->ackers[1]->count;
    assert_in_range(count, COUNT / 3, COUNT * 2 / 3);
    assert_int_equal(executor->early_acks.count, COUNT - count);
    assert_int_equal(rig_attach(rig, executor, 10, true), 0);
    assert_int_equal(rig->worker->ackers[0]->count, COUNT - count);
    assert_int_equal(executor->early_acks.count, 0);
    /* Values that came early are those that count. */
    for (uint64_t slot = 0; slot < COUNT; slot++) {
        sl__ack_send(executor, root_of(0, slot), SL__ACK, slot + 1);
    }
    assert_int_equal(rig->worker->ackers[0]->count + rig->worker->ackers[1]->count, 0);
    rig_free(rig);
}

static void
test_acks_that_find_no_room_wait_in_order(void **state)
{
    (void)state;
    struct rig *rig = rig_spouts(0);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    enum { COUNT = 100000 };
    for (uint64_t i = 0; i < COUNT; i++) {
        sl__ack_send(executor, root_of(1, i), SL__FAIL, i);
    }
    assert_false(sl__acks_flush(executor));
    uint32_t room = rig->worker->acks[1]->mask + 1;
    assert_int_equal(sl__acks_waiting(executor), COUNT - room);
    /* It does not sleep through it. */
    executor->now_ns = 0;
    executor->timer_at_ns = executor->round_at_ns = UINT64_MAX;
    assert_in_range(sl_executor_due_ms(executor) * 1000, 0, 1000);
    struct sl__ack ack;
    for (uint64_t i = 0; i < COUNT; i++) {
        if (!sl_ring_pop(rig->worker->acks[1], &ack)) {
            sl__acks_flush(executor);
            assert_true(sl_ring_pop(rig->worker->acks[1], &ack));
        }
        assert_int_equal(ack.value, i);
    }
    assert_true(sl__acks_flush(executor));
    rig_free(rig);
}

static void
test_acks_wait_when_their_ring_finds_no_memory(void **state)
{
    (void)state;
    struct rig *rig = rig_spouts(0);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    sl__ack_send(executor, root_of(1, 1), SL__ACK, 1);
    sl_alloc_fail_after(0);
    assert_false(sl__acks_flush(executor));
    sl_alloc_fail_after(-1);
    assert_int_equal(sl__acks_waiting(executor), 1);
    assert_true(sl__acks_flush(executor));
    assert_false(sl_ring_is_empty(rig->worker->acks[1]));
    rig_free(rig);
}

static void
test_a_lost_batch_fails_all_roots_of_its_records(void **state)
{
    (void)state;
    struct rig *rig = rig_spouts(0);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    struct sl__batch *batch = sl__batch_take(executor, 1024, false);
    uint8_t *at = batch->data;
    /* Records with 0, 1, 2 and 3 roots, those of record i being 10 * i and following. */
    for (int32_t anchors = 0; anchors < 4; anchors++) {
        struct sl_record *record = (struct sl_record *)at;
        int32_t pairs = anchors > 1 ? anchors - 1 : 0;
        record->len = (int32_t)(sizeof(*record) + (size_t)pairs * sizeof(struct sl_pair));
        record->anchors = anchors;
        record->root = root_of(1, (uint64_t)(10 * anchors));
        at += record->len;
        for (int32_t k = 0; k < pairs; k++) {
            ((struct sl_pair *)at)[k - pairs].root = root_of(1, (uint64_t)(10 * anchors + k + 1));
        }
    }
    batch->io.head = batch->data;
    batch->io.tail = at;
    batch->io.count = 4;
    sl__batch_fail_roots(executor, batch);
    static const uint64_t slots[] = {10, 20, 21, 30, 31, 32};
    assert_int_equal(sl__acks_waiting(executor), array_size(slots));
    for (size_t i = 0; i < array_size(slots); i++) {
        const struct sl__ack *ack = &executor->ack_out[1].items.items[i];
        assert_int_equal(ack->op, SL__FAIL);
        assert_int_equal(ack->root, root_of(1, slots[i]));
    }
    sl__batch_give(executor, batch);
    rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_acks_of_one_root_in_a_row_are_combined),
    cmocka_unit_test(test_roots_of_nobody_are_ignored),
    cmocka_unit_test(test_with_ackers_a_root_always_goes_to_the_same_one),
    cmocka_unit_test(test_acks_that_come_before_their_acker_wait_for_it),
    cmocka_unit_test(test_acks_that_find_no_room_wait_in_order),
    cmocka_unit_test(test_acks_wait_when_their_ring_finds_no_memory),
    cmocka_unit_test(test_a_lost_batch_fails_all_roots_of_its_records),
};

UNIT_MAIN(tests)
