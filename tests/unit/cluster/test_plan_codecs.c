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
test_state_pieces_carry_a_hash_that_is_compared(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    const uint8_t entries[] = {1, 2, 3};
    struct sl_worker_state_piece piece = {
        "count", "counts", entries, 3, 1, sl_hash_bytes(entries, 3), 77, 5};
    struct sl_worker_state message = {&piece, 1, "12", 8};
    struct sl_worker_state seen;
    sl_arena_create(&arena, 0, 0);
    sl_worker_exported_encode(&message, &bytes);
    assert_int_equal(sl_worker_exported_decode(bytes.data, bytes.size, &arena, &seen), 0);
    assert_string_equal(seen.cursor, "12");
    assert_int_equal(seen.count, 1);
    assert_memory_equal(seen.pieces[0].entries, entries, 3);
    assert_int_equal(seen.pieces[0].group, 77);
    assert_int_equal(seen.pieces[0].task, 5);
    sl_buf_clear(&bytes);
    sl_worker_stage_encode(&message, &bytes);
    assert_int_equal(sl_worker_stage_decode(bytes.data, bytes.size, &arena, &seen), 0);
    assert_int_equal(seen.plan_version, 8);
    piece.hash++;
    sl_buf_clear(&bytes);
    sl_worker_stage_encode(&message, &bytes);
    assert_int_equal(sl_worker_stage_decode(bytes.data, bytes.size, &arena, &seen), SL_EPROTO);
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
    bool is_active = false;
    sl_worker_spouts_encode(true, &bytes);
    assert_int_equal(sl_worker_spouts_decode(bytes.data, bytes.size, &is_active), 0);
    assert_true(is_active);
    struct sl_worker_drained drained;
    sl_buf_clear(&bytes);
    sl_worker_drained_encode(&(struct sl_worker_drained){1, 2, 3, 4}, &bytes);
    assert_int_equal(sl_worker_drained_decode(bytes.data, bytes.size, &drained), 0);
    assert_int_equal(drained.roots + 10 * drained.waiting, 21);
    assert_int_equal(drained.sent + 10 * drained.received, 43);
    const uint32_t some[] = {3, 9};
    struct sl_worker_export wanted;
    sl_buf_clear(&bytes);
    sl_worker_export_encode(&(struct sl_worker_export){"count", some, 2, "", 0}, &bytes);
    assert_int_equal(sl_worker_export_decode(bytes.data, bytes.size, &arena, &wanted), 0);
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
        cmocka_unit_test(test_state_pieces_carry_a_hash_that_is_compared),
        cmocka_unit_test(test_small_worker_messages_come_back),
        cmocka_unit_test(test_a_package_comes_back_and_keeps_to_its_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
