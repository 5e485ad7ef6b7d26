#pragma once
/* A registered process at the one it registered with: its gateway and its heartbeat. */

#include "base/text.h"
#include "rpc/heartbeat.h"
#include "rpc/leader_retrieval.h"
#include "rpc/messages.h"
#include "rpc/rpc.h"

struct sl_peer {
    char resource[SL_NAME_MAX + 1];
    char address[SL_ADDRESS_TEXT_SIZE];
    /* Drawn at the start of its process. */
    uint64_t process;
    struct sl_rpc_gateway *gateway;
    /* NULL while it is not monitored. */
    struct sl_heartbeats *heartbeats;
    /* Our own name, and the method that asks the peer. */
    const char *self;
    uint32_t method;
    /* Of a supervisor at a topology master: its newest offer that was answered. */
    uint64_t offer;
};

/* Makes the gateway to the peer's endpoint. SL_EINVAL for a bad address. */
int sl_peer_create(struct sl_peer *peer, struct sl_rpc *rpc, const char *resource, uint64_t process,
                   const char *address, const char *endpoint, uint64_t token);

/* Ends the monitoring and the gateway. A last word that was sent still arrives. */
void sl_peer_destroy(struct sl_peer *peer);

/* Asks the peer at every interval of `heartbeats`, by `method`. */
void sl_peer_monitor(struct sl_peer *peer, struct sl_heartbeats *heartbeats, const char *self,
                     uint32_t method);

/* Answers a heartbeat request of a sender that `heartbeats` (a receiver) monitors. */
void sl_peer_answer_heartbeat(struct sl_heartbeats *heartbeats, const char *self,
                              struct sl_rpc_request *request);

/* One-way messages. */
void sl_peer_send_notice(struct sl_rpc_gateway *gateway, uint32_t method,
                         const struct sl_slot_notice *notice);

/*
 * What endpoints of the roles have in common. Readers decode the body of a request into *message,
 * whose texts lie in the arena (which is reset); a malformed one is refused and gives false.
 */
bool sl_peer_read_notice(struct sl_rpc_request *request, struct sl_arena *arena,
                         struct sl_slot_notice *message);
bool sl_peer_read_disconnect(struct sl_rpc_request *request, struct sl_arena *arena,
                             struct sl_disconnect *message);

/* Answers with who we are: to a registration, or to the question who answers here. */
void sl_peer_reply_registered(struct sl_rpc_request *request, const char *resource,
                              uint64_t instance, uint64_t token);

/* Does the answer to an IDENTIFY name this process? */
bool sl_peer_is_identity(const struct sl_rpc_result *result, const char *resource,
                         uint64_t process);
