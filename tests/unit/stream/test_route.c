/* Who gets a tuple, and what becomes of routes and outboxes when the plan changes. */

#include <time.h>

#include "base/random.h"
#include "rig.h"

enum {
    SPOUT = 1,
    FIRST = 10,
};

/* spout 1 -grouping-> `count` tasks 10, 12, 14, ..; */
static struct rig *
rig_readers(int32_t grouping, int32_t count, int32_t groups)
{
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){0});
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
    rig_read(rig, spout, bolt, grouping);
    rig_plan(rig, spout, SPOUT, 0);
    for (int32_t i = 0; i < count; i++) {
        rig_plan(rig, bolt, FIRST + 2 * i, i % 2);
    }
    if (groups > 0) {
        rig_groups(rig, bolt, groups);
    }
    assert_int_equal(rig_attach(rig, sl_worker_executor(rig->worker, 0), SPOUT, true), 0);
    return rig;
}

static struct sl_emitter *
emitter_of(struct rig *rig)
{
    return sl_task_emitter(rig->tasks[SPOUT].io, 0);
}

static struct sl_route *
route_of_spout(struct rig *rig)
{
    return sl_emitter_route(emitter_of(rig), 0);
}

static void
test_shuffle_is_exactly_even_and_each_round_has_everyone(void **state)
{
    (void)state;
    static const int32_t groupings[] = {SL_GROUPING_SHUFFLE, SL_GROUPING_NONE,
                                        SL_GROUPING_LOCAL_OR_SHUFFLE};
    for (size_t g = 0; g < array_size(groupings); g++) {
        for (int32_t count = 1; count <= 9; count++) {
            struct rig *rig = rig_readers(groupings[g], count, 0);
            struct sl_route *route = route_of_spout(rig);
            assert_int_equal(route->target_count, count);
            for (int round = 0; round < 20; round++) {
                uint32_t seen = 0;
                for (int32_t i = 0; i < count; i++) {
                    seen |= 1u << (sl_route_next(route)->dest - FIRST) / 2;
                }
                assert_int_equal(seen, (1u << count) - 1);
            }
            rig_free(rig);
        }
    }
}

static void
test_shuffle_starts_differently_for_each_seed(void **state)
{
    (void)state;
    uint32_t firsts = 0;
    for (uint64_t seed = 1; seed < 40; seed++) {
        struct sl_worker_options options = rig_options();
        options.seed = seed;
        struct rig *rig = rig_new(&options);
        int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){0});
        int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
        rig_read(rig, spout, bolt, SL_GROUPING_SHUFFLE);
        rig_plan(rig, spout, SPOUT, 0);
        for (int32_t i = 0; i < 4; i++) {
            rig_plan(rig, bolt, FIRST + i, 0);
        }
        rig_attach_all(rig);
        firsts |= 1u << (sl_route_next(route_of_spout(rig))->dest - FIRST);
        rig_free(rig);
    }
    assert_int_equal(firsts, 15);
}

static void
test_fields_follow_the_table_of_key_groups(void **state)
{
    (void)state;
    struct rig *rig = rig_readers(SL_GROUPING_FIELDS, 5, 128);
    struct sl_route *route = route_of_spout(rig);
    const struct sl__component *component = &rig->worker->components.items[1];
    struct sl_random random;
    sl_random_seed(&random, 1);
    for (int i = 0; i < 5000; i++) {
        uint64_t hash = sl_random_u64(&random);
        int32_t owner = component->groups[sl_key_group(hash, 128)];
        assert_int_equal(sl_route_key(route, hash)->dest, owner);
    }
    rig_free(rig);
}

static void
test_fields_without_groups_or_with_wrong_owners_are_refused(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){0});
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
    rig_read(rig, spout, bolt, SL_GROUPING_FIELDS);
    rig_plan(rig, spout, SPOUT, 0);
    rig_plan(rig, bolt, FIRST, 0);
    assert_int_equal(rig_attach(rig, executor, SPOUT, true), SL_EINVAL);
    assert_non_null(strstr(sl_err_last()->msg, "no key groups"));
    int32_t owners[2] = {FIRST, 99};
    assert_int_equal(sl_worker_groups(rig->worker, bolt, owners, 2), 0);
    assert_int_equal(rig_attach(rig, executor, SPOUT, true), SL_EINVAL);
    assert_non_null(strstr(sl_err_last()->msg, "task 99"));
    owners[1] = FIRST;
    assert_int_equal(sl_worker_groups(rig->worker, bolt, owners, 2), 0);
    assert_int_equal(rig_attach(rig, executor, SPOUT, true), 0);
    rig_free(rig);
}

static void
test_partial_key_has_two_candidates_and_evens_them_out(void **state)
{
    (void)state;
    struct rig *rig = rig_readers(SL_GROUPING_PARTIAL_KEY, 7, 0);
    struct sl_route *route = route_of_spout(rig);
    int64_t total[7] = {0};
    for (int key = 0; key < 50; key++) {
        uint64_t hash = sl_key_hash_number(key);
        int64_t seen[7] = {0};
        for (int i = 0; i < 400; i++) {
            seen[(sl_route_key(route, hash)->dest - FIRST) / 2]++;
        }
        int candidates = 0;
        for (int i = 0; i < 7; i++) {
            candidates += seen[i] > 0;
            total[i] += seen[i];
        }
        assert_in_range(candidates, 1, 2);
    }
    /* 20000 tuples of few keys: none has twice its share. */
    for (int i = 0; i < 7; i++) {
        assert_true(total[i] < 2 * 20000 / 7);
    }
    /* One hot key alone goes to both of its candidates by halves. */
    int64_t hot[7] = {0};
    rig_free(rig);
    rig = rig_readers(SL_GROUPING_PARTIAL_KEY, 7, 0);
    for (int i = 0; i < 1000; i++) {
        hot[(sl_route_key(route_of_spout(rig), 42)->dest - FIRST) / 2]++;
    }
    for (int i = 0; i < 7; i++) {
        assert_true(hot[i] == 0 || hot[i] == 500);
    }
    rig_free(rig);
    rig = rig_readers(SL_GROUPING_PARTIAL_KEY, 1, 0);
    assert_int_equal(sl_route_key(route_of_spout(rig), 42)->dest, FIRST);
    rig_free(rig);
}

static void
test_all_and_global_and_named_tasks(void **state)
{
    (void)state;
    struct rig *rig = rig_readers(SL_GROUPING_ALL, 6, 0);
    struct sl_emitter *emitter = emitter_of(rig);
    sl_emitter_clear(emitter);
    sl_emitter_add(emitter, 0);
    assert_int_equal(emitter->target_count, 6);
    for (int32_t i = 0; i < 6; i++) {
        assert_int_equal(emitter->targets[i]->dest, FIRST + 2 * i);
    }
    rig_free(rig);
    rig = rig_readers(SL_GROUPING_GLOBAL, 6, 0);
    sl_emitter_clear(emitter_of(rig));
    sl_emitter_add(emitter_of(rig), 0);
    assert_int_equal(emitter_of(rig)->target_count, 1);
    assert_int_equal(emitter_of(rig)->targets[0]->dest, FIRST);
    rig_free(rig);
    /* Binary search among any number of tasks. */
    for (int32_t count = 1; count <= 17; count++) {
        rig = rig_readers(SL_GROUPING_CUSTOM, count, 0);
        emitter = emitter_of(rig);
        for (int32_t id = FIRST - 2; id < FIRST + 2 * count + 2; id++) {
            sl_emitter_clear(emitter);
            bool is_target = id >= FIRST && id < FIRST + 2 * count && (id - FIRST) % 2 == 0;
            assert_int_equal(sl_emitter_add_task(emitter, 0, id), is_target ? 0 : SL_ENOTFOUND);
            assert_int_equal(emitter->target_count, is_target);
            if (is_target) {
                assert_int_equal(emitter->targets[0]->dest, id);
            }
        }
        rig_free(rig);
    }
}

static void
test_routes_out_of_range_choose_nobody(void **state)
{
    (void)state;
    struct rig *rig = rig_readers(SL_GROUPING_SHUFFLE, 2, 0);
    struct sl_emitter *emitter = emitter_of(rig);
    sl_emitter_clear(emitter);
    static const int32_t routes[] = {-1, 1, INT32_MAX};
    for (size_t i = 0; i < array_size(routes); i++) {
        sl_emitter_add(emitter, routes[i]);
        sl_emitter_add_key(emitter, routes[i], 5);
        assert_int_equal(sl_emitter_add_task(emitter, routes[i], FIRST), SL_ENOTFOUND);
        assert_null(sl_emitter_route(emitter, routes[i]));
    }
    assert_int_equal(emitter->target_count, 0);
    assert_null(sl_task_emitter(rig->tasks[SPOUT].io, 1));
    assert_null(sl_task_emitter(rig->tasks[SPOUT].io, -1));
    assert_int_equal(sl_task_emitter_count(rig->tasks[SPOUT].io), 1);
    rig_free(rig);
}

static void
test_a_stream_whose_reader_has_no_tasks_chooses_nobody(void **state)
{
    (void)state;
    static const int32_t groupings[] = {SL_GROUPING_SHUFFLE, SL_GROUPING_FIELDS, SL_GROUPING_ALL,
                                        SL_GROUPING_GLOBAL, SL_GROUPING_PARTIAL_KEY};
    for (size_t i = 0; i < array_size(groupings); i++) {
        struct rig *rig = rig_readers(groupings[i], 0, 0);
        sl_emitter_clear(emitter_of(rig));
        sl_emitter_add(emitter_of(rig), 0);
        sl_emitter_add_key(emitter_of(rig), 0, 1);
        assert_int_equal(emitter_of(rig)->target_count, 0);
        assert_null(sl_route_next(route_of_spout(rig)));
        assert_null(sl_route_key(route_of_spout(rig), 3));
        rig_free(rig);
    }
}

/* ---- changes ------------------------------------------------------------------------------------
 */

static void
test_new_routes_keep_the_outboxes_of_targets_that_stay(void **state)
{
    (void)state;
    struct rig *rig = rig_readers(SL_GROUPING_SHUFFLE, 4, 0);
    struct sl__task *spout = rig_inner(rig, SPOUT);
    struct sl__outbox *before[4];
    memcpy(before, spout->outboxes.items, sizeof(before));
    rig_plan(rig, 1, FIRST + 1, 1);
    assert_int_equal(sl_worker_remove_task(rig->worker, FIRST + 4), 0);
    assert_int_equal(sl__task_route(spout), 0);
    const struct sl_route *route = route_of_spout(rig);
    assert_int_equal(route->target_count, 4);
    static const int32_t expected[] = {FIRST, FIRST + 1, FIRST + 2, FIRST + 6};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(route->targets[i]->dest, expected[i]);
    }
    assert_ptr_equal(route->targets[0], &before[0]->io);
    assert_ptr_equal(route->targets[2], &before[1]->io);
    assert_ptr_equal(route->targets[3], &before[3]->io);
    assert_true(before[2]->is_retired);
    assert_int_equal(spout->outboxes.count, 5);
    assert_int_equal(rig->worker->inbound[FIRST + 4], 1);
    /* Nothing in it: freed at the next look. */
    rig_run(rig);
    assert_int_equal(spout->outboxes.count, 4);
    assert_int_equal(rig->worker->inbound[FIRST + 4], 0);
    rig_free(rig);
}

static void
test_routes_that_can_not_be_built_leave_the_old_ones(void **state)
{
    (void)state;
    struct rig *rig = rig_readers(SL_GROUPING_FIELDS, 3, 64);
    struct sl__task *spout = rig_inner(rig, SPOUT);
    const struct sl_emitter *before = emitter_of(rig);
    int32_t wrong[2] = {FIRST, 77};
    assert_int_equal(sl_worker_groups(rig->worker, 1, wrong, 2), 0);
    assert_int_equal(sl__task_route(spout), SL_EINVAL);
    assert_ptr_equal(emitter_of(rig), before);
    for (size_t i = 0; i < spout->outboxes.count; i++) {
        assert_false(spout->outboxes.items[i]->is_retired);
    }
    rig_groups(rig, 1, 64);
    assert_int_equal(sl__task_route(spout), 0);
    rig_free(rig);
}

static void
test_a_queue_without_memory_is_a_clear_error(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){0});
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
    rig_read(rig, spout, bolt, SL_GROUPING_SHUFFLE);
    rig_plan(rig, spout, SPOUT, 0);
    rig_plan(rig, bolt, FIRST, 1);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    /* First the roots, three arrays, then the ring. */
    for (int64_t successes = 0; successes <= 3; successes++) {
        sl_alloc_fail_after(successes);
        assert_int_equal(rig_attach(rig, executor, SPOUT, true), SL_ENOMEM);
        sl_alloc_fail_after(-1);
        assert_non_null(strstr(sl_err_last()->msg,
                               successes < 3 ? "pending tuples of task 1" : "a queue to task 10"));
        assert_int_equal(rig->worker->inbound[FIRST], 0);
    }
    assert_int_equal(rig_attach(rig, executor, SPOUT, true), 0);
    rig_free(rig);
}

/* 400 x 400 tasks are routed in a moment of processor time: nothing is quadratic in the outboxes of
 * one task. */
static void
test_many_tasks_are_routed_quickly(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    int32_t first = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
    int32_t second = rig_component(rig, SL_TASK_BOLT, 2, -1, 1, (struct rig_component){0});
    rig_read(rig, first, second, SL_GROUPING_SHUFFLE);
    for (int32_t i = 0; i < 400; i++) {
        rig_plan(rig, i < 100 ? first : second, i, 0);
    }
    rig_attach_all(rig);
    clock_t start = clock();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sl_executor_route(sl_worker_executor(rig->worker, 0)), 0);
    }
    /* 90000 look-ups; a search through the list for each would be 13.5 million steps. */
    assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
    const struct sl__task *task = rig_inner(rig, 7);
    assert_int_equal(task->outboxes.count, 300);
    for (size_t i = 1; i < task->outboxes.count; i++) {
        assert_true(task->outboxes.items[i - 1]->io.dest < task->outboxes.items[i]->io.dest);
    }
    rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_shuffle_is_exactly_even_and_each_round_has_everyone),
    cmocka_unit_test(test_shuffle_starts_differently_for_each_seed),
    cmocka_unit_test(test_fields_follow_the_table_of_key_groups),
    cmocka_unit_test(test_fields_without_groups_or_with_wrong_owners_are_refused),
    cmocka_unit_test(test_partial_key_has_two_candidates_and_evens_them_out),
    cmocka_unit_test(test_all_and_global_and_named_tasks),
    cmocka_unit_test(test_routes_out_of_range_choose_nobody),
    cmocka_unit_test(test_a_stream_whose_reader_has_no_tasks_chooses_nobody),
    cmocka_unit_test(test_new_routes_keep_the_outboxes_of_targets_that_stay),
    cmocka_unit_test(test_routes_that_can_not_be_built_leave_the_old_ones),
    cmocka_unit_test(test_a_queue_without_memory_is_a_clear_error),
    cmocka_unit_test(test_many_tasks_are_routed_quickly),
};

UNIT_MAIN(tests)
