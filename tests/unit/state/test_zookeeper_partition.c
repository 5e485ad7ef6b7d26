/* labels: functional zookeeper
 * timeout: 180 */
/*
 * An ensemble whose leader is cut off from the other members, with a client of its own on its side.
 * Each member runs in a network namespace, all joined by a bridge in the test's:
 *
 *     10.77.0.1 --\
 *     10.77.0.2 ---+-- bridge 10.77.0.254 (the test)
 *     10.77.0.3 --/
 */
#include "base/log.h"
#include "state/lock.h"
#include "state/store_kit.h"
#include "state/url.h"
#include "state/zookeeper.h"
#include "state/zookeeper_kit.h"

#include "state/child_kit.h"

/* Calls of the one who is cut off are given up; all others may take long. */
enum { SESSION_MS = 6000, CUT_OFF_CALL_MS = 1500 };

static struct zk_ensemble ensemble;

/* Runs `ip ...`; true when it worked. */
static bool
ip(const char *format, ...)
{
    char command[256];
    va_list args;
    size_t used = (size_t)snprintf(command, sizeof(command), "ip ");
    va_start(args, format);
    vsnprintf(command + used, sizeof(command) - used, format, args);
    va_end(args);
    strcat(command, " 2>/dev/null");
    return system(command) == 0;
}

/* Of the process that holds a member's network: makes it, and waits for its end. */
static void
hold_network(const char *argument, int in, int out)
{
    char word;
    (void)argument;
    tell(out, unshare(CLONE_NEWNET) == 0 ? 'N' : 'S');
    while (read(in, &word, 1) == 1) {
        int member = word - '0';
        bool is_up = ip("link set lo up") && ip("addr add 10.77.0.%d/24 dev w%d", member, member) &&
                     ip("link set w%d up", member);
        tell(out, is_up ? 'U' : 'S');
    }
}

static bool
write_map(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return is_written;
}

/* A network of our own; without the right to one, as the only user of a name space. */
static bool
leave_network(void)
{
    char map[32];
    if (unshare(CLONE_NEWNET) == 0) {
        return true;
    }
    snprintf(map, sizeof(map), "0 %u 1", (unsigned)getuid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 &&
           write_map("/proc/self/setgroups", "deny") && write_map("/proc/self/uid_map", map);
}

/* False where namespaces, or `ip`, are not to be had. */
static bool
make_networks(struct child *holders)
{
    if (!leave_network() || !ip("link set lo up") || !ip("link add br0 type bridge") ||
        !ip("addr add 10.77.0.254/24 dev br0") || !ip("link set br0 up")) {
        return false;
    }
    bool is_good = true;
    for (int i = 0; i < ZK_MEMBERS_MAX; i++) {
        struct child *holder = &holders[i];
        child_start(holder, hold_network, "");
        is_good &= child_read(holder) == 'N' &&
                   ip("link add v%d type veth peer name w%d", i + 1, i + 1) &&
                   ip("link set w%d netns %d", i + 1, (int)holder->pid) &&
                   ip("link set v%d master br0", i + 1) && ip("link set v%d up", i + 1);
        tell(holder->to_child, (char)('1' + i));
        is_good &= child_read(holder) == 'U';
        snprintf(ensemble.members[i].host, sizeof(ensemble.members[i].host), "10.77.0.%d", i + 1);
        ensemble.members[i].network = holder->pid;
    }
    return is_good;
}

static struct sl_state_store *
open_url(const char *text, uint64_t timeout_ms)
{
    struct sl_state_url url;
    struct sl_zookeeper_options options = {.session_timeout_ms = SESSION_MS};
    struct sl_state_options store_options = {.timeout_ms = timeout_ms};
    const struct sl_state_executor *executor = sl_state_runner_executor(kit_runner);
    assert_int_equal(sl_state_url_parse(text, &url), 0);
    kit_open_stores++;
    return sl_state_store_new(sl_zookeeper_backend_new(&url, executor, &options), executor,
                              &store_options);
}

struct lock_log {
    int done;
    int status;
};

static void
on_lock_event(void *ctx, enum sl_state_lock_event event)
{
    (void)ctx;
    (void)event;
}

static void
on_lock_done(void *ctx, int status)
{
    struct lock_log *log = ctx;
    log->done++;
    log->status = status;
}

/* Takes the lock, however long servers can not be reached or somebody else has it. */
static int
take_lock(struct sl_state_lock *lock, struct lock_log *log)
{
    do {
        *log = (struct lock_log){0};
        sl_state_lock_acquire(lock, 10000, on_lock_done, log);
        wait_count(&log->done, 1);
    } while (log->status == SL_EUNAVAIL || log->status == SL_ETIMEOUT);
    return log->status;
}

static char
write_plan(struct sl_state_lock *lock, const char *value, int32_t version)
{
    struct outcome outcome = {0};
    struct sl_state_op op = sl_state_op_set("/plan", value, strlen(value), version);
    sl_state_lock_commit(lock, &op, 1, on_outcome, &outcome);
    int status = wait_outcome(&outcome);
    outcome_destroy(&outcome);
    switch (status) {
    case 0:
        return 'W';
    case SL_EFENCED:
        return 'F';
    case SL_EUNAVAIL:
    case SL_ETIMEOUT:
        return 'U';
    default:
        return 'X';
    }
}

/* On the leader's side, and without a way to another member: takes the lock, then writes under it
 * whenever it is told to, and says what became of it. argument: "PID URL". */
static void
write_on_the_leader_s_side(const char *argument, int in, int out)
{
    struct lock_log log = {0};
    char word;
    sl_log_configure("error");
    if (!zk_enter_network((pid_t)atoi(argument))) {
        _exit(1);
    }
    kit_runner = sl_state_runner_new();
    struct sl_state_store *store = open_url(strchr(argument, ' ') + 1, CUT_OFF_CALL_MS);
    struct sl_state_lock *lock = sl_state_lock_new(store, "/locks/t", "aside", on_lock_event, &log);
    if (take_lock(lock, &log) != 0) {
        _exit(1);
    }
    char said;
    do {
        said = write_plan(lock, "aside", SL_STATE_ANY_VERSION);
    } while (said == 'U');
    tell(out, said);
    while (read(in, &word, 1) == 1) {
        if (word == '?') {
            tell(out, sl_state_store_is_safe(store) ? 'Y' : 'N');
        } else {
            tell(out, write_plan(lock, "stale", SL_STATE_ANY_VERSION));
        }
    }
}

static char
ask(const struct child *child, char word)
{
    tell(child->to_child, word);
    return child_read(child);
}

static void
test_zk5_a_leader_that_is_cut_off_leads_nobody_astray(void **state)
{
    (void)state;
    struct lock_log log = {0};
    struct child aside;
    char url[256];
    char argument[256];
    int leader = zk_leader(&ensemble);
    snprintf(argument, sizeof(argument), "%d zookeeper://%s:%d/test",
             (int)ensemble.members[leader].network, ensemble.members[leader].host,
             ensemble.members[leader].client_port);
    kit_runner = sl_state_runner_new();
    zk_hosts(&ensemble, url + sprintf(url, "zookeeper://"), sizeof(url) - 32);
    strcat(url, "/test");
    struct sl_state_store *store = open_url(url, KIT_WAIT_MS);
    assert_int_equal(do_create(store, "/plan", "first", 0), 0);
    close_store(store);
    child_start(&aside, write_on_the_leader_s_side, argument);
    assert_int_equal(child_read(&aside), 'W');
    store = open_url(url, KIT_WAIT_MS);
    assert_value(store, "/plan", "aside");
    struct sl_state_lock *lock = sl_state_lock_new(store, "/locks/t", "test", on_lock_event, &log);
    sl_state_lock_acquire(lock, 0, on_lock_done, &log);
    wait_count(&log.done, 1);
    assert_int_equal(log.status, SL_ECONFLICT);

    assert_true(ip("link set v%d nomaster", leader + 1));
    uint64_t start = sl_clock_mono_ms(sl_clock_system());
    /* The others elect a leader, who ends the session of the one aside: the lock is ours. */
    assert_int_equal(take_lock(lock, &log), 0);
    print_message("lock taken %d ms after its holder was cut off with the leader\n",
                  (int)(sl_clock_mono_ms(sl_clock_system()) - start));
    assert_int_equal(write_plan(lock, "ours", SL_STATE_ANY_VERSION), 'W');
    /* The holder aside has noticed, and its writes come to nothing, answered in their time. */
    assert_int_equal(ask(&aside, '?'), 'N');
    assert_int_equal(ask(&aside, 'W'), 'U');
    assert_value(store, "/plan", "ours");

    /* Joined again it is told that it lost the lock, before it can change anything. */
    assert_true(ip("link set v%d master br0", leader + 1));
    char said;
    do {
        said = ask(&aside, 'W');
    } while (said == 'U');
    assert_int_equal(said, 'F');
    assert_value(store, "/plan", "ours");
    child_kill(&aside);
    sl_state_lock_free(lock);
    close_store(store);
    sl_state_runner_free(kit_runner);
}

int
main(void)
{
    struct child holders[ZK_MEMBERS_MAX];
    if (!zk_is_installed()) {
        printf("skipped: package zookeeper is not installed\n");
        return 0;
    }
    sl_log_configure(getenv("SL_LOG"));
    zk_prepare(&ensemble, ZK_MEMBERS_MAX);
    if (!make_networks(holders)) {
        printf("skipped: network namespaces are not permitted here, or `ip` is missing\n");
        zk_stop(&ensemble);
        return 0;
    }
    zk_start_prepared(&ensemble);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zk5_a_leader_that_is_cut_off_leads_nobody_astray),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    zk_stop(&ensemble);
    for (int i = 0; i < ZK_MEMBERS_MAX; i++) {
        child_kill(&holders[i]);
    }
    return failed;
}
