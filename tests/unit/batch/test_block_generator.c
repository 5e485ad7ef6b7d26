// labels: short
#include <pthread.h>

#include "base/err.h"
#include "base/random.h"
#include "batch/block_generator.h"
#include "batch/clock.h"
#include "unit.h"

struct fixture {
    struct sl_streaming_clock clock;
    struct sl_block_generator generator;
};

static void
create(struct fixture *self, int64_t interval, int32_t queue, double max_rate, double initial)
{
    sl_streaming_clock_create(&self->clock, 0);
    assert_int_equal(sl_block_generator_create(&self->generator, &self->clock.clock, true, interval,
                                               queue, max_rate, initial),
                     0);
}

static int
add(struct fixture *self, uint8_t from, uint8_t to)
{
    uint8_t bytes[256];
    size_t len = 0;
    for (int i = from; i <= to; i++) {
        bytes[len++] = (uint8_t)i;
    }
    return sl_block_generator_add(&self->generator, bytes, len, (int64_t)len);
}

static void
expect_block(struct fixture *self, uint64_t id, uint8_t from, uint8_t to)
{
    struct sl_block_data block;
    assert_true(sl_block_generator_pull(&self->generator, &block));
    assert_int_equal(block.id, id);
    assert_int_equal(block.records, to - from + 1);
    assert_int_equal(block.len, to - from + 1);
    for (int i = 0; i < block.len; i++) {
        assert_int_equal(block.bytes[i], from + i);
    }
}

static void
expect_none(struct fixture *self)
{
    struct sl_block_data block;
    assert_false(sl_block_generator_pull(&self->generator, &block));
}

static void
test_T128_what_was_added_comes_out_in_blocks(void **state)
{
    (void)state;
    struct fixture f;
    create(&f, 200, 10, 0, 0);
    assert_int_equal(add(&f, 1, 1), SL_ECLOSED);
    assert_int_equal(sl_block_generator_start(&f.generator), 0);
    assert_int_equal(sl_block_generator_start(&f.generator), SL_ECONFLICT);
    assert_int_equal(sl_block_generator_due(&f.generator), 200);
    for (uint8_t i = 1; i <= 10; i++) {
        assert_int_equal(add(&f, i, i), 0);
    }
    expect_none(&f);
    sl_streaming_clock_set(&f.clock, 200);
    assert_int_equal(add(&f, 11, 20), 0);
    expect_block(&f, 0, 1, 10);
    expect_none(&f);
    sl_streaming_clock_set(&f.clock, 400);
    expect_block(&f, 200, 11, 20);
    assert_int_equal(add(&f, 21, 30), 0);
    sl_streaming_clock_set(&f.clock, 600);
    expect_block(&f, 400, 21, 30);
    /* Nothing was added: no block. */
    sl_streaming_clock_set(&f.clock, 900);
    expect_none(&f);
    assert_int_equal(add(&f, 31, 32), 0);
    sl_block_generator_stop(&f.generator);
    sl_block_generator_stop(&f.generator);
    assert_int_equal(add(&f, 33, 33), SL_ECLOSED);
    struct sl_block_data last;
    assert_true(sl_block_generator_pull(&f.generator, &last));
    assert_true(last.records == 2 && last.bytes[0] == 31 && last.id > 800);
    expect_none(&f);
    assert_int_equal(sl_block_generator_due(&f.generator), SL_STREAMING_UNKNOWN);
    sl_block_generator_destroy(&f.generator);
}

static void
test_a_full_queue_stops_the_cuts_not_the_adding(void **state)
{
    (void)state;
    struct fixture f;
    create(&f, 100, 1, 0, 0);
    assert_int_equal(sl_block_generator_start(&f.generator), 0);
    for (uint8_t i = 1; i <= 5; i++) {
        assert_int_equal(add(&f, i, i), 0);
        sl_streaming_clock_set(&f.clock, i * 100);
    }
    expect_block(&f, 0, 1, 1);
    expect_block(&f, 100, 2, 5);
    expect_none(&f);
    sl_block_generator_destroy(&f.generator);
}

static void
test_ids_never_repeat_also_over_generators(void **state)
{
    (void)state;
    uint64_t ids[40];
    size_t count = 0;
    for (int round = 0; round < 10; round++) {
        struct fixture f;
        /* All of them live within one interval. */
        create(&f, 200, 10, 0, 0);
        sl_streaming_clock_set(&f.clock, 150);
        assert_int_equal(sl_block_generator_start(&f.generator), 0);
        sl_block_generator_cut(&f.generator);
        expect_none(&f);
        for (uint8_t i = 1; i <= 2; i++) {
            assert_int_equal(add(&f, i, i), 0);
            sl_block_generator_cut(&f.generator);
        }
        if (round == 0) {
            assert_int_equal(add(&f, 3, 3), 0);
            sl_streaming_clock_set(&f.clock, 200);
        }
        assert_int_equal(add(&f, 4, 4), 0);
        sl_block_generator_stop(&f.generator);
        sl_block_generator_cut(&f.generator);
        struct sl_block_data block;
        while (sl_block_generator_pull(&f.generator, &block)) {
            assert_int_equal(block.records, 1);
            assert_true(block.id < UINT64_C(1) << 53);
            for (size_t i = 0; i < count; i++) {
                assert_int_not_equal(ids[i], block.id);
            }
            ids[count++] = block.id;
        }
        sl_block_generator_destroy(&f.generator);
    }
    assert_int_equal(count, 31);
}

static void
test_arguments_are_checked(void **state)
{
    (void)state;
    struct sl_block_generator generator;
    assert_int_equal(sl_block_generator_create(&generator, sl_clock_system(), false, 0, 10, 0, 0),
                     SL_EINVAL);
    assert_int_equal(sl_block_generator_create(&generator, sl_clock_system(), false, 200, 0, 0, 0),
                     SL_EINVAL);
}

static void
test_T142_the_maximum_bounds_a_new_rate(void **state)
{
    (void)state;
    static const double rows[][3] = {{0, 105, 105}, {110, 105, 105}, {100, 105, 100}};
    for (size_t i = 0; i < array_size(rows); i++) {
        struct fixture f;
        create(&f, 200, 10, rows[i][0], 0);
        assert_true(sl_block_generator_limit(&f.generator) == rows[i][0]);
        sl_block_generator_rate(&f.generator, rows[i][1]);
        assert_true(sl_block_generator_limit(&f.generator) == rows[i][2]);
        sl_block_generator_rate(&f.generator, 0);
        sl_block_generator_rate(&f.generator, -5);
        assert_true(sl_block_generator_limit(&f.generator) == rows[i][2]);
        sl_block_generator_destroy(&f.generator);
    }
}

static void
test_T143_published_rates_are_in_force(void **state)
{
    (void)state;
    struct fixture f;
    create(&f, 200, 10, 0, 50);
    assert_true(sl_block_generator_limit(&f.generator) == 50);
    for (double rate = 100; rate <= 300; rate += 100) {
        sl_block_generator_rate(&f.generator, rate);
        assert_true(sl_block_generator_limit(&f.generator) == rate);
    }
    sl_block_generator_destroy(&f.generator);
}

/* Whatever the rate, no batch made of whole intervals gets more than rate * batch, and a flood gets
 * all of it. */
enum { ADDERS = 10, RECORDS = 1000 };

static void *
add_many(void *argument)
{
    for (int i = 0; i < RECORDS; i++) {
        uint8_t byte = (uint8_t)i;
        if (sl_block_generator_add(argument, &byte, 1, 1) != 0) {
            return argument;
        }
    }
    return NULL;
}

static void
test_T82_many_threads_lose_nothing(void **state)
{
    (void)state;
    struct fixture f;
    create(&f, 5, 10, 0, 0);
    assert_int_equal(sl_block_generator_start(&f.generator), 0);
    pthread_t threads[ADDERS];
    for (int i = 0; i < ADDERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &f.generator), 0);
    }
    int64_t records = 0;
    struct sl_block_data block;
    for (int64_t now = 0; now < 500; now += 5) {
        sl_streaming_clock_set(&f.clock, now);
        while (sl_block_generator_pull(&f.generator, &block)) {
            records += block.records;
        }
    }
    for (int i = 0; i < ADDERS; i++) {
        void *failed = &f;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    sl_block_generator_stop(&f.generator);
    while (sl_block_generator_pull(&f.generator, &block)) {
        assert_int_equal(block.records, block.len);
        records += block.records;
    }
    assert_int_equal(records, ADDERS * RECORDS);
    sl_block_generator_destroy(&f.generator);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_T128_what_was_added_comes_out_in_blocks),
        cmocka_unit_test(test_a_full_queue_stops_the_cuts_not_the_adding),
        cmocka_unit_test(test_ids_never_repeat_also_over_generators),
        cmocka_unit_test(test_arguments_are_checked),
        cmocka_unit_test(test_T142_the_maximum_bounds_a_new_rate),
        cmocka_unit_test(test_T143_published_rates_are_in_force),
        cmocka_unit_test(test_T82_many_threads_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
