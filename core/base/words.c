/*
 * Many bytes at a time: one load gives the end of most words and the key to look them up with.
 * A word belongs into one of the four places of a bucket, so a look-up touches two cache lines at
 * most.
 */

#include "base/words.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

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
_Static_assert(SL_WORDS_PLACES == 1 << 13, "the shift in first_place");
_Static_assert(AHEAD == 3 * CHUNK, "the chunks of a key");

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

/* The bytes in front of the lowest blank, zeros behind them. */
static inline uint64_t
before(uint64_t bytes, uint64_t blanks)
{
    return bytes & (((blanks & -blanks) >> 7) - 1);
}

static inline uint64_t
count_before(uint64_t blanks)
{
    return (uint64_t)__builtin_ctzll(blanks) >> 3;
}

/* A word: its bytes with zeros behind them. */
struct key {
    uint64_t first;
    uint64_t second;
    uint64_t third;
    uint64_t len;
};

/* Reads the word that begins at `at`, where AHEAD bytes are; false when it is longer. */
static inline bool
key_read_chunks(struct key *key, const char *at)
{
    uint64_t bytes = chunk_at(at);
    uint64_t blanks = blanks_of(bytes);
    key->second = 0;
    key->third = 0;
    if (blanks != 0) {
        key->first = before(bytes, blanks);
        key->len = count_before(blanks);
        return true;
    }
    key->first = bytes;
    bytes = chunk_at(at + CHUNK);
    blanks = blanks_of(bytes);
    if (blanks != 0) {
        key->second = before(bytes, blanks);
        key->len = CHUNK + count_before(blanks);
        return true;
    }
    key->second = bytes;
    bytes = chunk_at(at + 2 * CHUNK);
    blanks = blanks_of(bytes);
    key->third = before(bytes, blanks);
    key->len = 2 * CHUNK + count_before(blanks | UINT64_C(1) << 63);
    return blanks != 0;
}

#ifdef __SSE2__
/* Sixteen bytes of ones and as many of zeros: from 16 - n on, n ones and then zeros. */
static const uint8_t ones[32] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* The same with one load for words of less than 16 bytes. */
static inline bool
key_read(struct key *key, const char *at)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    __m128i from_tab = _mm_sub_epi8(bytes, _mm_set1_epi8('\t'));
    __m128i controls = _mm_cmpeq_epi8(_mm_min_epu8(from_tab, _mm_set1_epi8('\r' - '\t')), from_tab);
    __m128i spaces = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(' '));
    uint32_t blanks = (uint32_t)_mm_movemask_epi8(_mm_or_si128(controls, spaces));
    if (blanks == 0) {
        return key_read_chunks(key, at);
    }
    uint32_t len = (uint32_t)__builtin_ctz(blanks);
    bytes = _mm_and_si128(
        bytes, _mm_loadu_si128((const __m128i *)(const void *)(ones + sizeof(ones) / 2 - len)));
    key->first = (uint64_t)_mm_cvtsi128_si64(bytes);
    key->second = (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(bytes, bytes));
    key->third = 0;
    key->len = len;
    return true;
}
#else
static inline bool
key_read(struct key *key, const char *at)
{
    return key_read_chunks(key, at);
}
#endif

/* The first of the places where a word may be, by its bytes with zeros behind them. */
static inline uint32_t
first_place(uint64_t first, uint64_t second, uint64_t third)
{
    uint64_t mixed = first ^ (second << 23 | second >> 41) ^ (third << 41 | third >> 23);
    /* The highest bits depend on all others. */
    return (uint32_t)((mixed * UINT64_C(0x9e3779b97f4a7c15)) >> 51);
}

static inline bool
is_same(const struct sl_known_word *word, uint64_t first, uint64_t second, uint64_t third,
        uint64_t len)
{
    return word->len == len && word->bytes[0] == first && word->bytes[1] == second &&
           word->bytes[2] == third;
}

/* The number of a word that is not in its first place; 0 when it has none and there is none. */
static __attribute__((noinline)) int32_t
find_or_add(struct sl_words *self, uint64_t first, uint64_t second, uint64_t third, uint64_t len,
            int32_t *has_new)
{
    uint32_t start = first_place(first, second, third);
    for (uint32_t i = 0; i < BUCKET; i++) {
        uint32_t at = (start & ~(uint32_t)(BUCKET - 1)) | ((start + i) & (BUCKET - 1));
        struct sl_known_word *word = &self->words[at];
        if (is_same(word, first, second, third, len)) {
            return (int32_t)at + 1;
        }
        if (word->len == 0) {
            word->bytes[0] = first;
            word->bytes[1] = second;
            word->bytes[2] = third;
            word->len = len;
            *has_new = 1;
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
        const char *word = bytes + at;
        struct key key;
        if (!key_read(&key, word)) {
            break;
        }
        if (key.len == 0) {
            at++;
            continue;
        }
        if (run->count == SL_WORDS_IN_RUN) {
            break;
        }
        uint32_t start = first_place(key.first, key.second, key.third);
        int32_t place =
            is_same(&self->words[start], key.first, key.second, key.third, key.len)
                ? (int32_t)start + 1
                : find_or_add(self, key.first, key.second, key.third, key.len, &run->has_new);
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
