#include "cluster/supervisor_slots.h"
#include "sim.h"

/* A supervisor: its slots and links, the watches on their leaders, and a worker in every slot that
 * is active. */

/* What runs in a slot. */
struct running {
    struct supervisor *supervisor;
    uint64_t allocation;
    uint32_t port;
    struct sl_process *process;
};

struct supervisor {
    struct proc *proc;
    struct sl_register_supervisor identity;
    struct sl_supervisor_slots *slots;
    struct sl_leader_retrieval *master;
    struct sl_topology_leaders topologies;
    struct running *running[PORTS];
    struct sl_timer restart;
};

/*
 * Leaders
 */

static void
on_master_leader(void *ctx, const char *address, uint64_t token)
{
    struct supervisor *self = ctx;
    self->proc->world->is_changed = true;
    sl_supervisor_slots_rm_leader(self->slots, address, token);
}

static void
on_topology_leader(void *ctx, const char *topology, const char *address, uint64_t token)
{
    struct supervisor *self = ctx;
    self->proc->world->is_changed = true;
    sl_supervisor_slots_topology_leader(self->slots, topology, address, token);
}

static void
on_stale_leader(void *ctx, const char *topology)
{
    struct supervisor *self = ctx;
    proc_trace(self->proc, "knows an old leader of %s",
               topology != NULL ? topology : "the cluster");
    if (topology == NULL) {
        sl_leader_retrieval_look_again(self->master);
    } else {
        sl_topology_leaders_look_again(&self->topologies, topology);
    }
}

/*
 * Workers
 */

static void restart_workers(void *ctx, uint64_t ticket);

static void
worker_exited(void *ctx, const struct sl_process_exit *exit)
{
    struct running *running = ctx;
    struct supervisor *self = running->supervisor;
    uint64_t allocation = running->allocation;
    (void)exit;
    self->proc->world->is_changed = true;
    self->running[running->port - FIRST_PORT] = NULL;
    sl_process_free(running->process);
    sl_free(running);
    sl_supervisor_slots_task_ended(self->slots, allocation);
    sl_timer_start(self->proc->loop, &self->restart, 100, restart_workers, self);
}

static void
start_worker(struct supervisor *self, const char *topology, uint32_t number, uint64_t allocation)
{
    struct running **at = &self->running[number - FIRST_PORT];
    char port[16];
    char id[24];
    if (*at != NULL || !sl_supervisor_slots_task_started(self->slots, allocation)) {
        return;
    }
    struct running *running = sl_calloc(1, sizeof(*running));
    running->supervisor = self;
    running->allocation = allocation;
    running->port = number;
    snprintf(port, sizeof(port), "%u", number);
    snprintf(id, sizeof(id), "%llx", (unsigned long long)allocation);
    const char *argv[] = {"worker", topology, self->proc->name, port, id, NULL};
    struct sl_process_options options = {
        .argv = argv, .stdio = {-1, -1, -1}, .on_exit = worker_exited, .ctx = running};
    *at = running;
    int rc = sl_process_spawn(self->proc->loop, &options, &running->process);
    sl_assert_eq(rc, 0);
}

static void
on_slot_active(void *ctx, const char *topology, uint32_t port, uint64_t allocation)
{
    start_worker(ctx, topology, port, allocation);
}

/* What ended in a slot that is still active is started again. */
static void
restart_workers(void *ctx, uint64_t ticket)
{
    struct supervisor *self = ctx;
    const struct sl_slot_table *table = sl_supervisor_slots_table(self->slots);
    (void)ticket;
    for (size_t i = 0; i < table->count; i++) {
        const struct sl_held_slot *slot = &table->slots[i];
        if (slot->state == SL_HELD_ACTIVE) {
            start_worker(self, slot->topology, slot->port, slot->allocation);
        }
    }
}

static void
stop_tasks(void *ctx, uint64_t allocation, uint32_t port, const char *cause)
{
    struct supervisor *self = ctx;
    const struct running *running = self->running[port - FIRST_PORT];
    proc_trace(self->proc, "ends what runs in slot %u (%llx): %s", port,
               (unsigned long long)allocation, cause);
    sl_assert(running != NULL && running->allocation == allocation);
    sl_process_kill(running->process, 9);
}

static void
on_fatal(void *ctx, const char *reason)
{
    struct supervisor *self = ctx;
    proc_trace(self->proc, "can not go on: %s", reason);
    self->proc->wants_exit = true;
}

static void *
start(struct proc *proc)
{
    struct supervisor *self = sl_calloc(1, sizeof(*self));
    struct sl_profile profile = sl_profile_set(1, 1e9, 0);
    uint32_t ports[PORTS];
    struct sl_supervisor_slots_options options = {
        .rpc = proc->rpc,
        .identity = &self->identity,
        .ports = ports,
        .port_count = PORTS,
        .registration = registration_config,
        .heartbeat = heartbeat_config,
        .slot_timeout_ms = SLOT_TIMEOUT_MS,
        .registration_timeout_ms = REGISTRATION_MS,
        .watch = sl_topology_leaders_watch(&self->topologies),
        .on_stale_leader = on_stale_leader,
        .on_slot_active = on_slot_active,
        .stop_tasks = stop_tasks,
        .on_fatal = on_fatal,
        .ctx = self,
    };
    for (uint32_t i = 0; i < PORTS; i++) {
        ports[i] = FIRST_PORT + i;
    }
    self->proc = proc;
    sl_topology_leaders_create(&self->topologies, proc->store, proc->loop, "/topologies",
                               on_topology_leader, self);
    self->identity = (struct sl_register_supervisor){.address = sl_rpc_address(proc->rpc),
                                                     .resource = proc->name,
                                                     .process = proc->serial,
                                                     .data_port = 9000,
                                                     .hardware = {4, 8e9, "linux"},
                                                     .default_profile = profile,
                                                     .total_profile = profile};
    int rc = sl_supervisor_slots_new(&options, &self->slots);
    sl_assert_eq(rc, 0);
    net_meddle(proc, SL_ENDPOINT_SUPERVISOR);
    self->master =
        sl_leader_retrieval_new(proc->store, proc->loop, "/master", on_master_leader, self);
    return self;
}

static void
stop(void *role)
{
    struct supervisor *self = role;
    sl_timer_stop(&self->restart);
    sl_leader_retrieval_free(self->master);
    sl_supervisor_slots_free(self->slots);
    sl_topology_leaders_destroy(&self->topologies);
    for (int i = 0; i < PORTS; i++) {
        if (self->running[i] != NULL) {
            sl_process_free(self->running[i]->process);
            sl_free(self->running[i]);
        }
    }
    sl_free(self);
}

/* Slots that are free have no allocation, those that are not have one each, and what runs in a slot
 * is what it was given to. */
static void
check(void *role)
{
    const struct supervisor *self = role;
    const struct sl_slot_table *table = sl_supervisor_slots_table(self->slots);
    struct world *world = self->proc->world;
    size_t held = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct sl_held_slot *slot = &table->slots[i];
        const struct running *running = self->running[i];
        bool is_free = slot->state == SL_HELD_FREE;
        held += !is_free;
        if (is_free != (slot->allocation == 0) ||
            (!is_free && sl_slot_table_find(table, slot->allocation) != slot)) {
            world_fail(world, "slot %u of %s is in state %d and has allocation %llx", slot->port,
                       self->proc->name, (int)slot->state, (unsigned long long)slot->allocation);
        }
        if ((running != NULL) != (slot->tasks > 0) ||
            (running != NULL && running->allocation != slot->allocation)) {
            world_fail(world, "slot %u of %s has %u tasks and runs %llx for %llx", slot->port,
                       self->proc->name, slot->tasks,
                       running != NULL ? (unsigned long long)running->allocation : 0,
                       (unsigned long long)slot->allocation);
        }
    }
    if (held != table->by_allocation.count) {
        world_fail(world, "%s has %zu slots in use and %zu allocations", self->proc->name, held,
                   table->by_allocation.count);
    }
}

const struct role supervisor_role = {"supervisor", start, stop, check};

const struct sl_slot_table *
supervisor_table(const struct proc *proc)
{
    return sl_supervisor_slots_table(((const struct supervisor *)proc->role)->slots);
}

uint64_t
supervisor_instance(const struct proc *proc)
{
    return sl_supervisor_slots_instance(((const struct supervisor *)proc->role)->slots);
}
