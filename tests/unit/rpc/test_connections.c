/* labels: short */
/* The four named connections and the reconnect sequence. */
#include "rpc/connections.h"

#include "rpc_fixture.h"

/* A resource manager and a topology master of one topology; one more resource manager for B. */
struct world {
    struct sl_sim *sim;
    struct sl_loop *server_loop;
    struct sl_rpc *server;
    struct sl_rpc_endpoint rm;
    struct sl_rpc_endpoint tm;
    struct sl_rpc_endpoint tm_slots;
    struct sl_loop *other_loop;
    struct sl_rpc *other;
    struct sl_rpc_endpoint other_rm;
    struct sl_loop *loop;
    struct sl_rpc *rpc;
    struct sl_arena arena;
    int registrations;
    int goodbyes;
    struct sl_register_supervisor supervisor;
    struct sl_register_topology_master master;
    struct sl_register_peer peer;
    uint32_t peer_method;
    bool is_rejecting;
    /* The listener of the connections. */
    int registered;
    int closings;
    char cause[256];
    int failures;
    enum sl_registration_end failure;
    uint64_t instance;
    uint64_t token;
};

static void
answer(struct world *world, struct sl_rpc_request *request, int rc)
{
    struct sl_buf body = {0};
    struct sl_registered message = {.resource = "server", .instance = 77, .token = 5};
    world->registrations++;
    assert_int_equal(rc, 0);
    sl_registered_encode(&message, &body);
    if (world->is_rejecting) {
        sl_rpc_refuse(request, SL_RPC_REJECTION, SL_EEXIST, "no");
    } else {
        sl_rpc_reply(request, body.data, body.size);
    }
    sl_buf_destroy(&body);
}

static void
register_supervisor(void *ctx, struct sl_rpc_request *request)
{
    struct world *world = ctx;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    answer(world, request,
           sl_register_supervisor_decode(body, size, &world->arena, &world->supervisor));
}

static void
register_master(void *ctx, struct sl_rpc_request *request)
{
    struct world *world = ctx;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    answer(world, request,
           sl_register_topology_master_decode(body, size, &world->arena, &world->master));
}

static void
register_peer(void *ctx, struct sl_rpc_request *request)
{
    struct world *world = ctx;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    world->peer_method = sl_rpc_request_method(request);
    answer(world, request, sl_register_peer_decode(body, size, &world->arena, &world->peer));
}

static void
goodbye(void *ctx, struct sl_rpc_request *request)
{
    struct world *world = ctx;
    size_t size;
    struct sl_disconnect message;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    assert_int_equal(sl_disconnect_decode(body, size, &world->arena, &message), 0);
    assert_string_equal(message.resource, "s1");
    world->goodbyes++;
    sl_rpc_reply(request, NULL, 0);
}

static const struct sl_rpc_method rm_methods[] = {
    {SL_RM_REGISTER_SUPERVISOR, register_supervisor},
    {SL_RM_REGISTER_TOPOLOGY_MASTER, register_master},
    {SL_RM_DISCONNECT_SUPERVISOR, goodbye},
};

static const struct sl_rpc_method tm_methods[] = {
    {SL_TM_REGISTER_SUPERVISOR, register_peer},
    {SL_TM_REGISTER_WORKER, register_peer},
};

static void
on_registered(void *ctx, struct sl_leader_link *link, const struct sl_registered *answered)
{
    struct world *world = ctx;
    assert_non_null(sl_leader_link_gateway(link));
    assert_string_equal(answered->resource, "server");
    world->registered++;
    world->instance = answered->instance;
    world->token = sl_rpc_gateway_token(sl_leader_link_gateway(link));
}

static void
on_closing(void *ctx, struct sl_leader_link *link, const char *cause)
{
    struct world *world = ctx;
    struct sl_disconnect message = {.resource = "s1", .cause = cause};
    world->closings++;
    snprintf(world->cause, sizeof(world->cause), "%s", cause);
    sl_connection_say_goodbye(sl_leader_link_gateway(link), SL_RM_DISCONNECT_SUPERVISOR, &message);
}

static void
on_failure(void *ctx, struct sl_leader_link *link, enum sl_registration_end kind, int code,
           const char *reason)
{
    struct world *world = ctx;
    (void)link;
    (void)code;
    (void)reason;
    world->failures++;
    world->failure = kind;
}

static struct sl_rpc *
open_rm(struct world *world, struct sl_loop *loop, const char *address,
        struct sl_rpc_endpoint *endpoint, uint64_t token)
{
    struct sl_rpc_options options = {.name = "rm"};
    struct sl_rpc_endpoint_options rm = {.name = SL_ENDPOINT_RESOURCE_MANAGER,
                                         .is_fenced = true,
                                         .methods = rm_methods,
                                         .method_count = array_size(rm_methods),
                                         .ctx = world};
    struct sl_rpc *rpc = sl_rpc_new(loop, &options);
    assert_int_equal(sl_rpc_listen(rpc, address), 0);
    assert_int_equal(sl_rpc_endpoint_start(rpc, endpoint, &rm), 0);
    sl_rpc_endpoint_set_token(endpoint, token);
    return rpc;
}

static void
open_world(struct world *world)
{
    struct sl_rpc_options options = {.role = "supervisor", .name = "s1"};
    struct sl_rpc_endpoint_options tm = {.name = SL_ENDPOINT_TOPOLOGY_MASTER "words",
                                         .is_fenced = true,
                                         .methods = tm_methods,
                                         .method_count = array_size(tm_methods),
                                         .ctx = world};
    memset(world, 0, sizeof(*world));
    sl_arena_create(&world->arena, 0, 0);
    world->sim = sl_sim_new(&(struct sl_sim_options){.seed = 5});
    world->server_loop = sl_sim_loop_new(world->sim, "127.0.0.2");
    world->server = open_rm(world, world->server_loop, "127.0.0.2:700", &world->rm, 4);
    assert_int_equal(sl_rpc_endpoint_start(world->server, &world->tm, &tm), 0);
    sl_rpc_endpoint_set_token(&world->tm, 6);
    tm.name = SL_ENDPOINT_TOPOLOGY_SLOTS "words";
    assert_int_equal(sl_rpc_endpoint_start(world->server, &world->tm_slots, &tm), 0);
    sl_rpc_endpoint_set_token(&world->tm_slots, 6);
    world->other_loop = sl_sim_loop_new(world->sim, "127.0.0.4");
    world->other = open_rm(world, world->other_loop, "127.0.0.4:700", &world->other_rm, 9);
    world->loop = sl_sim_loop_new(world->sim, "127.0.0.3");
    world->rpc = sl_rpc_new(world->loop, &options);
    sl_sim_run_for(world->sim, 1);
}

static void
close_world(struct world *world)
{
    sl_rpc_free(world->rpc);
    sl_loop_free(world->loop);
    sl_rpc_endpoint_stop(&world->other_rm);
    sl_rpc_free(world->other);
    sl_loop_free(world->other_loop);
    sl_rpc_endpoint_stop(&world->rm);
    sl_rpc_endpoint_stop(&world->tm);
    sl_rpc_endpoint_stop(&world->tm_slots);
    sl_rpc_free(world->server);
    sl_loop_free(world->server_loop);
    sl_sim_free(world->sim);
    sl_arena_destroy(&world->arena);
}

static struct sl_connection_listener
listener_of(struct world *world)
{
    return (struct sl_connection_listener){on_registered, on_closing, on_failure, world};
}

static const struct sl_register_supervisor supervisor_identity = {
    .address = "127.0.0.3:701",
    .resource = "s1",
    .process = UINT64_C(0xfedcba9876543210),
    .data_port = 7070,
    .hardware = {8, 17179869184.0, "Linux 6.18 x86_64"},
    .default_profile = {SL_PROFILE_SET, 2, 4294967296.0, 1e9, 1, {{"gpu", 0.25}}},
    .total_profile = {SL_PROFILE_SET, 8, 17179869184.0, 4e9, 1, {{"gpu", 1}}},
};

static void
open_supervisor_connection(struct world *world, struct sl_named_connection *connection)
{
    struct sl_registration_config config = {20, 200, 200, 200};
    struct sl_connection_listener listener = listener_of(world);
    assert_int_equal(sl_connection_supervisor_to_rm(connection, world->rpc, &config,
                                                    &supervisor_identity, &listener),
                     0);
}

static void
test_R13_a_supervisor_s_registration_arrives_unchanged(void **state)
{
    (void)state;
    struct world world;
    struct sl_named_connection connection;
    open_world(&world);
    open_supervisor_connection(&world, &connection);
    sl_leader_link_notify_new_leader(&connection.link, "127.0.0.2:700", 4);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.registered, 1);
    assert_int_equal(world.instance, 77);
    assert_int_equal(world.token, 4);
    const struct sl_register_supervisor *seen = &world.supervisor;
    const struct sl_register_supervisor *sent = &supervisor_identity;
    assert_string_equal(seen->address, sent->address);
    assert_string_equal(seen->resource, sent->resource);
    assert_true(seen->process == sent->process);
    assert_int_equal(seen->attempt, 1);
    assert_int_equal(seen->data_port, sent->data_port);
    assert_true(seen->hardware.cpu_cores == sent->hardware.cpu_cores);
    assert_true(seen->hardware.ram_bytes == sent->hardware.ram_bytes);
    assert_string_equal(seen->hardware.os, sent->hardware.os);
    assert_true(sl_profile_equals(&seen->default_profile, &sent->default_profile));
    assert_true(sl_profile_equals(&seen->total_profile, &sent->total_profile));
    sl_connection_destroy(&connection);
    close_world(&world);
}

static void
test_a_topology_master_registers_at_the_resource_manager(void **state)
{
    (void)state;
    struct world world;
    struct sl_named_connection connection;
    struct sl_registration_config config = sl_registration_config_default();
    struct sl_connection_listener listener = listener_of(&world);
    static const struct sl_register_topology_master identity = {.topology = "words",
                                                                .address = "127.0.0.3:702",
                                                                .resource = "tm-words",
                                                                .process = 3,
                                                                .token = 6};
    open_world(&world);
    assert_int_equal(
        sl_connection_master_to_rm(&connection, world.rpc, &config, &identity, &listener), 0);
    sl_leader_link_notify_new_leader(&connection.link, "127.0.0.2:700", 4);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.registered, 1);
    assert_string_equal(world.master.topology, "words");
    assert_string_equal(world.master.address, "127.0.0.3:702");
    assert_string_equal(world.master.resource, "tm-words");
    assert_int_equal(world.master.process, 3);
    assert_int_equal(world.master.attempt, 1);
    assert_int_equal(world.master.token, 6);
    sl_connection_destroy(&connection);
    close_world(&world);
}

static void
test_supervisors_and_workers_register_at_the_topology_master(void **state)
{
    (void)state;
    struct world world;
    struct sl_registration_config config = sl_registration_config_default();
    static const struct sl_register_peer identity = {.topology = "words",
                                                     .address = "127.0.0.3:701",
                                                     .resource = "w3",
                                                     .process = 8,
                                                     .supervisor = "s1",
                                                     .port = 6700,
                                                     .data_address = "127.0.0.3:8000"};
    for (int kind = 0; kind < 2; kind++) {
        struct sl_named_connection connection;
        struct sl_connection_listener listener = listener_of(&world);
        open_world(&world);
        assert_int_equal(
            (kind == 0 ? sl_connection_supervisor_to_master : sl_connection_worker_to_master)(
                &connection, world.rpc, &config, &identity, &listener),
            0);
        sl_leader_link_notify_new_leader(&connection.link, "127.0.0.2:700", 6);
        sl_sim_run_for(world.sim, 100);
        assert_int_equal(world.registered, 1);
        assert_int_equal(world.peer_method,
                         kind == 0 ? SL_TM_REGISTER_SUPERVISOR : SL_TM_REGISTER_WORKER);
        assert_string_equal(world.peer.topology, "words");
        assert_string_equal(world.peer.address, "127.0.0.3:701");
        assert_int_equal(world.peer.attempt, 1);
        assert_string_equal(world.peer.resource, "w3");
        assert_string_equal(world.peer.supervisor, "s1");
        assert_int_equal(world.peer.port, 6700);
        assert_int_equal(world.peer.process, 8);
        assert_string_equal(world.peer.data_address, "127.0.0.3:8000");
        sl_connection_destroy(&connection);
        close_world(&world);
    }
}

static void
test_T1_leader_A_none_leader_B(void **state)
{
    (void)state;
    struct world world;
    struct sl_named_connection connection;
    open_world(&world);
    open_supervisor_connection(&world, &connection);
    sl_leader_link_notify_new_leader(&connection.link, "127.0.0.2:700", 4);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.registered, 1);
    sl_leader_link_notify_new_leader(&connection.link, NULL, 0);
    assert_int_equal(world.closings, 1);
    assert_contains(world.cause, "no leader");
    assert_null(sl_leader_link_gateway(&connection.link));
    sl_sim_run_for(world.sim, 1000);
    /* The last word arrived although the connection went right behind it. */
    assert_int_equal(world.goodbyes, 1);
    assert_int_equal(world.registrations, 1);
    sl_leader_link_notify_new_leader(&connection.link, "127.0.0.4:700", 9);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.registered, 2);
    assert_int_equal(world.token, 9);
    /* A connection object each time, and every attempt has a number of its own. */
    assert_int_equal(connection.link.connections, 2);
    assert_int_equal(world.supervisor.attempt, 2);
    sl_connection_destroy(&connection);
    close_world(&world);
}

static void
test_a_new_leader_while_the_old_one_is_being_reached(void **state)
{
    (void)state;
    struct world world;
    struct sl_named_connection connection;
    open_world(&world);
    open_supervisor_connection(&world, &connection);
    sl_sim_cut(world.sim, "127.0.0.3", "127.0.0.2");
    sl_leader_link_notify_new_leader(&connection.link, "127.0.0.2:700", 4);
    sl_sim_run_for(world.sim, 50);
    sl_leader_link_notify_new_leader(&connection.link, "127.0.0.4:700", 9);
    sl_sim_run_for(world.sim, 50);
    sl_sim_heal_all(world.sim);
    sl_sim_run_for(world.sim, 5000);
    assert_int_equal(world.registered, 1);
    assert_int_equal(world.token, 9);
    /* Nothing was established before, so nothing was closed. */
    assert_int_equal(world.closings, 0);
    sl_connection_destroy(&connection);
    close_world(&world);
}

static void
test_reconnect_registers_with_the_same_leader(void **state)
{
    (void)state;
    struct world world;
    struct sl_named_connection connection;
    open_world(&world);
    open_supervisor_connection(&world, &connection);
    /* Without a leader it only closes. */
    sl_leader_link_reconnect(&connection.link, "nobody");
    sl_leader_link_notify_new_leader(&connection.link, "127.0.0.2:700", 4);
    sl_sim_run_for(world.sim, 100);
    sl_leader_link_reconnect(&connection.link, "heartbeat lost");
    assert_string_equal(world.cause, "heartbeat lost");
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.registered, 2);
    assert_int_equal(world.registrations, 2);
    sl_connection_destroy(&connection);
    close_world(&world);
}

static void
test_failures_reach_the_listener_by_kind(void **state)
{
    (void)state;
    struct world world;
    struct sl_named_connection connection;
    open_world(&world);
    open_supervisor_connection(&world, &connection);
    world.is_rejecting = true;
    sl_leader_link_notify_new_leader(&connection.link, "127.0.0.2:700", 4);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.failures, 1);
    assert_int_equal(world.failure, SL_REGISTRATION_REJECTED);
    sl_leader_link_notify_new_leader(&connection.link, "127.0.0.2:700", 3);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.failure, SL_REGISTRATION_STALE);
    sl_leader_link_notify_new_leader(&connection.link, "nonsense", 3);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.failure, SL_REGISTRATION_FAILED);
    assert_int_equal(world.failures, 3);
    sl_connection_destroy(&connection);
    close_world(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_R13_a_supervisor_s_registration_arrives_unchanged),
    cmocka_unit_test(test_a_topology_master_registers_at_the_resource_manager),
    cmocka_unit_test(test_supervisors_and_workers_register_at_the_topology_master),
    cmocka_unit_test(test_T1_leader_A_none_leader_B),
    cmocka_unit_test(test_a_new_leader_while_the_old_one_is_being_reached),
    cmocka_unit_test(test_reconnect_registers_with_the_same_leader),
    cmocka_unit_test(test_failures_reach_the_listener_by_kind),
};

UNIT_MAIN(tests)
