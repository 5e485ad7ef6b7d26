// labels: short
#include "batch/report.h"
#include "rig.h"

/* A graph of an input and two outputs, and a set of batch 1000 with a job for each output. */
struct fixture {
    struct rig rig;
    struct sl_job_queue queue;
    struct sl_job_set *set;
};

static void
fixture_create(struct fixture *self)
{
    rig_create(&self->rig, 0);
    rig_open(&self->rig);
    rig_simple_graph(&self->rig);
    rig_add(&self->rig, "second", SL_STREAMING_OUTPUT, 0, 1000, 0);
    sl_job_queue_create(&self->queue, 1);
    self->set = sl_job_set_new(1000, 1010);
    assert_int_equal(sl_job_queue_add(&self->queue, self->set, 1), 0);
    assert_int_equal(sl_job_queue_add(&self->queue, self->set, 2), 1);
    struct sl_streaming_input input = {7, "a.txt", 0, 0};
    sl_job_set_input(self->set, &input);
    sl_job_queue_submit(&self->queue, self->set);
}

static void
fixture_destroy(struct fixture *self)
{
    sl_job_queue_destroy(&self->queue);
    rig_destroy(&self->rig);
}

static struct sl_report *
report_of(struct fixture *self, enum sl_streaming_event event, int32_t operation)
{
    return sl_report_batch_new(event, &self->rig.context->graph, self->set, operation);
}

static void
test_batch_new_knows_no_time_before_it_comes(void **state)
{
    (void)state;
    struct fixture f;
    fixture_create(&f);
    struct sl_report *report = report_of(&f, SL_STREAMING_EVENT_BATCH_SUBMITTED, -1);
    const struct sl_streaming_report *body = &report->body;
    assert_int_equal(report->event, SL_STREAMING_EVENT_BATCH_SUBMITTED);
    assert_int_equal(body->time, 1000);
    assert_int_equal(body->submission_time, 1010);
    assert_int_equal(body->processing_start, SL_STREAMING_UNKNOWN);
    assert_int_equal(body->scheduling_delay_ms, SL_STREAMING_UNKNOWN);
    assert_int_equal(body->processing_delay_ms, SL_STREAMING_UNKNOWN);
    assert_int_equal(body->total_delay_ms, SL_STREAMING_UNKNOWN);
    assert_int_equal(body->records, 7);
    assert_int_equal(body->input_count, 1);
    assert_string_equal(body->inputs[0].metadata, "a.txt");
    assert_int_equal(body->operation_count, 2);
    assert_string_equal(body->operations[0].name, "out");
    assert_string_equal(body->operations[0].call_site, "script.lua:7");
    assert_null(body->operations[0].failure_reason);
    assert_int_equal(body->operations[1].id, 1);
    assert_int_equal(body->operations[1].node, 2);
    sl_report_free(report);
    fixture_destroy(&f);
}

static void
test_batch_new_stays_as_it_was_made(void **state)
{
    (void)state;
    struct fixture f;
    struct sl_job *job;
    fixture_create(&f);
    uint64_t id = sl_job_queue_start(&f.queue, 1030)->id;
    assert_int_equal(sl_job_queue_end(&f.queue, id, "boom", 1050, &job), 0);
    struct sl_report *failed = report_of(&f, SL_STREAMING_EVENT_OPERATION_COMPLETED, 0);
    id = sl_job_queue_start(&f.queue, 1060)->id;
    struct sl_report *running = report_of(&f, SL_STREAMING_EVENT_OPERATION_STARTED, 1);
    assert_int_equal(sl_job_queue_end(&f.queue, id, NULL, 1100, &job), 0);
    struct sl_report *whole = report_of(&f, SL_STREAMING_EVENT_BATCH_COMPLETED, -1);
    fixture_destroy(&f);

    assert_int_equal(failed->body.operation_count, 1);
    assert_string_equal(failed->body.operations[0].failure_reason, "boom");
    assert_int_equal(failed->body.operations[0].start, 1030);
    assert_int_equal(failed->body.operations[0].end, 1050);
    assert_int_equal(running->body.operation_count, 1);
    assert_int_equal(running->body.operations[0].id, 1);
    assert_int_equal(running->body.operations[0].start, 1060);
    assert_int_equal(running->body.operations[0].end, SL_STREAMING_UNKNOWN);
    assert_int_equal(whole->body.scheduling_delay_ms, 20);
    assert_int_equal(whole->body.processing_delay_ms, 70);
    assert_int_equal(whole->body.total_delay_ms, 90);
    assert_string_equal(whole->body.inputs[0].metadata, "a.txt");
    sl_report_free(failed);
    sl_report_free(running);
    sl_report_free(whole);
}

static void
test_batch_new_has_no_negative_delay_when_the_clock_is_set_back(void **state)
{
    (void)state;
    struct fixture f;
    struct sl_job *job;
    fixture_create(&f);
    for (int i = 0; i < 2; i++) {
        uint64_t id = sl_job_queue_start(&f.queue, 900)->id;
        assert_int_equal(sl_job_queue_end(&f.queue, id, NULL, 800, &job), 0);
    }
    struct sl_report *report = report_of(&f, SL_STREAMING_EVENT_BATCH_COMPLETED, -1);
    assert_int_equal(report->body.scheduling_delay_ms, 0);
    assert_int_equal(report->body.processing_delay_ms, 0);
    assert_int_equal(report->body.total_delay_ms, 0);
    sl_report_free(report);
    fixture_destroy(&f);
}

static void
test_receiver_new_copies_its_texts(void **state)
{
    (void)state;
    char name[] = "in";
    char worker[] = "w1";
    char last_error[] = "broken";
    struct sl_streaming_receiver receiver = {
        .name = name, .worker = worker, .last_error = last_error, .last_error_time = 5, .node = 3};
    struct sl_report *report =
        sl_report_receiver_new(SL_STREAMING_EVENT_RECEIVER_ERROR, 20, &receiver);
    name[0] = worker[0] = last_error[0] = '?';
    assert_int_equal(report->body.time, 20);
    assert_string_equal(report->body.receiver.name, "in");
    assert_string_equal(report->body.receiver.worker, "w1");
    assert_string_equal(report->body.receiver.last_error, "broken");
    assert_int_equal(report->body.receiver.last_error_time, 5);
    assert_int_equal(report->body.receiver.node, 3);
    assert_int_equal(report->body.processing_start, SL_STREAMING_UNKNOWN);
    sl_report_free(report);
    receiver.last_error = NULL;
    report = sl_report_receiver_new(SL_STREAMING_EVENT_RECEIVER_STARTED, 30, &receiver);
    assert_null(report->body.receiver.last_error);
    sl_report_free(report);
}

static void
test_time_new_has_a_time_alone(void **state)
{
    (void)state;
    struct sl_report *report = sl_report_time_new(SL_STREAMING_EVENT_STARTED, 40);
    assert_int_equal(report->event, SL_STREAMING_EVENT_STARTED);
    assert_int_equal(report->body.time, 40);
    assert_int_equal(report->body.operation_count, 0);
    assert_int_equal(report->body.input_count, 0);
    assert_null(report->body.receiver.name);
    sl_report_free(report);
    sl_report_free(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_batch_new_knows_no_time_before_it_comes),
    cmocka_unit_test(test_batch_new_stays_as_it_was_made),
    cmocka_unit_test(test_batch_new_has_no_negative_delay_when_the_clock_is_set_back),
    cmocka_unit_test(test_receiver_new_copies_its_texts),
    cmocka_unit_test(test_time_new_has_a_time_alone),
};

UNIT_MAIN(tests)
