#include "base/histogram.h"

#include <string.h>

#include "base/alloc.h"

void
sl_histogram_create(struct sl_histogram *self)
{
    memset(self, 0, sizeof(*self));
}

struct sl_histogram *
sl_histogram_new(void)
{
    return sl_calloc(1, sizeof(struct sl_histogram));
}

void
sl_histogram_free(struct sl_histogram *self)
{
    sl_free(self);
}

int64_t
sl_histogram_bucket_low(uint32_t bucket)
{
    if (bucket < 128) {
        return (int64_t)bucket;
    }
    uint32_t shift = bucket / 64 - 1;
    return (int64_t)((UINT64_C(64) + bucket % 64) << shift);
}

int64_t
sl_histogram_bucket_high(uint32_t bucket)
{
    if (bucket < 128) {
        return (int64_t)bucket;
    }
    uint32_t shift = bucket / 64 - 1;
    return sl_histogram_bucket_low(bucket) + (int64_t)((UINT64_C(1) << shift) - 1);
}

void
sl_histogram_record_n(struct sl_histogram *self, int64_t value, uint64_t n)
{
    if (n == 0) {
        return;
    }
    sl_histogram_record(self, value);
    self->count += n - 1;
    self->sum += (double)value * (double)(n - 1);
    self->buckets[sl_histogram_bucket(value)] += n - 1;
}

void
sl_histogram_merge(struct sl_histogram *self, const struct sl_histogram *other)
{
    if (other->count == 0) {
        return;
    }
    if (self->count == 0 || other->min < self->min) {
        self->min = other->min;
    }
    if (self->count == 0 || other->max > self->max) {
        self->max = other->max;
    }
    self->count += other->count;
    self->sum += other->sum;
    for (uint32_t i = 0; i < SL_HISTOGRAM_BUCKETS; i++) {
        self->buckets[i] += other->buckets[i];
    }
}

/* The rank (from 1) of the value that quantile q asks for. */
static uint64_t
quantile_rank(uint64_t count, double q)
{
    double wanted = q * (double)count;
    uint64_t rank = (uint64_t)wanted;
    if ((double)rank < wanted) {
        rank++;
    }
    return rank < 1 ? 1 : rank > count ? count : rank;
}

int64_t
sl_histogram_quantile(const struct sl_histogram *self, double q)
{
    if (self->count == 0) {
        return 0;
    }
    if (!(q > 0)) {
        return self->min;
    }
    if (q >= 1) {
        return self->max;
    }
    uint64_t rank = quantile_rank(self->count, q);
    uint64_t seen = 0;
    uint32_t bucket = 0;
    while (bucket < SL_HISTOGRAM_BUCKETS - 1 && (seen += self->buckets[bucket]) < rank) {
        bucket++;
    }
    int64_t low = sl_histogram_bucket_low(bucket);
    int64_t middle = low + (sl_histogram_bucket_high(bucket) - low) / 2;
    return middle < self->min ? self->min : middle > self->max ? self->max : middle;
}

double
sl_histogram_mean(const struct sl_histogram *self)
{
    return self->count > 0 ? self->sum / (double)self->count : 0;
}

int64_t
sl_histogram_min(const struct sl_histogram *self)
{
    return self->count > 0 ? self->min : 0;
}

int64_t
sl_histogram_max(const struct sl_histogram *self)
{
    return self->count > 0 ? self->max : 0;
}
