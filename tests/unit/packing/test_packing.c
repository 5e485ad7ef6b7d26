/* Random requests: what every plan keeps, and the naive rules as oracle. labels: short */
#include "packing/fixture.h"
#include "packing/naive.h"

static int32_t
below(struct sl_random *random, int32_t bound)
{
    return (int32_t)sl_random_below(random, (uint64_t)bound);
}

static bool
chance(struct sl_random *random, int32_t percent)
{
    return below(random, 100) < percent;
}

static const char *const NAMES[] = {"A", "B", "C", "D", "E", "F"};

static void
random_request(struct sl_random *random, struct fixture *fixture)
{
    fixture_create(fixture, 1, 1);
    int32_t components = 1 + below(random, (int32_t)array_size(NAMES));
    fixture->request.component_count = components;
    for (int32_t c = 0; c < components; c++) {
        struct sl_packing_component *component = &fixture->components[c];
        *component =
            fixture_component(NAMES[c], chance(random, 40) ? SL_PACKING_SPOUT : SL_PACKING_BOLT,
                              1 + below(random, chance(random, 20) ? 60 : 8));
        component->cpu = chance(random, 50) ? -1 : 0.1 * (1 + below(random, 25));
        component->ram_bytes = chance(random, 50) ? -1 : 256 * SL_MIB * (1 + below(random, 9));
        component->disk_bytes = chance(random, 70) ? -1 : 512 * SL_MIB * below(random, 5);
    }
    struct sl_packing_config *config = &fixture->request.config;
    config->max_instances = 2 + below(random, 9);
    config->containers = chance(random, 50) ? -1 : 1 + below(random, 9);
    config->container_cpu = chance(random, 50) ? -1 : 2 + 0.5 * below(random, 30);
    config->container_ram_bytes = chance(random, 50) ? -1 : (2 + below(random, 20)) * SL_GIB;
    config->container_disk_bytes = chance(random, 70) ? -1 : (2 + below(random, 20)) * SL_GIB;
    config->padding_percentage = chance(random, 60) ? -1 : below(random, 40);
    config->cpu_padding = chance(random, 80) ? -1 : 0.25 * below(random, 6);
    config->sorting = SL_PACKING_RAM_FIRST;
    fixture->request.containers = chance(random, 70) ? -1 : 1 + below(random, 14);
}

static void
random_changes(struct sl_random *random, struct fixture *fixture, const int32_t *counts)
{
    for (int32_t c = 0; c < fixture->request.component_count; c++) {
        int32_t change = 0;
        if (chance(random, 60)) {
            change = chance(random, 50) ? 1 + below(random, 12) : -below(random, counts[c] + 1);
        }
        fixture->changes[c] = change;
    }
    fixture->request.changes = fixture->changes;
}

/* Padding and capacity hold in every container that the packer filled itself. */
static void
check_capacity(const struct fixture *fixture, const struct sl_packing_plan *plan, int packer)
{
    struct sl_packing_limits limits = sl_packing_limits_of(&fixture->request.config, packer);
    for (int32_t k = 0; k < plan->container_count; k++) {
        const struct sl_packing_container *container = &plan->containers[k];
        struct sl_resource used = limits.padding;
        for (int32_t i = 0; i < container->count; i++) {
            const struct sl_packing_instance *instance = &plan->instances[container->first + i];
            used = sl_resource_sum(used,
                                   (struct sl_resource){sl_cpu_nano(instance->cpu),
                                                        instance->ram_bytes, instance->disk_bytes});
        }
        assert_true(sl_resource_fits(used, limits.capacity));
        assert_true(container->count <= limits.max_instances);
        assert_int_equal(container->ram_bytes, used.ram_bytes);
        assert_int_equal(container->disk_bytes, used.disk_bytes);
    }
}

static void
assert_same(const struct fixture *fixture, const struct sl_packing_plan *plan,
            const struct sl_packing_plan *naive, int round)
{
    char *expected = sl_strdup(naive != NULL ? fixture_text(fixture, naive, true) : "refused");
    const char *text = plan != NULL ? fixture_text(fixture, plan, true) : "refused";
    if (strcmp(text, expected) != 0) {
        fail_msg("round %d\n%s\ninstead of\n%s\n%s", round, text, expected, sl_err_last()->msg);
    }
    sl_free(expected);
}

static void
count_instances(const struct sl_packing_plan *plan, int32_t *counts)
{
    memset(counts, 0, sizeof(int32_t) * FIXTURE_COMPONENTS_MAX);
    for (int32_t i = 0; i < plan->instance_count; i++) {
        counts[plan->instances[i].component]++;
    }
}

/* What stays, stays where it is, unless a container count was asked for. */
static void
check_sticky(const struct sl_packing_plan *current, const struct sl_packing_plan *plan,
             int32_t components)
{
    struct sl_packing_delta *delta;
    assert_int_equal(sl_packing_delta_new(current, plan, components, &delta), 0);
    assert_int_equal(delta->moved, 0);
    sl_packing_delta_free(delta);
}

/* Packs, then repacks three times; returns how many plans there were. */
static int
run_round(struct sl_random *random, int packer, int round)
{
    struct fixture fixture;
    int plans = 0;
    random_request(random, &fixture);
    struct sl_packing_plan *plan;
    sl_packing_pack(packer, &fixture.request, &plan);
    struct sl_packing_plan *naive = naive_pack(&fixture, packer);
    assert_same(&fixture, plan, naive, round);
    sl_packing_plan_free(naive);
    if (plan != NULL) {
        check_capacity(&fixture, plan, packer);
    }
    for (int step = 0; plan != NULL && step < 3; step++) {
        plans++;
        int32_t wanted[FIXTURE_COMPONENTS_MAX];
        count_instances(plan, wanted);
        random_changes(random, &fixture, wanted);
        fixture.request.containers = chance(random, 70) ? -1 : 1 + below(random, 14);
        if (chance(random, 20)) {
            fixture.request.config.container_ram_bytes = (2 + below(random, 20)) * SL_GIB;
        }
        struct sl_packing_plan *current = plan;
        fixture.request.current = current;
        sl_packing_pack(packer, &fixture.request, &plan);
        naive = naive_pack(&fixture, packer);
        assert_same(&fixture, plan, naive, round);
        sl_packing_plan_free(naive);
        if (plan != NULL) {
            for (int32_t c = 0; c < fixture.request.component_count; c++) {
                wanted[c] += fixture.changes[c];
            }
            fixture_check(&fixture, plan, wanted);
            if (fixture.request.containers >= 0) {
                assert_int_equal(plan->container_count, fixture.request.containers);
            } else {
                check_sticky(current, plan, fixture.request.component_count);
            }
        }
        sl_packing_plan_free(current);
    }
    sl_packing_plan_free(plan);
    return plans;
}

static void
run_rounds(int packer, uint64_t seed)
{
    struct sl_random random;
    sl_random_seed(&random, seed);
    int plans = 0;
    for (int round = 0; round < 1500; round++) {
        plans += run_round(&random, packer, round);
    }
    /* The requests are not so hard that refusals are all that is compared. */
    assert_true(plans > 1500);
}

static void
test_first_fit_decreasing_equals_the_naive_rule(void **state)
{
    (void)state;
    run_rounds(SL_PACKING_FIRST_FIT_DECREASING, 11);
}

static void
test_resource_compliant_rr_equals_the_naive_rule(void **state)
{
    (void)state;
    run_rounds(SL_PACKING_RESOURCE_COMPLIANT_RR, 12);
}

static void
test_round_robin_keeps_its_invariants(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 13);
    int plans = 0;
    for (int round = 0; round < 3000; round++) {
        struct fixture fixture;
        random_request(&random, &fixture);
        struct sl_packing_plan *plan;
        int rc = sl_packing_pack(SL_PACKING_ROUND_ROBIN, &fixture.request, &plan);
        if (rc != 0) {
            assert_int_equal(rc, SL_EUNSATISFIABLE);
            continue;
        }
        plans++;
        int32_t wanted[FIXTURE_COMPONENTS_MAX];
        for (int32_t c = 0; c < fixture.request.component_count; c++) {
            wanted[c] = fixture.components[c].parallelism;
        }
        fixture_check(&fixture, plan, wanted);
        const struct sl_packing_config *config = &fixture.request.config;
        int32_t asked = fixture.request.containers >= 0 ? fixture.request.containers
                        : config->containers >= 0       ? config->containers
                                                        : 1;
        assert_int_equal(plan->container_count, asked);
        for (int32_t k = 0; k < plan->container_count; k++) {
            const struct sl_packing_container *container = &plan->containers[k];
            assert_int_equal(container->id, k + 1);
            assert_true(plan->containers[0].count - container->count <= 1);
            int64_t ram = 0;
            double cpu = 0;
            for (int32_t i = 0; i < container->count; i++) {
                ram += plan->instances[container->first + i].ram_bytes;
                cpu += plan->instances[container->first + i].cpu;
            }
            assert_true(ram <= container->ram_bytes);
            assert_true(cpu <= container->cpu + 1e-6);
            assert_true(config->container_ram_bytes < 0 ||
                        container->ram_bytes <= config->container_ram_bytes);
        }
        sl_packing_plan_free(plan);
    }
    assert_true(plans > 500);
}

static void
test_malformed_requests_are_errors(void **state)
{
    (void)state;
    struct fixture fixture;
    struct sl_packing_plan *plan;
    fixture_create(&fixture, 1, 1);
    assert_int_equal(sl_packing_pack(7, &fixture.request, &plan), SL_EINVAL);
    fixture.request.component_count = 0;
    assert_int_equal(sl_packing_pack(0, &fixture.request, &plan), SL_EINVAL);
    fixture_create(&fixture, 0, 1);
    fixture_refuse(&fixture, SL_PACKING_ROUND_ROBIN, "'S': instances: need at least 1");
    fixture_create(&fixture, SL_PACKING_INSTANCES_MAX, 1);
    assert_int_equal(sl_packing_pack(0, &fixture.request, &plan), SL_ELIMIT);
    fixture_create(&fixture, 1, 1);
    fixture.components[0].cpu = 1e300;
    assert_int_equal(sl_packing_pack(0, &fixture.request, &plan), SL_ERANGE);
    fixture_create(&fixture, 1, 1);
    fixture.request.config.padding_percentage = 0.0 / 0.0;
    assert_int_equal(sl_packing_pack(0, &fixture.request, &plan), SL_ERANGE);
    fixture_create(&fixture, 1, 1);
    fixture.request.config.max_instances = 0;
    assert_int_equal(sl_packing_pack(1, &fixture.request, &plan), SL_EUNSATISFIABLE);
}

static void
test_extreme_amounts_do_not_wrap_around(void **state)
{
    (void)state;
    for (int packer = 0; packer < 3; packer++) {
        struct fixture fixture;
        fixture_create(&fixture, 5000, 3);
        fixture.components[0].ram_bytes = INT64_C(1) << 53;
        fixture.components[0].disk_bytes = INT64_C(1) << 53;
        fixture.components[0].cpu = SL_PACKING_CPU_MAX;
        struct sl_packing_plan *plan;
        assert_int_equal(sl_packing_pack(packer, &fixture.request, &plan), SL_EUNSATISFIABLE);
        sl_packing_plan_free(plan);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_first_fit_decreasing_equals_the_naive_rule),
    cmocka_unit_test(test_resource_compliant_rr_equals_the_naive_rule),
    cmocka_unit_test(test_round_robin_keeps_its_invariants),
    cmocka_unit_test(test_malformed_requests_are_errors),
    cmocka_unit_test(test_extreme_amounts_do_not_wrap_around),
};

UNIT_MAIN(tests)
