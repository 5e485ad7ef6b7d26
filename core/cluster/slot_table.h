#pragma once
/*
 * The slots of one supervisor: the truth about who holds what.
 *
 *     free --allocate--> ALLOCATED (timer on) --the topology master accepts--> ACTIVE (timer off)
 *     ACTIVE --topology master lost--> ALLOCATED (timer on)
 *     any --free--> RELEASING while tasks run --the last one left--> free
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/text.h"
#include "loop/loop.h"
#include "rpc/messages.h"

enum {
    SL_SLOT_TABLE_TIMEOUT_MS = 10000,
    SL_SLOT_TABLE_MAX = 1024,
};

enum sl_held_slot_state {
    SL_HELD_FREE,
    SL_HELD_ALLOCATED,
    SL_HELD_ACTIVE,
    SL_HELD_RELEASING,
};

struct sl_held_slot {
    uint32_t port;
    enum sl_held_slot_state state;
    struct sl_profile profile;
    uint64_t allocation;
    char topology[SL_NAME_MAX + 1];
    /* Processes and tasks that run in it. */
    uint32_t tasks;
    struct sl_timer timer;
    struct sl_slot_table *table;
};

struct sl_slot_table_ops {
    /* The slot was not activated in time; the ticket tells a firing that came late. */
    void (*on_timeout)(void *ctx, uint64_t allocation, uint64_t ticket);
    /* The slot is free again. */
    void (*on_freed)(void *ctx, const char *topology, uint64_t allocation, uint32_t port,
                     const char *cause);
    /* What runs in the slot has to end: sl_slot_table_remove_task tells when it has. */
    void (*stop_tasks)(void *ctx, uint64_t allocation, uint32_t port, const char *cause);
    void *ctx;
};

struct sl_slot_table {
    struct sl_loop *loop;
    struct sl_slot_table_ops ops;
    uint64_t timeout_ms;
    /* Of a slot in which tasks run: how long they may be without a topology master. */
    uint64_t orphan_timeout_ms;
    struct sl_held_slot *slots;
    size_t count;
    /* allocation -> slot. */
    struct sl_map_u64 by_allocation;
};

/* `ports` become slots, all with one profile. The orphan time-out is timeout_ms at first. */
void sl_slot_table_create(struct sl_slot_table *table, struct sl_loop *loop, const uint32_t *ports,
                          size_t count, const struct sl_profile *profile, uint64_t timeout_ms,
                          const struct sl_slot_table_ops *ops);
void sl_slot_table_destroy(struct sl_slot_table *table);

/*
 * Reserves a slot. 0: reserved, or it was for the same (port, topology, allocation) already.
 * SL_ENOTFOUND: no such port. SL_EEXIST: the slot is taken by *occupant. SL_ECONFLICT: the
 * allocation is on another port. SL_ERANGE: the profile does not fit.
 */
int sl_slot_table_allocate(struct sl_slot_table *table, uint32_t port, const char *topology,
                           uint64_t allocation, const struct sl_profile *profile,
                           const struct sl_held_slot **occupant);

/* ALLOCATED -> ACTIVE; true also when it is ACTIVE already. */
bool sl_slot_table_activate(struct sl_slot_table *table, uint64_t allocation);

/* ACTIVE -> ALLOCATED for all slots of the topology. */
void sl_slot_table_deactivate(struct sl_slot_table *table, const char *topology);

/* Frees a slot, or lets it go when its tasks have ended. False for an unknown allocation. */
bool sl_slot_table_free(struct sl_slot_table *table, uint64_t allocation, const char *cause);

/* A firing of on_timeout counts only while its ticket is the slot's. */
bool sl_slot_table_is_timeout(const struct sl_slot_table *table, uint64_t allocation,
                              uint64_t ticket);

/* Tasks of a slot; adding one activates an ALLOCATED slot. False unless it is ACTIVE then. */
bool sl_slot_table_add_task(struct sl_slot_table *table, uint64_t allocation);
void sl_slot_table_remove_task(struct sl_slot_table *table, uint64_t allocation);

const struct sl_held_slot *sl_slot_table_find(const struct sl_slot_table *table,
                                              uint64_t allocation);

/* Slots of a topology in a state (-1: in any but free). */
size_t sl_slot_table_count(const struct sl_slot_table *table, const char *topology, int state);

/* Appends all slots (topology NULL) or those of a topology in a state (-1: any but free) to slots;
 * returns how many. The texts live as long as the slots stay as they are. */
size_t sl_slot_table_list(const struct sl_slot_table *table, const char *topology, int state,
                          struct sl_slot_status *slots, size_t max);
