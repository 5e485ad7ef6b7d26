/*
 * Messages between the owners of processes: once and in order while sessions last, what a replaced
 * process takes along, and who hears of what.
 */

#include "remote_line.h"

enum {
    HEARD_MAX = 512,
};

/* What a site has heard. */
struct ear {
    int32_t numbers[HEARD_MAX];
    int count;
    int changes[HEARD_MAX];
    int change_count;
    size_t largest;
};

static struct ear ears[SITES];

static void
hear(void *ctx, int32_t peer, const uint8_t *bytes, size_t size)
{
    struct ear *ear = ctx;
    int32_t number;
    (void)peer;
    assert_true(size >= sizeof(number));
    memcpy(&number, bytes, sizeof(number));
    assert_true(ear->count < HEARD_MAX);
    ear->numbers[ear->count++] = number;
    ear->largest = size > ear->largest ? size : ear->largest;
    assert_int_equal(bytes[size - 1], size > sizeof(number) ? 7 : bytes[size - 1]);
}

static void
change(void *ctx, int32_t peer, enum sl_remote_change what)
{
    struct ear *ear = ctx;
    (void)peer;
    assert_true(ear->change_count < HEARD_MAX);
    ear->changes[ear->change_count++] = (int)what;
}

static void
listen_at(struct sites *sites, int32_t site)
{
    struct sl_remote_listener listener = {
        .on_message = hear, .on_change = change, .ctx = &ears[site]};
    sl_remote_listen(sites->at[site].remote, &listener);
}

static struct sites *
pair_new(uint64_t seed)
{
    reset_line();
    memset(ears, 0, sizeof(ears));
    tuples = 0;
    struct sites *sites = line_new(2, seed);
    listen_at(sites, 0);
    listen_at(sites, 1);
    return sites;
}

static void
say(struct sites *sites, int32_t from, int32_t to, int32_t number)
{
    assert_int_equal(sl_remote_send(sites->at[from].remote, to, &number, sizeof(number)), 0);
}

static void
test_messages_arrive_once_and_in_order_over_breaks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct sites *sites = pair_new(seed);
        sites_connect(sites, 0, 1);
        for (int32_t i = 0; i < 200; i++) {
            say(sites, 0, 1, i);
            say(sites, 1, 0, 1000 + i);
            for (int k = 0; k < (int)sl_random_below(&sites->random, 3); k++) {
                sites_step(sites);
            }
            if (i % 20 == 19) {
                sites_cut(sites, 0, 1);
                sites_step(sites);
                sites_connect(sites, 0, 1);
            }
        }
        sites_run(sites);
        assert_int_equal(sites->failure, 0);
        for (int32_t site = 0; site < 2; site++) {
            assert_int_equal(ears[site].count, 200);
            for (int32_t i = 0; i < 200; i++) {
                assert_int_equal(ears[site].numbers[i], site == 0 ? 1000 + i : i);
            }
            struct sl_remote_stats stats;
            sl_remote_stats(sites->at[site].remote, &stats);
            assert_int_equal(stats.queued, 0);
            assert_int_equal(stats.unconfirmed, 0);
            assert_int_equal(ears[site].changes[0], SL_REMOTE_BEGAN);
            for (int i = 1; i < ears[site].change_count; i++) {
                assert_int_equal(ears[site].changes[i],
                                 i % 2 == 1 ? SL_REMOTE_BROKE : SL_REMOTE_RESUMED);
            }
        }
        sites_free(sites);
    }
    reset_line();
}

static void
test_a_large_message_arrives_whole(void **state)
{
    (void)state;
    struct sites *sites = pair_new(3);
    sites_connect(sites, 0, 1);
    size_t size = 300000;
    uint8_t *bytes = sl_alloc(size);
    memset(bytes, 7, size);
    assert_int_equal(sl_remote_send(sites->at[0].remote, 1, bytes, size), 0);
    sl_free(bytes);
    say(sites, 0, 1, 5);
    sites_run(sites);
    assert_int_equal(ears[1].count, 2);
    assert_int_equal(ears[1].largest, size);
    assert_int_equal(ears[1].numbers[1], 5);
    sites_free(sites);
    reset_line();
}

static void
test_what_a_replaced_process_had_is_lost_and_the_rest_goes_to_the_new_one(void **state)
{
    (void)state;
    struct sites *sites = pair_new(4);
    sites_connect(sites, 0, 1);
    say(sites, 0, 1, 1);
    /* Written, and never delivered. */
    sites_write(sites, 0);
    sites_cut(sites, 0, 1);
    say(sites, 0, 1, 2);
    rig_free(sites->at[1].rig);
    site_start(sites, 1);
    listen_at(sites, 1);
    sites_connect(sites, 0, 1);
    sites_run(sites);
    assert_int_equal(ears[1].count, 1);
    assert_int_equal(ears[1].numbers[0], 2);
    assert_int_equal(ears[0].change_count, 3);
    assert_int_equal(ears[0].changes[2], SL_REMOTE_BEGAN);

    /* One that does not come back takes along what waits for it. */
    sites_cut(sites, 0, 1);
    say(sites, 0, 1, 3);
    sl_remote_pump(sites->at[0].remote);
    sl_remote_forget(sites->at[0].remote, 1);
    assert_int_equal(ears[0].changes[ears[0].change_count - 1], SL_REMOTE_ENDED);
    struct sl_remote_stats stats;
    sl_remote_stats(sites->at[0].remote, &stats);
    assert_int_equal(stats.queued, 0);
    sites_free(sites);
    reset_line();
}

static void
test_messages_that_can_not_be_are_refused(void **state)
{
    (void)state;
    struct sites *sites = pair_new(5);
    struct sl_remote *remote = sites->at[0].remote;
    assert_int_equal(sl_remote_send(remote, -1, "x", 1), SL_EINVAL);
    assert_int_equal(sl_remote_send(remote, SL_REMOTE_PEER_MAX + 1, "x", 1), SL_EINVAL);
    assert_int_equal(sl_remote_send(remote, 1, "x", 0), SL_EINVAL);
    assert_int_equal(sl_remote_send(remote, 1, "x", (size_t)SL_REMOTE_FRAME_MAX + 1), SL_ELIMIT);
    sites_connect(sites, 0, 1);
    struct sl__frame_head two = {
        .size = 8, .type = SL_REMOTE_MESSAGE, .count = 2, .check = SL_FRAME_MAGIC};
    assert_int_equal(sl_remote_feed(remote, 1, (const uint8_t *)&two, sizeof(two)), SL_EPROTO);
    sites_free(sites);
    reset_line();
}

static void
test_a_message_makes_the_lane_restless_and_nobody_need_listen(void **state)
{
    (void)state;
    struct sites *sites = pair_new(6);
    sites_connect(sites, 0, 1);
    sites_run(sites);
    assert_true(sl_remote_rest(sites->at[0].remote));
    say(sites, 0, 1, 1);
    assert_false(sl_remote_rest(sites->at[0].remote));
    sl_remote_listen(sites->at[1].remote, NULL);
    sites_run(sites);
    assert_int_equal(ears[1].count, 0);
    assert_int_equal(sites->failure, 0);
    sites_free(sites);
    reset_line();
}

static int wakes;

static void
woken(void *ctx)
{
    (void)ctx;
    wakes++;
}

static void
test_events_wake_an_owner_that_waits_for_something_else(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    sl_worker_set_wake(rig->worker, woken, NULL);
    sl_worker_post(rig->worker, SL_EVENT_ROLE, 1, 2, "text", 4);
    assert_int_equal(wakes, 1);
    sl_worker_set_wake(rig->worker, NULL, NULL);
    sl_worker_post(rig->worker, SL_EVENT_ROLE, 1, 2, "text", 4);
    assert_int_equal(wakes, 1);
    struct sl_event event;
    assert_int_equal(sl_worker_wait(rig->worker, 0, &event), 1);
    rig_free(rig);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_arrive_once_and_in_order_over_breaks),
        cmocka_unit_test(test_a_large_message_arrives_whole),
        cmocka_unit_test(test_what_a_replaced_process_had_is_lost_and_the_rest_goes_to_the_new_one),
        cmocka_unit_test(test_messages_that_can_not_be_are_refused),
        cmocka_unit_test(test_a_message_makes_the_lane_restless_and_nobody_need_listen),
        cmocka_unit_test(test_events_wake_an_owner_that_waits_for_something_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
