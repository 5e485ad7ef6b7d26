#pragma once
/* Arithmetic of the time grid: int64 milliseconds, division truncates. */

#include <stdbool.h>
#include <stdint.h>

/* The multiple of duration (> 0), counted from zero, at or below time >= zero. */
static inline int64_t
sl_grid_floor(int64_t time, int64_t duration, int64_t zero)
{
    return (time - zero) / duration * duration + zero;
}

static inline bool
sl_grid_is_multiple(int64_t time, int64_t duration)
{
    return time % duration == 0;
}

/* The first grid point through zero that is strictly after time; the far end of time stays there.
 */
static inline int64_t
sl_grid_after(int64_t time, int64_t duration, int64_t zero)
{
    int64_t distance = 0;
    int64_t next = 0;
    if (__builtin_sub_overflow(time, zero, &distance)) {
        return INT64_MAX;
    }
    int64_t steps = distance / duration - (distance % duration < 0);
    if (__builtin_add_overflow(steps * duration + zero, duration, &next)) {
        return INT64_MAX;
    }
    return next;
}
