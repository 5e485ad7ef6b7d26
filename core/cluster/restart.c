#include "cluster/restart.h"

#include <string.h>

#include "base/alloc.h"
#include "base/err.h"

struct sl_restart_config
sl_restart_config_default(enum sl_restart_kind kind)
{
    return (struct sl_restart_config){
        .kind = kind,
        .attempts = 1,
        .delay_ms = 1000,
        .max_failures = 1,
        .interval_ms = 60000,
        .initial_ms = 1000,
        .max_ms = 300000,
        .multiplier = 2.0,
        .reset_ms = 3600000,
        .jitter = 0.1,
    };
}

static int
check_exponential(const struct sl_restart_config *config)
{
    if (config->initial_ms == 0) {
        return sl_err_set(SL_EINVAL, "restart_initial must be at least 1 ms");
    }
    if (config->initial_ms > config->max_ms) {
        return sl_err_set(SL_EINVAL, "restart_initial must not be above restart_max");
    }
    if (!(config->multiplier > 1) || config->multiplier > 1e6) {
        return sl_err_set(SL_EINVAL, "restart_multiplier must be above 1 and at most 1000000");
    }
    if (config->reset_ms == 0) {
        return sl_err_set(SL_EINVAL, "restart_reset must be at least 1 ms");
    }
    if (!(config->jitter >= 0 && config->jitter <= 1)) {
        return sl_err_set(SL_EINVAL, "restart_jitter must be within 0..1");
    }
    return 0;
}

int
sl_restart_config_check(const struct sl_restart_config *config)
{
    switch (config->kind) {
    case SL_RESTART_NONE:
    case SL_RESTART_FIXED_DELAY:
        return 0;
    case SL_RESTART_FAILURE_RATE:
        if (config->max_failures == 0 || config->max_failures > SL_RESTART_FAILURES_MAX) {
            return sl_err_set(SL_EINVAL, "restart_max_failures must be within 1..%d",
                              SL_RESTART_FAILURES_MAX);
        }
        return config->interval_ms != 0
                   ? 0
                   : sl_err_set(SL_EINVAL, "restart_interval must be at least 1 ms");
    case SL_RESTART_EXPONENTIAL:
        return check_exponential(config);
    }
    return sl_err_set(SL_EINVAL, "unknown restart strategy %d", (int)config->kind);
}

int
sl_restart_create(struct sl_restart *restart, const struct sl_restart_config *config, uint64_t seed)
{
    int rc = sl_restart_config_check(config);
    if (rc != 0) {
        return rc;
    }
    memset(restart, 0, sizeof(*restart));
    restart->config = *config;
    restart->current_ms = config->initial_ms;
    sl_random_seed(&restart->random, seed);
    if (config->kind == SL_RESTART_FAILURE_RATE) {
        restart->times = sl_calloc(config->max_failures + 1, sizeof(*restart->times));
    }
    return 0;
}

void
sl_restart_destroy(struct sl_restart *restart)
{
    sl_free(restart->times);
    restart->times = NULL;
}

static void
note_time(struct sl_restart *restart, uint64_t now_ms)
{
    uint32_t capacity = restart->config.max_failures + 1;
    if (restart->times_count < capacity) {
        restart->times[(restart->times_first + restart->times_count++) % capacity] = now_ms;
    } else {
        restart->times[restart->times_first] = now_ms;
        restart->times_first = (restart->times_first + 1) % capacity;
    }
}

static void
grow_backoff(struct sl_restart *restart, uint64_t now_ms)
{
    const struct sl_restart_config *config = &restart->config;
    if (now_ms - restart->last_ms >= config->reset_ms + restart->current_ms) {
        restart->current_ms = config->initial_ms;
    } else {
        double grown = (double)restart->current_ms * config->multiplier;
        restart->current_ms = grown >= (double)config->max_ms ? config->max_ms : (uint64_t)grown;
        if (restart->current_ms < config->initial_ms) {
            restart->current_ms = config->initial_ms;
        }
    }
    restart->last_ms = now_ms;
}

void
sl_restart_failed(struct sl_restart *restart, uint64_t now_ms)
{
    restart->failures++;
    if (restart->config.kind == SL_RESTART_FAILURE_RATE) {
        note_time(restart, now_ms);
    } else if (restart->config.kind == SL_RESTART_EXPONENTIAL) {
        grow_backoff(restart, now_ms);
    }
}

bool
sl_restart_is_allowed(const struct sl_restart *restart, uint64_t now_ms)
{
    const struct sl_restart_config *config = &restart->config;
    switch (config->kind) {
    case SL_RESTART_FIXED_DELAY:
        return restart->failures <= config->attempts;
    case SL_RESTART_FAILURE_RATE:
        return restart->times_count <= config->max_failures ||
               now_ms - restart->times[restart->times_first] > config->interval_ms;
    case SL_RESTART_EXPONENTIAL:
        return true;
    default:
        return false;
    }
}

uint64_t
sl_restart_backoff_ms(struct sl_restart *restart)
{
    const struct sl_restart_config *config = &restart->config;
    if (config->kind != SL_RESTART_EXPONENTIAL) {
        return config->delay_ms;
    }
    uint64_t span = (uint64_t)((double)restart->current_ms * config->jitter);
    uint64_t backoff_ms =
        restart->current_ms - span + sl_random_below(&restart->random, 2 * span + 1);
    return backoff_ms < config->max_ms ? backoff_ms : config->max_ms;
}
