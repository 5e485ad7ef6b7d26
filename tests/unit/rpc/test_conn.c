/* labels: short */
/* The opening of connections and everything a hostile or foreign peer can send. */
#include "base/sha256.h"
#include "rpc/rpc_codec.h"
#include "rpc_fixture.h"
#include "wire/frame.h"

static const struct sl_rpc_options secret_options = {
    .role = "master", .name = "m1", .secret = "s3cret", .secret_size = 6, .cluster = "c1"};

/* A service, and a peer that speaks raw bytes. */
struct world {
    struct sl_sim *sim;
    struct sl_loop *server_loop;
    struct sl_rpc *server;
    struct sl_rpc_endpoint endpoint;
    int calls;
    struct sl_loop *loop;
    struct sl_stream *stream;
    struct sl_buf got;
    struct sl_buf first;
    bool is_closed;
    struct sl_err why;
    uint64_t closed_ms;
    /* Decoded from what came. */
    struct sl_frame_decoder decoder;
    uint8_t nonce[SL__RPC_NONCE_SIZE];
    int challenges;
    int welcomes;
    int replies;
    char refusal[256];
    char reply_reason[256];
};

static void
handle(void *ctx, struct sl_rpc_request *request)
{
    struct world *world = ctx;
    world->calls++;
    sl_rpc_reply(request, NULL, 0);
}

static const struct sl_rpc_method methods[] = {{1, handle}};

static int
on_frame(void *ctx, const struct sl_frame_header *header, const uint8_t *payload)
{
    struct world *world = ctx;
    struct sl_arena arena;
    struct sl__rpc_hello hello;
    struct sl__rpc_reply_message reply;
    const char *reason;
    sl_arena_create(&arena, 0, 0);
    switch (header->type) {
    case SL_FRAME_CHALLENGE:
        assert_int_equal(sl__rpc_decode_challenge(payload, header->size, &arena, &hello), 0);
        memcpy(world->nonce, hello.nonce, sizeof(world->nonce));
        world->challenges++;
        break;
    case SL_FRAME_WELCOME:
        world->welcomes++;
        break;
    case SL_FRAME_REPLY:
        assert_int_equal(sl__rpc_decode_reply(payload, header->size, &arena, &reply), 0);
        snprintf(world->reply_reason, sizeof(world->reply_reason), "%s", reply.reason);
        world->replies++;
        break;
    default:
        assert_int_equal(header->type, SL_FRAME_REFUSED);
        assert_int_equal(sl__rpc_decode_refused(payload, header->size, &arena, &reason), 0);
        snprintf(world->refusal, sizeof(world->refusal), "%s", reason);
    }
    sl_arena_destroy(&arena);
    return 0;
}

static void
on_data(void *ctx, const uint8_t *data, size_t len)
{
    struct world *world = ctx;
    assert_int_equal(sl_frame_decoder_feed(&world->decoder, data, len, on_frame, world), 0);
}

static void
on_close(void *ctx, const struct sl_err *why)
{
    struct world *world = ctx;
    world->is_closed = true;
    world->why = *why;
    world->closed_ms = sl_sim_now_ms(world->sim);
    world->stream = NULL;
}

static const struct sl_stream_handler handler = {NULL, on_data, NULL, on_close};

static void
connect_raw(struct world *world)
{
    struct sl_address address;
    world->is_closed = false;
    world->challenges = 0;
    sl_frame_decoder_destroy(&world->decoder);
    sl_frame_decoder_create(&world->decoder, SL_FRAME_CONTROL_MAX, 0);
    assert_int_equal(sl_address_parse(sl_rpc_address(world->server), &address), 0);
    assert_int_equal(
        sl_stream_connect(world->loop, &address, NULL, &handler, world, &world->stream), 0);
    sl_sim_run_for(world->sim, 10);
    assert_int_equal(world->challenges, 1);
}

static void
open_world(struct world *world, const struct sl_rpc_options *options)
{
    struct sl_rpc_endpoint_options endpoint = {
        .name = "tm", .methods = methods, .method_count = 1, .ctx = world};
    memset(world, 0, sizeof(*world));
    world->sim = sl_sim_new(&(struct sl_sim_options){.seed = 3});
    world->server_loop = sl_sim_loop_new(world->sim, "127.0.0.2");
    world->server = sl_rpc_new(world->server_loop, options);
    assert_int_equal(sl_rpc_listen(world->server, "127.0.0.2:700"), 0);
    assert_int_equal(sl_rpc_endpoint_start(world->server, &world->endpoint, &endpoint), 0);
    world->loop = sl_sim_loop_new(world->sim, "127.0.0.3");
    connect_raw(world);
}

static void
close_world(struct world *world)
{
    sl_rpc_endpoint_stop(&world->endpoint);
    sl_rpc_free(world->server);
    sl_loop_free(world->server_loop);
    sl_loop_free(world->loop);
    sl_sim_free(world->sim);
    sl_frame_decoder_destroy(&world->decoder);
}

static void
send_bytes(struct world *world, const void *bytes, size_t size)
{
    if (world->stream != NULL) {
        sl_stream_write(world->stream, bytes, size);
    }
}

struct hello_options {
    uint32_t version;
    uint32_t min_version;
    const char *secret;
    const char *cluster;
};

/* A HELLO frame for the nonce that came last. */
static void
make_hello(const struct world *world, const struct hello_options *options, struct sl_buf *frame)
{
    struct sl__rpc_hello hello = {.version = options->version,
                                  .min_version = options->min_version,
                                  .role = "worker",
                                  .name = "w1",
                                  .cluster = options->cluster};
    struct sl_hmac hmac;
    uint8_t mac[SL_SHA256_SIZE] = {0};
    struct sl_buf body = {0};
    sl__rpc_encode_hello(&hello, &body);
    if (options->secret != NULL) {
        sl_hmac_create(&hmac, options->secret, strlen(options->secret));
        sl_hmac_update(&hmac, "streamlua hello", strlen("streamlua hello"));
        sl_hmac_update(&hmac, world->nonce, sizeof(world->nonce));
        sl_hmac_update(&hmac, body.data, body.size);
        sl_hmac_finish(&hmac, mac);
    }
    size_t start = sl_frame_begin(frame);
    sl_buf_append(frame, mac, sizeof(mac));
    sl_buf_append(frame, body.data, body.size);
    sl_frame_end(frame, start, SL_FRAME_HELLO, 1);
    sl_buf_destroy(&body);
}

static void
append_request(struct sl_buf *frame, uint32_t method)
{
    struct sl__rpc_request_message request = {.id = 1, .endpoint = "tm", .method = method};
    size_t start = sl_frame_begin(frame);
    sl__rpc_encode_request(&request, frame);
    sl_frame_end(frame, start, SL_FRAME_REQUEST, 1);
}

/* HELLO and, without waiting, a call. */
static void
say_hello_and_call(struct world *world, const struct hello_options *options)
{
    struct sl_buf frame = {0};
    make_hello(world, options, &frame);
    append_request(&frame, 1);
    send_bytes(world, frame.data, frame.size);
    sl_buf_destroy(&frame);
    sl_sim_run_for(world->sim, 100);
}

static const struct hello_options right = {1, 1, "s3cret", "c1"};

static void
test_S2_the_right_secret_opens(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, &secret_options);
    say_hello_and_call(&world, &right);
    assert_int_equal(world.welcomes, 1);
    assert_int_equal(world.calls, 1);
    assert_int_equal(world.replies, 1);
    assert_false(world.is_closed);
    close_world(&world);
}

static void
test_S2_a_wrong_or_missing_secret_is_refused_and_nothing_behind_it_is_read(void **state)
{
    (void)state;
    static const char *const SECRETS[] = {"S3cret", "s3cre", "s3cret2", "", NULL};
    for (size_t i = 0; i < array_size(SECRETS); i++) {
        struct world world;
        struct hello_options options = right;
        options.secret = SECRETS[i];
        open_world(&world, &secret_options);
        say_hello_and_call(&world, &options);
        assert_string_equal(world.refusal, "wrong secret");
        assert_int_equal(world.welcomes, 0);
        assert_int_equal(world.calls, 0);
        assert_true(world.is_closed);
        assert_int_equal(sl_rpc_stats(world.server)->refused, 1);
        close_world(&world);
    }
}

static void
test_S20_a_replayed_hello_is_refused(void **state)
{
    (void)state;
    struct world world;
    struct sl_buf frame = {0};
    open_world(&world, &secret_options);
    make_hello(&world, &right, &frame);
    send_bytes(&world, frame.data, frame.size);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.welcomes, 1);
    /* A second one on the same connection. */
    send_bytes(&world, frame.data, frame.size);
    sl_sim_run_for(world.sim, 100);
    assert_true(world.is_closed);
    /* The same bytes on another connection. */
    connect_raw(&world);
    append_request(&frame, 1);
    send_bytes(&world, frame.data, frame.size);
    sl_sim_run_for(world.sim, 100);
    assert_string_equal(world.refusal, "wrong secret");
    assert_int_equal(world.calls, 0);
    sl_buf_destroy(&frame);
    close_world(&world);
}

static void
test_any_other_first_frame_ends_the_connection(void **state)
{
    (void)state;
    struct world world;
    struct sl_buf frame = {0};
    open_world(&world, &secret_options);
    append_request(&frame, 1);
    send_bytes(&world, frame.data, frame.size);
    sl_sim_run_for(world.sim, 100);
    assert_true(world.is_closed);
    assert_int_equal(world.calls, 0);
    sl_buf_destroy(&frame);
    close_world(&world);
}

static void
test_versions(void **state)
{
    (void)state;
    static const struct {
        uint32_t version;
        uint32_t min_version;
        bool is_refused;
    } ROWS[] = {
        {5, 3, false},               /* the same */
        {4, 1, false},               /* older, still spoken */
        {3, 1, false}, {2, 1, true}, /* too old */
        {9, 4, false},               /* newer that still speaks ours */
        {9, 5, false}, {9, 6, true}, /* too new */
        {0, 0, true},
    };
    struct sl_rpc_options options = secret_options;
    options.version = 5;
    options.min_version = 3;
    for (size_t i = 0; i < array_size(ROWS); i++) {
        struct world world;
        struct hello_options hello = right;
        hello.version = ROWS[i].version;
        hello.min_version = ROWS[i].min_version;
        open_world(&world, &options);
        say_hello_and_call(&world, &hello);
        assert_int_equal(world.welcomes, !ROWS[i].is_refused);
        assert_int_equal(world.calls, !ROWS[i].is_refused);
        if (ROWS[i].is_refused) {
            assert_contains(world.refusal, "protocol version");
        }
        close_world(&world);
    }
}

static void
test_B13_another_cluster_is_refused_at_once_with_the_reason(void **state)
{
    (void)state;
    struct world world;
    struct hello_options options = right;
    options.cluster = "c2";
    open_world(&world, &secret_options);
    say_hello_and_call(&world, &options);
    assert_contains(world.refusal, "wrong cluster: this is c1");
    assert_int_equal(world.calls, 0);
    close_world(&world);
}

/* Frames that no peer of ours sends, before and after the opening. */
static void
test_bad_bytes_close_the_connection(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } ROWS[] = {
        {"\0\0\0\0\5\0\0\0\1\0\0\0\1\0\x73\x4c", 16},         /* length 0 */
        {"\1\0\x10\0\5\0\0\0\1\0\0\0\1\0\x73\x4c", 16},       /* cap + 1 */
        {"\xff\xff\xff\xff\5\0\0\0\1\0\0\0\1\0\x73\x4c", 16}, /* 0xffffffff */
        {"GET / HTTP/1.1\r\n\r\n", 18},                       /* wrong magic */
        {"\1\0\0\0\x20\0\0\0\1\0\0\0\1\0\x73\x4cx", 17},      /* data on a control connection */
        {"\1\0\0\0\x63\0\0\0\1\0\0\0\1\0\x73\x4cx", 17},      /* unknown type */
        {"\2\0\0\0\5\0\0\0\1\0\0\0\1\0\x73\x4c\x08\xff", 18}, /* cut-off varint */
        {"\1\0\0\0\7\0\0\0\1\0\0\0\1\0\x73\x4cx", 17},        /* a reply to the server */
    };
    for (size_t i = 0; i < 2 * array_size(ROWS); i++) {
        struct world world;
        bool is_open = i >= array_size(ROWS);
        open_world(&world, &secret_options);
        if (is_open) {
            say_hello_and_call(&world, &right);
            assert_int_equal(world.replies, 1);
        }
        send_bytes(&world, ROWS[i % array_size(ROWS)].bytes, ROWS[i % array_size(ROWS)].size);
        sl_sim_run_for(world.sim, 100);
        assert_true(world.is_closed);
        assert_int_equal(world.calls, is_open);
        close_world(&world);
    }
}

static void
test_the_cap_itself_is_allowed_only_when_open(void **state)
{
    (void)state;
    /* 1 MiB as length of a HELLO is above the cap of openings. */
    struct world world;
    open_world(&world, &secret_options);
    send_bytes(&world, "\0\0\x10\0\2\0\0\0\1\0\0\0\1\0\x73\x4c", 16);
    sl_sim_run_for(world.sim, 10);
    assert_true(world.is_closed);
    connect_raw(&world);
    say_hello_and_call(&world, &right);
    send_bytes(&world, "\0\0\x10\0\5\0\0\0\1\0\0\0\1\0\x73\x4c", 16);
    sl_sim_run_for(world.sim, 100);
    assert_false(world.is_closed);
    close_world(&world);
}

static void
test_an_unknown_message_is_answered_and_the_connection_lives(void **state)
{
    (void)state;
    struct world world;
    struct sl_buf frame = {0};
    open_world(&world, &secret_options);
    say_hello_and_call(&world, &right);
    append_request(&frame, 12345);
    send_bytes(&world, frame.data, frame.size);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.replies, 2);
    assert_string_equal(world.reply_reason, "unknown message");
    assert_false(world.is_closed);
    sl_buf_destroy(&frame);
    close_world(&world);
}

static void
test_a_silent_peer_is_closed_after_the_opening_limit(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, &secret_options);
    sl_sim_run_for(world.sim, 9900);
    assert_false(world.is_closed);
    sl_sim_run_for(world.sim, 200);
    assert_true(world.is_closed);
    close_world(&world);
}

/* One byte a second, before and after the opening: ten seconds are the limit of a frame. */
static void
test_S5_one_byte_a_second_is_closed_at_ten_seconds(void **state)
{
    (void)state;
    for (int is_open = 0; is_open < 2; is_open++) {
        struct world world;
        struct sl_buf frame = {0};
        open_world(&world, &secret_options);
        if (is_open) {
            say_hello_and_call(&world, &right);
            append_request(&frame, 1);
        } else {
            make_hello(&world, &right, &frame);
        }
        uint64_t start_ms = sl_sim_now_ms(world.sim);
        for (size_t i = 0; i < frame.size && !world.is_closed; i++) {
            send_bytes(&world, frame.data + i, 1);
            sl_sim_run_for(world.sim, 1000);
        }
        assert_true(world.is_closed);
        assert_in_range(world.closed_ms - start_ms, 9900, 10100);
        assert_int_equal(world.calls, is_open);
        sl_buf_destroy(&frame);
        close_world(&world);
    }
}

static void
test_slow_frames_that_do_become_complete_are_fine(void **state)
{
    (void)state;
    struct world world;
    struct sl_buf frame = {0};
    open_world(&world, &secret_options);
    say_hello_and_call(&world, &right);
    append_request(&frame, 1);
    for (int round = 0; round < 5; round++) {
        send_bytes(&world, frame.data, 5);
        sl_sim_run_for(world.sim, 9000);
        /* The end of one and the start of the next in one piece. */
        send_bytes(&world, frame.data + 5, frame.size - 5);
    }
    sl_sim_run_for(world.sim, 1000);
    assert_false(world.is_closed);
    assert_int_equal(world.calls, 6);
    sl_buf_destroy(&frame);
    close_world(&world);
}

static void
test_S1_binding_beyond_loopback_without_a_secret_is_refused(void **state)
{
    (void)state;
    struct world world;
    struct sl_rpc_options options = {.name = "x"};
    open_world(&world, &secret_options);
    struct sl_rpc *open_rpc = sl_rpc_new(world.loop, &options);
    static const char *const TEXTS[] = {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "host.example:1"};
    for (size_t i = 0; i < array_size(TEXTS); i++) {
        assert_int_equal(sl_rpc_listen(open_rpc, TEXTS[i]), SL_EFENCED);
        assert_contains(sl_err_last()->msg, "`secret`");
    }
    assert_int_equal(sl_rpc_listen(open_rpc, "127.0.0.3:5"), 0);
    sl_rpc_free(open_rpc);
    struct sl_rpc *closed_rpc = sl_rpc_new(world.loop, &secret_options);
    assert_int_equal(sl_rpc_listen(closed_rpc, "0.0.0.0:1"), 0);
    sl_rpc_free(closed_rpc);
    close_world(&world);
}

/* The other way round: our side connects to somebody who does not know the secret. */
static void
test_the_connecting_side_checks_the_secret_too(void **state)
{
    (void)state;
    static const struct {
        const char *server;
        const char *client;
        const char *reason;
    } ROWS[] = {
        {"a", "a", NULL},
        {"a", "b", "wrong secret"},
        {"a", "", "wrong secret"},
        {"", "a", "does not know the secret"},
        {"", "", NULL},
    };
    for (size_t i = 0; i < array_size(ROWS); i++) {
        struct sl_sim *sim = sl_sim_new(&(struct sl_sim_options){.seed = i});
        struct sl_loop *one = sl_sim_loop_new(sim, "127.0.0.2");
        struct sl_loop *two = sl_sim_loop_new(sim, "127.0.0.3");
        struct sl_rpc_options options = {.secret = ROWS[i].server,
                                         .secret_size = strlen(ROWS[i].server)};
        struct sl_rpc *server = sl_rpc_new(one, &options);
        options.secret = ROWS[i].client;
        options.secret_size = strlen(ROWS[i].client);
        struct sl_rpc *client = sl_rpc_new(two, &options);
        struct sl_rpc_gateway *gateway;
        struct outcome outcome = {0};
        assert_int_equal(sl_rpc_listen(server, "127.0.0.2:5"), 0);
        assert_int_equal(sl_rpc_connect(client, "127.0.0.2:5", "tm", 0, &gateway), 0);
        sl_rpc_open(gateway, 0, note_outcome, &outcome);
        sl_sim_run_for(sim, 20000);
        if (ROWS[i].reason == NULL) {
            assert_status(&outcome, SL_RPC_SUCCESS);
        } else {
            assert_status(&outcome, SL_RPC_UNREACHABLE);
            assert_int_equal(outcome.code, SL_EFENCED);
            assert_contains(outcome.reason, ROWS[i].reason);
            assert_contains(outcome.reason, "127.0.0.2:5");
        }
        sl_rpc_gateway_free(gateway);
        sl_rpc_free(client);
        sl_rpc_free(server);
        sl_loop_free(one);
        sl_loop_free(two);
        sl_sim_free(sim);
    }
}

static void
test_S15_connections_have_a_limit(void **state)
{
    (void)state;
    struct world world;
    struct sl_rpc_options options = secret_options;
    options.connections_max = 1;
    open_world(&world, &options);
    struct sl_stream *second;
    struct world other = {.sim = world.sim};
    struct sl_address address;
    assert_int_equal(sl_address_parse("127.0.0.2:700", &address), 0);
    assert_int_equal(sl_stream_connect(world.loop, &address, NULL, &handler, &other, &second), 0);
    sl_sim_run_for(world.sim, 100);
    assert_true(other.is_closed);
    assert_int_equal(other.challenges, 0);
    /* The first one ends, and there is room again. */
    sl_stream_close(world.stream);
    sl_sim_run_for(world.sim, 100);
    connect_raw(&world);
    close_world(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_S2_the_right_secret_opens),
    cmocka_unit_test(test_S2_a_wrong_or_missing_secret_is_refused_and_nothing_behind_it_is_read),
    cmocka_unit_test(test_S20_a_replayed_hello_is_refused),
    cmocka_unit_test(test_any_other_first_frame_ends_the_connection),
    cmocka_unit_test(test_versions),
    cmocka_unit_test(test_B13_another_cluster_is_refused_at_once_with_the_reason),
    cmocka_unit_test(test_bad_bytes_close_the_connection),
    cmocka_unit_test(test_the_cap_itself_is_allowed_only_when_open),
    cmocka_unit_test(test_an_unknown_message_is_answered_and_the_connection_lives),
    cmocka_unit_test(test_a_silent_peer_is_closed_after_the_opening_limit),
    cmocka_unit_test(test_S5_one_byte_a_second_is_closed_at_ten_seconds),
    cmocka_unit_test(test_slow_frames_that_do_become_complete_are_fine),
    cmocka_unit_test(test_S1_binding_beyond_loopback_without_a_secret_is_refused),
    cmocka_unit_test(test_the_connecting_side_checks_the_secret_too),
    cmocka_unit_test(test_S15_connections_have_a_limit),
};

UNIT_MAIN(tests)
