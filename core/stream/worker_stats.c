/* What a worker knows of its tasks: counters, load, latencies, who is busy. */

#include "stream/root_priv.h"
#include "stream/stream_priv.h"
#include "stream/worker.h"

/* Counters are written by one thread; a reader may see them a little late but never torn. */
static double
counter_read(const double *counter)
{
    double value;
    __atomic_load(counter, &value, __ATOMIC_RELAXED);
    return value;
}

int
sl_worker_stats(struct sl_worker *self, int32_t id, struct sl_task_stats *out)
{
    /* Under the lock no task is detached. */
    pthread_mutex_lock(&self->plan_lock);
    struct sl__task *task = id >= 0 && id < self->task_capacity ? self->tasks[id] : NULL;
    if (task != NULL) {
        *out = (struct sl_task_stats){.task = id,
                                      .component = task->io.component,
                                      .index = task->io.index,
                                      .executor = task->executor->index,
                                      .emitted = counter_read(&task->io.emitted),
                                      .executed = counter_read(&task->io.executed),
                                      .failed = counter_read(&task->io.failed),
                                      .errors = counter_read(&task->io.errors)};
        out->acked = counter_read(&task->io.acked) +
                     (double)__atomic_load_n(&task->latency_count, __ATOMIC_RELAXED);
        out->pending = __atomic_load_n(&task->root_count, __ATOMIC_RELAXED) -
                       __atomic_load_n(&task->free_slot_count, __ATOMIC_RELAXED);
        out->queued = (double)__atomic_load_n(&task->queued, __ATOMIC_RELAXED);
        out->latency_ns =
            task->io.kind == SL_TASK_SPOUT
                ? (double)((uint64_t)__atomic_load_n(&task->latency_value, __ATOMIC_RELAXED)
                           << SL__ROOT_TIME_SHIFT)
                : counter_read(&task->cost_ns);
    }
    pthread_mutex_unlock(&self->plan_lock);
    return task != NULL ? 0 : sl_err_set(SL_ENOTFOUND, "task %d is not attached", id);
}

void
sl_worker_load(struct sl_worker *self, struct sl_worker_load *out)
{
    *out = (struct sl_worker_load){0, 0};
    pthread_mutex_lock(&self->plan_lock);
    for (int32_t i = 0; i < self->task_capacity; i++) {
        const struct sl__task *task = self->tasks[i];
        if (task != NULL) {
            out->roots += (uint64_t)(__atomic_load_n(&task->root_count, __ATOMIC_RELAXED) -
                                     __atomic_load_n(&task->free_slot_count, __ATOMIC_RELAXED));
            /* Of a spout that is only paused they wait until it is called again. */
            if (__atomic_load_n(&task->is_draining, __ATOMIC_RELAXED)) {
                out->roots += (uint64_t)__atomic_load_n(&task->io.replaying, __ATOMIC_RELAXED);
            }
            out->waiting += (uint64_t)__atomic_load_n(&task->queued, __ATOMIC_RELAXED);
        }
    }
    pthread_mutex_unlock(&self->plan_lock);
    for (int32_t i = 0; i < self->executor_count; i++) {
        /* It goes to rest only when it has handed over all it can. */
        out->waiting += __atomic_load_n(&self->executors[i]->is_asleep, __ATOMIC_SEQ_CST) == 0;
    }
}

int
sl_worker_gone_stats(struct sl_worker *self, int32_t component, struct sl_task_stats *out)
{
    if (!sl__has_component(self, component)) {
        return sl_err_set(SL_EINVAL, "no component %d", component);
    }
    pthread_mutex_lock(&self->plan_lock);
    *out = self->components.items[component].gone;
    pthread_mutex_unlock(&self->plan_lock);
    out->task = -1;
    out->component = component;
    out->index = -1;
    out->executor = -1;
    return 0;
}

void
sl_worker_busy(struct sl_worker *self, int32_t index, struct sl_busy *out)
{
    *out = (struct sl_busy){.task = -1, .executor = index};
    struct sl_executor *executor = sl_worker_executor(self, index);
    if (executor == NULL) {
        return;
    }
    out->task = __atomic_load_n(&executor->current_task, __ATOMIC_RELAXED);
    uint64_t since = __atomic_load_n(&executor->current_since_ns, __ATOMIC_RELAXED);
    uint64_t now = sl_clock_mono_ns(self->clock);
    out->for_ms = out->task >= 0 && now > since ? (double)(now - since) / 1e6 : 0;
}

double
sl_worker_latency_ms(struct sl_worker *self, double quantile)
{
    struct sl_histogram *all = sl_histogram_new();
    if (self->gone_latency != NULL) {
        sl_histogram_merge(all, self->gone_latency);
    }
    for (int32_t e = 0; e < self->executor_count; e++) {
        for (size_t i = 0; i < self->executors[e]->spouts.count; i++) {
            struct sl__task *spout = self->executors[e]->spouts.items[i];
            sl__latency_settle(spout);
            sl_histogram_merge(all, spout->latency);
        }
    }
    double value = -1;
    if (all->count > 0) {
        value = (double)sl_histogram_quantile(all, quantile) / 1e6;
    }
    sl_histogram_free(all);
    return value;
}

int32_t
sl_worker_dropped_in_cycles(const struct sl_worker *self)
{
    return __atomic_load_n(&self->dropped_in_cycles, __ATOMIC_RELAXED);
}
