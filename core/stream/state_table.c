/* Keyed state: its life and its account, operations on keys, walks. */

#include "stream/state_table.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "stream/state_table_priv.h"

uint64_t
sl__keyed_allocation_bytes(uint64_t size)
{
    if (size == 0) {
        return 0;
    }
    if (size >= 128 * 1024) {
        return (size + 16 + 4095) & ~UINT64_C(4095);
    }
    uint64_t chunk = (size + 8 + 15) & ~UINT64_C(15);
    return chunk < 32 ? 32 : chunk;
}

int
sl__keyed_check_room(const struct sl_keyed *self, uint64_t freed, uint64_t added)
{
    uint64_t after = self->bytes - freed + added;
    if (self->limit_bytes > 0 && after > self->limit_bytes && added > freed) {
        return sl_err_set(SL_ELIMIT, "keyed state would take %llu bytes, its limit is %llu",
                          (unsigned long long)after, (unsigned long long)self->limit_bytes);
    }
    return 0;
}

/* Bytes of the array of groups. */
static uint64_t
groups_bytes(uint32_t key_groups)
{
    return sl__keyed_allocation_bytes((uint64_t)key_groups * sizeof(struct sl_keyed_group));
}

int
sl_keyed_create(struct sl_keyed *self, uint32_t key_groups, uint64_t limit_bytes)
{
    memset(self, 0, sizeof(*self));
    if (key_groups == 0 || key_groups > SL_KEYED_GROUPS_MAX) {
        return sl_err_set(SL_EINVAL, "keyed state needs 1 to %d key groups, not %u",
                          SL_KEYED_GROUPS_MAX, key_groups);
    }
    self->limit_bytes = limit_bytes;
    uint64_t bytes = groups_bytes(key_groups);
    int rc = sl__keyed_check_room(self, 0, bytes);
    if (rc != 0) {
        return rc;
    }
    self->groups = sl_try_calloc(key_groups, sizeof(struct sl_keyed_group));
    if (self->groups == NULL) {
        return sl_err_set(SL_ENOMEM, "no memory for %u key groups", key_groups);
    }
    self->key_groups = key_groups;
    self->bytes = bytes;
    return 0;
}

void
sl_keyed_destroy(struct sl_keyed *self)
{
    if (self->groups != NULL) {
        sl_keyed_clear(self);
        sl_free(self->groups);
    }
    sl_free(self->places.entries);
    sl_buf_destroy(&self->exported);
    memset(self, 0, sizeof(*self));
}

void
sl_keyed_forget(struct sl_keyed *self)
{
    self->places.moves++;
    self->places.count = 0;
}

/* Adds an entry for a key that is not there. Kept out of the callers' common path. */
static int __attribute__((noinline))
state_insert(struct sl_keyed *self, const struct sl_keyed_key *key, const struct sl_value *value)
{
    struct sl_keyed_group *group = sl__keyed_group_of(self, key);
    struct sl_keyed_entry entry = {
        .key = key->bits,
        .hash = (uint32_t)(key->hash >> 32),
        .key_kind = key->kind,
    };
    int rc = sl__keyed_make_value(self, value, 0, &entry.value, &entry.value_kind);
    if (rc != 0) {
        return rc;
    }
    if (sl__keyed_is_in_block(key->kind)) {
        /* Until its block exists the entry must not own the caller's bytes. */
        entry.key_kind = SL_KEYED_KEY_NONE;
        rc = sl__keyed_check_room(self, 0, sl__keyed_block_bytes(key->len));
        if (rc == 0) {
            rc = sl__keyed_block_new((const void *)(uintptr_t)key->bits, key->len, &entry.key);
        }
        if (rc != 0) {
            goto fail;
        }
        entry.key_kind = key->kind;
        self->bytes += sl__keyed_block_bytes(key->len);
    }
    rc = sl__keyed_group_make_room(self, group);
    if (rc != 0) {
        goto fail;
    }
    sl__keyed_group_set_slot(group, sl__keyed_group_free_slot(group, entry.hash), &entry);
    group->count++;
    self->count++;
    return 0;
fail:
    sl__keyed_entry_free_blocks(self, &entry);
    return rc;
}

bool
sl_keyed_get(const struct sl_keyed *self, const struct sl_keyed_key *key, struct sl_value *out)
{
    const struct sl_keyed_entry *entry = sl__keyed_group_find(sl__keyed_group_of(self, key), key);
    if (entry == NULL) {
        return false;
    }
    sl__keyed_entry_get_value(entry, out);
    return true;
}

int
sl_keyed_put(struct sl_keyed *self, const struct sl_keyed_key *key, const struct sl_value *value)
{
    struct sl_keyed_entry *entry = sl__keyed_group_find(sl__keyed_group_of(self, key), key);
    if (entry == NULL) {
        return state_insert(self, key, value);
    }
    return sl__keyed_entry_set_value(self, entry, value);
}

static const char *
kind_name(uint16_t value_kind)
{
    switch (value_kind & 0xff) {
    case SL_VALUE_STRING:
        return "a string";
    case SL_VALUE_TABLE:
        return "a table";
    case SL_VALUE_NULL:
        return "null";
    default:
        return "a boolean";
    }
}

/* Adds to an entry that holds no plain number: the uncommon part of sl_keyed_add. */
static int __attribute__((noinline))
add_to_other(struct sl_keyed_entry *entry, double delta, struct sl_value *out)
{
    uint16_t tag = entry->value_kind & 0xff;
    int64_t whole;
    if (tag == SL_VALUE_NIL) {
        *out = sl_value_number(delta);
        entry->value_kind = sl__keyed_value_pack(out, &entry->value);
        return 0;
    }
    if (tag != SL_VALUE_INT64 && tag != SL_VALUE_UINT64) {
        return sl_err_set(SL_EINVAL, "can not add to a value that is %s",
                          kind_name(entry->value_kind));
    }
    if (!sl_double_is_i64(delta, &whole)) {
        return sl_err_set(SL_EINVAL, "can not add %g to a 64-bit integer", delta);
    }
    entry->value += (uint64_t)whole;
    sl__keyed_entry_get_value(entry, out);
    return 0;
}

int
sl_keyed_add(struct sl_keyed *self, const struct sl_keyed_key *key, double delta,
             struct sl_value *out)
{
    struct sl_keyed_entry *entry = sl__keyed_group_find(sl__keyed_group_of(self, key), key);
    if (entry == NULL) {
        *out = sl_value_number(delta);
        return state_insert(self, key, out);
    }
    if (entry->value_kind != SL_VALUE_NUMBER) {
        return add_to_other(entry, delta, out);
    }
    memcpy(&out->number, &entry->value, sizeof(out->number));
    out->number += delta;
    out->tag = SL_VALUE_NUMBER;
    memcpy(&entry->value, &out->number, sizeof(entry->value));
    return 0;
}

bool
sl_keyed_remove(struct sl_keyed *self, const struct sl_keyed_key *key)
{
    struct sl_keyed_group *group = sl__keyed_group_of(self, key);
    struct sl_keyed_entry *entry = sl__keyed_group_find(group, key);
    if (entry == NULL) {
        return false;
    }
    sl__keyed_entry_free_blocks(self, entry);
    sl__keyed_group_remove_slot(group, (uint32_t)(entry - group->entries));
    self->count--;
    sl_keyed_forget(self);
    return true;
}

int32_t
sl_keyed_remember(struct sl_keyed *self, const struct sl_keyed_key *key)
{
    struct sl_keyed_places *places = &self->places;
    struct sl_keyed_entry *entry = sl__keyed_group_find(sl__keyed_group_of(self, key), key);
    if (entry == NULL) {
        return sl_err_set(SL_ENOTFOUND, "the key has no entry");
    }
    if (places->entries == NULL) {
        places->entries = sl_try_alloc(SL_KEYED_PLACES_MAX * sizeof(struct sl_keyed_entry *));
        if (places->entries == NULL) {
            return sl_err_set(SL_ELIMIT, "no memory to remember entries of keyed state");
        }
    }
    if (places->count == SL_KEYED_PLACES_MAX) {
        return sl_err_set(SL_ELIMIT, "%d entries are remembered already", SL_KEYED_PLACES_MAX);
    }
    places->entries[places->count] = entry;
    return (int32_t)places->count++;
}

void
sl_keyed_clear_group(struct sl_keyed *self, uint32_t group_index)
{
    if (group_index >= self->key_groups) {
        return;
    }
    struct sl_keyed_group *group = &self->groups[group_index];
    for (uint32_t i = 0; i < group->capacity; i++) {
        if (group->entries[i].key_kind != SL_KEYED_KEY_NONE) {
            sl__keyed_entry_free_blocks(self, &group->entries[i]);
        }
    }
    self->bytes -= sl__keyed_table_bytes(group->capacity);
    self->count -= group->count;
    sl_free(group->entries);
    memset(group, 0, sizeof(*group));
    sl_keyed_forget(self);
}

void
sl_keyed_clear(struct sl_keyed *self)
{
    for (uint32_t i = 0; i < self->key_groups; i++) {
        sl_keyed_clear_group(self, i);
    }
    sl_assert_eq(self->count, 0);
}

uint32_t
sl_keyed_group_count(const struct sl_keyed *self, uint32_t group)
{
    return group < self->key_groups ? self->groups[group].count : 0;
}

int
sl_keyed_adopt(struct sl_keyed *self, struct sl_keyed *from)
{
    if (self->key_groups != from->key_groups) {
        return sl_err_set(SL_EINVAL, "a state of %u key groups for one of %u", from->key_groups,
                          self->key_groups);
    }
    for (uint32_t i = 0; i < self->key_groups; i++) {
        if (from->groups[i].count == 0) {
            sl_keyed_clear_group(from, i);
            continue;
        }
        sl_keyed_clear_group(self, i);
        self->groups[i] = from->groups[i];
        memset(&from->groups[i], 0, sizeof(from->groups[i]));
    }
    uint64_t moved = from->bytes - groups_bytes(from->key_groups);
    self->bytes += moved;
    self->count += from->count;
    from->bytes -= moved;
    from->count = 0;
    sl_keyed_forget(self);
    sl_keyed_forget(from);
    return 0;
}

struct sl_keyed_iter
sl_keyed_iter_group(uint32_t group)
{
    return (struct sl_keyed_iter){.group = group, .end_group = group + 1};
}

/*
 * A walk goes backwards from a free slot round to it. Removing the entry just visited pulls only
 * entries from further on, which were visited before it, into the gap: none is missed, none seen
 * twice. A free slot always exists, as a table is at most 4/5 full.
 */
static void
iter_start_group(const struct sl_keyed_group *group, struct sl_keyed_iter *iter)
{
    uint32_t slot = 0;
    while (group->entries[slot].key_kind != SL_KEYED_KEY_NONE) {
        slot++;
    }
    iter->slot = slot;
    iter->left = group->capacity;
    iter->capacity = group->capacity;
}

bool
sl_keyed_find_i64(const struct sl_keyed *self, uint32_t group_index, uint32_t hash, int64_t value,
                  struct sl_value *key)
{
    const struct sl_keyed_group *group = &self->groups[group_index];
    if (group->count == 0) {
        return false;
    }
    uint32_t slot = sl__keyed_home_slot(hash, group->capacity);
    while (group->entries[slot].key_kind != SL_KEYED_KEY_NONE) {
        const struct sl_keyed_entry *entry = &group->entries[slot];
        if (entry->hash == hash && entry->value_kind == SL_VALUE_INT64 &&
            entry->value == (uint64_t)value) {
            sl__keyed_entry_get_key(entry, key);
            return true;
        }
        slot = slot + 1 == group->capacity ? 0 : slot + 1;
    }
    return false;
}

bool
sl_keyed_next(const struct sl_keyed *self, struct sl_keyed_iter *iter, struct sl_value *key,
              struct sl_value *value)
{
    uint32_t end = iter->end_group == 0 || iter->end_group > self->key_groups ? self->key_groups
                                                                              : iter->end_group;
    for (; iter->group < end; iter->group++, iter->capacity = 0) {
        const struct sl_keyed_group *group = &self->groups[iter->group];
        if (iter->capacity == 0 && group->count > 0) {
            iter_start_group(group, iter);
        }
        /* A table that was replaced meanwhile (keys were added) ends the walk of its group. */
        if (iter->capacity == 0 || iter->capacity != group->capacity) {
            continue;
        }
        while (iter->left > 0) {
            iter->left--;
            iter->slot = iter->slot == 0 ? group->capacity - 1 : iter->slot - 1;
            const struct sl_keyed_entry *entry = &group->entries[iter->slot];
            if (entry->key_kind != SL_KEYED_KEY_NONE) {
                sl__keyed_entry_get_key(entry, key);
                sl__keyed_entry_get_value(entry, value);
                return true;
            }
        }
    }
    return false;
}
