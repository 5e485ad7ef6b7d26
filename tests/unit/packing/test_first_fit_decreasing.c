/* Rows F and X of the reference: first fit decreasing. labels: short */
#include "packing/fixture.h"

static const struct fixture_row ROWS[] = {
    {.id = "F1", .layout = "1[S0#1 S1#2 S2#3] 2[S3#4 B0#5 B1#6] 3[B2#7]"},
    {.id = "F2", .padding_percentage = 50, .layout = "1[S0 S1] 2[S2 S3] 3[B0 B1] 4[B2]"},
    {.id = "F3", .cpu = 30, .ram = 10, .disk = 20, .layout = "1[S0 S1 S2 S3] 2[B0 B1 B2]"},
    {.id = "F4",
     .cpu = 30,
     .ram = 15,
     .disk = 20,
     .spout_ram = 2,
     .bolt_ram = 1,
     .layout = "1[S0 S1 S2 S3] 2[B0 B1 B2]"},
    {.id = "F5",
     .ram = 10,
     .spout_ram = 2,
     .bolt_ram = 1,
     .layout = "1[S0 S1 S2] 2[S3 B0 B1] 3[B2]"},
    {.id = "F8",
     .bolt_change = 5,
     .layout = "1[S0#1 S1#2 S2#3] 2[S3#4 B0#5 B1#6] 3[B2#7 B3#8 B4#9] 4[B5#10 B6#11 B7#12]"},
    {.id = "F10",
     .ram = 10,
     .bolt_ram = 4,
     .bolt_change = 3,
     .layout = "1[B0 B1 S0] 2[B2 S1 S2] 3[S3 B3 B4] 4[B5]"},
    {.id = "F11", .spout_change = -3, .bolt_change = -2, .layout = "2[S3#4 B0#5]"},
    {.id = "F12", .spout_change = -4, .layout = "2[B0 B1] 3[B2]"},
    {.id = "F14",
     .spouts = 1,
     .bolts = 3,
     .padding_percentage = FIXTURE_ZERO,
     .ram = 12,
     .spout_ram = 4,
     .spout_change = 1,
     .bolt_change = -1,
     .layout = "1[S0#1 B0#2 B1#3] 2[S1#4]"},
    {.id = "F16", .ram = FIXTURE_ZERO, .refusal = "'S' does not fit"},
    {.id = "F18", .spout_change = -5, .refusal = "need 5 to remove, there are 4"},
    {.id = "F20", .ram = 10, .bolt_ram = FIXTURE_ZERO, .refusal = "'B' asks for too little: ram"},
};

static void
test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_size(ROWS); i++) {
        fixture_run_row(&ROWS[i], SL_PACKING_FIRST_FIT_DECREASING);
    }
}

static void
test_row_f3_states_what_a_container_needs(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_apply(&fixture, &ROWS[2]);
    struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_FIRST_FIT_DECREASING);
    for (int32_t k = 0; k < plan->container_count; k++) {
        int32_t n = plan->containers[k].count;
        assert_true(plan->containers[k].cpu == n + 3);
        assert_int_equal(plan->containers[k].ram_bytes, (n + 1) * SL_GIB);
        assert_int_equal(plan->containers[k].disk_bytes, (n + 2) * SL_GIB);
    }
    sl_packing_plan_free(plan);
}

static void
test_a_refusal_names_component_resource_need_and_room(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 4, 3);
    fixture.components[1].cpu = 3.5;
    const char *message = fixture_refuse(&fixture, SL_PACKING_FIRST_FIT_DECREASING, "'B'");
    assert_non_null(strstr(message, "cpu: need 3.5 cores, room 3"));
    fixture.components[1].cpu = 0.05;
    message = fixture_refuse(&fixture, SL_PACKING_FIRST_FIT_DECREASING, "'B'");
    assert_non_null(strstr(message, "cpu: an instance needs at least 0.1 cores, room given 0.05"));
}

static void
test_x_rows_take_from_the_same_container_in_both_packers(void **state)
{
    (void)state;
    static const struct {
        const char *id, *current;
        int32_t change;
        const char *layout;
    } rows[] = {
        {"X1", "1[S0#1 S1#2 B0#3] 3[B1#4 B2#5] 4[B3#6 B4#7]", -2, "1[S0#1 S1#2 B0#3] 3[B1#4 B2#5]"},
        {"X3", "1[S0#1 S1#2 B0#3] 3[B1#4 B2#5 B3#6 B4#7]", -4, "1[S0#1 S1#2 B0#3]"},
    };
    for (size_t i = 0; i < array_size(rows); i++) {
        for (int packer = SL_PACKING_FIRST_FIT_DECREASING;
             packer <= SL_PACKING_RESOURCE_COMPLIANT_RR; packer++) {
            struct fixture fixture;
            fixture_create(&fixture, 4, 3);
            struct sl_packing_plan *current = fixture_parse(&fixture, rows[i].current);
            fixture.changes[1] = rows[i].change;
            fixture.request.current = current;
            fixture.request.changes = fixture.changes;
            struct sl_packing_plan *plan = fixture_pack(&fixture, packer);
            assert_string_equal(fixture_text(&fixture, plan, true), rows[i].layout);
            sl_packing_plan_free(plan);
            sl_packing_plan_free(current);
        }
    }
}

/* Heron takes the number of containers + 1 for a new id, which collides with a living container. */
static void
test_a_new_container_gets_the_highest_id_plus_one(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 4, 3);
    struct sl_packing_plan *current =
        fixture_parse(&fixture, "2[S0#1 S1#2 S2#3] 3[S3#4 B0#5 B1#6]");
    fixture.changes[1] = 1;
    fixture.request.current = current;
    fixture.request.changes = fixture.changes;
    struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_FIRST_FIT_DECREASING);
    assert_string_equal(fixture_text(&fixture, plan, true),
                        "2[S0#1 S1#2 S2#3] 3[S3#4 B0#5 B1#6] 4[B2#7]");
    sl_packing_plan_free(plan);
    sl_packing_plan_free(current);
}

static void
test_placements_that_exceed_new_limits_stay(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 4, 3);
    struct sl_packing_plan *current =
        fixture_parse(&fixture, "1[S0#1 S1#2 S2#3 S3#4 B0#5 B1#6 B2#7]");
    fixture.changes[1] = 1;
    fixture.request.current = current;
    fixture.request.changes = fixture.changes;
    struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_FIRST_FIT_DECREASING);
    assert_string_equal(fixture_text(&fixture, plan, true),
                        "1[S0#1 S1#2 S2#3 S3#4 B0#5 B1#6 B2#7] 2[B3#8]");
    /* What did not change states what it stated. */
    assert_true(plan->containers[0].cpu == current->containers[0].cpu);
    assert_int_equal(plan->containers[0].disk_bytes, current->containers[0].disk_bytes);
    sl_packing_plan_free(plan);
    sl_packing_plan_free(current);
}

static void
test_max_instances_binds_small_instances(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 6, 1);
    for (int c = 0; c < 2; c++) {
        fixture.components[c].cpu = 0.1;
        fixture.components[c].ram_bytes = 256 * SL_MIB;
        fixture.components[c].disk_bytes = 0;
    }
    struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_FIRST_FIT_DECREASING);
    assert_string_equal(fixture_text(&fixture, plan, false), "1[S0 S1 S2 S3] 2[S4 S5 B0]");
    sl_packing_plan_free(plan);
}

static void
test_tenths_of_a_core_add_up_exactly(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 3, 1);
    fixture.request.config.container_cpu = 1.3;
    fixture.request.config.max_instances = 10;
    fixture.components[0].cpu = fixture.components[1].cpu = 0.1;
    struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_FIRST_FIT_DECREASING);
    assert_string_equal(fixture_text(&fixture, plan, false), "1[S0 S1 S2] 2[B0]");
    sl_packing_plan_free(plan);
}

static void
test_cpu_first_sorts_by_cpu(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 1, 1);
    fixture.components[0].ram_bytes = 2 * SL_GIB;
    fixture.components[1].cpu = 2;
    struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_FIRST_FIT_DECREASING);
    assert_string_equal(fixture_text(&fixture, plan, true), "1[S0#1 B0#2]");
    sl_packing_plan_free(plan);
    fixture.request.config.sorting = SL_PACKING_CPU_FIRST;
    plan = fixture_pack(&fixture, SL_PACKING_FIRST_FIT_DECREASING);
    assert_string_equal(fixture_text(&fixture, plan, true), "1[B0#1 S0#2]");
    sl_packing_plan_free(plan);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_rows),
    cmocka_unit_test(test_row_f3_states_what_a_container_needs),
    cmocka_unit_test(test_a_refusal_names_component_resource_need_and_room),
    cmocka_unit_test(test_x_rows_take_from_the_same_container_in_both_packers),
    cmocka_unit_test(test_a_new_container_gets_the_highest_id_plus_one),
    cmocka_unit_test(test_placements_that_exceed_new_limits_stay),
    cmocka_unit_test(test_max_instances_binds_small_instances),
    cmocka_unit_test(test_tenths_of_a_core_add_up_exactly),
    cmocka_unit_test(test_cpu_first_sorts_by_cpu),
};

UNIT_MAIN(tests)
