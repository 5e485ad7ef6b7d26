#include "rpc/connections.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"

static void
on_established(void *ctx, struct sl_leader_link *link, const struct sl_registered *answer)
{
    struct sl_named_connection *self = ctx;
    self->listener.on_registered(self->listener.ctx, link, answer);
}

static void
on_closing(void *ctx, struct sl_leader_link *link, const char *cause)
{
    struct sl_named_connection *self = ctx;
    if (self->listener.on_closing != NULL) {
        self->listener.on_closing(self->listener.ctx, link, cause);
    }
}

static void
on_failure(void *ctx, struct sl_leader_link *link, enum sl_registration_end kind, int code,
           const char *reason)
{
    struct sl_named_connection *self = ctx;
    self->listener.on_failure(self->listener.ctx, link, kind, code, reason);
}

static int
create(struct sl_named_connection *self, struct sl_rpc *rpc, const char *endpoint,
       const struct sl_registration_config *config, const void *identity,
       const struct sl_connection_listener *listener,
       int (*generate)(void *ctx, struct sl_leader_link *link, uint64_t sequence, uint32_t *method,
                       struct sl_buf *body))
{
    struct sl_leader_link_ops ops = {generate, on_established, on_closing, on_failure, self};
    self->identity = identity;
    self->listener = *listener;
    return sl_leader_link_create(&self->link, rpc, endpoint, config, &ops);
}

static int
generate_supervisor(void *ctx, struct sl_leader_link *link, uint64_t sequence, uint32_t *method,
                    struct sl_buf *body)
{
    const struct sl_named_connection *self = ctx;
    struct sl_register_supervisor message = *(const struct sl_register_supervisor *)self->identity;
    (void)link;
    message.attempt = sequence;
    *method = SL_RM_REGISTER_SUPERVISOR;
    sl_register_supervisor_encode(&message, body);
    return 0;
}

int
sl_connection_supervisor_to_rm(struct sl_named_connection *self, struct sl_rpc *rpc,
                               const struct sl_registration_config *config,
                               const struct sl_register_supervisor *identity,
                               const struct sl_connection_listener *listener)
{
    return create(self, rpc, SL_ENDPOINT_RESOURCE_MANAGER, config, identity, listener,
                  generate_supervisor);
}

static int
generate_master(void *ctx, struct sl_leader_link *link, uint64_t sequence, uint32_t *method,
                struct sl_buf *body)
{
    const struct sl_named_connection *self = ctx;
    struct sl_register_topology_master message =
        *(const struct sl_register_topology_master *)self->identity;
    (void)link;
    message.attempt = sequence;
    *method = SL_RM_REGISTER_TOPOLOGY_MASTER;
    sl_register_topology_master_encode(&message, body);
    return 0;
}

int
sl_connection_master_to_rm(struct sl_named_connection *self, struct sl_rpc *rpc,
                           const struct sl_registration_config *config,
                           const struct sl_register_topology_master *identity,
                           const struct sl_connection_listener *listener)
{
    return create(self, rpc, SL_ENDPOINT_RESOURCE_MANAGER, config, identity, listener,
                  generate_master);
}

static void
encode_peer(const struct sl_named_connection *self, uint64_t sequence, struct sl_buf *body)
{
    struct sl_register_peer message = *(const struct sl_register_peer *)self->identity;
    message.attempt = sequence;
    sl_register_peer_encode(&message, body);
}

static int
generate_supervisor_peer(void *ctx, struct sl_leader_link *link, uint64_t sequence,
                         uint32_t *method, struct sl_buf *body)
{
    (void)link;
    *method = SL_TM_REGISTER_SUPERVISOR;
    encode_peer(ctx, sequence, body);
    return 0;
}

static int
generate_worker_peer(void *ctx, struct sl_leader_link *link, uint64_t sequence, uint32_t *method,
                     struct sl_buf *body)
{
    (void)link;
    *method = SL_TM_REGISTER_WORKER;
    encode_peer(ctx, sequence, body);
    return 0;
}

static int
create_peer(struct sl_named_connection *self, struct sl_rpc *rpc, const char *prefix,
            const struct sl_registration_config *config, const struct sl_register_peer *identity,
            const struct sl_connection_listener *listener,
            int (*generate)(void *ctx, struct sl_leader_link *link, uint64_t sequence,
                            uint32_t *method, struct sl_buf *body))
{
    char endpoint[SL_RPC_NAME_MAX + 1];
    snprintf(endpoint, sizeof(endpoint), "%s%.64s", prefix, identity->topology);
    return create(self, rpc, endpoint, config, identity, listener, generate);
}

int
sl_connection_supervisor_to_master(struct sl_named_connection *self, struct sl_rpc *rpc,
                                   const struct sl_registration_config *config,
                                   const struct sl_register_peer *identity,
                                   const struct sl_connection_listener *listener)
{
    return create_peer(self, rpc, SL_ENDPOINT_TOPOLOGY_SLOTS, config, identity, listener,
                       generate_supervisor_peer);
}

int
sl_connection_worker_to_master(struct sl_named_connection *self, struct sl_rpc *rpc,
                               const struct sl_registration_config *config,
                               const struct sl_register_peer *identity,
                               const struct sl_connection_listener *listener)
{
    return create_peer(self, rpc, SL_ENDPOINT_TOPOLOGY_MASTER, config, identity, listener,
                       generate_worker_peer);
}

void
sl_connection_destroy(struct sl_named_connection *self)
{
    sl_leader_link_destroy(&self->link);
}

void
sl_connection_say_goodbye(struct sl_rpc_gateway *gateway, uint32_t method,
                          const struct sl_disconnect *message)
{
    struct sl_buf body = {0};
    sl_disconnect_encode(message, &body);
    sl_rpc_send(gateway, method, body.data, body.size);
    sl_buf_destroy(&body);
}
