#include "sim.h"

#include "state/tree.h"
#include "state/value_codec.h"

/* What must hold after every event that changed something, and what must hold at the end. */

void
check_granted(struct proc *proc, uint64_t token)
{
    struct world *world = proc->world;
    uint64_t place = proc->kind == MASTER ? TOPOLOGIES : (uint64_t)proc->index % TOPOLOGIES;
    uint64_t key = token * (TOPOLOGIES + 1) + place;
    uint64_t known;
    proc_trace(proc, "is granted term %llu", (unsigned long long)token);
    if (token == 0) {
        world_fail(world, "%s is granted a term without a token", proc->name);
    }
    if (sl_map_u64_get(&world->terms, key, &known) && known != proc->serial) {
        world_fail(world, "%s is granted term %llu, which was another's", proc->name,
                   (unsigned long long)token);
    }
    sl_map_u64_put(&world->terms, key, proc->serial);
}

/* The value of a node, out of its envelope. */
static bool
node_value(const struct sl_tree_node *node, struct sl_arena *arena,
           struct sl_state_envelope *envelope)
{
    return node != NULL && sl_state_envelope_decode(node->data, node->size, arena, envelope) == 0;
}

static void
check_operation(struct world *world, const struct sl_state_envelope *envelope, uint64_t *token,
                uint64_t *count)
{
    uint64_t operation;
    uint64_t outcome = OUTCOME_OPEN;
    if (!operation_decode(envelope->value, envelope->size, &operation, token, count) ||
        operation == 0) {
        return;
    }
    sl_map_u64_put(&world->applied, operation, 1);
    sl_map_u64_get(&world->outcomes, operation, &outcome);
    if (outcome == OUTCOME_REFUSED) {
        world_fail(world, "operation %llu was told to be refused and is carried out",
                   (unsigned long long)operation);
    }
}

/* Each change of a plan counts one on, under a token that is not older than the last one's. */
static void
check_plan(struct world *world, int topology)
{
    char path[24];
    struct sl_arena arena;
    struct sl_state_envelope envelope;
    uint64_t token = 0;
    uint64_t count = 0;
    snprintf(path, sizeof(path), "/plans/t%d", topology);
    const struct sl_tree_node *node = sl_tree_find(sl_memory_server_tree(world->server), path);
    if (node == NULL || node->modified_zxid == world->seen_plan_zxid[topology]) {
        return;
    }
    sl_arena_create(&arena, 0, 0);
    if (node_value(node, &arena, &envelope)) {
        check_operation(world, &envelope, &token, &count);
        if (token < world->seen_plan_token[topology]) {
            world_fail(world, "the plan of t%d is written with token %llu after %llu", topology,
                       (unsigned long long)token,
                       (unsigned long long)world->seen_plan_token[topology]);
        }
        if (world->seen_plan_zxid[topology] != 0 && count != world->seen_plan_count[topology] + 1) {
            world_fail(world, "the plan of t%d goes from change %llu to %llu", topology,
                       (unsigned long long)world->seen_plan_count[topology],
                       (unsigned long long)count);
        }
        world->seen_plan_token[topology] = token;
        world->seen_plan_count[topology] = count;
    } else {
        world_fail(world, "the plan of t%d is not readable", topology);
    }
    world->seen_plan_zxid[topology] = node->modified_zxid;
    sl_arena_destroy(&arena);
}

static void
check_journal(struct world *world)
{
    struct sl_arena arena;
    struct sl_state_envelope envelope;
    uint64_t token = 0;
    uint64_t count = 0;
    sl_arena_create(&arena, 0, 0);
    if (node_value(sl_tree_find(sl_memory_server_tree(world->server), "/journal"), &arena,
                   &envelope)) {
        check_operation(world, &envelope, &token, &count);
        if (token < world->seen_journal) {
            world_fail(world, "a leader with token %llu acts after one with %llu",
                       (unsigned long long)token, (unsigned long long)world->seen_journal);
        }
        world->seen_journal = token;
    }
    sl_arena_destroy(&arena);
}

/* Tokens of the leaders that are published at one place only grow. */
static void
check_leader(struct world *world, const char *path, uint64_t *seen)
{
    struct sl_arena arena;
    struct sl_state_envelope envelope;
    struct sl_state_leader_info info;
    sl_arena_create(&arena, 0, 0);
    if (node_value(sl_tree_find(sl_memory_server_tree(world->server), path), &arena, &envelope) &&
        sl_state_leader_info_decode(envelope.value, envelope.size, &info) == 0) {
        if (info.token < *seen) {
            world_fail(world, "%s of term %llu is published at %s after term %llu", info.id,
                       (unsigned long long)info.token, path, (unsigned long long)*seen);
        }
        *seen = info.token;
    }
    sl_arena_destroy(&arena);
}

static void
check_store(struct world *world)
{
    size_t nodes = sl_memory_server_tree(world->server)->nodes.count;
    if (nodes > NODES_MAX) {
        world_fail(world, "the store fills up: %zu nodes", nodes);
    }
    check_journal(world);
    check_leader(world, "/master/leader", &world->seen_leader[TOPOLOGIES]);
    for (int i = 0; i < TOPOLOGIES; i++) {
        char path[32];
        snprintf(path, sizeof(path), "/topologies/t%d/leader", i);
        check_leader(world, path, &world->seen_leader[i]);
        check_plan(world, i);
    }
}

/* Who holds each lock with a token that the store still honours. */
struct holders {
    const struct proc *locks[TOPOLOGIES];
    const struct proc *safe[TOPOLOGIES];
    const struct proc *master;
    const struct proc *leaders[TOPOLOGIES];
};

static void
count_holder(struct world *world, const struct proc *proc, const struct planner *planner,
             int topology, struct holders *holders)
{
    const struct sl_state_lock *lock = planner_lock(planner);
    if (lock == NULL || !sl_state_lock_is_held(lock)) {
        return;
    }
    const struct sl_tree_node *node =
        sl_tree_find(sl_memory_server_tree(world->server), sl_state_lock_node(lock));
    if (node != NULL) {
        if (holders->locks[topology] != NULL) {
            world_fail(world, "%s and %s both hold the lock of t%d with valid tokens", proc->name,
                       holders->locks[topology]->name, topology);
        }
        holders->locks[topology] = proc;
    }
    if (sl_state_store_is_safe(proc->store)) {
        if (holders->safe[topology] != NULL && !world->has_expired) {
            world_fail(world, "%s and %s both count on the lock of t%d", proc->name,
                       holders->safe[topology]->name, topology);
        }
        holders->safe[topology] = proc;
    }
}

/* Two that count on their sessions never lead at the same place. */
static void
count_leader(struct world *world, const struct proc *proc, const struct proc **holder,
             const struct sl_state_election *election)
{
    if (sl_state_election_token(election) == 0 || !sl_state_store_is_safe(proc->store)) {
        return;
    }
    if (*holder != NULL && !world->has_expired) {
        world_fail(world, "%s and %s both count on leading", proc->name, (*holder)->name);
    }
    *holder = proc;
}

static void
check_holders(struct world *world)
{
    struct holders holders = {0};
    sl_list_each(&world->procs, it)
    {
        const struct proc *proc = sl_container_of(it, struct proc, node);
        if (proc->is_dead) {
            continue;
        }
        if (proc->kind == CLIENT) {
            for (int i = 0; i < TOPOLOGIES; i++) {
                count_holder(world, proc, client_planner(proc, i), i, &holders);
            }
        } else if (proc->kind == TOPOLOGY_MASTER) {
            int topology = proc->index % TOPOLOGIES;
            count_holder(world, proc, topology_planner(proc), topology, &holders);
            count_leader(world, proc, &holders.leaders[topology], topology_election(proc));
        } else if (proc->kind == MASTER) {
            count_leader(world, proc, &holders.master, master_election(proc));
        }
    }
}

static struct proc *
supervisor_of(struct world *world, int index)
{
    return world->members[MASTERS + index].proc;
}

/* One process in a slot, and it is the one that the slot was given to. */
static void
check_workers(struct world *world)
{
    const struct proc *seen[SUPERVISORS][PORTS] = {0};
    sl_list_each(&world->procs, it)
    {
        const struct proc *worker = sl_container_of(it, struct proc, node);
        if (worker->kind != WORKER || worker->is_dead || worker->wants_exit) {
            continue;
        }
        const struct proc **at = &seen[worker->index][worker->port - FIRST_PORT];
        if (*at != NULL) {
            world_fail(world, "%s and %s run in the same slot", (*at)->name, worker->name);
        }
        *at = worker;
        const struct proc *supervisor = supervisor_of(world, worker->index);
        if (supervisor == NULL || supervisor->serial != worker->supervisor_serial) {
            world_fail(world, "%s runs without its supervisor", worker->name);
            continue;
        }
        const struct sl_held_slot *held =
            sl_slot_table_find(supervisor_table(supervisor), worker->allocation);
        if (held == NULL || held->port != worker->port) {
            world_fail(world, "%s runs in a slot that was given to another", worker->name);
        }
    }
}

/* Every call of a store ends in its time. */
static void
check_operations(struct world *world)
{
    uint64_t now = world_now(world);
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&world->open, &at)) != NULL;) {
        const struct proc *proc = proc_by_serial(world, entry->value >> 32);
        uint64_t start = entry->value & UINT32_MAX;
        if (proc != NULL && !proc->is_paused && now > start + STATE_MS && now > proc->resumed_ms) {
            world_fail(world, "operation %llu of %s did not end in its time",
                       (unsigned long long)entry->key, proc->name);
        }
    }
}

void
check_world(struct world *world)
{
    uint64_t zxid = sl_memory_server_tree(world->server)->zxid;
    if (zxid != world->last_zxid) {
        world->last_zxid = zxid;
        check_store(world);
    }
    sl_list_each(&world->procs, it)
    {
        struct proc *proc = sl_container_of(it, struct proc, node);
        if (!proc->is_dead) {
            proc->ops->check(proc->role);
        }
    }
    check_operations(world);
    ghosts_check(world);
    check_workers(world);
    check_holders(world);
}

/*
 * The order at the end
 */

static const struct proc *
find_master(struct world *world, struct master_view *view)
{
    const struct proc *leader = NULL;
    for (int i = 0; i < MASTERS; i++) {
        struct master_view other;
        const struct proc *proc = world->members[i].proc;
        if (proc != NULL && master_view(proc, &other)) {
            if (leader != NULL) {
                return NULL;
            }
            leader = proc;
            *view = other;
        }
    }
    return leader;
}

static const struct proc *
find_topology(struct world *world, int topology, struct topology_view *view)
{
    const struct proc *leader = NULL;
    for (int i = 0; i < TOPOLOGY_MASTERS; i++) {
        struct topology_view other;
        const struct proc *proc = world->members[MASTERS + SUPERVISORS + i].proc;
        if (i % TOPOLOGIES == topology && proc != NULL && topology_view(proc, &other)) {
            if (leader != NULL) {
                return NULL;
            }
            leader = proc;
            *view = other;
        }
    }
    return leader;
}

/* The resource manager believes of each slot what its supervisor knows. */
static const char *
check_slots(struct world *world, const struct master_view *view)
{
    size_t active = 0;
    for (int i = 0; i < SUPERVISORS; i++) {
        const struct proc *supervisor = supervisor_of(world, i);
        if (supervisor == NULL || supervisor_instance(supervisor) == 0 ||
            supervisor_instance(supervisor) !=
                sl_resource_manager_instance(view->manager, supervisor->name)) {
            return "a supervisor that is registered";
        }
        const struct sl_slot_table *table = supervisor_table(supervisor);
        for (size_t j = 0; j < table->count; j++) {
            const struct sl_held_slot *slot = &table->slots[j];
            uint64_t allocation = 0;
            int state = sl_slot_manager_slot_state(sl_resource_manager_slots(view->manager),
                                                   supervisor->name, slot->port, &allocation);
            int expected = slot->state == SL_HELD_FREE ? SL_SLOT_FREE : SL_SLOT_ALLOCATED;
            if (state != expected ||
                (state == SL_SLOT_ALLOCATED && allocation != slot->allocation)) {
                return "a slot of which the resource manager knows";
            }
            if (slot->state != SL_HELD_FREE && slot->state != SL_HELD_ACTIVE) {
                return "a slot that is active";
            }
            active += slot->state == SL_HELD_ACTIVE;
        }
    }
    return active == TOPOLOGIES * WORKERS ? NULL : "slots in use: not as many as are wanted";
}

static const struct proc *
find_worker(struct world *world, const char *supervisor, uint32_t port, uint64_t allocation)
{
    sl_list_each(&world->procs, it)
    {
        const struct proc *worker = sl_container_of(it, struct proc, node);
        if (worker->kind == WORKER && !worker->is_dead && worker->port == port &&
            worker->allocation == allocation && supervisor[1] - '0' == worker->index) {
            return worker;
        }
    }
    return NULL;
}

static const char *
check_topology(struct world *world, int topology)
{
    struct topology_view view = {0};
    const struct proc *leader = find_topology(world, topology, &view);
    if (leader == NULL) {
        return "the one master of a topology";
    }
    if (view.count != WORKERS || view.pool->slots.count != WORKERS) {
        return "a slot of a topology";
    }
    for (size_t i = 0; i < view.count; i++) {
        const struct proc *supervisor = supervisor_of(world, view.slots[i].supervisor[1] - '0');
        const struct sl_held_slot *held =
            sl_slot_table_find(supervisor_table(supervisor), view.slots[i].allocation);
        if (held == NULL || held->state != SL_HELD_ACTIVE || held->port != view.slots[i].port) {
            return "a slot that its supervisor gave";
        }
        const struct proc *worker = find_worker(world, view.slots[i].supervisor, view.slots[i].port,
                                                view.slots[i].allocation);
        if (worker == NULL || !topology_has_worker(leader, worker)) {
            return "a worker that is registered";
        }
    }
    return view.worker_count == WORKERS ? NULL : "the end of a worker that is gone";
}

const char *
check_converged(struct world *world)
{
    struct master_view view = {0};
    const struct proc *master = find_master(world, &view);
    if (master == NULL) {
        return "the one master";
    }
    const char *missing = check_slots(world, &view);
    for (int i = 0; missing == NULL && i < TOPOLOGIES; i++) {
        missing = check_topology(world, i);
    }
    return missing;
}
