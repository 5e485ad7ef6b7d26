#include "sim.h"

#include "base/hash.h"

/* One run: the cluster is set up, lives with faults for some steps, heals, and must then come to
 * order within a bounded time. */

uint64_t
world_now(const struct world *world)
{
    return sl_sim_now_ms(world->sim);
}

static void
trace_line(struct world *world, const char *who, const char *fmt, va_list args)
{
    char text[512];
    vsnprintf(text, sizeof(text), fmt, args);
    world->trace_hash = sl_mix64(world->trace_hash ^ sl_hash_bytes(text, strlen(text)) ^
                                 sl_hash_bytes(who, strlen(who)) ^ world_now(world));
    if (world->is_tracing) {
        printf("%8llu ms  %-12s %s\n", (unsigned long long)world_now(world), who, text);
    }
}

void
world_trace(struct world *world, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    trace_line(world, "-", fmt, args);
    va_end(args);
}

void
proc_trace(struct proc *proc, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    trace_line(proc->world, proc->name, fmt, args);
    va_end(args);
}

void
world_fail(struct world *world, const char *fmt, ...)
{
    va_list args;
    if (world->failure[0] != '\0') {
        return;
    }
    va_start(args, fmt);
    vsnprintf(world->failure, sizeof(world->failure), fmt, args);
    va_end(args);
    world_trace(world, "VIOLATION: %s", world->failure);
}

/* Workers are children of supervisors: the simulation's way of starting a process. */
static int
spawn(void *ctx, struct sl_loop *parent, const struct sl_process_options *options, int64_t pid)
{
    struct world *world = ctx;
    struct proc *supervisor = NULL;
    sl_list_each(&world->procs, it)
    {
        struct proc *proc = sl_container_of(it, struct proc, node);
        supervisor = proc->loop == parent ? proc : supervisor;
    }
    sl_assert(supervisor != NULL);
    char name[32];
    snprintf(name, sizeof(name), "%.8s-%.8s-%.8s", options->argv[1], options->argv[2],
             options->argv[3]);
    struct proc *worker = proc_new(world, WORKER, supervisor->index, name, supervisor->host);
    worker->topology = options->argv[1][1] - '0';
    worker->port = (uint32_t)strtoul(options->argv[3], NULL, 10);
    worker->allocation = strtoull(options->argv[4], NULL, 16);
    worker->supervisor_serial = supervisor->serial;
    worker->pid = pid;
    sl_map_u64_put_ptr(&world->by_pid, (uint64_t)pid, worker);
    proc_start(worker);
    world->is_changed = true;
    return 0;
}

static void
kill_worker(void *ctx, int64_t pid, int number)
{
    struct world *world = ctx;
    struct proc *worker = sl_map_u64_get_ptr(&world->by_pid, (uint64_t)pid);
    (void)number;
    if (worker != NULL) {
        worker->wants_exit = true;
    }
}

/* Takes away what ended in this turn, and frees what is closed. */
static void
reap(struct world *world)
{
    sl_list_each(&world->procs, it)
    {
        struct proc *proc = sl_container_of(it, struct proc, node);
        if (proc->wants_exit && !proc->is_dead && proc->kind != WORKER) {
            for (int i = 0; i < MEMBERS; i++) {
                if (world->members[i].proc == proc) {
                    member_end(world, &world->members[i], END_KILLED, 200);
                }
            }
        }
        if (proc->wants_exit && !proc->is_dead) {
            proc_end(proc, END_KILLED);
            sl_map_u64_remove(&world->by_pid, (uint64_t)proc->pid, NULL);
            sl_sim_process_exited(world->sim, proc->pid, -1, 9);
            world->is_changed = true;
        }
        if (proc->is_closed) {
            proc_free(proc);
        }
    }
}

/* Runs before every event; true ends the run. */
static bool
before_event(void *ctx)
{
    struct world *world = ctx;
    world->stats.events++;
    if (world_now(world) / 1000 != world->second) {
        world->second = world_now(world) / 1000;
        world->second_events = 0;
    }
    if (++world->second_events > EVENTS_MAX) {
        world_fail(world, "a busy loop: %d events within one second", EVENTS_MAX);
    }
    reap(world);
    if (world->is_changed || sl_memory_server_tree(world->server)->zxid != world->last_zxid) {
        world->is_changed = false;
        world->checks++;
        check_world(world);
    }
    return world->failure[0] != '\0' || world->is_over;
}

/* Handles what happens in this time; ends early with a failure. */
static void
run_for(struct world *world, uint64_t ms)
{
    uint64_t end_ms = world_now(world) + ms;
    if (!sl_sim_run_until(world->sim, before_event, world, ms) && world_now(world) + 1 < end_ms) {
        /* Nothing else happens in this time; a part of a millisecond is left to the next. */
        sl_sim_run_for(world->sim, end_ms - world_now(world) - 1);
    }
}

/* The nodes that the cluster's installation makes. */
static void
on_prepared(void *ctx, int status, const struct sl_state_result *result)
{
    int *left = ctx;
    (void)result;
    sl_assert_eq(status, 0);
    --*left;
}

static bool
is_zero(void *ctx)
{
    return *(int *)ctx == 0;
}

static void
on_closed(void *arg)
{
    *(int *)arg = 0;
}

static void
prepare_store(struct world *world)
{
    struct sl_state_store *store = sl_state_store_new(
        sl_memory_backend_new(world->server, &world->keeper_executor.base),
        &world->keeper_executor.base, &(struct sl_state_options){STATE_MS, world->seed + 1});
    uint8_t value[OPERATION_BYTES];
    int left = TOPOLOGIES + 1;
    int open = 1;
    operation_encode(value, 0, 0, 0);
    sl_state_create(store, "/journal", value, sizeof(value), SL_STATE_PARENTS, on_prepared, &left);
    for (int i = 0; i < TOPOLOGIES; i++) {
        char path[24];
        snprintf(path, sizeof(path), "/plans/t%d", i);
        sl_state_create(store, path, value, sizeof(value), SL_STATE_PARENTS, on_prepared, &left);
    }
    bool is_done = sl_sim_run_until(world->sim, is_zero, &left, 5000);
    sl_assert(is_done);
    sl_state_store_close(store, on_closed, &open);
    is_done = sl_sim_run_until(world->sim, is_zero, &open, 5000);
    sl_assert(is_done);
}

static void
create(struct world *world, uint64_t seed, unsigned steps, bool is_tracing)
{
    static const struct {
        enum kind kind;
        int count;
    } kinds[] = {{MASTER, MASTERS},
                 {SUPERVISOR, SUPERVISORS},
                 {TOPOLOGY_MASTER, TOPOLOGY_MASTERS},
                 {CLIENT, CLIENTS}};
    struct sl_sim_spawner spawner = {spawn, kill_worker, world};
    memset(world, 0, sizeof(*world));
    world->seed = seed;
    world->steps = steps;
    world->is_tracing = is_tracing;
    world->next_serial = 1;
    world->next_operation = 1;
    sl_random_seed(&world->random, sl_mix64(seed + 77));
    sl_list_create(&world->procs);
    faults_plan(world);
    world->sim = sl_sim_new(&(struct sl_sim_options){
        .seed = seed,
        .latency_min_us = 100,
        .latency_max_us = 200 + (uint32_t)sl_random_below(&world->random, 20000),
        .is_splitting_reads = seed % 5 == 0});
    sl_sim_set_spawner(world->sim, &spawner);
    world->keeper = sl_sim_loop_new(world->sim, "127.0.8.1");
    executor_create(&world->keeper_executor, world->keeper);
    world->server = sl_memory_server_new(&world->keeper_executor.base, seed);
    sl_memory_server_set_session_timeout(world->server, SESSION_MS);
    ghosts_create(world);
    prepare_store(world);
    int at = 0;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        for (int i = 0; i < kinds[k].count; i++) {
            world->members[at].kind = kinds[k].kind;
            world->members[at].index = i;
            member_start(world, &world->members[at]);
            at++;
        }
    }
    sl_assert_eq(at, MEMBERS);
}

static bool
has_procs(void *ctx)
{
    struct world *world = ctx;
    reap(world);
    /* What spins may never end; the parent process says which seed it was. */
    sl_assert_lt(world->second_events++, 20 * EVENTS_MAX);
    return sl_list_is_empty(&world->procs);
}

static void
destroy(struct world *world)
{
    world->is_tracing = false;
    world->second_events = 0;
    sl_list_each(&world->procs, it)
    {
        struct proc *proc = sl_container_of(it, struct proc, node);
        if (!proc->is_dead) {
            if (proc->is_paused) {
                sl_sim_loop_resume(proc->loop);
            }
            proc_end(proc, END_GRACEFUL);
        }
    }
    bool is_gone = sl_sim_run_until(world->sim, has_procs, world, 60000);
    sl_assert(is_gone);
    ghosts_destroy(world);
    sl_memory_server_free(world->server);
    executor_destroy(&world->keeper_executor);
    sl_loop_free(world->keeper);
    sl_sim_free(world->sim);
    sl_map_u64_destroy(&world->by_serial);
    sl_map_u64_destroy(&world->by_pid);
    sl_map_u64_destroy(&world->terms);
    sl_map_u64_destroy(&world->acts);
    sl_map_u64_destroy(&world->outcomes);
    sl_map_u64_destroy(&world->applied);
    sl_map_u64_destroy(&world->open);
    sl_vec_destroy(&world->undos);
}

/* After the last fault everything comes to order, in bounded time, and stays so. */
static void
heal(struct world *world)
{
    uint64_t start_ms = world_now(world);
    uint64_t commits[TOPOLOGIES];
    const char *missing = NULL;
    faults_heal(world);
    memcpy(commits, world->commits, sizeof(commits));
    while (world->failure[0] == '\0') {
        run_for(world, 100);
        if (world->failure[0] != '\0') {
            break;
        }
        missing = check_converged(world);
        for (int i = 0; missing == NULL && i < TOPOLOGIES; i++) {
            missing = world->commits[i] <= commits[i] ? "a plan that could be changed" : NULL;
        }
        if (missing == NULL) {
            world->stats.healed_ms = world_now(world) - start_ms;
            return;
        }
        if (world_now(world) - start_ms > HEALING_MS) {
            world_fail(world, "%d ms after the last fault there is still missing: %s", HEALING_MS,
                       missing);
        }
    }
}

void
world_run(uint64_t seed, unsigned steps, bool is_tracing, struct run_result *result)
{
    struct world world;
    create(&world, seed, steps, is_tracing);
    if (world.faults.has_calm_start) {
        run_for(&world, 3000);
    }
    for (unsigned i = 0; i < steps && world.failure[0] == '\0'; i++) {
        faults_step(&world);
        run_for(&world, 20 + sl_random_below(&world.random, 400));
        faults_undo(&world);
    }
    if (world.failure[0] == '\0') {
        heal(&world);
    }
    world_trace(&world, "ends after %llu events, %llu checks",
                (unsigned long long)world.stats.events, (unsigned long long)world.checks);
    *result =
        (struct run_result){.trace_hash = sl_mix64(world.trace_hash ^ sl_sim_trace_hash(world.sim)),
                            .at_ms = world_now(&world),
                            .events = world.stats.events,
                            .checks = world.checks,
                            .faults = world.stats.faults,
                            .healed_ms = world.stats.healed_ms,
                            .commits = world.stats.commits,
                            .fenced = world.stats.fenced,
                            .stale = world.stats.stale};
    memcpy(result->failure, world.failure, sizeof(result->failure));
    destroy(&world);
}
