#pragma once
#pragma GCC diagnostic ignored "-Wunused-function"
/* Processes of their own for tests: a child runs a function and tells the test by a pipe. Children
 * are started while no store is open in the test, since threads do not survive fork. */

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

struct child {
    pid_t pid;
    /* What the child says. */
    int from_child;
    /* What it is told. */
    int to_child;
};

/* Starts fn(argument, in, out) in a child, which ends with it. */
static void
child_start(struct child *child, void (*fn)(const char *argument, int in, int out),
            const char *argument)
{
    int up[2];
    int down[2];
    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(down), 0);
    fflush(NULL);
    child->pid = fork();
    assert_true(child->pid >= 0);
    if (child->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(up[0]);
        close(down[1]);
        fn(argument, down[0], up[1]);
        _exit(0);
    }
    close(up[1]);
    close(down[0]);
    child->from_child = up[0];
    child->to_child = down[1];
}

/* Waits for one byte of the child; 0 when it ended instead. */
static char
child_read(const struct child *child)
{
    char byte = 0;
    return read(child->from_child, &byte, 1) == 1 ? byte : 0;
}

static void
child_kill(struct child *child)
{
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    close(child->from_child);
    close(child->to_child);
}

/* Waits for its end and gives its exit code, or -1. */
static int
child_wait(struct child *child)
{
    int status = 0;
    waitpid(child->pid, &status, 0);
    close(child->from_child);
    close(child->to_child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
tell(int fd, char byte)
{
    if (write(fd, &byte, 1) != 1) {
        _exit(99);
    }
}
