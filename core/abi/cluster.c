#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "abi/abi.h"
#include "base/alloc.h"
#include "base/err.h"
#include "cluster/local_roles.h"
#include "cluster/master_messages.h"
#include "cluster/master_role.h"
#include "cluster/runtime_manager.h"
#include "cluster/supervisor_role.h"

struct sl_cluster {
    struct sl_runtime *runtime;
    int progress_fd;
    const char *const *names;
    size_t name_count;
};

static uint64_t
milliseconds(double value)
{
    return value > 0 ? (uint64_t)value : 0;
}

static int
need(bool condition, const char *what)
{
    return condition ? 0 : sl_err_set(SL_EINVAL, "cluster: %s needed", what);
}

static void
write_progress(void *ctx, const char *text)
{
    const struct sl_cluster *cluster = ctx;
    struct sl_buf line = {0};
    sl_buf_append_str(&line, text);
    sl_buf_append_u8(&line, '\n');
    for (size_t at = 0; at < line.size;) {
        ssize_t written = write(cluster->progress_fd, line.data + at, line.size - at);
        if (written < 0 && errno != EINTR) {
            break;
        }
        at += written > 0 ? (size_t)written : 0;
    }
    sl_buf_destroy(&line);
}

struct sl_cluster *
sl_abi_cluster_open(const struct sl_cluster_options *options)
{
    if (need(options != NULL && options->state_url != NULL && options->program != NULL &&
                 options->logs != NULL,
             "a state manager, a program and a folder for logs are") != 0) {
        return NULL;
    }
    struct sl_cluster *cluster = sl_calloc(1, sizeof(*cluster));
    struct sl_runtime_options runtime = {
        .state_url = options->state_url,
        .program = options->program,
        .logs = options->logs,
        .timeout_ms = milliseconds(options->timeout_ms),
        .is_reader = options->is_reader,
        .launcher = options->launcher,
        .is_service = options->is_service,
        .secret = options->secret,
        .settings = options->settings,
        .progress = options->progress_fd >= 0 ? write_progress : NULL,
        .ctx = cluster,
    };
    cluster->progress_fd = options->progress_fd;
    if (sl_runtime_open(&runtime, &cluster->runtime) != 0) {
        sl_free(cluster);
        return NULL;
    }
    return cluster;
}

void
sl_abi_cluster_close(struct sl_cluster *cluster)
{
    if (cluster != NULL) {
        sl_runtime_close(cluster->runtime);
        sl_free(cluster);
    }
}

int32_t
sl_abi_cluster_names(struct sl_cluster *cluster)
{
    int rc = need(cluster != NULL, "a client is");
    if (rc == 0) {
        rc = sl_runtime_names(cluster->runtime, &cluster->names, &cluster->name_count);
    }
    return rc != 0 ? rc : (int32_t)cluster->name_count;
}

const char *
sl_abi_cluster_name(const struct sl_cluster *cluster, int32_t index)
{
    return cluster != NULL && index >= 0 && (size_t)index < cluster->name_count
               ? cluster->names[index]
               : NULL;
}

int32_t
sl_abi_cluster_load(struct sl_cluster *cluster, const char *topology,
                    const struct sl_topology_view **view)
{
    int rc = need(cluster != NULL && topology != NULL && view != NULL,
                  "a client, a name and a place for the view are");
    return rc != 0 ? rc : sl_runtime_load(cluster->runtime, topology, view);
}

int32_t
sl_abi_cluster_package(struct sl_cluster *cluster, const char *topology,
                       const struct sl_package **package)
{
    int rc = need(cluster != NULL && topology != NULL && package != NULL,
                  "a client, a name and a place for the package are");
    return rc != 0 ? rc : sl_runtime_package(cluster->runtime, topology, package);
}

static bool
is_package(const struct sl_package *package)
{
    return package != NULL && package->script != NULL && package->files != NULL &&
           package->file_count > 0;
}

static bool
is_plan(const struct sl_stored_plan *plan)
{
    return plan != NULL && plan->topology != NULL && plan->packing != NULL &&
           plan->components != NULL && plan->slots != NULL && plan->plan.containers != NULL &&
           plan->plan.instances != NULL &&
           sl_packing_plan_check(&plan->plan, plan->component_count) == 0;
}

static const struct sl_schedule_template *
schedule_of(const struct sl_sched_request *request, int32_t scheduler,
            struct sl_schedule_template *to)
{
    if (request == NULL) {
        return NULL;
    }
    *to = (struct sl_schedule_template){.scheduler = scheduler, .request = *request};
    return to;
}

int32_t
sl_abi_cluster_submit(struct sl_cluster *cluster, const struct sl_cluster_submission *submission,
                      const struct sl_stored_plan **planned)
{
    int rc = need(cluster != NULL && submission != NULL && submission->topology != NULL &&
                      submission->definition != NULL && submission->cwd != NULL &&
                      submission->user != NULL && planned != NULL,
                  "a client, a name, a definition, a folder, a user and a place for a plan are");
    if (rc == 0) {
        rc = need(is_plan(submission->plan) && is_package(submission->package),
                  "a plan and a package are");
    }
    if (rc != 0) {
        return rc;
    }
    struct sl_schedule_template schedule;
    struct sl_runtime_answer answer;
    struct sl_runtime_request request = {.command = SL_RUNTIME_SUBMIT};
    request.submission = (struct sl_runtime_submission){
        .topology = submission->topology,
        .definition = submission->definition,
        .definition_size = submission->definition_size,
        .plan = submission->plan,
        .package = submission->package,
        .cwd = submission->cwd,
        .user = submission->user,
        .is_active = submission->is_active,
        .timeout_ms = milliseconds(submission->timeout_ms),
        .schedule = schedule_of(submission->schedule, submission->scheduler, &schedule),
        .is_dry_run = submission->is_dry_run,
    };
    rc = sl_runtime_run(cluster->runtime, &request, &answer);
    *planned = answer.planned;
    return rc;
}

int32_t
sl_abi_cluster_status(struct sl_cluster *cluster, const char *topology,
                      const struct sl_control_status **status)
{
    int rc = need(cluster != NULL && topology != NULL && status != NULL,
                  "a client, a name and a place for the status are");
    return rc != 0 ? rc : sl_runtime_status(cluster->runtime, topology, status);
}

int32_t
sl_abi_cluster_logs(struct sl_cluster *cluster, const char *topology,
                    struct sl_log_question *questions, size_t count, double wait_ms)
{
    int rc = need(cluster != NULL && topology != NULL && (questions != NULL || count == 0),
                  "a client, a name and questions are");
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = need(questions[i].supervisor != NULL, "the names of supervisors are");
    }
    if (rc == 0) {
        sl_runtime_logs(cluster->runtime, topology, questions, count, milliseconds(wait_ms));
    }
    return rc;
}

int32_t
sl_abi_cluster_set_active(struct sl_cluster *cluster, const char *topology, bool is_active,
                          double timeout_ms)
{
    int rc = need(cluster != NULL && topology != NULL, "a client and a name are");
    struct sl_runtime_answer answer;
    struct sl_runtime_request request = {
        .command = is_active ? SL_RUNTIME_ACTIVATE : SL_RUNTIME_DEACTIVATE,
        .topology = topology,
        .timeout_ms = milliseconds(timeout_ms),
    };
    if (rc == 0) {
        rc = sl_runtime_run(cluster->runtime, &request, &answer);
    }
    return rc != 0 ? rc : answer.was_so;
}

int32_t
sl_abi_cluster_restart(struct sl_cluster *cluster, const char *topology, int32_t container,
                       double timeout_ms)
{
    int rc = need(cluster != NULL && topology != NULL && container >= 0,
                  "a client, a name and a container are");
    struct sl_runtime_answer answer;
    struct sl_runtime_request request = {
        .command = SL_RUNTIME_RESTART,
        .topology = topology,
        .timeout_ms = milliseconds(timeout_ms),
        .container = container,
    };
    return rc != 0 ? rc : sl_runtime_run(cluster->runtime, &request, &answer);
}

int32_t
sl_abi_cluster_update(struct sl_cluster *cluster, const struct sl_cluster_change *change,
                      const struct sl_update_result **result, const struct sl_stored_plan **planned)
{
    int rc = need(cluster != NULL && change != NULL && is_plan(change->current) &&
                      is_plan(change->proposed) && result != NULL && planned != NULL,
                  "a client, two plans and places for what comes of it are");
    struct sl_schedule_template schedule;
    struct sl_runtime_answer answer;
    struct sl_runtime_request request = {.command = SL_RUNTIME_UPDATE};
    if (rc != 0) {
        return rc;
    }
    request.change = (struct sl_runtime_change){
        .current = change->current,
        .proposed = change->proposed,
        .lock_timeout_ms = milliseconds(change->lock_timeout_ms),
        .drain_timeout_ms = milliseconds(change->drain_timeout_ms),
        .mode = change->mode,
        .schedule = schedule_of(change->schedule, change->scheduler, &schedule),
        .is_dry_run = change->is_dry_run,
    };
    rc = sl_runtime_run(cluster->runtime, &request, &answer);
    *result = answer.update;
    *planned = answer.planned;
    return rc;
}

int32_t
sl_abi_cluster_kill(struct sl_cluster *cluster, const char *topology, double wait_ms,
                    double timeout_ms, bool is_purged)
{
    int rc = need(cluster != NULL && topology != NULL, "a client and a name are");
    struct sl_runtime_answer answer;
    struct sl_runtime_request request = {.command = SL_RUNTIME_KILL};
    request.kill = (struct sl_runtime_kill){
        .topology = topology,
        .wait_ms = milliseconds(wait_ms),
        .timeout_ms = milliseconds(timeout_ms),
        .is_purged = is_purged,
    };
    return rc != 0 ? rc : sl_runtime_run(cluster->runtime, &request, &answer);
}

const char *
sl_abi_package_hash(const struct sl_package *package)
{
    static __thread char hash[65];
    return need(is_package(package), "a package with files is") == 0 &&
                   sl_package_hash(package, hash) == 0
               ? hash
               : NULL;
}

static int
check_role(const struct sl_role_options *options)
{
    return need(options != NULL && options->state_url != NULL && options->topology != NULL &&
                    options->program != NULL && options->logs != NULL &&
                    (options->supervisor == NULL || options->host != NULL),
                "a state manager, a name, a program and a folder for logs are");
}

int32_t
sl_abi_role_guardian(const struct sl_role_options *options, const struct sl_settings *settings)
{
    int rc = check_role(options);
    return rc != 0 ? rc : sl_guardian_run(options, settings);
}

int32_t
sl_abi_role_topology_master(const struct sl_role_options *options,
                            const struct sl_settings *settings)
{
    int rc = check_role(options);
    return rc != 0 ? rc : sl_topology_master_run(options, settings);
}

int32_t
sl_abi_role_supervisor(const struct sl_supervisor_role_options *options,
                       const struct sl_settings *settings)
{
    int rc = need(options != NULL && options->state_url != NULL && options->program != NULL &&
                      options->host != NULL && options->folder != NULL && options->logs != NULL,
                  "a state manager, a program, a host and folders are");
    return rc != 0 ? rc : sl_supervisor_run(options, settings);
}

int32_t
sl_abi_role_master(const char *state_url, const char *listen, const char *folder,
                   const char *secret, const struct sl_settings *settings)
{
    int rc = need(state_url != NULL && listen != NULL && folder != NULL,
                  "a state manager, an address and a folder are");
    struct sl_master_role_options options = {state_url, listen, folder, secret, settings};
    return rc != 0 ? rc : sl_master_run(&options);
}
