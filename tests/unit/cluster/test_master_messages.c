/* labels: short */
/* What is said to the master and by it comes back as it was. */
#include "base/err.h"
#include "cluster/master_messages.h"
#include "unit.h"

static int
setup(void **state)
{
    struct sl_arena *arena = calloc(1, sizeof(*arena));
    sl_arena_create(arena, 0, 0);
    *state = arena;
    return 0;
}

static int
teardown(void **state)
{
    sl_arena_destroy(*state);
    free(*state);
    return 0;
}

static void
test_a_template_comes_back(void **state)
{
    uint32_t inputs[] = {1, 0};
    struct sl_sched_component components[] = {
        {"count", SL_SCHED_BOLT, 0, 1, 0, 0},
        {"lines", SL_SCHED_SPOUT, 1, 0, 0, 0},
        {"__topology_master", SL_SCHED_MASTER, 1, 0, 0, 0},
    };
    const char *hosts[] = {"h1", "h2"};
    struct sl_sched_share shares[] = {{0, 2}, {1, 1}, {0, 1}};
    struct sl_sched_user_worker users[] = {{"h1", 6700, 0, 2, 2.5, 1024}, {NULL, -1, 2, 1, -1, -1}};
    uint32_t apart[] = {1};
    struct sl_schedule_template from = {.scheduler = SL_SCHED_EVEN,
                                        .request = {.workers = 3,
                                                    .master_alone = SL_SCHED_AUTO,
                                                    .reserve_workers = 1,
                                                    .use_old_assignment = 1,
                                                    .worker_cpu = 1.5,
                                                    .worker_ram = -1,
                                                    .components = components,
                                                    .component_count = 3,
                                                    .inputs = inputs,
                                                    .input_count = 1,
                                                    .isolation = hosts,
                                                    .isolation_count = 2,
                                                    .user_workers = users,
                                                    .user_worker_count = 2,
                                                    .shares = shares,
                                                    .share_count = 3,
                                                    .on_different_nodes = apart,
                                                    .on_different_nodes_count = 1}};
    struct sl_schedule_template seen;
    struct sl_buf out = {0};
    sl_schedule_template_encode(&from, &out);
    assert_int_equal(sl_schedule_template_decode(out.data, out.size, *state, &seen), 0);
    const struct sl_sched_request *request = &seen.request;
    assert_int_equal(seen.scheduler, SL_SCHED_EVEN);
    assert_int_equal(request->workers, 3);
    assert_int_equal(request->master_alone, SL_SCHED_AUTO);
    assert_int_equal(request->reserve_workers, 1);
    assert_int_equal(request->use_old_assignment, 1);
    assert_true(request->worker_cpu == 1.5 && request->worker_ram == -1);
    assert_int_equal(request->component_count, 3);
    assert_string_equal(request->components[1].name, "lines");
    assert_int_equal(request->components[2].kind, SL_SCHED_MASTER);
    assert_int_equal(request->inputs[request->components[0].first_input], 1);
    assert_int_equal(request->task_count, 0);
    assert_string_equal(request->isolation[1], "h2");
    assert_int_equal(request->user_worker_count, 2);
    assert_string_equal(request->user_workers[0].host, "h1");
    assert_int_equal(request->user_workers[0].port, 6700);
    assert_true(request->user_workers[0].cpu == 2.5);
    assert_null(request->user_workers[1].host);
    assert_int_equal(request->user_workers[1].port, -1);
    assert_true(request->user_workers[1].ram == -1);
    assert_int_equal(request->shares[request->user_workers[1].first_share].count, 1);
    assert_int_equal(request->on_different_nodes[0], 1);
    sl_buf_destroy(&out);
}

static void
test_a_template_that_points_nowhere_is_refused(void **state)
{
    uint32_t inputs[] = {7};
    struct sl_sched_component components[] = {{"count", SL_SCHED_BOLT, 0, 1, 0, 0}};
    struct sl_schedule_template from = {
        .request = {.components = components, .component_count = 1, .inputs = inputs}};
    struct sl_schedule_template seen;
    struct sl_buf out = {0};
    sl_schedule_template_encode(&from, &out);
    assert_int_equal(sl_schedule_template_decode(out.data, out.size, *state, &seen), SL_EPROTO);
    sl_buf_destroy(&out);
}

static void
test_pieces_lie_within_their_request(void **state)
{
    static const uint8_t bytes[] = "abc";
    struct sl_master_piece good = {7, 10, 7, bytes, 3};
    struct sl_master_piece bad[] = {{7, 10, 8, bytes, 3},
                                    {7, 10, 11, bytes, 3},
                                    {7, 10, 0, bytes, 0},
                                    {7, UINT64_MAX, UINT64_MAX - 1, bytes, 3}};
    struct sl_master_piece seen;
    struct sl_buf out = {0};
    sl_master_piece_encode(&good, &out);
    assert_int_equal(sl_master_piece_decode(out.data, out.size, *state, &seen), 0);
    assert_int_equal(seen.offset, 7);
    assert_memory_equal(seen.data, bytes, 3);
    for (size_t i = 0; i < array_size(bad); i++) {
        sl_buf_clear(&out);
        sl_master_piece_encode(&bad[i], &out);
        assert_true(sl_master_piece_decode(out.data, out.size, *state, &seen) < 0);
    }
    sl_buf_destroy(&out);
}

static void
test_the_status_of_a_cluster_comes_back(void **state)
{
    struct sl_master_slot slots[] = {{6700, "words"}, {6701, ""}};
    struct sl_master_supervisor supervisors[] = {{"s1", "h1", slots, 2, true}};
    struct sl_master_topology topologies[] = {{"words", "ACTIVE", 4, "s1", 6700}};
    struct sl_master_status from = {"m1", supervisors, 1, topologies, 1};
    struct sl_master_status seen;
    struct sl_buf out = {0};
    sl_master_status_encode(&from, &out);
    assert_int_equal(sl_master_status_decode(out.data, out.size, *state, &seen), 0);
    assert_string_equal(seen.master, "m1");
    assert_string_equal(seen.supervisors[0].slots[0].topology, "words");
    assert_true(seen.supervisors[0].is_registered);
    assert_string_equal(seen.topologies[0].status, "ACTIVE");
    assert_int_equal(seen.topologies[0].plan_version, 4);
    sl_buf_destroy(&out);
}

static void
test_requests_name_a_topology(void **state)
{
    struct sl_master_kill kill = {"words", 500, true};
    struct sl_master_kill seen;
    struct sl_buf out = {0};
    sl_master_kill_encode(&kill, &out);
    assert_int_equal(sl_master_kill_decode(out.data, out.size, *state, &seen), 0);
    assert_int_equal(seen.wait_ms, 500);
    assert_true(seen.is_purged);
    kill.topology = "../words";
    sl_buf_clear(&out);
    sl_master_kill_encode(&kill, &out);
    assert_int_equal(sl_master_kill_decode(out.data, out.size, *state, &seen), SL_EPROTO);
    sl_buf_destroy(&out);
}

static void
test_an_update_has_one_of_three_modes(void **state)
{
    struct sl_master_update update = {.topology = "words", .mode = SL_SCHED_MINIMAL};
    struct sl_master_update seen;
    struct sl_buf out = {0};
    sl_master_update_encode(&update, &out);
    assert_int_equal(sl_master_update_decode(out.data, out.size, *state, &seen), 0);
    assert_int_equal(seen.mode, SL_SCHED_MINIMAL);
    update.mode = SL_SCHED_NEW;
    sl_buf_clear(&out);
    sl_master_update_encode(&update, &out);
    assert_int_equal(sl_master_update_decode(out.data, out.size, *state, &seen), SL_EPROTO);
    sl_buf_destroy(&out);
}

static void
test_what_is_kept_comes_back(void **state)
{
    static const uint8_t bytes[] = "plan";
    struct sl_master_start starts[] = {{3, 111}, {4, 222}};
    struct sl_scheduling from = {"words-1", bytes, 4, 123456789, true, starts, 2, 30000};
    struct sl_scheduling seen;
    const uint8_t *plan;
    size_t size;
    struct sl_buf out = {0};
    sl_scheduling_encode(&from, &out);
    assert_int_equal(sl_scheduling_decode(out.data, out.size, *state, &seen), 0);
    assert_string_equal(seen.topology_id, "words-1");
    assert_int_equal(seen.kill_due_ms, 123456789);
    assert_int_equal(seen.schedule_size, 4);
    assert_int_equal(seen.start_count, 2);
    assert_int_equal(seen.starts[1].task, 4);
    assert_int_equal(seen.starts[1].started_ms, 222);
    assert_int_equal(seen.timeout_ms, 30000);
    sl_buf_clear(&out);
    sl_assignment_backup_encode(bytes, 4, &out);
    assert_int_equal(sl_assignment_backup_decode(out.data, out.size, *state, &plan, &size), 0);
    assert_int_equal(size, 4);
    assert_memory_equal(plan, bytes, 4);
    sl_buf_destroy(&out);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

static const struct CMUnitTest tests[] = {
    CASE(test_a_template_comes_back),
    CASE(test_a_template_that_points_nowhere_is_refused),
    CASE(test_pieces_lie_within_their_request),
    CASE(test_the_status_of_a_cluster_comes_back),
    CASE(test_requests_name_a_topology),
    CASE(test_an_update_has_one_of_three_modes),
    CASE(test_what_is_kept_comes_back),
};

UNIT_MAIN(tests)
