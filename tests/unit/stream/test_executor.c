/* The loop: sizes of turns, ticks, rounds, ends of input, cycles, drains, back pressure. */

#include "rig.h"

/* ---- what the components of these tests do --------------------------------------------------- */

/* Emits 0, 1, .. limit - 1 with ids, then is done. */
static int
count_up(struct rig_task *task)
{
    if (task->count >= task->limit) {
        return SL_SPOUT_DONE;
    }
    int64_t values[4] = {task->count, task->id, 0, 0};
    assert_int_equal(rig_emit_root(task, values, task->count), 0);
    task->count++;
    return SL_SPOUT_EMITTED;
}

/* The same without ids. */
static int
count_up_untracked(struct rig_task *task)
{
    if (task->count >= task->limit) {
        return SL_SPOUT_DONE;
    }
    int64_t values[4] = {task->count++, task->id, 0, 0};
    assert_int_equal(rig_emit_root(task, values, RIG_NO_ID), 0);
    return SL_SPOUT_EMITTED;
}

static int
say_nothing(struct rig_task *task)
{
    task->count++;
    return SL_SPOUT_NOTHING;
}

static void
add_up(struct rig_task *task, struct sl_record *record)
{
    task->count++;
    task->sum += rig_value(record, 0);
}

static void
pass_on(struct rig_task *task, struct sl_record *record)
{
    add_up(task, record);
    int64_t values[4] = {rig_value(record, 0), task->id, 0, 0};
    assert_int_equal(rig_emit(task, values), 0);
}

static void
count_settled(struct rig_task *task, int64_t id, bool has_failed)
{
    (void)id;
    task->sum += has_failed ? 1000000 : 1;
}

static struct sl__root *
first_root(struct rig *rig, int32_t id)
{
    return &rig_inner(rig, id)->roots[0];
}

/* ---- rounds -----------------------------------------------------------------------------------
 */

static void
keep_it(struct rig_task *task, struct sl_record *record)
{
    (void)record;
    task->count++;
    sl_task_hold(task->io);
}

/* spout 1 -> bolt 2 that never acks; `timeout_ms`. */
static struct rig *
rig_unacked(double timeout_ms, int32_t ackers)
{
    struct sl_worker_options options = rig_options();
    options.message_timeout_ms = timeout_ms;
    struct rig *rig = rig_new(&options);
    int32_t spout =
        rig_component(rig, SL_TASK_SPOUT, 0, -1, 1,
                      (struct rig_component){.next = count_up, .settled = count_settled});
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 0,
                                 (struct rig_component){.execute = keep_it, .is_manual = true});
    rig_read(rig, spout, bolt, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, bolt, 2, 0);
    if (ackers > 0) {
        int32_t acker = rig_component(rig, SL_TASK_ACKER, 0, -1, 0, (struct rig_component){0});
        for (int32_t i = 0; i < ackers; i++) {
            rig_plan(rig, acker, 10 + i, 0);
        }
    }
    return rig;
}

/* A tuple emitted at any phase of the rounds fails after more than T and at most 1.25 T. */
static void
check_expiry(double timeout_ms, int32_t ackers)
{
    for (double phase = 0; phase < timeout_ms; phase += timeout_ms / 7) {
        struct rig *rig = rig_unacked(timeout_ms, ackers);
        rig->tasks[1].limit = 1;
        rig_attach_all(rig);
        rig_advance(rig, phase);
        rig_command_all(rig, SL_COMMAND_ACTIVATE);
        rig_run(rig);
        assert_int_equal(rig_stats(rig, 1).pending, 1);
        rig_advance(rig, timeout_ms);
        assert_int_equal(rig_stats(rig, 1).failed, 0);
        rig_advance(rig, timeout_ms / 4);
        assert_int_equal(rig_stats(rig, 1).failed, 1);
        assert_int_equal(rig->tasks[1].sum, 1000000);
        assert_int_equal(rig_stats(rig, 1).pending, 0);
        /* The bolt has let go of it as well. */
        assert_int_equal(rig_inner(rig, 2)->held_in_use, 0);
        rig_free(rig);
    }
}

static void
test_a_tuple_that_is_not_acked_fails_between_t_and_1_25_t(void **state)
{
    (void)state;
    check_expiry(1000, 0);
    check_expiry(1, 0);
    check_expiry(30000, 0);
}

static void
test_a_tuple_fails_as_late_with_ackers(void **state)
{
    (void)state;
    check_expiry(1000, 2);
}

static void
test_a_clock_that_leaps_ends_what_is_old_and_costs_no_loop(void **state)
{
    (void)state;
    struct rig *rig = rig_unacked(1, 0);
    rig->tasks[1].limit = 3;
    rig_open(rig);
    rig_run(rig);
    /* 1000 days are 3.5e11 rounds. */
    assert_int_equal(sl_worker_advance(rig->worker, 1000.0 * 86400 * 1000), 0);
    rig_run(rig);
    assert_int_equal(rig_stats(rig, 1).failed, 3);
    rig_free(rig);
}

/* A next_tuple that blocks for a long time before it emits: the time-out counts from the emit. */
static int
block_then_emit(struct rig_task *task)
{
    if (task->count >= task->limit) {
        return SL_SPOUT_DONE;
    }
    sl_worker_advance(task->rig->worker, 60000);
    return count_up(task);
}

static void
test_the_time_out_of_a_tuple_starts_after_a_call_that_blocked(void **state)
{
    (void)state;
    for (int32_t ackers = 0; ackers <= 1; ackers++) {
        struct rig *rig = rig_unacked(1000, ackers);
        rig->components[0].next = block_then_emit;
        rig->tasks[1].limit = 1;
        rig_open(rig);
        rig_run(rig);
        assert_int_equal(rig->tasks[2].count, 1);
        assert_int_equal(rig_stats(rig, 1).failed, 0);
        rig_advance(rig, 1000);
        assert_int_equal(rig_stats(rig, 1).failed, 0);
        rig_advance(rig, 250);
        assert_int_equal(rig_stats(rig, 1).failed, 1);
        rig_free(rig);
    }
}

static void
block_and_ack(struct rig_task *task, struct sl_record *record)
{
    add_up(task, record);
    sl_worker_advance(task->rig->worker, 60000);
}

static void
test_an_ack_that_came_while_the_executor_was_away_is_in_time(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    struct rig *rig = rig_new(&options);
    int32_t spout =
        rig_component(rig, SL_TASK_SPOUT, 0, -1, 1,
                      (struct rig_component){.next = count_up, .settled = count_settled});
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 0,
                                 (struct rig_component){.execute = block_and_ack});
    rig_read(rig, spout, bolt, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, bolt, 2, 1);
    rig->tasks[1].limit = 1;
    rig_open(rig);
    rig_run(rig);
    assert_int_equal(rig->tasks[1].sum, 1);
    rig_free(rig);
}

static void
reset_it(struct rig_task *task, double now_ms)
{
    (void)now_ms;
    if (task->count > 0 && task->sum < 10) {
        task->sum++;
        assert_int_equal(sl_held_reset(task->io, (double)(uint64_t)0), 0);
    }
}

static void
test_reset_timeout_starts_the_time_again(void **state)
{
    (void)state;
    for (int32_t ackers = 0; ackers <= 2; ackers += 2) {
        struct rig *rig = rig_unacked(1000, ackers);
        rig->components[1].tick = reset_it;
        rig->components[1].tick_ms = 500;
        rig->tasks[1].limit = 1;
        rig_open(rig);
        rig_run(rig);
        rig_advance(rig, 5000 + 1000);
        assert_int_equal(rig->tasks[2].sum, 10);
        assert_int_equal(rig_stats(rig, 1).failed, 0);
        rig_advance(rig, 500);
        assert_int_equal(rig_stats(rig, 1).failed, 1);
        rig_free(rig);
    }
}

/* ---- ticks ------------------------------------------------------------------------------------
 */

struct ticks {
    int count;
    double last_ms;
    double first_ms;
};

static void
note_tick(struct rig_task *task, double now_ms)
{
    struct ticks *ticks = task->user;
    ticks->first_ms = ticks->count == 0 ? now_ms : ticks->first_ms;
    ticks->last_ms = now_ms;
    ticks->count++;
}

static struct rig *
rig_ticking(double period_ms, bool is_aligned, double start_ms, struct ticks *ticks)
{
    struct sl_worker_options options = rig_options();
    options.manual_start_ms = start_ms;
    struct rig *rig = rig_new(&options);
    int32_t bolt =
        rig_component(rig, SL_TASK_BOLT, 1, -1, 0,
                      (struct rig_component){
                          .tick = note_tick, .tick_ms = period_ms, .is_tick_aligned = is_aligned});
    rig_plan(rig, bolt, 1, 0);
    rig->tasks[1].user = ticks;
    rig_open(rig);
    rig_run(rig);
    return rig;
}

static void
test_ticks_come_at_their_period(void **state)
{
    (void)state;
    struct ticks ticks = {0};
    struct rig *rig = rig_ticking(100, false, 1234, &ticks);
    rig_advance(rig, 99);
    assert_int_equal(ticks.count, 0);
    rig_advance(rig, 1);
    assert_int_equal(ticks.count, 1);
    assert_int_equal(ticks.last_ms, 1334);
    rig_advance(rig, 1000);
    assert_int_equal(ticks.count, 11);
    rig_free(rig);
}

static void
test_aligned_ticks_come_at_multiples_of_the_period(void **state)
{
    (void)state;
    struct ticks ticks = {0};
    struct rig *rig = rig_ticking(100, true, 1234, &ticks);
    rig_advance(rig, 65);
    assert_int_equal(ticks.count, 0);
    rig_advance(rig, 1);
    assert_int_equal(ticks.count, 1);
    assert_int_equal(ticks.first_ms, 1300);
    rig_advance(rig, 500);
    assert_int_equal(ticks.count, 6);
    assert_int_equal(ticks.last_ms, 1800);
    rig_free(rig);
}

static void
test_ticks_that_were_missed_are_skipped_and_the_grid_stays(void **state)
{
    (void)state;
    struct ticks ticks = {0};
    struct rig *rig = rig_ticking(100, true, 1000, &ticks);
    /* 3.5 periods at once: one tick, for the latest nominal time at or before now. */
    assert_int_equal(sl_worker_advance(rig->worker, 350), 0);
    rig_run(rig);
    assert_int_equal(ticks.count, 1);
    rig_advance(rig, 50);
    assert_int_equal(ticks.count, 2);
    assert_int_equal(ticks.last_ms, 1400);
    rig_free(rig);
}

static void
test_ticks_wait_while_the_executor_is_held(void **state)
{
    (void)state;
    struct ticks ticks = {0};
    struct rig *rig = rig_ticking(100, true, 1000, &ticks);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    rig_advance(rig, 100);
    assert_int_equal(ticks.count, 1);
    sl_executor_hold(executor, SL_HOLD_TICKS);
    /* Nothing that is due by a tick keeps it from sleeping. */
    assert_true(sl_executor_due_ms(executor) > 100);
    rig_advance(rig, 350);
    assert_int_equal(ticks.count, 1);
    sl_executor_hold(executor, SL_HOLD_NOTHING);
    rig_run(rig);
    assert_int_equal(ticks.count, 2);
    assert_int_equal(ticks.last_ms, 1200);
    rig_advance(rig, 50);
    assert_int_equal(ticks.count, 3);
    assert_int_equal(ticks.last_ms, 1500);
    rig_free(rig);
}

/* A tick that takes longer than its period. */
static void
tick_too_long(struct rig_task *task, double now_ms)
{
    (void)now_ms;
    task->finishes++;
    if (task->finishes < 1000) {
        sl_worker_advance(task->rig->worker, 30);
    }
}

static void
test_ticks_longer_than_their_period_starve_neither_data_nor_each_other(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1,
                                  (struct rig_component){.next = count_up_untracked});
    int32_t bolt = rig_component(
        rig, SL_TASK_BOLT, 1, -1, 0,
        (struct rig_component){.execute = add_up, .tick = tick_too_long, .tick_ms = 10});
    rig_read(rig, spout, bolt, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, bolt, 2, 0);
    rig_plan(rig, bolt, 3, 0);
    rig->tasks[1].limit = 200;
    rig_open(rig);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    struct sl_turn turn;
    sl_worker_advance(rig->worker, 10);
    for (int i = 0; i < 400 && rig->tasks[2].count + rig->tasks[3].count < 200; i++) {
        int kind = sl_executor_next(executor, &turn, 0);
        if (kind == SL_TURN_TICK) {
            tick_too_long(&rig->tasks[turn.task], 0);
            sl_turn_end(executor, &turn);
        } else if (kind == SL_TURN_SPOUT) {
            rig_spout(&rig->tasks[turn.task], &turn);
        } else if (kind == SL_TURN_BATCH) {
            rig_batch(rig, executor, &turn);
        } else {
            assert_true(kind == SL_TURN_COMMAND || kind == SL_TURN_FINISH);
            sl_turn_end(executor, &turn);
        }
    }
    assert_int_equal(rig->tasks[2].count + rig->tasks[3].count, 200);
    assert_true(rig->tasks[2].finishes > 0);
    int64_t apart = rig->tasks[2].finishes - rig->tasks[3].finishes;
    assert_in_range(apart + 1, 0, 2);
    rig_free(rig);
}

/* Waits inside an emit for a step; its turn ends with this tuple. */
static void
wait_a_step(struct rig_task *task, struct sl_record *record)
{
    struct rig *rig = task->rig;
    struct sl_task *spout = rig->tasks[1].io;
    struct sl_turn turn;
    add_up(task, record);
    task->io->yield = 1;
    task->finishes = rig->tasks[2].finishes;
    spout->is_full = 1;
    int kind = sl_executor_await_root(task->executor, &turn, spout, 0);
    spout->is_full = 0;
    if (task->user == NULL) {
        /* Ticks that are due belong to earlier tasks. */
        assert_int_equal(kind, SL_TURN_NONE);
        return;
    }
    assert_int_equal(kind, SL_TURN_TICK);
    assert_int_equal(turn.task, 4);
    tick_too_long(&rig->tasks[turn.task], 0);
    sl_turn_end(task->executor, &turn);
}

/* spout 1 -> bolt 3 that waits with every tuple; 2, 5 of an earlier component tick all the time,
 * and if `ticks_later` 4 of a later one does. */
static struct rig *
rig_ticking_around_a_wait(int64_t tuples, bool ticks_later)
{
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    struct rig_component ticking = {.tick = tick_too_long, .tick_ms = 10};
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1,
                                  (struct rig_component){.next = count_up_untracked});
    int32_t early = rig_component(rig, SL_TASK_BOLT, 1, -1, 0, ticking);
    int32_t middle =
        rig_component(rig, SL_TASK_BOLT, 2, -1, 0, (struct rig_component){.execute = wait_a_step});
    int32_t late = rig_component(rig, SL_TASK_BOLT, 3, -1, 0,
                                 ticks_later ? ticking : (struct rig_component){0});
    rig_read(rig, spout, middle, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, early, 2, 0);
    rig_plan(rig, middle, 3, 0);
    rig_plan(rig, late, 4, 0);
    rig_plan(rig, early, 5, 0);
    rig->tasks[1].limit = tuples;
    rig->tasks[3].user = ticks_later ? rig : NULL;
    rig_open(rig);
    sl_worker_advance(rig->worker, 10);
    rig_run(rig);
    assert_int_equal(rig->tasks[3].count, tuples);
    return rig;
}

static void
test_a_wait_inside_an_emit_does_not_take_the_place_of_ticks_outside(void **state)
{
    (void)state;
    struct rig *rig = rig_ticking_around_a_wait(30, false);
    /* Between two of the 30 turns that wait one of the two earlier tasks has ticked. */
    assert_in_range(rig->tasks[3].finishes, 14, 16);
    rig_free(rig);
}

static void
test_ticks_inside_an_emit_make_none_outside_be_skipped(void **state)
{
    (void)state;
    struct rig *rig = rig_ticking_around_a_wait(30, true);
    assert_in_range(rig->tasks[3].finishes, 14, 16);
    rig_free(rig);
}

/* ---- sizes of turns ---------------------------------------------------------------------------
 */

struct turns {
    int32_t largest;
    int64_t after_cost;
};

static void
take_half_a_millisecond(struct rig_task *task, struct sl_record *record)
{
    add_up(task, record);
    sl_worker_advance(task->rig->worker, 0.5);
}

static void
test_a_turn_fits_into_a_millisecond(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.batch_bytes = 8192;
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1,
                                  (struct rig_component){.next = count_up_untracked});
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 0,
                                 (struct rig_component){.execute = take_half_a_millisecond});
    rig_read(rig, spout, bolt, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, bolt, 2, 0);
    rig->tasks[1].limit = 150;
    rig_open(rig);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    struct sl_turn turn;
    int batches = 0;
    int kind;
    while ((kind = sl_executor_next(executor, &turn, 0)) != SL_TURN_NONE) {
        if (kind == SL_TURN_SPOUT) {
            rig_spout(&rig->tasks[1], &turn);
        } else if (kind == SL_TURN_BATCH) {
            /* At first little, since the cost is not known; then two of half a millisecond. */
            assert_in_range(turn.count, 1, batches == 0 ? 32 : 2);
            batches++;
            rig_batch(rig, executor, &turn);
        } else if (kind != SL_TURN_COMMAND) {
            sl_turn_end(executor, &turn);
        }
    }
    assert_int_equal(rig->tasks[2].count, 150);
    assert_true(batches > 50);
    rig_free(rig);
}

static void
test_a_spout_that_emits_nothing_is_polled_less_and_less(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    int32_t spout =
        rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){.next = say_nothing});
    rig_plan(rig, spout, 1, 0);
    rig_open(rig);
    rig_run(rig);
    rig_advance(rig, 10);
    int64_t warm = rig->tasks[1].count;
    assert_in_range(warm, 5, 20);
    rig_advance(rig, 400);
    assert_in_range(rig->tasks[1].count - warm, 22, 28);
    rig_free(rig);
}

/* ---- ends of input ----------------------------------------------------------------------------
 */

/*
 * Random DAGs: each bolt reads some of the components before it.  All that is emitted is executed,
 * every task finishes exactly once and only when its senders have, and executors say so at the end.
 */
static void
test_every_task_of_a_dag_finishes_once_after_all_its_input(void **state)
{
    (void)state;
    struct sl_random random;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        sl_random_seed(&random, seed);
        struct sl_worker_options options = rig_options();
        options.executors = (int32_t)(1 + sl_random_below(&random, 3));
        options.is_acking = (int32_t)(seed % 2);
        options.seed = seed;
        struct rig *rig = rig_new(&options);
        int32_t id = 0;
        int64_t expected[8] = {0};
        int components = (int)(2 + sl_random_below(&random, 6));
        int spouts = (int)(1 + sl_random_below(&random, 2));
        for (int c = 0; c < components; c++) {
            bool is_spout = c < spouts;
            int32_t component = rig_component(
                rig, is_spout ? SL_TASK_SPOUT : SL_TASK_BOLT, is_spout ? 0 : c, -1, 1,
                is_spout ? (struct rig_component){.next = seed % 3 ? count_up : count_up_untracked}
                         : (struct rig_component){.execute = pass_on});
            int tasks = (int)(1 + sl_random_below(&random, 3));
            for (int t = 0; t < tasks; t++) {
                int32_t executor = (int32_t)sl_random_below(&random, (uint64_t)options.executors);
                rig->tasks[id].limit = (int64_t)sl_random_below(&random, 300);
                expected[c] += is_spout ? rig->tasks[id].limit : 0;
                rig_plan(rig, component, id++, executor);
            }
            bool is_fed = is_spout;
            for (int source = 0; source < c && !is_spout; source++) {
                if (sl_random_below(&random, 2) == 0 || (source == c - 1 && !is_fed)) {
                    bool is_all = sl_random_below(&random, 4) == 0;
                    rig_read(rig, source, component,
                             is_all ? SL_GROUPING_ALL : SL_GROUPING_SHUFFLE);
                    expected[c] += expected[source] * (is_all ? tasks : 1);
                    is_fed = true;
                }
            }
        }
        rig_open(rig);
        rig_run(rig);
        int64_t executed[8] = {0};
        for (int32_t i = 0; i < id; i++) {
            struct rig_task *task = &rig->tasks[i];
            assert_true(rig_inner(rig, i)->is_finished);
            assert_int_equal(task->finishes, task->io->kind == SL_TASK_BOLT);
            executed[task->io->component] += task->count;
        }
        for (int c = 0; c < components; c++) {
            assert_int_equal(executed[c], expected[c]);
        }
        assert_int_equal(rig_heard(rig, SL_EVENT_FINISHED), options.executors);
        assert_int_equal(rig_heard(rig, SL_EVENT_RESUMED), 0);
        rig_free(rig);
    }
}

/* What a bolt emits in `finish` is still executed by its readers before they finish. */
static void
emit_total(struct rig_task *task)
{
    int64_t values[4] = {task->count, task->id, 0, 0};
    assert_int_equal(rig_emit(task, values), 0);
}

static void
test_what_finish_emits_comes_before_the_end_of_the_readers(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    struct rig *rig = rig_new(&options);
    int32_t spout =
        rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){.next = count_up});
    int32_t total = rig_component(rig, SL_TASK_BOLT, 1, -1, 1,
                                  (struct rig_component){.execute = add_up, .finish = emit_total});
    int32_t sink =
        rig_component(rig, SL_TASK_BOLT, 2, -1, 0, (struct rig_component){.execute = add_up});
    rig_read(rig, spout, total, SL_GROUPING_SHUFFLE);
    rig_read(rig, total, sink, SL_GROUPING_GLOBAL);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, total, 2, 0);
    rig_plan(rig, total, 3, 1);
    rig_plan(rig, sink, 4, 1);
    rig->tasks[1].limit = 501;
    rig_open(rig);
    rig_run(rig);
    assert_int_equal(rig->tasks[4].count, 2);
    assert_int_equal(rig->tasks[4].sum, 501);
    assert_int_equal(rig->tasks[4].finishes, 1);
    rig_free(rig);
}

static void
test_an_executor_has_finished_when_all_it_sent_was_executed(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1,
                                  (struct rig_component){.next = count_up_untracked});
    int32_t bolt =
        rig_component(rig, SL_TASK_BOLT, 1, -1, 0, (struct rig_component){.execute = add_up});
    rig_read(rig, spout, bolt, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, bolt, 2, 1);
    rig->tasks[1].limit = 5;
    rig_open(rig);
    rig->is_running[1] = true;
    rig_run(rig);
    assert_true(rig_inner(rig, 1)->is_finished);
    assert_int_equal(rig_heard(rig, SL_EVENT_FINISHED), 0);
    rig->is_running[1] = false;
    rig_run(rig);
    assert_int_equal(rig->tasks[2].count, 5);
    assert_int_equal(rig_heard(rig, SL_EVENT_FINISHED), 2);
    rig_free(rig);
}

/* ---- cycles -----------------------------------------------------------------------------------
 */

/* Sends each tuple round `second value` more times. */
static void
go_round(struct rig_task *task, struct sl_record *record)
{
    add_up(task, record);
    int64_t left = rig_value(record, 1);
    if (left > 0) {
        int64_t values[4] = {rig_value(record, 0), left - 1, 0, 0};
        assert_int_equal(rig_emit(task, values), 0);
    }
}

static int
start_rounds(struct rig_task *task)
{
    if (task->count >= task->limit) {
        return SL_SPOUT_DONE;
    }
    int64_t values[4] = {task->count, 9, 0, 0};
    assert_int_equal(rig_emit_root(task, values, task->count), 0);
    task->count++;
    return SL_SPOUT_EMITTED;
}

/* spout 1 -> a (2, 3) -> b (4) -> a; `executors`. */
static struct rig *
rig_cycle(int32_t executors, struct rig_component a, struct rig_component b)
{
    struct sl_worker_options options = rig_options();
    options.executors = executors;
    options.max_spout_pending = 100000;
    struct rig *rig = rig_new(&options);
    int32_t spout =
        rig_component(rig, SL_TASK_SPOUT, 0, -1, 2,
                      (struct rig_component){.next = start_rounds, .settled = count_settled});
    int32_t first = rig_component(rig, SL_TASK_BOLT, 1, 0, 2, a);
    int32_t second = rig_component(rig, SL_TASK_BOLT, 1, 0, 2, b);
    rig_read(rig, spout, first, SL_GROUPING_SHUFFLE);
    rig_read(rig, first, second, SL_GROUPING_SHUFFLE);
    rig_read(rig, second, first, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, first, 2, 0);
    rig_plan(rig, first, 3, executors - 1);
    rig_plan(rig, second, 4, executors / 2);
    return rig;
}

static void
test_a_cycle_with_a_gain_of_one_neither_jams_nor_loses_and_ends(void **state)
{
    (void)state;
    for (int32_t executors = 1; executors <= 3; executors++) {
        struct rig_component code = {.execute = go_round};
        struct rig *rig = rig_cycle(executors, code, code);
        rig->tasks[1].limit = 5000;
        rig_open(rig);
        rig_run(rig);
        int64_t executed = rig->tasks[2].count + rig->tasks[3].count + rig->tasks[4].count;
        assert_int_equal(executed, 5000 * 10);
        assert_int_equal(rig->tasks[1].sum, 5000);
        assert_int_equal(sl_worker_dropped_in_cycles(rig->worker), 0);
        for (int32_t id = 2; id <= 4; id++) {
            assert_int_equal(rig->tasks[id].finishes, 1);
        }
        assert_int_equal(rig_heard(rig, SL_EVENT_FINISHED), executors);
        rig_free(rig);
    }
}

/* Two for one: the cycle overflows. */
static void
multiply(struct rig_task *task, struct sl_record *record)
{
    task->count++;
    if (task->count < 200000) {
        int64_t values[4] = {rig_value(record, 0), 9, 0, 0};
        assert_int_equal(rig_emit(task, values), 0);
        assert_int_equal(rig_emit(task, values), 0);
    }
}

static void
test_a_cycle_that_overflows_is_bounded_and_fails_the_roots(void **state)
{
    (void)state;
    for (int32_t executors = 1; executors <= 2; executors++) {
        struct rig_component code = {.execute = multiply};
        struct rig *rig = rig_cycle(executors, code, code);
        rig->tasks[1].limit = 50;
        rig_open(rig);
        rig_run(rig);
        assert_true(sl_worker_dropped_in_cycles(rig->worker) > 1000);
        /* Every root ended, those whose tuples were dropped as failed. */
        int64_t failed = rig->tasks[1].sum / 1000000;
        int64_t acked = rig->tasks[1].sum % 1000000;
        assert_int_equal(failed + acked, 50);
        assert_true(failed > 0);
        /* Blocks: what all outboxes may hold, and no more. */
        for (int32_t e = 0; e < executors; e++) {
            assert_true(sl_worker_executor(rig->worker, e)->pool.made <= 8 * (4 * 8 + 2));
        }
        rig_free(rig);
    }
}

/* ---- back pressure ----------------------------------------------------------------------------
 */

static void
test_a_gated_spout_waits_and_memory_stays_bounded(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1,
                                  (struct rig_component){.next = count_up_untracked});
    int32_t bolt =
        rig_component(rig, SL_TASK_BOLT, 1, -1, 0, (struct rig_component){.execute = add_up});
    rig_read(rig, spout, bolt, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, bolt, 2, 1);
    rig->tasks[1].limit = 1000000;
    rig_open(rig);
    /* Only the spout's executor runs. */
    rig->is_running[1] = true;
    rig_run(rig);
    int64_t per_batch = 1024 / (sizeof(struct sl_record) + sizeof(struct sl_slot));
    assert_in_range(rig->tasks[1].count, 4 * per_batch, 6 * per_batch);
    assert_true(sl_worker_executor(rig->worker, 0)->pool.made <= 6);
    /* Five batches are under way; when two are executed there is credit for one more. */
    rig->is_running[1] = false;
    struct sl_turn turn;
    struct sl_executor *second = sl_worker_executor(rig->worker, 1);
    while (rig->tasks[2].count < 2 * per_batch) {
        int kind = sl_executor_next(second, &turn, 0);
        assert_true(kind == SL_TURN_BATCH || kind == SL_TURN_COMMAND);
        if (kind == SL_TURN_BATCH) {
            rig_batch(rig, second, &turn);
        }
    }
    int64_t before = rig->tasks[1].count;
    rig->is_running[1] = true;
    rig_run(rig);
    assert_in_range(rig->tasks[1].count - before, 1, 3 * per_batch);
    rig_free(rig);
}

static void
test_a_task_that_keeps_its_way_runs_with_nothing_under_way(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1,
                                  (struct rig_component){.next = count_up_untracked});
    int32_t bolt =
        rig_component(rig, SL_TASK_BOLT, 1, -1, 0, (struct rig_component){.execute = add_up});
    rig_read(rig, spout, bolt, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, bolt, 2, 1);
    rig->tasks[1].limit = 1000000;
    rig_open(rig);
    struct sl_executor *first = sl_worker_executor(rig->worker, 0);
    sl_executor_hold(first, SL_HOLD_TICKS_AND_WAY);
    rig->is_running[1] = true;
    rig_run(rig);
    int64_t per_batch = 1024 / (sizeof(struct sl_record) + sizeof(struct sl_slot));
    int64_t before = rig->tasks[1].count;
    assert_in_range(before, 1, 3 * per_batch);
    sl_executor_hold(first, SL_HOLD_TICKS);
    rig_run(rig);
    assert_in_range(rig->tasks[1].count, before + per_batch, 6 * per_batch);
    rig_free(rig);
}

/* One execute that emits far more than all batches hold. */
static void
burst(struct rig_task *task, struct sl_record *record)
{
    (void)record;
    for (int64_t i = 0; i < 100000; i++) {
        assert_int_equal(rig_emit_direct(task, i, RIG_NO_ID), 0);
    }
}

static void
test_one_execute_may_emit_any_number_of_tuples(void **state)
{
    (void)state;
    for (int32_t executors = 1; executors <= 2; executors++) {
        struct sl_worker_options options = rig_options();
        options.executors = executors;
        struct rig *rig = rig_new(&options);
        int32_t spout =
            rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){.next = count_up});
        int32_t middle =
            rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){.execute = burst});
        int32_t sink =
            rig_component(rig, SL_TASK_BOLT, 2, -1, 0, (struct rig_component){.execute = add_up});
        rig_read(rig, spout, middle, SL_GROUPING_SHUFFLE);
        rig_read(rig, middle, sink, SL_GROUPING_SHUFFLE);
        rig_plan(rig, spout, 1, 0);
        rig_plan(rig, middle, 2, 0);
        rig_plan(rig, sink, 3, executors - 1);
        rig->tasks[1].limit = 3;
        rig_open(rig);
        rig_run(rig);
        assert_int_equal(rig->tasks[3].count, 300000);
        assert_int_equal(rig_stats(rig, 1).acked, 3);
        assert_true(sl_worker_executor(rig->worker, 0)->pool.made <= 16);
        rig_free(rig);
    }
}

static int await_code;

static void
wait_for_room(struct rig_task *task, struct sl_record *record)
{
    struct sl_outbox *outbox = sl_emitter_route(sl_task_emitter(task->io, 0), 0)->targets[0];
    struct sl_turn turn;
    (void)record;
    for (int64_t i = 0; outbox->pos == NULL || sl__outbox_can_hand_over(sl__outbox_of(outbox));
         i++) {
        assert_int_equal(rig_emit_direct(task, i, RIG_NO_ID), 0);
    }
    assert_int_equal(sl_executor_await(task->executor, &turn, outbox, 1, 0), SL_TURN_NONE);
    rig_command_all(task->rig, SL_COMMAND_STOP);
    await_code = sl_executor_await(task->executor, &turn, outbox, 1, 1);
}

static void
test_an_emit_that_waits_gives_up_when_the_executor_is_to_stop(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    struct rig *rig = rig_new(&options);
    int32_t spout =
        rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){.next = count_up});
    int32_t middle = rig_component(rig, SL_TASK_BOLT, 1, -1, 1,
                                   (struct rig_component){.execute = wait_for_room});
    int32_t sink =
        rig_component(rig, SL_TASK_BOLT, 2, -1, 0, (struct rig_component){.execute = add_up});
    rig_read(rig, spout, middle, SL_GROUPING_SHUFFLE);
    rig_read(rig, middle, sink, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, middle, 2, 0);
    rig_plan(rig, sink, 3, 1);
    rig->tasks[1].limit = 1;
    rig_open(rig);
    rig->is_running[1] = true;
    assert_true(rig_turns(rig, sl_worker_executor(rig->worker, 0)));
    assert_int_equal(await_code, SL_ECANCELED);
    rig_free(rig);
}

static void
test_a_chain_longer_than_the_pool_does_not_jam(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.pool_bytes = 0;
    struct rig *rig = rig_new(&options);
    enum { BOLTS = 60 };
    int32_t before =
        rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){.next = count_up});
    rig_plan(rig, before, 1, 0);
    for (int32_t i = 0; i < BOLTS; i++) {
        int32_t bolt = rig_component(rig, SL_TASK_BOLT, i + 1, -1, 1,
                                     (struct rig_component){.execute = pass_on});
        rig_read(rig, before, bolt, SL_GROUPING_SHUFFLE);
        rig_plan(rig, bolt, i + 2, 0);
        before = bolt;
    }
    rig->tasks[1].limit = 3000;
    rig_open(rig);
    rig_run(rig);
    assert_int_equal(rig->tasks[BOLTS + 1].count, 3000);
    assert_int_equal(rig_stats(rig, 1).acked, 3000);
    assert_true(sl_worker_executor(rig->worker, 0)->pool.made <= 16 + BOLTS);
    rig_free(rig);
}

static void
test_max_spout_pending_holds_the_spout_back(void **state)
{
    (void)state;
    struct rig *rig = rig_unacked(100000, 0);
    rig->worker->max_pending = 10;
    rig->tasks[1].limit = 100;
    rig_open(rig);
    rig_run(rig);
    assert_int_equal(rig->tasks[1].count, 10);
    for (int slot = 0; slot < 10; slot++) {
        assert_int_equal(sl_held_settle(rig->tasks[2].io, slot, 0), 0);
    }
    rig_run(rig);
    assert_int_equal(rig->tasks[1].count, 20);
    assert_int_equal(rig->tasks[1].sum, 10);
    rig_free(rig);
}

/* ---- draining and stopping --------------------------------------------------------------------
 */

static void
test_drain_lets_no_spout_emit_and_ends_when_all_is_acked(void **state)
{
    (void)state;
    struct rig *rig = rig_unacked(10000, 0);
    rig->tasks[1].limit = INT64_MAX;
    rig->worker->max_pending = 25;
    rig_open(rig);
    rig_run(rig);
    assert_int_equal(rig->tasks[1].count, 25);
    rig_command_all(rig, SL_COMMAND_DRAIN);
    rig_run(rig);
    assert_int_equal(rig_heard(rig, SL_EVENT_FINISHED), 0);
    for (int slot = 0; slot < 25; slot++) {
        assert_int_equal(sl_held_settle(rig->tasks[2].io, slot, slot == 7), 0);
    }
    rig_run(rig);
    assert_int_equal(rig->tasks[1].count, 25);
    assert_int_equal(rig->tasks[1].sum, 1000024);
    assert_int_equal(rig_heard(rig, SL_EVENT_FINISHED), 1);
    rig_free(rig);
}

static void
test_deactivate_stops_spouts_until_activate(void **state)
{
    (void)state;
    struct rig *rig = rig_unacked(100000, 0);
    rig->components[1].is_manual = false;
    rig->components[1].execute = add_up;
    rig->tasks[1].limit = 100;
    rig_attach_all(rig);
    rig_run(rig);
    assert_int_equal(rig->tasks[1].count, 0);
    rig_command_all(rig, SL_COMMAND_ACTIVATE);
    rig_command_all(rig, SL_COMMAND_DEACTIVATE);
    rig_run(rig);
    assert_int_equal(rig->tasks[1].count, 0);
    rig_command_all(rig, SL_COMMAND_ACTIVATE);
    rig_run(rig);
    assert_int_equal(rig->tasks[1].count, 100);
    assert_int_equal(rig->tasks[1].sum, 100);
    assert_non_null(first_root(rig, 1));
    rig_free(rig);
}

/* ---- batches before their task -----------------------------------------------------------------
 */

static void
test_batches_that_come_before_their_task_wait_for_it(void **state)
{
    (void)state;
    for (int32_t executors = 1; executors <= 2; executors++) {
        struct sl_worker_options options = rig_options();
        options.executors = executors;
        struct rig *rig = rig_new(&options);
        int32_t spout =
            rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){.next = count_up});
        int32_t bolt =
            rig_component(rig, SL_TASK_BOLT, 1, -1, 0, (struct rig_component){.execute = add_up});
        rig_read(rig, spout, bolt, SL_GROUPING_SHUFFLE);
        rig_plan(rig, spout, 1, 0);
        rig_plan(rig, bolt, 2, executors - 1);
        rig->tasks[1].limit = 100;
        assert_int_equal(rig_attach(rig, sl_worker_executor(rig->worker, 0), 1, true), 0);
        rig_command_all(rig, SL_COMMAND_ACTIVATE);
        rig_run(rig);
        assert_int_equal(rig_heard(rig, SL_EVENT_FINISHED), 0);
        assert_int_equal(rig_attach(rig, sl_worker_executor(rig->worker, executors - 1), 2, true),
                         0);
        rig_run(rig);
        assert_int_equal(rig->tasks[2].count, 100);
        assert_int_equal(rig_stats(rig, 1).acked, 100);
        rig_free(rig);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_tuple_that_is_not_acked_fails_between_t_and_1_25_t),
    cmocka_unit_test(test_a_tuple_fails_as_late_with_ackers),
    cmocka_unit_test(test_a_clock_that_leaps_ends_what_is_old_and_costs_no_loop),
    cmocka_unit_test(test_the_time_out_of_a_tuple_starts_after_a_call_that_blocked),
    cmocka_unit_test(test_an_ack_that_came_while_the_executor_was_away_is_in_time),
    cmocka_unit_test(test_reset_timeout_starts_the_time_again),
    cmocka_unit_test(test_ticks_come_at_their_period),
    cmocka_unit_test(test_aligned_ticks_come_at_multiples_of_the_period),
    cmocka_unit_test(test_ticks_wait_while_the_executor_is_held),
    cmocka_unit_test(test_ticks_that_were_missed_are_skipped_and_the_grid_stays),
    cmocka_unit_test(test_ticks_longer_than_their_period_starve_neither_data_nor_each_other),
    cmocka_unit_test(test_a_wait_inside_an_emit_does_not_take_the_place_of_ticks_outside),
    cmocka_unit_test(test_ticks_inside_an_emit_make_none_outside_be_skipped),
    cmocka_unit_test(test_a_turn_fits_into_a_millisecond),
    cmocka_unit_test(test_a_spout_that_emits_nothing_is_polled_less_and_less),
    cmocka_unit_test(test_every_task_of_a_dag_finishes_once_after_all_its_input),
    cmocka_unit_test(test_what_finish_emits_comes_before_the_end_of_the_readers),
    cmocka_unit_test(test_an_executor_has_finished_when_all_it_sent_was_executed),
    cmocka_unit_test(test_a_cycle_with_a_gain_of_one_neither_jams_nor_loses_and_ends),
    cmocka_unit_test(test_a_cycle_that_overflows_is_bounded_and_fails_the_roots),
    cmocka_unit_test(test_a_gated_spout_waits_and_memory_stays_bounded),
    cmocka_unit_test(test_a_task_that_keeps_its_way_runs_with_nothing_under_way),
    cmocka_unit_test(test_one_execute_may_emit_any_number_of_tuples),
    cmocka_unit_test(test_an_emit_that_waits_gives_up_when_the_executor_is_to_stop),
    cmocka_unit_test(test_a_chain_longer_than_the_pool_does_not_jam),
    cmocka_unit_test(test_max_spout_pending_holds_the_spout_back),
    cmocka_unit_test(test_drain_lets_no_spout_emit_and_ends_when_all_is_acked),
    cmocka_unit_test(test_deactivate_stops_spouts_until_activate),
    cmocka_unit_test(test_batches_that_come_before_their_task_wait_for_it),
};

UNIT_MAIN(tests)
