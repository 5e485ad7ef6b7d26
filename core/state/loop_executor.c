#include "state/loop_executor.h"

#include "base/alloc.h"
#include "base/list.h"

struct loop_timer {
    struct sl_timer timer;
    struct sl_state_loop_executor *owner;
    uint64_t ticket;
    sl_state_task_fn fn;
    void *arg;
};

static void
loop_post(void *ctx, sl_state_task_fn fn, void *arg)
{
    struct sl_state_loop_executor *self = ctx;
    sl_loop_post(self->loop, fn, arg);
}

static void
on_timer(void *ctx, uint64_t loop_ticket)
{
    struct loop_timer *timer = ctx;
    sl_state_task_fn fn = timer->fn;
    void *arg = timer->arg;
    (void)loop_ticket;
    sl_map_u64_remove(&timer->owner->timers, timer->ticket, NULL);
    sl_free(timer);
    fn(arg);
}

static uint64_t
loop_timer_start(void *ctx, uint64_t delay_ms, sl_state_task_fn fn, void *arg)
{
    struct sl_state_loop_executor *self = ctx;
    struct loop_timer *timer = sl_calloc(1, sizeof(*timer));
    timer->owner = self;
    timer->ticket = ++self->last_ticket;
    timer->fn = fn;
    timer->arg = arg;
    sl_map_u64_put_ptr(&self->timers, timer->ticket, timer);
    sl_timer_start(self->loop, &timer->timer, delay_ms, on_timer, timer);
    return timer->ticket;
}

static void
loop_timer_stop(void *ctx, uint64_t ticket)
{
    struct sl_state_loop_executor *self = ctx;
    struct loop_timer *timer = sl_map_u64_remove_ptr(&self->timers, ticket);
    if (timer != NULL) {
        sl_timer_stop(&timer->timer);
        sl_free(timer);
    }
}

void
sl_state_loop_executor_create(struct sl_state_loop_executor *self, struct sl_loop *loop)
{
    *self = (struct sl_state_loop_executor){
        .executor =
            {
                .post = loop_post,
                .timer_start = loop_timer_start,
                .timer_stop = loop_timer_stop,
                .clock = sl_loop_clock(loop),
                .ctx = self,
            },
        .loop = loop,
    };
}

void
sl_state_loop_executor_destroy(struct sl_state_loop_executor *self)
{
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->timers, &at)) != NULL;) {
        struct loop_timer *timer = (void *)(uintptr_t)entry->value;
        sl_timer_stop(&timer->timer);
        sl_free(timer);
    }
    sl_map_u64_destroy(&self->timers);
}
