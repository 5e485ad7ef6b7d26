/* What a script could hand to the engine by mistake: each is an error, none a crash. */

#include <math.h>
#include <signal.h>

#include "abi/abi.h"
#include "../stream/rig.h"

static int
last_code(void)
{
    int code = sl_err_last()->code;
    sl_err_clear();
    return code;
}

#define REFUSES(call)                                                                              \
    do {                                                                                           \
        sl_err_clear();                                                                            \
        (void)(call);                                                                              \
        assert_int_equal(last_code(), SL_EINVAL);                                                  \
    } while (0)

static void
test_null_workers_and_executors_are_refused(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct sl_worker *worker = sl_abi_worker_new(&options);
    struct sl_turn turn = {0};
    int32_t id = 0;
    size_t len = 0;
    assert_null(sl_abi_worker_new(NULL));
    REFUSES(sl_abi_worker_new(NULL));
    REFUSES(sl_abi_worker_component(NULL, "a", 0, 0, -1));
    REFUSES(sl_abi_worker_component(worker, NULL, 0, 0, -1));
    REFUSES(sl_abi_worker_stream(NULL, 0, "a", 0, 0));
    REFUSES(sl_abi_worker_reader(NULL, 0, 0, SL_GROUPING_ALL, &id, 0));
    REFUSES(sl_abi_worker_groups(NULL, 0, &id, 1));
    REFUSES(sl_abi_worker_groups(worker, 0, NULL, 1));
    REFUSES(sl_abi_worker_task(NULL, 0, 0, 0, 0));
    REFUSES(sl_abi_worker_remove_task(NULL, 0));
    REFUSES(sl_abi_worker_planned(NULL, 0, &(struct sl_planned){0}));
    REFUSES(sl_abi_worker_planned(worker, 0, NULL));
    REFUSES(sl_abi_worker_tasks(NULL, 0, &id, 1));
    REFUSES(sl_abi_worker_tasks(worker, 0, NULL, 1));
    assert_null(sl_abi_worker_executor(NULL, 0));
    assert_int_equal(sl_abi_worker_executor_count(NULL), 0);
    REFUSES(sl_abi_worker_set_boot(NULL, "x", 1));
    REFUSES(sl_abi_worker_set_boot(worker, NULL, 1));
    REFUSES(sl_abi_worker_boot(NULL, &len));
    REFUSES(sl_abi_worker_boot(worker, NULL));
    REFUSES(sl_abi_worker_start(NULL));
    sl_abi_worker_join(NULL);
    REFUSES(sl_abi_worker_command(NULL, 0, 1, 0));
    REFUSES(sl_abi_worker_command(worker, 0, 99, 0));
    REFUSES(sl_abi_worker_command(worker, 99, 1, 0));
    REFUSES(sl_abi_worker_wait(NULL, 0, &(struct sl_event){0}));
    REFUSES(sl_abi_worker_wait(worker, 0, NULL));
    REFUSES(sl_abi_worker_post(NULL, 1, 0, 0, "x", 1));
    REFUSES(sl_abi_worker_post(worker, 1, 0, 0, NULL, 1));
    REFUSES(sl_abi_worker_stats(NULL, 0, &(struct sl_task_stats){0}));
    REFUSES(sl_abi_worker_stats(worker, 0, NULL));
    REFUSES(sl_abi_worker_gone_stats(NULL, 0, &(struct sl_task_stats){0}));
    REFUSES(sl_abi_worker_gone_stats(worker, 0, NULL));
    REFUSES(sl_abi_worker_busy(NULL, 0, &(struct sl_busy){0}));
    REFUSES(sl_abi_worker_busy(worker, 0, NULL));
    assert_true(sl_abi_worker_latency_ms(NULL, 0.5) < 0);
    assert_true(sl_abi_worker_latency_ms(worker, NAN) < 0);
    assert_int_equal(sl_abi_worker_dropped_in_cycles(NULL), 0);
    REFUSES(sl_abi_worker_advance(NULL, 1));
    REFUSES(sl_abi_worker_advance(worker, -1));
    REFUSES(sl_abi_worker_advance(worker, NAN));
    REFUSES(sl_abi_worker_advance(worker, INFINITY));
    REFUSES(sl_abi_executor_attach(NULL, 0, &(struct sl_task *){NULL}));
    REFUSES(sl_abi_executor_attach(sl_abi_worker_executor(worker, 0), 0, NULL));
    REFUSES(sl_abi_executor_detach(NULL, 0));
    REFUSES(sl_abi_executor_route(NULL));
    assert_int_equal(sl_abi_executor_index(NULL), -1);
    REFUSES(sl_abi_executor_next(NULL, &turn, 0));
    REFUSES(sl_abi_executor_next(sl_abi_worker_executor(worker, 0), NULL, 0));
    REFUSES(sl_abi_executor_nested(NULL, &turn, 0));
    REFUSES(sl_abi_executor_await(NULL, &turn, NULL, 1, 0));
    REFUSES(sl_abi_executor_await_root(NULL, &turn, NULL, 0));
    REFUSES(sl_abi_executor_calls(NULL, 1));
    REFUSES(sl_abi_executor_now_ms(NULL));
    REFUSES(sl_abi_executor_due_ms(NULL));
    REFUSES(sl_abi_batch_end(NULL, &turn, 0, (uint8_t *)&turn));
    REFUSES(sl_abi_batch_position(NULL, &turn));
    REFUSES(sl_abi_spout_end(NULL, &turn, 0, 0, 0));
    REFUSES(sl_abi_turn_end(NULL, &turn));
    sl_abi_worker_free(NULL);
    sl_abi_worker_free(worker);
}

static void
test_null_tasks_routes_and_outboxes_are_refused(void **state)
{
    (void)state;
    struct sl_record record = {0};
    REFUSES(sl_abi_task_opened(NULL));
    REFUSES(sl_abi_task_tick(NULL, 1, 0));
    REFUSES(sl_abi_spout_reopen(NULL));
    REFUSES(sl_abi_task_emitter_count(NULL));
    REFUSES(sl_abi_task_emitter(NULL, 0));
    REFUSES(sl_abi_emitter_route(NULL, 0));
    REFUSES(sl_abi_outbox_flush(NULL, 1));
    REFUSES(sl_abi_route_next(NULL));
    REFUSES(sl_abi_route_key(NULL, 1));
    REFUSES(sl_abi_route_number(NULL, 1));
    REFUSES(sl_abi_route_string(NULL, "a", 1));
    REFUSES(sl_abi_route_way(NULL, "a", 1, 0));
    REFUSES(sl_abi_route_forget(NULL));
    REFUSES(sl_abi_emitter_clear(NULL));
    REFUSES(sl_abi_emitter_add(NULL, 0));
    REFUSES(sl_abi_emitter_add_key(NULL, 0, 1));
    REFUSES(sl_abi_emitter_add_task(NULL, 0, 1));
    REFUSES(sl_abi_emitter_copy(NULL, NULL, 0, 64));
    REFUSES(sl_abi_task_scratch(NULL, 64));
    REFUSES(sl_abi_root_open(NULL, &record));
    REFUSES(sl_abi_root_begin(NULL));
    REFUSES(sl_abi_root_end(NULL, 0));
    REFUSES(sl_abi_roots_release(NULL, 0));
    REFUSES(sl_abi_task_anchor(NULL, &record));
    REFUSES(sl_abi_task_ack(NULL));
    REFUSES(sl_abi_task_fail(NULL));
    REFUSES(sl_abi_task_reset(NULL));
    REFUSES(sl_abi_task_count_error(NULL));
    REFUSES(sl_abi_task_hold(NULL));
    REFUSES(sl_abi_held_settle(NULL, 0, 0));
    REFUSES(sl_abi_held_reset(NULL, 0));
    REFUSES(sl_abi_anchors_clear(NULL));
    REFUSES(sl_abi_anchors_add_current(NULL));
    REFUSES(sl_abi_anchors_add_held(NULL, 0));
}

static int
emit_one(struct rig_task *task)
{
    if (task->count > 0) {
        return SL_SPOUT_DONE;
    }
    int64_t values[1] = {1};
    assert_int_equal(rig_emit_root(task, values, task->count++), 0);
    return SL_SPOUT_EMITTED;
}

/* spout 1 -> bolt 2 with one tuple under way. */
static struct rig *
rig_small(void)
{
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    int32_t spout =
        rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){.next = emit_one});
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
    rig_read(rig, spout, bolt, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, bolt, 2, 0);
    rig_open(rig);
    return rig;
}

static void
test_turns_that_do_not_run_can_not_be_ended(void **state)
{
    (void)state;
    struct rig *rig = rig_small();
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    uint8_t *nowhere = (uint8_t *)rig;
    for (int32_t kind = SL_TURN_NONE; kind <= SL_TURN_READY; kind++) {
        static const int32_t tasks[] = {-1, 1, 2, 77, RIG_TASKS, INT32_MAX};
        for (size_t i = 0; i < array_size(tasks); i++) {
            struct sl_turn turn = {.kind = kind, .task = tasks[i], .count = 1};
            REFUSES(sl_abi_batch_end(executor, &turn, 1, nowhere));
            REFUSES(sl_abi_batch_position(executor, &turn));
            REFUSES(sl_abi_spout_end(executor, &turn, 1, SL_SPOUT_DONE, -1));
            if (kind != SL_TURN_COMMAND) {
                REFUSES(sl_abi_turn_end(executor, &turn));
            }
        }
    }
    struct sl_turn turn;
    REFUSES(sl_abi_executor_nested(executor, &turn, -1));
    REFUSES(sl_abi_executor_nested(executor, &turn, 77));
    REFUSES(sl_abi_executor_nested(executor, &turn, RIG_TASKS));
    /* And everything still works. */
    rig_run(rig);
    assert_int_equal(rig_stats(rig, 1).acked, 1);
    rig_free(rig);
}

static void
test_a_batch_that_is_ended_wrongly_counts_as_executed(void **state)
{
    (void)state;
    static const int32_t counts[] = {-1, 2, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < array_size(counts); i++) {
        struct rig *rig = rig_small();
        struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
        struct sl_turn turn;
        while (sl_abi_executor_next(executor, &turn, 0) != SL_TURN_BATCH) {
            if (turn.kind == SL_TURN_SPOUT) {
                rig_spout(&rig->tasks[1], &turn);
            } else if (turn.kind == SL_TURN_COMMAND) {
                sl_abi_turn_end(executor, &turn);
            }
        }
        REFUSES(sl_abi_turn_end(executor, &(struct sl_turn){.kind = SL_TURN_TICK, .task = 2}));
        REFUSES(sl_abi_spout_end(executor, &turn, 1, SL_SPOUT_DONE, -1));
        sl_abi_task_ack(rig->tasks[2].io);
        REFUSES(sl_abi_batch_end(executor, &turn, counts[i], turn.head + 1000000));
        assert_int_equal(rig_stats(rig, 2).executed, 1);
        rig_run(rig);
        rig_free(rig);
    }
}

static void
test_acks_outside_of_a_turn_do_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_small();
    struct sl_task *bolt = rig->tasks[2].io;
    sl_abi_task_ack(bolt);
    sl_abi_task_fail(bolt);
    sl_abi_task_reset(bolt);
    assert_true(sl_abi_task_hold(bolt) < 0);
    sl_abi_anchors_add_current(bolt);
    rig_run(rig);
    assert_int_equal(rig_stats(rig, 1).acked, 1);
    assert_int_equal(rig_stats(rig, 1).failed, 0);
    rig_free(rig);
}

static void
test_periods_of_ticks_must_be_numbers_that_make_sense(void **state)
{
    (void)state;
    struct rig *rig = rig_small();
    static const double periods[] = {0, -1, NAN, INFINITY, 1e300, 1e-9};
    for (size_t i = 0; i < array_size(periods); i++) {
        REFUSES(sl_abi_task_tick(rig->tasks[2].io, periods[i], 1));
    }
    rig_run(rig);
    rig_free(rig);
}

static void
test_signals_of_a_worker_that_is_gone_reach_nobody(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct sl_worker *worker = sl_abi_worker_new(&options);
    assert_int_equal(sl_abi_worker_catch_signals(worker), 0);
    raise(SIGINT);
    struct sl_event event;
    assert_int_equal(sl_abi_worker_wait(worker, 0, &event), 1);
    assert_int_equal(event.kind, SL_EVENT_SIGNAL);
    sl_abi_worker_free(worker);
    raise(SIGINT);
    assert_int_equal(sl_abi_worker_catch_signals(NULL), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_null_workers_and_executors_are_refused),
    cmocka_unit_test(test_null_tasks_routes_and_outboxes_are_refused),
    cmocka_unit_test(test_turns_that_do_not_run_can_not_be_ended),
    cmocka_unit_test(test_a_batch_that_is_ended_wrongly_counts_as_executed),
    cmocka_unit_test(test_acks_outside_of_a_turn_do_nothing),
    cmocka_unit_test(test_periods_of_ticks_must_be_numbers_that_make_sense),
    cmocka_unit_test(test_signals_of_a_worker_that_is_gone_reach_nobody),
};

UNIT_MAIN(tests)
