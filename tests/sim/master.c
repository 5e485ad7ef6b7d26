#include "cluster/resource_manager.h"
#include "sim.h"

/* A master candidate: the election, and the resource manager that works while it leads. */

struct master {
    struct proc *proc;
    struct sl_state_election *election;
    struct sl_resource_manager *manager;
    uint64_t token;
    struct sl_topology_leaders topologies;
    struct sl_timer act;
};

static void
on_topology_leader(void *ctx, const char *topology, const char *address, uint64_t token)
{
    struct master *master = ctx;
    (void)address;
    master->proc->world->is_changed = true;
    sl_resource_manager_topology_leader(master->manager, topology, token);
}

static void
on_fatal(void *ctx, const char *reason)
{
    struct master *master = ctx;
    proc_trace(master->proc, "can not go on: %s", reason);
    master->proc->wants_exit = true;
}

/* A write of the journal under way; it outlives the master. */
struct journal_entry {
    struct world *world;
    uint64_t operation;
};

static void
journal_written(void *ctx, int status, const struct sl_state_result *result)
{
    struct journal_entry *entry = ctx;
    (void)result;
    operation_end(entry->world, entry->operation, status);
    sl_free(entry);
}

/* A leader's act in the store: only the present one's may happen. */
static void
act(void *ctx, uint64_t ticket)
{
    struct master *master = ctx;
    uint8_t value[OPERATION_BYTES];
    (void)ticket;
    sl_timer_start(master->proc->loop, &master->act,
                   200 + sl_random_below(sl_loop_random(master->proc->loop), 800), act, master);
    struct journal_entry *entry = sl_calloc(1, sizeof(*entry));
    entry->world = master->proc->world;
    entry->operation = operation_new(master->proc);
    operation_encode(value, entry->operation, master->token, 0);
    struct sl_state_op op = sl_state_op_set("/journal", value, sizeof(value), SL_STATE_ANY_VERSION);
    sl_state_election_commit(master->election, &op, 1, journal_written, entry);
}

static void
on_election(void *ctx, enum sl_state_election_event event, uint64_t token)
{
    struct master *master = ctx;
    master->proc->world->is_changed = true;
    if (event == SL_STATE_ELECTION_GRANTED) {
        check_granted(master->proc, token);
        master->token = token;
        sl_resource_manager_grant(master->manager, token);
        sl_timer_start(master->proc->loop, &master->act, 10, act, master);
    } else if (event == SL_STATE_ELECTION_REVOKED) {
        proc_trace(master->proc, "loses term %llu", (unsigned long long)token);
        master->token = 0;
        sl_timer_stop(&master->act);
        sl_resource_manager_revoke(master->manager);
    }
}

static void *
start(struct proc *proc)
{
    struct master *master = sl_calloc(1, sizeof(*master));
    struct sl_resource_manager_options options = {
        .rpc = proc->rpc,
        .resource = proc->name,
        .heartbeat = heartbeat_config,
        .slots = sl_slot_manager_config_default(),
        .topology_timeout_ms = 30000,
        .start_up_ms = 3000,
        .watch = sl_topology_leaders_watch(&master->topologies),
        .on_fatal = on_fatal,
        .ctx = master,
    };
    master->proc = proc;
    sl_topology_leaders_create(&master->topologies, proc->store, proc->loop, "/topologies",
                               on_topology_leader, master);
    options.slots.slots_per_supervisor = PORTS;
    options.slots.idle_timeout_ms = 0;
    options.slots.request_timeout_ms = POOL_REQUEST_MS;
    options.slots.is_spreading = proc->world->seed % 2 == 0;
    int rc = sl_resource_manager_new(&options, &master->manager);
    sl_assert_eq(rc, 0);
    net_meddle(proc, SL_ENDPOINT_RESOURCE_MANAGER);
    master->election = sl_state_election_new(proc->store, "/master", proc->name,
                                             sl_rpc_address(proc->rpc), on_election, master);
    return master;
}

static void
stop(void *role)
{
    struct master *master = role;
    sl_timer_stop(&master->act);
    sl_state_election_free(master->election);
    sl_resource_manager_free(master->manager);
    sl_topology_leaders_destroy(&master->topologies);
    sl_free(master);
}

static void
check(void *role)
{
    const struct master *master = role;
    sl_slot_manager_check_invariants(sl_resource_manager_slots(master->manager));
    if (master->token != master->proc->endpoint.endpoint->token) {
        world_fail(master->proc->world, "%s serves term %llu and leads in %llu", master->proc->name,
                   (unsigned long long)master->proc->endpoint.endpoint->token,
                   (unsigned long long)master->token);
    }
}

const struct role master_role = {"master", start, stop, check};

bool
master_view(const struct proc *proc, struct master_view *view)
{
    const struct master *master = proc->role;
    *view = (struct master_view){master->token, master->manager};
    return master->token != 0;
}

const struct sl_state_election *
master_election(const struct proc *proc)
{
    return ((const struct master *)proc->role)->election;
}
