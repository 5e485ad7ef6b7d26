/* The scheduler `packed`: containers of a plan on slots. */
#include "scheduling/sched_fixture.h"

/* Adds a container with tasks first .. last. */
static void
container(struct fx *f, uint32_t id, uint32_t first, uint32_t last)
{
    f->containers[f->r.container_count++] = (struct sl_sched_container){
        .id = id,
        .port = -1,
        .first_task = f->r.container_task_count,
        .task_count = last - first + 1,
        .cpu = -1,
        .ram = -1,
    };
    for (uint32_t t = first; t <= last; t++) {
        f->container_tasks[f->r.container_task_count++] = t;
    }
    f->r.has_plan = 1;
}

static struct fx *
plan_of_four(const char *cluster)
{
    struct fx *f = fx_new();
    fx_cluster(f, cluster);
    fx_component(f, "b", SL_SCHED_BOLT, 8);
    container(f, 1, 1, 2);
    container(f, 2, 3, 4);
    container(f, 3, 5, 6);
    container(f, 5, 7, 8);
    return f;
}

static void
test_containers_are_placed_evenly(void **state)
{
    (void)state;
    struct fx *f = plan_of_four("4,4,4");
    fx_expect(f, SL_SCHED_PACKED, SL_SCHED_NEW,
              "s1:6800 1,2; s1:6801 7,8; s2:6800 3,4; s3:6800 5,6");
    free(f);
}

static void
test_tasks_of_the_engine_join_the_smallest_container(void **state)
{
    (void)state;
    struct fx *f = plan_of_four("4,4,4");
    fx_system(f, 0);
    fx_expect(f, SL_SCHED_PACKED, SL_SCHED_NEW,
              "s1:6800 1,2,9; s1:6801 7,8; s2:6800 3,4; s3:6800 5,6");
    f->r.master_alone = SL_SCHED_YES;
    fx_expect(f, SL_SCHED_PACKED, SL_SCHED_NEW,
              "s1:6800 1,2; s1:6801 7,8; s2:6800 3,4; s2:6801 9; s3:6800 5,6");
    free(f);
}

static void
test_containers_stay_in_their_slots(void **state)
{
    (void)state;
    struct fx *f = plan_of_four("4,4,4");
    struct sl_sched_result start = fx_assign(f, SL_SCHED_PACKED, SL_SCHED_NEW);
    fx_previous(f, &start);
    sl_sched_result_destroy(&start);
    fx_scale(f, "b", 10);
    container(f, 6, 9, 10);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_PACKED, SL_SCHED_MINIMAL);
    assert_int_equal(result.moved, 0);
    assert_string_equal(fx_worker_of(&result, 9)->supervisor, "s2");
    sl_sched_result_destroy(&result);
    fx_kill(f, "s3", 6800);
    f->r.container_count = 4;
    fx_scale(f, "b", 8);
    fx_expect(f, SL_SCHED_PACKED, SL_SCHED_MONITOR,
              "s1:6800 1,2; s1:6801 7,8; s2:6800 3,4; s3:6801 5,6");
    free(f);
}

static void
test_the_slot_of_a_stored_plan_is_kept(void **state)
{
    (void)state;
    struct fx *f = plan_of_four("4,4,4");
    f->containers[1].supervisor = "s3";
    f->containers[1].port = 6803;
    struct sl_sched_result result = fx_assign(f, SL_SCHED_PACKED, SL_SCHED_KEEP);
    assert_string_equal(fx_worker_of(&result, 3)->supervisor, "s3");
    assert_int_equal(fx_worker_of(&result, 3)->port, 6803);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_large_containers_find_their_node(void **state)
{
    (void)state;
    struct fx *f = plan_of_four("2,2");
    f->sups[0].ram = 100;
    f->sups[1].ram = 60;
    f->containers[0].ram = 30;
    f->containers[1].ram = 30;
    f->containers[2].ram = 30;
    f->containers[3].ram = 70;
    struct sl_sched_result result = fx_assign(f, SL_SCHED_PACKED, SL_SCHED_NEW);
    assert_string_equal(fx_worker_of(&result, 7)->supervisor, "s1");
    sl_sched_result_destroy(&result);
    f->containers[3].ram = 71;
    fx_refused(f, SL_SCHED_PACKED, SL_SCHED_NEW, SL_EUNSATISFIABLE, "fits no free slot");
    free(f);
}

static void
test_plans_that_contradict_the_components_are_refused(void **state)
{
    (void)state;
    struct fx *f = plan_of_four("4,4,4");
    fx_scale(f, "b", 9);
    fx_refused(f, SL_SCHED_PACKED, SL_SCHED_NEW, SL_EINVAL, "no container has task 9 of b");
    fx_scale(f, "b", 7);
    fx_refused(f, SL_SCHED_PACKED, SL_SCHED_NEW, SL_EINVAL, "has task 8");
    fx_scale(f, "b", 8);
    f->r.has_plan = 0;
    fx_refused(f, SL_SCHED_PACKED, SL_SCHED_NEW, SL_EINVAL, "needs a packing plan");
    free(f);
}

static void
test_more_containers_than_slots_are_refused_with_numbers(void **state)
{
    (void)state;
    struct fx *f = plan_of_four("2,1");
    fx_refused(f, SL_SCHED_PACKED, SL_SCHED_NEW, SL_EUNSATISFIABLE, "need 4, free 3");
    free(f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_containers_are_placed_evenly),
        cmocka_unit_test(test_tasks_of_the_engine_join_the_smallest_container),
        cmocka_unit_test(test_containers_stay_in_their_slots),
        cmocka_unit_test(test_the_slot_of_a_stored_plan_is_kept),
        cmocka_unit_test(test_large_containers_find_their_node),
        cmocka_unit_test(test_plans_that_contradict_the_components_are_refused),
        cmocka_unit_test(test_more_containers_than_slots_are_refused_with_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
