/* labels: short */
/* Leader election on the memory store: table 3.6 of the reference (L) and scenario B17. Rows of the
 * listener are in rpc/test_leader_retrieval.c; rows.txt says which do not apply. */
#include "state/election.h"

#include "state/leader.h"
#include "state/memory.h"
#include "state/path.h"
#include "state/store_kit.h"
#include "state/value_codec.h"

static struct sl_manual_clock manual;
static struct sl_memory_server *server;

struct candidate {
    struct sl_state_store *store;
    struct sl_state_election *election;
    int granted;
    int revoked;
    uint64_t token;
};

struct seen {
    int calls;
    char address[64];
    uint64_t token;
};

static int
setup(void **state)
{
    (void)state;
    sl_manual_clock_create(&manual, 1700000000000);
    kit_runner = sl_state_runner_virtual_new(&manual);
    server = sl_memory_server_new(sl_state_runner_executor(kit_runner), 42);
    struct sl_memory_faults faults = {.delay_min_ms = 1, .delay_max_ms = 3};
    sl_memory_server_set_faults(server, &faults);
    sl_memory_server_set_session_timeout(server, 3000);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    if (kit_open_stores > 0) {
        kit_open_stores = 0;
        return 0;
    }
    sl_memory_server_free(server);
    assert_int_equal(sl_state_runner_timer_count(kit_runner), 0);
    sl_state_runner_free(kit_runner);
    return 0;
}

static struct sl_state_store *
open_store(uint64_t seed)
{
    const struct sl_state_executor *executor = sl_state_runner_executor(kit_runner);
    struct sl_state_options options = {.seed = seed};
    kit_open_stores++;
    return sl_state_store_new(sl_memory_backend_new(server, executor), executor, &options);
}

static void
on_election(void *ctx, enum sl_state_election_event event, uint64_t token)
{
    struct candidate *candidate = ctx;
    candidate->granted += event == SL_STATE_ELECTION_GRANTED;
    candidate->revoked += event == SL_STATE_ELECTION_REVOKED;
    candidate->token = token;
}

static void
stand(struct candidate *candidate, const char *id)
{
    candidate->election = sl_state_election_new(candidate->store, "/master", id, "10.0.0.1:7000",
                                                on_election, candidate);
}

static void
withdraw(struct candidate *candidate)
{
    sl_state_election_free(candidate->election);
    candidate->election = NULL;
}

static void
on_leader(void *ctx, const struct sl_state_leader_info *info)
{
    struct seen *seen = ctx;
    seen->calls++;
    seen->token = info != NULL ? info->token : 0;
    snprintf(seen->address, sizeof(seen->address), "%.60s", info != NULL ? info->address : "none");
}

/* What the leader node says: its token, 0 for no node or another text. */
static uint64_t
published(struct sl_state_store *store)
{
    struct outcome outcome = {0};
    struct sl_state_leader_info info = {0};
    int rc = do_get(store, "/master/leader", &outcome);
    if (rc == 0) {
        rc = sl_state_leader_info_decode(outcome.value.data, outcome.value.size, &info);
    }
    outcome_destroy(&outcome);
    return rc == 0 ? info.token : 0;
}

static void
test_L1_a_grant_is_published_and_a_withdrawal_empties_it(void **state)
{
    (void)state;
    struct candidate first = {.store = open_store(1)};
    struct sl_state_store *other = open_store(2);
    assert_int_equal(published(other), 0);
    stand(&first, "m1");
    wait_count(&first.granted, 1);
    assert_int_equal(sl_state_election_token(first.election), first.token);
    assert_int_equal(published(other), first.token);
    /* Revoked: the session is over and its name with it; then it leads again, in a new term. */
    uint64_t old = first.token;
    sl_memory_server_expire(server, sl_state_store_session(first.store));
    wait_count(&first.revoked, 1);
    assert_int_equal(sl_state_election_token(first.election), 0);
    wait_count(&first.granted, 2);
    assert_true(first.token > old);
    assert_int_equal(published(other), first.token);
    withdraw(&first);
    sl_state_runner_run_for(kit_runner, 100);
    assert_int_equal(published(other), 0);
    close_store(first.store);
    close_store(other);
}

static void
test_L2_and_L11_a_leader_s_name_is_written_again(void **state)
{
    (void)state;
    struct candidate first = {.store = open_store(1)};
    struct sl_state_store *other = open_store(2);
    struct seen seen = {0};
    stand(&first, "m1");
    wait_count(&first.granted, 1);
    struct sl_state_leader_listener *listener =
        sl_state_leader_listener_new(other, "/master", on_leader, &seen);
    sl_state_runner_run_for(kit_runner, 100);
    assert_int_equal(seen.token, first.token);
    assert_int_equal(do_delete(other, "/master/leader", SL_STATE_ANY_VERSION), 0);
    sl_state_runner_run_for(kit_runner, 1000);
    assert_int_equal(published(other), first.token);
    assert_int_equal(do_set(other, "/master/leader", "not a leader", SL_STATE_ANY_VERSION), 0);
    sl_state_runner_run_for(kit_runner, 1000);
    assert_int_equal(published(other), first.token);
    /* Twice in a row, and replaced by a node of another session. */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(do_delete(other, "/master/leader", SL_STATE_ANY_VERSION), 0);
        do_create(other, "/master/leader", "x", SL_STATE_EPHEMERAL);
        sl_state_runner_run_for(kit_runner, 1000);
        assert_int_equal(published(other), first.token);
    }
    /* Nobody's term ended, and the follower has the right leader. */
    assert_int_equal(first.granted, 1);
    assert_int_equal(first.revoked, 0);
    assert_int_equal(seen.token, first.token);
    assert_string_equal(seen.address, "10.0.0.1:7000");
    sl_state_leader_listener_free(listener);
    withdraw(&first);
    close_store(first.store);
    close_store(other);
}

static void
test_L2_who_does_not_lead_writes_nothing(void **state)
{
    (void)state;
    struct candidate first = {.store = open_store(1)};
    struct candidate second = {.store = open_store(2)};
    stand(&first, "m1");
    wait_count(&first.granted, 1);
    stand(&second, "m2");
    sl_state_runner_run_for(kit_runner, 100);
    /* The second one waits for the lock; that the name is gone is not its business. */
    struct outcome outcome = {0};
    assert_int_equal(do_delete(second.store, "/master/leader", SL_STATE_ANY_VERSION), 0);
    sl_state_runner_run_for(kit_runner, 1000);
    assert_int_equal(published(second.store), first.token);
    assert_int_equal(second.granted, 0);
    outcome_destroy(&outcome);
    withdraw(&second);
    withdraw(&first);
    close_store(first.store);
    close_store(second.store);
}

static void
test_L4_only_the_present_token_leads(void **state)
{
    (void)state;
    struct candidate first = {.store = open_store(1)};
    struct candidate second = {.store = open_store(2)};
    stand(&first, "m1");
    assert_int_equal(sl_state_election_token(first.election), 0);
    wait_count(&first.granted, 1);
    stand(&second, "m2");
    sl_state_runner_run_for(kit_runner, 100);
    assert_int_equal(sl_state_election_token(first.election), first.token);
    assert_int_equal(sl_state_election_token(second.election), 0);
    /* A transaction of one who does not lead changes nothing. */
    struct outcome outcome = {0};
    struct sl_state_op op = sl_state_op_create("/x", "", 0, 0);
    sl_state_election_commit(second.election, &op, 1, on_outcome, &outcome);
    assert_int_equal(wait_outcome(&outcome), SL_EFENCED);
    assert_missing(second.store, "/x");
    outcome_destroy(&outcome);
    withdraw(&first);
    withdraw(&second);
    close_store(first.store);
    close_store(second.store);
}

static void
test_two_candidates_of_one_id_are_told_apart(void **state)
{
    (void)state;
    struct candidate first = {.store = open_store(1)};
    struct candidate second = {.store = open_store(2)};
    stand(&first, "m1");
    stand(&second, "m1");
    sl_state_runner_run_for(kit_runner, 1000);
    assert_int_equal(first.granted + second.granted, 1);
    struct candidate *leader = first.granted > 0 ? &first : &second;
    struct candidate *other = first.granted > 0 ? &second : &first;
    uint64_t token = leader->token;
    assert_int_equal(published(other->store), token);
    /* Neither takes the other's node for its own: the next term begins when the first one ends. */
    withdraw(leader);
    wait_count(&other->granted, 1);
    assert_true(other->token > token);
    assert_int_equal(published(leader->store), other->token);
    withdraw(other);
    close_store(first.store);
    close_store(second.store);
}

static void
test_L5_nothing_is_told_after_a_withdrawal(void **state)
{
    (void)state;
    struct candidate first = {.store = open_store(1)};
    struct sl_state_store *other = open_store(2);
    stand(&first, "m1");
    wait_count(&first.granted, 1);
    withdraw(&first);
    sl_state_runner_run_for(kit_runner, 100);
    assert_int_equal(do_create(other, "/master/leader", "x", 0), 0);
    sl_memory_server_expire(server, sl_state_store_session(first.store));
    sl_memory_server_set_serving(server, false);
    sl_state_runner_run_for(kit_runner, 2000);
    sl_memory_server_set_serving(server, true);
    sl_state_runner_run_for(kit_runner, 5000);
    assert_int_equal(first.granted, 1);
    assert_int_equal(first.revoked, 0);
    assert_value(other, "/master/leader", "x");
    close_store(first.store);
    close_store(other);
}

static void
test_L12_the_leader_s_end_leaves_no_leader(void **state)
{
    (void)state;
    struct candidate first = {.store = open_store(1)};
    struct sl_state_store *other = open_store(2);
    struct seen seen = {0};
    stand(&first, "m1");
    wait_count(&first.granted, 1);
    struct sl_state_leader_listener *listener =
        sl_state_leader_listener_new(other, "/master", on_leader, &seen);
    sl_state_runner_run_for(kit_runner, 100);
    /* Its client is closed under it: the session and the node go. */
    withdraw(&first);
    close_store(first.store);
    sl_state_runner_run_for(kit_runner, 10000);
    assert_string_equal(seen.address, "none");
    assert_int_equal(seen.calls, 2);
    assert_missing(other, "/master/leader");
    sl_state_leader_listener_free(listener);
    close_store(other);
}

static void
test_L13_one_who_was_revoked_leaves_the_next_leader_s_name_alone(void **state)
{
    (void)state;
    struct candidate first = {.store = open_store(1)};
    struct candidate second = {.store = open_store(2)};
    stand(&first, "m1");
    wait_count(&first.granted, 1);
    stand(&second, "m2");
    sl_state_runner_run_for(kit_runner, 100);
    sl_memory_server_expire(server, sl_state_store_session(first.store));
    wait_count(&second.granted, 1);
    wait_count(&first.revoked, 1);
    assert_int_equal(published(second.store), second.token);
    withdraw(&first);
    sl_state_runner_run_for(kit_runner, 5000);
    assert_int_equal(published(second.store), second.token);
    assert_int_equal(sl_state_election_token(second.election), second.token);
    withdraw(&second);
    close_store(first.store);
    close_store(second.store);
}

static void
test_B17_a_withdrawal_in_the_middle_of_a_grant(void **state)
{
    (void)state;
    enum { TIMES = 1000 };
    struct candidate first = {.store = open_store(1)};
    struct sl_state_store *other = open_store(2);
    for (int i = 0; i < TIMES; i++) {
        struct candidate candidate = {.store = first.store};
        stand(&candidate, "m1");
        /* Stopped after so many steps: while it creates, lists, reads, publishes, or leads. */
        for (int step = 0; step < i % 40; step++) {
            sl_state_runner_step(kit_runner, UINT64_MAX);
        }
        int granted = candidate.granted;
        withdraw(&candidate);
        sl_state_runner_run_for(kit_runner, 50);
        assert_int_equal(candidate.granted, granted);
        assert_int_equal(candidate.revoked, 0);
    }
    /* Nothing is left behind that would be in the way. */
    sl_state_runner_run_for(kit_runner, 2000);
    assert_int_equal(published(other), 0);
    struct outcome outcome = {0};
    assert_int_equal(do_children(other, "/master/lock", &outcome), 0);
    assert_int_equal(outcome.child_count, 0);
    outcome_destroy(&outcome);
    stand(&first, "m1");
    wait_count(&first.granted, 1);
    withdraw(&first);
    close_store(first.store);
    close_store(other);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

static const struct CMUnitTest tests[] = {
    TEST(test_L1_a_grant_is_published_and_a_withdrawal_empties_it),
    TEST(test_L2_and_L11_a_leader_s_name_is_written_again),
    TEST(test_L2_who_does_not_lead_writes_nothing),
    TEST(test_L4_only_the_present_token_leads),
    TEST(test_two_candidates_of_one_id_are_told_apart),
    TEST(test_L5_nothing_is_told_after_a_withdrawal),
    TEST(test_L12_the_leader_s_end_leaves_no_leader),
    TEST(test_L13_one_who_was_revoked_leaves_the_next_leader_s_name_alone),
    TEST(test_B17_a_withdrawal_in_the_middle_of_a_grant),
};

UNIT_MAIN(tests)
