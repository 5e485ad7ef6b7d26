#include "base/alloc.h"
#include "base/buf.h"
#include "unit.h"

static void
test_append_grows_and_keeps_the_content(void **state)
{
    (void)state;
    struct sl_buf buf = {0};
    uint8_t expected[5000];
    for (size_t i = 0; i < sizeof(expected); i++) {
        expected[i] = (uint8_t)(i * 31);
    }
    for (size_t at = 0, step = 1; at < sizeof(expected); at += step, step = step % 97 + 1) {
        if (at + step > sizeof(expected)) {
            step = sizeof(expected) - at;
        }
        sl_buf_append(&buf, expected + at, step);
    }
    assert_int_equal(buf.size, sizeof(expected));
    assert_memory_equal(buf.data, expected, sizeof(expected));
    sl_buf_destroy(&buf);
    assert_null(buf.data);
}

static void
test_integers_are_little_endian(void **state)
{
    (void)state;
    struct sl_buf buf;
    sl_buf_create(&buf);
    sl_buf_append_u8(&buf, 0x01);
    sl_buf_append_u16(&buf, 0x0302);
    sl_buf_append_u32(&buf, 0x07060504);
    sl_buf_append_u64(&buf, UINT64_C(0x0f0e0d0c0b0a0908));
    assert_int_equal(buf.size, 15);
    for (int i = 0; i < 15; i++) {
        assert_int_equal(buf.data[i], i + 1);
    }
    sl_buf_destroy(&buf);
}

static void
test_text_printf_and_str(void **state)
{
    (void)state;
    struct sl_buf buf = {0};
    assert_string_equal(sl_buf_str(&buf), "");
    sl_buf_append_str(&buf, "a=");
    sl_buf_printf(&buf, "%d,%0*d", 5, 200, 7);
    assert_int_equal(buf.size, 204);
    const char *text = sl_buf_str(&buf);
    assert_int_equal(strlen(text), 204);
    assert_int_equal(text[203], '7');
    assert_int_equal(buf.size, 204);
    sl_buf_destroy(&buf);
}

static void
test_reserve_commit_consume_detach(void **state)
{
    (void)state;
    struct sl_buf buf = {0};
    memcpy(sl_buf_reserve(&buf, 6), "abcdef", 6);
    assert_int_equal(buf.size, 0);
    sl_buf_commit(&buf, 6);
    sl_buf_consume(&buf, 2);
    assert_memory_equal(buf.data, "cdef", 4);
    assert_int_equal(buf.size, 4);
    sl_buf_consume(&buf, 99);
    assert_int_equal(buf.size, 0);
    sl_buf_append_str(&buf, "own");
    uint8_t *own = sl_buf_detach(&buf);
    assert_memory_equal(own, "own", 3);
    assert_null(buf.data);
    assert_int_equal(buf.capacity, 0);
    sl_free(own);
    assert_null(sl_buf_detach(&buf));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_append_grows_and_keeps_the_content),
    cmocka_unit_test(test_integers_are_little_endian),
    cmocka_unit_test(test_text_printf_and_str),
    cmocka_unit_test(test_reserve_commit_consume_detach),
};

UNIT_MAIN(tests)
