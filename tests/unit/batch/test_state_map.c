// labels: short
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/random.h"
#include "batch/state_map.h"
#include "unit.h"

enum { KEYS = 300 };

/* The naive map. */
struct oracle {
    bool is_set[KEYS];
    double value[KEYS];
    int64_t time[KEYS];
    size_t count;
};

static struct sl_keyed_key
key_of(int number, char *text)
{
    /* Half of the keys are numbers, the others strings inside and outside the entry. */
    if (number % 2 == 0) {
        return sl_keyed_key_number(number);
    }
    int len = snprintf(text, 64, number % 3 == 0 ? "k%d" : "a-longer-key-of-number-%d", number);
    return sl_keyed_key_string(text, (uint32_t)len);
}

static void
check_equal(const struct sl_state_map *map, const struct oracle *oracle)
{
    char text[64];
    assert_int_equal(sl_state_map_size(map), oracle->count);
    for (int i = 0; i < KEYS; i++) {
        struct sl_keyed_key key = key_of(i, text);
        struct sl_value value;
        int64_t time = 0;
        assert_int_equal(sl_state_map_get(map, &key, &value, &time), oracle->is_set[i]);
        if (oracle->is_set[i]) {
            assert_int_equal(time, oracle->time[i]);
            assert_true(value.tag == SL_VALUE_NUMBER && value.number == oracle->value[i]);
        }
    }
    size_t seen = 0;
    struct sl_keyed_iter iter = {0};
    struct sl_value key;
    struct sl_value value;
    int64_t time = 0;
    while (sl_state_map_next(map, &iter, &key, &value, &time)) {
        seen++;
    }
    assert_int_equal(seen, oracle->count);
}

/* T70: what is older than the threshold, and nothing else, oldest first. */
static void
expire(struct sl_state_map *map, struct oracle *oracle, int64_t threshold)
{
    int64_t last = INT64_MIN;
    struct sl_value key;
    struct sl_value value;
    int64_t time = 0;
    while (sl_state_map_expired(map, threshold, &key, &value, &time)) {
        assert_true(time < threshold && time >= last);
        last = time;
        struct sl_keyed_key made;
        assert_int_equal(sl_keyed_key_of(&key, &made), 0);
        assert_true(sl_state_map_remove(map, &made));
        assert_true(oracle->count > 0);
        oracle->count--;
    }
    for (int i = 0; i < KEYS; i++) {
        oracle->is_set[i] = oracle->is_set[i] && oracle->time[i] >= threshold;
    }
}

static void
test_T70_it_agrees_with_a_naive_map(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 3);
    struct sl_state_map map;
    struct oracle oracle = {0};
    assert_int_equal(sl_state_map_create(&map), 0);
    for (int step = 0; step < 15000; step++) {
        char text[64];
        int number = (int)sl_random_below(&random, KEYS);
        struct sl_keyed_key key = key_of(number, text);
        uint64_t choice = sl_random_below(&random, 100);
        if (choice < 70) {
            /* Times mostly grow. */
            int64_t time = step / 10 - (choice < 5 ? (int64_t)sl_random_below(&random, 500) : 0);
            struct sl_value value = sl_value_number((double)step);
            assert_int_equal(sl_state_map_put(&map, &key, &value, time), 0);
            oracle.count += !oracle.is_set[number];
            oracle.is_set[number] = true;
            oracle.value[number] = step;
            oracle.time[number] = time;
        } else if (choice < 98) {
            assert_int_equal(sl_state_map_remove(&map, &key), oracle.is_set[number]);
            oracle.count -= oracle.is_set[number];
            oracle.is_set[number] = false;
        } else if (step > 5000) {
            expire(&map, &oracle, step / 10 - (int64_t)sl_random_below(&random, 50));
        }
        if (step % 1000 == 0) {
            check_equal(&map, &oracle);
        }
    }
    check_equal(&map, &oracle);
    sl_state_map_destroy(&map);
}

static void
test_T70_the_threshold_is_strict(void **state)
{
    (void)state;
    struct sl_state_map map;
    assert_int_equal(sl_state_map_create(&map), 0);
    struct sl_keyed_key key = sl_keyed_key_string("k", 1);
    struct sl_value value = sl_value_number(123);
    assert_int_equal(sl_state_map_put(&map, &key, &value, 1000), 0);
    struct sl_value found;
    int64_t time = 0;
    assert_false(sl_state_map_expired(&map, 1000, &found, &value, &time));
    assert_true(sl_state_map_expired(&map, 1001, &found, &value, &time));
    assert_int_equal(time, 1000);
    assert_true(value.number == 123 && found.len == 1 && found.ptr[0] == 'k');
    /* It comes again until something happens to it. */
    assert_true(sl_state_map_expired(&map, 1001, &found, &value, &time));
    assert_int_equal(sl_state_map_put(&map, &key, &value, 2000), 0);
    assert_false(sl_state_map_expired(&map, 2000, &found, &value, &time));
    sl_state_map_destroy(&map);
}

static void
test_values_of_all_kinds_come_back(void **state)
{
    (void)state;
    static const uint8_t list[] = {SL_VALUE_TABLE, 1, 0, 0, 0, SL_VALUE_TRUE};
    struct sl_value table = {.ptr = list, .len = sizeof(list), .tag = SL_VALUE_TABLE};
    const struct sl_value values[] = {
        sl_value_number(-1.5),     sl_value_i64(INT64_MIN),
        sl_value_u64(UINT64_MAX),  sl_value_string("", 0),
        sl_value_string("abc", 3), sl_value_bool(true),
        {.tag = SL_VALUE_NIL},     table,
        sl_value_string("abd", 3),
    };
    struct sl_state_map map;
    assert_int_equal(sl_state_map_create(&map), 0);
    struct sl_keyed_key key = sl_keyed_key_number(7);
    for (size_t i = 0; i < array_size(values); i++) {
        assert_int_equal(sl_state_map_put(&map, &key, &values[i], (int64_t)i), 0);
        struct sl_value found;
        int64_t time = -1;
        assert_true(sl_state_map_get(&map, &key, &found, &time));
        struct sl_buf wanted = {0};
        struct sl_buf got = {0};
        sl_value_write(&wanted, &values[i]);
        sl_value_write(&got, &found);
        assert_int_equal(wanted.size, got.size);
        assert_memory_equal(wanted.data, got.data, got.size);
        assert_int_equal(time, i);
        sl_buf_destroy(&wanted);
        sl_buf_destroy(&got);
        /* The value that was read may be put again. */
        assert_int_equal(sl_state_map_put(&map, &key, &found, (int64_t)i), 0);
    }
    assert_int_equal(sl_state_map_size(&map), 1);
    sl_state_map_destroy(&map);
}

static void
fill(struct sl_state_map *map, int from, int to)
{
    for (int i = from; i < to; i++) {
        char text[64];
        int len = snprintf(text, sizeof(text), "key-%d", i);
        struct sl_keyed_key key = sl_keyed_key_string(text, (uint32_t)len);
        struct sl_value value = sl_value_number(i);
        assert_int_equal(sl_state_map_put(map, &key, &value, i % 100), 0);
    }
}

static void
test_a_saved_map_loads_and_a_damaged_file_changes_nothing(void **state)
{
    (void)state;
    char folder[256];
    char path[300];
    unit_folder_new(folder, sizeof(folder));
    snprintf(path, sizeof(path), "%s/map", folder);
    struct sl_state_map map;
    assert_int_equal(sl_state_map_create(&map), 0);
    fill(&map, 0, 5000);
    assert_int_equal(sl_state_map_save(&map, path), 0);
    struct sl_state_map loaded;
    assert_int_equal(sl_state_map_create(&loaded), 0);
    assert_int_equal(sl_state_map_load(&loaded, path), 0);
    assert_int_equal(sl_state_map_size(&loaded), 5000);
    struct sl_keyed_key key = sl_keyed_key_string("key-4242", 8);
    struct sl_value value;
    int64_t time = 0;
    assert_true(sl_state_map_get(&loaded, &key, &value, &time));
    assert_true(value.number == 4242 && time == 42);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    struct sl_random random;
    sl_random_seed(&random, 5);
    sl_state_map_clear(&loaded);
    for (int i = 0; i < 20; i++) {
        off_t cut = (off_t)sl_random_below(&random, (uint64_t)info.st_size);
        assert_int_equal(sl_state_map_save(&map, path), 0);
        assert_int_equal(truncate(path, cut), 0);
        assert_int_equal(sl_state_map_load(&loaded, path), SL_EPROTO);
        assert_int_equal(sl_state_map_size(&loaded), 0);
    }
    for (int i = 0; i < 20; i++) {
        off_t at = (off_t)sl_random_below(&random, (uint64_t)info.st_size);
        assert_int_equal(sl_state_map_save(&map, path), 0);
        FILE *file = fopen(path, "r+");
        assert_non_null(file);
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        int byte = fgetc(file);
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        assert_int_equal(fputc(byte ^ 0x10, file), byte ^ 0x10);
        fclose(file);
        assert_int_equal(sl_state_map_load(&loaded, path), SL_EPROTO);
        assert_int_equal(sl_state_map_size(&loaded), 0);
    }
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(sl_state_map_load(&loaded, path), SL_ENOTFOUND);
    sl_state_map_destroy(&loaded);
    sl_state_map_destroy(&map);
}

static void
test_an_entry_takes_less_than_100_bytes(void **state)
{
    (void)state;
    struct sl_state_map map;
    struct sl_value key;
    struct sl_value value;
    int64_t time = 0;
    assert_int_equal(sl_state_map_create(&map), 0);
    assert_false(sl_state_map_expired(&map, 0, &key, &value, &time));
    for (int i = 0; i < 60000; i++) {
        struct sl_keyed_key made = sl_keyed_key_number(i);
        value = sl_value_number(i);
        assert_int_equal(sl_state_map_put(&map, &made, &value, i), 0);
        if (i > 20000 && i % 1000 == 0) {
            assert_true(sl_state_map_memory(&map) < 100 * sl_state_map_size(&map));
        }
    }
    sl_state_map_destroy(&map);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_T70_it_agrees_with_a_naive_map),
        cmocka_unit_test(test_T70_the_threshold_is_strict),
        cmocka_unit_test(test_values_of_all_kinds_come_back),
        cmocka_unit_test(test_a_saved_map_loads_and_a_damaged_file_changes_nothing),
        cmocka_unit_test(test_an_entry_takes_less_than_100_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
