#include "cluster/master_slots.h"
#include "sim.h"

/*
 * A topology master: elected for its topology, and in each term its slots. It wants a fixed number
 * of them for ever and asks anew whenever a request fails or a slot is lost. Odd topologies name
 * the slots they want, as a plan does, and choose others when they are refused.
 */

enum wish_state {
    WISH_PAUSED,
    WISH_OPEN,
    WISH_SERVED,
};

struct wish {
    struct topology_master *self;
    enum wish_state state;
    uint64_t request;
    uint64_t since_ms;
    char supervisor[32];
    uint32_t port;
    uint64_t allocation;
    struct sl_timer timer;
};

struct topology_master {
    struct proc *proc;
    int topology;
    char name[16];
    struct sl_state_election *election;

    /* Of the term; NULL: there is none. */
    struct sl_master_slots *slots;
    uint64_t token;
    struct wish wishes[WORKERS];
    uint64_t next_request;
    /* Name -> its process, of workers that are registered. */
    struct sl_map_bytes workers;
    struct sl_leader_retrieval *master;
    struct planner *planner;
};

/*
 * Slots
 */

/* A slot that is held and not used is taken before a new one is asked for. */
static bool
wish_take(struct wish *wish)
{
    struct sl_slot_pool *pool = sl_master_slots_pool(wish->self->slots);
    for (int i = 0; i < SUPERVISORS; i++) {
        char supervisor[16];
        struct sl_slot_status slots[PORTS];
        snprintf(supervisor, sizeof(supervisor), "s%d", i);
        size_t count = sl_slot_pool_report(pool, supervisor, slots, PORTS);
        for (size_t j = 0; j < count && j < PORTS; j++) {
            if (sl_slot_pool_allocate_available(pool, wish->request, slots[j].allocation)) {
                return true;
            }
        }
    }
    return false;
}

static void
wish_due(void *ctx, uint64_t ticket)
{
    struct wish *wish = ctx;
    struct topology_master *self = wish->self;
    struct sl_slot_wish message = {.profile = sl_profile_set(1, 1e9, 0)};
    struct sl_random *random = sl_loop_random(self->proc->loop);
    char supervisor[32];
    (void)ticket;
    self->proc->world->is_changed = true;
    wish->state = WISH_OPEN;
    wish->request = self->next_request++;
    wish->since_ms = sl_loop_now_ms(self->proc->loop);
    if (wish_take(wish)) {
        return;
    }
    if (self->topology % 2 == 1) {
        snprintf(supervisor, sizeof(supervisor), "s%d", (int)sl_random_below(random, SUPERVISORS));
        message.supervisor = supervisor;
        message.port = FIRST_PORT + (uint32_t)sl_random_below(random, PORTS);
    }
    sl_master_slots_request(self->slots, wish->request, &message);
}

static void
wish_later(struct wish *wish)
{
    wish->state = WISH_PAUSED;
    wish->request = 0;
    sl_timer_start(wish->self->proc->loop, &wish->timer,
                   50 + sl_random_below(sl_loop_random(wish->self->proc->loop), 300), wish_due,
                   wish);
}

static struct wish *
find_wish(struct topology_master *self, uint64_t request, enum wish_state state, const char *event)
{
    for (int i = 0; i < WORKERS; i++) {
        if (self->wishes[i].request == request && self->wishes[i].state == state) {
            return &self->wishes[i];
        }
    }
    world_fail(self->proc->world, "request %llu of %s %s, and is not open for that",
               (unsigned long long)request, self->proc->name, event);
    return NULL;
}

static void
on_slot(void *ctx, uint64_t request, uint64_t allocation, const char *supervisor, uint32_t port)
{
    struct topology_master *self = ctx;
    struct wish *wish = find_wish(self, request, WISH_OPEN, "is served");
    if (wish != NULL) {
        wish->state = WISH_SERVED;
        wish->allocation = allocation;
        wish->port = port;
        snprintf(wish->supervisor, sizeof(wish->supervisor), "%s", supervisor);
        proc_trace(self->proc, "has slot %s:%u (%llx)", supervisor, port,
                   (unsigned long long)allocation);
    }
}

static void
on_slot_failed(void *ctx, uint64_t request, enum sl_slot_failure kind, const char *reason)
{
    struct topology_master *self = ctx;
    struct wish *wish = find_wish(self, request, WISH_OPEN, "fails");
    (void)kind;
    if (wish != NULL) {
        proc_trace(self->proc, "gets no slot: %s", reason);
        wish_later(wish);
    }
}

static void
on_slot_lost(void *ctx, uint64_t request, uint64_t allocation, const char *cause)
{
    struct topology_master *self = ctx;
    struct wish *wish = find_wish(self, request, WISH_SERVED, "is lost");
    if (wish != NULL) {
        proc_trace(self->proc, "loses slot %s:%u (%llx): %s", wish->supervisor, wish->port,
                   (unsigned long long)allocation, cause);
        wish_later(wish);
    }
}

static void
on_worker(void *ctx, const struct sl_register_peer *worker)
{
    struct topology_master *self = ctx;
    self->proc->world->is_changed = true;
    sl_map_bytes_put_str(&self->workers, worker->resource, (void *)(uintptr_t)worker->process);
}

static void
on_worker_lost(void *ctx, const char *worker, const char *cause)
{
    struct topology_master *self = ctx;
    proc_trace(self->proc, "loses %s: %s", worker, cause);
    self->proc->world->is_changed = true;
    sl_map_bytes_remove_str(&self->workers, worker);
}

/*
 * Terms
 */

static void
on_master_leader(void *ctx, const char *address, uint64_t token)
{
    struct topology_master *self = ctx;
    self->proc->world->is_changed = true;
    sl_master_slots_rm_leader(self->slots, address, token);
}

static void
on_stale_leader(void *ctx)
{
    struct topology_master *self = ctx;
    proc_trace(self->proc, "knows an old leader of the cluster");
    sl_leader_retrieval_look_again(self->master);
}

static void
on_fatal(void *ctx, const char *reason)
{
    struct topology_master *self = ctx;
    proc_trace(self->proc, "can not go on: %s", reason);
    self->proc->wants_exit = true;
}

static void
begin_term(struct topology_master *self, uint64_t token)
{
    struct proc *proc = self->proc;
    char endpoint[40];
    struct sl_master_slots_options options = {
        .rpc = proc->rpc,
        .topology = self->name,
        .address = sl_rpc_address(proc->rpc),
        .resource = proc->name,
        .process = proc->serial,
        .token = token,
        .registration = registration_config,
        .heartbeat = heartbeat_config,
        .slot_request_timeout_ms = POOL_REQUEST_MS,
        .slot_idle_timeout_ms = POOL_IDLE_MS,
        .on_stale_leader = on_stale_leader,
        .on_fatal = on_fatal,
        .on_slot = on_slot,
        .on_slot_failed = on_slot_failed,
        .on_slot_lost = on_slot_lost,
        .on_worker = on_worker,
        .on_worker_lost = on_worker_lost,
        .ctx = self,
    };
    check_granted(proc, token);
    self->token = token;
    self->next_request = 1;
    int rc = sl_master_slots_new(&options, &self->slots);
    sl_assert_eq(rc, 0);
    snprintf(endpoint, sizeof(endpoint), SL_ENDPOINT_TOPOLOGY_MASTER "%s", self->name);
    net_meddle(proc, endpoint);
    self->master =
        sl_leader_retrieval_new(proc->store, proc->loop, "/master", on_master_leader, self);
    for (int i = 0; i < WORKERS; i++) {
        self->wishes[i] = (struct wish){.self = self};
        wish_later(&self->wishes[i]);
    }
    self->planner = planner_new(proc, self->topology);
}

static void
end_term(struct topology_master *self)
{
    if (self->slots == NULL) {
        return;
    }
    planner_free(self->planner);
    self->planner = NULL;
    sl_leader_retrieval_free(self->master);
    self->master = NULL;
    for (int i = 0; i < WORKERS; i++) {
        sl_timer_stop(&self->wishes[i].timer);
    }
    held_drop(self->proc);
    sl_master_slots_free(self->slots);
    self->slots = NULL;
    self->token = 0;
    sl_map_bytes_clear(&self->workers);
}

static void
on_election(void *ctx, enum sl_state_election_event event, uint64_t token)
{
    struct topology_master *self = ctx;
    self->proc->world->is_changed = true;
    if (event == SL_STATE_ELECTION_GRANTED) {
        begin_term(self, token);
    } else if (event == SL_STATE_ELECTION_REVOKED) {
        proc_trace(self->proc, "loses term %llu", (unsigned long long)token);
        end_term(self);
    }
}

static void *
start(struct proc *proc)
{
    struct topology_master *self = sl_calloc(1, sizeof(*self));
    char path[32];
    self->proc = proc;
    self->topology = proc->index % TOPOLOGIES;
    snprintf(self->name, sizeof(self->name), "t%d", self->topology);
    snprintf(path, sizeof(path), "/topologies/%s", self->name);
    self->election = sl_state_election_new(proc->store, path, proc->name, sl_rpc_address(proc->rpc),
                                           on_election, self);
    return self;
}

static void
stop(void *role)
{
    struct topology_master *self = role;
    end_term(self);
    sl_state_election_free(self->election);
    sl_map_bytes_destroy(&self->workers);
    sl_free(self);
}

/* Every request is open, served or about to be asked again, and the pool knows the same; none is
 * open for longer than its time. */
static void
check(void *role)
{
    const struct topology_master *self = role;
    struct world *world = self->proc->world;
    uint64_t now = world_now(world);
    size_t open = 0;
    size_t served = 0;
    if (self->slots == NULL) {
        return;
    }
    for (int i = 0; i < WORKERS; i++) {
        const struct wish *wish = &self->wishes[i];
        open += wish->state == WISH_OPEN;
        served += wish->state == WISH_SERVED;
        if (wish->state == WISH_OPEN && now > wish->since_ms + POOL_REQUEST_MS &&
            now > self->proc->resumed_ms && !self->proc->is_paused) {
            world_fail(world, "request %llu of %s is open since %llu ms",
                       (unsigned long long)wish->request, self->proc->name,
                       (unsigned long long)(now - wish->since_ms));
        }
        for (int j = 0; wish->state == WISH_SERVED && j < i; j++) {
            if (self->wishes[j].state == WISH_SERVED && self->wishes[j].port == wish->port &&
                strcmp(self->wishes[j].supervisor, wish->supervisor) == 0) {
                world_fail(world, "%s has slot %s:%u twice", self->proc->name, wish->supervisor,
                           wish->port);
            }
        }
    }
    const struct sl_slot_pool *pool = sl_master_slots_pool(self->slots);
    if (open != pool->requests.count || served != pool->served.count) {
        world_fail(world, "%s has %zu open and %zu served requests, its pool %zu and %zu",
                   self->proc->name, open, served, pool->requests.count, pool->served.count);
    }
    if (pool->slots.count != pool->served.count + pool->available_count ||
        pool->requests.count != pool->pending_count + pool->waiting_count) {
        world_fail(world, "the pool of %s lost count: %zu slots, %zu used, %zu free",
                   self->proc->name, pool->slots.count, pool->served.count, pool->available_count);
    }
}

const struct role topology_master_role = {"topology_master", start, stop, check};

bool
topology_view(const struct proc *proc, struct topology_view *view)
{
    const struct topology_master *self = proc->role;
    if (self->slots == NULL) {
        return false;
    }
    *view = (struct topology_view){.token = self->token,
                                   .pool = sl_master_slots_pool(self->slots),
                                   .worker_count = self->workers.count};
    for (int i = 0; i < WORKERS; i++) {
        const struct wish *wish = &self->wishes[i];
        if (wish->state == WISH_SERVED) {
            snprintf(view->slots[view->count].supervisor, sizeof(wish->supervisor), "%s",
                     wish->supervisor);
            view->slots[view->count].port = wish->port;
            view->slots[view->count].allocation = wish->allocation;
            view->count++;
        }
    }
    return true;
}

bool
topology_has_worker(const struct proc *proc, const struct proc *worker)
{
    const struct topology_master *self = proc->role;
    return (uintptr_t)sl_map_bytes_get_str(&self->workers, worker->name) == worker->serial;
}

const struct sl_state_election *
topology_election(const struct proc *proc)
{
    return ((const struct topology_master *)proc->role)->election;
}

const struct planner *
topology_planner(const struct proc *proc)
{
    return ((const struct topology_master *)proc->role)->planner;
}
