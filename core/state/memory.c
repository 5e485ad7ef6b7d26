#include "state/memory.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "base/random.h"
#include "state/watch_table.h"

enum {
    DEFAULT_SESSION_MS = 10000,
    /* Between two attempts of a client to connect. */
    RECONNECT_MS = 20,
    PPM = 1000000,
};

struct session {
    uint64_t id;
    uint64_t timeout_ms;
    /* Server's time of the last sign of life. */
    uint64_t heard_ms;
};

struct sl_memory_server {
    const struct sl_state_executor *executor;
    struct sl_random random;
    struct sl_memory_faults faults;
    struct sl_tree tree;
    /* Watches of all clients; `client` is the struct client. */
    struct sl_watch_table watches;
    struct sl_watch_entries fired;
    /* Id -> struct session. */
    struct sl_map_u64 sessions;
    uint64_t last_session;
    uint64_t session_timeout_ms;
    uint64_t expiry_timer;
    bool is_serving;
    struct sl_list clients;
};

/* A message under way between a client and the server, either direction. */
struct message {
    struct sl_list_node node;
    /* NULL: a ping or its answer, or a watch event. */
    struct sl_state_request *request;
    uint64_t watch_id;
};

struct client;

/* A timer under way that will deliver one message, or tell that the connection is gone. */
struct delivery {
    struct sl_list_node node;
    struct client *client;
    void (*fn)(struct client *client);
    uint64_t timer;
};

struct client {
    struct sl_state_backend backend;
    struct sl_list_node node;
    struct sl_memory_server *server;
    bool owns_server;
    const struct sl_state_executor *executor;
    struct sl_state_backend_events events;
    bool is_connected;
    bool is_crashed;
    enum sl_memory_cut cut;
    bool breaks_next;
    enum sl_memory_break break_when;
    uint64_t session;
    uint64_t timeout_ms;
    /* Client's time of the last message from the server. */
    uint64_t heard_ms;
    /* Sent and not answered, oldest first, linked by request->next. */
    struct sl_state_request *outstanding;
    struct sl_list to_server;
    struct sl_list to_client;
    struct sl_list deliveries;
    uint64_t due_to_server_ms;
    uint64_t due_to_client_ms;
    uint64_t reconnect_timer;
    uint64_t ping_timer;
    sl_state_task_fn closed_fn;
    void *closed_arg;
};

static void client_break(struct client *client);
static void client_reconnect_later(struct client *client, uint64_t delay_ms);

static uint64_t
server_now(const struct sl_memory_server *self)
{
    return sl_state_executor_now_ms(self->executor);
}

static uint64_t
client_now(const struct client *client)
{
    return sl_state_executor_now_ms(client->executor);
}

static struct client *
client_of(struct sl_state_backend *backend)
{
    return sl_container_of(backend, struct client, backend);
}

static bool
coin(struct sl_memory_server *self, uint32_t ppm)
{
    return ppm > 0 && sl_random_below(&self->random, PPM) < ppm;
}

/*
 * Messages. Each direction is a queue; a timer for each message delivers whatever is oldest, so
 * that order is kept whatever the timers' order is.
 */

static void
drop_messages(struct sl_list *list)
{
    struct sl_list_node *node;
    while ((node = sl_list_pop_front(list)) != NULL) {
        sl_free(sl_container_of(node, struct message, node));
    }
}

static uint64_t
draw_delay(struct sl_memory_server *self)
{
    const struct sl_memory_faults *faults = &self->faults;
    uint64_t spread = faults->delay_max_ms > faults->delay_min_ms
                          ? faults->delay_max_ms - faults->delay_min_ms
                          : 0;
    return faults->delay_min_ms + (spread > 0 ? sl_random_below(&self->random, spread + 1) : 0);
}

static void
on_delivery_timer(void *arg)
{
    struct delivery *delivery = arg;
    struct client *client = delivery->client;
    void (*fn)(struct client *) = delivery->fn;
    sl_list_remove(&delivery->node);
    sl_free(delivery);
    fn(client);
}

static void
start_delivery(struct client *client, uint64_t delay_ms, void (*fn)(struct client *client))
{
    struct delivery *delivery = sl_calloc(1, sizeof(*delivery));
    delivery->client = client;
    delivery->fn = fn;
    sl_list_push_back(&client->deliveries, &delivery->node);
    delivery->timer =
        sl_state_executor_timer_start(client->executor, delay_ms, on_delivery_timer, delivery);
}

/* Not before the message that went before. */
static void
deliver_later(struct client *client, uint64_t *due_ms, void (*fn)(struct client *client))
{
    uint64_t now = client_now(client);
    uint64_t due = now + draw_delay(client->server);
    if (due < *due_ms) {
        due = *due_ms;
    }
    *due_ms = due;
    start_delivery(client, due - now, fn);
}

static struct message *
next_message(struct sl_list *list)
{
    struct sl_list_node *node = sl_list_pop_front(list);
    return node != NULL ? sl_container_of(node, struct message, node) : NULL;
}

static void
stop_deliveries(struct client *client)
{
    struct sl_list_node *node;
    while ((node = sl_list_pop_front(&client->deliveries)) != NULL) {
        struct delivery *delivery = sl_container_of(node, struct delivery, node);
        sl_state_executor_timer_stop(client->executor, &delivery->timer);
        sl_free(delivery);
    }
}

/* Takes a request off the list of those without an answer. */
static void
forget_outstanding(struct client *client, struct sl_state_request *request)
{
    struct sl_state_request **at = &client->outstanding;
    while (*at != NULL && *at != request) {
        at = (struct sl_state_request **)&(*at)->next;
    }
    sl_assert(*at == request);
    *at = request->next;
    request->next = NULL;
}

static void
deliver_to_client(struct client *client)
{
    if ((client->cut & SL_MEMORY_CUT_TO_CLIENT) != 0) {
        return;
    }
    struct message *message = next_message(&client->to_client);
    if (message == NULL) {
        return;
    }
    struct sl_state_request *request = message->request;
    uint64_t watch_id = message->watch_id;
    sl_free(message);
    client->heard_ms = client_now(client);
    if (watch_id != 0) {
        client->events.watch(client->events.ctx, watch_id);
    } else if (request != NULL) {
        forget_outstanding(client, request);
        client->events.complete(client->events.ctx, request);
    }
}

static void
send_to_client(struct client *client, struct sl_state_request *request, uint64_t watch_id)
{
    struct message *message = sl_calloc(1, sizeof(*message));
    message->request = request;
    message->watch_id = watch_id;
    sl_list_push_back(&client->to_client, &message->node);
    if (client->is_connected) {
        deliver_later(client, &client->due_to_client_ms, deliver_to_client);
    }
}

/*
 * The server
 */

static void
on_tree_change(void *ctx, const char *path, enum sl_tree_change change)
{
    struct sl_memory_server *self = ctx;
    sl_watch_table_fire(&self->watches, path, change, &self->fired);
}

/* Sends the events of the transaction that was just applied. For a client without a connection
 * they wait until it is back. */
static void
send_fired(struct sl_memory_server *self)
{
    for (size_t i = 0; i < self->fired.count; i++) {
        struct client *client = self->fired.items[i].client;
        send_to_client(client, NULL, self->fired.items[i].id);
    }
    sl_vec_clear(&self->fired);
}

static void
server_apply(struct sl_memory_server *self, struct sl_tree_effects *effects)
{
    int rc = sl_tree_apply(&self->tree, self->tree.zxid + 1, effects->items, effects->count);
    sl_assert_eq(rc, 0);
    send_fired(self);
}

static void
server_end_session(struct sl_memory_server *self, uint64_t id)
{
    struct session *session = sl_map_u64_remove_ptr(&self->sessions, id);
    if (session == NULL) {
        return;
    }
    sl_free(session);
    struct sl_tree_effects effects = SL_VEC_INIT;
    sl_tree_plan_session_end(&self->tree, id, &effects);
    server_apply(self, &effects);
    sl_tree_effects_destroy(&effects);
}

static void
server_expire_now(struct sl_memory_server *self, uint64_t id)
{
    server_end_session(self, id);
    sl_list_each(&self->clients, it)
    {
        struct client *client = sl_container_of(it, struct client, node);
        /* Who is cut off learns of it when it is heard again. */
        if (client->session == id && client->cut == SL_MEMORY_CUT_NONE) {
            client_break(client);
        }
    }
}

static void
on_expiry_timer(void *arg)
{
    struct sl_memory_server *self = arg;
    uint64_t now = server_now(self);
    uint64_t delay = UINT64_MAX;
    SL_VEC(uint64_t) over = SL_VEC_INIT;
    struct sl_map_u64_entry *entry;
    self->expiry_timer = 0;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->sessions, &at)) != NULL;) {
        struct session *session = (void *)(uintptr_t)entry->value;
        uint64_t age = now - session->heard_ms;
        if (age >= session->timeout_ms) {
            sl_vec_push(&over, session->id);
        } else if (session->timeout_ms - age < delay) {
            delay = session->timeout_ms - age;
        }
    }
    for (size_t i = 0; i < over.count; i++) {
        server_expire_now(self, over.items[i]);
    }
    sl_vec_destroy(&over);
    if (delay != UINT64_MAX && self->is_serving) {
        self->expiry_timer =
            sl_state_executor_timer_start(self->executor, delay, on_expiry_timer, self);
    }
}

static struct session *
server_find_session(const struct sl_memory_server *self, uint64_t id)
{
    return sl_map_u64_get_ptr(&self->sessions, id);
}

static uint64_t
server_open_session(struct sl_memory_server *self)
{
    struct session *session = sl_calloc(1, sizeof(*session));
    session->id = ++self->last_session;
    session->timeout_ms = self->session_timeout_ms;
    session->heard_ms = server_now(self);
    sl_map_u64_put_ptr(&self->sessions, session->id, session);
    sl_state_executor_timer_stop(self->executor, &self->expiry_timer);
    on_expiry_timer(self);
    return session->id;
}

static void
serve_write(struct sl_memory_server *self, uint64_t session, struct sl_state_request *request)
{
    struct sl_tree_effects effects = SL_VEC_INIT;
    size_t failed = 0;
    sl_assert_eq(request->session, session);
    int rc = sl_tree_plan(&self->tree, request->ops, request->op_count, session, &effects, &failed);
    sl_state_request_set_results(request, rc, failed);
    if (rc == 0 && effects.count > 0) {
        size_t at = 0;
        server_apply(self, &effects);
        for (size_t i = 0; i < request->op_count; i++) {
            const struct sl_state_op *op = &request->ops[i];
            if (op->kind == SL_STATE_CHECK) {
                continue;
            }
            const struct sl_tree_effect *effect = &effects.items[at++];
            if (op->kind == SL_STATE_CREATE) {
                request->results[i].path = sl_strdup(effect->path);
            } else if (op->kind == SL_STATE_SET) {
                const struct sl_tree_node *node = sl_tree_find(&self->tree, effect->path);
                if (node != NULL) {
                    sl_tree_stat(node, &request->results[i].stat);
                }
            }
        }
    }
    sl_tree_effects_destroy(&effects);
}

static void
serve_read(struct sl_memory_server *self, struct client *client, struct sl_state_request *request)
{
    const char *path = request->ops[0].path;
    const struct sl_tree_node *node = sl_tree_find(&self->tree, path);
    bool is_children = request->kind == SL_STATE_CHILDREN;
    if (request->watch_id != 0) {
        sl_watch_table_add(&self->watches, path, is_children, request->watch_id, client);
    }
    if (node == NULL) {
        request->status = SL_ENOTFOUND;
        return;
    }
    sl_tree_stat(node, &request->stat);
    if (is_children) {
        const char **names = sl_tree_children_new(node);
        for (size_t i = 0; i < node->children.count; i++) {
            sl_vec_push(&request->children, sl_strdup(names[i]));
        }
        sl_free(names);
    } else {
        sl_buf_append(&request->data, node->data, node->size);
    }
}

static void
serve(struct sl_memory_server *self, struct client *client, struct sl_state_request *request)
{
    switch (request->kind) {
    case SL_STATE_GET:
    case SL_STATE_CHILDREN:
        serve_read(self, client, request);
        break;
    case SL_STATE_SYNC:
        break;
    default:
        serve_write(self, client->session, request);
        break;
    }
}

static bool
is_write(const struct sl_state_request *request)
{
    return request->kind != SL_STATE_GET && request->kind != SL_STATE_CHILDREN &&
           request->kind != SL_STATE_SYNC;
}

/* Whether the connection breaks at this request, by order or by chance. */
static bool
breaks(struct client *client, const struct sl_state_request *request, enum sl_memory_break when)
{
    const struct sl_memory_faults *faults = &client->server->faults;
    uint32_t ppm =
        when == SL_MEMORY_BREAK_BEFORE ? faults->lose_request_ppm : faults->lose_reply_ppm;
    if (client->breaks_next && client->break_when == when && is_write(request)) {
        client->breaks_next = false;
        return true;
    }
    return coin(client->server, ppm);
}

static void
deliver_to_server(struct client *client)
{
    struct sl_memory_server *server = client->server;
    if ((client->cut & SL_MEMORY_CUT_TO_SERVER) != 0) {
        return;
    }
    struct message *message = next_message(&client->to_server);
    if (message == NULL) {
        return;
    }
    struct sl_state_request *request = message->request;
    sl_free(message);
    struct session *session = server_find_session(server, client->session);
    if (!server->is_serving || session == NULL) {
        client_break(client);
        return;
    }
    session->heard_ms = server_now(server);
    if (request == NULL) {
        send_to_client(client, NULL, 0);
        return;
    }
    if (coin(server, server->faults.expire_ppm)) {
        server_expire_now(server, client->session);
        return;
    }
    if (breaks(client, request, SL_MEMORY_BREAK_BEFORE)) {
        client_break(client);
        return;
    }
    serve(server, client, request);
    if (breaks(client, request, SL_MEMORY_BREAK_AFTER)) {
        client_break(client);
        return;
    }
    send_to_client(client, request, 0);
}

struct sl_memory_server *
sl_memory_server_new(const struct sl_state_executor *executor, uint64_t seed)
{
    struct sl_memory_server *self = sl_calloc(1, sizeof(*self));
    self->executor = executor;
    self->session_timeout_ms = DEFAULT_SESSION_MS;
    self->last_session = 1000;
    self->is_serving = true;
    sl_random_seed(&self->random, seed);
    sl_tree_create(&self->tree);
    self->tree.on_change = on_tree_change;
    self->tree.ctx = self;
    sl_list_create(&self->clients);
    return self;
}

void
sl_memory_server_free(struct sl_memory_server *self)
{
    if (self == NULL) {
        return;
    }
    sl_assert(sl_list_is_empty(&self->clients));
    sl_state_executor_timer_stop(self->executor, &self->expiry_timer);
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->sessions, &at)) != NULL;) {
        sl_free((void *)(uintptr_t)entry->value);
    }
    sl_map_u64_destroy(&self->sessions);
    sl_watch_table_destroy(&self->watches);
    sl_vec_destroy(&self->fired);
    sl_tree_destroy(&self->tree);
    sl_free(self);
}

void
sl_memory_server_set_faults(struct sl_memory_server *self, const struct sl_memory_faults *faults)
{
    self->faults = *faults;
}

void
sl_memory_server_set_session_timeout(struct sl_memory_server *self, uint64_t timeout_ms)
{
    self->session_timeout_ms = timeout_ms;
}

void
sl_memory_server_expire(struct sl_memory_server *self, uint64_t session)
{
    server_expire_now(self, session);
}

void
sl_memory_server_set_serving(struct sl_memory_server *self, bool is_serving)
{
    if (self->is_serving == is_serving) {
        return;
    }
    self->is_serving = is_serving;
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->sessions, &at)) != NULL;) {
        ((struct session *)(uintptr_t)entry->value)->heard_ms = server_now(self);
    }
    sl_state_executor_timer_stop(self->executor, &self->expiry_timer);
    if (is_serving) {
        on_expiry_timer(self);
        return;
    }
    sl_list_each(&self->clients, it)
    {
        struct client *client = sl_container_of(it, struct client, node);
        if (client->is_connected) {
            client_break(client);
        }
    }
}

const struct sl_tree *
sl_memory_server_tree(const struct sl_memory_server *self)
{
    return &self->tree;
}

/*
 * The client
 */

/* Completes what has no answer, in order. Callbacks see a backend that is down. */
static void
fail_outstanding(struct client *client)
{
    struct sl_state_request *request = client->outstanding;
    client->outstanding = NULL;
    while (request != NULL) {
        struct sl_state_request *next = request->next;
        request->next = NULL;
        request->is_unknown = true;
        client->events.complete(client->events.ctx, request);
        request = next;
    }
}

/* What a client learns when its connection is gone; a task of its own, since requests are never
 * completed inside a call. */
static void
on_broken(struct client *client)
{
    client->events.link(client->events.ctx, SL_STATE_LINK_DOWN, client->session, NULL);
    fail_outstanding(client);
    client_reconnect_later(client, RECONNECT_MS);
}

/* Ends the connection. Events that are under way are kept until it is back, as ZooKeeper compares
 * then what is watched; answers are lost. */
static void
client_break(struct client *client)
{
    if (!client->is_connected) {
        return;
    }
    client->is_connected = false;
    stop_deliveries(client);
    drop_messages(&client->to_server);
    sl_state_executor_timer_stop(client->executor, &client->ping_timer);
    start_delivery(client, 0, on_broken);
}

static void on_ping_timer(void *arg);

/* A ping after a third of the time-out; the connection is given up after two without a sign. */
static void
ping_later(struct client *client)
{
    uint64_t age = client_now(client) - client->heard_ms;
    uint64_t limit = client->timeout_ms * 2 / 3;
    uint64_t left = age < limit ? limit - age : 0;
    uint64_t delay = left < client->timeout_ms / 3 ? left : client->timeout_ms / 3;
    client->ping_timer =
        sl_state_executor_timer_start(client->executor, delay, on_ping_timer, client);
}

static void
on_ping_timer(void *arg)
{
    struct client *client = arg;
    client->ping_timer = 0;
    if (client_now(client) - client->heard_ms >= client->timeout_ms * 2 / 3) {
        client_break(client);
        return;
    }
    struct message *message = sl_calloc(1, sizeof(*message));
    sl_list_push_back(&client->to_server, &message->node);
    deliver_later(client, &client->due_to_server_ms, deliver_to_server);
    ping_later(client);
}

/* Messages to the client that the break caught under way: answers are lost, events are not. */
static void
deliver_missed_events(struct client *client)
{
    struct sl_list missed;
    struct message *message;
    sl_list_create(&missed);
    while ((message = next_message(&client->to_client)) != NULL) {
        if (message->watch_id != 0) {
            sl_list_push_back(&missed, &message->node);
        } else {
            sl_free(message);
        }
    }
    while ((message = next_message(&missed)) != NULL) {
        send_to_client(client, NULL, message->watch_id);
        sl_free(message);
    }
}

static void
on_reconnect_timer(void *arg)
{
    struct client *client = arg;
    struct sl_memory_server *server = client->server;
    client->reconnect_timer = 0;
    if (!server->is_serving || client->cut != SL_MEMORY_CUT_NONE || client->is_crashed) {
        client_reconnect_later(client, RECONNECT_MS);
        return;
    }
    struct session *session = server_find_session(server, client->session);
    if (session == NULL && client->session != 0) {
        sl_watch_table_take(&server->watches, client, NULL);
        drop_messages(&client->to_client);
        client->session = 0;
        client->events.link(client->events.ctx, SL_STATE_LINK_EXPIRED, 0, NULL);
        client_reconnect_later(client, 0);
        return;
    }
    if (session == NULL) {
        client->session = server_open_session(server);
        session = server_find_session(server, client->session);
    }
    session->heard_ms = server_now(server);
    client->timeout_ms = session->timeout_ms;
    client->is_connected = true;
    client->heard_ms = client_now(client);
    ping_later(client);
    deliver_missed_events(client);
    client->events.link(client->events.ctx, SL_STATE_LINK_UP, client->session, NULL);
}

static void
client_reconnect_later(struct client *client, uint64_t delay_ms)
{
    if (!client->is_crashed && client->closed_fn == NULL) {
        client->reconnect_timer =
            sl_state_executor_timer_start(client->executor, delay_ms, on_reconnect_timer, client);
    }
}

static void
memory_open(struct sl_state_backend *backend, const struct sl_state_backend_events *events)
{
    struct client *client = client_of(backend);
    client->events = *events;
    client_reconnect_later(client, 0);
}

static void
memory_submit(struct sl_state_backend *backend, struct sl_state_request *request)
{
    struct client *client = client_of(backend);
    struct sl_state_request **at = &client->outstanding;
    while (*at != NULL) {
        at = (struct sl_state_request **)&(*at)->next;
    }
    *at = request;
    request->next = NULL;
    if (!client->is_connected) {
        /* Broken, and on_broken is on its way. */
        return;
    }
    struct message *message = sl_calloc(1, sizeof(*message));
    message->request = request;
    sl_list_push_back(&client->to_server, &message->node);
    deliver_later(client, &client->due_to_server_ms, deliver_to_server);
}

static void
on_closed(void *arg)
{
    struct client *client = arg;
    sl_state_task_fn fn = client->closed_fn;
    void *fn_arg = client->closed_arg;
    fail_outstanding(client);
    if (client->owns_server) {
        sl_memory_server_free(client->server);
    }
    sl_free(client);
    fn(fn_arg);
}

static void
memory_close(struct sl_state_backend *backend, sl_state_task_fn fn, void *arg)
{
    struct client *client = client_of(backend);
    bool is_heard = client->is_connected && client->cut == SL_MEMORY_CUT_NONE;
    client->closed_fn = fn;
    client->closed_arg = arg;
    client->is_connected = false;
    stop_deliveries(client);
    sl_state_executor_timer_stop(client->executor, &client->ping_timer);
    sl_state_executor_timer_stop(client->executor, &client->reconnect_timer);
    sl_list_remove(&client->node);
    sl_watch_table_take(&client->server->watches, client, NULL);
    drop_messages(&client->to_server);
    drop_messages(&client->to_client);
    if (is_heard) {
        server_end_session(client->server, client->session);
    }
    sl_state_executor_post(client->executor, on_closed, client);
}

static uint64_t
memory_session_timeout(const struct sl_state_backend *backend)
{
    const struct client *client = sl_container_of(backend, const struct client, backend);
    return client->timeout_ms;
}

struct sl_state_backend *
sl_memory_backend_new(struct sl_memory_server *server, const struct sl_state_executor *executor)
{
    struct client *client = sl_calloc(1, sizeof(*client));
    client->backend = (struct sl_state_backend){
        .name = "memory",
        .open = memory_open,
        .submit = memory_submit,
        .close = memory_close,
        .session_timeout_ms = memory_session_timeout,
    };
    client->server = server;
    client->executor = executor;
    client->timeout_ms = server->session_timeout_ms;
    sl_list_create(&client->deliveries);
    sl_list_create(&client->to_server);
    sl_list_create(&client->to_client);
    sl_list_push_back(&server->clients, &client->node);
    return &client->backend;
}

struct sl_state_backend *
sl_memory_backend_private_new(const struct sl_state_executor *executor, uint64_t seed)
{
    struct sl_memory_server *server = sl_memory_server_new(executor, seed);
    struct sl_state_backend *backend = sl_memory_backend_new(server, executor);
    client_of(backend)->owns_server = true;
    return backend;
}

void
sl_memory_backend_cut(struct sl_state_backend *backend, enum sl_memory_cut cut)
{
    struct client *client = client_of(backend);
    client->cut = cut;
    if (!client->is_connected) {
        /* Answers that a broken connection held back are lost, and their requests completed. */
        return;
    }
    /* What was held back goes on, as TCP sends again. */
    sl_list_each(&client->to_server, it)
    {
        start_delivery(client, 0, deliver_to_server);
    }
    sl_list_each(&client->to_client, it)
    {
        start_delivery(client, 0, deliver_to_client);
    }
}

void
sl_memory_backend_break_next(struct sl_state_backend *backend, enum sl_memory_break when)
{
    struct client *client = client_of(backend);
    client->breaks_next = true;
    client->break_when = when;
}

void
sl_memory_backend_crash(struct sl_state_backend *backend)
{
    struct client *client = client_of(backend);
    client->is_crashed = true;
    client->is_connected = false;
    client->cut = SL_MEMORY_CUT_BOTH;
    stop_deliveries(client);
    sl_state_executor_timer_stop(client->executor, &client->ping_timer);
    sl_state_executor_timer_stop(client->executor, &client->reconnect_timer);
    drop_messages(&client->to_server);
    drop_messages(&client->to_client);
    sl_watch_table_take(&client->server->watches, client, NULL);
}
