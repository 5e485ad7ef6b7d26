#pragma once
/* SHA-256 (FIPS 180-4), HMAC-SHA-256 (RFC 2104) and a comparison that takes the same time wherever
 * the bytes differ: what the proof of a shared secret needs. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SL_SHA256_SIZE = 32 };

struct sl_sha256 {
    uint32_t state[8];
    uint64_t total;
    uint8_t block[64];
};

/* Starts, takes bytes in any pieces, and gives the 32 bytes of the hash. */
void sl_sha256_create(struct sl_sha256 *self);
void sl_sha256_update(struct sl_sha256 *self, const void *data, size_t len);
void sl_sha256_finish(struct sl_sha256 *self, uint8_t hash[SL_SHA256_SIZE]);

struct sl_hmac {
    struct sl_sha256 inner;
    struct sl_sha256 outer;
};

/* The same for a keyed hash; a key of any length. */
void sl_hmac_create(struct sl_hmac *self, const void *key, size_t key_len);
void sl_hmac_update(struct sl_hmac *self, const void *data, size_t len);
void sl_hmac_finish(struct sl_hmac *self, uint8_t mac[SL_SHA256_SIZE]);

/* True when both blocks are equal; its time depends on len only. */
bool sl_bytes_equal_secret(const void *a, const void *b, size_t len);
