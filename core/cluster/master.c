#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/master_priv.h"

enum {
    LOAD_AGAIN_MS = 500,
};

/* Calls that are under way. */

struct sl__master_call *
sl__master_call_new(struct sl_master *self,
                    void (*stored)(void *ctx, int status, const struct sl_state_result *result),
                    void (*drop)(void *ctx), void *ctx)
{
    struct sl__master_call *call = sl_calloc(1, sizeof(*call));
    call->master = self;
    call->stored = stored;
    call->drop = drop;
    call->ctx = ctx;
    sl_list_push_back(&self->calls, &call->node);
    return call;
}

void
sl__master_stored(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__master_call *call = ctx;
    if (call->master != NULL) {
        sl_list_remove(&call->node);
        call->stored(call->ctx, status, result);
    }
    sl_free(call);
}

static void
free_gateway(void *ctx)
{
    sl_rpc_gateway_free(ctx);
}

static void
asked(void *ctx, const struct sl_rpc_result *result)
{
    struct sl__master_call *call = ctx;
    struct sl_master *self = call->master;
    sl_list_remove(&call->node);
    call->answered(call->ctx, result);
    sl_loop_post(self->loop, free_gateway, call->gateway);
    sl_free(call);
}

int
sl__master_ask(struct sl_master *self, const char *address, const char *endpoint, uint64_t token,
               uint32_t method, const struct sl_buf *body, uint64_t limit_ms,
               sl_rpc_done_fn answered, void (*drop)(void *ctx), void *ctx)
{
    struct sl_rpc_gateway *gateway = NULL;
    int rc = sl_rpc_connect(self->options.rpc, address, endpoint, token, &gateway);
    if (rc != 0) {
        return rc;
    }
    struct sl__master_call *call = sl_calloc(1, sizeof(*call));
    call->master = self;
    call->gateway = gateway;
    call->answered = answered;
    call->drop = drop;
    call->ctx = ctx;
    sl_list_push_back(&self->calls, &call->node);
    sl_rpc_call(gateway, method, body != NULL ? body->data : NULL, body != NULL ? body->size : 0,
                limit_ms, asked, call);
    return 0;
}

int
sl__master_ask_topology(struct sl__master_topology *topology, uint32_t method,
                        const struct sl_buf *body, uint64_t limit_ms, sl_rpc_done_fn answered,
                        void (*drop)(void *ctx), void *ctx)
{
    char endpoint[SL_RPC_NAME_MAX + 1];
    if (topology->leader_token == 0) {
        return sl_err_set(SL_EUNAVAIL, "no process leads %s at present", topology->name);
    }
    snprintf(endpoint, sizeof(endpoint), SL_ENDPOINT_TOPOLOGY_MASTER "%.64s", topology->name);
    return sl__master_ask(topology->master, topology->leader_address, endpoint,
                          topology->leader_token, method, body, limit_ms, answered, drop, ctx);
}

/* The answer of another process does not come any more; that of the store finds nobody. */
static void
drop_call(struct sl__master_call *call)
{
    sl_list_remove(&call->node);
    if (call->drop != NULL) {
        call->drop(call->ctx);
    }
    call->master = NULL;
    if (call->gateway != NULL) {
        sl_rpc_gateway_free(call->gateway);
        sl_free(call);
    }
}

static void
drop_calls(struct sl_master *self)
{
    while (!sl_list_is_empty(&self->calls)) {
        drop_call(sl_container_of(sl_list_first(&self->calls), struct sl__master_call, node));
    }
}

void
sl__master_forget(struct sl_master *self, const void *ctx)
{
    sl_list_each(&self->calls, it)
    {
        struct sl__master_call *call = sl_container_of(it, struct sl__master_call, node);
        if (call->ctx == ctx) {
            drop_call(call);
        }
    }
}

/* The endpoint of clients. */

/* Between a term's first word and its last everything else is asked again by clients. */
static bool
is_ready(struct sl_master *self, struct sl_rpc_request *request)
{
    if (self->phase == SL__MASTER_LEADING) {
        return true;
    }
    sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EAGAIN, "the master does not lead yet");
    return false;
}

static size_t
count_slots(const struct sl__master_node *node)
{
    return node->has_info ? node->info.port_count : 0;
}

static void
fill_supervisor(const struct sl_master *self, const struct sl__master_node *node,
                struct sl_arena *arena, struct sl_master_supervisor *to)
{
    size_t count = count_slots(node);
    struct sl_master_slot *slots = sl_arena_calloc(arena, count + 1, sizeof(*slots));
    for (size_t i = 0; i < count; i++) {
        const struct sl__master_topology *owner =
            sl__master_slot_owner(self, node->id, node->info.ports[i]);
        slots[i] = (struct sl_master_slot){node->info.ports[i], owner != NULL ? owner->name : ""};
    }
    *to = (struct sl_master_supervisor){node->id, node->has_info ? node->info.host : "", slots,
                                        count, sl__master_node_is_registered(self, node->id)};
}

static void
handle_status(void *ctx, struct sl_rpc_request *request)
{
    struct sl_master *self = ctx;
    struct sl_map_bytes_entry *entry;
    struct sl_arena arena;
    struct sl_buf out = {0};
    if (!is_ready(self, request)) {
        return;
    }
    sl_arena_create(&arena, 0, 0);
    struct sl_master_supervisor *supervisors =
        sl_arena_calloc(&arena, self->nodes.count + 1, sizeof(*supervisors));
    struct sl_master_topology *topologies =
        sl_arena_calloc(&arena, self->topologies.count + 1, sizeof(*topologies));
    struct sl_master_status status = {
        .master = self->name, .supervisors = supervisors, .topologies = topologies};
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->nodes, &at)) != NULL;) {
        fill_supervisor(self, entry->value, &arena, &supervisors[status.supervisor_count++]);
    }
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->topologies, &at)) != NULL;) {
        const struct sl__master_topology *topology = entry->value;
        topologies[status.topology_count++] = (struct sl_master_topology){
            topology->name, sl_master_status_name(topology->status), topology->plan.version,
            topology->plan.master.supervisor, topology->plan.master.port};
    }
    sl_master_status_encode(&status, &out);
    sl_rpc_reply(request, out.data, out.size);
    sl_buf_destroy(&out);
    sl_arena_destroy(&arena);
}

static void
handle_pieces(void *ctx, struct sl_rpc_request *request)
{
    if (is_ready(ctx, request)) {
        sl__master_handle_pieces(ctx, request);
    }
}

static void
handle_kill(void *ctx, struct sl_rpc_request *request)
{
    if (is_ready(ctx, request)) {
        sl__master_handle_kill(ctx, request);
    }
}

static void
handle_reassign(void *ctx, struct sl_rpc_request *request)
{
    if (is_ready(ctx, request)) {
        sl__master_handle_reassign(ctx, request);
    }
}

static const struct sl_rpc_method methods[] = {
    {SL_MASTER_SUBMIT, handle_pieces},     {SL_MASTER_UPDATE, handle_pieces},
    {SL_MASTER_KILL, handle_kill},         {SL_MASTER_STATUS, handle_status},
    {SL_MASTER_REASSIGN, handle_reassign},
};

/* A term begins: everything is read anew. */

static void load(struct sl_master *self);

static void
lead(struct sl_master *self)
{
    struct sl_map_bytes_entry *entry;
    self->phase = SL__MASTER_LEADING;
    self->term_ms = sl_loop_now_ms(self->loop);
    sl_resource_manager_grant(self->resources, self->token);
    sl_rpc_endpoint_set_token(&self->endpoint, self->token);
    sl__master_nodes_start(self);
    sl_log_info("cluster", "leads in term %llu: topologies=%zu", (unsigned long long)self->token,
                self->topologies.count);
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->topologies, &at)) != NULL;) {
        struct sl__master_topology *topology = entry->value;
        enum sl_master_effect effect;
        sl__master_topology_watch(topology);
        sl__master_topology_act(topology, SL_MASTER_DO_STARTUP, &effect);
        if (effect == SL_MASTER_ARM_KILL) {
            sl__master_kill_run(topology);
        }
    }
    sl__master_monitor_start(self);
}

static void
load_again(void *ctx, uint64_t ticket)
{
    struct sl_master *self = ctx;
    (void)ticket;
    if (self->phase == SL__MASTER_LOADING) {
        load(self);
    }
}

static void
clear_topologies(struct sl_master *self)
{
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->topologies, &at)) != NULL;) {
        sl__master_topology_remove(self, entry->value);
    }
    sl_map_bytes_clear(&self->topologies);
    sl_map_bytes_clear(&self->slots);
}

static void
load_failed(struct sl_master *self)
{
    sl_log_warn("cluster", "what is stored can not be read: %s", sl_err_last()->msg);
    drop_calls(self);
    clear_topologies(self);
    sl_timer_start(self->loop, &self->load_timer, LOAD_AGAIN_MS, load_again, self);
}

static void
loaded_one(struct sl_master *self)
{
    if (--self->loading == 0) {
        lead(self);
    }
}

static void
plan_loaded(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__master_topology *topology = ctx;
    struct sl_master *self = topology->master;
    if (status == 0) {
        sl__master_topology_set_plan(topology, result->value, result->size, result->stat.version);
    } else if (status != SL_ENOTFOUND) {
        load_failed(self);
        return;
    }
    loaded_one(self);
}

static void
read_scheduling(struct sl__master_topology *topology, const struct sl_scheduling *scheduling)
{
    sl_free(topology->topology_id);
    topology->topology_id = sl_strdup(scheduling->topology_id);
    sl_buf_append(&topology->schedule, scheduling->schedule, scheduling->schedule_size);
    for (size_t i = 0; i < scheduling->start_count; i++) {
        sl_vec_push(&topology->starts, scheduling->starts[i]);
    }
    topology->kill_due_ms = scheduling->kill_due_ms;
    topology->stored_due_ms = scheduling->kill_due_ms;
    topology->is_purged = scheduling->is_purged;
    if (topology->kill_due_ms != 0) {
        topology->status = SL_MASTER_KILLED;
    }
}

static void
scheduling_loaded(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__master_topology *topology = ctx;
    struct sl_master *self = topology->master;
    struct sl_scheduling scheduling;
    struct sl_arena arena;
    char path[SL_STATE_PATH_MAX + 1];
    if (status != 0 && status != SL_ENOTFOUND) {
        load_failed(self);
        return;
    }
    sl_arena_create(&arena, 0, 0);
    if (status == SL_ENOTFOUND ||
        sl_scheduling_decode(result->value, result->size, &arena, &scheduling) != 0) {
        /* Not one that masters schedule. */
        sl__master_topology_remove(self, topology);
        loaded_one(self);
    } else {
        read_scheduling(topology, &scheduling);
        sl_state_get(self->options.store, sl_layout_path(path, SL_LAYOUT_PLAN, topology->name),
                     sl__master_stored, sl__master_call_new(self, plan_loaded, NULL, topology));
    }
    sl_arena_destroy(&arena);
}

static void
topologies_loaded(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_master *self = ctx;
    char path[SL_STATE_PATH_MAX + 1];
    if (status != 0 && status != SL_ENOTFOUND) {
        load_failed(self);
        return;
    }
    size_t count = status == 0 ? result->child_count : 0;
    self->loading = count + 1;
    for (size_t i = 0; i < count; i++) {
        const char *name = result->children[i];
        struct sl__master_topology *topology = sl__master_topology_add(self, name, "");
        sl_state_get(self->options.store, sl_layout_path(path, SL_LAYOUT_SCHEDULING, name),
                     sl__master_stored,
                     sl__master_call_new(self, scheduling_loaded, NULL, topology));
    }
    loaded_one(self);
}

static void
folder_made(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_master *self = ctx;
    (void)result;
    if (status != 0 && status != SL_EEXIST) {
        load_failed(self);
    } else if (--self->loading == 0) {
        /* The parts of a topology that was killed by half have its scheduling still. */
        sl_state_children(self->options.store, sl_layout_folder(SL_LAYOUT_SCHEDULING),
                          sl__master_stored,
                          sl__master_call_new(self, topologies_loaded, NULL, self));
    }
}

/* The folders first, which transactions do not make. */
static void
load(struct sl_master *self)
{
    static const enum sl_layout_part parts[] = {
        SL_LAYOUT_TOPOLOGY, SL_LAYOUT_PLAN,       SL_LAYOUT_EXECUTION_STATE,
        SL_LAYOUT_PACKAGE,  SL_LAYOUT_SCHEDULING, SL_LAYOUT_BACKUP,
    };
    size_t count = sizeof(parts) / sizeof(parts[0]);
    self->loading = count;
    for (size_t i = 0; i < count; i++) {
        sl_state_create(self->options.store, sl_layout_folder(parts[i]), NULL, 0, 0,
                        sl__master_stored, sl__master_call_new(self, folder_made, NULL, self));
    }
}

/* The term ends: nothing of it is finished. */
static void
revoke(struct sl_master *self)
{
    sl_rpc_endpoint_set_token(&self->endpoint, 0);
    sl_timer_stop(&self->monitor_timer);
    sl_timer_stop(&self->load_timer);
    sl_timer_stop(&self->wait_timer);
    sl__master_events_clear(self);
    sl__master_uploads_clear(self);
    drop_calls(self);
    sl_resource_manager_revoke(self->resources);
    sl__master_nodes_stop(self);
    clear_topologies(self);
    self->phase = SL__MASTER_STANDING;
    self->token = 0;
    self->is_suspended = false;
    self->is_frozen = false;
}

static void
elected(void *ctx, enum sl_state_election_event event, uint64_t token)
{
    struct sl_master *self = ctx;
    switch (event) {
    case SL_STATE_ELECTION_GRANTED:
        if (self->phase != SL__MASTER_STANDING) {
            revoke(self);
        }
        self->token = token;
        self->phase = SL__MASTER_LOADING;
        load(self);
        break;
    case SL_STATE_ELECTION_SUSPENDED:
        self->is_suspended = true;
        break;
    case SL_STATE_ELECTION_RESUMED:
        self->is_suspended = false;
        /* Nobody was judged meanwhile, and nobody is for what happened then. */
        self->term_ms = sl_loop_now_ms(self->loop);
        sl__master_events_run(self);
        break;
    case SL_STATE_ELECTION_REVOKED:
        if (self->phase != SL__MASTER_STANDING) {
            sl_log_warn("cluster", "term %llu is over", (unsigned long long)self->token);
            revoke(self);
        }
        break;
    }
}

static void
topology_leader(void *ctx, const char *topology, const char *address, uint64_t token)
{
    struct sl_master *self = ctx;
    (void)address;
    sl_resource_manager_topology_leader(self->resources, topology, token);
}

static void
resources_failed(void *ctx, const char *reason)
{
    struct sl_master *self = ctx;
    self->options.on_fatal(self->options.ctx, reason);
}

static int
start_endpoints(struct sl_master *self)
{
    struct sl_resource_manager_options resources = {
        .rpc = self->options.rpc,
        .resource = self->name,
        .heartbeat = self->options.heartbeat,
        .slots = self->options.slots,
        .topology_timeout_ms = self->options.topology_timeout_ms,
        .start_up_ms = self->options.start_up_ms,
        .watch = sl_topology_leaders_watch(&self->leaders),
        .on_fatal = resources_failed,
        .ctx = self,
    };
    struct sl_rpc_endpoint_options endpoint = {
        .name = SL_ENDPOINT_MASTER,
        .is_fenced = true,
        .methods = methods,
        .method_count = sizeof(methods) / sizeof(methods[0]),
        .ctx = self,
    };
    int rc = sl_resource_manager_new(&resources, &self->resources);
    return rc != 0 ? rc : sl_rpc_endpoint_start(self->options.rpc, &self->endpoint, &endpoint);
}

int
sl_master_new(const struct sl_master_options *options, struct sl_master **master)
{
    struct sl_master *self = sl_calloc(1, sizeof(*self));
    self->options = *options;
    self->name = sl_strdup(options->name);
    self->folder = sl_strdup(options->folder);
    self->loop = sl_rpc_loop(options->rpc);
    if (self->options.monitor_interval_ms == 0) {
        self->options.monitor_interval_ms = SL_MASTER_MONITOR_MS;
    }
    if (self->options.supervisor_timeout_ms == 0) {
        self->options.supervisor_timeout_ms = SL_MASTER_SUPERVISOR_TIMEOUT_MS;
    }
    sl_list_create(&self->calls);
    sl_list_create(&self->events);
    sl_list_create(&self->storing);
    sl_list_create(&self->changing);
    sl_list_create(&self->uploads);
    sl_topology_leaders_create(&self->leaders, options->store, self->loop,
                               sl_layout_folder(SL_LAYOUT_TOPOLOGY_LEADER), topology_leader, self);
    int rc = start_endpoints(self);
    if (rc != 0) {
        sl_master_free(self);
        return rc;
    }
    self->election = sl_state_election_new(options->store, SL_LAYOUT_MASTER_LEADER, self->name,
                                           sl_rpc_address(options->rpc), elected, self);
    *master = self;
    return 0;
}

void
sl_master_free(struct sl_master *self)
{
    if (self == NULL) {
        return;
    }
    if (self->resources != NULL) {
        revoke(self);
        sl_resource_manager_free(self->resources);
    }
    sl_rpc_endpoint_stop(&self->endpoint);
    if (self->election != NULL) {
        sl_state_election_free(self->election);
    }
    sl_topology_leaders_destroy(&self->leaders);
    sl_map_bytes_destroy(&self->topologies);
    sl_map_bytes_destroy(&self->slots);
    sl_map_bytes_destroy(&self->nodes);
    sl_free(self->folder);
    sl_free(self->name);
    sl_free(self);
}

bool
sl_master_is_leading(const struct sl_master *self)
{
    return self->phase == SL__MASTER_LEADING;
}

size_t
sl_master_supervisor_count(const struct sl_master *self)
{
    return sl_resource_manager_supervisor_count(self->resources);
}
