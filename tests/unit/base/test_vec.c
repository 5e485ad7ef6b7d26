#include "base/random.h"
#include "base/vec.h"
#include "unit.h"

struct names SL_VEC_BODY(const char *);

static void
test_push_pop_last(void **state)
{
    (void)state;
    SL_VEC(int) vec = SL_VEC_INIT;
    for (int i = 0; i < 1000; i++) {
        sl_vec_push(&vec, i * 3);
    }
    assert_int_equal(vec.count, 1000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(vec.items[i], i * 3);
    }
    sl_vec_last(&vec) = 5;
    assert_int_equal(sl_vec_pop(&vec), 5);
    assert_int_equal(sl_vec_pop(&vec), 998 * 3);
    assert_int_equal(vec.count, 998);
    *sl_vec_add(&vec) = 77;
    assert_int_equal(sl_vec_last(&vec), 77);
    sl_vec_clear(&vec);
    assert_int_equal(vec.count, 0);
    sl_vec_destroy(&vec);
    assert_null(vec.items);
}

static void
test_insert_and_remove_against_a_plain_array(void **state)
{
    (void)state;
    enum { MAX = 200 };
    int model[MAX];
    size_t count = 0;
    SL_VEC(int) vec = SL_VEC_INIT;
    struct sl_random random;
    sl_random_seed(&random, 5);
    for (int step = 0; step < 5000; step++) {
        size_t at = (size_t)sl_random_below(&random, count + 1);
        if (count < MAX && (count == 0 || sl_random_below(&random, 2) == 0)) {
            memmove(&model[at + 1 < MAX ? at + 1 : at], &model[at], (count - at) * sizeof(int));
            model[at] = step;
            count++;
            sl_vec_insert(&vec, at, step);
        } else {
            at = at % count;
            if (sl_random_below(&random, 2) == 0) {
                memmove(&model[at], &model[at + 1], (count - at - 1) * sizeof(int));
                sl_vec_remove(&vec, at);
            } else {
                model[at] = model[count - 1];
                sl_vec_remove_swap(&vec, at);
            }
            count--;
        }
        assert_int_equal(vec.count, count);
        if (count > 0) {
            assert_memory_equal(vec.items, model, count * sizeof(int));
        }
    }
    sl_vec_destroy(&vec);
}

static void
test_named_vector_in_a_struct(void **state)
{
    (void)state;
    struct names names;
    sl_vec_create(&names);
    sl_vec_reserve(&names, 100);
    assert_true(names.capacity >= 100);
    sl_vec_push(&names, "a");
    assert_string_equal(names.items[0], "a");
    sl_vec_destroy(&names);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_push_pop_last),
    cmocka_unit_test(test_insert_and_remove_against_a_plain_array),
    cmocka_unit_test(test_named_vector_in_a_struct),
};

UNIT_MAIN(tests)
