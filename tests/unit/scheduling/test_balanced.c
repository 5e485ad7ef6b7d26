/* What `balanced` repairs in JStorm (the bugs of the reference), resources, and bad requests. */
#include "scheduling/sched_fixture.h"

static struct fx *
after_start(struct fx *f)
{
    struct sl_sched_result start = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    fx_previous(f, &start);
    sl_sched_result_destroy(&start);
    return f;
}

static void
test_bug_1_shrinking_drops_the_highest_tasks_and_leaves_the_others(void **state)
{
    (void)state;
    struct fx *f = after_start(fx_word_count("4,4,4", 3));
    fx_scale(f, "count", 1);
    static const int modes[] = {SL_SCHED_KEEP, SL_SCHED_REASSIGN, SL_SCHED_MINIMAL};
    for (int i = 0; i < 3; i++) {
        struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, modes[i]);
        assert_int_equal(result.task_count, 8);
        for (uint32_t t = 0; t < result.task_count; t++) {
            assert_true(result.tasks[t] != 5 && result.tasks[t] != 6);
        }
        sl_sched_result_destroy(&result);
    }
    free(f);
}

static void
test_bug_3_all_ports_pinned_is_accepted(void **state)
{
    (void)state;
    struct fx *f = fx_pair("1,1", 2, 2, 0, 2);
    f->r.master_alone = SL_SCHED_NO;
    fx_user(f, "h1", -1);
    fx_share(f, "s", 1);
    fx_user(f, "h2", -1);
    fx_share(f, "s", 1);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    assert_string_equal(fx_spans(f, &result), "1,1");
    assert_string_equal(fx_worker_of(&result, 4)->supervisor, "s1");
    assert_string_equal(fx_worker_of(&result, 5)->supervisor, "s2");
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_bug_3_keep_on_a_full_cluster_succeeds(void **state)
{
    (void)state;
    struct fx *f = after_start(fx_word_count("2,2", 4));
    fx_scale(f, "count", 5);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_KEEP);
    assert_int_equal(result.moved, 0);
    assert_int_equal(result.worker_count, 4);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_bug_4_user_workers_count_once_and_all_hold_after_every_rebalance(void **state)
{
    (void)state;
    static const int modes[] = {SL_SCHED_KEEP, SL_SCHED_REASSIGN, SL_SCHED_MINIMAL};
    for (int i = 0; i < 3; i++) {
        struct fx *f = fx_word_count("4,4,4", 3);
        fx_user(f, "h2", -1);
        fx_share(f, "spout", 1);
        fx_share(f, "split", 2);
        fx_user(f, "h3", 6803);
        fx_share(f, "split", 1);
        after_start(f);
        f->r.workers = 4;
        struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, modes[i]);
        assert_string_equal(fx_worker_of(&result, 1)->supervisor, "s2");
        assert_ptr_equal(fx_worker_of(&result, 1), fx_worker_of(&result, 2));
        assert_ptr_equal(fx_worker_of(&result, 1), fx_worker_of(&result, 9));
        assert_string_equal(fx_worker_of(&result, 3)->supervisor, "s3");
        assert_int_equal(fx_worker_of(&result, 3)->port, 6803);
        if (modes[i] != SL_SCHED_REASSIGN) {
            fx_previous(f, &result);
            struct sl_sched_result again = fx_assign(f, SL_SCHED_BALANCED, modes[i]);
            assert_int_equal(again.moved, 0);
            sl_sched_result_destroy(&again);
        }
        sl_sched_result_destroy(&result);
        free(f);
    }
}

static void
test_user_workers_that_get_no_task_count_as_too_many_too(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4,4", 3);
    for (int i = 0; i < 4; i++) {
        fx_user(f, "h1", -1);
        fx_share(f, "split", 1);
    }
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE,
               "4 user workers, but only 3 workers");
    free(f);
}

static void
test_a_dead_user_worker_comes_back_on_its_host(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4,4", 3);
    fx_user(f, "h2", -1);
    fx_share(f, "spout", 1);
    fx_share(f, "split", 2);
    fx_user(f, "h3", -1);
    fx_share(f, "count", 1);
    after_start(f);
    fx_kill(f, "s2", 6800);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_MONITOR);
    assert_string_equal(fx_worker_of(&result, 1)->supervisor, "s2");
    assert_int_equal(fx_worker_of(&result, 1)->port, 6801);
    assert_ptr_equal(fx_worker_of(&result, 1), fx_worker_of(&result, 2));
    assert_ptr_equal(fx_worker_of(&result, 1), fx_worker_of(&result, 9));
    /* The other definition runs in a worker that lives: it is not made twice. */
    assert_int_equal(result.worker_count, 3);
    sl_sched_result_destroy(&result);
    /* Another worker dies: the definitions that live take nothing of it. */
    f->r.dead_task_count = 0;
    fx_kill(f, "s1", 6800);
    result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_MONITOR);
    assert_int_equal(result.worker_count, 3);
    assert_int_equal(fx_worker_of(&result, 1)->port, 6800);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_bug_6_a_full_pinned_host_is_named(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("1,4", 3);
    fx_use(f, 0, 6800);
    fx_user(f, "h1", -1);
    fx_share(f, "split", 1);
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE,
               "user worker 1 (host h1): no port is free");
    free(f);
}

static void
test_bug_6_a_taken_pinned_port_is_named(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4", 3);
    fx_use(f, 0, 6801);
    fx_user(f, "h1", 6801);
    fx_share(f, "split", 1);
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE,
               "user worker 1 (host h1, port 6801): the port is taken");
    free(f);
}

static void
test_two_pins_to_one_port_are_refused(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4", 3);
    fx_user(f, "h1", 6801);
    fx_share(f, "split", 1);
    fx_user(f, "h1", 6801);
    fx_share(f, "count", 1);
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE, "user worker 2");
    free(f);
}

static void
test_a_pin_outside_of_isolation_is_refused(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4", 3);
    fx_isolate(f, "h2");
    fx_user(f, "h1", -1);
    fx_share(f, "split", 1);
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE, "isolation leaves");
    free(f);
}

static void
test_isolation_that_matches_nothing_is_refused(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4", 3);
    fx_isolate(f, "h7");
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE, "h7");
    free(f);
}

static void
test_bug_6_an_old_worker_whose_slot_is_taken_becomes_blank(void **state)
{
    (void)state;
    struct fx *f = after_start(fx_word_count("4,4,4", 3));
    fx_use(f, 1, 6800);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_KEEP);
    assert_int_equal(result.worker_count, 3);
    for (uint32_t i = 0; i < result.worker_count; i++) {
        assert_false(strcmp(result.workers[i].supervisor, "s2") == 0 &&
                     result.workers[i].port == 6800);
    }
    assert_int_equal(result.moved, 3);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_bug_9_dead_wins_over_unstopped(void **state)
{
    (void)state;
    struct fx *f = after_start(fx_word_count("4,4,4", 3));
    fx_kill(f, "s1", 6800);
    fx_drop_sup(f, "s1");
    memcpy(f->unstopped, f->dead, sizeof(f->dead));
    f->r.unstopped_task_count = f->r.dead_task_count;
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_MONITOR);
    assert_string_equal(fx_text(&result), "s2:6800 2,5,10; s2:6801 1,4,8,9; s3:6800 3,6,7");
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_unstopped_workers_stay_in_a_rebalance(void **state)
{
    (void)state;
    struct fx *f = after_start(fx_word_count("4,4,4", 3));
    fx_drop_sup(f, "s1");
    f->unstopped[0] = 1;
    f->unstopped[1] = 4;
    f->unstopped[2] = 8;
    f->unstopped[3] = 9;
    f->r.unstopped_task_count = 4;
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_REASSIGN);
    assert_string_equal(fx_worker_of(&result, 1)->supervisor, "s1");
    assert_int_equal(fx_worker_of(&result, 1)->task_count, 4);
    assert_int_equal(result.worker_count, 3);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_one_dead_task_takes_its_room_mates_along(void **state)
{
    (void)state;
    struct fx *f = after_start(fx_word_count("4,4,4", 3));
    f->dead[0] = 5;
    f->r.dead_task_count = 1;
    fx_expect(f, SL_SCHED_BALANCED, SL_SCHED_MONITOR,
              "s1:6800 1,4,8,9; s1:6801 2,5,10; s3:6800 3,6,7");
    free(f);
}

static void
test_use_old_assignment_takes_the_old_workers_over(void **state)
{
    (void)state;
    struct fx *f = after_start(fx_word_count("4,4,4", 3));
    f->r.use_old_assignment = 1;
    fx_use(f, 0, 6801);
    fx_expect(f, SL_SCHED_BALANCED, SL_SCHED_NEW, "s1:6800 1,4,8,9; s2:6800 2,5,10; s3:6800 3,6,7");
    /* A slot that is gone: its tasks are dealt as usual, the others stay. */
    fx_use(f, 0, 6800);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    assert_string_equal(fx_worker_of(&result, 2)->supervisor, "s2");
    assert_int_equal(fx_worker_of(&result, 2)->port, 6800);
    assert_string_equal(fx_worker_of(&result, 3)->supervisor, "s3");
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_a_lone_master_in_mode_keep_gets_a_worker_of_its_own_when_its_old_one_is_gone(void **state)
{
    (void)state;
    struct fx *f = fx_pair("4,4", 4, 4, 1, 4);
    f->r.master_alone = SL_SCHED_YES;
    after_start(f);
    fx_kill(f, "s1", 6800);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_KEEP);
    assert_int_equal(fx_worker_of(&result, 6)->task_count, 1);
    assert_int_equal(result.moved, 1);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_user_workers_with_the_master_and_others_contradict_a_lone_master(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4,4", 3);
    f->r.master_alone = SL_SCHED_YES;
    fx_user(f, "h1", -1);
    fx_share(f, "__topology_master", 1);
    fx_share(f, "split", 1);
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE, "to be alone");
    free(f);
}

static void
test_different_nodes_beat_balance_when_they_must(void **state)
{
    (void)state;
    /* s1 has three of its four ports in use: the usual rule would leave it out. */
    struct fx *f = fx_word_count("4,4,4", 3);
    fx_use(f, 0, 6800);
    fx_use(f, 0, 6801);
    fx_use(f, 0, 6802);
    fx_spread(f, "count");
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    assert_string_equal(fx_spans(f, &result), "1,1,1");
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_too_few_nodes_for_different_nodes_are_refused(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4", 4);
    fx_spread(f, "count");
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE, "count must run on");
    free(f);
}

static void
test_monitor_keeps_different_nodes_with_surviving_workers(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4,4", 3);
    fx_spread(f, "count");
    after_start(f);
    fx_kill(f, "s2", 6800);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_MONITOR);
    /* Only s2 has no count any more; its dead port stays out. */
    assert_string_equal(fx_worker_of(&result, 5)->supervisor, "s2");
    assert_int_equal(fx_worker_of(&result, 5)->port, 6801);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_supervisors_that_state_cpu_are_never_overcommitted(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4,4", 6);
    f->r.worker_cpu = 1;
    f->sups[0].cpu = 1.5;
    f->sups[1].cpu = 2;
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    assert_string_equal(fx_spans(f, &result), "1,2,3");
    assert_true(result.workers[0].cpu == 1);
    sl_sched_result_destroy(&result);
    f->sups[2].cpu = 0;
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE,
               "6 more workers need a place, but ports, cpu and ram are left for 3");
    free(f);
}

static void
test_a_user_worker_takes_its_own_ram(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4", 3);
    f->sups[0].ram = 4096;
    f->r.worker_ram = 1024;
    fx_user(f, "h1", -1);
    fx_share(f, "split", 1);
    f->users[0].ram = 4000;
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    assert_string_equal(fx_spans(f, &result), "1,2");
    assert_true(fx_worker_of(&result, 1)->ram == 4000);
    sl_sched_result_destroy(&result);
    f->users[0].ram = 5000;
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE, "cpu or ram");
    free(f);
}

static void
test_requests_that_contradict_themselves_are_refused(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4", 3);
    f->comp_tasks[0][1] = 1;
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EINVAL, "given twice");
    f->comp_tasks[0][1] = 2;
    fx_sup(f, "s1", "h3", 2);
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EINVAL, "supervisor s1 is given twice");
    snprintf(f->names[2][0], sizeof(f->names[2][0]), "s3");
    f->sup_ports[2][1] = 6800;
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EINVAL, "port 6800 is given twice");
    f->sup_ports[2][1] = 6801;
    f->comp_inputs[0][0] = 99;
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EINVAL, "names no component");
    f->comp_inputs[0][0] = 1;
    fx_refused(f, SL_SCHED_BALANCED, 99, SL_EINVAL, "mode");
    fx_refused(f, 99, SL_SCHED_NEW, SL_EINVAL, "scheduler 99");
    free(f);
}

/* Their tasks, summed up in 32 bits, are as many as there are. */
static void
test_components_that_share_their_tasks_are_refused(void **state)
{
    (void)state;
    enum { TASKS = 1 << 16, COMPONENTS = TASKS + 1 };
    struct sl_sched_component *components = calloc(COMPONENTS, sizeof(*components));
    uint32_t *tasks = calloc(TASKS, sizeof(*tasks));
    assert_true(components != NULL && tasks != NULL);
    for (uint32_t i = 0; i < COMPONENTS; i++) {
        components[i].name = "c";
        components[i].task_count = TASKS;
    }
    struct sl_sched_request request = {.components = components,
                                       .component_count = COMPONENTS,
                                       .tasks = tasks,
                                       .task_count = TASKS};
    struct sl_sched_result result;
    assert_int_equal(sl_sched_assign(&request, SL_SCHED_BALANCED, &result), SL_EINVAL);
    assert_string_equal(sl_err_last()->msg, "the components share their tasks");
    free(components);
    free(tasks);
}

static void
test_no_supervisor_at_all_is_refused_with_numbers(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("", 3);
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE, "need 3, free 0");
    free(f);
}

static void
test_reserved_slots_stay_free(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("2,2", 3);
    f->r.reserve_workers = 2;
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE, "need 3, free 4, reserved 2");
    free(f);
}

static void
test_round_robin_gives_one_each_in_turn(void **state)
{
    (void)state;
    struct fx *f = fx_new();
    fx_cluster(f, "10,2,2");
    fx_component(f, "b", SL_SCHED_BOLT, 8);
    f->r.workers = 3;
    struct sl_sched_result result = fx_assign(f, SL_SCHED_ROUND_ROBIN, SL_SCHED_NEW);
    assert_string_equal(fx_spans(f, &result), "1,1,1");
    assert_string_equal(fx_text(&result), "s1:6800 1,4,7; s2:6800 2,5,8; s3:6800 3,6");
    sl_sched_result_destroy(&result);
    f->r.workers = 8;
    result = fx_assign(f, SL_SCHED_ROUND_ROBIN, SL_SCHED_NEW);
    assert_string_equal(fx_spans(f, &result), "4,2,2");
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_round_robin_fills_all_slots_before_it_refuses(void **state)
{
    (void)state;
    struct fx *f = fx_new();
    fx_cluster(f, "10,2,2");
    fx_component(f, "b", SL_SCHED_BOLT, 20);
    fx_system(f, 1);
    f->r.workers = 14;
    struct sl_sched_result result = fx_assign(f, SL_SCHED_ROUND_ROBIN, SL_SCHED_NEW);
    assert_string_equal(fx_spans(f, &result), "10,2,2");
    fx_previous(f, &result);
    sl_sched_result_destroy(&result);
    for (int scheduler = SL_SCHED_EVEN; scheduler <= SL_SCHED_ROUND_ROBIN; scheduler++) {
        result = fx_assign(f, scheduler, SL_SCHED_MINIMAL);
        assert_int_equal(result.moved, 0);
        sl_sched_result_destroy(&result);
    }
    f->r.workers = 15;
    fx_refused(f, SL_SCHED_ROUND_ROBIN, SL_SCHED_NEW, SL_EUNSATISFIABLE, "need 15, free 14");
    free(f);
}

static void
test_round_robin_keeps_workers_that_have_a_node(void **state)
{
    (void)state;
    struct fx *f = fx_new();
    fx_cluster(f, "10,2,2");
    fx_component(f, "b", SL_SCHED_BOLT, 8);
    f->r.workers = 3;
    struct sl_sched_result start = fx_assign(f, SL_SCHED_ROUND_ROBIN, SL_SCHED_NEW);
    fx_previous(f, &start);
    sl_sched_result_destroy(&start);
    f->r.workers = 5;
    fx_scale(f, "b", 12);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_ROUND_ROBIN, SL_SCHED_KEEP);
    assert_int_equal(result.moved, 0);
    assert_int_equal(result.worker_count, 5);
    sl_sched_result_destroy(&result);
    free(f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bug_1_shrinking_drops_the_highest_tasks_and_leaves_the_others),
        cmocka_unit_test(test_bug_3_all_ports_pinned_is_accepted),
        cmocka_unit_test(test_bug_3_keep_on_a_full_cluster_succeeds),
        cmocka_unit_test(test_bug_4_user_workers_count_once_and_all_hold_after_every_rebalance),
        cmocka_unit_test(test_user_workers_that_get_no_task_count_as_too_many_too),
        cmocka_unit_test(test_a_dead_user_worker_comes_back_on_its_host),
        cmocka_unit_test(test_bug_6_a_full_pinned_host_is_named),
        cmocka_unit_test(test_bug_6_a_taken_pinned_port_is_named),
        cmocka_unit_test(test_two_pins_to_one_port_are_refused),
        cmocka_unit_test(test_a_pin_outside_of_isolation_is_refused),
        cmocka_unit_test(test_isolation_that_matches_nothing_is_refused),
        cmocka_unit_test(test_bug_6_an_old_worker_whose_slot_is_taken_becomes_blank),
        cmocka_unit_test(test_bug_9_dead_wins_over_unstopped),
        cmocka_unit_test(test_unstopped_workers_stay_in_a_rebalance),
        cmocka_unit_test(test_one_dead_task_takes_its_room_mates_along),
        cmocka_unit_test(test_use_old_assignment_takes_the_old_workers_over),
        cmocka_unit_test(
            test_a_lone_master_in_mode_keep_gets_a_worker_of_its_own_when_its_old_one_is_gone),
        cmocka_unit_test(test_user_workers_with_the_master_and_others_contradict_a_lone_master),
        cmocka_unit_test(test_different_nodes_beat_balance_when_they_must),
        cmocka_unit_test(test_too_few_nodes_for_different_nodes_are_refused),
        cmocka_unit_test(test_monitor_keeps_different_nodes_with_surviving_workers),
        cmocka_unit_test(test_supervisors_that_state_cpu_are_never_overcommitted),
        cmocka_unit_test(test_a_user_worker_takes_its_own_ram),
        cmocka_unit_test(test_requests_that_contradict_themselves_are_refused),
        cmocka_unit_test(test_components_that_share_their_tasks_are_refused),
        cmocka_unit_test(test_no_supervisor_at_all_is_refused_with_numbers),
        cmocka_unit_test(test_reserved_slots_stay_free),
        cmocka_unit_test(test_round_robin_gives_one_each_in_turn),
        cmocka_unit_test(test_round_robin_fills_all_slots_before_it_refuses),
        cmocka_unit_test(test_round_robin_keeps_workers_that_have_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
