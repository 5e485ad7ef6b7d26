#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "cluster/client_launcher.h"
#include "cluster/master_messages.h"
#include "cluster/runtime_priv.h"

/*
 * The standalone launcher of commands: the leading master decides where things run and has them
 * started; each command is an event of its queue. What the topology master can tell by itself is
 * asked there.
 */

enum {
    /* Beside what the command itself may wait for. */
    MARGIN_MS = 30000,
    UPDATE_MARGIN_MS = 200000,
};

struct standalone {
    struct sl_runtime *runtime;
};

static int
standalone_initialize(void *ctx, struct sl_runtime *runtime)
{
    ((struct standalone *)ctx)->runtime = runtime;
    return 0;
}

static void
standalone_close(void *ctx)
{
    sl_free(ctx);
}

/* Killing. */

static int
standalone_on_kill(void *ctx, const struct sl_runtime_kill *kill)
{
    struct sl_runtime *runtime = ((struct standalone *)ctx)->runtime;
    struct sl_master_kill message = {kill->topology, kill->wait_ms, kill->is_purged};
    struct sl_buf body = {0};
    bool is_uncertain;
    sl_master_kill_encode(&message, &body);
    int rc =
        sl__rt_call_leading_master(runtime, SL_MASTER_KILL, &body, false,
                                   kill->wait_ms + kill->timeout_ms + MARGIN_MS, &is_uncertain);
    sl_buf_destroy(&body);
    /* A master that ended may have done it. */
    return rc == SL_ENOTFOUND && (is_uncertain || kill->is_ended) ? 0 : rc;
}

/* Submitting. */

/* The plan that a master answered with. */
static int
read_planned(struct sl_runtime *runtime, const uint8_t *data, size_t size)
{
    sl_arena_reset(&runtime->planned_arena);
    const uint8_t *copy = sl_arena_memdup(&runtime->planned_arena, data, size);
    int rc = sl_stored_plan_decode(copy, size, &runtime->planned_arena, &runtime->planned);
    runtime->has_planned = rc == 0;
    return rc;
}

static int
encode_submission(const struct sl_runtime_submission *submission, struct sl_buf *out)
{
    char host[256] = "";
    struct sl_buf plan = {0};
    struct sl_buf package = {0};
    struct sl_buf schedule = {0};
    gethostname(host, sizeof(host) - 1);
    int rc = sl_stored_plan_encode(submission->plan, &plan);
    if (rc == 0) {
        rc = sl_package_encode(submission->package, &package);
    }
    if (rc == 0) {
        sl_schedule_template_encode(submission->schedule, &schedule);
        struct sl_master_submit message = {
            .topology = submission->topology,
            .definition = submission->definition,
            .definition_size = submission->definition_size,
            .package = package.data,
            .package_size = package.size,
            .plan = plan.data,
            .plan_size = plan.size,
            .schedule = schedule.data,
            .schedule_size = schedule.size,
            .cwd = submission->cwd,
            .user = submission->user,
            .host = host,
            .is_active = submission->is_active,
            .time_limit_ms = submission->timeout_ms,
            .is_dry_run = submission->is_dry_run,
        };
        sl_master_submit_encode(&message, out);
    }
    sl_buf_destroy(&plan);
    sl_buf_destroy(&package);
    sl_buf_destroy(&schedule);
    return rc;
}

/* Is the topology that runs the one that was to be submitted? */
static bool
is_ours(struct sl_runtime *runtime, const struct sl_runtime_submission *submission)
{
    struct sl_execution_state execution;
    struct sl_arena arena;
    char hash[65];
    sl_arena_create(&arena, 0, 0);
    bool is_same =
        sl__rt_get_part(runtime, SL_LAYOUT_EXECUTION_STATE, submission->topology) == 0 &&
        sl_execution_state_decode(runtime->outcome.value.data, runtime->outcome.value.size, &arena,
                                  &execution) == 0 &&
        sl_package_hash(submission->package, hash) == 0 &&
        strcmp(execution.package_hash, hash) == 0 && strcmp(execution.cwd, submission->cwd) == 0;
    sl_arena_destroy(&arena);
    return is_same;
}

static int
schedule_store(struct sl_runtime *runtime, const struct sl_runtime_submission *submission)
{
    struct sl_buf body = {0};
    bool is_uncertain = false;
    int rc = encode_submission(submission, &body);
    if (rc == 0) {
        rc = sl__rt_call_leading_master(runtime, SL_MASTER_SUBMIT, &body, true,
                                        submission->timeout_ms + MARGIN_MS, &is_uncertain);
    }
    sl_buf_destroy(&body);
    if (rc == SL_EEXIST && is_uncertain) {
        struct sl_err why;
        sl_err_move(&why);
        return is_ours(runtime, submission) ? 0 : sl_err_set(why.code, "%s", why.msg);
    }
    return rc;
}

/* What can not start is taken back whole. */
static int
standalone_on_schedule(void *ctx, const struct sl_runtime_submission *submission)
{
    struct standalone *self = ctx;
    const char *topology = submission->topology;
    if (submission->schedule == NULL) {
        return sl_err_set(SL_EINVAL, "a submission to masters says how it is to be scheduled");
    }
    int rc = schedule_store(self->runtime, submission);
    if (rc == 0 && submission->is_dry_run) {
        rc = read_planned(self->runtime, self->runtime->outcome.value.data,
                          self->runtime->outcome.value.size);
    }
    if (rc != 0 || submission->is_dry_run) {
        return rc;
    }
    rc = sl__rt_await_settled(self->runtime, topology, submission->timeout_ms);
    if (rc != 0 && rc != SL_ETIMEOUT) {
        struct sl_err why;
        struct sl_runtime_kill kill = {.topology = topology,
                                       .timeout_ms = self->runtime->options.timeout_ms};
        sl_err_move(&why);
        standalone_on_kill(self, &kill);
        return sl_err_set(why.code, "%s", why.msg);
    }
    return rc;
}

/* Changing. */

static int
encode_change(const struct sl_runtime_change *change, struct sl_buf *out)
{
    struct sl_buf current = {0};
    struct sl_buf proposed = {0};
    struct sl_buf schedule = {0};
    int rc = sl_stored_plan_encode(change->current, &current);
    if (rc == 0) {
        rc = sl_stored_plan_encode(change->proposed, &proposed);
    }
    if (rc == 0) {
        if (change->schedule != NULL) {
            sl_schedule_template_encode(change->schedule, &schedule);
        }
        struct sl_master_update message = {
            .topology = change->current->topology,
            .current = current.data,
            .current_size = current.size,
            .proposed = proposed.data,
            .proposed_size = proposed.size,
            .schedule = schedule.data,
            .schedule_size = schedule.size,
            .mode = change->mode,
            .lock_timeout_ms = change->lock_timeout_ms,
            .drain_timeout_ms = change->drain_timeout_ms,
            .is_dry_run = change->is_dry_run,
        };
        sl_master_update_encode(&message, out);
    }
    sl_buf_destroy(&current);
    sl_buf_destroy(&proposed);
    sl_buf_destroy(&schedule);
    return rc;
}

static int
read_result(struct sl_runtime *runtime, const struct sl_update_result **result)
{
    struct sl_master_update_result answer;
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    sl_arena_reset(&runtime->answer_arena);
    int rc = sl_master_update_result_decode(runtime->outcome.value.data,
                                            runtime->outcome.value.size, &arena, &answer);
    if (rc == 0) {
        rc = read_planned(runtime, answer.proposed, answer.proposed_size);
    }
    if (rc == 0 && answer.result_size > 0) {
        const uint8_t *copy =
            sl_arena_memdup(&runtime->answer_arena, answer.result, answer.result_size);
        rc = sl_update_result_decode(copy, answer.result_size, &runtime->answer_arena,
                                     &runtime->result);
        *result = &runtime->result;
    }
    sl_arena_destroy(&arena);
    return rc;
}

static int
standalone_on_update(void *ctx, const struct sl_runtime_change *change,
                     const struct sl_update_result **result)
{
    struct sl_runtime *runtime = ((struct standalone *)ctx)->runtime;
    struct sl_buf body = {0};
    bool is_uncertain;
    *result = NULL;
    int rc = encode_change(change, &body);
    if (rc == 0 && !change->is_dry_run) {
        rc = sl__rt_watch(runtime, change->current->topology);
    }
    if (rc == 0) {
        rc = sl__rt_call_leading_master(
            runtime, SL_MASTER_UPDATE, &body, true,
            change->lock_timeout_ms + change->drain_timeout_ms + UPDATE_MARGIN_MS, &is_uncertain);
    }
    sl__rt_unwatch(runtime);
    sl_buf_destroy(&body);
    return rc != 0 ? rc : read_result(runtime, result);
}

static int
standalone_on_restart(void *ctx, const char *topology, int32_t container, uint64_t timeout_ms)
{
    struct sl_control_request request = {.time_limit_ms = timeout_ms, .container = container};
    return sl__rt_ask(((struct standalone *)ctx)->runtime, topology, SL_TM_RESTART, &request,
                      timeout_ms + 1000);
}

void
sl_client_launcher_standalone(struct sl_client_launcher *launcher)
{
    *launcher = (struct sl_client_launcher){
        .initialize = standalone_initialize,
        .on_schedule = standalone_on_schedule,
        .on_update = standalone_on_update,
        .on_kill = standalone_on_kill,
        .on_restart = standalone_on_restart,
        .close = standalone_close,
        .is_scheduling = true,
        .self = sl_calloc(1, sizeof(struct standalone)),
    };
}
