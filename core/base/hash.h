#pragma once
/*
 * Hashes. Two families live here:
 *
 * - sl_hash_*: for tables inside one process (and anything that wants a good fast hash of bytes);
 * - sl_key_hash_*: the stable hash of a *value used as a key* (fields grouping, keyed state,
 * shuffles). It is the same in every process and on every node, and a plan's key groups depend on
 * it: changing one bit of it changes which task owns which key. Golden values are pinned in the
 * unit test.
 *
 * Keys that are equal have equal hashes. Numbers are equal by value whatever their type: 1, 1.0,
 * 1LL and 1ULL are one key, -0 is 0, all NaNs are one, and the double 2^60 is the int64 2^60.
 * Strings are equal by bytes, tables by content
 * (their hash needs the encoding of values: sl_value_key_hash in stream/value.h builds it from
 * these).
 *
 * Bytes are hashed with XXH3 (64 bits) under the fixed seeds below, integers with the finaliser of
 * splitmix64. All machines are taken to be little-endian or to give XXH3's portable result, which
 * it guarantees.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Seeds and tags: arbitrary odd constants that keep the kinds of keys apart. They never change. */
#define SL_HASH_SEED UINT64_C(0x5374726561d4c75b)
#define SL_KEY_SEED_TABLE UINT64_C(0x8cb92ba72f3d8dd7)
#define SL_KEY_TAG_INTEGER UINT64_C(0x9e3779b97f4a7c15)
#define SL_KEY_TAG_LARGE UINT64_C(0xc2b2ae3d27d4eb4f)
#define SL_KEY_TAG_FRACTION UINT64_C(0x165667b19e3779f9)
#define SL_KEY_TAG_NIL UINT64_C(0xd6e8feb86659fd93)
#define SL_KEY_TAG_FALSE UINT64_C(0xa0761d6478bd642f)
#define SL_KEY_TAG_TRUE UINT64_C(0xe7037ed1a0b428db)
#define SL_KEY_TAG_NULL UINT64_C(0x8ebc6af09c88c6e3)

/* The finaliser of splitmix64: a bijection of 64 bits in which every input bit reaches every output
 * bit. */
static inline uint64_t
sl_mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t
sl_hash_u64(uint64_t x)
{
    return sl_mix64(x + SL_KEY_TAG_INTEGER);
}

static inline uint64_t
sl_hash_bytes(const void *ptr, size_t len)
{
    return (uint64_t)XXH3_64bits_withSeed(ptr, len, SL_HASH_SEED);
}

/* Hash of a key that is an integer of the int64 range. */
static inline uint64_t
sl_key_hash_i64(int64_t value)
{
    return sl_mix64((uint64_t)value ^ SL_KEY_TAG_INTEGER);
}

/* Hash of a key that is an integer of the uint64 range; below 2^63 it is the hash of the same
 * int64. */
static inline uint64_t
sl_key_hash_u64(uint64_t value)
{
    return sl_mix64(value ^ (value >> 63 ? SL_KEY_TAG_LARGE : SL_KEY_TAG_INTEGER));
}

/* True when the double is an integer of the int64 range, which is then stored in *out. */
static inline bool
sl_double_is_i64(double value, int64_t *out)
{
    /* Both bounds are exact doubles; a NaN fails the comparison. */
    if (value >= -9223372036854775808.0 && value < 9223372036854775808.0) {
        *out = (int64_t)value;
        return (double)*out == value;
    }
    return false;
}

/* The bits of a double with all NaNs made one. */
static inline uint64_t
sl_double_key_bits(double value)
{
    uint64_t bits = UINT64_C(0x7ff8000000000000);
    if (value == value) {
        memcpy(&bits, &value, sizeof(bits));
    }
    return bits;
}

/* Hash of a key that is a Lua number. */
static inline uint64_t
sl_key_hash_number(double value)
{
    int64_t integer;
    if (sl_double_is_i64(value, &integer)) {
        return sl_key_hash_i64(integer);
    }
    if (value >= 9223372036854775808.0 && value < 18446744073709551616.0) {
        /* At this size every double is an integer. */
        return sl_key_hash_u64((uint64_t)value);
    }
    return sl_mix64(sl_double_key_bits(value) ^ SL_KEY_TAG_FRACTION);
}

/* Hash of a key that is a string of any bytes. */
static inline uint64_t
sl_key_hash_bytes(const void *ptr, size_t len)
{
    return sl_hash_bytes(ptr, len);
}

static inline uint64_t
sl_key_hash_nil(void)
{
    return sl_mix64(SL_KEY_TAG_NIL);
}

static inline uint64_t
sl_key_hash_bool(bool value)
{
    return sl_mix64(value ? SL_KEY_TAG_TRUE : SL_KEY_TAG_FALSE);
}

/* Hash of streamlua.null. */
static inline uint64_t
sl_key_hash_null(void)
{
    return sl_mix64(SL_KEY_TAG_NULL);
}

/*
 * Hash of a key of several fields: start with the hash of the first and fold in the others in
 * order, so that a key of one field has that field's hash. The order matters.
 */
static inline uint64_t
sl_key_hash_combine(uint64_t hash, uint64_t next)
{
    return sl_mix64(((hash << 27) | (hash >> 37)) * UINT64_C(0x9fb21c651e98df25) + next);
}

/*
 * The key group of a hash: hash mod group_count, in [0, group_count). The low bits decide, so a
 * table inside a group must use the high ones. group_count 0 is taken as 1.
 */
static inline uint32_t
sl_key_group(uint64_t hash, uint32_t group_count)
{
    if ((group_count & (group_count - 1)) == 0) {
        return (uint32_t)hash & (group_count - (group_count != 0));
    }
    return (uint32_t)(hash % group_count);
}
