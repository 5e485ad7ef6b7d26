#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/hash.h"
#include "loop/sim_priv.h"

struct sim_signal {
    struct sl_signal base;
    struct sl_list_node node;
};

struct sim_event *
sl__sim_schedule(struct sim_loop *loop, enum sim_event_kind kind, uint64_t at_ns)
{
    struct sim_event *event = sl_calloc(1, sizeof(*event));
    event->kind = kind;
    event->loop = loop;
    sl_heap_insert(&loop->sim->events, &event->node, (int64_t)at_ns);
    return event;
}

uint64_t
sl__sim_latency_ns(struct sl_sim *sim)
{
    uint64_t span_us = sim->options.latency_max_us - sim->options.latency_min_us;
    return (sim->options.latency_min_us + sl_random_below(&sim->random, span_us + 1)) * 1000u;
}

void
sl__sim_trace(struct sl_sim *sim, uint64_t a, uint64_t b)
{
    sim->trace_hash = sl_mix64(sim->trace_hash ^ sl_mix64(a + 0x9e37) ^ sl_mix64(b));
}

struct sl_sim *
sl_sim_new(const struct sl_sim_options *options)
{
    struct sl_sim *sim = sl_calloc(1, sizeof(*sim));
    sim->options = *options;
    if (options->latency_min_us == 0 && options->latency_max_us == 0) {
        sim->options.latency_min_us = 50;
        sim->options.latency_max_us = 200;
    }
    sl_assert_le(sim->options.latency_min_us, sim->options.latency_max_us);
    sl_random_seed(&sim->random, options->seed);
    sl_list_create(&sim->loops);
    sim->next_stream_id = 1;
    sim->next_pid = 1000;
    sim->next_port = 40000;
    return sim;
}

void
sl_sim_free(struct sl_sim *sim)
{
    if (sim == NULL) {
        return;
    }
    sl_assert(sl_list_is_empty(&sim->loops));
    sl_heap_destroy(&sim->events);
    sl_heap_destroy(&sim->timers);
    sl_map_u64_destroy(&sim->streams);
    sl_map_u64_destroy(&sim->processes);
    sl_map_bytes_destroy(&sim->listeners);
    sl_map_bytes_destroy(&sim->cuts);
    sl_vec_destroy(&sim->stalled);
    sl_free(sim);
}

static uint64_t
clock_mono(void *ctx)
{
    return ((struct sim_loop *)ctx)->sim->now_ns;
}

static int64_t
clock_wall(void *ctx)
{
    const struct sim_loop *loop = ctx;
    /* Some fixed moment of 2026. */
    return INT64_C(1767225600000) + (int64_t)(loop->sim->now_ns / 1000000u) + loop->wall_offset_ms;
}

static void
post(struct sl_loop *base, sl_loop_fn fn, void *ctx)
{
    struct sim_loop *loop = sim_loop_of(base);
    if (loop->is_crashed) {
        return;
    }
    struct sim_event *event = sl__sim_schedule(loop, SIM_POST, loop->sim->now_ns);
    event->fn = fn;
    event->ctx = ctx;
}

static void
work(struct sl_loop *base, sl_loop_fn fn, sl_loop_fn done, void *ctx)
{
    struct sim_loop *loop = sim_loop_of(base);
    struct sim_event *event = sl__sim_schedule(loop, SIM_WORK, loop->sim->now_ns);
    event->work = fn;
    event->fn = done;
    event->ctx = ctx;
}

static void
timers_changed(struct sl_loop *base)
{
    struct sim_loop *loop = sim_loop_of(base);
    uint64_t due_ns;
    sl_heap_remove(&loop->sim->timers, &loop->timer_node);
    if (!loop->is_paused && !loop->is_crashed && sl__loop_next_timer(base, &due_ns)) {
        sl_heap_insert(&loop->sim->timers, &loop->timer_node, (int64_t)due_ns);
    }
}

static void
stop(struct sl_loop *base)
{
    sim_loop_of(base)->is_stopped = true;
}

static void
run(struct sl_loop *base)
{
    struct sim_loop *loop = sim_loop_of(base);
    while (!loop->is_stopped && sl_sim_step(loop->sim)) {
    }
    loop->is_stopped = false;
}

static void
run_once(struct sl_loop *base, int timeout_ms)
{
    (void)timeout_ms;
    sl_sim_step(sim_loop_of(base)->sim);
}

/* Drops the events of the loop from a list, keeping those of others. */
static void
drop_listed(struct sim_event_list *list, const struct sim_loop *loop)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i]->loop == loop) {
            sl_free(list->items[i]);
        } else {
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
}

static void
drop_events(struct sim_loop *loop)
{
    struct sl_heap *heap = &loop->sim->events;
    struct sim_event_list mine = SL_VEC_INIT;
    for (size_t i = 0; i < heap->count; i++) {
        struct sim_event *event = sl_container_of(heap->nodes[i], struct sim_event, node);
        if (event->loop == loop) {
            sl_vec_push(&mine, event);
        }
    }
    for (size_t i = 0; i < mine.count; i++) {
        sl_heap_remove(heap, &mine.items[i]->node);
        sl_free(mine.items[i]);
    }
    sl_vec_destroy(&mine);
    drop_listed(&loop->sim->stalled, loop);
    drop_listed(&loop->held, loop);
}

static void
free_loop(struct sl_loop *base)
{
    struct sim_loop *loop = sim_loop_of(base);
    /* The streams are closing; their last callback comes right here. */
    while (!sl_list_is_empty(&base->streams)) {
        struct sim_stream *stream =
            sl_container_of(sl_list_first(&base->streams), struct sim_stream, base.node);
        struct sim_event event = {.kind = SIM_CLOSED, .loop = loop, .stream_id = stream->id};
        sl__sim_stream_event(loop->sim, &event);
    }
    drop_events(loop);
    sl_list_each(&base->processes, it)
    {
        struct sl_process *process = sl_container_of(it, struct sl_process, node);
        sl_map_u64_remove(&loop->sim->processes, (uint64_t)process->pid, NULL);
        sl_free(process);
    }
    sl_heap_remove(&loop->sim->timers, &loop->timer_node);
    sl_heap_destroy(&base->timers);
    sl_vec_destroy(&loop->held);
    sl_list_remove(&loop->node);
    sl_free(loop);
}

static int
no_descriptors(struct sl_loop *loop, int fd, struct sl_fd_watch **watch)
{
    (void)loop;
    (void)fd;
    (void)watch;
    return sl_err_set(SL_EUNAVAIL, "the simulation has no descriptors");
}

static int
spawn(struct sl_loop *base, const struct sl_process_options *options, struct sl_process **out)
{
    struct sl_sim *sim = sim_loop_of(base)->sim;
    int64_t pid = sim->next_pid;
    if (sim->spawner.spawn == NULL) {
        return sl_err_set(SL_ENOTFOUND, "the simulation knows no program %s", options->argv[0]);
    }
    sim->next_pid++;
    int rc = sim->spawner.spawn(sim->spawner.ctx, base, options, pid);
    if (rc == 0) {
        *out = sl_calloc(1, sizeof(**out));
        (*out)->pid = pid;
        sl_map_u64_put_ptr(&sim->processes, (uint64_t)pid, *out);
    }
    return rc;
}

static int
kill_process(struct sl_process *process, int number)
{
    struct sl_sim *sim = sim_loop_of(process->loop)->sim;
    sim->spawner.kill(sim->spawner.ctx, process->pid, number);
    return 0;
}

static void
free_process(struct sl_process *process)
{
    struct sl_sim *sim = sim_loop_of(process->loop)->sim;
    sl_map_u64_remove(&sim->processes, (uint64_t)process->pid, NULL);
    sl_list_remove(&process->node);
    sl_free(process);
}

void
sl_sim_set_spawner(struct sl_sim *sim, const struct sl_sim_spawner *spawner)
{
    sim->spawner = *spawner;
}

void
sl_sim_process_exited(struct sl_sim *sim, int64_t pid, int code, int signal)
{
    struct sl_process *process = sl_map_u64_get_ptr(&sim->processes, (uint64_t)pid);
    if (process == NULL || sim_loop_of(process->loop)->is_crashed) {
        return;
    }
    struct sim_event *event = sl__sim_schedule(sim_loop_of(process->loop), SIM_EXIT, sim->now_ns);
    event->pid = pid;
    event->exit = (struct sl_process_exit){code, signal};
}

static int
open_signal(struct sl_loop *base, int number, struct sl_signal **out)
{
    struct sim_signal *watch = sl_calloc(1, sizeof(*watch));
    (void)number;
    sl_list_push_back(&sim_loop_of(base)->signals, &watch->node);
    *out = &watch->base;
    return 0;
}

static void
close_signal(struct sl_signal *base)
{
    struct sim_signal *watch = (struct sim_signal *)base;
    sl_list_remove(&watch->node);
    sl_free(watch);
}

void
sl_sim_loop_raise(struct sl_loop *base, int number)
{
    struct sim_loop *loop = sim_loop_of(base);
    if (!loop->is_crashed) {
        sl__sim_schedule(loop, SIM_SIGNAL, loop->sim->now_ns)->pid = number;
    }
}

static void
entropy(struct sl_loop *loop, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        ((uint8_t *)bytes)[i] = (uint8_t)sl_random_u64(&loop->random);
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
    .fd_open = no_descriptors,
    .connect = sl__sim_connect,
    .accept = sl__sim_accept,
    .write = sl__sim_write,
    .queued = sl__sim_queued,
    .set_reading = sl__sim_set_reading,
    .stream_close = sl__sim_stream_close,
    .stream_finish = sl__sim_stream_finish,
    .listen = sl__sim_listen,
    .listener_close = sl__sim_listener_close,
    .spawn = spawn,
    .kill = kill_process,
    .process_free = free_process,
    .signal_open = open_signal,
    .signal_close = close_signal,
};

struct sl_loop *
sl_sim_loop_new(struct sl_sim *sim, const char *host)
{
    struct sim_loop *loop = sl_calloc(1, sizeof(*loop));
    sl__loop_create(&loop->loop, &ops);
    loop->sim = sim;
    loop->id = sim->next_loop_id++;
    snprintf(loop->host, sizeof(loop->host), "%s", host);
    loop->loop.clock = (struct sl_clock){clock_mono, clock_wall, loop};
    sl_random_seed(&loop->loop.random, sl_mix64(sim->options.seed) + loop->id);
    sl_list_create(&loop->signals);
    sl_list_push_back(&sim->loops, &loop->node);
    return &loop->loop;
}

uint64_t
sl_sim_now_ms(const struct sl_sim *sim)
{
    return sim->now_ns / 1000000u;
}

uint64_t
sl_sim_trace_hash(const struct sl_sim *sim)
{
    return sim->trace_hash;
}

static void
deliver_signal(struct sim_loop *loop, int number)
{
    sl_list_each(&loop->signals, it)
    {
        struct sim_signal *watch = sl_container_of(it, struct sim_signal, node);
        if (watch->base.number == number) {
            watch->base.fn(watch->base.ctx, number);
        }
    }
}

static void
deliver_exit(struct sl_sim *sim, const struct sim_event *event)
{
    struct sl_process *process = sl_map_u64_get_ptr(&sim->processes, (uint64_t)event->pid);
    if (process != NULL && process->is_running) {
        process->is_running = false;
        process->on_exit(process->ctx, &event->exit);
    }
}

static void
handle_event(struct sl_sim *sim, struct sim_event *event)
{
    sl__sim_trace(sim, sim->now_ns, ((uint64_t)event->loop->id << 8) | (uint64_t)event->kind);
    switch (event->kind) {
    case SIM_POST:
        event->fn(event->ctx);
        break;
    case SIM_WORK:
        event->work(event->ctx);
        post(&event->loop->loop, event->fn, event->ctx);
        break;
    case SIM_EXIT:
        deliver_exit(sim, event);
        break;
    case SIM_SIGNAL:
        deliver_signal(event->loop, (int)event->pid);
        break;
    default:
        sl__sim_stream_event(sim, event);
    }
}

static void
take_event(struct sl_sim *sim)
{
    struct sim_event *event = sl_container_of(sl_heap_pop(&sim->events), struct sim_event, node);
    if (event->loop->is_paused) {
        sl_vec_push(&event->loop->held, event);
    } else if (sl__sim_event_is_stalled(sim, event)) {
        sl_vec_push(&sim->stalled, event);
    } else {
        handle_event(sim, event);
        sl_free(event);
    }
}

static void
take_timer(struct sl_sim *sim)
{
    struct sim_loop *loop = sl_container_of(sl_heap_pop(&sim->timers), struct sim_loop, timer_node);
    struct sl_timer *timer =
        sl_container_of(sl_heap_pop(&loop->loop.timers), struct sl_timer, node);
    timers_changed(&loop->loop);
    sl__sim_trace(sim, sim->now_ns, ((uint64_t)loop->id << 8) | 255);
    timer->fn(timer->ctx, timer->ticket);
}

/* When the next thing happens; false when nothing is to come. */
static bool
next_time(const struct sl_sim *sim, int64_t *at_ns, bool *is_timer)
{
    const struct sl_heap_node *event = sl_heap_peek(&sim->events);
    const struct sl_heap_node *timer = sl_heap_peek(&sim->timers);
    if (event == NULL && timer == NULL) {
        return false;
    }
    *is_timer = event == NULL || (timer != NULL && timer->key < event->key);
    *at_ns = *is_timer ? timer->key : event->key;
    return true;
}

static bool
step_before(struct sl_sim *sim, uint64_t end_ns)
{
    int64_t at_ns;
    bool is_timer;
    if (!next_time(sim, &at_ns, &is_timer) || (uint64_t)at_ns > end_ns) {
        return false;
    }
    /* What was late (a resumed node) happens now. */
    if ((uint64_t)at_ns > sim->now_ns) {
        sim->now_ns = (uint64_t)at_ns;
    }
    if (is_timer) {
        take_timer(sim);
    } else {
        take_event(sim);
    }
    return true;
}

bool
sl_sim_step(struct sl_sim *sim)
{
    return step_before(sim, UINT64_MAX);
}

void
sl_sim_run_for(struct sl_sim *sim, uint64_t ms)
{
    uint64_t end_ns = sim->now_ns + ms * 1000000u;
    while (step_before(sim, end_ns)) {
    }
    sim->now_ns = end_ns;
}

bool
sl_sim_run_until(struct sl_sim *sim, bool (*done)(void *ctx), void *ctx, uint64_t limit_ms)
{
    uint64_t end_ns = sim->now_ns + limit_ms * 1000000u;
    while (!done(ctx)) {
        if (!step_before(sim, end_ns)) {
            return false;
        }
    }
    return true;
}

static void
cut_key(char *key, size_t size, const char *from, const char *to)
{
    snprintf(key, size, "%s>%s", from, to);
}

bool
sl__sim_is_cut(const struct sl_sim *sim, const char *from, const char *to)
{
    char key[2 * SL_ADDRESS_HOST_SIZE];
    if (sim->cuts.count == 0) {
        return false;
    }
    cut_key(key, sizeof(key), from, to);
    return sl_map_bytes_get_str(&sim->cuts, key) != NULL;
}

void
sl_sim_cut(struct sl_sim *sim, const char *from, const char *to)
{
    char key[2 * SL_ADDRESS_HOST_SIZE];
    cut_key(key, sizeof(key), from, to);
    sl_map_bytes_put_str(&sim->cuts, key, sim);
}

/* Puts back what waited, in order; what meets another cut waits again. */
static void
release_stalled(struct sl_sim *sim)
{
    struct sim_event_list list = sim->stalled;
    uint64_t at_ns = sim->now_ns + sl__sim_latency_ns(sim);
    sl_vec_create(&sim->stalled);
    for (size_t i = 0; i < list.count; i++) {
        sl_heap_insert(&sim->events, &list.items[i]->node, (int64_t)at_ns);
    }
    sl_vec_destroy(&list);
}

void
sl_sim_heal(struct sl_sim *sim, const char *from, const char *to)
{
    char key[2 * SL_ADDRESS_HOST_SIZE];
    cut_key(key, sizeof(key), from, to);
    sl_map_bytes_remove_str(&sim->cuts, key);
    release_stalled(sim);
}

void
sl_sim_heal_all(struct sl_sim *sim)
{
    sl_map_bytes_clear(&sim->cuts);
    release_stalled(sim);
}

void
sl_sim_loop_pause(struct sl_loop *base)
{
    struct sim_loop *loop = sim_loop_of(base);
    loop->is_paused = true;
    timers_changed(base);
}

void
sl_sim_loop_resume(struct sl_loop *base)
{
    struct sim_loop *loop = sim_loop_of(base);
    if (!loop->is_paused) {
        return;
    }
    loop->is_paused = false;
    for (size_t i = 0; i < loop->held.count; i++) {
        sl_heap_insert(&loop->sim->events, &loop->held.items[i]->node, (int64_t)loop->sim->now_ns);
    }
    sl_vec_clear(&loop->held);
    timers_changed(base);
}

void
sl_sim_loop_crash(struct sl_loop *base, bool is_silent)
{
    struct sim_loop *loop = sim_loop_of(base);
    sl_assert(!loop->is_crashed);
    loop->is_crashed = true;
    timers_changed(base);
    sl__sim_streams_crash(loop, is_silent);
    drop_events(loop);
}

void
sl_sim_loop_jump_wall(struct sl_loop *base, int64_t delta_ms)
{
    sim_loop_of(base)->wall_offset_ms += delta_ms;
}
