#include "cluster/slot_table.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"

void
sl_slot_table_create(struct sl_slot_table *table, struct sl_loop *loop, const uint32_t *ports,
                     size_t count, const struct sl_profile *profile, uint64_t timeout_ms,
                     const struct sl_slot_table_ops *ops)
{
    memset(table, 0, sizeof(*table));
    sl_assert_le(count, SL_SLOT_TABLE_MAX);
    table->loop = loop;
    table->ops = *ops;
    table->timeout_ms = timeout_ms;
    table->orphan_timeout_ms = timeout_ms;
    table->count = count;
    table->slots = sl_calloc(count + 1, sizeof(*table->slots));
    for (size_t i = 0; i < count; i++) {
        table->slots[i].port = ports[i];
        table->slots[i].profile = *profile;
        table->slots[i].table = table;
    }
}

void
sl_slot_table_destroy(struct sl_slot_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        sl_timer_stop(&table->slots[i].timer);
    }
    sl_free(table->slots);
    table->slots = NULL;
    table->count = 0;
    sl_map_u64_destroy(&table->by_allocation);
}

static struct sl_held_slot *
find(const struct sl_slot_table *table, uint64_t allocation)
{
    return sl_map_u64_get_ptr(&table->by_allocation, allocation);
}

const struct sl_held_slot *
sl_slot_table_find(const struct sl_slot_table *table, uint64_t allocation)
{
    return find(table, allocation);
}

static struct sl_held_slot *
find_port(const struct sl_slot_table *table, uint32_t port)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->slots[i].port == port) {
            return &table->slots[i];
        }
    }
    return NULL;
}

static void
timed_out(void *ctx, uint64_t ticket)
{
    struct sl_held_slot *slot = ctx;
    slot->table->ops.on_timeout(slot->table->ops.ctx, slot->allocation, ticket);
}

static void
start_timer(struct sl_held_slot *slot)
{
    const struct sl_slot_table *table = slot->table;
    sl_timer_start(table->loop, &slot->timer,
                   slot->tasks > 0 ? table->orphan_timeout_ms : table->timeout_ms, timed_out, slot);
}

int
sl_slot_table_allocate(struct sl_slot_table *table, uint32_t port, const char *topology,
                       uint64_t allocation, const struct sl_profile *profile,
                       const struct sl_held_slot **occupant)
{
    struct sl_held_slot *slot = find_port(table, port);
    struct sl_held_slot *elsewhere = find(table, allocation);
    *occupant = NULL;
    if (slot == NULL) {
        return sl_err_set(SL_ENOTFOUND, "there is no slot %u here", port);
    }
    if (elsewhere != NULL && elsewhere != slot) {
        return sl_err_set(SL_ECONFLICT, "allocation %llx has slot %u already",
                          (unsigned long long)allocation, elsewhere->port);
    }
    if (slot->state != SL_HELD_FREE) {
        if (slot->allocation == allocation && strcmp(slot->topology, topology) == 0 &&
            slot->state != SL_HELD_RELEASING) {
            return 0;
        }
        *occupant = slot;
        return sl_err_set(SL_EEXIST, "slot %u is taken by %s", port, slot->topology);
    }
    if (!sl_profile_fits(&slot->profile, profile)) {
        return sl_err_set(SL_ERANGE, "slot %u is too small for the request", port);
    }
    slot->state = SL_HELD_ALLOCATED;
    slot->allocation = allocation;
    snprintf(slot->topology, sizeof(slot->topology), "%s", topology);
    sl_map_u64_put_ptr(&table->by_allocation, allocation, slot);
    start_timer(slot);
    return 0;
}

bool
sl_slot_table_activate(struct sl_slot_table *table, uint64_t allocation)
{
    struct sl_held_slot *slot = find(table, allocation);
    if (slot == NULL || slot->state == SL_HELD_RELEASING) {
        return false;
    }
    slot->state = SL_HELD_ACTIVE;
    sl_timer_stop(&slot->timer);
    return true;
}

void
sl_slot_table_deactivate(struct sl_slot_table *table, const char *topology)
{
    for (size_t i = 0; i < table->count; i++) {
        struct sl_held_slot *slot = &table->slots[i];
        if (slot->state == SL_HELD_ACTIVE && strcmp(slot->topology, topology) == 0) {
            slot->state = SL_HELD_ALLOCATED;
            start_timer(slot);
        }
    }
}

static void
let_go(struct sl_slot_table *table, struct sl_held_slot *slot, const char *cause)
{
    char topology[sizeof(slot->topology)];
    uint64_t allocation = slot->allocation;
    memcpy(topology, slot->topology, sizeof(topology));
    sl_map_u64_remove(&table->by_allocation, allocation, NULL);
    sl_timer_stop(&slot->timer);
    slot->state = SL_HELD_FREE;
    slot->allocation = 0;
    slot->topology[0] = '\0';
    table->ops.on_freed(table->ops.ctx, topology, allocation, slot->port, cause);
}

bool
sl_slot_table_free(struct sl_slot_table *table, uint64_t allocation, const char *cause)
{
    struct sl_held_slot *slot = find(table, allocation);
    if (slot == NULL) {
        return false;
    }
    if (slot->state == SL_HELD_RELEASING) {
        return true;
    }
    if (slot->tasks == 0) {
        let_go(table, slot, cause);
        return true;
    }
    slot->state = SL_HELD_RELEASING;
    sl_timer_stop(&slot->timer);
    table->ops.stop_tasks(table->ops.ctx, allocation, slot->port, cause);
    return true;
}

bool
sl_slot_table_is_timeout(const struct sl_slot_table *table, uint64_t allocation, uint64_t ticket)
{
    const struct sl_held_slot *slot = find(table, allocation);
    return slot != NULL && slot->state == SL_HELD_ALLOCATED &&
           sl_timer_is_current(&slot->timer, ticket);
}

bool
sl_slot_table_add_task(struct sl_slot_table *table, uint64_t allocation)
{
    struct sl_held_slot *slot = find(table, allocation);
    /* A start may overtake the acknowledgement of the offer. */
    if (slot == NULL || !sl_slot_table_activate(table, allocation)) {
        return false;
    }
    slot->tasks++;
    return true;
}

void
sl_slot_table_remove_task(struct sl_slot_table *table, uint64_t allocation)
{
    struct sl_held_slot *slot = find(table, allocation);
    if (slot == NULL || slot->tasks == 0) {
        return;
    }
    slot->tasks--;
    if (slot->tasks == 0 && slot->state == SL_HELD_RELEASING) {
        let_go(table, slot, "the last task left");
    }
}

static bool
is_listed(const struct sl_held_slot *slot, const char *topology, int state)
{
    if (topology == NULL) {
        return true;
    }
    return slot->state != SL_HELD_FREE && strcmp(slot->topology, topology) == 0 &&
           (state == -1 || (int)slot->state == state);
}

size_t
sl_slot_table_count(const struct sl_slot_table *table, const char *topology, int state)
{
    return sl_slot_table_list(table, topology, state, NULL, 0);
}

size_t
sl_slot_table_list(const struct sl_slot_table *table, const char *topology, int state,
                   struct sl_slot_status *slots, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct sl_held_slot *slot = &table->slots[i];
        if (!is_listed(slot, topology, state)) {
            continue;
        }
        if (count < max) {
            slots[count] = (struct sl_slot_status){slot->port, slot->profile, slot->topology,
                                                   slot->allocation};
        }
        count++;
    }
    return count;
}
