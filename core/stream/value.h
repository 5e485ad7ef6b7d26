#pragma once
/* Values: reading, writing, checking and hashing their encoding (see value.abi.h). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "stream/value.abi.h"

/*
 * The length of the well-formed value at the start of len bytes, which may come from anywhere.
 * SL_EPROTO when it is cut off, has an unknown tag, counts more items than there are bytes, nests
 * too deeply, or a map has a key that is no key.
 */
int64_t sl_value_measure(const uint8_t *ptr, size_t len);

/*
 * Reads the value at the start of len bytes into *out and returns the bytes it takes; errors as in
 * sl_value_measure. out->ptr points into the bytes.
 */
int64_t sl_value_read(const uint8_t *ptr, size_t len, struct sl_value *out);

/* Appends the encoding of a value; the bytes of a table must be a well-formed encoding. */
void sl_value_write(struct sl_buf *out, const struct sl_value *value);

/* Bytes that sl_value_write appends. */
size_t sl_value_size(const struct sl_value *value);

/*
 * The hash of a value as a key. Tables are hashed by content: a list as the fold of its items, in
 * the way the fields of a key of several fields are folded (so {a, b} meets the grouping by two
 * fields), a map regardless of the order of its pairs. SL_EPROTO when the encoding is malformed.
 */
int sl_value_key_hash(const uint8_t *ptr, size_t len, uint64_t *hash);

/* Constructors. */
static inline struct sl_value
sl_value_number(double number)
{
    return (struct sl_value){.number = number, .tag = SL_VALUE_NUMBER};
}

static inline struct sl_value
sl_value_i64(int64_t integer)
{
    return (struct sl_value){.integer = integer, .tag = SL_VALUE_INT64};
}

static inline struct sl_value
sl_value_u64(uint64_t integer)
{
    return (struct sl_value){.integer = (int64_t)integer, .tag = SL_VALUE_UINT64};
}

static inline struct sl_value
sl_value_string(const void *ptr, uint32_t len)
{
    return (struct sl_value){.ptr = ptr, .len = len, .tag = SL_VALUE_STRING};
}

static inline struct sl_value
sl_value_bool(bool is_true)
{
    return (struct sl_value){.tag = is_true ? SL_VALUE_TRUE : SL_VALUE_FALSE};
}

static inline struct sl_value
sl_value_nil(void)
{
    return (struct sl_value){.tag = SL_VALUE_NIL};
}

static inline struct sl_value
sl_value_null(void)
{
    return (struct sl_value){.tag = SL_VALUE_NULL};
}

/* A table from its encoding. */
static inline struct sl_value
sl_value_table(const void *encoded, uint32_t len)
{
    return (struct sl_value){.ptr = encoded, .len = len, .tag = SL_VALUE_TABLE};
}
