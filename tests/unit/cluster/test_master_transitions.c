/* labels: short */
/* The table of states and actions of topologies, row by row, and when a kill ends. */
#include "cluster/master_transitions.h"
#include "unit.h"

#define A SL_MASTER_ACTIVE
#define I SL_MASTER_INACTIVE
#define R SL_MASTER_REBALANCING
#define K SL_MASTER_KILLED

/* Of every state: what each action gives. */
static const struct {
    enum sl_master_topology_status from;
    enum sl_master_action action;
    enum sl_master_topology_status to;
    enum sl_master_effect effect;
} rows[] = {
    {A, SL_MASTER_DO_MONITOR, A, SL_MASTER_REASSIGN_DEAD},
    {A, SL_MASTER_DO_ACTIVATE, A, SL_MASTER_NOTHING},
    {A, SL_MASTER_DO_DEACTIVATE, I, SL_MASTER_ENTER},
    {A, SL_MASTER_DO_STARTUP, A, SL_MASTER_NOTHING},
    {A, SL_MASTER_DO_KILL, K, SL_MASTER_ARM_KILL},
    {A, SL_MASTER_DO_REMOVE, A, SL_MASTER_NOTHING},
    {A, SL_MASTER_DO_REBALANCE, R, SL_MASTER_START_REBALANCE},
    {A, SL_MASTER_DO_END_REBALANCE, A, SL_MASTER_NOTHING},
    {I, SL_MASTER_DO_MONITOR, I, SL_MASTER_REASSIGN_DEAD},
    {I, SL_MASTER_DO_ACTIVATE, A, SL_MASTER_ENTER},
    {I, SL_MASTER_DO_DEACTIVATE, I, SL_MASTER_NOTHING},
    {I, SL_MASTER_DO_STARTUP, I, SL_MASTER_NOTHING},
    {I, SL_MASTER_DO_KILL, K, SL_MASTER_ARM_KILL},
    {I, SL_MASTER_DO_REMOVE, I, SL_MASTER_NOTHING},
    {I, SL_MASTER_DO_REBALANCE, R, SL_MASTER_START_REBALANCE},
    {I, SL_MASTER_DO_END_REBALANCE, I, SL_MASTER_NOTHING},
    /* A worker that dies meanwhile is not replaced before the change is over. */
    {R, SL_MASTER_DO_MONITOR, R, SL_MASTER_NOTHING},
    {R, SL_MASTER_DO_ACTIVATE, R, SL_MASTER_NOTHING},
    {R, SL_MASTER_DO_DEACTIVATE, R, SL_MASTER_NOTHING},
    {R, SL_MASTER_DO_STARTUP, R, SL_MASTER_NOTHING},
    {R, SL_MASTER_DO_KILL, K, SL_MASTER_ARM_KILL},
    {R, SL_MASTER_DO_REMOVE, R, SL_MASTER_NOTHING},
    {R, SL_MASTER_DO_REBALANCE, R, SL_MASTER_NOTHING},
    {K, SL_MASTER_DO_MONITOR, K, SL_MASTER_NOTHING},
    {K, SL_MASTER_DO_ACTIVATE, K, SL_MASTER_NOTHING},
    {K, SL_MASTER_DO_DEACTIVATE, K, SL_MASTER_NOTHING},
    {K, SL_MASTER_DO_STARTUP, K, SL_MASTER_ARM_KILL},
    {K, SL_MASTER_DO_KILL, K, SL_MASTER_ARM_KILL},
    {K, SL_MASTER_DO_REMOVE, K, SL_MASTER_REMOVE_ALL},
    {K, SL_MASTER_DO_REBALANCE, K, SL_MASTER_NOTHING},
    {K, SL_MASTER_DO_END_REBALANCE, K, SL_MASTER_NOTHING},
};

static void
test_every_state_and_action_gives_what_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_size(rows); i++) {
        struct sl_master_transition next =
            sl_master_transition(rows[i].from, SL_MASTER_ACTIVE, rows[i].action);
        assert_int_equal(next.status, rows[i].to);
        assert_int_equal(next.effect, rows[i].effect);
    }
    /* Every pair but the one that the next test has is in the table. */
    assert_int_equal(array_size(rows), SL_MASTER_STATUS_COUNT * SL_MASTER_ACTION_COUNT - 1);
}

static void
test_a_change_ends_in_the_state_from_before_it(void **state)
{
    (void)state;
    enum sl_master_topology_status before[] = {A, I};
    for (size_t i = 0; i < array_size(before); i++) {
        struct sl_master_transition next =
            sl_master_transition(R, before[i], SL_MASTER_DO_END_REBALANCE);
        assert_int_equal(next.status, before[i]);
        assert_int_equal(next.effect, SL_MASTER_ENTER);
    }
}

static void
test_a_kill_is_never_put_off(void **state)
{
    (void)state;
    assert_int_equal(sl_master_kill_due(0, 1000, 500), 1500);
    /* Another kill, or another master, later: the first moment stands. */
    assert_int_equal(sl_master_kill_due(1500, 1400, 60000), 1500);
    /* A more urgent one brings it forward. */
    assert_int_equal(sl_master_kill_due(61000, 1400, 0), 1400);
    /* A moment is never "none", and no wait passes the end of time. */
    assert_int_not_equal(sl_master_kill_due(0, 0, 0), 0);
    assert_true(sl_master_kill_due(0, 1000, UINT64_MAX) > 0);
}

static void
test_states_have_names(void **state)
{
    (void)state;
    assert_string_equal(sl_master_status_name(A), "ACTIVE");
    assert_string_equal(sl_master_status_name(K), "KILLED");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_state_and_action_gives_what_the_table_says),
    cmocka_unit_test(test_a_change_ends_in_the_state_from_before_it),
    cmocka_unit_test(test_a_kill_is_never_put_off),
    cmocka_unit_test(test_states_have_names),
};

UNIT_MAIN(tests)
