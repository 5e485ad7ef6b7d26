#pragma once
/*
 * Assertions that stay in release builds: they guard what only our own code can break. A failed one
 * prints where, both values and a backtrace, then aborts. Anything that comes from a user, the
 * network or a store is an error instead.
 */

#include "base/err.h"

/* The build names the room; code compiled by hand has none. */
#ifdef SL_MODULE
#define SL__ASSERT_MODULE SL_MODULE
#else
#define SL__ASSERT_MODULE "-"
#endif

/* Dies unless the condition holds. */
#define sl_assert(condition)                                                                       \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0)) {                                                   \
            sl__assert_fail(SL__ASSERT_MODULE, SL_FILE_NAME, __LINE__, __func__, #condition);      \
        }                                                                                          \
    } while (0)

/*
 * Comparisons of integers or pointers that print both sides. The sides are evaluated a second time
 * when the assertion fails, so they must be free of side effects.
 */
#define sl_assert_eq(a, b) sl__assert_compare(a, ==, b)
#define sl_assert_ne(a, b) sl__assert_compare(a, !=, b)
#define sl_assert_lt(a, b) sl__assert_compare(a, <, b)
#define sl_assert_le(a, b) sl__assert_compare(a, <=, b)
#define sl_assert_gt(a, b) sl__assert_compare(a, >, b)
#define sl_assert_ge(a, b) sl__assert_compare(a, >=, b)

#define sl__assert_compare(a, op, b)                                                               \
    do {                                                                                           \
        if (__builtin_expect(!((a)op(b)), 0)) {                                                    \
            sl__assert_fail_values(SL__ASSERT_MODULE, SL_FILE_NAME, __LINE__, __func__,            \
                                   #a " " #op " " #b, (long long)(a), (long long)(b));             \
        }                                                                                          \
    } while (0)

/* For checks that cost more than O(1): active where the build defines SL_DEBUG (not in release). */
#ifdef SL_DEBUG
#define sl_debug_assert(condition) sl_assert(condition)
#else
#define sl_debug_assert(condition) ((void)sizeof(condition))
#endif

/* Marks a place that no input can reach. */
#define sl_unreachable()                                                                           \
    sl__assert_fail(SL__ASSERT_MODULE, SL_FILE_NAME, __LINE__, __func__, "unreachable")

void sl__assert_fail(const char *module, const char *file, int line, const char *function,
                     const char *text) __attribute__((noreturn, cold));
void sl__assert_fail_values(const char *module, const char *file, int line, const char *function,
                            const char *text, long long left, long long right)
    __attribute__((noreturn, cold));
