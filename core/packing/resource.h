#pragma once
/*
 * Amounts of CPU, RAM and disk. CPU is counted in billionths of a core, so that sums are exact and
 * do not depend on the order of their terms: 0.1 + 0.2 fits into 0.3. Sums saturate instead of
 * wrapping around.
 */

#include <stdbool.h>
#include <stdint.h>

#define SL_CPU_NANO INT64_C(1000000000)
#define SL_MIB (INT64_C(1) << 20)
#define SL_GIB (INT64_C(1) << 30)

struct sl_resource {
    int64_t cpu_nano;
    int64_t ram_bytes;
    int64_t disk_bytes;
};

/* Cores to billionths, to the nearest. The argument must be finite and below 10^9. */
int64_t sl_cpu_nano(double cores);

/* The sum, at INT64_MAX or INT64_MIN when it would leave the range. */
static inline int64_t
sl_sum(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) {
        return a < 0 ? INT64_MIN : INT64_MAX;
    }
    return sum;
}

/* The product of two amounts >= 0, at INT64_MAX when it would leave the range. */
static inline int64_t
sl_product(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

struct sl_resource sl_resource_sum(struct sl_resource a, struct sl_resource b);
struct sl_resource sl_resource_difference(struct sl_resource a, struct sl_resource b);
struct sl_resource sl_resource_product(struct sl_resource a, int64_t n);

/* True when a <= b in every dimension. */
static inline bool
sl_resource_fits(struct sl_resource a, struct sl_resource b)
{
    return a.cpu_nano <= b.cpu_nano && a.ram_bytes <= b.ram_bytes && a.disk_bytes <= b.disk_bytes;
}

/* percentage % of a number of bytes, rounded down. */
int64_t sl_percentage_of_bytes(int64_t bytes, double percentage);

/* A number of bytes or of cores grown by a percentage; bytes are rounded down. */
int64_t sl_increase_bytes(int64_t bytes, double percentage);
double sl_increase_cores(double cores, double percentage);
