#pragma once
/*
 * Keyed state of one task, held by key group off the Lua heap: a map from values to values.
 *
 *     groups:  [ 0 | 1 | 2 | ... | M-1 ]           one small table a key group, made on first use
 *                    |
 *     entries: [ .. | key 8 | value 8 | hash 4 key kind 2 value kind 2 | .. ]      24 bytes each,
 *                                                  and one byte a slot that speeds up look-ups
 *
 * A key group's table is open addressing with linear probing and backward-shift deletion, so
 * nothing rots; each grows on its own by half, so a pause is that of one group. The low bits of a
 * key's hash choose the group, the high 32 bits the home slot in it. Numbers, booleans and strings
 * of at most 8 bytes lie inside the entry, longer strings and tables in a block of their own.
 *
 * Keys are equal as API.md says: numbers by value whatever their type, strings by bytes, tables by
 * content. The bytes of a table key must be its key form (value.abi.h). One thread owns a state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "stream/state_table.abi.h"
#include "stream/value.h"

enum {
    /* Most key groups a state can have. */
    SL_KEYED_GROUPS_MAX = 1 << 20,
    /* Longest string that lies in the entry. */
    SL_KEYED_INLINE_MAX = 8,
    /* Most entries that are remembered by index. */
    SL_KEYED_PLACES_MAX = 8192,
};

/* Kinds of keys as they are compared; 0 marks a free slot. */
enum sl_keyed_key_kind {
    SL_KEYED_KEY_NONE,
    SL_KEYED_KEY_NIL,
    SL_KEYED_KEY_FALSE,
    SL_KEYED_KEY_TRUE,
    SL_KEYED_KEY_NULL,
    /* An integer of the int64 range, whatever the type it came in. */
    SL_KEYED_KEY_INTEGER,
    /* An integer from 2^63 on. */
    SL_KEYED_KEY_LARGE,
    /* Any other number: the bits of the double. */
    SL_KEYED_KEY_FRACTION,
    SL_KEYED_KEY_STRING,
    SL_KEYED_KEY_TABLE,
};

enum {
    /* In the upper byte of a key's or value's kind: its bytes are in a block. */
    SL_KEYED_IN_BLOCK = 255,
};

struct sl_keyed_group {
    struct sl_keyed_entry *entries;
    uint32_t count;
    uint32_t capacity;
};

struct sl_keyed {
    struct sl_keyed_group *groups;
    uint32_t key_groups;
    uint64_t count;
    /* Bytes of tables and blocks with what malloc adds to them; never above limit unless it is 0.
     */
    uint64_t bytes;
    uint64_t limit_bytes;
    /* Until there are so many entries no table shrinks: room was made for them. */
    uint64_t reserved;
    /* The last export made for Lua. */
    struct sl_buf exported;
    /*
     * Entries that Lua finds by an index it remembers instead of by their key: at most 64 KiB,
     * which are none of `bytes`, as they serve speed only.
     */
    struct sl_keyed_places places;
};

/* A key ready for look-up; it borrows the bytes of strings and tables. */
struct sl_keyed_key {
    uint64_t hash;
    /* As in the entry, but for keys in blocks the address of the bytes. */
    uint64_t bits;
    uint32_t len;
    uint16_t kind;
};

/*
 * An empty state on the caller's memory. limit_bytes 0 = no limit. SL_EINVAL for a number of key
 * groups that is 0 or above SL_KEYED_GROUPS_MAX, SL_ENOMEM, SL_ELIMIT when not even the array of
 * groups (16 bytes each) fits into the limit.
 */
int sl_keyed_create(struct sl_keyed *self, uint32_t key_groups, uint64_t limit_bytes);
void sl_keyed_destroy(struct sl_keyed *self);

/*
 * The value of a key; false when there is none. Bytes in *out are valid until the next change of
 * the state.
 */
bool sl_keyed_get(const struct sl_keyed *self, const struct sl_keyed_key *key,
                  struct sl_value *out);

/* Sets the value of a key. SL_ELIMIT, SL_ENOMEM: the state is unchanged. */
int sl_keyed_put(struct sl_keyed *self, const struct sl_keyed_key *key,
                 const struct sl_value *value);

/*
 * Adds to the number of a key (missing or nil: 0) and stores the result in *out. An int64 or uint64
 * stays one, wraps, and takes whole deltas only. SL_EINVAL when the value is no number or the delta
 * does not suit it, errors of sl_keyed_put.
 */
int sl_keyed_add(struct sl_keyed *self, const struct sl_keyed_key *key, double delta,
                 struct sl_value *out);

/*
 * The way back from a value that only one key has: the key in a group whose hash has these upper 32
 * bits and whose value is this int64; false when there is none. Its bytes are valid until the next
 * change of the state.
 */
bool sl_keyed_find_i64(const struct sl_keyed *self, uint32_t group, uint32_t hash, int64_t value,
                       struct sl_value *key);

/*
 * Remembers the entry of a key and returns its index in places.entries, which holds until
 * places.moves changes. SL_ENOTFOUND; SL_ELIMIT when all places are taken or memory is short.
 */
int32_t sl_keyed_remember(struct sl_keyed *self, const struct sl_keyed_key *key);

/* Frees all places: their indexes mean nothing from now on. */
void sl_keyed_forget(struct sl_keyed *self);

/* Removes a key; false when it was not there. */
bool sl_keyed_remove(struct sl_keyed *self, const struct sl_keyed_key *key);

/*
 * Makes room for so many entries in all, spread evenly over the groups, so that adding them moves
 * none. SL_ENOMEM, SL_ELIMIT: groups that have got room keep it.
 */
int sl_keyed_reserve(struct sl_keyed *self, uint64_t count);

/* Removes the entries of all groups, or of one, and gives their memory back. */
void sl_keyed_clear(struct sl_keyed *self);
void sl_keyed_clear_group(struct sl_keyed *self, uint32_t group);

/* Entries of one group; 0 for a group that does not exist. */
uint32_t sl_keyed_group_count(const struct sl_keyed *self, uint32_t group);

/*
 * Gives the next entry and true, or false at the end. A zeroed iterator walks everything;
 * sl_keyed_iter_group makes one for a group. The entry just given may be removed and values may be
 * replaced; keys added meanwhile may be missed, and may make others be missed or seen twice.
 * Numbers that a double holds exactly are given as numbers, whatever type the key came in.
 */
bool sl_keyed_next(const struct sl_keyed *self, struct sl_keyed_iter *iter, struct sl_value *key,
                   struct sl_value *value);
struct sl_keyed_iter sl_keyed_iter_group(uint32_t group);

/*
 * Appends a section with all entries of a group, u32 group, u32 count, then keys and values in
 * their encoding, and says what it wrote. SL_EINVAL for a group that does not exist.
 */
int sl_keyed_export_group(const struct sl_keyed *self, uint32_t group, struct sl_buf *out,
                          struct sl_keyed_summary *summary);

/*
 * The bytes of the first entries of a section (`ptr` is behind its header) that fit into `most`, at
 * least one when there is any, and how many entries these are. SL_EPROTO for malformed ones.
 */
int64_t sl_keyed_section_fit(const uint8_t *ptr, size_t len, size_t most, uint32_t *count);

/*
 * Reads sections from anywhere, puts their entries and says what it read; the summary of an import
 * equals the sum of those of its exports. Everything is checked first: with SL_EPROTO nothing was
 * put. SL_ELIMIT and SL_ENOMEM leave what was put so far.
 */
int sl_keyed_import(struct sl_keyed *self, const uint8_t *ptr, size_t len,
                    struct sl_keyed_summary *summary);

/*
 * Takes over every group in which another state has entries, in place of its own, and leaves the
 * other one empty.  No entry is copied or moved, so the time is that of the number of groups; the
 * limit is not asked.  SL_EINVAL when their numbers of key groups differ.
 */
int sl_keyed_adopt(struct sl_keyed *self, struct sl_keyed *from);

/* Makes a key of any value; the bytes of a table are in the key form. SL_EPROTO if malformed. */
int sl_keyed_key_of(const struct sl_value *value, struct sl_keyed_key *out);

static inline struct sl_keyed_key
sl_keyed_key_i64(int64_t key)
{
    return (struct sl_keyed_key){sl_key_hash_i64(key), (uint64_t)key, 0, SL_KEYED_KEY_INTEGER};
}

static inline struct sl_keyed_key
sl_keyed_key_u64(uint64_t key)
{
    if (key >> 63 == 0) {
        return sl_keyed_key_i64((int64_t)key);
    }
    return (struct sl_keyed_key){sl_key_hash_u64(key), key, 0, SL_KEYED_KEY_LARGE};
}

static inline struct sl_keyed_key
sl_keyed_key_number(double key)
{
    int64_t integer;
    if (sl_double_is_i64(key, &integer)) {
        return sl_keyed_key_i64(integer);
    }
    if (key >= 9223372036854775808.0 && key < 18446744073709551616.0) {
        return sl_keyed_key_u64((uint64_t)key);
    }
    return (struct sl_keyed_key){sl_key_hash_number(key), sl_double_key_bits(key), 0,
                                 SL_KEYED_KEY_FRACTION};
}

/* Up to 8 bytes as an integer, the missing ones 0; reads nothing behind them. */
static inline uint64_t
sl_keyed_pack(const uint8_t *ptr, uint32_t len)
{
    if (len >= 4) {
        uint32_t head;
        uint32_t tail;
        memcpy(&head, ptr, 4);
        memcpy(&tail, ptr + len - 4, 4);
        /* The tail overlaps the head by 8 - len bytes: put where it belongs it says the same. */
        return head | (uint64_t)tail << (8 * (len - 4));
    }
    if (len == 0) {
        return 0;
    }
    /* First, middle and last byte: all there are, some of them twice. */
    return ptr[0] | (uint64_t)ptr[len / 2] << (8 * (len / 2)) |
           (uint64_t)ptr[len - 1] << (8 * (len - 1));
}

static inline struct sl_keyed_key
sl_keyed_key_string(const void *key, uint32_t len)
{
    struct sl_keyed_key out = {sl_key_hash_bytes(key, len), (uint64_t)(uintptr_t)key, len,
                               SL_KEYED_KEY_STRING | SL_KEYED_IN_BLOCK << 8};
    if (len <= SL_KEYED_INLINE_MAX) {
        out.bits = sl_keyed_pack(key, len);
        out.kind = (uint16_t)(SL_KEYED_KEY_STRING | len << 8);
    }
    return out;
}
