#pragma once
/*
 * The control part of a topology master: its link to the resource manager, the slot pool, and the
 * supervisors and workers that registered with it. Its endpoints are fenced; their token is the
 * term of the topology master.
 *
 * A supervisor or worker is known by its name and by the id drawn at its process' start: the same
 * process is simply welcome again, another one means that the first is gone, and what it had is
 * given up before the newcomer is registered.
 */

#include "cluster/peer.h"
#include "cluster/slot_pool.h"
#include "cluster/supervisor_messages.h"
#include "rpc/connections.h"

struct sl_master_slots;

struct sl_master_slots_options {
    struct sl_rpc *rpc;
    /* Borrowed. token is the term's, not 0. */
    const char *topology;
    const char *address;
    const char *resource;
    uint64_t process;
    uint64_t token;
    struct sl_registration_config registration;
    struct sl_heartbeat_config heartbeat;
    uint64_t slot_request_timeout_ms;
    uint64_t slot_idle_timeout_ms;
    /* The known resource manager is of an old term. May be NULL. */
    void (*on_stale_leader)(void *ctx);
    void (*on_fatal)(void *ctx, const char *reason);
    /* Of slot requests, as in slot_pool.h. */
    void (*on_slot)(void *ctx, uint64_t request, uint64_t allocation, const char *supervisor,
                    uint32_t port);
    void (*on_slot_failed)(void *ctx, uint64_t request, enum sl_slot_failure kind,
                           const char *reason);
    void (*on_slot_lost)(void *ctx, uint64_t request, uint64_t allocation, const char *cause);
    /* Is a slot that is offered of any use? NULL: all are. Others go back at once. */
    bool (*is_wanted)(void *ctx, const char *supervisor, uint32_t port);
    /* A supervisor tells of the process in a slot; borrowed for the call. May be NULL. */
    void (*on_worker_state)(void *ctx, const struct sl_slot_worker *state);
    /* A worker registered (its message is borrowed for the call), or is lost. NULL: workers
     * register elsewhere. */
    void (*on_worker)(void *ctx, const struct sl_register_peer *worker);
    void (*on_worker_lost)(void *ctx, const char *worker, const char *cause);
    void *ctx;
};

/* Begins the term. SL_EINVAL, SL_EEXIST. */
int sl_master_slots_new(const struct sl_master_slots_options *options,
                        struct sl_master_slots **master);

/* Ends it: the token goes first, then supervisors and the resource manager are told. Slots are not
 * freed: supervisors offer them to the next term. */
void sl_master_slots_free(struct sl_master_slots *master);

/* The topology ends for good: all slots are freed. Free the object then. */
void sl_master_slots_close(struct sl_master_slots *master, const char *cause);

/* The leading resource manager, NULL for none. */
void sl_master_slots_rm_leader(struct sl_master_slots *master, const char *address, uint64_t token);

/* Slot requests, as in slot_pool.h. */
void sl_master_slots_request(struct sl_master_slots *master, uint64_t request,
                             const struct sl_slot_wish *wish);
void sl_master_slots_release(struct sl_master_slots *master, uint64_t request, const char *cause);

/* The request is not needed any more, nor is its slot: the supervisor gets it back at once. */
void sl_master_slots_give_back(struct sl_master_slots *master, uint64_t request, const char *cause);

/* The supervisor's endpoint, borrowed for the turn; NULL when it is not registered here. */
struct sl_rpc_gateway *sl_master_slots_supervisor(const struct sl_master_slots *master,
                                                  const char *supervisor);

/* The pool, to look at. */
struct sl_slot_pool *sl_master_slots_pool(struct sl_master_slots *master);

size_t sl_master_slots_supervisor_count(const struct sl_master_slots *master);
size_t sl_master_slots_worker_count(const struct sl_master_slots *master);
bool sl_master_slots_is_registered(const struct sl_master_slots *master);
