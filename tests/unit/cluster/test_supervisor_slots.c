/* labels: short */
/*
 * The control part of a supervisor, in virtual time: table 3.7 (T) of the reference. rows.txt says
 * where each row is.
 */

#include "cluster_fixture.h"

static void
test_a_topology_master_of_an_old_term_frees_no_slot(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    ask_slot(&cluster, 0, 1);
    run(&cluster, 200);
    assert_int_equal(slots_of(&cluster, 0, "words", SL_HELD_ACTIVE), 1);
    for (uint64_t token = 49; token <= 50; token++) {
        struct sl_slot_notice notice = {
            .topology = "words", .allocation = cluster.masters[0].served[1], .token = token};
        struct sl_buf body = {0};
        sl_slot_notice_encode(&notice, &body);
        send_late(&cluster, cluster.supervisors[0].node.address, SL_ENDPOINT_SUPERVISOR, 0,
                  SL_SV_FREE_SLOT, &body);
        sl_buf_destroy(&body);
        assert_int_equal(slots_of(&cluster, 0, "words", SL_HELD_ACTIVE), token == 49 ? 1 : 0);
    }
    close_cluster(&cluster);
}

static void
test_T2_the_registration_limit_is_fatal(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 0);
    cluster.registration_timeout_ms = 10;
    open_supervisor(&cluster, 0);
    run(&cluster, 9);
    assert_int_equal(cluster.supervisors[0].node.fatal, 0);
    run(&cluster, 2);
    assert_int_equal(cluster.supervisors[0].node.fatal, 1);
    assert_contains(cluster.supervisors[0].node.fatal_reason, "registration");
    close_supervisor(&cluster, 0);
    /* Registered, and the leader goes later. */
    open_supervisor(&cluster, 1);
    announce_rm(&cluster, true);
    run(&cluster, 1000);
    assert_int_equal(cluster.supervisors[1].node.fatal, 0);
    announce_rm(&cluster, false);
    run(&cluster, 11);
    assert_int_equal(cluster.supervisors[1].node.fatal, 1);
    close_cluster(&cluster);
}

static void
test_T4_an_explicit_disconnect_is_followed_by_one_registration(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    uint64_t first = sl_resource_manager_instance(cluster.rm, "s0");
    uint64_t attempts = sl_rpc_stats(cluster.rm_node.rpc)->requests;
    struct sl_rpc_gateway *gateway;
    struct sl_disconnect message = {.resource = "rm", .token = cluster.rm_token, .cause = "bye"};
    assert_int_equal(
        sl_rpc_connect(cluster.rm_node.rpc, "127.0.1.0:700", SL_ENDPOINT_SUPERVISOR, 0, &gateway),
        0);
    /* One of another term is not about this link. */
    struct sl_disconnect old = {.resource = "rm", .token = 77, .cause = "old"};
    sl_connection_say_goodbye(gateway, SL_SV_DISCONNECT_RESOURCE_MANAGER, &old);
    run(&cluster, 300);
    assert_true(sl_resource_manager_instance(cluster.rm, "s0") == first);
    sl_connection_say_goodbye(gateway, SL_SV_DISCONNECT_RESOURCE_MANAGER, &message);
    run(&cluster, 300);
    assert_true(sl_resource_manager_instance(cluster.rm, "s0") != first);
    assert_int_equal(sl_resource_manager_supervisor_count(cluster.rm), 1);
    /* Goodbye, registration, slot report. */
    assert_int_equal(sl_rpc_stats(cluster.rm_node.rpc)->requests - attempts, 3);
    sl_rpc_gateway_free(gateway);
    close_cluster(&cluster);
}

static void
test_T6_a_slot_that_the_topology_master_refuses_goes_back(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    ask_slot(&cluster, 0, 1);
    run(&cluster, 200);
    uint64_t a1 = cluster.masters[0].served[1];
    /* The master believes to hold the next allocation elsewhere, so it refuses the offer of s0. */
    struct sl_slot_pool *pool = sl_master_slots_pool(cluster.masters[0].slots);
    struct sl_profile any = sl_profile_any();
    ask_slot(&cluster, 0, 2);
    uint64_t a2 = sl_slot_pool_allocation_of(pool, 2);
    sl_slot_pool_register_supervisor(pool, "elsewhere");
    assert_true(sl_slot_pool_offer(pool, "elsewhere", 1, a2, &any));
    run(&cluster, 500);
    assert_int_equal(slots_of(&cluster, 0, "words", SL_HELD_ACTIVE), 1);
    assert_non_null(
        sl_slot_table_find(sl_supervisor_slots_table(cluster.supervisors[0].slots), a1));
    assert_null(sl_slot_table_find(sl_supervisor_slots_table(cluster.supervisors[0].slots), a2));
    /* Nothing starts in it, and the resource manager knows that it is free. */
    assert_false(sl_supervisor_slots_task_started(cluster.supervisors[0].slots, a2));
    assert_int_equal(sl_resource_manager_slots(cluster.rm)->free_count, 1);
    close_cluster(&cluster);
}

static void
test_T9_only_the_answer_to_the_newest_offer_counts(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    ask_named_slot(&cluster, 0, 1, "s0", 6700);
    run(&cluster, 200);
    assert_int_equal(slots_of(&cluster, 0, "words", SL_HELD_ACTIVE), 1);
    /* The way of the answers is cut: offer 2 stays open, offer 3 is made, both arrive at last. */
    sl_sim_cut(cluster.sim, cluster.masters[0].node.host, "127.0.1.0");
    ask_named_slot(&cluster, 0, 2, "s0", 6701);
    run(&cluster, 300);
    assert_int_equal(slots_of(&cluster, 0, "words", SL_HELD_ALLOCATED), 1);
    sl_sim_heal_all(cluster.sim);
    run(&cluster, 500);
    assert_int_equal(slots_of(&cluster, 0, "words", SL_HELD_ACTIVE), 2);
    assert_int_equal(cluster.supervisors[0].active, 2);
    close_cluster(&cluster);
}

static void
test_T10_and_T24_a_topology_that_loses_its_leader(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    ask_slot(&cluster, 0, 1);
    run(&cluster, 200);
    assert_int_equal(sl_master_slots_supervisor_count(cluster.masters[0].slots), 1);
    /* T10: the supervisor says goodbye to the old leader. */
    sl_supervisor_slots_topology_leader(cluster.supervisors[0].slots, "words", NULL, 0);
    run(&cluster, 100);
    assert_int_equal(sl_master_slots_supervisor_count(cluster.masters[0].slots), 0);
    assert_int_equal(cluster.masters[0].lost, 1);
    assert_int_equal(cluster.supervisors[0].lost, 1);
    assert_false(sl_supervisor_slots_is_linked(cluster.supervisors[0].slots, "words"));
    close_cluster(&cluster);
}

static void
test_T11_a_revoked_resource_manager_is_not_watched_any_more(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    announce_rm(&cluster, false);
    run(&cluster, 60000);
    /* No attempt to reconnect by a heartbeat that was lost. */
    assert_int_equal(cluster.supervisors[0].node.fatal, 0);
    assert_int_equal(sl_supervisor_slots_instance(cluster.supervisors[0].slots), 0);
    close_cluster(&cluster);
}

static void
test_T12_the_last_slot_ends_the_watch_of_the_topology(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    ask_slot(&cluster, 0, 1);
    ask_slot(&cluster, 0, 2);
    run(&cluster, 200);
    assert_true(sl_supervisor_slots_is_linked(cluster.supervisors[0].slots, "words"));
    sl_supervisor_slots_fail(cluster.supervisors[0].slots, cluster.masters[0].served[1], "broken");
    run(&cluster, 200);
    assert_true(sl_supervisor_slots_has_topology(cluster.supervisors[0].slots, "words"));
    assert_int_equal(cluster.masters[0].lost, 1);
    sl_supervisor_slots_fail(cluster.supervisors[0].slots, cluster.masters[0].served[2], "broken");
    run(&cluster, 200);
    assert_false(sl_supervisor_slots_has_topology(cluster.supervisors[0].slots, "words"));
    assert_int_equal(sl_resource_manager_slots(cluster.rm)->free_count, SLOTS);
    close_cluster(&cluster);
}

static void
test_T16_T17_and_T19_leaders_of_topologies(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    ask_slot(&cluster, 0, 1);
    run(&cluster, 200);
    struct supervisor_node *supervisor = &cluster.supervisors[0];
    const char *address = cluster.masters[0].node.address;
    assert_int_equal(supervisor->gained, 1);
    /* The same leader again is ignored. */
    sl_supervisor_slots_topology_leader(supervisor->slots, "words", address, 50);
    run(&cluster, 200);
    assert_int_equal(supervisor->gained, 1);
    /* T16: without a link a reconnect is nothing. */
    sl_supervisor_slots_topology_leader(supervisor->slots, "words", NULL, 0);
    sl_supervisor_slots_reconnect(supervisor->slots, "words", "try");
    sl_supervisor_slots_reconnect(supervisor->slots, "nobody", "try");
    run(&cluster, 200);
    assert_int_equal(supervisor->gained, 1);
    /* T17: the same leader after none is gained a second time. */
    sl_supervisor_slots_topology_leader(supervisor->slots, "words", address, 50);
    run(&cluster, 200);
    assert_int_equal(supervisor->gained, 2);
    /* T19: leader events of a topology that is gone are ignored. */
    sl_supervisor_slots_topology_leader(supervisor->slots, "nobody", address, 50);
    run(&cluster, 200);
    assert_int_equal(supervisor->gained, 2);
    close_cluster(&cluster);
}

static void
test_a_slot_that_no_leader_takes_is_freed(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    ask_slot(&cluster, 0, 1);
    run(&cluster, 200);
    close_master(&cluster, 0);
    run(&cluster, 9000);
    assert_int_equal(slots_of(&cluster, 0, "words", -1), 1);
    run(&cluster, 3000);
    assert_int_equal(slots_of(&cluster, 0, "words", -1), 0);
    assert_int_equal(sl_resource_manager_slots(cluster.rm)->free_count, SLOTS);
    close_cluster(&cluster);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_topology_master_of_an_old_term_frees_no_slot),
    cmocka_unit_test(test_T2_the_registration_limit_is_fatal),
    cmocka_unit_test(test_T4_an_explicit_disconnect_is_followed_by_one_registration),
    cmocka_unit_test(test_T6_a_slot_that_the_topology_master_refuses_goes_back),
    cmocka_unit_test(test_T9_only_the_answer_to_the_newest_offer_counts),
    cmocka_unit_test(test_T10_and_T24_a_topology_that_loses_its_leader),
    cmocka_unit_test(test_T11_a_revoked_resource_manager_is_not_watched_any_more),
    cmocka_unit_test(test_T12_the_last_slot_ends_the_watch_of_the_topology),
    cmocka_unit_test(test_T16_T17_and_T19_leaders_of_topologies),
    cmocka_unit_test(test_a_slot_that_no_leader_takes_is_freed),
};

UNIT_MAIN(tests)
