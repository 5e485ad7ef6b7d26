#include "sim.h"

/* Faults, drawn from the seed. Each run draws first which kinds it has and how often, so that some
 * runs are full of one kind and others of a mixture. */

enum fault {
    FAULT_CRASH,
    FAULT_PAUSE,
    FAULT_CUT,
    FAULT_ISOLATE,
    FAULT_RESET,
    FAULT_STORE_CUT,
    FAULT_STORE_DOWN,
    FAULT_STORE_BREAK,
    FAULT_EXPIRE,
    FAULT_CLOCK,
    FAULT_SWEEP,
    FAULT_RESTART,
    FAULT_WORKER,
    FAULT_COUNT,
};

enum undo_kind {
    UNDO_PAUSE,
    UNDO_CUT,
    UNDO_STORE_CUT,
    UNDO_STORE_DOWN,
};

static uint64_t
draw(struct world *world, uint64_t bound)
{
    return sl_random_below(&world->random, bound);
}

static bool
chance(struct world *world, unsigned percent)
{
    return draw(world, 100) < percent;
}

void
faults_plan(struct world *world)
{
    struct fault_plan *plan = &world->faults;
    for (int i = 0; i < FAULT_COUNT; i++) {
        plan->kinds |= chance(world, 60) ? 1u << i : 0;
    }
    plan->kinds |= plan->kinds == 0 ? 1u << FAULT_CRASH : 0;
    plan->drop_ppm = chance(world, 50) ? (uint32_t)draw(world, 40000) : 0;
    plan->duplicate_ppm = chance(world, 50) ? (uint32_t)draw(world, 60000) : 0;
    plan->delay_ppm = chance(world, 50) ? (uint32_t)draw(world, 60000) : 0;
    plan->delay_max_ms = 20 + (uint32_t)draw(world, 6000);
    if (chance(world, 60)) {
        plan->store = (struct sl_memory_faults){
            .lose_request_ppm = (uint32_t)draw(world, 30000),
            .lose_reply_ppm = (uint32_t)draw(world, 30000),
            .expire_ppm = chance(world, 30) ? (uint32_t)draw(world, 2000) : 0,
            .delay_max_ms = draw(world, 60),
        };
    }
    plan->has_calm_start = chance(world, 60);
}

/* Where a member runs; its workers run there too. */
static const char *
member_host(const struct member *member, char *host, size_t size)
{
    snprintf(host, size, "127.0.%u.%u", (unsigned)member->kind % 100 + 1,
             (unsigned)member->index % 100 + 1);
    return host;
}

void
member_start(struct world *world, struct member *member)
{
    static const char *const names[] = {"m", "s", "t", "c"};
    char name[16];
    char host[24];
    if (member->kind == TOPOLOGY_MASTER) {
        snprintf(name, sizeof(name), "t%d%s", member->index % TOPOLOGIES,
                 member->index >= TOPOLOGIES ? "b" : "a");
    } else {
        snprintf(name, sizeof(name), "%s%d", names[member->kind], member->index);
    }
    member->proc =
        proc_new(world, member->kind, member->index, name, member_host(member, host, sizeof(host)));
    member->restart_ms = 0;
    proc_start(member->proc);
    world->is_changed = true;
}

void
member_end(struct world *world, struct member *member, enum ending ending, uint64_t down_ms)
{
    struct proc *proc = member->proc;
    member->proc = NULL;
    member->restart_ms = world_now(world) + down_ms;
    if (proc->kind == SUPERVISOR) {
        /* Its machine goes, and the workers with it. */
        sl_list_each(&world->procs, it)
        {
            struct proc *worker = sl_container_of(it, struct proc, node);
            if (worker->kind == WORKER && !worker->is_dead &&
                worker->supervisor_serial == proc->serial) {
                sl_map_u64_remove(&world->by_pid, (uint64_t)worker->pid, NULL);
                proc_end(worker, ending == END_GRACEFUL ? END_KILLED : ending);
            }
        }
    }
    if (ending == END_GRACEFUL && proc->is_paused) {
        ending = END_KILLED;
    }
    proc_end(proc, ending);
    world->is_changed = true;
}

static void
undo_later(struct world *world, enum undo_kind kind, uint64_t delay_ms, const struct proc *proc,
           const char *from, const char *to)
{
    struct undo undo = {.at_ms = world_now(world) + delay_ms,
                        .kind = (int)kind,
                        .serial = proc != NULL ? proc->serial : 0};
    snprintf(undo.from, sizeof(undo.from), "%s", from != NULL ? from : "");
    snprintf(undo.to, sizeof(undo.to), "%s", to != NULL ? to : "");
    sl_vec_push(&world->undos, undo);
}

static void
undo_one(struct world *world, const struct undo *undo)
{
    struct proc *proc = proc_by_serial(world, undo->serial);
    switch ((enum undo_kind)undo->kind) {
    case UNDO_PAUSE:
        if (proc != NULL && proc->is_paused) {
            proc_trace(proc, "continues");
            proc->is_paused = false;
            proc->resumed_ms = world_now(world);
            sl_sim_loop_resume(proc->loop);
        }
        break;
    case UNDO_CUT:
        world_trace(world, "link %s > %s is healed", undo->from, undo->to);
        sl_sim_heal(world->sim, undo->from, undo->to);
        break;
    case UNDO_STORE_CUT:
        if (proc != NULL) {
            proc_trace(proc, "reaches the store again");
            sl_memory_backend_cut(proc->backend, SL_MEMORY_CUT_NONE);
        }
        break;
    case UNDO_STORE_DOWN:
        world_trace(world, "the store serves again");
        sl_memory_server_set_serving(world->server, true);
        break;
    }
}

static void
undo_due(struct world *world, uint64_t now_ms)
{
    size_t kept = 0;
    for (size_t i = 0; i < world->undos.count; i++) {
        struct undo undo = world->undos.items[i];
        if (undo.at_ms <= now_ms) {
            undo_one(world, &undo);
        } else {
            world->undos.items[kept++] = undo;
        }
    }
    world->undos.count = kept;
    for (int i = 0; i < MEMBERS; i++) {
        struct member *member = &world->members[i];
        if (member->proc == NULL && member->restart_ms <= now_ms) {
            member_start(world, member);
        }
    }
}

void
faults_undo(struct world *world)
{
    undo_due(world, world_now(world));
}

void
faults_heal(struct world *world)
{
    struct sl_memory_faults none = {0};
    world_trace(world, "no more faults");
    world->is_healing = true;
    sl_memory_server_set_faults(world->server, &none);
    undo_due(world, UINT64_MAX);
    sl_sim_heal_all(world->sim);
}

static struct proc *
draw_proc(struct world *world)
{
    size_t count = 0;
    sl_list_each(&world->procs, it)
    {
        count += !sl_container_of(it, struct proc, node)->is_dead;
    }
    size_t at = count > 0 ? (size_t)draw(world, count) : 0;
    sl_list_each(&world->procs, it)
    {
        struct proc *proc = sl_container_of(it, struct proc, node);
        if (!proc->is_dead && at-- == 0) {
            return proc;
        }
    }
    return NULL;
}

/* A member that runs, a leader rather than others. */
static struct member *
draw_member(struct world *world)
{
    for (int i = 0; i < 20; i++) {
        struct member *member = &world->members[draw(world, MEMBERS)];
        struct master_view view;
        if (member->proc == NULL) {
            continue;
        }
        if (i < 3 && member->kind == MASTER && !master_view(member->proc, &view)) {
            continue;
        }
        return member;
    }
    return NULL;
}

/* Long enough, sometimes, for sessions and heartbeats to run out. */
static uint64_t
draw_duration(struct world *world)
{
    static const uint64_t longest[] = {100, 1000, 4000, 9000};
    return 10 + draw(world, longest[draw(world, 4)]);
}

static void
cut(struct world *world, const char *from, const char *to, uint64_t duration_ms)
{
    world_trace(world, "link %s > %s is cut", from, to);
    sl_sim_cut(world->sim, from, to);
    undo_later(world, UNDO_CUT, duration_ms, NULL, from, to);
}

static void
fault_cut(struct world *world)
{
    const struct proc *one = draw_proc(world);
    const struct proc *other = draw_proc(world);
    if (one == NULL || strcmp(one->host, other->host) == 0) {
        return;
    }
    uint64_t duration_ms = draw_duration(world);
    cut(world, one->host, other->host, duration_ms);
    if (chance(world, 40)) {
        cut(world, other->host, one->host, duration_ms);
    }
}

/* A node that hears nobody, or that nobody hears, or both. */
static void
fault_isolate(struct world *world)
{
    const struct proc *proc = draw_proc(world);
    unsigned ways = 1 + (unsigned)draw(world, 3);
    uint64_t duration_ms = draw_duration(world);
    if (proc == NULL) {
        return;
    }
    for (int i = 0; i < MEMBERS; i++) {
        char host[24];
        member_host(&world->members[i], host, sizeof(host));
        if (strcmp(host, proc->host) == 0) {
            continue;
        }
        if ((ways & 1) != 0) {
            cut(world, proc->host, host, duration_ms);
        }
        if ((ways & 2) != 0) {
            cut(world, host, proc->host, duration_ms);
        }
    }
    if (chance(world, 50)) {
        sl_memory_backend_cut(proc->backend, (enum sl_memory_cut)ways);
        undo_later(world, UNDO_STORE_CUT, duration_ms, proc, NULL, NULL);
    }
}

static void
fault_reset(struct world *world)
{
    const struct proc *one = draw_proc(world);
    const struct proc *other = draw_proc(world);
    if (one != NULL) {
        world_trace(world, "connections of %s and %s break", one->host, other->host);
        sl_sim_reset(world->sim, one->host, other->host);
    }
}

static void
on_swept(void *ctx, int status, const struct sl_state_result *result)
{
    (void)ctx;
    (void)status;
    (void)result;
}

/* Somebody tidies up: the folders of locks that nobody holds or waits for are deleted, and are made
 * anew, with numbers that start again. */
static void
fault_sweep(struct world *world)
{
    struct proc *proc = draw_proc(world);
    if (proc == NULL || proc->is_paused) {
        return;
    }
    proc_trace(proc, "deletes empty folders of locks");
    for (int i = 0; i < TOPOLOGIES; i++) {
        char path[40];
        snprintf(path, sizeof(path), "/locks/t%d", i);
        sl_state_delete(proc->store, path, SL_STATE_ANY_VERSION, on_swept, NULL);
        snprintf(path, sizeof(path), "/topologies/t%d/lock", i);
        sl_state_delete(proc->store, path, SL_STATE_ANY_VERSION, on_swept, NULL);
    }
    sl_state_delete(proc->store, "/master/lock", SL_STATE_ANY_VERSION, on_swept, NULL);
}

static void
fault_worker(struct world *world)
{
    struct proc *proc = draw_proc(world);
    if (proc != NULL && proc->kind == WORKER) {
        proc->wants_exit = true;
    }
}

static void
fault_pause(struct world *world)
{
    struct proc *proc = draw_proc(world);
    if (proc != NULL && !proc->is_paused) {
        proc_trace(proc, "is paused");
        proc->is_paused = true;
        sl_sim_loop_pause(proc->loop);
        undo_later(world, UNDO_PAUSE, draw_duration(world), proc, NULL, NULL);
    }
}

static void
fault_store_cut(struct world *world)
{
    struct proc *proc = draw_proc(world);
    if (proc != NULL) {
        unsigned ways = 1 + (unsigned)draw(world, 3);
        proc_trace(proc, "is cut from the store, ways %u", ways);
        sl_memory_backend_cut(proc->backend, (enum sl_memory_cut)ways);
        undo_later(world, UNDO_STORE_CUT, draw_duration(world), proc, NULL, NULL);
    }
}

static void
fault_expire(struct world *world)
{
    struct proc *proc = draw_proc(world);
    uint64_t session = proc != NULL ? sl_state_store_session(proc->store) : 0;
    if (session != 0) {
        proc_trace(proc, "loses its session");
        world->has_expired = true;
        sl_memory_server_expire(world->server, session);
    }
}

static void
fault_one(struct world *world, enum fault fault)
{
    struct proc *proc;
    struct member *member;
    world->stats.faults++;
    world->is_changed = true;
    switch (fault) {
    case FAULT_CRASH:
    case FAULT_RESTART:
        member = draw_member(world);
        if (member != NULL) {
            enum ending ending = fault == FAULT_RESTART ? END_GRACEFUL
                                 : chance(world, 50)    ? END_KILLED
                                                        : END_SILENT;
            member_end(world, member, ending, draw_duration(world));
        }
        break;
    case FAULT_PAUSE:
        fault_pause(world);
        break;
    case FAULT_CUT:
        fault_cut(world);
        break;
    case FAULT_ISOLATE:
        fault_isolate(world);
        break;
    case FAULT_RESET:
        fault_reset(world);
        break;
    case FAULT_STORE_CUT:
        fault_store_cut(world);
        break;
    case FAULT_STORE_DOWN:
        if (chance(world, 30)) {
            world_trace(world, "the store stops serving");
            sl_memory_server_set_serving(world->server, false);
            undo_later(world, UNDO_STORE_DOWN, draw_duration(world), NULL, NULL, NULL);
        }
        break;
    case FAULT_STORE_BREAK:
        proc = draw_proc(world);
        if (proc != NULL) {
            sl_memory_backend_break_next(proc->backend, chance(world, 50) ? SL_MEMORY_BREAK_BEFORE
                                                                          : SL_MEMORY_BREAK_AFTER);
        }
        break;
    case FAULT_EXPIRE:
        fault_expire(world);
        break;
    case FAULT_CLOCK:
        proc = draw_proc(world);
        if (proc != NULL) {
            sl_sim_loop_jump_wall(proc->loop, (int64_t)draw(world, 7200000) - 3600000);
        }
        break;
    case FAULT_SWEEP:
        fault_sweep(world);
        break;
    case FAULT_WORKER:
        fault_worker(world);
        break;
    case FAULT_COUNT:
        break;
    }
}

void
faults_step(struct world *world)
{
    if (world->stats.faults == 0) {
        sl_memory_server_set_faults(world->server, &world->faults.store);
        world->has_expired |= world->faults.store.expire_ppm > 0;
    }
    enum fault fault = (enum fault)draw(world, FAULT_COUNT);
    if ((world->faults.kinds & (1u << fault)) != 0) {
        fault_one(world, fault);
    }
}
