#include "loop/address.h"

#include "base/err.h"
#include "unit.h"

static void
test_parse_and_format_give_the_same_text(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"127.0.0.1:6123", "[::1]:0", "node-7.example_x:65535",
                                        "unix:run/master.sock"};
    for (size_t i = 0; i < array_size(TEXTS); i++) {
        struct sl_address address;
        char text[SL_ADDRESS_TEXT_SIZE];
        assert_int_equal(sl_address_parse(TEXTS[i], &address), 0);
        assert_string_equal(sl_address_format(&address, text, sizeof(text)), TEXTS[i]);
    }
}

static void
test_parse_takes_a_scheme(void **state)
{
    (void)state;
    struct sl_address address;
    assert_int_equal(sl_address_parse("tcp://[::1]:70", &address), 0);
    assert_string_equal(address.host, "::1");
    assert_int_equal(address.port, 70);
}

static void
test_parse_refuses_bad_texts(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "",          "localhost", "localhost:", ":80",    "a:b",    "a:65536",
        "a:-1",      "a:1 ",      "a:0x10",     "::1:80", "[::1]",  "[::1]80",
        "[::1:80",   "[name]:80", "a b:80",     "unix:",  "a/b:80", "a:999999999999999",
        "http://a:1"};
    for (size_t i = 0; i < array_size(TEXTS); i++) {
        struct sl_address address;
        sl_err_clear();
        assert_int_equal(sl_address_parse(TEXTS[i], &address), SL_EINVAL);
        assert_non_null(strstr(sl_err_last()->msg, "address '"));
    }
}

static void
test_parse_limits_lengths(void **state)
{
    (void)state;
    struct sl_address address;
    char text[400];
    memset(text, 'a', sizeof(text));
    strcpy(text + 255, ":80");
    assert_int_equal(sl_address_parse(text, &address), 0);
    memset(text, 'a', sizeof(text));
    strcpy(text + 256, ":80");
    assert_int_equal(sl_address_parse(text, &address), SL_EINVAL);
    memset(text, 'a', sizeof(text));
    memcpy(text, "unix:", 5);
    text[5 + 107] = '\0';
    assert_int_equal(sl_address_parse(text, &address), 0);
    text[5 + 107] = 'a';
    text[5 + 108] = '\0';
    assert_int_equal(sl_address_parse(text, &address), SL_EINVAL);
}

static void
test_is_loopback(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_loopback;
    } ROWS[] = {
        {"127.0.0.1:1", true},         {"127.200.3.4:1", true}, {"[::1]:1", true},
        {"localhost:1", true},         {"unix:x", true},        {"[::ffff:127.0.0.1]:1", true},
        {"0.0.0.0:1", false},          {"[::]:1", false},       {"10.0.0.1:1", false},
        {"127.evil.example:1", false}, {"128.0.0.1:1", false},  {"[::ffff:10.0.0.1]:1", false},
        {"localhost.example:1", false}};
    for (size_t i = 0; i < array_size(ROWS); i++) {
        struct sl_address address;
        assert_int_equal(sl_address_parse(ROWS[i].text, &address), 0);
        assert_int_equal(sl_address_is_loopback(&address), ROWS[i].is_loopback);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_parse_and_format_give_the_same_text),
    cmocka_unit_test(test_parse_takes_a_scheme),
    cmocka_unit_test(test_parse_refuses_bad_texts),
    cmocka_unit_test(test_parse_limits_lengths),
    cmocka_unit_test(test_is_loopback),
};

UNIT_MAIN(tests)
