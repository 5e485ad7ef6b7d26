#pragma once
/*
 * The randomness seam: a small generator (splitmix64) that is seeded by its owner, so that a seed
 * reproduces a run. Not for secrets. One generator belongs to one thread.
 */

#include <stddef.h>
#include <stdint.h>

struct sl_random {
    uint64_t state;
};

/* Starts the sequence of this seed. */
void sl_random_seed(struct sl_random *self, uint64_t seed);

/* A seed from the operating system, for runs that need not be repeated. */
uint64_t sl_random_entropy(void);

/* The next 64 bits. */
uint64_t sl_random_u64(struct sl_random *self);

/* An unbiased integer in [0, bound); bound 0 gives 0. */
uint64_t sl_random_below(struct sl_random *self, uint64_t bound);

/* A double in [0, 1) with 53 random bits. */
double sl_random_double(struct sl_random *self);

/* Puts count items of item_size bytes into a uniformly random order. */
void sl_random_shuffle(struct sl_random *self, void *items, size_t count, size_t item_size);
