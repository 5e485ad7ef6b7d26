/* labels: short */
/* A process that is kept running, in virtual time: restarts that come later and later, giving up,
 * stopping with a grace, taking over. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cluster/kept_process.h"
#include "loop/process.h"
#include "loop/sim.h"
#include "unit.h"

struct fixture {
    struct sl_sim *sim;
    struct sl_loop *loop;
    struct sl_kept_process *process;
    /* What the simulation was told. */
    int spawned;
    int64_t pid;
    int last_signal;
    int64_t signalled;
    bool is_stubborn;
    bool is_program_missing;
    /* What the listener was told. */
    int started;
    int ended;
    int given_up;
    int stopped;
    char text[512];
    const char *log;
    /* The adopter. */
    sl_loop_fn adopted_fn;
    void *adopted_arg;
    int unwatched;
};

static int
spawn(void *ctx, struct sl_loop *parent, const struct sl_process_options *options, int64_t pid)
{
    struct fixture *f = ctx;
    (void)parent;
    assert_string_equal(options->argv[1], "worker");
    assert_null(options->argv[2]);
    if (f->is_program_missing) {
        return sl_err_set(SL_ENOTFOUND, "no such program");
    }
    f->spawned++;
    f->pid = pid;
    return 0;
}

static void
end(struct fixture *f, int code)
{
    int64_t pid = f->pid;
    f->pid = 0;
    sl_sim_process_exited(f->sim, pid, code, 0);
    sl_sim_run_for(f->sim, 0);
}

static void
send_signal(void *ctx, int64_t pid, int number)
{
    struct fixture *f = ctx;
    f->last_signal = number;
    f->signalled = pid;
    if (number == SIGKILL || !f->is_stubborn) {
        sl_sim_process_exited(f->sim, pid, -1, number);
    }
}

static int
adopter_watch(void *ctx, struct sl_loop *loop, int64_t pid, sl_loop_fn fn, void *arg, void **watch)
{
    struct fixture *f = ctx;
    (void)loop;
    if (pid == 1) {
        return sl_err_set(SL_ENOTFOUND, "process 1 has ended");
    }
    f->adopted_fn = fn;
    f->adopted_arg = arg;
    *watch = f;
    return 0;
}

static void
adopter_unwatch(void *ctx, void *watch)
{
    assert_ptr_equal(ctx, watch);
    ((struct fixture *)ctx)->unwatched++;
}

static void
adopter_kill(void *ctx, int64_t pid, int number)
{
    struct fixture *f = ctx;
    f->signalled = pid;
    f->last_signal = number;
}

static void
on_started(void *ctx)
{
    ((struct fixture *)ctx)->started++;
}

static void
on_ended(void *ctx, const char *text)
{
    struct fixture *f = ctx;
    f->ended++;
    snprintf(f->text, sizeof(f->text), "%s", text);
}

static void
on_given_up(void *ctx, const char *text)
{
    struct fixture *f = ctx;
    f->given_up++;
    snprintf(f->text, sizeof(f->text), "%s", text);
}

static void
on_stopped(void *ctx)
{
    ((struct fixture *)ctx)->stopped++;
}

static void
open_fixture_with_log(struct fixture *f, uint32_t failures_max, bool ends_with_zero,
                      const char *log)
{
    static const char *const argv[] = {"streamlua", "worker", NULL};
    memset(f, 0, sizeof(*f));
    f->log = log;
    f->sim = sl_sim_new(&(struct sl_sim_options){.seed = 3});
    f->loop = sl_sim_loop_new(f->sim, "127.0.0.1");
    /* No clock stands near 0 when a process fails. */
    sl_sim_run_for(f->sim, 10 * SL_KEPT_RESET_MS);
    sl_sim_set_spawner(f->sim, &(struct sl_sim_spawner){spawn, send_signal, f});
    struct sl_adopter adopter = {adopter_watch, adopter_unwatch, adopter_kill, f};
    static struct sl_adopter kept;
    kept = adopter;
    struct sl_kept_process_options options = {
        .loop = f->loop,
        .program = "streamlua",
        .argv = argv,
        .log = f->log,
        .label = "container 1",
        .failures_max = failures_max,
        .ends_with_zero = ends_with_zero,
        .adopter = &kept,
        .listener = {on_started, on_ended, on_given_up, on_stopped, f},
    };
    f->process = sl_kept_process_new(&options);
}

static void
open_fixture(struct fixture *f, uint32_t failures_max, bool ends_with_zero)
{
    open_fixture_with_log(f, failures_max, ends_with_zero, "/dev/null");
}

static void
close_fixture(struct fixture *f)
{
    sl_kept_process_free(f->process);
    sl_loop_free(f->loop);
    sl_sim_free(f->sim);
}

static void
test_it_is_started_again_ever_later(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 0, false);
    sl_kept_process_start(f.process);
    assert_int_equal(f.started, 1);
    assert_int_equal(sl_kept_process_pid(f.process), f.pid);
    uint64_t last = 0;
    for (int i = 1; i <= 5; i++) {
        end(&f, 1);
        assert_int_equal(f.ended, i);
        assert_string_equal(f.text, "exit code 1");
        assert_int_equal(sl_kept_process_pid(f.process), 0);
        uint64_t before = sl_sim_now_ms(f.sim);
        while (f.spawned == i) {
            assert_true(sl_sim_step(f.sim));
        }
        uint64_t pause = sl_sim_now_ms(f.sim) - before;
        assert_true(pause > last && (i > 1 || pause <= 120));
        last = pause;
        assert_int_equal(sl_kept_process_restarts(f.process), i);
    }
    /* It ran for long: the next failure is the first again. */
    sl_sim_run_for(f.sim, 3 * SL_KEPT_RESET_MS);
    end(&f, 1);
    sl_sim_run_for(f.sim, 120);
    assert_int_equal(f.spawned, 7);
    assert_int_equal(f.given_up, 0);
    close_fixture(&f);
}

static void
test_one_that_ends_at_once_does_not_flap_for_ever(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 4, false);
    sl_kept_process_start(f.process);
    for (int i = 0; i < 4; i++) {
        end(&f, 127);
        sl_sim_run_for(f.sim, SL_KEPT_BACKOFF_MAX_MS - 1000);
    }
    assert_int_equal(f.given_up, 1);
    assert_int_equal(f.ended, 3);
    assert_int_equal(f.spawned, 4);
    assert_non_null(strstr(f.text, "4 times in a row, the last time with exit code 127"));
    sl_sim_run_for(f.sim, 600000);
    assert_int_equal(f.spawned, 4);
    sl_kept_process_stop(f.process);
    assert_int_equal(f.stopped, 0);
    sl_sim_run_for(f.sim, 1);
    assert_int_equal(f.stopped, 1);
    close_fixture(&f);
}

static void
test_a_long_run_between_failures_is_no_flapping(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 2, false);
    sl_kept_process_start(f.process);
    for (int i = 0; i < 5; i++) {
        sl_sim_run_for(f.sim, SL_KEPT_RESET_MS + SL_KEPT_BACKOFF_MAX_MS);
        end(&f, 1);
        sl_sim_run_for(f.sim, SL_KEPT_BACKOFF_MAX_MS);
    }
    assert_int_equal(f.given_up, 0);
    assert_int_equal(f.spawned, 6);
    close_fixture(&f);
}

static void
test_a_missing_program_is_given_up(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 3, false);
    f.is_program_missing = true;
    sl_kept_process_start(f.process);
    sl_sim_run_for(f.sim, 60000);
    assert_int_equal(f.given_up, 1);
    assert_int_equal(f.ended, 2);
    assert_int_equal(f.started, 0);
    assert_non_null(strstr(f.text, "no such program"));
    close_fixture(&f);
}

static void
test_a_start_that_fails_is_told_in_a_turn_of_its_own(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 0, false);
    f.is_program_missing = true;
    sl_kept_process_start(f.process);
    assert_int_equal(f.ended, 0);
    sl_sim_run_for(f.sim, 1);
    assert_int_equal(f.ended, 1);
    assert_string_equal(f.text, "no such program");
    /* It is stopped before that is told, or while it waits. */
    sl_kept_process_restart(f.process);
    while (sl_kept_process_restarts(f.process) < 2) {
        assert_true(sl_sim_step(f.sim));
    }
    sl_kept_process_stop(f.process);
    sl_sim_run_for(f.sim, 60000);
    assert_int_equal(f.stopped, 1);
    assert_int_equal(f.ended, 2);
    close_fixture(&f);
}

static void
append(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void
await_start(struct fixture *f, int spawned)
{
    while (f->spawned < spawned) {
        assert_true(sl_sim_step(f->sim));
    }
    assert_int_equal(f->spawned, spawned);
}

static void
test_what_it_wrote_at_last_is_told(void **state)
{
    static const struct {
        const char *output;
        const char *told;
    } rows[] = {
        {"", "exit code 3"},
        {"one\ntwo\n", "exit code 3: two"},
        {"no line end", "exit code 3: no line end"},
        {"two\n\n\n", "exit code 3: two"},
        {"a\tb\x1b[1m\n", "exit code 3: a b [1m"},
        {"worker: container 2 listens on 127.0.0.1:6800\n", "exit code 3"},
        {"error: a.lua:3: no such table\nhint: make one\n", "exit code 3: a.lua:3: no such table"},
        {"error: old\nerror: new\n", "exit code 3: new"},
        {"no error: here\n", "exit code 3: no error: here"},
        {"\n", "exit code 3"},
    };
    (void)state;
    char folder[PATH_MAX];
    char path[PATH_MAX + sizeof("/log")];
    unit_folder_new(folder, sizeof(folder));
    snprintf(path, sizeof(path), "%s/log", folder);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    append(path, "error: of an earlier process\n");
    struct fixture f;
    open_fixture_with_log(&f, 0, false, path);
    sl_kept_process_start(f.process);
    for (size_t i = 0; i < array_size(rows); i++) {
        append(path, rows[i].output);
        end(&f, 3);
        assert_string_equal(f.text, rows[i].told);
        await_start(&f, (int)i + 2);
    }
    /* Much of it, and a log that somebody cut. */
    for (int i = 0; i < 400; i++) {
        append(path, "a line that is one of very many lines\n");
    }
    append(path, "error: ");
    for (int i = 0; i < 400; i++) {
        append(path, "long ");
    }
    end(&f, 3);
    assert_memory_equal(f.text, "exit code 3: long long", 22);
    assert_in_range(strlen(f.text), 100, 200);
    await_start(&f, (int)array_size(rows) + 2);
    assert_int_equal(truncate(path, 0), 0);
    append(path, "new\n");
    end(&f, 3);
    assert_string_equal(f.text, "exit code 3");
    /* One that worked for long did not end of what it said then, unless that is an error. */
    await_start(&f, (int)array_size(rows) + 3);
    sl_sim_run_for(f.sim, SL_KEPT_RESET_MS);
    append(path, "a number\n");
    end(&f, 3);
    assert_string_equal(f.text, "exit code 3");
    await_start(&f, (int)array_size(rows) + 4);
    sl_sim_run_for(f.sim, SL_KEPT_RESET_MS);
    append(path, "error: no memory\nand that was it\n");
    end(&f, 3);
    assert_string_equal(f.text, "exit code 3: no memory");
    await_start(&f, (int)array_size(rows) + 5);
    append(path, "error: a minor one\n");
    sl_kept_process_restart(f.process);
    sl_sim_run_for(f.sim, 1);
    assert_null(strstr(f.text, "minor"));
    close_fixture(&f);
    unlink(path);
    rmdir(folder);
}

static void
test_stop_asks_and_then_makes_it_end(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 0, false);
    sl_kept_process_start(f.process);
    f.is_stubborn = true;
    sl_kept_process_stop(f.process);
    sl_kept_process_stop(f.process);
    sl_sim_run_for(f.sim, SL_KEPT_GRACE_MS - 1);
    assert_int_equal(f.last_signal, SIGTERM);
    assert_int_equal(f.stopped, 0);
    sl_sim_run_for(f.sim, 2);
    assert_int_equal(f.last_signal, SIGKILL);
    assert_int_equal(f.stopped, 1);
    assert_int_equal(f.ended, 0);
    close_fixture(&f);
}

static void
test_restart_is_quick_and_no_failure(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 2, false);
    sl_kept_process_start(f.process);
    for (int i = 1; i <= 5; i++) {
        sl_kept_process_restart(f.process);
        sl_sim_run_for(f.sim, 1);
        assert_int_equal(f.spawned, i + 1);
    }
    assert_int_equal(f.given_up, 0);
    close_fixture(&f);
}

static void
test_exit_code_0_can_mean_the_end(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 0, true);
    sl_kept_process_start(f.process);
    end(&f, 75);
    sl_sim_run_for(f.sim, 200);
    assert_int_equal(f.spawned, 2);
    /* Not when it is to be started again. */
    f.is_stubborn = true;
    sl_kept_process_restart(f.process);
    end(&f, 0);
    assert_int_equal(f.stopped, 0);
    sl_sim_run_for(f.sim, 1);
    assert_int_equal(f.spawned, 3);
    end(&f, 0);
    assert_int_equal(f.stopped, 1);
    sl_sim_run_for(f.sim, 60000);
    assert_int_equal(f.spawned, 3);
    close_fixture(&f);
}

static void
test_a_process_is_taken_over(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 0, false);
    assert_int_equal(sl_kept_process_adopt(f.process, 1), SL_ENOTFOUND);
    assert_int_equal(sl_kept_process_pid(f.process), 0);
    assert_int_equal(sl_kept_process_adopt(f.process, 4711), 0);
    assert_int_equal(sl_kept_process_pid(f.process), 4711);
    assert_int_equal(f.started, 0);
    sl_kept_process_restart(f.process);
    assert_int_equal(f.signalled, 4711);
    assert_int_equal(f.last_signal, SIGTERM);
    f.adopted_fn(f.adopted_arg);
    assert_int_equal(f.unwatched, 1);
    sl_sim_run_for(f.sim, 1);
    assert_int_equal(f.spawned, 1);
    assert_int_not_equal(sl_kept_process_pid(f.process), 4711);
    close_fixture(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_started_again_ever_later),
        cmocka_unit_test(test_one_that_ends_at_once_does_not_flap_for_ever),
        cmocka_unit_test(test_a_long_run_between_failures_is_no_flapping),
        cmocka_unit_test(test_a_missing_program_is_given_up),
        cmocka_unit_test(test_a_start_that_fails_is_told_in_a_turn_of_its_own),
        cmocka_unit_test(test_what_it_wrote_at_last_is_told),
        cmocka_unit_test(test_stop_asks_and_then_makes_it_end),
        cmocka_unit_test(test_restart_is_quick_and_no_failure),
        cmocka_unit_test(test_exit_code_0_can_mean_the_end),
        cmocka_unit_test(test_a_process_is_taken_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
