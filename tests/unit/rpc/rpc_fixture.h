#pragma once
/* Two or more nodes of a simulation with a service each, and helpers to call and look. */

#include "base/buf.h"
#include "base/err.h"
#include "loop/sim.h"
#include "loop/stream.h"
#include "rpc/rpc.h"
#include "unit.h"

/* How the last call ended. */
struct outcome {
    int count;
    enum sl_rpc_status status;
    int code;
    char reason[600];
    char body[256];
    size_t size;
    uint64_t at_ms;
    struct sl_loop *loop;
};

static inline void
note_outcome(void *ctx, const struct sl_rpc_result *result)
{
    struct outcome *outcome = ctx;
    outcome->count++;
    outcome->status = result->status;
    outcome->code = result->code;
    snprintf(outcome->reason, sizeof(outcome->reason), "%s", result->reason);
    outcome->size = result->size;
    memcpy(outcome->body, result->body != NULL ? (const char *)result->body : "",
           result->size < sizeof(outcome->body) ? result->size : sizeof(outcome->body));
    if (outcome->loop != NULL) {
        outcome->at_ms = sl_loop_now_ms(outcome->loop);
    }
}

#define assert_status(outcome, expected)                                                           \
    do {                                                                                           \
        if ((outcome)->status != (expected)) {                                                     \
            print_message("status %s: %s\n", sl_rpc_status_name((outcome)->status),                \
                          (outcome)->reason);                                                      \
        }                                                                                          \
        assert_int_equal((outcome)->status, (expected));                                           \
    } while (0)

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL) {                                                      \
            print_message("'%s' is not in: %s\n", (part), (text));                                 \
        }                                                                                          \
        assert_non_null(strstr((text), (part)));                                                   \
    } while (0)
