#include "stream/state_table.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"

_Static_assert(sizeof(struct sl_keyed_entry) == 24, "an entry is 24 bytes");

enum {
    CAPACITY_MIN = 8,
    /* Tags looked at in one step. */
    TAG_STEP = 8,
    /* A group whose table is emptier than 1/SHRINK_FACTOR shrinks when a key is added. */
    SHRINK_FACTOR = 8,
    SHRINK_CAPACITY_MIN = 64,
};

/* The bytes of a long string or of a table. */
struct block {
    uint32_t len;
    uint8_t bytes[];
};

/*
 * What an allocation really takes: glibc puts 8 bytes before it and rounds to 16, and maps large
 * ones in whole pages. A formula, so that the account is the same under every allocator.
 */
static uint64_t
allocation_bytes(uint64_t size)
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

/* Entries, and behind them their tags. */
static uint64_t
table_size(uint32_t capacity)
{
    return (uint64_t)capacity * (sizeof(struct sl_keyed_entry) + 1) + TAG_STEP - 1;
}

static uint64_t
table_bytes(uint32_t capacity)
{
    return capacity > 0 ? allocation_bytes(table_size(capacity)) : 0;
}

static uint64_t
block_bytes(uint32_t len)
{
    return allocation_bytes(sizeof(struct block) + (uint64_t)len);
}

/* Whether `freed` bytes going and `added` bytes coming keep within the limit. */
static int
state_check_room(const struct sl_keyed *self, uint64_t freed, uint64_t added)
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
    return allocation_bytes((uint64_t)key_groups * sizeof(struct sl_keyed_group));
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
    int rc = state_check_room(self, 0, bytes);
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

/* Keys and values in blocks. */

static struct block *
block_at(uint64_t bits)
{
    return (struct block *)(uintptr_t)bits;
}

static bool
is_in_block(uint16_t kind)
{
    return kind >> 8 == SL_KEYED_IN_BLOCK;
}

static int
block_new(const void *ptr, uint32_t len, uint64_t *out)
{
    struct block *block = sl_try_alloc(sizeof(struct block) + (size_t)len);
    if (block == NULL) {
        return sl_err_set(SL_ENOMEM, "no memory for %u bytes of keyed state", len);
    }
    block->len = len;
    memcpy(block->bytes, ptr, len);
    *out = (uint64_t)(uintptr_t)block;
    return 0;
}

static void
block_free(struct sl_keyed *self, uint16_t kind, uint64_t bits)
{
    if (is_in_block(kind)) {
        self->bytes -= block_bytes(block_at(bits)->len);
        sl_free(block_at(bits));
    }
}

static void
entry_free_blocks(struct sl_keyed *self, struct sl_keyed_entry *entry)
{
    block_free(self, entry->key_kind, entry->key);
    block_free(self, entry->value_kind, entry->value);
}

/*
 * The table of one group. Beside the entries lies one byte a slot, its tag: 0 when the slot is
 * free, else 0x80 and seven bits of the hash. A look-up compares eight tags in one step, so it
 * reads hardly any entry but the right one. The first tags are repeated behind the last one, so
 * that a step may run over the end:
 *
 *     entries [0 .. capacity)   tags [0 .. capacity)   tags [0 .. 7)
 */

#define TAG_ONES UINT64_C(0x0101010101010101)
#define TAG_TOPS UINT64_C(0x8080808080808080)

static inline uint8_t *
group_tags(const struct sl_keyed_group *group)
{
    return (uint8_t *)(group->entries + group->capacity);
}

static inline uint8_t
hash_tag(uint32_t hash)
{
    return (uint8_t)(hash | 0x80);
}

static inline uint64_t
tags_at(const uint8_t *tags, uint32_t slot)
{
    uint64_t word;
    memcpy(&word, tags + slot, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The slot of the lowest mark in a word of tags that was read at `slot`. */
static inline uint32_t
marked_slot(uint64_t marks, uint32_t slot, uint32_t capacity)
{
    slot += (uint32_t)__builtin_ctzll(marks) / 8;
    return slot >= capacity ? slot - capacity : slot;
}

static inline uint32_t
next_step(uint32_t slot, uint32_t capacity)
{
    slot += TAG_STEP;
    return slot >= capacity ? slot - capacity : slot;
}

/* Stores an entry (NULL: nothing) with its tag in a slot. */
static void
group_set_slot(struct sl_keyed_group *group, uint32_t slot, const struct sl_keyed_entry *entry)
{
    uint8_t tag = 0;
    if (entry != NULL) {
        group->entries[slot] = *entry;
        tag = hash_tag(entry->hash);
    } else {
        memset(&group->entries[slot], 0, sizeof(*entry));
    }
    group_tags(group)[slot] = tag;
    if (slot < TAG_STEP - 1) {
        group_tags(group)[group->capacity + slot] = tag;
    }
}

/*
 * The upper half of the hash, scaled: needs no power of two and is independent of the group. The
 * factor gives each capacity an order of its own: entries that come in the order of a smaller table
 * (an import does, from what an export walked) would else all crowd at the start of a larger one.
 */
static inline uint32_t
home_slot(uint32_t hash, uint32_t capacity)
{
    return (uint32_t)((uint64_t)(hash * (capacity * 2 + 1)) * capacity >> 32);
}

static bool __attribute__((noinline)) block_equals(uint64_t bits, const struct sl_keyed_key *key)
{
    const struct block *block = block_at(bits);
    return block->len == key->len &&
           memcmp(block->bytes, (const void *)(uintptr_t)key->bits, key->len) == 0;
}

static inline bool
entry_has_key(const struct sl_keyed_entry *entry, const struct sl_keyed_key *key)
{
    if (is_in_block(key->kind)) {
        return entry->key_kind == key->kind && entry->hash == (uint32_t)(key->hash >> 32) &&
               block_equals(entry->key, key);
    }
    return entry->key == key->bits && entry->key_kind == key->kind;
}

/* The entry of a key, or NULL. */
static inline struct sl_keyed_entry *
group_find(const struct sl_keyed_group *group, const struct sl_keyed_key *key)
{
    if (group->count == 0) {
        return NULL;
    }
    uint32_t hash = (uint32_t)(key->hash >> 32);
    const uint8_t *tags = group_tags(group);
    uint64_t wanted = hash_tag(hash) * TAG_ONES;
    uint32_t slot = home_slot(hash, group->capacity);
    /* The entry is seldom far from home: fetch it while the tags are looked at. */
    __builtin_prefetch(&group->entries[slot]);
    for (;; slot = next_step(slot, group->capacity)) {
        uint64_t word = tags_at(tags, slot);
        uint64_t differing = word ^ wanted;
        /* Bytes that are zero; one above such a byte may be marked in error, which is harmless. */
        uint64_t matches = (differing - TAG_ONES) & ~differing & TAG_TOPS;
        for (; matches != 0; matches &= matches - 1) {
            uint32_t found = marked_slot(matches, slot, group->capacity);
            if (entry_has_key(&group->entries[found], key)) {
                return &group->entries[found];
            }
        }
        if ((~word & TAG_TOPS) != 0) {
            return NULL;
        }
    }
}

/* The free slot in which a key of this hash belongs. */
static uint32_t
group_free_slot(const struct sl_keyed_group *group, uint32_t hash)
{
    const uint8_t *tags = group_tags(group);
    for (uint32_t slot = home_slot(hash, group->capacity);;
         slot = next_step(slot, group->capacity)) {
        uint64_t free_marks = ~tags_at(tags, slot) & TAG_TOPS;
        if (free_marks != 0) {
            return marked_slot(free_marks, slot, group->capacity);
        }
    }
}

/* Moves the entries of a group into a table of another capacity. */
static int
group_resize(struct sl_keyed *self, struct sl_keyed_group *group, uint32_t capacity)
{
    sl_assert_lt(group->count, capacity);
    uint64_t freed = table_bytes(group->capacity);
    uint64_t added = table_bytes(capacity);
    int rc = state_check_room(self, freed, added);
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
            group_set_slot(&grown, group_free_slot(&grown, group->entries[i].hash),
                           &group->entries[i]);
        }
    }
    sl_free(group->entries);
    *group = grown;
    self->bytes = self->bytes - freed + added;
    sl_keyed_forget(self);
    return 0;
}

/* At most 4/5 full after one more key; a table that has become far too large shrinks. */
static int
group_make_room(struct sl_keyed *self, struct sl_keyed_group *group)
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
static void
group_remove_slot(struct sl_keyed_group *group, uint32_t gap)
{
    uint32_t capacity = group->capacity;
    for (uint32_t slot = gap;;) {
        slot = slot + 1 == capacity ? 0 : slot + 1;
        const struct sl_keyed_entry *entry = &group->entries[slot];
        if (entry->key_kind == SL_KEYED_KEY_NONE) {
            break;
        }
        uint32_t home = home_slot(entry->hash, capacity);
        uint32_t from_home = slot >= home ? slot - home : slot + capacity - home;
        uint32_t from_gap = slot >= gap ? slot - gap : slot + capacity - gap;
        if (from_home >= from_gap) {
            group_set_slot(group, gap, entry);
            gap = slot;
        }
    }
    group_set_slot(group, gap, NULL);
    group->count--;
}

static inline struct sl_keyed_group *
state_group(const struct sl_keyed *self, const struct sl_keyed_key *key)
{
    return &self->groups[sl_key_group(key->hash, self->key_groups)];
}

/* Values. */

/* Fills *out from an entry's value. */
static void
entry_get_value(const struct sl_keyed_entry *entry, struct sl_value *out)
{
    uint16_t kind = entry->value_kind;
    out->tag = kind & 0xff;
    switch (out->tag) {
    case SL_VALUE_NUMBER:
        memcpy(&out->number, &entry->value, sizeof(out->number));
        break;
    case SL_VALUE_INT64:
    case SL_VALUE_UINT64:
        out->integer = (int64_t)entry->value;
        break;
    case SL_VALUE_STRING:
    case SL_VALUE_TABLE:
        if (is_in_block(kind)) {
            out->ptr = block_at(entry->value)->bytes;
            out->len = block_at(entry->value)->len;
        } else {
            out->ptr = (const uint8_t *)&entry->value;
            out->len = kind >> 8;
        }
        break;
    default:
        break;
    }
}

static bool
value_needs_block(const struct sl_value *value)
{
    return value->tag == SL_VALUE_TABLE ||
           (value->tag == SL_VALUE_STRING && value->len > SL_KEYED_INLINE_MAX);
}

/* The kind and bits of a value that needs no block. */
static uint16_t
value_pack(const struct sl_value *value, uint64_t *bits)
{
    *bits = 0;
    switch (value->tag) {
    case SL_VALUE_NUMBER:
        memcpy(bits, &value->number, sizeof(*bits));
        break;
    case SL_VALUE_INT64:
    case SL_VALUE_UINT64:
        *bits = (uint64_t)value->integer;
        break;
    case SL_VALUE_STRING:
        *bits = sl_keyed_pack(value->ptr, value->len);
        return (uint16_t)(SL_VALUE_STRING | value->len << 8);
    default:
        break;
    }
    return (uint16_t)value->tag;
}

/* Makes the bits and kind of a value, in a new block where it needs one. */
static int
state_make_value(struct sl_keyed *self, const struct sl_value *value, uint64_t freed,
                 uint64_t *bits, uint16_t *kind)
{
    if (!value_needs_block(value)) {
        *kind = value_pack(value, bits);
        return 0;
    }
    int rc = state_check_room(self, freed, block_bytes(value->len));
    if (rc == 0) {
        rc = block_new(value->ptr, value->len, bits);
    }
    if (rc == 0) {
        self->bytes += block_bytes(value->len);
        *kind = (uint16_t)(value->tag | SL_KEYED_IN_BLOCK << 8);
    }
    return rc;
}

/* Replaces the value of an entry. */
static int
entry_set_value(struct sl_keyed *self, struct sl_keyed_entry *entry, const struct sl_value *value)
{
    if (value_needs_block(value) && is_in_block(entry->value_kind) &&
        block_at(entry->value)->len == value->len) {
        /* memmove: the value may be the one that was just read from here. */
        memmove(block_at(entry->value)->bytes, value->ptr, value->len);
        entry->value_kind = (uint16_t)(value->tag | SL_KEYED_IN_BLOCK << 8);
        return 0;
    }
    uint64_t freed = is_in_block(entry->value_kind) ? block_bytes(block_at(entry->value)->len) : 0;
    uint64_t bits;
    uint16_t kind;
    int rc = state_make_value(self, value, freed, &bits, &kind);
    if (rc != 0) {
        return rc;
    }
    block_free(self, entry->value_kind, entry->value);
    entry->value = bits;
    entry->value_kind = kind;
    return 0;
}

/* Adds an entry for a key that is not there. Kept out of the callers' common path. */
static int __attribute__((noinline))
state_insert(struct sl_keyed *self, const struct sl_keyed_key *key, const struct sl_value *value)
{
    struct sl_keyed_group *group = state_group(self, key);
    struct sl_keyed_entry entry = {
        .key = key->bits,
        .hash = (uint32_t)(key->hash >> 32),
        .key_kind = key->kind,
    };
    int rc = state_make_value(self, value, 0, &entry.value, &entry.value_kind);
    if (rc != 0) {
        return rc;
    }
    if (is_in_block(key->kind)) {
        /* Until its block exists the entry must not own the caller's bytes. */
        entry.key_kind = SL_KEYED_KEY_NONE;
        rc = state_check_room(self, 0, block_bytes(key->len));
        if (rc == 0) {
            rc = block_new((const void *)(uintptr_t)key->bits, key->len, &entry.key);
        }
        if (rc != 0) {
            goto fail;
        }
        entry.key_kind = key->kind;
        self->bytes += block_bytes(key->len);
    }
    rc = group_make_room(self, group);
    if (rc != 0) {
        goto fail;
    }
    group_set_slot(group, group_free_slot(group, entry.hash), &entry);
    group->count++;
    self->count++;
    return 0;
fail:
    entry_free_blocks(self, &entry);
    return rc;
}

bool
sl_keyed_get(const struct sl_keyed *self, const struct sl_keyed_key *key, struct sl_value *out)
{
    const struct sl_keyed_entry *entry = group_find(state_group(self, key), key);
    if (entry == NULL) {
        return false;
    }
    entry_get_value(entry, out);
    return true;
}

int
sl_keyed_put(struct sl_keyed *self, const struct sl_keyed_key *key, const struct sl_value *value)
{
    struct sl_keyed_entry *entry = group_find(state_group(self, key), key);
    if (entry == NULL) {
        return state_insert(self, key, value);
    }
    return entry_set_value(self, entry, value);
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
        entry->value_kind = value_pack(out, &entry->value);
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
    entry_get_value(entry, out);
    return 0;
}

int
sl_keyed_add(struct sl_keyed *self, const struct sl_keyed_key *key, double delta,
             struct sl_value *out)
{
    struct sl_keyed_entry *entry = group_find(state_group(self, key), key);
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
    struct sl_keyed_group *group = state_group(self, key);
    struct sl_keyed_entry *entry = group_find(group, key);
    if (entry == NULL) {
        return false;
    }
    entry_free_blocks(self, entry);
    group_remove_slot(group, (uint32_t)(entry - group->entries));
    self->count--;
    sl_keyed_forget(self);
    return true;
}

int32_t
sl_keyed_remember(struct sl_keyed *self, const struct sl_keyed_key *key)
{
    struct sl_keyed_places *places = &self->places;
    struct sl_keyed_entry *entry = group_find(state_group(self, key), key);
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
            entry_free_blocks(self, &group->entries[i]);
        }
    }
    self->bytes -= table_bytes(group->capacity);
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

/* Walking. */

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

/* Fills *out from an entry's key. */
static void
entry_get_key(const struct sl_keyed_entry *entry, struct sl_value *out)
{
    double number;
    int64_t exact;
    switch (entry->key_kind & 0xff) {
    case SL_KEYED_KEY_INTEGER:
        number = (double)(int64_t)entry->key;
        *out = sl_double_is_i64(number, &exact) && exact == (int64_t)entry->key
                   ? sl_value_number(number)
                   : sl_value_i64((int64_t)entry->key);
        break;
    case SL_KEYED_KEY_LARGE:
        number = (double)entry->key;
        *out = number < 18446744073709551616.0 && (uint64_t)number == entry->key
                   ? sl_value_number(number)
                   : sl_value_u64(entry->key);
        break;
    case SL_KEYED_KEY_FRACTION:
        memcpy(&number, &entry->key, sizeof(number));
        *out = sl_value_number(number);
        break;
    case SL_KEYED_KEY_STRING:
        *out = is_in_block(entry->key_kind)
                   ? sl_value_string(block_at(entry->key)->bytes, block_at(entry->key)->len)
                   : sl_value_string(&entry->key, entry->key_kind >> 8);
        break;
    case SL_KEYED_KEY_TABLE:
        *out = sl_value_table(block_at(entry->key)->bytes, block_at(entry->key)->len);
        break;
    case SL_KEYED_KEY_FALSE:
    case SL_KEYED_KEY_TRUE:
        *out = sl_value_bool((entry->key_kind & 0xff) == SL_KEYED_KEY_TRUE);
        break;
    case SL_KEYED_KEY_NULL:
        *out = sl_value_null();
        break;
    default:
        *out = sl_value_nil();
    }
}

bool
sl_keyed_find_i64(const struct sl_keyed *self, uint32_t group_index, uint32_t hash, int64_t value,
                  struct sl_value *key)
{
    const struct sl_keyed_group *group = &self->groups[group_index];
    if (group->count == 0) {
        return false;
    }
    uint32_t slot = home_slot(hash, group->capacity);
    while (group->entries[slot].key_kind != SL_KEYED_KEY_NONE) {
        const struct sl_keyed_entry *entry = &group->entries[slot];
        if (entry->hash == hash && entry->value_kind == SL_VALUE_INT64 &&
            entry->value == (uint64_t)value) {
            entry_get_key(entry, key);
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
                entry_get_key(entry, key);
                entry_get_value(entry, value);
                return true;
            }
        }
    }
    return false;
}

/* Keys of any value. */

int
sl_keyed_key_of(const struct sl_value *value, struct sl_keyed_key *out)
{
    switch (value->tag) {
    case SL_VALUE_NUMBER:
        *out = sl_keyed_key_number(value->number);
        return 0;
    case SL_VALUE_INT64:
        *out = sl_keyed_key_i64(value->integer);
        return 0;
    case SL_VALUE_UINT64:
        *out = sl_keyed_key_u64((uint64_t)value->integer);
        return 0;
    case SL_VALUE_STRING:
        *out = sl_keyed_key_string(value->ptr, value->len);
        return 0;
    case SL_VALUE_TABLE:
        *out = (struct sl_keyed_key){0, (uint64_t)(uintptr_t)value->ptr, value->len,
                                     SL_KEYED_KEY_TABLE | SL_KEYED_IN_BLOCK << 8};
        return sl_value_key_hash(value->ptr, value->len, &out->hash);
    case SL_VALUE_FALSE:
    case SL_VALUE_TRUE:
        *out = (struct sl_keyed_key){.hash = sl_key_hash_bool(value->tag == SL_VALUE_TRUE),
                                     .kind = value->tag == SL_VALUE_TRUE ? SL_KEYED_KEY_TRUE
                                                                         : SL_KEYED_KEY_FALSE};
        return 0;
    case SL_VALUE_NULL:
        *out = (struct sl_keyed_key){.hash = sl_key_hash_null(), .kind = SL_KEYED_KEY_NULL};
        return 0;
    case SL_VALUE_NIL:
        *out = (struct sl_keyed_key){.hash = sl_key_hash_nil(), .kind = SL_KEYED_KEY_NIL};
        return 0;
    default:
        return sl_err_set(SL_EPROTO, "value with the unknown tag %u", value->tag);
    }
}

/* Shipping groups. */

enum { SECTION_HEADER_BYTES = 8 };

static void
summary_add(struct sl_keyed_summary *summary, const uint8_t *entry, size_t len)
{
    summary->entries++;
    summary->bytes += len;
    summary->checksum += sl_hash_bytes(entry, len);
}

int
sl_keyed_export_group(const struct sl_keyed *self, uint32_t group, struct sl_buf *out,
                      struct sl_keyed_summary *summary)
{
    memset(summary, 0, sizeof(*summary));
    if (group >= self->key_groups) {
        return sl_err_set(SL_EINVAL, "key group %u of %u", group, self->key_groups);
    }
    sl_buf_append_u32(out, group);
    sl_buf_append_u32(out, self->groups[group].count);
    struct sl_keyed_iter iter = sl_keyed_iter_group(group);
    struct sl_value key;
    struct sl_value value;
    while (sl_keyed_next(self, &iter, &key, &value)) {
        size_t start = out->size;
        sl_value_write(out, &key);
        sl_value_write(out, &value);
        summary_add(summary, out->data + start, out->size - start);
    }
    sl_assert_eq(summary->entries, self->groups[group].count);
    return 0;
}

static uint32_t
read_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Reads one entry; returns its bytes or an error. */
static int64_t
read_entry(const struct sl_keyed *self, uint32_t group, const uint8_t *at, size_t len,
           struct sl_keyed_key *key, struct sl_value *value)
{
    struct sl_value key_value;
    int64_t key_len = sl_value_read(at, len, &key_value);
    if (key_len < 0) {
        return key_len;
    }
    int64_t value_len = sl_value_read(at + key_len, len - (size_t)key_len, value);
    if (value_len < 0) {
        return value_len;
    }
    int rc = sl_keyed_key_of(&key_value, key);
    if (rc != 0) {
        return rc;
    }
    if (sl_key_group(key->hash, self->key_groups) != group) {
        return sl_err_set(SL_EPROTO, "an entry of key group %u came as one of group %u",
                          sl_key_group(key->hash, self->key_groups), group);
    }
    return key_len + value_len;
}

int64_t
sl_keyed_section_fit(const uint8_t *ptr, size_t len, size_t most, uint32_t *count)
{
    size_t at = 0;
    *count = 0;
    while (at < len) {
        int64_t key = sl_value_measure(ptr + at, len - at);
        int64_t value = key < 0 ? key : sl_value_measure(ptr + at + key, len - at - (size_t)key);
        if (value < 0) {
            return value;
        }
        if (*count > 0 && at + (size_t)(key + value) > most) {
            break;
        }
        at += (size_t)(key + value);
        ++*count;
    }
    return (int64_t)at;
}

/* Walks all sections; puts their entries unless self_to_fill is NULL. */
static int
import_pass(const struct sl_keyed *self, struct sl_keyed *self_to_fill, const uint8_t *ptr,
            size_t len, struct sl_keyed_summary *summary)
{
    memset(summary, 0, sizeof(*summary));
    size_t at = 0;
    while (at < len) {
        if (len - at < SECTION_HEADER_BYTES) {
            return sl_err_set(SL_EPROTO, "exported key group is cut off");
        }
        uint32_t group = read_u32(ptr + at);
        uint32_t count = read_u32(ptr + at + 4);
        at += SECTION_HEADER_BYTES;
        for (uint32_t i = 0; i < count; i++) {
            struct sl_keyed_key key;
            struct sl_value value;
            int64_t size = read_entry(self, group, ptr + at, len - at, &key, &value);
            if (size < 0) {
                return (int)size;
            }
            int rc = self_to_fill != NULL ? sl_keyed_put(self_to_fill, &key, &value) : 0;
            if (rc != 0) {
                return rc;
            }
            summary_add(summary, ptr + at, (size_t)size);
            at += (size_t)size;
        }
    }
    return 0;
}

int
sl_keyed_import(struct sl_keyed *self, const uint8_t *ptr, size_t len,
                struct sl_keyed_summary *summary)
{
    int rc = import_pass(self, NULL, ptr, len, summary);
    if (rc == 0) {
        rc = import_pass(self, self, ptr, len, summary);
    }
    if (rc != 0) {
        return sl_err_wrap("import of keyed state");
    }
    return 0;
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
