/* labels: short */
/* RpcRequest and RpcReply by hand against protobuf-c and the check before it: the same bytes are
 * accepted, with the same contents, and what either writes the other reads. */
#include "base/err.h"
#include "base/random.h"
#include "rpc.pb-c.h"
#include "rpc/rpc_codec.h"
#include "unit.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/pb_check.h"

static const struct sl_pb_limits limits = {.max_size = SL_FRAME_CONTROL_MAX, .max_fields = 64};

/* What protobuf-c makes of the bytes; NULL when they are refused. */
static ProtobufCMessage *
unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, size_t size,
       struct sl_arena *arena)
{
    ProtobufCMessage *message;
    return sl_message_unpack(descriptor, data, size, &limits, arena, &message) == 0 ? message
                                                                                    : NULL;
}

static void
compare_request(const uint8_t *data, size_t size)
{
    struct sl_arena arena;
    struct sl__rpc_request_message got;
    sl_arena_create(&arena, 0, 0);
    const Streamlua__RpcRequest *expected = (const Streamlua__RpcRequest *)unpack(
        &streamlua__rpc_request__descriptor, data, size, &arena);
    int rc = sl__rpc_decode_request(data, size, &arena, &got);
    assert_int_equal(rc == 0, expected != NULL);
    if (expected != NULL) {
        assert_true(got.id == expected->id);
        assert_string_equal(got.endpoint, expected->endpoint);
        assert_int_equal(got.method, expected->method);
        assert_true(got.token == expected->token);
        assert_int_equal(got.timeout_ms, expected->timeout_ms);
        assert_int_equal(got.size, expected->body.len);
        assert_memory_equal(got.body, expected->body.data, got.size);
    }
    sl_arena_destroy(&arena);
}

static void
compare_reply(const uint8_t *data, size_t size)
{
    struct sl_arena arena;
    struct sl__rpc_reply_message got;
    sl_arena_create(&arena, 0, 0);
    const Streamlua__RpcReply *expected =
        (const Streamlua__RpcReply *)unpack(&streamlua__rpc_reply__descriptor, data, size, &arena);
    int rc = sl__rpc_decode_reply(data, size, &arena, &got);
    assert_int_equal(rc == 0, expected != NULL && expected->status != 0);
    if (rc == 0) {
        assert_true(got.id == expected->id);
        assert_int_equal(got.status, expected->status);
        assert_string_equal(got.reason, expected->reason);
        assert_int_equal(got.size, expected->body.len);
        assert_memory_equal(got.body, expected->body.data, got.size);
        assert_int_equal(got.code == 0, got.status == 1);
    }
    sl_arena_destroy(&arena);
}

static uint64_t
draw_number(struct sl_random *random)
{
    return sl_random_u64(random) >> sl_random_below(random, 64);
}

static void
draw_text(struct sl_random *random, char *text, size_t most)
{
    size_t size = sl_random_below(random, most);
    for (size_t i = 0; i < size; i++) {
        text[i] = (char)('a' + sl_random_below(random, 26));
    }
    text[size] = '\0';
}

static void
draw_request(struct sl_random *random, struct sl_buf *out)
{
    char endpoint[40];
    uint8_t body[300];
    draw_text(random, endpoint, sizeof(endpoint));
    for (size_t i = 0; i < sizeof(body); i++) {
        body[i] = (uint8_t)sl_random_u64(random);
    }
    struct sl__rpc_request_message request = {
        .id = draw_number(random),
        .endpoint = endpoint,
        .method = (uint32_t)draw_number(random),
        .token = draw_number(random),
        .timeout_ms = (uint32_t)draw_number(random),
        .body = body,
        .size = sl_random_below(random, sizeof(body)),
    };
    sl__rpc_encode_request(&request, out);
    struct sl_arena arena;
    struct sl_buf packed = {0};
    sl_arena_create(&arena, 0, 0);
    ProtobufCMessage *message =
        unpack(&streamlua__rpc_request__descriptor, out->data, out->size, &arena);
    assert_int_equal(message != NULL || out->size == 0, true);
    if (message != NULL) {
        /* Byte by byte what protobuf-c writes. */
        sl_message_pack(message, &packed);
        assert_int_equal(packed.size, out->size);
        assert_memory_equal(packed.data, out->data, out->size);
    }
    sl_buf_destroy(&packed);
    sl_arena_destroy(&arena);
}

static void
draw_reply(struct sl_random *random, struct sl_buf *out)
{
    char reason[80];
    draw_text(random, reason, sizeof(reason));
    struct sl__rpc_reply_message reply = {
        .id = draw_number(random),
        .status = 1 + (uint32_t)sl_random_below(random, 5),
        .code = SL_EFENCED,
        .reason = reason,
        .body = (const uint8_t *)"body",
        .size = sl_random_below(random, 5),
    };
    sl__rpc_encode_reply(&reply, out);
}

static void
test_messages_are_those_of_protobuf(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 1);
    for (int i = 0; i < 2000; i++) {
        struct sl_buf bytes = {0};
        draw_request(&random, &bytes);
        compare_request(bytes.data, bytes.size);
        sl_buf_clear(&bytes);
        draw_reply(&random, &bytes);
        compare_reply(bytes.data, bytes.size);
        sl_buf_destroy(&bytes);
    }
}

static void
test_cut_and_damaged_bytes_get_the_same_verdict(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 2);
    for (int i = 0; i < 300; i++) {
        struct sl_buf bytes = {0};
        bool is_request = i % 2 == 0;
        void (*compare)(const uint8_t *data, size_t size) =
            is_request ? compare_request : compare_reply;
        (is_request ? draw_request : draw_reply)(&random, &bytes);
        for (size_t size = 0; size < bytes.size && size < 100; size++) {
            compare(bytes.data, size);
        }
        for (int k = 0; k < 200 && bytes.size > 0; k++) {
            size_t at = sl_random_below(&random, bytes.size < 60 ? bytes.size : 60);
            uint8_t old = bytes.data[at];
            bytes.data[at] = (uint8_t)sl_random_u64(&random);
            compare(bytes.data, bytes.size);
            bytes.data[at] = old;
        }
        sl_buf_destroy(&bytes);
    }
}

static void
test_fields_of_newer_writers_are_skipped_and_bombs_refused(void **state)
{
    (void)state;
    /* Tag 15: a varint, 8 bytes, bytes, 4 bytes; then the last of two methods counts. */
    static const uint8_t newer[] = {0x78, 5, 0x79, 1,    2, 3, 4, 5, 6,    7, 8,    0x7a,
                                    2,    9, 9,    0x7d, 1, 2, 3, 4, 0x18, 7, 0x18, 9};
    uint8_t many[2 * 65];
    compare_request(newer, sizeof(newer));
    compare_reply(newer, sizeof(newer));
    for (size_t i = 0; i < sizeof(many); i += 2) {
        many[i] = 0x08;
        many[i + 1] = 1;
    }
    struct sl__rpc_request_message message;
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 1024);
    assert_int_equal(sl__rpc_decode_request(many, sizeof(many) - 2, &arena, &message), 0);
    assert_int_equal(sl__rpc_decode_request(many, sizeof(many), &arena, &message), SL_ELIMIT);
    compare_request(many, sizeof(many));
    compare_request(many, sizeof(many) - 2);
    sl_arena_destroy(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_messages_are_those_of_protobuf),
    cmocka_unit_test(test_cut_and_damaged_bytes_get_the_same_verdict),
    cmocka_unit_test(test_fields_of_newer_writers_are_skipped_and_bombs_refused),
};

UNIT_MAIN(tests)
