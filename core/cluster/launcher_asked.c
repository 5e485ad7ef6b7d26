#include "cluster/launcher_asked.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "cluster/control_messages.h"

/* A command with its answer. It belongs to the queue, then to the thread that answers it, then to
 * the loop. */
struct asked_job {
    struct sl_list_node node;
    struct sl_launcher_asked *launcher;
    struct sl_launcher_command command;
    struct sl_packing_container *containers;
    struct sl_packing_container *old_containers;
    char *topology;
    char *cwd;
    char *user;
    int code;
    char text[SL_LAUNCHER_TEXT_MAX];
    int32_t *ids;
};

/* What the launcher tells by itself. */
struct asked_note {
    struct sl_list_node node;
    struct sl_launcher_asked *launcher;
    int32_t id;
    char text[SL_LAUNCHER_TEXT_MAX];
};

/* Steps of an update that the topology master asks for again and again until they are over. */
enum asked_step {
    STEP_NONE,
    STEP_OPEN,
    STEP_OVER,
};

struct sl_launcher_asked {
    struct sl_launcher_abilities abilities;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* Under the lock. */
    struct sl_list jobs;
    struct asked_job *answering;
    struct sl_list answers;
    struct sl_list notes;
    bool is_posted;
    bool is_closed;
    /* The loop's alone. */
    struct sl_loop *loop;
    struct sl_launcher_listener listener;
    struct sl_packing_container *scheduled;
    int32_t scheduled_count;
    struct sl_timer retry;
    uint64_t retry_ms;
    enum asked_step update_step;
    enum asked_step add_step;
    /* Of the step that is open or over; of one that was given up, nothing. */
    struct asked_job *update;
    struct asked_job *add;
};

static struct sl_packing_container *
copy_containers(const struct sl_packing_container *containers, int32_t count)
{
    struct sl_packing_container *copy = sl_calloc((size_t)count + 1, sizeof(*copy));
    if (count > 0) {
        memcpy(copy, containers, (size_t)count * sizeof(*copy));
    }
    return copy;
}

static void
job_free(struct asked_job *job)
{
    if (job != NULL) {
        sl_free(job->containers);
        sl_free(job->old_containers);
        sl_free(job->topology);
        sl_free(job->cwd);
        sl_free(job->user);
        sl_free(job->ids);
        sl_free(job);
    }
}

static struct asked_job *
job_new(struct sl_launcher_asked *self, enum sl_launcher_command_kind kind,
        const struct sl_packing_container *containers, int32_t count)
{
    struct asked_job *job = sl_calloc(1, sizeof(*job));
    job->launcher = self;
    job->containers = copy_containers(containers, count);
    job->command.kind = kind;
    job->command.containers = job->containers;
    job->command.container_count = count;
    return job;
}

static void
job_send(struct asked_job *job)
{
    struct sl_launcher_asked *self = job->launcher;
    pthread_mutex_lock(&self->lock);
    sl_list_push_back(&self->jobs, &job->node);
    pthread_cond_signal(&self->wake);
    pthread_mutex_unlock(&self->lock);
}

/* Containers of these numbers without sizes. */
static struct asked_job *
job_of_ids(struct sl_launcher_asked *self, enum sl_launcher_command_kind kind, const int32_t *ids,
           size_t count)
{
    struct sl_packing_container *containers = sl_calloc(count + 1, sizeof(*containers));
    for (size_t i = 0; i < count; i++) {
        containers[i].id = ids[i];
    }
    struct asked_job *job = job_new(self, kind, containers, (int32_t)count);
    sl_free(containers);
    return job;
}

/* What answers come to, on the loop. */

static void
schedule_again(void *ctx, uint64_t ticket)
{
    struct sl_launcher_asked *self = ctx;
    (void)ticket;
    job_send(job_new(self, SL_LAUNCHER_SCHEDULE, self->scheduled, self->scheduled_count));
}

/* Whoever waits for the topology hears that its containers end; it is tried again. */
static void
schedule_failed(struct sl_launcher_asked *self, const char *text)
{
    for (int32_t i = 0; i < self->scheduled_count; i++) {
        self->listener.on_ended(self->listener.ctx, self->scheduled[i].id, text);
    }
    sl_timer_start(self->loop, &self->retry, self->retry_ms, schedule_again, self);
    self->retry_ms = self->retry_ms * 2 < SL_LAUNCHER_ASKED_RETRY_MAX_MS
                         ? self->retry_ms * 2
                         : SL_LAUNCHER_ASKED_RETRY_MAX_MS;
}

/* Nothing can be started by it, which is no matter of containers: whoever waits hears at once. It
 * is tried again with the schedule, which fails as well meanwhile. */
static void
initialize_failed(struct sl_launcher_asked *self, const char *text)
{
    for (int32_t i = 0; i < self->scheduled_count; i++) {
        self->listener.on_stuck(self->listener.ctx, self->scheduled[i].id, text);
    }
}

/* The update that asked for them is over: they are not wanted any more. */
static void
add_abandoned(struct sl_launcher_asked *self, const struct asked_job *job)
{
    if (job->code == 0) {
        job_send(
            job_of_ids(self, SL_LAUNCHER_REMOVE, job->ids, (size_t)job->command.container_count));
    }
}

static void
answer_came(struct sl_launcher_asked *self, struct asked_job *job)
{
    switch (job->command.kind) {
    case SL_LAUNCHER_INITIALIZE:
        if (job->code != 0) {
            initialize_failed(self, job->text);
        }
        break;
    case SL_LAUNCHER_SCHEDULE:
        if (job->code != 0) {
            schedule_failed(self, job->text);
        } else {
            self->retry_ms = SL_LAUNCHER_ASKED_RETRY_MS;
        }
        break;
    case SL_LAUNCHER_UPDATE:
        if (job != self->update) {
            break;
        }
        self->update_step = STEP_OVER;
        self->listener.on_progress(self->listener.ctx);
        return;
    case SL_LAUNCHER_ADD:
        if (job != self->add) {
            add_abandoned(self, job);
            break;
        }
        self->add_step = STEP_OVER;
        self->listener.on_progress(self->listener.ctx);
        return;
    case SL_LAUNCHER_KILL:
        self->listener.on_all_stopped(self->listener.ctx);
        break;
    default:
        if (job->code != 0) {
            sl_log_warn("cluster", "the launcher: %s", job->text);
        }
        break;
    }
    job_free(job);
}

static void
answers_came(void *ctx)
{
    struct sl_launcher_asked *self = ctx;
    struct sl_list_node *node;
    for (;;) {
        struct asked_job *job = NULL;
        struct asked_note *note = NULL;
        pthread_mutex_lock(&self->lock);
        if ((node = sl_list_pop_front(&self->answers)) != NULL) {
            job = sl_container_of(node, struct asked_job, node);
        } else if ((node = sl_list_pop_front(&self->notes)) != NULL) {
            note = sl_container_of(node, struct asked_note, node);
        } else {
            self->is_posted = false;
        }
        pthread_mutex_unlock(&self->lock);
        if (job != NULL) {
            answer_came(self, job);
        } else if (note != NULL) {
            self->listener.on_ended(self->listener.ctx, note->id, note->text);
            sl_free(note);
        } else {
            return;
        }
    }
}

/* Under the lock: the loop is told, unless it is closed. */
static void
post(struct sl_launcher_asked *self)
{
    if (!self->is_posted && !self->is_closed) {
        self->is_posted = true;
        sl_loop_post(self->loop, answers_came, self);
    }
}

/* The seam. */

static int
asked_initialize(void *ctx, const struct sl_execution_state *execution, uint64_t token,
                 const struct sl_launcher_listener *listener)
{
    struct sl_launcher_asked *self = ctx;
    struct asked_job *job = job_new(self, SL_LAUNCHER_INITIALIZE, NULL, 0);
    (void)token;
    self->listener = *listener;
    self->retry_ms = SL_LAUNCHER_ASKED_RETRY_MS;
    job->topology = sl_strdup(execution->topology);
    job->cwd = sl_strdup(execution->cwd);
    job->user = sl_strdup(execution->user);
    job->command.topology = job->topology;
    job->command.cwd = job->cwd;
    job->command.user = job->user;
    job_send(job);
    return 0;
}

/* Containers of the plan by number; those that it does not have are left out. */
static struct sl_packing_container *
containers_of(const struct sl_stored_plan *plan, const int32_t *ids, size_t count)
{
    struct sl_packing_container *list = sl_calloc(count + 1, sizeof(*list));
    for (size_t i = 0; i < count; i++) {
        list[i].id = ids[i];
        for (int32_t k = 0; k < plan->plan.container_count; k++) {
            if (plan->plan.containers[k].id == ids[i]) {
                list[i] = plan->plan.containers[k];
            }
        }
    }
    return list;
}

/* The first containers have the numbers of the plan, which is stored already. */
static int
schedule(struct sl_launcher_asked *self, const struct sl_stored_plan *plan, const int32_t *ids,
         size_t count)
{
    self->scheduled = containers_of(plan, ids, count);
    self->scheduled_count = (int32_t)count;
    job_send(job_new(self, SL_LAUNCHER_SCHEDULE, self->scheduled, self->scheduled_count));
    return 0;
}

static int
take_added(struct sl_launcher_asked *self, int32_t *ids, size_t count)
{
    struct asked_job *job = self->add;
    int rc = job->code;
    self->add = NULL;
    self->add_step = STEP_NONE;
    if (rc != 0) {
        sl_err_set(rc, "%s", job->text);
    } else {
        memcpy(ids, job->ids, count * sizeof(*ids));
    }
    job_free(job);
    return rc;
}

static int
asked_add(void *ctx, const struct sl_stored_plan *plan, int32_t *ids, size_t count)
{
    struct sl_launcher_asked *self = ctx;
    if (self->scheduled == NULL) {
        return schedule(self, plan, ids, count);
    }
    if (self->add_step == STEP_OVER && (size_t)self->add->command.container_count == count) {
        return take_added(self, ids, count);
    }
    if (self->add_step == STEP_NONE) {
        struct sl_packing_container *containers = containers_of(plan, ids, count);
        self->add = job_new(self, SL_LAUNCHER_ADD, containers, (int32_t)count);
        self->add_step = STEP_OPEN;
        sl_free(containers);
        job_send(self->add);
    }
    return sl_err_set(SL_EAGAIN, "the launcher starts them");
}

/* Also of an add that is not over: what it will have started goes, too. */
static void
asked_remove(void *ctx, const int32_t *ids, size_t count)
{
    struct sl_launcher_asked *self = ctx;
    if (self->add_step != STEP_NONE) {
        struct asked_job *job = self->add;
        bool is_over = self->add_step == STEP_OVER;
        self->add = NULL;
        self->add_step = STEP_NONE;
        if (is_over) {
            add_abandoned(self, job);
            job_free(job);
        }
        return;
    }
    job_send(job_of_ids(self, SL_LAUNCHER_REMOVE, ids, count));
}

/* Is the step one of this plan, or of an update that was given up? */
static bool
is_update_of(const struct sl_launcher_asked *self, const struct sl_stored_plan *proposed)
{
    size_t size = (size_t)proposed->plan.container_count * sizeof(*proposed->plan.containers);
    return self->update->command.container_count == proposed->plan.container_count &&
           memcmp(self->update->containers, proposed->plan.containers, size) == 0;
}

static void
drop_update(struct sl_launcher_asked *self)
{
    if (self->update_step == STEP_OVER) {
        job_free(self->update);
    }
    self->update = NULL;
    self->update_step = STEP_NONE;
}

static int
asked_prepare_update(void *ctx, const struct sl_stored_plan *current,
                     const struct sl_stored_plan *proposed)
{
    struct sl_launcher_asked *self = ctx;
    if (!self->abilities.wants_updates) {
        return 0;
    }
    if (self->update_step != STEP_NONE && !is_update_of(self, proposed)) {
        drop_update(self);
    }
    if (self->update_step == STEP_OVER) {
        int rc = self->update->code;
        if (rc != 0) {
            sl_err_set(rc, "%s", self->update->text);
        }
        drop_update(self);
        return rc;
    }
    if (self->update_step == STEP_NONE) {
        struct asked_job *job = job_new(self, SL_LAUNCHER_UPDATE, proposed->plan.containers,
                                        proposed->plan.container_count);
        job->old_containers =
            copy_containers(current->plan.containers, current->plan.container_count);
        job->command.old_containers = job->old_containers;
        job->command.old_container_count = current->plan.container_count;
        self->update = job;
        self->update_step = STEP_OPEN;
        job_send(job);
    }
    return sl_err_set(SL_EAGAIN, "the launcher looks at the plan");
}

static int
asked_restart(void *ctx, int32_t id)
{
    struct sl_launcher_asked *self = ctx;
    if (!self->abilities.can_restart) {
        return sl_err_set(SL_EINVAL, "its launcher can not restart containers");
    }
    job_send(job_of_ids(self, SL_LAUNCHER_RESTART, &id, 1));
    return 0;
}

static void
asked_stop_all(void *ctx)
{
    struct sl_launcher_asked *self = ctx;
    sl_timer_stop(&self->retry);
    job_send(job_new(self, SL_LAUNCHER_KILL, NULL, 0));
}

/* Who may say so is the launcher's trouble, which started it somewhere. */
static bool
asked_is_worker(void *ctx, const struct sl_plan_slot *slot, const struct sl_register_peer *worker)
{
    (void)ctx;
    (void)slot;
    (void)worker;
    return true;
}

static uint64_t
asked_pid(void *ctx, int32_t id)
{
    (void)ctx;
    (void)id;
    return 0;
}

static uint32_t
asked_restarts(void *ctx, int32_t id)
{
    (void)ctx;
    (void)id;
    return 0;
}

struct sl_launcher
sl_launcher_asked_seam(struct sl_launcher_asked *self, struct sl_loop *loop)
{
    self->loop = loop;
    struct sl_launcher seam = {
        .initialize = asked_initialize,
        .add_containers = asked_add,
        .remove_containers = asked_remove,
        .restart_container = asked_restart,
        .stop_all = asked_stop_all,
        .prepare_update = asked_prepare_update,
        .is_worker = asked_is_worker,
        .pid = asked_pid,
        .restarts = asked_restarts,
        .can_not_scale = !self->abilities.can_scale,
        .self = self,
    };
    return seam;
}

/* Life. */

struct sl_launcher_asked *
sl_launcher_asked_new(const struct sl_launcher_abilities *abilities)
{
    struct sl_launcher_asked *self = sl_calloc(1, sizeof(*self));
    pthread_condattr_t attributes;
    self->abilities = *abilities;
    sl_list_create(&self->jobs);
    sl_list_create(&self->answers);
    sl_list_create(&self->notes);
    pthread_mutex_init(&self->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    return self;
}

static void
free_jobs(struct sl_list *list)
{
    struct sl_list_node *node;
    while ((node = sl_list_pop_front(list)) != NULL) {
        job_free(sl_container_of(node, struct asked_job, node));
    }
}

void
sl_launcher_asked_free(struct sl_launcher_asked *self)
{
    struct sl_list_node *node;
    if (self == NULL) {
        return;
    }
    free_jobs(&self->jobs);
    free_jobs(&self->answers);
    while ((node = sl_list_pop_front(&self->notes)) != NULL) {
        sl_free(sl_container_of(node, struct asked_note, node));
    }
    if (self->add_step == STEP_OVER) {
        job_free(self->add);
    }
    drop_update(self);
    job_free(self->answering);
    sl_free(self->scheduled);
    pthread_cond_destroy(&self->wake);
    pthread_mutex_destroy(&self->lock);
    sl_free(self);
}

void
sl_launcher_asked_close(struct sl_launcher_asked *self)
{
    sl_timer_stop(&self->retry);
    pthread_mutex_lock(&self->lock);
    self->is_closed = true;
    pthread_cond_signal(&self->wake);
    pthread_mutex_unlock(&self->lock);
}

/* The other thread. */

static struct timespec
after(int64_t timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + timeout_ms % 1000 * 1000000;
    until.tv_sec += timeout_ms / 1000 + ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    return until;
}

int
sl_launcher_asked_next(struct sl_launcher_asked *self, int64_t timeout_ms,
                       const struct sl_launcher_command **command)
{
    struct timespec until = after(timeout_ms > 0 ? timeout_ms : 0);
    int rc = 0;
    int waited = 0;
    pthread_mutex_lock(&self->lock);
    while (sl_list_is_empty(&self->jobs) && !self->is_closed && waited != ETIMEDOUT) {
        waited = timeout_ms < 0 ? pthread_cond_wait(&self->wake, &self->lock)
                                : pthread_cond_timedwait(&self->wake, &self->lock, &until);
    }
    if (self->is_closed) {
        rc = sl_err_set(SL_ECLOSED, "there are no commands any more");
    } else if (self->answering != NULL) {
        rc = sl_err_set(SL_EINVAL, "the command before is not answered");
    } else if (!sl_list_is_empty(&self->jobs)) {
        self->answering = sl_container_of(sl_list_pop_front(&self->jobs), struct asked_job, node);
        *command = &self->answering->command;
        rc = 1;
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

/* The numbers that containers have: as many as were asked for, each once. */
static int
check_ids(const int32_t *ids, size_t count, size_t wanted)
{
    if (count != wanted) {
        return sl_err_set(SL_EINVAL, "the launcher gave %zu numbers for %zu containers", count,
                          wanted);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (ids[k] == ids[i]) {
                return sl_err_set(SL_EINVAL, "the launcher gave the number %d twice", ids[i]);
            }
        }
        if (ids[i] < 1) {
            return sl_err_set(SL_EINVAL, "the launcher gave the number %d", ids[i]);
        }
    }
    return 0;
}

/* Fills in the numbers of an ADD. */
static int
take_ids(struct asked_job *job, const int32_t *ids, size_t count)
{
    size_t wanted = (size_t)job->command.container_count;
    if (job->command.kind != SL_LAUNCHER_ADD) {
        return 0;
    }
    int rc = ids != NULL ? check_ids(ids, count, wanted) : 0;
    job->ids = sl_calloc(wanted + 1, sizeof(*job->ids));
    for (size_t i = 0; rc == 0 && i < wanted; i++) {
        job->ids[i] = ids != NULL ? ids[i] : job->containers[i].id;
    }
    return rc;
}

int
sl_launcher_asked_done(struct sl_launcher_asked *self, int code, const char *text,
                       const int32_t *ids, size_t count)
{
    struct asked_job *job = self->answering;
    int rc = job != NULL ? 0 : sl_err_set(SL_EINVAL, "there is no command to answer");
    if (rc != 0) {
        return rc;
    }
    rc = code == 0 ? take_ids(job, ids, count) : 0;
    job->code = rc != 0 ? rc : code;
    snprintf(job->text, sizeof(job->text), "%s",
             rc != 0        ? sl_err_last()->msg
             : text != NULL ? text
                            : "");
    pthread_mutex_lock(&self->lock);
    self->answering = NULL;
    sl_list_push_back(&self->answers, &job->node);
    post(self);
    pthread_mutex_unlock(&self->lock);
    return rc;
}

void
sl_launcher_asked_ended(struct sl_launcher_asked *self, int32_t id, const char *text)
{
    struct asked_note *note = sl_calloc(1, sizeof(*note));
    note->launcher = self;
    note->id = id;
    snprintf(note->text, sizeof(note->text), "%s", text);
    pthread_mutex_lock(&self->lock);
    sl_list_push_back(&self->notes, &note->node);
    post(self);
    pthread_mutex_unlock(&self->lock);
}
