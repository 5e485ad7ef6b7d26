// labels: short
#include <fcntl.h>
#include <sys/stat.h>

#include "base/random.h"
#include "batch/wal.h"
#include "rig.h"

struct texts {
    char *items[512];
    size_t count;
};

static int
collect(void *ctx, const uint8_t *bytes, size_t len)
{
    struct texts *texts = ctx;
    assert_true(texts->count < array_size(texts->items));
    texts->items[texts->count++] = sl_strndup((const char *)bytes, len);
    return 0;
}

static void
texts_free(struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        sl_free(texts->items[i]);
    }
    texts->count = 0;
}

static void
write_text(struct sl_wal *wal, const char *text, int64_t time, struct sl_wal_segment *segment)
{
    assert_int_equal(sl_wal_write(wal, text, strlen(text), time, segment), 0);
}

static size_t
count_files(const char *dir)
{
    size_t count = 0;
    DIR *open_dir = opendir(dir);
    struct dirent *entry = NULL;
    while (open_dir != NULL && (entry = readdir(open_dir)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    if (open_dir != NULL) {
        closedir(open_dir);
    }
    return count;
}

static void
read_texts(const char *dir, struct texts *texts)
{
    struct sl_wal wal;
    assert_int_equal(sl_wal_create(&wal, dir, 1000), 0);
    assert_int_equal(sl_wal_read_all(&wal, collect, texts), 0);
    sl_wal_destroy(&wal);
}

static void
test_nothing_is_made_before_the_first_write(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    char *inner = sl_asprintf("%s/a/b", dir);
    struct sl_wal wal;
    struct texts texts = {0};
    assert_int_equal(sl_wal_create(&wal, inner, 1000), 0);
    assert_int_equal(sl_wal_read_all(&wal, collect, &texts), 0);
    assert_int_equal(sl_wal_clean(&wal, 100000), 0);
    assert_int_equal(texts.count, 0);
    assert_int_equal(count_files(dir), 0);
    sl_wal_destroy(&wal);
    assert_int_equal(sl_wal_create(&wal, inner, 0), SL_EINVAL);
    sl_free(inner);
    rig_dir_remove(dir);
}

static void
test_records_roll_over_files_and_come_back(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct sl_wal wal;
    struct sl_wal_segment segments[3];
    assert_int_equal(sl_wal_create(&wal, dir, 1000), 0);
    char *paths[3];
    for (int i = 0; i < 30; i++) {
        char text[32];
        snprintf(text, sizeof(text), "record %d", i);
        struct sl_wal_segment segment;
        write_text(&wal, text, i * 200, &segment);
        if (i % 10 == 0) {
            segments[i / 10] = segment;
            segments[i / 10].path = paths[i / 10] = sl_strdup(segment.path);
        }
    }
    /* A file takes its start .. start + 1000: six records each. */
    assert_int_equal(count_files(dir), 5);
    for (int i = 0; i < 3; i++) {
        size_t len = 0;
        char text[32];
        snprintf(text, sizeof(text), "record %d", i * 10);
        const uint8_t *bytes = sl_wal_read(&wal, &segments[i], &len);
        assert_non_null(bytes);
        assert_int_equal(len, strlen(text));
        assert_memory_equal(bytes, text, len);
        segments[i].offset++;
        assert_null(sl_wal_read(&wal, &segments[i], &len));
        assert_int_equal(sl_err_last()->code, SL_EPROTO);
        sl_free(paths[i]);
    }
    struct texts texts = {0};
    read_texts(dir, &texts);
    assert_int_equal(texts.count, 30);
    assert_string_equal(texts.items[0], "record 0");
    assert_string_equal(texts.items[29], "record 29");
    texts_free(&texts);
    /* Files whose stop is before the threshold go, the others stay. */
    assert_int_equal(sl_wal_clean(&wal, 1000), 0);
    assert_int_equal(count_files(dir), 5);
    assert_int_equal(sl_wal_clean(&wal, 2201), 0);
    assert_int_equal(count_files(dir), 3);
    read_texts(dir, &texts);
    assert_int_equal(texts.count, 18);
    texts_free(&texts);
    sl_wal_destroy(&wal);
    rig_dir_remove(dir);
}

static char *
only_file(const char *dir)
{
    struct sl_wal wal;
    assert_int_equal(sl_wal_create(&wal, dir, 1000), 0);
    assert_int_equal(wal.files.count, 1);
    char *path = sl_strdup(wal.files.items[0].path);
    sl_wal_destroy(&wal);
    return path;
}

static void
write_ten(const char *dir)
{
    struct sl_wal wal;
    struct sl_wal_segment segment;
    assert_int_equal(sl_wal_create(&wal, dir, 1000000), 0);
    for (int i = 0; i < 10; i++) {
        write_text(&wal, "0123456789", 5, &segment);
    }
    sl_wal_destroy(&wal);
}

static void
test_T131_a_cut_file_gives_all_whole_records(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    write_ten(dir);
    char *path = only_file(dir);
    for (off_t size = 10 * 14; size >= 0; size--) {
        assert_int_equal(truncate(path, size), 0);
        struct texts texts = {0};
        read_texts(dir, &texts);
        assert_int_equal(texts.count, size / 14);
        texts_free(&texts);
    }
    sl_free(path);
    rig_dir_remove(dir);
}

static void
test_T131_garbage_behind_the_records_is_passed_over(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    write_ten(dir);
    char *path = only_file(dir);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs("\x7f\xff\xff\xff garbage", file);
    fclose(file);
    struct texts texts = {0};
    read_texts(dir, &texts);
    assert_int_equal(texts.count, 10);
    texts_free(&texts);
    /* A writer that comes back to the file continues behind the last whole record. */
    struct sl_wal wal;
    struct sl_wal_segment segment;
    assert_int_equal(sl_wal_create(&wal, dir, 1000000), 0);
    write_text(&wal, "new", 5, &segment);
    sl_wal_destroy(&wal);
    read_texts(dir, &texts);
    assert_int_equal(texts.count, 11);
    assert_string_equal(texts.items[10], "new");
    texts_free(&texts);
    sl_free(path);
    rig_dir_remove(dir);
}

static void
test_a_segment_that_reaches_behind_its_file_is_refused(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    write_ten(dir);
    char *path = only_file(dir);
    struct sl_wal wal;
    size_t len = 0;
    assert_int_equal(sl_wal_create(&wal, dir, 1000000), 0);
    struct sl_wal_segment last = {9 * 14, 10, path};
    assert_non_null(sl_wal_read(&wal, &last, &len));
    /* No memory is taken for what a damaged list of blocks asks for. */
    const struct sl_wal_segment bad[] = {
        {0, INT64_MAX, path},   {INT64_MAX, 10, path}, {9 * 14 + 1, 10, path},
        {10 * 14 - 4, 0, path}, {-1, 10, path},        {0, -1, path},
    };
    for (size_t i = 0; i < array_size(bad); i++) {
        assert_null(sl_wal_read(&wal, &bad[i], &len));
        assert_int_equal(sl_err_last()->code, SL_EPROTO);
    }
    sl_wal_destroy(&wal);
    sl_free(path);
    rig_dir_remove(dir);
}

static void
test_a_file_that_can_not_be_read_is_not_cut_off(void **state)
{
    (void)state;
    enum { NOBODY = 65534 };
    char *dir = rig_dir_new();
    write_ten(dir);
    char *path = only_file(dir);
    bool is_root = geteuid() == 0;
    /* Root may read everything, so it is somebody else for a while. */
    if (is_root) {
        assert_int_equal(chmod(dir, 0777), 0);
        assert_int_equal(chown(path, NOBODY, NOBODY), 0);
        assert_int_equal(seteuid(NOBODY), 0);
    }
    assert_int_equal(chmod(path, 0200), 0);
    struct sl_wal wal;
    struct sl_wal_segment segment;
    assert_int_equal(sl_wal_create(&wal, dir, 1000000), 0);
    assert_int_equal(sl_wal_write(&wal, "new", 3, 5, &segment), SL_ESYS);
    sl_wal_destroy(&wal);
    assert_int_equal(chmod(path, 0600), 0);
    if (is_root) {
        assert_int_equal(seteuid(0), 0);
    }
    struct texts texts = {0};
    read_texts(dir, &texts);
    assert_int_equal(texts.count, 10);
    texts_free(&texts);
    sl_free(path);
    rig_dir_remove(dir);
}

static void
test_a_deleted_file_is_tolerated(void **state)
{
    (void)state;
    char *dir = rig_dir_new();
    struct sl_wal wal;
    struct sl_wal_segment segment;
    assert_int_equal(sl_wal_create(&wal, dir, 10), 0);
    write_text(&wal, "a", 0, &segment);
    write_text(&wal, "b", 100, &segment);
    struct sl_wal reader;
    assert_int_equal(sl_wal_create(&reader, dir, 10), 0);
    assert_int_equal(unlink(reader.files.items[0].path), 0);
    struct texts texts = {0};
    assert_int_equal(sl_wal_read_all(&reader, collect, &texts), 0);
    assert_int_equal(texts.count, 1);
    assert_string_equal(texts.items[0], "b");
    texts_free(&texts);
    sl_wal_destroy(&reader);
    sl_wal_destroy(&wal);
    rig_dir_remove(dir);
}

static void
test_a_directory_that_can_not_be_made_is_an_error(void **state)
{
    (void)state;
    struct sl_wal wal;
    struct sl_wal_segment segment;
    assert_int_equal(sl_wal_create(&wal, "/proc/no/such/place", 10), 0);
    assert_int_equal(sl_wal_write(&wal, "a", 1, 0, &segment), SL_ESYS);
    sl_wal_destroy(&wal);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_made_before_the_first_write),
        cmocka_unit_test(test_records_roll_over_files_and_come_back),
        cmocka_unit_test(test_T131_a_cut_file_gives_all_whole_records),
        cmocka_unit_test(test_T131_garbage_behind_the_records_is_passed_over),
        cmocka_unit_test(test_a_segment_that_reaches_behind_its_file_is_refused),
        cmocka_unit_test(test_a_file_that_can_not_be_read_is_not_cut_off),
        cmocka_unit_test(test_a_deleted_file_is_tolerated),
        cmocka_unit_test(test_a_directory_that_can_not_be_made_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
