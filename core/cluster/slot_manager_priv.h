#pragma once
/* What slot_manager.c (slots and requests) and slot_manager_supply.c (supervisors that are started
 * and released) share. */

#include "cluster/slot_manager.h"

struct sl__sm_request;

struct sl__sm_supervisor {
    uint64_t instance;
    char *name;
    struct sl_list slots;
    size_t slot_count;
    size_t free_count;
    /* A new number for every period in which no slot was used; 0 while one is. */
    uint64_t idle_period;
    uint64_t idle_since_ms;
    bool is_being_released;
};

struct sl__sm_slot {
    struct sl__sm_supervisor *supervisor;
    struct sl_list_node supervisor_node;
    struct sl_list_node free_node;
    uint32_t port;
    struct sl_profile profile;
    enum sl_slot_state state;
    /* PENDING: who it is for, and the call that asks. */
    struct sl__sm_request *request;
    uint64_t call;
    /* ALLOCATED. */
    uint64_t allocation;
    char *topology;
};

/* A slot of a supervisor that was started and has not registered. */
struct sl__sm_starting {
    struct sl_slot_manager *manager;
    struct sl_list_node node;
    struct sl__sm_request *request;
    struct sl_timer timer;
};

struct sl__sm_request {
    struct sl_slot_manager *manager;
    struct sl_list_node unserved_node;
    struct sl_slot_request message;
    char *topology;
    char *master_address;
    char *wanted;
    struct sl__sm_slot *slot;
    struct sl__sm_starting *starting;
    struct sl_timer timer;
    /* After an error the request pauses: no slot is given to it meanwhile, so that a supervisor
     * which always refuses is not asked in a tight loop. */
    struct sl_timer retry;
    uint64_t retry_ms;
};

struct sl__sm_supervisor *sl__sm_find_supervisor(const struct sl_slot_manager *manager,
                                                 uint64_t instance);

/* Gives a slot that is in no list to a request, and asks the supervisor for it. */
void sl__sm_allocate(struct sl_slot_manager *manager, struct sl__sm_slot *slot,
                     struct sl__sm_request *request);

/* Gives a slot that is in no list to the oldest request that it fits, or to the free ones. */
void sl__sm_offer_around(struct sl_slot_manager *manager, struct sl__sm_slot *slot);

/* Looks for a slot; a request that nothing can serve fails. */
void sl__sm_request_or_fail(struct sl_slot_manager *manager, struct sl__sm_request *request);

/* slot_manager_supply.c */
void sl__sm_forget_starting(struct sl_slot_manager *manager, struct sl__sm_starting *starting);

/* Means a starting slot for a request that names none; starts a supervisor if need be. */
bool sl__sm_assign_starting(struct sl_slot_manager *manager, struct sl__sm_request *request);

/* A free slot that is just like one that was awaited takes its place; false: there is none. */
bool sl__sm_take_starting(struct sl_slot_manager *manager, struct sl__sm_slot *slot);

/* Would these slots, less those that were awaited, be too many? */
bool sl__sm_is_above_cap(const struct sl_slot_manager *manager, const struct sl_slot_list *report);

/* Lets a supervisor go, where that can be done. */
void sl__sm_release(struct sl_slot_manager *manager, uint64_t instance, const char *cause);
