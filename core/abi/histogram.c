/* Histograms for Lua. */

#include "base/histogram.h"

#include <math.h>

#include "abi/abi.h"

struct sl_histogram *
sl_abi_histogram_new(void)
{
    return sl_histogram_new();
}

void
sl_abi_histogram_free(struct sl_histogram *histogram)
{
    sl_histogram_free(histogram);
}

void
sl_abi_histogram_record(struct sl_histogram *histogram, double value)
{
    if (histogram != NULL && value == value) {
        double limited = fmin(fmax(value, 0), 9.2e18);
        sl_histogram_record(histogram, (int64_t)(limited + 0.5));
    }
}

double
sl_abi_histogram_count(const struct sl_histogram *histogram)
{
    return histogram != NULL ? (double)histogram->count : 0;
}

double
sl_abi_histogram_quantile(const struct sl_histogram *histogram, double quantile)
{
    return histogram != NULL ? (double)sl_histogram_quantile(histogram, quantile) : 0;
}

double
sl_abi_histogram_mean(const struct sl_histogram *histogram)
{
    return histogram != NULL ? sl_histogram_mean(histogram) : 0;
}
