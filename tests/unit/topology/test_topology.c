#include "topology/topology_fixture.h"

static void
test_builder_keeps_order_and_content(void **state)
{
    (void)state;
    struct sl_topology *t = fixture_word_count();
    assert_string_equal(t->name, "wordcount");
    assert_int_equal(t->component_count, 3);
    assert_string_equal(t->components[2].name, "count");
    assert_int_equal(t->components[2].parallelism, 4);
    assert_int_equal(t->components[2].streams[0].field_count, 2);
    assert_string_equal(t->components[2].inputs[0].source, "split");
    assert_int_equal(t->components[2].inputs[0].grouping, SL_GROUPING_FIELDS);
    assert_true(isnan(t->components[2].resources.cpu_cores));
    sl_topology_free(t);
}

static void
test_parallelism_is_zero_unless_it_is_a_number_of_tasks(void **state)
{
    (void)state;
    static const double bad[] = {0, -1, 1.5, 1e9, 1000001, INFINITY, -INFINITY, NAN};
    struct sl_topology *t = fixture_new();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint32_t index = fixture_add(t, SL_COMPONENT_SPOUT, "s", "a", bad[i]);
        assert_int_equal(t->components[index].parallelism, 0);
    }
    uint32_t index = fixture_add(t, SL_COMPONENT_SPOUT, "s", "a", 1000000);
    assert_int_equal(t->components[index].parallelism, 1000000);
    sl_topology_free(t);
}

static void
test_name_with_nul_does_not_pass_for_the_shorter_one(void **state)
{
    (void)state;
    struct sl_topology *t = sl_topology_new((struct sl_topology_text){"a\0b", 3});
    assert_string_equal(t->name, "a\xC0\x80"
                                 "b");
    sl_topology_free(t);
}

static void
test_settings_are_sorted_and_replaced(void **state)
{
    (void)state;
    struct sl_topology *t = fixture_new();
    static const char *const keys[] = {"m", "z", "a", "m", "b", "zz", "a"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char value[2] = {(char)('0' + i), 0};
        sl_topology_set(t, sl_topology_text(keys[i]), sl_topology_text(value));
    }
    assert_int_equal(t->setting_count, 5);
    for (uint32_t i = 1; i < t->setting_count; i++) {
        assert_true(strcmp(t->settings[i - 1].key, t->settings[i].key) < 0);
    }
    assert_string_equal((const char *)sl_topology_setting(t, "a")->value, "6");
    assert_string_equal((const char *)sl_topology_setting(t, "m")->value, "3");
    assert_null(sl_topology_setting(t, "c"));
    assert_null(sl_topology_setting(t, "zzz"));
    sl_topology_free(t);
}

static void
test_setting_number_takes_numbers_and_booleans_only(void **state)
{
    (void)state;
    struct sl_topology *t = fixture_new();
    sl_topology_set(t, sl_topology_text("n"), sl_topology_text("2.5"));
    sl_topology_set(t, sl_topology_text("yes"), sl_topology_text("true"));
    sl_topology_set(t, sl_topology_text("no"), sl_topology_text("false"));
    sl_topology_set(t, sl_topology_text("text"), sl_topology_text("\"2\""));
    sl_topology_set(t, sl_topology_text("tail"), sl_topology_text("2x"));
    sl_topology_set(t, sl_topology_text("empty"), sl_topology_text(""));
    sl_topology_set(t, sl_topology_text("nul"), (struct sl_topology_text){"2\0", 2});
    double value = 7;
    assert_false(sl_topology_setting_number(t, "text", &value));
    assert_false(sl_topology_setting_number(t, "tail", &value));
    assert_false(sl_topology_setting_number(t, "empty", &value));
    assert_false(sl_topology_setting_number(t, "nul", &value));
    assert_false(sl_topology_setting_number(t, "absent", &value));
    assert_true(value == 7);
    assert_true(sl_topology_setting_number(t, "n", &value) && value == 2.5);
    assert_true(sl_topology_setting_number(t, "yes", &value) && value == 1);
    assert_true(sl_topology_setting_number(t, "no", &value) && value == 0);
    sl_topology_free(t);
}

static void
test_find_gives_the_first_of_that_name(void **state)
{
    (void)state;
    struct sl_topology *t = fixture_new();
    fixture_spout(t, "a");
    fixture_stream(t, "late", "x y", true);
    fixture_bolt(t, "a");
    const struct sl_topology_component *a = sl_topology_find(t, "a");
    assert_ptr_equal(a, &t->components[0]);
    assert_null(sl_topology_find(t, "b"));
    const struct sl_topology_stream *late = sl_topology_find_stream(a, "late");
    assert_true(late->is_direct);
    assert_null(sl_topology_find_stream(a, "later"));
    assert_int_equal(sl_topology_find_field(late, "y"), 1);
    assert_int_equal(sl_topology_find_field(late, "z"), -1);
    sl_topology_free(t);
}

static void
test_dup_is_equal_and_independent(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 11);
    for (int i = 0; i < 200; i++) {
        struct sl_topology *t = fixture_random(&random);
        struct sl_topology *copy = sl_topology_dup(t);
        assert_true(sl_topology_equal(t, copy));
        sl_topology_free(t);
        fixture_spout(copy, "more");
        sl_topology_free(copy);
    }
}

/* Changes one thing at a time; `what` counts up to the last one. */
static void
change(struct sl_topology *t, int what)
{
    struct sl_topology_component *c = &t->components[2];
    switch (what) {
    case 0:
        t->name[0] = 'W';
        break;
    case 1:
        c->kind = SL_COMPONENT_SPOUT;
        break;
    case 2:
        c->name[0] = 'C';
        break;
    case 3:
        c->parallelism = 5;
        break;
    case 4:
        c->resources.ram_bytes = 1;
        break;
    case 5:
        c->streams[0].is_direct = true;
        break;
    case 6:
        c->streams[0].fields[1][0] = 'C';
        break;
    case 7:
        c->inputs[0].grouping = SL_GROUPING_ALL;
        break;
    case 8:
        c->inputs[0].stream[0] = 'D';
        break;
    case 9:
        c->script[0] = 'T';
        break;
    case 10:
        sl_topology_set(t, sl_topology_text("key"), sl_topology_text("1"));
        break;
    default:
        t->is_system = true;
    }
}

static void
test_equal_sees_every_difference(void **state)
{
    (void)state;
    for (int what = 0; what <= 11; what++) {
        struct sl_topology *a = fixture_word_count();
        struct sl_topology *b = fixture_word_count();
        assert_true(sl_topology_equal(a, b));
        change(b, what);
        assert_false(sl_topology_equal(a, b));
        sl_topology_free(a);
        sl_topology_free(b);
    }
}

static void
test_kind_names_cover_the_enums(void **state)
{
    (void)state;
    for (int32_t i = SL_GROUPING_SHUFFLE; i <= SL_GROUPING_CUSTOM; i++) {
        assert_non_null(sl_grouping_kind_name(i));
    }
    assert_null(sl_grouping_kind_name(0));
    assert_null(sl_grouping_kind_name(SL_GROUPING_CUSTOM + 1));
    assert_string_equal(sl_component_kind_name(SL_COMPONENT_STATE_SPOUT), "state_spout");
    assert_null(sl_component_kind_name(0));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builder_keeps_order_and_content),
        cmocka_unit_test(test_parallelism_is_zero_unless_it_is_a_number_of_tasks),
        cmocka_unit_test(test_name_with_nul_does_not_pass_for_the_shorter_one),
        cmocka_unit_test(test_settings_are_sorted_and_replaced),
        cmocka_unit_test(test_setting_number_takes_numbers_and_booleans_only),
        cmocka_unit_test(test_find_gives_the_first_of_that_name),
        cmocka_unit_test(test_dup_is_equal_and_independent),
        cmocka_unit_test(test_equal_sees_every_difference),
        cmocka_unit_test(test_kind_names_cover_the_enums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
