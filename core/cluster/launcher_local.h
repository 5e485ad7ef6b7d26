#pragma once
/*
 * The local launcher: one child process for each container (kept_process.h), which is never given
 * up. Processes that an earlier topology master started are taken over.
 */

#include "cluster/launcher.h"
#include "loop/loop.h"

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
