/* Events for the owner: their order, their bounds, signals, many threads that post. */

#include <math.h>
#include <signal.h>

#include "rig.h"

static void
test_events_come_in_order_with_their_texts(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    struct sl_event event;
    assert_int_equal(sl_worker_wait(rig->worker, 0, &event), 0);
    for (int i = 0; i < 100; i++) {
        char text[8];
        int len = snprintf(text, sizeof(text), "e%d", i);
        sl_worker_post(rig->worker, SL_EVENT_ERROR, i, -i, text, (size_t)len);
    }
    for (int i = 0; i < 100; i++) {
        char text[8];
        snprintf(text, sizeof(text), "e%d", i);
        assert_int_equal(sl_worker_wait(rig->worker, 1e300, &event), 1);
        assert_int_equal(event.kind, SL_EVENT_ERROR);
        assert_int_equal(event.task, i);
        assert_int_equal(event.executor, -i);
        assert_string_equal(event.text, text);
    }
    assert_int_equal(sl_worker_wait(rig->worker, NAN, &event), 0);
    rig_free(rig);
}

static void
test_errors_are_bounded_and_other_events_are_not_dropped(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    for (int i = 0; i < SL__EVENT_MAX + 500; i++) {
        sl_worker_post(rig->worker, SL_EVENT_ERROR, 1, 0, "x", 1);
    }
    sl_worker_post(rig->worker, SL_EVENT_FINISHED, -1, 0, NULL, 0);
    assert_int_equal(rig->worker->events_dropped, 500);
    struct sl_event event;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sl_worker_wait(rig->worker, 0, &event), 1);
    }
    static const char text[SL__ERROR_TEXT_MOST + 100] = "long";
    sl_worker_post(rig->worker, SL_EVENT_ERROR, 1, 0, text, sizeof(text));
    assert_int_equal(rig->worker->events_last->len, SL__ERROR_TEXT_MOST);
    assert_int_equal(rig_heard(rig, SL_EVENT_ERROR), SL__EVENT_MAX - 1);
    assert_int_equal(rig_heard(rig, SL_EVENT_FINISHED), 1);
    rig_free(rig);
}

static void
test_each_signal_is_one_event_and_goes_first(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    sl_worker_post(rig->worker, SL_EVENT_ERROR, 1, 0, "x", 1);
    sl_worker_signal(rig->worker, SIGINT);
    sl_worker_signal(rig->worker, SIGINT);
    struct sl_event event;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sl_worker_wait(rig->worker, 0, &event), 1);
        assert_int_equal(event.kind, SL_EVENT_SIGNAL);
        assert_int_equal(event.task, SIGINT);
    }
    assert_int_equal(sl_worker_wait(rig->worker, 0, &event), 1);
    assert_int_equal(event.kind, SL_EVENT_ERROR);
    assert_int_equal(sl_worker_wait(rig->worker, 1, &event), 0);
    rig_free(rig);
}

enum {
    POSTERS = 3,
    POSTS = 3000,
};

static void *
post_many(void *argument)
{
    struct sl_worker *worker = argument;
    for (int i = 0; i < POSTS; i++) {
        sl_worker_post(worker, SL_EVENT_REPORT, i, 0, "some text", 9);
    }
    return NULL;
}

static void
test_many_threads_may_post_while_the_owner_waits(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    pthread_t threads[POSTERS];
    for (int i = 0; i < POSTERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, rig->worker), 0);
    }
    int64_t sum = 0;
    struct sl_event event;
    for (int i = 0; i < POSTERS * POSTS; i++) {
        assert_int_equal(sl_worker_wait(rig->worker, -1, &event), 1);
        assert_string_equal(event.text, "some text");
        sum += event.task;
    }
    assert_int_equal(sum, (int64_t)POSTERS * POSTS * (POSTS - 1) / 2);
    for (int i = 0; i < POSTERS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(sl_worker_wait(rig->worker, 0, &event), 0);
    rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_events_come_in_order_with_their_texts),
    cmocka_unit_test(test_errors_are_bounded_and_other_events_are_not_dropped),
    cmocka_unit_test(test_each_signal_is_one_event_and_goes_first),
    cmocka_unit_test(test_many_threads_may_post_while_the_owner_waits),
};

UNIT_MAIN(tests)
