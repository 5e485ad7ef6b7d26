/* labels: sim   timeout: 300 */
/*
 * Runs the simulated control plane (sim.h) for many seeds, on several processors.
 *
 *     control_plane_sim [--seeds N] [--first S] [--steps M] [--jobs J] [--replay K] [--trace]
 *
 * The defaults are seeds 1 to 300 of 100 steps. Every K-th seed runs twice, and both runs must be
 * the same. A seed that fails prints one line that says what was violated and how to repeat the
 * run; --trace prints the run's story.
 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "sim.h"

enum { JOBS_MAX = 64 };

struct options {
    uint64_t first;
    uint64_t count;
    unsigned steps;
    unsigned jobs;
    unsigned replay;
    bool is_tracing;
};

/* What the jobs tell the parent, in shared memory. */
struct board {
    struct job {
        /* The seed that runs; next: the one to go on with after a crash. */
        uint64_t seed;
        uint64_t next;
        uint64_t done;
        uint64_t failed;
        uint64_t replayed;
        uint64_t virtual_ms;
        uint64_t events;
        uint64_t checks;
        uint64_t faults;
        uint64_t commits;
        uint64_t fenced;
        uint64_t stale;
        uint64_t longest_ms;
    } jobs[JOBS_MAX];
};

static void
print_failure(const struct options *options, uint64_t seed, const char *what)
{
    printf("seed %llu failed: %s; replay: control_plane_sim --seeds 1 --first %llu --steps %u "
           "--trace\n",
           (unsigned long long)seed, what, (unsigned long long)seed, options->steps);
    fflush(stdout);
}

static void
run_seed(const struct options *options, struct job *job, uint64_t seed)
{
    struct run_result result;
    char what[600];
    world_run(seed, options->steps, options->is_tracing, &result);
    job->done++;
    job->virtual_ms += result.at_ms;
    job->events += result.events;
    job->checks += result.checks;
    job->faults += result.faults;
    job->commits += result.commits;
    job->fenced += result.fenced;
    job->stale += result.stale;
    job->longest_ms = result.healed_ms > job->longest_ms ? result.healed_ms : job->longest_ms;
    if (options->is_tracing) {
        printf("trace hash %016llx\n", (unsigned long long)result.trace_hash);
    }
    if (result.failure[0] != '\0') {
        job->failed++;
        snprintf(what, sizeof(what), "at %llu ms: %s", (unsigned long long)result.at_ms,
                 result.failure);
        print_failure(options, seed, what);
        return;
    }
    if (options->replay != 0 && seed % options->replay == 0) {
        struct run_result again;
        world_run(seed, options->steps, false, &again);
        job->replayed++;
        if (again.trace_hash != result.trace_hash || again.events != result.events) {
            job->failed++;
            print_failure(options, seed, "a second run of it was another");
        }
    }
}

static void
run_job(const struct options *options, struct job *job)
{
    while (job->next < options->first + options->count) {
        job->seed = job->next;
        job->next += options->jobs;
        run_seed(options, job, job->seed);
    }
}

/* Runs a job in a process of its own; after a crash another one goes on behind the seed. */
static void
watch_job(const struct options *options, struct job *job, pid_t *pid)
{
    fflush(stdout);
    *pid = fork();
    if (*pid == 0) {
        run_job(options, job);
        exit(0);
    }
}

static int
parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--trace") == 0) {
            options->is_tracing = true;
            continue;
        }
        char *end = NULL;
        uint64_t number = value != NULL ? strtoull(value, &end, 10) : 0;
        if (value == NULL || *value == '\0' || *end != '\0') {
            fprintf(stderr, "%s: unknown, or without a number\n", argv[i]);
            return 2;
        }
        i++;
        if (strcmp(argv[i - 1], "--seeds") == 0) {
            options->count = number;
        } else if (strcmp(argv[i - 1], "--first") == 0) {
            options->first = number;
        } else if (strcmp(argv[i - 1], "--steps") == 0) {
            options->steps = (unsigned)number;
        } else if (strcmp(argv[i - 1], "--jobs") == 0) {
            options->jobs = (unsigned)number;
        } else if (strcmp(argv[i - 1], "--replay") == 0) {
            options->replay = (unsigned)number;
        } else {
            fprintf(stderr, "%s: unknown option\n", argv[i - 1]);
            return 2;
        }
    }
    if (options->jobs == 0 || options->jobs > JOBS_MAX) {
        options->jobs = options->jobs == 0 ? 1 : JOBS_MAX;
    }
    if (options->is_tracing) {
        options->jobs = 1;
    }
    return 0;
}

static double
seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int
main(int argc, char **argv)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct options options = {
        .first = 1, .count = 300, .steps = 100, .jobs = cpus > 0 ? (unsigned)cpus : 1, .replay = 4};
    struct job total = {0};
    pid_t pids[JOBS_MAX];
    double start = seconds();
    int rc = parse(argc, argv, &options);
    if (rc != 0) {
        return rc;
    }
    sl_log_configure(getenv("SL_LOG") != NULL ? getenv("SL_LOG") : "error");
    struct board *board =
        mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    for (unsigned i = 0; i < options.jobs; i++) {
        board->jobs[i].next = options.first + i;
        watch_job(&options, &board->jobs[i], &pids[i]);
    }
    for (unsigned i = 0; i < options.jobs; i++) {
        struct job *job = &board->jobs[i];
        int status = 0;
        waitpid(pids[i], &status, 0);
        while (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            job->done++;
            job->failed++;
            print_failure(&options, job->seed, "the program crashed");
            watch_job(&options, job, &pids[i]);
            waitpid(pids[i], &status, 0);
        }
        total.done += job->done;
        total.failed += job->failed;
        total.replayed += job->replayed;
        total.virtual_ms += job->virtual_ms;
        total.events += job->events;
        total.checks += job->checks;
        total.faults += job->faults;
        total.commits += job->commits;
        total.fenced += job->fenced;
        total.stale += job->stale;
        total.longest_ms = job->longest_ms > total.longest_ms ? job->longest_ms : total.longest_ms;
    }
    printf("%llu seeds, %llu failed, %llu run twice; %llu virtual s in %.1f s, %llu events, %llu "
           "checks, %llu faults, %llu commits, %llu fenced, %llu stale, healed within %llu ms\n",
           (unsigned long long)total.done, (unsigned long long)total.failed,
           (unsigned long long)total.replayed, (unsigned long long)total.virtual_ms / 1000,
           seconds() - start, (unsigned long long)total.events, (unsigned long long)total.checks,
           (unsigned long long)total.faults, (unsigned long long)total.commits,
           (unsigned long long)total.fenced, (unsigned long long)total.stale,
           (unsigned long long)total.longest_ms);
    return total.failed == 0 && total.done == options.count ? 0 : 1;
}
