#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/sha256.h"
#include "cluster/runtime_priv.h"
#include "state/lock.h"

/* What submit stores: all of it or nothing, and one of two submissions of a name wins. */

enum { LOCK_MS = 5000 };

int
sl_package_hash(const struct sl_package *package, char hash[65])
{
    struct sl_buf bytes = {0};
    struct sl_package code = *package;
    code.overrides_size = 0;
    code.defaults_size = 0;
    int rc = sl_package_encode(&code, &bytes);
    if (rc == 0) {
        struct sl_sha256 state;
        uint8_t digest[SL_SHA256_SIZE];
        sl_sha256_create(&state);
        sl_sha256_update(&state, bytes.data, bytes.size);
        sl_sha256_finish(&state, digest);
        for (size_t i = 0; i < sizeof(digest); i++) {
            snprintf(hash + 2 * i, 3, "%02x", digest[i]);
        }
    }
    sl_buf_destroy(&bytes);
    return rc;
}

static void
lock_done(void *ctx, int status)
{
    struct sl_runtime *self = ctx;
    self->outcome.is_done = true;
    self->outcome.status = status;
    if (status != 0) {
        snprintf(self->outcome.reason, sizeof(self->outcome.reason), "%s", sl_err_last()->msg);
    }
}

/* What a topology of that name left behind, which does not run. */
static int
submit_clear(struct sl_runtime *self, const char *topology)
{
    static const enum sl_layout_part parts[] = {SL_LAYOUT_PLAN, SL_LAYOUT_EXECUTION_STATE,
                                                SL_LAYOUT_PHYSICAL_PLAN, SL_LAYOUT_PACKAGE};
    char path[SL_STATE_PATH_MAX + 1];
    bool is_found = false;
    int rc = sl__rt_get_part(self, SL_LAYOUT_TOPOLOGY, topology);
    if (rc != SL_ENOTFOUND) {
        return rc == 0 ? sl_err_set(SL_EEXIST, "it is running already") : rc;
    }
    rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        rc = sl__rt_remove_path(self, sl_layout_path(path, parts[i], topology), &is_found);
    }
    if (is_found) {
        sl__rt_tell(self, "what an earlier %s left behind was removed", topology);
    }
    return rc;
}

/* The folders of the parts, which transactions do not make. */
static int
submit_make_folders(struct sl_runtime *self)
{
    static const enum sl_layout_part parts[] = {SL_LAYOUT_TOPOLOGY, SL_LAYOUT_PLAN,
                                                SL_LAYOUT_EXECUTION_STATE};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        sl__rt_begin(self);
        sl_state_create(self->store, sl_layout_folder(parts[i]), NULL, 0, 0, sl__rt_store_done,
                        self);
        rc = sl__rt_end_store_call(self);
        rc = rc == SL_EEXIST ? 0 : rc;
    }
    return rc;
}

static int
submit_store_package(struct sl_runtime *self, const struct sl_runtime_submission *submission)
{
    char path[SL_STATE_PATH_MAX + 1];
    struct sl_buf bytes = {0};
    int rc = sl_package_encode(submission->package, &bytes);
    if (rc == 0) {
        sl__rt_begin(self);
        sl_state_create(self->store, sl_layout_path(path, SL_LAYOUT_PACKAGE, submission->topology),
                        bytes.data, bytes.size, SL_STATE_PARENTS, sl__rt_store_done, self);
        rc = sl__rt_end_store_call(self);
    }
    sl_buf_destroy(&bytes);
    return rc;
}

/* Definition, plan and execution state, all or none. */
static int
submit_store(struct sl_runtime *self, struct sl_state_lock *lock,
             const struct sl_runtime_submission *submission, const char *scheduler)
{
    char paths[3][SL_STATE_PATH_MAX + 1];
    char hash[65];
    char host[256] = "";
    char id[SL_NAME_MAX + 32];
    struct sl_buf plan = {0};
    struct sl_buf execution = {0};
    const char *name = submission->topology;
    int64_t now = sl_clock_wall_ms(sl_loop_clock(self->loop));
    int rc = sl_stored_plan_encode(submission->plan, &plan);
    if (rc == 0) {
        rc = sl_package_hash(submission->package, hash);
    }
    if (rc != 0) {
        goto out;
    }
    gethostname(host, sizeof(host) - 1);
    snprintf(id, sizeof(id), "%s-%lld", name, (long long)now);
    struct sl_execution_state state = {
        .topology = name,
        .topology_id = id,
        .submitted_ms = now,
        .user = submission->user,
        .host = host,
        .cwd = submission->cwd,
        .package_hash = hash,
        .scheduler = scheduler,
        .state = SL_TOPOLOGY_STARTING,
        .is_active = submission->is_active,
    };
    sl_execution_state_encode(&state, &execution);
    struct sl_state_op ops[] = {
        sl_state_op_create(sl_layout_path(paths[0], SL_LAYOUT_TOPOLOGY, name),
                           submission->definition, submission->definition_size, 0),
        sl_state_op_create(sl_layout_path(paths[1], SL_LAYOUT_PLAN, name), plan.data, plan.size, 0),
        sl_state_op_create(sl_layout_path(paths[2], SL_LAYOUT_EXECUTION_STATE, name),
                           execution.data, execution.size, 0),
    };
    sl__rt_begin(self);
    sl_state_lock_commit(lock, ops, sizeof(ops) / sizeof(ops[0]), sl__rt_store_done, self);
    rc = sl__rt_end_store_call(self);
out:
    sl_buf_destroy(&plan);
    sl_buf_destroy(&execution);
    return rc;
}

/* Under the lock, so that one of two submissions of a name wins. */
static int
submit_locked(struct sl_runtime *self, struct sl_state_lock *lock,
              const struct sl_runtime_submission *submission, const char *scheduler)
{
    int rc = submit_clear(self, submission->topology);
    if (rc == 0) {
        rc = submit_make_folders(self);
    }
    if (rc == 0) {
        rc = submit_store_package(self, submission);
    }
    if (rc == 0) {
        rc = submit_store(self, lock, submission, scheduler);
        if (rc != 0) {
            struct sl_err why;
            char path[SL_STATE_PATH_MAX + 1];
            bool is_found = false;
            sl_err_move(&why);
            sl__rt_remove_path(self, sl_layout_path(path, SL_LAYOUT_PACKAGE, submission->topology),
                               &is_found);
            rc = sl_err_set(why.code, "%s", why.msg);
        }
    }
    return rc;
}

int
sl__rt_store_submission(struct sl_runtime *self, const struct sl_runtime_submission *submission,
                        const char *scheduler)
{
    char path[SL_STATE_PATH_MAX + 1];
    struct sl_state_lock *lock =
        sl_state_lock_new(self->store, sl_layout_path(path, SL_LAYOUT_LOCK, submission->topology),
                          "submission", NULL, NULL);
    sl__rt_begin(self);
    sl_state_lock_acquire(lock, LOCK_MS, lock_done, self);
    int rc = sl__rt_end_store_call(self);
    if (rc == 0) {
        rc = submit_locked(self, lock, submission, scheduler);
        struct sl_err why = {0};
        if (rc != 0) {
            sl_err_move(&why);
        }
        sl__rt_begin(self);
        sl_state_lock_release(lock, lock_done, self);
        sl__rt_end_store_call(self);
        if (rc != 0) {
            sl_err_set(rc, "%s", why.msg);
        }
    }
    sl_state_lock_free(lock);
    return rc;
}

/* "containers 2, 3": those that do not run yet. */
static void
list_missing(const struct sl_control_status *status, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < status->container_count && used + 16 < size; i++) {
        if (strcmp(status->containers[i].state, "STARTING") == 0) {
            used += (size_t)snprintf(text + used, size - used, "%s%d", used > 0 ? ", " : "",
                                     status->containers[i].id);
        }
    }
}

/* On a busy machine the first topology master may take long to begin. It is waited for as long as
 * there is somebody who starts it, and something to lead. */
static int
ask_when_led(struct sl_runtime *self, const char *topology, uint64_t timeout_ms)
{
    struct sl_control_request request = {.time_limit_ms = timeout_ms};
    uint64_t until = sl_loop_now_ms(self->loop) + timeout_ms;
    int rc = sl__rt_ask(self, topology, SL_TM_AWAIT, &request, timeout_ms + 1000);
    while (rc == SL_EUNAVAIL && sl__rt_is_hopeful(self, topology)) {
        uint64_t now = sl_loop_now_ms(self->loop);
        if (now >= until) {
            return sl_err_set(SL_ETIMEOUT, "no process leads %s yet; it goes on starting",
                              topology);
        }
        rc = sl__rt_check_running(self, topology);
        if (rc == 0) {
            request.time_limit_ms = until - now;
            rc = sl__rt_ask(self, topology, SL_TM_AWAIT, &request, until - now + 1000);
        }
    }
    return rc;
}

int
sl__rt_await_settled(struct sl_runtime *self, const char *topology, uint64_t timeout_ms)
{
    char missing[256];
    int rc = ask_when_led(self, topology, timeout_ms);
    if (rc != 0 || self->status.is_settled) {
        return rc;
    }
    if (self->status.failure[0] != '\0') {
        return sl_err_set(SL_EUSER, "%s", self->status.failure);
    }
    list_missing(&self->status, missing, sizeof(missing));
    return sl_err_set(SL_ETIMEOUT, "not all tasks run yet (containers %s); it goes on starting",
                      missing);
}
