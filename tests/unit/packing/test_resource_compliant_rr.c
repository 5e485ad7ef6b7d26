/* Rows R of the reference: resource compliant round robin. labels: short */
#include "packing/fixture.h"

static const struct fixture_row ROWS[] = {
    {.id = "R1", .layout = "1[S0#1 S3#4 B2#7] 2[S1#2 B0#5] 3[S2#3 B1#6]"},
    {.id = "R2", .padding_percentage = 50, .layout = "1[S0 B0] 2[S1 B1] 3[S2 B2] 4[S3]"},
    {.id = "R3", .cpu = 30, .ram = 10, .disk = 20, .layout = "1[S0 S1 S2 S3 B0 B1 B2]"},
    {.id = "R4",
     .containers = 8,
     .cpu = 30,
     .ram = 10,
     .disk = 20,
     .layout = "1[S0] 2[S1] 3[S2] 4[S3] 5[B0] 6[B1] 7[B2]"},
    {.id = "R5",
     .containers = 2,
     .cpu = 30,
     .ram = 10,
     .disk = 20,
     .layout = "1[S0 S2 B0 B2] 2[S1 S3 B1]"},
    {.id = "R6", .ram = 2, .layout = "1[S0] 2[S1] 3[S2] 4[S3] 5[B0] 6[B1] 7[B2]"},
    {.id = "R7",
     .ram = 3,
     .spout_ram = 2,
     .bolt_ram = 1,
     .layout = "1[S0] 2[S1] 3[S2] 4[S3] 5[B0] 6[B1] 7[B2]"},
    {.id = "R9",
     .ram = 10,
     .spout_ram = 2,
     .bolt_ram = 1,
     .layout = "1[S0#1 S3#4 B2#7] 2[S1#2 B0#5] 3[S2#3 B1#6]"},
    {.id = "R10",
     .bolt_change = 5,
     .layout = "1[S0#1 S3#4 B2#7] 2[S1#2 B0#5 B3#8] 3[S2#3 B1#6 B4#9] 4[B5#10 B7#12] 5[B6#11]"},
    {.id = "R12",
     .ram = 10,
     .bolt_ram = 4,
     .bolt_change = 3,
     .layout = "1[S0 S3 B2] 2[S1 B0 B3] 3[S2 B1 B4] 4[B5]"},
    {.id = "R13", .spout_change = -2, .bolt_change = -1, .layout = "1[S0 S3 B2] 2[B0]"},
    {.id = "R14", .spout_change = -3, .bolt_change = -3, .layout = "1[S0]"},
    {.id = "R17",
     .spout_change = 4,
     .bolt_change = 4,
     .layout = "1[S0#1 S3#4 B2#7] 2[S1#2 B0#5 S4#8] 3[S2#3 B1#6 S5#9] 4[S6#10 B3#12 B5#14] "
               "5[S7#11 B4#13 B6#15]"},
    {.id = "R19", .ram = FIXTURE_ZERO, .refusal = "ram: need 1073741824 bytes, room 0"},
    {.id = "R20", .cpu = 1, .refusal = "cpu: need 1 cores, room 0"},
    {.id = "R23", .bolt_ram = FIXTURE_ZERO, .refusal = "'B' asks for too little: ram"},
};

static void
test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_size(ROWS); i++) {
        fixture_run_row(&ROWS[i], SL_PACKING_RESOURCE_COMPLIANT_RR);
    }
}

static void
test_row_r3_states_what_the_container_needs(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_apply(&fixture, &ROWS[2]);
    struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_RESOURCE_COMPLIANT_RR);
    assert_int_equal(plan->container_count, 1);
    assert_true(plan->containers[0].cpu == 10);
    assert_int_equal(plan->containers[0].ram_bytes, 8 * SL_GIB);
    assert_int_equal(plan->containers[0].disk_bytes, 9 * SL_GIB);
    sl_packing_plan_free(plan);
}

/* Upstream's limit is the instance total at submission, so a large growth fails there. */
static void
test_a_growth_far_beyond_the_submitted_total_works(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 4, 3);
    struct sl_packing_plan *current = fixture_pack(&fixture, SL_PACKING_RESOURCE_COMPLIANT_RR);
    fixture.changes[1] = 90;
    fixture.request.current = current;
    fixture.request.changes = fixture.changes;
    struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_RESOURCE_COMPLIANT_RR);
    int32_t wanted[] = {4, 93};
    fixture_check(&fixture, plan, wanted);
    assert_int_equal(plan->container_count, 33);
    sl_packing_plan_free(plan);
    sl_packing_plan_free(current);
}

static void
test_no_container_asked_for_at_submission_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 4, 3);
    fixture.request.config.containers = 0;
    fixture_refuse(&fixture, SL_PACKING_RESOURCE_COMPLIANT_RR, "need at least 1, asked for 0");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_rows),
    cmocka_unit_test(test_row_r3_states_what_the_container_needs),
    cmocka_unit_test(test_a_growth_far_beyond_the_submitted_total_works),
    cmocka_unit_test(test_no_container_asked_for_at_submission_is_refused),
};

UNIT_MAIN(tests)
