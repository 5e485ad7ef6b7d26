#include "cluster/runtime_manager.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/vec.h"
#include "cluster/local_processes.h"
#include "cluster/local_roles.h"
#include "rpc/rpc.h"
#include "state/layout.h"
#include "state/leader.h"
#include "state/lock.h"
#include "state/loop_executor.h"
#include "state/open.h"
#include "state/remove.h"

enum {
    LOCK_MS = 5000,
    /* How long a command waits for a topology master that is being started anew. */
    LEADER_MS = 5000,
    /* The same when there is no process that could start one. */
    STEP_MS = 500,
    UPDATE_MARGIN_MS = 180000,
    PACKAGE_BYTES = 64,
};

struct pids SL_VEC_BODY(int64_t);
struct texts SL_VEC_BODY(char *);

/* What a call of the store, the lock or a gateway ended with. */
struct outcome {
    bool is_done;
    int status;
    struct sl_buf value;
    /* Of rpc calls. */
    enum sl_rpc_status rpc;
    char reason[SL_REASON_SIZE];
};

struct sl_runtime {
    struct sl_runtime_options options;
    char *state_url;
    char *program;
    char *logs;
    struct sl_loop *loop;
    struct sl_state_loop_executor executor;
    struct sl_state_store *store;
    struct sl_rpc *rpc;
    struct sl_timer deadline;
    bool is_late;
    struct outcome outcome;
    struct texts names;
    /* Of load. */
    struct sl_arena view_arena;
    struct sl_topology_view view;
    struct sl_execution_state execution;
    struct sl_stored_plan plan;
    struct sl_package package;
    /* Of the last answer of a topology master. */
    struct sl_arena answer_arena;
    struct sl_control_status status;
    struct sl_update_result result;
    /* Leader retrieval. */
    struct sl_state_leader_listener *leader;
    bool is_leader_known;
    char leader_address[SL_STATE_OWNER_TEXT_MAX];
    uint64_t leader_token;
    /* Progress of an update. */
    struct sl_rpc_gateway *watched;
    uint64_t seen_events;
};

static void tell(struct sl_runtime *self, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void
tell(struct sl_runtime *self, const char *fmt, ...)
{
    char text[512];
    if (self->options.progress == NULL) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    self->options.progress(self->options.ctx, text);
}

static void
deadline_over(void *ctx, uint64_t ticket)
{
    struct sl_runtime *self = ctx;
    (void)ticket;
    self->is_late = true;
}

/* Turns of the loop until *done, or the limit; returns *done. */
static bool
wait_for(struct sl_runtime *self, const bool *done, uint64_t limit_ms)
{
    self->is_late = false;
    sl_timer_start(self->loop, &self->deadline, limit_ms, deadline_over, self);
    while (!*done && !self->is_late) {
        sl_loop_run_once(self->loop, -1);
    }
    sl_timer_stop(&self->deadline);
    return *done;
}

/* The store. */

static void
store_done(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_runtime *self = ctx;
    struct outcome *outcome = &self->outcome;
    outcome->is_done = true;
    outcome->status = status;
    sl_buf_clear(&outcome->value);
    if (status != 0) {
        snprintf(outcome->reason, sizeof(outcome->reason), "%s", sl_err_last()->msg);
    } else if (result->value != NULL) {
        sl_buf_append(&outcome->value, result->value, result->size);
    }
}

static void
begin(struct sl_runtime *self)
{
    self->outcome.is_done = false;
    self->outcome.status = 0;
    self->outcome.reason[0] = '\0';
}

/* Waits for the call that was begun. The store has a time limit of its own. */
static int
end_store_call(struct sl_runtime *self)
{
    static const uint64_t ample_ms = 3600000;
    wait_for(self, &self->outcome.is_done, ample_ms);
    return self->outcome.status != 0 ? sl_err_set(self->outcome.status, "%s", self->outcome.reason)
                                     : 0;
}

static int
get_part(struct sl_runtime *self, enum sl_layout_part part, const char *topology)
{
    char path[SL_STATE_PATH_MAX + 1];
    begin(self);
    sl_state_get(self->store, sl_layout_path(path, part, topology), store_done, self);
    return end_store_call(self);
}

static int
check_name(const char *topology)
{
    return sl_name_check("topology name", topology, strlen(topology));
}

/* The leader. */

static void
leader_told(void *ctx, const struct sl_state_leader_info *info)
{
    struct sl_runtime *self = ctx;
    self->is_leader_known = info != NULL;
    if (info != NULL) {
        snprintf(self->leader_address, sizeof(self->leader_address), "%s", info->address);
        self->leader_token = info->token;
    }
}

/* Waits until somebody leads the topology; SL_EUNAVAIL when nobody does within the limit. */
static int
find_leader(struct sl_runtime *self, const char *topology, uint64_t limit_ms)
{
    char path[SL_STATE_PATH_MAX + 1];
    self->is_leader_known = false;
    self->leader = sl_state_leader_listener_new(
        self->store, sl_layout_path(path, SL_LAYOUT_TOPOLOGY_LEADER, topology), leader_told, self);
    bool is_found = wait_for(self, &self->is_leader_known, limit_ms);
    sl_state_leader_listener_free(self->leader);
    self->leader = NULL;
    return is_found ? 0 : sl_err_set(SL_EUNAVAIL, "no process leads %s at present", topology);
}

/* Which processes of a topology there are. */
struct presence {
    bool is_any;
    /* One that leads it, or has one started. */
    bool is_led;
};

static void
note_presence(void *ctx, int64_t pid, const char *role, int32_t container)
{
    struct presence *presence = ctx;
    (void)pid;
    (void)container;
    presence->is_any = true;
    presence->is_led = presence->is_led || strcmp(role, SL_ROLE_WORKER) != 0;
}

static struct presence
find_presence(const struct sl_runtime *self, const char *topology)
{
    struct presence presence = {0};
    sl_local_processes_each(self->state_url, topology, note_presence, &presence);
    return presence;
}

/* Calls of the topology master. */

static void
call_done(void *ctx, const struct sl_rpc_result *result)
{
    struct sl_runtime *self = ctx;
    struct outcome *outcome = &self->outcome;
    outcome->is_done = true;
    outcome->rpc = result->status;
    outcome->status = result->code;
    snprintf(outcome->reason, sizeof(outcome->reason), "%s", result->reason);
    sl_buf_clear(&outcome->value);
    if (result->size > 0) {
        sl_buf_append(&outcome->value, result->body, result->size);
    }
}

static int
connect_master(struct sl_runtime *self, const char *topology, struct sl_rpc_gateway **gateway)
{
    char endpoint[SL_RPC_NAME_MAX + 1];
    snprintf(endpoint, sizeof(endpoint), SL_ENDPOINT_TOPOLOGY_MASTER "%.64s", topology);
    return sl_rpc_connect(self->rpc, self->leader_address, endpoint, self->leader_token, gateway);
}

/* One call of the leader that find_leader found. */
static int
call_once(struct sl_runtime *self, const char *topology, uint32_t method, const struct sl_buf *body,
          uint64_t limit_ms)
{
    struct sl_rpc_gateway *gateway = NULL;
    int rc = connect_master(self, topology, &gateway);
    if (rc != 0) {
        return rc;
    }
    begin(self);
    sl_rpc_call(gateway, method, body->data, body->size, limit_ms, call_done, self);
    wait_for(self, &self->outcome.is_done, limit_ms + 1000);
    sl_rpc_gateway_free(gateway);
    if (!self->outcome.is_done) {
        return sl_err_set(SL_ETIMEOUT, "the topology master of %s does not answer", topology);
    }
    return self->outcome.rpc == SL_RPC_SUCCESS
               ? 0
               : sl_err_set(self->outcome.status, "%s", self->outcome.reason);
}

/* The topology is there, by the state manager's word. */
static int
check_running(struct sl_runtime *self, const char *topology)
{
    int rc = check_name(topology);
    if (rc == 0) {
        rc = get_part(self, SL_LAYOUT_TOPOLOGY, topology);
    }
    return rc == SL_ENOTFOUND ? sl_err_set(SL_ENOTFOUND, "no topology of that name is running")
                              : rc;
}

static bool
is_worth_another_try(const struct outcome *outcome)
{
    return outcome->rpc == SL_RPC_STALE_TOKEN || outcome->rpc == SL_RPC_UNREACHABLE ||
           (outcome->rpc == SL_RPC_FAILURE && outcome->status == SL_EAGAIN) ||
           (outcome->rpc == SL_RPC_ERROR && outcome->status == SL_ENOTFOUND);
}

/*
 * Finds the leader and calls it. A leader that is gone, or not ready yet, is looked for again until
 * LEADER_MS have passed; only what can be asked twice may be lost on the way.
 */
static int
call_master(struct sl_runtime *self, const char *topology, uint32_t method,
            const struct sl_buf *body, uint64_t limit_ms)
{
    static const uint64_t pause_ms = 50;
    /* A guardian starts the next topology master at once; without one there is nobody to wait for.
     */
    bool is_hopeful = find_presence(self, topology).is_led;
    uint64_t until = sl_loop_now_ms(self->loop) + (is_hopeful ? LEADER_MS : STEP_MS);
    for (;;) {
        uint64_t now = sl_loop_now_ms(self->loop);
        int rc = find_leader(self, topology, now < until ? until - now : 1);
        if (rc != 0) {
            return rc;
        }
        rc = call_once(self, topology, method, body, limit_ms);
        if (rc == 0 || !is_worth_another_try(&self->outcome) ||
            sl_loop_now_ms(self->loop) >= until) {
            return rc;
        }
        static const bool never = false;
        wait_for(self, &never, pause_ms);
    }
}

/* Reads the status that the last call gave. */
static int
take_status(struct sl_runtime *self)
{
    sl_arena_reset(&self->answer_arena);
    return sl_control_status_decode(self->outcome.value.data, self->outcome.value.size,
                                    &self->answer_arena, &self->status);
}

static int
ask(struct sl_runtime *self, const char *topology, uint32_t method,
    const struct sl_control_request *request, uint64_t limit_ms)
{
    struct sl_buf body = {0};
    sl_control_request_encode(request, &body);
    int rc = call_master(self, topology, method, &body, limit_ms);
    sl_buf_destroy(&body);
    return rc != 0 ? rc : take_status(self);
}

/* Opening and closing. */

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
    sl_buf_destroy(&self->outcome.value);
    sl_free(self->state_url);
    sl_free(self->program);
    sl_free(self->logs);
    sl_free(self);
}

int
sl_runtime_open(const struct sl_runtime_options *options, struct sl_runtime **runtime)
{
    struct sl_runtime *self = sl_calloc(1, sizeof(*self));
    self->options = *options;
    self->state_url = sl_strdup(options->state_url);
    self->program = sl_strdup(options->program);
    self->logs = sl_strdup(options->logs);
    if (self->options.timeout_ms == 0) {
        self->options.timeout_ms = SL_RUNTIME_STEP_MS;
    }
    sl_arena_create(&self->view_arena, 0, 0);
    sl_arena_create(&self->answer_arena, 0, 0);
    int rc = sl_loop_new(&self->loop);
    if (rc == 0) {
        sl_state_loop_executor_create(&self->executor, self->loop);
        struct sl_state_open_options store = {.timeout_ms = self->options.timeout_ms,
                                              .is_reader = options->is_reader};
        self->store = sl_state_open_new(self->state_url, &self->executor.executor, &store);
        rc = self->store != NULL ? 0 : sl_err_last()->code;
    }
    if (rc != 0) {
        runtime_free(self);
        return rc;
    }
    self->rpc = sl_rpc_new(self->loop, &(struct sl_rpc_options){.role = "client"});
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

/* Looking. */

static void
names_done(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_runtime *self = ctx;
    store_done(ctx, status, result);
    for (size_t i = 0; status == 0 && i < result->child_count; i++) {
        sl_vec_push(&self->names, sl_strdup(result->children[i]));
    }
}

int
sl_runtime_names(struct sl_runtime *self, const char *const **names, size_t *count)
{
    for (size_t i = 0; i < self->names.count; i++) {
        sl_free(self->names.items[i]);
    }
    sl_vec_clear(&self->names);
    begin(self);
    sl_state_children(self->store, sl_layout_folder(SL_LAYOUT_TOPOLOGY), names_done, self);
    int rc = end_store_call(self);
    *names = (const char *const *)self->names.items;
    *count = self->names.count;
    return rc == SL_ENOTFOUND ? 0 : rc;
}

/* Bytes of a part in the view's arena; NULL when there is no such node. */
static int
load_part(struct sl_runtime *self, enum sl_layout_part part, const char *topology,
          const uint8_t **data, size_t *size)
{
    int rc = get_part(self, part, topology);
    *data = NULL;
    if (rc == 0) {
        *size = self->outcome.value.size;
        /* Never NULL, also for no bytes. */
        sl_buf_append_u8(&self->outcome.value, 0);
        *data = sl_arena_memdup(&self->view_arena, self->outcome.value.data, *size + 1);
    }
    return rc == SL_ENOTFOUND ? 0 : rc;
}

static void
leader_seen(void *ctx, const struct sl_state_leader_info *info)
{
    struct sl_runtime *self = ctx;
    self->view.is_led = info != NULL;
    self->is_leader_known = true;
}

/* Whether somebody leads it now, without waiting for anybody. */
static void
load_leader(struct sl_runtime *self, const char *topology)
{
    char path[SL_STATE_PATH_MAX + 1];
    self->is_leader_known = false;
    self->leader = sl_state_leader_listener_new(
        self->store, sl_layout_path(path, SL_LAYOUT_TOPOLOGY_LEADER, topology), leader_seen, self);
    wait_for(self, &self->is_leader_known, self->options.timeout_ms);
    sl_state_leader_listener_free(self->leader);
    self->leader = NULL;
}

int
sl_runtime_load(struct sl_runtime *self, const char *topology, const struct sl_topology_view **view)
{
    const uint8_t *plan = NULL;
    const uint8_t *execution = NULL;
    size_t plan_size = 0;
    size_t execution_size = 0;
    sl_arena_reset(&self->view_arena);
    memset(&self->view, 0, sizeof(self->view));
    int rc = check_running(self, topology);
    if (rc == 0) {
        self->view.definition_size = self->outcome.value.size;
        sl_buf_append_u8(&self->outcome.value, 0);
        self->view.definition =
            sl_arena_memdup(&self->view_arena, self->outcome.value.data, self->outcome.value.size);
        rc = load_part(self, SL_LAYOUT_PLAN, topology, &plan, &plan_size);
    }
    if (rc == 0) {
        rc = load_part(self, SL_LAYOUT_EXECUTION_STATE, topology, &execution, &execution_size);
    }
    if (rc == 0 && plan != NULL) {
        rc = sl_stored_plan_decode(plan, plan_size, &self->view_arena, &self->plan);
        self->view.plan = &self->plan;
    }
    if (rc == 0 && execution != NULL) {
        rc = sl_execution_state_decode(execution, execution_size, &self->view_arena,
                                       &self->execution);
        self->view.execution = &self->execution;
    }
    if (rc == 0) {
        load_leader(self, topology);
        *view = &self->view;
    }
    return rc;
}

int
sl_runtime_package(struct sl_runtime *self, const char *topology, const struct sl_package **package)
{
    const uint8_t *data = NULL;
    size_t size = 0;
    sl_arena_reset(&self->view_arena);
    int rc = check_name(topology);
    if (rc == 0) {
        rc = load_part(self, SL_LAYOUT_PACKAGE, topology, &data, &size);
    }
    if (rc == 0 && data == NULL) {
        rc = sl_err_set(SL_ENOTFOUND, "there is no code of a topology of that name");
    }
    if (rc == 0) {
        rc = sl_package_decode(data, size, &self->view_arena, &self->package);
    }
    *package = &self->package;
    return rc;
}

int
sl_runtime_status(struct sl_runtime *self, const char *topology,
                  const struct sl_control_status **status)
{
    int rc = check_running(self, topology);
    if (rc == 0) {
        rc = ask(self, topology, SL_TM_STATUS, &(struct sl_control_request){0},
                 self->options.timeout_ms);
    }
    *status = &self->status;
    return rc;
}

int
sl_runtime_set_active(struct sl_runtime *self, const char *topology, bool is_active,
                      uint64_t timeout_ms)
{
    const struct sl_topology_view *view;
    int rc = sl_runtime_load(self, topology, &view);
    if (rc != 0) {
        return rc;
    }
    bool was_so = view->execution != NULL && view->execution->is_active == is_active;
    struct sl_control_request request = {.time_limit_ms = timeout_ms, .is_active = is_active};
    rc = ask(self, topology, SL_TM_SET_STATE, &request, timeout_ms + 1000);
    return rc != 0 ? rc : was_so;
}

int
sl_runtime_restart(struct sl_runtime *self, const char *topology, int32_t container,
                   uint64_t timeout_ms)
{
    struct sl_control_request request = {.time_limit_ms = timeout_ms, .container = container};
    int rc = check_running(self, topology);
    return rc != 0 ? rc : ask(self, topology, SL_TM_RESTART, &request, timeout_ms + 1000);
}

/* Updating. */

static void watch_events(struct sl_runtime *self);

static void
events_came(void *ctx, const struct sl_rpc_result *result)
{
    struct sl_runtime *self = ctx;
    struct sl_arena arena;
    struct sl_control_status status;
    if (result->status != SL_RPC_SUCCESS) {
        return;
    }
    sl_arena_create(&arena, 0, 0);
    if (sl_control_status_decode(result->body, result->size, &arena, &status) == 0) {
        uint64_t first = status.event_count - status.shown_events;
        for (size_t i = 0; i < status.shown_events; i++) {
            if (first + i >= self->seen_events) {
                tell(self, "%s", status.events[i].text);
            }
        }
        self->seen_events = status.event_count;
        watch_events(self);
    }
    sl_arena_destroy(&arena);
}

/* Asks for what happens next. */
static void
watch_events(struct sl_runtime *self)
{
    struct sl_buf body = {0};
    struct sl_control_request request = {
        .time_limit_ms = 60000, .seen_events = self->seen_events, .wants_event = true};
    sl_control_request_encode(&request, &body);
    sl_rpc_call(self->watched, SL_TM_AWAIT, body.data, body.size, 70000, events_came, self);
    sl_buf_destroy(&body);
}

int
sl_runtime_update(struct sl_runtime *self, const struct sl_stored_plan *current,
                  const struct sl_stored_plan *proposed, uint64_t lock_timeout_ms,
                  uint64_t drain_timeout_ms, const struct sl_update_result **result)
{
    struct sl_buf old_plan = {0};
    struct sl_buf new_plan = {0};
    struct sl_buf body = {0};
    int rc = sl_stored_plan_encode(current, &old_plan);
    if (rc == 0) {
        rc = sl_stored_plan_encode(proposed, &new_plan);
    }
    if (rc == 0) {
        rc = ask(self, current->topology, SL_TM_STATUS, &(struct sl_control_request){0},
                 self->options.timeout_ms);
    }
    if (rc != 0) {
        goto out;
    }
    self->seen_events = self->status.event_count;
    struct sl_update_request request = {
        .current = old_plan.data,
        .current_size = old_plan.size,
        .proposed = new_plan.data,
        .proposed_size = new_plan.size,
        .lock_timeout_ms = lock_timeout_ms,
        .drain_timeout_ms = drain_timeout_ms,
    };
    sl_update_request_encode(&request, &body);
    if (self->options.progress != NULL &&
        connect_master(self, current->topology, &self->watched) == 0) {
        watch_events(self);
    }
    rc = call_master(self, current->topology, SL_TM_UPDATE, &body,
                     lock_timeout_ms + drain_timeout_ms + UPDATE_MARGIN_MS);
    if (rc == 0) {
        sl_arena_reset(&self->answer_arena);
        rc = sl_update_result_decode(self->outcome.value.data, self->outcome.value.size,
                                     &self->answer_arena, &self->result);
        *result = &self->result;
    }
out:
    sl_rpc_gateway_free(self->watched);
    self->watched = NULL;
    sl_buf_destroy(&old_plan);
    sl_buf_destroy(&new_plan);
    sl_buf_destroy(&body);
    return rc;
}

/* Killing. */

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
            tell(self, "process %lld is ended by force", (long long)pids.items[i]);
            kill((pid_t)pids.items[i], SIGKILL);
            poll(&watched, 1, 1000);
        }
        close(watched.fd);
    }
    sl_vec_destroy(&pids);
}

static int
remove_path(struct sl_runtime *self, const char *path, bool *is_found)
{
    begin(self);
    sl_state_remove(self->store, path, store_done, self);
    int rc = end_store_call(self);
    *is_found = *is_found || rc == 0;
    return rc == SL_ENOTFOUND ? 0 : rc;
}

/* Deletes every node of the topology, the one that says that it runs last of all. */
static int
remove_nodes(struct sl_runtime *self, const char *topology, bool *is_found)
{
    static const enum sl_layout_part parts[] = {
        SL_LAYOUT_TOPOLOGY_MASTER, SL_LAYOUT_SCHEDULER, SL_LAYOUT_PHYSICAL_PLAN,   SL_LAYOUT_PLAN,
        SL_LAYOUT_EXECUTION_STATE, SL_LAYOUT_PACKAGE,   SL_LAYOUT_TOPOLOGY_LEADER, SL_LAYOUT_LOCK,
        SL_LAYOUT_TOPOLOGY,
    };
    char path[SL_STATE_PATH_MAX + 1];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        rc = remove_path(self, sl_layout_path(path, parts[i], topology), is_found);
    }
    return rc;
}

/* Marks the topology as one that ends, so that a topology master that comes now ends it, too. */
static int
mark_killed(struct sl_runtime *self, const char *topology)
{
    struct sl_arena arena;
    struct sl_execution_state execution;
    char path[SL_STATE_PATH_MAX + 1];
    int rc = get_part(self, SL_LAYOUT_EXECUTION_STATE, topology);
    if (rc != 0) {
        return rc == SL_ENOTFOUND ? 0 : rc;
    }
    sl_arena_create(&arena, 0, 0);
    if (sl_execution_state_decode(self->outcome.value.data, self->outcome.value.size, &arena,
                                  &execution) == 0) {
        struct sl_buf value = {0};
        execution.state = SL_TOPOLOGY_KILLED;
        sl_execution_state_encode(&execution, &value);
        begin(self);
        sl_state_set(self->store, sl_layout_path(path, SL_LAYOUT_EXECUTION_STATE, topology),
                     value.data, value.size, SL_STATE_ANY_VERSION, store_done, self);
        rc = end_store_call(self);
        sl_buf_destroy(&value);
    }
    sl_arena_destroy(&arena);
    return rc == SL_ENOTFOUND ? 0 : rc;
}

/* Has the topology master end everything; when there is none the processes are ended one by one. */
static int
kill_processes(struct sl_runtime *self, const char *topology, uint64_t wait_ms, uint64_t timeout_ms)
{
    struct sl_control_request request = {.time_limit_ms = wait_ms};
    struct presence presence = find_presence(self, topology);
    int rc = presence.is_led ? ask(self, topology, SL_TM_KILL, &request, wait_ms + timeout_ms)
                             : mark_killed(self, topology);
    if (presence.is_led && rc != 0) {
        tell(self, "%s: %s; its processes are ended one by one", topology, sl_err_last()->msg);
        presence.is_led = false;
        rc = mark_killed(self, topology);
    }
    if (!presence.is_led) {
        end_processes(self, topology, 0);
    }
    end_processes(self, topology, SL_RUNTIME_END_MS);
    return rc;
}

int
sl_runtime_kill(struct sl_runtime *self, const char *topology, uint64_t wait_ms,
                uint64_t timeout_ms)
{
    bool is_found = false;
    int rc = check_name(topology);
    if (rc == 0) {
        is_found = find_presence(self, topology).is_any;
        rc = kill_processes(self, topology, wait_ms, timeout_ms);
    }
    if (rc == 0) {
        rc = remove_nodes(self, topology, &is_found);
    }
    if (rc == 0 && !is_found) {
        rc = sl_err_set(SL_ENOTFOUND, "no topology of that name is running");
    }
    return rc;
}

/* Submitting. */

int
sl_package_hash(const struct sl_package *package, char hash[65])
{
    struct sl_buf bytes = {0};
    struct sl_package code = *package;
    code.overrides_size = 0;
    code.defaults_size = 0;
    int rc = sl_package_encode(&code, &bytes);
    if (rc == 0) {
        struct sl_sha256 state;
        uint8_t digest[SL_SHA256_SIZE];
        sl_sha256_create(&state);
        sl_sha256_update(&state, bytes.data, bytes.size);
        sl_sha256_finish(&state, digest);
        for (size_t i = 0; i < sizeof(digest); i++) {
            snprintf(hash + 2 * i, 3, "%02x", digest[i]);
        }
    }
    sl_buf_destroy(&bytes);
    return rc;
}

static void
lock_done(void *ctx, int status)
{
    struct sl_runtime *self = ctx;
    self->outcome.is_done = true;
    self->outcome.status = status;
    if (status != 0) {
        snprintf(self->outcome.reason, sizeof(self->outcome.reason), "%s", sl_err_last()->msg);
    }
}

/* What a topology of that name left behind, which does not run. */
static int
submit_clear(struct sl_runtime *self, const char *topology)
{
    static const enum sl_layout_part parts[] = {SL_LAYOUT_PLAN, SL_LAYOUT_EXECUTION_STATE,
                                                SL_LAYOUT_PHYSICAL_PLAN, SL_LAYOUT_PACKAGE};
    char path[SL_STATE_PATH_MAX + 1];
    bool is_found = false;
    int rc = get_part(self, SL_LAYOUT_TOPOLOGY, topology);
    if (rc != SL_ENOTFOUND) {
        return rc == 0 ? sl_err_set(SL_EEXIST, "it is running already") : rc;
    }
    rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        rc = remove_path(self, sl_layout_path(path, parts[i], topology), &is_found);
    }
    if (is_found) {
        tell(self, "what an earlier %s left behind was removed", topology);
    }
    return rc;
}

/* The folders of the parts, which transactions do not make. */
static int
submit_make_folders(struct sl_runtime *self)
{
    static const enum sl_layout_part parts[] = {SL_LAYOUT_TOPOLOGY, SL_LAYOUT_PLAN,
                                                SL_LAYOUT_EXECUTION_STATE};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        begin(self);
        sl_state_create(self->store, sl_layout_folder(parts[i]), NULL, 0, 0, store_done, self);
        rc = end_store_call(self);
        rc = rc == SL_EEXIST ? 0 : rc;
    }
    return rc;
}

static int
submit_store_package(struct sl_runtime *self, const struct sl_runtime_submission *submission)
{
    char path[SL_STATE_PATH_MAX + 1];
    struct sl_buf bytes = {0};
    int rc = sl_package_encode(submission->package, &bytes);
    if (rc == 0) {
        begin(self);
        sl_state_create(self->store, sl_layout_path(path, SL_LAYOUT_PACKAGE, submission->topology),
                        bytes.data, bytes.size, SL_STATE_PARENTS, store_done, self);
        rc = end_store_call(self);
    }
    sl_buf_destroy(&bytes);
    return rc;
}

/* Definition, plan and execution state, all or none. */
static int
submit_store(struct sl_runtime *self, struct sl_state_lock *lock,
             const struct sl_runtime_submission *submission)
{
    char paths[3][SL_STATE_PATH_MAX + 1];
    char hash[65];
    char host[256] = "";
    char id[SL_NAME_MAX + 32];
    struct sl_buf plan = {0};
    struct sl_buf execution = {0};
    const char *name = submission->topology;
    int64_t now = sl_clock_wall_ms(sl_loop_clock(self->loop));
    int rc = sl_stored_plan_encode(submission->plan, &plan);
    if (rc == 0) {
        rc = sl_package_hash(submission->package, hash);
    }
    if (rc != 0) {
        goto out;
    }
    gethostname(host, sizeof(host) - 1);
    snprintf(id, sizeof(id), "%s-%lld", name, (long long)now);
    struct sl_execution_state state = {
        .topology = name,
        .topology_id = id,
        .submitted_ms = now,
        .user = submission->user,
        .host = host,
        .cwd = submission->cwd,
        .package_hash = hash,
        .scheduler = "local",
        .state = SL_TOPOLOGY_STARTING,
        .is_active = submission->is_active,
    };
    sl_execution_state_encode(&state, &execution);
    struct sl_state_op ops[] = {
        sl_state_op_create(sl_layout_path(paths[0], SL_LAYOUT_TOPOLOGY, name),
                           submission->definition, submission->definition_size, 0),
        sl_state_op_create(sl_layout_path(paths[1], SL_LAYOUT_PLAN, name), plan.data, plan.size, 0),
        sl_state_op_create(sl_layout_path(paths[2], SL_LAYOUT_EXECUTION_STATE, name),
                           execution.data, execution.size, 0),
    };
    begin(self);
    sl_state_lock_commit(lock, ops, sizeof(ops) / sizeof(ops[0]), store_done, self);
    rc = end_store_call(self);
out:
    sl_buf_destroy(&plan);
    sl_buf_destroy(&execution);
    return rc;
}

static int
submit_start(struct sl_runtime *self, const char *topology)
{
    char logs[4096];
    int64_t pid;
    snprintf(logs, sizeof(logs), "%s/%s", self->logs, topology);
    struct sl_local_role_options options = {
        .state_url = self->state_url,
        .topology = topology,
        .program = self->program,
        .logs = logs,
    };
    return sl_guardian_start(self->loop, &options, &pid);
}

/* Under the lock, so that one of two submissions of a name wins. */
static int
submit_locked(struct sl_runtime *self, struct sl_state_lock *lock,
              const struct sl_runtime_submission *submission)
{
    int rc = submit_clear(self, submission->topology);
    if (rc == 0) {
        rc = submit_make_folders(self);
    }
    if (rc == 0) {
        rc = submit_store_package(self, submission);
    }
    if (rc == 0) {
        rc = submit_store(self, lock, submission);
        if (rc != 0) {
            struct sl_err why;
            char path[SL_STATE_PATH_MAX + 1];
            bool is_found = false;
            sl_err_move(&why);
            remove_path(self, sl_layout_path(path, SL_LAYOUT_PACKAGE, submission->topology),
                        &is_found);
            rc = sl_err_set(why.code, "%s", why.msg);
        }
    }
    return rc;
}

static int
submit_create(struct sl_runtime *self, const struct sl_runtime_submission *submission)
{
    char path[SL_STATE_PATH_MAX + 1];
    struct sl_state_lock *lock =
        sl_state_lock_new(self->store, sl_layout_path(path, SL_LAYOUT_LOCK, submission->topology),
                          "submission", NULL, NULL);
    begin(self);
    sl_state_lock_acquire(lock, LOCK_MS, lock_done, self);
    int rc = end_store_call(self);
    if (rc == 0) {
        rc = submit_locked(self, lock, submission);
        struct sl_err why = {0};
        if (rc != 0) {
            sl_err_move(&why);
        }
        begin(self);
        sl_state_lock_release(lock, lock_done, self);
        end_store_call(self);
        if (rc != 0) {
            sl_err_set(rc, "%s", why.msg);
        }
    }
    sl_state_lock_free(lock);
    return rc;
}

/* "containers 2, 3": those that do not run yet. */
static void
list_missing(const struct sl_control_status *status, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < status->container_count && used + 16 < size; i++) {
        if (strcmp(status->containers[i].state, "STARTING") == 0) {
            used += (size_t)snprintf(text + used, size - used, "%s%d", used > 0 ? ", " : "",
                                     status->containers[i].id);
        }
    }
}

/* Waits until all tasks run. What can not start is taken back whole. */
static int
submit_await(struct sl_runtime *self, const struct sl_runtime_submission *submission)
{
    const char *topology = submission->topology;
    struct sl_control_request request = {.time_limit_ms = submission->timeout_ms};
    int rc = ask(self, topology, SL_TM_AWAIT, &request, submission->timeout_ms + 1000);
    if (rc == 0 && self->status.is_settled) {
        return 0;
    }
    if (rc == 0 && self->status.failure[0] == '\0') {
        char missing[256];
        list_missing(&self->status, missing, sizeof(missing));
        return sl_err_set(SL_ETIMEOUT, "not all tasks run yet (containers %s); it goes on starting",
                          missing);
    }
    char reason[SL_REASON_SIZE];
    snprintf(reason, sizeof(reason), "%s", rc == 0 ? self->status.failure : sl_err_last()->msg);
    sl_runtime_kill(self, topology, 0, self->options.timeout_ms);
    return sl_err_set(rc == 0 ? SL_EUSER : rc, "%s", reason);
}

int
sl_runtime_submit(struct sl_runtime *self, const struct sl_runtime_submission *submission)
{
    int rc = check_name(submission->topology);
    if (rc == 0) {
        rc = submit_create(self, submission);
    }
    if (rc != 0) {
        return rc;
    }
    rc = submit_start(self, submission->topology);
    if (rc != 0) {
        struct sl_err why;
        bool is_found;
        sl_err_move(&why);
        remove_nodes(self, submission->topology, &is_found);
        return sl_err_set(why.code, "%s", why.msg);
    }
    return submit_await(self, submission);
}
