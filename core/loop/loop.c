#include "loop/loop.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "loop/loop_priv.h"

void
sl__loop_create(struct sl_loop *loop, const struct sl_loop_ops *ops)
{
    loop->ops = ops;
    sl_heap_create(&loop->timers);
    sl_list_create(&loop->streams);
    sl_list_create(&loop->listeners);
    sl_list_create(&loop->processes);
    loop->next_ticket = 1;
}

void
sl_loop_free(struct sl_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    loop->is_freeing = true;
    sl_list_each(&loop->listeners, it)
    {
        sl_listener_close(sl_container_of(it, struct sl_listener, node));
    }
    sl_list_each(&loop->streams, it)
    {
        struct sl_stream *stream = sl_container_of(it, struct sl_stream, node);
        sl_err_set(SL_ECANCELED, "the loop is freed");
        sl__stream_fail(stream);
    }
    loop->ops->free(loop);
}

static void
claim(struct sl_loop *loop)
{
    if (!loop->has_owner) {
        loop->owner = pthread_self();
        loop->has_owner = true;
    }
    sl_assert(sl_loop_is_owner(loop));
}

void
sl_loop_run(struct sl_loop *loop)
{
    claim(loop);
    loop->ops->run(loop);
}

void
sl_loop_run_once(struct sl_loop *loop, int timeout_ms)
{
    claim(loop);
    loop->ops->run_once(loop, timeout_ms);
}

void
sl_loop_stop(struct sl_loop *loop)
{
    loop->ops->stop(loop);
}

void
sl_loop_post(struct sl_loop *loop, sl_loop_fn fn, void *ctx)
{
    loop->ops->post(loop, fn, ctx);
}

void
sl_loop_work(struct sl_loop *loop, sl_loop_fn work, sl_loop_fn done, void *ctx)
{
    sl_debug_assert(sl_loop_is_owner(loop));
    loop->ops->work(loop, work, done, ctx);
}

const struct sl_clock *
sl_loop_clock(const struct sl_loop *loop)
{
    return &loop->clock;
}

uint64_t
sl_loop_now_ms(const struct sl_loop *loop)
{
    return sl_clock_mono_ms(&loop->clock);
}

uint64_t
sl_loop_now_ns(const struct sl_loop *loop)
{
    return sl_clock_mono_ns(&loop->clock);
}

struct sl_random *
sl_loop_random(struct sl_loop *loop)
{
    return &loop->random;
}

void
sl_loop_entropy(struct sl_loop *loop, void *bytes, size_t size)
{
    loop->ops->entropy(loop, bytes, size);
}

bool
sl_loop_is_owner(const struct sl_loop *loop)
{
    return !loop->has_owner || pthread_equal(loop->owner, pthread_self());
}

uint64_t
sl_timer_start(struct sl_loop *loop, struct sl_timer *timer, uint64_t delay_ms,
               void (*fn)(void *ctx, uint64_t ticket), void *ctx)
{
    sl_debug_assert(sl_loop_is_owner(loop));
    sl_timer_stop(timer);
    timer->loop = loop;
    timer->fn = fn;
    timer->ctx = ctx;
    timer->ticket = loop->next_ticket++;
    /* About 146 years: keeps the sum below the range of the key. */
    enum { DELAY_MAX_MS_LOG2 = 42 };
    if (delay_ms > UINT64_C(1) << DELAY_MAX_MS_LOG2) {
        delay_ms = UINT64_C(1) << DELAY_MAX_MS_LOG2;
    }
    sl_heap_insert(&loop->timers, &timer->node,
                   (int64_t)(sl_loop_now_ns(loop) + delay_ms * 1000000u));
    if (sl_heap_peek(&loop->timers) == &timer->node) {
        loop->ops->timers_changed(loop);
    }
    return timer->ticket;
}

void
sl_timer_stop(struct sl_timer *timer)
{
    if (sl_heap_is_linked(&timer->node)) {
        bool was_first = sl_heap_peek(&timer->loop->timers) == &timer->node;
        sl_heap_remove(&timer->loop->timers, &timer->node);
        if (was_first) {
            timer->loop->ops->timers_changed(timer->loop);
        }
    }
    timer->ticket = 0;
}

bool
sl_timer_is_running(const struct sl_timer *timer)
{
    return sl_heap_is_linked(&timer->node);
}

bool
sl_timer_is_current(const struct sl_timer *timer, uint64_t ticket)
{
    return ticket != 0 && timer->ticket == ticket;
}

uint64_t
sl_timer_left_ms(const struct sl_timer *timer)
{
    if (!sl_timer_is_running(timer)) {
        return 0;
    }
    uint64_t now_ns = sl_loop_now_ns(timer->loop);
    uint64_t due_ns = (uint64_t)timer->node.key;
    return due_ns <= now_ns ? 0 : (due_ns - now_ns + 999999) / 1000000u;
}

bool
sl__loop_next_timer(const struct sl_loop *loop, uint64_t *due_ns)
{
    const struct sl_heap_node *first = sl_heap_peek(&loop->timers);
    if (first == NULL) {
        return false;
    }
    *due_ns = (uint64_t)first->key;
    return true;
}

void
sl__loop_fire_timers(struct sl_loop *loop, uint64_t now_ns)
{
    /* A timer that is started with no delay by a firing waits for the next turn, so that I/O is
     * never starved. */
    uint64_t end_ticket = loop->next_ticket;
    struct sl_heap_node *first;
    while ((first = sl_heap_peek(&loop->timers)) != NULL && first->key <= (int64_t)now_ns) {
        struct sl_timer *timer = sl_container_of(first, struct sl_timer, node);
        if (timer->ticket >= end_ticket) {
            break;
        }
        sl_heap_pop(&loop->timers);
        timer->fn(timer->ctx, timer->ticket);
    }
}

int
sl_fd_watch_open(struct sl_loop *loop, int fd, sl_loop_fn on_ready, void *ctx,
                 struct sl_fd_watch **watch)
{
    sl_debug_assert(sl_loop_is_owner(loop));
    int rc = loop->ops->fd_open(loop, fd, watch);
    if (rc == 0) {
        (*watch)->loop = loop;
        (*watch)->on_ready = on_ready;
        (*watch)->ctx = ctx;
    }
    return rc;
}

void
sl_fd_watch_close(struct sl_fd_watch *watch)
{
    if (watch != NULL) {
        watch->loop->ops->fd_close(watch);
    }
}
