/* Arguments of the packing ABI are checked, not trusted. labels: short */
#include "unit.h"

#include "abi/abi.h"
#include "base/err.h"

static struct sl_packing_component components[] = {{"a", SL_PACKING_BOLT, 2, -1, -1, -1}};

static struct sl_packing_request
request_of_two(void)
{
    struct sl_packing_request request = {
        .components = components, .component_count = 1, .containers = SL_PACKING_UNSET};
    request.config = (struct sl_packing_config){-1, -1, -1, -1, -1, -1, -1, -1, 0};
    return request;
}

static void
test_pack_gives_a_plan(void **state)
{
    (void)state;
    struct sl_packing_request request = request_of_two();
    struct sl_packing_plan *plan;
    assert_int_equal(sl_abi_packing_pack(SL_PACKING_ROUND_ROBIN, &request, &plan), 0);
    assert_int_equal(plan->container_count, 1);
    assert_int_equal(plan->instance_count, 2);
    struct sl_packing_delta *delta;
    assert_int_equal(sl_abi_packing_delta_new(plan, plan, 1, &delta), 0);
    assert_int_equal(delta->kept, 2);
    sl_abi_packing_delta_free(delta);
    assert_int_equal(sl_abi_packing_delta_new(plan, plan, 0, &delta), SL_EINVAL);
    sl_abi_packing_plan_free(plan);
}

static void
test_nothing_is_an_error(void **state)
{
    (void)state;
    struct sl_packing_request request = request_of_two();
    struct sl_packing_plan *plan;
    assert_int_equal(sl_abi_packing_pack(0, NULL, &plan), SL_EINVAL);
    assert_int_equal(sl_abi_packing_pack(0, &request, NULL), SL_EINVAL);
    assert_int_equal(sl_abi_packing_pack(9, &request, &plan), SL_EINVAL);
    assert_null(plan);
    assert_int_equal(sl_abi_packing_delta_new(NULL, NULL, 1, NULL), SL_EINVAL);
    sl_abi_packing_plan_free(NULL);
    sl_abi_packing_delta_free(NULL);
    assert_string_equal(sl_abi_packing_packer_name(2), "resource_compliant_rr");
    assert_null(sl_abi_packing_packer_name(3));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_pack_gives_a_plan),
    cmocka_unit_test(test_nothing_is_an_error),
};

UNIT_MAIN(tests)
