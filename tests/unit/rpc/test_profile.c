#include "rpc/profile.h"

#include "unit.h"

static void
test_fits_table(void **state)
{
    (void)state;
    struct sl_profile any = sl_profile_any();
    struct sl_profile unknown = sl_profile_unknown();
    struct sl_profile one = sl_profile_set(1, 100, 10);
    struct sl_profile two = sl_profile_set(2, 200, 20);
    struct sl_profile mixed = sl_profile_set(2, 50, 20);
    struct sl_profile gpu = two;
    struct sl_profile small_gpu = one;
    assert_true(sl_profile_add_extra(&gpu, "gpu", 1));
    assert_true(sl_profile_add_extra(&small_gpu, "gpu", 2));
    const struct {
        const struct sl_profile *slot;
        const struct sl_profile *request;
        bool fits;
    } ROWS[] = {
        {&any, &one, true},         {&any, &unknown, true},  {&any, &any, true},
        {&unknown, &unknown, true}, {&unknown, &one, false}, {&one, &unknown, true},
        {&one, &one, true},         {&two, &one, true},      {&one, &two, false},
        {&mixed, &one, false},      {&two, &gpu, false},     {&gpu, &two, true},
        {&gpu, &small_gpu, false},  {&one, &any, false},     {&gpu, &gpu, true},
    };
    for (size_t i = 0; i < array_size(ROWS); i++) {
        assert_int_equal(sl_profile_fits(ROWS[i].slot, ROWS[i].request), ROWS[i].fits);
    }
}

static void
test_equals_looks_at_extras_from_both_sides(void **state)
{
    (void)state;
    struct sl_profile plain = sl_profile_set(1, 1, 1);
    struct sl_profile extra = plain;
    assert_true(sl_profile_equals(&plain, &extra));
    assert_true(sl_profile_add_extra(&extra, "gpu", 1));
    assert_false(sl_profile_equals(&plain, &extra));
    assert_false(sl_profile_equals(&extra, &plain));
}

static void
test_divide_takes_every_dimension(void **state)
{
    (void)state;
    struct sl_profile total = sl_profile_set(8, 1000, 500);
    sl_profile_add_extra(&total, "gpu", 2);
    struct sl_profile share = sl_profile_divide(&total, 4);
    struct sl_profile expected = sl_profile_set(2, 250, 125);
    sl_profile_add_extra(&expected, "gpu", 0.5);
    assert_true(sl_profile_equals(&share, &expected));
}

static void
test_add_extra_has_limits(void **state)
{
    (void)state;
    struct sl_profile profile = sl_profile_set(1, 1, 1);
    assert_false(sl_profile_add_extra(&profile, "a name of more than thirty-one bytes", 1));
    for (int i = 0; i < SL_PROFILE_EXTRAS_MAX; i++) {
        assert_true(sl_profile_add_extra(&profile, "x", 1));
    }
    assert_false(sl_profile_add_extra(&profile, "y", 1));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_fits_table),
    cmocka_unit_test(test_equals_looks_at_extras_from_both_sides),
    cmocka_unit_test(test_divide_takes_every_dimension),
    cmocka_unit_test(test_add_extra_has_limits),
};

UNIT_MAIN(tests)
