#include "base/alloc.h"
#include "base/arena.h"
#include "base/random.h"
#include "unit.h"

static void
test_pieces_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    enum { PIECES = 500 };
    struct sl_arena arena;
    sl_arena_create(&arena, 1024, 0);
    uint8_t *pieces[PIECES];
    size_t sizes[PIECES];
    struct sl_random random;
    sl_random_seed(&random, 41);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < PIECES; i++) {
            /* Some are larger than a chunk. */
            sizes[i] = (size_t)sl_random_below(&random, i % 50 == 0 ? 5000 : 200);
            pieces[i] = sl_arena_alloc(&arena, sizes[i]);
            assert_int_equal((uintptr_t)pieces[i] % 16, 0);
            memset(pieces[i], i & 0xff, sizes[i]);
        }
        for (int i = 0; i < PIECES; i++) {
            for (size_t b = 0; b < sizes[i]; b++) {
                assert_int_equal(pieces[i][b], i & 0xff);
            }
        }
        sl_arena_reset(&arena);
        assert_int_equal(arena.used_bytes, 0);
    }
    sl_arena_destroy(&arena);
}

static void
test_limit_is_kept_until_a_reset(void **state)
{
    (void)state;
    struct sl_arena arena;
    sl_arena_create(&arena, 64, 256);
    for (int i = 0; i < 4; i++) {
        assert_non_null(sl_arena_alloc(&arena, 64));
    }
    assert_null(sl_arena_alloc(&arena, 1));
    assert_int_equal(arena.used_bytes, 256);
    sl_arena_reset(&arena);
    assert_null(sl_arena_alloc(&arena, 257));
    assert_null(sl_arena_alloc(&arena, SIZE_MAX));
    assert_null(sl_arena_calloc(&arena, SIZE_MAX / 2, 4));
    assert_non_null(sl_arena_alloc(&arena, 256));
    sl_arena_destroy(&arena);
}

static void
test_a_limited_arena_survives_lack_of_memory(void **state)
{
    (void)state;
    struct sl_arena arena;
    sl_arena_create(&arena, 64, 1 << 20);
    sl_alloc_fail_after(0);
    assert_null(sl_arena_alloc(&arena, 10));
    assert_null(sl_arena_strdup(&arena, "x"));
    sl_alloc_fail_after(-1);
    assert_int_equal(arena.used_bytes, 0);
    assert_non_null(sl_arena_alloc(&arena, 10));
    sl_arena_destroy(&arena);
}

static void
test_copies(void **state)
{
    (void)state;
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    assert_string_equal(sl_arena_strdup(&arena, "abc"), "abc");
    assert_string_equal(sl_arena_strndup(&arena, "abc", 2), "ab");
    assert_string_equal(sl_arena_printf(&arena, "%d-%s", 4, "x"), "4-x");
    assert_memory_equal(sl_arena_memdup(&arena, "a\0b", 3), "a\0b", 3);
    assert_non_null(sl_arena_memdup(&arena, NULL, 0));
    uint32_t *zeroes = sl_arena_calloc(&arena, 100, sizeof(uint32_t));
    for (int i = 0; i < 100; i++) {
        assert_int_equal(zeroes[i], 0);
    }
    sl_arena_destroy(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_pieces_are_aligned_and_do_not_overlap),
    cmocka_unit_test(test_limit_is_kept_until_a_reset),
    cmocka_unit_test(test_a_limited_arena_survives_lack_of_memory),
    cmocka_unit_test(test_copies),
};

UNIT_MAIN(tests)
