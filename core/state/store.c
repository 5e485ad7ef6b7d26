#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/log.h"
#include "state/store_priv.h"

static void lease_start(struct sl_state_store *self);

static uint64_t
now_ms(const struct sl_state_store *self)
{
    return sl_state_executor_now_ms(self->executor);
}

/* For how long after its last contact a session is certainly alive; 0: always. */
static uint64_t
lease_limit_ms(const struct sl_state_store *self)
{
    uint64_t timeout = self->backend->session_timeout_ms(self->backend);
    if (timeout == 0) {
        return 0;
    }
    uint64_t margin = timeout / 20 > 50 ? timeout / 20 : 50;
    uint64_t reserve = timeout / 3 + margin;
    return timeout > reserve ? timeout - reserve : 1;
}

static bool
lease_is_good(const struct sl_state_store *self)
{
    uint64_t limit = lease_limit_ms(self);
    return limit == 0 || now_ms(self) - self->contact_ms < limit;
}

static void
tell_listeners(struct sl_state_store *self, enum sl_state_session_event event)
{
    /* Listeners may leave, or free one another, while they are told. */
    struct sl_list waiting;
    struct sl_list_node *node;
    sl_list_create(&waiting);
    while ((node = sl_list_pop_front(&self->listeners)) != NULL) {
        sl_list_push_back(&waiting, node);
    }
    while ((node = sl_list_pop_front(&waiting)) != NULL) {
        struct sl_state_listener *listener = sl_container_of(node, struct sl_state_listener, node);
        sl_list_push_back(&self->listeners, node);
        if (event == SL_STATE_SESSION_FAILED) {
            sl_err_set(SL_EUNAVAIL, "%s", self->failure);
        }
        listener->fn(listener->ctx, event, self->session);
    }
}

static void
suspend(struct sl_state_store *self)
{
    if (!self->is_suspended && self->session != 0) {
        self->is_suspended = true;
        tell_listeners(self, SL_STATE_SESSION_SUSPENDED);
    }
}

static void
resume(struct sl_state_store *self)
{
    if (self->is_suspended && self->is_up) {
        self->is_suspended = false;
        tell_listeners(self, SL_STATE_SESSION_RESUMED);
    }
}

/* Sends what waits for a connection, in order. Calls that start meanwhile are behind these. */
static void
step_parked(struct sl_state_store *self)
{
    SL_VEC(uint64_t) tickets = SL_VEC_INIT;
    sl_list_each(&self->calls, it)
    {
        struct sl__state_call *call = sl_container_of(it, struct sl__state_call, node);
        if (call->is_parked) {
            sl_vec_push(&tickets, call->ticket);
        }
    }
    for (size_t i = 0; i < tickets.count; i++) {
        struct sl__state_call *call = sl_map_u64_get_ptr(&self->calls_by_ticket, tickets.items[i]);
        if (call != NULL && call->is_parked) {
            sl__state_call_step(call);
        }
    }
    sl_vec_destroy(&tickets);
}

static void
fire_all_watches(struct sl_state_store *self)
{
    SL_VEC(uint64_t) ids = SL_VEC_INIT;
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->watches, &at)) != NULL;) {
        sl_vec_push(&ids, entry->key);
    }
    for (size_t i = 0; i < ids.count; i++) {
        struct sl__state_watch *watch = sl_map_u64_remove_ptr(&self->watches, ids.items[i]);
        if (watch != NULL) {
            watch->fn(watch->ctx);
            sl_free(watch);
        }
    }
    sl_vec_destroy(&ids);
}

static void
set_down_reason(struct sl_state_store *self, const char *reason)
{
    sl_free(self->down_reason);
    self->down_reason = reason != NULL ? sl_strdup(reason) : NULL;
}

static void
on_up(struct sl_state_store *self, uint64_t session)
{
    bool is_new = session != self->session;
    set_down_reason(self, NULL);
    self->is_up = true;
    self->session = session;
    self->contact_ms = now_ms(self);
    lease_start(self);
    if (is_new) {
        self->is_suspended = false;
        tell_listeners(self, SL_STATE_SESSION_CONNECTED);
    } else {
        resume(self);
    }
    step_parked(self);
}

static void
on_expired(struct sl_state_store *self)
{
    self->is_up = false;
    if (self->session != 0) {
        self->is_suspended = true;
        tell_listeners(self, SL_STATE_SESSION_EXPIRED);
        self->session = 0;
    }
    fire_all_watches(self);
}

static void
on_failed(struct sl_state_store *self, const char *reason)
{
    self->is_up = false;
    if (self->failure == NULL) {
        self->failure = sl_strdup(reason);
        tell_listeners(self, SL_STATE_SESSION_FAILED);
        SL_VEC(uint64_t) tickets = SL_VEC_INIT;
        sl_list_each(&self->calls, it)
        {
            sl_vec_push(&tickets, sl_container_of(it, struct sl__state_call, node)->ticket);
        }
        for (size_t i = 0; i < tickets.count; i++) {
            struct sl__state_call *call =
                sl_map_u64_get_ptr(&self->calls_by_ticket, tickets.items[i]);
            if (call != NULL && call->is_parked) {
                sl__state_call_fail(call, SL_EUNAVAIL, self->failure);
            }
        }
        sl_vec_destroy(&tickets);
    }
}

static void
on_link(void *ctx, enum sl_state_link link, uint64_t session, const char *reason)
{
    struct sl_state_store *self = ctx;
    if (self->is_closing) {
        self->is_up = false;
        return;
    }
    switch (link) {
    case SL_STATE_LINK_UP:
        on_up(self, session);
        break;
    case SL_STATE_LINK_DOWN:
        self->is_up = false;
        set_down_reason(self, reason);
        suspend(self);
        break;
    case SL_STATE_LINK_EXPIRED:
        on_expired(self);
        break;
    case SL_STATE_LINK_FAILED:
        on_failed(self, reason != NULL ? reason : "failed");
        break;
    }
}

static void
on_complete(void *ctx, struct sl_state_request *request)
{
    struct sl_state_store *self = ctx;
    struct sl__state_call *call = request->call;
    if (!request->is_unknown && request->status != SL_ECLOSED) {
        if (request->sent_ms > self->contact_ms) {
            self->contact_ms = request->sent_ms;
        }
        if (!self->is_closing && lease_is_good(self)) {
            resume(self);
        }
    }
    if (call == NULL) {
        sl__state_request_free(request);
        return;
    }
    if (call->ticket == 0) {
        /* The lease's own ping. */
        self->is_pinging = false;
        sl_free(call);
        sl__state_request_free(request);
        return;
    }
    call->request = NULL;
    sl__state_call_complete(call, request);
    sl__state_request_free(request);
}

static void
on_watch(void *ctx, uint64_t watch_id)
{
    struct sl_state_store *self = ctx;
    struct sl__state_watch *watch = sl_map_u64_remove_ptr(&self->watches, watch_id);
    if (watch != NULL) {
        if (!self->is_closing) {
            watch->fn(watch->ctx);
        }
        sl_free(watch);
    }
}

struct sl_state_store *
sl_state_store_new(struct sl_state_backend *take_backend, const struct sl_state_executor *executor,
                   const struct sl_state_options *options)
{
    struct sl_state_store *self = sl_calloc(1, sizeof(*self));
    uint64_t seed = options != NULL && options->seed != 0 ? options->seed : sl_random_entropy();
    self->backend = take_backend;
    self->executor = executor;
    self->name = sl_strdup(take_backend->name);
    self->timeout_ms =
        options != NULL && options->timeout_ms != 0 ? options->timeout_ms : SL_STATE_TIMEOUT_MS;
    sl_random_seed(&self->random, seed);
    for (size_t i = 0; i < SL_STATE_WRITER_BYTES; i++) {
        self->writer[i] = (uint8_t)sl_random_u64(&self->random);
    }
    sl_list_create(&self->listeners);
    sl_list_create(&self->calls);
    struct sl_state_backend_events events = {on_link, on_complete, on_watch, self};
    take_backend->open(take_backend, &events);
    return self;
}

static void
store_free(struct sl_state_store *self)
{
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->watches, &at)) != NULL;) {
        sl_free((void *)(uintptr_t)entry->value);
    }
    sl_map_u64_destroy(&self->watches);
    sl_map_u64_destroy(&self->calls_by_ticket);
    sl_free(self->down_reason);
    sl_free(self->failure);
    sl_free(self->name);
    sl_free(self);
}

static void
on_backend_closed(void *arg)
{
    struct sl_state_store *self = arg;
    sl_state_executor_timer_stop(self->executor, &self->lease_timer);
    /* A callback may start another call; that one is dropped, or a retry would go on for ever. */
    uint64_t last = self->last_ticket;
    struct sl_list_node *node;
    while ((node = sl_list_first(&self->calls)) != NULL) {
        struct sl__state_call *call = sl_container_of(node, struct sl__state_call, node);
        if (call->ticket <= last) {
            sl__state_call_fail(call, SL_ECLOSED, "the state manager is being closed");
        } else {
            sl__state_call_free(call);
        }
    }
    sl_state_task_fn fn = self->closed_fn;
    void *fn_arg = self->closed_arg;
    sl_list_each(&self->listeners, it)
    {
        sl_list_remove(it);
    }
    store_free(self);
    if (fn != NULL) {
        fn(fn_arg);
    }
}

void
sl_state_store_close(struct sl_state_store *self, sl_state_task_fn fn, void *arg)
{
    sl_assert(!self->is_closing);
    self->is_closing = true;
    self->is_up = false;
    self->closed_fn = fn;
    self->closed_arg = arg;
    self->backend->close(self->backend, on_backend_closed, self);
}

const char *
sl_state_store_name(const struct sl_state_store *self)
{
    return self->name;
}

const struct sl_state_executor *
sl_state_store_executor(const struct sl_state_store *self)
{
    return self->executor;
}

const char *
sl_state_store_failure(const struct sl_state_store *self)
{
    return self->failure;
}

uint64_t
sl_state_store_session(const struct sl_state_store *self)
{
    return self->session;
}

bool
sl_state_store_is_safe(const struct sl_state_store *self)
{
    return self->is_up && self->session != 0 && lease_is_good(self);
}

void
sl_state_store_listen(struct sl_state_store *self, struct sl_state_listener *listener)
{
    sl_list_push_back(&self->listeners, &listener->node);
}

void
sl_state_store_unlisten(struct sl_state_listener *listener)
{
    sl_list_remove(&listener->node);
}

void
sl_state_store_guid(struct sl_state_store *self, char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SL_STATE_GUID_TEXT; i++) {
        text[i] = digits[sl_random_u64(&self->random) & 15];
    }
    text[SL_STATE_GUID_TEXT] = '\0';
}

/* Asks for the root, only to hear from the server. */
static void
lease_ping(struct sl_state_store *self)
{
    if (self->is_pinging) {
        return;
    }
    struct sl_state_request *request = sl__state_request_new(SL_STATE_GET, 1);
    request->ops[0].kind = SL_STATE_GET;
    request->ops[0].path = sl_strdup("/");
    /* A call without a ticket marks the request as a ping. */
    request->call = sl_calloc(1, sizeof(struct sl__state_call));
    self->is_pinging = true;
    sl__state_store_submit(self, request);
}

static void
on_lease_timer(void *arg)
{
    struct sl_state_store *self = arg;
    self->lease_timer = 0;
    if (!lease_is_good(self)) {
        suspend(self);
    }
    if (self->is_up) {
        lease_ping(self);
    }
    lease_start(self);
}

/* Sets the timer that pings, and notices the end of the lease on time. */
static void
lease_start(struct sl_state_store *self)
{
    uint64_t limit = lease_limit_ms(self);
    sl_state_executor_timer_stop(self->executor, &self->lease_timer);
    if (self->lease_refs == 0 || limit == 0 || !self->is_up || self->is_closing) {
        return;
    }
    uint64_t delay = self->backend->session_timeout_ms(self->backend) / 6;
    uint64_t age = now_ms(self) - self->contact_ms;
    if (age < limit && limit - age < delay) {
        delay = limit - age;
    }
    self->lease_timer =
        sl_state_executor_timer_start(self->executor, delay > 0 ? delay : 1, on_lease_timer, self);
}

void
sl_state_store_lease_ref(struct sl_state_store *self)
{
    self->lease_refs++;
    if (self->lease_refs == 1 && self->is_up) {
        /* The last contact may be long ago, since nobody counted on it. */
        lease_ping(self);
        lease_start(self);
    }
}

void
sl_state_store_lease_unref(struct sl_state_store *self)
{
    sl_assert_lt(0, self->lease_refs);
    self->lease_refs--;
    if (self->lease_refs == 0) {
        sl_state_executor_timer_stop(self->executor, &self->lease_timer);
    }
}

void
sl_state_watch_drop(struct sl_state_store *self, uint64_t watch_id)
{
    sl_free(sl_map_u64_remove_ptr(&self->watches, watch_id));
}

void
sl__state_store_submit(struct sl_state_store *self, struct sl_state_request *request)
{
    request->sent_ms = now_ms(self);
    request->session = self->session;
    self->backend->submit(self->backend, request);
}

struct sl_state_request *
sl__state_request_new(enum sl_state_op_kind kind, size_t op_count)
{
    struct sl_state_request *request = sl_calloc(1, sizeof(*request));
    request->kind = kind;
    request->ops = sl_calloc(op_count > 0 ? op_count : 1, sizeof(*request->ops));
    request->op_count = op_count;
    return request;
}

void
sl__state_request_free(struct sl_state_request *request)
{
    for (size_t i = 0; i < request->op_count; i++) {
        sl_free((void *)(uintptr_t)request->ops[i].path);
        sl_free((void *)(uintptr_t)request->ops[i].value);
        if (request->results != NULL) {
            sl_free(request->results[i].path);
        }
    }
    for (size_t i = 0; i < request->children.count; i++) {
        sl_free(request->children.items[i]);
    }
    sl_vec_destroy(&request->children);
    sl_buf_destroy(&request->data);
    sl_free(request->results);
    sl_free(request->detail);
    sl_free(request->ops);
    sl_free(request);
}

void
sl_state_request_set_results(struct sl_state_request *request, int status, size_t failed)
{
    request->status = status;
    if (request->results == NULL) {
        request->results =
            sl_calloc(request->op_count > 0 ? request->op_count : 1, sizeof(*request->results));
    }
    for (size_t i = 0; i < request->op_count; i++) {
        int op_status = i < failed ? 0 : i == failed ? status : SL_ECANCELED;
        request->results[i].status = status == 0 ? 0 : op_status;
    }
}
