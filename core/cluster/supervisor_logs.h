#pragma once
/*
 * The logs of workers, for commands on other machines: a piece at a time, and where there is
 * nothing new, when there is.
 */

#include "base/list.h"
#include "loop/loop.h"
#include "rpc/rpc.h"

/* In the memory of its owner. */
struct sl_supervisor_logs {
    struct sl_loop *loop;
    /* Of all logs; those of a topology are in one of its own below it. Borrowed. */
    const char *folder;
    /* Requests that wait. */
    struct sl_list list;
};

void sl_supervisor_logs_create(struct sl_supervisor_logs *self, struct sl_loop *loop,
                               const char *folder);
/* Requests that wait are refused. */
void sl_supervisor_logs_destroy(struct sl_supervisor_logs *self);

/* Answers SL_SV_READ_LOG, now or later. SL_ENOTFOUND: there is no such log. */
void sl_supervisor_logs_read(struct sl_supervisor_logs *self, struct sl_rpc_request *request);
