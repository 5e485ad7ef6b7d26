/* labels: short */
/* The memory backend: what every backend does, then ZooKeeper's sessions and lost answers in
 * virtual time. */
#include "state/memory.h"

#include "state/conformance.c"

static struct sl_manual_clock manual;
static struct sl_memory_server *server;
static SL_VEC(struct sl_state_backend *) backends;
/* Of the random test under way, to be printed when it fails. */
static uint64_t seed_now;

static int
fixture_setup(void **state)
{
    (void)state;
    sl_manual_clock_create(&manual, 1700000000000);
    kit_runner = sl_state_runner_virtual_new(&manual);
    server = sl_memory_server_new(sl_state_runner_executor(kit_runner), 42);
    struct sl_memory_faults faults = {.delay_min_ms = 1, .delay_max_ms = 3};
    sl_memory_server_set_faults(server, &faults);
    sl_memory_server_set_session_timeout(server, 3000);
    return 0;
}

static int
fixture_teardown(void **state)
{
    (void)state;
    if (kit_open_stores > 0) {
        print_error("failed with seed %d\n", (int)seed_now);
        kit_open_stores = 0;
        return 0;
    }
    sl_memory_server_free(server);
    /* Nothing of the closed stores is left in time. */
    assert_int_equal(sl_state_runner_timer_count(kit_runner), 0);
    sl_state_runner_free(kit_runner);
    sl_vec_destroy(&backends);
    return 0;
}

static struct sl_state_store *
open_seeded(uint64_t seed)
{
    const struct sl_state_executor *executor = sl_state_runner_executor(kit_runner);
    struct sl_state_backend *backend = sl_memory_backend_new(server, executor);
    struct sl_state_options options = {.seed = seed};
    sl_vec_push(&backends, backend);
    kit_open_stores++;
    return sl_state_store_new(backend, executor, &options);
}

static struct sl_state_store *
fixture_open(void)
{
    return open_seeded(backends.count + 1);
}

static void
fixture_expire(struct sl_state_store *store)
{
    sl_memory_server_expire(server, sl_state_store_session(store));
}

static struct sl_state_backend *
last_backend(void)
{
    return sl_vec_last(&backends);
}

/*
 * Lost answers. Each write is broken before and after it is carried out; the caller must get the
 * truth, and the write must be there exactly once.
 */

static const enum sl_memory_break both_breaks[] = {SL_MEMORY_BREAK_BEFORE, SL_MEMORY_BREAK_AFTER};

static void
test_zk6_lost_answer_of_a_create_is_looked_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_size(both_breaks); i++) {
        struct sl_state_store *store = fixture_open();
        struct outcome outcome = {0};
        char path[16];
        snprintf(path, sizeof(path), "/c%zu", i);
        assert_int_equal(do_get(store, "/", &outcome), 0);
        sl_memory_backend_break_next(last_backend(), both_breaks[i]);
        assert_int_equal(do_create(store, path, "mine", 0), 0);
        assert_value(store, path, "mine");
        sl_memory_backend_break_next(last_backend(), both_breaks[i]);
        assert_int_equal(do_create(store, path, "twice", 0), SL_EEXIST);
        assert_value(store, path, "mine");
        outcome_destroy(&outcome);
        close_store(store);
    }
}

static void
test_zk6_lost_answer_of_a_sequential_create_leaves_one_node(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    assert_int_equal(do_create(store, "/q", "", 0), 0);
    for (size_t i = 0; i < array_size(both_breaks); i++) {
        sl_memory_backend_break_next(last_backend(), both_breaks[i]);
        assert_int_equal(do_create_bytes(store, "/q/n-", "", 0,
                                         SL_STATE_SEQUENTIAL | SL_STATE_EPHEMERAL, &outcome),
                         0);
        char path[1024];
        strcpy(path, outcome.path);
        assert_int_equal(do_children(store, "/q", &outcome), 0);
        assert_int_equal(outcome.child_count, 1);
        assert_string_equal(outcome.children[0], sl_state_path_name(path));
        assert_int_equal(do_delete(store, path, 0), 0);
    }
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_zk6_lost_answer_of_a_set_is_looked_up(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    assert_int_equal(do_create(store, "/s", "0", 0), 0);
    for (size_t i = 0; i < array_size(both_breaks); i++) {
        int32_t version = (int32_t)i;
        sl_memory_backend_break_next(last_backend(), both_breaks[i]);
        assert_int_equal(do_set_bytes(store, "/s", "x", 1, version, &outcome), 0);
        assert_int_equal(outcome.stat.version, version + 1);
        assert_int_equal(do_get(store, "/s", &outcome), 0);
        assert_int_equal(outcome.stat.version, version + 1);
        sl_memory_backend_break_next(last_backend(), both_breaks[i]);
        assert_int_equal(do_set(store, "/s", "y", version), SL_ECONFLICT);
    }
    /* Without an expected version only the own mark tells; a write that did not happen is not
     * repeated, since it could undo somebody's newer one. */
    sl_memory_backend_break_next(last_backend(), SL_MEMORY_BREAK_AFTER);
    assert_int_equal(do_set(store, "/s", "any", SL_STATE_ANY_VERSION), 0);
    sl_memory_backend_break_next(last_backend(), SL_MEMORY_BREAK_BEFORE);
    assert_int_equal(do_set_bytes(store, "/s", "lost", 4, SL_STATE_ANY_VERSION, &outcome),
                     SL_ETIMEOUT);
    assert_value(store, "/s", "any");
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_zk6_lost_answer_of_a_delete_is_looked_up(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    for (size_t i = 0; i < array_size(both_breaks); i++) {
        assert_int_equal(do_create(store, "/d", "", 0), 0);
        sl_memory_backend_break_next(last_backend(), both_breaks[i]);
        assert_int_equal(do_delete(store, "/d", 0), 0);
        assert_missing(store, "/d");
    }
    close_store(store);
}

static void
test_zk6_lost_answer_of_a_transaction_is_looked_up(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    assert_int_equal(do_create(store, "/plan", "0", 0), 0);
    assert_int_equal(do_create(store, "/guard", "", 0), 0);
    for (size_t i = 0; i < array_size(both_breaks); i++) {
        struct sl_state_op ops[] = {
            sl_state_op_check("/guard", SL_STATE_ANY_VERSION),
            sl_state_op_set("/plan", "n", 1, (int32_t)i),
            sl_state_op_create(i == 0 ? "/a" : "/b", "", 0, 0),
        };
        sl_memory_backend_break_next(last_backend(), both_breaks[i]);
        assert_int_equal(do_multi(store, ops, array_size(ops), &outcome), 0);
        assert_int_equal(outcome.op_count, array_size(ops));
        assert_int_equal(do_get(store, "/plan", &outcome), 0);
        assert_int_equal(outcome.stat.version, (int)i + 1);
        assert_value(store, i == 0 ? "/a" : "/b", "");
        sl_memory_backend_break_next(last_backend(), both_breaks[i]);
        assert_int_equal(do_multi(store, ops, array_size(ops), &outcome), SL_ECONFLICT);
        assert_int_equal(outcome.failed, 1);
    }
    /* Deletes and checks leave no mark; a second attempt fails by itself. */
    for (size_t i = 0; i < array_size(both_breaks); i++) {
        struct sl_state_op ops[] = {
            sl_state_op_check("/guard", 0),
            sl_state_op_delete(i == 0 ? "/a" : "/b", 0),
        };
        sl_memory_backend_break_next(last_backend(), both_breaks[i]);
        assert_int_equal(do_multi(store, ops, array_size(ops), &outcome), 0);
        assert_missing(store, i == 0 ? "/a" : "/b");
    }
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_zk6_lost_answers_of_a_lock_leave_no_ghost(void **state)
{
    (void)state;
    struct lock_log log;
    struct sl_state_store *store = fixture_open();
    struct sl_state_backend *backend = last_backend();
    struct outcome outcome = {0};
    for (int i = 0; i < 4; i++) {
        struct sl_state_lock *lock = sl_state_lock_new(store, "/locks/t", "o", on_lock_event, &log);
        assert_int_equal(do_children(store, "/", &outcome), 0);
        if (i > 0) {
            sl_memory_backend_break_next(backend, both_breaks[i % 2]);
        }
        assert_int_equal(acquire_now(lock, &log, 5000), 0);
        sl_memory_backend_break_next(backend, both_breaks[i / 2]);
        release(lock);
        sl_state_lock_free(lock);
        assert_int_equal(do_children(store, "/locks/t", &outcome), 0);
        assert_int_equal(outcome.child_count, 0);
    }
    outcome_destroy(&outcome);
    close_store(store);
}

/* A create that is given up is carried out later: the node is deleted by its GUID. */
static void
test_zk6_an_attempt_that_is_given_up_is_deleted_by_guid(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct sl_state_backend *backend = last_backend();
    struct sl_state_store *other = fixture_open();
    struct lock_log log;
    struct outcome outcome = {0};
    assert_int_equal(do_create(store, "/locks/t", "", SL_STATE_PARENTS), 0);
    struct sl_state_lock *lock = sl_state_lock_new(store, "/locks/t", "o", on_lock_event, &log);
    sl_memory_backend_cut(backend, SL_MEMORY_CUT_TO_CLIENT);
    assert_int_equal(acquire_now(lock, &log, 100), SL_ETIMEOUT);
    assert_int_equal(do_children(other, "/locks/t", &outcome), 0);
    assert_int_equal(outcome.child_count, 1);
    sl_memory_backend_cut(backend, SL_MEMORY_CUT_NONE);
    while (outcome.child_count > 0) {
        assert_int_equal(do_children(other, "/locks/t", &outcome), 0);
    }
    assert_int_equal(acquire_now(lock, &log, 5000), 0);
    sl_state_lock_free(lock);
    outcome_destroy(&outcome);
    close_store(store);
    close_store(other);
}

/* The pieces of a writer that is slow to put its list in place are swept away by another: its
 * transaction is refused, instead of leaving a value without its pieces. */
static void
test_pieces_that_are_swept_fail_their_writer(void **state)
{
    (void)state;
    enum { SIZE = 1200 * 1024 };
    struct sl_state_store *writer = fixture_open();
    struct sl_state_backend *backend = last_backend();
    struct sl_state_store *other = fixture_open();
    struct outcome outcome = {0};
    struct outcome swept = {0};
    uint8_t *bytes = pattern_new(SIZE, 1);
    assert_int_equal(do_create(writer, "/big", "small", 0), 0);
    assert_int_equal(do_get(other, "/", &swept), 0);
    sl_state_set(writer, "/big", bytes, SIZE, 0, on_outcome, &outcome);
    const struct sl_tree *tree = sl_memory_server_tree(server);
    for (bool has_all = false; !has_all;) {
        assert_true(sl_state_runner_step(kit_runner, UINT64_MAX));
        struct sl_tree_node *chunks = sl_tree_find(tree, SL_STATE_PIECES_PATH);
        size_t at = 0;
        struct sl_map_bytes_entry *folder =
            chunks != NULL ? sl_map_bytes_next(&chunks->children, &at) : NULL;
        has_all = folder != NULL && ((struct sl_tree_node *)folder->value)->children.count == 3;
    }
    sl_memory_backend_cut(backend, SL_MEMORY_CUT_TO_SERVER);
    outcome_destroy(&swept);
    sl_state_sweep(other, "/big", on_outcome, &swept);
    assert_int_equal(wait_outcome(&swept), 0);
    assert_int_equal(outcome.calls, 0);
    sl_memory_backend_cut(backend, SL_MEMORY_CUT_NONE);
    assert_int_equal(wait_outcome(&outcome), SL_ECONFLICT);
    assert_non_null(strstr(outcome.message, "another writer"));
    assert_value(other, "/big", "small");
    assert_int_equal(do_set_bytes(writer, "/big", bytes, SIZE, 0, NULL), 0);
    assert_pattern(other, "/big", SIZE, 1);
    sl_free(bytes);
    outcome_destroy(&outcome);
    outcome_destroy(&swept);
    close_store(writer);
    close_store(other);
}

/*
 * Sessions (reference 1.5)
 */

static void
test_zk5_B9_suspended_is_not_expired(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct sl_state_backend *backend = last_backend();
    struct session_log log;
    session_log_start(&log, store);
    assert_int_equal(do_create(store, "/e", "", SL_STATE_EPHEMERAL), 0);
    uint64_t session = sl_state_store_session(store);
    sl_memory_backend_cut(backend, SL_MEMORY_CUT_BOTH);
    sl_state_runner_run_for(kit_runner, 2900);
    assert_int_equal(log.suspended, 1);
    assert_int_equal(log.expired, 0);
    assert_false(sl_state_store_is_safe(store));
    sl_memory_backend_cut(backend, SL_MEMORY_CUT_NONE);
    wait_count(&log.resumed, 1);
    assert_int_equal(sl_state_store_session(store), session);
    assert_value(store, "/e", "");
    assert_int_equal(log.expired, 0);
    sl_state_store_unlisten(&log.listener);
    close_store(store);
}

static void
test_zk5_cut_off_longer_than_the_session_expires_when_it_is_back(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct sl_state_backend *backend = last_backend();
    struct sl_state_store *other = fixture_open();
    struct session_log log;
    assert_int_equal(do_create(store, "/e", "", SL_STATE_EPHEMERAL), 0);
    session_log_start(&log, store);
    sl_memory_backend_cut(backend, SL_MEMORY_CUT_BOTH);
    sl_state_runner_run_for(kit_runner, 3500);
    assert_missing(other, "/e");
    /* The client can not know yet. */
    assert_int_equal(log.expired, 0);
    assert_int_equal(log.suspended, 1);
    sl_memory_backend_cut(backend, SL_MEMORY_CUT_NONE);
    wait_count(&log.expired, 1);
    wait_count(&log.connected, 1);
    sl_state_store_unlisten(&log.listener);
    close_store(store);
    close_store(other);
}

static void
test_zk5_session_survives_a_server_that_is_down_longer_than_it(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct session_log log;
    struct view view = {0};
    session_log_start(&log, store);
    assert_int_equal(do_create(store, "/e", "1", SL_STATE_EPHEMERAL), 0);
    struct sl_state_watch *watch = sl_state_watch_new(store, SL_STATE_GET, "/e", on_view, &view);
    wait_view(&view, 0, "1", 0);
    sl_memory_server_set_serving(server, false);
    sl_state_runner_run_for(kit_runner, 4000);
    assert_int_equal(log.suspended, 1);
    sl_memory_server_set_serving(server, true);
    wait_count(&log.resumed, 1);
    assert_int_equal(log.expired, 0);
    assert_value(store, "/e", "1");
    assert_int_equal(do_set(store, "/e", "2", 0), 0);
    wait_view(&view, 0, "2", 0);
    sl_state_watch_free(watch);
    sl_state_store_unlisten(&log.listener);
    close_store(store);
}

static void
test_an_answer_that_a_broken_connection_held_back_stays_lost(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    assert_int_equal(do_create(store, "/a", "1", 0), 0);
    sl_memory_backend_cut(last_backend(), SL_MEMORY_CUT_TO_CLIENT);
    sl_state_get(store, "/a", on_outcome, &outcome);
    sl_state_runner_run_for(kit_runner, 20);
    sl_memory_server_set_serving(server, false);
    sl_state_runner_run_for(kit_runner, 20);
    sl_memory_backend_cut(last_backend(), SL_MEMORY_CUT_NONE);
    sl_state_runner_run_for(kit_runner, 20);
    assert_int_equal(outcome.calls, 0);
    sl_memory_server_set_serving(server, true);
    sl_state_runner_run_for(kit_runner, 100);
    assert_int_equal(outcome.calls, 1);
    assert_int_equal(outcome.status, 0);
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_zk5_calls_wait_for_a_connection_and_say_so_when_there_is_none(void **state)
{
    (void)state;
    sl_memory_server_set_serving(server, false);
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    const struct sl_clock *clock = &manual.clock;
    uint64_t start = sl_clock_mono_ms(clock);
    assert_int_equal(do_get(store, "/", &outcome), SL_EUNAVAIL);
    assert_int_equal(sl_clock_mono_ms(clock) - start, SL_STATE_TIMEOUT_MS);
    assert_string_equal(outcome.message, "state manager: memory: no connection within 5000 ms");
    outcome_destroy(&outcome);
    sl_state_get(store, "/", on_outcome, &outcome);
    sl_state_runner_run_for(kit_runner, 1000);
    assert_int_equal(outcome.calls, 0);
    sl_memory_server_set_serving(server, true);
    assert_int_equal(wait_outcome(&outcome), 0);
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_zk5_no_answer_ends_in_a_timeout_that_admits_doubt(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct sl_state_backend *backend = last_backend();
    struct outcome outcome = {0};
    sl_memory_server_set_session_timeout(server, 60000);
    struct sl_state_store *patient = fixture_open();
    struct sl_state_backend *patient_backend = last_backend();
    assert_int_equal(do_get(patient, "/", &outcome), 0);
    sl_memory_backend_cut(patient_backend, SL_MEMORY_CUT_TO_CLIENT);
    assert_int_equal(do_create_bytes(patient, "/done", "", 0, 0, &outcome), SL_ETIMEOUT);
    assert_non_null(strstr(outcome.message, "may have been carried out"));
    assert_value(store, "/done", "");
    sl_memory_backend_cut(backend, SL_MEMORY_CUT_NONE);
    outcome_destroy(&outcome);
    close_store(patient);
    close_store(store);
}

static void
test_zk7_lease_ends_before_the_session_can(void **state)
{
    (void)state;
    struct sl_state_store *stores[2] = {fixture_open(), NULL};
    struct sl_state_backend *backend = last_backend();
    struct lock_log logs[2] = {0};
    stores[1] = fixture_open();
    struct sl_state_lock *locks[2];
    for (int i = 0; i < 2; i++) {
        locks[i] = sl_state_lock_new(stores[i], "/locks/t", "o", on_lock_event, &logs[i]);
    }
    assert_int_equal(acquire_now(locks[0], &logs[0], 5000), 0);
    acquire(locks[1], &logs[1], SL_STATE_FOREVER);
    /* An idle holder stays in contact. */
    sl_state_runner_run_for(kit_runner, 30000);
    assert_int_equal(logs[0].suspended, 0);
    assert_true(sl_state_store_is_safe(stores[0]));
    /* Only answers are lost: the client library notices nothing for two thirds of the time-out. */
    sl_memory_backend_cut(backend, SL_MEMORY_CUT_BOTH);
    uint64_t cut_ms = sl_clock_mono_ms(&manual.clock);
    wait_count(&logs[0].suspended, 1);
    uint64_t suspended_ms = sl_clock_mono_ms(&manual.clock) - cut_ms;
    assert_true(suspended_ms <= 3000 - 1000 - 150);
    assert_false(sl_state_store_is_safe(stores[0]));
    assert_int_equal(logs[1].done, 0);
    /* The other one has it when the session ends, and not before the holder holds back. */
    wait_count(&logs[1].done, 1);
    uint64_t granted_ms = sl_clock_mono_ms(&manual.clock) - cut_ms;
    assert_true(granted_ms > suspended_ms);
    assert_true(granted_ms <= 3000 + 1000);
    assert_int_equal(logs[0].lost, 0);
    sl_memory_backend_cut(backend, SL_MEMORY_CUT_NONE);
    wait_count(&logs[0].lost, 1);
    for (int i = 0; i < 2; i++) {
        sl_state_lock_free(locks[i]);
        close_store(stores[i]);
    }
}

/* A crash says nothing to anybody: the lock is free when the session's time is over. */
static void
test_zk5_crashed_holder_loses_the_lock_with_its_session(void **state)
{
    (void)state;
    struct sl_state_store *stores[2] = {fixture_open(), NULL};
    struct sl_state_backend *backend = last_backend();
    struct lock_log logs[2] = {0};
    stores[1] = fixture_open();
    struct sl_state_lock *locks[2];
    for (int i = 0; i < 2; i++) {
        locks[i] = sl_state_lock_new(stores[i], "/locks/t", "o", on_lock_event, &logs[i]);
    }
    assert_int_equal(acquire_now(locks[0], &logs[0], 5000), 0);
    acquire(locks[1], &logs[1], SL_STATE_FOREVER);
    sl_state_runner_run_for(kit_runner, 100);
    sl_memory_backend_crash(backend);
    uint64_t crash_ms = sl_clock_mono_ms(&manual.clock);
    wait_count(&logs[1].done, 1);
    assert_true(sl_clock_mono_ms(&manual.clock) - crash_ms <= 3000 + 1000);
    bool is_closed = false;
    sl_state_store_close(stores[0], on_kit_closed, &is_closed);
    sl_state_lock_free(locks[0]);
    assert_true(sl_state_runner_run_until(kit_runner, &is_closed, KIT_WAIT_MS));
    kit_open_stores--;
    sl_state_lock_free(locks[1]);
    close_store(stores[1]);
}

/*
 * All of it at once: adders by compare-and-set and by transactions with a sequential node, under
 * random losses, delays and expiries. Whatever a caller was told must be true of the tree.
 */

struct worker {
    struct sl_state_store *store;
    int index;
    int tries;
    int added;
    int doubtful;
    int done;
};

static void worker_read(struct worker *worker);

static void
on_worker_multi(void *ctx, int status, const struct sl_state_result *result)
{
    struct worker *worker = ctx;
    (void)result;
    worker->added += status == 0;
    worker->doubtful += status == SL_ETIMEOUT;
    assert_true(status == 0 || status == SL_ECONFLICT || status == SL_ETIMEOUT ||
                status == SL_EUNAVAIL);
    if (--worker->tries > 0) {
        worker_read(worker);
    } else {
        worker->done = 1;
    }
}

static void
on_worker_read(void *ctx, int status, const struct sl_state_result *result)
{
    struct worker *worker = ctx;
    if (status != 0) {
        if (--worker->tries > 0) {
            worker_read(worker);
        } else {
            worker->done = 1;
        }
        return;
    }
    char text[32];
    snprintf(text, sizeof(text), "%.*s", (int)result->size, (const char *)result->value);
    snprintf(text, sizeof(text), "%d", atoi(text) + 1);
    struct sl_state_op ops[] = {
        sl_state_op_set("/counter", text, strlen(text), result->stat.version),
        sl_state_op_create("/log/n-", "", 0, SL_STATE_SEQUENTIAL),
    };
    sl_state_multi(worker->store, ops, 2, on_worker_multi, worker);
}

static void
worker_read(struct worker *worker)
{
    sl_state_get(worker->store, "/counter", on_worker_read, worker);
}

static void
run_random_faults(uint64_t seed)
{
    struct worker workers[3] = {0};
    int added = 0;
    int doubtful = 0;
    struct outcome outcome = {0};
    struct sl_state_store *observer = open_seeded(seed * 10);
    assert_int_equal(do_create(observer, "/counter", "0", 0), 0);
    assert_int_equal(do_create(observer, "/log", "", 0), 0);
    struct sl_memory_faults faults = {
        .lose_request_ppm = 60000,
        .lose_reply_ppm = 60000,
        .expire_ppm = 10000,
        .delay_min_ms = 1,
        .delay_max_ms = 20,
    };
    sl_memory_server_set_faults(server, &faults);
    for (size_t i = 0; i < array_size(workers); i++) {
        workers[i].store = open_seeded(seed * 10 + 1 + i);
        workers[i].tries = 40;
        worker_read(&workers[i]);
    }
    for (size_t i = 0; i < array_size(workers); i++) {
        struct count_goal goal = {&workers[i].done, 1};
        assert_true(wait_for(is_count_reached, &goal, 1000000));
        added += workers[i].added;
        doubtful += workers[i].doubtful;
    }
    memset(&faults, 0, sizeof(faults));
    sl_memory_server_set_faults(server, &faults);
    assert_int_equal(do_get(observer, "/counter", &outcome), 0);
    int counted = atoi(sl_buf_str(&outcome.value));
    assert_in_range(counted, added, added + doubtful);
    assert_int_equal(outcome.stat.version, counted);
    const struct sl_tree_node *log = sl_tree_find(sl_memory_server_tree(server), "/log");
    assert_int_equal(log->children.count, counted);
    assert_true(added > 20);
    outcome_destroy(&outcome);
    for (size_t i = 0; i < array_size(workers); i++) {
        close_store(workers[i].store);
    }
    close_store(observer);
}

static void
test_random_faults_lose_and_repeat_nothing(void **state)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        fixture_teardown(state);
        fixture_setup(state);
        seed_now = seed;
        run_random_faults(seed);
    }
}

/* Locks under the same trouble: never two holders whose guarded writes both succeed out of order,
 * and the token of what is written never falls. */
struct contender {
    struct sl_state_store *store;
    struct sl_state_lock *lock;
    int rounds;
    int done;
    int written;
    uint64_t *highest;
    uint64_t token;
};

static void contender_go(struct contender *contender);

static void
contender_next(struct contender *contender)
{
    if (--contender->rounds == 0) {
        contender->done = 1;
    } else {
        contender_go(contender);
    }
}

static void
on_contender_released(void *ctx, int status)
{
    (void)status;
    contender_next(ctx);
}

static void
on_contender_written(void *ctx, int status, const struct sl_state_result *result)
{
    struct contender *contender = ctx;
    (void)result;
    if (status == 0) {
        /* Answers come late, so what is compared is what the tree holds. */
        contender->written++;
    }
    if (sl_state_lock_is_held(contender->lock)) {
        sl_state_lock_release(contender->lock, on_contender_released, contender);
    } else {
        contender_next(contender);
    }
}

static void
on_contender_locked(void *ctx, int status)
{
    struct contender *contender = ctx;
    if (status != 0) {
        contender_next(contender);
        return;
    }
    char text[32];
    contender->token = sl_state_lock_token(contender->lock);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)contender->token);
    struct sl_state_op op = sl_state_op_set("/token", text, strlen(text), SL_STATE_ANY_VERSION);
    sl_state_lock_commit(contender->lock, &op, 1, on_contender_written, contender);
}

static void
contender_go(struct contender *contender)
{
    sl_state_lock_acquire(contender->lock, 20000, on_contender_locked, contender);
}

static void
on_token_seen(void *ctx, int status, const struct sl_state_result *result)
{
    uint64_t *highest = ctx;
    char text[32];
    assert_int_equal(status, 0);
    snprintf(text, sizeof(text), "%.*s", (int)result->size, (const char *)result->value);
    uint64_t token = strtoull(text, NULL, 10);
    assert_true(token >= *highest);
    *highest = token;
}

static void
test_random_faults_never_let_a_token_fall(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        fixture_teardown(state);
        fixture_setup(state);
        seed_now = seed;
        struct contender contenders[3] = {0};
        uint64_t highest = 0;
        int written = 0;
        struct sl_state_store *observer = open_seeded(seed * 10);
        assert_int_equal(do_create(observer, "/token", "0", 0), 0);
        struct sl_state_watch *watch =
            sl_state_watch_new(observer, SL_STATE_GET, "/token", on_token_seen, &highest);
        struct sl_memory_faults faults = {40000, 40000, 15000, 1, 20};
        sl_memory_server_set_faults(server, &faults);
        for (size_t i = 0; i < array_size(contenders); i++) {
            struct contender *contender = &contenders[i];
            contender->store = open_seeded(seed * 10 + 1 + i);
            contender->lock = sl_state_lock_new(contender->store, "/locks/t", "c", NULL, NULL);
            contender->rounds = 10;
            contender_go(contender);
        }
        for (size_t i = 0; i < array_size(contenders); i++) {
            struct count_goal goal = {&contenders[i].done, 1};
            assert_true(wait_for(is_count_reached, &goal, 10000000));
            written += contenders[i].written;
        }
        assert_true(written > 5);
        assert_true(highest > 0);
        memset(&faults, 0, sizeof(faults));
        sl_memory_server_set_faults(server, &faults);
        sl_state_watch_free(watch);
        for (size_t i = 0; i < array_size(contenders); i++) {
            sl_state_lock_free(contenders[i].lock);
            close_store(contenders[i].store);
        }
        close_store(observer);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        CONFORMANCE_TESTS,
        CONFORMANCE_TEST(test_zk6_lost_answer_of_a_create_is_looked_up),
        CONFORMANCE_TEST(test_zk6_lost_answer_of_a_sequential_create_leaves_one_node),
        CONFORMANCE_TEST(test_zk6_lost_answer_of_a_set_is_looked_up),
        CONFORMANCE_TEST(test_zk6_lost_answer_of_a_delete_is_looked_up),
        CONFORMANCE_TEST(test_zk6_lost_answer_of_a_transaction_is_looked_up),
        CONFORMANCE_TEST(test_zk6_lost_answers_of_a_lock_leave_no_ghost),
        CONFORMANCE_TEST(test_zk6_an_attempt_that_is_given_up_is_deleted_by_guid),
        CONFORMANCE_TEST(test_pieces_that_are_swept_fail_their_writer),
        CONFORMANCE_TEST(test_zk5_B9_suspended_is_not_expired),
        CONFORMANCE_TEST(test_zk5_cut_off_longer_than_the_session_expires_when_it_is_back),
        CONFORMANCE_TEST(test_zk5_session_survives_a_server_that_is_down_longer_than_it),
        CONFORMANCE_TEST(test_an_answer_that_a_broken_connection_held_back_stays_lost),
        CONFORMANCE_TEST(test_zk5_calls_wait_for_a_connection_and_say_so_when_there_is_none),
        CONFORMANCE_TEST(test_zk5_no_answer_ends_in_a_timeout_that_admits_doubt),
        CONFORMANCE_TEST(test_zk7_lease_ends_before_the_session_can),
        CONFORMANCE_TEST(test_zk5_crashed_holder_loses_the_lock_with_its_session),
        CONFORMANCE_TEST(test_random_faults_lose_and_repeat_nothing),
        CONFORMANCE_TEST(test_random_faults_never_let_a_token_fall),
    };
    cmocka_set_test_filter(getenv("SL_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
