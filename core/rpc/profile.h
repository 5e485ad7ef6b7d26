#pragma once
/* What a slot offers and what a request needs. */

#include <stdbool.h>
#include <stdint.h>

enum {
    SL_PROFILE_EXTRAS_MAX = 4,
    SL_PROFILE_EXTRA_NAME_SIZE = 32,
};

enum sl_profile_kind {
    SL_PROFILE_SET,
    /* A slot that fits every request. */
    SL_PROFILE_ANY,
    /* A request that fits every slot; a slot that fits no request of a known size. */
    SL_PROFILE_UNKNOWN,
};

struct sl_profile {
    enum sl_profile_kind kind;
    double cpu_cores;
    double ram_bytes;
    double disk_bytes;
    uint32_t extra_count;
    struct {
        char name[SL_PROFILE_EXTRA_NAME_SIZE];
        double amount;
    } extras[SL_PROFILE_EXTRAS_MAX];
};

struct sl_profile sl_profile_any(void);
struct sl_profile sl_profile_unknown(void);
struct sl_profile sl_profile_set(double cpu_cores, double ram_bytes, double disk_bytes);

/* Adds an extra; false when there are too many or the name is too long. */
bool sl_profile_add_extra(struct sl_profile *profile, const char *name, double amount);

/* True when both are of one kind and, if set, equal in every dimension and extra. */
bool sl_profile_equals(const struct sl_profile *a, const struct sl_profile *b);

/*
 * Does a slot fit a request? The first rule that applies: the slot is ANY: yes; both are equal:
 * yes; the slot is UNKNOWN: no; the request is UNKNOWN: yes; else every dimension and every extra
 * of the request must be no more than the slot's (a request for ANY fits an ANY slot only).
 */
bool sl_profile_fits(const struct sl_profile *slot, const struct sl_profile *request);

/* The share of one of `count` equal slots, dimension by dimension. */
struct sl_profile sl_profile_divide(const struct sl_profile *total, uint32_t count);
