#pragma once
/* On which workers receivers are to run: evenly, and where they want to. Pure functions; ties go to
 * the smaller number. */

#include <stdint.h>

#include "base/vec.h"

enum sl_receiver_state {
    SL_RECEIVER_INACTIVE,
    /* A place is chosen, it has not said that it runs. */
    SL_RECEIVER_SCHEDULED,
    SL_RECEIVER_ACTIVE,
};

/* A place for a receiver: a worker, or (worker -1) a host on which no worker is known. */
struct sl_receiver_place {
    int32_t worker;
    const char *host;
};

struct sl_receiver_places SL_VEC_BODY(struct sl_receiver_place);

struct sl_placement_receiver {
    /* NULL = anywhere. */
    const char *preferred_host;
    enum sl_receiver_state state;
    /* Of an active one. */
    int32_t worker;
    /* Where it may run, best first; filled in by sl_placement_all. */
    struct sl_receiver_places places;
};

struct sl_placement_worker {
    const char *host;
    /* Workers that are gone keep their number. */
    int32_t is_alive;
};

/*
 * Places all receivers anew: those with a preferred host on its least loaded worker (the host
 * itself when it has none), the others on the least loaded worker; then every idle worker becomes
 * one more place of the receiver with the fewest. Without workers all lists are empty.
 */
void sl_placement_all(struct sl_placement_receiver *receivers, int32_t receiver_count,
                      const struct sl_placement_worker *workers, int32_t worker_count);

/*
 * Places one receiver again, given where the others are: on idle workers, else on those with the
 * least weight (1 per active receiver, 1 / places per scheduled one); its preferred host is always
 * among the places. Without workers there is no place.
 */
void sl_placement_one(struct sl_placement_receiver *receivers, int32_t receiver_count,
                      int32_t receiver, const struct sl_placement_worker *workers,
                      int32_t worker_count);
