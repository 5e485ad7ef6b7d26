/* The entry of every message of rpc.proto, registration.proto and slots.proto: the first byte picks
 * the decoder, the rest is the message. What is accepted must encode again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "rpc/messages.h"
#include "rpc/rpc_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decodes, and on success encodes and decodes what was written. */
#define ROUND_TRIP(type, name)                                                                     \
    do {                                                                                           \
        type message;                                                                              \
        type again;                                                                                \
        if (name##_decode(data, size, &arena, &message) == 0) {                                    \
            name##_encode(&message, &out);                                                         \
            if (name##_decode(out.data, out.size, &arena, &again) != 0) {                          \
                abort();                                                                           \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static void
decode_call(uint8_t kind, const uint8_t *data, size_t size, struct sl_arena *arena)
{
    struct sl__rpc_hello hello;
    struct sl__rpc_request_message request;
    struct sl__rpc_reply_message reply;
    const char *reason;
    switch (kind) {
    case 0:
        sl__rpc_decode_challenge(data, size, arena, &hello);
        break;
    case 1:
        sl__rpc_decode_hello(data, size, arena, &hello);
        break;
    case 2:
        sl__rpc_decode_welcome(data, size, arena, &hello);
        break;
    case 3:
        sl__rpc_decode_refused(data, size, arena, &reason);
        break;
    case 4:
        sl__rpc_decode_request(data, size, arena, &request);
        break;
    default:
        sl__rpc_decode_reply(data, size, arena, &reply);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { CALLS = 6, KINDS = 18 };
    struct sl_arena arena;
    struct sl_buf out = {0};
    if (size == 0) {
        return 0;
    }
    uint8_t kind = (uint8_t)(*data % KINDS);
    data++;
    size--;
    sl_arena_create(&arena, 0, 4 * 1024 * 1024);
    switch (kind) {
    case 6:
        ROUND_TRIP(struct sl_register_supervisor, sl_register_supervisor);
        break;
    case 7:
        ROUND_TRIP(struct sl_register_topology_master, sl_register_topology_master);
        break;
    case 8:
        ROUND_TRIP(struct sl_register_peer, sl_register_peer);
        break;
    case 9:
        ROUND_TRIP(struct sl_registered, sl_registered);
        break;
    case 10:
        ROUND_TRIP(struct sl_disconnect, sl_disconnect);
        break;
    case 11:
        ROUND_TRIP(struct sl_heartbeat, sl_heartbeat);
        break;
    case 12:
        ROUND_TRIP(struct sl_slot_request, sl_slot_request);
        break;
    case 13:
        ROUND_TRIP(struct sl_slot_list, sl_slot_report);
        break;
    case 14:
        ROUND_TRIP(struct sl_slot_list, sl_slot_offers);
        break;
    case 15:
        ROUND_TRIP(struct sl_slot_list, sl_allocated_slots);
        break;
    case 16:
        ROUND_TRIP(struct sl_slot_notice, sl_slot_notice);
        break;
    case 17:
        ROUND_TRIP(struct sl_slots_accepted, sl_slots_accepted);
        break;
    default:
        decode_call(kind, data, size, &arena);
    }
    sl_buf_destroy(&out);
    sl_arena_destroy(&arena);
    return 0;
}
