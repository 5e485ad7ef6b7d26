#pragma once
/*
 * Keyed state: what the files of state_table.h share.  state_table.c has the operations on a state,
 * state_group.c the table of one key group, state_entry.c what an entry holds, state_ship.c the way
 * of groups to other processes.  Inline is what every look-up does.
 */

#include "stream/state_table.h"

enum {
    /* Tags looked at in one step. */
    SL__KEYED_TAG_STEP = 8,
};

/* The bytes of a long string or of a table. */
struct sl__keyed_block {
    uint32_t len;
    uint8_t bytes[];
};

/* state_table.c */
/*
 * What an allocation really takes: glibc puts 8 bytes before it and rounds to 16, and maps large
 * ones in whole pages. A formula, so that the account is the same under every allocator.
 */
uint64_t sl__keyed_allocation_bytes(uint64_t size);
/* Whether `freed` bytes going and `added` bytes coming keep within the limit. */
int sl__keyed_check_room(const struct sl_keyed *self, uint64_t freed, uint64_t added);

/* state_entry.c */
uint64_t sl__keyed_block_bytes(uint32_t len);
int sl__keyed_block_new(const void *ptr, uint32_t len, uint64_t *out);
/* Frees what blocks the key and the value of an entry have. */
void sl__keyed_entry_free_blocks(struct sl_keyed *self, struct sl_keyed_entry *entry);
bool sl__keyed_block_equals(uint64_t bits, const struct sl_keyed_key *key);
/* The kind and bits of a value that needs no block. */
uint16_t sl__keyed_value_pack(const struct sl_value *value, uint64_t *bits);
/* Makes the bits and kind of a value, in a new block where it needs one; `freed` bytes will go. */
int sl__keyed_make_value(struct sl_keyed *self, const struct sl_value *value, uint64_t freed,
                         uint64_t *bits, uint16_t *kind);
/* Replaces the value of an entry. */
int sl__keyed_entry_set_value(struct sl_keyed *self, struct sl_keyed_entry *entry,
                              const struct sl_value *value);
/* Fills *out from an entry's key. */
void sl__keyed_entry_get_key(const struct sl_keyed_entry *entry, struct sl_value *out);

/* state_group.c */
uint64_t sl__keyed_table_bytes(uint32_t capacity);
/* Stores an entry (NULL: nothing) with its tag in a slot. */
void sl__keyed_group_set_slot(struct sl_keyed_group *group, uint32_t slot,
                              const struct sl_keyed_entry *entry);
/* The free slot in which a key of this hash belongs. */
uint32_t sl__keyed_group_free_slot(const struct sl_keyed_group *group, uint32_t hash);
/* At most 4/5 full after one more key; a table that has become far too large shrinks. */
int sl__keyed_group_make_room(struct sl_keyed *self, struct sl_keyed_group *group);
/*
 * Frees a slot and closes the gap: an entry further on moves back when the gap lies between its
 * home and its place, so no entry is ever cut off from its home and no tombstone is needed.
 */
void sl__keyed_group_remove_slot(struct sl_keyed_group *group, uint32_t gap);

static inline struct sl__keyed_block *
sl__keyed_block_at(uint64_t bits)
{
    return (struct sl__keyed_block *)(uintptr_t)bits;
}

static inline bool
sl__keyed_is_in_block(uint16_t kind)
{
    return kind >> 8 == SL_KEYED_IN_BLOCK;
}

/* Fills *out from an entry's value. */
static inline void
sl__keyed_entry_get_value(const struct sl_keyed_entry *entry, struct sl_value *out)
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
        if (sl__keyed_is_in_block(kind)) {
            out->ptr = sl__keyed_block_at(entry->value)->bytes;
            out->len = sl__keyed_block_at(entry->value)->len;
        } else {
            out->ptr = (const uint8_t *)&entry->value;
            out->len = kind >> 8;
        }
        break;
    default:
        break;
    }
}

/*
 * The table of one group. Beside the entries lies one byte a slot, its tag: 0 when the slot is
 * free, else 0x80 and seven bits of the hash. A look-up compares eight tags in one step, so it
 * reads hardly any entry but the right one. The first tags are repeated behind the last one, so
 * that a step may run over the end:
 *
 *     entries [0 .. capacity)   tags [0 .. capacity)   tags [0 .. 7)
 */

#define SL__KEYED_TAG_ONES UINT64_C(0x0101010101010101)
#define SL__KEYED_TAG_TOPS UINT64_C(0x8080808080808080)

static inline uint8_t *
sl__keyed_tags(const struct sl_keyed_group *group)
{
    return (uint8_t *)(group->entries + group->capacity);
}

static inline uint8_t
sl__keyed_hash_tag(uint32_t hash)
{
    return (uint8_t)(hash | 0x80);
}

static inline uint64_t
sl__keyed_tags_at(const uint8_t *tags, uint32_t slot)
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
sl__keyed_marked_slot(uint64_t marks, uint32_t slot, uint32_t capacity)
{
    slot += (uint32_t)__builtin_ctzll(marks) / 8;
    return slot >= capacity ? slot - capacity : slot;
}

static inline uint32_t
sl__keyed_next_step(uint32_t slot, uint32_t capacity)
{
    slot += SL__KEYED_TAG_STEP;
    return slot >= capacity ? slot - capacity : slot;
}

/*
 * The upper half of the hash, scaled: needs no power of two and is independent of the group. The
 * factor gives each capacity an order of its own: entries that come in the order of a smaller table
 * (an import does, from what an export walked) would else all crowd at the start of a larger one.
 */
static inline uint32_t
sl__keyed_home_slot(uint32_t hash, uint32_t capacity)
{
    return (uint32_t)((uint64_t)(hash * (capacity * 2 + 1)) * capacity >> 32);
}

static inline bool
sl__keyed_entry_has_key(const struct sl_keyed_entry *entry, const struct sl_keyed_key *key)
{
    if (sl__keyed_is_in_block(key->kind)) {
        return entry->key_kind == key->kind && entry->hash == (uint32_t)(key->hash >> 32) &&
               sl__keyed_block_equals(entry->key, key);
    }
    return entry->key == key->bits && entry->key_kind == key->kind;
}

/* The entry of a key, or NULL. */
static inline struct sl_keyed_entry *
sl__keyed_group_find(const struct sl_keyed_group *group, const struct sl_keyed_key *key)
{
    if (group->count == 0) {
        return NULL;
    }
    uint32_t hash = (uint32_t)(key->hash >> 32);
    const uint8_t *tags = sl__keyed_tags(group);
    uint64_t wanted = sl__keyed_hash_tag(hash) * SL__KEYED_TAG_ONES;
    uint32_t slot = sl__keyed_home_slot(hash, group->capacity);
    /* The entry is seldom far from home: fetch it while the tags are looked at. */
    __builtin_prefetch(&group->entries[slot]);
    for (;; slot = sl__keyed_next_step(slot, group->capacity)) {
        uint64_t word = sl__keyed_tags_at(tags, slot);
        uint64_t differing = word ^ wanted;
        /* Bytes that are zero; one above such a byte may be marked in error, which is harmless. */
        uint64_t matches = (differing - SL__KEYED_TAG_ONES) & ~differing & SL__KEYED_TAG_TOPS;
        for (; matches != 0; matches &= matches - 1) {
            uint32_t found = sl__keyed_marked_slot(matches, slot, group->capacity);
            if (sl__keyed_entry_has_key(&group->entries[found], key)) {
                return &group->entries[found];
            }
        }
        if ((~word & SL__KEYED_TAG_TOPS) != 0) {
            return NULL;
        }
    }
}

static inline struct sl_keyed_group *
sl__keyed_group_of(const struct sl_keyed *self, const struct sl_keyed_key *key)
{
    return &self->groups[sl_key_group(key->hash, self->key_groups)];
}
