// labels: short
#include <sys/resource.h>
#include <signal.h>

#include "batch/block_tracker.h"
#include "rig.h"

static void
create(struct sl_block_tracker *tracker, const char *dir, int64_t rolling, bool recover)
{
    sl_block_tracker_create(tracker);
    assert_int_equal(sl_block_tracker_input(tracker, "in"), 0);
    assert_int_equal(sl_block_tracker_input(tracker, "other"), 1);
    if (dir != NULL) {
        assert_int_equal(sl_block_tracker_open(tracker, dir, rolling, recover), 0);
    }
}

static int
add(struct sl_block_tracker *tracker, uint64_t id, int64_t now)
{
    struct sl_streaming_block block = {.id = id, .records = 10, .worker = "w1"};
    return sl_block_tracker_add(tracker, 0, &block, now);
}

static void
add_range(struct sl_block_tracker *tracker, uint64_t from, uint64_t to, int64_t now)
{
    for (uint64_t id = from; id <= to; id++) {
        assert_int_equal(add(tracker, id, now), 0);
    }
}

static void
expect_batch(const struct sl_block_tracker *tracker, int64_t time, uint64_t from, size_t count)
{
    const struct sl_block_list *blocks = sl_block_tracker_blocks(tracker, 0, time);
    assert_int_equal(blocks != NULL ? blocks->count : 0, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(blocks->items[i].block.id, from + i);
    }
}

static void
test_T121_a_batch_gets_its_blocks_once(void **state)
{
    (void)state;
    struct sl_block_tracker tracker;
    create(&tracker, NULL, 0, false);
    add_range(&tracker, 1, 5, 0);
    assert_int_equal(sl_block_tracker_unallocated(&tracker), 5);
    assert_int_equal(sl_block_tracker_allocate(&tracker, 1, 0), 0);
    expect_batch(&tracker, 1, 1, 5);
    assert_int_equal(sl_block_tracker_unallocated(&tracker), 0);
    assert_int_equal(sl_block_tracker_allocate(&tracker, 2, 0), 0);
    expect_batch(&tracker, 2, 0, 0);
    assert_int_equal(sl_block_tracker_allocate(&tracker, 1, 0), 0);
    expect_batch(&tracker, 1, 1, 5);
    add_range(&tracker, 6, 10, 0);
    assert_int_equal(sl_block_tracker_allocate(&tracker, 2, 0), 0);
    expect_batch(&tracker, 2, 0, 0);
    assert_int_equal(sl_block_tracker_unallocated(&tracker), 5);
    sl_block_tracker_destroy(&tracker);
}

static void
test_adding_a_block_twice_counts_once(void **state)
{
    (void)state;
    struct sl_block_tracker tracker;
    create(&tracker, NULL, 0, false);
    assert_int_equal(add(&tracker, 7, 0), 0);
    assert_int_equal(add(&tracker, 7, 0), 1);
    assert_int_equal(sl_block_tracker_allocate(&tracker, 1, 0), 0);
    assert_int_equal(add(&tracker, 7, 0), 1);
    assert_int_equal(sl_block_tracker_unallocated(&tracker), 0);
    expect_batch(&tracker, 1, 7, 1);
    sl_block_tracker_destroy(&tracker);
}

/* Makes writes to files fail, as a full disk does. */
static void
limit_files(rlim_t size)
{
    struct rlimit limit = {size, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void
test_T122_blocks_stay_when_the_log_can_not_be_written(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct sl_block_tracker tracker;
    create(&tracker, dir, 1000, false);
    add_range(&tracker, 1, 5, 0);
    limit_files(0);
    assert_int_equal(sl_block_tracker_allocate(&tracker, 1, 0), SL_ESYS);
    /* B7: what the log did not take was not taken. */
    assert_int_equal(add(&tracker, 6, 0), SL_ESYS);
    limit_files(RLIM_INFINITY);
    assert_int_equal(sl_block_tracker_unallocated(&tracker), 5);
    expect_batch(&tracker, 1, 0, 0);
    assert_int_equal(sl_block_tracker_allocate(&tracker, 2, 0), 0);
    expect_batch(&tracker, 2, 1, 5);
    sl_block_tracker_destroy(&tracker);
    create(&tracker, dir, 1000, true);
    expect_batch(&tracker, 1, 0, 0);
    expect_batch(&tracker, 2, 1, 5);
    assert_int_equal(sl_block_tracker_unallocated(&tracker), 0);
    sl_block_tracker_destroy(&tracker);
    rig_dir_remove(dir);
}

static void
test_T123_a_replayed_allocation_takes_its_blocks_only(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct sl_block_tracker tracker;
    create(&tracker, dir, 1000, false);
    add_range(&tracker, 1, 5, 0);
    /* The log of an allocation of A that was written when B had come already. */
    assert_int_equal(sl_block_tracker_allocate(&tracker, 100, 0), 0);
    add_range(&tracker, 6, 10, 0);
    sl_block_tracker_destroy(&tracker);
    create(&tracker, dir, 1000, true);
    expect_batch(&tracker, 100, 1, 5);
    assert_int_equal(sl_block_tracker_unallocated(&tracker), 5);
    const struct sl_block_list *blocks = sl_block_tracker_blocks(&tracker, 0, 100);
    for (size_t i = 0; i < 5; i++) {
        assert_false(blocks->items[i].block.is_valid);
        assert_int_equal(blocks->items[i].block.records, 10);
        assert_string_equal(blocks->items[i].block.worker, "w1");
        assert_false(tracker.inputs.items[0].queue.items[i].block.is_valid);
        assert_int_equal(tracker.inputs.items[0].queue.items[i].block.id, 6 + i);
    }
    /* What was allocated before the restart is not allocated again. */
    assert_int_equal(sl_block_tracker_allocate(&tracker, 100, 0), 0);
    assert_int_equal(sl_block_tracker_unallocated(&tracker), 5);
    assert_int_equal(sl_block_tracker_allocate(&tracker, 200, 0), 0);
    expect_batch(&tracker, 200, 6, 5);
    sl_block_tracker_destroy(&tracker);
    rig_dir_remove(dir);
}

static void
test_T124_without_recovery_there_is_nothing(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct sl_block_tracker tracker;
    create(&tracker, dir, 1000, false);
    add_range(&tracker, 1, 5, 0);
    sl_block_tracker_destroy(&tracker);
    for (int i = 0; i < 2; i++) {
        /* And a later recovery does not bring it back. */
        create(&tracker, dir, 1000, i == 1);
        assert_int_equal(sl_block_tracker_unallocated(&tracker), 0);
        sl_block_tracker_destroy(&tracker);
    }
    rig_dir_remove(dir);
}

static size_t
log_files(const char *dir)
{
    struct sl_wal wal;
    assert_int_equal(sl_wal_create(&wal, dir, 1), 0);
    size_t count = wal.files.count;
    sl_wal_destroy(&wal);
    return count;
}

static void
test_T125_cleaned_batches_stay_gone(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct sl_block_tracker tracker;
    create(&tracker, dir, 100, false);
    add_range(&tracker, 1, 5, 100);
    assert_int_equal(sl_block_tracker_allocate(&tracker, 100, 100), 0);
    add_range(&tracker, 6, 10, 500);
    assert_int_equal(sl_block_tracker_allocate(&tracker, 500, 500), 0);
    assert_int_equal(log_files(dir), 2);
    assert_int_equal(sl_block_tracker_cleanup(&tracker, 500, 700), 0);
    expect_batch(&tracker, 100, 0, 0);
    expect_batch(&tracker, 500, 6, 5);
    sl_block_tracker_destroy(&tracker);
    struct sl_wal wal;
    assert_int_equal(sl_wal_create(&wal, dir, 100), 0);
    for (size_t i = 0; i < wal.files.count; i++) {
        assert_true(wal.files.items[i].start >= 500);
    }
    sl_wal_destroy(&wal);
    create(&tracker, dir, 100, true);
    expect_batch(&tracker, 100, 0, 0);
    expect_batch(&tracker, 500, 6, 5);
    sl_block_tracker_destroy(&tracker);
    rig_dir_remove(dir);
}

static void
test_the_log_keeps_the_records_of_blocks_that_are_known(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct sl_block_tracker tracker;
    create(&tracker, dir, 10, false);
    /* Added long before the batch that gets them. */
    add_range(&tracker, 1, 3, 0);
    assert_int_equal(sl_block_tracker_allocate(&tracker, 1000, 1000), 0);
    assert_int_equal(sl_block_tracker_cleanup(&tracker, 900, 1001), 0);
    sl_block_tracker_destroy(&tracker);
    create(&tracker, dir, 10, true);
    expect_batch(&tracker, 1000, 1, 3);
    sl_block_tracker_destroy(&tracker);
    rig_dir_remove(dir);
}

static void
test_T127_a_hundred_thousand_blocks_in_one_allocation(void **state)
{
    (void)state;
    enum { BLOCKS = 100000 };
    struct sl_block_tracker tracker;
    char *dir = rig_dir_new();
    create(&tracker, NULL, 0, false);
    add_range(&tracker, 1, BLOCKS, 0);
    /* The log is opened now: adding is not what is looked at. */
    assert_int_equal(sl_block_tracker_open(&tracker, dir, 1000, false), 0);
    assert_int_equal(sl_block_tracker_allocate(&tracker, 5, 0), 0);
    expect_batch(&tracker, 5, 1, BLOCKS);
    assert_int_equal(log_files(dir), 1);
    sl_block_tracker_destroy(&tracker);
    create(&tracker, dir, 1000, true);
    assert_int_equal(tracker.last_allocated, 5);
    sl_block_tracker_destroy(&tracker);
    rig_dir_remove(dir);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_T121_a_batch_gets_its_blocks_once),
        cmocka_unit_test(test_adding_a_block_twice_counts_once),
        cmocka_unit_test(test_T122_blocks_stay_when_the_log_can_not_be_written),
        cmocka_unit_test(test_T123_a_replayed_allocation_takes_its_blocks_only),
        cmocka_unit_test(test_T124_without_recovery_there_is_nothing),
        cmocka_unit_test(test_T125_cleaned_batches_stay_gone),
        cmocka_unit_test(test_the_log_keeps_the_records_of_blocks_that_are_known),
        cmocka_unit_test(test_T127_a_hundred_thousand_blocks_in_one_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
