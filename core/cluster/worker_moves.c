#include "cluster/worker_moves.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/log.h"
#include "base/vec.h"
#include "wire/frame.h"

/* State on its way from here. */
struct outgoing {
    struct sl_worker_moves *moves;
    struct sl_list_node node;
    uint64_t id;
    uint64_t plan_version;
    char *component;
    uint32_t *groups;
    int32_t *owners;
    size_t group_count;
    int32_t task;
    int32_t to;
    /* NULL: it is answered, or who asked is gone. */
    struct sl_rpc_request *request;
    char *cursor;
    /* Letters: how many were made, and taken; those that were not are kept. */
    uint64_t made;
    uint64_t taken;
    SL_VEC(struct sl_buf) letters;
    bool is_made;
    struct sl_worker_moved whole;
    /* Not 0: it has failed. */
    int code;
    char reason[SL_REASON_SIZE];
    struct sl_timer timer;
};

/* The state and group whose pieces come. */
struct section {
    bool is_open;
    size_t table;
    uint32_t group;
    struct sl_worker_moved whole;
    struct sl_worker_moved came;
    /* Of an entry that comes in parts. */
    struct sl_buf part;
};

/* State on its way to here. */
struct incoming {
    struct sl_list_node node;
    uint64_t id;
    int32_t from;
    uint64_t plan_version;
    char *component;
    /* 0 before there is a letter that has pieces: one without may not know them. */
    uint32_t key_groups;
    /* The letter that is next. */
    uint64_t next;
    bool is_complete;
    bool is_settled;
    SL_VEC(struct sl_worker_table) tables;
    struct section section;
    struct sl_worker_moved whole;
    int code;
    char reason[SL_REASON_SIZE];
};

/* A letter to this worker itself. */
struct own_letter {
    struct sl_list_node node;
    size_t size;
    uint8_t bytes[];
};

struct sl_worker_moves {
    struct sl_worker_moves_options options;
    struct sl_list outgoing;
    /* Whose pieces are asked for, or NULL. */
    struct outgoing *asking;
    size_t under_way;
    struct sl_list own_letters;
    struct sl_timer own_timer;
    struct sl_arena arena;
    struct sl_buf scratch;
    /* Of incoming. */
    pthread_mutex_t lock;
    struct sl_list incoming;
};

static void
moved_add(struct sl_worker_moved *sum, const struct sl_worker_moved *item)
{
    sum->tables += item->tables;
    sum->entries += item->entries;
    sum->bytes += item->bytes;
    sum->checksum += item->checksum;
}

static bool
moved_equals(const struct sl_worker_moved *one, const struct sl_worker_moved *other)
{
    return one->tables == other->tables && one->entries == other->entries &&
           one->bytes == other->bytes && one->checksum == other->checksum;
}

static void
set_reason(char *reason, const char *text)
{
    snprintf(reason, SL_REASON_SIZE, "%s", text);
}

/* ---- from here ------------------------------------------------------------------------------ */

static void advance(struct sl_worker_moves *self);

static struct outgoing *
find_outgoing(const struct sl_worker_moves *self, uint64_t id)
{
    sl_list_each(&self->outgoing, it)
    {
        struct outgoing *move = sl_container_of(it, struct outgoing, node);
        if (move->id == id) {
            return move;
        }
    }
    return NULL;
}

static void
letters_drop(struct outgoing *move, size_t count)
{
    if (count == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        sl_buf_destroy(&move->letters.items[i]);
    }
    move->letters.count -= count;
    memmove(move->letters.items, move->letters.items + count,
            move->letters.count * sizeof(*move->letters.items));
    move->moves->under_way -= count;
}

static void
outgoing_free(struct outgoing *move)
{
    letters_drop(move, move->letters.count);
    sl_vec_destroy(&move->letters);
    sl_timer_stop(&move->timer);
    sl_list_remove(&move->node);
    sl_free(move->component);
    sl_free(move->groups);
    sl_free(move->owners);
    sl_free(move->cursor);
    sl_free(move);
}

static bool
is_over(const struct outgoing *move)
{
    return move->code != 0 || (move->is_made && move->letters.count == 0);
}

/* Answers who asked when it is over. */
static void
outgoing_answer(struct outgoing *move)
{
    struct sl_rpc_request *request = move->request;
    if (request == NULL || !is_over(move)) {
        return;
    }
    move->request = NULL;
    if (move->code != 0) {
        sl_rpc_refuse(request, SL_RPC_FAILURE, move->code, "%s", move->reason);
        return;
    }
    sl_buf_clear(&move->moves->scratch);
    sl_worker_moved_encode(&move->whole, &move->moves->scratch);
    sl_rpc_reply(request, move->moves->scratch.data, move->moves->scratch.size);
}

static void
outgoing_fail(struct outgoing *move, int code, const char *reason)
{
    if (is_over(move)) {
        return;
    }
    move->code = code;
    set_reason(move->reason, reason);
    letters_drop(move, move->letters.count);
    sl_timer_stop(&move->timer);
    if (move->moves->asking == move) {
        move->moves->asking = NULL;
    }
    outgoing_answer(move);
    advance(move->moves);
}

static void
stalled(void *ctx, uint64_t ticket)
{
    struct outgoing *move = ctx;
    char reason[SL_REASON_SIZE];
    (void)ticket;
    snprintf(reason, sizeof(reason), "nothing was heard of container %d for %d ms", move->to,
             SL_WORKER_MOVES_STALL_MS);
    outgoing_fail(move, SL_ETIMEOUT, reason);
}

static void
outgoing_wait(struct outgoing *move)
{
    sl_timer_start(move->moves->options.loop, &move->timer, SL_WORKER_MOVES_STALL_MS, stalled,
                   move);
}

/* Asks for the next pieces of the first move that is not all made. */
static void
advance(struct sl_worker_moves *self)
{
    if (self->asking != NULL || self->under_way >= SL_WORKER_MOVES_LETTERS) {
        return;
    }
    sl_list_each(&self->outgoing, it)
    {
        struct outgoing *move = sl_container_of(it, struct outgoing, node);
        if (!move->is_made && move->code == 0) {
            struct sl_worker_state_of what = {move->component, move->groups, move->group_count,
                                              move->task};
            self->asking = move;
            outgoing_wait(move);
            self->options.ask(self->options.ctx, &what, move->cursor);
            return;
        }
    }
}

void
sl_worker_moves_order(struct sl_worker_moves *self, const struct sl_worker_move *wanted,
                      struct sl_rpc_request *request)
{
    const struct sl_worker_state_of *what = &wanted->what;
    struct outgoing *move = find_outgoing(self, wanted->id);
    if (move != NULL) {
        if (move->request != NULL) {
            sl_rpc_refuse(move->request, SL_RPC_FAILURE, SL_ECONFLICT, "it was asked for again");
        }
        move->request = request;
        outgoing_answer(move);
        return;
    }
    size_t count = what->group_count;
    move = sl_calloc(1, sizeof(*move));
    move->moves = self;
    move->id = wanted->id;
    move->plan_version = wanted->plan_version;
    move->component = sl_strdup(what->component);
    move->groups = sl_alloc((count + 1) * sizeof(*move->groups));
    move->owners = sl_alloc((count + 1) * sizeof(*move->owners));
    for (size_t i = 0; i < count; i++) {
        move->groups[i] = what->groups[i];
        move->owners[i] = wanted->owners[i];
    }
    move->group_count = count;
    move->task = what->task;
    move->to = wanted->to;
    move->request = request;
    move->cursor = sl_strdup("");
    sl_list_push_back(&self->outgoing, &move->node);
    advance(self);
}

static int
compare_groups(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* The task that is going to own a group; -1: it was not to be moved. */
static int32_t
owner_of(const struct outgoing *move, uint32_t group)
{
    if (move->task != 0) {
        return move->task;
    }
    const uint32_t *found =
        bsearch(&group, move->groups, move->group_count, sizeof(group), compare_groups);
    return found != NULL ? move->owners[found - move->groups] : -1;
}

static void own_letters_due(void *ctx, uint64_t ticket);

static int
letter_send(struct sl_worker_moves *self, int32_t to, const struct sl_buf *bytes)
{
    if (to != self->options.container) {
        return self->options.send(self->options.ctx, to, bytes->data, bytes->size);
    }
    struct own_letter *letter = sl_alloc(sizeof(*letter) + bytes->size);
    letter->size = bytes->size;
    memcpy(letter->bytes, bytes->data, bytes->size);
    sl_list_push_back(&self->own_letters, &letter->node);
    sl_timer_start(self->options.loop, &self->own_timer, 0, own_letters_due, self);
    return 0;
}

static void
own_letters_due(void *ctx, uint64_t ticket)
{
    struct sl_worker_moves *self = ctx;
    size_t count = 0;
    (void)ticket;
    sl_list_each(&self->own_letters, it)
    {
        count++;
    }
    /* Those that they lead to have a turn of their own. */
    for (; count > 0; count--) {
        struct own_letter *letter =
            sl_container_of(self->own_letters.head.next, struct own_letter, node);
        sl_list_remove(&letter->node);
        sl_worker_moves_heard(self, self->options.container, letter->bytes, letter->size);
        sl_free(letter);
    }
}

/* Makes the next letter of a move from pieces and sends it. */
static int
letter_make(struct outgoing *move, const struct sl_worker_export *answer)
{
    struct sl_worker_moves *self = move->moves;
    struct sl_worker_piece *pieces = sl_alloc((answer->count + 1) * sizeof(*pieces));
    int rc = 0;
    for (size_t i = 0; i < answer->count && rc == 0; i++) {
        pieces[i] = answer->pieces[i];
        pieces[i].task = owner_of(move, pieces[i].group);
        moved_add(&move->whole, &pieces[i].whole);
        if (pieces[i].task < 0) {
            rc = sl_err_set(SL_EINTERNAL, "an export of %s has key group %u, which does not move",
                            move->component, pieces[i].group);
        }
    }
    if (rc == 0) {
        struct sl_worker_pieces letter = {.move = move->id,
                                          .plan_version = move->plan_version,
                                          .component = move->component,
                                          .key_groups = answer->key_groups,
                                          .number = move->made++,
                                          .pieces = pieces,
                                          .count = answer->count,
                                          .is_last = answer->cursor[0] == '\0',
                                          .whole = move->whole};
        struct sl_buf *bytes = sl_vec_add(&move->letters);
        sl_buf_create(bytes);
        self->under_way++;
        sl_worker_pieces_encode(&letter, bytes);
        rc = letter_send(self, move->to, bytes);
    }
    sl_free(pieces);
    return rc;
}

void
sl_worker_moves_exported(struct sl_worker_moves *self, const struct sl_worker_export *answer)
{
    struct outgoing *move = self->asking;
    if (move == NULL) {
        return;
    }
    self->asking = NULL;
    if (answer->code != 0) {
        outgoing_fail(move, answer->code, answer->reason);
        return;
    }
    if (letter_make(move, answer) != 0) {
        outgoing_fail(move, sl_err_last()->code, sl_err_last()->msg);
        return;
    }
    sl_free(move->cursor);
    move->cursor = sl_strdup(answer->cursor);
    move->is_made = answer->cursor[0] == '\0';
    outgoing_wait(move);
    advance(self);
}

static void
taken(struct sl_worker_moves *self, int32_t peer, const struct sl_worker_taken *message)
{
    struct outgoing *move = find_outgoing(self, message->move);
    if (move == NULL || move->to != peer || is_over(move)) {
        return;
    }
    if (message->code != 0) {
        outgoing_fail(move, message->code, message->reason);
        return;
    }
    if (message->count <= move->taken || message->count > move->made) {
        return;
    }
    letters_drop(move, message->count - move->taken);
    move->taken = message->count;
    outgoing_wait(move);
    if (is_over(move)) {
        sl_timer_stop(&move->timer);
        outgoing_answer(move);
    }
    advance(self);
}

/* The session may have been lost with letters in it. */
static void
letters_repeat(struct sl_worker_moves *self, int32_t peer)
{
    sl_list_each(&self->outgoing, it)
    {
        struct outgoing *move = sl_container_of(it, struct outgoing, node);
        for (size_t i = 0; i < move->letters.count && move->to == peer; i++) {
            if (letter_send(self, peer, &move->letters.items[i]) != 0) {
                outgoing_fail(move, sl_err_last()->code, sl_err_last()->msg);
            }
        }
    }
}

void
sl_worker_moves_changed(struct sl_worker_moves *self, int32_t peer, enum sl_remote_change change)
{
    char reason[SL_REASON_SIZE];
    if (change == SL_REMOTE_BEGAN) {
        letters_repeat(self, peer);
    }
    if (change != SL_REMOTE_ENDED) {
        return;
    }
    snprintf(reason, sizeof(reason), "container %d is gone", peer);
    sl_list_each(&self->outgoing, it)
    {
        struct outgoing *move = sl_container_of(it, struct outgoing, node);
        if (move->to == peer) {
            outgoing_fail(move, SL_ECLOSED, reason);
        }
    }
}

/* ---- to here -------------------------------------------------------------------------------- */

static struct incoming *
find_incoming(const struct sl_worker_moves *self, uint64_t id)
{
    sl_list_each(&self->incoming, it)
    {
        struct incoming *move = sl_container_of(it, struct incoming, node);
        if (move->id == id) {
            return move;
        }
    }
    return NULL;
}

static void
table_free(struct sl_worker_table *table)
{
    sl_keyed_destroy(table->entries);
    sl_free(table->entries);
    sl_free(table->component);
    sl_free(table->state);
}

static void
tables_free(struct incoming *move)
{
    for (size_t i = 0; i < move->tables.count; i++) {
        table_free(&move->tables.items[i]);
    }
    sl_vec_clear(&move->tables);
}

static void
incoming_free(struct incoming *move)
{
    tables_free(move);
    sl_vec_destroy(&move->tables);
    sl_buf_destroy(&move->section.part);
    sl_list_remove(&move->node);
    sl_free(move->component);
    sl_free(move);
}

/* The table of a state and task, which is made when there is none; -1 with the reason set. */
static int64_t
table_of(struct incoming *move, const struct sl_worker_piece *piece)
{
    for (size_t i = 0; i < move->tables.count; i++) {
        const struct sl_worker_table *table = &move->tables.items[i];
        if (table->task == piece->task && strcmp(table->state, piece->state) == 0) {
            return (int64_t)i;
        }
    }
    struct sl_keyed *entries = sl_calloc(1, sizeof(*entries));
    if (sl_keyed_create(entries, move->key_groups, 0) != 0) {
        sl_free(entries);
        return -1;
    }
    struct sl_worker_table table = {sl_strdup(move->component), sl_strdup(piece->state),
                                    piece->task, entries};
    sl_vec_push(&move->tables, table);
    return (int64_t)move->tables.count - 1;
}

/* All pieces of the section have come: is it what was sent? */
static int
section_close(struct incoming *move)
{
    struct section *section = &move->section;
    if (!section->is_open) {
        return 0;
    }
    section->is_open = false;
    section->came.tables = 1;
    moved_add(&move->whole, &section->came);
    if (section->part.size > 0) {
        return sl_err_set(SL_EPROTO, "an entry of key group %u of %s came without its end",
                          section->group, move->component);
    }
    return moved_equals(&section->came, &section->whole)
               ? 0
               : sl_err_set(SL_EPROTO,
                            "%llu entries (%llu bytes) of key group %u of %s came as %llu (%llu)",
                            (unsigned long long)section->whole.entries,
                            (unsigned long long)section->whole.bytes, section->group,
                            move->component, (unsigned long long)section->came.entries,
                            (unsigned long long)section->came.bytes);
}

static int
section_open(struct incoming *move, const struct sl_worker_piece *piece)
{
    struct section *section = &move->section;
    int rc = section_close(move);
    int64_t table = rc == 0 ? table_of(move, piece) : -1;
    if (table < 0) {
        return sl_err_last()->code;
    }
    if (sl_keyed_group_count(move->tables.items[table].entries, piece->group) > 0) {
        return sl_err_set(SL_EPROTO, "key group %u of %s comes twice", piece->group,
                          move->component);
    }
    section->is_open = true;
    section->table = (size_t)table;
    section->group = piece->group;
    section->whole = piece->whole;
    section->came = (struct sl_worker_moved){0};
    return 0;
}

static int
piece_take(struct incoming *move, const struct sl_worker_piece *piece)
{
    struct section *section = &move->section;
    struct sl_keyed_summary summary;
    const uint8_t *entries = piece->entries;
    size_t size = piece->size;
    if (sl_hash_bytes(piece->entries, piece->size) != piece->hash) {
        return sl_err_set(SL_EPROTO, "state %s of %s was changed on its way", piece->state,
                          move->component);
    }
    int rc = piece->whole.tables != 0 ? section_open(move, piece) : 0;
    if (rc != 0) {
        return rc;
    }
    const struct sl_worker_table *table =
        section->is_open ? &move->tables.items[section->table] : NULL;
    if (table == NULL || section->group != piece->group || table->task != piece->task ||
        strcmp(table->state, piece->state) != 0) {
        return sl_err_set(SL_EPROTO, "a piece of state %s of %s came without its first one",
                          piece->state, move->component);
    }
    if (section->part.size > 0 || piece->count == 0) {
        sl_buf_append(&section->part, piece->entries, piece->size);
        entries = section->part.data;
        size = section->part.size;
    }
    if (piece->count == 0) {
        return 0;
    }
    rc = sl_keyed_import(table->entries, entries, size, &summary);
    if (section->part.size > 0) {
        sl_buf_destroy(&section->part);
    }
    if (rc == 0 && summary.entries != piece->count) {
        rc = sl_err_set(SL_EPROTO, "%llu entries of %s came as %llu",
                        (unsigned long long)piece->count, move->component,
                        (unsigned long long)summary.entries);
    }
    moved_add(&section->came,
              &(struct sl_worker_moved){0, summary.entries, summary.bytes, summary.checksum});
    return rc;
}

static int
pieces_take(struct incoming *move, const struct sl_worker_pieces *letter)
{
    int rc = 0;
    for (size_t i = 0; i < letter->count && rc == 0; i++) {
        rc = piece_take(move, &letter->pieces[i]);
    }
    if (rc == 0 && letter->is_last) {
        rc = section_close(move);
    }
    if (rc == 0 && letter->is_last && !moved_equals(&move->whole, &letter->whole)) {
        rc = sl_err_set(SL_EPROTO, "%llu entries of %s came as %llu",
                        (unsigned long long)letter->whole.entries, move->component,
                        (unsigned long long)move->whole.entries);
    }
    return rc;
}

static struct incoming *
incoming_new(struct sl_worker_moves *self, int32_t from, const struct sl_worker_pieces *letter)
{
    struct incoming *move = sl_calloc(1, sizeof(*move));
    move->id = letter->move;
    move->from = from;
    move->plan_version = letter->plan_version;
    move->component = sl_strdup(letter->component);
    sl_list_push_back(&self->incoming, &move->node);
    return move;
}

/* What is said of a move when a letter of it has come. */
static struct sl_worker_taken
letter_take(struct sl_worker_moves *self, int32_t from, const struct sl_worker_pieces *letter)
{
    struct incoming *move = find_incoming(self, letter->move);
    if (move == NULL && letter->number == 0) {
        move = incoming_new(self, from, letter);
    }
    if (move == NULL || move->from != from) {
        return (struct sl_worker_taken){
            .move = letter->move, .code = SL_ENOTFOUND, .reason = "its beginning did not come"};
    }
    /* One that has come before is only confirmed again, one that is too early comes again. */
    if (letter->number == move->next && !move->is_complete && move->code == 0) {
        if (move->key_groups == 0) {
            move->key_groups = letter->key_groups;
        }
        move->code = pieces_take(move, letter);
        if (move->code != 0) {
            set_reason(move->reason, sl_err_last()->msg);
            tables_free(move);
        } else {
            move->next++;
            move->is_complete = letter->is_last;
        }
    }
    return (struct sl_worker_taken){
        .move = letter->move, .count = move->next, .code = move->code, .reason = move->reason};
}

void
sl_worker_moves_heard(struct sl_worker_moves *self, int32_t peer, const uint8_t *bytes, size_t size)
{
    struct sl_worker_pieces pieces;
    struct sl_worker_taken message;
    bool is_taken;
    sl_arena_reset(&self->arena);
    if (sl_worker_letter_decode(bytes, size, &self->arena, &is_taken, &pieces, &message) != 0) {
        sl_log_warn("cluster.worker", "a letter of container %d: %s", peer, sl_err_last()->msg);
        return;
    }
    if (is_taken) {
        taken(self, peer, &message);
        return;
    }
    pthread_mutex_lock(&self->lock);
    message = letter_take(self, peer, &pieces);
    sl_buf_clear(&self->scratch);
    sl_worker_taken_encode(&message, &self->scratch);
    pthread_mutex_unlock(&self->lock);
    if (letter_send(self, peer, &self->scratch) != 0) {
        sl_log_warn("cluster.worker", "container %d hears nothing: %s", peer, sl_err_last()->msg);
    }
}

void
sl_worker_moves_settle(struct sl_worker_moves *self, uint64_t id, struct sl_rpc_request *request)
{
    pthread_mutex_lock(&self->lock);
    struct incoming *move = find_incoming(self, id);
    bool is_complete = move != NULL && move->is_complete;
    sl_buf_clear(&self->scratch);
    if (is_complete) {
        move->is_settled = true;
        sl_worker_moved_encode(&move->whole, &self->scratch);
    }
    pthread_mutex_unlock(&self->lock);
    if (is_complete) {
        sl_rpc_reply(request, self->scratch.data, self->scratch.size);
    } else {
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_ENOTFOUND, "it has not come");
    }
}

bool
sl_worker_moves_take(struct sl_worker_moves *self, uint64_t version, struct sl_worker_table *table)
{
    bool has_one = false;
    pthread_mutex_lock(&self->lock);
    sl_list_each(&self->incoming, it)
    {
        struct incoming *move = sl_container_of(it, struct incoming, node);
        if (!has_one && move->is_settled && move->plan_version == version &&
            move->tables.count > 0) {
            *table = move->tables.items[--move->tables.count];
            has_one = true;
        }
    }
    pthread_mutex_unlock(&self->lock);
    return has_one;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void
outgoing_end(struct sl_worker_moves *self, const char *reason)
{
    self->asking = NULL;
    sl_list_each(&self->outgoing, it)
    {
        struct outgoing *move = sl_container_of(it, struct outgoing, node);
        if (move->request != NULL) {
            sl_rpc_refuse(move->request, SL_RPC_FAILURE, SL_ECANCELED, "%s", reason);
        }
        outgoing_free(move);
    }
}

void
sl_worker_moves_plan(struct sl_worker_moves *self, uint64_t version)
{
    outgoing_end(self, "another plan has come");
    pthread_mutex_lock(&self->lock);
    sl_list_each(&self->incoming, it)
    {
        struct incoming *move = sl_container_of(it, struct incoming, node);
        if (!move->is_settled || move->plan_version != version) {
            incoming_free(move);
        }
    }
    pthread_mutex_unlock(&self->lock);
}

size_t
sl_worker_moves_count(const struct sl_worker_moves *self)
{
    size_t count = 0;
    sl_list_each(&self->outgoing, it)
    {
        count++;
    }
    sl_list_each(&self->incoming, it)
    {
        count++;
    }
    return count;
}

struct sl_worker_moves *
sl_worker_moves_new(const struct sl_worker_moves_options *options)
{
    struct sl_worker_moves *self = sl_calloc(1, sizeof(*self));
    self->options = *options;
    sl_list_create(&self->outgoing);
    sl_list_create(&self->incoming);
    sl_list_create(&self->own_letters);
    pthread_mutex_init(&self->lock, NULL);
    sl_arena_create(&self->arena, 0, 8 * (size_t)SL_FRAME_CONTROL_MAX);
    return self;
}

void
sl_worker_moves_free(struct sl_worker_moves *self)
{
    if (self == NULL) {
        return;
    }
    outgoing_end(self, "the worker ends");
    sl_list_each(&self->incoming, it)
    {
        incoming_free(sl_container_of(it, struct incoming, node));
    }
    sl_list_each(&self->own_letters, it)
    {
        struct own_letter *letter = sl_container_of(it, struct own_letter, node);
        sl_list_remove(&letter->node);
        sl_free(letter);
    }
    sl_timer_stop(&self->own_timer);
    pthread_mutex_destroy(&self->lock);
    sl_arena_destroy(&self->arena);
    sl_buf_destroy(&self->scratch);
    sl_free(self);
}
