#include "cluster/resource_manager.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/log.h"

struct sl_resource_manager {
    struct sl_resource_manager_options options;
    struct sl_loop *loop;
    struct sl_rpc_endpoint endpoint;
    bool is_leading;
    /* Of supervisors and of topology masters: a name of one kind may be that of the other. */
    struct sl_heartbeats heartbeats;
    struct sl_heartbeats master_heartbeats;
    struct sl_slot_manager slots;
    /* name -> struct supervisor; instance -> the same. */
    struct sl_map_bytes supervisors;
    struct sl_map_u64 by_instance;
    /* name -> struct topology. */
    struct sl_map_bytes topologies;
    /* Registrations that are being checked. */
    struct sl_list checks;
    struct sl_arena arena;
    struct sl_timer grace;
};

struct supervisor {
    struct sl_resource_manager *manager;
    struct sl_peer peer;
    /* Attempt of its process by which it is registered. */
    uint64_t attempt;
    uint64_t instance;
    /* Slot requests that it has not answered. */
    struct sl_list calls;
};

/* A call to a supervisor's slot table. */
struct slot_call {
    struct sl_resource_manager *manager;
    struct sl_list_node node;
    uint64_t call;
};

struct topology {
    struct sl_resource_manager *manager;
    char name[SL_NAME_MAX + 1];
    /* Term of the leader as the state manager shows it; 0 for none. */
    uint64_t leader;
    struct sl_timer timer;
    bool is_watched;
    /* The registered topology master. */
    bool has_master;
    uint64_t token;
    struct sl_peer master;
};

/* A registration whose connect-back is under way. */
struct check {
    struct sl_resource_manager *manager;
    struct sl_list_node node;
    struct sl_rpc_request *request;
    struct sl_peer peer;
    uint64_t attempt;
    /* Of a topology master, else "". */
    char topology[SL_NAME_MAX + 1];
    uint64_t token;
    /* A topology master that answered waits here for the state manager's word. */
    bool has_answered;
    /* Asks the process that had the name before. */
    struct sl_rpc_gateway *old_gateway;
};

static struct supervisor *
find_supervisor(const struct sl_resource_manager *self, const char *name)
{
    return sl_map_bytes_get_str(&self->supervisors, name);
}

static struct topology *
find_topology(const struct sl_resource_manager *self, const char *name)
{
    return sl_map_bytes_get_str(&self->topologies, name);
}

/* Ends a check; its request must have been answered. */
static void
check_free(struct check *check)
{
    sl_list_remove(&check->node);
    sl_peer_destroy(&check->peer);
    sl_rpc_gateway_free(check->old_gateway);
    sl_free(check);
}

static struct check *
check_new(struct sl_resource_manager *self, struct sl_rpc_request *request)
{
    struct check *check = sl_calloc(1, sizeof(*check));
    check->manager = self;
    check->request = request;
    sl_list_push_back(&self->checks, &check->node);
    return check;
}

/* The newest attempt wins: an older check of the same name is outdated from now on. */
static void
outdate_checks(struct sl_resource_manager *self, const char *resource, const char *topology)
{
    sl_list_each(&self->checks, it)
    {
        struct check *check = sl_container_of(it, struct check, node);
        if (strcmp(check->topology, topology) == 0 &&
            (topology[0] != '\0' || strcmp(check->peer.resource, resource) == 0)) {
            sl_rpc_refuse(check->request, SL_RPC_FAILURE, SL_ECONFLICT,
                          "a newer attempt of %s is under way", resource);
            check_free(check);
        }
    }
}

static void
remove_supervisor(struct sl_resource_manager *self, struct supervisor *supervisor,
                  const char *cause)
{
    uint64_t instance = supervisor->instance;
    sl_map_bytes_remove_str(&self->supervisors, supervisor->peer.resource);
    sl_map_u64_remove(&self->by_instance, instance, NULL);
    sl_slot_manager_unregister(&self->slots, instance, cause);
    /* Its open calls end with the gateway, untold. */
    sl_list_each(&supervisor->calls, it)
    {
        sl_free(sl_container_of(it, struct slot_call, node));
    }
    sl_peer_destroy(&supervisor->peer);
    sl_free(supervisor);
}

/* Tells a supervisor that it is not registered any more, then forgets it. */
static void
disconnect_supervisor(struct sl_resource_manager *self, struct supervisor *supervisor,
                      const char *cause)
{
    struct sl_disconnect message = {.resource = self->options.resource, .cause = cause};
    struct sl_buf body = {0};
    sl_log_warn("cluster", "supervisor lost name=%s cause=%s", supervisor->peer.resource, cause);
    message.token = self->endpoint.token;
    sl_disconnect_encode(&message, &body);
    sl_rpc_send(supervisor->peer.gateway, SL_SV_DISCONNECT_RESOURCE_MANAGER, body.data, body.size);
    sl_buf_destroy(&body);
    remove_supervisor(self, supervisor, cause);
}

static void
remove_master(struct topology *topology)
{
    if (topology->has_master) {
        topology->has_master = false;
        sl_peer_destroy(&topology->master);
    }
}

static void
disconnect_master(struct sl_resource_manager *self, struct topology *topology, const char *cause)
{
    struct sl_disconnect message = {.resource = self->options.resource,
                                    .topology = topology->name,
                                    .token = self->endpoint.token,
                                    .cause = cause};
    struct sl_buf body = {0};
    if (!topology->has_master) {
        return;
    }
    sl_disconnect_encode(&message, &body);
    sl_rpc_send(topology->master.gateway, SL_TM_DISCONNECT_RESOURCE_MANAGER, body.data, body.size);
    sl_buf_destroy(&body);
    remove_master(topology);
}

static void
forget_topology(struct sl_resource_manager *self, struct topology *topology)
{
    outdate_checks(self, topology->name, topology->name);
    remove_master(topology);
    sl_timer_stop(&topology->timer);
    if (topology->is_watched) {
        self->options.watch.stop(self->options.watch.ctx, topology->name);
    }
    sl_map_bytes_remove_str(&self->topologies, topology->name);
    sl_free(topology);
}

static void
free_inactive_slots(struct sl_resource_manager *self, const char *topology)
{
    struct sl_slot_notice notice = {.topology = topology, .cause = "the topology ended"};
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->supervisors, &at)) != NULL;) {
        const struct supervisor *supervisor = entry->value;
        sl_peer_send_notice(supervisor->peer.gateway, SL_SV_FREE_INACTIVE_SLOTS, &notice);
    }
}

void
sl_resource_manager_topology_ended(struct sl_resource_manager *self, const char *name)
{
    struct topology *topology = find_topology(self, name);
    free_inactive_slots(self, name);
    if (topology != NULL) {
        disconnect_master(self, topology, "the topology ended");
        forget_topology(self, topology);
    }
}

static void
topology_timed_out(void *ctx, uint64_t ticket)
{
    struct topology *topology = ctx;
    struct sl_resource_manager *self = topology->manager;
    char name[SL_NAME_MAX + 1];
    (void)ticket;
    memcpy(name, topology->name, sizeof(name));
    sl_resource_manager_topology_ended(self, name);
    if (self->options.on_topology_timeout != NULL) {
        self->options.on_topology_timeout(self->options.ctx, name);
    }
}

static void
arm_topology(struct topology *topology)
{
    sl_timer_start(topology->manager->loop, &topology->timer,
                   topology->manager->options.topology_timeout_ms, topology_timed_out, topology);
}

/* NULL when the topology can not be watched. */
static struct topology *
add_topology(struct sl_resource_manager *self, const char *name)
{
    struct topology *topology = sl_calloc(1, sizeof(*topology));
    topology->manager = self;
    snprintf(topology->name, sizeof(topology->name), "%s", name);
    sl_map_bytes_put_str(&self->topologies, name, topology);
    arm_topology(topology);
    if (self->options.watch.start(self->options.watch.ctx, name) != 0) {
        forget_topology(self, topology);
        return NULL;
    }
    topology->is_watched = true;
    return topology;
}

static void
reply_registered(struct sl_resource_manager *self, struct sl_rpc_request *request,
                 uint64_t instance)
{
    struct sl_registered answer = {self->options.resource, instance, self->endpoint.token};
    struct sl_buf body = {0};
    sl_registered_encode(&answer, &body);
    sl_rpc_reply(request, body.data, body.size);
    sl_buf_destroy(&body);
}

/* Makes the checked process the registered one, under a new instance. */
static void
accept_supervisor(struct check *check)
{
    struct sl_resource_manager *self = check->manager;
    struct supervisor *old = find_supervisor(self, check->peer.resource);
    if (old != NULL) {
        remove_supervisor(self, old, "the supervisor registered anew");
    }
    struct supervisor *supervisor = sl_calloc(1, sizeof(*supervisor));
    supervisor->manager = self;
    sl_list_create(&supervisor->calls);
    do {
        supervisor->instance = sl_random_u64(sl_loop_random(self->loop));
    } while (supervisor->instance == 0);
    /* The gateway moves from the check. */
    supervisor->peer = check->peer;
    supervisor->attempt = check->attempt;
    check->peer.gateway = NULL;
    sl_map_bytes_put_str(&self->supervisors, supervisor->peer.resource, supervisor);
    sl_map_u64_put_ptr(&self->by_instance, supervisor->instance, supervisor);
    sl_peer_monitor(&supervisor->peer, &self->heartbeats, self->options.resource,
                    SL_SV_HEARTBEAT_OF_RESOURCE_MANAGER);
    reply_registered(self, check->request, supervisor->instance);
    check_free(check);
}

/* Does the answer to an IDENTIFY name this process? */
static bool
is_identity(const struct sl_rpc_result *result, const char *resource, uint64_t process)
{
    struct sl_arena arena;
    struct sl_registered who;
    bool is_same = false;
    sl_arena_create(&arena, 0, 64 * 1024);
    if (result->status == SL_RPC_SUCCESS &&
        sl_registered_decode(result->body, result->size, &arena, &who) == 0) {
        is_same = strcmp(who.resource, resource) == 0 && who.instance == process;
    }
    sl_arena_destroy(&arena);
    return is_same;
}

/* The process that had the name answered, or did not. */
static void
old_process_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct check *check = ctx;
    const struct supervisor *old = find_supervisor(check->manager, check->peer.resource);
    if (old != NULL && old->peer.process != check->peer.process &&
        is_identity(result, old->peer.resource, old->peer.process)) {
        sl_rpc_refuse(check->request, SL_RPC_REJECTION, SL_EEXIST,
                      "another supervisor is named %s and runs at %s", old->peer.resource,
                      old->peer.address);
        check_free(check);
        return;
    }
    accept_supervisor(check);
}

static void
supervisor_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct check *check = ctx;
    struct sl_resource_manager *self = check->manager;
    const struct supervisor *old = find_supervisor(self, check->peer.resource);
    if (result->status != SL_RPC_SUCCESS) {
        sl_rpc_refuse(check->request, SL_RPC_FAILURE, SL_EUNAVAIL, "no way back to %s: %s",
                      check->peer.address, result->reason);
        check_free(check);
    } else if (!is_identity(result, check->peer.resource, check->peer.process)) {
        sl_rpc_refuse(check->request, SL_RPC_REJECTION, SL_EEXIST,
                      "another process answers at %s, not %s", check->peer.address,
                      check->peer.resource);
        check_free(check);
    } else if (old == NULL || old->peer.process == check->peer.process) {
        accept_supervisor(check);
    } else if (sl_rpc_connect(self->options.rpc, old->peer.address, SL_ENDPOINT_SUPERVISOR, 0,
                              &check->old_gateway) != 0) {
        accept_supervisor(check);
    } else {
        sl_rpc_call(check->old_gateway, SL_SV_IDENTIFY, NULL, 0,
                    self->options.heartbeat.interval_ms, old_process_answered, check);
    }
}

static void
handle_register_supervisor(void *ctx, struct sl_rpc_request *request)
{
    struct sl_resource_manager *self = ctx;
    struct sl_register_supervisor message;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_reset(&self->arena);
    if (sl_register_supervisor_decode(body, size, &self->arena, &message) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    const struct supervisor *known = find_supervisor(self, message.resource);
    if (known != NULL && known->peer.process == message.process &&
        known->attempt >= message.attempt) {
        /* A message that was late. A new instance would not be known to the supervisor, which goes
         * on under the one that it was told. */
        if (known->attempt == message.attempt) {
            reply_registered(self, request, known->instance);
        } else {
            sl_rpc_refuse(request, SL_RPC_FAILURE, SL_ECONFLICT, "an outdated attempt of %s",
                          message.resource);
        }
        return;
    }
    sl_list_each(&self->checks, it)
    {
        struct check *check = sl_container_of(it, struct check, node);
        if (check->topology[0] != '\0' || check->peer.process != message.process ||
            strcmp(check->peer.resource, message.resource) != 0) {
            continue;
        }
        if (check->attempt > message.attempt) {
            sl_rpc_refuse(request, SL_RPC_FAILURE, SL_ECONFLICT, "an outdated attempt of %s",
                          message.resource);
            return;
        }
        if (strcmp(check->peer.address, message.address) == 0) {
            /* Its impatient next attempt: the look back goes on, and answers this one. */
            sl_rpc_refuse(check->request, SL_RPC_FAILURE, SL_ECONFLICT,
                          "a newer attempt of %s is under way", message.resource);
            check->request = request;
            check->attempt = message.attempt;
            return;
        }
    }
    outdate_checks(self, message.resource, "");
    struct check *check = check_new(self, request);
    check->attempt = message.attempt;
    if (sl_peer_create(&check->peer, self->options.rpc, message.resource, message.process,
                       message.address, SL_ENDPOINT_SUPERVISOR, 0) != 0) {
        sl_rpc_refuse_last(request);
        check_free(check);
        return;
    }
    sl_rpc_call(check->peer.gateway, SL_SV_IDENTIFY, NULL, 0, 0, supervisor_answered, check);
}

static void
handle_slot_report(void *ctx, struct sl_rpc_request *request)
{
    struct sl_resource_manager *self = ctx;
    struct sl_slot_list report;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_reset(&self->arena);
    if (sl_slot_report_decode(body, size, &self->arena, &report) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    const struct supervisor *supervisor = find_supervisor(self, report.resource);
    if (supervisor == NULL || supervisor->instance != report.instance) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_ENOTFOUND,
                      "%s is not registered under that instance", report.resource);
        return;
    }
    sl_slot_manager_register(&self->slots, report.instance, &report);
    sl_rpc_reply(request, NULL, 0);
}

/* Decodes a notice; a malformed one is refused and gives false. */
static bool
read_notice(struct sl_resource_manager *self, struct sl_rpc_request *request,
            struct sl_slot_notice *notice)
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_reset(&self->arena);
    if (sl_slot_notice_decode(body, size, &self->arena, notice) != 0) {
        sl_rpc_refuse_last(request);
        return false;
    }
    return true;
}

static void
handle_slot_available(void *ctx, struct sl_rpc_request *request)
{
    struct sl_resource_manager *self = ctx;
    struct sl_slot_notice notice;
    if (read_notice(self, request, &notice)) {
        /* The notice of an old instance is dropped. */
        if (sl_map_u64_get_ptr(&self->by_instance, notice.instance) != NULL) {
            sl_slot_manager_free_slot(&self->slots, notice.instance, notice.port,
                                      notice.allocation);
        }
        sl_rpc_reply(request, NULL, 0);
    }
}

static void
accept_master(struct check *check, struct topology *topology)
{
    struct sl_resource_manager *self = check->manager;
    if (topology->has_master && topology->token == check->token) {
        reply_registered(self, check->request, 0);
        check_free(check);
        return;
    }
    disconnect_master(self, topology, "another topology master leads now");
    topology->has_master = true;
    topology->token = check->token;
    topology->master = check->peer;
    check->peer.gateway = NULL;
    sl_peer_monitor(&topology->master, &self->master_heartbeats, self->options.resource,
                    SL_TM_HEARTBEAT);
    reply_registered(self, check->request, 0);
    check_free(check);
}

/* Judges a topology master that answered, as soon as the state manager has shown a leader. */
static void
judge_master(struct check *check)
{
    struct topology *topology = find_topology(check->manager, check->topology);
    if (topology == NULL || !check->has_answered || topology->leader == 0) {
        return;
    }
    if (topology->leader != check->token) {
        sl_rpc_refuse(check->request, SL_RPC_FAILURE, SL_EFENCED,
                      "the leader of %s is of another term", check->topology);
        check_free(check);
        return;
    }
    accept_master(check, topology);
}

static void
master_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct check *check = ctx;
    if (!is_identity(result, check->peer.resource, check->peer.process)) {
        sl_rpc_refuse(check->request, SL_RPC_FAILURE, SL_EUNAVAIL,
                      "the topology master of %s does not answer at %s: %s", check->topology,
                      check->peer.address, result->reason);
        check_free(check);
        return;
    }
    check->has_answered = true;
    judge_master(check);
}

static void
handle_register_master(void *ctx, struct sl_rpc_request *request)
{
    struct sl_resource_manager *self = ctx;
    struct sl_register_topology_master message;
    char endpoint[SL_RPC_NAME_MAX + 1];
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_reset(&self->arena);
    if (sl_register_topology_master_decode(body, size, &self->arena, &message) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    if (find_topology(self, message.topology) == NULL &&
        add_topology(self, message.topology) == NULL) {
        char reason[SL_REASON_SIZE];
        snprintf(reason, sizeof(reason), "the leader of topology %.64s can not be watched",
                 message.topology);
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EUNAVAIL, "%s", reason);
        self->options.on_fatal(self->options.ctx, reason);
        return;
    }
    outdate_checks(self, message.resource, message.topology);
    struct check *check = check_new(self, request);
    snprintf(check->topology, sizeof(check->topology), "%s", message.topology);
    check->token = message.token;
    snprintf(endpoint, sizeof(endpoint), SL_ENDPOINT_TOPOLOGY_MASTER "%.64s", message.topology);
    if (sl_peer_create(&check->peer, self->options.rpc, message.resource, message.process,
                       message.address, endpoint, message.token) != 0) {
        sl_rpc_refuse_last(request);
        check_free(check);
        return;
    }
    sl_rpc_call(check->peer.gateway, SL_TM_IDENTIFY, NULL, 0, 0, master_answered, check);
}

/* The topology whose registered master sent this token; refuses otherwise. */
static struct topology *
authorize(struct sl_resource_manager *self, struct sl_rpc_request *request, const char *name,
          uint64_t token)
{
    struct topology *topology = find_topology(self, name);
    if (topology == NULL || !topology->has_master) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_ENOTFOUND, "no registered topology master of %s",
                      name);
        return NULL;
    }
    if (topology->token != token) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EFENCED, "leader id does not match for %s", name);
        return NULL;
    }
    return topology;
}

static void
handle_request_slot(void *ctx, struct sl_rpc_request *request)
{
    struct sl_resource_manager *self = ctx;
    struct sl_slot_request message;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_reset(&self->arena);
    if (sl_slot_request_decode(body, size, &self->arena, &message) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    if (authorize(self, request, message.topology, message.token) == NULL) {
        return;
    }
    /* The acknowledgement says that the request is known, not that there is a slot. */
    message.token = self->endpoint.token;
    int rc = sl_slot_manager_request(&self->slots, &message);
    if (rc < 0) {
        sl_rpc_refuse(request, SL_RPC_REJECTION, rc, "%s", sl_err_last()->msg);
    } else {
        sl_rpc_reply(request, NULL, 0);
    }
}

static void
handle_cancel_slot(void *ctx, struct sl_rpc_request *request)
{
    struct sl_resource_manager *self = ctx;
    struct sl_slot_notice notice;
    if (read_notice(self, request, &notice) &&
        authorize(self, request, notice.topology, notice.token) != NULL) {
        sl_slot_manager_cancel(&self->slots, notice.allocation);
        sl_rpc_reply(request, NULL, 0);
    }
}

static void
handle_disconnect(void *ctx, struct sl_rpc_request *request)
{
    struct sl_resource_manager *self = ctx;
    struct sl_disconnect message;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_reset(&self->arena);
    if (sl_disconnect_decode(body, size, &self->arena, &message) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    if (sl_rpc_request_method(request) == SL_RM_DISCONNECT_SUPERVISOR) {
        struct supervisor *supervisor = find_supervisor(self, message.resource);
        /* The goodbye of an old registration is not about the present one. */
        if (supervisor != NULL && supervisor->instance == message.token) {
            remove_supervisor(self, supervisor, message.cause);
        }
    } else {
        struct topology *topology = find_topology(self, message.topology);
        if (topology != NULL && topology->has_master && topology->token == message.token) {
            remove_master(topology);
        }
    }
    sl_rpc_reply(request, NULL, 0);
}

static const struct sl_rpc_method methods[] = {
    {SL_RM_REGISTER_SUPERVISOR, handle_register_supervisor},
    {SL_RM_REGISTER_TOPOLOGY_MASTER, handle_register_master},
    {SL_RM_SLOT_REPORT, handle_slot_report},
    {SL_RM_SLOT_AVAILABLE, handle_slot_available},
    {SL_RM_REQUEST_SLOT, handle_request_slot},
    {SL_RM_CANCEL_SLOT, handle_cancel_slot},
    {SL_RM_DISCONNECT_SUPERVISOR, handle_disconnect},
    {SL_RM_DISCONNECT_TOPOLOGY_MASTER, handle_disconnect},
};

/* Heartbeats: a peer that is lost is told so, in case it can still hear. */
static void
supervisor_lost(void *ctx, const char *id)
{
    struct sl_resource_manager *self = ctx;
    struct supervisor *supervisor = find_supervisor(self, id);
    if (supervisor != NULL) {
        disconnect_supervisor(self, supervisor, "its heartbeat was lost");
    }
}

static void
master_lost(void *ctx, const char *id)
{
    struct sl_resource_manager *self = ctx;
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->topologies, &at)) != NULL;) {
        struct topology *topology = entry->value;
        if (topology->has_master && strcmp(topology->master.resource, id) == 0) {
            disconnect_master(self, topology, "its heartbeat was lost");
            return;
        }
    }
}

static void
heartbeat_payload(void *ctx, const char *id, const uint8_t *payload, size_t size)
{
    struct sl_resource_manager *self = ctx;
    struct sl_slot_list report;
    struct sl_arena arena;
    const struct supervisor *supervisor = find_supervisor(self, id);
    if (supervisor == NULL || size == 0) {
        return;
    }
    sl_arena_create(&arena, 0, 8 * 1024 * 1024);
    if (sl_slot_report_decode(payload, size, &arena, &report) == 0 &&
        report.instance == supervisor->instance) {
        sl_slot_manager_report(&self->slots, report.instance, &report);
    }
    sl_arena_destroy(&arena);
}

static void
slot_call_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct slot_call *call = ctx;
    struct sl_resource_manager *self = call->manager;
    struct sl_slot_notice occupant;
    struct sl_arena arena;
    uint64_t number = call->call;
    sl_list_remove(&call->node);
    sl_free(call);
    if (result->status != SL_RPC_SUCCESS) {
        sl_slot_manager_answered(&self->slots, number, SL_SLOT_ERROR, 0, NULL);
        return;
    }
    if (result->size == 0) {
        sl_slot_manager_answered(&self->slots, number, SL_SLOT_ACK, 0, NULL);
        return;
    }
    sl_arena_create(&arena, 0, 64 * 1024);
    if (sl_slot_notice_decode(result->body, result->size, &arena, &occupant) == 0) {
        sl_slot_manager_answered(&self->slots, number, SL_SLOT_OCCUPIED, occupant.allocation,
                                 occupant.topology);
    } else {
        sl_slot_manager_answered(&self->slots, number, SL_SLOT_ERROR, 0, NULL);
    }
    sl_arena_destroy(&arena);
}

static void
op_request_slot(void *ctx, uint64_t instance, const char *name, uint32_t port, uint64_t number,
                const struct sl_slot_request *request)
{
    struct sl_resource_manager *self = ctx;
    struct supervisor *supervisor = sl_map_u64_get_ptr(&self->by_instance, instance);
    struct sl_slot_request message = *request;
    struct sl_buf body = {0};
    sl_assert(supervisor != NULL);
    message.supervisor = name;
    message.port = port;
    message.token = self->endpoint.token;
    sl_slot_request_encode(&message, &body);
    struct slot_call *call = sl_calloc(1, sizeof(*call));
    call->manager = self;
    call->call = number;
    sl_list_push_back(&supervisor->calls, &call->node);
    sl_rpc_call(supervisor->peer.gateway, SL_SV_REQUEST_SLOT, body.data, body.size, 0,
                slot_call_answered, call);
    sl_buf_destroy(&body);
}

static void
op_allocation_failed(void *ctx, const char *name, uint64_t allocation, bool is_unfulfillable,
                     const char *cause)
{
    struct sl_resource_manager *self = ctx;
    const struct topology *topology = find_topology(self, name);
    struct sl_slot_notice notice = {.topology = name,
                                    .allocation = allocation,
                                    .cause = cause,
                                    .is_unfulfillable = is_unfulfillable};
    if (topology != NULL && topology->has_master) {
        sl_peer_send_notice(topology->master.gateway, SL_TM_ALLOCATION_FAILED, &notice);
    }
}

static int
op_start_supervisor(void *ctx)
{
    struct sl_resource_manager *self = ctx;
    return self->options.start_supervisor(self->options.ctx);
}

static void
op_release_supervisor(void *ctx, uint64_t instance, const char *cause)
{
    struct sl_resource_manager *self = ctx;
    const struct supervisor *supervisor = sl_map_u64_get_ptr(&self->by_instance, instance);
    if (supervisor != NULL) {
        self->options.release_supervisor(self->options.ctx, supervisor->peer.resource, cause);
    }
}

int
sl_resource_manager_new(const struct sl_resource_manager_options *options,
                        struct sl_resource_manager **out)
{
    int rc = sl_heartbeat_config_check(&options->heartbeat);
    if (rc != 0) {
        return rc;
    }
    struct sl_resource_manager *self = sl_calloc(1, sizeof(*self));
    struct sl_rpc_endpoint_options endpoint = {.name = SL_ENDPOINT_RESOURCE_MANAGER,
                                               .is_fenced = true,
                                               .methods = methods,
                                               .method_count = sizeof(methods) / sizeof(methods[0]),
                                               .ctx = self};
    struct sl_slot_manager_ops ops = {
        .request_slot = op_request_slot,
        .allocation_failed = op_allocation_failed,
        .start_supervisor = options->start_supervisor != NULL ? op_start_supervisor : NULL,
        .release_supervisor = options->release_supervisor != NULL ? op_release_supervisor : NULL,
        .ctx = self,
    };
    self->options = *options;
    self->loop = sl_rpc_loop(options->rpc);
    rc = sl_rpc_endpoint_start(options->rpc, &self->endpoint, &endpoint);
    if (rc != 0) {
        sl_free(self);
        return rc;
    }
    sl_list_create(&self->checks);
    sl_arena_create(&self->arena, 0, 8 * 1024 * 1024);
    sl_slot_manager_create(&self->slots, self->loop, &options->slots, &ops);
    sl_slot_manager_suspend(&self->slots);
    *out = self;
    return 0;
}

static void
clear(struct sl_resource_manager *self)
{
    struct sl_map_bytes_entry *entry;
    struct sl_list_node *node;
    sl_timer_stop(&self->grace);
    if (!self->slots.is_suspended) {
        sl_slot_manager_suspend(&self->slots);
    }
    while ((node = sl_list_first(&self->checks)) != NULL) {
        struct check *check = sl_container_of(node, struct check, node);
        sl_rpc_refuse(check->request, SL_RPC_STALE_TOKEN, SL_EFENCED, "the term ended");
        check_free(check);
    }
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->supervisors, &at)) != NULL;) {
        remove_supervisor(self, entry->value, "the term ended");
    }
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->topologies, &at)) != NULL;) {
        forget_topology(self, entry->value);
    }
    sl_heartbeats_destroy(&self->heartbeats);
    sl_heartbeats_destroy(&self->master_heartbeats);
}

void
sl_resource_manager_free(struct sl_resource_manager *self)
{
    if (self == NULL) {
        return;
    }
    sl_resource_manager_revoke(self);
    sl_rpc_endpoint_stop(&self->endpoint);
    sl_slot_manager_destroy(&self->slots);
    sl_map_bytes_destroy(&self->supervisors);
    sl_map_u64_destroy(&self->by_instance);
    sl_map_bytes_destroy(&self->topologies);
    sl_arena_destroy(&self->arena);
    sl_free(self);
}

static void
grace_over(void *ctx, uint64_t ticket)
{
    struct sl_resource_manager *self = ctx;
    (void)ticket;
    sl_slot_manager_fail_unfulfillable(&self->slots, self->options.slots.is_failing_unfulfillable);
}

void
sl_resource_manager_grant(struct sl_resource_manager *self, uint64_t token)
{
    struct sl_heartbeat_listener supervisors = {
        .on_timeout = supervisor_lost, .on_payload = heartbeat_payload, .ctx = self};
    struct sl_heartbeat_listener masters = {.on_timeout = master_lost, .ctx = self};
    sl_assert_ne(token, 0);
    clear(self);
    self->is_leading = true;
    sl_rpc_endpoint_set_token(&self->endpoint, token);
    int rc = sl_heartbeats_create(&self->heartbeats, self->loop, true, &self->options.heartbeat,
                                  &supervisors);
    sl_assert_eq(rc, 0);
    rc = sl_heartbeats_create(&self->master_heartbeats, self->loop, true, &self->options.heartbeat,
                              &masters);
    sl_assert_eq(rc, 0);
    sl_slot_manager_resume(&self->slots);
    sl_slot_manager_fail_unfulfillable(&self->slots,
                                       self->options.start_up_ms == 0 &&
                                           self->options.slots.is_failing_unfulfillable);
    if (self->options.start_up_ms > 0) {
        sl_timer_start(self->loop, &self->grace, self->options.start_up_ms, grace_over, self);
    }
    if (self->options.on_ready != NULL) {
        self->options.on_ready(self->options.ctx, token);
    }
}

void
sl_resource_manager_revoke(struct sl_resource_manager *self)
{
    /* The token goes first: nothing of the old term is answered any more. */
    sl_rpc_endpoint_set_token(&self->endpoint, 0);
    self->is_leading = false;
    clear(self);
}

void
sl_resource_manager_topology_leader(struct sl_resource_manager *self, const char *name,
                                    uint64_t token)
{
    struct topology *topology = find_topology(self, name);
    if (topology == NULL || topology->leader == token) {
        return;
    }
    uint64_t old = topology->leader;
    topology->leader = token;
    if (token != 0) {
        sl_timer_stop(&topology->timer);
    } else {
        arm_topology(topology);
    }
    /* A change from A to B says that A does not lead; only A's registration is concerned. */
    if (topology->has_master && topology->token == old && old != token) {
        disconnect_master(self, topology, "it does not lead any more");
    }
    sl_list_each(&self->checks, it)
    {
        struct check *check = sl_container_of(it, struct check, node);
        if (strcmp(check->topology, name) == 0) {
            judge_master(check);
        }
    }
}

size_t
sl_resource_manager_supervisor_count(const struct sl_resource_manager *self)
{
    return self->supervisors.count;
}

size_t
sl_resource_manager_topology_count(const struct sl_resource_manager *self)
{
    return self->topologies.count;
}

uint64_t
sl_resource_manager_instance(const struct sl_resource_manager *self, const char *name)
{
    const struct supervisor *supervisor = find_supervisor(self, name);
    return supervisor != NULL ? supervisor->instance : 0;
}

bool
sl_resource_manager_has_master(const struct sl_resource_manager *self, const char *name)
{
    const struct topology *topology = find_topology(self, name);
    return topology != NULL && topology->has_master;
}

const struct sl_slot_manager *
sl_resource_manager_slots(const struct sl_resource_manager *self)
{
    return &self->slots;
}
