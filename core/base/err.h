#pragma once
/*
 * Errors of the whole code base: negative codes, and the detail of the last failure in a record of
 * the thread.
 *
 * A function that can fail returns 0 or one of the codes below and leaves the detail with
 * sl_err_set. A caller that knows more adds it with sl_err_wrap. Neither allocates, so the failure
 * path can not fail.
 */

/* One list, (name, text), from which the enum, the names, the texts, the Lua table and the docs
 * table are made. */
#define SL_ERR_MAP(XX)                                                                             \
    XX(EINVAL, "invalid argument")                                                                 \
    XX(ENOTFOUND, "not found")                                                                     \
    XX(EEXIST, "already exists")                                                                   \
    XX(ECONFLICT, "conflict")                                                                      \
    XX(EFENCED, "fenced by a newer owner")                                                         \
    XX(ETIMEOUT, "timed out")                                                                      \
    XX(ENOMEM, "out of memory")                                                                    \
    XX(ELIMIT, "limit exceeded")                                                                   \
    XX(ERANGE, "out of range")                                                                     \
    XX(EPROTO, "malformed data")                                                                   \
    XX(EIO, "input or output failed")                                                              \
    XX(ESYS, "system call failed")                                                                 \
    XX(ECLOSED, "closed")                                                                          \
    XX(EAGAIN, "try again")                                                                        \
    XX(ECANCELED, "canceled")                                                                      \
    XX(EUNAVAIL, "unavailable")                                                                    \
    XX(EUNSATISFIABLE, "can not be satisfied")                                                     \
    XX(EUSER, "error in user code")                                                                \
    XX(EINTERNAL, "internal error")

enum sl_err_ordinal {
#define XX(name, text) SL_ERR_ORDINAL_##name,
    SL_ERR_MAP(XX)
#undef XX
    /* How many codes there are; they are -1 .. -SL_ERR_COUNT without a gap. */
    SL_ERR_COUNT
};

enum sl_err_code {
#define XX(name, text) SL_##name = -1 - SL_ERR_ORDINAL_##name,
    SL_ERR_MAP(XX)
#undef XX
};

enum {
    /* Bytes of a message with its final NUL; longer messages are cut. */
    SL_ERR_MSG_SIZE = 256,
    /* Causes kept; when there are more, those in the middle are dropped and the root stays. */
    SL_ERR_CAUSE_MAX = 4,
};

/* A message that was the top one until sl_err_wrap put another above it. */
struct sl_err_cause {
    const char *file;
    int line;
    char msg[SL_ERR_MSG_SIZE];
};

/* A failure. A zeroed record means "no error". It holds no pointers to free and may be copied. */
struct sl_err {
    /* 0 or an SL_E code. It is the code of the root: wrapping keeps it. */
    int code;
    /* The errno of an SL_ESYS, else 0. */
    int sys_errno;
    /* Name without directories of the file that set or wrapped last. */
    const char *file;
    int line;
    char msg[SL_ERR_MSG_SIZE];
    int cause_count;
    /* causes[0] is what the message was wrapped around, the last one is the root. */
    struct sl_err_cause causes[SL_ERR_CAUSE_MAX];
};

#ifdef __FILE_NAME__
#define SL_FILE_NAME __FILE_NAME__
#else
#define SL_FILE_NAME                                                                               \
    (__builtin_strrchr(__FILE__, '/') ? __builtin_strrchr(__FILE__, '/') + 1 : __FILE__)
#endif

/*
 * int sl_err_set(int code, const char *fmt, ...): starts a new failure in the record of this thread
 * and returns code. For SL_ESYS the errno of this moment is kept. The arguments may point into the
 * record itself. errno is preserved.
 */
#define sl_err_set(code, ...) sl__err_set((code), SL_FILE_NAME, __LINE__, __VA_ARGS__)

/*
 * int sl_err_wrap(const char *fmt, ...): puts a message above the present failure, which becomes
 * its cause, and returns the code, which stays. Without a present failure it sets SL_EINTERNAL.
 */
#define sl_err_wrap(...) sl__err_wrap(SL_FILE_NAME, __LINE__, __VA_ARGS__)

int sl__err_set(int code, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int sl__err_wrap(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The record of this thread; its code is 0 when nothing failed since the last clear. Never NULL. */
const struct sl_err *sl_err_last(void);

/* Empties the record of this thread. */
void sl_err_clear(void);

/* Moves the record of this thread to *dst and empties it: how a failure outlives a turn of the
 * loop. */
void sl_err_move(struct sl_err *dst);

/* Makes a stored failure the one of this thread (the way back of sl_err_move) and returns its code.
 */
int sl_err_restore(const struct sl_err *src);

/* "EINVAL" for SL_EINVAL, "OK" for 0, "EUNKNOWN" for anything else. Static text. */
const char *sl_err_name(int code);

/* The code of a name with or without "SL_"; 0 when there is no such code. */
int sl_err_code(const char *name);

/* One lower-case phrase for the code, "ok" for 0. Static text. */
const char *sl_err_text(int code);

/*
 * Writes "message: cause: root (errno text)" as one line of at most size - 1 bytes and a NUL;
 * returns dst. Without a message the text of the code stands for it; an errno text that is in the
 * message already is not repeated.
 */
char *sl_err_format(const struct sl_err *err, char *dst, unsigned long size);
