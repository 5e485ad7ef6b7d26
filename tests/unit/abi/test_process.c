#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi/abi.h"
#include "base/err.h"

static void
test_a_deadline_writes_its_text_and_ends_the_process_whatever_it_does(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        volatile int spin = sl_abi_deadline_set(1, "too long\n", 7) == 0;
        while (spin) {
        }
        _exit(1);
    }
    close(ends[1]);
    char text[32] = "";
    assert_int_equal(read(ends[0], text, sizeof(text) - 1), 9);
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_string_equal(text, "too long\n");
}

static void
test_a_deadline_that_is_cleared_ends_nothing(void **state)
{
    (void)state;
    sl_abi_deadline_clear();
    assert_int_equal(sl_abi_deadline_set(1e300, "never\n", 7), 0);
    assert_int_equal(sl_abi_deadline_set(3600e3, "never\n", 7), 0);
    sl_abi_deadline_clear();
    sl_abi_deadline_clear();
}

static void
test_a_deadline_needs_a_text_and_a_time(void **state)
{
    (void)state;
    assert_int_equal(sl_abi_deadline_set(5, NULL, 7), SL_EINVAL);
    assert_int_equal(sl_abi_deadline_set(0, "x", 7), SL_EINVAL);
    assert_int_equal(sl_abi_deadline_set(0.0 / 0.0, "x", 7), SL_EINVAL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_deadline_writes_its_text_and_ends_the_process_whatever_it_does),
        cmocka_unit_test(test_a_deadline_that_is_cleared_ends_nothing),
        cmocka_unit_test(test_a_deadline_needs_a_text_and_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
