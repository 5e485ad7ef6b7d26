#include "state/watch.h"

#include <string.h>

#include "base/alloc.h"
#include "base/err.h"

enum {
    /* Between a read that failed and the next. */
    RETRY_MS = 200,
};

/* What was told last, as far as it tells states apart. */
struct told {
    bool is_any;
    int status;
    uint64_t created_zxid;
    uint64_t changed_zxid;
};

struct sl_state_watch {
    struct sl_state_store *store;
    enum sl_state_op_kind kind;
    char *path;
    sl_state_view_fn fn;
    void *ctx;
    /* The read under way, or 0. */
    uint64_t ticket;
    /* The armed watch, or 0. */
    uint64_t watch_id;
    uint64_t retry_timer;
    /* The node changed while it was read. */
    bool is_stale;
    struct told told;
};

static void watch_read(struct sl_state_watch *self);

static void
on_event(void *ctx)
{
    struct sl_state_watch *self = ctx;
    self->watch_id = 0;
    if (self->ticket != 0) {
        self->is_stale = true;
        return;
    }
    watch_read(self);
}

static void
on_retry(void *arg)
{
    struct sl_state_watch *self = arg;
    self->retry_timer = 0;
    watch_read(self);
}

static void
on_read(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_state_watch *self = ctx;
    self->ticket = 0;
    bool is_state = status == 0 || status == SL_ENOTFOUND || status == SL_EPROTO;
    if (status == SL_ECLOSED) {
        return;
    }
    if (!is_state) {
        sl_state_watch_drop(self->store, self->watch_id);
        self->watch_id = 0;
        self->is_stale = false;
        self->retry_timer = sl_state_executor_timer_start(sl_state_store_executor(self->store),
                                                          RETRY_MS, on_retry, self);
    } else if (self->is_stale) {
        self->is_stale = false;
        watch_read(self);
    }
    struct told now = {
        .is_any = true,
        .status = status,
        .created_zxid = status == 0 ? result->stat.created_zxid : 0,
        .changed_zxid = status != 0                  ? 0
                        : self->kind == SL_STATE_GET ? result->stat.modified_zxid
                                                     : result->stat.children_zxid,
    };
    bool is_new = !self->told.is_any || now.status != self->told.status ||
                  now.created_zxid != self->told.created_zxid ||
                  now.changed_zxid != self->told.changed_zxid;
    if ((is_state || status == SL_EUNAVAIL) && is_new) {
        if (status == SL_EUNAVAIL && self->told.is_any) {
            /* No contact for a while is no news. */
            return;
        }
        self->told = is_state ? now : self->told;
        self->fn(self->ctx, status, result);
    }
}

static void
watch_read(struct sl_state_watch *self)
{
    self->ticket = sl_state_read_watched(self->store, self->kind, self->path, &self->watch_id,
                                         on_event, self, on_read, self);
}

struct sl_state_watch *
sl_state_watch_new(struct sl_state_store *store, enum sl_state_op_kind kind, const char *path,
                   sl_state_view_fn fn, void *ctx)
{
    struct sl_state_watch *self = sl_calloc(1, sizeof(*self));
    self->store = store;
    self->kind = kind;
    self->path = sl_strdup(path);
    self->fn = fn;
    self->ctx = ctx;
    watch_read(self);
    return self;
}

void
sl_state_watch_free(struct sl_state_watch *self)
{
    if (self == NULL) {
        return;
    }
    sl_state_cancel(self->store, self->ticket);
    sl_state_watch_drop(self->store, self->watch_id);
    sl_state_executor_timer_stop(sl_state_store_executor(self->store), &self->retry_timer);
    sl_free(self->path);
    sl_free(self);
}
