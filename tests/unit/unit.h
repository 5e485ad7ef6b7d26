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

/* Runs the tests of an array of struct CMUnitTest named `tests`. */
#define UNIT_MAIN(tests)                                                                           \
    int main(void)                                                                                 \
    {                                                                                              \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }
