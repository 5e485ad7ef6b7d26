/*
 * Settings of the control plane for Lua: the table of their names, and a struct of values that a
 * process hands to its role. This is a bare header: no preprocessor lines, only what both gcc and
 * LuaJIT's parser accept.
 */

/* Returns row `index` of the table, with the default as its value; NULL behind the last. */
const struct sl_setting *sl_abi_settings_row(uint32_t index);

/* Makes settings with all defaults; free them with sl_abi_settings_free. */
struct sl_settings *sl_abi_settings_new(void);

/* Frees settings; NULL is fine. */
void sl_abi_settings_free(struct sl_settings *settings);

/*
 * Sets a value by name: milliseconds, a number, or 0 and 1. Returns 0, SL_ENOTFOUND for an unknown
 * name, SL_ERANGE for a value that is no whole number or out of range, SL_EINVAL for NULL.
 */
int32_t sl_abi_settings_set(struct sl_settings *settings, const char *name, double value);

/* Looks at values that depend on each other. Returns 0 or SL_EINVAL; the message names both. */
int32_t sl_abi_settings_check(const struct sl_settings *settings);
