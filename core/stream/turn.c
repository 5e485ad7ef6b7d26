/*
 * Turns: a task's driver runs between the begin and the end of one.  Here is how many tuples a turn
 * may take, which bolt is next among those that can run, and what is settled when a turn ends.
 */

#include "stream/executor.h"
#include "stream/stream_priv.h"

/* Begins the rounds that are due; after more than a whole time-out the number makes no difference.
 */
void
sl__round_advance(struct sl_executor *self)
{
    uint64_t period = self->worker->timeout_ns / SL__ROUNDS;
    uint64_t due = 1 + (self->now_ns - self->round_at_ns) / period;
    self->round += due < SL__ROUNDS + 1 ? (uint32_t)due : SL__ROUNDS + 1;
    self->round_at_ns += due * period;
    self->is_expiry_due = true;
}

void
sl__frame_push(struct sl_executor *self, struct sl__task *task, int32_t kind)
{
    struct sl__frame frame = {.task = task, .start_ns = self->now_ns, .kind = kind};
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
    uint64_t now = sl__executor_refresh(self);
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

int32_t
sl__turn_size(const struct sl__task *task, int32_t most)
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
batch_end(struct sl_executor *self, struct sl__task *task, struct sl__queue *queue)
{
    struct sl__batch *batch = sl__queue_pop(queue);
    struct sl__outbox *outbox = batch->outbox;
    if (batch->mark != 0) {
        sl__task_marked(task, outbox, batch->mark);
    }
    sl__batch_give(self, batch);
    sl__outbox_released(self, outbox);
}

/* Drops empty batches at the head of the input, which only carry the mark of an end. */
bool
sl__task_has_records(struct sl_executor *self, struct sl__task *task)
{
    for (;;) {
        struct sl__queue *queue = head_queue(task);
        if (queue->first == NULL) {
            return false;
        }
        if (queue->first->io.count > 0) {
            return true;
        }
        batch_end(self, task, queue);
    }
}

/*
 * A bolt of a cycle takes from outside only while every edge in the cycle has credit, not only its
 * own: what it lets in may pile up before another one that is slower.
 */
static bool
is_cycle_full(const struct sl__task *task)
{
    if (task->scc < 0 || task->inner.first != NULL) {
        return false;
    }
    int32_t *full = &task->executor->worker->cycles_full[task->scc];
    if (__atomic_load_n(full, __ATOMIC_ACQUIRE) == 0) {
        return false;
    }
    /* Who makes room rings those that wait: say so, and look again. */
    __atomic_store_n(&task->executor->waits_for_cycle, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return __atomic_load_n(full, __ATOMIC_ACQUIRE) > 0;
}

bool
sl__bolt_can_run(struct sl_executor *self, struct sl__task *task, int32_t above_rank)
{
    return !task->is_busy && task->is_open && task->rank > above_rank &&
           sl__task_has_records(self, task) && !sl__task_is_gated(task) && !is_cycle_full(task);
}

int
sl__batch_turn(struct sl_executor *self, struct sl__task *task, struct sl_turn *turn)
{
    struct sl__batch *batch = head_queue(task)->first;
    turn->kind = SL_TURN_BATCH;
    turn->task = task->io.id;
    turn->batch = &batch->io;
    turn->source = batch->io.source;
    turn->stream = batch->io.stream;
    turn->head = batch->io.head;
    turn->texts = batch->pool == &self->pool ? batch->texts : 0;
    turn->known = batch->known != NULL ? batch->known->number : 0;
    turn->count = sl__turn_size(task, batch->io.count);
    sl__frame_push(self, task, SL_TURN_BATCH);
    return SL_TURN_BATCH;
}

/* The first bolt in order of arrival that can run and has a rank above the given one. */
struct sl__task *
sl__ready_pick(struct sl_executor *self, int32_t above_rank)
{
    struct sl__task *task = self->ready_first;
    struct sl__task *previous = NULL;
    while (task != NULL) {
        struct sl__task *next = task->ready_next;
        bool can_run = sl__bolt_can_run(self, task, above_rank);
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

const char *
sl_turn_key(const struct sl_turn *turn, int32_t number, size_t *len)
{
    const struct sl__batch *batch = (const struct sl__batch *)turn->batch;
    const char *text = sl__known_key(batch->known, number, len);
    if (text == NULL) {
        sl_err_set(SL_ENOTFOUND, "key %d of a batch of stream %d", number, turn->stream);
    }
    return text;
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

/*
 * The queue whose head the turn executes.  A turn that began on input from outside goes on with it
 * although tuples of the task's own cycle have arrived meanwhile.
 */
static struct sl__queue *
turn_queue(struct sl__task *task, const struct sl_turn *turn)
{
    const struct sl__batch *input = task->input.first;
    return input != NULL && turn->batch == &input->io ? &task->input : head_queue(task);
}

void
sl_batch_end(struct sl_executor *self, struct sl_turn *turn, int32_t count, uint8_t *head)
{
    if (!is_running(self, turn, SL_TURN_BATCH)) {
        return;
    }
    struct sl__task *task = self->worker->tasks[turn->task];
    struct sl__queue *queue = turn_queue(task, turn);
    struct sl__batch *batch = queue->first;
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
        batch_end(self, task, queue);
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
        sl__round_advance(self);
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
