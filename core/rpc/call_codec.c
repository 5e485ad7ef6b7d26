#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "rpc/rpc_codec.h"

/*
 * RpcRequest and RpcReply by hand: they stand around every call, and a packer that is driven by
 * descriptors takes more time than all the rest of a call. The bytes are those of protobuf, with
 * fields in order and none that is 0 or empty; what is refused is what sl_pb_check refuses. The
 * body is not copied: it stays where the frame is.
 */

enum {
    WIRE_VARINT = 0,
    WIRE_64BIT = 1,
    WIRE_BYTES = 2,
    WIRE_32BIT = 5,
    VARINT_MAX = 10,
    FIELDS_MAX = 64,
    STATUS_MAX = 5,
};

static uint8_t *
put_varint(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

static uint8_t *
put_number(uint8_t *at, unsigned tag, uint64_t value)
{
    if (value != 0) {
        *at++ = (uint8_t)(tag << 3 | WIRE_VARINT);
        at = put_varint(at, value);
    }
    return at;
}

static uint8_t *
put_bytes(uint8_t *at, unsigned tag, const void *bytes, size_t size)
{
    if (size > 0) {
        *at++ = (uint8_t)(tag << 3 | WIRE_BYTES);
        at = put_varint(at, size);
        memcpy(at, bytes, size);
        at += size;
    }
    return at;
}

void
sl__rpc_encode_request(const struct sl__rpc_request_message *request, struct sl_buf *out)
{
    size_t name_size = strlen(request->endpoint);
    uint8_t *start = sl_buf_reserve(out, 6 * (1 + VARINT_MAX) + name_size + request->size);
    uint8_t *at = put_number(start, 1, request->id);
    at = put_bytes(at, 2, request->endpoint, name_size);
    at = put_number(at, 3, request->method);
    at = put_number(at, 4, request->token);
    at = put_number(at, 5, request->timeout_ms);
    at = put_bytes(at, 6, request->body, request->size);
    sl_buf_commit(out, (size_t)(at - start));
}

void
sl__rpc_encode_reply(const struct sl__rpc_reply_message *reply, struct sl_buf *out)
{
    const char *code = reply->code != 0 ? sl_err_name(reply->code) : "";
    const char *reason = reply->reason != NULL ? reply->reason : "";
    size_t code_size = strlen(code);
    size_t reason_size = strlen(reason);
    uint8_t *start =
        sl_buf_reserve(out, 5 * (1 + VARINT_MAX) + code_size + reason_size + reply->size);
    uint8_t *at = put_number(start, 1, reply->id);
    at = put_number(at, 2, reply->status);
    at = put_bytes(at, 3, code, code_size);
    at = put_bytes(at, 4, reason, reason_size);
    at = put_bytes(at, 5, reply->body, reply->size);
    sl_buf_commit(out, (size_t)(at - start));
}

/* A field that was read: a number, or bytes in place. */
struct field {
    uint32_t tag;
    int wire;
    uint64_t number;
    const uint8_t *bytes;
};

struct reader {
    const uint8_t *at;
    const uint8_t *end;
    int fields;
};

static int
read_varint(struct reader *reader, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (reader->at == reader->end) {
            return sl_err_set(SL_EPROTO, "message is cut off inside a number");
        }
        uint8_t byte = *reader->at++;
        if (shift == 63 && byte > 1) {
            break;
        }
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return 0;
        }
    }
    return sl_err_set(SL_EPROTO, "a number has more than 64 bits");
}

/* Skips over `size` bytes, which the field then names. */
static int
read_bytes(struct reader *reader, struct field *field, uint64_t size)
{
    if (size > (uint64_t)(reader->end - reader->at)) {
        return sl_err_set(SL_EPROTO, "message is cut off");
    }
    field->bytes = reader->at;
    field->number = size;
    reader->at += size;
    return 0;
}

static int
read_field(struct reader *reader, struct field *field)
{
    uint64_t key;
    uint64_t size;
    int rc = read_varint(reader, &key);
    if (rc != 0) {
        return rc;
    }
    field->tag = (uint32_t)(key >> 3);
    field->wire = (int)(key & 7);
    if (key > UINT32_MAX || field->tag == 0) {
        return sl_err_set(SL_EPROTO, "no field starts with key %llu", (unsigned long long)key);
    }
    if (++reader->fields > FIELDS_MAX) {
        return sl_err_set(SL_ELIMIT, "message has more than %d fields", FIELDS_MAX);
    }
    switch (field->wire) {
    case WIRE_VARINT:
        return read_varint(reader, &field->number);
    case WIRE_64BIT:
        return read_bytes(reader, field, 8);
    case WIRE_32BIT:
        return read_bytes(reader, field, 4);
    case WIRE_BYTES:
        rc = read_varint(reader, &size);
        return rc != 0 ? rc : read_bytes(reader, field, size);
    default:
        return sl_err_set(SL_EPROTO, "no field starts with key %llu", (unsigned long long)key);
    }
}

static int
expect_wire(const struct field *field, int wire)
{
    return field->wire == wire
               ? 0
               : sl_err_set(SL_EPROTO, "field %u has wire type %d", field->tag, field->wire);
}

static int
take_text(const struct field *field, struct sl_arena *arena, const char **text)
{
    size_t size = (size_t)field->number;
    int rc = expect_wire(field, WIRE_BYTES);
    if (rc != 0) {
        return rc;
    }
    if (memchr(field->bytes, 0, size) != NULL ||
        !sl_text_is_utf8((const char *)field->bytes, size)) {
        return sl_err_set(SL_EPROTO, "field %u is no text", field->tag);
    }
    char *copy = sl_arena_alloc(arena, size + 1);
    if (copy == NULL) {
        return sl_err_set(SL_ELIMIT, "text of %zu bytes", size);
    }
    memcpy(copy, field->bytes, size);
    copy[size] = '\0';
    *text = copy;
    return 0;
}

static int
begin(struct reader *reader, const uint8_t *data, size_t size)
{
    *reader = (struct reader){data, data + size, 0};
    return size <= SL_FRAME_CONTROL_MAX
               ? 0
               : sl_err_set(SL_ELIMIT, "message of %zu bytes; the limit is %d", size,
                            SL_FRAME_CONTROL_MAX);
}

static int
take_request_field(const struct field *field, struct sl_arena *arena,
                   struct sl__rpc_request_message *request)
{
    switch (field->tag) {
    case 1:
        request->id = field->number;
        return expect_wire(field, WIRE_VARINT);
    case 2:
        return take_text(field, arena, &request->endpoint);
    case 3:
        request->method = (uint32_t)field->number;
        return expect_wire(field, WIRE_VARINT);
    case 4:
        request->token = field->number;
        return expect_wire(field, WIRE_VARINT);
    case 5:
        request->timeout_ms = (uint32_t)field->number;
        return expect_wire(field, WIRE_VARINT);
    case 6:
        request->body = field->bytes;
        request->size = (size_t)field->number;
        return expect_wire(field, WIRE_BYTES);
    default:
        /* Of a newer writer. */
        return 0;
    }
}

int
sl__rpc_decode_request(const uint8_t *data, size_t size, struct sl_arena *arena,
                       struct sl__rpc_request_message *request)
{
    struct reader reader;
    int rc = begin(&reader, data, size);
    *request = (struct sl__rpc_request_message){.endpoint = ""};
    while (rc == 0 && reader.at < reader.end) {
        struct field field;
        rc = read_field(&reader, &field);
        if (rc == 0) {
            rc = take_request_field(&field, arena, request);
        }
    }
    return rc;
}

static int
take_reply_field(const struct field *field, struct sl_arena *arena,
                 struct sl__rpc_reply_message *reply, const char **code)
{
    switch (field->tag) {
    case 1:
        reply->id = field->number;
        return expect_wire(field, WIRE_VARINT);
    case 2:
        if (expect_wire(field, WIRE_VARINT) != 0 || field->number > STATUS_MAX) {
            return sl_err_set(SL_EPROTO, "field status has an unknown value");
        }
        reply->status = (uint32_t)field->number;
        return 0;
    case 3:
        return take_text(field, arena, code);
    case 4:
        return take_text(field, arena, &reply->reason);
    case 5:
        reply->body = field->bytes;
        reply->size = (size_t)field->number;
        return expect_wire(field, WIRE_BYTES);
    default:
        return 0;
    }
}

int
sl__rpc_decode_reply(const uint8_t *data, size_t size, struct sl_arena *arena,
                     struct sl__rpc_reply_message *reply)
{
    struct reader reader;
    const char *name = "";
    int rc = begin(&reader, data, size);
    *reply = (struct sl__rpc_reply_message){.reason = ""};
    while (rc == 0 && reader.at < reader.end) {
        struct field field;
        rc = read_field(&reader, &field);
        if (rc == 0) {
            rc = take_reply_field(&field, arena, reply, &name);
        }
    }
    if (rc == 0 && reply->status == 0) {
        rc = sl_err_set(SL_EPROTO, "reply without a status");
    }
    if (rc == 0 && reply->status != 1) {
        int code = sl_err_code(name);
        reply->code = code != 0 ? code : SL_EINTERNAL;
    }
    return rc;
}
