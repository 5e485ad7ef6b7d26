#pragma once
/*
 * The slots of all supervisors, kept by the resource manager: one request per allocation.
 *
 *     slot      FREE --request sent to the supervisor--> PENDING --acknowledged--> ALLOCATED
 *
 * The supervisor is the truth: a slot report wins over what is believed here. An acknowledgement
 * says that the supervisor has reserved the slot; that the topology master got it is said by the
 * supervisor's offer, not here.
 *
 * A request that names a slot (supervisor, port) gets that slot or is refused: while the supervisor
 * is not registered it waits; when the slot is somebody else's it fails, and a new assignment has
 * to be made.
 *
 * Pure but for timers. Ops are called when the manager is consistent, and may call it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "loop/loop.h"
#include "rpc/messages.h"

enum {
    SL_SLOT_MANAGER_IDLE_MS = 30000,
    SL_SLOT_MANAGER_REQUEST_MS = 300000,
    SL_SLOT_MANAGER_START_MS = 300000,
    /* Pause before a request is tried again after an error: doubled each time, up to the most. */
    SL_SLOT_MANAGER_RETRY_MS = 50,
    SL_SLOT_MANAGER_RETRY_MAX_MS = 5000,
};

enum sl_slot_state {
    SL_SLOT_FREE,
    SL_SLOT_PENDING,
    SL_SLOT_ALLOCATED,
};

/* What a supervisor answered to a slot request. */
enum sl_slot_answer {
    SL_SLOT_ACK,
    /* The slot is taken, by the allocation and topology that are told. */
    SL_SLOT_OCCUPIED,
    /* Refused, unreachable, or no answer in time. */
    SL_SLOT_ERROR,
};

struct sl_slot_manager_ops {
    /* Asks a supervisor to reserve the slot; ends in sl_slot_manager_answered with this call. */
    void (*request_slot)(void *ctx, uint64_t instance, const char *supervisor, uint32_t port,
                         uint64_t call, const struct sl_slot_request *request);
    /* To the topology master: its allocation failed, or its request can not be served. */
    void (*allocation_failed)(void *ctx, const char *topology, uint64_t allocation,
                              bool is_unfulfillable, const char *cause);
    /* Starts another supervisor; not 0: refused. NULL where nobody can. */
    int (*start_supervisor)(void *ctx);
    /* Stops a supervisor that is not needed or too many. NULL where nobody can. */
    void (*release_supervisor)(void *ctx, uint64_t instance, const char *cause);
    /* Asks whether nobody needs it any more; ends in sl_slot_manager_can_be_released. NULL: yes. */
    void (*ask_release)(void *ctx, uint64_t instance, uint64_t idle_period);
    void *ctx;
};

struct sl_slot_manager_config {
    /* Of a supervisor that is started: its slots, all of this profile. */
    uint32_t slots_per_supervisor;
    struct sl_profile slot_profile;
    /* Hard cap of slots; 0 is none. */
    uint32_t max_slots;
    /* Spare supervisors. */
    uint32_t redundant_supervisors;
    /* An idle supervisor is released after this; also the interval of the check. */
    uint64_t idle_timeout_ms;
    uint64_t request_timeout_ms;
    /* A started supervisor that has not registered by then is given up. */
    uint64_t start_timeout_ms;
    /* Requests that nothing could ever serve fail at once. */
    bool is_failing_unfulfillable;
    /* Pick the slot on the least used supervisor. */
    bool is_spreading;
};

struct sl_slot_manager {
    struct sl_loop *loop;
    struct sl_slot_manager_config config;
    struct sl_slot_manager_ops ops;
    bool is_suspended;
    /* instance -> supervisor; name -> supervisor. */
    struct sl_map_u64 supervisors;
    struct sl_map_bytes by_name;
    size_t slot_count;
    struct sl_list free;
    size_t free_count;
    /* Requests in the order in which they came; those without a slot also in `unserved`. */
    struct sl_map_u64 requests;
    struct sl_list unserved;
    /* call -> request. */
    struct sl_map_u64 calls;
    /* allocation -> slot, of slots that are ALLOCATED. */
    struct sl_map_u64 fulfilled;
    /* Slots of supervisors that are starting. */
    struct sl_list starting;
    size_t starting_count;
    struct sl_timer check;
    uint64_t next_call;
    uint64_t next_idle_period;
};

/* The defaults of the reference: 1 slot a supervisor, no cap, 30 s idle, 5 min for requests. */
struct sl_slot_manager_config sl_slot_manager_config_default(void);

void sl_slot_manager_create(struct sl_slot_manager *manager, struct sl_loop *loop,
                            const struct sl_slot_manager_config *config,
                            const struct sl_slot_manager_ops *ops);
void sl_slot_manager_destroy(struct sl_slot_manager *manager);

/* The resource manager loses its term: everything is forgotten, nobody is told. Resume starts with
 * nothing. */
void sl_slot_manager_suspend(struct sl_slot_manager *manager);
void sl_slot_manager_resume(struct sl_slot_manager *manager);

/*
 * A topology master asks for a slot. 1: accepted; 0: the allocation is known already, ignored;
 * SL_EUNSATISFIABLE: nothing could ever serve it; SL_ECONFLICT: the slot it names is taken.
 */
int sl_slot_manager_request(struct sl_slot_manager *manager, const struct sl_slot_request *request);

/* It is not wanted any more; a slot that was pending for it is free again. */
void sl_slot_manager_cancel(struct sl_slot_manager *manager, uint64_t allocation);

/*
 * A supervisor registered, under a new instance, with all its slots. A known instance is only a
 * report (false). False too when the cap would be passed: then it is released.
 */
bool sl_slot_manager_register(struct sl_slot_manager *manager, uint64_t instance,
                              const struct sl_slot_list *report);

/* It is gone: what was pending there is tried elsewhere, what was allocated failed. */
bool sl_slot_manager_unregister(struct sl_slot_manager *manager, uint64_t instance,
                                const char *cause);

/* What the supervisor says of its slots; false for an unknown instance. */
bool sl_slot_manager_report(struct sl_slot_manager *manager, uint64_t instance,
                            const struct sl_slot_list *report);

/* A slot was given back; ignored unless it has that allocation. */
void sl_slot_manager_free_slot(struct sl_slot_manager *manager, uint64_t instance, uint32_t port,
                               uint64_t allocation);

/* How a call of request_slot ended; late answers of calls that do not matter any more are ignored.
 * allocation and topology are those of OCCUPIED. */
void sl_slot_manager_answered(struct sl_slot_manager *manager, uint64_t call,
                              enum sl_slot_answer answer, uint64_t allocation,
                              const char *topology);

/* The answer to ask_release: released if yes and still in the same idle period. */
void sl_slot_manager_can_be_released(struct sl_slot_manager *manager, uint64_t instance,
                                     uint64_t idle_period, bool can_be_released);

/* From now on (the grace period after a start is over) what nothing could serve fails at once. */
void sl_slot_manager_fail_unfulfillable(struct sl_slot_manager *manager, bool is_failing);

/* Looks for idle and missing supervisors; called by itself at every idle time-out. */
void sl_slot_manager_check(struct sl_slot_manager *manager);

/* State of a slot, -1 when there is none; *allocation is set unless NULL. */
int sl_slot_manager_slot_state(const struct sl_slot_manager *manager, const char *supervisor,
                               uint32_t port, uint64_t *allocation);

bool sl_slot_manager_is_pending(const struct sl_slot_manager *manager, uint64_t allocation);

/* Starting slots that wait for a request, and those that are meant for one. */
size_t sl_slot_manager_assigned_starting(const struct sl_slot_manager *manager);

/* Checks what must always hold: free + pending + allocated = all, no allocation twice. Asserts. */
void sl_slot_manager_check_invariants(const struct sl_slot_manager *manager);
