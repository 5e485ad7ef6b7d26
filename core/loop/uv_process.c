#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "loop/uv_priv.h"

/*
 * Children are started with posix_spawn and not with uv_spawn, because only the former closes the
 * descriptors of the parent in the child itself: libraries of ours (the ZooKeeper client) open
 * sockets that are not close-on-exec, at any moment and on other threads. A child is watched
 * through its pidfd, so no signal handler is involved.
 */
struct uv_side_process {
    struct sl_process base;
    uv_poll_t poll;
    int pidfd;
    /* The handle was freed by its owner; only the reaping is left. */
    bool is_forgotten;
};

struct uv_side_signal {
    struct sl_signal base;
    uv_signal_t uv;
};

static struct uv_side_process *
process_of(struct sl_process *process)
{
    return (struct uv_side_process *)process;
}

static void
process_closed(uv_handle_t *handle)
{
    struct uv_side_process *process = handle->data;
    sl_list_remove(&process->base.node);
    close(process->pidfd);
    process->pidfd = -1;
    if (process->is_forgotten) {
        sl_free(process);
    }
}

static void
process_ended(uv_poll_t *poll, int status, int events)
{
    struct uv_side_process *process = poll->data;
    (void)status;
    (void)events;
    siginfo_t info = {0};
    int rc = waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED | WNOHANG);
    if (rc != 0 && errno == ECHILD) {
        /* Somebody else in this process has waited for it: it has ended, how is not known. */
        info = (siginfo_t){.si_code = CLD_EXITED, .si_status = -1};
    } else if (rc != 0 || info.si_pid == 0) {
        return;
    }
    process->base.is_running = false;
    uv_close((uv_handle_t *)poll, process_closed);
    if (!process->is_forgotten) {
        bool is_normal = info.si_code == CLD_EXITED;
        struct sl_process_exit how = {is_normal ? info.si_status : -1,
                                      is_normal ? 0 : info.si_status};
        process->base.on_exit(process->base.ctx, &how);
    }
}

void
sl__uv_process_free(struct sl_process *base)
{
    struct uv_side_process *process = process_of(base);
    sl_assert(!process->is_forgotten);
    process->is_forgotten = true;
    if (process->pidfd < 0) {
        sl_free(process);
    }
}

int
sl__uv_kill(struct sl_process *base, int number)
{
    if (kill((pid_t)-base->pid, number) != 0) {
        return errno == ESRCH
                   ? sl_err_set(SL_ENOTFOUND, "process %lld has ended", (long long)base->pid)
                   : sl_err_set(SL_ESYS, "signal process group %lld", (long long)base->pid);
    }
    return 0;
}

/* Copies of the descriptors above 2, so that none is overwritten before it is used. */
static int
lift_stdio(const int stdio[3], int lifted[3])
{
    for (int i = 0; i < 3; i++) {
        lifted[i] = stdio[i] < 0 ? open("/dev/null", O_RDWR | O_CLOEXEC)
                                 : fcntl(stdio[i], F_DUPFD_CLOEXEC, 3);
        if (lifted[i] < 0) {
            return sl_err_set(SL_ESYS, "descriptor %d of a process", i);
        }
    }
    return 0;
}

static int
fill_actions(posix_spawn_file_actions_t *actions, const int lifted[3], const char *cwd)
{
    int rc = 0;
    for (int i = 0; i < 3 && rc == 0; i++) {
        rc = posix_spawn_file_actions_adddup2(actions, lifted[i], i);
    }
    if (rc == 0) {
        rc = posix_spawn_file_actions_addclosefrom_np(actions, 3);
    }
    if (rc == 0 && cwd != NULL) {
        rc = posix_spawn_file_actions_addchdir_np(actions, cwd);
    }
    return rc;
}

static int
fill_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
}

static int
start_child(const struct sl_process_options *options, const int lifted[3], pid_t *pid)
{
    const char *name = options->file != NULL ? options->file : options->argv[0];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    int rc = fill_actions(&actions, lifted, options->cwd);
    if (rc == 0) {
        rc = fill_attributes(&attributes);
    }
    if (rc == 0) {
        char *const *argv = (char *const *)(uintptr_t)options->argv;
        char *const *env = options->env != NULL ? (char *const *)(uintptr_t)options->env : environ;
        rc = options->file != NULL
                 ? posix_spawn(pid, options->file, &actions, &attributes, argv, env)
                 : posix_spawnp(pid, options->argv[0], &actions, &attributes, argv, env);
    }
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (rc != 0) {
        errno = rc;
        return sl_err_set(rc == ENOENT ? SL_ENOTFOUND : SL_ESYS, "start %s: %s", name,
                          strerror(rc));
    }
    return 0;
}

static int
watch_child(struct sl_loop *loop, pid_t pid, struct sl_process **out)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) {
        sl_err_set(SL_ESYS, "watch process %d", (int)pid);
        goto fail;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    struct uv_side_process *process = sl_calloc(1, sizeof(*process));
    int status = uv_poll_init(&uv_side_of(loop)->uv, &process->poll, fd);
    if (status != 0) {
        sl_free(process);
        close(fd);
        sl__uv_error(status, "watch", "a process");
        goto fail;
    }
    process->base.pid = pid;
    process->pidfd = fd;
    process->poll.data = process;
    uv_poll_start(&process->poll, UV_READABLE, process_ended);
    *out = &process->base;
    return 0;
fail:
    kill(-pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return sl_err_last()->code;
}

/* Who was started with SIGCHLD ignored would never hear how its children end: the kernel reaps
 * them. */
static void
keep_ended_children(void)
{
    struct sigaction action;
    if (sigaction(SIGCHLD, NULL, &action) == 0 &&
        (action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT) != 0)) {
        action = (struct sigaction){.sa_handler = SIG_DFL};
        sigaction(SIGCHLD, &action, NULL);
    }
}

int
sl__uv_spawn(struct sl_loop *loop, const struct sl_process_options *options,
             struct sl_process **process)
{
    int lifted[3] = {-1, -1, -1};
    pid_t pid;
    keep_ended_children();
    int rc = lift_stdio(options->stdio, lifted);
    if (rc == 0) {
        rc = start_child(options, lifted, &pid);
    }
    if (rc == 0) {
        rc = watch_child(loop, pid, process);
    }
    for (int i = 0; i < 3; i++) {
        if (lifted[i] >= 0) {
            close(lifted[i]);
        }
    }
    return rc;
}

void
sl__uv_processes_close(struct sl_loop *loop)
{
    sl_list_each(&loop->processes, it)
    {
        struct uv_side_process *process = sl_container_of(it, struct uv_side_process, base.node);
        process->is_forgotten = true;
        if (!uv_is_closing((uv_handle_t *)&process->poll)) {
            uv_close((uv_handle_t *)&process->poll, process_closed);
        }
    }
}

static void
signal_arrived(uv_signal_t *uv, int number)
{
    struct uv_side_signal *watch = uv->data;
    watch->base.fn(watch->base.ctx, number);
}

static void
signal_closed(uv_handle_t *handle)
{
    sl_free(handle->data);
}

int
sl__uv_signal_open(struct sl_loop *loop, int number, struct sl_signal **out)
{
    struct uv_side_signal *watch = sl_calloc(1, sizeof(*watch));
    uv_signal_init(&uv_side_of(loop)->uv, &watch->uv);
    watch->uv.data = watch;
    int status = uv_signal_start(&watch->uv, signal_arrived, number);
    if (status != 0) {
        uv_close((uv_handle_t *)&watch->uv, signal_closed);
        return sl__uv_error(status, "watch", "a signal");
    }
    *out = &watch->base;
    return 0;
}

void
sl__uv_signal_close(struct sl_signal *base)
{
    uv_close((uv_handle_t *)&((struct uv_side_signal *)base)->uv, signal_closed);
}
