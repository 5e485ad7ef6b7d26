/*
 * The executor loop: what to do next.  Order of a turn: what arrived, timers, commands, completed
 * roots, ticks, then bolts and spouts by turns, then ends of input; when there is nothing, outboxes
 * are flushed and the thread spins a little and parks.
 *
 * An emit without room runs other tasks of this executor nested, their ticks too, but only those
 * that come later in the topology (a higher rank).  That is what keeps an acyclic topology free of
 * dead-lock: of all tasks with input, one of the highest rank is never waited for in vain, since
 * its own receivers have nothing queued and its executor, if it waits, waits in a task of lower
 * rank and may run it nested.
 */

#include "stream/executor.h"

#include "base/alloc.h"
#include "stream/stream_priv.h"
#include "stream/worker.h"

uint64_t
sl__executor_refresh(struct sl_executor *self)
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
    __atomic_store_n(&self->current_since_ns, sl__executor_refresh(self), __ATOMIC_RELAXED);
    __atomic_store_n(&self->current_task, task, __ATOMIC_RELAXED);
}

const char *
sl_executor_told(const struct sl_executor *self, size_t *len)
{
    *len = self->told_len;
    return self->told;
}

double
sl_executor_now_ms(struct sl_executor *self)
{
    return (double)sl_clock_wall_ms(self->worker->clock);
}

static bool
data_intake(struct sl_executor *self)
{
    struct sl_worker *worker = self->worker;
    bool has_any = false;
    for (int32_t source = 0; source < worker->lane_count; source++) {
        int32_t at = source * worker->lane_count + self->index;
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

/*
 * A process has ended with tuples it had been given. Which roots they belong to is known to nobody,
 * so all that are under way fail: their spouts hear of it now instead of after the time-out.
 */
static void
losses_heed(struct sl_executor *self)
{
    uint32_t losses = __atomic_load_n(&self->worker->losses, __ATOMIC_ACQUIRE);
    if (losses == self->losses_seen) {
        return;
    }
    self->losses_seen = losses;
    for (size_t i = 0; i < self->spouts.count; i++) {
        sl__roots_lose(self->spouts.items[i]);
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
    /* The number of any other command need not be that of a task here. */
    if (command != SL_COMMAND_REMOVE_TASK || id < 0 || id >= self->worker->task_capacity) {
        return false;
    }
    struct sl__task *task = self->worker->tasks[id];
    if (task == NULL || task->executor != self || !sl__task_is_planned_to_leave(task)) {
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
        sl_free(self->told);
        self->told = command->text;
        self->told_len = command->len;
        sl_free(command);
        if (turn->command == SL_COMMAND_ACTIVATE) {
            /* What was lost before is not taken for the loss of what is emitted from now on. */
            losses_heed(self);
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
            sl__frame_push(self, task, SL_TURN_ACKS);
            return true;
        }
    }
    return false;
}

static bool work_turn(struct sl_executor *self, struct sl_turn *turn);

/*
 * The task of a rank above the given one that ticks next, NULL = none does.  Of those that are due
 * it is the one that has waited longest, so none of them keeps another one waiting.
 */
static struct sl__task *
tick_pick(const struct sl_executor *self, int32_t above_rank)
{
    struct sl__task *first = NULL;
    for (size_t i = 0; i < self->tasks.count; i++) {
        struct sl__task *task = self->tasks.items[i];
        if (task->tick_ns > 0 && task->is_open && !task->is_busy && task->rank > above_rank &&
            (first == NULL || task->tick_next_ns < first->tick_next_ns)) {
            first = task;
        }
    }
    return first;
}

static bool
is_tick_due(const struct sl_executor *self, const struct sl__task *task)
{
    return task != NULL && self->now_ns >= task->tick_next_ns;
}

static int
tick_begin(struct sl_executor *self, struct sl__task *task, struct sl_turn *turn)
{
    uint64_t late = self->now_ns - task->tick_next_ns;
    turn->kind = SL_TURN_TICK;
    turn->task = task->io.id;
    turn->now_ms = sl_executor_now_ms(self) - (double)(late / 1000000u);
    /* Ticks that were missed altogether are skipped. */
    task->tick_next_ns += task->tick_ns * (1 + late / task->tick_ns);
    sl__frame_push(self, task, SL_TURN_TICK);
    return SL_TURN_TICK;
}

static bool
tick_turn(struct sl_executor *self, struct sl_turn *turn)
{
    if (self->now_ns < self->timer_at_ns || self->is_held) {
        return false;
    }
    /* Ticks that take longer than their period must not keep everything else waiting. */
    self->is_tick_next = !self->is_tick_next;
    if (!self->is_tick_next && work_turn(self, turn)) {
        return true;
    }
    struct sl__task *task = tick_pick(self, -1);
    if (is_tick_due(self, task)) {
        tick_begin(self, task, turn);
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
            turn->count = sl__turn_size(task, self->worker->max_pending - sl__roots_in_use(task));
            sl__frame_push(self, task, SL_TURN_SPOUT);
            return true;
        }
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
    if (sl__outbox_is_used_up(outbox)) {
        return false;
    }
    return self->now_ns - outbox->since_ns >= age_ns && sl__outbox_hand_over(outbox);
}

/* The same for the outboxes of a task that are in use; false while it has to be looked at again. */
static bool
task_flush(struct sl_executor *self, struct sl__task *task, uint64_t age_ns, bool *has_moved)
{
    bool is_empty = !task->is_busy;
    struct sl__outbox **link = &task->in_use;
    while (*link != NULL) {
        struct sl__outbox *outbox = *link;
        *has_moved |= outbox_flush(self, outbox, age_ns);
        bool is_under_way = __atomic_load_n(&outbox->in_flight, __ATOMIC_ACQUIRE) > 0;
        /* Of a finished task, what it sent must be executed before its executor says so. */
        bool is_done = sl__outbox_is_idle(outbox) &&
                       !(is_under_way && (task->is_finished || outbox->is_retired));
        is_empty &= is_done;
        /* Into a buffer that it still has records may be written without another word. */
        if (is_done && (outbox->batch == NULL || outbox->is_retired)) {
            *link = outbox->next_in_use;
            outbox->is_in_use = false;
            if (outbox->is_retired) {
                sl__task_drop_outbox(task, outbox);
            }
        } else {
            link = &outbox->next_in_use;
        }
    }
    return is_empty;
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
        if (task_flush(self, task, age_ns, &has_moved)) {
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
        sl__round_advance(self);
    }
    data_intake(self);
    sl__acks_intake(self);
    if (self->is_expiry_due) {
        rounds_expire(self);
    }
    losses_heed(self);
}

/* When the next of the tasks ticks that may do so inside an emit of this rank that waits. */
static uint64_t
nested_tick_ns(const struct sl_executor *self, int32_t rank)
{
    const struct sl__task *task = tick_pick(self, rank);
    return task != NULL ? task->tick_next_ns : UINT64_MAX;
}

static uint64_t
next_deadline(struct sl_executor *self)
{
    /* Inside an emit that waits spouts do not run, and only later tasks tick. */
    bool is_inside = self->stack.count > 0;
    uint64_t timer_at = self->is_held ? UINT64_MAX
                        : is_inside   ? nested_tick_ns(self, sl_vec_last(&self->stack).task->rank)
                                      : self->timer_at_ns;
    uint64_t deadline = self->round_at_ns < timer_at ? self->round_at_ns : timer_at;
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
    if (__atomic_load_n(&self->is_asleep, __ATOMIC_RELAXED) != 0) {
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
    if (__atomic_load_n(&self->is_asleep, __ATOMIC_RELAXED) != 0) {
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
    struct sl__task *task = sl__ready_pick(self, -1);
    if (task != NULL) {
        sl__batch_turn(self, task, turn);
        return true;
    }
    return !self->is_spout_next && spout_turn(self, turn);
}

int
sl_executor_next(struct sl_executor *self, struct sl_turn *turn, int32_t may_block)
{
    for (;;) {
        sl__executor_refresh(self);
        intake(self);
        if (self->now_ns - self->flushed_at_ns >= SL__FLUSH_NS) {
            self->flushed_at_ns = self->now_ns;
            outboxes_flush(self, SL__FLUSH_NS);
            sl__acks_flush(self);
            /* Ends of input must not wait until all spouts of the executor rest. */
            if (sl__finish_turn(self, turn)) {
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
        if (sl__finish_turn(self, turn)) {
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
    sl__executor_refresh(self);
    int32_t rank = self->stack.count > 0 ? sl_vec_last(&self->stack).task->rank : -1;
    if (sl__bolt_can_run(self, task, rank)) {
        return sl__batch_turn(self, task, turn);
    }
    turn->kind = SL_TURN_NONE;
    return SL_TURN_NONE;
}

/* The later task whose tick is due inside an emit of this rank that waits, NULL = none. */
static struct sl__task *
await_tick(const struct sl_executor *self, int32_t rank)
{
    /* No timer is earlier than timer_at_ns: mostly nothing else need be looked at. */
    if (self->now_ns < self->timer_at_ns || self->is_held) {
        return NULL;
    }
    struct sl__task *task = tick_pick(self, rank);
    return is_tick_due(self, task) ? task : NULL;
}

/* One step of waiting inside an emit: a later task to run or tick nested, or a park. */
static int
await_step(struct sl_executor *self, struct sl_turn *turn, int32_t may_block)
{
    if (__atomic_load_n(&self->is_stopping, __ATOMIC_ACQUIRE)) {
        /* Whoever would make room may have stopped already. */
        wake_up(self);
        return sl_err_set(SL_ECANCELED, "executor %d is told to stop", self->index);
    }
    struct sl__frame *waiting = self->stack.count > 0 ? &sl_vec_last(&self->stack) : NULL;
    int32_t rank = waiting != NULL ? waiting->task->rank : -1;
    bool *is_tick_next = waiting != NULL ? &waiting->is_tick_next : &self->is_tick_next;
    /* A bolt that acks when it ticks may be what the wait is for. */
    struct sl__task *ticking = await_tick(self, rank);
    *is_tick_next = ticking != NULL && !*is_tick_next;
    if (*is_tick_next) {
        wake_up(self);
        return tick_begin(self, ticking, turn);
    }
    struct sl__task *task = are_acks_jammed(self) ? NULL : sl__ready_pick(self, rank);
    if (task != NULL) {
        wake_up(self);
        return sl__batch_turn(self, task, turn);
    }
    if (ticking != NULL) {
        wake_up(self);
        return tick_begin(self, ticking, turn);
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
    struct sl__outbox *wanted = sl__outbox_of(outbox);
    if (need < 0) {
        return sl_err_set(SL_EINVAL, "a record of %d bytes", need);
    }
    for (;;) {
        sl__executor_refresh(self);
        intake(self);
        bool has_buffer = sl__pool_has_room(&self->pool, need) || sl__outbox_is_entitled(wanted);
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
        sl__executor_refresh(self);
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
    sl__executor_refresh(self);
    uint64_t deadline = next_deadline(self);
    return deadline > self->now_ns ? (double)(deadline - self->now_ns) / 1e6 : 0;
}
