#include "base/map.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

/* An index slot is 0 (never used), SLOT_REMOVED, or the position of an entry plus 1. */
#define SLOT_REMOVED UINT32_MAX
enum { INDEX_SIZE_MIN = 8 };

/* The index size for which `count` entries and as many again until the next rebuild stay within
 * 3/4. */
static size_t
index_size_for(size_t count)
{
    sl_assert_lt(count, (size_t)1 << 31);
    size_t size = INDEX_SIZE_MIN;
    while (size * 3 / 4 < count + count / 2 + 1) {
        size *= 2;
    }
    return size;
}

static size_t
entry_limit(size_t index_size)
{
    return index_size * 3 / 4;
}

/* Enters position `at` of an entry with this hash into an index that does not hold it. */
static void
index_insert(uint32_t *index, size_t index_size, uint64_t hash, size_t at)
{
    size_t slot = hash & (index_size - 1);
    while (index[slot] != 0) {
        slot = (slot + 1) & (index_size - 1);
    }
    index[slot] = (uint32_t)at + 1;
}

void
sl_map_u64_create(struct sl_map_u64 *self)
{
    memset(self, 0, sizeof(*self));
}

void
sl_map_u64_destroy(struct sl_map_u64 *self)
{
    sl_free(self->entries);
    sl_free(self->index);
    sl_map_u64_create(self);
}

void
sl_map_u64_clear(struct sl_map_u64 *self)
{
    self->entry_count = 0;
    self->count = 0;
    if (self->index != NULL) {
        memset(self->index, 0, self->index_size * sizeof(*self->index));
    }
}

/* The index slot of a key, or index_size when it is not there. */
static size_t
map_u64_slot(const struct sl_map_u64 *self, uint64_t key)
{
    if (self->count == 0) {
        return self->index_size;
    }
    size_t mask = self->index_size - 1;
    for (size_t slot = sl_hash_u64(key) & mask;; slot = (slot + 1) & mask) {
        uint32_t at = self->index[slot];
        if (at == 0) {
            return self->index_size;
        }
        if (at != SLOT_REMOVED && self->entries[at - 1].key == key) {
            return slot;
        }
    }
}

/* Squeezes out the holes and makes an index with room for more. */
static void
map_u64_rebuild(struct sl_map_u64 *self)
{
    size_t size = index_size_for(self->count);
    sl_free(self->index);
    self->index = sl_calloc(size, sizeof(*self->index));
    self->index_size = size;
    size_t kept = 0;
    for (size_t i = 0; i < self->entry_count; i++) {
        if (!self->entries[i].is_removed) {
            self->entries[kept] = self->entries[i];
            index_insert(self->index, size, sl_hash_u64(self->entries[kept].key), kept);
            kept++;
        }
    }
    self->entry_count = kept;
    sl_assert_eq(kept, self->count);
    if (self->entry_capacity < entry_limit(size)) {
        self->entry_capacity = entry_limit(size);
        self->entries = sl_realloc(self->entries, self->entry_capacity * sizeof(*self->entries));
    }
}

bool
sl_map_u64_put(struct sl_map_u64 *self, uint64_t key, uint64_t value)
{
    size_t slot = map_u64_slot(self, key);
    if (slot < self->index_size) {
        self->entries[self->index[slot] - 1].value = value;
        return false;
    }
    if (self->entry_count == entry_limit(self->index_size)) {
        map_u64_rebuild(self);
    }
    struct sl_map_u64_entry entry = {.key = key, .value = value, .is_removed = false};
    self->entries[self->entry_count] = entry;
    index_insert(self->index, self->index_size, sl_hash_u64(key), self->entry_count);
    self->entry_count++;
    self->count++;
    return true;
}

uint64_t *
sl_map_u64_find(const struct sl_map_u64 *self, uint64_t key)
{
    size_t slot = map_u64_slot(self, key);
    return slot < self->index_size ? &self->entries[self->index[slot] - 1].value : NULL;
}

bool
sl_map_u64_get(const struct sl_map_u64 *self, uint64_t key, uint64_t *value)
{
    const uint64_t *found = sl_map_u64_find(self, key);
    if (found != NULL && value != NULL) {
        *value = *found;
    }
    return found != NULL;
}

bool
sl_map_u64_remove(struct sl_map_u64 *self, uint64_t key, uint64_t *value)
{
    size_t slot = map_u64_slot(self, key);
    if (slot == self->index_size) {
        return false;
    }
    struct sl_map_u64_entry *entry = &self->entries[self->index[slot] - 1];
    if (value != NULL) {
        *value = entry->value;
    }
    entry->is_removed = true;
    self->index[slot] = SLOT_REMOVED;
    self->count--;
    return true;
}

struct sl_map_u64_entry *
sl_map_u64_next(const struct sl_map_u64 *self, size_t *at)
{
    while (*at < self->entry_count) {
        struct sl_map_u64_entry *entry = &self->entries[(*at)++];
        if (!entry->is_removed) {
            return entry;
        }
    }
    return NULL;
}

void
sl_map_bytes_create(struct sl_map_bytes *self)
{
    memset(self, 0, sizeof(*self));
}

void
sl_map_bytes_destroy(struct sl_map_bytes *self)
{
    sl_map_bytes_clear(self);
    sl_free(self->entries);
    sl_free(self->index);
    sl_map_bytes_create(self);
}

void
sl_map_bytes_clear(struct sl_map_bytes *self)
{
    for (size_t i = 0; i < self->entry_count; i++) {
        sl_free(self->entries[i].key);
    }
    self->entry_count = 0;
    self->count = 0;
    if (self->index != NULL) {
        memset(self->index, 0, self->index_size * sizeof(*self->index));
    }
}

static size_t
map_bytes_slot(const struct sl_map_bytes *self, const void *key, size_t key_len, uint64_t hash)
{
    if (self->count == 0) {
        return self->index_size;
    }
    size_t mask = self->index_size - 1;
    for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
        uint32_t at = self->index[slot];
        if (at == 0) {
            return self->index_size;
        }
        if (at == SLOT_REMOVED) {
            continue;
        }
        const struct sl_map_bytes_entry *entry = &self->entries[at - 1];
        if (entry->hash == hash && entry->key_len == key_len &&
            (key_len == 0 || memcmp(entry->key, key, key_len) == 0)) {
            return slot;
        }
    }
}

static void
map_bytes_rebuild(struct sl_map_bytes *self)
{
    size_t size = index_size_for(self->count);
    sl_free(self->index);
    self->index = sl_calloc(size, sizeof(*self->index));
    self->index_size = size;
    size_t kept = 0;
    for (size_t i = 0; i < self->entry_count; i++) {
        if (self->entries[i].key != NULL) {
            self->entries[kept] = self->entries[i];
            index_insert(self->index, size, self->entries[kept].hash, kept);
            kept++;
        }
    }
    self->entry_count = kept;
    sl_assert_eq(kept, self->count);
    if (self->entry_capacity < entry_limit(size)) {
        self->entry_capacity = entry_limit(size);
        self->entries = sl_realloc(self->entries, self->entry_capacity * sizeof(*self->entries));
    }
}

bool
sl_map_bytes_put(struct sl_map_bytes *self, const void *key, size_t key_len, void *value)
{
    uint64_t hash = sl_hash_bytes(key, key_len);
    size_t slot = map_bytes_slot(self, key, key_len, hash);
    if (slot < self->index_size) {
        self->entries[self->index[slot] - 1].value = value;
        return false;
    }
    if (self->entry_count == entry_limit(self->index_size)) {
        map_bytes_rebuild(self);
    }
    struct sl_map_bytes_entry entry = {
        .key = sl_strndup(key_len > 0 ? key : "", key_len),
        .key_len = key_len,
        .hash = hash,
        .value = value,
    };
    self->entries[self->entry_count] = entry;
    index_insert(self->index, self->index_size, hash, self->entry_count);
    self->entry_count++;
    self->count++;
    return true;
}

struct sl_map_bytes_entry *
sl_map_bytes_find(const struct sl_map_bytes *self, const void *key, size_t key_len)
{
    size_t slot = map_bytes_slot(self, key, key_len, sl_hash_bytes(key, key_len));
    return slot < self->index_size ? &self->entries[self->index[slot] - 1] : NULL;
}

void *
sl_map_bytes_get(const struct sl_map_bytes *self, const void *key, size_t key_len)
{
    struct sl_map_bytes_entry *entry = sl_map_bytes_find(self, key, key_len);
    return entry != NULL ? entry->value : NULL;
}

bool
sl_map_bytes_remove(struct sl_map_bytes *self, const void *key, size_t key_len, void **value)
{
    size_t slot = map_bytes_slot(self, key, key_len, sl_hash_bytes(key, key_len));
    if (slot == self->index_size) {
        return false;
    }
    struct sl_map_bytes_entry *entry = &self->entries[self->index[slot] - 1];
    if (value != NULL) {
        *value = entry->value;
    }
    sl_free(entry->key);
    entry->key = NULL;
    self->index[slot] = SLOT_REMOVED;
    self->count--;
    return true;
}

struct sl_map_bytes_entry *
sl_map_bytes_next(const struct sl_map_bytes *self, size_t *at)
{
    while (*at < self->entry_count) {
        struct sl_map_bytes_entry *entry = &self->entries[(*at)++];
        if (entry->key != NULL) {
            return entry;
        }
    }
    return NULL;
}

bool
sl_map_bytes_put_str(struct sl_map_bytes *self, const char *key, void *value)
{
    return sl_map_bytes_put(self, key, strlen(key), value);
}

void *
sl_map_bytes_get_str(const struct sl_map_bytes *self, const char *key)
{
    return sl_map_bytes_get(self, key, strlen(key));
}

void *
sl_map_bytes_remove_str(struct sl_map_bytes *self, const char *key)
{
    void *value = NULL;
    sl_map_bytes_remove(self, key, strlen(key), &value);
    return value;
}
