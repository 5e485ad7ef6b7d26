/* The fit index against a scan. labels: short */
#include "packing/fixture.h"

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_finds_what_a_scan_finds),
};

UNIT_MAIN(tests)
