// labels: short
#include <sys/stat.h>

#include "batch/checkpoint.h"
#include "batch/files.h"
#include "batch/streaming_codec.h"
#include "rig.h"

static void
make_file(const char *dir, const char *name, const char *text)
{
    char *path = sl_asprintf("%s/%s", dir, name);
    assert_int_equal(sl_files_write(path, text, strlen(text)), 0);
    sl_free(path);
}

static void
make_dir(const char *dir, const char *name)
{
    char *path = sl_asprintf("%s/%s", dir, name);
    assert_int_equal(mkdir(path, 0755), 0);
    sl_free(path);
}

static void
expect_list(const char *dir, const char *expected)
{
    struct sl_checkpoint_names names;
    struct sl_buf text = {0};
    assert_int_equal(sl_checkpoint_list(dir, &names), 0);
    for (size_t i = 0; i < names.count; i++) {
        sl_buf_printf(&text, "%s ", names.items[i]);
    }
    assert_string_equal(sl_buf_str(&text), expected);
    sl_buf_destroy(&text);
    sl_checkpoint_names_free(&names);
}

static void
test_T112_only_files_with_the_right_name_count(void **state)
{
    (void)state;
    char *top = rig_dir_new();
    make_dir(top, "checkpoint-01");
    char *dir = sl_asprintf("%s/checkpoint-01", top);
    make_file(dir, "this-is-matched-before-due-to-parent-pattern", "x");
    expect_list(dir, "");
    make_dir(dir, "checkpoint-1000000000");
    expect_list(dir, "");
    expect_list(top, "");
    sl_free(dir);
    rig_dir_remove(top);
}

static void
test_names_come_newest_first_and_plain_before_backup(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    static const char *const names[] = {"checkpoint-20.bk", "checkpoint-3", "checkpoint-100",
                                        "checkpoint-20",    "checkpoint-",  "checkpoint-x",
                                        "checkpoint-5-6",   "temp",         "acheckpoint-5",
                                        "checkpoint-100.bk"};
    for (size_t i = 0; i < array_size(names); i++) {
        make_file(dir, names[i], "x");
    }
    expect_list(dir, "checkpoint-100 checkpoint-100.bk checkpoint-20 checkpoint-20.bk "
                     "checkpoint-3 ");
    rig_dir_remove(dir);
}

static void
encode(int64_t time, struct sl_buf *out)
{
    int64_t pending[] = {time - 1000, time};
    struct sl_streaming_saved saved[] = {{500, "state/a-500"}, {1000, "state/a-1000\xe9"}};
    struct sl_checkpoint_stream streams[] = {
        {"in", SL_STREAMING_INPUT, NULL, 0},
        {"counts", SL_STREAMING_STATEFUL, saved, 2},
    };
    struct sl_checkpoint checkpoint = {
        .name = "wc",
        .script = "wc.lua",
        .script_hash = "abc",
        .time = time,
        .zero_time = 0,
        .batch_ms = 1000,
        .pending = pending,
        .pending_count = 2,
        .streams = streams,
        .stream_count = 2,
        .extra = (const uint8_t *)"more",
        .extra_len = 4,
    };
    assert_int_equal(sl_checkpoint_encode(&checkpoint, out), 0);
}

static void
store(const char *dir, int64_t time, int32_t keep)
{
    struct sl_buf bytes = {0};
    encode(time, &bytes);
    assert_int_equal(sl_checkpoint_store(dir, time, bytes.data, bytes.size, keep), 0);
    sl_buf_destroy(&bytes);
}

static void
test_what_is_stored_is_read(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct sl_checkpoint read;
    assert_int_equal(sl_checkpoint_read("/nowhere/at/all", &read), SL_ENOTFOUND);
    assert_int_equal(sl_checkpoint_read(dir, &read), SL_ENOTFOUND);
    store(dir, 5000, 10);
    assert_int_equal(sl_checkpoint_read(dir, &read), 0);
    assert_string_equal(read.name, "wc");
    assert_string_equal(read.script, "wc.lua");
    assert_string_equal(read.script_hash, "abc");
    assert_int_equal(read.time, 5000);
    assert_int_equal(read.batch_ms, 1000);
    assert_int_equal(read.pending_count, 2);
    assert_int_equal(read.pending[0], 4000);
    assert_int_equal(read.stream_count, 2);
    assert_int_equal(read.streams[1].flags, SL_STREAMING_STATEFUL);
    assert_int_equal(read.streams[1].saved_count, 2);
    assert_int_equal(read.streams[1].saved[1].time, 1000);
    assert_string_equal(read.streams[1].saved[1].text, "state/a-1000\xe9");
    assert_memory_equal(read.extra, "more", 4);
    sl_checkpoint_destroy(&read);
    rig_dir_remove(dir);
}

static void
test_a_checkpoint_without_a_batch_interval_is_refused(void **state)
{
    (void)state;
    struct sl_checkpoint none = {.name = "wc", .time = 1000};
    struct sl_checkpoint read;
    struct sl_buf bytes = {0};
    assert_int_equal(sl_checkpoint_encode(&none, &bytes), 0);
    sl_checkpoint_create(&read);
    assert_int_equal(sl_checkpoint_decode(bytes.data, bytes.size, &read), SL_EPROTO);
    assert_non_null(strstr(sl_err_last()->msg, "batch interval"));
    sl_checkpoint_destroy(&read);
    sl_buf_destroy(&bytes);
}

static void
test_an_older_good_file_stands_in_for_a_damaged_one(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    store(dir, 1000, 10);
    store(dir, 2000, 10);
    char *path = sl_asprintf("%s/checkpoint-2000", dir);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    struct sl_checkpoint read;
    /* Cut off at every length. */
    for (off_t size = info.st_size - 1; size >= 0; size--) {
        assert_int_equal(truncate(path, size), 0);
        assert_int_equal(sl_checkpoint_read(dir, &read), 0);
        assert_int_equal(read.time, 1000);
        sl_checkpoint_destroy(&read);
    }
    /* Any byte damaged. */
    for (off_t at = 0; at < info.st_size; at += 3) {
        store(dir, 2000, 10);
        FILE *file = fopen(path, "r+");
        assert_non_null(file);
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        int byte = fgetc(file);
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        fputc(byte ^ 0x20, file);
        fclose(file);
        char *backup = sl_asprintf("%s.bk", path);
        unlink(backup);
        sl_free(backup);
        assert_int_equal(sl_checkpoint_read(dir, &read), 0);
        assert_int_equal(read.time, 1000);
        sl_checkpoint_destroy(&read);
    }
    sl_free(path);
    char *first = sl_asprintf("%s/checkpoint-1000", dir);
    assert_int_equal(truncate(first, 3), 0);
    sl_free(first);
    assert_int_equal(sl_checkpoint_read(dir, &read), SL_EPROTO);
    rig_dir_remove(dir);
}

static void
test_a_second_write_keeps_a_backup_and_old_files_go(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    for (int64_t time = 1; time <= 8; time++) {
        store(dir, time, 10);
        store(dir, time, 10);
    }
    expect_list(dir, "checkpoint-8 checkpoint-8.bk checkpoint-7 checkpoint-7.bk checkpoint-6 "
                     "checkpoint-6.bk checkpoint-5 checkpoint-5.bk checkpoint-4 checkpoint-4.bk ");
    rig_dir_remove(dir);
}

static void
count_wake(void *ctx)
{
    __atomic_add_fetch((int *)ctx, 1, __ATOMIC_SEQ_CST);
}

static void
test_a_late_older_batch_goes_under_the_newest_name(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct sl_checkpoint_writer writer;
    int wakes = 0;
    sl_checkpoint_writer_create(&writer, dir, 10, count_wake, &wakes);
    struct sl_buf bytes = {0};
    encode(3000, &bytes);
    assert_int_equal(sl_checkpoint_writer_write(&writer, &bytes, 3000, SL_STREAMING_UNKNOWN), 0);
    assert_null(bytes.data);
    encode(2000, &bytes);
    assert_int_equal(sl_checkpoint_writer_write(&writer, &bytes, 2000, 2000), 0);
    sl_checkpoint_writer_destroy(&writer);
    assert_int_equal(wakes, 2);
    expect_list(dir, "checkpoint-3000 checkpoint-3000.bk ");
    struct sl_checkpoint read;
    assert_int_equal(sl_checkpoint_read(dir, &read), 0);
    assert_int_equal(read.time, 2000);
    sl_checkpoint_destroy(&read);
    rig_dir_remove(dir);
}

/* SPARK-16395: with a slow store memory stays flat and the newest content is what stays. */
static void
test_a_full_queue_replaces_the_newest_waiting_one(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct sl_checkpoint_writer writer;
    int wakes = 0;
    sl_checkpoint_writer_create(&writer, dir, 10, count_wake, &wakes);
    for (int64_t time = 1; time <= 500; time++) {
        struct sl_buf bytes = {0};
        encode(time, &bytes);
        assert_int_equal(sl_checkpoint_writer_write(&writer, &bytes, time, time), 0);
        pthread_mutex_lock(&writer.lock);
        assert_true(writer.queue.count <= SL_CHECKPOINT_QUEUE_MAX);
        pthread_mutex_unlock(&writer.lock);
    }
    sl_checkpoint_writer_destroy(&writer);
    assert_int_equal(writer.done.clear_time, 500);
    assert_int_equal(writer.done.rc, 0);
    struct sl_checkpoint read;
    assert_int_equal(sl_checkpoint_read(dir, &read), 0);
    assert_int_equal(read.time, 500);
    sl_checkpoint_destroy(&read);
    rig_dir_remove(dir);
}

static void
test_a_write_that_fails_clears_nothing(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    char *inner = sl_asprintf("%s/file", dir);
    make_file(dir, "file", "in the way");
    struct sl_checkpoint_writer writer;
    int wakes = 0;
    sl_checkpoint_writer_create(&writer, inner, 10, count_wake, &wakes);
    struct sl_buf bytes = {0};
    encode(1000, &bytes);
    assert_int_equal(sl_checkpoint_writer_write(&writer, &bytes, 1000, 1000), 0);
    sl_checkpoint_writer_destroy(&writer);
    assert_int_equal(writer.done.rc, SL_ESYS);
    assert_int_equal(writer.done.clear_time, SL_STREAMING_UNKNOWN);
    assert_int_equal(writer.owed_clear, 1000);
    sl_free(inner);
    rig_dir_remove(dir);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_T112_only_files_with_the_right_name_count),
        cmocka_unit_test(test_names_come_newest_first_and_plain_before_backup),
        cmocka_unit_test(test_what_is_stored_is_read),
        cmocka_unit_test(test_a_checkpoint_without_a_batch_interval_is_refused),
        cmocka_unit_test(test_an_older_good_file_stands_in_for_a_damaged_one),
        cmocka_unit_test(test_a_second_write_keeps_a_backup_and_old_files_go),
        cmocka_unit_test(test_a_late_older_batch_goes_under_the_newest_name),
        cmocka_unit_test(test_a_full_queue_replaces_the_newest_waiting_one),
        cmocka_unit_test(test_a_write_that_fails_clears_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
