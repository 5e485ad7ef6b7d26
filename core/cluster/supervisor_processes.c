#include "cluster/supervisor_processes.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/text.h"
#include "base/vec.h"
#include "cluster/local_processes.h"
#include "cluster/supervisor_file.h"

enum {
    PATH_SIZE = 4096,
    ARGUMENTS_MAX = 256,
    /* Before the file is written again after a write that failed. */
    FILE_RETRY_MS = 5000,
};

struct stop_waiter {
    sl_loop_fn fn;
    void *arg;
};

/* A worker (allocation is not 0) or a topology master. */
struct kept {
    struct sl_supervisor_processes *owner;
    struct sl_list_node node;
    char topology[SL_NAME_MAX + 1];
    uint32_t port;
    uint64_t allocation;
    int32_t container;
    char *cwd;
    uint64_t start_time;
    struct sl_kept_process *process;
    SL_VEC(struct stop_waiter) waiters;
};

struct sl_supervisor_processes {
    struct sl_supervisor_processes_options options;
    struct sl_loop *loop;
    char *program;
    char *state_url;
    char *id;
    char *host;
    char *logs;
    char *path;
    char boot_id[SL_BOOT_ID_SIZE];
    struct sl_list list;
    bool is_dirty;
    struct sl_timer save_timer;
    struct stop_waiter all_stopped;
};

static char *
copy(const char *text)
{
    return text != NULL ? sl_strdup(text) : NULL;
}

struct sl_supervisor_processes *
sl_supervisor_processes_new(const struct sl_supervisor_processes_options *options)
{
    struct sl_supervisor_processes *self = sl_calloc(1, sizeof(*self));
    const struct sl_supervisor_program *program = &options->program;
    char path[PATH_SIZE];
    self->options = *options;
    self->loop = options->loop;
    self->program = sl_strdup(program->program);
    self->state_url = sl_strdup(program->state_url);
    self->id = sl_strdup(program->id);
    self->host = sl_strdup(program->host);
    self->logs = sl_strdup(program->logs);
    snprintf(path, sizeof(path), "%s/processes", program->folder);
    self->path = sl_strdup(path);
    snprintf(self->boot_id, sizeof(self->boot_id), "%s", options->boot_id);
    sl_list_create(&self->list);
    if (sl_make_folders(program->folder) != 0) {
        sl_log_warn("cluster", "processes will not be remembered: %s", sl_err_last()->msg);
    }
    return self;
}

static void
kept_free(struct kept *kept)
{
    sl_list_remove(&kept->node);
    sl_kept_process_free(kept->process);
    sl_vec_destroy(&kept->waiters);
    sl_free(kept->cwd);
    sl_free(kept);
}

void
sl_supervisor_processes_free(struct sl_supervisor_processes *self)
{
    if (self == NULL) {
        return;
    }
    sl_supervisor_processes_save(self);
    sl_timer_stop(&self->save_timer);
    sl_list_each(&self->list, it)
    {
        kept_free(sl_container_of(it, struct kept, node));
    }
    sl_free(self->program);
    sl_free(self->state_url);
    sl_free(self->id);
    sl_free(self->host);
    sl_free(self->logs);
    sl_free(self->path);
    sl_free(self);
}

/* The file. */

static void
save_timer_fired(void *ctx, uint64_t ticket)
{
    (void)ticket;
    sl_supervisor_processes_save(ctx);
}

void
sl_supervisor_processes_save(struct sl_supervisor_processes *self)
{
    struct sl_buf content = {0};
    if (!self->is_dirty) {
        return;
    }
    sl_list_each(&self->list, it)
    {
        const struct kept *kept = sl_container_of(it, struct kept, node);
        struct sl_supervisor_record record = {
            .is_master = kept->allocation == 0,
            .pid = sl_kept_process_pid(kept->process),
            .start_time = kept->start_time,
            .topology = kept->topology,
            .port = kept->port,
            .allocation = kept->allocation,
            .container = kept->container,
            .restarts = sl_kept_process_restarts(kept->process),
            .cwd = kept->cwd,
        };
        if (record.pid != 0) {
            sl_supervisor_record_encode(&record, self->boot_id, &content);
        }
    }
    self->is_dirty = sl_supervisor_file_write(self->path, &content) != 0;
    sl_buf_destroy(&content);
    if (self->is_dirty) {
        sl_log_warn("cluster", "%s", sl_err_last()->msg);
        sl_timer_start(self->loop, &self->save_timer, FILE_RETRY_MS, save_timer_fired, self);
    }
}

/* At the end of this turn: what changes together is written once. */
static void
changed(struct sl_supervisor_processes *self)
{
    if (!self->is_dirty) {
        self->is_dirty = true;
        sl_timer_start(self->loop, &self->save_timer, 0, save_timer_fired, self);
    }
}

/* Listeners. */

static void
fill_state(const struct kept *kept, const char *text, struct sl_slot_worker *state)
{
    *state = (struct sl_slot_worker){
        .resource = kept->owner->id,
        .topology = kept->topology,
        .allocation = kept->allocation,
        .container = kept->container,
        .pid = (uint64_t)sl_kept_process_pid(kept->process),
        .restarts = sl_kept_process_restarts(kept->process),
        .text = text,
    };
}

static void
tell_state(const struct kept *kept, const char *text)
{
    const struct sl_supervisor_processes *self = kept->owner;
    struct sl_slot_worker state;
    if (kept->allocation != 0) {
        fill_state(kept, text, &state);
        self->options.on_worker(self->options.ctx, &state);
    }
}

static void
tell_master_ended(const struct kept *kept, const char *text, bool is_for_good)
{
    const struct sl_supervisor_processes *self = kept->owner;
    if (kept->allocation == 0) {
        self->options.on_master_ended(self->options.ctx, kept->topology, text, is_for_good);
    }
}

static void
on_started(void *ctx)
{
    struct kept *kept = ctx;
    kept->start_time = kept->owner->options.process_start(sl_kept_process_pid(kept->process));
    changed(kept->owner);
    tell_state(kept, "");
}

static void
on_ended(void *ctx, const char *text)
{
    struct kept *kept = ctx;
    if (kept->allocation != 0) {
        sl_log_info("cluster", "container %d of %s ended: %s", kept->container, kept->topology,
                    text);
    } else {
        sl_log_info("cluster", "the topology master of %s ended: %s", kept->topology, text);
    }
    changed(kept->owner);
    tell_state(kept, text);
    tell_master_ended(kept, text, false);
}

static void
on_given_up(void *ctx, const char *text)
{
    struct kept *kept = ctx;
    struct sl_supervisor_processes *self = kept->owner;
    changed(self);
    tell_state(kept, text);
    self->options.on_worker_given_up(self->options.ctx, kept->allocation, text);
}

static void
on_stopped(void *ctx)
{
    struct kept *kept = ctx;
    struct sl_supervisor_processes *self = kept->owner;
    uint64_t allocation = kept->allocation;
    tell_state(kept, "");
    tell_master_ended(kept, "exit code 0", true);
    for (size_t i = 0; i < kept->waiters.count; i++) {
        kept->waiters.items[i].fn(kept->waiters.items[i].arg);
    }
    kept_free(kept);
    changed(self);
    if (allocation != 0) {
        self->options.on_worker_stopped(self->options.ctx, allocation);
    }
    if (self->all_stopped.fn != NULL && sl_list_is_empty(&self->list)) {
        self->all_stopped.fn(self->all_stopped.arg);
    }
}

/* A process, not started yet. */
static struct kept *
kept_new(struct sl_supervisor_processes *self, const struct sl_supervisor_record *record)
{
    struct kept *kept = sl_calloc(1, sizeof(*kept));
    char folder[PATH_SIZE / 2];
    char log[PATH_SIZE];
    char label[SL_NAME_MAX + 64];
    char port[16];
    char container[16];
    const char *argv[ARGUMENTS_MAX + 1];
    const char *const *more = self->options.program.arguments;
    size_t count = 0;
    snprintf(folder, sizeof(folder), "%s/%s", self->logs, record->topology);
    snprintf(port, sizeof(port), "%u", record->port);
    snprintf(container, sizeof(container), "%d", record->container);
    argv[count++] = self->program;
    argv[count++] = record->is_master ? SL_ROLE_TOPOLOGY_MASTER : SL_ROLE_WORKER;
    argv[count++] = "--state";
    argv[count++] = self->state_url;
    argv[count++] = "--topology";
    argv[count++] = record->topology;
    if (record->is_master) {
        snprintf(log, sizeof(log), "%s/" SL_ROLE_TOPOLOGY_MASTER ".log", folder);
        snprintf(label, sizeof(label), "the topology master of %s", record->topology);
        argv[count++] = "--logs";
        argv[count++] = folder;
    } else {
        snprintf(log, sizeof(log), "%s/container-%d.log", folder, record->container);
        snprintf(label, sizeof(label), "container %d of %s", record->container, record->topology);
        argv[count++] = "--container";
        argv[count++] = container;
    }
    argv[count++] = "--supervisor";
    argv[count++] = self->id;
    argv[count++] = "--port";
    argv[count++] = port;
    argv[count++] = "--host";
    argv[count++] = self->host;
    for (size_t i = 0; more != NULL && more[i] != NULL && count < ARGUMENTS_MAX; i++) {
        argv[count++] = more[i];
    }
    argv[count] = NULL;
    if (sl_make_folders(folder) != 0) {
        sl_log_warn("cluster", "no logs of %s: %s", record->topology, sl_err_last()->msg);
    }
    struct sl_kept_process_options options = {
        .loop = self->loop,
        .program = self->program,
        .argv = argv,
        .cwd = record->cwd != NULL && record->cwd[0] != '\0' ? record->cwd : "/",
        .log = log,
        .label = label,
        .failures_max = record->is_master ? 0 : SL_SUPERVISOR_FAILURES_MAX,
        .ends_with_zero = record->is_master,
        .restarts = record->restarts,
        .adopter = self->options.adopter,
        .listener = {on_started, on_ended, on_given_up, on_stopped, kept},
    };
    kept->owner = self;
    snprintf(kept->topology, sizeof(kept->topology), "%s", record->topology);
    kept->port = record->port;
    kept->allocation = record->allocation;
    kept->container = record->container;
    kept->cwd = copy(record->cwd);
    kept->process = sl_kept_process_new(&options);
    sl_list_push_back(&self->list, &kept->node);
    return kept;
}

static struct kept *
find_worker(const struct sl_supervisor_processes *self, uint64_t allocation)
{
    sl_list_each(&self->list, it)
    {
        struct kept *kept = sl_container_of(it, struct kept, node);
        if (allocation != 0 && kept->allocation == allocation) {
            return kept;
        }
    }
    return NULL;
}

static struct kept *
find_master(const struct sl_supervisor_processes *self, const char *topology)
{
    sl_list_each(&self->list, it)
    {
        struct kept *kept = sl_container_of(it, struct kept, node);
        if (kept->allocation == 0 && strcmp(kept->topology, topology) == 0) {
            return kept;
        }
    }
    return NULL;
}

/* Taking over. */

static bool
is_known_pid(const struct sl_supervisor_processes *self, int64_t pid)
{
    sl_list_each(&self->list, it)
    {
        if (sl_kept_process_pid(sl_container_of(it, struct kept, node)->process) == pid) {
            return true;
        }
    }
    return false;
}

/* A process that the file does not name: nobody would ever end it, and its slot looks free. */
static void
end_unknown(void *ctx, int64_t pid)
{
    struct sl_supervisor_processes *self = ctx;
    const struct sl_adopter *adopter =
        self->options.adopter != NULL ? self->options.adopter : sl_adopter_system();
    if (!is_known_pid(self, pid)) {
        sl_log_warn("cluster", "process %lld of an earlier supervisor is not remembered and ends",
                    (long long)pid);
        adopter->kill(adopter->ctx, pid, SIGKILL);
    }
}

/* A worker that has ended is asked for again by its topology master, if that is there and still
 * wants it. Of a topology master nobody else takes care. */
static void
take_over(struct sl_supervisor_processes *self, const struct sl_supervisor_record *record,
          bool (*has_slot)(void *ctx, const char *topology, uint32_t port, uint64_t allocation),
          void *ctx)
{
    struct kept *kept = kept_new(self, record);
    bool is_there = self->options.process_start(record->pid) == record->start_time &&
                    sl_kept_process_adopt(kept->process, record->pid) == 0;
    /* The process may have ended, and its id be another's, before it was watched. */
    if (is_there && self->options.process_start(record->pid) == record->start_time &&
        (record->is_master || has_slot(ctx, record->topology, record->port, record->allocation))) {
        kept->start_time = record->start_time;
        sl_log_info("cluster", "process %lld of %s is taken over", (long long)record->pid,
                    record->topology);
        return;
    }
    kept_free(kept);
    if (record->is_master) {
        sl_kept_process_start(kept_new(self, record)->process);
    }
}

void
sl_supervisor_processes_take_over(struct sl_supervisor_processes *self,
                                  bool (*has_slot)(void *ctx, const char *topology, uint32_t port,
                                                   uint64_t allocation),
                                  void *ctx)
{
    struct sl_buf content = {0};
    struct sl_arena arena;
    struct sl_supervisor_record *records;
    size_t damaged;
    sl_arena_create(&arena, 0, 0);
    sl_supervisor_file_read(self->path, &content);
    size_t count = sl_supervisor_records_decode(content.data, content.size, self->boot_id, &arena,
                                                &records, &damaged);
    if (damaged > 0) {
        sl_log_warn("cluster", "%s: %zu lines can not be read and are dropped", self->path,
                    damaged);
    }
    for (size_t i = 0; i < count; i++) {
        take_over(self, &records[i], has_slot, ctx);
    }
    if (self->options.adopter == NULL) {
        sl_local_processes_of_supervisor(self->state_url, self->id, end_unknown, self);
    }
    self->is_dirty = true;
    sl_supervisor_processes_save(self);
    sl_buf_destroy(&content);
    sl_arena_destroy(&arena);
}

/* Commands. */

int
sl_supervisor_processes_start_worker(struct sl_supervisor_processes *self, uint32_t port,
                                     const struct sl_worker_command *command)
{
    const struct kept *known = find_worker(self, command->allocation);
    if (known != NULL &&
        (known->container != command->container || sl_kept_process_is_stopping(known->process))) {
        return sl_err_set(SL_ECONFLICT, "the slot has container %d", known->container);
    }
    if (known == NULL) {
        struct sl_supervisor_record record = {.topology = command->topology,
                                              .port = port,
                                              .allocation = command->allocation,
                                              .container = command->container,
                                              .cwd = command->cwd};
        sl_kept_process_start(kept_new(self, &record)->process);
    }
    return 0;
}

int
sl_supervisor_processes_restart_worker(struct sl_supervisor_processes *self, uint64_t allocation)
{
    struct kept *kept = find_worker(self, allocation);
    if (kept == NULL) {
        return sl_err_set(SL_ENOTFOUND, "no worker is in the slot");
    }
    sl_kept_process_restart(kept->process);
    return 0;
}

static bool
stop(struct kept *kept, sl_loop_fn done, void *arg)
{
    if (kept == NULL) {
        return false;
    }
    if (done != NULL) {
        struct stop_waiter waiter = {done, arg};
        sl_vec_push(&kept->waiters, waiter);
    }
    sl_kept_process_stop(kept->process);
    return true;
}

bool
sl_supervisor_processes_stop_worker(struct sl_supervisor_processes *self, uint64_t allocation,
                                    sl_loop_fn done, void *arg)
{
    return stop(find_worker(self, allocation), done, arg);
}

bool
sl_supervisor_processes_worker(const struct sl_supervisor_processes *self, uint64_t allocation,
                               struct sl_slot_worker *state)
{
    const struct kept *kept = find_worker(self, allocation);
    if (kept != NULL) {
        fill_state(kept, "", state);
    }
    return kept != NULL;
}

bool
sl_supervisor_processes_next(const struct sl_supervisor_processes *self, const char *topology,
                             size_t *at, struct sl_slot_worker *state)
{
    size_t place = 0;
    sl_list_each(&self->list, it)
    {
        const struct kept *kept = sl_container_of(it, struct kept, node);
        if (place++ >= *at && kept->allocation != 0 &&
            (topology == NULL || strcmp(kept->topology, topology) == 0)) {
            *at = place;
            fill_state(kept, "", state);
            return true;
        }
    }
    return false;
}

int
sl_supervisor_processes_start_master(struct sl_supervisor_processes *self, const char *topology,
                                     uint32_t port)
{
    const struct kept *known = find_master(self, topology);
    if (known != NULL) {
        return sl_kept_process_is_stopping(known->process)
                   ? sl_err_set(SL_EAGAIN, "the topology master of %s ends", topology)
                   : 0;
    }
    struct sl_supervisor_record record = {.is_master = true, .topology = topology, .port = port};
    sl_kept_process_start(kept_new(self, &record)->process);
    return 0;
}

bool
sl_supervisor_processes_restart_master(struct sl_supervisor_processes *self, const char *topology)
{
    struct kept *known = find_master(self, topology);
    if (known == NULL || sl_kept_process_is_stopping(known->process)) {
        return false;
    }
    sl_log_warn("cluster", "the topology master of %s does not lead and is ended", topology);
    sl_kept_process_restart(known->process);
    return true;
}

bool
sl_supervisor_processes_stop_master(struct sl_supervisor_processes *self, const char *topology,
                                    sl_loop_fn done, void *arg)
{
    return stop(find_master(self, topology), done, arg);
}

static void
nothing_runs(void *ctx)
{
    struct sl_supervisor_processes *self = ctx;
    if (sl_list_is_empty(&self->list)) {
        self->all_stopped.fn(self->all_stopped.arg);
    }
}

void
sl_supervisor_processes_stop_all(struct sl_supervisor_processes *self, sl_loop_fn done, void *arg)
{
    self->all_stopped = (struct stop_waiter){done, arg};
    sl_list_each(&self->list, it)
    {
        sl_kept_process_stop(sl_container_of(it, struct kept, node)->process);
    }
    sl_loop_post(self->loop, nothing_runs, self);
}
