#pragma once
/*
 * The state manager in ZooKeeper. docs/zookeeper.md says how to run it and what happens when it is
 * lost.
 */

#include "state/backend.h"
#include "state/url.h"

enum {
    /* Default of the setting zookeeper_session_timeout; what the server grants may differ. */
    SL_ZOOKEEPER_SESSION_MS = 10000,
};

struct sl_zookeeper_options {
    /* 0 is SL_ZOOKEEPER_SESSION_MS. */
    uint64_t session_timeout_ms;
    /*
     * "user:password" for the digest scheme, or NULL. With it every node, from the root down, is
     * for this user alone, and a root that others may change is refused. It is never logged.
     */
    const char *digest;
};

/* For sl_state_store_new; url is one of scheme zookeeper. Everything is copied. */
struct sl_state_backend *sl_zookeeper_backend_new(const struct sl_state_url *url,
                                                  const struct sl_state_executor *executor,
                                                  const struct sl_zookeeper_options *options);

/* The id and the password of the present session, for tests that end it by connecting with them and
 * closing. SL_ECLOSED while there is none. */
int sl_zookeeper_client_id(const struct sl_state_backend *backend, int64_t *id, char password[16]);

/* Release of the client library that this was built with: "3.8.0". The library itself does not tell
 * its own at run time. */
const char *sl_zookeeper_client_version(void);
