/* labels: short */
/*
 * The resource manager, with supervisors and topology masters in virtual time: table 3.2 (M) of the
 * reference, B1 and B19. rows.txt says where each row is.
 */

#include "cluster_fixture.h"

static void
test_M1_a_supervisor_that_registers_again_has_another_instance(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    uint64_t first = sl_resource_manager_instance(cluster.rm, "s0");
    assert_int_equal(sl_supervisor_slots_instance(cluster.supervisors[0].slots), first);
    sl_supervisor_slots_rm_leader(cluster.supervisors[0].slots, cluster.rm_node.address,
                                  cluster.rm_token);
    run(&cluster, 200);
    uint64_t second = sl_resource_manager_instance(cluster.rm, "s0");
    assert_int_not_equal(second, 0);
    assert_true(first != second);
    assert_int_equal(sl_resource_manager_supervisor_count(cluster.rm), 1);
    assert_int_equal(sl_resource_manager_slots(cluster.rm)->slot_count, SLOTS);
    close_cluster(&cluster);
}

static void
test_M4_and_M7_a_wrong_token_is_stale(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    uint64_t stale = sl_rpc_stats(cluster.rm_node.rpc)->stale;
    sl_supervisor_slots_rm_leader(cluster.supervisors[0].slots, cluster.rm_node.address, 99);
    run(&cluster, 200);
    assert_int_equal(sl_supervisor_slots_instance(cluster.supervisors[0].slots), 0);
    assert_int_equal(cluster.supervisors[0].node.stale, 1);
    assert_true(sl_rpc_stats(cluster.rm_node.rpc)->stale > stale);
    open_master(&cluster, 0, "words", 50);
    sl_master_slots_rm_leader(cluster.masters[0].slots, cluster.rm_node.address, 99);
    run(&cluster, 200);
    assert_false(sl_master_slots_is_registered(cluster.masters[0].slots));
    assert_false(sl_resource_manager_has_master(cluster.rm, "words"));
    close_cluster(&cluster);
}

static void
test_M5_a_supervisor_that_can_not_be_reached_is_refused_and_tries_again(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 0);
    open_supervisor(&cluster, 0);
    /* Its messages arrive, but there is no way back to what it says is its address. */
    cluster.supervisors[0].identity.address = "127.0.1.9:700";
    announce_rm(&cluster, true);
    run(&cluster, 5000);
    assert_int_equal(sl_resource_manager_supervisor_count(cluster.rm), 0);
    assert_int_equal(cluster.supervisors[0].node.fatal, 0);
    cluster.supervisors[0].identity.address = cluster.supervisors[0].node.address;
    run(&cluster, 5000);
    assert_int_equal(sl_resource_manager_supervisor_count(cluster.rm), 1);
    close_cluster(&cluster);
}

static void
test_M6_and_M9_topology_masters(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 0);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    run(&cluster, 200);
    assert_true(sl_resource_manager_has_master(cluster.rm, "words"));
    assert_true(sl_master_slots_is_registered(cluster.masters[0].slots));
    /* Registering again in the same term is fine. */
    sl_master_slots_rm_leader(cluster.masters[0].slots, cluster.rm_node.address, cluster.rm_token);
    run(&cluster, 200);
    assert_true(sl_resource_manager_has_master(cluster.rm, "words"));
    /* M9: one that can not be reached. */
    open_master(&cluster, 1, "other", 51);
    sl_sim_cut(cluster.sim, cluster.rm_node.host, cluster.masters[1].node.host);
    announce_rm(&cluster, true);
    run(&cluster, 20000);
    assert_false(sl_resource_manager_has_master(cluster.rm, "other"));
    assert_int_equal(cluster.masters[1].node.fatal, 0);
    sl_sim_heal_all(cluster.sim);
    run(&cluster, 20000);
    assert_true(sl_resource_manager_has_master(cluster.rm, "other"));
    close_cluster(&cluster);
}

static void
test_a_topology_master_of_an_old_term_is_refused(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 0);
    open_master(&cluster, 0, "words", 50);
    /* The state manager shows another term than the one that it claims. */
    cluster.masters[0].token = 60;
    announce_rm(&cluster, true);
    run(&cluster, 3000);
    assert_false(sl_resource_manager_has_master(cluster.rm, "words"));
    cluster.masters[0].token = 50;
    tell_all(&cluster);
    run(&cluster, 3000);
    assert_true(sl_resource_manager_has_master(cluster.rm, "words"));
    close_cluster(&cluster);
}

static void
test_M10_a_topology_that_can_not_be_watched_is_fatal(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 0);
    cluster.rm_node.is_watch_failing = true;
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    run(&cluster, 200);
    assert_int_equal(cluster.rm_node.fatal, 1);
    assert_contains(cluster.rm_node.fatal_reason, "words");
    assert_int_equal(sl_resource_manager_topology_count(cluster.rm), 0);
    close_cluster(&cluster);
}

static void
test_M11_and_M13_a_topology_without_a_leader_is_forgotten(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 0);
    close_rm(&cluster);
    cluster.topology_timeout_ms = 20000;
    open_rm(&cluster, "127.0.3.1");
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    run(&cluster, 100);
    assert_int_equal(sl_resource_manager_topology_count(cluster.rm), 1);
    /* A leader is there: no limit runs. */
    run(&cluster, 60000);
    assert_int_equal(cluster.topology_timeouts, 0);
    close_master(&cluster, 0);
    run(&cluster, 19000);
    assert_int_equal(cluster.topology_timeouts, 0);
    run(&cluster, 2000);
    assert_int_equal(cluster.topology_timeouts, 1);
    assert_int_equal(sl_resource_manager_topology_count(cluster.rm), 0);
    run(&cluster, 60000);
    assert_int_equal(cluster.topology_timeouts, 1);
    close_cluster(&cluster);
}

static void
test_M14_a_lost_heartbeat_removes_the_peer(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 2);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    ask_named_slot(&cluster, 0, 1, "s0", 6700);
    run(&cluster, 200);
    assert_int_not_equal(cluster.masters[0].served[1], 0);
    sl_sim_loop_pause(cluster.supervisors[0].node.loop);
    run(&cluster, 8000);
    assert_int_equal(sl_resource_manager_supervisor_count(cluster.rm), 1);
    assert_int_equal(sl_resource_manager_slots(cluster.rm)->slot_count, SLOTS);
    /* The topology master lost it too, and with it the slot. */
    assert_int_equal(sl_master_slots_supervisor_count(cluster.masters[0].slots), 0);
    assert_int_equal(cluster.masters[0].lost, 1);
    /* When it comes back it registers anew. */
    sl_sim_loop_resume(cluster.supervisors[0].node.loop);
    run(&cluster, 15000);
    assert_int_equal(sl_resource_manager_supervisor_count(cluster.rm), 2);
    /* What ran there was told to end; the slot itself may be offered anew, but nobody asked for it,
     * so it goes back. */
    assert_true(cluster.supervisors[0].lost >= 1);
    run(&cluster, 120000);
    assert_int_equal(slots_of(&cluster, 0, "words", -1), 0);
    assert_int_equal(sl_resource_manager_slots(cluster.rm)->free_count, 2 * SLOTS);
    close_cluster(&cluster);
}

static void
test_a_dead_supervisor_is_noticed_by_unreachable_heartbeats(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 2);
    kill_supervisor(&cluster, 0, false);
    /* Two intervals of 1 s, long before the limit of 5 s. */
    run(&cluster, 3500);
    assert_int_equal(sl_resource_manager_supervisor_count(cluster.rm), 1);
    close_cluster(&cluster);
}

static void
test_B1_a_late_first_attempt_does_not_hurt_the_second(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 0);
    open_supervisor(&cluster, 0);
    /* The way back hangs: attempts pile up at the resource manager. */
    sl_sim_cut(cluster.sim, cluster.rm_node.host, "127.0.1.0");
    announce_rm(&cluster, true);
    run(&cluster, 3000);
    assert_int_equal(sl_resource_manager_supervisor_count(cluster.rm), 0);
    sl_sim_heal_all(cluster.sim);
    run(&cluster, 20000);
    assert_int_equal(sl_resource_manager_supervisor_count(cluster.rm), 1);
    uint64_t instance = sl_resource_manager_instance(cluster.rm, "s0");
    run(&cluster, 20000);
    assert_true(sl_resource_manager_instance(cluster.rm, "s0") == instance);
    assert_int_equal(sl_resource_manager_slots(cluster.rm)->slot_count, SLOTS);
    assert_true(sl_supervisor_slots_instance(cluster.supervisors[0].slots) == instance);
    close_cluster(&cluster);
}

static void
test_a_copy_of_a_registration_changes_nothing(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    uint64_t instance = sl_resource_manager_instance(cluster.rm, "s0");
    struct sl_register_supervisor copy = cluster.supervisors[0].identity;
    for (copy.attempt = 0; copy.attempt <= 1; copy.attempt++) {
        struct sl_buf body = {0};
        sl_register_supervisor_encode(&copy, &body);
        send_late(&cluster, cluster.rm_node.address, SL_ENDPOINT_RESOURCE_MANAGER, cluster.rm_token,
                  SL_RM_REGISTER_SUPERVISOR, &body);
        sl_buf_destroy(&body);
        assert_int_equal(sl_resource_manager_instance(cluster.rm, "s0"), instance);
        assert_int_equal(sl_resource_manager_slots(cluster.rm)->slot_count, SLOTS);
    }
    close_cluster(&cluster);
}

static void
test_B19_two_supervisors_of_one_name(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    open_supervisor_named(&cluster, 1, "s0");
    sl_supervisor_slots_rm_leader(cluster.supervisors[1].slots, cluster.rm_node.address,
                                  cluster.rm_token);
    run(&cluster, 1000);
    assert_int_equal(cluster.supervisors[1].node.fatal, 1);
    assert_contains(cluster.supervisors[1].node.fatal_reason,
                    "another supervisor is named s0 and runs at 127.0.1.0:700");
    assert_int_equal(cluster.supervisors[0].node.fatal, 0);
    assert_int_equal(sl_resource_manager_supervisor_count(cluster.rm), 1);
    /* A restart of the dead first one is welcome. */
    close_supervisor(&cluster, 1);
    kill_supervisor(&cluster, 0, false);
    open_supervisor(&cluster, 0);
    sl_supervisor_slots_rm_leader(cluster.supervisors[0].slots, cluster.rm_node.address,
                                  cluster.rm_token);
    run(&cluster, 3000);
    assert_int_equal(cluster.supervisors[0].node.fatal, 0);
    assert_int_equal(sl_resource_manager_supervisor_count(cluster.rm), 1);
    close_cluster(&cluster);
}

static void
test_B19_an_address_that_another_process_answers(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    open_supervisor(&cluster, 1);
    cluster.supervisors[1].identity.address = cluster.supervisors[0].node.address;
    sl_supervisor_slots_rm_leader(cluster.supervisors[1].slots, cluster.rm_node.address,
                                  cluster.rm_token);
    run(&cluster, 1000);
    assert_int_equal(cluster.supervisors[1].node.fatal, 1);
    assert_contains(cluster.supervisors[1].node.fatal_reason, "another process answers at");
    close_cluster(&cluster);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_M1_a_supervisor_that_registers_again_has_another_instance),
    cmocka_unit_test(test_M4_and_M7_a_wrong_token_is_stale),
    cmocka_unit_test(test_M5_a_supervisor_that_can_not_be_reached_is_refused_and_tries_again),
    cmocka_unit_test(test_M6_and_M9_topology_masters),
    cmocka_unit_test(test_a_topology_master_of_an_old_term_is_refused),
    cmocka_unit_test(test_M10_a_topology_that_can_not_be_watched_is_fatal),
    cmocka_unit_test(test_M11_and_M13_a_topology_without_a_leader_is_forgotten),
    cmocka_unit_test(test_M14_a_lost_heartbeat_removes_the_peer),
    cmocka_unit_test(test_a_dead_supervisor_is_noticed_by_unreachable_heartbeats),
    cmocka_unit_test(test_B1_a_late_first_attempt_does_not_hurt_the_second),
    cmocka_unit_test(test_a_copy_of_a_registration_changes_nothing),
    cmocka_unit_test(test_B19_two_supervisors_of_one_name),
    cmocka_unit_test(test_B19_an_address_that_another_process_answers),
};

UNIT_MAIN(tests)
