#include "cluster/package_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/package.h"
#include "cluster/worker_folder.h"
#include "state/layout.h"
#include "state/loop_executor.h"
#include "state/open.h"

struct unpacked {
    struct sl_unpacked io;
    struct sl_arena arena;
    struct sl_worker_folder folder;
    char *script;
};

/* One reading. */
struct reading {
    struct sl_loop *loop;
    struct sl_buf bytes;
    int status;
    struct sl_err why;
    struct sl_timer timer;
    bool is_over;
};

static void
over(struct reading *self, int status)
{
    if (!self->is_over) {
        self->is_over = true;
        self->status = status;
        self->why = *sl_err_last();
        sl_loop_stop(self->loop);
    }
}

static void
was_read(void *ctx, int status, const struct sl_state_result *result)
{
    struct reading *self = ctx;
    if (status == 0) {
        sl_buf_append(&self->bytes, result->value, result->size);
    }
    over(self, status);
}

static void
timed_out(void *ctx, uint64_t ticket)
{
    (void)ticket;
    over(ctx, sl_err_set(SL_ETIMEOUT, "the state manager did not give the code of the topology"));
}

static void
closed(void *ctx)
{
    struct reading *self = ctx;
    sl_loop_stop(self->loop);
}

static int
read_package(const char *state_url, const char *topology, const struct sl_settings *settings,
             struct sl_buf *out)
{
    char path[SL_STATE_PATH_MAX + 1];
    struct reading reading = {0};
    struct sl_state_loop_executor executor;
    struct sl_state_open_options options = {0};
    int rc = sl_loop_new(&reading.loop);
    if (rc != 0) {
        return rc;
    }
    sl_state_loop_executor_create(&executor, reading.loop);
    sl_settings_apply_state(settings, &options);
    struct sl_state_store *store = sl_state_open_new(state_url, &executor.executor, &options);
    if (store == NULL) {
        rc = sl_err_last()->code;
        goto out;
    }
    sl_state_get(store, sl_layout_path(path, SL_LAYOUT_PACKAGE, topology), was_read, &reading);
    sl_timer_start(reading.loop, &reading.timer, SL_PACKAGE_READ_MS, timed_out, &reading);
    sl_loop_run(reading.loop);
    sl_timer_stop(&reading.timer);
    reading.is_over = true;
    sl_state_store_close(store, closed, &reading);
    sl_loop_run(reading.loop);
    rc = reading.status;
    *out = reading.bytes;
    if (rc != 0) {
        sl_err_restore(&reading.why);
    }
out:
    sl_state_loop_executor_destroy(&executor);
    sl_loop_free(reading.loop);
    return rc;
}

static char *
join_dup(const char *folder, const char *path)
{
    size_t size = strlen(folder) + strlen(path) + 2;
    char *joined = sl_alloc(size);
    snprintf(joined, size, "%s/%s", folder, path);
    return joined;
}

/* Makes the folders of a relative path below ours. */
static int
make_folders(const struct unpacked *self, char *full)
{
    for (char *at = full + strlen(self->folder.path) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        if (mkdir(full, 0700) != 0 && errno != EEXIST) {
            return sl_err_set(SL_ESYS, "make the folder %s", full);
        }
        *at = '/';
    }
    return 0;
}

static int
write_file(const struct unpacked *self, const struct sl_package_file *file)
{
    char *full = join_dup(self->folder.path, file->path);
    int rc = make_folders(self, full);
    int fd = rc == 0 ? open(full, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (rc != 0 || fd < 0) {
        rc = rc != 0 ? rc : sl_err_set(SL_ESYS, "make the file %s", full);
        sl_free(full);
        return rc;
    }
    for (size_t done = 0; done < file->size && rc == 0;) {
        ssize_t count = write(fd, file->content + done, file->size - done);
        if (count > 0) {
            done += (size_t)count;
        } else if (count < 0 && errno != EINTR) {
            rc = sl_err_set(SL_ESYS, "write the file %s", full);
        }
    }
    close(fd);
    sl_free(full);
    return rc;
}

static int
unpack(struct unpacked *self, const struct sl_buf *bytes)
{
    struct sl_package package;
    int rc = sl_package_decode(bytes->data, bytes->size, &self->arena, &package);
    if (rc != 0) {
        return rc;
    }
    rc = sl_worker_folder_open(&self->folder);
    for (size_t i = 0; i < package.file_count && rc == 0; i++) {
        rc = write_file(self, &package.files[i]);
    }
    if (rc != 0) {
        return rc;
    }
    self->script = join_dup(self->folder.path, package.script);
    self->io = (struct sl_unpacked){.script = self->script,
                                    .overrides = package.overrides,
                                    .overrides_size = package.overrides_size,
                                    .defaults = package.defaults,
                                    .defaults_size = package.defaults_size};
    return 0;
}

struct sl_unpacked *
sl_package_unpack_new(const char *state_url, const char *topology,
                      const struct sl_settings *settings)
{
    struct sl_buf bytes = {0};
    if (read_package(state_url, topology, settings, &bytes) != 0) {
        sl_buf_destroy(&bytes);
        return NULL;
    }
    struct unpacked *self = sl_calloc(1, sizeof(*self));
    sl_arena_create(&self->arena, 0, 4 * (size_t)SL_PACKAGE_BYTES_MAX);
    int rc = unpack(self, &bytes);
    sl_buf_destroy(&bytes);
    if (rc != 0) {
        struct sl_err why = *sl_err_last();
        sl_package_unpack_free(&self->io);
        sl_err_restore(&why);
        return NULL;
    }
    return &self->io;
}

void
sl_package_unpack_free(struct sl_unpacked *io)
{
    struct unpacked *self = (struct unpacked *)io;
    if (self == NULL) {
        return;
    }
    sl_worker_folder_close(&self->folder);
    sl_arena_destroy(&self->arena);
    sl_free(self->script);
    sl_free(self);
}
