/* Arguments of the scheduling ABI are checked, not trusted. labels: short */
#include "scheduling/sched_fixture.h"

#include "abi/abi.h"

static void
test_assign_gives_workers_until_they_are_freed(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("2,2", 2);
    struct sl_sched_result expected = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    struct sl_sched_result result;
    assert_int_equal(sl_scheduling_assign(fx_request(f), SL_SCHED_BALANCED, &result), 0);
    assert_true(result.worker_count > 0);
    assert_int_equal(result.worker_count, expected.worker_count);
    assert_int_equal(result.task_count, expected.task_count);
    for (uint32_t i = 0; i < result.worker_count; i++) {
        assert_string_equal(result.workers[i].supervisor, expected.workers[i].supervisor);
        assert_int_equal(result.workers[i].port, expected.workers[i].port);
    }
    sl_scheduling_result_free(&result);
    assert_null(result.workers);
    assert_int_equal(result.worker_count, 0);
    /* An empty one, and none. */
    sl_scheduling_result_free(&result);
    sl_scheduling_result_free(NULL);
    sl_sched_result_destroy(&expected);
    free(f);
}

static void
test_assign_refuses_what_is_missing_or_unknown(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("2,2", 2);
    struct sl_sched_result result = {0};
    assert_int_equal(sl_scheduling_assign(NULL, SL_SCHED_BALANCED, &result), SL_EINVAL);
    assert_int_equal(sl_scheduling_assign(fx_request(f), SL_SCHED_BALANCED, NULL), SL_EINVAL);
    assert_int_equal(sl_scheduling_assign(fx_request(f), -1, &result), SL_EINVAL);
    assert_int_equal(sl_scheduling_assign(fx_request(f), 99, &result), SL_EINVAL);
    free(f);
}

static void
test_assign_tells_when_there_is_no_place(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("1", 2);
    struct sl_sched_result result = {0};
    f->r.reserve_workers = 1;
    assert_int_equal(sl_scheduling_assign(fx_request(f), SL_SCHED_BALANCED, &result),
                     SL_EUNSATISFIABLE);
    assert_null(result.workers);
    free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_assign_gives_workers_until_they_are_freed),
    cmocka_unit_test(test_assign_refuses_what_is_missing_or_unknown),
    cmocka_unit_test(test_assign_tells_when_there_is_no_place),
};

UNIT_MAIN(tests)
