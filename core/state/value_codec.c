#include "state/value_codec.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "state.pb-c.h"
#include "state/types.h"
#include "wire/message.h"

static const struct sl_pb_limits limits = {
    .max_size = SL_STATE_NODE_BYTES_MAX,
    .max_fields = 256,
};

/* The message in an arena of the caller's; NULL with an error. */
static void *
unpack(const ProtobufCMessageDescriptor *descriptor, struct sl_arena *arena, const uint8_t *data,
       size_t size)
{
    ProtobufCMessage *message = NULL;
    return sl_message_unpack(descriptor, data, size, &limits, arena, &message) == 0 ? message
                                                                                    : NULL;
}

void
sl_state_envelope_encode(const struct sl_state_envelope *envelope, struct sl_buf *out)
{
    Streamlua__StateValue message = STREAMLUA__STATE_VALUE__INIT;
    Streamlua__StateManifest manifest = STREAMLUA__STATE_MANIFEST__INIT;
    message.format = SL_STATE_FORMAT;
    message.writer.data = SL_PB_MUTABLE(envelope->writer);
    message.writer.len = SL_STATE_WRITER_BYTES;
    message.attempt = envelope->attempt;
    if (envelope->manifest.count > 0) {
        manifest.id = SL_PB_MUTABLE(envelope->manifest.id);
        manifest.count = envelope->manifest.count;
        manifest.size_bytes = envelope->manifest.size_bytes;
        manifest.hash = envelope->manifest.hash;
        message.manifest = &manifest;
    } else {
        message.value.data = SL_PB_MUTABLE(envelope->value);
        message.value.len = envelope->size;
    }
    sl_message_pack(&message.base, out);
}

static int
manifest_from_message(const Streamlua__StateManifest *message, struct sl_state_manifest *manifest)
{
    if (strlen(message->id) != SL_STATE_GUID_TEXT || strchr(message->id, '/') != NULL ||
        message->count == 0 || message->count > SL_STATE_CHUNKS_MAX ||
        message->size_bytes > SL_STATE_VALUE_BYTES_MAX) {
        return sl_err_set(SL_EPROTO, "malformed list of the pieces of a value");
    }
    memcpy(manifest->id, message->id, SL_STATE_GUID_TEXT + 1);
    manifest->count = message->count;
    manifest->size_bytes = message->size_bytes;
    manifest->hash = message->hash;
    return 0;
}

int
sl_state_envelope_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                         struct sl_state_envelope *envelope)
{
    memset(envelope, 0, sizeof(*envelope));
    if (size == 0) {
        return 0;
    }
    int rc = 0;
    Streamlua__StateValue *message = unpack(&streamlua__state_value__descriptor, arena, data, size);
    if (message == NULL) {
        rc = sl_err_last()->code;
    } else if (message->format != SL_STATE_FORMAT) {
        rc = sl_err_set(SL_EPROTO, "value of format %u; this release reads format %d",
                        message->format, SL_STATE_FORMAT);
    } else if (message->writer.len != SL_STATE_WRITER_BYTES) {
        rc = sl_err_set(SL_EPROTO, "writer's id of %zu bytes", message->writer.len);
    } else {
        memcpy(envelope->writer, message->writer.data, SL_STATE_WRITER_BYTES);
        envelope->attempt = message->attempt;
        envelope->value = message->value.data;
        envelope->size = message->value.len;
        if (message->manifest != NULL) {
            rc = manifest_from_message(message->manifest, &envelope->manifest);
        }
    }
    return rc;
}

static int
copy_text(char *dst, const char *src, const char *what)
{
    if (strlen(src) >= SL_STATE_OWNER_TEXT_MAX) {
        return sl_err_set(SL_EPROTO, "%s of more than %d bytes", what, SL_STATE_OWNER_TEXT_MAX - 1);
    }
    strcpy(dst, src);
    return 0;
}

void
sl_state_owner_encode(const struct sl_state_owner *owner, struct sl_buf *out)
{
    Streamlua__StateLockOwner message = STREAMLUA__STATE_LOCK_OWNER__INIT;
    message.name = SL_PB_MUTABLE(owner->name);
    message.host = SL_PB_MUTABLE(owner->host);
    message.pid = owner->pid;
    message.wall_ms = owner->wall_ms;
    sl_message_pack(&message.base, out);
}

int
sl_state_owner_decode(const uint8_t *data, size_t size, struct sl_state_owner *owner)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    memset(owner, 0, sizeof(*owner));
    Streamlua__StateLockOwner *message =
        unpack(&streamlua__state_lock_owner__descriptor, &arena, data, size);
    int rc = message != NULL ? 0 : sl_err_last()->code;
    if (rc == 0) {
        owner->pid = message->pid;
        owner->wall_ms = message->wall_ms;
        rc = copy_text(owner->name, message->name, "owner's name");
    }
    if (rc == 0) {
        rc = copy_text(owner->host, message->host, "owner's host");
    }
    sl_arena_destroy(&arena);
    return rc;
}

void
sl_state_leader_info_encode(const struct sl_state_leader_info *info, struct sl_buf *out)
{
    Streamlua__StateLeader message = STREAMLUA__STATE_LEADER__INIT;
    message.id = SL_PB_MUTABLE(info->id);
    message.address = SL_PB_MUTABLE(info->address);
    message.token = info->token;
    sl_message_pack(&message.base, out);
}

int
sl_state_leader_info_decode(const uint8_t *data, size_t size, struct sl_state_leader_info *info)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    memset(info, 0, sizeof(*info));
    Streamlua__StateLeader *message =
        unpack(&streamlua__state_leader__descriptor, &arena, data, size);
    int rc = message != NULL ? 0 : sl_err_last()->code;
    if (rc == 0) {
        info->token = message->token;
        rc = copy_text(info->id, message->id, "leader's id");
    }
    if (rc == 0) {
        rc = copy_text(info->address, message->address, "leader's address");
    }
    sl_arena_destroy(&arena);
    return rc;
}
