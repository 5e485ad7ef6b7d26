/* labels: short */
/* What a supervisor remembers: what comes back from files that are whole, cut, damaged, of another
 * boot, or not there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/random.h"
#include "cluster/supervisor_file.h"
#include "unit.h"

#define BOOT "5b4e-1"

static const struct sl_supervisor_record worker = {
    .pid = 4711,
    .start_time = 123456,
    .topology = "words",
    .port = 6800,
    .allocation = 0xfedcba9876543210,
    .container = 3,
    .restarts = 2,
    .cwd = "/home/a b/50% of\nit",
};
static const struct sl_supervisor_record master = {
    .is_master = true, .pid = 4712, .start_time = 7, .topology = "words", .port = 6801, .cwd = ""};

static size_t
decode(const struct sl_buf *content, struct sl_arena *arena, struct sl_supervisor_record **records,
       size_t *damaged)
{
    sl_arena_create(arena, 0, 0);
    return sl_supervisor_records_decode(content->data, content->size, BOOT, arena, records,
                                        damaged);
}

static void
check_worker(const struct sl_supervisor_record *seen)
{
    assert_false(seen->is_master);
    assert_int_equal(seen->pid, 4711);
    assert_int_equal(seen->start_time, 123456);
    assert_string_equal(seen->topology, "words");
    assert_int_equal(seen->port, 6800);
    assert_true(seen->allocation == worker.allocation);
    assert_int_equal(seen->container, 3);
    assert_int_equal(seen->restarts, 2);
    assert_string_equal(seen->cwd, worker.cwd);
}

static void
test_what_is_written_comes_back(void **state)
{
    (void)state;
    struct sl_buf content = {0};
    struct sl_arena arena;
    struct sl_supervisor_record *records;
    size_t damaged;
    sl_supervisor_record_encode(&worker, BOOT, &content);
    sl_supervisor_record_encode(&master, BOOT, &content);
    assert_int_equal(decode(&content, &arena, &records, &damaged), 2);
    assert_int_equal(damaged, 0);
    check_worker(&records[0]);
    assert_true(records[1].is_master);
    assert_int_equal(records[1].pid, 4712);
    assert_int_equal(records[1].port, 6801);
    assert_string_equal(records[1].cwd, "");
    sl_arena_destroy(&arena);
    sl_buf_destroy(&content);
}

static void
test_another_boot_has_other_processes(void **state)
{
    (void)state;
    struct sl_buf content = {0};
    struct sl_arena arena;
    struct sl_supervisor_record *records;
    size_t damaged;
    sl_supervisor_record_encode(&worker, "5b4e-2", &content);
    assert_int_equal(decode(&content, &arena, &records, &damaged), 0);
    assert_int_equal(damaged, 0);
    sl_arena_destroy(&arena);
    sl_buf_destroy(&content);
}

static void
test_of_two_lines_for_one_slot_the_later_counts(void **state)
{
    (void)state;
    struct sl_buf content = {0};
    struct sl_arena arena;
    struct sl_supervisor_record *records;
    struct sl_supervisor_record later = worker;
    size_t damaged;
    later.pid = 5000;
    sl_supervisor_record_encode(&worker, BOOT, &content);
    sl_supervisor_record_encode(&later, BOOT, &content);
    assert_int_equal(decode(&content, &arena, &records, &damaged), 1);
    assert_int_equal(records[0].pid, 5000);
    sl_arena_destroy(&arena);
    sl_buf_destroy(&content);
}

/* A cut inside the second line leaves the first. */
static void
test_a_cut_file_gives_its_whole_lines(void **state)
{
    (void)state;
    struct sl_buf content = {0};
    sl_supervisor_record_encode(&worker, BOOT, &content);
    size_t first = content.size;
    sl_supervisor_record_encode(&master, BOOT, &content);
    for (size_t size = 0; size <= content.size; size++) {
        struct sl_buf cut = {.data = content.data, .size = size};
        struct sl_arena arena;
        struct sl_supervisor_record *records;
        size_t damaged;
        size_t count = decode(&cut, &arena, &records, &damaged);
        size_t whole = size == content.size ? 2 : size >= first ? 1 : 0;
        assert_int_equal(count, whole);
        assert_int_equal(damaged, size != 0 && size != first && size != content.size);
        if (count > 0) {
            check_worker(&records[0]);
        }
        sl_arena_destroy(&arena);
    }
    sl_buf_destroy(&content);
}

/* No damaged line is taken for another one. */
static void
test_junk_is_dropped(void **state)
{
    (void)state;
    struct sl_random random;
    struct sl_buf content = {0};
    sl_supervisor_record_encode(&worker, BOOT, &content);
    size_t first = content.size;
    sl_supervisor_record_encode(&master, BOOT, &content);
    sl_random_seed(&random, 11);
    for (int i = 0; i < 4000; i++) {
        struct sl_buf junk = {0};
        struct sl_arena arena;
        struct sl_supervisor_record *records;
        size_t damaged;
        sl_buf_append(&junk, content.data, content.size);
        size_t at = first + sl_random_below(&random, content.size - first - 1);
        junk.data[at] = (uint8_t)(junk.data[at] + 1 + sl_random_below(&random, 255));
        assert_int_equal(decode(&junk, &arena, &records, &damaged), 1);
        assert_true(damaged >= 1);
        check_worker(&records[0]);
        sl_arena_destroy(&arena);
        sl_buf_destroy(&junk);
    }
    sl_buf_destroy(&content);
}

static void
test_a_file_is_replaced_as_a_whole(void **state)
{
    (void)state;
    char folder[256];
    char path[300];
    char other[320];
    struct stat status;
    struct sl_buf content = {0};
    struct sl_buf seen = {0};
    unit_folder_new(folder, sizeof(folder));
    snprintf(path, sizeof(path), "%s/processes", folder);
    snprintf(other, sizeof(other), "%s.new", path);
    assert_false(sl_supervisor_file_read(path, &seen));
    sl_buf_append_str(&content, "one\n");
    assert_int_equal(sl_supervisor_file_write(path, &content), 0);
    sl_buf_append_str(&content, "two\n");
    assert_int_equal(sl_supervisor_file_write(path, &content), 0);
    assert_true(sl_supervisor_file_read(path, &seen));
    assert_int_equal(seen.size, 8);
    assert_memory_equal(seen.data, "one\ntwo\n", 8);
    assert_int_not_equal(stat(other, &status), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    /* The folder is gone: an error in words, and nothing else. */
    assert_int_equal(sl_supervisor_file_write(path, &content), SL_ESYS);
    sl_buf_destroy(&content);
    sl_buf_destroy(&seen);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_comes_back),
        cmocka_unit_test(test_another_boot_has_other_processes),
        cmocka_unit_test(test_of_two_lines_for_one_slot_the_later_counts),
        cmocka_unit_test(test_a_cut_file_gives_its_whole_lines),
        cmocka_unit_test(test_junk_is_dropped),
        cmocka_unit_test(test_a_file_is_replaced_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
