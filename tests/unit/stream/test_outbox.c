/* Buffers between two tasks: credits, hand-over, marks, overflow of cycles, lack of memory. */

#include "rig.h"

enum {
    SPOUT = 1,
    BOLT = 2,
    CREDIT = 4,
};

/* spout 1 -> bolt 2 on another executor, or (is_local) on the same. */
static struct rig *
rig_pair(bool is_local, double pool_bytes)
{
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    options.credit = CREDIT;
    options.pool_bytes = pool_bytes;
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){0});
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
    rig_read(rig, spout, bolt, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, SPOUT, 0);
    rig_plan(rig, bolt, BOLT, is_local ? 0 : 1);
    rig_attach_all(rig);
    return rig;
}

/* The two bolts 3 and 4 of a cycle, on the first and the last executor. */
static struct rig *
rig_ring(int32_t executors, double pool_bytes)
{
    struct sl_worker_options options = rig_options();
    options.executors = executors;
    options.credit = CREDIT;
    options.pool_bytes = pool_bytes;
    struct rig *rig = rig_new(&options);
    int32_t a = rig_component(rig, SL_TASK_BOLT, 1, 0, 1, (struct rig_component){0});
    int32_t b = rig_component(rig, SL_TASK_BOLT, 1, 0, 1, (struct rig_component){0});
    rig_read(rig, a, b, SL_GROUPING_SHUFFLE);
    rig_read(rig, b, a, SL_GROUPING_SHUFFLE);
    rig_plan(rig, a, 3, 0);
    rig_plan(rig, b, 4, executors - 1);
    rig_attach_all(rig);
    return rig;
}

static struct sl__outbox *
outbox_of(struct rig *rig, int32_t id)
{
    return rig_inner(rig, id)->outboxes.items[0];
}

/* Writes an untracked record with a number; there must be room. */
static void
write_one(struct sl__outbox *outbox, int64_t value)
{
    struct sl_record *record = (struct sl_record *)outbox->io.pos;
    record->len = (int32_t)(sizeof(*record) + sizeof(struct sl_slot));
    record->anchors = 0;
    record->slots[0] = (struct sl_slot){.tag = SL_VALUE_INT64, .i64 = value};
    outbox->io.pos += record->len;
    outbox->io.count++;
    assert_true(outbox->io.pos <= outbox->io.limit);
}

static void
test_flush_gives_a_buffer_with_room(void **state)
{
    (void)state;
    struct rig *rig = rig_pair(false, 1e6);
    struct sl__outbox *outbox = outbox_of(rig, SPOUT);
    assert_null(outbox->io.pos);
    assert_int_equal(sl_outbox_flush(&outbox->io, 100), SL_FLUSH_OK);
    assert_int_equal(outbox->io.limit - outbox->io.pos, 1024);
    /* Nothing was written: nothing is handed over, and the buffer stays. */
    uint8_t *before = outbox->io.pos;
    assert_int_equal(sl_outbox_flush(&outbox->io, 1024), SL_FLUSH_OK);
    assert_ptr_equal(outbox->io.pos, before);
    assert_int_equal(outbox->in_flight, 0);
    /* One too small is changed for one of its own. */
    assert_int_equal(sl_outbox_flush(&outbox->io, 5000), SL_FLUSH_OK);
    assert_int_equal(outbox->io.limit - outbox->io.pos, 5000);
    assert_int_equal(sl_worker_executor(rig->worker, 0)->pool.large_bytes, 5000);
    assert_int_equal(sl_outbox_flush(&outbox->io, -1), SL_EINVAL);
    rig_free(rig);
}

static void
test_credit_bounds_what_is_under_way(void **state)
{
    (void)state;
    struct rig *rig = rig_pair(false, 1e6);
    struct sl__outbox *outbox = outbox_of(rig, SPOUT);
    struct sl__task *spout = rig_inner(rig, SPOUT);
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    for (int i = 1; i <= CREDIT + 1; i++) {
        assert_int_equal(sl__task_is_gated(spout), i > CREDIT);
        write_one(outbox, i);
        assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
        assert_int_equal(outbox->in_flight, i);
        assert_int_equal(spout->io.yield, i >= CREDIT);
    }
    /* One more than its credit, so that the emit that used the last one found a buffer. */
    write_one(outbox, 99);
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_WAIT);
    assert_int_equal(outbox->io.count, 1);
    assert_int_equal(outbox->in_flight, CREDIT + 1);
    /* In order, each once. */
    struct sl__batch *batch;
    struct sl_executor *other = sl_worker_executor(rig->worker, 1);
    for (int i = 1; i <= CREDIT + 1; i++) {
        assert_true(sl_ring_pop(rig->worker->data[1], &batch));
        assert_int_equal(batch->io.count, 1);
        assert_int_equal(batch->io.source, SPOUT);
        assert_int_equal(batch->io.dest, BOLT);
        assert_int_equal(rig_value((struct sl_record *)batch->io.head, 0), i);
        sl__batch_give(other, batch);
        sl__outbox_released(other, outbox);
        assert_int_equal(sl__task_is_gated(spout), CREDIT + 1 - i >= CREDIT);
    }
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    assert_int_equal(outbox->in_flight, 1);
    rig_free(rig);
}

static void
test_a_local_receiver_that_can_run_runs_nested(void **state)
{
    (void)state;
    struct rig *rig = rig_pair(true, 1e6);
    struct sl__outbox *outbox = outbox_of(rig, SPOUT);
    sl_outbox_flush(&outbox->io, 1);
    write_one(outbox, 1);
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_RUN);
    /* Not while it is busy, closed, or comes earlier. */
    struct sl__task *bolt = rig_inner(rig, BOLT);
    write_one(outbox, 2);
    bolt->is_busy = true;
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    bolt->is_busy = false;
    write_one(outbox, 3);
    bolt->is_open = false;
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    bolt->is_open = true;
    write_one(outbox, 4);
    bolt->rank = 0;
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    assert_int_equal(bolt->queued, 4);
    rig_free(rig);
}

static void
test_each_outbox_may_have_one_buffer_beyond_the_pool(void **state)
{
    (void)state;
    struct rig *rig = rig_pair(false, 0);
    struct sl__outbox *outbox = outbox_of(rig, SPOUT);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    struct sl__batch *held[16];
    for (int i = 0; i < 16; i++) {
        held[i] = sl__batch_take(executor, 1, false);
        assert_non_null(held[i]);
    }
    assert_true(sl__outbox_is_entitled(outbox));
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    write_one(outbox, 1);
    /* Handed over, but a second buffer must wait. */
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_WAIT);
    assert_int_equal(outbox->in_flight, 1);
    assert_false(sl__outbox_is_entitled(outbox));
    sl__batch_give(executor, held[0]);
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    for (int i = 1; i < 16; i++) {
        sl__batch_give(executor, held[i]);
    }
    rig_free(rig);
}

static void
test_flush_without_memory_is_an_error_and_nothing_is_lost(void **state)
{
    (void)state;
    struct rig *rig = rig_pair(false, 1e6);
    struct sl__outbox *outbox = outbox_of(rig, SPOUT);
    sl_alloc_fail_after(0);
    assert_int_equal(sl_outbox_flush(&outbox->io, 100), SL_ENOMEM);
    assert_non_null(strstr(sl_err_last()->msg, "out of memory for a record of 100 bytes"));
    assert_int_equal(sl_outbox_flush(&outbox->io, 100000), SL_ENOMEM);
    sl_alloc_fail_after(-1);
    assert_int_equal(sl_outbox_flush(&outbox->io, 100), SL_FLUSH_OK);
    write_one(outbox, 7);
    sl_alloc_fail_after(0);
    /* What was written goes out all the same. */
    assert_int_equal(sl_outbox_flush(&outbox->io, 100), SL_ENOMEM);
    sl_alloc_fail_after(-1);
    assert_int_equal(outbox->in_flight, 1);
    rig_free(rig);
}

static void
test_a_cycle_holds_eight_credits_and_then_drops(void **state)
{
    (void)state;
    struct rig *rig = rig_ring(1, 0);
    struct sl__outbox *outbox = outbox_of(rig, 3);
    assert_true(outbox->is_cyclic);
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    for (int i = 1; i <= CREDIT * SL__CYCLE_OVERFLOW; i++) {
        write_one(outbox, i);
        assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    }
    assert_int_equal(outbox->in_flight, CREDIT * SL__CYCLE_OVERFLOW);
    assert_int_equal(sl_worker_dropped_in_cycles(rig->worker), 0);
    for (int i = 1; i <= 10; i++) {
        write_one(outbox, i);
        write_one(outbox, i);
        assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
        assert_int_equal(sl_worker_dropped_in_cycles(rig->worker), 2 * i);
        assert_int_equal(outbox->io.count, 0);
        assert_int_equal(outbox->io.limit - outbox->io.pos, 1024);
    }
    assert_int_equal(outbox->in_flight, CREDIT * SL__CYCLE_OVERFLOW);
    /* A cycle never gates its own tasks. */
    assert_false(sl__task_is_gated(rig_inner(rig, 3)));
    rig->worker->dropped_in_cycles = INT32_MAX;
    write_one(outbox, 1);
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    assert_int_equal(sl_worker_dropped_in_cycles(rig->worker), INT32_MAX);
    rig_free(rig);
}

static void
test_marks_travel_with_the_last_records_or_alone(void **state)
{
    (void)state;
    struct rig *rig = rig_pair(false, 1e6);
    struct sl__outbox *outbox = outbox_of(rig, SPOUT);
    struct sl__task *bolt = rig_inner(rig, BOLT);
    static const int32_t marks[] = {1, -1, 1};
    for (size_t i = 0; i < array_size(marks); i++) {
        if (i % 2 == 0) {
            sl__task_finished(rig_inner(rig, SPOUT));
            assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
            write_one(outbox, 1);
        } else {
            sl__task_resume(rig_inner(rig, SPOUT));
        }
        assert_false(sl__outbox_is_idle(outbox));
        assert_true(sl__outbox_hand_over(outbox));
        assert_true(sl__outbox_is_idle(outbox));
        struct sl__batch *batch;
        assert_true(sl_ring_pop(rig->worker->data[1], &batch));
        assert_int_equal(batch->mark, marks[i]);
        assert_int_equal(batch->io.count, i % 2 == 0);
        sl__task_marked(bolt, outbox, batch->mark);
        sl__batch_give(sl_worker_executor(rig->worker, 1), batch);
        sl__outbox_released(sl_worker_executor(rig->worker, 1), outbox);
    }
    assert_int_equal(bolt->last_seen, 1);
    /* Taken back before it went out: nothing to say. */
    sl__task_resume(rig_inner(rig, SPOUT));
    sl__task_finished(rig_inner(rig, SPOUT));
    assert_true(sl__outbox_is_idle(outbox));
    rig_free(rig);
}

static void
test_a_full_ring_keeps_the_batch(void **state)
{
    (void)state;
    struct rig *rig = rig_pair(false, 1e6);
    struct sl__outbox *outbox = outbox_of(rig, SPOUT);
    struct sl_ring *ring = rig->worker->data[1];
    /* Copies of a batch that nobody will look at. */
    struct sl__batch *filler = NULL;
    while (sl_ring_push(ring, &filler)) {
    }
    sl_outbox_flush(&outbox->io, 1);
    write_one(outbox, 5);
    assert_false(sl__outbox_hand_over(outbox));
    assert_int_equal(outbox->in_flight, 0);
    assert_int_equal(outbox->io.count, 1);
    struct sl__batch *out;
    while (sl_ring_pop(ring, &out)) {
        assert_null(out);
    }
    assert_true(sl__outbox_hand_over(outbox));
    rig_free(rig);
}

struct watch {
    const int32_t *cycle_full;
    int32_t is_running;
    int32_t has_seen;
};

static void *
watch_cycle(void *argument)
{
    struct watch *self = argument;
    __atomic_store_n(&self->is_running, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&self->is_running, __ATOMIC_SEQ_CST) != 0) {
        self->has_seen |= __atomic_load_n(self->cycle_full, __ATOMIC_SEQ_CST) != 0;
    }
    return NULL;
}

/* Who had seen it would wait for news of room that nobody sends. */
static void
test_a_cycle_is_not_full_for_a_batch_that_finds_no_room_in_the_ring(void **state)
{
    (void)state;
    struct rig *rig = rig_ring(2, 1e6);
    struct sl__outbox *outbox = outbox_of(rig, 3);
    struct sl_ring *ring = rig->worker->data[1];
    sl_outbox_flush(&outbox->io, 1);
    for (int i = 1; i < CREDIT; i++) {
        write_one(outbox, i);
        assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    }
    struct sl__batch *batch = NULL;
    while (sl_ring_push(ring, &batch)) {
    }
    write_one(outbox, CREDIT);
    struct watch watch = {.cycle_full = outbox->cycle_full};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, watch_cycle, &watch), 0);
    while (__atomic_load_n(&watch.is_running, __ATOMIC_SEQ_CST) == 0) {
        sched_yield();
    }
    for (int i = 0; i < 200000; i++) {
        assert_false(sl__outbox_hand_over(outbox));
    }
    __atomic_store_n(&watch.is_running, 0, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    assert_false(watch.has_seen);
    assert_true(sl_worker_executor(rig->worker, 0)->is_ring_full);
    while (sl_ring_pop(ring, &batch)) {
        if (batch != NULL) {
            sl__batch_give(sl_worker_executor(rig->worker, 1), batch);
        }
    }
    assert_true(sl__outbox_hand_over(outbox));
    assert_int_equal(*outbox->cycle_full, 1);
    rig_free(rig);
}

/* Bolts 3 (executor 0), 4 (1) and 5 (2) of one cycle, spout 1 -> 5; executor 3 has none of them. */
static void
test_room_in_a_cycle_wakes_those_that_wait_for_it(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.executors = 4;
    options.credit = CREDIT;
    struct rig *rig = rig_new(&options);
    int32_t bolts[3];
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){0});
    for (int32_t i = 0; i < 3; i++) {
        bolts[i] = rig_component(rig, SL_TASK_BOLT, 1, 0, 1, (struct rig_component){0});
        rig_plan(rig, bolts[i], 3 + i, i);
    }
    for (int32_t i = 0; i < 3; i++) {
        rig_read(rig, bolts[i], bolts[(i + 1) % 3], SL_GROUPING_SHUFFLE);
    }
    rig_read(rig, spout, bolts[2], SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, SPOUT, 2);
    rig_attach_all(rig);
    struct sl__outbox *outbox = outbox_of(rig, 3);
    sl_outbox_flush(&outbox->io, 1);
    for (int i = 1; i <= CREDIT; i++) {
        write_one(outbox, i);
        assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    }
    struct sl__outbox *outside = outbox_of(rig, SPOUT);
    sl_outbox_flush(&outside->io, 1);
    write_one(outside, 1);
    assert_true(sl__outbox_hand_over(outside));
    struct sl_turn turn;
    for (int32_t i = 0; i < options.executors; i++) {
        struct sl_executor *executor = sl_worker_executor(rig->worker, i);
        if (i != 1) {
            assert_int_equal(sl_executor_next(executor, &turn, 0), SL_TURN_NONE);
        }
        executor->is_asleep = 1;
    }
    struct sl_executor *other = sl_worker_executor(rig->worker, 1);
    struct sl__batch *batch;
    assert_true(sl_ring_pop(rig->worker->data[1], &batch));
    sl__batch_give(other, batch);
    sl__outbox_released(other, outbox);
    static const uint32_t asleep[] = {0, 1, 0, 1};
    for (int32_t i = 0; i < options.executors; i++) {
        assert_int_equal(sl_worker_executor(rig->worker, i)->is_asleep, asleep[i]);
    }
    assert_int_equal(sl_executor_next(sl_worker_executor(rig->worker, 2), &turn, 0), SL_TURN_BATCH);
    rig_batch(rig, sl_worker_executor(rig->worker, 2), &turn);
    rig_free(rig);
}

static int
count_in_use(const struct sl__task *task)
{
    int count = 0;
    for (const struct sl__outbox *at = task->in_use; at != NULL; at = at->next_in_use) {
        count++;
    }
    return count;
}

static int
emit_a_few(struct rig_task *task)
{
    int64_t value = task->count;
    if (task->limit == 0) {
        return SL_SPOUT_NOTHING;
    }
    task->limit--;
    task->count++;
    return rig_emit_direct(task, value, RIG_NO_ID) == 0 ? SL_SPOUT_EMITTED : SL_SPOUT_NOTHING;
}

/* A spout with many receivers, most of which get nothing, costs what the others cost. */
static void
test_turns_look_at_no_outbox_that_is_not_in_use(void **state)
{
    (void)state;
    enum { READERS = 200 };
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    int32_t source =
        rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){.next = emit_a_few});
    int32_t sink = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
    rig_read(rig, source, sink, SL_GROUPING_SHUFFLE);
    rig_plan(rig, source, SPOUT, 0);
    for (int32_t i = 0; i < READERS; i++) {
        rig_plan(rig, sink, BOLT + i, 0);
    }
    rig_open(rig);
    struct sl__task *spout = rig_inner(rig, SPOUT);
    rig_run(rig);
    assert_int_equal(count_in_use(spout), 0);
    /* What a turn looks at is there; a look at any other ends the test. */
    assert_int_equal(spout->outboxes.count, READERS);
    spout->outboxes.count = 0;
    rig->tasks[SPOUT].limit = 3;
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    struct sl_turn turn;
    sl_worker_advance(rig->worker, 100);
    assert_int_equal(sl_executor_next(executor, &turn, false), SL_TURN_SPOUT);
    rig_spout(&rig->tasks[SPOUT], &turn);
    assert_int_equal(count_in_use(spout), 3);
    rig_run(rig);
    assert_int_equal(count_in_use(spout), 0);
    int64_t executed = 0;
    for (int32_t i = 0; i < READERS; i++) {
        executed += (int64_t)rig->tasks[BOLT + i].io->executed;
    }
    assert_int_equal(executed, 3);
    spout->outboxes.count = READERS;
    /* An end is told to everyone. */
    sl__task_finished(spout);
    assert_int_equal(count_in_use(spout), READERS);
    rig_run(rig);
    assert_int_equal(count_in_use(spout), 0);
    assert_int_equal(rig_inner(rig, BOLT + READERS - 1)->last_seen, 1);
    rig_free(rig);
}

static int
count_full(const struct sl__task *task)
{
    int count = 0;
    for (const struct sl__outbox *at = task->full; at != NULL; at = at->next_full) {
        count++;
    }
    return count;
}

static void
test_outboxes_without_credit_are_listed_until_they_have_some(void **state)
{
    (void)state;
    struct rig *rig = rig_pair(false, 1e6);
    struct sl__outbox *outbox = outbox_of(rig, SPOUT);
    struct sl__task *spout = rig_inner(rig, SPOUT);
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    for (int i = 1; i <= CREDIT + 1; i++) {
        write_one(outbox, i);
        assert_int_equal(count_full(spout), i > CREDIT);
        assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    }
    assert_int_equal(count_full(spout), 1);
    assert_true(sl__task_is_gated(spout));
    for (int i = 0; i < 2; i++) {
        struct sl__batch *batch;
        assert_true(sl_ring_pop(rig->worker->data[1], &batch));
        sl__batch_give(sl_worker_executor(rig->worker, 1), batch);
        sl__outbox_released(sl_worker_executor(rig->worker, 1), outbox);
    }
    assert_false(sl__task_is_gated(spout));
    assert_int_equal(count_full(spout), 0);
    /* One that retires with all it sent executed leaves no trace in the lists. */
    write_one(outbox, 1);
    assert_true(sl__outbox_hand_over(outbox));
    assert_int_equal(count_full(spout), 1);
    sl__outbox_use(outbox);
    outbox->is_retired = true;
    sl__task_touch(spout);
    rig_run(rig);
    assert_int_equal(spout->outboxes.count, 0);
    assert_null(spout->full);
    assert_null(spout->in_use);
    rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_flush_gives_a_buffer_with_room),
    cmocka_unit_test(test_credit_bounds_what_is_under_way),
    cmocka_unit_test(test_a_local_receiver_that_can_run_runs_nested),
    cmocka_unit_test(test_each_outbox_may_have_one_buffer_beyond_the_pool),
    cmocka_unit_test(test_flush_without_memory_is_an_error_and_nothing_is_lost),
    cmocka_unit_test(test_a_cycle_holds_eight_credits_and_then_drops),
    cmocka_unit_test(test_marks_travel_with_the_last_records_or_alone),
    cmocka_unit_test(test_a_full_ring_keeps_the_batch),
    cmocka_unit_test(test_a_cycle_is_not_full_for_a_batch_that_finds_no_room_in_the_ring),
    cmocka_unit_test(test_room_in_a_cycle_wakes_those_that_wait_for_it),
    cmocka_unit_test(test_turns_look_at_no_outbox_that_is_not_in_use),
    cmocka_unit_test(test_outboxes_without_credit_are_listed_until_they_have_some),
};

UNIT_MAIN(tests)
