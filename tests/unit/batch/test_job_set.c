// labels: short
#include "base/err.h"
#include "base/random.h"
#include "batch/job_set.h"
#include "unit.h"

enum { SETS = 20, JOBS_MAX = 5 };

/* What the queue may do, kept as plain numbers: which jobs run, and how far each batch is. */
struct oracle {
    int jobs[SETS];
    int started[SETS];
    int ended[SETS];
    uint64_t running[JOBS_MAX];
    int running_count;
    /* The batch whose turn it is. */
    int head;
};

static void
check_start(struct sl_job_queue *queue, struct oracle *oracle, int concurrent)
{
    struct sl_job *job = sl_job_queue_start(queue, 7);
    bool has_head = oracle->head < SETS;
    bool may_run = has_head && oracle->running_count < concurrent &&
                   oracle->started[oracle->head] < oracle->jobs[oracle->head];
    assert_int_equal(job != NULL, may_run);
    if (job == NULL) {
        return;
    }
    assert_int_equal(job->output, oracle->started[oracle->head]++);
    assert_int_equal(job->node, oracle->head);
    assert_int_equal(job->state, SL_JOB_RUNNING);
    assert_int_equal(job->start, 7);
    oracle->running[oracle->running_count++] = job->id;
}

static void
check_end(struct sl_job_queue *queue, struct oracle *oracle, struct sl_random *random)
{
    struct sl_job *job = NULL;
    if (oracle->running_count == 0) {
        assert_int_equal(sl_job_queue_end(queue, 1000000, NULL, 9, &job), SL_ENOTFOUND);
        return;
    }
    int picked = (int)sl_random_below(random, (uint64_t)oracle->running_count);
    uint64_t id = oracle->running[picked];
    bool fails = sl_random_below(random, 3) == 0;
    assert_int_equal(sl_job_queue_end(queue, id, fails ? "no" : NULL, 9, &job), 0);
    assert_int_equal(job->state, fails ? SL_JOB_FAILED : SL_JOB_SUCCEEDED);
    assert_int_equal(job->end, 9);
    assert_int_equal(job->failure != NULL, fails);
    assert_int_equal(sl_job_queue_end(queue, id, NULL, 9, &job), SL_ENOTFOUND);
    oracle->running[picked] = oracle->running[--oracle->running_count];
    oracle->ended[oracle->head]++;
}

static void
take_what_is_done(struct sl_job_queue *queue, struct oracle *oracle)
{
    const struct sl_job_set *head = sl_job_queue_head(queue);
    assert_int_equal(head == NULL, oracle->head == SETS);
    while (head != NULL && sl_job_set_is_done(head)) {
        assert_int_equal(oracle->ended[oracle->head], oracle->jobs[oracle->head]);
        assert_int_equal(head->time, oracle->head);
        sl_job_set_free(sl_job_queue_take_head(queue));
        oracle->head++;
        head = sl_job_queue_head(queue);
    }
}

static void
test_batches_run_in_order_and_outputs_side_by_side(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct sl_random random;
        struct sl_job_queue queue;
        struct oracle oracle = {0};
        int concurrent = 1 + (int)(seed % 4);
        sl_random_seed(&random, seed);
        sl_job_queue_create(&queue, concurrent);
        for (int i = 0; i < SETS; i++) {
            struct sl_job_set *set = sl_job_set_new(i, 1);
            oracle.jobs[i] = (int)sl_random_below(&random, JOBS_MAX + 1);
            for (int k = 0; k < oracle.jobs[i]; k++) {
                assert_int_equal(sl_job_queue_add(&queue, set, i), k);
            }
            sl_job_queue_submit(&queue, set);
        }
        while (oracle.head < SETS) {
            if (sl_random_below(&random, 2) == 0) {
                check_start(&queue, &oracle, concurrent);
            } else {
                check_end(&queue, &oracle, &random);
            }
            take_what_is_done(&queue, &oracle);
        }
        assert_null(sl_job_queue_start(&queue, 7));
        sl_job_queue_destroy(&queue);
    }
}

static void
test_a_queue_frees_what_never_ran(void **state)
{
    (void)state;
    struct sl_job_queue queue;
    sl_job_queue_create(&queue, 1);
    struct sl_job_set *set = sl_job_set_new(0, 0);
    struct sl_streaming_input input = {3, "a file", 0, 1};
    sl_job_set_input(set, &input);
    sl_job_queue_add(&queue, set, 0);
    sl_job_queue_submit(&queue, set);
    assert_non_null(sl_job_queue_start(&queue, 1));
    sl_job_queue_destroy(&queue);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_run_in_order_and_outputs_side_by_side),
        cmocka_unit_test(test_a_queue_frees_what_never_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
