#pragma once
/*
 * What a supervisor remembers of the processes it started, in a file, so that the next process of
 * the supervisor takes them over. Text, a line for each process, each with a hash of its own: a
 * file that was cut or overwritten gives the lines that are whole. A file is replaced as a whole or
 * not at all.
 *
 *     worker BOOT PID START TOPOLOGY PORT ALLOCATION CONTAINER RESTARTS CWD HASH
 *     master BOOT PID START TOPOLOGY PORT 0 0 RESTARTS - HASH
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"

enum { SL_SUPERVISOR_FILE_BYTES_MAX = 4 * 1024 * 1024 };

struct sl_supervisor_record {
    /* A topology master; it has no allocation and no container. */
    bool is_master;
    int64_t pid;
    /* sl_local_process_start */
    uint64_t start_time;
    const char *topology;
    uint32_t port;
    uint64_t allocation;
    int32_t container;
    uint32_t restarts;
    /* "" for none. */
    const char *cwd;
};

/* Appends a line. */
void sl_supervisor_record_encode(const struct sl_supervisor_record *record, const char *boot_id,
                                 struct sl_buf *out);

/*
 * Reads the lines that are whole, of this boot, one for each slot (of two the later); everything
 * lies in the arena. *damaged: lines that are not whole. Returns how many records there are.
 */
size_t sl_supervisor_records_decode(const uint8_t *data, size_t size, const char *boot_id,
                                    struct sl_arena *arena, struct sl_supervisor_record **records,
                                    size_t *damaged);

/* Writes a new file beside it and puts that in its place. SL_ESYS. */
int sl_supervisor_file_write(const char *path, const struct sl_buf *content);

/* Appends what is in the file, nothing when it can not be read; false then. */
bool sl_supervisor_file_read(const char *path, struct sl_buf *out);
