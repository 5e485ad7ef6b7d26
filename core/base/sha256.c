#include "base/sha256.h"

#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t ROUNDS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t
rotate(uint32_t x, unsigned n)
{
    return (x >> n) | (x << (32 - n));
}

static uint32_t
read_be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void
write_be32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

static void
compress(uint32_t state[8], const uint8_t block[64])
{
    uint32_t w[64];
    uint32_t v[8];
    for (int i = 0; i < 16; i++) {
        w[i] = read_be32(block + 4 * i);
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15];
        uint32_t b = w[i - 2];
        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ (a >> 3)) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ (b >> 10));
    }
    memcpy(v, state, sizeof(v));
    for (int i = 0; i < 64; i++) {
        uint32_t t1 = v[7] + (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) +
                      ((v[4] & v[5]) ^ (~v[4] & v[6])) + ROUNDS[i] + w[i];
        uint32_t t2 = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) +
                      ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof(v[0]));
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) {
        state[i] += v[i];
    }
}

void
sl_sha256_create(struct sl_sha256 *self)
{
    /* The same of the square roots of the first 8 primes. */
    static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(self->state, START, sizeof(START));
    self->total = 0;
}

void
sl_sha256_update(struct sl_sha256 *self, const void *data, size_t len)
{
    const uint8_t *at = data;
    size_t have = self->total % 64;
    self->total += len;
    while (len > 0) {
        size_t part = 64 - have < len ? 64 - have : len;
        memcpy(self->block + have, at, part);
        at += part;
        len -= part;
        have += part;
        if (have == 64) {
            compress(self->state, self->block);
            have = 0;
        }
    }
}

void
sl_sha256_finish(struct sl_sha256 *self, uint8_t hash[SL_SHA256_SIZE])
{
    static const uint8_t PADDING[64] = {0x80};
    uint64_t bits = self->total * 8;
    size_t have = self->total % 64;
    uint8_t length[8];
    write_be32(length, (uint32_t)(bits >> 32));
    write_be32(length + 4, (uint32_t)bits);
    sl_sha256_update(self, PADDING, have < 56 ? 56 - have : 120 - have);
    sl_sha256_update(self, length, sizeof(length));
    for (int i = 0; i < 8; i++) {
        write_be32(hash + 4 * i, self->state[i]);
    }
}

void
sl_hmac_create(struct sl_hmac *self, const void *key, size_t key_len)
{
    uint8_t block[64] = {0};
    if (key_len > sizeof(block)) {
        struct sl_sha256 hash;
        sl_sha256_create(&hash);
        sl_sha256_update(&hash, key, key_len);
        sl_sha256_finish(&hash, block);
    } else if (key_len > 0) {
        memcpy(block, key, key_len);
    }
    uint8_t inner[64];
    uint8_t outer[64];
    for (size_t i = 0; i < sizeof(block); i++) {
        inner[i] = block[i] ^ 0x36;
        outer[i] = block[i] ^ 0x5c;
    }
    sl_sha256_create(&self->inner);
    sl_sha256_update(&self->inner, inner, sizeof(inner));
    sl_sha256_create(&self->outer);
    sl_sha256_update(&self->outer, outer, sizeof(outer));
}

void
sl_hmac_update(struct sl_hmac *self, const void *data, size_t len)
{
    sl_sha256_update(&self->inner, data, len);
}

void
sl_hmac_finish(struct sl_hmac *self, uint8_t mac[SL_SHA256_SIZE])
{
    uint8_t hash[SL_SHA256_SIZE];
    sl_sha256_finish(&self->inner, hash);
    sl_sha256_update(&self->outer, hash, sizeof(hash));
    sl_sha256_finish(&self->outer, mac);
}

bool
sl_bytes_equal_secret(const void *a, const void *b, size_t len)
{
    const volatile uint8_t *left = a;
    const volatile uint8_t *right = b;
    uint8_t different = 0;
    for (size_t i = 0; i < len; i++) {
        different |= (uint8_t)(left[i] ^ right[i]);
    }
    return different == 0;
}
