#include "rpc/registered_connection.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"

struct sl_registered_connection {
    struct sl_rpc *rpc;
    char *address;
    char *endpoint;
    uint64_t token;
    struct sl_registration_config config;
    struct sl_registered_connection_ops ops;
    struct sl_registration *pending;
    struct sl_rpc_gateway *gateway;
    bool is_closed;
};

int
sl_registered_connection_new(struct sl_rpc *rpc, const char *address, const char *endpoint,
                             uint64_t token, const struct sl_registration_config *config,
                             const struct sl_registered_connection_ops *ops,
                             struct sl_registered_connection **out)
{
    int rc = sl_registration_config_check(config);
    if (rc != 0) {
        return rc;
    }
    struct sl_registered_connection *self = sl_calloc(1, sizeof(*self));
    self->rpc = rpc;
    self->address = sl_strdup(address);
    self->endpoint = sl_strdup(endpoint);
    self->token = token;
    self->config = *config;
    self->ops = *ops;
    *out = self;
    return 0;
}

void
sl_registered_connection_close(struct sl_registered_connection *self)
{
    self->is_closed = true;
    if (self->pending != NULL) {
        sl_registration_cancel(self->pending);
    }
    sl_rpc_gateway_free(self->gateway);
    self->gateway = NULL;
}

void
sl_registered_connection_free(struct sl_registered_connection *self)
{
    if (self == NULL) {
        return;
    }
    sl_registered_connection_close(self);
    sl_registration_free(self->pending);
    sl_free(self->address);
    sl_free(self->endpoint);
    sl_free(self);
}

static int
generate(void *ctx, uint32_t attempt, uint32_t *method, struct sl_buf *body)
{
    struct sl_registered_connection *self = ctx;
    int rc = self->ops.generate_registration(self->ops.ctx, attempt, method, body);
    if (rc == 0 && self->ops.invoke_registration != NULL) {
        rc = self->ops.invoke_registration(self->ops.ctx, attempt);
    }
    return rc;
}

static void
ended(void *ctx, struct sl_registration *registration, enum sl_registration_end end,
      const struct sl_rpc_result *result)
{
    struct sl_registered_connection *self = ctx;
    /* Only the pending registration speaks: the others were cancelled. */
    sl_assert(registration == self->pending && !self->is_closed);
    if (end != SL_REGISTRATION_SUCCESS) {
        self->ops.on_failure(self->ops.ctx, self, end, result->code, result->reason);
        return;
    }
    sl_rpc_gateway_free(self->gateway);
    self->gateway = sl_registration_take_gateway(registration);
    self->ops.on_success(self->ops.ctx, self, result->body, result->size);
}

static int
make_registration(struct sl_registered_connection *self, struct sl_registration **out)
{
    struct sl_registration_options options = {
        .address = self->address,
        .endpoint = self->endpoint,
        .token = self->token,
        .config = self->config,
        .generate = generate,
        .done = ended,
        .ctx = self,
    };
    return sl_registration_new(self->rpc, &options, out);
}

/* Makes `fresh` the pending registration if that is still `expected`; the loser is cancelled. */
static bool
compare_and_set(struct sl_registered_connection *self, struct sl_registration *expected,
                struct sl_registration *fresh)
{
    if (self->pending != expected) {
        sl_registration_free(fresh);
        return false;
    }
    self->pending = fresh;
    sl_registration_free(expected);
    return true;
}

int
sl_registered_connection_start(struct sl_registered_connection *self)
{
    struct sl_registration *fresh;
    if (self->is_closed) {
        return sl_err_set(SL_ECONFLICT, "connection to %s is closed", self->address);
    }
    if (self->pending != NULL || self->gateway != NULL) {
        return sl_err_set(SL_ECONFLICT, "connection to %s is started already", self->address);
    }
    int rc = make_registration(self, &fresh);
    if (rc != 0) {
        return rc;
    }
    if (compare_and_set(self, NULL, fresh)) {
        sl_registration_start(fresh);
    }
    return 0;
}

int
sl_registered_connection_try_reconnect(struct sl_registered_connection *self, bool *started)
{
    struct sl_registration *fresh;
    *started = false;
    if (self->is_closed) {
        return 0;
    }
    if (self->gateway == NULL) {
        return sl_err_set(SL_ECONFLICT, "connection to %s was never established", self->address);
    }
    struct sl_registration *old = self->pending;
    sl_registration_cancel(old);
    int rc = make_registration(self, &fresh);
    if (rc != 0) {
        return rc;
    }
    if (compare_and_set(self, old, fresh)) {
        sl_registration_start(fresh);
        *started = !self->is_closed;
    }
    return 0;
}

bool
sl_registered_connection_is_connected(const struct sl_registered_connection *self)
{
    return self->gateway != NULL;
}

bool
sl_registered_connection_is_closed(const struct sl_registered_connection *self)
{
    return self->is_closed;
}

const char *
sl_registered_connection_address(const struct sl_registered_connection *self)
{
    return self->address;
}

uint64_t
sl_registered_connection_token(const struct sl_registered_connection *self)
{
    return self->token;
}

struct sl_rpc_gateway *
sl_registered_connection_gateway(const struct sl_registered_connection *self)
{
    return self->gateway;
}
