#include <math.h>

#include "base/hash.h"
#include "unit.h"

/* Pinned: a plan in a running cluster depends on these bits. Never change an expected value. */
static void
test_key_hash_golden_values(void **state)
{
    (void)state;
    char bytes[1000];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(i * 7);
    }
    const struct {
        uint64_t hash;
        uint64_t expected;
    } rows[] = {
        {sl_key_hash_number(0), UINT64_C(0xe220a8397b1dcdaf)},
        {sl_key_hash_number(1), UINT64_C(0xe4d971771b652c20)},
        {sl_key_hash_number(-1), UINT64_C(0xde0a564cbcd060c4)},
        {sl_key_hash_number(1e15), UINT64_C(0xcda6630d43ce828d)},
        {sl_key_hash_number(0.5), UINT64_C(0x617335fdb0999cc1)},
        {sl_key_hash_number(0x1p60), UINT64_C(0xfc0910e6cefdb158)},
        {sl_key_hash_number(0x1p63), UINT64_C(0x1dd93e32ba26a68c)},
        {sl_key_hash_number(INFINITY), UINT64_C(0x85dda4a146f46be5)},
        {sl_key_hash_number(NAN), UINT64_C(0x9d5c70764523a9dc)},
        {sl_key_hash_u64(UINT64_MAX), UINT64_C(0xa1fbb8178333f304)},
        {sl_key_hash_i64(INT64_MIN), UINT64_C(0x481ec0a212a9f3db)},
        {sl_key_hash_bytes("", 0), UINT64_C(0xf1967cb8b72cfad2)},
        {sl_key_hash_bytes("a", 1), UINT64_C(0xe410584399e0b10d)},
        {sl_key_hash_bytes("word", 4), UINT64_C(0xf516bbe33e656265)},
        {sl_key_hash_bytes(bytes, 200), UINT64_C(0x64f03aa5e656a809)},
        {sl_key_hash_bytes(bytes, 1000), UINT64_C(0xdbcd3e2bcb2b3a51)},
        {sl_key_hash_nil(), UINT64_C(0xb55a8fa067537a73)},
        {sl_key_hash_bool(false), UINT64_C(0x7de53de772ea694c)},
        {sl_key_hash_bool(true), UINT64_C(0x9a63c6065bd325c1)},
        {sl_key_hash_null(), UINT64_C(0x3adc22f1b1c30c39)},
        {sl_key_hash_combine(sl_key_hash_bytes("a", 1), sl_key_hash_number(1)),
         UINT64_C(0x1cf5127a02d2e742)},
    };
    for (size_t i = 0; i < array_size(rows); i++) {
        if (rows[i].hash != rows[i].expected) {
            fail_msg("row %zu: 0x%llx", i, (unsigned long long)rows[i].hash);
        }
    }
}

static void
test_key_hash_of_equal_numbers_is_equal(void **state)
{
    (void)state;
    static const int64_t integers[] = {
        0, 1, -1, 127, 1 << 20, INT64_C(1) << 53, INT64_C(1) << 60, -(INT64_C(1) << 60), INT64_MIN};
    for (size_t i = 0; i < array_size(integers); i++) {
        uint64_t expected = sl_key_hash_i64(integers[i]);
        assert_true(sl_key_hash_number((double)integers[i]) == expected);
        if (integers[i] >= 0) {
            assert_true(sl_key_hash_u64((uint64_t)integers[i]) == expected);
        }
    }
    assert_true(sl_key_hash_number(-0.0) == sl_key_hash_number(0.0));
    assert_true(sl_key_hash_number(0x1p63) == sl_key_hash_u64(UINT64_C(1) << 63));
    assert_true(sl_key_hash_number(0x1.8p63) == sl_key_hash_u64(UINT64_C(3) << 62));
    uint64_t odd_nan_bits = UINT64_C(0xfff0000000000123);
    double odd_nan;
    memcpy(&odd_nan, &odd_nan_bits, sizeof(odd_nan));
    assert_true(sl_key_hash_number(odd_nan) == sl_key_hash_number(NAN));
    assert_true(sl_key_hash_number(-NAN) == sl_key_hash_number(NAN));
}

static int
compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void
test_key_hash_of_different_keys_differs(void **state)
{
    (void)state;
    enum { NUMBERS = 1000 };
    uint64_t hashes[5 * NUMBERS + 20];
    size_t count = 0;
    for (int i = 0; i < NUMBERS; i++) {
        char text[16];
        int length = snprintf(text, sizeof(text), "%d", i);
        hashes[count++] = sl_key_hash_number(i);
        hashes[count++] = sl_key_hash_number(-1 - i);
        hashes[count++] = sl_key_hash_number(i + 0.25);
        hashes[count++] = sl_key_hash_bytes(text, (size_t)length);
        hashes[count++] = sl_key_hash_u64(UINT64_MAX - (uint64_t)i);
    }
    /* 2^53 + 1 is no double: it must not meet its neighbour. */
    hashes[count++] = sl_key_hash_i64((INT64_C(1) << 53) + 1);
    hashes[count++] = sl_key_hash_i64(INT64_C(1) << 53);
    hashes[count++] = sl_key_hash_number(INFINITY);
    hashes[count++] = sl_key_hash_number(-INFINITY);
    hashes[count++] = sl_key_hash_number(NAN);
    hashes[count++] = sl_key_hash_number(0x1p64);
    hashes[count++] = sl_key_hash_number(-0x1p64);
    hashes[count++] = sl_key_hash_nil();
    hashes[count++] = sl_key_hash_bool(true);
    hashes[count++] = sl_key_hash_bool(false);
    hashes[count++] = sl_key_hash_null();
    hashes[count++] = sl_key_hash_combine(sl_key_hash_number(1), sl_key_hash_number(2));
    hashes[count++] = sl_key_hash_combine(sl_key_hash_number(2), sl_key_hash_number(1));
    qsort(hashes, count, sizeof(hashes[0]), compare_u64);
    for (size_t i = 1; i < count; i++) {
        assert_true(hashes[i - 1] != hashes[i]);
    }
}

static void
test_double_is_i64_at_the_edges(void **state)
{
    (void)state;
    int64_t value = 7;
    assert_true(sl_double_is_i64(-0x1p63, &value));
    assert_true(value == INT64_MIN);
    assert_true(sl_double_is_i64(0x1.fffffffffffffp62, &value));
    assert_false(sl_double_is_i64(0x1p63, &value));
    assert_false(sl_double_is_i64(-0x1.0000000000001p63, &value));
    assert_false(sl_double_is_i64(0.5, &value));
    assert_false(sl_double_is_i64(NAN, &value));
    assert_false(sl_double_is_i64(INFINITY, &value));
}

/* Consecutive numbers and similar words must fill the groups evenly: within 5 sigma of the mean. */
static void
test_key_group_is_hash_mod_count_and_even(void **state)
{
    (void)state;
    static const uint32_t group_counts[] = {1, 2, 3, 100, 128, 1000};
    enum { KEYS = 50000 };
    for (size_t c = 0; c < array_size(group_counts); c++) {
        uint32_t count = group_counts[c];
        uint32_t numbers[1000] = {0};
        uint32_t words[1000] = {0};
        for (int i = 0; i < KEYS; i++) {
            uint64_t hash = sl_key_hash_number(i);
            assert_true(sl_key_group(hash, count) == hash % count);
            numbers[sl_key_group(hash, count)]++;
            char word[16];
            int length = snprintf(word, sizeof(word), "w%d", i);
            words[sl_key_group(sl_key_hash_bytes(word, (size_t)length), count)]++;
        }
        double mean = (double)KEYS / count;
        double slack = 5 * sqrt(mean) + 1;
        for (uint32_t g = 0; g < count; g++) {
            assert_true(fabs(numbers[g] - mean) < slack);
            assert_true(fabs(words[g] - mean) < slack);
        }
    }
    assert_int_equal(sl_key_group(UINT64_MAX, 0), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_key_hash_golden_values),
    cmocka_unit_test(test_key_hash_of_equal_numbers_is_equal),
    cmocka_unit_test(test_key_hash_of_different_keys_differs),
    cmocka_unit_test(test_double_is_i64_at_the_edges),
    cmocka_unit_test(test_key_group_is_hash_mod_count_and_even),
};

UNIT_MAIN(tests)
