#include "cluster/launcher_local.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "cluster/control_messages.h"
#include "cluster/local_processes.h"
#include "cluster/restart.h"
#include "loop/process.h"

enum { END_TEXT_SIZE = 128 };

/* One container: a child of ours, or a process that was taken over. */
struct local_container {
    struct sl_launcher_local *launcher;
    struct sl_list_node node;
    int32_t id;
    int64_t pid;
    struct sl_process *process;
    struct sl_fd_watch *watch;
    int pidfd;
    bool is_stopping;
    /* Started anew as soon as it has ended. */
    bool is_restarting;
    uint32_t restarts;
    struct sl_restart restart;
    /* Until the next start, or until SIGKILL. */
    struct sl_timer timer;
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

static void container_start(struct local_container *container);

static struct local_container *
find(struct sl_launcher_local *self, int32_t id)
{
    sl_list_each(&self->containers, it)
    {
        struct local_container *container = sl_container_of(it, struct local_container, node);
        if (container->id == id && !container->is_stopping) {
            return container;
        }
    }
    return NULL;
}

static struct local_container *
container_new(struct sl_launcher_local *self, int32_t id)
{
    struct local_container *container = sl_calloc(1, sizeof(*container));
    struct sl_restart_config config = sl_restart_config_default(SL_RESTART_EXPONENTIAL);
    config.initial_ms = SL_LAUNCHER_BACKOFF_MS;
    config.max_ms = SL_LAUNCHER_BACKOFF_MAX_MS;
    config.reset_ms = SL_LAUNCHER_RESET_MS;
    sl_restart_create(&container->restart, &config, sl_random_u64(sl_loop_random(self->loop)));
    container->launcher = self;
    container->id = id;
    container->pidfd = -1;
    sl_list_push_back(&self->containers, &container->node);
    return container;
}

/* Lets the process go without ending it. */
static void
container_forget_process(struct local_container *container)
{
    if (container->process != NULL) {
        sl_process_free(container->process);
        container->process = NULL;
    }
    if (container->watch != NULL) {
        sl_fd_watch_close(container->watch);
        container->watch = NULL;
    }
    if (container->pidfd >= 0) {
        close(container->pidfd);
        container->pidfd = -1;
    }
    container->pid = 0;
}

static void
container_free(struct local_container *container)
{
    container_forget_process(container);
    sl_timer_stop(&container->timer);
    sl_restart_destroy(&container->restart);
    sl_list_remove(&container->node);
    sl_free(container);
}

static void
tell_all_stopped(struct sl_launcher_local *self)
{
    if (self->is_stopping_all && sl_list_is_empty(&self->containers)) {
        self->is_stopping_all = false;
        self->listener.on_all_stopped(self->listener.ctx);
    }
}

static void
start_again(void *ctx, uint64_t ticket)
{
    (void)ticket;
    container_start(ctx);
}

static void
start_later(struct local_container *container)
{
    uint64_t delay = 0;
    if (!container->is_restarting) {
        sl_restart_failed(&container->restart, sl_loop_now_ms(container->launcher->loop));
        delay = sl_restart_backoff_ms(&container->restart);
    }
    container->is_restarting = false;
    container->restarts++;
    sl_timer_start(container->launcher->loop, &container->timer, delay, start_again, container);
}

/* What follows the end of a process. */
static void
container_ended(struct local_container *container, const char *text)
{
    struct sl_launcher_local *self = container->launcher;
    int32_t id = container->id;
    container_forget_process(container);
    sl_timer_stop(&container->timer);
    if (container->is_stopping) {
        container_free(container);
        tell_all_stopped(self);
        return;
    }
    start_later(container);
    self->listener.on_ended(self->listener.ctx, id, text);
}

static void
child_exited(void *ctx, const struct sl_process_exit *how)
{
    char text[END_TEXT_SIZE];
    if (how->signal != 0) {
        snprintf(text, sizeof(text), "signal %d (%s)", how->signal, strsignal(how->signal));
    } else {
        snprintf(text, sizeof(text), "exit code %d", how->code);
    }
    container_ended(ctx, text);
}

static void
adopted_exited(void *ctx)
{
    container_ended(ctx, "ended");
}

/* Opens the log of a container for appending; -1 (the output is dropped) when that is not possible,
 * since a full disk must not stop a topology. */
static int
open_log(const struct local_container *container)
{
    char path[4096];
    const struct sl_launcher_local *self = container->launcher;
    snprintf(path, sizeof(path), "%s/container-%d.log", self->log_dir, container->id);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
        sl_log_warn("cluster", "no log of container %d: %s: %s", container->id, path,
                    strerror(errno));
    }
    return fd;
}

static void
container_start(struct local_container *container)
{
    struct sl_launcher_local *self = container->launcher;
    char id[16];
    snprintf(id, sizeof(id), "%d", container->id);
    const char *argv[] = {self->program, SL_ROLE_WORKER, "--state",     self->state_url,
                          "--topology",  self->topology, "--container", id,
                          NULL};
    int log = open_log(container);
    struct sl_process_options options = {
        .file = self->program,
        .argv = argv,
        .cwd = self->cwd,
        .stdio = {-1, log, log},
        .on_exit = child_exited,
        .ctx = container,
    };
    int rc = sl_process_spawn(self->loop, &options, &container->process);
    if (log >= 0) {
        close(log);
    }
    if (rc != 0) {
        sl_log_error("cluster", "container %d: %s", container->id, sl_err_last()->msg);
        start_later(container);
        return;
    }
    container->pid = sl_process_pid(container->process);
}

static void
end_by_force(void *ctx, uint64_t ticket)
{
    struct local_container *container = ctx;
    (void)ticket;
    if (container->pid != 0) {
        kill((pid_t)-container->pid, SIGKILL);
    }
}

/* Asks the process to end, and makes it end when it does not. Its end is told later. */
static void
container_end_process(struct local_container *container)
{
    kill((pid_t)-container->pid, SIGTERM);
    sl_timer_start(container->launcher->loop, &container->timer, SL_LAUNCHER_GRACE_MS, end_by_force,
                   container);
}

static void
container_stop(struct local_container *container)
{
    container->is_stopping = true;
    if (container->pid != 0) {
        container_end_process(container);
    } else {
        container_free(container);
    }
}

/* Takes over a process that another topology master started. */
static void
adopt(void *ctx, int64_t pid, const char *role, int32_t id)
{
    struct sl_launcher_local *self = ctx;
    if (strcmp(role, SL_ROLE_WORKER) != 0 || id < 1 || find(self, id) != NULL) {
        return;
    }
    int fd = sl_local_process_watch(pid);
    if (fd < 0) {
        return;
    }
    struct local_container *container = container_new(self, id);
    container->pid = pid;
    container->pidfd = fd;
    if (sl_fd_watch_open(self->loop, fd, adopted_exited, container, &container->watch) != 0) {
        sl_log_error("cluster", "container %d: %s", id, sl_err_last()->msg);
        container_free(container);
    }
}

static int
make_folders(const char *path)
{
    char part[4096];
    snprintf(part, sizeof(part), "%s", path);
    for (char *at = strchr(part + 1, '/');; at = strchr(at + 1, '/')) {
        if (at != NULL) {
            *at = '\0';
        }
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            return sl_err_set(SL_ESYS, "make folder %s: %s", part, strerror(errno));
        }
        if (at == NULL) {
            return 0;
        }
        *at = '/';
    }
}

static int
launcher_initialize(void *ctx, const struct sl_execution_state *execution,
                    const struct sl_launcher_listener *listener)
{
    struct sl_launcher_local *self = ctx;
    struct stat status;
    self->listener = *listener;
    /* A folder that is gone must not keep the topology from running. */
    if (stat(execution->cwd, &status) == 0 && S_ISDIR(status.st_mode)) {
        self->cwd = sl_strdup(execution->cwd);
    }
    if (make_folders(self->log_dir) != 0) {
        sl_log_warn("cluster", "no logs: %s", sl_err_last()->msg);
    }
    sl_local_processes_each(self->state_url, self->topology, adopt, self);
    return 0;
}

static int
launcher_add(void *ctx, int32_t *ids, size_t count)
{
    struct sl_launcher_local *self = ctx;
    for (size_t i = 0; i < count; i++) {
        if (find(self, ids[i]) == NULL) {
            container_start(container_new(self, ids[i]));
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
            container_stop(container);
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
    if (container->pid != 0) {
        container->is_restarting = true;
        container_end_process(container);
    } else {
        /* It waits for its next start. */
        sl_timer_start(container->launcher->loop, &container->timer, 0, start_again, container);
    }
    return 0;
}

static void
stopped_later(void *ctx)
{
    tell_all_stopped(ctx);
}

static void
launcher_stop_all(void *ctx)
{
    struct sl_launcher_local *self = ctx;
    self->is_stopping_all = true;
    sl_list_each(&self->containers, it)
    {
        struct local_container *container = sl_container_of(it, struct local_container, node);
        if (!container->is_stopping) {
            container_stop(container);
        }
    }
    sl_loop_post(self->loop, stopped_later, self);
}

static uint64_t
launcher_pid(void *ctx, int32_t id)
{
    const struct local_container *container = find(ctx, id);
    return container != NULL ? (uint64_t)container->pid : 0;
}

static uint32_t
launcher_restarts(void *ctx, int32_t id)
{
    const struct local_container *container = find(ctx, id);
    return container != NULL ? container->restarts : 0;
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
        .pid = launcher_pid,
        .restarts = launcher_restarts,
        .self = self,
    };
}
