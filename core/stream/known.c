/*
 * Known keys: the strings that an outbox has sent by their number instead of their bytes.  They are
 * written once, by the sender, before the first record that names them is handed over; receivers
 * only read them, and each batch holds on to those that its records name.  Nothing is ever taken
 * out: a sender that wants other keys begins a new set.
 */

#include "base/alloc.h"
#include "stream/stream_priv.h"

enum {
    /* Keys in the first block; each further one is twice as large, so none has to move. */
    FIRST_BLOCK = 64,
};

_Static_assert(FIRST_BLOCK *((1 << SL__KNOWN_BLOCKS) - 1) >= SL_WAY_KEYS_MOST,
               "an outbox may have all keys of a route");
_Static_assert(SL_WAY_KEYS_MOST < 1 << SL_WAY_BITS, "a way has room for the number of a key");

struct sl__known *
sl__known_new(struct sl_worker *worker)
{
    struct sl__known *self = sl_calloc(1, sizeof(*self));
    self->holders = 1;
    self->number = __atomic_add_fetch(&worker->known_sets, 1, __ATOMIC_RELAXED);
    return self;
}

struct sl__known *
sl__known_hold(struct sl__known *self)
{
    if (self != NULL) {
        __atomic_add_fetch(&self->holders, 1, __ATOMIC_RELAXED);
    }
    return self;
}

void
sl__known_drop(struct sl__known *self)
{
    if (self == NULL || __atomic_sub_fetch(&self->holders, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    for (int32_t i = 1; i <= self->count; i++) {
        size_t len;
        sl_free((char *)(uintptr_t)sl__known_key(self, i, &len));
    }
    for (int32_t i = 0; i < SL__KNOWN_BLOCKS; i++) {
        sl_free(self->blocks[i]);
    }
    sl_free(self);
}

/* The block of a key, and how many keys come before that block. */
static int32_t
block_of(int32_t at, int32_t *before)
{
    int32_t block = 31 - __builtin_clz((uint32_t)(at / FIRST_BLOCK + 1));
    *before = FIRST_BLOCK * ((1 << block) - 1);
    return block;
}

int32_t
sl__known_add(struct sl__known *self, const char *text, size_t len)
{
    int32_t before;
    int32_t at = self->count;
    int32_t block = block_of(at, &before);
    sl_assert(block < SL__KNOWN_BLOCKS);
    if (self->blocks[block] == NULL) {
        self->blocks[block] = sl_calloc((size_t)FIRST_BLOCK << block, sizeof(**self->blocks));
    }
    struct sl__known_key *key = &self->blocks[block][at - before];
    key->text = sl_alloc(len + 1);
    memcpy(key->text, text, len);
    key->len = len;
    __atomic_store_n(&self->count, at + 1, __ATOMIC_RELEASE);
    return at + 1;
}

const char *
sl__known_key(const struct sl__known *self, int32_t number, size_t *len)
{
    if (self == NULL || number < 1 || number > __atomic_load_n(&self->count, __ATOMIC_ACQUIRE)) {
        return NULL;
    }
    int32_t before;
    int32_t block = block_of(number - 1, &before);
    const struct sl__known_key *key = &self->blocks[block][number - 1 - before];
    *len = key->len;
    return key->text;
}
