#pragma once
/*
 * What every process with a role has: a loop, the state manager, and connections. Closing waits
 * until the store is closed, so nothing of it is left when the process goes on to end.
 *
 *     sl_role_base_create -> sl_role_base_open -> sl_role_base_listen -> ... -> sl_role_base_close
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/rpc.h"
#include "state/loop_executor.h"
#include "state/state.h"

struct sl_settings;

struct sl_role_base {
    struct sl_loop *loop;
    struct sl_state_loop_executor executor;
    /* NULL until open. */
    struct sl_state_store *store;
    struct sl_rpc *rpc;
    bool is_closed;
};

/* The loop, and the role in the log, which tells of the cluster unless SL_LOG says otherwise. */
int sl_role_base_create(struct sl_role_base *self, const char *role);

/* The state manager and the connections; texts and the secret are borrowed for the call. SL_EINVAL
 * for a bad address. */
int sl_role_base_open(struct sl_role_base *self, const struct sl_rpc_options *rpc,
                      const char *state_url, const struct sl_settings *settings);

/* Listens at a port of the host that the system chooses. SL_EINVAL, SL_EFENCED without a secret
 * where other machines can reach it. */
int sl_role_base_listen(struct sl_role_base *self, const char *host);

/* After a successful create, opened or not: what hangs on it has been freed. */
void sl_role_base_close(struct sl_role_base *self);
