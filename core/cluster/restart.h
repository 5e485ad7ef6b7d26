#pragma once
/* When a failed topology, container or process is started again, and how often. Pure: the time is
 * handed in. */

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

enum sl_restart_kind {
    /* Never. */
    SL_RESTART_NONE,
    /* At most `attempts` times, `delay_ms` after each failure. */
    SL_RESTART_FIXED_DELAY,
    /* As long as there were no more than max_failures in interval_ms. */
    SL_RESTART_FAILURE_RATE,
    /* Always, with a pause that grows with failures that follow each other closely. */
    SL_RESTART_EXPONENTIAL,
};

enum { SL_RESTART_FAILURES_MAX = 1024 };

struct sl_restart_config {
    enum sl_restart_kind kind;
    uint32_t attempts;
    uint64_t delay_ms;
    uint32_t max_failures;
    uint64_t interval_ms;
    uint64_t initial_ms;
    uint64_t max_ms;
    double multiplier;
    /* Quiet time after the back-off that makes the next failure the first again. */
    uint64_t reset_ms;
    /* The pause varies by up to this share of itself, 0..1. */
    double jitter;
};

/* The defaults of a kind: fixed delay 1 x 1 s; rate 1 in 1 min, 1 s; exponential 1 s .. 5 min,
 * x 2, reset 1 h, jitter 0.1. */
struct sl_restart_config sl_restart_config_default(enum sl_restart_kind kind);

/* SL_EINVAL, naming the setting. */
int sl_restart_config_check(const struct sl_restart_config *config);

struct sl_restart {
    struct sl_restart_config config;
    struct sl_random random;
    uint64_t failures;
    /* Of the exponential kind. */
    uint64_t current_ms;
    uint64_t last_ms;
    /* The last max_failures + 1 failure times, as a ring. */
    uint64_t *times;
    uint32_t times_count;
    uint32_t times_first;
};

/* SL_EINVAL for a bad config. The seed decides the jitter. */
int sl_restart_create(struct sl_restart *restart, const struct sl_restart_config *config,
                      uint64_t seed);
void sl_restart_destroy(struct sl_restart *restart);

/* A failure happened at now_ms (of any clock that does not go back). */
void sl_restart_failed(struct sl_restart *restart, uint64_t now_ms);

/* May it be started again, seen at now_ms? */
bool sl_restart_is_allowed(const struct sl_restart *restart, uint64_t now_ms);

/* How long to wait first; the jitter is drawn anew at each call. */
uint64_t sl_restart_backoff_ms(struct sl_restart *restart);
