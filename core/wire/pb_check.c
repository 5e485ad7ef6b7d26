#include "wire/pb_check.h"

#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/text.h"

enum {
    WIRE_VARINT = 0,
    WIRE_64BIT = 1,
    WIRE_BYTES = 2,
    WIRE_32BIT = 5,
    /* More than any message of ours has. */
    FIELDS_MAX = 64,
};

/* What is left of the message being walked. */
struct cursor {
    const uint8_t *at;
    const uint8_t *end;
};

/* State of one check, shared by all levels. */
struct walk {
    const struct sl_pb_limits *limits;
    uint32_t fields_left;
};

static int
read_varint(struct cursor *cursor, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (cursor->at == cursor->end) {
            return sl_err_set(SL_EPROTO, "message is cut off inside a number");
        }
        uint8_t byte = *cursor->at++;
        if (shift == 63 && byte > 1) {
            break;
        }
        result |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *value = result;
            return 0;
        }
    }
    return sl_err_set(SL_EPROTO, "a number has more than 64 bits");
}

/* Takes len bytes off the front. */
static int
take(struct cursor *cursor, uint64_t len, struct cursor *part)
{
    if (len > (uint64_t)(cursor->end - cursor->at)) {
        return sl_err_set(SL_EPROTO, "message is cut off");
    }
    part->at = cursor->at;
    part->end = cursor->at + len;
    cursor->at = part->end;
    return 0;
}

static int
wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return WIRE_32BIT;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_64BIT;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    default:
        return WIRE_VARINT;
    }
}

static int
spend_field(struct walk *walk)
{
    if (walk->fields_left == 0) {
        return sl_err_set(SL_ELIMIT, "message has more than %u fields", walk->limits->max_fields);
    }
    walk->fields_left--;
    return 0;
}

static int
check_enum(const ProtobufCFieldDescriptor *field, uint64_t value)
{
    const ProtobufCEnumDescriptor *values = field->descriptor;
    if (value > INT32_MAX || protobuf_c_enum_descriptor_get_value(values, (int)value) == NULL) {
        return sl_err_set(SL_EPROTO, "field %s has the unknown value %llu", field->name,
                          (unsigned long long)value);
    }
    return 0;
}

/* Skips or checks one value that is no text, bytes or message. */
static int
check_scalar(const ProtobufCFieldDescriptor *field, int wire, struct cursor *cursor)
{
    struct cursor part;
    uint64_t value;
    int rc;
    switch (wire) {
    case WIRE_VARINT:
        rc = read_varint(cursor, &value);
        if (rc == 0 && field != NULL && field->type == PROTOBUF_C_TYPE_ENUM) {
            rc = check_enum(field, value);
        }
        return rc;
    case WIRE_64BIT:
        return take(cursor, 8, &part);
    default:
        return take(cursor, 4, &part);
    }
}

/* The values of a packed repeated field. */
static int
check_packed(struct walk *walk, const ProtobufCFieldDescriptor *field, struct cursor part,
             uint32_t *count)
{
    int wire = wire_type_of(field->type);
    while (part.at < part.end) {
        int rc = spend_field(walk);
        if (rc == 0) {
            rc = check_scalar(field, wire, &part);
        }
        if (rc != 0) {
            return rc;
        }
        (*count)++;
    }
    return 0;
}

static int
check_string(const ProtobufCFieldDescriptor *field, struct cursor part)
{
    size_t len = (size_t)(part.end - part.at);
    if (memchr(part.at, 0, len) != NULL || !sl_text_is_utf8((const char *)part.at, len)) {
        return sl_err_set(SL_EPROTO, "field %s is no text", field->name);
    }
    return 0;
}

static int check_message(struct walk *walk, const ProtobufCMessageDescriptor *descriptor,
                         struct cursor cursor, int depth);

/* One field of a known kind; adds its items to *count. */
static int
check_field(struct walk *walk, const ProtobufCFieldDescriptor *field, int wire,
            struct cursor *cursor, int depth, uint32_t *count)
{
    int expected = wire_type_of(field->type);
    struct cursor part;
    uint64_t len;
    bool is_packed =
        wire == WIRE_BYTES && expected != WIRE_BYTES && field->label == PROTOBUF_C_LABEL_REPEATED;
    if (wire != expected && !is_packed) {
        return sl_err_set(SL_EPROTO, "field %s has wire type %d", field->name, wire);
    }
    if (wire != WIRE_BYTES) {
        (*count)++;
        return check_scalar(field, wire, cursor);
    }
    int rc = read_varint(cursor, &len);
    if (rc == 0) {
        rc = take(cursor, len, &part);
    }
    if (rc != 0) {
        return rc;
    }
    if (is_packed) {
        return check_packed(walk, field, part, count);
    }
    (*count)++;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return check_message(walk, field->descriptor, part, depth + 1);
    }
    return field->type == PROTOBUF_C_TYPE_STRING ? check_string(field, part) : 0;
}

static int
skip_unknown(int wire, struct cursor *cursor)
{
    struct cursor part;
    uint64_t len;
    if (wire != WIRE_BYTES) {
        return check_scalar(NULL, wire, cursor);
    }
    int rc = read_varint(cursor, &len);
    return rc != 0 ? rc : take(cursor, len, &part);
}

static int
check_count(const struct sl_pb_limits *limits, const ProtobufCMessageDescriptor *descriptor,
            const ProtobufCFieldDescriptor *field, uint32_t count)
{
    for (size_t i = 0; i < limits->count_limits; i++) {
        const struct sl_pb_limit *limit = &limits->counts[i];
        if (limit->message == descriptor && limit->tag == field->id && count > limit->max_count) {
            return sl_err_set(SL_ELIMIT, "more than %u items in %s of %s", limit->max_count,
                              field->name, descriptor->short_name);
        }
    }
    return 0;
}

/* Splits a key into tag and wire type; refuses what no writer makes. */
static int
read_key(struct cursor *cursor, uint32_t *tag, int *wire)
{
    uint64_t key;
    int rc = read_varint(cursor, &key);
    if (rc != 0) {
        return rc;
    }
    *tag = (uint32_t)(key >> 3);
    *wire = (int)(key & 7);
    bool is_wire =
        *wire == WIRE_VARINT || *wire == WIRE_64BIT || *wire == WIRE_BYTES || *wire == WIRE_32BIT;
    if (key > UINT32_MAX || *tag == 0 || !is_wire) {
        return sl_err_set(SL_EPROTO, "no field starts with key %llu", (unsigned long long)key);
    }
    return 0;
}

static int
check_message(struct walk *walk, const ProtobufCMessageDescriptor *descriptor, struct cursor cursor,
              int depth)
{
    uint32_t counts[FIELDS_MAX] = {0};
    uint32_t unknown = 0;
    sl_assert_le(descriptor->n_fields, FIELDS_MAX);
    if (depth > SL_PB_DEPTH_MAX) {
        return sl_err_set(SL_ELIMIT, "messages are nested deeper than %d levels", SL_PB_DEPTH_MAX);
    }
    while (cursor.at < cursor.end) {
        uint32_t tag;
        int wire;
        int rc = read_key(&cursor, &tag, &wire);
        if (rc == 0) {
            rc = spend_field(walk);
        }
        if (rc != 0) {
            return rc;
        }
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(descriptor, tag);
        if (field == NULL) {
            rc = ++unknown > SL_PB_UNKNOWN_MAX
                     ? sl_err_set(SL_ELIMIT, "more than %d unknown fields in %s", SL_PB_UNKNOWN_MAX,
                                  descriptor->short_name)
                     : skip_unknown(wire, &cursor);
        } else {
            uint32_t *count = &counts[field - descriptor->fields];
            rc = check_field(walk, field, wire, &cursor, depth, count);
            if (rc == 0) {
                rc = check_count(walk->limits, descriptor, field, *count);
            }
        }
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

int
sl_pb_check(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, size_t size,
            const struct sl_pb_limits *limits)
{
    if (size > limits->max_size) {
        return sl_err_set(SL_ELIMIT, "message of %zu bytes; the limit is %zu", size,
                          limits->max_size);
    }
    if (size == 0) {
        return 0;
    }
    struct walk walk = {limits, limits->max_fields};
    return check_message(&walk, descriptor, (struct cursor){data, data + size}, 1);
}
