#include "http/api.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "http/server.h"

enum { ARGUMENTS_MAX = 1024, PIECE_BYTES = 65536 };

struct sl_http_api {
    struct sl_http_server *server;
    char *program;
    /* program, arguments, "api-request", NULL. */
    char *argv[ARGUMENTS_MAX + 3];
    uint64_t limit_ms;
    /* Can be read when the API stops. */
    int stopped;
    pthread_mutex_t lock;
    pthread_cond_t room;
    uint32_t running;
};

/* A process that carries out a request. */
struct child {
    pid_t pid;
    /* Our ends of its input and output; -1 when closed. */
    int input;
    int output;
    struct sl_buf question;
    size_t sent;
    struct sl_buf answer;
};

static uint64_t
now_ms(void)
{
    return sl_clock_mono_ns(sl_clock_system()) / 1000000u;
}

/* Waits until fewer than the most run; false when that takes too long. */
static bool
enter(struct sl_http_api *self)
{
    struct timespec until;
    int rc = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += SL_HTTP_API_WAIT_MS / 1000;
    pthread_mutex_lock(&self->lock);
    while (self->running >= SL_HTTP_API_PROCESSES_MAX && rc == 0) {
        rc = pthread_cond_timedwait(&self->room, &self->lock, &until);
    }
    bool has_entered = self->running < SL_HTTP_API_PROCESSES_MAX;
    self->running += has_entered ? 1 : 0;
    pthread_mutex_unlock(&self->lock);
    return has_entered;
}

static void
leave(struct sl_http_api *self)
{
    pthread_mutex_lock(&self->lock);
    self->running--;
    pthread_cond_signal(&self->room);
    pthread_mutex_unlock(&self->lock);
}

static void
close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

/* Starts the process in a group of its own, without any descriptor but the pipes and our stderr. */
static int
child_spawn(struct sl_http_api *self, int input, int output, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, input, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    int status = posix_spawn(pid, self->program, &actions, &attributes, self->argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return status == 0 ? 0 : sl_err_set(SL_ESYS, "start %s: %s", self->program, strerror(status));
}

static int
child_start(struct sl_http_api *self, struct child *child)
{
    int input[2] = {-1, -1};
    int output[2] = {-1, -1};
    int rc = 0;
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) {
        rc = sl_err_set(SL_ESYS, "pipe: %s", strerror(errno));
    }
    if (rc == 0) {
        rc = child_spawn(self, input[0], output[1], &child->pid);
    }
    close_fd(&input[0]);
    close_fd(&output[1]);
    if (rc != 0) {
        close_fd(&input[1]);
        close_fd(&output[0]);
        return rc;
    }
    fcntl(input[1], F_SETFL, O_NONBLOCK);
    child->input = input[1];
    child->output = output[0];
    return 0;
}

static void
child_write(struct child *child)
{
    ssize_t written =
        write(child->input, child->question.data + child->sent, child->question.size - child->sent);
    if (written > 0) {
        child->sent += (size_t)written;
    }
    bool is_over =
        child->sent == child->question.size || (written < 0 && errno != EAGAIN && errno != EINTR);
    if (is_over) {
        close_fd(&child->input);
    }
}

/* False at the end. */
static bool
child_read(struct child *child)
{
    uint8_t *room = sl_buf_reserve(&child->answer, PIECE_BYTES);
    ssize_t count = read(child->output, room, PIECE_BYTES);
    if (count > 0) {
        sl_buf_commit(&child->answer, (size_t)count);
    }
    return count > 0 || (count < 0 && errno == EINTR);
}

/* Question in, answer out, within the limit. */
static int
child_talk(struct sl_http_api *self, struct child *child)
{
    uint64_t until = now_ms() + self->limit_ms;
    for (;;) {
        uint64_t now = now_ms();
        struct pollfd fds[] = {
            {.fd = self->stopped, .events = POLLIN},
            {.fd = child->output, .events = POLLIN},
            {.fd = child->input, .events = POLLOUT},
        };
        if (now >= until) {
            return sl_err_set(SL_ETIMEOUT, "the request took longer than %llu s",
                              (unsigned long long)(self->limit_ms / 1000));
        }
        poll(fds, sizeof(fds) / sizeof(fds[0]), (int)(until - now));
        if (fds[0].revents != 0) {
            return sl_err_set(SL_ECLOSED, "the API ends");
        }
        if (fds[2].revents != 0) {
            child_write(child);
        }
        if (fds[1].revents != 0 && !child_read(child)) {
            return 0;
        }
        if (child->answer.size > SL_HTTP_API_ANSWER_BYTES_MAX) {
            return sl_err_set(SL_ELIMIT, "the answer is too large");
        }
    }
}

/* Reads "STATUS CONTENT-TYPE\n" in front of the answer. */
static int
child_take_answer(struct child *child, struct sl_http_answer *answer)
{
    const char *text = sl_buf_str(&child->answer);
    char *end;
    unsigned long status = strtoul(text, &end, 10);
    const char *line_end = strchr(text, '\n');
    if (status < 100 || status > 599 || *end != ' ' || line_end == NULL) {
        return sl_err_set(SL_EINTERNAL, "the process that carried out the request failed");
    }
    answer->status = (unsigned)status;
    answer->content_type =
        strncmp(end, " application/json\n", 18) == 0 ? NULL : "application/octet-stream";
    size_t skipped = (size_t)(line_end + 1 - text);
    sl_buf_append(&answer->body, child->answer.data + skipped, child->answer.size - skipped);
    return 0;
}

/* The process is gone afterwards, whatever it does. */
static void
child_end(struct child *child, bool is_over)
{
    if (!is_over) {
        kill(-child->pid, SIGKILL);
    }
    close_fd(&child->input);
    close_fd(&child->output);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    sl_buf_destroy(&child->question);
    sl_buf_destroy(&child->answer);
}

static int
carry_out(struct sl_http_api *self, const struct sl_http_request *request,
          struct sl_http_answer *answer)
{
    struct child child = {.input = -1, .output = -1};
    int rc = child_start(self, &child);
    if (rc != 0) {
        return rc;
    }
    sl_buf_printf(&child.question, "%s %s\n%s\n", request->method, request->target,
                  request->content_type);
    sl_buf_append(&child.question, request->body, request->size);
    rc = child_talk(self, &child);
    bool is_over = rc == 0;
    if (rc == 0) {
        rc = child_take_answer(&child, answer);
    }
    child_end(&child, is_over);
    return rc;
}

static void
handle(void *ctx, const struct sl_http_request *request, struct sl_http_answer *answer)
{
    struct sl_http_api *self = ctx;
    sigset_t broken_pipe;
    int rc;
    /* A process may end before it has read everything. */
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, NULL);
    if (!enter(self)) {
        sl_http_answer_error(answer, 503, "unreachable", "too many requests are under way");
        return;
    }
    rc = carry_out(self, request, answer);
    leave(self);
    if (rc != 0) {
        sl_log_warn("http", "%s %s: %s", request->method, request->target, sl_err_last()->msg);
        sl_http_answer_error(answer,
                             rc == SL_ETIMEOUT  ? 504
                             : rc == SL_ECLOSED ? 503
                                                : 500,
                             rc == SL_ETIMEOUT  ? "timeout"
                             : rc == SL_ECLOSED ? "unreachable"
                                                : "failed",
                             sl_err_last()->msg);
    }
}

static void
api_free(struct sl_http_api *self)
{
    for (size_t i = 0; self->argv[i] != NULL; i++) {
        sl_free(self->argv[i]);
    }
    close_fd(&self->stopped);
    pthread_cond_destroy(&self->room);
    pthread_mutex_destroy(&self->lock);
    sl_free(self->program);
    sl_free(self);
}

static int
copy_arguments(struct sl_http_api *self, const char *const *arguments)
{
    size_t count = 0;
    self->argv[count++] = sl_strdup(self->program);
    for (size_t i = 0; arguments != NULL && arguments[i] != NULL; i++) {
        if (count > ARGUMENTS_MAX) {
            return sl_err_set(SL_ELIMIT, "the API is given too many options");
        }
        self->argv[count++] = sl_strdup(arguments[i]);
    }
    self->argv[count] = sl_strdup("api-request");
    return 0;
}

int
sl_http_api_start(const struct sl_http_api_options *options, struct sl_http_api **api)
{
    struct sl_http_api *self = sl_calloc(1, sizeof(*self));
    pthread_condattr_t attributes;
    self->program = sl_strdup(options->program);
    self->limit_ms = options->limit_ms != 0 ? options->limit_ms : SL_HTTP_API_LIMIT_MS;
    self->stopped = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&self->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->room, &attributes);
    pthread_condattr_destroy(&attributes);
    struct sl_http_server_options server = {
        .listen = options->listen,
        .secret = options->secret,
        .handle = handle,
        .ctx = self,
    };
    int rc = copy_arguments(self, options->arguments);
    if (rc == 0) {
        rc = sl_http_server_start(&server, &self->server);
    }
    if (rc != 0) {
        api_free(self);
        return rc;
    }
    *api = self;
    return 0;
}

void
sl_http_api_stop(struct sl_http_api *self)
{
    if (self == NULL) {
        return;
    }
    uint64_t one = 1;
    ssize_t written = write(self->stopped, &one, sizeof(one));
    (void)written;
    sl_http_server_stop(self->server);
    api_free(self);
}

const char *
sl_http_api_address(const struct sl_http_api *self)
{
    return sl_http_server_address(self->server);
}
