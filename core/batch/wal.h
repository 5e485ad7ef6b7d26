#pragma once
/*
 * A write-ahead log: a directory of files `log-<start>-<stop>` of records, each a 4-byte big-endian
 * length and as many bytes. A file takes records up to its stop time, then the next one starts.
 * Nothing is made on disk before the first write, and a record counts as written when the kernel
 * has put it on the disk. A record that is cut off ends its file; what other files hold is read
 * all the same. One thread owns a log.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "batch/streaming_types.h"

enum {
    /* Attempts of a write, the file opened anew for each. */
    SL_WAL_ATTEMPTS = 3,
};

struct sl_wal_file {
    int64_t start;
    int64_t stop;
    char *path;
};

struct sl_wal {
    char *dir;
    int64_t rolling_ms;
    /* Known files by start time; the last one is written to while fd >= 0. */
    SL_VEC(struct sl_wal_file) files;
    int fd;
    int64_t offset;
    struct sl_buf record;
    struct sl_buf read;
};

/* Finds the files that are there. SL_EINVAL for rolling_ms < 1, SL_ESYS when the directory can not
 * be read. */
int sl_wal_create(struct sl_wal *self, const char *dir, int64_t rolling_ms);
void sl_wal_destroy(struct sl_wal *self);

/* Appends a record at a time. With an error nothing was written, as far as readers see. */
int sl_wal_write(struct sl_wal *self, const void *bytes, size_t len, int64_t time,
                 struct sl_wal_segment *out);

/* Reads a record; valid until the next read. NULL with SL_ENOTFOUND, SL_ESYS or SL_EPROTO. */
const uint8_t *sl_wal_read(struct sl_wal *self, const struct sl_wal_segment *segment, size_t *len);

/* Returns 0 to go on, or an error that ends the reading. */
typedef int (*sl_wal_record_fn)(void *ctx, const uint8_t *bytes, size_t len);

/* Reads all records of all files, by start time. A file that vanished is passed over. */
int sl_wal_read_all(struct sl_wal *self, sl_wal_record_fn each, void *ctx);

/* Deletes the files whose stop time is before the threshold. */
int sl_wal_clean(struct sl_wal *self, int64_t threshold);
