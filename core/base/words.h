#pragma once
/* Splitting a text into words: runs of bytes that are no blank (space, \t \n \v \f \r). */

#include <stddef.h>
#include <stdint.h>

#include "base/words.abi.h"

/*
 * Finds the next words of a text from run->next on, as many as a run holds, and gives each its
 * place in the dictionary; new ones of at most SL_WORDS_LONGEST bytes get one while there is room
 * where they belong. The text has len bytes, any of them; run->next lies in 0..len.
 */
void sl_words_split(struct sl_words *self, const char *text, size_t len, struct sl_word_run *run);
