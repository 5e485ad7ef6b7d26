#pragma once
/*
 * A small cluster in virtual time: a resource manager, supervisors and topology masters on nodes of
 * their own, with a table of leaders in place of the state manager.
 */

#include "base/err.h"
#include "cluster/master_slots.h"
#include "cluster/resource_manager.h"
#include "cluster/supervisor_slots.h"
#include "loop/sim.h"
#include "unit.h"

enum { SUPERVISORS_MAX = 4, MASTERS_MAX = 2, SLOTS = 2, REQUESTS_MAX = 64 };

struct cluster;

/* One process. */
struct node {
    struct cluster *cluster;
    int index;
    char host[24];
    char address[40];
    char name[16];
    uint64_t process;
    /* Term of the resource manager that it was told. */
    uint64_t known_rm;
    struct sl_loop *loop;
    struct sl_rpc *rpc;
    int fatal;
    char fatal_reason[SL_REASON_SIZE];
    bool is_watch_failing;
    int stale;
};

struct supervisor_node {
    struct node node;
    struct sl_register_supervisor identity;
    struct sl_supervisor_slots *slots;
    int gained;
    int lost;
    int active;
    int stops;
};

struct master_node {
    struct node node;
    char topology[16];
    uint64_t token;
    struct sl_master_slots *slots;
    uint64_t served[REQUESTS_MAX];
    char served_at[REQUESTS_MAX][24];
    int failed[REQUESTS_MAX];
    enum sl_slot_failure failure[REQUESTS_MAX];
    char failed_reason[SL_REASON_SIZE];
    int lost;
    int workers;
    int workers_lost;
};

struct cluster {
    struct sl_sim *sim;
    struct node rm_node;
    struct sl_resource_manager *rm;
    uint64_t rm_token;
    int topology_timeouts;
    struct supervisor_node supervisors[SUPERVISORS_MAX];
    struct master_node masters[MASTERS_MAX];
    uint64_t start_up_ms;
    uint64_t registration_timeout_ms;
    uint64_t slot_timeout_ms;
    uint64_t topology_timeout_ms;
    uint64_t slot_request_timeout_ms;
    uint64_t processes;
};

static const uint32_t ports[SLOTS] = {6700, 6701};

/* Long limits: what has to happen quickly is a test's own assertion. */
static struct sl_heartbeat_config heartbeat = {1000, 5000, 2};
static const struct sl_registration_config registration = {100, 2000, 500, 500};

static inline void
on_fatal(void *ctx, const char *reason)
{
    struct node *node = ctx;
    node->fatal++;
    snprintf(node->fatal_reason, sizeof(node->fatal_reason), "%s", reason);
}

static inline void
open_node(struct cluster *cluster, struct node *node, const char *host, const char *name)
{
    struct sl_rpc_options options = {.role = "test", .name = name};
    node->cluster = cluster;
    node->fatal = 0;
    node->known_rm = 0;
    snprintf(node->host, sizeof(node->host), "%s", host);
    snprintf(node->address, sizeof(node->address), "%s:700", host);
    snprintf(node->name, sizeof(node->name), "%s", name);
    node->process = ++cluster->processes;
    node->loop = sl_sim_loop_new(cluster->sim, host);
    node->rpc = sl_rpc_new(node->loop, &options);
    assert_int_equal(sl_rpc_listen(node->rpc, node->address), 0);
}

static inline void
close_node(struct node *node)
{
    if (node->loop != NULL) {
        sl_rpc_free(node->rpc);
        sl_loop_free(node->loop);
        node->loop = NULL;
    }
}

/* The table of leaders: what masters[i] says of itself while it lives. */
static inline const struct master_node *
leader_of(const struct cluster *cluster, const char *topology)
{
    for (int i = 0; i < MASTERS_MAX; i++) {
        const struct master_node *master = &cluster->masters[i];
        if (master->slots != NULL && strcmp(master->topology, topology) == 0) {
            return master;
        }
    }
    return NULL;
}

static inline void
tell_supervisor(struct supervisor_node *supervisor)
{
    static const char *const topologies[] = {"words", "other"};
    for (size_t i = 0; i < array_size(topologies); i++) {
        const struct master_node *leader = leader_of(supervisor->node.cluster, topologies[i]);
        sl_supervisor_slots_topology_leader(supervisor->slots, topologies[i],
                                            leader != NULL ? leader->node.address : NULL,
                                            leader != NULL ? leader->token : 0);
    }
}

static inline void
tell_supervisor_later(void *ctx)
{
    struct supervisor_node *supervisor = ctx;
    if (supervisor->slots != NULL) {
        tell_supervisor(supervisor);
    }
}

static inline void
tell_rm_later(void *ctx)
{
    struct cluster *cluster = ctx;
    static const char *const topologies[] = {"words", "other"};
    for (size_t i = 0; i < array_size(topologies) && cluster->rm != NULL; i++) {
        const struct master_node *leader = leader_of(cluster, topologies[i]);
        sl_resource_manager_topology_leader(cluster->rm, topologies[i],
                                            leader != NULL ? leader->token : 0);
    }
}

/* Every watcher reads the table again. */
static inline void
tell_all(struct cluster *cluster)
{
    for (int i = 0; i < SUPERVISORS_MAX; i++) {
        if (cluster->supervisors[i].slots != NULL) {
            sl_loop_post(cluster->supervisors[i].node.loop, tell_supervisor_later,
                         &cluster->supervisors[i]);
        }
    }
    if (cluster->rm != NULL) {
        sl_loop_post(cluster->rm_node.loop, tell_rm_later, cluster);
    }
}

static inline int
watch_start_supervisor(void *ctx, const char *topology)
{
    struct supervisor_node *supervisor = ctx;
    (void)topology;
    if (supervisor->node.is_watch_failing) {
        return sl_err_set(SL_EUNAVAIL, "no state manager");
    }
    sl_loop_post(supervisor->node.loop, tell_supervisor_later, supervisor);
    return 0;
}

static inline int
watch_start_rm(void *ctx, const char *topology)
{
    struct cluster *cluster = ctx;
    (void)topology;
    if (cluster->rm_node.is_watch_failing) {
        return sl_err_set(SL_EUNAVAIL, "no state manager");
    }
    sl_loop_post(cluster->rm_node.loop, tell_rm_later, cluster);
    return 0;
}

static inline void
watch_stop(void *ctx, const char *topology)
{
    (void)ctx;
    (void)topology;
}

static inline void
on_rm_fatal(void *ctx, const char *reason)
{
    struct cluster *cluster = ctx;
    on_fatal(&cluster->rm_node, reason);
}

static inline void
on_topology_timeout(void *ctx, const char *topology)
{
    struct cluster *cluster = ctx;
    (void)topology;
    cluster->topology_timeouts++;
}

static inline void
open_rm(struct cluster *cluster, const char *host)
{
    struct sl_slot_manager_config slots = sl_slot_manager_config_default();
    open_node(cluster, &cluster->rm_node, host, "rm");
    struct sl_resource_manager_options options = {
        .rpc = cluster->rm_node.rpc,
        .resource = "rm",
        .heartbeat = heartbeat,
        .slots = slots,
        .topology_timeout_ms = cluster->topology_timeout_ms,
        .start_up_ms = cluster->start_up_ms,
        .watch = {watch_start_rm, watch_stop, cluster},
        .on_topology_timeout = on_topology_timeout,
        .on_fatal = on_rm_fatal,
        .ctx = cluster,
    };
    assert_int_equal(sl_resource_manager_new(&options, &cluster->rm), 0);
    sl_resource_manager_grant(cluster->rm, ++cluster->rm_token);
}

static inline void
close_rm(struct cluster *cluster)
{
    sl_resource_manager_free(cluster->rm);
    cluster->rm = NULL;
    close_node(&cluster->rm_node);
}

/* The leader of the resource manager, or none, to all who do not know it yet: a listener reports
 * changes only. */
static inline void
announce_rm(struct cluster *cluster, bool is_there)
{
    const char *address = is_there ? cluster->rm_node.address : NULL;
    uint64_t token = is_there ? cluster->rm_token : 0;
    for (int i = 0; i < SUPERVISORS_MAX; i++) {
        struct supervisor_node *supervisor = &cluster->supervisors[i];
        if (supervisor->slots != NULL && supervisor->node.known_rm != token) {
            supervisor->node.known_rm = token;
            sl_supervisor_slots_rm_leader(supervisor->slots, address, token);
        }
    }
    for (int i = 0; i < MASTERS_MAX; i++) {
        struct master_node *master = &cluster->masters[i];
        if (master->slots != NULL && master->node.known_rm != token) {
            master->node.known_rm = token;
            sl_master_slots_rm_leader(master->slots, address, token);
        }
    }
}

static inline void
on_gained(void *ctx, const char *topology)
{
    (void)topology;
    ((struct supervisor_node *)ctx)->gained++;
}

static inline void
on_lost(void *ctx, const char *topology, const char *cause)
{
    (void)topology;
    (void)cause;
    ((struct supervisor_node *)ctx)->lost++;
}

static inline void
on_active(void *ctx, const char *topology, uint32_t port, uint64_t allocation)
{
    (void)topology;
    (void)port;
    (void)allocation;
    ((struct supervisor_node *)ctx)->active++;
}

static inline void
on_stop_tasks(void *ctx, uint64_t allocation, uint32_t port, const char *cause)
{
    (void)allocation;
    (void)port;
    (void)cause;
    ((struct supervisor_node *)ctx)->stops++;
}

static inline void
on_supervisor_stale(void *ctx, const char *topology)
{
    (void)topology;
    ((struct supervisor_node *)ctx)->node.stale++;
}

static inline void
on_supervisor_fatal(void *ctx, const char *reason)
{
    on_fatal(&((struct supervisor_node *)ctx)->node, reason);
}

/* Starts supervisor "s<i>" at 127.0.1.<i>; not yet with a resource manager. */
static inline void
open_supervisor_named(struct cluster *cluster, int i, const char *name)
{
    struct supervisor_node *self = &cluster->supervisors[i];
    char host[24];
    memset(self, 0, sizeof(*self));
    snprintf(host, sizeof(host), "127.0.1.%d", i);
    open_node(cluster, &self->node, host, name);
    self->node.index = i;
    self->identity = (struct sl_register_supervisor){
        .address = self->node.address,
        .resource = self->node.name,
        .process = self->node.process,
        .default_profile = sl_profile_set(1, 1000, 1000),
        .total_profile = sl_profile_set(2, 2000, 2000),
    };
    struct sl_supervisor_slots_options options = {
        .rpc = self->node.rpc,
        .identity = &self->identity,
        .ports = ports,
        .port_count = SLOTS,
        .registration = registration,
        .heartbeat = heartbeat,
        .slot_timeout_ms = cluster->slot_timeout_ms,
        .registration_timeout_ms = cluster->registration_timeout_ms,
        .watch = {watch_start_supervisor, watch_stop, self},
        .on_stale_leader = on_supervisor_stale,
        .on_topology_gained = on_gained,
        .on_topology_lost = on_lost,
        .on_slot_active = on_active,
        .stop_tasks = on_stop_tasks,
        .on_fatal = on_supervisor_fatal,
        .ctx = self,
    };
    assert_int_equal(sl_supervisor_slots_new(&options, &self->slots), 0);
}

static inline void
open_supervisor(struct cluster *cluster, int i)
{
    char name[16];
    snprintf(name, sizeof(name), "s%d", i);
    open_supervisor_named(cluster, i, name);
}

/* How a process ends: it says goodbye, or it is killed. */
static inline void
close_supervisor(struct cluster *cluster, int i)
{
    struct supervisor_node *self = &cluster->supervisors[i];
    sl_supervisor_slots_free(self->slots);
    self->slots = NULL;
    close_node(&self->node);
    (void)cluster;
}

static inline void
kill_supervisor(struct cluster *cluster, int i, bool is_silent)
{
    sl_sim_loop_crash(cluster->supervisors[i].node.loop, is_silent);
    close_supervisor(cluster, i);
}

static inline void
on_slot(void *ctx, uint64_t request, uint64_t allocation, const char *supervisor, uint32_t port)
{
    struct master_node *self = ctx;
    self->served[request] = allocation;
    snprintf(self->served_at[request], sizeof(self->served_at[0]), "%.15s:%u", supervisor, port);
}

static inline void
on_slot_failed(void *ctx, uint64_t request, enum sl_slot_failure kind, const char *reason)
{
    struct master_node *self = ctx;
    self->failed[request]++;
    self->failure[request] = kind;
    snprintf(self->failed_reason, sizeof(self->failed_reason), "%s", reason);
}

static inline void
on_slot_lost(void *ctx, uint64_t request, uint64_t allocation, const char *cause)
{
    struct master_node *self = ctx;
    (void)request;
    (void)allocation;
    (void)cause;
    self->lost++;
}

static inline void
on_worker(void *ctx, const struct sl_register_peer *worker)
{
    (void)worker;
    ((struct master_node *)ctx)->workers++;
}

static inline void
on_worker_lost(void *ctx, const char *worker, const char *cause)
{
    (void)worker;
    (void)cause;
    ((struct master_node *)ctx)->workers_lost++;
}

static inline void
on_master_fatal(void *ctx, const char *reason)
{
    on_fatal(&((struct master_node *)ctx)->node, reason);
}

/* Starts a term of the master of a topology at 127.0.2.<i>. */
static inline void
open_master(struct cluster *cluster, int i, const char *topology, uint64_t token)
{
    struct master_node *self = &cluster->masters[i];
    char host[24];
    char name[16];
    memset(self, 0, sizeof(*self));
    snprintf(host, sizeof(host), "127.0.2.%d", i);
    snprintf(name, sizeof(name), "tm%d", i);
    snprintf(self->topology, sizeof(self->topology), "%s", topology);
    self->token = token;
    open_node(cluster, &self->node, host, name);
    struct sl_master_slots_options options = {
        .rpc = self->node.rpc,
        .topology = self->topology,
        .address = self->node.address,
        .resource = self->node.name,
        .process = self->node.process,
        .token = token,
        .registration = registration,
        .heartbeat = heartbeat,
        .slot_request_timeout_ms = cluster->slot_request_timeout_ms,
        .slot_idle_timeout_ms = 50000,
        .on_fatal = on_master_fatal,
        .on_slot = on_slot,
        .on_slot_failed = on_slot_failed,
        .on_slot_lost = on_slot_lost,
        .on_worker = on_worker,
        .on_worker_lost = on_worker_lost,
        .ctx = self,
    };
    assert_int_equal(sl_master_slots_new(&options, &self->slots), 0);
    tell_all(cluster);
}

static inline void
close_master(struct cluster *cluster, int i)
{
    struct master_node *self = &cluster->masters[i];
    sl_master_slots_free(self->slots);
    self->slots = NULL;
    close_node(&self->node);
    tell_all(cluster);
}

static inline void
open_cluster(struct cluster *cluster, int supervisors)
{
    memset(cluster, 0, sizeof(*cluster));
    cluster->sim = sl_sim_new(&(struct sl_sim_options){.seed = 7, .is_splitting_reads = true});
    cluster->registration_timeout_ms = 300000;
    cluster->slot_timeout_ms = 10000;
    cluster->topology_timeout_ms = 300000;
    cluster->slot_request_timeout_ms = 300000;
    open_rm(cluster, "127.0.3.1");
    for (int i = 0; i < supervisors; i++) {
        open_supervisor(cluster, i);
    }
    announce_rm(cluster, true);
    sl_sim_run_for(cluster->sim, 100);
    assert_int_equal(sl_resource_manager_supervisor_count(cluster->rm), supervisors);
}

static inline void
close_cluster(struct cluster *cluster)
{
    for (int i = 0; i < MASTERS_MAX; i++) {
        if (cluster->masters[i].slots != NULL) {
            close_master(cluster, i);
        }
    }
    for (int i = 0; i < SUPERVISORS_MAX; i++) {
        if (cluster->supervisors[i].slots != NULL) {
            close_supervisor(cluster, i);
        }
    }
    if (cluster->rm != NULL) {
        sl_slot_manager_check_invariants(sl_resource_manager_slots(cluster->rm));
        close_rm(cluster);
    }
    sl_sim_free(cluster->sim);
}

static inline void
run(struct cluster *cluster, uint64_t ms)
{
    sl_sim_run_for(cluster->sim, ms);
}

/* A slot request of masters[i] for any slot. */
static inline void
ask_slot(struct cluster *cluster, int i, uint64_t request)
{
    struct sl_slot_wish wish = {.profile = sl_profile_unknown()};
    sl_master_slots_request(cluster->masters[i].slots, request, &wish);
}

static inline void
ask_named_slot(struct cluster *cluster, int i, uint64_t request, const char *supervisor,
               uint32_t port)
{
    struct sl_slot_wish wish = {
        .profile = sl_profile_unknown(), .supervisor = supervisor, .port = port};
    sl_master_slots_request(cluster->masters[i].slots, request, &wish);
}

/* Slots of supervisor i in a state, of a topology. */
static inline size_t
slots_of(const struct cluster *cluster, int i, const char *topology, int state)
{
    return sl_slot_table_count(sl_supervisor_slots_table(cluster->supervisors[i].slots), topology,
                               state);
}

/* Sends a message from a node of its own, as a copy that comes late would. */
static inline void
send_late(struct cluster *cluster, const char *address, const char *endpoint, uint64_t token,
          uint32_t method, const struct sl_buf *body)
{
    struct sl_rpc_gateway *gateway;
    struct sl_loop *loop = sl_sim_loop_new(cluster->sim, "127.0.9.9");
    struct sl_rpc *rpc = sl_rpc_new(loop, &(struct sl_rpc_options){.role = "test", .name = "late"});
    assert_int_equal(sl_rpc_connect(rpc, address, endpoint, token, &gateway), 0);
    sl_rpc_send(gateway, method, body->data, body->size);
    run(cluster, 100);
    sl_rpc_gateway_free(gateway);
    sl_rpc_free(rpc);
    sl_loop_free(loop);
}

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL) {                                                      \
            print_message("'%s' is not in: %s\n", (part), (text));                                 \
        }                                                                                          \
        assert_non_null(strstr((text), (part)));                                                   \
    } while (0)
