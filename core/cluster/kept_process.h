#pragma once
/*
 * A process that is kept running: it is started again whenever it ends by itself, each time a
 * little later, until it is told to stop or has failed too often in a row. A process that an
 * earlier owner started can be taken over. Its output goes to a log file.
 *
 *     --start--> RUNNING --it ends--> WAITING --back-off--> RUNNING ...
 *                   |                    '--too many failures--> given up
 *                   '--stop: SIGTERM, SIGKILL after a grace--> stopped
 */

#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"

enum {
    /* Between a failure and the first restart. */
    SL_KEPT_BACKOFF_MS = 100,
    SL_KEPT_BACKOFF_MAX_MS = 10000,
    /* A process that ran for so long may fail again like the first time. */
    SL_KEPT_RESET_MS = 10000,
    /* Between SIGTERM and SIGKILL. */
    SL_KEPT_GRACE_MS = 5000,
};

struct sl_kept_process;

/* How processes that are no children are watched and ended; tests have their own. */
struct sl_adopter {
    /* Calls fn(arg) once when the process has ended. SL_ENOTFOUND when it has already. */
    int (*watch)(void *ctx, struct sl_loop *loop, int64_t pid, sl_loop_fn fn, void *arg,
                 void **watch);
    void (*unwatch)(void *ctx, void *watch);
    /* Sends a signal to the group of the process. */
    void (*kill)(void *ctx, int64_t pid, int number);
    void *ctx;
};

/* The real one. */
const struct sl_adopter *sl_adopter_system(void);

/* Told on the loop. All may free the process but on_started; all may be NULL but on_stopped. */
struct sl_kept_listener {
    /* A process was started (not: adopted). */
    void (*on_started)(void *ctx);
    /* It ended without being asked to, or could not be started, and is started again. The text says
     * how, and what it wrote at last: "exit code 7: no such file". */
    void (*on_ended)(void *ctx, const char *text);
    /* It failed too often in a row and is not started again. */
    void (*on_given_up)(void *ctx, const char *text);
    /* It has ended as it was told to, or by itself with exit code 0 where that means the end. Never
     * called inside sl_kept_process_stop. */
    void (*on_stopped)(void *ctx);
    void *ctx;
};

struct sl_kept_process_options {
    struct sl_loop *loop;
    /* Path of the program; NULL-terminated arguments. Copied. */
    const char *program;
    const char *const *argv;
    /* Working folder, or NULL. */
    const char *cwd;
    /* File that its output is appended to. It is dropped when that is not possible, since a full
     * disk must not stop a topology. */
    const char *log;
    /* For messages: "container 3". */
    const char *label;
    /* Failures in a row after which it is given up; 0: never. */
    uint32_t failures_max;
    /* Its own exit with code 0 is the end of it. */
    bool ends_with_zero;
    /* How often it was restarted before it was taken over. */
    uint32_t restarts;
    /* NULL: the real one. */
    const struct sl_adopter *adopter;
    struct sl_kept_listener listener;
};

/* Nothing runs yet. Call start or adopt next. */
struct sl_kept_process *sl_kept_process_new(const struct sl_kept_process_options *options);

/* The process runs on. NULL is fine. */
void sl_kept_process_free(struct sl_kept_process *self);

/* Starts it. A start that fails is tried again like a process that failed. */
void sl_kept_process_start(struct sl_kept_process *self);

/* Takes over a process. SL_ENOTFOUND when it has ended; start it then. */
int sl_kept_process_adopt(struct sl_kept_process *self, int64_t pid);

/* Ends the process and starts it anew at once. */
void sl_kept_process_restart(struct sl_kept_process *self);

/* Ends it for good; on_stopped follows. Again: nothing. */
void sl_kept_process_stop(struct sl_kept_process *self);

/* The process id, 0 while there is none. */
int64_t sl_kept_process_pid(const struct sl_kept_process *self);
uint32_t sl_kept_process_restarts(const struct sl_kept_process *self);
bool sl_kept_process_is_stopping(const struct sl_kept_process *self);

/* Makes a folder with those above it; SL_ESYS. */
int sl_make_folders(const char *path);
