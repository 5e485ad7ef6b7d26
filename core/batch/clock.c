#include "batch/clock.h"

static uint64_t
manual_mono_ns(void *ctx)
{
    struct sl_streaming_clock *self = ctx;
    return __atomic_load_n(&self->mono_ns, __ATOMIC_SEQ_CST);
}

static int64_t
manual_wall_ms(void *ctx)
{
    struct sl_streaming_clock *self = ctx;
    return __atomic_load_n(&self->wall_ms, __ATOMIC_SEQ_CST);
}

void
sl_streaming_clock_create(struct sl_streaming_clock *self, int64_t wall_ms)
{
    self->clock = (struct sl_clock){manual_mono_ns, manual_wall_ms, self};
    self->wall_ms = wall_ms;
    self->mono_ns = 0;
}

void
sl_streaming_clock_set(struct sl_streaming_clock *self, int64_t wall_ms)
{
    int64_t before = __atomic_exchange_n(&self->wall_ms, wall_ms, __ATOMIC_SEQ_CST);
    int64_t delta_ms = 0;
    int64_t delta_ns = 0;
    if (__builtin_sub_overflow(wall_ms, before, &delta_ms) ||
        __builtin_mul_overflow(delta_ms, INT64_C(1000000), &delta_ns)) {
        delta_ns = wall_ms > before ? INT64_MAX / 2 : 0;
    }
    if (delta_ns > 0) {
        __atomic_fetch_add(&self->mono_ns, (uint64_t)delta_ns, __ATOMIC_SEQ_CST);
    }
}
