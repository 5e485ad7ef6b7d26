#pragma once
/* The messages that open a connection between two workers (proto/data.proto). */

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "stream/remote.h"

enum {
    SL_DATA_VERSION = 1,
    SL_DATA_NONCE_SIZE = 32,
};

struct sl_data_challenge {
    uint32_t version;
    uint8_t nonce[SL_DATA_NONCE_SIZE];
};

struct sl_data_hello {
    uint32_t version;
    uint8_t nonce[SL_DATA_NONCE_SIZE];
    const char *topology_id;
    int32_t container;
    int32_t to;
    uint8_t identity[SL_REMOTE_IDENTITY_SIZE];
    /* Of the session that the sender has with the receiver. */
    bool has_known;
    uint8_t known[SL_REMOTE_IDENTITY_SIZE];
    uint64_t received;
    uint32_t window;
};

struct sl_data_welcome {
    uint8_t identity[SL_REMOTE_IDENTITY_SIZE];
    bool resumes;
    uint64_t received;
    uint32_t window;
    /* NULL: welcome. */
    const char *refused;
};

/* Each appends the bytes of the message. */
void sl_data_encode_challenge(const struct sl_data_challenge *message, struct sl_buf *out);
void sl_data_encode_hello(const struct sl_data_hello *message, struct sl_buf *out);
void sl_data_encode_welcome(const struct sl_data_welcome *message, struct sl_buf *out);

/* Texts lie in the arena. SL_EPROTO, SL_ELIMIT. */
int sl_data_decode_challenge(const uint8_t *data, size_t size, struct sl_arena *arena,
                             struct sl_data_challenge *message);
int sl_data_decode_hello(const uint8_t *data, size_t size, struct sl_arena *arena,
                         struct sl_data_hello *message);
int sl_data_decode_welcome(const uint8_t *data, size_t size, struct sl_arena *arena,
                           struct sl_data_welcome *message);
