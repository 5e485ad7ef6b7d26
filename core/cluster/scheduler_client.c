#include "cluster/scheduler_client.h"

#include "base/alloc.h"
#include "base/err.h"
#include "cluster/runtime_priv.h"

struct scheduler_client {
    struct sl_runtime *runtime;
    struct sl_client_launcher launcher;
    bool has_launcher;
};

static int
client_launcher(struct scheduler_client *self)
{
    struct sl_client_launcher *launcher = &self->launcher;
    if (self->has_launcher) {
        return 0;
    }
    int rc = sl_client_launcher_open(self->runtime->launcher, launcher);
    self->has_launcher = rc == 0;
    return rc != 0 ? rc : launcher->initialize(launcher->self, self->runtime);
}

static void
client_close(void *ctx)
{
    struct scheduler_client *self = ctx;
    if (self->has_launcher) {
        self->launcher.close(self->launcher.self);
    }
    self->runtime->place = SL__RT_LEADER;
    sl_free(self);
}

/* Library mode. */

static int
library_update(void *ctx, const struct sl_runtime_change *change,
               const struct sl_update_result **result)
{
    struct scheduler_client *self = ctx;
    int rc = client_launcher(self);
    return rc != 0 ? rc : self->launcher.on_update(self->launcher.self, change, result);
}

static int
library_kill(void *ctx, const struct sl_runtime_kill *kill)
{
    struct scheduler_client *self = ctx;
    int rc = client_launcher(self);
    return rc != 0 ? rc : self->launcher.on_kill(self->launcher.self, kill);
}

static int
library_restart(void *ctx, const char *topology, int32_t container, uint64_t timeout_ms)
{
    struct scheduler_client *self = ctx;
    int rc = client_launcher(self);
    return rc != 0
               ? rc
               : self->launcher.on_restart(self->launcher.self, topology, container, timeout_ms);
}

/* Service mode. */

/* The scheduler carries the change out; where slots are somebody else's business they are asked for
 * first. */
static int
service_update(void *ctx, const struct sl_runtime_change *change,
               const struct sl_update_result **result)
{
    struct scheduler_client *self = ctx;
    struct sl_runtime_change whole = *change;
    int rc = client_launcher(self);
    if (rc == 0 && self->launcher.is_scheduling) {
        whole.is_dry_run = true;
        rc = self->launcher.on_update(self->launcher.self, &whole, result);
        whole.proposed = &self->runtime->planned;
        whole.is_dry_run = change->is_dry_run;
    }
    return rc != 0 ? rc : sl__rt_update(self->runtime, &whole, result);
}

/* The scheduler ends the topology; the launcher cleans up behind both. */
static int
service_kill(void *ctx, const struct sl_runtime_kill *kill)
{
    struct scheduler_client *self = ctx;
    struct sl_runtime_kill rest = *kill;
    struct sl_control_request request = {.time_limit_ms = kill->wait_ms};
    if (sl__rt_check_running(self->runtime, kill->topology) == 0 &&
        sl__rt_is_hopeful(self->runtime, kill->topology)) {
        rest.is_ended = sl__rt_ask(self->runtime, kill->topology, SL_TM_KILL, &request,
                                   kill->wait_ms + kill->timeout_ms) == 0;
    }
    return library_kill(ctx, &rest);
}

static int
service_restart(void *ctx, const char *topology, int32_t container, uint64_t timeout_ms)
{
    struct scheduler_client *self = ctx;
    struct sl_control_request request = {.time_limit_ms = timeout_ms, .container = container};
    return sl__rt_ask(self->runtime, topology, SL_TM_RESTART, &request, timeout_ms + 1000);
}

void
sl_scheduler_client_open(struct sl_runtime *runtime, struct sl_scheduler_client *client)
{
    struct scheduler_client *self = sl_calloc(1, sizeof(*self));
    self->runtime = runtime;
    runtime->place = runtime->options.is_service ? SL__RT_SCHEDULER : SL__RT_LEADER;
    *client = runtime->options.is_service
                  ? (struct sl_scheduler_client){service_update, service_kill, service_restart,
                                                 client_close, self}
                  : (struct sl_scheduler_client){library_update, library_kill, library_restart,
                                                 client_close, self};
}
