#pragma once
/*
 * How update, kill and restart reach the scheduler of a topology. The library client loads the
 * cluster's launcher into this process. The service client asks the scheduler itself, whose
 * endpoint is in the node /schedulers/NAME; when there is none, nothing can be asked and the
 * command fails with SL_EUNAVAIL. Only kill goes on without a scheduler, by the launcher, because
 * it also has to clean up behind what is gone.
 */

#include "cluster/client_launcher.h"

struct sl_scheduler_client {
    int (*update)(void *self, const struct sl_runtime_change *change,
                  const struct sl_update_result **result);
    int (*kill)(void *self, const struct sl_runtime_kill *kill);
    int (*restart)(void *self, const char *topology, int32_t container, uint64_t timeout_ms);
    /* Always; closes the launcher too, if one was loaded. */
    void (*close)(void *self);
    void *self;
};

/* Makes the client that the runtime manager's settings ask for. */
void sl_scheduler_client_open(struct sl_runtime *runtime, struct sl_scheduler_client *client);
