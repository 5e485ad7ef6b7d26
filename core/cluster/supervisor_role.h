#pragma once
/*
 * The process of a supervisor, on a loop of its own.
 *
 * SIGTERM ends the supervisor and leaves what it runs running: the next process takes it over.
 * SIGINT (Ctrl-C at a terminal) ends what it runs, and then itself; a second one does not wait.
 */

#include "cluster/roles.h"

struct sl_settings;

/* Returns the exit code of the process, or an error as sl_abi_role_supervisor. Settings NULL means
 * all defaults. */
int sl_supervisor_run(const struct sl_supervisor_role_options *options,
                      const struct sl_settings *settings);
