/*
 * The backend: a thread of its own, which does everything that touches files.
 *
 *     owner's thread --- queue + eventfd ---> disk thread --- executor.post ---> owner's thread
 *                                  inotify -^
 *
 * Requests that are queued together are carried out under one lock and written as one frame.
 */
#include "state/localfs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "state/localfs_disk.h"
#include "state/watch_table.h"

enum {
    /* Waiting for another process's write. */
    LOCK_TIMEOUT_MS = 4000,
    /* Looking for sessions whose processes are gone, in case nothing told us: whose task it is, and
     * all others, in case that one is stopped. */
    SWEEP_MS = 400,
    SWEEP_OTHERS = 10,
    /* Looking for changes where inotify is not to be had. */
    BLIND_POLL_MS = 50,
    /* Looks after somebody closed a session's file: the kernel tells before it frees the lock.
     * Those whose task it is not only look whether it has become theirs. */
    CLOSE_LOOKS = 8,
    CLOSE_LOOKS_OTHERS = 2,
    CLOSE_LOOK_MS = 5,
    /* Payload after which a batch of requests is written. */
    BATCH_BYTES = 4 * 1024 * 1024,
    /* Stands for a session where there is none; no real one has this number. */
    READER_SESSION = 0x7fffffff,
    /* Between attempts to begin a new session. */
    SESSION_RETRY_MS = 200,
};

struct localfs {
    struct sl_state_backend backend;
    char *name;
    char *dir;
    const struct sl_state_executor *executor;
    struct sl_state_backend_events events;
    pthread_t thread;
    bool has_thread;
    int event_fd;

    /* Guards what follows. */
    pthread_mutex_t mutex;
    struct sl_state_request *queue_first;
    struct sl_state_request **queue_last;
    bool is_closing;

    /* The owner's, for the end. */
    sl_state_task_fn closed_fn;
    void *closed_arg;

    /* The disk thread's. */
    struct sl_disk disk;
    bool is_disk_open;
    int inotify_fd;
    int log_watch;
    int close_looks;
    uint64_t session;
    int session_fd;
    /* Of the file whose lock says that it is ours to look for dead sessions: with many processes
     * one is enough. */
    int sweep_fd;
    bool is_sweeper;
    uint32_t sweeps;
    /* Only looks: it has no session in the state and writes nothing. */
    bool is_reader;
    struct sl_watch_table watches;
    struct sl_watch_entries fired;
};

/*
 * Coming back to the owner
 */

enum event_kind {
    EVENT_LINK,
    EVENT_COMPLETE,
    EVENT_WATCH,
    EVENT_CLOSED,
};

struct event {
    struct localfs *self;
    enum event_kind kind;
    enum sl_state_link link;
    uint64_t id;
    char *reason;
    struct sl_state_request *request;
};

static void localfs_free(struct localfs *self);

static void
on_event(void *arg)
{
    struct event event = *(struct event *)arg;
    struct localfs *self = event.self;
    sl_free(arg);
    switch (event.kind) {
    case EVENT_LINK:
        self->events.link(self->events.ctx, event.link, event.id, event.reason);
        break;
    case EVENT_COMPLETE:
        self->events.complete(self->events.ctx, event.request);
        break;
    case EVENT_WATCH:
        self->events.watch(self->events.ctx, event.id);
        break;
    case EVENT_CLOSED: {
        sl_state_task_fn fn = self->closed_fn;
        void *fn_arg = self->closed_arg;
        localfs_free(self);
        fn(fn_arg);
        break;
    }
    }
    sl_free(event.reason);
}

static struct event *
event_new(struct localfs *self, enum event_kind kind)
{
    struct event *event = sl_calloc(1, sizeof(*event));
    event->self = self;
    event->kind = kind;
    return event;
}

static void
post_link(struct localfs *self, enum sl_state_link link, uint64_t session, const char *reason)
{
    struct event *event = event_new(self, EVENT_LINK);
    event->link = link;
    event->id = session;
    event->reason = reason != NULL ? sl_strdup(reason) : NULL;
    sl_state_executor_post(self->executor, on_event, event);
}

static void
post_complete(struct localfs *self, struct sl_state_request *request)
{
    struct event *event = event_new(self, EVENT_COMPLETE);
    event->request = request;
    sl_state_executor_post(self->executor, on_event, event);
}

/* Changes that are in the log; before the answers of the requests that made them. */
static void
post_fired(struct localfs *self)
{
    for (size_t i = 0; i < self->fired.count; i++) {
        struct event *event = event_new(self, EVENT_WATCH);
        event->id = self->fired.items[i].id;
        sl_state_executor_post(self->executor, on_event, event);
    }
    sl_vec_clear(&self->fired);
}

static void
on_change(void *ctx, const char *path, enum sl_tree_change change)
{
    struct localfs *self = ctx;
    sl_watch_table_fire(&self->watches, path, change, &self->fired);
}

/*
 * Requests
 */

static bool
is_write(const struct sl_state_request *request)
{
    return request->kind != SL_STATE_GET && request->kind != SL_STATE_CHILDREN &&
           request->kind != SL_STATE_SYNC;
}

/* Gives a request the failure in the error record. */
static void
set_failure(struct sl_state_request *request, int status)
{
    char text[SL_ERR_MSG_SIZE * 2];
    if (is_write(request)) {
        sl_state_request_set_results(request, status, 0);
    }
    request->status = status;
    sl_free(request->detail);
    request->detail = sl_strdup(sl_err_format(sl_err_last(), text, sizeof(text)));
}

static void
serve_read(struct localfs *self, struct sl_state_request *request)
{
    const char *path = request->ops[0].path;
    bool is_children = request->kind == SL_STATE_CHILDREN;
    if (request->kind == SL_STATE_SYNC) {
        return;
    }
    const struct sl_tree_node *node = sl_tree_find(&self->disk.tree, path);
    if (request->watch_id != 0) {
        sl_watch_table_add(&self->watches, path, is_children, request->watch_id, self);
    }
    if (node == NULL) {
        request->status = SL_ENOTFOUND;
        return;
    }
    sl_tree_stat(node, &request->stat);
    if (is_children) {
        const char **names = sl_tree_children_new(node);
        for (size_t i = 0; i < node->children.count; i++) {
            sl_vec_push(&request->children, sl_strdup(names[i]));
        }
        sl_free(names);
    } else {
        sl_buf_append(&request->data, node->data, node->size);
    }
}

static void
fill_results(struct localfs *self, struct sl_state_request *request,
             const struct sl_tree_effects *effects)
{
    size_t at = 0;
    for (size_t i = 0; i < request->op_count; i++) {
        if (request->ops[i].kind == SL_STATE_CHECK) {
            continue;
        }
        const struct sl_tree_effect *effect = &effects->items[at++];
        if (effect->kind == SL_STATE_CREATE) {
            request->results[i].path = sl_strdup(effect->path);
        } else if (effect->kind == SL_STATE_SET) {
            const struct sl_tree_node *node = sl_tree_find(&self->disk.tree, effect->path);
            if (node != NULL) {
                sl_tree_stat(node, &request->results[i].stat);
            }
        }
    }
}

static void
serve_write(struct localfs *self, struct sl_state_request *request)
{
    if (request->session != self->session) {
        /* Its sender does not know yet that its session is over. */
        sl_err_set(SL_ECLOSED, "the session is over");
        set_failure(request, SL_ECLOSED);
        return;
    }
    struct sl_tree_effects effects = SL_VEC_INIT;
    size_t failed = 0;
    int rc = sl_tree_plan(&self->disk.tree, request->ops, request->op_count, self->session,
                          &effects, &failed);
    sl_state_request_set_results(request, rc, failed);
    if (rc == 0 && effects.count > 0) {
        rc = sl_disk_apply(&self->disk, effects.items, effects.count);
        if (rc != 0) {
            set_failure(request, rc);
        } else {
            fill_results(self, request, &effects);
        }
    }
    sl_tree_effects_destroy(&effects);
}

static void
serve(struct localfs *self, struct sl_state_request *request)
{
    if (is_write(request)) {
        serve_write(self, request);
    } else {
        serve_read(self, request);
    }
}

/* Empties a list of requests whose results are final. */
static void
complete_all(struct localfs *self, struct sl_state_request *first)
{
    while (first != NULL) {
        struct sl_state_request *next = first->next;
        first->next = NULL;
        post_complete(self, first);
        first = next;
    }
}

/* Nothing of these was carried out; the error record says why. */
static void
fail_all(struct localfs *self, struct sl_state_request *first, int status)
{
    for (struct sl_state_request *at = first; at != NULL; at = at->next) {
        sl_buf_clear(&at->data);
        set_failure(at, status);
    }
    complete_all(self, first);
}

/* Catches up without the lock, or with it when what is there looks damaged. */
static int
catch_up(struct localfs *self)
{
    int rc = sl_disk_catch_up(&self->disk);
    if (rc == SL_EPROTO) {
        rc = sl_disk_lock(&self->disk, LOCK_TIMEOUT_MS);
        if (rc == 0) {
            sl_disk_unlock(&self->disk);
        }
    }
    return rc;
}

static void
run_reads(struct localfs *self, struct sl_state_request *first)
{
    int rc = catch_up(self);
    post_fired(self);
    if (rc != 0) {
        fail_all(self, first, rc);
        return;
    }
    for (struct sl_state_request *at = first; at != NULL; at = at->next) {
        serve(self, at);
    }
    complete_all(self, first);
}

/* True while our session is in the state; somebody may have ended it. */
static bool
has_session(const struct localfs *self)
{
    return self->session != 0 &&
           (self->is_reader || sl_map_u64_get(&self->disk.sessions, self->session, NULL));
}

/* Takes requests off the front of *rest as long as they fit into one frame. */
static struct sl_state_request *
serve_batch(struct localfs *self, struct sl_state_request **rest)
{
    struct sl_state_request *first = *rest;
    struct sl_state_request *at = first;
    for (;;) {
        serve(self, at);
        struct sl_state_request *next = at->next;
        if (next == NULL || sl_disk_pending_bytes(&self->disk) > BATCH_BYTES) {
            at->next = NULL;
            *rest = next;
            return first;
        }
        at = next;
    }
}

static void
run_locked(struct localfs *self, struct sl_state_request *rest)
{
    if (self->is_reader) {
        fail_all(self, rest, sl_err_set(SL_EINVAL, "%s was opened for reading only", self->name));
        return;
    }
    int rc = sl_disk_lock(&self->disk, LOCK_TIMEOUT_MS);
    post_fired(self);
    if (rc != 0) {
        fail_all(self, rest, rc);
        return;
    }
    if (!has_session(self)) {
        sl_err_set(SL_ECLOSED, "the session is over");
        fail_all(self, rest, SL_ECLOSED);
        rest = NULL;
    }
    while (rest != NULL) {
        struct sl_state_request *batch = serve_batch(self, &rest);
        rc = sl_disk_commit(&self->disk);
        post_fired(self);
        if (rc != 0) {
            fail_all(self, batch, rc);
        } else {
            complete_all(self, batch);
        }
    }
    sl_disk_unlock(&self->disk);
}

static void
run_requests(struct localfs *self, struct sl_state_request *first)
{
    for (struct sl_state_request *at = first; at != NULL; at = at->next) {
        if (is_write(at)) {
            run_locked(self, first);
            return;
        }
    }
    run_reads(self, first);
}

/*
 * Sessions
 */

static int
begin_session(struct localfs *self)
{
    if (self->is_reader) {
        self->session = READER_SESSION;
        return 0;
    }
    int rc = sl_disk_lock(&self->disk, LOCK_TIMEOUT_MS);
    if (rc != 0) {
        return rc;
    }
    uint64_t session = 0;
    int fd = -1;
    rc = sl_disk_session_open(&self->disk, &session, &fd);
    if (rc == 0) {
        rc = sl_disk_commit(&self->disk);
    }
    sl_disk_unlock(&self->disk);
    if (rc != 0) {
        if (fd >= 0) {
            sl_disk_session_unlink(&self->disk, session);
            close(fd);
        }
        return rc;
    }
    self->session = session;
    self->session_fd = fd;
    return 0;
}

static void
drop_session_file(struct localfs *self)
{
    if (self->session_fd >= 0) {
        sl_disk_session_unlink(&self->disk, self->session);
        close(self->session_fd);
        self->session_fd = -1;
    }
    self->session = 0;
}

/* Somebody ended our session: tell, and begin another. */
static void
check_session(struct localfs *self)
{
    if (self->session != 0 && !has_session(self)) {
        drop_session_file(self);
        sl_watch_table_take(&self->watches, NULL, NULL);
        sl_vec_clear(&self->fired);
        post_link(self, SL_STATE_LINK_EXPIRED, 0, NULL);
    }
    if (self->session == 0) {
        if (begin_session(self) == 0) {
            post_link(self, SL_STATE_LINK_UP, self->session, NULL);
        } else {
            char why[SL_ERR_MSG_SIZE];
            sl_log_warn("state.localfs", "no new session: %s",
                        sl_err_format(sl_err_last(), why, sizeof(why)));
        }
    }
    post_fired(self);
}

static bool
is_any_session_dead(const struct localfs *self)
{
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->disk.sessions, &at)) != NULL;) {
        if (entry->key != self->session && sl_disk_session_is_dead(&self->disk, entry->key)) {
            return true;
        }
    }
    return false;
}

/* Is it ours to look for dead sessions? The lock goes with its process. */
static bool
is_sweeper(struct localfs *self)
{
    if (self->sweep_fd < 0) {
        char *path = sl_asprintf("%s/sweep.lock", self->dir);
        self->sweep_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        sl_free(path);
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (!self->is_sweeper) {
        self->is_sweeper = self->sweep_fd < 0 || fcntl(self->sweep_fd, F_OFD_SETLK, &lock) == 0;
    }
    return self->is_sweeper;
}

/* Ends the sessions whose processes are gone. Sessions begin under the lock, so with the lock a
 * session without an owner is dead. */
static void
bury_dead_sessions(struct localfs *self)
{
    if (self->is_reader || !is_any_session_dead(self) ||
        sl_disk_lock(&self->disk, LOCK_TIMEOUT_MS) != 0) {
        return;
    }
    SL_VEC(uint64_t) dead = SL_VEC_INIT;
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&self->disk.sessions, &at)) != NULL;) {
        if (entry->key != self->session && sl_disk_session_is_dead(&self->disk, entry->key)) {
            sl_vec_push(&dead, entry->key);
        }
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < dead.count; i++) {
        rc = sl_disk_session_close(&self->disk, dead.items[i]);
    }
    if (rc == 0) {
        rc = sl_disk_commit(&self->disk);
    }
    for (size_t i = 0; rc == 0 && i < dead.count; i++) {
        sl_disk_session_unlink(&self->disk, dead.items[i]);
    }
    sl_disk_unlock(&self->disk);
    sl_vec_destroy(&dead);
    if (rc != 0) {
        char why[SL_ERR_MSG_SIZE];
        sl_log_warn("state.localfs", "a dead session stays: %s",
                    sl_err_format(sl_err_last(), why, sizeof(why)));
    }
    post_fired(self);
}

/*
 * inotify
 */

/* Without inotify (a user can run out of it) the thread looks every BLIND_POLL_MS. */
static void
start_inotify(struct localfs *self)
{
    char *log = sl_asprintf("%s/state.log", self->dir);
    char *sessions = sl_asprintf("%s/sessions", self->dir);
    self->log_watch = -1;
    self->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (self->inotify_fd >= 0) {
        self->log_watch = inotify_add_watch(self->inotify_fd, log, IN_MODIFY);
        int dir_watch =
            inotify_add_watch(self->inotify_fd, self->dir, IN_MOVED_TO | IN_CREATE | IN_DELETE);
        int sessions_watch = inotify_add_watch(self->inotify_fd, sessions, IN_CLOSE_WRITE);
        if (self->log_watch < 0 || dir_watch < 0 || sessions_watch < 0) {
            close(self->inotify_fd);
            self->inotify_fd = -1;
        }
    }
    if (self->inotify_fd < 0) {
        sl_log_info("state.localfs", "no inotify (%s), looking every %d ms dir=%s", strerror(errno),
                    BLIND_POLL_MS, self->dir);
    }
    sl_free(log);
    sl_free(sessions);
}

/* Takes the events, which say no more than that there is something to look at. */
static void
drain_inotify(struct localfs *self)
{
    _Alignas(struct inotify_event) char buffer[4096];
    bool is_log_replaced = false;
    ssize_t got;
    while ((got = read(self->inotify_fd, buffer, sizeof(buffer))) > 0) {
        for (char *at = buffer; at < buffer + got;) {
            const struct inotify_event *event = (const void *)at;
            if ((event->mask & IN_CLOSE_WRITE) != 0) {
                self->close_looks = self->is_reader    ? 0
                                    : self->is_sweeper ? CLOSE_LOOKS
                                                       : CLOSE_LOOKS_OTHERS;
            }
            is_log_replaced |= (event->mask & (IN_MOVED_TO | IN_Q_OVERFLOW | IN_CREATE)) != 0;
            at += sizeof(*event) + event->len;
        }
    }
    if (is_log_replaced) {
        char *log = sl_asprintf("%s/state.log", self->dir);
        inotify_rm_watch(self->inotify_fd, self->log_watch);
        self->log_watch = inotify_add_watch(self->inotify_fd, log, IN_MODIFY);
        sl_free(log);
    }
}

/*
 * The thread
 */

static struct sl_state_request *
take_queue(struct localfs *self, bool *is_closing)
{
    pthread_mutex_lock(&self->mutex);
    struct sl_state_request *first = self->queue_first;
    self->queue_first = NULL;
    self->queue_last = &self->queue_first;
    *is_closing = self->is_closing;
    pthread_mutex_unlock(&self->mutex);
    return first;
}

static int
wait_ms(const struct localfs *self)
{
    if (self->close_looks > 0) {
        return CLOSE_LOOK_MS;
    }
    if (self->session == 0) {
        return SESSION_RETRY_MS;
    }
    return self->inotify_fd < 0 ? BLIND_POLL_MS : SWEEP_MS;
}

/* Looks for what others did since the last time. */
static void
look_around(struct localfs *self, bool is_time_to_sweep)
{
    if (catch_up(self) != 0) {
        /* Requests will say what is wrong. */
        return;
    }
    post_fired(self);
    check_session(self);
    if (self->close_looks > 0 || is_time_to_sweep) {
        bool was_sweeper = self->is_sweeper;
        self->close_looks -= self->close_looks > 0;
        self->sweeps += is_time_to_sweep;
        if (!self->is_reader &&
            (is_sweeper(self) || (is_time_to_sweep && self->sweeps % SWEEP_OTHERS == 0))) {
            bury_dead_sessions(self);
        }
        if (self->is_sweeper && !was_sweeper) {
            /* The one whose task it was ends at present. */
            self->close_looks = CLOSE_LOOKS;
        }
    }
}

static void
end_session(struct localfs *self)
{
    if (self->session != 0 && !self->is_reader && sl_disk_lock(&self->disk, LOCK_TIMEOUT_MS) == 0) {
        int rc = sl_disk_session_close(&self->disk, self->session);
        if (rc == 0) {
            rc = sl_disk_commit(&self->disk);
        }
        sl_disk_unlock(&self->disk);
        if (rc != 0) {
            sl_log_warn("state.localfs", "session's end not written: others will notice");
        }
    }
    /* Whoever finds the file unlocked ends the session for us. */
    drop_session_file(self);
}

static void
run(struct localfs *self)
{
    uint64_t next_sweep_ms = 0;
    for (;;) {
        struct pollfd fds[] = {{self->event_fd, POLLIN, 0}, {self->inotify_fd, POLLIN, 0}};
        uint64_t count;
        bool is_closing = false;
        poll(fds, self->inotify_fd >= 0 ? 2 : 1, wait_ms(self));
        if (read(self->event_fd, &count, sizeof(count)) < 0 && errno != EAGAIN) {
            sl_log_warn("state.localfs", "event descriptor: %s", strerror(errno));
        }
        if (self->inotify_fd >= 0 && (fds[1].revents & POLLIN) != 0) {
            drain_inotify(self);
        }
        struct sl_state_request *first = take_queue(self, &is_closing);
        if (first != NULL) {
            run_requests(self, first);
        }
        if (is_closing) {
            return;
        }
        uint64_t now_ms = sl_clock_mono_ms(sl_clock_system());
        bool is_time_to_sweep = now_ms >= next_sweep_ms;
        if (is_time_to_sweep) {
            next_sweep_ms = now_ms + SWEEP_MS;
        }
        if (first == NULL || is_time_to_sweep || self->close_looks > 0 || !has_session(self)) {
            look_around(self, is_time_to_sweep);
        }
    }
}

/* Refuses everything until it is closed. */
static void
run_failed(struct localfs *self)
{
    for (bool is_closing = false; !is_closing;) {
        struct pollfd fd = {self->event_fd, POLLIN, 0};
        uint64_t count;
        poll(&fd, 1, -1);
        if (read(self->event_fd, &count, sizeof(count)) < 0) {
            continue;
        }
        struct sl_state_request *first = take_queue(self, &is_closing);
        sl_err_set(SL_EUNAVAIL, "%s can not be used", self->name);
        fail_all(self, first, SL_EUNAVAIL);
    }
}

static void *
thread_main(void *arg)
{
    struct localfs *self = arg;
    sl_log_set_thread("state-localfs");
    int rc = sl_disk_open(&self->disk, self->dir, on_change, self);
    if (rc == 0) {
        /* Watching begins before the first look, so that nothing falls between. */
        start_inotify(self);
        rc = begin_session(self);
    }
    if (rc == 0) {
        bury_dead_sessions(self);
        post_link(self, SL_STATE_LINK_UP, self->session, NULL);
        run(self);
        end_session(self);
    } else {
        char why[SL_ERR_MSG_SIZE * 2];
        post_link(self, SL_STATE_LINK_FAILED, 0, sl_err_format(sl_err_last(), why, sizeof(why)));
        run_failed(self);
    }
    if (self->inotify_fd >= 0) {
        close(self->inotify_fd);
    }
    if (self->sweep_fd >= 0) {
        close(self->sweep_fd);
    }
    sl_disk_close(&self->disk);
    sl_state_executor_post(self->executor, on_event, event_new(self, EVENT_CLOSED));
    return NULL;
}

static void
wake(struct localfs *self)
{
    uint64_t one = 1;
    while (write(self->event_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

static struct localfs *
localfs_of(struct sl_state_backend *backend)
{
    return sl_container_of(backend, struct localfs, backend);
}

static void
localfs_free(struct localfs *self)
{
    if (self->has_thread) {
        pthread_join(self->thread, NULL);
    }
    if (self->event_fd >= 0) {
        close(self->event_fd);
    }
    sl_watch_table_destroy(&self->watches);
    sl_vec_destroy(&self->fired);
    pthread_mutex_destroy(&self->mutex);
    sl_free(self->name);
    sl_free(self->dir);
    sl_free(self);
}

static void
localfs_open(struct sl_state_backend *backend, const struct sl_state_backend_events *events)
{
    struct localfs *self = localfs_of(backend);
    self->events = *events;
    self->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = self->event_fd < 0 ? errno : pthread_create(&self->thread, NULL, thread_main, self);
    if (rc != 0) {
        post_link(self, SL_STATE_LINK_FAILED, 0, strerror(rc));
        return;
    }
    self->has_thread = true;
}

static void
localfs_submit(struct sl_state_backend *backend, struct sl_state_request *request)
{
    struct localfs *self = localfs_of(backend);
    request->next = NULL;
    pthread_mutex_lock(&self->mutex);
    bool is_first = self->queue_first == NULL;
    *self->queue_last = request;
    self->queue_last = (struct sl_state_request **)&request->next;
    pthread_mutex_unlock(&self->mutex);
    if (is_first) {
        wake(self);
    }
}

static void
localfs_close(struct sl_state_backend *backend, sl_state_task_fn fn, void *arg)
{
    struct localfs *self = localfs_of(backend);
    self->closed_fn = fn;
    self->closed_arg = arg;
    if (!self->has_thread) {
        sl_state_executor_post(self->executor, on_event, event_new(self, EVENT_CLOSED));
        return;
    }
    pthread_mutex_lock(&self->mutex);
    self->is_closing = true;
    pthread_mutex_unlock(&self->mutex);
    wake(self);
}

static uint64_t
localfs_session_timeout(const struct sl_state_backend *backend)
{
    (void)backend;
    return 0;
}

struct sl_state_backend *
sl_localfs_backend_new(const char *dir, const struct sl_state_executor *executor)
{
    struct localfs *self = sl_calloc(1, sizeof(*self));
    self->name = sl_asprintf("localfs:%s", dir);
    self->dir = sl_strdup(dir);
    self->executor = executor;
    self->event_fd = -1;
    self->inotify_fd = -1;
    self->session_fd = -1;
    self->sweep_fd = -1;
    self->queue_last = &self->queue_first;
    pthread_mutex_init(&self->mutex, NULL);
    self->backend = (struct sl_state_backend){
        .name = self->name,
        .open = localfs_open,
        .submit = localfs_submit,
        .close = localfs_close,
        .session_timeout_ms = localfs_session_timeout,
    };
    return &self->backend;
}

struct sl_state_backend *
sl_localfs_reader_new(const char *dir, const struct sl_state_executor *executor)
{
    struct sl_state_backend *backend = sl_localfs_backend_new(dir, executor);
    localfs_of(backend)->is_reader = true;
    return backend;
}

int
sl_localfs_end_session(const char *dir, uint64_t session)
{
    struct sl_disk disk;
    int rc = sl_disk_open(&disk, dir, NULL, NULL);
    if (rc == 0) {
        rc = sl_disk_lock(&disk, LOCK_TIMEOUT_MS);
    }
    if (rc == 0) {
        rc = sl_disk_session_close(&disk, session);
        if (rc == 0) {
            rc = sl_disk_commit(&disk);
        }
        sl_disk_unlock(&disk);
    }
    sl_disk_close(&disk);
    return rc;
}
