#pragma once
/*
 * The code of a topology as it is shipped (proto/package.proto): the script, the Lua modules beside
 * it, and the config given when it was submitted. The same files give the same bytes. Clients make
 * packages and workers load them; no other process looks inside.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "cluster/control.h"

enum {
    SL_PACKAGE_FORMAT = 1,
    SL_PACKAGE_BYTES_MAX = 64 * 1024 * 1024,
    SL_PACKAGE_FILES_MAX = 4096,
    SL_PACKAGE_PATH_MAX = 1024,
};

/* Appends the bytes. SL_EINVAL for paths that are not as above or a script that is not there,
 * SL_ELIMIT. */
int sl_package_encode(const struct sl_package *package, struct sl_buf *out);

/* Reads a package; everything lies in the arena or, contents and config, in it as copies. SL_EPROTO
 * or SL_ELIMIT. */
int sl_package_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                      struct sl_package *package);
