// labels: short
#include "base/err.h"
#include "base/random.h"
#include "batch/clock.h"
#include "batch/grid.h"
#include "batch/streaming_types.h"
#include "batch/timer.h"
#include "unit.h"

struct fixture {
    struct sl_streaming_clock clock;
    struct sl_recurring_timer timer;
    char fired[512];
};

static void
create(struct fixture *self, int64_t now, int64_t period)
{
    sl_streaming_clock_create(&self->clock, now);
    sl_recurring_timer_create(&self->timer, &self->clock.clock, true, period, 0, 10);
    self->fired[0] = '\0';
}

static void
fire(struct fixture *self)
{
    int64_t time = 0;
    while (sl_recurring_timer_fire(&self->timer, &time)) {
        size_t len = strlen(self->fired);
        snprintf(self->fired + len, sizeof(self->fired) - len, "%lld ", (long long)time);
    }
}

static void
set(struct fixture *self, int64_t now)
{
    sl_streaming_clock_set(&self->clock, now);
    fire(self);
}

static void
test_T1_start_time_is_the_next_multiple(void **state)
{
    (void)state;
    static const int64_t rows[][2] = {
        {0, 1000}, {1, 1000}, {999, 1000}, {1000, 2000}, {1001, 2000}};
    for (size_t i = 0; i < array_size(rows); i++) {
        struct fixture f;
        create(&f, rows[i][0], 1000);
        assert_int_equal(sl_recurring_timer_start_time(&f.timer), rows[i][1]);
    }
}

static void
test_restart_time_keeps_the_grid(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 11);
    for (int i = 0; i < 2000; i++) {
        int64_t period = 1 + (int64_t)sl_random_below(&random, 500);
        int64_t original = (int64_t)sl_random_below(&random, 5000);
        int64_t now = (int64_t)sl_random_below(&random, 10000);
        struct fixture f;
        create(&f, now, period);
        int64_t tick = sl_recurring_timer_restart_time(&f.timer, original);
        assert_true(tick > now && tick - period <= now);
        assert_int_equal((tick - original) % period, 0);
    }
}

static void
test_T3_an_interrupt_stops_at_once(void **state)
{
    (void)state;
    struct fixture f;
    create(&f, 0, 100);
    assert_int_equal(sl_recurring_timer_start(&f.timer, 0), 0);
    fire(&f);
    assert_string_equal(f.fired, "0 ");
    set(&f, 100);
    assert_string_equal(f.fired, "0 100 ");
    set(&f, 300);
    assert_string_equal(f.fired, "0 100 200 300 ");
    sl_recurring_timer_stop(&f.timer, true);
    assert_true(sl_recurring_timer_is_stopped(&f.timer));
    assert_int_equal(f.timer.last, 300);
    set(&f, 900);
    assert_string_equal(f.fired, "0 100 200 300 ");
    assert_int_equal(sl_recurring_timer_due(&f.timer), SL_STREAMING_UNKNOWN);
    assert_int_equal(sl_recurring_timer_start(&f.timer, 0), SL_ECONFLICT);
}

static void
test_T4_a_stop_without_interrupt_lets_the_next_ticks_fire(void **state)
{
    (void)state;
    struct fixture f;
    create(&f, 0, 100);
    assert_int_equal(sl_recurring_timer_start(&f.timer, 0), 0);
    fire(&f);
    sl_recurring_timer_stop(&f.timer, false);
    fire(&f);
    assert_false(sl_recurring_timer_is_stopped(&f.timer));
    set(&f, 200);
    assert_string_equal(f.fired, "0 100 200 ");
    assert_true(sl_recurring_timer_is_stopped(&f.timer));
    assert_int_equal(f.timer.last, 200);
    set(&f, 900);
    assert_string_equal(f.fired, "0 100 200 ");
}

static void
test_missed_ticks_fire_in_order_with_their_nominal_times(void **state)
{
    (void)state;
    struct fixture f;
    create(&f, 0, 100);
    assert_int_equal(sl_recurring_timer_start(&f.timer, 100), 0);
    set(&f, 450);
    assert_string_equal(f.fired, "100 200 300 400 ");
    set(&f, 120);
    set(&f, 499);
    assert_string_equal(f.fired, "100 200 300 400 ");
    set(&f, 500);
    assert_string_equal(f.fired, "100 200 300 400 500 ");
}

static void
test_T5_T9_floor_and_multiples(void **state)
{
    (void)state;
    assert_int_equal(sl_grid_floor(1350, 200, 0), 1200);
    assert_int_equal(sl_grid_floor(1200, 200, 0), 1200);
    assert_int_equal(sl_grid_floor(199, 200, 0), 0);
    assert_int_equal(sl_grid_floor(1, 1, 0), 1);
    assert_int_equal(sl_grid_floor(1350, 200, 50), 1250);
    assert_true(sl_grid_is_multiple(1000, 5));
    assert_true(sl_grid_is_multiple(1000, 1000));
    assert_true(sl_grid_is_multiple(1000, 1));
    assert_false(sl_grid_is_multiple(1000, 6));
}

/* The system's clock with a wall clock that can be stepped alone. */
static void
create_real(struct fixture *self, struct sl_manual_clock *clock, int64_t now, int64_t period)
{
    sl_manual_clock_create(clock, now);
    sl_recurring_timer_create(&self->timer, &clock->clock, false, period, 0, 3);
    self->fired[0] = '\0';
    assert_int_equal(
        sl_recurring_timer_start(&self->timer, sl_recurring_timer_start_time(&self->timer)), 0);
}

static void
test_B16_ticks_go_on_when_the_wall_clock_steps_back(void **state)
{
    (void)state;
    struct fixture f;
    struct sl_manual_clock clock;
    create_real(&f, &clock, 100000, 1000);
    sl_manual_clock_advance_ms(&clock, 1000);
    fire(&f);
    sl_manual_clock_step_wall(&clock, -60000);
    for (int i = 0; i < 3; i++) {
        sl_manual_clock_advance_ms(&clock, 1000);
        fire(&f);
    }
    assert_string_equal(f.fired, "101000 102000 103000 104000 ");
    assert_int_equal(f.timer.skipped, 0);
}

static void
test_B16_a_step_forward_makes_up_a_bounded_number(void **state)
{
    (void)state;
    struct fixture f;
    struct sl_manual_clock clock;
    create_real(&f, &clock, 100000, 1000);
    sl_manual_clock_advance_ms(&clock, 1000);
    fire(&f);
    sl_manual_clock_step_wall(&clock, 60000);
    fire(&f);
    assert_string_equal(f.fired, "101000 159000 160000 161000 ");
    assert_int_equal(f.timer.skipped, 57);
    sl_manual_clock_advance_ms(&clock, 1000);
    fire(&f);
    assert_string_equal(f.fired, "101000 159000 160000 161000 162000 ");
}

static void
test_a_slow_owner_loses_no_tick_on_a_real_clock(void **state)
{
    (void)state;
    struct fixture f;
    struct sl_manual_clock clock;
    create_real(&f, &clock, 0, 10);
    sl_manual_clock_advance_ms(&clock, 100);
    fire(&f);
    assert_string_equal(f.fired, "10 20 30 40 50 60 70 80 90 100 ");
    assert_int_equal(f.timer.skipped, 0);
}

static void
test_the_end_of_time_is_no_trap(void **state)
{
    (void)state;
    struct fixture f;
    create(&f, INT64_MAX, 1000);
    assert_int_equal(sl_recurring_timer_start_time(&f.timer), INT64_MAX);
    assert_int_equal(sl_recurring_timer_start(&f.timer, INT64_MAX - 5), 0);
    int64_t time = 0;
    assert_true(sl_recurring_timer_fire(&f.timer, &time));
    assert_true(sl_recurring_timer_is_stopped(&f.timer));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_T1_start_time_is_the_next_multiple),
        cmocka_unit_test(test_restart_time_keeps_the_grid),
        cmocka_unit_test(test_T3_an_interrupt_stops_at_once),
        cmocka_unit_test(test_T4_a_stop_without_interrupt_lets_the_next_ticks_fire),
        cmocka_unit_test(test_missed_ticks_fire_in_order_with_their_nominal_times),
        cmocka_unit_test(test_T5_T9_floor_and_multiples),
        cmocka_unit_test(test_B16_ticks_go_on_when_the_wall_clock_steps_back),
        cmocka_unit_test(test_B16_a_step_forward_makes_up_a_bounded_number),
        cmocka_unit_test(test_a_slow_owner_loses_no_tick_on_a_real_clock),
        cmocka_unit_test(test_the_end_of_time_is_no_trap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
