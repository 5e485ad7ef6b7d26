#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct sl_err last_err;

static const char *const err_names[] = {
#define XX(name, text) #name,
    SL_ERR_MAP(XX)
#undef XX
};

static const char *const err_texts[] = {
#define XX(name, text) text,
    SL_ERR_MAP(XX)
#undef XX
};

int
sl__err_set(int code, const char *file, int line, const char *fmt, ...)
{
    int saved_errno = errno;
    /* Formatted aside because an argument may point into the record. */
    char msg[SL_ERR_MSG_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(msg, sizeof(msg), fmt, args);
    va_end(args);

    last_err.code = code;
    last_err.sys_errno = code == SL_ESYS ? saved_errno : 0;
    last_err.file = file;
    last_err.line = line;
    last_err.cause_count = 0;
    memcpy(last_err.msg, msg, sizeof(msg));
    errno = saved_errno;
    return code;
}

/* Makes the present message the first cause. A full array loses the cause above the root. */
static void
err_push_cause(struct sl_err *err)
{
    int kept = err->cause_count;
    if (kept == SL_ERR_CAUSE_MAX) {
        err->causes[SL_ERR_CAUSE_MAX - 2] = err->causes[SL_ERR_CAUSE_MAX - 1];
        kept--;
    }
    memmove(&err->causes[1], &err->causes[0], (size_t)kept * sizeof(err->causes[0]));
    err->causes[0].file = err->file;
    err->causes[0].line = err->line;
    memcpy(err->causes[0].msg, err->msg, sizeof(err->msg));
    err->cause_count = kept + 1;
}

int
sl__err_wrap(const char *file, int line, const char *fmt, ...)
{
    int saved_errno = errno;
    char msg[SL_ERR_MSG_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(msg, sizeof(msg), fmt, args);
    va_end(args);

    if (last_err.code == 0) {
        memset(&last_err, 0, sizeof(last_err));
        last_err.code = SL_EINTERNAL;
    } else {
        err_push_cause(&last_err);
    }
    last_err.file = file;
    last_err.line = line;
    memcpy(last_err.msg, msg, sizeof(msg));
    errno = saved_errno;
    return last_err.code;
}

const struct sl_err *
sl_err_last(void)
{
    return &last_err;
}

void
sl_err_clear(void)
{
    last_err.code = 0;
    last_err.sys_errno = 0;
    last_err.file = NULL;
    last_err.line = 0;
    last_err.msg[0] = '\0';
    last_err.cause_count = 0;
}

void
sl_err_move(struct sl_err *dst)
{
    *dst = last_err;
    sl_err_clear();
}

int
sl_err_restore(const struct sl_err *src)
{
    last_err = *src;
    return last_err.code;
}

static int
code_is_known(int code)
{
    return code < 0 && code >= -SL_ERR_COUNT;
}

const char *
sl_err_name(int code)
{
    if (code == 0) {
        return "OK";
    }
    return code_is_known(code) ? err_names[-1 - code] : "EUNKNOWN";
}

int
sl_err_code(const char *name)
{
    if (strncmp(name, "SL_", 3) == 0) {
        name += 3;
    }
    for (int i = 0; i < SL_ERR_COUNT; i++) {
        if (strcmp(name, err_names[i]) == 0) {
            return -1 - i;
        }
    }
    return 0;
}

const char *
sl_err_text(int code)
{
    if (code == 0) {
        return "ok";
    }
    return code_is_known(code) ? err_texts[-1 - code] : "unknown error";
}

/* Appends text at *used, cut to what fits. */
static void
text_append(char *dst, size_t size, size_t *used, const char *text)
{
    size_t length = strlen(text);
    size_t room = size - 1 - *used;
    if (length > room) {
        length = room;
    }
    memcpy(dst + *used, text, length);
    *used += length;
    dst[*used] = '\0';
}

char *
sl_err_format(const struct sl_err *err, char *dst, unsigned long size)
{
    if (size == 0) {
        return dst;
    }
    size_t used = 0;
    text_append(dst, size, &used, err->msg[0] != '\0' ? err->msg : sl_err_text(err->code));
    for (int i = 0; i < err->cause_count; i++) {
        text_append(dst, size, &used, ": ");
        text_append(dst, size, &used, err->causes[i].msg);
    }
    if (err->sys_errno != 0) {
        char text[128];
        const char *reason = strerror_r(err->sys_errno, text, sizeof(text));
        if (strstr(dst, reason) == NULL) {
            text_append(dst, size, &used, " (");
            text_append(dst, size, &used, reason);
            text_append(dst, size, &used, ")");
        }
    }
    return dst;
}
