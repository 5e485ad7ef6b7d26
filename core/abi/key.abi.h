/*
 * The stable hash of values as keys: what decides the key group of a tuple or of an entry of keyed
 * state. This is a bare header.
 */

/* Returns the hash of a Lua number as a key. */
uint64_t sl_keyhash_number(double key);

/* Returns the hash of a string of len bytes as a key. */
uint64_t sl_keyhash_string(const char *key, size_t len);

/*
 * Stores the hash of an encoded value (stream/value.abi.h) as a key in *hash. Returns 0, or
 * SL_EPROTO when the len bytes are malformed, SL_EINVAL without a place for the result.
 */
int32_t sl_keyhash_encoded(const uint8_t *key, size_t len, uint64_t *hash);

/* Returns the hash of a key of several fields: folds `next` into the hash of those before it. */
uint64_t sl_keyhash_combine(uint64_t hash, uint64_t next);

/* Returns the key group of a hash, hash mod group_count, from 0; group_count 0 counts as 1. */
uint32_t sl_keyhash_group(uint64_t hash, uint32_t group_count);

/* Returns the key group of a number, as sl_keyhash_group(sl_keyhash_number(key), group_count). */
uint32_t sl_keyhash_group_of_number(double key, uint32_t group_count);

/* Returns the key group of a string of len bytes. */
uint32_t sl_keyhash_group_of_string(const char *key, size_t len, uint32_t group_count);

/*
 * Returns `value` when its len bytes are exactly one well-formed encoded value. NULL with SL_EPROTO
 * when they are not, with SL_EINVAL when value is NULL.
 */
const uint8_t *sl_value_checked(const uint8_t *value, size_t len);
