#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/vec.h"
#include "cluster/client_launcher.h"
#include "cluster/local_processes.h"
#include "cluster/local_roles.h"
#include "cluster/runtime_priv.h"

/*
 * The local launcher of commands: a topology is stored here and a guardian is started for it, which
 * starts the rest. The topology master carries out changes. At the end it ends everything; what it
 * leaves is ended here.
 */

struct local {
    struct sl_runtime *runtime;
};

static int
local_initialize(void *ctx, struct sl_runtime *runtime)
{
    struct local *self = ctx;
    self->runtime = runtime;
    return 0;
}

static void
local_close(void *ctx)
{
    sl_free(ctx);
}

/* Killing. */

struct pids SL_VEC_BODY(int64_t);
struct texts SL_VEC_BODY(char *);

static void
note_process(void *ctx, int64_t pid, const char *role, int32_t container)
{
    struct pids *pids = ctx;
    (void)role;
    (void)container;
    sl_vec_push(pids, pid);
}

/* Waits until none of the processes is left; those that stay are ended by force after the limit. */
static void
end_processes(struct sl_runtime *self, const char *topology, uint64_t limit_ms)
{
    struct pids pids = SL_VEC_INIT;
    sl_local_processes_each(self->state_url, topology, note_process, &pids);
    uint64_t until = sl_loop_now_ms(self->loop) + limit_ms;
    for (size_t i = 0; i < pids.count; i++) {
        struct pollfd watched = {.fd = sl_local_process_watch(pids.items[i]), .events = POLLIN};
        uint64_t now = sl_loop_now_ms(self->loop);
        if (watched.fd < 0) {
            continue;
        }
        if (poll(&watched, 1, now < until ? (int)(until - now) : 0) == 0) {
            sl__rt_tell(self, "process %lld is ended by force", (long long)pids.items[i]);
            kill((pid_t)pids.items[i], SIGKILL);
            poll(&watched, 1, 1000);
        }
        close(watched.fd);
    }
    sl_vec_destroy(&pids);
}

/* Marks the topology as one that ends, so that a topology master that comes now ends it, too. */
static int
mark_killed(struct sl_runtime *self, const char *topology)
{
    struct sl_arena arena;
    struct sl_execution_state execution;
    char path[SL_STATE_PATH_MAX + 1];
    int rc = sl__rt_get_part(self, SL_LAYOUT_EXECUTION_STATE, topology);
    if (rc != 0) {
        return rc == SL_ENOTFOUND ? 0 : rc;
    }
    sl_arena_create(&arena, 0, 0);
    if (sl_execution_state_decode(self->outcome.value.data, self->outcome.value.size, &arena,
                                  &execution) == 0) {
        struct sl_buf value = {0};
        execution.state = SL_TOPOLOGY_KILLED;
        sl_execution_state_encode(&execution, &value);
        sl__rt_begin(self);
        sl_state_set(self->store, sl_layout_path(path, SL_LAYOUT_EXECUTION_STATE, topology),
                     value.data, value.size, SL_STATE_ANY_VERSION, sl__rt_store_done, self);
        rc = sl__rt_end_store_call(self);
        sl_buf_destroy(&value);
    }
    sl_arena_destroy(&arena);
    return rc == SL_ENOTFOUND ? 0 : rc;
}

/* Has the topology master end everything; when there is none the processes are ended one by one. */
static int
kill_processes(struct sl_runtime *self, const struct sl_runtime_kill *kill)
{
    struct sl_control_request request = {.time_limit_ms = kill->wait_ms};
    const char *topology = kill->topology;
    bool is_ended = kill->is_ended;
    int rc = 0;
    if (!is_ended && sl__rt_find_presence(self, topology).is_led) {
        rc = sl__rt_ask(self, topology, SL_TM_KILL, &request, kill->wait_ms + kill->timeout_ms);
        is_ended = rc == 0;
        if (rc != 0) {
            sl__rt_tell(self, "%s: %s; its processes are ended one by one", topology,
                        sl_err_last()->msg);
        }
    }
    if (!is_ended) {
        rc = mark_killed(self, topology);
        end_processes(self, topology, 0);
    }
    end_processes(self, topology, SL_RUNTIME_END_MS);
    return rc;
}

static int
local_on_kill(void *ctx, const struct sl_runtime_kill *kill)
{
    struct sl_runtime *runtime = ((struct local *)ctx)->runtime;
    bool is_found = sl__rt_find_presence(runtime, kill->topology).is_any || kill->is_ended;
    int rc = kill_processes(runtime, kill);
    if (rc == 0) {
        rc = sl__rt_remove_nodes(runtime, kill->topology, &is_found);
    }
    if (rc == 0 && !is_found) {
        rc = sl_err_set(SL_ENOTFOUND, "no topology of that name is running");
    }
    return rc;
}

/* Submitting. */

/* The environment of this process with the settings of the command, wherever they came from. */
static void
settings_environment(const struct sl_runtime *runtime, struct texts *env)
{
    char text[8192];
    for (size_t i = 0; sl_settings_variable(&runtime->settings, i, text, sizeof(text)); i++) {
        sl_vec_push(env, sl_strdup(text));
    }
    snprintf(text, sizeof(text), "STREAMLUA_LAUNCHER=%s", runtime->launcher);
    sl_vec_push(env, sl_strdup(text));
    if (runtime->secret[0] != '\0') {
        snprintf(text, sizeof(text), "STREAMLUA_SECRET=%s", runtime->secret);
        sl_vec_push(env, sl_strdup(text));
    }
    size_t given = env->count;
    for (char **at = environ; *at != NULL; at++) {
        bool is_given = false;
        for (size_t i = 0; i < given && !is_given; i++) {
            size_t length = strcspn(env->items[i], "=") + 1;
            is_given = strncmp(env->items[i], *at, length) == 0;
        }
        if (!is_given) {
            sl_vec_push(env, sl_strdup(*at));
        }
    }
    sl_vec_push(env, NULL);
}

static int
schedule_start(struct sl_runtime *runtime, const char *topology)
{
    char logs[4096];
    int64_t pid;
    struct texts env = SL_VEC_INIT;
    snprintf(logs, sizeof(logs), "%s/%s", runtime->logs, topology);
    struct sl_role_options options = {
        .state_url = runtime->state_url,
        .topology = topology,
        .program = runtime->program,
        .logs = logs,
    };
    settings_environment(runtime, &env);
    int rc = sl_guardian_start(runtime->loop, &options, (const char *const *)env.items, &pid);
    for (size_t i = 0; i < env.count; i++) {
        sl_free(env.items[i]);
    }
    sl_vec_destroy(&env);
    return rc;
}

/* "local", or the name of the launcher's file. */
static const char *
scheduler_name(const struct sl_runtime *runtime)
{
    const char *slash = strrchr(runtime->launcher, '/');
    return slash != NULL ? slash + 1 : runtime->launcher;
}

/* What can not start is taken back whole. */
static int
local_on_schedule(void *ctx, const struct sl_runtime_submission *submission)
{
    struct local *self = ctx;
    const char *topology = submission->topology;
    int rc = sl__rt_store_submission(self->runtime, submission, scheduler_name(self->runtime));
    if (rc != 0) {
        return rc;
    }
    rc = schedule_start(self->runtime, topology);
    if (rc == 0) {
        rc = sl__rt_await_settled(self->runtime, topology, submission->timeout_ms);
    }
    if (rc != 0 && rc != SL_ETIMEOUT) {
        struct sl_err why;
        struct sl_runtime_kill kill = {.topology = topology,
                                       .timeout_ms = self->runtime->options.timeout_ms};
        sl_err_move(&why);
        local_on_kill(self, &kill);
        return sl_err_set(why.code, "%s", why.msg);
    }
    return rc;
}

/* Changing: the topology master does it. */

static int
local_on_update(void *ctx, const struct sl_runtime_change *change,
                const struct sl_update_result **result)
{
    return sl__rt_update(((struct local *)ctx)->runtime, change, result);
}

static int
local_on_restart(void *ctx, const char *topology, int32_t container, uint64_t timeout_ms)
{
    struct sl_control_request request = {.time_limit_ms = timeout_ms, .container = container};
    return sl__rt_ask(((struct local *)ctx)->runtime, topology, SL_TM_RESTART, &request,
                      timeout_ms + 1000);
}

void
sl_client_launcher_local(struct sl_client_launcher *launcher)
{
    *launcher = (struct sl_client_launcher){
        .initialize = local_initialize,
        .on_schedule = local_on_schedule,
        .on_update = local_on_update,
        .on_kill = local_on_kill,
        .on_restart = local_on_restart,
        .close = local_close,
        .self = sl_calloc(1, sizeof(struct local)),
    };
}
