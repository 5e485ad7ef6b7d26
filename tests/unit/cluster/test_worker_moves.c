/*
 * State that moves from worker to worker, when letters come twice, are lost with their session, are
 * changed on their way or never come; and what a worker answers when it is asked again.
 * labels: short
 */
#include "topology_fixture.h"

static void
begin(struct fixture *f)
{
    run(f);
    fill_counts(f);
}

/* An update that must succeed. */
static void
assert_moves(struct fixture *f)
{
    struct sl_update_result result = update(f, 2, 4);
    assert_int_equal(result.outcome, SL_UPDATE_DONE);
    assert_true(result.groups_moved > 0 && result.bytes_moved > 0);
    assert_counts(f);
}

/* An update that must be rolled back for a reason, and the next one succeeds. */
static void
assert_fails(struct fixture *f, const char *reason)
{
    struct sl_update_result result = update(f, 2, 4);
    assert_int_equal(result.outcome, SL_UPDATE_ROLLED_BACK);
    assert_non_null(strstr(result.reason, reason));
    assert_counts(f);
    for (int32_t id = 1; id <= 3; id++) {
        assert_nothing_aside(worker_of(f, id));
    }
    f->on_letter = NULL;
    f->understates = false;
    assert_moves(f);
}

static void
send_twice(struct fixture *f, struct fake_letter *letter)
{
    void (*on_letter)(struct fixture * f, struct fake_letter * letter) = f->on_letter;
    f->on_letter = NULL;
    letter_post(f, letter->from, letter->to, letter->bytes, letter->size);
    f->on_letter = on_letter;
}

static void
test_letters_that_come_twice_count_once(void **state)
{
    struct fixture *f = *state;
    begin(f);
    f->on_letter = send_twice;
    assert_moves(f);
}

static void
break_all(void *ctx)
{
    for (int32_t one = 1; one <= 5; one++) {
        for (int32_t other = one + 1; other <= 5; other++) {
            break_session(ctx, one, other);
        }
    }
}

/* Some letters are lost, and with each what all sessions have under way. */
static void
lose_some(struct fixture *f, struct fake_letter *letter)
{
    if (f->letter_count % 29 == 5) {
        sl_loop_post(f->master_node.loop, break_all, f);
        letter->is_lost = true;
    }
}

static void
test_letters_that_are_lost_with_their_session_are_sent_again(void **state)
{
    struct fixture *f = *state;
    begin(f);
    f->on_letter = lose_some;
    assert_moves(f);
    assert_true(f->letter_count > 2 * 4 * ENTRIES);
}

static void
lose(struct fixture *f, struct fake_letter *letter)
{
    (void)f;
    letter->is_lost = true;
}

static void
test_letters_that_never_come_fail_the_update(void **state)
{
    struct fixture *f = *state;
    begin(f);
    f->on_letter = lose;
    assert_fails(f, "nothing was heard of container");
    assert_true(f->letter_count <= 2 * SL_WORKER_MOVES_LETTERS + 4 * ENTRIES * GROUPS);
}

/* Gives a letter of pieces to `change` and puts what it has made of it in the letter's place. */
static void
rewrite(struct fixture *f, struct fake_letter *letter,
        void (*change)(struct sl_worker_pieces *pieces, struct sl_worker_piece *first))
{
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    struct sl_worker_pieces pieces;
    struct sl_worker_taken taken;
    bool is_taken;
    sl_arena_create(&arena, 0, 0);
    assert_int_equal(
        sl_worker_letter_decode(letter->bytes, letter->size, &arena, &is_taken, &pieces, &taken),
        0);
    if (!is_taken) {
        struct sl_worker_piece first = pieces.pieces[0];
        pieces.pieces = &first;
        change(&pieces, &first);
        sl_worker_pieces_encode(&pieces, &bytes);
        letter->is_lost = true;
        f->on_letter = NULL;
        letter_post(f, letter->from, letter->to, bytes.data, bytes.size);
    }
    sl_buf_destroy(&bytes);
    sl_arena_destroy(&arena);
}

static void
flip_a_bit(struct sl_worker_pieces *pieces, struct sl_worker_piece *first)
{
    (void)pieces;
    ((uint8_t *)(uintptr_t)first->entries)[first->size - 1] ^= 1;
}

static void
change_entries(struct fixture *f, struct fake_letter *letter)
{
    rewrite(f, letter, flip_a_bit);
}

static void
test_entries_that_were_changed_on_their_way_fail_the_update(void **state)
{
    struct fixture *f = *state;
    begin(f);
    f->on_letter = change_entries;
    assert_fails(f, "was changed on its way");
}

/* As a source would that exports other entries than it has counted. */
static void
flip_and_hash(struct sl_worker_pieces *pieces, struct sl_worker_piece *first)
{
    flip_a_bit(pieces, first);
    first->hash = sl_hash_bytes(first->entries, first->size);
}

static void
forge_entries(struct fixture *f, struct fake_letter *letter)
{
    rewrite(f, letter, flip_and_hash);
}

static void
test_entries_that_are_not_those_of_the_checksum_fail_the_update(void **state)
{
    struct fixture *f = *state;
    begin(f);
    f->on_letter = forge_entries;
    assert_fails(f, "came as 3");
}

static void
drop_the_piece(struct sl_worker_pieces *pieces, struct sl_worker_piece *first)
{
    (void)first;
    if (pieces->number == 1) {
        pieces->count = 0;
    }
}

static void
forget_a_piece(struct fixture *f, struct fake_letter *letter)
{
    rewrite(f, letter, drop_the_piece);
    if (f->letter_count < 20) {
        f->on_letter = forget_a_piece;
    }
}

static void
test_entries_that_are_missing_fail_the_update(void **state)
{
    struct fixture *f = *state;
    begin(f);
    f->on_letter = forget_a_piece;
    assert_fails(f, "came as 2");
}

static void
test_a_target_that_has_got_something_else_fails_the_update(void **state)
{
    struct fixture *f = *state;
    begin(f);
    f->understates = true;
    assert_fails(f, "has got 1 (1)");
}

static void
test_entries_come_in_parts(void **state)
{
    struct fixture *f = *state;
    begin(f);
    f->has_parts = true;
    assert_moves(f);
}

static void
test_letters_may_come_without_entries_at_first(void **state)
{
    struct fixture *f = *state;
    begin(f);
    f->begins_empty = true;
    assert_moves(f);
}

static void
drop_the_second_part(struct sl_worker_pieces *pieces, struct sl_worker_piece *first)
{
    (void)first;
    pieces->count = 1;
}

static void
cut_entries(struct fixture *f, struct fake_letter *letter)
{
    rewrite(f, letter, drop_the_second_part);
    f->on_letter = f->letter_count < 100 ? cut_entries : NULL;
}

static void
test_an_entry_without_its_end_fails_the_update(void **state)
{
    struct fixture *f = *state;
    begin(f);
    f->has_parts = true;
    f->on_letter = cut_entries;
    struct sl_update_result result = update(f, 2, 4);
    assert_int_equal(result.outcome, SL_UPDATE_ROLLED_BACK);
    assert_counts(f);
}

/* ---- orders one by one ---------------------------------------------------------------------- */

static void
ask_worker(struct fixture *f, int32_t id, uint32_t method, const struct sl_buf *body)
{
    struct sl_rpc_gateway *gateway;
    int before = f->answers;
    assert_int_equal(
        sl_rpc_connect(f->client.rpc, worker_of(f, id)->address, SL_ENDPOINT_WORKER, 0, &gateway),
        0);
    sl_rpc_call(gateway, method, body->data, body->size, 150000, answered, f);
    UNTIL(f, f->answers > before);
    sl_rpc_gateway_free(gateway);
}

static int
order(struct fixture *f, int32_t from, int32_t to, uint64_t id, struct sl_worker_moved *moved)
{
    const uint32_t groups[] = {1, 3};
    const int32_t owners[] = {2, 3};
    struct sl_buf body = {0};
    struct sl_worker_move move = {id, 2, {"count", groups, 2, 0}, owners, to};
    sl_worker_move_encode(&move, &body);
    ask_worker(f, from, SL_WORKER_MOVE, &body);
    sl_buf_destroy(&body);
    return f->result.status == SL_RPC_SUCCESS
               ? sl_worker_moved_decode(f->answer.data, f->answer.size, moved)
               : f->result.code;
}

static int
settle(struct fixture *f, int32_t at, uint64_t id, struct sl_worker_moved *moved)
{
    struct sl_buf body = {0};
    sl_worker_move_id_encode(id, &body);
    ask_worker(f, at, SL_WORKER_MOVED, &body);
    sl_buf_destroy(&body);
    return f->result.status == SL_RPC_SUCCESS
               ? sl_worker_moved_decode(f->answer.data, f->answer.size, moved)
               : f->result.code;
}

static void
test_an_order_that_is_repeated_sends_nothing_again(void **state)
{
    struct fixture *f = *state;
    struct sl_worker_moved first;
    struct sl_worker_moved again;
    begin(f);
    /* Groups 1 and 3 are in container 3. */
    assert_int_equal(order(f, 3, 2, 70, &first), 0);
    assert_int_equal(first.tables, 2);
    assert_int_equal(first.entries, 2 * ENTRIES);
    int letters = f->letter_count;
    assert_int_equal(letters, 2 * 2 * ENTRIES);
    assert_int_equal(order(f, 3, 2, 70, &again), 0);
    assert_memory_equal(&first, &again, sizeof(first));
    assert_int_equal(f->letter_count, letters);
    /* What has come is the plan's only when it was asked for. */
    assert_nothing_aside(worker_of(f, 2));
    assert_int_equal(settle(f, 2, 70, &again), 0);
    assert_memory_equal(&first, &again, sizeof(first));
    assert_int_equal(settle(f, 2, 71, &again), SL_ENOTFOUND);
    int counts[GROUPS];
    worker_take(worker_of(f, 2), 2, counts);
    assert_int_equal(counts[1], 11);
    assert_int_equal(counts[2], -1);
    assert_int_equal(counts[3], 13);
    /* Once. */
    worker_take(worker_of(f, 2), 2, counts);
    assert_int_equal(counts[1], -1);
}

static void
test_state_moves_to_the_worker_that_has_it(void **state)
{
    struct fixture *f = *state;
    struct sl_worker_moved sent;
    struct sl_worker_moved came;
    int counts[GROUPS];
    begin(f);
    assert_int_equal(order(f, 3, 3, 5, &sent), 0);
    assert_int_equal(f->letter_count, 0);
    assert_int_equal(settle(f, 3, 5, &came), 0);
    assert_memory_equal(&sent, &came, sizeof(sent));
    worker_take(worker_of(f, 3), 2, counts);
    assert_int_equal(counts[1], 11);
    assert_int_equal(counts[3], 13);
}

static void
test_a_plan_drops_what_has_come_for_another(void **state)
{
    struct fixture *f = *state;
    struct sl_worker_moved moved;
    struct sl_worker_table table;
    begin(f);
    assert_int_equal(order(f, 3, 2, 6, &moved), 0);
    assert_int_equal(settle(f, 2, 6, &moved), 0);
    struct sl_worker_moves *moves = worker_of(f, 2)->moves;
    assert_int_equal(sl_worker_moves_count(moves), 1);
    sl_worker_moves_plan(moves, 1);
    assert_int_equal(sl_worker_moves_count(moves), 0);
    assert_false(sl_worker_moves_take(moves, 2, &table));
    /* The source knows of it until a plan comes there. */
    assert_int_equal(sl_worker_moves_count(worker_of(f, 3)->moves), 1);
    sl_worker_moves_plan(worker_of(f, 3)->moves, 1);
    assert_int_equal(sl_worker_moves_count(worker_of(f, 3)->moves), 0);
}

/* Too early: it is neither taken nor confirmed. */
static void
hold_back(struct fixture *f, struct fake_letter *letter)
{
    (void)f;
    letter->is_lost = letter->is_lost || letter->to == 2;
}

static void
test_few_letters_are_under_way_and_a_plan_ends_them(void **state)
{
    struct fixture *f = *state;
    const uint32_t groups[] = {1, 3, 5, 7};
    const int32_t owners[] = {2, 2, 2, 2};
    struct sl_buf body = {0};
    struct sl_rpc_gateway *gateway;
    begin(f);
    f->on_letter = hold_back;
    sl_worker_move_encode(&(struct sl_worker_move){9, 2, {"count", groups, 4, 0}, owners, 2},
                          &body);
    assert_int_equal(
        sl_rpc_connect(f->client.rpc, worker_of(f, 3)->address, SL_ENDPOINT_WORKER, 0, &gateway),
        0);
    int before = f->answers;
    sl_rpc_call(gateway, SL_WORKER_MOVE, body.data, body.size, 150000, answered, f);
    sl_sim_run_for(f->sim, 5000);
    assert_int_equal(f->letter_count, SL_WORKER_MOVES_LETTERS);
    assert_int_equal(f->answers, before);
    sl_worker_moves_plan(worker_of(f, 3)->moves, 1);
    UNTIL(f, f->answers > before);
    assert_int_equal(f->result.code, SL_ECANCELED);
    sl_rpc_gateway_free(gateway);
    sl_buf_destroy(&body);
}

static void
test_a_peer_that_is_gone_ends_what_goes_to_it(void **state)
{
    struct fixture *f = *state;
    struct sl_worker_moved moved;
    begin(f);
    worker_die(worker_of(f, 2));
    int before = f->answers;
    struct sl_buf body = {0};
    struct sl_rpc_gateway *gateway;
    const uint32_t groups[] = {1};
    const int32_t owners[] = {2};
    sl_worker_move_encode(&(struct sl_worker_move){9, 2, {"count", groups, 1, 0}, owners, 2},
                          &body);
    assert_int_equal(
        sl_rpc_connect(f->client.rpc, worker_of(f, 3)->address, SL_ENDPOINT_WORKER, 0, &gateway),
        0);
    sl_rpc_call(gateway, SL_WORKER_MOVE, body.data, body.size, 150000, answered, f);
    sl_sim_run_for(f->sim, 100);
    sl_worker_moves_changed(worker_of(f, 3)->moves, 2, SL_REMOTE_ENDED);
    UNTIL(f, f->answers > before);
    assert_int_equal(f->result.code, SL_ECLOSED);
    /* It stays so for who asks again. */
    assert_int_equal(order(f, 3, 2, 9, &moved), SL_ECLOSED);
    sl_rpc_gateway_free(gateway);
    sl_buf_destroy(&body);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_letters_that_come_twice_count_once),
        TEST(test_letters_that_are_lost_with_their_session_are_sent_again),
        TEST(test_letters_that_never_come_fail_the_update),
        TEST(test_entries_that_were_changed_on_their_way_fail_the_update),
        TEST(test_entries_that_are_not_those_of_the_checksum_fail_the_update),
        TEST(test_entries_that_are_missing_fail_the_update),
        TEST(test_a_target_that_has_got_something_else_fails_the_update),
        TEST(test_entries_come_in_parts),
        TEST(test_letters_may_come_without_entries_at_first),
        TEST(test_an_entry_without_its_end_fails_the_update),
        TEST(test_an_order_that_is_repeated_sends_nothing_again),
        TEST(test_state_moves_to_the_worker_that_has_it),
        TEST(test_a_plan_drops_what_has_come_for_another),
        TEST(test_few_letters_are_under_way_and_a_plan_ends_them),
        TEST(test_a_peer_that_is_gone_ends_what_goes_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
