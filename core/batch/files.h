#pragma once
/* Small helpers for files that must survive crashes. Errors are SL_ESYS unless said otherwise. */

#include <stddef.h>

#include "base/buf.h"

/* Makes a directory with those above it; existing ones are fine. */
int sl_files_make_dirs(const char *path);

/* Appends the content of a regular file. SL_ENOTFOUND without one, SL_ELIMIT above max bytes. */
int sl_files_read(const char *path, size_t max, struct sl_buf *out);

/* Writes a file anew and puts it on the disk. */
int sl_files_write(const char *path, const void *bytes, size_t len);

/* Puts the entries of a directory on the disk. */
int sl_files_sync_dir(const char *path);
