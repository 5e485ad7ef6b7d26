#include "base/err.h"
#include "topology/system.h"
#include "topology/topology_fixture.h"

static const struct sl_system_config no_ackers = {0};
static const struct sl_system_config two_ackers = {2};

static bool
has_input(const struct sl_topology *t, const char *reader, const char *source, const char *stream,
          enum sl_grouping_kind grouping)
{
    const struct sl_topology_component *c = sl_topology_find(t, reader);
    assert_non_null(c);
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (strcmp(c->inputs[i].source, source) == 0 && strcmp(c->inputs[i].stream, stream) == 0) {
            assert_int_equal(c->inputs[i].grouping, grouping);
            if (grouping == SL_GROUPING_FIELDS) {
                assert_int_equal(c->inputs[i].field_count, 1);
                assert_string_equal(c->inputs[i].fields[0], "id");
            }
            return true;
        }
    }
    return false;
}

static void
test_user_components_stay_in_front_and_unchanged(void **state)
{
    (void)state;
    struct sl_topology *user = fixture_word_count();
    struct sl_topology *before = sl_topology_dup(user);
    struct sl_topology *system = sl_system_topology_new(user, &two_ackers);
    assert_true(sl_topology_equal(user, before));
    assert_true(system->is_system);
    static const char *const names[] = {
        "lines", "split", "count", "__acker", "__topology_master", "__metrics", "__system"};
    assert_int_equal(system->component_count, 7);
    for (uint32_t i = 0; i < 7; i++) {
        assert_string_equal(system->components[i].name, names[i]);
        assert_int_equal(system->components[i].kind,
                         i == 0 ? SL_COMPONENT_SPOUT
                                : (i < 3 ? SL_COMPONENT_BOLT : SL_COMPONENT_SYSTEM));
    }
    assert_string_equal(system->components[2].inputs[0].source, "split");
    assert_int_equal(system->components[3].parallelism, 2);
    assert_int_equal(system->components[4].parallelism, 1);
    assert_int_equal(system->components[5].parallelism, 0);
    assert_int_equal(system->components[6].parallelism, 0);
    sl_topology_free(user);
    sl_topology_free(before);
    sl_topology_free(system);
}

static void
test_acker_reads_by_root_and_answers_directly(void **state)
{
    (void)state;
    struct sl_topology *user = fixture_word_count();
    struct sl_topology *t = sl_system_topology_new(user, &two_ackers);
    assert_true(has_input(t, "__acker", "lines", "__ack_init", SL_GROUPING_FIELDS));
    static const char *const answers[] = {"__ack_ack", "__ack_fail", "__ack_reset_timeout"};
    for (size_t i = 0; i < 3; i++) {
        assert_true(has_input(t, "__acker", "split", answers[i], SL_GROUPING_FIELDS));
        assert_true(has_input(t, "__acker", "count", answers[i], SL_GROUPING_FIELDS));
        assert_false(has_input(t, "__acker", "lines", answers[i], SL_GROUPING_FIELDS));
        assert_true(has_input(t, "lines", "__acker", answers[i], SL_GROUPING_DIRECT));
        assert_true(sl_topology_find_stream(sl_topology_find(t, "__acker"), answers[i])->is_direct);
    }
    assert_false(has_input(t, "split", "__acker", "__ack_ack", SL_GROUPING_DIRECT));
    assert_null(sl_topology_find_stream(sl_topology_find(t, "split"), "__ack_init"));
    sl_topology_free(user);
    sl_topology_free(t);
}

static void
test_metrics_ticks_and_control_reach_their_readers(void **state)
{
    (void)state;
    struct sl_topology *user = fixture_word_count();
    struct sl_topology *t = sl_system_topology_new(user, &two_ackers);
    static const char *const senders[] = {"lines", "split", "count", "__acker",
                                          "__topology_master"};
    for (size_t i = 0; i < 5; i++) {
        assert_true(
            has_input(t, "__metrics", senders[i], "__metrics", SL_GROUPING_LOCAL_OR_SHUFFLE));
    }
    assert_true(has_input(t, "__topology_master", "__metrics", "__metrics", SL_GROUPING_DIRECT));
    assert_true(has_input(t, "__topology_master", "__system", "__heartbeat", SL_GROUPING_DIRECT));
    assert_true(has_input(t, "__system", "__topology_master", "__control", SL_GROUPING_DIRECT));
    assert_true(has_input(t, "__metrics", "__system", "__metrics_tick", SL_GROUPING_DIRECT));
    assert_true(has_input(t, "split", "__system", "__tick", SL_GROUPING_DIRECT));
    assert_true(has_input(t, "__acker", "__system", "__tick", SL_GROUPING_DIRECT));
    assert_false(has_input(t, "lines", "__system", "__tick", SL_GROUPING_DIRECT));
    sl_topology_free(user);
    sl_topology_free(t);
}

/* Every input of a system topology must exist, be direct where it says so and name known fields. */
static void
assert_consistent(const struct sl_topology *t)
{
    for (uint32_t i = 0; i < t->component_count; i++) {
        const struct sl_topology_component *c = &t->components[i];
        for (uint32_t j = 0; j < c->input_count; j++) {
            const struct sl_topology_input *input = &c->inputs[j];
            const struct sl_topology_component *source = sl_topology_find(t, input->source);
            assert_non_null(source);
            const struct sl_topology_stream *stream =
                sl_topology_find_stream(source, input->stream);
            assert_non_null(stream);
            assert_int_equal(stream->is_direct, input->grouping == SL_GROUPING_DIRECT);
            for (uint32_t k = 0; k < input->field_count; k++) {
                assert_true(sl_topology_find_field(stream, input->fields[k]) >= 0);
            }
        }
    }
}

static void
test_inputs_of_the_engine_are_consistent(void **state)
{
    (void)state;
    struct sl_topology *user = fixture_word_count();
    struct sl_topology *with = sl_system_topology_new(user, &two_ackers);
    struct sl_topology *without = sl_system_topology_new(user, &no_ackers);
    assert_consistent(with);
    assert_consistent(without);
    assert_null(sl_topology_find(without, "__acker"));
    assert_int_equal(sl_topology_find(without, "lines")->input_count, 0);
    struct sl_topology *again = sl_system_topology_new(user, &two_ackers);
    assert_true(sl_topology_equal(with, again));
    sl_topology_free(user);
    sl_topology_free(with);
    sl_topology_free(without);
    sl_topology_free(again);
}

static void
test_system_of_a_system_topology_is_refused(void **state)
{
    (void)state;
    struct sl_topology *user = fixture_word_count();
    struct sl_topology *system = sl_system_topology_new(user, &no_ackers);
    assert_null(sl_system_topology_new(system, &no_ackers));
    assert_int_equal(sl_err_last()->code, SL_EINVAL);
    sl_err_clear();
    sl_topology_free(user);
    sl_topology_free(system);
}

static void
test_config_decides_the_ackers(void **state)
{
    (void)state;
    static const struct {
        const char *ackers;
        const char *acking;
        int rc;
        uint32_t expected;
    } rows[] = {
        {NULL, NULL, 0, 0},          {"3", NULL, 0, 3},
        {"0", NULL, 0, 0},           {"3", "false", 0, 0},
        {"3", "true", 0, 3},         {"-1", NULL, SL_EINVAL, 0},
        {"1.5", NULL, SL_EINVAL, 0}, {"\"2\"", NULL, SL_EINVAL, 0},
        {"1e9", NULL, SL_EINVAL, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sl_topology *t = fixture_word_count();
        struct sl_system_config config;
        if (rows[i].ackers != NULL) {
            sl_topology_set(t, sl_topology_text("ackers"), sl_topology_text(rows[i].ackers));
        }
        if (rows[i].acking != NULL) {
            sl_topology_set(t, sl_topology_text("acking"), sl_topology_text(rows[i].acking));
        }
        assert_int_equal(sl_system_config_read(t, &config), rows[i].rc);
        assert_int_equal(config.ackers, rows[i].expected);
        sl_topology_free(t);
    }
    sl_err_clear();
}

/* API section 4: bolts in order of declaration, __acker, __topology_master, then spouts. */
static void
test_task_ids_are_bolts_acker_master_spouts(void **state)
{
    (void)state;
    struct sl_topology *user = fixture_new();
    fixture_add(user, SL_COMPONENT_SPOUT, "spout", "word", 2);
    fixture_shuffle(user, fixture_add(user, SL_COMPONENT_BOLT, "split", "word", 3), "spout");
    fixture_shuffle(user, fixture_add(user, SL_COMPONENT_BOLT, "count", "word", 3), "split");
    struct sl_system_config one = {1};
    struct sl_topology *t = sl_system_topology_new(user, &one);
    struct sl_task_range ranges[7];
    assert_int_equal(sl_topology_task_ranges(t, ranges), 0);
    static const int32_t expected[7][2] = {{9, 2}, {1, 3}, {4, 3}, {7, 1}, {8, 1}, {9, 0}, {9, 0}};
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(ranges[i].count, expected[i][1]);
        if (ranges[i].count > 0) {
            assert_int_equal(ranges[i].first, expected[i][0]);
        }
    }
    assert_int_equal(sl_topology_task_ranges(user, ranges), SL_EINVAL);
    sl_topology_free(user);
    sl_topology_free(t);
}

static void
test_task_ids_that_run_out_are_an_error(void **state)
{
    (void)state;
    enum { COUNT = 2200 };
    struct sl_topology *user = fixture_new();
    for (uint32_t i = 0; i < COUNT; i++) {
        fixture_add(user, SL_COMPONENT_SPOUT, "s", "word", 1000000);
    }
    struct sl_topology *t = sl_system_topology_new(user, &no_ackers);
    struct sl_task_range *ranges = sl_calloc(COUNT + 4, sizeof(*ranges));
    assert_int_equal(sl_topology_task_ranges(t, ranges), SL_ERANGE);
    sl_free(ranges);
    sl_topology_free(user);
    sl_topology_free(t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_user_components_stay_in_front_and_unchanged),
        cmocka_unit_test(test_acker_reads_by_root_and_answers_directly),
        cmocka_unit_test(test_metrics_ticks_and_control_reach_their_readers),
        cmocka_unit_test(test_inputs_of_the_engine_are_consistent),
        cmocka_unit_test(test_system_of_a_system_topology_is_refused),
        cmocka_unit_test(test_config_decides_the_ackers),
        cmocka_unit_test(test_task_ids_are_bolts_acker_master_spouts),
        cmocka_unit_test(test_task_ids_that_run_out_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
