#pragma once
/*
 * The state of one partition of a stateful stream: keys to values, each with a time, off the Lua
 * heap, and the entries with the oldest times found without looking at the others.
 *
 *     index: stream/state_table.h, key -> number of a cell
 *     cells: [ value 8 | time 8 | hash 4 group 2 kind 2 | older 4 newer 4 ]    32 bytes each, in
 *            chunks that never move
 *     order: oldest cell <-> ... <-> newest cell, by time, once somebody has asked for it
 *
 * Times mostly grow, so an update moves its cell to the newest end. Entries without data beyond 8
 * bytes take about 80 bytes. One thread at a time uses a map.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "batch/state_map.abi.h"
#include "stream/state_table.h"

enum {
    SL_STATE_MAP_GROUPS = 64,
    SL_STATE_MAP_CHUNK = 4096,
};

struct sl_state_cell {
    /* A number's bits, or the address of a block. */
    uint64_t bits;
    int64_t time;
    /* Upper half of the key's hash, and the key's group: the way back to the key. */
    uint32_t hash;
    uint16_t group;
    /* enum sl_value_tag, with SL_STATE_CELL_BLOCK when bits is an address. */
    uint16_t kind;
    /* Neighbours by time; a free cell's `newer` is the next free one. Cells are counted from 1. */
    uint32_t older;
    uint32_t newer;
};

struct sl_state_map {
    struct sl_keyed index;
    SL_VEC(struct sl_state_cell *) chunks;
    uint32_t cell_count;
    uint32_t free_cells;
    /* Bytes of blocks. */
    uint64_t block_bytes;
    bool is_ordered;
    uint32_t oldest;
    uint32_t newest;
};

/* SL_ENOMEM. */
int sl_state_map_create(struct sl_state_map *self);
void sl_state_map_destroy(struct sl_state_map *self);
void sl_state_map_clear(struct sl_state_map *self);

static inline uint64_t
sl_state_map_size(const struct sl_state_map *self)
{
    return self->index.count;
}

/* Bytes of everything. */
uint64_t sl_state_map_memory(const struct sl_state_map *self);

/* False when there is no such key. Bytes of the value are valid until the next change. */
bool sl_state_map_get(const struct sl_state_map *self, const struct sl_keyed_key *key,
                      struct sl_value *value, int64_t *time);

/* SL_ENOMEM, SL_ELIMIT: the map is unchanged. The value may be one that this map gave. */
int sl_state_map_put(struct sl_state_map *self, const struct sl_keyed_key *key,
                     const struct sl_value *value, int64_t time);

bool sl_state_map_remove(struct sl_state_map *self, const struct sl_keyed_key *key);

/* As sl_keyed_next. */
bool sl_state_map_next(const struct sl_state_map *self, struct sl_keyed_iter *iter,
                       struct sl_value *key, struct sl_value *value, int64_t *time);

/* The entry with the smallest time, if it is below the threshold. */
bool sl_state_map_expired(struct sl_state_map *self, int64_t threshold, struct sl_value *key,
                          struct sl_value *value, int64_t *time);

/* A file with all entries; it appears whole or not at all. */
int sl_state_map_save(const struct sl_state_map *self, const char *path);

/* SL_ENOTFOUND, SL_EPROTO (nothing was put), SL_ESYS, SL_ENOMEM (some were put). */
int sl_state_map_load(struct sl_state_map *self, const char *path);
