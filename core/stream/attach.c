/* Tasks come to an executor and leave it: attaching, routing, detaching, ticks. */

#include "base/alloc.h"
#include "stream/executor.h"
#include "stream/stream_priv.h"

/* Batches that came before their task. */
static void
adopt_early(struct sl_executor *self, struct sl__task *task)
{
    struct sl__queue waiting = self->early;
    self->early = (struct sl__queue){NULL, NULL};
    while (waiting.first != NULL) {
        struct sl__batch *batch = sl__queue_pop(&waiting);
        if (batch->io.dest == task->io.id) {
            sl__task_enqueue(task, batch);
            continue;
        }
        sl__queue_push(&self->early, batch);
    }
}

static void
attach_acker(struct sl_executor *self, struct sl__task *task)
{
    struct sl_worker *worker = self->worker;
    struct sl__acker *acker = sl__acker_new(task);
    for (int32_t i = 0; i < worker->acker_count; i++) {
        if (worker->acker_task[i] == task->io.id) {
            worker->ackers[i] = acker;
        }
    }
    sl_vec_push(&self->ackers, acker);
}

/* What it still keeps is of roots that have ended. */
static void
detach_acker(struct sl_executor *self, const struct sl__task *task)
{
    struct sl_worker *worker = self->worker;
    for (size_t i = 0; i < self->ackers.count; i++) {
        struct sl__acker *acker = self->ackers.items[i];
        if (acker->task == task) {
            for (int32_t k = 0; k < worker->acker_count; k++) {
                worker->ackers[k] = worker->ackers[k] == acker ? NULL : worker->ackers[k];
            }
            sl_vec_remove(&self->ackers, i);
            sl__acker_free(acker);
            return;
        }
    }
}

#define LIST_REMOVE(list, task)                                                                    \
    do {                                                                                           \
        for (size_t sl_i = 0; sl_i < (list)->count; sl_i++) {                                      \
            if ((list)->items[sl_i] == (task)) {                                                   \
                sl_vec_remove((list), sl_i);                                                       \
                break;                                                                             \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* A task as the plan describes it; NULL with the error set when the plan does not. */
static struct sl__task *
attach_new(struct sl_executor *self, int32_t id)
{
    struct sl_worker *worker = self->worker;
    struct sl__task *task = NULL;
    pthread_mutex_lock(&worker->plan_lock);
    if (id < 0 || id >= worker->task_capacity || worker->task_executor[id] != self->index) {
        sl_err_set(SL_EINVAL, "task %d is not planned for executor %d", id, self->index);
    } else if (worker->tasks[id] != NULL) {
        sl_err_set(SL_EEXIST, "task %d is attached already", id);
    } else {
        int32_t component = worker->task_component[id];
        int32_t kind = worker->components.items[component].kind;
        task = sl__task_new(self, id, component, worker->task_index[id], kind);
        for (int32_t i = 0; i < worker->spout_count && kind == SL_TASK_SPOUT; i++) {
            if (sl__spout_home(worker, (uint32_t)i).task == id) {
                task->spout_index = i;
            }
        }
        worker->is_live = true;
    }
    pthread_mutex_unlock(&worker->plan_lock);
    return task;
}

int
sl_executor_attach(struct sl_executor *self, int32_t id, struct sl_task **out)
{
    struct sl_worker *worker = self->worker;
    struct sl__task *task = attach_new(self, id);
    if (task == NULL) {
        return sl_err_last()->code;
    }
    bool is_spout = task->io.kind == SL_TASK_SPOUT;
    int rc = is_spout ? sl__roots_create(task) : 0;
    if (rc == 0) {
        rc = sl__task_route(task);
    }
    if (rc != 0) {
        LIST_REMOVE(&self->touched, task);
        sl__task_free(task);
        return rc;
    }
    sl_vec_push(&self->tasks, task);
    if (is_spout) {
        sl_vec_push(&self->spouts, task);
        self->spout_of[task->spout_index] = task;
        task->is_draining = self->is_draining;
    }
    if (task->io.kind == SL_TASK_ACKER) {
        attach_acker(self, task);
        task->is_finished = true;
    }
    pthread_mutex_lock(&worker->plan_lock);
    worker->tasks[id] = task;
    pthread_mutex_unlock(&worker->plan_lock);
    adopt_early(self, task);
    sl__acks_adopt(self);
    if (self->is_finished_reported && !task->is_finished) {
        sl__task_resume(task);
    }
    *out = &task->io;
    return 0;
}

static void
ready_remove(struct sl_executor *self, struct sl__task *task)
{
    struct sl__task **link = &self->ready_first;
    struct sl__task *previous = NULL;
    while (*link != NULL && *link != task) {
        previous = *link;
        link = &(*link)->ready_next;
    }
    if (*link == task) {
        *link = task->ready_next;
        if (self->ready_last == task) {
            self->ready_last = previous;
        }
        task->is_ready_queued = false;
    }
}

/* Takes the task out of the plan's records; its counters go into its component's. */
static void
detach_forget(struct sl_executor *self, struct sl__task *task)
{
    struct sl_worker *worker = self->worker;
    int32_t id = task->io.id;
    pthread_mutex_lock(&worker->plan_lock);
    struct sl__component *component = &worker->components.items[task->io.component];
    LIST_REMOVE(&component->leaving, id);
    component->gone_finished += task->is_finished;
    if (task->spout_index >= 0) {
        sl__latency_settle(task);
        if (worker->gone_latency == NULL) {
            worker->gone_latency = sl_histogram_new();
        }
        sl_histogram_merge(worker->gone_latency, task->latency);
        self->spout_of[task->spout_index] = NULL;
        if (sl__spout_home(worker, (uint32_t)task->spout_index).executor == self->index) {
            sl__spout_set_home(worker, task->spout_index, -1, self->index);
        }
    }
    struct sl_task_stats *gone = &component->gone;
    gone->emitted += task->io.emitted;
    gone->executed += task->io.executed;
    gone->acked += task->io.acked;
    gone->failed += task->io.failed;
    gone->errors += task->io.errors;
    worker->tasks[id] = NULL;
    /* Unless it has moved to another process. */
    if (worker->task_executor[id] == self->index) {
        worker->task_executor[id] = -1;
    }
    __atomic_add_fetch(&worker->plan_version, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&worker->plan_lock);
}

int
sl_executor_detach(struct sl_executor *self, int32_t id)
{
    struct sl_worker *worker = self->worker;
    struct sl__task *task = id >= 0 && id < worker->task_capacity ? worker->tasks[id] : NULL;
    if (task == NULL || task->executor != self) {
        return sl_err_set(SL_ENOTFOUND, "task %d is not attached to executor %d", id, self->index);
    }
    if (!sl__task_is_planned_to_leave(task)) {
        return sl_err_set(SL_EINVAL, "task %d has not been taken out of the plan", id);
    }
    if (!sl__task_is_drained(task)) {
        return sl_err_set(SL_EAGAIN, "task %d still has tuples under way", id);
    }
    ready_remove(self, task);
    LIST_REMOVE(&self->tasks, task);
    LIST_REMOVE(&self->spouts, task);
    LIST_REMOVE(&self->touched, task);
    LIST_REMOVE(&self->leaving, task);
    detach_acker(self, task);
    detach_forget(self, task);
    sl__task_free(task);
    return 0;
}

int
sl_executor_route(struct sl_executor *self)
{
    int rc = 0;
    for (size_t i = 0; i < self->tasks.count && rc == 0; i++) {
        rc = sl__task_route(self->tasks.items[i]);
    }
    return rc;
}

void
sl_task_opened(struct sl_task *io)
{
    sl__task_of(io)->is_open = true;
}

int32_t
sl_task_emitter_count(struct sl_task *io)
{
    return (int32_t)sl__task_of(io)->emitters.count;
}

struct sl_emitter *
sl_task_emitter(struct sl_task *io, int32_t at)
{
    struct sl__task *task = sl__task_of(io);
    return at >= 0 && (size_t)at < task->emitters.count ? &task->emitters.items[at]->io : NULL;
}

static uint64_t
tick_first(struct sl_executor *executor, uint64_t period_ns, bool is_aligned)
{
    uint64_t now = sl__executor_refresh(executor);
    if (!is_aligned) {
        return now + period_ns;
    }
    int64_t wall_ms = sl_clock_wall_ms(executor->worker->clock);
    uint64_t period_ms = period_ns / 1000000u;
    if (period_ms == 0) {
        return now + period_ns;
    }
    return now + (period_ms - (uint64_t)wall_ms % period_ms) * 1000000u;
}

void
sl_task_tick(struct sl_task *io, double period_ms, int32_t is_aligned)
{
    struct sl__task *task = sl__task_of(io);
    if (!(period_ms >= 0.001 && period_ms <= 1e12)) {
        sl_err_set(SL_EINVAL, "ticks of task %d every %g ms", io->id, period_ms);
        return;
    }
    task->tick_ns = (uint64_t)(period_ms * 1e6);
    task->tick_next_ns = tick_first(task->executor, task->tick_ns, is_aligned != 0);
    if (task->tick_next_ns < task->executor->timer_at_ns) {
        task->executor->timer_at_ns = task->tick_next_ns;
    }
}

void
sl_executor_hold(struct sl_executor *self, int32_t hold)
{
    self->is_held = hold != SL_HOLD_NOTHING;
    self->keeps_way = hold == SL_HOLD_TICKS_AND_WAY;
}
