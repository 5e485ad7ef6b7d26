/* labels: short */
/* The fourth named connection with its endpoint: a worker at its topology master. */
#include "cluster/worker_registration.h"

#include "cluster_fixture.h"

struct worker {
    struct node node;
    struct sl_register_peer identity;
    struct sl_worker_registration *registration;
    int registered;
    uint64_t token;
    int lost;
    char cause[SL_REASON_SIZE];
    int stale;
    int rejected;
    char reason[SL_REASON_SIZE];
    int payloads;
};

static void
on_registered(void *ctx, uint64_t token)
{
    struct worker *worker = ctx;
    worker->registered++;
    worker->token = token;
}

static void
on_worker_link_lost(void *ctx, const char *cause)
{
    struct worker *worker = ctx;
    worker->lost++;
    snprintf(worker->cause, sizeof(worker->cause), "%s", cause);
}

static void
on_stale(void *ctx)
{
    ((struct worker *)ctx)->stale++;
}

static void
on_rejected(void *ctx, const char *reason)
{
    struct worker *worker = ctx;
    worker->rejected++;
    snprintf(worker->reason, sizeof(worker->reason), "%s", reason);
}

static void
make_payload(void *ctx, struct sl_buf *out)
{
    ((struct worker *)ctx)->payloads++;
    sl_buf_append(out, "busy", 4);
}

static struct sl_worker_registration_options
options_of(struct worker *worker)
{
    return (struct sl_worker_registration_options){
        .rpc = worker->node.rpc,
        .identity = &worker->identity,
        .registration = registration,
        .heartbeat = heartbeat,
        .on_registered = on_registered,
        .on_lost = on_worker_link_lost,
        .on_stale_leader = on_stale,
        .on_rejected = on_rejected,
        .make_payload = make_payload,
        .ctx = worker,
    };
}

static void
open_worker(struct cluster *cluster, struct worker *worker, const char *host, const char *topology)
{
    memset(worker, 0, sizeof(*worker));
    open_node(cluster, &worker->node, host, "w1");
    worker->identity = (struct sl_register_peer){.topology = topology,
                                                 .address = worker->node.address,
                                                 .resource = "w1",
                                                 .process = worker->node.process,
                                                 .supervisor = "s0",
                                                 .port = 6700};
    struct sl_worker_registration_options options = options_of(worker);
    assert_int_equal(sl_worker_registration_new(&options, &worker->registration), 0);
}

static void
close_worker(struct worker *worker)
{
    sl_worker_registration_free(worker->registration);
    close_node(&worker->node);
}

static void
test_a_worker_registers_and_answers_heartbeats(void **state)
{
    (void)state;
    struct cluster cluster;
    struct worker worker;
    open_cluster(&cluster, 0);
    open_master(&cluster, 0, "words", 50);
    open_worker(&cluster, &worker, "127.0.4.1", "words");
    run(&cluster, 1000);
    assert_int_equal(worker.registered, 0);
    assert_null(sl_worker_registration_gateway(worker.registration));
    sl_worker_registration_leader(worker.registration, cluster.masters[0].node.address, 50);
    run(&cluster, 60000);
    assert_int_equal(worker.registered, 1);
    assert_int_equal(worker.token, 50);
    assert_int_equal(worker.lost, 0);
    assert_true(worker.payloads >= 55);
    assert_int_equal(sl_master_slots_worker_count(cluster.masters[0].slots), 1);
    assert_int_equal(cluster.masters[0].workers_lost, 0);
    assert_string_equal(sl_rpc_gateway_address(sl_worker_registration_gateway(worker.registration)),
                        cluster.masters[0].node.address);
    close_worker(&worker);
    close_cluster(&cluster);
}

static void
test_a_worker_follows_the_topology_master(void **state)
{
    (void)state;
    struct cluster cluster;
    struct worker worker;
    open_cluster(&cluster, 0);
    open_master(&cluster, 0, "words", 50);
    open_worker(&cluster, &worker, "127.0.4.1", "words");
    sl_worker_registration_leader(worker.registration, cluster.masters[0].node.address, 50);
    run(&cluster, 2000);
    /* It is let go when the term ends, and the leader node says who is next. */
    sl_master_slots_free(cluster.masters[0].slots);
    cluster.masters[0].slots = NULL;
    run(&cluster, 100);
    assert_int_equal(worker.lost, 1);
    assert_string_equal(worker.cause, "its term ended");
    close_node(&cluster.masters[0].node);
    open_master(&cluster, 1, "words", 51);
    sl_worker_registration_leader(worker.registration, cluster.masters[1].node.address, 51);
    run(&cluster, 1000);
    assert_int_equal(worker.registered, 2);
    assert_int_equal(worker.token, 51);
    /* Silence: it registers anew at the leader that it knows. */
    sl_sim_cut(cluster.sim, "127.0.2.1", "127.0.4.1");
    sl_sim_cut(cluster.sim, "127.0.4.1", "127.0.2.1");
    run(&cluster, 7000);
    assert_int_equal(worker.lost, 2);
    assert_contains(worker.cause, "no heartbeat of topology master tm1");
    assert_int_equal(cluster.masters[1].workers_lost, 1);
    sl_sim_heal_all(cluster.sim);
    run(&cluster, 10000);
    assert_int_equal(worker.registered, 3);
    assert_int_equal(sl_master_slots_worker_count(cluster.masters[1].slots), 1);
    close_worker(&worker);
    close_cluster(&cluster);
}

static void
test_refusals_reach_the_worker_by_kind(void **state)
{
    (void)state;
    struct cluster cluster;
    struct worker worker;
    open_cluster(&cluster, 0);
    open_master(&cluster, 0, "words", 50);
    open_worker(&cluster, &worker, "127.0.4.1", "words");
    sl_worker_registration_leader(worker.registration, cluster.masters[0].node.address, 49);
    run(&cluster, 1000);
    assert_int_equal(worker.stale, 1);
    assert_int_equal(worker.rejected, 0);
    close_worker(&worker);
    /* No endpoint of that topology: an error, tried again; at the one that is there, a rejection.
     */
    open_worker(&cluster, &worker, "127.0.4.2", "words");
    worker.identity.topology = "other";
    sl_worker_registration_leader(worker.registration, cluster.masters[0].node.address, 50);
    run(&cluster, 1000);
    assert_int_equal(worker.rejected, 1);
    assert_contains(worker.reason, "master of words, not of other");
    close_worker(&worker);
    close_cluster(&cluster);
}

/* A word of an old term, or one that makes no sense, ends no registration. */
static void
test_only_the_present_term_lets_a_worker_go(void **state)
{
    (void)state;
    struct cluster cluster;
    struct worker worker;
    struct sl_rpc_gateway *gateway;
    struct sl_disconnect goodbye = {.resource = "tm0", .topology = "words", .cause = "a test"};
    open_cluster(&cluster, 0);
    open_master(&cluster, 0, "words", 50);
    open_worker(&cluster, &worker, "127.0.4.1", "words");
    sl_worker_registration_leader(worker.registration, cluster.masters[0].node.address, 50);
    run(&cluster, 1000);
    assert_int_equal(sl_rpc_connect(cluster.masters[0].node.rpc, worker.node.address,
                                    SL_ENDPOINT_WORKER, 0, &gateway),
                     0);
    goodbye.token = 49;
    sl_connection_say_goodbye(gateway, SL_WORKER_DISCONNECT, &goodbye);
    sl_rpc_send(gateway, SL_WORKER_DISCONNECT, "\xff", 1);
    run(&cluster, 100);
    assert_int_equal(worker.lost, 0);
    goodbye.token = 50;
    sl_connection_say_goodbye(gateway, SL_WORKER_DISCONNECT, &goodbye);
    run(&cluster, 100);
    assert_int_equal(worker.lost, 1);
    assert_string_equal(worker.cause, "a test");
    run(&cluster, 1000);
    assert_int_equal(worker.registered, 2);
    sl_rpc_gateway_free(gateway);
    close_worker(&worker);
    close_cluster(&cluster);
}

static void
test_bad_settings_and_a_second_endpoint_are_refused(void **state)
{
    (void)state;
    struct cluster cluster;
    struct worker worker;
    struct sl_worker_registration *second;
    open_cluster(&cluster, 0);
    open_worker(&cluster, &worker, "127.0.4.1", "words");
    struct sl_worker_registration_options options = options_of(&worker);
    assert_int_equal(sl_worker_registration_new(&options, &second), SL_EEXIST);
    options.heartbeat.interval_ms = 0;
    assert_int_equal(sl_worker_registration_new(&options, &second), SL_EINVAL);
    options.registration.initial_timeout_ms = 0;
    assert_int_equal(sl_worker_registration_new(&options, &second), SL_EINVAL);
    close_worker(&worker);
    close_cluster(&cluster);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_worker_registers_and_answers_heartbeats),
    cmocka_unit_test(test_a_worker_follows_the_topology_master),
    cmocka_unit_test(test_refusals_reach_the_worker_by_kind),
    cmocka_unit_test(test_only_the_present_term_lets_a_worker_go),
    cmocka_unit_test(test_bad_settings_and_a_second_endpoint_are_refused),
};

UNIT_MAIN(tests)
