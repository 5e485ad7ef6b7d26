/* The options of a worker, its threads, and tasks that come and go while tuples flow. */

#include <math.h>

#include "base/random.h"
#include "rig.h"

/* ---- options -----------------------------------------------------------------------------------
 */

static void
test_new_refuses_options_out_of_range(void **state)
{
    (void)state;
#define BAD(field, value)                                                                          \
    {                                                                                              \
        offsetof(struct sl_worker_options, field), value,                                          \
            sizeof(((struct sl_worker_options *)0)->field)                                         \
    }
    static const struct {
        size_t offset;
        double value;
        size_t size;
    } rows[] = {
        BAD(executors, 0),          BAD(executors, -1),           BAD(executors, 1025),
        BAD(message_timeout_ms, 0), BAD(message_timeout_ms, NAN), BAD(message_timeout_ms, INFINITY),
        BAD(max_spout_pending, 0),  BAD(task_capacity, 0),        BAD(task_capacity, 2e9),
        BAD(spout_capacity, -1),    BAD(spout_capacity, 65537),   BAD(acker_capacity, -1),
        BAD(batch_bytes, 1023),     BAD(batch_bytes, 2e9),        BAD(credit, 0),
        BAD(credit, 2e9),           BAD(pool_bytes, NAN),         BAD(pool_bytes, -1),
        BAD(pool_bytes, INFINITY),  BAD(manual_start_ms, NAN),
    };
#undef BAD
    for (size_t i = 0; i < array_size(rows); i++) {
        struct sl_worker_options options = rig_options();
        uint8_t *field = (uint8_t *)&options + rows[i].offset;
        if (rows[i].size == sizeof(double)) {
            memcpy(field, &rows[i].value, sizeof(double));
        } else {
            int32_t value = (int32_t)rows[i].value;
            memcpy(field, &value, sizeof(value));
        }
        assert_null(sl_worker_new(&options));
        assert_int_equal(sl_err_last()->code, SL_EINVAL);
    }
    sl_worker_free(NULL);
}

/* ---- tasks that come and go ---------------------------------------------------------------------
 */

enum {
    KEYS = 40,
    SOURCES = 64,
    GROUPS = 64,
};

/*
 * What all keyed tasks together see, by key and spout.  A (key, spout) is with one task at a time,
 * and goes to another one by a change of routes that the spout takes part in; each entry is
 * therefore touched by one thread at a time, except that an old and a new owner may overlap, which
 * is why it is locked.
 */
struct ledger {
    pthread_mutex_t lock;
    /* Of each number n that a (key, spout) was given: which task saw it. */
    int64_t last[SOURCES][KEYS];
    int32_t owner[SOURCES][KEYS];
    int64_t moves;
    int64_t seen;
    int64_t disorder;
    int64_t acked;
    int64_t failed;
    int64_t sunk;
    bool is_over;
};

static int
number_keys(struct rig_task *task)
{
    struct ledger *ledger = task->rig->user;
    int64_t key = task->count % KEYS;
    if (__atomic_load_n(&ledger->is_over, __ATOMIC_RELAXED) || task->count == task->limit) {
        return SL_SPOUT_DONE;
    }
    int64_t values[3] = {key, task->count / KEYS, task->id};
    if (rig_emit_root(task, values, task->count) != 0) {
        return SL_SPOUT_NOTHING;
    }
    task->count++;
    return SL_SPOUT_EMITTED;
}

static void
note_settled(struct rig_task *task, int64_t id, bool has_failed)
{
    struct ledger *ledger = task->rig->user;
    (void)id;
    __atomic_add_fetch(has_failed ? &ledger->failed : &ledger->acked, 1, __ATOMIC_RELAXED);
}

static void
keep_ledger(struct rig_task *task, struct sl_record *record)
{
    struct ledger *ledger = task->rig->user;
    int64_t key = rig_value(record, 0);
    int64_t n = rig_value(record, 1);
    int64_t spout = rig_value(record, 2);
    pthread_mutex_lock(&ledger->lock);
    ledger->seen++;
    task->count++;
    if (ledger->owner[spout][key] == task->id || ledger->owner[spout][key] == 0) {
        ledger->disorder += n < ledger->last[spout][key];
    } else {
        ledger->moves++;
    }
    ledger->owner[spout][key] = task->id;
    ledger->last[spout][key] = n;
    pthread_mutex_unlock(&ledger->lock);
    rig_emit(task, (int64_t[]){key, n, 0});
}

static void
sink_it(struct rig_task *task, struct sl_record *record)
{
    struct ledger *ledger = task->rig->user;
    (void)record;
    task->count++;
    __atomic_add_fetch(&ledger->sunk, 1, __ATOMIC_RELAXED);
}

/* spouts 1, 2 -fields-> keyed 3, 4 -shuffle-> sink 5 */
static struct rig *
rig_keyed(int32_t executors, int32_t ackers, bool is_manual_clock, struct ledger *ledger)
{
    struct sl_worker_options options = rig_options();
    options.executors = executors;
    options.is_manual_clock = is_manual_clock;
    options.message_timeout_ms = 1e6;
    options.max_spout_pending = 300;
    struct rig *rig = rig_new(&options);
    rig->user = ledger;
    int32_t spout =
        rig_component(rig, SL_TASK_SPOUT, 0, -1, 3,
                      (struct rig_component){.next = number_keys, .settled = note_settled});
    int32_t keyed =
        rig_component(rig, SL_TASK_BOLT, 1, -1, 3, (struct rig_component){.execute = keep_ledger});
    int32_t sink =
        rig_component(rig, SL_TASK_BOLT, 2, -1, 0, (struct rig_component){.execute = sink_it});
    rig_read(rig, spout, keyed, SL_GROUPING_FIELDS);
    rig_read(rig, keyed, sink, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, spout, 2, executors - 1);
    rig_plan(rig, keyed, 3, 0);
    rig_plan(rig, keyed, 4, executors - 1);
    rig_plan(rig, sink, 5, 0);
    rig_groups(rig, keyed, GROUPS);
    if (ackers > 0) {
        int32_t acker = rig_component(rig, SL_TASK_ACKER, 0, -1, 0, (struct rig_component){0});
        rig_plan(rig, acker, 100, 0);
        rig_plan(rig, acker, 101, executors - 1);
    }
    for (int32_t id = 0; id < RIG_TASKS; id++) {
        rig->tasks[id].limit = INT64_MAX;
    }
    pthread_mutex_init(&ledger->lock, NULL);
    return rig;
}

static void
ledger_check(struct rig *rig, const struct ledger *ledger)
{
    int64_t emitted = 0;
    for (int32_t component = 0; component < 1; component++) {
        struct sl_task_stats gone;
        assert_int_equal(sl_worker_gone_stats(rig->worker, component, &gone), 0);
        emitted += (int64_t)gone.emitted;
    }
    for (int32_t id = 0; id < RIG_TASKS; id++) {
        struct sl_task_stats stats;
        if (sl_worker_stats(rig->worker, id, &stats) == 0 && stats.component == 0) {
            emitted += (int64_t)stats.emitted;
            assert_int_equal(stats.pending, 0);
        }
    }
    assert_true(emitted > 0);
    assert_int_equal(ledger->failed, 0);
    assert_int_equal(ledger->acked, emitted);
    assert_int_equal(ledger->seen, emitted);
    assert_int_equal(ledger->sunk, emitted);
    assert_int_equal(ledger->disorder, 0);
}

/* Some turns of everybody, single-threaded, of 10 us each. */
static void
run_some(struct rig *rig, int turns)
{
    for (int i = 0; i < turns; i++) {
        struct sl_turn turn;
        struct sl_executor *executor =
            sl_worker_executor(rig->worker, i % rig->worker->executor_count);
        sl_worker_advance(rig->worker, 0.01);
        int kind = sl_executor_next(executor, &turn, 0);
        if (kind == SL_TURN_SPOUT) {
            rig_spout(&rig->tasks[turn.task], &turn);
        } else if (kind == SL_TURN_BATCH) {
            rig_batch(rig, executor, &turn);
        } else if (kind == SL_TURN_ACKS) {
            rig_acks(&rig->tasks[turn.task], &turn);
        } else if (kind == SL_TURN_COMMAND) {
            rig_command(rig, executor, &turn);
            sl_turn_end(executor, &turn);
        } else if (kind == SL_TURN_FINISH) {
            rig->tasks[turn.task].finishes++;
            sl_turn_end(executor, &turn);
        }
    }
}

/* Random changes at random moments: nothing is lost, doubled, or out of order. */
static void
test_random_changes_lose_nothing_and_keep_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct sl_random random;
        sl_random_seed(&random, seed);
        int32_t executors = 1 + (int32_t)(seed % 3);
        struct ledger ledger = {0};
        struct rig *rig = rig_keyed(executors, seed % 4 == 0, true, &ledger);
        rig_open(rig);
        int32_t next_id = 10;
        int removed = 0;
        for (int change = 0; change < 12; change++) {
            run_some(rig, (int)sl_random_below(&random, 400));
            int32_t component = sl_random_below(&random, 3) == 0 ? 0 : 1;
            int32_t ids[RIG_TASKS];
            int count = sl_worker_tasks(rig->worker, component, ids, RIG_TASKS);
            if (count < 2 || sl_random_below(&random, 2) == 0) {
                int32_t executor = (int32_t)sl_random_below(&random, (uint64_t)executors);
                rig_plan(rig, component, next_id, executor);
                sl_worker_command(rig->worker, executor, SL_COMMAND_ADD_TASK, next_id++);
            } else {
                int32_t id = ids[sl_random_below(&random, (uint64_t)count)];
                struct sl_planned planned;
                assert_int_equal(sl_worker_planned(rig->worker, id, &planned), 0);
                /* Not one that is still on its way to its executor. */
                if (rig->tasks[id].io != NULL) {
                    assert_int_equal(sl_worker_remove_task(rig->worker, id), 0);
                    sl_worker_command(rig->worker, planned.executor, SL_COMMAND_REMOVE_TASK, id);
                    removed++;
                }
            }
            rig_groups(rig, 1, GROUPS);
            run_some(rig, (int)sl_random_below(&random, 40));
            rig_command_all(rig, SL_COMMAND_ROUTES);
        }
        run_some(rig, 2000);
        ledger.is_over = true;
        rig_run(rig);
        rig_command_all(rig, SL_COMMAND_ROUTES);
        rig_run(rig);
        ledger_check(rig, &ledger);
        assert_true(removed > 0);
        assert_true(ledger.moves > 0);
        /* Every REMOVE was carried out, and every input ended. */
        int done = 0;
        rig_hear(rig);
        for (size_t i = 0; i < rig->seen.count; i++) {
            if (rig->seen.items[i].kind == SL_EVENT_DONE) {
                assert_string_equal(rig->seen.items[i].text, "");
                done++;
            }
        }
        assert_true(done > removed);
        for (int32_t e = 0; e < executors; e++) {
            assert_int_equal(sl_worker_executor(rig->worker, e)->leaving.count, 0);
            assert_true(sl_worker_executor(rig->worker, e)->is_finished_reported);
        }
        assert_int_equal(rig_heard(rig, SL_EVENT_FINISHED) - rig_heard(rig, SL_EVENT_RESUMED),
                         executors);
        assert_int_equal(rig->tasks[5].finishes, 1);
        /* No outbox leads to a task that is gone. */
        for (int32_t id = 0; id < RIG_TASKS; id++) {
            struct sl_planned planned;
            if (sl_worker_planned(rig->worker, id, &planned) != 0) {
                assert_int_equal(rig->worker->inbound[id], 0);
            }
        }
        pthread_mutex_destroy(&ledger.lock);
        rig_free(rig);
    }
}

static void
test_a_task_is_not_let_go_while_anything_of_it_is_under_way(void **state)
{
    (void)state;
    struct ledger ledger = {0};
    struct rig *rig = rig_keyed(2, 0, true, &ledger);
    rig->tasks[1].limit = rig->tasks[2].limit = 400;
    rig_open(rig);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 1);
    /* Executor 1 with task 4 does not run: its input waits in the ring. */
    rig->is_running[1] = true;
    rig_run(rig);
    assert_int_equal(sl_worker_remove_task(rig->worker, 4), 0);
    rig_groups(rig, 1, GROUPS);
    sl_worker_command(rig->worker, 0, SL_COMMAND_ROUTES, 1);
    rig_run(rig);
    assert_true(rig->worker->inbound[4] > 0);
    assert_int_equal(sl_executor_detach(executor, 4), SL_EAGAIN);
    rig->is_running[1] = false;
    sl_worker_command(rig->worker, 1, SL_COMMAND_ROUTES, 2);
    sl_worker_command(rig->worker, 1, SL_COMMAND_REMOVE_TASK, 4);
    rig_run(rig);
    struct sl_planned planned;
    assert_int_equal(sl_worker_planned(rig->worker, 4, &planned), SL_ENOTFOUND);
    struct sl_task_stats stats;
    assert_int_equal(sl_worker_stats(rig->worker, 4, &stats), SL_ENOTFOUND);
    rig_command_all(rig, SL_COMMAND_ROUTES);
    rig_run(rig);
    ledger_check(rig, &ledger);
    assert_int_equal(sl_worker_gone_stats(rig->worker, 1, &stats), 0);
    assert_int_equal(stats.executed + rig_stats(rig, 3).executed, 800);
    assert_true(stats.executed > 0);
    pthread_mutex_destroy(&ledger.lock);
    rig_free(rig);
}

/* A bolt that holds tuples stays until it has settled them. */
static void
hold_all(struct rig_task *task, struct sl_record *record)
{
    (void)record;
    task->count++;
    sl_task_hold(task->io);
}

static void
test_a_removed_bolt_first_settles_what_it_holds(void **state)
{
    (void)state;
    struct ledger ledger = {0};
    struct rig *rig = rig_keyed(1, 0, true, &ledger);
    rig->components[1] = (struct rig_component){.execute = hold_all, .is_manual = true};
    rig->tasks[1].limit = 100;
    rig->tasks[2].limit = 0;
    rig_open(rig);
    rig_run(rig);
    int64_t held = rig->tasks[3].count;
    assert_true(held > 0);
    assert_int_equal(sl_worker_remove_task(rig->worker, 3), 0);
    rig_groups(rig, 1, GROUPS);
    rig_command_all(rig, SL_COMMAND_ROUTES);
    sl_worker_command(rig->worker, 0, SL_COMMAND_REMOVE_TASK, 3);
    rig_run(rig);
    struct sl_planned planned;
    assert_int_equal(sl_worker_planned(rig->worker, 3, &planned), 0);
    for (int64_t slot = 0; slot < held; slot++) {
        assert_int_equal(sl_held_settle(rig->tasks[3].io, (double)slot, 0), 0);
    }
    rig_run(rig);
    assert_int_equal(sl_worker_planned(rig->worker, 3, &planned), SL_ENOTFOUND);
    assert_int_equal(ledger.acked, held);
    pthread_mutex_destroy(&ledger.lock);
    rig_free(rig);
}

static void
test_a_removed_spout_emits_no_more_and_waits_for_its_acks(void **state)
{
    (void)state;
    struct ledger ledger = {0};
    struct rig *rig = rig_keyed(2, 0, true, &ledger);
    rig_open(rig);
    rig->is_running[1] = true;
    rig_run(rig);
    int64_t emitted = rig->tasks[1].count;
    assert_true(emitted > 0);
    assert_int_equal(sl_worker_remove_task(rig->worker, 1), 0);
    rig_command_all(rig, SL_COMMAND_ROUTES);
    sl_worker_command(rig->worker, 0, SL_COMMAND_REMOVE_TASK, 1);
    rig_run(rig);
    assert_int_equal(rig->tasks[1].count, emitted);
    struct sl_planned planned;
    assert_int_equal(sl_worker_planned(rig->worker, 1, &planned), 0);
    ledger.is_over = true;
    rig->is_running[1] = false;
    rig_run(rig);
    assert_int_equal(sl_worker_planned(rig->worker, 1, &planned), SL_ENOTFOUND);
    rig_command_all(rig, SL_COMMAND_ROUTES);
    rig_run(rig);
    ledger_check(rig, &ledger);
    /* Its id can be used again, and late acks to its predecessor do it no harm. */
    ledger.is_over = false;
    memset(ledger.last[1], 0, sizeof(ledger.last[1]));
    rig_plan(rig, 0, 1, 1);
    rig->tasks[1].limit = 50;
    sl_worker_command(rig->worker, 1, SL_COMMAND_ADD_TASK, 1);
    rig_command_all(rig, SL_COMMAND_ROUTES);
    rig_run(rig);
    ledger_check(rig, &ledger);
    pthread_mutex_destroy(&ledger.lock);
    rig_free(rig);
}

static void
test_a_sender_that_comes_after_the_end_makes_its_receivers_work_again(void **state)
{
    (void)state;
    for (int32_t executors = 1; executors <= 3; executors++) {
        struct ledger ledger = {0};
        struct rig *rig = rig_keyed(executors, 0, true, &ledger);
        rig->tasks[1].limit = rig->tasks[2].limit = 100;
        rig_open(rig);
        rig_run(rig);
        assert_int_equal(rig_heard(rig, SL_EVENT_FINISHED), executors);
        assert_int_equal(rig_heard(rig, SL_EVENT_RESUMED), 0);
        rig_forget(rig);
        rig->tasks[9].limit = 77;
        rig_plan(rig, 0, 9, executors - 1);
        sl_worker_command(rig->worker, executors - 1, SL_COMMAND_ADD_TASK, 9);
        rig_command_all(rig, SL_COMMAND_ROUTES);
        rig_run(rig);
        ledger_check(rig, &ledger);
        assert_int_equal(ledger.sunk, 277);
        for (int32_t id = 3; id <= 5; id++) {
            assert_true(rig_inner(rig, id)->is_finished);
            assert_int_equal(rig->tasks[id].finishes, 1);
        }
        assert_true(rig_heard(rig, SL_EVENT_RESUMED) >= 1);
        assert_int_equal(rig_heard(rig, SL_EVENT_FINISHED), rig_heard(rig, SL_EVENT_RESUMED));
        pthread_mutex_destroy(&ledger.lock);
        rig_free(rig);
    }
}

static void
test_everything_behind_a_late_sender_is_unfinished_until_it_ends(void **state)
{
    (void)state;
    for (int32_t executors = 1; executors <= 3; executors++) {
        struct ledger ledger = {0};
        struct rig *rig = rig_keyed(executors, 0, true, &ledger);
        rig->tasks[1].limit = rig->tasks[2].limit = 100;
        rig_open(rig);
        rig_run(rig);
        assert_true(rig_inner(rig, 5)->is_finished);
        rig_plan(rig, 0, 9, executors - 1);
        sl_worker_command(rig->worker, executors - 1, SL_COMMAND_ADD_TASK, 9);
        rig_command_all(rig, SL_COMMAND_ROUTES);
        run_some(rig, 3000);
        for (int32_t id = 3; id <= 5; id++) {
            assert_false(rig_inner(rig, id)->is_finished);
        }
        ledger.is_over = true;
        rig_run(rig);
        for (int32_t id = 3; id <= 5; id++) {
            assert_true(rig_inner(rig, id)->is_finished);
        }
        ledger_check(rig, &ledger);
        pthread_mutex_destroy(&ledger.lock);
        rig_free(rig);
    }
}

static void
test_a_finished_sender_that_is_removed_ends_nobodys_input(void **state)
{
    (void)state;
    struct ledger ledger = {0};
    struct rig *rig = rig_keyed(1, 0, true, &ledger);
    rig->tasks[1].limit = 50;
    rig_open(rig);
    run_some(rig, 3000);
    assert_true(rig_inner(rig, 1)->is_finished);
    assert_int_equal(sl_worker_remove_task(rig->worker, 1), 0);
    rig_command_all(rig, SL_COMMAND_ROUTES);
    sl_worker_command(rig->worker, 0, SL_COMMAND_REMOVE_TASK, 1);
    run_some(rig, 1000);
    struct sl_planned planned;
    assert_int_equal(sl_worker_planned(rig->worker, 1, &planned), SL_ENOTFOUND);
    rig_command_all(rig, SL_COMMAND_ROUTES);
    run_some(rig, 3000);
    assert_int_equal(rig->tasks[3].finishes + rig->tasks[4].finishes, 0);
    ledger.is_over = true;
    rig_run(rig);
    assert_int_equal(rig->tasks[3].finishes, 1);
    ledger_check(rig, &ledger);
    pthread_mutex_destroy(&ledger.lock);
    rig_free(rig);
}

static void
test_a_receiver_that_comes_after_the_end_of_its_senders_finishes_too(void **state)
{
    (void)state;
    struct ledger ledger = {0};
    struct rig *rig = rig_keyed(2, 0, true, &ledger);
    rig->tasks[1].limit = rig->tasks[2].limit = 100;
    rig_open(rig);
    rig_run(rig);
    /* First one of the finished spouts goes, whose end the new task will never hear of. */
    assert_int_equal(sl_worker_remove_task(rig->worker, 1), 0);
    rig_command_all(rig, SL_COMMAND_ROUTES);
    sl_worker_command(rig->worker, 0, SL_COMMAND_REMOVE_TASK, 1);
    rig_run(rig);
    rig_command_all(rig, SL_COMMAND_ROUTES);
    rig_run(rig);
    rig_plan(rig, 1, 30, 0);
    sl_worker_command(rig->worker, 0, SL_COMMAND_ADD_TASK, 30);
    rig_groups(rig, 1, GROUPS);
    rig_command_all(rig, SL_COMMAND_ROUTES);
    rig_run(rig);
    assert_int_equal(rig->tasks[30].finishes, 1);
    assert_true(rig_inner(rig, 5)->is_finished);
    assert_int_equal(rig_heard(rig, SL_EVENT_FINISHED) - rig_heard(rig, SL_EVENT_RESUMED), 2);
    pthread_mutex_destroy(&ledger.lock);
    rig_free(rig);
}

static void
test_no_end_is_decided_with_routes_older_than_the_plan(void **state)
{
    (void)state;
    struct ledger ledger = {0};
    struct rig *rig = rig_keyed(2, 0, true, &ledger);
    rig->tasks[1].limit = rig->tasks[2].limit = 100;
    rig_attach_all(rig);
    rig_plan(rig, 0, 9, 0);
    rig_command_all(rig, SL_COMMAND_ACTIVATE);
    rig_run(rig);
    assert_int_equal(rig->tasks[3].finishes, 0);
    rig->tasks[9].limit = 10;
    sl_worker_command(rig->worker, 0, SL_COMMAND_ADD_TASK, 9);
    rig_run(rig);
    assert_int_equal(rig->tasks[3].finishes, 0);
    rig_command_all(rig, SL_COMMAND_ROUTES);
    rig_run(rig);
    assert_int_equal(rig->tasks[3].finishes, 1);
    assert_int_equal(ledger.sunk, 210);
    pthread_mutex_destroy(&ledger.lock);
    rig_free(rig);
}

static void
test_ackers_can_not_change_while_tasks_run(void **state)
{
    (void)state;
    struct ledger ledger = {0};
    struct rig *rig = rig_keyed(1, 1, true, &ledger);
    rig_attach_all(rig);
    assert_int_equal(sl_worker_task(rig->worker, 3, 102, 2, 0), SL_EINVAL);
    assert_int_equal(sl_worker_remove_task(rig->worker, 100), SL_EINVAL);
    pthread_mutex_destroy(&ledger.lock);
    rig_free(rig);
}

/* With threads: tasks of the keyed bolt and spouts come and go as fast as they can. */
static void
change_under_load(int32_t executors, int32_t ackers)
{
    struct ledger ledger = {0};
    struct rig *rig = rig_keyed(executors, ackers, false, &ledger);
    rig_start(rig);
    rig_wait(rig, SL_EVENT_DONE, executors);
    int32_t keyed = 3;
    int32_t id = 10;
    for (int i = 0; i < 25; i++, id += 2) {
        int32_t at = i % executors;
        rig_plan(rig, 1, id, at);
        rig_plan(rig, 0, id + 1, executors - 1 - at);
        sl_worker_command(rig->worker, at, SL_COMMAND_ADD_TASK, id);
        sl_worker_command(rig->worker, executors - 1 - at, SL_COMMAND_ADD_TASK, id + 1);
        rig_wait(rig, SL_EVENT_DONE, 2);
        /* Looking in while tasks go is fine. */
        struct sl_planned planned;
        assert_int_equal(sl_worker_planned(rig->worker, keyed, &planned), 0);
        assert_int_equal(sl_worker_remove_task(rig->worker, keyed), 0);
        rig_groups(rig, 1, GROUPS);
        rig_command_all(rig, SL_COMMAND_ROUTES);
        rig_wait(rig, SL_EVENT_DONE, executors);
        assert_int_equal(sl_worker_remove_task(rig->worker, id + 1), 0);
        sl_worker_command(rig->worker, planned.executor, SL_COMMAND_REMOVE_TASK, keyed);
        sl_worker_command(rig->worker, executors - 1 - at, SL_COMMAND_REMOVE_TASK, id + 1);
        for (int32_t other = 0; other < RIG_TASKS; other++) {
            struct sl_task_stats stats;
            sl_worker_stats(rig->worker, other, &stats);
        }
        rig_wait(rig, SL_EVENT_DONE, 2);
        rig_command_all(rig, SL_COMMAND_ROUTES);
        rig_wait(rig, SL_EVENT_DONE, executors);
        keyed = id;
    }
    __atomic_store_n(&ledger.is_over, true, __ATOMIC_RELAXED);
    rig_command_all(rig, SL_COMMAND_DRAIN);
    rig_wait_finished(rig);
    rig_stop(rig);
    ledger_check(rig, &ledger);
    pthread_mutex_destroy(&ledger.lock);
    rig_free(rig);
}

static void
test_changes_under_load_with_threads(void **state)
{
    (void)state;
    change_under_load(2, 0);
    change_under_load(3, 0);
}

static void
test_changes_under_load_with_threads_and_ackers(void **state)
{
    (void)state;
    change_under_load(2, 1);
}

static void
test_executors_that_are_told_to_stop_end_at_once(void **state)
{
    (void)state;
    struct ledger ledger = {0};
    struct rig *rig = rig_keyed(2, 0, false, &ledger);
    rig_start(rig);
    rig_wait(rig, SL_EVENT_DONE, 2);
    rig_command_all(rig, SL_COMMAND_STOP);
    rig_wait(rig, SL_EVENT_STOPPED, 2);
    sl_worker_join(rig->worker);
    struct sl_busy busy;
    sl_worker_busy(rig->worker, 0, &busy);
    assert_int_equal(busy.task, -1);
    sl_worker_busy(rig->worker, 77, &busy);
    assert_int_equal(busy.task, -1);
    pthread_mutex_destroy(&ledger.lock);
    rig_free(rig);
}

static void
test_the_latency_of_spouts_that_are_gone_counts(void **state)
{
    (void)state;
    struct ledger ledger = {0};
    struct rig *rig = rig_keyed(1, 0, true, &ledger);
    assert_true(sl_worker_latency_ms(rig->worker, 0.5) < 0);
    rig->tasks[1].limit = 10;
    rig->tasks[2].limit = 0;
    rig_open(rig);
    rig_run(rig);
    assert_int_equal(sl_worker_remove_task(rig->worker, 1), 0);
    rig_command_all(rig, SL_COMMAND_ROUTES);
    sl_worker_command(rig->worker, 0, SL_COMMAND_REMOVE_TASK, 1);
    rig_run(rig);
    assert_true(sl_worker_latency_ms(rig->worker, 0.5) >= 0);
    pthread_mutex_destroy(&ledger.lock);
    rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_new_refuses_options_out_of_range),
    cmocka_unit_test(test_random_changes_lose_nothing_and_keep_order),
    cmocka_unit_test(test_a_task_is_not_let_go_while_anything_of_it_is_under_way),
    cmocka_unit_test(test_a_removed_bolt_first_settles_what_it_holds),
    cmocka_unit_test(test_a_removed_spout_emits_no_more_and_waits_for_its_acks),
    cmocka_unit_test(test_a_sender_that_comes_after_the_end_makes_its_receivers_work_again),
    cmocka_unit_test(test_everything_behind_a_late_sender_is_unfinished_until_it_ends),
    cmocka_unit_test(test_a_finished_sender_that_is_removed_ends_nobodys_input),
    cmocka_unit_test(test_a_receiver_that_comes_after_the_end_of_its_senders_finishes_too),
    cmocka_unit_test(test_no_end_is_decided_with_routes_older_than_the_plan),
    cmocka_unit_test(test_ackers_can_not_change_while_tasks_run),
    cmocka_unit_test(test_changes_under_load_with_threads),
    cmocka_unit_test(test_changes_under_load_with_threads_and_ackers),
    cmocka_unit_test(test_executors_that_are_told_to_stop_end_at_once),
    cmocka_unit_test(test_the_latency_of_spouts_that_are_gone_counts),
};

UNIT_MAIN(tests)
