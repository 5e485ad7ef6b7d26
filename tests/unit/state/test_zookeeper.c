/* labels: functional zookeeper
 * timeout: 240 */
/* The ZooKeeper backend on real servers: what every backend does, on one server and on an ensemble
 * that loses a member in the middle; then the rows of the reference. */
#include <pthread.h>
#include <sys/resource.h>

#include <zookeeper/zookeeper.h>

#include "base/log.h"
#include "base/random.h"
#include "state/memory.h"
#include "state/zookeeper.h"
#include "state/zookeeper_kit.h"

#include "state/child_kit.h"
#include "state/conformance.c"

/* What the client library forgets of requests that are under way when it is closed is its own leak.
 * Leaks of our code are reported all the same. ThreadSanitizer needs no such word. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *
__lsan_default_suppressions(void)
{
    return "leak:libzookeeper_mt.so\n";
}

enum { SESSION_MS = 2000 };

static struct zk_ensemble ensemble;
static int test_number;
/* Of the tests on the ensemble: the leader is killed before the test of this number. */
static int kill_at = -1;

struct opened {
    struct sl_state_store *store;
    struct sl_state_backend *backend;
};
static SL_VEC(struct opened) opened;
/* Of the stores that are opened next. */
static struct sl_state_options store_options;

static uint64_t
now_ms(void)
{
    return sl_clock_mono_ms(sl_clock_system());
}

static void
kill_leader(void)
{
    zk_kill_member(&ensemble, zk_leader(&ensemble));
}

static int
fixture_setup(void **state)
{
    (void)state;
    test_number++;
    if (test_number == kill_at) {
        kill_leader();
    }
    kit_runner = sl_state_runner_new();
    /* An election takes its time on a slow machine; it is not the limit that is tested there. */
    store_options.timeout_ms = ensemble.count > 1 ? KIT_WAIT_MS - 2000 : 0;
    return 0;
}

static int
fixture_teardown(void **state)
{
    (void)state;
    sl_vec_destroy(&opened);
    memset(&store_options, 0, sizeof(store_options));
    if (kit_open_stores > 0) {
        kit_open_stores = 0;
        return 0;
    }
    assert_int_equal(sl_state_runner_timer_count(kit_runner), 0);
    sl_state_runner_free(kit_runner);
    return 0;
}

static struct sl_state_store *
open_url(const char *text, const struct sl_zookeeper_options *options)
{
    struct sl_state_url url;
    const struct sl_state_executor *executor = sl_state_runner_executor(kit_runner);
    if (sl_state_url_parse(text, &url) != 0) {
        fail_msg("%s", sl_err_last()->msg);
    }
    struct opened entry;
    entry.backend = sl_zookeeper_backend_new(&url, executor, options);
    entry.store = sl_state_store_new(entry.backend, executor, &store_options);
    sl_vec_push(&opened, entry);
    kit_open_stores++;
    return entry.store;
}

/* The URL of this test's own root. */
static void
test_url(char *text, size_t size)
{
    char hosts[256];
    zk_hosts(&ensemble, hosts, sizeof(hosts));
    snprintf(text, size, "zookeeper://%s/test/n%d", hosts, test_number);
}

static struct sl_state_store *
fixture_open(void)
{
    char url[512];
    struct sl_zookeeper_options options = {.session_timeout_ms = SESSION_MS};
    test_url(url, sizeof(url));
    return open_url(url, &options);
}

/*
 * A raw client, for what the backend hides.
 */

struct raw {
    zhandle_t *zh;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_connected;
    /* The session that was asked for had ended before. */
    bool is_expired;
};

static void
on_raw_event(zhandle_t *zh, int type, int zk_state, const char *path, void *ctx)
{
    struct raw *raw = (struct raw *)(uintptr_t)zoo_get_context(zh);
    (void)path;
    (void)ctx;
    if (type == ZOO_SESSION_EVENT &&
        (zk_state == ZOO_CONNECTED_STATE || zk_state == ZOO_EXPIRED_SESSION_STATE)) {
        pthread_mutex_lock(&raw->mutex);
        raw->is_connected |= zk_state == ZOO_CONNECTED_STATE;
        raw->is_expired |= zk_state == ZOO_EXPIRED_SESSION_STATE;
        pthread_cond_signal(&raw->changed);
        pthread_mutex_unlock(&raw->mutex);
    }
}

static void
raw_open(struct raw *raw, const clientid_t *id)
{
    char hosts[256];
    memset(raw, 0, sizeof(*raw));
    pthread_mutex_init(&raw->mutex, NULL);
    pthread_cond_init(&raw->changed, NULL);
    zk_hosts(&ensemble, hosts, sizeof(hosts));
    zoo_set_debug_level((ZooLogLevel)0);
    raw->zh = zookeeper_init(hosts, on_raw_event, SESSION_MS, id, raw, 0);
    assert_non_null(raw->zh);
    pthread_mutex_lock(&raw->mutex);
    while (!raw->is_connected && !raw->is_expired) {
        pthread_cond_wait(&raw->changed, &raw->mutex);
    }
    pthread_mutex_unlock(&raw->mutex);
}

static void
raw_close(struct raw *raw)
{
    zookeeper_close(raw->zh);
    pthread_cond_destroy(&raw->changed);
    pthread_mutex_destroy(&raw->mutex);
}

struct session_goal {
    const struct sl_state_store *store;
    uint64_t session;
};

static bool
is_session_over(void *ctx)
{
    const struct session_goal *goal = ctx;
    return sl_state_store_session(goal->store) != goal->session;
}

static const struct sl_state_backend *
backend_of(const struct sl_state_store *store)
{
    for (size_t i = 0; i < opened.count; i++) {
        if (opened.items[i].store == store) {
            return opened.items[i].backend;
        }
    }
    fail_msg("not a store of this test");
    return NULL;
}

/*
 * A second client with the session of the first one, which is closed: the session is over. The
 * first client may be back before the second one says its farewell, which then comes to nothing; so
 * it is tried until it works.
 */
static void
fixture_expire(struct sl_state_store *store)
{
    struct outcome outcome = {0};
    clientid_t id;
    struct raw raw;
    assert_int_equal(do_get(store, "/", &outcome), 0);
    outcome_destroy(&outcome);
    struct session_goal goal = {store, sl_state_store_session(store)};
    assert_int_equal(sl_zookeeper_client_id(backend_of(store), &id.client_id, id.passwd), 0);
    for (int i = 0; i < 20 && !is_session_over(&goal); i++) {
        raw_open(&raw, &id);
        raw_close(&raw);
        wait_for(is_session_over, &goal, 500);
    }
    assert_true(is_session_over(&goal));
}

/*
 * Rows of the reference: 1.4 data
 */

static char *
raw_path(const char *name)
{
    return sl_asprintf("/test/n%d%s", test_number, name);
}

static void
test_zk4_nodes_of_others_are_told_from_ours(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    struct raw raw;
    assert_int_equal(do_get(store, "/", &outcome), 0);
    raw_open(&raw, NULL);
    char *foreign = raw_path("/foreign");
    char *null = raw_path("/null");
    assert_int_equal(zoo_create(raw.zh, foreign, "hello", 5, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0),
                     ZOK);
    /* A node without data has length -1. */
    assert_int_equal(zoo_create(raw.zh, null, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
    raw_close(&raw);
    assert_int_equal(do_get(store, "/foreign", &outcome), SL_EPROTO);
    assert_non_null(strstr(outcome.message, "/foreign"));
    assert_int_equal(do_get(store, "/null", &outcome), 0);
    assert_int_equal(outcome.value.size, 0);
    assert_int_equal(do_children(store, "/", &outcome), 0);
    assert_int_equal(outcome.child_count, 2);
    assert_int_equal(do_set(store, "/foreign", "ours now", 0), 0);
    assert_value(store, "/foreign", "ours now");
    sl_free(foreign);
    sl_free(null);
    outcome_destroy(&outcome);
    close_store(store);
}

/*
 * 1.5 sessions
 */

enum { CHILD_SESSION_MS = 1000 };

/* A child that takes a lock, says so, waits for a word, and then writes under the lock it may have
 * lost meanwhile. */
static void
hold_and_write(const char *argument, int in, int out)
{
    struct lock_log log;
    struct outcome outcome = {0};
    struct sl_zookeeper_options options = {.session_timeout_ms = CHILD_SESSION_MS};
    char word;
    kit_runner = sl_state_runner_new();
    memset(&opened, 0, sizeof(opened));
    struct sl_state_store *store = open_url(argument, &options);
    struct sl_state_lock *lock = sl_state_lock_new(store, "/locks/t", "child", on_lock_event, &log);
    if (acquire_now(lock, &log, KIT_WAIT_MS) != 0) {
        _exit(1);
    }
    tell(out, 'L');
    if (read(in, &word, 1) != 1) {
        _exit(1);
    }
    /* The version is the one that the plan will have by then: only the lock can refuse it. */
    struct sl_state_op op = sl_state_op_set("/plan", "stale", 5, 1);
    sl_state_lock_commit(lock, &op, 1, on_outcome, &outcome);
    tell(out, wait_outcome(&outcome) == SL_EFENCED ? 'F' : 'X');
}

static void
test_check2_lock_is_free_after_the_session_of_who_was_killed(void **state)
{
    (void)state;
    struct child child;
    struct lock_log log;
    char url[512];
    test_url(url, sizeof(url));
    child_start(&child, hold_and_write, url);
    assert_int_equal(child_read(&child), 'L');
    struct sl_state_store *store = fixture_open();
    struct sl_state_lock *lock = sl_state_lock_new(store, "/locks/t", "test", on_lock_event, &log);
    assert_int_equal(acquire_now(lock, &log, 0), SL_ECONFLICT);
    acquire(lock, &log, KIT_WAIT_MS);
    struct outcome outcome = {0};
    while (outcome.child_count < 2) {
        assert_int_equal(do_children(store, "/locks/t", &outcome), 0);
    }
    uint64_t start = now_ms();
    child_kill(&child);
    wait_count(&log.done, 1);
    uint64_t took = now_ms() - start;
    print_message("lock taken %d ms after kill -9, session of %d ms\n", (int)took,
                  CHILD_SESSION_MS);
    assert_int_equal(log.status, 0);
    sl_state_lock_free(lock);
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_zk5_stopped_holder_is_fenced_when_it_goes_on(void **state)
{
    (void)state;
    struct child child;
    struct lock_log log;
    struct outcome outcome = {0};
    char url[512];
    test_url(url, sizeof(url));
    child_start(&child, hold_and_write, url);
    assert_int_equal(child_read(&child), 'L');
    struct sl_state_store *store = fixture_open();
    assert_int_equal(do_create(store, "/plan", "v0", 0), 0);
    struct sl_state_lock *lock = sl_state_lock_new(store, "/locks/t", "test", on_lock_event, &log);
    kill(child.pid, SIGSTOP);
    assert_int_equal(acquire_now(lock, &log, KIT_WAIT_MS), 0);
    struct sl_state_op op = sl_state_op_set("/plan", "v1", 2, 0);
    sl_state_lock_commit(lock, &op, 1, on_outcome, &outcome);
    assert_int_equal(wait_outcome(&outcome), 0);
    /* The child runs on before it learns anything. */
    tell(child.to_child, 'G');
    kill(child.pid, SIGCONT);
    assert_int_equal(child_read(&child), 'F');
    assert_value(store, "/plan", "v1");
    child_kill(&child);
    sl_state_lock_free(lock);
    outcome_destroy(&outcome);
    close_store(store);
}

static void
restart_server(void)
{
    zk_start_member(&ensemble, 0);
    zk_wait_member(&ensemble, 0);
}

/* The session goes on, or is over; false while neither is known. */
static bool
is_session_decided(void *ctx)
{
    const struct session_log *log = ctx;
    return log->resumed > 0 || log->expired > 0;
}

/*
 * The server's session clocks start while it boots, before it answers: on a slow machine a short
 * session is over by then, which is not what is tested. True when the session outlived that.
 */
static bool
outlives_a_restart(uint64_t session_ms)
{
    char url[512];
    struct sl_zookeeper_options options = {.session_timeout_ms = session_ms};
    struct session_log log;
    struct view view = {0};
    test_url(url, sizeof(url));
    test_number += 1000;
    struct sl_state_store *store = open_url(url, &options);
    assert_int_equal(do_create(store, "/e", "1", SL_STATE_EPHEMERAL), 0);
    struct sl_state_watch *watch = sl_state_watch_new(store, SL_STATE_GET, "/e", on_view, &view);
    wait_view(&view, 0, "1", 0);
    session_log_start(&log, store);
    uint64_t session = sl_state_store_session(store);
    zk_kill_member(&ensemble, 0);
    wait_count(&log.suspended, 1);
    assert_false(sl_state_store_is_safe(store));
    sl_state_runner_run_for(kit_runner, session_ms + 200);
    assert_int_equal(log.expired, 0);
    restart_server();
    assert_true(wait_for(is_session_decided, &log, KIT_WAIT_MS));
    bool is_alive = log.expired == 0;
    if (is_alive) {
        assert_int_equal(sl_state_store_session(store), session);
        assert_value(store, "/e", "1");
        assert_int_equal(do_set(store, "/e", "2", 0), 0);
        wait_view(&view, 0, "2", 0);
        assert_int_equal(log.expired, 0);
    }
    sl_state_watch_free(watch);
    sl_state_store_unlisten(&log.listener);
    close_store(store);
    return is_alive;
}

static void
test_zk5_session_survives_a_server_that_is_down_longer_than_it(void **state)
{
    (void)state;
    uint64_t session_ms = SESSION_MS;
    int number = test_number;
    while (!outlives_a_restart(session_ms)) {
        session_ms *= 2;
        assert_true(session_ms <= 16 * SESSION_MS);
    }
    test_number = number;
}

static uint64_t
cpu_ms(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

static void
test_zk5_nothing_listening_is_told_and_does_not_spin(void **state)
{
    (void)state;
    char url[128];
    char place[64];
    struct outcome outcome = {0};
    int port = ZK_CLIENT_PORT + ZK_MEMBERS_MAX;
    store_options.timeout_ms = 800;
    snprintf(url, sizeof(url), "zookeeper://%s:%d/x", ensemble.members[0].host, port);
    snprintf(place, sizeof(place), "zookeeper at %s:%d", ensemble.members[0].host, port);
    uint64_t cpu = cpu_ms();
    uint64_t start = now_ms();
    struct sl_state_store *store = open_url(url, NULL);
    assert_int_equal(do_create_bytes(store, "/a", "", 0, 0, &outcome), SL_EUNAVAIL);
    assert_true(now_ms() - start >= 800);
    assert_non_null(strstr(outcome.message, place));
    assert_true(cpu_ms() - cpu < 300);
    close_store(store);
    outcome_destroy(&outcome);
}

static void
test_zk6_create_on_a_frozen_server_is_there_once(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct session_log log;
    struct outcome outcome = {0};
    struct outcome plain = {0};
    store_options.timeout_ms = 0;
    assert_int_equal(do_create(store, "/q", "", 0), 0);
    session_log_start(&log, store);
    zk_signal(&ensemble, 0, SIGSTOP);
    sl_state_create(store, "/q/n-", "", 0, SL_STATE_SEQUENTIAL, on_outcome, &outcome);
    sl_state_create(store, "/plain", "mine", 4, 0, on_outcome, &plain);
    /* The library gives up after two thirds of the time-out; the outcome is unknown then. */
    wait_count(&log.suspended, 1);
    zk_signal(&ensemble, 0, SIGCONT);
    assert_int_equal(wait_outcome(&outcome), 0);
    assert_int_equal(wait_outcome(&plain), 0);
    char path[1024];
    strcpy(path, outcome.path);
    assert_int_equal(do_children(store, "/q", &outcome), 0);
    assert_int_equal(outcome.child_count, 1);
    assert_string_equal(outcome.children[0], sl_state_path_name(path));
    assert_value(store, "/plain", "mine");
    sl_state_store_unlisten(&log.listener);
    outcome_destroy(&outcome);
    outcome_destroy(&plain);
    close_store(store);
}

static void
test_zk5_close_with_a_frozen_server_blocks_nobody(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    bool is_closed = false;
    assert_int_equal(do_get(store, "/", &outcome), 0);
    zk_signal(&ensemble, 0, SIGSTOP);
    sl_state_store_close(store, on_kit_closed, &is_closed);
    assert_true(sl_state_runner_run_until(kit_runner, &is_closed, KIT_WAIT_MS));
    kit_open_stores--;
    zk_signal(&ensemble, 0, SIGCONT);
    outcome_destroy(&outcome);
}

static void
test_zk5_B20_bad_host_among_good_ones_does_no_harm(void **state)
{
    (void)state;
    char url[256];
    struct outcome outcome = {0};
    snprintf(url, sizeof(url), "zookeeper://no-such-host.invalid:2181,%s:%d/test/n%d",
             ensemble.members[0].host, ensemble.members[0].client_port, test_number);
    struct sl_state_store *store = open_url(url, NULL);
    assert_int_equal(do_create(store, "/a", "", 0), 0);
    close_store(store);
    store_options.timeout_ms = 500;
    store = open_url("zookeeper://no-such-host.invalid:2181/x", NULL);
    assert_int_equal(do_create_bytes(store, "/a", "", 0, 0, &outcome), SL_EUNAVAIL);
    assert_non_null(strstr(outcome.message, "no-such-host.invalid"));
    outcome_destroy(&outcome);
    close_store(store);
}

/*
 * 1.8 descriptors, 1.10 rights
 */

static int
count_descriptors(bool *all_close_on_exec)
{
    int count = 0;
    *all_close_on_exec = true;
    for (int fd = 3; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags >= 0) {
            count++;
            *all_close_on_exec &= (flags & FD_CLOEXEC) != 0;
        }
    }
    return count;
}

/* A connection that the library attempts is marked when it is there. */
static bool
are_all_close_on_exec(void *ctx)
{
    bool is_good = false;
    (void)ctx;
    count_descriptors(&is_good);
    return is_good;
}

static void
test_s17_descriptors_are_close_on_exec_and_given_back(void **state)
{
    (void)state;
    bool is_good = false;
    struct outcome outcome = {0};
    int before = count_descriptors(&is_good);
    struct sl_state_store *store = fixture_open();
    struct session_log log;
    assert_int_equal(do_get(store, "/", &outcome), 0);
    assert_true(count_descriptors(&is_good) > before);
    assert_true(wait_for(are_all_close_on_exec, NULL, KIT_WAIT_MS));
    session_log_start(&log, store);
    zk_kill_member(&ensemble, 0);
    wait_count(&log.suspended, 1);
    restart_server();
    assert_true(wait_for(is_session_decided, &log, KIT_WAIT_MS));
    assert_int_equal(do_get(store, "/", &outcome), 0);
    assert_true(wait_for(are_all_close_on_exec, NULL, KIT_WAIT_MS));
    fixture_expire(store);
    assert_int_equal(do_get(store, "/", &outcome), 0);
    sl_state_store_unlisten(&log.listener);
    close_store(store);
    assert_int_equal(count_descriptors(&is_good), before);
    outcome_destroy(&outcome);
}

static void
expect_denied(const char *url, const char *digest, const char *why)
{
    struct outcome outcome = {0};
    struct sl_zookeeper_options options = {.session_timeout_ms = SESSION_MS, .digest = digest};
    struct sl_state_store *store = open_url(url, &options);
    assert_int_equal(do_get(store, "/secret", &outcome), SL_EUNAVAIL);
    if (strstr(outcome.message, why) == NULL) {
        print_error("message is: %s\n", outcome.message);
    }
    assert_non_null(strstr(outcome.message, why));
    assert_null(strstr(outcome.message, "sesame"));
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_s12_nodes_are_for_their_user_from_the_root_down(void **state)
{
    (void)state;
    char url[512];
    struct raw raw;
    struct sl_zookeeper_options options = {.session_timeout_ms = SESSION_MS,
                                           .digest = "keeper:open sesame"};
    snprintf(url, sizeof(url), "zookeeper://%s:%d/safe%d", ensemble.members[0].host,
             ensemble.members[0].client_port, test_number);
    struct sl_state_store *store = open_url(url, &options);
    assert_int_equal(do_create(store, "/secret", "x", 0), 0);
    assert_int_equal(do_create(store, "/lower/deep", "x", SL_STATE_PARENTS), 0);
    struct outcome outcome = {0};
    struct sl_state_op op = sl_state_op_create("/multi", "x", 1, 0);
    assert_int_equal(do_multi(store, &op, 1, &outcome), 0);
    expect_denied(url, NULL, "denied");
    expect_denied(url, "keeper:wrong", "denied");

    raw_open(&raw, NULL);
    char root[32];
    char path[64];
    char buffer[64];
    snprintf(root, sizeof(root), "/safe%d", test_number);
    static const char *const names[] = {"secret", "lower", "multi", "_streamlua"};
    for (size_t i = 0; i < array_size(names); i++) {
        int len = sizeof(buffer);
        snprintf(path, sizeof(path), "%s/%s", root, names[i]);
        assert_int_equal(zoo_get(raw.zh, path, 0, buffer, &len, NULL), ZNOAUTH);
        assert_int_equal(zoo_set(raw.zh, path, "y", 1, -1), ZNOAUTH);
        assert_int_equal(zoo_delete(raw.zh, path, -1), ZNOAUTH);
    }
    snprintf(path, sizeof(path), "%s/new", root);
    assert_int_equal(zoo_create(raw.zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZNOAUTH);
    /* The root's own parent is open, so the root is never empty. */
    assert_int_equal(zoo_delete(raw.zh, root, -1), ZNOTEMPTY);

    /* A root that everybody may change is no place for secrets. */
    snprintf(path, sizeof(path), "/open%d", test_number);
    assert_int_equal(zoo_create(raw.zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
    raw_close(&raw);
    snprintf(url, sizeof(url), "zookeeper://%s:%d/open%d", ensemble.members[0].host,
             ensemble.members[0].client_port, test_number);
    expect_denied(url, "keeper:open sesame", "changed by everybody");
    outcome_destroy(&outcome);
    close_store(store);
}

/*
 * The memory server against the real one: the same operations must have the same results.
 */

enum { SIDES = 2, CLIENTS = 2, CROSS_OPS = 250 };

static struct sl_memory_server *memory_server;

struct side {
    struct sl_state_store *clients[CLIENTS];
};

static struct sl_state_store *
open_side(int side, uint64_t seed)
{
    struct sl_state_store *store;
    store_options.seed = seed;
    if (side == 0) {
        store = fixture_open();
    } else {
        const struct sl_state_executor *executor = sl_state_runner_executor(kit_runner);
        store = sl_state_store_new(sl_memory_backend_new(memory_server, executor), executor,
                                   &store_options);
        kit_open_stores++;
    }
    store_options.seed = 0;
    return store;
}

/* Not at the root, which has a child of the backend's own in ZooKeeper. */
static const char *const cross_paths[] = {"/w/a",   "/w/b",   "/w/a/x",
                                          "/w/a/y", "/w/b/z", "/w/a/x/deep"};

static struct sl_state_op
draw_op(struct sl_random *random, char *value, size_t size)
{
    const char *path = cross_paths[sl_random_below(random, array_size(cross_paths))];
    int32_t version = (int32_t)sl_random_below(random, 4) - 1;
    uint32_t flags = 0;
    snprintf(value, size, "v%d", (int)sl_random_below(random, 1000));
    switch (sl_random_below(random, 8)) {
    case 0:
    case 1:
    case 2:
        flags |= sl_random_below(random, 4) == 0 ? SL_STATE_EPHEMERAL : 0;
        flags |= sl_random_below(random, 4) == 0 ? SL_STATE_SEQUENTIAL : 0;
        return sl_state_op_create(path, value, strlen(value), flags);
    case 3:
    case 4:
        return sl_state_op_set(path, value, strlen(value), version);
    case 5:
    case 6:
        return sl_state_op_delete(path, version);
    default:
        return sl_state_op_check(path, version);
    }
}

static void
compare_outcomes(const struct outcome *real, const struct outcome *memory)
{
    assert_int_equal(real->status, memory->status);
    assert_string_equal(real->path, memory->path);
    assert_int_equal(real->child_count, memory->child_count);
    for (size_t i = 0; i < real->child_count && i < KIT_CHILDREN_MAX; i++) {
        assert_string_equal(real->children[i], memory->children[i]);
    }
    assert_int_equal(real->op_count, memory->op_count);
    for (size_t i = 0; i < real->op_count; i++) {
        assert_int_equal(real->op_status[i], memory->op_status[i]);
        if (real->status == 0) {
            assert_string_equal(real->op_path[i], memory->op_path[i]);
        }
    }
    assert_int_equal(real->value.size, memory->value.size);
    assert_memory_equal(real->value.data, memory->value.data, real->value.size);
}

static void
compare_stats(const struct sl_state_stat *real, const struct sl_state_stat *memory)
{
    assert_int_equal(real->version, memory->version);
    assert_int_equal(real->children_version, memory->children_version);
    assert_int_equal(real->child_count, memory->child_count);
    assert_int_equal(real->owner != 0, memory->owner != 0);
    assert_int_equal(real->created_zxid == real->modified_zxid,
                     memory->created_zxid == memory->modified_zxid);
    assert_int_equal(real->modified_zxid < real->children_zxid,
                     memory->modified_zxid < memory->children_zxid);
}

static void
cross_call(struct sl_state_store *store, uint64_t draw, struct sl_random *random,
           struct outcome *outcome)
{
    struct sl_state_op ops[4];
    char values[4][16];
    outcome_destroy(outcome);
    if (draw < 3) {
        size_t count = 1 + sl_random_below(random, 4);
        for (size_t i = 0; i < count; i++) {
            ops[i] = draw_op(random, values[i], sizeof(values[i]));
        }
        sl_state_multi(store, ops, count, on_outcome, outcome);
    } else if (draw < 4) {
        const char *path = cross_paths[sl_random_below(random, array_size(cross_paths))];
        sl_state_children(store, path, on_outcome, outcome);
    } else if (draw < 5) {
        const char *path = cross_paths[sl_random_below(random, array_size(cross_paths))];
        sl_state_get(store, path, on_outcome, outcome);
    } else {
        ops[0] = draw_op(random, values[0], sizeof(values[0]));
        switch (ops[0].kind) {
        case SL_STATE_CREATE:
            sl_state_create(store, ops[0].path, ops[0].value, ops[0].size, ops[0].flags, on_outcome,
                            outcome);
            break;
        case SL_STATE_SET:
            sl_state_set(store, ops[0].path, ops[0].value, ops[0].size, ops[0].version, on_outcome,
                         outcome);
            break;
        default:
            sl_state_delete(store, ops[0].path, ops[0].version, on_outcome, outcome);
            break;
        }
    }
    wait_outcome(outcome);
}

static void
run_cross_check(uint64_t seed)
{
    struct side sides[SIDES];
    struct outcome outcomes[SIDES] = {0};
    struct sl_random draws;
    sl_random_seed(&draws, seed);
    for (int side = 0; side < SIDES; side++) {
        for (uint64_t i = 0; i < CLIENTS; i++) {
            sides[side].clients[i] = open_side(side, seed * 100 + i + 1);
        }
    }
    for (int side = 0; side < SIDES; side++) {
        assert_int_equal(do_create(sides[side].clients[0], "/w", "", 0), 0);
    }
    for (int at = 0; at < CROSS_OPS; at++) {
        uint64_t client = sl_random_below(&draws, CLIENTS);
        uint64_t draw = sl_random_below(&draws, 12);
        bool ends_session = sl_random_below(&draws, 50) == 0;
        for (int side = 0; side < SIDES; side++) {
            struct sl_random random;
            sl_random_seed(&random, seed * 1000000 + (uint64_t)at);
            if (ends_session) {
                close_store(sides[side].clients[client]);
                sides[side].clients[client] = open_side(side, seed * 100 + 10 + (uint64_t)at);
            }
            cross_call(sides[side].clients[client], draw, &random, &outcomes[side]);
        }
        compare_outcomes(&outcomes[0], &outcomes[1]);
        if (draw >= 3 && draw < 5 && outcomes[0].status == 0) {
            compare_stats(&outcomes[0].stat, &outcomes[1].stat);
        }
    }
    for (int side = 0; side < SIDES; side++) {
        for (size_t i = 0; i < CLIENTS; i++) {
            close_store(sides[side].clients[i]);
        }
        outcome_destroy(&outcomes[side]);
    }
}

static void
test_memory_server_does_as_the_real_one(void **state)
{
    (void)state;
    memory_server = sl_memory_server_new(sl_state_runner_executor(kit_runner), 7);
    for (uint64_t seed = 1; seed <= 8; seed++) {
        test_number += 1000;
        run_cross_check(seed);
        sl_memory_server_free(memory_server);
        memory_server = sl_memory_server_new(sl_state_runner_executor(kit_runner), 7);
    }
    test_number -= 8000;
    sl_memory_server_free(memory_server);
}

/*
 * The ensemble
 */

static void
test_member_killed_under_load_loses_and_repeats_nothing(void **state)
{
    (void)state;
    struct adder adders[3];
    enum { EACH = 60 };
    int doubts = 0;
    for (int i = 0; i < ensemble.count; i++) {
        if (ensemble.members[i].pid == 0) {
            zk_start_member(&ensemble, i);
            zk_wait_member(&ensemble, i);
        }
    }
    for (size_t i = 0; i < array_size(adders); i++) {
        adders[i] = (struct adder){.store = fixture_open(), .left = EACH};
    }
    assert_int_equal(do_create(adders[0].store, "/counter", "0", 0), 0);
    struct outcome outcome = {0};
    for (size_t i = 0; i < array_size(adders); i++) {
        /* Its member may not have heard of the node yet. */
        sl_state_sync(adders[i].store, on_outcome, &outcome);
        assert_int_equal(wait_outcome(&outcome), 0);
        outcome_destroy(&outcome);
        adder_read(&adders[i]);
    }
    while (outcome.stat.version < EACH / 2) {
        assert_int_equal(do_get(adders[0].store, "/counter", &outcome), 0);
    }
    kill_leader();
    for (size_t i = 0; i < array_size(adders); i++) {
        wait_count(&adders[i].done, 1);
        doubts += adders[i].doubts;
    }
    assert_int_equal(do_sync(adders[0].store), 0);
    assert_int_equal(do_get(adders[0].store, "/counter", &outcome), 0);
    /* An answer that is lost for good is one at most for each, and said to be in doubt. */
    assert_true(doubts <= (int)array_size(adders));
    int counted = atoi(sl_buf_str(&outcome.value));
    int known = (int)array_size(adders) * EACH;
    assert_true(counted >= known && counted <= known + doubts);
    outcome_destroy(&outcome);
    for (size_t i = 0; i < array_size(adders); i++) {
        close_store(adders[i].store);
    }
}

static int
start_one(void **state)
{
    (void)state;
    zk_start(&ensemble, 1);
    kill_at = -1;
    return 0;
}

static int
start_three(void **state)
{
    (void)state;
    zk_start(&ensemble, 3);
    test_number = 100;
    kill_at = test_number + 14;
    return 0;
}

static int
stop_all(void **state)
{
    (void)state;
    zk_stop(&ensemble);
    return 0;
}

int
main(void)
{
    if (!zk_is_installed()) {
        printf("skipped: package zookeeper is not installed\n");
        return 0;
    }
    const struct CMUnitTest standalone[] = {
        CONFORMANCE_TESTS,
        CONFORMANCE_TEST(test_zk4_nodes_of_others_are_told_from_ours),
        CONFORMANCE_TEST(test_check2_lock_is_free_after_the_session_of_who_was_killed),
        CONFORMANCE_TEST(test_zk5_stopped_holder_is_fenced_when_it_goes_on),
        CONFORMANCE_TEST(test_zk5_session_survives_a_server_that_is_down_longer_than_it),
        CONFORMANCE_TEST(test_zk5_nothing_listening_is_told_and_does_not_spin),
        CONFORMANCE_TEST(test_zk6_create_on_a_frozen_server_is_there_once),
        CONFORMANCE_TEST(test_zk5_close_with_a_frozen_server_blocks_nobody),
        CONFORMANCE_TEST(test_zk5_B20_bad_host_among_good_ones_does_no_harm),
        CONFORMANCE_TEST(test_s17_descriptors_are_close_on_exec_and_given_back),
        CONFORMANCE_TEST(test_s12_nodes_are_for_their_user_from_the_root_down),
        CONFORMANCE_TEST(test_memory_server_does_as_the_real_one),
    };
    const struct CMUnitTest three_members[] = {
        CONFORMANCE_TESTS,
        CONFORMANCE_TEST(test_member_killed_under_load_loses_and_repeats_nothing),
    };
    cmocka_set_test_filter(getenv("SL_TEST_FILTER"));
    sl_log_configure(getenv("SL_LOG"));
    int failed = cmocka_run_group_tests(standalone, start_one, stop_all);
    failed += cmocka_run_group_tests(three_members, start_three, stop_all);
    return failed;
}
