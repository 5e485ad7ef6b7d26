// labels: short
#include "base/random.h"
#include "batch/placement.h"
#include "unit.h"

enum { MAX = 16 };

struct fixture {
    struct sl_placement_receiver receivers[MAX];
    struct sl_placement_worker workers[MAX];
};

static void
destroy(struct fixture *f)
{
    for (int i = 0; i < MAX; i++) {
        sl_vec_destroy(&f->receivers[i].places);
    }
}

static void
count_workers(const struct fixture *f, int receivers, int *counts)
{
    memset(counts, 0, MAX * sizeof(*counts));
    for (int i = 0; i < receivers; i++) {
        for (size_t j = 0; j < f->receivers[i].places.count; j++) {
            counts[f->receivers[i].places.items[j].worker]++;
        }
    }
}

static void
test_T145_more_receivers_than_workers(void **state)
{
    (void)state;
    struct fixture f = {0};
    int counts[MAX];
    for (int i = 0; i < 3; i++) {
        f.workers[i] = (struct sl_placement_worker){"host", 1};
    }
    sl_placement_all(f.receivers, 6, f.workers, 3);
    count_workers(&f, 6, counts);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(f.receivers[i].places.count, 1);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(counts[i], 2);
    }
    destroy(&f);
}

static void
test_T145_more_workers_than_receivers(void **state)
{
    (void)state;
    struct fixture f = {0};
    int counts[MAX];
    for (int i = 0; i < 6; i++) {
        f.workers[i] = (struct sl_placement_worker){"host", 1};
    }
    sl_placement_all(f.receivers, 3, f.workers, 6);
    count_workers(&f, 3, counts);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(f.receivers[i].places.count, 2);
    }
    for (int i = 0; i < 6; i++) {
        assert_int_equal(counts[i], 1);
    }
    destroy(&f);
}

static void
test_T145_preferred_hosts_are_honoured(void **state)
{
    (void)state;
    struct fixture f = {0};
    int counts[MAX];
    for (int i = 0; i < 6; i++) {
        f.workers[i] = (struct sl_placement_worker){i < 3 ? "H" : "elsewhere", 1};
    }
    for (int i = 3; i < 6; i++) {
        f.receivers[i].preferred_host = "H";
    }
    sl_placement_all(f.receivers, 6, f.workers, 6);
    count_workers(&f, 6, counts);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(f.receivers[i].places.count, 1);
        assert_int_equal(counts[i], 1);
        assert_string_equal(f.receivers[i].places.items[0].host, i < 3 ? "elsewhere" : "H");
    }
    destroy(&f);
}

static void
test_T145_nobody_to_place_or_nowhere_to_go(void **state)
{
    (void)state;
    struct fixture f = {0};
    f.workers[0] = (struct sl_placement_worker){"host", 1};
    sl_placement_all(f.receivers, 0, f.workers, 1);
    f.workers[0].is_alive = 0;
    f.receivers[1].preferred_host = "host";
    sl_placement_all(f.receivers, 2, f.workers, 1);
    assert_int_equal(f.receivers[0].places.count, 0);
    assert_int_equal(f.receivers[1].places.count, 0);
    destroy(&f);
}

static void
test_an_unknown_preferred_host_is_kept(void **state)
{
    (void)state;
    struct fixture f = {0};
    f.workers[0] = (struct sl_placement_worker){"host", 1};
    f.receivers[0].preferred_host = "nowhere";
    sl_placement_all(f.receivers, 1, f.workers, 1);
    assert_int_equal(f.receivers[0].places.count, 2);
    assert_int_equal(f.receivers[0].places.items[0].worker, -1);
    assert_string_equal(f.receivers[0].places.items[0].host, "nowhere");
    destroy(&f);
}

static void
test_T146_a_receiver_goes_to_the_idle_workers(void **state)
{
    (void)state;
    struct fixture f = {0};
    for (int i = 0; i < 5; i++) {
        f.workers[i] = (struct sl_placement_worker){"host", 1};
    }
    f.receivers[0].state = SL_RECEIVER_ACTIVE;
    f.receivers[0].worker = 0;
    sl_placement_one(f.receivers, 2, 1, f.workers, 5);
    assert_int_equal(f.receivers[1].places.count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(f.receivers[1].places.items[i].worker, i + 1);
    }
    destroy(&f);
}

static void
test_a_scheduled_receiver_weighs_its_share(void **state)
{
    (void)state;
    struct fixture f = {0};
    for (int i = 0; i < 3; i++) {
        f.workers[i] = (struct sl_placement_worker){"host", 1};
    }
    f.receivers[0].state = SL_RECEIVER_ACTIVE;
    f.receivers[0].worker = 0;
    f.receivers[1].state = SL_RECEIVER_SCHEDULED;
    for (int i = 1; i < 3; i++) {
        struct sl_receiver_place place = {i, "host"};
        sl_vec_push(&f.receivers[1].places, place);
    }
    sl_placement_one(f.receivers, 3, 2, f.workers, 3);
    assert_int_equal(f.receivers[2].places.count, 2);
    assert_int_equal(f.receivers[2].places.items[0].worker, 1);
    assert_int_equal(f.receivers[2].places.items[1].worker, 2);
    destroy(&f);
}

static void
test_T148_a_preferred_host_is_always_among_the_places(void **state)
{
    (void)state;
    struct fixture f = {0};
    f.workers[0] = (struct sl_placement_worker){"host2", 1};
    f.receivers[0].preferred_host = "host1";
    sl_placement_one(f.receivers, 1, 0, f.workers, 1);
    assert_int_equal(f.receivers[0].places.count, 2);
    assert_string_equal(f.receivers[0].places.items[0].host, "host1");
    assert_int_equal(f.receivers[0].places.items[1].worker, 0);
    sl_placement_one(f.receivers, 1, 0, f.workers, 0);
    assert_int_equal(f.receivers[0].places.count, 0);
    destroy(&f);
}

/* Loads differ by at most one as long as nobody has a wish. */
static void
test_placement_is_even(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 9);
    for (int round = 0; round < 500; round++) {
        struct fixture f = {0};
        int counts[MAX];
        int workers = 1 + (int)sl_random_below(&random, MAX);
        int receivers = 1 + (int)sl_random_below(&random, MAX);
        for (int i = 0; i < workers; i++) {
            f.workers[i] = (struct sl_placement_worker){"host", 1};
        }
        sl_placement_all(f.receivers, receivers, f.workers, workers);
        count_workers(&f, receivers, counts);
        int least = MAX;
        int most = 0;
        for (int i = 0; i < workers; i++) {
            least = counts[i] < least ? counts[i] : least;
            most = counts[i] > most ? counts[i] : most;
        }
        assert_true(most - least <= 1 && least >= 1);
        destroy(&f);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_T145_more_receivers_than_workers),
        cmocka_unit_test(test_T145_more_workers_than_receivers),
        cmocka_unit_test(test_T145_preferred_hosts_are_honoured),
        cmocka_unit_test(test_T145_nobody_to_place_or_nowhere_to_go),
        cmocka_unit_test(test_an_unknown_preferred_host_is_kept),
        cmocka_unit_test(test_T146_a_receiver_goes_to_the_idle_workers),
        cmocka_unit_test(test_a_scheduled_receiver_weighs_its_share),
        cmocka_unit_test(test_T148_a_preferred_host_is_always_among_the_places),
        cmocka_unit_test(test_placement_is_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
