#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "cluster/local_processes.h"
#include "cluster/runtime_priv.h"
#include "state/remove.h"

/* The steps that commands are made of: waiting, the store, what there is of a topology. */

void
sl__rt_tell(struct sl_runtime *self, const char *fmt, ...)
{
    char text[512];
    if (self->options.progress == NULL) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    self->options.progress(self->options.ctx, text);
}

static void
deadline_over(void *ctx, uint64_t ticket)
{
    struct sl_runtime *self = ctx;
    (void)ticket;
    self->is_late = true;
}

/* Turns of the loop until *done, or the limit; returns *done. */
bool
sl__rt_wait(struct sl_runtime *self, const bool *done, uint64_t limit_ms)
{
    self->is_late = false;
    sl_timer_start(self->loop, &self->deadline, limit_ms, deadline_over, self);
    while (!*done && !self->is_late) {
        sl_loop_run_once(self->loop, -1);
    }
    sl_timer_stop(&self->deadline);
    return *done;
}

/* The store. */

void
sl__rt_store_done(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl_runtime *self = ctx;
    struct sl__rt_outcome *outcome = &self->outcome;
    outcome->is_done = true;
    outcome->status = status;
    sl_buf_clear(&outcome->value);
    if (status != 0) {
        snprintf(outcome->reason, sizeof(outcome->reason), "%s", sl_err_last()->msg);
    } else if (result->value != NULL) {
        sl_buf_append(&outcome->value, result->value, result->size);
    }
}

void
sl__rt_begin(struct sl_runtime *self)
{
    self->outcome.is_done = false;
    self->outcome.status = 0;
    self->outcome.reason[0] = '\0';
}

/* Waits for the call that was begun. The store has a time limit of its own. */
int
sl__rt_end_store_call(struct sl_runtime *self)
{
    static const uint64_t ample_ms = 3600000;
    sl__rt_wait(self, &self->outcome.is_done, ample_ms);
    return self->outcome.status != 0 ? sl_err_set(self->outcome.status, "%s", self->outcome.reason)
                                     : 0;
}

int
sl__rt_get_part(struct sl_runtime *self, enum sl_layout_part part, const char *topology)
{
    char path[SL_STATE_PATH_MAX + 1];
    sl__rt_begin(self);
    sl_state_get(self->store, sl_layout_path(path, part, topology), sl__rt_store_done, self);
    return sl__rt_end_store_call(self);
}

int
sl__rt_check_name(const char *topology)
{
    return sl_name_check("topology name", topology, strlen(topology));
}

/* The topology is there, by the state manager's word. */
int
sl__rt_check_running(struct sl_runtime *self, const char *topology)
{
    int rc = sl__rt_check_name(topology);
    if (rc == 0) {
        rc = sl__rt_get_part(self, SL_LAYOUT_TOPOLOGY, topology);
    }
    return rc == SL_ENOTFOUND ? sl_err_set(SL_ENOTFOUND, "no topology of that name is running")
                              : rc;
}

int
sl__rt_remove_path(struct sl_runtime *self, const char *path, bool *is_found)
{
    sl__rt_begin(self);
    sl_state_remove(self->store, path, sl__rt_store_done, self);
    int rc = sl__rt_end_store_call(self);
    *is_found = *is_found || rc == 0;
    return rc == SL_ENOTFOUND ? 0 : rc;
}

/* Deletes every node of the topology, the one that says that it runs last of all. */
int
sl__rt_remove_nodes(struct sl_runtime *self, const char *topology, bool *is_found)
{
    static const enum sl_layout_part parts[] = {
        SL_LAYOUT_TOPOLOGY_MASTER, SL_LAYOUT_SCHEDULER, SL_LAYOUT_PHYSICAL_PLAN,   SL_LAYOUT_PLAN,
        SL_LAYOUT_EXECUTION_STATE, SL_LAYOUT_PACKAGE,   SL_LAYOUT_TOPOLOGY_LEADER, SL_LAYOUT_LOCK,
        SL_LAYOUT_TOPOLOGY,
    };
    char path[SL_STATE_PATH_MAX + 1];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        rc = sl__rt_remove_path(self, sl_layout_path(path, parts[i], topology), is_found);
    }
    return rc;
}

static void
note_presence(void *ctx, int64_t pid, const char *role, int32_t container)
{
    struct sl__rt_presence *presence = ctx;
    (void)pid;
    (void)container;
    presence->is_any = true;
    presence->is_led = presence->is_led || strcmp(role, SL_ROLE_WORKER) != 0;
}

struct sl__rt_presence
sl__rt_find_presence(const struct sl_runtime *self, const char *topology)
{
    struct sl__rt_presence presence = {0};
    sl_local_processes_each(self->state_url, topology, note_presence, &presence);
    return presence;
}
