/* The processes of local topologies, found among those of this program. */
#include "cluster/local_processes.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "loop/process.h"
#include "unit.h"

static void
ignore_exit(void *ctx, const struct sl_process_exit *how)
{
    (void)ctx;
    (void)how;
}

/* This program in the role of a guardian, which waits until it is killed. */
static struct sl_process *
start(struct sl_loop *loop, const char *topology)
{
    struct sl_process *process;
    struct sl_process_options options = {
        .file = "/proc/self/exe",
        .argv = (const char *const[]){"streamlua", SL_ROLE_GUARDIAN, "--state", "memory:test",
                                      "--topology", topology, NULL},
        .stdio = {-1, -1, -1},
        .on_exit = ignore_exit,
    };
    assert_int_equal(sl_process_spawn(loop, &options, &process), 0);
    return process;
}

struct search {
    int64_t pid;
    int found;
    int others;
};

static void
on_process(void *ctx, int64_t pid, const char *role, int32_t container)
{
    struct search *search = ctx;
    assert_string_equal(role, SL_ROLE_GUARDIAN);
    assert_int_equal(container, -1);
    search->found += pid == search->pid;
    search->others += pid != search->pid;
}

static void
test_each_finds_a_process_as_soon_as_it_is_started(void **state)
{
    (void)state;
    struct sl_loop *loop;
    assert_int_equal(sl_loop_new(&loop), 0);
    for (int i = 0; i < 100; i++) {
        char topology[32];
        snprintf(topology, sizeof(topology), "t%d-%d", (int)getpid(), i);
        struct sl_process *process = start(loop, topology);
        struct search search = {.pid = sl_process_pid(process)};
        sl_local_processes_each("memory:test", topology, on_process, &search);
        assert_int_equal(search.found, 1);
        assert_int_equal(search.others, 0);
        if (i == 0) {
            sl_local_processes_each("memory:other", topology, on_process, &search);
            sl_local_processes_each("memory:test", "other", on_process, &search);
            assert_int_equal(search.found, 1);
            assert_int_equal(search.others, 0);
        }
        assert_int_equal(sl_process_kill(process, SIGKILL), 0);
        sl_process_free(process);
    }
    sl_loop_free(loop);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_each_finds_a_process_as_soon_as_it_is_started),
};

int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], SL_ROLE_GUARDIAN) == 0) {
        /* Not when the test was killed, either. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0) {
            pause();
        }
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
