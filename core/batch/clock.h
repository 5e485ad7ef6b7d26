#pragma once
/* The clock of a context: the system's, or one that moves only when told, over the whole int64
 * range of milliseconds. */

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* A manual clock; `clock` is handed on, so the object must not move. Any thread may use it. */
struct sl_streaming_clock {
    struct sl_clock clock;
    /* Read and written atomically. */
    int64_t wall_ms;
    uint64_t mono_ns;
};

/* Starts at wall_ms; nothing to destroy. */
void sl_streaming_clock_create(struct sl_streaming_clock *self, int64_t wall_ms);

/* Sets wall time, either way; the monotonic clock follows forward only. */
void sl_streaming_clock_set(struct sl_streaming_clock *self, int64_t wall_ms);
