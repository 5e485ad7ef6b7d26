#pragma once
/* The clock seam: code that needs time is given one of these, so that tests and simulations own
 * time. */

#include <stdint.h>

struct sl_clock {
    /* Nanoseconds that never go back; only differences mean something. Any thread may call it. */
    uint64_t (*mono_ns)(void *ctx);
    /* Milliseconds since the epoch; may jump either way. Any thread may call it. */
    int64_t (*wall_ms)(void *ctx);
    void *ctx;
};

/* The clocks of the operating system. Static, never freed. */
const struct sl_clock *sl_clock_system(void);

static inline uint64_t
sl_clock_mono_ns(const struct sl_clock *clock)
{
    return clock->mono_ns(clock->ctx);
}

/* The monotonic clock in whole milliseconds. */
static inline uint64_t
sl_clock_mono_ms(const struct sl_clock *clock)
{
    return clock->mono_ns(clock->ctx) / 1000000u;
}

static inline int64_t
sl_clock_wall_ms(const struct sl_clock *clock)
{
    return clock->wall_ms(clock->ctx);
}

/* A clock that moves only when told. `clock` is what is handed to the code under test; the object
 * must not move. */
struct sl_manual_clock {
    struct sl_clock clock;
    /* Both are read and written atomically: executors of a test read them from their own threads.
     */
    uint64_t mono_ns;
    /* Wall time at mono_ns 0, in milliseconds. */
    int64_t wall_offset_ms;
};

/* Starts at wall_ms with the monotonic clock at 0. Nothing to destroy. */
void sl_manual_clock_create(struct sl_manual_clock *self, int64_t wall_ms);

/* Moves both clocks on. */
void sl_manual_clock_advance_ns(struct sl_manual_clock *self, uint64_t delta_ns);
void sl_manual_clock_advance_ms(struct sl_manual_clock *self, uint64_t delta_ms);

/* Sets the wall clock. Forward, the monotonic clock moves on by as much; backward, it stands still.
 */
void sl_manual_clock_set(struct sl_manual_clock *self, int64_t wall_ms);

/* Shifts the wall clock alone, as an administrator or NTP does. */
void sl_manual_clock_step_wall(struct sl_manual_clock *self, int64_t delta_ms);
