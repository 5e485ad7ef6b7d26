#include "state/election.h"

#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "state/lock.h"
#include "state/value_codec.h"
#include "state/watch.h"

enum {
    /* Between an attempt that failed and the next. */
    RETRY_MS = 500,
};

struct sl_state_election {
    struct sl_state_store *store;
    char *leader_path;
    char *id;
    char *address;
    sl_state_election_fn fn;
    void *ctx;
    struct sl_state_lock *lock;
    /* The lock's token once the name is published, else 0. */
    uint64_t token;
    uint64_t retry_timer;
    uint64_t ticket;
    /* While we lead: what others did to our name. */
    struct sl_state_watch *watch;
};

static void election_stand(struct sl_state_election *self);
static void election_look(struct sl_state_election *self);

static void
on_retry(void *arg)
{
    struct sl_state_election *self = arg;
    self->retry_timer = 0;
    if (sl_state_lock_is_held(self->lock)) {
        election_look(self);
    } else {
        election_stand(self);
    }
}

static void
retry_later(struct sl_state_election *self)
{
    const struct sl_state_executor *executor = sl_state_store_executor(self->store);
    sl_state_executor_timer_stop(executor, &self->retry_timer);
    self->retry_timer = sl_state_executor_timer_start(executor, RETRY_MS, on_retry, self);
}

static bool
is_our_name(const struct sl_state_election *self, const struct sl_state_result *result)
{
    struct sl_state_leader_info info;
    return sl_state_leader_info_decode(result->value, result->size, &info) == 0 &&
           info.token == sl_state_lock_token(self->lock);
}

/* Somebody deleted or overwrote our name, by hand or by mistake: followers would go astray. */
static void
on_leader_node(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_state_election *self = ctx;
    bool is_changed = status == SL_ENOTFOUND || status == SL_EPROTO ||
                      (status == 0 && !is_our_name(self, result));
    if (is_changed && self->ticket == 0 && sl_state_lock_is_held(self->lock)) {
        election_look(self);
    }
}

/* Our name stands: for the first time in this term, or again. */
static void
granted(struct sl_state_election *self)
{
    if (self->token != 0) {
        return;
    }
    self->token = sl_state_lock_token(self->lock);
    self->watch =
        sl_state_watch_new(self->store, SL_STATE_GET, self->leader_path, on_leader_node, self);
    self->fn(self->ctx, SL_STATE_ELECTION_GRANTED, self->token);
}

static void
stop_watch(struct sl_state_election *self)
{
    sl_state_watch_free(self->watch);
    self->watch = NULL;
}

static void
on_published(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_state_election *self = ctx;
    (void)result;
    self->ticket = 0;
    if (!sl_state_lock_is_held(self->lock) || status == SL_ECLOSED) {
        return;
    }
    if (status == 0) {
        granted(self);
    } else {
        retry_later(self);
    }
}

/* Writes our name where `found` says what is there: 0 a node of this version, or SL_ENOTFOUND. */
static void
publish(struct sl_state_election *self, int found, int32_t version)
{
    struct sl_state_leader_info info = {.token = sl_state_lock_token(self->lock)};
    struct sl_buf value = {0};
    struct sl_state_op ops[3];
    size_t count = 0;
    strncpy(info.id, self->id, sizeof(info.id) - 1);
    strncpy(info.address, self->address, sizeof(info.address) - 1);
    sl_state_leader_info_encode(&info, &value);
    ops[count++] = sl_state_op_check(sl_state_lock_node(self->lock), SL_STATE_ANY_VERSION);
    if (found == 0) {
        /* A predecessor's, which is gone or gave way; its ephemeral node would go with it. */
        ops[count++] = sl_state_op_delete(self->leader_path, version);
    }
    ops[count++] =
        sl_state_op_create(self->leader_path, value.data, value.size, SL_STATE_EPHEMERAL);
    self->ticket = sl_state_multi(self->store, ops, count, on_published, self);
    sl_buf_destroy(&value);
}

static void
on_looked(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_state_election *self = ctx;
    self->ticket = 0;
    if (!sl_state_lock_is_held(self->lock) || status == SL_ECLOSED) {
        return;
    }
    if (status == 0 && is_our_name(self, result)) {
        granted(self);
        return;
    }
    if (status == 0 || status == SL_ENOTFOUND) {
        publish(self, status, result->stat.version);
    } else if (status == SL_EPROTO) {
        /* Not written by a store: whatever it is, it is in the way. */
        publish(self, 0, SL_STATE_ANY_VERSION);
    } else {
        retry_later(self);
    }
}

static void
election_look(struct sl_state_election *self)
{
    self->ticket = sl_state_get(self->store, self->leader_path, on_looked, self);
}

static void
on_lock(void *ctx, int status)
{
    struct sl_state_election *self = ctx;
    if (status == 0) {
        election_look(self);
    } else if (status != SL_ECLOSED) {
        retry_later(self);
    }
}

static void
on_lock_event(void *ctx, enum sl_state_lock_event event)
{
    struct sl_state_election *self = ctx;
    uint64_t token = self->token;
    if (event == SL_STATE_LOCK_LOST) {
        self->token = 0;
        stop_watch(self);
        sl_state_cancel(self->store, self->ticket);
        self->ticket = 0;
        sl_state_executor_timer_stop(sl_state_store_executor(self->store), &self->retry_timer);
        election_stand(self);
        if (token != 0) {
            self->fn(self->ctx, SL_STATE_ELECTION_REVOKED, token);
        }
    } else if (token != 0) {
        self->fn(self->ctx,
                 event == SL_STATE_LOCK_SUSPENDED ? SL_STATE_ELECTION_SUSPENDED
                                                  : SL_STATE_ELECTION_RESUMED,
                 token);
    }
}

static void
election_stand(struct sl_state_election *self)
{
    sl_state_lock_acquire(self->lock, SL_STATE_FOREVER, on_lock, self);
}

struct sl_state_election *
sl_state_election_new(struct sl_state_store *store, const char *path, const char *id,
                      const char *address, sl_state_election_fn fn, void *ctx)
{
    struct sl_state_election *self = sl_calloc(1, sizeof(*self));
    char *lock_path = sl_state_path_join_dup(path, "lock");
    self->store = store;
    self->leader_path = sl_state_path_join_dup(path, "leader");
    self->id = sl_strdup(id);
    self->address = sl_strdup(address);
    self->fn = fn;
    self->ctx = ctx;
    self->lock = sl_state_lock_new(store, lock_path, id, on_lock_event, self);
    sl_free(lock_path);
    election_stand(self);
    return self;
}

void
sl_state_election_free(struct sl_state_election *self)
{
    if (self == NULL) {
        return;
    }
    stop_watch(self);
    sl_state_cancel(self->store, self->ticket);
    sl_state_executor_timer_stop(sl_state_store_executor(self->store), &self->retry_timer);
    if (sl_state_lock_is_held(self->lock)) {
        /* Only our own: the guard fails when the lock is another's by now. */
        struct sl_state_op ops[] = {
            sl_state_op_check(sl_state_lock_node(self->lock), SL_STATE_ANY_VERSION),
            sl_state_op_delete(self->leader_path, SL_STATE_ANY_VERSION),
        };
        sl_state_multi(self->store, ops, 2, NULL, NULL);
    }
    sl_state_lock_free(self->lock);
    sl_free(self->leader_path);
    sl_free(self->id);
    sl_free(self->address);
    sl_free(self);
}

uint64_t
sl_state_election_token(const struct sl_state_election *self)
{
    return self->token;
}

void
sl_state_election_commit(struct sl_state_election *self, const struct sl_state_op *ops,
                         size_t count, sl_state_done_fn done, void *ctx)
{
    sl_state_lock_commit(self->lock, ops, count, done, ctx);
}
