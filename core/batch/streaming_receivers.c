/* The receivers of a context: where they run, when they start again, what they bring and how fast.
 */

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "batch/streaming_priv.h"

static bool
is_stopping(const struct sl_streaming *self)
{
    return self->stop != SL__STOP_NONE;
}

struct sl__receiver *
sl__streaming_receiver(struct sl_streaming *self, int32_t node)
{
    for (size_t i = 0; i < self->receivers.count; i++) {
        if (self->receivers.items[i].node == node) {
            return &self->receivers.items[i];
        }
    }
    sl_err_set(SL_EINVAL, "stream %d has no receiver", node);
    return NULL;
}

static struct sl_placement_receiver *
place_of(struct sl_streaming *self, const struct sl__receiver *receiver)
{
    return &self->placement.items[receiver - self->receivers.items];
}

static void
tell(struct sl_streaming *self, const struct sl__receiver *receiver, enum sl_streaming_event event)
{
    const struct sl_placement_receiver *place = place_of(self, receiver);
    struct sl_streaming_receiver report = {
        .name = self->graph.nodes.items[receiver->node]->name,
        .worker = place->worker >= 0 ? self->workers.items[place->worker].name : "",
        .last_error = receiver->last_error,
        .last_error_time = receiver->last_error_time,
        .input_id = receiver->input_id,
        .node = receiver->node,
        .is_active = place->state == SL_RECEIVER_ACTIVE,
    };
    sl__streaming_tell(self, sl_report_receiver_new(event, sl__streaming_now(self), &report));
}

static void
push_work(struct sl_streaming *self, enum sl_streaming_work_kind kind, int32_t node, int32_t worker)
{
    struct sl_streaming_work work = {
        .kind = kind,
        .node = node,
        .output = -1,
        .time = SL_STREAMING_UNKNOWN,
        .id = worker >= 0 ? (uint64_t)worker : 0,
    };
    sl__streaming_work(self, &work);
}

static bool
is_alive(const struct sl_streaming *self, int32_t worker)
{
    return worker >= 0 && self->worker_hosts.items[worker].is_alive;
}

/* The first place that has a worker, or any worker when only a host is known. */
static int32_t
choose_worker(const struct sl_streaming *self, const struct sl_placement_receiver *placed)
{
    for (size_t i = 0; i < placed->places.count; i++) {
        if (is_alive(self, placed->places.items[i].worker)) {
            return placed->places.items[i].worker;
        }
    }
    return -1;
}

/* Says where the receiver is to start; without any worker it waits for one. */
static void
schedule(struct sl_streaming *self, struct sl__receiver *receiver)
{
    struct sl_placement_receiver *placed = place_of(self, receiver);
    int32_t worker = choose_worker(self, placed);
    if (worker < 0) {
        sl_placement_one(self->placement.items, (int32_t)self->placement.count,
                         (int32_t)(receiver - self->receivers.items), self->worker_hosts.items,
                         (int32_t)self->worker_hosts.count);
        worker = choose_worker(self, placed);
    }
    if (worker < 0) {
        receiver->restart_at = sl__streaming_now(self) + self->options.receiver_restart_ms;
        return;
    }
    receiver->restart_at = SL_STREAMING_UNKNOWN;
    placed->state = SL_RECEIVER_SCHEDULED;
    placed->worker = worker;
    push_work(self, SL_STREAMING_WORK_START_RECEIVER, receiver->node, worker);
}

int
sl__streaming_receivers_start(struct sl_streaming *self)
{
    if (self->receivers.count == 0) {
        return 0;
    }
    int64_t slots = 0;
    for (size_t i = 0; i < self->workers.count; i++) {
        slots += self->worker_hosts.items[i].is_alive ? self->workers.items[i].slots : 0;
    }
    if (slots <= (int64_t)self->receivers.count) {
        return sl_err_set(
            SL_EUNSATISFIABLE,
            "each receiver takes a slot for ever: receivers %zu, slots %lld, none is left "
            "to process what they bring",
            self->receivers.count, (long long)slots);
    }
    sl_placement_all(self->placement.items, (int32_t)self->placement.count,
                     self->worker_hosts.items, (int32_t)self->worker_hosts.count);
    for (size_t i = 0; i < self->receivers.count; i++) {
        struct sl__receiver *receiver = &self->receivers.items[i];
        int rc =
            sl_pid_create(&receiver->pid, self->graph.batch_ms, self->options.proportional,
                          self->options.integral, self->options.derived, self->options.min_rate);
        if (rc != 0) {
            return rc;
        }
        schedule(self, receiver);
    }
    return 0;
}

void
sl__streaming_receivers_poll(struct sl_streaming *self)
{
    int64_t now = sl__streaming_now(self);
    for (size_t i = 0; i < self->receivers.count; i++) {
        struct sl__receiver *receiver = &self->receivers.items[i];
        if (receiver->restart_at != SL_STREAMING_UNKNOWN && receiver->restart_at <= now) {
            schedule(self, receiver);
        }
    }
}

int64_t
sl__streaming_receivers_due(const struct sl_streaming *self)
{
    int64_t due = SL_STREAMING_UNKNOWN;
    for (size_t i = 0; i < self->receivers.count; i++) {
        int64_t at = self->receivers.items[i].restart_at;
        if (at != SL_STREAMING_UNKNOWN && (due == SL_STREAMING_UNKNOWN || at < due)) {
            due = at;
        }
    }
    return due;
}

/* Takes back a start that the driver has not seen. */
static bool
withdraw_start(struct sl_streaming *self, int32_t node)
{
    for (size_t i = 0; i < self->works.count; i++) {
        if (self->works.items[i].kind == SL_STREAMING_WORK_START_RECEIVER &&
            self->works.items[i].node == node) {
            sl_vec_remove(&self->works, i);
            return true;
        }
    }
    return false;
}

void
sl__streaming_receivers_stop(struct sl_streaming *self)
{
    for (size_t i = 0; i < self->receivers.count; i++) {
        struct sl__receiver *receiver = &self->receivers.items[i];
        struct sl_placement_receiver *placed = &self->placement.items[i];
        receiver->restart_at = SL_STREAMING_UNKNOWN;
        if (placed->state == SL_RECEIVER_SCHEDULED && withdraw_start(self, receiver->node)) {
            placed->state = SL_RECEIVER_INACTIVE;
        }
        if (placed->state != SL_RECEIVER_INACTIVE) {
            push_work(self, SL_STREAMING_WORK_STOP_RECEIVER, receiver->node, placed->worker);
        }
    }
}

bool
sl__streaming_receivers_are_stopped(const struct sl_streaming *self)
{
    for (size_t i = 0; i < self->placement.count; i++) {
        if (self->placement.items[i].state != SL_RECEIVER_INACTIVE) {
            return false;
        }
    }
    return true;
}

int32_t
sl_streaming_worker_add(struct sl_streaming *self, const char *name, const char *host,
                        int32_t slots)
{
    pthread_mutex_lock(&self->lock);
    struct sl__worker worker = {sl_strdup(name), sl_strdup(host), slots};
    struct sl_placement_worker place = {worker.host, true};
    sl_vec_push(&self->workers, worker);
    sl_vec_push(&self->worker_hosts, place);
    int32_t number = (int32_t)self->workers.count - 1;
    sl__streaming_notify(self);
    pthread_mutex_unlock(&self->lock);
    return number;
}

static void
note_error(struct sl_streaming *self, struct sl__receiver *receiver, const char *message)
{
    sl_free(receiver->last_error);
    receiver->last_error = sl_strdup(message);
    receiver->last_error_time = sl__streaming_now(self);
}

static void
warn_if_all_down(struct sl_streaming *self)
{
    for (size_t i = 0; i < self->placement.count; i++) {
        if (self->placement.items[i].state == SL_RECEIVER_ACTIVE) {
            return;
        }
    }
    sl_log_warn("batch.receivers", "no receiver is running: no data comes in receivers=%zu",
                self->receivers.count);
}

/* The receiver runs no more; unless the context stops it comes back at a time. */
static void
end_receiver(struct sl_streaming *self, struct sl__receiver *receiver, const char *message,
             int64_t restart_at)
{
    struct sl_placement_receiver *placed = place_of(self, receiver);
    bool was_active = placed->state == SL_RECEIVER_ACTIVE;
    if (message != NULL) {
        note_error(self, receiver, message);
    }
    placed->state = SL_RECEIVER_INACTIVE;
    if (was_active) {
        tell(self, receiver, SL_STREAMING_EVENT_RECEIVER_STOPPED);
    }
    if (!is_stopping(self)) {
        receiver->restart_at = restart_at;
        warn_if_all_down(self);
    }
}

int
sl_streaming_worker_remove(struct sl_streaming *self, int32_t worker)
{
    pthread_mutex_lock(&self->lock);
    int rc = 0;
    if (worker < 0 || (size_t)worker >= self->workers.count) {
        rc = sl_err_set(SL_EINVAL, "there is no worker %d", worker);
        goto out;
    }
    self->worker_hosts.items[worker].is_alive = false;
    for (size_t i = 0; i < self->receivers.count; i++) {
        const struct sl_placement_receiver *placed = &self->placement.items[i];
        if (placed->state != SL_RECEIVER_INACTIVE && placed->worker == worker) {
            withdraw_start(self, self->receivers.items[i].node);
            end_receiver(self, &self->receivers.items[i], "its worker is gone",
                         sl__streaming_now(self));
        }
    }
    sl__streaming_notify(self);
out:
    pthread_mutex_unlock(&self->lock);
    return rc;
}

int
sl_streaming_preferred_host(struct sl_streaming *self, int32_t node, const char *host)
{
    pthread_mutex_lock(&self->lock);
    const struct sl__receiver *receiver = sl__streaming_receiver(self, node);
    int rc = receiver == NULL ? SL_EINVAL : sl__streaming_open(self, "a preferred host");
    if (rc == 0) {
        struct sl_placement_receiver *placed = place_of(self, receiver);
        sl_free((char *)(uintptr_t)placed->preferred_host);
        placed->preferred_host = host != NULL ? sl_strdup(host) : NULL;
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

static int
check_start(const struct sl_streaming *self, const struct sl_placement_receiver *placed,
            int32_t worker)
{
    if (is_stopping(self) || self->state != SL_STREAMING_ACTIVE) {
        return sl_err_set(SL_ECLOSED, "the context stops: no receiver may start");
    }
    if (placed->state != SL_RECEIVER_SCHEDULED || placed->worker != worker) {
        return sl_err_set(SL_EFENCED, "the receiver is not scheduled to worker %d", worker);
    }
    return 0;
}

int
sl_streaming_receiver_started(struct sl_streaming *self, int32_t node, int32_t worker)
{
    pthread_mutex_lock(&self->lock);
    const struct sl__receiver *receiver = sl__streaming_receiver(self, node);
    int rc = receiver == NULL ? SL_EINVAL : check_start(self, place_of(self, receiver), worker);
    if (rc == 0) {
        place_of(self, receiver)->state = SL_RECEIVER_ACTIVE;
        tell(self, receiver, SL_STREAMING_EVENT_RECEIVER_STARTED);
        sl__streaming_notify(self);
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

int
sl_streaming_receiver_error(struct sl_streaming *self, int32_t node, const char *message)
{
    pthread_mutex_lock(&self->lock);
    struct sl__receiver *receiver = sl__streaming_receiver(self, node);
    if (receiver != NULL) {
        note_error(self, receiver, message);
        tell(self, receiver, SL_STREAMING_EVENT_RECEIVER_ERROR);
        sl__streaming_notify(self);
    }
    pthread_mutex_unlock(&self->lock);
    return receiver != NULL ? 0 : SL_EINVAL;
}

int
sl_streaming_receiver_ended(struct sl_streaming *self, int32_t node, const char *message,
                            int64_t delay_ms)
{
    pthread_mutex_lock(&self->lock);
    struct sl__receiver *receiver = sl__streaming_receiver(self, node);
    if (receiver != NULL && place_of(self, receiver)->state != SL_RECEIVER_INACTIVE) {
        int64_t delay = delay_ms >= 0 ? delay_ms : self->options.receiver_restart_ms;
        end_receiver(self, receiver, message, sl__streaming_now(self) + delay);
        sl__streaming_notify(self);
    }
    pthread_mutex_unlock(&self->lock);
    return receiver != NULL ? 0 : SL_EINVAL;
}

/* A whole rate of at least 1, clamped after rounding: rounding never makes it unlimited. */
static double
publishable(const struct sl_streaming *self, double rate)
{
    double whole = fmax(floor(rate), 1);
    return self->options.max_rate > 0 ? fmin(whole, self->options.max_rate) : whole;
}

void
sl__streaming_rates(struct sl_streaming *self, const struct sl_job_set *set)
{
    if (self->options.back_pressure == 0) {
        return;
    }
    for (size_t i = 0; i < set->inputs.count; i++) {
        struct sl__receiver *receiver = NULL;
        for (size_t j = 0; receiver == NULL && j < self->receivers.count; j++) {
            bool is_it = self->receivers.items[j].node == set->inputs.items[i].node;
            receiver = is_it ? &self->receivers.items[j] : NULL;
        }
        double rate = 0;
        if (receiver != NULL &&
            sl_pid_compute(&receiver->pid, set->end, set->inputs.items[i].records,
                           set->end - set->start, set->start - set->submission, &rate)) {
            struct sl_streaming_work work = {
                .kind = SL_STREAMING_WORK_RATE,
                .time = set->time,
                .node = receiver->node,
                .output = -1,
                .rate = publishable(self, rate),
            };
            sl__streaming_work(self, &work);
        }
    }
}

/* The index of the receiver of a node, which is that of its input in the tracker. */
static int32_t
receiver_index(struct sl_streaming *self, int32_t node)
{
    const struct sl__receiver *receiver = sl__streaming_receiver(self, node);
    return receiver != NULL ? (int32_t)(receiver - self->receivers.items) : SL_EINVAL;
}

int
sl_streaming_block_add(struct sl_streaming *self, int32_t node,
                       const struct sl_streaming_block *block)
{
    pthread_mutex_lock(&self->lock);
    int32_t rc = receiver_index(self, node);
    bool takes_blocks =
        self->state == SL_STREAMING_ACTIVE &&
        (self->stop == SL__STOP_NONE || (self->stop == SL__STOP_RECEIVERS && self->is_graceful));
    if (rc >= 0 && block->records < 0) {
        rc = sl_err_set(SL_EINVAL, "a block has %lld records", (long long)block->records);
    } else if (rc >= 0 && !takes_blocks) {
        rc = sl_err_set(SL_ECLOSED, "the context takes no blocks now");
    } else if (rc >= 0) {
        rc = sl_block_tracker_add(&self->tracker, rc, block, sl__streaming_now(self));
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

static const struct sl_block_list *
blocks_of(struct sl_streaming *self, int32_t node, int64_t time, int32_t *rc)
{
    static const struct sl_block_list none = SL_VEC_INIT;
    *rc = receiver_index(self, node);
    if (*rc < 0 || self->tracker.inputs.count == 0) {
        return &none;
    }
    const struct sl_block_list *blocks = sl_block_tracker_blocks(&self->tracker, *rc, time);
    *rc = 0;
    return blocks != NULL ? blocks : &none;
}

int32_t
sl_streaming_block_count(struct sl_streaming *self, int32_t node, int64_t time)
{
    pthread_mutex_lock(&self->lock);
    int32_t rc = 0;
    const struct sl_block_list *blocks = blocks_of(self, node, time, &rc);
    int32_t count = rc < 0 ? rc : (int32_t)blocks->count;
    pthread_mutex_unlock(&self->lock);
    return count;
}

int
sl_streaming_block_get(struct sl_streaming *self, int32_t node, int64_t time, int32_t index,
                       struct sl_streaming_block *out)
{
    pthread_mutex_lock(&self->lock);
    int32_t rc = 0;
    const struct sl_block_list *blocks = blocks_of(self, node, time, &rc);
    if (rc >= 0 && index >= 0 && (size_t)index < blocks->count) {
        *out = blocks->items[index].block;
    } else if (rc >= 0) {
        rc = sl_err_set(SL_ENOTFOUND, "batch %lld ms has %zu blocks of stream %d", (long long)time,
                        blocks->count, node);
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}
