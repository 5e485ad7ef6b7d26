#include <signal.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "loop/uv_priv.h"

int
sl__uv_error(int status, const char *what, const char *subject)
{
    int code = SL_EIO;
    switch (status) {
    case UV_EADDRINUSE:
        code = SL_EEXIST;
        break;
    case UV_ETIMEDOUT:
        code = SL_ETIMEOUT;
        break;
    case UV_ECONNREFUSED:
    case UV_ENOENT:
    case UV_EHOSTUNREACH:
    case UV_ENETUNREACH:
    case UV_EAI_NONAME:
    case UV_EAI_AGAIN:
    case UV_EAI_NODATA:
        code = SL_EUNAVAIL;
        break;
    case UV_EOF:
    case UV_ECONNRESET:
    case UV_EPIPE:
        code = SL_ECLOSED;
        break;
    case UV_ECANCELED:
        code = SL_ECANCELED;
        break;
    }
    return sl_err_set(code, "%s %s: %s", what, subject, uv_strerror(status));
}

static void
run_posts(uv_async_t *async)
{
    struct uv_side *side = async->data;
    pthread_mutex_lock(&side->lock);
    struct uv_post_list posts = side->posts;
    side->posts = side->running;
    pthread_mutex_unlock(&side->lock);
    for (size_t i = 0; i < posts.count; i++) {
        posts.items[i].fn(posts.items[i].ctx);
    }
    sl_vec_clear(&posts);
    side->running = posts;
}

static void
post(struct sl_loop *loop, sl_loop_fn fn, void *ctx)
{
    struct uv_side *side = uv_side_of(loop);
    pthread_mutex_lock(&side->lock);
    struct uv_post item = {fn, ctx};
    bool is_first = side->posts.count == 0;
    sl_vec_push(&side->posts, item);
    if (is_first) {
        uv_async_send(&side->async);
    }
    pthread_mutex_unlock(&side->lock);
}

static void
timers_due(uv_timer_t *timer)
{
    struct uv_side *side = timer->data;
    side->armed_ns = 0;
    if (side->is_single_turn) {
        uv_stop(&side->uv);
    }
    sl__loop_fire_timers(&side->loop, sl_loop_now_ns(&side->loop));
    side->loop.ops->timers_changed(&side->loop);
}

static void
timers_changed(struct sl_loop *loop)
{
    struct uv_side *side = uv_side_of(loop);
    uint64_t due_ns;
    if (!sl__loop_next_timer(loop, &due_ns) || (side->armed_ns != 0 && side->armed_ns <= due_ns)) {
        return;
    }
    uint64_t now_ns = sl_loop_now_ns(loop);
    /* Rounded up, so that the timer is due when libuv wakes. */
    uint64_t delay_ms = due_ns <= now_ns ? 0 : (due_ns - now_ns + 999999) / 1000000u;
    side->armed_ns = due_ns != 0 ? due_ns : 1;
    uv_update_time(&side->uv);
    uv_timer_start(&side->timer, timers_due, delay_ms, 0);
}

static void
flush_dirty(uv_prepare_t *prepare)
{
    struct uv_side *side = prepare->data;
    struct sl_list_node *last = sl_list_last(&side->dirty);
    struct sl_list_node *node = NULL;
    while (node != last && (node = sl_list_pop_front(&side->dirty)) != NULL) {
        struct uv_side_stream *stream = sl_container_of(node, struct uv_side_stream, dirty_node);
        stream->is_dirty = false;
        sl__uv_flush(&stream->base);
    }
    if (!sl_list_is_empty(&side->dirty)) {
        /* Who was told of room has written again: that is for the next turn. */
        uv_async_send(&side->async);
    }
}

static void
run(struct sl_loop *loop)
{
    struct uv_side *side = uv_side_of(loop);
    while (!__atomic_exchange_n(&side->is_stopped, false, __ATOMIC_ACQ_REL)) {
        uv_run(&side->uv, UV_RUN_ONCE);
    }
}

static void
wait_ended(uv_timer_t *timer)
{
    (void)timer;
}

static void
run_once(struct sl_loop *loop, int timeout_ms)
{
    struct uv_side *side = uv_side_of(loop);
    if (timeout_ms == 0) {
        uv_run(&side->uv, UV_RUN_NOWAIT);
        return;
    }
    if (timeout_ms > 0) {
        uv_update_time(&side->uv);
        uv_timer_start(&side->wait, wait_ended, (uint64_t)timeout_ms, 0);
    }
    side->is_single_turn = true;
    uv_run(&side->uv, UV_RUN_ONCE);
    side->is_single_turn = false;
    uv_timer_stop(&side->wait);
}

static void
stop(struct sl_loop *loop)
{
    struct uv_side *side = uv_side_of(loop);
    __atomic_store_n(&side->is_stopped, true, __ATOMIC_RELEASE);
    uv_async_send(&side->async);
}

struct work_item {
    uv_work_t uv;
    sl_loop_fn work;
    sl_loop_fn done;
    void *ctx;
};

static void
run_work(uv_work_t *uv)
{
    struct work_item *item = uv->data;
    item->work(item->ctx);
}

static void
finish_work(uv_work_t *uv, int status)
{
    struct work_item *item = uv->data;
    (void)status;
    item->done(item->ctx);
    sl_free(item);
}

static void
work(struct sl_loop *loop, sl_loop_fn fn, sl_loop_fn done, void *ctx)
{
    struct work_item *item = sl_calloc(1, sizeof(*item));
    item->uv.data = item;
    item->work = fn;
    item->done = done;
    item->ctx = ctx;
    int status = uv_queue_work(&uv_side_of(loop)->uv, &item->uv, run_work, finish_work);
    sl_assert_eq(status, 0);
}

static void
close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

static void
free_loop(struct sl_loop *loop)
{
    struct uv_side *side = uv_side_of(loop);
    sl__uv_processes_close(loop);
    /* Streams and work that are ending need turns of the loop. */
    while (!sl_list_is_empty(&loop->streams)) {
        uv_run(&side->uv, UV_RUN_ONCE);
    }
    uv_walk(&side->uv, close_handle, NULL);
    uv_run(&side->uv, UV_RUN_DEFAULT);
    int status = uv_loop_close(&side->uv);
    sl_assert_eq(status, 0);
    sl_heap_destroy(&loop->timers);
    sl_vec_destroy(&side->posts);
    sl_vec_destroy(&side->running);
    pthread_mutex_destroy(&side->lock);
    sl_free(side);
}

static void
entropy(struct sl_loop *loop, void *bytes, size_t size)
{
    (void)loop;
    for (uint8_t *at = bytes; size > 0;) {
        ssize_t count = getrandom(at, size, 0);
        sl_assert(count > 0 || errno == EINTR);
        if (count > 0) {
            at += count;
            size -= (size_t)count;
        }
    }
}

static const struct sl_loop_ops ops = {
    .free = free_loop,
    .run = run,
    .run_once = run_once,
    .stop = stop,
    .post = post,
    .work = work,
    .entropy = entropy,
    .timers_changed = timers_changed,
    .fd_open = sl__uv_fd_open,
    .fd_close = sl__uv_fd_close,
    .connect = sl__uv_connect,
    .accept = sl__uv_accept,
    .write = sl__uv_write,
    .queued = sl__uv_queued,
    .set_reading = sl__uv_set_reading,
    .stream_close = sl__uv_stream_close,
    .stream_finish = sl__uv_stream_finish,
    .listen = sl__uv_listen,
    .listener_close = sl__uv_listener_close,
    .spawn = sl__uv_spawn,
    .kill = sl__uv_kill,
    .process_free = sl__uv_process_free,
    .signal_open = sl__uv_signal_open,
    .signal_close = sl__uv_signal_close,
};

/* libuv writes to sockets without MSG_NOSIGNAL. */
static void
ignore_broken_pipes(void)
{
    struct sigaction action;
    if (sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
        action.sa_handler = SIG_IGN;
        sigaction(SIGPIPE, &action, NULL);
    }
}

int
sl_loop_new(struct sl_loop **loop)
{
    struct uv_side *side = sl_calloc(1, sizeof(*side));
    ignore_broken_pipes();
    int status = uv_loop_init(&side->uv);
    if (status != 0) {
        sl_free(side);
        return sl__uv_error(status, "start", "an event loop");
    }
    sl__loop_create(&side->loop, &ops);
    side->loop.clock = *sl_clock_system();
    sl_random_seed(&side->loop.random, sl_random_entropy());
    sl_list_create(&side->dirty);
    pthread_mutex_init(&side->lock, NULL);
    uv_timer_init(&side->uv, &side->timer);
    uv_timer_init(&side->uv, &side->wait);
    uv_prepare_init(&side->uv, &side->prepare);
    status = uv_async_init(&side->uv, &side->async, run_posts);
    if (status != 0) {
        free_loop(&side->loop);
        return sl__uv_error(status, "start", "an event loop");
    }
    side->timer.data = side;
    side->prepare.data = side;
    side->async.data = side;
    uv_prepare_start(&side->prepare, flush_dirty);
    *loop = &side->loop;
    return 0;
}

/* A watched descriptor. */
struct uv_side_watch {
    struct sl_fd_watch base;
    uv_poll_t poll;
};

static void
watch_ready(uv_poll_t *poll, int status, int events)
{
    struct uv_side_watch *watch = poll->data;
    (void)status;
    (void)events;
    watch->base.on_ready(watch->base.ctx);
}

static void
watch_closed(uv_handle_t *handle)
{
    sl_free(handle->data);
}

int
sl__uv_fd_open(struct sl_loop *loop, int fd, struct sl_fd_watch **out)
{
    struct uv_side_watch *watch = sl_calloc(1, sizeof(*watch));
    int status = uv_poll_init(&uv_side_of(loop)->uv, &watch->poll, fd);
    if (status != 0) {
        sl_free(watch);
        return sl__uv_error(status, "watch", "a descriptor");
    }
    watch->poll.data = watch;
    uv_poll_start(&watch->poll, UV_READABLE, watch_ready);
    *out = &watch->base;
    return 0;
}

void
sl__uv_fd_close(struct sl_fd_watch *base)
{
    struct uv_side_watch *watch = (struct uv_side_watch *)base;
    uv_close((uv_handle_t *)&watch->poll, watch_closed);
}
