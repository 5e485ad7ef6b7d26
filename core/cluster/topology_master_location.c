#include "base/err.h"
#include "cluster/topology_master_priv.h"
#include "state/value_codec.h"

/*
 * The node /schedulers/NAME: where clients in service mode find this topology master, which is also
 * the scheduler of its topology. It goes with the session. A predecessor whose session is not over
 * yet may still have its own there.
 */

static void create_location(struct sl_topology_master *self, sl_state_done_fn done);

static void
location_created(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_topology_master *self = ctx;
    (void)result;
    self->location_ticket = 0;
    if (status != 0 && status != SL_ECLOSED) {
        sl__tm_event(self, "the scheduler's location can not be published: %s", sl_err_last()->msg);
    }
}

static void
predecessor_removed(void *ctx, int status, const struct sl_state_result *result)
{
    (void)result;
    if (status == 0 || status == SL_ENOTFOUND) {
        create_location(ctx, location_created);
    } else {
        location_created(ctx, status, result);
    }
}

static void
location_first_created(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_topology_master *self = ctx;
    char path[SL_STATE_PATH_MAX + 1];
    if (status != SL_EEXIST) {
        location_created(ctx, status, result);
        return;
    }
    sl_layout_path(path, SL_LAYOUT_SCHEDULER, self->topology);
    self->location_ticket =
        sl_state_delete(self->options.store, path, SL_STATE_ANY_VERSION, predecessor_removed, self);
}

static void
create_location(struct sl_topology_master *self, sl_state_done_fn done)
{
    char path[SL_STATE_PATH_MAX + 1];
    struct sl_buf value = {0};
    struct sl_state_leader_info info = {.token = self->token};
    snprintf(info.id, sizeof(info.id), "%s", self->endpoint_name);
    snprintf(info.address, sizeof(info.address), "%s", sl_rpc_address(self->options.rpc));
    sl_state_leader_info_encode(&info, &value);
    sl_layout_path(path, SL_LAYOUT_SCHEDULER, self->topology);
    self->location_ticket = sl_state_create(self->options.store, path, value.data, value.size,
                                            SL_STATE_EPHEMERAL | SL_STATE_PARENTS, done, self);
    sl_buf_destroy(&value);
}

void
sl__tm_publish_location(struct sl_topology_master *self)
{
    create_location(self, location_first_created);
}
