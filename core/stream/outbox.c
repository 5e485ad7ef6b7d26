/*
 * Outboxes: the buffer of one task's records for one other task, and its hand-over.  An outbox may
 * have `credit` batches under way, and one more so that the emit that used the last credit still
 * finds a buffer: it asks its driver to yield, and a task without credit is not run again.
 */

#include "base/alloc.h"
#include "stream/executor.h"
#include "stream/stream_priv.h"

/* The ring for batches to an executor, made when the first outbox needs it. */
static bool
ring_ensure(struct sl_executor *from, int32_t to)
{
    struct sl_worker *worker = from->worker;
    struct sl_ring **ring = &worker->data[from->index * worker->lane_count + to];
    if (to == from->index || *ring != NULL) {
        return true;
    }
    struct sl_ring *made = sl_ring_new(SL__DATA_RING, sizeof(struct sl__batch *));
    __atomic_store_n(ring, made, __ATOMIC_RELEASE);
    return made != NULL;
}

struct sl__outbox *
sl__outbox_new(struct sl__task *source, int32_t stream, int32_t dest, bool is_cyclic)
{
    struct sl_worker *worker = source->executor->worker;
    if (!ring_ensure(source->executor, worker->task_executor[dest])) {
        return NULL;
    }
    struct sl__outbox *self = sl_calloc(1, sizeof(*self));
    self->io.dest = dest;
    self->source = source;
    self->executor = source->executor;
    self->stream = stream;
    self->dest_executor = worker->task_executor[dest];
    self->placed = __atomic_load_n(&worker->task_placed[dest], __ATOMIC_RELAXED);
    self->io.is_near = self->dest_executor == source->executor->index;
    self->io.is_remote = sl__is_remote(worker, self->dest_executor);
    self->credit = worker->credit;
    self->is_cyclic = is_cyclic;
    if (is_cyclic) {
        int32_t cycle = worker->components.items[source->io.component].scc;
        self->cycle_full = &worker->cycles_full[cycle];
    }
    self->is_last = source->is_finished;
    if (!sl__is_remote(worker, self->dest_executor)) {
        __atomic_add_fetch(&worker->inbound[dest], 1, __ATOMIC_RELAXED);
    }
    return self;
}

void
sl__outbox_free(struct sl__outbox *self)
{
    struct sl_worker *worker = self->executor->worker;
    if (self->batch != NULL) {
        sl__batch_give(self->executor, self->batch);
    }
    sl__known_drop(self->known);
    if (!sl__is_remote(worker, self->dest_executor) &&
        __atomic_sub_fetch(&worker->inbound[self->io.dest], 1, __ATOMIC_RELEASE) == 0) {
        sl__executor_ring_bell(worker->executors[self->dest_executor]);
    }
    sl_free(self);
}

static int32_t
in_flight(const struct sl__outbox *self)
{
    return __atomic_load_n(&self->in_flight, __ATOMIC_RELAXED);
}

bool
sl__outbox_is_used_up(const struct sl__outbox *self)
{
    return self->is_cyclic && in_flight(self) >= self->credit;
}

static void
batch_sent(struct sl__outbox *self)
{
    int32_t count = __atomic_add_fetch(&self->in_flight, 1, __ATOMIC_RELAXED);
    if (self->cycle_full != NULL && count == self->credit) {
        __atomic_add_fetch(self->cycle_full, 1, __ATOMIC_RELAXED);
    }
}

/*
 * True when nothing in its cycle is beyond its credit any more.  The outbox may be gone as soon as
 * its last batch is done.
 */
static bool
batch_done(struct sl__outbox *self)
{
    int32_t *cycle_full = self->cycle_full;
    int32_t credit = self->credit;
    int32_t count = __atomic_sub_fetch(&self->in_flight, 1, __ATOMIC_RELEASE);
    return cycle_full != NULL && count == credit - 1 &&
           __atomic_sub_fetch(cycle_full, 1, __ATOMIC_RELEASE) == 0;
}

bool
sl__outbox_can_hand_over(const struct sl__outbox *self)
{
    int32_t most = self->is_cyclic ? self->credit * SL__CYCLE_OVERFLOW : self->credit + 1;
    return in_flight(self) < most;
}

/* The ring to the receiver's executor, NULL when that is this one. */
static struct sl_ring *
outbox_ring(const struct sl__outbox *self)
{
    struct sl_worker *worker = self->executor->worker;
    if (self->dest_executor == self->executor->index) {
        return NULL;
    }
    return worker->data[self->executor->index * worker->lane_count + self->dest_executor];
}

static bool
outbox_ring_has_room(const struct sl__outbox *self)
{
    struct sl_ring *ring = outbox_ring(self);
    if (ring != NULL && !sl_ring_has_room(ring)) {
        self->executor->is_ring_full = true;
        return false;
    }
    return true;
}

bool
sl__outbox_has_way(const struct sl__outbox *self)
{
    return sl__outbox_can_hand_over(self) && (self->io.count == 0 || outbox_ring_has_room(self));
}

bool
sl__outbox_is_entitled(const struct sl__outbox *self)
{
    /*
     * One buffer for each outbox, else tasks that wait for one could hold all of them in the input
     * of tasks that are themselves waiting.  Inside a cycle, as many as it may hold at all.
     */
    return self->is_cyclic || (self->batch == NULL && in_flight(self) == 0);
}

bool
sl__outbox_is_idle(const struct sl__outbox *self)
{
    return self->io.count == 0 && self->is_last == self->is_last_sent;
}

void
sl__outbox_use(struct sl__outbox *self)
{
    if (!self->is_in_use) {
        self->is_in_use = true;
        self->next_in_use = self->source->in_use;
        self->source->in_use = self;
    }
}

static void
outbox_forget_buffer(struct sl__outbox *self)
{
    self->batch = NULL;
    self->io.pos = NULL;
    self->io.limit = NULL;
    self->io.count = 0;
    self->io.texts = 0;
    self->io.text_count = 0;
    self->since_ns = 0;
}

bool
sl__outbox_hand_over(struct sl__outbox *self)
{
    struct sl_executor *executor = self->executor;
    /*
     * Whether the ring has room is asked first, and stays true: nobody else pushes.  A batch that
     * is counted as sent is sent, else its cycle would look full to others for a moment.
     */
    if (!sl__outbox_can_hand_over(self) || !outbox_ring_has_room(self)) {
        return false;
    }
    struct sl__batch *batch = self->batch;
    if (batch == NULL) {
        /* Only the mark that the sender has finished, or works again. */
        batch = sl__batch_take(executor, 0, sl__outbox_is_entitled(self));
        if (batch == NULL) {
            return false;
        }
        self->io.pos = batch->data;
    }
    batch->io.head = batch->data;
    batch->io.tail = self->io.pos;
    batch->io.count = self->io.count;
    batch->io.source = self->source->io.id;
    batch->io.dest = self->io.dest;
    batch->io.stream = self->stream;
    batch->outbox = self;
    batch->mark = self->is_last - self->is_last_sent;
    batch_sent(self);
    if (self->dest_executor == executor->index) {
        sl__executor_deliver(executor, batch);
    } else {
        bool is_pushed = sl_ring_push(outbox_ring(self), &batch);
        sl_assert(is_pushed);
        sl__executor_ring_bell(executor->worker->executors[self->dest_executor]);
    }
    self->is_last_sent = self->is_last;
    outbox_forget_buffer(self);
    if (in_flight(self) >= self->credit) {
        self->source->io.yield = 1;
        if (!self->is_full && !self->is_cyclic) {
            self->is_full = true;
            self->next_full = self->source->full;
            self->source->full = self;
        }
    }
    return true;
}

/* Wakes the executors whose tasks wait for room in a cycle: see is_cycle_full in turn.c. */
static void
cycle_has_room(struct sl_worker *worker)
{
    /* Either this sees that an executor waits, or that one sees that there is room. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (int32_t i = 0; i < worker->executor_count; i++) {
        struct sl_executor *executor = worker->executors[i];
        if (__atomic_load_n(&executor->waits_for_cycle, __ATOMIC_RELAXED) != 0 &&
            __atomic_exchange_n(&executor->waits_for_cycle, 0, __ATOMIC_SEQ_CST) != 0) {
            sl__executor_ring_bell(executor);
        }
    }
}

/* A batch of this outbox has been executed by `executor`. */
void
sl__outbox_released(struct sl_executor *executor, struct sl__outbox *self)
{
    struct sl_executor *home = self->executor;
    if (batch_done(self)) {
        cycle_has_room(home->worker);
    }
    if (home != executor) {
        sl__executor_ring_bell(home);
    }
}

int32_t
sl__outbox_know(struct sl__outbox *self, const char *key, size_t len)
{
    if (self->known == NULL) {
        self->known = sl__known_new(self->executor->worker);
    }
    if (self->batch != NULL && self->batch->known == NULL) {
        self->batch->known = sl__known_hold(self->known);
    }
    return sl__known_add(self->known, key, len);
}

void
sl__outbox_forget_keys(struct sl__outbox *self)
{
    if (self->known == NULL) {
        return;
    }
    sl__known_drop(self->known);
    self->known = NULL;
    if (self->io.count > 0) {
        /* Records name keys of the set that is given up: no other ones go into this buffer. */
        self->io.limit = self->io.pos;
    } else if (self->batch != NULL) {
        sl__known_drop(self->batch->known);
        self->batch->known = NULL;
    }
}

/* More than a cycle of bolts may hold: the trees of these tuples fail and the tuples are gone. */
static void
outbox_drop(struct sl__outbox *self)
{
    struct sl__batch *batch = self->batch;
    batch->io.head = batch->data;
    batch->io.tail = self->io.pos;
    batch->io.count = self->io.count;
    sl__batch_fail_roots(self->executor, batch);
    int32_t *dropped = &self->executor->worker->dropped_in_cycles;
    if (__atomic_load_n(dropped, __ATOMIC_RELAXED) < INT32_MAX / 2) {
        __atomic_add_fetch(dropped, self->io.count, __ATOMIC_RELAXED);
    }
    sl__batch_give(self->executor, batch);
    outbox_forget_buffer(self);
}

static bool
runs_nested(const struct sl__outbox *self, struct sl__task *dest)
{
    return dest != NULL && !self->is_cyclic && !dest->is_busy && dest->is_open &&
           dest->rank > self->source->rank && !sl__task_is_gated(dest);
}

int
sl_outbox_flush(struct sl_outbox *io, int32_t need)
{
    struct sl__outbox *self = sl__outbox_of(io);
    bool has_run = false;
    if (need < 0) {
        return sl_err_set(SL_EINVAL, "a record of %d bytes", need);
    }
    if (io->count > 0) {
        has_run = self->dest_executor == self->executor->index;
        if (!sl__outbox_hand_over(self)) {
            if (!self->is_cyclic || sl__outbox_can_hand_over(self)) {
                return SL_FLUSH_WAIT;
            }
            outbox_drop(self);
            has_run = false;
        }
    }
    if (self->batch != NULL && self->batch->limit - self->batch->data < need) {
        sl__batch_give(self->executor, self->batch);
        outbox_forget_buffer(self);
    }
    if (self->batch == NULL) {
        self->batch = sl__batch_take(self->executor, need, sl__outbox_is_entitled(self));
        if (self->batch == NULL) {
            return self->executor->pool.has_failed
                       ? sl_err_set(SL_ENOMEM, "out of memory for a record of %d bytes", need)
                       : SL_FLUSH_WAIT;
        }
        io->pos = self->batch->data;
        io->limit = self->batch->limit;
        io->texts = io->is_near ? self->batch->texts : 0;
        self->batch->known = sl__known_hold(self->known);
        sl__outbox_use(self);
    }
    if (has_run) {
        struct sl__task *dest = self->executor->worker->tasks[io->dest];
        return runs_nested(self, dest) ? SL_FLUSH_RUN : SL_FLUSH_OK;
    }
    return SL_FLUSH_OK;
}
