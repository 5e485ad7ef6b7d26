/*
 * Values of tuples and of keyed state: their tags, the form in which C and Lua hand one to each
 * other, and their encoding as bytes. This is a bare header.
 *
 * An encoded value is one byte, its tag, and then
 *
 *     nil, false, true, null   nothing
 *     number                   8 bytes, IEEE 754 double
 *     int64, uint64            8 bytes
 *     string                   u32 length, bytes
 *     list                     u32 count >= 1, then that many values: a table with keys 1..count
 *     map                      u32 count, then that many pairs of key and value, sorted by key:
 *                              false, true, null, numbers ascending, strings by bytes
 *
 * All integers are little-endian. Equal content gives equal bytes; a NaN is always the same one.
 * Keys of maps are booleans, null, numbers (no NaN) and strings. Tables nest 16 levels deep.
 *
 * In the *key form* of an encoding numbers that are equal have one form too: what a double holds
 * exactly is a number (and -0 is 0), other integers are int64, or uint64 from 2^63 on.
 */

enum {
    /* Levels of tables within a value. */
    SL_VALUE_DEPTH_MAX = 16,
};

/* The first byte of an encoded value. The numbers are those of enum sl_tag of the records. */
enum sl_value_tag {
    SL_VALUE_NIL = 0,
    SL_VALUE_NUMBER = 1,
    SL_VALUE_STRING = 2,
    SL_VALUE_FALSE = 3,
    SL_VALUE_TRUE = 4,
    SL_VALUE_INT64 = 5,
    SL_VALUE_UINT64 = 6,
    SL_VALUE_NULL = 7,
    /* A table that is a list; as the tag of a struct sl_value any table. */
    SL_VALUE_TABLE = 8,
    /* A table that is no list; only in encodings. */
    SL_VALUE_MAP = 9,
};

/* A value as it passes between C and Lua. */
struct sl_value {
    /* Of SL_VALUE_NUMBER. */
    double number;
    /* Of SL_VALUE_INT64, or the bits of an SL_VALUE_UINT64. */
    int64_t integer;
    /* The bytes of a string, or the whole encoding of a table; borrowed. */
    const uint8_t *ptr;
    uint32_t len;
    /* enum sl_value_tag. */
    uint32_t tag;
};
