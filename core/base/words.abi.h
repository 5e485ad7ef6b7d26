/*
 * The words of a text, found many at a time, and a dictionary of those seen lately, so that a word
 * that comes again needs no new Lua string. This is a bare header.
 */

enum {
    /* Words of one run at most. */
    SL_WORDS_IN_RUN = 64,
    /* Words of the dictionary at most, and the longest of them in bytes. */
    SL_WORDS_PLACES = 8192,
    SL_WORDS_LONGEST = 23,
};

/* A word of the dictionary: its bytes with zeros behind them. */
struct sl_known_word {
    uint64_t bytes[3];
    /* Bytes of the word; 0 = the place is free. */
    uint64_t len;
};

/* The dictionary. Zeroed it is empty; a word keeps its place until then. */
struct sl_words {
    /* Words looked up since these were zeroed, and those among them that found no place. */
    uint32_t seen;
    uint32_t missed;
    /* 1 = so many find no place that it is worth while to begin anew. */
    int32_t is_stale;
    struct sl_known_word words[8192];
};

/* Words that follow one another in a text. */
struct sl_word_run {
    /* Where in the text the next run begins, from 0; -1 = no word is left. */
    int32_t next;
    /* Words of this run. */
    int32_t count;
    /* 1 = some are in the dictionary for the first time. */
    int32_t has_new;
    /* The reader's own: how many it has taken. */
    int32_t at;
    /* By word: its place in the dictionary from 1, 0 = it has none. */
    int32_t place[64];
    /* By word: its first and its last byte in the text, from 1. */
    int32_t first[64];
    int32_t last[64];
};
