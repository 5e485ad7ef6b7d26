#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "cluster/worker_messages.h"
#include "topology/topology.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "worker.pb-c.h"

static const struct sl_pb_limit counts[] = {
    {&streamlua__worker_measure__descriptor, 2, SL_KEY_GROUPS_MAX},
    {&streamlua__worker_move__descriptor, 4, SL_KEY_GROUPS_MAX},
    {&streamlua__worker_move__descriptor, 5, SL_KEY_GROUPS_MAX},
    {&streamlua__worker_report__descriptor, 3, SL_TOPOLOGY_COMPONENTS_MAX},
};

static const struct sl_pb_limits limits = {
    .max_size = SL_FRAME_CONTROL_MAX,
    .max_fields = 16 * SL_TOPOLOGY_COMPONENTS_MAX,
    SL_PB_COUNTS(counts),
};

/* Small messages without texts: unpacked into an arena of their own. */
#define WITH_SMALL(descriptor, type, data, size, statements)                                       \
    do {                                                                                           \
        struct sl_arena arena;                                                                     \
        type *message;                                                                             \
        sl_arena_create(&arena, 0, 0);                                                             \
        int rc = sl_message_unpack(&descriptor, data, size, &limits, &arena, &message);            \
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
sl_worker_spouts_encode(enum sl_worker_spouts spouts, struct sl_buf *out)
{
    Streamlua__WorkerSpouts message = STREAMLUA__WORKER_SPOUTS__INIT;
    message.is_active = spouts == SL_SPOUTS_ACTIVE;
    message.is_held = spouts == SL_SPOUTS_HELD || spouts == SL_SPOUTS_HELD_WITH_WAY;
    message.has_way = spouts == SL_SPOUTS_HELD_WITH_WAY;
    sl_message_pack(&message.base, out);
}

int
sl_worker_spouts_decode(const uint8_t *data, size_t size, enum sl_worker_spouts *spouts)
{
    WITH_SMALL(streamlua__worker_spouts__descriptor, Streamlua__WorkerSpouts, data, size,
               *spouts = message->is_active  ? SL_SPOUTS_ACTIVE
                         : !message->is_held ? SL_SPOUTS_PAUSED
                         : message->has_way  ? SL_SPOUTS_HELD_WITH_WAY
                                             : SL_SPOUTS_HELD);
}

void
sl_worker_drain_encode(const struct sl_worker_drain *from, struct sl_buf *out)
{
    Streamlua__WorkerDrain message = STREAMLUA__WORKER_DRAIN__INIT;
    message.time_limit_ms = from->time_limit_ms;
    message.is_last = from->is_last;
    message.only_roots = from->only_roots;
    message.may_stay = from->may_stay;
    sl_message_pack(&message.base, out);
}

int
sl_worker_drain_decode(const uint8_t *data, size_t size, struct sl_worker_drain *to)
{
    WITH_SMALL(streamlua__worker_drain__descriptor, Streamlua__WorkerDrain, data, size,
               *to = ((struct sl_worker_drain){message->time_limit_ms, message->is_last,
                                               message->only_roots, message->may_stay}));
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
sl_worker_measure_encode(const struct sl_worker_state_of *from, struct sl_buf *out)
{
    Streamlua__WorkerMeasure message = STREAMLUA__WORKER_MEASURE__INIT;
    message.component = SL_PB_MUTABLE(from->component);
    message.n_groups = from->group_count;
    message.groups = SL_PB_MUTABLE(from->groups);
    message.task = from->task;
    sl_message_pack(&message.base, out);
}

int
sl_worker_measure_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                         struct sl_worker_state_of *to)
{
    Streamlua__WorkerMeasure *message;
    int rc = sl_message_unpack(&streamlua__worker_measure__descriptor, data, size, &limits, arena,
                               &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_worker_state_of){message->component, message->groups, message->n_groups,
                                      message->task};
    return check_component(to->component);
}

void
sl_worker_measured_encode(uint64_t bytes, struct sl_buf *out)
{
    Streamlua__WorkerMeasured message = STREAMLUA__WORKER_MEASURED__INIT;
    message.bytes = bytes;
    sl_message_pack(&message.base, out);
}

int
sl_worker_measured_decode(const uint8_t *data, size_t size, uint64_t *bytes)
{
    WITH_SMALL(streamlua__worker_measured__descriptor, Streamlua__WorkerMeasured, data, size,
               *bytes = message->bytes);
}

void
sl_worker_move_encode(const struct sl_worker_move *from, struct sl_buf *out)
{
    Streamlua__WorkerMove message = STREAMLUA__WORKER_MOVE__INIT;
    message.id = from->id;
    message.plan_version = from->plan_version;
    message.component = SL_PB_MUTABLE(from->what.component);
    message.n_groups = from->what.group_count;
    message.groups = SL_PB_MUTABLE(from->what.groups);
    message.n_owners = from->what.group_count;
    message.owners = SL_PB_MUTABLE(from->owners);
    message.task = from->what.task;
    message.to = from->to;
    sl_message_pack(&message.base, out);
}

/* Groups are in order, so an owner is found quickly. */
static int
check_groups(const struct sl_worker_move *move, size_t owner_count)
{
    const struct sl_worker_state_of *what = &move->what;
    if (what->group_count != owner_count || (what->task != 0) != (owner_count == 0)) {
        return sl_err_set(SL_EPROTO, "a move of %zu groups has %zu owners", what->group_count,
                          owner_count);
    }
    for (size_t i = 1; i < what->group_count; i++) {
        if (what->groups[i] <= what->groups[i - 1]) {
            return sl_err_set(SL_EPROTO, "the groups of a move are out of order");
        }
    }
    return check_component(what->component);
}

int
sl_worker_move_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                      struct sl_worker_move *to)
{
    Streamlua__WorkerMove *message;
    int rc = sl_message_unpack(&streamlua__worker_move__descriptor, data, size, &limits, arena,
                               &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_worker_move){
        .id = message->id,
        .plan_version = message->plan_version,
        .what = {message->component, message->groups, message->n_groups, message->task},
        .owners = message->owners,
        .to = message->to};
    return check_groups(to, message->n_owners);
}

void
sl_worker_move_id_encode(uint64_t id, struct sl_buf *out)
{
    Streamlua__WorkerMoveId message = STREAMLUA__WORKER_MOVE_ID__INIT;
    message.id = id;
    sl_message_pack(&message.base, out);
}

int
sl_worker_move_id_decode(const uint8_t *data, size_t size, uint64_t *id)
{
    WITH_SMALL(streamlua__worker_move_id__descriptor, Streamlua__WorkerMoveId, data, size,
               *id = message->id);
}

static Streamlua__WorkerMoved
moved_to_message(const struct sl_worker_moved *from)
{
    Streamlua__WorkerMoved message = STREAMLUA__WORKER_MOVED__INIT;
    message.tables = from->tables;
    message.entries = from->entries;
    message.bytes = from->bytes;
    message.checksum = from->checksum;
    return message;
}

static struct sl_worker_moved
moved_from_message(const Streamlua__WorkerMoved *from)
{
    return from != NULL
               ? (struct sl_worker_moved){from->tables, from->entries, from->bytes, from->checksum}
               : (struct sl_worker_moved){0};
}

void
sl_worker_moved_encode(const struct sl_worker_moved *from, struct sl_buf *out)
{
    Streamlua__WorkerMoved message = moved_to_message(from);
    sl_message_pack(&message.base, out);
}

int
sl_worker_moved_decode(const uint8_t *data, size_t size, struct sl_worker_moved *to)
{
    WITH_SMALL(streamlua__worker_moved__descriptor, Streamlua__WorkerMoved, data, size,
               *to = moved_from_message(message));
}

void
sl_worker_pieces_encode(const struct sl_worker_pieces *from, struct sl_buf *out)
{
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    Streamlua__WorkerLetter letter = STREAMLUA__WORKER_LETTER__INIT;
    Streamlua__WorkerPieces message = STREAMLUA__WORKER_PIECES__INIT;
    Streamlua__WorkerMoved whole = moved_to_message(&from->whole);
    Streamlua__WorkerPiece **pointers = sl_arena_calloc(&arena, from->count + 1, sizeof(*pointers));
    Streamlua__WorkerPiece *pieces = sl_arena_calloc(&arena, from->count + 1, sizeof(*pieces));
    Streamlua__WorkerMoved *wholes = sl_arena_calloc(&arena, from->count + 1, sizeof(*wholes));
    for (size_t i = 0; i < from->count; i++) {
        const struct sl_worker_piece *piece = &from->pieces[i];
        streamlua__worker_piece__init(&pieces[i]);
        pieces[i].state = SL_PB_MUTABLE(piece->state);
        pieces[i].group = piece->group;
        pieces[i].task = piece->task;
        pieces[i].entries = (ProtobufCBinaryData){piece->size, SL_PB_MUTABLE(piece->entries)};
        pieces[i].count = piece->count;
        pieces[i].hash = piece->hash;
        if (piece->whole.tables != 0) {
            wholes[i] = moved_to_message(&piece->whole);
            pieces[i].whole = &wholes[i];
        }
        pointers[i] = &pieces[i];
    }
    message.move = from->move;
    message.plan_version = from->plan_version;
    message.component = SL_PB_MUTABLE(from->component);
    message.key_groups = from->key_groups;
    message.number = from->number;
    message.n_pieces = from->count;
    message.pieces = pointers;
    message.whole = from->is_last ? &whole : NULL;
    letter.pieces = &message;
    sl_message_pack(&letter.base, out);
    sl_arena_destroy(&arena);
}

static int
pieces_from_message(const Streamlua__WorkerPieces *from, struct sl_arena *arena,
                    struct sl_worker_pieces *to)
{
    struct sl_worker_piece *pieces = sl_arena_calloc(arena, from->n_pieces + 1, sizeof(*pieces));
    if (pieces == NULL) {
        return sl_err_set(SL_ELIMIT, "pieces of state take too much memory");
    }
    for (size_t i = 0; i < from->n_pieces; i++) {
        const Streamlua__WorkerPiece *piece = from->pieces[i];
        pieces[i] = (struct sl_worker_piece){.state = piece->state,
                                             .entries = piece->entries.data,
                                             .size = piece->entries.len,
                                             .count = piece->count,
                                             .hash = piece->hash,
                                             .group = piece->group,
                                             .task = piece->task,
                                             .whole = moved_from_message(piece->whole)};
    }
    *to = (struct sl_worker_pieces){.move = from->move,
                                    .plan_version = from->plan_version,
                                    .component = from->component,
                                    .key_groups = from->key_groups,
                                    .number = from->number,
                                    .pieces = pieces,
                                    .count = from->n_pieces,
                                    .is_last = from->whole != NULL,
                                    .whole = moved_from_message(from->whole)};
    return check_component(to->component);
}

void
sl_worker_taken_encode(const struct sl_worker_taken *from, struct sl_buf *out)
{
    Streamlua__WorkerLetter letter = STREAMLUA__WORKER_LETTER__INIT;
    Streamlua__WorkerTaken message = STREAMLUA__WORKER_TAKEN__INIT;
    message.move = from->move;
    message.count = from->count;
    message.code = from->code;
    message.reason = sl_pb_text(from->reason);
    letter.taken = &message;
    sl_message_pack(&letter.base, out);
}

int
sl_worker_letter_decode(const uint8_t *data, size_t size, struct sl_arena *arena, bool *is_taken,
                        struct sl_worker_pieces *pieces, struct sl_worker_taken *taken)
{
    Streamlua__WorkerLetter *message;
    int rc = sl_message_unpack(&streamlua__worker_letter__descriptor, data, size, &limits, arena,
                               &message);
    if (rc != 0) {
        return rc;
    }
    *is_taken = message->taken != NULL;
    if ((message->taken != NULL) == (message->pieces != NULL)) {
        return sl_err_set(SL_EPROTO, "a letter of a worker is not one thing");
    }
    if (!*is_taken) {
        return pieces_from_message(message->pieces, arena, pieces);
    }
    *taken = (struct sl_worker_taken){message->taken->move, message->taken->count,
                                      message->taken->code, message->taken->reason};
    return 0;
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
    int rc = sl_message_unpack(&streamlua__worker_report__descriptor, data, size, &limits, arena,
                               &message);
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
    int rc = sl_message_unpack(&streamlua__worker_event__descriptor, data, size, &limits, arena,
                               &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_worker_event){message->container, message->component, message->task,
                                   message->text, message->is_fatal};
    return to->component[0] == '\0' ? 0 : check_component(to->component);
}
