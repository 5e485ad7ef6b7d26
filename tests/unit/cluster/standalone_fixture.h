#pragma once
/*
 * A cluster in virtual time with a state manager in memory: a resource manager, supervisors, and
 * the processes that these start, which are topology masters of the real kind and workers that only
 * register and run plans. Processes outlive the supervisor that started them, as real ones do.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "cluster/launcher_standalone.h"
#include "cluster/resource_manager.h"
#include "cluster/settings.h"
#include "cluster/supervisor.h"
#include "cluster/topology_master.h"
#include "cluster/worker_registration.h"
#include "loop/sim.h"
#include "rpc/leader_retrieval.h"
#include "state/election.h"
#include "state/layout.h"
#include "state/loop_executor.h"
#include "state/memory.h"
#include "unit.h"

/* The simulation counts processes from 1000. */
enum { FIRST_PID = 1000, PROCESSES_MAX = 256, SUPERVISORS_MAX = 3, FIRST_PORT = 6800, PORTS = 3 };

struct fixture;

/* A loop of its own with the state manager and a service. */
struct node {
    struct sl_loop *loop;
    struct sl_state_loop_executor executor;
    struct sl_state_store *store;
    struct sl_state_backend *backend;
    struct sl_rpc *rpc;
    char host[24];
    bool is_closed;
};

/* What a supervisor started. */
struct process {
    struct fixture *fixture;
    struct node node;
    int64_t pid;
    bool is_alive;
    /* Objects of a process that has ended are freed between two steps. */
    bool is_reaped;
    bool is_master;
    char supervisor[32];
    uint32_t port;
    int32_t container;
    /* A topology master. */
    struct sl_launcher_standalone *launcher;
    struct sl_topology_master *master;
    /* A worker. */
    char name[24];
    char data_address[40];
    struct sl_register_peer identity;
    struct sl_worker_registration *registration;
    struct sl_leader_retrieval *leader;
    struct sl_arena arena;
    uint64_t plan_version;
    int plans;
    /* Who watches it although it is no child of his. */
    sl_loop_fn watch_fn;
    void *watch_arg;
    struct sl_loop *watch_loop;
    int exit_code;
};

struct supervisor_node {
    struct fixture *fixture;
    struct node node;
    struct sl_supervisor *supervisor;
    char id[16];
    char folder[64];
    uint32_t ports[PORTS];
    uint64_t pid;
    int ended;
    int end_code;
    char reason[SL_REASON_SIZE];
};

struct fixture {
    struct sl_sim *sim;
    struct sl_loop *server_loop;
    struct sl_state_loop_executor server_executor;
    struct sl_memory_server *server;
    struct sl_settings settings;
    char folder[32];
    struct node rm_node;
    struct sl_resource_manager *rm;
    struct sl_state_election *election;
    struct sl_topology_leaders rm_leaders;
    struct supervisor_node supervisors[SUPERVISORS_MAX];
    struct process processes[PROCESSES_MAX];
    int started;
    int hosts;
    uint64_t seeds;
    /* Workers that are started end at once, or topology masters do. */
    bool is_worker_broken;
    bool is_master_broken;
    /* Topology masters do nothing. */
    bool is_master_idle;
    /* Workers have something in flight, however long one waits. */
    bool is_worker_busy;
    struct node client;
    struct sl_leader_retrieval *leader;
    char leader_address[64];
    uint64_t leader_token;
    struct sl_arena arena;
    struct sl_rpc_gateway *gateway;
    struct sl_buf answer;
    int answers;
    enum sl_rpc_status answer_status;
    int answer_code;
    char reason[SL_REASON_SIZE];
    int done;
    int done_status;
    struct sl_buf value;
    int32_t value_version;
};

static struct fixture *current;

static inline void reap(struct fixture *f);

/* Runs the simulation until the condition holds. */
#define UNTIL(f, condition)                                                                        \
    do {                                                                                           \
        uint64_t until_ms = sl_sim_now_ms((f)->sim) + 900000;                                      \
        while (!(condition)) {                                                                     \
            assert_true(sl_sim_now_ms((f)->sim) < until_ms);                                       \
            assert_true(sl_sim_step((f)->sim));                                                    \
            reap(f);                                                                               \
        }                                                                                          \
    } while (0)

static inline void
run_for(struct fixture *f, uint64_t ms)
{
    uint64_t end_ms = sl_sim_now_ms(f->sim) + ms;
    UNTIL(f, sl_sim_now_ms(f->sim) >= end_ms);
}

static inline void
node_open(struct fixture *f, struct node *node)
{
    char address[64];
    memset(node, 0, sizeof(*node));
    snprintf(node->host, sizeof(node->host), "127.0.1.%d", ++f->hosts);
    node->loop = sl_sim_loop_new(f->sim, node->host);
    sl_state_loop_executor_create(&node->executor, f->server_loop);
    node->backend = sl_memory_backend_new(f->server, &node->executor.executor);
    node->store = sl_state_store_new(node->backend, &node->executor.executor,
                                     &(struct sl_state_options){.seed = 1 + f->seeds++});
    node->rpc = sl_rpc_new(node->loop, &(struct sl_rpc_options){.role = "test"});
    snprintf(address, sizeof(address), "%s:700", node->host);
    assert_int_equal(sl_rpc_listen(node->rpc, address), 0);
}

static inline void
store_closed(void *arg)
{
    *(bool *)arg = true;
}

static inline void
node_close(struct fixture *f, struct node *node)
{
    if (node->loop == NULL) {
        return;
    }
    sl_rpc_free(node->rpc);
    sl_state_store_close(node->store, store_closed, &node->is_closed);
    while (!node->is_closed) {
        assert_true(sl_sim_step(f->sim));
    }
    sl_state_loop_executor_destroy(&node->executor);
    sl_loop_free(node->loop);
    node->loop = NULL;
}

/* Processes. */

static inline struct process *
process_by_pid(struct fixture *f, int64_t pid)
{
    return pid >= FIRST_PID && pid < FIRST_PID + f->started ? &f->processes[pid - FIRST_PID] : NULL;
}

/* The process is gone: nothing of it is called any more, and its parent or watcher hears of it. */
static inline void
process_end(struct process *process, int code, int number)
{
    struct fixture *f = process->fixture;
    if (!process->is_alive) {
        return;
    }
    process->is_alive = false;
    sl_sim_loop_crash(process->node.loop, false);
    sl_sim_process_exited(f->sim, process->pid, code, number);
    if (process->watch_fn != NULL) {
        sl_loop_post(process->watch_loop, process->watch_fn, process->watch_arg);
        process->watch_fn = NULL;
    }
}

static inline void
reap(struct fixture *f)
{
    for (int i = 0; i < f->started; i++) {
        struct process *process = &f->processes[i];
        if (process->is_alive || process->is_reaped) {
            continue;
        }
        process->is_reaped = true;
        sl_topology_master_free(process->master);
        sl_launcher_standalone_free(process->launcher);
        if (process->leader != NULL) {
            sl_leader_retrieval_free(process->leader);
        }
        sl_worker_registration_free(process->registration);
        node_close(f, &process->node);
        sl_arena_destroy(&process->arena);
    }
}

static inline void
exit_later(void *ctx)
{
    struct process *process = ctx;
    process_end(process, process->exit_code, 0);
}

static inline void
process_exit(struct process *process, int code)
{
    process->exit_code = code;
    sl_loop_post(process->fixture->server_loop, exit_later, process);
}

static inline void
master_ended(void *ctx, int code, const char *reason)
{
    (void)reason;
    process_exit(ctx, code == 0 ? 0 : 75);
}

static inline void
launcher_failed(void *ctx, const char *reason)
{
    (void)reason;
    process_exit(ctx, 75);
}

static inline void
master_run(struct process *process)
{
    struct fixture *f = process->fixture;
    struct sl_launcher_standalone_options launcher = {.rpc = process->node.rpc,
                                                      .store = process->node.store,
                                                      .topology = "words",
                                                      .settings = &f->settings,
                                                      .on_fatal = launcher_failed,
                                                      .ctx = process};
    process->launcher = sl_launcher_standalone_new(&launcher);
    struct sl_topology_master_options options = {
        .store = process->node.store,
        .rpc = process->node.rpc,
        .topology = "words",
        .launcher = sl_launcher_standalone_seam(process->launcher),
        .place = {process->supervisor, "", process->port},
        .pid = (uint64_t)process->pid,
        .heartbeat_interval_ms = 1000,
        .heartbeat_timeout_ms = 5000,
        .on_end = master_ended,
        .ctx = process,
    };
    assert_int_equal(sl_topology_master_new(&options, &process->master), 0);
}

static inline void
worker_handle(void *ctx, struct sl_rpc_request *request)
{
    struct process *process = ctx;
    struct sl_physical_plan plan;
    struct sl_buf out = {0};
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    switch (sl_rpc_request_method(request)) {
    case SL_WORKER_PLAN:
        assert_int_equal(sl_physical_plan_decode(body, size, &process->arena, &plan), 0);
        process->plans++;
        process->plan_version = plan.plan_version;
        sl_worker_ready_encode(&(struct sl_worker_ready){plan.plan_version, plan.epoch}, &out);
        break;
    case SL_WORKER_DRAIN:
        sl_worker_drained_encode(
            &(struct sl_worker_drained){
                .roots = process->fixture->is_worker_busy, .sent = 1, .received = 1},
            &out);
        break;
    case SL_WORKER_SHUTDOWN:
        process_exit(process, 0);
        break;
    default:
        break;
    }
    sl_rpc_reply(request, out.data, out.size);
    sl_buf_destroy(&out);
}

static inline void
worker_payload(void *ctx, struct sl_buf *out)
{
    (void)ctx;
    sl_worker_report_encode(&(struct sl_worker_report){.plan_version = 1}, out);
}

static inline void
worker_rejected(void *ctx, const char *reason)
{
    (void)reason;
    process_exit(ctx, 0);
}

static inline void
worker_lost(void *ctx, const char *cause)
{
    (void)ctx;
    (void)cause;
}

static inline void
worker_registered(void *ctx, uint64_t token)
{
    (void)ctx;
    (void)token;
}

static inline void
worker_stale(void *ctx)
{
    sl_leader_retrieval_look_again(((struct process *)ctx)->leader);
}

static inline void
worker_leader(void *ctx, const char *address, uint64_t token)
{
    sl_worker_registration_leader(((struct process *)ctx)->registration, address, token);
}

static inline void
worker_run(struct process *process)
{
    struct fixture *f = process->fixture;
    char path[SL_STATE_PATH_MAX + 1];
    snprintf(process->name, sizeof(process->name), "container-%d", process->container);
    snprintf(process->data_address, sizeof(process->data_address), "%s:%u", process->node.host,
             process->port);
    process->identity = (struct sl_register_peer){.topology = "words",
                                                  .address = sl_rpc_address(process->node.rpc),
                                                  .resource = process->name,
                                                  .process = (uint64_t)process->pid,
                                                  .supervisor = process->supervisor,
                                                  .port = process->port,
                                                  .data_address = process->data_address,
                                                  .container = process->container,
                                                  .identity = {(uint8_t)process->pid},
                                                  .pid = (uint64_t)process->pid};
    struct sl_worker_registration_options options = {
        .rpc = process->node.rpc,
        .identity = &process->identity,
        .registration = sl_settings_registration(&f->settings),
        .heartbeat = sl_settings_heartbeat(&f->settings),
        .on_registered = worker_registered,
        .on_lost = worker_lost,
        .on_stale_leader = worker_stale,
        .on_rejected = worker_rejected,
        .make_payload = worker_payload,
        .handle = worker_handle,
        .ctx = process,
    };
    assert_int_equal(sl_worker_registration_new(&options, &process->registration), 0);
    process->leader = sl_leader_retrieval_new(
        process->node.store, process->node.loop,
        sl_layout_path(path, SL_LAYOUT_TOPOLOGY_LEADER, "words"), worker_leader, process);
}

static inline const char *
argument(const char *const *argv, const char *name)
{
    for (int i = 0; argv[i] != NULL; i++) {
        if (strcmp(argv[i], name) == 0) {
            return argv[i + 1];
        }
    }
    return "";
}

/* The body of a process begins in a turn of its own. */
static inline void
process_begin(void *ctx)
{
    struct process *process = ctx;
    if (!process->is_alive) {
        return;
    }
    if (process->is_master ? process->fixture->is_master_broken
                           : process->fixture->is_worker_broken) {
        process_exit(process, 1);
    } else if (!process->is_master) {
        worker_run(process);
    } else if (!process->fixture->is_master_idle) {
        master_run(process);
    }
}

static inline int
spawn(void *ctx, struct sl_loop *parent, const struct sl_process_options *options, int64_t pid)
{
    struct fixture *f = ctx;
    (void)parent;
    assert_true(f->started < PROCESSES_MAX);
    struct process *process = &f->processes[f->started++];
    assert_int_equal(pid, FIRST_PID + f->started - 1);
    assert_string_equal(argument(options->argv, "--topology"), "words");
    assert_string_equal(argument(options->argv, "--state"), "memory:");
    assert_string_equal(argument(options->argv, "--cluster"), "standalone");
    process->fixture = f;
    process->pid = pid;
    process->is_alive = true;
    process->is_master = strcmp(options->argv[1], "topology-master") == 0;
    process->port = (uint32_t)atoi(argument(options->argv, "--port"));
    process->container = atoi(argument(options->argv, "--container"));
    snprintf(process->supervisor, sizeof(process->supervisor), "%s",
             argument(options->argv, "--supervisor"));
    sl_arena_create(&process->arena, 0, 0);
    node_open(f, &process->node);
    sl_loop_post(process->node.loop, process_begin, process);
    return 0;
}

static inline void
signal_process(void *ctx, int64_t pid, int number)
{
    struct process *process = process_by_pid(ctx, pid);
    if (process != NULL) {
        process_end(process, -1, number);
    }
}

static inline int
adopter_watch(void *ctx, struct sl_loop *loop, int64_t pid, sl_loop_fn fn, void *arg, void **watch)
{
    struct process *process = process_by_pid(ctx, pid);
    if (process == NULL || !process->is_alive) {
        return sl_err_set(SL_ENOTFOUND, "process %lld has ended", (long long)pid);
    }
    process->watch_fn = fn;
    process->watch_arg = arg;
    process->watch_loop = loop;
    *watch = process;
    return 0;
}

static inline void
adopter_unwatch(void *ctx, void *watch)
{
    (void)ctx;
    ((struct process *)watch)->watch_fn = NULL;
}

/* The start of a process: its id doubled, while it lives. Supervisors have small ids. */
static inline uint64_t
process_start(int64_t pid)
{
    const struct process *process = process_by_pid(current, pid);
    if (process != NULL) {
        return process->is_alive ? 2 * (uint64_t)pid : 0;
    }
    for (int i = 0; i < SUPERVISORS_MAX; i++) {
        if (current->supervisors[i].supervisor != NULL &&
            current->supervisors[i].pid == (uint64_t)pid) {
            return 2 * (uint64_t)pid;
        }
    }
    return 0;
}

/* The living process of a container; 0: the topology master. */
static inline struct process *
process_of(struct fixture *f, int32_t container)
{
    struct process *found = NULL;
    for (int i = 0; i < f->started; i++) {
        struct process *process = &f->processes[i];
        if (process->is_alive && process->is_master == (container == 0) &&
            process->container == container) {
            found = process;
        }
    }
    return found;
}

static inline int
count_alive(const struct fixture *f)
{
    int count = 0;
    for (int i = 0; i < f->started; i++) {
        count += f->processes[i].is_alive;
    }
    return count;
}

/* The master: only its resource manager. */

static inline void
rm_elected(void *ctx, enum sl_state_election_event event, uint64_t token)
{
    struct fixture *f = ctx;
    if (event == SL_STATE_ELECTION_GRANTED) {
        sl_resource_manager_grant(f->rm, token);
    } else if (event == SL_STATE_ELECTION_REVOKED) {
        sl_resource_manager_revoke(f->rm);
    }
}

static inline void
rm_topology_leader(void *ctx, const char *topology, const char *address, uint64_t token)
{
    struct fixture *f = ctx;
    (void)address;
    sl_resource_manager_topology_leader(f->rm, topology, token);
}

static inline void
rm_fatal(void *ctx, const char *reason)
{
    (void)ctx;
    fail_msg("%s", reason);
}

static inline void
rm_start(struct fixture *f)
{
    node_open(f, &f->rm_node);
    sl_topology_leaders_create(&f->rm_leaders, f->rm_node.store, f->rm_node.loop,
                               sl_layout_folder(SL_LAYOUT_TOPOLOGY_LEADER), rm_topology_leader, f);
    struct sl_resource_manager_options options = {
        .rpc = f->rm_node.rpc,
        .resource = "master",
        .heartbeat = sl_settings_heartbeat(&f->settings),
        .slots = sl_slot_manager_config_default(),
        .topology_timeout_ms = 300000,
        .start_up_ms = 2000,
        .watch = sl_topology_leaders_watch(&f->rm_leaders),
        .on_fatal = rm_fatal,
        .ctx = f,
    };
    assert_int_equal(sl_resource_manager_new(&options, &f->rm), 0);
    f->election = sl_state_election_new(f->rm_node.store, SL_LAYOUT_MASTER_LEADER, "master",
                                        sl_rpc_address(f->rm_node.rpc), rm_elected, f);
}

static inline void
rm_kill(struct fixture *f)
{
    if (f->rm != NULL) {
        sl_sim_loop_crash(f->rm_node.loop, false);
        sl_state_election_free(f->election);
        sl_resource_manager_free(f->rm);
        sl_topology_leaders_destroy(&f->rm_leaders);
        node_close(f, &f->rm_node);
        f->rm = NULL;
    }
}

/* Supervisors s0, s1, s2 with ports 6800 to 6802. */

static inline void
supervisor_ended(void *ctx, int code, const char *reason)
{
    struct supervisor_node *self = ctx;
    self->ended++;
    self->end_code = code;
    snprintf(self->reason, sizeof(self->reason), "%s", reason);
}

static inline void
supervisor_start_as(struct fixture *f, int i, const char *id)
{
    struct supervisor_node *self = &f->supervisors[i];
    static const char *const arguments[] = {"--cluster", "standalone", NULL};
    static struct sl_adopter adopter;
    adopter = (struct sl_adopter){adopter_watch, adopter_unwatch, signal_process, f};
    self->fixture = f;
    self->ended = 0;
    node_open(f, &self->node);
    snprintf(self->id, sizeof(self->id), "%s", id);
    snprintf(self->folder, sizeof(self->folder), "%s/%s", f->folder, id);
    self->pid = 1 + f->seeds % 90;
    for (uint32_t k = 0; k < PORTS; k++) {
        self->ports[k] = FIRST_PORT + k;
    }
    struct sl_supervisor_options options = {
        .rpc = self->node.rpc,
        .store = self->node.store,
        .program = {.program = "streamlua",
                    .state_url = "memory:",
                    .arguments = arguments,
                    .id = self->id,
                    .host = self->node.host,
                    .folder = self->folder,
                    .logs = f->folder},
        .ports = self->ports,
        .port_count = PORTS,
        .cpu_cores = 4,
        .ram_bytes = 1LL << 32,
        .settings = &f->settings,
        .pid = self->pid,
        .adopter = &adopter,
        .process_start = process_start,
        .boot_id = "boot",
        .on_end = supervisor_ended,
        .ctx = self,
    };
    assert_int_equal(sl_supervisor_new(&options, &self->supervisor), 0);
}

static inline void
supervisor_start(struct fixture *f, int i)
{
    char id[16];
    snprintf(id, sizeof(id), "s%d", i);
    supervisor_start_as(f, i, id);
}

/* is_killed: as kill -9 does, else it says goodbye. What it started runs on. */
static inline void
supervisor_end(struct fixture *f, int i, bool is_killed)
{
    struct supervisor_node *self = &f->supervisors[i];
    if (self->supervisor != NULL) {
        if (is_killed) {
            sl_sim_loop_crash(self->node.loop, false);
        }
        sl_supervisor_free(self->supervisor);
        self->supervisor = NULL;
        node_close(f, &self->node);
    }
}

/* The client. */

static inline void
leader_changed(void *ctx, const char *address, uint64_t token)
{
    struct fixture *f = ctx;
    snprintf(f->leader_address, sizeof(f->leader_address), "%s", address != NULL ? address : "");
    f->leader_token = token;
}

static inline void
done(void *ctx, int status, const struct sl_state_result *result)
{
    struct fixture *f = ctx;
    f->done++;
    f->done_status = status;
    sl_buf_clear(&f->value);
    if (status == 0 && result->value != NULL) {
        sl_buf_append(&f->value, result->value, result->size);
        f->value_version = result->stat.version;
    }
}

static inline void
answered(void *ctx, const struct sl_rpc_result *result)
{
    struct fixture *f = ctx;
    f->answers++;
    f->answer_status = result->status;
    f->answer_code = result->code;
    snprintf(f->reason, sizeof(f->reason), "%s", result->reason);
    sl_buf_clear(&f->answer);
    sl_buf_append(&f->answer, result->body, result->size);
}

static inline enum sl_rpc_status
call(struct fixture *f, const char *address, const char *endpoint, uint64_t token, uint32_t method,
     const struct sl_buf *body)
{
    int before = f->answers;
    assert_int_equal(sl_rpc_connect(f->client.rpc, address, endpoint, token, &f->gateway), 0);
    sl_rpc_call(f->gateway, method, body->data, body->size, 60000, answered, f);
    UNTIL(f, f->answers > before);
    sl_rpc_gateway_free(f->gateway);
    f->gateway = NULL;
    return f->answer_status;
}

static inline enum sl_rpc_status
call_supervisor_for(struct fixture *f, int i, uint32_t method, struct sl_start_master message)
{
    struct sl_buf body = {0};
    sl_start_master_encode(&message, &body);
    enum sl_rpc_status status = call(f, sl_rpc_address(f->supervisors[i].node.rpc),
                                     SL_ENDPOINT_SUPERVISOR, 0, method, &body);
    sl_buf_destroy(&body);
    return status;
}

static inline enum sl_rpc_status
call_supervisor(struct fixture *f, int i, uint32_t method, uint32_t port)
{
    return call_supervisor_for(f, i, method,
                               (struct sl_start_master){.topology = "words", .port = port});
}

static inline enum sl_rpc_status
call_master(struct fixture *f, uint32_t method, struct sl_control_request request)
{
    struct sl_buf body = {0};
    UNTIL(f, f->leader_token != 0);
    sl_control_request_encode(&request, &body);
    enum sl_rpc_status status = call(f, f->leader_address, SL_ENDPOINT_TOPOLOGY_MASTER "words",
                                     f->leader_token, method, &body);
    sl_buf_destroy(&body);
    return status;
}

/* Containers 1, 2, ... at "s0:6800", "s1:6801" and so on; `master` likewise. */
static inline void
make_plan(uint64_t version, const char *master, const char *const *places, struct sl_buf *out)
{
    static struct sl_plan_component components[] = {{"lines", NULL, 0}};
    struct sl_packing_container containers[8];
    struct sl_packing_instance instances[8];
    struct sl_plan_slot slots[8];
    char names[9][4] = {{0}};
    int32_t count = 0;
    for (; places[count] != NULL; count++) {
        containers[count] = (struct sl_packing_container){count + 1, count, 1, 1, 1, 1};
        instances[count] = (struct sl_packing_instance){0, count + 1, count, 1, 1, 1};
        memcpy(names[count], places[count], 2);
        slots[count] = (struct sl_plan_slot){names[count], "h", (uint32_t)atoi(places[count] + 3)};
    }
    memcpy(names[8], master, 2);
    struct sl_stored_plan plan = {
        .topology = "words",
        .version = version,
        .packing = "round_robin",
        .components = components,
        .component_count = 1,
        .plan = {.containers = containers,
                 .instances = instances,
                 .container_count = count,
                 .instance_count = count},
        .slots = slots,
        .master = {names[8], "h", (uint32_t)atoi(master + 3)},
        .master_task = 99,
    };
    sl_buf_clear(out);
    assert_int_equal(sl_stored_plan_encode(&plan, out), 0);
}

static inline void
write_node(struct fixture *f, enum sl_layout_part part, const struct sl_buf *value, bool is_new)
{
    char path[SL_STATE_PATH_MAX + 1];
    int before = f->done;
    sl_layout_path(path, part, "words");
    if (is_new) {
        sl_state_create(f->client.store, path, value->data, value->size, SL_STATE_PARENTS, done, f);
    } else {
        sl_state_set(f->client.store, path, value->data, value->size, SL_STATE_ANY_VERSION, done,
                     f);
    }
    UNTIL(f, f->done > before);
    assert_int_equal(f->done_status, 0);
}

/* Stores a topology and has its master started at the place that the plan names. */
static inline void
submit(struct fixture *f, const char *master, const char *const *places)
{
    struct sl_buf value = {0};
    make_plan(1, master, places, &value);
    write_node(f, SL_LAYOUT_PLAN, &value, true);
    sl_buf_clear(&value);
    sl_execution_state_encode(&(struct sl_execution_state){.topology = "words",
                                                           .topology_id = "words-1",
                                                           .state = SL_TOPOLOGY_STARTING,
                                                           .is_active = true},
                              &value);
    write_node(f, SL_LAYOUT_EXECUTION_STATE, &value, true);
    sl_buf_destroy(&value);
    assert_int_equal(
        call_supervisor(f, master[1] - '0', SL_SV_START_MASTER, (uint32_t)atoi(master + 3)),
        SL_RPC_SUCCESS);
}

static inline struct sl_control_status
await_settled(struct fixture *f)
{
    struct sl_control_status status;
    sl_arena_reset(&f->arena);
    assert_int_equal(
        call_master(f, SL_TM_AWAIT, (struct sl_control_request){.time_limit_ms = 50000}),
        SL_RPC_SUCCESS);
    assert_int_equal(sl_control_status_decode(f->answer.data, f->answer.size, &f->arena, &status),
                     0);
    return status;
}

static inline int
setup_cluster(void **state)
{
    struct fixture *f = sl_calloc(1, sizeof(*f));
    char path[SL_STATE_PATH_MAX + 1];
    current = f;
    f->sim = sl_sim_new(&(struct sl_sim_options){.seed = 5});
    sl_sim_set_spawner(f->sim, &(struct sl_sim_spawner){spawn, signal_process, f});
    f->server_loop = sl_sim_loop_new(f->sim, "127.0.0.9");
    sl_state_loop_executor_create(&f->server_executor, f->server_loop);
    f->server = sl_memory_server_new(&f->server_executor.executor, 3);
    f->settings = sl_settings_default();
    f->settings.heartbeat_interval_ms = 1000;
    f->settings.heartbeat_timeout_ms = 5000;
    f->settings.registration_error_delay_ms = 200;
    f->settings.registration_refused_delay_ms = 200;
    unit_folder_new(f->folder, sizeof(f->folder));
    sl_arena_create(&f->arena, 0, 0);
    node_open(f, &f->client);
    f->leader = sl_leader_retrieval_new(f->client.store, f->client.loop,
                                        sl_layout_path(path, SL_LAYOUT_TOPOLOGY_LEADER, "words"),
                                        leader_changed, f);
    rm_start(f);
    for (int i = 0; i < 2; i++) {
        supervisor_start(f, i);
    }
    UNTIL(f, sl_resource_manager_supervisor_count(f->rm) == 2);
    *state = f;
    return 0;
}

static inline void
remove_tree(const char *path)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

static inline int
teardown_cluster(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < SUPERVISORS_MAX; i++) {
        supervisor_end(f, i, false);
    }
    for (int i = 0; i < f->started; i++) {
        process_end(&f->processes[i], 0, 0);
    }
    reap(f);
    rm_kill(f);
    sl_leader_retrieval_free(f->leader);
    sl_rpc_gateway_free(f->gateway);
    node_close(f, &f->client);
    sl_memory_server_free(f->server);
    sl_state_loop_executor_destroy(&f->server_executor);
    sl_loop_free(f->server_loop);
    sl_sim_free(f->sim);
    remove_tree(f->folder);
    sl_buf_destroy(&f->answer);
    sl_buf_destroy(&f->value);
    sl_arena_destroy(&f->arena);
    sl_free(f);
    return 0;
}
