/* What an entry of keyed state holds: its key and its value, inside it or in blocks. */

#include "base/alloc.h"
#include "base/err.h"
#include "stream/state_table_priv.h"

uint64_t
sl__keyed_block_bytes(uint32_t len)
{
    return sl__keyed_allocation_bytes(sizeof(struct sl__keyed_block) + (uint64_t)len);
}

int
sl__keyed_block_new(const void *ptr, uint32_t len, uint64_t *out)
{
    struct sl__keyed_block *block = sl_try_alloc(sizeof(struct sl__keyed_block) + (size_t)len);
    if (block == NULL) {
        return sl_err_set(SL_ENOMEM, "no memory for %u bytes of keyed state", len);
    }
    block->len = len;
    memcpy(block->bytes, ptr, len);
    *out = (uint64_t)(uintptr_t)block;
    return 0;
}

static void
block_free(struct sl_keyed *self, uint16_t kind, uint64_t bits)
{
    if (sl__keyed_is_in_block(kind)) {
        self->bytes -= sl__keyed_block_bytes(sl__keyed_block_at(bits)->len);
        sl_free(sl__keyed_block_at(bits));
    }
}

void
sl__keyed_entry_free_blocks(struct sl_keyed *self, struct sl_keyed_entry *entry)
{
    block_free(self, entry->key_kind, entry->key);
    block_free(self, entry->value_kind, entry->value);
}

bool
sl__keyed_block_equals(uint64_t bits, const struct sl_keyed_key *key)
{
    const struct sl__keyed_block *block = sl__keyed_block_at(bits);
    return block->len == key->len &&
           memcmp(block->bytes, (const void *)(uintptr_t)key->bits, key->len) == 0;
}

static bool
value_needs_block(const struct sl_value *value)
{
    return value->tag == SL_VALUE_TABLE ||
           (value->tag == SL_VALUE_STRING && value->len > SL_KEYED_INLINE_MAX);
}

uint16_t
sl__keyed_value_pack(const struct sl_value *value, uint64_t *bits)
{
    *bits = 0;
    switch (value->tag) {
    case SL_VALUE_NUMBER:
        memcpy(bits, &value->number, sizeof(*bits));
        break;
    case SL_VALUE_INT64:
    case SL_VALUE_UINT64:
        *bits = (uint64_t)value->integer;
        break;
    case SL_VALUE_STRING:
        *bits = sl_keyed_pack(value->ptr, value->len);
        return (uint16_t)(SL_VALUE_STRING | value->len << 8);
    default:
        break;
    }
    return (uint16_t)value->tag;
}

int
sl__keyed_make_value(struct sl_keyed *self, const struct sl_value *value, uint64_t freed,
                     uint64_t *bits, uint16_t *kind)
{
    if (!value_needs_block(value)) {
        *kind = sl__keyed_value_pack(value, bits);
        return 0;
    }
    int rc = sl__keyed_check_room(self, freed, sl__keyed_block_bytes(value->len));
    if (rc == 0) {
        rc = sl__keyed_block_new(value->ptr, value->len, bits);
    }
    if (rc == 0) {
        self->bytes += sl__keyed_block_bytes(value->len);
        *kind = (uint16_t)(value->tag | SL_KEYED_IN_BLOCK << 8);
    }
    return rc;
}

int
sl__keyed_entry_set_value(struct sl_keyed *self, struct sl_keyed_entry *entry,
                          const struct sl_value *value)
{
    if (value_needs_block(value) && sl__keyed_is_in_block(entry->value_kind) &&
        sl__keyed_block_at(entry->value)->len == value->len) {
        /* memmove: the value may be the one that was just read from here. */
        memmove(sl__keyed_block_at(entry->value)->bytes, value->ptr, value->len);
        entry->value_kind = (uint16_t)(value->tag | SL_KEYED_IN_BLOCK << 8);
        return 0;
    }
    uint64_t freed = sl__keyed_is_in_block(entry->value_kind)
                         ? sl__keyed_block_bytes(sl__keyed_block_at(entry->value)->len)
                         : 0;
    uint64_t bits;
    uint16_t kind;
    int rc = sl__keyed_make_value(self, value, freed, &bits, &kind);
    if (rc != 0) {
        return rc;
    }
    block_free(self, entry->value_kind, entry->value);
    entry->value = bits;
    entry->value_kind = kind;
    return 0;
}

void
sl__keyed_entry_get_key(const struct sl_keyed_entry *entry, struct sl_value *out)
{
    double number;
    int64_t exact;
    switch (entry->key_kind & 0xff) {
    case SL_KEYED_KEY_INTEGER:
        number = (double)(int64_t)entry->key;
        *out = sl_double_is_i64(number, &exact) && exact == (int64_t)entry->key
                   ? sl_value_number(number)
                   : sl_value_i64((int64_t)entry->key);
        break;
    case SL_KEYED_KEY_LARGE:
        number = (double)entry->key;
        *out = number < 18446744073709551616.0 && (uint64_t)number == entry->key
                   ? sl_value_number(number)
                   : sl_value_u64(entry->key);
        break;
    case SL_KEYED_KEY_FRACTION:
        memcpy(&number, &entry->key, sizeof(number));
        *out = sl_value_number(number);
        break;
    case SL_KEYED_KEY_STRING:
        *out = sl__keyed_is_in_block(entry->key_kind)
                   ? sl_value_string(sl__keyed_block_at(entry->key)->bytes,
                                     sl__keyed_block_at(entry->key)->len)
                   : sl_value_string(&entry->key, entry->key_kind >> 8);
        break;
    case SL_KEYED_KEY_TABLE:
        *out = sl_value_table(sl__keyed_block_at(entry->key)->bytes,
                              sl__keyed_block_at(entry->key)->len);
        break;
    case SL_KEYED_KEY_FALSE:
    case SL_KEYED_KEY_TRUE:
        *out = sl_value_bool((entry->key_kind & 0xff) == SL_KEYED_KEY_TRUE);
        break;
    case SL_KEYED_KEY_NULL:
        *out = sl_value_null();
        break;
    default:
        *out = sl_value_nil();
    }
}

int
sl_keyed_key_of(const struct sl_value *value, struct sl_keyed_key *out)
{
    switch (value->tag) {
    case SL_VALUE_NUMBER:
        *out = sl_keyed_key_number(value->number);
        return 0;
    case SL_VALUE_INT64:
        *out = sl_keyed_key_i64(value->integer);
        return 0;
    case SL_VALUE_UINT64:
        *out = sl_keyed_key_u64((uint64_t)value->integer);
        return 0;
    case SL_VALUE_STRING:
        *out = sl_keyed_key_string(value->ptr, value->len);
        return 0;
    case SL_VALUE_TABLE:
        *out = (struct sl_keyed_key){0, (uint64_t)(uintptr_t)value->ptr, value->len,
                                     SL_KEYED_KEY_TABLE | SL_KEYED_IN_BLOCK << 8};
        return sl_value_key_hash(value->ptr, value->len, &out->hash);
    case SL_VALUE_FALSE:
    case SL_VALUE_TRUE:
        *out = (struct sl_keyed_key){.hash = sl_key_hash_bool(value->tag == SL_VALUE_TRUE),
                                     .kind = value->tag == SL_VALUE_TRUE ? SL_KEYED_KEY_TRUE
                                                                         : SL_KEYED_KEY_FALSE};
        return 0;
    case SL_VALUE_NULL:
        *out = (struct sl_keyed_key){.hash = sl_key_hash_null(), .kind = SL_KEYED_KEY_NULL};
        return 0;
    case SL_VALUE_NIL:
        *out = (struct sl_keyed_key){.hash = sl_key_hash_nil(), .kind = SL_KEYED_KEY_NIL};
        return 0;
    default:
        return sl_err_set(SL_EPROTO, "value with the unknown tag %u", value->tag);
    }
}
