/*
 * Table 3.8 of the reference. F8 and F9 (subtask mappers by ranges of key groups) do not apply:
 * streamlua's plan owns key groups by an explicit table (core/topology/key_groups.h), so that a
 * change of parallelism moves the fewest, and there is no in-flight channel state to map.
 */
#include "cluster/restart.h"

#include "base/err.h"
#include "unit.h"

static struct sl_restart_config
exponential(uint64_t initial_ms, uint64_t max_ms, double multiplier, uint64_t reset_ms,
            double jitter)
{
    struct sl_restart_config config = sl_restart_config_default(SL_RESTART_EXPONENTIAL);
    config.initial_ms = initial_ms;
    config.max_ms = max_ms;
    config.multiplier = multiplier;
    config.reset_ms = reset_ms;
    config.jitter = jitter;
    return config;
}

static void
test_F1_the_backoff_grows_and_is_truncated(void **state)
{
    (void)state;
    struct sl_restart restart;
    struct sl_restart_config config = exponential(4, 300, 2.3, 3600000, 0);
    assert_int_equal(sl_restart_create(&restart, &config, 1), 0);
    assert_int_equal(sl_restart_backoff_ms(&restart), 4);
    sl_restart_failed(&restart, 0);
    assert_int_equal(sl_restart_backoff_ms(&restart), 9);
    sl_restart_failed(&restart, 0);
    assert_int_equal(sl_restart_backoff_ms(&restart), 20);
    for (int i = 0; i < 100; i++) {
        sl_restart_failed(&restart, 0);
    }
    assert_int_equal(sl_restart_backoff_ms(&restart), 300);
    assert_true(sl_restart_is_allowed(&restart, 0));
    sl_restart_destroy(&restart);
}

static void
test_F2_a_quiet_time_starts_anew(void **state)
{
    (void)state;
    struct sl_restart restart;
    struct sl_restart_config config = exponential(1, 5, 2, 8, 0);
    assert_int_equal(sl_restart_create(&restart, &config, 1), 0);
    uint64_t now_ms = 8 + restart.current_ms - 1;
    sl_restart_failed(&restart, now_ms);
    assert_int_equal(restart.current_ms, 2);
    now_ms += 8 + restart.current_ms;
    sl_restart_failed(&restart, now_ms);
    assert_int_equal(restart.current_ms, 1);
    sl_restart_destroy(&restart);
}

static void
test_F4_jitter(void **state)
{
    (void)state;
    static const uint64_t MOST[] = {2, 4, 7};
    struct sl_restart restart;
    struct sl_restart_config config = exponential(1, 7, 2, 8, 1);
    assert_int_equal(sl_restart_create(&restart, &config, 1), 0);
    for (size_t failures = 0; failures < array_size(MOST); failures++) {
        uint64_t seen = 0;
        for (int i = 0; i < 1000; i++) {
            uint64_t backoff_ms = sl_restart_backoff_ms(&restart);
            assert_in_range(backoff_ms, 0, MOST[failures]);
            seen |= UINT64_C(1) << backoff_ms;
        }
        assert_int_equal(seen, (UINT64_C(1) << (MOST[failures] + 1)) - 1);
        sl_restart_failed(&restart, 0);
    }
    sl_restart_destroy(&restart);
}

static void
test_F5_and_F6_failure_rate(void **state)
{
    (void)state;
    struct sl_restart restart;
    struct sl_restart_config config = sl_restart_config_default(SL_RESTART_FAILURE_RATE);
    config.max_failures = 3;
    config.interval_ms = 10000;
    assert_int_equal(sl_restart_create(&restart, &config, 1), 0);
    for (uint64_t i = 0; i < 3; i++) {
        sl_restart_failed(&restart, i);
        assert_true(sl_restart_is_allowed(&restart, i));
    }
    sl_restart_failed(&restart, 4);
    assert_false(sl_restart_is_allowed(&restart, 4));
    assert_false(sl_restart_is_allowed(&restart, 10000));
    assert_true(sl_restart_is_allowed(&restart, 10001));
    sl_restart_destroy(&restart);
    config.max_failures = 1;
    config.interval_ms = 1;
    assert_int_equal(sl_restart_create(&restart, &config, 1), 0);
    for (uint64_t now_ms = 0; now_ms < 100; now_ms += 2) {
        sl_restart_failed(&restart, now_ms);
        assert_true(sl_restart_is_allowed(&restart, now_ms));
    }
    sl_restart_destroy(&restart);
}

static void
test_fixed_delay_and_none(void **state)
{
    (void)state;
    struct sl_restart restart;
    struct sl_restart_config config = sl_restart_config_default(SL_RESTART_FIXED_DELAY);
    config.attempts = 2;
    config.delay_ms = 70;
    assert_int_equal(sl_restart_create(&restart, &config, 1), 0);
    sl_restart_failed(&restart, 0);
    sl_restart_failed(&restart, 0);
    assert_true(sl_restart_is_allowed(&restart, 0));
    assert_int_equal(sl_restart_backoff_ms(&restart), 70);
    sl_restart_failed(&restart, 0);
    assert_false(sl_restart_is_allowed(&restart, 1000000));
    sl_restart_destroy(&restart);
    config = sl_restart_config_default(SL_RESTART_NONE);
    assert_int_equal(sl_restart_create(&restart, &config, 1), 0);
    sl_restart_failed(&restart, 0);
    assert_false(sl_restart_is_allowed(&restart, 0));
    sl_restart_destroy(&restart);
}

static void
test_F11_bad_configs(void **state)
{
    (void)state;
    const struct {
        struct sl_restart_config config;
        const char *setting;
    } ROWS[] = {
        {exponential(0, 5, 2, 8, 0), "restart_initial"},
        {exponential(6, 5, 2, 8, 0), "restart_initial"},
        {exponential(1, 5, 1, 8, 0), "restart_multiplier"},
        {exponential(1, 5, 0.5, 8, 0), "restart_multiplier"},
        {exponential(1, 5, 0.0 / 0.0, 8, 0), "restart_multiplier"},
        {exponential(1, 5, 2, 0, 0), "restart_reset"},
        {exponential(1, 5, 2, 8, 1.5), "restart_jitter"},
        {exponential(1, 5, 2, 8, -0.1), "restart_jitter"},
    };
    for (size_t i = 0; i < array_size(ROWS); i++) {
        struct sl_restart restart;
        assert_int_equal(sl_restart_create(&restart, &ROWS[i].config, 1), SL_EINVAL);
        assert_non_null(strstr(sl_err_last()->msg, ROWS[i].setting));
    }
    struct sl_restart_config rate = sl_restart_config_default(SL_RESTART_FAILURE_RATE);
    rate.max_failures = 0;
    assert_int_equal(sl_restart_config_check(&rate), SL_EINVAL);
}

static void
test_defaults(void **state)
{
    (void)state;
    struct sl_restart_config config = sl_restart_config_default(SL_RESTART_EXPONENTIAL);
    assert_int_equal(config.initial_ms, 1000);
    assert_int_equal(config.max_ms, 300000);
    assert_int_equal(config.reset_ms, 3600000);
    assert_true(config.multiplier == 2.0 && config.jitter == 0.1);
    assert_int_equal(sl_restart_config_check(&config), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_F1_the_backoff_grows_and_is_truncated),
    cmocka_unit_test(test_F2_a_quiet_time_starts_anew),
    cmocka_unit_test(test_F4_jitter),
    cmocka_unit_test(test_F5_and_F6_failure_rate),
    cmocka_unit_test(test_fixed_delay_and_none),
    cmocka_unit_test(test_F11_bad_configs),
    cmocka_unit_test(test_defaults),
};

UNIT_MAIN(tests)
