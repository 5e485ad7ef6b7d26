#include "state/log_codec.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/err.h"
#include "state.pb-c.h"
#include "state/path.h"
#include "wire/message.h"

static const struct sl_pb_limits limits = {
    .max_size = SL_LOG_FRAME_BYTES_MAX,
    .max_fields = 4 * 1024 * 1024,
};

static void
effect_to_message(const struct sl_tree_effect *effect, Streamlua__StateLogEffect *message)
{
    streamlua__state_log_effect__init(message);
    message->kind =
        effect->kind == SL_STATE_CREATE ? STREAMLUA__STATE_LOG_KIND__STATE_LOG_KIND_CREATE
        : effect->kind == SL_STATE_SET  ? STREAMLUA__STATE_LOG_KIND__STATE_LOG_KIND_SET
                                        : STREAMLUA__STATE_LOG_KIND__STATE_LOG_KIND_DELETE;
    message->path = SL_PB_MUTABLE(effect->path);
    message->data.data = SL_PB_MUTABLE(effect->data);
    message->data.len = effect->size;
    message->session = effect->owner;
}

static void
session_to_message(const struct sl_log_record *record, Streamlua__StateLogEffect *message)
{
    streamlua__state_log_effect__init(message);
    message->kind = record->session_change == SL_LOG_SESSION_OPEN
                        ? STREAMLUA__STATE_LOG_KIND__STATE_LOG_KIND_SESSION_OPEN
                        : STREAMLUA__STATE_LOG_KIND__STATE_LOG_KIND_SESSION_CLOSE;
    message->session = record->session;
}

static void
node_to_message(const struct sl_tree_node *node, Streamlua__StateLogNode *message)
{
    streamlua__state_log_node__init(message);
    message->path = node->path;
    message->data.data = node->data;
    message->data.len = node->size;
    message->owner = node->owner;
    message->version = node->version;
    message->creates = node->creates;
    message->created_zxid = node->created_zxid;
    message->modified_zxid = node->modified_zxid;
    message->children_zxid = node->children_zxid;
}

/* An array of count messages and an array of pointers to them, from one arena. */
#define MESSAGES(arena, type, count, pointers)                                                     \
    messages_new((arena), sizeof(type), (count), (void ***)(pointers))

static void *
messages_new(struct sl_arena *arena, size_t size, size_t count, void ***pointers)
{
    char *messages = sl_arena_calloc(arena, count > 0 ? count : 1, size);
    *pointers = sl_arena_calloc(arena, count > 0 ? count : 1, sizeof(void *));
    for (size_t i = 0; i < count; i++) {
        (*pointers)[i] = messages + i * size;
    }
    return messages;
}

void
sl_log_append(struct sl_buf *payload, const struct sl_log_record *record)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    Streamlua__StateLogRecord message = STREAMLUA__STATE_LOG_RECORD__INIT;
    Streamlua__StateLogRecord *messages[] = {&message};
    Streamlua__StateLogFrame frame = STREAMLUA__STATE_LOG_FRAME__INIT;
    message.zxid = record->zxid;
    message.n_effects =
        record->effect_count + (record->session_change != SL_LOG_SESSION_NONE ? 1 : 0);
    Streamlua__StateLogEffect *effects =
        MESSAGES(&arena, Streamlua__StateLogEffect, message.n_effects, &message.effects);
    for (size_t i = 0; i < record->effect_count; i++) {
        effect_to_message(&record->effects[i], &effects[i]);
    }
    if (record->session_change != SL_LOG_SESSION_NONE) {
        session_to_message(record, &effects[record->effect_count]);
    }
    message.n_nodes = record->node_count;
    Streamlua__StateLogNode *nodes =
        MESSAGES(&arena, Streamlua__StateLogNode, record->node_count, &message.nodes);
    for (size_t i = 0; i < record->node_count; i++) {
        node_to_message(record->nodes[i], &nodes[i]);
    }
    message.n_sessions = record->session_count;
    message.sessions = SL_PB_MUTABLE(record->sessions);
    /* Frames with one record each, one behind the other, are a frame with all of them. */
    frame.n_records = 1;
    frame.records = messages;
    sl_message_pack(&frame.base, payload);
    sl_arena_destroy(&arena);
}

static int
effect_from_message(const Streamlua__StateLogEffect *message, struct sl_tree_effect *effect)
{
    *effect = (struct sl_tree_effect){
        .path = message->path,
        .data = message->data.data,
        .size = message->data.len,
        .owner = message->session,
    };
    switch (message->kind) {
    case STREAMLUA__STATE_LOG_KIND__STATE_LOG_KIND_CREATE:
        effect->kind = SL_STATE_CREATE;
        break;
    case STREAMLUA__STATE_LOG_KIND__STATE_LOG_KIND_SET:
        effect->kind = SL_STATE_SET;
        break;
    case STREAMLUA__STATE_LOG_KIND__STATE_LOG_KIND_DELETE:
        effect->kind = SL_STATE_DELETE;
        break;
    default:
        return sl_err_set(SL_EPROTO, "effect of kind %d", (int)message->kind);
    }
    return sl_state_path_check(message->path) == 0 ? 0 : sl_err_set(SL_EPROTO, "malformed path");
}

/* Splits the effects of a record into those on the tree and the change of a session. */
static int
effects_from_message(struct sl_arena *arena, const Streamlua__StateLogRecord *message,
                     struct sl_log_record *record)
{
    struct sl_tree_effect *effects =
        sl_arena_calloc(arena, message->n_effects + 1, sizeof(*effects));
    record->effects = effects;
    for (size_t i = 0; i < message->n_effects; i++) {
        const Streamlua__StateLogEffect *effect = message->effects[i];
        if (effect->kind == STREAMLUA__STATE_LOG_KIND__STATE_LOG_KIND_SESSION_OPEN ||
            effect->kind == STREAMLUA__STATE_LOG_KIND__STATE_LOG_KIND_SESSION_CLOSE) {
            record->session_change =
                effect->kind == STREAMLUA__STATE_LOG_KIND__STATE_LOG_KIND_SESSION_OPEN
                    ? SL_LOG_SESSION_OPEN
                    : SL_LOG_SESSION_CLOSE;
            record->session = effect->session;
            continue;
        }
        int rc = effect_from_message(effect, &effects[record->effect_count++]);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int
nodes_from_message(struct sl_arena *arena, const Streamlua__StateLogRecord *message,
                   struct sl_log_record *record)
{
    struct sl_tree_node *nodes = sl_arena_calloc(arena, message->n_nodes + 1, sizeof(*nodes));
    const struct sl_tree_node **pointers =
        sl_arena_calloc(arena, message->n_nodes + 1, sizeof(*pointers));
    for (size_t i = 0; i < message->n_nodes; i++) {
        const Streamlua__StateLogNode *node = message->nodes[i];
        if (sl_state_path_check(node->path) != 0) {
            return sl_err_set(SL_EPROTO, "malformed path in a snapshot");
        }
        nodes[i] = (struct sl_tree_node){
            .path = node->path,
            .data = node->data.data,
            .size = (uint32_t)node->data.len,
            .version = node->version,
            .creates = node->creates,
            .owner = node->owner,
            .created_zxid = node->created_zxid,
            .modified_zxid = node->modified_zxid,
            .children_zxid = node->children_zxid,
        };
        pointers[i] = &nodes[i];
    }
    record->nodes = pointers;
    record->node_count = message->n_nodes;
    return 0;
}

static int
record_from_message(const Streamlua__StateLogRecord *message, sl_log_record_fn fn, void *ctx)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    struct sl_log_record record = {
        .zxid = message->zxid,
        .sessions = message->sessions,
        .session_count = message->n_sessions,
    };
    int rc = effects_from_message(&arena, message, &record);
    if (rc == 0) {
        rc = nodes_from_message(&arena, message, &record);
    }
    if (rc == 0) {
        rc = fn(ctx, &record);
    }
    sl_arena_destroy(&arena);
    return rc;
}

int
sl_log_decode(const uint8_t *payload, size_t size, sl_log_record_fn fn, void *ctx)
{
    struct sl_arena arena;
    ProtobufCMessage *base = NULL;
    sl_arena_create(&arena, 0, 0);
    int rc = sl_message_unpack(&streamlua__state_log_frame__descriptor, payload, size, &limits,
                               &arena, &base);
    const Streamlua__StateLogFrame *frame = (const Streamlua__StateLogFrame *)base;
    for (size_t i = 0; rc == 0 && i < frame->n_records; i++) {
        rc = record_from_message(frame->records[i], fn, ctx);
    }
    sl_arena_destroy(&arena);
    return rc;
}
