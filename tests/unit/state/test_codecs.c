/* labels: short */
#include "base/alloc.h"
#include "base/err.h"
#include "state/log_codec.h"
#include "state/types.h"
#include "state/value_codec.h"
#include "unit.h"

/* Every shorter form of an encoding is refused or decodes to something; it never does harm. */
typedef int (*decode_fn)(const uint8_t *data, size_t size);

static void
decode_at_every_length(const struct sl_buf *buf, decode_fn decode)
{
    for (size_t size = 0; size < buf->size; size++) {
        /* In memory of just this size, so that the sanitizer sees a read beyond it. */
        uint8_t *part = sl_alloc(size);
        memcpy(part, buf->data, size);
        int rc = decode(part, size);
        assert_true(rc == 0 || rc == SL_EPROTO || rc == SL_ELIMIT);
        sl_free(part);
    }
}

static int
decode_envelope(const uint8_t *data, size_t size)
{
    struct sl_arena arena;
    struct sl_state_envelope envelope;
    sl_arena_create(&arena, 0, 0);
    int rc = sl_state_envelope_decode(data, size, &arena, &envelope);
    sl_arena_destroy(&arena);
    return rc;
}

static void
test_envelope_round_trip(void **state)
{
    (void)state;
    static const uint8_t value[] = {0, 1, 2, 255, 0};
    struct sl_state_envelope in = {.attempt = 77, .value = value, .size = sizeof(value)};
    struct sl_state_envelope out;
    struct sl_arena arena;
    struct sl_buf buf = {0};
    memset(in.writer, 0xab, sizeof(in.writer));
    sl_state_envelope_encode(&in, &buf);
    assert_true(buf.size <= sizeof(value) + SL_STATE_ENVELOPE_BYTES_MAX);
    sl_arena_create(&arena, 0, 0);
    assert_int_equal(sl_state_envelope_decode(buf.data, buf.size, &arena, &out), 0);
    assert_int_equal(out.attempt, 77);
    assert_memory_equal(out.writer, in.writer, sizeof(in.writer));
    assert_int_equal(out.size, sizeof(value));
    assert_memory_equal(out.value, value, sizeof(value));
    assert_int_equal(out.manifest.count, 0);
    sl_arena_destroy(&arena);
    decode_at_every_length(&buf, decode_envelope);
    sl_buf_destroy(&buf);
}

static void
test_envelope_with_pieces_round_trip(void **state)
{
    (void)state;
    struct sl_state_envelope in = {
        .attempt = UINT64_MAX,
        .manifest = {.id = "0123456789abcdef0123456789abcdef",
                     .count = 3,
                     .size_bytes = 1500000,
                     .hash = UINT64_MAX},
    };
    struct sl_state_envelope out;
    struct sl_arena arena;
    struct sl_buf buf = {0};
    sl_state_envelope_encode(&in, &buf);
    assert_true(buf.size <= SL_STATE_ENVELOPE_BYTES_MAX);
    sl_arena_create(&arena, 0, 0);
    assert_int_equal(sl_state_envelope_decode(buf.data, buf.size, &arena, &out), 0);
    assert_memory_equal(&out.manifest, &in.manifest, sizeof(in.manifest));
    sl_arena_destroy(&arena);
    decode_at_every_length(&buf, decode_envelope);
    /* A list of pieces that points elsewhere is none. */
    static const char *const bad_ids[] = {"../../etc/passwd", "",
                                          "0123456789abcdef/123456789abcdef"};
    for (size_t i = 0; i < array_size(bad_ids); i++) {
        sl_buf_clear(&buf);
        memset(in.manifest.id, 0, sizeof(in.manifest.id));
        strcpy(in.manifest.id, bad_ids[i]);
        sl_state_envelope_encode(&in, &buf);
        assert_int_equal(decode_envelope(buf.data, buf.size), SL_EPROTO);
    }
    sl_buf_destroy(&buf);
}

static void
test_envelope_refuses_what_no_store_wrote(void **state)
{
    (void)state;
    assert_int_equal(decode_envelope(NULL, 0), 0);
    static const char *const texts[] = {"hello", "{\"json\":1}", "\x08\x02", "\xff\xff\xff\xff"};
    for (size_t i = 0; i < array_size(texts); i++) {
        assert_int_equal(decode_envelope((const uint8_t *)texts[i], strlen(texts[i])), SL_EPROTO);
    }
    size_t size = SL_STATE_NODE_BYTES_MAX + 1;
    uint8_t *large = sl_calloc(size, 1);
    assert_int_equal(decode_envelope(large, size), SL_ELIMIT);
    sl_free(large);
}

static int
decode_owner(const uint8_t *data, size_t size)
{
    struct sl_state_owner owner;
    return sl_state_owner_decode(data, size, &owner);
}

static int
decode_leader(const uint8_t *data, size_t size)
{
    struct sl_state_leader_info info;
    return sl_state_leader_info_decode(data, size, &info);
}

static void
test_owner_and_leader_round_trip(void **state)
{
    (void)state;
    struct sl_state_owner owner = {.name = "update", .host = "h1", .pid = 42, .wall_ms = -5};
    struct sl_state_owner owner_out;
    struct sl_state_leader_info info = {
        .id = "m1", .address = "10.0.0.1:7000", .token = UINT64_MAX - 1};
    struct sl_state_leader_info info_out;
    struct sl_buf buf = {0};
    sl_state_owner_encode(&owner, &buf);
    assert_int_equal(sl_state_owner_decode(buf.data, buf.size, &owner_out), 0);
    assert_string_equal(owner_out.name, "update");
    assert_string_equal(owner_out.host, "h1");
    assert_int_equal(owner_out.pid, 42);
    assert_int_equal(owner_out.wall_ms, -5);
    decode_at_every_length(&buf, decode_owner);
    sl_buf_clear(&buf);
    sl_state_leader_info_encode(&info, &buf);
    assert_int_equal(sl_state_leader_info_decode(buf.data, buf.size, &info_out), 0);
    assert_string_equal(info_out.id, "m1");
    assert_string_equal(info_out.address, "10.0.0.1:7000");
    assert_int_equal(info_out.token, info.token);
    decode_at_every_length(&buf, decode_leader);
    sl_buf_destroy(&buf);
}

struct seen {
    int records;
    struct sl_log_record last;
};

static int
on_record(void *ctx, const struct sl_log_record *record)
{
    struct seen *seen = ctx;
    seen->records++;
    seen->last = *record;
    if (record->effect_count == 2) {
        assert_string_equal(record->effects[0].path, "/a");
        assert_int_equal(record->effects[0].kind, SL_STATE_CREATE);
        assert_memory_equal(record->effects[0].data, "x\0y", 3);
        assert_int_equal(record->effects[0].owner, 9);
        assert_int_equal(record->effects[1].kind, SL_STATE_DELETE);
    }
    if (record->node_count == 1) {
        assert_string_equal(record->nodes[0]->path, "/n");
        assert_int_equal(record->nodes[0]->version, 3);
        assert_int_equal(record->nodes[0]->creates, 4);
        assert_int_equal(record->sessions[1], 12);
    }
    return 0;
}

static int
decode_log(const uint8_t *data, size_t size)
{
    struct seen seen = {0};
    return sl_log_decode(data, size, on_record, &seen);
}

static void
test_log_round_trip(void **state)
{
    (void)state;
    struct sl_tree_effect effects[] = {
        {.kind = SL_STATE_CREATE, .path = "/a", .data = "x\0y", .size = 3, .owner = 9},
        {.kind = SL_STATE_DELETE, .path = "/b"},
    };
    struct sl_tree_node node = {.path = (char *)"/n", .version = 3, .creates = 4};
    const struct sl_tree_node *nodes[] = {&node};
    uint64_t sessions[] = {11, 12};
    struct sl_log_record first = {.zxid = 5,
                                  .effects = effects,
                                  .effect_count = 2,
                                  .session_change = SL_LOG_SESSION_CLOSE,
                                  .session = 9};
    struct sl_log_record second = {
        .zxid = 6, .nodes = nodes, .node_count = 1, .sessions = sessions, .session_count = 2};
    struct sl_buf buf = {0};
    struct seen seen = {0};
    sl_log_append(&buf, &first);
    assert_int_equal(sl_log_decode(buf.data, buf.size, on_record, &seen), 0);
    assert_int_equal(seen.last.zxid, 5);
    assert_int_equal(seen.last.effect_count, 2);
    assert_int_equal(seen.last.session_change, SL_LOG_SESSION_CLOSE);
    assert_int_equal(seen.last.session, 9);
    sl_log_append(&buf, &second);
    seen.records = 0;
    assert_int_equal(sl_log_decode(buf.data, buf.size, on_record, &seen), 0);
    assert_int_equal(seen.records, 2);
    assert_int_equal(seen.last.node_count, 1);
    decode_at_every_length(&buf, decode_log);
    sl_buf_destroy(&buf);
}

static void
test_log_refuses_paths_that_are_none(void **state)
{
    (void)state;
    static const char *const paths[] = {"", "a", "/a/../b", "/a/"};
    for (size_t i = 0; i < array_size(paths); i++) {
        struct sl_tree_effect effect = {.kind = SL_STATE_CREATE, .path = paths[i]};
        struct sl_log_record record = {.zxid = 1, .effects = &effect, .effect_count = 1};
        struct sl_buf buf = {0};
        sl_log_append(&buf, &record);
        assert_int_equal(decode_log(buf.data, buf.size), SL_EPROTO);
        sl_buf_destroy(&buf);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_envelope_round_trip),
        cmocka_unit_test(test_envelope_with_pieces_round_trip),
        cmocka_unit_test(test_envelope_refuses_what_no_store_wrote),
        cmocka_unit_test(test_owner_and_leader_round_trip),
        cmocka_unit_test(test_log_round_trip),
        cmocka_unit_test(test_log_refuses_paths_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
