#include "base/err.h"
#include "base/log.h"
#include "unit.h"

struct capture {
    char text[8192];
    size_t used;
    int lines;
};

static void
capture_line(void *ctx, enum sl_log_level level, const char *line, size_t len)
{
    (void)level;
    struct capture *capture = ctx;
    assert_true(len <= SL_LOG_LINE_MAX);
    assert_int_equal(line[len - 1], '\n');
    memcpy(capture->text + capture->used, line, len);
    capture->used += len;
    capture->text[capture->used] = '\0';
    capture->lines++;
}

static int
setup(void **state)
{
    static struct capture capture;
    static struct sl_manual_clock clock;
    memset(&capture, 0, sizeof(capture));
    sl_manual_clock_create(&clock, INT64_C(1769860800123));
    sl_log_set_clock(&clock.clock);
    sl_log_set_sink(capture_line, &capture);
    sl_log_set_role("worker/w3");
    sl_log_set_thread("executor-1");
    sl_log_configure("info");
    *state = &capture;
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    sl_log_set_sink(NULL, NULL);
    sl_log_set_clock(NULL);
    return 0;
}

static void
test_a_record_is_one_line_with_all_fields(void **state)
{
    struct capture *capture = *state;
    sl_log_info("state.zk", "connected to=%s", "h1:2181");
    assert_string_equal(capture->text, "2026-01-31T12:00:00.123Z I worker/w3 state.zk executor-1 "
                                       "connected to=h1:2181\n");
}

static void
test_times_before_the_epoch(void **state)
{
    struct capture *capture = *state;
    struct sl_manual_clock clock;
    sl_manual_clock_create(&clock, -1);
    sl_log_set_clock(&clock.clock);
    sl_log_warn("x", "m");
    assert_memory_equal(capture->text, "1969-12-31T23:59:59.999Z W ", 27);
}

static void
test_levels_by_module(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        const char *module;
        enum sl_log_level level;
        bool enabled;
    } rows[] = {
        {"", "a", SL_LOG_WARN, true},
        {"", "a", SL_LOG_INFO, false},
        {"debug", "a", SL_LOG_DEBUG, true},
        {"error", "a", SL_LOG_WARN, false},
        {"info,state.zk=debug", "state.zk", SL_LOG_DEBUG, true},
        {"info,state.zk=debug", "state.zk.lock", SL_LOG_DEBUG, true},
        {"info,state.zk=debug", "state.zkx", SL_LOG_DEBUG, false},
        {"info,state.zk=debug", "state", SL_LOG_DEBUG, false},
        {"rpc=error,debug", "rpc.leader", SL_LOG_WARN, false},
        {"rpc=error,rpc.leader=verbose", "rpc.leader", SL_LOG_VERBOSE, true},
        {"rpc.leader=verbose,rpc=error", "rpc.leader", SL_LOG_VERBOSE, true},
        {"rpc=error,rpc=info", "rpc", SL_LOG_INFO, true},
        {",info,,", "a", SL_LOG_INFO, true},
    };
    for (size_t i = 0; i < array_size(rows); i++) {
        assert_int_equal(sl_log_configure(rows[i].spec), 0);
        if (sl_log_is_enabled(rows[i].module, rows[i].level) != rows[i].enabled) {
            fail_msg("row %zu", i);
        }
    }
}

static void
test_a_bad_spec_changes_nothing_and_names_the_part(void **state)
{
    (void)state;
    static const char *const bad[] = {"loud", "info,rpc=loud", "=info", "info,rpc="};
    sl_log_configure("verbose");
    for (size_t i = 0; i < array_size(bad); i++) {
        assert_int_equal(sl_log_configure(bad[i]), SL_EINVAL);
        assert_true(sl_log_is_enabled("a", SL_LOG_VERBOSE));
        assert_false(sl_log_is_enabled("a", SL_LOG_DEBUG));
    }
    sl_log_configure("loud");
    assert_non_null(strstr(sl_err_last()->msg, "'loud'"));
}

static int evaluations;

static int
count_evaluation(void)
{
    return ++evaluations;
}

static void
test_a_disabled_record_is_not_formatted(void **state)
{
    struct capture *capture = *state;
    evaluations = 0;
    sl_log_debug("a", "%d", count_evaluation());
    assert_int_equal(evaluations, 0);
    assert_int_equal(capture->lines, 0);
    sl_log_error("a", "%d", count_evaluation());
    assert_int_equal(evaluations, 1);
}

static void
test_long_and_multi_line_messages_stay_one_line(void **state)
{
    struct capture *capture = *state;
    char text[3000];
    memset(text, 'y', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    sl_log_error("a", "%s", text);
    assert_int_equal(capture->used, SL_LOG_LINE_MAX - 1);
    assert_memory_equal(capture->text + capture->used - 4, "...\n", 4);
    capture->used = 0;
    sl_log_error("a", "two\nlines\x1b[2J");
    assert_non_null(strstr(capture->text, "two lines [2J\n"));
}

static void
test_limited_records_pass_once_an_interval(void **state)
{
    struct capture *capture = *state;
    struct sl_manual_clock clock;
    struct sl_log_limit limit = {0};
    sl_manual_clock_create(&clock, 0);
    sl_log_set_clock(&clock.clock);
    for (int i = 0; i < 10; i++) {
        SL_LOG_LIMITED(&limit, 1000, "a", SL_LOG_WARN, "full n=%d", i);
    }
    assert_int_equal(capture->lines, 1);
    assert_non_null(strstr(capture->text, "full n=0 suppressed=0\n"));
    sl_manual_clock_advance_ms(&clock, 1000);
    SL_LOG_LIMITED(&limit, 1000, "a", SL_LOG_WARN, "full n=%d", 10);
    assert_int_equal(capture->lines, 2);
    assert_non_null(strstr(capture->text, "full n=10 suppressed=9\n"));
}

static void
test_level_names_round_trip(void **state)
{
    (void)state;
    for (int level = SL_LOG_ERROR; level <= SL_LOG_DEBUG; level++) {
        const char *name = sl_log_level_name((enum sl_log_level)level);
        assert_int_equal(sl_log_level_parse(name, strlen(name)), level);
    }
    assert_int_equal(sl_log_level_parse("warning", 7), -1);
    assert_int_equal(sl_log_level_parse("warning", 4), SL_LOG_WARN);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_a_record_is_one_line_with_all_fields, setup, teardown),
    cmocka_unit_test_setup_teardown(test_times_before_the_epoch, setup, teardown),
    cmocka_unit_test_setup_teardown(test_levels_by_module, setup, teardown),
    cmocka_unit_test_setup_teardown(test_a_bad_spec_changes_nothing_and_names_the_part, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(test_a_disabled_record_is_not_formatted, setup, teardown),
    cmocka_unit_test_setup_teardown(test_long_and_multi_line_messages_stay_one_line, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(test_limited_records_pass_once_an_interval, setup, teardown),
    cmocka_unit_test(test_level_names_round_trip),
};

UNIT_MAIN(tests)
