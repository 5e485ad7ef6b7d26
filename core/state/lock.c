#include "state/lock.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/vec.h"
#include "state/value_codec.h"

enum state {
    STATE_IDLE,
    /* Making our node. */
    STATE_CREATE,
    /* Looking who is the lowest. */
    STATE_LIST,
    /* Reading our own node for the token. */
    STATE_TOKEN,
    /* Reading the one before us, with a watch. */
    STATE_WATCH,
    /* Waiting for the one before us to go. */
    STATE_WAIT,
    STATE_HELD,
};

enum { GIVE_UP_ROUNDS_MAX = 100 };

struct sl_state_lock {
    struct sl_state_store *store;
    char *path;
    char *owner;
    sl_state_lock_event_fn fn;
    void *ctx;
    struct sl_state_listener listener;

    enum state state;
    char guid[SL_STATE_GUID_TEXT + 1];
    /* Our node, while we know it. */
    char *node;
    uint64_t token;
    uint64_t ticket;
    uint64_t watch_id;
    uint64_t deadline_timer;
    int64_t timeout_ms;
    /* A create of ours may have been carried out more than once or without our knowledge. */
    bool is_doubtful;
    /* Who is before us, for messages. */
    struct sl_state_owner holder;
    bool is_holder_known;
    sl_state_lock_done_fn done;
    void *done_ctx;
};

static void lock_create(struct sl_state_lock *self);
static void lock_list(struct sl_state_lock *self);

/*
 * Giving up a node in the background, whatever became of it: every node below the path with our
 * GUID is deleted. Ends with the session, which takes the node along.
 */
struct give_up {
    struct sl_state_store *store;
    char *path;
    char guid[SL_STATE_GUID_TEXT + 1];
    uint64_t session;
    int rounds;
};

static void give_up_look(struct give_up *self);

static void
give_up_free(struct give_up *self)
{
    sl_free(self->path);
    sl_free(self);
}

static void
on_give_up_look(void *ctx, int status, const struct sl_state_result *result)
{
    struct give_up *self = ctx;
    bool is_over = status == SL_ECLOSED || status == SL_ENOTFOUND ||
                   sl_state_store_session(self->store) != self->session;
    if (is_over || ++self->rounds > GIVE_UP_ROUNDS_MAX) {
        give_up_free(self);
        return;
    }
    size_t found = 0;
    for (size_t i = 0; status == 0 && i < result->child_count; i++) {
        if (sl_state_path_has_guid(result->children[i], self->guid)) {
            char *node = sl_state_path_join_dup(self->path, result->children[i]);
            sl_state_delete(self->store, node, SL_STATE_ANY_VERSION, NULL, NULL);
            sl_free(node);
            found++;
        }
    }
    if (status == 0 && found == 0) {
        give_up_free(self);
        return;
    }
    /* Until a look finds none; failed looks took their time limit, so this is no busy loop. */
    give_up_look(self);
}

static void
give_up_look(struct give_up *self)
{
    sl_state_children(self->store, self->path, on_give_up_look, self);
}

static void
give_up_start(struct sl_state_store *store, const char *path, const char *guid)
{
    struct give_up *self = sl_calloc(1, sizeof(*self));
    self->store = store;
    self->path = sl_strdup(path);
    self->session = sl_state_store_session(store);
    memcpy(self->guid, guid, sizeof(self->guid));
    give_up_look(self);
}

/* Stops whatever is under way. */
static void
lock_stop(struct sl_state_lock *self)
{
    sl_state_cancel(self->store, self->ticket);
    sl_state_watch_drop(self->store, self->watch_id);
    sl_state_executor_timer_stop(sl_state_store_executor(self->store), &self->deadline_timer);
    self->ticket = 0;
    self->watch_id = 0;
}

/* Back to the start; nothing of ours is known to be in the store. */
static void
lock_forget(struct sl_state_lock *self)
{
    if (self->state == STATE_HELD) {
        sl_state_store_lease_unref(self->store);
    }
    sl_free(self->node);
    self->node = NULL;
    self->token = 0;
    self->state = STATE_IDLE;
}

/* Ends an attempt that failed. The error record is set. */
static void
lock_fail(struct sl_state_lock *self, int status)
{
    sl_state_lock_done_fn done = self->done;
    void *ctx = self->done_ctx;
    struct sl_err err;
    sl_err_move(&err);
    bool has_node = self->node != NULL || self->is_doubtful || self->state == STATE_CREATE;
    lock_stop(self);
    lock_forget(self);
    if (has_node && status != SL_ECLOSED) {
        give_up_start(self->store, self->path, self->guid);
    }
    sl_err_restore(&err);
    done(ctx, status);
}

static int
set_held_error(const struct sl_state_lock *self)
{
    if (!self->is_holder_known) {
        return sl_err_set(SL_ECONFLICT, "lock %s is held", self->path);
    }
    return sl_err_set(SL_ECONFLICT, "lock %s is held by %s (process %u on %s)", self->path,
                      self->holder.name, self->holder.pid, self->holder.host);
}

static void
on_deadline(void *arg)
{
    struct sl_state_lock *self = arg;
    self->deadline_timer = 0;
    int status;
    if (self->state == STATE_WAIT || self->is_holder_known) {
        status = set_held_error(self);
    } else {
        status = sl_err_set(SL_ETIMEOUT, "lock %s: %s did not answer within %lld ms", self->path,
                            sl_state_store_name(self->store), (long long)self->timeout_ms);
    }
    lock_fail(self, status);
}

/* Whether trouble of the store's may be over after some time. */
static bool
is_passing(int status)
{
    return status == SL_ETIMEOUT || status == SL_EUNAVAIL;
}

/* Goes on after trouble while the deadline allows it, else ends the attempt. */
static bool
lock_goes_on(struct sl_state_lock *self, int status)
{
    bool is_store_alive = sl_state_store_failure(self->store) == NULL;
    bool has_time = self->timeout_ms == SL_STATE_FOREVER ||
                    (self->timeout_ms != 0 && sl_state_store_session(self->store) != 0);
    if (is_passing(status) && is_store_alive && has_time) {
        return true;
    }
    lock_fail(self, status);
    return false;
}

static void
on_created(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_state_lock *self = ctx;
    self->ticket = 0;
    if (status == 0) {
        sl_free(self->node);
        self->node = sl_strdup(result->path);
        lock_list(self);
        return;
    }
    self->is_doubtful |= status == SL_ETIMEOUT;
    if (lock_goes_on(self, status)) {
        lock_list(self);
    }
}

static void
lock_create(struct sl_state_lock *self)
{
    struct sl_state_owner owner = {.pid = (uint32_t)getpid()};
    struct sl_buf value = {0};
    strncpy(owner.name, self->owner, sizeof(owner.name) - 1);
    if (gethostname(owner.host, sizeof(owner.host) - 1) != 0) {
        owner.host[0] = '\0';
    }
    owner.wall_ms = sl_clock_wall_ms(sl_state_store_executor(self->store)->clock);
    sl_state_owner_encode(&owner, &value);
    char *path = sl_state_path_join_dup(self->path, "lock-");
    self->state = STATE_CREATE;
    self->ticket = sl_state_create_guid(self->store, path, self->guid, value.data, value.size,
                                        SL_STATE_EPHEMERAL | SL_STATE_SEQUENTIAL | SL_STATE_PARENTS,
                                        on_created, self);
    sl_free(path);
    sl_buf_destroy(&value);
}

static void
on_token(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_state_lock *self = ctx;
    self->ticket = 0;
    if (status == SL_ENOTFOUND) {
        lock_list(self);
        return;
    }
    if (status != 0) {
        if (lock_goes_on(self, status)) {
            lock_list(self);
        }
        return;
    }
    sl_state_executor_timer_stop(sl_state_store_executor(self->store), &self->deadline_timer);
    self->token = result->stat.created_zxid;
    self->state = STATE_HELD;
    sl_state_store_lease_ref(self->store);
    self->done(self->done_ctx, 0);
}

static void
on_predecessor_gone(void *ctx)
{
    struct sl_state_lock *self = ctx;
    self->watch_id = 0;
    if (self->state == STATE_WAIT) {
        lock_list(self);
    }
}

static void
on_predecessor_read(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_state_lock *self = ctx;
    self->ticket = 0;
    if (status == 0) {
        self->is_holder_known =
            sl_state_owner_decode(result->value, result->size, &self->holder) == 0;
        if (self->timeout_ms == 0) {
            lock_fail(self, set_held_error(self));
            return;
        }
        self->state = STATE_WAIT;
        if (self->watch_id == 0) {
            /* It went while it was read. */
            lock_list(self);
        }
        return;
    }
    sl_state_watch_drop(self->store, self->watch_id);
    self->watch_id = 0;
    if (status == SL_ENOTFOUND || status == SL_EPROTO || lock_goes_on(self, status)) {
        lock_list(self);
    }
}

/* Sets *own and *before to the places of our node and of the one before it, or to count. */
static void
find_places(const struct sl_state_lock *self, const struct sl_state_result *result, size_t *own,
            size_t *before)
{
    size_t count = result->child_count;
    *own = count;
    *before = count;
    for (size_t i = 0; i < count; i++) {
        if (sl_state_path_has_guid(result->children[i], self->guid) &&
            (*own == count || sl_state_path_sequence(result->children[i]) <
                                  sl_state_path_sequence(result->children[*own]))) {
            *own = i;
        }
    }
    int64_t own_number = *own < count ? sl_state_path_sequence(result->children[*own]) : -1;
    int64_t best = -1;
    for (size_t i = 0; i < count; i++) {
        int64_t number = sl_state_path_sequence(result->children[i]);
        if (number >= 0 && number < own_number && number > best) {
            best = number;
            *before = i;
        }
    }
}

static void
on_listed(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_state_lock *self = ctx;
    self->ticket = 0;
    if (status != 0 && status != SL_ENOTFOUND) {
        if (lock_goes_on(self, status)) {
            lock_list(self);
        }
        return;
    }
    size_t own = 0;
    size_t before = 0;
    find_places(self, result, &own, &before);
    sl_free(self->node);
    self->node = NULL;
    if (own == result->child_count) {
        lock_create(self);
        return;
    }
    self->node = sl_state_path_join_dup(self->path, result->children[own]);
    if (before == result->child_count) {
        self->state = STATE_TOKEN;
        self->ticket = sl_state_get(self->store, self->node, on_token, self);
        return;
    }
    char *path = sl_state_path_join_dup(self->path, result->children[before]);
    self->state = STATE_WATCH;
    self->ticket = sl_state_read_watched(self->store, SL_STATE_GET, path, &self->watch_id,
                                         on_predecessor_gone, self, on_predecessor_read, self);
    sl_free(path);
}

static void
lock_list(struct sl_state_lock *self)
{
    self->state = STATE_LIST;
    self->ticket = sl_state_children(self->store, self->path, on_listed, self);
}

static void
lock_on_expired(struct sl_state_lock *self)
{
    if (self->state == STATE_HELD) {
        lock_forget(self);
        if (self->fn != NULL) {
            self->fn(self->ctx, SL_STATE_LOCK_LOST);
        }
        return;
    }
    /* Our node went with the session: look again, under another GUID. */
    sl_state_cancel(self->store, self->ticket);
    sl_state_watch_drop(self->store, self->watch_id);
    self->watch_id = 0;
    self->is_doubtful = false;
    sl_state_store_guid(self->store, self->guid);
    lock_create(self);
}

static void
on_session(void *ctx, enum sl_state_session_event event, uint64_t session)
{
    struct sl_state_lock *self = ctx;
    (void)session;
    if (self->state == STATE_IDLE) {
        return;
    }
    if (event == SL_STATE_SESSION_EXPIRED) {
        lock_on_expired(self);
    } else if (self->state == STATE_HELD && self->fn != NULL &&
               event != SL_STATE_SESSION_CONNECTED && event != SL_STATE_SESSION_FAILED) {
        self->fn(self->ctx, event == SL_STATE_SESSION_SUSPENDED ? SL_STATE_LOCK_SUSPENDED
                                                                : SL_STATE_LOCK_RESUMED);
    }
}

struct sl_state_lock *
sl_state_lock_new(struct sl_state_store *store, const char *path, const char *owner,
                  sl_state_lock_event_fn fn, void *ctx)
{
    struct sl_state_lock *self = sl_calloc(1, sizeof(*self));
    self->store = store;
    self->path = sl_strdup(path);
    self->owner = sl_strdup(owner);
    self->fn = fn;
    self->ctx = ctx;
    self->listener.fn = on_session;
    self->listener.ctx = self;
    sl_state_store_listen(store, &self->listener);
    return self;
}

void
sl_state_lock_free(struct sl_state_lock *self)
{
    if (self == NULL) {
        return;
    }
    bool has_node = self->state != STATE_IDLE || self->is_doubtful;
    lock_stop(self);
    lock_forget(self);
    sl_state_store_unlisten(&self->listener);
    if (has_node) {
        give_up_start(self->store, self->path, self->guid);
    }
    sl_free(self->path);
    sl_free(self->owner);
    sl_free(self);
}

void
sl_state_lock_acquire(struct sl_state_lock *self, int64_t timeout_ms, sl_state_lock_done_fn done,
                      void *ctx)
{
    sl_assert_eq(self->state, STATE_IDLE);
    self->done = done;
    self->done_ctx = ctx;
    self->timeout_ms = timeout_ms;
    self->is_doubtful = false;
    self->is_holder_known = false;
    sl_state_store_guid(self->store, self->guid);
    if (timeout_ms > 0) {
        self->deadline_timer = sl_state_executor_timer_start(
            sl_state_store_executor(self->store), (uint64_t)timeout_ms, on_deadline, self);
    }
    lock_create(self);
}

/* A release under way; it outlives the lock. */
struct release {
    struct sl_state_store *store;
    char *path;
    char guid[SL_STATE_GUID_TEXT + 1];
    bool is_doubtful;
    sl_state_lock_done_fn done;
    void *ctx;
};

static void
on_released(void *ctx, int status, const struct sl_state_result *result)
{
    struct release *release = ctx;
    (void)result;
    if (status == SL_ENOTFOUND) {
        status = 0;
    }
    if ((status != 0 || release->is_doubtful) && status != SL_ECLOSED) {
        give_up_start(release->store, release->path, release->guid);
    }
    if (release->done != NULL) {
        release->done(release->ctx, status);
    }
    sl_free(release->path);
    sl_free(release);
}

void
sl_state_lock_release(struct sl_state_lock *self, sl_state_lock_done_fn done, void *ctx)
{
    sl_assert_eq(self->state, STATE_HELD);
    struct release *release = sl_calloc(1, sizeof(*release));
    release->store = self->store;
    release->path = sl_strdup(self->path);
    memcpy(release->guid, self->guid, sizeof(self->guid));
    release->is_doubtful = self->is_doubtful;
    release->done = done;
    release->ctx = ctx;
    sl_state_delete(self->store, self->node, SL_STATE_ANY_VERSION, on_released, release);
    self->is_doubtful = false;
    lock_forget(self);
}

bool
sl_state_lock_is_held(const struct sl_state_lock *self)
{
    return self->state == STATE_HELD;
}

uint64_t
sl_state_lock_token(const struct sl_state_lock *self)
{
    return self->token;
}

const char *
sl_state_lock_node(const struct sl_state_lock *self)
{
    return self->state == STATE_HELD ? self->node : NULL;
}

/* A fenced transaction under way; it outlives the lock. */
struct commit {
    char *path;
    sl_state_done_fn done;
    void *ctx;
};

static void
on_commit(void *ctx, int status, const struct sl_state_result *result)
{
    struct commit *commit = ctx;
    struct sl_state_result ours = *result;
    if (status == SL_ENOTFOUND && result->op_count > 0 && result->failed == 0) {
        status =
            sl_err_set(SL_EFENCED, "lock %s is no longer ours; nothing was changed", commit->path);
    }
    if (ours.op_count > 0) {
        ours.ops++;
        ours.op_count--;
        ours.failed -= ours.failed > 0;
    }
    if (ours.op_count > 0) {
        ours.path = ours.ops[0].path;
        ours.stat = ours.ops[0].stat;
    }
    if (commit->done != NULL) {
        commit->done(commit->ctx, status, &ours);
    }
    sl_free(commit->path);
    sl_free(commit);
}

void
sl_state_lock_commit(struct sl_state_lock *self, const struct sl_state_op *ops, size_t count,
                     sl_state_done_fn done, void *ctx)
{
    struct commit *commit = sl_calloc(1, sizeof(*commit));
    commit->path = sl_strdup(self->path);
    commit->done = done;
    commit->ctx = ctx;
    struct sl_state_op *guarded = sl_calloc(count + 1, sizeof(*guarded));
    /* Without the lock (a node that waits for it is not enough) the guard is never there. */
    char *missing = sl_state_path_join_dup(self->path, "_c_lost");
    const char *node = sl_state_lock_node(self);
    guarded[0] = sl_state_op_check(node != NULL ? node : missing, SL_STATE_ANY_VERSION);
    if (count > 0) {
        memcpy(&guarded[1], ops, count * sizeof(*ops));
    }
    sl_state_multi(self->store, guarded, count + 1, on_commit, commit);
    sl_free(missing);
    sl_free(guarded);
}
