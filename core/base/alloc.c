#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local int64_t successes_left = -1;

static void __attribute__((noreturn, cold)) die_out_of_memory(size_t size)
{
    fprintf(stderr, "fatal: out of memory allocating %zu bytes\n", size);
    abort();
}

void *
sl_alloc(size_t size)
{
    void *ptr = malloc(size > 0 ? size : 1);
    if (ptr == NULL) {
        die_out_of_memory(size);
    }
    return ptr;
}

void *
sl_calloc(size_t count, size_t size)
{
    void *ptr = calloc(count > 0 ? count : 1, size > 0 ? size : 1);
    if (ptr == NULL) {
        die_out_of_memory(count * size);
    }
    return ptr;
}

void *
sl_realloc(void *ptr, size_t size)
{
    void *moved = realloc(ptr, size > 0 ? size : 1);
    if (moved == NULL) {
        die_out_of_memory(size);
    }
    return moved;
}

void
sl_alloc_fail_after(int64_t successes)
{
    successes_left = successes;
}

static int
failure_is_due(void)
{
    if (successes_left < 0) {
        return 0;
    }
    if (successes_left == 0) {
        return 1;
    }
    successes_left--;
    return 0;
}

void *
sl_try_alloc(size_t size)
{
    if (failure_is_due()) {
        return NULL;
    }
    return malloc(size > 0 ? size : 1);
}

void *
sl_try_calloc(size_t count, size_t size)
{
    if (failure_is_due()) {
        return NULL;
    }
    return calloc(count > 0 ? count : 1, size > 0 ? size : 1);
}

void *
sl_try_realloc(void *ptr, size_t size)
{
    if (failure_is_due()) {
        return NULL;
    }
    return realloc(ptr, size > 0 ? size : 1);
}

void
sl_free(void *ptr)
{
    free(ptr);
}

char *
sl_strdup(const char *text)
{
    return sl_strndup(text, strlen(text));
}

char *
sl_strndup(const char *text, size_t length)
{
    char *copy = sl_alloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *
sl_asprintf(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *text = NULL;
    int length = vasprintf(&text, fmt, args);
    va_end(args);
    if (length < 0) {
        die_out_of_memory(0);
    }
    return text;
}
