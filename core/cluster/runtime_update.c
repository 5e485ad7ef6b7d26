#include "base/err.h"
#include "cluster/runtime_priv.h"

/* The change of a running topology, asked of its topology master, with its progress. */

/* What an update may take besides waiting for the lock and draining. */
enum { UPDATE_MARGIN_MS = 180000 };

static void watch_events(struct sl_runtime *self);

static void
events_came(void *ctx, const struct sl_rpc_result *result)
{
    struct sl_runtime *self = ctx;
    struct sl_arena arena;
    struct sl_control_status status;
    if (result->status != SL_RPC_SUCCESS) {
        return;
    }
    sl_arena_create(&arena, 0, 0);
    if (sl_control_status_decode(result->body, result->size, &arena, &status) == 0) {
        uint64_t first = status.event_count - status.shown_events;
        for (size_t i = 0; i < status.shown_events; i++) {
            if (first + i >= self->seen_events) {
                sl__rt_tell(self, "%s", status.events[i].text);
            }
        }
        self->seen_events = status.event_count;
        watch_events(self);
    }
    sl_arena_destroy(&arena);
}

/* Asks for what happens next. */
static void
watch_events(struct sl_runtime *self)
{
    struct sl_buf body = {0};
    struct sl_control_request request = {
        .time_limit_ms = 60000, .seen_events = self->seen_events, .wants_event = true};
    sl_control_request_encode(&request, &body);
    sl_rpc_call(self->watched, SL_TM_AWAIT, body.data, body.size, 70000, events_came, self);
    sl_buf_destroy(&body);
}

int
sl__rt_watch(struct sl_runtime *self, const char *topology)
{
    int rc = sl__rt_ask(self, topology, SL_TM_STATUS, &(struct sl_control_request){0},
                        self->options.timeout_ms);
    if (rc != 0) {
        return rc;
    }
    self->seen_events = self->status.event_count;
    if (self->options.progress != NULL && sl__rt_connect(self, &self->watched) == 0) {
        watch_events(self);
    }
    return 0;
}

void
sl__rt_unwatch(struct sl_runtime *self)
{
    sl_rpc_gateway_free(self->watched);
    self->watched = NULL;
}

int
sl__rt_update(struct sl_runtime *self, const struct sl_runtime_change *change,
              const struct sl_update_result **result)
{
    const char *topology = change->current->topology;
    struct sl_buf old_plan = {0};
    struct sl_buf new_plan = {0};
    struct sl_buf body = {0};
    int rc = sl_stored_plan_encode(change->current, &old_plan);
    if (rc == 0) {
        rc = sl_stored_plan_encode(change->proposed, &new_plan);
    }
    if (rc == 0 && !change->is_dry_run) {
        rc = sl__rt_watch(self, topology);
    }
    if (rc != 0) {
        goto out;
    }
    struct sl_update_request request = {
        .current = old_plan.data,
        .current_size = old_plan.size,
        .proposed = new_plan.data,
        .proposed_size = new_plan.size,
        .lock_timeout_ms = change->lock_timeout_ms,
        .drain_timeout_ms = change->drain_timeout_ms,
        .is_dry_run = change->is_dry_run,
    };
    sl_update_request_encode(&request, &body);
    rc = sl__rt_call(self, topology, SL_TM_UPDATE, &body,
                     change->lock_timeout_ms + change->drain_timeout_ms + UPDATE_MARGIN_MS);
    if (rc == 0) {
        sl_arena_reset(&self->answer_arena);
        rc = sl_update_result_decode(self->outcome.value.data, self->outcome.value.size,
                                     &self->answer_arena, &self->result);
        *result = &self->result;
    }
out:
    sl__rt_unwatch(self);
    sl_buf_destroy(&old_plan);
    sl_buf_destroy(&new_plan);
    sl_buf_destroy(&body);
    return rc;
}
