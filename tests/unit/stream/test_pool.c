#include "rig.h"

static struct rig *
rig_two(int32_t blocks)
{
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    options.pool_bytes = (double)blocks * options.batch_bytes;
    return rig_new(&options);
}

static void
test_take_gives_blocks_up_to_the_limit_and_more_when_allowed(void **state)
{
    (void)state;
    struct rig *rig = rig_two(20);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    struct sl__batch *held[24];
    for (int i = 0; i < 20; i++) {
        assert_true(sl__pool_has_room(&executor->pool, 1));
        held[i] = sl__batch_take(executor, 1024, false);
        assert_non_null(held[i]);
        assert_int_equal(held[i]->limit - held[i]->data, 1024);
        memset(held[i]->data, i, 1024);
    }
    assert_false(sl__pool_has_room(&executor->pool, 1));
    assert_null(sl__batch_take(executor, 1, false));
    assert_false(executor->pool.has_failed);
    held[20] = sl__batch_take(executor, 1, true);
    assert_non_null(held[20]);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(held[i]->data[1023], i);
    }
    /* The last one given is the first taken, and the pool makes no more. */
    for (int i = 0; i <= 20; i++) {
        sl__batch_give(executor, held[i]);
    }
    assert_ptr_equal(sl__batch_take(executor, 0, false), held[20]);
    assert_int_equal(executor->pool.made, 21);
    sl__batch_give(executor, held[20]);
    rig_free(rig);
}

static void
test_records_larger_than_a_block_get_a_buffer_of_their_own(void **state)
{
    (void)state;
    struct rig *rig = rig_two(16);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    struct sl_executor *other = sl_worker_executor(rig->worker, 1);
    struct sl__batch *large = sl__batch_take(executor, 10000, false);
    assert_int_equal(large->limit - large->data, 10000);
    assert_int_equal(executor->pool.made, 0);
    memset(large->data, 1, 10000);
    /* Together they may have as much as all blocks, here 16 KiB. */
    assert_true(sl__pool_has_room(&executor->pool, 6384));
    assert_false(sl__pool_has_room(&executor->pool, 6385));
    assert_null(sl__batch_take(executor, 6385, false));
    assert_false(executor->pool.has_failed);
    struct sl__batch *second = sl__batch_take(executor, 6385, true);
    assert_non_null(second);
    sl__batch_give(other, large);
    assert_int_equal(executor->pool.large_bytes, 6385);
    sl__batch_give(executor, second);
    assert_int_equal(executor->pool.large_bytes, 0);
    rig_free(rig);
}

static void
test_take_without_memory_gives_null_and_says_so(void **state)
{
    (void)state;
    struct rig *rig = rig_two(16);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    sl_alloc_fail_after(0);
    assert_null(sl__batch_take(executor, 10, false));
    assert_true(executor->pool.has_failed);
    assert_null(sl__batch_take(executor, 10000, false));
    sl_alloc_fail_after(-1);
    struct sl__batch *batch = sl__batch_take(executor, 10, false);
    assert_non_null(batch);
    assert_false(executor->pool.has_failed);
    assert_int_equal(executor->pool.made, 1);
    sl__batch_give(executor, batch);
    rig_free(rig);
}

enum {
    ROUNDS = 20000,
    BLOCKS = 16,
};

struct giver {
    struct rig *rig;
    struct sl_ring *ring;
};

/* Gives back from outside what comes through its ring. */
static void *
give_back(void *argument)
{
    struct giver *giver = argument;
    for (int32_t i = 0; i < ROUNDS;) {
        struct sl__batch *batch;
        if (sl_ring_pop(giver->ring, &batch)) {
            memset(batch->data, i & 0x7f, 64);
            sl__batch_give(sl_worker_executor(giver->rig->worker, 1), batch);
            i++;
        } else {
            sched_yield();
        }
    }
    return NULL;
}

static void
test_two_other_threads_give_back_while_the_owner_takes(void **state)
{
    (void)state;
    struct rig *rig = rig_two(BLOCKS);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    struct giver givers[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        givers[i] = (struct giver){rig, sl_ring_new(32, sizeof(struct sl__batch *))};
        assert_int_equal(pthread_create(&threads[i], NULL, give_back, &givers[i]), 0);
    }
    for (int32_t i = 0; i < 2 * ROUNDS;) {
        struct sl__batch *batch = sl__batch_take(executor, 64, false);
        if (batch == NULL) {
            sched_yield();
            continue;
        }
        memset(batch->data, 0x55, 64);
        while (!sl_ring_push(givers[i % 2].ring, &batch)) {
            sched_yield();
        }
        i++;
    }
    int32_t count = 0;
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        sl_ring_free(givers[i].ring);
    }
    /* Nothing got lost on the way back: all blocks can be had once more. */
    struct sl__batch *held[BLOCKS];
    while (count < BLOCKS && (held[count] = sl__batch_take(executor, 1, false)) != NULL) {
        count++;
    }
    assert_int_equal(executor->pool.made, BLOCKS);
    assert_int_equal(count, BLOCKS);
    while (count > 0) {
        sl__batch_give(executor, held[--count]);
    }
    rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_take_gives_blocks_up_to_the_limit_and_more_when_allowed),
    cmocka_unit_test(test_records_larger_than_a_block_get_a_buffer_of_their_own),
    cmocka_unit_test(test_take_without_memory_gives_null_and_says_so),
    cmocka_unit_test(test_two_other_threads_give_back_while_the_owner_takes),
};

UNIT_MAIN(tests)
