#pragma once
/*
 * What a master makes of a topology and the present cluster: a plan whose containers and topology
 * master have slots. Pure: a snapshot in, a plan out, so it may run on any thread.
 *
 *     template + tasks of a plan + supervisors + what runs -> scheduling request -> assignment
 *         -> plan: each worker of the assignment is a container
 *
 * Containers keep their id as long as they keep their slot; in mode monitor the new workers go on
 * under the ids of the dead ones. All others get ids that were never in use.
 */

#include "base/arena.h"
#include "cluster/master_messages.h"

/* A supervisor that is alive, with ports that other topologies hold. */
struct sl_master_node {
    const char *id;
    const char *host;
    const uint32_t *ports;
    size_t port_count;
    const uint32_t *used;
    size_t used_count;
    /* Not above 0: not stated. */
    double cpu_cores;
    double ram_bytes;
};

struct sl_master_wish {
    const struct sl_schedule_template *schedule;
    /* enum sl_sched_mode. */
    int32_t mode;
    /* Tasks and key groups, and for the scheduler `packed` the containers; slots do not count. */
    const struct sl_stored_plan *proposed;
    /* What runs. NULL in mode new. */
    const struct sl_stored_plan *current;
    /* Mode new: what ran under this name before, or NULL. */
    const struct sl_stored_plan *backup;
    const struct sl_master_node *nodes;
    size_t node_count;
    /* Containers of `current` that are dead, and those that run on without their supervisor; sorted
     * or not. */
    const int32_t *dead;
    size_t dead_count;
    const int32_t *unstopped;
    size_t unstopped_count;
    bool is_master_dead;
};

/*
 * Makes the plan; everything lies in the arena, or is borrowed from the wish. Its version is that
 * of `proposed` in mode new, else the one after that of `current`. SL_EUNSATISFIABLE (with names
 * and numbers), SL_EINVAL (plan and template do not fit), SL_ECONFLICT (nothing to do).
 */
int sl_master_assign(const struct sl_master_wish *wish, struct sl_arena *arena,
                     struct sl_stored_plan *plan);

/* When the tasks of a plan were assigned to their slots: as in `starts` for those that had the same
 * slot in `before` (which may be NULL), else now. One for each task; in the arena. */
struct sl_master_start *sl_master_start_times(const struct sl_stored_plan *plan,
                                              const struct sl_stored_plan *before,
                                              const struct sl_master_start *starts,
                                              size_t start_count, int64_t now_ms,
                                              struct sl_arena *arena);
