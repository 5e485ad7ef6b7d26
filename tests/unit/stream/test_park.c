/* Sleeping and waking: a lost wake-up would hang these tests, since no timer is near. */

#include "rig.h"

enum {
    HAND_OVERS = 4000,
};

struct sleeper {
    struct sl_executor *executor;
    /* Written by the waker, read by the sleeper. */
    uint32_t published;
    uint32_t taken;
};

/* The protocol of executor.c's idle(): announce, look once more, sleep. */
static void *
sleep_and_take(void *argument)
{
    struct sleeper *self = argument;
    struct sl_executor *executor = self->executor;
    for (uint32_t wanted = 1; wanted <= HAND_OVERS; wanted++) {
        while (__atomic_load_n(&self->published, __ATOMIC_ACQUIRE) < wanted) {
            executor->bell_seen = __atomic_load_n(&executor->bell, __ATOMIC_SEQ_CST);
            __atomic_store_n(&executor->is_asleep, 1, __ATOMIC_SEQ_CST);
            __atomic_thread_fence(__ATOMIC_SEQ_CST);
            if (__atomic_load_n(&self->published, __ATOMIC_ACQUIRE) < wanted) {
                sl__park(executor, UINT64_MAX);
            }
            __atomic_store_n(&executor->is_asleep, 0, __ATOMIC_SEQ_CST);
        }
        __atomic_store_n(&self->taken, wanted, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void
test_no_bell_is_lost_in_thousands_of_hand_overs(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.is_manual_clock = 0;
    struct rig *rig = rig_new(&options);
    struct sleeper sleeper = {.executor = sl_worker_executor(rig->worker, 0)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, sleep_and_take, &sleeper), 0);
    for (uint32_t i = 1; i <= HAND_OVERS; i++) {
        __atomic_store_n(&sleeper.published, i, __ATOMIC_RELEASE);
        sl__executor_ring_bell(sleeper.executor);
        while (__atomic_load_n(&sleeper.taken, __ATOMIC_ACQUIRE) < i) {
            sched_yield();
        }
    }
    pthread_join(thread, NULL);
    rig_free(rig);
}

static void
test_a_bell_rung_before_the_sleep_keeps_it_short(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.is_manual_clock = 0;
    struct rig *rig = rig_new(&options);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    executor->bell_seen = executor->bell;
    executor->is_asleep = 1;
    sl__executor_ring_bell(executor);
    sl__park(executor, UINT64_MAX);
    /* Rung already, so nobody is asleep: nothing to ring. */
    assert_int_equal(executor->is_asleep, 0);
    uint32_t before = executor->bell;
    sl__executor_ring_bell(executor);
    assert_int_equal(executor->bell, before);
    rig_free(rig);
}

static void
test_a_deadline_ends_the_sleep(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.is_manual_clock = 0;
    struct rig *rig = rig_new(&options);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    const struct sl_clock *clock = sl_clock_system();
    executor->now_ns = sl_clock_mono_ns(clock);
    executor->bell_seen = executor->bell;
    sl__park(executor, executor->now_ns + 3000000);
    assert_true(sl_clock_mono_ns(clock) - executor->now_ns >= 3000000);
    /* One in the past does not sleep. */
    sl__park(executor, executor->now_ns);
    rig_free(rig);
}

/* ---- the loop itself ----------------------------------------------------------------------------
 */

static int
emit_one(struct rig_task *task)
{
    if (task->count >= task->limit) {
        return SL_SPOUT_DONE;
    }
    int64_t id = task->count++;
    rig_emit_direct(task, id, id);
    return SL_SPOUT_EMITTED;
}

static void
note(struct rig_task *task, int64_t id, bool has_failed)
{
    (void)id;
    task->sum += has_failed ? 1000000 : 1;
}

static void
relay(struct rig_task *task, struct sl_record *record)
{
    task->count++;
    rig_emit_direct(task, rig_value(record, 0), RIG_NO_ID);
}

static void
take(struct rig_task *task, struct sl_record *record)
{
    (void)record;
    task->count++;
}

/*
 * With one tuple pending at a time, each of `count` tuples goes there and its ack comes back before
 * the next: two hand-overs to a sleeping or just falling asleep executor each time.
 */
static void
ping_pong(int32_t executors, int32_t ackers, int64_t count)
{
    struct sl_worker_options options = rig_options();
    options.executors = executors;
    options.is_manual_clock = 0;
    options.message_timeout_ms = 1e7;
    options.max_spout_pending = 1;
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1,
                                  (struct rig_component){.next = emit_one, .settled = note});
    int32_t middle =
        rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){.execute = relay});
    int32_t sink =
        rig_component(rig, SL_TASK_BOLT, 2, -1, 0, (struct rig_component){.execute = take});
    rig_read(rig, spout, middle, SL_GROUPING_SHUFFLE);
    rig_read(rig, middle, sink, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, middle, 2, 1);
    rig_plan(rig, sink, 3, executors - 1);
    if (ackers > 0) {
        int32_t acker = rig_component(rig, SL_TASK_ACKER, 0, -1, 0, (struct rig_component){0});
        rig_plan(rig, acker, 4, executors - 1);
    }
    rig->tasks[1].limit = count;
    rig_start(rig);
    rig_wait_finished(rig);
    rig_stop(rig);
    assert_int_equal(rig->tasks[1].sum, count);
    assert_int_equal(rig->tasks[3].count, count);
    rig_free(rig);
}

static void
test_two_executors_hand_one_tuple_to_and_fro(void **state)
{
    (void)state;
    ping_pong(2, 0, 3000);
}

static void
test_three_executors_and_an_acker_pass_one_tuple_around(void **state)
{
    (void)state;
    ping_pong(3, 1, 1500);
}

/* Batches of one record and a credit of one: every hand-over waits for the one before. */
static void
test_a_sender_without_credit_is_woken_by_each_release(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    options.is_manual_clock = 0;
    options.message_timeout_ms = 1e7;
    options.credit = 1;
    options.pool_bytes = 0;
    options.is_acking = 0;
    struct rig *rig = rig_new(&options);
    int32_t spout =
        rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){.next = emit_one});
    int32_t middle =
        rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){.execute = relay});
    int32_t sink =
        rig_component(rig, SL_TASK_BOLT, 2, -1, 0, (struct rig_component){.execute = take});
    rig_read(rig, spout, middle, SL_GROUPING_SHUFFLE);
    rig_read(rig, middle, sink, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, middle, 2, 1);
    rig_plan(rig, sink, 3, 0);
    rig->tasks[1].limit = 50000;
    rig_start(rig);
    rig_wait_finished(rig);
    rig_stop(rig);
    assert_int_equal(rig->tasks[3].count, 50000);
    rig_free(rig);
}

/*
 * A cycle of bolts on three executors ends when the last of its tasks becomes quiet; the executors
 * of the others may be asleep by then.
 */
static void
pass_four_times(struct rig_task *task, struct sl_record *record)
{
    task->count++;
    if (rig_value(record, 0) % 16 < 4) {
        rig_emit_direct(task, rig_value(record, 0) + 1, RIG_NO_ID);
    }
}

static void
end_a_cycle(void)
{
    struct sl_worker_options options = rig_options();
    options.executors = 3;
    options.is_manual_clock = 0;
    options.message_timeout_ms = 1e7;
    struct rig *rig = rig_new(&options);
    int32_t spout =
        rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){.next = emit_one});
    struct rig_component code = {.execute = pass_four_times};
    int32_t a = rig_component(rig, SL_TASK_BOLT, 1, 0, 1, code);
    int32_t b = rig_component(rig, SL_TASK_BOLT, 1, 0, 1, code);
    int32_t c = rig_component(rig, SL_TASK_BOLT, 1, 0, 1, code);
    rig_read(rig, spout, a, SL_GROUPING_SHUFFLE);
    rig_read(rig, a, b, SL_GROUPING_SHUFFLE);
    rig_read(rig, b, c, SL_GROUPING_SHUFFLE);
    rig_read(rig, c, a, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, a, 2, 0);
    rig_plan(rig, b, 3, 1);
    rig_plan(rig, c, 4, 2);
    rig->tasks[1].limit = 16;
    rig_start(rig);
    rig_wait_finished(rig);
    rig_stop(rig);
    /* 0 goes on to 4, 1 from 1 to 4, and so on. */
    assert_int_equal(rig->tasks[2].count + rig->tasks[3].count + rig->tasks[4].count,
                     16 + 4 + 3 + 2 + 1);
    for (int32_t id = 2; id <= 4; id++) {
        assert_int_equal(rig->tasks[id].finishes, 1);
    }
    rig_free(rig);
}

static void
test_the_last_of_a_cycle_to_be_quiet_wakes_the_others(void **state)
{
    (void)state;
    for (int i = 0; i < 150; i++) {
        end_a_cycle();
    }
}

/* Commands to executors that have nothing to do but sleep. */
static void
test_commands_wake_sleeping_executors(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    options.is_manual_clock = 0;
    options.message_timeout_ms = 1e7;
    struct rig *rig = rig_new(&options);
    rig_start(rig);
    rig_wait(rig, SL_EVENT_DONE, 2);
    for (int i = 0; i < 1000; i++) {
        sl_worker_command(rig->worker, i % 2, SL_COMMAND_ROUTES, i);
        rig_wait(rig, SL_EVENT_DONE, 1);
    }
    rig_stop(rig);
    rig_free(rig);
}

/* More acks than a ring holds, to an executor that is away: they arrive when it comes back. */
static void
fail_all(struct rig_task *task, struct sl_record *record)
{
    (void)record;
    task->count++;
    for (int i = 0; i < 40; i++) {
        sl_task_reset(task->io);
    }
}

static void
test_acks_beyond_a_ring_wait_and_arrive(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    options.is_manual_clock = 0;
    options.message_timeout_ms = 1e7;
    options.max_spout_pending = 10000;
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1,
                                  (struct rig_component){.next = emit_one, .settled = note});
    int32_t bolt =
        rig_component(rig, SL_TASK_BOLT, 1, -1, 0, (struct rig_component){.execute = fail_all});
    rig_read(rig, spout, bolt, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, bolt, 2, 1);
    rig->tasks[1].limit = 20000;
    rig_start(rig);
    rig_wait_finished(rig);
    rig_stop(rig);
    assert_int_equal(rig->tasks[1].sum, 20000);
    rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_no_bell_is_lost_in_thousands_of_hand_overs),
    cmocka_unit_test(test_a_bell_rung_before_the_sleep_keeps_it_short),
    cmocka_unit_test(test_a_deadline_ends_the_sleep),
    cmocka_unit_test(test_two_executors_hand_one_tuple_to_and_fro),
    cmocka_unit_test(test_three_executors_and_an_acker_pass_one_tuple_around),
    cmocka_unit_test(test_a_sender_without_credit_is_woken_by_each_release),
    cmocka_unit_test(test_the_last_of_a_cycle_to_be_quiet_wakes_the_others),
    cmocka_unit_test(test_commands_wake_sleeping_executors),
    cmocka_unit_test(test_acks_beyond_a_ring_wait_and_arrive),
};

UNIT_MAIN(tests)
