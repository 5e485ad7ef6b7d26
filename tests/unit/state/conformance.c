/*
 * What every backend must do, run by test_memory.c, test_localfs.c and test_zookeeper.c, each of
 * which includes this file and defines the fixture.
 */
#include "state/store_kit.h"

#include "state/election.h"
#include "state/leader.h"
#include "state/lock.h"
#include "state/presence.h"
#include "state/remove.h"
#include "state/watch.h"

/* Defined by the including test. */
static struct sl_state_store *fixture_open(void);
/* Ends the session of a store as its time-out would. */
static void fixture_expire(struct sl_state_store *store);

/*
 * Nodes
 */

static void
test_create_get_set_delete(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    assert_int_equal(do_create(store, "/a", "one", 0), 0);
    assert_int_equal(do_get(store, "/a", &outcome), 0);
    assert_string_equal(sl_buf_str(&outcome.value), "one");
    assert_int_equal(outcome.stat.version, 0);
    assert_int_equal(outcome.stat.owner, 0);
    assert_true(outcome.stat.created_zxid > 0);
    assert_int_equal(outcome.stat.created_zxid, outcome.stat.modified_zxid);
    uint64_t created = outcome.stat.created_zxid;
    assert_int_equal(do_set_bytes(store, "/a", "two", 3, 0, &outcome), 0);
    assert_int_equal(outcome.stat.version, 1);
    assert_int_equal(do_set(store, "/a", "three", SL_STATE_ANY_VERSION), 0);
    assert_int_equal(do_get(store, "/a", &outcome), 0);
    assert_string_equal(sl_buf_str(&outcome.value), "three");
    assert_int_equal(outcome.stat.version, 2);
    assert_int_equal(outcome.stat.created_zxid, created);
    assert_true(outcome.stat.modified_zxid > created);
    assert_int_equal(do_delete(store, "/a", 2), 0);
    assert_missing(store, "/a");
    assert_int_equal(do_create(store, "/a", "again", 0), 0);
    assert_int_equal(do_get(store, "/a", &outcome), 0);
    assert_int_equal(outcome.stat.version, 0);
    assert_true(outcome.stat.created_zxid > created);
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_values_are_any_bytes(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    static const uint8_t bytes[] = {0, 1, 0, 255, '\n', 0};
    assert_int_equal(do_create_bytes(store, "/bin", bytes, sizeof(bytes), 0, NULL), 0);
    assert_int_equal(do_get(store, "/bin", &outcome), 0);
    assert_int_equal(outcome.value.size, sizeof(bytes));
    assert_memory_equal(outcome.value.data, bytes, sizeof(bytes));
    assert_int_equal(do_create_bytes(store, "/empty", NULL, 0, 0, NULL), 0);
    assert_int_equal(do_get(store, "/empty", &outcome), 0);
    assert_int_equal(outcome.value.size, 0);
    assert_int_equal(do_get(store, "/", &outcome), 0);
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_errors_name_the_node(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    assert_int_equal(do_get(store, "/missing", &outcome), SL_ENOTFOUND);
    assert_non_null(strstr(outcome.message, "/missing"));
    assert_int_equal(do_create(store, "/no/parent", "", 0), SL_ENOTFOUND);
    assert_int_equal(do_set(store, "/missing", "", 0), SL_ENOTFOUND);
    assert_int_equal(do_delete(store, "/missing", 0), SL_ENOTFOUND);
    assert_int_equal(do_children(store, "/missing", &outcome), SL_ENOTFOUND);
    assert_int_equal(do_create(store, "/a", "", 0), 0);
    assert_int_equal(do_create(store, "/a", "", 0), SL_EEXIST);
    assert_int_equal(do_create(store, "/a/b", "", 0), 0);
    assert_int_equal(do_delete(store, "/a", SL_STATE_ANY_VERSION), SL_EEXIST);
    assert_int_equal(do_set_bytes(store, "/a", "", 0, 7, &outcome), SL_ECONFLICT);
    assert_non_null(strstr(outcome.message, "/a"));
    assert_int_equal(do_delete(store, "/a/b", 7), SL_ECONFLICT);
    assert_value(store, "/a/b", "");
    static const char *const bad[] = {"",     "a",       "/a/",  "//a",   "/a//b",
                                      "/a/.", "/../etc", "/a b", "/\x7f", "/\xc3\xa9"};
    for (size_t i = 0; i < array_size(bad); i++) {
        assert_int_equal(do_create(store, bad[i], "", 0), SL_EINVAL);
        assert_int_equal(do_get(store, bad[i], &outcome), SL_EINVAL);
    }
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_create_makes_parents(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    assert_int_equal(do_create(store, "/x/y/z", "deep", SL_STATE_PARENTS), 0);
    assert_value(store, "/x/y/z", "deep");
    assert_value(store, "/x/y", "");
    assert_int_equal(do_create(store, "/x/y/z", "deep", SL_STATE_PARENTS), SL_EEXIST);
    assert_int_equal(do_create(store, "/x/y/w", "wide", SL_STATE_PARENTS), 0);
    close_store(store);
}

static void
test_children_are_sorted_and_counted(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    assert_int_equal(do_create(store, "/p", "", 0), 0);
    assert_int_equal(do_children(store, "/p", &outcome), 0);
    assert_int_equal(outcome.child_count, 0);
    static const char *const names[] = {"/p/b", "/p/c", "/p/a", "/p/c/d"};
    for (size_t i = 0; i < array_size(names); i++) {
        assert_int_equal(do_create(store, names[i], "", 0), 0);
    }
    assert_int_equal(do_delete(store, "/p/b", 0), 0);
    assert_int_equal(do_children(store, "/p", &outcome), 0);
    assert_int_equal(outcome.child_count, 2);
    assert_string_equal(outcome.children[0], "a");
    assert_string_equal(outcome.children[1], "c");
    assert_int_equal(outcome.stat.child_count, 2);
    assert_int_equal(outcome.stat.children_version, 4);
    assert_int_equal(do_children(store, "/", &outcome), 0);
    assert_int_equal(outcome.child_count, 1);
    assert_string_equal(outcome.children[0], "p");
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_ephemeral_nodes_go_with_their_session(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct sl_state_store *other = fixture_open();
    struct outcome outcome = {0};
    assert_int_equal(do_create(store, "/e", "here", SL_STATE_EPHEMERAL), 0);
    assert_int_equal(do_sync(other), 0);
    assert_int_equal(do_get(other, "/e", &outcome), 0);
    assert_int_equal(outcome.stat.owner, sl_state_store_session(store));
    assert_int_not_equal(outcome.stat.owner, 0);
    assert_int_equal(do_create(store, "/e/child", "", 0), SL_EINVAL);
    assert_int_equal(do_create(other, "/e", "", SL_STATE_EPHEMERAL), SL_EEXIST);
    close_store(store);
    assert_missing(other, "/e");
    outcome_destroy(&outcome);
    close_store(other);
}

static void
test_sequential_nodes_count_up(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome first = {0};
    struct outcome outcome = {0};
    assert_int_equal(do_create(store, "/q", "", 0), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(do_create_bytes(store, "/q/n-", "v", 1, SL_STATE_SEQUENTIAL, &outcome), 0);
        assert_int_equal(sl_state_path_sequence(sl_state_path_name(outcome.path)), i);
        assert_value(store, outcome.path, "v");
        assert_int_equal(do_get(store, outcome.path, &first), 0);
        if (i < 2) {
            assert_int_equal(do_delete(store, outcome.path, 0), 0);
        }
    }
    uint64_t created = first.stat.created_zxid;
    assert_int_equal(do_delete(store, outcome.path, 0), 0);
    assert_int_equal(do_delete(store, "/q", 0), 0);
    assert_int_equal(do_create(store, "/q", "", 0), 0);
    assert_int_equal(do_create_bytes(store, "/q/n-", "v", 1, SL_STATE_SEQUENTIAL, &outcome), 0);
    /* The number starts again, the transaction id does not: that is why it is the token. */
    assert_int_equal(sl_state_path_sequence(sl_state_path_name(outcome.path)), 0);
    assert_int_equal(do_get(store, outcome.path, &first), 0);
    assert_true(first.stat.created_zxid > created);
    outcome_destroy(&first);
    outcome_destroy(&outcome);
    close_store(store);
}

/*
 * Transactions
 */

static void
test_multi_is_all_or_nothing(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    assert_int_equal(do_create(store, "/plan", "v0", 0), 0);
    assert_int_equal(do_create(store, "/phase", "old", 0), 0);
    struct sl_state_op good[] = {
        sl_state_op_check("/plan", 0),
        sl_state_op_set("/plan", "v1", 2, 0),
        sl_state_op_set("/phase", "new", 3, 0),
        sl_state_op_create("/log", "made", 4, 0),
        sl_state_op_create("/log/n-", "", 0, SL_STATE_SEQUENTIAL),
        sl_state_op_delete("/phase", 1),
    };
    assert_int_equal(do_multi(store, good, array_size(good), &outcome), 0);
    assert_int_equal(outcome.op_count, array_size(good));
    for (size_t i = 0; i < array_size(good); i++) {
        assert_int_equal(outcome.op_status[i], 0);
    }
    assert_value(store, "/plan", "v1");
    assert_value(store, "/log", "made");
    assert_value(store, outcome.op_path[4], "");
    assert_missing(store, "/phase");

    struct sl_state_op stale[] = {
        sl_state_op_create("/new", "", 0, 0),
        sl_state_op_set("/plan", "v2", 2, 0),
        sl_state_op_delete("/log", SL_STATE_ANY_VERSION),
    };
    assert_int_equal(do_multi(store, stale, array_size(stale), &outcome), SL_ECONFLICT);
    assert_non_null(strstr(outcome.message, "/plan"));
    assert_int_equal(outcome.failed, 1);
    assert_int_equal(outcome.op_status[0], 0);
    assert_int_equal(outcome.op_status[1], SL_ECONFLICT);
    assert_int_equal(outcome.op_status[2], SL_ECANCELED);
    assert_missing(store, "/new");
    assert_value(store, "/plan", "v1");

    struct sl_state_op missing[] = {
        sl_state_op_set("/plan", "v2", 2, 1),
        sl_state_op_check("/gone", SL_STATE_ANY_VERSION),
    };
    assert_int_equal(do_multi(store, missing, array_size(missing), &outcome), SL_ENOTFOUND);
    assert_int_equal(outcome.failed, 1);
    assert_value(store, "/plan", "v1");
    assert_int_equal(do_multi(store, NULL, 0, &outcome), SL_EINVAL);
    struct sl_state_op get = {.kind = SL_STATE_GET, .path = "/plan"};
    assert_int_equal(do_multi(store, &get, 1, &outcome), SL_EINVAL);
    outcome_destroy(&outcome);
    close_store(store);
}

static void
test_multi_one_of_two_writers_wins(void **state)
{
    (void)state;
    struct sl_state_store *stores[2] = {fixture_open(), fixture_open()};
    struct outcome outcomes[2] = {0};
    assert_int_equal(do_create(stores[0], "/plan", "0", 0), 0);
    for (int32_t version = 0; version < 10; version++) {
        int winners = 0;
        for (int i = 0; i < 2; i++) {
            struct sl_state_op ops[] = {
                sl_state_op_check("/plan", version),
                sl_state_op_set("/plan", i == 0 ? "a" : "b", 1, version),
            };
            outcome_destroy(&outcomes[i]);
            sl_state_multi(stores[i], ops, 2, on_outcome, &outcomes[i]);
        }
        for (int i = 0; i < 2; i++) {
            int status = wait_outcome(&outcomes[i]);
            if (status != SL_ECONFLICT) {
                assert_int_equal(status, 0);
            }
            winners += status == 0;
        }
        assert_int_equal(winners, 1);
        assert_value(stores[0], "/plan", outcomes[0].status == 0 ? "a" : "b");
    }
    outcome_destroy(&outcomes[0]);
    outcome_destroy(&outcomes[1]);
    close_store(stores[0]);
    close_store(stores[1]);
}

/*
 * Large values
 */

static uint8_t *
pattern_new(size_t size, uint8_t seed)
{
    uint8_t *bytes = sl_alloc(size);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(seed + i * 7 + (i >> 12));
    }
    return bytes;
}

static void
assert_pattern(struct sl_state_store *store, const char *path, size_t size, uint8_t seed)
{
    struct outcome outcome = {0};
    uint8_t *expected = pattern_new(size, seed);
    assert_int_equal(do_sync(store), 0);
    assert_int_equal(do_get(store, path, &outcome), 0);
    assert_int_equal(outcome.value.size, size);
    assert_memory_equal(outcome.value.data, expected, size);
    sl_free(expected);
    outcome_destroy(&outcome);
}

static bool
is_piece_count_one(void *ctx)
{
    struct outcome outcome = {0};
    int status = do_children(ctx, SL_STATE_PIECES_PATH, &outcome);
    size_t count = outcome.child_count;
    outcome_destroy(&outcome);
    return status == 0 && count == 1;
}

static void
test_large_values_are_kept_in_pieces(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct sl_state_store *reader = fixture_open();
    struct outcome outcome = {0};
    enum { SIZE = 1300 * 1024 };
    uint8_t *first = pattern_new(SIZE, 1);
    uint8_t *second = pattern_new(SIZE, 2);
    assert_int_equal(do_create_bytes(store, "/big", first, SIZE, 0, NULL), 0);
    assert_pattern(reader, "/big", SIZE, 1);
    assert_int_equal(do_set_bytes(store, "/big", second, SIZE, 5, NULL), SL_ECONFLICT);
    assert_pattern(reader, "/big", SIZE, 1);
    struct sl_state_op ops[] = {
        sl_state_op_set("/big", second, SIZE, 0),
        sl_state_op_create("/phase", "new", 3, 0),
    };
    assert_int_equal(do_multi(store, ops, 2, &outcome), 0);
    assert_int_equal(outcome.op_count, 2);
    assert_pattern(reader, "/big", SIZE, 2);
    assert_value(reader, "/phase", "new");
    /* The pieces of the first value, and of the refused one, are deleted in the background. */
    assert_true(wait_for(is_piece_count_one, reader, KIT_WAIT_MS));
    sl_state_remove(store, "/big", on_outcome, &outcome);
    outcome_destroy(&outcome);
    assert_int_equal(wait_outcome(&outcome), 0);
    assert_int_equal(do_children(store, SL_STATE_PIECES_PATH, &outcome), 0);
    assert_int_equal(outcome.child_count, 0);
    sl_free(first);
    sl_free(second);
    outcome_destroy(&outcome);
    close_store(reader);
    close_store(store);
}

static void
test_size_limits_are_checked_before_sending(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    size_t size = SL_STATE_NODE_BYTES_MAX;
    uint8_t *bytes = pattern_new(size, 3);
    assert_int_equal(do_create_bytes(store, "/e", bytes, size, SL_STATE_EPHEMERAL, &outcome),
                     SL_ELIMIT);
    assert_int_equal(
        do_create_bytes(store, "/v", bytes, (size_t)SL_STATE_VALUE_BYTES_MAX + 1, 0, &outcome),
        SL_ELIMIT);
    struct sl_state_op ops[SL_STATE_OPS_MAX + 1];
    for (size_t i = 0; i < array_size(ops); i++) {
        ops[i] = sl_state_op_check("/", SL_STATE_ANY_VERSION);
    }
    assert_int_equal(do_multi(store, ops, array_size(ops), &outcome), SL_EINVAL);
    for (int i = 0; i < 2; i++) {
        ops[i] = sl_state_op_create(i == 0 ? "/a" : "/b", bytes, 500 * 1024, SL_STATE_EPHEMERAL);
    }
    assert_int_equal(do_multi(store, ops, 2, &outcome), SL_ELIMIT);
    /* Values that fit one by one and not together are kept in pieces too. */
    for (int i = 0; i < 2; i++) {
        ops[i] = sl_state_op_create(i == 0 ? "/a" : "/b", bytes, 500 * 1024, 0);
    }
    assert_int_equal(do_multi(store, ops, 2, &outcome), 0);
    assert_pattern(store, "/a", 500 * 1024, 3);
    assert_pattern(store, "/b", 500 * 1024, 3);
    sl_free(bytes);
    outcome_destroy(&outcome);
    close_store(store);
}

/*
 * Watches
 */

struct view {
    int calls;
    int status;
    char value[64];
    size_t child_count;
    char last_child[128];
};

static void
on_view(void *ctx, int status, const struct sl_state_result *result)
{
    struct view *view = ctx;
    view->calls++;
    view->status = status;
    snprintf(view->value, sizeof(view->value), "%.*s", (int)result->size,
             result->value != NULL ? (const char *)result->value : "");
    view->child_count = result->child_count;
    if (result->child_count > 0) {
        snprintf(view->last_child, sizeof(view->last_child), "%s",
                 result->children[result->child_count - 1]);
    }
}

struct view_goal {
    const struct view *view;
    int status;
    const char *value;
    size_t child_count;
};

static bool
is_view_reached(void *ctx)
{
    const struct view_goal *goal = ctx;
    return goal->view->calls > 0 && goal->view->status == goal->status &&
           strcmp(goal->view->value, goal->value) == 0 &&
           goal->view->child_count == goal->child_count;
}

static void
wait_view(const struct view *view, int status, const char *value, size_t child_count)
{
    struct view_goal goal = {view, status, value, child_count};
    bool is_reached = wait_for(is_view_reached, &goal, KIT_WAIT_MS);
    if (!is_reached) {
        print_error("view: status %d value '%s' children %zu, waited for %d '%s' %zu\n",
                    view->status, view->value, view->child_count, status, value, child_count);
    }
    assert_true(is_reached);
}

static void
test_watch_tells_every_change(void **state)
{
    (void)state;
    struct sl_state_store *writer = fixture_open();
    struct sl_state_store *reader = fixture_open();
    struct view view = {0};
    struct sl_state_watch *watch = sl_state_watch_new(reader, SL_STATE_GET, "/w", on_view, &view);
    wait_view(&view, SL_ENOTFOUND, "", 0);
    assert_int_equal(do_create(writer, "/w", "1", 0), 0);
    wait_view(&view, 0, "1", 0);
    assert_int_equal(do_set(writer, "/w", "2", 0), 0);
    wait_view(&view, 0, "2", 0);
    assert_int_equal(do_set(writer, "/w", "3", 1), 0);
    wait_view(&view, 0, "3", 0);
    assert_int_equal(do_delete(writer, "/w", 2), 0);
    wait_view(&view, SL_ENOTFOUND, "", 0);
    assert_int_equal(do_create(writer, "/w", "back", 0), 0);
    wait_view(&view, 0, "back", 0);
    /* A burst may be told as one, but its end is told. */
    for (int i = 0; i < 50; i++) {
        char text[16];
        snprintf(text, sizeof(text), "n%d", i);
        sl_state_set(writer, "/w", text, strlen(text), SL_STATE_ANY_VERSION, NULL, NULL);
    }
    wait_view(&view, 0, "n49", 0);
    sl_state_watch_free(watch);
    int calls = view.calls;
    assert_int_equal(do_set(writer, "/w", "unseen", SL_STATE_ANY_VERSION), 0);
    assert_value(reader, "/w", "unseen");
    assert_int_equal(view.calls, calls);
    close_store(writer);
    close_store(reader);
}

static void
test_watch_tells_children(void **state)
{
    (void)state;
    struct sl_state_store *writer = fixture_open();
    struct sl_state_store *reader = fixture_open();
    struct view view = {0};
    struct sl_state_watch *watch =
        sl_state_watch_new(reader, SL_STATE_CHILDREN, "/p", on_view, &view);
    wait_view(&view, SL_ENOTFOUND, "", 0);
    assert_int_equal(do_create(writer, "/p", "", 0), 0);
    wait_view(&view, 0, "", 0);
    assert_int_equal(do_create(writer, "/p/a", "", SL_STATE_EPHEMERAL), 0);
    wait_view(&view, 0, "", 1);
    assert_int_equal(do_create(writer, "/p/b", "", 0), 0);
    wait_view(&view, 0, "", 2);
    assert_string_equal(view.last_child, "b");
    close_store(writer);
    wait_view(&view, 0, "", 1);
    sl_state_watch_free(watch);
    close_store(reader);
}

static void
test_watch_outlives_a_session(void **state)
{
    (void)state;
    struct sl_state_store *writer = fixture_open();
    struct sl_state_store *reader = fixture_open();
    struct view view = {0};
    assert_int_equal(do_create(writer, "/w", "1", 0), 0);
    struct sl_state_watch *watch = sl_state_watch_new(reader, SL_STATE_GET, "/w", on_view, &view);
    wait_view(&view, 0, "1", 0);
    fixture_expire(reader);
    assert_int_equal(do_set(writer, "/w", "2", 0), 0);
    wait_view(&view, 0, "2", 0);
    assert_int_equal(do_set(writer, "/w", "3", 1), 0);
    wait_view(&view, 0, "3", 0);
    sl_state_watch_free(watch);
    close_store(writer);
    close_store(reader);
}

/*
 * Sessions
 */

struct session_log {
    struct sl_state_listener listener;
    int connected;
    int suspended;
    int resumed;
    int expired;
    uint64_t session;
};

static void
on_session_event(void *ctx, enum sl_state_session_event event, uint64_t session)
{
    struct session_log *log = ctx;
    log->connected += event == SL_STATE_SESSION_CONNECTED;
    log->suspended += event == SL_STATE_SESSION_SUSPENDED;
    log->resumed += event == SL_STATE_SESSION_RESUMED;
    log->expired += event == SL_STATE_SESSION_EXPIRED;
    log->session = session;
}

static void
session_log_start(struct session_log *log, struct sl_state_store *store)
{
    memset(log, 0, sizeof(*log));
    log->listener.fn = on_session_event;
    log->listener.ctx = log;
    sl_state_store_listen(store, &log->listener);
}

static void
test_session_expiry_starts_a_new_session(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct sl_state_store *other = fixture_open();
    struct session_log log;
    assert_int_equal(do_create(store, "/e", "", SL_STATE_EPHEMERAL), 0);
    assert_int_equal(do_create(store, "/stays", "", 0), 0);
    session_log_start(&log, store);
    uint64_t before = sl_state_store_session(store);
    fixture_expire(store);
    wait_count(&log.expired, 1);
    wait_count(&log.connected, 1);
    assert_int_not_equal(log.session, before);
    assert_int_equal(sl_state_store_session(store), log.session);
    assert_missing(other, "/e");
    assert_value(store, "/stays", "");
    assert_int_equal(do_create(store, "/e", "new", SL_STATE_EPHEMERAL), 0);
    assert_value(other, "/e", "new");
    assert_int_equal(log.expired, 1);
    sl_state_store_unlisten(&log.listener);
    close_store(store);
    close_store(other);
}

static void
test_close_ends_calls(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    assert_int_equal(do_create(store, "/a", "", 0), 0);
    struct outcome outcomes[3] = {0};
    bool is_closed = false;
    sl_state_get(store, "/a", on_outcome, &outcomes[0]);
    sl_state_set(store, "/a", "x", 1, 0, on_outcome, &outcomes[1]);
    sl_state_store_close(store, on_kit_closed, &is_closed);
    sl_state_get(store, "/a", on_outcome, &outcomes[2]);
    assert_true(sl_state_runner_run_until(kit_runner, &is_closed, KIT_WAIT_MS));
    kit_open_stores--;
    for (size_t i = 0; i < array_size(outcomes); i++) {
        assert_int_equal(outcomes[i].calls, 1);
        assert_true(outcomes[i].status == 0 || outcomes[i].status == SL_ECLOSED);
        outcome_destroy(&outcomes[i]);
    }
}

static void
test_cancel_keeps_the_callback_away(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    uint64_t ticket = sl_state_create(store, "/a", "", 0, 0, on_outcome, &outcome);
    sl_state_cancel(store, ticket);
    sl_state_cancel(store, ticket);
    sl_state_cancel(store, 0);
    assert_int_equal(do_sync(store), 0);
    assert_int_equal(outcome.calls, 0);
    close_store(store);
}

/*
 * Locks
 */

struct lock_log {
    int done;
    int status;
    char message[512];
    int lost;
    int suspended;
    int resumed;
};

static void
on_lock_done(void *ctx, int status)
{
    struct lock_log *log = ctx;
    log->done++;
    log->status = status;
    if (status != 0) {
        sl_err_format(sl_err_last(), log->message, sizeof(log->message));
    }
}

static void
on_lock_event(void *ctx, enum sl_state_lock_event event)
{
    struct lock_log *log = ctx;
    log->lost += event == SL_STATE_LOCK_LOST;
    log->suspended += event == SL_STATE_LOCK_SUSPENDED;
    log->resumed += event == SL_STATE_LOCK_RESUMED;
}

static void
acquire(struct sl_state_lock *lock, struct lock_log *log, int64_t timeout_ms)
{
    memset(log, 0, sizeof(*log));
    sl_state_lock_acquire(lock, timeout_ms, on_lock_done, log);
}

static int
acquire_now(struct sl_state_lock *lock, struct lock_log *log, int64_t timeout_ms)
{
    acquire(lock, log, timeout_ms);
    wait_count(&log->done, 1);
    return log->status;
}

static void
release(struct sl_state_lock *lock)
{
    struct lock_log log = {0};
    sl_state_lock_release(lock, on_lock_done, &log);
    wait_count(&log.done, 1);
    assert_int_equal(log.status, 0);
}

static void
test_lock_is_held_by_one(void **state)
{
    (void)state;
    enum { N = 4 };
    struct sl_state_store *stores[N];
    struct sl_state_lock *locks[N];
    struct lock_log logs[N];
    uint64_t token = 0;
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof(name), "owner-%d", i);
        stores[i] = fixture_open();
        locks[i] = sl_state_lock_new(stores[i], "/locks/t", name, on_lock_event, &logs[i]);
    }
    assert_int_equal(acquire_now(locks[0], &logs[0], SL_STATE_FOREVER), 0);
    for (int i = 1; i < N; i++) {
        struct outcome outcome = {0};
        acquire(locks[i], &logs[i], SL_STATE_FOREVER);
        /* Their order is that of their nodes. */
        while (outcome.child_count < (size_t)i + 1) {
            assert_int_equal(do_children(stores[i], "/locks/t", &outcome), 0);
        }
        outcome_destroy(&outcome);
    }
    for (int i = 0; i < N; i++) {
        wait_count(&logs[i].done, 1);
        assert_int_equal(logs[i].status, 0);
        for (int j = 0; j < N; j++) {
            assert_int_equal(sl_state_lock_is_held(locks[j]), i == j);
        }
        assert_true(sl_state_lock_token(locks[i]) > token);
        token = sl_state_lock_token(locks[i]);
        assert_true(sl_state_store_is_safe(stores[i]));
        release(locks[i]);
        assert_false(sl_state_lock_is_held(locks[i]));
    }
    for (int i = 0; i < N; i++) {
        sl_state_lock_free(locks[i]);
        close_store(stores[i]);
    }
}

static void
test_lock_waiter_that_leaves_wakes_nobody_else(void **state)
{
    (void)state;
    struct sl_state_store *stores[3];
    struct sl_state_lock *locks[3];
    struct lock_log logs[3];
    struct outcome outcome = {0};
    for (int i = 0; i < 3; i++) {
        stores[i] = fixture_open();
        locks[i] = sl_state_lock_new(stores[i], "/locks/t", "o", on_lock_event, &logs[i]);
        acquire(locks[i], &logs[i], SL_STATE_FOREVER);
        while (outcome.child_count < (size_t)i + 1) {
            do_children(stores[i], "/locks/t", &outcome);
        }
    }
    wait_count(&logs[0].done, 1);
    /* The second one's session ends, and its node with it. */
    bool is_closed = false;
    sl_state_store_close(stores[1], on_kit_closed, &is_closed);
    sl_state_lock_free(locks[1]);
    assert_true(sl_state_runner_run_until(kit_runner, &is_closed, KIT_WAIT_MS));
    kit_open_stores--;
    while (outcome.child_count > 2) {
        assert_int_equal(do_children(stores[2], "/locks/t", &outcome), 0);
    }
    assert_int_equal(do_sync(stores[2]), 0);
    assert_int_equal(logs[2].done, 0);
    release(locks[0]);
    wait_count(&logs[2].done, 1);
    assert_true(sl_state_lock_is_held(locks[2]));
    sl_state_lock_free(locks[0]);
    sl_state_lock_free(locks[2]);
    close_store(stores[0]);
    close_store(stores[2]);
    outcome_destroy(&outcome);
}

static void
test_lock_says_who_holds_it(void **state)
{
    (void)state;
    struct sl_state_store *stores[2] = {fixture_open(), fixture_open()};
    struct lock_log logs[2];
    struct sl_state_lock *holder =
        sl_state_lock_new(stores[0], "/locks/t", "the first", on_lock_event, &logs[0]);
    struct sl_state_lock *waiter =
        sl_state_lock_new(stores[1], "/locks/t", "the second", on_lock_event, &logs[1]);
    assert_int_equal(acquire_now(holder, &logs[0], 5000), 0);
    assert_int_equal(acquire_now(waiter, &logs[1], 0), SL_ECONFLICT);
    assert_non_null(strstr(logs[1].message, "the first"));
    assert_non_null(strstr(logs[1].message, "/locks/t"));
    /* Long enough for a server that has much to do to say so. */
    assert_int_equal(acquire_now(waiter, &logs[1], 1000), SL_ECONFLICT);
    assert_non_null(strstr(logs[1].message, "the first"));
    release(holder);
    /* The attempts that were given up leave no ghost that blocks the next one. */
    assert_int_equal(acquire_now(holder, &logs[0], 5000), 0);
    release(holder);
    assert_int_equal(acquire_now(waiter, &logs[1], 5000), 0);
    sl_state_lock_free(holder);
    sl_state_lock_free(waiter);
    close_store(stores[0]);
    close_store(stores[1]);
}

static void
test_lock_token_only_grows(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct lock_log log;
    uint64_t token = 0;
    for (int i = 0; i < 4; i++) {
        struct sl_state_lock *lock = sl_state_lock_new(store, "/locks/t", "o", on_lock_event, &log);
        assert_int_equal(acquire_now(lock, &log, 5000), 0);
        assert_true(sl_state_lock_token(lock) > token);
        token = sl_state_lock_token(lock);
        release(lock);
        sl_state_lock_free(lock);
        if (i % 2 == 1) {
            /* A new parent starts its numbers again. */
            assert_int_equal(do_delete(store, "/locks/t", SL_STATE_ANY_VERSION), 0);
        }
    }
    close_store(store);
}

static void
test_lock_of_an_expired_session_fences_its_writes(void **state)
{
    (void)state;
    struct sl_state_store *stores[2] = {fixture_open(), fixture_open()};
    struct lock_log logs[2];
    struct outcome outcome = {0};
    struct sl_state_lock *locks[2];
    assert_int_equal(do_create(stores[0], "/plan", "v0", 0), 0);
    for (int i = 0; i < 2; i++) {
        locks[i] = sl_state_lock_new(stores[i], "/locks/t", "o", on_lock_event, &logs[i]);
    }
    assert_int_equal(acquire_now(locks[0], &logs[0], 5000), 0);
    uint64_t token = sl_state_lock_token(locks[0]);
    struct sl_state_op write = sl_state_op_set("/plan", "v1", 2, 0);
    sl_state_lock_commit(locks[0], &write, 1, on_outcome, &outcome);
    assert_int_equal(wait_outcome(&outcome), 0);
    assert_int_equal(outcome.op_count, 1);
    assert_int_equal(outcome.stat.version, 1);
    acquire(locks[1], &logs[1], SL_STATE_FOREVER);

    char *stale_node = sl_strdup(sl_state_lock_node(locks[0]));
    fixture_expire(stores[0]);
    wait_count(&logs[0].lost, 1);
    wait_count(&logs[1].done, 1);
    assert_false(sl_state_lock_is_held(locks[0]));
    assert_int_equal(sl_state_lock_token(locks[0]), 0);
    assert_true(sl_state_lock_token(locks[1]) > token);

    /* The old holder tries all the same, also with the guard it had. */
    struct sl_state_op late = sl_state_op_set("/plan", "stale", 5, SL_STATE_ANY_VERSION);
    outcome_destroy(&outcome);
    sl_state_lock_commit(locks[0], &late, 1, on_outcome, &outcome);
    assert_int_equal(wait_outcome(&outcome), SL_EFENCED);
    assert_non_null(strstr(outcome.message, "/locks/t"));
    struct sl_state_op guarded[] = {sl_state_op_check(stale_node, SL_STATE_ANY_VERSION), late};
    assert_int_equal(do_multi(stores[0], guarded, 2, &outcome), SL_ENOTFOUND);
    assert_value(stores[1], "/plan", "v1");

    /* A refusal of the plan itself is no fencing. */
    outcome_destroy(&outcome);
    sl_state_lock_commit(locks[1], &write, 1, on_outcome, &outcome);
    assert_int_equal(wait_outcome(&outcome), SL_ECONFLICT);
    assert_int_equal(outcome.failed, 0);
    sl_free(stale_node);
    sl_state_lock_free(locks[0]);
    sl_state_lock_free(locks[1]);
    outcome_destroy(&outcome);
    close_store(stores[0]);
    close_store(stores[1]);
}

static void
test_lock_waiter_survives_its_own_expiry(void **state)
{
    (void)state;
    struct sl_state_store *stores[2] = {fixture_open(), fixture_open()};
    struct lock_log logs[2];
    struct sl_state_lock *locks[2];
    struct outcome outcome = {0};
    for (int i = 0; i < 2; i++) {
        locks[i] = sl_state_lock_new(stores[i], "/locks/t", "o", on_lock_event, &logs[i]);
    }
    assert_int_equal(acquire_now(locks[0], &logs[0], 5000), 0);
    acquire(locks[1], &logs[1], SL_STATE_FOREVER);
    while (outcome.child_count < 2) {
        assert_int_equal(do_children(stores[1], "/locks/t", &outcome), 0);
    }
    struct session_log log;
    session_log_start(&log, stores[1]);
    fixture_expire(stores[1]);
    wait_count(&log.connected, 1);
    assert_int_equal(logs[1].done, 0);
    release(locks[0]);
    wait_count(&logs[1].done, 1);
    assert_int_equal(logs[1].status, 0);
    sl_state_store_unlisten(&log.listener);
    sl_state_lock_free(locks[0]);
    sl_state_lock_free(locks[1]);
    outcome_destroy(&outcome);
    close_store(stores[0]);
    close_store(stores[1]);
}

/*
 * Leaders
 */

struct election_log {
    int granted;
    int revoked;
    int suspended;
    int resumed;
    uint64_t token;
};

static void
on_election(void *ctx, enum sl_state_election_event event, uint64_t token)
{
    struct election_log *log = ctx;
    log->granted += event == SL_STATE_ELECTION_GRANTED;
    log->revoked += event == SL_STATE_ELECTION_REVOKED;
    log->suspended += event == SL_STATE_ELECTION_SUSPENDED;
    log->resumed += event == SL_STATE_ELECTION_RESUMED;
    log->token = token;
}

struct leader_log {
    int calls;
    char address[64];
    uint64_t token;
};

static void
on_leader(void *ctx, const struct sl_state_leader_info *info)
{
    struct leader_log *log = ctx;
    log->calls++;
    snprintf(log->address, sizeof(log->address), "%.60s", info != NULL ? info->address : "");
    log->token = info != NULL ? info->token : 0;
}

struct leader_goal {
    const struct leader_log *log;
    const char *address;
};

static bool
is_leader_seen(void *ctx)
{
    const struct leader_goal *goal = ctx;
    return goal->log->calls > 0 && strcmp(goal->log->address, goal->address) == 0;
}

static void
wait_leader(const struct leader_log *log, const char *address)
{
    struct leader_goal goal = {log, address};
    bool is_seen = wait_for(is_leader_seen, &goal, KIT_WAIT_MS);
    if (!is_seen) {
        print_error("leader is '%s', waited for '%s'\n", log->address, address);
    }
    assert_true(is_seen);
}

static void
test_election_one_leads_and_all_hear_of_it(void **state)
{
    (void)state;
    struct sl_state_store *stores[3] = {fixture_open(), fixture_open(), fixture_open()};
    struct election_log logs[2] = {0};
    struct leader_log seen = {0};
    struct outcome outcome = {0};
    struct sl_state_leader_listener *listener =
        sl_state_leader_listener_new(stores[2], "/leaders/master", on_leader, &seen);
    wait_leader(&seen, "");
    struct sl_state_election *first = sl_state_election_new(stores[0], "/leaders/master", "m1",
                                                            "10.0.0.1:7000", on_election, &logs[0]);
    wait_count(&logs[0].granted, 1);
    wait_leader(&seen, "10.0.0.1:7000");
    assert_int_equal(seen.token, sl_state_election_token(first));
    struct sl_state_election *second = sl_state_election_new(
        stores[1], "/leaders/master", "m2", "10.0.0.2:7000", on_election, &logs[1]);
    assert_int_equal(do_create(stores[1], "/plan", "v0", 0), 0);
    assert_int_equal(logs[1].granted, 0);
    struct sl_state_op write = sl_state_op_set("/plan", "v1", 2, 0);
    sl_state_election_commit(first, &write, 1, on_outcome, &outcome);
    assert_int_equal(wait_outcome(&outcome), 0);

    uint64_t old = logs[0].token;
    fixture_expire(stores[0]);
    wait_count(&logs[0].revoked, 1);
    wait_count(&logs[1].granted, 1);
    wait_leader(&seen, "10.0.0.2:7000");
    assert_true(logs[1].token > old);
    assert_int_equal(seen.token, logs[1].token);
    assert_int_equal(sl_state_election_token(first), 0);
    struct sl_state_op late = sl_state_op_set("/plan", "stale", 5, SL_STATE_ANY_VERSION);
    outcome_destroy(&outcome);
    sl_state_election_commit(first, &late, 1, on_outcome, &outcome);
    assert_int_equal(wait_outcome(&outcome), SL_EFENCED);
    assert_value(stores[2], "/plan", "v1");

    /* The first one stands again, and leads when the second withdraws. */
    sl_state_election_free(second);
    wait_count(&logs[0].granted, 2);
    wait_leader(&seen, "10.0.0.1:7000");
    assert_true(logs[0].token > logs[1].token);
    sl_state_election_free(first);
    wait_leader(&seen, "");
    sl_state_leader_listener_free(listener);
    outcome_destroy(&outcome);
    for (int i = 0; i < 3; i++) {
        close_store(stores[i]);
    }
}

struct presence_log {
    int calls;
    int in_place;
    int status;
};

static void
on_presence(void *ctx, int status)
{
    struct presence_log *log = ctx;
    log->calls++;
    log->in_place += status == 0;
    log->status = status;
}

static void
test_presence_comes_back_with_every_session(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct sl_state_store *other = fixture_open();
    struct presence_log log = {0};
    struct presence_log rival_log = {0};
    struct view view = {0};
    struct sl_state_presence *presence =
        sl_state_presence_new(store, "/supervisors/s1", "up", 2, on_presence, &log);
    wait_count(&log.in_place, 1);
    struct sl_state_watch *watch =
        sl_state_watch_new(other, SL_STATE_GET, "/supervisors/s1", on_view, &view);
    wait_view(&view, 0, "up", 0);
    sl_state_presence_set(presence, "busy", 4);
    wait_view(&view, 0, "busy", 0);
    fixture_expire(store);
    wait_count(&log.in_place, 2);
    wait_view(&view, 0, "busy", 0);
    /* Two with the same name: the second is told, and takes over when the first is gone. */
    struct sl_state_presence *rival =
        sl_state_presence_new(other, "/supervisors/s1", "me too", 6, on_presence, &rival_log);
    wait_count(&rival_log.calls, 1);
    assert_int_equal(rival_log.status, SL_EEXIST);
    sl_state_presence_free(presence);
    wait_count(&rival_log.in_place, 1);
    wait_view(&view, 0, "me too", 0);
    sl_state_presence_free(rival);
    wait_view(&view, SL_ENOTFOUND, "", 0);
    sl_state_watch_free(watch);
    close_store(store);
    close_store(other);
}

static void
test_remove_deletes_a_subtree(void **state)
{
    (void)state;
    struct sl_state_store *store = fixture_open();
    struct outcome outcome = {0};
    static const char *const paths[] = {"/t/a/1", "/t/a/2", "/t/b/x/y", "/t/c"};
    for (size_t i = 0; i < array_size(paths); i++) {
        assert_int_equal(do_create(store, paths[i], "", SL_STATE_PARENTS), 0);
    }
    assert_int_equal(do_create(store, "/tt", "", 0), 0);
    sl_state_remove(store, "/t", on_outcome, &outcome);
    assert_int_equal(wait_outcome(&outcome), 0);
    assert_missing(store, "/t");
    assert_value(store, "/tt", "");
    outcome_destroy(&outcome);
    sl_state_remove(store, "/t", on_outcome, &outcome);
    assert_int_equal(wait_outcome(&outcome), SL_ENOTFOUND);
    outcome_destroy(&outcome);
    close_store(store);
}

/* A counter that sessions add to by compare-and-set: nothing is lost or counted twice. */
struct adder {
    struct sl_state_store *store;
    int left;
    int done;
    /* Writes that may have been carried out: their answers were lost, and others wrote since. */
    int doubts;
};

static void adder_read(struct adder *adder);

static void
on_adder_set(void *ctx, int status, const struct sl_state_result *result)
{
    struct adder *adder = ctx;
    (void)result;
    if (status != SL_ECONFLICT && status != SL_ETIMEOUT) {
        assert_int_equal(status, 0);
    }
    adder->left -= status == 0;
    adder->doubts += status == SL_ETIMEOUT;
    if (adder->left > 0) {
        adder_read(adder);
    } else {
        adder->done = 1;
    }
}

static void
on_adder_read(void *ctx, int status, const struct sl_state_result *result)
{
    struct adder *adder = ctx;
    char text[32];
    assert_int_equal(status, 0);
    snprintf(text, sizeof(text), "%.*s", (int)result->size, (const char *)result->value);
    snprintf(text, sizeof(text), "%d", atoi(text) + 1);
    sl_state_set(adder->store, "/counter", text, strlen(text), result->stat.version, on_adder_set,
                 adder);
}

static void
adder_read(struct adder *adder)
{
    sl_state_get(adder->store, "/counter", on_adder_read, adder);
}

static void
test_compare_and_set_counts_exactly(void **state)
{
    (void)state;
    struct adder adders[3];
    char text[16];
    enum { EACH = 15 };
    for (size_t i = 0; i < array_size(adders); i++) {
        adders[i] = (struct adder){.store = fixture_open(), .left = EACH};
    }
    assert_int_equal(do_create(adders[0].store, "/counter", "0", 0), 0);
    for (size_t i = 0; i < array_size(adders); i++) {
        adder_read(&adders[i]);
    }
    for (size_t i = 0; i < array_size(adders); i++) {
        wait_count(&adders[i].done, 1);
        assert_int_equal(adders[i].doubts, 0);
    }
    snprintf(text, sizeof(text), "%d", (int)array_size(adders) * EACH);
    assert_value(adders[0].store, "/counter", text);
    for (size_t i = 0; i < array_size(adders); i++) {
        close_store(adders[i].store);
    }
}

#define CONFORMANCE_TEST(test)                                                                     \
    cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
#define CONFORMANCE_TESTS                                                                          \
    CONFORMANCE_TEST(test_create_get_set_delete), CONFORMANCE_TEST(test_values_are_any_bytes),     \
        CONFORMANCE_TEST(test_errors_name_the_node), CONFORMANCE_TEST(test_create_makes_parents),  \
        CONFORMANCE_TEST(test_children_are_sorted_and_counted),                                    \
        CONFORMANCE_TEST(test_ephemeral_nodes_go_with_their_session),                              \
        CONFORMANCE_TEST(test_sequential_nodes_count_up),                                          \
        CONFORMANCE_TEST(test_multi_is_all_or_nothing),                                            \
        CONFORMANCE_TEST(test_multi_one_of_two_writers_wins),                                      \
        CONFORMANCE_TEST(test_large_values_are_kept_in_pieces),                                    \
        CONFORMANCE_TEST(test_size_limits_are_checked_before_sending),                             \
        CONFORMANCE_TEST(test_watch_tells_every_change),                                           \
        CONFORMANCE_TEST(test_watch_tells_children),                                               \
        CONFORMANCE_TEST(test_watch_outlives_a_session),                                           \
        CONFORMANCE_TEST(test_session_expiry_starts_a_new_session),                                \
        CONFORMANCE_TEST(test_close_ends_calls),                                                   \
        CONFORMANCE_TEST(test_cancel_keeps_the_callback_away),                                     \
        CONFORMANCE_TEST(test_lock_is_held_by_one),                                                \
        CONFORMANCE_TEST(test_lock_waiter_that_leaves_wakes_nobody_else),                          \
        CONFORMANCE_TEST(test_lock_says_who_holds_it),                                             \
        CONFORMANCE_TEST(test_lock_token_only_grows),                                              \
        CONFORMANCE_TEST(test_lock_of_an_expired_session_fences_its_writes),                       \
        CONFORMANCE_TEST(test_lock_waiter_survives_its_own_expiry),                                \
        CONFORMANCE_TEST(test_election_one_leads_and_all_hear_of_it),                              \
        CONFORMANCE_TEST(test_presence_comes_back_with_every_session),                             \
        CONFORMANCE_TEST(test_remove_deletes_a_subtree),                                           \
        CONFORMANCE_TEST(test_compare_and_set_counts_exactly)
