#include "rpc/leader_link.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/log.h"

int
sl_leader_link_create(struct sl_leader_link *link, struct sl_rpc *rpc, const char *endpoint,
                      const struct sl_registration_config *config,
                      const struct sl_leader_link_ops *ops)
{
    int rc = sl_registration_config_check(config);
    if (rc != 0) {
        return rc;
    }
    if (strlen(endpoint) > SL_RPC_NAME_MAX) {
        return sl_err_set(SL_EINVAL, "the name of an endpoint has 1 to %d bytes", SL_RPC_NAME_MAX);
    }
    memset(link, 0, sizeof(*link));
    link->rpc = rpc;
    link->config = *config;
    link->ops = *ops;
    memcpy(link->endpoint, endpoint, strlen(endpoint) + 1);
    return 0;
}

void
sl_leader_link_destroy(struct sl_leader_link *link)
{
    sl_registered_connection_free(link->connection);
    link->connection = NULL;
    link->is_established = false;
}

struct sl_rpc_gateway *
sl_leader_link_gateway(const struct sl_leader_link *link)
{
    return link->is_established ? sl_registered_connection_gateway(link->connection) : NULL;
}

void
sl_leader_link_close(struct sl_leader_link *link, const char *cause)
{
    struct sl_registered_connection *old = link->connection;
    if (link->is_established && link->ops.on_closing != NULL) {
        link->ops.on_closing(link->ops.ctx, link, cause);
    }
    link->is_established = false;
    link->connection = NULL;
    sl_registered_connection_free(old);
}

static int
generate(void *ctx, uint32_t attempt, uint32_t *method, struct sl_buf *body)
{
    struct sl_leader_link *link = ctx;
    (void)attempt;
    return link->ops.generate(link->ops.ctx, link, ++link->sequence, method, body);
}

static void
fail(struct sl_leader_link *link, enum sl_registration_end kind, int code, const char *reason)
{
    sl_log_warn("rpc", "registration ended endpoint=%s address=%s kind=%d reason=%s",
                link->endpoint, link->address, (int)kind, reason);
    link->ops.on_failure(link->ops.ctx, link, kind, code, reason);
}

static void
on_success(void *ctx, struct sl_registered_connection *connection, const uint8_t *body, size_t size)
{
    struct sl_leader_link *link = ctx;
    struct sl_registered answer;
    struct sl_arena arena;
    /* A late success of a closed object is nobody's. */
    if (connection != link->connection) {
        return;
    }
    sl_arena_create(&arena, 0, 64 * 1024);
    int rc = sl_registered_decode(body, size, &arena, &answer);
    if (rc != 0) {
        char reason[SL_ERR_MSG_SIZE + 64];
        snprintf(reason, sizeof(reason), "answer to the registration: %s", sl_err_last()->msg);
        fail(link, SL_REGISTRATION_FAILED, rc, reason);
    } else {
        link->is_established = true;
        link->ops.on_established(link->ops.ctx, link, &answer);
    }
    sl_arena_destroy(&arena);
}

static void
on_failure(void *ctx, struct sl_registered_connection *connection, enum sl_registration_end kind,
           int code, const char *reason)
{
    struct sl_leader_link *link = ctx;
    if (connection == link->connection) {
        fail(link, kind, code, reason);
    }
}

void
sl_leader_link_connect(struct sl_leader_link *link)
{
    sl_assert(link->has_leader);
    sl_assert(!link->is_established);
    sl_assert(link->connection == NULL);
    struct sl_registered_connection_ops ops = {
        .generate_registration = generate,
        .on_success = on_success,
        .on_failure = on_failure,
        .ctx = link,
    };
    int rc = sl_registered_connection_new(link->rpc, link->address, link->endpoint, link->token,
                                          &link->config, &ops, &link->connection);
    sl_assert_eq(rc, 0);
    link->connections++;
    rc = sl_registered_connection_start(link->connection);
    sl_assert_eq(rc, 0);
}

void
sl_leader_link_try_connect(struct sl_leader_link *link)
{
    if (link->has_leader) {
        sl_leader_link_connect(link);
    }
}

void
sl_leader_link_notify_new_leader(struct sl_leader_link *link, const char *address, uint64_t token)
{
    char cause[SL_ADDRESS_TEXT_SIZE + 64];
    if (address != NULL) {
        snprintf(cause, sizeof(cause), "the leader of %.64s is now at %.200s", link->endpoint,
                 address);
    } else {
        snprintf(cause, sizeof(cause), "%.64s has no leader", link->endpoint);
    }
    link->has_leader = address != NULL;
    link->token = token;
    snprintf(link->address, sizeof(link->address), "%s", address != NULL ? address : "");
    sl_leader_link_close(link, cause);
    sl_leader_link_try_connect(link);
}

void
sl_leader_link_reconnect(struct sl_leader_link *link, const char *cause)
{
    sl_leader_link_close(link, cause);
    sl_leader_link_try_connect(link);
}
