#pragma once
/* A store from its address: the one place that knows all backends. */

#include "state/state.h"

struct sl_state_open_options {
    /* Time limit of a call (setting state_timeout); 0 is SL_STATE_TIMEOUT_MS. */
    uint64_t timeout_ms;
    /* ZooKeeper's session (setting zookeeper_session_timeout); 0 is SL_ZOOKEEPER_SESSION_MS. */
    uint64_t session_timeout_ms;
    /* ZooKeeper's "user:password", from a file or the environment; or NULL. */
    const char *digest;
    /* Nothing will be written. A local folder is then left exactly as it is. */
    bool is_reader;
};

/*
 * Opens `localfs:DIR`, `zookeeper://host:port[,host:port]/root` or `memory:`. Returns at once; the
 * store connects by itself, and calls made meanwhile wait. NULL with SL_EINVAL for an address that
 * makes no sense.
 */
struct sl_state_store *sl_state_open_new(const char *url, const struct sl_state_executor *executor,
                                         const struct sl_state_open_options *options);
