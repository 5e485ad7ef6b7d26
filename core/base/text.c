#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"

static bool
is_name_char(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

int
sl_name_check_system(const char *what, const char *name, size_t len)
{
    char quoted[SL_NAME_MAX + 32];
    if (len == 0) {
        return sl_err_set(SL_EINVAL, "%s is empty", what);
    }
    sl_text_quote(quoted, sizeof(quoted), name, len);
    if (len > SL_NAME_MAX) {
        return sl_err_set(SL_EINVAL, "%s %s is %zu bytes long; at most %d are allowed", what,
                          quoted, len, SL_NAME_MAX);
    }
    for (size_t i = 0; i < len; i++) {
        if (!is_name_char((unsigned char)name[i])) {
            size_t width = sl_text_utf8_len(name + i, len - i);
            char bad[16];
            sl_text_quote(bad, sizeof(bad), name + i, width > 0 ? width : 1);
            return sl_err_set(SL_EINVAL,
                              "%s %s: %s is not allowed; use letters, digits, '_', '.' and '-'",
                              what, quoted, bad);
        }
    }
    if (strncmp(name, "..", len) == 0 && len <= 2) {
        return sl_err_set(SL_EINVAL, "%s %s is reserved", what, quoted);
    }
    return 0;
}

int
sl_name_check(const char *what, const char *name, size_t len)
{
    int rc = sl_name_check_system(what, name, len);
    if (rc == 0 && len >= 2 && name[0] == '_' && name[1] == '_') {
        char quoted[SL_NAME_MAX + 32];
        rc = sl_err_set(SL_EINVAL, "%s %s: names that start with '__' belong to the engine", what,
                        sl_text_quote(quoted, sizeof(quoted), name, len));
    }
    return rc;
}

size_t
sl_text_utf8_len(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    if (len == 0) {
        return 0;
    }
    if (s[0] < 0x80) {
        return 1;
    }
    size_t width = s[0] >= 0xc2 && s[0] < 0xe0   ? 2
                   : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
                   : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                                 : 0;
    if (width == 0 || width > len) {
        return 0;
    }
    for (size_t i = 1; i < width; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    /* The second byte rules out overlong forms, surrogates and what is past U+10FFFF. */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) {
        return 0;
    }
    return width;
}

bool
sl_text_is_utf8(const char *text, size_t len)
{
    while (len > 0) {
        size_t width = sl_text_utf8_len(text, len);
        if (width == 0) {
            return false;
        }
        text += width;
        len -= width;
    }
    return true;
}

/* C1 controls (U+0080..U+009F), line separators and the marks that turn the direction of text. */
static bool
is_unsafe_sequence(const unsigned char *s, size_t width)
{
    if (width == 2) {
        return s[0] == 0xc2 && s[1] < 0xa0;
    }
    if (width == 3 && s[0] == 0xe2) {
        return (s[1] == 0x80 && ((s[2] >= 0xa8 && s[2] <= 0xae) || s[2] == 0x8e || s[2] == 0x8f)) ||
               (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9);
    }
    return false;
}

/* Writes the printable form of the character at text; sets *taken to its bytes and returns those
 * written (<= 4). */
static size_t
quote_char(char out[4], const char *text, size_t len, size_t *taken)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char c = (unsigned char)*text;
    size_t width = sl_text_utf8_len(text, len);
    *taken = 1;
    if (width > 1 && !is_unsafe_sequence((const unsigned char *)text, width)) {
        *taken = width;
        memcpy(out, text, width);
        return width;
    }
    if (width == 1 && c >= 0x20 && c != 0x7f && c != '\'' && c != '\\') {
        out[0] = (char)c;
        return 1;
    }
    out[0] = '\\';
    out[1] = c == '\n'                ? 'n'
             : c == '\t'              ? 't'
             : c == '\r'              ? 'r'
             : c == '\'' || c == '\\' ? (char)c
                                      : 'x';
    if (out[1] != 'x') {
        return 2;
    }
    out[2] = hex[c >> 4];
    out[3] = hex[c & 15];
    return 4;
}

char *
sl_text_quote(char *dst, size_t size, const char *text, size_t len)
{
    sl_assert_ge(size, 8);
    size_t used = 0;
    /* Where the text may be cut so that "...'" and the NUL still fit. */
    size_t cut = 1;
    dst[used++] = '\'';
    for (size_t i = 0, taken; i < len; i += taken) {
        char piece[4];
        size_t width = quote_char(piece, text + i, len - i, &taken);
        if (used + width + 2 > size) {
            memcpy(dst + cut, "...'", 5);
            return dst;
        }
        memcpy(dst + used, piece, width);
        used += width;
        if (used + 5 <= size) {
            cut = used;
        }
    }
    dst[used++] = '\'';
    dst[used] = '\0';
    return dst;
}

void
sl_text_quote_buf(struct sl_buf *out, const char *text, size_t len)
{
    sl_buf_append_u8(out, '\'');
    for (size_t i = 0, taken; i < len; i += taken) {
        char piece[4];
        size_t width = quote_char(piece, text + i, len - i, &taken);
        sl_buf_append(out, piece, width);
    }
    sl_buf_append_u8(out, '\'');
}
