#include "cluster/launcher_local.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "cluster/control_messages.h"
#include "cluster/kept_process.h"
#include "cluster/local_processes.h"

/* One container: a child of ours, or a process that was taken over. */
struct local_container {
    struct sl_launcher_local *launcher;
    struct sl_list_node node;
    int32_t id;
    struct sl_kept_process *process;
};

struct sl_launcher_local {
    struct sl_loop *loop;
    char *program;
    char *state_url;
    char *topology;
    char *log_dir;
    char *cwd;
    struct sl_launcher_listener listener;
    struct sl_list containers;
    bool is_stopping_all;
};

static struct local_container *
find(struct sl_launcher_local *self, int32_t id)
{
    sl_list_each(&self->containers, it)
    {
        struct local_container *container = sl_container_of(it, struct local_container, node);
        if (container->id == id && !sl_kept_process_is_stopping(container->process)) {
            return container;
        }
    }
    return NULL;
}

static void
tell_all_stopped(void *ctx)
{
    struct sl_launcher_local *self = ctx;
    if (self->is_stopping_all && sl_list_is_empty(&self->containers)) {
        self->is_stopping_all = false;
        self->listener.on_all_stopped(self->listener.ctx);
    }
}

static void
container_free(struct local_container *container)
{
    sl_kept_process_free(container->process);
    sl_list_remove(&container->node);
    sl_free(container);
}

static void
on_ended(void *ctx, const char *text)
{
    struct local_container *container = ctx;
    struct sl_launcher_local *self = container->launcher;
    self->listener.on_ended(self->listener.ctx, container->id, text);
}

static void
on_stopped(void *ctx)
{
    struct local_container *container = ctx;
    struct sl_launcher_local *self = container->launcher;
    container_free(container);
    tell_all_stopped(self);
}

static struct local_container *
container_new(struct sl_launcher_local *self, int32_t number)
{
    struct local_container *container = sl_calloc(1, sizeof(*container));
    char id[16];
    char label[32];
    char log[4096];
    snprintf(id, sizeof(id), "%d", number);
    snprintf(label, sizeof(label), "container %d", number);
    snprintf(log, sizeof(log), "%s/container-%d.log", self->log_dir, number);
    const char *argv[] = {self->program, SL_ROLE_WORKER, "--state",     self->state_url,
                          "--topology",  self->topology, "--container", id,
                          "--logs",      self->log_dir,  NULL};
    struct sl_kept_process_options options = {
        .loop = self->loop,
        .program = self->program,
        .argv = argv,
        .cwd = self->cwd,
        .log = log,
        .label = label,
        .listener = {.on_ended = on_ended, .on_stopped = on_stopped, .ctx = container},
    };
    container->launcher = self;
    container->id = number;
    container->process = sl_kept_process_new(&options);
    sl_list_push_back(&self->containers, &container->node);
    return container;
}

/* Takes over a process that another topology master started. */
static void
adopt(void *ctx, int64_t pid, const char *role, int32_t id)
{
    struct sl_launcher_local *self = ctx;
    if (strcmp(role, SL_ROLE_WORKER) != 0 || id < 1 || find(self, id) != NULL) {
        return;
    }
    struct local_container *container = container_new(self, id);
    if (sl_kept_process_adopt(container->process, pid) != 0) {
        container_free(container);
    }
}

static int
launcher_initialize(void *ctx, const struct sl_execution_state *execution, uint64_t token,
                    const struct sl_launcher_listener *listener)
{
    struct sl_launcher_local *self = ctx;
    (void)token;
    self->listener = *listener;
    self->cwd = sl_strdup(execution->cwd);
    if (sl_make_folders(self->log_dir) != 0) {
        sl_log_warn("cluster", "no logs: %s", sl_err_last()->msg);
    }
    sl_local_processes_each(self->state_url, self->topology, adopt, self);
    return 0;
}

static int
launcher_add(void *ctx, const struct sl_stored_plan *plan, int32_t *ids, size_t count)
{
    struct sl_launcher_local *self = ctx;
    (void)plan;
    for (size_t i = 0; i < count; i++) {
        if (find(self, ids[i]) == NULL) {
            sl_kept_process_start(container_new(self, ids[i])->process);
        }
    }
    return 0;
}

static void
launcher_remove(void *ctx, const int32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct local_container *container = find(ctx, ids[i]);
        if (container != NULL) {
            sl_kept_process_stop(container->process);
        }
    }
}

static int
launcher_restart(void *ctx, int32_t id)
{
    struct local_container *container = find(ctx, id);
    if (container == NULL) {
        return sl_err_set(SL_ENOTFOUND, "there is no container %d", id);
    }
    sl_kept_process_restart(container->process);
    return 0;
}

static void
launcher_stop_all(void *ctx)
{
    struct sl_launcher_local *self = ctx;
    self->is_stopping_all = true;
    sl_list_each(&self->containers, it)
    {
        sl_kept_process_stop(sl_container_of(it, struct local_container, node)->process);
    }
    sl_loop_post(self->loop, tell_all_stopped, self);
}

/* Of two processes with one number the one that is watched is the worker. */
static bool
launcher_is_worker(void *ctx, const struct sl_plan_slot *slot,
                   const struct sl_register_peer *worker)
{
    const struct local_container *container = find(ctx, worker->container);
    int64_t pid = container != NULL ? sl_kept_process_pid(container->process) : 0;
    (void)slot;
    return pid == 0 || (uint64_t)pid == worker->pid;
}

static uint64_t
launcher_pid(void *ctx, int32_t id)
{
    const struct local_container *container = find(ctx, id);
    return container != NULL ? (uint64_t)sl_kept_process_pid(container->process) : 0;
}

static uint32_t
launcher_restarts(void *ctx, int32_t id)
{
    const struct local_container *container = find(ctx, id);
    return container != NULL ? sl_kept_process_restarts(container->process) : 0;
}

struct sl_launcher_local *
sl_launcher_local_new(const struct sl_launcher_local_options *options)
{
    struct sl_launcher_local *self = sl_calloc(1, sizeof(*self));
    self->loop = options->loop;
    self->program = sl_strdup(options->program);
    self->state_url = sl_strdup(options->state_url);
    self->topology = sl_strdup(options->topology);
    self->log_dir = sl_strdup(options->log_dir);
    sl_list_create(&self->containers);
    return self;
}

void
sl_launcher_local_free(struct sl_launcher_local *self)
{
    if (self == NULL) {
        return;
    }
    sl_list_each(&self->containers, it)
    {
        container_free(sl_container_of(it, struct local_container, node));
    }
    sl_free(self->program);
    sl_free(self->state_url);
    sl_free(self->topology);
    sl_free(self->log_dir);
    sl_free(self->cwd);
    sl_free(self);
}

struct sl_launcher
sl_launcher_local_seam(struct sl_launcher_local *self)
{
    return (struct sl_launcher){
        .initialize = launcher_initialize,
        .add_containers = launcher_add,
        .remove_containers = launcher_remove,
        .restart_container = launcher_restart,
        .stop_all = launcher_stop_all,
        .is_worker = launcher_is_worker,
        .pid = launcher_pid,
        .restarts = launcher_restarts,
        .self = self,
    };
}
