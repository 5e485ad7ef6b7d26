/*
 * The executor loop: what to do next.  Order of a turn: what arrived, timers, commands, completed
 * roots, ticks, then bolts and spouts by turns, then ends of input; when there is nothing, outboxes
 * are flushed and the thread spins a little and parks.
 *
 * An emit without room runs other tasks of this executor nested, but only those that come later in
 * the topology (a higher rank).  That is what keeps an acyclic topology free of dead-lock: of all
 * tasks with input, one of the highest rank is never waited for in vain, since its own receivers
 * have nothing queued and its executor, if it waits, waits in a task of lower rank and may run it
 * nested.
 */

#include "stream/executor.h"

#include "base/alloc.h"
#include "stream/stream_priv.h"
#include "stream/worker.h"

static uint64_t
refresh(struct sl_executor *self)
{
    self->now_ns = sl_clock_mono_ns(self->worker->clock);
    return self->now_ns;
}

int32_t
sl_executor_index(const struct sl_executor *self)
{
    return self->index;
}

void
sl_executor_calls(struct sl_executor *self, int32_t task)
{
    __atomic_store_n(&self->current_since_ns, refresh(self), __ATOMIC_RELAXED);
    __atomic_store_n(&self->current_task, task, __ATOMIC_RELAXED);
}

double
sl_executor_now_ms(struct sl_executor *self)
{
    return (double)sl_clock_wall_ms(self->worker->clock);
}

/* ---- tasks ---------------------------------------------------------------------------------- */

/* Batches that came before their task. */
static void
adopt_early(struct sl_executor *self, struct sl__task *task)
{
    struct sl__queue waiting = self->early;
    self->early = (struct sl__queue){NULL, NULL};
    while (waiting.first != NULL) {
        struct sl__batch *batch = waiting.first;
        waiting.first = batch->next;
        if (batch->io.dest == task->io.id) {
            sl__task_enqueue(task, batch);
            continue;
        }
        batch->next = NULL;
        if (self->early.last != NULL) {
            self->early.last->next = batch;
        } else {
            self->early.first = batch;
        }
        self->early.last = batch;
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
            if (worker->spouts[i].task == id) {
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
        worker->spouts[task->spout_index].task = -1;
    }
    struct sl_task_stats *gone = &component->gone;
    gone->emitted += task->io.emitted;
    gone->executed += task->io.executed;
    gone->acked += task->io.acked;
    gone->failed += task->io.failed;
    gone->errors += task->io.errors;
    worker->tasks[id] = NULL;
    worker->task_executor[id] = -1;
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
    uint64_t now = refresh(executor);
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

/* ---- rounds --------------------------------------------------------------------------------- */

/* Begins the rounds that are due; after more than a whole time-out the number makes no difference.
 */
static void
round_advance(struct sl_executor *self)
{
    uint64_t period = self->worker->timeout_ns / SL__ROUNDS;
    uint64_t due = 1 + (self->now_ns - self->round_at_ns) / period;
    self->round += due < SL__ROUNDS + 1 ? (uint32_t)due : SL__ROUNDS + 1;
    self->round_at_ns += due * period;
    self->is_expiry_due = true;
}

/* ---- turns ---------------------------------------------------------------------------------- */

static void
frame_push(struct sl_executor *self, struct sl__task *task, int32_t kind)
{
    struct sl__frame frame = {task, self->now_ns, kind};
    sl_vec_push(&self->stack, frame);
    task->is_busy = true;
    task->io.yield = 0;
    task->io.emits = 0;
    __atomic_store_n(&task->is_quiet, 0, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&task->activity, 1, __ATOMIC_SEQ_CST);
    sl__task_touch(task);
    __atomic_store_n(&self->current_since_ns, self->now_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&self->current_task, task->io.id, __ATOMIC_RELAXED);
}

/* Ends the innermost turn; how long it took. */
static uint64_t
frame_pop(struct sl_executor *self, struct sl__task *task)
{
    struct sl__frame frame = sl_vec_pop(&self->stack);
    sl_assert(frame.task == task);
    uint64_t started = frame.start_ns;
    uint64_t now = refresh(self);
    task->is_busy = false;
    sl__count(&task->io.emitted, task->io.emits);
    task->io.emits = 0;
    task->io.record = task->idle_record;
    /* A tick that came due while the task was busy is one of the timers again. */
    if (task->tick_ns > 0 && task->tick_next_ns < self->timer_at_ns) {
        self->timer_at_ns = task->tick_next_ns;
    }
    int32_t outer = self->stack.count > 0 ? sl_vec_last(&self->stack).task->io.id : -1;
    __atomic_store_n(&self->current_since_ns, now, __ATOMIC_RELAXED);
    __atomic_store_n(&self->current_task, outer, __ATOMIC_RELAXED);
    return now - started;
}

static int32_t
turn_size(const struct sl__task *task, int32_t most)
{
    if (task->cost_ns <= 0) {
        return most < 32 ? most : 32;
    }
    double fit = SL__TURN_NS / task->cost_ns;
    if (fit < 1) {
        return 1;
    }
    return fit < most ? (int32_t)fit : most;
}

static void
cost_update(struct sl__task *task, uint64_t taken_ns, int32_t count)
{
    if (count <= 0) {
        return;
    }
    double cost = (double)taken_ns / count;
    /* At most doubled at once: one turn in which the thread did not have the core says little. */
    if (task->cost_ns > 0 && cost > task->cost_ns * 2) {
        cost = task->cost_ns * 2;
    }
    double smoothed = task->cost_ns > 0 ? (task->cost_ns + cost) / 2 : cost;
    __atomic_store(&task->cost_ns, &smoothed, __ATOMIC_RELAXED);
}

static struct sl__queue *
head_queue(struct sl__task *task)
{
    return task->inner.first != NULL ? &task->inner : &task->input;
}

static void
queue_pop(struct sl_executor *self, struct sl__task *task, struct sl__queue *queue)
{
    struct sl__batch *batch = queue->first;
    queue->first = batch->next;
    if (queue->first == NULL) {
        queue->last = NULL;
    }
    struct sl__outbox *outbox = batch->outbox;
    if (batch->mark != 0) {
        sl__task_marked(task, outbox, batch->mark);
    }
    sl__batch_give(self, batch);
    sl__outbox_released(self, outbox);
}

/* Drops empty batches at the head of the input, which only carry the mark of an end. */
static bool
has_records(struct sl_executor *self, struct sl__task *task)
{
    for (;;) {
        struct sl__queue *queue = head_queue(task);
        if (queue->first == NULL) {
            return false;
        }
        if (queue->first->io.count > 0) {
            return true;
        }
        queue_pop(self, task, queue);
    }
}

/* A bolt of a cycle takes from outside only while its own edges in the cycle have credit. */
static bool
is_cycle_full(const struct sl__task *task)
{
    if (task->scc < 0 || task->inner.first != NULL) {
        return false;
    }
    for (size_t i = 0; i < task->outboxes.count; i++) {
        const struct sl__outbox *outbox = task->outboxes.items[i];
        if (outbox->is_cyclic &&
            __atomic_load_n(&outbox->in_flight, __ATOMIC_ACQUIRE) >= outbox->credit) {
            return true;
        }
    }
    return false;
}

static bool
bolt_can_run(struct sl_executor *self, struct sl__task *task, int32_t above_rank)
{
    return !task->is_busy && task->is_open && task->rank > above_rank && has_records(self, task) &&
           !sl__task_is_gated(task) && !is_cycle_full(task);
}

static int
batch_turn(struct sl_executor *self, struct sl__task *task, struct sl_turn *turn)
{
    struct sl__batch *batch = head_queue(task)->first;
    turn->kind = SL_TURN_BATCH;
    turn->task = task->io.id;
    turn->batch = &batch->io;
    turn->source = batch->io.source;
    turn->stream = batch->io.stream;
    turn->head = batch->io.head;
    turn->texts = batch->pool == &self->pool ? batch->texts : 0;
    turn->count = turn_size(task, batch->io.count);
    frame_push(self, task, SL_TURN_BATCH);
    return SL_TURN_BATCH;
}

/* The first bolt in order of arrival that can run and has a rank above the given one. */
static struct sl__task *
ready_pick(struct sl_executor *self, int32_t above_rank)
{
    struct sl__task *task = self->ready_first;
    struct sl__task *previous = NULL;
    while (task != NULL) {
        struct sl__task *next = task->ready_next;
        bool can_run = bolt_can_run(self, task, above_rank);
        bool is_empty = task->input.first == NULL && task->inner.first == NULL;
        if (can_run || is_empty) {
            if (previous != NULL) {
                previous->ready_next = next;
            } else {
                self->ready_first = next;
            }
            if (self->ready_last == task) {
                self->ready_last = previous;
            }
            task->is_ready_queued = false;
            if (can_run) {
                return task;
            }
        } else {
            previous = task;
        }
        task = next;
    }
    return NULL;
}

static void
ready_again(struct sl_executor *self, struct sl__task *task)
{
    if (!task->is_ready_queued && (task->input.first != NULL || task->inner.first != NULL)) {
        task->is_ready_queued = true;
        task->ready_next = NULL;
        if (self->ready_last != NULL) {
            self->ready_last->ready_next = task;
        } else {
            self->ready_first = task;
        }
        self->ready_last = task;
    }
}

/* True when the turn is the innermost one and of this kind; else the error is set. */
static bool
is_running(struct sl_executor *self, const struct sl_turn *turn, int32_t kind)
{
    if (self->stack.count > 0) {
        const struct sl__frame *frame = &sl_vec_last(&self->stack);
        if (frame->task->io.id == turn->task && frame->kind == kind && turn->kind == kind) {
            return true;
        }
    }
    sl_err_set(SL_EINVAL, "executor %d is not in such a turn of task %d", self->index, turn->task);
    return false;
}

int32_t
sl_batch_position(struct sl_executor *self, struct sl_turn *turn)
{
    if (!is_running(self, turn, SL_TURN_BATCH)) {
        return SL_EINVAL;
    }
    const uint8_t *at = turn->batch->head;
    const struct sl_record *current = self->worker->tasks[turn->task]->io.record;
    int32_t position = 0;
    while (at < turn->batch->tail && (const struct sl_record *)at != current) {
        at += ((const struct sl_record *)at)->len;
        position++;
    }
    return position;
}

void
sl_batch_end(struct sl_executor *self, struct sl_turn *turn, int32_t count, uint8_t *head)
{
    if (!is_running(self, turn, SL_TURN_BATCH)) {
        return;
    }
    struct sl__task *task = self->worker->tasks[turn->task];
    struct sl__batch *batch = head_queue(task)->first;
    if (turn->batch != &batch->io || count < 0 || count > batch->io.count ||
        head < batch->io.head || head > batch->io.tail) {
        sl_err_set(SL_EINVAL, "task %d executed %d of %d records", turn->task, count,
                   batch->io.count);
        count = batch->io.count;
        head = batch->io.tail;
    }
    uint64_t taken = frame_pop(self, task);
    batch->io.count -= count;
    batch->io.head = head;
    sl__count(&task->io.executed, count);
    sl__publish(&task->queued, task->queued - count);
    cost_update(task, taken, count);
    if (batch->io.count == 0) {
        struct sl__queue *queue = batch->outbox->is_cyclic ? &task->inner : &task->input;
        sl_assert(queue->first == batch);
        queue_pop(self, task, queue);
    }
    ready_again(self, task);
    self->idle_since_ns = self->now_ns;
}

void
sl_spout_reopen(struct sl_task *io)
{
    struct sl__task *task = sl__task_of(io);
    task->is_done = false;
    if (task->is_finished) {
        sl__task_resume(task);
    }
    task->poll_at_ns = 0;
    task->backoff_ns = 0;
}

void
sl_spout_end(struct sl_executor *self, struct sl_turn *turn, int32_t calls, int32_t result,
             double again_ms)
{
    if (!is_running(self, turn, SL_TURN_SPOUT)) {
        return;
    }
    struct sl__task *task = self->worker->tasks[turn->task];
    bool has_emitted = task->io.emits > 0;
    uint64_t taken = frame_pop(self, task);
    cost_update(task, taken, calls);
    sl_vec_clear(&task->anchors);
    if (self->now_ns >= self->round_at_ns) {
        /* When in this turn its roots began is not known: count from its end. */
        round_advance(self);
        sl__roots_restart(task, self->now_ns - taken);
    }
    if (result == SL_SPOUT_DONE) {
        task->is_done = true;
    } else if (result == SL_SPOUT_NOTHING) {
        uint64_t next = task->backoff_ns * 2;
        task->backoff_ns = next < SL__BACKOFF_MIN_NS   ? SL__BACKOFF_MIN_NS
                           : next > SL__BACKOFF_MAX_NS ? SL__BACKOFF_MAX_NS
                                                       : next;
        if (has_emitted) {
            task->backoff_ns = SL__BACKOFF_MIN_NS;
        }
        task->poll_at_ns = self->now_ns + task->backoff_ns;
        if (again_ms >= 0 && again_ms <= 1e12) {
            task->poll_at_ns = self->now_ns + (uint64_t)(again_ms * 1e6);
        }
    } else {
        task->backoff_ns = 0;
        task->poll_at_ns = 0;
    }
    if (has_emitted) {
        self->idle_since_ns = self->now_ns;
    }
}

void
sl_turn_end(struct sl_executor *self, struct sl_turn *turn)
{
    if (turn->kind == SL_TURN_COMMAND || !is_running(self, turn, turn->kind)) {
        return;
    }
    struct sl__task *task = self->worker->tasks[turn->task];
    frame_pop(self, task);
    if (turn->kind == SL_TURN_FINISH) {
        sl__task_finished(task);
    }
    self->idle_since_ns = self->now_ns;
}

/* ---- what to do ----------------------------------------------------------------------------- */

static bool
data_intake(struct sl_executor *self)
{
    struct sl_worker *worker = self->worker;
    bool has_any = false;
    for (int32_t source = 0; source < worker->executor_count; source++) {
        int32_t at = source * worker->executor_count + self->index;
        struct sl_ring *ring = __atomic_load_n(&worker->data[at], __ATOMIC_ACQUIRE);
        struct sl__batch *batch;
        while (ring != NULL && sl_ring_pop(ring, &batch)) {
            sl__executor_deliver(self, batch);
            has_any = true;
        }
    }
    return has_any;
}

/* What has been in this executor's hands for too long fails. */
static void
rounds_expire(struct sl_executor *self)
{
    self->is_expiry_due = false;
    for (size_t i = 0; i < self->spouts.count; i++) {
        sl__roots_expire(self->spouts.items[i]);
    }
    for (size_t i = 0; i < self->ackers.count; i++) {
        sl__acker_expire(self->ackers.items[i]);
    }
    for (size_t i = 0; i < self->tasks.count; i++) {
        sl__held_expire(self->tasks.items[i]);
    }
}

/* Finds when the next timer is. */
static void
timers_run(struct sl_executor *self)
{
    uint64_t next = self->round_at_ns;
    for (size_t i = 0; i < self->tasks.count; i++) {
        struct sl__task *task = self->tasks.items[i];
        /* A busy task ticks when its turn has ended: see frame_pop. */
        if (task->tick_ns > 0 && !task->is_busy && task->tick_next_ns < next) {
            next = task->tick_next_ns;
        }
    }
    self->timer_at_ns = next;
}

static void
spout_drain(struct sl__task *task)
{
    task->is_draining = true;
    task->poll_at_ns = 0;
}

/* A task that is to be removed is let go when it is drained; until then it goes on. */
static bool
command_is_later(struct sl_executor *self, int32_t command, int32_t id)
{
    bool is_known = id >= 0 && id < self->worker->task_capacity;
    struct sl__task *task = is_known ? self->worker->tasks[id] : NULL;
    if (command != SL_COMMAND_REMOVE_TASK || task == NULL || task->executor != self ||
        !sl__task_is_planned_to_leave(task)) {
        return false;
    }
    if (!task->is_leaving) {
        task->is_leaving = true;
        sl_vec_push(&self->leaving, task);
    }
    if (task->io.kind == SL_TASK_SPOUT) {
        spout_drain(task);
    }
    return true;
}

static bool
leaving_turn(struct sl_executor *self, struct sl_turn *turn)
{
    for (size_t i = 0; i < self->leaving.count; i++) {
        struct sl__task *task = self->leaving.items[i];
        if (sl__task_is_drained(task)) {
            sl_vec_remove(&self->leaving, i);
            task->is_leaving = false;
            turn->kind = SL_TURN_COMMAND;
            turn->command = SL_COMMAND_REMOVE_TASK;
            turn->argument = task->io.id;
            return true;
        }
    }
    return false;
}

static bool
command_turn(struct sl_executor *self, struct sl_turn *turn)
{
    while (__atomic_load_n(&self->has_commands, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&self->command_lock);
        struct sl__command *command = self->commands;
        self->commands = command->next;
        __atomic_store_n(&self->has_commands, command->next != NULL, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&self->command_lock);
        turn->kind = SL_TURN_COMMAND;
        turn->command = command->command;
        turn->argument = command->argument;
        sl_free(command);
        if (turn->command == SL_COMMAND_ACTIVATE) {
            self->is_active = true;
        } else if (turn->command == SL_COMMAND_DEACTIVATE) {
            self->is_active = false;
        } else if (turn->command == SL_COMMAND_DRAIN) {
            self->is_draining = true;
            for (size_t i = 0; i < self->spouts.count; i++) {
                spout_drain(self->spouts.items[i]);
            }
        }
        if (!command_is_later(self, turn->command, turn->argument)) {
            return true;
        }
    }
    return self->leaving.count > 0 && leaving_turn(self, turn);
}

static bool
acks_turn(struct sl_executor *self, struct sl_turn *turn)
{
    for (size_t i = 0; i < self->spouts.count; i++) {
        struct sl__task *task = self->spouts.items[i];
        if (task->io.done_count > 0 && !task->is_busy && task->is_open) {
            turn->kind = SL_TURN_ACKS;
            turn->task = task->io.id;
            turn->count = task->io.done_count;
            frame_push(self, task, SL_TURN_ACKS);
            return true;
        }
    }
    return false;
}

static bool work_turn(struct sl_executor *self, struct sl_turn *turn);

static bool
tick_turn(struct sl_executor *self, struct sl_turn *turn)
{
    if (self->now_ns < self->timer_at_ns) {
        return false;
    }
    /* Ticks that take longer than their period must not keep everything else waiting. */
    self->is_tick_next = !self->is_tick_next;
    if (!self->is_tick_next && work_turn(self, turn)) {
        return true;
    }
    size_t count = self->tasks.count;
    for (size_t i = 0; i < count; i++) {
        size_t at = (self->next_tick + i) % count;
        struct sl__task *task = self->tasks.items[at];
        if (task->tick_ns == 0 || !task->is_open || task->is_busy ||
            self->now_ns < task->tick_next_ns) {
            continue;
        }
        self->next_tick = at + 1;
        uint64_t late = self->now_ns - task->tick_next_ns;
        turn->kind = SL_TURN_TICK;
        turn->task = task->io.id;
        turn->now_ms = sl_executor_now_ms(self) - (double)(late / 1000000u);
        /* Ticks that were missed altogether are skipped. */
        task->tick_next_ns += task->tick_ns * (1 + late / task->tick_ns);
        frame_push(self, task, SL_TURN_TICK);
        return true;
    }
    timers_run(self);
    return false;
}

static bool
spout_can_run(const struct sl_executor *self, struct sl__task *task)
{
    return task->is_open && !task->is_busy && !task->is_done && !task->is_finished &&
           (self->is_active || task->is_draining) && task->io.done_count == 0 &&
           sl__roots_in_use(task) < self->worker->max_pending && self->now_ns >= task->poll_at_ns &&
           !sl__task_is_gated(task);
}

static bool
spout_turn(struct sl_executor *self, struct sl_turn *turn)
{
    int32_t count = (int32_t)self->spouts.count;
    for (int32_t i = 0; i < count; i++) {
        int32_t at = (self->next_spout + i) % count;
        struct sl__task *task = self->spouts.items[at];
        if (spout_can_run(self, task)) {
            self->next_spout = (at + 1) % count;
            turn->kind = SL_TURN_SPOUT;
            turn->task = task->io.id;
            turn->argument = task->is_draining;
            turn->count = turn_size(task, self->worker->max_pending - sl__roots_in_use(task));
            frame_push(self, task, SL_TURN_SPOUT);
            return true;
        }
    }
    return false;
}

/* A spout that is DONE and has nothing pending has finished. */
static void
spouts_finish(struct sl_executor *self)
{
    for (size_t i = 0; i < self->spouts.count; i++) {
        struct sl__task *task = self->spouts.items[i];
        if (task->is_done && !task->is_finished && sl__roots_in_use(task) == 0) {
            sl__task_finished(task);
        }
    }
}

static bool
is_quiet_now(const struct sl__task *task)
{
    if (task->is_busy || task->input.first != NULL || task->inner.first != NULL ||
        task->last_seen < task->last_expected) {
        return false;
    }
    for (size_t i = 0; i < task->outboxes.count; i++) {
        const struct sl__outbox *outbox = task->outboxes.items[i];
        if (outbox->is_cyclic &&
            (outbox->io.count > 0 || __atomic_load_n(&outbox->in_flight, __ATOMIC_SEQ_CST) > 0)) {
            return false;
        }
    }
    return true;
}

/*
 * A cycle has finished when all its tasks are quiet at once.  Their flags are read twice with the
 * sum of their activity counters between: a task that ran in the meantime changes the sum.
 */
static bool
cycle_is_quiet(struct sl_executor *self, int32_t scc)
{
    struct sl_worker *worker = self->worker;
    uint64_t sums[2] = {0, 0};
    bool is_quiet = true;
    pthread_mutex_lock(&worker->plan_lock);
    for (int pass = 0; pass < 2 && is_quiet; pass++) {
        for (size_t c = 0; c < worker->components.count && is_quiet; c++) {
            const struct sl__component *component = &worker->components.items[c];
            size_t count = component->tasks.count;
            for (size_t i = 0; component->scc == scc && i < count + component->leaving.count; i++) {
                int32_t id =
                    i < count ? component->tasks.items[i] : component->leaving.items[i - count];
                const struct sl__task *task = worker->tasks[id];
                if (task == NULL || !__atomic_load_n(&task->is_quiet, __ATOMIC_SEQ_CST)) {
                    is_quiet = false;
                    break;
                }
                sums[pass] += __atomic_load_n(&task->activity, __ATOMIC_SEQ_CST);
            }
        }
    }
    pthread_mutex_unlock(&worker->plan_lock);
    return is_quiet && sums[0] == sums[1];
}

static bool
has_input_ended(struct sl_executor *self, struct sl__task *task)
{
    if (task->io.kind != SL_TASK_BOLT || !task->is_open || task->is_busy ||
        has_records(self, task) || task->last_seen < task->last_expected) {
        return false;
    }
    /* With routes older than the plan, there may be senders that are not counted yet. */
    if (task->plan_version != __atomic_load_n(&self->worker->plan_version, __ATOMIC_RELAXED)) {
        return false;
    }
    if (task->scc < 0) {
        return task->has_readings && !task->is_finished;
    }
    /* Also of a finished one: the others of its cycle wait for it to be quiet. */
    bool was_quiet = task->is_quiet != 0;
    bool is_quiet = is_quiet_now(task);
    __atomic_store_n(&task->is_quiet, is_quiet, __ATOMIC_SEQ_CST);
    if (!is_quiet || !cycle_is_quiet(self, task->scc)) {
        return false;
    }
    if (!was_quiet) {
        /* The last of the cycle to become quiet tells the executors of the others. */
        for (int32_t i = 0; i < self->worker->executor_count; i++) {
            sl__executor_ring_bell(self->worker->executors[i]);
        }
    }
    return !task->is_finished;
}

static bool
finish_turn(struct sl_executor *self, struct sl_turn *turn)
{
    spouts_finish(self);
    bool has_all = true;
    for (size_t i = 0; i < self->tasks.count; i++) {
        struct sl__task *task = self->tasks.items[i];
        if (has_input_ended(self, task)) {
            if (task->has_been_told) {
                sl__task_finished(task);
                continue;
            }
            task->has_been_told = true;
            turn->kind = SL_TURN_FINISH;
            turn->task = task->io.id;
            frame_push(self, task, SL_TURN_FINISH);
            return true;
        }
        has_all &= task->is_finished;
    }
    if (has_all && !self->is_finished_reported && self->touched.count == 0 &&
        self->early.first == NULL) {
        self->is_finished_reported = true;
        sl_worker_post(self->worker, SL_EVENT_FINISHED, -1, self->index, NULL, 0);
    }
    return false;
}

static bool
outbox_flush(const struct sl_executor *self, struct sl__outbox *outbox, uint64_t age_ns)
{
    if (sl__outbox_is_idle(outbox)) {
        return false;
    }
    if (outbox->since_ns == 0) {
        outbox->since_ns = self->now_ns;
    }
    return self->now_ns - outbox->since_ns >= age_ns && sl__outbox_hand_over(outbox);
}

/* Hands over what is old enough (all of it when `age_ns` is 0); true when anything moved. */
static bool
outboxes_flush(struct sl_executor *self, uint64_t age_ns)
{
    bool has_moved = false;
    size_t kept = 0;
    self->is_ring_full &= age_ns > 0;
    for (size_t i = 0; i < self->touched.count; i++) {
        struct sl__task *task = self->touched.items[i];
        bool is_empty = !task->is_busy;
        size_t left = 0;
        for (size_t k = 0; k < task->outboxes.count; k++) {
            struct sl__outbox *outbox = task->outboxes.items[k];
            has_moved |= outbox_flush(self, outbox, age_ns);
            bool is_idle = sl__outbox_is_idle(outbox);
            bool is_under_way = __atomic_load_n(&outbox->in_flight, __ATOMIC_ACQUIRE) > 0;
            if (outbox->is_retired && is_idle && !is_under_way) {
                sl__outbox_free(outbox);
                continue;
            }
            task->outboxes.items[left++] = outbox;
            /* Of a finished task, what it sent must be executed before its executor says so. */
            is_empty &= is_idle && !(is_under_way && (task->is_finished || outbox->is_retired));
        }
        task->outboxes.count = left;
        if (is_empty) {
            task->is_touched = false;
        } else {
            self->touched.items[kept++] = task;
        }
    }
    self->touched.count = kept;
    return has_moved;
}

/*
 * Takes in what has arrived.  The round is advanced first, so that what comes now counts from now;
 * what is too old fails last, since an ack that has arrived is in time.
 */
static void
intake(struct sl_executor *self)
{
    if (self->now_ns >= self->round_at_ns) {
        round_advance(self);
    }
    data_intake(self);
    sl__acks_intake(self);
    if (self->is_expiry_due) {
        rounds_expire(self);
    }
}

static uint64_t
next_deadline(const struct sl_executor *self)
{
    /* Inside an emit that waits neither ticks nor spouts run. */
    bool is_inside = self->stack.count > 0;
    uint64_t deadline =
        is_inside || self->round_at_ns < self->timer_at_ns ? self->round_at_ns : self->timer_at_ns;
    if (sl__acks_waiting(self) > 0 || self->is_ring_full ||
        (self->pool.has_failed && self->touched.count > 0)) {
        /* Nobody rings when there is room in a ring again, or memory. */
        uint64_t soon = self->now_ns + SL__FLUSH_NS;
        deadline = soon < deadline ? soon : deadline;
    }
    for (size_t i = 0; i < self->spouts.count && !is_inside; i++) {
        const struct sl__task *task = self->spouts.items[i];
        bool is_polled = task->is_open && !task->is_busy && !task->is_done && !task->is_finished &&
                         (self->is_active || task->is_draining) &&
                         sl__roots_in_use(task) < self->worker->max_pending;
        if (is_polled && task->poll_at_ns > self->now_ns && task->poll_at_ns < deadline) {
            deadline = task->poll_at_ns;
        }
    }
    return deadline;
}

static void
wake_up(struct sl_executor *self)
{
    if (self->is_asleep) {
        __atomic_store_n(&self->is_asleep, 0, __ATOMIC_SEQ_CST);
    }
}

/*
 * Nothing to do: spin a little, then announce the sleep, look once more, then park.  Returns to
 * look again in every case.
 */
static void
idle(struct sl_executor *self)
{
    if (self->is_asleep) {
        sl__park(self, next_deadline(self));
        wake_up(self);
        self->idle_since_ns = 0;
    } else if (self->now_ns - self->idle_since_ns < SL__SPIN_NS) {
        for (int i = 0; i < 32; i++) {
            sl__pause();
        }
    } else {
        self->bell_seen = __atomic_load_n(&self->bell, __ATOMIC_SEQ_CST);
        __atomic_store_n(&self->is_asleep, 1, __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }
}

/* True while so many acks wait that no more should come into being. */
static bool
are_acks_jammed(struct sl_executor *self)
{
    return sl__acks_waiting(self) > SL__ACK_BACKLOG && !sl__acks_flush(self);
}

static bool
work_turn(struct sl_executor *self, struct sl_turn *turn)
{
    if (are_acks_jammed(self)) {
        return false;
    }
    self->is_spout_next = !self->is_spout_next;
    if (self->is_spout_next && spout_turn(self, turn)) {
        return true;
    }
    struct sl__task *task = ready_pick(self, -1);
    if (task != NULL) {
        batch_turn(self, task, turn);
        return true;
    }
    return !self->is_spout_next && spout_turn(self, turn);
}

int
sl_executor_next(struct sl_executor *self, struct sl_turn *turn, int32_t may_block)
{
    for (;;) {
        refresh(self);
        intake(self);
        if (self->now_ns - self->flushed_at_ns >= SL__FLUSH_NS) {
            self->flushed_at_ns = self->now_ns;
            outboxes_flush(self, SL__FLUSH_NS);
            sl__acks_flush(self);
            /* Ends of input must not wait until all spouts of the executor rest. */
            if (finish_turn(self, turn)) {
                wake_up(self);
                return turn->kind;
            }
        }
        if (command_turn(self, turn) || acks_turn(self, turn) || tick_turn(self, turn) ||
            work_turn(self, turn)) {
            wake_up(self);
            return turn->kind;
        }
        bool has_moved = outboxes_flush(self, 0);
        sl__acks_flush(self);
        if (has_moved) {
            continue;
        }
        if (finish_turn(self, turn)) {
            wake_up(self);
            return turn->kind;
        }
        if (self->touched.count > 0 && outboxes_flush(self, 0)) {
            continue;
        }
        if (!may_block) {
            turn->kind = SL_TURN_NONE;
            return SL_TURN_NONE;
        }
        idle(self);
    }
}

int
sl_executor_nested(struct sl_executor *self, struct sl_turn *turn, int32_t id)
{
    bool is_known = id >= 0 && id < self->worker->task_capacity;
    struct sl__task *task = is_known ? self->worker->tasks[id] : NULL;
    if (task == NULL || task->executor != self) {
        return sl_err_set(SL_EINVAL, "task %d is not attached to executor %d", id, self->index);
    }
    refresh(self);
    int32_t rank = self->stack.count > 0 ? sl_vec_last(&self->stack).task->rank : -1;
    if (bolt_can_run(self, task, rank)) {
        return batch_turn(self, task, turn);
    }
    turn->kind = SL_TURN_NONE;
    return SL_TURN_NONE;
}

/* One step of waiting inside an emit: a later task to run nested, or a park. */
static int
await_step(struct sl_executor *self, struct sl_turn *turn, int32_t may_block)
{
    if (__atomic_load_n(&self->is_stopping, __ATOMIC_ACQUIRE)) {
        /* Whoever would make room may have stopped already. */
        wake_up(self);
        return sl_err_set(SL_ECANCELED, "executor %d is told to stop", self->index);
    }
    int32_t rank = self->stack.count > 0 ? sl_vec_last(&self->stack).task->rank : -1;
    struct sl__task *task = are_acks_jammed(self) ? NULL : ready_pick(self, rank);
    if (task != NULL) {
        wake_up(self);
        return batch_turn(self, task, turn);
    }
    bool has_moved = outboxes_flush(self, 0);
    sl__acks_flush(self);
    if (has_moved) {
        return SL_TURN_READY;
    }
    if (!may_block) {
        turn->kind = SL_TURN_NONE;
        return SL_TURN_NONE;
    }
    idle(self);
    return SL_TURN_READY;
}

int
sl_executor_await(struct sl_executor *self, struct sl_turn *turn, struct sl_outbox *outbox,
                  int32_t need, int32_t may_block)
{
    (void)need;
    struct sl__outbox *wanted = sl__outbox_of(outbox);
    for (;;) {
        refresh(self);
        intake(self);
        bool has_buffer = wanted->batch != NULL || sl__pool_has_block(&self->pool) ||
                          sl__outbox_is_entitled(wanted);
        self->is_ring_full = false;
        if (sl__outbox_has_way(wanted) && has_buffer) {
            wake_up(self);
            turn->kind = SL_TURN_READY;
            return SL_TURN_READY;
        }
        int kind = await_step(self, turn, may_block);
        if (kind != SL_TURN_READY) {
            return kind;
        }
    }
}

int
sl_executor_await_root(struct sl_executor *self, struct sl_turn *turn, struct sl_task *task,
                       int32_t may_block)
{
    for (;;) {
        refresh(self);
        intake(self);
        if (!task->is_full || task->done_count > 0) {
            wake_up(self);
            turn->kind = SL_TURN_READY;
            return SL_TURN_READY;
        }
        int kind = await_step(self, turn, may_block);
        if (kind != SL_TURN_READY) {
            return kind;
        }
    }
}

/* Milliseconds until something is due by the clock alone; 0 when something is already. */
double
sl_executor_due_ms(struct sl_executor *self)
{
    refresh(self);
    uint64_t deadline = next_deadline(self);
    return deadline > self->now_ns ? (double)(deadline - self->now_ns) / 1e6 : 0;
}
