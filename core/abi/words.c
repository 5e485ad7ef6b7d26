#include "base/words.h"

#include "abi/abi.h"
#include "base/err.h"

int32_t
sl_abi_words_split(struct sl_words *words, const char *text, size_t len, struct sl_word_run *run)
{
    if (words == NULL || text == NULL || run == NULL) {
        return sl_err_set(SL_EINVAL, "a dictionary, a text and a run are needed");
    }
    if (len > INT32_MAX) {
        return sl_err_set(SL_ERANGE, "a text of %zu bytes", len);
    }
    if (run->next < 0 || (size_t)run->next > len) {
        return sl_err_set(SL_EINVAL, "a run from byte %d of %zu", run->next, len);
    }
    sl_words_split(words, text, len, run);
    return 0;
}
