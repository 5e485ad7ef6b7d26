#include <stdlib.h>

#include "base/err.h"
#include "topology/key_groups.h"
#include "topology/topology_fixture.h"

enum { LARGEST = 512 };

static void
test_default_follows_the_formula(void **state)
{
    (void)state;
    static const uint32_t rows[][2] = {
        {0, 128},   {1, 128},   {85, 128},      {86, 256},      {170, 256},
        {171, 256}, {172, 512}, {21845, 32768}, {40000, 32768}, {1000000, 32768},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(sl_key_groups_default(rows[i][0]), rows[i][1]);
    }
}

/* Groups a task owns; fails on an owner that is no task. */
static void
count_owned(const int32_t *owners, uint32_t groups, uint32_t tasks, uint32_t *owned)
{
    memset(owned, 0, tasks * sizeof(*owned));
    for (uint32_t g = 0; g < groups; g++) {
        assert_in_range(owners[g], 1, tasks);
        owned[owners[g] - 1]++;
    }
}

static void
assert_equal_within_1(const int32_t *owners, uint32_t groups, uint32_t tasks)
{
    uint32_t owned[LARGEST];
    count_owned(owners, groups, tasks, owned);
    for (uint32_t i = 0; i < tasks; i++) {
        assert_in_range(owned[i], groups / tasks, (groups + tasks - 1) / tasks);
    }
}

static const int32_t *
first_tasks(void)
{
    static int32_t tasks[LARGEST];
    for (int32_t i = 0; i < LARGEST; i++) {
        tasks[i] = i + 1;
    }
    return tasks;
}

static void
test_assign_gives_contiguous_ranges_equal_within_1(void **state)
{
    (void)state;
    for (uint32_t groups = 1; groups <= 40; groups++) {
        for (uint32_t tasks = 1; tasks <= groups; tasks++) {
            int32_t owners[40];
            assert_int_equal(sl_key_groups_assign(first_tasks(), tasks, owners, groups), 0);
            assert_equal_within_1(owners, groups, tasks);
            for (uint32_t g = 1; g < groups; g++) {
                assert_true(owners[g] == owners[g - 1] || owners[g] == owners[g - 1] + 1);
            }
        }
    }
}

static void
test_two_to_four_tasks_moves_half_the_groups(void **state)
{
    (void)state;
    int32_t owners[LARGEST];
    for (uint32_t groups = 4; groups <= LARGEST; groups *= 2) {
        assert_int_equal(sl_key_groups_assign(first_tasks(), 2, owners, groups), 0);
        assert_int_equal(sl_key_groups_rebalance(owners, groups, first_tasks(), 4, owners),
                         groups / 2);
        assert_equal_within_1(owners, groups, 4);
    }
}

static void
test_rebalance_to_the_same_tasks_moves_nothing(void **state)
{
    (void)state;
    int32_t owners[LARGEST];
    int32_t after[LARGEST];
    for (uint32_t tasks = 1; tasks <= 100; tasks++) {
        assert_int_equal(sl_key_groups_assign(first_tasks(), tasks, owners, 128), 0);
        assert_int_equal(sl_key_groups_rebalance(owners, 128, first_tasks(), tasks, after), 0);
        assert_memory_equal(owners, after, 128 * sizeof(*owners));
    }
}

/*
 * The fewest moves of all tables with these shares, by trying which tasks get the shares of one
 * more: with fixed shares a task can keep min(held, share), whatever the table.
 */
static uint32_t
fewest_moves(const uint32_t *held, uint32_t groups, uint32_t tasks)
{
    uint32_t extra = groups % tasks;
    uint32_t best = groups;
    for (uint32_t mask = 0; mask < 1u << tasks; mask++) {
        if ((uint32_t)__builtin_popcount(mask) != extra) {
            continue;
        }
        uint32_t kept = 0;
        for (uint32_t i = 0; i < tasks; i++) {
            uint32_t share = groups / tasks + (mask >> i & 1);
            kept += held[i] < share ? held[i] : share;
        }
        if (groups - kept < best) {
            best = groups - kept;
        }
    }
    return best;
}

/* True fewest moves: every table there is. Only for very small cases. */
static uint32_t
fewest_moves_of_all_tables(const int32_t *owners, uint32_t groups, uint32_t tasks)
{
    uint32_t tables = 1;
    for (uint32_t g = 0; g < groups; g++) {
        tables *= tasks;
    }
    uint32_t best = groups;
    for (uint32_t n = 0; n < tables; n++) {
        uint32_t rest = n;
        uint32_t moved = 0;
        uint32_t owned[8] = {0};
        for (uint32_t g = 0; g < groups; g++, rest /= tasks) {
            owned[rest % tasks]++;
            moved += (int32_t)(rest % tasks) + 1 != owners[g];
        }
        bool is_equal = true;
        for (uint32_t i = 0; i < tasks; i++) {
            is_equal =
                is_equal && owned[i] >= groups / tasks && owned[i] <= (groups + tasks - 1) / tasks;
        }
        if (is_equal && moved < best) {
            best = moved;
        }
    }
    return best;
}

static void
test_rebalance_moves_as_few_as_any_table_can(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 5);
    for (int i = 0; i < 300; i++) {
        uint32_t groups = 1 + (uint32_t)sl_random_below(&random, 7);
        uint32_t tasks = 1 + (uint32_t)sl_random_below(&random, groups < 4 ? groups : 4);
        int32_t owners[8];
        int32_t after[8];
        for (uint32_t g = 0; g < groups; g++) {
            owners[g] = 1 + (int32_t)sl_random_below(&random, 5);
        }
        int moved = sl_key_groups_rebalance(owners, groups, first_tasks(), tasks, after);
        assert_equal_within_1(after, groups, tasks);
        assert_int_equal(moved, fewest_moves_of_all_tables(owners, groups, tasks));
    }
}

/* Every way from p to q tasks in three steps, with the number of moves checked at each. */
static void
test_rebalance_chains_stay_equal_and_cheap(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 6);
    for (int i = 0; i < 300; i++) {
        uint32_t groups = 10 + (uint32_t)sl_random_below(&random, 119);
        uint32_t tasks = 1 + (uint32_t)sl_random_below(&random, 10);
        int32_t owners[128];
        assert_int_equal(sl_key_groups_assign(first_tasks(), tasks, owners, groups), 0);
        for (int step = 0; step < 3; step++) {
            uint32_t next = 1 + (uint32_t)sl_random_below(&random, 10);
            uint32_t held[10] = {0};
            int32_t before[128];
            memcpy(before, owners, sizeof(before));
            for (uint32_t g = 0; g < groups; g++) {
                if ((uint32_t)owners[g] <= next) {
                    held[owners[g] - 1]++;
                }
            }
            int moved = sl_key_groups_rebalance(owners, groups, first_tasks(), next, owners);
            assert_int_equal(moved, fewest_moves(held, groups, next));
            assert_equal_within_1(owners, groups, next);
            int differing = 0;
            for (uint32_t g = 0; g < groups; g++) {
                differing += before[g] != owners[g];
            }
            assert_int_equal(moved, differing);
        }
    }
}

static void
test_ids_need_not_be_in_order(void **state)
{
    (void)state;
    static const int32_t tasks[] = {40, 7, 23};
    static const int32_t fewer[] = {23, 40};
    int32_t owners[8];
    assert_int_equal(sl_key_groups_assign(tasks, 3, owners, 8), 0);
    static const int32_t first[] = {40, 40, 7, 7, 7, 23, 23, 23};
    assert_memory_equal(owners, first, sizeof(first));
    assert_int_equal(sl_key_groups_rebalance(owners, 8, fewer, 2, owners), 3);
    static const int32_t second[] = {40, 40, 23, 40, 40, 23, 23, 23};
    assert_memory_equal(owners, second, sizeof(second));
}

static void
test_impossible_requests_are_refused(void **state)
{
    (void)state;
    static const int32_t twice[] = {1, 2, 1};
    int32_t owners[8] = {0};
    assert_int_equal(sl_key_groups_assign(first_tasks(), 0, owners, 8), SL_EINVAL);
    assert_int_equal(sl_key_groups_assign(first_tasks(), 1, owners, 0), SL_EINVAL);
    assert_int_equal(sl_key_groups_assign(first_tasks(), 9, owners, 8), SL_EINVAL);
    assert_int_equal(sl_key_groups_assign(first_tasks(), 1, owners, 32769), SL_EINVAL);
    assert_int_equal(sl_key_groups_rebalance(owners, 8, first_tasks(), 9, owners), SL_EINVAL);
    assert_int_equal(sl_key_groups_rebalance(owners, 8, twice, 3, owners), SL_EINVAL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_follows_the_formula),
        cmocka_unit_test(test_assign_gives_contiguous_ranges_equal_within_1),
        cmocka_unit_test(test_two_to_four_tasks_moves_half_the_groups),
        cmocka_unit_test(test_rebalance_to_the_same_tasks_moves_nothing),
        cmocka_unit_test(test_rebalance_moves_as_few_as_any_table_can),
        cmocka_unit_test(test_rebalance_chains_stay_equal_and_cheap),
        cmocka_unit_test(test_ids_need_not_be_in_order),
        cmocka_unit_test(test_impossible_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
