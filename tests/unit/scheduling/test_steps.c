/* The named steps by themselves: maps, counting, refining, keeping, relations, counters, the pool.
 */
#include "scheduling/even.h"
#include "scheduling/pool.h"
#include "scheduling/sched_fixture.h"
#include "scheduling/steps.h"

static void
create(struct sl_sched_model *model, struct fx *f)
{
    assert_int_equal(sl_sched_model_create(model, fx_request(f)), 0);
}

static void
test_model_maps_supervisors_tasks_and_relations(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("2,3", 3);
    fx_use(f, 1, 6801);
    struct sl_sched_model m;
    create(&m, f);
    assert_int_equal(sl_sched_model_sup(&m, "s2"), 1);
    assert_int_equal(sl_sched_model_sup(&m, "s9"), SL_SCHED_NONE);
    assert_int_equal(m.sups[1].free_count, 2);
    assert_false(sl_sched_sup_is_free(&m.sups[1], 6801));
    assert_false(sl_sched_sup_is_free(&m.sups[1], 7000));
    uint32_t split = fx_find(f, "split");
    uint32_t spout = fx_find(f, "spout");
    uint32_t count = fx_find(f, "count");
    assert_int_equal(m.comp_first[split + 1] - m.comp_first[split], 3);
    assert_int_equal(m.task_ids[m.comp_tasks[m.comp_first[count]]], 4);
    assert_int_equal(m.task_ids[m.master], 8);
    /* A bolt is related to its inputs, a spout to its readers. */
    assert_int_equal(m.rel_first[split + 1] - m.rel_first[split], 1);
    assert_int_equal(m.rel[m.rel_first[split]], spout);
    assert_int_equal(m.rel[m.rel_first[count]], split);
    assert_int_equal(m.rel[m.rel_first[spout]], split);
    sl_sched_model_destroy(&m);
    free(f);
}

static void
test_model_drops_inputs_given_twice(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("2", 1);
    fx_reads(f, "split", "spout");
    struct sl_sched_model m;
    create(&m, f);
    uint32_t split = fx_find(f, "split");
    uint32_t spout = fx_find(f, "spout");
    assert_int_equal(m.rel_first[split + 1] - m.rel_first[split], 1);
    assert_int_equal(m.rel_first[spout + 1] - m.rel_first[spout], 1);
    sl_sched_model_destroy(&m);
    free(f);
}

/* E7: assigning a used slot throws. */
static void
test_e7_a_used_slot_can_not_be_taken(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("2", 1);
    struct sl_sched_model m;
    create(&m, f);
    assert_int_equal(sl_sched_sup_take(&m.sups[0], 6801, -1, -1), 0);
    assert_int_equal(sl_sched_sup_take(&m.sups[0], 6801, -1, -1), SL_EEXIST);
    assert_int_equal(sl_sched_sup_take(&m.sups[0], 6900, -1, -1), SL_ENOTFOUND);
    assert_int_equal(sl_sched_sup_take_first(&m.sups[0], -1, -1), 6800);
    assert_int_equal(m.sups[0].free_count, 0);
    sl_sched_model_destroy(&m);
    free(f);
}

/* E7: sup1 has the odd ports, sup2 the even ones; t1 uses 1, 2, t2 uses 3, 4, t3 uses 5. */
static struct fx *
e7(uint32_t tasks, uint32_t old_tasks, uint32_t workers)
{
    struct fx *f = fx_new();
    fx_sup(f, "sup1", "h1", 5);
    fx_sup(f, "sup2", "h2", 5);
    for (uint32_t i = 0; i < 5; i++) {
        f->sup_ports[0][i] = 1 + 2 * i;
        f->sup_ports[1][i] = 2 + 2 * i;
    }
    fx_use(f, 0, 1);
    fx_use(f, 1, 2);
    fx_use(f, 0, 3);
    fx_use(f, 1, 4);
    fx_use(f, 0, 5);
    fx_component(f, "b", SL_SCHED_BOLT, tasks);
    f->r.workers = workers;
    f->r.previous_count = old_tasks < workers ? old_tasks : workers;
    for (uint32_t i = 0; i < old_tasks; i++) {
        f->old_tasks[i] = i + 1;
    }
    f->r.previous_task_count = old_tasks;
    return f;
}

static void
set_old(struct fx *f, uint32_t i, const char *sup, uint32_t port, uint32_t first, uint32_t count)
{
    f->olds[i] = (struct sl_sched_previous){.supervisor = sup,
                                            .host = sup,
                                            .port = port,
                                            .first_task = first,
                                            .task_count = count,
                                            .cpu = -1,
                                            .ram = -1};
}

static void
test_e7_who_needs_scheduling(void **state)
{
    (void)state;
    struct sl_sched_model m;
    /* t1: three executors, one has no worker. */
    struct fx *f = e7(3, 2, 2);
    set_old(f, 0, "sup1", 1, 0, 1);
    set_old(f, 1, "sup2", 2, 1, 1);
    create(&m, f);
    assert_true(sl_sched_even_needs_scheduling(&m, 2));
    sl_sched_model_destroy(&m);
    free(f);
    /* t2: all are assigned. */
    f = e7(2, 2, 2);
    set_old(f, 0, "sup1", 3, 0, 1);
    set_old(f, 1, "sup2", 4, 1, 1);
    create(&m, f);
    assert_false(sl_sched_even_needs_scheduling(&m, 2));
    sl_sched_model_destroy(&m);
    free(f);
    /* t3: both on one worker, two are wanted. */
    f = e7(2, 2, 2);
    f->r.previous_count = 1;
    set_old(f, 0, "sup1", 5, 0, 2);
    create(&m, f);
    assert_true(sl_sched_even_needs_scheduling(&m, 2));
    struct sl_sched_free_slot slots[8];
    assert_int_equal(sl_sched_even_sort_slots(&m, slots, 8), 5);
    static const struct sl_sched_free_slot expected[] = {
        {1, 6}, {0, 7}, {1, 8}, {0, 9}, {1, 10},
    };
    assert_memory_equal(slots, expected, sizeof(expected));
    sl_sched_model_destroy(&m);
    free(f);
}

static void
test_e1_slots_are_interleaved(void **state)
{
    (void)state;
    struct fx *f = fx_new();
    fx_sup(f, "s1", "h1", 2);
    fx_sup(f, "s2", "h2", 3);
    fx_component(f, "b", SL_SCHED_BOLT, 1);
    struct sl_sched_model m;
    create(&m, f);
    struct sl_sched_free_slot slots[8];
    assert_int_equal(sl_sched_even_sort_slots(&m, slots, 8), 5);
    static const struct sl_sched_free_slot expected[] = {
        {1, 6800}, {0, 6800}, {1, 6801}, {0, 6801}, {1, 6802},
    };
    assert_memory_equal(slots, expected, sizeof(expected));
    sl_sched_model_destroy(&m);
    free(f);
}

static void
test_e6_integer_divided(void **state)
{
    (void)state;
    static const uint32_t rows[][5] = {
        /* total, pieces, size, small, large */
        {10, 4, 2, 2, 2}, {9, 3, 3, 3, 0}, {7, 4, 1, 1, 3}, {10, 3, 3, 2, 1}, {5, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sl_sched_division d = sl_sched_even_divide(rows[i][0], rows[i][1]);
        assert_int_equal(d.size, rows[i][2]);
        assert_int_equal(d.small_count, rows[i][3]);
        assert_int_equal(d.large_count, rows[i][4]);
    }
}

static void
test_count_workers(void **state)
{
    (void)state;
    static const struct {
        uint32_t bolts, ackers, workers;
        int alone;
        uint32_t total;
        bool is_alone;
    } rows[] = {
        {2, 1, 20, SL_SCHED_AUTO, 4, false}, {2, 1, 0, SL_SCHED_AUTO, 4, false},
        {2, 1, 3, SL_SCHED_AUTO, 3, false},  {12, 2, 10, SL_SCHED_AUTO, 11, true},
        {12, 2, 9, SL_SCHED_AUTO, 9, false}, {12, 2, 10, SL_SCHED_NO, 10, false},
        {2, 1, 2, SL_SCHED_YES, 3, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fx *f = fx_pair("4", 1, rows[i].bolts, rows[i].ackers, rows[i].workers);
        f->r.master_alone = rows[i].alone;
        struct sl_sched_model m;
        create(&m, f);
        struct sl_sched_worker_count count = sl_sched_count_workers(&m);
        assert_int_equal(count.total, rows[i].total);
        assert_int_equal(count.is_master_alone, rows[i].is_alone);
        sl_sched_model_destroy(&m);
        free(f);
    }
}

static void
test_without_a_master_none_is_alone(void **state)
{
    (void)state;
    struct fx *f = fx_new();
    fx_cluster(f, "20");
    fx_component(f, "b", SL_SCHED_BOLT, 12);
    f->r.master_alone = SL_SCHED_YES;
    struct sl_sched_model m;
    create(&m, f);
    assert_int_equal(sl_sched_count_workers(&m).total, 12);
    assert_false(sl_sched_count_workers(&m).is_master_alone);
    sl_sched_model_destroy(&m);
    free(f);
}

static struct fx *
after_c1(void)
{
    struct fx *f = fx_word_count("4,4,4", 3);
    struct sl_sched_result c1 = fx_assign(f, SL_SCHED_BALANCED, SL_SCHED_NEW);
    fx_previous(f, &c1);
    sl_sched_result_destroy(&c1);
    return f;
}

static void
test_refining_need_keep_and_alloc(void **state)
{
    (void)state;
    struct fx *f = after_c1();
    f->dead[0] = 2;
    f->r.dead_task_count = 1;
    f->unstopped[0] = 5;
    f->unstopped[1] = 3;
    f->r.unstopped_task_count = 2;
    struct sl_sched_model m;
    create(&m, f);
    sl_sched_refine_dead(&m);
    /* 5 is in the worker of 2, so it is dead too and not unstopped; 3 is unstopped. */
    assert_true(m.is_dead[4]);
    assert_false(m.is_unstopped[4]);
    assert_true(m.is_unstopped[2]);
    assert_true(m.olds[1].is_dead);
    assert_true(m.olds[2].is_unstopped);
    bool need[16];
    assert_int_equal(sl_sched_need(&m, SL_SCHED_NEW, need), 10);
    assert_int_equal(sl_sched_need(&m, SL_SCHED_REASSIGN, need), 9);
    assert_false(need[2]);
    assert_int_equal(sl_sched_need(&m, SL_SCHED_MONITOR, need), 3);
    assert_true(need[1] && need[4] && need[9]);
    sl_sched_mark_ports(&m, SL_SCHED_MONITOR);
    assert_int_equal(m.sups[0].free_count, 3);
    struct sl_sched_plan plan;
    sl_sched_plan_create(&plan, &m, 8);
    sl_sched_keep(&plan, SL_SCHED_MONITOR, need);
    assert_int_equal(plan.kept_count, 2);
    assert_string_equal(plan.slots[0].supervisor, "s1");
    assert_string_equal(plan.slots[1].supervisor, "s3");
    uint32_t alloc;
    struct sl_sched_worker_count workers = {.total = 3};
    assert_int_equal(sl_sched_alloc(&plan, workers, need, &alloc), 0);
    assert_int_equal(alloc, 1);
    memset(need, 0, sizeof(need));
    assert_int_equal(sl_sched_alloc(&plan, workers, need, &alloc), SL_ECONFLICT);
    sl_sched_model_destroy(&m);
    free(f);
}

static void
test_rebalance_gives_ports_back_but_not_those_of_dead_workers(void **state)
{
    (void)state;
    struct fx *f = after_c1();
    fx_kill(f, "s2", 6800);
    struct sl_sched_model m;
    create(&m, f);
    sl_sched_refine_dead(&m);
    sl_sched_mark_ports(&m, SL_SCHED_KEEP);
    assert_int_equal(m.sups[0].free_count, 4);
    assert_int_equal(m.sups[1].free_count, 3);
    sl_sched_model_destroy(&m);
    free(f);
}

/* Slots on given (supervisor, port) pairs. */
static void
put(struct sl_sched_plan *plan, uint32_t sup, uint32_t port)
{
    sl_sched_plan_put(plan, sl_sched_plan_add(plan, -1, -1), sup, port);
}

static void
test_selectors_in_their_order(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("2,2", 4);
    struct sl_sched_model m;
    create(&m, f);
    struct sl_sched_plan plan;
    sl_sched_plan_create(&plan, &m, 8);
    put(&plan, 0, 6800);
    put(&plan, 0, 6801);
    put(&plan, 1, 6800);
    struct sl_sched_pool pool;
    sl_sched_pool_create(&pool, &plan);
    uint32_t split = fx_find(f, "split");
    uint32_t count = fx_find(f, "count");
    uint32_t spout = fx_find(f, "spout");
    /* All equal: the lowest (supervisor, port). */
    sl_sched_pool_begin(&pool, split);
    assert_int_equal(sl_sched_pool_choose(&pool), 0);
    sl_sched_pool_add(&pool, 0, 0);
    /* The component's own tasks count first, then those on the supervisor. */
    assert_int_equal(sl_sched_pool_choose(&pool), 2);
    sl_sched_pool_add(&pool, 2, 1);
    /* Both supervisors have one: the worker without. */
    assert_int_equal(sl_sched_pool_choose(&pool), 1);
    /* Another component: the fewest tasks win over relations. */
    sl_sched_pool_begin(&pool, count);
    assert_int_equal(sl_sched_pool_choose(&pool), 1);
    sl_sched_pool_add(&pool, 1, 3);
    assert_int_equal(sl_sched_pool_choose(&pool), 2);
    sl_sched_pool_add(&pool, 2, 4);
    /* A spout: 0 and 1 have one task each; 0 has the bolt that reads it. */
    sl_sched_pool_begin(&pool, spout);
    assert_int_equal(sl_sched_pool_choose(&pool), 0);
    /* A closed worker is out but counts for its supervisor. */
    sl_sched_pool_leave(&pool, 0);
    assert_int_equal(sl_sched_pool_choose(&pool), 1);
    assert_int_equal(pool.group_size[0], 2);
    sl_sched_model_destroy(&m);
    free(f);
}

static void
test_the_lone_master_goes_where_most_workers_are(void **state)
{
    (void)state;
    struct fx *f = fx_word_count("2,2,2", 4);
    struct sl_sched_model m;
    create(&m, f);
    struct sl_sched_plan plan;
    sl_sched_plan_create(&plan, &m, 8);
    put(&plan, 0, 6800);
    put(&plan, 1, 6801);
    put(&plan, 1, 6800);
    put(&plan, 2, 6800);
    put(&plan, 2, 6801);
    struct sl_sched_pool pool;
    sl_sched_pool_create(&pool, &plan);
    /* s2 and s3 have two each; the first in order wins. */
    assert_int_equal(pool.slot[sl_sched_pool_choose_lone(&pool)], 2);
    sl_sched_pool_keep(&pool, 1, 0);
    sl_sched_pool_keep(&pool, 2, 1);
    assert_int_equal(pool.slot[sl_sched_pool_choose_lone(&pool)], 3);
    sl_sched_model_destroy(&m);
    free(f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_maps_supervisors_tasks_and_relations),
        cmocka_unit_test(test_model_drops_inputs_given_twice),
        cmocka_unit_test(test_e7_a_used_slot_can_not_be_taken),
        cmocka_unit_test(test_e7_who_needs_scheduling),
        cmocka_unit_test(test_e1_slots_are_interleaved),
        cmocka_unit_test(test_e6_integer_divided),
        cmocka_unit_test(test_count_workers),
        cmocka_unit_test(test_without_a_master_none_is_alone),
        cmocka_unit_test(test_refining_need_keep_and_alloc),
        cmocka_unit_test(test_rebalance_gives_ports_back_but_not_those_of_dead_workers),
        cmocka_unit_test(test_selectors_in_their_order),
        cmocka_unit_test(test_the_lone_master_goes_where_most_workers_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
