#pragma once
/*
 * The state manager in a local directory, for any number of processes on one machine: what `local`
 * runs on, without any daemon. A session is a locked file; it ends with its process, however that
 * dies, and others notice at once. Sessions have no time-out: a stopped process keeps its locks.
 *
 * The directory must be on a local file system (locks and inotify of network file systems are not
 * dependable).
 */

#include "state/backend.h"

/* For sl_state_store_new. Trouble with the directory is told when the store opens. */
struct sl_state_backend *sl_localfs_backend_new(const char *dir,
                                                const struct sl_state_executor *executor);

/* One that looks and never writes, not even a session: calls that would are SL_EINVAL. */
struct sl_state_backend *sl_localfs_reader_new(const char *dir,
                                               const struct sl_state_executor *executor);

/*
 * Ends a session by force: its nodes are deleted, and its process gets a new session when it
 * notices. For operators and tests. Blocks for as long as a write takes.
 */
int sl_localfs_end_session(const char *dir, uint64_t session);
