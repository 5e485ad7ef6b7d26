#include "cluster/supervisor.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/settings.h"
#include "cluster/supervisor_logs.h"
#include "cluster/supervisor_neighbours.h"
#include "cluster/supervisor_slots.h"
#include "cluster/supervisor_starts.h"
#include "loop/stream.h"
#include "rpc/leader_retrieval.h"
#include "state/layout.h"
#include "state/presence.h"

struct sl_supervisor {
    struct sl_supervisor_options options;
    struct sl_loop *loop;
    char *id;
    char *host;
    char *boot_id;
    char *log_folder;
    uint32_t *ports;
    struct sl_state_presence *presence;
    struct sl_supervisor_processes *processes;
    struct sl_register_supervisor identity;
    struct sl_supervisor_slots *slots;
    struct sl_supervisor_starts starts;
    struct sl_supervisor_logs logs;
    struct sl_topology_leaders leaders;
    struct sl_leader_retrieval *master;
    /* Until the id is ours. */
    struct sl_timer claim_timer;
    uint64_t look_ticket;
    struct sl_supervisor_neighbours neighbours;
    char claimed_by[SL_REASON_SIZE];
    bool is_claimed;
    struct sl_timer end_timer;
    int end_code;
    char end_reason[SL_REASON_SIZE];
};

static void
tell_end(void *ctx, uint64_t ticket)
{
    struct sl_supervisor *self = ctx;
    (void)ticket;
    self->options.on_end(self->options.ctx, self->end_code, self->end_reason);
}

/* In a turn of its own, once. */
static void
end(struct sl_supervisor *self, int code, const char *reason)
{
    if (self->end_code == 0) {
        self->end_code = code;
        snprintf(self->end_reason, sizeof(self->end_reason), "%s", reason);
        sl_timer_start(self->loop, &self->end_timer, 0, tell_end, self);
    }
}

/* Slots. */

static void
stale_leader(void *ctx, const char *topology)
{
    struct sl_supervisor *self = ctx;
    if (topology == NULL) {
        sl_leader_retrieval_look_again(self->master);
    } else {
        sl_topology_leaders_look_again(&self->leaders, topology);
    }
}

static void
send_state(struct sl_supervisor *self, const struct sl_slot_worker *state)
{
    struct sl_buf body = {0};
    sl_slot_worker_encode(state, &body);
    sl_supervisor_slots_tell(self->slots, state->topology, SL_TM_WORKER_STATE, &body);
    sl_buf_destroy(&body);
}

/* It may not know what happened while it was away. */
static void
topology_gained(void *ctx, const char *topology)
{
    struct sl_supervisor *self = ctx;
    struct sl_slot_worker state;
    for (size_t at = 0; sl_supervisor_processes_next(self->processes, topology, &at, &state);) {
        send_state(self, &state);
    }
}

static void
stop_tasks(void *ctx, uint64_t allocation, uint32_t port, const char *cause)
{
    struct sl_supervisor *self = ctx;
    sl_log_info("cluster", "slot %u is given up: %s", port, cause);
    if (!sl_supervisor_processes_stop_worker(self->processes, allocation, NULL, NULL)) {
        sl_supervisor_slots_task_ended(self->slots, allocation);
    }
}

static void
slots_failed(void *ctx, const char *reason)
{
    end(ctx, SL_EUNAVAIL, reason);
}

/* Processes. */

static void
worker_changed(void *ctx, const struct sl_slot_worker *state)
{
    send_state(ctx, state);
}

static void
worker_given_up(void *ctx, uint64_t allocation, const char *cause)
{
    struct sl_supervisor *self = ctx;
    sl_supervisor_slots_fail(self->slots, allocation, cause);
}

static void
worker_stopped(void *ctx, uint64_t allocation)
{
    struct sl_supervisor *self = ctx;
    sl_supervisor_slots_task_ended(self->slots, allocation);
}

static void
master_ended(void *ctx, const char *topology, const char *text, bool is_for_good)
{
    struct sl_supervisor *self = ctx;
    sl_supervisor_starts_ended(&self->starts, topology, text, is_for_good);
}

static void
give_master_up(void *ctx, const char *topology)
{
    struct sl_supervisor *self = ctx;
    sl_supervisor_processes_stop_master(self->processes, topology, NULL, NULL);
}

static bool
take_slot_over(void *ctx, const char *topology, uint32_t port, uint64_t allocation)
{
    struct sl_supervisor *self = ctx;
    return sl_supervisor_slots_take_over(self->slots, topology, port, allocation);
}

/* Requests. */

static void
reply_empty(void *ctx)
{
    sl_rpc_reply(ctx, NULL, 0);
}

static bool
is_port(const struct sl_supervisor *self, uint32_t port)
{
    for (size_t i = 0; i < self->options.port_count; i++) {
        if (self->ports[i] == port) {
            return true;
        }
    }
    return false;
}

static int
handle_master(struct sl_supervisor *self, struct sl_rpc_request *request, struct sl_arena *arena)
{
    uint32_t method = sl_rpc_request_method(request);
    struct sl_start_master message;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    int rc = sl_start_master_decode(body, size, arena, &message);
    if (rc != 0) {
        return rc;
    }
    if (method == SL_SV_STOP_MASTER) {
        if (!sl_supervisor_processes_stop_master(self->processes, message.topology, reply_empty,
                                                 request)) {
            sl_rpc_reply(request, NULL, 0);
        }
        return 0;
    }
    if (!is_port(self, message.port)) {
        return sl_err_set(SL_ENOTFOUND, "there is no slot %u at %s", message.port, self->id);
    }
    /* It may not hang but be cut off from the state manager, as we are: another one would not lead
     * either, and what runs would lose the one that it knows. */
    if (method == SL_SV_RESTART_MASTER && !sl_state_store_is_safe(self->options.store)) {
        return sl_err_set(SL_EUNAVAIL, "%s does not reach the state manager", self->id);
    }
    /* One of that name that runs when a topology is submitted is of an earlier one: it was
     * remembered, and is about to find that it leads nothing. */
    if ((method != SL_SV_RESTART_MASTER && !message.is_new) ||
        !sl_supervisor_processes_restart_master(self->processes, message.topology)) {
        rc = sl_supervisor_processes_start_master(self->processes, message.topology, message.port);
    }
    if (rc == 0 && message.is_new) {
        sl_supervisor_starts_add(&self->starts, message.topology, request);
    } else if (rc == 0) {
        sl_rpc_reply(request, NULL, 0);
    }
    return rc;
}

static void
reply_state(struct sl_supervisor *self, struct sl_rpc_request *request, uint64_t allocation)
{
    struct sl_slot_worker state;
    struct sl_buf body = {0};
    if (sl_supervisor_processes_worker(self->processes, allocation, &state)) {
        sl_slot_worker_encode(&state, &body);
    }
    sl_rpc_reply(request, body.data, body.size);
    sl_buf_destroy(&body);
}

static void
nobody_accepts(void *ctx, struct sl_stream *stream)
{
    (void)ctx;
    sl_stream_close(stream);
}

/* A worker would end at once, again and again, where another program has its port. */
static int
check_port(struct sl_supervisor *self, uint32_t port)
{
    static const struct sl_listener_handler handler = {.on_accept = nobody_accepts};
    struct sl_address address = {.kind = SL_ADDRESS_TCP, .port = (uint16_t)port};
    struct sl_listener *listener;
    snprintf(address.host, sizeof(address.host), "%s", self->host);
    int rc = sl_listener_open(self->loop, &address, &handler, self, &listener);
    if (rc == 0) {
        sl_listener_close(listener);
        return 0;
    }
    return sl_err_set(SL_EUNAVAIL, "port %u of %s can not be used: %s", port, self->id,
                      sl_err_last()->msg);
}

static int
handle_start(struct sl_supervisor *self, struct sl_rpc_request *request,
             const struct sl_held_slot *slot, const struct sl_worker_command *command)
{
    struct sl_slot_worker state;
    bool is_new = !sl_supervisor_processes_worker(self->processes, command->allocation, &state);
    if (is_new && check_port(self, slot->port) != 0) {
        return sl_err_last()->code;
    }
    if (is_new && !sl_supervisor_slots_task_started(self->slots, command->allocation)) {
        return sl_err_set(SL_ECONFLICT, "slot %u is being freed", slot->port);
    }
    int rc = sl_supervisor_processes_start_worker(self->processes, slot->port, command);
    if (rc == 0) {
        reply_state(self, request, command->allocation);
    }
    return rc;
}

static int
handle_worker(struct sl_supervisor *self, struct sl_rpc_request *request, struct sl_arena *arena)
{
    struct sl_worker_command command;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    int rc = sl_worker_command_decode(body, size, arena, &command);
    if (rc != 0) {
        return rc;
    }
    const struct sl_held_slot *slot =
        sl_slot_table_find(sl_supervisor_slots_table(self->slots), command.allocation);
    if (slot == NULL || strcmp(slot->topology, command.topology) != 0) {
        return sl_err_set(SL_ENOTFOUND, "%s has no such slot here", command.topology);
    }
    if (command.token != sl_supervisor_slots_topology_token(self->slots, command.topology)) {
        return sl_err_set(SL_EFENCED, "the topology master of %s is of another term",
                          command.topology);
    }
    switch (sl_rpc_request_method(request)) {
    case SL_SV_START_WORKER:
        return handle_start(self, request, slot, &command);
    case SL_SV_RESTART_WORKER:
        rc = sl_supervisor_processes_restart_worker(self->processes, command.allocation);
        if (rc == 0) {
            reply_state(self, request, command.allocation);
        }
        return rc;
    default:
        if (!sl_supervisor_processes_stop_worker(self->processes, command.allocation, reply_empty,
                                                 request)) {
            sl_rpc_reply(request, NULL, 0);
        }
        return 0;
    }
}

static void
handle_request(void *ctx, struct sl_rpc_request *request)
{
    struct sl_supervisor *self = ctx;
    uint32_t method = sl_rpc_request_method(request);
    struct sl_arena arena;
    if (method == SL_SV_READ_LOG) {
        sl_supervisor_logs_read(&self->logs, request);
        return;
    }
    sl_arena_create(&arena, 0, 64 * 1024);
    int rc = method == SL_SV_START_MASTER || method == SL_SV_STOP_MASTER ||
                     method == SL_SV_RESTART_MASTER
                 ? handle_master(self, request, &arena)
                 : handle_worker(self, request, &arena);
    if (rc != 0) {
        sl_rpc_refuse_last(request);
    }
    sl_arena_destroy(&arena);
}

/* Leaders. */

static void
topology_leader(void *ctx, const char *topology, const char *address, uint64_t token)
{
    struct sl_supervisor *self = ctx;
    sl_supervisor_slots_topology_leader(self->slots, topology, address, token);
}

static void
master_leader(void *ctx, const char *address, uint64_t token)
{
    struct sl_supervisor *self = ctx;
    sl_supervisor_slots_rm_leader(self->slots, address, token);
}

/* Life. */

static int
start_slots(struct sl_supervisor *self)
{
    const struct sl_settings *settings = self->options.settings;
    self->identity = (struct sl_register_supervisor){
        .address = sl_rpc_address(self->options.rpc),
        .resource = self->id,
        .process = sl_random_u64(sl_loop_random(self->loop)),
        .hardware = {self->options.cpu_cores, (double)self->options.ram_bytes, "Linux"},
        .total_profile =
            sl_profile_set(self->options.cpu_cores, (double)self->options.ram_bytes, 0),
    };
    self->identity.default_profile =
        sl_profile_divide(&self->identity.total_profile, (uint32_t)self->options.port_count);
    struct sl_supervisor_slots_options options = {
        .rpc = self->options.rpc,
        .identity = &self->identity,
        .ports = self->ports,
        .port_count = self->options.port_count,
        .registration = sl_settings_registration(settings),
        .heartbeat = sl_settings_heartbeat(settings),
        .slot_timeout_ms = (uint64_t)settings->slot_timeout_ms,
        .orphan_timeout_ms = (uint64_t)settings->slot_orphan_timeout_ms,
        .registration_timeout_ms = (uint64_t)settings->registration_timeout_ms,
        .watch = sl_topology_leaders_watch(&self->leaders),
        .on_stale_leader = stale_leader,
        .on_topology_gained = topology_gained,
        .stop_tasks = stop_tasks,
        .on_request = handle_request,
        .on_fatal = slots_failed,
        .ctx = self,
    };
    return sl_supervisor_slots_new(&options, &self->slots);
}

/* The id is ours: from here on nobody else touches what an earlier process left. */
static void
start(struct sl_supervisor *self)
{
    if (start_slots(self) != 0) {
        end(self, sl_err_last()->code, sl_err_last()->msg);
        return;
    }
    sl_supervisor_processes_take_over(self->processes, take_slot_over, self);
    self->master = sl_leader_retrieval_new(self->options.store, self->loop, SL_LAYOUT_MASTER_LEADER,
                                           master_leader, self);
    sl_log_info("cluster", "supervisor %s is ready with %zu slots from port %u", self->id,
                self->options.port_count, self->ports[0]);
}

/* No other supervisor of this host has one of our ports, or ours is not the place to be. */
static void
neighbours_seen(void *ctx, const char *conflict)
{
    struct sl_supervisor *self = ctx;
    if (conflict[0] != '\0') {
        end(self, SL_EEXIST, conflict);
    } else {
        start(self);
    }
}

static void
claim_over(void *ctx, uint64_t ticket)
{
    struct sl_supervisor *self = ctx;
    (void)ticket;
    end(self, SL_EEXIST, self->claimed_by);
}

/* Who has the id? A living process of this machine keeps it. The node of one that is gone, which
 * its session may keep for a while, is taken away; so is one that an earlier session of our own
 * made. */
static void
look_at_claimant(struct sl_supervisor *self, const struct sl_supervisor_node *node, int32_t version)
{
    char path[SL_STATE_PATH_MAX + 1];
    bool is_here = strcmp(node->boot_id, self->boot_id) == 0;
    bool is_own = is_here && node->pid == self->options.pid;
    bool is_alive = is_here && self->options.process_start((int64_t)node->pid) == node->start_time;
    snprintf(self->claimed_by, sizeof(self->claimed_by),
             "supervisor %s is there already: process %llu on host %.64s", self->id,
             (unsigned long long)node->pid, node->host);
    if (is_own || (is_here && !is_alive)) {
        sl_layout_path(path, SL_LAYOUT_SUPERVISOR, self->id);
        sl_state_delete(self->options.store, path, version, NULL, NULL);
    } else if (is_alive || self->is_claimed) {
        end(self, SL_EEXIST, self->claimed_by);
    }
}

static void
claimant_read(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_supervisor *self = ctx;
    struct sl_arena arena;
    struct sl_supervisor_node node;
    self->look_ticket = 0;
    if (status != 0) {
        return;
    }
    sl_arena_create(&arena, 0, 256 * 1024);
    if (sl_supervisor_node_decode(result->value, result->size, &arena, &node) == 0) {
        look_at_claimant(self, &node, result->stat.version);
    }
    sl_arena_destroy(&arena);
}

static void
presence_changed(void *ctx, int status)
{
    struct sl_supervisor *self = ctx;
    char path[SL_STATE_PATH_MAX + 1];
    if (status == 0 && !self->is_claimed) {
        self->is_claimed = true;
        sl_timer_stop(&self->claim_timer);
        sl_supervisor_neighbours_look(&self->neighbours);
    } else if (status == SL_EEXIST) {
        snprintf(self->claimed_by, sizeof(self->claimed_by), "supervisor %s is there already",
                 self->id);
        sl_layout_path(path, SL_LAYOUT_SUPERVISOR, self->id);
        self->look_ticket = sl_state_get(self->options.store, path, claimant_read, self);
        if (!self->is_claimed) {
            sl_timer_start(self->loop, &self->claim_timer, SL_SUPERVISOR_CLAIM_MS, claim_over,
                           self);
        }
    } else if (status != 0) {
        sl_log_warn("cluster", "supervisor %s is not known to the state manager: %s", self->id,
                    sl_err_last()->msg);
    }
}

static int
check(const struct sl_supervisor_options *options)
{
    if (options->port_count == 0) {
        return sl_err_set(SL_EINVAL, "a supervisor needs at least one slot");
    }
    if (options->port_count > SL_SLOT_TABLE_MAX) {
        return sl_err_set(SL_EINVAL, "a supervisor has at most %d slots", SL_SLOT_TABLE_MAX);
    }
    for (size_t i = 0; i < options->port_count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (options->ports[k] == options->ports[i]) {
                return sl_err_set(SL_EINVAL, "slot %u is named twice", options->ports[i]);
            }
        }
    }
    return 0;
}

static void
publish(struct sl_supervisor *self)
{
    const struct sl_supervisor_options *options = &self->options;
    char path[SL_STATE_PATH_MAX + 1];
    struct sl_buf value = {0};
    struct sl_supervisor_node node = {
        .id = self->id,
        .host = self->host,
        .address = sl_rpc_address(options->rpc),
        .ports = self->ports,
        .port_count = options->port_count,
        .cpu_cores = options->cpu_cores,
        .ram_bytes = options->ram_bytes,
        .pid = options->pid,
        .start_time = options->process_start((int64_t)options->pid),
        .boot_id = self->boot_id,
        .is_drained = options->is_drained,
    };
    self->neighbours = (struct sl_supervisor_neighbours){.store = options->store,
                                                         .own = node,
                                                         .process_start = options->process_start,
                                                         .done = neighbours_seen,
                                                         .ctx = self};
    sl_supervisor_node_encode(&node, &value);
    sl_layout_path(path, SL_LAYOUT_SUPERVISOR, self->id);
    self->presence =
        sl_state_presence_new(options->store, path, value.data, value.size, presence_changed, self);
    sl_buf_destroy(&value);
}

int
sl_supervisor_new(const struct sl_supervisor_options *options, struct sl_supervisor **out)
{
    int rc = check(options);
    if (rc != 0) {
        return rc;
    }
    struct sl_supervisor *self = sl_calloc(1, sizeof(*self));
    self->options = *options;
    self->loop = sl_rpc_loop(options->rpc);
    self->id = sl_strdup(options->program.id);
    self->host = sl_strdup(options->program.host);
    self->boot_id = sl_strdup(options->boot_id);
    self->ports = sl_alloc(options->port_count * sizeof(*self->ports));
    memcpy(self->ports, options->ports, options->port_count * sizeof(*self->ports));
    sl_topology_leaders_create(&self->leaders, options->store, self->loop,
                               sl_layout_folder(SL_LAYOUT_TOPOLOGY_LEADER), topology_leader, self);
    struct sl_supervisor_processes_options processes = {
        .loop = self->loop,
        .program = options->program,
        .adopter = options->adopter,
        .process_start = options->process_start,
        .boot_id = options->boot_id,
        .on_worker = worker_changed,
        .on_worker_given_up = worker_given_up,
        .on_worker_stopped = worker_stopped,
        .on_master_ended = master_ended,
        .ctx = self,
    };
    self->log_folder = sl_strdup(options->program.logs);
    sl_supervisor_logs_create(&self->logs, self->loop, self->log_folder);
    sl_supervisor_starts_create(&self->starts, self->loop, options->store, give_master_up, self);
    self->processes = sl_supervisor_processes_new(&processes);
    publish(self);
    /* Whoever says that nobody leads must know whether we would see a leader. */
    sl_state_store_lease_ref(options->store);
    *out = self;
    return 0;
}

void
sl_supervisor_free(struct sl_supervisor *self)
{
    if (self == NULL) {
        return;
    }
    sl_timer_stop(&self->claim_timer);
    sl_timer_stop(&self->end_timer);
    sl_state_cancel(self->options.store, self->look_ticket);
    sl_supervisor_neighbours_stop(&self->neighbours);
    sl_state_store_lease_unref(self->options.store);
    if (self->master != NULL) {
        sl_leader_retrieval_free(self->master);
    }
    sl_supervisor_starts_destroy(&self->starts);
    sl_supervisor_logs_destroy(&self->logs);
    sl_supervisor_processes_free(self->processes);
    sl_supervisor_slots_free(self->slots);
    sl_topology_leaders_destroy(&self->leaders);
    sl_state_presence_free(self->presence);
    sl_free(self->ports);
    sl_free(self->id);
    sl_free(self->host);
    sl_free(self->boot_id);
    sl_free(self->log_folder);
    sl_free(self);
}

void
sl_supervisor_stop_processes(struct sl_supervisor *self, sl_loop_fn done, void *arg)
{
    sl_supervisor_processes_stop_all(self->processes, done, arg);
}

bool
sl_supervisor_is_registered(const struct sl_supervisor *self)
{
    return self->slots != NULL && sl_supervisor_slots_instance(self->slots) != 0;
}
