#include <errno.h>
#include <pthread.h>

#include "base/err.h"
#include "unit.h"

static void
test_set_keeps_code_place_and_message(void **state)
{
    (void)state;
    int line = __LINE__ + 1;
    assert_int_equal(sl_err_set(SL_ENOTFOUND, "topology %s", "wc"), SL_ENOTFOUND);
    const struct sl_err *err = sl_err_last();
    assert_int_equal(err->code, SL_ENOTFOUND);
    assert_string_equal(err->msg, "topology wc");
    assert_string_equal(err->file, "test_err.c");
    assert_int_equal(err->line, line);
    assert_int_equal(err->cause_count, 0);
    assert_int_equal(err->sys_errno, 0);
}

static void
test_set_keeps_errno_only_of_system_errors(void **state)
{
    (void)state;
    errno = EACCES;
    sl_err_set(SL_ESYS, "open");
    assert_int_equal(sl_err_last()->sys_errno, EACCES);
    assert_int_equal(errno, EACCES);
    sl_err_set(SL_EIO, "read");
    assert_int_equal(sl_err_last()->sys_errno, 0);
}

static void
test_set_may_quote_the_record_itself(void **state)
{
    (void)state;
    sl_err_set(SL_EINVAL, "first");
    sl_err_set(SL_EINVAL, "second after %s", sl_err_last()->msg);
    assert_string_equal(sl_err_last()->msg, "second after first");
}

static void
test_set_cuts_a_long_message(void **state)
{
    (void)state;
    char text[1000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    sl_err_set(SL_EINVAL, "%s", text);
    assert_int_equal(strlen(sl_err_last()->msg), SL_ERR_MSG_SIZE - 1);
}

static void
test_wrap_keeps_code_and_causes_in_order(void **state)
{
    (void)state;
    sl_err_set(SL_ETIMEOUT, "no answer");
    assert_int_equal(sl_err_wrap("connect to %s", "h1"), SL_ETIMEOUT);
    assert_int_equal(sl_err_wrap("submit"), SL_ETIMEOUT);
    const struct sl_err *err = sl_err_last();
    assert_string_equal(err->msg, "submit");
    assert_int_equal(err->cause_count, 2);
    assert_string_equal(err->causes[0].msg, "connect to h1");
    assert_string_equal(err->causes[1].msg, "no answer");
    char line[128];
    sl_err_format(err, line, sizeof(line));
    assert_string_equal(line, "submit: connect to h1: no answer");
}

static void
test_wrap_past_the_depth_keeps_the_root(void **state)
{
    (void)state;
    sl_err_set(SL_EIO, "root");
    for (int i = 1; i <= 9; i++) {
        sl_err_wrap("level %d", i);
    }
    const struct sl_err *err = sl_err_last();
    assert_string_equal(err->msg, "level 9");
    assert_int_equal(err->cause_count, SL_ERR_CAUSE_MAX);
    assert_string_equal(err->causes[0].msg, "level 8");
    assert_string_equal(err->causes[2].msg, "level 6");
    assert_string_equal(err->causes[SL_ERR_CAUSE_MAX - 1].msg, "root");
}

static void
test_wrap_without_a_failure_is_internal(void **state)
{
    (void)state;
    sl_err_clear();
    assert_int_equal(sl_err_wrap("odd"), SL_EINTERNAL);
    assert_string_equal(sl_err_last()->msg, "odd");
    assert_int_equal(sl_err_last()->cause_count, 0);
}

static void
test_move_empties_the_thread_and_restore_brings_it_back(void **state)
{
    (void)state;
    struct sl_err kept;
    sl_err_set(SL_EFENCED, "old token");
    sl_err_wrap("publish");
    sl_err_move(&kept);
    assert_int_equal(sl_err_last()->code, 0);
    assert_string_equal(sl_err_last()->msg, "");
    assert_int_equal(kept.code, SL_EFENCED);
    assert_int_equal(sl_err_restore(&kept), SL_EFENCED);
    assert_string_equal(sl_err_last()->causes[0].msg, "old token");
}

static void *
other_thread(void *arg)
{
    *(int *)arg = sl_err_last()->code;
    sl_err_set(SL_EEXIST, "theirs");
    return NULL;
}

static void
test_record_belongs_to_the_thread(void **state)
{
    (void)state;
    sl_err_set(SL_EINVAL, "mine");
    int seen = 1;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &seen), 0);
    pthread_join(thread, NULL);
    assert_int_equal(seen, 0);
    assert_string_equal(sl_err_last()->msg, "mine");
}

static void
test_names_and_texts_cover_every_code(void **state)
{
    (void)state;
    for (int i = 0; i < SL_ERR_COUNT; i++) {
        int code = -1 - i;
        assert_int_equal(sl_err_code(sl_err_name(code)), code);
        assert_true(strlen(sl_err_text(code)) > 0);
    }
    assert_int_equal(sl_err_code("SL_EPROTO"), SL_EPROTO);
    assert_int_equal(sl_err_code("ENONSENSE"), 0);
    assert_string_equal(sl_err_name(SL_EUNSATISFIABLE), "EUNSATISFIABLE");
    assert_string_equal(sl_err_name(0), "OK");
    assert_string_equal(sl_err_name(-9999), "EUNKNOWN");
    assert_string_equal(sl_err_text(-9999), "unknown error");
}

static void
test_format_adds_errno_and_cuts(void **state)
{
    (void)state;
    errno = ENOENT;
    sl_err_set(SL_ESYS, "open conf");
    char line[64];
    sl_err_format(sl_err_last(), line, sizeof(line));
    assert_string_equal(line, "open conf (No such file or directory)");
    sl_err_set(SL_ESYS, "open conf: %s", strerror(ENOENT));
    sl_err_format(sl_err_last(), line, sizeof(line));
    assert_string_equal(line, "open conf: No such file or directory");
    char tight[8];
    sl_err_format(sl_err_last(), tight, sizeof(tight));
    assert_string_equal(tight, "open co");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_set_keeps_code_place_and_message),
    cmocka_unit_test(test_set_keeps_errno_only_of_system_errors),
    cmocka_unit_test(test_set_may_quote_the_record_itself),
    cmocka_unit_test(test_set_cuts_a_long_message),
    cmocka_unit_test(test_wrap_keeps_code_and_causes_in_order),
    cmocka_unit_test(test_wrap_past_the_depth_keeps_the_root),
    cmocka_unit_test(test_wrap_without_a_failure_is_internal),
    cmocka_unit_test(test_move_empties_the_thread_and_restore_brings_it_back),
    cmocka_unit_test(test_record_belongs_to_the_thread),
    cmocka_unit_test(test_names_and_texts_cover_every_code),
    cmocka_unit_test(test_format_adds_errno_and_cuts),
};

UNIT_MAIN(tests)
