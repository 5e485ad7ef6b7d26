#include "abi/abi.h"
#include "base/alloc.h"
#include "base/err.h"
#include "stream/state_table.h"

static int
need(bool condition, const char *what)
{
    return condition ? 0 : sl_err_set(SL_EINVAL, "keyed state needs %s", what);
}

/* Makes a key of a string; a missing one may only be the empty one. */
static int
string_key(const struct sl_keyed *state, const char *key, size_t len, struct sl_keyed_key *out)
{
    int rc = need(state != NULL && (key != NULL || len == 0) && len <= UINT32_MAX,
                  "a state and a key of at most 4 GiB");
    if (rc == 0) {
        *out = sl_keyed_key_string(key, (uint32_t)len);
    }
    return rc;
}

static int
number_key(const struct sl_keyed *state, double key, struct sl_keyed_key *out)
{
    int rc = need(state != NULL, "a state");
    if (rc == 0) {
        *out = sl_keyed_key_number(key);
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
encoded_key(const struct sl_keyed *state, const uint8_t *key, size_t len, struct sl_keyed_key *out)
{
    struct sl_value value;
    int rc = need(state != NULL && key != NULL, "a state and a key");
    if (rc == 0) {
        rc = read_encoded(key, len, &value);
    }
    return rc == 0 ? sl_keyed_key_of(&value, out) : rc;
}

static int
bytes_value(uint32_t tag, const void *ptr, size_t len, struct sl_value *out)
{
    int rc = need((ptr != NULL || len == 0) && len <= UINT32_MAX, "a value of at most 4 GiB");
    if (rc != 0) {
        return rc;
    }
    if (tag == SL_VALUE_STRING) {
        *out = sl_value_string(ptr, (uint32_t)len);
        return 0;
    }
    rc = need(tag == SL_VALUE_TABLE && ptr != NULL, "the bytes of a string or an encoded value");
    return rc == 0 ? read_encoded(ptr, len, out) : rc;
}

struct sl_keyed *
sl_keyed_new(uint32_t key_groups, uint64_t limit_bytes)
{
    struct sl_keyed *state = sl_calloc(1, sizeof(*state));
    if (sl_keyed_create(state, key_groups, limit_bytes) != 0) {
        sl_free(state);
        return NULL;
    }
    return state;
}

void
sl_keyed_free(struct sl_keyed *state)
{
    if (state != NULL) {
        sl_keyed_destroy(state);
        sl_free(state);
    }
}

double
sl_keyed_size(const struct sl_keyed *state)
{
    return state != NULL ? (double)state->count : 0;
}

double
sl_keyed_memory(const struct sl_keyed *state)
{
    return state != NULL ? (double)state->bytes : 0;
}

const struct sl_keyed_places *
sl_keyed_places(const struct sl_keyed *state)
{
    return state != NULL ? &state->places : NULL;
}

int32_t
sl_keyed_remember_string(struct sl_keyed *state, const char *key, size_t len)
{
    struct sl_keyed_key made;
    int rc = string_key(state, key, len, &made);
    return rc == 0 ? sl_keyed_remember(state, &made) : rc;
}

void
sl_keyed_forget_all(struct sl_keyed *state)
{
    if (state != NULL) {
        sl_keyed_forget(state);
    }
}

void
sl_keyed_remove_all(struct sl_keyed *state)
{
    if (state != NULL) {
        sl_keyed_clear(state);
    }
}

static int32_t
get(const struct sl_keyed *state, const struct sl_keyed_key *key, struct sl_value *out)
{
    int rc = need(out != NULL, "a place for the value");
    if (rc != 0) {
        return rc;
    }
    out->tag = SL_VALUE_NIL;
    return sl_keyed_get(state, key, out);
}

int32_t
sl_keyed_get_number(const struct sl_keyed *state, double key, struct sl_value *out)
{
    struct sl_keyed_key made;
    int rc = number_key(state, key, &made);
    return rc == 0 ? get(state, &made, out) : rc;
}

int32_t
sl_keyed_get_string(const struct sl_keyed *state, const char *key, size_t len, struct sl_value *out)
{
    struct sl_keyed_key made;
    int rc = string_key(state, key, len, &made);
    return rc == 0 ? get(state, &made, out) : rc;
}

int32_t
sl_keyed_get_encoded(const struct sl_keyed *state, const uint8_t *key, size_t len,
                     struct sl_value *out)
{
    struct sl_keyed_key made;
    int rc = encoded_key(state, key, len, &made);
    return rc == 0 ? get(state, &made, out) : rc;
}

int32_t
sl_keyed_put_number_number(struct sl_keyed *state, double key, double value)
{
    struct sl_keyed_key made;
    struct sl_value number = sl_value_number(value);
    int rc = number_key(state, key, &made);
    return rc == 0 ? sl_keyed_put(state, &made, &number) : rc;
}

int32_t
sl_keyed_put_string_number(struct sl_keyed *state, const char *key, size_t len, double value)
{
    struct sl_keyed_key made;
    struct sl_value number = sl_value_number(value);
    int rc = string_key(state, key, len, &made);
    return rc == 0 ? sl_keyed_put(state, &made, &number) : rc;
}

static int32_t
put_bytes(struct sl_keyed *state, const struct sl_keyed_key *key, uint32_t tag, const void *value,
          size_t value_len)
{
    struct sl_value made;
    int rc = bytes_value(tag, value, value_len, &made);
    return rc == 0 ? sl_keyed_put(state, key, &made) : rc;
}

int32_t
sl_keyed_put_number(struct sl_keyed *state, double key, uint32_t tag, const void *value,
                    size_t value_len)
{
    struct sl_keyed_key made;
    int rc = number_key(state, key, &made);
    return rc == 0 ? put_bytes(state, &made, tag, value, value_len) : rc;
}

int32_t
sl_keyed_put_string(struct sl_keyed *state, const char *key, size_t len, uint32_t tag,
                    const void *value, size_t value_len)
{
    struct sl_keyed_key made;
    int rc = string_key(state, key, len, &made);
    return rc == 0 ? put_bytes(state, &made, tag, value, value_len) : rc;
}

int32_t
sl_keyed_put_encoded(struct sl_keyed *state, const uint8_t *key, size_t len, uint32_t tag,
                     const void *value, size_t value_len)
{
    struct sl_keyed_key made;
    int rc = encoded_key(state, key, len, &made);
    return rc == 0 ? put_bytes(state, &made, tag, value, value_len) : rc;
}

static int32_t
add(struct sl_keyed *state, const struct sl_keyed_key *key, double delta, struct sl_value *out)
{
    int rc = need(out != NULL, "a place for the result");
    return rc == 0 ? sl_keyed_add(state, key, delta, out) : rc;
}

int32_t
sl_keyed_add_number(struct sl_keyed *state, double key, double delta, struct sl_value *out)
{
    struct sl_keyed_key made;
    int rc = number_key(state, key, &made);
    return rc == 0 ? add(state, &made, delta, out) : rc;
}

int32_t
sl_keyed_add_string(struct sl_keyed *state, const char *key, size_t len, double delta,
                    struct sl_value *out)
{
    struct sl_keyed_key made;
    int rc = string_key(state, key, len, &made);
    return rc == 0 ? add(state, &made, delta, out) : rc;
}

int32_t
sl_keyed_add_encoded(struct sl_keyed *state, const uint8_t *key, size_t len, double delta,
                     struct sl_value *out)
{
    struct sl_keyed_key made;
    int rc = encoded_key(state, key, len, &made);
    return rc == 0 ? add(state, &made, delta, out) : rc;
}

int32_t
sl_keyed_remove_number(struct sl_keyed *state, double key)
{
    struct sl_keyed_key made;
    int rc = number_key(state, key, &made);
    return rc == 0 ? sl_keyed_remove(state, &made) : rc;
}

int32_t
sl_keyed_remove_string(struct sl_keyed *state, const char *key, size_t len)
{
    struct sl_keyed_key made;
    int rc = string_key(state, key, len, &made);
    return rc == 0 ? sl_keyed_remove(state, &made) : rc;
}

int32_t
sl_keyed_remove_encoded(struct sl_keyed *state, const uint8_t *key, size_t len)
{
    struct sl_keyed_key made;
    int rc = encoded_key(state, key, len, &made);
    return rc == 0 ? sl_keyed_remove(state, &made) : rc;
}

int32_t
sl_keyed_walk(const struct sl_keyed *state, struct sl_keyed_iter *iter, struct sl_value *key,
              struct sl_value *value)
{
    int rc = need(state != NULL && iter != NULL && key != NULL && value != NULL,
                  "a state, an iterator, a key and a value");
    return rc == 0 ? sl_keyed_next(state, iter, key, value) : rc;
}

const uint8_t *
sl_keyed_export(struct sl_keyed *state, uint32_t group, size_t *len,
                struct sl_keyed_summary *summary)
{
    if (need(state != NULL && len != NULL && summary != NULL, "a state and places for results")) {
        return NULL;
    }
    sl_buf_clear(&state->exported);
    if (sl_keyed_export_group(state, group, &state->exported, summary) != 0) {
        return NULL;
    }
    *len = state->exported.size;
    return state->exported.data;
}

int64_t
sl_keyed_entries_fit(const uint8_t *bytes, size_t len, size_t most, uint32_t *count)
{
    int rc = need(count != NULL && (bytes != NULL || len == 0), "bytes and a place for the count");
    return rc == 0 ? sl_keyed_section_fit(bytes, len, most, count) : rc;
}

int32_t
sl_keyed_import_bytes(struct sl_keyed *state, const uint8_t *bytes, size_t len,
                      struct sl_keyed_summary *summary)
{
    int rc = need(state != NULL && summary != NULL && (bytes != NULL || len == 0),
                  "a state, bytes and a place for the summary");
    return rc == 0 ? sl_keyed_import(state, bytes, len, summary) : rc;
}

int32_t
sl_keyed_take(struct sl_keyed *state, struct sl_keyed *from)
{
    int rc = need(state != NULL && from != NULL && state != from, "two states");
    return rc == 0 ? sl_keyed_adopt(state, from) : rc;
}

void
sl_keyed_remove_group(struct sl_keyed *state, uint32_t group)
{
    if (state != NULL) {
        sl_keyed_clear_group(state, group);
    }
}
