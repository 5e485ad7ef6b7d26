#include "base/alloc.h"
#include "unit.h"

static void
test_calloc_zeroes_and_realloc_keeps(void **state)
{
    (void)state;
    uint8_t *block = sl_calloc(10, 3);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(block[i], 0);
        block[i] = (uint8_t)i;
    }
    block = sl_realloc(block, 3000);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(block[i], i);
    }
    sl_free(block);
    sl_free(NULL);
}

static void
test_size_zero_is_a_pointer(void **state)
{
    (void)state;
    void *a = sl_alloc(0);
    void *b = sl_try_alloc(0);
    assert_non_null(a);
    assert_non_null(b);
    assert_ptr_not_equal(a, b);
    sl_free(a);
    sl_free(b);
}

static void
test_texts_are_copied(void **state)
{
    (void)state;
    char *whole = sl_strdup("topology");
    char *part = sl_strndup("topology", 3);
    char *made = sl_asprintf("%s-%d", part, 7);
    assert_string_equal(whole, "topology");
    assert_string_equal(part, "top");
    assert_string_equal(made, "top-7");
    sl_free(whole);
    sl_free(part);
    sl_free(made);
}

static void
test_try_fails_on_demand_and_keeps_the_old_block(void **state)
{
    (void)state;
    char *block = sl_strdup("kept");
    sl_alloc_fail_after(1);
    void *first = sl_try_alloc(8);
    assert_non_null(first);
    assert_null(sl_try_alloc(8));
    assert_null(sl_try_calloc(1, 8));
    assert_null(sl_try_realloc(block, 100));
    sl_alloc_fail_after(-1);
    assert_string_equal(block, "kept");
    sl_free(block);
    sl_free(first);
    first = sl_try_alloc(8);
    assert_non_null(first);
    sl_free(first);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_calloc_zeroes_and_realloc_keeps),
    cmocka_unit_test(test_size_zero_is_a_pointer),
    cmocka_unit_test(test_texts_are_copied),
    cmocka_unit_test(test_try_fails_on_demand_and_keeps_the_old_block),
};

UNIT_MAIN(tests)
