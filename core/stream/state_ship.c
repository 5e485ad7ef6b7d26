/* Shipping groups of keyed state: sections of entries as bytes, and back. */

#include "base/assert.h"
#include "base/err.h"
#include "stream/state_table.h"

enum { SECTION_HEADER_BYTES = 8 };

static void
summary_add(struct sl_keyed_summary *summary, const uint8_t *entry, size_t len)
{
    summary->entries++;
    summary->bytes += len;
    summary->checksum += sl_hash_bytes(entry, len);
}

int
sl_keyed_export_group(const struct sl_keyed *self, uint32_t group, struct sl_buf *out,
                      struct sl_keyed_summary *summary)
{
    memset(summary, 0, sizeof(*summary));
    if (group >= self->key_groups) {
        return sl_err_set(SL_EINVAL, "key group %u of %u", group, self->key_groups);
    }
    sl_buf_append_u32(out, group);
    sl_buf_append_u32(out, self->groups[group].count);
    struct sl_keyed_iter iter = sl_keyed_iter_group(group);
    struct sl_value key;
    struct sl_value value;
    while (sl_keyed_next(self, &iter, &key, &value)) {
        size_t start = out->size;
        sl_value_write(out, &key);
        sl_value_write(out, &value);
        summary_add(summary, out->data + start, out->size - start);
    }
    sl_assert_eq(summary->entries, self->groups[group].count);
    return 0;
}

static uint32_t
read_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Reads one entry; returns its bytes or an error. */
static int64_t
read_entry(const struct sl_keyed *self, uint32_t group, const uint8_t *at, size_t len,
           struct sl_keyed_key *key, struct sl_value *value)
{
    struct sl_value key_value;
    int64_t key_len = sl_value_read(at, len, &key_value);
    if (key_len < 0) {
        return key_len;
    }
    int64_t value_len = sl_value_read(at + key_len, len - (size_t)key_len, value);
    if (value_len < 0) {
        return value_len;
    }
    int rc = sl_keyed_key_of(&key_value, key);
    if (rc != 0) {
        return rc;
    }
    if (sl_key_group(key->hash, self->key_groups) != group) {
        return sl_err_set(SL_EPROTO, "an entry of key group %u came as one of group %u",
                          sl_key_group(key->hash, self->key_groups), group);
    }
    return key_len + value_len;
}

int64_t
sl_keyed_section_fit(const uint8_t *ptr, size_t len, size_t most, uint32_t *count)
{
    size_t at = 0;
    *count = 0;
    while (at < len) {
        int64_t key = sl_value_measure(ptr + at, len - at);
        int64_t value = key < 0 ? key : sl_value_measure(ptr + at + key, len - at - (size_t)key);
        if (value < 0) {
            return value;
        }
        if (*count > 0 && at + (size_t)(key + value) > most) {
            break;
        }
        at += (size_t)(key + value);
        ++*count;
    }
    return (int64_t)at;
}

/* Walks all sections; puts their entries unless self_to_fill is NULL. */
static int
import_pass(const struct sl_keyed *self, struct sl_keyed *self_to_fill, const uint8_t *ptr,
            size_t len, struct sl_keyed_summary *summary)
{
    memset(summary, 0, sizeof(*summary));
    size_t at = 0;
    while (at < len) {
        if (len - at < SECTION_HEADER_BYTES) {
            return sl_err_set(SL_EPROTO, "exported key group is cut off");
        }
        uint32_t group = read_u32(ptr + at);
        uint32_t count = read_u32(ptr + at + 4);
        at += SECTION_HEADER_BYTES;
        for (uint32_t i = 0; i < count; i++) {
            struct sl_keyed_key key;
            struct sl_value value;
            int64_t size = read_entry(self, group, ptr + at, len - at, &key, &value);
            if (size < 0) {
                return (int)size;
            }
            int rc = self_to_fill != NULL ? sl_keyed_put(self_to_fill, &key, &value) : 0;
            if (rc != 0) {
                return rc;
            }
            summary_add(summary, ptr + at, (size_t)size);
            at += (size_t)size;
        }
    }
    return 0;
}

int
sl_keyed_import(struct sl_keyed *self, const uint8_t *ptr, size_t len,
                struct sl_keyed_summary *summary)
{
    int rc = import_pass(self, NULL, ptr, len, summary);
    if (rc == 0) {
        rc = import_pass(self, self, ptr, len, summary);
    }
    if (rc != 0) {
        return sl_err_wrap("import of keyed state");
    }
    return 0;
}
