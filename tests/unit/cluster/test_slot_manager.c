/* labels: short */
/* Table 3.4 of the reference. */
#include "cluster/slot_manager.h"

#include "base/err.h"
#include "base/random.h"
#include "base/vec.h"
#include "loop/sim.h"
#include "unit.h"

enum { LOG_MAX = 4096, INSTANCE = 100 };

struct sent {
    uint64_t call;
    uint64_t instance;
    char supervisor[16];
    uint64_t allocation;
    uint32_t port;
};

struct world {
    struct sl_sim *sim;
    struct sl_loop *loop;
    struct sl_slot_manager manager;
    struct sent sent[LOG_MAX];
    struct sl_slot_request last;
    char last_topology[16];
    char last_address[32];
    int sent_count;
    uint64_t failed[LOG_MAX];
    bool failed_unfulfillable[LOG_MAX];
    char failed_cause[SL_REASON_SIZE];
    int failed_count;
    int starts;
    bool is_start_refused;
    uint64_t released[16];
    int released_count;
    uint64_t asked_instance;
    uint64_t asked_period;
    int asked_count;
    bool is_acking;
};

static void
request_slot(void *ctx, uint64_t instance, const char *supervisor, uint32_t port, uint64_t call,
             const struct sl_slot_request *request)
{
    struct world *world = ctx;
    struct sent *sent = &world->sent[world->sent_count++];
    sent->call = call;
    sent->port = port;
    sent->instance = instance;
    sent->allocation = request->allocation;
    snprintf(sent->supervisor, sizeof(sent->supervisor), "%s", supervisor);
    world->last = *request;
    snprintf(world->last_topology, 16, "%s", request->topology);
    snprintf(world->last_address, 32, "%s", request->master_address);
    if (world->is_acking) {
        sl_slot_manager_answered(&world->manager, call, SL_SLOT_ACK, 0, NULL);
    }
}

static void
allocation_failed(void *ctx, const char *topology, uint64_t allocation, bool is_unfulfillable,
                  const char *cause)
{
    struct world *world = ctx;
    assert_non_null(topology);
    world->failed_unfulfillable[world->failed_count] = is_unfulfillable;
    world->failed[world->failed_count++] = allocation;
    snprintf(world->failed_cause, sizeof(world->failed_cause), "%s", cause);
}

static int
start_supervisor(void *ctx)
{
    struct world *world = ctx;
    if (world->is_start_refused) {
        return sl_err_set(SL_EUNAVAIL, "no more machines");
    }
    world->starts++;
    return 0;
}

static void
release_supervisor(void *ctx, uint64_t instance, const char *cause)
{
    struct world *world = ctx;
    (void)cause;
    world->released[world->released_count++] = instance;
}

static void
ask_release(void *ctx, uint64_t instance, uint64_t idle_period)
{
    struct world *world = ctx;
    world->asked_instance = instance;
    world->asked_period = idle_period;
    world->asked_count++;
}

/* Slots have profile ANY, requests UNKNOWN, 1 slot a supervisor of a profile of its own, calls are
 * acknowledged at once: as in the reference. */
static struct sl_slot_manager_config
config_of(void)
{
    struct sl_slot_manager_config config = sl_slot_manager_config_default();
    config.slot_profile = sl_profile_set(100, 10000, 10000);
    return config;
}

static void
open_with(struct world *world, const struct sl_slot_manager_config *config)
{
    struct sl_slot_manager_ops ops = {
        request_slot, allocation_failed, start_supervisor, release_supervisor, NULL, world};
    memset(world, 0, sizeof(*world));
    world->sim = sl_sim_new(&(struct sl_sim_options){.seed = 3});
    world->loop = sl_sim_loop_new(world->sim, "127.0.0.1");
    world->is_acking = true;
    sl_slot_manager_create(&world->manager, world->loop, config, &ops);
}

static void
open_world(struct world *world)
{
    struct sl_slot_manager_config config = config_of();
    open_with(world, &config);
}

static void
close_world(struct world *world)
{
    sl_slot_manager_check_invariants(&world->manager);
    sl_slot_manager_destroy(&world->manager);
    sl_loop_free(world->loop);
    sl_sim_free(world->sim);
}

/* Registers supervisor "s<i>" as instance 100 + i with `count` slots of a profile; the first ones
 * have the allocations given. */
static bool
add_profile(struct world *world, int i, size_t count, const uint64_t *allocations, size_t used,
            struct sl_profile profile)
{
    struct sl_slot_status slots[8];
    char name[16];
    snprintf(name, sizeof(name), "s%d", i);
    for (size_t n = 0; n < count; n++) {
        slots[n] = (struct sl_slot_status){(uint32_t)n, profile, n < used ? "other" : "",
                                           n < used ? allocations[n] : 0};
    }
    struct sl_slot_list list = {.resource = name, .slots = slots, .count = count};
    return sl_slot_manager_register(&world->manager, (uint64_t)(INSTANCE + i), &list);
}

static bool
add(struct world *world, int i, size_t count)
{
    return add_profile(world, i, count, NULL, 0, sl_profile_any());
}

/* A report of slots 0 .. count - 1 of s<i>. */
static bool
report(struct world *world, int i, size_t count, const uint64_t *allocations)
{
    struct sl_slot_status slots[8];
    for (size_t n = 0; n < count; n++) {
        slots[n] = (struct sl_slot_status){(uint32_t)n, sl_profile_any(),
                                           allocations[n] != 0 ? "words" : "", allocations[n]};
    }
    struct sl_slot_list list = {.resource = "", .slots = slots, .count = count};
    return sl_slot_manager_report(&world->manager, (uint64_t)(INSTANCE + i), &list);
}

static int
ask_profile(struct world *world, uint64_t allocation, struct sl_profile profile)
{
    struct sl_slot_request request = {.topology = "words",
                                      .allocation = allocation,
                                      .profile = profile,
                                      .master_address = "127.0.0.1:5",
                                      .token = 7};
    return sl_slot_manager_request(&world->manager, &request);
}

static int
ask(struct world *world, uint64_t allocation)
{
    return ask_profile(world, allocation, sl_profile_unknown());
}

static int
ask_for(struct world *world, uint64_t allocation, const char *supervisor, uint32_t port)
{
    struct sl_slot_request request = {.topology = "words",
                                      .allocation = allocation,
                                      .profile = sl_profile_unknown(),
                                      .supervisor = supervisor,
                                      .port = port};
    return sl_slot_manager_request(&world->manager, &request);
}

static void
answer(struct world *world, int sent, enum sl_slot_answer kind)
{
    sl_slot_manager_answered(&world->manager, world->sent[sent].call, kind, 0, NULL);
}

static int
state_of(const struct world *world, int i, uint32_t port)
{
    char name[16];
    snprintf(name, sizeof(name), "s%d", i);
    return sl_slot_manager_slot_state(&world->manager, name, port, NULL);
}

static uint64_t
allocation_of(const struct world *world, int i, uint32_t port)
{
    uint64_t allocation = 0;
    char name[16];
    snprintf(name, sizeof(name), "s%d", i);
    sl_slot_manager_slot_state(&world->manager, name, port, &allocation);
    return allocation;
}

static void
test_S1_registered_slots_are_known_and_free(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    assert_true(add(&world, 1, 2));
    assert_int_equal(world.manager.slot_count, 2);
    assert_int_equal(world.manager.free_count, 2);
    assert_int_equal(state_of(&world, 1, 0), SL_SLOT_FREE);
    assert_int_equal(state_of(&world, 1, 1), SL_SLOT_FREE);
    assert_int_equal(state_of(&world, 1, 2), -1);
    close_world(&world);
}

static void
test_S3_without_slots_a_supervisor_is_started_or_the_request_is_unfulfillable(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    assert_int_equal(ask(&world, 1), 1);
    assert_int_equal(world.starts, 1);
    close_world(&world);
    open_world(&world);
    world.is_start_refused = true;
    assert_int_equal(ask(&world, 1), SL_EUNSATISFIABLE);
    assert_non_null(strstr(sl_err_last()->msg, "need 1, have 0, free 0"));
    assert_false(sl_slot_manager_is_pending(&world.manager, 1));
    /* The answer says it, nobody is told twice. */
    assert_int_equal(world.failed_count, 0);
    close_world(&world);
}

static void
test_S4_a_free_slot_is_asked_for_and_allocated(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    add(&world, 1, 1);
    assert_int_equal(ask(&world, 5), 1);
    assert_int_equal(world.sent_count, 1);
    assert_string_equal(world.sent[0].supervisor, "s1");
    assert_int_equal(world.sent[0].instance, INSTANCE + 1);
    assert_int_equal(world.sent[0].allocation, 5);
    assert_string_equal(world.last_topology, "words");
    assert_string_equal(world.last_address, "127.0.0.1:5");
    assert_int_equal(state_of(&world, 1, 0), SL_SLOT_ALLOCATED);
    assert_int_equal(allocation_of(&world, 1, 0), 5);
    close_world(&world);
}

static void
test_S5_a_cancelled_request_frees_its_slot(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    world.is_acking = false;
    add(&world, 1, 1);
    ask(&world, 5);
    assert_int_equal(state_of(&world, 1, 0), SL_SLOT_PENDING);
    sl_slot_manager_cancel(&world.manager, 5);
    assert_int_equal(state_of(&world, 1, 0), SL_SLOT_FREE);
    assert_false(sl_slot_manager_is_pending(&world.manager, 5));
    /* The late acknowledgement is nobody's. */
    answer(&world, 0, SL_SLOT_ACK);
    assert_int_equal(state_of(&world, 1, 0), SL_SLOT_FREE);
    sl_slot_manager_cancel(&world.manager, 5);
    close_world(&world);
}

static void
test_S6_a_request_that_came_first_is_served_by_the_supervisor_that_comes(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    ask(&world, 5);
    add_profile(&world, 1, 1, NULL, 0, sl_profile_set(100, 10000, 10000));
    assert_int_equal(allocation_of(&world, 1, 0), 5);
    assert_int_equal(world.starts, 1);
    assert_int_equal(world.manager.starting_count, 0);
    close_world(&world);
}

static void
test_S8_an_allocation_that_is_known_is_ignored(void **state)
{
    (void)state;
    struct world world;
    uint64_t known[] = {5};
    /* (a) while pending */
    open_world(&world);
    assert_int_equal(ask(&world, 5), 1);
    assert_int_equal(ask_profile(&world, 5, sl_profile_set(1, 1, 1)), 0);
    assert_int_equal(world.starts, 1);
    close_world(&world);
    /* (b) a report shows it already */
    open_world(&world);
    add_profile(&world, 1, 1, known, 1, sl_profile_any());
    assert_int_equal(ask(&world, 5), 0);
    close_world(&world);
    /* (c) after it was fulfilled */
    open_world(&world);
    add(&world, 1, 1);
    assert_int_equal(ask(&world, 5), 1);
    assert_int_equal(ask(&world, 5), 0);
    assert_int_equal(world.starts, 0);
    /* Once it is freed, the same id may come again. */
    sl_slot_manager_free_slot(&world.manager, INSTANCE + 1, 0, 5);
    assert_int_equal(ask(&world, 5), 1);
    close_world(&world);
}

static void
test_S10_a_report_of_an_unknown_instance_changes_nothing(void **state)
{
    (void)state;
    struct world world;
    uint64_t slots[] = {5};
    open_world(&world);
    assert_false(report(&world, 9, 1, slots));
    assert_int_equal(world.manager.slot_count, 0);
    close_world(&world);
}

static void
test_S11_a_report_marks_a_slot_as_allocated(void **state)
{
    (void)state;
    struct world world;
    uint64_t slots[] = {0, 5};
    open_world(&world);
    add(&world, 1, 2);
    assert_true(report(&world, 1, 2, slots));
    assert_int_equal(allocation_of(&world, 1, 1), 5);
    assert_int_equal(state_of(&world, 1, 0), SL_SLOT_FREE);
    assert_int_equal(world.manager.slot_count, 2);
    close_world(&world);
}

static void
test_S12_a_request_times_out(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_manager_config config = config_of();
    config.request_timeout_ms = 50;
    open_with(&world, &config);
    ask(&world, 5);
    sl_sim_run_for(world.sim, 49);
    assert_int_equal(world.failed_count, 0);
    sl_sim_run_for(world.sim, 2);
    assert_int_equal(world.failed_count, 1);
    assert_int_equal(world.failed[0], 5);
    /* Its starting slot is for somebody else now. */
    assert_int_equal(sl_slot_manager_assigned_starting(&world.manager), 0);
    assert_int_equal(world.manager.starting_count, 1);
    close_world(&world);
    /* One that is under way frees its slot. */
    open_with(&world, &config);
    world.is_acking = false;
    add(&world, 1, 1);
    ask(&world, 6);
    sl_sim_run_for(world.sim, 60);
    assert_int_equal(world.failed[0], 6);
    assert_int_equal(state_of(&world, 1, 0), SL_SLOT_FREE);
    close_world(&world);
}

static void
test_S13_a_failed_call_is_tried_again(void **state)
{
    (void)state;
    for (size_t slots = 1; slots <= 2; slots++) {
        struct world world;
        open_world(&world);
        world.is_acking = false;
        add(&world, 1, slots);
        ask(&world, 5);
        world.is_acking = true;
        answer(&world, 0, SL_SLOT_ERROR);
        /* Not at once: a supervisor that always refuses must not keep us busy. */
        assert_int_equal(world.sent_count, 1);
        sl_sim_run_for(world.sim, SL_SLOT_MANAGER_RETRY_MS + 1);
        assert_int_equal(world.sent_count, 2);
        assert_int_equal(world.manager.fulfilled.count, 1);
        assert_int_equal(world.manager.free_count, slots - 1);
        close_world(&world);
    }
}

static void
test_a_supervisor_that_always_refuses_is_asked_ever_less_often(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    world.is_acking = false;
    add(&world, 1, 1);
    ask(&world, 5);
    int answered = 0;
    for (int ms = 0; ms < 60000; ms += 10) {
        while (answered < world.sent_count) {
            answer(&world, answered++, SL_SLOT_ERROR);
        }
        sl_sim_run_for(world.sim, 10);
    }
    assert_in_range(world.sent_count, 10, 25);
    close_world(&world);
}

static void
test_S14_a_report_of_a_foreign_allocation_sends_the_request_elsewhere(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    world.is_acking = false;
    add(&world, 1, 2);
    ask(&world, 5);
    uint64_t slots[] = {77, 0};
    if (state_of(&world, 1, 0) != SL_SLOT_PENDING) {
        slots[0] = 0;
        slots[1] = 77;
    }
    assert_true(report(&world, 1, 2, slots));
    assert_int_equal(world.sent_count, 2);
    assert_int_equal(world.sent[1].allocation, 5);
    assert_int_equal(allocation_of(&world, 1, slots[0] != 0 ? 0 : 1), 77);
    assert_int_equal(state_of(&world, 1, slots[0] != 0 ? 1 : 0), SL_SLOT_PENDING);
    close_world(&world);
}

static void
test_S15_occupied_by_the_first_request(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    world.is_acking = false;
    add(&world, 1, 1);
    ask(&world, 1);
    ask(&world, 2);
    assert_int_equal(world.sent_count, 1);
    answer(&world, 0, SL_SLOT_ERROR);
    assert_int_equal(world.sent_count, 2);
    assert_int_equal(world.sent[1].allocation, 2);
    sl_slot_manager_answered(&world.manager, world.sent[1].call, SL_SLOT_OCCUPIED, 1, "words");
    assert_int_equal(allocation_of(&world, 1, 0), 1);
    assert_int_equal(state_of(&world, 1, 0), SL_SLOT_ALLOCATED);
    assert_false(sl_slot_manager_is_pending(&world.manager, 1));
    assert_true(sl_slot_manager_is_pending(&world.manager, 2));
    assert_int_equal(world.manager.slot_count, 1);
    close_world(&world);
}

static void
test_a_request_that_lost_its_slot_gets_one_slot_only(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    world.is_acking = false;
    add(&world, 1, 1);
    add(&world, 2, 1);
    add(&world, 3, 1);
    ask(&world, 1);
    ask(&world, 2);
    /* The second one's slot has the first allocation: the first one's slot goes around and serves
     * the second, which must not get the third slot too. */
    sl_slot_manager_answered(&world.manager, world.sent[1].call, SL_SLOT_OCCUPIED, 1, "words");
    assert_int_equal(world.sent_count, 3);
    assert_int_equal(world.sent[2].allocation, 2);
    assert_int_equal(world.manager.free_count, 1);
    sl_slot_manager_check_invariants(&world.manager);
    answer(&world, 2, SL_SLOT_ACK);
    assert_int_equal(world.manager.free_count, 1);
    close_world(&world);
}

static void
test_S16_a_slot_that_a_report_took_is_not_assigned(void **state)
{
    (void)state;
    struct world world;
    uint64_t slots[] = {77};
    open_world(&world);
    add(&world, 1, 1);
    report(&world, 1, 1, slots);
    ask(&world, 5);
    assert_int_equal(world.sent_count, 0);
    assert_int_equal(allocation_of(&world, 1, 0), 77);
    close_world(&world);
}

static void
test_S18_an_idle_supervisor_is_released_and_stays_until_it_is_unregistered(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    add(&world, 1, 1);
    sl_sim_run_for(world.sim, SL_SLOT_MANAGER_IDLE_MS - 1);
    assert_int_equal(world.released_count, 0);
    sl_sim_run_for(world.sim, 2);
    assert_int_equal(world.released_count, 1);
    assert_int_equal(world.released[0], INSTANCE + 1);
    assert_int_equal(world.manager.slot_count, 1);
    assert_true(sl_slot_manager_unregister(&world.manager, INSTANCE + 1, "released"));
    assert_int_equal(world.manager.slot_count, 0);
    assert_false(sl_slot_manager_unregister(&world.manager, INSTANCE + 1, "again"));
    close_world(&world);
}

static void
test_S18_only_if_it_stayed_idle_while_it_was_asked(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    world.manager.ops.ask_release = ask_release;
    add(&world, 1, 1);
    sl_sim_run_for(world.sim, SL_SLOT_MANAGER_IDLE_MS + 1);
    assert_int_equal(world.asked_count, 1);
    uint64_t period = world.asked_period;
    /* Used and freed again in the same millisecond: another idle period. */
    ask(&world, 5);
    sl_slot_manager_free_slot(&world.manager, INSTANCE + 1, 0, 5);
    sl_slot_manager_can_be_released(&world.manager, INSTANCE + 1, period, true);
    assert_int_equal(world.released_count, 0);
    sl_sim_run_for(world.sim, 2 * SL_SLOT_MANAGER_IDLE_MS);
    assert_int_equal(world.asked_count, 2);
    sl_slot_manager_can_be_released(&world.manager, INSTANCE + 1, world.asked_period, false);
    assert_int_equal(world.released_count, 0);
    sl_sim_run_for(world.sim, SL_SLOT_MANAGER_IDLE_MS);
    sl_slot_manager_can_be_released(&world.manager, INSTANCE + 1, world.asked_period, true);
    assert_int_equal(world.released_count, 1);
    close_world(&world);
}

static void
test_S20_starting_slots_outlive_the_request(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_manager_config config = config_of();
    config.slots_per_supervisor = 2;
    open_with(&world, &config);
    ask(&world, 5);
    assert_int_equal(world.manager.starting_count, 2);
    assert_int_equal(sl_slot_manager_assigned_starting(&world.manager), 1);
    sl_slot_manager_cancel(&world.manager, 5);
    assert_int_equal(world.manager.starting_count, 2);
    assert_int_equal(sl_slot_manager_assigned_starting(&world.manager), 0);
    close_world(&world);
}

static void
test_S21_fewer_slots_than_awaited(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_manager_config config = config_of();
    config.slots_per_supervisor = 3;
    open_with(&world, &config);
    ask(&world, 5);
    add_profile(&world, 1, 2, NULL, 0, config.slot_profile);
    assert_int_equal(world.manager.slot_count, 2);
    assert_int_equal(world.manager.starting_count, 1);
    assert_int_equal(world.manager.fulfilled.count, 1);
    close_world(&world);
}

static void
test_S22_a_slot_of_another_profile_serves_and_awaits_stay(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    ask_profile(&world, 5, sl_profile_set(1, 1, 1));
    add_profile(&world, 1, 1, NULL, 0, sl_profile_set(2, 2, 2));
    assert_int_equal(allocation_of(&world, 1, 0), 5);
    assert_int_equal(world.manager.slot_count, 1);
    assert_int_equal(world.manager.starting_count, 1);
    assert_int_equal(sl_slot_manager_assigned_starting(&world.manager), 0);
    close_world(&world);
}

static void
test_S24_spreading(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_manager_config config = config_of();
    config.is_spreading = true;
    open_with(&world, &config);
    for (int i = 0; i < 5; i++) {
        add(&world, i, 2);
    }
    for (uint64_t a = 1; a <= 5; a++) {
        ask(&world, a);
    }
    for (int i = 0; i < 5; i++) {
        int used = (state_of(&world, i, 0) == SL_SLOT_ALLOCATED) +
                   (state_of(&world, i, 1) == SL_SLOT_ALLOCATED);
        assert_int_equal(used, 1);
    }
    close_world(&world);
}

static void
test_S25_the_cap(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_manager_config config = config_of();
    config.max_slots = 1;
    open_with(&world, &config);
    assert_int_equal(ask(&world, 1), 1);
    assert_int_equal(ask(&world, 2), 1);
    assert_int_equal(world.starts, 1);
    /* The one that was awaited is not counted twice. */
    assert_true(add_profile(&world, 1, 1, NULL, 0, config.slot_profile));
    assert_false(add_profile(&world, 2, 1, NULL, 0, config.slot_profile));
    assert_int_equal(world.released_count, 1);
    assert_int_equal(world.released[0], INSTANCE + 2);
    assert_int_equal(world.manager.slot_count, 1);
    close_world(&world);
}

static void
test_S27_only_hopeless_requests_fail_when_the_grace_period_ends(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_manager_config config = config_of();
    config.is_failing_unfulfillable = false;
    open_with(&world, &config);
    world.is_start_refused = true;
    add_profile(&world, 1, 1, NULL, 0, sl_profile_set(2, 2, 2));
    assert_int_equal(ask_profile(&world, 1, sl_profile_set(1, 1, 1)), 1);
    assert_int_equal(ask_profile(&world, 2, sl_profile_set(2, 2, 2)), 1);
    assert_int_equal(ask_profile(&world, 3, sl_profile_set(3, 3, 3)), 1);
    world.is_start_refused = false;
    assert_int_equal(ask_profile(&world, 4, sl_profile_set(50, 50, 50)), 1);
    sl_slot_manager_fail_unfulfillable(&world.manager, true);
    assert_int_equal(world.starts, 1);
    assert_int_equal(world.failed_count, 0);
    /* Without the starting supervisor, 3 and 4 are hopeless. */
    close_world(&world);
    open_with(&world, &config);
    world.is_start_refused = true;
    add_profile(&world, 1, 1, NULL, 0, sl_profile_set(2, 2, 2));
    ask_profile(&world, 1, sl_profile_set(1, 1, 1));
    ask_profile(&world, 2, sl_profile_set(2, 2, 2));
    ask_profile(&world, 3, sl_profile_set(3, 3, 3));
    sl_slot_manager_fail_unfulfillable(&world.manager, true);
    assert_int_equal(world.failed_count, 1);
    assert_int_equal(world.failed[0], 3);
    assert_true(world.failed_unfulfillable[0]);
    assert_true(sl_slot_manager_is_pending(&world.manager, 2));
    close_world(&world);
}

static void
test_S28_redundancy(void **state)
{
    (void)state;
    for (uint32_t spare = 0; spare <= 3; spare += 3) {
        struct world world;
        uint64_t used[][2] = {{0, 0}, {11, 12}, {13, 0}, {14, 0}};
        struct sl_slot_manager_config config = config_of();
        config.slots_per_supervisor = 2;
        config.idle_timeout_ms = 0;
        config.redundant_supervisors = spare;
        open_with(&world, &config);
        for (int i = 0; i < 4; i++) {
            add(&world, i, 2);
            report(&world, i, 2, used[i]);
        }
        assert_int_equal(world.manager.free_count, 4);
        sl_slot_manager_check(&world.manager);
        assert_int_equal(world.released_count, spare == 0);
        assert_int_equal(world.starts, spare == 3);
        close_world(&world);
    }
}

static void
test_when_all_slots_are_free_every_idle_supervisor_is_released(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_manager_config config = config_of();
    config.redundant_supervisors = 5;
    open_with(&world, &config);
    add(&world, 1, 1);
    add(&world, 2, 1);
    sl_sim_run_for(world.sim, SL_SLOT_MANAGER_IDLE_MS + 1);
    assert_int_equal(world.released_count, 2);
    close_world(&world);
}

/* The rest of table 2.5. */
static void
test_reports_against_every_state(void **state)
{
    (void)state;
    struct world world;
    uint64_t none[] = {0};
    uint64_t five[] = {5};
    uint64_t six[] = {6};
    open_world(&world);
    world.is_acking = false;
    add(&world, 1, 1);
    ask(&world, 5);
    /* Free, slot PENDING: older than the request. */
    report(&world, 1, 1, none);
    assert_int_equal(state_of(&world, 1, 0), SL_SLOT_PENDING);
    /* The allocation it is pending for: as good as an acknowledgement. */
    report(&world, 1, 1, five);
    assert_int_equal(state_of(&world, 1, 0), SL_SLOT_ALLOCATED);
    assert_false(sl_slot_manager_is_pending(&world.manager, 5));
    answer(&world, 0, SL_SLOT_ERROR);
    assert_int_equal(state_of(&world, 1, 0), SL_SLOT_ALLOCATED);
    /* Another allocation overwrites. */
    report(&world, 1, 1, six);
    assert_int_equal(allocation_of(&world, 1, 0), 6);
    /* Free, slot ALLOCATED. */
    ask(&world, 7);
    report(&world, 1, 1, none);
    assert_int_equal(state_of(&world, 1, 0), SL_SLOT_PENDING);
    assert_int_equal(allocation_of(&world, 1, 0), 7);
    close_world(&world);
}

static void
test_an_allocation_is_in_one_place_only(void **state)
{
    (void)state;
    struct world world;
    uint64_t first[] = {5, 0};
    uint64_t moved[] = {0, 5};
    open_world(&world);
    add(&world, 1, 2);
    report(&world, 1, 2, first);
    sl_slot_manager_report(
        &world.manager, INSTANCE + 1,
        &(struct sl_slot_list){.slots = &(struct sl_slot_status){1, sl_profile_any(), "words", 5},
                               .count = 1});
    assert_int_equal(allocation_of(&world, 1, 1), 5);
    assert_int_equal(state_of(&world, 1, 0), SL_SLOT_FREE);
    report(&world, 1, 2, moved);
    sl_slot_manager_check_invariants(&world.manager);
    close_world(&world);
}

static void
test_free_slot_is_ignored_unless_it_matches(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    add(&world, 1, 2);
    ask(&world, 5);
    uint32_t port = state_of(&world, 1, 0) == SL_SLOT_ALLOCATED ? 0 : 1;
    sl_slot_manager_free_slot(&world.manager, INSTANCE + 1, port, 6);
    sl_slot_manager_free_slot(&world.manager, INSTANCE + 1, 1 - port, 5);
    sl_slot_manager_free_slot(&world.manager, INSTANCE + 9, port, 5);
    sl_slot_manager_free_slot(&world.manager, INSTANCE + 1, 7, 5);
    assert_int_equal(allocation_of(&world, 1, port), 5);
    sl_slot_manager_free_slot(&world.manager, INSTANCE + 1, port, 5);
    assert_int_equal(state_of(&world, 1, port), SL_SLOT_FREE);
    close_world(&world);
}

static void
test_a_lost_supervisor_fails_allocations_and_retries_pending_ones(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    add(&world, 1, 2);
    ask(&world, 5);
    world.is_acking = false;
    ask(&world, 6);
    world.is_acking = true;
    add(&world, 2, 2);
    sl_slot_manager_unregister(&world.manager, INSTANCE + 1, "heartbeat lost");
    assert_int_equal(world.failed_count, 1);
    assert_int_equal(world.failed[0], 5);
    assert_string_equal(world.failed_cause, "heartbeat lost");
    assert_int_equal(allocation_of(&world, 2, 0), 6);
    assert_int_equal(world.manager.slot_count, 2);
    close_world(&world);
}

static void
test_a_known_instance_is_a_report(void **state)
{
    (void)state;
    struct world world;
    uint64_t used[] = {5};
    open_world(&world);
    assert_true(add(&world, 1, 1));
    assert_false(add_profile(&world, 1, 1, used, 1, sl_profile_any()));
    assert_int_equal(allocation_of(&world, 1, 0), 5);
    assert_int_equal(world.manager.slot_count, 1);
    close_world(&world);
}

static void
test_a_started_supervisor_that_never_registers_is_given_up(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_manager_config config = config_of();
    config.start_timeout_ms = 1000;
    open_with(&world, &config);
    ask(&world, 5);
    sl_sim_run_for(world.sim, 1001);
    /* The request still needs one, so another is started. */
    assert_int_equal(world.starts, 2);
    assert_int_equal(world.manager.starting_count, 1);
    sl_slot_manager_cancel(&world.manager, 5);
    sl_sim_run_for(world.sim, 5000);
    assert_int_equal(world.starts, 2);
    assert_int_equal(world.manager.starting_count, 0);
    close_world(&world);
}

static void
test_a_named_slot_is_granted_exactly_or_refused(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    add(&world, 1, 2);
    add(&world, 2, 2);
    assert_int_equal(ask_for(&world, 5, "s2", 1), 1);
    assert_int_equal(allocation_of(&world, 2, 1), 5);
    assert_int_equal(ask_for(&world, 6, "s2", 1), SL_ECONFLICT);
    assert_non_null(strstr(sl_err_last()->msg, "slot s2:1 is in use by words"));
    assert_false(sl_slot_manager_is_pending(&world.manager, 6));
    assert_int_equal(ask_for(&world, 7, "s2", 9), SL_EUNSATISFIABLE);
    assert_int_equal(ask_for(&world, 8, "s9", 0), SL_EUNSATISFIABLE);
    close_world(&world);
}

static void
test_a_named_slot_waits_for_its_supervisor_in_the_grace_period(void **state)
{
    (void)state;
    struct world world;
    struct sl_slot_manager_config config = config_of();
    config.is_failing_unfulfillable = false;
    open_with(&world, &config);
    assert_int_equal(ask_for(&world, 5, "s2", 1), 1);
    /* No supervisor is started for it, and no other serves it. */
    assert_int_equal(world.starts, 0);
    add(&world, 1, 2);
    assert_int_equal(world.sent_count, 0);
    add(&world, 2, 2);
    assert_int_equal(allocation_of(&world, 2, 1), 5);
    close_world(&world);
}

static void
test_suspend_forgets_everything_and_tells_nobody(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    add(&world, 1, 1);
    ask(&world, 5);
    ask(&world, 6);
    sl_slot_manager_suspend(&world.manager);
    assert_int_equal(world.failed_count + world.released_count, 0);
    assert_int_equal(world.manager.slot_count, 0);
    assert_int_equal(world.manager.requests.count, 0);
    sl_slot_manager_resume(&world.manager);
    add(&world, 1, 1);
    assert_int_equal(ask(&world, 5), 1);
    assert_int_equal(allocation_of(&world, 1, 0), 5);
    close_world(&world);
}

/* B10: a third of the answers is lost or late; the supervisors' own tables are the truth. */
static void
test_B10_lost_answers_never_put_a_slot_in_two_states(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct world world;
        struct sl_random random;
        enum { SUPERVISORS = 4, SLOTS = 3, REQUESTS = 20 };
        uint64_t truth[SUPERVISORS][SLOTS] = {{0}};
        int handled = 0;
        struct sl_slot_manager_config config = config_of();
        config.request_timeout_ms = 20000;
        open_with(&world, &config);
        world.is_acking = false;
        world.is_start_refused = true;
        sl_random_seed(&random, seed);
        for (int i = 0; i < SUPERVISORS; i++) {
            add(&world, i, SLOTS);
        }
        for (uint64_t a = 1; a <= REQUESTS; a++) {
            ask(&world, a);
        }
        for (int round = 0; round < 200; round++) {
            while (handled < world.sent_count) {
                struct sent *sent = &world.sent[handled++];
                uint64_t *slots = truth[sent->instance - INSTANCE];
                uint64_t before = slots[sent->port];
                if (before == 0 || before == sent->allocation) {
                    slots[sent->port] = sent->allocation;
                    before = 0;
                }
                switch (sl_random_below(&random, 3)) {
                case 0: /* lost: the caller sees a time-out */
                    sl_slot_manager_answered(&world.manager, sent->call, SL_SLOT_ERROR, 0, NULL);
                    break;
                default:
                    sl_slot_manager_answered(&world.manager, sent->call,
                                             before == 0 ? SL_SLOT_ACK : SL_SLOT_OCCUPIED, before,
                                             "words");
                }
                sl_slot_manager_check_invariants(&world.manager);
            }
            int i = (int)sl_random_below(&random, SUPERVISORS);
            if (sl_random_below(&random, 4) == 0) {
                truth[i][sl_random_below(&random, SLOTS)] = 0;
            }
            report(&world, i, SLOTS, truth[i]);
            sl_slot_manager_check_invariants(&world.manager);
            sl_sim_run_for(world.sim, 200);
        }
        for (int i = 0; i < SUPERVISORS; i++) {
            report(&world, i, SLOTS, truth[i]);
        }
        /* Every request ended. */
        assert_int_equal(world.manager.requests.count, 0);
        close_world(&world);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_S1_registered_slots_are_known_and_free),
    cmocka_unit_test(test_S3_without_slots_a_supervisor_is_started_or_the_request_is_unfulfillable),
    cmocka_unit_test(test_S4_a_free_slot_is_asked_for_and_allocated),
    cmocka_unit_test(test_S5_a_cancelled_request_frees_its_slot),
    cmocka_unit_test(test_S6_a_request_that_came_first_is_served_by_the_supervisor_that_comes),
    cmocka_unit_test(test_S8_an_allocation_that_is_known_is_ignored),
    cmocka_unit_test(test_S10_a_report_of_an_unknown_instance_changes_nothing),
    cmocka_unit_test(test_S11_a_report_marks_a_slot_as_allocated),
    cmocka_unit_test(test_S12_a_request_times_out),
    cmocka_unit_test(test_S13_a_failed_call_is_tried_again),
    cmocka_unit_test(test_a_supervisor_that_always_refuses_is_asked_ever_less_often),
    cmocka_unit_test(test_S14_a_report_of_a_foreign_allocation_sends_the_request_elsewhere),
    cmocka_unit_test(test_S15_occupied_by_the_first_request),
    cmocka_unit_test(test_a_request_that_lost_its_slot_gets_one_slot_only),
    cmocka_unit_test(test_S16_a_slot_that_a_report_took_is_not_assigned),
    cmocka_unit_test(test_S18_an_idle_supervisor_is_released_and_stays_until_it_is_unregistered),
    cmocka_unit_test(test_S18_only_if_it_stayed_idle_while_it_was_asked),
    cmocka_unit_test(test_S20_starting_slots_outlive_the_request),
    cmocka_unit_test(test_S21_fewer_slots_than_awaited),
    cmocka_unit_test(test_S22_a_slot_of_another_profile_serves_and_awaits_stay),
    cmocka_unit_test(test_S24_spreading),
    cmocka_unit_test(test_S25_the_cap),
    cmocka_unit_test(test_S27_only_hopeless_requests_fail_when_the_grace_period_ends),
    cmocka_unit_test(test_S28_redundancy),
    cmocka_unit_test(test_when_all_slots_are_free_every_idle_supervisor_is_released),
    cmocka_unit_test(test_reports_against_every_state),
    cmocka_unit_test(test_an_allocation_is_in_one_place_only),
    cmocka_unit_test(test_free_slot_is_ignored_unless_it_matches),
    cmocka_unit_test(test_a_lost_supervisor_fails_allocations_and_retries_pending_ones),
    cmocka_unit_test(test_a_known_instance_is_a_report),
    cmocka_unit_test(test_a_started_supervisor_that_never_registers_is_given_up),
    cmocka_unit_test(test_a_named_slot_is_granted_exactly_or_refused),
    cmocka_unit_test(test_a_named_slot_waits_for_its_supervisor_in_the_grace_period),
    cmocka_unit_test(test_suspend_forgets_everything_and_tells_nobody),
    cmocka_unit_test(test_B10_lost_answers_never_put_a_slot_in_two_states),
};

UNIT_MAIN(tests)
