/*
 * Submissions, after JStorm's order:
 *
 *     pieces -> checks -> local folder with definition and code -> event on the queue
 *         -> assignment -> all nodes in one transaction -> backup -> topology master started
 *         -> answer
 *
 * Up to the transaction nothing is written but the folder, which goes when the event fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster/master_priv.h"
#include "cluster/package.h"
#include "cluster/runtime_manager.h"

enum {
    UPLOAD_MS = 60000,
    UPLOADS_MAX = 64,
    DEFAULT_LIMIT_MS = 300000,
};

/* Requests in pieces. */

static void
upload_free(struct sl__master_upload *upload)
{
    upload->master->upload_bytes -= upload->total;
    sl_timer_stop(&upload->timer);
    if (sl_list_is_linked(&upload->node)) {
        sl_list_remove(&upload->node);
    }
    sl_buf_destroy(&upload->bytes);
    sl_free(upload);
}

void
sl__master_uploads_clear(struct sl_master *self)
{
    while (!sl_list_is_empty(&self->uploads)) {
        upload_free(sl_container_of(sl_list_first(&self->uploads), struct sl__master_upload, node));
    }
}

static void
upload_late(void *ctx, uint64_t ticket)
{
    (void)ticket;
    upload_free(ctx);
}

static struct sl__master_upload *
upload_find(struct sl_master *self, uint64_t id, size_t *count)
{
    *count = 0;
    sl_list_each(&self->uploads, it)
    {
        struct sl__master_upload *upload = sl_container_of(it, struct sl__master_upload, node);
        (*count)++;
        if (upload->id == id) {
            return upload;
        }
    }
    return NULL;
}

/* The upload that the piece continues, or begins. */
static struct sl__master_upload *
upload_of(struct sl_master *self, const struct sl_master_piece *piece)
{
    size_t count;
    struct sl__master_upload *upload = upload_find(self, piece->id, &count);
    if (upload == NULL && piece->offset == 0) {
        if (count >= UPLOADS_MAX ||
            self->upload_bytes + piece->total > 2 * (uint64_t)SL_MASTER_REQUEST_MAX) {
            sl_err_set(SL_EAGAIN, "the master takes in too much at once");
            return NULL;
        }
        upload = sl_calloc(1, sizeof(*upload));
        upload->master = self;
        upload->id = piece->id;
        upload->total = piece->total;
        self->upload_bytes += piece->total;
        sl_list_push_back(&self->uploads, &upload->node);
    }
    if (upload == NULL || upload->total != piece->total || upload->bytes.size != piece->offset) {
        sl_err_set(SL_EAGAIN, "pieces of the request are missing");
        return NULL;
    }
    sl_timer_start(self->loop, &upload->timer, UPLOAD_MS, upload_late, upload);
    return upload;
}

static void submit(struct sl_master *self, struct sl_rpc_request *request, struct sl_buf *bytes);

void
sl__master_handle_pieces(void *ctx, struct sl_rpc_request *request)
{
    struct sl_master *self = ctx;
    struct sl_arena arena;
    struct sl_master_piece piece;
    size_t size;
    const uint8_t *body = sl_rpc_request_body(request, &size);
    sl_arena_create(&arena, 0, 4 * 1024 * 1024);
    struct sl__master_upload *upload = NULL;
    if (sl_master_piece_decode(body, size, &arena, &piece) == 0) {
        upload = upload_of(self, &piece);
    }
    if (upload == NULL) {
        sl_rpc_refuse_last(request);
    } else {
        sl_buf_append(&upload->bytes, piece.data, piece.size);
        if (upload->bytes.size < upload->total) {
            sl_rpc_reply(request, NULL, 0);
        } else {
            struct sl_buf bytes = upload->bytes;
            uint32_t method = sl_rpc_request_method(request);
            upload->bytes = (struct sl_buf){0};
            upload_free(upload);
            if (method == SL_MASTER_SUBMIT) {
                submit(self, request, &bytes);
            } else {
                sl__master_change_start(self, request, &bytes);
            }
        }
    }
    sl_arena_destroy(&arena);
}

/* The local folder. */

struct folder_job {
    struct sl_master *master;
    struct sl__master_event *event;
    char path[4096];
    int code;
    char reason[SL_REASON_SIZE];
};

static int
make_folders(const char *path)
{
    char part[4096];
    snprintf(part, sizeof(part), "%s", path);
    for (char *at = strchr(part + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            return sl_err_set(SL_ESYS, "make folder %s: %s", part, strerror(errno));
        }
        *at = '/';
    }
    return mkdir(part, 0700) != 0 && errno != EEXIST
               ? sl_err_set(SL_ESYS, "make folder %s: %s", part, strerror(errno))
               : 0;
}

static int
write_file(const char *folder, const char *name, const uint8_t *data, size_t size)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t done = 0;
    while (fd >= 0 && done < size) {
        ssize_t wrote = write(fd, data + done, size - done);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0) {
            break;
        }
        done += (size_t)wrote;
    }
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    return fd < 0 || done < size ? sl_err_set(SL_ESYS, "write %s: %s", path, strerror(error)) : 0;
}

static int
remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

static void
remove_tree(const char *path)
{
    enum { DESCRIPTORS = 8 };
    nftw(path, remove_entry, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

static void
folder_path(const struct sl_master *self, const char *topology_id, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", self->folder, topology_id);
}

static void
remove_work(void *ctx)
{
    struct folder_job *job = ctx;
    remove_tree(job->path);
}

static void
remove_done(void *ctx)
{
    sl_free(ctx);
}

void
sl__master_folder_remove(struct sl_master *self, const char *topology_id)
{
    if (topology_id == NULL || topology_id[0] == '\0') {
        return;
    }
    struct folder_job *job = sl_calloc(1, sizeof(*job));
    folder_path(self, topology_id, job->path, sizeof(job->path));
    sl_loop_work(self->loop, remove_work, remove_done, job);
}

static void
store_work(void *ctx)
{
    struct folder_job *job = ctx;
    const struct sl_master_submit *submission = &job->event->submit;
    job->code = make_folders(job->path);
    if (job->code == 0) {
        job->code = write_file(job->path, "definition", submission->definition,
                               submission->definition_size);
    }
    if (job->code == 0) {
        job->code = write_file(job->path, "package", submission->package, submission->package_size);
    }
    if (job->code != 0) {
        snprintf(job->reason, sizeof(job->reason), "%s", sl_err_last()->msg);
        remove_tree(job->path);
    }
}

static void
store_done(void *ctx)
{
    struct folder_job *job = ctx;
    struct sl__master_event *event = job->event;
    event->is_working = false;
    if (event->master == NULL) {
        remove_tree(job->path);
        sl__master_event_free(event);
    } else if (job->code != 0) {
        sl_list_remove(&event->node);
        sl__master_event_fail(event, job->code, job->reason);
    } else if (event->is_dropped) {
        sl_list_remove(&event->node);
        sl__master_event_fail(event, SL_ETIMEOUT, "its time is over");
    } else {
        sl_list_remove(&event->node);
        sl__master_event_push(event);
    }
    sl_free(job);
}

/* Submissions. */

/* Two of one name at once: the first one goes on. */
static bool
is_pending(const struct sl_master *self, const char *topology)
{
    sl_list_each(&self->storing, it)
    {
        if (strcmp(sl_container_of(it, struct sl__master_event, node)->topology, topology) == 0) {
            return true;
        }
    }
    return sl__master_events_has(self, topology);
}

static int
check_submission(struct sl_master *self, struct sl__master_event *event)
{
    const struct sl_master_submit *submission = &event->submit;
    struct sl_arena arena;
    struct sl_package package;
    if (sl__master_topology_find(self, submission->topology) != NULL) {
        return sl_err_set(SL_EEXIST, "it is running already");
    }
    if (is_pending(self, submission->topology)) {
        return sl_err_set(SL_EEXIST, "another submission of that name is under way");
    }
    sl_arena_create(&arena, 0, 0);
    int rc = sl_package_decode(submission->package, submission->package_size, &arena, &package);
    sl_arena_destroy(&arena);
    return rc;
}

static void
submit(struct sl_master *self, struct sl_rpc_request *request, struct sl_buf *bytes)
{
    char id[SL_NAME_MAX + 32];
    struct sl__master_event *event = sl__master_event_new(self, SL__MASTER_NEW, "", request, 0);
    event->bytes = *bytes;
    int rc = sl_master_submit_decode(event->bytes.data, event->bytes.size, &event->arena,
                                     &event->submit);
    if (rc == 0) {
        rc = check_submission(self, event);
    }
    if (rc != 0) {
        event->request = NULL;
        sl_rpc_refuse_last(request);
        sl__master_event_free(event);
        return;
    }
    snprintf(id, sizeof(id), "%s-%lld", event->submit.topology,
             (long long)sl_clock_wall_ms(sl_loop_clock(self->loop)));
    sl_free(event->topology);
    event->topology = sl_strdup(event->submit.topology);
    sl__master_event_limit(event, event->submit.time_limit_ms > 0 ? event->submit.time_limit_ms
                                                                  : DEFAULT_LIMIT_MS);
    if (event->submit.is_dry_run) {
        sl__master_event_push(event);
        return;
    }
    event->topology_id = sl_strdup(id);
    struct folder_job *job = sl_calloc(1, sizeof(*job));
    job->master = self;
    job->event = event;
    folder_path(self, id, job->path, sizeof(job->path));
    event->is_working = true;
    sl_list_push_back(&self->storing, &event->node);
    sl_loop_work(self->loop, store_work, store_done, job);
}

void
sl__master_new_failed(struct sl__master_event *event)
{
    sl__master_folder_remove(event->master, event->topology_id);
}

/* What is stored. */

static int
encode_execution(const struct sl__master_event *event, struct sl_buf *out)
{
    const struct sl_master_submit *submission = &event->submit;
    struct sl_arena arena;
    struct sl_package package;
    char hash[65];
    sl_arena_create(&arena, 0, 0);
    int rc = sl_package_decode(submission->package, submission->package_size, &arena, &package);
    if (rc == 0) {
        rc = sl_package_hash(&package, hash);
    }
    if (rc == 0) {
        struct sl_execution_state state = {
            .topology = event->topology,
            .topology_id = event->topology_id,
            .submitted_ms = sl_clock_wall_ms(sl_loop_clock(event->master->loop)),
            .user = submission->user,
            .host = submission->host,
            .cwd = submission->cwd,
            .package_hash = hash,
            .scheduler = "standalone",
            .state = SL_TOPOLOGY_STARTING,
            .is_active = submission->is_active,
        };
        sl_execution_state_encode(&state, out);
    }
    sl_arena_destroy(&arena);
    return rc;
}

static void new_store(struct sl__master_event *event);

/* The topology master runs, or its supervisor could not start it: then nothing is left. */

static void
new_taken_back(void *ctx, int status, bool is_found)
{
    struct sl__master_event *event = ctx;
    (void)status;
    (void)is_found;
    sl__master_event_fail(event, event->code, event->reason);
}

static void
new_started(void *ctx, const struct sl_rpc_result *result)
{
    struct sl__master_event *event = ctx;
    struct sl_master *self = event->master;
    struct sl__master_topology *topology = sl__master_topology_find(self, event->topology);
    sl_list_remove(&event->node);
    if (topology == NULL || topology->status == SL_MASTER_KILLED ||
        strcmp(topology->topology_id, event->topology_id) != 0) {
        sl__master_event_fail(event, SL_ENOTFOUND, "it was killed meanwhile");
        return;
    }
    if (result->status == SL_RPC_SUCCESS) {
        sl__master_backup(self, event->topology, &event->plan_bytes);
        sl__master_event_done(event, NULL);
        return;
    }
    event->code = result->code;
    snprintf(event->reason, sizeof(event->reason), "its topology master can not be started: %s",
             result->reason);
    sl__master_topology_remove(self, topology);
    sl__master_remove_nodes(self, event->topology, false, new_taken_back, NULL, event);
}

static void
new_start(struct sl__master_event *event)
{
    struct sl_master *self = event->master;
    struct sl_buf body = {0};
    const struct sl__master_node *node = sl__master_node_find(self, event->plan.master.supervisor);
    /* Others go on: what this one has is taken. */
    sl__master_event_release(event);
    sl_list_push_back(&self->changing, &event->node);
    struct sl_start_master message = {event->topology, event->plan.master.port, true};
    sl_start_master_encode(&message, &body);
    int rc = node == NULL || !node->has_info
                 ? sl_err_set(SL_EUNAVAIL, "supervisor %s is gone", event->plan.master.supervisor)
                 : sl__master_ask(self, node->info.address, SL_ENDPOINT_SUPERVISOR, 0,
                                  SL_SV_START_MASTER, &body, SL__MASTER_CALL_MS, new_started, NULL,
                                  event);
    sl_buf_destroy(&body);
    if (rc != 0) {
        new_started(event, &(struct sl_rpc_result){.status = SL_RPC_UNREACHABLE,
                                                   .code = rc,
                                                   .reason = sl_err_last()->msg});
    }
}

static void
new_swept(void *ctx, int status, bool is_found)
{
    struct sl__master_event *event = ctx;
    (void)is_found;
    if (status != 0) {
        sl__master_event_fail(event, status, "what an earlier one left behind can not be removed");
    } else {
        new_store(event);
    }
}

/* Is there a topology of that name, or only what is left of one? */
static void
new_looked(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__master_event *event = ctx;
    (void)result;
    if (status == SL_ENOTFOUND && !event->is_swept) {
        event->is_swept = true;
        sl__master_remove_nodes(event->master, event->topology, false, new_swept, NULL, event);
    } else {
        sl__master_event_fail(event, SL_EEXIST, "it is running already");
    }
}

static void
new_stored(void *ctx, int status, const struct sl_state_result *result)
{
    struct sl__master_event *event = ctx;
    struct sl_master *self = event->master;
    char path[SL_STATE_PATH_MAX + 1];
    (void)result;
    if (status == SL_EEXIST) {
        sl_state_get(self->options.store, sl_layout_path(path, SL_LAYOUT_TOPOLOGY, event->topology),
                     sl__master_stored, sl__master_call_new(self, new_looked, NULL, event));
        return;
    }
    if (status != 0) {
        char reason[SL_REASON_SIZE];
        snprintf(reason, sizeof(reason), "%s", sl_err_last()->msg);
        sl__master_event_fail(event, status, reason);
        return;
    }
    struct sl__master_topology *topology =
        sl__master_topology_add(self, event->topology, event->topology_id);
    topology->status = event->submit.is_active ? SL_MASTER_ACTIVE : SL_MASTER_INACTIVE;
    sl_buf_append(&topology->schedule, event->submit.schedule, event->submit.schedule_size);
    sl__master_topology_set_starts(topology, &event->plan, NULL);
    sl__master_topology_set_plan(topology, event->plan_bytes.data, event->plan_bytes.size, 0);
    sl__master_topology_watch(topology);
    new_start(event);
}

/* All nodes of the topology, or none. */
static void
new_store(struct sl__master_event *event)
{
    struct sl_master *self = event->master;
    const char *name = event->topology;
    char paths[5][SL_STATE_PATH_MAX + 1];
    struct sl_buf execution = {0};
    struct sl_buf scheduling = {0};
    struct sl_scheduling record = {
        .topology_id = event->topology_id,
        .schedule = event->submit.schedule,
        .schedule_size = event->submit.schedule_size,
        .starts = sl_master_start_times(&event->plan, NULL, NULL, 0,
                                        sl_clock_wall_ms(sl_loop_clock(self->loop)), &event->arena),
        .start_count = (size_t)event->plan.plan.instance_count,
        .timeout_ms = self->options.supervisor_timeout_ms,
    };
    int rc = encode_execution(event, &execution);
    if (rc != 0) {
        char reason[SL_REASON_SIZE];
        snprintf(reason, sizeof(reason), "%s", sl_err_last()->msg);
        sl_buf_destroy(&execution);
        sl__master_event_fail(event, rc, reason);
        return;
    }
    sl_scheduling_encode(&record, &scheduling);
    struct sl_state_op ops[] = {
        sl_state_op_create(sl_layout_path(paths[0], SL_LAYOUT_TOPOLOGY, name),
                           event->submit.definition, event->submit.definition_size, 0),
        sl_state_op_create(sl_layout_path(paths[1], SL_LAYOUT_PLAN, name), event->plan_bytes.data,
                           event->plan_bytes.size, 0),
        sl_state_op_create(sl_layout_path(paths[2], SL_LAYOUT_EXECUTION_STATE, name),
                           execution.data, execution.size, 0),
        sl_state_op_create(sl_layout_path(paths[3], SL_LAYOUT_PACKAGE, name), event->submit.package,
                           event->submit.package_size, 0),
        sl_state_op_create(sl_layout_path(paths[4], SL_LAYOUT_SCHEDULING, name), scheduling.data,
                           scheduling.size, 0),
    };
    sl_state_election_commit(self->election, ops, sizeof(ops) / sizeof(ops[0]), sl__master_stored,
                             sl__master_call_new(self, new_stored, NULL, event));
    sl_buf_destroy(&execution);
    sl_buf_destroy(&scheduling);
}

void
sl__master_new_assigned(struct sl__master_event *event)
{
    if (event->submit.is_dry_run) {
        sl__master_event_done(event, &event->plan_bytes);
    } else {
        new_store(event);
    }
}
