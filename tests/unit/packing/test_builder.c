/* Rows P of the reference: the plan builder. labels: short */
#include "packing/fixture.h"

#include "packing/builder.h"
#include "packing/scorer.h"

/* Components A and B, plan {1: A0#1; 3: A1#2, B0#3}, limits of first fit decreasing. */
struct scene {
    struct fixture fixture;
    struct sl_packing_plan *plan;
    struct sl_packing_builder builder;
};

static void
scene_create(struct scene *self, const char *text)
{
    fixture_create(&self->fixture, 2, 1);
    self->fixture.components[0] = fixture_component("A", SL_PACKING_BOLT, 2);
    self->fixture.components[1] = fixture_component("B", SL_PACKING_BOLT, 1);
    self->fixture.request.config.max_instances = 10;
    struct sl_packing_limits limits =
        sl_packing_limits_of(&self->fixture.request.config, SL_PACKING_FIRST_FIT_DECREASING);
    self->plan = fixture_parse(&self->fixture, text);
    sl_packing_builder_create(&self->builder, self->fixture.components, 2, &limits);
    sl_packing_builder_load(&self->builder, self->plan);
}

static void
scene_expect(struct scene *self, const char *text)
{
    struct sl_packing_plan *built;
    assert_int_equal(sl_packing_builder_build(&self->builder, &built), 0);
    assert_string_equal(fixture_text(&self->fixture, built, true), text);
    sl_packing_plan_free(built);
}

static void
scene_destroy(struct scene *self)
{
    sl_packing_builder_destroy(&self->builder);
    sl_packing_plan_free(self->plan);
}

static const char P_PLAN[] = "1[A0#1] 3[A1#2 B0#3]";

static void
test_p1_adds_to_old_and_new_containers(void **state)
{
    (void)state;
    struct scene scene;
    scene_create(&scene, P_PLAN);
    assert_int_equal(sl_packing_builder_add(&scene.builder, 1, 1), 0);
    assert_int_equal(sl_packing_builder_add(&scene.builder, 4, 0), 0);
    scene_expect(&scene, "1[A0#1 B1#4] 3[A1#2 B0#3] 4[A2#5]");
    assert_int_equal(sl_packing_builder_add(&scene.builder, 2, 0), 0);
    scene_expect(&scene, "1[A0#1 B1#4] 2[A3#6] 3[A1#2 B0#3] 4[A2#5]");
    assert_int_equal(sl_packing_builder_remove(&scene.builder, 4, 0), 0);
    scene_expect(&scene, "1[A0#1 B1#4] 2[A3#6] 3[A1#2 B0#3]");
    scene_destroy(&scene);
}

static void
test_p3_removes_and_leaves_out_empty_containers(void **state)
{
    (void)state;
    struct scene scene;
    scene_create(&scene, P_PLAN);
    assert_int_equal(sl_packing_builder_remove(&scene.builder, 1, 0), 0);
    assert_int_equal(sl_packing_builder_remove(&scene.builder, 3, 0), 0);
    scene_expect(&scene, "3[B0#3]");
    assert_int_equal(sl_packing_builder_remove(&scene.builder, 3, 1), 0);
    struct sl_packing_plan *built;
    assert_int_equal(sl_packing_builder_build(&scene.builder, &built), SL_EUNSATISFIABLE);
    assert_null(built);
    scene_destroy(&scene);
}

static void
test_p4_refuses_what_is_not_there(void **state)
{
    (void)state;
    struct scene scene;
    scene_create(&scene, P_PLAN);
    assert_int_equal(sl_packing_builder_remove(&scene.builder, 7, 0), SL_EUNSATISFIABLE);
    assert_int_equal(sl_packing_builder_remove(&scene.builder, 1, 2), SL_EUNSATISFIABLE);
    assert_int_equal(sl_packing_builder_remove(&scene.builder, 1, 1), SL_EUNSATISFIABLE);
    assert_int_equal(sl_packing_builder_add(&scene.builder, 1, 2), SL_EUNSATISFIABLE);
    assert_int_equal(sl_packing_builder_add(&scene.builder, 0, 1), SL_EINVAL);
    scene_expect(&scene, P_PLAN);
    scene_destroy(&scene);
}

static void
test_ids_freed_at_the_top_are_used_again(void **state)
{
    (void)state;
    struct scene scene;
    scene_create(&scene, "1[A0#1 A1#2 B0#3 A2#4]");
    assert_int_equal(sl_packing_builder_remove(&scene.builder, 1, 0), 0);
    assert_int_equal(sl_packing_builder_add(&scene.builder, 1, 1), 0);
    scene_expect(&scene, "1[A0#1 A1#2 B0#3 B1#4]");
    assert_int_equal(sl_packing_builder_remove(&scene.builder, 1, 0), 0);
    assert_int_equal(sl_packing_builder_add(&scene.builder, 1, 0), 0);
    scene_expect(&scene, "1[A0#1 B0#3 B1#4 A1#5]");
    scene_destroy(&scene);
}

static void
test_constraints_bind_additions(void **state)
{
    (void)state;
    struct scene scene;
    scene_create(&scene, P_PLAN);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(sl_packing_builder_add(&scene.builder, 1, 0), 0);
    }
    assert_int_equal(sl_packing_builder_add(&scene.builder, 1, 0), SL_EUNSATISFIABLE);
    assert_non_null(strstr(sl_err_last()->msg, "container 1: cpu: need 1 cores, room 0"));
    /* By score the next container takes it. */
    struct sl_packing_scorer by_id = {.kind = SL_PACKING_SCORER_ID};
    assert_int_equal(sl_packing_builder_add_scored(&scene.builder, &by_id, 1, 1), 0);
    scene_expect(&scene, "1[A0#1 A2#4 A3#5 A4#6 A5#7 A6#8 A7#9 A8#10 A9#11] 3[A1#2 B0#3 B1#12]");
    scene.builder.limits.max_instances = 3;
    assert_int_equal(sl_packing_builder_add_scored(&scene.builder, &by_id, 1, 1),
                     SL_EUNSATISFIABLE);
    assert_non_null(strstr(sl_err_last()->msg, "instances: need 1, room 0"));
    scene_destroy(&scene);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_p1_adds_to_old_and_new_containers),
    cmocka_unit_test(test_p3_removes_and_leaves_out_empty_containers),
    cmocka_unit_test(test_p4_refuses_what_is_not_there),
    cmocka_unit_test(test_ids_freed_at_the_top_are_used_again),
    cmocka_unit_test(test_constraints_bind_additions),
};

UNIT_MAIN(tests)
