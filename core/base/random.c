#include "base/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/hash.h"

void
sl_random_seed(struct sl_random *self, uint64_t seed)
{
    self->state = seed;
}

uint64_t
sl_random_entropy(void)
{
    uint64_t seed = 0;
    ssize_t got;
    do {
        got = getrandom(&seed, sizeof(seed), 0);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(seed)) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed ^= sl_mix64((uint64_t)now.tv_nsec ^ ((uint64_t)now.tv_sec << 30));
    }
    return seed;
}

uint64_t
sl_random_u64(struct sl_random *self)
{
    self->state += UINT64_C(0x9e3779b97f4a7c15);
    return sl_mix64(self->state);
}

/* Lemire's multiplication method: the rejected sliver makes it exact. */
uint64_t
sl_random_below(struct sl_random *self, uint64_t bound)
{
    if (bound == 0) {
        return 0;
    }
    unsigned __int128 product = (unsigned __int128)sl_random_u64(self) * bound;
    if ((uint64_t)product < bound) {
        uint64_t threshold = (0 - bound) % bound;
        while ((uint64_t)product < threshold) {
            product = (unsigned __int128)sl_random_u64(self) * bound;
        }
    }
    return (uint64_t)(product >> 64);
}

double
sl_random_double(struct sl_random *self)
{
    return (double)(sl_random_u64(self) >> 11) * 0x1p-53;
}

static void
bytes_swap(char *a, char *b, size_t size)
{
    char chunk[64];
    while (size > 0) {
        size_t step = size < sizeof(chunk) ? size : sizeof(chunk);
        memcpy(chunk, a, step);
        memcpy(a, b, step);
        memcpy(b, chunk, step);
        a += step;
        b += step;
        size -= step;
    }
}

void
sl_random_shuffle(struct sl_random *self, void *items, size_t count, size_t item_size)
{
    char *base = items;
    for (size_t left = count; left > 1; left--) {
        size_t pick = (size_t)sl_random_below(self, left);
        if (pick != left - 1) {
            bytes_swap(base + pick * item_size, base + (left - 1) * item_size, item_size);
        }
    }
}
