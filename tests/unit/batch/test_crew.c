/* Mailboxes of a crew: order, sharing, closing, and threads that answer. */

#include "batch/crew.h"

#include <string.h>

#include "base/err.h"
#include "unit.h"

enum {
    KIND_TASK = 1,
    KIND_RESULT = 2,
};

static void
test_a_mailbox_keeps_order_and_the_own_one_comes_first(void **state)
{
    (void)state;
    struct sl_crew *crew = sl_crew_new(2);
    struct sl_crew_message message;
    assert_int_equal(sl_crew_send(crew, SL_CREW_ANY, 1, "shared", 6), 0);
    assert_int_equal(sl_crew_send(crew, 0, 2, "own", 3), 0);
    assert_int_equal(sl_crew_receive(crew, 0, true, 0, &message), 1);
    assert_int_equal(message.kind, 2);
    assert_memory_equal(message.bytes, "own", 3);
    assert_int_equal(sl_crew_receive(crew, 1, false, 0, &message), 0);
    assert_int_equal(sl_crew_receive(crew, 1, true, 0, &message), 1);
    assert_int_equal(message.len, 6);
    assert_int_equal(sl_crew_receive(crew, 1, true, 0, &message), 0);
    sl_crew_free(crew);
}

static void
test_send_refuses_members_that_do_not_exist(void **state)
{
    (void)state;
    struct sl_crew *crew = sl_crew_new(1);
    assert_int_equal(sl_crew_send(crew, 1, 0, NULL, 0), SL_EINVAL);
    assert_int_equal(sl_crew_send(crew, -2, 0, NULL, 0), SL_EINVAL);
    sl_crew_free(crew);
    assert_null(sl_crew_new(0));
}

static void
test_a_closed_crew_gives_what_it_has_and_then_says_so(void **state)
{
    (void)state;
    struct sl_crew *crew = sl_crew_new(1);
    struct sl_crew_message message;
    sl_crew_send(crew, 0, 5, NULL, 0);
    sl_crew_close(crew);
    assert_true(sl_crew_is_closed(crew));
    assert_int_equal(sl_crew_receive(crew, 0, true, -1, &message), 1);
    assert_int_equal(sl_crew_receive(crew, 0, true, -1, &message), SL_ECLOSED);
    sl_crew_free(crew);
}

static void
answer(struct sl_crew *crew, int32_t member)
{
    struct sl_crew_message message;
    while (sl_crew_receive(crew, member, true, -1, &message) == 1) {
        sl_crew_post(crew, member, KIND_RESULT, message.bytes, (size_t)message.len);
    }
}

static void
count_wake(void *ctx)
{
    __atomic_add_fetch((int *)ctx, 1, __ATOMIC_SEQ_CST);
}

static void
test_threads_answer_every_task_once_and_wake_the_owner(void **state)
{
    (void)state;
    enum { TASKS = 500 };
    int wakes = 0;
    struct sl_crew *crew = sl_crew_new(3);
    sl_crew_set_wake(crew, count_wake, &wakes);
    assert_int_equal(sl_crew_start(crew, answer), 0);
    for (int i = 0; i < TASKS; i++) {
        sl_crew_send(crew, SL_CREW_ANY, KIND_TASK, &i, sizeof(i));
    }
    uint8_t seen[TASKS] = {0};
    struct sl_crew_message message;
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(sl_crew_take(crew, -1, &message), 1);
        assert_int_equal(message.kind, KIND_RESULT);
        int number;
        memcpy(&number, message.bytes, sizeof(number));
        seen[number]++;
    }
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(seen[i], 1);
    }
    sl_crew_close(crew);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sl_crew_take(crew, -1, &message), 1);
        assert_int_equal(message.kind, SL_CREW_ENDED);
    }
    sl_crew_join(crew);
    assert_int_equal(__atomic_load_n(&wakes, __ATOMIC_SEQ_CST), TASKS + 3);
    sl_crew_free(crew);
}

static void
note_kind(void *ctx, int32_t member, int32_t kind, const void *bytes, size_t len)
{
    (void)bytes;
    assert_int_equal(len, 1);
    *(int32_t *)ctx += kind * 10 + member;
}

static void
test_messages_are_forwarded_except_those_about_members(void **state)
{
    (void)state;
    int32_t sum = 0;
    struct sl_crew *crew = sl_crew_new(2);
    struct sl_crew_message message;
    sl_crew_set_forward(crew, note_kind, &sum);
    sl_crew_post(crew, 1, 5, "x", 1);
    assert_int_equal(sum, 51);
    sl_crew_post(crew, 1, 0, "y", 1);
    sl_crew_post(crew, 1, SL_CREW_ENDED, "z", 1);
    sl_crew_set_forward(crew, NULL, NULL);
    sl_crew_post(crew, 1, 5, "w", 1);
    assert_int_equal(sum, 51);
    for (const char *at = "yzw"; *at != 0; at++) {
        assert_int_equal(sl_crew_take(crew, 0, &message), 1);
        assert_int_equal(message.bytes[0], *at);
    }
    sl_crew_free(crew);
}

static void
test_boot_text_is_copied(void **state)
{
    (void)state;
    struct sl_crew *crew = sl_crew_new(1);
    char text[] = "boot";
    sl_crew_set_boot(crew, text, 4);
    text[0] = 'x';
    size_t len;
    assert_memory_equal(sl_crew_boot(crew, &len), "boot", 4);
    assert_int_equal(len, 4);
    sl_crew_free(crew);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_mailbox_keeps_order_and_the_own_one_comes_first),
        cmocka_unit_test(test_send_refuses_members_that_do_not_exist),
        cmocka_unit_test(test_a_closed_crew_gives_what_it_has_and_then_says_so),
        cmocka_unit_test(test_threads_answer_every_task_once_and_wake_the_owner),
        cmocka_unit_test(test_messages_are_forwarded_except_those_about_members),
        cmocka_unit_test(test_boot_text_is_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
