#include "abi/abi.h"
#include "base/err.h"
#include "base/hash.h"
#include "stream/value.h"

uint64_t
sl_keyhash_number(double key)
{
    return sl_key_hash_number(key);
}

uint64_t
sl_keyhash_string(const char *key, size_t len)
{
    return sl_key_hash_bytes(key, len);
}

int32_t
sl_keyhash_encoded(const uint8_t *key, size_t len, uint64_t *hash)
{
    if (key == NULL || hash == NULL) {
        return sl_err_set(SL_EINVAL, "a key and a place for its hash are needed");
    }
    return sl_value_key_hash(key, len, hash);
}

uint64_t
sl_keyhash_combine(uint64_t hash, uint64_t next)
{
    return sl_key_hash_combine(hash, next);
}

uint32_t
sl_keyhash_group(uint64_t hash, uint32_t group_count)
{
    return sl_key_group(hash, group_count);
}

uint32_t
sl_keyhash_group_of_number(double key, uint32_t group_count)
{
    return sl_key_group(sl_key_hash_number(key), group_count);
}

uint32_t
sl_keyhash_group_of_string(const char *key, size_t len, uint32_t group_count)
{
    return sl_key_group(sl_key_hash_bytes(key, len), group_count);
}

const uint8_t *
sl_value_checked(const uint8_t *value, size_t len)
{
    if (value == NULL) {
        sl_err_set(SL_EINVAL, "no encoded value");
        return NULL;
    }
    int64_t size = sl_value_measure(value, len);
    if (size >= 0 && (size_t)size != len) {
        sl_err_set(SL_EPROTO, "%zu bytes behind the encoded value", len - (size_t)size);
    }
    return size >= 0 && (size_t)size == len ? value : NULL;
}
