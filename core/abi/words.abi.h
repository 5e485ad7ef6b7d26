/* Splitting a text into words, for streamlua.split. This is a bare header. */

/*
 * Finds the next words of a text of len bytes from run->next on (base/words.abi.h), and their
 * places in the dictionary. Returns 0, or SL_EINVAL when something is NULL or run->next lies
 * outside of the text, SL_ERANGE when it is longer than 2^31 - 1 bytes.
 */
int32_t sl_abi_words_split(struct sl_words *words, const char *text, size_t len,
                           struct sl_word_run *run);
