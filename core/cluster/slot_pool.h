#pragma once
/*
 * The slots of one topology, kept by its topology master: requests that wait, slots that
 * supervisors offered, and who has which.
 *
 *     request --no resource manager--> WAITING --it connects--> PENDING(allocation) --offer-->
 * SERVED
 *
 * A request always asks for a new slot. An offer serves the oldest request that it fits, pending
 * ones first; the allocation of a request that was served by another's slot goes over to that other
 * request, or is cancelled at the resource manager when nobody owns it. A request that names a slot
 * (supervisor, port) is served by that slot only, and its own allocation serves nobody else.
 *
 * Pure but for timers: what has to be said goes out through ops. Ops are called when the pool is
 * consistent, and may call it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "loop/loop.h"
#include "rpc/messages.h"

enum {
    SL_SLOT_REQUEST_MS = 300000,
    SL_SLOT_IDLE_MS = 50000,
};

/* Why a request ended without a slot. */
enum sl_slot_failure {
    SL_SLOT_FAILED,
    /* No slot of the cluster could ever satisfy it: batch requests end by this too. */
    SL_SLOT_UNFULFILLABLE,
    SL_SLOT_TIMED_OUT,
    SL_SLOT_RELEASED,
};

struct sl_slot_pool_ops {
    /* To the resource manager, while connected; a refusal comes back as
     * sl_slot_pool_request_refused. */
    void (*request_slot)(void *ctx, const struct sl_slot_request *request);
    void (*cancel_slot)(void *ctx, uint64_t allocation);
    /* To a supervisor. That it fails changes nothing: heartbeats repair it. */
    void (*free_slot)(void *ctx, const char *supervisor, uint64_t allocation, const char *cause);
    /* The request has a slot now. */
    void (*on_served)(void *ctx, uint64_t request, uint64_t allocation, const char *supervisor,
                      uint32_t port);
    /* The request has none and is gone. */
    void (*on_failed)(void *ctx, uint64_t request, enum sl_slot_failure kind, const char *reason);
    /* The slot of a served request is gone, and with it what ran there. */
    void (*on_lost)(void *ctx, uint64_t request, uint64_t allocation, const char *cause);
    void *ctx;
};

struct sl_slot_pool_config {
    const char *topology;
    const char *master_address;
    uint64_t token;
    /* Of a request unless it has its own; also how long a batch request stays unfulfillable. */
    uint64_t request_timeout_ms;
    /* An unused slot that is older goes back to its supervisor. */
    uint64_t idle_timeout_ms;
};

/* What a request asks for. */
struct sl_slot_wish {
    struct sl_profile profile;
    /* "" or NULL for any. */
    const char *supervisor;
    uint32_t port;
    /* 0 picks the config's. Batch requests have no time limit of their own. */
    uint64_t timeout_ms;
    bool is_batch;
};

struct sl_slot_pool {
    struct sl_loop *loop;
    struct sl_slot_pool_config config;
    struct sl_slot_pool_ops ops;
    bool is_connected;
    /* Requests in the order in which they came. */
    struct sl_list pending;
    struct sl_list waiting;
    size_t pending_count;
    size_t waiting_count;
    /* id -> request of either list; allocation -> pending request. */
    struct sl_map_u64 requests;
    struct sl_map_u64 by_allocation;
    /* allocation -> slot; request -> slot. */
    struct sl_map_u64 slots;
    struct sl_map_u64 served;
    /* Slots without a request, the one that was unused longest first. */
    struct sl_list available;
    size_t available_count;
    /* name -> supervisor. */
    struct sl_map_bytes supervisors;
    struct sl_timer check;
};

void sl_slot_pool_create(struct sl_slot_pool *pool, struct sl_loop *loop,
                         const struct sl_slot_pool_config *config,
                         const struct sl_slot_pool_ops *ops);

/* Frees memory only; nothing is said to anybody. */
void sl_slot_pool_destroy(struct sl_slot_pool *pool);

/* The resource manager is there: every waiting request is sent in order, and pending ones again
 * with their allocation ids (which it ignores when it knows them). */
void sl_slot_pool_connect(struct sl_slot_pool *pool);
void sl_slot_pool_disconnect(struct sl_slot_pool *pool);

/* Asks for a new slot under an id of the caller's that no open or served request has. */
void sl_slot_pool_request(struct sl_slot_pool *pool, uint64_t request,
                          const struct sl_slot_wish *wish);

/* The resource manager refused, or could not be asked. Unless it is unfulfillable, batch requests
 * go on waiting. */
void sl_slot_pool_request_refused(struct sl_slot_pool *pool, uint64_t allocation,
                                  bool is_unfulfillable, const char *reason);

/* Serves a request with an available slot; false when there is no such slot. */
bool sl_slot_pool_allocate_available(struct sl_slot_pool *pool, uint64_t request,
                                     uint64_t allocation);

/* The request is not needed any more: a pending one fails ("has been released"), the slot of a
 * served one serves the next or becomes available. Unknown ids are ignored. */
void sl_slot_pool_release(struct sl_slot_pool *pool, uint64_t request, const char *cause);

/* The same, but the slot of a served request goes back to its supervisor at once. */
void sl_slot_pool_give_back(struct sl_slot_pool *pool, uint64_t request, const char *cause);

/* Supervisors whose offers are taken; true when the name was new. */
bool sl_slot_pool_register_supervisor(struct sl_slot_pool *pool, const char *supervisor);

/* The supervisor is lost: its slots are given back and what ran there is lost; pending requests
 * stay. */
void sl_slot_pool_release_supervisor(struct sl_slot_pool *pool, const char *supervisor,
                                     const char *cause);
bool sl_slot_pool_has_supervisor(const struct sl_slot_pool *pool, const char *supervisor);

/* An offer; false refuses it, and the supervisor takes the slot back. */
bool sl_slot_pool_offer(struct sl_slot_pool *pool, const char *supervisor, uint32_t port,
                        uint64_t allocation, const struct sl_profile *profile);

/*
 * The allocation is no more. Returns the supervisor's name when it holds no slot here now (borrowed
 * until it is released), so that it can be disconnected, else NULL.
 */
const char *sl_slot_pool_fail_allocation(struct sl_slot_pool *pool, uint64_t allocation,
                                         bool is_unfulfillable, const char *cause);

/* Is the allocation a slot that a supervisor offered? */
bool sl_slot_pool_holds(const struct sl_slot_pool *pool, uint64_t allocation);

/* All slots of a supervisor here, used or not, as (port, allocation) appended to an array of
 * capacity max; returns how many there are. */
size_t sl_slot_pool_report(const struct sl_slot_pool *pool, const char *supervisor,
                           struct sl_slot_status *slots, size_t max);

/* Frees slots that were unused too long and ends batch requests that nothing can serve; the pool
 * calls it by itself at every idle time-out. */
void sl_slot_pool_check(struct sl_slot_pool *pool);

/* The topology master loses its term: pending requests are cancelled, everything is forgotten,
 * slots are not freed (they are offered to the next term), nor are supervisors told. */
void sl_slot_pool_suspend(struct sl_slot_pool *pool);

/* The topology ends: as above, but all slots are freed. */
void sl_slot_pool_close(struct sl_slot_pool *pool, const char *cause);

/* Slots in use. */
size_t sl_slot_pool_allocated_count(const struct sl_slot_pool *pool);

/* Share of a supervisor's slots here that are in use; 0 without slots. */
double sl_slot_pool_utilization(const struct sl_slot_pool *pool, const char *supervisor);

/* The allocation of a pending request, 0 when it is not pending. */
uint64_t sl_slot_pool_allocation_of(const struct sl_slot_pool *pool, uint64_t request);

/* "need 23, have 12, free 3": open and served requests, slots here, unused ones. Returns dst. */
char *sl_slot_pool_shortage(const struct sl_slot_pool *pool, char *dst, size_t size);
