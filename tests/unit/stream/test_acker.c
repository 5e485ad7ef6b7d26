/* The table of an acker task against a naive map: what is told to spouts, and when. */

#include "base/random.h"
#include "rig.h"

/* An acker on executor 0; the spout is on executor 1, so that what it is told can be looked at. */
struct bench {
    struct rig *rig;
    struct sl_executor *executor;
    struct sl__acker *acker;
};

static struct bench
bench_new(void)
{
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){0});
    int32_t acker = rig_component(rig, SL_TASK_ACKER, 0, -1, 0, (struct rig_component){0});
    rig_plan(rig, spout, 1, 1);
    rig_plan(rig, acker, 2, 0);
    rig_attach_all(rig);
    return (struct bench){rig, sl_worker_executor(rig->worker, 0), rig->worker->ackers[0]};
}

/* The message that was sent last, or NULL. */
static const struct sl__ack *
told_last(const struct bench *bench)
{
    const struct sl__ack_box *box = &bench->executor->ack_out[1];
    return box->items.count > 0 ? &box->items.items[box->items.count - 1] : NULL;
}

static size_t
told_count(const struct bench *bench)
{
    return bench->executor->ack_out[1].items.count;
}

static void
apply(const struct bench *bench, uint64_t root, enum sl__ack_op op, uint64_t value)
{
    struct sl__ack ack = {.root = root, .value = value, .acker = 0, .op = op};
    sl__acker_apply(bench->acker, &ack);
}

/* Ids as spout 0 makes them. */
static uint64_t
root_of(uint32_t slot, uint32_t generation)
{
    return (uint64_t)generation << 24 | slot;
}

static void
check_table(const struct sl__acker *acker, const uint8_t *is_known, const uint64_t *ids, int count)
{
    uint32_t known = 0;
    for (int i = 0; i < count; i++) {
        known += is_known[i];
        uint32_t at = (uint32_t)(sl_mix64(ids[i]) >> 32) & acker->mask;
        bool is_found = false;
        while (acker->entries[at].root != 0 && !is_found) {
            is_found = acker->entries[at].root == ids[i];
            at = (at + 1) & acker->mask;
        }
        assert_int_equal(is_found, is_known[i]);
    }
    assert_int_equal(acker->count, known);
}

struct naive_entry {
    uint64_t value;
    uint32_t round;
    bool is_init;
    bool has_failed;
};

static void
test_entries_behave_as_in_a_naive_map(void **state)
{
    (void)state;
    enum { ROOTS = 4000 };
    struct bench bench = bench_new();
    struct sl_random random;
    sl_random_seed(&random, 3);
    static struct naive_entry naive[ROOTS];
    static uint8_t is_known[ROOTS];
    static uint64_t ids[ROOTS];
    memset(is_known, 0, sizeof(is_known));
    for (int i = 0; i < ROOTS; i++) {
        ids[i] = root_of((uint32_t)i % 512, 1 + (uint32_t)i / 512);
    }
    static const enum sl__ack_op ops[] = {SL__INIT, SL__ACK, SL__ACK, SL__FAIL, SL__RESET, SL__ACK};
    uint64_t largest = 0;
    for (int step = 0; step < 60000; step++) {
        int i = (int)sl_random_below(&random, step < 30000 ? ROOTS : ROOTS / 20);
        enum sl__ack_op op = ops[sl_random_below(&random, array_size(ops))];
        struct naive_entry *entry = &naive[i];
        if (!is_known[i]) {
            *entry = (struct naive_entry){.round = bench.executor->round};
            is_known[i] = 1;
        }
        /* Half of the values complete what is there. */
        uint64_t value = op == SL__FAIL || op == SL__RESET  ? 0
                         : sl_random_below(&random, 2) == 0 ? entry->value
                                                            : sl_random_u64(&random);
        entry->value ^= value;
        entry->is_init |= op == SL__INIT;
        entry->has_failed |= op == SL__FAIL;
        entry->round = op == SL__FAIL || op == SL__RESET ? bench.executor->round : entry->round;
        bool has_ended = entry->is_init && (entry->has_failed || entry->value == 0);
        size_t before = told_count(&bench);
        apply(&bench, ids[i], op, value);
        assert_int_equal(told_count(&bench) - before, (op == SL__RESET) + has_ended);
        if (has_ended) {
            is_known[i] = 0;
            assert_int_equal(told_last(&bench)->root, ids[i]);
            assert_int_equal(told_last(&bench)->op, entry->has_failed ? SL__DONE_FAILED : SL__DONE);
        } else if (op == SL__RESET) {
            assert_int_equal(told_last(&bench)->op, SL__RESET);
        }
        largest = bench.acker->count > largest ? bench.acker->count : largest;
        if (step % 1000 == 999) {
            bench.executor->round++;
            sl__acker_expire(bench.acker);
            for (int k = 0; k < ROOTS; k++) {
                is_known[k] &= bench.executor->round - naive[k].round <= SL__ROUNDS;
            }
            check_table(bench.acker, is_known, ids, ROOTS);
            bench.executor->ack_out[1].items.count = 0;
        }
    }
    /* The table grew on the way. */
    assert_true(largest > 768);
    assert_true(bench.acker->mask > 1023);
    rig_free(bench.rig);
}

static void
test_removal_keeps_every_other_entry_reachable(void **state)
{
    (void)state;
    enum { COUNT = 700 };
    struct bench bench = bench_new();
    struct sl_random random;
    static uint64_t ids[COUNT];
    static uint8_t is_known[COUNT];
    for (uint64_t seed = 1; seed <= 5; seed++) {
        sl_random_seed(&random, seed);
        for (int i = 0; i < COUNT; i++) {
            ids[i] = root_of((uint32_t)i, (uint32_t)seed);
            is_known[i] = 1;
            apply(&bench, ids[i], SL__ACK, 5);
        }
        assert_int_equal(bench.acker->mask, 1023);
        for (int left = COUNT; left > 0; left--) {
            int i = (int)sl_random_below(&random, COUNT);
            while (!is_known[i]) {
                i = (i + 1) % COUNT;
            }
            apply(&bench, ids[i], SL__INIT, 5);
            is_known[i] = 0;
            if (left % 50 == 0) {
                check_table(bench.acker, is_known, ids, COUNT);
            }
        }
        assert_int_equal(bench.acker->count, 0);
    }
    rig_free(bench.rig);
}

static void
test_a_fail_before_the_init_is_remembered(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    apply(&bench, root_of(1, 1), SL__FAIL, 0);
    assert_int_equal(told_count(&bench), 0);
    apply(&bench, root_of(1, 1), SL__INIT, 77);
    assert_int_equal(told_last(&bench)->op, SL__DONE_FAILED);
    assert_int_equal(bench.acker->count, 0);
    rig_free(bench.rig);
}

static void
test_acks_before_the_init_do_not_complete(void **state)
{
    (void)state;
    struct bench bench = bench_new();
    apply(&bench, root_of(1, 1), SL__ACK, 77);
    apply(&bench, root_of(1, 1), SL__ACK, 77);
    assert_int_equal(told_count(&bench), 0);
    apply(&bench, root_of(1, 1), SL__INIT, 0);
    assert_int_equal(told_last(&bench)->op, SL__DONE);
    assert_int_equal(bench.rig->tasks[2].io->executed, 3);
    rig_free(bench.rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_entries_behave_as_in_a_naive_map),
    cmocka_unit_test(test_removal_keeps_every_other_entry_reachable),
    cmocka_unit_test(test_a_fail_before_the_init_is_remembered),
    cmocka_unit_test(test_acks_before_the_init_do_not_complete),
};

UNIT_MAIN(tests)
