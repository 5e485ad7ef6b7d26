/* Keys that go by a number: sets of them, how outboxes and batches hold them, ways of routes. */

#include "rig.h"

enum {
    SPOUT = 1,
    FIRST = 10,
    GROUPS = 64,
};

/* spout 1 -fields-> `count` tasks 10, 11, .. on executors 0 and 1 by turns. */
static struct rig *
rig_keyed(int32_t count)
{
    struct sl_worker_options options = rig_options();
    options.executors = 2;
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){0});
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
    rig_read(rig, spout, bolt, SL_GROUPING_FIELDS);
    rig_plan(rig, spout, SPOUT, 0);
    for (int32_t i = 0; i < count; i++) {
        rig_plan(rig, bolt, FIRST + i, i % 2);
    }
    rig_groups(rig, bolt, GROUPS);
    rig_attach_all(rig);
    return rig;
}

static struct sl_route *
route_of_spout(struct rig *rig)
{
    return sl_emitter_route(sl_task_emitter(rig->tasks[SPOUT].io, 0), 0);
}

static size_t
key_text(char *text, size_t size, int32_t i)
{
    return (size_t)snprintf(text, size, "key %d", i);
}

static void
test_add_numbers_keys_from_one_and_keeps_their_bytes(void **state)
{
    (void)state;
    struct sl_worker worker = {0};
    struct sl__known *known = sl__known_new(&worker);
    char text[32];
    size_t len;
    for (int32_t i = 1; i <= SL_WAY_KEYS_MOST; i++) {
        size_t made = i == 2 ? 0 : key_text(text, sizeof(text), i);
        assert_int_equal(sl__known_add(known, text, made), i);
    }
    for (int32_t i = 1; i <= SL_WAY_KEYS_MOST; i++) {
        size_t made = i == 2 ? 0 : key_text(text, sizeof(text), i);
        assert_memory_equal(sl__known_key(known, i, &len), text, made);
        assert_int_equal(len, made);
    }
    assert_null(sl__known_key(known, 0, &len));
    assert_null(sl__known_key(known, -1, &len));
    assert_null(sl__known_key(known, SL_WAY_KEYS_MOST + 1, &len));
    assert_null(sl__known_key(NULL, 1, &len));
    /* It lives until the last holder drops it. */
    assert_ptr_equal(sl__known_hold(known), known);
    sl__known_drop(known);
    assert_non_null(sl__known_key(known, 1, &len));
    sl__known_drop(known);
    assert_null(sl__known_hold(NULL));
    sl__known_drop(NULL);
    struct sl__known *other = sl__known_new(&worker);
    assert_int_equal(other->number, 2);
    sl__known_drop(other);
}

static void
test_a_way_leads_to_the_owner_and_has_a_number_when_it_is_kept(void **state)
{
    (void)state;
    struct rig *rig = rig_keyed(5);
    struct sl_route *route = route_of_spout(rig);
    int32_t numbers[5] = {0};
    char text[32];
    for (int32_t i = 0; i < 1000; i++) {
        size_t len = key_text(text, sizeof(text), i);
        int32_t way = sl_route_way(route, text, len, true);
        int32_t at = way >> SL_WAY_BITS;
        assert_ptr_equal(route->targets[at], sl_route_key(route, sl_key_hash_bytes(text, len)));
        /* Numbers of each receiver are dense. */
        assert_int_equal(way & ((1 << SL_WAY_BITS) - 1), ++numbers[at]);
        assert_int_equal(sl_route_way(route, text, len, false), at << SL_WAY_BITS);
    }
    char large[SL_WAY_KEY_BYTES_MOST + 1] = {0};
    const int32_t mask = (1 << SL_WAY_BITS) - 1;
    assert_int_equal(sl_route_way(route, large, sizeof(large), true) & mask, 0);
    assert_int_not_equal(sl_route_way(route, large, sizeof(large) - 1, true) & mask, 0);
    for (int32_t i = 1001; i < SL_WAY_KEYS_MOST; i++) {
        size_t len = key_text(text, sizeof(text), i);
        assert_int_not_equal(sl_route_way(route, text, len, true) & mask, 0);
    }
    assert_int_equal(sl_route_way(route, "one too many", 12, true) & mask, 0);
    sl_route_forget(route);
    assert_int_equal(sl_route_way(route, "the first", 9, true) & mask, 1);
    rig_free(rig);
}

static void
test_a_way_of_a_route_without_groups_is_an_error(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    int32_t spout = rig_component(rig, SL_TASK_SPOUT, 0, -1, 1, (struct rig_component){0});
    int32_t bolt = rig_component(rig, SL_TASK_BOLT, 1, -1, 1, (struct rig_component){0});
    rig_read(rig, spout, bolt, SL_GROUPING_PARTIAL_KEY);
    rig_plan(rig, spout, SPOUT, 0);
    rig_plan(rig, bolt, FIRST, 0);
    rig_attach_all(rig);
    assert_int_equal(sl_route_way(route_of_spout(rig), "a", 1, true), SL_EINVAL);
    rig_free(rig);
}

/* Writes a record that names a key by its number. */
static void
write_number(struct sl__outbox *outbox, int32_t number)
{
    struct sl_record *record = (struct sl_record *)outbox->io.pos;
    record->len = (int32_t)(sizeof(*record) + sizeof(struct sl_slot));
    record->anchors = 0;
    record->slots[0] = (struct sl_slot){.tag = SL_SLOT_KEY, .len = number};
    outbox->io.pos += record->len;
    outbox->io.count++;
}

static struct sl__batch *
pop_batch(struct rig *rig, struct sl__outbox *outbox)
{
    struct sl__batch *batch;
    assert_true(sl__outbox_hand_over(outbox));
    assert_true(sl_ring_pop(rig->worker->data[1], &batch));
    return batch;
}

static void
assert_key(const struct sl__batch *batch, int32_t number, const char *expected)
{
    struct sl_turn turn = {.batch = (struct sl_batch *)(uintptr_t)&batch->io};
    size_t len;
    const char *text = sl_turn_key(&turn, number, &len);
    assert_int_equal(len, strlen(expected));
    assert_memory_equal(text, expected, len);
}

static void
give(struct rig *rig, struct sl__outbox *outbox, struct sl__batch *batch)
{
    struct sl_executor *other = sl_worker_executor(rig->worker, 1);
    sl__batch_give(other, batch);
    sl__outbox_released(other, outbox);
}

static void
test_batches_keep_the_keys_that_their_records_name(void **state)
{
    (void)state;
    struct rig *rig = rig_keyed(2);
    struct sl__outbox *outbox = sl__outbox_of(route_of_spout(rig)->targets[1]);
    /* The buffer is older than the first key. */
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    assert_int_equal(sl__outbox_know(outbox, "old", 3), 1);
    write_number(outbox, 1);
    assert_true(outbox->io.pos < outbox->io.limit);
    sl_route_forget(route_of_spout(rig));
    /* Nothing that names keys of the next set gets into it. */
    assert_ptr_equal(outbox->io.pos, outbox->io.limit);
    assert_int_equal(sl__outbox_know(outbox, "new", 3), 1);
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    write_number(outbox, 1);
    struct sl__batch *first;
    assert_true(sl_ring_pop(rig->worker->data[1], &first));
    struct sl__batch *second = pop_batch(rig, outbox);
    assert_key(first, 1, "old");
    assert_key(second, 1, "new");
    struct sl_turn turn = {.batch = &second->io};
    size_t len;
    assert_null(sl_turn_key(&turn, 2, &len));
    assert_int_equal(sl_err_last()->code, SL_ENOTFOUND);
    int32_t set = second->known->number;
    assert_int_not_equal(first->known->number, set);
    give(rig, outbox, first);
    give(rig, outbox, second);
    /* The set goes on with the next buffer. */
    assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
    assert_int_equal(outbox->batch->known->number, set);
    /* An empty buffer does not have to be handed over to be of another set. */
    sl__outbox_forget_keys(outbox);
    assert_null(outbox->batch->known);
    assert_true(outbox->io.pos < outbox->io.limit);
    assert_int_equal(sl__outbox_know(outbox, "newer", 5), 1);
    write_number(outbox, 1);
    struct sl__batch *third = pop_batch(rig, outbox);
    assert_key(third, 1, "newer");
    give(rig, outbox, third);
    rig_free(rig);
}

static void
test_a_turn_says_which_set_its_records_name(void **state)
{
    (void)state;
    struct rig *rig = rig_keyed(1);
    struct sl__outbox *outbox = sl__outbox_of(route_of_spout(rig)->targets[0]);
    struct sl_executor *executor = sl_worker_executor(rig->worker, 0);
    struct sl_turn turn;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sl_outbox_flush(&outbox->io, 1), SL_FLUSH_OK);
        write_number(outbox, 1);
        assert_true(sl__outbox_hand_over(outbox));
        assert_int_equal(sl_executor_nested(executor, &turn, FIRST), SL_TURN_BATCH);
        assert_int_equal(turn.known, i == 0 ? 0 : outbox->known->number);
        sl_batch_end(executor, &turn, 1, turn.batch->tail);
        if (i == 0) {
            sl__outbox_know(outbox, "key", 3);
        }
    }
    rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_add_numbers_keys_from_one_and_keeps_their_bytes),
    cmocka_unit_test(test_a_way_leads_to_the_owner_and_has_a_number_when_it_is_kept),
    cmocka_unit_test(test_a_way_of_a_route_without_groups_is_an_error),
    cmocka_unit_test(test_batches_keep_the_keys_that_their_records_name),
    cmocka_unit_test(test_a_turn_says_which_set_its_records_name),
};

UNIT_MAIN(tests)
