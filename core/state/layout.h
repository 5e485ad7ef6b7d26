#pragma once
/*
 * Where things are kept (docs/zookeeper.md explains each). Paths are below the store's root. Names
 * of topologies follow API.md's rule for names, so they are components of paths as they are.
 *
 *     /topologies/NAME          definition                       submitter, once
 *     /plans/NAME               packing plan; the only truth     submitter, update (under the lock)
 *     /physicalplans/NAME       physical plan                    topology master
 *     /executionstates/NAME     state, times, who submitted      submitter, scheduler
 *     /schedulers/NAME          scheduler's endpoint             scheduler   (ephemeral)
 *     /topologymasters/NAME     topology master's address        topology master (ephemeral)
 *     /locks/NAME               the update lock                  update      (ephemeral children)
 *     /schedulings/NAME         how it is scheduled; its kill    master
 *     /backups/NAME             last assignment, for its return  master
 *     /packages/NAME            code: script and modules         submitter, once
 *     /supervisors/ID           a supervisor's resources         supervisor  (ephemeral)
 *     /leaders/master           election of the master           masters     (ephemeral children)
 *     /leaders/topology/NAME    election of a topology's master  topology masters
 *     /chunks/...               pieces of large values           the store itself
 */

#include <stdio.h>

#include "state/path.h"

enum sl_layout_part {
    SL_LAYOUT_TOPOLOGY,
    SL_LAYOUT_PLAN,
    SL_LAYOUT_PHYSICAL_PLAN,
    SL_LAYOUT_EXECUTION_STATE,
    SL_LAYOUT_SCHEDULER,
    SL_LAYOUT_TOPOLOGY_MASTER,
    SL_LAYOUT_LOCK,
    SL_LAYOUT_BACKUP,
    SL_LAYOUT_SUPERVISOR,
    SL_LAYOUT_PACKAGE,
    SL_LAYOUT_TOPOLOGY_LEADER,
    SL_LAYOUT_SCHEDULING,
    /* How many there are. */
    SL_LAYOUT_PARTS,
};

/* Where the masters elect their leader. */
#define SL_LAYOUT_MASTER_LEADER "/leaders/master"

/* The folder of a part: "/plans". */
static inline const char *
sl_layout_folder(enum sl_layout_part part)
{
    static const char *const folders[SL_LAYOUT_PARTS] = {
        "/topologies",       "/plans",       "/physicalplans", "/executionstates", "/schedulers",
        "/topologymasters",  "/locks",       "/backups",       "/supervisors",     "/packages",
        "/leaders/topology", "/schedulings",
    };
    return folders[part];
}

/* Writes "/plans/NAME"; dst has SL_STATE_PATH_MAX + 1 bytes. Returns dst. */
static inline const char *
sl_layout_path(char *dst, enum sl_layout_part part, const char *name)
{
    snprintf(dst, SL_STATE_PATH_MAX + 1, "%s/%s", sl_layout_folder(part), name);
    return dst;
}
