#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/text.h"
#include "cluster/worker_messages.h"
#include "topology/topology.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "worker.pb-c.h"

static const struct sl_pb_limit counts[] = {
    {&streamlua__worker_export__descriptor, 2, SL_KEY_GROUPS_MAX},
    {&streamlua__worker_report__descriptor, 3, SL_TOPOLOGY_COMPONENTS_MAX},
};

static const struct sl_pb_limits limits = {
    .max_size = SL_FRAME_CONTROL_MAX,
    .max_fields = 16 * SL_TOPOLOGY_COMPONENTS_MAX,
    .counts = counts,
    .count_limits = sizeof(counts) / sizeof(counts[0]),
};

static int
unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, size_t size,
       struct sl_arena *arena, void *message)
{
    return sl_message_unpack(descriptor, data, size, &limits, arena, message);
}

/* Small messages without texts: unpacked into an arena of their own. */
#define WITH_SMALL(descriptor, type, data, size, statements)                                       \
    do {                                                                                           \
        struct sl_arena arena;                                                                     \
        type *message;                                                                             \
        sl_arena_create(&arena, 0, 0);                                                             \
        int rc = unpack(&descriptor, data, size, &arena, &message);                                \
        if (rc == 0) {                                                                             \
            statements;                                                                            \
        }                                                                                          \
        sl_arena_destroy(&arena);                                                                  \
        return rc;                                                                                 \
    } while (0)

static int
check_component(const char *name)
{
    return sl_name_check_system("component name", name, strlen(name)) == 0
               ? 0
               : sl_err_set(SL_EPROTO, "a message of a worker names no component");
}

void
sl_worker_spouts_encode(bool is_active, struct sl_buf *out)
{
    Streamlua__WorkerSpouts message = STREAMLUA__WORKER_SPOUTS__INIT;
    message.is_active = is_active;
    sl_message_pack(&message.base, out);
}

int
sl_worker_spouts_decode(const uint8_t *data, size_t size, bool *is_active)
{
    WITH_SMALL(streamlua__worker_spouts__descriptor, Streamlua__WorkerSpouts, data, size,
               *is_active = message->is_active);
}

void
sl_worker_drain_encode(uint64_t time_limit_ms, bool is_last, struct sl_buf *out)
{
    Streamlua__WorkerDrain message = STREAMLUA__WORKER_DRAIN__INIT;
    message.time_limit_ms = time_limit_ms;
    message.is_last = is_last;
    sl_message_pack(&message.base, out);
}

int
sl_worker_drain_decode(const uint8_t *data, size_t size, uint64_t *time_limit_ms, bool *is_last)
{
    WITH_SMALL(streamlua__worker_drain__descriptor, Streamlua__WorkerDrain, data, size, {
        *time_limit_ms = message->time_limit_ms;
        *is_last = message->is_last;
    });
}

void
sl_worker_drained_encode(const struct sl_worker_drained *from, struct sl_buf *out)
{
    Streamlua__WorkerDrained message = STREAMLUA__WORKER_DRAINED__INIT;
    message.roots = from->roots;
    message.waiting = from->waiting;
    message.sent = from->sent;
    message.received = from->received;
    sl_message_pack(&message.base, out);
}

int
sl_worker_drained_decode(const uint8_t *data, size_t size, struct sl_worker_drained *to)
{
    WITH_SMALL(streamlua__worker_drained__descriptor, Streamlua__WorkerDrained, data, size,
               *to = ((struct sl_worker_drained){message->roots, message->waiting, message->sent,
                                                 message->received}));
}

void
sl_worker_ready_encode(const struct sl_worker_ready *from, struct sl_buf *out)
{
    Streamlua__WorkerReady message = STREAMLUA__WORKER_READY__INIT;
    message.plan_version = from->plan_version;
    message.epoch = from->epoch;
    sl_message_pack(&message.base, out);
}

int
sl_worker_ready_decode(const uint8_t *data, size_t size, struct sl_worker_ready *to)
{
    WITH_SMALL(streamlua__worker_ready__descriptor, Streamlua__WorkerReady, data, size,
               *to = ((struct sl_worker_ready){message->plan_version, message->epoch}));
}

void
sl_worker_export_encode(const struct sl_worker_export *from, struct sl_buf *out)
{
    Streamlua__WorkerExport message = STREAMLUA__WORKER_EXPORT__INIT;
    message.component = SL_PB_MUTABLE(from->component);
    message.n_groups = from->group_count;
    message.groups = SL_PB_MUTABLE(from->groups);
    message.cursor = SL_PB_MUTABLE(from->cursor);
    message.task = from->task;
    sl_message_pack(&message.base, out);
}

int
sl_worker_export_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                        struct sl_worker_export *to)
{
    Streamlua__WorkerExport *message;
    int rc = unpack(&streamlua__worker_export__descriptor, data, size, arena, &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_worker_export){message->component, message->groups, message->n_groups,
                                    message->cursor, message->task};
    return check_component(to->component);
}

static Streamlua__WorkerStatePiece **
pieces_to_messages(struct sl_arena *arena, const struct sl_worker_state *from)
{
    Streamlua__WorkerStatePiece **pointers =
        sl_arena_calloc(arena, from->count + 1, sizeof(*pointers));
    Streamlua__WorkerStatePiece *messages =
        sl_arena_calloc(arena, from->count + 1, sizeof(*messages));
    for (size_t i = 0; i < from->count; i++) {
        const struct sl_worker_state_piece *piece = &from->pieces[i];
        streamlua__worker_state_piece__init(&messages[i]);
        messages[i].component = SL_PB_MUTABLE(piece->component);
        messages[i].state = SL_PB_MUTABLE(piece->state);
        messages[i].entries = (ProtobufCBinaryData){piece->size, SL_PB_MUTABLE(piece->entries)};
        messages[i].count = piece->count;
        messages[i].hash = piece->hash;
        messages[i].group = piece->group;
        messages[i].task = piece->task;
        pointers[i] = &messages[i];
    }
    return pointers;
}

static int
pieces_from_messages(struct sl_arena *arena, Streamlua__WorkerStatePiece **messages, size_t count,
                     struct sl_worker_state *to)
{
    struct sl_worker_state_piece *pieces = sl_arena_calloc(arena, count + 1, sizeof(*pieces));
    if (pieces == NULL) {
        return sl_err_set(SL_ELIMIT, "pieces of state take too much memory");
    }
    for (size_t i = 0; i < count; i++) {
        const Streamlua__WorkerStatePiece *from = messages[i];
        pieces[i] = (struct sl_worker_state_piece){
            from->component, from->state, from->entries.data, from->entries.len,
            from->count,     from->hash,  from->group,        from->task};
        if (check_component(from->component) != 0) {
            return SL_EPROTO;
        }
        if (sl_hash_bytes(from->entries.data, from->entries.len) != from->hash) {
            return sl_err_set(SL_EPROTO, "state %s of %s was changed on its way", from->state,
                              from->component);
        }
    }
    to->pieces = pieces;
    to->count = count;
    return 0;
}

void
sl_worker_exported_encode(const struct sl_worker_state *from, struct sl_buf *out)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    Streamlua__WorkerExported message = STREAMLUA__WORKER_EXPORTED__INIT;
    message.n_pieces = from->count;
    message.pieces = pieces_to_messages(&arena, from);
    message.cursor = SL_PB_MUTABLE(from->cursor);
    sl_message_pack(&message.base, out);
    sl_arena_destroy(&arena);
}

int
sl_worker_exported_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                          struct sl_worker_state *to)
{
    Streamlua__WorkerExported *message;
    int rc = unpack(&streamlua__worker_exported__descriptor, data, size, arena, &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_worker_state){.cursor = message->cursor};
    return pieces_from_messages(arena, message->pieces, message->n_pieces, to);
}

void
sl_worker_stage_encode(const struct sl_worker_state *from, struct sl_buf *out)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    Streamlua__WorkerStage message = STREAMLUA__WORKER_STAGE__INIT;
    message.plan_version = from->plan_version;
    message.n_pieces = from->count;
    message.pieces = pieces_to_messages(&arena, from);
    sl_message_pack(&message.base, out);
    sl_arena_destroy(&arena);
}

int
sl_worker_stage_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                       struct sl_worker_state *to)
{
    Streamlua__WorkerStage *message;
    int rc = unpack(&streamlua__worker_stage__descriptor, data, size, arena, &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_worker_state){.cursor = "", .plan_version = message->plan_version};
    return pieces_from_messages(arena, message->pieces, message->n_pieces, to);
}

void
sl_worker_staged_encode(uint64_t count, struct sl_buf *out)
{
    Streamlua__WorkerStaged message = STREAMLUA__WORKER_STAGED__INIT;
    message.count = count;
    sl_message_pack(&message.base, out);
}

int
sl_worker_staged_decode(const uint8_t *data, size_t size, uint64_t *count)
{
    WITH_SMALL(streamlua__worker_staged__descriptor, Streamlua__WorkerStaged, data, size,
               *count = message->count);
}

void
sl_worker_report_encode(const struct sl_worker_report *from, struct sl_buf *out)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    Streamlua__WorkerReport message = STREAMLUA__WORKER_REPORT__INIT;
    Streamlua__WorkerCounters *counters =
        sl_arena_calloc(&arena, from->count + 1, sizeof(*counters));
    message.plan_version = from->plan_version;
    message.is_active = from->is_active;
    message.n_components = from->count;
    message.components = sl_arena_calloc(&arena, from->count + 1, sizeof(void *));
    for (size_t i = 0; i < from->count; i++) {
        const struct sl_worker_counters *entry = &from->components[i];
        streamlua__worker_counters__init(&counters[i]);
        counters[i].component = SL_PB_MUTABLE(entry->component);
        counters[i].executed = entry->executed;
        counters[i].emitted = entry->emitted;
        counters[i].acked = entry->acked;
        counters[i].failed = entry->failed;
        counters[i].pending = entry->pending;
        counters[i].errors = entry->errors;
        message.components[i] = &counters[i];
    }
    sl_message_pack(&message.base, out);
    sl_arena_destroy(&arena);
}

int
sl_worker_report_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                        struct sl_worker_report *to)
{
    Streamlua__WorkerReport *message;
    int rc = unpack(&streamlua__worker_report__descriptor, data, size, arena, &message);
    if (rc != 0) {
        return rc;
    }
    struct sl_worker_counters *counters =
        sl_arena_calloc(arena, message->n_components + 1, sizeof(*counters));
    if (counters == NULL) {
        return sl_err_set(SL_ELIMIT, "a report takes too much memory");
    }
    for (size_t i = 0; i < message->n_components; i++) {
        const Streamlua__WorkerCounters *from = message->components[i];
        counters[i] =
            (struct sl_worker_counters){from->component, from->executed, from->emitted, from->acked,
                                        from->failed,    from->pending,  from->errors};
        if (check_component(from->component) != 0) {
            return SL_EPROTO;
        }
    }
    *to = (struct sl_worker_report){message->plan_version, message->is_active, counters,
                                    message->n_components};
    return 0;
}

void
sl_worker_event_encode(const struct sl_worker_event *from, struct sl_buf *out)
{
    Streamlua__WorkerEvent message = STREAMLUA__WORKER_EVENT__INIT;
    message.container = from->container;
    message.component = SL_PB_MUTABLE(from->component);
    message.task = from->task;
    message.text = SL_PB_MUTABLE(from->text);
    message.is_fatal = from->is_fatal;
    sl_message_pack(&message.base, out);
}

int
sl_worker_event_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                       struct sl_worker_event *to)
{
    Streamlua__WorkerEvent *message;
    int rc = unpack(&streamlua__worker_event__descriptor, data, size, arena, &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_worker_event){message->container, message->component, message->task,
                                   message->text, message->is_fatal};
    return to->component[0] == '\0' ? 0 : check_component(to->component);
}
