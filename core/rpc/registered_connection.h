#pragma once
/*
 * A connection to one endpoint in one of its terms, which is registered there. Address and token
 * are fixed for its life: a new leader means to close the object and to make a new one.
 *
 *     state        event          action                                             next
 *     IDLE         start          a registration is made and becomes the pending one CONNECTING
 *     not IDLE     start          SL_ECONFLICT                                       same
 *     CONNECTING   success        gateway set, on_success                            CONNECTED
 *     CONNECTING   rejected, ...  on_failure with the kind; gateway stays NULL       FAILED
 *     CONNECTED    try_reconnect  the old registration is cancelled, a new one starts, the old
 *                                 gateway stays visible until it succeeds            CONNECTED
 *     CLOSED       try_reconnect  false                                              CLOSED
 *     else         try_reconnect  SL_ECONFLICT                                       same
 *     any          close          pending one cancelled                              CLOSED
 */

#include <stdbool.h>

#include "rpc/registration.h"

struct sl_registered_connection;

struct sl_registered_connection_ops {
    /* Writes the method and the body of an attempt. */
    int (*generate_registration)(void *ctx, uint32_t attempt, uint32_t *method,
                                 struct sl_buf *body);
    /* Sends what was generated. NULL: the default, a call to the endpoint; a test may replace it by
     * a function that fails. */
    int (*invoke_registration)(void *ctx, uint32_t attempt);
    /* Registered; the body is the answer's. The owner checks that this is still its connection. */
    void (*on_success)(void *ctx, struct sl_registered_connection *connection, const uint8_t *body,
                       size_t size);
    /* Not registered and not tried again. The owner may free the connection. */
    void (*on_failure)(void *ctx, struct sl_registered_connection *connection,
                       enum sl_registration_end kind, int code, const char *reason);
    void *ctx;
};

/* In state IDLE. SL_EINVAL for a bad config. */
int sl_registered_connection_new(struct sl_rpc *rpc, const char *address, const char *endpoint,
                                 uint64_t token, const struct sl_registration_config *config,
                                 const struct sl_registered_connection_ops *ops,
                                 struct sl_registered_connection **connection);

/* Closes and frees; NULL is fine. Allowed in on_success and on_failure. */
void sl_registered_connection_free(struct sl_registered_connection *connection);

int sl_registered_connection_start(struct sl_registered_connection *connection);

/* *started is true when a new registration runs; false when closed or a race was lost. */
int sl_registered_connection_try_reconnect(struct sl_registered_connection *connection,
                                           bool *started);
void sl_registered_connection_close(struct sl_registered_connection *connection);

bool sl_registered_connection_is_connected(const struct sl_registered_connection *connection);
bool sl_registered_connection_is_closed(const struct sl_registered_connection *connection);

/* Both stay readable after close. */
const char *sl_registered_connection_address(const struct sl_registered_connection *connection);
uint64_t sl_registered_connection_token(const struct sl_registered_connection *connection);

/* NULL until the first success, and after close. */
struct sl_rpc_gateway *
sl_registered_connection_gateway(const struct sl_registered_connection *connection);
