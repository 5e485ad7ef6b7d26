#include "cluster/local_roles.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "cluster/kept_process.h"
#include "cluster/launcher_asked.h"
#include "cluster/launcher_local.h"
#include "cluster/launcher_standalone.h"
#include "cluster/local_processes.h"
#include "cluster/restart.h"
#include "cluster/role_base.h"
#include "cluster/settings.h"
#include "cluster/topology_master.h"
#include "loop/process.h"

/* Starts a role as a child; its output goes to ROLE.log. */
static int
start_role(struct sl_loop *loop, const struct sl_role_options *options, const char *role,
           int64_t partner, const char *const *env,
           void (*on_exit)(void *ctx, const struct sl_process_exit *how), void *ctx,
           struct sl_process **process)
{
    char path[4096];
    char pid[24];
    snprintf(pid, sizeof(pid), "%lld", (long long)partner);
    snprintf(path, sizeof(path), "%s/%s.log", options->logs, role);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const char *argv[] = {options->program,
                          role,
                          "--state",
                          options->state_url,
                          "--topology",
                          options->topology,
                          "--logs",
                          options->logs,
                          "--partner",
                          pid,
                          NULL};
    struct sl_process_options spawn = {
        .file = options->program,
        .argv = argv,
        .env = env,
        .cwd = "/",
        .stdio = {-1, log, log},
        .on_exit = on_exit,
        .ctx = ctx,
    };
    int rc = sl_process_spawn(loop, &spawn, process);
    if (log >= 0) {
        close(log);
    }
    return rc;
}

static void
ignore_exit(void *ctx, const struct sl_process_exit *how)
{
    (void)ctx;
    (void)how;
}

int
sl_guardian_start(struct sl_loop *loop, const struct sl_role_options *options,
                  const char *const *env, int64_t *pid)
{
    struct sl_process *process;
    if (sl_make_folders(options->logs) != 0) {
        sl_log_warn("cluster", "no logs: %s", sl_err_last()->msg);
    }
    int rc = start_role(loop, options, SL_ROLE_GUARDIAN, options->partner_pid, env, ignore_exit,
                        NULL, &process);
    if (rc == 0) {
        *pid = sl_process_pid(process);
        sl_process_free(process);
    }
    return rc;
}

/* The lock of guardians: its descriptor, which holds it; -1 when another one does; -2 when there
 * can be no lock, as on a disk that can not be written. */
static int
guardian_lock(const char *logs)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/guardian.lock", logs);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return -2;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool
is_guarded(const char *logs)
{
    int fd = guardian_lock(logs);
    if (fd >= 0) {
        close(fd);
    }
    return fd == -1;
}

int
sl_guardian_rescue(struct sl_loop *loop, const struct sl_role_options *options)
{
    int64_t pid;
    return is_guarded(options->logs) ? 0 : sl_guardian_start(loop, options, NULL, &pid);
}

/* A process that is watched although it is no child. */
struct watched {
    int fd;
    struct sl_fd_watch *watch;
};

static int
watch_process(struct sl_loop *loop, int64_t pid, sl_loop_fn fn, void *ctx, struct watched *out)
{
    out->fd = sl_local_process_watch(pid);
    if (out->fd < 0) {
        return sl_err_set(SL_ENOTFOUND, "process %lld has ended", (long long)pid);
    }
    int rc = sl_fd_watch_open(loop, out->fd, fn, ctx, &out->watch);
    if (rc != 0) {
        close(out->fd);
        out->fd = -1;
    }
    return rc;
}

static void
watched_close(struct watched *watched)
{
    if (watched->watch != NULL) {
        sl_fd_watch_close(watched->watch);
        close(watched->fd);
        watched->watch = NULL;
    }
}

/* The guardian. */

struct guardian {
    struct sl_role_options options;
    struct sl_loop *loop;
    struct sl_process *master;
    struct watched adopted;
    struct sl_restart restart;
    struct sl_timer timer;
    struct sl_signal *term;
    int code;
};

static void start_master(struct guardian *self);

static void
start_master_later(void *ctx, uint64_t ticket)
{
    (void)ticket;
    start_master(ctx);
}

static void
master_failed(struct guardian *self)
{
    sl_restart_failed(&self->restart, sl_loop_now_ms(self->loop));
    sl_timer_start(self->loop, &self->timer, sl_restart_backoff_ms(&self->restart),
                   start_master_later, self);
}

static void
master_exited(void *ctx, const struct sl_process_exit *how)
{
    struct guardian *self = ctx;
    sl_process_free(self->master);
    self->master = NULL;
    if (how->code == 0) {
        sl_loop_stop(self->loop);
        return;
    }
    sl_log_warn("cluster", "the topology master of %s ended: code=%d signal=%d",
                self->options.topology, how->code, how->signal);
    master_failed(self);
}

static void
start_master(struct guardian *self)
{
    int rc = start_role(self->loop, &self->options, SL_ROLE_TOPOLOGY_MASTER, getpid(), NULL,
                        master_exited, self, &self->master);
    if (rc != 0) {
        sl_log_error("cluster", "start the topology master of %s: %s", self->options.topology,
                     sl_err_last()->msg);
        master_failed(self);
    }
}

/* Whether it ended for good is found out by the next one. */
static void
adopted_ended(void *ctx)
{
    struct guardian *self = ctx;
    watched_close(&self->adopted);
    start_master(self);
}

/* Told to end: the topology master goes, too; workers end when nobody leads them for long. */
static void
guardian_told_to_end(void *ctx, int number)
{
    struct guardian *self = ctx;
    if (self->master != NULL) {
        sl_process_kill(self->master, SIGTERM);
    }
    self->code = 128 + number;
    sl_loop_stop(self->loop);
}

int
sl_guardian_run(const struct sl_role_options *options, const struct sl_settings *settings)
{
    /* It has no connections. */
    (void)settings;
    struct guardian self = {.options = *options, .adopted = {.fd = -1}};
    int lock = guardian_lock(options->logs);
    if (lock == -1) {
        return 0;
    }
    struct sl_restart_config config = sl_restart_config_default(SL_RESTART_EXPONENTIAL);
    config.initial_ms = SL_GUARDIAN_BACKOFF_MS;
    config.max_ms = SL_GUARDIAN_BACKOFF_MAX_MS;
    config.reset_ms = SL_GUARDIAN_RESET_MS;
    int rc = sl_loop_new(&self.loop);
    if (rc != 0) {
        if (lock >= 0) {
            close(lock);
        }
        return rc;
    }
    sl_log_set_role(SL_ROLE_GUARDIAN);
    sl_restart_create(&self.restart, &config, sl_random_u64(sl_loop_random(self.loop)));
    rc = sl_signal_open(self.loop, SIGTERM, guardian_told_to_end, &self, &self.term);
    if (rc == 0) {
        if (options->partner_pid == 0 || watch_process(self.loop, options->partner_pid,
                                                       adopted_ended, &self, &self.adopted) != 0) {
            start_master(&self);
        }
        sl_loop_run(self.loop);
        rc = self.code;
        sl_signal_close(self.term);
    }
    sl_timer_stop(&self.timer);
    watched_close(&self.adopted);
    if (self.master != NULL) {
        sl_process_free(self.master);
    }
    sl_restart_destroy(&self.restart);
    sl_loop_free(self.loop);
    if (lock >= 0) {
        close(lock);
    }
    return rc;
}

/* The topology master. */

struct master_role {
    struct sl_role_options options;
    struct sl_settings settings;
    struct sl_role_base base;
    /* One of them. */
    struct sl_launcher_local *local;
    struct sl_launcher_standalone *standalone;
    struct sl_launcher_asked *asked;
    struct sl_topology_master *master;
    struct watched guardian;
    struct sl_signal *term;
    int code;
};

static void
role_ended(void *ctx, int code, const char *reason)
{
    struct master_role *self = ctx;
    sl_log_info("cluster", "the topology master of %s ends: %s", self->options.topology, reason);
    self->code = code == 0 ? 0 : SL_ROLE_AGAIN;
    sl_loop_stop(self->base.loop);
}

static void
role_told_to_end(void *ctx, int number)
{
    struct master_role *self = ctx;
    self->code = 128 + number;
    sl_loop_stop(self->base.loop);
}

/* The guardian is gone: another one takes its place and watches this process, unless somebody who
 * missed us has started one with a topology master that stands by. */
static void
guardian_ended(void *ctx)
{
    struct master_role *self = ctx;
    struct sl_role_options options = self->options;
    int64_t pid = 0;
    watched_close(&self->guardian);
    options.partner_pid = getpid();
    if (is_guarded(options.logs)) {
        sl_log_info("cluster", "another guardian of %s is there", self->options.topology);
        return;
    }
    if (sl_guardian_start(self->base.loop, &options, NULL, &pid) != 0) {
        sl_log_error("cluster", "start a guardian of %s: %s", self->options.topology,
                     sl_err_last()->msg);
        return;
    }
    sl_topology_master_set_guardian(self->master, (uint64_t)pid);
    watch_process(self->base.loop, pid, guardian_ended, self, &self->guardian);
}

static void
launcher_failed(void *ctx, const char *reason)
{
    role_ended(ctx, SL_EUNAVAIL, reason);
}

/* A local topology has its workers as children; else supervisors have them. */
static struct sl_launcher
make_launcher(struct master_role *self)
{
    const struct sl_role_options *options = &self->options;
    if (self->asked != NULL) {
        return sl_launcher_asked_seam(self->asked, self->base.loop);
    }
    if (options->supervisor == NULL) {
        struct sl_launcher_local_options local = {
            .loop = self->base.loop,
            .program = options->program,
            .state_url = options->state_url,
            .topology = options->topology,
            .log_dir = options->logs,
        };
        self->local = sl_launcher_local_new(&local);
        return sl_launcher_local_seam(self->local);
    }
    struct sl_launcher_standalone_options standalone = {
        .rpc = self->base.rpc,
        .store = self->base.store,
        .topology = options->topology,
        .settings = &self->settings,
        .on_fatal = launcher_failed,
        .ctx = self,
    };
    self->standalone = sl_launcher_standalone_new(&standalone);
    return sl_launcher_standalone_seam(self->standalone);
}

static int
master_role_open(struct master_role *self)
{
    const struct sl_role_options *options = &self->options;
    const struct sl_settings *settings = &self->settings;
    struct sl_rpc_options rpc = {.role = SL_ROLE_TOPOLOGY_MASTER,
                                 .name = options->topology,
                                 .secret = options->secret,
                                 .secret_size = options->secret_len};
    int rc = sl_role_base_open(&self->base, &rpc, options->state_url, settings);
    if (rc == 0) {
        rc = sl_role_base_listen(&self->base, options->host != NULL ? options->host : "127.0.0.1");
    }
    if (rc != 0) {
        return rc;
    }
    struct sl_topology_master_options master = {
        .rpc = self->base.rpc,
        .store = self->base.store,
        .topology = options->topology,
        .launcher = make_launcher(self),
        .place = {options->supervisor, options->host, options->port},
        .guardian_pid = (uint64_t)options->partner_pid,
        .pid = (uint64_t)getpid(),
        .heartbeat_interval_ms = (uint64_t)settings->heartbeat_interval_ms,
        .heartbeat_timeout_ms = (uint64_t)settings->heartbeat_timeout_ms,
        .on_end = role_ended,
        .ctx = self,
    };
    rc = sl_topology_master_new(&master, &self->master);
    if (rc == 0) {
        rc = sl_signal_open(self->base.loop, SIGTERM, role_told_to_end, self, &self->term);
    }
    return rc;
}

static void
master_role_close(struct master_role *self)
{
    if (self->term != NULL) {
        sl_signal_close(self->term);
    }
    watched_close(&self->guardian);
    sl_topology_master_free(self->master);
    if (self->asked != NULL) {
        sl_launcher_asked_close(self->asked);
    }
    sl_launcher_local_free(self->local);
    sl_launcher_standalone_free(self->standalone);
    sl_role_base_close(&self->base);
}

int
sl_topology_master_run(const struct sl_role_options *options, const struct sl_settings *settings)
{
    return sl_topology_master_run_asked(options, settings, NULL);
}

int
sl_topology_master_run_asked(const struct sl_role_options *options,
                             const struct sl_settings *settings, struct sl_launcher_asked *launcher)
{
    struct master_role self = {.options = *options,
                               .settings = settings != NULL ? *settings : sl_settings_default(),
                               .asked = launcher,
                               .guardian = {.fd = -1}};
    int rc = sl_role_base_create(&self.base, SL_ROLE_TOPOLOGY_MASTER);
    if (rc != 0) {
        return rc;
    }
    rc = master_role_open(&self);
    if (rc == 0) {
        if (options->partner_pid != 0 &&
            watch_process(self.base.loop, options->partner_pid, guardian_ended, &self,
                          &self.guardian) != 0) {
            guardian_ended(&self);
        }
        sl_loop_run(self.base.loop);
        rc = self.code;
    } else {
        sl_log_error("cluster", "%s", sl_err_last()->msg);
        rc = SL_ROLE_AGAIN;
    }
    master_role_close(&self);
    return rc;
}
