#include "cluster/runtime_manager.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "cluster/runtime_priv.h"
#include "cluster/scheduler_client.h"
#include "state/open.h"

enum { LEADER_MS = 5000 };

static void
runtime_free(struct sl_runtime *self)
{
    sl_timer_stop(&self->deadline);
    if (self->rpc != NULL) {
        sl_rpc_free(self->rpc);
    }
    sl_state_loop_executor_destroy(&self->executor);
    sl_loop_free(self->loop);
    for (size_t i = 0; i < self->names.count; i++) {
        sl_free(self->names.items[i]);
    }
    sl_vec_destroy(&self->names);
    sl_arena_destroy(&self->view_arena);
    sl_arena_destroy(&self->answer_arena);
    sl_arena_destroy(&self->planned_arena);
    sl_buf_destroy(&self->outcome.value);
    sl_free(self->state_url);
    sl_free(self->program);
    sl_free(self->logs);
    sl_free(self->launcher);
    sl_free(self->secret);
    sl_free(self);
}

/* Who asks ("ann@host, process 17"), for those who find that under way. */
static void
name_client(char *dst, size_t size)
{
    char host[65] = "";
    const char *user = getenv("USER");
    gethostname(host, sizeof(host) - 1);
    if (user != NULL && user[0] != '\0') {
        snprintf(dst, size, "%.64s@%s, process %ld", user, host, (long)getpid());
    } else {
        snprintf(dst, size, "user %u@%s, process %ld", (unsigned)getuid(), host, (long)getpid());
    }
}

int
sl_runtime_open(const struct sl_runtime_options *options, struct sl_runtime **runtime)
{
    struct sl_runtime *self = sl_calloc(1, sizeof(*self));
    self->options = *options;
    self->state_url = sl_strdup(options->state_url);
    self->program = sl_strdup(options->program);
    self->logs = sl_strdup(options->logs);
    self->launcher = sl_strdup(options->launcher != NULL ? options->launcher : "local");
    self->secret = sl_strdup(options->secret != NULL ? options->secret : "");
    self->settings = options->settings != NULL ? *options->settings : sl_settings_default();
    if (self->options.timeout_ms == 0) {
        self->options.timeout_ms = SL_RUNTIME_STEP_MS;
    }
    self->leader_ms = LEADER_MS;
    sl_arena_create(&self->view_arena, 0, 0);
    sl_arena_create(&self->answer_arena, 0, 0);
    sl_arena_create(&self->planned_arena, 0, 0);
    int rc = sl_loop_new(&self->loop);
    if (rc == 0) {
        sl_state_loop_executor_create(&self->executor, self->loop);
        struct sl_state_open_options store = {0};
        sl_settings_apply_state(&self->settings, &store);
        store.timeout_ms = self->options.timeout_ms;
        store.is_reader = options->is_reader;
        self->store = sl_state_open_new(self->state_url, &self->executor.executor, &store);
        rc = self->store != NULL ? 0 : sl_err_last()->code;
    }
    if (rc != 0) {
        runtime_free(self);
        return rc;
    }
    char name[192];
    name_client(name, sizeof(name));
    struct sl_rpc_options rpc = {.role = "client",
                                 .name = name,
                                 .secret = self->secret,
                                 .secret_size = strlen(self->secret)};
    sl_settings_apply_rpc(&self->settings, &rpc);
    self->rpc = sl_rpc_new(self->loop, &rpc);
    *runtime = self;
    return 0;
}

static void
store_closed(void *arg)
{
    *(bool *)arg = true;
}

void
sl_runtime_close(struct sl_runtime *self)
{
    if (self == NULL) {
        return;
    }
    bool is_closed = false;
    sl_state_store_close(self->store, store_closed, &is_closed);
    while (!is_closed) {
        sl_loop_run_once(self->loop, -1);
    }
    runtime_free(self);
}

/* The runner. */

static int
run_set_active(struct sl_runtime *self, const struct sl_runtime_request *request, bool is_active,
               struct sl_runtime_answer *answer)
{
    const struct sl_topology_view *view;
    struct sl_control_request wanted = {.time_limit_ms = request->timeout_ms,
                                        .is_active = is_active};
    int rc = sl_runtime_load(self, request->topology, &view);
    if (rc == 0) {
        answer->was_so = view->execution != NULL && view->execution->is_active == is_active;
        rc = sl__rt_ask(self, request->topology, SL_TM_SET_STATE, &wanted,
                        request->timeout_ms + 1000);
    }
    return rc;
}

static int
run_submit(struct sl_runtime *self, const struct sl_runtime_submission *submission,
           struct sl_runtime_answer *answer)
{
    struct sl_client_launcher launcher;
    int rc = sl__rt_check_name(submission->topology);
    if (rc == 0) {
        rc = sl_client_launcher_open(self->launcher, &launcher);
    }
    if (rc != 0) {
        return rc;
    }
    self->has_planned = false;
    rc = launcher.initialize(launcher.self, self);
    if (rc == 0) {
        rc = launcher.on_schedule(launcher.self, submission);
    }
    launcher.close(launcher.self);
    answer->planned = self->has_planned ? &self->planned : NULL;
    return rc;
}

static int
run_update(struct sl_runtime *self, const struct sl_runtime_change *change,
           struct sl_runtime_answer *answer)
{
    struct sl_scheduler_client client;
    int rc = sl__rt_check_running(self, change->current->topology);
    if (rc == 0 && change->proposed->plan.container_count == 0) {
        rc = sl_err_set(SL_EINVAL, "the proposed plan has no container");
    }
    if (rc == 0) {
        self->has_planned = false;
        sl_scheduler_client_open(self, &client);
        rc = client.update(client.self, change, &answer->update);
        client.close(client.self);
        answer->planned = self->has_planned ? &self->planned : NULL;
    }
    return rc;
}

/* Also of a topology that does not run any more: what is left of it goes. */
static int
run_kill(struct sl_runtime *self, const struct sl_runtime_kill *kill)
{
    struct sl_scheduler_client client;
    int rc = sl__rt_check_name(kill->topology);
    if (rc == 0) {
        sl_scheduler_client_open(self, &client);
        rc = client.kill(client.self, kill);
        client.close(client.self);
    }
    return rc;
}

static int
run_restart(struct sl_runtime *self, const struct sl_runtime_request *request)
{
    struct sl_scheduler_client client;
    int rc = sl__rt_check_running(self, request->topology);
    if (rc == 0) {
        sl_scheduler_client_open(self, &client);
        rc =
            client.restart(client.self, request->topology, request->container, request->timeout_ms);
        client.close(client.self);
    }
    return rc;
}

int
sl_runtime_run(struct sl_runtime *self, const struct sl_runtime_request *request,
               struct sl_runtime_answer *answer)
{
    memset(answer, 0, sizeof(*answer));
    switch (request->command) {
    case SL_RUNTIME_SUBMIT:
        return run_submit(self, &request->submission, answer);
    case SL_RUNTIME_KILL:
        return run_kill(self, &request->kill);
    case SL_RUNTIME_ACTIVATE:
        return run_set_active(self, request, true, answer);
    case SL_RUNTIME_DEACTIVATE:
        return run_set_active(self, request, false, answer);
    case SL_RUNTIME_UPDATE:
        return run_update(self, &request->change, answer);
    case SL_RUNTIME_RESTART:
        return run_restart(self, request);
    default:
        return sl_err_set(SL_EINVAL, "there is no command %d", (int)request->command);
    }
}
