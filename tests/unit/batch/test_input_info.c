// labels: short
#include "base/err.h"
#include "batch/input_info.h"
#include "unit.h"

static int
report(struct sl_input_info *info, int64_t time, int32_t input, int64_t records)
{
    struct sl_streaming_input entry = {records, "files: a, b", input, 5};
    return sl_input_info_report(info, time, &entry);
}

static void
test_T144_a_second_report_is_an_error(void **state)
{
    (void)state;
    struct sl_input_info info = {0};
    assert_int_equal(report(&info, 0, 0, 100), 0);
    assert_int_equal(report(&info, 0, 1, 200), 0);
    assert_int_equal(report(&info, 1, 0, 300), 0);
    assert_int_equal(report(&info, 0, 0, 100), SL_EEXIST);
    assert_int_equal(report(&info, 2, 0, -1), SL_EINVAL);
    struct sl_job_set *set = sl_job_set_new(0, 0);
    sl_input_info_fill(&info, set);
    assert_int_equal(set->inputs.count, 2);
    assert_int_equal(set->inputs.items[1].records, 200);
    assert_string_equal(set->inputs.items[1].metadata, "files: a, b");
    sl_job_set_free(set);
    sl_input_info_destroy(&info);
}

static void
test_T144_clean_up_is_strict(void **state)
{
    (void)state;
    struct sl_input_info info = {0};
    assert_int_equal(report(&info, 0, 0, 100), 0);
    assert_int_equal(report(&info, 1, 0, 100), 0);
    sl_input_info_cleanup(&info, 0);
    assert_int_equal(info.entries.count, 2);
    sl_input_info_cleanup(&info, 1);
    assert_int_equal(info.entries.count, 1);
    assert_int_equal(info.entries.items[0].time, 1);
    sl_input_info_destroy(&info);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_T144_a_second_report_is_an_error),
        cmocka_unit_test(test_T144_clean_up_is_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
