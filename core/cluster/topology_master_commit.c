/* The commit of an update: the new plan replaces the old one, if that still has its version and the
 * lock is still ours. */
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "cluster/topology_master_update_priv.h"

struct sl__update_call *
sl__update_call_new(struct sl__tm_update *update)
{
    struct sl__update_call *call = sl_calloc(1, sizeof(*call));
    call->update = update;
    update->call = call;
    return call;
}

struct sl__tm_update *
sl__update_call_end(struct sl__update_call *call)
{
    struct sl__tm_update *update = call->update;
    if (update != NULL) {
        update->call = NULL;
    }
    sl_free(call);
    return update;
}

/* The new plan is in force. */
static void
switch_plans(struct sl__tm_update *update)
{
    struct sl_topology_master *self = update->master;
    sl__tm_plan_free(self->plan);
    self->plan = update->next;
    update->next = NULL;
    self->is_dirty = true;
    self->is_settled = false;
    update->result.to_version = self->plan->stored.version;
    sl__tm_event(self, "update: plan %llu is in force",
                 (unsigned long long)self->plan->stored.version);
    sl__update_enter(update, SL__STEP_SWITCH);
    sl__tm_advance(self);
}

static void look_at_outcome(struct sl__tm_update *update);

static void
looked(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__tm_update *update = sl__update_call_end(ctx);
    if (update == NULL) {
        return;
    }
    const struct sl_buf *next = &update->next->bytes;
    if (status == SL_ETIMEOUT || status == SL_EUNAVAIL) {
        look_at_outcome(update);
    } else if (status == 0 && result->size == next->size &&
               memcmp(result->value, next->data, next->size) == 0) {
        switch_plans(update);
    } else {
        sl__update_fail(update, SL_ECONFLICT, "the new plan could not be stored");
    }
}

/* The answer to the commit was lost: what is stored tells. */
static void
look_at_outcome(struct sl__tm_update *update)
{
    char path[SL_STATE_PATH_MAX + 1];
    sl_state_get(update->master->options.store,
                 sl_layout_path(path, SL_LAYOUT_PLAN, update->master->topology), looked,
                 sl__update_call_new(update));
}

static void
committed(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__tm_update *update = sl__update_call_end(ctx);
    (void)result;
    if (update == NULL) {
        return;
    }
    if (status == 0) {
        switch_plans(update);
    } else if (status == SL_ETIMEOUT || status == SL_EUNAVAIL) {
        look_at_outcome(update);
    } else {
        sl__update_fail(update, status, "the new plan could not be stored: %s", sl_err_last()->msg);
    }
}

void
sl__update_commit(struct sl__tm_update *update)
{
    char path[SL_STATE_PATH_MAX + 1];
    const struct sl_buf *next = &update->next->bytes;
    struct sl_state_op op =
        sl_state_op_set(sl_layout_path(path, SL_LAYOUT_PLAN, update->master->topology), next->data,
                        next->size, update->node_version);
    sl_state_lock_commit(update->lock, &op, 1, committed, sl__update_call_new(update));
}
