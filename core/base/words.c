/*
 * Eight bytes at a time: one load gives the end of most words and the key to look them up with.
 * A word belongs into one of the four places of a bucket, so a look-up touches two cache lines at
 * most.
 */

#include "base/words.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"

enum {
    CHUNK = 8,
    BUCKET = 4,
    /* What is read from the beginning of a word on: the longest known one and the blank behind it.
     */
    AHEAD = SL_WORDS_LONGEST + 1,
    /* Look-ups between two decisions whether to begin anew. */
    LOOK_UPS = 65536,
};

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

_Static_assert(sizeof(struct sl_words) == 16 + SL_WORDS_PLACES * sizeof(struct sl_known_word),
               "the sizes in words.abi.h");
_Static_assert(sizeof(struct sl_word_run) == 16 + 3 * 4 * SL_WORDS_IN_RUN,
               "the sizes in words.abi.h");
_Static_assert(SL_WORDS_PLACES == 1 << 13, "the shift in key_place");
_Static_assert(AHEAD == 3 * CHUNK, "the chunks of a key");

/* A word as it is looked up: its bytes with zeros behind them. */
struct key {
    uint64_t bytes[3];
    uint64_t len;
};

static inline uint64_t
chunk_at(const char *at)
{
    uint64_t bytes;
    memcpy(&bytes, at, CHUNK);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes);
#endif
    return bytes;
}

/* The highest bit of each byte that is a blank. No sum reaches into the next byte. */
static inline uint64_t
blanks_of(uint64_t bytes)
{
    uint64_t low = bytes & EACH(0x7f);
    uint64_t from_tab = low + EACH(0x80 - '\t');
    uint64_t above_return = low + EACH(0x7f - '\r');
    uint64_t no_space = (low ^ EACH(' ')) + EACH(0x7f);
    return ((from_tab & ~above_return) | ~no_space) & ~bytes & EACH(0x80);
}

/* Takes a chunk of a word that may end in it; returns whether it does. */
static inline bool
key_take(struct key *key, int chunk, const char *at)
{
    uint64_t bytes = chunk_at(at + chunk * CHUNK);
    uint64_t blanks = blanks_of(bytes);
    if (blanks == 0) {
        key->bytes[chunk] = bytes;
        return false;
    }
    /* Everything below the lowest blank. */
    key->bytes[chunk] = bytes & (((blanks & -blanks) >> 7) - 1);
    key->len = (uint64_t)(chunk * CHUNK + (__builtin_ctzll(blanks) >> 3));
    return true;
}

/* The first of the places where a word may be. */
static inline uint32_t
key_place(const struct key *key)
{
    uint64_t mixed = key->bytes[0] ^ (key->bytes[1] << 23 | key->bytes[1] >> 41) ^
                     (key->bytes[2] << 41 | key->bytes[2] >> 23);
    /* The highest bits depend on all others. */
    return (uint32_t)((mixed * UINT64_C(0x9e3779b97f4a7c15)) >> 51);
}

static inline bool
is_same(const struct sl_known_word *word, const struct key *key)
{
    return word->len == key->len && word->bytes[0] == key->bytes[0] &&
           word->bytes[1] == key->bytes[1] && word->bytes[2] == key->bytes[2];
}

/* The number of a word that is not in its first place; 0 when it has none and there is none. */
static __attribute__((noinline)) int32_t
find_or_add(struct sl_words *self, const struct key *key, struct sl_word_run *run)
{
    uint32_t first = key_place(key);
    for (uint32_t i = 0; i < BUCKET; i++) {
        uint32_t at = (first & ~(uint32_t)(BUCKET - 1)) | ((first + i) & (BUCKET - 1));
        struct sl_known_word *word = &self->words[at];
        if (is_same(word, key)) {
            return (int32_t)at + 1;
        }
        if (word->len == 0) {
            memcpy(word->bytes, key->bytes, sizeof(word->bytes));
            word->len = key->len;
            run->has_new = 1;
            return (int32_t)at + 1;
        }
    }
    self->missed++;
    return 0;
}

static inline void
run_add(struct sl_word_run *run, int32_t place, int32_t begin, int32_t end)
{
    int32_t count = run->count;
    run->place[count] = place;
    run->first[count] = begin + 1;
    run->last[count] = end;
    run->count = count + 1;
}

/*
 * Takes words that begin in front of `stop`; what AHEAD needs is readable there. `at` and `stop`
 * count from `bytes`, which lie `offset` bytes into the text. Returns where a word begins that is
 * too long or for which the run has no room, else what is not below `stop`.
 */
static inline int32_t
take_known(struct sl_words *self, struct sl_word_run *run, const char *bytes, int32_t offset,
           int32_t at, int32_t stop)
{
    while (at < stop) {
        struct key key = {0};
        bool is_whole = key_take(&key, 0, bytes + at);
        if (is_whole && key.len == 0) {
            at++;
            continue;
        }
        if (run->count == SL_WORDS_IN_RUN ||
            !(is_whole || key_take(&key, 1, bytes + at) || key_take(&key, 2, bytes + at))) {
            break;
        }
        uint32_t first = key_place(&key);
        int32_t place =
            is_same(&self->words[first], &key) ? (int32_t)first + 1 : find_or_add(self, &key, run);
        int32_t end = at + (int32_t)key.len;
        run_add(run, place, offset + at, offset + end);
        /* A blank ended it. */
        at = end + 1;
    }
    return at;
}

static bool
is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Takes a word that is too long to be known; returns where it ends. */
static int32_t
take_long(struct sl_word_run *run, const char *text, int32_t at, int32_t size)
{
    int32_t end = at + SL_WORDS_LONGEST;
    while (end < size && !is_blank(text[end])) {
        end++;
    }
    run_add(run, 0, at, end);
    return end;
}

/* The last bytes of a text, with blanks behind them: then nothing is read beyond it. */
static int32_t
take_rest(struct sl_words *self, struct sl_word_run *run, const char *text, int32_t at,
          int32_t size)
{
    char rest[2 * AHEAD];
    memset(rest, ' ', sizeof(rest));
    memcpy(rest, text + at, (size_t)(size - at));
    return at + take_known(self, run, rest, at, 0, size - at);
}

void
sl_words_split(struct sl_words *self, const char *text, size_t len, struct sl_word_run *run)
{
    sl_assert(run->next >= 0 && (size_t)run->next <= len && len <= INT32_MAX);
    int32_t size = (int32_t)len;
    int32_t at = run->next;
    run->count = 0;
    run->has_new = 0;
    for (;;) {
        at = take_known(self, run, text, 0, at, size - AHEAD);
        if (at >= size - AHEAD && at < size) {
            at = take_rest(self, run, text, at, size);
        }
        if (at >= size || run->count == SL_WORDS_IN_RUN) {
            break;
        }
        at = take_long(run, text, at, size);
    }
    run->at = 0;
    run->next = at < size ? at : -1;
    self->seen += (uint32_t)run->count;
    if (self->seen >= LOOK_UPS) {
        self->is_stale = self->missed > self->seen / 4;
        self->seen = 0;
        self->missed = 0;
    }
}
