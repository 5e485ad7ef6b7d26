#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "unit.h"

/* Runs fn in a child with its standard error in text; returns how the child ended (wait status). */
static int
run_in_child(void (*fn)(void), char *text, size_t size)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        signal(SIGABRT, SIG_DFL);
        fn();
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t got;
    while (used < size - 1 && (got = read(ends[0], text + used, size - 1 - used)) > 0) {
        used += (size_t)got;
    }
    text[used] = '\0';
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void
fail_plain(void)
{
    sl_assert(1 + 1 == 3);
}

static void
fail_eq(void)
{
    int found = 41;
    sl_assert_eq(found, 42);
}

static void
fail_le(void)
{
    unsigned long size = 9;
    sl_assert_le(size, 8);
}

static void
fail_unreachable(void)
{
    sl_unreachable();
}

static void
pass_all(void)
{
    int one = 1;
    sl_assert(one);
    sl_assert_eq(one, 1);
    sl_assert_ne(one, 2);
    sl_assert_lt(one, 2);
    sl_assert_le(one, 1);
    sl_assert_gt(one, 0);
    sl_assert_ge(one, 1);
    sl_debug_assert(one == 1);
}

static void
test_failure_prints_what_where_and_values_then_aborts(void **state)
{
    (void)state;
    static const struct {
        void (*fn)(void);
        const char *expected;
    } rows[] = {
        {fail_plain, "fail_plain: 1 + 1 == 3"},
        {fail_eq, "fail_eq: found == 42 (41 and 42)"},
        {fail_le, "fail_le: size <= 8 (9 and 8)"},
        {fail_unreachable, "fail_unreachable: unreachable"},
    };
    char text[8192];
    for (size_t i = 0; i < array_size(rows); i++) {
        int status = run_in_child(rows[i].fn, text, sizeof(text));
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
        assert_non_null(strstr(text, "[test] test_assert.c:"));
        assert_non_null(strstr(text, rows[i].expected));
    }
}

static void
test_true_assertions_do_nothing(void **state)
{
    (void)state;
    char text[8192];
    int status = run_in_child(pass_all, text, sizeof(text));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_string_equal(text, "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_failure_prints_what_where_and_values_then_aborts),
    cmocka_unit_test(test_true_assertions_do_nothing),
};

UNIT_MAIN(tests)
