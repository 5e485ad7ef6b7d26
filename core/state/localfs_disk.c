#include "state/localfs_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "state/log_codec.h"

enum {
    MAGIC_BYTES = 16,
    FRAME_HEADER_BYTES = 16,
    READ_BYTES = 256 * 1024,
    /* A log smaller than this is left as it is. */
    COMPACT_MIN_BYTES = 1024 * 1024,
    /* History for each byte of state. */
    COMPACT_RATIO = 4,
    NODE_OVERHEAD_BYTES = 80,
    SNAPSHOT_FRAME_BYTES = 1024 * 1024,
    SNAPSHOT_RECORD_NODES = 256,
    LOCK_POLL_MAX_MS = 20,
};

static const char magic[MAGIC_BYTES + 1] = "streamlua state\n";
static const char log_name[] = "state.log";
static const char new_log_name[] = "state.log.new";
static const char lock_name[] = "state.lock";
static const char sessions_name[] = "sessions";

static int
sys_error(const struct sl_disk *self, const char *what, const char *name)
{
    return sl_err_set(SL_ESYS, "%s %s/%s: %s", what, self->dir, name, strerror(errno));
}

/*
 * Opening
 */

/* mkdir -p; the last one is for its owner alone. */
static int
make_dir(const char *dir)
{
    char *path = sl_strdup(dir);
    int rc = 0;
    for (char *at = path + 1; rc == 0; at++) {
        if (*at != '/' && *at != '\0') {
            continue;
        }
        bool is_last = *at == '\0';
        *at = '\0';
        if (mkdir(path, is_last ? 0700 : 0755) != 0 && errno != EEXIST) {
            rc = sl_err_set(SL_ESYS, "make the state directory %s: %s", path, strerror(errno));
        }
        if (is_last) {
            break;
        }
        *at = '/';
    }
    sl_free(path);
    return rc;
}

static int
open_files(struct sl_disk *self)
{
    self->dir_fd = open(self->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self->dir_fd < 0) {
        return sl_err_set(SL_ESYS, "open the state directory %s: %s", self->dir, strerror(errno));
    }
    if (mkdirat(self->dir_fd, sessions_name, 0700) != 0 && errno != EEXIST) {
        return sys_error(self, "make", sessions_name);
    }
    self->sessions_fd = openat(self->dir_fd, sessions_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self->sessions_fd < 0) {
        return sys_error(self, "open", sessions_name);
    }
    self->lock_fd =
        openat(self->dir_fd, lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (self->lock_fd < 0) {
        return sys_error(self, "open", lock_name);
    }
    return 0;
}

/* The first process makes the log, with its heading, whole or not at all. */
static int
create_log(struct sl_disk *self)
{
    int fd = openat(self->dir_fd, new_log_name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    0600);
    if (fd < 0) {
        return sys_error(self, "make", new_log_name);
    }
    int rc = 0;
    if (write(fd, magic, MAGIC_BYTES) != MAGIC_BYTES || fsync(fd) != 0 ||
        renameat(self->dir_fd, new_log_name, self->dir_fd, log_name) != 0 ||
        fsync(self->dir_fd) != 0) {
        rc = sys_error(self, "write", new_log_name);
    }
    close(fd);
    return rc;
}

static int
open_log(struct sl_disk *self)
{
    struct stat stat;
    char heading[MAGIC_BYTES] = {0};
    int fd = openat(self->dir_fd, log_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return sys_error(self, "open", log_name);
    }
    if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode) ||
        pread(fd, heading, MAGIC_BYTES, 0) != MAGIC_BYTES ||
        memcmp(heading, magic, MAGIC_BYTES) != 0) {
        close(fd);
        /* Formats differ in what follows the same words. */
        return memcmp(heading, magic, MAGIC_BYTES - 1) == 0
                   ? sl_err_set(SL_EPROTO, "%s/%s was written by a newer version of streamlua",
                                self->dir, log_name)
                   : sl_err_set(SL_EPROTO, "%s/%s is no state of streamlua", self->dir, log_name);
    }
    if (self->log_fd >= 0) {
        close(self->log_fd);
    }
    self->log_fd = fd;
    self->log_inode = stat.st_ino;
    self->offset = MAGIC_BYTES;
    return 0;
}

/*
 * Reading
 */

static int
on_record(void *ctx, const struct sl_log_record *record)
{
    struct sl_disk *self = ctx;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < record->node_count; i++) {
        rc = sl_tree_restore(&self->tree, record->nodes[i]);
    }
    for (size_t i = 0; i < record->session_count; i++) {
        sl_map_u64_put(&self->sessions, record->sessions[i], 1);
    }
    if (rc == 0 && record->zxid != 0) {
        rc = sl_tree_apply(&self->tree, record->zxid, record->effects, record->effect_count);
    }
    if (record->session_change == SL_LOG_SESSION_OPEN) {
        sl_map_u64_put(&self->sessions, record->session, 1);
    } else if (record->session_change == SL_LOG_SESSION_CLOSE) {
        sl_map_u64_remove(&self->sessions, record->session, NULL);
    }
    return rc;
}

static uint32_t
get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t
get_u64(const uint8_t *at)
{
    return get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

static int
damaged(const struct sl_disk *self)
{
    return sl_err_wrap("%s/%s is damaged at byte %lld", self->dir, log_name,
                       (long long)self->offset);
}

/* True when a heading that makes no sense is one whose bytes did not reach the disk in a crash. */
static bool
is_header_torn(const uint8_t *header)
{
    return get_u32(header) == 0 || get_u32(header + 4) == 0 || get_u64(header + 8) == 0;
}

/*
 * Takes the complete frames off the front of data, which runs to the end of the file when is_end.
 * A bad frame that is the last thing in the file is one that a crash cut off, and is left; one with
 * more behind it is damage.
 */
static int
take_frames(struct sl_disk *self, struct sl_buf *data, bool is_end)
{
    size_t at = 0;
    int rc = 0;
    while (rc == 0 && data->size - at >= FRAME_HEADER_BYTES) {
        const uint8_t *header = data->data + at;
        uint32_t size = get_u32(header);
        bool is_header_good = size == ~get_u32(header + 4) && size <= SL_LOG_FRAME_BYTES_MAX;
        if (!is_header_good) {
            if (!is_header_torn(header)) {
                sl_err_set(SL_EPROTO, "no frame starts here");
                rc = damaged(self);
            }
            break;
        }
        if (data->size - at - FRAME_HEADER_BYTES < size) {
            break;
        }
        const uint8_t *payload = header + FRAME_HEADER_BYTES;
        size_t frame_bytes = FRAME_HEADER_BYTES + (size_t)size;
        if (sl_hash_bytes(payload, size) != get_u64(header + 8)) {
            if (!is_end || at + frame_bytes < data->size) {
                sl_err_set(SL_EPROTO, "wrong check sum");
                rc = damaged(self);
            }
            break;
        }
        if (sl_log_decode(payload, size, on_record, self) != 0) {
            rc = damaged(self);
            break;
        }
        at += frame_bytes;
        self->offset += (off_t)frame_bytes;
    }
    sl_buf_consume(data, at);
    return rc;
}

/* Reads what the log has beyond the offset. */
static int
read_log(struct sl_disk *self)
{
    struct stat stat;
    if (fstat(self->log_fd, &stat) != 0) {
        return sys_error(self, "read", log_name);
    }
    struct sl_buf data = {0};
    off_t end = self->offset;
    int rc = 0;
    while (rc == 0 && end < stat.st_size) {
        off_t left = stat.st_size - end;
        size_t want = left < READ_BYTES ? (size_t)left : READ_BYTES;
        ssize_t got = pread(self->log_fd, sl_buf_reserve(&data, want), want, end);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            rc = got < 0 ? sys_error(self, "read", log_name) : 0;
            break;
        }
        sl_buf_commit(&data, (size_t)got);
        end += got;
        rc = take_frames(self, &data, end >= stat.st_size);
    }
    sl_buf_destroy(&data);
    if (rc != 0) {
        /* The tree may hold a part of a frame: read all of it again next time. */
        self->log_inode = 0;
    }
    return rc;
}

static off_t
live_bytes(const struct sl_disk *self)
{
    off_t bytes = 0;
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->tree.nodes, &at)) != NULL;) {
        const struct sl_tree_node *node = entry->value;
        bytes += (off_t)(node->size + entry->key_len + NODE_OVERHEAD_BYTES);
    }
    return bytes;
}

static void
set_compact_at(struct sl_disk *self)
{
    off_t limit = live_bytes(self) * COMPACT_RATIO;
    self->compact_at = limit > COMPACT_MIN_BYTES ? limit : COMPACT_MIN_BYTES;
}

/* Tells of what is different between two trees. */
static void
tell_differences(struct sl_disk *self, const struct sl_tree *old)
{
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; (entry = sl_map_bytes_next(&old->nodes, &at)) != NULL;) {
        if (sl_tree_find(&self->tree, entry->key) == NULL) {
            self->on_change(self->ctx, entry->key, SL_TREE_DELETED);
        }
    }
    for (size_t at = 0; (entry = sl_map_bytes_next(&self->tree.nodes, &at)) != NULL;) {
        const struct sl_tree_node *node = entry->value;
        const struct sl_tree_node *before = sl_tree_find(old, entry->key);
        if (before == NULL || before->created_zxid != node->created_zxid) {
            self->on_change(self->ctx, entry->key, SL_TREE_CREATED);
            continue;
        }
        if (before->modified_zxid != node->modified_zxid) {
            self->on_change(self->ctx, entry->key, SL_TREE_CHANGED);
        }
        if (before->children_zxid != node->children_zxid) {
            self->on_change(self->ctx, entry->key, SL_TREE_CHILDREN);
        }
    }
}

/* Reads the log from its start: it was replaced, or the tree holds what was not committed. */
static int
reload(struct sl_disk *self)
{
    struct sl_tree old = self->tree;
    old.on_change = NULL;
    sl_tree_create(&self->tree);
    sl_map_u64_clear(&self->sessions);
    int rc = open_log(self);
    if (rc == 0) {
        rc = read_log(self);
    }
    if (rc == 0 && self->on_change != NULL) {
        tell_differences(self, &old);
    }
    self->tree.on_change = self->on_change;
    self->tree.ctx = self->ctx;
    sl_tree_destroy(&old);
    set_compact_at(self);
    return rc;
}

int
sl_disk_catch_up(struct sl_disk *self)
{
    struct stat stat;
    if (fstatat(self->dir_fd, log_name, &stat, AT_SYMLINK_NOFOLLOW) != 0) {
        return sys_error(self, "read", log_name);
    }
    if (stat.st_ino != self->log_inode) {
        return reload(self);
    }
    return stat.st_size > self->offset ? read_log(self) : 0;
}

int
sl_disk_open(struct sl_disk *self, const char *dir, sl_tree_change_fn on_change, void *ctx)
{
    memset(self, 0, sizeof(*self));
    self->dir = sl_strdup(dir);
    self->dir_fd = self->sessions_fd = self->lock_fd = self->log_fd = -1;
    sl_tree_create(&self->tree);
    int rc = make_dir(dir);
    if (rc == 0) {
        rc = open_files(self);
    }
    if (rc == 0 && faccessat(self->dir_fd, log_name, F_OK, 0) != 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        /* Whoever comes first makes it; the others wait for that, which is short. */
        if (fcntl(self->lock_fd, F_OFD_SETLKW, &lock) != 0) {
            rc = sys_error(self, "lock", lock_name);
        } else if (faccessat(self->dir_fd, log_name, F_OK, 0) != 0) {
            rc = create_log(self);
        }
        lock.l_type = F_UNLCK;
        fcntl(self->lock_fd, F_OFD_SETLK, &lock);
    }
    if (rc == 0) {
        rc = reload(self);
    }
    self->on_change = on_change;
    self->ctx = ctx;
    self->tree.on_change = on_change;
    self->tree.ctx = ctx;
    return rc;
}

static void
close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

void
sl_disk_close(struct sl_disk *self)
{
    close_fd(&self->log_fd);
    close_fd(&self->lock_fd);
    close_fd(&self->sessions_fd);
    close_fd(&self->dir_fd);
    sl_tree_destroy(&self->tree);
    sl_map_u64_destroy(&self->sessions);
    sl_buf_destroy(&self->payload);
    sl_free(self->dir);
}

/*
 * Writing
 */

/* The lock file must still be the one in the directory, or we would exclude nobody. */
static int
check_lock_file(const struct sl_disk *self)
{
    struct stat ours;
    struct stat theirs;
    struct stat dir;
    if (fstat(self->lock_fd, &ours) != 0 || fstat(self->dir_fd, &dir) != 0) {
        return sys_error(self, "look at", lock_name);
    }
    if (dir.st_nlink == 0 || fstatat(self->dir_fd, lock_name, &theirs, AT_SYMLINK_NOFOLLOW) != 0 ||
        ours.st_ino != theirs.st_ino) {
        return sl_err_set(SL_EUNAVAIL, "the state directory %s was removed or replaced", self->dir);
    }
    return 0;
}

static int
held_error(const struct sl_disk *self, uint64_t timeout_ms)
{
    char text[32] = "";
    ssize_t got = pread(self->lock_fd, text, sizeof(text) - 1, 0);
    long pid = got > 0 ? strtol(text, NULL, 10) : 0;
    return sl_err_set(SL_EUNAVAIL, "%s is being written by process %ld for more than %llu ms",
                      self->dir, pid, (unsigned long long)timeout_ms);
}

int
sl_disk_lock(struct sl_disk *self, uint64_t timeout_ms)
{
    uint64_t start = sl_clock_mono_ms(sl_clock_system());
    int pause_ms = 1;
    sl_assert(!self->is_locked);
    for (;;) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (fcntl(self->lock_fd, F_OFD_SETLK, &lock) == 0) {
            break;
        }
        if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
            return sys_error(self, "lock", lock_name);
        }
        if (sl_clock_mono_ms(sl_clock_system()) - start >= timeout_ms) {
            return held_error(self, timeout_ms);
        }
        poll(NULL, 0, pause_ms);
        pause_ms = pause_ms * 2 < LOCK_POLL_MAX_MS ? pause_ms * 2 : LOCK_POLL_MAX_MS;
    }
    self->is_locked = true;
    char text[32];
    int len = snprintf(text, sizeof(text), "%-20ld\n", (long)getpid());
    /* Only for the message of those who wait; what becomes of it does not matter. */
    ssize_t ignored = pwrite(self->lock_fd, text, (size_t)len, 0);
    (void)ignored;
    int rc = check_lock_file(self);
    if (rc == 0) {
        rc = sl_disk_catch_up(self);
    }
    if (rc != 0) {
        sl_disk_unlock(self);
    }
    return rc;
}

void
sl_disk_unlock(struct sl_disk *self)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    sl_assert(self->is_locked);
    self->is_locked = false;
    fcntl(self->lock_fd, F_OFD_SETLK, &lock);
}

static int
apply_record(struct sl_disk *self, const struct sl_log_record *record)
{
    sl_assert(self->is_locked);
    int rc = on_record(self, record);
    if (rc == 0) {
        sl_log_append(&self->payload, record);
    }
    return rc;
}

int
sl_disk_apply(struct sl_disk *self, const struct sl_tree_effect *effects, size_t count)
{
    struct sl_log_record record = {
        .zxid = self->tree.zxid + 1, .effects = effects, .effect_count = count};
    return apply_record(self, &record);
}

size_t
sl_disk_pending_bytes(const struct sl_disk *self)
{
    return self->payload.size;
}

static int
write_all(int fd, const uint8_t *data, size_t size, off_t offset)
{
    while (size > 0) {
        ssize_t written = pwrite(fd, data, size, offset);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return -1;
        }
        data += written;
        size -= (size_t)written;
        offset += written;
    }
    return 0;
}

/* Writes a frame at *offset and moves it on. */
static int
write_frame(int fd, const struct sl_buf *payload, off_t *offset)
{
    struct sl_buf frame = {0};
    sl_buf_append_u32(&frame, (uint32_t)payload->size);
    sl_buf_append_u32(&frame, ~(uint32_t)payload->size);
    sl_buf_append_u64(&frame, sl_hash_bytes(payload->data, payload->size));
    sl_buf_append(&frame, payload->data, payload->size);
    int rc = write_all(fd, frame.data, frame.size, *offset);
    *offset += (off_t)frame.size;
    sl_buf_destroy(&frame);
    return rc;
}

/* The state as the start of a new log. Nodes come after their parents, as they were made. */
static int
write_snapshot(struct sl_disk *self, int fd, off_t *offset)
{
    struct sl_buf payload = {0};
    SL_VEC(const struct sl_tree_node *) nodes = SL_VEC_INIT;
    SL_VEC(uint64_t) sessions = SL_VEC_INIT;
    size_t node_bytes = 0;
    int rc = 0;
    sl_vec_push(&nodes, sl_tree_find(&self->tree, "/"));
    struct sl_map_bytes_entry *entry;
    for (size_t at = 0; rc == 0 && (entry = sl_map_bytes_next(&self->tree.nodes, &at)) != NULL;) {
        const struct sl_tree_node *node = entry->value;
        if (node->path[1] != '\0') {
            sl_vec_push(&nodes, node);
            node_bytes += node->size;
        }
        if (nodes.count >= SNAPSHOT_RECORD_NODES || node_bytes > SNAPSHOT_FRAME_BYTES) {
            struct sl_log_record record = {.nodes = nodes.items, .node_count = nodes.count};
            sl_log_append(&payload, &record);
            rc = write_frame(fd, &payload, offset);
            sl_buf_clear(&payload);
            sl_vec_clear(&nodes);
            node_bytes = 0;
        }
    }
    struct sl_map_u64_entry *session;
    for (size_t at = 0; (session = sl_map_u64_next(&self->sessions, &at)) != NULL;) {
        sl_vec_push(&sessions, session->key);
    }
    if (rc == 0) {
        struct sl_log_record record = {.zxid = self->tree.zxid,
                                       .nodes = nodes.items,
                                       .node_count = nodes.count,
                                       .sessions = sessions.items,
                                       .session_count = sessions.count};
        sl_log_append(&payload, &record);
        rc = write_frame(fd, &payload, offset);
    }
    sl_buf_destroy(&payload);
    sl_vec_destroy(&nodes);
    sl_vec_destroy(&sessions);
    return rc;
}

/* Replaces the log. When that fails the old one goes on. */
static void
compact(struct sl_disk *self)
{
    off_t offset = MAGIC_BYTES;
    struct stat stat;
    int fd = openat(self->dir_fd, new_log_name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    0600);
    bool is_good = fd >= 0 && write(fd, magic, MAGIC_BYTES) == MAGIC_BYTES &&
                   write_snapshot(self, fd, &offset) == 0 && fsync(fd) == 0 &&
                   fstat(fd, &stat) == 0 &&
                   renameat(self->dir_fd, new_log_name, self->dir_fd, log_name) == 0;
    if (is_good) {
        fsync(self->dir_fd);
        close(self->log_fd);
        self->log_fd = fd;
        self->log_inode = stat.st_ino;
        self->offset = offset;
        set_compact_at(self);
        return;
    }
    if (fd >= 0) {
        close(fd);
        unlinkat(self->dir_fd, new_log_name, 0);
    }
    /* Not again at the very next write. */
    self->compact_at = self->offset * 2;
}

int
sl_disk_commit(struct sl_disk *self)
{
    struct stat stat;
    sl_assert(self->is_locked);
    if (self->payload.size == 0) {
        return 0;
    }
    off_t end = self->offset;
    int rc = 0;
    /* What lies behind the last good frame is the rest of a write that a crash cut off. */
    if (fstat(self->log_fd, &stat) != 0 ||
        (stat.st_size > self->offset && ftruncate(self->log_fd, self->offset) != 0) ||
        write_frame(self->log_fd, &self->payload, &end) != 0 || fdatasync(self->log_fd) != 0) {
        rc = sys_error(self, "write", log_name);
    }
    sl_buf_clear(&self->payload);
    if (rc != 0) {
        struct sl_err err;
        sl_err_move(&err);
        if (ftruncate(self->log_fd, self->offset) != 0 || reload(self) != 0) {
            /* Reading again is all that can be done, and the next call tries that. */
            self->log_inode = 0;
        }
        return sl_err_restore(&err);
    }
    self->offset = end;
    if (self->offset > self->compact_at) {
        compact(self);
    }
    return 0;
}

/*
 * Sessions
 */

static void
session_file(char *name, size_t size, uint64_t session)
{
    snprintf(name, size, "%016llx", (unsigned long long)session);
}

int
sl_disk_session_open(struct sl_disk *self, uint64_t *session, int *fd)
{
    char name[32];
    uint64_t id = self->tree.zxid + 1;
    session_file(name, sizeof(name), id);
    /* One of a process that crashed before it was logged may be there. */
    unlinkat(self->sessions_fd, name, 0);
    int file = openat(self->sessions_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) {
        return sys_error(self, "make", name);
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    dprintf(file, "%ld\n", (long)getpid());
    if (fcntl(file, F_OFD_SETLK, &lock) != 0) {
        int rc = sys_error(self, "lock", name);
        close(file);
        return rc;
    }
    struct sl_log_record record = {
        .zxid = id, .session_change = SL_LOG_SESSION_OPEN, .session = id};
    int rc = apply_record(self, &record);
    if (rc != 0) {
        close(file);
        return rc;
    }
    *session = id;
    *fd = file;
    return 0;
}

int
sl_disk_session_close(struct sl_disk *self, uint64_t session)
{
    struct sl_tree_effects effects = SL_VEC_INIT;
    if (!sl_map_u64_get(&self->sessions, session, NULL)) {
        return 0;
    }
    sl_tree_plan_session_end(&self->tree, session, &effects);
    struct sl_log_record record = {
        .zxid = self->tree.zxid + 1,
        .effects = effects.items,
        .effect_count = effects.count,
        .session_change = SL_LOG_SESSION_CLOSE,
        .session = session,
    };
    int rc = apply_record(self, &record);
    sl_tree_effects_destroy(&effects);
    return rc;
}

void
sl_disk_session_unlink(struct sl_disk *self, uint64_t session)
{
    char name[32];
    session_file(name, sizeof(name), session);
    unlinkat(self->sessions_fd, name, 0);
}

bool
sl_disk_session_is_dead(const struct sl_disk *self, uint64_t session)
{
    char name[32];
    session_file(name, sizeof(name), session);
    /* Opened for reading only: closing it then wakes nobody who waits for owners to go. */
    int fd = openat(self->sessions_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return errno == ENOENT;
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    bool is_dead = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
    close(fd);
    return is_dead;
}
