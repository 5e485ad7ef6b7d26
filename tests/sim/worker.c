#include "cluster/worker_registration.h"
#include "sim.h"

/* A worker: it registers at its topology master, and again with every new one. It ends when its
 * supervisor ends it. */

struct worker {
    struct proc *proc;
    char topology[16];
    char supervisor[16];
    struct sl_register_peer identity;
    struct sl_worker_registration *registration;
    struct sl_leader_retrieval *retrieval;
};

static void
on_registered(void *ctx, uint64_t token)
{
    struct worker *self = ctx;
    self->proc->world->is_changed = true;
    proc_trace(self->proc, "is registered in term %llu", (unsigned long long)token);
}

static void
on_stale_leader(void *ctx)
{
    struct worker *self = ctx;
    proc_trace(self->proc, "knows an old leader");
    sl_leader_retrieval_look_again(self->retrieval);
}

/* Its supervisor will end it: until then it asks again. */
static void
on_rejected(void *ctx, const char *reason)
{
    struct worker *self = ctx;
    proc_trace(self->proc, "can not register: %s", reason);
    sl_leader_retrieval_look_again(self->retrieval);
}

static void *
start(struct proc *proc)
{
    struct worker *self = sl_calloc(1, sizeof(*self));
    struct sl_worker_registration_options options = {
        .rpc = proc->rpc,
        .identity = &self->identity,
        .registration = registration_config,
        .heartbeat = heartbeat_config,
        .on_registered = on_registered,
        .on_stale_leader = on_stale_leader,
        .on_rejected = on_rejected,
        .ctx = self,
    };
    char path[32];
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
    int rc = sl_worker_registration_new(&options, &self->registration);
    sl_assert_eq(rc, 0);
    net_meddle(proc, SL_ENDPOINT_WORKER);
    snprintf(path, sizeof(path), "/topologies/%s", self->topology);
    self->retrieval = sl_leader_retrieval_new(proc->store, proc->loop, path,
                                              sl_worker_registration_leader, self->registration);
    return self;
}

static void
stop(void *role)
{
    struct worker *self = role;
    sl_leader_retrieval_free(self->retrieval);
    sl_worker_registration_free(self->registration);
    sl_free(self);
}

static void
check(void *role)
{
    (void)role;
}

const struct role worker_role = {"worker", start, stop, check};
