#pragma once
/* The messages of proto/rpc.proto as plain structs. Texts of a decoded message lie in the arena,
 * its body in the bytes that were read. */

#include "base/arena.h"
#include "base/buf.h"
#include "wire/frame.h"

enum { SL__RPC_NONCE_SIZE = 32, SL__RPC_MAC_SIZE = 32 };

/* RpcChallenge, RpcHello and RpcWelcome; each uses its own fields. */
struct sl__rpc_hello {
    uint32_t version;
    uint32_t min_version;
    uint8_t nonce[SL__RPC_NONCE_SIZE];
    const char *role;
    const char *name;
    const char *cluster;
};

struct sl__rpc_request_message {
    uint64_t id;
    const char *endpoint;
    uint32_t method;
    uint64_t token;
    uint32_t timeout_ms;
    const uint8_t *body;
    size_t size;
};

struct sl__rpc_reply_message {
    uint64_t id;
    uint32_t status;
    int code;
    const char *reason;
    const uint8_t *body;
    size_t size;
};

/* Append the bytes of a message, without a frame. */
void sl__rpc_encode_challenge(const struct sl__rpc_hello *hello, struct sl_buf *out);
void sl__rpc_encode_hello(const struct sl__rpc_hello *hello, struct sl_buf *out);
void sl__rpc_encode_welcome(const struct sl__rpc_hello *hello, struct sl_buf *out);
void sl__rpc_encode_refused(const char *reason, struct sl_buf *out);
void sl__rpc_encode_request(const struct sl__rpc_request_message *request, struct sl_buf *out);
void sl__rpc_encode_reply(const struct sl__rpc_reply_message *reply, struct sl_buf *out);

/* Read a message; SL_EPROTO or SL_ELIMIT. */
int sl__rpc_decode_challenge(const uint8_t *data, size_t size, struct sl_arena *arena,
                             struct sl__rpc_hello *hello);
int sl__rpc_decode_hello(const uint8_t *data, size_t size, struct sl_arena *arena,
                         struct sl__rpc_hello *hello);
int sl__rpc_decode_welcome(const uint8_t *data, size_t size, struct sl_arena *arena,
                           struct sl__rpc_hello *hello);
int sl__rpc_decode_refused(const uint8_t *data, size_t size, struct sl_arena *arena,
                           const char **reason);
int sl__rpc_decode_request(const uint8_t *data, size_t size, struct sl_arena *arena,
                           struct sl__rpc_request_message *request);
int sl__rpc_decode_reply(const uint8_t *data, size_t size, struct sl_arena *arena,
                         struct sl__rpc_reply_message *reply);
