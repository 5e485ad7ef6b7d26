/* Rows Q of the reference: round robin. labels: short */
#include <math.h>

#include "packing/fixture.h"

static void
create(struct fixture *fixture, int32_t spouts, int32_t bolts)
{
    fixture_create(fixture, spouts, bolts);
    fixture->request.config.containers = 2;
}

static void
assert_near(double value, double expected)
{
    if (fabs(value - expected) > 0.001) {
        fail_msg("%g instead of %g", value, expected);
    }
}

static void
assert_container(const struct sl_packing_plan *plan, int32_t k, double cpu, double ram, double disk)
{
    assert_near(plan->containers[k].cpu, cpu);
    assert_int_equal(plan->containers[k].ram_bytes, (int64_t)(ram * (double)SL_GIB));
    assert_int_equal(plan->containers[k].disk_bytes, (int64_t)(disk * (double)SL_GIB));
}

/* CPU and RAM (GiB) of all instances of the component in container k. */
static void
assert_instances(const struct sl_packing_plan *plan, int32_t k, int32_t component, double cpu,
                 double ram)
{
    const struct sl_packing_container *container = &plan->containers[k];
    for (int32_t i = 0; i < container->count; i++) {
        const struct sl_packing_instance *instance = &plan->instances[container->first + i];
        if (instance->component == component) {
            assert_near(instance->cpu, cpu);
            assert_near((double)instance->ram_bytes / (double)SL_GIB, ram);
            assert_int_equal(instance->disk_bytes, SL_GIB);
        }
    }
}

static void
test_q1_splits_the_default_container(void **state)
{
    (void)state;
    struct fixture fixture;
    create(&fixture, 4, 3);
    struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_ROUND_ROBIN);
    assert_string_equal(fixture_text(&fixture, plan, true),
                        "1[S0#1 S2#3 B0#5 B2#7] 2[S1#2 S3#4 B1#6]");
    for (int32_t k = 0; k < 2; k++) {
        assert_container(plan, k, 5, 6, 16);
        for (int32_t c = 0; c < 2; c++) {
            assert_instances(plan, k, c, k == 0 ? 1 : 1.3333, k == 0 ? 1 : 1.3333);
        }
    }
    /* Bytes are whole, rounded down; what can not be divided stays with the container. */
    assert_int_equal(plan->instances[plan->containers[1].first].ram_bytes, 4 * SL_GIB / 3);
    assert_int_equal(plan->warning_count, 0);
    sl_packing_plan_free(plan);
}

static void
test_q2_q3_split_the_container_asked_for(void **state)
{
    (void)state;
    struct fixture fixture;
    create(&fixture, 4, 3);
    struct sl_packing_config *config = &fixture.request.config;
    config->container_cpu = 30;
    config->container_ram_bytes = 10 * SL_GIB;
    config->container_disk_bytes = 20 * SL_GIB;
    struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_ROUND_ROBIN);
    for (int32_t k = 0; k < 2; k++) {
        assert_container(plan, k, 30, 10, 20);
        assert_instances(plan, k, 0, k == 0 ? 7.25 : 9.6667, k == 0 ? 2 : 2.6667);
    }
    sl_packing_plan_free(plan);

    config->ram_padding_bytes = 512 * SL_MIB;
    plan = fixture_pack(&fixture, SL_PACKING_ROUND_ROBIN);
    assert_instances(plan, 0, 1, 7.25, 2.375);
    assert_instances(plan, 1, 1, 9.6667, 3.1667);
    sl_packing_plan_free(plan);
}

static void
test_q5_drops_the_padding_with_a_warning(void **state)
{
    (void)state;
    struct fixture fixture;
    create(&fixture, 4, 3);
    fixture.request.config.container_ram_bytes = 6 * SL_GIB;
    fixture.components[0].ram_bytes = 2 * SL_GIB;
    fixture.components[1].ram_bytes = SL_GIB;
    struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_ROUND_ROBIN);
    assert_int_equal(plan->containers[0].ram_bytes, 6 * SL_GIB);
    assert_int_equal(plan->containers[1].ram_bytes, 6 * SL_GIB);
    assert_int_equal(plan->warning_count, 2);
    assert_int_equal(plan->warnings[1].container, 2);
    assert_int_equal(plan->warnings[1].dimension, SL_PACKING_RAM);
    sl_packing_plan_free(plan);
}

static void
test_q7_checks_stated_cpu_against_the_container(void **state)
{
    (void)state;
    struct fixture fixture;
    create(&fixture, 4, 3);
    fixture.components[0].cpu = fixture.components[1].cpu = 4;
    static const int32_t warnings[] = {0, 1};
    for (int i = 0; i < 2; i++) {
        fixture.request.config.container_cpu = 17 - i;
        struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_ROUND_ROBIN);
        assert_near(plan->containers[0].cpu, 17 - i);
        assert_int_equal(plan->warning_count, warnings[i]);
        sl_packing_plan_free(plan);
    }
    fixture.request.config.container_cpu = 10;
    fixture_refuse(&fixture, SL_PACKING_ROUND_ROBIN, "container 1 with the others: cpu: need 4");
}

static void
test_q9_refuses_more_ram_than_the_default_container(void **state)
{
    (void)state;
    struct fixture fixture;
    create(&fixture, 4, 3);
    fixture.components[1].ram_bytes = 10 * SL_GIB;
    fixture_refuse(&fixture, SL_PACKING_ROUND_ROBIN, "'S' does not fit into container 1");
}

static void
test_q10_q11_split_what_stated_values_leave(void **state)
{
    (void)state;
    struct fixture fixture;
    create(&fixture, 4, 3);
    fixture.components[1].ram_bytes = SL_GIB;
    fixture.request.config.container_ram_bytes = 10 * SL_GIB;
    struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_ROUND_ROBIN);
    assert_instances(plan, 0, 0, 1, 3);
    assert_instances(plan, 1, 0, 1.3333, 3.5);
    sl_packing_plan_free(plan);

    create(&fixture, 4, 3);
    fixture.components[1].cpu = 4;
    fixture.request.config.container_cpu = 17;
    plan = fixture_pack(&fixture, SL_PACKING_ROUND_ROBIN);
    assert_instances(plan, 0, 0, 4, 1);
    assert_instances(plan, 1, 0, 6, 1.3333);
    sl_packing_plan_free(plan);
}

static struct sl_packing_plan *
repack(struct fixture *fixture, int32_t spouts, int32_t bolts, int32_t containers)
{
    create(fixture, 4, 4);
    struct sl_packing_plan *current = fixture_pack(fixture, SL_PACKING_ROUND_ROBIN);
    fixture->changes[0] = spouts;
    fixture->changes[1] = bolts;
    fixture->request.changes = fixture->changes;
    fixture->request.containers = containers;
    fixture->request.current = current;
    struct sl_packing_plan *plan;
    int rc = sl_packing_pack(SL_PACKING_ROUND_ROBIN, &fixture->request, &plan);
    fixture->request.current = NULL;
    sl_packing_plan_free(current);
    if (rc != 0) {
        assert_int_equal(rc, SL_EUNSATISFIABLE);
        assert_null(plan);
    }
    return plan;
}

static void
test_q12_q14_repack_in_proportion(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sl_packing_plan *plan = repack(&fixture, -1, 1, -1);
    assert_string_equal(fixture_text(&fixture, plan, false), "1[S0 S2 B1 B3] 2[S1 B0 B2 B4]");
    sl_packing_plan_free(plan);
    plan = repack(&fixture, 0, 1, -1);
    assert_int_equal(plan->container_count, 3);
    sl_packing_plan_free(plan);
    plan = repack(&fixture, -2, -2, -1);
    assert_int_equal(plan->container_count, 1);
    sl_packing_plan_free(plan);
}

static void
test_q15_q16_refuse_containers_without_room(void **state)
{
    (void)state;
    struct fixture fixture;
    create(&fixture, 4, 3);
    fixture.request.config.container_ram_bytes = 0;
    fixture_refuse(&fixture, SL_PACKING_ROUND_ROBIN, "ram: need 67108864 bytes, room 0");
    create(&fixture, 4, 3);
    fixture.request.config.container_cpu = 1;
    fixture_refuse(&fixture, SL_PACKING_ROUND_ROBIN, "cpu: need");
}

static void
test_q17_refuses_counts_that_can_not_be_filled(void **state)
{
    (void)state;
    struct fixture fixture;
    create(&fixture, 4, 3);
    fixture.request.config.containers = 0;
    fixture_refuse(&fixture, SL_PACKING_ROUND_ROBIN, "need at least 1, asked for 0");
    fixture.request.config.containers = 8;
    fixture_refuse(&fixture, SL_PACKING_ROUND_ROBIN,
                   "8 asked for, but component 'S' and the "
                   "others have only 7 instances");
}

static void
test_q19_q20_q21_hold_an_asked_count(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sl_packing_plan *plan = repack(&fixture, 0, 1, 3);
    assert_int_equal(plan->container_count, 3);
    for (int32_t k = 0; k < 3; k++) {
        assert_int_equal(plan->containers[k].count, 3);
    }
    sl_packing_plan_free(plan);
    plan = repack(&fixture, 0, 1, 2);
    assert_int_equal(plan->container_count, 2);
    sl_packing_plan_free(plan);
    assert_null(repack(&fixture, 0, 0, 9));
    assert_non_null(strstr(sl_err_last()->msg, "need 9 instances, room for 8 containers"));
}

static void
test_a_component_that_the_plan_lacks_is_named(void **state)
{
    (void)state;
    struct fixture fixture;
    create(&fixture, 4, 3);
    struct sl_packing_plan *current = fixture_parse(&fixture, "1[S0#1 S1#2]");
    fixture.changes[1] = 1;
    fixture.request.changes = fixture.changes;
    fixture.request.current = current;
    fixture_refuse(&fixture, SL_PACKING_ROUND_ROBIN, "component 'B' can not be scaled");
    sl_packing_plan_free(current);
}

static void
test_least_ram_is_16_mib(void **state)
{
    (void)state;
    struct fixture fixture;
    create(&fixture, 1, 1);
    fixture.components[0].ram_bytes = 16 * SL_MIB;
    sl_packing_plan_free(fixture_pack(&fixture, SL_PACKING_ROUND_ROBIN));
    fixture.components[0].ram_bytes = 16 * SL_MIB - 1;
    fixture_refuse(&fixture, SL_PACKING_ROUND_ROBIN, "'S' gets too little: ram");
}

static void
test_ties_keep_declaration_order_spouts_first(void **state)
{
    (void)state;
    struct fixture fixture;
    create(&fixture, 1, 1);
    fixture.components[0] = fixture_component("B", SL_PACKING_BOLT, 1);
    fixture.components[1] = fixture_component("S", SL_PACKING_SPOUT, 1);
    fixture.components[2] = fixture_component("T", SL_PACKING_SPOUT, 1);
    fixture.components[3] = fixture_component("C", SL_PACKING_BOLT, 1);
    fixture.components[3].ram_bytes = SL_GIB;
    fixture.request.component_count = 4;
    fixture.request.config.containers = 1;
    struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_ROUND_ROBIN);
    assert_string_equal(fixture_text(&fixture, plan, true), "1[C0#1 S0#2 T0#3 B0#4]");
    sl_packing_plan_free(plan);
}

static void
test_disk_of_a_component_is_honoured(void **state)
{
    (void)state;
    struct fixture fixture;
    create(&fixture, 1, 1);
    fixture.request.config.containers = 1;
    fixture.components[1].disk_bytes = 50 * SL_GIB;
    struct sl_packing_plan *plan = fixture_pack(&fixture, SL_PACKING_ROUND_ROBIN);
    assert_int_equal(plan->instances[1].disk_bytes, 50 * SL_GIB);
    assert_int_equal(plan->containers[0].disk_bytes, 63 * SL_GIB);
    sl_packing_plan_free(plan);
    fixture.request.config.container_disk_bytes = 20 * SL_GIB;
    fixture_refuse(&fixture, SL_PACKING_ROUND_ROBIN,
                   "'B' does not fit into container 1 with the "
                   "others: disk");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_q1_splits_the_default_container),
    cmocka_unit_test(test_q2_q3_split_the_container_asked_for),
    cmocka_unit_test(test_q5_drops_the_padding_with_a_warning),
    cmocka_unit_test(test_q7_checks_stated_cpu_against_the_container),
    cmocka_unit_test(test_q9_refuses_more_ram_than_the_default_container),
    cmocka_unit_test(test_q10_q11_split_what_stated_values_leave),
    cmocka_unit_test(test_q12_q14_repack_in_proportion),
    cmocka_unit_test(test_q15_q16_refuse_containers_without_room),
    cmocka_unit_test(test_q17_refuses_counts_that_can_not_be_filled),
    cmocka_unit_test(test_q19_q20_q21_hold_an_asked_count),
    cmocka_unit_test(test_a_component_that_the_plan_lacks_is_named),
    cmocka_unit_test(test_least_ram_is_16_mib),
    cmocka_unit_test(test_ties_keep_declaration_order_spouts_first),
    cmocka_unit_test(test_disk_of_a_component_is_honoured),
};

UNIT_MAIN(tests)
