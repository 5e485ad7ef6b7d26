#pragma once
/*
 * Heartbeats: who is alive, judged by the receiver's clock. The resource manager and the topology
 * masters are senders: at every interval they ask each target, with a payload made for it; a
 * supervisor or worker answers with its own payload. Payloads are built on the loop that changes
 * what they report, in the turn in which they are sent, so none is stale.
 *
 *     state of a target   event                                     action
 *     RUNNING             heartbeat or request                      last = now, limit anew
 *     RUNNING             limit over                                TIMEOUT, told once
 *     RUNNING             threshold unreachable answers in a row    UNREACHABLE, told once
 *     any                 unmonitor                                 gone, nothing is told any more
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"
#include "loop/loop.h"

enum {
    SL_HEARTBEAT_INTERVAL_MS = 10000,
    SL_HEARTBEAT_TIMEOUT_MS = 50000,
    SL_HEARTBEAT_THRESHOLD = 2,
};

struct sl_heartbeat_config {
    uint64_t interval_ms;
    uint64_t timeout_ms;
    /* Unreachable answers in a row that make a target dead; -1 switches it off. */
    int threshold;
};

struct sl_heartbeat_config sl_heartbeat_config_default(void);

/* SL_EINVAL unless 0 < interval < timeout and threshold is -1 or above 0. */
int sl_heartbeat_config_check(const struct sl_heartbeat_config *config);

struct sl_heartbeat_listener {
    /* No sign of life for the limit. The target stays until it is unmonitored. */
    void (*on_timeout)(void *ctx, const char *id);
    /* It can not be reached; owners treat it like a timeout. May be NULL: on_timeout then. */
    void (*on_unreachable)(void *ctx, const char *id);
    /* What a target, or somebody unknown, said. May be NULL. */
    void (*on_payload)(void *ctx, const char *id, const uint8_t *payload, size_t size);
    /* Appends our payload for this target. May be NULL: empty. */
    void (*make_payload)(void *ctx, const char *id, struct sl_buf *out);
    void *ctx;
};

enum sl_heartbeat_answer {
    SL_HEARTBEAT_ANSWERED,
    SL_HEARTBEAT_UNREACHABLE,
    /* Any other error: says nothing about the target. */
    SL_HEARTBEAT_OTHER,
};

/* How a target is asked; the answer goes to sl_heartbeat_answered, now or later. */
struct sl_heartbeat_target {
    void (*request)(void *ctx, const char *id, const uint8_t *payload, size_t size);
    void *ctx;
};

struct sl_heartbeats {
    struct sl_loop *loop;
    struct sl_heartbeat_config config;
    struct sl_heartbeat_listener listener;
    bool is_sender;
    struct sl_timer timer;
    /* id -> struct target. */
    struct sl_map_bytes targets;
    struct sl_buf payload;
};

/* A sender asks its targets at every interval, from one interval after its creation on. */
int sl_heartbeats_create(struct sl_heartbeats *self, struct sl_loop *loop, bool is_sender,
                         const struct sl_heartbeat_config *config,
                         const struct sl_heartbeat_listener *listener);

/* Unmonitors all; nothing is told any more. */
void sl_heartbeats_destroy(struct sl_heartbeats *self);

/* Begins to watch; the limit runs at once. A known id is left as it is: unmonitor before. */
void sl_heartbeats_monitor(struct sl_heartbeats *self, const char *id,
                           const struct sl_heartbeat_target *target);
void sl_heartbeats_unmonitor(struct sl_heartbeats *self, const char *id);
bool sl_heartbeats_is_monitored(const struct sl_heartbeats *self, const char *id);

/* A heartbeat of a target arrived. From an unknown id only its payload is told. */
void sl_heartbeats_receive(struct sl_heartbeats *self, const char *id, const uint8_t *payload,
                           size_t size);

/*
 * A target asks us. Appends our payload to *answer and gives true; false for an unknown id, which
 * gets no answer.
 */
bool sl_heartbeats_requested(struct sl_heartbeats *self, const char *id, const uint8_t *payload,
                             size_t size, struct sl_buf *answer);

/* How the request to a target ended. An answer counts as its heartbeat. */
void sl_heartbeats_answered(struct sl_heartbeats *self, const char *id,
                            enum sl_heartbeat_answer answer, const uint8_t *payload, size_t size);

/* When the last heartbeat came (loop's clock, ms): -1 for an unknown id, 0 for none yet. */
int64_t sl_heartbeats_last_ms(const struct sl_heartbeats *self, const char *id);
