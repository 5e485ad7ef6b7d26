#include "batch/checkpoint.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/vec.h"
#include "batch/files.h"
#include "batch/streaming_codec.h"

static const char magic[8] = "slckpt1\n";

enum { HEADER_BYTES = 24 };

void
sl_checkpoint_create(struct sl_checkpoint *self)
{
    *self = (struct sl_checkpoint){.time = SL_STREAMING_UNKNOWN};
    sl_arena_create(&self->arena, 0, 0);
}

void
sl_checkpoint_destroy(struct sl_checkpoint *self)
{
    sl_arena_destroy(&self->arena);
}

/* A file name of a checkpoint: "checkpoint-", digits, then word characters and dots. */
struct file_name {
    char *text;
    int64_t time;
    bool is_plain;
};

static bool
parse_name(const char *name, struct file_name *out)
{
    static const char prefix[] = "checkpoint-";
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0) {
        return false;
    }
    const char *digits = name + sizeof(prefix) - 1;
    size_t count = strspn(digits, "0123456789");
    if (count == 0 || count > 18) {
        return false;
    }
    for (const char *rest = digits + count; *rest != '\0'; rest++) {
        if (!isalnum((unsigned char)*rest) && *rest != '_' && *rest != '.') {
            return false;
        }
    }
    out->time = strtoll(digits, NULL, 10);
    out->is_plain = digits[count] == '\0';
    return true;
}

static int
compare_names(const void *a, const void *b)
{
    const struct file_name *left = a;
    const struct file_name *right = b;
    if (left->time != right->time) {
        return left->time > right->time ? -1 : 1;
    }
    if (left->is_plain != right->is_plain) {
        return left->is_plain ? -1 : 1;
    }
    return strcmp(left->text, right->text);
}

static bool
is_regular(const char *dir, const char *name)
{
    char *path = sl_asprintf("%s/%s", dir, name);
    struct stat info;
    bool is_file = stat(path, &info) == 0 && S_ISREG(info.st_mode);
    sl_free(path);
    return is_file;
}

int
sl_checkpoint_list(const char *dir, struct sl_checkpoint_names *out)
{
    *out = (struct sl_checkpoint_names){0};
    DIR *open_dir = opendir(dir);
    if (open_dir == NULL) {
        return sl_err_set(errno == ENOENT ? SL_ENOTFOUND : SL_ESYS, "the checkpoint directory %s",
                          dir);
    }
    SL_VEC(struct file_name) found = SL_VEC_INIT;
    struct dirent *entry = NULL;
    while ((entry = readdir(open_dir)) != NULL) {
        struct file_name name = {0};
        if (parse_name(entry->d_name, &name) && is_regular(dir, entry->d_name)) {
            name.text = sl_strdup(entry->d_name);
            sl_vec_push(&found, name);
        }
    }
    closedir(open_dir);
    if (found.count > 1) {
        qsort(found.items, found.count, sizeof(found.items[0]), compare_names);
    }
    out->items = sl_calloc(found.count, sizeof(out->items[0]));
    out->count = found.count;
    for (size_t i = 0; i < found.count; i++) {
        out->items[i] = found.items[i].text;
    }
    sl_vec_destroy(&found);
    return 0;
}

void
sl_checkpoint_names_free(struct sl_checkpoint_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        sl_free(names->items[i]);
    }
    sl_free(names->items);
    *names = (struct sl_checkpoint_names){0};
}

static uint64_t
read_u64(const uint8_t *ptr)
{
    uint64_t value = 0;
    for (int i = 8; i-- > 0;) {
        value = value << 8 | ptr[i];
    }
    return value;
}

/* Checks the header and reads the document behind it. */
static int
decode_file(const struct sl_buf *bytes, struct sl_checkpoint *out)
{
    if (bytes->size < HEADER_BYTES || memcmp(bytes->data, magic, sizeof(magic)) != 0) {
        return sl_err_set(SL_EPROTO, "it does not begin as a checkpoint does");
    }
    const uint8_t *body = bytes->data + HEADER_BYTES;
    size_t len = bytes->size - HEADER_BYTES;
    if (read_u64(bytes->data + 8) != len) {
        return sl_err_set(SL_EPROTO, "it was cut off: %zu bytes instead of %llu", len,
                          (unsigned long long)read_u64(bytes->data + 8));
    }
    if (read_u64(bytes->data + 16) != sl_hash_bytes(body, len)) {
        return sl_err_set(SL_EPROTO, "its bytes are damaged");
    }
    return sl_checkpoint_decode(body, len, out);
}

static int
read_file(const char *path, struct sl_checkpoint *out)
{
    struct sl_buf bytes = {0};
    int rc = sl_files_read(path, SL_CHECKPOINT_BYTES_MAX + HEADER_BYTES, &bytes);
    if (rc == 0) {
        sl_checkpoint_create(out);
        rc = decode_file(&bytes, out);
        if (rc != 0) {
            sl_checkpoint_destroy(out);
        } else {
            out->path = sl_arena_strdup(&out->arena, path);
        }
    }
    sl_buf_destroy(&bytes);
    return rc;
}

int
sl_checkpoint_read(const char *dir, struct sl_checkpoint *out)
{
    struct sl_checkpoint_names names;
    int rc = sl_checkpoint_list(dir, &names);
    if (rc != 0) {
        return rc;
    }
    rc = SL_EPROTO;
    for (size_t i = 0; rc != 0 && i < names.count; i++) {
        char *path = sl_asprintf("%s/%s", dir, names.items[i]);
        rc = read_file(path, out);
        if (rc != 0) {
            char text[512];
            sl_log_warn("batch.checkpoint", "%s is passed over: %s", path,
                        sl_err_format(sl_err_last(), text, sizeof(text)));
        }
        sl_free(path);
    }
    if (names.count == 0) {
        rc = sl_err_set(SL_ENOTFOUND, "there is no checkpoint in %s", dir);
    } else if (rc != 0) {
        rc = sl_err_set(SL_EPROTO, "none of the %zu checkpoint files in %s is readable",
                        names.count, dir);
    }
    sl_checkpoint_names_free(&names);
    return rc;
}

/* Puts temp in the place of a checkpoint file; what was there becomes the backup. */
static int
put_in_place(const char *temp, const char *target)
{
    int rc = 0;
    char *backup = sl_asprintf("%s.bk", target);
    if (rename(target, backup) != 0 && errno != ENOENT) {
        rc = sl_err_set(SL_ESYS, "keep a backup of %s", target);
    } else if (rename(temp, target) != 0) {
        rc = sl_err_set(SL_ESYS, "make %s", target);
    }
    sl_free(backup);
    return rc;
}

static void
delete_old(const char *dir, int32_t keep)
{
    struct sl_checkpoint_names names;
    if (sl_checkpoint_list(dir, &names) != 0) {
        return;
    }
    for (size_t i = (size_t)keep; i < names.count; i++) {
        char *path = sl_asprintf("%s/%s", dir, names.items[i]);
        unlink(path);
        sl_free(path);
    }
    sl_checkpoint_names_free(&names);
}

static int
store_once(const char *dir, int64_t time, const struct sl_buf *file, int32_t keep)
{
    char *temp = sl_asprintf("%s/temp", dir);
    char *target = sl_asprintf("%s/checkpoint-%lld", dir, (long long)time);
    int rc = sl_files_make_dirs(dir);
    if (rc == 0) {
        rc = sl_files_write(temp, file->data, file->size);
    }
    if (rc == 0) {
        rc = put_in_place(temp, target);
    }
    if (rc == 0) {
        rc = sl_files_sync_dir(dir);
    }
    if (rc == 0) {
        delete_old(dir, keep);
    } else {
        unlink(temp);
    }
    sl_free(target);
    sl_free(temp);
    return rc;
}

int
sl_checkpoint_store(const char *dir, int64_t time, const void *bytes, size_t len, int32_t keep)
{
    struct sl_buf file = {0};
    sl_buf_append(&file, magic, sizeof(magic));
    sl_buf_append_u64(&file, len);
    sl_buf_append_u64(&file, sl_hash_bytes(bytes, len));
    sl_buf_append(&file, bytes, len);
    int rc = -1;
    for (int attempt = 0; rc != 0 && attempt < SL_CHECKPOINT_ATTEMPTS; attempt++) {
        rc = store_once(dir, time, &file, keep);
    }
    sl_buf_destroy(&file);
    return rc == 0 ? 0 : sl_err_wrap("write the checkpoint of %lld ms", (long long)time);
}

static int64_t
later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Takes what is to be written next; false when the thread is to end. */
static bool
writer_take(struct sl_checkpoint_writer *self, struct sl_checkpoint_job *job)
{
    pthread_mutex_lock(&self->lock);
    while (self->queue.count == 0 && !self->is_stopping) {
        pthread_cond_wait(&self->changed, &self->lock);
    }
    bool has_work = self->queue.count > 0;
    if (has_work) {
        *job = self->queue.items[0];
        sl_vec_remove(&self->queue, 0);
        self->is_busy = true;
    }
    pthread_mutex_unlock(&self->lock);
    return has_work;
}

static void
writer_finish(struct sl_checkpoint_writer *self, const struct sl_checkpoint_job *job, int rc)
{
    pthread_mutex_lock(&self->lock);
    self->is_busy = false;
    self->owed_clear = later(self->owed_clear, job->clear_time);
    if (!self->has_done) {
        self->done.clear_time = SL_STREAMING_UNKNOWN;
    }
    if (rc == 0) {
        self->done.clear_time = later(self->done.clear_time, self->owed_clear);
        self->owed_clear = SL_STREAMING_UNKNOWN;
    }
    self->done.rc = rc;
    self->has_done = true;
    pthread_mutex_unlock(&self->lock);
    self->wake(self->ctx);
}

static void *
writer_main(void *argument)
{
    struct sl_checkpoint_writer *self = argument;
    struct sl_checkpoint_job job;
    while (writer_take(self, &job)) {
        int rc =
            sl_checkpoint_store(self->dir, job.time, job.bytes.data, job.bytes.size, self->keep);
        if (rc != 0) {
            char text[512];
            sl_log_error("batch.checkpoint", "a checkpoint was not written: %s",
                         sl_err_format(sl_err_last(), text, sizeof(text)));
        }
        sl_buf_destroy(&job.bytes);
        writer_finish(self, &job, rc);
    }
    return NULL;
}

void
sl_checkpoint_writer_create(struct sl_checkpoint_writer *self, const char *dir, int32_t keep,
                            void (*wake)(void *ctx), void *ctx)
{
    *self = (struct sl_checkpoint_writer){
        .dir = sl_strdup(dir),
        .keep = keep,
        .latest_time = SL_STREAMING_UNKNOWN,
        .owed_clear = SL_STREAMING_UNKNOWN,
        .wake = wake,
        .ctx = ctx,
    };
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->changed, NULL);
}

void
sl_checkpoint_writer_destroy(struct sl_checkpoint_writer *self)
{
    pthread_mutex_lock(&self->lock);
    self->is_stopping = true;
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->lock);
    if (self->has_thread) {
        pthread_join(self->thread, NULL);
    }
    sl_assert_eq(self->queue.count, 0);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    sl_vec_destroy(&self->queue);
    sl_free(self->dir);
}

static int
writer_start_thread(struct sl_checkpoint_writer *self)
{
    if (self->has_thread) {
        return 0;
    }
    int error = pthread_create(&self->thread, NULL, writer_main, self);
    if (error != 0) {
        errno = error;
        return sl_err_set(SL_ESYS, "start the thread that writes checkpoints");
    }
    self->has_thread = true;
    return 0;
}

int
sl_checkpoint_writer_write(struct sl_checkpoint_writer *self, struct sl_buf *take_bytes,
                           int64_t time, int64_t clear_time)
{
    pthread_mutex_lock(&self->lock);
    int rc = writer_start_thread(self);
    if (rc == 0) {
        /* What is written now is the newest content, so it goes under the newest name. */
        self->latest_time = later(self->latest_time, time);
        struct sl_checkpoint_job job = {*take_bytes, self->latest_time, clear_time};
        *take_bytes = (struct sl_buf){0};
        if (self->queue.count == SL_CHECKPOINT_QUEUE_MAX) {
            struct sl_checkpoint_job replaced = sl_vec_pop(&self->queue);
            job.clear_time = later(job.clear_time, replaced.clear_time);
            sl_buf_destroy(&replaced.bytes);
        }
        sl_vec_push(&self->queue, job);
        pthread_cond_signal(&self->changed);
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

bool
sl_checkpoint_writer_poll(struct sl_checkpoint_writer *self, struct sl_checkpoint_done *out)
{
    pthread_mutex_lock(&self->lock);
    bool has_done = self->has_done;
    if (has_done) {
        *out = self->done;
        self->has_done = false;
    }
    pthread_mutex_unlock(&self->lock);
    return has_done;
}

bool
sl_checkpoint_writer_is_idle(struct sl_checkpoint_writer *self)
{
    pthread_mutex_lock(&self->lock);
    bool is_idle = self->queue.count == 0 && !self->is_busy && !self->has_done;
    pthread_mutex_unlock(&self->lock);
    return is_idle;
}
