/* What the topology master asks of a worker: plans, spouts, state, drains. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cluster/worker_role_priv.h"

enum {
    /* How long a plan that runs waits for connections: peers may hear of this worker later. */
    PEERS_WAIT_MS = 500,
};

static uint32_t
request_keep(struct sl_worker_role *self, struct sl_rpc_request *request)
{
    uint32_t number = ++self->last_request & INT32_MAX;
    self->last_request = number;
    sl_map_u64_put_ptr(&self->requests, number, request);
    return number;
}

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

void
sl__wr_peers_changed(void *ctx)
{
    struct sl_worker_role *self = ctx;
    char text[32];
    int32_t connected;
    int32_t all = sl_data_link_peers(self->links, &connected);
    int len = snprintf(text, sizeof(text), "%d %d", connected, all);
    sl__wr_ask(self, SL_ASK_PEERS, 0, text, (size_t)len);
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
    sl_buf_printf(out, "plan %llu %d%s\n", (unsigned long long)plan->plan_version,
                  plan->state == SL_TOPOLOGY_RUNNING, plan->is_held ? " held" : "");
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
        sl__wr_ask_end(self, 0, "the plan does not name this worker any more");
        return;
    }
    if (self->plan_request != NULL) {
        sl_rpc_refuse(self->plan_request, SL_RPC_FAILURE, SL_ECONFLICT, "a newer plan has come");
        self->plan_request = NULL;
    }
    if (self->moves != NULL) {
        sl_worker_moves_plan(self->moves, plan.plan_version);
        self->export_number = 0;
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
    sl__wr_ask(self, SL_ASK_PLAN, self->plan_number, (const char *)self->scratch.data,
               self->scratch.size);
}

/* The owner has run the plan, or could not. */
static void
plan_answered(struct sl_worker_role *self, const struct sl__wr_word *word)
{
    if (word->code != 0) {
        if (self->plan_request != NULL) {
            sl_rpc_refuse(self->plan_request, SL_RPC_REJECTION, word->code, "%s", word->text);
            self->plan_request = NULL;
        }
        return;
    }
    self->is_plan_run = true;
    sl_data_link_admit(self->links);
    self->is_active = self->plan.state == SL_TOPOLOGY_RUNNING;
    sl_data_link_keep(self->links, is_peer_wanted, self);
    sl_timer_start(self->loop, &self->peers_timer, PEERS_WAIT_MS, peers_waited, self);
    plan_answer_if_run(self);
}

/* The body of an answer, by what was asked. */
static void
reply(struct sl_worker_role *self, struct sl_rpc_request *request, const char *text)
{
    sl_buf_clear(&self->scratch);
    if (sl_rpc_request_method(request) == SL_WORKER_MEASURE) {
        sl_worker_measured_encode(strtoull(text, NULL, 10), &self->scratch);
    }
    sl_rpc_reply(request, self->scratch.data, self->scratch.size);
}

static void drain_look(void *ctx, uint64_t ticket);

void
sl__wr_answered(void *ctx)
{
    struct sl__wr_word *word = ctx;
    struct sl_worker_role *self = word->role;
    if ((uint32_t)word->request == self->plan_number) {
        plan_answered(self, word);
    } else if (self->drain != NULL && self->drain->number == (uint32_t)word->request) {
        self->drain->number = 0;
        drain_look(self, 0);
    } else if ((uint32_t)word->request == self->export_number) {
        struct sl_worker_export answer = {word->code,       word->text,   word->text,
                                          word->key_groups, word->pieces, word->piece_count};
        self->export_number = 0;
        sl_worker_moves_exported(self->moves, &answer);
    } else {
        struct sl_rpc_request *request =
            sl_map_u64_remove_ptr(&self->requests, (uint64_t)word->request);
        if (request != NULL && word->code != 0) {
            sl_rpc_refuse(request, SL_RPC_REJECTION, word->code, "%s", word->text);
        } else if (request != NULL) {
            reply(self, request, word->text);
        }
    }
    sl__wr_word_free(word);
}

static void
take_spouts(struct sl_worker_role *self, struct sl_rpc_request *request)
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    static const char *const texts[] = {
        [SL_SPOUTS_PAUSED] = "0",
        [SL_SPOUTS_ACTIVE] = "1",
        [SL_SPOUTS_HELD] = "0 held",
        [SL_SPOUTS_HELD_WITH_WAY] = "0 way",
    };
    enum sl_worker_spouts spouts;
    if (sl_worker_spouts_decode(body, size, &spouts) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    self->is_active = spouts == SL_SPOUTS_ACTIVE;
    sl__wr_ask(self, SL_ASK_SPOUTS, request_keep(self, request), texts[spouts],
               strlen(texts[spouts]));
}

/* The text of SL_ASK_EXPORT, in scratch. */
static void
export_text(struct sl_worker_role *self, const struct sl_worker_state_of *what, const char *cursor)
{
    sl_buf_clear(&self->scratch);
    sl_buf_printf(&self->scratch, "%s %d %s\n", what->component, what->task, cursor);
    for (size_t i = 0; i < what->group_count; i++) {
        sl_buf_printf(&self->scratch, "%u ", what->groups[i]);
    }
}

void
sl__wr_ask_export(void *role, const struct sl_worker_state_of *what, const char *cursor)
{
    struct sl_worker_role *self = role;
    self->export_number = ++self->last_request & INT32_MAX;
    self->last_request = self->export_number;
    export_text(self, what, cursor);
    sl__wr_ask(self, SL_ASK_EXPORT, self->export_number, (const char *)self->scratch.data,
               self->scratch.size);
}

static void
take_measure(struct sl_worker_role *self, struct sl_rpc_request *request)
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    struct sl_worker_state_of what;
    if (sl_worker_measure_decode(body, size, &self->arena, &what) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    export_text(self, &what, "size");
    sl__wr_ask(self, SL_ASK_EXPORT, request_keep(self, request), (const char *)self->scratch.data,
               self->scratch.size);
}

/* Where tasks have no state, nothing of it has moved. */
static void
reply_nothing_moved(struct sl_worker_role *self, struct sl_rpc_request *request)
{
    struct sl_worker_moved nothing = {0};
    sl_buf_clear(&self->scratch);
    sl_worker_moved_encode(&nothing, &self->scratch);
    sl_rpc_reply(request, self->scratch.data, self->scratch.size);
}

static void
take_move(struct sl_worker_role *self, struct sl_rpc_request *request)
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    struct sl_worker_move move;
    if (sl_worker_move_decode(body, size, &self->arena, &move) != 0) {
        sl_rpc_refuse_last(request);
    } else if (self->moves == NULL) {
        reply_nothing_moved(self, request);
    } else {
        sl_worker_moves_order(self->moves, &move, request);
    }
}

static void
take_moved(struct sl_worker_role *self, struct sl_rpc_request *request)
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    uint64_t id;
    if (sl_worker_move_id_decode(body, size, &id) != 0) {
        sl_rpc_refuse_last(request);
    } else if (self->moves == NULL) {
        reply_nothing_moved(self, request);
    } else {
        sl_worker_moves_settle(self->moves, id, request);
    }
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
    if (self->drain != NULL && self->drain->may_stay) {
        return (struct sl_worker_drained){0};
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
    if ((drained.roots == 0 && (drained.waiting == 0 || self->drain->only_roots)) ||
        sl_loop_now_ms(self->loop) >= self->drain->until_ms) {
        drain_answer(self, &drained);
        return;
    }
    sl_timer_start(self->loop, &self->drain->timer, SL__WR_LOOK_MS, drain_look, self);
}

static void
take_drain(struct sl_worker_role *self, struct sl_rpc_request *request)
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    struct sl_worker_drain wanted;
    if (sl_worker_drain_decode(body, size, &wanted) != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    if (self->drain != NULL) {
        struct sl_worker_drained drained = drained_now(self);
        drain_answer(self, &drained);
    }
    self->drain = sl_calloc(1, sizeof(*self->drain));
    self->drain->request = request;
    self->drain->until_ms = sl_loop_now_ms(self->loop) + wanted.time_limit_ms;
    self->drain->only_roots = wanted.only_roots;
    self->drain->may_stay = wanted.may_stay;
    /* Spouts emit again what fails now before everything ends. */
    if (self->options.drains_owner || wanted.is_last) {
        self->drain->number = ++self->last_request & INT32_MAX;
        self->last_request = self->drain->number;
        sl__wr_ask(self, SL_ASK_DRAIN, self->drain->number, wanted.is_last ? "1" : "0", 1);
    }
    drain_look(self, 0);
}

void
sl__wr_handle(void *ctx, struct sl_rpc_request *request)
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
    case SL_WORKER_MEASURE:
        take_measure(self, request);
        break;
    case SL_WORKER_MOVE:
        take_move(self, request);
        break;
    case SL_WORKER_MOVED:
        take_moved(self, request);
        break;
    case SL_WORKER_SHUTDOWN:
        sl_rpc_reply(request, NULL, 0);
        sl__wr_ask_end(self, 0, "the topology master has ended it");
        break;
    default:
        sl_rpc_refuse(request, SL_RPC_ERROR, SL_EPROTO, "method %u of a worker is not known",
                      sl_rpc_request_method(request));
        break;
    }
}

void
sl__wr_requests_end(struct sl_worker_role *self)
{
    struct sl_map_u64_entry *entry;
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
}
