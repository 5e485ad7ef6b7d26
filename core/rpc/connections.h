#pragma once
/*
 * The four connections by which processes make themselves known:
 *
 *     supervisor      -> resource manager    address, name, data port, hardware, profiles
 *     topology master -> resource manager    topology, address, name, token of its term
 *     supervisor      -> topology master     topology, address, name
 *     worker          -> topology master     topology, address, name, where it runs
 *
 * Each is a leader link with the message that belongs to it. Identities are borrowed for the life
 * of the connection.
 */

#include "rpc/leader_link.h"

struct sl_connection_listener {
    /* Registered. Of a supervisor at a resource manager, answer->instance names the registration.
     */
    void (*on_registered)(void *ctx, struct sl_leader_link *link,
                          const struct sl_registered *answer);
    /* A registered link ends; a last word can still be sent on its gateway. */
    void (*on_closing)(void *ctx, struct sl_leader_link *link, const char *cause);
    void (*on_failure)(void *ctx, struct sl_leader_link *link, enum sl_registration_end kind,
                       int code, const char *reason);
    void *ctx;
};

struct sl_named_connection {
    struct sl_leader_link link;
    const void *identity;
    struct sl_connection_listener listener;
};

/* All give SL_EINVAL for a bad config. `attempt` of an identity is set by the connection. */
int sl_connection_supervisor_to_rm(struct sl_named_connection *connection, struct sl_rpc *rpc,
                                   const struct sl_registration_config *config,
                                   const struct sl_register_supervisor *identity,
                                   const struct sl_connection_listener *listener);
int sl_connection_master_to_rm(struct sl_named_connection *connection, struct sl_rpc *rpc,
                               const struct sl_registration_config *config,
                               const struct sl_register_topology_master *identity,
                               const struct sl_connection_listener *listener);
int sl_connection_supervisor_to_master(struct sl_named_connection *connection, struct sl_rpc *rpc,
                                       const struct sl_registration_config *config,
                                       const struct sl_register_peer *identity,
                                       const struct sl_connection_listener *listener);
int sl_connection_worker_to_master(struct sl_named_connection *connection, struct sl_rpc *rpc,
                                   const struct sl_registration_config *config,
                                   const struct sl_register_peer *identity,
                                   const struct sl_connection_listener *listener);

void sl_connection_destroy(struct sl_named_connection *connection);

/* Sends the Disconnect message of the kind (method of enum sl_method) on a gateway. */
void sl_connection_say_goodbye(struct sl_rpc_gateway *gateway, uint32_t method,
                               const struct sl_disconnect *message);
