#pragma once
/*
 * The other supervisors of a host. A port of a host is a slot of one supervisor: of two whose ports
 * overlap the one whose node was made later gives way, so that one stays when both look at once.
 */

#include "cluster/supervisor_messages.h"
#include "rpc/messages.h"
#include "state/state.h"

/* In the memory of its owner. */
struct sl_supervisor_neighbours {
    struct sl_state_store *store;
    /* Of the supervisor that looks; borrowed. */
    struct sl_supervisor_node own;
    /* As that of sl_supervisor_options. */
    uint64_t (*process_start)(int64_t pid);
    /* Called once, never inside: "" or why the supervisor has to give way. */
    void (*done)(void *ctx, const char *conflict);
    void *ctx;
    uint64_t ticket;
    char **names;
    size_t count;
    size_t at;
    uint64_t created_zxid;
    char conflict[SL_REASON_SIZE];
};

/* Looks at all that are there, when the supervisor's own node is; the first five fields are filled
 * in. What can not be read is no conflict. Only when no look is under way. */
void sl_supervisor_neighbours_look(struct sl_supervisor_neighbours *self);

/* Nothing more is told. */
void sl_supervisor_neighbours_stop(struct sl_supervisor_neighbours *self);
