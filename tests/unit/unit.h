#pragma once
/* What every unit test includes first: cmocka with the headers it needs and a few helpers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define array_size(array) (sizeof(array) / sizeof((array)[0]))

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define UNIT_IS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(UNIT_IS_SANITIZED)
/* Random cases to try: a twentieth where each takes many times as long. */
#define UNIT_ROUNDS(count) ((count) / 20)
#else
#define UNIT_ROUNDS(count) (count)
#endif

/* Writes the name of a new empty folder, below TMPDIR or where the system has such, into path. */
static inline void
unit_folder_new(char *path, size_t size)
{
    const char *parent = getenv("TMPDIR");
    snprintf(path, size, "%s/streamlua-XXXXXX", parent != NULL ? parent : P_tmpdir);
    assert_non_null(mkdtemp(path));
}

/* Runs the tests of an array of struct CMUnitTest named `tests`. */
#define UNIT_MAIN(tests)                                                                           \
    int main(void)                                                                                 \
    {                                                                                              \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }
