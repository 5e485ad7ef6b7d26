#include "rpc/registration.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"

enum state {
    NEW,
    RESOLVING,
    REGISTERING,
    DONE,
    CANCELLED,
};

struct sl_registration {
    struct sl_rpc *rpc;
    struct sl_registration_options options;
    char *address;
    char *endpoint;
    enum state state;
    struct sl_rpc_gateway *gateway;
    uint32_t attempt;
    uint64_t timeout_ms;
    /* The pause, or the moment at which a synchronous failure is told. */
    struct sl_timer timer;
    struct sl_err failure;
};

struct sl_registration_config
sl_registration_config_default(void)
{
    return (struct sl_registration_config){SL_REGISTRATION_INITIAL_MS, SL_REGISTRATION_MAX_MS,
                                           SL_REGISTRATION_ERROR_MS, SL_REGISTRATION_REFUSED_MS};
}

int
sl_registration_config_check(const struct sl_registration_config *config)
{
    if (config->initial_timeout_ms == 0) {
        return sl_err_set(SL_EINVAL, "registration_initial_timeout must be above 0");
    }
    if (config->max_timeout_ms < config->initial_timeout_ms) {
        return sl_err_set(SL_EINVAL,
                          "registration_max_timeout (%llu ms) must not be below "
                          "registration_initial_timeout (%llu ms)",
                          (unsigned long long)config->max_timeout_ms,
                          (unsigned long long)config->initial_timeout_ms);
    }
    return 0;
}

int
sl_registration_new(struct sl_rpc *rpc, const struct sl_registration_options *options,
                    struct sl_registration **out)
{
    int rc = sl_registration_config_check(&options->config);
    if (rc != 0) {
        return rc;
    }
    struct sl_registration *self = sl_calloc(1, sizeof(*self));
    self->rpc = rpc;
    self->options = *options;
    self->address = sl_strdup(options->address);
    self->endpoint = sl_strdup(options->endpoint);
    *out = self;
    return 0;
}

void
sl_registration_cancel(struct sl_registration *self)
{
    if (self->state != DONE) {
        self->state = CANCELLED;
    }
    sl_timer_stop(&self->timer);
    /* Open calls go with the gateway. */
    sl_rpc_gateway_free(self->gateway);
    self->gateway = NULL;
}

void
sl_registration_free(struct sl_registration *self)
{
    if (self == NULL) {
        return;
    }
    sl_registration_cancel(self);
    sl_free(self->address);
    sl_free(self->endpoint);
    sl_free(self);
}

struct sl_rpc_gateway *
sl_registration_take_gateway(struct sl_registration *self)
{
    struct sl_rpc_gateway *gateway = self->gateway;
    sl_assert_eq(self->state, DONE);
    self->gateway = NULL;
    return gateway;
}

static void
tell(struct sl_registration *self, enum sl_registration_end end, const struct sl_rpc_result *result)
{
    sl_assert(self->state != DONE && self->state != CANCELLED);
    self->state = DONE;
    self->options.done(self->options.ctx, self, end, result);
}

static void
tell_failure(void *ctx, uint64_t ticket)
{
    struct sl_registration *self = ctx;
    char reason[512];
    (void)ticket;
    sl_err_format(&self->failure, reason, sizeof(reason));
    struct sl_rpc_result result = {
        .status = SL_RPC_ERROR, .code = self->failure.code, .reason = reason};
    tell(self, SL_REGISTRATION_FAILED, &result);
}

/* The call itself can not be made: our own mistake, which no repetition heals. */
static void
fail(struct sl_registration *self)
{
    sl_err_move(&self->failure);
    sl_timer_start(sl_rpc_loop(self->rpc), &self->timer, 0, tell_failure, self);
}

static void attempt(struct sl_registration *self, uint32_t number, uint64_t timeout_ms);

static void
attempt_anew(void *ctx, uint64_t ticket)
{
    struct sl_registration *self = ctx;
    (void)ticket;
    attempt(self, 1, self->options.config.initial_timeout_ms);
}

static void
pause_then(struct sl_registration *self, uint64_t delay_ms, void (*fn)(void *ctx, uint64_t ticket))
{
    sl_timer_start(sl_rpc_loop(self->rpc), &self->timer, delay_ms, fn, self);
}

static void
answered(void *ctx, const struct sl_rpc_result *result)
{
    struct sl_registration *self = ctx;
    const struct sl_registration_config *config = &self->options.config;
    switch (result->status) {
    case SL_RPC_SUCCESS:
        tell(self, SL_REGISTRATION_SUCCESS, result);
        break;
    case SL_RPC_REJECTION:
        tell(self, SL_REGISTRATION_REJECTED, result);
        break;
    case SL_RPC_STALE_TOKEN:
        tell(self, SL_REGISTRATION_STALE, result);
        break;
    case SL_RPC_TIMEOUT: {
        uint64_t doubled_ms = self->timeout_ms > config->max_timeout_ms / 2 ? config->max_timeout_ms
                                                                            : 2 * self->timeout_ms;
        attempt(self, self->attempt + 1, doubled_ms);
        break;
    }
    case SL_RPC_FAILURE:
        pause_then(self, config->refused_delay_ms, attempt_anew);
        break;
    default:
        pause_then(self, config->error_delay_ms, attempt_anew);
    }
}

static void
attempt(struct sl_registration *self, uint32_t number, uint64_t timeout_ms)
{
    uint32_t method = 0;
    struct sl_buf body = {0};
    self->state = REGISTERING;
    self->attempt = number;
    self->timeout_ms = timeout_ms;
    sl_err_clear();
    int rc = self->options.generate(self->options.ctx, number, &method, &body);
    if (rc != 0) {
        if (sl_err_last()->code == 0) {
            sl_err_set(rc, "registration can not be written");
        }
        fail(self);
    } else {
        sl_rpc_call(self->gateway, method, body.data, body.size, timeout_ms, answered, self);
    }
    sl_buf_destroy(&body);
}

static void resolve(struct sl_registration *self);

static void
resolve_again(void *ctx, uint64_t ticket)
{
    (void)ticket;
    resolve(ctx);
}

static void
resolved(void *ctx, const struct sl_rpc_result *result)
{
    struct sl_registration *self = ctx;
    if (result->status == SL_RPC_SUCCESS) {
        attempt(self, 1, self->options.config.initial_timeout_ms);
        return;
    }
    sl_rpc_gateway_free(self->gateway);
    self->gateway = NULL;
    pause_then(self, self->options.config.error_delay_ms, resolve_again);
}

static void
resolve(struct sl_registration *self)
{
    self->state = RESOLVING;
    int rc = sl_rpc_connect(self->rpc, self->address, self->endpoint, self->options.token,
                            &self->gateway);
    if (rc != 0) {
        sl_err_wrap("connect to %s", self->endpoint);
        fail(self);
        return;
    }
    sl_rpc_open(self->gateway, 0, resolved, self);
}

void
sl_registration_start(struct sl_registration *self)
{
    if (self->state == CANCELLED) {
        return;
    }
    sl_assert_eq(self->state, NEW);
    resolve(self);
}
