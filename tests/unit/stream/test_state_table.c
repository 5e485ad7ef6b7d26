#include "stream/state_table.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/random.h"
#include "state_rig.h"

#include <math.h>

struct model {
    bool present[KEYS];
    struct sl_value values[KEYS];
    uint64_t count;
};

static int
model_index(const struct sl_value *key)
{
    for (int i = 0; i < KEYS; i++) {
        struct sl_keyed_key wanted = key_of(nth_key(i));
        struct sl_keyed_key given = key_of(*key);
        if (wanted.hash == given.hash && wanted.kind == given.kind &&
            (wanted.len > SL_KEYED_INLINE_MAX || wanted.bits == given.bits)) {
            return i;
        }
    }
    fail_msg("a key that was never put");
    return -1;
}

/* Walks the table: each entry once, each with the model's value. */
static void
check_against_model(const struct sl_keyed *table, const struct model *model)
{
    bool seen[KEYS] = {false};
    uint64_t count = 0;
    struct sl_keyed_iter iter = {0};
    struct sl_value key;
    struct sl_value value;
    while (sl_keyed_next(table, &iter, &key, &value)) {
        int index = model_index(&key);
        assert_true(model->present[index]);
        assert_false(seen[index]);
        seen[index] = true;
        assert_true(values_equal(&value, &model->values[index]));
        count++;
    }
    assert_int_equal(count, model->count);
    assert_int_equal(table->count, model->count);
}

static void
step_against_model(struct sl_keyed *table, struct model *model, struct sl_random *random,
                   uint64_t step)
{
    int index = (int)sl_random_below(random, KEYS);
    struct sl_keyed_key key = key_of(nth_key(index));
    struct sl_value value = nth_value(step);
    struct sl_value out;
    bool is_there = model->present[index];
    switch (sl_random_below(random, 5)) {
    case 0:
    case 1:
        assert_int_equal(sl_keyed_put(table, &key, &value), 0);
        break;
    case 2:
        if (is_there && model->values[index].tag != SL_VALUE_NUMBER &&
            model->values[index].tag != SL_VALUE_NIL) {
            return;
        }
        value = sl_value_number(2.5 + (is_there && model->values[index].tag == SL_VALUE_NUMBER
                                           ? model->values[index].number
                                           : 0));
        assert_int_equal(sl_keyed_add(table, &key, 2.5, &out), 0);
        assert_true(values_equal(&out, &value));
        break;
    case 3:
        assert_int_equal(sl_keyed_remove(table, &key), is_there);
        model->count -= is_there;
        model->present[index] = false;
        return;
    default:
        assert_int_equal(sl_keyed_get(table, &key, &out), is_there);
        if (is_there) {
            assert_true(values_equal(&out, &model->values[index]));
        }
        return;
    }
    model->count += !is_there;
    model->present[index] = true;
    model->values[index] = value;
}

static void
test_against_a_naive_map(void **state)
{
    (void)state;
    static const uint32_t group_counts[] = {1, 7, 128};
    for (size_t g = 0; g < array_size(group_counts); g++) {
        struct sl_keyed table;
        struct model model = {.count = 0};
        struct sl_random random;
        sl_random_seed(&random, 61 + g);
        assert_int_equal(sl_keyed_create(&table, group_counts[g], 0), 0);
        uint64_t empty_bytes = table.bytes;
        for (uint64_t step = 0; step < 20000; step++) {
            step_against_model(&table, &model, &random, step);
            if (step % 1000 == 0) {
                check_against_model(&table, &model);
            }
        }
        check_against_model(&table, &model);
        sl_keyed_clear(&table);
        assert_int_equal(table.count, 0);
        assert_int_equal(table.bytes, empty_bytes);
        sl_keyed_destroy(&table);
    }
}

static void
test_numbers_are_one_key_when_equal_by_value(void **state)
{
    (void)state;
    const struct sl_value rows[][3] = {
        {sl_value_number(1), sl_value_i64(1), sl_value_u64(1)},
        {sl_value_number(0), sl_value_number(-0.0), sl_value_i64(0)},
        {sl_value_number(NAN), sl_value_number(-NAN), sl_value_number(NAN)},
        {sl_value_number(0x1p60), sl_value_i64(INT64_C(1) << 60), sl_value_u64(UINT64_C(1) << 60)},
        {sl_value_number(0x1p63), sl_value_u64(UINT64_C(1) << 63), sl_value_number(0x1p63)},
        {sl_value_number(-0x1p63), sl_value_i64(INT64_MIN), sl_value_number(-0x1p63)},
    };
    struct sl_keyed table;
    struct sl_value out;
    assert_int_equal(sl_keyed_create(&table, 128, 0), 0);
    for (size_t r = 0; r < array_size(rows); r++) {
        for (int i = 0; i < 3; i++) {
            struct sl_keyed_key key = key_of(rows[r][i]);
            assert_int_equal(sl_keyed_add(&table, &key, 1, &out), 0);
            assert_true(out.number == i + 1);
        }
        assert_int_equal(table.count, r + 1);
    }
    /* Neighbours that no double tells apart stay two keys; so do a number and its text. */
    struct sl_value others[] = {
        sl_value_i64((INT64_C(1) << 60) + 1),
        sl_value_u64((UINT64_C(1) << 63) + 1),
        sl_value_string("1", 1),
        sl_value_bool(true),
        sl_value_number(INFINITY),
        sl_value_number(-INFINITY),
        sl_value_u64(UINT64_MAX),
        sl_value_number(0x1p64),
        sl_value_i64(INT64_MAX),
    };
    for (size_t i = 0; i < array_size(others); i++) {
        struct sl_keyed_key key = key_of(others[i]);
        assert_false(sl_keyed_get(&table, &key, &out));
        assert_int_equal(sl_keyed_add(&table, &key, 1, &out), 0);
    }
    assert_int_equal(table.count, array_size(rows) + array_size(others));
    sl_keyed_destroy(&table);
}

static void
test_walk_gives_exact_keys_as_numbers(void **state)
{
    (void)state;
    const struct {
        struct sl_value put;
        struct sl_value given;
    } rows[] = {
        {sl_value_i64(5), sl_value_number(5)},
        {sl_value_u64(UINT64_C(1) << 63), sl_value_number(0x1p63)},
        {sl_value_i64((INT64_C(1) << 53) + 1), sl_value_i64((INT64_C(1) << 53) + 1)},
        {sl_value_i64(INT64_MAX), sl_value_i64(INT64_MAX)},
        {sl_value_u64(UINT64_MAX), sl_value_u64(UINT64_MAX)},
        {sl_value_number(-0.0), sl_value_number(0)},
    };
    for (size_t i = 0; i < array_size(rows); i++) {
        struct sl_keyed table;
        struct sl_value key;
        struct sl_value value = sl_value_null();
        struct sl_keyed_iter iter = {0};
        assert_int_equal(sl_keyed_create(&table, 16, 0), 0);
        struct sl_keyed_key put = key_of(rows[i].put);
        assert_int_equal(sl_keyed_put(&table, &put, &value), 0);
        assert_true(sl_keyed_next(&table, &iter, &key, &value));
        assert_true(values_equal(&key, &rows[i].given));
        assert_false(sl_keyed_next(&table, &iter, &key, &value));
        sl_keyed_destroy(&table);
    }
}

/* Hashes are made up: all in group 0, their homes crowded around the end of the table. */
static void
test_crowded_slots_survive_removal_in_any_order(void **state)
{
    (void)state;
    enum { CROWD = 40 };
    struct sl_keyed table;
    struct sl_random random;
    struct sl_value out;
    sl_random_seed(&random, 71);
    for (int round = 0; round < 200; round++) {
        assert_int_equal(sl_keyed_create(&table, 4, 0), 0);
        struct sl_keyed_key keys[CROWD];
        uint8_t order[CROWD];
        for (int i = 0; i < CROWD; i++) {
            uint64_t upper = UINT32_MAX - sl_random_below(&random, UINT32_MAX / 16);
            if (round % 3 == 0) {
                upper = UINT32_MAX;
            }
            keys[i] = (struct sl_keyed_key){upper << 32, (uint64_t)i, 0, SL_KEYED_KEY_INTEGER};
            order[i] = (uint8_t)i;
            assert_int_equal(sl_keyed_add(&table, &keys[i], i, &out), 0);
        }
        sl_random_shuffle(&random, order, CROWD, 1);
        for (int gone = 0; gone < CROWD; gone++) {
            assert_true(sl_keyed_remove(&table, &keys[order[gone]]));
            for (int i = 0; i < CROWD; i++) {
                bool is_there = sl_keyed_get(&table, &keys[order[i]], &out);
                assert_int_equal(is_there, i > gone);
                assert_true(!is_there || out.number == order[i]);
            }
        }
        sl_keyed_destroy(&table);
    }
}

static void
test_walk_tolerates_removal_of_the_given_entry(void **state)
{
    (void)state;
    enum { COUNT = 60 };
    struct sl_random random;
    sl_random_seed(&random, 81);
    for (int round = 0; round < 300; round++) {
        struct sl_keyed table;
        struct sl_keyed_iter iter = {0};
        struct sl_value key;
        struct sl_value value;
        int visits[COUNT] = {0};
        bool removed[COUNT] = {false};
        assert_int_equal(sl_keyed_create(&table, 1, 0), 0);
        for (uint64_t i = 0; i < COUNT; i++) {
            /* Half of the rounds crowd the end of the table, so that runs wrap around it. */
            uint64_t upper = round % 2 ? UINT32_MAX - i : sl_random_u64(&random) >> 32;
            struct sl_keyed_key made = {upper << 32, i, 0, SL_KEYED_KEY_INTEGER};
            value = sl_value_number((double)upper);
            assert_int_equal(sl_keyed_put(&table, &made, &value), 0);
        }
        while (sl_keyed_next(&table, &iter, &key, &value)) {
            visits[(int)key.number]++;
            if (sl_random_below(&random, 2) == 0) {
                struct sl_keyed_key gone = {(uint64_t)value.number << 32, (uint64_t)key.number, 0,
                                            SL_KEYED_KEY_INTEGER};
                removed[(int)key.number] = true;
                assert_true(sl_keyed_remove(&table, &gone));
            }
        }
        uint64_t left = 0;
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(visits[i], 1);
            left += !removed[i];
        }
        assert_int_equal(table.count, left);
        sl_keyed_destroy(&table);
    }
}

static void
test_walk_stays_in_bounds_when_keys_are_added(void **state)
{
    (void)state;
    struct sl_keyed table;
    struct sl_keyed_iter iter = {0};
    struct sl_value key;
    struct sl_value value;
    assert_int_equal(sl_keyed_create(&table, 3, 0), 0);
    struct sl_keyed_key first = sl_keyed_key_number(0);
    assert_int_equal(sl_keyed_add(&table, &first, 1, &value), 0);
    int steps = 0;
    while (sl_keyed_next(&table, &iter, &key, &value) && steps < 100000) {
        steps++;
        for (int i = 0; i < 20; i++) {
            struct sl_keyed_key more = sl_keyed_key_number(steps * 20 + i);
            assert_int_equal(sl_keyed_add(&table, &more, 1, &value), 0);
        }
    }
    assert_in_range(steps, 1, 99999);
    sl_keyed_destroy(&table);
}

static void
test_add_follows_the_type_of_the_value(void **state)
{
    (void)state;
    struct sl_keyed table;
    struct sl_value out;
    struct sl_keyed_key key = sl_keyed_key_string("k", 1);
    assert_int_equal(sl_keyed_create(&table, 8, 0), 0);
    const struct {
        struct sl_value before;
        double delta;
        int rc;
        struct sl_value after;
    } rows[] = {
        {sl_value_number(1.5), 2, 0, sl_value_number(3.5)},
        {sl_value_nil(), 2, 0, sl_value_number(2)},
        {sl_value_i64(5), -7, 0, sl_value_i64(-2)},
        {sl_value_i64(INT64_MAX), 1, 0, sl_value_i64(INT64_MIN)},
        {sl_value_u64(UINT64_MAX), 2, 0, sl_value_u64(1)},
        {sl_value_i64(5), 0.5, SL_EINVAL, sl_value_i64(5)},
        {sl_value_i64(5), NAN, SL_EINVAL, sl_value_i64(5)},
        {sl_value_string("9", 1), 1, SL_EINVAL, sl_value_string("9", 1)},
        {sl_value_bool(true), 1, SL_EINVAL, sl_value_bool(true)},
        {sl_value_null(), 1, SL_EINVAL, sl_value_null()},
    };
    for (size_t i = 0; i < array_size(rows); i++) {
        assert_int_equal(sl_keyed_put(&table, &key, &rows[i].before), 0);
        assert_int_equal(sl_keyed_add(&table, &key, rows[i].delta, &out), rows[i].rc);
        assert_true(sl_keyed_get(&table, &key, &out));
        assert_true(values_equal(&out, &rows[i].after));
    }
    sl_keyed_destroy(&table);
}

/*
 * The promise is 64 bytes an entry beyond its key. The account includes what malloc adds; the worst
 * moment is right after a table grew, so it is checked at every entry.
 */
static void
test_numeric_entries_take_at_most_64_bytes_at_any_time(void **state)
{
    (void)state;
    enum { ENTRIES = 300000 };
    struct sl_keyed table;
    struct sl_value out;
    double worst = 0;
    assert_int_equal(sl_keyed_create(&table, 128, 0), 0);
    for (int i = 0; i < ENTRIES; i++) {
        struct sl_keyed_key key = sl_keyed_key_number(i * 0.5);
        assert_int_equal(sl_keyed_add(&table, &key, 1, &out), 0);
        if (i >= 5000 && (double)table.bytes / (i + 1) > worst) {
            worst = (double)table.bytes / (i + 1);
        }
    }
    assert_true(worst <= 64);
    sl_keyed_destroy(&table);
}

static void
test_worst_load_after_growth_is_below_64_bytes(void **state)
{
    (void)state;
    struct sl_keyed table;
    struct sl_value out;
    assert_int_equal(sl_keyed_create(&table, 1, 0), 0);
    uint32_t capacity = 0;
    for (int i = 0; i < 200000; i++) {
        struct sl_keyed_key key = sl_keyed_key_number(i);
        assert_int_equal(sl_keyed_add(&table, &key, 1, &out), 0);
        if (table.groups[0].capacity != capacity && i > 100) {
            assert_true(table.bytes <= (uint64_t)(i + 1) * 64);
        }
        capacity = table.groups[0].capacity;
    }
    sl_keyed_destroy(&table);
}

static void
test_a_shrunken_table_gives_memory_back(void **state)
{
    (void)state;
    struct sl_keyed table;
    struct sl_value out;
    assert_int_equal(sl_keyed_create(&table, 2, 0), 0);
    for (int i = 0; i < 10000; i++) {
        struct sl_keyed_key key = sl_keyed_key_number(i);
        assert_int_equal(sl_keyed_add(&table, &key, 1, &out), 0);
    }
    uint64_t full = table.bytes;
    for (int i = 0; i < 9990; i++) {
        struct sl_keyed_key key = sl_keyed_key_number(i);
        assert_true(sl_keyed_remove(&table, &key));
    }
    for (int i = 20000; i < 20010; i++) {
        struct sl_keyed_key key = sl_keyed_key_number(i);
        assert_int_equal(sl_keyed_add(&table, &key, 1, &out), 0);
    }
    assert_true(table.bytes < full / 100);
    assert_int_equal(table.count, 20);
    for (int i = 9990; i < 10000; i++) {
        struct sl_keyed_key key = sl_keyed_key_number(i);
        assert_true(sl_keyed_get(&table, &key, &out));
    }
    sl_keyed_destroy(&table);
}

static void
test_limit_is_kept_and_a_refused_put_changes_nothing(void **state)
{
    (void)state;
    struct sl_keyed table;
    struct sl_value out;
    enum { LIMIT = 20000 };
    assert_int_equal(sl_keyed_create(&table, 8, LIMIT), 0);
    char text[600];
    memset(text, 'v', sizeof(text));
    struct sl_value big = sl_value_string(text, sizeof(text));
    int put = 0;
    int rc = 0;
    for (; rc == 0; put++) {
        struct sl_keyed_key key = sl_keyed_key_number(put);
        rc = sl_keyed_put(&table, &key, &big);
        assert_true(table.bytes <= LIMIT);
    }
    put--;
    assert_int_equal(rc, SL_ELIMIT);
    assert_int_equal(table.count, put);
    assert_in_range(put, 15, 33);
    struct sl_keyed_key missing = sl_keyed_key_number(put);
    assert_false(sl_keyed_get(&table, &missing, &out));
    /* Replacing what is there still works, also by something smaller; growing does not. */
    struct sl_keyed_key first = sl_keyed_key_number(0);
    assert_int_equal(sl_keyed_put(&table, &first, &big), 0);
    struct sl_value small = sl_value_number(1);
    assert_int_equal(sl_keyed_put(&table, &first, &small), 0);
    uint64_t bytes = table.bytes;
    char huge[LIMIT];
    memset(huge, 'h', sizeof(huge));
    struct sl_value too_big = sl_value_string(huge, sizeof(huge));
    assert_int_equal(sl_keyed_put(&table, &first, &too_big), SL_ELIMIT);
    assert_true(sl_keyed_get(&table, &first, &out));
    assert_true(values_equal(&out, &small));
    struct sl_keyed_key long_key = sl_keyed_key_string(huge, sizeof(huge));
    assert_int_equal(sl_keyed_put(&table, &long_key, &small), SL_ELIMIT);
    assert_int_equal(table.bytes, bytes);
    sl_keyed_destroy(&table);
    assert_int_equal(sl_keyed_create(&table, 1000, 100), SL_ELIMIT);
    sl_keyed_destroy(&table);
}

/* Fails the n-th allocation for every n: the table stays what it was and nothing leaks. */
static void
test_lack_of_memory_changes_nothing(void **state)
{
    (void)state;
    char text[100];
    memset(text, 't', sizeof(text));
    struct sl_value out;
    for (int64_t n = 0; n < 12; n++) {
        struct sl_keyed table;
        assert_int_equal(sl_keyed_create(&table, 1, 0), 0);
        struct sl_value value = sl_value_string(text, sizeof(text));
        sl_alloc_fail_after(n);
        int rc = 0;
        uint64_t done = 0;
        while (rc == 0) {
            text[0] = (char)done;
            uint64_t bytes = table.bytes;
            struct sl_keyed_key key = sl_keyed_key_string(text, sizeof(text));
            rc = sl_keyed_put(&table, &key, &value);
            done += rc == 0;
            assert_true(rc == 0 || (rc == SL_ENOMEM && table.bytes == bytes));
        }
        sl_alloc_fail_after(-1);
        assert_int_equal(table.count, done);
        for (uint64_t i = 0; i <= done; i++) {
            text[0] = (char)i;
            struct sl_keyed_key key = sl_keyed_key_string(text, sizeof(text));
            assert_int_equal(sl_keyed_get(&table, &key, &out), i < done);
        }
        sl_keyed_destroy(&table);
    }
    struct sl_keyed table;
    sl_alloc_fail_after(0);
    assert_int_equal(sl_keyed_create(&table, 1, 0), SL_ENOMEM);
    sl_alloc_fail_after(-1);
    sl_keyed_destroy(&table);
    assert_int_equal(sl_keyed_create(&table, 0, 0), SL_EINVAL);
    assert_int_equal(sl_keyed_create(&table, SL_KEYED_GROUPS_MAX + 1, 0), SL_EINVAL);
}

static void
test_groups_are_adopted_whole(void **state)
{
    (void)state;
    enum { GROUPS = 16 };
    struct sl_keyed from;
    struct sl_keyed to;
    struct sl_keyed other;
    assert_int_equal(sl_keyed_create(&from, GROUPS, 0), 0);
    assert_int_equal(sl_keyed_create(&to, GROUPS, 0), 0);
    assert_int_equal(sl_keyed_create(&other, GROUPS + 1, 0), 0);
    fill_with_all_keys(&from);
    fill_with_all_keys(&to);
    uint64_t bytes = to.bytes;
    struct sl_keyed_key first = key_of(nth_key(0));
    for (int i = 0; i < KEYS; i++) {
        /* What is replaced is other than what comes; odd groups do not come. */
        struct sl_keyed_key key = key_of(nth_key(i));
        struct sl_value old = sl_value_string("a value that goes", 17);
        if (sl_key_group(key.hash, GROUPS) % 2 == 0) {
            assert_int_equal(sl_keyed_put(&to, &key, &old), 0);
        } else {
            assert_true(sl_keyed_remove(&from, &key));
        }
    }
    double moves = to.places.moves;
    assert_true(sl_keyed_remember(&to, &first) >= 0);
    assert_int_equal(sl_keyed_adopt(&to, &other), SL_EINVAL);
    assert_int_equal(sl_keyed_adopt(&to, &from), 0);
    /* An index that Lua remembers may mean an entry that is gone. */
    assert_true(to.places.moves > moves && to.places.count == 0);
    assert_int_equal(to.count, KEYS);
    assert_int_equal(to.bytes, bytes);
    assert_int_equal(from.count, 0);
    struct sl_keyed empty;
    assert_int_equal(sl_keyed_create(&empty, GROUPS, 0), 0);
    assert_int_equal(from.bytes, empty.bytes);
    for (int i = 0; i < KEYS; i++) {
        struct sl_value out;
        struct sl_value expected = nth_value((uint64_t)i * 7);
        struct sl_keyed_key key = key_of(nth_key(i));
        assert_false(sl_keyed_get(&from, &key, &out));
        assert_true(sl_keyed_get(&to, &key, &out) && values_equal(&out, &expected));
        assert_true(sl_keyed_remove(&to, &key));
    }
    sl_keyed_destroy(&empty);
    sl_keyed_destroy(&other);
    sl_keyed_destroy(&from);
    sl_keyed_destroy(&to);
}

static void
test_pack_reads_only_its_bytes(void **state)
{
    (void)state;
    for (uint32_t len = 0; len <= 8; len++) {
        uint8_t *exact = malloc(len > 0 ? len : 1);
        uint64_t expected = 0;
        for (uint32_t i = 0; i < len; i++) {
            exact[i] = (uint8_t)(0x81 + i * 3);
            expected |= (uint64_t)exact[i] << (8 * i);
        }
        assert_true(sl_keyed_pack(exact, len) == expected);
        free(exact);
    }
}

/* What an index given now says of a key, by way of the remembered entry. */
static double
remembered_number(const struct sl_keyed *state, int32_t place)
{
    const struct sl_keyed_entry *entry = state->places.entries[place];
    assert_int_equal(entry->value_kind, SL_VALUE_NUMBER);
    return entry->number;
}

static void
test_remembered_entries_hold_until_one_may_have_moved(void **unused)
{
    (void)unused;
    struct sl_random random;
    sl_random_seed(&random, 7);
    struct sl_keyed state;
    assert_int_equal(sl_keyed_create(&state, 4, 0), 0);
    int32_t places[KEYS];
    double numbers[KEYS];
    bool present[KEYS] = {false};
    double moves = -1;
    int kept = 0;
    for (int i = 0; i < 20000; i++) {
        if (state.places.moves != moves) {
            memset(places, -1, sizeof(places));
            moves = state.places.moves;
        }
        int k = (int)sl_random_below(&random, KEYS);
        struct sl_keyed_key key = key_of(nth_key(k));
        if (sl_random_below(&random, 50) == 0) {
            assert_int_equal(sl_keyed_remove(&state, &key), present[k]);
            present[k] = false;
            assert_int_equal(sl_keyed_remember(&state, &key), SL_ENOTFOUND);
            continue;
        }
        if (places[k] >= 0) {
            kept++;
            assert_float_equal(remembered_number(&state, places[k]), numbers[k], 0);
            state.places.entries[places[k]]->number = numbers[k] = i;
            struct sl_value out;
            assert_true(sl_keyed_get(&state, &key, &out));
            assert_float_equal(out.number, i, 0);
            continue;
        }
        struct sl_value value = sl_value_number(numbers[k] = i);
        assert_int_equal(sl_keyed_put(&state, &key, &value), 0);
        present[k] = true;
        if (state.places.moves == moves) {
            places[k] = sl_keyed_remember(&state, &key);
            assert_in_range(places[k], 0, SL_KEYED_PLACES_MAX - 1);
        }
    }
    assert_true(kept > 1000);
    moves = state.places.moves;
    sl_keyed_clear_group(&state, 0);
    assert_true(state.places.moves > moves);
    sl_keyed_destroy(&state);
}

static void
test_places_are_bounded_and_can_be_freed(void **unused)
{
    (void)unused;
    struct sl_keyed state;
    assert_int_equal(sl_keyed_create(&state, 1, 0), 0);
    struct sl_keyed_key key = sl_keyed_key_i64(1);
    struct sl_value value = sl_value_number(1);
    assert_int_equal(sl_keyed_put(&state, &key, &value), 0);
    uint64_t bytes = state.bytes;
    for (int32_t i = 0; i < SL_KEYED_PLACES_MAX; i++) {
        assert_int_equal(sl_keyed_remember(&state, &key), i);
    }
    assert_int_equal(sl_keyed_remember(&state, &key), SL_ELIMIT);
    assert_int_equal(state.bytes, bytes);
    double moves = state.places.moves;
    sl_keyed_forget(&state);
    assert_true(state.places.moves > moves);
    assert_int_equal(sl_keyed_remember(&state, &key), 0);
    sl_keyed_destroy(&state);
}

static void
test_room_that_was_reserved_is_enough(void **state)
{
    (void)state;
    struct sl_keyed keyed;
    assert_int_equal(sl_keyed_create(&keyed, 16, 0), 0);
    assert_int_equal(sl_keyed_reserve(&keyed, 50000), 0);
    uint64_t bytes = keyed.bytes;
    for (int i = 0; i < 50000; i++) {
        struct sl_keyed_key key = sl_keyed_key_number(i);
        struct sl_value value = sl_value_number(i);
        assert_int_equal(sl_keyed_put(&keyed, &key, &value), 0);
    }
    assert_int_equal(keyed.bytes, bytes);
    assert_int_equal(keyed.count, 50000);
    assert_int_equal(sl_keyed_reserve(&keyed, UINT64_C(1) << 60), SL_ELIMIT);
    sl_keyed_destroy(&keyed);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_against_a_naive_map),
    cmocka_unit_test(test_numbers_are_one_key_when_equal_by_value),
    cmocka_unit_test(test_walk_gives_exact_keys_as_numbers),
    cmocka_unit_test(test_crowded_slots_survive_removal_in_any_order),
    cmocka_unit_test(test_walk_tolerates_removal_of_the_given_entry),
    cmocka_unit_test(test_walk_stays_in_bounds_when_keys_are_added),
    cmocka_unit_test(test_add_follows_the_type_of_the_value),
    cmocka_unit_test(test_numeric_entries_take_at_most_64_bytes_at_any_time),
    cmocka_unit_test(test_worst_load_after_growth_is_below_64_bytes),
    cmocka_unit_test(test_a_shrunken_table_gives_memory_back),
    cmocka_unit_test(test_limit_is_kept_and_a_refused_put_changes_nothing),
    cmocka_unit_test(test_lack_of_memory_changes_nothing),
    cmocka_unit_test(test_groups_are_adopted_whole),
    cmocka_unit_test(test_pack_reads_only_its_bytes),
    cmocka_unit_test(test_remembered_entries_hold_until_one_may_have_moved),
    cmocka_unit_test(test_room_that_was_reserved_is_enough),
    cmocka_unit_test(test_places_are_bounded_and_can_be_freed),
};

UNIT_MAIN(tests)
