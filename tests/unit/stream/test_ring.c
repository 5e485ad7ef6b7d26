#include <pthread.h>

#include "base/random.h"
#include "stream/ring.h"
#include "unit.h"

static void
test_push_and_pop_agree_with_a_list(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 7);
    struct sl_ring *ring = sl_ring_new(13, sizeof(uint64_t));
    assert_int_equal(ring->mask, 15);
    uint64_t next_in = 0;
    uint64_t next_out = 0;
    for (int step = 0; step < 20000; step++) {
        uint64_t held = next_in - next_out;
        switch (sl_random_below(&random, 3)) {
        case 0:
            assert_int_equal(sl_ring_push(ring, &next_in), held < 16);
            next_in += held < 16;
            break;
        case 1: {
            uint64_t items[24];
            uint32_t count = (uint32_t)sl_random_below(&random, 25);
            for (uint32_t i = 0; i < count; i++) {
                items[i] = next_in + i;
            }
            uint64_t room = 16 - held;
            assert_int_equal(sl_ring_push_many(ring, items, count), count < room ? count : room);
            next_in += count < room ? count : room;
            break;
        }
        default: {
            uint64_t item = UINT64_MAX;
            assert_int_equal(sl_ring_is_empty(ring), held == 0);
            assert_int_equal(sl_ring_pop(ring, &item), held > 0);
            if (held > 0) {
                assert_int_equal(item, next_out++);
            }
        }
        }
    }
    assert_true(next_out > 5000);
    sl_ring_free(ring);
}

static void
test_indexes_may_wrap_around(void **state)
{
    (void)state;
    struct sl_ring *ring = sl_ring_new(4, sizeof(uint32_t));
    ring->head = ring->tail = ring->head_seen = ring->tail_seen = UINT32_MAX - 1;
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(sl_ring_push(ring, &i));
    }
    uint32_t item = 9;
    assert_false(sl_ring_push(ring, &item));
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(sl_ring_pop(ring, &item));
        assert_int_equal(item, i);
    }
    assert_false(sl_ring_pop(ring, &item));
    sl_ring_free(ring);
}

static void
test_new_without_memory_gives_null(void **state)
{
    (void)state;
    sl_alloc_fail_after(0);
    assert_null(sl_ring_new(8, 8));
    sl_alloc_fail_after(-1);
    sl_ring_free(NULL);
}

enum {
    HANDED_OVER = 200000,
};

static void *
produce(void *argument)
{
    struct sl_ring *ring = argument;
    uint64_t block[32];
    uint64_t next = 0;
    while (next < HANDED_OVER) {
        if (next % 3 == 0) {
            uint32_t count = HANDED_OVER - next < 32 ? (uint32_t)(HANDED_OVER - next) : 32;
            for (uint32_t i = 0; i < count; i++) {
                block[i] = next + i;
            }
            uint32_t pushed = sl_ring_push_many(ring, block, count);
            next += pushed;
            if (pushed == 0) {
                sched_yield();
            }
        } else if (sl_ring_push(ring, &next)) {
            next++;
        } else {
            sched_yield();
        }
    }
    return NULL;
}

static void
test_two_threads_hand_over_every_item_once_in_order(void **state)
{
    (void)state;
    struct sl_ring *ring = sl_ring_new(64, sizeof(uint64_t));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, produce, ring), 0);
    for (uint64_t expected = 0; expected < HANDED_OVER;) {
        uint64_t item;
        if (sl_ring_pop(ring, &item)) {
            assert_int_equal(item, expected);
            expected++;
        } else {
            sched_yield();
        }
    }
    pthread_join(thread, NULL);
    assert_true(sl_ring_is_empty(ring));
    sl_ring_free(ring);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_push_and_pop_agree_with_a_list),
    cmocka_unit_test(test_indexes_may_wrap_around),
    cmocka_unit_test(test_new_without_memory_gives_null),
    cmocka_unit_test(test_two_threads_hand_over_every_item_once_in_order),
};

UNIT_MAIN(tests)
