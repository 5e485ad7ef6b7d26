#include "cluster/role_base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "cluster/settings.h"
#include "state/open.h"

int
sl_role_base_create(struct sl_role_base *self, const char *role)
{
    memset(self, 0, sizeof(*self));
    int rc = sl_loop_new(&self->loop);
    if (rc != 0) {
        return rc;
    }
    sl_log_set_role(role);
    const char *levels = getenv("SL_LOG");
    sl_log_configure(levels != NULL ? levels : "warn,cluster=info");
    sl_state_loop_executor_create(&self->executor, self->loop);
    return 0;
}

int
sl_role_base_open(struct sl_role_base *self, const struct sl_rpc_options *rpc,
                  const char *state_url, const struct sl_settings *settings)
{
    struct sl_rpc_options options = *rpc;
    struct sl_state_open_options state = {0};
    sl_settings_apply_state(settings, &state);
    sl_settings_apply_rpc(settings, &options);
    self->store = sl_state_open_new(state_url, &self->executor.executor, &state);
    if (self->store == NULL) {
        return sl_err_last()->code;
    }
    self->rpc = sl_rpc_new(self->loop, &options);
    return 0;
}

int
sl_role_base_listen(struct sl_role_base *self, const char *host)
{
    struct sl_address address = {.kind = SL_ADDRESS_TCP};
    char text[SL_ADDRESS_TEXT_SIZE];
    if (strlen(host) >= sizeof(address.host)) {
        return sl_err_set(SL_EINVAL, "host %.64s is too long", host);
    }
    snprintf(address.host, sizeof(address.host), "%s", host);
    return sl_rpc_listen(self->rpc, sl_address_format(&address, text, sizeof(text)));
}

static void
store_closed(void *ctx)
{
    ((struct sl_role_base *)ctx)->is_closed = true;
}

void
sl_role_base_close(struct sl_role_base *self)
{
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
