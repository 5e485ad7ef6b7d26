#include <math.h>

#include "base/histogram.h"
#include "base/random.h"
#include "unit.h"

static void
test_buckets_tile_the_range_within_a_64th(void **state)
{
    (void)state;
    int64_t expected_low = 0;
    for (uint32_t b = 0; b < SL_HISTOGRAM_BUCKETS; b++) {
        int64_t low = sl_histogram_bucket_low(b);
        int64_t high = sl_histogram_bucket_high(b);
        assert_true(low == expected_low);
        assert_int_equal(sl_histogram_bucket(low), b);
        assert_int_equal(sl_histogram_bucket(high), b);
        assert_true(high - low <= low / 64);
        if (b < SL_HISTOGRAM_BUCKETS - 1) {
            expected_low = high + 1;
        } else {
            assert_true(high == INT64_MAX);
        }
    }
    assert_int_equal(sl_histogram_bucket(-5), 0);
    assert_int_equal(sl_histogram_bucket(INT64_MIN), 0);
}

static int
compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void
test_quantiles_against_sorted_values(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static const double quantiles[] = {0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1};
    int64_t *values = malloc(COUNT * sizeof(int64_t));
    struct sl_histogram *histogram = sl_histogram_new();
    struct sl_random random;
    sl_random_seed(&random, 31);
    double sum = 0;
    for (int i = 0; i < COUNT; i++) {
        values[i] = (int64_t)(sl_random_u64(&random) >> (1 + sl_random_below(&random, 62)));
        sum += (double)values[i];
        sl_histogram_record(histogram, values[i]);
    }
    qsort(values, COUNT, sizeof(values[0]), compare_i64);
    for (size_t q = 0; q < array_size(quantiles); q++) {
        int rank = (int)ceil(quantiles[q] * COUNT);
        int64_t exact = values[rank < 1 ? 0 : rank - 1];
        int64_t got = sl_histogram_quantile(histogram, quantiles[q]);
        assert_true(llabs(got - exact) <= exact / 64);
    }
    assert_true(sl_histogram_quantile(histogram, 0) == values[0]);
    assert_true(sl_histogram_quantile(histogram, 1) == values[COUNT - 1]);
    assert_true(fabs(sl_histogram_mean(histogram) - sum / COUNT) <= sum / COUNT * 1e-12);
    sl_histogram_free(histogram);
    free(values);
}

static void
test_small_values_are_exact(void **state)
{
    (void)state;
    struct sl_histogram h;
    sl_histogram_create(&h);
    for (int64_t v = 1; v <= 100; v++) {
        sl_histogram_record(&h, v);
    }
    assert_int_equal(sl_histogram_quantile(&h, 0.5), 50);
    assert_int_equal(sl_histogram_quantile(&h, 0.99), 99);
    assert_int_equal(sl_histogram_quantile(&h, 0.991), 100);
    assert_int_equal(sl_histogram_quantile(&h, NAN), 1);
    assert_true(sl_histogram_mean(&h) == 50.5);
}

static void
test_empty_and_negative(void **state)
{
    (void)state;
    struct sl_histogram h;
    sl_histogram_create(&h);
    assert_int_equal(sl_histogram_quantile(&h, 0.5), 0);
    assert_true(sl_histogram_mean(&h) == 0);
    assert_int_equal(sl_histogram_min(&h), 0);
    assert_int_equal(sl_histogram_max(&h), 0);
    sl_histogram_record(&h, -10);
    sl_histogram_record(&h, -20);
    assert_int_equal(sl_histogram_min(&h), -20);
    assert_int_equal(sl_histogram_max(&h), -10);
    assert_true(sl_histogram_mean(&h) == -15);
    assert_int_equal(sl_histogram_quantile(&h, 0.5), -10);
}

static void
test_merge_is_recording_both(void **state)
{
    (void)state;
    struct sl_histogram a;
    struct sl_histogram b;
    struct sl_histogram both;
    sl_histogram_create(&a);
    sl_histogram_create(&b);
    sl_histogram_create(&both);
    sl_histogram_merge(&a, &b);
    assert_int_equal(a.count, 0);
    for (int64_t v = 0; v < 1000; v++) {
        sl_histogram_record(v % 2 ? &a : &b, v * v - 3);
        sl_histogram_record(&both, v * v - 3);
    }
    sl_histogram_record_n(&a, 12345, 10);
    sl_histogram_record_n(&a, 1, 0);
    for (int i = 0; i < 10; i++) {
        sl_histogram_record(&both, 12345);
    }
    sl_histogram_merge(&a, &b);
    assert_memory_equal(a.buckets, both.buckets, sizeof(a.buckets));
    assert_true(a.count == both.count && a.min == both.min && a.max == both.max);
    assert_true(a.sum == both.sum);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_buckets_tile_the_range_within_a_64th),
    cmocka_unit_test(test_quantiles_against_sorted_values),
    cmocka_unit_test(test_small_values_are_exact),
    cmocka_unit_test(test_empty_and_negative),
    cmocka_unit_test(test_merge_is_recording_both),
};

UNIT_MAIN(tests)
