#include "stream/value.h"

#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/hash.h"

/* A place in bytes that may be malformed. */
struct reader {
    const uint8_t *at;
    const uint8_t *end;
};

static size_t
reader_left(const struct reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

/* Takes 4 or 8 bytes as a little-endian integer; false when they are not there. */
static bool
read_integer(struct reader *reader, size_t width, uint64_t *out)
{
    if (reader_left(reader) < width) {
        return false;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++) {
        value |= (uint64_t)reader->at[i] << (8 * i);
    }
    reader->at += width;
    *out = value;
    return true;
}

/* Takes the count of a list or map whose items have at least min_bytes each. */
static bool
read_count(struct reader *reader, size_t min_bytes, uint64_t *count)
{
    return read_integer(reader, 4, count) && *count <= reader_left(reader) / min_bytes;
}

static bool
is_map_key(const uint8_t *at)
{
    if (*at == SL_VALUE_NUMBER) {
        double number;
        memcpy(&number, at + 1, sizeof(number));
        return number == number;
    }
    return *at == SL_VALUE_STRING || *at == SL_VALUE_FALSE || *at == SL_VALUE_TRUE ||
           *at == SL_VALUE_NULL;
}

/* Steps over one value; tables_left is how many more levels of tables it may have. */
static bool
skip_value(struct reader *reader, int tables_left)
{
    uint64_t size;
    if (reader_left(reader) == 0) {
        return false;
    }
    uint8_t tag = *reader->at++;
    switch (tag) {
    case SL_VALUE_NIL:
    case SL_VALUE_FALSE:
    case SL_VALUE_TRUE:
    case SL_VALUE_NULL:
        return true;
    case SL_VALUE_NUMBER:
    case SL_VALUE_INT64:
    case SL_VALUE_UINT64:
        return read_integer(reader, 8, &size);
    case SL_VALUE_STRING:
        if (!read_count(reader, 1, &size)) {
            return false;
        }
        reader->at += size;
        return true;
    case SL_VALUE_TABLE:
        if (tables_left == 0 || !read_count(reader, 1, &size) || size == 0) {
            return false;
        }
        for (uint64_t i = 0; i < size; i++) {
            if (!skip_value(reader, tables_left - 1)) {
                return false;
            }
        }
        return true;
    case SL_VALUE_MAP:
        if (tables_left == 0 || !read_count(reader, 2, &size)) {
            return false;
        }
        for (uint64_t i = 0; i < size; i++) {
            const uint8_t *key = reader->at;
            if (!skip_value(reader, 0) || !is_map_key(key) ||
                !skip_value(reader, tables_left - 1)) {
                return false;
            }
        }
        return true;
    default:
        return false;
    }
}

int64_t
sl_value_measure(const uint8_t *ptr, size_t len)
{
    struct reader reader = {ptr, ptr + len};
    if (!skip_value(&reader, SL_VALUE_DEPTH_MAX)) {
        return sl_err_set(SL_EPROTO, "malformed encoded value");
    }
    return reader.at - ptr;
}

int64_t
sl_value_read(const uint8_t *ptr, size_t len, struct sl_value *out)
{
    int64_t size = sl_value_measure(ptr, len);
    if (size < 0) {
        return size;
    }
    struct reader reader = {ptr + 1, ptr + size};
    uint64_t bits = 0;
    memset(out, 0, sizeof(*out));
    out->tag = ptr[0];
    switch (ptr[0]) {
    case SL_VALUE_NUMBER:
        read_integer(&reader, 8, &bits);
        memcpy(&out->number, &bits, sizeof(bits));
        break;
    case SL_VALUE_INT64:
    case SL_VALUE_UINT64:
        read_integer(&reader, 8, &bits);
        out->integer = (int64_t)bits;
        break;
    case SL_VALUE_STRING:
        out->ptr = ptr + 5;
        out->len = (uint32_t)(size - 5);
        break;
    case SL_VALUE_TABLE:
    case SL_VALUE_MAP:
        if (size > UINT32_MAX) {
            return sl_err_set(SL_EPROTO, "encoded table of more than 4 GiB");
        }
        out->tag = SL_VALUE_TABLE;
        out->ptr = ptr;
        out->len = (uint32_t)size;
        break;
    default:
        break;
    }
    return size;
}

size_t
sl_value_size(const struct sl_value *value)
{
    switch (value->tag) {
    case SL_VALUE_NUMBER:
    case SL_VALUE_INT64:
    case SL_VALUE_UINT64:
        return 9;
    case SL_VALUE_STRING:
        return 5 + (size_t)value->len;
    case SL_VALUE_TABLE:
        return value->len;
    default:
        return 1;
    }
}

void
sl_value_write(struct sl_buf *out, const struct sl_value *value)
{
    uint64_t bits = (uint64_t)value->integer;
    switch (value->tag) {
    case SL_VALUE_NUMBER:
        bits = sl_double_key_bits(value->number);
        sl_buf_append_u8(out, SL_VALUE_NUMBER);
        sl_buf_append_u64(out, bits);
        break;
    case SL_VALUE_INT64:
    case SL_VALUE_UINT64:
        sl_buf_append_u8(out, (uint8_t)value->tag);
        sl_buf_append_u64(out, bits);
        break;
    case SL_VALUE_STRING:
        sl_buf_append_u8(out, SL_VALUE_STRING);
        sl_buf_append_u32(out, value->len);
        sl_buf_append(out, value->ptr, value->len);
        break;
    case SL_VALUE_TABLE:
        sl_buf_append(out, value->ptr, value->len);
        break;
    default:
        sl_assert_le(value->tag, SL_VALUE_NULL);
        sl_buf_append_u8(out, (uint8_t)value->tag);
    }
}

/* Hashes the well-formed value at the reader and steps over it. */
static uint64_t
hash_value(struct reader *reader)
{
    uint64_t size = 0;
    uint64_t hash = 0;
    uint8_t tag = *reader->at++;
    switch (tag) {
    case SL_VALUE_NUMBER: {
        double number;
        read_integer(reader, 8, &size);
        memcpy(&number, &size, sizeof(number));
        return sl_key_hash_number(number);
    }
    case SL_VALUE_INT64:
        read_integer(reader, 8, &size);
        return sl_key_hash_i64((int64_t)size);
    case SL_VALUE_UINT64:
        read_integer(reader, 8, &size);
        return sl_key_hash_u64(size);
    case SL_VALUE_STRING:
        read_integer(reader, 4, &size);
        hash = sl_key_hash_bytes(reader->at, size);
        reader->at += size;
        return hash;
    case SL_VALUE_TABLE:
        read_integer(reader, 4, &size);
        hash = hash_value(reader);
        for (uint64_t i = 1; i < size; i++) {
            hash = sl_key_hash_combine(hash, hash_value(reader));
        }
        return hash;
    case SL_VALUE_MAP:
        read_integer(reader, 4, &size);
        for (uint64_t i = 0; i < size; i++) {
            uint64_t key_hash = hash_value(reader);
            /* A sum, so that the order of the pairs does not matter. */
            hash += sl_key_hash_combine(key_hash, hash_value(reader));
        }
        return sl_mix64((hash + size) ^ SL_KEY_SEED_TABLE);
    case SL_VALUE_FALSE:
    case SL_VALUE_TRUE:
        return sl_key_hash_bool(tag == SL_VALUE_TRUE);
    case SL_VALUE_NULL:
        return sl_key_hash_null();
    default:
        return sl_key_hash_nil();
    }
}

int
sl_value_key_hash(const uint8_t *ptr, size_t len, uint64_t *hash)
{
    int64_t size = sl_value_measure(ptr, len);
    if (size < 0) {
        return (int)size;
    }
    struct reader reader = {ptr, ptr + size};
    *hash = hash_value(&reader);
    return 0;
}
