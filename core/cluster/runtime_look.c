#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "cluster/runtime_priv.h"
#include "state/leader.h"

/* What commands read: names, what is stored of a topology, its code, how it is. */

static void
names_done(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_runtime *self = ctx;
    sl__rt_store_done(ctx, status, result);
    for (size_t i = 0; status == 0 && i < result->child_count; i++) {
        sl_vec_push(&self->names, sl_strdup(result->children[i]));
    }
}

int
sl_runtime_names(struct sl_runtime *self, const char *const **names, size_t *count)
{
    for (size_t i = 0; i < self->names.count; i++) {
        sl_free(self->names.items[i]);
    }
    sl_vec_clear(&self->names);
    sl__rt_begin(self);
    sl_state_children(self->store, sl_layout_folder(SL_LAYOUT_TOPOLOGY), names_done, self);
    int rc = sl__rt_end_store_call(self);
    *names = (const char *const *)self->names.items;
    *count = self->names.count;
    return rc == SL_ENOTFOUND ? 0 : rc;
}

/* Bytes of a part in the view's arena; NULL when there is no such node. */
static int
load_part(struct sl_runtime *self, enum sl_layout_part part, const char *topology,
          const uint8_t **data, size_t *size)
{
    int rc = sl__rt_get_part(self, part, topology);
    *data = NULL;
    if (rc == 0) {
        *size = self->outcome.value.size;
        /* Never NULL, also for no bytes. */
        sl_buf_append_u8(&self->outcome.value, 0);
        *data = sl_arena_memdup(&self->view_arena, self->outcome.value.data, *size + 1);
    }
    return rc == SL_ENOTFOUND ? 0 : rc;
}

static void
leader_seen(void *ctx, const struct sl_state_leader_info *info)
{
    struct sl_runtime *self = ctx;
    self->view.is_led = info != NULL;
    self->is_leader_known = true;
}

/* Whether somebody leads it now, without waiting for anybody. */
static void
load_leader(struct sl_runtime *self, const char *topology)
{
    char path[SL_STATE_PATH_MAX + 1];
    self->is_leader_known = false;
    struct sl_state_leader_listener *leader = sl_state_leader_listener_new(
        self->store, sl_layout_path(path, SL_LAYOUT_TOPOLOGY_LEADER, topology), leader_seen, self);
    sl__rt_wait(self, &self->is_leader_known, self->options.timeout_ms);
    sl_state_leader_listener_free(leader);
}

int
sl_runtime_load(struct sl_runtime *self, const char *topology, const struct sl_topology_view **view)
{
    const uint8_t *plan = NULL;
    const uint8_t *execution = NULL;
    size_t plan_size = 0;
    size_t execution_size = 0;
    sl_arena_reset(&self->view_arena);
    memset(&self->view, 0, sizeof(self->view));
    int rc = sl__rt_check_running(self, topology);
    if (rc == 0) {
        self->view.definition_size = self->outcome.value.size;
        sl_buf_append_u8(&self->outcome.value, 0);
        self->view.definition =
            sl_arena_memdup(&self->view_arena, self->outcome.value.data, self->outcome.value.size);
        rc = load_part(self, SL_LAYOUT_PLAN, topology, &plan, &plan_size);
    }
    if (rc == 0) {
        rc = load_part(self, SL_LAYOUT_EXECUTION_STATE, topology, &execution, &execution_size);
    }
    if (rc == 0 && plan != NULL) {
        rc = sl_stored_plan_decode(plan, plan_size, &self->view_arena, &self->plan);
        self->view.plan = &self->plan;
    }
    if (rc == 0 && execution != NULL) {
        rc = sl_execution_state_decode(execution, execution_size, &self->view_arena,
                                       &self->execution);
        self->view.execution = &self->execution;
    }
    if (rc == 0) {
        load_leader(self, topology);
        *view = &self->view;
    }
    return rc;
}

int
sl_runtime_package(struct sl_runtime *self, const char *topology, const struct sl_package **package)
{
    const uint8_t *data = NULL;
    size_t size = 0;
    sl_arena_reset(&self->view_arena);
    int rc = sl__rt_check_name(topology);
    if (rc == 0) {
        rc = load_part(self, SL_LAYOUT_PACKAGE, topology, &data, &size);
    }
    if (rc == 0 && data == NULL) {
        rc = sl_err_set(SL_ENOTFOUND, "there is no code of a topology of that name");
    }
    if (rc == 0) {
        rc = sl_package_decode(data, size, &self->view_arena, &self->package);
    }
    *package = &self->package;
    return rc;
}

int
sl_runtime_status(struct sl_runtime *self, const char *topology,
                  const struct sl_control_status **status)
{
    int rc = sl__rt_check_running(self, topology);
    if (rc == 0) {
        rc = sl__rt_ask(self, topology, SL_TM_STATUS, &(struct sl_control_request){0},
                        self->options.timeout_ms);
    }
    *status = &self->status;
    return rc;
}
