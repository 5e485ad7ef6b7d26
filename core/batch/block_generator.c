#include "batch/block_generator.h"

#include "base/alloc.h"
#include "base/err.h"

struct sl_cut_block {
    struct sl_list_node node;
    uint64_t id;
    int64_t records;
    uint8_t *bytes;
    size_t len;
};

int
sl_block_generator_create(struct sl_block_generator *self, const struct sl_clock *clock,
                          bool is_manual, int64_t interval_ms, int32_t queue_max, double max_rate,
                          double initial_rate)
{
    if (interval_ms < 1) {
        return sl_err_set(SL_EINVAL, "the block interval must be 1 ms or more, not %lld",
                          (long long)interval_ms);
    }
    if (queue_max < 1) {
        return sl_err_set(SL_EINVAL, "the queue of blocks needs room for 1 block, not %d",
                          queue_max);
    }
    *self = (struct sl_block_generator){.clock = clock, .queue_max = queue_max};
    pthread_mutex_init(&self->lock, NULL);
    sl_list_create(&self->blocks);
    /* The records of a cut that was left out come with the next one: nothing to make up. */
    sl_recurring_timer_create(&self->timer, clock, is_manual, interval_ms, 0, 1);
    sl_rate_limiter_create(&self->limiter, interval_ms, max_rate, initial_rate);
    return 0;
}

static void
block_free(struct sl_cut_block *block)
{
    if (block != NULL) {
        sl_free(block->bytes);
        sl_free(block);
    }
}

void
sl_block_generator_destroy(struct sl_block_generator *self)
{
    struct sl_list_node *node = NULL;
    while ((node = sl_list_pop_front(&self->blocks)) != NULL) {
        block_free(sl_container_of(node, struct sl_cut_block, node));
    }
    block_free(self->pulled);
    sl_buf_destroy(&self->buffer);
    pthread_mutex_destroy(&self->lock);
}

int
sl_block_generator_start(struct sl_block_generator *self)
{
    pthread_mutex_lock(&self->lock);
    int rc = self->state == SL_BLOCK_GENERATOR_INITIALIZED
                 ? 0
                 : sl_err_set(SL_ECONFLICT, "the block generator was started before");
    if (rc == 0) {
        self->state = SL_BLOCK_GENERATOR_ACTIVE;
        rc = sl_recurring_timer_start(&self->timer, sl_recurring_timer_start_time(&self->timer));
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

/*
 * The id of a block that is cut between two ticks: it must differ from those of ticks, of other
 * such blocks, and of blocks that a generator before this one cut, in this process or an earlier
 * one. It fits into the 53 bits that a Lua number holds: a mark, milliseconds until 2039, and a
 * count.
 */
static uint64_t
early_id(int64_t now)
{
    enum { COUNT_BITS = 11, ID_BITS = 52 };
    static uint64_t count;
    uint64_t mark = UINT64_C(1) << ID_BITS;
    uint64_t number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) % (1u << COUNT_BITS);
    return mark | (((uint64_t)now << COUNT_BITS) % mark) | number;
}

/* Makes a block of what has been added. */
static void
cut(struct sl_block_generator *self, uint64_t id)
{
    if (self->buffered_records == 0) {
        return;
    }
    struct sl_cut_block *block = sl_calloc(1, sizeof(*block));
    block->id = id;
    block->records = self->buffered_records;
    block->len = self->buffer.size;
    block->bytes = sl_buf_detach(&self->buffer);
    self->buffered_records = 0;
    sl_list_push_back(&self->blocks, &block->node);
    self->queued++;
}

/* Goes through the ticks that are due; what was added since the last look belongs to the first. */
static void
cut_due(struct sl_block_generator *self)
{
    int64_t tick = 0;
    while (self->queued < self->queue_max && sl_recurring_timer_fire(&self->timer, &tick)) {
        cut(self, (uint64_t)(tick - self->timer.period_ms));
        int64_t now = sl_recurring_timer_now(&self->timer);
        if (self->buffered_records == 0 && self->timer.next <= now) {
            /* Nothing left for the other ticks that have passed. */
            int64_t passed = (now - self->timer.next) / self->timer.period_ms;
            self->timer.next += passed * self->timer.period_ms;
        }
    }
}

int
sl_block_generator_add(struct sl_block_generator *self, const void *bytes, size_t len,
                       int64_t records)
{
    int rc = 0;
    pthread_mutex_lock(&self->lock);
    if (self->state != SL_BLOCK_GENERATOR_ACTIVE) {
        rc = sl_err_set(SL_ECLOSED, "the receiver takes no records: it %s",
                        self->state == SL_BLOCK_GENERATOR_STOPPED ? "was stopped"
                                                                  : "has not started");
        goto out;
    }
    cut_due(self);
    if (!sl_rate_limiter_take(&self->limiter, sl_recurring_timer_now(&self->timer), records)) {
        rc = sl_err_set(SL_EAGAIN, "the receiver's rate of %g records/s allows no more now",
                        self->limiter.rate);
        goto out;
    }
    sl_buf_append(&self->buffer, bytes, len);
    self->buffered_records += records;
out:
    pthread_mutex_unlock(&self->lock);
    return rc;
}

int64_t
sl_block_generator_retry(struct sl_block_generator *self)
{
    pthread_mutex_lock(&self->lock);
    int64_t now = sl_recurring_timer_now(&self->timer);
    int64_t wait_ms = sl_rate_limiter_ready(&self->limiter, now) - now;
    pthread_mutex_unlock(&self->lock);
    return wait_ms;
}

bool
sl_block_generator_pull(struct sl_block_generator *self, struct sl_block_data *out)
{
    pthread_mutex_lock(&self->lock);
    cut_due(self);
    block_free(self->pulled);
    self->pulled = NULL;
    struct sl_list_node *node = sl_list_pop_front(&self->blocks);
    if (node != NULL) {
        self->queued--;
        self->pulled = sl_container_of(node, struct sl_cut_block, node);
        out->id = self->pulled->id;
        out->records = self->pulled->records;
        out->bytes = self->pulled->bytes;
        out->len = (int64_t)self->pulled->len;
    }
    pthread_mutex_unlock(&self->lock);
    return node != NULL;
}

int64_t
sl_block_generator_due(struct sl_block_generator *self)
{
    pthread_mutex_lock(&self->lock);
    int64_t due = sl_recurring_timer_due(&self->timer);
    pthread_mutex_unlock(&self->lock);
    return due;
}

void
sl_block_generator_cut(struct sl_block_generator *self)
{
    pthread_mutex_lock(&self->lock);
    if (self->state == SL_BLOCK_GENERATOR_ACTIVE) {
        cut_due(self);
        cut(self, early_id(sl_recurring_timer_now(&self->timer)));
    }
    pthread_mutex_unlock(&self->lock);
}

void
sl_block_generator_stop(struct sl_block_generator *self)
{
    pthread_mutex_lock(&self->lock);
    if (self->state == SL_BLOCK_GENERATOR_ACTIVE) {
        cut_due(self);
        cut(self, early_id(sl_recurring_timer_now(&self->timer)));
        sl_recurring_timer_stop(&self->timer, true);
    }
    self->state = SL_BLOCK_GENERATOR_STOPPED;
    pthread_mutex_unlock(&self->lock);
}

void
sl_block_generator_rate(struct sl_block_generator *self, double rate)
{
    pthread_mutex_lock(&self->lock);
    sl_rate_limiter_update(&self->limiter, rate);
    pthread_mutex_unlock(&self->lock);
}

double
sl_block_generator_limit(struct sl_block_generator *self)
{
    pthread_mutex_lock(&self->lock);
    double rate = self->limiter.rate;
    pthread_mutex_unlock(&self->lock);
    return rate;
}
