#pragma once
/*
 * The local launcher: one child process for each container. A process that ends by itself is
 * started again, the first time after 100 ms and then ever later; its output goes to a log file.
 * Processes that an earlier topology master started are taken over.
 */

#include "cluster/launcher.h"
#include "loop/loop.h"

enum {
    /* Between a failure and the first restart. */
    SL_LAUNCHER_BACKOFF_MS = 100,
    SL_LAUNCHER_BACKOFF_MAX_MS = 10000,
    /* A process that ran for so long may fail again like the first time. */
    SL_LAUNCHER_RESET_MS = 10000,
    /* Between SIGTERM and SIGKILL. */
    SL_LAUNCHER_GRACE_MS = 5000,
};

struct sl_launcher_local;

struct sl_launcher_local_options {
    struct sl_loop *loop;
    /* Path of the streamlua program. */
    const char *program;
    const char *state_url;
    const char *topology;
    /* Where container-N.log goes; made when missing. */
    const char *log_dir;
};

/* Everything is copied. */
struct sl_launcher_local *sl_launcher_local_new(const struct sl_launcher_local_options *options);

/* Processes run on. */
void sl_launcher_local_free(struct sl_launcher_local *launcher);

/* The seam for the topology master. */
struct sl_launcher sl_launcher_local_seam(struct sl_launcher_local *launcher);
