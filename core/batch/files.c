#include "batch/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"

int
sl_files_make_dirs(const char *path)
{
    char *copy = sl_strdup(path);
    int rc = 0;
    for (char *at = copy + 1; rc == 0; at++) {
        if (*at != '/' && *at != '\0') {
            continue;
        }
        char end = *at;
        *at = '\0';
        if (mkdir(copy, 0755) != 0 && errno != EEXIST) {
            rc = sl_err_set(SL_ESYS, "make the directory %s", copy);
        }
        *at = end;
        if (end == '\0') {
            break;
        }
    }
    struct stat info;
    if (rc == 0 && (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))) {
        errno = ENOTDIR;
        rc = sl_err_set(SL_ESYS, "make the directory %s", path);
    }
    sl_free(copy);
    return rc;
}

int
sl_files_read(const char *path, size_t max, struct sl_buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return sl_err_set(errno == ENOENT ? SL_ENOTFOUND : SL_ESYS, "open %s", path);
    }
    struct stat info;
    int rc = 0;
    size_t size = 0;
    if (fstat(fd, &info) != 0) {
        rc = sl_err_set(SL_ESYS, "read %s", path);
        goto out;
    }
    size = (size_t)info.st_size;
    if (size > max) {
        rc = sl_err_set(SL_ELIMIT, "%s has %zu bytes; at most %zu are read", path, size, max);
        goto out;
    }
    uint8_t *place = sl_buf_reserve(out, size + 1);
    for (size_t done = 0; done < size;) {
        ssize_t got = read(fd, place + done, size - done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            rc = sl_err_set(SL_ESYS, "read %s", path);
            goto out;
        }
        if (got == 0) {
            size = done;
        }
        done += (size_t)got;
    }
    sl_buf_commit(out, size);
out:
    close(fd);
    return rc;
}

int
sl_files_write(const char *path, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        return sl_err_set(SL_ESYS, "make %s", path);
    }
    int rc = 0;
    for (size_t done = 0; rc == 0 && done < len;) {
        ssize_t written = write(fd, (const uint8_t *)bytes + done, len - done);
        if (written >= 0) {
            done += (size_t)written;
        } else if (errno != EINTR) {
            rc = sl_err_set(SL_ESYS, "write %s", path);
        }
    }
    if (rc == 0 && fsync(fd) != 0) {
        rc = sl_err_set(SL_ESYS, "write %s", path);
    }
    if (close(fd) != 0 && rc == 0) {
        rc = sl_err_set(SL_ESYS, "write %s", path);
    }
    return rc;
}

int
sl_files_sync_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) != 0 ? sl_err_set(SL_ESYS, "sync the directory %s", path) : 0;
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}
