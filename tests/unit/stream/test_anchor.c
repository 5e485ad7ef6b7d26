/*
 * The XOR tracker against a naive one that keeps the set of live tuples of each tree: random bolts
 * that emit, hold, join, fail, and forget, with trees that share tuples, acks that come late, and
 * slots that are used again and again.
 */

#include <math.h>

#include "base/random.h"
#include "rig.h"

enum {
    ROOTS = 1500,
    /* The most roots one tuple hangs on. */
    MOST_ANCHORS = 24,
    TUPLES = 400000,
};

struct naive_root {
    int64_t live;
    bool has_failed;
    /* 0 = open, 1 = acked, 2 = failed, as the spout was told. */
    int verdict;
};

/* What a tuple hangs on; the same root may occur twice. */
struct naive_tuple {
    int32_t roots[MOST_ANCHORS];
    int32_t count;
};

struct naive {
    struct sl_random random;
    struct naive_root roots[ROOTS];
    struct naive_tuple *tuples;
    int64_t tuple_count;
    int64_t told;
};

/* Copies of a tuple that were emitted are alive in each tree that it hangs on. */
static void
naive_emit(struct naive *naive, int64_t tuple, int64_t copies)
{
    for (int32_t i = 0; i < naive->tuples[tuple].count; i++) {
        naive->roots[naive->tuples[tuple].roots[i]].live += copies;
    }
}

static void
naive_settle(struct naive *naive, int64_t tuple, bool has_failed)
{
    for (int32_t i = 0; i < naive->tuples[tuple].count; i++) {
        struct naive_root *root = &naive->roots[naive->tuples[tuple].roots[i]];
        root->live--;
        root->has_failed |= has_failed;
    }
}

static int64_t
naive_new(struct naive *naive)
{
    assert_true(naive->tuple_count < TUPLES);
    naive->tuples[naive->tuple_count].count = 0;
    return naive->tuple_count++;
}

/* The anchors of `from` are added; false when that would be too many. */
static bool
naive_join(struct naive *naive, int64_t tuple, int64_t from)
{
    struct naive_tuple *to = &naive->tuples[tuple];
    const struct naive_tuple *source = &naive->tuples[from];
    if (to->count + source->count > MOST_ANCHORS) {
        return false;
    }
    memcpy(to->roots + to->count, source->roots, (size_t)source->count * sizeof(*to->roots));
    to->count += source->count;
    return true;
}

static int
plant(struct rig_task *task)
{
    struct naive *naive = task->rig->user;
    if (task->count >= task->limit) {
        return SL_SPOUT_DONE;
    }
    /* Roots of spout 0 are even, of spout 1 odd. */
    int32_t root = (int32_t)(task->count++ * 2 + task->id);
    int64_t tuple = naive_new(naive);
    naive->tuples[tuple].roots[0] = root;
    naive->tuples[tuple].count = 1;
    struct sl_emitter *emitter = sl_task_emitter(task->io, 0);
    rig_choose(emitter, tuple);
    naive_emit(naive, tuple, emitter->target_count);
    int64_t values[1] = {tuple};
    assert_int_equal(rig_emit_root(task, values, root), 0);
    return SL_SPOUT_EMITTED;
}

static void
learn(struct rig_task *task, int64_t id, bool has_failed)
{
    struct naive *naive = task->rig->user;
    struct naive_root *root = &naive->roots[id];
    assert_int_equal(root->verdict, 0);
    root->verdict = has_failed ? 2 : 1;
    naive->told++;
    /* Told at the right moment: never acked while something lives, never failed without a reason.
     */
    if (has_failed) {
        assert_true(root->has_failed);
    } else {
        assert_int_equal(root->live, 0);
        assert_false(root->has_failed);
    }
}

/* Emits a tuple with the anchors that were collected, in C and in `tuple`. */
static void
emit_tuple(struct rig_task *task, int64_t tuple)
{
    struct naive *naive = task->rig->user;
    struct sl_emitter *emitter = sl_task_emitter(task->io, 0);
    rig_choose(emitter, tuple);
    naive_emit(naive, tuple, emitter->target_count);
    int64_t values[1] = {tuple};
    assert_int_equal(rig_emit_collected(task, values), 0);
}

/* A bolt that acks automatically; sometimes it fails its tuple, as an error in user code does. */
static void
branch(struct rig_task *task, struct sl_record *record)
{
    struct naive *naive = task->rig->user;
    int64_t from = rig_value(record, 0);
    bool fails = sl_random_below(&naive->random, 60) == 0;
    for (uint64_t left = sl_random_below(&naive->random, 4); left > 0; left--) {
        int64_t tuple = naive_new(naive);
        sl_anchors_clear(task->io);
        /* Unanchored, anchored, or anchored twice on the same tuple. */
        for (uint64_t times = sl_random_below(&naive->random, 3); times > 0; times--) {
            if (naive_join(naive, tuple, from)) {
                sl_anchors_add_current(task->io);
            }
        }
        emit_tuple(task, tuple);
    }
    naive_settle(naive, from, fails);
    if (fails) {
        sl_task_fail(task->io);
        /* The driver that follows must not ack what failed. */
        record->anchors = 0;
    }
}

/* The same by the short way for one root, when there is just one. */
static void
branch_direct(struct rig_task *task, struct sl_record *record)
{
    struct naive *naive = task->rig->user;
    int64_t from = rig_value(record, 0);
    if (record->anchors > 1) {
        branch(task, record);
        return;
    }
    for (uint64_t left = sl_random_below(&naive->random, 3); left > 0; left--) {
        int64_t tuple = naive_new(naive);
        naive_join(naive, tuple, from);
        naive_emit(naive, tuple, 1);
        assert_int_equal(rig_emit_direct(task, tuple, RIG_NO_ID), 0);
    }
    naive_settle(naive, from, false);
}

/* A bolt with manual acks: keeps tuples, joins some of them, settles them in any order. */
enum {
    KEPT = 12,
};

struct kept {
    int64_t tuple[KEPT];
    double handle[KEPT];
    int count;
};

static void
settle_kept(struct rig_task *task, int at)
{
    struct naive *naive = task->rig->user;
    struct kept *kept = task->user;
    bool fails = sl_random_below(&naive->random, 40) == 0;
    if (kept->handle[at] >= 0) {
        assert_int_equal(sl_held_settle(task->io, kept->handle[at], fails), 0);
        /* A second time it is known no more. */
        assert_int_equal(sl_held_settle(task->io, kept->handle[at], fails), SL_ENOTFOUND);
        naive_settle(naive, kept->tuple[at], fails);
    }
    kept->count--;
    kept->tuple[at] = kept->tuple[kept->count];
    kept->handle[at] = kept->handle[kept->count];
}

static void
hold_and_join(struct rig_task *task, struct sl_record *record)
{
    struct naive *naive = task->rig->user;
    struct kept *kept = task->user;
    double handle = sl_task_hold(task->io);
    assert_int_equal(handle >= 0, record->anchors > 0);
    kept->tuple[kept->count] = rig_value(record, 0);
    kept->handle[kept->count++] = handle;
    if (sl_random_below(&naive->random, 3) == 0) {
        int64_t tuple = naive_new(naive);
        sl_anchors_clear(task->io);
        for (uint64_t times = sl_random_below(&naive->random, 4); times > 0; times--) {
            int at = (int)sl_random_below(&naive->random, (uint64_t)kept->count);
            if (kept->handle[at] >= 0 && naive_join(naive, tuple, kept->tuple[at])) {
                sl_anchors_add_held(task->io, kept->handle[at]);
            }
        }
        /* One that is long gone adds nothing. */
        sl_anchors_add_held(task->io, 0x1p52);
        emit_tuple(task, tuple);
    }
    while (kept->count == KEPT || (kept->count > 0 && sl_random_below(&naive->random, 4) == 0)) {
        settle_kept(task, (int)sl_random_below(&naive->random, (uint64_t)kept->count));
    }
}

static void
settle_rest(struct rig_task *task, double now_ms)
{
    struct kept *kept = task->user;
    (void)now_ms;
    while (kept->count > 0) {
        settle_kept(task, kept->count - 1);
    }
}

static void
finish_tuple(struct rig_task *task, struct sl_record *record)
{
    naive_settle(task->rig->user, rig_value(record, 0), false);
}

static void
compare_with_naive(uint64_t seed, int32_t executors, int32_t ackers)
{
    struct sl_worker_options options = rig_options();
    options.executors = executors;
    options.message_timeout_ms = 1e7;
    options.max_spout_pending = 1 + (int32_t)(seed % 5) * 20;
    options.seed = seed;
    struct rig *rig = rig_new(&options);
    struct naive *naive = sl_calloc(1, sizeof(*naive));
    naive->tuples = sl_alloc(TUPLES * sizeof(*naive->tuples));
    sl_random_seed(&naive->random, seed);
    rig->user = naive;
    struct kept kept[2] = {{{0}, {0}, 0}, {{0}, {0}, 0}};
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1,
                                  (struct rig_component){.next = plant, .settled = learn});
    int32_t a =
        rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){.execute = branch});
    int32_t b = rig_component(
        rig, SL_TASK_BOLT, 2, -1, 1,
        (struct rig_component){
            .execute = hold_and_join, .tick = settle_rest, .tick_ms = 50, .is_manual = true});
    int32_t c = rig_component(rig, SL_TASK_BOLT, 3, -1, 1,
                              (struct rig_component){.execute = branch_direct});
    int32_t d =
        rig_component(rig, SL_TASK_BOLT, 4, -1, 0, (struct rig_component){.execute = finish_tuple});
    rig_read(rig, spout, a, SL_GROUPING_SHUFFLE);
    rig_read(rig, spout, d, SL_GROUPING_ALL);
    rig_read(rig, a, b, SL_GROUPING_PARTIAL_KEY);
    rig_read(rig, a, d, SL_GROUPING_GLOBAL);
    rig_read(rig, b, c, SL_GROUPING_SHUFFLE);
    rig_read(rig, c, d, SL_GROUPING_SHUFFLE);
    for (int32_t id = 0; id < 10; id++) {
        rig->tasks[id].limit = ROOTS / 2;
        rig_plan(rig, id / 2, id, id * 7 % executors);
    }
    rig->tasks[4].user = &kept[0];
    rig->tasks[5].user = &kept[1];
    if (ackers > 0) {
        int32_t acker = rig_component(rig, SL_TASK_ACKER, 0, -1, 0, (struct rig_component){0});
        for (int32_t i = 0; i < ackers; i++) {
            rig_plan(rig, acker, 20 + i, i % executors);
        }
    }
    rig_open(rig);
    rig_run(rig);
    for (int i = 0; i < 3000 && naive->told < ROOTS; i++) {
        rig_advance(rig, 50);
    }
    rig_advance(rig, 50);
    int failed = 0;
    for (int i = 0; i < ROOTS; i++) {
        const struct naive_root *root = &naive->roots[i];
        assert_int_equal(root->verdict, root->has_failed ? 2 : 1);
        failed += root->has_failed;
    }
    assert_in_range(failed, ROOTS / 50, ROOTS * 9 / 10);
    assert_true(naive->tuple_count > ROOTS * 3);
    for (int32_t id = 0; id < 2; id++) {
        assert_int_equal(rig_stats(rig, id).pending, 0);
    }
    sl_free(naive->tuples);
    sl_free(naive);
    rig_free(rig);
}

static void
test_trees_end_as_in_a_naive_tracker(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        compare_with_naive(seed, 1 + (int32_t)(seed % 3), 0);
    }
}

static void
test_trees_end_as_in_a_naive_tracker_with_ackers(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        compare_with_naive(seed, 1 + (int32_t)(seed % 3), 1 + (int32_t)(seed % 4));
    }
}

/* ---- one by one ---------------------------------------------------------------------------------
 */

static int
two_roots(struct rig_task *task)
{
    if (task->count >= 2) {
        return SL_SPOUT_DONE;
    }
    int64_t values[1] = {task->count};
    assert_int_equal(rig_emit_root(task, values, task->count++), 0);
    return SL_SPOUT_EMITTED;
}

static void
note_verdict(struct rig_task *task, int64_t id, bool has_failed)
{
    task->sum |= (has_failed ? 2 : 1) << (4 * id);
}

static void
hold_only(struct rig_task *task, struct sl_record *record)
{
    (void)record;
    sl_task_hold(task->io);
    task->count++;
}

static struct rig *
rig_two_held(void)
{
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    int32_t spout =
        rig_component(rig, SL_TASK_SPOUT, 0, -1, 1,
                      (struct rig_component){.next = two_roots, .settled = note_verdict});
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 1,
                                 (struct rig_component){.execute = hold_only, .is_manual = true});
    int32_t sink = rig_component(rig, SL_TASK_BOLT, 2, -1, 0, (struct rig_component){0});
    rig_read(rig, spout, bolt, SL_GROUPING_SHUFFLE);
    rig_read(rig, bolt, sink, SL_GROUPING_ALL);
    rig_plan(rig, spout, 1, 0);
    rig_plan(rig, bolt, 2, 0);
    rig_plan(rig, sink, 3, 0);
    rig_plan(rig, sink, 4, 0);
    rig_open(rig);
    rig_run(rig);
    assert_int_equal(rig->tasks[2].count, 2);
    return rig;
}

static void
test_a_record_has_a_pair_for_each_root_and_none_twice(void **state)
{
    (void)state;
    struct rig *rig = rig_two_held();
    struct rig_task *bolt = &rig->tasks[2];
    sl_anchors_clear(bolt->io);
    sl_anchors_add_held(bolt->io, 0);
    sl_anchors_add_held(bolt->io, 1);
    sl_anchors_add_held(bolt->io, 0);
    sl_anchors_add_held(bolt->io, 1);
    uint64_t before[2] = {rig_inner(rig, 2)->held.items[0].pair.edge,
                          rig_inner(rig, 2)->held.items[1].pair.edge};
    struct sl_emitter *emitter = sl_task_emitter(bolt->io, 0);
    int64_t values[1] = {5};
    assert_int_equal(rig_emit_collected(bolt, values), 0);
    uint64_t sums[2] = {0, 0};
    for (int32_t i = 0; i < 2; i++) {
        struct sl__outbox *outbox = sl__outbox_of(emitter->targets[i]);
        struct sl_record *record = (struct sl_record *)outbox->batch->data;
        assert_int_equal(record->anchors, 2);
        assert_int_equal(record->len,
                         sizeof(*record) + sizeof(struct sl_slot) + sizeof(struct sl_pair));
        struct sl_pair *second = (struct sl_pair *)((uint8_t *)record + record->len) - 1;
        assert_true(record->root != second->root);
        sums[0] ^= record->edge;
        sums[1] ^= second->edge;
    }
    /* All edges of the copies are in what the bolt holds. */
    for (int i = 0; i < 2; i++) {
        assert_true(sums[i] != 0);
        assert_int_equal(rig_inner(rig, 2)->held.items[i].pair.edge, before[i] ^ sums[i]);
    }
    rig_free(rig);
}

static void
test_handles_that_name_nothing_are_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_two_held();
    struct sl_task *io = rig->tasks[2].io;
    static const double handles[] = {-1, 2, 1e300, -1e300, 0x1p53, 0x1p28, 0x1p52 + 1};
    for (size_t i = 0; i < array_size(handles); i++) {
        assert_int_equal(sl_held_settle(io, handles[i], 0), SL_ENOTFOUND);
        assert_int_equal(sl_held_reset(io, handles[i]), SL_ENOTFOUND);
        sl_anchors_clear(io);
        sl_anchors_add_held(io, handles[i]);
        assert_int_equal(rig_inner(rig, 2)->anchors.count, 0);
    }
    assert_int_equal(sl_held_settle(io, (double)NAN, 0), SL_ENOTFOUND);
    assert_int_equal(sl_held_settle(io, 0, 0), 0);
    assert_int_equal(sl_held_settle(io, 1, 1), 0);
    rig_run(rig);
    assert_int_equal(rig->tasks[1].sum, 0x21);
    rig_free(rig);
}

static void
test_scratch_and_copy_refuse_sizes_and_targets_out_of_range(void **state)
{
    (void)state;
    struct rig *rig = rig_two_held();
    struct sl_task *io = rig->tasks[2].io;
    struct sl_emitter *emitter = sl_task_emitter(io, 0);
    assert_null(sl_task_scratch(io, -1));
    assert_null(sl_task_scratch(io, (int32_t)sizeof(struct sl_record) - 1));
    assert_non_null(sl_task_scratch(io, 64));
    sl_emitter_clear(emitter);
    assert_int_equal(sl_emitter_copy(io, emitter, 0, 64), SL_EINVAL);
    sl_emitter_add(emitter, 0);
    assert_int_equal(emitter->target_count, 2);
    assert_int_equal(sl_emitter_copy(io, emitter, 2, 64), SL_EINVAL);
    assert_int_equal(sl_emitter_copy(io, emitter, -1, 64), SL_EINVAL);
    assert_int_equal(sl_emitter_copy(io, emitter, 0, 1), SL_EINVAL);
    assert_int_equal(sl_emitter_copy(io, emitter, 0, 1 << 20), SL_EINVAL);
    assert_true(sl_emitter_copy(io, emitter, 0, 64) >= 64);
    sl_alloc_fail_after(0);
    assert_null(sl_task_scratch(io, 1 << 20));
    assert_int_equal(sl_err_last()->code, SL_ENOMEM);
    sl_alloc_fail_after(-1);
    rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_trees_end_as_in_a_naive_tracker),
    cmocka_unit_test(test_trees_end_as_in_a_naive_tracker_with_ackers),
    cmocka_unit_test(test_a_record_has_a_pair_for_each_root_and_none_twice),
    cmocka_unit_test(test_handles_that_name_nothing_are_refused),
    cmocka_unit_test(test_scratch_and_copy_refuse_sizes_and_targets_out_of_range),
};

UNIT_MAIN(tests)
