#pragma once
/* The state manager's address, `--state URL`. */

#include "state/state.h"

enum sl_state_scheme {
    SL_STATE_MEMORY,
    SL_STATE_LOCALFS,
    SL_STATE_ZOOKEEPER,
};

enum {
    SL_STATE_HOSTS_MAX = 16,
    SL_STATE_HOST_TEXT_MAX = 256,
    SL_STATE_ZOOKEEPER_PORT = 2181,
};

struct sl_state_host {
    /* A name or an address; that of IPv6 without its brackets. */
    char name[SL_STATE_HOST_TEXT_MAX];
    uint16_t port;
};

struct sl_state_url {
    enum sl_state_scheme scheme;
    /* Of localfs: the directory. Of zookeeper: the root node, "/streamlua" when none is given. */
    char path[4096];
    struct sl_state_host hosts[SL_STATE_HOSTS_MAX];
    size_t host_count;
};

/*
 * Reads `localfs:DIR`, `zookeeper://host[:port][,host[:port]...][/root]` or `memory:`. SL_EINVAL
 * says what is wrong with it.
 */
int sl_state_url_parse(const char *text, struct sl_state_url *url);
