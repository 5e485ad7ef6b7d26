#include "cluster/worker_registration.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"

struct sl_worker_registration {
    struct sl_worker_registration_options options;
    struct sl_rpc_endpoint endpoint;
    struct sl_named_connection connection;
    struct sl_heartbeats heartbeats;
    /* Name of the topology master while registered, else "". */
    char master[SL_NAME_MAX + 1];
};

static void
on_registered(void *ctx, struct sl_leader_link *link, const struct sl_registered *answer)
{
    struct sl_worker_registration *self = ctx;
    snprintf(self->master, sizeof(self->master), "%s", answer->resource);
    sl_heartbeats_unmonitor(&self->heartbeats, self->master);
    sl_heartbeats_monitor(&self->heartbeats, self->master, NULL);
    sl_log_info("cluster", "registered topology=%s master=%s", self->options.identity->topology,
                self->master);
    if (self->options.on_registered != NULL) {
        self->options.on_registered(self->options.ctx, link->token);
    }
}

static void
on_closing(void *ctx, struct sl_leader_link *link, const char *cause)
{
    struct sl_worker_registration *self = ctx;
    (void)link;
    sl_heartbeats_unmonitor(&self->heartbeats, self->master);
    self->master[0] = '\0';
    if (self->options.on_lost != NULL) {
        self->options.on_lost(self->options.ctx, cause);
    }
}

static void
on_failure(void *ctx, struct sl_leader_link *link, enum sl_registration_end kind, int code,
           const char *reason)
{
    struct sl_worker_registration *self = ctx;
    (void)link;
    (void)code;
    if (kind == SL_REGISTRATION_STALE) {
        self->options.on_stale_leader(self->options.ctx);
    } else {
        self->options.on_rejected(self->options.ctx, reason);
    }
}

static void
on_heartbeat_timeout(void *ctx, const char *id)
{
    struct sl_worker_registration *self = ctx;
    char cause[SL_NAME_MAX + 64];
    snprintf(cause, sizeof(cause), "no heartbeat of topology master %s", id);
    sl_leader_link_reconnect(&self->connection.link, cause);
}

static void
make_payload(void *ctx, const char *id, struct sl_buf *out)
{
    struct sl_worker_registration *self = ctx;
    (void)id;
    if (self->options.make_payload != NULL) {
        self->options.make_payload(self->options.ctx, out);
    }
}

static void
handle_heartbeat(void *ctx, struct sl_rpc_request *request)
{
    struct sl_worker_registration *self = ctx;
    sl_peer_answer_heartbeat(&self->heartbeats, self->options.identity->resource, request);
}

static void
handle_disconnect(void *ctx, struct sl_rpc_request *request)
{
    struct sl_worker_registration *self = ctx;
    const struct sl_leader_link *link = &self->connection.link;
    struct sl_disconnect message;
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 64 * 1024);
    if (sl_peer_read_disconnect(request, &arena, &message)) {
        /* A word of an old term is about a registration that is over. */
        if (link->is_established && link->token == message.token) {
            sl_leader_link_reconnect(&self->connection.link, message.cause);
        }
        sl_rpc_reply(request, NULL, 0);
    }
    sl_arena_destroy(&arena);
}

static void
handle_other(void *ctx, struct sl_rpc_request *request)
{
    struct sl_worker_registration *self = ctx;
    if (self->options.handle == NULL) {
        sl_rpc_refuse(request, SL_RPC_ERROR, SL_EPROTO, "this worker runs no plans");
        return;
    }
    self->options.handle(self->options.ctx, request);
}

static const struct sl_rpc_method methods[] = {
    {SL_WORKER_HEARTBEAT, handle_heartbeat}, {SL_WORKER_DISCONNECT, handle_disconnect},
    {SL_WORKER_PLAN, handle_other},          {SL_WORKER_SPOUTS, handle_other},
    {SL_WORKER_DRAIN, handle_other},         {SL_WORKER_MEASURE, handle_other},
    {SL_WORKER_MOVE, handle_other},          {SL_WORKER_MOVED, handle_other},
    {SL_WORKER_SHUTDOWN, handle_other},
};

int
sl_worker_registration_new(const struct sl_worker_registration_options *options,
                           struct sl_worker_registration **out)
{
    struct sl_worker_registration *self = sl_calloc(1, sizeof(*self));
    struct sl_connection_listener listener = {on_registered, on_closing, on_failure, self};
    struct sl_heartbeat_listener beats = {
        .on_timeout = on_heartbeat_timeout, .make_payload = make_payload, .ctx = self};
    struct sl_rpc_endpoint_options endpoint = {.name = SL_ENDPOINT_WORKER,
                                               .methods = methods,
                                               .method_count = sizeof(methods) / sizeof(methods[0]),
                                               .ctx = self};
    self->options = *options;
    int rc = sl_connection_worker_to_master(&self->connection, options->rpc, &options->registration,
                                            options->identity, &listener);
    if (rc == 0) {
        rc = sl_heartbeats_create(&self->heartbeats, sl_rpc_loop(options->rpc), false,
                                  &options->heartbeat, &beats);
    }
    if (rc != 0) {
        goto fail;
    }
    rc = sl_rpc_endpoint_start(options->rpc, &self->endpoint, &endpoint);
    if (rc != 0) {
        sl_heartbeats_destroy(&self->heartbeats);
        goto fail;
    }
    *out = self;
    return 0;
fail:
    sl_free(self);
    return rc;
}

void
sl_worker_registration_free(struct sl_worker_registration *self)
{
    if (self == NULL) {
        return;
    }
    sl_connection_destroy(&self->connection);
    sl_rpc_endpoint_stop(&self->endpoint);
    sl_heartbeats_destroy(&self->heartbeats);
    sl_free(self);
}

void
sl_worker_registration_leader(void *worker, const char *address, uint64_t token)
{
    struct sl_worker_registration *self = worker;
    sl_leader_link_notify_new_leader(&self->connection.link, address, token);
}

struct sl_rpc_gateway *
sl_worker_registration_gateway(const struct sl_worker_registration *self)
{
    return sl_leader_link_gateway(&self->connection.link);
}
