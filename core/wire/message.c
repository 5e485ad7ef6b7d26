#include "wire/message.h"

#include <string.h>

#include "base/err.h"

/* protobuf-c takes its memory from an arena, which is freed whole. */
static void *
take(void *arena, size_t size)
{
    return sl_arena_alloc(arena, size);
}

static void
give(void *arena, void *ptr)
{
    (void)arena;
    (void)ptr;
}

int
sl_message_unpack(const ProtobufCMessageDescriptor *descriptor, const void *data, size_t size,
                  const struct sl_pb_limits *limits, struct sl_arena *arena, void *message)
{
    int rc = sl_pb_check(descriptor, data, size, limits);
    if (rc != 0) {
        return sl_err_wrap("read a message %s", descriptor->short_name);
    }
    ProtobufCAllocator allocator = {take, give, arena};
    ProtobufCMessage *unpacked = protobuf_c_message_unpack(descriptor, &allocator, size, data);
    /* The caller's pointer is of another type. */
    memcpy(message, &unpacked, sizeof(unpacked));
    if (unpacked == NULL) {
        return sl_err_set(SL_ELIMIT, "message %s takes too much memory or is malformed",
                          descriptor->short_name);
    }
    return 0;
}

void
sl_message_pack(const ProtobufCMessage *message, struct sl_buf *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    sl_buf_commit(out, protobuf_c_message_pack(message, sl_buf_reserve(out, size)));
}
