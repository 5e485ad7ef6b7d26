#include "cluster/data_codec.h"

#include <string.h>

#include "data.pb-c.h"
#include "wire/frame.h"
#include "wire/message.h"

static const struct sl_pb_limits limits = {.max_size = SL_FRAME_HELLO_MAX, .max_fields = 64};

static ProtobufCBinaryData
bytes_of(const uint8_t *data, size_t size)
{
    return (ProtobufCBinaryData){size, SL_PB_MUTABLE(data)};
}

void
sl_data_encode_challenge(const struct sl_data_challenge *from, struct sl_buf *out)
{
    Streamlua__DataChallenge message = STREAMLUA__DATA_CHALLENGE__INIT;
    message.version = from->version;
    message.nonce = bytes_of(from->nonce, sizeof(from->nonce));
    sl_message_pack(&message.base, out);
}

void
sl_data_encode_hello(const struct sl_data_hello *from, struct sl_buf *out)
{
    Streamlua__DataHello message = STREAMLUA__DATA_HELLO__INIT;
    message.version = from->version;
    message.nonce = bytes_of(from->nonce, sizeof(from->nonce));
    message.topology_id = SL_PB_MUTABLE(from->topology_id);
    message.container = from->container;
    message.to = from->to;
    message.identity = bytes_of(from->identity, sizeof(from->identity));
    if (from->has_known) {
        message.known = bytes_of(from->known, sizeof(from->known));
    }
    message.received = from->received;
    message.window = from->window;
    sl_message_pack(&message.base, out);
}

void
sl_data_encode_welcome(const struct sl_data_welcome *from, struct sl_buf *out)
{
    Streamlua__DataWelcome message = STREAMLUA__DATA_WELCOME__INIT;
    message.identity = bytes_of(from->identity, sizeof(from->identity));
    message.resumes = from->resumes;
    message.received = from->received;
    message.window = from->window;
    message.refused = from->refused != NULL ? SL_PB_MUTABLE(from->refused) : SL_PB_MUTABLE("");
    sl_message_pack(&message.base, out);
}

static int
copy_bytes(const ProtobufCBinaryData *from, uint8_t *to, size_t size, const char *what)
{
    if (from->len != size) {
        return sl_err_set(SL_EPROTO, "%s of %zu bytes, not %zu", what, from->len, size);
    }
    memcpy(to, from->data, size);
    return 0;
}

int
sl_data_decode_challenge(const uint8_t *data, size_t size, struct sl_arena *arena,
                         struct sl_data_challenge *to)
{
    ProtobufCMessage *base;
    int rc = sl_message_unpack(&streamlua__data_challenge__descriptor, data, size, &limits, arena,
                               &base);
    if (rc != 0) {
        return rc;
    }
    const Streamlua__DataChallenge *message = (const Streamlua__DataChallenge *)base;
    *to = (struct sl_data_challenge){.version = message->version};
    return copy_bytes(&message->nonce, to->nonce, sizeof(to->nonce), "nonce");
}

int
sl_data_decode_hello(const uint8_t *data, size_t size, struct sl_arena *arena,
                     struct sl_data_hello *to)
{
    ProtobufCMessage *base;
    int rc =
        sl_message_unpack(&streamlua__data_hello__descriptor, data, size, &limits, arena, &base);
    if (rc != 0) {
        return rc;
    }
    const Streamlua__DataHello *message = (const Streamlua__DataHello *)base;
    *to = (struct sl_data_hello){.version = message->version,
                                 .topology_id = message->topology_id,
                                 .container = message->container,
                                 .to = message->to,
                                 .has_known = message->known.len > 0,
                                 .received = message->received,
                                 .window = message->window};
    rc = copy_bytes(&message->nonce, to->nonce, sizeof(to->nonce), "nonce");
    if (rc == 0) {
        rc = copy_bytes(&message->identity, to->identity, sizeof(to->identity), "identity");
    }
    if (rc == 0 && to->has_known) {
        rc = copy_bytes(&message->known, to->known, sizeof(to->known), "known identity");
    }
    return rc;
}

int
sl_data_decode_welcome(const uint8_t *data, size_t size, struct sl_arena *arena,
                       struct sl_data_welcome *to)
{
    ProtobufCMessage *base;
    int rc =
        sl_message_unpack(&streamlua__data_welcome__descriptor, data, size, &limits, arena, &base);
    if (rc != 0) {
        return rc;
    }
    const Streamlua__DataWelcome *message = (const Streamlua__DataWelcome *)base;
    *to =
        (struct sl_data_welcome){.resumes = message->resumes,
                                 .received = message->received,
                                 .window = message->window,
                                 .refused = message->refused[0] != '\0' ? message->refused : NULL};
    return copy_bytes(&message->identity, to->identity, sizeof(to->identity), "identity");
}
