#pragma once
/* Names and texts: the rule for names users choose, and quoting that makes any bytes safe to print.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { SL_NAME_MAX = 64 };

/*
 * Checks a name of a topology, component, stream or host: [A-Za-z0-9_.-]{1,64}, not "." or "..",
 * not starting with
 * "__". Returns 0, or SL_EINVAL with the reason in the error record ("name 'a b': character ' ' is
 * not allowed; use letters, digits, '_', '.' and '-'"). `what` names the thing in the message
 * ("component name").
 */
int sl_name_check(const char *what, const char *name, size_t len);

/* The same for the engine's own names too, which may start with "__". */
int sl_name_check_system(const char *what, const char *name, size_t len);

/*
 * Writes the bytes in single quotes, printable on any terminal: valid UTF-8 stays, control
 * characters, quotes, backslashes and invalid bytes become \n, \t, \', \\ or \xNN. What does not
 * fit into size is cut at a character and ends in "...". The result is NUL-terminated; returns dst.
 * size must be at least 8.
 */
char *sl_text_quote(char *dst, size_t size, const char *text, size_t len);

/* Appends the quoted text without a limit. */
void sl_text_quote_buf(struct sl_buf *out, const char *text, size_t len);

/*
 * Bytes of the valid UTF-8 sequence at text (1..4), or 0 when it is invalid (overlong, surrogate,
 * past U+10FFFF, cut off) or len is 0.
 */
size_t sl_text_utf8_len(const char *text, size_t len);

/* True when all of it is valid UTF-8. */
bool sl_text_is_utf8(const char *text, size_t len);
