#include "base/clock.h"
#include "unit.h"

static void
test_system_clock_never_goes_back(void **state)
{
    (void)state;
    const struct sl_clock *clock = sl_clock_system();
    uint64_t before = sl_clock_mono_ns(clock);
    for (int i = 0; i < 1000; i++) {
        uint64_t now = sl_clock_mono_ns(clock);
        assert_true(now >= before);
        before = now;
    }
    /* Later than 2020 and earlier than 2200. */
    assert_in_range(sl_clock_wall_ms(clock), INT64_C(1577836800000), INT64_C(7258118400000));
}

static void
test_manual_clock_moves_only_when_told(void **state)
{
    (void)state;
    struct sl_manual_clock manual;
    sl_manual_clock_create(&manual, 5000);
    const struct sl_clock *clock = &manual.clock;
    assert_int_equal(sl_clock_mono_ns(clock), 0);
    assert_int_equal(sl_clock_wall_ms(clock), 5000);
    sl_manual_clock_advance_ns(&manual, 1999999);
    assert_int_equal(sl_clock_wall_ms(clock), 5001);
    sl_manual_clock_advance_ns(&manual, 1);
    assert_int_equal(sl_clock_wall_ms(clock), 5002);
    sl_manual_clock_advance_ms(&manual, 98);
    assert_int_equal(sl_clock_mono_ms(clock), 100);
    assert_int_equal(sl_clock_wall_ms(clock), 5100);
}

static void
test_manual_clock_set_forward_moves_both_and_backward_only_the_wall(void **state)
{
    (void)state;
    struct sl_manual_clock manual;
    sl_manual_clock_create(&manual, 1000);
    sl_manual_clock_set(&manual, 1500);
    assert_int_equal(sl_clock_mono_ms(&manual.clock), 500);
    sl_manual_clock_set(&manual, 200);
    assert_int_equal(sl_clock_mono_ms(&manual.clock), 500);
    assert_int_equal(sl_clock_wall_ms(&manual.clock), 200);
    sl_manual_clock_step_wall(&manual, 50);
    assert_int_equal(sl_clock_mono_ms(&manual.clock), 500);
    assert_int_equal(sl_clock_wall_ms(&manual.clock), 250);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_system_clock_never_goes_back),
    cmocka_unit_test(test_manual_clock_moves_only_when_told),
    cmocka_unit_test(test_manual_clock_set_forward_moves_both_and_backward_only_the_wall),
};

UNIT_MAIN(tests)
