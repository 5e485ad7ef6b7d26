/* Input queues, gates and what keeps a task from being let go. */

#include "rig.h"

enum {
    FIRST = 1,
    SECOND = 2,
};

/* bolt 1 -> bolt 2, which a cycle leads back from when `scc` is 0. */
static struct rig *
rig_bolts(int32_t scc)
{
    struct sl_worker_options options = rig_options();
    options.credit = 2;
    struct rig *rig = rig_new(&options);
    int32_t source = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
    int32_t a = rig_component(rig, SL_TASK_BOLT, 2, scc, 1, (struct rig_component){0});
    int32_t b = rig_component(rig, SL_TASK_BOLT, 2, scc, 1, (struct rig_component){0});
    rig_read(rig, source, a, SL_GROUPING_SHUFFLE);
    rig_read(rig, a, b, SL_GROUPING_SHUFFLE);
    rig_read(rig, b, a, SL_GROUPING_SHUFFLE);
    rig_plan(rig, source, FIRST, 0);
    rig_plan(rig, a, SECOND, 0);
    rig_plan(rig, b, 3, 0);
    rig_attach_all(rig);
    return rig;
}

/* Hands a batch with one record over from one task to SECOND. */
static struct sl__batch *
send_one(struct rig *rig, int32_t from)
{
    struct sl__outbox *outbox = rig_inner(rig, from)->outboxes.items[0];
    assert_int_equal(outbox->io.dest, SECOND);
    assert_true(sl_outbox_flush(&outbox->io, 100) >= 0);
    struct sl_record *record = (struct sl_record *)outbox->io.pos;
    *record = (struct sl_record){.len = sizeof(*record) + sizeof(struct sl_slot)};
    outbox->io.pos += record->len;
    outbox->io.count++;
    struct sl__batch *batch = outbox->batch;
    assert_true(sl__outbox_hand_over(outbox));
    return batch;
}

static void
test_batches_queue_in_order_and_the_task_is_ready_once(void **state)
{
    (void)state;
    struct rig *rig = rig_bolts(-1);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    struct sl__task *task = rig_inner(rig, SECOND);
    struct sl__batch *first = send_one(rig, FIRST);
    struct sl__batch *second = send_one(rig, FIRST);
    assert_ptr_equal(task->input.first, first);
    assert_ptr_equal(first->next, second);
    assert_ptr_equal(task->input.last, second);
    assert_null(task->inner.first);
    assert_int_equal(rig_stats(rig, SECOND).queued, 2);
    assert_ptr_equal(executor->ready_first, task);
    assert_ptr_equal(executor->ready_last, task);
    rig_run(rig);
    assert_int_equal(rig_stats(rig, SECOND).queued, 0);
    assert_int_equal(rig_stats(rig, SECOND).executed, 2);
    assert_null(executor->ready_first);
    rig_free(rig);
}

static void
test_batches_from_inside_a_cycle_go_first(void **state)
{
    (void)state;
    struct rig *rig = rig_bolts(0);
    struct sl__task *task = rig_inner(rig, SECOND);
    struct sl__batch *outer = send_one(rig, FIRST);
    struct sl__batch *inner = send_one(rig, 3);
    assert_ptr_equal(task->input.first, outer);
    assert_ptr_equal(task->inner.first, inner);
    struct sl_turn turn;
    assert_int_equal(sl_executor_next(sl_worker_executor(rig->worker, 0), &turn, 0), SL_TURN_BATCH);
    assert_ptr_equal(turn.batch, &inner->io);
    rig_batch(rig, sl_worker_executor(rig->worker, 0), &turn);
    rig_run(rig);
    assert_int_equal(rig_stats(rig, SECOND).executed, 2);
    rig_free(rig);
}

static void
test_the_gate_closes_at_the_credit_and_opens_below(void **state)
{
    (void)state;
    struct rig *rig = rig_bolts(-1);
    struct sl__task *source = rig_inner(rig, FIRST);
    assert_false(sl__task_is_gated(source));
    send_one(rig, FIRST);
    assert_false(sl__task_is_gated(source));
    send_one(rig, FIRST);
    assert_true(sl__task_is_gated(source));
    /* The outbox found full last is looked at first, and is not taken for full for ever. */
    assert_true(sl__task_is_gated(source));
    rig_run(rig);
    assert_false(sl__task_is_gated(source));
    rig_free(rig);
}

static void
test_a_task_is_drained_only_when_nothing_is_left(void **state)
{
    (void)state;
    struct rig *rig = rig_bolts(-1);
    struct sl__task *source = rig_inner(rig, FIRST);
    struct sl__task *task = rig_inner(rig, SECOND);
    assert_true(sl__task_is_drained(source));
    /* FIRST and 3 may still send to it. */
    assert_false(sl__task_is_drained(task));
    send_one(rig, FIRST);
    assert_false(sl__task_is_drained(source));
    rig_run(rig);
    assert_true(sl__task_is_drained(source));
    source->held_in_use = 1;
    assert_false(sl__task_is_drained(source));
    source->held_in_use = 0;
    source->is_busy = true;
    assert_false(sl__task_is_drained(source));
    source->is_busy = false;
    assert_false(sl__task_is_planned_to_leave(source));
    assert_int_equal(sl_worker_remove_task(rig->worker, FIRST), 0);
    assert_true(sl__task_is_planned_to_leave(source));
    rig_free(rig);
}

static void
test_batches_for_nobody_are_kept_and_freed(void **state)
{
    (void)state;
    struct rig *rig = rig_bolts(-1);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    struct sl__batch *batch = sl__batch_take(executor, 10, false);
    batch->io.dest = 200;
    sl__executor_deliver(executor, batch);
    struct sl__batch *next = sl__batch_take(executor, 10, false);
    next->io.dest = 201;
    sl__executor_deliver(executor, next);
    assert_ptr_equal(executor->early.first, batch);
    assert_ptr_equal(executor->early.last, next);
    rig_free(rig);
}

static void *
read_errors(void *arg)
{
    struct rig *rig = arg;
    while (rig_stats(rig, FIRST).errors < 1000) {
    }
    return NULL;
}

static void
test_errors_are_counted_while_another_thread_reads(void **state)
{
    (void)state;
    struct rig *rig = rig_bolts(-1);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_errors, rig), 0);
    for (int i = 0; i < 1000; i++) {
        sl_task_count_error(&rig_inner(rig, FIRST)->io);
    }
    pthread_join(thread, NULL);
    assert_int_equal(rig_stats(rig, FIRST).errors, 1000);
    assert_int_equal(rig_stats(rig, SECOND).errors, 0);
    rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_batches_queue_in_order_and_the_task_is_ready_once),
    cmocka_unit_test(test_batches_from_inside_a_cycle_go_first),
    cmocka_unit_test(test_the_gate_closes_at_the_credit_and_opens_below),
    cmocka_unit_test(test_a_task_is_drained_only_when_nothing_is_left),
    cmocka_unit_test(test_batches_for_nobody_are_kept_and_freed),
    cmocka_unit_test(test_errors_are_counted_while_another_thread_reads),
};

UNIT_MAIN(tests)
