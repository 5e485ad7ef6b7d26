#include "loop/loop.h"

#include <pthread.h>
#include <unistd.h>

#include "loop/sim.h"
#include "unit.h"

/* Both kinds of loop pass the same tests: `world` runs whichever it holds. */
struct world {
    struct sl_sim *sim;
    struct sl_loop *loop;
};

static void
open_world(struct world *world, bool is_simulated)
{
    memset(world, 0, sizeof(*world));
    if (is_simulated) {
        world->sim = sl_sim_new(&(struct sl_sim_options){.seed = 1});
        world->loop = sl_sim_loop_new(world->sim, "127.0.0.1");
    } else {
        assert_int_equal(sl_loop_new(&world->loop), 0);
    }
}

static void
close_world(struct world *world)
{
    sl_loop_free(world->loop);
    sl_sim_free(world->sim);
}

struct order {
    struct sl_loop *loop;
    char text[64];
    size_t len;
    struct sl_timer restarted;
    uint64_t old_ticket;
    bool was_current;
};

static void
note(struct order *order, char c)
{
    order->text[order->len++] = c;
    order->text[order->len] = '\0';
}

static void
note_a(void *ctx, uint64_t ticket)
{
    (void)ticket;
    note(ctx, 'a');
}

static void
note_b(void *ctx, uint64_t ticket)
{
    (void)ticket;
    note(ctx, 'b');
}

static void
stop_loop(void *ctx, uint64_t ticket)
{
    struct order *order = ctx;
    (void)ticket;
    note(order, '.');
    sl_loop_stop(order->loop);
}

static void
test_equal_times_fire_in_order_of_start(void **state)
{
    for (int kind = 0; kind < 2; kind++) {
        struct world world;
        struct order order = {0};
        struct sl_timer timers[4] = {0};
        struct sl_timer end = {0};
        (void)state;
        open_world(&world, kind == 1);
        order.loop = world.loop;
        /* In virtual time these are equal exactly; on the real loop at least never swapped. */
        sl_timer_start(world.loop, &timers[0], 1, note_a, &order);
        sl_timer_start(world.loop, &timers[1], 1, note_b, &order);
        sl_timer_start(world.loop, &timers[2], 1, note_a, &order);
        sl_timer_start(world.loop, &timers[3], 1, note_b, &order);
        sl_timer_start(world.loop, &timers[0], 1, note_b, &order);
        sl_timer_start(world.loop, &end, 2, stop_loop, &order);
        sl_loop_run(world.loop);
        assert_string_equal(order.text, "babb.");
        close_world(&world);
    }
}

static void
restart_other(void *ctx, uint64_t ticket)
{
    struct order *order = ctx;
    (void)ticket;
    order->was_current = sl_timer_is_current(&order->restarted, order->old_ticket);
    sl_timer_stop(&order->restarted);
    note(order, 'r');
}

static void
test_a_stopped_timer_does_not_fire_even_when_due(void **state)
{
    for (int kind = 0; kind < 2; kind++) {
        struct world world;
        struct order order = {0};
        struct sl_timer first = {0};
        struct sl_timer end = {0};
        (void)state;
        open_world(&world, kind == 1);
        order.loop = world.loop;
        sl_timer_start(world.loop, &first, 1, restart_other, &order);
        order.old_ticket = sl_timer_start(world.loop, &order.restarted, 1, note_a, &order);
        sl_timer_start(world.loop, &end, 3, stop_loop, &order);
        sl_loop_run(world.loop);
        assert_string_equal(order.text, "r.");
        assert_true(order.was_current);
        assert_false(sl_timer_is_current(&order.restarted, order.old_ticket));
        close_world(&world);
    }
}

static void
test_tickets_tell_a_restarted_timer_from_its_old_firing(void **state)
{
    struct world world;
    struct order order = {0};
    struct sl_timer timer = {0};
    (void)state;
    open_world(&world, true);
    uint64_t first = sl_timer_start(world.loop, &timer, 5, note_a, &order);
    assert_true(sl_timer_is_current(&timer, first));
    assert_int_equal(sl_timer_left_ms(&timer), 5);
    uint64_t second = sl_timer_start(world.loop, &timer, 5, note_b, &order);
    assert_int_not_equal(first, second);
    assert_false(sl_timer_is_current(&timer, first));
    sl_sim_run_for(world.sim, 10);
    assert_string_equal(order.text, "b");
    assert_true(sl_timer_is_current(&timer, second));
    assert_false(sl_timer_is_running(&timer));
    assert_int_equal(sl_timer_left_ms(&timer), 0);
    sl_timer_stop(&timer);
    assert_false(sl_timer_is_current(&timer, second));
    assert_false(sl_timer_is_current(&timer, 0));
    close_world(&world);
}

static void
post_a(void *ctx)
{
    note(ctx, 'a');
}

static void
post_more(void *ctx)
{
    struct order *order = ctx;
    sl_loop_post(order->loop, post_a, order);
    note(order, 'm');
}

static void
post_stop(void *ctx)
{
    struct order *order = ctx;
    note(order, '.');
    sl_loop_stop(order->loop);
}

static void
test_posts_run_later_and_in_order(void **state)
{
    for (int kind = 0; kind < 2; kind++) {
        struct world world;
        struct order order = {0};
        (void)state;
        open_world(&world, kind == 1);
        order.loop = world.loop;
        sl_loop_post(world.loop, post_more, &order);
        sl_loop_post(world.loop, post_more, &order);
        assert_string_equal(order.text, "");
        sl_loop_run_once(world.loop, -1);
        sl_loop_run_once(world.loop, -1);
        sl_loop_post(world.loop, post_stop, &order);
        sl_loop_run(world.loop);
        assert_string_equal(order.text, "mmaa.");
        close_world(&world);
    }
}

struct flood {
    struct sl_loop *loop;
    int count;
};

enum { FLOOD = 20000, FLOOD_THREADS = 3 };

static void
count_post(void *ctx)
{
    struct flood *flood = ctx;
    if (++flood->count == FLOOD * FLOOD_THREADS) {
        sl_loop_stop(flood->loop);
    }
}

static void *
flood_thread(void *ctx)
{
    struct flood *flood = ctx;
    for (int i = 0; i < FLOOD; i++) {
        sl_loop_post(flood->loop, count_post, flood);
    }
    return NULL;
}

static void
test_posts_of_other_threads_all_arrive(void **state)
{
    struct world world;
    pthread_t threads[FLOOD_THREADS];
    (void)state;
    open_world(&world, false);
    struct flood flood = {.loop = world.loop};
    for (int i = 0; i < FLOOD_THREADS; i++) {
        pthread_create(&threads[i], NULL, flood_thread, &flood);
    }
    sl_loop_run(world.loop);
    assert_int_equal(flood.count, FLOOD * FLOOD_THREADS);
    for (int i = 0; i < FLOOD_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    close_world(&world);
}

static void
work_w(void *ctx)
{
    note(ctx, 'w');
}

static void
test_work_ends_in_done_on_the_loop(void **state)
{
    for (int kind = 0; kind < 2; kind++) {
        struct world world;
        struct order order = {0};
        (void)state;
        open_world(&world, kind == 1);
        order.loop = world.loop;
        sl_loop_work(world.loop, work_w, post_stop, &order);
        sl_loop_run(world.loop);
        assert_string_equal(order.text, "w.");
        close_world(&world);
    }
}

struct pipe_case {
    struct sl_loop *loop;
    int fd;
    int reads;
};

static void
read_pipe(void *ctx)
{
    struct pipe_case *pipe_case = ctx;
    char byte;
    assert_int_equal(read(pipe_case->fd, &byte, 1), 1);
    if (++pipe_case->reads == 2) {
        sl_loop_stop(pipe_case->loop);
    }
}

static void
test_fd_watch_is_called_while_there_is_something_to_read(void **state)
{
    struct world world;
    struct sl_fd_watch *watch;
    int fds[2];
    (void)state;
    open_world(&world, false);
    assert_int_equal(pipe(fds), 0);
    struct pipe_case pipe_case = {world.loop, fds[0], 0};
    assert_int_equal(sl_fd_watch_open(world.loop, fds[0], read_pipe, &pipe_case, &watch), 0);
    assert_int_equal(write(fds[1], "ab", 2), 2);
    sl_loop_run(world.loop);
    assert_int_equal(pipe_case.reads, 2);
    sl_fd_watch_close(watch);
    close(fds[0]);
    close(fds[1]);
    close_world(&world);
}

static void
test_run_once_waits_no_longer_than_told(void **state)
{
    struct world world;
    (void)state;
    open_world(&world, false);
    uint64_t before_ms = sl_loop_now_ms(world.loop);
    sl_loop_run_once(world.loop, 5);
    assert_true(sl_loop_now_ms(world.loop) - before_ms >= 4);
    sl_loop_run_once(world.loop, 0);
    close_world(&world);
}

static void
count_timer(void *ctx, uint64_t ticket)
{
    (void)ticket;
    ++*(int *)ctx;
}

/* What a timer does may be what the caller waits for, whenever in the turn it fires. */
static void
test_run_once_does_not_wait_after_a_timer(void **state)
{
    struct world world;
    struct sl_timer timer = {0};
    (void)state;
    open_world(&world, false);
    for (int i = 0; i < 50; i++) {
        int fired = 0;
        sl_timer_start(world.loop, &timer, 0, count_timer, &fired);
        uint64_t before_ms = sl_loop_now_ms(world.loop);
        while (fired == 0) {
            sl_loop_run_once(world.loop, 60000);
        }
        assert_true(sl_loop_now_ms(world.loop) - before_ms < 30000);
    }
    close_world(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_equal_times_fire_in_order_of_start),
    cmocka_unit_test(test_a_stopped_timer_does_not_fire_even_when_due),
    cmocka_unit_test(test_tickets_tell_a_restarted_timer_from_its_old_firing),
    cmocka_unit_test(test_posts_run_later_and_in_order),
    cmocka_unit_test(test_posts_of_other_threads_all_arrive),
    cmocka_unit_test(test_work_ends_in_done_on_the_loop),
    cmocka_unit_test(test_fd_watch_is_called_while_there_is_something_to_read),
    cmocka_unit_test(test_run_once_waits_no_longer_than_told),
    cmocka_unit_test(test_run_once_does_not_wait_after_a_timer),
};

UNIT_MAIN(tests)
