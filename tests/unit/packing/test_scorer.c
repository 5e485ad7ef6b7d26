/* Rows K of the reference: scorers, and the removal index against them. labels: short */
#include "packing/fixture.h"

#include "packing/builder.h"
#include "packing/removal.h"
#include "packing/scorer.h"

static void
create(struct fixture *fixture, struct sl_packing_builder *builder, struct sl_packing_plan **plan,
       const char *text)
{
    fixture_create(fixture, 1, 1);
    fixture->components[0].name = "A";
    struct sl_packing_limits limits =
        sl_packing_limits_of(&FIXTURE_CONFIG, SL_PACKING_RESOURCE_COMPLIANT_RR);
    *plan = fixture_parse(fixture, text);
    sl_packing_builder_create(builder, fixture->components, 2, &limits);
    sl_packing_builder_load(builder, *plan);
}

static const char K_PLAN[] = "1[A0#1 A1#2 B0#3 B1#4] 3[A2#5 B2#6 B3#7] 4[A3#8 A4#9]";

static void
test_k_rows(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        struct sl_packing_scorer scorer;
        double scores[3];
    } rows[] = {
        {"K1", {SL_PACKING_SCORER_SHARE, 0, 0, 0}, {0.5, 1.0 / 3, 1}},
        {"K2", {SL_PACKING_SCORER_SHARE, 1, 0, 0}, {0.5, 2.0 / 3, 0}},
        {"K3", {SL_PACKING_SCORER_ONLY, 0, 0, 0}, {0, 0, 1}},
        {"K4", {SL_PACKING_SCORER_ID, 0, 0, 0}, {1, 3, 4}},
        {"K6", {SL_PACKING_SCORER_INSTANCES, 0, 0, 0}, {4, 3, 2}},
    };
    struct fixture fixture;
    struct sl_packing_builder builder;
    struct sl_packing_plan *plan;
    create(&fixture, &builder, &plan, K_PLAN);
    for (size_t i = 0; i < array_size(rows); i++) {
        for (int32_t p = 0; p < 3; p++) {
            double score = sl_packing_score(&rows[i].scorer, &builder, p);
            if (score < rows[i].scores[p] - 1e-9 || score > rows[i].scores[p] + 1e-9) {
                fail_msg("%s, position %d: %g", rows[i].id, p, score);
            }
        }
    }
    sl_packing_builder_destroy(&builder);
    sl_packing_plan_free(plan);
}

static void
assert_order(const struct sl_packing_builder *builder, const struct sl_packing_scorer *scorers,
             int32_t count, const int32_t *expected)
{
    int32_t ids[3];
    sl_packing_score_sort(scorers, count, builder, ids);
    assert_memory_equal(ids, expected, sizeof(ids));
}

static void
test_sorting_by_id_wraps_around(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sl_packing_builder builder;
    struct sl_packing_plan *plan;
    create(&fixture, &builder, &plan, "3[A0#1] 6[A1#2] 4[A2#3]");
    struct sl_packing_scorer plain = {.kind = SL_PACKING_SCORER_ID};
    assert_order(&builder, &plain, 1, (const int32_t[]){3, 4, 6});
    struct sl_packing_scorer wrapped = {.kind = SL_PACKING_SCORER_ID, .first_id = 4, .max_id = 6};
    assert_order(&builder, &wrapped, 1, (const int32_t[]){4, 6, 3});
    sl_packing_builder_destroy(&builder);
    sl_packing_plan_free(plan);
}

static void
test_removal_order_uses_the_scorers_in_turn(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sl_packing_builder builder;
    struct sl_packing_plan *plan;
    struct sl_packing_scorer scorers[SL_PACKING_REMOVAL_SCORERS];
    create(&fixture, &builder, &plan, K_PLAN);
    sl_packing_removal_scorers(0, scorers);
    assert_order(&builder, scorers, SL_PACKING_REMOVAL_SCORERS, (const int32_t[]){4, 3, 1});
    sl_packing_builder_destroy(&builder);
    sl_packing_plan_free(plan);
    /* Equal counts and shares in thousandths: the highest id. */
    create(&fixture, &builder, &plan, "1[A0#1 B0#2] 5[A1#3 B1#4] 2[A2#5 B2#6]");
    assert_order(&builder, scorers, SL_PACKING_REMOVAL_SCORERS, (const int32_t[]){5, 2, 1});
    sl_packing_builder_destroy(&builder);
    sl_packing_plan_free(plan);
}

/* A random plan of three components in `containers` containers. */
static struct sl_packing_plan *
random_plan(struct sl_random *random, int32_t containers)
{
    int32_t counts[64];
    int32_t total = 0;
    for (int32_t k = 0; k < containers; k++) {
        counts[k] = 1 + (int32_t)sl_random_below(random, 7);
        total += counts[k];
    }
    struct sl_packing_plan *plan = sl_packing_plan_new(containers, total, 0);
    int32_t indexes[3] = {0};
    int32_t at = 0;
    for (int32_t k = 0; k < containers; k++) {
        plan->containers[k] =
            (struct sl_packing_container){.id = 2 * k + 1, .first = at, .count = counts[k]};
        for (int32_t i = 0; i < counts[k]; i++, at++) {
            int32_t component = (int32_t)sl_random_below(random, 3);
            plan->instances[at] = (struct sl_packing_instance){
                component, at + 1, indexes[component]++, 1, SL_GIB, SL_GIB};
        }
    }
    return plan;
}

static void
test_removal_equals_the_scorers_on_random_plans(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 7);
    struct sl_packing_component components[3] = {fixture_component("A", SL_PACKING_BOLT, 1),
                                                 fixture_component("B", SL_PACKING_BOLT, 1),
                                                 fixture_component("C", SL_PACKING_SPOUT, 1)};
    struct sl_packing_limits limits =
        sl_packing_limits_of(&FIXTURE_CONFIG, SL_PACKING_FIRST_FIT_DECREASING);
    for (int round = 0; round < 300; round++) {
        struct sl_packing_plan *plan =
            random_plan(&random, 1 + (int32_t)sl_random_below(&random, 20));
        struct sl_packing_builder fast;
        struct sl_packing_builder naive;
        sl_packing_builder_create(&fast, components, 3, &limits);
        sl_packing_builder_create(&naive, components, 3, &limits);
        sl_packing_builder_load(&fast, plan);
        sl_packing_builder_load(&naive, plan);
        struct sl_packing_removal removal;
        sl_packing_removal_create(&removal, &fast);
        for (int32_t c = 0; c < 3; c++) {
            int32_t there = sl_packing_builder_count(&fast, c);
            int32_t count = (int32_t)sl_random_below(&random, (uint64_t)there + 1);
            struct sl_packing_scorer scorers[SL_PACKING_REMOVAL_SCORERS];
            sl_packing_removal_scorers(c, scorers);
            assert_int_equal(sl_packing_removal_run(&removal, c, count), 0);
            for (int32_t i = 0; i < count; i++) {
                assert_int_equal(sl_packing_builder_remove_scored(&naive, scorers,
                                                                  SL_PACKING_REMOVAL_SCORERS, c),
                                 0);
            }
        }
        sl_packing_removal_destroy(&removal);
        for (size_t i = 0; i < fast.items.count; i++) {
            assert_int_equal(fast.items.items[i].slot < 0, naive.items.items[i].slot < 0);
        }
        sl_packing_builder_destroy(&fast);
        sl_packing_builder_destroy(&naive);
        sl_packing_plan_free(plan);
    }
}

/* Of a random plan's instances of a component only those with the lowest task ids are left. */
static void
test_removal_of_tasks_takes_the_highest(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 8);
    struct sl_packing_component components[3] = {fixture_component("A", SL_PACKING_BOLT, 1),
                                                 fixture_component("B", SL_PACKING_BOLT, 1),
                                                 fixture_component("C", SL_PACKING_SPOUT, 1)};
    struct sl_packing_limits limits =
        sl_packing_limits_of(&FIXTURE_CONFIG, SL_PACKING_FIRST_FIT_DECREASING);
    for (int round = 0; round < 100; round++) {
        struct sl_packing_plan *plan =
            random_plan(&random, 1 + (int32_t)sl_random_below(&random, 20));
        struct sl_packing_builder builder;
        struct sl_packing_removal removal;
        sl_packing_builder_create(&builder, components, 3, &limits);
        sl_packing_builder_load(&builder, plan);
        sl_packing_removal_create(&removal, &builder);
        int32_t there = sl_packing_builder_count(&builder, 1);
        int32_t count = (int32_t)sl_random_below(&random, (uint64_t)there + 1);
        assert_int_equal(sl_packing_removal_run_highest(&removal, 1, there + 1), SL_EUNSATISFIABLE);
        assert_int_equal(sl_packing_builder_count(&builder, 1), there);
        assert_int_equal(sl_packing_removal_run_highest(&removal, 1, count), 0);
        assert_int_equal(sl_packing_builder_count(&builder, 1), there - count);
        int32_t highest_left = 0;
        int32_t lowest_gone = INT32_MAX;
        for (size_t i = 0; i < builder.items.count; i++) {
            const struct sl_packing_item *item = &builder.items.items[i];
            int32_t task = item->instance.task;
            if (item->instance.component != 1) {
                assert_true(item->slot >= 0);
            } else if (item->slot >= 0) {
                highest_left = task > highest_left ? task : highest_left;
            } else {
                lowest_gone = task < lowest_gone ? task : lowest_gone;
            }
        }
        assert_true(highest_left < lowest_gone);
        sl_packing_removal_destroy(&removal);
        sl_packing_builder_destroy(&builder);
        sl_packing_plan_free(plan);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_k_rows),
    cmocka_unit_test(test_sorting_by_id_wraps_around),
    cmocka_unit_test(test_removal_order_uses_the_scorers_in_turn),
    cmocka_unit_test(test_removal_equals_the_scorers_on_random_plans),
    cmocka_unit_test(test_removal_of_tasks_takes_the_highest),
};

UNIT_MAIN(tests)
