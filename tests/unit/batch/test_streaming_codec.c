// labels: short
/* Events of the block log and checkpoints as bytes: round trips, and every truncation. */
#include "batch/streaming_codec.h"
#include "rig.h"

/* What a decoder was given: the event in words. */
static int
write_down(void *ctx, const struct sl_block_event *event)
{
    struct sl_buf *text = ctx;
    switch (event->kind) {
    case SL_BLOCK_EVENT_ADDED:
        sl_buf_printf(text, "added %s at %lld: %llu of %lld, %s, %s %lld+%lld", event->input,
                      (long long)event->time, (unsigned long long)event->block.id,
                      (long long)event->block.records, event->block.worker, event->block.wal_path,
                      (long long)event->block.wal_offset, (long long)event->block.wal_length);
        break;
    case SL_BLOCK_EVENT_ALLOCATED:
        sl_buf_printf(text, "allocated %lld:", (long long)event->time);
        for (size_t i = 0; i < event->input_count; i++) {
            sl_buf_printf(text, " %s(", event->inputs[i].name);
            for (size_t j = 0; j < event->inputs[i].id_count; j++) {
                sl_buf_printf(text, " %llu", (unsigned long long)event->inputs[i].ids[j]);
            }
            sl_buf_append_str(text, " )");
        }
        break;
    case SL_BLOCK_EVENT_CLEANED:
        sl_buf_append_str(text, "cleaned");
        for (size_t i = 0; i < event->time_count; i++) {
            sl_buf_printf(text, " %lld", (long long)event->times[i]);
        }
        break;
    }
    return 0;
}

static void
expect_event(const struct sl_block_event *event, const char *expected)
{
    struct sl_buf bytes = {0};
    struct sl_buf text = {0};
    sl_block_event_encode(event, &bytes);
    assert_int_equal(sl_block_event_decode(bytes.data, bytes.size, write_down, &text), 0);
    assert_string_equal(sl_buf_str(&text), expected);
    for (size_t size = 0; size < bytes.size; size++) {
        /* A block of the size lets a sanitizer see a read past the end. */
        uint8_t *exact = malloc(size > 0 ? size : 1);
        memcpy(exact, bytes.data, size);
        sl_buf_clear(&text);
        int rc = sl_block_event_decode(exact, size, write_down, &text);
        assert_int_equal(rc, SL_EPROTO);
        assert_int_equal(text.size, 0);
        free(exact);
    }
    sl_buf_destroy(&bytes);
    sl_buf_destroy(&text);
}

static void
test_block_event_decode_gives_what_was_encoded(void **state)
{
    (void)state;
    struct sl_block_event added = {
        .kind = SL_BLOCK_EVENT_ADDED,
        .time = 1234,
        .input = "in",
        .block = {.id = UINT64_MAX,
                  .records = 7,
                  .worker = "w1",
                  .wal_path = "log/1\xe9",
                  .wal_offset = 24,
                  .wal_length = 100},
    };
    expect_event(&added, "added in at 1234: 18446744073709551615 of 7, w1, log/1\xe9 24+100");
    const uint64_t ids[] = {1, 1ull << 63};
    const struct sl_block_event_input inputs[] = {{"a", ids, 2}, {"b", NULL, 0}};
    struct sl_block_event allocated = {
        .kind = SL_BLOCK_EVENT_ALLOCATED, .time = 2000, .inputs = inputs, .input_count = 2};
    expect_event(&allocated, "allocated 2000: a( 1 9223372036854775808 ) b( )");
    const int64_t times[] = {1000, 2000};
    struct sl_block_event cleaned = {
        .kind = SL_BLOCK_EVENT_CLEANED, .times = times, .time_count = 2};
    expect_event(&cleaned, "cleaned 1000 2000");
}

static int
refuse(void *ctx, const struct sl_block_event *event)
{
    (void)ctx;
    (void)event;
    return SL_ECONFLICT;
}

static void
test_block_event_decode_returns_what_its_reader_says(void **state)
{
    (void)state;
    struct sl_buf bytes = {0};
    struct sl_block_event cleaned = {.kind = SL_BLOCK_EVENT_CLEANED};
    sl_block_event_encode(&cleaned, &bytes);
    assert_int_equal(sl_block_event_decode(bytes.data, bytes.size, refuse, NULL), SL_ECONFLICT);
    sl_buf_destroy(&bytes);
}

static void
test_block_event_decode_knows_no_other_kind(void **state)
{
    (void)state;
    /* Field 15, empty: an event of a version to come. */
    static const uint8_t unknown[] = {15 << 3 | 2, 0};
    struct sl_buf text = {0};
    assert_int_equal(sl_block_event_decode(unknown, sizeof(unknown), write_down, &text), SL_EPROTO);
    assert_int_equal(sl_block_event_decode(unknown, 0, write_down, &text), SL_EPROTO);
    assert_int_equal(text.size, 0);
    sl_buf_destroy(&text);
}

static void
encode_checkpoint(int64_t batch_ms, struct sl_buf *out)
{
    int64_t pending[] = {3000, 4000};
    struct sl_streaming_saved saved[] = {{1000, "file-1"}, {2000, ""}};
    struct sl_checkpoint_stream streams[] = {
        {"in", SL_STREAMING_INPUT, NULL, 0},
        {"sums", SL_STREAMING_STATEFUL, saved, 2},
    };
    struct sl_checkpoint checkpoint = {
        .name = "counts",
        .script = "counts.lua",
        .script_hash = "abc",
        .time = 4000,
        .zero_time = -1000,
        .batch_ms = batch_ms,
        .pending = pending,
        .pending_count = 2,
        .streams = streams,
        .stream_count = 2,
        .extra = (const uint8_t *)"a\0b",
        .extra_len = 3,
    };
    assert_int_equal(sl_checkpoint_encode(&checkpoint, out), 0);
}

static void
test_checkpoint_decode_gives_what_was_encoded(void **state)
{
    (void)state;
    struct sl_buf bytes = {0};
    /* What is in front stays there. */
    sl_buf_append_str(&bytes, "head");
    encode_checkpoint(500, &bytes);
    assert_memory_equal(bytes.data, "head", 4);
    struct sl_checkpoint read;
    sl_checkpoint_create(&read);
    assert_int_equal(sl_checkpoint_decode(bytes.data + 4, bytes.size - 4, &read), 0);
    /* What was read has no part in the bytes. */
    memset(bytes.data, 0xff, bytes.size);
    assert_string_equal(read.name, "counts");
    assert_string_equal(read.script, "counts.lua");
    assert_string_equal(read.script_hash, "abc");
    assert_int_equal(read.time, 4000);
    assert_int_equal(read.zero_time, -1000);
    assert_int_equal(read.batch_ms, 500);
    assert_int_equal(read.pending_count, 2);
    assert_int_equal(read.pending[1], 4000);
    assert_int_equal(read.extra_len, 3);
    assert_memory_equal(read.extra, "a\0b", 3);
    assert_int_equal(read.stream_count, 2);
    assert_string_equal(read.streams[0].name, "in");
    assert_int_equal(read.streams[0].saved_count, 0);
    assert_int_equal(read.streams[1].flags, SL_STREAMING_STATEFUL);
    assert_int_equal(read.streams[1].saved_count, 2);
    assert_int_equal(read.streams[1].saved[0].time, 1000);
    assert_string_equal(read.streams[1].saved[0].text, "file-1");
    assert_string_equal(read.streams[1].saved[1].text, "");
    sl_checkpoint_destroy(&read);
    sl_buf_destroy(&bytes);
}

static void
test_checkpoint_decode_survives_every_truncation(void **state)
{
    (void)state;
    struct sl_buf bytes = {0};
    encode_checkpoint(500, &bytes);
    for (size_t size = 0; size < bytes.size; size++) {
        uint8_t *exact = malloc(size > 0 ? size : 1);
        memcpy(exact, bytes.data, size);
        struct sl_checkpoint read;
        sl_checkpoint_create(&read);
        int rc = sl_checkpoint_decode(exact, size, &read);
        /* Between two fields it is a document with less in it. */
        assert_true(rc == 0 || rc == SL_EPROTO);
        sl_checkpoint_destroy(&read);
        free(exact);
    }
    sl_buf_destroy(&bytes);
}

static void
test_checkpoint_decode_refuses_other_formats_and_no_interval(void **state)
{
    (void)state;
    static const int64_t intervals[] = {0, -500};
    struct sl_checkpoint read;
    for (size_t i = 0; i < array_size(intervals); i++) {
        struct sl_buf bytes = {0};
        encode_checkpoint(intervals[i], &bytes);
        sl_checkpoint_create(&read);
        assert_int_equal(sl_checkpoint_decode(bytes.data, bytes.size, &read), SL_EPROTO);
        sl_checkpoint_destroy(&read);
        sl_buf_destroy(&bytes);
    }
    /* No field at all: no format. */
    sl_checkpoint_create(&read);
    assert_int_equal(sl_checkpoint_decode((const uint8_t *)"", 0, &read), SL_EPROTO);
    sl_checkpoint_destroy(&read);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_block_event_decode_gives_what_was_encoded),
    cmocka_unit_test(test_block_event_decode_returns_what_its_reader_says),
    cmocka_unit_test(test_block_event_decode_knows_no_other_kind),
    cmocka_unit_test(test_checkpoint_decode_gives_what_was_encoded),
    cmocka_unit_test(test_checkpoint_decode_survives_every_truncation),
    cmocka_unit_test(test_checkpoint_decode_refuses_other_formats_and_no_interval),
};

UNIT_MAIN(tests)
