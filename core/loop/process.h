#pragma once
/*
 * Child processes and signals of a loop. A child is started with an argument vector (there is no
 * shell anywhere), in a process group of its own, without any descriptor of ours but those named
 * for its input and output.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "loop/loop.h"

struct sl_process;
struct sl_signal;

struct sl_process_exit {
    /* Exit code, or -1 when a signal ended it or nobody knows. */
    int code;
    /* The signal, or 0. */
    int signal;
};

struct sl_process_options {
    /* Path of the program; NULL looks argv[0] up in PATH. */
    const char *file;
    /* NULL-terminated. */
    const char *const *argv;
    /* NULL-terminated "NAME=value" list that replaces the environment; NULL inherits it. */
    const char *const *env;
    /* Working folder, or NULL. */
    const char *cwd;
    /* Descriptors that become 0, 1 and 2; -1 is /dev/null. They stay the caller's. */
    int stdio[3];
    void (*on_exit)(void *ctx, const struct sl_process_exit *exit);
    void *ctx;
};

/*
 * Starts a child. SL_ENOTFOUND when there is no such program, SL_ESYS for another reason (with the
 * errno of exec); then there is no child and on_exit is not called.
 */
int sl_process_spawn(struct sl_loop *loop, const struct sl_process_options *options,
                     struct sl_process **process);

/* The process id, also that of its group. */
int64_t sl_process_pid(const struct sl_process *process);

/* True until on_exit was called. */
bool sl_process_is_running(const struct sl_process *process);

/* Sends a signal to the whole group of the child. SL_ENOTFOUND when it has ended. */
int sl_process_kill(struct sl_process *process, int number);

/*
 * Forgets the child: on_exit is not called any more and the handle is gone; the process itself runs
 * on (and is reaped when it ends). Allowed in on_exit.
 */
void sl_process_free(struct sl_process *process);

/* Calls fn(ctx, number) on the loop for every signal of this number. SL_EIO when libuv refuses. */
int sl_signal_open(struct sl_loop *loop, int number, void (*fn)(void *ctx, int number), void *ctx,
                   struct sl_signal **watch);
void sl_signal_close(struct sl_signal *watch);
