/* labels: short */
/* The localfs backend: what every backend does, then several processes, crashes and bad disks. */
#include "state/localfs.h"

#include "state/child_kit.h"
#include "state/conformance.c"
#include "state/localfs_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char root[64];

static int
remove_entry(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void
remove_root(void)
{
    nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int
fixture_setup(void **state)
{
    (void)state;
    unit_folder_new(root, sizeof(root) - sizeof("/state"));
    strcat(root, "/state");
    kit_runner = sl_state_runner_new();
    return 0;
}

static int
fixture_teardown(void **state)
{
    (void)state;
    if (kit_open_stores > 0) {
        kit_open_stores = 0;
        return 0;
    }
    assert_int_equal(sl_state_runner_timer_count(kit_runner), 0);
    sl_state_runner_free(kit_runner);
    *strrchr(root, '/') = '\0';
    remove_root();
    return 0;
}

static struct sl_state_store *
open_dir(const char *dir)
{
    const struct sl_state_executor *executor = sl_state_runner_executor(kit_runner);
    kit_open_stores++;
    return sl_state_store_new(sl_localfs_backend_new(dir, executor), executor, NULL);
}

static struct sl_state_store *
fixture_open(void)
{
    return open_dir(root);
}

static void
fixture_expire(struct sl_state_store *store)
{
    assert_int_equal(sl_localfs_end_session(root, sl_state_store_session(store)), 0);
}

static uint64_t
now_ms(void)
{
    return sl_clock_mono_ms(sl_clock_system());
}

/*
 * Several processes
 */

/* A child that takes a lock, says so, and holds it for ever. */
static void
hold_lock(const char *argument, int in, int out)
{
    (void)in;
    struct lock_log log;
    kit_runner = sl_state_runner_new();
    struct sl_state_store *store = open_dir(argument);
    struct sl_state_lock *lock = sl_state_lock_new(store, "/locks/t", "child", on_lock_event, &log);
    acquire(lock, &log, KIT_WAIT_MS);
    wait_count(&log.done, 1);
    if (log.status != 0) {
        _exit(1);
    }
    tell(out, 'L');
    for (;;) {
        sl_state_runner_run_for(kit_runner, 1000);
    }
}

static void
test_check2_lock_is_free_after_kill_9(void **state)
{
    (void)state;
    struct child child;
    struct lock_log log;
    child_start(&child, hold_lock, root);
    assert_int_equal(child_read(&child), 'L');
    struct sl_state_store *store = fixture_open();
    struct sl_state_lock *lock = sl_state_lock_new(store, "/locks/t", "test", on_lock_event, &log);
    assert_int_equal(acquire_now(lock, &log, 0), SL_ECONFLICT);
    char pid[32];
    snprintf(pid, sizeof(pid), "process %d ", (int)child.pid);
    assert_non_null(strstr(log.message, pid));
    assert_non_null(strstr(log.message, "child"));
    acquire(lock, &log, KIT_WAIT_MS);
    struct outcome outcome = {0};
    while (outcome.child_count < 2) {
        assert_int_equal(do_children(store, "/locks/t", &outcome), 0);
    }
    assert_int_equal(log.done, 0);
    uint64_t start = now_ms();
    child_kill(&child);
    wait_count(&log.done, 1);
    uint64_t took = now_ms() - start;
    assert_int_equal(log.status, 0);
    print_message("lock taken %d ms after kill -9\n", (int)took);
    release(lock);
    sl_state_lock_free(lock);
    outcome_destroy(&outcome);
    close_store(store);
}

/* A stopped process keeps its lock: its session has no time-out. */
static void
test_lock_of_a_stopped_process_stays(void **state)
{
    (void)state;
    struct child child;
    struct lock_log log;
    child_start(&child, hold_lock, root);
    assert_int_equal(child_read(&child), 'L');
    kill(child.pid, SIGSTOP);
    struct sl_state_store *store = fixture_open();
    struct sl_state_lock *lock = sl_state_lock_new(store, "/locks/t", "test", on_lock_event, &log);
    assert_int_equal(acquire_now(lock, &log, 700), SL_ECONFLICT);
    child_kill(&child);
    assert_int_equal(acquire_now(lock, &log, KIT_WAIT_MS), 0);
    sl_state_lock_free(lock);
    close_store(store);
}

enum { ADDER_ROUNDS = 40 };

static void
add_in_child(const char *argument, int in, int out)
{
    (void)in;
    kit_runner = sl_state_runner_new();
    struct adder adder = {.store = open_dir(argument), .left = ADDER_ROUNDS};
    adder_read(&adder);
    wait_count(&adder.done, 1);
    close_store(adder.store);
    tell(out, 'D');
}

static void
test_processes_count_exactly(void **state)
{
    (void)state;
    struct child children[3];
    struct sl_state_store *store = fixture_open();
    assert_int_equal(do_create(store, "/counter", "0", 0), 0);
    close_store(store);
    for (size_t i = 0; i < array_size(children); i++) {
        child_start(&children[i], add_in_child, root);
    }
    for (size_t i = 0; i < array_size(children); i++) {
        assert_int_equal(child_read(&children[i]), 'D');
        assert_int_equal(child_wait(&children[i]), 0);
    }
    store = fixture_open();
    char text[16];
    snprintf(text, sizeof(text), "%d", (int)array_size(children) * ADDER_ROUNDS);
    assert_value(store, "/counter", text);
    close_store(store);
}

/* A child that writes /n one after another until it is killed; says how far it got. */
static void
write_until_killed(const char *argument, int in, int out)
{
    (void)in;
    kit_runner = sl_state_runner_new();
    struct sl_state_store *store = open_dir(argument);
    for (int i = 0;; i++) {
        char path[32];
        struct outcome outcome = {0};
        snprintf(path, sizeof(path), "/n%d", i);
        struct sl_state_op ops[] = {
            sl_state_op_create(path, "x", 1, 0),
            sl_state_op_set("/last", path, strlen(path), SL_STATE_ANY_VERSION),
        };
        if (do_multi(store, ops, 2, &outcome) != 0) {
            _exit(1);
        }
        outcome_destroy(&outcome);
        tell(out, 'W');
    }
}

static void
test_kill_9_of_a_writer_loses_no_answered_write(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        struct child child;
        struct outcome outcome = {0};
        struct sl_state_store *store = fixture_open();
        assert_int_equal(do_create(store, "/last", "", 0), 0);
        close_store(store);
        child_start(&child, write_until_killed, root);
        int answered = 0;
        for (; answered < 3 + round * 7; answered++) {
            assert_int_equal(child_read(&child), 'W');
        }
        kill(child.pid, SIGKILL);
        while (child_read(&child) == 'W') {
            answered++;
        }
        child_kill(&child);
        store = fixture_open();
        assert_int_equal(do_get(store, "/last", &outcome), 0);
        int last = atoi(sl_buf_str(&outcome.value) + 2);
        /* One more may have been written than was answered, and it is whole. */
        assert_in_range(last, answered - 1, answered);
        for (int i = 0; i <= last; i++) {
            char path[32];
            snprintf(path, sizeof(path), "/n%d", i);
            assert_value(store, path, "x");
            assert_int_equal(do_delete(store, path, 0), 0);
        }
        assert_int_equal(do_delete(store, "/last", SL_STATE_ANY_VERSION), 0);
        outcome_destroy(&outcome);
        close_store(store);
    }
}

/*
 * Files
 */

static void
write_file(const char *name, const void *data, size_t size, int flags)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    close(fd);
}

static off_t
log_size(void)
{
    char path[128];
    struct stat stat_;
    snprintf(path, sizeof(path), "%s/state.log", root);
    assert_int_equal(stat(path, &stat_), 0);
    return stat_.st_size;
}

static void
test_state_outlives_all_processes(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    assert_int_equal(do_create(store, "/a/b", "kept", SL_STATE_PARENTS), 0);
    assert_int_equal(do_set(store, "/a/b", "kept 2", 0), 0);
    assert_int_equal(do_create(store, "/e", "", SL_STATE_EPHEMERAL), 0);
    assert_int_equal(do_get(store, "/a/b", &outcome), 0);
    uint64_t created = outcome.stat.created_zxid;
    close_store(store);
    store = fixture_open();
    assert_int_equal(do_get(store, "/a/b", &outcome), 0);
    assert_string_equal(sl_buf_str(&outcome.value), "kept 2");
    assert_int_equal(outcome.stat.version, 1);
    assert_int_equal(outcome.stat.created_zxid, created);
    assert_missing(store, "/e");
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_junk_files_do_no_harm(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    assert_int_equal(do_create(store, "/a", "1", 0), 0);
    write_file("notes.txt", "hello", 5, 0);
    write_file(".state.log.swp", "x", 1, 0);
    write_file("state.log.new", "half of something", 17, 0);
    write_file("sessions/garbage", "x", 1, 0);
    write_file("sessions/00000000000000ff", "x", 1, 0);
    assert_value(store, "/a", "1");
    assert_int_equal(do_set(store, "/a", "2", 0), 0);
    struct sl_state_store *other = fixture_open();
    assert_value(other, "/a", "2");
    assert_int_equal(do_children(other, "/", &outcome), 0);
    assert_int_equal(outcome.child_count, 1);
    outcome_destroy(&outcome);
    close_store(store);
    close_store(other);
}

static void
test_rest_of_a_crashed_write_is_cut_off(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    assert_int_equal(do_create(store, "/a", "1", 0), 0);
    close_store(store);
    /* A heading that promises more than there is, one that is partly zeros, and zeros. */
    static const uint8_t rests[][20] = {
        {100, 0, 0, 0, 155, 255, 255, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9},
        {100, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {0},
        {2, 0, 0, 0, 253, 255, 255, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 0, 0},
    };
    static const size_t sizes[] = {20, 20, 20, 18};
    for (size_t i = 0; i < array_size(rests); i++) {
        write_file("state.log", rests[i], sizes[i], O_APPEND);
        store = fixture_open();
        assert_value(store, "/a", "1");
        char path[16];
        snprintf(path, sizeof(path), "/after%zu", i);
        assert_int_equal(do_create(store, path, "x", 0), 0);
        close_store(store);
        store = fixture_open();
        assert_value(store, path, "x");
        close_store(store);
    }
}

/* A rest that is longer than what is written next must not show up behind it. */
static void
test_long_rest_of_a_crashed_write_is_cut_off(void **state)
{
    (void)state;
    static uint8_t rest[20000] = {0x40, 0x9c, 0, 0, 0xbf, 0x63, 0xff, 0xff, 1};
    struct sl_state_store *store = fixture_open();
    assert_int_equal(do_create(store, "/a", "1", 0), 0);
    close_store(store);
    memset(rest + 16, 0x55, sizeof(rest) - 16);
    write_file("state.log", rest, sizeof(rest), O_APPEND);
    for (int i = 0; i < 2; i++) {
        char path[16];
        store = fixture_open();
        assert_value(store, "/a", "1");
        snprintf(path, sizeof(path), "/n%d", i);
        assert_int_equal(do_create(store, path, "x", 0), 0);
        close_store(store);
        assert_true(log_size() < (off_t)sizeof(rest));
    }
}

static void
test_truncated_log_is_an_earlier_state_at_every_length(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    for (int i = 0; i < 3; i++) {
        char path[16];
        snprintf(path, sizeof(path), "/n%d", i);
        assert_int_equal(do_create(store, path, "value", 0), 0);
    }
    close_store(store);
    off_t size = log_size();
    char path[128];
    snprintf(path, sizeof(path), "%s/state.log", root);
    for (off_t length = size - 1; length >= 16; length--) {
        struct sl_disk disk;
        assert_int_equal(truncate(path, length), 0);
        assert_int_equal(sl_disk_open(&disk, root, NULL, NULL), 0);
        assert_true(disk.offset <= length);
        /* Whatever is there is there in order. */
        bool has_earlier = true;
        for (int i = 0; i < 3; i++) {
            char node[16];
            snprintf(node, sizeof(node), "/n%d", i);
            bool is_there = sl_tree_find(&disk.tree, node) != NULL;
            assert_true(has_earlier || !is_there);
            has_earlier = is_there;
        }
        sl_disk_close(&disk);
    }
}

static void
expect_open_fails(const char *dir, const char *why)
{
    struct outcome outcome = {0};
    struct sl_state_store *store = open_dir(dir);
    assert_int_equal(do_get(store, "/", &outcome), SL_EUNAVAIL);
    if (strstr(outcome.message, why) == NULL) {
        print_error("message is: %s\n", outcome.message);
    }
    assert_non_null(strstr(outcome.message, why));
    assert_non_null(sl_state_store_failure(store));
    assert_int_equal(do_create(store, "/a", "", 0), SL_EUNAVAIL);
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_damaged_log_is_refused_and_not_mended(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    assert_int_equal(do_create(store, "/a", "1", 0), 0);
    assert_int_equal(do_create(store, "/b", "2", 0), 0);
    close_store(store);
    char path[128];
    snprintf(path, sizeof(path), "%s/state.log", root);
    int fd = open(path, O_RDWR);
    uint8_t byte;
    assert_int_equal(pread(fd, &byte, 1, 40), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, 40), 1);
    off_t size = log_size();
    expect_open_fails(root, "damaged at byte 16");
    assert_int_equal(log_size(), size);
    assert_int_equal(pwrite(fd, "something else entirely", 16, 0), 16);
    expect_open_fails(root, "is no state of streamlua");
    close(fd);
}

static void
test_old_history_is_dropped(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct sl_state_store *other = fixture_open();
    struct view view = {0};
    struct outcome outcome = {0};
    enum { SIZE = 100 * 1024, ROUNDS = 40 };
    uint8_t *bytes = pattern_new(SIZE, 5);
    assert_int_equal(do_create(store, "/x/y", "deep", SL_STATE_PARENTS), 0);
    assert_int_equal(do_create(store, "/e", "mine", SL_STATE_EPHEMERAL), 0);
    assert_int_equal(do_create_bytes(store, "/big", bytes, SIZE, 0, NULL), 0);
    struct sl_state_watch *watch = sl_state_watch_new(other, SL_STATE_GET, "/end", on_view, &view);
    wait_view(&view, SL_ENOTFOUND, "", 0);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(do_set_bytes(store, "/big", bytes, SIZE, i, NULL), 0);
    }
    assert_true(log_size() < (off_t)SIZE * ROUNDS / 2);
    assert_int_equal(do_create(store, "/end", "seen", 0), 0);
    wait_view(&view, 0, "seen", 0);
    assert_pattern(other, "/big", SIZE, 5);
    assert_int_equal(do_get(other, "/e", &outcome), 0);
    assert_int_equal(outcome.stat.owner, sl_state_store_session(store));
    uint64_t session = sl_state_store_session(store);
    assert_int_equal(do_get(other, "/big", &outcome), 0);
    assert_int_equal(outcome.stat.version, ROUNDS);
    struct sl_state_stat before = outcome.stat;
    struct sl_state_store *third = fixture_open();
    assert_int_equal(do_get(third, "/big", &outcome), 0);
    assert_memory_equal(&outcome.stat, &before, sizeof(before));
    assert_value(third, "/x/y", "deep");
    assert_int_equal(do_create(third, "/later", "", 0), 0);
    assert_int_equal(sl_state_store_session(store), session);
    sl_state_watch_free(watch);
    close_store(store);
    assert_missing(third, "/e");
    close_store(other);
    close_store(third);
    sl_free(bytes);
    outcome_destroy(&outcome);
}

/* Replaced logs and watchers: a reader that looks away meets a log of another inode. */
static void
test_watches_see_across_a_replaced_log(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct sl_state_store *other = fixture_open();
    struct view view = {0};
    enum { SIZE = 400 * 1024 };
    uint8_t *bytes = pattern_new(SIZE, 6);
    assert_int_equal(do_create(store, "/w", "0", 0), 0);
    assert_int_equal(do_create_bytes(store, "/big", bytes, SIZE, 0, NULL), 0);
    struct sl_state_watch *watch = sl_state_watch_new(other, SL_STATE_GET, "/w", on_view, &view);
    wait_view(&view, 0, "0", 0);
    for (int i = 0; i < 20; i++) {
        char text[16];
        assert_int_equal(do_set_bytes(store, "/big", bytes, SIZE, i, NULL), 0);
        snprintf(text, sizeof(text), "%d", i);
        assert_int_equal(do_set(store, "/w", text, i), 0);
        wait_view(&view, 0, text, 0);
    }
    sl_state_watch_free(watch);
    close_store(store);
    close_store(other);
    sl_free(bytes);
}

static void
test_a_reader_sees_all_and_writes_nothing(void **state)
{
    (void)state;
    const struct sl_state_executor *executor = sl_state_runner_executor(kit_runner);
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    struct view view = {0};
    assert_int_equal(do_create(store, "/a", "1", 0), 0);
    off_t size = log_size();
    kit_open_stores++;
    struct sl_state_store *reader =
        sl_state_store_new(sl_localfs_reader_new(root, executor), executor, NULL);
    assert_int_equal(do_get(reader, "/a", &outcome), 0);
    assert_string_equal(sl_buf_str(&outcome.value), "1");
    assert_int_equal(do_create(reader, "/b", "2", 0), SL_EINVAL);
    assert_int_equal(do_set(reader, "/a", "2", 0), SL_EINVAL);
    assert_int_equal(log_size(), size);
    struct sl_state_watch *watch = sl_state_watch_new(reader, SL_STATE_GET, "/a", on_view, &view);
    wait_view(&view, 0, "1", 0);
    assert_int_equal(do_set(store, "/a", "3", 0), 0);
    wait_view(&view, 0, "3", 0);
    sl_state_watch_free(watch);
    size = log_size();
    close_store(reader);
    assert_int_equal(log_size(), size);
    outcome_destroy(&outcome);
    close_store(store);
}

/*
 * Bad disks
 */

static void
test_directory_that_can_not_be_is_named(void **state)
{
    (void)state;
    char path[128];
    *strrchr(root, '/') = '\0';
    snprintf(path, sizeof(path), "%s/file", root);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    strcat(root, "/state");
    expect_open_fails(path, "Not a directory");
    strcat(path, "/below");
    expect_open_fails(path, "Not a directory");
}

static void
open_without_rights(const char *argument, int in, int out)
{
    (void)in;
    if (setgid(65534) != 0 || setuid(65534) != 0) {
        tell(out, 'S');
        return;
    }
    kit_runner = sl_state_runner_new();
    expect_open_fails(argument, "Permission denied");
    tell(out, 'D');
}

static void
test_missing_rights_are_named(void **state)
{
    (void)state;
    struct child child;
    struct sl_state_store *store = fixture_open();
    assert_int_equal(do_create(store, "/a", "", 0), 0);
    close_store(store);
    if (getuid() != 0) {
        print_message("not root: rights can not be taken from a child\n");
        skip();
    }
    child_start(&child, open_without_rights, root);
    char said = child_read(&child);
    assert_int_equal(child_wait(&child), 0);
    assert_int_equal(said, 'D');
}

/* Files of this process can not grow beyond what they are: as good as a full disk. */
static void
write_to_a_full_disk(const char *argument, int in, int out)
{
    (void)in;
    struct outcome outcome = {0};
    struct rlimit limit;
    kit_runner = sl_state_runner_new();
    signal(SIGXFSZ, SIG_IGN);
    struct sl_state_store *store = open_dir(argument);
    struct view view = {0};
    uint8_t *bytes = pattern_new(100 * 1024, 1);
    struct sl_state_watch *watch = sl_state_watch_new(store, SL_STATE_GET, "/a", on_view, &view);
    assert_int_equal(do_create(store, "/a", "before", 0), 0);
    wait_view(&view, 0, "before", 0);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 40 * 1024;
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(do_set_bytes(store, "/a", bytes, 100 * 1024, 0, &outcome), SL_ESYS);
    assert_non_null(strstr(outcome.message, "File too large"));
    assert_non_null(strstr(outcome.message, argument));
    assert_value(store, "/a", "before");
    assert_int_equal(do_create_bytes(store, "/b", bytes, 100 * 1024, 0, &outcome), SL_ESYS);
    assert_missing(store, "/b");
    limit.rlim_cur = RLIM_INFINITY;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(do_create(store, "/b", "after", 0), 0);
    assert_int_equal(do_set(store, "/a", "again", 0), 0);
    wait_view(&view, 0, "again", 0);
    sl_state_watch_free(watch);
    sl_free(bytes);
    outcome_destroy(&outcome);
    close_store(store);
    tell(out, 'D');
}

static void
test_full_disk_is_an_error_and_no_damage(void **state)
{
    (void)state;
    struct child child;
    child_start(&child, write_to_a_full_disk, root);
    char said = child_read(&child);
    assert_int_equal(child_wait(&child), 0);
    assert_int_equal(said, 'D');
    struct sl_state_store *store = fixture_open();
    assert_value(store, "/a", "again");
    assert_value(store, "/b", "after");
    close_store(store);
}

/* Mounts a small file system of its own at a directory; false where that is not permitted. */
static bool
mount_small_disk(const char *dir)
{
    bool is_apart = unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    return is_apart && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mkdir(dir, 0700) == 0 && mount("small", dir, "tmpfs", 0, "size=256k") == 0;
}

static void
fill_a_small_disk(const char *argument, int in, int out)
{
    (void)in;
    struct outcome outcome = {0};
    char path[128];
    int written = 0;
    if (!mount_small_disk(argument)) {
        tell(out, 'S');
        return;
    }
    /* Something of others, which goes away later. */
    snprintf(path, sizeof(path), "%s/others", argument);
    uint8_t *bytes = pattern_new(60 * 1024, 1);
    FILE *others = fopen(path, "w");
    assert_int_equal(fwrite(bytes, 1, 60 * 1024, others), 60 * 1024);
    assert_int_equal(fclose(others), 0);
    kit_runner = sl_state_runner_new();
    struct sl_state_store *store = open_dir(argument);
    assert_int_equal(do_create(store, "/a", "before", 0), 0);
    int status;
    do {
        snprintf(path, sizeof(path), "/n%d", written);
        status = do_create_bytes(store, path, bytes, 10 * 1024, 0, &outcome);
        written += status == 0;
    } while (status == 0 && written < 100);
    assert_int_equal(status, SL_ESYS);
    assert_non_null(strstr(outcome.message, "No space left on device"));
    assert_non_null(strstr(outcome.message, argument));
    assert_missing(store, path);
    assert_value(store, "/a", "before");
    /* Again and again: nothing is damaged, and nothing of the failed writes stays. */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(do_set_bytes(store, "/a", bytes, 40 * 1024, 0, NULL), SL_ESYS);
    }
    assert_value(store, "/a", "before");
    snprintf(path, sizeof(path), "%s/others", argument);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(do_set(store, "/a", "after", 0), 0);
    close_store(store);
    store = open_dir(argument);
    assert_value(store, "/a", "after");
    assert_int_equal(do_children(store, "/", &outcome), 0);
    assert_int_equal(outcome.child_count, written + 1);
    close_store(store);
    sl_free(bytes);
    outcome_destroy(&outcome);
    sl_state_runner_free(kit_runner);
    tell(out, 'D');
}

static void
test_a_disk_that_is_really_full_is_an_error_and_no_damage(void **state)
{
    (void)state;
    struct child child;
    child_start(&child, fill_a_small_disk, root);
    char said = child_read(&child);
    assert_int_equal(child_wait(&child), 0);
    if (said == 'S') {
        print_message("skipped: a file system can not be mounted here\n");
        skip();
    }
    assert_int_equal(said, 'D');
}

static void
test_removed_directory_is_told(void **state)
{
    (void)state;
    struct outcome outcome = {0};
    struct sl_state_store *store = fixture_open();
    assert_int_equal(do_create(store, "/a", "", 0), 0);
    remove_root();
    assert_true(do_create_bytes(store, "/b", "", 0, 0, &outcome) < 0);
    assert_non_null(strstr(outcome.message, root));
    assert_true(do_get(store, "/a", &outcome) < 0);
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_writer_that_hangs_is_named(void **state)
{
    (void)state;
    struct sl_disk holder;
    struct sl_disk waiter;
    char text[512];
    assert_int_equal(sl_disk_open(&holder, root, NULL, NULL), 0);
    assert_int_equal(sl_disk_open(&waiter, root, NULL, NULL), 0);
    assert_int_equal(sl_disk_lock(&holder, 0), 0);
    assert_int_equal(sl_disk_lock(&waiter, 30), SL_EUNAVAIL);
    sl_err_format(sl_err_last(), text, sizeof(text));
    char pid[32];
    snprintf(pid, sizeof(pid), "process %d ", (int)getpid());
    assert_non_null(strstr(text, pid));
    sl_disk_unlock(&holder);
    assert_int_equal(sl_disk_lock(&waiter, 0), 0);
    sl_disk_unlock(&waiter);
    sl_disk_close(&holder);
    sl_disk_close(&waiter);
}

static int
count_descriptors(bool *all_close_on_exec)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    *all_close_on_exec = true;
    while ((entry = readdir(dir)) != NULL) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || fd <= 2) {
            continue;
        }
        count++;
        *all_close_on_exec &= (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
    }
    closedir(dir);
    return count;
}

static void
test_s17_descriptors_are_close_on_exec_and_given_back(void **state)
{
    (void)state;
    bool is_good = false;
    int before = count_descriptors(&is_good);
    bool had_only_good = is_good;
    for (int i = 0; i < 3; i++) {
        struct sl_state_store *store = fixture_open();
        assert_int_equal(do_create(store, "/a", "", SL_STATE_EPHEMERAL), 0);
        assert_true(count_descriptors(&is_good) > before);
        assert_true(is_good || !had_only_good);
        close_store(store);
    }
    assert_int_equal(count_descriptors(&is_good), before);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CONFORMANCE_TESTS,
        CONFORMANCE_TEST(test_check2_lock_is_free_after_kill_9),
        CONFORMANCE_TEST(test_lock_of_a_stopped_process_stays),
        CONFORMANCE_TEST(test_processes_count_exactly),
        CONFORMANCE_TEST(test_kill_9_of_a_writer_loses_no_answered_write),
        CONFORMANCE_TEST(test_state_outlives_all_processes),
        CONFORMANCE_TEST(test_junk_files_do_no_harm),
        CONFORMANCE_TEST(test_rest_of_a_crashed_write_is_cut_off),
        CONFORMANCE_TEST(test_long_rest_of_a_crashed_write_is_cut_off),
        CONFORMANCE_TEST(test_truncated_log_is_an_earlier_state_at_every_length),
        CONFORMANCE_TEST(test_damaged_log_is_refused_and_not_mended),
        CONFORMANCE_TEST(test_old_history_is_dropped),
        CONFORMANCE_TEST(test_watches_see_across_a_replaced_log),
        CONFORMANCE_TEST(test_a_reader_sees_all_and_writes_nothing),
        CONFORMANCE_TEST(test_directory_that_can_not_be_is_named),
        CONFORMANCE_TEST(test_missing_rights_are_named),
        CONFORMANCE_TEST(test_full_disk_is_an_error_and_no_damage),
        CONFORMANCE_TEST(test_a_disk_that_is_really_full_is_an_error_and_no_damage),
        CONFORMANCE_TEST(test_removed_directory_is_told),
        CONFORMANCE_TEST(test_writer_that_hangs_is_named),
        CONFORMANCE_TEST(test_s17_descriptors_are_close_on_exec_and_given_back),
    };
    cmocka_set_test_filter(getenv("SL_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
