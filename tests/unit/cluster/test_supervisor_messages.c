/* labels: short */
/* What a supervisor says of itself and is asked, and what comes when it is damaged. */
#include <string.h>

#include "base/err.h"
#include "cluster/supervisor_messages.h"
#include "unit.h"

static const uint32_t ports[] = {6800, 6801};

static const struct sl_supervisor_node node = {
    .id = "s1",
    .host = "h1",
    .address = "h1:4000",
    .ports = ports,
    .port_count = 2,
    .cpu_cores = 4.5,
    .ram_bytes = 8LL << 30,
    .pid = 77,
    .start_time = 1234,
    .boot_id = "5b4e-1",
    .is_drained = true,
};

static void
test_a_node_comes_back(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    struct sl_supervisor_node seen;
    sl_arena_create(&arena, 0, 0);
    sl_supervisor_node_encode(&node, &bytes);
    assert_int_equal(sl_supervisor_node_decode(bytes.data, bytes.size, &arena, &seen), 0);
    assert_string_equal(seen.id, "s1");
    assert_string_equal(seen.host, "h1");
    assert_string_equal(seen.address, "h1:4000");
    assert_int_equal(seen.port_count, 2);
    assert_memory_equal(seen.ports, ports, sizeof(ports));
    assert_true(seen.cpu_cores == 4.5);
    assert_int_equal(seen.ram_bytes, 8LL << 30);
    assert_int_equal(seen.pid, 77);
    assert_int_equal(seen.start_time, 1234);
    assert_string_equal(seen.boot_id, "5b4e-1");
    assert_true(seen.is_drained);
    sl_buf_destroy(&bytes);
    sl_arena_destroy(&arena);
}

static void
test_bad_nodes_are_refused(void **state)
{
    (void)state;
    static const uint32_t big[] = {6800, 65536};
    struct sl_supervisor_node bad[] = {node, node, node, node};
    bad[0].id = "s 1";
    bad[1].ports = big;
    bad[2].cpu_cores = -1;
    bad[3].ram_bytes = -1;
    for (size_t i = 0; i < array_size(bad); i++) {
        struct sl_arena arena;
        struct sl_buf bytes = {0};
        struct sl_supervisor_node seen;
        sl_arena_create(&arena, 0, 0);
        sl_supervisor_node_encode(&bad[i], &bytes);
        assert_int_equal(sl_supervisor_node_decode(bytes.data, bytes.size, &arena, &seen),
                         SL_EPROTO);
        sl_buf_destroy(&bytes);
        sl_arena_destroy(&arena);
    }
}

static void
test_commands_and_answers_come_back(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_buf bytes = {0};
    struct sl_start_master master = {"words", 6800, true};
    struct sl_worker_command command = {"words", 5, 6, 7, "/srv"};
    struct sl_slot_worker worker = {"s1", "words", 5, 7, 99, 3, "exit code 1"};
    sl_arena_create(&arena, 0, 0);

    sl_start_master_encode(&master, &bytes);
    memset(&master, 0, sizeof(master));
    master.is_new = false;
    assert_int_equal(sl_start_master_decode(bytes.data, bytes.size, &arena, &master), 0);
    assert_true(master.is_new);
    assert_string_equal(master.topology, "words");
    assert_int_equal(master.port, 6800);

    sl_buf_clear(&bytes);
    struct sl_read_log question = {"words", 3, 1LL << 40, true, 500};
    sl_read_log_encode(&question, &bytes);
    memset(&question, 0, sizeof(question));
    assert_int_equal(sl_read_log_decode(bytes.data, bytes.size, &arena, &question), 0);
    assert_string_equal(question.topology, "words");
    assert_int_equal(question.container, 3);
    assert_true(question.position == 1LL << 40);
    assert_true(question.is_end);
    assert_int_equal(question.wait_ms, 500);

    sl_buf_clear(&bytes);
    struct sl_log_piece piece = {7, (const uint8_t *)"a\0b\n", 4};
    sl_log_piece_encode(&piece, &bytes);
    memset(&piece, 0, sizeof(piece));
    assert_int_equal(sl_log_piece_decode(bytes.data, bytes.size, &arena, &piece), 0);
    assert_int_equal(piece.position, 7);
    assert_int_equal(piece.size, 4);
    assert_memory_equal(piece.data, "a\0b\n", 4);

    sl_buf_clear(&bytes);
    sl_worker_command_encode(&command, &bytes);
    memset(&command, 0, sizeof(command));
    assert_int_equal(sl_worker_command_decode(bytes.data, bytes.size, &arena, &command), 0);
    assert_string_equal(command.topology, "words");
    assert_int_equal(command.allocation, 5);
    assert_int_equal(command.token, 6);
    assert_int_equal(command.container, 7);
    assert_string_equal(command.cwd, "/srv");

    sl_buf_clear(&bytes);
    sl_slot_worker_encode(&worker, &bytes);
    memset(&worker, 0, sizeof(worker));
    assert_int_equal(sl_slot_worker_decode(bytes.data, bytes.size, &arena, &worker), 0);
    assert_string_equal(worker.resource, "s1");
    assert_string_equal(worker.topology, "words");
    assert_int_equal(worker.allocation, 5);
    assert_int_equal(worker.container, 7);
    assert_int_equal(worker.pid, 99);
    assert_int_equal(worker.restarts, 3);
    assert_string_equal(worker.text, "exit code 1");
    sl_buf_destroy(&bytes);
    sl_arena_destroy(&arena);
}

static void
test_empty_commands_are_refused(void **state)
{
    (void)state;
    struct sl_arena arena;
    struct sl_start_master master;
    struct sl_worker_command command;
    struct sl_slot_worker worker;
    sl_arena_create(&arena, 0, 0);
    assert_int_equal(sl_start_master_decode(NULL, 0, &arena, &master), SL_EPROTO);
    static const struct sl_read_log bad[] = {
        {"../words", 1, 0, false, 0},
        {"words", 0, 0, false, 0},
        {"words", 1, UINT64_MAX, false, 0},
        {"words", 1, 0, false, SL_LOG_WAIT_MAX_MS + 1},
    };
    for (size_t i = 0; i < array_size(bad); i++) {
        struct sl_read_log question;
        struct sl_buf out = {0};
        sl_read_log_encode(&bad[i], &out);
        assert_int_equal(sl_read_log_decode(out.data, out.size, &arena, &question), SL_EPROTO);
        sl_buf_destroy(&out);
    }
    assert_int_equal(sl_worker_command_decode(NULL, 0, &arena, &command), SL_EPROTO);
    assert_int_equal(sl_slot_worker_decode(NULL, 0, &arena, &worker), SL_EPROTO);
    sl_arena_destroy(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_comes_back),
        cmocka_unit_test(test_bad_nodes_are_refused),
        cmocka_unit_test(test_commands_and_answers_come_back),
        cmocka_unit_test(test_empty_commands_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
