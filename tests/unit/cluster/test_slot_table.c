/* labels: short */
/* The slot table of a supervisor: rows T14 and T15, and the table of 2.7. */
#include "cluster/slot_table.h"

#include "base/err.h"
#include "loop/sim.h"
#include "unit.h"

struct world {
    struct sl_sim *sim;
    struct sl_loop *loop;
    struct sl_slot_table table;
    int timeouts;
    uint64_t timeout_allocation;
    uint64_t ticket;
    int freed;
    char freed_topology[80];
    int stops;
};

static void
on_timeout(void *ctx, uint64_t allocation, uint64_t ticket)
{
    struct world *world = ctx;
    world->timeouts++;
    world->timeout_allocation = allocation;
    world->ticket = ticket;
}

static void
on_freed(void *ctx, const char *topology, uint64_t allocation, uint32_t port, const char *cause)
{
    struct world *world = ctx;
    (void)allocation;
    (void)port;
    assert_non_null(cause);
    world->freed++;
    snprintf(world->freed_topology, sizeof(world->freed_topology), "%s", topology);
}

static void
stop_tasks(void *ctx, uint64_t allocation, uint32_t port, const char *cause)
{
    struct world *world = ctx;
    (void)allocation;
    (void)port;
    (void)cause;
    world->stops++;
}

static void
open_world(struct world *world)
{
    static const uint32_t ports[] = {6700, 6701};
    struct sl_slot_table_ops ops = {on_timeout, on_freed, stop_tasks, world};
    struct sl_profile profile = sl_profile_set(2, 2, 2);
    memset(world, 0, sizeof(*world));
    world->sim = sl_sim_new(&(struct sl_sim_options){.seed = 3});
    world->loop = sl_sim_loop_new(world->sim, "127.0.0.1");
    sl_slot_table_create(&world->table, world->loop, ports, 2, &profile, 1000, &ops);
}

static void
close_world(struct world *world)
{
    sl_slot_table_destroy(&world->table);
    sl_loop_free(world->loop);
    sl_sim_free(world->sim);
}

static int
allocate(struct world *world, uint32_t port, const char *topology, uint64_t allocation)
{
    const struct sl_held_slot *occupant;
    struct sl_profile profile = sl_profile_set(1, 1, 1);
    int rc = sl_slot_table_allocate(&world->table, port, topology, allocation, &profile, &occupant);
    assert_int_equal(rc == SL_EEXIST, occupant != NULL);
    return rc;
}

static void
test_T14_an_allocation_has_one_slot(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    assert_int_equal(allocate(&world, 6700, "a", 1), 0);
    assert_int_equal(allocate(&world, 6700, "a", 1), 0);
    assert_int_equal(allocate(&world, 6701, "a", 1), SL_ECONFLICT);
    assert_int_equal(sl_slot_table_count(&world.table, "a", -1), 1);
    assert_int_equal(allocate(&world, 6701, "b", 2), 0);
    close_world(&world);
}

static void
test_allocate_refuses_what_is_taken_missing_or_too_small(void **state)
{
    (void)state;
    struct world world;
    const struct sl_held_slot *occupant;
    struct sl_profile large = sl_profile_set(3, 1, 1);
    open_world(&world);
    assert_int_equal(allocate(&world, 6700, "a", 1), 0);
    assert_int_equal(sl_slot_table_allocate(&world.table, 6700, "b", 2, &large, &occupant),
                     SL_EEXIST);
    assert_int_equal(occupant->allocation, 1);
    assert_string_equal(occupant->topology, "a");
    assert_int_equal(allocate(&world, 6700, "b", 1), SL_EEXIST);
    assert_int_equal(allocate(&world, 9999, "b", 2), SL_ENOTFOUND);
    assert_int_equal(sl_slot_table_allocate(&world.table, 6701, "b", 2, &large, &occupant),
                     SL_ERANGE);
    close_world(&world);
}

static void
test_T15_a_slot_that_is_not_activated_times_out(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    allocate(&world, 6700, "a", 1);
    sl_sim_run_for(world.sim, 999);
    assert_int_equal(world.timeouts, 0);
    sl_sim_run_for(world.sim, 2);
    assert_int_equal(world.timeouts, 1);
    assert_int_equal(world.timeout_allocation, 1);
    assert_true(sl_slot_table_is_timeout(&world.table, 1, world.ticket));
    /* Activated while the firing was on its way: it counts no more. */
    assert_true(sl_slot_table_activate(&world.table, 1));
    assert_false(sl_slot_table_is_timeout(&world.table, 1, world.ticket));
    allocate(&world, 6701, "a", 2);
    assert_true(sl_slot_table_activate(&world.table, 2));
    sl_sim_run_for(world.sim, 100000);
    assert_int_equal(world.timeouts, 1);
    close_world(&world);
}

static void
test_deactivated_slots_have_a_time_limit_again(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    allocate(&world, 6700, "a", 1);
    allocate(&world, 6701, "b", 2);
    sl_slot_table_activate(&world.table, 1);
    sl_slot_table_activate(&world.table, 2);
    sl_slot_table_deactivate(&world.table, "a");
    assert_int_equal(sl_slot_table_count(&world.table, "a", SL_HELD_ALLOCATED), 1);
    assert_int_equal(sl_slot_table_count(&world.table, "b", SL_HELD_ACTIVE), 1);
    sl_sim_run_for(world.sim, 1001);
    assert_int_equal(world.timeouts, 1);
    assert_int_equal(world.timeout_allocation, 1);
    close_world(&world);
}

static void
test_T7_a_slot_with_tasks_is_released_when_the_last_one_leaves(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    assert_false(sl_slot_table_add_task(&world.table, 1));
    allocate(&world, 6700, "a", 1);
    /* T7: a start may come before the offer's acknowledgement. */
    assert_true(sl_slot_table_add_task(&world.table, 1));
    assert_true(sl_slot_table_add_task(&world.table, 1));
    assert_int_equal(sl_slot_table_count(&world.table, "a", SL_HELD_ACTIVE), 1);
    assert_true(sl_slot_table_free(&world.table, 1, "not needed"));
    assert_int_equal(world.stops, 1);
    assert_int_equal(world.freed, 0);
    assert_int_equal(sl_slot_table_count(&world.table, "a", SL_HELD_RELEASING), 1);
    /* Nothing can be started in it and nobody else gets it meanwhile. */
    assert_false(sl_slot_table_add_task(&world.table, 1));
    assert_int_equal(allocate(&world, 6700, "b", 2), SL_EEXIST);
    assert_int_equal(allocate(&world, 6700, "a", 1), SL_EEXIST);
    assert_true(sl_slot_table_free(&world.table, 1, "again"));
    assert_int_equal(world.stops, 1);
    sl_slot_table_remove_task(&world.table, 1);
    assert_int_equal(world.freed, 0);
    sl_slot_table_remove_task(&world.table, 1);
    assert_int_equal(world.freed, 1);
    assert_string_equal(world.freed_topology, "a");
    assert_int_equal(allocate(&world, 6700, "b", 2), 0);
    assert_false(sl_slot_table_free(&world.table, 1, "unknown"));
    close_world(&world);
}

static void
test_lists(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_status slots[2];
    open_world(&world);
    allocate(&world, 6701, "a", 1);
    assert_int_equal(sl_slot_table_list(&world.table, NULL, -1, slots, 2), 2);
    assert_string_equal(slots[0].topology, "");
    assert_int_equal(slots[1].allocation, 1);
    assert_int_equal(sl_slot_table_list(&world.table, "a", SL_HELD_ALLOCATED, slots, 2), 1);
    assert_int_equal(slots[0].port, 6701);
    assert_int_equal(sl_slot_table_list(&world.table, "b", -1, slots, 2), 0);
    close_world(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_T14_an_allocation_has_one_slot),
    cmocka_unit_test(test_allocate_refuses_what_is_taken_missing_or_too_small),
    cmocka_unit_test(test_T15_a_slot_that_is_not_activated_times_out),
    cmocka_unit_test(test_deactivated_slots_have_a_time_limit_again),
    cmocka_unit_test(test_T7_a_slot_with_tasks_is_released_when_the_last_one_leaves),
    cmocka_unit_test(test_lists),
};

UNIT_MAIN(tests)
