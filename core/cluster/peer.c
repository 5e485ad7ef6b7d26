#include "cluster/peer.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

int
sl_peer_create(struct sl_peer *peer, struct sl_rpc *rpc, const char *resource, uint64_t process,
               const char *address, const char *endpoint, uint64_t token)
{
    memset(peer, 0, sizeof(*peer));
    snprintf(peer->resource, sizeof(peer->resource), "%s", resource);
    snprintf(peer->address, sizeof(peer->address), "%s", address);
    peer->process = process;
    return sl_rpc_connect(rpc, address, endpoint, token, &peer->gateway);
}

void
sl_peer_destroy(struct sl_peer *peer)
{
    if (peer->heartbeats != NULL) {
        sl_heartbeats_unmonitor(peer->heartbeats, peer->resource);
        peer->heartbeats = NULL;
    }
    sl_rpc_gateway_free(peer->gateway);
    peer->gateway = NULL;
}

static void
heartbeat_answered(void *ctx, const struct sl_rpc_result *result)
{
    struct sl_peer *peer = ctx;
    struct sl_heartbeats *heartbeats = peer->heartbeats;
    struct sl_heartbeat beat = {0};
    struct sl_arena arena;
    if (heartbeats == NULL) {
        return;
    }
    if (result->status != SL_RPC_SUCCESS) {
        sl_heartbeats_answered(heartbeats, peer->resource,
                               result->status == SL_RPC_UNREACHABLE ? SL_HEARTBEAT_UNREACHABLE
                                                                    : SL_HEARTBEAT_OTHER,
                               NULL, 0);
        return;
    }
    sl_arena_create(&arena, 0, 4 * 1024 * 1024);
    if (sl_heartbeat_decode(result->body, result->size, &arena, &beat) == 0) {
        sl_heartbeats_answered(heartbeats, peer->resource, SL_HEARTBEAT_ANSWERED, beat.payload,
                               beat.size);
    }
    sl_arena_destroy(&arena);
}

static void
send_heartbeat(void *ctx, const char *id, const uint8_t *payload, size_t size)
{
    struct sl_peer *peer = ctx;
    struct sl_buf body = {0};
    struct sl_heartbeat beat = {peer->self, payload, size};
    (void)id;
    sl_heartbeat_encode(&beat, &body);
    sl_rpc_call(peer->gateway, peer->method, body.data, body.size,
                peer->heartbeats->config.interval_ms, heartbeat_answered, peer);
    sl_buf_destroy(&body);
}

void
sl_peer_monitor(struct sl_peer *peer, struct sl_heartbeats *heartbeats, const char *self,
                uint32_t method)
{
    struct sl_heartbeat_target target = {send_heartbeat, peer};
    peer->heartbeats = heartbeats;
    peer->self = self;
    peer->method = method;
    sl_heartbeats_monitor(heartbeats, peer->resource, &target);
}

void
sl_peer_answer_heartbeat(struct sl_heartbeats *heartbeats, const char *self,
                         struct sl_rpc_request *request)
{
    struct sl_arena arena;
    struct sl_buf payload = {0};
    struct sl_buf body = {0};
    struct sl_heartbeat beat;
    size_t size;
    const uint8_t *data = sl_rpc_request_body(request, &size);
    sl_arena_create(&arena, 0, 4 * 1024 * 1024);
    if (sl_heartbeat_decode(data, size, &arena, &beat) != 0) {
        sl_rpc_refuse_last(request);
    } else if (!sl_heartbeats_requested(heartbeats, beat.resource, beat.payload, beat.size,
                                        &payload)) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_ENOTFOUND, "%s is not registered with %s",
                      beat.resource, self);
    } else {
        struct sl_heartbeat answer = {self, payload.data, payload.size};
        sl_heartbeat_encode(&answer, &body);
        sl_rpc_reply(request, body.data, body.size);
    }
    sl_buf_destroy(&payload);
    sl_buf_destroy(&body);
    sl_arena_destroy(&arena);
}

void
sl_peer_send_notice(struct sl_rpc_gateway *gateway, uint32_t method,
                    const struct sl_slot_notice *notice)
{
    struct sl_buf body = {0};
    sl_slot_notice_encode(notice, &body);
    sl_rpc_send(gateway, method, body.data, body.size);
    sl_buf_destroy(&body);
}

bool
sl_peer_read_notice(struct sl_rpc_request *request, struct sl_arena *arena,
                    struct sl_slot_notice *message)
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_reset(arena);
    if (sl_slot_notice_decode(body, size, arena, message) != 0) {
        sl_rpc_refuse_last(request);
        return false;
    }
    return true;
}

bool
sl_peer_read_disconnect(struct sl_rpc_request *request, struct sl_arena *arena,
                        struct sl_disconnect *message)
{
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_reset(arena);
    if (sl_disconnect_decode(body, size, arena, message) != 0) {
        sl_rpc_refuse_last(request);
        return false;
    }
    return true;
}

void
sl_peer_reply_registered(struct sl_rpc_request *request, const char *resource, uint64_t instance,
                         uint64_t token)
{
    struct sl_registered answer = {resource, instance, token};
    struct sl_buf body = {0};
    sl_registered_encode(&answer, &body);
    sl_rpc_reply(request, body.data, body.size);
    sl_buf_destroy(&body);
}

bool
sl_peer_is_identity(const struct sl_rpc_result *result, const char *resource, uint64_t process)
{
    struct sl_arena arena;
    struct sl_registered who;
    bool is_same = false;
    sl_arena_create(&arena, 0, 64 * 1024);
    if (result->status == SL_RPC_SUCCESS &&
        sl_registered_decode(result->body, result->size, &arena, &who) == 0) {
        is_same = strcmp(who.resource, resource) == 0 && who.instance == process;
    }
    sl_arena_destroy(&arena);
    return is_same;
}
