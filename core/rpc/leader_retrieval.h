#pragma once
/*
 * Leader retrieval: the state manager's word on who leads, as what links and roles take: an address
 * and a token.
 *
 *     state store --leader listener--> retrieval --(address, token)--> leader link
 *
 * Real changes only are told, in the order in which the store shows them. While the store has no
 * contact the last leader stands. A registration that was answered "stale", or whose leader turns
 * out to be another, looks again: the store is read anew and its word told even if it is the same.
 *
 * One retrieval follows one path; a set of them follows the leaders of topologies, for roles that
 * begin and stop to watch topologies as slots come and go.
 */

#include "base/map.h"
#include "loop/loop.h"
#include "state/state.h"

enum {
    /* Pauses before the leader is looked up again, the second one twice as long as the first, up to
     * the longest: a new leader may need a moment before it answers, an old one may stand in the
     * store for some time. */
    SL_LEADER_RELOOK_FIRST_MS = 20,
    SL_LEADER_RELOOK_MS = 300,
};

struct sl_leader_retrieval;

/* The leader is at this address in this term; address NULL and token 0: there is none. Borrowed for
 * the call, in which the retrieval may be freed. */
typedef void (*sl_leader_changed_fn)(void *ctx, const char *address, uint64_t token);

/* Follows the election at `path` (state/election.h). The first word comes later, never inside. */
struct sl_leader_retrieval *sl_leader_retrieval_new(struct sl_state_store *store,
                                                    struct sl_loop *loop, const char *path,
                                                    sl_leader_changed_fn fn, void *ctx);
void sl_leader_retrieval_free(struct sl_leader_retrieval *self);

/* Reads the leader anew after a pause and tells it again. */
void sl_leader_retrieval_look_again(struct sl_leader_retrieval *self);

/* A watch on who leads what, given to a role: changes come back through functions of the role. */
struct sl_leader_watch {
    /* Begins to report the leader of a topology. Not 0: can not be watched. */
    int (*start)(void *ctx, const char *topology);
    void (*stop)(void *ctx, const char *topology);
    void *ctx;
};

/* As sl_leader_changed_fn for a topology, which is borrowed too. */
typedef void (*sl_topology_leader_fn)(void *ctx, const char *topology, const char *address,
                                      uint64_t token);

/* In the memory of its owner, which must not move. */
struct sl_topology_leaders {
    struct sl_state_store *store;
    struct sl_loop *loop;
    /* Where elections are: "/leaders/topology". */
    const char *folder;
    sl_topology_leader_fn fn;
    void *ctx;
    /* topology -> a watched topology. */
    struct sl_map_bytes topologies;
};

void sl_topology_leaders_create(struct sl_topology_leaders *self, struct sl_state_store *store,
                                struct sl_loop *loop, const char *folder, sl_topology_leader_fn fn,
                                void *ctx);

/* Stops all watches; nothing is told any more. */
void sl_topology_leaders_destroy(struct sl_topology_leaders *self);

/* The seam that a role takes. Its start gives SL_EUNAVAIL when the store can not work any more, and
 * SL_EEXIST for a topology that is watched. */
struct sl_leader_watch sl_topology_leaders_watch(struct sl_topology_leaders *self);

/* sl_leader_retrieval_look_again for one of them; nothing for a topology that is not watched. */
void sl_topology_leaders_look_again(struct sl_topology_leaders *self, const char *topology);
