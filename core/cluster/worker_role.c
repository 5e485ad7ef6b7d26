#include "cluster/worker_role.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/vec.h"
#include "cluster/data_link.h"
#include "cluster/local_roles.h"
#include "cluster/physical_plan.h"
#include "cluster/settings.h"
#include "cluster/worker_messages.h"
#include "cluster/worker_registration.h"
#include "loop/loop.h"
#include "rpc/leader_retrieval.h"
#include "state/layout.h"
#include "state/loop_executor.h"
#include "state/open.h"
#include "stream/remote.h"
#include "wire/frame.h"

enum {
    /* How often a drain looks whether it is over. */
    DRAIN_LOOK_MS = 2,
    /* How long a plan that runs waits for connections: peers may hear of this worker later. */
    PEERS_WAIT_MS = 500,
    /* How long an end waits until the peers have what was written for them. */
    LAST_WORDS_MS = 1000,
    /* How long a local topology may be without a topology master before a guardian is looked for:
     * longer than one takes to start the next. */
    RESCUE_MS = 3000,
};

/* A drain that waits for the end of what is under way. */
struct drain {
    struct sl_rpc_request *request;
    struct sl_timer timer;
    uint64_t until_ms;
    /* Of the question to the owner; 0 = it is answered. */
    uint32_t number;
};

struct sl_worker_role {
    struct sl_worker *worker;
    struct sl_worker_role_options options;
    struct sl_settings settings;
    char topology[SL_NAME_MAX + 1];
    char host[SL_ADDRESS_HOST_SIZE];
    char supervisor[SL_NAME_MAX + 1];
    char resource[SL_NAME_MAX + 1];
    char data_address[SL_ADDRESS_TEXT_SIZE];
    uint8_t *secret;
    struct sl_loop *loop;
    pthread_t thread;
    bool has_thread;
    struct sl_data_bell bell;
    struct sl_data_link *links;
    uint16_t data_port;
    struct sl_rpc *rpc;
    struct sl_register_peer identity;
    struct sl_worker_registration *registration;
    struct sl_state_loop_executor executor;
    struct sl_state_store *store;
    struct sl_leader_retrieval *leader;
    struct sl_timer master_timer;
    struct sl_timer rescue_timer;
    char *state_url;
    char *logs;
    char *program;
    /* Requests that the owner works on: number -> struct sl_rpc_request. */
    struct sl_map_u64 requests;
    uint32_t last_request;
    /* The newest plan that was asked for, and the request that waits until it runs. */
    struct sl_arena plan_arena;
    struct sl_physical_plan plan;
    struct sl_rpc_request *plan_request;
    uint32_t plan_number;
    bool is_plan_run;
    struct sl_timer peers_timer;
    struct sl_timer end_timer;
    uint64_t end_until_ms;
    bool is_active;
    struct drain *drain;
    struct sl_buf scratch;
    struct sl_arena arena;
    bool is_ending;
    /* What the owner has counted; the names are owned. */
    SL_VEC(struct sl_worker_counters) counted;
    /* Of the owner's thread: pieces of the export that it answers next. */
    SL_VEC(struct sl_worker_state_piece) pieces;
};

/* ---- the owner ------------------------------------------------------------------------------ */

static void
ask(struct sl_worker_role *self, enum sl_worker_ask what, uint32_t number, const char *text,
    size_t len)
{
    sl_worker_post(self->worker, SL_EVENT_ROLE, (int32_t)what, (int32_t)number, text, len);
}

/* Has the owner end the process. */
static void
ask_end(struct sl_worker_role *self, int code, const char *reason)
{
    char text[SL_REASON_SIZE + 16];
    if (self->is_ending) {
        return;
    }
    self->is_ending = true;
    int len = snprintf(text, sizeof(text), "%d %s", code, reason);
    len = len < (int)sizeof(text) ? len : (int)sizeof(text) - 1;
    ask(self, SL_ASK_END, 0, text, (size_t)len);
}

static uint32_t
request_keep(struct sl_worker_role *self, struct sl_rpc_request *request)
{
    uint32_t number = ++self->last_request & INT32_MAX;
    self->last_request = number;
    sl_map_u64_put_ptr(&self->requests, number, request);
    return number;
}

/* Something that the owner says, on its way to the loop. */
struct word {
    struct sl_worker_role *role;
    int32_t request;
    int code;
    /* Of a peer. */
    int32_t container;
    uint8_t identity[SL_REMOTE_IDENTITY_SIZE];
    uint16_t port;
    /* Of a report. */
    char *component;
    int32_t task;
    bool is_fatal;
    char *text;
    size_t len;
    /* Of an export. */
    struct sl_worker_state_piece *pieces;
    size_t piece_count;
};

static void
pieces_free(struct sl_worker_state_piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sl_free((void *)(uintptr_t)pieces[i].component);
        sl_free((void *)(uintptr_t)pieces[i].state);
        sl_free((void *)(uintptr_t)pieces[i].entries);
    }
    sl_free(pieces);
}

static void
word_free(struct word *word)
{
    pieces_free(word->pieces, word->piece_count);
    sl_free(word->component);
    sl_free(word->text);
    sl_free(word);
}

static struct word *
word_new(struct sl_worker_role *self, const char *text, size_t len)
{
    struct word *word = sl_calloc(1, sizeof(*word));
    word->role = self;
    word->text = sl_strndup(text, len);
    word->len = len;
    return word;
}

/* ---- plans ---------------------------------------------------------------------------------- */

static void
plan_answer(struct sl_worker_role *self)
{
    struct sl_worker_ready ready = {self->plan.plan_version, self->plan.epoch};
    sl_buf_clear(&self->scratch);
    sl_worker_ready_encode(&ready, &self->scratch);
    sl_rpc_reply(self->plan_request, self->scratch.data, self->scratch.size);
    self->plan_request = NULL;
    sl_timer_stop(&self->peers_timer);
}

static void
plan_answer_if_run(struct sl_worker_role *self)
{
    int32_t connected;
    if (self->plan_request != NULL && self->is_plan_run &&
        sl_data_link_peers(self->links, &connected) == connected) {
        plan_answer(self);
    }
}

/* What is for the peers that are missing waits in queues. */
static void
peers_waited(void *ctx, uint64_t ticket)
{
    struct sl_worker_role *self = ctx;
    (void)ticket;
    if (self->plan_request != NULL && self->is_plan_run) {
        plan_answer(self);
    }
}

static void
peers_changed(void *ctx)
{
    struct sl_worker_role *self = ctx;
    char text[32];
    int32_t connected;
    int32_t all = sl_data_link_peers(self->links, &connected);
    int len = snprintf(text, sizeof(text), "%d %d", connected, all);
    ask(self, SL_ASK_PEERS, 0, text, (size_t)len);
    plan_answer_if_run(self);
}

static void
peer_tell(struct sl_worker_role *self, const struct sl_physical_container *container)
{
    if (sl_data_link_peer(self->links, container->id, container->identity, container->host,
                          (uint16_t)container->data_port) != 0) {
        sl_log_warn("cluster.worker", "container %d can not be reached: %s", container->id,
                    sl_err_last()->msg);
    }
}

/* Peers that the plan does not name any more are let go when its tasks run here. */
static bool
is_peer_wanted(void *ctx, int32_t container)
{
    struct sl_worker_role *self = ctx;
    const struct sl_physical_container *now = sl_physical_plan_container(&self->plan, container);
    return now != NULL && now->is_registered;
}

static void
plan_text(const struct sl_physical_plan *plan, struct sl_buf *out)
{
    sl_buf_clear(out);
    sl_buf_printf(out, "plan %llu %d\n", (unsigned long long)plan->plan_version,
                  plan->state == SL_TOPOLOGY_RUNNING);
    for (int32_t i = 0; i < plan->container_count; i++) {
        const struct sl_physical_container *container = &plan->containers[i];
        sl_buf_printf(out, "container %d ", container->id);
        for (size_t k = 0; k < sizeof(container->identity) && container->is_registered; k++) {
            sl_buf_printf(out, "%02x", container->identity[k]);
        }
        sl_buf_append_str(out, container->is_registered ? "\n" : "-\n");
    }
    for (int32_t i = 0; i < plan->task_count; i++) {
        const struct sl_physical_task *task = &plan->tasks[i];
        sl_buf_printf(out, "%s %d %s %d %d\n", task->is_coming ? "coming" : "task", task->task,
                      plan->components[task->component].name, task->index, task->container);
    }
    for (int32_t i = 0; i < plan->component_count; i++) {
        const struct sl_plan_component *component = &plan->components[i];
        if (component->key_group_count == 0) {
            continue;
        }
        sl_buf_printf(out, "groups %s", component->name);
        for (uint32_t k = 0; k < component->key_group_count; k++) {
            sl_buf_printf(out, " %d", component->key_groups[k]);
        }
        sl_buf_append_str(out, "\n");
    }
}

static bool
is_older(const struct sl_physical_plan *plan, const struct sl_physical_plan *than)
{
    return plan->token != than->token ? plan->token < than->token : plan->epoch < than->epoch;
}

static void
take_plan(struct sl_worker_role *self, struct sl_rpc_request *request)
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    struct sl_arena arena;
    struct sl_physical_plan plan;
    sl_arena_create(&arena, 0, 4 * (size_t)SL_PHYSICAL_PLAN_BYTES_MAX);
    if (sl_physical_plan_decode(body, size, &arena, &plan) != 0) {
        sl_rpc_refuse_last(request);
        sl_arena_destroy(&arena);
        return;
    }
    if (strcmp(plan.topology, self->topology) != 0 || is_older(&plan, &self->plan)) {
        sl_rpc_refuse(request, SL_RPC_REJECTION, SL_EFENCED, "this worker has a newer plan");
        sl_arena_destroy(&arena);
        return;
    }
    const struct sl_physical_container *own =
        sl_physical_plan_container(&plan, self->options.container);
    if (own == NULL || !own->is_registered ||
        memcmp(own->identity, self->identity.identity, sizeof(own->identity)) != 0) {
        sl_rpc_refuse(request, SL_RPC_REJECTION, SL_EFENCED, "the plan does not name this worker");
        sl_arena_destroy(&arena);
        ask_end(self, 0, "the plan does not name this worker any more");
        return;
    }
    if (self->plan_request != NULL) {
        sl_rpc_refuse(self->plan_request, SL_RPC_FAILURE, SL_ECONFLICT, "a newer plan has come");
        self->plan_request = NULL;
    }
    sl_arena_destroy(&self->plan_arena);
    self->plan_arena = arena;
    self->plan = plan;
    self->is_plan_run = false;
    sl_data_link_set_topology(self->links, plan.topology_id);
    for (int32_t i = 0; i < plan.container_count; i++) {
        if (plan.containers[i].is_registered) {
            peer_tell(self, &plan.containers[i]);
        }
    }
    self->plan_request = request;
    self->plan_number = ++self->last_request & INT32_MAX;
    self->last_request = self->plan_number;
    plan_text(&plan, &self->scratch);
    ask(self, SL_ASK_PLAN, self->plan_number, (const char *)self->scratch.data, self->scratch.size);
}

/* The owner has run the plan, or could not. */
static void
plan_answered(struct sl_worker_role *self, const struct word *word)
{
    if (word->code != 0) {
        if (self->plan_request != NULL) {
            sl_rpc_refuse(self->plan_request, SL_RPC_REJECTION, word->code, "%s", word->text);
            self->plan_request = NULL;
        }
        return;
    }
    self->is_plan_run = true;
    self->is_active = self->plan.state == SL_TOPOLOGY_RUNNING;
    sl_data_link_keep(self->links, is_peer_wanted, self);
    sl_timer_start(self->loop, &self->peers_timer, PEERS_WAIT_MS, peers_waited, self);
    plan_answer_if_run(self);
}

/* The body of an answer, by what was asked. */
static void
reply(struct sl_worker_role *self, struct sl_rpc_request *request, const struct word *word)
{
    sl_buf_clear(&self->scratch);
    if (sl_rpc_request_method(request) == SL_WORKER_EXPORT) {
        struct sl_worker_state state = {
            .pieces = word->pieces, .count = word->piece_count, .cursor = word->text};
        sl_worker_exported_encode(&state, &self->scratch);
    } else if (sl_rpc_request_method(request) == SL_WORKER_STAGE) {
        sl_worker_staged_encode(word->piece_count, &self->scratch);
    }
    sl_rpc_reply(request, self->scratch.data, self->scratch.size);
}

static void drain_look(void *ctx, uint64_t ticket);

static void
answered(void *ctx)
{
    struct word *word = ctx;
    struct sl_worker_role *self = word->role;
    if ((uint32_t)word->request == self->plan_number) {
        plan_answered(self, word);
    } else if (self->drain != NULL && self->drain->number == (uint32_t)word->request) {
        self->drain->number = 0;
        drain_look(self, 0);
    } else {
        struct sl_rpc_request *request =
            sl_map_u64_remove_ptr(&self->requests, (uint64_t)word->request);
        if (request != NULL && word->code != 0) {
            sl_rpc_refuse(request, SL_RPC_REJECTION, word->code, "%s", word->text);
        } else if (request != NULL) {
            reply(self, request, word);
        }
    }
    word_free(word);
}

/* ---- other requests ------------------------------------------------------------------------- */

static void
take_spouts(struct sl_worker_role *self, struct sl_rpc_request *request)
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    bool is_active;
    if (sl_worker_spouts_decode(body, size, &is_active) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    self->is_active = is_active;
    ask(self, SL_ASK_SPOUTS, request_keep(self, request), is_active ? "1" : "0", 1);
}

static void
take_export(struct sl_worker_role *self, struct sl_rpc_request *request)
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    struct sl_worker_export wanted;
    if (sl_worker_export_decode(body, size, &self->arena, &wanted) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    sl_buf_clear(&self->scratch);
    sl_buf_printf(&self->scratch, "%s %d %s\n", wanted.component, wanted.task, wanted.cursor);
    for (size_t i = 0; i < wanted.group_count; i++) {
        sl_buf_printf(&self->scratch, "%u ", wanted.groups[i]);
    }
    ask(self, SL_ASK_EXPORT, request_keep(self, request), (const char *)self->scratch.data,
        self->scratch.size);
}

static void
take_stage(struct sl_worker_role *self, struct sl_rpc_request *request)
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    struct sl_worker_state state;
    if (sl_worker_stage_decode(body, size, &self->arena, &state) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    sl_buf_clear(&self->scratch);
    sl_buf_printf(&self->scratch, "%llu\n", (unsigned long long)state.plan_version);
    for (size_t i = 0; i < state.count; i++) {
        const struct sl_worker_state_piece *piece = &state.pieces[i];
        sl_buf_printf(&self->scratch, "%s %u %d %llu %zu %zu\n", piece->component, piece->group,
                      piece->task, (unsigned long long)piece->count, strlen(piece->state),
                      piece->size);
        sl_buf_append_str(&self->scratch, piece->state);
        sl_buf_append(&self->scratch, piece->entries, piece->size);
    }
    ask(self, SL_ASK_STAGE, request_keep(self, request), (const char *)self->scratch.data,
        self->scratch.size);
}

static struct sl_worker_drained
drained_now(struct sl_worker_role *self)
{
    struct sl_worker_load load;
    struct sl_remote_stats stats;
    if (self->options.drains_owner) {
        /* Nor is what waits for a process that died: the owner does without it. */
        bool is_busy = self->drain != NULL && self->drain->number != 0;
        return (struct sl_worker_drained){.waiting = is_busy};
    }
    sl_worker_load(self->worker, &load);
    sl_remote_stats(sl_worker_remote(self->worker), &stats);
    return (struct sl_worker_drained){.roots = load.roots,
                                      .waiting = load.waiting + stats.queued + stats.unconfirmed +
                                                 stats.held,
                                      .sent = stats.sent,
                                      .received = stats.received};
}

static void
drain_answer(struct sl_worker_role *self, const struct sl_worker_drained *drained)
{
    sl_buf_clear(&self->scratch);
    sl_worker_drained_encode(drained, &self->scratch);
    sl_rpc_reply(self->drain->request, self->scratch.data, self->scratch.size);
    sl_timer_stop(&self->drain->timer);
    sl_free(self->drain);
    self->drain = NULL;
}

static void
drain_look(void *ctx, uint64_t ticket)
{
    struct sl_worker_role *self = ctx;
    struct sl_worker_drained drained = drained_now(self);
    (void)ticket;
    if ((drained.roots == 0 && drained.waiting == 0) ||
        sl_loop_now_ms(self->loop) >= self->drain->until_ms) {
        drain_answer(self, &drained);
        return;
    }
    sl_timer_start(self->loop, &self->drain->timer, DRAIN_LOOK_MS, drain_look, self);
}

static void
take_drain(struct sl_worker_role *self, struct sl_rpc_request *request)
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    uint64_t limit_ms;
    bool is_last;
    if (sl_worker_drain_decode(body, size, &limit_ms, &is_last) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    if (self->drain != NULL) {
        struct sl_worker_drained drained = drained_now(self);
        drain_answer(self, &drained);
    }
    self->drain = sl_calloc(1, sizeof(*self->drain));
    self->drain->request = request;
    self->drain->until_ms = sl_loop_now_ms(self->loop) + limit_ms;
    /* Spouts emit again what fails now before everything ends. */
    if (self->options.drains_owner || is_last) {
        self->drain->number = ++self->last_request & INT32_MAX;
        self->last_request = self->drain->number;
        ask(self, SL_ASK_DRAIN, self->drain->number, is_last ? "1" : "0", 1);
    }
    drain_look(self, 0);
}

static void
handle(void *ctx, struct sl_rpc_request *request)
{
    struct sl_worker_role *self = ctx;
    sl_arena_reset(&self->arena);
    switch (sl_rpc_request_method(request)) {
    case SL_WORKER_PLAN:
        take_plan(self, request);
        break;
    case SL_WORKER_SPOUTS:
        take_spouts(self, request);
        break;
    case SL_WORKER_DRAIN:
        take_drain(self, request);
        break;
    case SL_WORKER_EXPORT:
        take_export(self, request);
        break;
    case SL_WORKER_STAGE:
        take_stage(self, request);
        break;
    case SL_WORKER_SHUTDOWN:
        sl_rpc_reply(request, NULL, 0);
        ask_end(self, 0, "the topology master has ended it");
        break;
    default:
        sl_rpc_refuse(request, SL_RPC_ERROR, SL_EPROTO, "method %u of a worker is not known",
                      sl_rpc_request_method(request));
        break;
    }
}

/* ---- what it tells -------------------------------------------------------------------------- */

static void
count_add(struct sl_worker_counters *sum, const struct sl_task_stats *stats)
{
    sum->executed += (uint64_t)stats->executed;
    sum->emitted += (uint64_t)stats->emitted;
    sum->acked += (uint64_t)stats->acked;
    sum->failed += (uint64_t)stats->failed;
    sum->pending += (uint64_t)stats->pending;
    sum->errors += (uint64_t)stats->errors;
}

static void
make_payload(void *ctx, struct sl_buf *out)
{
    struct sl_worker_role *self = ctx;
    int32_t count = sl_worker_component_count(self->worker);
    size_t all = (size_t)count + self->counted.count;
    struct sl_worker_counters *sums = sl_calloc(all + 1, sizeof(*sums));
    for (int32_t i = 0; i < count; i++) {
        struct sl_task_stats stats;
        sums[i].component = sl_worker_component_name(self->worker, i);
        if (sl_worker_gone_stats(self->worker, i, &stats) == 0) {
            count_add(&sums[i], &stats);
        }
    }
    for (int32_t i = 0; i < self->plan.task_count; i++) {
        struct sl_task_stats stats;
        if (self->plan.tasks[i].container == self->options.container &&
            sl_worker_stats(self->worker, self->plan.tasks[i].task, &stats) == 0) {
            count_add(&sums[stats.component], &stats);
        }
    }
    for (size_t i = 0; i < self->counted.count; i++) {
        sums[(size_t)count + i] = self->counted.items[i];
    }
    struct sl_worker_report report = {.plan_version =
                                          self->is_plan_run ? self->plan.plan_version : 0,
                                      .is_active = self->is_active,
                                      .components = sums,
                                      .count = all};
    sl_worker_report_encode(&report, out);
    sl_free(sums);
}

static void
counted(void *ctx)
{
    struct word *word = ctx;
    struct sl_worker_role *self = word->role;
    struct sl_worker_counters *found = NULL;
    for (size_t i = 0; i < self->counted.count && found == NULL; i++) {
        if (strcmp(self->counted.items[i].component, word->component) == 0) {
            found = &self->counted.items[i];
        }
    }
    if (found == NULL) {
        struct sl_worker_counters fresh = {.component = sl_strdup(word->component)};
        sl_vec_push(&self->counted, fresh);
        found = &self->counted.items[self->counted.count - 1];
    }
    const char *name = found->component;
    memcpy(found, word->text, sizeof(*found));
    found->component = name;
    word_free(word);
}

static void
reported(void *ctx, const struct sl_rpc_result *result)
{
    (void)ctx;
    (void)result;
}

static void
report(void *ctx)
{
    struct word *word = ctx;
    struct sl_worker_role *self = word->role;
    struct sl_rpc_gateway *gateway =
        self->registration != NULL ? sl_worker_registration_gateway(self->registration) : NULL;
    if (gateway != NULL) {
        struct sl_worker_event event = {.container = self->options.container,
                                        .component = word->component,
                                        .task = word->task,
                                        .text = word->text,
                                        .is_fatal = word->is_fatal};
        sl_buf_clear(&self->scratch);
        sl_worker_event_encode(&event, &self->scratch);
        sl_rpc_call(gateway, SL_TM_WORKER_EVENT, self->scratch.data, self->scratch.size, 0,
                    reported, self);
    }
    word_free(word);
}

/* ---- the topology master -------------------------------------------------------------------- */

static void
master_gone(void *ctx, uint64_t ticket)
{
    (void)ticket;
    ask_end(ctx, 1, "no topology master");
}

/* All workers do so; one guardian stays. */
static void
rescue(void *ctx, uint64_t ticket)
{
    struct sl_worker_role *self = ctx;
    struct sl_role_options options = {.state_url = self->state_url,
                                      .topology = self->topology,
                                      .program = self->program,
                                      .logs = self->logs};
    (void)ticket;
    if (sl_guardian_rescue(self->loop, &options) != 0) {
        sl_log_warn("cluster.worker", "start a guardian: %s", sl_err_last()->msg);
    }
    sl_timer_start(self->loop, &self->rescue_timer, RESCUE_MS, rescue, self);
}

static void
master_missing(struct sl_worker_role *self)
{
    if (self->logs != NULL && !sl_timer_is_running(&self->rescue_timer)) {
        sl_timer_start(self->loop, &self->rescue_timer, RESCUE_MS, rescue, self);
    }
    if (!sl_timer_is_running(&self->master_timer)) {
        sl_timer_start(self->loop, &self->master_timer, (uint64_t)self->options.no_master_ms,
                       master_gone, self);
    }
}

static void
on_registered(void *ctx, uint64_t token)
{
    struct sl_worker_role *self = ctx;
    (void)token;
    sl_timer_stop(&self->master_timer);
    sl_timer_stop(&self->rescue_timer);
}

static void
on_lost(void *ctx, const char *cause)
{
    struct sl_worker_role *self = ctx;
    sl_log_info("cluster.worker", "the topology master is lost: %s", cause);
    master_missing(self);
}

/* It is another one by now, or has not begun yet. */
static void
on_stale_leader(void *ctx)
{
    struct sl_worker_role *self = ctx;
    sl_leader_retrieval_look_again(self->leader);
}

static void
on_rejected(void *ctx, const char *reason)
{
    ask_end(ctx, 0, reason);
}

static void
leader_changed(void *ctx, const char *address, uint64_t token)
{
    struct sl_worker_role *self = ctx;
    if (address == NULL) {
        sl_worker_registration_leader(self->registration, NULL, 0);
        master_missing(self);
        return;
    }
    self->identity.plan_version = self->is_plan_run ? self->plan.plan_version : 0;
    sl_worker_registration_leader(self->registration, address, token);
}

/* ---- life ----------------------------------------------------------------------------------- */

static void *
thread_main(void *ctx)
{
    struct sl_worker_role *self = ctx;
    sl_log_set_thread("io");
    sl_loop_run(self->loop);
    return NULL;
}

static void
stopped(void *ctx)
{
    struct sl_worker_role *self = ctx;
    sl_loop_stop(self->loop);
}

/* On the loop: lets everything go that hangs on it. */
static void
end(void *ctx)
{
    struct sl_worker_role *self = ctx;
    struct sl_map_u64_entry *entry;
    sl_timer_stop(&self->master_timer);
    sl_timer_stop(&self->rescue_timer);
    sl_timer_stop(&self->peers_timer);
    if (self->drain != NULL) {
        struct sl_worker_drained drained = drained_now(self);
        drain_answer(self, &drained);
    }
    if (self->plan_request != NULL) {
        sl_rpc_refuse(self->plan_request, SL_RPC_FAILURE, SL_ECLOSED, "the worker ends");
        self->plan_request = NULL;
    }
    for (size_t at = 0; (entry = sl_map_u64_next(&self->requests, &at)) != NULL;) {
        sl_rpc_refuse((struct sl_rpc_request *)(uintptr_t)entry->value, SL_RPC_FAILURE, SL_ECLOSED,
                      "the worker ends");
    }
    if (self->leader != NULL) {
        sl_leader_retrieval_free(self->leader);
    }
    sl_worker_registration_free(self->registration);
    if (self->rpc != NULL) {
        sl_rpc_free(self->rpc);
    }
    sl_data_link_free(self->links);
    self->links = NULL;
    if (self->store != NULL) {
        sl_state_store_close(self->store, stopped, self);
    } else {
        stopped(self);
    }
}

/* What was written for peers that are there must reach them: nobody would send it again. */
static void
end_when_sent(void *ctx, uint64_t ticket)
{
    struct sl_worker_role *self = ctx;
    struct sl_remote_stats stats;
    int32_t connected;
    (void)ticket;
    sl_remote_stats(sl_worker_remote(self->worker), &stats);
    sl_data_link_peers(self->links, &connected);
    if (stats.unconfirmed > 0 && connected > 0 && sl_loop_now_ms(self->loop) < self->end_until_ms) {
        sl_timer_start(self->loop, &self->end_timer, DRAIN_LOOK_MS, end_when_sent, self);
        return;
    }
    end(self);
}

static void
begin_end(void *ctx)
{
    struct sl_worker_role *self = ctx;
    self->end_until_ms = sl_loop_now_ms(self->loop) + LAST_WORDS_MS;
    end_when_sent(self, 0);
}

void
sl_worker_role_free(struct sl_worker_role *self)
{
    if (self == NULL) {
        return;
    }
    sl_loop_post(self->loop, begin_end, self);
    if (self->has_thread) {
        pthread_join(self->thread, NULL);
    } else {
        sl_loop_run(self->loop);
    }
    sl_state_loop_executor_destroy(&self->executor);
    sl_loop_free(self->loop);
    sl_map_u64_destroy(&self->requests);
    sl_arena_destroy(&self->plan_arena);
    sl_arena_destroy(&self->arena);
    sl_buf_destroy(&self->scratch);
    pieces_free(self->pieces.items, self->pieces.count);
    for (size_t i = 0; i < self->counted.count; i++) {
        sl_free((char *)(uintptr_t)self->counted.items[i].component);
    }
    sl_vec_destroy(&self->counted);
    sl_free(self->secret);
    sl_free(self->state_url);
    sl_free(self->logs);
    sl_free(self->program);
    sl_free(self);
}

static int
start_links(struct sl_worker_role *self)
{
    struct sl_data_link_options options = {.remote = sl_worker_remote(self->worker),
                                           .bell = &self->bell,
                                           .container = self->options.container,
                                           .secret = self->secret,
                                           .secret_size = self->options.secret_len,
                                           .on_change = peers_changed,
                                           .ctx = self};
    memcpy(options.identity, self->identity.identity, sizeof(options.identity));
    self->links = sl_data_link_new(self->loop, &options);
    int rc = sl_data_link_listen(self->links, self->host, (uint16_t)self->options.data_port);
    if (rc == 0) {
        self->data_port = sl_data_link_port(self->links);
    }
    return rc;
}

/* Where the topology master is, and the endpoint on which it asks. */
static int
start_control(struct sl_worker_role *self)
{
    struct sl_address address = {.kind = SL_ADDRESS_TCP};
    char text[SL_ADDRESS_TEXT_SIZE];
    char path[SL_STATE_PATH_MAX + 1];
    struct sl_rpc_options rpc = {.role = "worker",
                                 .name = self->resource,
                                 .secret = self->secret,
                                 .secret_size = self->options.secret_len};
    sl_settings_apply_rpc(&self->settings, &rpc);
    self->rpc = sl_rpc_new(self->loop, &rpc);
    snprintf(address.host, sizeof(address.host), "%s", self->host);
    int rc = sl_rpc_listen(self->rpc, sl_address_format(&address, text, sizeof(text)));
    if (rc != 0) {
        return rc;
    }
    address.port = self->data_port;
    sl_address_format(&address, self->data_address, sizeof(self->data_address));
    self->identity.topology = self->topology;
    self->identity.address = sl_rpc_address(self->rpc);
    self->identity.resource = self->resource;
    self->identity.process = sl_random_u64(sl_loop_random(self->loop));
    self->identity.supervisor = self->supervisor;
    self->identity.port = (uint32_t)self->options.slot_port;
    self->identity.data_address = self->data_address;
    self->identity.container = self->options.container;
    self->identity.pid = (uint64_t)getpid();
    struct sl_worker_registration_options registration = {
        .rpc = self->rpc,
        .identity = &self->identity,
        .registration = sl_settings_registration(&self->settings),
        .heartbeat = sl_settings_heartbeat(&self->settings),
        .on_registered = on_registered,
        .on_lost = on_lost,
        .on_stale_leader = on_stale_leader,
        .on_rejected = on_rejected,
        .make_payload = make_payload,
        .handle = handle,
        .ctx = self};
    rc = sl_worker_registration_new(&registration, &self->registration);
    if (rc != 0) {
        return rc;
    }
    struct sl_state_open_options state = {0};
    sl_settings_apply_state(&self->settings, &state);
    self->store = sl_state_open_new(self->options.state_url, &self->executor.executor, &state);
    if (self->store == NULL) {
        return sl_err_last()->code;
    }
    sl_layout_path(path, SL_LAYOUT_TOPOLOGY_LEADER, self->topology);
    self->leader = sl_leader_retrieval_new(self->store, self->loop, path, leader_changed, self);
    master_missing(self);
    return 0;
}

static int
check(struct sl_worker *worker, const struct sl_worker_role_options *options)
{
    static const uint8_t none[SL_REMOTE_IDENTITY_SIZE];
    if (sl_worker_remote(worker) == NULL) {
        return sl_err_set(SL_EINVAL, "the worker has no lane to other processes");
    }
    if (options->topology == NULL || strlen(options->topology) > SL_NAME_MAX ||
        options->host == NULL || options->host[0] == '\0' ||
        strlen(options->host) >= SL_ADDRESS_HOST_SIZE || options->container < 0 ||
        options->container > SL_REMOTE_PEER_MAX || options->data_port < 0 ||
        options->data_port > 65535 || options->slot_port < 0 || options->slot_port > 65535 ||
        (options->supervisor != NULL && strlen(options->supervisor) > SL_NAME_MAX) ||
        !(options->no_master_ms >= 0 && options->no_master_ms < 1e12)) {
        return sl_err_set(SL_EINVAL, "options of the worker's role are out of range");
    }
    if (options->state_url == NULL &&
        memcmp(options->identity, none, sizeof(options->identity)) == 0) {
        return sl_err_set(SL_EINVAL, "a worker without a topology master needs an identity");
    }
    return 0;
}

int
sl_worker_role_new(struct sl_worker *worker, const struct sl_worker_role_options *options,
                   const struct sl_settings *settings, struct sl_worker_role **role)
{
    static const uint8_t none[SL_REMOTE_IDENTITY_SIZE];
    int rc = check(worker, options);
    if (rc != 0) {
        return rc;
    }
    struct sl_worker_role *self = sl_calloc(1, sizeof(*self));
    rc = sl_loop_new(&self->loop);
    if (rc != 0) {
        sl_free(self);
        return rc;
    }
    self->worker = worker;
    self->options = *options;
    self->settings = *settings;
    snprintf(self->topology, sizeof(self->topology), "%s", options->topology);
    snprintf(self->host, sizeof(self->host), "%s", options->host);
    if (options->supervisor != NULL) {
        snprintf(self->supervisor, sizeof(self->supervisor), "%s", options->supervisor);
    }
    snprintf(self->resource, sizeof(self->resource), "container-%d", options->container);
    if (options->secret_len > 0) {
        self->secret = sl_alloc(options->secret_len);
        memcpy(self->secret, options->secret, options->secret_len);
    }
    if (options->logs != NULL && options->program != NULL && options->state_url != NULL) {
        self->state_url = sl_strdup(options->state_url);
        self->logs = sl_strdup(options->logs);
        self->program = sl_strdup(options->program);
    }
    if (options->no_master_ms == 0) {
        self->options.no_master_ms = SL_WORKER_NO_MASTER_MS;
    }
    memcpy(self->identity.identity, options->identity, sizeof(self->identity.identity));
    if (memcmp(options->identity, none, sizeof(none)) == 0) {
        sl_loop_entropy(self->loop, self->identity.identity, sizeof(self->identity.identity));
    }
    sl_state_loop_executor_create(&self->executor, self->loop);
    sl_map_u64_create(&self->requests);
    sl_arena_create(&self->plan_arena, 0, 4 * (size_t)SL_PHYSICAL_PLAN_BYTES_MAX);
    sl_arena_create(&self->arena, 0, 4 * (size_t)SL_FRAME_CONTROL_MAX);
    rc = start_links(self);
    if (rc == 0 && options->state_url != NULL) {
        rc = start_control(self);
    }
    if (rc == 0 && pthread_create(&self->thread, NULL, thread_main, self) != 0) {
        rc = sl_err_set(SL_ESYS, "start the thread of the worker's connections");
    }
    if (rc != 0) {
        struct sl_err why = *sl_err_last();
        sl_worker_role_free(self);
        return sl_err_restore(&why);
    }
    self->has_thread = true;
    *role = self;
    return 0;
}

/* ---- words of the owner --------------------------------------------------------------------- */

uint16_t
sl_worker_role_data_port(const struct sl_worker_role *self)
{
    return self->data_port;
}

void
sl_worker_role_answer(struct sl_worker_role *self, int32_t request, int code, const char *text,
                      size_t len)
{
    struct word *word = word_new(self, text, len);
    word->request = request;
    word->code = code;
    word->pieces = self->pieces.items;
    word->piece_count = self->pieces.count;
    sl_vec_create(&self->pieces);
    sl_loop_post(self->loop, answered, word);
}

void
sl_worker_role_piece(struct sl_worker_role *self, const char *component, const char *state,
                     uint32_t group, int32_t task, const uint8_t *entries, size_t size,
                     uint64_t count)
{
    uint8_t *copy = sl_alloc(size + 1);
    memcpy(copy, entries, size);
    struct sl_worker_state_piece piece = {.component = sl_strdup(component),
                                          .state = sl_strdup(state),
                                          .entries = copy,
                                          .size = size,
                                          .count = count,
                                          .hash = sl_hash_bytes(entries, size),
                                          .group = group,
                                          .task = task};
    sl_vec_push(&self->pieces, piece);
}

static void
topology_told(void *ctx)
{
    struct word *word = ctx;
    sl_data_link_set_topology(word->role->links, word->text);
    word_free(word);
}

int
sl_worker_role_topology(struct sl_worker_role *self, const char *topology_id)
{
    if (self->options.state_url != NULL) {
        return sl_err_set(SL_EINVAL, "the topology master says which submission it is");
    }
    sl_loop_post(self->loop, topology_told, word_new(self, topology_id, strlen(topology_id)));
    return 0;
}

static void
peer_told(void *ctx)
{
    struct word *word = ctx;
    struct sl_worker_role *self = word->role;
    if (sl_data_link_peer(self->links, word->container, word->identity, word->text, word->port) !=
        0) {
        sl_log_warn("cluster.worker", "container %d can not be reached: %s", word->container,
                    sl_err_last()->msg);
    }
    word_free(word);
}

int
sl_worker_role_peer(struct sl_worker_role *self, int32_t container, const uint8_t *identity,
                    const char *host, uint16_t port)
{
    if (self->options.state_url != NULL) {
        return sl_err_set(SL_EINVAL, "the topology master says who the peers are");
    }
    struct word *word = word_new(self, host, strlen(host));
    word->container = container;
    word->port = port;
    memcpy(word->identity, identity, sizeof(word->identity));
    sl_loop_post(self->loop, peer_told, word);
    return 0;
}

void
sl_worker_role_report(struct sl_worker_role *self, const char *component, int32_t task,
                      const char *text, size_t len, int is_fatal)
{
    struct word *word = word_new(self, text, len);
    word->component = sl_strdup(component);
    word->task = task;
    word->is_fatal = is_fatal != 0;
    sl_loop_post(self->loop, report, word);
}

void
sl_worker_role_count(struct sl_worker_role *self, const struct sl_worker_counters *counters)
{
    struct word *word = word_new(self, (const char *)counters, sizeof(*counters));
    word->component = sl_strdup(counters->component);
    sl_loop_post(self->loop, counted, word);
}
