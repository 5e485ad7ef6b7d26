/* The table of one key group: room for entries, and the slots they get. See state_table_priv.h. */

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "stream/state_table_priv.h"

_Static_assert(sizeof(struct sl_keyed_entry) == 24, "an entry is 24 bytes");

enum {
    CAPACITY_MIN = 8,
    /* A group whose table is emptier than 1/SHRINK_FACTOR shrinks when a key is added. */
    SHRINK_FACTOR = 8,
    SHRINK_CAPACITY_MIN = 64,
};

/* Entries, and behind them their tags. */
static uint64_t
table_size(uint32_t capacity)
{
    return (uint64_t)capacity * (sizeof(struct sl_keyed_entry) + 1) + SL__KEYED_TAG_STEP - 1;
}

uint64_t
sl__keyed_table_bytes(uint32_t capacity)
{
    return capacity > 0 ? sl__keyed_allocation_bytes(table_size(capacity)) : 0;
}

void
sl__keyed_group_set_slot(struct sl_keyed_group *group, uint32_t slot,
                         const struct sl_keyed_entry *entry)
{
    uint8_t tag = 0;
    if (entry != NULL) {
        group->entries[slot] = *entry;
        tag = sl__keyed_hash_tag(entry->hash);
    } else {
        memset(&group->entries[slot], 0, sizeof(*entry));
    }
    sl__keyed_tags(group)[slot] = tag;
    if (slot < SL__KEYED_TAG_STEP - 1) {
        sl__keyed_tags(group)[group->capacity + slot] = tag;
    }
}

uint32_t
sl__keyed_group_free_slot(const struct sl_keyed_group *group, uint32_t hash)
{
    const uint8_t *tags = sl__keyed_tags(group);
    for (uint32_t slot = sl__keyed_home_slot(hash, group->capacity);;
         slot = sl__keyed_next_step(slot, group->capacity)) {
        uint64_t free_marks = ~sl__keyed_tags_at(tags, slot) & SL__KEYED_TAG_TOPS;
        if (free_marks != 0) {
            return sl__keyed_marked_slot(free_marks, slot, group->capacity);
        }
    }
}

/* Moves the entries of a group into a table of another capacity. */
static int
group_resize(struct sl_keyed *self, struct sl_keyed_group *group, uint32_t capacity)
{
    sl_assert_lt(group->count, capacity);
    uint64_t freed = sl__keyed_table_bytes(group->capacity);
    uint64_t added = sl__keyed_table_bytes(capacity);
    int rc = sl__keyed_check_room(self, freed, added);
    if (rc != 0) {
        return rc;
    }
    struct sl_keyed_group grown = {
        .entries = sl_try_calloc(1, table_size(capacity)),
        .count = group->count,
        .capacity = capacity,
    };
    if (grown.entries == NULL) {
        return sl_err_set(SL_ENOMEM, "no memory for %u entries of keyed state", capacity);
    }
    for (uint32_t i = 0; i < group->capacity; i++) {
        if (group->entries[i].key_kind != SL_KEYED_KEY_NONE) {
            sl__keyed_group_set_slot(&grown,
                                     sl__keyed_group_free_slot(&grown, group->entries[i].hash),
                                     &group->entries[i]);
        }
    }
    sl_free(group->entries);
    *group = grown;
    self->bytes = self->bytes - freed + added;
    sl_keyed_forget(self);
    return 0;
}

int
sl__keyed_group_make_room(struct sl_keyed *self, struct sl_keyed_group *group)
{
    uint64_t needed = (uint64_t)group->count + 1;
    if (needed * 5 > (uint64_t)group->capacity * 4) {
        uint64_t capacity = (uint64_t)group->capacity + group->capacity / 2;
        if (capacity < CAPACITY_MIN) {
            capacity = CAPACITY_MIN;
        }
        if (capacity > UINT32_MAX / 2) {
            return sl_err_set(SL_ELIMIT, "a key group holds %u keys", group->count);
        }
        return group_resize(self, group, (uint32_t)capacity);
    }
    if (self->count >= self->reserved && group->capacity >= SHRINK_CAPACITY_MIN &&
        needed * SHRINK_FACTOR < group->capacity) {
        return group_resize(self, group, (uint32_t)(needed * 2 + CAPACITY_MIN));
    }
    return 0;
}

int
sl_keyed_reserve(struct sl_keyed *self, uint64_t count)
{
    /* At most 4/5 full, with a little more for groups that get more than their share. */
    uint64_t share = count / self->key_groups;
    uint64_t capacity = share + share / 4 + share / 8 + CAPACITY_MIN;
    if (capacity > UINT32_MAX / 2) {
        return sl_err_set(SL_ELIMIT, "a key group can not hold %llu keys",
                          (unsigned long long)share);
    }
    int rc = 0;
    self->reserved = count;
    for (uint32_t i = 0; rc == 0 && i < self->key_groups; i++) {
        if (self->groups[i].capacity < capacity) {
            rc = group_resize(self, &self->groups[i], (uint32_t)capacity);
        }
    }
    return rc;
}

/*
 * Frees a slot and closes the gap: an entry further on moves back when the gap lies between its
 * home and its place, so no entry is ever cut off from its home and no tombstone is needed.
 */
void
sl__keyed_group_remove_slot(struct sl_keyed_group *group, uint32_t gap)
{
    uint32_t capacity = group->capacity;
    for (uint32_t slot = gap;;) {
        slot = slot + 1 == capacity ? 0 : slot + 1;
        const struct sl_keyed_entry *entry = &group->entries[slot];
        if (entry->key_kind == SL_KEYED_KEY_NONE) {
            break;
        }
        uint32_t home = sl__keyed_home_slot(entry->hash, capacity);
        uint32_t from_home = slot >= home ? slot - home : slot + capacity - home;
        uint32_t from_gap = slot >= gap ? slot - gap : slot + capacity - gap;
        if (from_home >= from_gap) {
            sl__keyed_group_set_slot(group, gap, entry);
            gap = slot;
        }
    }
    sl__keyed_group_set_slot(group, gap, NULL);
    group->count--;
}
