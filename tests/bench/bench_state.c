/*
 * Rates of the state manager and of what is below it, for scripts/bench: lines "name value" in
 * operations a second.
 *
 * Usage: bench_state MS localfs|zookeeper
 *
 * set_1 has one call at a time under way, set_64 and get_64 have 64. Beside them, for localfs, how
 * often a small record can be appended and synchronised, and the same with 64 records at a time;
 * for ZooKeeper, a server of its own, the bare client library doing the same.
 */
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zookeeper/zookeeper.h>

#include "state/open.h"
#include "state/runner.h"
#include "state/zookeeper_kit.h"

enum {
    VALUE_BYTES = 200,
    DEPTH = 64,
    RECORD_BYTES = 300,
};

static uint64_t duration_ms;
static char value[VALUE_BYTES];

static uint64_t
now_ns(void)
{
    return sl_clock_mono_ns(sl_clock_system());
}

static void
report(const char *name, uint64_t operations, uint64_t start_ns)
{
    printf("%s %.1f\n", name, (double)operations * 1e9 / (double)(now_ns() - start_ns));
    fflush(stdout);
}

/*
 * The store
 */

struct load {
    struct sl_state_store *store;
    bool is_reading;
    int open;
    uint64_t operations;
    uint64_t end_ns;
    bool is_done;
};

static void load_next(struct load *load);

static void
on_operation(void *ctx, int status, const struct sl_state_result *result)
{
    struct load *load = ctx;
    (void)result;
    if (status != 0) {
        fprintf(stderr, "%s\n", sl_err_last()->msg);
        exit(1);
    }
    load->operations++;
    load->open--;
    load_next(load);
}

static void
load_next(struct load *load)
{
    if (now_ns() >= load->end_ns) {
        load->is_done = load->open == 0;
        return;
    }
    load->open++;
    if (load->is_reading) {
        sl_state_get(load->store, "/bench", on_operation, load);
    } else {
        sl_state_set(load->store, "/bench", value, VALUE_BYTES, SL_STATE_ANY_VERSION, on_operation,
                     load);
    }
}

static void
run_load(struct sl_state_runner *runner, struct sl_state_store *store, const char *name,
         bool is_reading, int depth)
{
    struct load load = {.store = store, .is_reading = is_reading};
    uint64_t start_ns = now_ns();
    load.end_ns = start_ns + duration_ms * 1000000;
    for (int i = 0; i < depth; i++) {
        load_next(&load);
    }
    sl_state_runner_run_until(runner, &load.is_done, 60000);
    report(name, load.operations, start_ns);
}

static void
on_created(void *ctx, int status, const struct sl_state_result *result)
{
    (void)result;
    if (status != 0) {
        fprintf(stderr, "%s\n", sl_err_last()->msg);
        exit(1);
    }
    *(bool *)ctx = true;
}

static void
on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void
run_store(const char *url)
{
    struct sl_state_runner *runner = sl_state_runner_new();
    struct sl_state_store *store = sl_state_open_new(url, sl_state_runner_executor(runner), NULL);
    bool is_created = false;
    bool is_closed = false;
    sl_state_create(store, "/bench", value, VALUE_BYTES, 0, on_created, &is_created);
    sl_state_runner_run_until(runner, &is_created, 20000);
    run_load(runner, store, "set_1", false, 1);
    run_load(runner, store, "set_64", false, DEPTH);
    run_load(runner, store, "get_1", true, 1);
    run_load(runner, store, "get_64", true, DEPTH);
    sl_state_store_close(store, on_closed, &is_closed);
    sl_state_runner_run_until(runner, &is_closed, 20000);
    sl_state_runner_free(runner);
}

/*
 * Below localfs
 */

static void
run_disk(const char *dir, const char *name, size_t records)
{
    char path[128];
    char *data = calloc(records, RECORD_BYTES);
    snprintf(path, sizeof(path), "%s/raw", dir);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    uint64_t start_ns = now_ns();
    uint64_t operations = 0;
    off_t offset = 0;
    while (now_ns() - start_ns < duration_ms * 1000000) {
        if (pwrite(fd, data, records * RECORD_BYTES, offset) < 0 || fdatasync(fd) != 0) {
            perror("raw write");
            exit(1);
        }
        offset += (off_t)(records * RECORD_BYTES);
        operations += records;
    }
    report(name, operations, start_ns);
    close(fd);
    unlink(path);
    free(data);
}

static void
run_localfs(void)
{
    char dir[] = "./state-bench-XXXXXX";
    char url[64];
    char command[64];
    if (mkdtemp(dir) == NULL) {
        perror("mkdtemp");
        exit(1);
    }
    snprintf(url, sizeof(url), "localfs:%s/state", dir);
    run_disk(dir, "raw_set_1", 1);
    run_store(url);
    run_disk(dir, "raw_set_64", DEPTH);
    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    if (system(command) != 0) {
        exit(1);
    }
}

/*
 * The bare client of ZooKeeper
 */

static sem_t raw_free;
static sem_t raw_connected;

static void
on_raw_event(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
    (void)zh;
    (void)path;
    (void)ctx;
    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE) {
        sem_post(&raw_connected);
    }
}

static void
check_raw(int rc)
{
    if (rc != ZOK) {
        fprintf(stderr, "%s\n", zerror(rc));
        exit(1);
    }
}

static void
on_raw_stat(int rc, const struct Stat *stat, const void *data)
{
    (void)stat;
    (void)data;
    check_raw(rc);
    sem_post(&raw_free);
}

static void
on_raw_data(int rc, const char *data, int size, const struct Stat *stat, const void *ctx)
{
    (void)data;
    (void)size;
    (void)stat;
    (void)ctx;
    check_raw(rc);
    sem_post(&raw_free);
}

static void
run_raw_load(zhandle_t *zh, const char *name, bool is_reading, int depth)
{
    uint64_t start_ns = now_ns();
    uint64_t operations = 0;
    sem_init(&raw_free, 0, (unsigned)depth);
    while (now_ns() - start_ns < duration_ms * 1000000) {
        while (sem_wait(&raw_free) != 0) {
        }
        check_raw(is_reading ? zoo_aget(zh, "/raw", 0, on_raw_data, NULL)
                             : zoo_aset(zh, "/raw", value, VALUE_BYTES, -1, on_raw_stat, NULL));
        operations++;
    }
    for (int i = 0; i < depth; i++) {
        while (sem_wait(&raw_free) != 0) {
        }
    }
    report(name, operations, start_ns);
}

static void
run_zookeeper(void)
{
    static struct zk_ensemble ensemble;
    char hosts[64];
    char url[128];
    if (!zk_is_installed()) {
        return;
    }
    zk_start(&ensemble, 1);
    zk_hosts(&ensemble, hosts, sizeof(hosts));
    snprintf(url, sizeof(url), "zookeeper://%s/bench", hosts);
    sem_init(&raw_connected, 0, 0);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zhandle_t *zh = zookeeper_init(hosts, on_raw_event, 10000, NULL, NULL, 0);
    while (sem_wait(&raw_connected) != 0) {
    }
    check_raw(zoo_create(zh, "/raw", value, VALUE_BYTES, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    /* Both once unmeasured: the server's code is compiled while it runs. */
    run_raw_load(zh, "warm", false, DEPTH);
    run_raw_load(zh, "warm", true, DEPTH);
    run_raw_load(zh, "raw_set_1", false, 1);
    run_raw_load(zh, "raw_set_64", false, DEPTH);
    run_raw_load(zh, "raw_get_1", true, 1);
    run_raw_load(zh, "raw_get_64", true, DEPTH);
    run_store(url);
    zookeeper_close(zh);
    zk_stop(&ensemble);
}

int
main(int argc, char **argv)
{
    if (argc != 3 || (duration_ms = strtoull(argv[1], NULL, 10)) == 0) {
        fprintf(stderr, "usage: bench_state MS localfs|zookeeper\n");
        return 2;
    }
    if (strcmp(argv[2], "localfs") == 0) {
        run_localfs();
    } else {
        run_zookeeper();
    }
    return 0;
}
