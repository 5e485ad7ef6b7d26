#include "batch/report.h"

#include "base/alloc.h"

static char *
text_dup(const char *text)
{
    return text != NULL ? sl_strdup(text) : NULL;
}

static struct sl_streaming_operation
operation_of(const struct sl_graph *graph, const struct sl_job *job)
{
    const struct sl_graph_node *node = graph->nodes.items[job->node];
    return (struct sl_streaming_operation){
        .name = node->name,
        .call_site = node->call_site,
        .failure_reason = text_dup(job->failure),
        .start = job->start,
        .end = job->end,
        .id = job->output,
        .node = job->node,
    };
}

static void
copy_operations(struct sl_streaming_report *body, const struct sl_graph *graph,
                const struct sl_job_set *set, int32_t operation)
{
    size_t from = operation >= 0 ? (size_t)operation : 0;
    size_t to = operation >= 0 ? from + 1 : set->jobs.count;
    struct sl_streaming_operation *operations = sl_calloc(to - from, sizeof(*operations));
    for (size_t i = from; i < to; i++) {
        operations[i - from] = operation_of(graph, &set->jobs.items[i]);
    }
    body->operations = operations;
    body->operation_count = (int32_t)(to - from);
}

static void
copy_inputs(struct sl_streaming_report *body, const struct sl_job_set *set)
{
    struct sl_streaming_input *inputs = sl_calloc(set->inputs.count, sizeof(*inputs));
    for (size_t i = 0; i < set->inputs.count; i++) {
        inputs[i] = set->inputs.items[i];
        inputs[i].metadata = sl_strdup(inputs[i].metadata);
        body->records += inputs[i].records;
    }
    body->inputs = inputs;
    body->input_count = (int32_t)set->inputs.count;
}

/* A clock that was set back in between does not make a duration negative. */
static int64_t
between(int64_t from, int64_t to)
{
    if (from == SL_STREAMING_UNKNOWN || to == SL_STREAMING_UNKNOWN) {
        return SL_STREAMING_UNKNOWN;
    }
    return to > from ? to - from : 0;
}

static struct sl_report *
report_new(enum sl_streaming_event event, int64_t time)
{
    struct sl_report *report = sl_calloc(1, sizeof(*report));
    report->event = event;
    report->body = (struct sl_streaming_report){
        .time = time,
        .submission_time = SL_STREAMING_UNKNOWN,
        .processing_start = SL_STREAMING_UNKNOWN,
        .processing_end = SL_STREAMING_UNKNOWN,
        .scheduling_delay_ms = SL_STREAMING_UNKNOWN,
        .processing_delay_ms = SL_STREAMING_UNKNOWN,
        .total_delay_ms = SL_STREAMING_UNKNOWN,
    };
    return report;
}

struct sl_report *
sl_report_batch_new(enum sl_streaming_event event, const struct sl_graph *graph,
                    const struct sl_job_set *set, int32_t operation)
{
    struct sl_report *report = report_new(event, set->time);
    struct sl_streaming_report *body = &report->body;
    body->submission_time = set->submission;
    body->processing_start = set->start;
    body->processing_end = set->end;
    body->scheduling_delay_ms = between(set->submission, set->start);
    body->processing_delay_ms = between(set->start, set->end);
    body->total_delay_ms = between(set->submission, set->end);
    copy_inputs(body, set);
    copy_operations(body, graph, set, operation);
    return report;
}

struct sl_report *
sl_report_receiver_new(enum sl_streaming_event event, int64_t time,
                       const struct sl_streaming_receiver *receiver)
{
    struct sl_report *report = report_new(event, time);
    report->body.receiver = *receiver;
    report->body.receiver.name = text_dup(receiver->name);
    report->body.receiver.worker = text_dup(receiver->worker);
    report->body.receiver.last_error = text_dup(receiver->last_error);
    return report;
}

struct sl_report *
sl_report_time_new(enum sl_streaming_event event, int64_t time)
{
    return report_new(event, time);
}

static void
free_const(const void *ptr)
{
    sl_free((void *)(uintptr_t)ptr);
}

void
sl_report_free(struct sl_report *report)
{
    if (report == NULL) {
        return;
    }
    struct sl_streaming_report *body = &report->body;
    for (int32_t i = 0; i < body->input_count; i++) {
        free_const(body->inputs[i].metadata);
    }
    for (int32_t i = 0; i < body->operation_count; i++) {
        free_const(body->operations[i].failure_reason);
    }
    free_const(body->inputs);
    free_const(body->operations);
    free_const(body->receiver.name);
    free_const(body->receiver.worker);
    free_const(body->receiver.last_error);
    sl_free(report);
}
