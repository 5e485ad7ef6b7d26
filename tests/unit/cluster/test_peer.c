/* labels: short */
/* What the roles share about each other: heartbeats over a gateway, and what endpoints read and
 * say. */
#include "cluster/peer.h"

#include "base/err.h"
#include "loop/sim.h"
#include "unit.h"

enum { ASK = 1, NOTICE = 2, GOODBYE = 3, WHO = 4 };

/* One process that asks and one that answers. */
struct world {
    struct sl_sim *sim;
    struct sl_loop *loops[2];
    struct sl_rpc *rpcs[2];
    struct sl_rpc_endpoint endpoint;
    struct sl_heartbeats asker;
    struct sl_heartbeats answerer;
    struct sl_peer peer;
    int timeouts;
    int payloads;
    char payload[16];
    struct sl_arena arena;
    int notices;
    char cause[64];
    uint64_t token;
    /* The last answer. */
    struct sl_rpc_result result;
    int answers;
    bool is_this_process;
    bool is_another_process;
};

static void
on_timeout(void *ctx, const char *id)
{
    struct world *world = ctx;
    assert_string_equal(id, "s1");
    world->timeouts++;
}

static void
on_payload(void *ctx, const char *id, const uint8_t *payload, size_t size)
{
    struct world *world = ctx;
    assert_string_equal(id, "s1");
    world->payloads++;
    snprintf(world->payload, sizeof(world->payload), "%.*s", (int)size, (const char *)payload);
}

static void
make_payload(void *ctx, const char *id, struct sl_buf *out)
{
    (void)ctx;
    assert_string_equal(id, "m1");
    sl_buf_append(out, "slots", 5);
}

static void
handle_ask(void *ctx, struct sl_rpc_request *request)
{
    struct world *world = ctx;
    sl_peer_answer_heartbeat(&world->answerer, "s1", request);
}

static void
handle_notice(void *ctx, struct sl_rpc_request *request)
{
    struct world *world = ctx;
    struct sl_slot_notice notice;
    if (sl_peer_read_notice(request, &world->arena, &notice)) {
        world->notices++;
        snprintf(world->cause, sizeof(world->cause), "%s", notice.cause);
        sl_rpc_reply(request, NULL, 0);
    }
}

static void
handle_goodbye(void *ctx, struct sl_rpc_request *request)
{
    struct world *world = ctx;
    struct sl_disconnect message;
    if (sl_peer_read_disconnect(request, &world->arena, &message)) {
        world->token = message.token;
        sl_rpc_reply(request, NULL, 0);
    }
}

static void
handle_who(void *ctx, struct sl_rpc_request *request)
{
    (void)ctx;
    sl_peer_reply_registered(request, "s1", 77, 5);
}

static const struct sl_rpc_method methods[] = {
    {ASK, handle_ask}, {NOTICE, handle_notice}, {GOODBYE, handle_goodbye}, {WHO, handle_who}};

static void
open_world(struct world *world)
{
    static const struct sl_heartbeat_config config = {100, 500, 2};
    struct sl_heartbeat_listener asker = {
        .on_timeout = on_timeout, .on_payload = on_payload, .ctx = world};
    struct sl_heartbeat_listener answerer = {
        .on_timeout = on_timeout, .make_payload = make_payload, .ctx = world};
    struct sl_rpc_endpoint_options endpoint = {.name = "supervisor",
                                               .methods = methods,
                                               .method_count = array_size(methods),
                                               .ctx = world};
    memset(world, 0, sizeof(*world));
    world->sim = sl_sim_new(&(struct sl_sim_options){.seed = 1});
    sl_arena_create(&world->arena, 0, 64 * 1024);
    for (int i = 0; i < 2; i++) {
        world->loops[i] = sl_sim_loop_new(world->sim, i == 0 ? "127.0.0.2" : "127.0.0.3");
        world->rpcs[i] = sl_rpc_new(world->loops[i], &(struct sl_rpc_options){.role = "test"});
    }
    assert_int_equal(sl_rpc_listen(world->rpcs[1], "127.0.0.3:700"), 0);
    assert_int_equal(sl_rpc_endpoint_start(world->rpcs[1], &world->endpoint, &endpoint), 0);
    assert_int_equal(sl_heartbeats_create(&world->asker, world->loops[0], true, &config, &asker),
                     0);
    assert_int_equal(
        sl_heartbeats_create(&world->answerer, world->loops[1], false, &config, &answerer), 0);
    assert_int_equal(
        sl_peer_create(&world->peer, world->rpcs[0], "s1", 77, "127.0.0.3:700", "supervisor", 0),
        0);
}

static void
close_world(struct world *world)
{
    sl_peer_destroy(&world->peer);
    sl_heartbeats_destroy(&world->asker);
    sl_heartbeats_destroy(&world->answerer);
    sl_rpc_endpoint_stop(&world->endpoint);
    for (int i = 0; i < 2; i++) {
        sl_rpc_free(world->rpcs[i]);
        sl_loop_free(world->loops[i]);
    }
    sl_sim_free(world->sim);
    sl_arena_destroy(&world->arena);
}

static void
note_answer(void *ctx, const struct sl_rpc_result *result)
{
    struct world *world = ctx;
    world->answers++;
    world->result = *result;
    world->is_this_process = sl_peer_is_identity(result, "s1", 77);
    world->is_another_process =
        sl_peer_is_identity(result, "s1", 78) || sl_peer_is_identity(result, "s2", 77);
}

static void
ask(struct world *world, uint32_t method, const void *body, size_t size)
{
    int before = world->answers;
    sl_rpc_call(world->peer.gateway, method, body, size, 1000, note_answer, world);
    sl_sim_run_for(world->sim, 2000);
    assert_int_equal(world->answers, before + 1);
}

static void
test_create_refuses_a_bad_address(void **state)
{
    (void)state;
    struct world world;
    struct sl_peer peer;
    open_world(&world);
    assert_int_equal(sl_peer_create(&peer, world.rpcs[0], "s1", 1, "nowhere", "supervisor", 0),
                     SL_EINVAL);
    close_world(&world);
}

static void
test_monitor_asks_at_every_interval_until_the_peer_is_destroyed(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    sl_heartbeats_monitor(&world.answerer, "m1", NULL);
    sl_peer_monitor(&world.peer, &world.asker, "m1", ASK);
    sl_sim_run_for(world.sim, 1050);
    assert_in_range(world.payloads, 9, 11);
    assert_string_equal(world.payload, "slots");
    assert_int_equal(world.timeouts, 0);
    sl_peer_destroy(&world.peer);
    assert_false(sl_heartbeats_is_monitored(&world.asker, "s1"));
    int payloads = world.payloads;
    sl_sim_run_for(world.sim, 400);
    assert_int_equal(world.payloads, payloads);
    assert_int_equal(world.timeouts, 0);
    close_world(&world);
}

static void
test_a_peer_that_is_not_known_there_times_out(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    /* The other side does not monitor us: it refuses, which is no sign of life. */
    sl_peer_monitor(&world.peer, &world.asker, "m1", ASK);
    sl_sim_run_for(world.sim, 2000);
    assert_int_equal(world.payloads, 0);
    assert_int_equal(world.timeouts, 1);
    close_world(&world);
}

static void
test_readers_refuse_what_is_malformed(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_notice notice = {.topology = "words", .cause = "a test"};
    struct sl_disconnect goodbye = {.resource = "m1", .token = 9, .cause = "bye"};
    struct sl_buf body = {0};
    open_world(&world);
    sl_slot_notice_encode(&notice, &body);
    ask(&world, NOTICE, body.data, body.size);
    assert_int_equal(world.result.status, SL_RPC_SUCCESS);
    assert_string_equal(world.cause, "a test");
    ask(&world, NOTICE, body.data, body.size - 1);
    assert_int_equal(world.result.status, SL_RPC_ERROR);
    assert_int_equal(world.notices, 1);
    sl_buf_clear(&body);
    sl_disconnect_encode(&goodbye, &body);
    ask(&world, GOODBYE, body.data, body.size);
    assert_int_equal(world.result.status, SL_RPC_SUCCESS);
    assert_int_equal(world.token, 9);
    ask(&world, GOODBYE, "\xff", 1);
    assert_int_equal(world.result.status, SL_RPC_ERROR);
    /* A notice without an answer goes the same way. */
    sl_peer_send_notice(world.peer.gateway, NOTICE, &notice);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.notices, 2);
    sl_buf_destroy(&body);
    close_world(&world);
}

static void
test_identity_is_name_and_process(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    ask(&world, WHO, NULL, 0);
    assert_true(world.is_this_process);
    assert_false(world.is_another_process);
    /* No answer names nobody. */
    ask(&world, 99, NULL, 0);
    assert_int_equal(world.result.status, SL_RPC_ERROR);
    assert_false(world.is_this_process);
    close_world(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_create_refuses_a_bad_address),
    cmocka_unit_test(test_monitor_asks_at_every_interval_until_the_peer_is_destroyed),
    cmocka_unit_test(test_a_peer_that_is_not_known_there_times_out),
    cmocka_unit_test(test_readers_refuse_what_is_malformed),
    cmocka_unit_test(test_identity_is_name_and_process),
};

UNIT_MAIN(tests)
