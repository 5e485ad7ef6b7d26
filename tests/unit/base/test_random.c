#include "base/random.h"
#include "unit.h"

static void
test_u64_is_the_published_splitmix64_sequence(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 0);
    assert_true(sl_random_u64(&random) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(sl_random_u64(&random) == UINT64_C(0x6e789e6aa1b965f4));
    assert_true(sl_random_u64(&random) == UINT64_C(0x06c45d188009454f));
}

static void
test_below_stays_below_and_is_even(void **state)
{
    (void)state;
    static const uint64_t bounds[] = {1, 2, 3, 7, 10, 64};
    enum { ROUNDS = 60000 };
    for (size_t b = 0; b < array_size(bounds); b++) {
        uint32_t seen[64] = {0};
        struct sl_random random;
        sl_random_seed(&random, 42 + b);
        for (int i = 0; i < ROUNDS; i++) {
            uint64_t value = sl_random_below(&random, bounds[b]);
            assert_true(value < bounds[b]);
            seen[value]++;
        }
        for (uint64_t v = 0; v < bounds[b]; v++) {
            double expected = (double)ROUNDS / (double)bounds[b];
            assert_true(seen[v] > expected * 0.8 && seen[v] < expected * 1.2);
        }
    }
}

static void
test_below_of_odd_bounds(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 1);
    assert_int_equal(sl_random_below(&random, 0), 0);
    uint64_t huge = (UINT64_C(1) << 63) + 1;
    bool above_half = false;
    for (int i = 0; i < 1000; i++) {
        uint64_t value = sl_random_below(&random, huge);
        assert_true(value < huge);
        above_half |= value > huge / 2;
    }
    assert_true(above_half);
}

static void
test_double_is_in_the_unit_interval(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 7);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double value = sl_random_double(&random);
        assert_true(value >= 0 && value < 1);
        sum += value;
    }
    assert_true(sum / 100000 > 0.49 && sum / 100000 < 0.51);
}

static void
test_shuffle_reaches_every_order_evenly(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 99);
    uint32_t seen[27] = {0};
    for (int i = 0; i < 60000; i++) {
        uint8_t items[3] = {0, 1, 2};
        sl_random_shuffle(&random, items, 3, 1);
        assert_int_equal(items[0] + items[1] + items[2], 3);
        seen[items[0] * 9 + items[1] * 3 + items[2]]++;
    }
    int orders = 0;
    for (size_t i = 0; i < 27; i++) {
        if (seen[i] > 0) {
            orders++;
            assert_in_range(seen[i], 9500, 10500);
        }
    }
    assert_int_equal(orders, 6);
}

static void
test_shuffle_moves_large_items_whole(void **state)
{
    (void)state;
    struct {
        char pad[100];
        int id;
    } items[20];
    for (int i = 0; i < 20; i++) {
        memset(items[i].pad, 'a' + i, sizeof(items[i].pad));
        items[i].id = i;
    }
    struct sl_random random;
    sl_random_seed(&random, 3);
    sl_random_shuffle(&random, items, 20, sizeof(items[0]));
    int in_place = 0;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(items[i].pad[0], 'a' + items[i].id);
        assert_int_equal(items[i].pad[99], 'a' + items[i].id);
        in_place += items[i].id == i;
    }
    assert_true(in_place < 10);
    sl_random_shuffle(&random, NULL, 0, 8);
}

static void
test_entropy_differs(void **state)
{
    (void)state;
    assert_true(sl_random_entropy() != sl_random_entropy());
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_u64_is_the_published_splitmix64_sequence),
    cmocka_unit_test(test_below_stays_below_and_is_even),
    cmocka_unit_test(test_below_of_odd_bounds),
    cmocka_unit_test(test_double_is_in_the_unit_interval),
    cmocka_unit_test(test_shuffle_reaches_every_order_evenly),
    cmocka_unit_test(test_shuffle_moves_large_items_whole),
    cmocka_unit_test(test_entropy_differs),
};

UNIT_MAIN(tests)
