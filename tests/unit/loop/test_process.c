#include "loop/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/sim.h"
#include "unit.h"

struct child {
    struct sl_loop *loop;
    struct sl_process *process;
    struct sl_process_exit exit;
    int exits;
};

static void
on_exit_callback(void *ctx, const struct sl_process_exit *how)
{
    struct child *child = ctx;
    child->exit = *how;
    child->exits++;
    sl_loop_stop(child->loop);
}

static int
start(struct child *child, const char *const *argv, int out)
{
    struct sl_process_options options = {
        .argv = argv, .stdio = {-1, out, -1}, .on_exit = on_exit_callback, .ctx = child};
    return sl_process_spawn(child->loop, &options, &child->process);
}

static void
test_exit_code_and_signal_are_told(void **state)
{
    (void)state;
    struct child child = {0};
    assert_int_equal(sl_loop_new(&child.loop), 0);
    assert_int_equal(start(&child, (const char *const[]){"sh", "-c", "exit 7", NULL}, -1), 0);
    assert_true(sl_process_is_running(child.process));
    sl_loop_run(child.loop);
    assert_int_equal(child.exit.code, 7);
    assert_int_equal(child.exit.signal, 0);
    assert_false(sl_process_is_running(child.process));
    assert_int_equal(sl_process_kill(child.process, SIGTERM), SL_ENOTFOUND);
    sl_process_free(child.process);
    assert_int_equal(start(&child, (const char *const[]){"cat", NULL}, -1), 0);
    sl_process_free(child.process);
    assert_int_equal(start(&child, (const char *const[]){"sh", "-c", "kill -9 $$", NULL}, -1), 0);
    sl_loop_run(child.loop);
    assert_int_equal(child.exit.code, -1);
    assert_int_equal(child.exit.signal, SIGKILL);
    assert_int_equal(child.exits, 2);
    sl_process_free(child.process);
    sl_loop_free(child.loop);
}

static void
test_a_child_is_heard_of_where_its_parent_ignored_children(void **state)
{
    (void)state;
    struct child child = {0};
    assert_true(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    assert_int_equal(sl_loop_new(&child.loop), 0);
    assert_int_equal(start(&child, (const char *const[]){"sh", "-c", "exit 7", NULL}, -1), 0);
    sl_loop_run(child.loop);
    assert_int_equal(child.exit.code, 7);
    sl_process_free(child.process);
    sl_loop_free(child.loop);
}

static void
test_a_child_that_somebody_else_waited_for_has_ended(void **state)
{
    (void)state;
    struct child child = {0};
    assert_int_equal(sl_loop_new(&child.loop), 0);
    assert_int_equal(start(&child, (const char *const[]){"true", NULL}, -1), 0);
    pid_t pid = (pid_t)sl_process_pid(child.process);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    sl_loop_run(child.loop);
    assert_int_equal(child.exit.code, -1);
    assert_int_equal(child.exit.signal, 0);
    sl_process_free(child.process);
    sl_loop_free(child.loop);
}

static void
test_kill_reaches_the_whole_group(void **state)
{
    (void)state;
    struct child child = {0};
    int in[2];
    int out[2];
    assert_int_equal(sl_loop_new(&child.loop), 0);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    /* The grandchild holds the pipe's end: it reads as ended only when both are dead. */
    struct sl_process_options options = {
        .argv = (const char *const[]){"sh", "-c",
                                      "exec 3<&0; (echo up; read x <&3) & echo up; wait", NULL},
        .stdio = {in[0], out[1], -1},
        .on_exit = on_exit_callback,
        .ctx = &child};
    assert_int_equal(sl_process_spawn(child.loop, &options, &child.process), 0);
    close(in[0]);
    close(out[1]);
    char text[8];
    size_t len = 0;
    while (len < 6) {
        ssize_t n = read(out[0], text + len, 6 - len);
        assert_true(n > 0);
        len += (size_t)n;
    }
    assert_int_equal(sl_process_kill(child.process, SIGKILL), 0);
    sl_loop_run(child.loop);
    assert_int_equal(child.exit.signal, SIGKILL);
    assert_int_equal(read(out[0], text, 1), 0);
    close(in[1]);
    close(out[0]);
    sl_process_free(child.process);
    sl_loop_free(child.loop);
}

static void
test_a_program_that_does_not_exist(void **state)
{
    (void)state;
    struct child child = {0};
    assert_int_equal(sl_loop_new(&child.loop), 0);
    assert_int_equal(start(&child, (const char *const[]){"no-such-program-x", NULL}, -1),
                     SL_ENOTFOUND);
    assert_non_null(strstr(sl_err_last()->msg, "no-such-program-x"));
    struct sl_process_options options = {.argv = (const char *const[]){"x", NULL},
                                         .file = "core",
                                         .stdio = {-1, -1, -1},
                                         .on_exit = on_exit_callback};
    assert_int_equal(sl_process_spawn(child.loop, &options, &child.process), SL_ESYS);
    sl_loop_free(child.loop);
}

static void
test_S17_a_child_inherits_no_descriptors(void **state)
{
    (void)state;
    struct child child = {0};
    int held[120];
    int fds[2];
    char text[512];
    size_t len = 0;
    ssize_t n;
    assert_int_equal(sl_loop_new(&child.loop), 0);
    /* More than 100, not close-on-exec, with gaps. */
    for (size_t i = 0; i < array_size(held); i++) {
        held[i] = open("/dev/null", O_RDONLY);
        assert_true(held[i] >= 0);
    }
    for (size_t i = 0; i < array_size(held); i += 3) {
        close(held[i]);
        held[i] = -1;
    }
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(
        start(&child, (const char *const[]){"sh", "-c", "cd /proc/$$/fd && echo *", NULL}, fds[1]),
        0);
    close(fds[1]);
    while ((n = read(fds[0], text + len, sizeof(text) - 1 - len)) > 0) {
        len += (size_t)n;
    }
    text[len] = '\0';
    sl_loop_run(child.loop);
    /* Shells may hold one more of their own while they expand. */
    assert_int_equal(strncmp(text, "0 1 2", 5), 0);
    assert_true(len <= strlen("0 1 2 255\n"));
    for (size_t i = 0; i < array_size(held); i++) {
        if (held[i] >= 0) {
            close(held[i]);
        }
    }
    close(fds[0]);
    sl_process_free(child.process);
    sl_loop_free(child.loop);
}

static void
test_environment_and_folder_are_those_given(void **state)
{
    (void)state;
    struct child child = {0};
    int fds[2];
    char text[64] = "";
    assert_int_equal(sl_loop_new(&child.loop), 0);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    struct sl_process_options options = {
        .file = "/bin/sh",
        .argv = (const char *const[]){"sh", "-c", "echo $A $HOME $(pwd)", NULL},
        .env = (const char *const[]){"A=one", NULL},
        .cwd = "/",
        .stdio = {-1, fds[1], -1},
        .on_exit = on_exit_callback,
        .ctx = &child};
    assert_int_equal(sl_process_spawn(child.loop, &options, &child.process), 0);
    close(fds[1]);
    assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
    assert_string_equal(text, "one /\n");
    sl_loop_run(child.loop);
    close(fds[0]);
    sl_process_free(child.process);
    sl_loop_free(child.loop);
}

static void
on_signal(void *ctx, int number)
{
    struct child *child = ctx;
    child->exits = number;
    sl_loop_stop(child->loop);
}

static void
test_signals_arrive_on_the_loop(void **state)
{
    (void)state;
    struct child child = {0};
    struct sl_signal *watch;
    assert_int_equal(sl_loop_new(&child.loop), 0);
    assert_int_equal(sl_signal_open(child.loop, SIGUSR1, on_signal, &child, &watch), 0);
    assert_int_equal(raise(SIGUSR1), 0);
    sl_loop_run(child.loop);
    assert_int_equal(child.exits, SIGUSR1);
    sl_signal_close(watch);
    sl_loop_free(child.loop);
}

/* The simulation: the spawner is the test. */
static int64_t spawned_pid;
static int killed_number;

static int
sim_spawn(void *ctx, struct sl_loop *parent, const struct sl_process_options *options, int64_t pid)
{
    (void)ctx;
    (void)parent;
    assert_string_equal(options->argv[0], "worker");
    spawned_pid = pid;
    return 0;
}

static void
sim_kill(void *ctx, int64_t pid, int number)
{
    assert_int_equal(pid, spawned_pid);
    killed_number = number;
    sl_sim_process_exited(ctx, pid, -1, number);
}

static void
test_simulated_processes_and_signals(void **state)
{
    (void)state;
    struct child child = {0};
    struct sl_signal *watch;
    struct sl_sim *sim = sl_sim_new(&(struct sl_sim_options){.seed = 1});
    child.loop = sl_sim_loop_new(sim, "127.0.0.1");
    assert_int_equal(start(&child, (const char *const[]){"worker", NULL}, -1), SL_ENOTFOUND);
    sl_sim_set_spawner(sim, &(struct sl_sim_spawner){sim_spawn, sim_kill, sim});
    assert_int_equal(start(&child, (const char *const[]){"worker", NULL}, -1), 0);
    assert_int_equal(sl_process_pid(child.process), spawned_pid);
    assert_int_equal(sl_process_kill(child.process, SIGTERM), 0);
    assert_int_equal(child.exits, 0);
    sl_sim_run_for(sim, 1);
    assert_int_equal(child.exits, 1);
    assert_int_equal(child.exit.signal, SIGTERM);
    sl_process_free(child.process);
    assert_int_equal(sl_signal_open(child.loop, SIGINT, on_signal, &child, &watch), 0);
    sl_sim_loop_raise(child.loop, SIGINT);
    sl_sim_run_for(sim, 1);
    assert_int_equal(child.exits, SIGINT);
    sl_signal_close(watch);
    sl_loop_free(child.loop);
    sl_sim_free(sim);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_exit_code_and_signal_are_told),
    cmocka_unit_test(test_a_child_is_heard_of_where_its_parent_ignored_children),
    cmocka_unit_test(test_a_child_that_somebody_else_waited_for_has_ended),
    cmocka_unit_test(test_kill_reaches_the_whole_group),
    cmocka_unit_test(test_a_program_that_does_not_exist),
    cmocka_unit_test(test_S17_a_child_inherits_no_descriptors),
    cmocka_unit_test(test_environment_and_folder_are_those_given),
    cmocka_unit_test(test_signals_arrive_on_the_loop),
    cmocka_unit_test(test_simulated_processes_and_signals),
};

UNIT_MAIN(tests)
