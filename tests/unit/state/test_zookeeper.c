/* labels: functional
 * timeout: 240 */
/* The ZooKeeper backend on real servers: what every backend does, on one server and on an ensemble
 * that loses a member in the middle; then the rows of the reference. */
#include <pthread.h>
#include <sys/resource.h>

#include <zookeeper/zookeeper.h>

#include "state/zookeeper.h"
#include "state/zookeeper_kit.h"

#include "state/child_kit.h"
#include "state/conformance.c"

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

static uint64_t
now_ms(void)
{
    return sl_clock_mono_ms(sl_clock_system());
}

static void
kill_leader(void)
{
    for (int i = 0; i < ensemble.count; i++) {
        if (ensemble.members[i].pid != 0 && zk_is_leader(&ensemble, i)) {
            zk_kill_member(&ensemble, i);
            return;
        }
    }
    fail_msg("no leader to kill");
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
    return 0;
}

static int
fixture_teardown(void **state)
{
    (void)state;
    sl_vec_destroy(&opened);
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
    entry.store = sl_state_store_new(entry.backend, executor, NULL);
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
};

static void
on_raw_event(zhandle_t *zh, int type, int zk_state, const char *path, void *ctx)
{
    struct raw *raw = (struct raw *)(uintptr_t)zoo_get_context(zh);
    (void)path;
    (void)ctx;
    if (type == ZOO_SESSION_EVENT && zk_state == ZOO_CONNECTED_STATE) {
        pthread_mutex_lock(&raw->mutex);
        raw->is_connected = true;
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
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    raw->zh = zookeeper_init(hosts, on_raw_event, SESSION_MS, id, raw, 0);
    assert_non_null(raw->zh);
    pthread_mutex_lock(&raw->mutex);
    while (!raw->is_connected) {
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
    };
    const struct CMUnitTest three_members[] = {
        CONFORMANCE_TESTS,
    };
    cmocka_set_test_filter(getenv("SL_TEST_FILTER"));
    int failed = cmocka_run_group_tests(standalone, start_one, stop_all);
    failed += cmocka_run_group_tests(three_members, start_three, stop_all);
    return failed;
}
