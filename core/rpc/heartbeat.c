#include "rpc/heartbeat.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/list.h"
#include "base/vec.h"

enum target_state {
    RUNNING,
    TIMED_OUT,
    UNREACHABLE,
};

struct target {
    struct sl_heartbeats *heartbeats;
    char *id;
    struct sl_heartbeat_target ops;
    enum target_state state;
    struct sl_timer limit;
    int64_t last_ms;
    int unreachable;
};

struct sl_heartbeat_config
sl_heartbeat_config_default(void)
{
    return (struct sl_heartbeat_config){SL_HEARTBEAT_INTERVAL_MS, SL_HEARTBEAT_TIMEOUT_MS,
                                        SL_HEARTBEAT_THRESHOLD};
}

int
sl_heartbeat_config_check(const struct sl_heartbeat_config *config)
{
    if (config->interval_ms == 0 || config->timeout_ms <= config->interval_ms) {
        return sl_err_set(SL_EINVAL,
                          "heartbeat_interval (%llu ms) must be above 0 and below "
                          "heartbeat_timeout (%llu ms)",
                          (unsigned long long)config->interval_ms,
                          (unsigned long long)config->timeout_ms);
    }
    if (config->threshold != -1 && config->threshold <= 0) {
        return sl_err_set(SL_EINVAL, "heartbeat_threshold must be above 0, or -1 for off");
    }
    return 0;
}

static struct target *
find(const struct sl_heartbeats *self, const char *id)
{
    return sl_map_bytes_get_str(&self->targets, id);
}

/* Tells a terminal state. The owner usually unmonitors the target meanwhile, so it gets a copy. */
static void
tell_dead(struct target *target, void (*tell)(void *ctx, const char *id))
{
    char *id = sl_strdup(target->id);
    tell(target->heartbeats->listener.ctx, id);
    sl_free(id);
}

static void
limit_over(void *ctx, uint64_t ticket)
{
    struct target *target = ctx;
    (void)ticket;
    sl_assert_eq(target->state, RUNNING);
    target->state = TIMED_OUT;
    tell_dead(target, target->heartbeats->listener.on_timeout);
}

static void
start_limit(struct target *target)
{
    sl_timer_start(target->heartbeats->loop, &target->limit, target->heartbeats->config.timeout_ms,
                   limit_over, target);
}

static void
ask(struct sl_heartbeats *self, struct target *target)
{
    sl_buf_clear(&self->payload);
    if (self->listener.make_payload != NULL) {
        self->listener.make_payload(self->listener.ctx, target->id, &self->payload);
    }
    target->ops.request(target->ops.ctx, target->id, self->payload.data, self->payload.size);
}

static void
interval_over(void *ctx, uint64_t ticket)
{
    struct sl_heartbeats *self = ctx;
    struct sl_map_bytes_entry *entry;
    (void)ticket;
    sl_timer_start(self->loop, &self->timer, self->config.interval_ms, interval_over, self);
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->targets, &at)) != NULL;) {
        struct target *target = entry->value;
        if (target->state == RUNNING) {
            ask(self, target);
        }
    }
}

int
sl_heartbeats_create(struct sl_heartbeats *self, struct sl_loop *loop, bool is_sender,
                     const struct sl_heartbeat_config *config,
                     const struct sl_heartbeat_listener *listener)
{
    int rc = sl_heartbeat_config_check(config);
    if (rc != 0) {
        return rc;
    }
    memset(self, 0, sizeof(*self));
    self->loop = loop;
    self->is_sender = is_sender;
    self->config = *config;
    self->listener = *listener;
    if (is_sender) {
        sl_timer_start(loop, &self->timer, config->interval_ms, interval_over, self);
    }
    return 0;
}

static void
target_free(struct target *target)
{
    sl_timer_stop(&target->limit);
    sl_free(target->id);
    sl_free(target);
}

void
sl_heartbeats_destroy(struct sl_heartbeats *self)
{
    struct sl_map_bytes_entry *entry;
    if (self->loop == NULL) {
        return;
    }
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->targets, &at)) != NULL;) {
        target_free(entry->value);
    }
    sl_timer_stop(&self->timer);
    sl_map_bytes_destroy(&self->targets);
    sl_buf_destroy(&self->payload);
    self->loop = NULL;
}

void
sl_heartbeats_monitor(struct sl_heartbeats *self, const char *id,
                      const struct sl_heartbeat_target *ops)
{
    if (find(self, id) != NULL) {
        return;
    }
    struct target *target = sl_calloc(1, sizeof(*target));
    target->heartbeats = self;
    target->id = sl_strdup(id);
    if (ops != NULL) {
        target->ops = *ops;
    }
    sl_assert(!self->is_sender || target->ops.request != NULL);
    sl_map_bytes_put_str(&self->targets, id, target);
    start_limit(target);
}

void
sl_heartbeats_unmonitor(struct sl_heartbeats *self, const char *id)
{
    struct target *target = sl_map_bytes_remove_str(&self->targets, id);
    if (target != NULL) {
        target_free(target);
    }
}

bool
sl_heartbeats_is_monitored(const struct sl_heartbeats *self, const char *id)
{
    return find(self, id) != NULL;
}

/* A sign of life; terminal states stay. */
static void
beat(struct target *target)
{
    if (target->state == RUNNING) {
        target->last_ms = (int64_t)sl_loop_now_ms(target->heartbeats->loop);
        target->unreachable = 0;
        start_limit(target);
    }
}

static void
tell_payload(struct sl_heartbeats *self, const char *id, const uint8_t *payload, size_t size)
{
    if (self->listener.on_payload != NULL) {
        self->listener.on_payload(self->listener.ctx, id, payload, size);
    }
}

void
sl_heartbeats_receive(struct sl_heartbeats *self, const char *id, const uint8_t *payload,
                      size_t size)
{
    struct target *target = find(self, id);
    if (target != NULL) {
        beat(target);
    }
    tell_payload(self, id, payload, size);
}

bool
sl_heartbeats_requested(struct sl_heartbeats *self, const char *id, const uint8_t *payload,
                        size_t size, struct sl_buf *answer)
{
    struct target *target = find(self, id);
    if (target == NULL) {
        return false;
    }
    beat(target);
    tell_payload(self, id, payload, size);
    if (self->listener.make_payload != NULL) {
        self->listener.make_payload(self->listener.ctx, id, answer);
    }
    return true;
}

static void
count_unreachable(struct sl_heartbeats *self, struct target *target)
{
    if (target->state != RUNNING || self->config.threshold == -1 ||
        ++target->unreachable < self->config.threshold) {
        return;
    }
    target->state = UNREACHABLE;
    sl_timer_stop(&target->limit);
    tell_dead(target, self->listener.on_unreachable != NULL ? self->listener.on_unreachable
                                                            : self->listener.on_timeout);
}

void
sl_heartbeats_answered(struct sl_heartbeats *self, const char *id, enum sl_heartbeat_answer answer,
                       const uint8_t *payload, size_t size)
{
    struct target *target = find(self, id);
    if (answer == SL_HEARTBEAT_ANSWERED) {
        sl_heartbeats_receive(self, id, payload, size);
    } else if (answer == SL_HEARTBEAT_UNREACHABLE && target != NULL) {
        count_unreachable(self, target);
    }
}

int64_t
sl_heartbeats_last_ms(const struct sl_heartbeats *self, const char *id)
{
    const struct target *target = find(self, id);
    return target != NULL ? target->last_ms : -1;
}
