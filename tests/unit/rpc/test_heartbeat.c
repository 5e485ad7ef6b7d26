/* labels: short */
/* Table 3.5 of the reference: interval 50, time-out 200 ms unless a row says otherwise. */
#include "rpc/heartbeat.h"

#include "rpc_fixture.h"

struct side {
    struct sl_heartbeats heartbeats;
    /* The other side, when wired. */
    struct side *other;
    struct sl_sim *sim;
    const char *own_id;
    const char *own_payload;
    char last_payload[32];
    int payloads;
    int timeouts;
    int unreachables;
    int requests;
    uint64_t timeout_ms;
    char dead[32];
    bool is_stopped;
    bool is_unmonitoring;
    enum sl_heartbeat_answer answer;
};

static void
on_timeout(void *ctx, const char *id)
{
    struct side *side = ctx;
    side->timeouts++;
    side->timeout_ms = sl_sim_now_ms(side->sim);
    if (side->is_unmonitoring) {
        sl_heartbeats_unmonitor(&side->heartbeats, id);
    }
    snprintf(side->dead, sizeof(side->dead), "%s", id);
}

static void
on_unreachable(void *ctx, const char *id)
{
    struct side *side = ctx;
    side->unreachables++;
    snprintf(side->dead, sizeof(side->dead), "%s", id);
}

static void
on_payload(void *ctx, const char *id, const uint8_t *payload, size_t size)
{
    struct side *side = ctx;
    (void)id;
    side->payloads++;
    memcpy(side->last_payload, payload != NULL ? (const char *)payload : "", size);
    side->last_payload[size] = '\0';
}

static void
make_payload(void *ctx, const char *id, struct sl_buf *out)
{
    struct side *side = ctx;
    sl_buf_printf(out, "%s>%s", side->own_payload, id);
}

/* A request to a target reaches the other side's heartbeats, or ends as the test says. */
static void
request(void *ctx, const char *id, const uint8_t *payload, size_t size)
{
    struct side *side = ctx;
    struct sl_buf answer = {0};
    side->requests++;
    if (side->other == NULL) {
        sl_heartbeats_answered(&side->heartbeats, id, side->answer, NULL, 0);
    } else if (!side->other->is_stopped &&
               sl_heartbeats_requested(&side->other->heartbeats, side->own_id, payload, size,
                                       &answer)) {
        sl_heartbeats_answered(&side->heartbeats, id, SL_HEARTBEAT_ANSWERED, answer.data,
                               answer.size);
    }
    sl_buf_destroy(&answer);
}

static struct sl_heartbeat_target
target_of(struct side *side)
{
    return (struct sl_heartbeat_target){request, side};
}

struct world {
    struct sl_sim *sim;
    struct sl_loop *loop;
    struct side one;
    struct side two;
};

static void
open_side(struct world *world, struct side *side, bool is_sender,
          const struct sl_heartbeat_config *config, const char *id, const char *payload)
{
    struct sl_heartbeat_listener listener = {on_timeout, on_unreachable, on_payload, make_payload,
                                             side};
    side->sim = world->sim;
    side->own_id = id;
    side->own_payload = payload;
    side->answer = SL_HEARTBEAT_OTHER;
    assert_int_equal(
        sl_heartbeats_create(&side->heartbeats, world->loop, is_sender, config, &listener), 0);
}

static void
open_world(struct world *world, bool is_sender, const struct sl_heartbeat_config *config)
{
    memset(world, 0, sizeof(*world));
    world->sim = sl_sim_new(&(struct sl_sim_options){.seed = 1});
    world->loop = sl_sim_loop_new(world->sim, "127.0.0.2");
    open_side(world, &world->one, is_sender, config, "one", "42");
}

static void
close_world(struct world *world)
{
    sl_heartbeats_destroy(&world->one.heartbeats);
    sl_heartbeats_destroy(&world->two.heartbeats);
    sl_loop_free(world->loop);
    sl_sim_free(world->sim);
}

static const struct sl_heartbeat_config quick = {50, 200, 2};

static void
test_H1_payloads_go_both_ways(void **state)
{
    (void)state;
    struct world world;
    struct sl_buf answer = {0};
    open_world(&world, false, &quick);
    sl_heartbeats_monitor(&world.one.heartbeats, "t", NULL);
    assert_true(
        sl_heartbeats_requested(&world.one.heartbeats, "t", (const uint8_t *)"foobar", 6, &answer));
    assert_string_equal(world.one.last_payload, "foobar");
    /* Made for that target. */
    assert_string_equal(sl_buf_str(&answer), "42>t");
    sl_heartbeats_receive(&world.one.heartbeats, "t", (const uint8_t *)"barfoo", 6);
    assert_string_equal(world.one.last_payload, "barfoo");
    sl_buf_destroy(&answer);
    close_world(&world);
}

static void
test_H2_a_heartbeat_starts_the_limit_anew(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, false, &quick);
    sl_heartbeats_monitor(&world.one.heartbeats, "t", NULL);
    sl_sim_run_for(world.sim, 150);
    sl_heartbeats_receive(&world.one.heartbeats, "t", NULL, 0);
    sl_sim_run_for(world.sim, 199);
    assert_int_equal(world.one.timeouts, 0);
    sl_sim_run_for(world.sim, 1000);
    /* Once, and the target stays until it is unmonitored. */
    assert_int_equal(world.one.timeouts, 1);
    assert_int_equal(world.one.timeout_ms, 350);
    assert_string_equal(world.one.dead, "t");
    assert_true(sl_heartbeats_is_monitored(&world.one.heartbeats, "t"));
    /* A terminal state stays. */
    sl_heartbeats_receive(&world.one.heartbeats, "t", NULL, 0);
    sl_sim_run_for(world.sim, 1000);
    assert_int_equal(world.one.timeouts, 1);
    close_world(&world);
}

static void
test_H4_sender_and_receiver(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, true, &quick);
    open_side(&world, &world.two, false, &quick, "two", "23");
    world.one.other = &world.two;
    struct sl_heartbeat_target target = target_of(&world.one);
    sl_heartbeats_monitor(&world.one.heartbeats, "two", &target);
    sl_heartbeats_monitor(&world.two.heartbeats, "one", NULL);
    sl_sim_run_for(world.sim, 400);
    assert_int_equal(world.one.timeouts + world.two.timeouts, 0);
    assert_true(world.one.payloads >= 4 && world.two.payloads >= 4);
    assert_string_equal(world.one.last_payload, "23>one");
    assert_string_equal(world.two.last_payload, "42>two");
    world.two.is_stopped = true;
    sl_sim_run_for(world.sim, 400);
    assert_int_equal(world.one.timeouts, 1);
    assert_string_equal(world.one.dead, "two");
    /* Nobody asks a dead target any more. */
    int requests = world.one.requests;
    sl_sim_run_for(world.sim, 400);
    assert_int_equal(world.one.requests, requests);
    close_world(&world);
}

static void
test_H5_unmonitor_ends_it(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, false, &(struct sl_heartbeat_config){10, 50, 2});
    sl_heartbeats_monitor(&world.one.heartbeats, "t", NULL);
    sl_heartbeats_unmonitor(&world.one.heartbeats, "t");
    sl_heartbeats_unmonitor(&world.one.heartbeats, "t");
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.one.timeouts, 0);
    close_world(&world);
}

static void
test_unmonitor_in_the_callback(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, false, &quick);
    world.one.is_unmonitoring = true;
    sl_heartbeats_monitor(&world.one.heartbeats, "t", NULL);
    sl_sim_run_for(world.sim, 300);
    assert_string_equal(world.one.dead, "t");
    assert_false(sl_heartbeats_is_monitored(&world.one.heartbeats, "t"));
    close_world(&world);
}

static void
test_H6_last_heartbeat(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, false, &quick);
    assert_int_equal(sl_heartbeats_last_ms(&world.one.heartbeats, "t"), -1);
    sl_heartbeats_monitor(&world.one.heartbeats, "t", NULL);
    assert_int_equal(sl_heartbeats_last_ms(&world.one.heartbeats, "t"), 0);
    sl_sim_run_for(world.sim, 70);
    sl_heartbeats_receive(&world.one.heartbeats, "t", NULL, 0);
    assert_int_equal(sl_heartbeats_last_ms(&world.one.heartbeats, "t"), 70);
    close_world(&world);
}

static void
test_unknown_ids(void **state)
{
    (void)state;
    struct world world;
    struct sl_buf answer = {0};
    open_world(&world, false, &quick);
    assert_false(
        sl_heartbeats_requested(&world.one.heartbeats, "nobody", (const uint8_t *)"x", 1, &answer));
    assert_int_equal(answer.size, 0);
    assert_int_equal(world.one.payloads, 0);
    /* But what it sends on its own is told. */
    sl_heartbeats_receive(&world.one.heartbeats, "nobody", (const uint8_t *)"x", 1);
    assert_int_equal(world.one.payloads, 1);
    sl_sim_run_for(world.sim, 1000);
    assert_int_equal(world.one.timeouts, 0);
    close_world(&world);
}

static void
test_monitoring_a_known_id_keeps_the_old_target(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, false, &quick);
    sl_heartbeats_monitor(&world.one.heartbeats, "t", NULL);
    sl_sim_run_for(world.sim, 150);
    sl_heartbeats_monitor(&world.one.heartbeats, "t", NULL);
    sl_sim_run_for(world.sim, 60);
    assert_int_equal(world.one.timeouts, 1);
    close_world(&world);
}

static void
test_H8_unreachable_answers_in_a_row(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, true, &(struct sl_heartbeat_config){50, 100000, 5});
    struct sl_heartbeat_target target = target_of(&world.one);
    sl_heartbeats_monitor(&world.one.heartbeats, "t", &target);
    world.one.answer = SL_HEARTBEAT_UNREACHABLE;
    sl_sim_run_for(world.sim, 4 * 50 + 10);
    assert_int_equal(world.one.unreachables, 0);
    /* Another error does not count, and does not start the count anew. */
    world.one.answer = SL_HEARTBEAT_OTHER;
    sl_sim_run_for(world.sim, 50);
    assert_int_equal(world.one.unreachables, 0);
    world.one.answer = SL_HEARTBEAT_UNREACHABLE;
    sl_sim_run_for(world.sim, 50);
    assert_int_equal(world.one.unreachables, 1);
    assert_string_equal(world.one.dead, "t");
    sl_sim_run_for(world.sim, 200000);
    assert_int_equal(world.one.unreachables, 1);
    assert_int_equal(world.one.timeouts, 0);
    close_world(&world);
}

static void
test_H8_a_success_starts_the_count_anew(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, true, &(struct sl_heartbeat_config){50, 100000, 5});
    struct sl_heartbeat_target target = target_of(&world.one);
    sl_heartbeats_monitor(&world.one.heartbeats, "t", &target);
    for (int round = 0; round < 3; round++) {
        world.one.answer = SL_HEARTBEAT_UNREACHABLE;
        sl_sim_run_for(world.sim, 4 * 50);
        world.one.answer = SL_HEARTBEAT_ANSWERED;
        sl_sim_run_for(world.sim, 50);
    }
    assert_int_equal(world.one.unreachables, 0);
    close_world(&world);
}

static void
test_H9_the_threshold_can_be_switched_off(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, true, &(struct sl_heartbeat_config){50, 100000, -1});
    struct sl_heartbeat_target target = target_of(&world.one);
    sl_heartbeats_monitor(&world.one.heartbeats, "t", &target);
    world.one.answer = SL_HEARTBEAT_UNREACHABLE;
    sl_sim_run_for(world.sim, 10 * 50 + 10);
    assert_int_equal(world.one.requests, 10);
    assert_int_equal(world.one.unreachables, 0);
    close_world(&world);
}

static void
test_configs_are_checked(void **state)
{
    (void)state;
    static const struct sl_heartbeat_config BAD[] = {
        {0, 10, 2}, {10, 10, 2}, {10, 0, 2}, {10, 20, 0}, {10, 20, -2}};
    for (size_t i = 0; i < array_size(BAD); i++) {
        assert_int_equal(sl_heartbeat_config_check(&BAD[i]), SL_EINVAL);
    }
    struct sl_heartbeat_config config = sl_heartbeat_config_default();
    assert_int_equal(sl_heartbeat_config_check(&config), 0);
    assert_int_equal(config.interval_ms, 10000);
    assert_int_equal(config.timeout_ms, 50000);
    assert_int_equal(config.threshold, 2);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_H1_payloads_go_both_ways),
    cmocka_unit_test(test_H2_a_heartbeat_starts_the_limit_anew),
    cmocka_unit_test(test_H4_sender_and_receiver),
    cmocka_unit_test(test_H5_unmonitor_ends_it),
    cmocka_unit_test(test_unmonitor_in_the_callback),
    cmocka_unit_test(test_H6_last_heartbeat),
    cmocka_unit_test(test_unknown_ids),
    cmocka_unit_test(test_monitoring_a_known_id_keeps_the_old_target),
    cmocka_unit_test(test_H8_unreachable_answers_in_a_row),
    cmocka_unit_test(test_H8_a_success_starts_the_count_anew),
    cmocka_unit_test(test_H9_the_threshold_can_be_switched_off),
    cmocka_unit_test(test_configs_are_checked),
};

UNIT_MAIN(tests)
