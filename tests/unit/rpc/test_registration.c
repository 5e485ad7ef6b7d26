/* labels: short */
/* Table 3.1 of the reference: retrying registration and the registered connection. Rows of other
 * numbers: R13 is in test_connections.c. "getFuture gives the same object twice" (R1) has no
 * counterpart, since there is one callback and no future. */
#include "rpc/registration.h"

#include "rpc/registered_connection.h"
#include "rpc_fixture.h"

enum { REGISTER = 1 };

/* What the endpoint answers, one letter an attempt: s success, t nothing, f failure, r rejection, e
 * error; the last one repeats. */
struct world {
    struct sl_sim *sim;
    struct sl_loop *server_loop;
    struct sl_rpc *server;
    struct sl_rpc_endpoint endpoint;
    const char *script;
    uint64_t seen_ms[32];
    uint64_t seen_token;
    int seen;
    struct sl_rpc_request *held[32];
    int held_count;
    struct sl_loop *loop;
    struct sl_rpc *rpc;
    struct sl_registration *registration;
    struct sl_registration_options options;
    uint32_t attempts[32];
    int generated;
    int generate_fails_at;
    int done;
    enum sl_registration_end end;
    char body[16];
    char reason[600];
    uint64_t done_ms;
};

static void
handle_register(void *ctx, struct sl_rpc_request *request)
{
    struct world *world = ctx;
    char step = world->script[0];
    world->seen_ms[world->seen++] = sl_sim_now_ms(world->sim);
    world->seen_token = sl_rpc_request_token(request);
    if (world->script[1] != '\0') {
        world->script++;
    }
    switch (step) {
    case 's':
        sl_rpc_reply(request, "id-7", 4);
        break;
    case 't':
        world->held[world->held_count++] = request;
        break;
    case 'f':
        sl_rpc_refuse(request, SL_RPC_FAILURE, SL_EAGAIN, "not yet");
        break;
    case 'r':
        sl_rpc_refuse(request, SL_RPC_REJECTION, SL_EEXIST, "somebody else has that name");
        break;
    default:
        sl_rpc_refuse(request, SL_RPC_ERROR, SL_EINTERNAL, "broken");
    }
}

static const struct sl_rpc_method methods[] = {{REGISTER, handle_register}};

static int
generate(void *ctx, uint32_t attempt, uint32_t *method, struct sl_buf *body)
{
    struct world *world = ctx;
    world->attempts[world->generated++] = attempt;
    if (world->generate_fails_at == world->generated) {
        return sl_err_set(SL_EINTERNAL, "register call throws");
    }
    *method = REGISTER;
    sl_buf_append_str(body, "me");
    return 0;
}

static void
note_done(struct world *world, enum sl_registration_end end, const uint8_t *body, size_t size,
          const char *reason)
{
    world->done++;
    world->end = end;
    world->done_ms = sl_sim_now_ms(world->sim);
    memcpy(world->body, body != NULL ? (const char *)body : "", size);
    snprintf(world->reason, sizeof(world->reason), "%s", reason);
}

static void
on_done(void *ctx, struct sl_registration *registration, enum sl_registration_end end,
        const struct sl_rpc_result *result)
{
    struct world *world = ctx;
    assert_ptr_equal(registration, world->registration);
    note_done(world, end, result->body, result->size, result->reason);
}

static void
listen_now(struct world *world)
{
    assert_int_equal(sl_rpc_listen(world->server, "127.0.0.2:700"), 0);
}

static void
open_world(struct world *world, const char *script, struct sl_registration_config config)
{
    struct sl_rpc_options rpc_options = {.name = "n"};
    struct sl_rpc_endpoint_options endpoint = {
        .name = "rm", .is_fenced = true, .methods = methods, .method_count = 1, .ctx = world};
    memset(world, 0, sizeof(*world));
    world->script = script;
    world->sim = sl_sim_new(&(struct sl_sim_options){.seed = 5, .latency_max_us = 10});
    world->server_loop = sl_sim_loop_new(world->sim, "127.0.0.2");
    world->server = sl_rpc_new(world->server_loop, &rpc_options);
    assert_int_equal(sl_rpc_endpoint_start(world->server, &world->endpoint, &endpoint), 0);
    sl_rpc_endpoint_set_token(&world->endpoint, 9);
    world->loop = sl_sim_loop_new(world->sim, "127.0.0.3");
    world->rpc = sl_rpc_new(world->loop, &rpc_options);
    world->options = (struct sl_registration_options){.address = "127.0.0.2:700",
                                                      .endpoint = "rm",
                                                      .token = 9,
                                                      .config = config,
                                                      .generate = generate,
                                                      .done = on_done,
                                                      .ctx = world};
}

static void
start(struct world *world)
{
    assert_int_equal(sl_registration_new(world->rpc, &world->options, &world->registration), 0);
    sl_registration_start(world->registration);
}

static void
close_world(struct world *world)
{
    sl_registration_free(world->registration);
    sl_rpc_free(world->rpc);
    sl_loop_free(world->loop);
    for (int i = 0; i < world->held_count; i++) {
        sl_rpc_reply(world->held[i], NULL, 0);
    }
    sl_rpc_endpoint_stop(&world->endpoint);
    sl_rpc_free(world->server);
    sl_loop_free(world->server_loop);
    sl_sim_free(world->sim);
}

/* initial 20, max 200, error 200, refused 200 ms. */
static const struct sl_registration_config quick = {20, 200, 200, 200};

static void
test_R1_success_gives_the_payload_and_the_endpoint_sees_the_token(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "s", quick);
    listen_now(&world);
    start(&world);
    assert_int_equal(world.done, 0);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.done, 1);
    assert_int_equal(world.end, SL_REGISTRATION_SUCCESS);
    assert_memory_equal(world.body, "id-7", 4);
    assert_int_equal(world.seen_token, 9);
    struct sl_rpc_gateway *gateway = sl_registration_take_gateway(world.registration);
    assert_string_equal(sl_rpc_gateway_address(gateway), "127.0.0.2:700");
    sl_rpc_gateway_free(gateway);
    close_world(&world);
}

static void
test_R2_a_connect_that_can_not_be_made_fails_at_once_without_a_retry(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "s", quick);
    listen_now(&world);
    world.options.address = "no address at all";
    start(&world);
    sl_sim_run_for(world.sim, 60000);
    assert_int_equal(world.done, 1);
    assert_int_equal(world.done_ms, 0);
    assert_int_equal(world.end, SL_REGISTRATION_FAILED);
    assert_contains(world.reason, "no address at all");
    assert_int_equal(world.seen, 0);
    close_world(&world);
}

static void
test_R3_an_address_that_can_not_be_reached_is_tried_again_after_the_error_delay(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "s", quick);
    start(&world);
    sl_sim_run_for(world.sim, 100);
    listen_now(&world);
    sl_sim_run_for(world.sim, 1000);
    assert_int_equal(world.end, SL_REGISTRATION_SUCCESS);
    assert_in_range(world.done_ms, 200, 205);
    close_world(&world);
}

static void
test_R3_there_is_no_limit_on_the_attempts_to_reach_it(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "s", quick);
    start(&world);
    sl_sim_run_for(world.sim, 3600000);
    assert_int_equal(world.done, 0);
    listen_now(&world);
    sl_sim_run_for(world.sim, 1000);
    assert_int_equal(world.done, 1);
    close_world(&world);
}

static void
test_R4_timeouts_retry_at_once_with_a_doubled_limit(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "tts", (struct sl_registration_config){20, 1000, 15000, 15000});
    listen_now(&world);
    start(&world);
    sl_sim_run_for(world.sim, 10000);
    assert_int_equal(world.end, SL_REGISTRATION_SUCCESS);
    assert_in_range(world.done_ms, 60, 65);
    assert_int_equal(world.attempts[0], 1);
    assert_int_equal(world.attempts[1], 2);
    assert_int_equal(world.attempts[2], 3);
    close_world(&world);
}

static void
test_limits_double_up_to_the_maximum(void **state)
{
    (void)state;
    static const uint64_t LIMITS[] = {100,  200,   400,   800,   1600,  3200,
                                      6400, 12800, 25600, 30000, 30000, 30000};
    struct world world;
    open_world(&world, "t", sl_registration_config_default());
    listen_now(&world);
    start(&world);
    sl_sim_run_for(world.sim, 145000);
    assert_int_equal(world.seen, array_size(LIMITS) + 1);
    for (size_t i = 0; i < array_size(LIMITS); i++) {
        assert_in_range(world.seen_ms[i + 1] - world.seen_ms[i], LIMITS[i] - 1, LIMITS[i] + 1);
    }
    close_world(&world);
}

static void
test_R6_an_error_pauses_for_the_error_delay_and_begins_anew(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "tes", quick);
    listen_now(&world);
    start(&world);
    sl_sim_run_for(world.sim, 1000);
    assert_int_equal(world.end, SL_REGISTRATION_SUCCESS);
    /* 20 for the time-out, then 200. */
    assert_in_range(world.done_ms, 220, 225);
    assert_int_equal(world.attempts[1], 2);
    assert_int_equal(world.attempts[2], 1);
    close_world(&world);
}

static void
test_a_failure_pauses_for_the_refused_delay_and_begins_anew(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "ffs", (struct sl_registration_config){20, 200, 1, 300});
    listen_now(&world);
    start(&world);
    sl_sim_run_for(world.sim, 1000);
    assert_int_equal(world.end, SL_REGISTRATION_SUCCESS);
    assert_in_range(world.done_ms, 600, 605);
    assert_int_equal(world.attempts[2], 1);
    close_world(&world);
}

static void
test_R8_a_rejection_ends_it(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "rs", quick);
    listen_now(&world);
    start(&world);
    sl_sim_run_for(world.sim, 60000);
    assert_int_equal(world.done, 1);
    assert_int_equal(world.end, SL_REGISTRATION_REJECTED);
    assert_string_equal(world.reason, "somebody else has that name");
    assert_int_equal(world.seen, 1);
    close_world(&world);
}

static void
test_a_stale_token_ends_it_with_an_end_of_its_own(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "s", quick);
    listen_now(&world);
    world.options.token = 8;
    start(&world);
    sl_sim_run_for(world.sim, 60000);
    assert_int_equal(world.done, 1);
    assert_int_equal(world.end, SL_REGISTRATION_STALE);
    assert_int_equal(world.seen, 0);
    close_world(&world);
}

static void
test_a_broken_connection_counts_as_an_error(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "ts", (struct sl_registration_config){5000, 5000, 700, 1});
    listen_now(&world);
    start(&world);
    sl_sim_run_for(world.sim, 100);
    sl_sim_reset(world.sim, "127.0.0.2", "127.0.0.3");
    sl_sim_run_for(world.sim, 3000);
    assert_int_equal(world.end, SL_REGISTRATION_SUCCESS);
    assert_in_range(world.done_ms, 800, 810);
    close_world(&world);
}

static void
test_cancel_ends_it_in_every_state(void **state)
{
    (void)state;
    static const uint64_t MOMENTS[] = {0, 1, 10, 25, 100};
    for (size_t i = 0; i < array_size(MOMENTS); i++) {
        struct world world;
        open_world(&world, "te", quick);
        if (i % 2 == 1) {
            listen_now(&world);
        }
        start(&world);
        sl_sim_run_for(world.sim, MOMENTS[i]);
        int generated = world.generated;
        sl_registration_cancel(world.registration);
        sl_registration_cancel(world.registration);
        sl_sim_run_for(world.sim, 60000);
        assert_int_equal(world.done, 0);
        assert_int_equal(world.generated, generated);
        close_world(&world);
    }
    /* Before the start too. */
    struct world world;
    open_world(&world, "s", quick);
    listen_now(&world);
    assert_int_equal(sl_registration_new(world.rpc, &world.options, &world.registration), 0);
    sl_registration_cancel(world.registration);
    sl_registration_start(world.registration);
    sl_sim_run_for(world.sim, 60000);
    assert_int_equal(world.generated, 0);
    close_world(&world);
}

static void
test_configs_are_checked(void **state)
{
    (void)state;
    static const struct {
        struct sl_registration_config config;
        const char *setting;
    } ROWS[] = {
        {{0, 10, 0, 0}, "registration_initial_timeout"},
        {{0, 0, 0, 0}, "registration_initial_timeout"},
        {{11, 10, 0, 0}, "registration_max_timeout"},
        {{1, 0, 0, 0}, "registration_max_timeout"},
    };
    for (size_t i = 0; i < array_size(ROWS); i++) {
        assert_int_equal(sl_registration_config_check(&ROWS[i].config), SL_EINVAL);
        assert_contains(sl_err_last()->msg, ROWS[i].setting);
    }
    struct sl_registration_config equal = {10, 10, 0, 0};
    assert_int_equal(sl_registration_config_check(&equal), 0);
    struct sl_registration_config config = sl_registration_config_default();
    assert_int_equal(config.initial_timeout_ms, 100);
    assert_int_equal(config.max_timeout_ms, 30000);
    assert_int_equal(config.error_delay_ms, 10000);
    assert_int_equal(config.refused_delay_ms, 30000);
}

/* The registered connection on the same endpoint. */
static int successes;

static void
connection_success(void *ctx, struct sl_registered_connection *connection, const uint8_t *body,
                   size_t size)
{
    assert_true(sl_registered_connection_is_connected(connection));
    successes++;
    note_done(ctx, SL_REGISTRATION_SUCCESS, body, size, "");
}

static void
connection_failure(void *ctx, struct sl_registered_connection *connection,
                   enum sl_registration_end kind, int code, const char *reason)
{
    assert_false(sl_registered_connection_is_connected(connection));
    assert_int_not_equal(code, 0);
    note_done(ctx, kind, NULL, 0, reason);
}

static struct sl_registered_connection *
new_connection(struct world *world)
{
    struct sl_registered_connection *connection;
    struct sl_registered_connection_ops ops = {.generate_registration = generate,
                                               .on_success = connection_success,
                                               .on_failure = connection_failure,
                                               .ctx = world};
    successes = 0;
    assert_int_equal(sl_registered_connection_new(world->rpc, "127.0.0.2:700", "rm", 9,
                                                  &world->options.config, &ops, &connection),
                     0);
    return connection;
}

static void
test_R9_start_connects(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "s", quick);
    listen_now(&world);
    struct sl_registered_connection *connection = new_connection(&world);
    assert_int_equal(sl_registered_connection_start(connection), 0);
    assert_false(sl_registered_connection_is_connected(connection));
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(successes, 1);
    assert_true(sl_registered_connection_is_connected(connection));
    assert_string_equal(sl_registered_connection_address(connection), "127.0.0.2:700");
    assert_int_equal(sl_registered_connection_token(connection), 9);
    assert_int_equal(sl_rpc_gateway_token(sl_registered_connection_gateway(connection)), 9);
    assert_memory_equal(world.body, "id-7", 4);
    sl_registered_connection_free(connection);
    close_world(&world);
}

static void
test_R10_a_call_that_can_not_be_made_is_delivered_as_a_failure(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "s", quick);
    listen_now(&world);
    world.generate_fails_at = 1;
    struct sl_registered_connection *connection = new_connection(&world);
    assert_int_equal(sl_registered_connection_start(connection), 0);
    sl_sim_run_for(world.sim, 60000);
    assert_int_equal(world.done, 1);
    assert_int_equal(world.end, SL_REGISTRATION_FAILED);
    assert_contains(world.reason, "register call throws");
    assert_null(sl_registered_connection_gateway(connection));
    assert_int_equal(world.seen, 0);
    sl_registered_connection_free(connection);
    close_world(&world);
}

static int
throwing_invoke(void *ctx, uint32_t attempt)
{
    (void)ctx;
    (void)attempt;
    return sl_err_set(SL_EINTERNAL, "invoke throws");
}

static void
test_R10_so_is_a_call_that_throws_while_it_is_sent(void **state)
{
    (void)state;
    struct world world;
    struct sl_registered_connection *connection;
    open_world(&world, "s", quick);
    listen_now(&world);
    struct sl_registered_connection_ops ops = {.generate_registration = generate,
                                               .invoke_registration = throwing_invoke,
                                               .on_success = connection_success,
                                               .on_failure = connection_failure,
                                               .ctx = &world};
    assert_int_equal(sl_registered_connection_new(world.rpc, "127.0.0.2:700", "rm", 9, &quick, &ops,
                                                  &connection),
                     0);
    assert_int_equal(sl_registered_connection_start(connection), 0);
    sl_sim_run_for(world.sim, 1000);
    assert_int_equal(world.end, SL_REGISTRATION_FAILED);
    assert_contains(world.reason, "invoke throws");
    sl_registered_connection_free(connection);
    close_world(&world);
}

static void
test_R11_close_keeps_address_and_token_readable(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "s", quick);
    listen_now(&world);
    struct sl_registered_connection *connection = new_connection(&world);
    assert_int_equal(sl_registered_connection_start(connection), 0);
    sl_registered_connection_close(connection);
    sl_sim_run_for(world.sim, 1000);
    assert_true(sl_registered_connection_is_closed(connection));
    assert_string_equal(sl_registered_connection_address(connection), "127.0.0.2:700");
    assert_int_equal(sl_registered_connection_token(connection), 9);
    assert_int_equal(world.done, 0);
    assert_int_equal(sl_registered_connection_start(connection), SL_ECONFLICT);
    assert_contains(sl_err_last()->msg, "closed");
    sl_registered_connection_free(connection);
    close_world(&world);
}

static void
test_start_is_refused_when_started_or_connected(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "s", quick);
    listen_now(&world);
    struct sl_registered_connection *connection = new_connection(&world);
    assert_int_equal(sl_registered_connection_start(connection), 0);
    assert_int_equal(sl_registered_connection_start(connection), SL_ECONFLICT);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(sl_registered_connection_start(connection), SL_ECONFLICT);
    assert_contains(sl_err_last()->msg, "started already");
    assert_int_equal(world.seen, 1);
    sl_registered_connection_free(connection);
    close_world(&world);
}

static void
test_try_reconnect_keeps_the_old_gateway_until_the_new_success(void **state)
{
    (void)state;
    struct world world;
    bool started;
    open_world(&world, "sts", quick);
    listen_now(&world);
    struct sl_registered_connection *connection = new_connection(&world);
    assert_int_equal(sl_registered_connection_try_reconnect(connection, &started), SL_ECONFLICT);
    assert_int_equal(sl_registered_connection_start(connection), 0);
    sl_sim_run_for(world.sim, 100);
    struct sl_rpc_gateway *first = sl_registered_connection_gateway(connection);
    assert_int_equal(sl_registered_connection_try_reconnect(connection, &started), 0);
    assert_true(started);
    sl_sim_run_for(world.sim, 10);
    assert_ptr_equal(sl_registered_connection_gateway(connection), first);
    assert_int_equal(successes, 1);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(successes, 2);
    assert_int_equal(world.seen, 3);
    /* A second one cancels the first; only the newest succeeds. */
    world.script = "ts";
    assert_int_equal(sl_registered_connection_try_reconnect(connection, &started), 0);
    assert_int_equal(sl_registered_connection_try_reconnect(connection, &started), 0);
    sl_sim_run_for(world.sim, 1000);
    assert_int_equal(successes, 3);
    sl_registered_connection_close(connection);
    assert_int_equal(sl_registered_connection_try_reconnect(connection, &started), 0);
    assert_false(started);
    sl_registered_connection_free(connection);
    close_world(&world);
}

static void
test_failures_are_told_by_kind(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "r", quick);
    listen_now(&world);
    struct sl_registered_connection *connection = new_connection(&world);
    assert_int_equal(sl_registered_connection_start(connection), 0);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.end, SL_REGISTRATION_REJECTED);
    assert_null(sl_registered_connection_gateway(connection));
    sl_registered_connection_free(connection);
    sl_rpc_endpoint_set_token(&world.endpoint, 10);
    connection = new_connection(&world);
    assert_int_equal(sl_registered_connection_start(connection), 0);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.end, SL_REGISTRATION_STALE);
    sl_registered_connection_free(connection);
    close_world(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_R1_success_gives_the_payload_and_the_endpoint_sees_the_token),
    cmocka_unit_test(test_R2_a_connect_that_can_not_be_made_fails_at_once_without_a_retry),
    cmocka_unit_test(
        test_R3_an_address_that_can_not_be_reached_is_tried_again_after_the_error_delay),
    cmocka_unit_test(test_R3_there_is_no_limit_on_the_attempts_to_reach_it),
    cmocka_unit_test(test_R4_timeouts_retry_at_once_with_a_doubled_limit),
    cmocka_unit_test(test_limits_double_up_to_the_maximum),
    cmocka_unit_test(test_R6_an_error_pauses_for_the_error_delay_and_begins_anew),
    cmocka_unit_test(test_a_failure_pauses_for_the_refused_delay_and_begins_anew),
    cmocka_unit_test(test_R8_a_rejection_ends_it),
    cmocka_unit_test(test_a_stale_token_ends_it_with_an_end_of_its_own),
    cmocka_unit_test(test_a_broken_connection_counts_as_an_error),
    cmocka_unit_test(test_cancel_ends_it_in_every_state),
    cmocka_unit_test(test_configs_are_checked),
    cmocka_unit_test(test_R9_start_connects),
    cmocka_unit_test(test_R10_a_call_that_can_not_be_made_is_delivered_as_a_failure),
    cmocka_unit_test(test_R10_so_is_a_call_that_throws_while_it_is_sent),
    cmocka_unit_test(test_R11_close_keeps_address_and_token_readable),
    cmocka_unit_test(test_start_is_refused_when_started_or_connected),
    cmocka_unit_test(test_try_reconnect_keeps_the_old_gateway_until_the_new_success),
    cmocka_unit_test(test_failures_are_told_by_kind),
};

UNIT_MAIN(tests)
