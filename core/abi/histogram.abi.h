/*
 * Histograms for Lua: whole numbers with a relative error of 1/64, in constant memory.
 * This is a bare header: no preprocessor lines, only what both gcc and LuaJIT's parser accept.
 */
struct sl_histogram;

/* Makes an empty histogram; free it with sl_abi_histogram_free. */
struct sl_histogram *sl_abi_histogram_new(void);

/* Frees a histogram; NULL is fine. */
void sl_abi_histogram_free(struct sl_histogram *histogram);

/* Counts a value, rounded to a whole number. */
void sl_abi_histogram_record(struct sl_histogram *histogram, double value);

/* Returns how many values were counted. */
double sl_abi_histogram_count(const struct sl_histogram *histogram);

/* Returns the value at a quantile in 0..1, 0 without any. */
double sl_abi_histogram_quantile(const struct sl_histogram *histogram, double quantile);

/* Returns the mean, 0 without any. */
double sl_abi_histogram_mean(const struct sl_histogram *histogram);
