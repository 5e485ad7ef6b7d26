/* labels: short */
/* The messages of a running topology: packing plans, physical plans, what workers say, packages. */
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "cluster/package.h"
#include "cluster/physical_plan.h"
#include "cluster/worker_messages.h"
#include "unit.h"

/* Two containers, a spout with one task and a keyed bolt with two. */
static int32_t groups[] = {2, 2, 3, 3};
static struct sl_plan_component components[] = {{"lines", NULL, 0}, {"count", groups, 4}};
static struct sl_packing_container containers[] = {{1, 0, 2, 2, 100, 10}, {4, 2, 1, 1, 50, 5}};
static struct sl_packing_instance instances[] = {
    {0, 1, 0, 1, 10, 1}, {1, 3, 1, 1, 10, 1}, {1, 2, 0, 0.5, 10, 1}};
static struct sl_plan_slot slots[] = {{"s1", "h1", 6700}, {"", "", 0}};

static struct sl_stored_plan
make_stored(void)
{
    return (struct sl_stored_plan){
        .topology = "words",
        .version = 7,
        .packing = "round_robin",
        .components = components,
        .component_count = 2,
        .plan = {.containers = containers,
                 .instances = instances,
                 .container_count = 2,
                 .instance_count = 3},
        .slots = slots,
    };
}

static void
test_a_stored_plan_comes_back(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    struct sl_stored_plan plan = make_stored();
    struct sl_stored_plan seen;
    plan.master = (struct sl_plan_slot){"s2", "h2", 6701};
    plan.master_task = 4;
    sl_arena_create(&arena, 0, 0);
    assert_int_equal(sl_stored_plan_encode(&plan, &bytes), 0);
    assert_int_equal(sl_stored_plan_decode(bytes.data, bytes.size, &arena, &seen), 0);
    assert_string_equal(seen.topology, "words");
    assert_int_equal(seen.version, 7);
    assert_string_equal(seen.packing, "round_robin");
    assert_int_equal(seen.component_count, 2);
    assert_int_equal(seen.components[1].key_group_count, 4);
    assert_int_equal(seen.components[1].key_groups[3], 3);
    assert_int_equal(seen.plan.container_count, 2);
    assert_memory_equal(seen.plan.containers, containers, sizeof(containers));
    assert_memory_equal(seen.plan.instances, instances, sizeof(instances));
    assert_string_equal(seen.slots[0].supervisor, "s1");
    assert_int_equal(seen.slots[0].port, 6700);
    assert_string_equal(seen.master.supervisor, "s2");
    assert_string_equal(seen.master.host, "h2");
    assert_int_equal(seen.master.port, 6701);
    assert_int_equal(seen.master_task, 4);
    assert_int_equal(sl_stored_plan_component(&seen, "count"), 1);
    assert_int_equal(sl_stored_plan_component(&seen, "nobody"), -1);
    sl_buf_destroy(&bytes);
    sl_arena_destroy(&arena);
}

static void
test_a_plan_cut_anywhere_is_refused_or_another_plan(void **state)
{
    (void)state;
    struct sl_buf bytes = {0};
    struct sl_stored_plan plan = make_stored();
    assert_int_equal(sl_stored_plan_encode(&plan, &bytes), 0);
    for (size_t size = 0; size < bytes.size; size++) {
        struct sl_arena arena;
        struct sl_stored_plan seen;
        sl_arena_create(&arena, 0, 0);
        /* The slots stand before the last container's instances, so no cut is a whole plan. */
        assert_int_not_equal(sl_stored_plan_decode(bytes.data, size, &arena, &seen), 0);
        sl_arena_destroy(&arena);
    }
    sl_buf_destroy(&bytes);
}

static void
test_a_key_group_of_a_foreign_task_is_refused(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    struct sl_stored_plan plan = make_stored();
    struct sl_stored_plan seen;
    int32_t wrong[] = {2, 1};
    struct sl_plan_component with_wrong[] = {components[0], {"count", wrong, 2}};
    plan.components = with_wrong;
    sl_arena_create(&arena, 0, 0);
    assert_int_equal(sl_stored_plan_encode(&plan, &bytes), 0);
    assert_int_equal(sl_stored_plan_decode(bytes.data, bytes.size, &arena, &seen), SL_EPROTO);
    sl_buf_destroy(&bytes);
    sl_arena_destroy(&arena);
}

static void
test_a_physical_plan_is_made_of_a_packing_plan_and_comes_back(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    struct sl_stored_plan stored = make_stored();
    struct sl_physical_plan plan;
    struct sl_physical_plan seen;
    sl_arena_create(&arena, 0, 0);
    sl_physical_plan_from_stored(&stored, "words-1", &arena, &plan);
    assert_int_equal(plan.plan_version, 7);
    assert_int_equal(plan.tasks[1].task, 2);
    assert_int_equal(plan.tasks[1].container, 4);
    assert_false(sl_physical_plan_is_complete(&plan));
    struct sl_physical_container *container = sl_physical_plan_container(&plan, 4);
    assert_ptr_equal(container, &plan.containers[1]);
    assert_null(sl_physical_plan_container(&plan, 2));
    container->is_registered = true;
    memset(container->identity, 9, sizeof(container->identity));
    container->host = "127.0.0.1";
    container->data_port = 4000;
    container->address = "127.0.0.1:4001";
    container->pid = 77;
    plan.state = SL_TOPOLOGY_PAUSED;
    plan.token = 5;
    plan.epoch = 6;
    assert_int_equal(sl_physical_plan_encode(&plan, &bytes), 0);
    assert_int_equal(sl_physical_plan_decode(bytes.data, bytes.size, &arena, &seen), 0);
    assert_string_equal(seen.topology_id, "words-1");
    assert_int_equal(seen.state, SL_TOPOLOGY_PAUSED);
    assert_int_equal(seen.token, 5);
    assert_int_equal(seen.epoch, 6);
    assert_false(seen.containers[0].is_registered);
    assert_true(seen.containers[1].is_registered);
    assert_memory_equal(seen.containers[1].identity, container->identity, SL_IDENTITY_SIZE);
    assert_int_equal(seen.containers[1].pid, 77);
    assert_memory_equal(seen.tasks, plan.tasks, 3 * sizeof(*plan.tasks));
    assert_int_equal(seen.components[1].key_groups[0], 2);
    sl_buf_destroy(&bytes);
    sl_arena_destroy(&arena);
}

static void
test_a_physical_plan_out_of_order_is_refused(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    struct sl_stored_plan stored = make_stored();
    struct sl_physical_plan plan;
    struct sl_physical_plan seen;
    sl_arena_create(&arena, 0, 0);
    sl_physical_plan_from_stored(&stored, "words-1", &arena, &plan);
    plan.tasks[0].container = 3;
    assert_int_equal(sl_physical_plan_encode(&plan, &bytes), 0);
    assert_int_equal(sl_physical_plan_decode(bytes.data, bytes.size, &arena, &seen), SL_EPROTO);
    plan.tasks[0].container = 1;
    plan.tasks[0].task = 2;
    sl_buf_clear(&bytes);
    assert_int_equal(sl_physical_plan_encode(&plan, &bytes), 0);
    assert_int_equal(sl_physical_plan_decode(bytes.data, bytes.size, &arena, &seen), SL_EPROTO);
    sl_buf_destroy(&bytes);
    sl_arena_destroy(&arena);
}

static void
test_letters_of_workers_come_back(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    const uint8_t entries[] = {1, 2, 3};
    struct sl_worker_piece pieces[] = {
        {"counts", entries, 3, 1, 99, 77, 5, {1, 2, 3, 4}},
        {"counts", entries, 2, 0, 98, 77, 5, {0}},
    };
    struct sl_worker_pieces letter = {11, 8, "count", 128, 7, pieces, 2, true, {5, 6, 7, 8}};
    struct sl_worker_pieces seen;
    struct sl_worker_taken taken;
    bool is_taken = true;
    sl_arena_create(&arena, 0, 0);
    sl_worker_pieces_encode(&letter, &bytes);
    assert_int_equal(
        sl_worker_letter_decode(bytes.data, bytes.size, &arena, &is_taken, &seen, &taken), 0);
    assert_false(is_taken);
    assert_int_equal(seen.move, 11);
    assert_int_equal(seen.plan_version, 8);
    assert_string_equal(seen.component, "count");
    assert_int_equal(seen.key_groups, 128);
    assert_int_equal(seen.number, 7);
    assert_true(seen.is_last);
    assert_memory_equal(&seen.whole, &letter.whole, sizeof(seen.whole));
    assert_int_equal(seen.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(seen.pieces[i].state, "counts");
        assert_int_equal(seen.pieces[i].size, pieces[i].size);
        assert_memory_equal(seen.pieces[i].entries, entries, pieces[i].size);
        assert_int_equal(seen.pieces[i].count, pieces[i].count);
        assert_int_equal(seen.pieces[i].hash, pieces[i].hash);
        assert_int_equal(seen.pieces[i].group, 77);
        assert_int_equal(seen.pieces[i].task, 5);
        assert_memory_equal(&seen.pieces[i].whole, &pieces[i].whole, sizeof(pieces[i].whole));
    }
    letter.is_last = false;
    sl_buf_clear(&bytes);
    sl_worker_pieces_encode(&letter, &bytes);
    assert_int_equal(
        sl_worker_letter_decode(bytes.data, bytes.size, &arena, &is_taken, &seen, &taken), 0);
    assert_false(seen.is_last);
    sl_buf_clear(&bytes);
    sl_worker_taken_encode(&(struct sl_worker_taken){11, 3, SL_EPROTO, "no"}, &bytes);
    assert_int_equal(
        sl_worker_letter_decode(bytes.data, bytes.size, &arena, &is_taken, &seen, &taken), 0);
    assert_true(is_taken);
    assert_int_equal(taken.move, 11);
    assert_int_equal(taken.count, 3);
    assert_int_equal(taken.code, SL_EPROTO);
    assert_string_equal(taken.reason, "no");
    /* Neither the one nor the other. */
    assert_int_equal(sl_worker_letter_decode(bytes.data, 0, &arena, &is_taken, &seen, &taken),
                     SL_EPROTO);
    sl_buf_destroy(&bytes);
    sl_arena_destroy(&arena);
}

static void
test_orders_to_move_state_come_back(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    const uint32_t some[] = {3, 9, 4};
    const int32_t owners[] = {20, 21, 22};
    struct sl_worker_move move = {1, 2, {"count", some, 2, 0}, owners, 6};
    struct sl_worker_move seen;
    struct sl_worker_moved moved = {1, 2, 3, 4};
    struct sl_worker_moved moved_seen;
    uint64_t id = 0;
    sl_arena_create(&arena, 0, 0);
    sl_worker_move_encode(&move, &bytes);
    assert_int_equal(sl_worker_move_decode(bytes.data, bytes.size, &arena, &seen), 0);
    assert_int_equal(seen.id, 1);
    assert_int_equal(seen.plan_version, 2);
    assert_string_equal(seen.what.component, "count");
    assert_int_equal(seen.what.group_count, 2);
    assert_memory_equal(seen.what.groups, some, 2 * sizeof(*some));
    assert_memory_equal(seen.owners, owners, 2 * sizeof(*owners));
    assert_int_equal(seen.to, 6);
    /* Out of order. */
    move.what.group_count = 3;
    sl_buf_clear(&bytes);
    sl_worker_move_encode(&move, &bytes);
    assert_int_equal(sl_worker_move_decode(bytes.data, bytes.size, &arena, &seen), SL_EPROTO);
    /* Of a task, and of groups. */
    move.what = (struct sl_worker_state_of){"count", some, 2, 7};
    sl_buf_clear(&bytes);
    sl_worker_move_encode(&move, &bytes);
    assert_int_equal(sl_worker_move_decode(bytes.data, bytes.size, &arena, &seen), SL_EPROTO);
    move.what = (struct sl_worker_state_of){"count", NULL, 0, 7};
    sl_buf_clear(&bytes);
    sl_worker_move_encode(&move, &bytes);
    assert_int_equal(sl_worker_move_decode(bytes.data, bytes.size, &arena, &seen), 0);
    assert_int_equal(seen.what.task, 7);
    sl_buf_clear(&bytes);
    sl_worker_moved_encode(&moved, &bytes);
    assert_int_equal(sl_worker_moved_decode(bytes.data, bytes.size, &moved_seen), 0);
    assert_memory_equal(&moved_seen, &moved, sizeof(moved));
    sl_buf_clear(&bytes);
    sl_worker_move_id_encode(~0ull, &bytes);
    assert_int_equal(sl_worker_move_id_decode(bytes.data, bytes.size, &id), 0);
    assert_true(id == ~0ull);
    sl_buf_destroy(&bytes);
    sl_arena_destroy(&arena);
}

static void
test_small_worker_messages_come_back(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    sl_arena_create(&arena, 0, 0);
    for (int i = SL_SPOUTS_PAUSED; i <= SL_SPOUTS_HELD_WITH_WAY; i++) {
        enum sl_worker_spouts spouts;
        sl_buf_clear(&bytes);
        sl_worker_spouts_encode((enum sl_worker_spouts)i, &bytes);
        assert_int_equal(sl_worker_spouts_decode(bytes.data, bytes.size, &spouts), 0);
        assert_int_equal(spouts, i);
    }
    for (int i = 0; i < 8; i++) {
        struct sl_worker_drain wanted = {7, (i & 1) != 0, (i & 2) != 0, (i & 4) != 0};
        struct sl_worker_drain drain;
        sl_buf_clear(&bytes);
        sl_worker_drain_encode(&wanted, &bytes);
        assert_int_equal(sl_worker_drain_decode(bytes.data, bytes.size, &drain), 0);
        assert_int_equal(drain.time_limit_ms, 7);
        assert_int_equal(drain.is_last, wanted.is_last);
        assert_int_equal(drain.only_roots, wanted.only_roots);
        assert_int_equal(drain.may_stay, wanted.may_stay);
    }
    struct sl_worker_drained drained;
    sl_buf_clear(&bytes);
    sl_worker_drained_encode(&(struct sl_worker_drained){1, 2, 3, 4}, &bytes);
    assert_int_equal(sl_worker_drained_decode(bytes.data, bytes.size, &drained), 0);
    assert_int_equal(drained.roots + 10 * drained.waiting, 21);
    assert_int_equal(drained.sent + 10 * drained.received, 43);
    const uint32_t some[] = {3, 9};
    struct sl_worker_state_of wanted;
    sl_buf_clear(&bytes);
    sl_worker_measure_encode(&(struct sl_worker_state_of){"count", some, 2, 0}, &bytes);
    assert_int_equal(sl_worker_measure_decode(bytes.data, bytes.size, &arena, &wanted), 0);
    assert_int_equal(wanted.group_count, 2);
    assert_int_equal(wanted.groups[1], 9);
    struct sl_worker_counters counters = {"count", 1, 2, 3, 4, 5, 6};
    struct sl_worker_report report;
    sl_buf_clear(&bytes);
    sl_worker_report_encode(&(struct sl_worker_report){7, true, &counters, 1}, &bytes);
    assert_int_equal(sl_worker_report_decode(bytes.data, bytes.size, &arena, &report), 0);
    assert_int_equal(report.components[0].errors, 6);
    assert_true(report.is_active);
    struct sl_worker_event event;
    sl_buf_clear(&bytes);
    sl_worker_event_encode(&(struct sl_worker_event){3, "count", 2, "a.lua:1: no", true}, &bytes);
    assert_int_equal(sl_worker_event_decode(bytes.data, bytes.size, &arena, &event), 0);
    assert_string_equal(event.text, "a.lua:1: no");
    assert_true(event.is_fatal);
    sl_buf_destroy(&bytes);
    sl_arena_destroy(&arena);
}

static void
test_a_package_comes_back_and_keeps_to_its_folder(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    struct sl_package_file files[] = {{"lib/a.lua", (const uint8_t *)"return 1", 8},
                                      {"topo.lua", (const uint8_t *)"return 2", 8}};
    struct sl_package package = {"topo.lua", files, 2, "{}", 2, "", 0};
    struct sl_package seen;
    sl_arena_create(&arena, 0, 0);
    assert_int_equal(sl_package_encode(&package, &bytes), 0);
    assert_int_equal(sl_package_decode(bytes.data, bytes.size, &arena, &seen), 0);
    assert_string_equal(seen.script, "topo.lua");
    assert_int_equal(seen.file_count, 2);
    assert_memory_equal(seen.files[1].content, "return 2", 8);
    assert_int_equal(seen.overrides_size, 2);
    static const char *const wrong[] = {"../a.lua", "/a.lua", "lib//a.lua", "", "a/..", "./a.lua"};
    for (size_t i = 0; i < array_size(wrong); i++) {
        files[0].path = wrong[i];
        assert_int_equal(sl_package_encode(&package, &bytes), SL_EINVAL);
    }
    files[0].path = "zzz.lua";
    assert_int_equal(sl_package_encode(&package, &bytes), SL_EINVAL);
    files[0].path = "lib/a.lua";
    package.script = "other.lua";
    assert_int_equal(sl_package_encode(&package, &bytes), SL_EINVAL);
    sl_buf_destroy(&bytes);
    sl_arena_destroy(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stored_plan_comes_back),
        cmocka_unit_test(test_a_plan_cut_anywhere_is_refused_or_another_plan),
        cmocka_unit_test(test_a_key_group_of_a_foreign_task_is_refused),
        cmocka_unit_test(test_a_physical_plan_is_made_of_a_packing_plan_and_comes_back),
        cmocka_unit_test(test_a_physical_plan_out_of_order_is_refused),
        cmocka_unit_test(test_letters_of_workers_come_back),
        cmocka_unit_test(test_orders_to_move_state_come_back),
        cmocka_unit_test(test_small_worker_messages_come_back),
        cmocka_unit_test(test_a_package_comes_back_and_keeps_to_its_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
