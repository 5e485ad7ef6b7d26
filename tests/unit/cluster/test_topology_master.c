/* Topology masters: leading, commands, updates (topology_fixture.h). labels: short */
#include "topology_fixture.h"

static void
test_all_workers_get_the_plan_and_it_is_published(void **state)
{
    struct fixture *f = *state;
    struct sl_physical_plan plan;
    run(f);
    assert_int_equal(f->started, 3);
    assert_true(all_active(f, true));
    assert_int_equal(get(f, SL_LAYOUT_PHYSICAL_PLAN), 0);
    assert_int_equal(sl_physical_plan_decode(f->value.data, f->value.size, &f->arena, &plan), 0);
    assert_true(sl_physical_plan_is_complete(&plan));
    assert_int_equal(plan.state, SL_TOPOLOGY_RUNNING);
    assert_int_equal(plan.plan_version, 1);
    struct sl_control_status status =
        ask(f, SL_TM_AWAIT, (struct sl_control_request){.time_limit_ms = 1000});
    assert_true(status.is_settled);
    assert_int_equal(status.state, SL_TOPOLOGY_RUNNING);
    assert_int_equal(status.container_count, 3);
    assert_string_equal(status.containers[2].state, "RUNNING");
    assert_int_equal(status.containers[2].pid, worker_of(f, 3)->pid);
    assert_int_equal(status.guardian_pid, 76);
    /* Reports of heartbeats are summed up. */
    sl_sim_run_for(f->sim, 2500);
    status = ask(f, SL_TM_STATUS, (struct sl_control_request){.time_limit_ms = 0});
    assert_int_equal(status.counters[1].executed, 30);
    assert_int_equal(status.counters[1].errors, 3);
}

static void
test_waiting_ends_with_what_is_missing(void **state)
{
    struct fixture *f = *state;
    f->is_silent_start = true;
    master_start(f);
    UNTIL(f, f->gateway != NULL);
    /* Workers that never register. */
    f->leader_token = 0;
    struct sl_control_status status =
        ask(f, SL_TM_AWAIT, (struct sl_control_request){.time_limit_ms = 3000});
    assert_false(status.is_settled);
}

static void
test_a_plan_that_is_refused_is_told_to_who_waits(void **state)
{
    struct fixture *f = *state;
    f->refuse_plan = true;
    master_start(f);
    UNTIL(f, f->gateway != NULL);
    struct sl_control_status status =
        ask(f, SL_TM_AWAIT, (struct sl_control_request){.time_limit_ms = 60000});
    assert_false(status.is_settled);
    assert_string_equal(status.failure, "topo.lua:3: no such file");
    f->refuse_plan = false;
    status = ask(f, SL_TM_KILL, (struct sl_control_request){.time_limit_ms = 0});
    assert_int_equal(f->result.status, SL_RPC_SUCCESS);
}

static void
test_spouts_are_paused_and_go_on(void **state)
{
    struct fixture *f = *state;
    run(f);
    struct sl_control_status status =
        ask(f, SL_TM_SET_STATE, (struct sl_control_request){10000, false, 0, 0, false});
    assert_int_equal(status.state, SL_TOPOLOGY_PAUSED);
    assert_true(all_active(f, false));
    struct sl_execution_state execution;
    assert_int_equal(get(f, SL_LAYOUT_EXECUTION_STATE), 0);
    assert_int_equal(sl_execution_state_decode(f->value.data, f->value.size, &f->arena, &execution),
                     0);
    assert_int_equal(execution.state, SL_TOPOLOGY_PAUSED);
    assert_false(execution.is_active);
    status = ask(f, SL_TM_SET_STATE, (struct sl_control_request){10000, true, 0, 0, false});
    assert_int_equal(status.state, SL_TOPOLOGY_RUNNING);
    assert_true(all_active(f, true));
}

static void
test_a_worker_that_died_is_replaced_and_all_learn_of_it(void **state)
{
    struct fixture *f = *state;
    run(f);
    int plans = worker_of(f, 1)->plans;
    launcher_restart(f, 2);
    UNTIL(f, f->started == 4);
    UNTIL(f, sl_topology_master_is_settled(f->master) && worker_of(f, 2)->is_active);
    assert_int_equal(worker_of(f, 1)->plans, plans + 1);
    assert_true(worker_of(f, 1)->is_active);
    const struct sl_physical_container *container =
        sl_physical_plan_container(&worker_of(f, 1)->plan, 2);
    assert_int_equal(container->pid, worker_of(f, 2)->pid);
}

static void
test_a_silent_worker_is_restarted(void **state)
{
    struct fixture *f = *state;
    run(f);
    sl_sim_loop_pause(worker_of(f, 3)->loop);
    UNTIL(f, f->started == 4);
    UNTIL(f, sl_topology_master_is_settled(f->master) && worker_of(f, 3)->is_active);
}

static void
test_connections_that_break_hold_nothing_up(void **state)
{
    for (int at = 0; at < 120; at += 2) {
        struct fixture *f = *state;
        run(f);
        launcher_restart(f, 2);
        step(f, at);
        sl_sim_reset(f->sim, "127.0.0.2", worker_of(f, 3)->host);
        if (worker_of(f, 2) != NULL) {
            sl_sim_reset(f->sim, "127.0.0.2", worker_of(f, 2)->host);
        }
        uint64_t from = sl_sim_now_ms(f->sim);
        sl_sim_run_for(f->sim, 50);
        UNTIL(f, sl_topology_master_is_settled(f->master) && all_active(f, true));
        assert_true(sl_sim_now_ms(f->sim) < from + 2000);
        assert_int_equal(f->started, 4);
        teardown(state);
        setup(state);
    }
}

static void
test_a_restart_answers_when_the_new_process_runs(void **state)
{
    struct fixture *f = *state;
    run(f);
    uint64_t before = worker_of(f, 2)->pid;
    struct sl_control_status status =
        ask(f, SL_TM_RESTART, (struct sl_control_request){30000, false, 2, 0, false});
    assert_true(status.is_settled);
    assert_int_not_equal(worker_of(f, 2)->pid, before);
    ask(f, SL_TM_RESTART, (struct sl_control_request){30000, false, 9, 0, false});
    assert_int_equal(f->result.code, SL_ENOTFOUND);
}

static void
test_a_stranger_that_claims_a_container_is_rejected(void **state)
{
    struct fixture *f = *state;
    run(f);
    struct fake_worker *stranger = worker_start(f, 2);
    /* The launcher knows the first one. */
    stranger->container = 99;
    UNTIL(f, stranger->rejections == 1);
    assert_int_equal(stranger->plans, 0);
}

/* All workers know the next leader before it has read its plan. */
static void
test_registrations_that_come_early_are_kept_apart(void **state)
{
    struct fixture *f = *state;
    run(f);
    uint64_t token = f->leader_token;
    sl_topology_master_free(f->master);
    sl_memory_server_set_faults(f->server,
                                &(struct sl_memory_faults){.delay_min_ms = 20, .delay_max_ms = 20});
    master_start(f);
    UNTIL(f, f->leader_token != 0 && f->leader_token != token);
    uint64_t from = sl_sim_now_ms(f->sim);
    UNTIL(f, sl_topology_master_is_settled(f->master) && all_active(f, true));
    assert_true(sl_sim_now_ms(f->sim) - from < 1000);
    assert_int_equal(f->started, 3);
}

static void
test_the_next_topology_master_takes_over_without_a_restart(void **state)
{
    struct fixture *f = *state;
    run(f);
    ask(f, SL_TM_SET_STATE, (struct sl_control_request){10000, false, 0, 0, false});
    uint64_t token = f->leader_token;
    sl_topology_master_free(f->master);
    master_start(f);
    UNTIL(f, f->leader_token != 0 && f->leader_token != token);
    UNTIL(f, sl_topology_master_is_settled(f->master));
    assert_int_equal(f->started, 3);
    assert_true(all_active(f, false));
    struct sl_control_status status =
        ask(f, SL_TM_STATUS, (struct sl_control_request){.time_limit_ms = 0});
    assert_int_equal(status.state, SL_TOPOLOGY_PAUSED);
}

static void
test_an_update_moves_the_counts_and_keeps_the_workers(void **state)
{
    struct fixture *f = *state;
    run(f);
    fill_counts(f);
    uint64_t first = worker_of(f, 2)->pid;
    worker_of(f, 1)->busy_rounds = 2;
    struct sl_update_result result = update(f, 2, 4);
    assert_int_equal(result.outcome, SL_UPDATE_DONE);
    assert_int_equal(result.from_version, 1);
    assert_int_equal(result.to_version, 2);
    assert_int_equal(result.groups_moved, 4);
    assert_int_equal(result.bytes_moved, 4 * ENTRIES * 18);
    assert_true(result.paused_ms > 0 && result.paused_ms < 1000);
    assert_int_equal(stored_version(f), 2);
    assert_int_equal(f->started, 5);
    assert_int_equal(worker_of(f, 2)->pid, first);
    assert_true(all_active(f, true));
    assert_counts(f);
    struct sl_physical_plan plan;
    assert_int_equal(get(f, SL_LAYOUT_PHYSICAL_PLAN), 0);
    assert_int_equal(sl_physical_plan_decode(f->value.data, f->value.size, &f->arena, &plan), 0);
    assert_int_equal(plan.plan_version, 2);
}

static void
test_an_update_that_shrinks_ends_the_containers_that_are_left_over(void **state)
{
    struct fixture *f = *state;
    run(f);
    fill_counts(f);
    struct sl_update_result result = update(f, 2, 1);
    assert_int_equal(result.outcome, SL_UPDATE_DONE);
    assert_int_equal(f->removed, 1);
    assert_null(worker_of(f, 3));
    assert_counts(f);
}

/* jstorm 7.11: whoever looks sees the last plan, however quickly they follow each other. */
static void
test_300_updates_in_a_row_end_with_the_last_plan(void **state)
{
    struct fixture *f = *state;
    int32_t bolts = 2;
    run(f);
    fill_counts(f);
    for (uint64_t version = 1; version <= 300; version++) {
        int before = f->answers;
        int32_t next = bolts % 3 + 1;
        send_change(f, version, bolts, next, 3000);
        UNTIL(f, f->answers > before);
        assert_int_equal(f->result.status, SL_RPC_SUCCESS);
        bolts = next;
    }
    assert_int_equal(stored_version(f), 301);
    for (int32_t id = 1; id <= bolts + 1; id++) {
        assert_int_equal(worker_of(f, id)->plan.plan_version, 301);
    }
    assert_true(all_active(f, true));
    assert_counts(f);
}

/* jstorm 7.14: it comes back where it was. */
static void
test_a_worker_that_dies_again_and_again_keeps_its_container(void **state)
{
    struct fixture *f = *state;
    run(f);
    for (int i = 0; i < 12; i++) {
        launcher_restart(f, 2);
        UNTIL(f, f->started == 4 + i);
        UNTIL(f, sl_topology_master_is_settled(f->master) && worker_of(f, 2)->is_active);
    }
    assert_int_equal(stored_version(f), 1);
    assert_int_equal(worker_of(f, 2)->plan.container_count, 3);
}

/* heron 7.15, 7.10: it ends, the next one leads, and no worker is started for it. */
static void
test_a_topology_master_whose_session_is_over_stops_leading(void **state)
{
    struct fixture *f = *state;
    run(f);
    uint64_t token = f->leader_token;
    sl_memory_server_expire(f->server, sl_state_store_session(f->master_node.store));
    UNTIL(f, f->has_ended);
    assert_int_equal(f->end_code, SL_EFENCED);
    sl_topology_master_free(f->master);
    master_start(f);
    uint64_t from = sl_sim_now_ms(f->sim);
    UNTIL(f, f->leader_token != 0 && f->leader_token != token);
    UNTIL(f, sl_topology_master_is_settled(f->master) && all_active(f, true));
    assert_true(sl_sim_now_ms(f->sim) - from < 5000);
    assert_int_equal(f->started, 3);
}

static void
test_a_dry_run_says_what_would_move_and_touches_nothing(void **state)
{
    struct fixture *f = *state;
    run(f);
    fill_counts(f);
    int plans = worker_of(f, 2)->plans;
    f->is_dry_run = true;
    struct sl_update_result result = update(f, 2, 4);
    assert_int_equal(f->result.status, SL_RPC_SUCCESS);
    assert_int_equal(result.groups_moved, 4);
    assert_int_equal(result.bytes_moved, 40);
    assert_int_equal(f->started, 3);
    assert_int_equal(worker_of(f, 2)->plans, plans);
    assert_int_equal(stored_version(f), 1);
    assert_true(all_active(f, true));
    assert_counts(f);
    /* A worker that is lost meanwhile says nothing. */
    int before = f->answers;
    send_update(f, 2, 4, 3000);
    step(f, 3);
    sl_sim_loop_pause(worker_of(f, 2)->loop);
    UNTIL(f, f->answers > before);
    assert_int_not_equal(f->result.status, SL_RPC_SUCCESS);
    f->is_dry_run = false;
    UNTIL(f, sl_topology_master_is_settled(f->master) && all_active(f, true));
    result = update(f, 2, 4);
    assert_int_equal(result.outcome, SL_UPDATE_DONE);
}

static void
test_an_update_moves_state_from_containers_that_end_to_new_ones(void **state)
{
    struct fixture *f = *state;
    run(f);
    fill_counts(f);
    f->shift.container = 10;
    struct sl_update_result result = update(f, 2, 2);
    assert_int_equal(result.outcome, SL_UPDATE_DONE);
    assert_int_equal(result.groups_moved, GROUPS);
    assert_null(worker_of(f, 2));
    assert_non_null(worker_of(f, 12));
    assert_counts(f);
    for (int i = 0; i < f->started; i++) {
        assert_true(!f->workers[i].is_alive || f->workers[i].plan.container_count == 3);
    }
}

static void
test_an_update_of_a_paused_topology_leaves_it_paused(void **state)
{
    struct fixture *f = *state;
    run(f);
    ask(f, SL_TM_SET_STATE, (struct sl_control_request){10000, false, 0, 0, false});
    struct sl_update_result result = update(f, 2, 4);
    assert_int_equal(result.outcome, SL_UPDATE_DONE);
    assert_int_equal(result.paused_ms, 0);
    assert_true(all_active(f, false));
    assert_int_equal(ask(f, SL_TM_STATUS, (struct sl_control_request){.time_limit_ms = 0}).state,
                     SL_TOPOLOGY_PAUSED);
}

static void
assert_rolled_back(struct fixture *f, const struct sl_update_result *result)
{
    assert_int_equal(result->outcome, SL_UPDATE_ROLLED_BACK);
    assert_int_equal(stored_version(f), 1);
    assert_null(worker_of(f, 4));
    assert_null(worker_of(f, 5));
    assert_true(all_active(f, true));
    assert_counts(f);
    for (int32_t id = 1; id <= 3; id++) {
        assert_int_equal(worker_of(f, id)->plan.plan_version, 1);
        assert_nothing_aside(worker_of(f, id));
    }
    /* The lock is free: the next update takes place. */
    f->refuse_plan = false;
    f->refuse_export = false;
    struct sl_update_result next = update(f, 2, 4);
    assert_int_equal(next.outcome, SL_UPDATE_DONE);
    assert_counts(f);
}

static void
test_an_update_whose_new_workers_fail_is_rolled_back(void **state)
{
    struct fixture *f = *state;
    run(f);
    fill_counts(f);
    f->refuse_plan = true;
    struct sl_update_result result = update(f, 2, 4);
    assert_non_null(strstr(result.reason, "no such file"));
    /* Nothing was paused for it. */
    assert_int_equal(result.paused_ms, 0);
    assert_rolled_back(f, &result);
}

static void
test_an_update_that_does_not_drain_is_rolled_back(void **state)
{
    struct fixture *f = *state;
    run(f);
    fill_counts(f);
    worker_of(f, 1)->busy_rounds = 1000000;
    struct sl_update_result result = update(f, 2, 4);
    assert_non_null(strstr(result.reason, "in flight"));
    worker_of(f, 1)->busy_rounds = 0;
    assert_rolled_back(f, &result);
}

static void
test_an_update_that_only_adds_tasks_waits_for_nothing_in_flight(void **state)
{
    struct fixture *f = *state;
    run(f);
    fill_counts(f);
    worker_of(f, 1)->busy_rounds = 1000000;
    worker_of(f, 2)->busy_rounds = 1000000;
    f->shift.spouts = 2;
    struct sl_update_result result = update(f, 2, 2);
    assert_int_equal(result.outcome, SL_UPDATE_DONE);
    assert_true(result.paused_ms > 0 && result.paused_ms < 1000);
    assert_int_equal(result.groups_moved, 0);
    assert_true(all_active(f, true));
    assert_counts(f);
    assert_int_equal(worker_of(f, 1)->plan.task_count, 5);
}

static void
test_an_update_whose_state_can_not_move_is_rolled_back(void **state)
{
    struct fixture *f = *state;
    run(f);
    fill_counts(f);
    f->refuse_export = true;
    struct sl_update_result result = update(f, 2, 4);
    assert_non_null(strstr(result.reason, "no room"));
    assert_rolled_back(f, &result);
}

static void
test_an_update_whose_worker_dies_while_draining_is_rolled_back(void **state)
{
    struct fixture *f = *state;
    run(f);
    int before = f->answers;
    worker_of(f, 1)->busy_rounds = 1000000;
    send_update(f, 2, 4, 60000);
    UNTIL(f, f->started == 5 && !worker_of(f, 2)->is_active);
    launcher_restart(f, 3);
    UNTIL(f, f->answers > before);
    struct sl_update_result result;
    assert_int_equal(sl_update_result_decode(f->answer.data, f->answer.size, &f->arena, &result),
                     0);
    assert_int_equal(result.outcome, SL_UPDATE_ROLLED_BACK);
    assert_int_equal(stored_version(f), 1);
    assert_true(sl_topology_master_is_settled(f->master));
    assert_true(all_active(f, true));
}

static void
test_a_topology_master_that_dies_in_an_update_leaves_the_old_plan_running(void **state)
{
    struct fixture *f = *state;
    run(f);
    fill_counts(f);
    worker_of(f, 1)->busy_rounds = 1000000;
    send_update(f, 2, 4, 60000);
    UNTIL(f, f->started == 5 && !worker_of(f, 2)->is_active);
    uint64_t token = f->leader_token;
    sl_topology_master_free(f->master);
    master_start(f);
    UNTIL(f, f->leader_token != 0 && f->leader_token != token);
    UNTIL(f, sl_topology_master_is_settled(f->master) && worker_of(f, 2)->is_active);
    /* The workers of the plan that never came are told so. */
    UNTIL(f, worker_of(f, 4)->rejections == 1 && worker_of(f, 5)->rejections == 1);
    worker_die(worker_of(f, 4));
    worker_die(worker_of(f, 5));
    worker_of(f, 1)->busy_rounds = 0;
    assert_int_equal(stored_version(f), 1);
    assert_true(all_active(f, true));
    assert_counts(f);
    struct sl_update_result result = update(f, 2, 4);
    assert_int_equal(result.outcome, SL_UPDATE_DONE);
    assert_counts(f);
}

static void
test_an_update_planned_from_another_plan_conflicts(void **state)
{
    struct fixture *f = *state;
    run(f);
    update(f, 3, 4);
    assert_int_equal(f->result.status, SL_RPC_FAILURE);
    assert_int_equal(f->result.code, SL_ECONFLICT);
    assert_int_equal(f->started, 3);
}

static void
test_an_update_that_makes_another_task_of_one_is_refused(void **state)
{
    struct fixture *f = *state;
    run(f);
    f->shift.index = 1;
    update(f, 2, 4);
    assert_int_equal(f->result.code, SL_EINVAL);
    assert_non_null(strstr(f->reason, "task 2"));
    assert_int_equal(stored_version(f), 1);
    assert_int_equal(f->started, 3);
}

static void
test_one_of_two_updates_at_once_conflicts(void **state)
{
    struct fixture *f = *state;
    run(f);
    send_update(f, 2, 4, 3000);
    update(f, 2, 3);
    assert_int_equal(f->result.code, SL_ECONFLICT);
    assert_non_null(strstr(f->reason, "lock is held by another update of words, asked by"));
    UNTIL(f, f->answers == 2);
    assert_int_equal(stored_version(f), 2);
}

static void
test_ids_that_the_launcher_gave_are_published(void **state)
{
    struct fixture *f = *state;
    run(f);
    fill_counts(f);
    f->remap = 2;
    struct sl_update_result result = update(f, 2, 4);
    assert_int_equal(result.outcome, SL_UPDATE_DONE);
    assert_null(worker_of(f, 4));
    assert_non_null(worker_of(f, 6));
    assert_non_null(worker_of(f, 7));
    struct sl_stored_plan plan;
    assert_int_equal(get(f, SL_LAYOUT_PLAN), 0);
    assert_int_equal(sl_stored_plan_decode(f->value.data, f->value.size, &f->arena, &plan), 0);
    assert_int_equal(plan.plan.containers[3].id, 6);
    assert_int_equal(plan.plan.containers[4].id, 7);
    assert_counts(f);
}

/* PR 2582: asked for 5 and 6, the launcher gives 7 and 9, and takes its time for both answers. */
static void
test_a_launcher_may_take_its_time(void **state)
{
    struct fixture *f = *state;
    run(f);
    fill_counts(f);
    f->remap = 2;
    f->slow_updates = 1;
    f->slow_adds = 1;
    struct sl_update_result result = update(f, 2, 4);
    assert_int_equal(result.outcome, SL_UPDATE_DONE);
    assert_int_equal(f->slow_adds, 0);
    assert_int_equal(f->prepared, 2);
    assert_non_null(worker_of(f, 6));
    assert_counts(f);
}

static void
test_a_launcher_may_refuse_an_update(void **state)
{
    struct fixture *f = *state;
    run(f);
    int started = f->started;
    f->refuse_update = true;
    f->slow_updates = 1;
    struct sl_update_result result = update(f, 2, 4);
    assert_int_equal(result.outcome, SL_UPDATE_ROLLED_BACK);
    assert_non_null(strstr(result.reason, "not today"));
    assert_int_equal(f->started, started);
    assert_int_equal(stored_version(f), 1);
    f->refuse_update = false;
    result = update(f, 2, 4);
    assert_int_equal(result.outcome, SL_UPDATE_DONE);
}

/* Nomad: only updates that keep the containers. Others are refused before anything is touched. */
static void
test_a_launcher_that_can_not_scale_is_not_asked_to(void **state)
{
    struct fixture *f = *state;
    f->can_not_scale = true;
    run(f);
    update(f, 2, 4);
    assert_int_equal(f->result.code, SL_EINVAL);
    assert_non_null(strstr(f->reason, "its launcher can neither add nor remove containers"));
    assert_int_equal(f->prepared, 0);
    assert_int_equal(stored_version(f), 1);
}

static void
test_a_kill_drains_and_ends_everything(void **state)
{
    struct fixture *f = *state;
    run(f);
    worker_of(f, 1)->busy_rounds = 3;
    struct sl_control_status status =
        ask(f, SL_TM_KILL, (struct sl_control_request){.time_limit_ms = 5000});
    assert_int_equal(f->result.status, SL_RPC_SUCCESS);
    assert_int_equal(status.state, SL_TOPOLOGY_KILLED);
    assert_int_equal(status.pid, 77);
    UNTIL(f, f->has_ended);
    assert_int_equal(f->end_code, 0);
    for (int i = 0; i < f->started; i++) {
        assert_false(f->workers[i].is_alive);
    }
}

/* What a worker had that died a moment ago can end only with the next one. */
static void
test_a_kill_that_may_wait_drains_when_a_worker_is_there_again(void **state)
{
    struct fixture *f = *state;
    run(f);
    int before = f->started;
    launcher_restart(f, 1);
    UNTIL(f, f->started == before + 1);
    assert_false(sl_topology_master_is_settled(f->master));
    struct sl_control_status status =
        ask(f, SL_TM_KILL, (struct sl_control_request){.time_limit_ms = 5000});
    assert_int_equal(f->result.status, SL_RPC_SUCCESS);
    assert_int_equal(status.state, SL_TOPOLOGY_KILLED);
    assert_true(f->workers[before].drains > 0);
    UNTIL(f, f->has_ended);
}

static void
test_a_kill_waits_no_longer_than_it_may(void **state)
{
    struct fixture *f = *state;
    run(f);
    f->is_silent_start = true;
    launcher_restart(f, 1);
    UNTIL(f, f->started == 4);
    ask(f, SL_TM_KILL, (struct sl_control_request){.time_limit_ms = 2000});
    assert_int_equal(f->result.status, SL_RPC_SUCCESS);
    assert_int_equal(f->workers[0].drains + f->workers[1].drains + f->workers[2].drains, 0);
    UNTIL(f, f->has_ended);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_all_workers_get_the_plan_and_it_is_published),
        TEST(test_waiting_ends_with_what_is_missing),
        TEST(test_a_plan_that_is_refused_is_told_to_who_waits),
        TEST(test_spouts_are_paused_and_go_on),
        TEST(test_a_worker_that_died_is_replaced_and_all_learn_of_it),
        TEST(test_a_silent_worker_is_restarted),
        TEST(test_connections_that_break_hold_nothing_up),
        TEST(test_a_restart_answers_when_the_new_process_runs),
        TEST(test_a_stranger_that_claims_a_container_is_rejected),
        TEST(test_registrations_that_come_early_are_kept_apart),
        TEST(test_the_next_topology_master_takes_over_without_a_restart),
        TEST(test_an_update_moves_the_counts_and_keeps_the_workers),
        TEST(test_an_update_that_shrinks_ends_the_containers_that_are_left_over),
        TEST(test_300_updates_in_a_row_end_with_the_last_plan),
        TEST(test_a_worker_that_dies_again_and_again_keeps_its_container),
        TEST(test_a_topology_master_whose_session_is_over_stops_leading),
        TEST(test_a_dry_run_says_what_would_move_and_touches_nothing),
        TEST(test_an_update_moves_state_from_containers_that_end_to_new_ones),
        TEST(test_an_update_of_a_paused_topology_leaves_it_paused),
        TEST(test_an_update_whose_new_workers_fail_is_rolled_back),
        TEST(test_an_update_that_does_not_drain_is_rolled_back),
        TEST(test_an_update_that_only_adds_tasks_waits_for_nothing_in_flight),
        TEST(test_an_update_whose_state_can_not_move_is_rolled_back),
        TEST(test_an_update_whose_worker_dies_while_draining_is_rolled_back),
        TEST(test_a_topology_master_that_dies_in_an_update_leaves_the_old_plan_running),
        TEST(test_an_update_planned_from_another_plan_conflicts),
        TEST(test_an_update_that_makes_another_task_of_one_is_refused),
        TEST(test_one_of_two_updates_at_once_conflicts),
        TEST(test_ids_that_the_launcher_gave_are_published),
        TEST(test_a_launcher_may_take_its_time),
        TEST(test_a_launcher_may_refuse_an_update),
        TEST(test_a_launcher_that_can_not_scale_is_not_asked_to),
        TEST(test_a_kill_drains_and_ends_everything),
        TEST(test_a_kill_that_may_wait_drains_when_a_worker_is_there_again),
        TEST(test_a_kill_waits_no_longer_than_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
