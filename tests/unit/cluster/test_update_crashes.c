/*
 * Everybody who takes part in an update fails at every step of it, in virtual time: a step is one
 * event of the simulation, from the moment the update is asked for to its answer. Whatever happens,
 * the old or the new plan runs as before, whole, and the next update finds the lock free.
 * labels: short
 */
#include "topology_fixture.h"

enum {
    STEPS_MAX = 2000,
    /* 1 where a step is cheap; the places differ from harm to harm then all the same. */
    STRIDE = 20 / UNIT_ROUNDS(20),
};

/* From two bolts to so many, of a topology that runs or is paused, and so many more spouts: without
 * other bolts nothing has to be drained for them. */
struct change {
    int32_t to;
    bool is_paused;
    int32_t spouts;
};

static const struct change changes[] = {{4, false, 0}, {1, false, 0}, {3, true, 0}, {2, false, 2}};

struct harm {
    void (*strike)(struct fixture *f, int32_t id);
    /* How many ids it is tried with: containers, from 1. */
    int32_t ids;
    /* A worker that ends takes its counts along. */
    bool loses_counts;
    /* Nobody hears the answer. */
    bool is_deaf;
};

/* ---- harms ---------------------------------------------------------------------------------- */

/* Power fails at the topology master's node, and another one takes its place. */
static void
crash_master(struct fixture *f, int32_t id)
{
    static const char *const hosts[] = {"127.0.0.3", "127.0.0.4"};
    (void)id;
    sl_memory_backend_crash(f->master_node.backend);
    sl_sim_loop_crash(f->master_node.loop, false);
    sl_topology_master_free(f->master);
    f->master = NULL;
    node_close(f, &f->master_node);
    node_open(f, &f->master_node, hosts[f->next_pid % 2]);
    master_start(f);
}

/* Its process ends in order, and the next one is started. */
static void
restart_master(struct fixture *f, int32_t id)
{
    (void)id;
    sl_topology_master_free(f->master);
    master_start(f);
}

static void
kill_worker(struct fixture *f, int32_t id)
{
    if (worker_of(f, id) != NULL) {
        launcher_restart(f, id);
    }
}

static void
kill_worker_and_master(struct fixture *f, int32_t id)
{
    struct fake_worker *worker = worker_of(f, id);
    if (worker != NULL) {
        worker_die(worker);
    }
    restart_master(f, id);
    /* The launcher of the next one finds that it does not run. */
}

/* As SIGSTOP, for less than the heartbeat's limit. */
static void
stop_worker(struct fixture *f, int32_t id)
{
    struct fake_worker *worker = worker_of(f, id);
    if (worker != NULL) {
        sl_sim_loop_pause(worker->loop);
        sl_sim_run_for(f->sim, 2500);
        if (worker->is_alive) {
            sl_sim_loop_resume(worker->loop);
        }
    }
}

/* For longer than that: it is restarted. */
static void
stop_worker_for_long(struct fixture *f, int32_t id)
{
    struct fake_worker *worker = worker_of(f, id);
    if (worker != NULL) {
        sl_sim_loop_pause(worker->loop);
        sl_sim_run_for(f->sim, 12000);
    }
}

static void
stop_master(struct fixture *f, int32_t id)
{
    (void)id;
    sl_sim_loop_pause(f->master_node.loop);
    sl_sim_run_for(f->sim, 2500);
    sl_sim_loop_resume(f->master_node.loop);
}

static void
break_connections(struct fixture *f, int32_t id)
{
    const struct fake_worker *worker = worker_of(f, id);
    if (worker != NULL) {
        sl_sim_reset(f->sim, "127.0.0.2", worker->host);
    }
}

/* The session of a worker with each other one is lost with what is under way: state that moves. */
static void
break_sessions(struct fixture *f, int32_t id)
{
    for (int32_t other = 1; other <= 5; other++) {
        if (other != id) {
            break_session(f, id, other);
        }
    }
}

/* Nothing can be stored or read for a while; the session outlives it. */
static void
stop_store(struct fixture *f, int32_t id)
{
    (void)id;
    sl_memory_server_set_serving(f->server, false);
    sl_sim_run_for(f->sim, 3000);
    sl_memory_server_set_serving(f->server, true);
}

/* The connection to the store breaks at the next write, before or after it is carried out. */
static void
break_next_write(struct fixture *f, int32_t id)
{
    sl_memory_backend_break_next(f->master_node.backend,
                                 id == 1 ? SL_MEMORY_BREAK_BEFORE : SL_MEMORY_BREAK_AFTER);
}

/* The command is ended: nobody waits for the answer. */
static void
end_client(struct fixture *f, int32_t id)
{
    (void)id;
    sl_rpc_gateway_free(f->gateway);
    sl_sim_reset(f->sim, "127.0.0.1", "127.0.0.2");
    assert_int_equal(sl_rpc_connect(f->client.rpc, f->leader_address,
                                    SL_ENDPOINT_TOPOLOGY_MASTER "words", f->leader_token,
                                    &f->gateway),
                     0);
}

/* ---- what must be true ---------------------------------------------------------------------- */

static bool
is_settled(struct fixture *f, bool is_active)
{
    return f->master != NULL && sl_topology_master_is_settled(f->master) &&
           all_active(f, is_active);
}

/*
 * Workers that no plan has are told so and end.  Their launcher starts them again, and is told not
 * to.
 */
static void
end_strangers(struct fixture *f, int32_t containers)
{
    for (int i = 0; i < f->started; i++) {
        struct fake_worker *worker = &f->workers[i];
        if (worker->is_alive && worker->container > containers) {
            UNTIL(f, worker->rejections > 0 || !worker->is_alive);
            launcher_restart(f, worker->container);
            UNTIL(f, worker_of(f, worker->container) == NULL);
        }
    }
}

static void
assert_plan_runs(struct fixture *f, uint64_t version, int32_t bolts)
{
    struct sl_physical_plan plan;
    for (int32_t id = 1; id <= bolts + 1; id++) {
        assert_non_null(worker_of(f, id));
        assert_int_equal(worker_of(f, id)->plan.plan_version, version);
        assert_nothing_aside(worker_of(f, id));
    }
    assert_int_equal(get(f, SL_LAYOUT_PHYSICAL_PLAN), 0);
    assert_int_equal(sl_physical_plan_decode(f->value.data, f->value.size, &f->arena, &plan), 0);
    assert_int_equal(plan.plan_version, version);
    assert_int_equal(plan.container_count, bolts + 1);
    for (int i = 0; i < f->started; i++) {
        assert_true(!f->workers[i].is_alive || f->workers[i].container <= bolts + 1);
    }
}

/* The next update takes place at once: nobody holds the lock. */
static void
assert_next_update(struct fixture *f, uint64_t version, int32_t bolts)
{
    struct sl_update_result result = {0};
    int before = f->answers;
    send_change(f, version, bolts, 2 + bolts % 2, 3000);
    UNTIL(f, f->answers > before);
    assert_int_equal(f->result.status, SL_RPC_SUCCESS);
    assert_int_equal(sl_update_result_decode(f->answer.data, f->answer.size, &f->arena, &result),
                     0);
    assert_int_equal(result.outcome, SL_UPDATE_DONE);
    assert_int_equal(result.to_version, version + 1);
}

static void
begin(struct fixture *f, const struct change *change)
{
    run(f);
    fill_counts(f);
    if (change->is_paused) {
        ask(f, SL_TM_SET_STATE, (struct sl_control_request){10000, false, 0, 0, false});
        f->answers = 0;
    }
    f->shift.spouts = change->spouts;
    send_update(f, 2, change->to, 60000);
}

/* What the client was told is what came of it; when the answer was lost, either may have. */
static void
check_answer(struct fixture *f, uint64_t version)
{
    struct sl_update_result result = {0};
    if (f->answers == 0 || f->result.status != SL_RPC_SUCCESS) {
        return;
    }
    assert_int_equal(sl_update_result_decode(f->answer.data, f->answer.size, &f->arena, &result),
                     0);
    assert_int_equal(result.outcome == SL_UPDATE_ROLLED_BACK ? 1 : 2, version);
}

/* Strikes after `at` steps; true when the update was over by then. */
static bool
strike_at(struct fixture *f, const struct harm *harm, const struct change *change, int32_t id,
          int at, bool *has_version)
{
    bool is_active = !change->is_paused;
    begin(f, change);
    step(f, at);
    bool is_over = f->answers > 0;
    harm->strike(f, id);
    /* The harm is noticed. */
    sl_sim_run_for(f->sim, 50);
    UNTIL(f, is_settled(f, is_active) && f->gateway != NULL);
    if (!harm->is_deaf) {
        UNTIL(f, f->answers > 0);
    } else {
        sl_sim_run_for(f->sim, 1000);
    }
    UNTIL(f, is_settled(f, is_active));
    uint64_t version = stored_version(f);
    assert_true(version == 1 || version == 2);
    int32_t bolts = version == 1 ? 2 : change->to;
    check_answer(f, version);
    has_version[version] = true;
    end_strangers(f, bolts + 1);
    UNTIL(f, is_settled(f, is_active));
    assert_plan_runs(f, version, bolts);
    if (!harm->loses_counts) {
        assert_counts(f);
    }
    f->current_shift = version == 1 ? (struct plan_shift){0} : f->shift;
    f->shift = (struct plan_shift){0};
    assert_next_update(f, version, bolts);
    if (!harm->loses_counts) {
        assert_counts(f);
    }
    return is_over;
}

static void
strike_everywhere(void **state, const struct harm *harm)
{
    for (size_t i = 0; i < array_size(changes); i++) {
        bool has_version[3] = {false, false, false};
        for (int32_t id = 1; id <= harm->ids; id++) {
            bool is_over = false;
            for (int at = 0; !is_over; at += STRIDE) {
                assert_true(at < STEPS_MAX);
                is_over = strike_at(*state, harm, &changes[i], id, at, has_version);
                teardown(state);
                setup(state);
            }
        }
        /* Some strikes were early enough to leave the old plan, some too late. */
        assert_true(has_version[2]);
    }
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void
test_a_power_failure_of_the_topology_master(void **state)
{
    strike_everywhere(state, &(struct harm){crash_master, 1, false, true});
}

static void
test_a_restart_of_the_topology_master(void **state)
{
    strike_everywhere(state, &(struct harm){restart_master, 1, false, true});
}

static void
test_a_death_of_each_worker(void **state)
{
    strike_everywhere(state, &(struct harm){kill_worker, 5, true, false});
}

static void
test_a_death_of_a_worker_and_the_topology_master(void **state)
{
    strike_everywhere(state, &(struct harm){kill_worker_and_master, 3, true, true});
}

static void
test_a_worker_that_stops_for_a_while(void **state)
{
    strike_everywhere(state, &(struct harm){stop_worker, 5, false, false});
}

static void
test_a_worker_that_stops_for_good(void **state)
{
    strike_everywhere(state, &(struct harm){stop_worker_for_long, 3, true, false});
}

static void
test_a_topology_master_that_stops_for_a_while(void **state)
{
    strike_everywhere(state, &(struct harm){stop_master, 1, false, false});
}

static void
test_connections_that_break(void **state)
{
    strike_everywhere(state, &(struct harm){break_connections, 3, false, false});
}

static void
test_sessions_between_workers_that_are_lost(void **state)
{
    strike_everywhere(state, &(struct harm){break_sessions, 5, false, false});
}

static void
test_a_state_manager_that_is_away_for_a_while(void **state)
{
    strike_everywhere(state, &(struct harm){stop_store, 1, false, false});
}

static void
test_a_write_that_breaks_off(void **state)
{
    strike_everywhere(state, &(struct harm){break_next_write, 2, false, false});
}

static void
test_a_client_that_ends(void **state)
{
    strike_everywhere(state, &(struct harm){end_client, 1, false, true});
}

static void
test_a_kill(void **state)
{
    bool is_over = false;
    for (int at = 0; !is_over; at += STRIDE) {
        struct fixture *f = *state;
        run(f);
        send_update(f, 2, 4, 60000);
        step(f, at);
        is_over = f->answers > 0;
        int before = f->answers;
        send(f, SL_TM_KILL, &(struct sl_control_request){.time_limit_ms = 0});
        UNTIL(f, f->answers == before + (is_over ? 1 : 2));
        UNTIL(f, f->has_ended);
        assert_int_equal(f->end_code, 0);
        for (int i = 0; i < f->started; i++) {
            assert_false(f->workers[i].is_alive);
        }
        teardown(state);
        setup(state);
    }
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_power_failure_of_the_topology_master),
        TEST(test_a_restart_of_the_topology_master),
        TEST(test_a_death_of_each_worker),
        TEST(test_a_death_of_a_worker_and_the_topology_master),
        TEST(test_a_worker_that_stops_for_a_while),
        TEST(test_a_worker_that_stops_for_good),
        TEST(test_a_topology_master_that_stops_for_a_while),
        TEST(test_connections_that_break),
        TEST(test_sessions_between_workers_that_are_lost),
        TEST(test_a_state_manager_that_is_away_for_a_while),
        TEST(test_a_write_that_breaks_off),
        TEST(test_a_client_that_ends),
        TEST(test_a_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
