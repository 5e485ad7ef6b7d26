#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "cluster/resource_manager_priv.h"

/*
 * Who may register: the process must answer at the address that it gives, under its own name and
 * process id; a topology master must lead in the term that the state manager shows.
 */

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
void
sl__rm_outdate_checks(struct sl_resource_manager *self, const char *resource, const char *topology)
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
reply_registered(struct sl_resource_manager *self, struct sl_rpc_request *request,
                 uint64_t instance)
{
    sl_peer_reply_registered(request, self->options.resource, instance, self->endpoint.token);
}

/* Makes the checked process the registered one, under a new instance. */
static void
accept_supervisor(struct check *check)
{
    struct sl_resource_manager *self = check->manager;
    struct sl__rm_supervisor *old = sl__rm_find_supervisor(self, check->peer.resource);
    if (old != NULL) {
        sl__rm_remove_supervisor(self, old, "the supervisor registered anew");
    }
    struct sl__rm_supervisor *supervisor = sl_calloc(1, sizeof(*supervisor));
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

/* The process that had the name answered, or did not. */
static void
old_process_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct check *check = ctx;
    const struct sl__rm_supervisor *old =
        sl__rm_find_supervisor(check->manager, check->peer.resource);
    if (old != NULL && old->peer.process != check->peer.process &&
        sl_peer_is_identity(result, old->peer.resource, old->peer.process)) {
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
    const struct sl__rm_supervisor *old = sl__rm_find_supervisor(self, check->peer.resource);
    if (result->status != SL_RPC_SUCCESS) {
        sl_rpc_refuse(check->request, SL_RPC_FAILURE, SL_EUNAVAIL, "no way back to %s: %s",
                      check->peer.address, result->reason);
        check_free(check);
    } else if (!sl_peer_is_identity(result, check->peer.resource, check->peer.process)) {
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

void
sl__rm_register_supervisor(void *ctx, struct sl_rpc_request *request)
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
    const struct sl__rm_supervisor *known = sl__rm_find_supervisor(self, message.resource);
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
    sl__rm_outdate_checks(self, message.resource, "");
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
accept_master(struct check *check, struct sl__rm_topology *topology)
{
    struct sl_resource_manager *self = check->manager;
    if (topology->has_master && topology->token == check->token) {
        reply_registered(self, check->request, 0);
        check_free(check);
        return;
    }
    sl__rm_disconnect_master(self, topology, "another topology master leads now");
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
    struct sl__rm_topology *topology = sl__rm_find_topology(check->manager, check->topology);
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
    if (!sl_peer_is_identity(result, check->peer.resource, check->peer.process)) {
        sl_rpc_refuse(check->request, SL_RPC_FAILURE, SL_EUNAVAIL,
                      "the topology master of %s does not answer at %s: %s", check->topology,
                      check->peer.address, result->reason);
        check_free(check);
        return;
    }
    check->has_answered = true;
    judge_master(check);
}

void
sl__rm_register_master(void *ctx, struct sl_rpc_request *request)
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
    if (sl__rm_find_topology(self, message.topology) == NULL &&
        sl__rm_add_topology(self, message.topology) == NULL) {
        char reason[SL_REASON_SIZE];
        snprintf(reason, sizeof(reason), "the leader of topology %.64s can not be watched",
                 message.topology);
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EUNAVAIL, "%s", reason);
        self->options.on_fatal(self->options.ctx, reason);
        return;
    }
    sl__rm_outdate_checks(self, message.resource, message.topology);
    struct check *check = check_new(self, request);
    snprintf(check->topology, sizeof(check->topology), "%s", message.topology);
    check->token = message.token;
    snprintf(endpoint, sizeof(endpoint), SL_ENDPOINT_TOPOLOGY_SLOTS "%.64s", message.topology);
    if (sl_peer_create(&check->peer, self->options.rpc, message.resource, message.process,
                       message.address, endpoint, message.token) != 0) {
        sl_rpc_refuse_last(request);
        check_free(check);
        return;
    }
    sl_rpc_call(check->peer.gateway, SL_TM_IDENTIFY, NULL, 0, 0, master_answered, check);
}

void
sl__rm_judge_masters(struct sl_resource_manager *self, const char *topology)
{
    sl_list_each(&self->checks, it)
    {
        struct check *check = sl_container_of(it, struct check, node);
        if (strcmp(check->topology, topology) == 0) {
            judge_master(check);
        }
    }
}

void
sl__rm_end_checks(struct sl_resource_manager *self)
{
    struct sl_list_node *node;
    while ((node = sl_list_first(&self->checks)) != NULL) {
        struct check *check = sl_container_of(node, struct check, node);
        sl_rpc_refuse(check->request, SL_RPC_STALE_TOKEN, SL_EFENCED, "the term ended");
        check_free(check);
    }
}
