#pragma once
/* The nodes' content (proto/state.proto): the envelope of values, lock owners and leaders. */

#include "base/arena.h"
#include "base/buf.h"
#include "state/path.h"

enum {
    /* Bytes of a writer's id. */
    SL_STATE_WRITER_BYTES = 16,
    /* Version of the encoding. */
    SL_STATE_FORMAT = 1,
    SL_STATE_OWNER_TEXT_MAX = 256,
    /* Bytes an envelope adds to a value, at most. */
    SL_STATE_ENVELOPE_BYTES_MAX = 128,
    SL_STATE_CHUNKS_MAX = 1024,
};

struct sl_state_manifest {
    char id[SL_STATE_GUID_TEXT + 1];
    uint32_t count;
    uint64_t size_bytes;
    uint64_t hash;
};

/* An envelope; value is borrowed, after decoding from the arena. */
struct sl_state_envelope {
    uint8_t writer[SL_STATE_WRITER_BYTES];
    uint64_t attempt;
    const uint8_t *value;
    size_t size;
    /* count 0: the value is here. */
    struct sl_state_manifest manifest;
};

void sl_state_envelope_encode(const struct sl_state_envelope *envelope, struct sl_buf *out);

/*
 * Reads an envelope; the value's bytes come to lie in the arena. SL_EPROTO or SL_ELIMIT for
 * anything that is no envelope of this format. No bytes at all are an envelope of nobody's with an
 * empty value: the root of a store has one.
 */
int sl_state_envelope_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                             struct sl_state_envelope *envelope);

struct sl_state_owner {
    char name[SL_STATE_OWNER_TEXT_MAX];
    char host[SL_STATE_OWNER_TEXT_MAX];
    uint32_t pid;
    int64_t wall_ms;
};

void sl_state_owner_encode(const struct sl_state_owner *owner, struct sl_buf *out);
int sl_state_owner_decode(const uint8_t *data, size_t size, struct sl_state_owner *owner);

struct sl_state_leader_info {
    char id[SL_STATE_OWNER_TEXT_MAX];
    char address[SL_STATE_OWNER_TEXT_MAX];
    uint64_t token;
};

void sl_state_leader_info_encode(const struct sl_state_leader_info *info, struct sl_buf *out);
int sl_state_leader_info_decode(const uint8_t *data, size_t size,
                                struct sl_state_leader_info *info);
