/* A plan that a master wrote: containers whose slots are gone run in others, and the topology
 * master may have to run elsewhere itself. */
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/vec.h"
#include "cluster/topology_master_priv.h"

static bool
is_same_slot(const struct sl_plan_slot *a, const struct sl_plan_slot *b)
{
    return a->port == b->port && strcmp(a->supervisor, b->supervisor) == 0;
}

bool
sl__tm_is_elsewhere(const struct sl_topology_master *self, const struct sl_stored_plan *plan)
{
    const struct sl_plan_slot *place = &self->options.place;
    return place->port != 0 && plan->master.port != 0 && !is_same_slot(place, &plan->master);
}

/* Where a plan puts a container; NULL when it has none of that number. */
static const struct sl_plan_slot *
slot_in(const struct sl_stored_plan *plan, int32_t id)
{
    for (int32_t i = 0; i < plan->plan.container_count; i++) {
        if (plan->plan.containers[i].id == id) {
            return &plan->slots[i];
        }
    }
    return NULL;
}

/* A worker that is not where the plan wants it ends. */
static void
drop_moved(struct sl_topology_master *self, const struct sl_stored_plan *next)
{
    const struct sl_launcher *launcher = &self->options.launcher;
    const struct sl_stored_plan *before = &self->plan->stored;
    for (int32_t i = 0; i < before->plan.container_count; i++) {
        int32_t id = before->plan.containers[i].id;
        const struct sl_plan_slot *slot = slot_in(next, id);
        struct sl__tm_worker *worker = sl__tm_worker_of(self, id);
        if (slot != NULL && is_same_slot(slot, &before->slots[i])) {
            continue;
        }
        sl__tm_event(self, "container %d leaves %s:%u", id, before->slots[i].supervisor,
                     before->slots[i].port);
        if (worker != NULL) {
            sl__tm_send_shutdown(worker, "the plan has its container elsewhere");
            sl__tm_worker_remove(self, worker);
        }
        launcher->remove_containers(launcher->self, &id, 1);
    }
}

/* The launcher leaves alone what runs already. */
static int
add_all(struct sl_topology_master *self)
{
    const struct sl_launcher *launcher = &self->options.launcher;
    const struct sl_stored_plan *plan = &self->plan->stored;
    size_t count = (size_t)plan->plan.container_count;
    int32_t *ids = sl_alloc((count + 1) * sizeof(*ids));
    for (size_t i = 0; i < count; i++) {
        ids[i] = plan->plan.containers[i].id;
        sl__tm_worker_add(self, ids[i]);
    }
    int rc = launcher->add_containers(launcher->self, plan, ids, count);
    sl_free(ids);
    return rc;
}

static int
take(struct sl_topology_master *self, const struct sl_state_result *result)
{
    struct sl__tm_plan *next = sl__tm_plan_new(self, result->value, result->size);
    if (next == NULL) {
        return sl_err_last()->code;
    }
    if (next->stored.version <= self->plan->stored.version) {
        sl__tm_plan_free(next);
        return 0;
    }
    if (sl__tm_is_elsewhere(self, &next->stored)) {
        sl__tm_plan_free(next);
        sl__tm_end(self, 0, "the plan has the topology master elsewhere");
        return 0;
    }
    drop_moved(self, &next->stored);
    /* What has died comes elsewhere: nobody waits for that. */
    self->run_version = self->was_settled ? next->stored.version : 0;
    sl__tm_plan_free(self->plan);
    self->plan = next;
    self->plan_node_version = result->stat.version;
    self->is_dirty = true;
    self->is_settled = false;
    sl__tm_event(self, "plan %llu of the master is in force",
                 (unsigned long long)next->stored.version);
    return add_all(self);
}

static void
plan_read(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_topology_master *self = ctx;
    struct sl_rpc_request *request = self->plan_request;
    self->plan_ticket = 0;
    self->plan_request = NULL;
    int rc = status;
    if (rc == 0 && (self->update != NULL || self->phase != SL__TM_LEADING)) {
        rc = sl_err_set(SL_ECONFLICT, "%s is being changed", self->topology);
    }
    if (rc == 0) {
        rc = take(self, result);
    }
    if (rc != 0) {
        sl_rpc_refuse_last(request);
        return;
    }
    sl_rpc_reply(request, NULL, 0);
    sl__tm_advance(self);
}

void
sl__tm_handle_plan_changed(void *ctx, struct sl_rpc_request *request)
{
    struct sl_topology_master *self = ctx;
    char path[SL_STATE_PATH_MAX + 1];
    if (self->phase == SL__TM_STANDING || self->phase == SL__TM_LOADING) {
        /* It reads the plan anyway, but maybe it has read the old one. */
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EAGAIN, "%s is not led yet", self->topology);
    } else if (self->phase != SL__TM_LEADING || self->update != NULL ||
               self->plan_request != NULL) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_ECONFLICT, "%s is being changed", self->topology);
    } else {
        self->plan_request = request;
        sl_layout_path(path, SL_LAYOUT_PLAN, self->topology);
        self->plan_ticket = sl_state_get(self->options.store, path, plan_read, self);
    }
}
