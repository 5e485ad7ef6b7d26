#pragma once
/* The process of a master, in the foreground until it is told to end. */

#include <stdint.h>

struct sl_settings;

struct sl_master_role_options {
    const char *state_url;
    /* "HOST:PORT"; port 0 takes any. */
    const char *listen;
    /* Folder for what it takes in; each master has its own below it. */
    const char *folder;
    /* Of the cluster, or NULL. */
    const char *secret;
    /* Borrowed; NULL for all defaults. */
    const struct sl_settings *settings;
};

/* Returns the exit code of the process, or an SL_E code when it could not begin. */
int sl_master_run(const struct sl_master_role_options *options);
