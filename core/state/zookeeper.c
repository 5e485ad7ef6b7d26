/* Handles of the library, one a session, and the threads that may block for them. Only the files
 * zookeeper*.c know the client library (libzookeeper_mt 3.8). */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <zookeeper/zookeeper_version.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/log.h"
#include "state/zookeeper_priv.h"

enum {
    /* Between attempts to get a handle. */
    RETRY_MS = 1000,
};

static void handle_start(struct sl__zk *self);

/*
 * Helper threads
 */

struct helper {
    struct sl__zk *zk;
    pthread_t thread;
    void (*work)(struct helper *helper);
    void (*done)(struct helper *helper);
    /* Of a close. */
    struct sl__zk_handle *handle;
    /* Of a resolution: "address:port,...", and what did not resolve. */
    char *addresses;
    char *failures;
};

static void zookeeper_finish_close(struct sl__zk *self);

static void
on_helper_done(void *arg)
{
    struct helper *helper = arg;
    struct sl__zk *self = helper->zk;
    pthread_join(helper->thread, NULL);
    self->helpers--;
    helper->done(helper);
    sl_free(helper->addresses);
    sl_free(helper->failures);
    sl_free(helper);
    zookeeper_finish_close(self);
}

static void *
helper_main(void *arg)
{
    struct helper *helper = arg;
    sl_log_set_thread("state-zookeeper");
    helper->work(helper);
    sl_state_executor_post(helper->zk->executor, on_helper_done, helper);
    return NULL;
}

static void
helper_start(struct sl__zk *self, struct sl__zk_handle *handle, void (*work)(struct helper *helper),
             void (*done)(struct helper *helper))
{
    struct helper *helper = sl_calloc(1, sizeof(*helper));
    helper->zk = self;
    helper->handle = handle;
    helper->work = work;
    helper->done = done;
    self->helpers++;
    int rc = pthread_create(&helper->thread, NULL, helper_main, helper);
    /* Without a thread there is no way to go on or to end. */
    sl_assert_eq(rc, 0);
}

static void
close_work(struct helper *helper)
{
    int rc = zookeeper_close(helper->handle->zh);
    if (rc != ZOK) {
        sl_log_verbose("state.zookeeper", "close: %s", zerror(rc));
    }
}

/* Everything that the handle still posted came before this. What was sent right before the close
 * the library forgets at times, without a completion: nobody knows what became of it. */
static void
close_done(struct helper *helper)
{
    struct sl__zk_handle *handle = helper->handle;
    sl_list_each(&handle->notes, it)
    {
        struct sl__zk_note *note = sl_container_of(it, struct sl__zk_note, node);
        sl_list_remove(&note->node);
        note->rc = ZCLOSING;
        if (note->kind == SL__ZK_NOTE_REQUEST) {
            sl__zk_finish_request(note);
        }
        sl__zk_note_free(note);
    }
    sl_free(handle);
}

/* Takes a handle out of use; its remaining completions come while it is closed. */
static void
handle_retire(struct sl__zk_handle *handle)
{
    struct sl__zk *self = handle->zk;
    sl_assert(!sl__zk_is_in_callback);
    handle->is_retired = true;
    if (self->handle == handle) {
        self->handle = NULL;
    }
    helper_start(self, handle, close_work, close_done);
}

static void
append_host(struct sl_buf *out, const struct addrinfo *info, uint16_t port)
{
    char address[NI_MAXHOST];
    if (getnameinfo(info->ai_addr, info->ai_addrlen, address, sizeof(address), NULL, 0,
                    NI_NUMERICHOST) == 0) {
        sl_buf_printf(out, "%s%s:%u", out->size > 0 ? "," : "", address, port);
    }
}

/* Host names by us, one by one: the library refuses all of them when one is bad. */
static void
resolve_work(struct helper *helper)
{
    const struct sl_state_url *url = &helper->zk->url;
    struct sl_buf addresses = {0};
    struct sl_buf failures = {0};
    for (size_t i = 0; i < url->host_count; i++) {
        const struct sl_state_host *host = &url->hosts[i];
        struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
        struct addrinfo *found = NULL;
        int rc = getaddrinfo(host->name, NULL, &hints, &found);
        for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
            append_host(&addresses, at, host->port);
        }
        if (rc != 0) {
            sl_buf_printf(&failures, "%s%s: %s", failures.size > 0 ? "; " : "", host->name,
                          gai_strerror(rc));
        } else {
            freeaddrinfo(found);
        }
    }
    if (addresses.size > 0) {
        helper->addresses = sl_strdup(sl_buf_str(&addresses));
    }
    if (failures.size > 0) {
        helper->failures = sl_strdup(sl_buf_str(&failures));
    }
    sl_buf_destroy(&addresses);
    sl_buf_destroy(&failures);
}

/*
 * Handles
 */

static void
on_retry(void *arg)
{
    struct sl__zk *self = arg;
    self->retry_timer = 0;
    handle_start(self);
}

static void
retry_later(struct sl__zk *self, const char *reason)
{
    self->events.link(self->events.ctx, SL_STATE_LINK_DOWN, 0, reason);
    self->retry_timer = sl_state_executor_timer_start(self->executor, RETRY_MS, on_retry, self);
}

static void
on_auth(int rc, const void *data)
{
    (void)data;
    sl__zk_is_in_callback = true;
    if (rc != ZOK) {
        sl_log_warn("state.zookeeper", "digest: %s", zerror(rc));
    }
}

static void
on_library_log(const char *message)
{
    sl_log_verbose("state.zookeeper", "%s", message);
}

static void
handle_open(struct sl__zk *self, const char *addresses)
{
    struct sl__zk_handle *handle = sl_calloc(1, sizeof(*handle));
    handle->zk = self;
    sl_list_create(&handle->notes);
    handle->timeout_ms = (int)self->session_timeout_ms;
    /* Only where it is read: its threads write the lines into one buffer, unguarded. Never at debug
     * level: they use freed memory there (ZOOKEEPER-4809). */
    bool is_read = sl_log_is_enabled("state.zookeeper", SL_LOG_VERBOSE);
    zoo_set_debug_level(is_read ? ZOO_LOG_LEVEL_WARN : (ZooLogLevel)0);
    self->handle = handle;
    handle->zh = zookeeper_init2(addresses, sl__zk_on_watcher, (int)self->session_timeout_ms, NULL,
                                 handle, ZOO_NO_LOG_CLIENTENV, on_library_log);
    sl__zk_mark_descriptors();
    if (handle->zh == NULL) {
        char *reason = sl_asprintf("%s: %s", self->name, strerror(errno));
        self->handle = NULL;
        sl_free(handle);
        retry_later(self, reason);
        sl_free(reason);
        return;
    }
    if (self->digest != NULL) {
        int rc = zoo_add_auth(handle->zh, "digest", self->digest, (int)strlen(self->digest),
                              on_auth, NULL);
        if (rc != ZOK) {
            sl_log_warn("state.zookeeper", "digest: %s", zerror(rc));
        }
    }
}

static void
resolve_done(struct helper *helper)
{
    struct sl__zk *self = helper->zk;
    if (self->is_closing) {
        return;
    }
    if (helper->failures != NULL) {
        sl_log_warn("state.zookeeper", "%s: %s", self->name, helper->failures);
    }
    if (helper->addresses == NULL) {
        char *reason = sl_asprintf("%s: %s", self->name, helper->failures);
        retry_later(self, reason);
        sl_free(reason);
        return;
    }
    handle_open(self, helper->addresses);
}

static void
handle_start(struct sl__zk *self)
{
    helper_start(self, NULL, resolve_work, resolve_done);
}

static void
on_session(struct sl__zk_note *note)
{
    struct sl__zk_handle *handle = note->handle;
    struct sl__zk *self = handle->zk;
    if (handle->is_retired || self->has_failed) {
        return;
    }
    if (note->state == ZOO_CONNECTED_STATE) {
        handle->is_connected = true;
        handle->session = note->session;
        handle->timeout_ms = note->timeout_ms;
        if (handle->setup == SL__ZK_SETUP_DONE) {
            sl__zk_root_done(handle);
        } else {
            sl__zk_root_start(handle);
        }
    } else if (note->state == ZOO_EXPIRED_SESSION_STATE) {
        handle_retire(handle);
        self->events.link(self->events.ctx, SL_STATE_LINK_EXPIRED, 0, NULL);
        if (!self->is_closing) {
            handle_start(self);
        }
    } else if (note->state == ZOO_AUTH_FAILED_STATE) {
        sl__zk_root_refused(handle, ZNOAUTH);
    } else if (handle->is_connected) {
        handle->is_connected = false;
        self->events.link(self->events.ctx, SL_STATE_LINK_DOWN, 0, NULL);
    }
}

void
sl__zk_on_note(void *arg)
{
    struct sl__zk_note *note = arg;
    struct sl__zk *self = note->handle->zk;
    switch (note->kind) {
    case SL__ZK_NOTE_SESSION:
        on_session(note);
        break;
    case SL__ZK_NOTE_WATCH:
        if (!note->handle->is_retired) {
            self->events.watch(self->events.ctx, note->watch_id);
        }
        break;
    case SL__ZK_NOTE_SETUP:
        sl__zk_on_root(note);
        break;
    case SL__ZK_NOTE_REQUEST:
        if (sl__zk_arm_missing(note)) {
            return;
        }
        sl__zk_finish_request(note);
        break;
    }
    if (note->kind == SL__ZK_NOTE_REQUEST || note->kind == SL__ZK_NOTE_SETUP) {
        sl_list_remove(&note->node);
    }
    sl__zk_note_free(note);
}

/*
 * The backend
 */

static void
zookeeper_open(struct sl_state_backend *backend, const struct sl_state_backend_events *events)
{
    struct sl__zk *self = sl_container_of(backend, struct sl__zk, backend);
    self->events = *events;
    handle_start(self);
}

/* The end, once no helper is left that could come back. */
static void
zookeeper_finish_close(struct sl__zk *self)
{
    if (!self->is_closing || self->helpers > 0) {
        return;
    }
    sl_state_task_fn fn = self->closed_fn;
    void *arg = self->closed_arg;
    sl_free(self->name);
    sl_free(self->root);
    if (self->digest != NULL) {
        explicit_bzero(self->digest, strlen(self->digest));
        sl_free(self->digest);
    }
    sl_free(self);
    fn(arg);
}

static void
on_close_without_helper(void *arg)
{
    zookeeper_finish_close(arg);
}

static void
zookeeper_backend_close(struct sl_state_backend *backend, sl_state_task_fn fn, void *arg)
{
    struct sl__zk *self = sl_container_of(backend, struct sl__zk, backend);
    self->is_closing = true;
    self->closed_fn = fn;
    self->closed_arg = arg;
    sl_state_executor_timer_stop(self->executor, &self->retry_timer);
    if (self->handle != NULL) {
        handle_retire(self->handle);
    } else if (self->helpers == 0) {
        sl_state_executor_post(self->executor, on_close_without_helper, self);
    }
}

static uint64_t
zookeeper_session_timeout(const struct sl_state_backend *backend)
{
    const struct sl__zk *self = sl_container_of(backend, const struct sl__zk, backend);
    return self->handle != NULL ? (uint64_t)self->handle->timeout_ms : self->session_timeout_ms;
}

static char *
name_dup(const struct sl_state_url *url)
{
    struct sl_buf text = {0};
    sl_buf_append_str(&text, "zookeeper at ");
    for (size_t i = 0; i < url->host_count; i++) {
        sl_buf_printf(&text, "%s%s:%u", i > 0 ? "," : "", url->hosts[i].name, url->hosts[i].port);
    }
    char *name = sl_strdup(sl_buf_str(&text));
    sl_buf_destroy(&text);
    return name;
}

struct sl_state_backend *
sl_zookeeper_backend_new(const struct sl_state_url *url, const struct sl_state_executor *executor,
                         const struct sl_zookeeper_options *options)
{
    struct sl__zk *self = sl_calloc(1, sizeof(*self));
    sl_assert_eq(url->scheme, SL_STATE_ZOOKEEPER);
    self->url = *url;
    self->name = name_dup(url);
    self->root = sl_strdup(url->path);
    self->executor = executor;
    self->session_timeout_ms = options != NULL && options->session_timeout_ms != 0
                                   ? options->session_timeout_ms
                                   : SL_ZOOKEEPER_SESSION_MS;
    if (options != NULL && options->digest != NULL) {
        self->digest = sl_strdup(options->digest);
    }
    self->backend = (struct sl_state_backend){
        .name = self->name,
        .open = zookeeper_open,
        .submit = sl__zk_submit,
        .close = zookeeper_backend_close,
        .session_timeout_ms = zookeeper_session_timeout,
    };
    return &self->backend;
}

int
sl_zookeeper_client_id(const struct sl_state_backend *backend, int64_t *id, char password[16])
{
    const struct sl__zk *self = sl_container_of(backend, const struct sl__zk, backend);
    if (self->handle == NULL || !self->handle->is_connected) {
        return sl_err_set(SL_ECLOSED, "no session");
    }
    const clientid_t *client = zoo_client_id(self->handle->zh);
    *id = client->client_id;
    memcpy(password, client->passwd, sizeof(client->passwd));
    return 0;
}

const char *
sl_zookeeper_client_version(void)
{
    return ZOO_VERSION;
}
