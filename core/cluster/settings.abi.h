/*
 * Settings of the control plane as rows of a table: what a file of settings, `config view` and the
 * documents know of them. This is a bare header.
 */
enum sl_setting_kind {
    /* Written as a duration ("10s"), kept in milliseconds. */
    SL_SETTING_DURATION = 1,
    SL_SETTING_NUMBER = 2,
    /* 0 or 1. */
    SL_SETTING_FLAG = 3,
};

struct sl_setting {
    const char *name;
    /* One sentence. */
    const char *text;
    int32_t kind;
    /* Milliseconds, a number, or 0 and 1. */
    int64_t value;
    int64_t least;
};

struct sl_settings;
