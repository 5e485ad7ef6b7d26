/* The fit index against a scan. labels: short */
#include "packing/fixture.h"

#include "base/alloc.h"
#include "packing/fit_index.h"

static struct sl_resource
random_resource(struct sl_random *random)
{
    return (struct sl_resource){(int64_t)sl_random_below(random, 8) - 1,
                                (int64_t)sl_random_below(random, 8) - 1,
                                (int64_t)sl_random_below(random, 8) - 1};
}

static struct sl_fit_node
random_leaf(struct sl_random *random)
{
    return (struct sl_fit_node){random_resource(random), (int64_t)sl_random_below(random, 3)};
}

static void
test_finds_what_a_scan_finds(void **state)
{
    (void)state;
    enum { MOST = 80 };
    struct sl_random random;
    sl_random_seed(&random, 3);
    for (int round = 0; round < 200; round++) {
        struct sl_fit_node leaves[MOST];
        int32_t count = (int32_t)sl_random_below(&random, 5);
        struct sl_fit_index index;
        sl_fit_index_create(&index, count);
        for (int32_t i = 0; i < count; i++) {
            leaves[i] = random_leaf(&random);
            sl_fit_index_load(&index, i, leaves[i]);
        }
        sl_fit_index_refresh(&index);
        for (int step = 0; step < 150; step++) {
            uint64_t what = sl_random_below(&random, 4);
            int32_t at = count > 0 ? (int32_t)sl_random_below(&random, (uint64_t)count) : 0;
            if (what == 0 && count < MOST) {
                leaves[count] = random_leaf(&random);
                sl_fit_index_append(&index, leaves[count++]);
            } else if (what == 1 && count > 0) {
                leaves[at] = random_leaf(&random);
                sl_fit_index_set(&index, at, leaves[at]);
            } else if (what == 2 && count > 0 && step % 8 == 0) {
                leaves[at] = (struct sl_fit_node){{0, 0, 0}, -1};
                sl_fit_index_close(&index, at);
            }
            struct sl_resource need = random_resource(&random);
            int32_t expected = at;
            while (expected < count && !sl_fit_node_holds(&leaves[expected], need)) {
                expected++;
            }
            assert_int_equal(sl_fit_index_find(&index, at, need), expected < count ? expected : -1);
            if (expected >= count) {
                expected = 0;
                while (expected < count && !sl_fit_node_holds(&leaves[expected], need)) {
                    expected++;
                }
            }
            assert_int_equal(sl_fit_index_find_cyclic(&index, at, need),
                             expected < count ? expected : -1);
        }
        sl_fit_index_destroy(&index);
    }
}

/* Room for one thing here, for the other there, seldom for both: the searches get long. */
static struct sl_fit_node
lopsided_leaf(struct sl_random *random)
{
    int64_t much = 50 + (int64_t)sl_random_below(random, 50);
    int64_t little = (int64_t)sl_random_below(random, 55);
    bool is_cpu = sl_random_below(random, 2) == 0;
    int64_t disk = (int64_t)sl_random_below(random, 100);
    return (struct sl_fit_node){{is_cpu ? much : little, is_cpu ? little : much, disk},
                                (int64_t)sl_random_below(random, 8)};
}

static int32_t
scan(const struct sl_fit_node *leaves, int32_t from, int32_t count, struct sl_resource need)
{
    while (from < count && !sl_fit_node_holds(&leaves[from], need)) {
        from++;
    }
    return from < count ? from : -1;
}

static void
test_finds_what_a_scan_finds_in_long_searches(void **state)
{
    (void)state;
    enum { MOST = 3000, STEPS = UNIT_ROUNDS(20000) };
    struct sl_random random;
    sl_random_seed(&random, 4);
    struct sl_fit_node *leaves = sl_alloc(MOST * sizeof(*leaves));
    int32_t count = MOST / 2;
    int32_t found = 0;
    struct sl_fit_index index;
    sl_fit_index_create(&index, count);
    for (int32_t i = 0; i < count; i++) {
        leaves[i] = lopsided_leaf(&random);
        sl_fit_index_load(&index, i, leaves[i]);
    }
    sl_fit_index_refresh(&index);
    for (int step = 0; step < STEPS; step++) {
        int32_t from = sl_random_below(&random, 3) == 0
                           ? (int32_t)sl_random_below(&random, (uint64_t)count)
                           : 0;
        struct sl_resource need = {40 + (int64_t)sl_random_below(&random, 30),
                                   40 + (int64_t)sl_random_below(&random, 30),
                                   (int64_t)sl_random_below(&random, 60)};
        int32_t at = sl_fit_index_find(&index, from, need);
        assert_int_equal(at, scan(leaves, from, count, need));
        if (at >= 0) {
            found++;
            leaves[at] = sl_fit_node_less(leaves[at], (struct sl_resource){4, 4, 4});
            sl_fit_index_set(&index, at, leaves[at]);
        }
        /* Now and then a container comes, and one gets room again. */
        if (count < MOST && sl_random_below(&random, 8) == 0) {
            leaves[count] = lopsided_leaf(&random);
            sl_fit_index_append(&index, leaves[count++]);
        }
        if (sl_random_below(&random, 200) == 0) {
            int32_t again = (int32_t)sl_random_below(&random, (uint64_t)count);
            leaves[again] = lopsided_leaf(&random);
            sl_fit_index_set(&index, again, leaves[again]);
        }
    }
    assert_true(index.cloud.count > 0);
    assert_true(found > STEPS / 50);
    sl_fit_index_destroy(&index);
    sl_free(leaves);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_finds_what_a_scan_finds_in_long_searches),
    cmocka_unit_test(test_finds_what_a_scan_finds),
};

UNIT_MAIN(tests)
