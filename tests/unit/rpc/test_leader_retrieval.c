/* labels: short */
/* The state manager's word on who leads, all the way to a registered connection. Rows L9, L11, L12,
 * L15 and L17 of the reference, as far as they are about the listener. */
#include "base/log.h"
#include "rpc/connections.h"
#include "rpc/leader_retrieval.h"
#include "rpc/messages.h"
#include "rpc_fixture.h"
#include "state/election.h"
#include "state/loop_executor.h"
#include "state/memory.h"

enum { CANDIDATES = 10 };

/* A process that stands for election and answers registrations in its term. */
struct candidate {
    struct sl_loop *loop;
    struct sl_state_loop_executor executor;
    struct sl_state_backend *backend;
    struct sl_state_store *store;
    struct sl_rpc *rpc;
    struct sl_rpc_endpoint endpoint;
    struct sl_state_election *election;
    uint64_t token;
    int registrations;
    int goodbyes;
    bool is_dead;
};

struct world {
    struct sl_sim *sim;
    struct sl_loop *server_loop;
    struct sl_state_loop_executor server_executor;
    struct sl_memory_server *server;
    struct candidate candidates[CANDIDATES];
    int count;
    /* Who follows. */
    struct sl_loop *loop;
    struct sl_state_loop_executor executor;
    struct sl_state_backend *backend;
    struct sl_state_store *store;
    struct sl_rpc *rpc;
    struct sl_register_supervisor identity;
    struct sl_named_connection connection;
    struct sl_leader_retrieval *retrieval;
    int told;
    char told_address[64];
    uint64_t told_token;
    int registered;
    int closings;
    uint64_t registered_token;
    int stale;
};

static void
handle_register(void *ctx, struct sl_rpc_request *request)
{
    struct candidate *candidate = ctx;
    struct sl_registered answer = {"leader", 1, candidate->token};
    struct sl_buf body = {0};
    candidate->registrations++;
    sl_registered_encode(&answer, &body);
    sl_rpc_reply(request, body.data, body.size);
    sl_buf_destroy(&body);
}

static void
handle_goodbye(void *ctx, struct sl_rpc_request *request)
{
    struct candidate *candidate = ctx;
    candidate->goodbyes++;
    sl_rpc_reply(request, NULL, 0);
}

static const struct sl_rpc_method methods[] = {
    {SL_RM_REGISTER_SUPERVISOR, handle_register},
    {SL_RM_DISCONNECT_SUPERVISOR, handle_goodbye},
};

static void
on_election(void *ctx, enum sl_state_election_event event, uint64_t token)
{
    struct candidate *candidate = ctx;
    if (event == SL_STATE_ELECTION_GRANTED) {
        candidate->token = token;
    } else if (event == SL_STATE_ELECTION_REVOKED) {
        candidate->token = 0;
    }
    sl_rpc_endpoint_set_token(&candidate->endpoint, candidate->token);
}

static void
open_candidate(struct world *world)
{
    struct candidate *candidate = &world->candidates[world->count];
    struct sl_rpc_options options = {.role = "master"};
    struct sl_rpc_endpoint_options endpoint = {.name = SL_ENDPOINT_RESOURCE_MANAGER,
                                               .is_fenced = true,
                                               .methods = methods,
                                               .method_count = array_size(methods),
                                               .ctx = candidate};
    char host[24];
    char id[8];
    snprintf(host, sizeof(host), "127.0.1.%d", ++world->count);
    snprintf(id, sizeof(id), "m%d", world->count);
    candidate->loop = sl_sim_loop_new(world->sim, host);
    sl_state_loop_executor_create(&candidate->executor, candidate->loop);
    candidate->backend = sl_memory_backend_new(world->server, &candidate->executor.executor);
    candidate->store =
        sl_state_store_new(candidate->backend, &candidate->executor.executor,
                           &(struct sl_state_options){.seed = (uint64_t)world->count});
    candidate->rpc = sl_rpc_new(candidate->loop, &options);
    strcat(host, ":700");
    assert_int_equal(sl_rpc_listen(candidate->rpc, host), 0);
    assert_int_equal(sl_rpc_endpoint_start(candidate->rpc, &candidate->endpoint, &endpoint), 0);
    candidate->election =
        sl_state_election_new(candidate->store, "/master", id, host, on_election, candidate);
    sl_sim_run_for(world->sim, 10);
}

static void
note_closed(void *arg)
{
    *(bool *)arg = true;
}

static void
close_store(struct world *world, struct sl_state_store *store)
{
    bool is_closed = false;
    sl_state_store_close(store, note_closed, &is_closed);
    sl_sim_run_for(world->sim, 20000);
    assert_true(is_closed);
}

static void
close_candidate(struct world *world, struct candidate *candidate)
{
    if (candidate->loop == NULL) {
        return;
    }
    sl_state_election_free(candidate->election);
    close_store(world, candidate->store);
    sl_rpc_endpoint_stop(&candidate->endpoint);
    sl_rpc_free(candidate->rpc);
    sl_state_loop_executor_destroy(&candidate->executor);
    sl_loop_free(candidate->loop);
    candidate->loop = NULL;
}

/* Dead at once, without a word to anybody: its session lasts until its time-out. */
static void
kill_candidate(struct world *world, struct candidate *candidate)
{
    sl_memory_backend_crash(candidate->backend);
    candidate->is_dead = true;
    close_candidate(world, candidate);
}

static void
on_leader(void *ctx, const char *address, uint64_t token)
{
    struct world *world = ctx;
    world->told++;
    world->told_token = token;
    snprintf(world->told_address, sizeof(world->told_address), "%s",
             address != NULL ? address : "none");
    sl_leader_link_notify_new_leader(&world->connection.link, address, token);
}

static void
on_registered(void *ctx, struct sl_leader_link *link, const struct sl_registered *answer)
{
    struct world *world = ctx;
    (void)link;
    world->registered++;
    world->registered_token = answer->token;
}

static void
on_closing(void *ctx, struct sl_leader_link *link, const char *cause)
{
    struct world *world = ctx;
    struct sl_disconnect goodbye = {.resource = "s1", .cause = cause};
    world->closings++;
    sl_connection_say_goodbye(sl_leader_link_gateway(link), SL_RM_DISCONNECT_SUPERVISOR, &goodbye);
}

static void
on_failure(void *ctx, struct sl_leader_link *link, enum sl_registration_end kind, int code,
           const char *reason)
{
    struct world *world = ctx;
    (void)link;
    (void)code;
    (void)reason;
    assert_int_equal(kind, SL_REGISTRATION_STALE);
    world->stale++;
    sl_leader_retrieval_look_again(world->retrieval);
}

static void
open_world(struct world *world)
{
    struct sl_registration_config registration = {100, 2000, 500, 500};
    struct sl_connection_listener listener = {on_registered, on_closing, on_failure, world};
    memset(world, 0, sizeof(*world));
    world->sim = sl_sim_new(&(struct sl_sim_options){.seed = 3});
    world->server_loop = sl_sim_loop_new(world->sim, "127.0.0.1");
    sl_state_loop_executor_create(&world->server_executor, world->server_loop);
    world->server = sl_memory_server_new(&world->server_executor.executor, 3);
    sl_memory_server_set_session_timeout(world->server, 3000);
    world->loop = sl_sim_loop_new(world->sim, "127.0.0.2");
    sl_state_loop_executor_create(&world->executor, world->loop);
    world->backend = sl_memory_backend_new(world->server, &world->executor.executor);
    world->store = sl_state_store_new(world->backend, &world->executor.executor,
                                      &(struct sl_state_options){.seed = 99});
    world->rpc = sl_rpc_new(world->loop, &(struct sl_rpc_options){.role = "supervisor"});
    world->identity = (struct sl_register_supervisor){.address = "127.0.0.2:700",
                                                      .resource = "s1",
                                                      .process = 1,
                                                      .default_profile = sl_profile_any(),
                                                      .total_profile = sl_profile_any()};
    assert_int_equal(sl_connection_supervisor_to_rm(&world->connection, world->rpc, &registration,
                                                    &world->identity, &listener),
                     0);
    world->retrieval =
        sl_leader_retrieval_new(world->store, world->loop, "/master", on_leader, world);
}

static void
close_world(struct world *world)
{
    sl_leader_retrieval_free(world->retrieval);
    sl_connection_destroy(&world->connection);
    for (int i = 0; i < world->count; i++) {
        close_candidate(world, &world->candidates[i]);
    }
    close_store(world, world->store);
    sl_rpc_free(world->rpc);
    sl_state_loop_executor_destroy(&world->executor);
    sl_loop_free(world->loop);
    sl_memory_server_free(world->server);
    sl_state_loop_executor_destroy(&world->server_executor);
    sl_loop_free(world->server_loop);
    sl_sim_free(world->sim);
}

static void
test_a_new_leader_in_the_store_moves_the_connection(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.told, 1);
    assert_string_equal(world.told_address, "none");
    open_candidate(&world);
    open_candidate(&world);
    sl_sim_run_for(world.sim, 100);
    struct candidate *first = &world.candidates[0];
    struct candidate *second = &world.candidates[1];
    assert_int_equal(first->registrations, 1);
    assert_int_equal(world.registered_token, first->token);
    assert_int_equal(world.connection.link.connections, 1);
    /* The first withdraws: the connection to it is closed with a last word, the second gets one. */
    sl_state_election_free(first->election);
    first->election = NULL;
    sl_sim_run_for(world.sim, 1000);
    assert_int_equal(first->goodbyes, 1);
    assert_int_equal(world.closings, 1);
    assert_int_equal(second->registrations, 1);
    assert_int_equal(world.registered, 2);
    assert_int_equal(world.registered_token, second->token);
    assert_int_equal(world.connection.link.connections, 2);
    assert_string_equal(sl_rpc_gateway_address(sl_leader_link_gateway(&world.connection.link)),
                        "127.0.1.2:700");
    close_world(&world);
}

static void
test_L9_each_of_ten_leaders_is_followed(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    for (int i = 0; i < CANDIDATES; i++) {
        open_candidate(&world);
    }
    uint64_t last_token = 0;
    for (int i = 0; i < CANDIDATES; i++) {
        struct candidate *leader = NULL;
        for (int j = 0; j < CANDIDATES; j++) {
            struct candidate *candidate = &world.candidates[j];
            if (candidate->loop != NULL && candidate->token != 0) {
                assert_null(leader);
                leader = candidate;
            }
        }
        sl_sim_run_for(world.sim, 3000);
        assert_non_null(leader);
        assert_int_equal(world.told_token, leader->token);
        assert_int_equal(world.registered_token, leader->token);
        assert_int_equal(world.registered, i + 1);
        assert_true(leader->token > last_token);
        last_token = leader->token;
        kill_candidate(&world, leader);
    }
    sl_sim_run_for(world.sim, 10000);
    assert_string_equal(world.told_address, "none");
    assert_null(sl_leader_link_gateway(&world.connection.link));
    close_world(&world);
}

static void
test_L15_and_L17_a_store_without_contact_changes_nothing(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    open_candidate(&world);
    sl_sim_run_for(world.sim, 100);
    int told = world.told;
    assert_int_equal(world.registered, 1);
    /* Longer than the session: all of the store is away, so that nobody's session ends. */
    sl_memory_server_set_serving(world.server, false);
    sl_sim_run_for(world.sim, 10000);
    assert_int_equal(world.told, told);
    assert_non_null(sl_leader_link_gateway(&world.connection.link));
    sl_memory_server_set_serving(world.server, true);
    sl_sim_run_for(world.sim, 10000);
    assert_int_equal(world.told, told);
    assert_int_equal(world.connection.link.connections, 1);
    assert_int_equal(world.candidates[0].token, world.told_token);
    /* The leader alone loses its session: told with the term that follows. */
    sl_memory_server_expire(world.server, sl_state_store_session(world.candidates[0].store));
    sl_sim_run_for(world.sim, 10000);
    assert_true(world.told > told);
    assert_int_equal(world.candidates[0].token, world.told_token);
    assert_int_equal(world.registered_token, world.told_token);
    close_world(&world);
}

static void
test_a_stale_answer_is_looked_up_again(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    open_candidate(&world);
    struct candidate *leader = &world.candidates[0];
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(world.registered, 1);
    sl_rpc_endpoint_set_token(&leader->endpoint, 0);
    sl_leader_link_reconnect(&world.connection.link, "to ask again");
    sl_sim_run_for(world.sim, 1000);
    assert_int_equal(world.registered, 1);
    /* Read anew each time, soon at first, with ever longer pauses: no busy loop. */
    assert_in_range(world.stale, 5, 5 + 1000 / SL_LEADER_RELOOK_MS);
    sl_rpc_endpoint_set_token(&leader->endpoint, leader->token);
    sl_sim_run_for(world.sim, 1000);
    assert_int_equal(world.registered, 2);
    close_world(&world);
}

/* A leader is named before it has read what is stored: who asks too early registers soon after. */
static void
test_a_leader_that_is_not_ready_is_asked_soon_again(void **state)
{
    enum { READING_MS = 15 };
    (void)state;
    struct world world;
    open_world(&world);
    open_candidate(&world);
    sl_sim_run_for(world.sim, 100);
    for (int term = 2; term <= 3; term++) {
        struct candidate *leader = &world.candidates[0];
        /* Long ago it was stale for long. */
        sl_rpc_endpoint_set_token(&leader->endpoint, 0);
        sl_leader_link_reconnect(&world.connection.link, "to ask again");
        sl_sim_run_for(world.sim, 5000);
        sl_memory_server_expire(world.server, sl_state_store_session(leader->store));
        while (leader->token == 0 || leader->token == world.told_token) {
            sl_sim_run_for(world.sim, 1);
        }
        sl_rpc_endpoint_set_token(&leader->endpoint, 0);
        sl_sim_run_for(world.sim, READING_MS);
        assert_int_equal(world.registered, term - 1);
        sl_rpc_endpoint_set_token(&leader->endpoint, leader->token);
        sl_sim_run_for(world.sim, SL_LEADER_RELOOK_FIRST_MS + 10);
        assert_int_equal(world.registered, term);
    }
    close_world(&world);
}

/* Leaders of topologies through the seam of a role. */
struct seen {
    int count;
    char topology[16];
    char address[64];
    uint64_t token;
};

static void
on_topology_leader(void *ctx, const char *topology, const char *address, uint64_t token)
{
    struct seen *seen = ctx;
    seen->count++;
    seen->token = token;
    snprintf(seen->topology, sizeof(seen->topology), "%s", topology);
    snprintf(seen->address, sizeof(seen->address), "%s", address != NULL ? address : "none");
}

static void
test_topologies_are_watched_as_long_as_a_role_wants(void **state)
{
    (void)state;
    struct world world;
    struct seen seen = {0};
    struct sl_topology_leaders leaders;
    open_world(&world);
    open_candidate(&world);
    sl_topology_leaders_create(&leaders, world.store, world.loop, "/", on_topology_leader, &seen);
    struct sl_leader_watch watch = sl_topology_leaders_watch(&leaders);
    assert_int_equal(watch.start(watch.ctx, "master"), 0);
    assert_int_equal(watch.start(watch.ctx, "master"), SL_EEXIST);
    assert_int_equal(watch.start(watch.ctx, "other"), 0);
    sl_sim_run_for(world.sim, 100);
    assert_int_equal(seen.count, 2);
    watch.stop(watch.ctx, "other");
    watch.stop(watch.ctx, "other");
    sl_topology_leaders_look_again(&leaders, "other");
    sl_topology_leaders_look_again(&leaders, "master");
    sl_sim_run_for(world.sim, 1000);
    assert_int_equal(seen.count, 3);
    assert_string_equal(seen.topology, "master");
    assert_string_equal(seen.address, "127.0.1.1:700");
    assert_int_equal(seen.token, world.candidates[0].token);
    watch.stop(watch.ctx, "master");
    sl_state_election_free(world.candidates[0].election);
    world.candidates[0].election = NULL;
    sl_sim_run_for(world.sim, 1000);
    assert_int_equal(seen.count, 3);
    assert_int_equal(watch.start(watch.ctx, "master"), 0);
    sl_topology_leaders_destroy(&leaders);
    sl_sim_run_for(world.sim, 1000);
    assert_int_equal(seen.count, 3);
    close_world(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_new_leader_in_the_store_moves_the_connection),
    cmocka_unit_test(test_L9_each_of_ten_leaders_is_followed),
    cmocka_unit_test(test_L15_and_L17_a_store_without_contact_changes_nothing),
    cmocka_unit_test(test_a_stale_answer_is_looked_up_again),
    cmocka_unit_test(test_a_leader_that_is_not_ready_is_asked_soon_again),
    cmocka_unit_test(test_topologies_are_watched_as_long_as_a_role_wants),
};

UNIT_MAIN(tests)
