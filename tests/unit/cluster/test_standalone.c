/* Supervisors, topology masters and workers that come and go, in virtual time. labels: short */
#include "standalone_fixture.h"

static const char *const places[] = {"s0:6800", "s1:6800", NULL};

static void
test_workers_run_where_the_plan_says(void **state)
{
    struct fixture *f = *state;
    submit(f, "s0:6800", places);
    struct sl_control_status status = await_settled(f);
    assert_true(status.is_settled);
    assert_string_equal(status.failure, "");
    assert_int_equal(count_alive(f), 3);
    assert_string_equal(process_of(f, 0)->supervisor, "s0");
    assert_string_equal(process_of(f, 1)->supervisor, "s0");
    assert_string_equal(process_of(f, 2)->supervisor, "s1");
    assert_int_equal(process_of(f, 2)->port, 6800);
    assert_int_equal(status.containers[1].pid, process_of(f, 2)->pid);
    /* Nothing comes of it when nothing happens. */
    run_for(f, 120000);
    assert_int_equal(f->started, 3);
    assert_int_equal(process_of(f, 1)->plans, 1);
}

static void
test_a_dead_worker_is_restarted_in_place(void **state)
{
    struct fixture *f = *state;
    submit(f, "s0:6800", places);
    await_settled(f);
    struct process *other = process_of(f, 1);
    struct process *victim = process_of(f, 2);
    process_end(victim, -1, SIGKILL);
    UNTIL(f, process_of(f, 2) != NULL);
    struct sl_control_status status = await_settled(f);
    assert_string_equal(process_of(f, 2)->supervisor, "s1");
    assert_int_equal(process_of(f, 2)->port, 6800);
    assert_int_equal(status.containers[1].restarts, 1);
    assert_int_equal(status.containers[1].pid, process_of(f, 2)->pid);
    assert_ptr_equal(process_of(f, 1), other);
    assert_int_equal(f->started, 4);
    /* Its slot is the same one, and nobody is asked for another. */
    run_for(f, 60000);
    assert_int_equal(f->started, 4);
}

static void
test_a_dead_topology_master_is_restarted_and_workers_run_on(void **state)
{
    struct fixture *f = *state;
    submit(f, "s1:6801", places);
    await_settled(f);
    struct process *workers[] = {process_of(f, 1), process_of(f, 2)};
    for (int i = 0; i < 3; i++) {
        uint64_t token = f->leader_token;
        process_end(process_of(f, 0), -1, SIGKILL);
        UNTIL(f, f->leader_token != 0 && f->leader_token != token);
        assert_true(await_settled(f).is_settled);
        assert_string_equal(process_of(f, 0)->supervisor, "s1");
        run_for(f, 30000);
    }
    assert_ptr_equal(process_of(f, 1), workers[0]);
    assert_ptr_equal(process_of(f, 2), workers[1]);
    assert_int_equal(f->started, 6);
}

static void
test_a_new_supervisor_takes_over_what_runs(void **state)
{
    struct fixture *f = *state;
    submit(f, "s0:6800", places);
    await_settled(f);
    for (int i = 0; i < 4; i++) {
        /* Killed, or told to end; the topology master's own, or the other one. */
        supervisor_end(f, i % 2, i < 2);
        run_for(f, 2000);
        assert_int_equal(count_alive(f), 3);
        supervisor_start(f, i % 2);
        UNTIL(f, sl_supervisor_is_registered(f->supervisors[i % 2].supervisor));
        run_for(f, 60000);
        assert_int_equal(f->started, 3);
        assert_true(await_settled(f).is_settled);
    }
    /* They are its own now. */
    process_end(process_of(f, 1), -1, SIGKILL);
    UNTIL(f, process_of(f, 1) != NULL);
    assert_true(await_settled(f).is_settled);
    process_end(process_of(f, 0), -1, SIGKILL);
    UNTIL(f, process_of(f, 0) != NULL);
    run_for(f, 60000);
    assert_true(await_settled(f).is_settled);
    assert_int_equal(f->started, 5);
}

static void
test_what_ended_while_the_supervisor_was_away_is_started_by_the_next(void **state)
{
    struct fixture *f = *state;
    submit(f, "s0:6800", places);
    await_settled(f);
    supervisor_end(f, 1, true);
    process_end(process_of(f, 2), -1, SIGKILL);
    run_for(f, 20000);
    assert_null(process_of(f, 2));
    supervisor_start(f, 1);
    UNTIL(f, process_of(f, 2) != NULL);
    assert_true(await_settled(f).is_settled);
    run_for(f, 60000);
    assert_int_equal(f->started, 4);
}

static void
test_the_loss_of_the_master_restarts_nothing(void **state)
{
    struct fixture *f = *state;
    submit(f, "s0:6800", places);
    await_settled(f);
    rm_kill(f);
    run_for(f, 60000);
    assert_int_equal(f->started, 3);
    /* A dead worker needs no master. */
    process_end(process_of(f, 1), -1, SIGKILL);
    UNTIL(f, process_of(f, 1) != NULL);
    assert_true(await_settled(f).is_settled);
    rm_start(f);
    UNTIL(f, sl_resource_manager_supervisor_count(f->rm) == 2 &&
                 sl_resource_manager_has_master(f->rm, "words"));
    run_for(f, 60000);
    assert_true(await_settled(f).is_settled);
    assert_int_equal(f->started, 4);
}

/* Between the topology master and the supervisor all is well. */
static void
test_a_supervisor_that_only_the_master_does_not_reach_keeps_its_workers(void **state)
{
    struct fixture *f = *state;
    submit(f, "s0:6800", places);
    await_settled(f);
    sl_sim_cut(f->sim, f->rm_node.host, f->supervisors[1].node.host);
    sl_sim_cut(f->sim, f->supervisors[1].node.host, f->rm_node.host);
    UNTIL(f, sl_resource_manager_supervisor_count(f->rm) == 1);
    run_for(f, 20000);
    sl_sim_heal_all(f->sim);
    UNTIL(f, sl_resource_manager_supervisor_count(f->rm) == 2);
    run_for(f, 60000);
    assert_int_equal(f->started, 3);
    assert_true(await_settled(f).is_settled);
    assert_int_equal(sl_resource_manager_slots(f->rm)->free_count, 2 * PORTS - 2);
}

/* Writes a plan as a master does, and tells the topology master. */
static enum sl_rpc_status
change_plan(struct fixture *f, uint64_t version, const char *master, const char *const *to)
{
    struct sl_buf value = {0};
    make_plan(version, master, to, &value);
    write_node(f, SL_LAYOUT_PLAN, &value, false);
    sl_buf_destroy(&value);
    return call_master(f, SL_TM_PLAN_CHANGED, (struct sl_control_request){0});
}

static void
test_a_supervisor_that_is_stopped_for_long_keeps_its_workers(void **state)
{
    struct fixture *f = *state;
    submit(f, "s1:6801", places);
    await_settled(f);
    struct process *workers[] = {process_of(f, 1), process_of(f, 2)};
    for (int i = 0; i < 2; i++) {
        sl_sim_loop_pause(f->supervisors[i].node.loop);
        run_for(f, 3 * (uint64_t)f->settings.heartbeat_timeout_ms);
        sl_sim_loop_resume(f->supervisors[i].node.loop);
        run_for(f, (uint64_t)f->settings.slot_orphan_timeout_ms + 10000);
        assert_true(await_settled(f).is_settled);
    }
    assert_ptr_equal(process_of(f, 1), workers[0]);
    assert_ptr_equal(process_of(f, 2), workers[1]);
    assert_int_equal(f->started, 3);
}

static void
test_a_container_moves_to_the_slot_of_a_new_plan(void **state)
{
    struct fixture *f = *state;
    static const char *const moved[] = {"s0:6800", "s0:6802", NULL};
    submit(f, "s0:6800", places);
    await_settled(f);
    struct process *kept = process_of(f, 1);
    assert_int_equal(change_plan(f, 2, "s0:6800", moved), SL_RPC_SUCCESS);
    struct sl_control_status status = await_settled(f);
    assert_int_equal(status.plan_version, 2);
    assert_ptr_equal(process_of(f, 1), kept);
    assert_string_equal(process_of(f, 2)->supervisor, "s0");
    assert_int_equal(process_of(f, 2)->port, 6802);
    assert_int_equal(count_alive(f), 3);
    /* The same plan again is no change; the slot that was left is free for others. */
    assert_int_equal(call_master(f, SL_TM_PLAN_CHANGED, (struct sl_control_request){0}),
                     SL_RPC_SUCCESS);
    static const char *const back[] = {"s0:6800", "s1:6800", NULL};
    assert_int_equal(change_plan(f, 3, "s0:6800", back), SL_RPC_SUCCESS);
    await_settled(f);
    assert_string_equal(process_of(f, 2)->supervisor, "s1");
    run_for(f, 60000);
    assert_int_equal(count_alive(f), 3);
    assert_int_equal(f->started, 5);
}

/* The supervisor is dead, its worker is not: no two of a container run side by side. */
static void
test_a_worker_ends_when_the_plan_has_its_container_elsewhere(void **state)
{
    struct fixture *f = *state;
    static const char *const moved[] = {"s0:6800", "s0:6801", NULL};
    submit(f, "s0:6800", places);
    await_settled(f);
    struct process *old = process_of(f, 2);
    supervisor_end(f, 1, true);
    run_for(f, 10000);
    assert_true(old->is_alive);
    assert_int_equal(change_plan(f, 2, "s0:6800", moved), SL_RPC_SUCCESS);
    assert_true(await_settled(f).is_settled);
    run_for(f, 1000);
    assert_false(old->is_alive);
    assert_string_equal(process_of(f, 2)->supervisor, "s0");
    /* The supervisor comes back: what it remembers is not wanted any more. */
    int before = f->started;
    supervisor_start(f, 1);
    run_for(f, 60000);
    assert_int_equal(count_alive(f), 3);
    assert_string_equal(process_of(f, 2)->supervisor, "s0");
    assert_in_range(f->started - before, 0, 2);
}

static void
test_a_topology_master_ends_where_the_plan_does_not_have_it(void **state)
{
    struct fixture *f = *state;
    submit(f, "s0:6800", places);
    await_settled(f);
    struct process *workers[] = {process_of(f, 1), process_of(f, 2)};
    struct process *old = process_of(f, 0);
    /* Where the plan does not have it, it does not even wait for its turn. */
    assert_int_equal(call_supervisor(f, 1, SL_SV_START_MASTER, 6801), SL_RPC_SUCCESS);
    run_for(f, 1000);
    assert_int_equal(f->started, 4);
    assert_ptr_equal(process_of(f, 0), old);
    assert_int_equal(change_plan(f, 2, "s1:6801", places), SL_RPC_SUCCESS);
    UNTIL(f, !old->is_alive);
    assert_int_equal(call_supervisor(f, 1, SL_SV_START_MASTER, 6801), SL_RPC_SUCCESS);
    run_for(f, 5000);
    assert_true(await_settled(f).is_settled);
    assert_string_equal(process_of(f, 0)->supervisor, "s1");
    assert_ptr_equal(process_of(f, 1), workers[0]);
    assert_ptr_equal(process_of(f, 2), workers[1]);
    run_for(f, 60000);
    assert_int_equal(f->started, 5);
}

static void
test_a_topology_master_alone_holds_its_slot(void **state)
{
    struct fixture *f = *state;
    submit(f, "s1:6802", places);
    await_settled(f);
    UNTIL(f, sl_resource_manager_slots(f->rm)->free_count == 2 * PORTS - 3);
    run_for(f, 60000);
    assert_int_equal(sl_resource_manager_slots(f->rm)->free_count, 2 * PORTS - 3);
}

static void
test_workers_that_end_at_once_do_not_flap_for_ever(void **state)
{
    struct fixture *f = *state;
    f->is_worker_broken = true;
    submit(f, "s0:6800", places);
    /* Each round of attempts comes later than the one before. */
    int before = 0;
    for (uint64_t minutes = 1; minutes <= 4; minutes *= 2) {
        run_for(f, minutes * 60000);
        assert_in_range(f->started - before, 0, 1 + 8 * SL_SUPERVISOR_FAILURES_MAX);
        before = f->started;
    }
    assert_non_null(process_of(f, 0));
    f->is_worker_broken = false;
    run_for(f, 400000);
    assert_true(await_settled(f).is_settled);
}

static void
test_a_restart_is_a_restart_of_the_process(void **state)
{
    struct fixture *f = *state;
    submit(f, "s0:6800", places);
    await_settled(f);
    struct process *kept = process_of(f, 1);
    struct process *old = process_of(f, 2);
    assert_int_equal(
        call_master(f, SL_TM_RESTART,
                    (struct sl_control_request){.container = 2, .time_limit_ms = 20000}),
        SL_RPC_SUCCESS);
    assert_false(old->is_alive);
    assert_non_null(process_of(f, 2));
    assert_ptr_equal(process_of(f, 1), kept);
}

static void
test_a_kill_leaves_no_process_and_no_slot_in_use(void **state)
{
    struct fixture *f = *state;
    submit(f, "s1:6802", places);
    await_settled(f);
    assert_int_equal(call_master(f, SL_TM_KILL, (struct sl_control_request){0}), SL_RPC_SUCCESS);
    UNTIL(f, count_alive(f) == 0);
    run_for(f, 5000);
    assert_int_equal(f->started, 3);
    assert_int_equal(sl_resource_manager_slots(f->rm)->free_count, 2 * PORTS);
}

/* The topology master dies while it ends its containers: the next one goes on with that. */
static void
test_a_kill_goes_on_in_the_next_term(void **state)
{
    struct fixture *f = *state;
    struct sl_buf value = {0};
    submit(f, "s0:6800", places);
    await_settled(f);
    sl_execution_state_encode(&(struct sl_execution_state){.topology = "words",
                                                           .topology_id = "words-1",
                                                           .state = SL_TOPOLOGY_KILLED},
                              &value);
    write_node(f, SL_LAYOUT_EXECUTION_STATE, &value, false);
    sl_buf_destroy(&value);
    process_end(process_of(f, 0), -1, SIGKILL);
    run_for(f, 10000);
    assert_int_equal(count_alive(f), 0);
    assert_int_equal(sl_resource_manager_slots(f->rm)->free_count, 2 * PORTS);
}

static void
test_a_master_can_be_stopped_and_a_wrong_slot_is_refused(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(call_supervisor(f, 0, SL_SV_START_MASTER, 7), SL_RPC_FAILURE);
    assert_int_equal(f->answer_code, SL_ENOTFOUND);
    submit(f, "s0:6800", places);
    await_settled(f);
    /* It runs: nothing to do. */
    assert_int_equal(call_supervisor(f, 0, SL_SV_START_MASTER, 6800), SL_RPC_SUCCESS);
    assert_int_equal(call_supervisor(f, 0, SL_SV_STOP_MASTER, 6800), SL_RPC_SUCCESS);
    assert_null(process_of(f, 0));
    run_for(f, 10000);
    assert_int_equal(count_alive(f), 2);
    /* Nobody leads the workers: their slots are free after a while. */
    run_for(f, (uint64_t)f->settings.slot_orphan_timeout_ms + 10000);
    assert_int_equal(count_alive(f), 0);
    assert_int_equal(call_supervisor(f, 0, SL_SV_STOP_MASTER, 6800), SL_RPC_SUCCESS);
}

static void
test_a_topology_master_is_not_ended_by_one_who_sees_no_leaders(void **state)
{
    struct fixture *f = *state;
    /* None runs: one starts. */
    submit(f, "s0:6800", places);
    await_settled(f);
    assert_int_equal(call_supervisor(f, 0, SL_SV_STOP_MASTER, 6800), SL_RPC_SUCCESS);
    assert_int_equal(call_supervisor(f, 0, SL_SV_RESTART_MASTER, 6800), SL_RPC_SUCCESS);
    UNTIL(f, process_of(f, 0) != NULL);
    assert_true(await_settled(f).is_settled);
    struct process *old = process_of(f, 0);
    assert_int_equal(call_supervisor(f, 0, SL_SV_RESTART_MASTER, 6800), SL_RPC_SUCCESS);
    UNTIL(f, !old->is_alive && process_of(f, 0) != NULL);
    assert_true(await_settled(f).is_settled);
    old = process_of(f, 0);
    sl_memory_server_set_serving(f->server, false);
    run_for(f, 30000);
    assert_int_equal(call_supervisor(f, 0, SL_SV_RESTART_MASTER, 6800), SL_RPC_FAILURE);
    assert_int_equal(f->answer_code, SL_EUNAVAIL);
    sl_memory_server_set_serving(f->server, true);
    run_for(f, 30000);
    assert_true(old->is_alive);
    assert_true(await_settled(f).is_settled);
}

/* A supervisor may remember one of a topology of that name that is gone by now. */
static void
test_a_new_topology_is_not_led_by_one_that_runs_for_an_earlier_one(void **state)
{
    struct fixture *f = *state;
    struct sl_start_master message = {.topology = "words", .port = 6800, .is_new = true};
    submit(f, "s0:6800", places);
    await_settled(f);
    struct process *old = process_of(f, 0);
    assert_int_equal(call_supervisor_for(f, 0, SL_SV_START_MASTER, message), SL_RPC_SUCCESS);
    UNTIL(f, !old->is_alive && process_of(f, 0) != NULL);
    assert_true(await_settled(f).is_settled);
}

static void
test_a_second_supervisor_of_one_name_is_refused(void **state)
{
    struct fixture *f = *state;
    submit(f, "s0:6800", places);
    await_settled(f);
    supervisor_start_as(f, 2, "s0");
    UNTIL(f, f->supervisors[2].ended > 0);
    assert_int_equal(f->supervisors[2].end_code, SL_EEXIST);
    assert_non_null(strstr(f->supervisors[2].reason, "s0 is there already"));
    supervisor_end(f, 2, false);
    run_for(f, 30000);
    assert_int_equal(f->supervisors[0].ended, 0);
    assert_int_equal(f->started, 3);
    assert_true(await_settled(f).is_settled);
}

/* The node of a supervisor s2, as one that is not there made it. */
static void
leave_node(struct fixture *f, const char *boot_id)
{
    struct sl_buf value = {0};
    int before = f->done;
    struct sl_supervisor_node node = {.id = "s2",
                                      .host = "elsewhere",
                                      .address = "127.0.0.77:700",
                                      .pid = 99,
                                      .start_time = 1,
                                      .boot_id = boot_id};
    sl_supervisor_node_encode(&node, &value);
    sl_state_create(f->client.store, "/supervisors/s2", value.data, value.size,
                    SL_STATE_EPHEMERAL | SL_STATE_PARENTS, done, f);
    UNTIL(f, f->done > before);
    assert_int_equal(f->done_status, 0);
    sl_buf_destroy(&value);
}

/* The node of a supervisor s9 on the host that s2 will have, of process pid. */
static void
leave_neighbour(struct fixture *f, uint64_t pid, uint64_t start_time, uint32_t port)
{
    char host[24];
    struct sl_buf value = {0};
    int before = f->done;
    snprintf(host, sizeof(host), "127.0.1.%d", f->hosts + 1);
    struct sl_supervisor_node node = {.id = "s9",
                                      .host = host,
                                      .address = "127.0.0.77:700",
                                      .ports = &port,
                                      .port_count = 1,
                                      .pid = pid,
                                      .start_time = start_time,
                                      .boot_id = "boot"};
    sl_supervisor_node_encode(&node, &value);
    sl_state_create(f->client.store, "/supervisors/s9", value.data, value.size,
                    SL_STATE_EPHEMERAL | SL_STATE_PARENTS, done, f);
    UNTIL(f, f->done > before);
    assert_int_equal(f->done_status, 0);
    sl_buf_destroy(&value);
}

static void
test_a_port_of_a_host_is_a_slot_of_one_supervisor(void **state)
{
    struct fixture *f = *state;
    uint64_t pid = f->supervisors[0].pid;
    leave_neighbour(f, pid, 2 * pid, FIRST_PORT + 1);
    supervisor_start(f, 2);
    UNTIL(f, f->supervisors[2].ended > 0);
    assert_int_equal(f->supervisors[2].end_code, SL_EEXIST);
    assert_non_null(strstr(f->supervisors[2].reason, "port 6801 of host 127.0.1."));
    assert_non_null(strstr(f->supervisors[2].reason, "is a slot of supervisor s9 already"));
    supervisor_end(f, 2, false);
    run_for(f, 30000);
    /* It never offered a slot. */
    assert_int_equal(sl_resource_manager_slots(f->rm)->free_count, 2 * PORTS);
    assert_int_equal(f->supervisors[0].ended, 0);
}

static void
test_neighbours_without_a_port_in_common_are_none(void **state)
{
    struct fixture *f = *state;
    uint64_t pid = f->supervisors[0].pid;
    leave_neighbour(f, pid, 2 * pid, FIRST_PORT + PORTS);
    supervisor_start(f, 2);
    UNTIL(f, sl_supervisor_is_registered(f->supervisors[2].supervisor));
    assert_int_equal(f->supervisors[2].ended, 0);
}

static void
test_the_ports_of_a_supervisor_that_is_gone_are_free(void **state)
{
    struct fixture *f = *state;
    uint64_t pid = f->supervisors[0].pid;
    leave_neighbour(f, pid, 2 * pid + 1, FIRST_PORT);
    supervisor_start(f, 2);
    UNTIL(f, sl_supervisor_is_registered(f->supervisors[2].supervisor));
    assert_int_equal(f->supervisors[2].ended, 0);
}

static void
test_the_node_of_a_process_that_is_gone_is_taken_away(void **state)
{
    struct fixture *f = *state;
    leave_node(f, "boot");
    supervisor_start(f, 2);
    run_for(f, 2000);
    assert_true(sl_supervisor_is_registered(f->supervisors[2].supervisor));
    assert_int_equal(f->supervisors[2].ended, 0);
}

static void
test_the_node_of_another_machine_is_waited_for(void **state)
{
    struct fixture *f = *state;
    leave_node(f, "another boot");
    supervisor_start(f, 2);
    run_for(f, SL_SUPERVISOR_CLAIM_MS - 2000);
    assert_int_equal(f->supervisors[2].ended, 0);
    assert_false(sl_supervisor_is_registered(f->supervisors[2].supervisor));
    run_for(f, 4000);
    assert_int_equal(f->supervisors[2].ended, 1);
    assert_int_equal(f->supervisors[2].end_code, SL_EEXIST);
    assert_non_null(strstr(f->supervisors[2].reason, "process 99 on host elsewhere"));
}

static void
stopped(void *ctx)
{
    *(bool *)ctx = true;
}

static void
test_a_supervisor_can_end_all_that_it_runs(void **state)
{
    struct fixture *f = *state;
    bool is_stopped = false;
    submit(f, "s0:6800", places);
    await_settled(f);
    sl_supervisor_stop_processes(f->supervisors[0].supervisor, stopped, &is_stopped);
    UNTIL(f, is_stopped);
    assert_int_equal(count_alive(f), 1);
    assert_non_null(process_of(f, 2));
}

static void
test_supervisors_need_slots_with_different_ports(void **state)
{
    struct fixture *f = *state;
    static const uint32_t twice[] = {6800, 6800};
    struct sl_supervisor *supervisor;
    struct sl_supervisor_options options = {.rpc = f->client.rpc, .store = f->client.store};
    assert_int_equal(sl_supervisor_new(&options, &supervisor), SL_EINVAL);
    options.ports = twice;
    options.port_count = 2;
    assert_int_equal(sl_supervisor_new(&options, &supervisor), SL_EINVAL);
}

int
main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_cluster, teardown_cluster)
    const struct CMUnitTest tests[] = {
        TEST(test_workers_run_where_the_plan_says),
        TEST(test_a_dead_worker_is_restarted_in_place),
        TEST(test_a_dead_topology_master_is_restarted_and_workers_run_on),
        TEST(test_a_new_supervisor_takes_over_what_runs),
        TEST(test_what_ended_while_the_supervisor_was_away_is_started_by_the_next),
        TEST(test_the_loss_of_the_master_restarts_nothing),
        TEST(test_a_supervisor_that_only_the_master_does_not_reach_keeps_its_workers),
        TEST(test_a_supervisor_that_is_stopped_for_long_keeps_its_workers),
        TEST(test_a_container_moves_to_the_slot_of_a_new_plan),
        TEST(test_a_worker_ends_when_the_plan_has_its_container_elsewhere),
        TEST(test_a_topology_master_ends_where_the_plan_does_not_have_it),
        TEST(test_a_topology_master_alone_holds_its_slot),
        TEST(test_workers_that_end_at_once_do_not_flap_for_ever),
        TEST(test_a_restart_is_a_restart_of_the_process),
        TEST(test_a_kill_leaves_no_process_and_no_slot_in_use),
        TEST(test_a_kill_goes_on_in_the_next_term),
        TEST(test_a_master_can_be_stopped_and_a_wrong_slot_is_refused),
        TEST(test_a_topology_master_is_not_ended_by_one_who_sees_no_leaders),
        TEST(test_a_new_topology_is_not_led_by_one_that_runs_for_an_earlier_one),
        TEST(test_a_second_supervisor_of_one_name_is_refused),
        TEST(test_a_port_of_a_host_is_a_slot_of_one_supervisor),
        TEST(test_neighbours_without_a_port_in_common_are_none),
        TEST(test_the_ports_of_a_supervisor_that_is_gone_are_free),
        TEST(test_the_node_of_a_process_that_is_gone_is_taken_away),
        TEST(test_the_node_of_another_machine_is_waited_for),
        TEST(test_a_supervisor_can_end_all_that_it_runs),
        TEST(test_supervisors_need_slots_with_different_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
