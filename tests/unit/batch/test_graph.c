// labels: short
#include "base/random.h"
#include "batch/graph.h"
#include "rig.h"

/* A chain of streams; every node is made from the one before it. */
static int32_t
add(struct sl_graph *graph, const char *name, uint32_t flags, int64_t slide, int64_t window)
{
    int32_t parent = (int32_t)graph->nodes.count - 1;
    struct sl_streaming_node node = {
        .name = name,
        .call_site = "script.lua:3",
        .slide_ms = slide,
        .window_ms = window,
        .flags = flags,
        .parents = &parent,
        .parent_count = (flags & SL_STREAMING_INPUT) == 0,
    };
    return sl_graph_add(graph, &node);
}

static void
test_T54_a_window_must_be_a_multiple_of_the_slide(void **state)
{
    (void)state;
    struct sl_graph graph;
    sl_graph_create(&graph, 1000);
    assert_int_equal(add(&graph, "in", SL_STREAMING_INPUT, 1000, 0), 0);
    assert_int_equal(add(&graph, "w", 0, 1000, 1500), SL_EINVAL);
    assert_non_null(strstr(sl_err_last()->msg, "window 1500 ms is no multiple"));
    assert_int_equal(add(&graph, "w", 0, 1500, 1000), SL_EINVAL);
    assert_int_equal(add(&graph, "w", 0, 2000, 3000), 1);
    assert_int_equal(add(&graph, "v", 0, 2000, 3000), SL_EINVAL);
    sl_graph_destroy(&graph);
}

static void
test_definitions_that_break_a_rule_are_refused(void **state)
{
    (void)state;
    struct sl_graph graph;
    sl_graph_create(&graph, 1000);
    assert_int_equal(add(&graph, "in", SL_STREAMING_INPUT, 1500, 0), SL_EINVAL);
    assert_int_equal(add(&graph, "in", SL_STREAMING_INPUT, 1000, 0), 0);
    assert_int_equal(add(&graph, "in", 0, 1000, 0), SL_EEXIST);
    assert_int_equal(add(&graph, "", 0, 1000, 0), SL_EINVAL);
    assert_int_equal(add(&graph, NULL, 0, 1000, 0), SL_EINVAL);
    assert_int_equal(add(&graph, "slow", 0, 2000, 0), 1);
    int32_t parents[] = {0, 1};
    struct sl_streaming_node both = {
        .name = "union", .slide_ms = 1000, .parents = parents, .parent_count = 2};
    assert_int_equal(sl_graph_add(&graph, &both), SL_EINVAL);
    assert_non_null(strstr(sl_err_last()->msg, "different slides"));
    parents[1] = 7;
    assert_int_equal(sl_graph_add(&graph, &both), SL_EINVAL);
    both.parent_count = 0;
    assert_int_equal(sl_graph_add(&graph, &both), SL_EINVAL);
    assert_int_equal(sl_graph_rename(&graph, 1, "in"), SL_EEXIST);
    assert_int_equal(sl_graph_rename(&graph, 1, "slow"), 0);
    assert_int_equal(sl_graph_rename(&graph, 1, "slower"), 0);
    assert_int_equal(sl_graph_find_name(&graph, "slower"), 1);
    sl_graph_destroy(&graph);
}

static void
test_T90_inputs_are_numbered_in_order(void **state)
{
    (void)state;
    struct sl_graph graph;
    sl_graph_create(&graph, 1000);
    static const char *const names[] = {"r0", "r1", "a", "b", "c"};
    for (int32_t i = 0; i < 5; i++) {
        uint32_t flags = SL_STREAMING_INPUT | (i < 2 ? SL_STREAMING_RECEIVER : 0);
        int32_t node = add(&graph, names[i], flags, 1000, 0);
        assert_int_equal(graph.nodes.items[node]->input_id, i);
    }
    sl_graph_destroy(&graph);
}

static void
test_T68_what_must_be_checkpointed_is_so_every_10_s(void **state)
{
    (void)state;
    static const int64_t rows[][2] = {{1000, 10000}, {3000, 12000}, {20000, 20000}, {100, 10000}};
    for (size_t i = 0; i < array_size(rows); i++) {
        struct sl_graph graph;
        sl_graph_create(&graph, rows[i][0]);
        add(&graph, "in", SL_STREAMING_INPUT, rows[i][0], 0);
        uint32_t flags = SL_STREAMING_MUST_CHECKPOINT | SL_STREAMING_PERSIST | SL_STREAMING_OUTPUT;
        int32_t node = add(&graph, "state", flags, rows[i][0], 0);
        assert_int_equal(sl_graph_start(&graph, 0, true), 0);
        assert_int_equal(graph.nodes.items[node]->checkpoint_ms, rows[i][1]);
        assert_int_equal(graph.nodes.items[node]->remember_ms, 2 * rows[i][1]);
        assert_int_equal(graph.nodes.items[0]->checkpoint_ms, 0);
        sl_graph_destroy(&graph);
    }
}

static void
start_with(int64_t checkpoint, int64_t remember, uint32_t flags, bool has_dir, const char *text)
{
    struct sl_graph graph;
    sl_graph_create(&graph, 1000);
    add(&graph, "in", SL_STREAMING_INPUT, 1000, 0);
    int32_t node = add(&graph, "kept", flags | SL_STREAMING_OUTPUT, 1000, 0);
    graph.nodes.items[node]->checkpoint_ms = checkpoint;
    graph.nodes.items[node]->remember_ms = remember;
    int rc = sl_graph_start(&graph, 0, has_dir);
    if (text == NULL) {
        assert_int_equal(rc, 0);
    } else {
        assert_int_equal(rc, SL_EINVAL);
        assert_non_null(strstr(sl_err_last()->msg, text));
        assert_non_null(strstr(sl_err_last()->msg, "kept (script.lua:3)"));
    }
    sl_graph_destroy(&graph);
}

static void
test_the_start_validates_checkpoint_intervals(void **state)
{
    (void)state;
    start_with(2000, 0, SL_STREAMING_PERSIST, true, NULL);
    start_with(2000, 0, SL_STREAMING_PERSIST, false, "needs a checkpoint directory");
    start_with(0, 0, SL_STREAMING_PERSIST | SL_STREAMING_MUST_CHECKPOINT, false,
               "needs a checkpoint directory");
    start_with(500, 0, SL_STREAMING_PERSIST, true, "no multiple of its slide");
    start_with(1500, 0, SL_STREAMING_PERSIST, true, "no multiple of its slide");
    start_with(2000, 0, 0, true, "must be persisted");
}

static void
test_T99_a_graph_without_output_does_not_start(void **state)
{
    (void)state;
    struct sl_graph graph;
    sl_graph_create(&graph, 1000);
    add(&graph, "in", SL_STREAMING_INPUT, 1000, 0);
    assert_int_equal(sl_graph_start(&graph, 0, true), SL_EINVAL);
    assert_non_null(strstr(sl_err_last()->msg, "no output operation"));
    sl_graph_destroy(&graph);
}

static void
count_drop(void *ctx, int32_t node, const struct sl_streaming_dataset *dataset)
{
    (void)node;
    (void)dataset;
    (*(int *)ctx)++;
}

static bool
holds(struct rig *rig, int32_t node, int64_t time)
{
    struct sl_streaming_dataset datasets[64];
    int32_t count = sl_streaming_datasets(rig->context, node, datasets, 64);
    assert_true(count >= 0 && count <= 64);
    for (int32_t i = 0; i < count; i++) {
        if (datasets[i].time == time) {
            return true;
        }
    }
    return false;
}

static void
test_T55_nested_windows_are_cleaned_up(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_add(&rig, "in", SL_STREAMING_INPUT, -1, 1000, 0);
    int32_t map = rig_add(&rig, "map", 0, 0, 1000, 0);
    int32_t inner = rig_add(&rig, "inner", 0, map, 1000, 2000);
    int32_t outer = rig_add(&rig, "outer", SL_STREAMING_OUTPUT, inner, 2000, 4000);
    assert_int_equal(sl_streaming_remember(rig.context, 3000), 0);
    assert_int_equal(sl_streaming_remember(rig.context, 3000), SL_ECONFLICT);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 10000);
    struct sl_streaming_node node;
    static const int64_t remember[] = {9000, 9000, 7000, 3000};
    for (int32_t i = 0; i < 4; i++) {
        assert_int_equal(sl_streaming_node_get(rig.context, i, &node), 0);
        assert_int_equal(node.remember_ms, remember[i]);
    }
    assert_true(holds(&rig, outer, 10000) && holds(&rig, outer, 8000));
    assert_false(holds(&rig, outer, 6000));
    assert_true(holds(&rig, inner, 4000));
    assert_false(holds(&rig, inner, 3000));
    assert_true(holds(&rig, map, 2000));
    assert_false(holds(&rig, map, 1000));
    assert_int_equal(rig.computed[outer], 5);
    rig_destroy(&rig);
}

static void
test_T60_a_checkpoint_interval_sets_what_is_remembered(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct rig rig;
    rig_create(&rig, 0);
    rig.options.checkpoint_dir = dir;
    rig.data_dir = dir;
    rig_open(&rig);
    rig_add(&rig, "in", SL_STREAMING_INPUT, -1, 1000, 0);
    uint32_t flags = SL_STREAMING_MUST_CHECKPOINT | SL_STREAMING_PERSIST | SL_STREAMING_STATEFUL |
                     SL_STREAMING_OWNS_FILES;
    int32_t kept = rig_add(&rig, "state", flags, 0, 1000, 0);
    rig_add(&rig, "out", SL_STREAMING_OUTPUT, kept, 1000, 0);
    assert_int_equal(sl_streaming_node_checkpoint(rig.context, kept, 3000), 0);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 10000);
    struct sl_streaming_node node;
    assert_int_equal(sl_streaming_node_get(rig.context, kept, &node), 0);
    assert_int_equal(node.remember_ms, 6000);
    assert_true(holds(&rig, kept, 10000));
    assert_true(holds(&rig, kept, 5000));
    assert_false(holds(&rig, kept, 4000));
    assert_int_equal(sl_streaming_node_checkpoint(rig.context, kept, 6000), SL_ECONFLICT);
    assert_int_equal(sl_streaming_node_persist(rig.context, kept, false), SL_ECONFLICT);
    rig_destroy(&rig);
    rig_dir_remove(dir);
}

static void
test_two_outputs_compute_a_stream_once(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_add(&rig, "in", SL_STREAMING_INPUT, -1, 1000, 0);
    rig_add(&rig, "map", 0, 0, 1000, 0);
    rig_add(&rig, "a", SL_STREAMING_OUTPUT, 1, 1000, 0);
    rig_add(&rig, "b", SL_STREAMING_OUTPUT, 1, 1000, 0);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 3000);
    assert_int_equal(rig.computed[0], 3);
    assert_int_equal(rig.computed[1], 3);
    struct sl_streaming_dataset dataset;
    assert_int_equal(sl_streaming_put(rig.context, 1, 3000, 99), SL_EEXIST);
    assert_int_equal(sl_streaming_find(rig.context, 1, 3000, &dataset), SL_STREAMING_FOUND);
    rig_destroy(&rig);
}

static void
test_a_stream_that_no_output_uses_is_not_initialised(void **state)
{
    (void)state;
    struct rig rig;
    rig_create(&rig, 0);
    rig_open(&rig);
    rig_simple_graph(&rig);
    int32_t idle = rig_add(&rig, "idle", SL_STREAMING_INPUT, -1, 1000, 0);
    struct sl_streaming_dataset dataset;
    assert_int_equal(sl_streaming_find(rig.context, 0, 1000, &dataset), SL_ECONFLICT);
    assert_int_equal(sl_streaming_start(rig.context), 0);
    rig_advance_to(&rig, 5000);
    assert_int_equal(sl_streaming_find(rig.context, idle, 1000, &dataset), SL_ECONFLICT);
    assert_non_null(strstr(sl_err_last()->msg, "never initialised"));
    /* SPARK-11511: it is ignored, the others are cleaned up. */
    assert_int_equal(sl_streaming_datasets(rig.context, 0, NULL, 0), 1);
    rig_destroy(&rig);
}

/* Datasets are kept exactly as long as the rules say, for graphs and orders of any kind. */
static void
test_the_datasets_of_a_node_agree_with_a_naive_set(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 77);
    for (int round = 0; round < 200; round++) {
        struct sl_graph graph;
        bool has[64] = {false};
        sl_graph_create(&graph, 1);
        add(&graph, "in", SL_STREAMING_INPUT | SL_STREAMING_OUTPUT, 1, 0);
        graph.nodes.items[0]->remember_ms = 1 + (int64_t)sl_random_below(&random, 10);
        graph.outputs.items[0] = 0;
        assert_int_equal(sl_graph_start(&graph, 0, false), 0);
        int64_t remember = graph.nodes.items[0]->remember_ms;
        for (int step = 0; step < 100; step++) {
            int64_t time = 1 + (int64_t)sl_random_below(&random, 63);
            struct sl_streaming_dataset found;
            int kind = sl_graph_find(&graph, 0, time, &found);
            assert_int_equal(kind, has[time] ? SL_STREAMING_FOUND : SL_STREAMING_COMPUTE);
            if (!has[time]) {
                assert_int_equal(sl_graph_put(&graph, 0, time, (uint64_t)time), 0);
                has[time] = true;
            } else {
                assert_int_equal(found.handle, time);
            }
            if (step % 10 == 9) {
                int dropped = 0;
                int expected = 0;
                for (int64_t t = 0; t <= time - remember; t++) {
                    expected += has[t];
                    has[t] = false;
                }
                sl_graph_clear_metadata(&graph, time, count_drop, &dropped);
                assert_int_equal(dropped, expected);
            }
        }
        sl_graph_destroy(&graph);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_T54_a_window_must_be_a_multiple_of_the_slide),
        cmocka_unit_test(test_definitions_that_break_a_rule_are_refused),
        cmocka_unit_test(test_T90_inputs_are_numbered_in_order),
        cmocka_unit_test(test_T68_what_must_be_checkpointed_is_so_every_10_s),
        cmocka_unit_test(test_the_start_validates_checkpoint_intervals),
        cmocka_unit_test(test_T99_a_graph_without_output_does_not_start),
        cmocka_unit_test(test_T55_nested_windows_are_cleaned_up),
        cmocka_unit_test(test_T60_a_checkpoint_interval_sets_what_is_remembered),
        cmocka_unit_test(test_two_outputs_compute_a_stream_once),
        cmocka_unit_test(test_a_stream_that_no_output_uses_is_not_initialised),
        cmocka_unit_test(test_the_datasets_of_a_node_agree_with_a_naive_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
