#include "cluster/kept_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/local_processes.h"
#include "cluster/restart.h"
#include "loop/process.h"

enum {
    END_TEXT_SIZE = 256,
    REASON_SIZE = SL_ERR_MSG_SIZE + 64,
    /* Of a log, how much of its end is looked at, and how much of it is told. */
    LAST_BYTES = 4096,
    LAST_WORDS_SIZE = 160,
};

struct sl_kept_process {
    struct sl_kept_process_options options;
    struct sl_loop *loop;
    char *program;
    char **argv;
    char *cwd;
    char *log;
    char *label;
    /* The child, or what watches an adopted process. */
    struct sl_process *child;
    void *watch;
    int64_t pid;
    /* Where its output begins in the log, which others wrote before it; -1: nobody knows. */
    int64_t log_start;
    bool is_stopping;
    /* Started anew as soon as it has ended. */
    bool is_restarting;
    uint32_t restarts;
    uint32_t failures_in_row;
    uint64_t started_ms;
    char start_failure[SL_ERR_MSG_SIZE];
    struct sl_restart restart;
    /* Until the next start, until SIGKILL, or until the stop is told. */
    struct sl_timer timer;
};

/* The real adopter. */

struct system_watch {
    int fd;
    struct sl_fd_watch *watch;
    struct sl_loop *loop;
    sl_loop_fn fn;
    void *arg;
};

static void
system_unwatch(void *ctx, void *arg)
{
    struct system_watch *watch = arg;
    (void)ctx;
    sl_fd_watch_close(watch->watch);
    close(watch->fd);
    sl_free(watch);
}

static void
system_ended(void *ctx)
{
    struct system_watch *watch = ctx;
    watch->fn(watch->arg);
}

static int
system_watch(void *ctx, struct sl_loop *loop, int64_t pid, sl_loop_fn fn, void *arg, void **out)
{
    (void)ctx;
    int fd = sl_local_process_watch(pid);
    if (fd < 0) {
        return sl_err_set(SL_ENOTFOUND, "process %lld has ended", (long long)pid);
    }
    struct system_watch *watch = sl_calloc(1, sizeof(*watch));
    *watch = (struct system_watch){.fd = fd, .loop = loop, .fn = fn, .arg = arg};
    int rc = sl_fd_watch_open(loop, fd, system_ended, watch, &watch->watch);
    if (rc != 0) {
        close(fd);
        sl_free(watch);
        return rc;
    }
    *out = watch;
    return 0;
}

static void
system_kill(void *ctx, int64_t pid, int number)
{
    (void)ctx;
    kill((pid_t)-pid, number);
}

const struct sl_adopter *
sl_adopter_system(void)
{
    static const struct sl_adopter adopter = {system_watch, system_unwatch, system_kill, NULL};
    return &adopter;
}

int
sl_make_folders(const char *path)
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

static const struct sl_adopter *
adopter_of(const struct sl_kept_process *self)
{
    return self->options.adopter;
}

struct sl_kept_process *
sl_kept_process_new(const struct sl_kept_process_options *options)
{
    struct sl_kept_process *self = sl_calloc(1, sizeof(*self));
    struct sl_restart_config config = sl_restart_config_default(SL_RESTART_EXPONENTIAL);
    size_t count = 0;
    config.initial_ms = SL_KEPT_BACKOFF_MS;
    config.max_ms = SL_KEPT_BACKOFF_MAX_MS;
    config.reset_ms = SL_KEPT_RESET_MS;
    self->options = *options;
    self->loop = options->loop;
    self->program = sl_strdup(options->program);
    while (options->argv[count] != NULL) {
        count++;
    }
    self->argv = sl_calloc(count + 1, sizeof(*self->argv));
    for (size_t i = 0; i < count; i++) {
        self->argv[i] = sl_strdup(options->argv[i]);
    }
    self->cwd = options->cwd != NULL ? sl_strdup(options->cwd) : NULL;
    self->log = sl_strdup(options->log);
    self->label = sl_strdup(options->label);
    self->restarts = options->restarts;
    if (self->options.adopter == NULL) {
        self->options.adopter = sl_adopter_system();
    }
    sl_restart_create(&self->restart, &config, sl_random_u64(sl_loop_random(self->loop)));
    return self;
}

/* Lets the process go without ending it. */
static void
forget_process(struct sl_kept_process *self)
{
    sl_process_free(self->child);
    self->child = NULL;
    if (self->watch != NULL) {
        adopter_of(self)->unwatch(adopter_of(self)->ctx, self->watch);
        self->watch = NULL;
    }
    self->pid = 0;
}

void
sl_kept_process_free(struct sl_kept_process *self)
{
    if (self == NULL) {
        return;
    }
    forget_process(self);
    sl_timer_stop(&self->timer);
    sl_restart_destroy(&self->restart);
    for (size_t i = 0; self->argv[i] != NULL; i++) {
        sl_free(self->argv[i]);
    }
    sl_free(self->argv);
    sl_free(self->program);
    sl_free(self->cwd);
    sl_free(self->log);
    sl_free(self->label);
    sl_free(self);
}

static void
start_again(void *ctx, uint64_t ticket)
{
    (void)ticket;
    sl_kept_process_start(ctx);
}

static void
tell_stopped(void *ctx, uint64_t ticket)
{
    struct sl_kept_process *self = ctx;
    (void)ticket;
    self->options.listener.on_stopped(self->options.listener.ctx);
}

/* Plans the next start; false when there is none any more. */
static bool
start_later(struct sl_kept_process *self)
{
    uint64_t delay = 0;
    if (!self->is_restarting) {
        uint64_t now_ms = sl_loop_now_ms(self->loop);
        self->failures_in_row =
            now_ms - self->started_ms < SL_KEPT_RESET_MS ? self->failures_in_row + 1 : 1;
        if (self->options.failures_max != 0 &&
            self->failures_in_row >= self->options.failures_max) {
            return false;
        }
        sl_restart_failed(&self->restart, now_ms);
        delay = sl_restart_backoff_ms(&self->restart);
    }
    self->is_restarting = false;
    self->restarts++;
    sl_timer_start(self->loop, &self->timer, delay, start_again, self);
    return true;
}

static void
give_up(struct sl_kept_process *self, const char *text)
{
    const struct sl_kept_listener *listener = &self->options.listener;
    char reason[REASON_SIZE];
    snprintf(reason, sizeof(reason), "it failed %u times in a row, the last time with %s",
             self->options.failures_max, text);
    sl_log_error("cluster", "%s is given up: %s", self->label, reason);
    if (listener->on_given_up != NULL) {
        listener->on_given_up(listener->ctx, reason);
    }
}

/* After a process that ended by itself, or did not begin. */
static void
start_again_later(struct sl_kept_process *self, const char *text)
{
    const struct sl_kept_listener *listener = &self->options.listener;
    if (!start_later(self)) {
        give_up(self, text);
    } else if (listener->on_ended != NULL) {
        listener->on_ended(listener->ctx, text);
    }
}

/* The output of the process, or its end; the size of it. */
static size_t
read_output(const struct sl_kept_process *self, char *bytes, size_t size)
{
    struct stat status;
    ssize_t got = 0;
    int fd = open(self->log, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && self->log_start >= 0 && fstat(fd, &status) == 0 &&
        status.st_size > self->log_start) {
        int64_t length = status.st_size - self->log_start;
        int64_t start = length > (int64_t)size ? status.st_size - (int64_t)size : self->log_start;
        got = pread(fd, bytes, size, start);
    }
    if (fd >= 0) {
        close(fd);
    }
    return got > 0 ? (size_t)got : 0;
}

static bool
begins(const char *line, size_t len, const char *with)
{
    return len >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

/*
 * What the process said at last: its last error, or when it had hardly begun its last line.
 * "worker:
 * ..." is what every worker says. Empty when it said nothing, or was told to end.
 */
static void
last_words(const struct sl_kept_process *self, char *text, size_t size)
{
    char bytes[LAST_BYTES];
    size_t end = read_output(self, bytes, sizeof(bytes));
    const char *found = NULL;
    size_t found_len = 0;
    bool is_error = false;
    bool is_early = sl_loop_now_ms(self->loop) - self->started_ms < SL_KEPT_RESET_MS;
    while (end > 0 && !is_error && !self->is_restarting) {
        size_t start = end - 1;
        while (start > 0 && bytes[start - 1] != '\n') {
            start--;
        }
        const char *line = bytes + start;
        size_t len = end - start - (bytes[end - 1] == '\n');
        is_error = begins(line, len, "error: ");
        if (is_error) {
            found = line + strlen("error: ");
            found_len = len - strlen("error: ");
        } else if (is_early && found == NULL && len > 0 && !begins(line, len, "worker: ")) {
            found = line;
            found_len = len;
        }
        end = start;
    }
    snprintf(text, size, "%.*s", (int)found_len, found != NULL ? found : "");
    for (char *at = text; *at != '\0'; at++) {
        *at = (unsigned char)*at < ' ' || *at == 0x7f ? ' ' : *at;
    }
}

/* What follows the end of a process. */
static void
process_ended(struct sl_kept_process *self, const char *text, bool is_zero)
{
    const struct sl_kept_listener *listener = &self->options.listener;
    forget_process(self);
    sl_timer_stop(&self->timer);
    if (self->is_stopping || (is_zero && self->options.ends_with_zero && !self->is_restarting)) {
        self->is_stopping = true;
        listener->on_stopped(listener->ctx);
        return;
    }
    start_again_later(self, text);
}

static void
child_exited(void *ctx, const struct sl_process_exit *how)
{
    char text[END_TEXT_SIZE];
    char words[LAST_WORDS_SIZE];
    last_words(ctx, words, sizeof(words));
    const char *colon = words[0] != '\0' ? ": " : "";
    if (how->signal != 0) {
        snprintf(text, sizeof(text), "signal %d (%s)%s%s", how->signal, strsignal(how->signal),
                 colon, words);
    } else {
        snprintf(text, sizeof(text), "exit code %d%s%s", how->code, colon, words);
    }
    process_ended(ctx, text, how->signal == 0 && how->code == 0);
}

static void
adopted_exited(void *ctx)
{
    process_ended(ctx, "an end that nobody saw", false);
}

/* Never told inside sl_kept_process_start. */
static void
start_failed(void *ctx, uint64_t ticket)
{
    struct sl_kept_process *self = ctx;
    (void)ticket;
    start_again_later(self, self->start_failure);
}

static int
open_log(const struct sl_kept_process *self)
{
    int fd = open(self->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
        sl_log_warn("cluster", "no log of %s: %s: %s", self->label, self->log, strerror(errno));
    }
    return fd;
}

void
sl_kept_process_start(struct sl_kept_process *self)
{
    struct stat status;
    int log = open_log(self);
    self->log_start = log >= 0 && fstat(log, &status) == 0 ? status.st_size : -1;
    self->started_ms = sl_loop_now_ms(self->loop);
    struct sl_process_options options = {
        .file = self->program,
        .argv = (const char *const *)self->argv,
        /* A folder that is gone must not keep it from running. */
        .cwd = self->cwd != NULL && stat(self->cwd, &status) == 0 && S_ISDIR(status.st_mode)
                   ? self->cwd
                   : NULL,
        .stdio = {-1, log, log},
        .on_exit = child_exited,
        .ctx = self,
    };
    int rc = sl_process_spawn(self->loop, &options, &self->child);
    if (log >= 0) {
        close(log);
    }
    if (rc != 0) {
        snprintf(self->start_failure, sizeof(self->start_failure), "%s", sl_err_last()->msg);
        sl_log_error("cluster", "%s: %s", self->label, self->start_failure);
        sl_timer_start(self->loop, &self->timer, 0, start_failed, self);
        return;
    }
    self->pid = sl_process_pid(self->child);
    if (self->options.listener.on_started != NULL) {
        self->options.listener.on_started(self->options.listener.ctx);
    }
}

int
sl_kept_process_adopt(struct sl_kept_process *self, int64_t pid)
{
    int rc = adopter_of(self)->watch(adopter_of(self)->ctx, self->loop, pid, adopted_exited, self,
                                     &self->watch);
    if (rc == 0) {
        self->pid = pid;
        self->started_ms = sl_loop_now_ms(self->loop);
    }
    return rc;
}

static void
send_signal(struct sl_kept_process *self, int number)
{
    if (self->child != NULL) {
        sl_process_kill(self->child, number);
    } else if (self->pid != 0) {
        adopter_of(self)->kill(adopter_of(self)->ctx, self->pid, number);
    }
}

static void
end_by_force(void *ctx, uint64_t ticket)
{
    (void)ticket;
    send_signal(ctx, SIGKILL);
}

/* Asks the process to end, and makes it end when it does not. Its end is told later. */
static void
end_process(struct sl_kept_process *self)
{
    send_signal(self, SIGTERM);
    sl_timer_start(self->loop, &self->timer, SL_KEPT_GRACE_MS, end_by_force, self);
}

void
sl_kept_process_restart(struct sl_kept_process *self)
{
    if (self->is_stopping) {
        return;
    }
    if (self->pid != 0) {
        self->is_restarting = true;
        end_process(self);
    } else {
        /* It waits for its next start. */
        sl_timer_start(self->loop, &self->timer, 0, start_again, self);
    }
}

void
sl_kept_process_stop(struct sl_kept_process *self)
{
    if (self->is_stopping) {
        return;
    }
    self->is_stopping = true;
    if (self->pid != 0) {
        end_process(self);
    } else {
        sl_timer_start(self->loop, &self->timer, 0, tell_stopped, self);
    }
}

int64_t
sl_kept_process_pid(const struct sl_kept_process *self)
{
    return self->pid;
}

uint32_t
sl_kept_process_restarts(const struct sl_kept_process *self)
{
    return self->restarts;
}

bool
sl_kept_process_is_stopping(const struct sl_kept_process *self)
{
    return self->is_stopping;
}
