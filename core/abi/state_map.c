#include "batch/state_map.h"

#include <stddef.h>

#include "abi/abi.h"
#include "base/alloc.h"
#include "base/err.h"

static int
need(bool condition, const char *what)
{
    return condition ? 0 : sl_err_set(SL_EINVAL, "a state map needs %s", what);
}

static int
number_key(const struct sl_state_map *map, double key, struct sl_keyed_key *out)
{
    *out = sl_keyed_key_number(key);
    return need(map != NULL, "a map");
}

static int
string_key(const struct sl_state_map *map, const char *key, size_t len, struct sl_keyed_key *out)
{
    int rc = need(map != NULL && (key != NULL || len == 0) && len <= UINT32_MAX,
                  "a map and a key of at most 4 GiB");
    if (rc == 0) {
        *out = sl_keyed_key_string(key, (uint32_t)len);
    }
    return rc;
}

/* Reads an encoded value that takes exactly len bytes. */
static int
read_encoded(const uint8_t *ptr, size_t len, struct sl_value *out)
{
    int64_t size = sl_value_read(ptr, len, out);
    if (size < 0) {
        return (int)size;
    }
    return (size_t)size == len ? 0 : sl_err_set(SL_EPROTO, "bytes behind an encoded value");
}

static int
encoded_key(const struct sl_state_map *map, const uint8_t *key, size_t len,
            struct sl_keyed_key *out)
{
    struct sl_value value;
    int rc = need(map != NULL && key != NULL, "a map and a key");
    if (rc == 0) {
        rc = read_encoded(key, len, &value);
    }
    return rc == 0 ? sl_keyed_key_of(&value, out) : rc;
}

static int32_t
get(const struct sl_state_map *map, const struct sl_keyed_key *key, struct sl_value *value,
    int64_t *time)
{
    int rc = need(value != NULL && time != NULL, "places for value and time");
    return rc == 0 ? sl_state_map_get(map, key, value, time) : rc;
}

static int32_t
put_number(struct sl_state_map *map, const struct sl_keyed_key *key, double number, int64_t time)
{
    struct sl_value value = sl_value_number(number);
    return sl_state_map_put(map, key, &value, time);
}

static int32_t
put_bytes(struct sl_state_map *map, const struct sl_keyed_key *key, uint32_t tag, const void *ptr,
          size_t len, int64_t time)
{
    struct sl_value value;
    int rc = need((ptr != NULL || len == 0) && len <= UINT32_MAX, "a value of at most 4 GiB");
    if (rc == 0 && tag == SL_VALUE_STRING) {
        value = sl_value_string(ptr, (uint32_t)len);
    } else if (rc == 0) {
        rc =
            need(tag == SL_VALUE_TABLE && ptr != NULL, "the bytes of a string or an encoded value");
        rc = rc == 0 ? read_encoded(ptr, len, &value) : rc;
    }
    return rc == 0 ? sl_state_map_put(map, key, &value, time) : rc;
}

struct sl_state_map *
sl_abi_state_map_new(void)
{
    struct sl_state_map *map = sl_alloc(sizeof(*map));
    if (sl_state_map_create(map) != 0) {
        sl_free(map);
        return NULL;
    }
    return map;
}

void
sl_abi_state_map_free(struct sl_state_map *map)
{
    if (map != NULL) {
        sl_state_map_destroy(map);
        sl_free(map);
    }
}

double
sl_abi_state_map_size(const struct sl_state_map *map)
{
    return map != NULL ? (double)sl_state_map_size(map) : 0;
}

double
sl_abi_state_map_memory(const struct sl_state_map *map)
{
    return map != NULL ? (double)sl_state_map_memory(map) : 0;
}

void
sl_abi_state_map_clear(struct sl_state_map *map)
{
    if (map != NULL) {
        sl_state_map_clear(map);
    }
}

int32_t
sl_abi_state_map_get_number(const struct sl_state_map *map, double key, struct sl_value *value,
                            int64_t *time)
{
    struct sl_keyed_key made;
    int rc = number_key(map, key, &made);
    return rc == 0 ? get(map, &made, value, time) : rc;
}

int32_t
sl_abi_state_map_put_number_number(struct sl_state_map *map, double key, double value, int64_t time)
{
    struct sl_keyed_key made;
    int rc = number_key(map, key, &made);
    return rc == 0 ? put_number(map, &made, value, time) : rc;
}

int32_t
sl_abi_state_map_put_number(struct sl_state_map *map, double key, uint32_t tag, const void *value,
                            size_t value_len, int64_t time)
{
    struct sl_keyed_key made;
    int rc = number_key(map, key, &made);
    return rc == 0 ? put_bytes(map, &made, tag, value, value_len, time) : rc;
}

int32_t
sl_abi_state_map_remove_number(struct sl_state_map *map, double key)
{
    struct sl_keyed_key made;
    int rc = number_key(map, key, &made);
    return rc == 0 ? sl_state_map_remove(map, &made) : rc;
}

int32_t
sl_abi_state_map_get_string(const struct sl_state_map *map, const char *key, size_t len,
                            struct sl_value *value, int64_t *time)
{
    struct sl_keyed_key made;
    int rc = string_key(map, key, len, &made);
    return rc == 0 ? get(map, &made, value, time) : rc;
}

int32_t
sl_abi_state_map_put_string_number(struct sl_state_map *map, const char *key, size_t len,
                                   double value, int64_t time)
{
    struct sl_keyed_key made;
    int rc = string_key(map, key, len, &made);
    return rc == 0 ? put_number(map, &made, value, time) : rc;
}

int32_t
sl_abi_state_map_put_string(struct sl_state_map *map, const char *key, size_t len, uint32_t tag,
                            const void *value, size_t value_len, int64_t time)
{
    struct sl_keyed_key made;
    int rc = string_key(map, key, len, &made);
    return rc == 0 ? put_bytes(map, &made, tag, value, value_len, time) : rc;
}

int32_t
sl_abi_state_map_remove_string(struct sl_state_map *map, const char *key, size_t len)
{
    struct sl_keyed_key made;
    int rc = string_key(map, key, len, &made);
    return rc == 0 ? sl_state_map_remove(map, &made) : rc;
}

int32_t
sl_abi_state_map_get_encoded(const struct sl_state_map *map, const uint8_t *key, size_t len,
                             struct sl_value *value, int64_t *time)
{
    struct sl_keyed_key made;
    int rc = encoded_key(map, key, len, &made);
    return rc == 0 ? get(map, &made, value, time) : rc;
}

int32_t
sl_abi_state_map_put_encoded_number(struct sl_state_map *map, const uint8_t *key, size_t len,
                                    double value, int64_t time)
{
    struct sl_keyed_key made;
    int rc = encoded_key(map, key, len, &made);
    return rc == 0 ? put_number(map, &made, value, time) : rc;
}

int32_t
sl_abi_state_map_put_encoded(struct sl_state_map *map, const uint8_t *key, size_t len, uint32_t tag,
                             const void *value, size_t value_len, int64_t time)
{
    struct sl_keyed_key made;
    int rc = encoded_key(map, key, len, &made);
    return rc == 0 ? put_bytes(map, &made, tag, value, value_len, time) : rc;
}

int32_t
sl_abi_state_map_remove_encoded(struct sl_state_map *map, const uint8_t *key, size_t len)
{
    struct sl_keyed_key made;
    int rc = encoded_key(map, key, len, &made);
    return rc == 0 ? sl_state_map_remove(map, &made) : rc;
}

int32_t
sl_abi_state_map_walk(const struct sl_state_map *map, struct sl_keyed_iter *iter,
                      struct sl_value *key, struct sl_value *value, int64_t *time)
{
    int rc = need(map != NULL && iter != NULL && key != NULL && value != NULL && time != NULL,
                  "a map, an iterator and places for an entry");
    return rc == 0 ? sl_state_map_next(map, iter, key, value, time) : rc;
}

int32_t
sl_abi_state_map_expired(struct sl_state_map *map, int64_t threshold, struct sl_value *key,
                         struct sl_value *value, int64_t *time)
{
    int rc = need(map != NULL && key != NULL && value != NULL && time != NULL,
                  "a map and places for an entry");
    return rc == 0 ? sl_state_map_expired(map, threshold, key, value, time) : rc;
}

int32_t
sl_abi_state_map_save(const struct sl_state_map *map, const char *path)
{
    int rc = need(map != NULL && path != NULL, "a map and a path");
    return rc == 0 ? sl_state_map_save(map, path) : rc;
}

int32_t
sl_abi_state_map_load(struct sl_state_map *map, const char *path)
{
    int rc = need(map != NULL && path != NULL, "a map and a path");
    return rc == 0 ? sl_state_map_load(map, path) : rc;
}
