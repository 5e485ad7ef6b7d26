#pragma once
/* A role's loop as the executor of its stores. */

#include "base/map.h"
#include "loop/loop.h"
#include "state/executor.h"

/* In the memory of its owner; must outlive the stores that use it and must not move. */
struct sl_state_loop_executor {
    struct sl_state_executor executor;
    struct sl_loop *loop;
    /* Ticket -> timer. */
    struct sl_map_u64 timers;
    uint64_t last_ticket;
};

/* The loop is borrowed. What is handed to stores is &self->executor. */
void sl_state_loop_executor_create(struct sl_state_loop_executor *self, struct sl_loop *loop);

/* After the stores are closed; timers that are left are stopped. */
void sl_state_loop_executor_destroy(struct sl_state_loop_executor *self);
