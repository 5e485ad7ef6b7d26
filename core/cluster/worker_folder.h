#pragma once
/*
 * A worker's temporary folder. Its maker holds a lock on it, which goes with the process, so that
 * the next worker of this user removes what a killed one has left.
 */

struct sl_worker_folder {
    char *path;
    int lock_fd;
};

/*
 * Makes a new one below $TMPDIR, or /tmp, and removes those that nobody holds any more. SL_ESYS.
 * A folder that could not be made is closed.
 */
int sl_worker_folder_open(struct sl_worker_folder *self);
/* Removes it with all that is in it. */
void sl_worker_folder_close(struct sl_worker_folder *self);
