/* labels: short */
/* Folders of workers: one's own, removed with all that is in it, and a killed one's, too. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/worker_folder.h"
#include "unit.h"

static char parent[256];

static int
make_parent(void **state)
{
    (void)state;
    unit_folder_new(parent, sizeof(parent));
    return setenv("TMPDIR", parent, 1);
}

static int
remove_parent(void **state)
{
    (void)state;
    return rmdir(parent);
}

static bool
exists(const char *path)
{
    struct stat stat;
    return lstat(path, &stat) == 0;
}

static void
put_file(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static void
is_removed_with_all_that_is_in_it(void **state)
{
    (void)state;
    struct sl_worker_folder folder;
    char path[256];
    assert_int_equal(sl_worker_folder_open(&folder), 0);
    snprintf(path, sizeof(path), "%s/below", folder.path);
    assert_int_equal(mkdir(path, 0700), 0);
    put_file(path, "file");
    snprintf(path, sizeof(path), "%s", folder.path);
    sl_worker_folder_close(&folder);
    assert_false(exists(path));
}

static void
of_a_killed_process_is_removed_by_the_next(void **state)
{
    (void)state;
    int ends[2];
    char killed[256] = {0};
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct sl_worker_folder folder;
        bool is_open = sl_worker_folder_open(&folder) == 0;
        if (is_open) {
            put_file(folder.path, "file");
        }
        size_t size = is_open ? strlen(folder.path) : 0;
        _exit(is_open && write(ends[1], folder.path, size) == (ssize_t)size ? pause() : 1);
    }
    close(ends[1]);
    assert_true(read(ends[0], killed, sizeof(killed) - 1) > 0);
    close(ends[0]);
    struct sl_worker_folder folder;
    assert_int_equal(sl_worker_folder_open(&folder), 0);
    assert_true(exists(killed));
    sl_worker_folder_close(&folder);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(exists(killed));
    assert_int_equal(sl_worker_folder_open(&folder), 0);
    assert_false(exists(killed));
    assert_true(exists(folder.path));
    sl_worker_folder_close(&folder);
}

static void
that_can_not_be_made_says_where(void **state)
{
    (void)state;
    struct sl_worker_folder folder;
    setenv("TMPDIR", "/proc/none", 1);
    assert_true(sl_worker_folder_open(&folder) < 0);
    assert_null(folder.path);
    sl_worker_folder_close(&folder);
    setenv("TMPDIR", parent, 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_removed_with_all_that_is_in_it),
        cmocka_unit_test(of_a_killed_process_is_removed_by_the_next),
        cmocka_unit_test(that_can_not_be_made_says_where),
    };
    return cmocka_run_group_tests(tests, make_parent, remove_parent);
}
