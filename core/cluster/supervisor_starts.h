#pragma once
/*
 * Topology masters that begin, for the first time: who asked for one is answered when it leads its
 * topology, or with what it said when it ends again and again. Then it is given up.
 */

#include "base/list.h"
#include "loop/loop.h"
#include "rpc/rpc.h"
#include "state/state.h"

enum {
    /* After so many ends without a leader it is given up. */
    SL_SUPERVISOR_STARTS_MAX = 3,
    /* Who takes longer is not waited for: others look after it. */
    SL_SUPERVISOR_START_MS = 5000,
};

/* In the memory of its owner. */
struct sl_supervisor_starts {
    struct sl_loop *loop;
    struct sl_state_store *store;
    /* It is not to be started again. */
    void (*give_up)(void *ctx, const char *topology);
    void *ctx;
    struct sl_list list;
};

void sl_supervisor_starts_create(struct sl_supervisor_starts *self, struct sl_loop *loop,
                                 struct sl_state_store *store,
                                 void (*give_up)(void *ctx, const char *topology), void *ctx);
/* Requests that wait are refused. */
void sl_supervisor_starts_destroy(struct sl_supervisor_starts *self);

/* Answers the request of a topology master whose process was started now. */
void sl_supervisor_starts_add(struct sl_supervisor_starts *self, const char *topology,
                              struct sl_rpc_request *request);

/* The process ended; for good: it is not started again by itself. */
void sl_supervisor_starts_ended(struct sl_supervisor_starts *self, const char *topology,
                                const char *text, bool is_for_good);
