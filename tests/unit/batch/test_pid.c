// labels: short
#include <math.h>

#include "base/err.h"
#include "base/random.h"
#include "batch/pid.h"
#include "unit.h"

static double
compute(struct sl_pid *pid, int64_t time, int64_t records, int64_t processing, int64_t scheduling)
{
    double rate = -1;
    return sl_pid_compute(pid, time, records, processing, scheduling, &rate) ? rate : -1;
}

static void
test_T135_the_first_and_a_repeated_sample_give_no_rate(void **state)
{
    (void)state;
    struct sl_pid pid;
    assert_int_equal(sl_pid_create(&pid, 20, 1, 0, 0, 10), 0);
    assert_true(compute(&pid, 0, 10, 10, 0) == -1);
    assert_true(compute(&pid, 10, 10, 10, 0) == 1000);
    assert_true(compute(&pid, 10, 10, 10, 0) == -1);
}

static void
test_samples_that_do_not_count_change_nothing(void **state)
{
    (void)state;
    struct sl_pid pid;
    assert_int_equal(sl_pid_create(&pid, 20, 1, 0.2, 0, 10), 0);
    compute(&pid, 0, 10, 10, 0);
    struct sl_pid before = pid;
    assert_true(compute(&pid, 20, 0, 10, 0) == -1);
    assert_true(compute(&pid, 20, 10, 0, 0) == -1);
    assert_true(compute(&pid, 0, 10, 10, 0) == -1);
    assert_memory_equal(&pid, &before, sizeof(pid));
}

static void
test_T137_the_least_rate_holds(void **state)
{
    (void)state;
    struct sl_pid pid;
    assert_int_equal(sl_pid_create(&pid, 20, 1, 1, 0, 5), 0);
    assert_true(compute(&pid, 0, 1, 20, 100) == -1);
    for (int i = 1; i < 50; i++) {
        assert_true(compute(&pid, 20 * i, 1, 20, 100) == 5);
    }
}

static void
test_T138_the_rate_follows_a_faster_processing(void **state)
{
    (void)state;
    struct sl_pid pid;
    assert_int_equal(sl_pid_create(&pid, 20, 1, 1, 0, 10), 0);
    assert_true(compute(&pid, 0, 20, 20, 0) == -1);
    for (int i = 1; i < 50; i++) {
        assert_true(fabs(compute(&pid, 20 * i, 20 * (i + 1), 20, 0) - 1000.0 * (i + 1)) < 1e-6);
    }
}

static void
test_T139_the_rate_follows_a_slower_processing(void **state)
{
    (void)state;
    struct sl_pid pid;
    assert_int_equal(sl_pid_create(&pid, 20, 1, 1, 0, 10), 0);
    assert_true(compute(&pid, 0, 20 * 50, 20, 0) == -1);
    for (int i = 1; i < 50; i++) {
        assert_true(fabs(compute(&pid, 20 * i, 20 * (50 - i), 20, 0) - 1000.0 * (50 - i)) < 1e-6);
    }
}

static void
test_T141_arguments_are_checked(void **state)
{
    (void)state;
    struct sl_pid pid;
    assert_int_equal(sl_pid_create(&pid, 0, 1, 1, 0, 10), SL_EINVAL);
    assert_int_equal(sl_pid_create(&pid, 20, -1, 1, 0, 10), SL_EINVAL);
    assert_int_equal(sl_pid_create(&pid, 20, 1, -1, 0, 10), SL_EINVAL);
    assert_int_equal(sl_pid_create(&pid, 20, 1, 1, -1, 10), SL_EINVAL);
    assert_int_equal(sl_pid_create(&pid, 20, 1, 1, 0, 0), SL_EINVAL);
    assert_int_equal(sl_pid_create(&pid, 20, 1, 1, 0, -10), SL_EINVAL);
    assert_int_equal(sl_pid_create(&pid, 20, NAN, 1, 0, 10), SL_EINVAL);
    assert_int_equal(sl_pid_create(&pid, 20, 0, 0, 0, 0.1), 0);
}

/* The formula of the reference, written down once more. */
static void
test_it_agrees_with_the_formula(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 21);
    for (int round = 0; round < 50; round++) {
        double gains[3];
        for (int i = 0; i < 3; i++) {
            gains[i] = sl_random_double(&random) * 2;
        }
        struct sl_pid pid;
        assert_int_equal(sl_pid_create(&pid, 100, gains[0], gains[1], gains[2], 3), 0);
        double latest_rate = 0;
        double latest_error = 0;
        int64_t latest_time = -1;
        for (int i = 0; i < 100; i++) {
            int64_t time = latest_time + 1 + (int64_t)sl_random_below(&random, 300);
            int64_t n = 1 + (int64_t)sl_random_below(&random, 1000);
            int64_t processing = 1 + (int64_t)sl_random_below(&random, 200);
            int64_t scheduling = (int64_t)sl_random_below(&random, 500);
            double rate = (double)n / (double)processing * 1000;
            double error = latest_rate - rate;
            double next =
                latest_rate - gains[0] * error - gains[1] * ((double)scheduling * rate / 100) -
                gains[2] * ((error - latest_error) / ((double)(time - latest_time) / 1000));
            double got = compute(&pid, time, n, processing, scheduling);
            if (i == 0) {
                assert_true(got == -1);
                latest_rate = rate;
                latest_error = 0;
            } else {
                latest_rate = next > 3 ? next : 3;
                latest_error = error;
                assert_true(got == latest_rate);
            }
            latest_time = time;
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_T135_the_first_and_a_repeated_sample_give_no_rate),
        cmocka_unit_test(test_samples_that_do_not_count_change_nothing),
        cmocka_unit_test(test_T137_the_least_rate_holds),
        cmocka_unit_test(test_T138_the_rate_follows_a_faster_processing),
        cmocka_unit_test(test_T139_the_rate_follows_a_slower_processing),
        cmocka_unit_test(test_T141_arguments_are_checked),
        cmocka_unit_test(test_it_agrees_with_the_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
