#include "base/clock.h"

#include <stddef.h>
#include <time.h>

static uint64_t
system_mono_ns(void *ctx)
{
    (void)ctx;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int64_t
system_wall_ms(void *ctx)
{
    (void)ctx;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + (int64_t)now.tv_nsec / 1000000;
}

const struct sl_clock *
sl_clock_system(void)
{
    static const struct sl_clock clock = {system_mono_ns, system_wall_ms, NULL};
    return &clock;
}

static uint64_t
manual_mono_ns(void *ctx)
{
    struct sl_manual_clock *self = ctx;
    return __atomic_load_n(&self->mono_ns, __ATOMIC_SEQ_CST);
}

static int64_t
manual_wall_ms(void *ctx)
{
    struct sl_manual_clock *self = ctx;
    int64_t elapsed_ms = (int64_t)(manual_mono_ns(self) / 1000000u);
    return __atomic_load_n(&self->wall_offset_ms, __ATOMIC_SEQ_CST) + elapsed_ms;
}

void
sl_manual_clock_create(struct sl_manual_clock *self, int64_t wall_ms)
{
    self->clock.mono_ns = manual_mono_ns;
    self->clock.wall_ms = manual_wall_ms;
    self->clock.ctx = self;
    self->mono_ns = 0;
    self->wall_offset_ms = wall_ms;
}

void
sl_manual_clock_advance_ns(struct sl_manual_clock *self, uint64_t delta_ns)
{
    __atomic_fetch_add(&self->mono_ns, delta_ns, __ATOMIC_SEQ_CST);
}

void
sl_manual_clock_advance_ms(struct sl_manual_clock *self, uint64_t delta_ms)
{
    sl_manual_clock_advance_ns(self, delta_ms * 1000000u);
}

void
sl_manual_clock_set(struct sl_manual_clock *self, int64_t wall_ms)
{
    int64_t delta_ms = wall_ms - manual_wall_ms(self);
    if (delta_ms >= 0) {
        sl_manual_clock_advance_ms(self, (uint64_t)delta_ms);
    } else {
        sl_manual_clock_step_wall(self, delta_ms);
    }
}

void
sl_manual_clock_step_wall(struct sl_manual_clock *self, int64_t delta_ms)
{
    __atomic_fetch_add(&self->wall_offset_ms, delta_ms, __ATOMIC_SEQ_CST);
}
