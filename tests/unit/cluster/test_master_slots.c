/* labels: short */
/*
 * The control part of a topology master, in virtual time. rows.txt says where each row of the
 * reference is.
 */

#include "cluster_fixture.h"

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
        send_late(&cluster, cluster.masters[0].node.address, SL_ENDPOINT_TOPOLOGY_SLOTS "words", 50,
                  SL_TM_OFFER_SLOTS, &body);
        sl_buf_destroy(&body);
        assert_int_equal(cluster.masters[0].lost, slot.allocation == 77 ? 1 : 0);
    }
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
    cmocka_unit_test(test_a_slot_offered_under_another_allocation_is_lost_to_the_first),
    cmocka_unit_test(test_T20_and_B7_the_next_term_gets_the_slots_offered),
    cmocka_unit_test(test_workers_register_and_are_lost),
};

UNIT_MAIN(tests)
