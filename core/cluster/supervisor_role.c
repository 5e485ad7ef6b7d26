#include "cluster/supervisor_role.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster/local_processes.h"
#include "cluster/role_base.h"
#include "cluster/settings.h"
#include "cluster/slot_table.h"
#include "cluster/supervisor.h"
#include "loop/process.h"

struct role {
    const struct sl_supervisor_role_options *options;
    struct sl_settings settings;
    char id[SL_NAME_MAX + 1];
    struct sl_role_base base;
    struct sl_supervisor *supervisor;
    struct sl_signal *term;
    struct sl_signal *interrupt;
    int code;
    struct sl_err why;
    bool is_ending;
};

static void
stop_loop(void *ctx)
{
    struct role *self = ctx;
    sl_loop_stop(self->base.loop);
}

static void
told_to_end(void *ctx, int number)
{
    struct role *self = ctx;
    self->code = 128 + number;
    sl_log_info("cluster", "supervisor %s ends; what it runs goes on running", self->id);
    sl_loop_stop(self->base.loop);
}

static void
interrupted(void *ctx, int number)
{
    struct role *self = ctx;
    self->code = 128 + number;
    if (self->is_ending) {
        sl_loop_stop(self->base.loop);
        return;
    }
    self->is_ending = true;
    sl_log_info("cluster", "supervisor %s ends what it runs", self->id);
    sl_supervisor_stop_processes(self->supervisor, stop_loop, self);
}

static void
can_not_go_on(void *ctx, int code, const char *reason)
{
    struct role *self = ctx;
    sl_err_set(code, "%s", reason);
    self->why = *sl_err_last();
    sl_loop_stop(self->base.loop);
}

static int
open_supervisor(struct role *self)
{
    const struct sl_supervisor_role_options *options = self->options;
    char folder[4096];
    char boot_id[SL_BOOT_ID_SIZE];
    uint32_t ports[SL_SLOT_TABLE_MAX];
    size_t count = 0;
    for (uint32_t port = options->first_port; port <= options->last_port; port++) {
        ports[count++] = port;
    }
    snprintf(folder, sizeof(folder), "%s/%s", options->folder, self->id);
    sl_local_boot_id(boot_id);
    struct sl_supervisor_options supervisor = {
        .rpc = self->base.rpc,
        .store = self->base.store,
        .program = {.program = options->program,
                    .state_url = options->state_url,
                    .arguments = options->arguments,
                    .id = self->id,
                    .host = options->host,
                    .folder = folder,
                    .logs = options->logs},
        .ports = ports,
        .port_count = count,
        .cpu_cores = options->cpu_cores,
        .ram_bytes = (int64_t)options->ram_bytes,
        .is_drained = options->is_drained,
        .settings = &self->settings,
        .pid = (uint64_t)getpid(),
        .process_start = sl_local_process_start,
        .boot_id = boot_id,
        .on_end = can_not_go_on,
        .ctx = self,
    };
    return sl_supervisor_new(&supervisor, &self->supervisor);
}

static int
role_open(struct role *self)
{
    const struct sl_supervisor_role_options *options = self->options;
    struct sl_rpc_options rpc = {.role = "supervisor",
                                 .name = self->id,
                                 .secret = options->secret,
                                 .secret_size = options->secret_len};
    int rc = sl_role_base_open(&self->base, &rpc, options->state_url, &self->settings);
    if (rc == 0) {
        rc = sl_role_base_listen(&self->base, options->host);
    }
    if (rc == 0) {
        rc = open_supervisor(self);
    }
    if (rc == 0) {
        rc = sl_signal_open(self->base.loop, SIGTERM, told_to_end, self, &self->term);
    }
    if (rc == 0) {
        rc = sl_signal_open(self->base.loop, SIGINT, interrupted, self, &self->interrupt);
    }
    return rc;
}

static void
role_close(struct role *self)
{
    sl_signal_close(self->term);
    sl_signal_close(self->interrupt);
    sl_supervisor_free(self->supervisor);
    sl_role_base_close(&self->base);
}

/* "h1-6800": two supervisors of one machine have slots of their own, and so other names. */
static int
make_id(struct role *self)
{
    const struct sl_supervisor_role_options *options = self->options;
    int len = options->id != NULL ? snprintf(self->id, sizeof(self->id), "%s", options->id)
                                  : snprintf(self->id, sizeof(self->id), "%s-%u", options->host,
                                             options->first_port);
    if (len < 0 || (size_t)len >= sizeof(self->id)) {
        return sl_err_set(SL_EINVAL, "the supervisor's name is longer than %d bytes", SL_NAME_MAX);
    }
    return sl_name_check("supervisor", self->id, (size_t)len);
}

static int
check(const struct sl_supervisor_role_options *options)
{
    if (options->first_port < 1 || options->last_port > 65535 ||
        options->first_port > options->last_port) {
        return sl_err_set(SL_EINVAL, "a supervisor needs at least one slot, at ports 1 to 65535");
    }
    if (options->last_port - options->first_port >= SL_SLOT_TABLE_MAX) {
        return sl_err_set(SL_EINVAL, "a supervisor has at most %d slots", SL_SLOT_TABLE_MAX);
    }
    return 0;
}

int
sl_supervisor_run(const struct sl_supervisor_role_options *options,
                  const struct sl_settings *settings)
{
    struct role self = {.options = options,
                        .settings = settings != NULL ? *settings : sl_settings_default()};
    int rc = check(options);
    if (rc == 0) {
        rc = make_id(&self);
    }
    if (rc == 0) {
        rc = sl_role_base_create(&self.base, "supervisor");
    }
    if (rc != 0) {
        return rc;
    }
    rc = role_open(&self);
    if (rc == 0) {
        sl_loop_run(self.base.loop);
        rc = self.why.code != 0 ? self.why.code : self.code;
    } else {
        self.why = *sl_err_last();
    }
    role_close(&self);
    return self.why.code != 0 ? sl_err_restore(&self.why) : rc;
}
