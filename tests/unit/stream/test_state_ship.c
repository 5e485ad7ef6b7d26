/* Groups of keyed state as bytes: export, import, what an import refuses. */

#include "state_rig.h"

static void
test_groups_move_by_export_and_import(void **state)
{
    (void)state;
    enum { GROUPS = 16 };
    struct sl_keyed from;
    struct sl_keyed to;
    struct sl_buf buf = {0};
    assert_int_equal(sl_keyed_create(&from, GROUPS, 0), 0);
    assert_int_equal(sl_keyed_create(&to, GROUPS, 0), 0);
    fill_with_all_keys(&from);
    struct sl_keyed_summary sum = {0};
    struct sl_keyed_summary part;
    for (uint32_t g = 0; g < GROUPS; g += 2) {
        uint32_t count = sl_keyed_group_count(&from, g);
        assert_int_equal(sl_keyed_export_group(&from, g, &buf, &part), 0);
        assert_int_equal(part.entries, count);
        sum.entries += part.entries;
        sum.bytes += part.bytes;
        sum.checksum += part.checksum;
        sl_keyed_clear_group(&from, g);
        assert_int_equal(sl_keyed_group_count(&from, g), 0);
    }
    assert_int_equal(sum.entries + from.count, KEYS);
    assert_int_equal(sl_keyed_import(&to, buf.data, buf.size, &part), 0);
    assert_true(part.entries == sum.entries && part.bytes == sum.bytes);
    assert_true(part.checksum == sum.checksum);
    for (int i = 0; i < KEYS; i++) {
        struct sl_value out;
        struct sl_value expected = nth_value((uint64_t)i * 7);
        struct sl_keyed_key key = key_of(nth_key(i));
        bool moved = sl_key_group(key.hash, GROUPS) % 2 == 0;
        assert_int_equal(sl_keyed_get(&from, &key, &out), !moved);
        assert_int_equal(sl_keyed_get(&to, &key, &out), moved);
        assert_true(!moved || values_equal(&out, &expected));
    }
    assert_int_equal(sl_keyed_export_group(&from, GROUPS, &buf, &part), SL_EINVAL);
    assert_int_equal(sl_keyed_group_count(&from, GROUPS), 0);
    sl_buf_destroy(&buf);
    sl_keyed_destroy(&from);
    sl_keyed_destroy(&to);
}

static void
test_import_refuses_every_prefix_and_puts_nothing(void **state)
{
    (void)state;
    struct sl_keyed from;
    struct sl_keyed to;
    struct sl_buf buf = {0};
    struct sl_keyed_summary summary;
    assert_int_equal(sl_keyed_create(&from, 1, 0), 0);
    assert_int_equal(sl_keyed_create(&to, 1, 0), 0);
    for (int i = 0; i < KEYS; i += 17) {
        struct sl_keyed_key key = key_of(nth_key(i));
        struct sl_value value = nth_value((uint64_t)i);
        assert_int_equal(sl_keyed_put(&from, &key, &value), 0);
    }
    assert_int_equal(sl_keyed_export_group(&from, 0, &buf, &summary), 0);
    for (size_t len = 1; len < buf.size; len++) {
        uint8_t *copy = malloc(len);
        memcpy(copy, buf.data, len);
        assert_int_equal(sl_keyed_import(&to, copy, len, &summary), SL_EPROTO);
        assert_int_equal(to.count, 0);
        free(copy);
    }
    assert_int_equal(sl_keyed_import(&to, buf.data, 0, &summary), 0);
    assert_int_equal(summary.entries, 0);
    sl_buf_destroy(&buf);
    sl_keyed_destroy(&from);
    sl_keyed_destroy(&to);
}

static void
test_import_refuses_entries_of_another_group(void **state)
{
    (void)state;
    struct sl_keyed table;
    struct sl_buf buf = {0};
    struct sl_keyed_summary summary;
    assert_int_equal(sl_keyed_create(&table, 4, 0), 0);
    uint32_t right = sl_key_group(sl_key_hash_number(7), 4);
    for (uint32_t g = 0; g < 5; g++) {
        struct sl_value seven = sl_value_number(7);
        sl_buf_clear(&buf);
        sl_buf_append_u32(&buf, g);
        sl_buf_append_u32(&buf, 1);
        sl_value_write(&buf, &seven);
        sl_value_write(&buf, &seven);
        assert_int_equal(sl_keyed_import(&table, buf.data, buf.size, &summary),
                         g == right ? 0 : SL_EPROTO);
    }
    assert_int_equal(table.count, 1);
    sl_buf_destroy(&buf);
    sl_keyed_destroy(&table);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_groups_move_by_export_and_import),
    cmocka_unit_test(test_import_refuses_every_prefix_and_puts_nothing),
    cmocka_unit_test(test_import_refuses_entries_of_another_group),
};

UNIT_MAIN(tests)
