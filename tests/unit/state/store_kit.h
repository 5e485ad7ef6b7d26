#pragma once
#pragma GCC diagnostic ignored "-Wunused-function"
/* Calls that wait, for tests of stores: a call runs the fixture's runner until its callback came.
 */

#include "base/alloc.h"
#include "base/err.h"
#include "base/vec.h"
#include "state/runner.h"
#include "state/state.h"
#include "unit.h"

enum {
    KIT_OPS_MAX = 16,
    KIT_CHILDREN_MAX = 64,
    /* Longer than any time limit of a call in these tests. */
    KIT_WAIT_MS = 60000,
};

/* What a call came to; everything is copied. */
struct outcome {
    bool is_done;
    int calls;
    int status;
    char message[512];
    struct sl_buf value;
    struct sl_state_stat stat;
    char path[1024];
    char children[KIT_CHILDREN_MAX][128];
    size_t child_count;
    int op_status[KIT_OPS_MAX];
    char op_path[KIT_OPS_MAX][256];
    size_t op_count;
    size_t failed;
    bool has_pieces;
};

static struct sl_state_runner *kit_runner;
/* Stores that are open; a test that failed leaves some, and then nothing else is torn down. */
static int kit_open_stores;

static void
on_outcome(void *ctx, int status, const struct sl_state_result *result)
{
    struct outcome *outcome = ctx;
    outcome->is_done = true;
    outcome->calls++;
    outcome->status = status;
    outcome->message[0] = '\0';
    if (status != 0) {
        sl_err_format(sl_err_last(), outcome->message, sizeof(outcome->message));
        assert_int_equal(sl_err_last()->code, status);
    }
    sl_buf_clear(&outcome->value);
    sl_buf_append(&outcome->value, result->value, result->size);
    outcome->stat = result->stat;
    snprintf(outcome->path, sizeof(outcome->path), "%s", result->path != NULL ? result->path : "");
    outcome->child_count = result->child_count;
    for (size_t i = 0; i < result->child_count && i < KIT_CHILDREN_MAX; i++) {
        snprintf(outcome->children[i], sizeof(outcome->children[i]), "%s", result->children[i]);
    }
    outcome->op_count = result->op_count;
    outcome->failed = result->failed;
    for (size_t i = 0; i < result->op_count && i < KIT_OPS_MAX; i++) {
        outcome->op_status[i] = result->ops[i].status;
        snprintf(outcome->op_path[i], sizeof(outcome->op_path[i]), "%s",
                 result->ops[i].path != NULL ? result->ops[i].path : "");
    }
    outcome->has_pieces = result->pieces != NULL;
}

/* Runs until the call is over; it must not have been over before. */
static int
wait_outcome(struct outcome *outcome)
{
    bool is_done = sl_state_runner_run_until(kit_runner, &outcome->is_done, KIT_WAIT_MS);
    assert_true(is_done);
    return outcome->status;
}

static void
outcome_destroy(struct outcome *outcome)
{
    sl_buf_destroy(&outcome->value);
    memset(outcome, 0, sizeof(*outcome));
}

/* Calls for their status alone, and for what they found in *out (reset first; freed by the test).
 */
static int
do_create_bytes(struct sl_state_store *store, const char *path, const void *value, size_t size,
                uint32_t flags, struct outcome *out)
{
    struct outcome local = {0};
    struct outcome *outcome = out != NULL ? out : &local;
    outcome_destroy(outcome);
    sl_state_create(store, path, value, size, flags, on_outcome, outcome);
    assert_false(outcome->is_done);
    int status = wait_outcome(outcome);
    sl_buf_destroy(&local.value);
    return status;
}

static int
do_create(struct sl_state_store *store, const char *path, const char *value, uint32_t flags)
{
    return do_create_bytes(store, path, value, strlen(value), flags, NULL);
}

static int
do_get(struct sl_state_store *store, const char *path, struct outcome *out)
{
    outcome_destroy(out);
    sl_state_get(store, path, on_outcome, out);
    assert_false(out->is_done);
    return wait_outcome(out);
}

/* A reader on another member than the writer's may lag behind, until it synchronises. */
static int
do_sync(struct sl_state_store *store)
{
    struct outcome outcome = {0};
    sl_state_sync(store, on_outcome, &outcome);
    int status = wait_outcome(&outcome);
    outcome_destroy(&outcome);
    return status;
}

static int
do_set_bytes(struct sl_state_store *store, const char *path, const void *value, size_t size,
             int32_t version, struct outcome *out)
{
    struct outcome local = {0};
    struct outcome *outcome = out != NULL ? out : &local;
    outcome_destroy(outcome);
    sl_state_set(store, path, value, size, version, on_outcome, outcome);
    int status = wait_outcome(outcome);
    sl_buf_destroy(&local.value);
    return status;
}

static int
do_set(struct sl_state_store *store, const char *path, const char *value, int32_t version)
{
    return do_set_bytes(store, path, value, strlen(value), version, NULL);
}

static int
do_delete(struct sl_state_store *store, const char *path, int32_t version)
{
    struct outcome outcome = {0};
    sl_state_delete(store, path, version, on_outcome, &outcome);
    int status = wait_outcome(&outcome);
    outcome_destroy(&outcome);
    return status;
}

static int
do_children(struct sl_state_store *store, const char *path, struct outcome *out)
{
    outcome_destroy(out);
    sl_state_children(store, path, on_outcome, out);
    return wait_outcome(out);
}

static int
do_multi(struct sl_state_store *store, const struct sl_state_op *ops, size_t count,
         struct outcome *out)
{
    outcome_destroy(out);
    sl_state_multi(store, ops, count, on_outcome, out);
    return wait_outcome(out);
}

static void
assert_value(struct sl_state_store *store, const char *path, const char *expected)
{
    struct outcome outcome = {0};
    assert_int_equal(do_sync(store), 0);
    int status = do_get(store, path, &outcome);
    if (status != 0) {
        print_error("get %s: %s\n", path, outcome.message);
    }
    assert_int_equal(status, 0);
    assert_string_equal(sl_buf_str(&outcome.value), expected);
    outcome_destroy(&outcome);
}

static void
assert_missing(struct sl_state_store *store, const char *path)
{
    struct outcome outcome = {0};
    assert_int_equal(do_sync(store), 0);
    assert_int_equal(do_get(store, path, &outcome), SL_ENOTFOUND);
    outcome_destroy(&outcome);
}

static void
on_kit_closed(void *arg)
{
    *(bool *)arg = true;
}

static void
close_store(struct sl_state_store *store)
{
    bool is_closed = false;
    sl_state_store_close(store, on_kit_closed, &is_closed);
    assert_false(is_closed);
    assert_true(sl_state_runner_run_until(kit_runner, &is_closed, KIT_WAIT_MS));
    kit_open_stores--;
}

/* Runs until the condition holds; false when it does not within the time. */
static bool
wait_for(bool (*condition)(void *ctx), void *ctx, uint64_t timeout_ms)
{
    const struct sl_clock *clock = sl_state_runner_executor(kit_runner)->clock;
    uint64_t until = sl_clock_mono_ms(clock) + timeout_ms;
    while (!condition(ctx)) {
        if (sl_clock_mono_ms(clock) >= until) {
            return false;
        }
        sl_state_runner_run_for(kit_runner, 1);
    }
    return true;
}

/* For conditions that are a count reaching a number. */
struct count_goal {
    const int *count;
    int at_least;
};

static bool
is_count_reached(void *ctx)
{
    const struct count_goal *goal = ctx;
    return *goal->count >= goal->at_least;
}

static void
wait_count(const int *count, int at_least)
{
    struct count_goal goal = {count, at_least};
    bool is_reached = wait_for(is_count_reached, &goal, KIT_WAIT_MS);
    if (!is_reached) {
        print_error("count is %d, waited for %d\n", *count, at_least);
    }
    assert_true(is_reached);
}
