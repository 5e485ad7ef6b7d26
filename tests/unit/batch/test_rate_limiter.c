// labels: short
#include "base/random.h"
#include "batch/rate_limiter.h"
#include "unit.h"

static void
test_a_flood_gets_its_rate_and_no_more(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 31);
    for (int round = 0; round < 60; round++) {
        double rate = round % 3 == 0 ? (double)(1 + sl_random_below(&random, 9)) / 3
                                     : (double)(1 + sl_random_below(&random, 3000));
        struct sl_rate_limiter limiter;
        sl_rate_limiter_create(&limiter, 200, rate, 0);
        int64_t total = 0;
        int64_t batch = 0;
        for (int64_t now = 0; now < 20000; now += 50) {
            if (now % 1000 == 0) {
                assert_true((double)batch <= rate + 1);
                batch = 0;
            }
            while (sl_rate_limiter_take(&limiter, now, 1)) {
                total++;
                batch++;
            }
            int64_t ready = sl_rate_limiter_ready(&limiter, now);
            assert_true(ready > now && (ready - now <= 200 || rate < 5));
        }
        assert_true((double)total <= rate * 20 + 1e-6);
        assert_true((double)total >= rate * 20 - 1.01);
    }
}

static void
test_a_large_list_is_paid_for_later(void **state)
{
    (void)state;
    struct sl_rate_limiter limiter;
    sl_rate_limiter_create(&limiter, 100, 100, 0);
    assert_true(sl_rate_limiter_take(&limiter, 0, 35));
    assert_false(sl_rate_limiter_take(&limiter, 50, 1));
    assert_int_equal(sl_rate_limiter_ready(&limiter, 50), 300);
    assert_false(sl_rate_limiter_take(&limiter, 200, 1));
    int taken = 0;
    while (sl_rate_limiter_take(&limiter, 300, 1)) {
        taken++;
    }
    assert_int_equal(taken, 5);
}

static void
test_without_a_rate_everything_is_let_in(void **state)
{
    (void)state;
    struct sl_rate_limiter limiter;
    sl_rate_limiter_create(&limiter, 200, 0, -1);
    sl_rate_limiter_update(&limiter, 0);
    assert_true(sl_rate_limiter_take(&limiter, 0, INT64_C(1) << 50));
    assert_true(sl_rate_limiter_take(&limiter, 0, 1));
    assert_int_equal(sl_rate_limiter_ready(&limiter, 7), 7);
}

static void
test_a_new_rate_stays_below_the_most(void **state)
{
    (void)state;
    struct sl_rate_limiter limiter;
    sl_rate_limiter_create(&limiter, 1000, 10, 5);
    assert_true(limiter.rate == 5);
    sl_rate_limiter_update(&limiter, 100);
    assert_true(limiter.rate == 10);
    sl_rate_limiter_update(&limiter, -1);
    assert_true(limiter.rate == 10);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_flood_gets_its_rate_and_no_more),
    cmocka_unit_test(test_a_large_list_is_paid_for_later),
    cmocka_unit_test(test_without_a_rate_everything_is_let_in),
    cmocka_unit_test(test_a_new_rate_stays_below_the_most),
};
UNIT_MAIN(tests)
