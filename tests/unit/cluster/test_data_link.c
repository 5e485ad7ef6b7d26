/*
 * Connections between workers in virtual time: links that are cut, reset and slow, processes that
 * stop and are replaced, peers that are not who they should be.
 */

#include "base/log.h"
#include "cluster/data_link.h"
#include "loop/sim.h"
#include "loop/stream.h"
#include "stream/remote_line.h"

struct net {
    struct sites *sites;
    struct sl_sim *sim;
    struct sl_loop *loops[SITES];
    struct sl_data_link *links[SITES];
    struct sl_data_bell bells[SITES];
    const char *secrets[SITES];
    bool is_stopped[SITES];
    int changes;
};

static const char *const hosts[SITES] = {"127.0.0.1", "127.0.0.2", "127.0.0.3"};

static void
changed(void *ctx)
{
    struct net *net = ctx;
    net->changes++;
}

/* Makes the links of a site, without peers and with nothing admitted. */
static void
net_link(struct net *net, int32_t site)
{
    struct sl_data_link_options options = {.remote = net->sites->at[site].remote,
                                           .bell = &net->bells[site],
                                           .container = site,
                                           .secret = net->secrets[site],
                                           .secret_size = strlen(net->secrets[site]),
                                           .on_change = changed,
                                           .ctx = net};
    memcpy(options.identity, net->sites->at[site].identity, sizeof(options.identity));
    net->loops[site] = sl_sim_loop_new(net->sim, hosts[site]);
    net->links[site] = sl_data_link_new(net->loops[site], &options);
    sl_data_link_set_topology(net->links[site], "line-1");
    assert_int_equal(sl_data_link_listen(net->links[site], hosts[site], 0), 0);
}

/* Tells a site where another one is. */
static void
net_tell(struct net *net, int32_t to, int32_t of)
{
    assert_int_equal(sl_data_link_peer(net->links[to], of, net->sites->at[of].identity, hosts[of],
                                       sl_data_link_port(net->links[of])),
                     0);
}

static void
net_tell_all(struct net *net)
{
    for (int32_t i = 0; i < net->sites->count; i++) {
        for (int32_t k = 0; k < net->sites->count; k++) {
            net_tell(net, i, k);
        }
    }
}

static struct net *
net_of(int32_t count, uint64_t seed)
{
    struct net *net = sl_calloc(1, sizeof(*net));
    net->sites = line_new(count, seed);
    net->sim = sl_sim_new(&(struct sl_sim_options){.seed = seed, .is_splitting_reads = true});
    for (int32_t i = 0; i < count; i++) {
        net->secrets[i] = "secret";
        net_link(net, i);
    }
    return net;
}

static struct net *
net_new(int32_t count, uint64_t seed)
{
    struct net *net = net_of(count, seed);
    for (int32_t i = 0; i < count; i++) {
        sl_data_link_admit(net->links[i]);
    }
    return net;
}

static void
net_free(struct net *net)
{
    for (int32_t i = 0; i < net->sites->count; i++) {
        sl_data_link_free(net->links[i]);
        sl_loop_free(net->loops[i]);
    }
    sl_sim_free(net->sim);
    sites_free(net->sites);
    sl_free(net);
}

static void
net_run(struct net *net, int ms)
{
    for (; ms > 0; ms--) {
        for (int32_t i = 0; i < net->sites->count; i++) {
            if (!net->is_stopped[i]) {
                sl_worker_advance(net->sites->at[i].rig->worker, 1);
                rig_round(net->sites->at[i].rig);
            }
        }
        sl_sim_run_for(net->sim, 1);
    }
}

static int32_t
connected(struct net *net, int32_t site)
{
    int32_t count;
    sl_data_link_peers(net->links[site], &count);
    return count;
}

static void
check_done(struct net *net)
{
    assert_false(has_gap);
    assert_int_equal(executed[SINK], 2 * tuples);
    assert_int_equal(executed[BOLT] + executed[BOLT_2], 2 * tuples);
    for (int32_t i = 0; i < net->sites->count; i++) {
        struct sl_remote_stats stats = stats_of(net->sites, i);
        assert_int_equal(stats.queued + stats.unconfirmed + stats.held + stats.strays, 0);
    }
}

static void
test_workers_connect_and_exchange_tuples(void **state)
{
    (void)state;
    reset_line();
    is_tracked = true;
    struct net *net = net_new(3, 1);
    net_tell_all(net);
    net_run(net, 2000);
    for (int32_t i = 0; i < 3; i++) {
        int32_t count;
        assert_int_equal(sl_data_link_peers(net->links[i], &count), 2);
        assert_int_equal(count, 2);
    }
    assert_int_equal(net->changes, 6);
    check_done(net);
    assert_int_equal(acked, 2 * tuples);
    net_free(net);
    reset_line();
}

static void
test_frames_wait_for_the_tasks_that_they_are_for(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        reset_line();
        is_tracked = true;
        struct net *net = net_of(3, seed);
        sl_data_link_admit(net->links[0]);
        net_tell_all(net);
        /* Nobody takes the others for dead meanwhile: their silence has a reason. */
        net_run(net, 3 * SL_DATA_SILENCE_MS);
        assert_int_equal(net->changes, 6);
        assert_int_equal(executed[BOLT_2], 0);
        assert_int_equal(stats_of(net->sites, 2).received, 0);
        assert_true(stats_of(net->sites, 0).unconfirmed > 0);
        sl_data_link_admit(net->links[1]);
        net_run(net, 500);
        assert_true(executed[BOLT] > 0);
        sl_data_link_admit(net->links[2]);
        net_run(net, 2000);
        assert_int_equal(net->changes, 6);
        check_done(net);
        assert_int_equal(acked + failed, 2 * tuples);
        net_free(net);
    }
    reset_line();
}

static void
fault(struct net *net)
{
    struct sl_random *random = &net->sites->random;
    int32_t one = (int32_t)sl_random_below(random, 3);
    int32_t other = (one + 1) % 3;
    switch (sl_random_below(random, 5)) {
    case 0:
        sl_sim_cut(net->sim, hosts[one], hosts[other]);
        break;
    case 1:
        sl_sim_cut(net->sim, hosts[other], hosts[one]);
        break;
    case 2:
        sl_sim_heal_all(net->sim);
        break;
    case 3:
        /* Bytes under way are lost. */
        sl_sim_reset(net->sim, hosts[one], hosts[other]);
        break;
    default:
        net->is_stopped[one] = !net->is_stopped[one];
        if (net->is_stopped[one]) {
            sl_sim_loop_pause(net->loops[one]);
        } else {
            sl_sim_loop_resume(net->loops[one]);
        }
        break;
    }
}

static void
test_faults_of_the_network_lose_and_double_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        reset_line();
        tuples = 10000;
        struct net *net = net_new(3, seed);
        net_tell_all(net);
        for (int i = 0; i < 60; i++) {
            net_run(net, 1 + (int)sl_random_below(&net->sites->random, 40));
            fault(net);
        }
        sl_sim_heal_all(net->sim);
        for (int32_t i = 0; i < 3; i++) {
            if (net->is_stopped[i]) {
                net->is_stopped[i] = false;
                sl_sim_loop_resume(net->loops[i]);
            }
        }
        for (int i = 0; i < 100 && executed[SINK] < 2 * tuples; i++) {
            net_run(net, 500);
        }
        net_run(net, 3000);
        check_done(net);
        net_free(net);
    }
    reset_line();
}

static void
test_a_stopped_receiver_holds_its_senders_in_bounded_memory(void **state)
{
    (void)state;
    reset_line();
    tuples = 200000;
    struct net *net = net_new(2, 3);
    net_tell_all(net);
    net_run(net, 50);
    sl_sim_loop_pause(net->loops[1]);
    net->is_stopped[1] = true;
    net_run(net, 60000);
    struct sl_remote_stats stats = stats_of(net->sites, 0);
    struct sl__pool *pool = &sl_worker_executor(net->sites->at[0].rig->worker, 0)->pool;
    assert_in_range(pool->made, 1, pool->limit + 8);
    assert_in_range(stats.queued, 1, 32);
    int64_t before = executed[SINK];
    assert_in_range(before, 0, 2 * tuples - 1);
    sl_sim_loop_resume(net->loops[1]);
    net->is_stopped[1] = false;
    for (int i = 0; i < 100 && executed[SINK] < 2 * tuples; i++) {
        net_run(net, 500);
    }
    net_run(net, 2000);
    check_done(net);
    net_free(net);
    reset_line();
}

static void
test_a_silent_connection_is_given_up_and_made_anew(void **state)
{
    (void)state;
    reset_line();
    struct net *net = net_new(2, 4);
    net_tell_all(net);
    net_run(net, 100);
    assert_int_equal(connected(net, 0), 1);
    sl_sim_cut(net->sim, hosts[0], hosts[1]);
    sl_sim_cut(net->sim, hosts[1], hosts[0]);
    net_run(net, SL_DATA_SILENCE_MS + 2 * SL_DATA_REFRESH_MS);
    assert_int_equal(connected(net, 0), 0);
    assert_int_equal(connected(net, 1), 0);
    sl_sim_heal_all(net->sim);
    net_run(net, 15000);
    assert_int_equal(connected(net, 0), 1);
    assert_int_equal(connected(net, 1), 1);
    check_done(net);
    net_free(net);
    reset_line();
}

static void
test_nobody_is_spoken_to_who_does_not_know_the_secret(void **state)
{
    (void)state;
    reset_line();
    struct net *net = sl_calloc(1, sizeof(*net));
    net->sites = line_new(2, 5);
    net->sim = sl_sim_new(&(struct sl_sim_options){.seed = 5});
    net->secrets[0] = "secret";
    net->secrets[1] = "guessed";
    net_link(net, 0);
    net_link(net, 1);
    sl_data_link_admit(net->links[0]);
    sl_data_link_admit(net->links[1]);
    net_tell_all(net);
    net_run(net, 3000);
    assert_int_equal(connected(net, 0), 0);
    assert_int_equal(connected(net, 1), 0);
    assert_int_equal(stats_of(net->sites, 0).received, 0);
    assert_int_equal(stats_of(net->sites, 1).received, 0);
    net_free(net);
    reset_line();
}

static void
test_only_the_process_that_the_plan_names_is_spoken_to(void **state)
{
    (void)state;
    reset_line();
    struct net *net = net_new(2, 6);
    uint8_t other[SL_REMOTE_IDENTITY_SIZE] = {1, 2, 3};
    net_tell(net, 1, 0);
    assert_int_equal(
        sl_data_link_peer(net->links[0], 1, other, hosts[1], sl_data_link_port(net->links[1])), 0);
    net_run(net, 3000);
    assert_int_equal(connected(net, 0), 0);
    assert_int_equal(connected(net, 1), 0);
    /* The plan with the new process comes later than its first attempts. It tries again at once
     * when the plan comes to it once more. */
    net_tell(net, 0, 1);
    net_tell(net, 1, 0);
    net_run(net, 20);
    assert_int_equal(connected(net, 0), 1);
    assert_int_equal(connected(net, 1), 1);
    net_run(net, 3000);
    check_done(net);
    net_free(net);
    reset_line();
}

static void
test_workers_of_another_submission_are_refused(void **state)
{
    (void)state;
    reset_line();
    struct net *net = net_new(2, 16);
    sl_data_link_set_topology(net->links[1], "line-2");
    net_tell_all(net);
    net_run(net, 3000);
    assert_int_equal(connected(net, 0), 0);
    sl_data_link_set_topology(net->links[0], "line-2");
    net_run(net, 3000);
    assert_int_equal(connected(net, 0), 1);
    check_done(net);
    net_free(net);
    reset_line();
}

static void
test_a_replaced_process_takes_over(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        reset_line();
        is_tracked = true;
        tuples = 5000;
        struct net *net = net_new(3, 70 + seed);
        net_tell_all(net);
        net_run(net, 3 + (int)seed * 3);
        sl_data_link_free(net->links[2]);
        sl_loop_free(net->loops[2]);
        rig_free(net->sites->at[2].rig);
        site_start(net->sites, 2);
        net_link(net, 2);
        sl_data_link_admit(net->links[2]);
        for (int32_t i = 0; i < 2; i++) {
            struct rig *rig = net->sites->at[i].rig;
            assert_int_equal(sl_worker_place(rig->worker, BOLT_2, 2), 0);
            rig_command_all(rig, SL_COMMAND_ROUTES);
        }
        net_tell_all(net);
        net_run(net, 8000);
        assert_int_equal(acked + failed, 2 * tuples);
        assert_true(acked > 0);
        struct sl_remote_stats stats = stats_of(net->sites, 0);
        assert_int_equal(stats.queued + stats.unconfirmed + stats.held, 0);
        net_free(net);
    }
    reset_line();
}

static void
test_a_removed_peer_fails_what_waits_for_it(void **state)
{
    (void)state;
    reset_line();
    is_tracked = true;
    tuples = 50;
    struct net *net = net_new(2, 8);
    net_run(net, 100);
    assert_true(stats_of(net->sites, 0).queued > 0);
    sl_data_link_remove(net->links[0], 1);
    assert_int_equal(stats_of(net->sites, 0).queued, 0);
    net_run(net, 100);
    assert_true(failed > 0);
    assert_int_equal(stats_of(net->sites, 0).sent, 0);
    net_free(net);
    reset_line();
}

static void
test_addresses_that_can_not_be_are_refused(void **state)
{
    (void)state;
    reset_line();
    struct net *net = net_new(2, 9);
    uint8_t identity[SL_REMOTE_IDENTITY_SIZE] = {0};
    static const struct {
        int32_t container;
        const char *host;
        uint16_t port;
    } rows[] = {{-1, "127.0.0.1", 1},
                {SL_REMOTE_PEER_MAX + 1, "127.0.0.1", 1},
                {1, "", 1},
                {1, "127.0.0.1", 0}};
    for (size_t i = 0; i < array_size(rows); i++) {
        assert_int_equal(sl_data_link_peer(net->links[0], rows[i].container, identity, rows[i].host,
                                           rows[i].port),
                         SL_EINVAL);
    }
    /* Its own container is no peer. */
    assert_int_equal(sl_data_link_peer(net->links[0], 0, identity, "127.0.0.1", 1), 0);
    int32_t count;
    assert_int_equal(sl_data_link_peers(net->links[0], &count), 0);
    net_free(net);

    struct sites *sites = line_new(2, 10);
    struct sl_sim *sim = sl_sim_new(&(struct sl_sim_options){.seed = 1});
    struct sl_loop *loop = sl_sim_loop_new(sim, "10.0.0.1");
    struct sl_data_bell bell;
    struct sl_data_link_options options = {.remote = sites->at[0].remote, .bell = &bell};
    struct sl_data_link *link = sl_data_link_new(loop, &options);
    assert_int_equal(sl_data_link_listen(link, "10.0.0.1", 0), SL_EFENCED);
    assert_int_equal(sl_data_link_port(link), 0);
    sl_data_link_free(link);
    sl_loop_free(loop);
    sl_sim_free(sim);
    sites_free(sites);
}

/* ---- strangers ------------------------------------------------------------------------------ */

struct stranger {
    struct sl_stream *stream;
    const uint8_t *bytes;
    size_t size;
    bool is_closed;
};

static void
stranger_open(void *ctx)
{
    struct stranger *stranger = ctx;
    if (stranger->size > 0) {
        sl_stream_write(stranger->stream, stranger->bytes, stranger->size);
    }
}

static void
stranger_data(void *ctx, const uint8_t *data, size_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
}

static void
stranger_close(void *ctx, const struct sl_err *why)
{
    struct stranger *stranger = ctx;
    (void)why;
    stranger->is_closed = true;
}

static void
test_strangers_are_closed_in_time(void **state)
{
    (void)state;
    static const uint8_t garbage[64] = "GET / HTTP/1.1\r\n\r\n";
    /* A hello without a proof, and a frame of data before the opening. */
    static const uint8_t hello[] = {4, 0, 0, 0, 2,    0,    0, 0, 1, 0,
                                    0, 0, 1, 0, 0x73, 0x4c, 1, 2, 3, 4};
    static const uint8_t early[] = {4, 0, 0, 0, 32,   0,    0, 0, 1, 0,
                                    0, 0, 1, 0, 0x73, 0x4c, 1, 2, 3, 4};
    static const struct {
        const uint8_t *bytes;
        size_t size;
    } rows[] = {
        {NULL, 0}, {garbage, sizeof(garbage)}, {hello, sizeof(hello)}, {early, sizeof(early)}};
    static const struct sl_stream_handler handler = {
        .on_open = stranger_open, .on_data = stranger_data, .on_close = stranger_close};
    reset_line();
    struct net *net = net_new(2, 12);
    net_tell_all(net);
    for (size_t i = 0; i < array_size(rows); i++) {
        struct stranger stranger = {.bytes = rows[i].bytes, .size = rows[i].size};
        struct sl_address address = {.kind = SL_ADDRESS_TCP,
                                     .port = sl_data_link_port(net->links[0])};
        snprintf(address.host, sizeof(address.host), "%s", hosts[0]);
        assert_int_equal(
            sl_stream_connect(net->loops[1], &address, NULL, &handler, &stranger, &stranger.stream),
            0);
        net_run(net, SL_DATA_OPENING_MS + 100);
        assert_true(stranger.is_closed);
    }
    assert_int_equal(connected(net, 0), 1);
    check_done(net);
    net_free(net);
    reset_line();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_workers_connect_and_exchange_tuples),
    cmocka_unit_test(test_frames_wait_for_the_tasks_that_they_are_for),
    cmocka_unit_test(test_faults_of_the_network_lose_and_double_nothing),
    cmocka_unit_test(test_a_stopped_receiver_holds_its_senders_in_bounded_memory),
    cmocka_unit_test(test_a_silent_connection_is_given_up_and_made_anew),
    cmocka_unit_test(test_nobody_is_spoken_to_who_does_not_know_the_secret),
    cmocka_unit_test(test_only_the_process_that_the_plan_names_is_spoken_to),
    cmocka_unit_test(test_workers_of_another_submission_are_refused),
    cmocka_unit_test(test_a_replaced_process_takes_over),
    cmocka_unit_test(test_a_removed_peer_fails_what_waits_for_it),
    cmocka_unit_test(test_addresses_that_can_not_be_are_refused),
    cmocka_unit_test(test_strangers_are_closed_in_time),
};

int
main(void)
{
    sl_log_configure("error");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
