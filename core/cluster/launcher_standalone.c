#include "cluster/launcher_standalone.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "cluster/control_messages.h"
#include "cluster/master_messages.h"
#include "cluster/master_slots.h"
#include "cluster/settings.h"
#include "rpc/leader_retrieval.h"
#include "state/layout.h"

enum {
    /* How long a master may take to change a plan. */
    REASSIGN_MS = 60000,
    /* How long the end of a topology without containers waits for supervisors that offer slots. */
    LINGER_MS = 2000,
};

/* A container in its slot. Container 0 holds the slot of the topology master, in which no worker
 * is. */
struct held {
    struct sl_launcher_standalone *launcher;
    struct sl_list_node node;
    int32_t id;
    char supervisor[SL_NAME_MAX + 1];
    uint32_t port;
    /* Of the slot request that is open or served; 0: none. */
    uint64_t request;
    /* The slot, 0 while there is none. */
    uint64_t allocation;
    uint64_t pid;
    uint32_t restarts;
    bool is_stopping;
    /* How often its supervisor gave the worker up. */
    uint32_t given_up;
    uint64_t retry_ms;
    struct sl_timer retry;
    /* The call to the supervisor that is under way. */
    struct sl_rpc_gateway *gateway;
    uint64_t call;
    /* The call to the master that is to put it elsewhere, and why. */
    uint64_t reassign_call;
    char cause[SL_REASON_SIZE];
};

struct sl_launcher_standalone {
    struct sl_launcher_standalone_options options;
    struct sl_loop *loop;
    char *topology;
    char *cwd;
    uint64_t token;
    struct sl_launcher_listener listener;
    struct sl_master_slots *slots;
    struct sl_leader_retrieval *leader;
    /* The leading master, for what can not run where it is. */
    struct sl_rpc_gateway *master;
    uint64_t plan_version;
    struct sl_list list;
    uint64_t last_request;
    bool is_stopping_all;
    struct sl_timer linger_timer;
    bool is_fatal;
};

static void ask_for_slot(struct held *held);

static struct held *
find(const struct sl_launcher_standalone *self, int32_t id)
{
    sl_list_each(&self->list, it)
    {
        struct held *held = sl_container_of(it, struct held, node);
        if (held->id == id && !held->is_stopping) {
            return held;
        }
    }
    return NULL;
}

static struct held *
find_request(const struct sl_launcher_standalone *self, uint64_t request)
{
    sl_list_each(&self->list, it)
    {
        struct held *held = sl_container_of(it, struct held, node);
        if (held->request == request) {
            return held;
        }
    }
    return NULL;
}

static struct held *
find_allocation(const struct sl_launcher_standalone *self, uint64_t allocation)
{
    sl_list_each(&self->list, it)
    {
        struct held *held = sl_container_of(it, struct held, node);
        if (allocation != 0 && held->allocation == allocation) {
            return held;
        }
    }
    return NULL;
}

/* Calls to a supervisor. */

static void
forget_call(struct held *held)
{
    /* The gateway goes with the supervisor's registration, and the call with it. */
    if (held->gateway != NULL && held->launcher->slots != NULL &&
        sl_master_slots_supervisor(held->launcher->slots, held->supervisor) == held->gateway) {
        sl_rpc_cancel(held->gateway, held->call);
    }
    held->gateway = NULL;
    held->call = 0;
}

/* False when the supervisor is not there. */
static bool
call_supervisor(struct held *held, uint32_t method, uint64_t timeout_ms, sl_rpc_done_fn done)
{
    struct sl_launcher_standalone *self = held->launcher;
    struct sl_rpc_gateway *gateway = sl_master_slots_supervisor(self->slots, held->supervisor);
    struct sl_worker_command command = {.topology = self->topology,
                                        .allocation = held->allocation,
                                        .token = self->token,
                                        .container = held->id,
                                        .cwd = self->cwd};
    struct sl_buf body = {0};
    if (gateway == NULL) {
        return false;
    }
    forget_call(held);
    sl_worker_command_encode(&command, &body);
    held->gateway = gateway;
    held->call = sl_rpc_call(gateway, method, body.data, body.size, timeout_ms, done, held);
    sl_buf_destroy(&body);
    return true;
}

static void
held_free(struct held *held)
{
    forget_call(held);
    if (held->launcher->master != NULL) {
        sl_rpc_cancel(held->launcher->master, held->reassign_call);
    }
    sl_timer_stop(&held->retry);
    sl_list_remove(&held->node);
    sl_free(held);
}

static void
tell_all_stopped(void *ctx)
{
    struct sl_launcher_standalone *self = ctx;
    if (self->is_stopping_all && sl_list_is_empty(&self->list)) {
        self->is_stopping_all = false;
        sl_master_slots_close(self->slots, "the topology is killed");
        self->listener.on_all_stopped(self->listener.ctx);
    }
}

/* What is known of the process of a container has changed. */
static void
take_state(struct held *held, const struct sl_slot_worker *state)
{
    struct sl_launcher_standalone *self = held->launcher;
    /* Without a process before: one that could not be started. */
    bool has_ended = held->pid != 0 ? held->pid != state->pid
                                    : state->text[0] != '\0' && state->restarts != held->restarts;
    held->pid = state->pid;
    held->restarts = state->restarts;
    if (has_ended && !held->is_stopping) {
        self->listener.on_ended(self->listener.ctx, held->id,
                                state->text[0] != '\0' ? state->text : "an end that nobody saw");
    }
}

/* What can not run where it is. */

static void
reassign_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct held *held = ctx;
    struct sl_launcher_standalone *self = held->launcher;
    char text[2 * SL_REASON_SIZE + 16];
    held->reassign_call = 0;
    if (result->status == SL_RPC_SUCCESS) {
        return;
    }
    sl_log_info("cluster", "%s: container %d stays where it is: %s", self->topology, held->id,
                result->reason);
    if (result->code == SL_EUNSATISFIABLE) {
        snprintf(text, sizeof(text), "%s; elsewhere: %s", held->cause, result->reason);
        self->listener.on_stuck(self->listener.ctx, held->id, text);
    }
}

static void
ask_for_another_slot(struct held *held, const char *cause)
{
    struct sl_launcher_standalone *self = held->launcher;
    struct sl_master_reassign message = {.topology = self->topology,
                                         .plan_version = self->plan_version,
                                         .containers = &held->id,
                                         .count = 1,
                                         .cause = cause};
    struct sl_buf body = {0};
    if (self->master != NULL && held->id != 0 && held->reassign_call == 0) {
        snprintf(held->cause, sizeof(held->cause), "%s", cause);
        sl_master_reassign_encode(&message, &body);
        held->reassign_call = sl_rpc_call(self->master, SL_MASTER_REASSIGN, body.data, body.size,
                                          REASSIGN_MS, reassign_answered, held);
        sl_buf_destroy(&body);
    }
}

static void
retry(void *ctx, uint64_t ticket)
{
    (void)ticket;
    ask_for_slot(ctx);
}

static void
retry_later(struct held *held)
{
    uint64_t doubled = 2 * held->retry_ms;
    held->retry_ms = doubled == 0                           ? SL_STANDALONE_RETRY_MS
                     : doubled > SL_STANDALONE_RETRY_MAX_MS ? SL_STANDALONE_RETRY_MAX_MS
                                                            : doubled;
    sl_timer_start(held->launcher->loop, &held->retry, held->retry_ms, retry, held);
}

/* Starting. */

static void
start_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct held *held = ctx;
    struct sl_arena arena;
    struct sl_slot_worker state;
    held->gateway = NULL;
    held->call = 0;
    sl_arena_create(&arena, 0, 64 * 1024);
    if (result->status != SL_RPC_SUCCESS) {
        /* Either the slot is lost, which is told in another way, or it is tried again. */
        sl_log_info("cluster", "%s: container %d is not started: %s", held->launcher->topology,
                    held->id, result->reason);
        if (result->code == SL_EUNAVAIL && result->status == SL_RPC_FAILURE) {
            ask_for_another_slot(held, result->reason);
        }
        retry_later(held);
    } else if (sl_slot_worker_decode(result->body, result->size, &arena, &state) == 0) {
        held->retry_ms = 0;
        take_state(held, &state);
    }
    sl_arena_destroy(&arena);
}

static void
start_worker(struct held *held)
{
    if (held->id != 0 && !call_supervisor(held, SL_SV_START_WORKER, 0, start_answered)) {
        retry_later(held);
    }
}

/* A slot that the topology has already but nobody uses: its supervisor came back with it. */
static bool
use_available_slot(struct held *held)
{
    struct sl_slot_pool *pool = sl_master_slots_pool(held->launcher->slots);
    size_t count = sl_slot_pool_report(pool, held->supervisor, NULL, 0);
    struct sl_slot_status *slots = sl_calloc(count + 1, sizeof(*slots));
    sl_slot_pool_report(pool, held->supervisor, slots, count);
    bool is_found = false;
    for (size_t i = 0; i < count && !is_found; i++) {
        is_found = slots[i].port == held->port &&
                   sl_slot_pool_allocate_available(pool, held->request, slots[i].allocation);
    }
    sl_free(slots);
    return is_found;
}

static void
ask_for_slot(struct held *held)
{
    struct sl_launcher_standalone *self = held->launcher;
    struct sl_slot_wish wish = {
        .profile = sl_profile_unknown(), .supervisor = held->supervisor, .port = held->port};
    if (held->is_stopping) {
        return;
    }
    if (held->allocation != 0) {
        start_worker(held);
        return;
    }
    held->request = ++self->last_request;
    if (!use_available_slot(held)) {
        sl_master_slots_request(self->slots, held->request, &wish);
    }
}

static void
on_slot(void *ctx, uint64_t request, uint64_t allocation, const char *supervisor, uint32_t port)
{
    struct held *held = find_request(ctx, request);
    (void)supervisor;
    (void)port;
    if (held != NULL) {
        sl_timer_stop(&held->retry);
        held->allocation = allocation;
        start_worker(held);
    }
}

static void
on_slot_failed(void *ctx, uint64_t request, enum sl_slot_failure kind, const char *reason)
{
    struct sl_launcher_standalone *self = ctx;
    struct held *held = find_request(self, request);
    if (held == NULL || held->is_stopping) {
        return;
    }
    held->request = 0;
    sl_log_info("cluster", "%s: container %d has no slot: %s", self->topology, held->id, reason);
    if (held->pid == 0 && kind == SL_SLOT_UNFULFILLABLE) {
        ask_for_another_slot(held, reason);
    }
    retry_later(held);
}

/* The supervisor is away, or gave the worker up. */
static void
on_slot_lost(void *ctx, uint64_t request, uint64_t allocation, const char *cause)
{
    struct sl_launcher_standalone *self = ctx;
    struct held *held = find_request(self, request);
    (void)allocation;
    if (held == NULL) {
        return;
    }
    forget_call(held);
    held->request = 0;
    held->allocation = 0;
    if (held->is_stopping) {
        held_free(held);
        sl_loop_post(self->loop, tell_all_stopped, self);
        return;
    }
    sl_log_info("cluster", "%s: container %d lost its slot: %s", self->topology, held->id, cause);
    if (held->pid == 0 && held->restarts > 0) {
        /* The worker ended again and again. What is wrong may be the place, or the program. */
        uint32_t doublings = held->given_up < 6 ? held->given_up : 6;
        held->given_up++;
        held->restarts = 0;
        ask_for_another_slot(held, cause);
        sl_timer_start(self->loop, &held->retry, SL_STANDALONE_RETRY_MAX_MS << doublings, retry,
                       held);
        return;
    }
    retry_later(held);
}

/* A supervisor that was away may come back with a slot that the plan does not name any more. */
static bool
is_wanted(void *ctx, const char *supervisor, uint32_t port)
{
    const struct sl_launcher_standalone *self = ctx;
    sl_list_each(&self->list, it)
    {
        const struct held *held = sl_container_of(it, struct held, node);
        if (!held->is_stopping && held->port == port && strcmp(held->supervisor, supervisor) == 0) {
            return true;
        }
    }
    return false;
}

static void
on_worker_state(void *ctx, const struct sl_slot_worker *state)
{
    struct held *held = find_allocation(ctx, state->allocation);
    if (held != NULL && held->id == state->container) {
        take_state(held, state);
    }
}

/* The resource manager. */

static void
on_stale_leader(void *ctx)
{
    struct sl_launcher_standalone *self = ctx;
    sl_leader_retrieval_look_again(self->leader);
}

static void
on_fatal(void *ctx, const char *reason)
{
    struct sl_launcher_standalone *self = ctx;
    if (!self->is_fatal) {
        self->is_fatal = true;
        self->options.on_fatal(self->options.ctx, reason);
    }
}

static void
master_leader(void *ctx, const char *address, uint64_t token)
{
    struct sl_launcher_standalone *self = ctx;
    if (self->master != NULL) {
        sl_rpc_gateway_free(self->master);
        self->master = NULL;
        sl_list_each(&self->list, it)
        {
            sl_container_of(it, struct held, node)->reassign_call = 0;
        }
    }
    if (address != NULL &&
        sl_rpc_connect(self->options.rpc, address, SL_ENDPOINT_MASTER, token, &self->master) != 0) {
        sl_log_warn("cluster", "%s", sl_err_last()->msg);
    }
    sl_master_slots_rm_leader(self->slots, address, token);
}

/* The seam. */

static int
launcher_initialize(void *ctx, const struct sl_execution_state *execution, uint64_t token,
                    const struct sl_launcher_listener *listener)
{
    struct sl_launcher_standalone *self = ctx;
    const struct sl_settings *settings = self->options.settings;
    self->listener = *listener;
    self->cwd = sl_strdup(execution->cwd);
    self->token = token;
    struct sl_master_slots_options options = {
        .rpc = self->options.rpc,
        .topology = self->topology,
        .address = sl_rpc_address(self->options.rpc),
        .resource = self->topology,
        .process = sl_random_u64(sl_loop_random(self->loop)),
        .token = token,
        .registration = sl_settings_registration(settings),
        .heartbeat = sl_settings_heartbeat(settings),
        .slot_request_timeout_ms = (uint64_t)settings->slot_request_timeout_ms,
        .slot_idle_timeout_ms = (uint64_t)settings->slot_idle_timeout_ms,
        .on_stale_leader = on_stale_leader,
        .on_fatal = on_fatal,
        .on_slot = on_slot,
        .on_slot_failed = on_slot_failed,
        .on_slot_lost = on_slot_lost,
        .is_wanted = is_wanted,
        .on_worker_state = on_worker_state,
        .ctx = self,
    };
    int rc = sl_master_slots_new(&options, &self->slots);
    if (rc == 0) {
        self->leader = sl_leader_retrieval_new(self->options.store, self->loop,
                                               SL_LAYOUT_MASTER_LEADER, master_leader, self);
    }
    return rc;
}

static void
hold(struct sl_launcher_standalone *self, int32_t id, const struct sl_plan_slot *slot)
{
    struct held *held = sl_calloc(1, sizeof(*held));
    held->launcher = self;
    held->id = id;
    snprintf(held->supervisor, sizeof(held->supervisor), "%s", slot->supervisor);
    held->port = slot->port;
    sl_list_push_back(&self->list, &held->node);
    ask_for_slot(held);
}

static bool
is_same_slot(const struct sl_plan_slot *a, const struct sl_plan_slot *b)
{
    return a->port == b->port && strcmp(a->supervisor, b->supervisor) == 0;
}

static void stop_held(struct held *held);

/* A topology master that is alone in its slot holds it, so that nobody else gets it. */
static void
hold_own_slot(struct sl_launcher_standalone *self, const struct sl_stored_plan *plan)
{
    struct held *held = find(self, 0);
    bool is_alone = plan->master.port != 0;
    for (int32_t i = 0; i < plan->plan.container_count; i++) {
        is_alone = is_alone && !is_same_slot(&plan->slots[i], &plan->master);
    }
    struct sl_plan_slot now = {held != NULL ? held->supervisor : "", "",
                               held != NULL ? held->port : 0};
    if (held != NULL && !(is_alone && is_same_slot(&now, &plan->master))) {
        stop_held(held);
        held = NULL;
    }
    if (held == NULL && is_alone) {
        hold(self, 0, &plan->master);
    }
}

static const struct sl_plan_slot *
slot_in(const struct sl_stored_plan *plan, int32_t id)
{
    for (int32_t i = 0; i < plan->plan.container_count; i++) {
        if (plan->plan.containers[i].id == id && plan->slots[i].port != 0) {
            return &plan->slots[i];
        }
    }
    return NULL;
}

static int
launcher_add(void *ctx, const struct sl_stored_plan *plan, int32_t *ids, size_t count)
{
    struct sl_launcher_standalone *self = ctx;
    for (size_t i = 0; i < count; i++) {
        if (slot_in(plan, ids[i]) == NULL) {
            return sl_err_set(SL_EINVAL, "the plan names no slot for container %d", ids[i]);
        }
    }
    self->plan_version = plan->version;
    hold_own_slot(self, plan);
    for (size_t i = 0; i < count; i++) {
        if (find(self, ids[i]) == NULL) {
            hold(self, ids[i], slot_in(plan, ids[i]));
        }
    }
    return 0;
}

/* Stopping. */

static void
stopped(struct held *held)
{
    struct sl_launcher_standalone *self = held->launcher;
    uint64_t request = held->request;
    held_free(held);
    if (request != 0) {
        sl_master_slots_give_back(self->slots, request, "the container has ended");
    }
    tell_all_stopped(self);
}

static void
stop_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct held *held = ctx;
    held->gateway = NULL;
    held->call = 0;
    if (result->status != SL_RPC_SUCCESS) {
        /* Without its slot the supervisor ends it too, or it ends itself. */
        sl_log_info("cluster", "%s: container %d: %s", held->launcher->topology, held->id,
                    result->reason);
    }
    stopped(held);
}

static void
stop_now(void *ctx, uint64_t ticket)
{
    (void)ticket;
    stopped(ctx);
}

static void
stop_held(struct held *held)
{
    if (held->is_stopping) {
        return;
    }
    held->is_stopping = true;
    forget_call(held);
    sl_timer_stop(&held->retry);
    if (held->id == 0 || held->allocation == 0 ||
        !call_supervisor(held, SL_SV_STOP_WORKER, SL_STANDALONE_STOP_MS, stop_answered)) {
        sl_timer_start(held->launcher->loop, &held->retry, 0, stop_now, held);
    }
}

static void
launcher_remove(void *ctx, const int32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct held *held = find(ctx, ids[i]);
        if (held != NULL) {
            stop_held(held);
        }
    }
}

static void
restart_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct held *held = ctx;
    held->gateway = NULL;
    held->call = 0;
    if (result->status != SL_RPC_SUCCESS) {
        sl_log_info("cluster", "%s: container %d is not restarted: %s", held->launcher->topology,
                    held->id, result->reason);
    }
}

/* One without a slot is being started anyway. */
static int
launcher_restart(void *ctx, int32_t id)
{
    struct held *held = find(ctx, id);
    if (held == NULL) {
        return sl_err_set(SL_ENOTFOUND, "there is no container %d", id);
    }
    if (held->allocation != 0) {
        call_supervisor(held, SL_SV_RESTART_WORKER, 0, restart_answered);
    }
    return 0;
}

static void
lingered(void *ctx, uint64_t ticket)
{
    (void)ticket;
    tell_all_stopped(ctx);
}

static void
launcher_stop_all(void *ctx)
{
    struct sl_launcher_standalone *self = ctx;
    self->is_stopping_all = true;
    if (sl_list_is_empty(&self->list)) {
        /* A term that began with this end: the supervisors are only finding it, and what they offer
         * is not wanted, so that they end what runs there. */
        sl_timer_start(self->loop, &self->linger_timer, LINGER_MS, lingered, self);
        return;
    }
    sl_list_each(&self->list, it)
    {
        stop_held(sl_container_of(it, struct held, node));
    }
    sl_loop_post(self->loop, tell_all_stopped, self);
}

/* Who runs where the plan says is the worker: a supervisor has one process in a slot. */
static bool
launcher_is_worker(void *ctx, const struct sl_plan_slot *slot,
                   const struct sl_register_peer *worker)
{
    (void)ctx;
    return worker->port == slot->port && strcmp(worker->supervisor, slot->supervisor) == 0;
}

static uint64_t
launcher_pid(void *ctx, int32_t id)
{
    const struct held *held = find(ctx, id);
    return held != NULL ? held->pid : 0;
}

static uint32_t
launcher_restarts(void *ctx, int32_t id)
{
    const struct held *held = find(ctx, id);
    return held != NULL ? held->restarts : 0;
}

struct sl_launcher_standalone *
sl_launcher_standalone_new(const struct sl_launcher_standalone_options *options)
{
    struct sl_launcher_standalone *self = sl_calloc(1, sizeof(*self));
    self->options = *options;
    self->loop = sl_rpc_loop(options->rpc);
    self->topology = sl_strdup(options->topology);
    sl_list_create(&self->list);
    return self;
}

void
sl_launcher_standalone_free(struct sl_launcher_standalone *self)
{
    if (self == NULL) {
        return;
    }
    sl_timer_stop(&self->linger_timer);
    sl_list_each(&self->list, it)
    {
        held_free(sl_container_of(it, struct held, node));
    }
    if (self->leader != NULL) {
        sl_leader_retrieval_free(self->leader);
    }
    if (self->master != NULL) {
        sl_rpc_gateway_free(self->master);
    }
    sl_master_slots_free(self->slots);
    sl_free(self->topology);
    sl_free(self->cwd);
    sl_free(self);
}

struct sl_launcher
sl_launcher_standalone_seam(struct sl_launcher_standalone *self)
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
