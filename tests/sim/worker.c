#include "sim.h"

/* A worker: it registers at its topology master, and again with every new one. It ends when its
 * supervisor ends it. */

struct worker {
    struct proc *proc;
    char topology[16];
    char supervisor[16];
    struct sl_state_leader_listener *listener;
    struct sl_named_connection connection;
    struct sl_register_peer identity;
    char master[32];
    struct sl_heartbeats heartbeats;
    struct sl_timer relook;
    struct sl_rpc_endpoint endpoint;
};

static void find_leader(struct worker *self);

static void
registered(void *ctx, struct sl_leader_link *link, const struct sl_registered *answer)
{
    struct worker *self = ctx;
    (void)link;
    self->proc->world->is_changed = true;
    snprintf(self->master, sizeof(self->master), "%s", answer->resource);
    sl_heartbeats_unmonitor(&self->heartbeats, self->master);
    sl_heartbeats_monitor(&self->heartbeats, self->master, NULL);
    proc_trace(self->proc, "is registered at %s", self->master);
}

static void
closing(void *ctx, struct sl_leader_link *link, const char *cause)
{
    struct worker *self = ctx;
    (void)link;
    (void)cause;
    sl_heartbeats_unmonitor(&self->heartbeats, self->master);
    self->master[0] = '\0';
}

static void
relook(void *ctx, uint64_t ticket)
{
    (void)ticket;
    find_leader(ctx);
}

static void
failed(void *ctx, struct sl_leader_link *link, enum sl_registration_end kind, int code,
       const char *reason)
{
    struct worker *self = ctx;
    (void)link;
    (void)code;
    proc_trace(self->proc, "can not register: %d %s", (int)kind, reason);
    sl_timer_start(self->proc->loop, &self->relook, RETRY_MS, relook, self);
}

static void
leader(void *ctx, const struct sl_state_leader_info *info)
{
    struct worker *self = ctx;
    sl_leader_link_notify_new_leader(&self->connection.link, info != NULL ? info->address : NULL,
                                     info != NULL ? info->token : 0);
}

static void
find_leader(struct worker *self)
{
    char path[32];
    snprintf(path, sizeof(path), "/topologies/%s", self->topology);
    sl_state_leader_listener_free(self->listener);
    self->listener = sl_state_leader_listener_new(self->proc->store, path, leader, self);
}

static void
master_dead(void *ctx, const char *id)
{
    struct worker *self = ctx;
    (void)id;
    sl_leader_link_reconnect(&self->connection.link, "no heartbeat of the topology master");
}

static void
on_beat(void *ctx, struct sl_rpc_request *request)
{
    struct worker *self = ctx;
    sl_peer_answer_heartbeat(&self->heartbeats, self->proc->name, request);
}

static void
on_disconnect(void *ctx, struct sl_rpc_request *request)
{
    struct worker *self = ctx;
    struct sl_arena arena;
    struct sl_disconnect goodbye;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_create(&arena, 0, 0);
    if (sl_disconnect_decode(body, size, &arena, &goodbye) == 0 &&
        self->connection.link.is_established && goodbye.token == self->connection.link.token) {
        sl_leader_link_reconnect(&self->connection.link, goodbye.cause);
    }
    sl_rpc_reply(request, NULL, 0);
    sl_arena_destroy(&arena);
}

static const struct sl_rpc_method methods[] = {
    {SL_WORKER_HEARTBEAT, on_beat},
    {SL_WORKER_DISCONNECT, on_disconnect},
};

static void *
start(struct proc *proc)
{
    struct worker *self = sl_calloc(1, sizeof(*self));
    struct sl_connection_listener listener = {registered, closing, failed, self};
    struct sl_heartbeat_listener heartbeats = {.on_timeout = master_dead, .ctx = self};
    self->proc = proc;
    snprintf(self->topology, sizeof(self->topology), "t%d", proc->topology);
    snprintf(self->supervisor, sizeof(self->supervisor), "s%d", proc->index);
    self->identity = (struct sl_register_peer){.topology = self->topology,
                                               .address = sl_rpc_address(proc->rpc),
                                               .resource = proc->name,
                                               .process = proc->serial,
                                               .supervisor = self->supervisor,
                                               .port = proc->port,
                                               .data_address = sl_rpc_address(proc->rpc)};
    sl_heartbeats_create(&self->heartbeats, proc->loop, false, &heartbeat_config, &heartbeats);
    struct sl_rpc_endpoint_options endpoint = {
        .name = SL_ENDPOINT_WORKER, .methods = methods, .method_count = 2, .ctx = self};
    int rc = sl_rpc_endpoint_start(proc->rpc, &self->endpoint, &endpoint);
    sl_assert_eq(rc, 0);
    net_meddle(proc, SL_ENDPOINT_WORKER);
    rc = sl_connection_worker_to_master(&self->connection, proc->rpc, &registration_config,
                                        &self->identity, &listener);
    sl_assert_eq(rc, 0);
    find_leader(self);
    return self;
}

static void
stop(void *role)
{
    struct worker *self = role;
    sl_state_leader_listener_free(self->listener);
    sl_timer_stop(&self->relook);
    sl_connection_destroy(&self->connection);
    sl_rpc_endpoint_stop(&self->endpoint);
    sl_heartbeats_destroy(&self->heartbeats);
    sl_free(self);
}

static void
check(void *role)
{
    (void)role;
}

const struct role worker_role = {"worker", start, stop, check};
