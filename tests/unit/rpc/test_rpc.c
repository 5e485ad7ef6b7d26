/* labels: short */
#include "rpc/rpc.h"

#include <unistd.h>

#include "rpc_fixture.h"
#include "wire/frame.h"

enum { ECHO = 1, HOLD = 2, FAIL = 3, REJECT = 4, NOTE = 5, BIG = 6 };

struct server {
    struct sl_loop *loop;
    struct sl_rpc *rpc;
    struct sl_rpc_endpoint endpoint;
    struct sl_rpc_request *held[8];
    int held_count;
    int started;
    int stopped;
    int calls;
    char notes[64];
};

struct world {
    struct sl_sim *sim;
    struct server server;
    struct sl_loop *loop;
    struct sl_rpc *rpc;
    struct sl_rpc_gateway *gateway;
    struct outcome outcome;
};

static void
handle_echo(void *ctx, struct sl_rpc_request *request)
{
    struct server *server = ctx;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    server->calls++;
    sl_rpc_reply(request, body, size);
}

static void
handle_hold(void *ctx, struct sl_rpc_request *request)
{
    struct server *server = ctx;
    server->held[server->held_count++] = request;
}

static void
handle_fail(void *ctx, struct sl_rpc_request *request)
{
    (void)ctx;
    sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EUNAVAIL, "not %s", "now");
}

static void
handle_reject(void *ctx, struct sl_rpc_request *request)
{
    (void)ctx;
    sl_rpc_refuse(request, SL_RPC_REJECTION, SL_EINVAL, "never");
}

static void
handle_note(void *ctx, struct sl_rpc_request *request)
{
    struct server *server = ctx;
    size_t size;
    const char *body = (const char *)sl_rpc_request_body(request, &size);
    strncat(server->notes, body, size);
    sl_rpc_reply(request, NULL, 0);
}

static void
handle_big(void *ctx, struct sl_rpc_request *request)
{
    static uint8_t block[SL_FRAME_CONTROL_MAX];
    (void)ctx;
    sl_rpc_reply(request, block, sizeof(block));
}

static const struct sl_rpc_method methods[] = {
    {ECHO, handle_echo},     {HOLD, handle_hold}, {FAIL, handle_fail},
    {REJECT, handle_reject}, {NOTE, handle_note}, {BIG, handle_big},
};

static void
on_start(void *ctx)
{
    ((struct server *)ctx)->started++;
}

static void
on_stop(void *ctx)
{
    ((struct server *)ctx)->stopped++;
}

static void
open_server(struct server *server, struct sl_sim *sim, const struct sl_rpc_options *options,
            bool is_fenced)
{
    struct sl_rpc_endpoint_options endpoint = {.name = "tm",
                                               .is_fenced = is_fenced,
                                               .methods = methods,
                                               .method_count = array_size(methods),
                                               .on_start = on_start,
                                               .on_stop = on_stop,
                                               .ctx = server};
    server->loop = sl_sim_loop_new(sim, "127.0.0.2");
    server->rpc = sl_rpc_new(server->loop, options);
    assert_int_equal(sl_rpc_listen(server->rpc, "127.0.0.2:700"), 0);
    assert_int_equal(sl_rpc_endpoint_start(server->rpc, &server->endpoint, &endpoint), 0);
}

static void
close_server(struct server *server)
{
    for (int i = 0; i < server->held_count; i++) {
        sl_rpc_reply(server->held[i], NULL, 0);
    }
    sl_rpc_endpoint_stop(&server->endpoint);
    sl_rpc_free(server->rpc);
    sl_loop_free(server->loop);
}

static void
open_world_with(struct world *world, const struct sl_rpc_options *server_options,
                const struct sl_rpc_options *client_options, bool is_fenced, uint64_t token)
{
    memset(world, 0, sizeof(*world));
    world->sim = sl_sim_new(&(struct sl_sim_options){.seed = 11, .is_splitting_reads = true});
    open_server(&world->server, world->sim, server_options, is_fenced);
    world->loop = sl_sim_loop_new(world->sim, "127.0.0.3");
    world->outcome.loop = world->loop;
    world->rpc = sl_rpc_new(world->loop, client_options);
    assert_int_equal(sl_rpc_connect(world->rpc, "127.0.0.2:700", "tm", token, &world->gateway), 0);
}

static void
open_world(struct world *world)
{
    static const struct sl_rpc_options server = {.role = "master", .name = "m1"};
    static const struct sl_rpc_options client = {.role = "worker", .name = "w1"};
    open_world_with(world, &server, &client, false, 0);
}

static void
close_world(struct world *world)
{
    sl_rpc_gateway_free(world->gateway);
    sl_rpc_free(world->rpc);
    sl_loop_free(world->loop);
    close_server(&world->server);
    sl_sim_free(world->sim);
}

static void
call(struct world *world, uint32_t method, const char *body)
{
    world->outcome.count = 0;
    sl_rpc_call(world->gateway, method, body, strlen(body), 0, note_outcome, &world->outcome);
    assert_int_equal(world->outcome.count, 0);
    sl_sim_run_for(world->sim, 30000);
    assert_int_equal(world->outcome.count, 1);
}

static void
test_a_call_is_answered(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    call(&world, ECHO, "hello");
    assert_status(&world.outcome, SL_RPC_SUCCESS);
    assert_int_equal(world.outcome.size, 5);
    assert_memory_equal(world.outcome.body, "hello", 5);
    call(&world, ECHO, "");
    assert_status(&world.outcome, SL_RPC_SUCCESS);
    assert_int_equal(world.server.started, 1);
    assert_int_equal(sl_rpc_stats(world.server.rpc)->connections, 1);
    assert_int_equal(sl_rpc_gateway_open_calls(world.gateway), 0);
    close_world(&world);
    assert_int_equal(world.server.stopped, 1);
}

static void
test_failure_and_rejection_carry_code_and_reason(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    call(&world, FAIL, "");
    assert_status(&world.outcome, SL_RPC_FAILURE);
    assert_int_equal(world.outcome.code, SL_EUNAVAIL);
    assert_string_equal(world.outcome.reason, "not now");
    call(&world, REJECT, "");
    assert_status(&world.outcome, SL_RPC_REJECTION);
    assert_int_equal(world.outcome.code, SL_EINVAL);
    close_world(&world);
}

static void
test_an_unknown_message_or_endpoint_is_an_error_of_its_own(void **state)
{
    (void)state;
    struct world world;
    struct sl_rpc_gateway *other;
    open_world(&world);
    call(&world, 99, "");
    assert_status(&world.outcome, SL_RPC_ERROR);
    assert_string_equal(world.outcome.reason, "unknown message");
    assert_int_equal(sl_rpc_connect(world.rpc, "127.0.0.2:700", "nobody", 0, &other), 0);
    sl_rpc_call(other, ECHO, NULL, 0, 0, note_outcome, &world.outcome);
    sl_sim_run_for(world.sim, 100);
    assert_status(&world.outcome, SL_RPC_ERROR);
    assert_int_equal(world.outcome.code, SL_ENOTFOUND);
    sl_rpc_gateway_free(other);
    /* The connection is still good. */
    call(&world, ECHO, "x");
    assert_status(&world.outcome, SL_RPC_SUCCESS);
    close_world(&world);
}

static void
test_messages_of_a_gateway_keep_their_order(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    for (char c = 'a'; c <= 'z'; c++) {
        if (c % 2) {
            sl_rpc_send(world.gateway, NOTE, &c, 1);
        } else {
            sl_rpc_call(world.gateway, NOTE, &c, 1, 0, note_outcome, &world.outcome);
        }
    }
    sl_sim_run_for(world.sim, 1000);
    assert_string_equal(world.server.notes, "abcdefghijklmnopqrstuvwxyz");
    assert_int_equal(world.outcome.count, 13);
    close_world(&world);
}

static void
test_answers_may_come_later_and_in_another_order(void **state)
{
    (void)state;
    struct world world;
    struct outcome outcomes[3];
    open_world(&world);
    memset(outcomes, 0, sizeof(outcomes));
    for (int i = 0; i < 3; i++) {
        outcomes[i].loop = world.loop;
        sl_rpc_call(world.gateway, HOLD, NULL, 0, 0, note_outcome, &outcomes[i]);
    }
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.server.held_count, 3);
    assert_int_equal(outcomes[0].count + outcomes[1].count + outcomes[2].count, 0);
    sl_rpc_reply(world.server.held[2], "c", 1);
    sl_rpc_reply(world.server.held[0], "a", 1);
    sl_rpc_refuse(world.server.held[1], SL_RPC_FAILURE, SL_EAGAIN, "b");
    world.server.held_count = 0;
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(outcomes[0].body[0], 'a');
    assert_int_equal(outcomes[2].body[0], 'c');
    assert_status(&outcomes[1], SL_RPC_FAILURE);
    close_world(&world);
}

static void
test_a_deadline_ends_a_call_and_the_late_answer_is_dropped(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    call(&world, ECHO, "");
    world.outcome.count = 0;
    uint64_t start_ms = sl_sim_now_ms(world.sim);
    sl_rpc_call(world.gateway, HOLD, NULL, 0, 250, note_outcome, &world.outcome);
    sl_sim_run_for(world.sim, 249);
    assert_int_equal(world.outcome.count, 0);
    sl_sim_run_for(world.sim, 2);
    assert_int_equal(world.outcome.count, 1);
    assert_status(&world.outcome, SL_RPC_TIMEOUT);
    assert_int_equal(world.outcome.code, SL_ETIMEOUT);
    assert_int_equal(world.outcome.at_ms - start_ms, 250);
    assert_contains(world.outcome.reason, "tm at 127.0.0.2:700: no answer in 250 ms");
    sl_rpc_reply(world.server.held[0], NULL, 0);
    world.server.held_count = 0;
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.outcome.count, 1);
    close_world(&world);
}

static void
test_the_service_says_how_long_calls_wait(void **state)
{
    (void)state;
    static const struct sl_rpc_options server = {.role = "master", .name = "m1"};
    static const struct sl_rpc_options client = {
        .role = "worker", .name = "w1", .call_timeout_ms = 300};
    struct world world;
    open_world_with(&world, &server, &client, false, 0);
    uint64_t start_ms = sl_loop_now_ms(world.loop);
    call(&world, HOLD, "");
    assert_status(&world.outcome, SL_RPC_TIMEOUT);
    assert_int_equal(world.outcome.at_ms - start_ms, 300);
    assert_contains(world.outcome.reason, "300 ms");
    close_world(&world);
}

static void
test_a_cancelled_call_has_no_end(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    uint64_t id = sl_rpc_call(world.gateway, ECHO, NULL, 0, 0, note_outcome, &world.outcome);
    sl_rpc_cancel(world.gateway, id);
    sl_rpc_cancel(world.gateway, id);
    sl_sim_run_for(world.sim, 30000);
    assert_int_equal(world.outcome.count, 0);
    /* Nor has one whose gateway goes. */
    sl_rpc_call(world.gateway, HOLD, NULL, 0, 0, note_outcome, &world.outcome);
    sl_sim_run_for(world.sim, 100);
    sl_rpc_gateway_free(world.gateway);
    world.gateway = NULL;
    sl_sim_run_for(world.sim, 30000);
    assert_int_equal(world.outcome.count, 0);
    close_world(&world);
}

static void
test_a_broken_connection_ends_its_calls_and_the_next_one_connects_anew(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    sl_rpc_call(world.gateway, HOLD, NULL, 0, 0, note_outcome, &world.outcome);
    sl_sim_run_for(world.sim, 100);
    sl_sim_reset(world.sim, "127.0.0.2", "127.0.0.3");
    sl_sim_run_for(world.sim, 10);
    assert_int_equal(world.outcome.count, 1);
    assert_status(&world.outcome, SL_RPC_UNREACHABLE);
    assert_contains(world.outcome.reason, "127.0.0.2:700");
    call(&world, ECHO, "again");
    assert_status(&world.outcome, SL_RPC_SUCCESS);
    assert_int_equal(sl_rpc_stats(world.server.rpc)->connections, 2);
    close_world(&world);
}

static void
test_nobody_listens_is_unreachable_and_not_retried_without_a_pause(void **state)
{
    (void)state;
    struct world world;
    struct sl_rpc_gateway *other;
    open_world(&world);
    assert_int_equal(sl_rpc_connect(world.rpc, "127.0.0.2:701", "tm", 0, &other), 0);
    for (int i = 0; i < 3; i++) {
        uint64_t start_ms = sl_sim_now_ms(world.sim);
        world.outcome.count = 0;
        sl_rpc_call(other, ECHO, NULL, 0, 0, note_outcome, &world.outcome);
        while (world.outcome.count == 0) {
            sl_sim_step(world.sim);
        }
        assert_status(&world.outcome, SL_RPC_UNREACHABLE);
        assert_int_equal(world.outcome.code, SL_EUNAVAIL);
        uint64_t took_ms = sl_sim_now_ms(world.sim) - start_ms;
        assert_in_range(took_ms, i == 0 ? 0 : SL_RPC_RETRY_GATE_MS - 1, SL_RPC_RETRY_GATE_MS + 5);
    }
    sl_rpc_gateway_free(other);
    close_world(&world);
}

static void
test_open_connects_without_a_message(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    sl_rpc_open(world.gateway, 0, note_outcome, &world.outcome);
    sl_sim_run_for(world.sim, 100);
    assert_status(&world.outcome, SL_RPC_SUCCESS);
    sl_rpc_open(world.gateway, 0, note_outcome, &world.outcome);
    sl_sim_run_for(world.sim, 1);
    assert_int_equal(world.outcome.count, 2);
    assert_int_equal(world.server.calls, 0);
    close_world(&world);
}

static void
test_bad_addresses_fail_at_once(void **state)
{
    (void)state;
    struct world world;
    struct sl_rpc_gateway *other;
    open_world(&world);
    assert_int_equal(sl_rpc_connect(world.rpc, "nonsense", "tm", 0, &other), SL_EINVAL);
    assert_int_equal(sl_rpc_connect(world.rpc, "a:0", "tm", 0, &other), SL_EINVAL);
    close_world(&world);
}

static void
test_too_large_messages_are_refused_on_either_side(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    uint8_t *block = calloc(1, SL_FRAME_CONTROL_MAX + 1);
    sl_rpc_call(world.gateway, ECHO, block, SL_FRAME_CONTROL_MAX + 1, 0, note_outcome,
                &world.outcome);
    sl_sim_run_for(world.sim, 100);
    assert_status(&world.outcome, SL_RPC_ERROR);
    assert_int_equal(world.outcome.code, SL_ELIMIT);
    /* Just below is fine: the envelope takes a few bytes. */
    sl_rpc_call(world.gateway, ECHO, block, SL_FRAME_CONTROL_MAX - 100, 0, note_outcome,
                &world.outcome);
    sl_sim_run_for(world.sim, 1000);
    assert_status(&world.outcome, SL_RPC_SUCCESS);
    assert_int_equal(world.outcome.size, SL_FRAME_CONTROL_MAX - 100);
    call(&world, BIG, "");
    assert_status(&world.outcome, SL_RPC_ERROR);
    assert_contains(world.outcome.reason, "too large");
    free(block);
    close_world(&world);
}

/* 2.10: what an endpoint does with tokens. */
static void
test_fencing_table(void **state)
{
    (void)state;
    static const struct sl_rpc_options plain = {.name = "x"};
    static const struct {
        uint64_t endpoint_token;
        uint64_t caller_token;
        enum sl_rpc_status status;
        const char *reason;
    } ROWS[] = {
        {7, 7, SL_RPC_SUCCESS, ""},
        {7, 8, SL_RPC_STALE_TOKEN, "stale token"},
        {7, 6, SL_RPC_STALE_TOKEN, "stale token"},
        {7, 0, SL_RPC_STALE_TOKEN, "stale token"},
        {0, 7, SL_RPC_STALE_TOKEN, "token not set"},
        {0, 0, SL_RPC_STALE_TOKEN, "token not set"},
    };
    for (size_t i = 0; i < array_size(ROWS); i++) {
        struct world world;
        open_world_with(&world, &plain, &plain, true, ROWS[i].caller_token);
        sl_rpc_endpoint_set_token(&world.server.endpoint, ROWS[i].endpoint_token);
        call(&world, ECHO, "x");
        assert_status(&world.outcome, ROWS[i].status);
        assert_int_equal(world.server.calls, ROWS[i].status == SL_RPC_SUCCESS);
        assert_int_equal(world.outcome.code, ROWS[i].status == SL_RPC_SUCCESS ? 0 : SL_EFENCED);
        assert_contains(world.outcome.reason, ROWS[i].reason);
        /* A stale one-way message is dropped. */
        sl_rpc_send(world.gateway, NOTE, "n", 1);
        sl_sim_run_for(world.sim, 100);
        assert_int_equal(strlen(world.server.notes), ROWS[i].status == SL_RPC_SUCCESS);
        close_world(&world);
    }
}

static void
note_action(void *ctx)
{
    struct server *server = ctx;
    strcat(server->notes, "!");
}

static void
test_actions_of_an_old_term_drop(void **state)
{
    (void)state;
    static const struct sl_rpc_options plain = {.name = "x"};
    struct world world;
    open_world_with(&world, &plain, &plain, true, 7);
    struct sl_rpc_endpoint *endpoint = &world.server.endpoint;
    sl_rpc_endpoint_set_token(endpoint, 7);
    sl_rpc_endpoint_later(endpoint, 10, note_action, &world.server);
    sl_sim_run_for(world.sim, 20);
    assert_string_equal(world.server.notes, "!");
    sl_rpc_endpoint_later(endpoint, 10, note_action, &world.server);
    sl_rpc_endpoint_set_token(endpoint, 8);
    sl_rpc_endpoint_later(endpoint, 10, note_action, &world.server);
    sl_sim_run_for(world.sim, 20);
    assert_string_equal(world.server.notes, "!!");
    /* Stopping drops what is left. */
    sl_rpc_endpoint_later(endpoint, 10, note_action, &world.server);
    close_world(&world);
}

static void
test_stopping_an_endpoint_fails_what_it_holds(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    sl_rpc_call(world.gateway, HOLD, NULL, 0, 0, note_outcome, &world.outcome);
    sl_sim_run_for(world.sim, 100);
    sl_rpc_endpoint_stop(&world.server.endpoint);
    sl_sim_run_for(world.sim, 100);
    assert_status(&world.outcome, SL_RPC_FAILURE);
    assert_int_equal(world.outcome.code, SL_EUNAVAIL);
    /* The late answer of the handler only frees. */
    sl_rpc_reply(world.server.held[0], NULL, 0);
    world.server.held_count = 0;
    call(&world, ECHO, "");
    assert_status(&world.outcome, SL_RPC_ERROR);
    close_world(&world);
}

static void
test_endpoint_names_are_checked(void **state)
{
    (void)state;
    struct world world;
    struct sl_rpc_endpoint second = {0};
    struct sl_rpc_endpoint_options options = {.name = "tm"};
    open_world(&world);
    assert_int_equal(sl_rpc_endpoint_start(world.server.rpc, &second, &options), SL_EEXIST);
    options.name = "";
    assert_int_equal(sl_rpc_endpoint_start(world.server.rpc, &second, &options), SL_EINVAL);
    close_world(&world);
}

static void
test_real_loop_over_a_unix_socket_and_tcp(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct sl_loop *loop;
        struct server server = {0};
        struct sl_rpc_options options = {.role = "r", .name = "n"};
        struct sl_rpc_endpoint_options endpoint = {
            .name = "tm", .methods = methods, .method_count = array_size(methods), .ctx = &server};
        struct sl_rpc_gateway *gateway;
        struct outcome outcome = {0};
        char folder[] = "sl-rpc-XXXXXX";
        char text[64];
        assert_non_null(mkdtemp(folder));
        snprintf(text, sizeof(text), "unix:%s/s", folder);
        assert_int_equal(sl_loop_new(&loop), 0);
        struct sl_rpc *rpc = sl_rpc_new(loop, &options);
        assert_int_equal(sl_rpc_listen(rpc, kind == 0 ? text : "127.0.0.1:0"), 0);
        assert_int_equal(sl_rpc_endpoint_start(rpc, &server.endpoint, &endpoint), 0);
        /* Endpoints answer from the next turn on. */
        sl_loop_run_once(loop, 0);
        assert_int_equal(sl_rpc_connect(rpc, sl_rpc_address(rpc), "tm", 0, &gateway), 0);
        sl_rpc_call(gateway, ECHO, "real", 4, 0, note_outcome, &outcome);
        while (outcome.count == 0) {
            sl_loop_run_once(loop, -1);
        }
        assert_status(&outcome, SL_RPC_SUCCESS);
        assert_memory_equal(outcome.body, "real", 4);
        sl_rpc_gateway_free(gateway);
        sl_rpc_endpoint_stop(&server.endpoint);
        sl_rpc_free(rpc);
        sl_loop_free(loop);
        assert_int_equal(rmdir(folder), 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_call_is_answered),
    cmocka_unit_test(test_failure_and_rejection_carry_code_and_reason),
    cmocka_unit_test(test_an_unknown_message_or_endpoint_is_an_error_of_its_own),
    cmocka_unit_test(test_messages_of_a_gateway_keep_their_order),
    cmocka_unit_test(test_answers_may_come_later_and_in_another_order),
    cmocka_unit_test(test_a_deadline_ends_a_call_and_the_late_answer_is_dropped),
    cmocka_unit_test(test_the_service_says_how_long_calls_wait),
    cmocka_unit_test(test_a_cancelled_call_has_no_end),
    cmocka_unit_test(test_a_broken_connection_ends_its_calls_and_the_next_one_connects_anew),
    cmocka_unit_test(test_nobody_listens_is_unreachable_and_not_retried_without_a_pause),
    cmocka_unit_test(test_open_connects_without_a_message),
    cmocka_unit_test(test_bad_addresses_fail_at_once),
    cmocka_unit_test(test_too_large_messages_are_refused_on_either_side),
    cmocka_unit_test(test_fencing_table),
    cmocka_unit_test(test_actions_of_an_old_term_drop),
    cmocka_unit_test(test_stopping_an_endpoint_fails_what_it_holds),
    cmocka_unit_test(test_endpoint_names_are_checked),
    cmocka_unit_test(test_real_loop_over_a_unix_socket_and_tcp),
};

UNIT_MAIN(tests)
