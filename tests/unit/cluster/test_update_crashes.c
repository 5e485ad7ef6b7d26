/* Everybody who takes part in an update fails at every step of it. labels: short */
#include "topology_fixture.h"

enum { CRASH_STEPS = 400, CRASH_STRIDE = 3 };

static void
test_a_crash_of_the_topology_master_anywhere_leaves_one_plan_whole(void **state)
{
    bool has_old = false;
    bool has_new = false;
    for (int at = 0; at < CRASH_STEPS; at += CRASH_STRIDE) {
        struct fixture *f = *state;
        run(f);
        fill_counts(f);
        send_update(f, 2, 4, 60000);
        step(f, at);
        bool is_over = f->answers > 0;
        uint64_t token = f->leader_token;
        crash_master(f);
        UNTIL(f, f->leader_token != 0 && f->leader_token != token);
        UNTIL(f, sl_topology_master_is_settled(f->master) && all_active(f, true));
        has_old = has_old || stored_version(f) == 1;
        has_new = has_new || stored_version(f) == 2;
        /* Containers of a plan that never came are told so, and end. */
        for (int32_t id = 4; stored_version(f) == 1 && id <= 5; id++) {
            if (worker_of(f, id) != NULL) {
                UNTIL(f, worker_of(f, id)->rejections > 0);
                worker_die(worker_of(f, id));
            }
        }
        assert_counts(f);
        assert_whole(f);
        assert_counts(f);
        if (is_over) {
            break;
        }
        teardown(state);
        setup(state);
    }
    assert_true(has_old && has_new);
}

static void
test_a_death_of_any_worker_anywhere_leaves_one_plan_whole(void **state)
{
    for (int32_t id = 1; id <= 5; id++) {
        bool is_over = false;
        for (int at = 0; at < CRASH_STEPS && !is_over; at += 2 * CRASH_STRIDE) {
            struct fixture *f = *state;
            struct sl_update_result result = {0};
            run(f);
            fill_counts(f);
            send_update(f, 2, 4, 60000);
            step(f, at);
            is_over = f->answers > 0;
            if (worker_of(f, id) != NULL) {
                launcher_restart(f, id);
            }
            /* Its end is noticed. */
            sl_sim_run_for(f->sim, 50);
            UNTIL(f, f->answers > 0);
            if (f->result.status == SL_RPC_SUCCESS) {
                assert_int_equal(
                    sl_update_result_decode(f->answer.data, f->answer.size, &f->arena, &result), 0);
            } else {
                /* It died before the update began. */
                assert_int_equal(f->result.code, SL_EAGAIN);
                result.outcome = SL_UPDATE_ROLLED_BACK;
            }
            UNTIL(f, sl_topology_master_is_settled(f->master) && all_active(f, true));
            assert_int_equal(stored_version(f), result.outcome == SL_UPDATE_DONE ? 2 : 1);
            assert_whole(f);
            teardown(state);
            setup(state);
        }
    }
}

static void
test_a_kill_at_any_time_of_an_update_ends_everything(void **state)
{
    bool is_over = false;
    for (int at = 0; at < CRASH_STEPS && !is_over; at += CRASH_STRIDE) {
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
        TEST(test_a_crash_of_the_topology_master_anywhere_leaves_one_plan_whole),
        TEST(test_a_death_of_any_worker_anywhere_leaves_one_plan_whole),
        TEST(test_a_kill_at_any_time_of_an_update_ends_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
