#include "base/alloc.h"
#include "base/random.h"
#include "base/words.h"
#include "unit.h"

static struct sl_words *words;

static int
setup(void **state)
{
    (void)state;
    words = sl_calloc(1, sizeof(*words));
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    sl_free(words);
    return 0;
}

static bool
is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Splits a copy of the text of exactly its size, so that a sanitizer sees what is read beyond it,
 * and compares with a loop over its bytes. Returns how many words there are. */
static int
check_split(const char *text, size_t len)
{
    char *copy = sl_alloc(len + 1);
    char *exact = sl_realloc(copy, len > 0 ? len : 1);
    memcpy(exact, text, len);
    struct sl_word_run run = {0};
    size_t at = 0;
    int count = 0;
    while (run.next >= 0) {
        sl_words_split(words, exact, len, &run);
        assert_in_range(run.count, 0, SL_WORDS_IN_RUN);
        assert_int_equal(run.at, 0);
        for (int i = 0; i < run.count; i++) {
            while (is_blank(text[at])) {
                at++;
            }
            size_t end = at;
            while (end < len && !is_blank(text[end])) {
                end++;
            }
            assert_int_equal(run.first[i], at + 1);
            assert_int_equal(run.last[i], end);
            if (run.place[i] != 0) {
                const struct sl_known_word *word = &words->words[run.place[i] - 1];
                assert_int_equal(word->len, end - at);
                assert_memory_equal(word->bytes, text + at, end - at);
            } else {
                assert_true(words->missed > 0 || words->seen == 0 || end - at > SL_WORDS_LONGEST);
            }
            at = end;
            count++;
        }
    }
    assert_int_equal(run.next, -1);
    while (at < len && is_blank(text[at])) {
        at++;
    }
    assert_int_equal(at, len);
    sl_free(exact);
    return count;
}

static void
test_words_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int count;
    } rows[] = {
        {"", 0},
        {" ", 0},
        {" \t\n\v\f\r ", 0},
        {"a", 1},
        {"to be or not to be", 6},
        {"  to\tbe\r\n", 2},
        {"eightbyt eightbyte sixteen_bytes_16 seventeen_bytes17", 4},
        {"twenty_three_bytes_long twenty_four_bytes_longer and_one_of_more_than_that_which_is_long",
         3},
        {"\x08 \x0e \x1f \x21 \x89 \xa0 \xff", 7},
        {"a.very.long.word.in.front.of.all.others.which.are.short b c d e f g h i j k l m n o p",
         16},
    };
    for (size_t i = 0; i < array_size(rows); i++) {
        assert_int_equal(check_split(rows[i].text, strlen(rows[i].text)), rows[i].count);
    }
    assert_int_equal(check_split("a\0b \0 \0\0", 8), 3);
}

static void
test_a_word_keeps_its_place(void **state)
{
    (void)state;
    struct sl_word_run run = {0};
    sl_words_split(words, "one two one", 11, &run);
    assert_int_equal(run.count, 3);
    assert_int_equal(run.has_new, 1);
    assert_int_not_equal(run.place[0], 0);
    assert_int_not_equal(run.place[0], run.place[1]);
    assert_int_equal(run.place[0], run.place[2]);
    int32_t one = run.place[0];
    run.next = 0;
    sl_words_split(words, "one", 3, &run);
    assert_int_equal(run.place[0], one);
    assert_int_equal(run.has_new, 0);
    /* Zeros at its end make another word. */
    run.next = 0;
    sl_words_split(words, "one\0", 4, &run);
    assert_int_not_equal(run.place[0], one);
}

static void
test_long_texts_come_in_runs(void **state)
{
    (void)state;
    char text[SL_WORDS_IN_RUN * 4 + 8];
    size_t len = 0;
    for (int i = 0; i < SL_WORDS_IN_RUN * 2; i++) {
        text[len++] = (char)('a' + i % 26);
        text[len++] = ' ';
    }
    struct sl_word_run run = {0};
    sl_words_split(words, text, len, &run);
    assert_int_equal(run.count, SL_WORDS_IN_RUN);
    assert_int_equal(run.next, SL_WORDS_IN_RUN * 2);
    sl_words_split(words, text, len, &run);
    assert_int_equal(run.count, SL_WORDS_IN_RUN);
    assert_int_equal(run.next, -1);
    assert_int_equal(check_split(text, len), SL_WORDS_IN_RUN * 2);
    memcpy(text + len, "x", 1);
    assert_int_equal(check_split(text, len + 1), SL_WORDS_IN_RUN * 2 + 1);
}

static void
test_random_texts(void **state)
{
    (void)state;
    struct sl_random random;
    sl_random_seed(&random, 5);
    static const char bytes[] = "  \t\n\v\f\r\x08\x0e\x1f!a\x7f\x80\x89\xa0\xff";
    char text[400];
    for (int round = 0; round < UNIT_ROUNDS(20000); round++) {
        size_t len = sl_random_below(&random, sizeof(text));
        uint64_t share = 1 + sl_random_below(&random, 40);
        for (size_t i = 0; i < len; i++) {
            text[i] = sl_random_below(&random, share) == 0
                          ? bytes[sl_random_below(&random, sizeof(bytes))]
                          : (char)('a' + sl_random_below(&random, 3));
        }
        check_split(text, len);
    }
}

static void
test_words_that_never_come_again_make_it_stale(void **state)
{
    (void)state;
    char text[16];
    int32_t unknown = 0;
    for (int i = 0; i < 2 * 65536; i++) {
        struct sl_word_run run = {0};
        int len = snprintf(text, sizeof(text), "w%d", i);
        sl_words_split(words, text, (size_t)len, &run);
        unknown += run.place[0] == 0;
        assert_true(words->is_stale == (i >= 65535));
    }
    assert_true(unknown > 65536);
    /* A few that come again and again do not. */
    memset(words, 0, sizeof(*words));
    for (int i = 0; i < 3 * 65536; i++) {
        struct sl_word_run run = {0};
        int len = snprintf(text, sizeof(text), "w%d", i % 1000);
        sl_words_split(words, text, (size_t)len, &run);
        assert_int_equal(words->is_stale, 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_words_are_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_word_keeps_its_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_texts_come_in_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_words_that_never_come_again_make_it_stale, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
