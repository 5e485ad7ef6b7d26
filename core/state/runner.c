#include "state/runner.h"

#include <pthread.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"

struct task {
    struct sl_list_node node;
    sl_state_task_fn fn;
    void *arg;
};

struct timer {
    struct sl_heap_node node;
    uint64_t ticket;
    sl_state_task_fn fn;
    void *arg;
};

struct sl_state_runner {
    struct sl_state_executor executor;
    /* NULL in real time. */
    struct sl_manual_clock *manual;
    /* Guards tasks; everything else belongs to the owner's thread. */
    pthread_mutex_t mutex;
    pthread_cond_t posted;
    struct sl_list tasks;
    struct sl_heap timers;
    struct sl_map_u64 by_ticket;
    uint64_t next_ticket;
};

static void
runner_post(void *ctx, sl_state_task_fn fn, void *arg)
{
    struct sl_state_runner *self = ctx;
    struct task *task = sl_calloc(1, sizeof(*task));
    task->fn = fn;
    task->arg = arg;
    pthread_mutex_lock(&self->mutex);
    sl_list_push_back(&self->tasks, &task->node);
    pthread_cond_signal(&self->posted);
    pthread_mutex_unlock(&self->mutex);
}

static uint64_t
runner_timer_start(void *ctx, uint64_t delay_ms, sl_state_task_fn fn, void *arg)
{
    struct sl_state_runner *self = ctx;
    struct timer *timer = sl_calloc(1, sizeof(*timer));
    timer->ticket = ++self->next_ticket;
    timer->fn = fn;
    timer->arg = arg;
    /* One more than asked in real time, since the present millisecond is partly over. */
    uint64_t due = sl_clock_mono_ms(self->executor.clock) + delay_ms + (self->manual == NULL);
    sl_heap_insert(&self->timers, &timer->node, (int64_t)due);
    sl_map_u64_put_ptr(&self->by_ticket, timer->ticket, timer);
    return timer->ticket;
}

static void
runner_timer_stop(void *ctx, uint64_t ticket)
{
    struct sl_state_runner *self = ctx;
    struct timer *timer = sl_map_u64_remove_ptr(&self->by_ticket, ticket);
    if (timer != NULL) {
        sl_heap_remove(&self->timers, &timer->node);
        sl_free(timer);
    }
}

static struct sl_state_runner *
runner_new(struct sl_manual_clock *manual)
{
    struct sl_state_runner *self = sl_calloc(1, sizeof(*self));
    self->manual = manual;
    self->executor = (struct sl_state_executor){
        .post = runner_post,
        .timer_start = runner_timer_start,
        .timer_stop = runner_timer_stop,
        .clock = manual != NULL ? &manual->clock : sl_clock_system(),
        .ctx = self,
    };
    pthread_mutex_init(&self->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->posted, &attributes);
    pthread_condattr_destroy(&attributes);
    sl_list_create(&self->tasks);
    return self;
}

struct sl_state_runner *
sl_state_runner_new(void)
{
    return runner_new(NULL);
}

struct sl_state_runner *
sl_state_runner_virtual_new(struct sl_manual_clock *clock)
{
    return runner_new(clock);
}

void
sl_state_runner_free(struct sl_state_runner *self)
{
    if (self == NULL) {
        return;
    }
    struct sl_list_node *node;
    while ((node = sl_list_pop_front(&self->tasks)) != NULL) {
        sl_free(sl_container_of(node, struct task, node));
    }
    struct sl_heap_node *timer;
    while ((timer = sl_heap_pop(&self->timers)) != NULL) {
        sl_free(sl_container_of(timer, struct timer, node));
    }
    sl_heap_destroy(&self->timers);
    sl_map_u64_destroy(&self->by_ticket);
    pthread_cond_destroy(&self->posted);
    pthread_mutex_destroy(&self->mutex);
    sl_free(self);
}

const struct sl_state_executor *
sl_state_runner_executor(struct sl_state_runner *self)
{
    return &self->executor;
}

uint64_t
sl_state_runner_timer_count(const struct sl_state_runner *self)
{
    return self->timers.count;
}

static struct task *
take_task(struct sl_state_runner *self)
{
    pthread_mutex_lock(&self->mutex);
    struct sl_list_node *node = sl_list_pop_front(&self->tasks);
    pthread_mutex_unlock(&self->mutex);
    return node != NULL ? sl_container_of(node, struct task, node) : NULL;
}

static void
run_timer(struct sl_state_runner *self)
{
    struct timer *timer = sl_container_of(sl_heap_pop(&self->timers), struct timer, node);
    sl_map_u64_remove(&self->by_ticket, timer->ticket, NULL);
    sl_state_task_fn fn = timer->fn;
    void *arg = timer->arg;
    sl_free(timer);
    fn(arg);
}

/* Waits for a task, or until the moment until_ms, or until the next timer. Real time only. */
static void
wait_for_task(struct sl_state_runner *self, uint64_t until_ms)
{
    struct sl_heap_node *next = sl_heap_peek(&self->timers);
    if (next != NULL && (uint64_t)next->key < until_ms) {
        until_ms = (uint64_t)next->key;
    }
    struct timespec at = {(time_t)(until_ms / 1000), (long)(until_ms % 1000) * 1000000};
    pthread_mutex_lock(&self->mutex);
    if (sl_list_is_empty(&self->tasks)) {
        pthread_cond_timedwait(&self->posted, &self->mutex, &at);
    }
    pthread_mutex_unlock(&self->mutex);
}

bool
sl_state_runner_step(struct sl_state_runner *self, uint64_t until_ms)
{
    struct task *task = take_task(self);
    if (task != NULL) {
        sl_state_task_fn fn = task->fn;
        void *arg = task->arg;
        sl_free(task);
        fn(arg);
        return true;
    }
    struct sl_heap_node *next = sl_heap_peek(&self->timers);
    if (next == NULL || (uint64_t)next->key > until_ms) {
        return false;
    }
    uint64_t now = sl_clock_mono_ms(self->executor.clock);
    if ((uint64_t)next->key > now) {
        if (self->manual == NULL) {
            return false;
        }
        sl_manual_clock_advance_ms(self->manual, (uint64_t)next->key - now);
    }
    run_timer(self);
    return true;
}

bool
sl_state_runner_run_until(struct sl_state_runner *self, const bool *done, uint64_t timeout_ms)
{
    uint64_t until = sl_clock_mono_ms(self->executor.clock) + timeout_ms;
    while (!*done) {
        if (sl_state_runner_step(self, until)) {
            continue;
        }
        if (self->manual != NULL || sl_clock_mono_ms(self->executor.clock) >= until) {
            return false;
        }
        wait_for_task(self, until);
    }
    return true;
}

void
sl_state_runner_run_for(struct sl_state_runner *self, uint64_t duration_ms)
{
    bool never = false;
    uint64_t until = sl_clock_mono_ms(self->executor.clock) + duration_ms;
    sl_state_runner_run_until(self, &never, duration_ms);
    uint64_t now = sl_clock_mono_ms(self->executor.clock);
    if (self->manual != NULL && now < until) {
        sl_manual_clock_advance_ms(self->manual, until - now);
    }
}
