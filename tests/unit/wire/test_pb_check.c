#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "topology.pb-c.h"
#include "wire/pb_check.h"

static const struct sl_pb_limit counts[] = {
    {&streamlua__topology_stream__descriptor, 3, 2},
};
static const struct sl_pb_limits limits = {
    .max_size = 200, .max_fields = 8, .counts = counts, .count_limits = 1};

/* Checks bytes as a TopologyStream: string name = 1, bool is_direct = 2, repeated string fields
 * = 3. */
static int
check_stream(const char *bytes, size_t size)
{
    int rc =
        sl_pb_check(&streamlua__topology_stream__descriptor, (const uint8_t *)bytes, size, &limits);
    assert_int_equal(sl_err_last()->code, rc);
    sl_err_clear();
    return rc;
}

#define CHECK(bytes) check_stream(bytes, sizeof(bytes) - 1)

static void
test_well_formed_messages_pass(void **state)
{
    (void)state;
    assert_int_equal(CHECK(""), 0);
    assert_int_equal(CHECK("\x0a\x01n\x10\x01\x1a\x01x\x1a\x00"), 0);
    assert_int_equal(CHECK("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 0);
    /* Unknown fields of all wire types. */
    assert_int_equal(CHECK("\x78\x05\x79"
                           "12345678\x7a\x02hi\x7d"
                           "1234"),
                     0);
}

static void
test_malformed_messages_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } rows[] = {
        {"\x0a", 1},                                           /* no length */
        {"\x0a\x02n", 3},                                      /* text cut off */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01n", 12}, /* huge length */
        {"\x10\x80", 2},                                       /* number cut off */
        {"\x10\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", 11},  /* more than 64 bits */
        {"\x10\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12},
        {"\x08\x01", 2},                     /* name as a number */
        {"\x12\x01n", 3},                    /* is_direct as text */
        {"\x00\x01", 2},                     /* tag 0 */
        {"\x0b\x0c", 2},                     /* group */
        {"\x0e", 1},                         /* wire type 6 */
        {"\x80\x80\x80\x80\x80\x01\x01", 7}, /* tag beyond 32 bits */
        {"\x0a\x02\x61\x00", 4},             /* NUL in a text */
        {"\x0a\x01\xff", 3},                 /* no UTF-8 */
        {"\x79"
         "1234567",
         8}, /* 64-bit value cut off */
        {"\x7d"
         "123",
         4},               /* 32-bit value cut off */
        {"\x7a\x05hi", 4}, /* unknown text cut off */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(check_stream(rows[i].bytes, rows[i].size), SL_EPROTO);
    }
}

static void
test_limits_hold(void **state)
{
    (void)state;
    char large[201] = {0};
    assert_int_equal(CHECK("\x1a\x00\x1a\x00"), 0);
    assert_int_equal(CHECK("\x1a\x00\x1a\x00\x1a\x00"), SL_ELIMIT);
    assert_int_equal(CHECK("\x10\x01\x10\x01\x10\x01\x10\x01\x10\x01\x10\x01\x10\x01\x10\x01"), 0);
    assert_int_equal(
        CHECK("\x10\x01\x10\x01\x10\x01\x10\x01\x10\x01\x10\x01\x10\x01\x10\x01\x10\x01"),
        SL_ELIMIT);
    assert_int_equal(check_stream(large, sizeof(large)), SL_ELIMIT);
}

static void
test_unknown_fields_are_limited(void **state)
{
    (void)state;
    struct sl_pb_limits many = limits;
    uint8_t bytes[2 * (SL_PB_UNKNOWN_MAX + 1)];
    many.max_fields = 1000;
    for (size_t i = 0; i < sizeof(bytes); i += 2) {
        bytes[i] = 0x78;
        bytes[i + 1] = 0;
    }
    const ProtobufCMessageDescriptor *descriptor = &streamlua__topology_stream__descriptor;
    assert_int_equal(sl_pb_check(descriptor, bytes, sizeof(bytes) - 2, &many), 0);
    assert_int_equal(sl_pb_check(descriptor, bytes, sizeof(bytes), &many), SL_ELIMIT);
    sl_err_clear();
}

static void
test_nested_messages_and_enums_are_checked(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *descriptor = &streamlua__topology_component__descriptor;
    static const uint8_t good[] = {0x08, 2, 0x52, 3, 0x0a, 1, 'n'};
    static const uint8_t bad_enum[] = {0x08, 99};
    static const uint8_t bad_inner[] = {0x52, 2, 0x0a, 5};
    assert_int_equal(sl_pb_check(descriptor, good, sizeof(good), &limits), 0);
    assert_int_equal(sl_pb_check(descriptor, bad_enum, sizeof(bad_enum), &limits), SL_EPROTO);
    assert_int_equal(sl_pb_check(descriptor, bad_inner, sizeof(bad_inner), &limits), SL_EPROTO);
    sl_err_clear();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_well_formed_messages_pass),
        cmocka_unit_test(test_malformed_messages_are_refused),
        cmocka_unit_test(test_limits_hold),
        cmocka_unit_test(test_unknown_fields_are_limited),
        cmocka_unit_test(test_nested_messages_and_enums_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
