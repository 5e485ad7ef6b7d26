#pragma once
/*
 * The processes of a local topology, which need no daemon: a guardian, whose child is the topology
 * master, whose children are the workers.
 *
 *     guardian --starts anew, at once--> topology master --starts anew--> worker, worker, ...
 *        ^------------- starts anew, when it dies -------------'
 *
 * Each is watched by another one, and all of them go when the topology is killed. Both functions
 * run until then, on a loop of their own. A guardian holds a lock on guardian.lock in the folder of
 * logs while it lives: there is one.
 *
 * A topology master in a cluster with supervisors is started anew by its supervisor, and its
 * workers by theirs.
 */

#include "cluster/roles.h"

struct sl_settings;

enum {
    SL_GUARDIAN_BACKOFF_MS = 50,
    SL_GUARDIAN_BACKOFF_MAX_MS = 1000,
    SL_GUARDIAN_RESET_MS = 10000,
    /* Exit code of a topology master that is to be started anew. */
    SL_ROLE_AGAIN = 75,
};

/* Return the exit code of the process. Settings NULL means all defaults. */
int sl_guardian_run(const struct sl_role_options *options, const struct sl_settings *settings);
int sl_topology_master_run(const struct sl_role_options *options,
                           const struct sl_settings *settings);

/* The same with a launcher that another thread serves; it is closed at the end. */
struct sl_launcher_asked;
int sl_topology_master_run_asked(const struct sl_role_options *options,
                                 const struct sl_settings *settings,
                                 struct sl_launcher_asked *launcher);

/*
 * Starts a guardian that outlives the caller; its output goes to the folder of logs. Settings reach
 * it, and what it starts, by the environment: env is a NULL-terminated list of "NAME=value" that
 * replaces it, or NULL. Returns 0 with its process id.
 */
struct sl_loop;
int sl_guardian_start(struct sl_loop *loop, const struct sl_role_options *options,
                      const char *const *env, int64_t *pid);

/*
 * Starts a guardian when there is none: the last one and the topology master have ended at the same
 * time. Any number of processes may do so, one guardian stays.
 */
int sl_guardian_rescue(struct sl_loop *loop, const struct sl_role_options *options);
