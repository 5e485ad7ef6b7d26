#pragma once
/*
 * The control part of a worker: its link to the topology master and its endpoint, on which the
 * master asks for heartbeats and lets it go. Data between workers does not pass here and goes on
 * while there is no topology master.
 */

#include "cluster/peer.h"
#include "rpc/connections.h"

struct sl_worker_registration;

struct sl_worker_registration_options {
    struct sl_rpc *rpc;
    /* Topology, address, name, process, where it runs. Borrowed. */
    const struct sl_register_peer *identity;
    struct sl_registration_config registration;
    struct sl_heartbeat_config heartbeat;
    /* Registered with the present topology master; again after each loss. May be NULL. */
    void (*on_registered)(void *ctx, uint64_t token);
    /* The topology master is lost: the worker goes on and registers anew. May be NULL. */
    void (*on_lost)(void *ctx, const char *cause);
    /* The known leader is of an old term: look it up again. */
    void (*on_stale_leader)(void *ctx);
    /* The topology master wants no such worker: it has to end. */
    void (*on_rejected)(void *ctx, const char *reason);
    /* Appends what the worker tells in a heartbeat. May be NULL: nothing. */
    void (*make_payload)(void *ctx, struct sl_buf *out);
    /* Takes the requests of worker_messages.h. NULL: they are not understood. */
    void (*handle)(void *ctx, struct sl_rpc_request *request);
    void *ctx;
};

/* Starts the endpoint, without a topology master. SL_EINVAL, SL_EEXIST. */
int sl_worker_registration_new(const struct sl_worker_registration_options *options,
                               struct sl_worker_registration **worker);
void sl_worker_registration_free(struct sl_worker_registration *worker);

/* The leader of the topology, NULL for none. The shape of sl_leader_changed_fn. */
void sl_worker_registration_leader(void *worker, const char *address, uint64_t token);

/* NULL while it is not registered. */
struct sl_rpc_gateway *sl_worker_registration_gateway(const struct sl_worker_registration *worker);
