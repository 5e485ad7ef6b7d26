#pragma once
/*
 * A registration that is tried until it succeeds, is rejected or is cancelled. Attempt n of the
 * target's answer has a time limit that doubles; the pauses after errors and refusals are longer.
 *
 *     state         event                     then
 *     NEW           start                     connect (RESOLVING)
 *     RESOLVING     connected                 attempt 1, limit = initial (REGISTERING)
 *     RESOLVING     no connection             pause error_delay, connect again; no limit on tries
 *     REGISTERING   SUCCESS                   done (SUCCESS)
 *     REGISTERING   no answer in the limit    at once attempt + 1, limit = min(2 * limit, max)
 *     REGISTERING   FAILURE                   pause refused_delay, attempt 1, limit = initial
 *     REGISTERING   REJECTION                 done (REJECTED), never again
 *     REGISTERING   STALE_TOKEN               done (STALE): the leader must be looked up again
 *     REGISTERING   any other error           pause error_delay, attempt 1, limit = initial
 *     any           the call can not be made  done (FAILED) at once: a bug of ours, never again
 *     any           cancel                    nothing more happens
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "rpc/rpc.h"

struct sl_registration_config {
    uint64_t initial_timeout_ms;
    uint64_t max_timeout_ms;
    uint64_t error_delay_ms;
    uint64_t refused_delay_ms;
};

enum {
    SL_REGISTRATION_INITIAL_MS = 100,
    SL_REGISTRATION_MAX_MS = 30000,
    SL_REGISTRATION_ERROR_MS = 10000,
    SL_REGISTRATION_REFUSED_MS = 30000,
};

/* The defaults above. */
struct sl_registration_config sl_registration_config_default(void);

/* SL_EINVAL unless 0 < initial <= max; the message names the setting. */
int sl_registration_config_check(const struct sl_registration_config *config);

enum sl_registration_end {
    SL_REGISTRATION_SUCCESS,
    SL_REGISTRATION_REJECTED,
    SL_REGISTRATION_STALE,
    SL_REGISTRATION_FAILED,
};

struct sl_registration;

struct sl_registration_options {
    const char *address;
    const char *endpoint;
    uint64_t token;
    struct sl_registration_config config;
    /* Writes the method and the body of an attempt (1, 2, ...). A result that is not 0 ends the
     * registration as FAILED. */
    int (*generate)(void *ctx, uint32_t attempt, uint32_t *method, struct sl_buf *body);
    /*
     * The end; called once, in a turn of its own, unless cancelled before. Of SUCCESS the result
     * has the answer's body; else code and reason. The registration may be freed here.
     */
    void (*done)(void *ctx, struct sl_registration *registration, enum sl_registration_end end,
                 const struct sl_rpc_result *result);
    void *ctx;
};

/* Makes one in state NEW; texts are copied. SL_EINVAL for a bad config. */
int sl_registration_new(struct sl_rpc *rpc, const struct sl_registration_options *options,
                        struct sl_registration **registration);

/* Begins; once only. One that was cancelled does nothing. */
void sl_registration_start(struct sl_registration *registration);

/* Ends it without a done; also before the start. Again: nothing. */
void sl_registration_cancel(struct sl_registration *registration);

/* Cancels and frees. NULL is fine. */
void sl_registration_free(struct sl_registration *registration);

/* The gateway that succeeded, which the caller now owns; only after SUCCESS, once. */
struct sl_rpc_gateway *sl_registration_take_gateway(struct sl_registration *registration);
