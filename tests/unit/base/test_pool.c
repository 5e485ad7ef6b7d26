#include "base/alloc.h"
#include "base/err.h"
#include "base/pool.h"
#include "base/random.h"
#include "unit.h"

static void
test_gives_each_block_once_and_then_none(void **state)
{
    (void)state;
    enum { BLOCKS = 50, BYTES = 24 };
    struct sl_pool pool;
    assert_int_equal(sl_pool_create(&pool, BYTES, BLOCKS), 0);
    uint8_t *held[BLOCKS] = {NULL};
    size_t count = 0;
    struct sl_random random;
    sl_random_seed(&random, 51);
    for (int step = 0; step < 20000; step++) {
        size_t at = (size_t)sl_random_below(&random, BLOCKS);
        if (held[at] == NULL) {
            held[at] = sl_pool_take(&pool);
            assert_non_null(held[at]);
            assert_true(sl_pool_owns(&pool, held[at]));
            assert_int_equal((uintptr_t)held[at] % 16, 0);
            memset(held[at], (int)at, BYTES);
            count++;
        } else {
            for (int b = 0; b < BYTES; b++) {
                assert_int_equal(held[at][b], at);
            }
            sl_pool_give(&pool, held[at]);
            held[at] = NULL;
            count--;
        }
        assert_int_equal(pool.used, count);
    }
    for (size_t at = 0; at < BLOCKS; at++) {
        held[at] = held[at] == NULL ? sl_pool_take(&pool) : held[at];
        assert_non_null(held[at]);
    }
    assert_null(sl_pool_take(&pool));
    sl_pool_give(&pool, NULL);
    assert_null(sl_pool_take(&pool));
    assert_false(sl_pool_owns(&pool, held[0] + 1));
    assert_false(sl_pool_owns(&pool, &pool));
    sl_pool_destroy(&pool);
    assert_null(sl_pool_take(&pool));
}

static void
test_create_refuses_nonsense_and_lack_of_memory(void **state)
{
    (void)state;
    struct sl_pool pool;
    assert_int_equal(sl_pool_create(&pool, 0, 1), SL_EINVAL);
    assert_int_equal(sl_pool_create(&pool, 1, 0), SL_EINVAL);
    assert_int_equal(sl_pool_create(&pool, SIZE_MAX, 1), SL_ENOMEM);
    assert_int_equal(sl_pool_create(&pool, SIZE_MAX / 4, 16), SL_ENOMEM);
    sl_alloc_fail_after(0);
    assert_int_equal(sl_pool_create(&pool, 64, 64), SL_ENOMEM);
    sl_alloc_fail_after(-1);
    sl_pool_destroy(&pool);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_gives_each_block_once_and_then_none),
    cmocka_unit_test(test_create_refuses_nonsense_and_lack_of_memory),
};

UNIT_MAIN(tests)
