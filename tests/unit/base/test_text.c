#include "base/err.h"
#include "base/text.h"
#include "unit.h"

#define SIXTY_FOUR "0123456789012345678901234567890123456789012345678901234567890123"

static void
test_name_check_table(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        /* NULL when the name is fine, else a part of the reason. */
        const char *reason;
    } rows[] = {
        {"a", NULL},
        {"word-count_2.0", NULL},
        {"...", NULL},
        {".a", NULL},
        {"_a", NULL},
        {"-", NULL},
        {SIXTY_FOUR, NULL},
        {SIXTY_FOUR "4", "is 65 bytes long; at most 64"},
        {"", "is empty"},
        {".", "is reserved"},
        {"..", "is reserved"},
        {"__acker", "belong to the engine"},
        {"__", "belong to the engine"},
        {"a b", "' ' is not allowed"},
        {"a/b", "'/' is not allowed"},
        {"a\n", "'\\n' is not allowed"},
        {"gr\xc3\xbc\xc3\x9f", "'\xc3\xbc' is not allowed"},
        {"\xff", "'\\xff' is not allowed"},
    };
    for (size_t i = 0; i < array_size(rows); i++) {
        int rc = sl_name_check("component name", rows[i].name, strlen(rows[i].name));
        assert_int_equal(rc, rows[i].reason == NULL ? 0 : SL_EINVAL);
        if (rows[i].reason != NULL) {
            assert_non_null(strstr(sl_err_last()->msg, rows[i].reason));
            assert_memory_equal(sl_err_last()->msg, "component name", 14);
        }
    }
    assert_int_equal(sl_name_check("name", "a\0b", 3), SL_EINVAL);
    assert_int_equal(sl_name_check_system("name", "__acker", 7), 0);
    assert_int_equal(sl_name_check_system("name", "..", 2), SL_EINVAL);
}

static void
test_quote_table(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        const char *expected;
    } rows[] = {
        {"", 0, "''"},
        {"plain", 5, "'plain'"},
        {"it's", 4, "'it\\'s'"},
        {"a\\b", 3, "'a\\\\b'"},
        {"\n\r\t", 3, "'\\n\\r\\t'"},
        {"\x1b[31m", 5, "'\\x1b[31m'"},
        {"a\0b", 3, "'a\\x00b'"},
        {"\x7f", 1, "'\\x7f'"},
        {"gr\xc3\xbcn \xf0\x9f\x8e\x89", 10, "'gr\xc3\xbcn \xf0\x9f\x8e\x89'"},
        {"\xc3", 1, "'\\xc3'"},
        {"\xc2\x85", 2, "'\\xc2\\x85'"},
        {"\xe2\x80\xae", 3, "'\\xe2\\x80\\xae'"},
        {"\xe2\x82\xac", 3, "'\xe2\x82\xac'"},
    };
    char out[64];
    for (size_t i = 0; i < array_size(rows); i++) {
        assert_string_equal(sl_text_quote(out, sizeof(out), rows[i].text, rows[i].len),
                            rows[i].expected);
        struct sl_buf buf = {0};
        sl_text_quote_buf(&buf, rows[i].text, rows[i].len);
        assert_string_equal(sl_buf_str(&buf), rows[i].expected);
        sl_buf_destroy(&buf);
    }
}

static void
test_quote_is_cut_at_a_character(void **state)
{
    (void)state;
    char out[64];
    const char *text = "ab\xc3\xbc\n\xf0\x9f\x8e\x89xyz\x01\x02tail of some length";
    struct sl_buf whole = {0};
    sl_text_quote_buf(&whole, text, strlen(text));
    for (size_t size = 8; size < sizeof(out); size++) {
        memset(out, 'Z', sizeof(out));
        sl_text_quote(out, size, text, strlen(text));
        size_t length = strlen(out);
        assert_true(length < size);
        assert_int_equal(out[length - 1], '\'');
        assert_true(sl_text_is_utf8(out, length));
        if (whole.size < size) {
            assert_string_equal(out, sl_buf_str(&whole));
        } else {
            assert_memory_equal(out + length - 4, "...'", 4);
            assert_memory_equal(out, whole.data, length - 4);
        }
    }
    sl_buf_destroy(&whole);
}

static void
test_utf8_len_table(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        size_t expected;
    } rows[] = {
        {"a", 1, 1},
        {"", 0, 0},
        {"\xc3\xbc", 2, 2},
        {"\xc3\xbc", 1, 0},
        {"\xe2\x82\xac", 3, 3},
        {"\xe2\x82\xac", 2, 0},
        {"\xf4\x8f\xbf\xbf", 4, 4},
        {"\x80", 1, 0},
        {"\xc0\x80", 2, 0},
        {"\xc1\xbf", 2, 0},
        {"\xe0\x9f\xbf", 3, 0},
        {"\xe0\xa0\x80", 3, 3},
        {"\xed\xa0\x80", 3, 0},
        {"\xed\x9f\xbf", 3, 3},
        {"\xf0\x8f\xbf\xbf", 4, 0},
        {"\xf0\x90\x80\x80", 4, 4},
        {"\xf4\x90\x80\x80", 4, 0},
        {"\xf5\x80\x80\x80", 4, 0},
        {"\xe2\x28\xa1", 3, 0},
    };
    for (size_t i = 0; i < array_size(rows); i++) {
        if (sl_text_utf8_len(rows[i].text, rows[i].len) != rows[i].expected) {
            fail_msg("row %zu", i);
        }
    }
    assert_true(sl_text_is_utf8("", 0));
    assert_true(sl_text_is_utf8("a\xc3\xbc", 3));
    assert_false(sl_text_is_utf8("a\xc3", 2));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_name_check_table),
    cmocka_unit_test(test_quote_table),
    cmocka_unit_test(test_quote_is_cut_at_a_character),
    cmocka_unit_test(test_utf8_len_table),
};

UNIT_MAIN(tests)
