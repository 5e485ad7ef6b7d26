#pragma once
/* Keys and values of every kind for the tests of keyed state. */

#include "base/err.h"
#include "stream/state_table.h"
#include "unit.h"

enum { KEYS = 240 };

/* The key with this index, of every kind. */
static inline struct sl_value
nth_key(int index)
{
    static uint8_t bytes[KEYS][64];
    uint8_t *mine = bytes[index];
    if (index == 0) {
        return sl_value_nil();
    } else if (index == 1 || index == 2) {
        return sl_value_bool(index == 1);
    } else if (index == 3) {
        return sl_value_null();
    } else if (index < 60) {
        return sl_value_number((index - 30) / 2.0);
    } else if (index < 80) {
        return sl_value_i64((INT64_C(1) << 53) + index * 2 + 1);
    } else if (index < 99) {
        return sl_value_u64(UINT64_MAX - (uint64_t)index);
    } else if (index < 220) {
        /* The empty string, then four strings of each length. */
        uint32_t len = (uint32_t)index / 4 - 24;
        memset(mine, 'x', len);
        if (len > 0) {
            mine[len - 1] = (uint8_t)(index % 4);
        }
        return sl_value_string(mine, len);
    }
    /* A list of one number. */
    mine[0] = SL_VALUE_TABLE;
    mine[1] = 1;
    mine[2] = mine[3] = mine[4] = 0;
    mine[5] = SL_VALUE_NUMBER;
    double number = index;
    memcpy(mine + 6, &number, 8);
    return sl_value_table(mine, 14);
}

static inline struct sl_keyed_key
key_of(struct sl_value value)
{
    struct sl_keyed_key key;
    assert_int_equal(sl_keyed_key_of(&value, &key), 0);
    return key;
}

static inline bool
values_equal(const struct sl_value *a, const struct sl_value *b)
{
    if (a->tag != b->tag) {
        return false;
    }
    switch (a->tag) {
    case SL_VALUE_NUMBER:
        return a->number == b->number;
    case SL_VALUE_INT64:
    case SL_VALUE_UINT64:
        return a->integer == b->integer;
    case SL_VALUE_STRING:
    case SL_VALUE_TABLE:
        return a->len == b->len && memcmp(a->ptr, b->ptr, a->len) == 0;
    default:
        return true;
    }
}

/* The value with this number, of every kind; strings of 0 to 40 bytes. */
static inline struct sl_value
nth_value(uint64_t n)
{
    static const uint8_t table[] = {SL_VALUE_MAP, 1, 0, 0, 0, SL_VALUE_NULL, SL_VALUE_TRUE};
    static const char text[] = "0123456789012345678901234567890123456789";
    switch (n % 8) {
    case 0:
        return sl_value_number((double)n);
    case 1:
        return sl_value_i64(-(int64_t)n);
    case 2:
        return sl_value_u64(n << 32);
    case 3:
        return sl_value_bool(n % 16 == 3);
    case 4:
        return sl_value_null();
    case 5:
        return sl_value_table(table, sizeof(table));
    case 6:
        return sl_value_nil();
    default:
        return sl_value_string(text, (uint32_t)(n / 8 % 41));
    }
}

static inline void
fill_with_all_keys(struct sl_keyed *table)
{
    for (int i = 0; i < KEYS; i++) {
        struct sl_keyed_key key = key_of(nth_key(i));
        struct sl_value value = nth_value((uint64_t)i * 7);
        assert_int_equal(sl_keyed_put(table, &key, &value), 0);
    }
}
