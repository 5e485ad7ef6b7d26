#pragma once
/* Packing and unpacking of protobuf messages, with the check of wire/pb_check.h before anything is
 * unpacked and a budget of memory while it is. Only *_codec.c files use it. */

#include "base/arena.h"
#include "base/buf.h"
#include "wire/pb_check.h"

/* A pointer as protobuf-c wants it: it has no const, and packing does not change what is named. */
#define SL_PB_MUTABLE(ptr) ((void *)(uintptr_t)(ptr))

/* A text as protobuf-c wants it; a missing one is empty. */
static inline char *
sl_pb_text(const char *text)
{
    return text != NULL ? SL_PB_MUTABLE(text) : SL_PB_MUTABLE("");
}

/*
 * Checks and unpacks. *message, a pointer to the descriptor's type, lies in the arena and goes with
 * it; the arena's limit bounds what the bytes can make us allocate. SL_EPROTO, SL_ELIMIT.
 */
int sl_message_unpack(const ProtobufCMessageDescriptor *descriptor, const void *data, size_t size,
                      const struct sl_pb_limits *limits, struct sl_arena *arena, void *message);

/* Appends the bytes of a message. */
void sl_message_pack(const ProtobufCMessage *message, struct sl_buf *out);
