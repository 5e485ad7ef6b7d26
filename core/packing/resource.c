#include "packing/resource.h"

#include <math.h>

int64_t
sl_cpu_nano(double cores)
{
    return (int64_t)llround(cores * (double)SL_CPU_NANO);
}

struct sl_resource
sl_resource_sum(struct sl_resource a, struct sl_resource b)
{
    return (struct sl_resource){
        .cpu_nano = sl_sum(a.cpu_nano, b.cpu_nano),
        .ram_bytes = sl_sum(a.ram_bytes, b.ram_bytes),
        .disk_bytes = sl_sum(a.disk_bytes, b.disk_bytes),
    };
}

struct sl_resource
sl_resource_difference(struct sl_resource a, struct sl_resource b)
{
    return sl_resource_sum(a, (struct sl_resource){-b.cpu_nano, -b.ram_bytes, -b.disk_bytes});
}

struct sl_resource
sl_resource_product(struct sl_resource a, int64_t n)
{
    return (struct sl_resource){
        .cpu_nano = sl_product(a.cpu_nano, n),
        .ram_bytes = sl_product(a.ram_bytes, n),
        .disk_bytes = sl_product(a.disk_bytes, n),
    };
}

int64_t
sl_percentage_of_bytes(int64_t bytes, double percentage)
{
    /* The 64-bit mantissa keeps the product of 2^53 bytes and a whole percentage exact. */
    long double part = floorl((long double)bytes * (long double)percentage / 100.0L);
    return part >= (long double)INT64_MAX ? INT64_MAX : (int64_t)part;
}

int64_t
sl_increase_bytes(int64_t bytes, double percentage)
{
    return sl_sum(bytes, sl_percentage_of_bytes(bytes, percentage));
}

double
sl_increase_cores(double cores, double percentage)
{
    return cores + cores * percentage / 100.0;
}
