#include "stream/value.h"
#include "base/err.h"
#include "base/hash.h"
#include "unit.h"

#include <math.h>

/* Builds encodings by hand, so that reading is not tested with writing. */
static void
add_list(struct sl_buf *buf, uint32_t count)
{
    sl_buf_append_u8(buf, SL_VALUE_TABLE);
    sl_buf_append_u32(buf, count);
}

static void
add_map(struct sl_buf *buf, uint32_t count)
{
    sl_buf_append_u8(buf, SL_VALUE_MAP);
    sl_buf_append_u32(buf, count);
}

static void
add(struct sl_buf *buf, struct sl_value value)
{
    sl_value_write(buf, &value);
}

static void
test_write_layout(void **state)
{
    (void)state;
    struct sl_buf buf = {0};
    add(&buf, sl_value_nil());
    add(&buf, sl_value_number(1.0));
    add(&buf, sl_value_string("ab", 2));
    add(&buf, sl_value_bool(false));
    add(&buf, sl_value_bool(true));
    add(&buf, sl_value_i64(-1));
    add(&buf, sl_value_u64(2));
    add(&buf, sl_value_null());
    static const uint8_t expected[] = {
        0, 1,    0,    0,    0,    0,    0,    0,    0xf0, 0x3f, 2, 2, 0, 0, 0, 'a', 'b', 3, 4,
        5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 6,    2, 0, 0, 0, 0, 0,   0,   0, 7,
    };
    assert_int_equal(buf.size, sizeof(expected));
    assert_memory_equal(buf.data, expected, sizeof(expected));
    sl_buf_destroy(&buf);
}

static void
test_read_gives_back_what_was_written(void **state)
{
    (void)state;
    struct sl_buf table = {0};
    add_list(&table, 2);
    add(&table, sl_value_number(5));
    add_map(&table, 1);
    add(&table, sl_value_string("k", 1));
    add(&table, sl_value_null());
    const struct sl_value values[] = {
        sl_value_nil(),
        sl_value_number(-0.0),
        sl_value_number(INFINITY),
        sl_value_string("", 0),
        sl_value_string("a\0b", 3),
        sl_value_bool(true),
        sl_value_bool(false),
        sl_value_i64(INT64_MIN),
        sl_value_u64(UINT64_MAX),
        sl_value_null(),
        sl_value_table(table.data, (uint32_t)table.size),
    };
    for (size_t i = 0; i < array_size(values); i++) {
        struct sl_buf buf = {0};
        add(&buf, values[i]);
        assert_int_equal(buf.size, sl_value_size(&values[i]));
        sl_buf_append_str(&buf, "rest");
        struct sl_value back;
        assert_int_equal(sl_value_read(buf.data, buf.size, &back), buf.size - 4);
        assert_int_equal(back.tag, values[i].tag);
        assert_memory_equal(&back.number, &values[i].number, 8);
        assert_true(back.integer == values[i].integer);
        assert_int_equal(back.len, values[i].len);
        if (back.len > 0) {
            assert_memory_equal(back.ptr, values[i].ptr, back.len);
        }
        sl_buf_destroy(&buf);
    }
    sl_buf_destroy(&table);
}

static void
test_every_prefix_is_refused(void **state)
{
    (void)state;
    struct sl_buf buf = {0};
    add_map(&buf, 3);
    add(&buf, sl_value_bool(false));
    add(&buf, sl_value_i64(7));
    add(&buf, sl_value_number(1.5));
    add(&buf, sl_value_string("value", 5));
    add(&buf, sl_value_string("key", 3));
    add_list(&buf, 2);
    add(&buf, sl_value_nil());
    add_map(&buf, 0);
    assert_int_equal(sl_value_measure(buf.data, buf.size), buf.size);
    for (size_t len = 0; len < buf.size; len++) {
        /* A copy of exact size, so that a sanitizer sees a read behind it. */
        uint8_t *copy = malloc(len > 0 ? len : 1);
        memcpy(copy, buf.data, len);
        assert_int_equal(sl_value_measure(copy, len), SL_EPROTO);
        free(copy);
    }
    sl_buf_destroy(&buf);
}

static void
test_malformed_values_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {
        {"\x0a", 1},
        {"\xff", 1},
        /* An empty list is a map. */
        {"\x08\0\0\0\0", 5},
        {"\x08\xff\xff\xff\xff\0\0", 7},
        {"\x02\xff\xff\xff\xff", 5},
        {"\x09\xff\xff\xff\x7f\x03\0", 7},
        /* Keys that are nil, an int64, a table and NaN. */
        {"\x09\1\0\0\0\0\0", 7},
        {"\x09\1\0\0\0\5\1\0\0\0\0\0\0\0\0", 15},
        {"\x09\1\0\0\0\x09\0\0\0\0\0", 11},
        {"\x09\1\0\0\0\1\0\0\0\0\0\0\xf8\x7f\0", 15},
    };
    for (size_t i = 0; i < array_size(rows); i++) {
        if (sl_value_measure((const uint8_t *)rows[i].bytes, rows[i].len) != SL_EPROTO) {
            fail_msg("row %zu", i);
        }
    }
}

static void
test_tables_nest_16_levels(void **state)
{
    (void)state;
    for (int levels = 15; levels <= 17; levels++) {
        struct sl_buf lists = {0};
        struct sl_buf maps = {0};
        for (int i = 0; i < levels; i++) {
            add_list(&lists, 1);
            add_map(&maps, 1);
            add(&maps, sl_value_null());
        }
        add(&lists, sl_value_nil());
        add(&maps, sl_value_nil());
        assert_int_equal(sl_value_measure(lists.data, lists.size) > 0, levels <= 16);
        assert_int_equal(sl_value_measure(maps.data, maps.size) > 0, levels <= 16);
        sl_buf_destroy(&lists);
        sl_buf_destroy(&maps);
    }
}

static uint64_t
hash_of(struct sl_buf *buf)
{
    uint64_t hash = 0;
    assert_int_equal(sl_value_key_hash(buf->data, buf->size, &hash), 0);
    sl_buf_destroy(buf);
    return hash;
}

static uint64_t
hash_of_value(struct sl_value value)
{
    struct sl_buf buf = {0};
    add(&buf, value);
    return hash_of(&buf);
}

static void
test_key_hash_of_scalars_is_that_of_base(void **state)
{
    (void)state;
    assert_true(hash_of_value(sl_value_nil()) == sl_key_hash_nil());
    assert_true(hash_of_value(sl_value_null()) == sl_key_hash_null());
    assert_true(hash_of_value(sl_value_bool(true)) == sl_key_hash_bool(true));
    assert_true(hash_of_value(sl_value_bool(false)) == sl_key_hash_bool(false));
    assert_true(hash_of_value(sl_value_number(2.5)) == sl_key_hash_number(2.5));
    assert_true(hash_of_value(sl_value_i64(-3)) == sl_key_hash_number(-3));
    assert_true(hash_of_value(sl_value_u64(3)) == sl_key_hash_number(3));
    assert_true(hash_of_value(sl_value_string("ab", 2)) == sl_key_hash_bytes("ab", 2));
}

static uint64_t
hash_of_pair_map(struct sl_value a, struct sl_value b)
{
    struct sl_buf buf = {0};
    add_map(&buf, 2);
    add(&buf, a);
    add(&buf, b);
    add(&buf, b);
    add(&buf, a);
    return hash_of(&buf);
}

static void
test_key_hash_of_tables_is_by_content(void **state)
{
    (void)state;
    struct sl_buf list = {0};
    add_list(&list, 2);
    add(&list, sl_value_string("a", 1));
    add(&list, sl_value_i64(1));
    /* The grouping by two fields, the second of them a number of another type. */
    assert_true(hash_of(&list) ==
                sl_key_hash_combine(sl_key_hash_bytes("a", 1), sl_key_hash_number(1)));
    struct sl_value one = sl_value_number(1);
    struct sl_value word = sl_value_string("w", 1);
    assert_true(hash_of_pair_map(one, word) == hash_of_pair_map(word, one));
    assert_true(hash_of_pair_map(one, word) != hash_of_pair_map(word, sl_value_number(2)));
    struct sl_buf empty = {0};
    add_map(&empty, 0);
    assert_true(hash_of(&empty) != sl_key_hash_nil());
    uint64_t hash;
    assert_int_equal(sl_value_key_hash((const uint8_t *)"\x08", 1, &hash), SL_EPROTO);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_write_layout),
    cmocka_unit_test(test_read_gives_back_what_was_written),
    cmocka_unit_test(test_every_prefix_is_refused),
    cmocka_unit_test(test_malformed_values_are_refused),
    cmocka_unit_test(test_tables_nest_16_levels),
    cmocka_unit_test(test_key_hash_of_scalars_is_that_of_base),
    cmocka_unit_test(test_key_hash_of_tables_is_by_content),
};

UNIT_MAIN(tests)
