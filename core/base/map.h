#pragma once
/*
 * Hash maps with open addressing whose iteration follows the order of insertion, so that nothing
 * downstream depends on hashes or addresses. Entries lie densely in an array; an index of 32-bit
 * positions finds them:
 *
 *     index:   [ -, 2, -, 0, X, 1, -, - ]       (linear probing, at most 3/4 full)
 *     entries: [ {k0,v0} {k1,v1} {k2,v2} ]      (removed ones stay as holes until the map is
 * rebuilt)
 *
 * Replacing a value keeps the position. Removing while iterating is allowed; adding while iterating
 * is not. Zeroed memory is a valid empty map. At most 2^31 entries.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_map_u64_entry {
    uint64_t key;
    uint64_t value;
    bool is_removed;
};

/* From uint64 to uint64. */
struct sl_map_u64 {
    struct sl_map_u64_entry *entries;
    uint32_t *index;
    /* Slots of the index, a power of two, or 0. */
    size_t index_size;
    size_t entry_count;
    size_t entry_capacity;
    /* Entries that are not holes. */
    size_t count;
};

void sl_map_u64_create(struct sl_map_u64 *self);
void sl_map_u64_destroy(struct sl_map_u64 *self);
void sl_map_u64_clear(struct sl_map_u64 *self);

/* Sets the value of a key; true when the key is new. */
bool sl_map_u64_put(struct sl_map_u64 *self, uint64_t key, uint64_t value);

/* Where the value of the key is, or NULL. Valid until the next put or removal. */
uint64_t *sl_map_u64_find(const struct sl_map_u64 *self, uint64_t key);

/* True when the key is there; its value is stored unless value is NULL. */
bool sl_map_u64_get(const struct sl_map_u64 *self, uint64_t key, uint64_t *value);

/* True when the key was there; its value is stored unless value is NULL. */
bool sl_map_u64_remove(struct sl_map_u64 *self, uint64_t key, uint64_t *value);

/*
 * for (size_t at = 0; (entry = sl_map_u64_next(&map, &at)) != NULL;) gives the entries in order of
 * insertion.
 */
struct sl_map_u64_entry *sl_map_u64_next(const struct sl_map_u64 *self, size_t *at);

/* The same with pointers as values; a missing key and a stored NULL both read as NULL. */
static inline bool
sl_map_u64_put_ptr(struct sl_map_u64 *self, uint64_t key, void *value)
{
    return sl_map_u64_put(self, key, (uint64_t)(uintptr_t)value);
}

static inline void *
sl_map_u64_get_ptr(const struct sl_map_u64 *self, uint64_t key)
{
    uint64_t *found = sl_map_u64_find(self, key);
    return found != NULL ? (void *)(uintptr_t)*found : NULL;
}

static inline void *
sl_map_u64_remove_ptr(struct sl_map_u64 *self, uint64_t key)
{
    uint64_t value = 0;
    return sl_map_u64_remove(self, key, &value) ? (void *)(uintptr_t)value : NULL;
}

struct sl_map_bytes_entry {
    /* The map's own copy of the key with a NUL behind it; NULL marks a hole. */
    char *key;
    size_t key_len;
    uint64_t hash;
    void *value;
};

/* From byte strings, which are copied, to pointers, which are borrowed. */
struct sl_map_bytes {
    struct sl_map_bytes_entry *entries;
    uint32_t *index;
    size_t index_size;
    size_t entry_count;
    size_t entry_capacity;
    size_t count;
};

void sl_map_bytes_create(struct sl_map_bytes *self);
void sl_map_bytes_destroy(struct sl_map_bytes *self);
void sl_map_bytes_clear(struct sl_map_bytes *self);

/* Sets the value of a key; true when the key is new. */
bool sl_map_bytes_put(struct sl_map_bytes *self, const void *key, size_t key_len, void *value);

/* The entry of the key, or NULL; its value may be changed in place. Valid until the next put or
 * removal. */
struct sl_map_bytes_entry *sl_map_bytes_find(const struct sl_map_bytes *self, const void *key,
                                             size_t key_len);

/* The value of the key, or NULL. */
void *sl_map_bytes_get(const struct sl_map_bytes *self, const void *key, size_t key_len);

/* True when the key was there; its value is stored unless value is NULL. */
bool sl_map_bytes_remove(struct sl_map_bytes *self, const void *key, size_t key_len, void **value);

/* As sl_map_u64_next. */
struct sl_map_bytes_entry *sl_map_bytes_next(const struct sl_map_bytes *self, size_t *at);

/* The same with NUL-terminated keys. */
bool sl_map_bytes_put_str(struct sl_map_bytes *self, const char *key, void *value);
void *sl_map_bytes_get_str(const struct sl_map_bytes *self, const char *key);
void *sl_map_bytes_remove_str(struct sl_map_bytes *self, const char *key);
