#include "batch/state_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "batch/files.h"

enum {
    SL_STATE_CELL_BLOCK = 0x100,
    /* A file is written in pieces of about this size, each with its length and hash. */
    PIECE_BYTES = 256 * 1024,
    PIECE_HEAD_BYTES = 16,
};

_Static_assert(sizeof(struct sl_state_cell) == 32, "a cell is 32 bytes");
_Static_assert(SL_STATE_MAP_GROUPS <= UINT16_MAX, "a group fits into a cell");

/* The bytes of a string or of a table. */
struct block {
    uint32_t len;
    uint8_t bytes[];
};

static struct sl_state_cell *
cell_at(const struct sl_state_map *self, uint32_t number)
{
    uint32_t index = number - 1;
    return &self->chunks.items[index / SL_STATE_MAP_CHUNK][index % SL_STATE_MAP_CHUNK];
}

static struct block *
cell_block(const struct sl_state_cell *cell)
{
    return (cell->kind & SL_STATE_CELL_BLOCK) != 0 ? (struct block *)(uintptr_t)cell->bits : NULL;
}

int
sl_state_map_create(struct sl_state_map *self)
{
    memset(self, 0, sizeof(*self));
    return sl_keyed_create(&self->index, SL_STATE_MAP_GROUPS, 0);
}

static void
free_cells(struct sl_state_map *self)
{
    for (uint32_t i = 0; i < self->cell_count; i++) {
        sl_free(cell_block(cell_at(self, i + 1)));
    }
    for (size_t i = 0; i < self->chunks.count; i++) {
        sl_free(self->chunks.items[i]);
    }
    sl_vec_destroy(&self->chunks);
    self->cell_count = 0;
    self->free_cells = 0;
    self->block_bytes = 0;
    self->oldest = 0;
    self->newest = 0;
}

void
sl_state_map_clear(struct sl_state_map *self)
{
    free_cells(self);
    sl_keyed_clear(&self->index);
}

void
sl_state_map_destroy(struct sl_state_map *self)
{
    free_cells(self);
    sl_keyed_destroy(&self->index);
}

uint64_t
sl_state_map_memory(const struct sl_state_map *self)
{
    uint64_t chunk_bytes = SL_STATE_MAP_CHUNK * sizeof(struct sl_state_cell);
    return self->index.bytes + self->chunks.count * chunk_bytes + self->block_bytes;
}

/* What a block takes, with what malloc adds. */
static uint64_t
block_cost(uint32_t len)
{
    return (sizeof(struct block) + (uint64_t)len + 8 + 15) & ~UINT64_C(15);
}

static void
cell_get(const struct sl_state_cell *cell, struct sl_value *value)
{
    const struct block *block = cell_block(cell);
    *value = (struct sl_value){.tag = cell->kind & 0xff};
    if (block != NULL) {
        value->ptr = block->bytes;
        value->len = block->len;
    } else if (value->tag == SL_VALUE_NUMBER) {
        memcpy(&value->number, &cell->bits, sizeof(value->number));
    } else {
        value->integer = (int64_t)cell->bits;
    }
}

/* Makes kind and bits of a value; *bits is a new block for bytes. */
static int
pack_value(const struct sl_value *value, uint64_t *bits, uint16_t *kind)
{
    *kind = (uint16_t)value->tag;
    *bits = (uint64_t)value->integer;
    if (value->tag == SL_VALUE_NUMBER) {
        memcpy(bits, &value->number, sizeof(*bits));
    } else if (value->tag == SL_VALUE_STRING || value->tag == SL_VALUE_TABLE) {
        struct block *block = sl_try_alloc(sizeof(*block) + (size_t)value->len);
        if (block == NULL) {
            return sl_err_set(SL_ENOMEM, "no memory for %u bytes of state", value->len);
        }
        block->len = value->len;
        memcpy(block->bytes, value->ptr, value->len);
        *bits = (uint64_t)(uintptr_t)block;
        *kind |= SL_STATE_CELL_BLOCK;
    }
    return 0;
}

static void
cell_free_value(struct sl_state_map *self, struct sl_state_cell *cell)
{
    struct block *block = cell_block(cell);
    if (block != NULL) {
        self->block_bytes -= block_cost(block->len);
        sl_free(block);
    }
}

static int
cell_set(struct sl_state_map *self, struct sl_state_cell *cell, const struct sl_value *value)
{
    uint64_t bits = 0;
    uint16_t kind = 0;
    struct block *block = cell_block(cell);
    bool is_bytes = value->tag == SL_VALUE_STRING || value->tag == SL_VALUE_TABLE;
    if (block != NULL && is_bytes && block->len == value->len) {
        /* memmove: the value may be the one that was just read from here. */
        memmove(block->bytes, value->ptr, value->len);
        cell->kind = (uint16_t)(value->tag | SL_STATE_CELL_BLOCK);
        return 0;
    }
    int rc = pack_value(value, &bits, &kind);
    if (rc != 0) {
        return rc;
    }
    cell_free_value(self, cell);
    cell->bits = bits;
    cell->kind = kind;
    block = cell_block(cell);
    self->block_bytes += block != NULL ? block_cost(block->len) : 0;
    return 0;
}

/* Order by time. */

static void
unlink_cell(struct sl_state_map *self, uint32_t number)
{
    struct sl_state_cell *cell = cell_at(self, number);
    if (cell->older != 0) {
        cell_at(self, cell->older)->newer = cell->newer;
    } else {
        self->oldest = cell->newer;
    }
    if (cell->newer != 0) {
        cell_at(self, cell->newer)->older = cell->older;
    } else {
        self->newest = cell->older;
    }
}

/* Links a cell behind those that are not newer, looked for from the newest end. */
static void
link_cell(struct sl_state_map *self, uint32_t number)
{
    struct sl_state_cell *cell = cell_at(self, number);
    uint32_t before = self->newest;
    while (before != 0 && cell_at(self, before)->time > cell->time) {
        before = cell_at(self, before)->older;
    }
    cell->older = before;
    cell->newer = before != 0 ? cell_at(self, before)->newer : self->oldest;
    if (before != 0) {
        cell_at(self, before)->newer = number;
    } else {
        self->oldest = number;
    }
    if (cell->newer != 0) {
        cell_at(self, cell->newer)->older = number;
    } else {
        self->newest = number;
    }
}

struct timed_cell {
    int64_t time;
    uint32_t number;
};

static int
compare_timed(const void *a, const void *b)
{
    const struct timed_cell *left = a;
    const struct timed_cell *right = b;
    if (left->time != right->time) {
        return left->time < right->time ? -1 : 1;
    }
    return left->number < right->number ? -1 : 1;
}

/* Brings all cells into order, once; from then on updates keep it. */
static void
order_all(struct sl_state_map *self)
{
    struct timed_cell *cells = sl_calloc((size_t)self->index.count, sizeof(*cells));
    size_t count = 0;
    struct sl_keyed_iter iter = {0};
    struct sl_value key;
    struct sl_value number;
    while (sl_keyed_next(&self->index, &iter, &key, &number)) {
        uint32_t cell = (uint32_t)number.integer;
        cells[count++] = (struct timed_cell){cell_at(self, cell)->time, cell};
    }
    qsort(cells, count, sizeof(*cells), compare_timed);
    for (size_t i = 0; i < count; i++) {
        link_cell(self, cells[i].number);
    }
    sl_free(cells);
    self->is_ordered = true;
}

/* Cells. */

static uint32_t
cell_take(struct sl_state_map *self)
{
    if (self->free_cells != 0) {
        uint32_t number = self->free_cells;
        self->free_cells = cell_at(self, number)->newer;
        return number;
    }
    if (self->cell_count == UINT32_MAX) {
        sl_err_set(SL_ELIMIT, "a partition of state holds %u keys", self->cell_count);
        return 0;
    }
    if (self->cell_count == self->chunks.count * SL_STATE_MAP_CHUNK) {
        struct sl_state_cell *chunk = sl_try_calloc(SL_STATE_MAP_CHUNK, sizeof(*chunk));
        if (chunk == NULL) {
            sl_err_set(SL_ENOMEM, "no memory for more state");
            return 0;
        }
        sl_vec_push(&self->chunks, chunk);
    }
    return ++self->cell_count;
}

static void
cell_give(struct sl_state_map *self, uint32_t number)
{
    struct sl_state_cell *cell = cell_at(self, number);
    cell_free_value(self, cell);
    *cell = (struct sl_state_cell){.newer = self->free_cells};
    self->free_cells = number;
}

/* The number of a key's cell, 0 when there is none. */
static uint32_t
find_cell(const struct sl_state_map *self, const struct sl_keyed_key *key)
{
    struct sl_value number;
    return sl_keyed_get(&self->index, key, &number) ? (uint32_t)number.integer : 0;
}

bool
sl_state_map_get(const struct sl_state_map *self, const struct sl_keyed_key *key,
                 struct sl_value *value, int64_t *time)
{
    uint32_t number = find_cell(self, key);
    if (number == 0) {
        return false;
    }
    cell_get(cell_at(self, number), value);
    *time = cell_at(self, number)->time;
    return true;
}

static int
insert(struct sl_state_map *self, const struct sl_keyed_key *key, const struct sl_value *value,
       int64_t time)
{
    uint32_t number = cell_take(self);
    if (number == 0) {
        return sl_err_last()->code;
    }
    struct sl_state_cell *cell = cell_at(self, number);
    *cell = (struct sl_state_cell){
        .time = time,
        .hash = (uint32_t)(key->hash >> 32),
        .group = (uint16_t)sl_key_group(key->hash, SL_STATE_MAP_GROUPS),
    };
    struct sl_value index_value = sl_value_i64(number);
    int rc = cell_set(self, cell, value);
    if (rc == 0) {
        rc = sl_keyed_put(&self->index, key, &index_value);
    }
    if (rc != 0) {
        cell_give(self, number);
    } else if (self->is_ordered) {
        link_cell(self, number);
    }
    return rc;
}

int
sl_state_map_put(struct sl_state_map *self, const struct sl_keyed_key *key,
                 const struct sl_value *value, int64_t time)
{
    uint32_t number = find_cell(self, key);
    if (number == 0) {
        return insert(self, key, value, time);
    }
    struct sl_state_cell *cell = cell_at(self, number);
    int rc = cell_set(self, cell, value);
    if (rc == 0 && time != cell->time) {
        if (self->is_ordered) {
            unlink_cell(self, number);
        }
        cell->time = time;
        if (self->is_ordered) {
            link_cell(self, number);
        }
    }
    return rc;
}

bool
sl_state_map_remove(struct sl_state_map *self, const struct sl_keyed_key *key)
{
    uint32_t number = find_cell(self, key);
    if (number == 0) {
        return false;
    }
    if (self->is_ordered) {
        unlink_cell(self, number);
    }
    sl_keyed_remove(&self->index, key);
    cell_give(self, number);
    return true;
}

bool
sl_state_map_next(const struct sl_state_map *self, struct sl_keyed_iter *iter, struct sl_value *key,
                  struct sl_value *value, int64_t *time)
{
    struct sl_value number;
    if (!sl_keyed_next(&self->index, iter, key, &number)) {
        return false;
    }
    const struct sl_state_cell *cell = cell_at(self, (uint32_t)number.integer);
    cell_get(cell, value);
    *time = cell->time;
    return true;
}

bool
sl_state_map_expired(struct sl_state_map *self, int64_t threshold, struct sl_value *key,
                     struct sl_value *value, int64_t *time)
{
    if (!self->is_ordered) {
        order_all(self);
    }
    if (self->oldest == 0 || cell_at(self, self->oldest)->time >= threshold) {
        return false;
    }
    const struct sl_state_cell *cell = cell_at(self, self->oldest);
    bool has_key = sl_keyed_find_i64(&self->index, cell->group, cell->hash, self->oldest, key);
    sl_assert(has_key);
    cell_get(cell, value);
    *time = cell->time;
    return true;
}

/*
 * Files: pieces of u64 length and u64 hash, then as many bytes. The first one holds the number of
 * entries, a u64, the others entries (key, value, int64 time); a piece of length 0 ends the file.
 */

static int
write_all(int fd, const void *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t written = write(fd, (const uint8_t *)bytes + done, len - done);
        if (written < 0 && errno != EINTR) {
            return sl_err_set(SL_ESYS, "write state");
        }
        done += written > 0 ? (size_t)written : 0;
    }
    return 0;
}

static int
write_piece(int fd, struct sl_buf *piece)
{
    struct sl_buf head = {0};
    sl_buf_append_u64(&head, piece->size);
    sl_buf_append_u64(&head, sl_hash_bytes(piece->data, piece->size));
    int rc = write_all(fd, head.data, head.size);
    if (rc == 0) {
        rc = write_all(fd, piece->data, piece->size);
    }
    sl_buf_destroy(&head);
    sl_buf_clear(piece);
    return rc;
}

static int
write_entries(const struct sl_state_map *self, int fd)
{
    struct sl_buf piece = {0};
    struct sl_keyed_iter iter = {0};
    struct sl_value key;
    struct sl_value value;
    int64_t time = 0;
    sl_buf_append_u64(&piece, self->index.count);
    int rc = write_piece(fd, &piece);
    while (rc == 0 && sl_state_map_next(self, &iter, &key, &value, &time)) {
        sl_value_write(&piece, &key);
        sl_value_write(&piece, &value);
        sl_buf_append_u64(&piece, (uint64_t)time);
        if (piece.size >= PIECE_BYTES) {
            rc = write_piece(fd, &piece);
        }
    }
    if (rc == 0 && piece.size > 0) {
        rc = write_piece(fd, &piece);
    }
    if (rc == 0) {
        rc = write_piece(fd, &piece);
    }
    sl_buf_destroy(&piece);
    return rc;
}

int
sl_state_map_save(const struct sl_state_map *self, const char *path)
{
    char *temp = sl_asprintf("%s.tmp", path);
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int rc = fd < 0 ? sl_err_set(SL_ESYS, "make %s", temp) : write_entries(self, fd);
    if (rc == 0 && fsync(fd) != 0) {
        rc = sl_err_set(SL_ESYS, "write state");
    }
    if (fd >= 0 && close(fd) != 0 && rc == 0) {
        rc = sl_err_set(SL_ESYS, "write state");
    }
    if (rc == 0 && rename(temp, path) != 0) {
        rc = sl_err_set(SL_ESYS, "make %s", path);
    }
    if (rc != 0) {
        unlink(temp);
        sl_err_wrap("save state to %s", path);
    }
    sl_free(temp);
    return rc;
}

static uint64_t
read_u64(const uint8_t *ptr)
{
    uint64_t value = 0;
    for (int i = 8; i-- > 0;) {
        value = value << 8 | ptr[i];
    }
    return value;
}

/* Takes one entry off the front of len bytes; the bytes it takes, or an error. */
static int64_t
read_entry(const uint8_t *ptr, size_t len, struct sl_value *key, struct sl_value *value,
           int64_t *time)
{
    int64_t key_size = sl_value_read(ptr, len, key);
    if (key_size < 0) {
        return key_size;
    }
    int64_t value_size = sl_value_read(ptr + key_size, len - (size_t)key_size, value);
    if (value_size < 0) {
        return value_size;
    }
    size_t size = (size_t)(key_size + value_size);
    if (len - size < sizeof(uint64_t)) {
        return sl_err_set(SL_EPROTO, "an entry is cut off");
    }
    *time = (int64_t)read_u64(ptr + size);
    return (int64_t)(size + sizeof(uint64_t));
}

static int
put_piece(struct sl_state_map *self, const uint8_t *ptr, size_t len)
{
    for (size_t at = 0; at < len;) {
        struct sl_value key;
        struct sl_value value;
        struct sl_keyed_key made;
        int64_t time = 0;
        int64_t size = read_entry(ptr + at, len - at, &key, &value, &time);
        int rc = size < 0 ? (int)size : sl_keyed_key_of(&key, &made);
        if (rc == 0) {
            rc = sl_state_map_put(self, &made, &value, time);
        }
        if (rc != 0) {
            return rc;
        }
        at += (size_t)size;
    }
    return 0;
}

/* The bytes of the piece at *at, which moves behind it; a length of 0 is the end. SL_EPROTO when
 * the file is not what was written. */
static int
next_piece(const struct sl_buf *file, size_t *at, const uint8_t **bytes, size_t *len)
{
    if (file->size - *at < PIECE_HEAD_BYTES) {
        return sl_err_set(SL_EPROTO, "the file is cut off");
    }
    uint64_t size = read_u64(file->data + *at);
    *bytes = file->data + *at + PIECE_HEAD_BYTES;
    if (size > file->size - *at - PIECE_HEAD_BYTES ||
        read_u64(file->data + *at + 8) != sl_hash_bytes(*bytes, size)) {
        return sl_err_set(SL_EPROTO, "the file is damaged");
    }
    *len = size;
    *at += PIECE_HEAD_BYTES + size;
    return 0;
}

/* Makes room for the entries that a file says it holds; its bytes bound their number. */
static int
reserve(struct sl_state_map *self, const struct sl_buf *file, const uint8_t *bytes, size_t len)
{
    if (len != sizeof(uint64_t) || read_u64(bytes) > file->size) {
        return sl_err_set(SL_EPROTO, "the file does not begin with its number of entries");
    }
    return sl_keyed_reserve(&self->index, self->index.count + read_u64(bytes));
}

/* Puts what the pieces hold, or only checks them. */
static int
read_pieces(struct sl_state_map *self, const struct sl_buf *file, bool is_put)
{
    const uint8_t *bytes = NULL;
    size_t len = 0;
    size_t at = 0;
    int rc = next_piece(file, &at, &bytes, &len);
    if (rc == 0 && is_put) {
        rc = reserve(self, file, bytes, len);
    }
    while (rc == 0 && len > 0) {
        rc = next_piece(file, &at, &bytes, &len);
        if (rc == 0 && is_put) {
            rc = put_piece(self, bytes, len);
        }
    }
    return rc;
}

int
sl_state_map_load(struct sl_state_map *self, const char *path)
{
    struct sl_buf file = {0};
    int rc = sl_files_read(path, SIZE_MAX, &file);
    if (rc == 0) {
        /* All is checked first, so that a damaged file changes nothing. */
        rc = read_pieces(self, &file, false);
    }
    if (rc == 0) {
        rc = read_pieces(self, &file, true);
    }
    sl_buf_destroy(&file);
    return rc == 0 ? 0 : sl_err_wrap("load state from %s", path);
}
