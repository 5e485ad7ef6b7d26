#include "sim.h"

/* A process of the simulated cluster: its loop, store and rpc service, its start and its end. */

struct task {
    struct sl_list_node node;
    struct executor *executor;
    sl_state_task_fn fn;
    void *arg;
};

struct executor_timer {
    struct sl_timer timer;
    struct executor *executor;
    uint64_t ticket;
    sl_state_task_fn fn;
    void *arg;
};

static void
run_task(void *ctx)
{
    struct task *task = ctx;
    sl_state_task_fn fn = task->fn;
    void *arg = task->arg;
    sl_list_remove(&task->node);
    sl_free(task);
    fn(arg);
}

static void
executor_post(void *ctx, sl_state_task_fn fn, void *arg)
{
    struct executor *self = ctx;
    struct task *task = sl_calloc(1, sizeof(*task));
    task->executor = self;
    task->fn = fn;
    task->arg = arg;
    sl_list_push_back(&self->tasks, &task->node);
    sl_loop_post(self->loop, run_task, task);
}

static void
timer_fires(void *ctx, uint64_t ticket)
{
    struct executor_timer *timer = ctx;
    sl_state_task_fn fn = timer->fn;
    void *arg = timer->arg;
    (void)ticket;
    sl_map_u64_remove(&timer->executor->timers, timer->ticket, NULL);
    sl_free(timer);
    fn(arg);
}

static uint64_t
executor_timer_start(void *ctx, uint64_t delay_ms, sl_state_task_fn fn, void *arg)
{
    struct executor *self = ctx;
    struct executor_timer *timer = sl_calloc(1, sizeof(*timer));
    timer->executor = self;
    timer->ticket = ++self->last_ticket;
    timer->fn = fn;
    timer->arg = arg;
    sl_map_u64_put_ptr(&self->timers, timer->ticket, timer);
    sl_timer_start(self->loop, &timer->timer, delay_ms, timer_fires, timer);
    return timer->ticket;
}

static void
executor_timer_stop(void *ctx, uint64_t ticket)
{
    struct executor *self = ctx;
    struct executor_timer *timer = sl_map_u64_remove_ptr(&self->timers, ticket);
    if (timer != NULL) {
        sl_timer_stop(&timer->timer);
        sl_free(timer);
    }
}

void
executor_create(struct executor *self, struct sl_loop *loop)
{
    memset(self, 0, sizeof(*self));
    self->base = (struct sl_state_executor){executor_post, executor_timer_start,
                                            executor_timer_stop, sl_loop_clock(loop), self};
    self->loop = loop;
    sl_list_create(&self->tasks);
}

void
executor_move(struct executor *self, struct sl_loop *loop)
{
    self->loop = loop;
    sl_list_each(&self->tasks, it)
    {
        sl_loop_post(loop, run_task, sl_container_of(it, struct task, node));
    }
}

void
executor_destroy(struct executor *self)
{
    struct sl_map_u64_entry *entry;
    sl_assert(sl_list_is_empty(&self->tasks));
    for (size_t at = 0; (entry = sl_map_u64_next(&self->timers, &at)) != NULL;) {
        struct executor_timer *timer = (struct executor_timer *)(uintptr_t)entry->value;
        sl_timer_stop(&timer->timer);
        sl_free(timer);
    }
    sl_map_u64_destroy(&self->timers);
}

static const struct role *const roles[] = {
    [MASTER] = &master_role,
    [SUPERVISOR] = &supervisor_role,
    [TOPOLOGY_MASTER] = &topology_master_role,
    [CLIENT] = &client_role,
    [WORKER] = &worker_role,
};

struct proc *
proc_new(struct world *world, enum kind kind, int index, const char *name, const char *host)
{
    struct proc *proc = sl_calloc(1, sizeof(*proc));
    proc->world = world;
    proc->kind = kind;
    proc->ops = roles[kind];
    proc->index = index;
    proc->serial = world->next_serial++;
    snprintf(proc->name, sizeof(proc->name), "%s", name);
    snprintf(proc->host, sizeof(proc->host), "%s", host);
    proc->loop = sl_sim_loop_new(world->sim, host);
    executor_create(&proc->executor, proc->loop);
    proc->backend = sl_memory_backend_new(world->server, &proc->executor.base);
    proc->store = sl_state_store_new(
        proc->backend, &proc->executor.base,
        &(struct sl_state_options){STATE_MS, world->seed * 1000003 + proc->serial});
    proc->rpc = sl_rpc_new(proc->loop, &(struct sl_rpc_options){.role = proc->ops->name,
                                                                .name = proc->name,
                                                                .cluster = "sim",
                                                                .frame_timeout_ms = 2000,
                                                                .opening_timeout_ms = 1500});
    proc->next_held = 1;
    char address[40];
    snprintf(address, sizeof(address), "%s:0", host);
    int rc = sl_rpc_listen(proc->rpc, address);
    sl_assert_eq(rc, 0);
    sl_list_push_back(&world->procs, &proc->node);
    sl_map_u64_put_ptr(&world->by_serial, proc->serial, proc);
    return proc;
}

void
proc_start(struct proc *proc)
{
    proc_trace(proc, "starts as %llu at %s", (unsigned long long)proc->serial,
               sl_rpc_address(proc->rpc));
    proc->role = proc->ops->start(proc);
}

static void
store_closed(void *arg)
{
    struct proc *proc = arg;
    proc->is_closed = true;
}

void
proc_end(struct proc *proc, enum ending ending)
{
    static const char *const texts[] = {"ends", "is killed", "loses power"};
    sl_assert(!proc->is_dead);
    proc_trace(proc, "%s", texts[ending]);
    proc->is_dead = true;
    sl_map_u64_remove(&proc->world->by_serial, proc->serial, NULL);
    if (ending != END_GRACEFUL) {
        sl_memory_backend_crash(proc->backend);
        sl_sim_loop_crash(proc->loop, ending == END_SILENT);
        executor_move(&proc->executor, proc->world->keeper);
    }
    proc->ops->stop(proc->role);
    proc->role = NULL;
    sl_rpc_free(proc->rpc);
    proc->rpc = NULL;
    held_drop(proc);
    sl_state_store_close(proc->store, store_closed, proc);
    proc->store = NULL;
}

void
proc_free(struct proc *proc)
{
    sl_assert(proc->is_dead && proc->is_closed);
    executor_destroy(&proc->executor);
    sl_loop_free(proc->loop);
    sl_map_u64_destroy(&proc->held);
    sl_list_remove(&proc->node);
    sl_free(proc);
}

struct proc *
proc_by_serial(struct world *world, uint64_t serial)
{
    return sl_map_u64_get_ptr(&world->by_serial, serial);
}
