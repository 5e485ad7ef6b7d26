#include "base/err.h"
#include "topology.pb-c.h"
#include "topology/system.h"
#include "topology/topology_codec.h"
#include "topology/topology_fixture.h"

/* Decodes from a block of exactly this size, so that a sanitizer sees any byte read past the end.
 */
static struct sl_topology *
decode_exactly(const uint8_t *data, size_t size)
{
    uint8_t *copy = sl_alloc(size);
    memcpy(copy, data, size);
    struct sl_topology *t = sl_topology_decode_new(copy, size);
    sl_free(copy);
    return t;
}

static void
assert_refused(const uint8_t *data, size_t size, int code)
{
    assert_null(decode_exactly(data, size));
    assert_int_equal(sl_err_last()->code, code);
    sl_err_clear();
}

static void
test_random_topologies_survive_the_round_trip(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 1);
    for (int i = 0; i < 2000; i++) {
        struct sl_topology *t = fixture_random(&random);
        struct sl_buf bytes = {0};
        struct sl_buf again = {0};
        assert_int_equal(sl_topology_encode(t, &bytes), 0);
        struct sl_topology *back = decode_exactly(bytes.data, bytes.size);
        assert_non_null(back);
        assert_true(sl_topology_equal(t, back));
        assert_int_equal(sl_topology_encode(back, &again), 0);
        assert_int_equal(again.size, bytes.size);
        assert_memory_equal(again.data, bytes.data, bytes.size);
        sl_topology_free(t);
        sl_topology_free(back);
        sl_buf_destroy(&bytes);
        sl_buf_destroy(&again);
    }
}

static void
test_system_topology_survives_the_round_trip(void **state)
{
    (void)state;
    struct sl_topology *user = fixture_word_count();
    struct sl_system_config config = {2};
    struct sl_topology *t = sl_system_topology_new(user, &config);
    struct sl_buf bytes = {0};
    assert_int_equal(sl_topology_encode(t, &bytes), 0);
    struct sl_topology *back = decode_exactly(bytes.data, bytes.size);
    assert_true(sl_topology_equal(t, back));
    sl_topology_free(user);
    sl_topology_free(t);
    sl_topology_free(back);
    sl_buf_destroy(&bytes);
}

static void
test_encoding_appends(void **state)
{
    (void)state;
    struct sl_topology *t = fixture_word_count();
    struct sl_buf bytes = {0};
    sl_buf_append_str(&bytes, "head");
    assert_int_equal(sl_topology_encode(t, &bytes), 0);
    assert_memory_equal(bytes.data, "head", 4);
    struct sl_topology *back = decode_exactly(bytes.data + 4, bytes.size - 4);
    assert_true(sl_topology_equal(t, back));
    sl_topology_free(t);
    sl_topology_free(back);
    sl_buf_destroy(&bytes);
}

/* A cut is either refused or falls between two fields; it never crashes or gives the whole. */
static void
test_truncation_at_every_byte_is_harmless(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 2);
    for (int i = 0; i < 20; i++) {
        struct sl_topology *t = i == 0 ? fixture_word_count() : fixture_random(&random);
        struct sl_buf bytes = {0};
        assert_int_equal(sl_topology_encode(t, &bytes), 0);
        for (size_t size = 0; size < bytes.size; size++) {
            struct sl_topology *back = decode_exactly(bytes.data, size);
            assert_true(back == NULL || !sl_topology_equal(t, back));
            assert_true(back != NULL || sl_err_last()->code == SL_EPROTO);
            sl_topology_free(back);
        }
        sl_err_clear();
        sl_topology_free(t);
        sl_buf_destroy(&bytes);
    }
}

static void
test_damaged_bytes_are_harmless(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 4);
    struct sl_topology *t = fixture_word_count();
    struct sl_buf bytes = {0};
    assert_int_equal(sl_topology_encode(t, &bytes), 0);
    for (int i = 0; i < 5000; i++) {
        uint8_t *copy = sl_alloc(bytes.size);
        memcpy(copy, bytes.data, bytes.size);
        for (uint64_t n = 1 + sl_random_below(&random, 3); n > 0; n--) {
            copy[sl_random_below(&random, bytes.size)] = (uint8_t)sl_random_below(&random, 256);
        }
        sl_topology_free(sl_topology_decode_new(copy, bytes.size));
        sl_free(copy);
    }
    sl_err_clear();
    sl_topology_free(t);
    sl_buf_destroy(&bytes);
}

static void
pack(const Streamlua__Topology *message, struct sl_buf *bytes)
{
    size_t size = streamlua__topology__get_packed_size(message);
    bytes->size = 0;
    sl_buf_commit(bytes, streamlua__topology__pack(message, sl_buf_reserve(bytes, size)));
}

static void
test_unknown_enum_values_are_refused(void **state)
{
    (void)state;
    Streamlua__TopologyInput input = STREAMLUA__TOPOLOGY_INPUT__INIT;
    Streamlua__TopologyInput *inputs[] = {&input};
    Streamlua__TopologyComponent component = STREAMLUA__TOPOLOGY_COMPONENT__INIT;
    Streamlua__TopologyComponent *components[] = {&component};
    Streamlua__Topology message = STREAMLUA__TOPOLOGY__INIT;
    struct sl_buf bytes = {0};
    message.format = SL_TOPOLOGY_FORMAT;
    message.n_components = 1;
    message.components = components;
    component.kind = (Streamlua__ComponentKind)5;
    pack(&message, &bytes);
    assert_refused(bytes.data, bytes.size, SL_EPROTO);
    component.kind = (Streamlua__ComponentKind)0;
    pack(&message, &bytes);
    assert_refused(bytes.data, bytes.size, SL_EPROTO);
    component.kind = (Streamlua__ComponentKind)SL_COMPONENT_BOLT;
    component.n_inputs = 1;
    component.inputs = inputs;
    for (int grouping = -1; grouping <= 10; grouping++) {
        input.grouping = (Streamlua__GroupingKind)grouping;
        pack(&message, &bytes);
        if (grouping >= 1 && grouping <= 9) {
            sl_topology_free(decode_exactly(bytes.data, bytes.size));
            assert_int_equal(sl_err_last()->code, 0);
        } else {
            assert_refused(bytes.data, bytes.size, SL_EPROTO);
        }
    }
    sl_buf_destroy(&bytes);
}

static void
test_unknown_format_and_unsorted_settings_are_refused(void **state)
{
    (void)state;
    Streamlua__TopologySetting b = STREAMLUA__TOPOLOGY_SETTING__INIT;
    Streamlua__TopologySetting a = STREAMLUA__TOPOLOGY_SETTING__INIT;
    Streamlua__TopologySetting *settings[] = {&b, &a};
    Streamlua__Topology message = STREAMLUA__TOPOLOGY__INIT;
    struct sl_buf bytes = {0};
    a.key = (char *)"a";
    b.key = (char *)"b";
    message.format = 2;
    pack(&message, &bytes);
    assert_refused(bytes.data, bytes.size, SL_EPROTO);
    message.format = SL_TOPOLOGY_FORMAT;
    message.n_settings = 2;
    message.settings = settings;
    pack(&message, &bytes);
    assert_refused(bytes.data, bytes.size, SL_EPROTO);
    a.key = (char *)"b";
    pack(&message, &bytes);
    assert_refused(bytes.data, bytes.size, SL_EPROTO);
    assert_refused((const uint8_t *)"", 0, SL_EPROTO);
    sl_buf_destroy(&bytes);
}

/* Counts are checked on the bytes: two bytes an item must not become a struct an item. */
static void
test_too_many_items_are_refused_before_unpacking(void **state)
{
    (void)state;
    struct sl_buf bytes = {0};
    for (uint32_t i = 0; i <= SL_TOPOLOGY_COMPONENTS_MAX; i++) {
        sl_buf_append(&bytes, "\x22\x00", 2);
    }
    assert_refused(bytes.data, bytes.size, SL_ELIMIT);
    sl_buf_destroy(&bytes);
}

static void
test_texts_that_are_no_utf8_are_not_encoded(void **state)
{
    (void)state;
    struct sl_buf bytes = {0};
    struct sl_topology *t = sl_topology_new((struct sl_topology_text){"a\0b", 3});
    assert_int_equal(sl_topology_encode(t, &bytes), SL_EINVAL);
    assert_int_equal(bytes.size, 0);
    sl_err_clear();
    sl_topology_free(t);
    sl_buf_destroy(&bytes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_topologies_survive_the_round_trip),
        cmocka_unit_test(test_system_topology_survives_the_round_trip),
        cmocka_unit_test(test_encoding_appends),
        cmocka_unit_test(test_truncation_at_every_byte_is_harmless),
        cmocka_unit_test(test_damaged_bytes_are_harmless),
        cmocka_unit_test(test_unknown_enum_values_are_refused),
        cmocka_unit_test(test_unknown_format_and_unsorted_settings_are_refused),
        cmocka_unit_test(test_too_many_items_are_refused_before_unpacking),
        cmocka_unit_test(test_texts_that_are_no_utf8_are_not_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
