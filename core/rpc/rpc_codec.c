#include "rpc/rpc_codec.h"

#include <string.h>

#include "base/err.h"
#include "rpc.pb-c.h"
#include "wire/message.h"

static const struct sl_pb_limits opening_limits = {.max_size = SL_FRAME_HELLO_MAX,
                                                   .max_fields = 64};

void
sl__rpc_encode_challenge(const struct sl__rpc_hello *hello, struct sl_buf *out)
{
    Streamlua__RpcChallenge message = STREAMLUA__RPC_CHALLENGE__INIT;
    message.version = hello->version;
    message.min_version = hello->min_version;
    message.nonce = (ProtobufCBinaryData){SL__RPC_NONCE_SIZE, SL_PB_MUTABLE(hello->nonce)};
    sl_message_pack(&message.base, out);
}

void
sl__rpc_encode_hello(const struct sl__rpc_hello *hello, struct sl_buf *out)
{
    Streamlua__RpcHello message = STREAMLUA__RPC_HELLO__INIT;
    message.version = hello->version;
    message.min_version = hello->min_version;
    message.nonce = (ProtobufCBinaryData){SL__RPC_NONCE_SIZE, SL_PB_MUTABLE(hello->nonce)};
    message.role = sl_pb_text(hello->role);
    message.name = sl_pb_text(hello->name);
    message.cluster = sl_pb_text(hello->cluster);
    sl_message_pack(&message.base, out);
}

void
sl__rpc_encode_welcome(const struct sl__rpc_hello *hello, struct sl_buf *out)
{
    Streamlua__RpcWelcome message = STREAMLUA__RPC_WELCOME__INIT;
    message.version = hello->version;
    message.role = sl_pb_text(hello->role);
    message.name = sl_pb_text(hello->name);
    sl_message_pack(&message.base, out);
}

void
sl__rpc_encode_refused(const char *reason, struct sl_buf *out)
{
    Streamlua__RpcRefused message = STREAMLUA__RPC_REFUSED__INIT;
    message.reason = SL_PB_MUTABLE(reason);
    sl_message_pack(&message.base, out);
}

static int
copy_nonce(const ProtobufCBinaryData *from, uint8_t nonce[SL__RPC_NONCE_SIZE])
{
    if (from->len != SL__RPC_NONCE_SIZE) {
        return sl_err_set(SL_EPROTO, "nonce of %zu bytes", from->len);
    }
    memcpy(nonce, from->data, SL__RPC_NONCE_SIZE);
    return 0;
}

int
sl__rpc_decode_challenge(const uint8_t *data, size_t size, struct sl_arena *arena,
                         struct sl__rpc_hello *hello)
{
    ProtobufCMessage *base;
    int rc = sl_message_unpack(&streamlua__rpc_challenge__descriptor, data, size, &opening_limits,
                               arena, &base);
    if (rc != 0) {
        return rc;
    }
    const Streamlua__RpcChallenge *message = (const Streamlua__RpcChallenge *)base;
    *hello =
        (struct sl__rpc_hello){.version = message->version, .min_version = message->min_version};
    return copy_nonce(&message->nonce, hello->nonce);
}

int
sl__rpc_decode_hello(const uint8_t *data, size_t size, struct sl_arena *arena,
                     struct sl__rpc_hello *hello)
{
    ProtobufCMessage *base;
    int rc = sl_message_unpack(&streamlua__rpc_hello__descriptor, data, size, &opening_limits,
                               arena, &base);
    if (rc != 0) {
        return rc;
    }
    const Streamlua__RpcHello *message = (const Streamlua__RpcHello *)base;
    *hello = (struct sl__rpc_hello){.version = message->version,
                                    .min_version = message->min_version,
                                    .role = message->role,
                                    .name = message->name,
                                    .cluster = message->cluster};
    return copy_nonce(&message->nonce, hello->nonce);
}

int
sl__rpc_decode_welcome(const uint8_t *data, size_t size, struct sl_arena *arena,
                       struct sl__rpc_hello *hello)
{
    ProtobufCMessage *base;
    int rc = sl_message_unpack(&streamlua__rpc_welcome__descriptor, data, size, &opening_limits,
                               arena, &base);
    if (rc != 0) {
        return rc;
    }
    const Streamlua__RpcWelcome *message = (const Streamlua__RpcWelcome *)base;
    *hello = (struct sl__rpc_hello){
        .version = message->version, .role = message->role, .name = message->name};
    return 0;
}

int
sl__rpc_decode_refused(const uint8_t *data, size_t size, struct sl_arena *arena,
                       const char **reason)
{
    ProtobufCMessage *base;
    int rc = sl_message_unpack(&streamlua__rpc_refused__descriptor, data, size, &opening_limits,
                               arena, &base);
    if (rc == 0) {
        *reason = ((const Streamlua__RpcRefused *)base)->reason;
    }
    return rc;
}
