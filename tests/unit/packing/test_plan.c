/* Checks and order of plans. labels: short */
#include "packing/fixture.h"

static const char PLAN[] = "1[S0#1 S1#2] 2[B0#3]";

/* A change that makes the plan malformed, and a part of the message. */
struct fault {
    void (*apply)(struct sl_packing_plan *plan);
    const char *message;
};

static void
id_zero(struct sl_packing_plan *plan)
{
    plan->containers[0].id = 0;
}
static void
id_twice(struct sl_packing_plan *plan)
{
    plan->containers[1].id = 1;
}
static void
id_huge(struct sl_packing_plan *plan)
{
    plan->containers[1].id = INT32_MAX;
}
static void
no_instances(struct sl_packing_plan *plan)
{
    plan->containers[1].count = 0;
}
static void
shared(struct sl_packing_plan *plan)
{
    plan->containers[1].first = 1;
}
static void
left_out(struct sl_packing_plan *plan)
{
    plan->containers[0].count = 1;
}
static void
beyond(struct sl_packing_plan *plan)
{
    plan->containers[1].first = INT32_MAX;
}
static void
task_zero(struct sl_packing_plan *plan)
{
    plan->instances[0].task = 0;
}
static void
task_twice(struct sl_packing_plan *plan)
{
    plan->instances[2].task = 1;
}
static void
index_twice(struct sl_packing_plan *plan)
{
    plan->instances[1].index = 0;
}
static void
index_below(struct sl_packing_plan *plan)
{
    plan->instances[1].index = -1;
}
static void
component(struct sl_packing_plan *plan)
{
    plan->instances[1].component = 2;
}
static void
cpu_nan(struct sl_packing_plan *plan)
{
    plan->instances[1].cpu = 0.0 / 0.0;
}
static void
ram_below(struct sl_packing_plan *plan)
{
    plan->containers[0].ram_bytes = -1;
}
static void
nothing(struct sl_packing_plan *plan)
{
    plan->container_count = 0;
}

static void
sparse_twice(struct sl_packing_plan *plan)
{
    plan->instances[0].task = SL_PACKING_ID_MAX;
    plan->instances[2].task = SL_PACKING_ID_MAX;
}

static void
test_faults_are_named(void **state)
{
    (void)state;
    static const struct fault faults[] = {
        {id_zero, "container 0: the id must be in 1..2000000000"},
        {id_twice, "container 1: the id is used twice"},
        {id_huge, "the id must be in"},
        {no_instances, "container 2: no instances"},
        {shared, "share instances"},
        {left_out, "share instances or leave some out"},
        {beyond, "container 2: no instances"},
        {task_zero, "task 0: the task must be in"},
        {task_twice, "task 1 is there twice"},
        {sparse_twice, "task 2000000000 is there twice"},
        {index_twice, "component number 0: index 0 is there twice"},
        {index_below, "the index -1 must be in"},
        {component, "task 2: unknown component"},
        {cpu_nan, "task 2: resources out of range"},
        {ram_below, "container 1: resources out of range"},
        {nothing, "the plan has no containers"},
    };
    struct fixture fixture;
    fixture_create(&fixture, 2, 1);
    for (size_t i = 0; i < array_size(faults); i++) {
        struct sl_packing_plan *plan = fixture_parse(&fixture, PLAN);
        assert_int_equal(sl_packing_plan_check(plan, 2), 0);
        faults[i].apply(plan);
        assert_int_equal(sl_packing_plan_check(plan, 2), SL_EINVAL);
        if (strstr(sl_err_last()->msg, faults[i].message) == NULL) {
            fail_msg("'%s' does not hold '%s'", sl_err_last()->msg, faults[i].message);
        }
        sl_packing_plan_free(plan);
    }
}

static void
test_sort_puts_ids_and_tasks_into_order(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_create(&fixture, 2, 1);
    struct sl_packing_plan *plan = fixture_parse(&fixture, "9[S1#4 B0#2] 3[S0#7]");
    sl_packing_plan_sort(plan);
    assert_string_equal(fixture_text(&fixture, plan, true), "3[S0#7] 9[B0#2 S1#4]");
    sl_packing_plan_free(plan);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_faults_are_named),
    cmocka_unit_test(test_sort_puts_ids_and_tasks_into_order),
};

UNIT_MAIN(tests)
