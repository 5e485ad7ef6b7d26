/* Capacity, padding and least sizes. labels: short */
#include "packing/fixture.h"

#include "packing/limits.h"

static void
assert_resource(struct sl_resource resource, double cpu, double ram, double disk)
{
    assert_int_equal(resource.cpu_nano, (int64_t)(cpu * (double)SL_CPU_NANO));
    assert_int_equal(resource.ram_bytes, (int64_t)(ram * (double)SL_GIB));
    assert_int_equal(resource.disk_bytes, (int64_t)(disk * (double)SL_GIB));
}

static void
test_defaults_come_from_the_instances(void **state)
{
    (void)state;
    struct sl_packing_config config = FIXTURE_CONFIG;
    config.max_instances = SL_PACKING_UNSET;
    struct sl_packing_limits limits =
        sl_packing_limits_of(&config, SL_PACKING_FIRST_FIT_DECREASING);
    assert_resource(limits.capacity, 10, 10, 10);
    assert_resource(limits.padding, 1, 1, 1);
    assert_int_equal(limits.max_instances, 10);
    /* Ten less the padding is nine. */
    assert_resource(sl_packing_room(&limits, (struct sl_resource){0, 0, 0}), 9, 9, 9);
    limits = sl_packing_limits_of(&config, SL_PACKING_RESOURCE_COMPLIANT_RR);
    assert_int_equal(limits.max_instances, INT32_MAX);
    assert_int_equal(limits.min_cpu_nano, 0);
}

static void
test_padding_is_the_greater_of_amount_and_share(void **state)
{
    (void)state;
    struct sl_packing_config config = FIXTURE_CONFIG;
    config.container_cpu = 30;
    config.container_ram_bytes = 20 * SL_GIB;
    config.container_disk_bytes = 5 * SL_GIB;
    struct sl_packing_limits limits =
        sl_packing_limits_of(&config, SL_PACKING_FIRST_FIT_DECREASING);
    assert_resource(limits.padding, 3, 2, 1);
    config.cpu_padding = 4;
    config.ram_padding_bytes = 3 * SL_GIB;
    config.padding_percentage = 0;
    limits = sl_packing_limits_of(&config, SL_PACKING_FIRST_FIT_DECREASING);
    assert_resource(limits.padding, 4, 3, 1);
}

static void
test_refusals_name_the_first_dimension_that_is_short(void **state)
{
    (void)state;
    struct sl_packing_limits limits =
        sl_packing_limits_of(&FIXTURE_CONFIG, SL_PACKING_FIRST_FIT_DECREASING);
    struct sl_resource need = {SL_CPU_NANO, SL_GIB, 4 * SL_GIB};
    assert_int_equal(sl_packing_limits_check_empty(&limits, "x", need), SL_EUNSATISFIABLE);
    assert_string_equal(sl_err_last()->msg, "component 'x' does not fit into an empty container: "
                                            "disk: need 4294967296 bytes, room 3221225472");
    need.disk_bytes = 3 * SL_GIB;
    assert_int_equal(sl_packing_limits_check_empty(&limits, "x", need), 0);
    limits.max_instances = 0;
    assert_int_equal(sl_packing_limits_check_empty(&limits, "x", need), SL_EUNSATISFIABLE);
    assert_non_null(strstr(sl_err_last()->msg, "instances: need 1, room 0"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_defaults_come_from_the_instances),
    cmocka_unit_test(test_padding_is_the_greater_of_amount_and_share),
    cmocka_unit_test(test_refusals_name_the_first_dimension_that_is_short),
};

UNIT_MAIN(tests)
