#pragma once
/*
 * The link of a role to a leader that changes: at most one registered connection, which belongs to
 * the present (address, token). A change runs through
 *
 *     notify_new_leader -> close the old -> try_connect -> connect
 *
 * and connect asserts that an address is set, nothing is established and nothing is pending.
 */

#include <stdbool.h>
#include <stdint.h>

#include "loop/address.h"
#include "rpc/messages.h"
#include "rpc/registered_connection.h"

struct sl_leader_link;

struct sl_leader_link_ops {
    /* Writes the method and the body of an attempt. `sequence` grows with every attempt of this
     * link, so that the receiver can tell the newest. */
    int (*generate)(void *ctx, struct sl_leader_link *link, uint64_t sequence, uint32_t *method,
                    struct sl_buf *body);
    /* Registered with the present leader; called again after a reconnect. */
    void (*on_established)(void *ctx, struct sl_leader_link *link,
                           const struct sl_registered *answer);
    /* An established link ends; its gateway can still send a last word. May be NULL. */
    void (*on_closing)(void *ctx, struct sl_leader_link *link, const char *cause);
    /*
     * Not registered and not tried again until the next leader or reconnect: REJECTED, STALE (look
     * the leader up again) or FAILED (a bug of ours: stop the endpoint).
     */
    void (*on_failure)(void *ctx, struct sl_leader_link *link, enum sl_registration_end kind,
                       int code, const char *reason);
    void *ctx;
};

/* In the memory of its owner. */
struct sl_leader_link {
    struct sl_rpc *rpc;
    /* What is linked, for messages and the endpoint's name: "resource_manager". */
    char endpoint[SL_RPC_NAME_MAX + 1];
    struct sl_registration_config config;
    struct sl_leader_link_ops ops;
    bool has_leader;
    char address[SL_ADDRESS_TEXT_SIZE];
    uint64_t token;
    struct sl_registered_connection *connection;
    bool is_established;
    uint64_t sequence;
    /* Connection objects made so far. */
    uint64_t connections;
};

/* SL_EINVAL for a bad config or a name that is too long. */
int sl_leader_link_create(struct sl_leader_link *link, struct sl_rpc *rpc, const char *endpoint,
                          const struct sl_registration_config *config,
                          const struct sl_leader_link_ops *ops);

/* Closes without a callback. */
void sl_leader_link_destroy(struct sl_leader_link *link);

/*
 * The leader is now at this address in this term; NULL: there is none. The old connection is closed
 * with its cause, then the new one starts. Called by a leader listener, which reports real changes
 * only.
 */
void sl_leader_link_notify_new_leader(struct sl_leader_link *link, const char *address,
                                      uint64_t token);

/* Ends the present connection, established or pending; the leader stays known. */
void sl_leader_link_close(struct sl_leader_link *link, const char *cause);

/* Connects when a leader is known. */
void sl_leader_link_try_connect(struct sl_leader_link *link);

/* Makes the connection object and starts it. */
void sl_leader_link_connect(struct sl_leader_link *link);

/* Closes and registers anew with the same leader. */
void sl_leader_link_reconnect(struct sl_leader_link *link, const char *cause);

/* NULL unless established. */
struct sl_rpc_gateway *sl_leader_link_gateway(const struct sl_leader_link *link);
