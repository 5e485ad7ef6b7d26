/* labels: short */
/*
 * Table 3.3 of the reference. P28 and P29 are about declared requirements, which streamlua does not
 * have (requests go by allocation), so they do not apply.
 */
#include "cluster/slot_pool.h"

#include "base/err.h"
#include "loop/sim.h"
#include "unit.h"

enum { LOG_MAX = 64 };

struct world {
    struct sl_sim *sim;
    struct sl_loop *loop;
    struct sl_slot_pool pool;
    /* What the resource manager was asked, in order. */
    struct sl_slot_request sent[LOG_MAX];
    char sent_to[LOG_MAX][16];
    int sent_count;
    uint64_t cancelled[LOG_MAX];
    int cancelled_count;
    uint64_t freed[LOG_MAX];
    char freed_at[LOG_MAX][16];
    int freed_count;
    /* By request id. */
    uint64_t served[LOG_MAX];
    char served_by[LOG_MAX][16];
    int served_count;
    bool is_failed[LOG_MAX];
    enum sl_slot_failure failure[LOG_MAX];
    char reason[LOG_MAX][SL_REASON_SIZE];
    uint64_t lost[LOG_MAX];
    int lost_count;
    bool is_refusing;
    bool is_refusal_final;
};

static void
request_slot(void *ctx, const struct sl_slot_request *request)
{
    struct world *world = ctx;
    world->sent[world->sent_count] = *request;
    snprintf(world->sent_to[world->sent_count++], 16, "%s", request->supervisor);
    if (world->is_refusing) {
        sl_slot_pool_request_refused(&world->pool, request->allocation, world->is_refusal_final,
                                     "the resource manager says no");
    }
}

static void
cancel_slot(void *ctx, uint64_t allocation)
{
    struct world *world = ctx;
    world->cancelled[world->cancelled_count++] = allocation;
}

static void
free_slot(void *ctx, const char *supervisor, uint64_t allocation, const char *cause)
{
    struct world *world = ctx;
    (void)cause;
    snprintf(world->freed_at[world->freed_count], 16, "%s", supervisor);
    world->freed[world->freed_count++] = allocation;
}

static void
on_served(void *ctx, uint64_t request, uint64_t allocation, const char *supervisor, uint32_t port)
{
    struct world *world = ctx;
    (void)port;
    world->served[request] = allocation;
    snprintf(world->served_by[request], 16, "%s", supervisor);
    world->served_count++;
}

static void
on_failed(void *ctx, uint64_t request, enum sl_slot_failure kind, const char *reason)
{
    struct world *world = ctx;
    assert_false(world->is_failed[request]);
    world->is_failed[request] = true;
    world->failure[request] = kind;
    snprintf(world->reason[request], SL_REASON_SIZE, "%s", reason);
}

static void
on_lost(void *ctx, uint64_t request, uint64_t allocation, const char *cause)
{
    struct world *world = ctx;
    (void)request;
    (void)cause;
    world->lost[world->lost_count++] = allocation;
}

enum { IDLE_MS = 1000, REQUEST_MS = 5000 };

static void
open_world(struct world *world)
{
    struct sl_slot_pool_config config = {.topology = "words",
                                         .master_address = "127.0.0.1:5",
                                         .token = 7,
                                         .request_timeout_ms = REQUEST_MS,
                                         .idle_timeout_ms = IDLE_MS};
    struct sl_slot_pool_ops ops = {request_slot, cancel_slot, free_slot, on_served,
                                   on_failed,    on_lost,     world};
    memset(world, 0, sizeof(*world));
    world->sim = sl_sim_new(&(struct sl_sim_options){.seed = 2});
    world->loop = sl_sim_loop_new(world->sim, "127.0.0.1");
    sl_slot_pool_create(&world->pool, world->loop, &config, &ops);
    sl_slot_pool_register_supervisor(&world->pool, "s1");
    sl_slot_pool_register_supervisor(&world->pool, "s2");
}

static void
open_connected(struct world *world)
{
    open_world(world);
    sl_slot_pool_connect(&world->pool);
}

static void
close_world(struct world *world)
{
    sl_slot_pool_destroy(&world->pool);
    sl_loop_free(world->loop);
    sl_sim_free(world->sim);
}

/* A request of profile UNKNOWN; returns its allocation, 0 without a resource manager. */
static uint64_t
ask(struct world *world, uint64_t id)
{
    struct sl_slot_wish wish = {.profile = sl_profile_unknown()};
    sl_slot_pool_request(&world->pool, id, &wish);
    return sl_slot_pool_allocation_of(&world->pool, id);
}

static void
ask_batch(struct world *world, uint64_t id)
{
    struct sl_slot_wish wish = {.profile = sl_profile_unknown(), .is_batch = true};
    sl_slot_pool_request(&world->pool, id, &wish);
}

static bool
offer(struct world *world, const char *supervisor, uint64_t allocation, uint32_t port)
{
    struct sl_profile any = sl_profile_any();
    return sl_slot_pool_offer(&world->pool, supervisor, port, allocation, &any);
}

#define assert_counts(world, allocated, available, pending, waiting)                               \
    do {                                                                                           \
        assert_int_equal(sl_slot_pool_allocated_count(&(world)->pool), (allocated));               \
        assert_int_equal((world)->pool.available_count, (available));                              \
        assert_int_equal((world)->pool.pending_count, (pending));                                  \
        assert_int_equal((world)->pool.waiting_count, (waiting));                                  \
    } while (0)

/* Allocations that nobody asked for. */
enum { AX = 9001, AY = 9002 };

static void
test_P1_a_request_is_served_by_the_offer_for_it(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    uint64_t a1 = ask(&world, 1);
    assert_int_equal(world.sent_count, 1);
    assert_true(world.sent[0].allocation == a1);
    assert_string_equal(world.sent[0].topology, "words");
    assert_string_equal(world.sent[0].master_address, "127.0.0.1:5");
    assert_int_equal(world.sent[0].token, 7);
    assert_true(offer(&world, "s1", a1, 0));
    assert_true(world.served[1] == a1);
    assert_string_equal(world.served_by[1], "s1");
    assert_counts(&world, 1, 0, 0, 0);
    close_world(&world);
}

static void
test_P3_an_unrequested_offer_is_kept_and_can_be_allocated(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    assert_true(offer(&world, "s1", AX, 0));
    assert_counts(&world, 0, 1, 0, 0);
    assert_false(sl_slot_pool_allocate_available(&world.pool, 1, AY));
    assert_true(sl_slot_pool_allocate_available(&world.pool, 1, AX));
    assert_counts(&world, 1, 0, 0, 0);
    assert_false(sl_slot_pool_allocate_available(&world.pool, 2, AX));
    close_world(&world);
}

static void
test_P4_offers_of_a_supervisor_that_is_not_registered_are_refused(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    uint64_t a1 = ask(&world, 1);
    assert_false(offer(&world, "s9", a1, 0));
    assert_counts(&world, 0, 0, 1, 0);
    close_world(&world);
}

static void
test_P5_P6_P7_and_B2_offers_of_one_allocation_in_several_places(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    uint64_t a1 = ask(&world, 1);
    /* P5 */
    assert_true(offer(&world, "s1", AX, 0));
    assert_true(world.served[1] == AX);
    assert_counts(&world, 1, 0, 0, 0);
    /* Nobody owns a1 any more. */
    assert_int_equal(world.cancelled_count, 1);
    assert_true(world.cancelled[0] == a1);
    /* P6 */
    assert_true(offer(&world, "s1", a1, 0));
    assert_counts(&world, 1, 1, 0, 0);
    assert_true(offer(&world, "s1", a1, 0));
    assert_counts(&world, 1, 1, 0, 0);
    /* P7 and B2 */
    assert_false(offer(&world, "s1", a1, 1));
    assert_false(offer(&world, "s2", a1, 0));
    sl_slot_pool_release(&world.pool, 1, "done");
    assert_true(offer(&world, "s1", a1, 0));
    assert_false(offer(&world, "s1", a1, 1));
    assert_false(offer(&world, "s2", a1, 0));
    assert_counts(&world, 0, 2, 0, 0);
    close_world(&world);
}

static void
test_P10_close_frees_all_slots(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    offer(&world, "s1", AX, 0);
    offer(&world, "s2", AY, 0);
    uint64_t a1 = ask(&world, 1);
    sl_slot_pool_close(&world.pool, "the topology ends");
    assert_int_equal(world.freed_count, 2);
    assert_true(world.freed[0] == AX && world.freed[1] == AY);
    assert_string_equal(world.freed_at[1], "s2");
    assert_int_equal(world.cancelled_count, 1);
    assert_true(world.cancelled[0] == a1);
    assert_counts(&world, 0, 0, 0, 0);
    close_world(&world);
}

static void
test_P11_only_what_is_older_than_the_idle_limit_is_freed(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    /* The pool's own check would come in between. */
    sl_timer_stop(&world.pool.check);
    offer(&world, "s1", AX, 0);
    sl_sim_run_for(world.sim, IDLE_MS);
    offer(&world, "s1", AY, 1);
    sl_slot_pool_check(&world.pool);
    assert_int_equal(world.freed_count, 0);
    sl_sim_run_for(world.sim, 1);
    sl_slot_pool_check(&world.pool);
    assert_int_equal(world.freed_count, 1);
    assert_true(world.freed[0] == AX);
    assert_counts(&world, 0, 1, 0, 0);
    close_world(&world);
}

static void
test_P12_a_slot_that_could_not_be_freed_is_not_used_again(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    offer(&world, "s1", AX, 0);
    sl_timer_stop(&world.pool.check);
    sl_sim_run_for(world.sim, IDLE_MS + 1);
    /* Freeing has no answer that the pool would wait for. */
    sl_slot_pool_check(&world.pool);
    assert_counts(&world, 0, 0, 0, 0);
    ask(&world, 1);
    assert_int_equal(world.served_count, 0);
    close_world(&world);
}

static void
test_the_pool_checks_by_itself(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    offer(&world, "s1", AX, 0);
    sl_sim_run_for(world.sim, 2 * IDLE_MS);
    assert_int_equal(world.freed_count, 1);
    close_world(&world);
}

static void
test_P14_the_report_of_a_supervisor_lists_used_and_unused_slots(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_status slots[4];
    open_connected(&world);
    uint64_t a1 = ask(&world, 1);
    offer(&world, "s1", a1, 0);
    offer(&world, "s1", AX, 1);
    offer(&world, "s2", AY, 0);
    assert_int_equal(sl_slot_pool_report(&world.pool, "s1", slots, 4), 2);
    assert_int_equal(slots[0].port, 0);
    assert_true(slots[0].allocation == a1);
    assert_int_equal(slots[1].port, 1);
    assert_int_equal(slots[1].allocation, AX);
    assert_string_equal(slots[0].topology, "words");
    assert_int_equal(sl_slot_pool_report(&world.pool, "s9", slots, 4), 0);
    assert_true(sl_slot_pool_utilization(&world.pool, "s1") == 0.5);
    assert_true(sl_slot_pool_utilization(&world.pool, "s2") == 0);
    close_world(&world);
}

static void
test_P16_and_P17_the_allocation_goes_to_the_other_request(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    uint64_t a1 = ask(&world, 1);
    uint64_t a2 = ask(&world, 2);
    assert_true(offer(&world, "s1", a2, 0));
    assert_true(world.served[1] == a2);
    assert_true(sl_slot_pool_allocation_of(&world.pool, 2) == a1);
    assert_int_equal(world.cancelled_count, 0);
    assert_counts(&world, 1, 0, 1, 0);
    /* P17 */
    assert_null(sl_slot_pool_fail_allocation(&world.pool, a1, false, "exactly that cause"));
    assert_true(world.is_failed[2]);
    assert_string_equal(world.reason[2], "exactly that cause");
    /* It was cancelled under its present id. */
    assert_int_equal(world.cancelled_count, 1);
    assert_true(world.cancelled[0] == a1);
    close_world(&world);
}

static void
test_a_request_that_took_over_an_allocation_keeps_its_place(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    ask(&world, 1);
    uint64_t a2 = ask(&world, 2);
    ask(&world, 3);
    offer(&world, "s1", a2, 0);
    offer(&world, "s1", AX, 1);
    assert_true(world.served[1] == a2);
    assert_int_equal(world.served[2], AX);
    assert_int_equal(world.served[3], 0);
    close_world(&world);
}

static void
test_P19_and_B6_without_a_resource_manager_requests_wait_and_offers_serve_them(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    assert_int_equal(ask(&world, 1), 0);
    assert_counts(&world, 0, 0, 0, 1);
    /* B6: an offer before there is a resource manager. */
    assert_true(offer(&world, "s1", AX, 0));
    assert_counts(&world, 1, 0, 0, 0);
    assert_int_equal(world.served[1], AX);
    assert_int_equal(world.cancelled_count, 0);
    close_world(&world);
}

static void
test_P21_and_P22_requests_time_out_and_a_late_offer_is_kept(void **state)
{
    (void)state;
    for (int is_connected = 0; is_connected < 2; is_connected++) {
        struct world world;
        struct sl_slot_wish wish = {.profile = sl_profile_unknown(), .timeout_ms = 3};
        open_world(&world);
        if (is_connected) {
            sl_slot_pool_connect(&world.pool);
        }
        sl_slot_pool_request(&world.pool, 1, &wish);
        uint64_t a1 = sl_slot_pool_allocation_of(&world.pool, 1);
        sl_sim_run_for(world.sim, 2);
        assert_false(world.is_failed[1]);
        sl_sim_run_for(world.sim, 2);
        assert_true(world.is_failed[1]);
        assert_int_equal(world.failure[1], SL_SLOT_TIMED_OUT);
        assert_counts(&world, 0, 0, 0, 0);
        assert_int_equal(world.cancelled_count, is_connected);
        assert_true(offer(&world, "s1", is_connected ? a1 : AX, 0));
        assert_counts(&world, 0, 1, 0, 0);
        close_world(&world);
    }
}

static void
test_P23_a_refused_request_fails_and_is_cancelled(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    world.is_refusing = true;
    ask(&world, 1);
    assert_true(world.is_failed[1]);
    assert_int_equal(world.failure[1], SL_SLOT_FAILED);
    assert_string_equal(world.reason[1], "the resource manager says no");
    assert_int_equal(world.cancelled_count, 1);
    assert_true(world.cancelled[0] == world.sent[0].allocation);
    close_world(&world);
}

static void
test_P24_a_failed_allocation_fails_its_pending_request(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    uint64_t a1 = ask(&world, 1);
    assert_null(sl_slot_pool_fail_allocation(&world.pool, a1, false, "cause"));
    assert_string_equal(world.reason[1], "cause");
    assert_null(sl_slot_pool_fail_allocation(&world.pool, a1, false, "again"));
    close_world(&world);
}

static void
test_P25_and_P26_batch_requests_fail_only_when_nothing_could_serve_them(void **state)
{
    (void)state;
    for (int is_refused = 0; is_refused < 2; is_refused++) {
        struct world world;
        open_connected(&world);
        world.is_refusing = is_refused;
        ask_batch(&world, 1);
        uint64_t a1 = sl_slot_pool_allocation_of(&world.pool, 1);
        if (!is_refused) {
            sl_slot_pool_fail_allocation(&world.pool, a1, false, "ordinary");
        }
        assert_false(world.is_failed[1]);
        assert_counts(&world, 0, 0, 1, 0);
        if (is_refused) {
            sl_slot_pool_request_refused(&world.pool, a1, true, "unfulfillable");
        } else {
            sl_slot_pool_fail_allocation(&world.pool, a1, true, "unfulfillable");
        }
        assert_true(world.is_failed[1]);
        assert_int_equal(world.failure[1], SL_SLOT_UNFULFILLABLE);
        close_world(&world);
    }
}

static void
test_batch_requests_end_when_no_slot_fits_for_the_whole_limit(void **state)
{
    (void)state;
    struct world world;
    struct sl_profile small = sl_profile_set(1, 1, 1);
    open_connected(&world);
    struct sl_slot_wish wish = {.profile = sl_profile_set(2, 2, 2), .is_batch = true};
    /* A slot that is too small does not clear the mark. */
    assert_true(sl_slot_pool_offer(&world.pool, "s1", 0, AX, &small));
    sl_slot_pool_allocate_available(&world.pool, 9, AX);
    sl_slot_pool_request(&world.pool, 1, &wish);
    sl_sim_run_for(world.sim, REQUEST_MS);
    assert_false(world.is_failed[1]);
    sl_sim_run_for(world.sim, 2 * IDLE_MS);
    assert_true(world.is_failed[1]);
    assert_int_equal(world.failure[1], SL_SLOT_TIMED_OUT);
    /* A matching slot, even a busy one, does. */
    assert_true(offer(&world, "s1", AY, 1));
    sl_slot_pool_allocate_available(&world.pool, 8, AY);
    sl_slot_pool_request(&world.pool, 2, &wish);
    sl_sim_run_for(world.sim, 10 * REQUEST_MS);
    assert_false(world.is_failed[2]);
    close_world(&world);
}

static void
test_waiting_requests_go_out_in_order_and_pending_ones_again(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    for (uint64_t id = 1; id <= 3; id++) {
        struct sl_slot_wish wish = {
            .profile = sl_profile_unknown(), .supervisor = "s1", .port = (uint32_t)id};
        sl_slot_pool_request(&world.pool, id, &wish);
    }
    sl_slot_pool_connect(&world.pool);
    assert_int_equal(world.sent_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(world.sent[i].port, i + 1);
    }
    assert_counts(&world, 0, 0, 3, 0);
    sl_slot_pool_disconnect(&world.pool);
    ask(&world, 4);
    sl_slot_pool_connect(&world.pool);
    /* The same allocations, before the new one. */
    assert_int_equal(world.sent_count, 7);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(world.sent[3 + i].allocation == world.sent[i].allocation);
    }
    close_world(&world);
}

static void
test_B5_offers_in_reverse_order_leave_nothing_pending(void **state)
{
    (void)state;
    struct world world;
    uint64_t allocations[10];
    open_connected(&world);
    for (uint64_t i = 0; i < 10; i++) {
        allocations[i] = ask(&world, i + 1);
    }
    for (int i = 9; i >= 0; i--) {
        assert_true(offer(&world, "s1", allocations[i], (uint32_t)i));
    }
    assert_counts(&world, 10, 0, 0, 0);
    assert_int_equal(world.cancelled_count, 0);
    assert_int_equal(world.served_count, 10);
    close_world(&world);
}

static void
test_a_request_that_names_its_slot_gets_no_other(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_wish first = {.profile = sl_profile_unknown(), .supervisor = "s1", .port = 6700};
    struct sl_slot_wish second = {
        .profile = sl_profile_unknown(), .supervisor = "s2", .port = 6700};
    open_connected(&world);
    sl_slot_pool_request(&world.pool, 1, &first);
    sl_slot_pool_request(&world.pool, 2, &second);
    uint64_t a1 = sl_slot_pool_allocation_of(&world.pool, 1);
    uint64_t a2 = sl_slot_pool_allocation_of(&world.pool, 2);
    assert_string_equal(world.sent_to[0], "s1");
    assert_int_equal(world.sent[0].port, 6700);
    /* Another port serves nobody. */
    assert_true(offer(&world, "s1", AX, 6701));
    assert_int_equal(world.served_count, 0);
    assert_true(offer(&world, "s2", a2, 6700));
    assert_true(world.served[2] == a2);
    assert_true(offer(&world, "s1", a1, 6700));
    assert_true(world.served[1] == a1);
    assert_int_equal(world.cancelled_count, 0);
    close_world(&world);
}

static void
test_an_older_request_for_any_slot_does_not_take_a_named_one(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_wish named = {.profile = sl_profile_unknown(), .supervisor = "s1", .port = 6700};
    open_connected(&world);
    ask(&world, 1);
    sl_slot_pool_request(&world.pool, 2, &named);
    assert_true(offer(&world, "s1", sl_slot_pool_allocation_of(&world.pool, 2), 6700));
    assert_int_equal(world.served[1], 0);
    assert_int_not_equal(world.served[2], 0);
    close_world(&world);
}

static void
test_releasing_a_pending_request_is_a_plain_error(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    sl_slot_pool_release(&world.pool, 77, "unknown");
    uint64_t a1 = ask(&world, 1);
    sl_slot_pool_release(&world.pool, 1, "not needed");
    assert_true(world.is_failed[1]);
    assert_int_equal(world.failure[1], SL_SLOT_RELEASED);
    assert_non_null(strstr(world.reason[1], "has been released"));
    assert_true(world.cancelled[0] == a1);
    close_world(&world);
}

static void
test_a_released_slot_serves_the_oldest_request(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    uint64_t a1 = ask(&world, 1);
    offer(&world, "s1", a1, 0);
    uint64_t a2 = ask(&world, 2);
    ask(&world, 3);
    sl_slot_pool_release(&world.pool, 1, "done");
    assert_true(world.served[2] == a1);
    assert_true(world.cancelled[0] == a2);
    assert_counts(&world, 1, 0, 1, 0);
    close_world(&world);
}

static void
test_failing_a_held_allocation_names_a_supervisor_that_is_empty(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    uint64_t a1 = ask(&world, 1);
    offer(&world, "s1", a1, 0);
    offer(&world, "s1", AX, 1);
    assert_null(sl_slot_pool_fail_allocation(&world.pool, a1, false, "gone"));
    assert_int_equal(world.lost_count, 1);
    assert_true(world.lost[0] == a1);
    assert_true(world.freed[0] == a1);
    assert_string_equal(sl_slot_pool_fail_allocation(&world.pool, AX, false, "gone"), "s1");
    assert_int_equal(world.lost_count, 1);
    assert_counts(&world, 0, 0, 0, 0);
    close_world(&world);
}

static void
test_a_lost_supervisor_loses_its_slots_and_no_pending_request(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    uint64_t a1 = ask(&world, 1);
    offer(&world, "s1", a1, 0);
    offer(&world, "s1", AX, 1);
    ask(&world, 2);
    /* s1's unused slot served request 2 only if it asked later: it did not exist then. */
    sl_slot_pool_release_supervisor(&world.pool, "s1", "heartbeat lost");
    assert_int_equal(world.freed_count, 2);
    assert_int_equal(world.lost_count, 1);
    assert_counts(&world, 0, 0, 1, 0);
    assert_false(sl_slot_pool_has_supervisor(&world.pool, "s1"));
    assert_false(offer(&world, "s1", AY, 1));
    sl_slot_pool_release_supervisor(&world.pool, "s1", "again");
    close_world(&world);
}

static void
test_T20_and_B7_a_suspended_pool_takes_offers_of_supervisors_that_register_again(void **state)
{
    (void)state;
    struct world world;
    open_connected(&world);
    uint64_t a1 = ask(&world, 1);
    offer(&world, "s1", a1, 0);
    uint64_t a2 = ask(&world, 2);
    sl_slot_pool_suspend(&world.pool);
    assert_int_equal(world.freed_count, 0);
    assert_true(world.cancelled[0] == a2);
    assert_counts(&world, 0, 0, 0, 0);
    assert_false(offer(&world, "s1", a1, 0));
    /* The next term. */
    assert_true(sl_slot_pool_register_supervisor(&world.pool, "s1"));
    ask(&world, 3);
    assert_true(offer(&world, "s1", a1, 0));
    assert_true(world.served[3] == a1);
    close_world(&world);
}

static void
test_T21_a_late_unrequested_offer_is_accepted_after_the_time_out(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_wish wish = {.profile = sl_profile_unknown(), .timeout_ms = 10};
    open_connected(&world);
    sl_slot_pool_request(&world.pool, 1, &wish);
    sl_sim_run_for(world.sim, 11);
    assert_true(world.is_failed[1]);
    assert_true(offer(&world, "s1", AX, 0));
    assert_counts(&world, 0, 1, 0, 0);
    assert_true(sl_slot_pool_allocate_available(&world.pool, 2, AX));
    close_world(&world);
}

static void
test_B15_the_error_says_what_is_needed_and_what_is_there(void **state)
{
    (void)state;
    struct world world;
    char text[96];
    open_connected(&world);
    for (uint64_t i = 1; i <= 23; i++) {
        ask(&world, i);
    }
    for (uint32_t i = 0; i < 12; i++) {
        offer(&world, "s1", AX + i, i);
    }
    assert_string_equal(sl_slot_pool_shortage(&world.pool, text, sizeof(text)),
                        "need 23, have 12, free 0");
    sl_sim_run_for(world.sim, REQUEST_MS + 1);
    assert_non_null(strstr(world.reason[13], "need 23, have 12, free 0"));
    /* Supervisors that come later unblock new requests. */
    ask(&world, 40);
    assert_true(offer(&world, "s2", AX + 100, 0));
    assert_int_equal(world.served[40], AX + 100);
    close_world(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_P1_a_request_is_served_by_the_offer_for_it),
    cmocka_unit_test(test_P3_an_unrequested_offer_is_kept_and_can_be_allocated),
    cmocka_unit_test(test_P4_offers_of_a_supervisor_that_is_not_registered_are_refused),
    cmocka_unit_test(test_P5_P6_P7_and_B2_offers_of_one_allocation_in_several_places),
    cmocka_unit_test(test_P10_close_frees_all_slots),
    cmocka_unit_test(test_P11_only_what_is_older_than_the_idle_limit_is_freed),
    cmocka_unit_test(test_P12_a_slot_that_could_not_be_freed_is_not_used_again),
    cmocka_unit_test(test_the_pool_checks_by_itself),
    cmocka_unit_test(test_P14_the_report_of_a_supervisor_lists_used_and_unused_slots),
    cmocka_unit_test(test_P16_and_P17_the_allocation_goes_to_the_other_request),
    cmocka_unit_test(test_a_request_that_took_over_an_allocation_keeps_its_place),
    cmocka_unit_test(
        test_P19_and_B6_without_a_resource_manager_requests_wait_and_offers_serve_them),
    cmocka_unit_test(test_P21_and_P22_requests_time_out_and_a_late_offer_is_kept),
    cmocka_unit_test(test_P23_a_refused_request_fails_and_is_cancelled),
    cmocka_unit_test(test_P24_a_failed_allocation_fails_its_pending_request),
    cmocka_unit_test(test_P25_and_P26_batch_requests_fail_only_when_nothing_could_serve_them),
    cmocka_unit_test(test_batch_requests_end_when_no_slot_fits_for_the_whole_limit),
    cmocka_unit_test(test_waiting_requests_go_out_in_order_and_pending_ones_again),
    cmocka_unit_test(test_B5_offers_in_reverse_order_leave_nothing_pending),
    cmocka_unit_test(test_a_request_that_names_its_slot_gets_no_other),
    cmocka_unit_test(test_an_older_request_for_any_slot_does_not_take_a_named_one),
    cmocka_unit_test(test_releasing_a_pending_request_is_a_plain_error),
    cmocka_unit_test(test_a_released_slot_serves_the_oldest_request),
    cmocka_unit_test(test_failing_a_held_allocation_names_a_supervisor_that_is_empty),
    cmocka_unit_test(test_a_lost_supervisor_loses_its_slots_and_no_pending_request),
    cmocka_unit_test(
        test_T20_and_B7_a_suspended_pool_takes_offers_of_supervisors_that_register_again),
    cmocka_unit_test(test_T21_a_late_unrequested_offer_is_accepted_after_the_time_out),
    cmocka_unit_test(test_B15_the_error_says_what_is_needed_and_what_is_there),
};

UNIT_MAIN(tests)
