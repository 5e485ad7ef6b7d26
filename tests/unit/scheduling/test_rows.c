/* The scheduling rows of the reference (C, R, M, E), each a test with its id in the name. */
#include "scheduling/sched_fixture.h"

#define C1_TEXT "s1:6800 1,4,8,9; s2:6800 2,5,10; s3:6800 3,6,7"

/* Sizes and workers a supervisor of a new assignment. */
static void
expect_shape(struct fx *f, const char *sizes, const char *spans)
{
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    assert_string_equal(fx_sizes(&result), sizes);
    if (spans != NULL) {
        assert_string_equal(fx_spans(f, &result), spans);
    }
    sl_sched_result_destroy(&result);
    free(f);
}

static void
expect_exact(struct fx *f, const char *text)
{
    fx_expect(f, SL_SCHED_BALANCED, SL_SCHED_NEW, text);
    free(f);
}

static void
test_c1(void **state)
{
    (void)state;
    expect_exact(fx_word_count("4,4,4", 3), C1_TEXT);
}

static void
test_c2(void **state)
{
    (void)state;
    expect_exact(fx_word_count("4,4,4", 4),
                 "s1:6800 1,9; s1:6801 4,7; s2:6800 2,5,10; s3:6800 3,6,8");
}

static void
test_c3(void **state)
{
    (void)state;
    expect_shape(fx_pair("4,4,4", 1, 2, 1, 20), "2,1,1,1", "2,1,1");
}

static void
test_c4(void **state)
{
    (void)state;
    expect_shape(fx_pair("4,4,4", 1, 2, 1, 0), "2,1,1,1", "2,1,1");
}

static void
test_c5(void **state)
{
    (void)state;
    struct fx *f = fx_pair("4,4,4", 6, 12, 2, 10);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    assert_string_equal(fx_sizes(&result), "2,2,2,2,2,2,2,2,2,2,1");
    uint32_t workers_there = 0;
    const struct sl_sched_worker *master = fx_worker_of(&result, 15);
    assert_int_equal(master->task_count, 1);
    for (uint32_t i = 0; i < result.worker_count; i++) {
        workers_there += strcmp(result.workers[i].supervisor, master->supervisor) == 0;
    }
    assert_int_equal(workers_there, 4);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_c7(void **state)
{
    (void)state;
    struct fx *f = fx_pair("2,2", 2, 4, 1, 2);
    f->r.master_alone = SL_SCHED_YES;
    expect_exact(f, "s1:6800 6; s1:6801 2,4,8; s2:6800 1,3,5,7");
}

static void
test_c8(void **state)
{
    (void)state;
    struct fx *f = fx_pair("2,2", 2, 6, 1, 5);
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE, "need 5, free 4");
    free(f);
}

static void
test_c10(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4,4", 3);
    fx_use(f, 0, 6800);
    fx_use(f, 0, 6801);
    fx_use(f, 0, 6802);
    expect_shape(f, "4,3,3", "0,2,1");
}

static void
test_c12(void **state)
{
    (void)state;
    expect_shape(fx_pair("1,4,4", 4, 8, 1, 6), "3,3,2,2,2,2", "1,3,2");
}

static void
test_c13(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4,4", 4);
    fx_isolate(f, "h1");
    fx_isolate(f, "h2");
    expect_shape(f, "3,3,2,2", "2,2,0");
}

static void
test_c14(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4,4", 5);
    fx_isolate(f, "h1");
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE, "need 5, free 4");
    free(f);
}

static void
test_c15(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4,4", 3);
    fx_spread(f, "count");
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    assert_string_equal(fx_sizes(&result), "4,3,3");
    assert_string_not_equal(fx_worker_of(&result, 4)->supervisor,
                            fx_worker_of(&result, 5)->supervisor);
    assert_string_not_equal(fx_worker_of(&result, 5)->supervisor,
                            fx_worker_of(&result, 6)->supervisor);
    assert_string_not_equal(fx_worker_of(&result, 4)->supervisor,
                            fx_worker_of(&result, 6)->supervisor);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_c17(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4,4", 3);
    fx_user(f, "h2", -1);
    fx_share(f, "spout", 1);
    fx_share(f, "split", 2);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    assert_string_equal(fx_sizes(&result), "4,3,3");
    assert_string_equal(fx_spans(f, &result), "1,1,1");
    const struct sl_sched_worker *pinned = fx_worker_of(&result, 1);
    assert_string_equal(pinned->supervisor, "s2");
    assert_ptr_equal(fx_worker_of(&result, 2), pinned);
    assert_ptr_equal(fx_worker_of(&result, 9), pinned);
    assert_int_equal(pinned->task_count, 4);
    uint32_t counts = 0;
    for (uint32_t t = 4; t <= 6; t++) {
        counts += fx_worker_of(&result, t) == pinned;
    }
    assert_int_equal(counts, 1);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_c19(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4,4", 3);
    fx_user(f, "h9", -1);
    fx_share(f, "count", 3);
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE, "host h9");
    free(f);
}

static void
test_c20(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4,4", 2);
    fx_user(f, "h1", -1);
    fx_share(f, "spout", 1);
    fx_user(f, "h2", -1);
    fx_share(f, "split", 1);
    fx_user(f, "h3", -1);
    fx_share(f, "count", 1);
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_NEW, SL_EUNSATISFIABLE,
               "3 user workers, but only 2 workers");
    free(f);
}

static void
test_c21(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("4,4,4", 3);
    fx_user(f, "h1", -1);
    fx_share(f, "split", 3);
    fx_share(f, "count", 3);
    fx_share(f, "spout", 2);
    expect_exact(f, "s1:6800 1,2,3,4,5,6,9,10; s2:6800 7; s3:6800 8");
}

static void
test_c22(void **state)
{
    (void)state;
    struct fx *f = fx_pair("4", 2, 2, 1, 2);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    assert_string_equal(fx_sizes(&result), "3,3");
    assert_ptr_not_equal(fx_worker_of(&result, 1), fx_worker_of(&result, 2));
    assert_ptr_not_equal(fx_worker_of(&result, 5), fx_worker_of(&result, 6));
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_c24(void **state)
{
    (void)state;
    struct fx *f = fx_pair("4,4,4", 3, 3, 3, 3);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    assert_string_equal(fx_sizes(&result), "4,3,3");
    assert_string_equal(fx_spans(f, &result), "1,1,1");
    assert_ptr_not_equal(fx_worker_of(&result, 4), fx_worker_of(&result, 5));
    assert_ptr_not_equal(fx_worker_of(&result, 5), fx_worker_of(&result, 6));
    assert_ptr_not_equal(fx_worker_of(&result, 4), fx_worker_of(&result, 6));
    sl_sched_result_destroy(&result);
    free(f);
}

/* ---- rescaling; starts from C1 unless said ----------------------------------------------------
 */

static struct fx *
after_c1(void)
{
    struct fx *f = fx_word_count("4,4,4", 3);
    struct sl_sched_result c1 = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    assert_string_equal(fx_text(&c1), C1_TEXT);
    fx_previous(f, &c1);
    sl_sched_result_destroy(&c1);
    return f;
}

static void
test_r1(void **state)
{
    (void)state;
    struct fx *f = after_c1();
    fx_scale(f, "count", 5);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_KEEP);
    assert_string_equal(fx_text(&result), "s1:6800 1,4,8,9; s2:6800 2,5,10,11; s3:6800 3,6,7,12");
    assert_int_equal(result.moved, 0);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_r2(void **state)
{
    (void)state;
    struct fx *f = after_c1();
    f->r.workers = 4;
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_KEEP);
    assert_string_equal(fx_text(&result), C1_TEXT);
    assert_int_equal(result.moved, 0);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_r3(void **state)
{
    (void)state;
    struct fx *f = after_c1();
    f->r.workers = 4;
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_REASSIGN);
    assert_string_equal(fx_text(&result),
                        "s1:6800 1,9; s1:6801 4,7; s2:6800 2,5,10; s3:6800 3,6,8");
    assert_int_equal(result.moved, 3);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_r3_minimal_moves_no_more_and_is_even(void **state)
{
    (void)state;
    struct fx *f = after_c1();
    f->r.workers = 4;
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_MINIMAL);
    assert_string_equal(fx_sizes(&result), "3,3,2,2");
    /* 4,3,3 over four workers within one: two tasks must leave. */
    assert_int_equal(result.moved, 2);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_r5(void **state)
{
    (void)state;
    struct fx *f = after_c1();
    f->r.workers = 5;
    fx_scale(f, "count", 9);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_KEEP);
    assert_string_equal(fx_sizes(&result), "5,4,3,2,2");
    assert_int_equal(result.moved, 0);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_r6(void **state)
{
    (void)state;
    struct fx *f = after_c1();
    fx_scale(f, "count", 1);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_KEEP);
    assert_string_equal(fx_text(&result), "s1:6800 1,4,8,9; s2:6800 2,10; s3:6800 3,7");
    assert_int_equal(result.moved, 0);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_r7(void **state)
{
    (void)state;
    struct fx *f = fx_pair("4,4", 4, 4, 1, 4);
    f->r.master_alone = SL_SCHED_YES;
    struct sl_sched_result start = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    fx_previous(f, &start);
    sl_sched_result_destroy(&start);
    fx_scale(f, "b", 8);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_KEEP);
    assert_string_equal(fx_sizes(&result), "4,3,3,3,1");
    assert_int_equal(result.moved, 0);
    for (uint32_t a = 11; a <= 14; a++) {
        assert_int_not_equal(fx_worker_of(&result, a)->task_count, 1);
        for (uint32_t b = a + 1; b <= 14; b++) {
            assert_ptr_not_equal(fx_worker_of(&result, a), fx_worker_of(&result, b));
        }
    }
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_r9(void **state)
{
    (void)state;
    struct fx *f = fx_pair("8,8,8", 6, 12, 2, 9);
    struct sl_sched_result start = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    char master_slot[16];
    const struct sl_sched_worker *before = fx_worker_of(&start, 15);
    snprintf(master_slot, sizeof(master_slot), "%s:%u", before->supervisor, before->port);
    assert_int_equal(before->task_count, 3);
    fx_previous(f, &start);
    sl_sched_result_destroy(&start);
    f->r.workers = 10;
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_KEEP);
    assert_string_equal(fx_sizes(&result), "3,3,2,2,2,2,2,2,1,1,1");
    assert_int_equal(result.moved, 2);
    const struct sl_sched_worker *after = fx_worker_of(&result, 15);
    char slot[16];
    snprintf(slot, sizeof(slot), "%s:%u", after->supervisor, after->port);
    assert_string_equal(slot, master_slot);
    assert_int_equal(after->task_count, 1);
    sl_sched_result_destroy(&result);
    free(f);
}

/* ---- monitor ----------------------------------------------------------------------------------
 */

static void
test_m1(void **state)
{
    (void)state;
    struct fx *f = after_c1();
    fx_kill(f, "s2", 6800);
    fx_expect(f, SL_SCHED_BALANCED, SL_SCHED_MONITOR,
              "s1:6800 1,4,8,9; s1:6801 2,5,10; s3:6800 3,6,7");
    free(f);
}

static void
test_m2(void **state)
{
    (void)state;
    struct fx *f = after_c1();
    fx_kill(f, "s1", 6800);
    fx_drop_sup(f, "s1");
    fx_expect(f, SL_SCHED_BALANCED, SL_SCHED_MONITOR,
              "s2:6800 2,5,10; s2:6801 1,4,8,9; s3:6800 3,6,7");
    free(f);
}

static void
test_m3(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("2,2", 4);
    struct sl_sched_result start = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    fx_previous(f, &start);
    sl_sched_result_destroy(&start);
    fx_kill(f, "s1", 6800);
    fx_kill(f, "s1", 6801);
    fx_drop_sup(f, "s1");
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_MONITOR, SL_EUNSATISFIABLE, "need 2, free 0");
    free(f);
}

static void
unstop(struct fx *f, const uint32_t *tasks, uint32_t count)
{
    memcpy(f->unstopped, tasks, count * sizeof(uint32_t));
    f->r.unstopped_task_count = count;
}

static void
test_m6(void **state)
{
    (void)state;
    struct fx *f = after_c1();
    fx_drop_sup(f, "s1");
    unstop(f, (uint32_t[]){1, 4, 8, 9}, 4);
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_MONITOR, SL_ECONFLICT, "nothing needs assigning");
    free(f);
}

static void
test_m7(void **state)
{
    (void)state;
    struct fx *f = after_c1();
    fx_refused(f, SL_SCHED_BALANCED, SL_SCHED_MONITOR, SL_ECONFLICT, "nothing needs assigning");
    free(f);
}

static void
test_m8_both_dead_workers_move_in_one_round(void **state)
{
    (void)state;
    struct fx *f = after_c1();
    fx_kill(f, "s1", 6800);
    fx_kill(f, "s3", 6800);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_MONITOR);
    assert_string_equal(fx_sizes(&result), "4,3,3");
    assert_string_equal(fx_worker_of(&result, 2)->supervisor, "s2");
    assert_int_equal(fx_worker_of(&result, 2)->port, 6800);
    assert_int_equal(result.moved, 7);
    sl_sched_result_destroy(&result);
    free(f);
}

static void
test_m8_only_the_masters_worker(void **state)
{
    (void)state;
    struct fx *f = after_c1();
    fx_kill(f, "s1", 6800);
    struct sl_sched_result result = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_MONITOR);
    assert_int_equal(result.moved, 4);
    sl_sched_result_destroy(&result);
    free(f);
}

/* ---- even -------------------------------------------------------------------------------------
 */

/* `tasks` executors 1.. of one bolt, as Storm counts them. */
static struct fx *
executors(const char *cluster, uint32_t tasks, uint32_t workers)
{
    struct fx *f = fx_new();
    fx_cluster(f, cluster);
    fx_component(f, "b", SL_SCHED_BOLT, tasks);
    f->r.workers = workers;
    return f;
}

static void
set_ports(struct fx *f, uint32_t sup, const uint32_t *ports, uint32_t count)
{
    memcpy(f->sup_ports[sup], ports, count * sizeof(uint32_t));
    f->sups[sup].port_count = count;
}

static void
test_e1(void **state)
{
    (void)state;
    struct fx *f = executors("2,3", 5, 5);
    set_ports(f, 0, (uint32_t[]){6700, 6701}, 2);
    set_ports(f, 1, (uint32_t[]){6700, 6701, 6702}, 3);
    fx_expect(f, SL_SCHED_EVEN, SL_SCHED_NEW,
              "s1:6700 2; s1:6701 4; s2:6700 1; s2:6701 3; s2:6702 5");
    free(f);
}

static void
test_e3(void **state)
{
    (void)state;
    struct fx *f = executors("4,4,4", 10, 4);
    fx_expect(f, SL_SCHED_EVEN, SL_SCHED_NEW,
              "s1:6800 1,5,9; s1:6801 4,8; s2:6800 2,6,10; s3:6800 3,7");
    free(f);
}

static void
test_e5(void **state)
{
    (void)state;
    struct fx *f = executors("1,1", 5, 4);
    fx_expect(f, SL_SCHED_EVEN, SL_SCHED_NEW, "s1:6800 1,3,5; s2:6800 2,4");
    free(f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_c1),
        cmocka_unit_test(test_c2),
        cmocka_unit_test(test_c3),
        cmocka_unit_test(test_c4),
        cmocka_unit_test(test_c5),
        cmocka_unit_test(test_c7),
        cmocka_unit_test(test_c8),
        cmocka_unit_test(test_c10),
        cmocka_unit_test(test_c12),
        cmocka_unit_test(test_c13),
        cmocka_unit_test(test_c14),
        cmocka_unit_test(test_c15),
        cmocka_unit_test(test_c17),
        cmocka_unit_test(test_c19),
        cmocka_unit_test(test_c20),
        cmocka_unit_test(test_c21),
        cmocka_unit_test(test_c22),
        cmocka_unit_test(test_c24),
        cmocka_unit_test(test_r1),
        cmocka_unit_test(test_r2),
        cmocka_unit_test(test_r3),
        cmocka_unit_test(test_r3_minimal_moves_no_more_and_is_even),
        cmocka_unit_test(test_r5),
        cmocka_unit_test(test_r6),
        cmocka_unit_test(test_r7),
        cmocka_unit_test(test_r9),
        cmocka_unit_test(test_m1),
        cmocka_unit_test(test_m2),
        cmocka_unit_test(test_m3),
        cmocka_unit_test(test_m6),
        cmocka_unit_test(test_m7),
        cmocka_unit_test(test_m8_both_dead_workers_move_in_one_round),
        cmocka_unit_test(test_m8_only_the_masters_worker),
        cmocka_unit_test(test_e1),
        cmocka_unit_test(test_e3),
        cmocka_unit_test(test_e5),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
