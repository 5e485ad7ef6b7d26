#include <stdio.h>

#include "base/err.h"
#include "topology/topology_fixture.h"
#include "topology/validate.h"

/* The problems of a topology as lines "code component stream", to compare at once. Frees t. */
static const char *
problems_of(struct sl_topology *t)
{
    static char text[4096];
    size_t used = 0;
    struct sl_topology_problems *problems = sl_topology_validate_new(t);
    assert_non_null(problems);
    text[0] = '\0';
    for (uint32_t i = 0; i < problems->count; i++) {
        const struct sl_topology_problem *p = &problems->items[i];
        assert_true(strlen(p->message) > 0);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s %s", i > 0 ? "; " : "",
                                 sl_topology_problem_name(p->code), p->component_name, p->stream);
    }
    sl_topology_problems_free(problems);
    sl_topology_free(t);
    return text;
}

/* A topology that is fine: s -> b. */
static struct sl_topology *
fine(void)
{
    struct sl_topology *t = fixture_new();
    fixture_spout(t, "s");
    fixture_shuffle(t, fixture_bolt(t, "b"), "s");
    return t;
}

/* fine() with one more bolt that reads this. */
static struct sl_topology *
reading(const char *source, const char *stream, enum sl_grouping_kind grouping, const char *fields)
{
    struct sl_topology *t = fine();
    t->components[0].streams[0].name[0] = 'd';
    uint32_t c = fixture_bolt(t, "c");
    fixture_reads(t, c, source, stream, grouping, fields);
    return t;
}

static void
test_valid_topologies_have_no_problems(void **state)
{
    (void)state;
    assert_string_equal(problems_of(fine()), "");
    assert_string_equal(problems_of(fixture_word_count()), "");
}

/* Row A7 of the Storm and JStorm reference: the valid topology and its three broken variants. */
static void
test_A7_validation(void **state)
{
    (void)state;
    struct sl_topology *t = fixture_new();
    fixture_add(t, SL_COMPONENT_SPOUT, "1", "word", 3);
    uint32_t counter = fixture_add(t, SL_COMPONENT_BOLT, "2", "word count", 4);
    fixture_reads(t, counter, "1", "default", SL_GROUPING_FIELDS, "word");
    static const char *const broken[][4] = {
        {"3", "default", "word", "unknown-component 2 default"},
        {"1", "default", "non-existent-field", "unknown-field 2 default"},
        {"1", "non-existent-stream", "word", "unknown-stream 2 non-existent-stream"},
    };
    for (size_t i = 0; i < 3; i++) {
        struct sl_topology *variant = fixture_new();
        fixture_add(variant, SL_COMPONENT_SPOUT, "1", "word", 3);
        uint32_t c = fixture_add(variant, SL_COMPONENT_BOLT, "2", "word count", 4);
        fixture_reads(variant, c, broken[i][0], broken[i][1], SL_GROUPING_FIELDS, broken[i][2]);
        assert_string_equal(problems_of(variant), broken[i][3]);
    }
    assert_string_equal(problems_of(t), "");
}

static void
test_bad_names_of_topology_component_and_stream(void **state)
{
    (void)state;
    static char long_name[301];
    memset(long_name, 'x', 300);
    static const char *bad[] = {"",     ".",   "..",       "__x", "a/b",    "a b",
                                "\x01", "a\n", "\xc3\xa9", "a:b", long_name};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sl_topology *t = sl_topology_new(sl_topology_text(bad[i]));
        fixture_spout(t, "s");
        assert_string_equal(problems_of(t), "bad-name  ");
        t = fixture_new();
        fixture_spout(t, bad[i]);
        assert_memory_equal(problems_of(t), "bad-name ", 9);
        t = fixture_new();
        fixture_spout(t, "s");
        fixture_stream(t, bad[i], "a", false);
        assert_memory_equal(problems_of(t), "bad-name s ", 11);
    }
    static const char *good[] = {"a", "_a", "a__", "...", ".a", "-", "A.b-c_9"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct sl_topology *t = sl_topology_new(sl_topology_text(good[i]));
        fixture_spout(t, good[i]);
        fixture_stream(t, good[i], "a", false);
        assert_string_equal(problems_of(t), "");
    }
    long_name[64] = '\0';
    struct sl_topology *t = sl_topology_new(sl_topology_text(long_name));
    fixture_spout(t, long_name);
    assert_string_equal(problems_of(t), "");
}

static void
test_messages_show_control_characters_readably(void **state)
{
    (void)state;
    struct sl_topology *t = sl_topology_new((struct sl_topology_text){"a\0b\n", 4});
    fixture_spout(t, "s");
    struct sl_topology_problems *problems = sl_topology_validate_new(t);
    assert_int_equal(problems->count, 1);
    assert_non_null(strstr(problems->items[0].message, "a\\x00b\\n"));
    assert_null(strchr(problems->items[0].message, '\n'));
    sl_topology_problems_free(problems);
    sl_topology_free(t);
}

static void
test_duplicate_components_streams_and_fields(void **state)
{
    (void)state;
    struct sl_topology *t = fine();
    fixture_spout(t, "s");
    fixture_shuffle(t, fixture_bolt(t, "s"), "s");
    assert_string_equal(problems_of(t), "duplicate-component s ; duplicate-component s ");
    t = fine();
    fixture_stream(t, "default", "a", false);
    assert_string_equal(problems_of(t), "duplicate-stream b default");
    t = fine();
    fixture_stream(t, "late", "a b a a", false);
    assert_string_equal(problems_of(t), "duplicate-field b late; duplicate-field b late");
}

static void
test_bad_field_names(void **state)
{
    (void)state;
    static char long_name[258];
    memset(long_name, 'x', 257);
    static const char *bad[] = {"", "a\x01", "a\x7f", long_name};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sl_topology *t = fine();
        struct sl_topology_text field = sl_topology_text(bad[i]);
        struct sl_topology_stream_spec stream = {sl_topology_text("x"), false, &field, 1};
        sl_topology_add_stream(t, 0, &stream);
        assert_string_equal(problems_of(t), "bad-field-name s x");
    }
    struct sl_topology *t = fine();
    fixture_stream(t, "x", "caf\xc3\xa9 a/b __c", false);
    assert_string_equal(problems_of(t), "");
}

static void
test_unknown_component_stream_and_field(void **state)
{
    (void)state;
    assert_string_equal(problems_of(reading("x", "default", SL_GROUPING_SHUFFLE, "")),
                        "unknown-component c default");
    assert_string_equal(problems_of(reading("s", "late", SL_GROUPING_ALL, "")),
                        "unknown-stream c late");
    assert_string_equal(problems_of(reading("s", "default", SL_GROUPING_FIELDS, "word x y")),
                        "unknown-field c default; unknown-field c default");
    assert_string_equal(problems_of(reading("s", "default", SL_GROUPING_PARTIAL_KEY, "x")),
                        "unknown-field c default");
    assert_string_equal(problems_of(reading("s", "default", SL_GROUPING_FIELDS, "")),
                        "no-fields c default");
    assert_string_equal(problems_of(reading("s", "default", SL_GROUPING_FIELDS, "word word")),
                        "duplicate-field c default");
    assert_string_equal(problems_of(reading("s", "default", (enum sl_grouping_kind)99, "")),
                        "bad-grouping c default");
}

static void
test_same_stream_is_read_once_by_a_bolt(void **state)
{
    (void)state;
    struct sl_topology *t = fine();
    fixture_reads(t, 1, "s", "default", SL_GROUPING_ALL, "");
    assert_string_equal(problems_of(t), "duplicate-input b default");
    t = fine();
    fixture_stream(t, "late", "a", false);
    fixture_reads(t, fixture_bolt(t, "c"), "b", "default", SL_GROUPING_ALL, "");
    fixture_reads(t, 2, "b", "late", SL_GROUPING_ALL, "");
    assert_string_equal(problems_of(t), "");
}

static void
test_problem_names_the_input(void **state)
{
    (void)state;
    struct sl_topology *t = fine();
    fixture_shuffle(t, 1, "x");
    struct sl_topology_problems *problems = sl_topology_validate_new(t);
    assert_int_equal(problems->count, 1);
    assert_int_equal(problems->error_count, 1);
    assert_int_equal(problems->items[0].component, 1);
    assert_int_equal(problems->items[0].input, 1);
    assert_int_equal(problems->items[0].severity, SL_TOPOLOGY_ERROR);
    sl_topology_problems_free(problems);
    sl_topology_free(t);
}

static void
test_spouts_and_bolts_have_the_inputs_they_may(void **state)
{
    (void)state;
    assert_string_equal(problems_of(fixture_new()), "no-spout  ");
    struct sl_topology *t = fixture_new();
    fixture_shuffle(t, fixture_bolt(t, "b"), "b");
    assert_string_equal(problems_of(t), "no-spout  ; cycle b ");
    t = fine();
    fixture_shuffle(t, 0, "b");
    fixture_bolt(t, "c");
    assert_string_equal(problems_of(t),
                        "spout-with-inputs s default; bolt-without-inputs c ; cycle s ");
}

static void
test_direct_grouping_and_direct_stream_go_together(void **state)
{
    (void)state;
    assert_string_equal(problems_of(reading("s", "default", SL_GROUPING_DIRECT, "")),
                        "direct-mismatch c default");
    struct sl_topology *t = fine();
    fixture_stream(t, "ctl", "x", true);
    fixture_reads(t, fixture_bolt(t, "c"), "b", "ctl", SL_GROUPING_DIRECT, "");
    fixture_reads(t, fixture_bolt(t, "d"), "b", "ctl", SL_GROUPING_SHUFFLE, "");
    assert_string_equal(problems_of(t), "direct-mismatch d ctl");
}

static void
test_parallelism_must_be_a_whole_number_within_limits(void **state)
{
    (void)state;
    static const double bad[] = {0, -1, 1.5, 1e9, NAN, INFINITY};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sl_topology *t = fixture_new();
        fixture_add(t, SL_COMPONENT_SPOUT, "s", "word", bad[i]);
        assert_string_equal(problems_of(t), "bad-parallelism s ");
    }
    struct sl_topology *t = fixture_new();
    fixture_add(t, SL_COMPONENT_SPOUT, "s", "word", 1000000);
    assert_string_equal(problems_of(t), "");
}

static struct sl_topology *
keyed(double parallelism, const char *key_groups)
{
    struct sl_topology *t = fixture_new();
    fixture_spout(t, "s");
    uint32_t b = fixture_add(t, SL_COMPONENT_BOLT, "b", "word", parallelism);
    fixture_reads(t, b, "s", "default", SL_GROUPING_FIELDS, "word");
    if (key_groups != NULL) {
        sl_topology_set(t, sl_topology_text("key_groups"), sl_topology_text(key_groups));
    }
    return t;
}

static void
test_keyed_parallelism_is_at_most_the_key_groups(void **state)
{
    (void)state;
    assert_string_equal(problems_of(keyed(4, "4")), "");
    assert_string_equal(problems_of(keyed(5, "4")), "bad-parallelism b ");
    assert_string_equal(problems_of(keyed(32768, NULL)), "");
    assert_string_equal(problems_of(keyed(32769, NULL)), "bad-parallelism b ");
    static const char *const bad[] = {"0", "-1", "1.5", "32769", "\"8\"", "nan", "{}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_string_equal(problems_of(keyed(1, bad[i])), "bad-key-groups  ");
    }
}

static void
test_resources_are_finite_and_not_negative(void **state)
{
    (void)state;
    struct sl_topology *t = fine();
    t->components[0].resources = (struct sl_topology_resources){0, 1e9, 0.5};
    assert_string_equal(problems_of(t), "");
    t = fine();
    t->components[0].resources = (struct sl_topology_resources){-1, INFINITY, -INFINITY};
    assert_string_equal(problems_of(t), "bad-resource s ; bad-resource s ; bad-resource s ");
}

static void
test_state_spouts_and_system_components_are_refused(void **state)
{
    (void)state;
    struct sl_topology *t = fine();
    fixture_add(t, SL_COMPONENT_STATE_SPOUT, "state", "a", 1);
    fixture_add(t, SL_COMPONENT_SYSTEM, "sys", "a", 1);
    fixture_add(t, (enum sl_component_kind)9, "odd", "a", 1);
    assert_string_equal(problems_of(t), "state-spout state ; bad-kind sys ; bad-kind odd ");
}

static void
test_cycle_is_a_warning_told_once(void **state)
{
    (void)state;
    struct sl_topology *t = fine();
    uint32_t c = fixture_bolt(t, "c");
    fixture_shuffle(t, c, "b");
    fixture_shuffle(t, 1, "c");
    struct sl_topology_problems *problems = sl_topology_validate_new(t);
    assert_int_equal(problems->count, 1);
    assert_int_equal(problems->error_count, 0);
    assert_int_equal(problems->items[0].severity, SL_TOPOLOGY_WARNING);
    assert_non_null(strstr(problems->items[0].message, "'b' -> 'c' -> 'b'"));
    sl_topology_problems_free(problems);
    sl_topology_free(t);
}

static void
test_bolts_no_spout_leads_to_are_a_warning(void **state)
{
    (void)state;
    struct sl_topology *t = fine();
    uint32_t c = fixture_bolt(t, "c");
    uint32_t d = fixture_bolt(t, "d");
    fixture_shuffle(t, c, "d");
    fixture_shuffle(t, d, "c");
    assert_string_equal(problems_of(t), "cycle c ; unreachable c ; unreachable d ");
}

static void
test_all_problems_are_found_in_one_pass(void **state)
{
    (void)state;
    struct sl_topology *t = sl_topology_new(sl_topology_text("a/b"));
    fixture_add(t, SL_COMPONENT_SPOUT, "__s", "x x", 0);
    uint32_t b = fixture_add(t, SL_COMPONENT_BOLT, "b", "word", 1.5);
    fixture_shuffle(t, b, "nobody");
    fixture_reads(t, b, "__s", "default", SL_GROUPING_FIELDS, "y");
    assert_string_equal(problems_of(t),
                        "bad-name  ; bad-name __s ; bad-parallelism __s ; duplicate-field __s "
                        "default; bad-parallelism b ; unknown-component b default; unknown-field b "
                        "default");
}

static void
test_validation_of_large_topologies_takes_no_quadratic_time(void **state)
{
    (void)state;
    struct sl_topology *t = fixture_new();
    char name[16];
    fixture_spout(t, "s");
    for (uint32_t i = 0; i < 30000; i++) {
        snprintf(name, sizeof(name), "b%u", i);
        uint32_t b = fixture_bolt(t, name);
        fixture_shuffle(t, b, "s");
        fixture_shuffle(t, b, name);
    }
    struct sl_topology_problems *problems = sl_topology_validate_new(t);
    assert_int_equal(problems->count, 30000);
    assert_int_equal(problems->error_count, 0);
    sl_topology_problems_free(problems);
    sl_topology_free(t);
}

static void
test_system_topology_is_not_validated(void **state)
{
    (void)state;
    struct sl_topology *t = fine();
    t->is_system = true;
    assert_null(sl_topology_validate_new(t));
    assert_int_equal(sl_err_last()->code, SL_EINVAL);
    sl_err_clear();
    sl_topology_free(t);
}

static void
test_every_code_has_a_name(void **state)
{
    (void)state;
    for (int32_t code = SL_TOPOLOGY_BAD_NAME; code <= SL_TOPOLOGY_UNREACHABLE; code++) {
        assert_non_null(sl_topology_problem_name(code));
    }
    assert_null(sl_topology_problem_name(0));
    assert_null(sl_topology_problem_name(-1));
    assert_null(sl_topology_problem_name(SL_TOPOLOGY_UNREACHABLE + 1));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_topologies_have_no_problems),
        cmocka_unit_test(test_A7_validation),
        cmocka_unit_test(test_bad_names_of_topology_component_and_stream),
        cmocka_unit_test(test_messages_show_control_characters_readably),
        cmocka_unit_test(test_duplicate_components_streams_and_fields),
        cmocka_unit_test(test_bad_field_names),
        cmocka_unit_test(test_unknown_component_stream_and_field),
        cmocka_unit_test(test_same_stream_is_read_once_by_a_bolt),
        cmocka_unit_test(test_problem_names_the_input),
        cmocka_unit_test(test_spouts_and_bolts_have_the_inputs_they_may),
        cmocka_unit_test(test_direct_grouping_and_direct_stream_go_together),
        cmocka_unit_test(test_parallelism_must_be_a_whole_number_within_limits),
        cmocka_unit_test(test_keyed_parallelism_is_at_most_the_key_groups),
        cmocka_unit_test(test_resources_are_finite_and_not_negative),
        cmocka_unit_test(test_state_spouts_and_system_components_are_refused),
        cmocka_unit_test(test_cycle_is_a_warning_told_once),
        cmocka_unit_test(test_bolts_no_spout_leads_to_are_a_warning),
        cmocka_unit_test(test_all_problems_are_found_in_one_pass),
        cmocka_unit_test(test_validation_of_large_topologies_takes_no_quadratic_time),
        cmocka_unit_test(test_system_topology_is_not_validated),
        cmocka_unit_test(test_every_code_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
