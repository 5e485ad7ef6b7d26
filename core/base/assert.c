#include "base/assert.h"

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void __attribute__((noreturn)) die_with_backtrace(void)
{
    void *frames[64];
    int count = backtrace(frames, 64);
    fflush(stderr);
    /* Writes to the descriptor without allocating: the heap may be what is broken. */
    backtrace_symbols_fd(frames, count, STDERR_FILENO);
    abort();
}

void
sl__assert_fail(const char *module, const char *file, int line, const char *function,
                const char *text)
{
    fprintf(stderr, "assertion failed: [%s] %s:%d: %s: %s\n", module, file, line, function, text);
    die_with_backtrace();
}

void
sl__assert_fail_values(const char *module, const char *file, int line, const char *function,
                       const char *text, long long left, long long right)
{
    fprintf(stderr, "assertion failed: [%s] %s:%d: %s: %s (%lld and %lld)\n", module, file, line,
            function, text, left, right);
    die_with_backtrace();
}
