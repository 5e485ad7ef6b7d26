/* labels: short */
/* A store on a role's loop: the real one and the simulated one. */
#include "base/err.h"
#include "loop/sim.h"
#include "state/loop_executor.h"
#include "state/open.h"
#include "unit.h"

struct run {
    struct sl_loop *loop;
    int status;
    bool is_done;
    bool is_closed;
};

static void
on_done(void *ctx, int status, const struct sl_state_result *result)
{
    struct run *run = ctx;
    (void)result;
    run->status = status;
    run->is_done = true;
    if (run->loop != NULL) {
        sl_loop_stop(run->loop);
    }
}

static void
on_closed(void *arg)
{
    struct run *run = arg;
    run->is_closed = true;
    if (run->loop != NULL) {
        sl_loop_stop(run->loop);
    }
}

static bool
is_done(void *ctx)
{
    return ((struct run *)ctx)->is_done;
}

static bool
is_closed(void *ctx)
{
    return ((struct run *)ctx)->is_closed;
}

static void
test_store_runs_in_the_simulation(void **state)
{
    (void)state;
    struct sl_state_loop_executor executor;
    struct run run = {0};
    struct sl_sim *sim = sl_sim_new(&(struct sl_sim_options){.seed = 7});
    struct sl_loop *loop = sl_sim_loop_new(sim, "127.0.0.2");
    sl_state_loop_executor_create(&executor, loop);
    struct sl_state_store *store = sl_state_open_new("memory:", &executor.executor, NULL);
    sl_state_create(store, "/a/b", "x", 1, SL_STATE_PARENTS, on_done, &run);
    assert_true(sl_sim_run_until(sim, is_done, &run, 10000));
    assert_int_equal(run.status, 0);
    sl_state_store_close(store, on_closed, &run);
    assert_true(sl_sim_run_until(sim, is_closed, &run, 10000));
    assert_int_equal(executor.timers.count, 0);
    sl_state_loop_executor_destroy(&executor);
    sl_loop_free(loop);
    sl_sim_free(sim);
}

static void
test_store_runs_on_libuv(void **state)
{
    (void)state;
    char dir[256];
    char url[300];
    char command[300];
    struct sl_state_loop_executor executor;
    struct run run = {0};
    unit_folder_new(dir, sizeof(dir));
    snprintf(url, sizeof(url), "localfs:%s", dir);
    assert_int_equal(sl_loop_new(&run.loop), 0);
    sl_state_loop_executor_create(&executor, run.loop);
    struct sl_state_store *store = sl_state_open_new(url, &executor.executor, NULL);
    sl_state_create(store, "/a/b", "x", 1, SL_STATE_PARENTS, on_done, &run);
    sl_loop_run(run.loop);
    assert_true(run.is_done);
    assert_int_equal(run.status, 0);
    sl_state_store_close(store, on_closed, &run);
    sl_loop_run(run.loop);
    assert_true(run.is_closed);
    sl_state_loop_executor_destroy(&executor);
    sl_loop_free(run.loop);
    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    assert_int_equal(system(command), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_runs_in_the_simulation),
        cmocka_unit_test(test_store_runs_on_libuv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
