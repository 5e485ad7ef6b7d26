#pragma once
/*
 * A look at protobuf bytes before they are unpacked: protobuf-c allocates what the bytes ask for,
 * so sizes and counts are checked first, by walking the bytes with the message's descriptor and
 * without any allocation. Bytes that pass are well-formed and within the limits.
 */
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

/* How many items a repeated field may have in one message. */
struct sl_pb_limit {
    const ProtobufCMessageDescriptor *message;
    uint32_t tag;
    uint32_t max_count;
};

struct sl_pb_limits {
    /* Bytes of the whole message. */
    size_t max_size;
    /* Fields of the whole message, all levels taken together: bounds the memory of unpacking. */
    uint32_t max_fields;
    /* Repeated fields that are not listed have no limit but max_fields. */
    const struct sl_pb_limit *counts;
    size_t count_limits;
};

/* The limits of an array, in an initializer of the struct above. */
#define SL_PB_COUNTS(array) .counts = (array), .count_limits = sizeof(array) / sizeof((array)[0])

enum {
    /* Levels of messages in messages; ours have 3 or 4. */
    SL_PB_DEPTH_MAX = 8,
    /* Fields a reader does not know, in one message: newer writers have a few, garbage has many. */
    SL_PB_UNKNOWN_MAX = 64,
};

/*
 * Checks that size bytes are a message of this descriptor: every field complete and of the wire
 * type its kind has, enum values known, strings valid UTF-8 without NUL, limits kept. Returns 0,
 * SL_EPROTO for malformed bytes, or SL_ELIMIT.
 */
int sl_pb_check(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, size_t size,
                const struct sl_pb_limits *limits);
