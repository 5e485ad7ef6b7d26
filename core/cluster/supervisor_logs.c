#include "cluster/supervisor_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "cluster/supervisor_messages.h"

enum { PATH_SIZE = 4096 };

/* A request whose log has nothing new yet. */
struct waiting {
    struct sl_supervisor_logs *owner;
    struct sl_list_node node;
    struct sl_rpc_request *request;
    char path[PATH_SIZE];
    uint64_t position;
    int inotify_fd;
    struct sl_fd_watch *watch;
    struct sl_timer timer;
};

void
sl_supervisor_logs_create(struct sl_supervisor_logs *self, struct sl_loop *loop, const char *folder)
{
    *self = (struct sl_supervisor_logs){.loop = loop, .folder = folder};
    sl_list_create(&self->list);
}

static void
waiting_free(struct waiting *waiting)
{
    sl_timer_stop(&waiting->timer);
    if (waiting->watch != NULL) {
        sl_fd_watch_close(waiting->watch);
    }
    if (waiting->inotify_fd >= 0) {
        close(waiting->inotify_fd);
    }
    sl_list_remove(&waiting->node);
    sl_free(waiting);
}

void
sl_supervisor_logs_destroy(struct sl_supervisor_logs *self)
{
    sl_list_each(&self->list, it)
    {
        struct waiting *waiting = sl_container_of(it, struct waiting, node);
        sl_rpc_refuse(waiting->request, SL_RPC_FAILURE, SL_EUNAVAIL, "the supervisor ends");
        waiting_free(waiting);
    }
}

/* A line that is being written is none yet, unless it fills a piece. */
static void
trim_to_lines(struct sl_buf *piece)
{
    const uint8_t *last = piece->size > 0 ? memrchr(piece->data, '\n', piece->size) : NULL;
    if (last != NULL || piece->size < SL_LOG_PIECE_MAX) {
        piece->size = last != NULL ? (size_t)(last - piece->data) + 1 : 0;
    }
}

/* The lines that a log has from *position on; the place moves where the log does not go so far, or
 * only the end is wanted. */
static int
read_log(const char *path, bool is_end, uint64_t *position, struct sl_buf *out)
{
    struct stat status;
    uint8_t bytes[16 * 1024];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        int error = errno;
        if (fd >= 0) {
            close(fd);
        }
        return sl_err_set(error == ENOENT ? SL_ENOTFOUND : SL_ESYS, "%s: %s", path,
                          strerror(error));
    }
    uint64_t size = (uint64_t)status.st_size;
    /* One that became shorter is another one. */
    *position = *position > size ? 0 : *position;
    if (is_end && size - *position > SL_LOG_PIECE_MAX) {
        *position = size - SL_LOG_PIECE_MAX;
    }
    ssize_t got = 1;
    while (got > 0 && out->size < SL_LOG_PIECE_MAX) {
        size_t left = SL_LOG_PIECE_MAX - out->size;
        got = pread(fd, bytes, left < sizeof(bytes) ? left : sizeof(bytes),
                    (off_t)(*position + out->size));
        sl_buf_append(out, bytes, got > 0 ? (size_t)got : 0);
    }
    close(fd);
    trim_to_lines(out);
    return 0;
}

static void
reply(struct sl_rpc_request *request, uint64_t position, const struct sl_buf *data)
{
    struct sl_buf body = {0};
    struct sl_log_piece piece = {position, data->data, data->size};
    sl_log_piece_encode(&piece, &body);
    sl_rpc_reply(request, body.data, body.size);
    sl_buf_destroy(&body);
}

/* Answers if there is something to say, or it is time. */
static void
look(struct waiting *waiting, bool is_time)
{
    struct sl_buf data = {0};
    if (read_log(waiting->path, false, &waiting->position, &data) != 0) {
        sl_rpc_refuse_last(waiting->request);
        waiting_free(waiting);
    } else if (data.size > 0 || is_time) {
        reply(waiting->request, waiting->position, &data);
        waiting_free(waiting);
    }
    sl_buf_destroy(&data);
}

static void
changed(void *ctx)
{
    struct waiting *waiting = ctx;
    char events[4096];
    if (read(waiting->inotify_fd, events, sizeof(events)) > 0) {
        look(waiting, false);
    }
}

static void
waited(void *ctx, uint64_t ticket)
{
    (void)ticket;
    look(ctx, true);
}

/* Without inotify, of which a user can run out, the answer comes at the end of the time. */
static void
wait_for_more(struct sl_supervisor_logs *self, struct sl_rpc_request *request,
              const struct sl_read_log *message, const char *path, uint64_t position)
{
    struct waiting *waiting = sl_calloc(1, sizeof(*waiting));
    waiting->owner = self;
    waiting->request = request;
    waiting->position = position;
    snprintf(waiting->path, sizeof(waiting->path), "%s", path);
    sl_list_push_back(&self->list, &waiting->node);
    sl_timer_start(self->loop, &waiting->timer, message->wait_ms, waited, waiting);
    waiting->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (waiting->inotify_fd >= 0 && inotify_add_watch(waiting->inotify_fd, path, IN_MODIFY) >= 0 &&
        sl_fd_watch_open(self->loop, waiting->inotify_fd, changed, waiting, &waiting->watch) == 0) {
        /* Also what was written before it was watched. */
        look(waiting, false);
    }
}

void
sl_supervisor_logs_read(struct sl_supervisor_logs *self, struct sl_rpc_request *request)
{
    struct sl_arena arena;
    struct sl_read_log message;
    struct sl_buf data = {0};
    char path[PATH_SIZE];
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_create(&arena, 0, 64 * 1024);
    int rc = sl_read_log_decode(body, size, &arena, &message);
    if (rc == 0) {
        snprintf(path, sizeof(path), "%s/%s/container-%d.log", self->folder, message.topology,
                 message.container);
        rc = read_log(path, message.is_end, &message.position, &data);
    }
    if (rc != 0) {
        sl_rpc_refuse_last(request);
    } else if (data.size == 0 && message.wait_ms > 0) {
        wait_for_more(self, request, &message, path, message.position);
    } else {
        reply(request, message.position, &data);
    }
    sl_buf_destroy(&data);
    sl_arena_destroy(&arena);
}
