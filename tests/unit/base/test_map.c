#include "base/map.h"
#include "base/random.h"
#include "unit.h"

/* A naive map in order of insertion: what both maps must behave like. */
enum { MODEL_KEYS = 300 };
struct model {
    int order[MODEL_KEYS];
    int count;
    uint64_t values[MODEL_KEYS];
};

static int
model_position(const struct model *model, int key)
{
    for (int i = 0; i < model->count; i++) {
        if (model->order[i] == key) {
            return i;
        }
    }
    return -1;
}

static bool
model_put(struct model *model, int key, uint64_t value)
{
    model->values[key] = value;
    if (model_position(model, key) >= 0) {
        return false;
    }
    model->order[model->count++] = key;
    return true;
}

static bool
model_remove(struct model *model, int key)
{
    int at = model_position(model, key);
    if (at < 0) {
        return false;
    }
    model->count--;
    memmove(&model->order[at], &model->order[at + 1], (size_t)(model->count - at) * sizeof(int));
    return true;
}

static uint64_t
u64_key(int key)
{
    /* Multiples of a power of two, and 0, are keys that a weak hash would pile up. */
    return (uint64_t)key << 32;
}

static void
check_u64_against_model(const struct sl_map_u64 *map, const struct model *model)
{
    assert_int_equal(map->count, model->count);
    size_t at = 0;
    for (int i = 0; i < model->count; i++) {
        struct sl_map_u64_entry *entry = sl_map_u64_next(map, &at);
        assert_non_null(entry);
        assert_true(entry->key == u64_key(model->order[i]));
        assert_true(entry->value == model->values[model->order[i]]);
    }
    assert_null(sl_map_u64_next(map, &at));
}

static void
test_u64_against_a_naive_map(void **state)
{
    (void)state;
    struct sl_map_u64 map = {0};
    struct model model = {.count = 0};
    struct sl_random random;
    sl_random_seed(&random, 11);
    for (uint64_t step = 0; step < 20000; step++) {
        int key = (int)sl_random_below(&random, MODEL_KEYS);
        uint64_t value = 0;
        switch (sl_random_below(&random, 5)) {
        case 0:
        case 1:
            assert_int_equal(sl_map_u64_put(&map, u64_key(key), step),
                             model_put(&model, key, step));
            break;
        case 2:
        case 3:
            assert_int_equal(sl_map_u64_remove(&map, u64_key(key), &value),
                             model_remove(&model, key));
            break;
        default:
            assert_int_equal(sl_map_u64_get(&map, u64_key(key), &value),
                             model_position(&model, key) >= 0);
            if (model_position(&model, key) >= 0) {
                assert_true(value == model.values[key]);
            }
        }
        if (step % 500 == 0) {
            check_u64_against_model(&map, &model);
        }
    }
    /* Thousands of removals must not have blown it up: holes are squeezed out. */
    assert_true(map.index_size <= 2048);
    sl_map_u64_clear(&map);
    assert_int_equal(map.count, 0);
    assert_null(sl_map_u64_find(&map, u64_key(1)));
    sl_map_u64_put(&map, 9, 9);
    assert_int_equal(map.count, 1);
    sl_map_u64_destroy(&map);
}

static void
test_u64_pointers_and_removal_while_iterating(void **state)
{
    (void)state;
    struct sl_map_u64 map;
    sl_map_u64_create(&map);
    int items[100];
    for (uint64_t i = 0; i < 100; i++) {
        assert_true(sl_map_u64_put_ptr(&map, i, &items[i]));
    }
    struct sl_map_u64_entry *entry;
    uint64_t expected = 0;
    for (size_t at = 0; (entry = sl_map_u64_next(&map, &at)) != NULL; expected++) {
        assert_true(entry->key == expected);
        if (expected % 3 != 0) {
            assert_ptr_equal(sl_map_u64_remove_ptr(&map, expected), &items[expected]);
        }
    }
    assert_int_equal(expected, 100);
    assert_int_equal(map.count, 34);
    assert_ptr_equal(sl_map_u64_get_ptr(&map, 99), &items[99]);
    assert_null(sl_map_u64_get_ptr(&map, 98));
    assert_null(sl_map_u64_remove_ptr(&map, 98));
    *sl_map_u64_find(&map, 99) = 0;
    assert_null(sl_map_u64_get_ptr(&map, 99));
    sl_map_u64_destroy(&map);
}

static size_t
bytes_key(int key, char text[64])
{
    /* Every length from 0 on, and keys that are prefixes of others. */
    size_t length = (size_t)key / 8;
    memset(text, 'k', length);
    if (length > 0) {
        text[length - 1] = (char)(key % 8);
    }
    return length;
}

static void
test_bytes_against_a_naive_map(void **state)
{
    (void)state;
    struct sl_map_bytes map = {0};
    struct model model = {.count = 0};
    struct sl_random random;
    sl_random_seed(&random, 12);
    char text[64];
    for (uintptr_t step = 1; step < 20000; step++) {
        int key = 8 + (int)sl_random_below(&random, MODEL_KEYS - 8);
        size_t length = bytes_key(key, text);
        if (sl_random_below(&random, 2) == 0) {
            assert_int_equal(sl_map_bytes_put(&map, text, length, (void *)step),
                             model_put(&model, key, step));
        } else {
            assert_int_equal(sl_map_bytes_remove(&map, text, length, NULL),
                             model_remove(&model, key));
        }
        if (step % 500 != 0) {
            continue;
        }
        size_t at = 0;
        for (int i = 0; i < model.count; i++) {
            struct sl_map_bytes_entry *entry = sl_map_bytes_next(&map, &at);
            size_t expected = bytes_key(model.order[i], text);
            assert_non_null(entry);
            assert_int_equal(entry->key_len, expected);
            assert_memory_equal(entry->key, text, expected);
            assert_int_equal(entry->key[expected], 0);
            assert_int_equal((uintptr_t)entry->value, model.values[model.order[i]]);
            assert_ptr_equal(sl_map_bytes_find(&map, text, expected), entry);
        }
        assert_null(sl_map_bytes_next(&map, &at));
    }
    sl_map_bytes_destroy(&map);
}

static void
test_bytes_texts_and_the_empty_key(void **state)
{
    (void)state;
    struct sl_map_bytes map;
    sl_map_bytes_create(&map);
    int a;
    int b;
    assert_null(sl_map_bytes_get_str(&map, "a"));
    assert_true(sl_map_bytes_put_str(&map, "a", &a));
    assert_false(sl_map_bytes_put_str(&map, "a", &b));
    assert_true(sl_map_bytes_put(&map, NULL, 0, &a));
    assert_ptr_equal(sl_map_bytes_get_str(&map, "a"), &b);
    assert_ptr_equal(sl_map_bytes_get_str(&map, ""), &a);
    assert_ptr_equal(sl_map_bytes_remove_str(&map, "a"), &b);
    assert_null(sl_map_bytes_remove_str(&map, "a"));
    assert_int_equal(map.count, 1);
    sl_map_bytes_clear(&map);
    assert_null(sl_map_bytes_get_str(&map, ""));
    sl_map_bytes_destroy(&map);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_u64_against_a_naive_map),
    cmocka_unit_test(test_u64_pointers_and_removal_while_iterating),
    cmocka_unit_test(test_bytes_against_a_naive_map),
    cmocka_unit_test(test_bytes_texts_and_the_empty_key),
};

UNIT_MAIN(tests)
