#include "cluster/topology_master.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/topology_master_priv.h"
#include "rpc/connections.h"

enum {
    EVENT_TEXT_MAX = 512,
    /* Of one container, before the topology has run. */
    EARLY_ENDS_MAX = 3,
    RETRY_MS = 500,
    ARENA_LIMIT = 256 * 1024 * 1024,
};

static void load(struct sl_topology_master *self);

static const struct sl_state_executor *
executor_of(const struct sl_topology_master *self)
{
    return sl_state_store_executor(self->options.store);
}

void
sl__tm_event(struct sl_topology_master *self, const char *fmt, ...)
{
    char text[EVENT_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    sl_log_info("cluster", "%s: %s", self->topology, text);
    if (self->events.count == SL_CONTROL_EVENTS_MAX) {
        sl_free(self->events.items[0].text);
        sl_vec_remove(&self->events, 0);
    }
    struct sl__tm_event event = {sl_clock_wall_ms(sl_loop_clock(self->loop)), sl_strdup(text)};
    sl_vec_push(&self->events, event);
    self->event_count++;
}

void
sl__tm_plan_free(struct sl__tm_plan *plan)
{
    if (plan != NULL) {
        sl_arena_destroy(&plan->arena);
        sl_buf_destroy(&plan->bytes);
        sl_free(plan);
    }
}

struct sl__tm_plan *
sl__tm_plan_new(const struct sl_topology_master *self, const uint8_t *data, size_t size)
{
    struct sl__tm_plan *plan = sl_calloc(1, sizeof(*plan));
    sl_arena_create(&plan->arena, 64 * 1024, ARENA_LIMIT);
    sl_buf_append(&plan->bytes, data, size);
    int rc = sl_stored_plan_decode(plan->bytes.data, size, &plan->arena, &plan->stored);
    if (rc == 0 && strcmp(plan->stored.topology, self->topology) != 0) {
        rc = sl_err_set(SL_EINVAL, "the plan is one of %s", plan->stored.topology);
    }
    if (rc != 0) {
        sl__tm_plan_free(plan);
        return NULL;
    }
    sl_physical_plan_from_stored(&plan->stored, self->execution.topology_id, &plan->arena,
                                 &plan->physical);
    return plan;
}

void
sl__tm_plan_fill(const struct sl_topology_master *self, struct sl_physical_plan *plan)
{
    for (int32_t i = 0; i < plan->container_count; i++) {
        struct sl_physical_container *container = &plan->containers[i];
        const struct sl__tm_worker *worker = sl__tm_worker_of(self, container->id);
        container->is_registered = worker != NULL && worker->is_registered;
        container->host = "";
        container->address = "";
        if (container->is_registered) {
            memcpy(container->identity, worker->identity, SL_IDENTITY_SIZE);
            container->host = worker->host;
            container->data_port = worker->data_port;
            container->address = worker->peer.address;
            container->pid = worker->pid;
        }
    }
    plan->token = self->token;
}

static void
tell_end(void *ctx, uint64_t ticket)
{
    struct sl_topology_master *self = ctx;
    (void)ticket;
    self->options.on_end(self->options.ctx, self->end_code, self->end_reason);
}

/* In a turn of its own: the last words to clients are on their way then. */
void
sl__tm_end(struct sl_topology_master *self, int code, const char *reason)
{
    self->phase = SL__TM_ENDING;
    self->end_code = code;
    snprintf(self->end_reason, sizeof(self->end_reason), "%s", reason);
    sl_timer_start(self->loop, &self->end_timer, SL__TM_END_MS, tell_end, self);
}

/* What could not be written is written again later; that it could not is told once. */
static void
store_failed(struct sl_topology_master *self, const char *what)
{
    if (!self->is_store_failing) {
        sl__tm_event(self, "%s: %s", what, sl_err_last()->msg);
    }
    self->is_store_failing = true;
    sl__tm_nudge_later(self);
}

static void
execution_saved(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_topology_master *self = ctx;
    self->is_execution_writing = false;
    self->save_ticket = 0;
    if (status == 0) {
        self->execution_node_version = result->stat.version;
    } else if (status != SL_ECLOSED) {
        store_failed(self, "the execution state can not be written");
        self->is_execution_dirty = status != SL_ENOTFOUND;
        return;
    }
    self->is_store_failing = false;
    if (self->is_execution_dirty) {
        sl__tm_save_execution(self);
    } else {
        sl__tm_advance(self);
    }
}

void
sl__tm_save_execution(struct sl_topology_master *self)
{
    char path[SL_STATE_PATH_MAX + 1];
    struct sl_buf value = {0};
    if (self->is_execution_writing) {
        self->is_execution_dirty = true;
        return;
    }
    self->is_execution_dirty = false;
    self->is_execution_writing = true;
    sl_execution_state_encode(&self->execution, &value);
    sl_layout_path(path, SL_LAYOUT_EXECUTION_STATE, self->topology);
    self->save_ticket = sl_state_set(self->options.store, path, value.data, value.size,
                                     SL_STATE_ANY_VERSION, execution_saved, self);
    sl_buf_destroy(&value);
}

static void
set_state(struct sl_topology_master *self, enum sl_topology_state state)
{
    if (self->execution.state != state) {
        self->execution.state = state;
        sl__tm_save_execution(self);
    }
}

/* The physical plan. */

static void publish(struct sl_topology_master *self);

static void
published(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_topology_master *self = ctx;
    (void)result;
    self->is_publishing = false;
    self->publish_ticket = 0;
    if (status == 0) {
        self->is_published = true;
        self->is_store_failing = false;
        sl__tm_advance(self);
    } else if (status != SL_ECLOSED) {
        store_failed(self, "the physical plan can not be published");
        self->published_epoch = 0;
    }
}

static void
published_anew(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_topology_master *self = ctx;
    char path[SL_STATE_PATH_MAX + 1];
    struct sl_buf value = {0};
    if (status != SL_ENOTFOUND || sl_physical_plan_encode(&self->plan->physical, &value) != 0) {
        published(ctx, status, result);
        return;
    }
    sl_layout_path(path, SL_LAYOUT_PHYSICAL_PLAN, self->topology);
    self->publish_ticket = sl_state_create(self->options.store, path, value.data, value.size,
                                           SL_STATE_PARENTS, published, self);
    sl_buf_destroy(&value);
}

/* Writes the physical plan: over the last one, or anew. */
static void
publish(struct sl_topology_master *self)
{
    char path[SL_STATE_PATH_MAX + 1];
    struct sl_buf value = {0};
    if (self->is_publishing) {
        return;
    }
    self->is_publishing = true;
    self->published_epoch = self->epoch;
    self->plan->physical.state =
        self->execution.is_active ? SL_TOPOLOGY_RUNNING : SL_TOPOLOGY_PAUSED;
    self->plan->physical.is_held = false;
    if (sl_physical_plan_encode(&self->plan->physical, &value) != 0) {
        self->is_publishing = false;
        sl__tm_event(self, "%s", sl_err_last()->msg);
        return;
    }
    sl_layout_path(path, SL_LAYOUT_PHYSICAL_PLAN, self->topology);
    self->publish_ticket = sl_state_set(self->options.store, path, value.data, value.size,
                                        SL_STATE_ANY_VERSION, published_anew, self);
    sl_buf_destroy(&value);
}

/* The aim. */

static bool
has_all_workers(const struct sl_topology_master *self)
{
    for (int32_t i = 0; i < self->plan->physical.container_count; i++) {
        const struct sl__tm_worker *worker =
            sl__tm_worker_of(self, self->plan->physical.containers[i].id);
        if (worker == NULL || !worker->is_registered) {
            return false;
        }
    }
    return true;
}

/* A new epoch: every worker of the plan gets it. Spouts that are called go on meanwhile, but when
 * the version is new they wait until every worker has it, and so does what begins by the clock. */
static void
distribute(struct sl_topology_master *self)
{
    self->is_dirty = false;
    self->epoch++;
    self->plan->physical.epoch = self->epoch;
    bool is_held = self->run_version != self->plan->stored.version;
    bool is_running = self->execution.is_active && !is_held;
    self->plan->physical.state = is_running ? SL_TOPOLOGY_RUNNING : SL_TOPOLOGY_PAUSED;
    self->plan->physical.is_held = is_held;
    sl__tm_plan_fill(self, &self->plan->physical);
    for (int32_t i = 0; i < self->plan->physical.container_count; i++) {
        sl__tm_send_plan(sl__tm_worker_of(self, self->plan->physical.containers[i].id),
                         &self->plan->physical);
    }
}

static bool
all_run_the_plan(const struct sl_topology_master *self)
{
    for (int32_t i = 0; i < self->plan->physical.container_count; i++) {
        const struct sl__tm_worker *worker =
            sl__tm_worker_of(self, self->plan->physical.containers[i].id);
        if (worker->ready_epoch != self->epoch) {
            return false;
        }
    }
    return true;
}

/* Switches spouts where they are not as wanted; true when all are. */
static bool
switch_spouts(struct sl_topology_master *self)
{
    bool is_done = true;
    for (int32_t i = 0; i < self->plan->physical.container_count; i++) {
        struct sl__tm_worker *worker =
            sl__tm_worker_of(self, self->plan->physical.containers[i].id);
        if (worker->is_switching) {
            is_done = false;
        } else if (worker->is_active != self->execution.is_active || worker->is_held) {
            sl__tm_send_spouts(worker,
                               self->execution.is_active ? SL_SPOUTS_ACTIVE : SL_SPOUTS_PAUSED);
            is_done = false;
        }
    }
    return is_done;
}

/* Tells again what did not arrive. In an update plans are its own business: it fails. */
static void
nudge(void *ctx, uint64_t ticket)
{
    struct sl_topology_master *self = ctx;
    struct sl_map_u64_entry *entry;
    (void)ticket;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->workers, &at)) != NULL;) {
        struct sl__tm_worker *worker = (void *)(uintptr_t)entry->value;
        if (!worker->is_registered || !worker->must_resend) {
            continue;
        }
        if (sl__tm_update_holds_plans(self)) {
            sl__tm_update_worker_lost(self, worker->id, "it could not be reached");
            break;
        }
        if (sl_physical_plan_container(&self->plan->physical, worker->id) != NULL) {
            sl__tm_send_plan(worker, &self->plan->physical);
        }
    }
    if (self->is_execution_dirty && !self->is_execution_writing) {
        sl__tm_save_execution(self);
    }
    sl__tm_advance(self);
}

void
sl__tm_nudge_later(struct sl_topology_master *self)
{
    if (!sl_timer_is_running(&self->nudge_timer)) {
        sl_timer_start(self->loop, &self->nudge_timer, SL__TM_NUDGE_MS, nudge, self);
    }
}

void
sl__tm_advance(struct sl_topology_master *self)
{
    if (self->phase != SL__TM_LEADING) {
        return;
    }
    sl__tm_update_advance(self);
    if (self->phase != SL__TM_LEADING || sl__tm_update_holds_plans(self) ||
        !has_all_workers(self)) {
        sl__tm_waiters_check(self);
        return;
    }
    if (self->is_dirty) {
        self->is_settled = false;
        distribute(self);
    }
    if (!all_run_the_plan(self)) {
        sl__tm_waiters_check(self);
        return;
    }
    self->run_version = self->plan->stored.version;
    if (self->published_epoch != self->epoch) {
        self->is_published = false;
        publish(self);
    }
    if (switch_spouts(self) && self->is_published && !self->is_settled) {
        self->is_settled = true;
        if (self->update == NULL && self->told_epoch != self->epoch) {
            sl__tm_event(self, "all %d containers run plan %llu",
                         self->plan->physical.container_count,
                         (unsigned long long)self->plan->stored.version);
        }
        self->told_epoch = self->epoch;
        self->was_settled = true;
        sl_free(self->failure);
        self->failure = NULL;
        set_state(self, self->execution.is_active ? SL_TOPOLOGY_RUNNING : SL_TOPOLOGY_PAUSED);
        /* An update may end with this. */
        sl__tm_update_advance(self);
        sl__tm_kill_settled(self);
    }
    sl__tm_waiters_check(self);
}

/* The launcher. */

/* Whoever waits for a topology that is new need not wait for containers that end again and again.
 */
static void
note_early_end(struct sl__tm_worker *worker, const char *text)
{
    struct sl_topology_master *self = worker->master;
    char reason[SL_REASON_SIZE];
    if (!self->was_settled && ++worker->early_ends >= EARLY_ENDS_MAX && self->failure == NULL) {
        snprintf(reason, sizeof(reason), "container %d ends again and again (%s)", worker->id,
                 text);
        self->failure = sl_strdup(reason);
    }
}

static void
container_ended(void *ctx, int32_t id, const char *text)
{
    struct sl_topology_master *self = ctx;
    struct sl__tm_worker *worker = sl__tm_worker_of(self, id);
    if (self->phase != SL__TM_LEADING) {
        return;
    }
    if (worker == NULL) {
        /* Of an update that a topology master before this one had begun: nobody wants it. */
        if (self->update == NULL) {
            self->options.launcher.remove_containers(self->options.launcher.self, &id, 1);
        }
        return;
    }
    if (!worker->is_restarting) {
        sl__tm_event(self, "container %d ended (%s) and is started again", id, text);
    }
    note_early_end(worker, text);
    sl__tm_worker_lost(worker, text);
}

static void
container_stuck(void *ctx, int32_t id, const char *text)
{
    struct sl_topology_master *self = ctx;
    if (self->phase != SL__TM_LEADING) {
        return;
    }
    sl__tm_event(self, "container %d can not run: %s", id, text);
    if (!self->was_settled && self->failure == NULL) {
        self->failure = sl_strdup(text);
    }
    sl__tm_advance(self);
}

static void
all_stopped(void *ctx)
{
    sl__tm_kill_stopped(ctx);
}

static void
launcher_progressed(void *ctx)
{
    sl__tm_update_launcher_progressed(ctx);
}

/* A topology that is to end is not started for it. */
static int
start_containers(struct sl_topology_master *self)
{
    const struct sl_launcher *launcher = &self->options.launcher;
    struct sl_launcher_listener listener = {
        .on_ended = container_ended,
        .on_stuck = container_stuck,
        .on_all_stopped = all_stopped,
        .on_progress = launcher_progressed,
        .ctx = self,
    };
    int rc = launcher->initialize(launcher->self, &self->execution, self->token, &listener);
    if (self->execution.state == SL_TOPOLOGY_KILLED) {
        return rc;
    }
    int32_t count = self->plan->physical.container_count;
    int32_t *ids = sl_alloc(((size_t)count + 1) * sizeof(*ids));
    for (int32_t i = 0; i < count; i++) {
        ids[i] = self->plan->physical.containers[i].id;
        sl__tm_worker_add(self, ids[i]);
    }
    if (rc == 0) {
        rc = launcher->add_containers(launcher->self, &self->plan->stored, ids, (size_t)count);
    }
    sl_free(ids);
    return rc;
}

/* Loading: execution state, then plan. */

static void
retry(void *arg)
{
    struct sl_topology_master *self = arg;
    self->retry_timer = 0;
    if (self->phase == SL__TM_LOADING) {
        load(self);
    }
}

/* What can not be read now is read again; what is gone ends the role. */
static void
load_failed(struct sl_topology_master *self, int status)
{
    char reason[SL_REASON_SIZE];
    if (status == SL_ECLOSED) {
        return;
    }
    if (status == SL_EUNAVAIL || status == SL_ETIMEOUT) {
        self->retry_timer = sl_state_executor_timer_start(executor_of(self), RETRY_MS, retry, self);
        return;
    }
    snprintf(reason, sizeof(reason), "%s", sl_err_last()->msg);
    sl__tm_end(self, status == SL_ENOTFOUND ? 0 : status, reason);
}

static void
plan_loaded(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_topology_master *self = ctx;
    if (status != 0 || self->phase != SL__TM_LOADING) {
        load_failed(self, status);
        return;
    }
    self->plan = sl__tm_plan_new(self, result->value, result->size);
    if (self->plan == NULL) {
        load_failed(self, sl_err_last()->code);
        return;
    }
    self->plan_node_version = result->stat.version;
    if (sl__tm_is_elsewhere(self, &self->plan->stored)) {
        sl__tm_end(self, 0, "the plan has the topology master elsewhere");
        return;
    }
    self->phase = SL__TM_LEADING;
    self->is_dirty = true;
    sl__tm_publish_location(self);
    if (start_containers(self) != 0) {
        load_failed(self, sl_err_last()->code);
        return;
    }
    sl__tm_event(self, "leads plan %llu in term %llu",
                 (unsigned long long)self->plan->stored.version, (unsigned long long)self->token);
    for (size_t i = 0; i < self->early.count; i++) {
        struct sl__tm_early *early = &self->early.items[i];
        sl__tm_register_with(self, early->request, early->body.data, early->body.size);
        sl_buf_destroy(&early->body);
    }
    sl_vec_clear(&self->early);
    if (self->execution.state == SL_TOPOLOGY_KILLED) {
        sl__tm_kill_start(self);
    } else {
        sl__tm_advance(self);
    }
}

static void
execution_loaded(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_topology_master *self = ctx;
    char path[SL_STATE_PATH_MAX + 1];
    if (status == 0) {
        status = sl_execution_state_decode(result->value, result->size, &self->execution_arena,
                                           &self->execution);
    }
    if (status != 0 || self->phase != SL__TM_LOADING) {
        load_failed(self, status);
        return;
    }
    self->execution_node_version = result->stat.version;
    self->has_execution = true;
    sl_layout_path(path, SL_LAYOUT_PLAN, self->topology);
    self->load_ticket = sl_state_get(self->options.store, path, plan_loaded, self);
}

static void
load(struct sl_topology_master *self)
{
    char path[SL_STATE_PATH_MAX + 1];
    self->phase = SL__TM_LOADING;
    sl_layout_path(path, SL_LAYOUT_EXECUTION_STATE, self->topology);
    self->load_ticket = sl_state_get(self->options.store, path, execution_loaded, self);
}

static void
elected(void *ctx, enum sl_state_election_event event, uint64_t token)
{
    struct sl_topology_master *self = ctx;
    switch (event) {
    case SL_STATE_ELECTION_GRANTED:
        if (self->phase == SL__TM_STANDING) {
            self->token = token;
            sl_rpc_endpoint_set_token(&self->endpoint, token);
            load(self);
        }
        break;
    case SL_STATE_ELECTION_REVOKED:
        /* Another one may lead by now. The process starts anew instead of taking its state along.
         */
        if (self->phase != SL__TM_STANDING && self->phase != SL__TM_ENDING) {
            sl_rpc_endpoint_set_token(&self->endpoint, 0);
            sl__tm_end(self, SL_EFENCED, "the term is over");
        }
        break;
    default:
        break;
    }
}

static void
stand(struct sl_topology_master *self)
{
    char path[SL_STATE_PATH_MAX + 1];
    char id[64];
    snprintf(id, sizeof(id), "process-%llu", (unsigned long long)self->options.pid);
    self->election = sl_state_election_new(
        self->options.store, sl_layout_path(path, SL_LAYOUT_TOPOLOGY_LEADER, self->topology), id,
        sl_rpc_address(self->options.rpc), elected, self);
}

static void look_before_standing(struct sl_topology_master *self);

static void
look_again(void *arg)
{
    struct sl_topology_master *self = arg;
    self->retry_timer = 0;
    look_before_standing(self);
}

static void
looked_before_standing(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_topology_master *self = ctx;
    self->load_ticket = 0;
    if (status == SL_ENOTFOUND) {
        sl__tm_end(self, 0, "there is no such topology any more");
        return;
    }
    if (status != 0) {
        if (status != SL_ECLOSED) {
            self->retry_timer =
                sl_state_executor_timer_start(executor_of(self), RETRY_MS, look_again, self);
        }
        return;
    }
    struct sl__tm_plan *plan = sl__tm_plan_new(self, result->value, result->size);
    if (plan != NULL && sl__tm_is_elsewhere(self, &plan->stored)) {
        sl__tm_end(self, 0, "the plan has the topology master elsewhere");
    } else {
        stand(self);
    }
    sl__tm_plan_free(plan);
}

/* One that a supervisor remembered may be of a topology that is gone, or led from elsewhere by now:
 * it would wait for its turn for ever. */
static void
look_before_standing(struct sl_topology_master *self)
{
    char path[SL_STATE_PATH_MAX + 1];
    sl_layout_path(path, SL_LAYOUT_PLAN, self->topology);
    self->load_ticket = sl_state_get(self->options.store, path, looked_before_standing, self);
}

static const struct sl_rpc_method methods[] = {
    {SL_TM_REGISTER_WORKER, sl__tm_handle_register},
    {SL_TM_WORKER_EVENT, sl__tm_handle_event},
    {SL_TM_STATUS, sl__tm_handle_status},
    {SL_TM_AWAIT, sl__tm_handle_waiting},
    {SL_TM_SET_STATE, sl__tm_handle_waiting},
    {SL_TM_RESTART, sl__tm_handle_waiting},
    {SL_TM_UPDATE, sl__tm_handle_update},
    {SL_TM_KILL, sl__tm_handle_kill},
    {SL_TM_PLAN_CHANGED, sl__tm_handle_plan_changed},
};

int
sl_topology_master_new(const struct sl_topology_master_options *options,
                       struct sl_topology_master **out)
{
    struct sl_topology_master *self = sl_calloc(1, sizeof(*self));
    struct sl_heartbeat_config config = sl_heartbeat_config_default();
    self->options = *options;
    self->loop = sl_rpc_loop(options->rpc);
    self->topology = sl_strdup(options->topology);
    sl_arena_create(&self->execution_arena, 0, 0);
    sl_list_create(&self->waiters);
    sl_list_create(&self->measures);
    self->drain.master = self;
    if (options->heartbeat_interval_ms != 0) {
        config.interval_ms = options->heartbeat_interval_ms;
        config.timeout_ms = options->heartbeat_timeout_ms;
    }
    if (self->options.plan_timeout_ms == 0) {
        self->options.plan_timeout_ms = SL_TOPOLOGY_MASTER_PLAN_MS;
    }
    struct sl_heartbeat_listener listener = {
        .on_timeout = sl__tm_heartbeat_lost, .on_payload = sl__tm_heartbeat_payload, .ctx = self};
    int rc = sl_heartbeats_create(&self->heartbeats, self->loop, true, &config, &listener);
    self->has_heartbeats = rc == 0;
    if (rc == 0) {
        snprintf(self->endpoint_name, sizeof(self->endpoint_name),
                 SL_ENDPOINT_TOPOLOGY_MASTER "%.64s", self->topology);
        struct sl_rpc_endpoint_options endpoint = {
            .name = self->endpoint_name,
            .is_fenced = true,
            .methods = methods,
            .method_count = sizeof(methods) / sizeof(methods[0]),
            .ctx = self,
        };
        rc = sl_rpc_endpoint_start(options->rpc, &self->endpoint, &endpoint);
    }
    if (rc != 0) {
        sl_topology_master_free(self);
        return rc;
    }
    if (options->place.port != 0) {
        look_before_standing(self);
    } else {
        stand(self);
    }
    *out = self;
    return 0;
}

void
sl_topology_master_free(struct sl_topology_master *self)
{
    if (self == NULL) {
        return;
    }
    self->phase = SL__TM_ENDING;
    sl_state_executor_timer_stop(executor_of(self), &self->retry_timer);
    sl_state_cancel(self->options.store, self->load_ticket);
    sl_state_cancel(self->options.store, self->plan_ticket);
    sl_state_cancel(self->options.store, self->save_ticket);
    sl_state_cancel(self->options.store, self->publish_ticket);
    sl_state_cancel(self->options.store, self->location_ticket);
    sl_timer_stop(&self->end_timer);
    sl_timer_stop(&self->nudge_timer);
    sl_timer_stop(&self->kill_timer);
    sl__tm_drain_stop(self);
    sl__tm_update_abandon(self);
    sl__tm_measures_abandon(self);
    sl__tm_waiters_fail(self, "the topology master ends");
    for (size_t i = 0; i < self->early.count; i++) {
        sl_rpc_refuse(self->early.items[i].request, SL_RPC_FAILURE, SL_ECANCELED,
                      "the topology master ends");
        sl_buf_destroy(&self->early.items[i].body);
    }
    sl_vec_destroy(&self->early);
    sl_rpc_endpoint_stop(&self->endpoint);
    if (self->election != NULL) {
        sl_state_election_free(self->election);
    }
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->workers, &at)) != NULL;) {
        sl__tm_worker_remove(self, (void *)(uintptr_t)entry->value);
    }
    sl_map_u64_destroy(&self->workers);
    if (self->has_heartbeats) {
        sl_heartbeats_destroy(&self->heartbeats);
    }
    for (size_t i = 0; i < self->events.count; i++) {
        sl_free(self->events.items[i].text);
    }
    sl_vec_destroy(&self->events);
    sl__tm_plan_free(self->plan);
    sl_arena_destroy(&self->execution_arena);
    sl_free(self->failure);
    sl_free(self->topology);
    sl_free(self);
}

bool
sl_topology_master_is_settled(const struct sl_topology_master *self)
{
    return self->is_settled;
}

void
sl_topology_master_set_guardian(struct sl_topology_master *self, uint64_t pid)
{
    self->options.guardian_pid = pid;
}
