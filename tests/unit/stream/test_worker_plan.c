/* What the plan of a worker refuses, and which ids are free. */

#include "rig.h"

static void
test_the_plan_refuses_what_does_not_fit(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.spout_capacity = 1;
    options.acker_capacity = 1;
    struct rig *rig = rig_new(&options);
    struct sl_worker *worker = rig->worker;
    assert_int_equal(sl_worker_component(worker, NULL, SL_TASK_BOLT, 0, -1), SL_EINVAL);
    assert_int_equal(sl_worker_component(worker, "a", 3, 0, -1), SL_EINVAL);
    assert_int_equal(sl_worker_component(worker, "a", -1, 0, -1), SL_EINVAL);
    assert_int_equal(sl_worker_component(worker, "a", SL_TASK_BOLT, -1, -1), SL_EINVAL);
    assert_int_equal(sl_worker_component(worker, "a", SL_TASK_BOLT, 0, -2), SL_EINVAL);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 2, (struct rig_component){0});
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
    int32_t acker = rig_component(rig, SL_TASK_ACKER, 0, -1, 0, (struct rig_component){0});
    assert_int_equal(sl_worker_stream(worker, 9, "s", 1, 0), SL_EINVAL);
    assert_int_equal(sl_worker_stream(worker, spout, NULL, 1, 0), SL_EINVAL);
    assert_int_equal(sl_worker_stream(worker, spout, "s", -1, 0), SL_EINVAL);
    int32_t keys[9] = {0, 1, 2};
    assert_int_equal(sl_worker_reader(worker, 9, bolt, SL_GROUPING_SHUFFLE, keys, 0), SL_EINVAL);
    assert_int_equal(sl_worker_reader(worker, 0, 9, SL_GROUPING_SHUFFLE, keys, 0), SL_EINVAL);
    assert_int_equal(sl_worker_reader(worker, 0, bolt, 0, keys, 0), SL_EINVAL);
    assert_int_equal(sl_worker_reader(worker, 0, bolt, 10, keys, 0), SL_EINVAL);
    assert_int_equal(sl_worker_reader(worker, 0, bolt, SL_GROUPING_FIELDS, keys, 0), SL_EINVAL);
    assert_int_equal(sl_worker_reader(worker, 0, bolt, SL_GROUPING_FIELDS, NULL, 1), SL_EINVAL);
    assert_int_equal(sl_worker_reader(worker, 0, bolt, SL_GROUPING_FIELDS, keys, 3), SL_EINVAL);
    assert_int_equal(sl_worker_reader(worker, 0, bolt, SL_GROUPING_FIELDS, keys, 9), SL_EINVAL);
    assert_int_equal(sl_worker_reader(worker, 0, bolt, SL_GROUPING_FIELDS, keys, 2), 0);
    assert_int_equal(sl_worker_groups(worker, bolt, NULL, 3), SL_EINVAL);
    assert_int_equal(sl_worker_groups(worker, bolt, keys, 0), SL_EINVAL);
    assert_int_equal(sl_worker_groups(worker, 7, keys, 1), SL_EINVAL);
    assert_int_equal(sl_worker_task(worker, 7, 1, 0, 0), SL_EINVAL);
    assert_int_equal(sl_worker_task(worker, bolt, -1, 0, 0), SL_EINVAL);
    assert_int_equal(sl_worker_task(worker, bolt, RIG_TASKS, 0, 0), SL_EINVAL);
    assert_int_equal(sl_worker_task(worker, bolt, 1, 0, 1), SL_EINVAL);
    assert_int_equal(sl_worker_task(worker, bolt, 1, -1, 0), SL_EINVAL);
    assert_int_equal(sl_worker_task(worker, bolt, 1, 0, 0), 1);
    assert_int_equal(sl_worker_task(worker, bolt, 1, 1, 0), SL_EEXIST);
    assert_int_equal(sl_worker_task(worker, spout, 2, 0, 0), 2);
    assert_int_equal(sl_worker_task(worker, spout, 3, 1, 0), SL_ELIMIT);
    assert_int_equal(sl_worker_task(worker, acker, 4, 0, 0), 4);
    assert_int_equal(sl_worker_task(worker, acker, 5, 1, 0), SL_ELIMIT);
    assert_int_equal(sl_worker_remove_task(worker, 4), 0);
    /* It goes on counting, until it is planned again. */
    assert_int_equal(sl_worker_task(worker, acker, 5, 1, 0), SL_ELIMIT);
    assert_int_equal(sl_worker_task(worker, acker, 4, 0, 0), 4);
    assert_int_equal(sl_worker_remove_task(worker, 5), SL_ENOTFOUND);
    assert_int_equal(sl_worker_remove_task(worker, -5), SL_ENOTFOUND);
    struct sl_planned planned;
    assert_int_equal(sl_worker_planned(worker, 1, &planned), 0);
    assert_int_equal(planned.component, bolt);
    assert_int_equal(sl_worker_planned(worker, 3, &planned), SL_ENOTFOUND);
    assert_int_equal(sl_worker_tasks(worker, 9, NULL, 0), SL_EINVAL);
    assert_int_equal(sl_worker_command(worker, 1, SL_COMMAND_STOP, 0), SL_EINVAL);
    assert_int_equal(sl_worker_command(worker, 0, 0, 0), SL_EINVAL);
    assert_int_equal(sl_worker_command(worker, 0, 9, 0), SL_EINVAL);
    assert_null(sl_worker_executor(worker, 1));
    struct sl_task_stats stats;
    assert_int_equal(sl_worker_stats(worker, 1, &stats), SL_ENOTFOUND);
    assert_int_equal(sl_worker_gone_stats(worker, 9, &stats), SL_EINVAL);
    rig_free(rig);
}

static void
test_an_id_that_no_executor_took_is_free_again(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
    rig_plan(rig, bolt, 5, 0);
    rig_plan(rig, bolt, 3, 0);
    int32_t ids[2];
    assert_int_equal(sl_worker_tasks(rig->worker, bolt, ids, 1), 2);
    assert_int_equal(ids[0], 3);
    assert_int_equal(sl_worker_remove_task(rig->worker, 5), 0);
    assert_int_equal(sl_worker_tasks(rig->worker, bolt, ids, 2), 1);
    rig_plan(rig, bolt, 5, 0);
    assert_int_equal(sl_worker_tasks(rig->worker, bolt, ids, 2), 2);
    assert_int_equal(ids[1], 5);
    rig_free(rig);
}

static void
test_attach_and_detach_refuse_what_is_not_theirs(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    struct rig *rig = rig_new(&options);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    struct sl_executor *other = sl_worker_executor(rig->worker, 1);
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
    rig_plan(rig, bolt, 5, 0);
    assert_int_equal(rig_attach(rig, executor, -1, true), SL_EINVAL);
    assert_int_equal(rig_attach(rig, executor, 6, true), SL_EINVAL);
    assert_int_equal(rig_attach(rig, executor, RIG_TASKS, true), SL_EINVAL);
    assert_int_equal(rig_attach(rig, other, 5, true), SL_EINVAL);
    assert_int_equal(rig_attach(rig, executor, 5, true), 0);
    assert_int_equal(rig_attach(rig, executor, 5, true), SL_EEXIST);
    assert_int_equal(sl_executor_detach(executor, 6), SL_ENOTFOUND);
    assert_int_equal(sl_executor_detach(other, 5), SL_ENOTFOUND);
    assert_int_equal(sl_executor_detach(executor, 5), SL_EINVAL);
    assert_int_equal(sl_worker_remove_task(rig->worker, 5), 0);
    assert_int_equal(sl_executor_detach(executor, 5), 0);
    assert_int_equal(sl_executor_detach(executor, 5), SL_ENOTFOUND);
    rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_the_plan_refuses_what_does_not_fit),
    cmocka_unit_test(test_an_id_that_no_executor_took_is_free_again),
    cmocka_unit_test(test_attach_and_detach_refuse_what_is_not_theirs),
};

UNIT_MAIN(tests)
