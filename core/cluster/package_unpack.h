#pragma once
/*
 * A worker's copy of its topology's code: reads the package from the state manager and writes its
 * files to a folder of their own, which goes with the worker.
 */

#include "cluster/settings.h"
#include "cluster/worker_role.h"

enum {
    /* How long reading it may take. */
    SL_PACKAGE_READ_MS = 30000,
};

/*
 * Reads and writes, on a loop of its own; blocks. NULL with SL_ENOTFOUND (no such topology),
 * SL_EUNAVAIL, SL_ETIMEOUT, SL_EPROTO, SL_EINVAL (address), SL_ESYS (files).
 */
struct sl_unpacked *sl_package_unpack_new(const char *state_url, const char *topology,
                                          const struct sl_settings *settings);
/* Removes the files. NULL is fine. */
void sl_package_unpack_free(struct sl_unpacked *self);
