/* Amounts: exact sums, percentages, saturation. labels: short */
#include "packing/fixture.h"

static void
test_tenths_add_up(void **state)
{
    (void)state;
    assert_int_equal(sl_cpu_nano(0.1) + sl_cpu_nano(0.2), sl_cpu_nano(0.3));
    assert_int_equal(sl_cpu_nano(4.0 / 3), 1333333333);
    assert_int_equal(sl_cpu_nano(SL_PACKING_CPU_MAX), SL_PACKING_CPU_MAX * SL_CPU_NANO);
}

static void
test_growth_by_percent_and_by_sign(void **state)
{
    (void)state;
    assert_int_equal(sl_increase_bytes(1024, 1), 1034);
    assert_true(sl_increase_cores(10.0, 1) > 10.0999 && sl_increase_cores(10.0, 1) < 10.1001);
    int32_t changes[] = {-2, 2, -1, 0};
    int32_t up[4];
    int32_t down[4];
    sl_packing_changes_split(changes, 4, up, down);
    int32_t expected_up[] = {0, 2, 0, 0};
    int32_t expected_down[] = {2, 0, 1, 0};
    assert_memory_equal(up, expected_up, sizeof(up));
    assert_memory_equal(down, expected_down, sizeof(down));
}

static void
test_sums_saturate(void **state)
{
    (void)state;
    assert_int_equal(sl_sum(INT64_MAX, 1), INT64_MAX);
    assert_int_equal(sl_sum(INT64_MIN, -1), INT64_MIN);
    assert_int_equal(sl_product(INT64_MAX / 2, 3), INT64_MAX);
    assert_int_equal(sl_percentage_of_bytes(INT64_C(1) << 53, 10), 900719925474099);
    assert_int_equal(sl_percentage_of_bytes(INT64_MAX, 200), INT64_MAX);
}

static void
test_fits_in_every_dimension(void **state)
{
    (void)state;
    struct sl_resource room = {3, 3, 3};
    assert_true(sl_resource_fits((struct sl_resource){3, 3, 3}, room));
    assert_false(sl_resource_fits((struct sl_resource){4, 0, 0}, room));
    assert_false(sl_resource_fits((struct sl_resource){0, 4, 0}, room));
    assert_false(sl_resource_fits((struct sl_resource){0, 0, 4}, room));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_tenths_add_up),
    cmocka_unit_test(test_growth_by_percent_and_by_sign),
    cmocka_unit_test(test_sums_saturate),
    cmocka_unit_test(test_fits_in_every_dimension),
};

UNIT_MAIN(tests)
