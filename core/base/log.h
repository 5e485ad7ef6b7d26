#pragma once
/*
 * The log: one line a record,
 *
 *     2026-01-31T12:00:00.123Z I worker/w3 state.zk executor-1 connected to=127.0.0.1:2181
 *     time (UTC, ms)       level role/id  module  thread  message, then key=value by convention
 *
 * to an injected sink. The level is tested before anything is formatted. Pure algorithms and the
 * hot path never log; whoever handles a failure logs it once. Configure before threads start;
 * logging itself is safe from any thread (a line reaches the sink in one call).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

enum sl_log_level {
    SL_LOG_ERROR,
    SL_LOG_WARN,
    SL_LOG_INFO,
    SL_LOG_VERBOSE,
    SL_LOG_DEBUG,
};

enum {
    /* Bytes of a whole line with its newline; longer ones are cut and end in "...". */
    SL_LOG_LINE_MAX = 1024,
    SL_LOG_RULES_MAX = 32,
};

/* Gets a whole line ending in a newline; called from any thread, must not log. */
typedef void (*sl_log_sink_fn)(void *ctx, enum sl_log_level level, const char *line, size_t len);

/*
 * Sets the levels from a text as in the environment variable SL_LOG: a default level and levels of
 * modules, "info,state.zk=debug,rpc=warn". A rule of a module holds for those below it too (rpc
 * for rpc.leader); the longest rule wins. NULL or "" is "warn". SL_EINVAL names the bad part and
 * changes nothing.
 */
int sl_log_configure(const char *spec);

/* Sends lines to fn(ctx, ...); fn NULL goes back to standard error. */
void sl_log_set_sink(sl_log_sink_fn fn, void *ctx);

/* The clock of the time stamps; NULL goes back to the system's. Borrowed. */
void sl_log_set_clock(const struct sl_clock *clock);

/* Who this process is, "worker/w3" (cut to 63 bytes); empty shows as "-". */
void sl_log_set_role(const char *role);

/* The name of the calling thread in its lines (cut to 31 bytes); empty shows as "main". */
void sl_log_set_thread(const char *name);

/* True when a record of this level and module would be written. */
bool sl_log_is_enabled(const char *module, enum sl_log_level level);

/* Writes a record that passed the level test. Newlines and control bytes in it become spaces. */
void sl_log_write(const char *module, enum sl_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "error" .. "debug"; sl_log_level_parse gives -1 for anything else. */
const char *sl_log_level_name(enum sl_log_level level);
int sl_log_level_parse(const char *name, size_t len);

#define SL_LOG(module, level, ...)                                                                 \
    do {                                                                                           \
        if (sl_log_is_enabled((module), (level))) {                                                \
            sl_log_write((module), (level), __VA_ARGS__);                                          \
        }                                                                                          \
    } while (0)

#define sl_log_error(module, ...) SL_LOG(module, SL_LOG_ERROR, __VA_ARGS__)
#define sl_log_warn(module, ...) SL_LOG(module, SL_LOG_WARN, __VA_ARGS__)
#define sl_log_info(module, ...) SL_LOG(module, SL_LOG_INFO, __VA_ARGS__)
#define sl_log_verbose(module, ...) SL_LOG(module, SL_LOG_VERBOSE, __VA_ARGS__)
#define sl_log_debug(module, ...) SL_LOG(module, SL_LOG_DEBUG, __VA_ARGS__)

/* Lets one record pass an interval and counts the others. Zeroed memory is ready. */
struct sl_log_limit {
    uint64_t next_ns;
    uint64_t suppressed;
};

/* True when a record may pass now; *suppressed gets how many did not since the last one. */
bool sl_log_limit_pass(struct sl_log_limit *limit, uint64_t interval_ms, uint64_t *suppressed);

/* A record at most once in interval_ms at this place; says how many were left out. */
#define SL_LOG_LIMITED(limit, interval_ms, module, level, fmt, ...)                                \
    do {                                                                                           \
        uint64_t sl_suppressed = 0;                                                                \
        if (sl_log_is_enabled((module), (level)) &&                                                \
            sl_log_limit_pass((limit), (interval_ms), &sl_suppressed)) {                           \
            sl_log_write((module), (level), fmt " suppressed=%llu", ##__VA_ARGS__,                 \
                         (unsigned long long)sl_suppressed);                                       \
        }                                                                                          \
    } while (0)
