#pragma once
/*
 * What a supervisor says of itself (node /supervisors/ID), and what masters and topology masters
 * ask of it beside slots (proto/supervisor.proto), as plain structs.
 *
 *     method (rpc/messages.h)   from              body                 answer
 *     SL_SV_START_MASTER        master            sl_start_master      none, when the process runs
 *     SL_SV_STOP_MASTER         master            sl_start_master      none, when it has ended
 *     SL_SV_RESTART_MASTER      master            sl_start_master      none: one that hangs is
 * being ended, the next one starts SL_SV_START_WORKER        topology master   sl_worker_command
 * sl_slot_worker SL_SV_RESTART_WORKER      topology master   sl_worker_command    sl_slot_worker
 *     SL_SV_STOP_WORKER         topology master   sl_worker_command    none, when it has ended
 *     SL_SV_READ_LOG            command           sl_read_log         sl_log_piece
 *     SL_TM_WORKER_STATE        supervisor        sl_slot_worker      none
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"

enum {
    SL_SUPERVISOR_NODE_FORMAT = 1,
    /* Most bytes of a log in an answer, and the longest that one is waited for. */
    SL_LOG_PIECE_MAX = 512 * 1024,
    SL_LOG_WAIT_MAX_MS = 60000,
};

struct sl_supervisor_node {
    const char *id;
    const char *host;
    const char *address;
    const uint32_t *ports;
    size_t port_count;
    double cpu_cores;
    int64_t ram_bytes;
    /* The process, its start in ticks since the boot of its machine, and which boot that was. */
    uint64_t pid;
    uint64_t start_time;
    const char *boot_id;
    bool is_drained;
};

struct sl_start_master {
    const char *topology;
    uint32_t port;
    /* Of a topology that is submitted: answered when it leads, or ends again and again. */
    bool is_new;
};

struct sl_worker_command {
    const char *topology;
    uint64_t allocation;
    /* The term of the topology master. */
    uint64_t token;
    int32_t container;
    /* "" for none. */
    const char *cwd;
};

struct sl_slot_worker {
    const char *resource;
    const char *topology;
    uint64_t allocation;
    int32_t container;
    /* 0 while there is no process. */
    uint64_t pid;
    uint32_t restarts;
    const char *text;
};

struct sl_read_log {
    const char *topology;
    int32_t container;
    uint64_t position;
    /* The end of it, if that is behind the position. */
    bool is_end;
    uint32_t wait_ms;
};

struct sl_log_piece {
    uint64_t position;
    const uint8_t *data;
    size_t size;
};

void sl_supervisor_node_encode(const struct sl_supervisor_node *message, struct sl_buf *out);
void sl_start_master_encode(const struct sl_start_master *message, struct sl_buf *out);
void sl_worker_command_encode(const struct sl_worker_command *message, struct sl_buf *out);
void sl_slot_worker_encode(const struct sl_slot_worker *message, struct sl_buf *out);
void sl_read_log_encode(const struct sl_read_log *message, struct sl_buf *out);
void sl_log_piece_encode(const struct sl_log_piece *message, struct sl_buf *out);

/* Decoders: 0, SL_EPROTO or SL_ELIMIT; everything lies in the arena. Names are checked as names,
 * ports as 1..65535. */
int sl_supervisor_node_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                              struct sl_supervisor_node *message);
int sl_start_master_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                           struct sl_start_master *message);
int sl_worker_command_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                             struct sl_worker_command *message);
int sl_read_log_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                       struct sl_read_log *message);
int sl_log_piece_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                        struct sl_log_piece *message);
int sl_slot_worker_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                          struct sl_slot_worker *message);
