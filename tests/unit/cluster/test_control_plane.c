/* labels: short */
/*
 * Resource manager, supervisors and topology masters together, in virtual time: tables 3.2 (M) and
 * 3.7 (T) of the reference and bug scenarios of 7. rows.txt says where each row is.
 */
#include "cluster_fixture.h"

static void
test_a_topology_gets_its_slots(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 2);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    for (uint64_t id = 1; id <= 3; id++) {
        ask_slot(&cluster, 0, id);
    }
    run(&cluster, 200);
    for (uint64_t id = 1; id <= 3; id++) {
        assert_int_not_equal(cluster.masters[0].served[id], 0);
    }
    assert_int_equal(slots_of(&cluster, 0, "words", SL_HELD_ACTIVE) +
                         slots_of(&cluster, 1, "words", SL_HELD_ACTIVE),
                     3);
    assert_int_equal(cluster.supervisors[0].active + cluster.supervisors[1].active, 3);
    assert_int_equal(sl_resource_manager_slots(cluster.rm)->free_count, 1);
    /* It stays that way: heartbeats agree. */
    run(&cluster, 60000);
    assert_int_equal(sl_slot_pool_allocated_count(sl_master_slots_pool(cluster.masters[0].slots)),
                     3);
    assert_int_equal(cluster.masters[0].lost, 0);
    close_cluster(&cluster);
}

static void
test_a_named_slot_is_granted_exactly(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 2);
    open_master(&cluster, 0, "words", 50);
    open_master(&cluster, 1, "other", 51);
    announce_rm(&cluster, true);
    ask_named_slot(&cluster, 0, 1, "s1", 6701);
    ask_named_slot(&cluster, 0, 2, "s0", 6700);
    run(&cluster, 200);
    assert_string_equal(cluster.masters[0].served_at[1], "s1:6701");
    assert_string_equal(cluster.masters[0].served_at[2], "s0:6700");
    ask_named_slot(&cluster, 1, 1, "s1", 6701);
    run(&cluster, 200);
    assert_int_equal(cluster.masters[1].failed[1], 1);
    assert_contains(cluster.masters[1].failed_reason, "slot s1:6701 is in use by words");
    ask_named_slot(&cluster, 1, 2, "s7", 6701);
    run(&cluster, 200);
    assert_int_equal(cluster.masters[1].failure[2], SL_SLOT_UNFULFILLABLE);
    close_cluster(&cluster);
}

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

/* Sends a message from a node of its own, as a copy that comes late would. */
static void
send_late(struct cluster *cluster, const char *address, const char *endpoint, uint64_t token,
          uint32_t method, const struct sl_buf *body)
{
    struct sl_rpc_gateway *gateway;
    struct sl_loop *loop = sl_sim_loop_new(cluster->sim, "127.0.9.9");
    struct sl_rpc *rpc = sl_rpc_new(loop, &(struct sl_rpc_options){.role = "test", .name = "late"});
    assert_int_equal(sl_rpc_connect(rpc, address, endpoint, token, &gateway), 0);
    sl_rpc_send(gateway, method, body->data, body->size);
    run(cluster, 100);
    sl_rpc_gateway_free(gateway);
    sl_rpc_free(rpc);
    sl_loop_free(loop);
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
test_a_slot_offered_under_another_allocation_is_lost_to_the_first(void **state)
{
    (void)state;
    struct cluster cluster;
    struct sl_slot_status slot = {.profile = sl_profile_set(1, 1000, 1000), .topology = "words"};
    struct sl_slot_list offers = {
        .resource = "s0", .topology = "words", .slots = &slot, .count = 1};
    open_cluster(&cluster, 1);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    ask_named_slot(&cluster, 0, 1, "s0", 6700);
    run(&cluster, 200);
    assert_string_equal(cluster.masters[0].served_at[1], "s0:6700");
    slot.port = 6700;
    for (slot.allocation = cluster.masters[0].served[1]; cluster.masters[0].lost == 0;
         slot.allocation = 77) {
        struct sl_buf body = {0};
        sl_slot_offers_encode(&offers, &body);
        send_late(&cluster, cluster.masters[0].node.address, SL_ENDPOINT_TOPOLOGY_MASTER "words",
                  50, SL_TM_OFFER_SLOTS, &body);
        sl_buf_destroy(&body);
        assert_int_equal(cluster.masters[0].lost, slot.allocation == 77 ? 1 : 0);
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
test_T20_and_B7_the_next_term_gets_the_slots_offered(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    ask_slot(&cluster, 0, 1);
    run(&cluster, 200);
    uint64_t allocation = cluster.masters[0].served[1];
    close_master(&cluster, 0);
    run(&cluster, 1000);
    /* Kept, with its time limit. */
    assert_int_equal(slots_of(&cluster, 0, "words", SL_HELD_ALLOCATED), 1);
    open_master(&cluster, 1, "words", 51);
    sl_master_slots_rm_leader(cluster.masters[1].slots, cluster.rm_node.address, cluster.rm_token);
    ask_slot(&cluster, 1, 1);
    run(&cluster, 2000);
    assert_true(cluster.masters[1].served[1] == allocation);
    assert_int_equal(slots_of(&cluster, 0, "words", SL_HELD_ACTIVE), 1);
    run(&cluster, 60000);
    assert_int_equal(slots_of(&cluster, 0, "words", SL_HELD_ACTIVE), 1);
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

static void
test_B6_a_new_resource_manager_learns_everything_and_workers_do_not_notice(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 2);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    ask_slot(&cluster, 0, 1);
    ask_slot(&cluster, 0, 2);
    run(&cluster, 200);
    announce_rm(&cluster, false);
    close_rm(&cluster);
    /* B6: a request while nobody leads waits. */
    ask_slot(&cluster, 0, 3);
    run(&cluster, 30000);
    assert_int_equal(cluster.masters[0].served[3], 0);
    cluster.start_up_ms = 5000;
    open_rm(&cluster, "127.0.3.2");
    announce_rm(&cluster, true);
    tell_all(&cluster);
    run(&cluster, 2000);
    assert_int_not_equal(cluster.masters[0].served[3], 0);
    assert_int_equal(sl_resource_manager_slots(cluster.rm)->fulfilled.count, 3);
    assert_int_equal(cluster.masters[0].lost, 0);
    assert_int_equal(cluster.supervisors[0].lost + cluster.supervisors[1].lost, 0);
    close_cluster(&cluster);
}

static void
test_a_supervisor_s_own_view_repairs_the_master_s(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 1);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    ask_slot(&cluster, 0, 1);
    run(&cluster, 200);
    struct sl_slot_pool *pool = sl_master_slots_pool(cluster.masters[0].slots);
    struct sl_profile any = sl_profile_any();
    /* The master believes in a slot that is not there: the next heartbeat takes it away. */
    assert_true(sl_slot_pool_offer(pool, "s0", 6701, 4711, &any));
    assert_int_equal(pool->slots.count, 2);
    run(&cluster, 2000);
    assert_int_equal(pool->slots.count, 1);
    /* The master forgot a slot that is active: the supervisor frees it. */
    sl_slot_pool_suspend(pool);
    sl_slot_pool_register_supervisor(pool, "s0");
    run(&cluster, 2000);
    assert_int_equal(slots_of(&cluster, 0, "words", -1), 0);
    assert_int_equal(sl_resource_manager_slots(cluster.rm)->free_count, SLOTS);
    close_cluster(&cluster);
}

static void
test_a_topology_that_ended_leaves_no_slot(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 2);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    ask_slot(&cluster, 0, 1);
    ask_slot(&cluster, 0, 2);
    run(&cluster, 200);
    sl_master_slots_close(cluster.masters[0].slots, "killed");
    run(&cluster, 200);
    assert_int_equal(slots_of(&cluster, 0, "words", -1) + slots_of(&cluster, 1, "words", -1), 0);
    assert_int_equal(sl_resource_manager_slots(cluster.rm)->free_count, 2 * SLOTS);
    sl_resource_manager_topology_ended(cluster.rm, "words");
    assert_int_equal(sl_resource_manager_topology_count(cluster.rm), 0);
    close_cluster(&cluster);
}

static void
test_two_topologies_share_the_slots(void **state)
{
    (void)state;
    struct cluster cluster;
    open_cluster(&cluster, 2);
    open_master(&cluster, 0, "words", 50);
    open_master(&cluster, 1, "other", 51);
    announce_rm(&cluster, true);
    for (uint64_t id = 1; id <= 2; id++) {
        ask_slot(&cluster, 0, id);
        ask_slot(&cluster, 1, id);
    }
    run(&cluster, 500);
    for (uint64_t id = 1; id <= 2; id++) {
        assert_int_not_equal(cluster.masters[0].served[id], 0);
        assert_int_not_equal(cluster.masters[1].served[id], 0);
    }
    assert_int_equal(sl_resource_manager_slots(cluster.rm)->requests.count, 0);
    /* B15: one more than there are. */
    ask_slot(&cluster, 0, 9);
    run(&cluster, 200);
    assert_int_equal(cluster.masters[0].failed[9], 0);
    open_supervisor(&cluster, 2);
    sl_supervisor_slots_rm_leader(cluster.supervisors[2].slots, cluster.rm_node.address,
                                  cluster.rm_token);
    run(&cluster, 500);
    assert_int_not_equal(cluster.masters[0].served[9], 0);
    close_cluster(&cluster);
}

/* Reports are made in the turn in which they are sent, so none is older than the slots that it
 * tells of, however often slots change. The simulation does the same with messages late and lost.
 */
static void
test_B12_reports_beside_allocations_lose_no_slot(void **state)
{
    (void)state;
    enum { ROUNDS = 3000 };
    struct cluster cluster;
    heartbeat = (struct sl_heartbeat_config){1, 5000, 2};
    open_cluster(&cluster, 1);
    open_master(&cluster, 0, "words", 50);
    announce_rm(&cluster, true);
    run(&cluster, 100);
    struct master_node *master = &cluster.masters[0];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t request = 1 + (uint64_t)round % 2;
        master->served[request] = 0;
        ask_slot(&cluster, 0, request);
        for (int step = 0; step < 50 && master->served[request] == 0; step++) {
            run(&cluster, 1);
        }
        assert_int_not_equal(master->served[request], 0);
        run(&cluster, 1 + (uint64_t)round % 3);
        assert_int_equal(slots_of(&cluster, 0, "words", SL_HELD_ACTIVE), 1);
        assert_int_equal(master->lost, 0);
        sl_master_slots_release(master->slots, request, "done");
        /* Given back at once, while heartbeats are under way both ways. */
        sl_slot_pool_fail_allocation(sl_master_slots_pool(master->slots), master->served[request],
                                     false, "done");
        for (int step = 0; step < 50 && slots_of(&cluster, 0, "words", -1) > 0; step++) {
            run(&cluster, 1);
        }
        assert_int_equal(slots_of(&cluster, 0, "words", -1), 0);
    }
    run(&cluster, 100);
    assert_int_equal(sl_resource_manager_slots(cluster.rm)->free_count, SLOTS);
    close_cluster(&cluster);
    heartbeat = (struct sl_heartbeat_config){1000, 5000, 2};
}

static void
test_workers_register_and_are_lost(void **state)
{
    (void)state;
    struct cluster cluster;
    struct node worker = {0};
    struct sl_rpc_gateway *gateway;
    struct sl_buf body = {0};
    open_cluster(&cluster, 0);
    open_master(&cluster, 0, "words", 50);
    open_node(&cluster, &worker, "127.0.4.1", "w1");
    struct sl_register_peer message = {
        .topology = "words", .address = worker.address, .resource = "w1", .process = 3};
    assert_int_equal(sl_rpc_connect(worker.rpc, cluster.masters[0].node.address,
                                    SL_ENDPOINT_TOPOLOGY_MASTER "words", 50, &gateway),
                     0);
    run(&cluster, 10);
    sl_register_peer_encode(&message, &body);
    for (int i = 0; i < 2; i++) {
        /* The same process twice is one worker. */
        sl_rpc_send(gateway, SL_TM_REGISTER_WORKER, body.data, body.size);
        run(&cluster, 100);
        assert_int_equal(sl_master_slots_worker_count(cluster.masters[0].slots), 1);
        assert_int_equal(cluster.masters[0].workers, 1);
    }
    /* Another process of that name: the first is gone. */
    message.process = 4;
    sl_buf_clear(&body);
    sl_register_peer_encode(&message, &body);
    sl_rpc_send(gateway, SL_TM_REGISTER_WORKER, body.data, body.size);
    run(&cluster, 100);
    assert_int_equal(cluster.masters[0].workers, 2);
    assert_int_equal(cluster.masters[0].workers_lost, 1);
    /* It has no endpoint that answers heartbeats. */
    run(&cluster, 10000);
    assert_int_equal(cluster.masters[0].workers_lost, 2);
    assert_int_equal(sl_master_slots_worker_count(cluster.masters[0].slots), 0);
    /* A worker of another topology is refused. */
    message.topology = "other";
    sl_buf_clear(&body);
    sl_register_peer_encode(&message, &body);
    sl_rpc_send(gateway, SL_TM_REGISTER_WORKER, body.data, body.size);
    run(&cluster, 100);
    assert_int_equal(cluster.masters[0].workers, 2);
    sl_buf_destroy(&body);
    sl_rpc_gateway_free(gateway);
    close_node(&worker);
    close_cluster(&cluster);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_topology_gets_its_slots),
    cmocka_unit_test(test_a_named_slot_is_granted_exactly),
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
    cmocka_unit_test(test_a_topology_master_of_an_old_term_frees_no_slot),
    cmocka_unit_test(test_a_slot_offered_under_another_allocation_is_lost_to_the_first),
    cmocka_unit_test(test_B19_two_supervisors_of_one_name),
    cmocka_unit_test(test_B19_an_address_that_another_process_answers),
    cmocka_unit_test(test_T2_the_registration_limit_is_fatal),
    cmocka_unit_test(test_T4_an_explicit_disconnect_is_followed_by_one_registration),
    cmocka_unit_test(test_T6_a_slot_that_the_topology_master_refuses_goes_back),
    cmocka_unit_test(test_T9_only_the_answer_to_the_newest_offer_counts),
    cmocka_unit_test(test_T10_and_T24_a_topology_that_loses_its_leader),
    cmocka_unit_test(test_T11_a_revoked_resource_manager_is_not_watched_any_more),
    cmocka_unit_test(test_T12_the_last_slot_ends_the_watch_of_the_topology),
    cmocka_unit_test(test_T16_T17_and_T19_leaders_of_topologies),
    cmocka_unit_test(test_T20_and_B7_the_next_term_gets_the_slots_offered),
    cmocka_unit_test(test_a_slot_that_no_leader_takes_is_freed),
    cmocka_unit_test(test_B6_a_new_resource_manager_learns_everything_and_workers_do_not_notice),
    cmocka_unit_test(test_a_supervisor_s_own_view_repairs_the_master_s),
    cmocka_unit_test(test_a_topology_that_ended_leaves_no_slot),
    cmocka_unit_test(test_two_topologies_share_the_slots),
    cmocka_unit_test(test_B12_reports_beside_allocations_lose_no_slot),
    cmocka_unit_test(test_workers_register_and_are_lost),
};

UNIT_MAIN(tests)
