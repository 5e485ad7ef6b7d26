#include "state/leader.h"

#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "state/watch.h"

struct sl_state_leader_listener {
    struct sl_state_watch *watch;
    sl_state_leader_fn fn;
    void *ctx;
    bool is_told;
    /* Token 0: none. */
    struct sl_state_leader_info last;
};

static void
on_view(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_state_leader_listener *self = ctx;
    struct sl_state_leader_info info = {0};
    if (status == SL_EUNAVAIL) {
        return;
    }
    if (status == 0) {
        status = sl_state_leader_info_decode(result->value, result->size, &info);
    }
    if (status != 0 && status != SL_ENOTFOUND) {
        char why[SL_ERR_MSG_SIZE];
        sl_log_warn("state.leader", "leader node is not readable: %s",
                    sl_err_format(sl_err_last(), why, sizeof(why)));
    }
    if (status != 0) {
        memset(&info, 0, sizeof(info));
    }
    bool is_same = self->is_told && info.token == self->last.token &&
                   strcmp(info.id, self->last.id) == 0 &&
                   strcmp(info.address, self->last.address) == 0;
    if (is_same) {
        return;
    }
    self->is_told = true;
    self->last = info;
    self->fn(self->ctx, info.token != 0 ? &info : NULL);
}

struct sl_state_leader_listener *
sl_state_leader_listener_new(struct sl_state_store *store, const char *path, sl_state_leader_fn fn,
                             void *ctx)
{
    struct sl_state_leader_listener *self = sl_calloc(1, sizeof(*self));
    char *leader_path = sl_state_path_join_dup(path, "leader");
    self->fn = fn;
    self->ctx = ctx;
    self->watch = sl_state_watch_new(store, SL_STATE_GET, leader_path, on_view, self);
    sl_free(leader_path);
    return self;
}

void
sl_state_leader_listener_free(struct sl_state_leader_listener *self)
{
    if (self != NULL) {
        sl_state_watch_free(self->watch);
        sl_free(self);
    }
}
