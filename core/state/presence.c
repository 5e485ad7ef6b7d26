#include "state/presence.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "state/watch.h"

enum {
    /* Between a write that failed and the next. */
    RETRY_MS = 500,
};

struct sl_state_presence {
    struct sl_state_store *store;
    char *path;
    struct sl_buf value;
    sl_state_presence_fn fn;
    void *ctx;
    struct sl_state_watch *watch;
    struct sl_state_listener listener;
    /* The write under way, or 0. */
    uint64_t ticket;
    uint64_t retry_timer;
    /* Our value is not what was written last. */
    bool is_dirty;
    /* The owner was told of this, so that it hears of changes only. */
    int told;
    bool is_in_place;
};

static void
tell(struct sl_state_presence *self, int status)
{
    if (self->told != status) {
        self->told = status;
        self->fn(self->ctx, status);
    }
}

static void write_again(void *arg);

static void
on_written(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_state_presence *self = ctx;
    (void)result;
    self->ticket = 0;
    if (status == SL_ECLOSED) {
        return;
    }
    if (status == 0) {
        self->is_in_place = true;
        tell(self, 0);
    } else if (status != SL_EEXIST && status != SL_ENOTFOUND && status != SL_ECONFLICT) {
        /* What is in the way is told by the watch. */
        const struct sl_state_executor *executor = sl_state_store_executor(self->store);
        sl_state_executor_timer_stop(executor, &self->retry_timer);
        self->is_dirty = true;
        self->retry_timer = sl_state_executor_timer_start(executor, RETRY_MS, write_again, self);
        tell(self, status);
    }
}

static void
write_create(struct sl_state_presence *self)
{
    sl_state_cancel(self->store, self->ticket);
    self->is_dirty = false;
    self->ticket = sl_state_create(self->store, self->path, self->value.data, self->value.size,
                                   SL_STATE_EPHEMERAL | SL_STATE_PARENTS, on_written, self);
}

static void
write_set(struct sl_state_presence *self)
{
    sl_state_cancel(self->store, self->ticket);
    self->is_dirty = false;
    self->ticket = sl_state_set(self->store, self->path, self->value.data, self->value.size,
                                SL_STATE_ANY_VERSION, on_written, self);
}

static void
write_again(void *arg)
{
    struct sl_state_presence *self = arg;
    self->retry_timer = 0;
    if (self->is_dirty && self->is_in_place) {
        write_set(self);
    } else if (self->is_dirty) {
        write_create(self);
    }
}

static void
on_view(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_state_presence *self = ctx;
    if (status == SL_ENOTFOUND) {
        self->is_in_place = false;
        write_create(self);
        return;
    }
    if (status != 0) {
        tell(self, status);
        return;
    }
    self->is_in_place = result->stat.owner == sl_state_store_session(self->store);
    if (!self->is_in_place) {
        sl_err_set(SL_EEXIST, "%s belongs to another session", self->path);
        tell(self, SL_EEXIST);
        return;
    }
    bool is_same =
        result->size == self->value.size &&
        (result->size == 0 || memcmp(result->value, self->value.data, result->size) == 0);
    if (!is_same && self->ticket == 0) {
        write_set(self);
    } else if (is_same) {
        tell(self, 0);
    }
}

static void
on_session(void *ctx, enum sl_state_session_event event, uint64_t session)
{
    struct sl_state_presence *self = ctx;
    (void)session;
    if (event == SL_STATE_SESSION_EXPIRED) {
        /* The watch reads again with the next session and finds the node gone. */
        self->is_in_place = false;
        sl_err_set(SL_ECLOSED, "the session is over");
        tell(self, SL_ECLOSED);
    }
}

struct sl_state_presence *
sl_state_presence_new(struct sl_state_store *store, const char *path, const void *value,
                      size_t size, sl_state_presence_fn fn, void *ctx)
{
    struct sl_state_presence *self = sl_calloc(1, sizeof(*self));
    self->store = store;
    self->path = sl_strdup(path);
    sl_buf_append(&self->value, value, size);
    self->fn = fn;
    self->ctx = ctx;
    self->told = 1;
    self->listener.fn = on_session;
    self->listener.ctx = self;
    sl_state_store_listen(store, &self->listener);
    self->watch = sl_state_watch_new(store, SL_STATE_GET, path, on_view, self);
    return self;
}

/* Deleting the node if, and only if, it is ours; outlives the presence. */
struct farewell {
    struct sl_state_store *store;
    char *path;
};

static void
on_farewell_read(void *ctx, int status, const struct sl_state_result *result)
{
    struct farewell *farewell = ctx;
    if (status == 0 && result->stat.owner == sl_state_store_session(farewell->store)) {
        sl_state_delete(farewell->store, farewell->path, result->stat.version, NULL, NULL);
    }
    sl_free(farewell->path);
    sl_free(farewell);
}

void
sl_state_presence_free(struct sl_state_presence *self)
{
    if (self == NULL) {
        return;
    }
    sl_state_watch_free(self->watch);
    sl_state_executor_timer_stop(sl_state_store_executor(self->store), &self->retry_timer);
    sl_state_cancel(self->store, self->ticket);
    sl_state_store_unlisten(&self->listener);
    if (self->is_in_place || self->ticket != 0) {
        struct farewell *farewell = sl_calloc(1, sizeof(*farewell));
        farewell->store = self->store;
        farewell->path = sl_strdup(self->path);
        sl_state_get(self->store, self->path, on_farewell_read, farewell);
    }
    sl_buf_destroy(&self->value);
    sl_free(self->path);
    sl_free(self);
}

void
sl_state_presence_set(struct sl_state_presence *self, const void *value, size_t size)
{
    sl_buf_clear(&self->value);
    sl_buf_append(&self->value, value, size);
    if (self->is_in_place) {
        write_set(self);
    }
}
