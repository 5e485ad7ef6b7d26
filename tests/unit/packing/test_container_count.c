/* An asked container count holds or is refused. labels: short */
#include "packing/fixture.h"

/* Repacks the plan with a container count and no other change. */
static struct sl_packing_plan *
hold(struct fixture *fixture, int packer, const char *current_text, int32_t containers)
{
    struct sl_packing_plan *current = fixture_parse(fixture, current_text);
    fixture->request.current = current;
    fixture->request.containers = containers;
    struct sl_packing_plan *plan = fixture_pack(fixture, packer);
    fixture->request.current = NULL;
    sl_packing_plan_free(current);
    return plan;
}

static void
test_new_containers_take_the_highest_tasks_of_the_fullest(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 9, 1);
    fixture.request.config.max_instances = 10;
    for (int packer = SL_PACKING_FIRST_FIT_DECREASING; packer <= SL_PACKING_RESOURCE_COMPLIANT_RR;
         packer++) {
        struct sl_packing_plan *plan =
            hold(&fixture, packer, "2[S0#1 S1#2 S2#3 S3#4 S4#5 S5#6 S6#7 S7#8 S8#9]", 3);
        assert_string_equal(fixture_text(&fixture, plan, true),
                            "2[S0#1 S1#2 S2#3 S3#4 S4#5] 3[S6#7 S8#9] 4[S5#6 S7#8]");
        sl_packing_plan_free(plan);
    }
}

static void
test_the_lowest_id_gives_on_ties(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 4, 1);
    struct sl_packing_plan *plan =
        hold(&fixture, SL_PACKING_FIRST_FIT_DECREASING, "3[S0#1 S1#2] 7[S2#3 S3#4]", 3);
    assert_string_equal(fixture_text(&fixture, plan, true), "3[S0#1] 7[S2#3 S3#4] 8[S1#2]");
    sl_packing_plan_free(plan);
    plan = hold(&fixture, SL_PACKING_FIRST_FIT_DECREASING, "3[S0#1 S1#2] 7[S2#3 S3#4]", 4);
    assert_string_equal(fixture_text(&fixture, plan, true), "3[S0#1] 7[S2#3] 8[S1#2] 9[S3#4]");
    sl_packing_plan_free(plan);
}

static void
test_the_emptiest_container_is_emptied_by_the_packers_rule(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 5, 1);
    fixture.request.config.max_instances = 5;
    const char *current = "1[S0#1 S1#2] 2[S2#3] 5[S3#4] 6[S4#5 B0#6]";
    struct sl_packing_plan *plan = hold(&fixture, SL_PACKING_FIRST_FIT_DECREASING, current, 2);
    assert_string_equal(fixture_text(&fixture, plan, true), "1[S0#1 S1#2 S2#3 S3#4] 6[S4#5 B0#6]");
    sl_packing_plan_free(plan);
    /* In turn: #4 goes to the first, #3 to the next one that is left. */
    plan = hold(&fixture, SL_PACKING_RESOURCE_COMPLIANT_RR, current, 2);
    assert_string_equal(fixture_text(&fixture, plan, true), "1[S0#1 S1#2 S3#4] 6[S2#3 S4#5 B0#6]");
    sl_packing_plan_free(plan);
}

static void
test_no_room_is_refused_with_the_numbers(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 4, 3);
    fixture.request.containers = 2;
    const char *message = fixture_refuse(&fixture, SL_PACKING_FIRST_FIT_DECREASING, "'B'");
    assert_non_null(strstr(message, "into 2 containers"));
    assert_non_null(strstr(message, "cpu: need 1 cores, room 0"));
    fixture.request.containers = 8;
    fixture_refuse(&fixture, SL_PACKING_FIRST_FIT_DECREASING, "8 asked for");
    fixture.request.containers = 0;
    fixture_refuse(&fixture, SL_PACKING_FIRST_FIT_DECREASING, "need at least 1, asked for 0");
}

static void
test_a_first_plan_holds_the_count_too(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 4, 3);
    for (int packer = 0; packer < 3; packer++) {
        for (int32_t containers = 3; containers <= 7; containers++) {
            fixture.request.containers = containers;
            struct sl_packing_plan *plan = fixture_pack(&fixture, packer);
            assert_int_equal(plan->container_count, containers);
            int32_t wanted[] = {4, 3};
            fixture_check(&fixture, plan, wanted);
            sl_packing_plan_free(plan);
        }
    }
}

static void
test_an_instance_too_large_for_a_new_container_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 2, 1);
    struct sl_packing_plan *current = fixture_parse(&fixture, "1[S0#1 S1#2]");
    current->instances[1].ram_bytes = 9 * SL_GIB;
    fixture.request.current = current;
    fixture.request.containers = 2;
    fixture_refuse(&fixture, SL_PACKING_FIRST_FIT_DECREASING,
                   "'S' does not fit into a new container: ram: need 9663676416 bytes, room "
                   "3221225472");
    sl_packing_plan_free(current);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_new_containers_take_the_highest_tasks_of_the_fullest),
    cmocka_unit_test(test_the_lowest_id_gives_on_ties),
    cmocka_unit_test(test_the_emptiest_container_is_emptied_by_the_packers_rule),
    cmocka_unit_test(test_no_room_is_refused_with_the_numbers),
    cmocka_unit_test(test_a_first_plan_holds_the_count_too),
    cmocka_unit_test(test_an_instance_too_large_for_a_new_container_is_refused),
};

UNIT_MAIN(tests)
