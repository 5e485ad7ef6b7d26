#include "batch/wal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "batch/files.h"

enum { LENGTH_BYTES = 4 };

static int
compare_files(const void *a, const void *b)
{
    const struct sl_wal_file *left = a;
    const struct sl_wal_file *right = b;
    if (left->start != right->start) {
        return left->start < right->start ? -1 : 1;
    }
    return (left->stop > right->stop) - (left->stop < right->stop);
}

/* Reads "log-<start>-<stop>" and nothing else. */
static bool
parse_name(const char *name, int64_t *start, int64_t *stop)
{
    long long from = 0;
    long long to = 0;
    int used = 0;
    if (sscanf(name, "log-%lld-%lld%n", &from, &to, &used) != 2 || name[used] != '\0') {
        return false;
    }
    *start = from;
    *stop = to;
    return true;
}

static int
find_files(struct sl_wal *self)
{
    DIR *dir = opendir(self->dir);
    if (dir == NULL) {
        return errno == ENOENT ? 0 : sl_err_set(SL_ESYS, "read the log %s", self->dir);
    }
    struct dirent *entry = NULL;
    while ((entry = readdir(dir)) != NULL) {
        struct sl_wal_file file = {0};
        if (parse_name(entry->d_name, &file.start, &file.stop)) {
            file.path = sl_asprintf("%s/%s", self->dir, entry->d_name);
            sl_vec_push(&self->files, file);
        }
    }
    closedir(dir);
    if (self->files.count > 1) {
        qsort(self->files.items, self->files.count, sizeof(self->files.items[0]), compare_files);
    }
    return 0;
}

int
sl_wal_create(struct sl_wal *self, const char *dir, int64_t rolling_ms)
{
    *self = (struct sl_wal){.rolling_ms = rolling_ms, .fd = -1};
    if (rolling_ms < 1) {
        return sl_err_set(SL_EINVAL, "a log file must reach over 1 ms or more, not %lld",
                          (long long)rolling_ms);
    }
    self->dir = sl_strdup(dir);
    int rc = find_files(self);
    if (rc != 0) {
        sl_wal_destroy(self);
    }
    return rc;
}

static void
close_current(struct sl_wal *self)
{
    if (self->fd >= 0) {
        close(self->fd);
        self->fd = -1;
    }
}

void
sl_wal_destroy(struct sl_wal *self)
{
    close_current(self);
    for (size_t i = 0; i < self->files.count; i++) {
        sl_free(self->files.items[i].path);
    }
    sl_vec_destroy(&self->files);
    sl_buf_destroy(&self->record);
    sl_buf_destroy(&self->read);
    sl_free(self->dir);
    self->dir = NULL;
}

static uint32_t
read_length(const uint8_t *ptr)
{
    return (uint32_t)ptr[0] << 24 | (uint32_t)ptr[1] << 16 | (uint32_t)ptr[2] << 8 | ptr[3];
}

/* Where the last whole record of a file's bytes ends. */
static size_t
valid_end(const uint8_t *bytes, size_t size)
{
    size_t at = 0;
    while (size - at >= LENGTH_BYTES) {
        size_t len = read_length(bytes + at);
        if (len > size - at - LENGTH_BYTES) {
            break;
        }
        at += LENGTH_BYTES + len;
    }
    return at;
}

/* Opens the file of a time; one that is there already is continued behind its last whole record. */
static int
open_file(struct sl_wal *self, int64_t time)
{
    int64_t stop = 0;
    if (__builtin_add_overflow(time, self->rolling_ms, &stop)) {
        stop = INT64_MAX;
    }
    int rc = sl_files_make_dirs(self->dir);
    if (rc != 0) {
        return rc;
    }
    char *path = sl_asprintf("%s/log-%lld-%lld", self->dir, (long long)time, (long long)stop);
    sl_buf_clear(&self->read);
    rc = sl_files_read(path, SIZE_MAX, &self->read);
    /* What can not be read now is not cut off: it may hold records. */
    if (rc != 0 && rc != SL_ENOTFOUND) {
        sl_free(path);
        return sl_err_wrap("continue the log");
    }
    size_t end = rc == 0 ? valid_end(self->read.data, self->read.size) : 0;
    self->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (self->fd < 0 || ftruncate(self->fd, (off_t)end) != 0) {
        rc = sl_err_set(SL_ESYS, "open the log file %s", path);
        close_current(self);
        sl_free(path);
        return rc;
    }
    self->offset = (int64_t)end;
    for (size_t i = 0; i < self->files.count; i++) {
        if (strcmp(self->files.items[i].path, path) == 0) {
            sl_free(self->files.items[i].path);
            sl_vec_remove(&self->files, i);
            break;
        }
    }
    struct sl_wal_file file = {time, stop, path};
    sl_vec_push(&self->files, file);
    return sl_files_sync_dir(self->dir);
}

static int
append(struct sl_wal *self)
{
    size_t done = 0;
    while (done < self->record.size) {
        ssize_t written = pwrite(self->fd, self->record.data + done, self->record.size - done,
                                 (off_t)self->offset + (off_t)done);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return sl_err_set(SL_ESYS, "write to the log %s", self->dir);
        }
        done += (size_t)written;
    }
    if (fdatasync(self->fd) != 0) {
        return sl_err_set(SL_ESYS, "write to the log %s", self->dir);
    }
    return 0;
}

int
sl_wal_write(struct sl_wal *self, const void *bytes, size_t len, int64_t time,
             struct sl_wal_segment *out)
{
    if (len > INT32_MAX) {
        return sl_err_set(SL_ELIMIT, "a record of the log takes at most 2 GiB, not %zu bytes", len);
    }
    const uint8_t head[LENGTH_BYTES] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16),
                                        (uint8_t)(len >> 8), (uint8_t)len};
    sl_buf_clear(&self->record);
    sl_buf_append(&self->record, head, sizeof(head));
    sl_buf_append(&self->record, bytes, len);
    if (self->fd >= 0 && time > sl_vec_last(&self->files).stop) {
        close_current(self);
    }
    int rc = 0;
    for (int attempt = 0; attempt < SL_WAL_ATTEMPTS; attempt++) {
        rc = self->fd < 0 ? open_file(self, time) : 0;
        if (rc == 0) {
            rc = append(self);
        }
        if (rc == 0) {
            *out =
                (struct sl_wal_segment){self->offset, (int64_t)len, sl_vec_last(&self->files).path};
            self->offset += (int64_t)self->record.size;
            return 0;
        }
        if (self->fd >= 0 && ftruncate(self->fd, (off_t)self->offset) != 0) {
            sl_log_warn("batch.wal", "half a record stays at the end of %s",
                        sl_vec_last(&self->files).path);
        }
        close_current(self);
    }
    return rc;
}

/* The file is as long as the segment says: its numbers come from a file too, and memory is taken
 * for them. */
static bool
holds(int fd, const struct sl_wal_segment *segment)
{
    struct stat info;
    return segment->offset >= 0 && segment->length >= 0 && fstat(fd, &info) == 0 &&
           segment->length <= info.st_size - LENGTH_BYTES &&
           segment->offset <= info.st_size - LENGTH_BYTES - segment->length;
}

const uint8_t *
sl_wal_read(struct sl_wal *self, const struct sl_wal_segment *segment, size_t *len)
{
    int fd = open(segment->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        sl_err_set(errno == ENOENT ? SL_ENOTFOUND : SL_ESYS, "open the log file %s", segment->path);
        return NULL;
    }
    const uint8_t *found = NULL;
    sl_buf_clear(&self->read);
    if (holds(fd, segment)) {
        size_t total = LENGTH_BYTES + (size_t)segment->length;
        ssize_t got = pread(fd, sl_buf_reserve(&self->read, total), total, (off_t)segment->offset);
        if (got == (ssize_t)total && read_length(self->read.data) == (uint64_t)segment->length) {
            sl_buf_commit(&self->read, total);
            *len = (size_t)segment->length;
            found = self->read.data + LENGTH_BYTES;
        }
    }
    if (found == NULL) {
        sl_err_set(SL_EPROTO, "%s has no record of %lld bytes at %lld", segment->path,
                   (long long)segment->length, (long long)segment->offset);
    }
    close(fd);
    return found;
}

int
sl_wal_read_all(struct sl_wal *self, sl_wal_record_fn each, void *ctx)
{
    for (size_t i = 0; i < self->files.count; i++) {
        sl_buf_clear(&self->read);
        int rc = sl_files_read(self->files.items[i].path, SIZE_MAX, &self->read);
        if (rc == SL_ENOTFOUND) {
            continue;
        }
        size_t end = rc == 0 ? valid_end(self->read.data, self->read.size) : 0;
        for (size_t at = 0; rc == 0 && at < end;) {
            size_t len = read_length(self->read.data + at);
            rc = each(ctx, self->read.data + at + LENGTH_BYTES, len);
            at += LENGTH_BYTES + len;
        }
        if (rc != 0) {
            return sl_err_wrap("read the log file %s", self->files.items[i].path);
        }
    }
    return 0;
}

int
sl_wal_clean(struct sl_wal *self, int64_t threshold)
{
    int rc = 0;
    for (size_t i = 0; i < self->files.count;) {
        struct sl_wal_file *file = &self->files.items[i];
        bool is_current = self->fd >= 0 && i + 1 == self->files.count;
        if (is_current || file->stop >= threshold) {
            i++;
            continue;
        }
        if (unlink(file->path) != 0 && errno != ENOENT) {
            rc = sl_err_set(SL_ESYS, "delete the log file %s", file->path);
            i++;
            continue;
        }
        sl_free(file->path);
        sl_vec_remove(&self->files, i);
    }
    return rc;
}
