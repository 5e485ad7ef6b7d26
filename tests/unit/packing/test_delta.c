/* The difference of two plans. labels: short */
#include "packing/fixture.h"

static void
test_containers_and_instances(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 1, 1);
    struct sl_packing_plan *before =
        fixture_parse(&fixture, "4[S0#1] 1[S2#6 S1#2] 2[S3#3 B0#4] 3[B1#5]");
    struct sl_packing_plan *after =
        fixture_parse(&fixture, "1[S1#2 S2#6] 2[S3#3] 3[B1#5 B0#4] 5[B2#1]");
    struct sl_packing_delta *delta;
    assert_int_equal(sl_packing_delta_new(before, after, 2, &delta), 0);

    static const struct sl_packing_container_delta containers[] = {
        {1, SL_PACKING_UNAFFECTED, 1, 0}, {2, SL_PACKING_MODIFIED, 2, 1},
        {3, SL_PACKING_MODIFIED, 3, 2},   {4, SL_PACKING_REMOVED, 0, -1},
        {5, SL_PACKING_NEW, -1, 3},
    };
    assert_int_equal(delta->container_count, 5);
    assert_memory_equal(delta->containers, containers, sizeof(containers));

    /* Task 1 is of another component afterwards: one stops, another starts. */
    static const struct sl_packing_instance_delta instances[] = {
        {0, 1, SL_PACKING_STOPPED, 4, -1}, {1, 1, SL_PACKING_STARTED, -1, 5},
        {0, 2, SL_PACKING_KEPT, 1, 1},     {0, 3, SL_PACKING_KEPT, 2, 2},
        {1, 4, SL_PACKING_MOVED, 2, 3},    {1, 5, SL_PACKING_KEPT, 3, 3},
        {0, 6, SL_PACKING_KEPT, 1, 1},
    };
    assert_int_equal(delta->instance_count, 7);
    assert_memory_equal(delta->instances, instances, sizeof(instances));
    assert_int_equal(delta->kept, 4);
    assert_int_equal(delta->moved, 1);
    assert_int_equal(delta->started, 1);
    assert_int_equal(delta->stopped, 1);

    sl_packing_delta_free(delta);
    sl_packing_plan_free(before);
    sl_packing_plan_free(after);
}

static void
test_a_changed_resource_modifies(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 1, 1);
    struct sl_packing_plan *before = fixture_parse(&fixture, "1[S0#1] 2[B0#2]");
    struct sl_packing_plan *after = fixture_parse(&fixture, "1[S0#1] 2[B0#2]");
    after->instances[0].ram_bytes++;
    after->containers[1].cpu += 1;
    struct sl_packing_delta *delta;
    assert_int_equal(sl_packing_delta_new(before, after, 2, &delta), 0);
    assert_int_equal(delta->containers[0].state, SL_PACKING_MODIFIED);
    assert_int_equal(delta->containers[1].state, SL_PACKING_MODIFIED);
    assert_int_equal(delta->kept, 2);
    sl_packing_delta_free(delta);
    before->containers[0].count = 3;
    assert_int_equal(sl_packing_delta_new(before, after, 2, &delta), SL_EINVAL);
    assert_null(delta);
    sl_packing_plan_free(before);
    sl_packing_plan_free(after);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_containers_and_instances),
    cmocka_unit_test(test_a_changed_resource_modifies),
};

UNIT_MAIN(tests)
