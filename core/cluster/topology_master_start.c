/* The new containers of an update: they start, load the code, get the new plan with paused spouts
 * and are connected with the others, while the topology works. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "cluster/topology_master_update_priv.h"

/* The launcher gave other ids: the plan is written anew with them. */
static int
remap(struct sl__tm_update *update, const int32_t *asked)
{
    struct sl_stored_plan *stored = &update->next->stored;
    bool is_changed = false;
    for (size_t i = 0; i < update->added.count; i++) {
        is_changed = is_changed || asked[i] != update->added.items[i];
    }
    if (!is_changed) {
        return 0;
    }
    /* From the asked ids to a number that none has, so that a swap works. */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < update->added.count; i++) {
            for (int32_t k = 0; k < stored->plan.container_count; k++) {
                struct sl_packing_container *container = &stored->plan.containers[k];
                if (pass == 0 && container->id == asked[i]) {
                    container->id = -(int32_t)i - 1;
                } else if (pass == 1 && container->id == -(int32_t)i - 1) {
                    container->id = update->added.items[i];
                }
            }
        }
    }
    int rc = sl_packing_plan_check(&stored->plan, stored->component_count);
    sl_buf_clear(&update->next->bytes);
    if (rc == 0) {
        rc = sl_stored_plan_encode(stored, &update->next->bytes);
    }
    if (rc == 0) {
        sl_physical_plan_from_stored(stored, update->master->execution.topology_id,
                                     &update->next->arena, &update->next->physical);
    }
    return rc;
}

/* Whether the launcher lets the update begin. */
static int
agree(struct sl__tm_update *update)
{
    struct sl_topology_master *self = update->master;
    const struct sl_launcher *launcher = &self->options.launcher;
    if (update->is_agreed) {
        return 0;
    }
    int rc =
        launcher->prepare_update != NULL
            ? launcher->prepare_update(launcher->self, &self->plan->stored, &update->next->stored)
            : 0;
    if (rc == 0) {
        update->is_agreed = true;
        if (update->added.count > 0) {
            sl__tm_event(self, "update: starting %zu containers", update->added.count);
        }
    }
    return rc;
}

/* The launcher starts the new containers, and the plan takes the ids that it gives. */
static int
add(struct sl__tm_update *update)
{
    struct sl_topology_master *self = update->master;
    const struct sl_launcher *launcher = &self->options.launcher;
    size_t count = update->added.count;
    if (count == 0) {
        return 0;
    }
    int32_t *asked = sl_alloc(count * sizeof(*asked));
    memcpy(asked, update->added.items, count * sizeof(*asked));
    int rc =
        launcher->add_containers(launcher->self, &update->next->stored, update->added.items, count);
    if (rc == 0) {
        rc = remap(update, asked);
    }
    sl_free(asked);
    return rc;
}

void
sl__update_start_containers(struct sl__tm_update *update)
{
    struct sl_topology_master *self = update->master;
    int rc = agree(update);
    if (rc == 0) {
        rc = add(update);
    }
    if (rc == SL_EAGAIN) {
        return;
    }
    update->is_added = true;
    for (size_t i = 0; i < update->added.count; i++) {
        sl__tm_worker_add(self, update->added.items[i]);
    }
    if (rc != 0) {
        sl__update_fail(update, rc, "%s", sl_err_last()->msg);
    }
}

void
sl__tm_update_launcher_progressed(struct sl_topology_master *self)
{
    struct sl__tm_update *update = self->update;
    if (update != NULL && update->step == SL__STEP_START && !update->is_added) {
        sl__update_start_containers(update);
        sl__tm_advance(self);
    }
}

static int
compare_containers(const void *left, const void *right)
{
    const struct sl_physical_container *a = left;
    const struct sl_physical_container *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

static int
compare_tasks(const void *left, const void *right)
{
    const struct sl_physical_task *a = left;
    const struct sl_physical_task *b = right;
    return (a->task > b->task) - (a->task < b->task);
}

/* Whether the plan in force has the task. */
static bool
has_task(const struct sl_physical_plan *plan, int32_t task)
{
    struct sl_physical_task wanted = {.task = task};
    return bsearch(&wanted, plan->tasks, (size_t)plan->task_count, sizeof(wanted), compare_tasks) !=
           NULL;
}

/* New tasks of workers that run already: they are made ready before anything stops. */
static void
add_coming(struct sl__tm_update *update)
{
    const struct sl_physical_plan *old = &update->master->plan->physical;
    const struct sl_physical_plan *next = &update->next->physical;
    struct sl_physical_plan *bridge = &update->bridge;
    size_t most = (size_t)old->task_count + (size_t)next->task_count;
    bridge->tasks = sl_arena_calloc(&update->next->arena, most + 1, sizeof(*bridge->tasks));
    memcpy(bridge->tasks, old->tasks, (size_t)old->task_count * sizeof(*old->tasks));
    for (int32_t i = 0; i < next->task_count; i++) {
        struct sl_physical_task task = next->tasks[i];
        if (has_task(old, task.task) || sl_physical_plan_container(old, task.container) == NULL) {
            continue;
        }
        task.is_coming = true;
        bridge->tasks[bridge->task_count++] = task;
    }
    qsort(bridge->tasks, (size_t)bridge->task_count, sizeof(*bridge->tasks), compare_tasks);
}

/* A plan that also has containers which have no tasks in it. */
static struct sl_physical_plan
with_containers(struct sl__tm_update *update, const struct sl_physical_plan *plan,
                const int32_t *ids, size_t id_count)
{
    struct sl_physical_plan out = *plan;
    size_t count = (size_t)plan->container_count;
    size_t total = count + id_count;
    out.containers = sl_arena_calloc(&update->next->arena, total + 1, sizeof(*out.containers));
    memcpy(out.containers, plan->containers, count * sizeof(*plan->containers));
    for (size_t i = 0; i < id_count; i++) {
        out.containers[count + i].id = ids[i];
    }
    out.container_count = (int32_t)total;
    qsort(out.containers, total, sizeof(*out.containers), compare_containers);
    return out;
}

/* Workers take connections of those only that their plan has: the running ones learn of the new
 * ones before there is anything for them to do, and the new ones of those that are going to end,
 * whose state may come to them. */
static void
make_bridge(struct sl__tm_update *update)
{
    const struct sl_topology_master *self = update->master;
    struct sl_physical_plan *bridge = &update->bridge;
    *bridge =
        with_containers(update, &self->plan->physical, update->added.items, update->added.count);
    update->arrival = with_containers(update, &update->next->physical, update->removed.items,
                                      update->removed.count);
    update->arrival.state = SL_TOPOLOGY_PAUSED;
    update->arrival.is_held = true;
    bridge->is_held = false;
    bridge->state = self->execution.is_active ? SL_TOPOLOGY_RUNNING : SL_TOPOLOGY_PAUSED;
    add_coming(update);
}

/* All new workers are there: they get the new plan, paused, and the others are told of them and of
 * the tasks that are coming. */
static void
send_start(struct sl__tm_update *update)
{
    struct sl_topology_master *self = update->master;
    update->bridge.epoch = ++self->epoch;
    update->arrival.epoch = ++self->epoch;
    sl__tm_plan_fill(self, &update->bridge);
    sl__tm_plan_fill(self, &update->arrival);
    for (size_t i = 0; i < update->added.count; i++) {
        sl__tm_send_plan(sl__tm_worker_of(self, update->added.items[i]), &update->arrival);
    }
    for (int32_t i = 0; i < self->plan->physical.container_count; i++) {
        sl__tm_send_plan(sl__tm_worker_of(self, self->plan->physical.containers[i].id),
                         &update->bridge);
    }
}

static bool
is_start_answered(const struct sl__tm_update *update)
{
    const struct sl_topology_master *self = update->master;
    for (int32_t i = 0; i < update->bridge.container_count; i++) {
        int32_t id = update->bridge.containers[i].id;
        uint64_t epoch = sl_physical_plan_container(&self->plan->physical, id) != NULL
                             ? update->bridge.epoch
                             : update->arrival.epoch;
        if (sl__tm_worker_of(self, id)->ready_epoch != epoch) {
            return false;
        }
    }
    return true;
}

void
sl__update_advance_start(struct sl__tm_update *update)
{
    struct sl_topology_master *self = update->master;
    if (!update->is_added) {
        return;
    }
    for (size_t i = 0; i < update->added.count; i++) {
        if (!sl__tm_worker_of(self, update->added.items[i])->is_registered) {
            return;
        }
    }
    if (!update->is_start_sent) {
        update->is_start_sent = true;
        make_bridge(update);
        update->has_bridge =
            update->added.count > 0 || update->bridge.task_count > self->plan->physical.task_count;
        if (update->has_bridge) {
            send_start(update);
        }
    }
    if (!update->has_bridge || is_start_answered(update)) {
        sl__update_enter(update, SL__STEP_PAUSE);
    }
}
