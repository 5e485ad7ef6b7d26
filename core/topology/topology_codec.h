#pragma once
/* A logical topology as bytes (proto/topology.proto): what submission ships and the state keeps. */
#include "base/buf.h"
#include "topology/topology.h"

enum {
    /* Version of the encoding that is written, and the only one that is read. */
    SL_TOPOLOGY_FORMAT = 1,
    /* Bytes of a whole definition. */
    SL_TOPOLOGY_BYTES_MAX = 64 * 1024 * 1024,
};

/*
 * Appends the encoding of a topology. The same topology always gives the same bytes. SL_ELIMIT when
 * it is larger than decoding accepts, SL_EINVAL when a text is no UTF-8.
 */
int sl_topology_encode(const struct sl_topology *topology, struct sl_buf *out);

/*
 * Reads a topology. Sizes and counts are checked before anything is allocated. NULL with SL_EPROTO
 * (malformed, unknown enum value, unknown format) or SL_ELIMIT. What it says may still be nonsense:
 * sl_topology_validate_new tells.
 */
struct sl_topology *sl_topology_decode_new(const uint8_t *data, size_t size);
