#include "wire/frame.h"

#include "base/err.h"
#include "base/random.h"
#include "unit.h"

/* What the decoder gave out. */
struct sink {
    int count;
    struct sl_buf payloads;
    struct sl_frame_header last;
    int stop_at;
};

static int
on_frame(void *ctx, const struct sl_frame_header *header, const uint8_t *payload)
{
    struct sink *sink = ctx;
    sink->count++;
    sink->last = *header;
    sl_buf_append(&sink->payloads, payload, header->size);
    return sink->stop_at == sink->count ? sl_err_set(SL_EUSER, "enough") : 0;
}

static void
append(struct sl_buf *out, uint16_t type, uint16_t flags, uint32_t count, const char *text)
{
    struct sl_frame_header header = {(uint32_t)strlen(text), type, flags, count};
    sl_frame_append(out, &header, text);
}

static void
test_layout_is_the_documented_one(void **state)
{
    (void)state;
    struct sl_buf out = {0};
    append(&out, 5, 0, 3, "hey");
    assert_int_equal(out.size, 19);
    assert_memory_equal(out.data, "\x03\0\0\0\x05\0\0\0\x03\0\0\0\x01\0\x73\x4chey", 19);
    sl_buf_destroy(&out);
}

static void
test_frames_survive_any_cutting(void **state)
{
    (void)state;
    struct sl_buf bytes = {0};
    append(&bytes, 5, 0, 1, "first");
    append(&bytes, SL_FRAME_FIRST_DATA, SL_FRAME_HAS_CRC, 7, "second one");
    append(&bytes, 6, 0, 1, "3");
    struct sl_random random;
    sl_random_seed(&random, 4);
    for (int round = 0; round < 300; round++) {
        struct sl_frame_decoder decoder;
        struct sink sink = {0};
        sl_frame_decoder_create(&decoder, 100, 100);
        for (size_t at = 0; at < bytes.size;) {
            size_t part = round == 0 ? 1 : 1 + sl_random_below(&random, 25);
            part = part < bytes.size - at ? part : bytes.size - at;
            assert_int_equal(
                sl_frame_decoder_feed(&decoder, bytes.data + at, part, on_frame, &sink), 0);
            at += part;
            assert_int_equal(sl_frame_decoder_is_partial(&decoder),
                             at != 21 && at != 47 && at != bytes.size);
        }
        assert_int_equal(sink.count, 3);
        assert_int_equal(sink.payloads.size, 16);
        assert_memory_equal(sink.payloads.data, "firstsecond one3", 16);
        sl_frame_decoder_destroy(&decoder);
        sl_buf_destroy(&sink.payloads);
    }
    sl_buf_destroy(&bytes);
}

static int
feed_text(const char *bytes, size_t size, uint32_t cap)
{
    struct sl_frame_decoder decoder;
    struct sink sink = {0};
    sl_frame_decoder_create(&decoder, cap, cap);
    int whole = sl_frame_decoder_feed(&decoder, (const uint8_t *)bytes, size, on_frame, &sink);
    assert_int_equal(sink.count, 0);
    /* Whatever came of it, nothing was kept for a payload that did not come. */
    assert_true(decoder.payload.capacity < 1024);
    if (whole != 0) {
        assert_int_equal(sl_frame_decoder_feed(&decoder, (const uint8_t *)"x", 1, on_frame, &sink),
                         SL_EPROTO);
    }
    sl_frame_decoder_destroy(&decoder);
    /* Byte by byte the verdict is the same. */
    sl_frame_decoder_create(&decoder, cap, cap);
    int rc = 0;
    for (size_t i = 0; i < size && rc == 0; i++) {
        rc = sl_frame_decoder_feed(&decoder, (const uint8_t *)bytes + i, 1, on_frame, &sink);
    }
    assert_int_equal(rc, whole);
    sl_frame_decoder_destroy(&decoder);
    sl_buf_destroy(&sink.payloads);
    return whole;
}

static void
test_bad_headers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        int rc;
        const char *message;
    } ROWS[] = {
        {"\0\0\0\0\5\0\0\0\1\0\0\0\1\0\x73\x4c", SL_EPROTO, "length 0"},
        {"\x65\0\0\0\5\0\0\0\1\0\0\0\1\0\x73\x4c", SL_ELIMIT, "101 bytes; the limit is 100"},
        {"\xff\xff\xff\xff\5\0\0\0\1\0\0\0\1\0\x73\x4c", SL_ELIMIT, "4294967295 bytes"},
        {"\xff\xff\xff\xff\x20\0\0\0\1\0\0\0\1\0\x73\x4c", SL_ELIMIT, "4294967295 bytes"},
        {"GET / HTTP/1.1\r\n", SL_EPROTO, ""},
        {"\5\0\0\0\5\0\0\0\1\0\0\0\2\0\x73\x4c", SL_EPROTO, "wrong magic"},
        {"\5\0\0\0\5\0\2\0\1\0\0\0\1\0\x73\x4c", SL_EPROTO, "unknown flags"},
        /* The cap itself is fine: only the payload is missing. */
        {"\x64\0\0\0\5\0\0\0\1\0\0\0\1\0\x73\x4c", 0, NULL},
    };
    for (size_t i = 0; i < array_size(ROWS); i++) {
        assert_int_equal(feed_text(ROWS[i].bytes, 16, 100), ROWS[i].rc);
        if (ROWS[i].message != NULL) {
            feed_text(ROWS[i].bytes, 16, 100);
            sl_err_clear();
            struct sl_frame_decoder decoder;
            sl_frame_decoder_create(&decoder, 100, 100);
            sl_frame_decoder_feed(&decoder, (const uint8_t *)ROWS[i].bytes, 16, NULL, NULL);
            assert_non_null(strstr(sl_err_last()->msg, ROWS[i].message));
            sl_frame_decoder_destroy(&decoder);
        }
    }
}

static void
test_control_and_data_have_caps_of_their_own(void **state)
{
    (void)state;
    struct sl_frame_decoder decoder;
    struct sink sink = {0};
    struct sl_buf bytes = {0};
    sl_frame_decoder_create(&decoder, 4, 8);
    append(&bytes, SL_FRAME_FIRST_DATA, 0, 1, "12345678");
    append(&bytes, SL_FRAME_FIRST_DATA - 1, 0, 1, "1234");
    append(&bytes, SL_FRAME_FIRST_DATA - 1, 0, 1, "12345");
    assert_int_equal(sl_frame_decoder_feed(&decoder, bytes.data, bytes.size, on_frame, &sink),
                     SL_ELIMIT);
    assert_int_equal(sink.count, 2);
    sl_frame_decoder_destroy(&decoder);
    sl_buf_destroy(&bytes);
    sl_buf_destroy(&sink.payloads);
}

static void
test_a_checksum_covers_header_and_payload(void **state)
{
    (void)state;
    struct sl_buf bytes = {0};
    append(&bytes, 5, SL_FRAME_HAS_CRC, 1, "payload");
    for (size_t i = 0; i < bytes.size; i++) {
        struct sl_frame_decoder decoder;
        struct sink sink = {0};
        /* The length is checked first, and a flag that is gone makes the magic wrong. */
        bytes.data[i] ^= 4;
        sl_frame_decoder_create(&decoder, 100, 100);
        int rc = sl_frame_decoder_feed(&decoder, bytes.data, bytes.size, on_frame, &sink);
        assert_true(rc != 0 || sink.count == 0);
        bytes.data[i] ^= 4;
        sl_frame_decoder_destroy(&decoder);
        sl_buf_destroy(&sink.payloads);
    }
    sl_buf_destroy(&bytes);
}

static void
test_crc32c_vectors(void **state)
{
    (void)state;
    /* RFC 3720, B.4. */
    uint8_t bytes[32];
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(sl_crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(sl_crc32c(0, bytes, 32), 0x62a8ab43);
    assert_int_equal(sl_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(sl_crc32c(sl_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

static void
test_a_refusal_of_the_receiver_ends_the_feeding(void **state)
{
    (void)state;
    struct sl_frame_decoder decoder;
    struct sink sink = {.stop_at = 1};
    struct sl_buf bytes = {0};
    append(&bytes, 2, 0, 1, "hello");
    append(&bytes, 5, 0, 1, "never seen");
    sl_frame_decoder_create(&decoder, 100, 100);
    assert_int_equal(sl_frame_decoder_feed(&decoder, bytes.data, bytes.size, on_frame, &sink),
                     SL_EUSER);
    assert_int_equal(sink.count, 1);
    sl_frame_decoder_destroy(&decoder);
    sl_buf_destroy(&bytes);
    sl_buf_destroy(&sink.payloads);
}

static void
test_begin_and_end_frame_what_was_written_between(void **state)
{
    (void)state;
    struct sl_frame_decoder decoder;
    struct sink sink = {0};
    struct sl_buf bytes = {0};
    append(&bytes, 1, 0, 1, "a");
    size_t start = sl_frame_begin(&bytes);
    sl_buf_append_str(&bytes, "in place");
    sl_frame_end(&bytes, start, 6, 2);
    sl_frame_decoder_create(&decoder, 100, 100);
    assert_int_equal(sl_frame_decoder_feed(&decoder, bytes.data, bytes.size, on_frame, &sink), 0);
    assert_int_equal(sink.count, 2);
    assert_int_equal(sink.last.type, 6);
    assert_int_equal(sink.last.count, 2);
    assert_memory_equal(sink.payloads.data, "ain place", 9);
    sl_frame_decoder_destroy(&decoder);
    sl_buf_destroy(&bytes);
    sl_buf_destroy(&sink.payloads);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_layout_is_the_documented_one),
    cmocka_unit_test(test_frames_survive_any_cutting),
    cmocka_unit_test(test_bad_headers_are_refused),
    cmocka_unit_test(test_control_and_data_have_caps_of_their_own),
    cmocka_unit_test(test_a_checksum_covers_header_and_payload),
    cmocka_unit_test(test_crc32c_vectors),
    cmocka_unit_test(test_a_refusal_of_the_receiver_ends_the_feeding),
    cmocka_unit_test(test_begin_and_end_frame_what_was_written_between),
};

UNIT_MAIN(tests)
