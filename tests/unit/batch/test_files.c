// labels: short
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "batch/files.h"
#include "unit.h"

static void
test_what_was_written_is_read_whole_or_not_at_all(void **state)
{
    (void)state;
    char folder[256];
    char path[300];
    struct sl_buf seen = {0};
    unit_folder_new(folder, sizeof(folder));
    snprintf(path, sizeof(path), "%s/file", folder);
    assert_int_equal(sl_files_read(path, 100, &seen), SL_ENOTFOUND);
    assert_int_equal(sl_files_write(path, "a longer text", 13), 0);
    assert_int_equal(sl_files_write(path, "short\0", 6), 0);
    assert_int_equal(sl_files_read(path, 6, &seen), 0);
    assert_int_equal(sl_files_read(path, 6, &seen), 0);
    assert_int_equal(seen.size, 12);
    assert_memory_equal(seen.data, "short\0short\0", 12);
    assert_int_equal(sl_files_read(path, 5, &seen), SL_ELIMIT);
    assert_int_equal(seen.size, 12);
    assert_int_equal(sl_files_sync_dir(folder), 0);
    sl_buf_destroy(&seen);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(sl_files_write(path, "x", 1), SL_ESYS);
    assert_int_equal(sl_files_sync_dir(folder), SL_ESYS);
}

static void
test_folders_are_made_with_those_above(void **state)
{
    (void)state;
    char folder[256];
    char deep[300];
    char file[300];
    struct stat info;
    unit_folder_new(folder, sizeof(folder));
    snprintf(deep, sizeof(deep), "%s/a/b", folder);
    assert_int_equal(sl_files_make_dirs(deep), 0);
    assert_int_equal(sl_files_make_dirs(deep), 0);
    assert_true(stat(deep, &info) == 0 && S_ISDIR(info.st_mode));
    snprintf(file, sizeof(file), "%s/a/f", folder);
    assert_int_equal(sl_files_write(file, "", 0), 0);
    assert_int_equal(sl_files_make_dirs(file), SL_ESYS);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(deep), 0);
    snprintf(deep, sizeof(deep), "%s/a", folder);
    assert_int_equal(rmdir(deep), 0);
    assert_int_equal(rmdir(folder), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_what_was_written_is_read_whole_or_not_at_all),
    cmocka_unit_test(test_folders_are_made_with_those_above),
};
UNIT_MAIN(tests)
