#include "cluster/master_role.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "cluster/master.h"
#include "cluster/role_base.h"
#include "cluster/settings.h"
#include "loop/process.h"

enum { EXIT_FAILED = 1 };

struct role {
    struct sl_role_base base;
    struct sl_master *master;
    struct sl_signal *term;
    struct sl_signal *interrupt;
    int code;
};

static void
told_to_end(void *ctx, int number)
{
    struct role *self = ctx;
    self->code = 128 + number;
    sl_loop_stop(self->base.loop);
}

static void
failed(void *ctx, const char *reason)
{
    struct role *self = ctx;
    sl_log_error("cluster", "the master can not go on: %s", reason);
    self->code = EXIT_FAILED;
    sl_loop_stop(self->base.loop);
}

/* The address as a name: "127.0.0.1-40312". */
static void
make_name(char *text)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    for (char *at = text; *at != '\0'; at++) {
        if (strchr(allowed, *at) == NULL) {
            *at = '-';
        }
    }
}

static int
role_open_parts(struct role *self, const struct sl_master_role_options *options)
{
    struct sl_settings settings =
        options->settings != NULL ? *options->settings : sl_settings_default();
    struct sl_rpc_options rpc = {
        .role = "master",
        .name = options->listen,
        .secret = options->secret,
        .secret_size = options->secret != NULL ? strlen(options->secret) : 0,
    };
    int rc = sl_role_base_open(&self->base, &rpc, options->state_url, &settings);
    if (rc == 0) {
        rc = sl_rpc_listen(self->base.rpc, options->listen);
    }
    if (rc != 0) {
        return rc;
    }
    char name[300];
    char folder[4096];
    snprintf(name, sizeof(name), "%s", sl_rpc_address(self->base.rpc));
    make_name(name);
    snprintf(folder, sizeof(folder), "%s/%s", options->folder, name);
    struct sl_master_options master = {
        .rpc = self->base.rpc,
        .store = self->base.store,
        .name = name,
        .folder = folder,
        .heartbeat = sl_settings_heartbeat(&settings),
        .slots = sl_slot_manager_config_default(),
        .topology_timeout_ms = (uint64_t)settings.topology_timeout_ms,
        .start_up_ms = (uint64_t)settings.slot_start_up_time_ms,
        .monitor_interval_ms = (uint64_t)settings.monitor_interval_ms,
        .supervisor_timeout_ms = (uint64_t)settings.supervisor_timeout_ms,
        .on_fatal = failed,
        .ctx = self,
    };
    sl_settings_apply_slots(&settings, &master.slots);
    rc = sl_master_new(&master, &self->master);
    if (rc == 0) {
        sl_log_info("cluster", "master %s stands for election", name);
    }
    return rc;
}

static int
role_open(struct role *self, const struct sl_master_role_options *options)
{
    int rc = sl_signal_open(self->base.loop, SIGTERM, told_to_end, self, &self->term);
    if (rc == 0) {
        rc = sl_signal_open(self->base.loop, SIGINT, told_to_end, self, &self->interrupt);
    }
    return rc == 0 ? role_open_parts(self, options) : rc;
}

static void
role_close(struct role *self)
{
    if (self->term != NULL) {
        sl_signal_close(self->term);
    }
    if (self->interrupt != NULL) {
        sl_signal_close(self->interrupt);
    }
    sl_master_free(self->master);
    sl_role_base_close(&self->base);
}

int
sl_master_run(const struct sl_master_role_options *options)
{
    struct role self = {0};
    int rc = sl_role_base_create(&self.base, "master");
    if (rc != 0) {
        return rc;
    }
    rc = role_open(&self, options);
    struct sl_err why = {0};
    if (rc == 0) {
        sl_loop_run(self.base.loop);
        rc = self.code;
    } else {
        sl_err_move(&why);
    }
    role_close(&self);
    return rc < 0 ? sl_err_set(rc, "%s", why.msg) : rc;
}
