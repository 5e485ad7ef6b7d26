/* labels: short */
/*
 * Resource manager, supervisors and topology masters together, in virtual time. Each alone is in
 * test_resource_manager.c, test_supervisor_slots.c and test_master_slots.c.
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_topology_gets_its_slots),
    cmocka_unit_test(test_a_named_slot_is_granted_exactly),
    cmocka_unit_test(test_B6_a_new_resource_manager_learns_everything_and_workers_do_not_notice),
    cmocka_unit_test(test_a_supervisor_s_own_view_repairs_the_master_s),
    cmocka_unit_test(test_a_topology_that_ended_leaves_no_slot),
    cmocka_unit_test(test_two_topologies_share_the_slots),
    cmocka_unit_test(test_B12_reports_beside_allocations_lose_no_slot),
};

UNIT_MAIN(tests)
