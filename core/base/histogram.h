#pragma once
/*
 * A histogram of int64 values with log-linear buckets, after HdrHistogram: every power of two is
 * cut into 64 equal buckets, so a value is known within 1/64 of itself over the whole range at a
 * fixed size (about 29 KiB). Values below 128 are exact. Negative values are counted as 0 in the
 * buckets; min, max and mean see them as they are.
 */

#include <stdint.h>

enum {
    SL_HISTOGRAM_SUB_BITS = 6,
    /* [0, 128) one bucket a value, then 64 for each of the 56 powers of two 2^7 .. 2^62. */
    SL_HISTOGRAM_BUCKETS = 128 + 56 * 64,
};

struct sl_histogram {
    uint64_t count;
    /* Of the recorded values; meaningless while count is 0. */
    int64_t min;
    int64_t max;
    double sum;
    uint64_t buckets[SL_HISTOGRAM_BUCKETS];
};

/* Empties a histogram; caller's memory. */
void sl_histogram_create(struct sl_histogram *self);

/* On the heap, for owners that hold many; freed with sl_histogram_free. */
struct sl_histogram *sl_histogram_new(void);
void sl_histogram_free(struct sl_histogram *self);

/* The bucket of a value, and the smallest value of a bucket. */
static inline uint32_t
sl_histogram_bucket(int64_t value)
{
    if (value < 128) {
        return value < 0 ? 0 : (uint32_t)value;
    }
    uint32_t exponent = 63 - (uint32_t)__builtin_clzll((uint64_t)value);
    uint32_t shift = exponent - SL_HISTOGRAM_SUB_BITS;
    return (exponent - 5) * 64 + (uint32_t)(((uint64_t)value >> shift) & 63);
}

int64_t sl_histogram_bucket_low(uint32_t bucket);

/* The largest value of a bucket. */
int64_t sl_histogram_bucket_high(uint32_t bucket);

/* Counts a value, O(1). */
static inline void
sl_histogram_record(struct sl_histogram *self, int64_t value)
{
    if (self->count == 0 || value < self->min) {
        self->min = value;
    }
    if (self->count == 0 || value > self->max) {
        self->max = value;
    }
    self->count++;
    self->sum += (double)value;
    self->buckets[sl_histogram_bucket(value)]++;
}

/* Counts a value n times. */
void sl_histogram_record_n(struct sl_histogram *self, int64_t value, uint64_t n);

/* Adds what another one counted. */
void sl_histogram_merge(struct sl_histogram *self, const struct sl_histogram *other);

/*
 * The value at quantile q in [0, 1] (clamped): the smallest value such that a share q of all is at
 * most that, within 1/64; q 0 is the minimum and q 1 the maximum. 0 when nothing was counted.
 */
int64_t sl_histogram_quantile(const struct sl_histogram *self, double q);

/* The mean of the recorded values (exact up to double rounding), 0 when nothing was counted. */
double sl_histogram_mean(const struct sl_histogram *self);

/* The extremes, 0 when nothing was counted. */
int64_t sl_histogram_min(const struct sl_histogram *self);
int64_t sl_histogram_max(const struct sl_histogram *self);
