#pragma once
/*
 * A topology master in virtual time, with a state manager in memory, a launcher that starts workers
 * as nodes of the simulation, and a client. The workers speak the real conversation and keep a
 * count for each key group, so that a test sees whether state went where it belongs. What moves
 * goes from worker to worker as it does in real ones.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/list.h"
#include "cluster/topology_master.h"
#include "cluster/worker_moves.h"
#include "loop/sim.h"
#include "rpc/connections.h"
#include "state/layout.h"
#include "state/leader.h"
#include "state/loop_executor.h"
#include "state/memory.h"
#include "unit.h"

enum { WORKERS_MAX = 16, GROUPS = 8, ENTRIES = 3 };

struct fixture;

/* How a plan differs from that of `bolts` tasks of the bolt (ids 2..), one container each beside
 * the spout's own, container 1. */
struct plan_shift {
    /* Added to the indexes of the bolt's tasks, and to the ids of their containers. */
    int32_t index;
    int32_t container;
    /* Further tasks of the spout, from id 50 on. */
    int32_t spouts;
};

/* A process that runs a container. */
struct fake_worker {
    struct fixture *fixture;
    int32_t container;
    uint64_t pid;
    bool is_alive;
    struct sl_loop *loop;
    struct sl_rpc *rpc;
    struct sl_rpc_endpoint endpoint;
    struct sl_register_peer identity;
    struct sl_named_connection link;
    char host[24];
    char address[40];
    char data_address[40];
    char name[24];
    struct sl_arena arena;
    struct sl_physical_plan plan;
    bool is_active;
    bool is_held;
    int plans;
    int rejections;
    /* Counts of the key groups of "count" whose owner runs here, -1 for others. What moves is a
     * state with some keys of the group, each with its count. */
    int counts[GROUPS];
    struct sl_worker_moves *moves;
    /* The export that is asked for. */
    bool is_asked;
    uint32_t groups[GROUPS];
    size_t group_count;
    int cursor;
    bool is_first_ask;
    /* How often it answers that something is in flight, and how often it was asked. */
    int busy_rounds;
    int drains;
};

/* A letter from worker to worker that is under way. */
struct fake_letter {
    struct sl_list_node node;
    struct fixture *fixture;
    int32_t from;
    int32_t to;
    uint64_t to_pid;
    size_t size;
    bool is_lost;
    uint8_t bytes[];
};

struct node {
    struct sl_loop *loop;
    struct sl_state_loop_executor executor;
    struct sl_state_store *store;
    struct sl_rpc *rpc;
    struct sl_state_backend *backend;
    bool is_closed;
};

struct fixture {
    struct sl_sim *sim;
    struct sl_loop *server_loop;
    struct sl_state_loop_executor server_executor;
    struct sl_memory_server *server;
    struct node master_node;
    struct sl_topology_master *master;
    int end_code;
    bool has_ended;
    struct sl_launcher_listener launcher;
    struct fake_worker workers[WORKERS_MAX];
    /* Workers that were started, as far as there is room to know them by; and all of them. */
    int started;
    int births;
    int removed;
    /* Containers that the launcher has. */
    bool is_wanted[64];
    /* Calls of the launcher that take their time, updates that it was asked for. */
    int slow_updates;
    int slow_adds;
    int prepared;
    bool refuse_update;
    bool can_not_scale;
    /* Added to the ids of new containers. */
    int32_t remap;
    /* Of proposed plans, and of those that they are to replace. */
    struct plan_shift shift;
    struct plan_shift current_shift;
    /* What new workers refuse. */
    bool refuse_plan;
    bool refuse_export;
    /* A worker says that it has got less than it has. */
    bool understates;
    /* Entries come in two parts each. */
    bool has_parts;
    /* The first answer to an export has no pieces, as when tasks that have no state come first. */
    bool begins_empty;
    struct sl_list letters;
    int letter_count;
    /* What becomes of a letter before it is under way; unset: nothing. */
    void (*on_letter)(struct fixture *f, struct fake_letter *letter);
    /* Updates only say what would move. */
    bool is_dry_run;
    bool is_silent_start;
    uint64_t next_pid;
    struct node client;
    struct sl_state_leader_listener *leader;
    char leader_address[SL_STATE_OWNER_TEXT_MAX];
    uint64_t leader_token;
    struct sl_rpc_gateway *gateway;
    int answers;
    struct sl_rpc_result result;
    char reason[SL_REASON_SIZE];
    struct sl_buf answer;
    struct sl_arena arena;
    int done;
    int done_status;
    struct sl_buf value;
};

/* Runs the simulation until the condition holds. */
#define UNTIL(f, condition)                                                                        \
    do {                                                                                           \
        uint64_t until_ms = sl_sim_now_ms((f)->sim) + 200000;                                      \
        while (!(condition)) {                                                                     \
            assert_true(sl_sim_now_ms((f)->sim) < until_ms);                                       \
            assert_true(sl_sim_step((f)->sim));                                                    \
        }                                                                                          \
    } while (0)

static inline void
node_open(struct fixture *f, struct node *node, const char *host)
{
    char address[64];
    node->loop = sl_sim_loop_new(f->sim, host);
    /* Not of its own loop, on which nothing runs after a crash. */
    sl_state_loop_executor_create(&node->executor, f->server_loop);
    node->backend = sl_memory_backend_new(f->server, &node->executor.executor);
    node->store = sl_state_store_new(node->backend, &node->executor.executor,
                                     &(struct sl_state_options){.seed = 1 + f->next_pid++});
    node->rpc = sl_rpc_new(node->loop, &(struct sl_rpc_options){.role = "test", .name = host});
    snprintf(address, sizeof(address), "%s:700", host);
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
    node->is_closed = false;
    sl_state_store_close(node->store, store_closed, &node->is_closed);
    UNTIL(f, node->is_closed);
    sl_state_loop_executor_destroy(&node->executor);
    sl_loop_free(node->loop);
    node->loop = NULL;
}

static inline bool
worker_owns(const struct fake_worker *worker, uint32_t group)
{
    for (int32_t i = 0; i < worker->plan.task_count; i++) {
        if (worker->plan.tasks[i].task == worker->plan.components[1].key_groups[group]) {
            return worker->plan.tasks[i].container == worker->container;
        }
    }
    return false;
}

/* The n-th key of a group. */
static inline struct sl_keyed_key
key_of_group(uint32_t group, int n)
{
    for (int64_t key = 0;; key++) {
        struct sl_keyed_key found = sl_keyed_key_i64(key);
        if (sl_key_group(found.hash, GROUPS) == group && n-- == 0) {
            return found;
        }
    }
}

/* The count that a table has for a group, all keys alike; -1: none. */
static inline int
count_in_table(const struct sl_keyed *entries, uint32_t group)
{
    int count = -1;
    for (int i = 0; i < ENTRIES && sl_keyed_group_count(entries, group) > 0; i++) {
        struct sl_keyed_key key = key_of_group(group, i);
        struct sl_value value;
        assert_true(sl_keyed_get(entries, &key, &value));
        assert_true(i == 0 || (int)value.number == count);
        count = (int)value.number;
    }
    assert_int_equal(sl_keyed_group_count(entries, group), count >= 0 ? ENTRIES : 0);
    return count;
}

/* Takes what has come for a version of the plan. */
static inline void
worker_take(struct fake_worker *worker, uint64_t version, int *counts)
{
    struct sl_worker_table table;
    memset(counts, -1, GROUPS * sizeof(*counts));
    while (sl_worker_moves_take(worker->moves, version, &table)) {
        assert_string_equal(table.component, "count");
        assert_string_equal(table.state, "counts");
        for (uint32_t i = 0; i < GROUPS; i++) {
            int count = count_in_table(table.entries, i);
            assert_true(count < 0 || counts[i] < 0);
            counts[i] = count >= 0 ? count : counts[i];
        }
        sl_keyed_destroy(table.entries);
        sl_free(table.entries);
        sl_free(table.component);
        sl_free(table.state);
    }
}

static inline void
worker_plan(void *ctx, struct sl_rpc_request *request)
{
    struct fake_worker *worker = ctx;
    int staged[GROUPS];
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    struct sl_buf out = {0};
    if (worker->fixture->refuse_plan && worker->plans == 0) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EUSER, "topo.lua:3: no such file");
        return;
    }
    assert_int_equal(sl_physical_plan_decode(body, size, &worker->arena, &worker->plan), 0);
    sl_worker_moves_plan(worker->moves, worker->plan.plan_version);
    worker->is_asked = false;
    worker_take(worker, worker->plan.plan_version, staged);
    for (uint32_t i = 0; i < GROUPS; i++) {
        bool was_here = worker->counts[i] >= 0;
        if (!worker_owns(worker, i)) {
            worker->counts[i] = -1;
        } else if (staged[i] >= 0) {
            worker->counts[i] = staged[i];
        } else if (!was_here) {
            worker->counts[i] = 0;
        }
    }
    worker->plans++;
    worker->is_active = worker->plan.state == SL_TOPOLOGY_RUNNING;
    worker->is_held = worker->plan.is_held;
    /* Nobody begins before all have the plan. */
    assert_false(worker->is_active && worker->is_held);
    worker->identity.plan_version = worker->plan.plan_version;
    sl_worker_ready_encode(&(struct sl_worker_ready){worker->plan.plan_version, worker->plan.epoch},
                           &out);
    sl_rpc_reply(request, out.data, out.size);
    sl_buf_destroy(&out);
}

static inline void
worker_spouts(void *ctx, struct sl_rpc_request *request)
{
    struct fake_worker *worker = ctx;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    enum sl_worker_spouts spouts;
    assert_int_equal(sl_worker_spouts_decode(body, size, &spouts), 0);
    worker->is_active = spouts == SL_SPOUTS_ACTIVE;
    worker->is_held = spouts >= SL_SPOUTS_HELD;
    sl_rpc_reply(request, NULL, 0);
}

static inline void
worker_drain(void *ctx, struct sl_rpc_request *request)
{
    struct fake_worker *worker = ctx;
    struct sl_buf out = {0};
    struct sl_worker_drained answer = {.sent = 5, .received = 5};
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    struct sl_worker_drain wanted;
    assert_int_equal(sl_worker_drain_decode(body, size, &wanted), 0);
    worker->drains++;
    assert_false(worker->is_active);
    /* What ticks goes on until no root is left, as it may be what acks. */
    assert_true(wanted.is_last || wanted.only_roots != worker->is_held);
    if (worker->busy_rounds > 0 && !wanted.may_stay) {
        worker->busy_rounds--;
        answer.roots = 3;
    }
    sl_worker_drained_encode(&answer, &out);
    sl_rpc_reply(request, out.data, out.size);
    sl_buf_destroy(&out);
}

static inline void
worker_measure(void *ctx, struct sl_rpc_request *request)
{
    struct fake_worker *worker = ctx;
    struct sl_worker_state_of what;
    struct sl_buf out = {0};
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    assert_int_equal(sl_worker_measure_decode(body, size, &worker->arena, &what), 0);
    assert_string_equal(what.component, "count");
    sl_worker_measured_encode(10 * what.group_count, &out);
    sl_rpc_reply(request, out.data, out.size);
    sl_buf_destroy(&out);
}

static inline void
worker_move(void *ctx, struct sl_rpc_request *request)
{
    struct fake_worker *worker = ctx;
    struct sl_worker_move move;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    assert_int_equal(sl_worker_move_decode(body, size, &worker->arena, &move), 0);
    sl_worker_moves_order(worker->moves, &move, request);
}

static inline void
worker_moved(void *ctx, struct sl_rpc_request *request)
{
    struct fake_worker *worker = ctx;
    uint64_t id;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    assert_int_equal(sl_worker_move_id_decode(body, size, &id), 0);
    if (worker->fixture->understates) {
        struct sl_buf out = {0};
        sl_worker_moved_encode(&(struct sl_worker_moved){1, 1, 1, 1}, &out);
        sl_rpc_reply(request, out.data, out.size);
        sl_buf_destroy(&out);
        return;
    }
    sl_worker_moves_settle(worker->moves, id, request);
}

/* The entries of a group of a worker, each in a section of its own. */
static inline void
entry_of_group(const struct fake_worker *worker, uint32_t group, int n, struct sl_buf *out,
               struct sl_keyed_summary *summary)
{
    struct sl_keyed table;
    struct sl_value value = sl_value_number(worker->counts[group]);
    assert_int_equal(sl_keyed_create(&table, GROUPS, 0), 0);
    for (int i = 0; i < ENTRIES; i++) {
        struct sl_keyed_key key = key_of_group(group, i);
        if (n < 0 || i == n) {
            assert_int_equal(sl_keyed_put(&table, &key, &value), 0);
        }
    }
    assert_int_equal(sl_keyed_export_group(&table, group, out, summary), 0);
    sl_keyed_destroy(&table);
}

/* One entry in an answer; the cursor is the place of the next. */
static inline void
worker_export(void *ctx)
{
    struct fake_worker *worker = ctx;
    struct sl_buf entries = {0};
    struct sl_keyed_summary whole;
    struct sl_worker_piece pieces[2] = {{.state = "counts"}, {.state = "counts"}};
    char cursor[24] = "";
    if (!worker->is_asked) {
        return;
    }
    worker->is_asked = false;
    if (worker->fixture->refuse_export) {
        sl_worker_moves_exported(
            worker->moves, &(struct sl_worker_export){.code = SL_ENOMEM, .reason = "no room"});
        return;
    }
    if (worker->fixture->begins_empty && worker->is_first_ask) {
        sl_worker_moves_exported(worker->moves, &(struct sl_worker_export){.cursor = "0"});
        return;
    }
    uint32_t group = worker->groups[worker->cursor / ENTRIES];
    assert_true(worker->counts[group] >= 0);
    entry_of_group(worker, group, -1, &entries, &whole);
    sl_buf_clear(&entries);
    entry_of_group(worker, group, worker->cursor % ENTRIES, &entries,
                   &(struct sl_keyed_summary){0});
    if (worker->cursor % ENTRIES == 0) {
        pieces[0].whole = (struct sl_worker_moved){1, whole.entries, whole.bytes, whole.checksum};
    }
    size_t part = worker->fixture->has_parts ? entries.size / 2 : entries.size;
    pieces[0].entries = entries.data;
    pieces[0].size = part;
    pieces[0].count = !worker->fixture->has_parts;
    pieces[1].entries = entries.data + part;
    pieces[1].size = entries.size - part;
    pieces[1].count = 1;
    for (int i = 0; i < 2; i++) {
        pieces[i].group = group;
        pieces[i].hash = sl_hash_bytes(pieces[i].entries, pieces[i].size);
    }
    if ((size_t)worker->cursor + 1 < worker->group_count * ENTRIES) {
        snprintf(cursor, sizeof(cursor), "%d", worker->cursor + 1);
    }
    sl_worker_moves_exported(worker->moves,
                             &(struct sl_worker_export){.cursor = cursor,
                                                        .key_groups = GROUPS,
                                                        .pieces = pieces,
                                                        .count = worker->fixture->has_parts + 1});
    sl_buf_destroy(&entries);
}

static inline void
worker_ask(void *ctx, const struct sl_worker_state_of *what, const char *cursor)
{
    struct fake_worker *worker = ctx;
    assert_string_equal(what->component, "count");
    memcpy(worker->groups, what->groups, what->group_count * sizeof(*what->groups));
    worker->group_count = what->group_count;
    worker->cursor = atoi(cursor);
    worker->is_first_ask = cursor[0] == '\0';
    worker->is_asked = true;
    sl_loop_post(worker->loop, worker_export, worker);
}

static inline struct fake_worker *worker_of(struct fixture *f, int32_t container);

static inline void
letter_free(struct fake_letter *letter)
{
    sl_list_remove(&letter->node);
    sl_free(letter);
}

/* Workers speak with those only that their plan names. */
static inline bool
is_peer(const struct fake_worker *worker, int32_t container)
{
    const struct sl_physical_container *found =
        worker->plans > 0 ? sl_physical_plan_container(&worker->plan, container) : NULL;
    return found != NULL && found->is_registered;
}

static inline void
letter_arrive(void *ctx)
{
    struct fake_letter *letter = ctx;
    struct fake_worker *worker = worker_of(letter->fixture, letter->to);
    if (!letter->is_lost && worker != NULL && worker->pid == letter->to_pid &&
        is_peer(worker, letter->from)) {
        sl_worker_moves_heard(worker->moves, letter->from, letter->bytes, letter->size);
    }
    letter_free(letter);
}

static inline void
letter_post(struct fixture *f, int32_t from, int32_t to, const void *bytes, size_t size)
{
    const struct fake_worker *worker = worker_of(f, to);
    if (worker == NULL || !is_peer(worker_of(f, from), to)) {
        return;
    }
    struct fake_letter *letter = sl_calloc(1, sizeof(*letter) + size);
    letter->fixture = f;
    letter->from = from;
    letter->to = to;
    letter->to_pid = worker->pid;
    letter->size = size;
    memcpy(letter->bytes, bytes, size);
    sl_list_push_back(&f->letters, &letter->node);
    sl_loop_post(worker->loop, letter_arrive, letter);
    f->letter_count++;
    if (f->on_letter != NULL) {
        f->on_letter(f, letter);
    }
}

static inline int
worker_send(void *ctx, int32_t peer, const void *bytes, size_t size)
{
    const struct fake_worker *worker = ctx;
    letter_post(worker->fixture, worker->container, peer, bytes, size);
    return 0;
}

/* The session between two workers is lost, with all that is under way, and a new one begins. */
static inline void
break_session(struct fixture *f, int32_t one, int32_t other)
{
    const struct fake_worker *a = worker_of(f, one);
    const struct fake_worker *b = worker_of(f, other);
    sl_list_each(&f->letters, it)
    {
        struct fake_letter *letter = sl_container_of(it, struct fake_letter, node);
        letter->is_lost = letter->is_lost || (letter->from == one && letter->to == other) ||
                          (letter->from == other && letter->to == one);
    }
    if (a != NULL && b != NULL) {
        sl_worker_moves_changed(a->moves, other, SL_REMOTE_BROKE);
        sl_worker_moves_changed(a->moves, other, SL_REMOTE_BEGAN);
        sl_worker_moves_changed(b->moves, one, SL_REMOTE_BROKE);
        sl_worker_moves_changed(b->moves, one, SL_REMOTE_BEGAN);
    }
}

static inline void
worker_heartbeat(void *ctx, struct sl_rpc_request *request)
{
    struct fake_worker *worker = ctx;
    struct sl_buf payload = {0};
    struct sl_buf out = {0};
    struct sl_worker_counters counters = {"count", 10, 20, 0, 0, 0, 1};
    sl_worker_report_encode(&(struct sl_worker_report){1, worker->is_active, &counters, 1},
                            &payload);
    sl_heartbeat_encode(&(struct sl_heartbeat){worker->name, payload.data, payload.size}, &out);
    sl_rpc_reply(request, out.data, out.size);
    sl_buf_destroy(&payload);
    sl_buf_destroy(&out);
}

static inline void
worker_shutdown(void *ctx, struct sl_rpc_request *request)
{
    (void)ctx;
    sl_rpc_reply(request, NULL, 0);
}

static const struct sl_rpc_method worker_methods[] = {
    {SL_WORKER_PLAN, worker_plan},         {SL_WORKER_SPOUTS, worker_spouts},
    {SL_WORKER_DRAIN, worker_drain},       {SL_WORKER_MEASURE, worker_measure},
    {SL_WORKER_MOVE, worker_move},         {SL_WORKER_MOVED, worker_moved},
    {SL_WORKER_SHUTDOWN, worker_shutdown}, {SL_WORKER_HEARTBEAT, worker_heartbeat},
};

static inline void
worker_registered(void *ctx, struct sl_leader_link *link, const struct sl_registered *answer)
{
    (void)ctx;
    (void)link;
    (void)answer;
}

static inline void
worker_failed(void *ctx, struct sl_leader_link *link, enum sl_registration_end kind, int code,
              const char *reason)
{
    struct fake_worker *worker = ctx;
    (void)link;
    (void)code;
    (void)reason;
    worker->rejections += kind == SL_REGISTRATION_REJECTED;
}

static inline void
worker_tell_leader(struct fake_worker *worker)
{
    const struct fixture *f = worker->fixture;
    sl_leader_link_notify_new_leader(
        &worker->link.link, f->leader_token != 0 ? f->leader_address : NULL, f->leader_token);
}

static inline struct fake_worker *
worker_start(struct fixture *f, int32_t container)
{
    struct fake_worker *worker = f->workers;
    if (f->started < WORKERS_MAX) {
        worker = &f->workers[f->started++];
    } else {
        while (worker->is_alive) {
            worker++;
            assert_true(worker < f->workers + WORKERS_MAX);
        }
        memset(worker, 0, sizeof(*worker));
    }
    f->births++;
    struct sl_registration_config config = {100, 1000, 200, 200};
    struct sl_connection_listener listener = {
        .on_registered = worker_registered, .on_failure = worker_failed, .ctx = worker};
    worker->fixture = f;
    worker->container = container;
    worker->pid = 1000 + (uint64_t)f->births;
    worker->is_alive = true;
    snprintf(worker->host, sizeof(worker->host), "127.0.%d.%d", 1 + f->births / 250,
             f->births % 250);
    snprintf(worker->address, sizeof(worker->address), "127.0.%d.%d:800", 1 + f->births / 250,
             f->births % 250);
    snprintf(worker->data_address, sizeof(worker->data_address), "127.0.%d.%d:801",
             1 + f->births / 250, f->births % 250);
    snprintf(worker->name, sizeof(worker->name), "container-%d", container);
    memset(worker->counts, -1, sizeof(worker->counts));
    sl_arena_create(&worker->arena, 0, 0);
    worker->loop = sl_sim_loop_new(f->sim, worker->host);
    worker->rpc = sl_rpc_new(worker->loop, &(struct sl_rpc_options){.role = "worker"});
    worker->moves = sl_worker_moves_new(&(struct sl_worker_moves_options){
        worker->loop, container, worker_send, worker_ask, worker});
    assert_int_equal(sl_rpc_listen(worker->rpc, worker->address), 0);
    struct sl_rpc_endpoint_options endpoint = {.name = SL_ENDPOINT_WORKER,
                                               .methods = worker_methods,
                                               .method_count = array_size(worker_methods),
                                               .ctx = worker};
    assert_int_equal(sl_rpc_endpoint_start(worker->rpc, &worker->endpoint, &endpoint), 0);
    worker->identity =
        (struct sl_register_peer){.topology = "words",
                                  .address = worker->address,
                                  .resource = worker->name,
                                  .process = worker->pid,
                                  .data_address = worker->data_address,
                                  .container = container,
                                  .identity = {(uint8_t)f->births, (uint8_t)(f->births >> 8)},
                                  .pid = worker->pid};
    assert_int_equal(sl_connection_worker_to_master(&worker->link, worker->rpc, &config,
                                                    &worker->identity, &listener),
                     0);
    if (!f->is_silent_start) {
        worker_tell_leader(worker);
    }
    return worker;
}

/* The process is gone, as kill -9 does it; nobody is told. */
static inline void
worker_die(struct fake_worker *worker)
{
    if (worker->is_alive) {
        worker->is_alive = false;
        sl_sim_loop_crash(worker->loop, false);
        sl_connection_destroy(&worker->link);
        sl_rpc_endpoint_stop(&worker->endpoint);
        sl_worker_moves_free(worker->moves);
        sl_rpc_free(worker->rpc);
        sl_loop_free(worker->loop);
        sl_arena_destroy(&worker->arena);
    }
}

static inline struct fake_worker *
worker_of(struct fixture *f, int32_t container)
{
    for (int i = f->started - 1; i >= 0; i--) {
        if (f->workers[i].container == container && f->workers[i].is_alive) {
            return &f->workers[i];
        }
    }
    return NULL;
}

/* The launcher. */

static inline int
launcher_initialize(void *self, const struct sl_execution_state *execution, uint64_t token,
                    const struct sl_launcher_listener *listener)
{
    struct fixture *f = self;
    assert_string_equal(execution->topology, "words");
    assert_int_not_equal(token, 0);
    f->launcher = *listener;
    return 0;
}

static inline void
tell_progress(void *ctx)
{
    struct fixture *f = ctx;
    f->launcher.on_progress(f->launcher.ctx);
}

/* A launcher that takes its time says so first. */
static inline bool
launcher_takes_time(struct fixture *f, int *calls)
{
    if (*calls == 0) {
        return false;
    }
    --*calls;
    sl_loop_post(f->master_node.loop, tell_progress, f);
    return true;
}

static inline int
launcher_prepare_update(void *self, const struct sl_stored_plan *current,
                        const struct sl_stored_plan *proposed)
{
    struct fixture *f = self;
    assert_int_equal(current->version + 1, proposed->version);
    f->prepared++;
    if (launcher_takes_time(f, &f->slow_updates)) {
        return SL_EAGAIN;
    }
    return f->refuse_update ? sl_err_set(SL_EUSER, "not today") : 0;
}

static inline int
launcher_add(void *self, const struct sl_stored_plan *plan, int32_t *ids, size_t count)
{
    struct fixture *f = self;
    assert_string_equal(plan->topology, "words");
    if (launcher_takes_time(f, &f->slow_adds)) {
        return SL_EAGAIN;
    }
    for (size_t i = 0; i < count; i++) {
        if (worker_of(f, ids[i]) == NULL) {
            ids[i] += f->remap;
            f->is_wanted[ids[i]] = true;
            worker_start(f, ids[i]);
        }
    }
    return 0;
}

static inline void
launcher_remove(void *self, const int32_t *ids, size_t count)
{
    struct fixture *f = self;
    for (size_t i = 0; i < count; i++) {
        struct fake_worker *worker = worker_of(f, ids[i]);
        f->is_wanted[ids[i]] = false;
        if (worker != NULL) {
            worker_die(worker);
        }
        f->removed++;
    }
}

struct ended {
    struct fixture *fixture;
    int32_t id;
};

static inline void
tell_ended(void *ctx)
{
    struct ended *ended = ctx;
    struct fixture *f = ended->fixture;
    if (f->is_wanted[ended->id]) {
        worker_start(f, ended->id);
        f->launcher.on_ended(f->launcher.ctx, ended->id, "exit code 1");
    }
    sl_free(ended);
}

/* Ends a worker and starts the next one, as the local launcher would. */
static inline int
launcher_restart(void *self, int32_t id)
{
    struct fixture *f = self;
    struct fake_worker *worker = worker_of(f, id);
    if (worker == NULL) {
        return sl_err_set(SL_ENOTFOUND, "no container %d", id);
    }
    worker_die(worker);
    struct ended *ended = sl_alloc(sizeof(*ended));
    *ended = (struct ended){f, id};
    sl_loop_post(f->master_node.loop, tell_ended, ended);
    return 0;
}

static inline void
tell_stopped(void *ctx)
{
    struct fixture *f = ctx;
    f->launcher.on_all_stopped(f->launcher.ctx);
}

static inline void
launcher_stop_all(void *self)
{
    struct fixture *f = self;
    memset(f->is_wanted, 0, sizeof(f->is_wanted));
    for (int i = 0; i < f->started; i++) {
        worker_die(&f->workers[i]);
    }
    sl_loop_post(f->master_node.loop, tell_stopped, f);
}

static inline bool
launcher_is_worker(void *self, const struct sl_plan_slot *slot,
                   const struct sl_register_peer *message)
{
    const struct fake_worker *worker = worker_of(self, message->container);
    assert_string_equal(slot->supervisor, "");
    return worker == NULL || worker->pid == message->pid;
}

static inline uint64_t
launcher_pid(void *self, int32_t id)
{
    const struct fake_worker *worker = worker_of(self, id);
    return worker != NULL ? worker->pid : 0;
}

static inline uint32_t
launcher_restarts(void *self, int32_t id)
{
    (void)self;
    (void)id;
    return 0;
}

/* The plans: a spout with one task and a keyed bolt "count". */

static struct sl_plan_component components[] = {{"lines", NULL, 0}, {"count", NULL, GROUPS}};

static inline void
make_shifted_plan(uint64_t version, int32_t bolts, const struct plan_shift *shift,
                  struct sl_buf *out)
{
    struct sl_packing_container containers[8] = {{1, 0, 1 + shift->spouts, 1, 1, 1}};
    struct sl_packing_instance instances[8] = {{0, 1, 0, 1, 1, 1}};
    struct sl_plan_slot slots[8];
    int32_t groups[GROUPS];
    for (int32_t i = 0; i < shift->spouts; i++) {
        instances[i + 1] = (struct sl_packing_instance){0, 50 + i, 1 + i, 1, 1, 1};
    }
    for (int32_t i = 0; i < bolts; i++) {
        int32_t at = i + 1 + shift->spouts;
        containers[i + 1] = (struct sl_packing_container){i + 2 + shift->container, at, 1, 1, 1, 1};
        instances[at] = (struct sl_packing_instance){1, i + 2, i + shift->index, 1, 1, 1};
    }
    for (int32_t i = 0; i < 8; i++) {
        slots[i] = (struct sl_plan_slot){"", "", 0};
    }
    for (int32_t i = 0; i < GROUPS; i++) {
        groups[i] = 2 + i % bolts;
    }
    components[1].key_groups = groups;
    struct sl_stored_plan plan = {
        .topology = "words",
        .version = version,
        .packing = "round_robin",
        .components = components,
        .component_count = 2,
        .plan = {.containers = containers,
                 .instances = instances,
                 .container_count = bolts + 1,
                 .instance_count = bolts + 1 + shift->spouts},
        .slots = slots,
    };
    sl_buf_clear(out);
    assert_int_equal(sl_stored_plan_encode(&plan, out), 0);
}

static inline void
make_plan(uint64_t version, int32_t bolts, struct sl_buf *out)
{
    make_shifted_plan(version, bolts, &(struct plan_shift){0}, out);
}

static inline void
on_end(void *ctx, int code, const char *reason)
{
    struct fixture *f = ctx;
    (void)reason;
    f->end_code = code;
    f->has_ended = true;
}

static inline void
master_start(struct fixture *f)
{
    struct sl_topology_master_options options = {
        .store = f->master_node.store,
        .rpc = f->master_node.rpc,
        .topology = "words",
        .launcher = {.initialize = launcher_initialize,
                     .add_containers = launcher_add,
                     .remove_containers = launcher_remove,
                     .restart_container = launcher_restart,
                     .stop_all = launcher_stop_all,
                     .prepare_update = launcher_prepare_update,
                     .is_worker = launcher_is_worker,
                     .pid = launcher_pid,
                     .restarts = launcher_restarts,
                     .can_not_scale = f->can_not_scale,
                     .self = f},
        .pid = 77,
        .guardian_pid = 76,
        .heartbeat_interval_ms = 1000,
        .heartbeat_timeout_ms = 5000,
        .on_end = on_end,
        .ctx = f,
    };
    assert_int_equal(sl_topology_master_new(&options, &f->master), 0);
}

static inline void
leader_changed(void *ctx, const struct sl_state_leader_info *info)
{
    struct fixture *f = ctx;
    f->leader_token = info != NULL ? info->token : 0;
    snprintf(f->leader_address, sizeof(f->leader_address), "%s", info != NULL ? info->address : "");
    for (int i = 0; i < f->started; i++) {
        if (f->workers[i].is_alive) {
            worker_tell_leader(&f->workers[i]);
        }
    }
    if (info != NULL) {
        sl_rpc_gateway_free(f->gateway);
        assert_int_equal(sl_rpc_connect(f->client.rpc, info->address,
                                        SL_ENDPOINT_TOPOLOGY_MASTER "words", info->token,
                                        &f->gateway),
                         0);
    }
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
    }
}

static inline void
put(struct fixture *f, enum sl_layout_part part, const struct sl_buf *value)
{
    char path[SL_STATE_PATH_MAX + 1];
    int before = f->done;
    sl_state_create(f->client.store, sl_layout_path(path, part, "words"), value->data, value->size,
                    SL_STATE_PARENTS, done, f);
    UNTIL(f, f->done > before);
    assert_int_equal(f->done_status, 0);
}

static inline int
get(struct fixture *f, enum sl_layout_part part)
{
    char path[SL_STATE_PATH_MAX + 1];
    int before = f->done;
    sl_state_get(f->client.store, sl_layout_path(path, part, "words"), done, f);
    UNTIL(f, f->done > before);
    return f->done_status;
}

static inline int
setup(void **state)
{
    struct fixture *f = sl_calloc(1, sizeof(*f));
    struct sl_buf value = {0};
    char path[SL_STATE_PATH_MAX + 1];
    f->sim = sl_sim_new(&(struct sl_sim_options){.seed = 5});
    f->server_loop = sl_sim_loop_new(f->sim, "127.0.0.9");
    sl_state_loop_executor_create(&f->server_executor, f->server_loop);
    f->server = sl_memory_server_new(&f->server_executor.executor, 3);
    sl_arena_create(&f->arena, 0, 0);
    sl_list_create(&f->letters);
    node_open(f, &f->client, "127.0.0.1");
    node_open(f, &f->master_node, "127.0.0.2");
    make_plan(1, 2, &value);
    put(f, SL_LAYOUT_PLAN, &value);
    sl_buf_clear(&value);
    sl_execution_state_encode(&(struct sl_execution_state){.topology = "words",
                                                           .topology_id = "words-1",
                                                           .state = SL_TOPOLOGY_STARTING,
                                                           .is_active = true},
                              &value);
    put(f, SL_LAYOUT_EXECUTION_STATE, &value);
    sl_buf_destroy(&value);
    f->leader = sl_state_leader_listener_new(
        f->client.store, sl_layout_path(path, SL_LAYOUT_TOPOLOGY_LEADER, "words"), leader_changed,
        f);
    *state = f;
    return 0;
}

static inline int
teardown(void **state)
{
    struct fixture *f = *state;
    sl_topology_master_free(f->master);
    memset(f->is_wanted, 0, sizeof(f->is_wanted));
    for (int i = 0; i < f->started; i++) {
        worker_die(&f->workers[i]);
    }
    sl_state_leader_listener_free(f->leader);
    sl_rpc_gateway_free(f->gateway);
    node_close(f, &f->client);
    node_close(f, &f->master_node);
    sl_memory_server_free(f->server);
    sl_state_loop_executor_destroy(&f->server_executor);
    sl_loop_free(f->server_loop);
    sl_sim_free(f->sim);
    while (!sl_list_is_empty(&f->letters)) {
        letter_free(sl_container_of(f->letters.head.next, struct fake_letter, node));
    }
    sl_buf_destroy(&f->answer);
    sl_buf_destroy(&f->value);
    sl_arena_destroy(&f->arena);
    sl_free(f);
    return 0;
}

static inline void
answered(void *ctx, const struct sl_rpc_result *result)
{
    struct fixture *f = ctx;
    f->answers++;
    f->result = *result;
    snprintf(f->reason, sizeof(f->reason), "%s", result->reason);
    sl_buf_clear(&f->answer);
    if (result->size > 0) {
        sl_buf_append(&f->answer, result->body, result->size);
    }
}

static inline void
send(struct fixture *f, uint32_t method, const struct sl_control_request *request)
{
    struct sl_buf body = {0};
    sl_control_request_encode(request, &body);
    sl_rpc_call(f->gateway, method, body.data, body.size, 150000, answered, f);
    sl_buf_destroy(&body);
}

static inline struct sl_control_status
ask(struct fixture *f, uint32_t method, struct sl_control_request request)
{
    struct sl_control_status status = {0};
    int before = f->answers;
    send(f, method, &request);
    UNTIL(f, f->answers > before);
    if (f->result.status == SL_RPC_SUCCESS) {
        assert_int_equal(
            sl_control_status_decode(f->answer.data, f->answer.size, &f->arena, &status), 0);
    }
    return status;
}

static inline void
run(struct fixture *f)
{
    master_start(f);
    UNTIL(f, sl_topology_master_is_settled(f->master));
    UNTIL(f, f->gateway != NULL);
}

/* Gives every group of the bolt a count of its own. */
static inline void
fill_counts(struct fixture *f)
{
    for (int i = 0; i < f->started; i++) {
        for (int group = 0; group < GROUPS; group++) {
            if (f->workers[i].counts[group] >= 0) {
                f->workers[i].counts[group] = 10 + group;
            }
        }
    }
}

/* Every group is where the plan of its worker says, once, with its count. */
static inline void
assert_counts(struct fixture *f)
{
    for (int group = 0; group < GROUPS; group++) {
        int found = 0;
        for (int i = 0; i < f->started; i++) {
            if (f->workers[i].is_alive && f->workers[i].counts[group] >= 0) {
                assert_int_equal(f->workers[i].counts[group], 10 + group);
                found++;
            }
        }
        assert_int_equal(found, 1);
    }
}

/* Nothing waits for the plan of the first update. */
static inline void
assert_nothing_aside(struct fake_worker *worker)
{
    struct sl_worker_table table;
    assert_false(sl_worker_moves_take(worker->moves, 2, &table));
}

/* Asks for the change from the plan of a version to the next one. */
static inline void
send_change(struct fixture *f, uint64_t version, int32_t from, int32_t to, uint64_t drain_ms)
{
    struct sl_buf current = {0};
    struct sl_buf proposed = {0};
    struct sl_buf body = {0};
    make_shifted_plan(version, from, &f->current_shift, &current);
    make_shifted_plan(version + 1, to, &f->shift, &proposed);
    struct sl_update_request request = {.current = current.data,
                                        .current_size = current.size,
                                        .proposed = proposed.data,
                                        .proposed_size = proposed.size,
                                        .lock_timeout_ms = 5000,
                                        .drain_timeout_ms = drain_ms,
                                        .start_timeout_ms = 20000,
                                        .is_dry_run = f->is_dry_run};
    sl_update_request_encode(&request, &body);
    sl_rpc_call(f->gateway, SL_TM_UPDATE, body.data, body.size, 150000, answered, f);
    sl_buf_destroy(&current);
    sl_buf_destroy(&proposed);
    sl_buf_destroy(&body);
}

static inline void
send_update(struct fixture *f, int32_t from, int32_t to, uint64_t drain_ms)
{
    send_change(f, 1, from, to, drain_ms);
}

static inline struct sl_update_result
update(struct fixture *f, int32_t from, int32_t to)
{
    struct sl_update_result result = {0};
    int before = f->answers;
    send_update(f, from, to, 3000);
    UNTIL(f, f->answers > before);
    if (f->result.status == SL_RPC_SUCCESS) {
        assert_int_equal(
            sl_update_result_decode(f->answer.data, f->answer.size, &f->arena, &result), 0);
    }
    return result;
}

static inline uint64_t
stored_version(struct fixture *f)
{
    struct sl_stored_plan plan;
    assert_int_equal(get(f, SL_LAYOUT_PLAN), 0);
    assert_int_equal(sl_stored_plan_decode(f->value.data, f->value.size, &f->arena, &plan), 0);
    return plan.version;
}

static inline bool
all_active(struct fixture *f, bool is_active)
{
    for (int i = 0; i < f->started; i++) {
        /* Those that no plan has are told so, and end. */
        if (f->workers[i].is_alive && f->workers[i].rejections == 0 &&
            (f->workers[i].is_active != is_active || f->workers[i].is_held)) {
            return false;
        }
    }
    return true;
}

static inline void
step(struct fixture *f, int steps)
{
    for (int i = 0; i < steps && f->answers == 0; i++) {
        assert_true(sl_sim_step(f->sim));
    }
}
