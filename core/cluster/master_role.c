#include "cluster/master_role.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "cluster/master.h"
#include "cluster/settings.h"
#include "loop/process.h"
#include "state/loop_executor.h"
#include "state/open.h"

enum { EXIT_FAILED = 1 };

struct role {
    struct sl_loop *loop;
    struct sl_state_loop_executor executor;
    struct sl_state_store *store;
    struct sl_rpc *rpc;
    struct sl_master *master;
    struct sl_signal *term;
    struct sl_signal *interrupt;
    int code;
    bool is_closed;
};

static void
told_to_end(void *ctx, int number)
{
    struct role *self = ctx;
    self->code = 128 + number;
    sl_loop_stop(self->loop);
}

static void
failed(void *ctx, const char *reason)
{
    struct role *self = ctx;
    sl_log_error("cluster", "the master can not go on: %s", reason);
    self->code = EXIT_FAILED;
    sl_loop_stop(self->loop);
}

static void
store_closed(void *ctx)
{
    ((struct role *)ctx)->is_closed = true;
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
    struct sl_state_open_options state = {0};
    sl_settings_apply_state(&settings, &state);
    self->store = sl_state_open_new(options->state_url, &self->executor.executor, &state);
    if (self->store == NULL) {
        return sl_err_last()->code;
    }
    struct sl_rpc_options rpc = {
        .role = "master",
        .name = options->listen,
        .secret = options->secret,
        .secret_size = options->secret != NULL ? strlen(options->secret) : 0,
    };
    sl_settings_apply_rpc(&settings, &rpc);
    self->rpc = sl_rpc_new(self->loop, &rpc);
    int rc = sl_rpc_listen(self->rpc, options->listen);
    if (rc != 0) {
        return rc;
    }
    char name[300];
    char folder[4096];
    snprintf(name, sizeof(name), "%s", sl_rpc_address(self->rpc));
    make_name(name);
    snprintf(folder, sizeof(folder), "%s/%s", options->folder, name);
    struct sl_master_options master = {
        .rpc = self->rpc,
        .store = self->store,
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
    int rc = sl_signal_open(self->loop, SIGTERM, told_to_end, self, &self->term);
    if (rc == 0) {
        rc = sl_signal_open(self->loop, SIGINT, told_to_end, self, &self->interrupt);
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
    if (self->rpc != NULL) {
        sl_rpc_free(self->rpc);
    }
    if (self->store != NULL) {
        sl_state_store_close(self->store, store_closed, self);
        while (!self->is_closed) {
            sl_loop_run_once(self->loop, -1);
        }
    }
    sl_state_loop_executor_destroy(&self->executor);
    sl_loop_free(self->loop);
}

int
sl_master_run(const struct sl_master_role_options *options)
{
    struct role self = {0};
    int rc = sl_loop_new(&self.loop);
    if (rc != 0) {
        return rc;
    }
    sl_log_set_role("master");
    if (getenv("SL_LOG") == NULL) {
        sl_log_configure("warn,cluster=info");
    }
    sl_state_loop_executor_create(&self.executor, self.loop);
    rc = role_open(&self, options);
    struct sl_err why = {0};
    if (rc == 0) {
        sl_loop_run(self.loop);
        rc = self.code;
    } else {
        sl_err_move(&why);
    }
    role_close(&self);
    return rc < 0 ? sl_err_set(rc, "%s", why.msg) : rc;
}
